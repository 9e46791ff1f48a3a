"""Gossip descent on whole peers, in virtual time: the simulator's models to the last bit, whatever happens on the way.

Random schedules with deaths, and real processes that are killed: `test_schedules.py`, `test_faults.py`. What must hold:
docs/proofs/peers.md#training-on-peers, docs/proofs/gossip.md#descent-on-a-grid.
"""

import heapq
import itertools
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp import account
from netdp.errors import InvalidValue, Refused
from netdp.families.gossip import simulate as simulated
from netdp.models.parties import ModelParties
from netdp.peers.descents import OwnSteps
from netdp.peers.ledger.store import Store
from netdp.peers.messages import ItemKind
from netdp.peers.outcome import transcript_of
from netdp.peers.recordings.audit import audit_recording
from netdp.peers.records import Misfit
from netdp.peers.study import Study, Training
from netdp.peers.study.explanation import explain
from netdp.protocols.training import train

sys.path.append(str(Path(__file__).parent))

import crew
import matrix
import recordings
import shuffled
import trials

ROW = "gossip-descent"
FEATURES = [{"name": name, "range": [-1, 1]} for name in ("a", "b", "c")]
TRAIN = Training(features=FEATURES, label="y", classes=["no", "yes"], unit="party", min_records=1)


@pytest.fixture
def row(monkeypatch):
    """Studies of other settings, by a name of their own."""

    def made(name, **options):
        monkeypatch.setitem(matrix.COMPANY, f"{ROW}, {name}", matrix.COMPANY[ROW] | {"protocol": ROW} | options)
        return f"{ROW}, {name}"

    return made


def trial_of(name=ROW, count=6):
    trial = trials.Trial(name, 1, tolerant=False, calm=True)
    rng = np.random.default_rng(5)
    width = len(trial.study.task.features)
    trial._rows = [
        np.column_stack([rng.uniform(-1, 1, (count, width)), rng.integers(0, 2, count)]) for _ in range(trial.n)
    ]
    return trial


def run(trial):
    for u in range(trial.n):
        trial.at(0.0, trial.start, u)
    trial.run(until=trials.HORIZON, alive=range(trial.n))
    return trial


def one_event(trial):
    trial.now, _, act, arguments = heapq.heappop(trial.events)
    act(*arguments)


def totals(trial):
    return [trial.told[u]["total"] for u in range(trial.n)]


