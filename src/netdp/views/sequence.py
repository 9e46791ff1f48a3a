"""The view of gossip whose matrix changes from step to step: varying graphs, randomized gossip on known edges.

Let O be the observers, H the others, and P_t = W_t restricted to H. As on a fixed graph (`netdp.views.gossip`), the
observers know their own states at all times: xᵗ⁺¹_O is a function of xᵗ_O and of the messages of step t. So they can
subtract kᵗ, k⁰ = 0, kᵗ⁺¹ = P_t kᵗ + (W_t)_HO xᵗ_O, from the hidden states, and what is left is the recursion of H alone,

    zᵗ⁺¹ = P_t zᵗ,   z⁰ = x_H + ση_H,      seen at time t:  e_wᵀzᵗ = e_wᵀ P_{t−1} ⋯ P_0 z⁰   for w in R_t,

R_t the hidden parties that send to an observer at step t. The transformation is invertible, so the view is the span of
these rows. Looked at backwards, let S_t be the span, as functionals of zᵗ, of all that is seen from time t on:

    S_T = 0,     S_t = span{e_w : w ∈ R_t} + P_t S_{t+1},     and S_0 is what is seen of z⁰

(P_t is symmetric). `backward` gives the steps of that recursion. For randomized gossip P_t is simple: an exchange between
two hidden parties averages their two coordinates; one between hidden u and an observer halves coordinate u, which does
not matter because e_u is added to the span; one between two observers does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.numerics.arrays import IntArray
from netdp.protocols import RandomizedGossip, VaryingGossip

from .transcript import Transcript


class Step(NamedTuple):
    """One step backwards: multiply by P_t (`pull` = t), average two coordinates (`pull` = (u, w)) or nothing; then see."""

    pull: int | tuple[int, int] | None
    seen: IntArray


@dataclass(frozen=True, eq=False)
class SequenceView:
    """What colluding `observers` see of a `VaryingGossip`, or of a `RandomizedGossip` that drew `edges`."""

    protocol: VaryingGossip | RandomizedGossip
    observers: tuple[int, ...]
    edges: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.graph.n

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """(n,) which parties are not observers."""
        mask = np.ones(self.n, dtype=bool)
        mask[list(self.observers)] = False
        return mask

    def backward(self) -> Iterator[Step]:
        """The steps from the last to the first; steps that change nothing are left out."""
        nobody = np.empty(0, dtype=np.int64)
        if isinstance(self.protocol, VaryingGossip):
            senders: dict[str, IntArray] = {}
            for t in range(self.protocol.rounds - 1, -1, -1):
                graph = self.protocol.graphs[t]
                if graph.digest not in senders:
                    senders[graph.digest] = self._senders(graph)
                yield Step(t, senders[graph.digest])
            return
        assert self.edges is not None
        hidden = self.hidden.tolist()
        known = set[int]()  # e_u is in the span already, and stays until u's coordinate is averaged
        for u, w in self.edges[::-1].tolist():
            if u < 0 or not (hidden[u] or hidden[w]):
                continue
            if hidden[u] and hidden[w]:
                known -= {u, w}
                yield Step((u, w), nobody)
            elif (sender := u if hidden[u] else w) not in known:
                known.add(sender)
                yield Step(None, np.array([sender]))

    def _senders(self, graph: Graph) -> IntArray:
        seen = np.zeros(self.n, dtype=bool)
        for v in self.observers:
            seen[graph.neighbors(v)] = True
        return np.flatnonzero(seen & self.hidden)

    @cached_property
    def reached(self) -> npt.NDArray[np.bool_]:
        """(n,) the hidden parties whose value reaches an observer along some path in time; nobody else's loss is above 0."""
        reached = np.zeros(self.n, dtype=bool)
        for pull, seen in self.backward():
            if isinstance(pull, tuple):
                reached[list(pull)] = reached[list(pull)].any()
            elif pull is not None:
                graph = self.protocol.graphs[pull]  # type: ignore[union-attr]
                spread = reached.copy()
                ends = graph.edges()
                np.logical_or.at(spread, ends[:, 0], reached[ends[:, 1]])
                np.logical_or.at(spread, ends[:, 1], reached[ends[:, 0]])
                reached = spread & self.hidden
            reached[seen] = True
        return reached


def exchanged(protocol: RandomizedGossip, edges: Any) -> IntArray:
    """The realised edges (steps, 2) from an array or a transcript, checked against the protocol.

    >>> from netdp import graphs
    >>> exchanged(RandomizedGossip(graphs.ring(4), steps=2, sigma=1.0), [[1, 0], [0, 2]])
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: step 1 wakes (0, 2), which is no edge of Graph('ring(4)', n=4, m=4)
    """
    pairs = edges.exchanges() if isinstance(edges, Transcript) else np.asarray(edges)
    if pairs.shape != (protocol.steps, 2) or pairs.dtype.kind not in "iu":
        raise InvalidValue(
            f"edges must be whole numbers of shape ({protocol.steps}, 2), one pair per step and (-1, -1) for idle steps, "
            f"or the transcript of a run; got shape {pairs.shape}"
        )
    pairs = np.sort(pairs.astype(np.int64), axis=1)
    known = protocol.graph.edges()
    n = protocol.graph.n
    idle = (pairs == -1).all(axis=1)
    valid = idle | ((pairs[:, 0] >= 0) & np.isin(pairs[:, 0] * n + pairs[:, 1], known[:, 0] * n + known[:, 1]))
    if not valid.all():
        t = int(np.argmin(valid))
        raise InvalidValue(f"step {t} wakes ({pairs[t, 0]}, {pairs[t, 1]}), which is no edge of {protocol.graph!r}")
    return pairs
