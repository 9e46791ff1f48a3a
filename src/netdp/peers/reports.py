"""The reports of a shuffled study: what one of them says, as bytes of one length, and what the curator makes of many.

**A report** is what a randomizer in whole numbers makes of one party's value, drawn exactly (docs/guarantees.md#finite-precision):
one of k cells by randomized response for histograms and tables, a whole number with discrete Laplace noise for sums and
means, cut off at 40 times its scale (a post-processing: so one lie cannot make the sum any number). Eight bytes for each
number, then sealed to the curator (`netdp.peers.sealed`): all reports of a study are equally long.

**A dummy** is what the same randomizer makes of the null value: the first cell, or the middle of the bounds.

**The curator** counts a sealed report once, however often it comes; drops what does not open, is no report, or is more than
there are parties; and says how many it dropped and why. Which reports are more than there can be is decided by a secret
order, so that nobody can choose the ones that are dropped.

**The estimate** is that of the randomizer over the reports that arrived, times the number of parties: for "all" unbiased for
those whose reports arrived; for "single" the expected share of dummies is taken out (`netdp.simulate.collect`), which is
unbiased once the walk has mixed, and if no report is lost.
"""

from __future__ import annotations

import hmac
import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.mechanisms import GridLaplace, RandomizedResponse
from netdp.numerics.arrays import FloatArray, IntArray

from .sealed import SEAL

if TYPE_CHECKING:
    from netdp.graphs import Graph

    from .streams import Words
    from .study.scaling import Scaling
    from .study.task import Task
    from .study.training import Training

DROPPED = ("copies", "sealed", "unreadable", "surplus")
"""Why the curator drops something: it came before, it does not open, it is no report, there are more than parties."""

_FAR = 40  # in units of the noise's scale
_TOTAL = struct.Struct("<II4I")
_NUMBER = struct.Struct("<I")
_CUT = struct.Struct("<III")


class Reports:
    """How the values of a study become reports, and reports an estimate."""

    def __init__(self, task: Task | Training | Scaling, epsilon0: float, grid: float) -> None:
        self.dimension = task.dimension
        self.is_numeric = task.is_numeric
        self.mechanism: Any = (
            GridLaplace(2.0, epsilon0, steps=round(2 / grid))
            if task.is_numeric
            else RandomizedResponse(task.dimension, epsilon0)
        )
        self.furthest = 0
        """Of a number, in steps: no report is further from 0. Noise that reaches beyond, with a chance of e⁻⁴⁰, is cut off."""
        if task.is_numeric:
            steps = round(2 / grid)
            self.furthest = steps // 2 + math.ceil(_FAR * steps / epsilon0)
        self.width = 8 * self.mechanism.width
        self.size = self.width + SEAL
        """Bytes of a sealed report."""

    def of(self, row: FloatArray, words: Words) -> bytes:
        """The report of a party, from what the task made of its data."""
        value: Any = [float(row[0])] if self.is_numeric else [int(np.argmax(row))]
        return self._bytes(self.mechanism.report(value, words))

    def dummy(self, words: Words) -> bytes:
        """The report of the null value."""
        return self._bytes(self.mechanism.report([0.0] if self.is_numeric else [0], words))

    def _bytes(self, report: IntArray) -> bytes:
        numbers = np.asarray(report)
        if self.is_numeric:
            numbers = np.clip(numbers, -self.furthest, self.furthest)
        return numbers.astype("<i8").tobytes()

    def read(self, plaintext: bytes) -> IntArray | None:
        """What a report says; None if it is none."""
        if len(plaintext) != self.width:
            return None
        numbers = np.frombuffer(plaintext, dtype="<i8").astype(np.int64)
        if self.is_numeric and not (-self.furthest <= numbers).all() & (numbers <= self.furthest).all():
            return None  # one lie moves the sum by no more than a rare draw would
        return numbers if bool(np.all(self.mechanism.readable(numbers))) else None

    def estimate(self, reports: Sequence[IntArray], parties: int, empty: float = 0.0) -> FloatArray:
        """The total over so many parties, from these reports, of which so many are expected to be dummies."""
        stacked = np.stack(list(reports))
        found = self.mechanism.estimate(stacked if self.is_numeric else stacked[:, 0])
        null: Any = np.zeros(1) if self.is_numeric else np.eye(self.dimension)[0]
        return np.asarray(parties * (len(stacked) * found - empty * null) / (len(stacked) - empty), dtype=np.float64)


def expected_empty(graph: Graph, hands: Iterable[int]) -> float:
    """How many of these users are expected to hold nothing in the end, of n reports in the long run."""
    share = np.asarray(graph.degrees, dtype=np.float64) / float(np.sum(graph.degrees))
    return float(sum((1 - share[u]) ** graph.n for u in hands))


