"""Who learns most, and who loses most, where users are not alike: hubs, trees, draws by weight, rings in random orders.

python benchmarks/walks_uneven.py          prints the tables; about two minutes
"""

import math

import numpy as np

import netdp
from measure import few, size
from netdp import graphs

DELTA = 1e-6


def who_learns_most():
    """Walks of T = 100n steps on graphs with hubs: what the busiest and the least busy user learn about the two kinds."""
    print(
        "\nA token on a graph of 15 or 16 users, T = 100n, sigma = 61, delta = 1e-6: eps; next to it, and as far as can be"
    )
    heads = ("hub > next leaf", "hub > far leaf", "leaf > hub", "leaf > far leaf")
    print(f"{'graph':24} {'walk':10} {'degrees':>8} " + " ".join(f"{head:>16}" for head in heads))
    shapes = (
        graphs.star(16),
        graphs.balanced_tree(2, 3),
        graphs.random_tree(16, seed=1),
        graphs.barabasi_albert(16, 1, seed=1),
        graphs.barabasi_albert(16, 3, seed=1),
        graphs.ring(16),
        graphs.complete(16),
    )
    for graph in size(shapes, quick=(graphs.star(6),)):
        hub = int(np.argmax(graph.degrees))
        far_of = np.array([graph.distances([v]) for v in range(graph.n)])
        rest = [v for v in range(graph.n) if v != hub]
        near = min(rest, key=lambda v: (far_of[hub, v], graph.degrees[v]))
        leaf = min(rest, key=lambda v: (graph.degrees[v], -far_of[hub, v]))
        other = max((v for v in rest if v != leaf), key=lambda v: (far_of[leaf, v], -graph.degrees[v]))
        for walk in few(("metropolis", "simple")):
            p = netdp.GraphWalkSum(graph, size(100, quick=3) * graph.n, sigma=61.0, walk=walk)
            by_hub = netdp.account(p, [hub], targets=sorted({near, leaf})).epsilon(DELTA)
            by_leaf = netdp.account(p, [leaf], targets=sorted({hub, other})).epsilon(DELTA)
            row = (by_hub[near], by_hub[leaf], by_leaf[hub], by_leaf[other])
            span = f"{graph.degrees.min()}-{graph.degrees.max()}"
            print(f"{graph.name:24} {walk:10} {span:>8} " + " ".join(f"{x:16.3f}" for x in row), flush=True)


def draws_by_weight():
    """One user of 100 that is drawn more often than the others."""
    n = size(100, quick=10)
    print(f"\nDraws by weight on the complete graph, n = {n}, T = {100 * n:,}, sigma = 61, delta = 1e-6")
    print(f"{'weight':>8} {'sender':>16} {'heavy loses':>12} {'light loses':>12} {'light loses to heavy':>22}")
    for weight in few((1, 3, 10, 30)):
        for sender in ("hidden", "known"):
            p = netdp.WalkSum(n, 100 * n, 61.0, sender=sender, weights=[weight, *[1] * (n - 1)])
            light, heavy = netdp.account(p, [5]).epsilon(DELTA), netdp.account(p, [0]).epsilon(DELTA)
            print(f"{weight:8} {sender:>16} {light[0]:12.4f} {light[1]:12.4f} {heavy[1]:22.4f}")


def random_orders():
    """The noise of a round that c colluders ask for, at (1, 10⁻⁶), over that of a trusted curator."""
    print(
        "\nRings in a new random order every round: sigma/(curator's sigma) at (1, 1e-6); a fixed ring against 2: sqrt(n)"
    )
    print(f"{'n':>6} {'rounds':>7} {'colluders':>10} {'known':>8} {'hidden':>8} {'fixed ring':>11}")
    for n, rounds in size(((100, 1), (100, 10), (1000, 1), (1000, 10), (10_000, 10)), quick=((20, 1),)):
        for colluders in few((1, 2, 10)):
            row = []
            for sender in ("known", "hidden"):
                p = netdp.SecretRingSum(n, rounds, 1.0, sender=sender)
                found = netdp.calibrate(p, 1.0, DELTA, colluders=colluders)
                row.append(found.sigma * float(netdp.privacy.gaussian_mu(1.0, DELTA)) / math.sqrt(rounds))
            fixed = math.sqrt(n / (n - 1)) if colluders == 1 else math.sqrt(n)
            print(f"{n:6} {rounds:7} {colluders:10} {row[0]:8.2f} {row[1]:8.2f} {fixed:11.2f}")


if __name__ == "__main__":
    who_learns_most()
    draws_by_weight()
    random_orders()
