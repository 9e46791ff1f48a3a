"""The sampled Gaussian mechanism, many times: the certified loss of sums that hold what is protected only at times.

One release is N(0, 1) noise around a value of length at most r = 1/multiplier, which is there with a secret probability q
and else absent (zero). Three pairs of laws on a line dominate every release, at every ε and adaptively:

    removed    P = (1−q)N(0,1) + qN(r,1)     Q = N(0,1)                    one more than the neighbour has
    added      P = N(0,1)                    Q = (1−q)N(0,1) + qN(r,1)     one less
    replaced   P = (1−q)N(0,1) + qN(r,1)     Q = (1−q)N(0,1) + qN(−r,1)    one value or another

Proof, and how they come onto a grid: docs/proofs/masked.md#sampled-descent. The T-th power of one transform, its errors bounded and
added under several exponential tilts: docs/proofs/privacy.md#loss-distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy import fft, special

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import between, check_times, positive, switch
from netdp.privacy.gaussian import gaussian_delta, gaussian_mu, shift_points
from netdp.privacy.losses import raised
from netdp.privacy.profile import ProfileCurve

LEVELS = (1e-2, 1e-5, 1e-9, 1e-15, 1e-28)
"""Of δ: near each of them the composed curve is as exact as the grid."""

_COARSE = 2048  # cells that choose tilts and windows: any choice is sound

_WINDOW = 30.0  # e^−30 of the tilted law may lie above the window

_STRENGTHS = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)  # of θ, over the deviation of the sum

_LONGEST = 1 << 21  # of a transform

_APART = 1.04  # the least ratio of two tilts that are worth a transform each

_TELLING = 1e-30  # δ below which a curve ends


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses of the loss under P at step·(low + i), at least those of a dominating pair; the rest is infinite."""

    step: float
    low: int
    masses: FloatArray
    infinite: float

    @property
    def losses(self) -> FloatArray:
        """Where the masses are."""
        return np.asarray(self.step * np.arange(self.low, self.low + len(self.masses), dtype=np.float64))