# ── the same as simulated ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options", [{}, {"average": "last", "batch": 0}, {"gossip_rounds": 1, "batch": 0}], ids=["SGD", "GD", "one round"]
)
def test_peers_hold_the_simulators_models_to_the_last_bit(row, monkeypatch, options):
    """Noise and rows of the peers, put into the simulator: the same models, and the same transcript."""
    noises, batches = {}, {}
    noise, gradient = OwnSteps.noise, OwnSteps.gradient

    def listening(steps, numbers, variance, *place):
        noises[place, steps.digest] = noise(steps, numbers, variance, *place)
        return noises[place, steps.digest]

    def chosen(steps, state, t):
        made = []
        inner = ModelParties.gradient
        with monkeypatch.context() as patch:
            patch.setattr(
                ModelParties, "gradient", lambda one, *rest: (made.append((one.Xs[0], one.ys[0])), inner(one, *rest))[1]
            )
            found = gradient(steps, state, t)
        batches[t, steps.digest] = made[0]
        return found

    monkeypatch.setattr(OwnSteps, "noise", listening)
    monkeypatch.setattr(OwnSteps, "gradient", chosen)
    trial = trial_of(row(f"plain {sorted(options)}", **options))
    try:
        run(trial)
        wanted = crew.gossiped(trial, 1)
    finally:
        trial.close()
    assert totals(trial) == wanted.tolist()
    p, parts = trial.study.protocol(), crew.parts_of(trial, 1)
    assert p.batch == (options.get("batch", 1) or None)
    drawn = iter([
        np.concatenate([noises[(t, k), part.digest] for part in parts])
        for t in range(p.iterations)
        for k in range(p.gossip_rounds)
        if k == 0 or p.fresh_variance
    ])  # fmt: skip
    monkeypatch.setattr(simulated, "discrete", lambda seed: lambda variance, size: next(drawn))

    def rows_of(t):
        return ModelParties(trial.study.task.model(), *zip(*[batches[t, part.digest] for part in parts], strict=True))

    when = itertools.count()
    monkeypatch.setattr(ModelParties, "draw_batch", lambda *_: rows_of(next(when)))
    kept = []
    found = train(p, rows_of(0), seed=0, after=lambda t, models: kept.append(models))
    last = trial.study.settings.average == "last"
    half = kept[p.iterations // 2 :]
    assert (found.models if last else sum(half) / len(half)).tolist() == totals(trial)
    sent = {u: told["sent"] for u, told in trial.told.items()}
    assert transcript_of(trial.study, sent, 1) == found.transcript


def test_a_batch_is_drawn_anew_and_depends_on_no_data():
    """Which rows make a gradient follows from secret, place and the number of rows, and differs from step to step."""
    trial = trial_of(count=50)
    try:
        part = crew.parts_of(trial, 1)[0]
        models = [part.gradient(part.start(), t).tolist() for t in range(8)]
        assert len({tuple(one) for one in models}) > 1
        assert models == [crew.parts_of(trial, 1)[0].gradient(part.start(), t).tolist() for t in range(8)]
    finally:
        trial.close()


# ── whatever happens ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_write_it_ends_with_the_same_models(when):
    """One party dies before, or after, each of its transactions in turn, another one at the next: the same bits in the end."""
    calm = trial_of()
    try:
        wanted = totals(run(calm))
        sends = calm.study.protocol().sends
    finally:
        calm.close()
    for k in range(1, sends + 3):  # vote, contribution, sends
        trial = trial_of()
        trial._writes = [(2, when, k, 0.2), (3, when, min(k + 1, sends + 2), 0.3)]
        try:
            assert totals(run(trial)) == wanted, (when, k, trial.notes)
            trial.words.check()
        finally:
            trial.close()


def test_a_store_that_forgets_costs_no_second_noise(monkeypatch):
    """Without the register a restarted party computes all anew: it may come to nothing, and never says two things."""
    monkeypatch.setattr(Store, "risen", lambda *_: [])
    problems = [trials.attempt(ROW, seed)[1] for seed in range(6)]
    assert any(problems)
    assert not any("two ways" in (problem or "") for problem in problems)


def test_other_rows_after_a_restart_are_refused():
    trial = trial_of()
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        while not (trial.peers[2] and trial.peers[2].store.risen(trial.study.hash, 1, b"gossip sent")):
            one_event(trial)
        trial.kill(2)
        trial._rows[2] = trial._rows[2] * [0.5, 1.0]
        trial.at(trial.now + 0.1, trial.start, 2)
        with pytest.raises(Refused, match="have changed since the training began"):
            trial.run(until=trials.HORIZON, alive=range(trial.n))
    finally:
        trial.close()


def test_memory_is_level():
    """Of a neighbour's states, and of what is kept for it, a few are held, however many were sent."""
    trial = trial_of()
    most = 0
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        while trial.events and len(trial.outcomes) < trial.n:
            one_event(trial)
            for peer in filter(None, trial.peers):
                exchange = peer.party._exchange
                states = [key for key in exchange.held if key.kind == ItemKind.STATE]
                kept = [key for items in exchange.addressed.values() for key in items]
                most = max(most, len(states), len(kept))
    finally:
        trial.close()
    assert 4 <= most <= 2 * 5 < 2 * trial.study.protocol().sends


# ── a study ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned(task=TRAIN, graph="ring:6", **options):
    return Study.plan(
        "g", task, [f"p{u}" for u in range(6)], graph=graph, epsilon=1.0, delta=1e-6, kind="gossip", **options
    )


def test_the_least_noise_that_keeps_the_promise():
    study = planned(iterations=30)
    assert study.settings.kind == ROW
    assert 0.999 < study.check_promise() <= 1.0
    p = study.protocol()
    for members in ([0], [1, 4]):
        assert np.nanmax(account(p, members).epsilon(1e-6)) <= study.check_promise() * (1 + 1e-12)
    further = account(p, [0]).epsilon(1e-6)
    assert further[3] < further[2] < further[1]
    assert p.expansion == 1.0


@pytest.mark.parametrize("kind", ["gossip", "walk"])
def test_planned_steps_do_not_stretch(kind):
    """However much could be learned: at a huge ε the longest step is taken, and the bounds that ask for it still hold."""
    linear = TRAIN.model_copy(update={"named": "linear", "classes": None, "label_range": (0.0, 1.0)})
    length = {"iterations": 2} if kind == "gossip" else {"steps": 6}
    for task in (TRAIN, linear):
        study = Study.plan(
            "s", task, [f"p{u}" for u in range(6)], graph="complete:6", epsilon=900.0, delta=1e-6, kind=kind, **length
        )
        assert study.protocol().expansion == 1.0


def test_records_and_held_out_rows_are_refused_by_name():
    record = TRAIN.model_copy(update={"unit": "record", "max_records": 9})
    with pytest.raises(Misfit, match="no proof covers single records"):
        planned(record, iterations=5)
    with pytest.raises(Misfit, match="counts no held-out rows"):
        planned(TRAIN.model_copy(update={"held_out": 0.1}), iterations=5)
    with pytest.raises((Misfit, InvalidValue), match="iterations"):
        planned(iterations=0)


@pytest.mark.parametrize("kind", ["gossip", "walk"])
def test_a_torch_model_has_what_needs_no_smoothness(kind, tmp_path, monkeypatch):
    """Nothing is known of its steps: local DP of gossip, the secrecy of a walk, and gradients that are held in whole numbers."""
    pytest.importorskip("torch")
    (tmp_path / "wards_net.py").write_text(
        "import torch\ndef make(features, classes):\n    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Linear(features, 3), torch.nn.Tanh(), torch.nn.Linear(3, classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    task = Training.of_code(
        "wards_net:make", features=FEATURES, label="y", classes=["no", "yes"], unit="party", min_records=1
    )
    length = {"iterations": 5} if kind == "gossip" else {"steps": 12}
    study = Study.plan(
        "t", task, [f"p{u}" for u in range(6)], graph="complete:6", epsilon=1.0, delta=1e-6, kind=kind, **length
    )
    p = study.protocol()
    assert p.expansion > 1e6
    assert 0.98 < study.check_promise() <= 1.0
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(-1, 1, (9, 3)), rng.integers(0, 2, 9)])
    steps = OwnSteps(p, task, rows, bytes(32), b"s" * 32, 1, range(6))
    found = steps.gradient(steps.start(), 0)
    assert 0 < np.linalg.norm(found.astype(float)) <= p.reach
    assert (steps.gradient(steps.start(), 0) == found).all()


