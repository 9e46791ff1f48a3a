"""A ring whose order is drawn anew in every round: what c users, who collude before the draw, learn about any other.

*Proofs: docs/guarantees.md#secret-ring.*

**One round at a time.** Show the observers the token at the end of every round. Then rounds are independent views: their
noises are, and their orders are drawn independently of everything. By symmetry one curve holds for every user.

**Stretches.** The c observers cut the round into c + 1 stretches of m₁ + … + m_{c+1} = N = n − c users, all compositions
equally likely. A stretch has exactly m users with probability f(m) = C(n−m−1, c−1)/C(n, c), so f(0) = c/n and f(m+1) =
f(m)·(N−m)/(n−m−1); two stretches have m users and at least b with probability f(m + b). u's stretch has m with probability
P(m) = (c+1)·m·f(m)/N.

**The order told.** The observers see the sum of every stretch. u moves that of its own by Δ in noise of variance mσ²/n: a
Gaussian shift of μ(m) = (Δ/σ)√(n/m). Lengths are public facts: one round is bounded by Σ_m P(m)·δ_Gauss(μ(m)).

**The order hidden.** Then a short stretch shows a value, but not whose it is. Fix a length b ≤ ⌈N/(c+1)⌉; stretches of at
least b are *long*, and there is at least one. Let M be the number of places in long ones; M ≥ M₀ = N − c(b−1). Tell everything
but one thing: draw a place s in a short stretch and a place l in a long one, and do not say whether u stands at l and
another user z at s or the other way round. In detail: if u stands at s in a short stretch, l is drawn uniformly from the M;
if u stands at l in a long one, s is drawn with probability κ_s = M₀/(M·c·m_s), m_s the length of its stretch, and none with
what is left (Σκ_s ≤ 1: at most c stretches are short). Told is the order with u at l and z at s, and s and l, or that there is
no s. All orders being equally likely, u stands at s with odds (1/N)(1/M) to (1/N)κ_s, so with probability

    q = c·m_s/(c·m_s + M₀),

whatever was told. Now show the sum of the stretch of s first, then that of l. The first is z with probability 1−q and else u
(the other users in it are told): a sampled contribution, q·δ_Gauss(μ(m_s); ln(1 + (e^ε−1)/q)), as in `sampled`. Given the
first, the second is a mixture of u's value and z's on both sides, with whatever weights: by joint convexity at most
δ_Gauss(μ(m_l)). Without s it is u's. The other stretches do not depend on u's data.

A round is therefore: with probability P(m)/q(m) for every m < b a sampled contribution among m, and a Gaussian shift
μ(m_l). The law of m_l given m_s, or given that there is no s, is bounded by one that is smaller in stochastic order than all
of them, Λ (a shift falls with m_l): its distribution function is the largest of theirs. With 1/N ≤ 1/M ≤ 1/M₀,

    given m_s = m:   P(m_l ≤ t) ≤ ((N−m)/M₀)·Σ_{b≤k≤t} k·P(m₂ = k | m₁ = m) / Σ_{k≥b} k·P(m₂ = k | m₁ = m),
    no s:            P(m_l ≤ t) ≤ Σ_{b≤k≤t} k·[f(k) − (M₀/N)·p(k)] / Σ_{k≥b} k·[f(k) − p(k)],

where P(m₂ = k | m₁ = m) = (f(m+k) − f(m+k+1))/f(m), and p(k) = f(k+1) − f(k+b) is the probability that one stretch has k
users and another is short but not empty. Several b are tried; each is a bound.

**Rounding.** f is a product of at most n ratios of whole numbers, differences of f are written as f(k)·(c−1)/(n−k−1): all
terms are positive, and 16n units are added to every weight.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified, coalitions
from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import Adjacency, Claim, Found, GaussianCurve, Guarantee, Observers, ProfileCurve
from netdp.protocols.secret_ring import SecretRingSum

from .events import Event, Profile, compose_events, least
from .sampled import gaussian, mixture, sampled
from .stretches import bins, mean

REFERENCES = (
    "netdp, docs/guarantees.md#secret-ring: rings in a new random order every round.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022 (time-evolving rings: proposed there).",
    "B. Balle, G. Barthe, M. Gaboardi. Privacy Amplification by Subsampling. NeurIPS 2018.",
)
_WORK = 2 * 10**7  # lengths of two stretches that are looked at
_RATIO = 1.02
_FINE = 1e-4  # of the ε axis: where one round is tabulated as it is


def stretch_law(n: int, colluders: int) -> FloatArray:
    """f(m), m = 0 … n − c: the probability that a given one of the c + 1 stretches has m users.

    >>> stretch_law(5, 2).round(12).tolist()                  # of C(5, 2) = 10 places of two observers
    [0.4, 0.3, 0.2, 0.1]
    """
    m = np.arange(n - colluders)
    ratios = (n - colluders - m) / (n - m - 1.0)
    return np.asarray(colluders / n * np.concatenate([[1.0], np.cumprod(ratios)]))


def ring_profile(protocol: SecretRingSum, colluders: int = 1) -> ProfileCurve:
    """δ(ε) of `SecretRingSum` for any user against any `colluders` others who were chosen before the orders are drawn.

    >>> p = SecretRingSum(1000, rounds=10, sigma=30.0)              # a fixed ring against two neighbours: 20.8
    >>> [round(float(ring_profile(p, c).epsilon(1e-6)), 2) for c in (1, 2, 10)]
    [1.86, 2.35, 3.61]
    >>> [round(float(ring_profile(p.replace(sender="hidden"), c).epsilon(1e-6)), 2) for c in (1, 2, 10)]
    [0.64, 0.77, 1.62]
    """
    everything = Event(gaussian(protocol.local_mu * (1 + 8 * UNIT)), 1)
    found = [everything.curve(_FINE * everything.reach), _told(protocol, colluders)]
    if protocol.sender == "hidden":
        found += [_hidden(protocol, colluders, b) for b in _thresholds(protocol.n, colluders)]
    return least(found)


def _thresholds(n: int, colluders: int) -> list[int]:
    """Lengths from which a stretch counts as long: parts of the mean length, as far as the work allows."""
    longest = -(-(n - colluders) // (colluders + 1))
    tried = {math.ceil(longest / part) for part in (1, 2, 4, 8, 16, 32)}
    return sorted(b for b in tried if b >= 2 and b * n <= _WORK)


def _shifts(protocol: SecretRingSum, lengths: FloatArray) -> FloatArray:
    return protocol.sensitivity / protocol.sigma * np.sqrt(protocol.n / lengths) * (1 + 8 * UNIT)


@functools.lru_cache(maxsize=64)
def _own_law(n: int, colluders: int) -> FloatArray:
    """P(m), m = 0 … N: how many users u's stretch has, with what covers the rounding."""
    f = stretch_law(n, colluders)
    m = np.arange(len(f))
    law = (colluders + 1) * m * f / (n - colluders) * (1 + 16 * n * UNIT)
    law.flags.writeable = False
    return np.asarray(law)