class Tilting:
    """K(s) = log Σ mass·e^{s·loss}: roughly on few cells, and on all of them; and the masses, tilted."""

    def __init__(self, law: Masses) -> None:
        with np.errstate(divide="ignore"):
            self._logs = np.log(law.masses)
        self._losses = law.losses
        self._least = (0.1 * law.step) ** 2
        block = -(-len(law.masses) // _COARSE)
        padded = np.zeros(block * -(-len(law.masses) // block))
        padded[: len(law.masses)] = law.masses
        weighted = np.zeros_like(padded)
        weighted[: len(law.masses)] = law.masses * law.losses
        mass = padded.reshape(-1, block).sum(axis=1)
        kept = mass > 0
        self._few_logs = np.log(mass[kept])
        self._few_losses = weighted.reshape(-1, block).sum(axis=1)[kept] / mass[kept]

    def rough(self, s: float) -> tuple[float, float, float]:
        """K, K′, K″, nearly."""
        exponents = self._few_logs + s * self._few_losses
        top = float(np.max(exponents))
        weights = np.exp(exponents - top)
        total = float(np.sum(weights))
        mean = float(np.sum(weights * self._few_losses)) / total
        spread = float(np.sum(weights * (self._few_losses - mean) ** 2)) / total
        return top + math.log(total), mean, spread

    def end(self, times: int, s: float, sign: float) -> tuple[float, float]:
        """Beyond which loss, up or down, e^−30 of the tilted law of so many lies at most, nearly; and Chernoff's θ there."""
        cumulant, _, spread = self.rough(s)
        deviation = math.sqrt(times * max(spread, self._least))
        tried = [strength / deviation for strength in _STRENGTHS]
        ends = [(times * (self.rough(s + sign * theta)[0] - cumulant) + _WINDOW) / theta for theta in tried]
        best = int(np.argmin(ends))
        return sign * ends[best], tried[best]

    def exact(self, s: float) -> float:
        """K, up to rounding."""
        exponents = self._logs + s * self._losses
        top = float(np.max(exponents))
        return top + math.log(float(np.sum(np.exp(exponents - top))))

    def tilted(self, s: float) -> tuple[FloatArray, float, float]:
        """mass·e^{s·loss − κ}, κ close to K(s), and a bound on their relative error."""
        kappa = self.exact(s)
        exponents = self._logs + s * self._losses - kappa
        largest = float(np.max(np.abs(exponents[exponents > -700]))) + abs(kappa)
        largest += abs(s) * float(np.max(np.abs(self._losses)))
        return np.exp(exponents), kappa, 8 * UNIT * (largest + 750)


def _tilts(tilting: Tilting, times: int, levels: tuple[float, ...]) -> list[float]:
    """0, and the tilts under which δ is about each of the levels at the mean (any tilt is sound)."""

    def exponent(s: float) -> float:
        cumulant, mean, _ = tilting.rough(s)
        return times * (s * mean - cumulant)

    tilts, low, high = [0.0], 0.0, 1.0
    for level in levels:
        aim = -math.log(level)
        while exponent(high) < aim:
            low, high = high, 2 * high
            if high > 1e9:  # the loss is bounded: its largest value is likelier than the level
                return tilts
        left, right = low, high
        while right > left * 1.02 + 1e-9:
            middle = 0.5 * (left + right)
            left, right = (middle, right) if exponent(middle) < aim else (left, middle)
        if right > _APART * tilts[-1]:
            tilts.append(right)
        low = left
    return tilts


def power(law: Masses, times: int, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """δ of so many at 0, step, 2·step, …: upper bounds, down to where they stop to matter or are not known any more.

    >>> half = Masses(1.0, -1, np.array([0.25, 0.0, 0.75]), 0.0)              # randomized response, ε₀ = log 3 read as 1
    >>> power(half, 2)[:3].round(6).tolist()
    [0.486374, 0.355568, 0.0]
    """
    tilting = Tilting(law)
    missed = times * law.infinite * (1 + 1e-9)
    parts = [_window(law, tilting, times, s) for s in _tilts(tilting, times, levels)]
    table = np.ones(max(1, *(first + len(bounds) for first, bounds in parts)))
    for first, bounds in parts:
        inside = bounds[max(-first, 0) :]
        place = slice(max(first, 0), max(first, 0) + len(inside))
        table[place] = np.minimum(table[place], inside)
    highest = times * (law.low + len(law.masses) - 1)
    table[max(highest, 0) :] = 0.0  # no finite loss is larger
    table = np.minimum(np.minimum.accumulate(table) + missed, 1.0)
    telling = int(np.searchsorted(-table, -max(_TELLING, 1.001 * missed))) + 2
    return table[:telling]


def too_long(law: Masses, times: int, levels: tuple[float, ...] = LEVELS) -> float:
    """By how much the grid must be coarser for transforms of a bearable length; at most 1 if it need not be."""
    tilting = Tilting(law)
    return max(_ends(law, tilting, times, s)[1] for s in _tilts(tilting, times, levels)) / _LONGEST


def _ends(law: Masses, tilting: Tilting, times: int, s: float) -> tuple[int, int, float]:
    """Where a window starts that holds nearly all of the tilted law of so many, its length, and Chernoff's θ at its end."""
    lowest, highest = times * law.low, times * (law.low + len(law.masses) - 1)
    top, theta = tilting.end(times, s, 1.0)
    bottom, _ = tilting.end(times, s, -1.0)
    first = max(math.floor(bottom / law.step) - 2, lowest)
    last = min(math.ceil(top / law.step) + 2, highest)
    return first, fft.next_fast_len(max(last - first + 1, 16), real=True), theta


def _window(release: Masses, tilting: Tilting, times: int, s: float) -> tuple[int, FloatArray]:
    """δ at the grid's losses from the first index on, by the law tilted by e^{sl}: bounds, inside one window."""
    first, size, theta = _ends(release, tilting, times, s)
    masses, kappa, relative = tilting.tilted(s)
    above = 0.0
    if first + size <= times * (release.low + len(release.masses) - 1):
        further = tilting.exact(s + theta)
        slack = 1e-11 * (1 + times * (1 + abs(further) + abs(kappa)))
        above = math.exp(min(times * (further - kappa) - theta * release.step * (first + size) + slack, 0.0))
    folded = np.bincount(np.arange(release.low, release.low + len(masses)) % size, weights=masses, minlength=size)
    eta = 8 * UNIT * math.log2(size)
    norm = math.sqrt(float(np.sum(folded * folded)))
    error = 1.2 * math.sqrt(size) * norm * (times * (eta + 8 * UNIT) + eta)
    if not (error < 0.01 and times * math.log(float(np.sum(folded))) < 0.05):  # else 1.1 above would not do
        return 0, np.ones(1)
    if times == 1:
        law, error = folded, 0.0
    else:
        law = np.maximum(fft.irfft(raised(fft.rfft(folded), times), size), 0.0)
    from scipy.signal import lfilter  # here: it takes a second to load, and a peer that starts needs none of it

    law = np.roll(law, -(first % size))
    # X_k = Σ_{i>k} law_i·e^{−s(i−k)d}·(1 − e^{−(i−k)d}), by two recursions of positive terms
    decay, fall = math.exp(-s * release.step), math.exp(-release.step)
    held = lfilter([1.0], [1.0, -decay], law[::-1])
    tails = lfilter([0.0, -decay * math.expm1(-release.step)], [1.0, -decay * fall], held)[::-1]
    lost = above + error + len(masses) * times * 1e-290  # what underflowed
    exponent = times * kappa - s * release.step * (first + np.arange(size))
    rounding = times * (relative + 8 * UNIT * len(masses) / size) + 16 * UNIT * (
        size + times * abs(kappa) + s * release.step * (np.abs(first) + size)
    )
    bounds = (tails + lost) * np.exp(np.minimum(exponent, 100.0)) * math.exp(min(2 * rounding, 1.0))
    if rounding > 0.1:
        return 0, np.ones(1)
    return first, np.where(exponent > 100.0, 1.0, np.minimum(bounds, 1.0))


_RAREST = 2.0**-40  # coins of protocols have 32 bits

_FINE = 0.05  # the width of a cell, in standard deviations of one loss

_LARGEST_SHIFT = 16.0  # beyond, a single release gives nearly everything away

_SMALLEST_SHIFT = 1e-9

_REACH = 13.5  # standard deviations: the mass beyond, 10^−41, counts as infinite

_MOVED = 9.5  # the same downwards, where mass is moved up instead

_MOST_CELLS = 1 << 19

_NORMAL_ERROR = 1e-12  # relative, of scipy's normal distribution function and of its argument, up to 30 deviations

_CLOSE = 1e-4

_POINTS = 1500


def sampled_gaussian_curve(multiplier: float, sampling: float, times: int, *, replaced: bool = False) -> ProfileCurve:
    """What so many sampled Gaussian releases tell together, in any order, adaptively: a certified curve.

    multiplier   the standard deviation of the noise over the largest length of what is protected
    sampling     q, the secret probability with which it takes part in a release
    replaced     False: it is there or not (add/remove), both directions. True: it is one value or another, both at most
                 so long, and zero while it does not take part.

    >>> curve = sampled_gaussian_curve(4.284, 0.064, 300)
    >>> round(float(curve.epsilon(1e-5)), 3)
    1.0
    """
    r, q, T = 1 / positive("multiplier", multiplier), _probability(sampling), check_times(times)
    return _curve(r, q, T, switch("replaced", replaced))


def sampled_gaussian_multiplier(
    epsilon: float, delta: float, sampling: float, times: int, *, replaced: bool = False
) -> float:
    """The least noise, over the length of what is protected, with which so many sampled releases meet ε at δ.

    At most a relative 10⁻⁴ above the least that `sampled_gaussian_curve` finds to be enough; and never less than 1/16, below
    which whoever is sampled is as good as shown.

    >>> round(sampled_gaussian_multiplier(1.0, 1e-5, 0.064, 300), 3)
    4.285
    """
    q, T, both = _probability(sampling), check_times(times), switch("replaced", replaced)
    asked, small = positive("epsilon", epsilon), between("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    length = 2.0 if both else 1.0
    mu = float(gaussian_mu(asked, small))
    enough = length * math.sqrt(T) / mu * (1 + 1e-9)
    if q == 0:
        raise InvalidValue("sampling=0: what never takes part needs no noise; give a probability above 0")
    if q == 1:
        return enough

    least = -math.log(_LARGEST_SHIFT * (1 - 1e-9))

    def excess(log_multiplier: float) -> float:
        curve = _curve(math.exp(-log_multiplier), q, T, both, (small,))
        reached = float(curve.epsilon(small))
        return math.log(reached / asked) if 0 < reached < math.inf else (-50.0 if reached == 0 else 50.0)

    # the limit of many small releases names the first guess: μ = q√(T(e^{r²} − 1))
    guess = -0.5 * math.log(math.log1p((mu / (length * q)) ** 2 / T))
    return math.exp(least_root(excess, min(guess, math.log(enough)), least, _CLOSE))


def least_root(excess: Callable[[float], float], guess: float, least: float, close: float) -> float:
    """An x ≥ `least` with excess(x) ≤ 0, at most `close` above the smallest such x; excess falls with x.

    >>> round(least_root(lambda x: 3.0 - x, 1.0, -50.0, 1e-3), 2), least_root(lambda x: -1.0, 1.0, 0.5, 1e-3)
    (3.0, 0.5)
    """
    low, high, below, above = -math.inf, math.inf, math.nan, math.nan
    x, stride = max(guess, least), 0.02
    for _ in range(200):
        value = excess(x)
        low, above, high, below = (x, value, high, below) if value > 0 else (low, above, x, value)
        if high - low <= close or high <= least:
            return high
        if math.isinf(low) or math.isinf(high):
            aim = max(abs(value), stride) * 1.5  # a bracket first: the loss falls about as the noise grows
            stride *= 2
            x = x + aim if value > 0 else max(x - aim, least)
        else:
            x = low + (high - low) * above / (above - below)
            x = min(max(x + 0.3 * close, low + 0.1 * (high - low)), high - min(0.5 * close, 0.1 * (high - low)))
    raise Unsupported("no noise was found that meets the target; give a larger epsilon or delta")


def _probability(sampling: float) -> float:
    q = between("sampling", sampling, 0.0, 1.0)
    if 0 < q < _RAREST:
        raise InvalidValue(
            f"sampling={sampling!r} is less than 2^-40, rarer than any coin here; give 0, or at least that"
        )
    return q


@lru_cache(maxsize=64)
def _curve(r: float, q: float, times: int, replaced: bool, levels: tuple[float, ...] = LEVELS) -> ProfileCurve:
    if q == 0:
        return ProfileCurve([0.0], [0.0])
    r *= 1 + 4 * UNIT
    mu = math.sqrt(times) * (2 * r if replaced else r) * (1 + 8 * UNIT)
    points = np.concatenate(shift_points(mu))
    if q == 1 or not _SMALLEST_SHIFT < r < _LARGEST_SHIFT:
        points = np.unique(points)
        return ProfileCurve(points, np.minimum.accumulate(np.asarray(gaussian_delta(mu, points))))
    pairs = (_Replaced(r, q),) if replaced else (_Removed(r, q), _Added(r, q))
    curves = [_composed(pair, times, levels) for pair in pairs]
    end = max(float(curve.epsilons[-1]) for curve in curves)
    points = np.unique(np.concatenate([*(_telling(curve) for curve in curves), points[points > end]]))
    sampled = np.max([np.asarray(curve.delta(points)) for curve in curves], axis=0)
    return ProfileCurve(points, np.minimum.accumulate(np.minimum(sampled, np.asarray(gaussian_delta(mu, points)))))


def _telling(curve: ProfileCurve) -> FloatArray:
    """Some of the curve's points: evenly in ε, and evenly in log δ."""
    levels = np.log(np.maximum(curve.deltas, 1e-60))
    evenly = np.searchsorted(-levels, -np.linspace(levels[0], levels[-1], _POINTS))
    last = len(curve.epsilons) - 1
    chosen = np.append(evenly, np.linspace(0, last, _POINTS).astype(np.int64))
    return np.asarray(curve.epsilons[np.unique(np.minimum(chosen, last))])


class _Pair:
    """A pair of laws on the line whose loss log dP/dQ is monotone in x."""

    rising: ClassVar[bool] = True

    def __init__(self, r: float, q: float) -> None:
        self.r, self.q = r, q

    def loss(self, x: FloatArray) -> FloatArray:
        """log dP/dQ at x, approximately: it only decides where the grid lies."""
        raise NotImplementedError

    def edges(self, losses: FloatArray) -> FloatArray:
        """Where on the line the loss takes these values; ±inf where it never does."""
        raise NotImplementedError

    def weights(self) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
        """P and Q as mixtures: (weight, mean) of N(mean, 1)."""
        raise NotImplementedError

    @property
    def mixture(self) -> tuple[tuple[float, float], ...]:
        return ((1 - self.q, 0.0), (self.q, self.r))

    def _log_ratio(self, x: FloatArray) -> FloatArray:
        """log(1 − q + q·e^{rx − r²/2})."""
        return np.asarray(np.logaddexp(math.log1p(-self.q), math.log(self.q) + self.r * x - self.r**2 / 2))

    def _where(self, ratio: FloatArray) -> FloatArray:
        """The x at which `_log_ratio` takes these values."""
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.log1p(np.maximum(np.expm1(ratio) / self.q, -1.0))
        return np.asarray((grown + self.r**2 / 2) / self.r)

    @property
    def slack(self) -> float:
        """η: how far the loss at a computed edge may be from the loss that was meant (a dozen roundings of each term)."""
        return 64 * UNIT * (1 + abs(math.log(self.q)) + self.r * (self.r + _REACH))


class _Removed(_Pair):
    def loss(self, x: FloatArray) -> FloatArray:
        return self._log_ratio(x)

    def edges(self, losses: FloatArray) -> FloatArray:
        return self._where(losses)

    def weights(self) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
        return self.mixture, ((1.0, 0.0),)


class _Added(_Pair):
    rising = False

    def loss(self, x: FloatArray) -> FloatArray:
        return -self._log_ratio(x)

    def edges(self, losses: FloatArray) -> FloatArray:
        return self._where(-losses)

    def weights(self) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
        return ((1.0, 0.0),), self.mixture


class _Replaced(_Pair):
    def loss(self, x: FloatArray) -> FloatArray:
        return self._log_ratio(x) - self._log_ratio(-x)

    def edges(self, losses: FloatArray) -> FloatArray:
        size = np.abs(losses)
        more, c = np.expm1(size), self.q * math.exp(-(self.r**2) / 2)
        b = (1 - self.q) * more
        root = np.hypot(b, 2 * c * np.sqrt(1 + more))
        # u = e^{rx} solves c·u² − b·u − c·e^l = 0; u − 1 without subtracting near-equal numbers
        grown = (b + b * (b / (root + 2 * c)) + 2 * c * (2 * c * more / (root + 2 * c))) / (2 * c)
        return np.asarray(np.copysign(np.log1p(grown) / self.r, losses))

    def weights(self) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
        return self.mixture, ((1 - self.q, 0.0), (self.q, -self.r))


def _interval(mean: float, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mass of N(mean, 1) between left < right, and how far it may be off."""
    a, b = left - mean, right - mean
    mirrored = a > 0  # tails are taken from their own side
    low, high = special.ndtr(np.where(mirrored, -b, a)), special.ndtr(np.where(mirrored, -a, b))
    return np.maximum(high - low, 0.0), _NORMAL_ERROR * high + 1e-310


def _discretised(pair: _Pair, coarser: float = 1.0) -> Masses:
    """The loss of one release on a grid; on one so many times coarser."""
    p_law, q_law = pair.weights()
    means = [mean for _, mean in p_law]
    # far up to where next to nothing is left; on the other side, where mass may be moved up, less far
    up, down = (_REACH, -_MOVED) if pair.rising else (-_REACH, _MOVED)
    line = np.linspace(min(means) + min(up, down), max(means) + max(up, down), 8001)
    law = np.sum([weight * np.exp(-0.5 * (line - mean) ** 2) for weight, mean in p_law], axis=0)
    law /= np.sum(law)
    losses = pair.loss(line)
    mean = float(np.sum(law * losses))
    deviation = math.sqrt(float(np.sum(law * (losses - mean) ** 2)))
    least, most = float(np.min(losses)), float(np.max(losses))
    step = coarser * max(_FINE * deviation, (most - least) / _MOST_CELLS, 1e-300)
    low, high = math.floor(least / step), math.ceil(most / step) + 1
    grid = step * np.arange(low, high + 1, dtype=np.float64)
    edges = pair.edges(grid)
    rising = pair.rising
    left, right = (edges[:-1], edges[1:]) if rising else (edges[1:], edges[:-1])
    seen, other = np.zeros(len(left)), np.zeros(len(left))
    for weight, centre in p_law:
        value, error = _interval(centre, left, right)
        seen += weight * (value + error) * (1 + 8 * UNIT)
    for weight, centre in q_law:
        value, error = _interval(centre, left, right)
        other += weight * np.maximum(value - error, 0.0) * (1 - 8 * UNIT)
    wide = -math.expm1(-step)
    upper = (seen - other * np.exp(grid[:-1]) * (1 - 1e-12)) / wide + seen * (2 * pair.slack / wide + 1e-12)
    upper = np.clip(upper, 0.0, seen)
    masses = np.zeros(len(grid))
    masses[:-1] += seen - upper
    masses[1:] += upper
    # what lies below the grid is moved up to its first point, what lies above it counts as infinite
    below = (-np.inf, edges[0]) if rising else (edges[0], np.inf)
    above = (edges[-1], np.inf) if rising else (-np.inf, edges[-1])
    masses[0] += _mass(p_law, *below)
    return Masses(step, low, masses, _mass(p_law, *above))


def _mass(law: tuple[tuple[float, float], ...], left: float, right: float) -> float:
    parts = [(weight, *_interval(mean, np.array([left]), np.array([right]))) for weight, mean in law]
    return float(sum(weight * (value[0] + error[0]) for weight, value, error in parts)) * (1 + 8 * UNIT)


def _composed(pair: _Pair, times: int, levels: tuple[float, ...]) -> ProfileCurve:
    """An upper bound on the profile of so many releases of this pair, in its one direction."""
    law = _discretised(pair)
    coarser = too_long(law, times, levels)
    if coarser > 1:
        law = _discretised(pair, 1.01 * coarser)
    deltas = power(law, times, levels)
    moved = times * pair.slack
    epsilons = law.step * np.arange(len(deltas)) * (1 + 1e-12) + moved
    nothing = min(
        1.0, (float(deltas[0]) + math.expm1(min(moved, 1.0))) * (1 + 8 * UNIT)
    )  # e^ε − 1 at most is gained below
    known = ProfileCurve(np.append(0.0, epsilons), np.append(nothing, deltas))
    last = times * law.step * (law.low + len(law.masses) - 1) * (1 + 1e-12) + moved  # no finite loss is larger
    if last <= epsilons[-1]:
        return known
    missed = min(times * law.infinite * (1 + 1e-9), float(deltas[-1]))
    return ProfileCurve(np.append(known.epsilons, last), np.append(known.deltas, missed))
