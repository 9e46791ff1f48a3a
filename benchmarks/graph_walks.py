"""What walks on graphs gain: the bound by gaps as it was, by moments, by stretches, beside what is published.

python benchmarks/graph_walks.py            the table
python benchmarks/graph_walks.py hubs       who learns most on hubs and trees
python benchmarks/graph_walks.py histograms certified over attacked, before and after the visits were averaged over
python benchmarks/graph_walks.py paths      what the secrecy of the path is worth: the best attack, told the path and not

Several parts may be named: python benchmarks/graph_walks.py histograms paths
"""

from __future__ import annotations

import functools
import sys
import time

import numpy as np

import netdp
from measure import size
from netdp import graphs
from netdp.families.token.account import graph_walk
from netdp.families.token.account.energy import profile
from netdp.families.token.account.events import Event, compose_events, gaussian, mixture, more_delta
from netdp.families.token.account.ring import bare_response
from netdp.protocols import GraphWalkSum, WalkDescent, WalkHistogram

DELTA = 1e-6
#: graph, visits per user, σ/Δ, pairs (observer, target)
CASES = (
    (graphs.ring(64), 100, 30.0, ((0, 1), (0, 8), (0, 32))),
    (graphs.hypercube(6), 10, 10.0, ((0, 1), (0, 63))),
    (graphs.grid(8, 8), 20, 10.0, ((0, 1), (0, 63), (27, 28))),
    (graphs.star(32), 20, 10.0, ((0, 1), (1, 0), (1, 2))),
    (graphs.balanced_tree(2, 4), 20, 10.0, ((0, 1), (0, 30), (30, 29))),
)


def before(p: GraphWalkSum, observer: int, target: int) -> float:
    """As many gaps as there can be visits but for 10⁻¹⁵: the bound before this table."""
    horizon, mu = min(p.steps, 8 * p.n), 1.0 / p.sigma
    gaps = graph_walk.hitting_law(p.transition, target, (target, observer), horizon)
    count, unlikely = graph_walk.most_visits(p, target)
    mus, weights = graph_walk._binned(mu / np.sqrt(np.arange(1, horizon + 1)), gaps)
    last = Event(gaussian(mu / np.sqrt(1 + p.closing)), 1)
    return float(compose_events([Event(mixture(mus, weights), count), last], unlikely).epsilon(DELTA))


def table() -> None:
    print(f"ε at δ = {DELTA:g}; sums, closing noise n; descent by iteration with the same noise")
    print(
        f"{'graph':22} {'v':>3} {'u':>3} {'before':>8} {'gaps':>8} {'stretch':>8} {'descent':>8} {'2024':>8} {'local':>8}"
    )
    for graph, visits, sigma, pairs in size(CASES, quick=((graphs.ring(6), 5, 10.0, ((0, 1),)),)):
        p = GraphWalkSum(graph, steps=visits * graph.n, sigma=sigma)
        d = WalkDescent(graph, steps=p.steps, sigma=sigma, step=0.1, clip=0.5, closing=True)
        for v, u in pairs:
            began = time.perf_counter()
            key = graph_walk._key(p)
            found = [
                before(p, v, u),
                *(
                    float(profile(graph_walk._moments(key, (v,), u, how), 1 / sigma).epsilon(DELTA))
                    for how in ("gaps", "sum", "descent")
                ),
            ]
            printed = float(np.asarray(netdp.account(d, [v], method="published").epsilon(DELTA))[u])
            local = float(graph_walk.local_profile(p, u).epsilon(DELTA))
            numbers = " ".join(f"{x:8.3f}" for x in (*found, printed, local))
            print(f"{graph.name:22} {v:3} {u:3} {numbers}   {time.perf_counter() - began:.1f} s")


def hubs() -> None:
    for graph in (graphs.star(16), graphs.balanced_tree(2, 3), graphs.barabasi_albert(24, 2, seed=1)):
        for walk in ("metropolis", "simple"):
            p = WalkDescent(graph, steps=10 * graph.n, sigma=10.0, step=0.1, clip=0.5, walk=walk)
            print(f"\n{p}\n{netdp.who_learns_most(p, DELTA)}")


