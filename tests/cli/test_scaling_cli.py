"""Scaling before training, as it is typed: the first study, a schema made of its result, the second study within what is left."""

import json
import re
import tomllib

import pytest

from netdp.peers.identity import Identity
from netdp.peers.ledger.entries import entry_of
from netdp.peers.ledger.store import Store
from netdp.peers.peer import prepare
from netdp.peers.setup import settle
from netdp.peers.study import ScalingTask, Study, Training
from netdp.peers.study.files import read_answer, read_schema, scaled_by
from netdp.peers.study.planning import plan_training_after, scaling_epsilon, total_epsilon

SCHEMA = 'label = "ill"\nclasses = ["no", "yes"]\n\n[features]\nage = [0, 120]\nsex = ["f", "m"]\n'
WHO = ("--n", "3", "--max-records", "100")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def result(study, path):
    """What `netdp up --json` prints of a scaling study, as far as it is read."""
    path.write_text(json.dumps({"ok": True, "result": study.answer([-15.0, -80.0, 100.0])}), "utf-8")


def test_from_a_schema_to_a_scaled_training_with_one_total(run, folder):
    status, out, err = run(
        "study", "new", "Where", "--task", "scaling", "--schema", "schema.toml", *WHO, "--total", "2", "-o", "s.toml"
    )
    assert status == 0, err
    assert "netdp study schema SCHEMA --scaled-by RESULT.json -o scaled.toml" in out
    first = Study.read(folder / "s.toml")
    assert isinstance(first.task, ScalingTask)
    assert first.task.needed == ("age",)
    assert (first.task.unit, first.privacy.epsilon) == ("record", scaling_epsilon(2.0, 1e-6))
    result(first, folder / "r.json")
    status, out, err = run("study", "schema", "schema.toml", "--scaled-by", "r.json", "-o", "scaled.toml")
    assert status == 0, err
    assert "with centre and scale of 1 column," in out
    assert "Noise moves a centre by " in out
    assert tomllib.loads((folder / "scaled.toml").read_text())["scaled"]["study"] == first.hash.hex()
    status, out, err = run(
        "study", "new", "Ill", "--schema", "scaled.toml", *WHO, "--total", "2", "--iterations", "5", "-o", "t.toml"
    )
    assert status == 0, err
    assert re.search(r"both together: (2|1\.99\d*),", " ".join(out.split()))
    assert "--task scaling" not in out  # it is done
    second = Study.read(folder / "t.toml")
    assert isinstance(second.task, Training)
    assert 1.99 < total_epsilon(second) <= 2.0
    assert second.task.features[0].centre == first.answer([-15.0, -80.0, 100.0])["features"][0]["centre"]


def test_who_holds_no_entry_of_the_study_that_is_named_is_told(run, folder):
    """Before it signs, and when it runs; not if its ledger holds that study."""
    task = ScalingTask(features=[{"name": "age", "range": [0, 120]}], max_records=100)
    first = Study.plan("w", task, ["a", "b", "c"], graph="complete:3", epsilon=0.5, delta=1e-6)
    result(first, folder / "r.json")
    (folder / "scaled.toml").write_text(scaled_by("schema.toml", read_answer("r.json")), "utf-8")
    asked = Training(**read_schema("scaled.toml"), max_records=100, held_out=0.1)
    draft = plan_training_after("t", asked, ["a", "b", "c"], epsilon=2.0, delta=1e-6, graph="complete:3", iterations=5)
    _, path = settle(draft, folder / "homes")
    (folder / "rows.csv").write_text("age,sex,ill\n50,f,no\n60,m,yes\n", "utf-8")
    said = f"this party took no part in the study {first.hash.hex()[:16]}…"
    for name in ("a", "b"):
        home = folder / "homes" / name
        one, held = Identity.load(home), name == "b"
        if held:
            entry = entry_of(first, 1, range(3), 1)
            with Store.open(home / "peer.db", sign=one.sign) as store:
                store.put_vote(first.hash, 1, b"", b"")
                store.spend(first.hash, 1, (2, 1, 0, 0), b"body", b"", entry, b"")
        status, out, err = run("study", "sign", str(path), "--home", str(home))
        assert status == 0, err
        assert (said in out) != held
        assert json.loads(run("study", "sign", str(path), "--home", str(home), "--json")[1])["warnings"] == (
            [] if held else [line for line in out.splitlines() if said in line]
        )
        peer = prepare(home, path, folder / "rows.csv")
        assert any(said in note for note in peer.party.notes) != held
        peer.store.close()


def test_a_training_by_ranges_alone_is_told_that_scaling_may_help(run, folder):
    status, out, err = run("study", "new", "Ill", "--schema", "schema.toml", *WHO, "--iterations", "5")
    assert status == 0, err
    assert "learned much better after a study that finds their centre" in out
    assert "--task scaling --schema SCHEMA --total EPSILON" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--task", "scaling", *WHO), "which columns?"),
        (("--task", "scaling", "--feature", "sex=f|m", *WHO), "nothing to scale"),
        (
            ("--task", "scaling", "--schema", "schema.toml", "--model", "linear", *WHO),
            "--model linear belongs to --task train",
        ),
        (
            ("--task", "scaling", "--schema", "schema.toml", "--share", "0.2", *WHO),
            "--share 0.2 is the part of a --total",
        ),
        (
            ("--task", "scaling", "--schema", "schema.toml", "--total", "1", "--share", "2", *WHO),
            "between 0 and 1, got 2",
        ),
        (("--task", "scaling", "--schema", "schema.toml", "--total", "1", "--epsilon", "2", *WHO), "give one"),
        (("--task", "scaling", "--schema", "schema.toml", "--total", "2", "--epsilon", "1.0", *WHO), "give one"),
        (("--schema", "schema.toml", "--total", "1", *WHO), "names none"),
        (
            ("--task", "mean", "--column", "x", "--bounds", "0,1", "--total", "1", "--n", "3"),
            "--total 1 is for --task scaling",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(run, folder, words, problem):
    status, out, err = run("study", "new", "X", *words)
    assert status != 0
    assert problem in " ".join((out + err).split())
    assert not (folder / "study.toml").exists()


def test_a_schema_is_not_scaled_twice_nor_overwritten(run, folder):
    first = Study.plan("w", ScalingTask(features=[{"name": "age", "range": [0, 120]}], max_records=100), ["a", "b", "c"],
                       graph="complete:3", epsilon=1.0, delta=1e-6)  # fmt: skip
    result(first, folder / "r.json")
    assert run("study", "schema", "schema.toml", "--scaled-by", "r.json")[0] != 0  # schema.toml is there already
    assert (folder / "schema.toml").read_text() == SCHEMA
    assert run("study", "schema", "schema.toml", "--scaled-by", "r.json", "-o", "scaled.toml")[0] == 0
    status, out, err = run("study", "schema", "scaled.toml", "--scaled-by", "r.json", "-o", "again.toml")
    assert status != 0
    assert "already" in out + err
    status, out, err = run("study", "new", "X", "--task", "scaling", "--schema", "scaled.toml", *WHO)
    assert status != 0
    assert "already" in out + err
