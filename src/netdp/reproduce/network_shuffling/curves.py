"""The data of Figures 4–8 of the network shuffling paper, the certified curve beside the published one.

Every function returns small arrays: x values, and for each graph or setting a pair of curves. Where the walk has not
mixed the certified ε is ε₀: local privacy is always there. The paper does not print ε₀ and δ of Figures 4 and 5; ε₀ =
1 and δ = 10⁻⁶ are assumed. Figure 9 (utility of mean estimation) needs a randomizer and a simulation: `figure_9`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from netdp.accounting.heap.clones import Heap
from netdp.accounting.published import network_shuffling as paper
from netdp.accounting.shuffle.mixing import Mixing, mixing
from netdp.accounting.shuffle.per_user import Table
from netdp.graphs import Graph, dataset, regular
from netdp.numerics.arrays import FloatArray
from netdp.protocols import Shuffle


@dataclass(frozen=True)
class Curves:
    """One setting of a figure: `published` and `certified` ε at every x."""

    label: str
    x: FloatArray
    published: FloatArray
    certified: FloatArray


def _certified(protocol: Shuffle, delta: float) -> float:
    return _worst(protocol, mixing(protocol), delta)


def _worst(protocol: Shuffle, mixed: Mixing, delta: float) -> float:
    """ε of the worst placed user."""
    table = Table.of(protocol, mixed)
    return table.epsilon(table.group_of(1.0), delta)


def figure4(
    graphs: Iterable[Graph | str] = ("facebook-pages", "deezer", "enron"),
    rounds: Sequence[int] = (10, 30, 100, 300, 1000, 3000, 10000),
    epsilon0: float = 1.0,
    delta: float = 1e-6,
) -> list[Curves]:
    """ε against the number of rounds, A_all, stationary bound.

    >>> from netdp.graphs import regular
    >>> (curves,) = figure4([regular(200, 20, 0)], rounds=(1, 40))
    >>> bool(curves.certified[0] > 0.99), bool(curves.certified[1] < 0.9 < curves.published[1])
    (True, True)
    """
    out = []
    for graph in map(_graph, graphs):
        protocols = [Shuffle(graph, t, epsilon0) for t in rounds]
        printed = [
            paper.epsilon_all(epsilon0, graph.n, paper.stationary_squares(graph, p.rounds), delta) for p in protocols
        ]
        proved = [_certified(p, delta) for p in protocols]
        out.append(Curves(graph.name, np.array(rounds, dtype=float), np.array(printed), np.array(proved)))
    return out


def figure5(
    degrees: Sequence[int] = (4, 8, 16),
    n: int = 1000,
    rounds: Sequence[int] = (1, 2, 3, 5, 8, 12, 20, 30, 50),
    epsilon0: float = 1.0,
    delta: float = 1e-6,
    seed: int = 0,
) -> list[Curves]:
    """ε against the number of rounds on k-regular graphs, A_all, the walk followed exactly (Theorem 5.4)."""
    out = []
    for k in degrees:
        graph = regular(n, k, seed)
        protocols = [Shuffle(graph, t, epsilon0) for t in rounds]
        printed = [paper.epsilon(p, delta) for p in protocols]
        proved = [_certified(p, delta) for p in protocols]
        out.append(Curves(f"k = {k}", np.array(rounds, dtype=float), np.array(printed), np.array(proved)))
    return out


def figure6(
    graphs: Iterable[Graph | str] = ("facebook-pages", "twitch", "deezer", "enron"),
    epsilon0s: Sequence[float] = tuple(np.linspace(0.1, 1.2, 12).tolist()),
    delta: float = 1e-6,
    reporting: str = "all",
) -> list[Curves]:
    """ε against ε₀ at t = α⁻¹ ln n; the certified curve at that t, too."""
    out = []
    for graph in map(_graph, graphs):
        t = paper.mixing_time(graph)
        protocols = [Shuffle(graph, t, e, reporting=reporting) for e in epsilon0s]
        squares = paper.stationary_squares(graph, t)
        printed = [
            paper.epsilon_single(e, squares, delta)
            if reporting == "single"
            else paper.epsilon_all(e, graph.n, squares, delta)
            for e in epsilon0s
        ]
        mixed = mixing(protocols[0])
        proved = [_worst(p, mixed, delta) for p in protocols]
        out.append(Curves(f"{graph.name}, {reporting}", np.array(epsilon0s), np.array(printed), np.array(proved)))
    return out


def figure7(
    graphs: Iterable[Graph | str] = ("twitch",),
    epsilon0s: Sequence[float] = tuple(np.linspace(0.1, 2.0, 20).tolist()),
    delta: float = 1e-6,
) -> list[Curves]:
    """A_all against A_single, which is a post-processing of all and gains something of its own."""
    found = list(graphs)
    return [*figure6(found, epsilon0s, delta, "all"), *figure6(found, epsilon0s, delta, "single")]


def figure8(
    sizes: Sequence[int] = (10_000, 1_000_000),
    gammas: Sequence[float] = (1.0, 10.0),
    epsilon0s: Sequence[float] = tuple(np.linspace(0.2, 2.0, 10).tolist()),
    delta: float = 1e-6,
) -> list[Curves]:
    """ε against ε₀ in the limit of stationary positions, for several n and Γ; the certified curve knows no Γ."""
    out = []
    for n in sizes:
        proved = np.array([Heap.of(n - 1, e).epsilon(delta) for e in epsilon0s])
        for g in gammas:
            for reporting in ("all", "single"):
                printed = [
                    paper.epsilon_single(e, g / n, delta)
                    if reporting == "single"
                    else paper.epsilon_all(e, n, g / n, delta)
                    for e in epsilon0s
                ]
                label = f"n = {n}, Γ = {g:g}, {reporting}"
                out.append(Curves(label, np.array(epsilon0s), np.array(printed), proved))
    return out


def _graph(graph: Graph | str) -> Graph:
    return dataset(graph) if isinstance(graph, str) else graph
