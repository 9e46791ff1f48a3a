"""The networks that parties talk along.

`Graph` is the one noun; it comes from a family (`ring`, `hypercube`, …), a file (`read`), a name
(`dataset`), NetworkX (`from_networkx`) or a short text (`parse`). `mixing` makes a gossip matrix of it and
`spectrum` says how fast that mixes. `with_links` lays random rings over it, which makes it mix soon.

>>> from netdp import graphs
>>> g = graphs.hypercube(8)
>>> g
Graph('hypercube(8)', n=256, m=1024)
>>> round(graphs.spectrum.spectral_gap(g), 6)
0.222222
"""

from netdp.graphs.convert import as_graph, from_networkx
from netdp.graphs.families import (
    balanced_tree,
    barabasi_albert,
    complete,
    erdos_renyi,
    exponential,
    geometric,
    grid,
    hypercube,
    path,
    random_tree,
    regular,
    ring,
    star,
    torus,
    with_links,
)
from netdp.graphs.files import ReadReport, read, read_with_report
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import GossipMatrix, edge_weights, gossip_matrix
from netdp.graphs.named import Dataset, dataset, datasets
from netdp.graphs.spec import parse
from netdp.graphs.transitions import Transition, transition

from . import mixing, spectrum

__all__ = [
    "Dataset",
    "GossipMatrix",
    "Graph",
    "ReadReport",
    "Transition",
    "as_graph",
    "balanced_tree",
    "barabasi_albert",
    "complete",
    "dataset",
    "datasets",
    "edge_weights",
    "erdos_renyi",
    "exponential",
    "from_networkx",
    "geometric",
    "gossip_matrix",
    "grid",
    "hypercube",
    "mixing",
    "parse",
    "path",
    "random_tree",
    "read",
    "read_with_report",
    "regular",
    "ring",
    "spectrum",
    "star",
    "torus",
    "transition",
    "with_links",
]
