"""Charts of losses: ε against δ beside the alternatives, the losses of all parties in order, all pairs as a square of colours.

The square shows what every party alone learns about every other: all pairs where that is quick, else a sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import NetdpError
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, Progress, rounded_up
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account, pairwise, who_learns_most
from netdp.protocols.base import Protocol
from netdp.protocols.table import observer_seconds
from netdp.report.network import shortened
from netdp.report.style import BLUE, GREEN, GREY, ORANGE, RED, SKY, Scale, plain, raised, scientific, ticks_between

DELTAS = np.geomspace(1e-12, 1e-2, 41)

_OURS: dict[str, Any] = {"color": BLUE, "linewidth": 2.6}

_STYLES: dict[str, dict[str, Any]] = {
    "exact, plain gossip": {"color": SKY},
    "published (not a bound)": {"color": GREY, "linestyle": "--"},
    "local DP": {"color": RED, "linestyle": (0, (4, 1))},
    "trusted curator": {"color": GREEN, "linestyle": ":", "linewidth": 1.8},
    "trusted shuffler": {"color": GREEN, "linestyle": ":", "linewidth": 1.8},
    "trusted sampler of √n reports": {"color": ORANGE, "linestyle": "-."},
}


def worst_curve(loss: Guarantee, deltas: FloatArray = DELTAS) -> FloatArray:
    """ε of the worst placed party at every δ; nan where there is no party."""
    if isinstance(loss.curve, GaussianCurve):  # the largest μ is the worst at every δ
        known = np.asarray(loss.mu)[~np.isnan(loss.mu)]
        return (
            np.asarray(GaussianCurve(float(known.max())).epsilon(deltas))
            if known.size
            else np.full(len(deltas), np.nan)
        )
    return np.array([loss.worst_epsilon(float(delta)) for delta in deltas])


def stated(loss: Guarantee, delta: float) -> str:
    """The worst ε with its claim, for a title, not to be broken: an estimate bounds nothing."""
    sign = "≤" if loss.is_certified else "≈"
    words = f"ε {sign} {readable(loss.worst_epsilon(delta))} at δ = {scientific(delta)}"
    return words.replace(" ", "\u00a0") + f" ({loss.claim.value})"


def curves_of(loss: Guarantee, alternatives: Mapping[str, Guarantee | str]) -> dict[str, FloatArray]:
    """ε against `DELTAS` by name, the loss in question first; those that are nowhere finite are left out."""
    named = {loss.claim.label: loss, **{k: v for k, v in alternatives.items() if not isinstance(v, str)}}
    found = {name: worst_curve(one) for name, one in named.items()}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def draw_curves(axes: Any, curves: Mapping[str, FloatArray], delta: float) -> None:
    """ε against δ, both logarithmic, the first curve thick, below the others; a thin line where ε is read off."""
    for k, (name, values) in enumerate(curves.items()):
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        style = _STYLES.get(name, {"color": GREY}) if k else _OURS
        axes.plot(DELTAS, shown, label=name, zorder=3 if k else 2, **style)
    axes.axvline(delta, color="#9aa1ab", linewidth=0.8, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel="δ", ylabel="ε, worst party")
    axes.set_xlim(DELTAS[0], DELTAS[-1])
    log_axis(axes.xaxis, few=True)
    log_axis(axes.yaxis)
    axes.grid()
    if not curves:
        axes.text(0.5, 0.5, "no finite ε at any δ", transform=axes.transAxes, ha="center", va="center")
    else:
        below(axes, columns=2 if sum(sorted(map(len, curves))[-2:]) < 50 else 1)


def below(axes: Any, columns: int, inches: float = 0.42) -> None:
    """The legend under the axes and their label, so many inches, where it hides no curve."""
    from matplotlib.transforms import ScaledTranslation

    axes.legend(
        loc="upper center", bbox_to_anchor=(0.44, 0.0), ncols=columns, handlelength=2.0, columnspacing=0.8, borderpad=0,
        bbox_transform=axes.transAxes + ScaledTranslation(0, -inches, axes.figure.dpi_scale_trans), borderaxespad=0,
    )  # fmt: skip


def draw_losses(axes: Any, losses: FloatArray, delta: float, baselines: Mapping[str, float | None]) -> None:
    """The ε of every party, the largest first, between what to compare with; zero and no bound are said in words."""
    known = np.sort(losses[~np.isnan(losses)])[::-1]
    finite = known[np.isfinite(known)]
    rank = np.arange(1, len(known) + 1)
    shown = np.where(np.isfinite(known) & (known > 0), known, np.nan)
    axes.plot(rank, shown, color=BLUE, marker="o" if len(known) <= 60 else None, markersize=3, linewidth=1.2)
    for name, value in baselines.items():
        if value is not None and 0 < value < np.inf:
            axes.axhline(value, label=name, **{**_STYLES.get(name, {"color": GREY}), "linewidth": 1.2})
    said = [f"{np.isposinf(known).sum():,} without a finite ε"] if np.isposinf(known).any() else []
    said += [f"{(known == 0).sum():,} of whom nothing is learned"] if (known == 0).any() else []
    axes.set_xlabel("\n".join(["parties, the largest loss first", *said]))
    axes.set_ylabel(f"ε at δ = {scientific(delta)}")
    if (finite > 0).any():
        axes.set_yscale("log")
        log_axis(axes.yaxis)
    axes.grid(axis="y")
    if any(value is not None and 0 < value < np.inf for value in baselines.values()):
        below(axes, columns=2, inches=0.42 + 0.14 * len(said))


def _power(value: float) -> str:
    """A power of ten as one, also a short one.

    >>> _power(0.001), _power(1e-12)
    ('10⁻³', '10⁻¹²')
    """
    return f"10{raised(round(math.log10(value)))}"


def log_axis(axis: Any, *, few: bool = False) -> None:
    """Round numbers, written out, on a logarithmic axis: 0.1, 0.2, 0.5, 1; or a few powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.axes.autoscale_view()
    low, high = sorted(axis.get_view_interval())
    if high < 3 * low:
        low, high = low / 1.6, high * 1.6
        axis.set_view_interval(low, high, ignore=True)
    marks = ticks_between(low, high)
    most = 4 if few else 8
    axis.set_major_locator(FixedLocator(marks[:: max(1, -(-len(marks) // most))]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value) if few else plain(value)))
    axis.set_minor_locator(NullLocator())


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


def heat_map(protocol: Protocol, delta: float, progress: Progress | None = None) -> Heat:
    """What each party alone learns about each other, where that time is predicted: in full if it is short, else for a sample."""
    graph = protocol.network
    assert graph is not None  # times are predicted from numbers of neighbours
    n = graph.n
    seconds = observer_seconds(protocol, graph.degrees)
    if n <= MAX_FULL and seconds.sum() <= SECONDS * SLOWER_TOGETHER:
        return Heat(np.arange(n), np.asarray(pairwise(protocol, progress=progress).epsilon(delta)), True)
    shown, links = _sample(seconds, graph.degrees)
    names = [graph.label(v) for v in shown.tolist()]
    rows = who_learns_most(protocol, delta, names, progress=progress).epsilons
    return Heat(shown, rows[:, shown].T, False, links)


def any_heat_map(
    protocol: Protocol, loss: Guarantee | None, progress: Progress | None = None, *, delta: float
) -> Heat | None:
    """The heat map of any protocol; None where it would take long, say nothing (all pairs alike), or nobody alone sees anything.

    `loss` is that of an observer, if it is known: losses that are estimated are drawn for few parties only.
    """
    if observer_seconds.handles(protocol):
        return heat_map(protocol, delta, progress)
    if protocol.roles or protocol.n > MAX_OTHERS:
        return None
    if loss is None:
        loss = account(protocol, 0 if protocol.network is None else protocol.network.label(0), progress=progress)
    if loss.claim is Claim.ESTIMATE and protocol.n > MAX_DRAWN:
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
