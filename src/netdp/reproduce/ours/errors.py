"""Error against certified ε for every protocol that answers a mean on a graph: what the pages per graph share.

The answer is the mean of n values from an interval of length Δ = 1; its error is the root mean square for the worst values.

**One accounting for all ε.** Where everything seen is linear and Gaussian (local DP, gossip, the curator) μ = √factor·Δ/σ,
so a target (ε, δ) gives σ = √factor/μ(ε, δ) with the factor accounted for once. More rounds only show more, so the factor of
the most rounds holds for fewer, and for every ε the number of rounds and the strength of the masks with the least error
are taken (`netdp.utility.spectral` has the error for all rounds at once).

**The others.** A masked sum is planned for every ε. A token's path and a shuffled report are secret, their curves are not
Gaussian: noise levels are chosen, and (ε, error) is computed at each. The error at ε = 1 is then that of the noisiest needed,
the best with ε ≤ 1.

*Left:* ε is that of the worst pair (of the worst user, against the server, for the shuffle). *Right:* at ε = 1, and with the
ε of the mean loss over all pairs (the mean of μ², of ε² for the token), which is what figures about amplification by
distance usually show: there plain and refreshed gossip gain, while their worst pair, two neighbours, stays at local DP's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netdp.accounting import account, pairwise
from netdp.graphs import Graph, geometric, hypercube, parse
from netdp.graphs.symmetry import vertex_transitive
from netdp.mechanisms import Laplace
from netdp.numerics.arrays import FloatArray
from netdp.planning.masked.plan import plan_masked
from netdp.privacy import Claim, gaussian_mu
from netdp.protocols import Gossip, GraphWalkSum, Shuffle
from netdp.utility import expected_error, limits
from netdp.utility.limits import curator_limit
from netdp.utility.spectral import SpectralError

from ..experiment import Finding, Kind, Panel, Result, Series, Size, Table, near
from ..running import Work
from .error_pictures import curves, rows

DELTA = 1e-6
ROUNDS = 200
MASKS = (3.0, 30.0, 300.0, 3000.0)
REFRESH = (0.03, 0.3)
FEW_ROUNDS = (4, 8, 16)
VISITS = 5
HOPS = 60
WORST, ERROR = "certified ε of the worst pair, δ = 10⁻⁶", "error of the mean (Δ = 1)"
OVER = "error over the trusted curator's"


@dataclass(frozen=True)
class Place:
    """A graph, and how finely the slow ones are looked at on it."""

    graph: Callable[[], Graph]
    words: str
    laziness: float
    """Of the walk of reports: on a graph of two halves a report that always moves never mixes."""
    sigmas: tuple[float, ...]
    """Noise of a token's visits."""
    watchers: tuple[int, ...] | None
    """Whose view of the token is accounted for in a quick run; None: all are alike."""
    masked: tuple[float, float] = field(default=(1.0, 1.1))
    """Between which numbers the error of masked gossip lies, over the curator's, at ε = 1."""


PLACES = {
    "hypercube": Place(lambda: hypercube(6), "hypercube 2⁶", 0.5, (3.0, 6.5, 20.0), None),
    "karate": Place(
        lambda: parse("karate"), "karate club, 34 people", 0.0, (12.0, 32.0, 100.0), (0,), masked=(5.8, 5.95)
    ),
    "geometric": Place(
        lambda: geometric(64, 0.3, seed=1), "64 random points, joined below 0.3", 0.0, (4.0, 13.0, 40.0), (14,)
    ),
}


