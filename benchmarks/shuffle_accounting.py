"""Speed of the accounting of network shuffling, and its numbers on real graphs: `python benchmarks/shuffle_accounting.py`.

(a) a whole δ(ε) curve of the uniform shuffler at n = 10⁴, 10⁵, 10⁶
(b) the eigenvalue certificate on real graphs (needs NETDP_DATA) and on a random 10-regular graph of 10⁵ users (10⁶: --large)
(c) ε at δ = 10⁻⁶ on the real graphs: published, certified, and a trusted shuffler
(d) Tables 1, 3 and 4 of the paper: Γ as printed, as its convention gives it, and as defined
(e) Figures 4 to 8 as data, published and certified (a minute; --figures); Figure 9: benchmarks/shuffling.py d
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from netdp import graphs
from netdp.accounting.heap.clones import shuffled_epsilon, shuffled_profile
from netdp.accounting.published import network_shuffling as paper
from netdp.errors import DataNotFound
from netdp.graphs.certificate import cached_bound, spectral_bound
from netdp.graphs.named import data_file
from netdp.planning.shuffle.plan import plan_rounds
from netdp.reproduce.network_shuffling import curves as figures

REAL = ("twitch", "facebook-pages", "deezer", "enron")


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def curves() -> None:
    print("(a) δ(ε) of the uniform shuffler, ε₀ = 1")
    for n in (10_000, 100_000, 1_000_000):
        seconds, curve = timed(lambda n=n: shuffled_profile(n - 1, 1.0))
        print(f"  n = {n:>9,}  {seconds:6.3f} s  {len(curve.epsilons)} knots  ε(1e-6) = {curve.epsilon(1e-6):.5f}")


def certificates(large: bool) -> None:
    print("(b) proved second eigenvalue of the simple walk")
    for name in REAL:
        try:
            graph = graphs.dataset(name)
        except DataNotFound as absent:
            print(f"  {name}: {absent}")
            continue
        seconds, bound = timed(lambda graph=graph: cached_bound(graph, 0.0))
        _line(name, graph, seconds, bound)
    for n in (100_000, 1_000_000) if large else (100_000,):
        graph = graphs.regular(n, 10, 0)
        seconds, bound = timed(lambda graph=graph: spectral_bound(graph))
        _line("10-regular", graph, seconds, bound)


def _line(name, graph, seconds, bound) -> None:
    print(
        f"  {name:<15} n = {graph.n:>9,} m = {graph.m:>9,}  {seconds:6.1f} s  {bound.products:4} products  "
        f"λ ≤ {bound.value:.6f} (estimate {bound.estimate:.6f})"
    )


def numbers(delta: float = 1e-6) -> None:
    print(f"(c) ε at δ = {delta:g}: published at t = α⁻¹ ln n; certified at the rounds planned; trusted shuffler")
    for name in REAL:
        try:
            graph = graphs.dataset(name)
        except DataNotFound:
            continue
        t = paper.mixing_time(graph)
        for epsilon0 in (0.5, 1.0, 2.0):
            printed = paper.epsilon_all(epsilon0, graph.n, paper.stationary_squares(graph, t), delta)
            plan = plan_rounds(graph, epsilon0, delta)
            uniform = shuffled_epsilon(graph.n - 1, epsilon0, delta)
            print(
                f"  {name:<15} ε₀ = {epsilon0:3.1f}  published {printed:8.3f} (t = {t})  certified {plan.promised:.4f} "
                f"(t = {plan.protocol.rounds})  trusted shuffler {uniform:.4f}"
            )


def loops_of(name: str):
    """How many self-loops each user has in the Facebook file; a Graph holds none, the printed Γ counts them."""
    if name != "facebook-pages":
        return None
    with open(data_file("facebook-pages/edges.csv", name, None), encoding="utf-8") as file:
        raw = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    return np.bincount(raw[raw[:, 0] == raw[:, 1], 0], minlength=graphs.dataset(name).n)


def tables() -> None:
    print("(d) Table 4: Γ printed, by crediting edges to the smaller number, and as defined, nΣπ²")
    for name in REAL:
        try:
            graph, loops = graphs.dataset(name), loops_of(name)
        except DataNotFound:
            continue
        found = paper.printed_gamma(graph, loops)
        print(
            f"  {name:<15} printed {paper.TABLE4[name]:8.4f}  found {found:8.4f}  as defined {paper.gamma(graph):8.3f}"
        )
    rates = ", ".join(f"{name} {rate:.4f}" for name, rate in paper.table1(1.0, 10_000).items())
    print(f"  Table 1 at ε₀ = 1, n = 10⁴: {rates}")
    for what, costs in paper.TABLE3.items():
        print(f"  Table 3, {what}: " + ", ".join(f"{who} {cost}" for who, cost in costs.items()))


def drawn() -> None:
    print("(e) Figures 4 to 8")
    for number in range(4, 9):
        try:
            lines = getattr(figures, f"figure{number}")()
        except DataNotFound as absent:
            print(f"  figure {number}: {absent}")
            continue
        for line in lines:
            pairs = zip(line.x, line.published, line.certified, strict=True)
            points = "  ".join(f"{x:g}: {p:.3g}/{c:.3g}" for x, p, c in pairs)
            print(f"  figure {number}, {line.label} (x: published/certified)  {points}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also the random graph of a million users")
    parser.add_argument("--figures", action="store_true", help="also the data of Figures 4 to 8")
    chosen = parser.parse_args()
    curves()
    certificates(chosen.large)
    numbers()
    tables()
    if chosen.figures:
        drawn()
