"""Error against certified ε for every protocol that answers a mean: on a hypercube, a club and a random geometric graph.

The answer is the mean of n values from an interval of length Δ = 1; its error is the root mean square for the worst values.

**One accounting for all ε.** Where everything seen is linear and Gaussian (local DP, gossip, the curator) μ = √factor·Δ/σ,
so a target (ε, δ) gives σ = √factor/μ(ε, δ) with the factor accounted for once. More rounds only show more, so the factor of
the most rounds holds for fewer, and for every ε the number of rounds and the strength of the masks with the least error
are taken (`netdp.families.gossip.error` has the error for all rounds at once).

**The others.** A masked sum is planned for every ε. A token's path and a shuffled report are secret, their curves are not
Gaussian: noise levels are chosen, and (ε, error) is computed at each. The error at ε = 1 is then that of the noisiest needed,
the best with ε ≤ 1.

*Left:* ε is that of the worst pair (of the worst user, against the server, for the shuffle). *Right:* at ε = 1, and with the
ε of the mean loss over all pairs (the mean of μ², of ε² for the token), which is what figures about amplification by
distance usually show: there plain and refreshed gossip gain, while their worst pair, two neighbours, stays at local DP's.

Curves that coincide are drawn one on top of the other, and at ε = 1 each has its row. Local DP and the trusted curator are
wide pale bands; what runs on a band is as bad, or as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from netdp.families.gossip.error import SpectralError
from netdp.families.gossip.protocol import Gossip
from netdp.families.masked.plan import plan_masked
from netdp.families.shuffle.protocol import Shuffle
from netdp.families.token.walk import GraphWalkSum
from netdp.graphs.families import geometric, hypercube
from netdp.graphs.graph import Graph
from netdp.graphs.shape import vertex_transitive
from netdp.graphs.spec import parse
from netdp.mechanisms.laplace import Laplace
from netdp.numerics.arrays import FloatArray
from netdp.papers.drawing import BLACK
from netdp.papers.experiment import (
    Experiment,
    FigureKind,
    Observation,
    Panel,
    Result,
    ResultTable,
    Series,
    Size,
    columns,
    near,
)
from netdp.papers.runs import Work
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.guarantee import Claim
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.accuracy import curator_limit, expected_error, limits
from netdp.report.style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY

GREY = "#999999"

# colour, dash, width, mark
LOOKS: dict[str, tuple[str, Any, float, str]] = {
    "local DP": (GREY, "-", 5.0, ""),
    "plain gossip": (PURPLE, "-", 1.2, "s"),
    "refreshed gossip": (RED, (0, (4, 2)), 1.2, "D"),
    "token walk": (BLACK, "-", 1.2, "^"),
    "network shuffle": (SKY, "-", 1.2, ""),
    "curator, Gaussian noise": (GREEN, "-", 5.0, ""),
    "masked gossip": (ORANGE, "-", 1.4, "o"),
    "masked sum": (BLUE, (0, (3, 2)), 1.4, "v"),
    "curator, Laplace noise": (GREEN, (0, (1, 1.5)), 1.2, ""),
    "bound for any protocol": (BLACK, (0, (1, 2, 4, 2)), 0.8, ""),
}


_BELOW: dict[str, Any] = {"loc": "upper center", "ncols": 2, "frameon": False, "borderpad": 0}
"""A legend below the axes."""


def look(label: str) -> tuple[str, Any, float, str]:
    return LOOKS[label.split(",")[0] if label.startswith("token") else label]


def curves(series: Sequence[Series], x: str, y: str, limits: tuple[float, float]) -> Callable[[Any, Any], None]:
    """Draws the curves, the legend below them."""

    def draw(_: Any, axes: Any) -> None:
        for one in series:
            part, (colour, dash, width, mark) = columns(one), look(one.label)
            band = width > 3
            axes.plot(
                part["x"], part["y"], color=colour, linestyle=dash, linewidth=width, marker=mark or None, label=one.label,
                alpha=0.4 if band else 1.0, markersize=3.5, solid_capstyle="butt", zorder=1 if band else 3,
                markevery=max(1, len(part["x"]) // 5),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.09, 11)
        axes.set_ylim(*limits)
        for axis in (axes.xaxis, axes.yaxis):
            _plain_ticks(axis, (1.0, 3.0))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(bbox_to_anchor=(0.5, -0.22), handlelength=2.6, columnspacing=1.2, **_BELOW)

    return draw


def _plain_ticks(axis: Any, subs: tuple[float, ...]) -> None:
    """These multiples of powers of ten, written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def rows(table: Sequence[tuple[str, float, float]], x: str) -> Callable[[Any, Any], None]:
    """One row per protocol (name, worst, mean): the worst pair filled, the mean over pairs hollow."""

    def draw(_: Any, axes: Any) -> None:
        for place, (name, one, other) in enumerate(table):
            colour = look(name)[0]
            dot = {"marker": "o", "color": colour, "linestyle": "none"}
            mean, worst = ("mean over pairs", "worst pair") if not place else (None, None)  # named once in the legend
            axes.plot([1, one], [place, place], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
            axes.plot(other, place, markerfacecolor="white", label=mean, **dot)
            axes.plot(one, place, label=worst, zorder=4, **dot)
            axes.text(max(one, other) * 1.1, place, f"{one:.3g}", va="center", fontsize=7)
        axes.axvline(1, color=GREEN, linewidth=4, alpha=0.4, zorder=0)
        axes.set_xscale("log")
        axes.set_xlim(0.9, max(one for _, one, _ in table) * 1.9)
        _plain_ticks(axes.xaxis, (1.0, 2.0, 5.0))
        axes.set_yticks(range(len(table)), [name for name, _, _ in table])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(x)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], bbox_to_anchor=(0.4, -0.22), **_BELOW)

    return draw


