"""Randomized response: categories 0 … k−1, each report a choice among finitely many that are nearly as likely under every value.

    RandomizedResponse   the own value with probability p = e^ε₀/(e^ε₀+k−1), else another one, uniformly
    UnaryEncoding        k bits, all 0 but the own one, each flipped by itself; its error does not grow with k

Probabilities are shares of 2⁶⁴, rounded to the private side, so what is drawn is ε₀-DP to the last digit; `better_response` takes
whichever of the two has the smaller error. Profiles, rounding, estimates: docs/proofs/mechanisms.md#randomized-responses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms.base import Pure, generator, local_loss, plain, positive, whole
from netdp.mechanisms.coins import ALL, log_ratio_up, one_of, response_share, with_share
from netdp.mechanisms.discrete_gaussian import Words
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy.profile import ProfileCurve


class Categories(Pure):
    """A randomizer of values 0 … k−1, whose reports show a value with probability p if it is the own one, and q if not."""

    domain: int

    @property
    def keep(self) -> float:
        """p."""
        raise NotImplementedError

    @property
    def other(self) -> float:
        """q."""
        raise NotImplementedError

    def check(self, values: npt.ArrayLike) -> IntArray:
        """The values as whole numbers 0 … k−1."""
        array = plain(values)
        if array.ndim != 1 or not array.size:
            raise InvalidValue(f"values must be a list with one value per user, got an array of shape {array.shape}")
        if array.dtype.kind not in "iub":
            raise InvalidValue(
                f"values must be whole numbers 0 … {self.domain - 1}, got an array of {array.dtype}; number the "
                "categories first, for example with np.unique(values, return_inverse=True)"
            )
        bad = (array < 0) | (array >= self.domain)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InvalidValue(f"row {row} of values is {array[row]}; the domain is 0 … {self.domain - 1}")
        return array.astype(np.int64, copy=False)

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The frequencies of the k values."""
        data = self.check(values)
        return np.bincount(data, minlength=self.domain) / len(data)

    def variance(self, frequencies: npt.ArrayLike, reports: int) -> FloatArray:
        """The variance of each estimated frequency, given the true ones."""
        f, n = plain(frequencies, "frequencies"), whole("reports", reports, least=1)
        if f.dtype.kind not in "fiu" or not ((f >= 0) & (f <= 1)).all():
            raise InvalidValue(f"frequencies must be numbers in [0, 1], one for each value, got {frequencies!r}")
        p, q = self.keep, self.other
        return np.asarray((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (n * (p - q) ** 2))

    def squared_error(self, reports: int) -> float:
        """The sum of the variances over the k values."""
        p, q, n = self.keep, self.other, whole("reports", reports, least=1)
        return (p * (1 - p) + (self.domain - 1) * q * (1 - q)) / (n * (p - q) ** 2)


@dataclass(frozen=True)
class RandomizedResponse(Categories):
    """Randomized response over `domain` values 0 … k−1 with local loss ε₀.

    >>> mechanism = RandomizedResponse(3, epsilon0=1.0)
    >>> reports = mechanism.randomize([0] * 60_000 + [2] * 30_000, np.random.default_rng(0))
    >>> (mechanism.estimate(reports).round(2) + 0.0).tolist()
    [0.67, 0.0, 0.33]
    >>> round(RandomizedResponse.from_gamma(5, gamma=0.5).epsilon0, 4)      # as in RingHistogram and WalkHistogram
    1.7918
    """

    domain: int
    epsilon0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", whole("domain", self.domain, least=2))
        object.__setattr__(self, "epsilon0", local_loss(self.epsilon0))
        least = 64 * self.domain * UNIT
        if self.epsilon0 < least:
            raise InvalidValue(
                f"epsilon0={self.epsilon0!r} is too small for a choice among {self.domain} values by numbers of 53 bits; "
                f"give at least {least:.1e}, or fewer values"
            )

    @classmethod
    def from_gamma(cls, domain: int, gamma: float) -> Self:
        """Keep the value with probability 1−γ, else draw uniformly from all k: e^ε₀ = 1 + k(1−γ)/γ."""
        share = positive("gamma", gamma)
        if share >= 1:
            raise InvalidValue(f"gamma must lie in (0, 1), got {gamma!r}; with 1 reports say nothing about the values")
        return cls(domain, math.log1p(whole("domain", domain, least=2) * (1 - share) / share))

    @property
    def gamma(self) -> float:
        """The same randomizer in other words: with probability γ, draw uniformly from all k values."""
        return self.flip * self.domain / (self.domain - 1)

    @property
    def flip(self) -> float:
        """The probability that a report is not the own value: (k−1)/(e^ε₀+k−1), rounded up."""
        others = (self.domain - 1) * math.exp(-self.epsilon0)
        return others / (1 + others) * (1 + 8 * UNIT)

    @cached_property
    def flips(self) -> int:
        """Of how many of the 2⁶⁴ words `report` makes another value: ⌈2⁶⁴(k−1)/(e^ε₀+k−1)⌉, or one more."""
        return response_share(self.epsilon0, self.domain - 1)

    @property
    def drawn_gamma(self) -> Fraction:
        """γ of what `report` draws, exactly: a uniform draw from all k with this probability, else the own value."""
        return Fraction(self.flips * self.domain, ALL * (self.domain - 1))

    @property
    def drawn_loss(self) -> float:
        """The loss of what `report` draws, from its very probabilities, rounded up; `epsilon0` or less by a little.

        >>> 0 <= 1.0 - RandomizedResponse(10, 1.0).drawn_loss < 1e-15
        True
        """
        return min(log_ratio_up((ALL - self.flips) * (self.domain - 1), self.flips), self.epsilon0)

    @property
    def keep(self) -> float:
        """p, the probability of the own value."""
        return 1 - self.flip

    @property
    def other(self) -> float:
        """q, the probability of each single other value."""
        return self.flip / (self.domain - 1)

    @property
    def curve(self) -> ProfileCurve:
        """δ(ε) = (e^ε₀ − e^ε)₊/(e^ε₀+k−1), exactly."""
        others = (self.domain - 1) * math.exp(-self.epsilon0)
        distance = -math.expm1(-self.epsilon0) / (1 + others) * (1 + 8 * UNIT)
        return ProfileCurve([0.0, self.epsilon0], [min(distance, 1.0), 0.0])

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """One report per user."""
        data, rng = self.check(values), generator(rng)
        flipped = np.flatnonzero(rng.random(len(data)) < self.flip)
        reports = data.copy()
        other = rng.integers(0, self.domain - 1, size=len(flipped))
        reports[flipped] = other + (other >= data[flipped])
        return reports

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return 1

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, drawn in whole numbers, exactly: what leaves a party.

        >>> from netdp.mechanisms.discrete_gaussian import words_from
        >>> reports = RandomizedResponse(3, 1.0).report([2] * 60_000, words_from(np.random.default_rng(0)))
        >>> (np.bincount(reports) / 60_000).round(2).tolist()             # 1/(e+2), 1/(e+2), e/(e+2)
        [0.21, 0.21, 0.58]
        """
        data = self.check(values)
        flipped = np.flatnonzero(with_share(self.flips, len(data), words))
        reports = data.copy()
        other = one_of(self.domain - 1, len(flipped), words)
        reports[flipped] = other + (other >= data[flipped])
        return reports

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these whole numbers can be reports: 0 … k−1."""
        return np.asarray((reports >= 0) & (reports < self.domain))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The frequencies behind the reports, unbiased: single ones may fall below 0 or above 1."""
        shares = self.answer(reports)
        return np.asarray((shares - self.other) / (self.keep - self.other))


ENCODINGS = ("symmetric", "optimised")

_LEAST = 1e-12  # a smaller ε₀ is not told apart from none by thresholds of 53 bits


@dataclass(frozen=True)
class UnaryEncoding(Categories):
    """k noisy bits for one of `domain` values 0 … k−1, with local loss ε₀.

    encoding : "optimised" (least error, the default) or "symmetric" (every bit a randomized response).

    >>> mechanism = UnaryEncoding(4, epsilon0=2.0)
    >>> reports = mechanism.randomize([0] * 60_000 + [2] * 30_000, np.random.default_rng(0))
    >>> reports.shape, (mechanism.estimate(reports).round(1) + 0.0).tolist()
    ((90000, 4), [0.7, 0.0, 0.3, 0.0])
    >>> print(f"{mechanism.curve.delta(1.0):.4f}")
    0.2784
    """

    domain: int
    epsilon0: float
    encoding: str = "optimised"

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", whole("domain", self.domain, least=2))
        object.__setattr__(self, "epsilon0", local_loss(self.epsilon0))
        if self.epsilon0 < _LEAST:
            raise InvalidValue(
                f"epsilon0={self.epsilon0!r} is too small for numbers of 53 bits; give at least {_LEAST:g}"
            )
        if self.encoding not in ENCODINGS:
            raise InvalidValue(f"unknown encoding {self.encoding!r}; choose one of {', '.join(ENCODINGS)}")

    @cached_property
    def flips(self) -> tuple[int, int]:
        """Of how many of the 2⁶⁴ words `report` loses the own bit, and sets another one."""
        if self.encoding == "optimised":
            return ALL // 2, response_share(self.epsilon0, 1)
        both = response_share(self.epsilon0 / 2, 1)
        return both, both

    @property
    def drawn_loss(self) -> float:
        """The loss of what `report` draws, from its very probabilities, rounded up; `epsilon0` or less by a little.

        >>> 0 <= 1.0 - UnaryEncoding(10, 1.0).drawn_loss < 1e-15
        True
        """
        lose, gain = self.flips
        return min(log_ratio_up((ALL - lose) * (ALL - gain), lose * gain), self.epsilon0)

    @property
    def lose(self) -> float:
        """1 − p, the probability that the own bit is reported as 0; rounded up."""
        if self.encoding == "optimised":
            return 0.5
        return 1 / (math.exp(self.epsilon0 / 2) + 1) * (1 + 16 * UNIT)

    @property
    def other(self) -> float:
        """q, the probability that another bit is reported as 1; rounded up."""
        half = self.epsilon0 if self.encoding == "optimised" else self.epsilon0 / 2
        return 1 / (math.exp(half) + 1) * (1 + 16 * UNIT)

    @property
    def keep(self) -> float:
        """p, the probability that the own bit is reported as 1."""
        return 1 - self.lose

    @property
    def curve(self) -> ProfileCurve:
        """δ(ε) = (p(1−q) − e^ε q(1−p))₊, exactly."""
        half = self.epsilon0 / 2
        distance = math.tanh(half / 2) if self.encoding == "symmetric" else math.tanh(half) / 2
        return ProfileCurve([0.0, self.epsilon0], [min(distance * (1 + 8 * UNIT), 1.0), 0.0])

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        """One report per user: a row of k bits."""
        data, rng = self.check(values), generator(rng)
        bits = (rng.random((len(data), self.domain)) < self.other).astype(np.uint8)
        bits[np.arange(len(data)), data] = rng.random(len(data)) >= self.lose
        return bits

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return self.domain

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, a row of k bits, drawn in whole numbers, exactly: what leaves a party.

        >>> from netdp.mechanisms.discrete_gaussian import words_from
        >>> UnaryEncoding(3, 50.0).report([1], words_from(np.random.default_rng(1))).tolist()      # the own bit: ½
        [[0, 1, 0]]
        """
        data = self.check(values)
        lose, gain = self.flips
        bits = with_share(gain, len(data) * self.domain, words).reshape(len(data), self.domain).astype(np.int64)
        bits[np.arange(len(data)), data] = ~with_share(lose, len(data), words)
        return bits

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these rows of whole numbers can be reports: k bits."""
        return np.asarray(((reports == 0) | (reports == 1)).all(axis=-1) & (reports.shape[-1] == self.width))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The frequencies behind the reports, unbiased: single ones may fall below 0 or above 1."""
        bits = plain(reports, "reports")
        if bits.ndim != 2 or bits.shape[1] != self.domain or not len(bits):
            raise InvalidValue(f"reports must be rows of {self.domain} bits, got an array of shape {bits.shape}")
        if bits.dtype.kind not in "iub" or bits.min() < 0 or bits.max() > 1:
            raise InvalidValue(f"reports must be bits, 0 or 1, got an array of {bits.dtype} with other numbers in it")
        return np.asarray((bits.mean(axis=0) - self.other) / (self.keep - self.other))


def better_response(domain: int, epsilon0: float) -> RandomizedResponse | UnaryEncoding:
    """k-ary randomized response or (optimised) unary encoding, whichever has the smaller error at this ε₀.

    >>> [type(better_response(k, 1.0)).__name__ for k in (4, 40)]
    ['RandomizedResponse', 'UnaryEncoding']
    """
    values, bits = RandomizedResponse(domain, epsilon0), UnaryEncoding(domain, epsilon0)
    return values if values.squared_error(1) <= bits.squared_error(1) else bits
