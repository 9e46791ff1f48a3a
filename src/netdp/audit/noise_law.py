"""Whether numbers that were drawn have the law that they should: a law on the whole numbers, and the tests of a sample.

A `Law` is the logarithm of its mass, up to a constant, and where all of it lies but for less than 10⁻²⁵. It is summed here, from
the definition, and has nothing in common with a sampler. Where whole numbers are too many to be listed they are taken together
in bins, and the mass of a bin is a three-point Gauss sum over it that has the variance of its whole numbers: right to 10⁻¹².

**`fits`** looks at one number at a time: counts in 64 cells that are about equally probable, in both directions (too far off, too
even); tails of ½, ¼, … of all draws on either side, down to five draws; every cell of about five draws by itself; signs; mean
and variance; and remainders modulo 2, 3 and 16, the last digits.

**`independent`** looks at pairs of draws that lie 1, 2, 3 and 7 apart, every draw in one pair only, so that pairs are independent
too: 8 × 8 cells, products and products of sizes, parities.

Every test bounds the chance of what was seen under the stated law (`noise_chances`); a sample does not pass if one of them is
below its part of the doubt. So a sound sampler is called wrong with no larger probability than the doubt.

What no such test can see: a law so close to the stated one that these many draws do not tell. N(0, v) rounded to whole
numbers is one, from v ≈ 10⁴ on (total variation at most 1/24v). That deployed code does not draw it is for `noise_source`.
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

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray

from .findings import Check
from .noise_chances import of_counts, of_each, of_evenness, of_sum

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
class Law:
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


def gaussian_law(variance: int) -> Law:
    """The mass e^{−x²/2v} on every whole number."""
    v, reach = float(variance), math.ceil(_DEVIATIONS * math.sqrt(variance)) + 1
    return Law(f"the discrete Gaussian of parameter {_plain(variance)}", lambda x: -x * x / (2 * v), -reach, reach)


def laplace_law(rate: Fraction) -> Law:
    """The mass e^{−r|x|} on every whole number."""
    r, reach = float(rate), math.ceil(_SCALES / float(rate)) + 1
    return Law(f"the discrete Laplace law of rate {r:.3g}", lambda x: -r * np.abs(x), -reach, reach)


def finite_law(shares: Sequence[float | Fraction], words: str = "stated shares") -> Law:
    """The numbers 0, 1, … with these probabilities.

    >>> finite_law([Fraction(1, 4), Fraction(3, 4)]).shares.round(12).tolist()
    [0.25, 0.75]
    """
    table = np.array([float(share) for share in shares])
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return Law(words, lambda x: logs[x.astype(np.int64)], 0, len(table) - 1)


Seen = list[tuple[float, str]]
"""(the chance of what was seen, what it was) of every test."""


def fits(sample: npt.ArrayLike, law: Law, doubt: float = DOUBT, name: str = "the law of the noise") -> Check:
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
    sample: npt.ArrayLike, law: Law, doubt: float = DOUBT, name: str = "draws do not hang together"
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
    found: Seen = []
    for side, seen, p in (("low", counts, shares), ("high", counts[::-1], shares[::-1])):
        mass, number = np.cumsum(p), np.cumsum(seen)
        wanted = 0.5 ** np.arange(1, max(2, int(math.log2(n / _FEWEST)) + 1))
        places = np.unique(np.searchsorted(mass, wanted))
        places = places[places < len(mass) - 1]
        chances = of_each(number[places], n, mass[places]) if len(places) else np.ones(0)
        for place, chance in zip(places.tolist(), chances.tolist(), strict=True):
            found.append((chance, f"{number[place]:,} draws in the {side} tail where {n * mass[place]:,.1f} belong"))
    return found


def _scored(law: Law, most: int) -> tuple[FloatArray, IntArray]:
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
