"""Speed and memory of the accountants, as ratios in one run: `make bench`, or `python benchmarks/accounting.py a b c d`.

(a) published formula, all pairs, hypercube 2¹¹, T=19     against the straightforward dense NumPy version, and BLAS
(b) exact loss, all pairs, the same                        against the straightforward dense NumPy version, and BLAS
(c) exact loss, one observer, random 4-regular graph, 10⁶ parties, T=20: seconds and memory
(d) exact loss with refresh and masks, one observer, Facebook pages (22,470 parties), T=20 (needs NETDP_DATA)

"BLAS" is the time of one matrix product with as many floating-point operations as the method must do: no code that does
those operations can be faster. Each case runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from measure import QUICK, few, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.gossip.account import krylov
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import GossipView
from netdp.papers.formulas.muffliato import theorem1_pairwise
from netdp.protocols.accounting import account, pairwise


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def blas_seconds(flops: float) -> float:
    """How long this machine's matrix product takes for that many operations."""
    n = size(2048, quick=64)
    a = np.random.default_rng(0).random((n, n))
    a @ a
    return min(timed(lambda: a @ a)[0] for _ in range(3)) * flops / (2.0 * n**3)


def peak_memory() -> float:
    """Peak resident memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def warm_up() -> None:
    """Compile and load once; a user pays for that once per machine."""
    small = Gossip(graphs.hypercube(4), rounds=3, sigma=1.0, refresh=0.1, masks=1.0)
    pairwise(small)
    pairwise(small, method="published")


def dense_published(protocol: Gossip) -> np.ndarray:
    """Theorem 1 as one would type it: dense powers, dense sums over neighbours."""
    W, A = protocol.matrix.toarray(), protocol.graph.adjacency().toarray()
    power, total = np.eye(len(W)), np.zeros_like(W)
    for _ in range(protocol.rounds):
        squares = power**2
        total += (squares / squares.sum(axis=0)) @ A
        power = power @ W
    return total


def dense_exact(protocol: Gossip, powers: list[np.ndarray], observer: int) -> np.ndarray:
    """Leverage scores as one would type them: stack the rows of the powers, SVD. (Its rank is wrong on slow graphs.)"""
    rows = np.vstack([power[protocol.graph.neighbors(observer)] for power in powers])
    rows[:, observer] = 0.0
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    return (right[sizes > 1e-10 * sizes[0]] ** 2).sum(axis=0)


def case_a() -> None:
    protocol = Gossip(graphs.hypercube(size(11, quick=4)), rounds=size(19, quick=4), sigma=1.0)
    n = protocol.graph.n
    warm_up()
    # The formula against the formula; the whole call also makes curves and a guarantee of it.
    ours, fast = min((timed(lambda: theorem1_pairwise(protocol)) for _ in range(5)), key=lambda r: r[0])
    whole = min(timed(lambda: pairwise(protocol, method="published"))[0] for _ in range(3))
    theirs, slow = timed(lambda: dense_published(protocol))
    off = ~np.eye(n, dtype=bool)
    assert np.allclose(fast[off], slow[off], rtol=1e-10)
    needed = 2.0 * protocol.matrix.nnz * n * protocol.rounds
    print(f"(a) published, all pairs of {n}: {ours:.2f} s ({whole:.2f} s as a guarantee), {peak_memory():.2f} GB")
    each, dense = ours / n * 1e3, theirs / n * 1e3
    print(f"    per observer {each:.3f} ms; straightforward {dense:.3f} ms: {theirs / ours:.0f}× (aim ≥ 20×)")
    print(f"    BLAS limit {blas_seconds(needed):.3f} s: we take {ours / blas_seconds(needed):.1f}× that")


def case_b() -> None:
    protocol = Gossip(graphs.hypercube(size(11, quick=4)), rounds=size(19, quick=4), sigma=1.0)
    n = protocol.graph.n
    warm_up()
    ours, fast = timed(lambda: pairwise(protocol))
    W = protocol.matrix.toarray()
    powers = [np.eye(n)]
    start = time.perf_counter()
    for _ in range(protocol.rounds - 1):
        powers.append(powers[-1] @ W)
    preparing = time.perf_counter() - start
    sample = range(0, n, n // 4)
    each = timed(lambda: [dense_exact(protocol, powers, v) for v in sample])[0] / len(sample)
    theirs = preparing + each * n
    ranks = krylov.seen_space(GossipView.of(protocol, 0)).ranks
    seen = np.cumsum(ranks)
    # Removing what was seen from each block costs 4·n·seen·new; so does each product with W, its entries.
    needed = n * sum(4.0 * n * int(k) * b + 2.0 * protocol.matrix.nnz * b for k, b in zip(seen, ranks, strict=True))
    print(
        f"(b) exact, all pairs of {n}: {ours:.1f} s (aim < 30 s), {peak_memory():.2f} GB, worst {np.nanmax(fast.factor):.3f}"
    )
    print(f"    per observer {ours / n * 1e3:.1f} ms; straightforward {theirs / n * 1e3:.0f} ms: {theirs / ours:.0f}×")
    print(f"    BLAS limit {blas_seconds(needed):.1f} s: we take {ours / blas_seconds(needed):.1f}× that")


def case_c() -> None:
    warm_up()
    making, graph = timed(lambda: graphs.regular(size(1_000_000, quick=100), 4, seed=0))
    protocol = Gossip(graph, rounds=20, sigma=1.0)
    ours, loss = timed(lambda: account(protocol, [0]))
    print(
        f"(c) exact, one observer, {graph.n:,} parties: {ours:.1f} s (aim < 60 s), {peak_memory():.2f} GB (aim < 2 GB)"
    )
    print(
        f"    graph made in {making:.1f} s; claim {loss.claim.value}, mean factor × n = {loss.mean_factor * graph.n:.1f}"
    )


def case_d() -> None:
    try:
        graph = graphs.regular(60, 7, seed=0) if QUICK else graphs.dataset("facebook-pages")
    except DataNotFound as error:
        print(f"(d) not run: {error}")
        return
    warm_up()
    protocol = Gossip(graph, rounds=20, sigma=1.0, refresh=0.1, masks=10.0)
    for degree in few((7, 30, 100)):
        observer = int(np.flatnonzero(graph.degrees == degree)[0])
        ours, loss = timed(lambda v=observer: account(protocol, [v]))
        plain, _ = timed(lambda v=observer: account(protocol.replace(refresh=0.0, masks=0.0), [v]))
        print(
            f"(d) refresh and masks, one observer with {degree} neighbours, {graph.n:,} parties: {ours:.1f} s, "
            f"{peak_memory():.2f} GB, {ours / plain:.1f}× plain; claim {loss.claim.value}, worst factor {loss.worst:.3f}"
        )


CASES = {"a": case_a, "b": case_b, "c": case_c, "d": case_d}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help="a, b, c or d; all by default")
    parser.add_argument("--here", action="store_true", help="run in this process")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    for case in arguments.cases or CASES:
        if arguments.here or QUICK:
            CASES[case]()
        else:
            subprocess.run([sys.executable, __file__, case, "--here"], check=True)


if __name__ == "__main__":
    main()
