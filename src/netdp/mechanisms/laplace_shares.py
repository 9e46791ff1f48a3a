"""One party's share of discrete Laplace noise, drawn exactly: so many shares add up to one discrete Laplace noise.

The discrete Laplace law with rate r is the law of G − G′ for two independent geometric numbers, P(G = i) ∝ e^{−ri}, and a
geometric number is the sum of h independent negative binomial numbers NB(1/h, e^{−r}). So the share of each of h parties is

    η = A − B,      A, B independent, NB(1/h, e^{−r})

Such a share is zero for most parties and large for few. It is drawn as a Poisson process of jumps: in NB(s, p) jumps of the size
i = 1, 2, … come with intensity s·p^i/i. Proposals are spread over octaves [2^j, 2^{j+1}) up to 1/r, and over all larger numbers
with weights that halve from block to block, Poisson(s) proposals for each of these; each is kept with just the probability that
makes its intensity right. No jump is too large to be proposed, and all coins are exact, so a share has its law to the last digit:
h of them are *exactly* discrete Laplace, and pure differential privacy (δ = 0) holds as stated. Proof:
docs/proofs/masked.md#laplace-shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms.coins import one_of, poisson, scaled_flips
from netdp.mechanisms.discrete_gaussian import Words
from netdp.mechanisms.laplace import exact_rate
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import count

LEAST_RATE = Fraction(1, 2**40)
"""No smaller rate is drawn: every jump fits in 63 bits."""

LARGEST_RATE = 50

_AT_ONCE = 1 << 20  # proposals

_LONGEST = 1024  # blocks beyond 1/r: more have a chance below 2^−1024


@dataclass(frozen=True)
class LaplaceShare:
    """The law of A − B for A, B ~ NB(1/parts, e^{−rate}): `parts` independent draws add up to `DiscreteLaplace(rate)`.

    >>> from netdp.mechanisms.discrete_gaussian import words_from
    >>> law = LaplaceShare(Fraction(1, 30), parts=5)
    >>> shares = law.sample((5, 40_000), words_from(np.random.default_rng(0)))
    >>> round(float(shares.var())), round(law.variance), round(float(shares.sum(axis=0).var()), -1)
    (356, 360, 1790.0)
    """

    rate: Fraction
    parts: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        object.__setattr__(self, "parts", count("parts", self.parts))
        if not LEAST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidValue(
                f"rate must lie between 2⁻⁴⁰ and {LARGEST_RATE}, got {float(self.rate):.3g}; use "
                + ("a coarser grid" if self.rate < LEAST_RATE else "a finer grid, or more noise")
            )

    @property
    def variance(self) -> float:
        """Of one share: 1/(2h·sinh²(r/2))."""
        return 0.5 / math.sinh(float(self.rate) / 2) ** 2 / self.parts

    @property
    def octaves(self) -> int:
        """J, the least with r·2^J ≥ 1: proposals below 2^J are made octave by octave."""
        return max(math.ceil(1 / self.rate) - 1, 0).bit_length()

    def sample(self, shape: tuple[int, ...], words: Words) -> IntArray:
        """Independent shares, from so many words as it takes.

        All shares together have Poisson(2(J + 1)/h) proposals each, so their number in all is Poisson, too, and each proposal
        belongs to any share, either sign and any of J + 1 ranges with equal probability.
        """
        size = math.prod(shape)
        out = np.zeros(size, dtype=np.int64)
        if size:
            left = poisson(Fraction(2 * size * (self.octaves + 1), self.parts), words)
            while left:
                many = min(left, _AT_ONCE)
                places, jumps = self._jumps(one_of(size, many, words), words)
                np.add.at(out, places, jumps)
                left -= many
        return out.reshape(shape)

    def _jumps(self, places: IntArray, words: Words) -> tuple[IntArray, IntArray]:
        """The jumps that are kept of one proposal for each of these places, and their places."""
        top = self.octaves
        chosen = one_of(2 * (top + 1), len(places), words)
        octave, minus = chosen >> 1, chosen & 1 == 1
        low = (words(len(places)) & ((np.uint64(1) << octave.astype(np.uint64)) - np.uint64(1))).astype(np.int64)
        block = np.zeros(len(places), dtype=np.int64)
        beyond = np.flatnonzero(octave == top)
        block[beyond] = heads_first(len(beyond), words)
        size = ((block + 1) << octave) + low
        power = octave.copy()
        power[beyond] += block[beyond] + 1
        a, b = self.rate.numerator, self.rate.denominator

        def exactly(i: int) -> tuple[int, int, int, int]:
            return 1 << int(power[i]), int(size[i]), int(size[i]) * a, b

        kept = scaled_flips(np.ldexp(1.0, power.astype(np.int32)) / size, size * np.float64(self.rate), exactly, words)
        return places[kept], np.where(minus, -size, size)[kept]


def heads_first(size: int, words: Words) -> IntArray:
    """So many independent counts of how often a fair coin shows heads before it shows tails: m with probability 2^−(m+1).

    >>> heads_first(3, lambda size: np.array([1, 4, 2], dtype=np.uint64)[:size]).tolist()
    [0, 2, 1]
    """
    found = np.zeros(size, dtype=np.int64)
    going = np.arange(size)
    for _ in range(_LONGEST // 64):
        drawn = words(len(going))
        lowest = drawn & (~drawn + np.uint64(1))
        known = drawn != 0
        found[going[known]] += np.frexp(lowest[known].astype(np.float64))[1] - 1  # exact: powers of two
        going = going[~known]
        if not going.size:
            return found
        found[going] += 64
    raise NetdpError(f"{_LONGEST} heads in a row: the source of random words is broken")
