"""The views of gossip whose hidden states are more than one number per party, or whose steps are not symmetric.

As on a fixed graph (`netdp.views.gossip`), the observers know their own states at all times: these are functions of their
own values and noises and of what they received. So they can subtract what they put into the hidden states themselves, and
what is left is the recursion of the hidden parties H alone. `netdp.accounting.gossip.states` computes what it shows.

MomentumView   accelerated randomized gossip on known edges. At the moment of an exchange the state is (x_H, z_H); an
               exchange between hidden u and w moves both; one between hidden u and an observer shows x_u and takes x_u to
               x_u/2 and z_u to z_u − ζx_u, plus known numbers; then, before the next exchange, every party lets x and z
               drift. z⁰ = x⁰, so at the end the two halves of a functional add up.
PushView       push-sum: the state is s_H, the observers see s_j of every hidden j with a link to one of them (its share
               times the public number of shares), and s_H ← A_HH s_H + known.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import PushSum, RandomizedGossip

from .sequence import SequenceView


@dataclass(frozen=True, eq=False)
class MomentumView:
    """What colluding `observers` see of accelerated randomized gossip that drew `edges`."""

    protocol: RandomizedGossip
    observers: tuple[int, ...]
    edges: IntArray

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.n

    @property
    def digest(self) -> bytes:
        """A hash of graph, momentum, edges and observers."""
        about = repr((self.protocol.graph.digest, self.protocol.momentum, self.observers)).encode()
        return hashlib.blake2b(about + np.ascontiguousarray(self.edges, dtype="<i8").tobytes()).digest()

    @property
    def width(self) -> int:
        """x and z of everybody."""
        return 2 * self.n

    @property
    def steps(self) -> int:
        """How many edges were drawn."""
        return len(self.edges)

    @cached_property
    def _hidden(self) -> list[bool]:
        members = set(self.observers)
        return [v not in members for v in range(self.n)]

    def seen(self, t: int) -> IntArray:
        """x of the hidden end of an exchange with an observer."""
        u, w = self.edges[t].tolist()
        if u < 0 or self._hidden[u] == self._hidden[w]:
            return np.empty(0, dtype=np.int64)
        return np.array([u if self._hidden[u] else w])

    def pull(self, t: int, block: FloatArray) -> FloatArray:
        """The transposed drift, then the transposed exchange."""
        (tau, zeta), n = self.protocol.momentum, self.n
        x, z = (1 - tau) * block[:n] + tau * block[n:], (1 - tau) * block[n:] + tau * block[:n]
        return np.asarray(self._exchange(t, np.vstack([x, z]), 0.5, zeta))

    def pull_modular(self, t: int, block: IntArray, prime: int) -> IntArray:
        """The same modulo a prime: τ and ζ are binary fractions."""
        tau, zeta = (_residue(number, prime) for number in self.protocol.momentum)
        rest, n = _residue(1 - self.protocol.momentum[0], prime), self.n
        x = (rest * block[:n] % prime + tau * block[n:] % prime) % prime
        z = (rest * block[n:] % prime + tau * block[:n] % prime) % prime
        return np.asarray(self._exchange(t, np.vstack([x, z]), (prime + 1) // 2, zeta, prime))

    def _exchange(self, t: int, block: Any, half: Any, zeta: Any, prime: int | None = None) -> Any:
        def mod(row: Any) -> Any:
            return row if prime is None else row % prime

        u, w = self.edges[t].tolist()
        n = self.n
        if u < 0 or not (self._hidden[u] or self._hidden[w]):
            return block
        if self._hidden[u] and self._hidden[w]:
            mean = mod(half * mod(block[u] + block[w]))
            shift = mod(zeta * mod(block[n + u] - block[n + w]))
            block[u], block[w] = mod(mean - shift), mod(mean + shift)
            return block
        one = u if self._hidden[u] else w
        block[one] = mod(mod(half * block[one]) - mod(zeta * block[n + one]))
        return block

    def collapse(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Both numbers start as the noisy value."""
        return np.asarray(block[: self.n] + block[self.n :])

    def reached(self) -> npt.NDArray[np.bool_]:
        """As without momentum: the drift is everybody's own."""
        return SequenceView(self.protocol, self.observers, self.edges).reached


@dataclass(frozen=True, eq=False)
class PushView:
    """What colluding `observers` see of push-sum."""

    protocol: PushSum
    observers: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.n

    @property
    def digest(self) -> bytes:
        """A hash of links, rounds and observers."""
        about = (self.n, self.protocol.links, self.steps, self.observers)
        return hashlib.blake2b(repr(about).encode()).digest()

    @property
    def width(self) -> int:
        """One number per party."""
        return self.n

    @property
    def steps(self) -> int:
        """Rounds."""
        return self.protocol.rounds

    @cached_property
    def _senders(self) -> IntArray:
        members = set(self.observers)
        return np.array(
            sorted({a for a, b in self.protocol.links if b in members and a not in members}), dtype=np.int64
        )

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.protocol.matrix.T)

    def seen(self, t: int) -> IntArray:
        """Hidden parties with a link to an observer."""
        return self._senders

    def pull(self, t: int, block: FloatArray) -> FloatArray:
        """A_HHᵀ."""
        product = np.asarray(self._transposed @ block)
        product[list(self.observers)] = 0.0
        return product

    def pull_modular(self, t: int, block: IntArray, prime: int) -> IntArray:
        """The same modulo a prime: party j's row is the mean of its own and its receivers' rows."""
        ones = sparse.csr_array(
            (np.ones(self._transposed.nnz, dtype=np.int64), self._transposed.indices, self._transposed.indptr),
            shape=self._transposed.shape,
        )
        inverse = np.array([pow(int(parts), -1, prime) for parts in self.protocol.splits], dtype=np.int64)
        product = np.asarray(ones @ block) % prime * inverse[:, None] % prime
        product[list(self.observers)] = 0
        return product

    def collapse(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The state is the noisy value."""
        return block

    def reached(self) -> npt.NDArray[np.bool_]:
        """Parties from which links lead to an observer within the rounds."""
        links = np.array(self.protocol.links)
        hidden = ~np.isin(np.arange(self.n), self.observers)
        found = np.zeros(self.n, dtype=bool)
        for _ in range(self.steps):
            following = found.copy()
            np.logical_or.at(following, links[:, 0], found[links[:, 1]])
            following[self._senders] = True
            found = following & hidden
        return found


def _residue(number: float, prime: int) -> int:
    top, bottom = float(number).as_integer_ratio()
    return top * pow(bottom, -1, prime) % prime
