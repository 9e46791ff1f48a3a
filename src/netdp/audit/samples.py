"""Whether numbers that were drawn have the law that they should, one by one and together, and whether noise was used twice.

Every test bounds the chance that sound draws look as bad as what was seen, for every number of draws (`of_counts`,
`of_evenness`, `of_each`, `of_sum`): so a sound sampler is called wrong with no larger probability than the doubt. `fits` looks
at one number at a time, `independent` at draws that follow each other, `no_reuse` at rows that should have nothing to do with
each other. A `SampleLaw` is summed from its definition and has nothing in common with a sampler. Bounds:
docs/proofs/audit.md#noise-tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.audit.findings import Check
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray

_LEAST = 500.0
"""Fewer draws than these in some cell, expected, and evenness is not judged."""

_AROUND = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0, 4.0])

_FLOOR = 1e-300


def of_counts(counts: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance of counts as far from what independent draws with these shares give, or further.

    >>> of_counts([480, 520], [0.5, 0.5]), of_counts([300, 700], [0.5, 0.5]) < 1e-30
    (1.0, True)
    """
    seen, p = _cells(counts, shares)
    if (seen[p == 0] > 0).any():
        return 0.0
    there = seen > 0
    n, k = seen.sum(), int((p > 0).sum())
    x = float((seen[there] * np.log(seen[there] / (n * p[there]))).sum())
    if k < 2 or x <= k - 1:
        return 1.0
    return max(math.exp(max(-x + (k - 1) * (1 + math.log(x / (k - 1))), -690.0)), _FLOOR)


