"""Crowds: a report hides among the others whose way could have been the same (docs/guarantees.md#crowds).

**Theorem (labels).** Every report w arrives with a *label* O_w: whatever an observer sees of it beside its content, such as
where it was handed over, or where colluders met it. Labels and contents of all reports are independent, O_w has the law
p_w, and nothing in p_w depends on anybody's data. The observer sees the labelled contents as a set. For a victim u let

    β_w = min over the labels o with p_u(o) > 0 of p_w(o)/p_u(o).

Then δ_u(ε) ≤ E δ_heap(ε; K others), K the number of successes in independent trials of probabilities β_w, w ≠ u: what a
uniform shuffler of the victim and K others reveals.

Proof. p_w = β_w p_u + (1 − β_w)r_w with a law r_w. A coin of probability β_w decides which part the label of w is drawn
from. Tell the observer of each report with the other outcome: whose it is, its label, its content. That can only add to what
it sees, and the coins do not depend on data. The labels of the rest, the *crowd* of u and K others, are independent draws
from one law, p_u, and independent of their contents: given the heap of the crowd's contents alone the observer could draw
labels from p_u, hand them out in random order, and have the law of what it sees. So the view is a post-processing of a
uniform shuffle of K + 1 reports; K does not depend on data, and is told. ∎

Nothing of the victim is told. (The older bound takes one law for everybody, the stationary π with p_w ≥ (1 − s)π for all,
and tells where the report of u is with probability s: that costs s·δ_ε₀, so s must be far below δ. Here s = ½ is already
worth something.)

**Classes.** Split the labels into classes and tell the observer which of them, c, the victim's label is in: it depends on
no data, so δ_u(ε) ≤ Σ_c p_u(c)·δ_c(ε), and given c the theorem holds with p_u(· | c) for p_u: β_{w,c} = p_u(c)·min_{o∈c}
p_w(o)/p_u(o). A class where nobody else can be is told: δ_ε₀.

**A law between.** If p_u ≤ (1 + a)ν and p_w ≥ (1 − b_w)ν for any law ν, then β_w ≥ (1 − b_w)/(1 + a).

**Groups.** δ_heap falls with the number of others (one more report is post-processing), so β_w may be rounded down, and is, to
finitely many values: the law of K is then a sum of binomial ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from netdp.accounting.heap.clones import Heap
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray

_FINE, _GROUPS, _LEAST = 0.002, 32, 1e-9


def crowd_heap(shares: ArrayLike, epsilon0: float, *, delta0: float = 0.0, told: float = 0.0) -> Heap:
    """A victim's report among others who are in its crowd with probabilities `shares`, one for each of the others.

    >>> alike, half = crowd_heap(np.ones(999), 1.0), crowd_heap(np.full(999, 0.5), 1.0)
    >>> print(f"{alike.epsilon(1e-6):.3f} {half.epsilon(1e-6):.3f} {crowd_heap(np.zeros(999), 1.0).epsilon(1e-6):.3f}")
    0.149 0.216 1.000
    """
    values = np.asarray(shares, dtype=np.float64).ravel()
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise InvalidValue(f"shares must be probabilities, got values from {values.min()} to {values.max()}")
    return Heap.of(0, epsilon0, crowd=groups(values), delta0=delta0, told=told)


def groups(shares: FloatArray) -> tuple[tuple[int, float], ...]:
    """(how many, probability): the shares rounded down to few values, so that little of their sum is lost.

    >>> groups(np.array([1.0, 0.9995, 0.5, 0.0]))
    ((2, 0.9995), (1, 0.5))
    """
    ordered = np.sort(shares[shares > _LEAST])[::-1]
    if not ordered.size:
        return ()
    step = np.log1p(_FINE)
    while True:
        number = np.floor(np.log(ordered[0] / ordered) / step).astype(np.int64)
        cuts = np.flatnonzero(np.diff(number, prepend=-1))
        if len(cuts) <= _GROUPS:
            break
        step *= 1.5
    ends = np.append(cuts[1:], len(ordered))
    return tuple((int(b - a), float(ordered[b - 1])) for a, b in zip(cuts, ends, strict=True))


@dataclass(frozen=True)
class Crowd:
    """Of one victim: the class of labels has probability `chance`, and given it the others are there with `shares`."""

    chance: float
    shares: FloatArray


def crowd(victim: ArrayLike, others: ArrayLike, *, within: ArrayLike | None = None, error: float = 0.0) -> Crowd:
    """The crowd of a victim whose label has the law `victim`, among others with the laws in the rows of `others`.

    `within` is a class of labels (a mask or a list); by default all of them. `error` bounds the relative error of every
    entry of the laws; it is put on the safe side. Laws may sum to less than one: what is missing of the victim's counts
    as outside of the class.

    >>> found = crowd([0.5, 0.5, 0.0], [[0.25, 0.75, 0.0], [0.25, 0.25, 0.5]])
    >>> found.chance, found.shares.round(12).tolist()
    (1.0, [0.5, 0.5])
    """
    mine = np.asarray(victim, dtype=np.float64)
    rows = np.atleast_2d(np.asarray(others, dtype=np.float64))
    if mine.ndim != 1 or rows.shape[1] != len(mine):
        raise InvalidValue(f"laws over the same labels are needed, got shapes {mine.shape} and {rows.shape}")
    inside = mine > 0
    if within is not None:
        chosen = np.zeros(len(mine), dtype=bool)
        chosen[np.asarray(within)] = True
        inside &= chosen
    if not inside.any():
        return Crowd(0.0, np.zeros(len(rows)))
    # dropped labels of tiny probability, and sums below one by rounding, are told: `chance` is a lower bound
    chance = min(1.0, float(mine[inside].sum()) * (1 - error))
    if inside.sum() == (mine > 0).sum() and error == 0 and abs(chance - 1) < 1e-12:
        chance = 1.0
    ratio = (rows[:, inside] / mine[inside]).min(axis=1) * chance * max(0.0, 1 - 2 * error) * (1 - 1e-15)
    return Crowd(chance, np.clip(ratio, 0.0, 1.0))


def crowd_deltas(parts: Sequence[Crowd], epsilon0: float, epsilons: ArrayLike, *, delta0: float = 0.0) -> FloatArray:
    """δ at every ε of a victim whose label is in one of these classes, or told.

    >>> whole = crowd([0.5, 0.5], np.full((9, 2), 0.5))
    >>> print(crowd_deltas([whole], 1.0, [0.0, 0.5]).round(4).tolist())
    [0.1573, 0.0278]
    """
    eps = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    alone = Heap.of(0, epsilon0, delta0=delta0)
    total, left = np.zeros(len(eps)), 1.0
    for part in parts:
        total += part.chance * crowd_heap(part.shares, epsilon0, delta0=delta0).deltas(eps)
        left -= part.chance
    total += max(left, 0.0) * alone.deltas(eps)
    return np.minimum(total * (1 + 1e-14), alone.deltas(eps))
