"""Network shuffling, run: values are randomized, reports walk and are handed over, the curator estimates.

`shuffle_reports`, `shuffle_with_faults` and `shuffle_relayed` take reports that are randomized already; `collect`,
`collect_with_faults` and `collect_relayed` do the whole task, and so does `netdp.simulate(protocol, values, seed, mechanism=…)`:
values never travel without a randomizer. The estimate is the randomizer's own from what arrives; with reporting="single" the
expected number of dummies is taken out. When it is unbiased, and its error: docs/proofs/shuffle.md#shuffling-error.

Reports are whole numbers, whose law is no less private than what is accounted for: a randomizer on real numbers (Laplace,
Gaussian, PrivUnit) is replaced by its version on a grid (`netdp.mechanisms.on_a_grid`). With `floats=True` it draws in
floating point itself, some ten times as fast, and no guarantee is about those reports; the result says which it was (`draws`).
See docs/proofs/mechanisms.md#finite-precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.error import empty_hands, null_row
from netdp.families.shuffle.protocol import (
    FaultPattern,
    FaultyShuffle,
    RelayedShuffle,
    Shuffle,
    ShuffledView,
    ShuffleTranscript,
)
from netdp.mechanisms.base import EXACT_DRAWS, FLOAT_DRAWS, OWN_DRAWS, Mechanism
from netdp.mechanisms.exact import on_a_grid
from netdp.mechanisms.gaussian import Gaussian, GridGaussian
from netdp.mechanisms.laplace import GridLaplace, Laplace
from netdp.mechanisms.privunit import GridPrivUnit, PrivUnit
from netdp.mechanisms.responses import RandomizedResponse, UnaryEncoding
from netdp.numerics.arrays import FloatArray, Int32Array
from netdp.protocols.simulation import collectors


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

    @property
    def messages(self) -> int:
        """That were sent, the hand-over included."""
        return self.traffic.total + self.traffic.handed

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
    given = _one_each(protocol, reports)
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
    from netdp.families.shuffle.kernels import walk

    walking, handing = stream(seed, 0), stream(seed, 1)
    graph, n = protocol.graph, protocol.n
    positions = np.arange(n, dtype=np.int32)
    key = int(walking.integers(0, 2**64, dtype=np.uint64))
    sent, most_sent, most_held = walk(graph.indptr, graph.indices, positions, protocol.rounds, protocol.laziness, key)
    origins = _handed_over(positions, handing)
    holders = positions[origins]
    if protocol.reporting == "single":
        chosen = np.full(n, -1, dtype=np.int32)
        first = np.flatnonzero(np.diff(holders, prepend=-1))
        chosen[holders[first]] = origins[first]
        holders, origins = np.arange(n, dtype=np.int32), chosen
    traffic = Traffic(sent, most_sent, np.concatenate([[1], most_held]), len(holders))
    return ShuffleTranscript(positions, holders, origins), traffic


def _handed_over(positions: Int32Array, rng: np.random.Generator) -> Int32Array:
    """Whose reports are handed over, by holder and in random order within a holder; lost ones, at −1, are not."""
    mixed = rng.permutation(len(positions)).astype(np.int32)
    mixed = mixed[positions[mixed] >= 0]
    return mixed[np.argsort(positions[mixed], kind="stable")]


def _one_each(protocol: Shuffle | FaultyShuffle | RelayedShuffle, reports: npt.ArrayLike) -> npt.NDArray[Any]:
    given = np.asarray(reports)
    if given.ndim == 0 or len(given) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one report for each, got shape {given.shape}")
    return given


def stream(seed: int, number: int) -> np.random.Generator:
    """One of several independent generators of a seed: 0 walks, 1 hands over, 2 randomizes, 3 makes dummies."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed!r}; the same seed gives the same run")
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(number,)))


