"""Muffliato as printed: Theorem 1/12 on graphs that change, Equations (6) and (14). Not an upper bound, as on a fixed graph.

The printed (W_{0:t})_{u,w} is a product of different matrices and not symmetric; the weight of u in the message of w is
(W_{0:t})_{w,u}, which is used here.
"""

from __future__ import annotations

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import VaryingGossip

ERRATA = (
    "Equations (6) and (14) print (W_{0:t})_{u,w}; a product of different matrices is not symmetric, and the weight of u in the "
    "message of w is (W_{0:t})_{w,u}, which is used here.",
)


def equation14(protocol: VaryingGossip, observers: tuple[int, ...]) -> FloatArray:
    """Σ_t Σ_w (W_{0:t})²_{w,u} / ‖(W_{0:t})_w‖² over all w that talk to some colluder in round t, as a factor; nan at V.

    For one observer this is Equation (6).

    >>> from netdp import graphs
    >>> same = VaryingGossip([graphs.ring(9)] * 2, sigma=1.0)
    >>> equation14(same, (0,)).round(4).tolist()                        # as Theorem 1 on the fixed ring
    [nan, 1.3333, 0.3333, 0.0, 0.0, 0.0, 0.0, 0.3333, 1.3333]
    """
    n, rows = protocol.n, np.zeros((protocol.n, 0))
    for t in range(protocol.rounds - 1, -1, -1):
        W, graph = protocol.matrices[t], protocol.graphs[t]
        if rows.shape[1]:
            rows = csr_times_block(W.indptr, W.indices, W.data, rows)
        senders = np.unique(np.concatenate([graph.neighbors(v) for v in observers])).astype(np.int64)
        units = np.zeros((n, len(senders)))
        units[senders, np.arange(len(senders))] = 1.0
        rows = np.hstack([rows, units])
    squares = rows**2
    total = np.asarray(squares @ (1.0 / squares.sum(axis=0))) if rows.shape[1] else np.zeros(n)
    total[list(observers)] = np.nan
    return total