def factors(protocol: Gossip) -> tuple[float, float]:
    """Worst and mean over all pairs."""
    loss = account(protocol, [0]) if vertex_transitive(protocol.graph) else pairwise(protocol)
    assert loss.factor is not None
    return float(np.nanmax(loss.factor)), float(np.nanmean(loss.factor))


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
    epsilons = np.geomspace(0.1, 10, 5 if size is Size.QUICK else 21)
    mu = np.array([float(gaussian_mu(epsilon, DELTA)) for epsilon in epsilons])
    one = int(np.argmin(abs(epsilons - 1)))
    curator = 1 / (n * mu)
    errors = SpectralError(graph, rounds=ROUNDS)
    kinds = ("plain", "refreshed", "masked")
    found = dict(zip(kinds, work.map(gossip, [[name, kind] for kind in kinds]), strict=True))
    by_gossip = {(kind, scope): least_errors(found[kind], errors, mu, scope) for kind in kinds for scope in (3, 4)}
    sums = np.array([plan_masked(graph, float(epsilon), DELTA).best.rmse for epsilon in epsilons])
    # parts of the graph behind few neighbours would raise it; on these three there are too few (the full run looks)
    limit = curator_limit(n, 1.0, DELTA) if size is Size.QUICK else limits(graph, 1.0, DELTA)
    # the limit is proportional to the deviation of what binary response leaves open
    floor = limit.rmse * math.cosh(0.5) / np.cosh(epsilons / 2)
    pure = math.sqrt(2) / (n * epsilons)
    sigmas, watchers = place.sigmas[1:], place.watchers
    if size is Size.FULL:
        sigmas = tuple(sorted({*place.sigmas, *(1.7 * s for s in place.sigmas)}))
        watchers = None if watchers is None else tuple(range(n))
    looked = (0,) if watchers is None else watchers
    seen = work.map(token, [[name, sigma, v] for sigma in sigmas for v in looked])
    walks = []
    for place_of in range(len(sigmas)):
        part = np.array(seen[place_of * len(looked) : (place_of + 1) * len(looked)])
        walks.append([float(part[:, 0].max()), math.sqrt(np.mean(part[:, 1] ** 2)), float(part[0, 2])])
    all_seen = size is Size.FULL or watchers is None
    shuffles = [shuffled(name, float(e)) for e in np.geomspace(0.1, 10, 17 if size is Size.QUICK else 49)]
    alone = 1 / (math.sqrt(n) * mu)
    walk_words = (
        "token walk"
        if all_seen
        else "token walk, 1 observer"
        if len(looked) == 1
        else f"token walk, {len(looked)} observers"
    )

    walked = sorted((point[0], point[2]) for point in walks)
    mixed = sorted((point[0], point[2]) for point in shuffles)
    series = (
        Series("local DP", epsilons, alone, Kind.LOCAL),
        Series("plain gossip", epsilons, by_gossip["plain", 3]),
        Series("refreshed gossip", epsilons, by_gossip["refreshed", 3]),
        Series(walk_words, [e for e, _ in walked], [error for _, error in walked]),
        Series("network shuffle", [e for e, _ in mixed], [error for _, error in mixed]),
        Series("trusted curator", epsilons, curator, Kind.CENTRAL),
        Series("masked gossip", epsilons, by_gossip["masked", 3], Kind.CERTIFIED),
        Series("masked sum", epsilons, sums, Kind.CERTIFIED),
        Series("curator, Laplace noise", epsilons, pure, Kind.CENTRAL),
        Series("bound for any protocol", epsilons, floor),
    )
    ratio = {kind: float(by_gossip[kind, 3][one] / curator[one]) for kind in kinds}
    mean = {kind: float(by_gossip[kind, 4][one] / curator[one]) for kind in kinds}
    walk_ratio, shuffle_ratio = at_one(walks) / curator[one], at_one(shuffles) / curator[one]
    bit = 0.5 / math.tanh(0.5) / math.sqrt(n) / curator[one]
    low, high = place.masked
    root = math.sqrt(n)
    findings = (
        Finding(
            "masked sum over the curator, ε = 1",
            1.0 <= sums[one] / curator[one] <= math.sqrt(n / (n - 1)) * 1.002
            and bool((sums / curator < math.sqrt(n / (n - 1)) * 1.005).all()),
            certified=float(sums[one] / curator[one]),
            claim=Claim.UPPER,
            note=f"√(n/(n − 1)) = {math.sqrt(n / (n - 1)):.4f}: an observer knows its own share of the noise; at every ε",
        ),
        Finding(
            "masked gossip over the curator, ε = 1",
            low <= ratio["masked"] <= high,
            certified=ratio["masked"],
            claim=Claim.EXACT,
            note="as good as a curator's, by messages between neighbours alone"
            if high < 2
            else "a person with a single friend has nobody to share a mask with but the one who looks: local DP's √34 = 5.83",
        ),
        Finding(
            "plain gossip, and refreshed, over the curator, ε = 1",
            root <= ratio["plain"] < 1.02 * root and root <= ratio["refreshed"] < 1.15 * root,
            formula=root,
            certified=f"{ratio['plain']:.3f} / {ratio['refreshed']:.3f}",
            claim=Claim.EXACT,
            note="a neighbour reads the first message: the worst pair gains nothing over local DP, √n",
        ),
        Finding(
            "the same, ε of the mean loss over pairs",
            mean["plain"] < ratio["plain"] and mean["refreshed"] < ratio["refreshed"],
            certified=f"{mean['plain']:.3f} / {mean['refreshed']:.3f}",
            claim=Claim.EXACT,
            note="amplification by distance is real, for those at a distance",
        ),
        Finding(
            "token walk over the curator, ε ≤ 1",
            walk_ratio > 1.0,
            certified=walk_ratio,
            claim=Claim.UPPER if all_seen else Claim.ESTIMATE,
            note=f"{VISITS} visits each, neighbours see who hands them the token"
            + (
                ""
                if all_seen
                else f"; seen by {len(looked)} of {n}, placed where it is likely worst (the full run looks at all)"
            ),
        ),
        Finding(
            "network shuffle over the curator, ε ≤ 1",
            pure[one] / curator[one] < shuffle_ratio <= bit * 1.02,
            certified=shuffle_ratio,
            claim=Claim.UPPER,
            note=f"against the server; {n} reports are few to hide among: one random bit each, not shuffled, has {bit:.3g}",
        ),
        Finding(
            "a curator with Laplace noise over one with Gaussian noise, ε = 1",
            near(pure[one] / curator[one], math.sqrt(2) * mu[one]),
            certified=float(pure[one] / curator[one]),
            claim=Claim.EXACT,
            note="for a single number pure ε needs less noise than δ = 10⁻⁶; vectors and many rounds turn that round",
        ),
        Finding(
            "what nobody can beat, over the curator, ε = 1",
            bool((floor < np.minimum(curator, pure)).all() and (floor < by_gossip["masked", 3]).all()),
            certified=float(floor[one] / curator[one]),
            claim=Claim.EXACT,
            note="a proved lower bound, for any noise: a third of the Laplace curator's error",
        ),
    )
    table_rows = [
        ("local DP", root, root),
        ("plain gossip", ratio["plain"], mean["plain"]),
        ("refreshed gossip", ratio["refreshed"], mean["refreshed"]),
        (walk_words, walk_ratio, at_one(walks, 1) / curator[one]),
        ("network shuffle", shuffle_ratio, at_one(shuffles, 1) / curator[one]),
        ("masked gossip", ratio["masked"], mean["masked"]),
        ("masked sum", float(sums[one] / curator[one]), float(sums[one] / curator[one])),
    ]
    assert near(alone[one] / curator[one], root, 1e-9)
    return Result(
        settings={
            "graph": f"{place.words}: n = {n}, {graph.m} links",
            "δ": DELTA,
            "local DP, curator": "Gaussian noise",
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
            Table(
                "Error over the trusted curator's at ε = 1",
                ("protocol", "ε of the worst pair", "ε of the mean loss"),
                tuple(table_rows),
            ),
        ),
    )
