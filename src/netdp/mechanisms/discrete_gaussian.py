"""Gaussian noise on whole numbers: an exact sampler, its exact privacy, and how close sums of it come to one of it.

The discrete Gaussian with parameter v puts mass e^{−x²/2v}/Z on every whole number x (Canonne, Kamath, Steinke 2020). What is drawn
has this law exactly if the 64-bit words are uniform and independent: coins compare them with binary digits that are computed in
integers. `shift_delta` is the exact profile of one number, `rounded_delta` a bound for vectors and very fine grids, by comparison
with whole numbers drawn around Gaussians (`drawn_around`), and `sum_distance` says how far a sum of shares is from one discrete
Gaussian. Proofs: docs/proofs/mechanisms.md#discrete-gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, frozen
from netdp.numerics.checks import count
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.renyi import RenyiCurve

Words = Callable[[int], npt.NDArray[np.uint64]]
"""A source of independent uniform 64-bit words: how many are wanted → so many."""

MOST_VARIANCE = 2**40
"""No larger parameter is drawn: every product of the sampler fits in 63 bits."""
SUMMED_UP_TO = 2**32
"""Up to this parameter the profile of one number is summed term by term: at most a few million of them."""
MANY = 4096
"""From so many draws on compiled code is loaded: it is twice as fast, but to load it takes as long as a hundred thousand draws."""

_REACH = 39.0  # standard deviations: what lies beyond has mass below e^−760
_BLOCK = 1024
_SUM_ERROR = 1e-12  # relative, of one value of F: 765 units for the terms, 1024 + 5000 for adding, 20 for Z; times 1.3
_LIMB = 27  # bits: squares and products of two limbs fit in 63
_NEARLY_ONE = np.uint64(2**64 - 2**46)  # digits of a probability: tails once in 260,000 flips
_LONGEST = 2048  # (t + 1)·2048·t < 2^54 for every t: two limbs


def words_from(rng: np.random.Generator) -> Words:
    """Words of a NumPy generator: for simulation.

    >>> words_from(np.random.default_rng(0))(2).dtype
    dtype('uint64')
    """
    return lambda size: rng.integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)


class RejectionSampler:
    """A law on the whole numbers that is drawn by rejection: proposals are made, and kept or not."""

    def sample(self, shape: tuple[int, ...], words: Words) -> IntArray:
        """Independent draws, from so many words as it takes."""
        wanted = math.prod(shape)
        out = np.empty(wanted, dtype=np.int64)
        done = 0
        while done < wanted:
            kept = self._kept(wanted - done + (wanted - done) // 2 + 16, words)[: wanted - done]
            out[done : done + len(kept)] = kept
            done += len(kept)
        return out.reshape(shape)

    def _kept(self, tries: int, words: Words) -> IntArray:
        """What is left of so many proposals."""
        raise NotImplementedError


def least_scale(variance: int) -> int:
    """t, the least power of two above √v: the scale of the Laplace law that a discrete Gaussian is kept from."""
    return 1 << math.isqrt(variance).bit_length()


@dataclass(frozen=True)
class DiscreteGaussian(RejectionSampler):
    """The law ∝ e^{−x²/2v} on the whole numbers, v = `variance` a whole number ≥ 1.

    >>> noise = DiscreteGaussian(9).sample((2, 5000), words_from(np.random.default_rng(0)))
    >>> noise.shape, noise.dtype, round(float(noise.var()), 1)
    ((2, 5000), dtype('int64'), 9.1)
    """

    variance: int
    _coins: tuple[_Coins, _Coins, Coin] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", count("variance", self.variance))
        if self.variance > MOST_VARIANCE:
            raise InvalidValue(
                f"variance must be at most 2⁴⁰ (σ of a million steps), got {self.variance}; use a coarser grid"
            )
        scale = least_scale(self.variance)
        coins = (_Coins(scale), _Coins(2 * self.variance * scale**2), Coin(1, 1))
        object.__setattr__(self, "_coins", coins)

    def _kept(self, tries: int, words: Words) -> IntArray:
        small, square, once = self._coins
        scale = least_scale(self.variance)
        drawn = words(tries)
        start = (drawn & np.uint64(scale - 1)).astype(np.int64)
        minus = (drawn >> np.uint64(63)).astype(bool)
        alive = small.all_heads(start, np.arange(tries), 0, words)
        size = start
        size[alive] += scale * once.heads_in_a_row(len(alive), words, _LONGEST)
        alive = alive[~(minus[alive] & (size[alive] == 0))]  # zero has one sign only
        for part, place in _square(np.abs(size * scale - self.variance)):
            alive = square.all_heads(part, alive, place, words)
        return np.where(minus[alive], -size[alive], size[alive])


def _square(numbers: IntArray) -> tuple[tuple[IntArray, int], ...]:
    """The squares of numbers below 2⁵⁴ as a sum of parts·2^place, each part below 2⁶³."""
    high, low = numbers >> _LIMB, numbers & ((1 << _LIMB) - 1)
    return (high * high, 2 * _LIMB), (high * low, _LIMB + 1), (low * low, 0)


class Coin:
    """Heads with probability e^{−p/q}, exactly, p/q > 0."""

    def __init__(self, p: int, q: int) -> None:
        self._p, self._q = p, q
        self.first = np.uint64(_digits(p, q, 0))
        """The first 64 binary digits of the probability."""

    def flip(self, times: int, words: Words) -> npt.NDArray[np.bool_]:
        return self.heads(words(times), words)

    def heads_in_a_row(self, size: int, words: Words, longest: int) -> IntArray:
        """So many independent counts of how often it shows heads before it shows tails; more than `longest` is refused."""
        count = np.zeros(size, dtype=np.int64)
        going = np.arange(size)
        for _ in range(longest):
            going = going[self.flip(len(going), words)]
            if not going.size:
                return count
            count[going] += 1
        # not in the lifetime of anything, if the words are random
        raise NetdpError(f"{longest} heads in a row: the source of random words is broken")

    def heads(self, drawn: npt.NDArray[np.uint64], words: Words) -> npt.NDArray[np.bool_]:
        """What these words show; more are asked for where 64 digits do not decide."""
        heads = drawn < self.first
        for i in np.flatnonzero(drawn == self.first).tolist():
            heads[i] = self._decide(words)
        return heads

    def _decide(self, words: Words) -> bool:
        """The first 64 digits agree: compare the next ones. e^{−p/q} is irrational, so this ends."""
        place = 1
        while True:
            word, digits = int(words(1)[0]), _digits(self._p, self._q, place)
            if word != digits:
                return word < digits
            place += 1


class _Coins:
    """Coins e^{−2^i/q} for i = 0, 1, …, made when they are first needed."""

    def __init__(self, q: int) -> None:
        self._q = q
        self._made: dict[int, Coin] = {}

    def all_heads(self, numbers: IntArray, alive: IntArray, place: int, words: Words) -> IntArray:
        """Those of `alive` for which a coin e^{−number·2^place/q} shows heads: one flip for every bit that is set."""
        if not alive.size:
            return alive
        digits = int(numbers[alive].max()).bit_length()
        if len(alive) >= MANY:
            return self._compiled(numbers, alive, place, digits, words)
        for bit in reversed(range(digits)):
            asked = (numbers[alive] >> bit) & 1 == 1
            count_asked = int(np.count_nonzero(asked))
            if not count_asked:
                continue
            coin = self._made.get(bit + place) or self._make(bit + place)
            stays = np.ones(len(alive), dtype=bool)
            stays[asked] = coin.flip(count_asked, words)
            alive = alive[stays]
        return alive

    def _compiled(self, numbers: IntArray, alive: IntArray, place: int, digits: int, words: Words) -> IntArray:
        """The same draws from the same words, for many: `netdp.mechanisms.coin_kernels`."""
        from .coin_kernels import asked, survivors

        here, there = (numbers[alive], alive.copy()), (np.empty_like(alive), np.empty_like(alive))
        left, flips = len(alive), -1
        for bit in reversed(range(digits)):
            if flips < 0:
                flips = asked(here[0][:left], bit)
            if not flips:
                flips = -1
                continue
            coin, drawn = self._made.get(bit + place) or self._make(bit + place), words(flips)
            if coin.first >= _NEARLY_ONE and drawn.max() < coin.first:  # all heads, as nearly always for low digits
                flips = -1
                continue
            kept, following, ties = survivors(here[0][:left], here[1], bit, drawn, coin.first, *there)
            if ties:  # once in 2⁶⁴ words
                stays = np.ones(left, dtype=bool)
                stays[(here[0][:left] >> bit) & 1 == 1] = coin.heads(drawn, words)
                kept, following = int(np.count_nonzero(stays)), -1
                for old, new in zip(here, there, strict=True):
                    new[:kept] = old[:left][stays]
            here, there, left, flips = there, here, kept, following
        return here[1][:left]

    def _make(self, exponent: int) -> Coin:
        coin = self._made[exponent] = Coin(1 << exponent, self._q)
        return coin


@lru_cache(maxsize=4096)
def _digits(p: int, q: int, place: int) -> int:
    """Binary digits 64·place + 1 to 64·place + 64 of e^{−p/q}, as a whole number."""
    return exp_floor(p, q, 64 * (place + 1)) & (2**64 - 1)


def exp_floor(p: int, q: int, bits: int) -> int:
    """⌊2^bits·e^{−p/q}⌋ for p/q > 0, proved by an enclosure in whole numbers.

    >>> exp_floor(1, 1, 20), int(2**20 * math.exp(-1))
    (385749, 385749)
    """
    if p >= bits * q:  # e^{−x} < 2^{−x}
        return 0
    guard = 32
    while True:
        halvings = max(0, p.bit_length() - q.bit_length() + 1) + 4
        precision = bits + guard + 2 * halvings
        one, down = 1 << precision, q << halvings
        # e^{−y} for y = p/(q·2^halvings) ≤ 1/8; each partial product is rounded down by less than 1
        total, term, order = one, one, 0
        while term:
            order += 1
            term = term * p // (down * order)
            total += -term if order % 2 else term
        low, high = total - 2 * order, total + 2 * order
        for _ in range(halvings):
            low, high = low * low >> precision, (high * high >> precision) + 1
        if low >> (precision - bits) == high >> (precision - bits):
            return low >> (precision - bits)
        guard *= 2


def shift_delta(variance: int, shift: int, epsilon: npt.ArrayLike) -> FloatArray:
    """δ(ε) of one number with noise of parameter `variance`, shifted by at most `shift` steps; exact, rounded up by 1e-12.

    >>> float(shift_delta(1, 1, [0.0])[0].round(4))            # of N(0, 1) and N(1, 1): 0.3829, which is less
    0.3989
    """
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
    if variance > SUMMED_UP_TO:
        raise InvalidValue(f"the sum over a law of parameter {variance} is too long; rounded_delta bounds it")
    if shift == 0:
        return np.zeros_like(eps)
    lowest = -math.ceil(_REACH * math.sqrt(variance)) - 1
    highest = min(shift // 2 + 2, -lowest)
    below = _distribution(variance, lowest, highest)

    def distribution(m: FloatArray) -> FloatArray:
        places = np.clip(m - lowest, -1, len(below) - 1).astype(np.int64)
        value = np.where(places < 0, 0.0, below[np.maximum(places, 0)])
        return np.where(m > highest, 1.0, value)

    best = np.ceil(shift / 2 - eps * (variance / shift)) - 1
    growth = np.exp(np.minimum(eps, 700.0))  # δ never grows with ε
    delta = np.zeros_like(eps)
    for m in (best - 1, best, best + 1):
        seen = distribution(m) * (1 + _SUM_ERROR) + 1e-300
        delta = np.maximum(delta, seen - growth * distribution(m - shift) * (1 - _SUM_ERROR))
    return np.asarray(np.minimum(delta, 1.0))


@lru_cache(maxsize=4)
def _distribution(variance: int, lowest: int, highest: int) -> FloatArray:
    """P(X ≤ m) for m from `lowest` to `highest`. An ε that is read off a formula asks for δ some times, one after the other."""
    mass = np.exp(-(np.arange(lowest, highest + 1, dtype=np.float64) ** 2) / (2.0 * variance)) / normaliser(variance)
    return frozen(_running_sum(mass))


def rounded_delta(variance: int, distance: float, dimension: int, epsilon: npt.ArrayLike) -> FloatArray:
    """A bound on δ(ε) for vectors shifted by at most `distance` in L2 norm: by Gaussian noise or by zCDP, the better.

    >>> bool(rounded_delta(10**8, 1000.0, 1, [1.0])[0] >= shift_delta(10**8, 1000, [1.0])[0])
    True
    """
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
    rho = distance**2 / variance / 2 * (1 + 24 * UNIT)
    best = np.asarray(RenyiCurve.linear(rho).delta(eps))
    for care in CARES:
        around, apart = drawn_around(variance, dimension, care)
        mu = distance / math.sqrt(variance - around) * (1 + 8 * UNIT)
        best = np.minimum(best, moved(partial(gaussian_delta, mu), apart, eps))
    return best


def moved(ideal: Callable[[FloatArray], FloatArray], apart: float, epsilon: FloatArray) -> FloatArray:
    """e^t·δ(ε − 2t), a bound for laws within e^{±t} of others with the profile δ; below zero δ(ε) ≤ δ(0) + 1 − e^ε."""
    shifted = epsilon - 2 * apart
    delta = np.asarray(ideal(np.maximum(shifted, 0.0))) - np.expm1(np.minimum(shifted, 0.0))
    return np.asarray(np.minimum(math.exp(min(apart, 700.0)) * delta * (1 + 8 * UNIT), 1.0))


CARES = (1e2, 1e4, 1e7)
"""How far t may be below 1/V in `drawn_around`: all are tried, and the best bound counts."""


def drawn_around(variance: int, numbers: int, care: float) -> tuple[float, float]:
    """τ and t: so many numbers of parameter V are within e^{±t}, everywhere, of whole numbers drawn around N(0, V − τ) ones.

    Whole numbers are drawn around g with chances ∝ e^{−(z − g)²/2τ}: noise that was drawn so is post-processing of Gaussian
    noise, and moves with it by whole steps (docs/proofs/mechanisms.md#discrete-gaussian). t is about 4/(care·V); τ is at most
    half of V.

    >>> around, apart = drawn_around(10**6, 1000, 1e4)
    >>> round(around, 2), f"{apart:.0e}"
    (1.52, '4e-10')
    """
    spread = min(math.log(numbers * care * variance) / (2 * math.pi**2), variance / 2)
    rest = math.fsum(math.exp(-2 * math.pi**2 * spread * k * k) for k in range(1, 9)) * (1 + 1e-12) + 1e-300
    if rest >= 0.5:
        return spread, math.inf
    return spread, numbers * (math.log1p(2 * rest) - math.log1p(-2 * rest)) * (1 + 1e-12)


@lru_cache(maxsize=1024)
def sum_distance(variance: int, parties: int) -> float:
    """t: the law of a sum of so many shares is within e^{±t}, everywhere, of one discrete Gaussian with all their variance.

    >>> sum_distance(1, 2) < 2.1e-4, sum_distance(16, 1000) < 1e-60, sum_distance(1, 1)
    (True, True, 0.0)
    """
    if parties == 1:
        return 0.0
    k = np.arange(1, min(parties, 1_000_000), dtype=np.float64)
    squares = variance * k / (k + 1)
    with np.errstate(under="ignore"):
        first = np.exp(-2 * math.pi**2 * squares * (1 - 1e-12))
    rest = first / (1 - first**3)
    each = np.log1p(2 * rest) - np.log1p(-2 * rest)
    further = max(parties - 1_000_000, 0) * float(each[-1])  # the summands fall with k
    return (float(each.sum()) + further) * (1 + 1e-9) + parties * 1e-300


def normaliser(variance: int) -> float:
    """Z = Σ e^{−x²/2v}, by Poisson summation."""
    return math.sqrt(2 * math.pi * variance) * (1 + 2 * _theta_rest(float(variance)))


def normaliser_excess(variance: int) -> float:
    """A bound on log(Z/√(2πv)): how much larger the sum is than the integral."""
    return 2 * _theta_rest(float(variance))


def _theta_rest(square: float) -> float:
    """Σ_{k≥1} e^{−2π²s²k²}; what is left out beyond k = 8 is below e^{−1500} for s ≥ 1."""
    return math.fsum(math.exp(-2 * math.pi**2 * square * k * k) for k in range(1, 9))


def _running_sum(mass: FloatArray) -> FloatArray:
    """Sums from the left in blocks: each is rounded some thousand times, not some million times."""
    padded = np.zeros(-(-len(mass) // _BLOCK) * _BLOCK)
    padded[: len(mass)] = mass
    inner = np.cumsum(padded.reshape(-1, _BLOCK), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])
    return np.asarray((inner + before[:, None]).ravel()[: len(mass)])