def _told(protocol: SecretRingSum, colluders: int) -> ProfileCurve:
    law = _own_law(protocol.n, colluders)
    starts = np.array([first for first, _ in bins(1, len(law) - 1, _RATIO)])
    weights = np.add.reduceat(law, starts)
    event = Event(mixture(_shifts(protocol, starts), weights), protocol.rounds)
    return event.curve(_FINE * event.reach) if protocol.rounds == 1 else compose_events([event])


def _hidden(protocol: SecretRingSum, colluders: int, threshold: int) -> ProfileCurve:
    """Two events a round: a sampled contribution in a short stretch, and a shift in a long one."""
    n = protocol.n
    law, least_long = _own_law(n, colluders), n - colluders - colluders * (threshold - 1)
    parts: list[tuple[float, Profile]] = []
    for first, last in bins(1, threshold - 1, 1.1):
        m = np.arange(first, last + 1)
        q = colluders * m / (colluders * m + least_long)
        mu = float(_shifts(protocol, np.array([float(first)]))[0])
        parts.append((float((law[m] / q).sum()), sampled(gaussian(mu), float(q[-1]) * (1 + 8 * UNIT))))
    starts, weights = _long_law(n, colluders, threshold)
    long = mixture(_shifts(protocol, starts), weights)
    return compose_events([Event(mean(parts), protocol.rounds), Event(long, protocol.rounds)])


