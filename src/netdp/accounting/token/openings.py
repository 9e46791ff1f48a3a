"""Known ends of stretches, hidden in what surrounds them: histograms (and Laplace sums) on walks with known senders.

*Proof: docs/guarantees.md#known-ends.*

The observers O hold the token at each step with probability w, publicly. Of every stretch between two of their visits they
know by name who made the first contribution, and (e = 2) the last; every other step of a stretch is u's with probability q,
secretly. Of the contents of a stretch they see only the whole: a heap of responses, or a sum.

**What is shown instead**, which is more. At the beginning of every stretch it is told which of its e known names are u's
(drawn independently of everything, whether or not the stretch turns out long enough to have them). If none is, nothing is
shown for them, and the stretch goes on step by step, each response without its name: a *single* step, which is O's with
probability w and else u's with probability q. If some are, an *opening* is shown: the heap of the first a steps of the
stretch, or of all its m < a, with the whole path in it told. A heap does not depend on the order, so the last of a stretch
may be thought of as made second, wherever the stretch ends. Given m and the number j of u's contributions in the opening
(f ≥ 1 known ones and Binomial(m − e, q) others) that is `cover(j, m)`; m is public and averaged over. Single steps follow.

**Chains.** An opening that is all of its stretch, m < a, tells that the next step is O's: for certain, not with probability w. So
the next stretch is part of the same piece, a *chain*. Let p be the probability that a stretch has known names of u's, and s =
p·(1 − (1−w)^a) that it has and is short. Given names of u's, a chain Ω is one opening of a steps, or a short one and after it,
with probability p, another chain: p·δ_Ω = δ_long + (1−p)·δ_short + s·p·δ(short/s ⊗ Ω), δ_long and δ_short with their weights.
Iterated; chains that go on for longer still, of probability p·s^K, are given up as lost.

**The ending.** This goes on while R ≥ 2a steps are left. An opening takes at most a + 1 of them, so that a − 1 ≤ R < 2a when
it stops (or R = T < 2a). Of the last R steps the visits of O are told. The expected number of stretches of length m among
them is at most 2w(1−w)^m + Rw²(1−w)^m (at the two ends, inside), and one is all of R with probability (1−w)^R. If known
names of u's are in one stretch only, its opening is shown; if in several, of which F ≥ 2 are u's, all these are shown in the
clear. All else is shown in single steps, now without averaging over O's visits, which were told. A named release tells who
made the last step of all. As a > e, R ≥ a − 1 ≥ 1: that step is in the ending, and there, only there, every stretch counts as one
with both ends known.

So a step is a public draw: O's with probability w, and then the known names of the stretch that follows, and its chain, if
some are u's; else a single step. The view is bounded by T such steps, the chain of the first stretch and one ending: by
induction over the steps that are left, as whatever follows a chain begins inside a stretch. At most
2a − 1 of the steps, those of the ending, are single for certain and open nothing: the ending has their visits and openings.
The number of stretches is averaged over with everything else. Every piece is bounded given
all that was shown before.

Values must be fixed: inside an opening nobody may react to what the observers do not see, nor, in single steps, to how often
anybody was visited.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.binomial import beyond, visits
from netdp.privacy import ProfileCurve
from netdp.privacy.profile import composed

from .events import Event, Profile
from .stretches import bins

_LIGHT = 1e-24  # pieces of less weight count as a loss without bound
_MANY = 12  # so do more contributions of one user in one opening
_PARTS = (8, 24)  # of the users: lengths of openings that are tried
_LONGEST = 512
_KNOTS = 800  # of a table
_CELLS = 2048  # of the grid on which a chain is composed
_CHAIN = 24  # openings of one chain, at most
_FLOOR = 1e-16  # of the δ of two openings: what lies below is given up as lost
_RATIO = 1.3  # of the lengths at the two ends of a bin

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


def sizes(q: float, known: int) -> list[int]:
    """Lengths of openings that are worth trying: parts of the number of users."""
    return sorted({max(known + 1, min(_LONGEST, round(1 / (part * q)))) for part in _PARTS})
