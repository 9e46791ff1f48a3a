"""Tokens that carry a model, on whole peers, in virtual time: the simulator's model to the last bit, whatever happens on the way.

Random schedules with deaths, and real processes that are killed: `test_schedules.py`, `test_faults.py`. What must hold:
docs/proofs/token.md#walk-descent-on-a-grid.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from netdp import account
from netdp.errors import Refused
from netdp.families.token import training as simulated
from netdp.models.parties import ModelParties
from netdp.peers.descents import OwnSteps
from netdp.peers.recordings.audit import audit_recording
from netdp.peers.records import Misfit
from netdp.peers.study import Study, Training
from netdp.peers.study.explanation import explain
from netdp.protocols.simulation import trainers

sys.path.append(str(Path(__file__).parent))

import crew
import matrix
import recordings
import shuffled
import trials
from test_gossip_descent import FEATURES, one_event, run, trial_of, wrong

ROW = "walk-descent"
TRAIN = Training(features=FEATURES, label="y", classes=["no", "yes"], unit="party", min_records=1)
ON_A_RING = {"graph": "ring:5", "steps": 15, "tokens": 1, "batch": 0, "closing": 5.0}


@pytest.fixture
def row(monkeypatch):
    def made(name, **options):
        monkeypatch.setitem(matrix.COMPANY, f"{ROW}, {name}", matrix.COMPANY[ROW] | {"protocol": ROW} | options)
        return f"{ROW}, {name}"

    return made


# ── the same as simulated ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{}, ON_A_RING], ids=["complete, batches", "ring"])
def test_peers_hold_the_simulators_model_to_the_last_bit(row, monkeypatch, options):
    """Paths, rows and noise of the peers, put into the simulator: the same models."""
    trial = trial_of(row(f"plain {sorted(options)}", **options))
    drawn, batches, inner, gradient = {}, {}, OwnSteps.noise, ModelParties.gradient

    def listening(steps, numbers, variance, *place):
        found = drawn[place] = inner(steps, numbers, variance, *place)
        return found

    def looking(steps, state, *place):
        with monkeypatch.context() as patch:
            patch.setattr(
                ModelParties, "gradient", lambda one, *rest: (batches.update({place: one}), gradient(one, *rest))[1]
            )
            return OwnSteps_gradient(steps, state, *place)

    OwnSteps_gradient = OwnSteps.gradient
    monkeypatch.setattr(OwnSteps, "noise", listening)
    monkeypatch.setattr(OwnSteps, "gradient", looking)
    try:
        run(trial)
        wanted = crew.walked(trial, 1)
    finally:
        trial.close()
    assert {tuple(told["total"]) for told in trial.told.values()} == {tuple(wanted.tolist())}
    assert len({told["digest"] for told in trial.told.values()}) == 1
    p, paths = trial.study.protocol(), crew.route_of(trial, 1)
    visits = sorted((k, t, u) for u, told in trial.told.items() for k, t in told["realised"]["visits"])
    assert visits == [(k, t, u) for k, path in enumerate(paths) for t, u in enumerate(path)]

    order = [(k, t) for k in range(p.tokens) for t in range(p.steps + bool(p.closing_variance))]
    noises, rows = iter([drawn[place] for place in order]), iter([batches[k, t] for k, t, _ in visits])
    monkeypatch.setattr(simulated, "discrete", lambda _: lambda variance, size: next(noises))
    monkeypatch.setattr(simulated, "draws", lambda *given: (np.array(paths[given[2]]), np.random.default_rng(0)))

    def next_gradient(parties, theta, u, clip):
        return gradient(next(rows), theta, 0, clip)

    monkeypatch.setattr(ModelParties, "gradient", next_gradient)
    parties = ModelParties(
        trial.study.task.model(), *zip(*[trial.study.task.parts(one) for one in trial._rows], strict=True)
    )
    found = trainers(p, parties, 0)
    assert found.model.tolist() == wanted.tolist()
    assert next(noises, None) is None
    assert next(rows, None) is None


# ── whatever happens ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_write_it_ends_with_the_same_model(when):
    """One party dies before, or after, each of its transactions in turn, another one at the next: the same bits in the end."""
    wanted = None
    for k in range(11):
        trial = trial_of(ROW)
        trial._writes = [(2, when, k, 0.2), (0, when, k + 1, 0.3)] if k else []
        try:
            run(trial)
            digests = {told["digest"] for told in trial.told.values()}
            wanted = digests if wanted is None else wanted
            assert digests == wanted, (when, k, trial.notes)
            assert len(trial.told) == trial.n
            trial.words.check()
        finally:
            trial.close()


def test_other_rows_after_a_restart_are_refused():
    trial = trial_of(ROW)
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        while not (trial.peers[2] and trial.peers[2].store.contribution(trial.study.hash, 1)):
            one_event(trial)
        trial.kill(2)
        trial._rows[2] = trial._rows[2] * [0.5, 1.0]
        trial.at(trial.now + 0.1, trial.start, 2)
        with pytest.raises(Refused, match="have changed since the training began"):
            trial.run(until=trials.HORIZON, alive=range(trial.n))
    finally:
        trial.close()


# ── a study ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned(task=TRAIN, graph="complete:6", **options):
    return Study.plan(
        "w", task, [f"p{u}" for u in range(6)], graph=graph, epsilon=1.0, delta=1e-6, kind="walk", **options
    )


@pytest.mark.parametrize("graph", ["complete:6", "ring:6"])
def test_the_least_noise_that_keeps_the_promise(graph):
    study = planned(graph=graph, steps=24)
    assert study.settings.kind == ROW
    assert 0.98 < study.check_promise() <= 1.0
    p = study.protocol()
    for v in (0, 3):
        assert np.nanmax(account(p, [v]).epsilon(1e-6)) <= study.check_promise() * (1 + 1e-9)
    assert p.closing == (0 if graph.startswith("complete") else 6)


def test_what_no_proof_covers_is_refused_by_name():
    record = TRAIN.model_copy(update={"unit": "record", "max_records": 9})
    for task, words in [
        (record, "no proof covers single records"),
        (TRAIN.model_copy(update={"held_out": 0.1}), "held-out"),
    ]:
        with pytest.raises(Misfit, match=words):
            planned(task, steps=24)
    with pytest.raises(Misfit, match="run once, by all"):
        planned(steps=24, attempts=2)


def test_it_is_told_in_plain_words():
    words = " ".join(explain(planned(steps=24)).split())
    assert "each carries a model" in words
    assert "any single party" in words


# ── an audit of its recording ─────────────────────────────────────────────────────────────────────────────────────────


SETTINGS = {
    "kind": ROW, "steps": 60, "tokens": 2, "batch": 0, "clip": 0.1, "step": 2.0, "sigma": 0.5, "grid": 2.0**-44,
}  # fmt: skip


@pytest.mark.parametrize("planted", [None, "less noise", "a gradient that is not clipped"])
def test_recordings(monkeypatch, planted):
    """A sound one passes; noise that is too small, or a gradient that is too long, shows."""
    noise, gradient = OwnSteps.noise, OwnSteps.gradient
    with shuffled.folder() as folder:
        with monkeypatch.context() as patch:
            if planted == "less noise":
                patch.setattr(OwnSteps, "noise", lambda *given: noise(*given) // 2)
            elif planted:
                patch.setattr(OwnSteps, "gradient", lambda *given: 300 * gradient(*given))
            study = recordings.study_of(folder, TRAIN, 4, SETTINGS, graph="complete:4")
            rng = np.random.default_rng(3)
            rows = [
                [{"a": a, "b": b, "c": c, "y": "yes" if a > 0 else "no"} for a, b, c in rng.uniform(-1, 1, (4, 3))]
                for _ in range(4)
            ]
            recordings.deal(folder, study, rows)
            recordings.run(folder, study)
        found = wrong(audit_recording([folder], confidence=1 - 1e-6))
    assert found == (set() if planted is None else {"noise as large as stated"}) or (
        planted and "noise as large as stated" in found
    )
