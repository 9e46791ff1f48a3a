"""Network shuffling, run: reports walk through the graph, then the users hand them to the curator.

`shuffle_reports` takes reports that are randomized already; `collect` (netdp.simulate.collect) does the whole task, from
values to an estimate. `netdp.simulate(protocol, values, seed)` is not offered for `Shuffle`: values must not travel without
a randomizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import Int32Array
from netdp.protocols import Shuffle
from netdp.views.shuffled import ShuffledView, ShuffleTranscript

from .run import execute

execute.refuse(
    Shuffle,
    why="values are randomized before they are shuffled: use collect(protocol, mechanism, values, seed) from "
    "netdp.simulate.collect; shuffle_reports(protocol, reports, seed) takes reports that are randomized already",
)


@dataclass(frozen=True, eq=False)
class Traffic:
    """What the walks cost the users, in reports; the hand-over to the curator comes on top.

    sent        (n,) reports that each user passed on, all rounds together
    most_sent   (rounds,) the most that one user passed on in the round
    most_held   (rounds + 1,) the most that one user held, at the start (one) and after each round
    handed      items that went to the curator

    On average a user passes on (1−ℓ)·t reports, since each round moves n(1−ℓ) of them, and holds exactly one: with
    t = α⁻¹ ln n rounds that is the O(log n) traffic and O(1) space of the paper's Table 3. These are averages: a user of
    degree d holds n·d/2m on average, and the unluckiest of n users more than that.

    Reference: Liew et al., *Network Shuffling* (SIGMOD 2022), Table 3.
    """

    sent: npt.NDArray[np.int64] = field(repr=False)
    most_sent: npt.NDArray[np.int64] = field(repr=False)
    most_held: npt.NDArray[np.int64] = field(repr=False)
    handed: int

    @property
    def total(self) -> int:
        """Messages between users."""
        return int(self.sent.sum())

    @property
    def mean_sent(self) -> float:
        """Messages that a user sends, on average over the users."""
        return self.total / len(self.sent)

    @property
    def largest_sent(self) -> int:
        """Messages of the busiest user."""
        return int(self.sent.max())

    @property
    def largest_hand(self) -> int:
        """The memory a user needs: the most reports in one hand at any time."""
        return int(self.most_held.max())

    def describe(self) -> str:
        """Two lines for people."""
        return (
            f"{self.total:,} messages: {self.mean_sent:.1f} per user, {self.largest_sent} by the busiest, "
            f"at most {int(self.most_sent.max(initial=0))} by one user in one round\n"
            f"in one hand: 1 report on average, {self.largest_hand} at most; {self.handed:,} items for the curator"
        )

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """One run: what the curator sees, what really happened, and what it cost."""

    view: ShuffledView
    transcript: ShuffleTranscript
    traffic: Traffic
    seed: int
    protocol: Shuffle

    def __str__(self) -> str:
        return f"a run of {self.protocol.describe()}; seed {self.seed}\n{self.traffic}"


def shuffle_reports(
    protocol: Shuffle,
    reports: npt.ArrayLike,
    seed: int,
    *,
    dummies: Callable[[int], npt.ArrayLike] | None = None,
) -> ShuffledReports:
    """Let the reports (n, …), one row per user, walk and be handed over; the same seed gives the same run.

    With reporting="single", `dummies(count)` returns the reports of that many users who end up with nothing: what their
    randomizer makes of a null value.

    >>> from netdp import graphs
    >>> p = Shuffle(graphs.complete(5), rounds=4, epsilon0=1.0)
    >>> run = shuffle_reports(p, np.arange(5) * 10, seed=0)
    >>> sorted(run.view.reports.tolist()), run.traffic.total
    ([0, 10, 20, 30, 40], 20)
    >>> single = shuffle_reports(p.replace(reporting="single"), np.arange(5) * 10, seed=0, dummies=lambda k: [-1] * k)
    >>> single.view.holders.tolist(), len(single.transcript.dummies) == len(single.transcript.dropped)
    ([0, 1, 2, 3, 4], True)
    """
    given = np.asarray(reports)
    if given.ndim == 0 or len(given) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one report for each, got shape {given.shape}")
    if protocol.reporting == "single" and dummies is None:
        raise InvalidValue(
            'reporting="single" needs dummies: a function that returns so many reports of the null value, for users '
            "who end up with nothing"
        )
    if protocol.reporting == "all" and dummies is not None:
        raise InvalidValue('reporting="all" sends no dummies; leave them out')
    transcript, traffic = run_walks(protocol, seed)
    fill = np.asarray(dummies(len(transcript.dummies))) if dummies is not None else None
    return ShuffledReports(transcript.view(given, fill), transcript, traffic, seed, protocol)


def run_walks(protocol: Shuffle, seed: int) -> tuple[ShuffleTranscript, Traffic]:
    """Who ends up with which report and what is handed over; contents do not matter for it."""
    from .shuffle_kernels import walk

    walking, handing = stream(seed, 0), stream(seed, 1)
    graph, n = protocol.graph, protocol.n
    positions = np.arange(n, dtype=np.int32)
    key = int(walking.integers(0, 2**64, dtype=np.uint64))
    sent, most_sent, most_held = walk(graph.indptr, graph.indices, positions, protocol.rounds, protocol.laziness, key)
    holders, origins = _hand_over(positions, protocol.reporting, handing)
    traffic = Traffic(sent, most_sent, np.concatenate([[1], most_held]), len(holders))
    return ShuffleTranscript(positions, holders, origins), traffic


def _hand_over(positions: Int32Array, reporting: str, rng: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Items by holder, in random order within a holder; for "single" the first of each, −1 where there is none."""
    n = len(positions)
    mixed = rng.permutation(n).astype(np.int32)
    origins = mixed[np.argsort(positions[mixed], kind="stable")]
    holders = positions[origins]
    if reporting == "all":
        return holders, origins
    chosen = np.full(n, -1, dtype=np.int32)
    first = np.flatnonzero(np.diff(holders, prepend=-1))
    chosen[holders[first]] = origins[first]
    return np.arange(n, dtype=np.int32), chosen


def stream(seed: int, number: int) -> np.random.Generator:
    """One of several independent generators of a seed: 0 walks, 1 hands over, 2 randomizes, 3 makes dummies."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed!r}; the same seed gives the same run")
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(number,)))
