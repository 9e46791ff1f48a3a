"""Pieces of a walk whose path is secret: what each reveals, how many there are, and what they reveal together.

The observers are shown more than they see: every step, or the sum of a block of steps, without its owner. A step is u's with
probability q, so one step costs q·δ₀(ln(1 + (e^ε − 1)/q)), δ₀ the profile of a contribution by itself (`sampled`, `block`).
`blocks`, `opening` and `ending` are the pieces that a walk is cut into; each is an `Event`, which occurs a number of times, and
`compose_events` composes events on a grid of losses, rounded to the safe side.

Proofs: docs/proofs/token.md#secret-walk.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netdp.numerics.arrays import FloatArray, frozen
from netdp.numerics.binomial import beyond, visits
from netdp.privacy.curve import Curve
from netdp.privacy.gaussian_kernels import mean_delta
from netdp.privacy.profile import Formula, PerCurve, ProfileCurve, composed

Profile = Callable[[FloatArray], FloatArray]

_NEGLIGIBLE = 1e-19  # probability of losses beyond the grid, over all occurrences; counted as infinite loss

_SHARE = 0.01  # of the variance that the grid may add

_CELLS = 1 << 18

_KNOTS = 800

_FEW_KNOTS = 100

_PER_E = 200  # points of a profile per factor e of ε


@dataclass(frozen=True)
class Event:
    """`times` occurrences, each bounded by `profile` (nonincreasing, convex in e^ε, given at ε ≥ 0)."""

    profile: Profile
    times: int

    @functools.cached_property
    def reach(self) -> float:
        """An ε beyond which the profile no longer matters."""
        eps = np.geomspace(1e-9, 500.0, 500)
        # the profile falls, so the first such point is found among every 20th and then between two of these
        for stride in (20, 1):
            beyond = np.flatnonzero(np.asarray(self.profile(eps[::stride])) <= _NEGLIGIBLE / self.times)
            end = stride * int(beyond[0]) if beyond.size else len(eps) - 1
            eps = eps[max(0, end - stride) : end + 1]
        return float(eps[-1]) if beyond.size else 500.0

    @functools.cached_property
    def losses(self) -> tuple[FloatArray, FloatArray]:
        """Loss values ≥ 0 and their probabilities, roughly: for choices that do not affect soundness."""
        return self._losses(_KNOTS)

    def _losses(self, knots: int) -> tuple[FloatArray, FloatArray]:
        eps = np.concatenate([[0.0], np.geomspace(self.reach * 1e-7, self.reach, knots)])
        delta = self.profile(eps)
        slopes = np.append(np.diff(delta) / np.diff(np.expm1(eps)), 0.0)
        return eps[1:], np.exp(eps[1:]) * np.maximum(np.diff(slopes), 0.0)

    @property
    def variance(self) -> float:
        """The variance of the loss of one occurrence, about."""
        return _variance(*self.losses)

    @functools.cached_property
    def few_losses(self) -> tuple[FloatArray, FloatArray]:
        """`losses` from few points."""
        return self._losses(_FEW_KNOTS)

    @functools.cached_property
    def weight(self) -> float:
        """About the variance of all occurrences, from few points: good enough to choose between ways to cut a walk."""
        return self.times * _variance(*self.few_losses)

    def spread(self, step: float) -> float:
        """What a grid of this step adds to it, at most."""
        loss, mass = self.losses
        return float(np.sum(mass * (1 + np.exp(-loss)) * np.minimum(step * loss, step**2 / 4)))

    def repeated(self, times: int) -> Event:
        """The same, so many times more often."""
        return self if times == 1 else Event(self.profile, self.times * times)

    def curve(self, step: float) -> ProfileCurve:
        """The profile at points fine against the grid and against their own size; chords in between lie above it."""
        count = max(2, math.ceil(_PER_E * math.log(max(2.0, 2 * self.reach / step))))
        eps = np.concatenate([[0.0], np.geomspace(min(step / 2, self.reach / 2), self.reach, count)])
        return ProfileCurve(eps, np.minimum.accumulate(self.bound(eps)), PerCurve((self.bound,)))

    def bound(self, eps: FloatArray) -> FloatArray:
        """The profile of one occurrence, rounded up."""
        return np.asarray(np.minimum(np.asarray(self.profile(eps)) * (1 + 1e-12), 1.0))


def _variance(loss: FloatArray, mass: FloatArray) -> float:
    return float(np.sum(mass * (1 + np.exp(-loss)) * loss**2))


def compose_events(events: Sequence[Event], extra: float = 0.0) -> ProfileCurve:
    """The profile of all occurrences of all events, `extra` added to every δ.

    >>> from netdp.privacy import gaussian_delta, gaussian_epsilon
    >>> small = Event(lambda eps: np.asarray(gaussian_delta(0.01, eps)), times=10_000)
    >>> ratio = float(compose_events([small]).epsilon(1e-6)) / float(gaussian_epsilon(1.0, 1e-6))
    >>> 1.0 <= ratio < 1.01
    True
    """
    events = [event for event in events if event.times > 0]
    if not events:
        return ProfileCurve([0.0], [min(extra, 1.0)])
    step = grid_step(events)
    if len(events) == 1 and events[0].times == 1:
        return more_delta(events[0].curve(step), extra)
    return more_delta(composed([(event.curve(step), event.times) for event in events], step), extra)


def read_off(curve: ProfileCurve) -> Formula:
    """δ at any ε of each of these curves, by number: its formula, or its chords."""
    if curve.formula is not None:
        return curve.formula
    return PerCurve(tuple(curve.entry(i).delta for i in range(curve.shape[0])) if curve.shape else (curve.delta,))


def side_by_side(curves: Sequence[Curve], epsilon: FloatArray) -> ProfileCurve:
    """Several curves as rows of one table at these ε; between them δ and ε are read off the curves themselves."""
    table = np.minimum.accumulate(np.stack([np.asarray(curve.delta(epsilon)) for curve in curves]), axis=1)
    return ProfileCurve(epsilon, table, PerCurve(tuple(curve.delta for curve in curves)))


def more_delta(curve: ProfileCurve, extra: float) -> ProfileCurve:
    """The same with `extra` added to every δ."""
    if not extra:
        return curve
    bounds = curve.formula
    formula = None if bounds is None else lambda numbers, eps: np.minimum(bounds(numbers, eps) + extra, 1.0)
    return ProfileCurve(curve.epsilons, np.minimum(curve.deltas + extra, 1.0), formula)


def grid_step(events: Sequence[Event]) -> float:
    """The step of the grid of losses: it adds at most one per cent to the variance of these events, where that is affordable."""
    aim = _SHARE * sum(event.times * event.variance for event in events)
    longest = max(event.reach for event in events)
    low, high = longest / _CELLS, longest
    if sum(event.times * event.spread(low) for event in events) >= aim:
        return low
    for _ in range(40):
        middle = math.sqrt(low * high)
        fits = sum(event.times * event.spread(middle) for event in events) <= aim
        low, high = (middle, high) if fits else (low, middle)
    return low


def least(curves: Sequence[ProfileCurve]) -> ProfileCurve:
    """Several bounds on the same profile: the least of them at every ε, which is a bound again."""
    if len(curves) == 1:
        return curves[0]
    eps = np.unique(np.concatenate([curve.epsilons for curve in curves]))

    def smallest(eps: FloatArray) -> FloatArray:
        return np.asarray(np.min([np.asarray(curve.delta(eps)) for curve in curves], axis=0))

    return ProfileCurve(eps, np.minimum.accumulate(smallest(eps)), PerCurve((smallest,)))


class Shift(NamedTuple):
    """How far a contribution can lie from u's own under the other data, and from another user's, over σ."""

    near: float
    far: float

    def over(self, root: float) -> Shift:
        """The same seen through `root` times the noise."""
        return Shift(self.near / root, self.far / root)


def sampled(local: Profile, q: float) -> Profile:
    """δ_step under replacement: a contribution with profile `local` that happens secretly with probability q.

    >>> rr = sampled(lambda eps: np.maximum(np.e - np.exp(eps), 0) / (np.e + 1), 0.01)    # randomized response, ε₀ = 1
    >>> bool(rr(np.array([np.log1p(0.01 * (np.e - 1)) * (1 + 1e-9)]))[0] == 0.0)        # none beyond ln(1 + q(e − 1))
    True
    """
    return lambda eps: q * np.asarray(local(np.log1p(np.expm1(eps) / q)))


def block(shift: Shift, q: float, shortest: int, longest: int | None = None) -> Profile:
    """δ_block for a sum over `shortest` to `longest` steps; a single step is a block of one."""
    length = shortest if longest is None else longest
    k, weight = visits(length, q, 1)
    present = -math.expm1(length * math.log1p(-q)) if q < 1 else 1.0
    near, far = k * shift.near / math.sqrt(shortest), k * shift.far / math.sqrt(shortest)

    def profile(eps: FloatArray) -> FloatArray:
        grown = np.expm1(eps) / present
        inner = np.log1p(grown)
        if shift.far <= shift.near:
            return _mean_delta(near, weight, inner)
        beta = np.minimum(np.exp(eps) / (1 + grown), 1.0)  # above 1 by rounding if q = 1
        return np.asarray(beta * _mean_delta(near, weight, inner) + (1 - beta) * _mean_delta(far, weight, inner))

    return profile


def gaussian(mu: float) -> Profile:
    """The profile of a Gaussian shift."""
    mus, alone = np.array([mu], dtype=np.float64), np.ones(1)
    return lambda eps: mean_delta(mus, alone, np.asarray(eps, dtype=np.float64))


def mixture(mus: FloatArray, weights: FloatArray, least: float = 1e-28) -> Profile:
    """Gaussian shifts with a public label: Σ weight·δ_Gauss(μ); labels of less than the `least` weight as infinite shifts."""
    kept = weights > least
    rest = float(weights[~kept].sum()) * (1 + 1e-9)
    mus, weights = mus[kept], weights[kept] * (1 + 1e-12)
    return lambda eps: _mean_delta(mus, weights, eps) + rest


def _mean_delta(mus: FloatArray, weights: FloatArray, eps: FloatArray) -> FloatArray:
    """Σ weight·δ_Gauss(μ) at each ε. Bounds of one walk ask for the same tables again and again: the last ones are kept."""
    if len(eps) < _FEW_KNOTS:  # what is read off, or looked for: asked for once
        return np.asarray(mean_delta(np.asarray(mus), np.asarray(weights), np.asarray(eps, dtype=np.float64)))
    return _kept_mean_delta(*(np.asarray(part, dtype=np.float64).tobytes() for part in (mus, weights, eps)))


@functools.lru_cache(maxsize=256)
def _kept_mean_delta(mus: bytes, weights: bytes, eps: bytes) -> FloatArray:
    return frozen(mean_delta(np.frombuffer(mus), np.frombuffer(weights), np.frombuffer(eps)))


_SPLITS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of ε between two views

_EVERY = 16

UNLIKELY = 1e-15
"""The probability of each thing that is assumed not to happen; added to δ."""


def single_steps(shift: Shift, q: float, w: float, steps: int) -> Event:
    """Every step shown by itself (g = 1): exactly `steps` of them, no ending."""
    one = block(shift, q, 1)
    return Event(lambda eps: (1 - w) * one(eps), steps)


def blocks(shift: Shift, q: float, w: float, steps: int, size: int) -> Event:
    """Blocks of `size` steps, as many as there can be but for 10⁻¹⁵."""
    return Event(block_cut(shift, q, w, size), most_blocks(steps, size, w))


def block_cut(shift: Shift, q: float, w: float, size: int) -> Profile:
    """A block of `size` steps, or of fewer if a visit of O ends it."""
    parts = [((1 - w) ** size, block(shift, q, size))]
    for first, last in bins(1, size - 1):
        parts.append(((1 - w) ** first - (1 - w) ** (last + 1), block(shift, q, first, last)))
    return mean(parts)


def opening(shift: Shift, q: float, w: float, size: int, known: int) -> Profile:
    """The first `size` > known steps of a stretch of which `known` contributions are known by name, or all of it."""
    mus, weights = [], []
    for m in range(1, known + 1):  # known entirely; a stretch of no steps reveals nothing
        for f, chance in zip(range(1, m + 1), named_chances(m, q), strict=True):
            mus.append(f * shift.near / math.sqrt(m))
            weights.append(w * (1 - w) ** m * chance)
    parts: list[tuple[float, Profile]] = []
    for first, last in [*bins(known + 1, size - 1), (size, size)]:
        chance = (1 - w) ** first - (0.0 if first == size else (1 - w) ** (last + 1))
        parts.append((chance * (1 - q) ** known, block(shift, q, first, last)))
        k, among = visits(last, q)
        for f, named in zip(range(1, known + 1), named_chances(known, q), strict=True):
            mus += list(shift.near * (f + k) / math.sqrt(first))
            weights += list(chance * named * among)
    return mean([*parts, (1.0, mixture(np.array(mus), np.array(weights)))])


def named_chances(count: int, q: float) -> list[float]:
    """The probabilities that 1, 2, … `count` of so many contributions, known by name, are u's."""
    return [math.comb(count, f) * q**f * (1 - q) ** (count - f) for f in range(1, count + 1)]