@dataclass(frozen=True)
class Counted:
    """What the curator found in all hands together."""

    reports: tuple[IntArray, ...]
    dropped: dict[str, int]


def count(
    hands: Mapping[int, Sequence[bytes]],
    opened: Callable[[bytes], bytes | None],
    reports: Reports,
    most: int,
    secret: bytes,
) -> Counted:
    """Open everything once, and count what is dropped by reason; `secret` decides which are left out if there are too many."""
    everything = [sealed for hand in hands.values() for sealed in hand]
    different = sorted(set(everything), key=lambda sealed: hmac.digest(secret, sealed, "sha256"))
    dropped = dict.fromkeys(DROPPED, 0) | {"copies": len(everything) - len(different)}
    good: list[IntArray] = []
    for sealed in different:
        content = opened(sealed)
        said = None if content is None else reports.read(content)
        if content is None:
            dropped["sealed"] += 1
        elif said is None:
            dropped["unreadable"] += 1
        elif len(good) == most:
            dropped["surplus"] += 1
        else:
            good.append(said)
    return Counted(tuple(good), dropped)


# ── bodies of messages ────────────────────────────────────────────────────────────────────────────────────────────────

Cut = tuple[int, int, int]
"""(from, to, first): nothing that one user sent to the other came, from this round on."""


def cuts_bytes(cuts: Iterable[Cut]) -> bytes:
    """A list of cuts, its length first."""
    listed = sorted(set(cuts))
    return _NUMBER.pack(len(listed)) + b"".join(_CUT.pack(*cut) for cut in listed)


def one_per_link(cuts: Iterable[Cut], links: Collection[tuple[int, int]]) -> frozenset[Cut]:
    """The earliest cut of every link there is: an honest list has no more, and what others invent makes it no longer.

    >>> sorted(one_per_link([(0, 1, 3), (0, 1, 2), (0, 2, 1)], {(0, 1), (1, 0)}))
    [(0, 1, 2)]
    """
    first: dict[tuple[int, int], int] = {}
    for u, v, round_ in cuts:
        if (u, v) in links:
            first[u, v] = min(round_, first.get((u, v), round_))
    return frozenset((u, v, round_) for (u, v), round_ in first.items())


def take_cuts(body: bytes, n: int, rounds: int) -> tuple[frozenset[Cut], bytes] | None:
    """The list that a body begins with, and the rest; None if there is no such list."""
    if len(body) < _NUMBER.size:
        return None
    (number,) = _NUMBER.unpack_from(body)
    end = _NUMBER.size + number * _CUT.size
    if len(body) < end:
        return None
    cuts = [_CUT.unpack_from(body, at) for at in range(_NUMBER.size, end, _CUT.size)]
    fits = all(u < n and v < n and u != v and 1 <= first <= rounds for u, v, first in cuts)
    if not fits or cuts != sorted(set(cuts)):
        return None
    return frozenset(cuts), body[end:]


@dataclass(frozen=True)
class Total:
    """What the curator publishes: the estimate, what it rests on, and what was lost."""

    total: FloatArray
    hands: int
    """How many users handed something over, or said that they hold nothing."""
    accepted: int
    dropped: dict[str, int] = field(default_factory=dict)
    cuts: frozenset[Cut] = frozenset()

    def to_bytes(self) -> bytes:
        """As it is signed."""
        reasons = (self.dropped[reason] for reason in DROPPED)
        return (
            _TOTAL.pack(self.hands, self.accepted, *reasons)
            + cuts_bytes(self.cuts)
            + self.total.astype("<f8").tobytes()
        )

    @classmethod
    def from_bytes(cls, body: bytes, n: int, rounds: int, dimension: int) -> Total | None:
        """The same again; None if that is none."""
        if len(body) < _TOTAL.size:
            return None
        hands, accepted, *reasons = _TOTAL.unpack_from(body)
        rest = take_cuts(body[_TOTAL.size :], n, rounds)
        if rest is None or len(rest[1]) != 8 * dimension or hands > n or not 1 <= accepted <= n:
            return None
        total = np.frombuffer(rest[1], dtype="<f8").astype(np.float64)
        if not np.isfinite(total).all():
            return None
        return cls(total, hands, accepted, dict(zip(DROPPED, reasons, strict=True)), rest[0])

    @staticmethod
    def longest(links: int, dimension: int) -> int:
        """Bytes: no honest one is longer."""
        return _TOTAL.size + longest_cuts(links) + 8 * dimension

    def realised(self, n: int) -> dict[str, Any]:
        """What happened, as plain values."""
        return {
            "expected": n,
            "hands": self.hands,
            "accepted": self.accepted,
            "dropped": dict(self.dropped),
            "cuts": [list(cut) for cut in sorted(self.cuts)],
        }


def longest_cuts(links: int) -> int:
    """Bytes of a list of cuts among so many links."""
    return _NUMBER.size + 2 * links * _CUT.size
