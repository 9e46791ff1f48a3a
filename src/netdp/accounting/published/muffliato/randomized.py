"""Randomized Muffliato as printed (Cyffers, Even, Bellet, Massoulié: Muffliato, NeurIPS 2022): Corollary 2, given the edges.

**Not an upper bound**, for the reason given in `muffliato`: messages that carry the same noise are counted as if their
noises were independent. Path 0–1–2, exchanges {0,1}, {1,2}, {0,1}, observer 0: the last message brings (n₀+n₁)/4 + n₂/2, of
which 0 knows n₀ and n₁, so it learns the noisy value n₂ of party 2, factor 1; the formula says 2/3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import FloatArray
from netdp.protocols import RandomizedGossip

ERRATA = (
    "Corollary 2 prints (W_{0:t})_{u,w}; a product of different matrices is not symmetric, and the weight of u in the "
    "message of w is (W_{0:t})_{w,u}, which is used here.",
    "Corollary 2 is not an upper bound: path 0-1-2, exchanges {0,1}, {1,2}, {0,1}, observer 0: true "
    "factor of 2 is 1, formula 2/3.",
    "Theorems 3 and 8 need λ(p)/2 in place of λ(p), the second eigenvalue of the Laplacian with weights p: "
    "E‖Wx‖² = ‖x‖² − xᵀL_p x/2. On the complete graph the printed rate is exceeded at every step.",
)


def corollary2(protocol: RandomizedGossip, observers: tuple[int, ...], edges: npt.NDArray[np.int64]) -> FloatArray:
    """Σ_{w~v} Σ_{t: {v,w} wakes at t} (W_{0:t})²_{w,u} / ‖(W_{0:t})_w‖² for all u, as a factor; nan at the observers.

    Colluders as in Theorem 12: the sum runs over all messages to some colluder, those among colluders included.

    >>> from netdp import graphs
    >>> protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=1.0)
    >>> corollary2(protocol, (0,), np.array([[0, 1], [1, 2], [0, 1]])).round(4).tolist()
    [nan, 1.1667, 0.6667]
    """
    watching = set(observers)
    # Rows of W_{0:t} run backwards: a row is started at its message and averaged through all earlier exchanges.
    received = sum((u in watching) + (w in watching) for u, w in edges.tolist())
    rows, open_ = np.zeros((protocol.graph.n, received)), 0
    for u, w in edges[::-1].tolist():
        if u < 0:
            continue
        rows[u, :open_] = rows[w, :open_] = 0.5 * (rows[u, :open_] + rows[w, :open_])
        for sender, receiver in ((u, w), (w, u)):
            if receiver in watching:
                rows[sender, open_] = 1.0
                open_ += 1
    squares = rows**2
    total = np.asarray(squares @ (1.0 / squares.sum(axis=0)))
    total[list(observers)] = np.nan
    return total