DELTA = 1e-6

ROUNDS = 200

MASKS = (3.0, 30.0, 300.0, 3000.0)

REFRESH = (0.03, 0.3)

FEW_ROUNDS = (4, 8, 16)

VISITS = 5

HOPS = 60

WORST, ERROR = "certified ε of the worst pair, δ = 10⁻⁶", "error of the mean (Δ = 1)"

OVER = "error over the best curator's"


@dataclass(frozen=True)
class ErrorPoint:
    """A graph, and how finely the slow ones are looked at on it."""

    graph: Callable[[], Graph]
    words: str
    laziness: float
    """Of the walk of reports: on a graph of two halves a report that always moves never mixes."""
    sigmas: tuple[float, ...]
    """Noise of a token's visits."""
    watcher: int | None
    """Whose view of the token is accounted for in a quick run; None: all are alike."""
    masked: tuple[float, float] = (1.0, 1.1)
    """Between which numbers the error of masked gossip lies, over the curator's, at ε = 1."""


PLACES = {
    "hypercube": ErrorPoint(lambda: hypercube(6), "hypercube 2⁶", 0.5, (3.0, 6.5, 20.0), None),
    "karate": ErrorPoint(
        lambda: parse("karate"), "karate club, 34 people", 0.0, (12.0, 32.0, 100.0), 0, masked=(5.8, 5.95)
    ),
    "geometric": ErrorPoint(
        lambda: geometric(64, 0.3, seed=1), "64 random points, joined below 0.3", 0.0, (4.0, 13.0, 40.0), 14
    ),
}


def factors(protocol: Gossip) -> tuple[float, float]:
    """Worst and mean over all pairs."""
    loss = account(protocol, [0]) if vertex_transitive(protocol.graph) else pairwise(protocol)
    assert loss.factor is not None
    return loss.worst, float(np.nanmean(loss.factor))


def gossip(item: Any) -> list[list[float]]:
    """Rows: masks, refresh, rounds for which the factors hold, worst factor, mean factor."""
    name, kind = item
    graph = PLACES[name].graph()
    base = Gossip(graph, rounds=ROUNDS, sigma=1.0)
    if kind == "masked":
        return [[kappa, 0.0, ROUNDS, *factors(base.replace(masks=kappa))] for kappa in MASKS]
    losses = []
    for rounds in FEW_ROUNDS:
        for refresh in (0.0,) if kind == "plain" else REFRESH:
            losses.append([0.0, refresh, rounds, *factors(base.replace(rounds=rounds, refresh=refresh))])
    # no loss is above local DP's: fresh noise over more rounds takes minutes to account for, and 1 holds for all
    rest = [0.0] if kind == "plain" else REFRESH
    return losses + [[0.0, refresh, rounds, 1.0, 1.0] for refresh in rest for rounds in (32, 64, ROUNDS)]