def test_it_says_who_learns_how_much_in_plain_words():
    words = " ".join(explain(planned(iterations=20)).split())
    assert "Neighbours see every noisy step of a party" in words
    assert "2 links away" in words
    several = " ".join(explain(planned(iterations=20, gossip_rounds=2, refresh=0.0)).split())
    assert "links away" not in several
    assert "In real arithmetic it would be" in several
    assert "NO promise" in several


# ── an audit of its recording ─────────────────────────────────────────────────────────────────────────────────────────


SETTINGS = {
    "kind": ROW, "iterations": 40, "gossip_rounds": 2, "batch": 2, "clip": 0.1, "step": 2.0, "sigma": 0.5, "grid": 2.0**-44,
    "refresh": 1.0,
}  # fmt: skip


def recorded(folder, **changes):
    study = recordings.study_of(folder, TRAIN, 4, SETTINGS | changes, graph="ring:4")
    rng = np.random.default_rng(3)
    tables = [
        [
            {
                **dict(zip("abc", rng.uniform(-1, 1, 3).tolist(), strict=True)),
                "y": "yes" if rng.random() < 0.5 else "no",
            }
            for _ in range(4)
        ]
        for _ in range(4)
    ]
    recordings.deal(folder, study, tables)
    recordings.run(folder, study)
    return study


def wrong(audit):
    return {check.name for check in audit.checks if not check.ok} | {
        finding.name for finding in audit.findings if finding.verdict.is_bad
    }


def test_a_sound_recording_passes():
    with shuffled.folder() as folder:
        recorded(folder)
        found = audit_recording([folder], confidence=1 - 1e-6)
        assert wrong(found) == set()
        (row,) = found.findings
        assert 0 < row.measured.epsilon <= row.claimed
        assert any(check.name == "noise as large as stated" for check in found.checks)


@pytest.mark.parametrize("planted", ["less noise", "a gradient that is not clipped", "a round left out"])
def test_a_planted_bug_is_caught(monkeypatch, planted):
    noise, gradient = OwnSteps.noise, OwnSteps.gradient
    with shuffled.folder() as folder:
        with monkeypatch.context() as patch:
            if planted == "less noise":
                patch.setattr(OwnSteps, "noise", lambda *given: noise(*given) // 2)
            elif planted == "a gradient that is not clipped":
                patch.setattr(OwnSteps, "gradient", lambda *given: 300 * gradient(*given))
            recorded(folder)
        if planted == "a round left out":

            def change(to, messages):
                kept = [
                    one for one in messages
                    if not (getattr(one, "key", None) and one.key.kind == ItemKind.STATE and one.key.index == 5)
                ]  # fmt: skip
                return kept if len(kept) < len(messages) else None

            recordings.rewrite(folder / "p1.frames", change)
        found = wrong(audit_recording([folder], confidence=1 - 1e-6))
    caught = {"less noise": "noise as large as stated", "a round left out": "rounds as stated"}
    assert caught.get(planted, "noise as large as stated") in found
    shutil.rmtree(folder, ignore_errors=True)
