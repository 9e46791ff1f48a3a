"""Random walks on a graph: where a token or a report goes next."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.graphs.graph import Graph

WALKS = ("metropolis", "simple")


def transition_matrix(graph: Graph, walk: str = "simple") -> Any:
    """The transition matrix of the simple or the Metropolis walk, as a CSR array with sorted indices.

    Simple: P_uw = 1/d_u, in the long run at u with probability d_u/2m. Metropolis: P_uw = min(1/d_u, 1/d_w), the rest stays
    at u; in the long run everywhere alike.

    >>> from netdp import graphs
    >>> transition_matrix(graphs.path(3), "metropolis").toarray().round(3).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    from scipy.sparse import csr_array, dia_array

    degrees = graph.degrees
    rows = np.repeat(np.arange(graph.n), degrees)
    columns = np.asarray(graph.indices)
    if walk == "simple":
        P = csr_array((1.0 / degrees[rows], columns, graph.indptr), shape=(graph.n, graph.n))
    else:
        weights = 1.0 / np.maximum(degrees[rows], degrees[columns])
        off = csr_array((weights, columns, graph.indptr), shape=(graph.n, graph.n))
        rest = np.maximum(1.0 - np.bincount(rows, weights=weights, minlength=graph.n), 0.0)
        P = csr_array(off + dia_array((rest[None, :], [0]), shape=off.shape))
    P.sort_indices()
    return P
