"""Speed of the accounting of network shuffling: `python benchmarks/shuffle_accounting.py`.

(a) a whole δ(ε) curve of the uniform shuffler at n = 10⁴, 10⁵, 10⁶
(b) the eigenvalue certificate on real graphs (needs NETDP_DATA) and on a random 10-regular graph of 10⁵ users (10⁶: --large)
(c) how long planning takes on the real graphs

Its numbers beside the paper's, Tables 1, 3 and 4 and Figures 4 to 9: `netdp reproduce --list`, 003-….
"""

from __future__ import annotations

import argparse
import time

from measure import QUICK, few, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.shuffle.plan import plan_rounds
from netdp.graphs.certificate import cached_bound, spectral_bound
from netdp.privacy.clones import shuffled_profile

REAL = few(("twitch", "facebook-pages", "deezer", "enron"))


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def real(name: str) -> graphs.Graph:
    return graphs.regular(300, 8, seed=0) if QUICK else graphs.dataset(name)


def curves() -> None:
    print("(a) δ(ε) of the uniform shuffler, ε₀ = 1")
    for n in size((10_000, 100_000, 1_000_000), quick=(100,)):
        seconds, curve = timed(lambda n=n: shuffled_profile(n - 1, 1.0))
        print(f"  n = {n:>9,}  {seconds:6.3f} s  {len(curve.epsilons)} knots  ε(1e-6) = {curve.epsilon(1e-6):.5f}")


def certificates(large: bool) -> None:
    print("(b) proved second eigenvalue of the simple walk")
    for name in REAL:
        try:
            graph = real(name)
        except DataNotFound as absent:
            print(f"  {name}: {absent}")
            continue
        seconds, bound = timed(lambda graph=graph: cached_bound(graph, 0.0))
        _line(name, graph, seconds, bound)
    for n in size((100_000, 1_000_000) if large else (100_000,), quick=(100,)):
        graph = graphs.regular(n, 10, 0)
        seconds, bound = timed(lambda graph=graph: spectral_bound(graph))
        _line("10-regular", graph, seconds, bound)


def plans(delta: float = 1e-6) -> None:
    print(f"(c) the fewest hops to a trusted shuffler's ε, ε₀ = 1, δ = {delta:g}")
    for name in REAL:
        try:
            graph = real(name)
        except DataNotFound as absent:
            print(f"  {name}: {absent}")
            continue
        seconds, plan = timed(lambda graph=graph: plan_rounds(graph, 1.0, delta))
        print(f"  {name:<15} {seconds:6.1f} s  {plan.protocol.rounds:>6} hops  ε = {plan.promised:.4f}")


def _line(name, graph, seconds, bound) -> None:
    print(
        f"  {name:<15} n = {graph.n:>9,} m = {graph.m:>9,}  {seconds:6.1f} s  {bound.products:4} products  "
        f"λ ≤ {bound.value:.6f} (estimate {bound.estimate:.6f})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also the random graph of a million users")
    chosen = parser.parse_args()
    curves()
    certificates(chosen.large)
    plans()