@dataclass(frozen=True, eq=False)
class FaultyRun:
    """One run: what the curator sees, who was away (public), where the reports really ended (nobody's knowledge).

    positions   (n,) who held the report of user u in the end; −1 if it was lost
    sent        (n,) reports that each user passed on
    """

    view: ShuffledView
    pattern: FaultPattern
    positions: Int32Array = field(repr=False)
    sent: npt.NDArray[np.int64] = field(repr=False)
    seed: int
    protocol: FaultyShuffle

    @property
    def messages(self) -> int:
        """That were sent, the hand-over included."""
        return int(self.sent.sum()) + len(self.view.reports)

    @property
    def lost(self) -> int:
        """How many reports never arrived."""
        return int((self.positions < 0).sum())

    def __str__(self) -> str:
        return (
            f"a run of {self.protocol.describe()}; seed {self.seed}\n{int(self.sent.sum()):,} messages; "
            f"{self.pattern.share:.1%} of the users away in a round; {self.lost:,} of {self.protocol.n:,} reports lost"
        )


def walk_with_faults(
    protocol: FaultyShuffle, pattern: FaultPattern, seed: int
) -> tuple[Int32Array, npt.NDArray[np.int64]]:
    """Where every report ends (−1: lost), and how many each user passed on; contents do not matter for it."""
    rng, n = stream(seed, 0), protocol.n
    positions = np.arange(n)
    sent = np.zeros(n, dtype=np.int64)
    for r in range(protocol.rounds):
        graph, down = protocol.graph_of(r), pattern.down[r]
        draws, choices, losses = rng.random((3, n))
        alive = positions >= 0
        here = np.where(alive, positions, 0)
        degrees = np.asarray(graph.degrees)[here]
        moving = alive & ~down[here] & (draws >= protocol.laziness) & (degrees > 0)
        picked = np.minimum((choices * degrees).astype(np.int64), np.maximum(degrees - 1, 0))
        there = np.asarray(graph.indices)[np.minimum(np.asarray(graph.indptr)[here] + picked, len(graph.indices) - 1)]
        if protocol.absent == "unreachable":
            moving &= ~down[there]
        moving &= ~np.isin(here * n + there, sorted(pattern.links(r, "barred")))
        sent += np.bincount(here[moving], minlength=n)
        gone = alive & ((losses < protocol.lost) | pattern.crashed[r][here])
        gone |= moving & np.isin(here * n + there, sorted(pattern.links(r, "severed")))
        positions = np.where(moving, there, positions)
        positions[gone] = -1
    return positions.astype(np.int32), sent


def shuffle_with_faults(
    protocol: FaultyShuffle, reports: npt.ArrayLike, seed: int, *, pattern: FaultPattern | None = None
) -> FaultyRun:
    """Let the reports (n, …), one row per user, walk and be handed over; `pattern` is drawn from the seed unless given.

    >>> from netdp import graphs
    >>> p = FaultyShuffle(graphs.complete(5), rounds=4, epsilon0=1.0, outages=0.2)
    >>> run = shuffle_with_faults(p, np.arange(5) * 10, seed=0)
    >>> sorted(run.view.reports.tolist()), run.lost
    ([0, 10, 20, 30, 40], 0)
    """
    given = _one_each(protocol, reports)
    away = protocol.pattern(seed) if pattern is None else protocol.checked(pattern)
    positions, sent = walk_with_faults(protocol, away, seed)
    origins = _handed_over(positions, stream(seed, 1))
    view = ShuffledView(protocol.n, positions[origins], given[origins])
    return FaultyRun(view, away, positions, sent, seed, protocol)


_FOLLOWED = 2000  # users up to which the server's reconstruction is computed


