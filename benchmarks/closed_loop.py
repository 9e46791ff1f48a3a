"""Learning by gossip: the certified bound beside the exact loss of a closed linear loop and the published sum.

`python benchmarks/closed_loop.py`. Quadratic local losses make the whole run linear, so its exact loss can be computed, in
fractions, by the code that the tests use. Local steps: the identity (non-expansive and no more) and a contraction by 3/4.
All numbers are Σμ² in units of Δ²/σ²; local DP has T.
"""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from types import ModuleType

from measure import few
from netdp.protocols.accounting import account

TESTS = Path(__file__).parents[1] / "tests" / "families" / "gossip"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    brute, tests = load("brute"), load("test_iteration")
    widest = 1.0
    columns = f"{'party':>7}{'bound':>9}{'exact':>9}{'exact, 3/4':>12}{'published':>11}"
    print(f"{'graph':14}{'T':>3}{'K':>3}{'κ':>4}{'observers':>11}{columns}")
    for graph, T, K, observers, masks in few(tests.CASES):
        protocol = tests.descent(graph, T, K, masks=float(masks))
        bound = tests.loss_energy(protocol, observers)
        published = account(protocol, observers, method="published").factor * T
        distance = graph.distances(list(observers))
        for hops in range(1, int(distance.max()) + 1):
            u = int((distance == hops).argmax())
            exact, contracting = (
                float(tests.closed_loop(graph, T, K, observers, u, [c] * graph.n, masks, brute))
                for c in (Fraction(1), Fraction(3, 4))
            )
            widest = max(widest, bound[u] / exact)
            print(
                f"{graph.name:14}{T:3}{K:3}{masks:4}{observers!s:>11}{u:7}{bound[u]:9.4f}{exact:9.4f}{contracting:12.4f}"
                f"{published[u]:11.4f}{'  below the exact loss' if published[u] < exact * 0.999 else ''}"
            )
    print(f"the bound is at most {widest:.2f} times the exact loss; never below it")


if __name__ == "__main__":
    main()
