"""The networks that parties talk along.

`Graph` is the one noun; it comes from a family (`ring`, `hypercube`, …), a file (`read`), a name
(`dataset`), NetworkX (`from_networkx`) or a short text (`parse`). `mixing` makes a gossip matrix of it and
`spectrum` says how fast that mixes.

>>> from netdp import graphs
>>> g = graphs.hypercube(8)
>>> g
Graph('hypercube(8)', n=256, m=1024)
>>> round(graphs.spectrum.spectral_gap(g), 6)
0.222222
"""

from netdp.graphs import mixing, spectrum
from netdp.graphs.convert import as_graph, from_networkx
from netdp.graphs.families import (
    complete,
    erdos_renyi,
    geometric,
    grid,
    hypercube,
    path,
    regular,
    ring,
    star,
    torus,
)
from netdp.graphs.files import ReadReport, read, read_with_report
from netdp.graphs.graph import Graph
from netdp.graphs.named import Dataset, dataset, datasets
from netdp.graphs.spec import parse

__all__ = [
    "Dataset",
    "Graph",
    "ReadReport",
    "as_graph",
    "complete",
    "dataset",
    "datasets",
    "erdos_renyi",
    "from_networkx",
    "geometric",
    "grid",
    "hypercube",
    "mixing",
    "parse",
    "path",
    "read",
    "read_with_report",
    "regular",
    "ring",
    "spectrum",
    "star",
    "torus",
]