@dataclass(frozen=True, eq=False)
class RelayedRun:
    """One run: what the server is handed, what it saw on the links, and what really happened.

    positions   (n,) who held the report of user u in the end
    traffic     what the server saw on the links, for every round rows (from, to, how many); with cover traffic None: always the
                same; under the rule of bundles it counts bundles
    waited      (rounds,) reports that found their link, or their bundle, full
    slots       under the rule of bundles, the room of all bundles together
    """

    view: ShuffledView
    positions: Int32Array = field(repr=False)
    traffic: tuple[npt.NDArray[np.int64], ...] | None = field(repr=False)
    waited: npt.NDArray[np.int64] = field(repr=False)
    seed: int
    protocol: RelayedShuffle
    slots: int = 0

    @property
    def envelopes(self) -> int:
        """All that went through the server between users."""
        if self.traffic is None:
            return 2 * self.protocol.graph.m * self.protocol.cover * self.protocol.rounds
        return int(sum(rows[:, 2].sum() for rows in self.traffic))

    @property
    def messages(self) -> int:
        """That were sent, the hand-over included."""
        return self.envelopes + len(self.view.reports)

    def laws(self) -> FloatArray:
        """[u, i]: the probability, given all traffic, that the report of u is at i in the end. Not with cover traffic.

        Given the traffic all ways to connect what comes into a hand with what leaves it are equally likely (netdp,
        docs/proofs/shuffle.md#relayed-shuffling), so a report in a hand of k is any of the k envelopes that leave it or stay.
        """
        n = self.protocol.n
        if self.traffic is None:
            raise Unsupported("with cover traffic the server sees the same on every link: there is nothing to follow")
        if n > _FOLLOWED:
            raise Unsupported(f"the server's reconstruction of {n} users is a table of all pairs; up to {_FOLLOWED}")
        from scipy.sparse import csr_array

        held, law = np.ones(n), np.eye(n)
        for rows in self.traffic:
            moved = csr_array((rows[:, 2].astype(float), (rows[:, 0], rows[:, 1])), shape=(n, n))
            if self.protocol.bundles:  # every report by itself: into a bundle drawn for it alone
                lazy = self.protocol.laziness
                law = lazy * law + (1 - lazy) / self.protocol.bundles * (moved.T @ law.T).T
                continue
            left = held - np.asarray(moved.sum(axis=1)).ravel()
            share = np.divide(1.0, held, out=np.zeros(n), where=held > 0)
            law = (moved.T @ (law * share[None, :]).T).T + law * (left * share)[None, :]
            held = left + np.asarray(moved.sum(axis=0)).ravel()
        return law

    @property
    def followed(self) -> FloatArray:
        """(n,) how sure the server can be of each user's report: the probability, given all traffic, of where it is."""
        return np.asarray(self.laws()[np.arange(self.protocol.n), self.positions])

    def __str__(self) -> str:
        seen = "the same on every link" if self.traffic is None else "in the open"
        if self.protocol.bundles:
            seen = f"drawn without a look at the reports, with room for {self.slots:,}"
        return (
            f"a run of {self.protocol.describe()}; seed {self.seed}\n{self.envelopes:,} envelopes through the server, "
            f"{seen}; {int(self.waited.sum())} reports waited"
        )


