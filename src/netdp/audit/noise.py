"""The noise itself: the very samplers that a protocol draws from, with its own parameters, against the laws that are accounted for.

A guarantee is about noise of a stated law. `noise_checks` draws from what draws in a deployment and asks whether it is that
noise: one number at a time (`noise_law.fits`), from one draw to the next (`noise_law.independent`), and as it is sent, whole
numbers whose last digits do not depend on the value (`noise_digits`). How much noise there should be is computed here from what
the protocol states, σ, the grid, refresh and closing, in fractions, and not taken from the property that the sampler is given.

Which protocol draws what, on a grid:

    MaskedSum, MaskedDescent                  a share of σ² at every party, DiscreteGaussian
    RingSum                                   σ² or σ²/n at a hop, and before the release
    WalkSum, GraphWalkSum, PathSum            σ² at every visit, and before the release
    Gossip, RandomizedGossip                  σ² at the start, fresh noise before a send, FineGaussian
    RingHistogram, WalkHistogram              randomized answers (always in whole numbers)
    Shuffle and its kin                       the reports of peers: randomized response, or GridLaplace

A protocol in real numbers is simulated in floating point; there is no deployed sampler to look at, and the check says so.

Here words come from a NumPy generator, so that a check can be repeated: it is about the samplers. That deployed words are those of
a cipher is for `noise_source` and for the tests of `netdp.peers.streams`; `words=` puts any other source in their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from netdp.mechanisms import GridLaplace, RandomizedResponse
from netdp.mechanisms.coins import ALL
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, Words, words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import whole
from netdp.protocols import (
    FaultyShuffle,
    Gossip,
    GraphWalkSum,
    MaskedDescent,
    MaskedSum,
    PathSum,
    Protocol,
    RandomizedGossip,
    RelayedShuffle,
    RingHistogram,
    RingSum,
    Shuffle,
    Table,
    WalkHistogram,
    WalkSum,
)
from netdp.protocols.response_steps import answer

from .findings import Check
from .noise_digits import float_leak, last_digit, on_lattice
from .noise_law import DOUBT, Law, finite_law, fits, gaussian_law, independent, laplace_law
from .noise_reuse import no_reuse
from .noise_source import only_cryptographic, peers_are_cryptographic

_ANSWERS = 10_000
"""Randomized answers are drawn one by one, so there are fewer of them."""
_LARGEST = 20.0
"""No report of peers has a larger ε₀, and all are pure."""
_FINE = 16
"""Deviation, in steps, from which on a number has digits below its noise."""


@dataclass(frozen=True)
class Noise:
    """One noise of a protocol.

    name    which one, for people
    law     what is stated and accounted for
    draw    (how many, words) → so many draws, by what draws them in a deployment
    far     how many steps apart two values can be that it hides; 0 where it is no noise that is added
    most    draws, at most, where each takes long
    """

    name: str
    law: Law
    draw: Callable[[int, Words], IntArray]
    far: int = 0
    most: int | None = None


noises = Table("the noise", "draws no noise in whole numbers")
"""`noises(protocol)`: a list of `Noise`; empty for one in real numbers, and for reports that peers do not send."""


def noise_checks(
    protocol: Protocol, seed: int = 0, draws: int = 200_000, *, words: Words | None = None, doubt: float = DOUBT
) -> list[Check]:
    """Whether every noise that a protocol draws on a grid is what it claims to be; the same seed gives the same checks.

    draws   of all its noises together
    words   random 64-bit words; by default those of a NumPy generator with this seed
    doubt   so probable it is, at most, that sound samplers do not pass, all checks together

    >>> from netdp import graphs
    >>> [check.ok for check in noise_checks(MaskedSum(graphs.ring(8), sigma=2.0), draws=20_000)]
    [True, True, True]
    >>> noise_checks(Gossip(graphs.ring(8), rounds=3, sigma=2.0))[0].words
    'Gossip, as it is stated, has no grid: its noise is simulated in floating point, and no deployed sampler is involved'
    """
    seed, draws = whole("seed", seed), whole("draws", draws, 1000)
    found: list[Noise] = noises(protocol) if noises.handles(protocol) else []
    if not found:
        said = "has no grid: its noise is simulated in floating point, and no deployed sampler is involved"
        return [Check("the noise itself", True, f"{type(protocol).__name__}, as it is stated, {said}")]
    source = words_from(np.random.default_rng(np.random.SeedSequence([seed, 15]))) if words is None else words
    out: list[Check] = []
    for noise in found:
        out += _checked(noise, min(noise.most or draws, draws // len(found)), source, doubt / len(found) / 3)
    return out


def _checked(noise: Noise, draws: int, words: Words, doubt: float) -> list[Check]:
    sample = np.asarray(noise.draw(draws, words))
    if not (kind := on_lattice(sample, name=f"{noise.name}: whole numbers")).ok or sample.dtype.kind not in "iu":
        words_of_it = kind.words if not kind.ok else f"draws are {sample.dtype}, not whole numbers"
        return [Check(kind.name, False, words_of_it)]
    checks = [
        fits(sample, noise.law, doubt, f"{noise.name}: the law"),
        independent(sample, noise.law, doubt, f"{noise.name}: one draw and the next"),
    ]
    if noise.far and noise.law.deviation >= _FINE:
        half = len(sample) // 2  # what is sent with one value, and with one as far from it as may be
        name = f"{noise.name}: last digits"
        checks.append(float_leak(sample[:half], sample[half : 2 * half] + noise.far, doubt=doubt, name=name))
    return checks


def _ahead(words: Words) -> Words:
    """The same words, asked for in blocks: whoever asks for one at a time would wait for each."""
    block = np.empty(0, dtype=np.uint64)

    def some(size: int) -> Any:
        nonlocal block
        if size > len(block):
            block = np.concatenate([block, words(max(size, 1 << 12))])
        taken, block = block[:size], block[size:]
        return taken

    return some


# ── which protocol draws what ─────────────────────────────────────────────────────────────────────────────────────────


def _steps(square: Fraction, grid: float) -> int:
    """A variance in squared steps, rounded up: what must be drawn at least, and is drawn."""
    return math.ceil(square / Fraction(grid) ** 2)


def _gaussian(name: str, stated: int, drawn: int, protocol: Any, sampler: Any = DiscreteGaussian) -> list[Noise]:
    """Noise of the parameter `stated`, drawn with the parameter that the protocol hands to its sampler."""
    if not stated:
        return []
    far = max(1, math.ceil(protocol.sensitivity / protocol.step))
    return [Noise(name, gaussian_law(stated), lambda size, words: sampler(drawn).sample((size,), words), far)]


@noises.register
def _masked(protocol: MaskedSum) -> list[Noise]:
    stated = _steps(Fraction(protocol.sigma) ** 2, protocol.step)
    return _gaussian("every party's share of the noise", stated, protocol.share, protocol)


@noises.register
def _masked_descent(protocol: MaskedDescent) -> list[Noise]:
    stated = _steps(Fraction(protocol.sigma) ** 2, protocol.sum.step)
    return _gaussian("every party's share of the noise", stated, protocol.sum.share, protocol.sum)


@noises.register
def _ring(protocol: RingSum) -> list[Noise]:
    if protocol.grid is None:
        return []
    square, hops = Fraction(protocol.sigma) ** 2, protocol.hop_variances
    full = _steps(square, protocol.grid)
    if protocol.noise == "single":
        found = _gaussian("noise of every hop that has some", full, int(hops[hops > 0].min()), protocol)
    else:
        found = _gaussian("noise of the first hop", full, int(hops[0]), protocol)
        each = _steps(square / protocol.n, protocol.grid)
        found += _gaussian("noise of every other hop", each, int(hops[1:].min()), protocol)
    closing = _steps(Fraction(protocol.closing) * square, protocol.grid)
    return found + _gaussian("noise before the release", closing, protocol.closing_variance, protocol)


@noises.register
def _tokens(protocol: WalkSum | GraphWalkSum | PathSum) -> list[Noise]:
    if protocol.grid is None:
        return []
    each = _steps(Fraction(protocol.sigma) ** 2, protocol.grid)
    found = _gaussian("noise of every visit", each, protocol.variance, protocol)
    closing = math.ceil(Fraction(getattr(protocol, "closing", 0.0)) * each)
    return found + _gaussian("noise before the release", closing, protocol.closing_variance, protocol)


@noises.register
def _gossip(protocol: Gossip | RandomizedGossip) -> list[Noise]:
    if protocol.grid is None:
        return []
    square = Fraction(protocol.sigma) ** 2
    fresh = Fraction(protocol.refresh) * square
    fresh *= Fraction(1, protocol.rounds) if isinstance(protocol, Gossip) else Fraction(protocol.n, 2 * protocol.steps)
    start, again = (_steps(one, protocol.grid) for one in (square, fresh))
    found = _gaussian("noise of the first state", start, protocol.start_variance, protocol, FineGaussian)
    return found + _gaussian("fresh noise", again, protocol.fresh_variance, protocol, FineGaussian)


@noises.register
def _histogram(protocol: RingHistogram | WalkHistogram) -> list[Noise]:
    """Answers of a user with the first value: as k-ary ones name a value, as unary ones bit by bit."""
    random, size = min(Fraction(math.ceil(Fraction(protocol.gamma) * ALL), ALL), Fraction(1)), protocol.domain

    def draw(number: int, words: Words) -> IntArray:
        words = _ahead(words)
        rows = np.stack([answer(protocol, 0, words) for _ in range(number)])
        return np.asarray(rows[:, 0] + 2 * rows[:, -1] if protocol.response == "unary" else rows.argmax(axis=1))

    if protocol.response == "unary":  # the own bit, and another one
        own, other = 1 - random / 2, random / 2
        shares = [(1 - own) * (1 - other), own * (1 - other), (1 - own) * other, own * other]
    else:
        shares = [1 - random + random / size, *[random / size] * (size - 1)]
    return [Noise("randomized answers", finite_law(shares, "the stated answers"), draw, most=_ANSWERS)]


@noises.register
def _shuffle(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> list[Noise]:
    """What peers send: labels by randomized response, numbers in [−1, 1] by discrete Laplace noise."""
    if protocol.delta0 or protocol.epsilon0 > _LARGEST:
        return []
    labels, numbers = RandomizedResponse(4, protocol.epsilon0), GridLaplace(2.0, protocol.epsilon0)
    other = 1 / (math.exp(protocol.epsilon0) + labels.domain - 1)

    def named(size: int, words: Words) -> IntArray:
        return labels.report(np.zeros(size, dtype=np.int64), words)

    def reported(size: int, words: Words) -> IntArray:
        return numbers.report(np.zeros(size), words)[:, 0]

    shares = [1 - (labels.domain - 1) * other, *[other] * (labels.domain - 1)]
    return [
        Noise("reports of labels", finite_law(shares, "randomized response"), named),
        Noise("reports of numbers", laplace_law(Fraction(protocol.epsilon0) / numbers.steps), reported, numbers.steps),
    ]


__all__ = [
    "DOUBT",
    "Law",
    "Noise",
    "finite_law",
    "fits",
    "float_leak",
    "gaussian_law",
    "independent",
    "laplace_law",
    "last_digit",
    "no_reuse",
    "noise_checks",
    "noises",
    "on_lattice",
    "only_cryptographic",
    "peers_are_cryptographic",
]
