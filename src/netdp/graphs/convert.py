"""NetworkX graphs in and out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray

from . import _csr


def from_networkx(G: Any, *, name: str | None = None) -> Graph:
    """The simple undirected graph under a NetworkX graph.

    Directions, multiplicities and weights are forgotten. Nodes that are the integers 0 … n−1 keep their
    numbers; otherwise nodes are numbered in `G`'s order and their names become labels. Node attributes `pos`
    (pairs of numbers, on every node) become positions.

    Raises:
        GraphError: `G` is empty or has self-loops, or two nodes have the same name as text.

    >>> import networkx as nx
    >>> from_networkx(nx.DiGraph([("ann", "bob"), ("bob", "ann"), ("bob", "cy")])).labels
    ('ann', 'bob', 'cy')
    """
    nodes = list(G.nodes)
    n = len(nodes)
    if n == 0:
        raise GraphError("the NetworkX graph has no node; a graph needs at least one")
    numbered = all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in nodes)
    numbered = numbered and set(nodes) == set(range(n))
    if numbered:
        nodes = list(range(n))
        given = [G.nodes[node].get("label") for node in nodes]  # as to_networkx writes them
        labels = tuple(given) if all(isinstance(label, str) for label in given) else None
    else:
        labels = tuple(str(node) for node in nodes)
        if len(set(labels)) < n:
            raise GraphError(
                "two nodes of the NetworkX graph have the same name as text (such as 1 and '1'); "
                "rename them with networkx.relabel_nodes"
            )
    number = {node: i for i, node in enumerate(nodes)}
    ends = np.fromiter(
        (number[end] for edge in G.edges() for end in edge[:2]), dtype=np.int64, count=2 * G.number_of_edges()
    ).reshape(-1, 2)
    low, high = ends.min(axis=1), ends.max(axis=1)
    loops = low[low == high]
    if loops.size:
        raise GraphError(
            f"the NetworkX graph has {loops.size} self-loop(s), the first at {nodes[loops[0]]!r}; "
            "remove them: G.remove_edges_from(nx.selfloop_edges(G)), for a multigraph with keys=True"
        )
    keys = _csr.distinct(low * n + high)
    return Graph.from_edges(
        n,
        np.column_stack(np.divmod(keys, n)),
        name=name or str(getattr(G, "name", "")) or "networkx graph",
        labels=labels,
        positions=_positions(G, nodes),
    )


def _positions(G: Any, nodes: list[Any]) -> FloatArray | None:
    try:
        points = np.array([G.nodes[node]["pos"] for node in nodes], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        return None
    return points if points.shape == (len(nodes), 2) and np.isfinite(points).all() else None


def to_networkx(graph: Graph) -> Any:
    """A `networkx.Graph` on 0 … n−1, with node attributes `label` and `pos` where `graph` has them."""
    import networkx as nx

    G = nx.Graph(name=graph.name)
    G.add_nodes_from(range(graph.n))
    G.add_edges_from(map(tuple, graph.edges().tolist()))
    if graph.labels is not None:
        nx.set_node_attributes(G, dict(enumerate(graph.labels)), "label")
    if graph.positions is not None:
        nx.set_node_attributes(G, dict(enumerate(map(tuple, graph.positions.tolist()))), "pos")
    return G


def as_graph(value: Any, what: str) -> Graph:
    """A `Graph` as it is, a NetworkX graph converted; anything else is refused, `what` saying who asks."""
    if isinstance(value, Graph):
        return value
    networkx = sys.modules.get("networkx")  # a NetworkX graph can only come from somebody who has loaded it
    if networkx is not None and isinstance(value, networkx.Graph):
        return from_networkx(value)
    raise InvalidValue(
        f"{what} needs a netdp Graph, got {type(value).__name__}; see netdp.graphs.from_networkx, netdp.graphs.read and "
        "netdp.graphs.parse"
    )
