"""What a stretch of a walk with a secret path reveals: profiles of sampled contributions.

**One step.** The step is at a user drawn uniformly from those outside O, so at u with probability q = 1/(n−c), secretly. If
its noisy contribution were shown, its law would be P = (1−q)R + qA with u's data and Q = (1−q)R + qA′ with its other data:
R is the same mixture of the others' contributions. By advanced joint convexity (Balle, Barthe, Gaboardi 2018, Theorem 2)

    H_{e^ε}(P‖Q) = q·H_{α′}(A ‖ (1−β)R + βA′),    α′ = 1 + (e^ε − 1)/q,  β = e^ε/α′,  ε ≥ 0,

which by convexity is at most q·[(1−β)·δ_far(ln α′) + β·δ_near(ln α′)]: δ_far bounds the divergence of u's contribution from
another user's, δ_near from u's own under the other data. Replacing data both are the local profile: any two contributions,
*of any two users*, are at most Δ apart, all of them lying in one public set of diameter Δ. That u's own two are close is not
enough: others far away give away which steps are u's (`test_others_outside_the_public_set_break_the_bound`). Zeroing data
out (all contributions in the ball of radius Δ/2, u's against 0) near is Δ/2 and far is Δ.
R is the same on both sides if what the others add depends on nothing but their data, the step and what was shown before, in
particular not on how often they were visited: who was visited is secret, and likelier or not depending on u's data. u's own
contributions may differ from visit to visit. The argument is made given the past.

**A block of g steps in a row**, of which only the sum is shown, Gaussian noise. u is in it k ~ Binomial(g, q) times. Split
off k = 0, of probability 1−η: H = η·H_{α′}(P₁ ‖ (1−β)P₀ + βQ₁) with α′ = 1 + (e^ε−1)/η. Given k, the sums under P₁ and P₀
(couple the g−k other contributions) are Gaussians of variance gσ² with means at most k·far apart, under P₁ and Q₁ at most
k·near. So

    δ_block(ε) ≤ Σ_{k≥1} P(k)·[(1−β)·δ_Gauss(k·far/(σ√g); ln α′) + β·δ_Gauss(k·near/(σ√g); ln α′)].

Values may change with the step, whose number is public: given at which k steps u is, couple the others at all other steps; at
each of the k one contribution stands against another *of the same step*. So it is enough that the contributions of one step
lie in one public set of diameter Δ, which may be another at the next (docs/guarantees.md#values-over-time).

It grows with P(k) in stochastic order, and any η′ ≥ η will do (count some of the blocks without u as having it, with
shift 0): for blocks of between a and b steps, P(k) and η of b with the noise of a are a bound. Blocks of one step lose
nothing when σ ≫ Δ; longer ones gain from averaging when σ is small.

**The rule that one side is plain N(0, gσ²)** under zero-out holds only if all others contribute zero: with others at −x, the
sums are mixtures on both sides, around 2kx and kx, and easier to tell apart (`test_zero_out_is_not_one_sided`).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from netdp.numerics.arrays import FloatArray, frozen
from netdp.numerics.binomial import visits
from netdp.privacy._gaussian_means import mean_delta

from .events import Profile


class Shift(NamedTuple):
    """How far a contribution can lie from u's own under the other data, and from another user's, over σ."""

    near: float
    far: float

    def over(self, root: float) -> Shift:
        """The same seen through `root` times the noise."""
        return Shift(self.near / root, self.far / root)


def sampled(local: Profile, q: float) -> Profile:
    """δ_step under replacement: a contribution with profile `local` that happens secretly with probability q.

    >>> rr = sampled(lambda eps: np.maximum(np.e - np.exp(eps), 0) / (np.e + 1), 0.01)    # randomized response, ε₀ = 1
    >>> bool(rr(np.array([np.log1p(0.01 * (np.e - 1)) * (1 + 1e-9)]))[0] == 0.0)        # none beyond ln(1 + q(e − 1))
    True
    """
    return lambda eps: q * np.asarray(local(np.log1p(np.expm1(eps) / q)))


def block(shift: Shift, q: float, shortest: int, longest: int | None = None) -> Profile:
    """δ_block for a sum over `shortest` to `longest` steps; a single step is a block of one."""
    length = shortest if longest is None else longest
    k, weight = visits(length, q, 1)
    present = -math.expm1(length * math.log1p(-q)) if q < 1 else 1.0
    near, far = k * shift.near / math.sqrt(shortest), k * shift.far / math.sqrt(shortest)

    def profile(eps: FloatArray) -> FloatArray:
        grown = np.expm1(eps) / present
        inner = np.log1p(grown)
        if shift.far <= shift.near:
            return _mean_delta(near, weight, inner)
        beta = np.minimum(np.exp(eps) / (1 + grown), 1.0)  # above 1 by rounding if q = 1
        return np.asarray(beta * _mean_delta(near, weight, inner) + (1 - beta) * _mean_delta(far, weight, inner))

    return profile


def gaussian(mu: float) -> Profile:
    """The profile of a Gaussian shift."""
    mus, alone = np.array([mu], dtype=np.float64), np.ones(1)
    return lambda eps: mean_delta(mus, alone, np.asarray(eps, dtype=np.float64))


def mixture(mus: FloatArray, weights: FloatArray, least: float = 1e-28) -> Profile:
    """Gaussian shifts with a public label: Σ weight·δ_Gauss(μ); labels of less than the `least` weight as infinite shifts."""
    kept = weights > least
    rest = float(weights[~kept].sum()) * (1 + 1e-9)
    mus, weights = mus[kept], weights[kept] * (1 + 1e-12)
    return lambda eps: _mean_delta(mus, weights, eps) + rest


def _mean_delta(mus: FloatArray, weights: FloatArray, eps: FloatArray) -> FloatArray:
    """Σ weight·δ_Gauss(μ) at each ε. Bounds of one walk ask for the same tables again and again: the last ones are kept."""
    return _kept_mean_delta(*(np.asarray(part, dtype=np.float64).tobytes() for part in (mus, weights, eps)))


@functools.lru_cache(maxsize=256)
def _kept_mean_delta(mus: bytes, weights: bytes, eps: bytes) -> FloatArray:
    return frozen(mean_delta(np.frombuffer(mus), np.frombuffer(weights), np.frombuffer(eps)))
