"""Learning by gossip against every single observer: exact work where it counts, a bound for all others at once.

*Proof: docs/guarantees.md#told-everything and #hidden-state.*

The loss of learning is bounded observer by observer (`iteration`), each at the cost of some products of n × n matrices per
iteration: hours for a thousand parties. But an observer that is told everything in every iteration pays Σ_t [S_v⁻¹]_uu, the
rule "always" of `iteration`, and that is known for all observers at once (`told`). It is never far above: v's neighbour u sends it
its first message, so the loss is at least 1/(1 + κ(d_u − 1)) per iteration, and nobody's limit is below that of a curator, 1/n.

So every pair gets the smaller of that and of T (local DP); then observers are accounted for one by one, the largest bounds first,
until nobody left can be worse than the worst found, or a fixed effort is spent. If the effort lasts for all, all are.

Without masks nothing is computed: a neighbour reads u's noisy value in every iteration, which is all that can be lost.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from netdp.numerics.arrays import FloatArray, Progress
from netdp.protocols import GossipDescent

from .iteration import loss_energy
from .told import told_everything

# Multiplications, some 10¹⁰ a second.
EFFORT = 3e10


def worst_energies(protocol: GossipDescent, progress: Progress | None = None) -> FloatArray:
    """For every party, a bound on its largest Σμ_t² (in units of Δ²/σ²) over all other parties, each looking alone.

    `progress(done, total)` is told of observers, first bounded and then accounted for.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.path(5), 4, 3, sigma=1.0, step=1.0, masks=10.0)
    >>> worst_energies(p).round(2).tolist()              # the ends have one neighbour, and no secret that it does not know
    [4.0, 2.1, 1.54, 2.1, 4.0]
    """
    n, T = protocol.n, protocol.iterations
    if protocol.masks == 0 and all(graph.is_connected for graph in protocol.graphs):
        return np.where(protocol.graphs[0].degrees > 0, float(T), 0.0)
    allowed = int(EFFORT // (12.0 * float(n) ** 3 * (T if protocol.is_static else 2 * T)))
    if allowed >= n:
        worst = np.zeros(n)
        for v in range(n):
            worst = np.fmax(worst, loss_energy(protocol, (v,)))
            if progress is not None:
                progress(v + 1, n)
        return worst
    energy = _told(protocol, progress, n + allowed)
    largest, settled = np.nanmax(energy, axis=0), 0.0
    for done, v in enumerate(np.argsort(-largest, kind="stable")[:allowed].tolist(), start=1):
        if settled >= largest[v] * (1 - 1e-4):
            break
        energy[:, v] = np.minimum(energy[:, v], loss_energy(protocol, (v,)))
        settled = max(settled, float(np.nanmax(energy[:, v])))
        if progress is not None:
            progress(n + done, n + allowed)
    return np.asarray(np.fmax.reduce(energy, axis=1))


def _told(protocol: GossipDescent, progress: Progress | None, total: int) -> FloatArray:
    """Σ_t [S_v⁻¹]_uu for all pairs [u, v], at most T."""
    n, T = protocol.n, protocol.iterations
    times = Counter([protocol.network] if protocol.is_static else protocol.graphs)
    energy = np.zeros((n, n))
    for number, (graph, count) in enumerate(times.items()):
        for v, values in enumerate(told_everything(graph, protocol.masks)):
            energy[:, v] += (T if protocol.is_static else count) * values
            if progress is not None and v % 64 == 63:
                progress(int((number + v / n) / len(times) * n), total)
    return np.minimum(energy * (1 + 1e-12), float(T))
