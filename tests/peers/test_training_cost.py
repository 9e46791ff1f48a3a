"""What a training was said to cost, held against what peers send: `netdp.families.masked.error`, in memory and virtual time.

Links are equally fast here. Bytes of hellos, votes and the answer do not depend on the iterations: the difference of a longer and
a shorter training is that of its steps.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

from netdp.families.masked import error as descent_cost
from netdp.families.masked.error import HEADER, copies, expected_cost
from netdp.graphs import parse
from netdp.peers import exchange
from netdp.peers.messages import Item, ItemKind, decode
from netdp.peers.study.progress import cost_of
from netdp.peers.study.training import Training

sys.path.append(str(Path(__file__).parent))

import matrix
import trials

SHORT, LONG = 2, 6
WIDE = Training(
    features=[{"name": "x", "values": [str(i) for i in range(121)]}], label="y", classes=["no", "yes"], max_records=3, min_records=1
)  # fmt: skip


class Even:
    """Every message takes as long as any other."""

    def exponential(self, scale):
        return scale

    def uniform(self, low, high):
        return high


class Counting(trials.Trial):
    """What every party sends, and how many steps that is."""

    def deliver(self, u, to, link, frame):
        self.bytes[u] += len(frame)
        self.steps[u] += sum(isinstance(one, Item) and one.key.kind == ItemKind.STEP for one in decode(frame))
        super().deliver(u, to, link, frame)


def ran(row):
    trial = Counting(row, 1, tolerant=False, calm=True)
    trial.bytes, trial.steps, trial.rng = Counter(), Counter(), Even()
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial.run(until=trials.HORIZON, alive=range(trial.n))
        assert len(trial.told) == trial.n
    finally:
        trial.close()
    return trial


@pytest.fixture
def sent(monkeypatch):
    """Bytes that every party sends in an iteration, steps that it sends in all, and the study."""

    def measured(graph):
        monkeypatch.setattr(matrix, "PARTIES", parse(graph).n)
        found = []
        for iterations in (SHORT, LONG):
            name = f"masked-descent, cost on {graph}, {iterations}"
            row = {"graph": graph, "task": WIDE, "iterations": iterations, "protocol": "masked-descent"}
            monkeypatch.setitem(matrix.COMPANY, name, row)
            found.append(ran(name))
        few, many = found
        times = LONG - SHORT
        each = range(many.n)
        return (
            [(many.bytes[u] - few.bytes[u]) / times for u in each],
            [many.steps[u] for u in each],
            many.study,
        )

    return measured


@pytest.mark.parametrize(
    ("graph", "least"), [("complete:5", 0.8), ("ring:6", 0.7), ("star:6", 0.8), ("hypercube:3", 0.7)]
)
def test_peers_send_what_was_predicted(sent, graph, least):
    """Steps: never more than stated, hardly fewer. Bytes, headers included: 0.7 to 1.05 of what was stated."""
    octets, steps, study = sent(graph)
    most = copies(study.graph)
    assert all(steps[u] <= LONG * most[u] for u in range(study.n)), (steps, most)
    assert sum(steps) >= LONG * max(study.n * (study.n - 1), least * sum(most))
    cost = expected_cost(study.protocol())
    assert 0.7 < sum(octets) / study.n / (cost.mean_bytes / LONG) < 1.05
    assert max(octets) < 1.05 * cost.party_bytes / LONG
    told = cost_of(study)
    assert (told["bytes"], told["most_bytes"]) == (cost.mean_bytes, cost.party_bytes)


@pytest.mark.parametrize("graph", ["complete:5", "ring:6"])
def test_long_steps_cross_once_to_each(sent, monkeypatch, graph):
    """Steps that are announced instead of pushed: every party gets each once, n − 1 copies a party in the mean."""
    monkeypatch.setattr(exchange, "PUSHED", 100)
    monkeypatch.setattr(descent_cost, "PUSHED", 100)
    octets, steps, study = sent(graph)
    assert sum(steps) == LONG * study.n * (study.n - 1)
    cost = expected_cost(study.protocol())
    assert cost.mean_bytes == LONG * (study.n - 1) * (cost.step_bytes + HEADER)
    assert 0.7 < sum(octets) / study.n / (cost.mean_bytes / LONG) < 1.05


def test_both_sides_agree_on_what_is_long():
    assert descent_cost.PUSHED == exchange.PUSHED
