"""The reports of a shuffled study, as bytes: how a party makes and passes them on, and what the curator makes of them.

A report is what a randomizer in whole numbers makes of one party's value, drawn exactly
(docs/proofs/mechanisms.md#finite-precision): one of k cells by randomized response for histograms and tables, a whole number
with discrete Laplace noise for sums and means, cut off at 40 times its scale (a post-processing: so one lie cannot make the
sum any number), a vector by PrivUnit for directions, of which its own direction alone is read. All reports of a study are equally
long, sealed to the curator (`netdp.peers.streams`). A dummy is what the same randomizer makes of the null value: the first cell,
the middle of the bounds, or the direction of the first column.

In every round each report moves by a draw of its own (`hop`; docs/proofs/shuffle.md#shuffling-peers). The curator counts a
sealed report once, drops what does not open, is no report, or is more than there are parties, and says how many it dropped
and why (`count`). Its estimate is that of docs/proofs/shuffle.md#shuffling-error, times the number of parties.
"""

from __future__ import annotations

import hmac
import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.exact import on_a_grid
from netdp.mechanisms.laplace import GridLaplace
from netdp.mechanisms.privunit import PrivUnit
from netdp.mechanisms.responses import RandomizedResponse
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.streams import SEAL, Words

if TYPE_CHECKING:
    from netdp.graphs.graph import Graph
    from netdp.peers.study.training import AnyTask

LEAST_LAZY = 2.0**-11
"""A smaller laziness has no exact number of 64-bit words; 0 does."""

_HOP, _PICK = b"netdp hop 1", b"netdp pick 1"

_WORD = 1 << 64


@dataclass(frozen=True)
class Hop:
    """What a round makes of a hand: one bundle for each neighbour, perhaps empty, and what stays."""

    bundles: dict[int, tuple[bytes, ...]]
    stays: tuple[bytes, ...]
    waited: int = 0
    """How many of those that stay found their link full."""


def check_laziness(laziness: float) -> float:
    """`laziness` if it can be drawn exactly."""
    if laziness != 0 and not LEAST_LAZY <= laziness < 1:
        raise InvalidValue(
            f"laziness must be 0 or lie in [2⁻¹¹, 1), to be drawn exactly from words of 64 bits; got {laziness!r}"
        )
    return laziness


def hop(
    hand: Iterable[bytes],
    key: bytes,
    round_: int,
    neighbours: Sequence[int],
    laziness: float = 0.0,
    room: int | None = None,
    closed: Collection[int] = (),
) -> Hop:
    """Move every report of a hand in round 1, 2, …; `room` is how many fit on one link (None: all).

    closed : neighbours that are given up; a report that draws one of them stays, and draws again in the next round.

    >>> found = hop([b"a", b"b", b"c"], bytes(32), 1, (4, 7))
    >>> found.bundles, found.stays
    ({4: (b'a', b'c'), 7: (b'b',)}, ())
    >>> found == hop([b"c", b"b", b"b", b"a"], bytes(32), 1, (4, 7))
    True
    """
    if not neighbours:
        raise InvalidValue("a user without neighbours cannot pass reports on")
    lazy = int(Fraction(check_laziness(laziness)) * _WORD)
    chosen: dict[int, list[tuple[int, bytes]]] = {v: [] for v in neighbours}
    stays: list[bytes] = []
    for report in sorted(set(hand)):
        words = Words(hmac.digest(key, _HOP + round_.to_bytes(8, "big") + report, "sha256"))
        if _word(words) < lazy:
            stays.append(report)
            continue
        to = neighbours[below(words, len(neighbours))]
        if to in closed:
            stays.append(report)
            continue
        chosen[to].append((_word(words), report))
    waited = 0
    bundles = {}
    for to, drawn in chosen.items():
        drawn.sort()
        fit = len(drawn) if room is None else room
        bundles[to] = tuple(sorted(report for _, report in drawn[:fit]))
        stays += [report for _, report in drawn[fit:]]
        waited += len(drawn[fit:])
    return Hop(bundles, tuple(sorted(stays)), waited)


def pick(hand: Iterable[bytes], key: bytes) -> bytes | None:
    """One report of a hand, each with the same probability; None of an empty one."""
    reports = sorted(set(hand))
    if not reports:
        return None
    return reports[below(Words(hmac.digest(key, _PICK, "sha256")), len(reports))]


def below(words: Words, count: int) -> int:
    """A whole number from 0 to count − 1, each with the same probability."""
    end = _WORD - _WORD % count
    while (word := _word(words)) >= end:
        pass
    return word % count


def _word(words: Words) -> int:
    return int(words(1)[0])


# ── bundles as bytes ──────────────────────────────────────────────────────────────────────────────────────────────────


