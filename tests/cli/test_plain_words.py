"""What people are told before they spend: their policy's verdict, what a folder has spent, a promise that is hardly one."""

import contextlib
import io
import json
import sys
import warnings

import numpy as np
import pytest

from netdp.cli import output as progress
from netdp.cli.peer_progress import outcome_lines
from netdp.families.masked.training import plan_training
from netdp.learn import GossipLogisticRegression, LogisticRegression
from netdp.peers.desk import Desk
from netdp.peers.identity import Identity
from netdp.peers.ledger.entries import Entry
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.ledger.store import Store
from netdp.peers.peer import spent, steps_in
from netdp.peers.runs import place_for, spent_before
from netdp.peers.setup import settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy.wording import WeakPromise

TRAIN = ("--label", "ill=no|yes", "--feature", "age=20..60", "--n", "3", "--max-records", "200", "--iterations", "4")
NAMES = ("ann", "bob", "cy")


@pytest.fixture
def settled(tmp_path):
    """A small study, complete in a folder of homes; (draft, study, folder)."""
    task = Task(kind="mean", column="x", bounds=(0, 10))
    draft = Study.plan("three", task, NAMES, graph="complete:3", epsilon=2.0, delta=1e-6, threshold=0)
    study, path = settle(draft, tmp_path / "homes")
    assert path.name == "study.toml"
    return draft, study, tmp_path / "homes"


def contribute(study, folder, name="ann", result=None):
    """A party publishes, and is broken off, or has its result."""
    one, everybody = Identity.load(folder / name), tuple(range(study.n))
    with Store.open(folder / name / "peer.db", sign=one.sign) as store:
        desk = Desk(one, study, store, study.task.rows([{"x": "3"}]))
        desk.vote(1, everybody)
        desk.contribute(1, everybody)
        if result is not None:
            store.set_result(study.hash, result)


# ── before it is signed ───────────────────────────────────────────────────────────────────────────────────────────────


def test_who_signs_sees_what_its_policy_says(run, settled):
    draft, study, folder = settled
    words = ("study", "sign", str(folder / "study.toml"), "--home", str(folder / "ann"))
    status, out, err = run(*words)
    assert status == 0, err
    told = out[out.index("Your policy") :]
    assert "would allow it; epsilon at delta = 1e-06" in told
    assert "of 2.00 used; " in told
    assert " left" in told
    assert told.index("left") < told.index("Signed by ann")
    status, out, _ = run(*words, "--json")
    assert json.loads(out)["policy"]["allowed"]
    # the ledger counts, and what is over a limit is said loudly
    contribute(study, folder)
    again, path = settle(draft, folder)
    assert again.hash != study.hash
    limit = 'delta = 1e-6\nunit = "party"\n[[limit]]\nagainst = 1\nper = "year"\nepsilon = 2.1\n'
    (folder / "ann" / "policy.toml").write_text(limit, "utf-8")
    status, out, _ = run("study", "sign", str(path), "--home", str(folder / "ann"))
    assert status == 0
    assert "WOULD NOT ALLOW IT, at least one limit would be broken" in out
    assert "TOO MUCH" in out
    assert "of it before" in out


def test_a_policy_that_is_missing_unfit_or_damaged_is_told(run, settled):
    _, _, folder = settled
    file = folder / "ann" / "policy.toml"
    for text, allowed, reason in (
        (None, False, "there is no policy in"),
        (OwnerPolicy.default_text.replace('"record"', '"party"') + "nonsense = 1\n", None, "nonsense"),
    ):
        if text is None:
            file.unlink()
        else:
            file.write_text(text, "utf-8")
        status, out, _ = run("study", "sign", str(folder / "study.toml"), "--home", str(folder / "ann"), "--json")
        assert status == 0
        verdict = json.loads(out)["policy"]
        assert verdict["allowed"] is allowed
        assert reason in verdict["reason"]


