"""Randomized responses that a token collects, with a random number of visits: each in its heap, or published by name.

Both are averaged over how often u is visited. `HeapMoments` has the exponential moments of the loss of responses in heaps, with
which `netdp.families.token.account.energy` sums over all paths. `published` is local DP: the loss of so many responses is counted
out for every number of visits.

Proofs: docs/proofs/token.md#response-moments.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netdp.families.token.account.events import bins, more_delta
from netdp.families.token.ring import RingHistogram
from netdp.families.token.walk import WalkHistogram
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import Law
from netdp.privacy.clones import response_loss, response_profile
from netdp.privacy.profile import ProfileCurve

_SIZES = 1.04  # of the sizes at the two ends of a bin

_CELL = 0.03  # the width of a cell of ε, relatively

_SUMMED = 1e-9  # relatively, of an integral: more than its rounding

_TOP = 700.0  # e to the power of more is too large a number

_RARE = 1e-16  # the largest numbers of responses of this probability are left to δ

_COUNTED = 4_000  # responses up to which their loss is counted out

Kind = tuple[int, float, str]
"""Labels, γ, and how a response is coded."""


def kind_of(protocol: RingHistogram | WalkHistogram) -> Kind:
    """What the loss of a single response depends on."""
    return protocol.domain, protocol.gamma, protocol.response


@dataclass(frozen=True, eq=False)
class HeapMoments:
    """E[e^{s·loss}] of one response among g others, g = 0, 1, …: the mean, over how many of these are random, of what `among` says.

    among     at s, for b random elements, b the lower ends of bins
    largest   ε₀: no logarithm at s is above s times that
    weight    a row per bin of g, at its lower end: the law of b
    sizes     these lower ends
    most      the largest g; more others do no harm
    heaps     in how many heaps a response is: 2 bits of a unary one
    """

    among: Callable[[float], FloatArray]
    largest: float
    weight: FloatArray
    sizes: IntArray
    most: int
    heaps: int = 1

    def logs(self, s: float) -> FloatArray:
        """Their logarithms, g = 0 … most; they fall with g."""
        found = self.heaps * np.log(self.weight @ self.among(s))
        falling = np.maximum.accumulate(found[::-1])[::-1]
        return np.asarray(np.repeat(falling, np.diff([*self.sizes, self.most + 1])))

    def shared(self, counts: FloatArray, responses: FloatArray) -> Callable[[float], FloatArray]:
        """The same of k of u's responses among m in all: each in its part of the heap, parts as equal as can be."""
        k, m = (part.astype(np.int64) for part in np.broadcast_arrays(counts, responses))
        group, rest = np.divmod(np.maximum(m, k), np.maximum(k, 1))
        plain, more = (np.clip(group + shift, 0, self.most) for shift in (-1, 0))

        def logs(s: float) -> FloatArray:
            each = self.logs(s)
            return np.asarray((k - rest) * each[plain] + rest * each[more])

        return logs


def heap_moments(kind: Kind, most: int) -> HeapMoments:
    """The moments of a response among up to `most` others.

    >>> heap_moments((2, 0.5, "k-ary"), 4).logs(1.0)[:5].round(2).tolist()
    [0.85, 0.69, 0.57, 0.48, 0.4]
    """
    # powers of two: the table for a longer walk serves a shorter one
    return _heap_moments(kind, 1 << max(4, most.bit_length()))


@functools.lru_cache(maxsize=32)
def _heap_moments(kind: Kind, most: int) -> HeapMoments:
    domain, gamma, response = kind
    if response == "unary":  # one bit of either value, each in its own heap, which are independent
        bit = _heap_moments((2, gamma, "k-ary"), most)
        return dataclasses.replace(bit, largest=2 * bit.largest, heaps=2)
    sizes = np.array([first for first, _ in bins(0, most, _SIZES)])
    top = response_loss(domain, gamma)
    low = 0.1 * top / math.sqrt(1 + most)
    eps = np.append(0.0, np.geomspace(low, top, max(2, math.ceil(math.log(top / low) / _CELL))))
    deltas = np.stack([response_profile(0, domain, gamma, sure=b, epsilons=eps).delta(eps) for b in sizes.tolist()])
    weight = np.stack([_binned(Law.binomial(g, gamma), sizes) for g in sizes.tolist()])

    def among(s: float) -> FloatArray:
        if (s + 1) * top > _TOP:  # too large a number for the integral; no loss is above ε₀
            return np.full(len(sizes), math.exp(s * top))
        return np.asarray(1.0 + s * (s + 1) * (deltas @ moment_weights(eps, s)) * (1 + _SUMMED))

    return HeapMoments(among, top, weight, sizes, most)