def shuffle_relayed(protocol: RelayedShuffle, reports: npt.ArrayLike, seed: int) -> RelayedRun:
    """Let the reports (n, …), one row per user, walk through the server and be handed over to it.

    >>> from netdp import graphs
    >>> p = RelayedShuffle(graphs.complete(5), rounds=3, epsilon0=1.0, cover=2)
    >>> run = shuffle_relayed(p, np.arange(5) * 10, seed=0)
    >>> sorted(run.view.reports.tolist()), run.envelopes
    ([0, 10, 20, 30, 40], 120)
    >>> shuffle_relayed(p.replace(rounds=1, cover=0), np.arange(5), seed=0).followed.tolist()     # one hop hides nobody
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    given = _one_each(protocol, reports)
    graph, n = protocol.graph, protocol.n
    rng = stream(seed, 0)
    positions = np.arange(n)
    degrees, first, targets = np.asarray(graph.degrees), np.asarray(graph.indptr), np.asarray(graph.indices)
    waited = np.zeros(protocol.rounds, dtype=np.int64)
    traffic: list[npt.NDArray[np.int64]] = []
    k, slots, expected = protocol.bundles, 0, np.ones(n)
    for r in range(protocol.rounds):
        draws, choices = rng.random((2, n))
        if k:
            chosen = np.minimum((rng.random((n, k)) * degrees[:, None]).astype(np.int64), degrees[:, None] - 1)
            ends = targets[first[:-1, None] + chosen]
            sizes = {load: protocol.room(load) for load in np.unique(expected).tolist()}
            rooms = np.array([sizes[load] for load in expected.tolist()])
            slots += int(rooms.sum()) * k
            bundle = positions * k + np.minimum((choices * k).astype(np.int64), k - 1)
            moving = _fitting(bundle, draws >= protocol.laziness, rooms[positions], rng)
            waited[r] = int((draws >= protocol.laziness).sum() - moving.sum())
            positions = np.where(moving, ends.reshape(-1)[bundle], positions)
            used, counts = np.unique(np.repeat(np.arange(n), k) * n + ends.reshape(-1), return_counts=True)
            traffic.append(np.column_stack([used // n, used % n, counts]).astype(np.int64))
            sent = np.repeat((1 - protocol.laziness) * expected / k, k)
            expected = protocol.laziness * expected + np.bincount(ends.reshape(-1), weights=sent, minlength=n)
            continue
        moving = draws >= protocol.laziness
        picked = np.minimum((choices * degrees[positions]).astype(np.int64), degrees[positions] - 1)
        link = first[positions] + picked
        if protocol.cover:
            fits = _fitting(link, moving, np.full(n, protocol.cover), rng)
            waited[r] = int(moving.sum() - fits.sum())
            moving = fits
        else:
            used, counts = np.unique(link[moving], return_counts=True)
            origin = np.searchsorted(first, used, side="right") - 1
            traffic.append(np.column_stack([origin, targets[used], counts]).astype(np.int64))
        positions = np.where(moving, targets[link], positions)
    places = positions.astype(np.int32)
    origins = _handed_over(places, stream(seed, 1))
    view = ShuffledView(n, places[origins], given[origins])
    return RelayedRun(view, places, None if protocol.cover else tuple(traffic), waited, seed, protocol, slots)


def _fitting(
    place: npt.NDArray[np.int64], moving: npt.NDArray[np.bool_], room: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Which of the moving reports fit into the places they drew; who waits is drawn, too."""
    order = rng.permutation(len(place))
    order = order[moving[order]]
    order = order[np.argsort(place[order], kind="stable")]
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    fits = moving.copy()
    fits[order[rank >= room[order]]] = False
    return fits


Walked = TypeVar("Walked", ShuffledReports, FaultyRun, RelayedRun)


@dataclass(frozen=True, eq=False)
class Collected(Generic[Walked]):
    """What the curator has in the end: `estimate` of the mean or of the frequencies, and the run it came from.

    `mechanism` is the randomizer that drew, `draws` what is true of its draws.
    """

    estimate: FloatArray
    run: Walked = field(repr=False)
    mechanism: Mechanism
    draws: str

    @property
    def messages(self) -> int:
        """That were sent, the hand-over included."""
        return self.run.messages

    @property
    def pattern(self) -> FaultPattern | None:
        """The faults that really occurred, where there may be any."""
        return self.run.pattern if isinstance(self.run, FaultyRun) else None

    def __str__(self) -> str:
        who = "server" if isinstance(self.run, RelayedRun) else "curator"
        shown = ", ".join(f"{x:.4g}" for x in self.estimate[:6]) + (", …" if len(self.estimate) > 6 else "")
        return f"the {who}'s estimate by {type(self.mechanism).__name__}: {shown}\n{self.run}\n{self.draws}"


def collect(
    protocol: Shuffle | FaultyShuffle | RelayedShuffle,
    mechanism: Mechanism,
    values: npt.ArrayLike,
    seed: int,
    *,
    null: Any = None,
    floats: bool = False,
) -> Collected[Any]:
    """Randomize every user's value, shuffle the reports through the network, estimate; the same seed gives the same run.

    The randomizer may be no less private than the (ε₀, δ₀) that the protocol states. `null` is the value dummies are made
    from, and is needed for reporting="single" only. Reports are whole numbers (`netdp.mechanisms.on_a_grid`);
    `floats=True` draws those of Laplace, Gaussian and PrivUnit in floating point: faster, and for simulation only.

    >>> from netdp import graphs
    >>> from netdp.mechanisms import RandomizedResponse
    >>> p = Shuffle(graphs.regular(3000, 6, seed=1), rounds=30, epsilon0=1.0)
    >>> done = collect(p, RandomizedResponse(2, 1.0), [0] * 1000 + [1] * 2000, seed=0)
    >>> done.estimate.round(1).tolist(), done.run.traffic.mean_sent
    ([0.3, 0.7], 30.0)
    >>> collect(p, RandomizedResponse(2, 1.5), [0] * 3000, seed=0)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: the protocol states ε₀ = 1, δ₀ = 0, but this RandomizedResponse has δ = 0.322 at that ε₀
    (its own statement: ε₀ = 1.5, δ₀ = 0); take more noise, or state the larger loss in the protocol
    """
    more = {} if null is None else {"null": null}
    found: Collected[Any] = collectors(protocol, mechanism, values, seed, floats=floats, **more)
    return found


