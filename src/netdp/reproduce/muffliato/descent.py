"""Muffliato-GD on the housing table as in Figure 1c and Table 2: a fresh Erdős–Rényi graph per iteration, step 0.7.

Facts of the authors' code: 10 iterations; noise of deviation 1.5 · 0.5 = 0.75 per coordinate; gradients cut to length 1 after the
noise (here: before it, so that the noise hides what is sent); graphs of parameter ln(n)/n drawn again until connected; K =
⌈ln(n)/√λ⌉ rounds of accelerated gossip for the gap of the graph drawn; the loss per iteration by Theorem 4, capped at local DP's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting.gossip.iteration import loss_energy
from netdp.accounting.published.muffliato.theorems import theorem12
from netdp.graphs import Graph, erdos_renyi
from netdp.graphs.spectrum import spectral_gap
from netdp.learn import LogisticParties, accuracy, table, train
from netdp.numerics.arrays import FloatArray
from netdp.protocols import CentralDescent, GossipDescent

from .common import connected_erdos_renyi

ITERATIONS, STEP, SIGMA, CLIP, TEST = 10, 0.7, 0.75, 1.0, 0.2


def graphs_of(n: int, seed: int, *, redraw: bool = True) -> tuple[Graph, ...]:
    """One graph per iteration: drawn until connected, as the authors do, or kept as it comes, as ours may be."""
    if redraw:
        return tuple(connected_erdos_renyi(n, 1000 * seed + t) for t in range(ITERATIONS))
    return tuple(erdos_renyi(n, math.log(n) / n, seed=1000 * seed + t) for t in range(ITERATIONS))


def muffliato(n: int, seed: int, *, redraw: bool = True) -> GossipDescent:
    """K as in Theorem 5, for the spectral gap of the (largest component of the) first graph."""
    drawn = graphs_of(n, seed, redraw=redraw)
    gap = spectral_gap(drawn[0].largest_component())
    rounds = math.ceil(math.log(n) / math.sqrt(gap))
    return GossipDescent(drawn, ITERATIONS, rounds, sigma=SIGMA, step=STEP, clip=CLIP, accelerated=True, gap=gap)


def trial(item: list[Any]) -> dict[str, list[float]]:
    """Accuracy on the test rows after each iteration, of party 0's model: [n, seed]."""
    n, seed = item
    rows, test = table("housing").split(TEST, seed)
    data = LogisticParties.deal(rows.X, rows.y, n, seed)
    found: dict[str, list[float]] = {}
    for name, protocol in (
        ("muffliato", muffliato(n, seed)),
        ("kept", muffliato(n, seed, redraw=False)),
        ("central", CentralDescent(n, ITERATIONS, SIGMA, STEP)),
    ):
        scores = [accuracy(np.zeros(data.d), test.X, test.y)]

        def after(t: int, models: FloatArray, scores: list[float] = scores) -> None:
            scores.append(accuracy(models[0], test.X, test.y))

        train(protocol, data, seed, after=after)
        found[name] = scores
    return found


def published(n: int) -> dict[str, Any]:
    """Losses of all parties towards party 0 over the run, as multiples of local DP's: Theorem 4 as coded, and Theorem 11."""
    protocol = muffliato(n, 0)
    coded, theorem11 = np.zeros(n - 1), np.zeros(n - 1)
    for t, graph in enumerate(protocol.graphs):
        degrees = graph.degrees.astype(float)
        per_round = np.minimum(1.0, 2 * protocol.gossip_rounds * degrees / (n - degrees))
        per_round[graph.neighbors(0)] = 1.0
        coded += per_round[1:]
        theorem11 += theorem12(protocol.rounds_of(t), [0])[1:]
    return {
        "K": protocol.gossip_rounds,
        "coded": np.sort(coded / ITERATIONS),
        "theorem11": np.sort(np.minimum(theorem11 / ITERATIONS, 1.0)),
    }


def certified(item: list[Any]) -> dict[str, Any]:
    """Certified losses towards party 0, as multiples of local DP's: [n, targets, rounds of gossip or 0 for Theorem 5's]."""
    n, targets, rounds = item
    protocol = muffliato(n, 0)
    if rounds:
        protocol = GossipDescent(protocol.graph, ITERATIONS, rounds, sigma=SIGMA, step=STEP, clip=CLIP)
    chosen = np.random.default_rng(0).choice(np.arange(1, n), targets, replace=False)
    energy = np.asarray(loss_energy(protocol, (0,), targets=chosen))
    energy = energy[~np.isnan(energy)]
    return {"K": protocol.gossip_rounds, "loss": np.sort(energy / ITERATIONS)}
