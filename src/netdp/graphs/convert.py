"""NetworkX graphs in and out, and the one place that says what may stand for a graph."""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.graphs import csr as _csr
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray

logger = logging.getLogger("netdp.graphs")


def as_graph(value: Any, what: str = "the graph") -> Graph:
    """`value` if it is a `Graph`, the conversion of a NetworkX graph, or a refusal; `what` names it there.

    >>> as_graph("ring:5", "the graph of this protocol")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: the graph of this protocol must be a netdp Graph or a NetworkX graph, got 'ring:5' ...
    """
    if isinstance(value, Graph):
        return value
    if is_networkx(value):
        return from_networkx(value)
    raise InvalidValue(
        f"{what} must be a netdp Graph or a NetworkX graph, got {_brief(value)}; graphs.parse('ring:64') reads a short "
        "text, graphs.read('edges.csv') a file, graphs.from_networkx converts, Graph.from_edges(n, pairs) builds one"
    )


def is_networkx(value: Any) -> bool:
    """Whether this is a NetworkX graph."""
    # Whoever holds a NetworkX graph has imported NetworkX: no need to load it for the question.
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(value, getattr(networkx, "Graph", ()))


def _brief(value: Any) -> str:
    """The value with its type, for a refusal; a long value is cut."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:59] + '…'} of type {type(value).__name__}"


def from_networkx(G: Any, *, name: str | None = None) -> Graph:
    """The simple undirected graph under a NetworkX graph.

    Multiplicities and weights are forgotten; an edge whose weight is not positive is kept, with a warning
    in the log, because some use such weights for "no edge". Nodes that are the integers 0 … n−1 keep their
    numbers; otherwise nodes are numbered in `G`'s order and their names become labels. Node attributes `pos`
    (pairs of numbers, on every node) become positions. Directions are never forgotten: a directed graph is taken if every
    arrow has its opposite, and refused otherwise. Walks go along arrows: `graphs.transition(G)`.

    Raises:
        InvalidValue: `G` is no NetworkX graph.
        GraphError: `G` is empty or has self-loops or an arrow without its opposite, or two nodes have the same name as text.

    >>> import networkx as nx
    >>> from_networkx(nx.DiGraph([("ann", "bob"), ("bob", "ann"), ("bob", "cy"), ("cy", "bob")])).labels
    ('ann', 'bob', 'cy')
    >>> from_networkx(nx.DiGraph([("ann", "bob")]))
    Traceback (most recent call last):
    netdp.errors.GraphError: the NetworkX graph is directed: ...
    """
    if not is_networkx(G):
        raise InvalidValue(
            f"from_networkx takes a NetworkX graph, got {_brief(G)}; networkx.from_numpy_array makes one of an adjacency "
            "matrix, Graph.from_edges(n, pairs) takes edges"
        )
    nodes, labels = node_names(G)
    n = len(nodes)
    if G.is_directed():
        lone = next(((u, w) for u, w in G.edges() if u != w and not G.has_edge(w, u)), None)
        if lone is not None:
            raise GraphError(
                f"the NetworkX graph is directed: there is an arrow from {lone[0]!r} to {lone[1]!r} and none back. Gossip, "
                "masks and shuffling send both ways: take G.to_undirected() if links do. A token can walk along arrows: "
                "GraphWalkSum, WalkDescent and WalkHistogram take G itself or graphs.transition(G)"
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
    _warn_of_weights(G)
    keys = _csr.distinct(low * n + high)
    return Graph.from_edges(
        n,
        np.column_stack(np.divmod(keys, n)),
        name=name or str(getattr(G, "name", "")) or "networkx graph",
        labels=labels,
        positions=_positions(G, nodes),
    )


def node_names(G: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """The nodes of a NetworkX graph in the order of their numbers here, and their names if they are not just numbers."""
    nodes = list(G.nodes)
    n = len(nodes)
    if n == 0:
        raise GraphError("the NetworkX graph has no node; a graph needs at least one")
    numbered = all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in nodes)
    if numbered and set(nodes) == set(range(n)):
        nodes = list(range(n))
        given = [G.nodes[node].get("label") for node in nodes]  # as to_networkx writes them
        return nodes, tuple(given) if all(isinstance(label, str) for label in given) else None
    labels = tuple(str(node) for node in nodes)
    if len(set(labels)) < n:
        raise GraphError(
            "two nodes of the NetworkX graph have the same name as text (such as 1 and '1'); "
            "rename them with networkx.relabel_nodes"
        )
    return nodes, labels


def _warn_of_weights(G: Any) -> None:
    useless = [
        (u, v, weight)
        for u, v, weight in G.edges(data="weight")
        if isinstance(weight, int | float | np.number) and not isinstance(weight, bool) and weight <= 0
    ]
    if useless:
        u, v, weight = useless[0]
        logger.warning(
            "%s weight%s not positive, the first %r on the edge (%r, %r): netdp ignores weights; remove such edges "
            "yourself if they mean 'no edge'",
            f"{len(useless):,}",
            " is" if len(useless) == 1 else "s are",
            weight,
            u,
            v,
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
