"""What several of Muffliato's figures share: the number of rounds, losses by distance, a network drawn in colours.

Losses are factors: multiples of local DP's αΔ²/(2σ²). Published ones are clipped at 1 in pictures, as in the paper: no view
costs more than local DP.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.graphs import Graph, erdos_renyi
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import FloatArray
from netdp.protocols import Gossip

from ..drawing import COLOURS_OF_LOSS, WIDTH
from ..experiment import Kind, Panel, Series

# Fresh noise before every send, in all a tenth of the initial variance: the answer's variance grows by at most 10 %.
REFRESH = 0.1


def rounds_to_converge(graph: Graph) -> int:
    """Theorem 2's T for σ = 1 and values of variance at most 1: ⌈ln(n)/√λ⌉.

    >>> from netdp import graphs
    >>> rounds_to_converge(graphs.hypercube(11))
    19
    """
    return math.ceil(math.log(graph.n) / math.sqrt(spectral_gap(graph)))


def connected_erdos_renyi(n: int, seed: int) -> Graph:
    """A graph of parameter ln(n)/n, drawn again until it is connected, as the authors do; about 1/e of the draws are."""
    rng = np.random.default_rng(seed)
    while True:
        graph = erdos_renyi(n, math.log(n) / n, rng)
        if graph.is_connected:
            return graph


def factors(graph: Graph, rounds: int, observer: int, *, method: str = "certified", refresh: float = 0.0) -> FloatArray:
    """What the observer learns of every party, as multiples of local DP's loss; nan at the observer."""
    loss = account(Gossip(graph, rounds=rounds, sigma=1.0, refresh=refresh), [observer], method=method)
    assert loss.factor is not None
    return loss.factor


def at_least(graph: Graph, rounds: int, observer: int, most: int = 400) -> FloatArray:
    """A lower bound on the exact factors, for graphs so slow that the exact ones take hours; nan at the observer.

    The exact factor of u is its leverage score in the space of all messages, spanned by W′ᵗe_w for the neighbours w, W′
    without the observer. Any part of that space gives less. Directions that rounding could have made (a millionth of
    their vector left after the others are taken out) are dropped, and only so many neighbours are followed that `most`
    directions last for all rounds.

    >>> from netdp import graphs
    >>> at_least(graphs.ring(9), 2, 0).round(6).tolist()
    [nan, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    W = Gossip(graph, rounds=1, sigma=1.0).matrix
    neighbours = graph.neighbors(observer)[: max(1, most // rounds)]
    block = np.zeros((graph.n, len(neighbours)))
    block[neighbours, np.arange(len(neighbours))] = 1.0
    basis = np.zeros((graph.n, most))
    found = 0
    for t in range(rounds):
        if t:
            block = W @ block
            block[observer] = 0.0
        kept = []
        for vector in block.T:
            size = float(np.linalg.norm(vector))
            for _ in range(2):
                vector = vector - basis[:, :found] @ (basis[:, :found].T @ vector)
            left = float(np.linalg.norm(vector))
            if left > 1e-6 * size and found < most:
                basis[:, found] = vector / left
                kept.append(basis[:, found])
                found += 1
        if not kept:
            break
        block = np.column_stack(kept)
    scores: FloatArray = np.asarray((basis[:, :found] ** 2).sum(axis=1))
    scores[observer] = np.nan
    return scores


def unlabelled(graph: Graph) -> Graph:
    """The same graph with its nodes numbered and without names."""
    ends = np.column_stack([np.repeat(np.arange(graph.n), np.diff(graph.indptr)), graph.indices])
    return Graph.from_edges(graph.n, ends[ends[:, 0] < ends[:, 1]], name=graph.name)


def springs(graph: Graph) -> FloatArray:
    """Positions by springs, so that communities lie together."""
    import networkx

    placed = networkx.spring_layout(graph.to_networkx(), seed=7, iterations=60, k=1.6 / math.sqrt(graph.n))
    return np.array([placed[node] for node in sorted(placed)])


def by_distance(values: FloatArray, distance: Any) -> dict[str, list[float]]:
    """Mean, least and largest value at each distance 1, 2, …"""
    rows = [values[distance == d] for d in range(1, int(distance.max()) + 1)]
    return {
        "x": list(range(1, len(rows) + 1)),
        "mean": [float(row.mean()) for row in rows],
        "low": [float(row.min()) for row in rows],
        "high": [float(row.max()) for row in rows],
    }


def curve(
    label: str, found: dict[str, list[float]], kind: Kind, *, clip: bool = False, spread: bool = True, upto: int = 1000
) -> Series:
    """The means by distance with their range, as a curve; up to some distance."""
    top = 1.0 if clip else math.inf
    mean, low, high = ([min(value, top) for value in found[part][:upto]] for part in ("mean", "low", "high"))
    return Series(label, found["x"][:upto], mean, kind, low if spread else None, high if spread else None)


def agrees(value: float, printed: str) -> bool:
    """Whether a printed decimal is the value, rounded; "<.0001", "≈0" and fractions included.

    >>> agrees(0.16612, "0.1661"), agrees(2 / 7, "2/7"), agrees(0.3, "2/7"), agrees(1e-12, "≈0"), agrees(0.99, "1")
    (True, True, False, True, False)
    """
    if printed.startswith("<"):
        return value < float(printed[1:])
    if printed == "≈0":
        return value < 1e-9
    if "/" in printed:
        top, bottom = printed.split("/")
        return abs(value - int(top) / int(bottom)) < 1e-9
    places = len(printed.split(".")[1]) if "." in printed else 0
    return abs(value - float(printed)) <= (0.5 * 10**-places if places else 1e-9) * (1 + 1e-6)


def network(
    title: str, graph: Graph, places: FloatArray, values: FloatArray, chosen: int, *, kind: Kind, least: float = 1e-4
) -> Panel:
    """A graph whose parties are coloured by their loss, on a logarithmic scale up to local DP's; a star marks `chosen`."""

    def draw(figure: Any, axes: Any) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.colors import LogNorm

        edges = np.column_stack([np.repeat(np.arange(graph.n), np.diff(graph.indptr)), graph.indices])
        edges = edges[edges[:, 0] < edges[:, 1]]
        faint = min(0.4, 300 / max(len(edges), 1))
        axes.add_collection(
            LineCollection(places[edges].tolist(), colors="#888888", linewidths=0.3, alpha=faint, rasterized=True)
        )
        others = np.arange(graph.n) != chosen
        shown = np.clip(values[others], least, 1.0)
        order = np.argsort(shown)
        room = min(1.0, axes.bbox.width / figure.dpi / WIDTH)  # smaller panels, smaller dots
        axes.scatter(
            *places[others][order].T,
            c=shown[order],
            s=max(2.0, min(20.0, 4000 / graph.n) * room),
            cmap=COLOURS_OF_LOSS,
            norm=LogNorm(least, 1.0),
            linewidths=0,
            zorder=2,
            rasterized=True,
        )
        axes.scatter(
            *places[chosen], marker="*", s=max(40, 70 * room), c="#D55E00", edgecolors="white", linewidths=0.5, zorder=3
        )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(False)
        for side in axes.spines.values():
            side.set_visible(False)

    places = np.asarray(places)
    series = Series("loss of each party", np.arange(graph.n), np.minimum(values, 1.0), kind)
    return Panel(title, "", "", (series,), draw=draw, scale=(least, 1.0, "loss (1 = local DP)"))
