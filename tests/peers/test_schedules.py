"""Random schedules in virtual time: what is asked of each stands in `trials.py`; thousands: `python benchmarks/schedules.py`.

What must hold: docs/proofs/peers.md#real-peers.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.families.token import peer_ring as rings
from netdp.peers.ledger.store import Store

sys.path.append(str(Path(__file__).parent))

import matrix
import trials

from netdp.families.token.ring import ring_add

SEEDS = 24


@pytest.mark.parametrize("row", matrix.protocols())
def test_any_schedule(row):
    """Deaths, delays, cuts, stops and absences: the right answer or a clean end; the answer for all if it was mild."""
    answers = ends = 0
    for seed in range(SEEDS):
        trial, problem = trials.attempt(row, seed)
        assert problem is None, f"python benchmarks/schedules.py --kind '{row}' --seed {seed}\n{problem}"
        answers += sum(told["ok"] for told in trial.told.values())
        ends += sum(not told["ok"] for told in trial.told.values())
    assert answers > 2 * SEEDS
    assert ends > 0, "the schedules are too mild to show anything"


@pytest.mark.parametrize("row", ["masked-sum", "ring-sum", "gossip"])
def test_a_seed_is_a_run(row):
    """The same seed gives the same run, to the last note."""
    runs = [trials.attempt(row, 5)[0] for _ in range(2)]
    assert runs[0].notes == runs[1].notes
    assert [told.get("total") for told in runs[0].told.values()] == [
        told.get("total") for told in runs[1].told.values()
    ]
    assert runs[0].now == runs[1].now


def problems(row, seeds=8):
    return [problem for seed in range(seeds) if (problem := trials.attempt(row, seed)[1]) is not None]


def test_a_party_that_counts_twice_is_noticed(monkeypatch):
    add = ring_add
    monkeypatch.setattr(rings, "ring_add", lambda token, own: add(add(token, own), own))
    assert any("AssertionError" in problem for problem in problems("ring-sum"))


def test_a_party_that_forgets_is_noticed(monkeypatch):
    """A store that does not remember what was contributed: drawn anew, and refused by the database."""
    monkeypatch.setattr(Store, "contribution", lambda store, study, attempt: None)
    assert problems("masked-sum")


def test_other_noise_after_a_restart_is_noticed(monkeypatch):
    """Numbers that are read differently in every life: said in two ways."""
    written, drawn = Store.contribution, np.random.default_rng(1)

    def contribution(store, study, attempt):
        held = written(store, study, attempt)
        if held is None or not held.secret:
            return held
        noise = np.frombuffer(held.secret, "<i8") + drawn.integers(1, 5)
        return held._replace(secret=noise.astype("<i8").tobytes())

    monkeypatch.setattr(Store, "contribution", contribution)
    assert any("two ways" in problem or "not" in problem for problem in problems("gossip"))
