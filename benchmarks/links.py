"""What a few random links buy: `python benchmarks/links.py a b c` (a and b need NETDP_DATA).

(a) hops of network shuffling to a trusted shuffler's ε (ε₀ = 1, δ = 10⁻⁶), without links and with one, two and four random rings:
    by the older bound, which the figures asked for were made with (beside it that figure and the ratio), and by the planner
    as it is now
(b) the same graphs, and a ring, a grid and a tree: rounds of plain gossip until differences are a thousandth (from the spectral
    gap), and rounds of a flood (the diameter)
(c) a million parties: how long it takes to lay the links
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from measure import QUICK, few, peak, run_cases, seconds, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.gossip.plan import gossip_rounds
from netdp.families.shuffle.account.mixing import fewest_rounds
from netdp.families.shuffle.plan import plan_rounds
from netdp.graphs import Graph
from netdp.graphs.families import with_links
from netdp.graphs.shape import diameter
from netdp.graphs.spectrum import spectral_gap
from netdp.privacy.clones import Heap

DELTA, EPSILON0, SHARE = 1e-6, 1.0, 0.01
RINGS = few((0, 1, 2, 4), quick=2)
ASKED = {
    "deezer": (10_133, 205, 120, 74),
    "facebook-pages": (6_966, 493, 317, 191),
    "enron": (8_791, 206, 133, 93),
    "twitch": (155, 70, 62, 51),
}


def older(graph: Graph) -> int:
    """Hops by the bound of one common law, for δ at most (1 + share)·δ at the trusted shuffler's ε."""
    uniform = Heap.of(graph.n - 1, EPSILON0).epsilon(DELTA)
    local = float(Heap.of(0, EPSILON0).deltas(uniform)[0])
    return fewest_rounds(graph, 0.0, 0.9 * SHARE * DELTA / local).rounds


def real() -> Iterator[tuple[str, Graph]]:
    if QUICK:
        yield "twitch", graphs.regular(300, 8, seed=0)
        return
    for name in ASKED:
        try:
            yield name, graphs.dataset(name)
        except DataNotFound as absent:
            print(f"  {name}: {absent}")


def hops() -> str:
    print(
        "    graph            rings  links a user   asked   older bound  ratio      now   of the graph without links     s"
    )
    for name, graph in real():
        first = 0
        for rings, asked in zip(RINGS, ASKED[name], strict=False):
            linked, start = with_links(graph, rings, seed=0), time.perf_counter()
            then = older(linked)
            now = plan_rounds(linked, EPSILON0, DELTA, SHARE).protocol.rounds
            first = first or now
            added = 2 * (linked.m - graph.m) / graph.n
            print(
                f"    {name:<15} {rings:>6} {added:>13.2f} {asked:>7,} {then:>13,} {then / asked:>6.2f} {now:>8,} "
                f"{now / first:>20.4f} {time.perf_counter() - start:>16.0f}",
                flush=True,
            )
    return "hops; asked is to be held against the older bound, now is what `netdp plan -p shuffle` certifies"


def rounds() -> str:
    n = size(1000, quick=20)
    others = [(f"ring:{n}", graphs.ring(n)), ("grid:40x40", graphs.grid(40, 40))][: size(2, quick=1)]
    others.append((f"random_tree:{2 * n}", graphs.random_tree(2 * n, seed=0)))
    print("    graph            rings   gossip rounds   (gap)      flood rounds   numbers sent per user in a flood")
    for name, graph in [*others, *real()]:
        for rings in RINGS:
            linked = with_links(graph, rings, seed=0)
            gap, across = spectral_gap(linked), diameter(linked)
            apart = f"{across.low}" if across.is_exact else f"{across.low} to {across.high}"
            sent = 2 * linked.m
            print(
                f"    {name:<16} {rings:>5} {gossip_rounds(gap):>15,}   {gap:<10.3g} {apart:>10} {sent:>20,.0f}",
                flush=True,
            )
    return "gossip and floods"


def million() -> str:
    graph = graphs.regular(size(1_000_000, quick=100), 6, seed=0)
    took = [f"{rings} rings {seconds(lambda k=rings: with_links(graph, k, seed=1)):.1f} s" for rings in (1, 2, 4)]
    return f"{graph.n:,} parties: {', '.join(took)}; {peak():.2f} GB"


CASES = {"a": hops, "b": rounds, "c": million}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, lambda: None)
