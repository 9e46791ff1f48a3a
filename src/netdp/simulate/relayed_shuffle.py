"""Network shuffling through a server, run: what every user holds, what the server sees of it, and what waits.

`shuffle_relayed` takes reports that are randomized already; `collect_relayed` does the whole task. Without cover
traffic the server sees how many envelopes go over every link in every round; `run.followed` is the best it can do
with that: for every user the probability, given all traffic, that its report is where it is. With cover traffic every
link carries the same number in every round, and there is nothing to follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms import Mechanism
from netdp.numerics.arrays import FloatArray, Int32Array
from netdp.protocols import RelayedShuffle
from netdp.views.shuffled import ShuffledView

from .collect import check_mechanism, which_draws
from .run import execute
from .shuffle import stream

execute.refuse(
    RelayedShuffle,
    why="values are randomized before they are shuffled: use collect_relayed(protocol, mechanism, values, seed) from "
    "netdp.simulate.relayed_shuffle; shuffle_relayed(protocol, reports, seed) takes reports that are randomized already",
)

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

    def laws(self) -> FloatArray:
        """[u, i]: the probability, given all traffic, that the report of u is at i in the end. Not with cover traffic.

        Given the traffic all ways to connect what comes into a hand with what leaves it are equally likely (netdp,
        docs/guarantees.md#relayed-shuffling), so a report in a hand of k is any of the k envelopes that leave it or stay.
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
    given = np.asarray(reports)
    if given.ndim == 0 or len(given) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one report for each, got shape {given.shape}")
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
    mixed = stream(seed, 1).permutation(n)
    origins = mixed[np.argsort(positions[mixed], kind="stable")]
    places = positions.astype(np.int32)
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


@dataclass(frozen=True, eq=False)
class CollectedByRelay:
    """What the server has in the end: `estimate` of the mean or of the frequencies, and the run it came from."""

    estimate: FloatArray
    run: RelayedRun = field(repr=False)
    mechanism: Mechanism
    draws: str

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.estimate[:6]) + (", …" if len(self.estimate) > 6 else "")
        return f"the server's estimate by {type(self.mechanism).__name__}: {shown}\n{self.run}\n{self.draws}"


def collect_relayed(
    protocol: RelayedShuffle, mechanism: Mechanism, values: npt.ArrayLike, seed: int, *, floats: bool = False
) -> CollectedByRelay:
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
    mechanism, draws = which_draws(mechanism, floats)
    check_mechanism(protocol, mechanism)
    data: Any = mechanism.check(values)
    if len(data) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each, got {len(data)}")
    run = shuffle_relayed(protocol, mechanism.randomize(data, stream(seed, 2)), seed)
    return CollectedByRelay(mechanism.estimate(run.view.reports), run, mechanism, draws)
