"""Network shuffling with faults, run: who is away is drawn, reports walk, wait and get lost, the rest is handed over.

`shuffle_with_faults` takes reports that are randomized already; `collect_with_faults` does the whole task, from
values to an estimate: the randomizer's own from the reports that arrive. `run.pattern` is public, and what
`account(protocol, "curator", transcript=run.pattern)` asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms import Mechanism
from netdp.numerics.arrays import FloatArray, Int32Array
from netdp.protocols import FaultPattern, FaultyShuffle
from netdp.views.shuffled import ShuffledView

from .collect import check_mechanism, which_draws
from .run import execute
from .shuffle import stream

execute.refuse(
    FaultyShuffle,
    why="values are randomized before they are shuffled: use collect_with_faults(protocol, mechanism, values, seed) from "
    "netdp.simulate.faulty_shuffle; shuffle_with_faults(protocol, reports, seed) takes reports that are randomized already",
)


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
    given = np.asarray(reports)
    if given.ndim == 0 or len(given) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one report for each, got shape {given.shape}")
    away = protocol.pattern(seed) if pattern is None else protocol.checked(pattern)
    positions, sent = walk_with_faults(protocol, away, seed)
    mixed = stream(seed, 1).permutation(protocol.n)
    mixed = mixed[positions[mixed] >= 0]
    origins = mixed[np.argsort(positions[mixed], kind="stable")]
    view = ShuffledView(protocol.n, positions[origins], given[origins])
    return FaultyRun(view, away, positions, sent, seed, protocol)


@dataclass(frozen=True, eq=False)
class CollectedWithFaults:
    """What the curator has in the end: `estimate` of the mean or of the frequencies, and the run it came from."""

    estimate: FloatArray
    run: FaultyRun = field(repr=False)
    mechanism: Mechanism
    draws: str

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.estimate[:6]) + (", …" if len(self.estimate) > 6 else "")
        return f"the curator's estimate by {type(self.mechanism).__name__}: {shown}\n{self.run}\n{self.draws}"


def collect_with_faults(
    protocol: FaultyShuffle, mechanism: Mechanism, values: npt.ArrayLike, seed: int, *, floats: bool = False
) -> CollectedWithFaults:
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
    mechanism, draws = which_draws(mechanism, floats)
    check_mechanism(protocol, mechanism)
    data: Any = mechanism.check(values)
    if len(data) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each, got {len(data)}")
    run = shuffle_with_faults(protocol, mechanism.randomize(data, stream(seed, 2)), seed)
    if run.lost == protocol.n:
        raise InvalidValue(f"all {protocol.n} reports were lost; fewer rounds, or fewer losses")
    return CollectedWithFaults(mechanism.estimate(run.view.reports), run, mechanism, draws)