# ── a folder that was used before ─────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_says_what_was_spent_there_and_how_to_go_on(settled, tmp_path):
    draft, study, folder = settled
    data = tmp_path / "numbers.csv"
    assert spent_before(folder, draft, data) is None
    contribute(study, folder)
    said = spent_before(folder, draft, data)
    assert "have spent before, ann epsilon " in said
    assert "at delta = 1e-06 against any one other, in 1 study" in said
    assert f"netdp up {folder / 'study.toml'} --folder {folder} --data {data}" in said
    assert "it goes on from there, and what was paid is not paid again" in spent_before(folder, study, data)
    # a new study does not take the place of one that can go on
    other, path = settle(draft, folder)
    assert path.name == "study-2.toml"
    assert Study.read(folder / "study.toml").hash == study.hash
    contribute(other, folder, "bob")
    assert spent_before(folder, draft, data).count("to go on with") == 2
    contribute(other, folder, "cy", result={"ok": True})  # bob can still get it from cy
    assert spent_before(folder, draft, data).count("to go on with") == 2
    assert place_for(folder).name == "study-3.toml"
    with Store.open(folder / "bob" / "peer.db") as store:
        store.set_result(other.hash, {"ok": True})
    assert spent_before(folder, draft, data).count("to go on with") == 1
    assert place_for(folder).name == "study-2.toml"
    (folder / "study-2.toml").write_text("half a stu", "utf-8")
    assert place_for(folder).name == "study-3.toml"


def test_a_ledger_that_cannot_be_read_is_named_and_its_study_is_kept(settled, tmp_path):
    draft, study, folder = settled
    contribute(study, folder)
    (folder / "ann" / "peer.db").chmod(0o644)  # refused: others could read it
    said = spent_before(folder, draft, tmp_path / "my numbers.csv")
    assert f"what ann spent before in {folder} is not known: its ledger cannot be read" in said
    assert f"--folder {folder} --data '{tmp_path}/my numbers.csv'" in said  # as a shell reads it
    assert place_for(folder).name == "study-2.toml"


def test_who_has_spent_most_is_named_not_who_took_part_most_often(settled, tmp_path):
    draft, _, folder = settled
    for name, shares in (("ann", (10**12, 10**12)), ("bob", (10**6,))):  # the shares of noise: bob has spent far more
        one = Identity.load(folder / name)
        with Store.open(folder / name / "peer.db", sign=one.sign) as store:
            for i, share in enumerate(shares, 1):
                of, loss = bytes([i]) * 32, {"kind": "masked-sum", "share": share, "distance": 1000, "dimension": 1}
                entry = Entry("2026-11-16T10:00:00Z", of.hex(), "x", 1, NAMES, name, "party", 1e-6, loss)
                store.put_vote(of, 1, b"", b"")
                store.spend(of, 1, (2, 1, 0, 0), b"body", b"", entry, b"")
    assert "have spent before, bob epsilon " in spent_before(folder, draft, tmp_path)


# ── what was published ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_training_has_published_steps(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("study", "new", "Ill", *TRAIN, "--epsilon", "8")[0] == 0
    study, _ = settle(Study.read("study.toml"), tmp_path / "homes")
    with Store.open(tmp_path / "p.db") as store:
        told = {"ok": False, "reason": "stopped", "party": "p00", "spent": spent(study, store)}
        assert "p00 published nothing." in "\n".join(outcome_lines(study, told, tmp_path))
        for t in (1, 2, 3):
            store.rise(study.hash, 1, t, {b"step": b"y"})
        assert steps_in(study, store) == 3
        store.rise(study.hash, 1, 1 << 62, {b"step": (5).to_bytes(8, "big")})  # shut: others held more than we
        assert steps_in(study, store) == 5
        told["spent"] |= {"contributions": 1, "steps": 5}
        assert "p00 published 5 steps." in "\n".join(outcome_lines(study, told, tmp_path))


