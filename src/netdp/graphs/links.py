"""A few random links: rings laid over the parties of a graph, so that whatever has to spread or to mix does so soon.

Real networks mix slowly because of a few bottlenecks and of trees that hang off them. A ring through all parties in an order
drawn at random gives everybody at most two more neighbours, and a graph with such a ring over it has logarithmic distances and
a constant spectral gap with high probability (a cycle with a random matching: Bollobás and Chung 1988). netdp rests nothing
on that: every number is certified for the graph that was drawn (docs/guarantees.md#random-links, where the proof stands).

**What the links must be.** Public, and drawn without a look at anybody's data: which graph it is then tells nothing, and a
guarantee for that graph is a guarantee. They should be drawn after the parties are known, so that nobody can arrange to
become somebody's neighbour.

**Drawing.** An order is that of 128-bit keys, one per party, from SHAKE-256 of the seed: the same on every machine, whatever
the version of NumPy, so a seed is as good as the list of links. Given keys that are independent and uniform all orders are
equally likely unless two keys agree, which has a probability of at most n²/2¹²⁹. Rings of one seed are nested: the first k
of k + 1 rings are those of k, so distances never grow with the number of rings.
"""

from __future__ import annotations

import hashlib

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import whole

from . import _csr
from ._check import affordable
from .graph import Graph

#: No graph needs more: after a few rings another one changes little.
MOST_RINGS = 64


def with_links(graph: Graph, rings: int, seed: int) -> Graph:
    """The graph with so many random rings laid over it: at most twice as many further neighbours for everybody.

    Links that are there already are not doubled. Labels and positions stay.

    >>> from netdp.graphs import path
    >>> linked = with_links(path(1000), 1, seed=0)
    >>> linked, int(linked.degrees.max())
    (Graph('path(1000) + 1 random ring (seed 0)', n=1000, m=1998), 4)
    >>> int(path(1000).distances(0).max()), int(linked.distances(0).max())
    (999, 8)
    """
    if not isinstance(graph, Graph):
        raise InvalidValue(
            f"links are laid over a netdp.Graph, got {graph!r}; netdp.graphs.as_graph makes one of others"
        )
    rings, seed = checked(rings, seed)
    if rings == 0:
        return graph
    if graph.n < 3:
        raise InvalidValue(f"a ring goes through at least three parties, and {graph!r} has {graph.n}")
    affordable(graph.m + rings * graph.n, f"{graph.name} with {rings} rings")
    known = graph.edges()
    keys = [known[:, 0] * graph.n + known[:, 1]]
    for ring in range(rings):
        order = random_order(graph.n, "links", seed, ring)
        after = np.roll(order, -1)
        keys.append(np.minimum(order, after) * graph.n + np.maximum(order, after))
    edges = np.column_stack(np.divmod(_csr.distinct(np.concatenate(keys)), graph.n))
    said = f"{graph.name} + {rings} random ring{'s' if rings > 1 else ''} (seed {seed})"
    indptr, indices = _csr.build(graph.n, edges)
    return Graph._trusted(indptr, indices, said, graph.labels, graph.positions, None)


def random_order(n: int, purpose: str, seed: int, ring: int) -> IntArray:
    """All of n parties in the order of one ring; another `purpose` makes another order of the same seed."""
    stream = hashlib.shake_256(f"netdp {purpose} 1: {n} parties, seed {seed}, ring {ring}".encode())
    keys = np.frombuffer(stream.digest(16 * n), dtype="<u8").reshape(n, 2)
    return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)


def checked(rings: object, seed: object) -> tuple[int, int]:
    """A number of rings and a seed, or a refusal."""
    number = whole("links (how many random rings)", rings, 0, "0 to 64; each gives everybody two more neighbours")
    if number > MOST_RINGS:
        raise InvalidValue(
            f"links={number}: more than {MOST_RINGS} random rings buy nothing; each gives everybody two more neighbours, and after "
            "two or three there is little left to gain"
        )
    return number, whole("the seed of the links", seed, 0, "a whole number ≥ 0")


__all__ = ["MOST_RINGS", "with_links"]