def least_errors(losses: list[list[float]], errors: SpectralError, mu: FloatArray, scope: int) -> FloatArray:
    """For every μ the least error over all of them, their rounds and both kinds of steps; `scope` 3: worst pair, 4: mean."""
    best = np.full(len(mu), np.inf)
    for row in losses:
        masks, refresh, rounds = row[0], row[1], int(row[2])
        for accelerated in (False, True):
            traces = errors.traces(accelerated)
            noise = traces.squared_error(masks, refresh)
            # what is seen spans the same space with both kinds of steps; fresh noise is spread over the rounds, and is not
            if refresh and accelerated:
                continue
            some = slice(rounds, rounds + 1) if refresh else slice(1, rounds + 1)
            table = row[scope] / mu[:, None] ** 2 * noise[some] + traces.mixing[some] / 4
            best = np.minimum(best, np.sqrt(table.min(axis=1)))
    return best


def token(item: Any) -> list[float]:
    """Worst and mean (square) ε about anybody of one observer of a walk, and the error."""
    name, sigma, observer = item
    graph = PLACES[name].graph()
    protocol = GraphWalkSum(graph, VISITS * graph.n, sigma=sigma)
    epsilon = account(protocol, [observer]).epsilon(DELTA)
    return [float(np.nanmax(epsilon)), math.sqrt(np.nanmean(epsilon**2)), expected_error(protocol).rmse]


def shuffled(name: str, epsilon0: float) -> list[float]:
    """Worst and mean ε about anybody, against the curator, and the error of the better of two randomizers."""
    place = PLACES[name]
    protocol = Shuffle(place.graph(), HOPS, epsilon0, laziness=place.laziness)
    epsilon = np.atleast_1d(account(protocol, "curator").epsilon(DELTA))
    n = protocol.n
    # x rounded at random to 0 or 1, then binary response: the variance is largest at x = ½
    bit = 0.25 / math.tanh(epsilon0 / 2) ** 2 / n
    return [
        float(epsilon.max()),
        math.sqrt(np.mean(epsilon**2)),
        math.sqrt(min(bit, Laplace(1.0, epsilon0).squared_error(n))),
    ]


def at_one(points: list[list[float]], scope: int = 0) -> float:
    """The least error of those whose ε is at most 1."""
    return min((point[2] for point in points if point[scope] <= 1.0), default=math.nan)


