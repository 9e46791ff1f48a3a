"""The ten Facebook ego graphs of Figures 1b and 5: what all others learn about one user of the largest component.

Facts of the authors' code: graph 1912 and a random user for Figure 1b; the first user with one friend for each graph of Figure
5; T = ⌈ln(n)/√λ⌉. The exact loss towards every single user takes hours on these graphs (most users see nearly everything), so
a lower bound on it is drawn: what the messages of one neighbour alone tell. With L_w(u) the leverage score of u in the space
spanned by e_w, We_w, …, W^{k−1}e_w, the messages of w in k ≤ T rounds, the factor of u towards v is at least L_w(u) for
every neighbour w of v: v may forget all other messages and its own noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting.published.muffliato.theorems import theorem1_pairwise
from netdp.graphs import Graph, dataset, datasets
from netdp.numerics.arrays import FloatArray
from netdp.protocols import Gossip

from .common import REFRESH, factors, rounds_to_converge, springs, unlabelled

EGOS = (0, 107, 348, 414, 686, 698, 1684, 1912, 3437, 3980)
# Rounds whose messages the lower bound uses; more of them only raise it.
_MOST = 40


def available(ego: int) -> bool:
    """Whether the file of that ego graph is on this machine."""
    return next(entry.available for entry in datasets() if entry.name == f"facebook-ego-{ego}")


def ego_graph(ego: int) -> Graph:
    """Friends of a Facebook user, who is left out: the largest component, nodes numbered."""
    return unlabelled(dataset(f"facebook-ego-{ego}"))


def first_with_one_friend(graph: Graph) -> int:
    """The first user with the fewest friends."""
    return int(np.flatnonzero(graph.degrees == graph.degrees.min())[0])


def scores_of(graph: Graph, rounds: int, target: int) -> FloatArray:
    """L_w(target) for all w: leverage scores in what w says in `rounds` rounds, directions that rounding may have made left out.

    >>> from netdp import graphs
    >>> scores_of(graphs.ring(5), 2, 0).round(4).tolist()                       # e_w, and e_{w−1} + e_{w+1} over √2
    [1.0, 0.5, 0.0, 0.0, 0.5]
    """
    W = Gossip(graph, rounds=1, sigma=1.0).matrix
    n, scores = graph.n, np.zeros(graph.n)
    for first in range(0, n, 64):
        start = np.arange(first, min(first + 64, n))
        basis = np.zeros((len(start), rounds, n))
        basis[np.arange(len(start)), 0, start] = 1.0
        alive = np.ones(len(start), dtype=bool)
        for k in range(1, rounds):
            block = (W @ basis[:, k - 1, :].T).T
            size = np.linalg.norm(block, axis=1)
            known = basis[:, :k, :]
            for _ in range(2):
                part = np.matmul(known, block[:, :, None])
                block = block - np.matmul(known.transpose(0, 2, 1), part)[:, :, 0]
            left = np.linalg.norm(block, axis=1)
            alive &= left > 1e-6 * size
            basis[:, k, :] = np.where(alive[:, None], block / np.where(alive, left, 1.0)[:, None], 0.0)
        scores[start] = (basis[:, :, target] ** 2).sum(axis=1)
    return scores


def measure(item: list[Any]) -> dict[str, Any]:
    """Losses of one user towards all others, and positions: [ego, user or None for the first with one friend]."""
    ego, user = item
    graph = ego_graph(ego)
    target = first_with_one_friend(graph) if user is None else user
    rounds = rounds_to_converge(graph)
    scores = scores_of(graph, min(rounds, _MOST), target)
    true = np.array([scores[graph.neighbors(v)].max() for v in range(graph.n)])
    true[target] = np.nan
    return {
        "target": target,
        "degree": int(graph.degrees[target]),
        "n": graph.n,
        "rounds": rounds,
        "places": springs(graph),
        "far": graph.distances([target]) >= 3,
        "published": theorem1_pairwise(Gossip(graph, rounds=rounds, sigma=1.0))[target],
        "true": true,
    }


def watched(ego: int) -> dict[str, Any]:
    """The other direction, exactly: what the first user with one friend learns of all others, plain and with fresh noise."""
    graph = ego_graph(ego)
    observer, rounds = first_with_one_friend(graph), rounds_to_converge(graph)
    return {
        "observer": observer,
        "far": graph.distances([observer]) >= 3,
        "published": factors(graph, rounds, observer, method="published"),
        "true": factors(graph, rounds, observer),
        "refreshed": factors(graph, rounds, observer, refresh=REFRESH),
    }


def farther(found: dict[str, Any], part: str) -> float:
    """Mean loss, clipped at local DP's, of those at least three hops away."""
    values: FloatArray = np.minimum(np.array(found[part], dtype=float), 1.0)
    return float(values[np.array(found["far"])].mean())


def understated(found: dict[str, Any]) -> tuple[float, float, float]:
    """Those towards whom the formula is below the true loss: its mean, the true one's, and their share of all."""
    others = np.arange(found["n"]) != found["target"]
    published, true = (np.array(found[part], dtype=float)[others] for part in ("published", "true"))
    below = true > published
    return float(published[below].mean()), float(true[below].mean()), float(below.mean())