@functools.lru_cache(maxsize=64)
def _long_law(n: int, c: int, b: int) -> tuple[FloatArray, FloatArray]:
    """Λ in bins: first lengths and weights."""
    f = stretch_law(n, c)
    N, least_long = n - c, n - c - c * (b - 1)
    k = np.arange(b, N + 1)
    padded = np.concatenate([f, np.zeros(N + b + 1)])
    # f(j) − f(j+1) without cancellation; for one observer all but the last vanish
    fall = np.zeros(2 * N + 2)
    j = np.arange(N)
    fall[:N] = f[:N] * (c - 1) / (n - j - 1.0)
    fall[N] = f[N]
    none = fall[k] + padded[k + b]
    worst = _ratio(k * (f[k] * (1 - least_long / N) + least_long / N * none), k * none, 1.0)
    for m in range(1, b):
        both = k * fall[m + k]
        worst = np.maximum(worst, _ratio(both, both, (N - m) / least_long))
    grown = np.minimum(worst * (1 + 32 * n * UNIT), 1.0)
    starts = np.array([first for first, _ in bins(b, N, _RATIO)], dtype=np.float64)
    ends = np.append(starts[1:] - 1, N).astype(np.int64)
    weights = np.diff(np.concatenate([[0.0], grown[ends - b]]))
    return starts, weights


def _ratio(above: FloatArray, below: FloatArray, scale: float) -> FloatArray:
    """A bound on a distribution function from partial sums; 1 everywhere if nothing is known."""
    whole = float(below.sum())
    if not whole > 0:
        return np.ones(len(above))
    return np.minimum(np.cumsum(above) * (scale / whole), 1.0)


@certified.register
def _secret_ring(protocol: SecretRingSum, observers: tuple[int, ...]) -> Guarantee:
    if not 1 <= len(observers) < protocol.n:
        raise InvalidValue(f"{len(observers)} of {protocol.n} users cannot collude against the others")
    size = protocol.sensitivity
    hidden = protocol.sender == "hidden"
    return Guarantee(
        curve=ring_profile(protocol, len(observers)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: the values of all users in one round lie in one public set of diameter {size:g} "
            "(L2 norm), whatever their data"
            if hidden
            else f"two values of one contribution differ by at most {size:g} in L2 norm (clip before the noise)",
            "who colludes was settled before the orders were drawn; in every round all orders of the users are equally likely, "
            "whatever happened before, and no observer has a hand in the draw",
            "nobody learns anything of the order but at which hops it holds the token itself: the network draws it, delivers, "
            "and publishes the token after the last hop"
            if hidden
            else "the orders may be public once they are drawn: the bound tells them",
            "a token is readable by its holder alone until it is released; the observers may also read it after every round",
            "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
            "values are fixed beforehand, one for every round, and do not react to the token",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
            "by symmetry the curve holds for every user outside the observers",
        ),
        references=REFERENCES,
    )


@coalitions.register
def _any_of(protocol: SecretRingSum, colluders: int) -> Guarantee:
    """Any so many who were chosen before the orders are drawn learn the same about anybody."""
    members = tuple(range(colluders))
    loss = _secret_ring(protocol, members)
    found = Found(Observers(members), protocol.n - 1, loss.curve, False, note="any others learn as much about anybody")
    return dataclasses.replace(loss, found=found)


@local.register
def _local(protocol: SecretRingSum) -> Guarantee:
    return said(
        GaussianCurve(protocol.local_mu),
        "every user publishes all its contributions, each with its own noise",
        Claim.EXACT,
    )


@curator.register
def _curator(protocol: SecretRingSum) -> Guarantee:
    mu = math.sqrt(protocol.rounds) * protocol.sensitivity / protocol.sigma
    return said(GaussianCurve(mu), "a trusted curator publishes the noisy sum of every round", Claim.EXACT)