# ── a promise that is hardly one ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("epsilon", "weak"), [("10", False), ("30", True)])
def test_an_absurd_epsilon_is_warned_of_everywhere_in_the_same_words(run, tmp_path, monkeypatch, epsilon, weak):
    monkeypatch.chdir(tmp_path)
    sentence = f"epsilon = {epsilon} is hardly a promise"
    status, out, err = run("study", "new", "Ill", *TRAIN, "--epsilon", epsilon)
    assert status == 0, err
    assert (f"WARNING: {sentence}" in " ".join(out.split())) is weak
    status, out, _ = run("study", "explain", "study.toml", "--short")
    assert (f"WARNING: {sentence}" in " ".join(out.split())) is weak
    status, out, err = run("plan", "complete:5", "-p", "masked", "--epsilon", epsilon)
    assert status == 0, err
    assert (f"WARNING: {sentence}" in " ".join(out.split())) is weak
    assert any(text.startswith(sentence) for text in plan_training(8, 3, float(epsilon), 1e-6, rows=4).warnings) is weak


def test_the_estimators_warn_of_it_too():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] > 0
    for made in (
        LogisticRegression(parties=6, epsilon=40.0, random_state=0, iterations=3, clip=1.0, step=1.0),
        GossipLogisticRegression(parties=6, epsilon=40.0, random_state=0, protocol="gossip", iterations=2, step=0.1),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.fit(X, y)
        said = [one for one in caught if one.category is WeakPromise]
        assert len(said) == 1
        assert str(said[0].message).startswith("epsilon = 40 is hardly a promise")
        assert said[0].filename == __file__


# ── work that takes a while ───────────────────────────────────────────────────────────────────────────────────────────


class Terminal(io.StringIO):
    """An error stream that says that it is a terminal."""

    def isatty(self):
        return True


def test_a_command_that_takes_long_says_so_on_a_terminal_only(monkeypatch):
    import threading

    class Seen(Terminal):
        written = threading.Event()

        def write(self, text):
            self.written.set()
            return super().write(text)

    monkeypatch.setattr(progress, "_WAIT", 0.0)
    seen = Seen()
    monkeypatch.setattr(sys, "stderr", seen)
    with progress.working("counting sheep"):
        assert seen.written.wait(300)
    assert "netdp: counting sheep: 0 s" in seen.getvalue()
    assert seen.getvalue().endswith("\r\033[K")
    monkeypatch.setattr(progress, "_WAIT", 60.0)
    for stream in (Terminal(), io.StringIO()):  # short work, and nobody who watches
        monkeypatch.setattr(sys, "stderr", stream)
        with contextlib.suppress(ValueError), progress.working("counting"):
            raise ValueError
        assert stream.getvalue() == ""


# ── words for what does not fit ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("schema", "more", "wanted"),
    [
        (
            'classes = ["no", "yes"]\n[features]\nage = [0, 1e308]',
            (),
            "the range of column 'age', 0 to 1e+308, is too wide",
        ),
        (
            'classes = ["no", "yes"]\n[features]\nage = [0, 1e-80]',
            (),
            "the range of column 'age', 0 to 1e-80, is too narrow",
        ),
        ('classes = ["no", "yes"]\n[features]\nage = [9, 2]', (), "must rise, such as 0, 100; got 9, 2"),
        (
            'classes = ["no", "yes"]\nrange = [0, 1]\n[features]\nage = [0, 9]',
            (),
            "classes = ['no', 'yes'] and range = [0, 1] for the label 'ill': keep classes",
        ),
        ("[features]\nage = [0, 9]", (), "does not say what the label 'ill' holds: classes ="),
        (
            'classes = ["no", "?"]\n[features]\nage = [0, 9]',
            (),
            "classes = ['no', '?'] still holds the \"?\" of the draft",
        ),
        (
            'classes = ["no", "yes"]\n[features]\nage = [0, 9]',
            ("--delta", "0"),
            "more than 0 and at most 0.001; got 0.0",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_the_way_out(run, tmp_path, monkeypatch, schema, more, wanted):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(f'label = "ill"\n{schema}\n', "utf-8")
    status, _, err = run("study", "new", "x", "--schema", "s.toml", "--n", "3", "--max-records", "100", *more)
    assert status == 2
    assert wanted in err
    assert "label_range" not in err
    assert not (tmp_path / "study.toml").exists()
