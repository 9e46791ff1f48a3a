"""What every party alone learns about every other, as a square of colours: all pairs where that is quick, else a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.accounting import pairwise, who_learns_most
from netdp.accounting.gossip.exact import expected_seconds
from netdp.errors import NetdpError
from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.rounding import rounded_up
from netdp.privacy import Claim, Guarantee
from netdp.protocols import Gossip, Protocol

from .network import shortened
from .scale import Scale, plain

# All pairs are computed up to here, if that takes at most so many seconds; otherwise the heat map shows evenly spaced observers
# and parties, as many as the seconds suffice for, but no fewer than `FEWEST`. Observers of whom a single one would take a third of
# the time are left out of the sample.
MAX_FULL = 512
SAMPLE, FEWEST = 96, 12
SECONDS = 3.0
# On small graphs the estimate of the seconds is cautious: overheads aside, all pairs are quicker by about this.
SLOWER_TOGETHER = 6.0
# Protocols whose time nobody predicts have a heat map up to so many parties, fewer where every loss is drawn by chance.
MAX_OTHERS, MAX_DRAWN = 64, 8
_NAMED = 16


@dataclass(frozen=True, eq=False)
class Heat:
    """ε [u, v] for the parties and observers shown."""

    parties: npt.NDArray[np.int64]
    epsilon: FloatArray
    complete: bool
    links: int | None = None  # observers with more links than this were left out; None: nobody was

    @property
    def words(self) -> str:
        """Which observers are shown, if not all."""
        if self.complete:
            return ""
        return "a sample" if self.links is None else f"a sample of those with at most {self.links:,} links"

    def along(self, graph: Graph) -> Heat:
        """The same with linked parties beside each other, where their own order scatters them: groups are then seen as blocks.

        (The order of Cuthill and McKee; it is taken if it halves how far apart the ends of a link stand on average.)

        >>> from netdp import graphs
        >>> two = graphs.Graph.from_edges(6, [(0, 2), (2, 4), (4, 1), (1, 3), (3, 5)])
        >>> heat = Heat(np.arange(6), np.arange(36.0).reshape(6, 6), True)
        >>> heat.along(two).parties.tolist(), heat.along(graphs.path(6)).parties.tolist()
        ([5, 3, 1, 4, 2, 0], [0, 1, 2, 3, 4, 5])
        """
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        if not self.complete or not graph.m:
            return self
        order = reverse_cuthill_mckee(graph.adjacency(), symmetric_mode=True).astype(np.int64)
        place, ends = np.argsort(order), graph.edges()
        if np.abs(np.diff(place[ends], axis=1)).mean() > np.abs(np.diff(ends, axis=1)).mean() / 2:
            return self
        return replace(self, parties=self.parties[order], epsilon=self.epsilon[np.ix_(order, order)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "parties": self.parties.tolist(),
            "complete": self.complete,
            "epsilon": [short(row) for row in self.epsilon],
        }


def heat_map(protocol: Gossip, delta: float, progress: Progress | None = None) -> Heat:
    """What each party alone learns about each other: in full where that is quick, else for a sample."""
    n = protocol.graph.n
    seconds = expected_seconds(protocol, protocol.graph.degrees)
    if n <= MAX_FULL and seconds.sum() <= SECONDS * SLOWER_TOGETHER:
        return Heat(np.arange(n), np.asarray(pairwise(protocol, progress=progress).epsilon(delta)), True)
    shown, links = _sample(seconds, protocol.graph.degrees)
    names = [protocol.graph.label(v) for v in shown.tolist()]
    rows = who_learns_most(protocol, delta, names, progress=progress).epsilons
    return Heat(shown, rows[:, shown].T, False, links)


def any_heat_map(protocol: Protocol, loss: Guarantee, progress: Progress | None = None, *, delta: float) -> Heat | None:
    """The heat map of any protocol; None where it would take long, say nothing (all pairs alike), or nobody alone sees anything."""
    if isinstance(protocol, Gossip):
        return heat_map(protocol, delta, progress)
    if protocol.roles or protocol.n > (MAX_DRAWN if loss.claim is Claim.ESTIMATE else MAX_OTHERS):
        return None
    try:
        epsilon = np.asarray(pairwise(protocol, progress=progress).epsilon(delta))
    except NetdpError:
        return None  # no method knows all pairs of this protocol: the picture does without
    known = epsilon[~np.isnan(epsilon)]
    if known.size == 0 or (np.isinf(known).all() or np.ptp(known) <= 1e-9 * known.max()):
        return None
    return Heat(np.arange(protocol.n), epsilon, True)


def _sample(seconds: FloatArray, degrees: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int | None]:
    """Evenly spaced parties who take at most `SECONDS` together, and the most links among them if that leaves anybody out.

    >>> _sample(np.array([1.0, 1.0, 90.0, 1.0]), np.array([2, 2, 50, 2]))[1]
    2
    """
    quick = np.flatnonzero(seconds <= max(SECONDS / 3, seconds.min()))
    count = min(SAMPLE, len(quick))
    while True:
        shown = quick[np.unique(np.linspace(0, len(quick) - 1, count).astype(np.int64))]
        if count <= FEWEST or seconds[shown].sum() <= SECONDS:
            break
        count = max(FEWEST, count * 3 // 4)
    return shown, int(degrees[quick].max()) if len(quick) < len(seconds) else None


def draw_heat(axes: Any, heat: Heat, scale: Scale, names: tuple[str, ...] | None = None) -> None:
    """Columns are observers, rows the parties whose privacy is at stake; itself: grey."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.imshow(scale.painted(heat.epsilon), interpolation="nearest", aspect="equal")
    count = len(heat.parties)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    where = FuncFormatter(lambda x, _: plain(float(heat.parties[int(x)])) if 0 <= x < count and x == int(x) else "")
    axes.xaxis.set_major_formatter(where)
    axes.yaxis.set_major_formatter(where)
    same = ""
    if names is not None:  # names stand at the rows only; columns are in the same order
        axes.set_xticks([])
        axes.set_yticks(
            *((range(count), [shortened(names[u], 12) for u in heat.parties.tolist()]) if count <= _NAMED else ([],))
        )
        same = ", in the same order"
    axes.tick_params(length=2, pad=1.5)
    axes.set_xlabel("observer v" + same + (f"\n({heat.words})" if heat.words else ""))
    axes.set_ylabel("party u")
    axes.spines[:].set_visible(False)


def short(row: FloatArray) -> list[float | None]:
    """Five digits, rounded up, are enough for a page, which rounds up to three; JSON has neither nan nor inf."""
    return [None if math.isnan(x) else rounded_up(min(x, 1e300), 5) for x in row.tolist()]