def of_evenness(counts: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance of counts as close to what is expected, or closer; 1 where too few are expected to say.

    >>> of_evenness([1000] * 50, [0.02] * 50) < 1e-30
    True
    """
    from scipy.special import gammainc

    seen, p = _cells(counts, shares)
    seen, p = seen[p > 0], p[p > 0]
    expected = seen.sum() * p
    if len(p) < 2 or expected.min() < _LEAST:
        return 1.0
    square = float(((seen - expected) ** 2 / expected).sum())
    radius = math.sqrt(square) + math.sqrt(len(p) / (4 * float(expected.min())))
    return min(1.0, 4 * float(gammainc((len(p) - 1) / 2, radius**2 / 2)))


def of_each(counts: npt.ArrayLike, draws: int, shares: npt.ArrayLike) -> FloatArray:
    """For every count by itself: the chance that a binomial number is as far out on its side, times two for the two sides.

    >>> of_each([0, 50], 100, [0.5, 0.5]).round(3).tolist()
    [0.0, 1.0]
    """
    from scipy.special import betainc

    k, p = np.broadcast_arrays(np.asarray(counts, dtype=np.float64), np.asarray(shares, dtype=np.float64))
    p = np.clip(p, 0.0, 1.0)
    above = np.where(k > 0, betainc(np.maximum(k, 1.0), draws - k + 1, p), 1.0)
    below = np.where(k < draws, betainc(np.maximum(draws - k, 1.0), k + 1, 1 - p), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below)))


def of_sum(mean: float, draws: int, scores: npt.ArrayLike, shares: npt.ArrayLike) -> float:
    """The chance that the mean score of so many draws is as far from what it should be, on its side or the other.

    scores, shares : what an outcome scores, and how probable it is

    >>> coins = ([-1.0, 1.0], [0.5, 0.5])
    >>> of_sum(0.01, 10_000, *coins), 1e-24 < of_sum(0.1, 10_000, *coins) < 1e-20
    (1.0, True)
    """
    a, p = (np.asarray(one, dtype=np.float64).ravel() for one in (scores, shares))
    a, p = a[p > 0], p[p > 0] / p.sum()
    centre = float(p @ a)
    a, off = a - centre, mean - centre
    if off == 0 or not a.any():
        return 1.0 if off == 0 else 0.0
    if off < 0:
        a, off = -a, -off
    if off > a.max():
        return 0.0
    best = 0.0
    for lam in off / float(p @ (a * a)) * _AROUND:
        top = lam * float(a.max())
        best = min(best, draws * (top + math.log(float(p @ np.exp(lam * a - top))) - lam * off))
    return min(1.0, max(2 * math.exp(max(best, -690.0)), _FLOOR))


def _cells(counts: npt.ArrayLike, shares: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    seen, p = (np.asarray(one, dtype=np.float64).ravel() for one in (counts, shares))
    if seen.shape != p.shape or not seen.sum() > 0 or not (p >= 0).all() or not p.sum() > 0:
        raise InvalidValue(
            f"{seen.size} counts and {p.size} shares: give one share ≥ 0 for every count, and some draws"
        )
    return seen, p / p.sum()


DOUBT = 1e-9
"""So probable it is, at most, that a sound sampler does not pass a check."""

_BINS = 1 << 17

_SCORES = 4096

_CELLS, _PAIRED, _PAIR_SCORES = 64, 8, 64

_DEVIATIONS = 12.0  # of a Gaussian: what lies beyond has mass below 2e^−72

_SCALES = 64.0  # of a Laplace law: below 2e^−64

_REMAINDERS = (2, 3, 16)

_LAGS = (1, 2, 3, 7)

_FEWEST = 5.0  # draws expected in a cell that is looked at by itself


@dataclass(frozen=True, eq=False)
class SampleLaw:
    """A law on the whole numbers from `low` to `high`; beyond there is nothing, or less than 10⁻²⁵ of it.

    log_mass : the logarithm of the mass of each of these numbers, up to a constant; smooth, but perhaps at 0

    >>> law = gaussian_law(9)
    >>> law.words, round(law.deviation, 6), law.width
    ('the discrete Gaussian of parameter 9', 3.0, 1)
    >>> gaussian_law(2**100).width > 1
    True
    """

    words: str
    log_mass: Callable[[FloatArray], FloatArray]
    low: int
    high: int

    @cached_property
    def width(self) -> int:
        """How many whole numbers there are in a bin, a power of two; bins begin at its multiples."""
        bins = -(-(self.high - self.low + 1) // _BINS)
        return 1 << (bins - 1).bit_length()

    @cached_property
    def first(self) -> int:
        """The number of the first bin."""
        return self.low // self.width

    @cached_property
    def shares(self) -> FloatArray:
        """The probability of every bin."""
        w = self.width
        middle = np.arange(self.first, self.high // w + 1, dtype=np.float64) * w + (w - 1) / 2
        logs = [np.asarray(self.log_mass(middle), dtype=np.float64)]
        weights = [1.0]
        if w > 1:
            off = math.sqrt(0.6) * math.sqrt(w * w - 1.0) / 2  # so that the nodes have the variance of w whole numbers
            logs += [np.asarray(self.log_mass(middle + side * off), dtype=np.float64) for side in (-1, 1)]
            weights = [8 / 18, 5 / 18, 5 / 18]
        top = max(float(log.max()) for log in logs)
        mass = np.asarray(sum(weight * np.exp(log - top) for weight, log in zip(weights, logs, strict=True)))
        return np.asarray(mass / mass.sum())

    @cached_property
    def middles(self) -> FloatArray:
        """The middle of every bin."""
        w = self.width
        return (self.first + np.arange(len(self.shares), dtype=np.float64)) * w + (w - 1) / 2

    @cached_property
    def mean(self) -> float:
        """Of the law."""
        return float(self.shares @ self.middles)

    @cached_property
    def deviation(self) -> float:
        """Its standard deviation."""
        return math.sqrt(float(self.shares @ (self.middles - self.mean) ** 2))

    def bins(self, sample: IntArray) -> IntArray:
        """In which bin each number lies, counted from the first one; −1 if the law does not reach there."""
        inside = (sample >= self.low) & (sample <= self.high)
        return np.asarray(np.where(inside, (sample >> (self.width.bit_length() - 1)) - self.first, -1))

    def remainders(self, modulus: int) -> FloatArray:
        """The probability of every remainder; where bins are wide all are alike, up to 2·10⁻⁵ of them."""
        if self.width > 1:
            return np.full(modulus, 1 / modulus)
        numbers = self.first + np.arange(len(self.shares))
        return np.asarray(np.bincount(numbers % modulus, weights=self.shares, minlength=modulus), dtype=np.float64)

    def cells(self, number: float) -> IntArray:
        """(bins,) which of about so many cells, equally probable as far as bins allow, each bin belongs to."""
        below = np.cumsum(self.shares) - self.shares / 2
        return np.unique(np.floor(below * number), return_inverse=True)[1].astype(np.int64)


def gaussian_law(variance: int) -> SampleLaw:
    """The mass e^{−x²/2v} on every whole number."""
    v, reach = float(variance), math.ceil(_DEVIATIONS * math.sqrt(variance)) + 1
    return SampleLaw(
        f"the discrete Gaussian of parameter {_plain(variance)}", lambda x: -x * x / (2 * v), -reach, reach
    )


def laplace_law(rate: Fraction) -> SampleLaw:
    """The mass e^{−r|x|} on every whole number."""
    r, reach = float(rate), math.ceil(_SCALES / float(rate)) + 1
    return SampleLaw(f"the discrete Laplace law of rate {r:.3g}", lambda x: -r * np.abs(x), -reach, reach)


@dataclass(frozen=True)
class TableLaw(SampleLaw):
    """A law whose mass is no smooth function: the mass of every whole number is stated."""

    masses: tuple[float, ...] = ()

    @cached_property
    def shares(self) -> FloatArray:
        """The probability of every bin."""
        place = np.arange(self.low, self.high + 1) // self.width - self.first
        return np.asarray(np.bincount(place, weights=np.array(self.masses)) / math.fsum(self.masses))

    def remainders(self, modulus: int) -> FloatArray:
        """The probability of every remainder, from every number: 0 may have much of the mass."""
        numbers = np.arange(self.low, self.high + 1) % modulus
        found = np.bincount(numbers, weights=np.array(self.masses), minlength=modulus)
        return np.asarray(found / math.fsum(self.masses))


_LONGEST_TABLE = 1 << 21


def laplace_share_law(rate: Fraction, parts: int | Fraction) -> SampleLaw | None:
    """A − B for A, B ~ NB(1/parts, e^{−r}): a share of a discrete Laplace law; None where a table of it would be too long.

    Of several shares together, `parts` is how many make one Laplace law for each of them: a fraction, below one for more than one.

    >>> law = laplace_share_law(Fraction(1, 4), 3)
    >>> round(law.deviation**2, 6) == round(0.5 / math.sinh(1 / 8) ** 2 / 3, 6)
    True
    """
    from scipy.signal import fftconvolve
    from scipy.special import gammaln

    reach = math.ceil(_SCALES / float(rate)) + 1
    if reach > _LONGEST_TABLE:
        return None
    j, s = np.arange(reach + 1), float(1 / Fraction(parts))
    once = np.exp(gammaln(j + s) - gammaln(s) - gammaln(j + 1) - float(rate) * j)
    masses = np.maximum(fftconvolve(once, once[::-1]), 0.0)
    words = f"a share, one of {float(parts):.4g}, of the discrete Laplace law of rate {float(rate):.3g}"
    return TableLaw(words, lambda x: np.zeros_like(x), -reach, reach, tuple(masses.tolist()))


def finite_law(shares: Sequence[float | Fraction], words: str = "stated shares") -> SampleLaw:
    """The numbers 0, 1, … with these probabilities.

    >>> finite_law([Fraction(1, 4), Fraction(3, 4)]).shares.round(12).tolist()
    [0.25, 0.75]
    """
    table = np.array([float(share) for share in shares])
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return SampleLaw(words, lambda x: logs[x.astype(np.int64)], 0, len(table) - 1)


Seen = list[tuple[float, str]]
"""(the chance of what was seen, what it was) of every test."""


def fits(sample: npt.ArrayLike, law: SampleLaw, doubt: float = DOUBT, name: str = "the law of the noise") -> Check:
    """Whether independent draws have this law, one by one.

    >>> from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
    >>> drawn = DiscreteGaussian(9).sample((50_000,), words_from(np.random.default_rng(0)))
    >>> fits(drawn, gaussian_law(9)).ok, fits(drawn, gaussian_law(10)).ok
    (True, False)
    """
    numbers = _whole_numbers(sample)
    at = law.bins(numbers)
    if (at < 0).any():
        odd = int(numbers[at < 0][0])
        return Check(
            name, False, f"{odd} was drawn: {law.words} ends at ±{law.high:.3g}, but for less than 10⁻²⁵ of it"
        )
    n, shares = len(numbers), law.shares
    counts = np.bincount(at, minlength=len(shares))
    seen: Seen = []

    cells = law.cells(_CELLS)
    coarse = _summed(counts, cells), _summed(shares, cells)
    seen.append((of_counts(*coarse), f"counts in {len(coarse[0])} cells are further off than chance puts them"))
    seen.append((of_evenness(*coarse), f"counts in {len(coarse[0])} cells are more even than chance leaves them"))
    seen += _tails(counts, shares, n)
    few = law.cells(n / _FEWEST)
    single = of_each(_summed(counts, few), n, _summed(shares, few))
    where = int(np.argmin(single))
    place = f"{law.middles[few == where][0]:.4g}"
    seen.append((float(single[where]) * len(single), f"{_summed(counts, few)[where]:.0f} draws are at or near {place}"))

    scores, into = _scored(law, _SCORES)
    weights, hits = _summed(shares, into), _summed(counts, into)
    for power, words in (
        (1, "the mean is {0:.4g} deviations off"),
        (2, "the variance is {1:.4g} of what it should be"),
    ):
        value = np.minimum(scores**power, 36.0)  # so that the second has a moment generating function under every law
        mean, right = float(hits @ value) / n, float(weights @ value)
        seen.append((of_sum(mean, n, value, weights), words.format(mean - right, mean / right if right else 1.0)))
    for modulus in _REMAINDERS:
        left = np.bincount(numbers % modulus, minlength=modulus)
        seen.append((of_counts(left, law.remainders(modulus)), f"remainders modulo {modulus} are {left.tolist()}"))
    return _judged(name, seen, doubt, f"{n:,} draws of {law.words}: shape, tails, moments and last digits")


def independent(
    sample: npt.ArrayLike, law: SampleLaw, doubt: float = DOUBT, name: str = "draws do not hang together"
) -> Check:
    """Whether draws that follow each other have nothing to do with each other; `law` is that of one of them.

    >>> from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
    >>> drawn = DiscreteGaussian(100).sample((40_000,), words_from(np.random.default_rng(0)))
    >>> independent(drawn, gaussian_law(100)).ok, independent(np.repeat(drawn, 2), gaussian_law(100)).ok
    (True, False)
    """
    numbers = _whole_numbers(sample)
    at = law.bins(numbers)
    if (at < 0).any():
        return Check(name, False, f"{int(numbers[at < 0][0])} was drawn, where {law.words} does not reach")
    cells = law.cells(_PAIRED)
    p, scores, into = _summed(law.shares, cells), *_scored(law, _PAIR_SCORES)
    weights = _summed(law.shares, into)
    sizes = np.abs(scores) - float(weights @ np.abs(scores))
    parity = law.remainders(2)
    seen: Seen = []
    for lag in _LAGS:
        one, other = _pairs(len(numbers), lag)
        if not len(one):
            continue
        here, there = cells[at[one]], cells[at[other]]
        table = np.bincount(here * len(p) + there, minlength=len(p) ** 2)
        seen.append((of_counts(table, np.outer(p, p)), f"pairs of draws {lag} apart prefer some cells to others"))
        for value, what in ((scores, "draws"), (sizes, "sizes of draws")):
            mean = float((value[into[at[one]]] * value[into[at[other]]]).mean())
            chance = of_sum(mean, len(one), np.outer(value, value), np.outer(weights, weights))
            seen.append((chance, f"{what} {lag} apart are correlated, {mean:.4g}"))
        both = np.bincount(numbers[one] % 2 * 2 + numbers[other] % 2, minlength=4)
        seen.append((of_counts(both, np.outer(parity, parity)), f"parities {lag} apart are {both.tolist()}"))
    return _judged(name, seen, doubt, f"{len(numbers):,} draws, in pairs {', '.join(map(str, _LAGS))} apart")


def _tails(counts: IntArray, shares: FloatArray, n: int) -> Seen:
    """Either side of the law, from a half of all draws down to a few: a tail cut off, or a sign that comes too often."""
    seen_tails: Seen = []
    for side, seen, p in (("low", counts, shares), ("high", counts[::-1], shares[::-1])):
        mass, number = np.cumsum(p), np.cumsum(seen)
        wanted = 0.5 ** np.arange(1, max(2, int(math.log2(n / _FEWEST)) + 1))
        places = np.unique(np.searchsorted(mass, wanted))
        places = places[places < len(mass) - 1]
        chances = of_each(number[places], n, mass[places]) if len(places) else np.ones(0)
        for place, chance in zip(places.tolist(), chances.tolist(), strict=True):
            seen_tails.append(
                (chance, f"{number[place]:,} draws in the {side} tail where {n * mass[place]:,.1f} belong")
            )
    return seen_tails


def _scored(law: SampleLaw, most: int) -> tuple[FloatArray, IntArray]:
    """At most so many groups of bins next to each other: how many deviations from the mean each is, and every bin's group."""
    each = -(-len(law.shares) // most)
    into = np.arange(len(law.shares)) // each
    middles = np.bincount(into, weights=law.middles) / np.bincount(into)
    return np.asarray((middles - law.mean) / (law.deviation or 1.0)), into


def _pairs(length: int, lag: int) -> tuple[IntArray, IntArray]:
    """Places so far apart, every place in one pair at most.

    >>> [part.tolist() for part in _pairs(9, 2)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    starts = np.arange(0, length - 2 * lag + 1, 2 * lag)
    one = (starts[:, None] + np.arange(lag)).ravel()
    return one, one + lag


def _summed(values: Any, groups: IntArray) -> FloatArray:
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


def _judged(name: str, seen: Seen, doubt: float, what: str) -> Check:
    if not 0 < doubt < 1:
        raise InvalidValue(f"doubt must lie between 0 and 1, got {doubt!r}; 1e-9 is what standing tests take")
    chance, words = min(seen)
    ok = chance >= doubt / len(seen)
    said = f"{what}; {len(seen)} tests, none beyond a doubt of {doubt:.0e}"
    return Check(name, ok, said if ok else f"{what}: {words} (a chance below {max(chance, 1e-300):.0e})")


def _whole_numbers(sample: npt.ArrayLike) -> IntArray:
    numbers = np.asarray(sample)
    if numbers.dtype.kind not in "iub" or not numbers.size:
        raise InvalidValue(f"a sample is a list of whole numbers, got {numbers.size} of {numbers.dtype}")
    return numbers.astype(np.int64, copy=False).ravel()


def _plain(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number:.4g}"


_PLACES = 256
"""Of every row so many places are compared with those of other rows; words are looked at in full."""


def no_reuse(
    samples: npt.ArrayLike,
    *,
    likeliest: float | None = None,
    shifts: int = 4,
    symmetric: bool = True,
    doubt: float = DOUBT,
    name: str = "no noise is used twice",
) -> Check:
    """Whether rows (contributions, draws) are drawn apart from each other.

    samples     random words (uint64), or whole numbers that were drawn
    likeliest   the probability of the likeliest draw, at most: for Gaussian noise of s ≥ 1 steps 0.4/s. By default that of a
                word, or ½, which will do for rows of a hundred numbers
    shifts      by so many places rows are shifted against each other, and by fewer
    symmetric   whether draws are symmetric around 0: noise is, contributions are not

    >>> drawn = np.random.default_rng(0).integers(-500, 500, (6, 64))
    >>> no_reuse(drawn, likeliest=1e-3).ok, no_reuse(np.vstack([drawn, drawn[2] + 7]), likeliest=1e-3).ok
    (True, False)
    """
    rows = np.asarray(samples)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.shape[1] < 8 or len(rows) < 2:
        raise InvalidValue(
            f"samples must be rows of eight whole numbers or more, got {rows.dtype} of shape {rows.shape}"
        )
    words = rows.dtype == np.uint64
    if words:
        distinct, times = np.unique(rows, return_counts=True)
        if (times > 1).any() and rows.size**2 / 2.0**65 <= doubt / 3:
            twice = distinct[times > 1][0]
            where = [int(i) for i in np.flatnonzero((rows == twice).any(axis=1))[:2]]
            repeated = f"{int((times > 1).sum()):,} words come more than once"
            return Check(name, False, f"{repeated}, such as {int(twice):#x} in rows {' and '.join(map(str, where))}")
    p = 2.0**-64 if words else 0.5 if likeliest is None else likeliest
    if not 0 < p < 1:
        raise InvalidValue(f"likeliest must lie between 0 and 1, got {likeliest!r}")
    cut = rows[:, :_PLACES].astype(np.int64)
    signs = np.where(cut < 0, -1, 1) if words else np.sign(cut)
    pairs = len(rows) * (len(rows) + 1) // 2 * (2 * shifts + 1)
    too_many = _most_repeats(cut.shape[1], p, doubt / 3 / pairs)
    for i in range(len(rows)):
        for shift in range(-shifts, shifts + 1):
            # row i against itself only at a shift, one way
            others = np.arange(i if shift > 0 else i + 1, len(rows))
            if not len(others):
                continue
            a, b = _shifted(cut[i], cut[others], shift)
            with np.errstate(over="ignore"):
                repeats = _commonest(b - a)
            worst = int(repeats.argmax())
            if repeats[worst] >= too_many:
                said = f"rows {i} and {others[worst]}{_at(shift)} differ by the same number in {repeats[worst]} places"
                return Check(name, False, f"{said} of {b.shape[1]}: one noise around two values")
            if symmetric:
                a, b = _shifted(signs[i], signs[others], shift)
                product = b * a
                agree, counted = (product > 0).sum(axis=1), (product != 0).sum(axis=1)
                chances = of_each(agree, counted, 0.5)
                worst = int(chances.argmin())
                if chances[worst] < doubt / 3 / pairs:
                    said = f"the signs of rows {i} and {others[worst]}{_at(shift)} agree in {agree[worst]} places"
                    return Check(name, False, f"{said} of {counted[worst]}")
    return Check(
        name, True, f"{len(rows)} rows of {rows.shape[1]:,}: nothing in one comes again in another, shifted or not"
    )


def _shifted(row: IntArray, others: IntArray, shift: int) -> tuple[IntArray, IntArray]:
    """The parts that lie beside each other."""
    d = len(row)
    if shift >= 0:
        return row[: d - shift], others[:, shift:]
    return row[-shift:], others[:, : d + shift]


def _commonest(table: IntArray) -> IntArray:
    """How often the commonest number of every row comes.

    >>> _commonest(np.array([[1, 2, 1, 3], [4, 4, 4, 4]])).tolist()
    [2, 4]
    """
    ordered = np.sort(table, axis=1)
    place = np.arange(1, table.shape[1])
    began = np.maximum.accumulate(np.where(np.diff(ordered, axis=1) != 0, place, 0), axis=1)
    return np.asarray((place - began).max(axis=1) + 1)


def _most_repeats(places: int, p: float, doubt: float) -> int:
    """The least m for which C(places, m)·p^{m−1} is no larger than the doubt; more than there are places if there is none."""
    for m in range(2, places + 1):
        if math.lgamma(places + 1) - math.lgamma(m + 1) - math.lgamma(places - m + 1) + (m - 1) * math.log(
            p
        ) <= math.log(doubt):
            return m
    return places + 1


def _at(shift: int) -> str:
    return f", {abs(shift)} places apart," if shift else ""
