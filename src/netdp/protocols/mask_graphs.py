"""Random mask graphs that anybody can draw again from a public seed: rings laid over the parties at random.

`random_rings(n, count, seed)` is the union of `count` rings, each through all parties in an order drawn at random. So
everybody has at most 2·count partners (fewer where two rings share an edge), and what a coalition can cut off has a
probability that is known exactly ring by ring (`netdp.accounting.masked.cuts`): nothing of the kind is proved of the
usual generators of regular graphs.

An order is that of 128-bit keys, one per party, from SHAKE-256 of the seed: the same on every machine, whatever the
version of NumPy. Given keys that are independent and uniform, all orders are equally likely unless two keys agree, which
has a probability of at most n²/2¹²⁹.
"""

from __future__ import annotations

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.graphs.links import random_order as order_of_ring
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import count, whole


def random_rings(n: int, rings: int, seed: int) -> Graph:
    """The union of so many random rings through all n parties.

    >>> graph = random_rings(50, 3, seed=1)
    >>> graph.is_connected, int(graph.degrees.max()), graph == random_rings(50, 3, seed=1)
    (True, 6, True)
    """
    n, rings, seed = count("n", n), count("rings", rings), whole("seed", seed)
    if n < 3:
        raise InvalidValue(f"a ring has at least three parties, got {n}")
    orders = [random_order(n, seed, ring) for ring in range(rings)]
    ends = np.concatenate([np.column_stack([order, np.roll(order, -1)]) for order in orders])
    edges = np.unique(np.sort(ends, axis=1), axis=0)
    return Graph.from_edges(n, edges, name=f"{rings} random rings of {n}, seed {seed}")


def random_order(n: int, seed: int, ring: int) -> IntArray:
    """All parties in the order of one ring."""
    return order_of_ring(n, "mask graph", seed, ring)
