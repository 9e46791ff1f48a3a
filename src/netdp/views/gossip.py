"""The view of gossip in structured form: sparse, never written out (docs/guarantees.md#hidden-recursion).

Let O be the observers and H the others. The observers know their own states x̃ᵗ_O at every t: they computed them from
what they received and from their own noise. Subtracting what those states contribute, the hidden states obey the same
recursion with W_HH in place of W (the rows and columns of O struck out), started from z⁰ = x_H + noise_H + masks among
H, and what is left to see is

    y_t = (x̃ᵗ without the observers' contributions) at the boundary N(O)   (t = 0 … T−1)
        = C [ p_t(W_HH) z⁰ + τ Σ_{1≤j≤t} r_{t−j}(W_HH) gʲ ].

The map from messages to (y_t) is invertible given what O knows, so nothing is lost or gained.

z⁰ has covariance σ²(I + κL′), L′ the Laplacian of the graph without O: the masks on the edges of O are known and gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import Gossip, GossipRounds

from .observers import observer_set


@dataclass(frozen=True, eq=False)
class GossipView:
    """What colluding `observers` see of gossip: a whole `Gossip`, or the rounds of one iteration of learning."""

    protocol: Gossip | GossipRounds
    observers: tuple[int, ...]

    def __post_init__(self) -> None:
        if isinstance(self.protocol, Gossip) and self.protocol.grid is not None:
            raise Unsupported(
                f"this Gossip rounds to a grid of {self.protocol.grid:g}, and a linear view speaks of real numbers: "
                "account(protocol, observers) certifies it; to find σ, calibrate with grid=None, then state grid= and account "
                "again"
            )

    @classmethod
    def of(cls, protocol: Gossip | GossipRounds, observers: int | str | Iterable[int | str]) -> GossipView:
        """The view of the named observers."""
        return cls(protocol, observer_set(protocol.graph, observers))

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """(n,) which parties are not observers."""
        mask = np.ones(self.protocol.graph.n, dtype=bool)
        mask[list(self.observers)] = False
        return mask

    @cached_property
    def boundary(self) -> IntArray:
        """The parties that send to an observer, in increasing order."""
        graph = self.protocol.graph
        seen = np.zeros(graph.n, dtype=bool)
        for v in self.observers:
            seen[graph.neighbors(v)] = True
        return np.flatnonzero(seen & self.hidden)

    def step(self, states: FloatArray) -> FloatArray:
        """W_HH applied to the columns of `states`, whose rows at the observers are zero and stay zero."""
        W = self.protocol.matrix
        product = csr_times_block(W.indptr, W.indices, W.data, states)
        product[list(self.observers)] = 0.0
        return product

    def mask_laplacian(self, states: FloatArray) -> FloatArray:
        """L′ applied to the columns of `states`: only edges between two hidden parties carry a secret mask."""
        graph = self.protocol.graph
        degrees = graph.degrees.astype(np.float64)
        for v in self.observers:
            degrees[graph.neighbors(v)] -= 1.0
        ones = np.ones(len(graph.indices))
        product = degrees[:, None] * states - csr_times_block(graph.indptr, graph.indices, ones, states)
        product[list(self.observers)] = 0.0
        return product
