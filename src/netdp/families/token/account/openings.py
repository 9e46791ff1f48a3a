"""Walks over plain connections, whose observers know by name who made the first and last contribution between two visits.

If a known name is u's, the beginning of that stretch, its *opening*, is shown with its path; all other steps are shown one by
one without their owners. `pieces` cuts a walk so, for any kind of contribution; `known_responses` does it for histograms.
How often that happens is averaged over, so that a step costs (1 − w)·δ_single + w·δ_chain.

Proof: docs/proofs/token.md#known-ends.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.account.events import Event, Profile, bins, least, more_delta
from netdp.families.token.account.ring import heap_profile
from netdp.families.token.walk import KNOWN_ENDS, WalkHistogram, WalkSum
from netdp.numerics.arrays import FloatArray
from netdp.numerics.binomial import beyond, visits
from netdp.privacy.profile import ProfileCurve, composed

_LIGHT = 1e-24  # pieces of less weight count as a loss without bound

_MANY = 12  # so do more contributions of one user in one opening

_PARTS = (8, 24)  # of the users: lengths of openings that are tried

_LONGEST = 512

_KNOTS = 800  # of a table

_CELLS = 2048  # of the grid on which a chain is composed

_CHAIN = 24  # openings of one chain, at most

_FLOOR = 1e-16  # of the δ of two openings: what lies below is given up as lost

_RATIO = 1.3  # of the lengths at the two ends of a bin

_LOSS_CELLS, _LOSS_KNOTS = 1 << 18, 2000  # of the grid on which histograms are composed, and of their tables

Cover = Callable[[int, int], Profile]
"""(j, m) → δ(ε) of j contributions of u among m in all, who made which being told."""


class Weights:
    """Pieces (j, m) with a public label: how likely each is, and what is given up as lost."""

    def __init__(self) -> None:
        self.pieces: defaultdict[tuple[int, int], float] = defaultdict(float)
        self.lost = 0.0

    def add(self, j: float, m: int, weight: float) -> None:
        """One more label."""
        if weight < _LIGHT or j > _MANY:
            self.lost += weight
        else:
            self.pieces[int(j), m] += weight

    def opening(self, q: float, known: int, shortest: int, longest: int, weight: float) -> None:
        """Openings of so many steps with known names of u's: the cover of the shortest, u as often as in the longest."""
        named = min(known, shortest)  # lengths up to `known` are not put together
        k, among = visits(longest - named, q)
        for f in range(1, named + 1):
            chance = weight * math.comb(named, f) * q**f * (1 - q) ** (named - f)
            for others, share in zip(k.tolist(), among.tolist(), strict=True):
                self.add(f + others, shortest, chance * share)

    def profile(self, cover: Cover) -> Profile:
        """Σ weight·cover(j, m), without what is lost."""
        parts = [(weight * (1 + 1e-12), cover(j, m)) for (j, m), weight in self.pieces.items()]

        def profile(eps: FloatArray) -> FloatArray:
            total = np.zeros(len(eps))
            for weight, part in parts:
                total = total + weight * np.asarray(part(eps))
            return np.minimum(total, 1.0)

        return profile


def openings(q: float, w: float, size: int, known: int) -> tuple[Weights, Weights]:
    """One stretch: its known names, if some are u's, in an opening of all of it or of `size` > known steps."""
    short, long = Weights(), Weights()
    for first, last in bins(1, size - 1, _RATIO):
        short.opening(q, known, first, last, (1 - w) ** first - (1 - w) ** (last + 1))
    long.opening(q, known, size, size, (1 - w) ** size)
    return short, long


def chain(cover: Cover, q: float, w: float, steps: int, size: int, known: int) -> tuple[Profile, float]:
    """p·δ_Ω: an opening, and the next ones as long as all are short; and the probability of what is given up as lost."""
    short, long = openings(q, w, size, known)
    named = min(1.0, -math.expm1(known * math.log1p(-q)) * (1 + 1e-12)) if q < 1 else 1.0
    follows = min(1.0, -math.expm1(size * math.log1p(-w)) * (1 + 1e-12)) * named
    ended, whole = (_table(part.profile(cover), steps) for part in (short, long))
    given = _scaled(ended, follows)
    total, left = _table(lambda eps: whole.delta(eps) + ended.delta(eps), steps), named * follows
    lost = short.lost + long.lost  # of one opening, which every stretch is
    for _ in range(_CHAIN):
        if left < _LIGHT:
            break
        next_one = _scaled(total, named)
        step = max(float(given.epsilons[-1]), float(next_one.epsilons[-1])) / _CELLS
        both = composed([(given, 1), (next_one, 1)], step)
        total = _table(
            lambda eps, both=both: (  # type: ignore[misc]
                whole.delta(eps)
                + (1 - named) * ended.delta(eps)
                + follows * named * np.maximum(both.delta(eps) - _FLOOR, 0.0)
            ),
            steps,
        )
        left, lost = left * follows, lost + follows * named * _FLOOR
    return total.delta, lost + left