#: graph, visits per user, γ
HEAPS = (
    (graphs.ring(8), 10, 0.5),
    (graphs.ring(16), 20, 0.5),
    (graphs.ring(8), 10, 0.9),
    (graphs.star(8), 10, 0.5),
    (graphs.grid(4, 4), 5, 0.7),
    (graphs.hypercube(4), 10, 0.8),
    (graphs.complete(8), 3, 0.5),
)


def counted(p: WalkHistogram, target: int) -> tuple[float, float]:
    """Before: as many responses as there can be visits but for 10⁻¹¹, each among those that follow it; and local DP at 10⁻¹⁵."""
    bare = bare_response(p)
    (local, unlikely), delta = graph_walk.most_visits(p, target), 1e-3
    return (
        float(graph_walk._heaps_after(p, (0,), target, graph_walk._gap_law(p, (0,), target, None)).epsilon(delta)),
        float(more_delta(bare.self_compose(local), unlikely).epsilon(delta)),
    )


@functools.cache
def bits(k: int, m: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """How many ones a stretch of m steps has, k of them the target's: the target holding a one, and a zero like all others."""
    from scipy.stats import binom

    theirs = binom.pmf(np.arange(m - k + 1), m - k, gamma / 2)
    return tuple(np.convolve(binom.pmf(np.arange(k + 1), k, a), theirs) for a in (1 - gamma / 2, gamma / 2))


def attacked(p: WalkHistogram, target: int, runs: int, delta: float) -> float:
    """ε of the likelihood ratio of somebody who is told the path, by simulation."""
    draw = np.random.default_rng(1)
    reach, here = np.cumsum(p.transition.toarray(), axis=1), draw.integers(p.n, size=runs)
    if not np.allclose(p.stationary, 1 / p.n):
        here = draw.choice(p.n, runs, p=np.asarray(p.stationary))
    paths = np.empty((runs, p.steps), dtype=int)
    for t in range(p.steps):
        paths[:, t] = here
        here = np.minimum((draw.random(runs)[:, None] > reach[here]).sum(axis=1), p.n - 1)
    losses = np.zeros((2, runs))
    for run, path in enumerate(paths):
        for part in np.split(path, np.flatnonzero(path == 0)):
            k, m = int((part == target).sum()), int((part != 0).sum())
            if k:
                one, zero = bits(k, m, p.gamma)
                x = draw.binomial(k, 1 - p.gamma / 2) + draw.binomial(m - k, p.gamma / 2)
                y = draw.binomial(m, p.gamma / 2)
                losses[:, run] += np.log(one[x] / zero[x]), np.log(zero[y] / one[y])
    low, high = 0.0, 500.0
    for _ in range(50):
        eps = (low + high) / 2
        more = max(np.maximum(-np.expm1(eps - loss), 0).mean() for loss in losses) > delta
        low, high = (eps, high) if more else (low, eps)
    return low


def histograms() -> None:
    delta, ratios = 1e-3, []
    print(f"ε at δ = {delta:g} of histograms, two labels; × what an attack that is told the path attains; local DP")
    print(
        f"{'graph':14} {'v':>3} {'γ':>4} {'u':>3} {'attack':>8} {'before':>16} {'now':>16} {'local: before, now':>20}"
    )
    for graph, visits, gamma in size(HEAPS, quick=HEAPS[:1]):
        p = WalkHistogram(graph, steps=visits * graph.n, domain=2, gamma=gamma)
        for u in (1, graph.n // 2):
            told = attacked(p, u, size(20_000, quick=500), delta)
            (old, local), now = counted(p, u), float(graph_walk.histogram_profile(p, (0,), u, True).epsilon(delta))
            averaged = float(graph_walk.published_profile(p, u).epsilon(delta))
            ratios.append((old / told, now / told))
            print(
                f"{graph.name:14} {visits:3} {gamma:4} {u:3} {told:8.3f} {old:8.3f} (×{old / told:4.2f}) {now:8.3f} "
                f"(×{now / told:4.2f}) {local:10.2f} {averaged:9.2f}"
            )
    print(
        "median: ×{:.2f} before, ×{:.2f} now; largest: ×{:.2f}, ×{:.2f}".format(
            *np.median(ratios, 0), *np.max(ratios, 0)
        )
    )


#: graph, visits per user, σ/Δ, pairs (observer, target)
SECRET = (
    (graphs.ring(16), 20, 6.0, ((0, 1), (0, 8))),
    (graphs.hypercube(4), 10, 3.0, ((0, 1), (0, 15))),
    (graphs.grid(4, 4), 10, 3.0, ((0, 1), (0, 15))),
    (graphs.star(16), 10, 6.0, ((0, 1), (1, 2))),
    (graphs.complete(16), 10, 3.0, ((0, 1),)),
)


def paths() -> None:
    """Sums: others hold the lower end, and the senders are known to the observers, as over any links."""
    from netdp.audit import SIMULATOR
    from netdp.families.token.account.path import path_energy
    from netdp.families.token.attack import WalkAttack
    from netdp.privacy import gaussian_delta
    from netdp.protocols import PathSum

    runs, delta = size(60, quick=2), 1e-2
    print(f"ε at δ = {delta:g}, sums: the likelihood ratio of what is seen, not told the path | told it | certified")
    for graph, visits, sigma, pairs in size(SECRET, quick=SECRET[:1]):
        p = GraphWalkSum(graph, steps=visits * graph.n, sigma=sigma)
        for v, u in pairs:
            attack = WalkAttack(p.replace(sensitivity=1.0), (v,), u, SIMULATOR)
            worlds = []
            for within in (False, True):
                scores = [netdp.simulate(p, values(p, u, within), seed=seed, record=[v]) for seed in range(64 * runs)]
                worlds.append(attack.scores(stretches(p, scores), len(scores)))
            without, within_ = worlds
            energy = [
                path_energy(PathSum(p.n, run.transcript.paths, sigma, closing=p.closing), [v])[u]
                for run in scores[:1500]
            ]

            def secret(eps: float, without: np.ndarray = without, within: np.ndarray = within_) -> float:
                return max(
                    np.maximum(-np.expm1(eps - within), 0).mean(), np.maximum(-np.expm1(eps + without), 0).mean()
                )

            def told(eps: float, energy: list[float] = energy) -> float:
                return float(np.mean([gaussian_delta(np.sqrt(e), eps) for e in energy]))

            found = [epsilon_at(one, delta) for one in (secret, told)]
            certified = float(graph_walk.target_profile(p, (v,), u, True).epsilon(delta))
            print(
                f"{graph.name:14} {visits:3} {sigma:4} {v:3} {u:3}   {found[0]:.3f} | {found[1]:.3f} | {certified:.3f}"
            )


def values(p: GraphWalkSum, target: int, within: bool) -> np.ndarray:
    """Everybody at the lower end; the target at the upper one, within."""
    held = np.zeros(p.n)
    held[target] = float(within)
    return held


def stretches(p: GraphWalkSum, runs: list) -> object:
    """What the observers see of many runs."""
    from netdp.families.token.attack import Stretches, cut

    return Stretches.together([cut(p, run, number) for number, run in enumerate(runs)])


def epsilon_at(profile: object, delta: float) -> float:
    """Where a falling profile is δ."""
    low, high = 0.0, 100.0
    for _ in range(40):
        eps = (low + high) / 2
        low, high = (eps, high) if profile(eps) > delta else (low, eps)  # type: ignore[operator]
    return low


if __name__ == "__main__":
    parts = {"table": table, "hubs": hubs, "histograms": histograms, "paths": paths}
    asked = sys.argv[1:] or ["table"]
    if unknown := set(asked) - set(parts):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for part in asked:
        parts[part]()
