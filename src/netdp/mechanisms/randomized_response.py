"""k-ary randomized response: a value from 0 … k−1 is reported truthfully with probability p, else another one is drawn uniformly.

**Privacy.** p = e^ε₀/(e^ε₀+k−1) for the own value, q = 1/(e^ε₀+k−1) for each other one. For two values x ≠ x′ and an event S,
P_x(S) − e^ε P_x′(S) is a sum over the reports in S of p − e^ε q (at x), q − e^ε p (at x′) and q(1 − e^ε) (elsewhere): for
ε ≥ 0 only x can add to it. So δ(ε) = (e^ε₀ − e^ε)₊/(e^ε₀+k−1), exactly and in both directions. It is linear in e^ε up to
ε₀, so two points state it without loss.

**The draw** is a choice among k reports, and no digits are left over that could tell more.

*In whole numbers* (`report`): another value is reported for exactly `flips` = ⌈2⁶⁴f⌉ of the 2⁶⁴ words, f = (k−1)q, and which one
is drawn without bias. So it is reported with probability f + d, 0 ≤ d < 2·2⁻⁶⁴. Two laws put (1−f−d) = p − d and
(f+d)/(k−1) = q + d/(k−1) on the two values in question, and the same on every other report. p/q = e^ε₀, so the first ratio,
(p−d)/(q+d/(k−1)), is at most e^ε₀: `drawn_loss` is its logarithm, from these very whole numbers. The other way round,
q + d/(k−1) ≤ e^ε₀(p − d) asks for d(e^ε₀ + 1/(k−1)) ≤ (e^2ε₀ − 1)q, and d ≤ (e^ε₀−1)/(e^ε₀+k−1) is enough; it is so for
ε₀ ≥ 64ku, u = 2⁻⁵³, and a smaller ε₀ is refused. ∎ See docs/guarantees.md#finite-precision.

*In floating point* (`randomize`, for simulation): NumPy's uniform numbers are multiples of 2⁻⁵³, so "random() < t" happens
with probability ⌈2⁵³t⌉/2⁵³ ≥ t, and `flip` is rounded up: the same with 0 ≤ d ≤ 17u. So this, too, is ε₀-DP as drawn, but
for its generator: NumPy's are predictable.

**Estimate.** The share of reports equal to j has the mean f_j·p + (1 − f_j)·q, so (share − q)/(p − q) is unbiased for the
frequency f_j. Its variance is [f_j p(1−p) + (1−f_j) q(1−q)]/(n(p−q)²) given the values; summed over j, it no longer
depends on them.

Reference: Kairouz, Bonawitz, Ramage, *Discrete Distribution Estimation under Local Privacy* (ICML 2016).
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
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy import ProfileCurve

from .base import generator, local_loss, plain, positive, whole
from .coins import ALL, log_ratio_up, one_of, response_share, with_share
from .discrete_gaussian import Words


@dataclass(frozen=True)
class RandomizedResponse:
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
    def delta0(self) -> float:
        """0: the randomizer is pure."""
        return 0.0

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