def ending(q: float, w: float, size: int, known: int, steps: int) -> Weights:
    """The last R steps, size − 1 ≤ R < 2·size, or all of them if there are fewer."""
    longest, shortest = min(2 * size - 1, steps), min(size - 1, steps)
    weights = Weights()
    weights.opening(q, known, shortest, shortest, (1 - w) ** shortest)
    each = 2 * w + longest * w**2
    for first, last in bins(1, min(size, longest), _RATIO):
        end = longest if last >= size else last
        weights.opening(q, known, first, last, each * (end - first + 1) * (1 - w) ** first)
    often = 1
    while often < min(60, longest) and beyond(often, longest, w) > 1e-18:
        often += 1
    weights.lost += beyond(often, longest, w)
    v, chance = visits(longest, w, 1)
    for count, share in zip(v.tolist(), chance.tolist(), strict=True):
        if count > often:
            continue  # counted above
        f, named = visits(known * (int(count) + 1), q, 2)
        for several, part in zip(f.tolist(), named.tolist(), strict=True):
            weights.add(several, 0, share * part)
    return weights


def pieces(
    cover: Cover, single: Profile, q: float, w: float, steps: int, size: int, known: int, at_release: int
) -> tuple[list[Event], float]:
    """All that is shown of a walk whose stretches have `known` known ends each, openings of at most `size` steps; and the
    probability of what is given up as lost, to be added to δ.

    cover        (j, m) → profile of j contributions of u among m; m = 0: in the clear
    single       the profile of one step that is u's with probability q
    at_release   known ends of a stretch in the ending: 2 if the last step of all is known by name, which is always there
    """
    if size <= at_release:
        raise InvalidValue(
            f"an opening of {size} steps does not hold {at_release} known ends and more; take a longer one"
        )
    last, raw = ending(q, w, size, at_release, steps), min(2 * size - 1, steps)
    opening, lost = chain(cover, q, w, steps, size, known)

    def step(eps: FloatArray) -> FloatArray:
        return (1 - w) * np.asarray(single(eps)) + w * opening(eps)

    events = [Event(single, raw), Event(opening, 1), Event(_table(last.profile(cover), steps).delta, 1)]
    if steps > raw:
        events.insert(0, Event(step, steps - raw))
    return events, ((steps - raw) * w + 1) * lost + last.lost


def _table(profile: Profile, steps: int) -> ProfileCurve:
    """The profile from a table: a sum over many pieces is computed at few points, and chords between them lie above it."""
    reach = Event(profile, steps).reach
    eps = np.concatenate([[0.0], np.geomspace(reach * 1e-6, reach, _KNOTS)])
    return ProfileCurve(eps, np.minimum.accumulate(np.minimum(profile(eps), 1.0)))


def _scaled(curve: ProfileCurve, weight: float) -> ProfileCurve:
    """Given something of this probability, outside of which nothing is shown; constant where δ is next to nothing."""
    deltas = np.minimum(curve.deltas / weight * (1 + 1e-12), 1.0)
    small = np.flatnonzero(deltas <= _FLOOR / 8)
    end = int(small[0]) + 1 if small.size else len(deltas)
    return ProfileCurve(curve.epsilons[:end], deltas[:end])


def known_ends(protocol: WalkSum | WalkHistogram) -> tuple[int, int]:
    """How many ends of a stretch are known by name, and how many of one in the ending.

    If the release is named, the owner of the last step is an end of the last stretch; if only beginnings are known, one more.
    """
    known = KNOWN_ENDS[protocol.sender]
    return known, 2 if protocol.release == "named" else known


def sizes(q: float, known: int) -> list[int]:
    """Lengths of openings that are worth trying: parts of the number of users."""
    return sorted({max(known + 1, min(_LONGEST, round(1 / (part * q)))) for part in _PARTS})


def known_responses(protocol: WalkHistogram, q: float, w: float) -> ProfileCurve:
    """δ(ε) for a user that O draws with probability q where it does not hold the token, and holds with w.

    >>> p = WalkHistogram(1000, 10_000, domain=4, gamma=0.5)                   # 8.84 with the path told, 0.83 hidden
    >>> round(float(known_responses(p, 1 / 999, 1 / 1000).epsilon(1e-6)), 2)
    2.1
    """
    known, at_release = known_ends(protocol)
    hides = functools.partial(_cover, protocol.domain, protocol.gamma, protocol.response)
    top = math.log1p(q * math.expm1(protocol.epsilon0))
    one = ProfileCurve([0.0, top], [q * (1 - protocol.gamma) * (1 + 1e-12), 0.0])
    found = []
    for size in sizes(q, at_release):
        events, lost = pieces(hides, one.delta, q, w, protocol.steps, size, known, at_release)
        step = max(top, max(event.reach for event in events) / _LOSS_CELLS)
        parts = [(_knots(event, top), event.times * protocol.tokens) for event in events]
        found.append(more_delta(composed(parts, step), lost * protocol.tokens))
    return least(found)


def _knots(event: Event, top: float) -> ProfileCurve:
    """The profile at 0, at the end of a single step and at points beyond; single steps are exact on this grid."""
    eps = np.concatenate([[0.0], np.geomspace(top, max(event.reach, 2 * top), _LOSS_KNOTS)])
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
