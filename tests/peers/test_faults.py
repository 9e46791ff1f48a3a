"""Every protocol under faults, over real processes, in short: the right answer or a clean end, and nothing said in two ways.

The whole matrix: `python benchmarks/faults.py`. What is asked of every cell, and what the faults are: `matrix.py`. What must
hold: docs/proofs/peers.md#real-peers, docs/threat-model.md.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from netdp.peers.kinds import RUNNING
from netdp.peers.messages import Item, ItemKind, Key

sys.path.append(str(Path(__file__).parent))  # children of the fork server get this path, too

import matrix

SINGLE = [
    ("ring-sum", "partition"),
    ("masked-sum", "reorder"),
    ("gossip", "drop"),
    ("walk-sum", "gone after word"),
    ("ring-histogram", "gone before word"),
    ("randomized-gossip", "gone"),
    ("shuffle", "pause"),
]
BRIEF = {"gather": 4.0, "patience": 1.0}


def run(row, fault, folder):
    cell = matrix.run_cell(row, fault, folder)
    assert cell.problem is None, cell.problem
    return cell


@pytest.mark.parametrize("row", matrix.protocols())
def test_everything_at_once(tmp_path, row):
    """Deaths at sends and in transactions, a stop, a full disk, a jumping clock, delays and doubles: everybody has the answer."""
    cell = run(row, matrix.MIXED, tmp_path)
    assert (cell.ended, cell.gone) == (0, 0)
    assert cell.restarts >= 5


@pytest.mark.parametrize(("row", "name"), [(row, name) for row, name in SINGLE if row in matrix.protocols()])
def test_one_fault(tmp_path, row, name):
    """A fault that the mixture cannot hold, on one protocol each: its first run, in less time than the whole matrix has."""
    (fault,) = [fault for fault in matrix.FAULTS if fault.name == name]
    options = fault.options | BRIEF if fault.options else {}  # where giving up is a clean end
    run(row, replace(fault, plans=lambda n: fault.plans(n)[:1], options=options), tmp_path)


@pytest.mark.parametrize(("kind", "when"), [
    (ItemKind.KEYS, "before"), (ItemKind.CONTRIBUTION, "before"), (ItemKind.CONTRIBUTION, "after"), (ItemKind.COMMIT, "before"),
    (ItemKind.REVEAL, "before"), (ItemKind.REVEAL, "after"),
])  # fmt: skip
def test_killed_for_good_in_an_attempt_that_survives(tmp_path, kind, when):
    """The others hold the right sum for one contribution; every step, of sixteen: `python benchmarks/faults.py --only sixteen`."""
    cell = matrix.killed_at(matrix.SIX, kind, when, tmp_path)
    assert cell.problem is None, cell.problem
    assert cell.answered == matrix.SIX.parties - matrix.SIX.absent


def test_every_protocol_has_a_row():
    assert {row.partition(",")[0] for row in matrix.protocols()} == set(RUNNING)
    assert len({fault.name for fault in matrix.FAULTS}) == len(matrix.FAULTS)


def test_the_judge_notices():
    """A second body under one key, a token that went two ways, a word without an entry."""
    key, other = Key(ItemKind.CONTRIBUTION, 1, 0), Key(ItemKind.TOKEN, 1, 0, 3)
    words = matrix.Words()
    for body in (b"a", b"a"):
        words.hear(0, 1, Item(key, body))
        words.hear(0, 2, Item(key, body))
    words.hear(0, 1, Item(other, b"t"))
    words.check()
    words.hear(0, 2, Item(other, b"t"))
    with pytest.raises(AssertionError, match="two ways"):
        words.check()
    words.ways.clear()
    words.hear(0, 2, Item(key, b"b"))
    with pytest.raises(AssertionError, match="said in two ways"):
        words.check()
    with pytest.raises(AssertionError, match="only p0 may say"):
        words.hear(1, 2, Item(other, b"t"))