def moment_weights(eps: FloatArray, s: float) -> FloatArray:
    """w ≥ 0 with Σ w·δ = ∫ (e^{sε} + e^{−(s+1)ε})·δ(ε) dε, for δ at these ε and on chords in e^ε between them."""
    x, start, width = np.exp(eps), eps[:-1], np.diff(eps)

    def area(rate: float) -> FloatArray:
        return np.asarray(np.exp(rate * start) * np.expm1(rate * width) / rate)

    whole, first = area(s) + area(-s - 1), area(s + 1) + area(-s)
    left, right = (x[1:] * whole - first) / np.diff(x), (first - x[:-1] * whole) / np.diff(x)
    return np.append(left, 0.0) + np.insert(right, 0, 0.0)


def _binned(law: Law, starts: IntArray) -> FloatArray:
    """A law in bins, each at its lower end; what lies outside its window is put where nothing hides u."""
    place = np.searchsorted(starts, law.low + np.arange(len(law.chance)), side="right") - 1
    weights = np.bincount(place, weights=law.chance, minlength=len(starts)) * (1 + 16 * UNIT * (law.steps + 64))
    weights[0] += law.outside
    return np.asarray(weights)


def published(
    protocol: RingHistogram | WalkHistogram, counts: FloatArray, weights: FloatArray, outside: float
) -> ProfileCurve:
    """Local DP: `counts` responses with these probabilities, each under its user's name; `outside` is added to δ.

    The loss of one response is ε₀, −ε₀ or 0, so that of k of them is a multiple of ε₀, and between two multiples δ is a chord.

    >>> p = WalkHistogram(4, steps=8, domain=2, gamma=0.5)
    >>> [round(float(published(p, np.array([1.0, 2.0]), np.array([0.5, 0.5]), 0.0).delta(at)), 4) for at in (0.0, p.epsilon0)]
    [0.5, 0.1875]
    """
    often = np.bincount(counts.astype(np.int64), weights=weights)
    tails = np.cumsum(often[::-1])[::-1]
    longest = int(np.searchsorted(-tails, -_RARE)) - 1  # more often: with probability `_RARE` at most
    outside += float(tails[longest + 1 :].max(initial=0.0))
    if longest < 1:
        return ProfileCurve([0.0], [min(1.0, outside)])
    if longest > _COUNTED:
        bare = ProfileCurve([0.0, protocol.epsilon0], [(1 - protocol.gamma) * (1 + 1e-12), 0.0])
        return more_delta(bare.self_compose(longest), outside)
    up, down, none = _losses(protocol)
    mass, one = np.array([often[longest]]), np.array([down, none, up])
    for k in range(longest - 1, -1, -1):
        mass = np.convolve(mass, one)
        mass[len(mass) // 2] += often[k] if k else 0.0
    later = np.append(np.cumsum(mass[longest:][::-1])[::-1][1:], 0.0)  # the chance of more than 0, ε₀, 2ε₀, …
    deltas = np.zeros(longest + 1)
    for j in range(longest - 1, -1, -1):
        deltas[j] = down / up * deltas[j + 1] + (1 - protocol.gamma) / up * later[j]
    grown = np.minimum(np.minimum.accumulate(deltas * (1 + published_slack(longest))), 1.0)
    return more_delta(ProfileCurve(np.arange(longest + 1) * protocol.epsilon0 * (1 + 1e-12), grown), outside)


def published_slack(longest: int) -> float:
    """The relative rounding error of δ where u responds at most so often."""
    return 32 * UNIT * (longest + 16)


def _losses(protocol: RingHistogram | WalkHistogram) -> tuple[float, float, float]:
    """The probabilities that a response speaks for the true value, for the other one, for neither."""
    gamma, domain = protocol.gamma, protocol.domain
    if protocol.response == "unary":  # two bits
        right, wrong = 1 - gamma / 2, gamma / 2
        return right * right, wrong * wrong, 2 * right * wrong
    return (1 - gamma) + gamma / domain, gamma / domain, gamma * (domain - 2) / domain
