"""The loss on own rows is for the owner's screen: computed now and then, never so often that the training waits for it."""

import sys
from pathlib import Path

import pytest

from netdp.families.masked import peer as learners
from netdp.families.masked import peer_descent as descent

sys.path.append(str(Path(__file__).parent))

import crew
import trials

ROW = "masked-descent"


@pytest.mark.parametrize("cost", [0.0, 0.02])
def test_the_own_loss_is_seldom_computed(cost, monkeypatch):
    """The clock stands still for SHOWN seconds and SELDOM times the cost after each; the model is the same, shown or not."""
    asked, inner = [], learners.Learner.drawn

    def drawn(learner, t, state, show=False):
        found = inner(learner, t, state, show)
        if learner._desk.me == 0:
            asked.append((t, show, found.loss))
        return learners.Drawn(found.numbers, found.lost, found.loss, cost) if show else found

    monkeypatch.setattr(learners.Learner, "drawn", drawn)
    monkeypatch.setattr(descent, "SHOWN", 0.0 if not cost else 1.0)
    monkeypatch.setattr(descent, "SELDOM", 1e6)
    trial = trials.Trial(ROW, 1, tolerant=False, calm=True)
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial.run(until=trials.HORIZON, alive=range(trial.n))
        _, digest = crew.Crew.expected(trial, 1, tuple(range(trial.n)))
        assert {told["digest"] for told in trial.told.values()} == {digest}
    finally:
        trial.close()
    shown = [t for t, show, _ in asked if show]
    assert [loss is not None for _, _, loss in asked] == [show for _, show, _ in asked]
    assert shown == ([1] if cost else [t for t, _, _ in asked])  # as dear as that, once; for nothing, always
    assert len(asked) > 2
