"""A histogram on a walk whose observers know the ends of stretches by name (docs/guarantees.md#known-ends).

The cut is that of `openings`. A response of u that is known by name hides among the other m − 1 responses of its opening; if
u made j of the m, the others are dealt out among them: showing j heaps of ⌊(m − j)/j⌋ others each instead of one is more.
Single steps are responses without their names, u's with probability q: δ = q·δ₀(ln(1 + (e^ε − 1)/q)), δ₀ the local profile,
which is a chord, so that this is one, too, and composes without loss on a grid of its own end.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from netdp.privacy import ProfileCurve
from netdp.privacy.profile import composed
from netdp.protocols.walk import KNOWN_ENDS, WalkHistogram

from .events import Event, Profile, least
from .openings import pieces, sizes
from .ring import heap_profile
from .stretches import bins

_CELLS = 1 << 18
_KNOTS = 2000


def known_responses(protocol: WalkHistogram, q: float, w: float) -> ProfileCurve:
    """δ(ε) for a user that O draws with probability q where it does not hold the token, and holds with w.

    >>> p = WalkHistogram(1000, 10_000, domain=4, gamma=0.5)                   # 8.84 with the path told, 0.83 hidden
    >>> round(float(known_responses(p, 1 / 999, 1 / 1000).epsilon(1e-6)), 2)
    2.1
    """
    known = KNOWN_ENDS[protocol.sender]
    # the owner of the last step is an end of the last stretch; if only beginnings are known, one more
    at_release = 2 if protocol.release == "named" else known
    hides = functools.partial(_cover, protocol.domain, protocol.gamma, protocol.response)
    top = math.log1p(q * math.expm1(protocol.epsilon0))
    one = ProfileCurve([0.0, top], [q * (1 - protocol.gamma) * (1 + 1e-12), 0.0])
    found = []
    for size in sizes(q, at_release):
        events, lost = pieces(hides, one.delta, q, w, protocol.steps, size, known, at_release)
        step = max(top, max(event.reach for event in events) / _CELLS)
        parts = [(_knots(event, top), event.times * protocol.tokens) for event in events]
        found.append(more(composed(parts, step), lost * protocol.tokens))
    return least(found)


def more(curve: ProfileCurve, extra: float) -> ProfileCurve:
    """The same with `extra` added to every δ."""
    return ProfileCurve(curve.epsilons, np.minimum(curve.deltas + extra, 1.0))


def _knots(event: Event, top: float) -> ProfileCurve:
    """The profile at 0, at the end of a single step and at points beyond; single steps are exact on this grid."""
    eps = np.concatenate([[0.0], np.geomspace(top, max(event.reach, 2 * top), _KNOTS)])
    delta = np.minimum(np.asarray(event.profile(eps)) * (1 + 1e-12), 1.0)
    return ProfileCurve(eps, np.minimum.accumulate(delta))


@functools.lru_cache(maxsize=4096)
def _cover(domain: int, gamma: float, response: str, j: int, m: int) -> Profile:
    others = max(0, (m - j) // j) if m else 0
    curve = _heaps(domain, gamma, response, j, _down(others))
    return lambda eps: np.asarray(curve.delta(eps))


@functools.lru_cache(maxsize=4096)
def _heaps(domain: int, gamma: float, response: str, j: int, others: int) -> ProfileCurve:
    one = _heap(domain, gamma, response, others)
    return one if j == 1 else one.self_compose(j, float(one.epsilons[-1]) / 400)


@functools.lru_cache(maxsize=512)
def _heap(domain: int, gamma: float, response: str, others: int) -> ProfileCurve:
    return heap_profile(others, 0, domain, gamma, response)


def _down(others: int) -> int:
    """The next number below for which a heap is computed: fewer others hide less."""
    return next((first for first, last in bins(0, 10**6, 1.5) if first <= others <= last), 0)