def ending(shift: Shift, q: float, w: float, shortest: int, longest: int, *, hidden: bool) -> tuple[Profile, float]:
    """The last R steps, shortest ≤ R ≤ longest; and the probability of more visits of O than are treated.

    hidden : nothing is known of the path; else all of it is told.
    """
    often = 1
    while often < 60 and beyond(often, longest, w) > 1e-17:
        often += 1
    parts = _hidden_ending if hidden else _told_ending
    profile = parts(shift, q, w, shortest, longest, often)
    return (lambda eps: np.minimum(profile(eps), 1.0)), beyond(often, longest, w)


def _hidden_ending(shift: Shift, q: float, w: float, shortest: int, longest: int, visits_of_o: int) -> Profile:
    """Blocks between v ≤ `visits_of_o` visits, nothing told."""
    quiet = [(first, block(shift, q, first, last)) for first, last in bins(shortest, longest)]
    pairs = []
    for first, last in bins(0, max(0, (longest - 1) // 2)):  # the shorter of two
        longer = block(shift, q, max(1, first, shortest - 1 - last), max(1, longest - 1 - first))
        shorter = block(shift, q, first, last) if first else None
        pairs.append((2 * w * (last - first + 1), shorter, longer))
    lengths = bins(1, max(1, longest - 2), 1.5)
    pieces = [block(shift, q, first, last) for first, last in lengths]
    weights = [(v + 1, _weights(w, v, longest, lengths)) for v in range(2, visits_of_o + 1)]

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.max([(1 - w) ** first * part(eps) for first, part in quiet], axis=0)
        for chance, shorter, longer in pairs:
            if shorter is None:
                total = total + chance * longer(eps)
                continue
            total = total + chance * _split(shorter, longer, eps)
        for count, chances in weights:
            for chance, piece in zip(chances, pieces, strict=True):
                total = total + (chance * piece(eps / count) if chance > 1e-22 else chance)
        return total

    return profile


def _split(shorter: Profile, longer: Profile, eps: FloatArray) -> FloatArray:
    """δ₁(θε) + δ₂((1−θ)ε), θ being the best of some at the nearest of every sixteenth ε: any choice is sound."""

    def both(share: Any, at: FloatArray) -> FloatArray:
        return np.asarray(shorter(share * at) + longer((1 - share) * at))

    if len(eps) <= _EVERY:
        return np.asarray(np.min([both(share, eps) for share in _SPLITS], axis=0))
    places = np.append(np.arange(0, len(eps) - 1, _EVERY), len(eps) - 1)
    best = np.argmin([both(share, eps[places]) for share in _SPLITS], axis=0)
    after = np.minimum(np.searchsorted(places, np.arange(len(eps))), len(places) - 1)
    right, left = np.asarray(_SPLITS)[best[after]], np.asarray(_SPLITS)[best[np.maximum(after - 1, 0)]]
    total = both(right, eps)
    if (between := left != right).any():
        total[between] = np.minimum(total[between], both(left[between], eps[between]))
    return total


def _told_ending(shift: Shift, q: float, w: float, shortest: int, longest: int, visits_of_o: int) -> Profile:
    """The path told, v ≤ `visits_of_o` visits."""
    near = shift.near
    quiet = []
    for first, last in bins(shortest, longest):
        k, among = visits(last, q)
        quiet.append(mixture(k * near / math.sqrt(first), (1 - w) ** first * among))
    mus, weights = [], []
    for first, last in bins(0, max(0, (longest - 1) // 2)):  # the shorter of two parts
        k, among = visits(last, q)
        other = max(1, first, shortest - 1 - last)
        l, beside = visits(longest - 1 - first, q)  # noqa: E741  as k
        energy = (k[:, None] ** 2 / first if first else np.zeros((len(k), 1))) + l[None, :] ** 2 / other
        mus.append(near * np.sqrt(energy).ravel())
        weights.append(2 * w * (last - first + 1) * np.outer(among, beside).ravel())
    once = mixture(np.concatenate(mus), np.concatenate(weights), 1e-22)
    anywhere = -math.expm1(longest * math.log1p(-q)) if q < 1 else 1.0
    lengths = bins(1, max(1, longest - 2), 1.5)
    inside = [visits(last, q) for _, last in lengths]
    sizes = np.concatenate(
        [k[1:] * near / math.sqrt(first) for (first, _), (k, _) in zip(lengths, inside, strict=True)]
    )
    totals, several = np.zeros(len(sizes)), []
    for v in range(2, visits_of_o + 1):
        chances = _weights(w, v, longest, lengths)
        weight = np.concatenate([chance * among[1:] for chance, (_, among) in zip(chances, inside, strict=True)])
        totals += weight
        several.append((v + 1, mixture(sizes, anywhere * weight, 1e-22)))
    often = mixture(sizes, totals, 1e-22)

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.max([part(eps) for part in quiet], axis=0) + once(eps) + often(eps)
        for parts, piece in several:
            total = total + piece(eps / parts)
        return total

    return profile


def _weights(w: float, v: int, longest: int, lengths: list[tuple[int, int]]) -> list[float]:
    """(v+1)w^v·C(R−1−a, v−1) added up over ranges of a, at the longest R."""
    from scipy.special import comb

    scale = (v + 1) * w**v
    return [scale * float(np.sum(comb(longest - 1 - np.arange(a, b + 1), v - 1))) for a, b in lengths]


def mean(parts: list[tuple[float, Profile]]) -> Profile:
    """Profiles averaged over a public fact."""

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([chance * part(eps) for chance, part in parts], axis=0)
        return total

    return profile


def bins(first: int, last: int, ratio: float = 1.3) -> list[tuple[int, int]]:
    """first … last cut into ranges whose ends are about `ratio` apart.

    >>> bins(0, 9)
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (6, 7), (8, 9)]
    """
    edges, start = [], first
    while start <= last:
        end = min(last, max(start, int(start * ratio)))
        edges.append((start, end))
        start = end + 1
    return edges


@functools.lru_cache(maxsize=1024)
def most_blocks(steps: int, size: int, w: float) -> int:
    """B with P(the first B blocks cover fewer than `steps` steps) ≤ UNLIKELY.

    A block takes `size` steps, or r + 1 ≤ size if a visit ends it after r. Chernoff: P(ΣX < T) ≤ e^{sT}(E e^{−sX})^B.
    """
    r = np.arange(size)
    taken = np.append(r + 1, size).astype(np.float64)
    chance = np.append(w * (1 - w) ** r, (1 - w) ** size)

    def unlikely(count: int) -> bool:
        rates = np.geomspace(1e-6, 10, 120) / size
        logs = rates * steps + count * np.log(np.exp(-np.outer(rates, taken)) @ chance)
        return bool(np.min(logs) <= math.log(UNLIKELY))

    low, high = steps // size, 2 * (steps // size + 10)
    while not unlikely(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if unlikely(middle) else (middle, high)
    return min(high, steps)


def gap_mixture(near: float, chance: float) -> Profile:
    """One contribution, covered by the noise of the steps until the next visit of u or O: a geometric gap, told."""
    mus, weights = [], []
    longest = math.ceil(60 / chance)
    for first, last in bins(1, longest, 1.02):
        mus.append(near / math.sqrt(first))
        weights.append((1 - chance) ** (first - 1) - (1 - chance) ** last)
    mus.append(near / math.sqrt(longest))
    weights.append((1 - chance) ** longest)
    return mixture(np.array(mus), np.array(weights))


def gap_profile(covered: list[tuple[int, Profile]], chance: float) -> Profile:
    """The same for any cover: `covered` holds gaps l₁ = 1 < l₂ < … and the profile that holds from each of them on."""
    parts = []
    for (first, part), following in zip(covered, [*(start for start, _ in covered[1:]), None], strict=True):
        beyond = 0.0 if following is None else (1 - chance) ** (following - 1)
        parts.append(((1 - chance) ** (first - 1) - beyond, part))
    return mean(parts)
