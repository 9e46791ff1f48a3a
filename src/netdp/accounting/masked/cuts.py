"""The probability that a coalition cuts honest parties off on a mask graph of random rings.

A mask graph is the union of R random rings through all n parties (`netdp.protocols.mask_graphs`), drawn *after* the
coalition O of c parties was fixed. The h = n − c others hide among all of them if they are connected without O.
Proof: docs/guarantees.md#random-masks.

**Union bound.** If they are not, some S of s ≤ h/2 of them has no edge to T, the h − s others. The rings are independent,
so that has at most the probability

    Σ_{s ≤ h/2} C(h, s)·p_s^R,      p_s = P[one random ring has no edge between S and T]         (half of it for s = h/2)

**One ring, exactly.** Go round the ring from any member of O: the c members of O leave c gaps, and a gap may hold members
of S only, or of T only, or nobody; with members of both, two of them would be neighbours. With members of S in a of the
gaps (in C(c, a)·C(s − 1, a − 1) ways to choose the gaps and how many each holds) those of T share the c − a other gaps, in
C(t + c − a − 1, t) ways. Of (n − 1)!/((c − 1)! s! t!) colourings of the places after the first, all equally likely,

    p_s = Σ_a C(c, a)·C(s − 1, a − 1)·C(t + c − a − 1, t)·(c − 1)! s! t!/(n − 1)!,     t = h − s.

It is 0 for c < 2: one party cannot cut a ring. For s > 256 the sum over a is bounded by its largest term times the number
of terms (their ratio falls with a).

**What it is worth.** The drawn graph is public and says nothing of anybody's data. Averaged over it, a test gains at most
δ(ε) of the connected case, plus p where the others are not connected: (ε, δ(ε) + p).

**Rounding.** Logarithms of factorials are added up one by one, each sum wrong by at most (n + 8)·log n! roundings; at most
13 of them enter p_s. The bound is multiplied by the exponential of all that.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, probability, whole
from netdp.protocols import MaskedSum

_SUMMED = 256  # sizes of S for which the sum over a is carried out


def cut_probability(protocol: MaskedSum, colluders: int) -> float:
    """A bound on the probability, over the draw of the mask graph, that so many colluders cut honest parties off.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(1000), sigma=1.0, masks=20)
    >>> cut_probability(p, 1), f"{cut_probability(p, 100):.1e}", f"{cut_probability(p, 300):.1e}"
    (0.0, '8.4e-18', '2.4e-08')
    """
    number = whole("colluders", colluders)
    if number >= protocol.n:
        raise InvalidValue(f"colluders={number} leaves nobody of {protocol.n} parties who could be cut off")
    if protocol.mask_graph is None:
        return 0.0
    if isinstance(protocol.masks, Graph):
        raise Unsupported(
            "masks is a given graph, which was not drawn at random after the coalition was fixed; name the coalition, give a "
            'degree, or share pads between all pairs, masks="complete"'
        )
    assert isinstance(protocol.masks, int)
    return rings_cut(protocol.n, number, protocol.masks // 2)


def rings_cut(n: int, colluders: int, rings: int) -> float:
    """The same for the union of so many random rings through n parties."""
    if colluders < 2 or n - colluders < 2:
        return 0.0
    sets, alone, error = _logarithms(n, colluders)
    terms = sets + rings * alone
    largest = float(terms.max())
    margin = (13 * rings + 3) * error + 1e-9
    total = largest + math.log(float(np.exp(terms - largest).sum())) + margin
    ties = rings * n * n * 2.0**-129
    return 1.0 if total >= 0 else min(math.exp(total) + ties, 1.0)


def partners_needed(n: int, colluders: int, chance: float) -> int | None:
    """The least even degree with which so many colluders cut anybody off with at most this probability; None if none does.

    >>> partners_needed(1000, 100, 1e-9)
    12
    """
    n, colluders = count("n", n), whole("colluders", colluders)
    probability("chance", chance)
    for rings in range(1, (n + 1) // 2):
        if rings_cut(n, colluders, rings) <= chance:
            return 2 * rings
    return None


@lru_cache(maxsize=64)
def _logarithms(n: int, colluders: int) -> tuple[FloatArray, FloatArray, float]:
    """log of how many sets S of size s = 1 … h/2 there are, log p_s, and the error of one logarithm of a factorial."""
    c, h = colluders, n - colluders
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    error = (n + 8) * UNIT * float(factorial[-1])

    def choose(top: Any, below: Any) -> FloatArray:
        top, below = np.broadcast_arrays(np.asarray(top, np.int64), np.asarray(below, np.int64))
        possible = (below >= 0) & (below <= top) & (top >= 0)
        a, b = np.where(possible, top, 0), np.where(possible, below, 0)
        return np.where(possible, factorial[a] - factorial[b] - factorial[a - b], -np.inf)

    def term(s: IntArray, a: IntArray) -> FloatArray:
        t = h - s
        return choose(c, a) + choose(s - 1, a - 1) + choose(t + c - a - 1, t)

    sizes = np.arange(1, h // 2 + 1, dtype=np.int64)
    ways = np.empty(len(sizes))
    for place, s in enumerate(sizes[:_SUMMED].tolist()):
        each = term(np.array(s), np.arange(1, min(s, c - 1) + 1, dtype=np.int64))
        top = float(each.max())
        ways[place] = top + math.log(float(np.exp(each - top).sum()))
    if len(sizes) > _SUMMED:
        s = sizes[_SUMMED:]
        low, high = np.ones_like(s), np.minimum(s, c - 1)  # the largest term lies between them
        terms = np.log(high) + 20 * error * high  # rounding may stop a rise that is less steep than it
        while (low < high).any():
            middle = (low + high) // 2
            grows = term(s, middle + 1) > term(s, middle)
            low, high = np.where(grows & (low < high), middle + 1, low), np.where(grows, high, middle)
        ways[_SUMMED:] = term(s, low) + terms
    t = h - sizes
    alone = np.minimum(ways + factorial[c - 1] + factorial[sizes] + factorial[t] - factorial[n - 1], 0.0)
    sets = choose(h, sizes) - np.where(2 * sizes == h, math.log(2), 0.0)
    return sets, alone, error
