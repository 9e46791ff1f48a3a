"""What single reporting gains: one item from every holder, whoever's it is (docs/guarantees.md#single-reports).

**Theorem.** With reporting="single" every holder hands over exactly one item: one of the reports it holds, picked uniformly,
or a dummy made from the null value x₀ by the same ε₀-DP randomizer. Let p_u(i) be the probability that the report of u ends
up with i, N_i the number of *other* reports that i holds. Tell the curator where all other reports are. Then with γ = e^ε and
a_i = p_u(i)/(1 + N_i)

    δ_u(ε) ≤ E (Σ_i a_i Y_i − (γ − 1))₊,   Y_i = Z_i − (1 − γ) independent and of mean 0,

Z the variable of the blanket (`netdp.accounting.heap.clones`): e^ε₀ − γ or 1 − γe^ε₀ with probability 1/(e^ε₀ + 1) each, else 0.

Proof. Given where the others are, the item of holder i is that of u with probability a_i, and otherwise has a law m_i that
does not depend on u: a random one of N_i known users' reports, or a dummy's. At most one item is u's. So the items have the law
Q_x = Σ_i a_i R_x(c_i)Π_{j≠i} m_j(c_j) + (1 − Σa_i)Π_j m_j(c_j) if u's value is x. Every m_j is a mixture of laws of the randomizer,
hence ≥ ω, the blanket; tell the curator which items are not drawn from ω. Then Q_0 − γQ_1 = Πm_j·(Σ_i a_i Z_i + (1 − Σa_i)(1 − γ)),
and the positive part has the expectation above, for the Z of the randomizer. That Z is smaller in convex order than the
one of binary response, so are weighted sums of independent copies, and so are expectations of (·)₊ of them. ∎

Nothing is asked of where the others' reports are: no crowd, no mixing of theirs; only that u's own report be spread out.

**N averaged.** (x − g)₊ ≤ e^{θ(x − g) − 1}/θ for every θ > 0, and given N the factors E e^{θa_iY_i} =: h_i(N_i) are independent.
E e^{θaY} grows with a ≥ 0 and is convex (Y has mean 0), and a_i = p_u(i)/(1 + N_i) falls with N_i and is convex: h_i falls, and is
convex. The numbers N_i of independent balls in boxes are negatively associated (Joag-Dev and Proschan 1983), so
E Π h_i(N_i) ≤ Π E h_i(N_i); and N_i, a sum of independent indicators of mean m_i, is smaller in convex order than a Poisson
number of that mean (Hoeffding 1956), so E h_i(N_i) ≤ E h_i(Poisson(m_i)). A smaller m_i or a larger p_u(i) only enlarges this. So

    δ_u(ε) ≤ min over θ of exp(Σ_i ln E h_i(Poisson(m_i)) − θ(γ − 1) − 1)/θ.

**What is put in.** p_u(i) ≤ (1 + high_u)π_i (`mixing`), m_i ≥ Σ_w (1 − low_w)π_i − (1 + high_u)π_i.

**How much there is to gain.** Let everybody else and x₀ have the value 0, and count the ones among the n items: with
q = Σ_i E a_i the probability that u's report is handed over, the count is Bin(n, p) if x_u = 0, and (1 − q)Bin(n, p) + q(Bin(n − 1,
p) + Bernoulli(1 − p)) if x_u = 1. That is a lower bound on δ_u (`least_deltas`), of a loss about q times that of "all". So at a
small ε₀ no accountant can claim less than q·ε_all; an ε₀ larger by 1/q makes each of the qn real reports handed over better by
1/q² in variance, in all no better than n reports of "all", and the dummies' and the dropped reports' luck comes on top: at equal ε
reporting="all" is never worse there. On regular graphs q = 1 − 1/e.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import FloatArray

_MARGIN = 1e-9  # added to the exponent: rounding of sums of ≤ 10⁷ terms
_HIDDEN = 60.0  # of larger ε₀ the blanket is less than 10⁻²⁵ of a report: nothing is hidden; e^2ε₀ must fit in a double


def single_deltas(places: Sequence[tuple[int, float, float]], epsilon0: float, epsilons: npt.ArrayLike) -> FloatArray:
    """δ at every ε of a report that ends up at places of (how many, p_u(i) at most, others there on average at least).

    >>> spread = single_deltas([(1000, 0.001, 0.999)], 1.0, [0.1, 0.12, 1.0])
    >>> print(" ".join(f"{delta:.1e}" for delta in spread))
    4.3e-06 2.0e-07 0.0e+00
    """
    eps = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    counts = np.array([count for count, _, _ in places], dtype=np.float64)
    weight, often, start = _weights(places)
    local = np.maximum(-np.expm1(eps - epsilon0), 0.0) / (1 + math.exp(-epsilon0))
    out = local.copy()
    if epsilon0 > _HIDDEN:
        return out
    e = math.exp(epsilon0)
    squares = float(counts @ np.add.reduceat(often * weight**2, start))
    for j in np.flatnonzero((eps > 0) & (eps < epsilon0)).tolist():
        gamma = math.exp(eps[j])
        # the least for a normal law of the same variance is where to look first; every θ gives a bound
        variance = ((1 + gamma**2) * (e - 1) ** 2 + (e - 1) * (gamma - 1) ** 2) / (e + 1)
        centre, best = math.log(math.expm1(eps[j]) / (variance * squares)), math.inf
        for width in (2.0, 0.3, 0.05):
            logs = centre + width * np.linspace(-1.0, 1.0, 11)
            log_h = _log_factor(np.exp(logs)[:, None] * weight[None, :], epsilon0, gamma)
            top = np.maximum.reduceat(log_h, start, axis=1)
            lengths = np.diff(np.append(start, len(weight)))
            inside = np.add.reduceat(often * np.exp(log_h - np.repeat(top, lengths, axis=1)), start, axis=1)
            total = (top + np.log(inside)) @ counts
            values = total * (1 + 1e-13) + _MARGIN - np.exp(logs) * (gamma - 1) - 1 - logs
            centre, best = float(logs[int(np.argmin(values))]), min(best, float(values.min()))
        out[j] = min(out[j], math.exp(min(best, 0.0)))
    return out


def _weights(places: Sequence[tuple[int, float, float]]) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """All weights p/(1 + k) with the probabilities of k others there; numbers beyond a window count as its end.

    Also where the part of each place begins.
    """
    from scipy.stats import poisson

    weight, often = [], []
    for _, share, mean in places:
        top = int(mean + 9 * math.sqrt(mean) + 12)
        k = np.arange(top + 1)
        chance = np.asarray(poisson.pmf(k, mean), dtype=np.float64) * (1 + 1e-11)
        chance[-1] += float(poisson.sf(top, mean)) * (1 + 1e-9)  # a smaller number is on the safe side
        chance[-1] += max(0.0, 1 - float(chance.sum()))
        weight.append(share / (1.0 + k))
        often.append(chance)
    start = np.cumsum([0, *map(len, weight[:-1])])
    return np.concatenate(weight), np.concatenate(often), start.astype(np.int64)


def _log_factor(x: FloatArray, epsilon0: float, gamma: float) -> FloatArray:
    """ln E e^{xY}, Y = Z − (1 − γ), rounded up."""
    e = math.exp(epsilon0)
    p = 1 / (e + 1)
    up, down, middle = e - 1, -gamma * (e - 1), gamma - 1  # e − γ + γ − 1, 1 − γe + γ − 1, and 0 + γ − 1
    with np.errstate(over="ignore"):
        grown = p * np.expm1(x * up) + p * np.expm1(x * down) + (1 - 2 * p) * np.expm1(x * middle)
    slack = 1e-15 * (np.abs(x) * (e * gamma) + 1e-3 * x * x)
    return np.where(np.isfinite(grown), np.log1p(np.maximum(grown, 0.0) + slack), x * up)


def least_deltas(n: int, handed: float, epsilon0: float, epsilons: npt.ArrayLike) -> FloatArray:
    """A lower bound on δ for binary response, if the report of u is handed over with probability `handed`.

    >>> low = least_deltas(1000, 0.632, 1.0, [0.05, 0.1])
    >>> print(" ".join(f"{delta:.1e}" for delta in low))
    6.4e-05 5.7e-09
    """
    from scipy.stats import binom

    p = 1 / (math.exp(epsilon0) + 1)
    k = np.arange(n + 1)
    zero = binom.pmf(k, n, p)
    rest = np.append(binom.pmf(k[:-1], n - 1, p), 0.0)
    one = (1 - handed) * zero + handed * (p * rest + (1 - p) * np.insert(rest[:-1], 0, 0.0))
    grow = np.exp(np.atleast_1d(np.asarray(epsilons, dtype=np.float64)))[:, None]
    both = [np.maximum(a - grow * b, 0).sum(axis=1) for a, b in ((zero, one), (one, zero))]
    return np.asarray(np.maximum(*both))
