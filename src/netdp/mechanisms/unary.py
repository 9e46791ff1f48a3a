"""Unary encoding: a value from 0 … k−1 becomes k bits, all 0 but the own one, and each bit is flipped by itself.

**Privacy.** A bit that is 1 is reported as 1 with probability p, one that is 0 with probability q < p. For two values x ≠ x′
only the bits x and x′ have different laws: (1, 0) has probability p(1−q) under x and q(1−p) under x′, (0, 1) the other way round,
(0, 0) and (1, 1) the same under both. So e^ε₀ = p(1−q)/(q(1−p)), and δ(ε) = (p(1−q) − e^ε q(1−p))₊, exactly and in both
directions: linear in e^ε up to ε₀, with δ(0) = p − q. Two choices:

    symmetric   p = e^{ε₀/2}/(e^{ε₀/2} + 1), q = 1 − p      every bit is a randomized response with ε₀/2 (RAPPOR)
    optimised   p = 1/2, q = 1/(e^ε₀ + 1)                   the least variance of rare values (OUE)

**The draw** is a choice among finitely many reports, and errs on the safe side: 1 − p and q are too large by factors of at least
1, never too small, and e^ε₀ = (p/(1−p))·((1−q)/q) only falls. *In whole numbers* (`report`): both are shares of 2⁶⁴, rounded up
(1 − p = ½ exactly for the optimised choice); `drawn_loss` is what these very shares lose. *In floating point* (`randomize`, for
simulation): "random() < t" happens with probability ⌈2⁵³t⌉/2⁵³ ≥ t, and t is rounded up by 16 relative units; what this leaves
open is the generator: NumPy's are predictable. See docs/guarantees.md#finite-precision.

**Estimate.** The share of reports whose bit j is 1 has the mean f_j p + (1−f_j) q, so (share − q)/(p − q) is unbiased for the
frequency f_j, with variance [f_j p(1−p) + (1−f_j) q(1−q)]/(n(p−q)²): it does not grow with k, whereas that of k-ary randomized
response grows about in proportion to k. Summed over the k values it does not depend on the data, bits of one report being
independent. Which is better: k-ary response for k < 3e^ε₀ + 2, about, unary encoding beyond (`better_response`).

Reference: Wang, Blocki, Li, Jha, *Locally Differentially Private Protocols for Frequency Estimation* (USENIX Security 2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy import ProfileCurve

from .base import generator, local_loss, plain, whole
from .coins import ALL, log_ratio_up, response_share, with_share
from .discrete_gaussian import Words
from .randomized_response import RandomizedResponse

ENCODINGS = ("symmetric", "optimised")
_LEAST = 1e-12  # a smaller ε₀ is not told apart from none by thresholds of 53 bits


@dataclass(frozen=True)
class UnaryEncoding:
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

    @property
    def delta0(self) -> float:
        """0: the randomizer is pure."""
        return 0.0

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

    def check(self, values: npt.ArrayLike) -> IntArray:
        """The values as whole numbers 0 … k−1."""
        return self._labels.check(values)

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The frequencies of the k values."""
        return self._labels.answer(values)

    @property
    def _labels(self) -> RandomizedResponse:
        """Whose labels are the same: checked alike."""
        return RandomizedResponse(self.domain, 1.0)

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


def better_response(domain: int, epsilon0: float) -> RandomizedResponse | UnaryEncoding:
    """k-ary randomized response or (optimised) unary encoding, whichever has the smaller error at this ε₀.

    >>> [type(better_response(k, 1.0)).__name__ for k in (4, 40)]
    ['RandomizedResponse', 'UnaryEncoding']
    """
    values, bits = RandomizedResponse(domain, epsilon0), UnaryEncoding(domain, epsilon0)
    return values if values.squared_error(1) <= bits.squared_error(1) else bits