@collectors.register
def collect_directly(
    protocol: Shuffle,
    mechanism: Mechanism,
    values: npt.ArrayLike,
    seed: int,
    *,
    null: Any = None,
    floats: bool = False,
) -> Collected[ShuffledReports]:
    """The same over direct links that nobody watches; `null` is needed for reporting="single"."""
    mechanism, draws, reports = _randomized(protocol, mechanism, values, seed, floats)
    if protocol.reporting == "all":
        if null is not None:
            raise InvalidValue(f'reporting="all" sends no dummies; leave null out, got {null!r}')
        run = shuffle_reports(protocol, reports, seed)
        return Collected(mechanism.estimate(run.view.reports), run, mechanism, draws)
    instead = null_row(mechanism, null)

    def dummies(count: int) -> npt.NDArray[Any]:
        return mechanism.randomize(np.repeat(instead, max(count, 1), axis=0), stream(seed, 3))[:count]

    run = shuffle_reports(protocol, reports, seed, dummies=dummies)
    return Collected(estimate_single(protocol, mechanism, run.view.reports, null), run, mechanism, draws)


@collectors.register
def collect_with_faults(
    protocol: FaultyShuffle, mechanism: Mechanism, values: npt.ArrayLike, seed: int, *, floats: bool = False
) -> Collected[FaultyRun]:
    """Randomize every user's value, shuffle the reports through the network with its faults, estimate from those that arrive.

    Reports are whole numbers (`netdp.mechanisms.on_a_grid`); `floats=True` draws those of Laplace, Gaussian and PrivUnit
    in floating point: faster, and for simulation only.

    >>> from netdp import graphs
    >>> from netdp.mechanisms import RandomizedResponse
    >>> p = FaultyShuffle(graphs.regular(3000, 6, seed=1), rounds=40, epsilon0=1.0, outages=0.1, lost=0.002)
    >>> done = collect_with_faults(p, RandomizedResponse(2, 1.0), [0] * 1000 + [1] * 2000, seed=0)
    >>> done.estimate.round(1).tolist(), 100 < done.run.lost < 400
    ([0.3, 0.7], True)
    """
    mechanism, draws, reports = _randomized(protocol, mechanism, values, seed, floats)
    run = shuffle_with_faults(protocol, reports, seed)
    if run.lost == protocol.n:
        raise InvalidValue(f"all {protocol.n} reports were lost; fewer rounds, or fewer losses")
    return Collected(mechanism.estimate(run.view.reports), run, mechanism, draws)


@collectors.register
def collect_relayed(
    protocol: RelayedShuffle, mechanism: Mechanism, values: npt.ArrayLike, seed: int, *, floats: bool = False
) -> Collected[RelayedRun]:
    """Randomize every user's value, shuffle the reports through the server, estimate.

    Reports are whole numbers (`netdp.mechanisms.on_a_grid`); `floats=True` draws those of Laplace, Gaussian and PrivUnit
    in floating point: faster, and for simulation only.

    >>> from netdp import graphs
    >>> from netdp.mechanisms import RandomizedResponse
    >>> p = RelayedShuffle(graphs.regular(3000, 6, seed=1), rounds=30, epsilon0=1.0, cover=4)
    >>> done = collect_relayed(p, RandomizedResponse(2, 1.0), [0] * 1000 + [1] * 2000, seed=0)
    >>> done.estimate.round(1).tolist(), done.run.envelopes
    ([0.3, 0.7], 2160000)
    """
    mechanism, draws, reports = _randomized(protocol, mechanism, values, seed, floats)
    run = shuffle_relayed(protocol, reports, seed)
    return Collected(mechanism.estimate(run.view.reports), run, mechanism, draws)


