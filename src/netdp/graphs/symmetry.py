"""Graphs on which every party stands in the same place: one observer speaks for all.

A graph is vertex-transitive when for any two parties an automorphism takes one to the other. Gossip matrices with a name are made
of degrees alone, so an automorphism of the graph is one of the protocol: what v learns about u is what φ(v) learns
about φ(u), distances included. The worst, the mean and the worst beyond k hops are then the same for every single observer.

A name alone proves nothing. The family that the name claims is built again and compared edge by edge with the graph.
"""

from __future__ import annotations

import re
from typing import Any

from netdp import graphs
from netdp.errors import NetdpError

from . import Graph

# Cayley graphs, all of them: translations are automorphisms.
_FAMILIES = {"ring": (1, 1), "complete": (1, 1), "hypercube": (1, 1), "exponential": (1, 1), "torus": (2, 20)}
_NAME = re.compile(r"(\w+)\((\d{1,7}(?:, \d{1,7}){0,19})\)")


def vertex_transitive(graph: Graph, mixing: Any = "metropolis") -> bool:
    """Whether `graph` is, edge by edge, a ring, torus, hypercube, exponential or complete graph. False also when nobody knows.

    Weights of one's own (`mixing` is no name) may break every symmetry: then False.

    >>> vertex_transitive(graphs.torus(4, 5)), vertex_transitive(graphs.grid(4, 5))
    (True, False)
    >>> vertex_transitive(graphs.Graph.from_edges(3, [(0, 1), (1, 2)], name="ring(3)"))
    False
    """
    if not isinstance(mixing, str):
        return False
    match = _NAME.fullmatch(graph.name)
    if match is None or match[1] not in _FAMILIES:
        return False
    numbers = [int(number) for number in match[2].split(", ")]
    fewest, most = _FAMILIES[match[1]]
    if not fewest <= len(numbers) <= most or max(numbers) > graph.n:
        return False
    try:
        return bool(getattr(graphs, match[1])(*numbers) == graph)
    except NetdpError:
        return False