def compare(name: str, size: Size, work: Work) -> Result:
    """One page: all protocols on one graph."""
    place = PLACES[name]
    graph = place.graph()
    n = graph.n
    epsilons = np.geomspace(0.1, 10, 3 if size is Size.QUICK else 21)
    mu = np.array([float(gaussian_mu(epsilon, DELTA)) for epsilon in epsilons])
    one = int(np.argmin(abs(epsilons - 1)))
    curator = 1 / (n * mu)
    errors = SpectralError(graph, rounds=ROUNDS)
    kinds = ("plain", "refreshed", "masked")
    found = work.by_key(gossip, {kind: [name, kind] for kind in kinds})
    by_gossip = {(kind, scope): least_errors(found[kind], errors, mu, scope) for kind in kinds for scope in (3, 4)}
    sums = np.array([plan_masked(graph, float(epsilon), DELTA).best.rmse for epsilon in epsilons])
    # parts of the graph behind few neighbours would raise it; on these three there are too few (the full run looks)
    limit = curator_limit(n, 1.0, DELTA) if size is Size.QUICK else limits(graph, 1.0, DELTA)
    # the limit is proportional to the deviation of what binary response leaves open
    floor = limit.rmse * math.cosh(0.5) / np.cosh(epsilons / 2)
    pure = math.sqrt(2) / (n * epsilons)
    best = np.minimum(curator, pure)
    sigmas, all_seen = place.sigmas[1:], size is Size.FULL or place.watcher is None
    if size is Size.FULL:
        sigmas = tuple(sorted({*place.sigmas, *(1.7 * s for s in place.sigmas)}))
    looked = range(n) if size is Size.FULL and place.watcher is not None else [place.watcher or 0]
    seen = np.array(work.map(token, [[name, sigma, v] for sigma in sigmas for v in looked]))
    walks = [
        [float(part[:, 0].max()), math.sqrt(np.mean(part[:, 1] ** 2)), float(part[0, 2])]
        for part in seen.reshape(len(sigmas), len(looked), 3)
    ]
    shuffles = [shuffled(name, float(e)) for e in np.geomspace(0.1, 10, 9 if size is Size.QUICK else 49)]
    alone = math.sqrt(n) * best
    walk_words = "token walk" if all_seen else "token walk, 1 observer"

    walked = sorted((point[0], point[2]) for point in walks)
    mixed = sorted((point[0], point[2]) for point in shuffles)
    series = (
        Series("local DP", epsilons, alone, FigureKind.LOCAL),
        Series("plain gossip", epsilons, by_gossip["plain", 3]),
        Series("refreshed gossip", epsilons, by_gossip["refreshed", 3]),
        Series(walk_words, [e for e, _ in walked], [error for _, error in walked]),
        Series("network shuffle", [e for e, _ in mixed], [error for _, error in mixed]),
        Series("curator, Gaussian noise", epsilons, curator, FigureKind.CENTRAL),
        Series("masked gossip", epsilons, by_gossip["masked", 3], FigureKind.CERTIFIED),
        Series("masked sum", epsilons, sums, FigureKind.CERTIFIED),
        Series("curator, Laplace noise", epsilons, pure, FigureKind.CENTRAL),
        Series("bound for any protocol", epsilons, floor),
    )
    ratio = {kind: float(by_gossip[kind, 3][one] / curator[one]) for kind in kinds}
    mean = {kind: float(by_gossip[kind, 4][one] / curator[one]) for kind in kinds}
    walk_ratio, shuffle_ratio = at_one(walks) / best[one], at_one(shuffles) / best[one]
    bit = 0.5 / math.tanh(0.5) / math.sqrt(n) / best[one]
    gauss = curator[one] / best[one]
    low, high = place.masked
    root = math.sqrt(n)
    findings = (
        Observation(
            "masked sum over the best curator, ε = 1",
            1.0 <= sums[one] / best[one] <= math.sqrt(n / (n - 1)) * 1.002
            and bool((sums / best < math.sqrt(n / (n - 1)) * 1.005).all()),
            certified=float(sums[one] / best[one]),
            claim=Claim.UPPER,
            note=f"√(n/(n − 1)) = {math.sqrt(n / (n - 1)):.4f}: an observer knows its own share of the noise; at every ε",
        ),
        Observation(
            "masked gossip over a curator with Gaussian noise, ε = 1",
            low <= ratio["masked"] <= high,
            certified=ratio["masked"],
            claim=Claim.EXACT,
            note="as good as a curator's, by messages between neighbours alone"
            if high < 2
            else "a person with a single friend has nobody to share a mask with but the one who looks: local DP's √34 = 5.83",
        ),
        Observation(
            "plain gossip, and refreshed, over a curator with Gaussian noise, ε = 1",
            root <= ratio["plain"] < 1.02 * root and root <= ratio["refreshed"] < 1.15 * root,
            formula=root,
            certified=f"{ratio['plain']:.3f} / {ratio['refreshed']:.3f}",
            claim=Claim.EXACT,
            note="a neighbour reads the first message: the worst pair gains nothing over local DP, √n",
        ),
        Observation(
            "the same, ε of the mean loss over pairs",
            mean["plain"] < ratio["plain"] and mean["refreshed"] < ratio["refreshed"],
            certified=f"{mean['plain']:.3f} / {mean['refreshed']:.3f}",
            claim=Claim.EXACT,
            note="amplification by distance is real, for those at a distance",
        ),
        Observation(
            "token walk over the best curator, ε ≤ 1",
            walk_ratio > 1.0,
            certified=walk_ratio,
            claim=Claim.UPPER if all_seen else Claim.ESTIMATE,
            note=f"{VISITS} visits each, neighbours see who hands them the token"
            + ("" if all_seen else f"; seen by 1 of {n}, placed where it is likely worst (the full run looks at all)"),
        ),
        Observation(
            "network shuffle over the best curator, ε ≤ 1",
            1.0 < shuffle_ratio <= bit * 1.02,
            certified=shuffle_ratio,
            claim=Claim.UPPER,
            note=f"against the server; {n} reports are few to hide among: one random bit each, not shuffled, has {bit:.3g}",
        ),
        Observation(
            "a curator with Laplace noise over one with Gaussian noise, ε = 1",
            near(pure[one] / curator[one], math.sqrt(2) * mu[one]),
            certified=float(pure[one] / curator[one]),
            claim=Claim.EXACT,
            note="for a single number pure ε needs less noise than δ = 10⁻⁶; vectors and many rounds turn that round",
        ),
        Observation(
            "what nobody can beat, over the best curator, ε = 1",
            bool((floor < best).all() and (floor < by_gossip["masked", 3]).all()),
            certified=float(floor[one] / best[one]),
            claim=Claim.EXACT,
            note="a proved lower bound, for any noise: a third of the Laplace curator's error",
        ),
    )
    table_rows = [
        ("local DP", root, root),
        ("plain gossip", ratio["plain"] * gauss, mean["plain"] * gauss),
        ("refreshed gossip", ratio["refreshed"] * gauss, mean["refreshed"] * gauss),
        (walk_words, walk_ratio, at_one(walks, 1) / best[one]),
        ("network shuffle", shuffle_ratio, at_one(shuffles, 1) / best[one]),
        ("masked gossip", ratio["masked"] * gauss, mean["masked"] * gauss),
        ("masked sum", float(sums[one] / best[one]), float(sums[one] / best[one])),
    ]
    return Result(
        settings={
            "graph": f"{place.words}: n = {n}, {graph.m} links",
            "δ": DELTA,
            "local DP, curator": "Gaussian or Laplace noise, whichever errs less",
            "gossip": f"at most {ROUNDS} rounds, κ ≤ {MASKS[-1]:g}, Metropolis",
            "token": f"{VISITS} visits each",
            "shuffle": f"{HOPS} hops, laziness {place.laziness:g}",
        },
        findings=findings,
        panels=(
            Panel(
                "Worst pair",
                WORST,
                ERROR,
                series,
                draw=curves(series, WORST, ERROR, (0.3 / n, max(13.0, 1.3 * max(error for _, error in walked)))),
                log_x=True,
                log_y=True,
            ),
            Panel(
                "At ε = 1",
                OVER,
                "protocol",
                tuple(Series(name, [worst], [average]) for name, worst, average in table_rows),
                draw=rows(table_rows, OVER),
                log_x=True,
            ),
        ),
        tables=(
            ResultTable(
                "Error over the best curator's at ε = 1",
                ("protocol", "ε of the worst pair", "ε of the mean loss"),
                tuple(table_rows),
            ),
        ),
    )