def _randomized(
    protocol: Shuffle | FaultyShuffle | RelayedShuffle,
    mechanism: Mechanism,
    values: npt.ArrayLike,
    seed: int,
    floats: bool,
) -> tuple[Mechanism, str, npt.NDArray[Any]]:
    """The randomizer that draws, what is true of its draws, and everybody's report."""
    mechanism, draws = which_draws(mechanism, floats)
    check_mechanism(protocol, mechanism)
    data = mechanism.check(values)
    if len(data) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each, got {len(data)}")
    return mechanism, draws, mechanism.randomize(data, stream(seed, 2))


def which_draws(mechanism: Mechanism, floats: bool) -> tuple[Mechanism, str]:
    """The randomizer that is to draw, and what is true of its draws.

    >>> used, draws = which_draws(Laplace.interval(0.0, 1.0, 1.0), floats=False)
    >>> type(used).__name__, draws.startswith("reports are whole numbers")
    ('GridLaplace', True)
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue(f"mechanism must be a randomizer such as RandomizedResponse(2, 1.0), got {mechanism!r}")
    # of randomizers of one's own nothing is known, whatever methods they have and whatever they are derived from
    if type(mechanism) in (RandomizedResponse, UnaryEncoding, GridLaplace, GridGaussian, GridPrivUnit):
        return mechanism, EXACT_DRAWS
    if type(mechanism) not in (Laplace, Gaussian, PrivUnit):
        return mechanism, OWN_DRAWS
    return (mechanism, FLOAT_DRAWS) if floats else (on_a_grid(mechanism), EXACT_DRAWS)


def check_mechanism(protocol: Shuffle | FaultyShuffle | RelayedShuffle, mechanism: Mechanism) -> None:
    """Refuse a randomizer that is not the one that the protocol states, or whose profile is above δ₀ at its ε₀."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue(f"mechanism must be a randomizer such as RandomizedResponse(2, 1.0), got {mechanism!r}")
    if protocol.values is not None and not (
        type(mechanism) is RandomizedResponse and mechanism.domain == protocol.values
    ):
        raise InvalidValue(
            f"the protocol states reports of randomized response over {protocol.values} values, got {mechanism!r}; take "
            f"RandomizedResponse({protocol.values}, {protocol.epsilon0:g}), or leave values out: then any randomizer will do"
        )
    if protocol.variation is not None and not (apart := float(mechanism.curve.delta(0.0))) <= protocol.variation:
        raise InvalidValue(
            f"the protocol states a total variation of {protocol.variation!r} at most, but this {type(mechanism).__name__} has "
            f"{apart!r}; state that, or take more noise"
        )
    reached = float(mechanism.curve.delta(protocol.epsilon0))
    if isinstance(mechanism, Gaussian | GridGaussian):  # exact, where chords of the curve lie a little above
        reached = min(reached, mechanism.delta0_at(protocol.epsilon0))
    if not reached <= protocol.delta0:
        raise InvalidValue(
            f"the protocol states ε₀ = {protocol.epsilon0:g}, δ₀ = {protocol.delta0:g}, but this "
            f"{type(mechanism).__name__} has δ = {reached:.3g} at that ε₀ (its own statement: ε₀ = {mechanism.epsilon0:g}, "
            f"δ₀ = {mechanism.delta0:.3g}); take more noise, or state the larger loss in the protocol"
        )


def estimate_single(protocol: Shuffle, mechanism: Mechanism, reports: npt.ArrayLike, null: Any) -> FloatArray:
    """(n·ā − E₀·x₀)/(n − E₀) from one item per user."""
    items = np.asarray(reports)
    if len(items) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users and each hands over one item; got {len(items)}")
    empty, _ = empty_hands(protocol)
    instead = mechanism.answer(null_row(mechanism, null))
    return np.asarray((protocol.n * mechanism.estimate(items) - empty * instead) / (protocol.n - empty))