def packed(reports: Iterable[bytes], size: int, slots: int | None = None) -> bytes:
    """Reports of one size, one after the other; with `slots`, a number first and then so many places, the rest zeros.

    >>> packed([b"ab", b"cd"], 2), packed([b"ab"], 2, slots=3)
    (b'abcd', b'\\x01\\x00ab\\x00\\x00\\x00\\x00')
    """
    given = list(reports)
    if any(len(report) != size for report in given):
        raise InvalidValue(f"reports of this study have {size} bytes, got {sorted({len(one) for one in given})}")
    content = b"".join(given)
    if slots is None:
        return content
    if len(given) > slots:
        raise InvalidValue(f"{len(given)} reports do not fit into {slots} slots")
    return len(given).to_bytes(2, "little") + content + bytes(size * (slots - len(given)))


def unpacked(content: bytes, size: int, slots: int | None = None) -> tuple[bytes, ...] | None:
    """The reports again; None if that is no bundle.

    >>> unpacked(b"abcd", 2), unpacked(b"abc", 2), unpacked(packed([b"ab"], 2, slots=3), 2, slots=3)
    ((b'ab', b'cd'), None, (b'ab',))
    """
    if slots is not None:
        count = int.from_bytes(content[:2], "little")
        if len(content) != 2 + size * slots or count > slots or any(content[2 + size * count :]):
            return None
        content = content[2 : 2 + size * count]
    if len(content) % size:
        return None
    found = tuple(content[at : at + size] for at in range(0, len(content), size))
    return found if list(found) == sorted(set(found)) else None


DROPPED = ("copies", "sealed", "unreadable", "surplus")
"""Why the curator drops something: it came before, it does not open, it is no report, there are more than parties."""

_FAR = 40  # in units of the noise's scale

_TOTAL = struct.Struct("<II4I")

_NUMBER = struct.Struct("<I")

_CUT = struct.Struct("<III")


class Reports:
    """How the values of a study become reports, and reports an estimate."""

    def __init__(self, task: AnyTask, epsilon0: float, grid: float) -> None:
        self.dimension = task.dimension
        self.is_numeric = task.is_numeric
        self.is_direction = task.kind == "direction"
        self.mechanism: Any
        if self.is_direction:
            self.mechanism = on_a_grid(PrivUnit(task.dimension, epsilon0))
        elif task.is_numeric:
            self.mechanism = GridLaplace(2.0, epsilon0, steps=round(2 / grid))
        else:
            self.mechanism = RandomizedResponse(task.dimension, epsilon0)
        self.values = 0 if task.is_numeric else task.dimension
        """Over how many cells reports are randomized response; 0 if they are numbers."""
        self.furthest = 0
        """Of a number, in steps: no report is further from 0. Noise that reaches beyond, with a chance of e⁻⁴⁰, is cut off."""
        if task.is_numeric and not self.is_direction:
            steps = round(2 / grid)
            self.furthest = steps // 2 + math.ceil(_FAR * steps / epsilon0)
        self.width: int = 8 * self.mechanism.width
        self.size: int = self.width + SEAL
        """Bytes of a sealed report."""

    def of(self, row: FloatArray, words: Words) -> bytes:
        """The report of a party, from what the task made of its data."""
        value: Any = [float(row[0])] if self.is_numeric else [int(np.argmax(row))]
        return self._bytes(self.mechanism.report(row[None] if self.is_direction else value, words))

    def dummy(self, words: Words) -> bytes:
        """The report of the null value."""
        value: Any = self._null[None] if self.is_direction else [0.0] if self.is_numeric else [0]
        return self._bytes(self.mechanism.report(value, words))

    @property
    def _null(self) -> FloatArray:
        """The null value as the task would encode it: the first cell, the first direction, or the middle of the bounds."""
        return np.zeros(1) if self.is_numeric and not self.is_direction else np.asarray(np.eye(self.dimension)[0])

    def _bytes(self, report: IntArray) -> bytes:
        numbers = np.asarray(report)
        if self.is_numeric and not self.is_direction:
            numbers = np.clip(numbers, -self.furthest, self.furthest)
        return numbers.astype("<i8").tobytes()

    def read(self, plaintext: bytes) -> IntArray | None:
        """What a report says; None if it is none."""
        if len(plaintext) != self.width:
            return None
        numbers = np.frombuffer(plaintext, dtype="<i8").astype(np.int64)
        if (
            self.is_numeric
            and not self.is_direction
            and not (-self.furthest <= numbers).all() & (numbers <= self.furthest).all()
        ):
            return None  # one lie moves the sum by no more than a rare draw would
        return numbers if bool(np.all(self.mechanism.readable(numbers))) else None

    def estimate(self, reports: Sequence[IntArray], parties: int, empty: float = 0.0) -> FloatArray:
        """The total over so many parties, from these reports, of which so many are expected to be dummies."""
        stacked = np.stack(list(reports))
        found = self.mechanism.estimate(stacked if self.is_numeric else stacked[:, 0])
        kept = len(stacked) - empty
        return np.asarray(parties * (len(stacked) * found - empty * self._null) / kept, dtype=np.float64)


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
