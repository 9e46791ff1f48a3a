"""Rényi divergences of walks on the complete graph, at every order, with nothing left to δ (network Rényi DP).

Everything that is random and public is averaged over in the moment E e^{(α−1)·loss}, and moments of independent pieces multiply.
At every order the smallest of three bounds counts: the path told, single steps without their owners, local DP.

Proof: docs/proofs/token.md#renyi-walks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from netdp.families.token.account.events import Shift, block
from netdp.families.token.account.weights import Walk
from netdp.families.token.walk import KNOWN_ENDS, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.renyi import RenyiCurve
from netdp.protocols.grid import only_gaussian

Bound: TypeAlias = Callable[[Walk, float, float, float, Shift, float], float]

ORDERS: FloatArray = 1 + np.geomspace(0.02, 500.0, 64)

_POINTS = 4000

_SHORT = 2000  # steps up to which the recursion itself is used

_MOST = 600.0  # logarithms of moments beyond this count as infinite

_UP = 1 + 1e-9

REFERENCES = (
    "netdp, docs/proofs/token.md#renyi-walks: Rényi statements for walks.",
    "I. Mironov. Rényi Differential Privacy. CSF 2017.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
)


def walk_rdp(protocol: Walk, q: float, w: float, own: float, shift: Shift) -> RenyiCurve:
    """Rényi divergences of the whole view at `ORDERS`, for a user of which a step is with probability `own`."""
    only_gaussian(protocol, "a Rényi statement")
    values = [min(bound(protocol, q, w, own, shift, float(alpha)) for bound in _bounds(protocol)) for alpha in ORDERS]
    # divergences grow with their order: what holds at a larger one holds at a smaller
    return RenyiCurve(ORDERS, np.minimum.accumulate(np.array(values)[::-1])[::-1] * protocol.tokens * _UP)


def _bounds(protocol: Walk) -> list[Bound]:
    found: list[Bound] = [_local]
    if protocol.contributions is None:
        found.append(_secret)
    if isinstance(protocol, WalkSum) or (isinstance(protocol, WalkDescent) and protocol.expansion == 1):
        found.append(_told)
    return found


def _clear(protocol: Walk, shift: Shift, alpha: float) -> float:
    """log of the moment of one contribution of u in the clear."""
    if isinstance(protocol, WalkHistogram):
        return response_moment(protocol.epsilon0, 1 - protocol.gamma, alpha)
    return alpha * (alpha - 1) * shift.near**2 / 2


def _local(protocol: Walk, q: float, w: float, own: float, shift: Shift, alpha: float) -> float:
    """Every contribution in the clear, their number averaged over or capped."""
    one = _clear(protocol, shift, alpha)
    total = protocol.steps * math.log1p(own * math.expm1(one)) if one < _MOST else math.inf
    if protocol.contributions is not None:
        total = min(total, protocol.contributions * one)
    return total / (alpha - 1)


def _secret(protocol: Walk, q: float, w: float, own: float, shift: Shift, alpha: float) -> float:
    """Every step without its owner, known ends in the clear."""
    clear = _clear(protocol, shift, alpha)
    if isinstance(protocol, WalkHistogram):
        single = response_moment(math.log1p(q * math.expm1(protocol.epsilon0)), q * (1 - protocol.gamma), alpha)
    else:
        single = sampled_moment(shift, q, alpha)
    if clear > _MOST or single > _MOST:
        return math.inf
    grown, steps = math.expm1(single), protocol.steps
    seen = math.log1p(q * math.expm1(clear))
    ends = KNOWN_ENDS[protocol.sender]
    if not ends:
        total = steps * math.log1p((1 - w) * grown) + (seen if protocol.release == "named" else 0.0)
    else:
        ends = 2 if protocol.release == "named" else ends
        if ends * seen > _MOST:
            return math.inf
        total = ends * seen + steps * math.log1p((1 - w) * grown + w * math.expm1(ends * seen))
    return total / (alpha - 1)


def _told(protocol: Walk, q: float, w: float, own: float, shift: Shift, alpha: float) -> float:
    """The path told: each contribution in the noise of the gap that follows it."""
    return told_moment(alpha * (alpha - 1) * shift.near**2 / 2, own, w, protocol.steps) / (alpha - 1)


def told_moment(cost: float, own: float, watched: float, steps: int) -> float:
    """A bound on log A_T (docs/proofs/token.md#renyi-walks), φ(l) = e^{cost/l}.

    >>> round(told_moment(0.5, 0.1, 0.1, 1), 6), round(math.log1p(0.1 * math.expm1(0.5)), 6)       # one step
    (0.062855, 0.062855)
    """
    if cost > _MOST:
        return math.inf
    rho = own + watched
    if steps <= _SHORT and cost <= 100:
        return _recursion(cost, own, watched, steps)
    longest = max(2, math.ceil(40 / rho))
    l = np.arange(1, longest + 1, dtype=np.float64)  # noqa: E741
    logs = (l - 1) * math.log1p(-rho) if rho < 1 else np.where(l == 1, 0.0, -np.inf)
    weights = np.exp(logs) * (own * np.exp(cost / l) + watched)
    beyond = (own * math.exp(cost / longest) + watched) * (1 - rho) ** longest

    def excess(log_z: float) -> float:
        rest = beyond * math.exp(-longest * log_z) / (math.expm1(log_z) + rho)
        return float(weights @ np.exp(-l * log_z)) * (1 + 1e-12) + rest - 1

    low, high = 0.0, max(cost, 1e-12)  # k_l z^{−l} at z = e^{cost} is at most ρ(1−ρ)^{l−1}
    while excess(high) > 0:  # by rounding only
        high *= 2
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
        if high - low <= 1e-13 * high:
            break
    return steps * high + math.log1p(math.expm1(high) / rho)


def _recursion(cost: float, own: float, watched: float, steps: int) -> float:
    """log A_T by the recursion itself; all terms are positive, so a relative error of some T² units."""
    rest = max(0.0, 1 - own - watched)
    l = np.arange(1, steps + 1, dtype=np.float64)  # noqa: E741
    weights = rest ** (l - 1) * (own * np.exp(cost / l) + watched)
    means = np.ones(steps + 1)
    scale = 0.0  # logarithm taken out, so that nothing overflows
    for t in range(1, steps + 1):
        means[t] = rest**t * math.exp(-scale) + weights[:t] @ means[t - 1 :: -1]
        if means[t] > 1e150:
            means[: t + 1] *= 1e-150
            scale += 150 * math.log(10)
    return math.log(means[steps]) + scale + 4 * UNIT * steps**2


def response_moment(top: float, distance: float, alpha: float) -> float:
    """log of the moment of a piece whose profile is the chord from δ(0) = distance to δ(top) = 0."""
    if top == 0 or distance == 0:
        return 0.0
    own = distance / -math.expm1(-top)  # the probability of the loss `top`; of −top it is e^{−top} times that
    if (alpha - 1) * top > _MOST:
        return math.inf
    more = own * (math.expm1((alpha - 1) * top) + math.exp(-top) * math.expm1(-(alpha - 1) * top))
    return math.log1p(max(more, 0.0) * _UP)


def sampled_moment(shift: Shift, q: float, alpha: float) -> float:
    """log of the moment of one step that is u's with probability q, secretly."""
    mu = max(shift.near, shift.far)
    end = 2 * (alpha + 1) * mu**2 + 24 * mu
    if (alpha - 1) * end > _MOST:
        return math.inf
    eps = np.concatenate([[0.0], np.geomspace(end * 1e-6, end, _POINTS)])
    delta = np.asarray(block(shift, q, 1)(eps[:-1]))
    high, low = (alpha - 1) * eps, -alpha * eps
    cells = (
        np.exp(high[:-1]) * np.expm1(np.diff(high)) / (alpha - 1) - np.exp(low[:-1]) * np.expm1(np.diff(low)) / alpha
    )
    integral = float(delta @ cells)
    # beyond the end δ is at most q times that of the whole shift, so at most q·e^{(β−1)(βμ²/2 − ε)}
    beta = alpha + np.geomspace(1e-2, 2 * end / mu**2 + 1, 200)
    tails = (beta - 1) * beta * mu**2 / 2 - (beta - alpha) * end - np.log(beta - alpha)
    integral += 2 * q * math.exp(float(tails.min()))
    return math.log1p(alpha * (alpha - 1) * integral * (1 + 1e-9))