run_error_geometric = partial(compare, "geometric")

ERROR_GEOMETRIC = Experiment(
    id="ours-error-geometric",
    place="Error and privacy",
    title="error against certified ε on a random geometric graph",
    shows="Masks between neighbours do on an irregular graph too, if nobody hangs by one link.",
    run=run_error_geometric,
    quick="6 s; a token of two noise levels, seen by one party",
    full="25 min; more noise levels, every observer of the token",
)


run_error_hypercube = partial(compare, "hypercube")

ERROR_HYPERCUBE = Experiment(
    id="ours-error-hypercube",
    place="Error and privacy",
    title="error against certified ε on the hypercube 2⁶",
    shows="On a graph that mixes well masks give a curator's error; without them the worst pair stays at local DP's.",
    run=run_error_hypercube,
    quick="6 s; a token of two noise levels",
    full="1 min; more noise levels",
)


run_error_karate = partial(compare, "karate")

ERROR_KARATE = Experiment(
    id="ours-error-karate",
    place="Error and privacy",
    title="error against certified ε on the karate club",
    shows="Where a party has one neighbour only, gossip of any kind stays at local DP's error; a masked sum does not.",
    run=run_error_karate,
    quick="6 s; a token of two noise levels, seen by one party",
    full="6 min; more noise levels, every observer of the token",
)
