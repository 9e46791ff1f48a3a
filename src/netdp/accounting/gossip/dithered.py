"""Gossip on a grid: what may be claimed of a running system (proofs: docs/guarantees.md#dithered-gossip).

A party sends whole numbers of grid steps (`netdp.protocols.gossip`). Local DP of the first noisy value survives any rounding.
*Amplified claims do not by themselves*: they rest on the linear structure of what is seen, and rounding breaks it. With refresh
the fresh noise absorbs the rounding errors; without it local DP is all that is claimed.

**Theorem.** Unit: one grid step. V₀ and V₁ are the parameters of the initial and of the fresh noise. For any values, the law of
all that is ever sent, S = (s⁰, …, s^{T−1}), is within

    TV = (T−1)·√(nd)/√(2πV₁)  +  nd·(1/(24V₀) + (T−1)/(24V₁))  +  4ndT·e^{−2¹²³/(V₀ + (T−1)V₁)}

in total variation of the *rounded* ideal X̃ = (x̃⁰, …): x̃⁰ = k + √V₀·η, x̃ᵗ = W x̃ᵗ⁻¹ + √V₁·gᵗ in real numbers.

**Proof.** Three steps. (1) Let H be like X̃, but let every party round what it sent, and what comes out of mixing, before it adds
fresh real noise: h̃ᵗ = ⌊W⌊h̃ᵗ⁻¹ + ½⌋ + ½⌋ + √V₁·gᵗ. Given the same past z, the next states of X̃ and H are Gaussians of
variance V₁ whose means differ by e = W(z − ⌊z + ½⌋) + (Wy − ⌊Wy + ½⌋), y = ⌊z + ½⌋. W is symmetric and doubly stochastic, so its
norm is 1, and ‖e‖ ≤ √(nd)/2 + √(nd)/2. TV(N(0, V₁I), N(e, V₁I)) ≤ ‖e‖/√(2πV₁); over the T − 1 steps with fresh noise such
distances add up (change one kernel after the other). What the last mixing does is not sent. (2) ⌊h̃ᵗ + ½⌋ = ⌊W⌊h̃ᵗ⁻¹ + ½⌋ + ½⌋ +
⌊√V₁·gᵗ + ½⌋, for a rounded number is whole: H, rounded, is S with rounded Gaussians for discrete ones, each draw within 1/(24V)
(`netdp.mechanisms.fine_gaussian`). (3) A run refuses what 64 bits cannot hold. Values have at most 2⁶⁰ steps, all rounding adds
at most T + 1, and the noise in a state is a combination of subgaussian draws of variance at most V₀ + (T−1)V₁ together: it
exceeds 2⁶² with probability at most 2e^{−2¹²⁴/2(V₀ + (T−1)V₁)}; so does a single draw. ∎

**What follows.** The observers' view is a function of S (their own noises are differences of what they sent and of what they
computed), and the same function of the rounded X̃ is post-processing of their ideal view. So δ(ε) ≤ δ_ideal(ε) + (1 + e^ε)·TV.
The ideal has noise of variance V₀g² ≥ σ² and V₁g² ≥ τ², and more noise loses no more (`exact`); values are at most D·g apart
after their own rounding, D = `distance`. So δ_ideal is that of μ_u = √factor_u·Dg/σ, the factor of gossip in real numbers.
Besides, S depends on x_u through s⁰_u alone, so δ is at most that of one discrete Gaussian moved by D; and a party further
from the observers than T hops has no influence on what they see. The least of these counts.

No floating point enters: W is a matrix of fractions, and `gossip_step` rounds W s exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from netdp.accounting.baselines import _curator as curator_in_real_numbers
from netdp.accounting.baselines import _local as local_in_real_numbers
from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, rounded_delta, shift_delta, sum_distance
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.numerics.checks import probability
from netdp.privacy import Adjacency, Claim, Guarantee, Observers, ProfileCurve, SharedCurve, gaussian_delta
from netdp.protocols import Gossip, RandomizedGossip
from netdp.protocols.gossip import MOST_STEPS
from netdp.protocols.grid import GossipOnAGrid, power_below, squared_steps
from netdp.views import GossipView, observer_set

from .exact import exact_loss, factors

REFERENCES = (
    "netdp, docs/guarantees.md#dithered-gossip: gossip on a grid.",
    "netdp, docs/guarantees.md#refresh: the loss in real numbers.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)
OUT_OF_REACH = -1.0
"""Stands for the factor of a party whose value cannot have reached the observers."""
_LEVELS = 40  # losses for which the ε of the table are laid out
_ENTRIES = 20_000_000  # of the table of all parties


@certified.register
def _gossip(protocol: Gossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    if protocol.grid is None:
        return exact_loss(protocol, observers, progress)
    return loss_on_a_grid(protocol, observers, progress)


def loss_on_a_grid(protocol: Gossip, observers: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """What colluding observers learn about every other party from whole numbers."""
    n = protocol.n
    reached = protocol.graph.distances(list(observers)) <= protocol.rounds
    apart = transcript_distance(protocol)
    notes: tuple[str, ...] = ()
    factor = np.ones(n)
    if math.isfinite(apart):
        found = factors(GossipView(protocol.replace(grid=None), observers), progress)
        factor, notes = found.values, found.notes
    # nothing at all is not the same as a factor of zero: rounding may carry what mixing cancels
    factor = np.where(reached, factor, OUT_OF_REACH)
    factor[list(observers)] = np.nan
    return stated_on_a_grid(protocol, factor, notes)


def stated_on_a_grid(protocol: Gossip, factor: FloatArray, notes: tuple[str, ...] = ()) -> Guarantee:
    """The loss on the grid whose ideal in real numbers has these factors; nan at observers, −1 for parties out of reach."""
    n, apart = protocol.n, transcript_distance(protocol)
    far = factor == OUT_OF_REACH
    if math.isinf(apart):
        factor = np.where(far | np.isnan(factor), factor, 1.0)
    kinds, which = np.unique(factor, return_inverse=True)  # nan, if there is one, comes last
    curve = grid_curve(protocol, kinds[~np.isnan(kinds)], apart, n)
    return Guarantee(
        curve=SharedCurve(curve, np.where(np.isnan(factor), -1, which.reshape(n))),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*grid_assumptions(protocol, apart, far=bool(far.any())), *notes),
        references=REFERENCES,
        factor=np.where(far, 0.0, factor),
    )


def transcript_distance(protocol: Gossip) -> float:
    """TV of the theorem: how far all that is sent is from the rounded ideal in real numbers; inf without refresh.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.hypercube(6), rounds=12, sigma=4.0, refresh=1.0, grid=2.0**-50)
    >>> transcript_distance(p) < 1e-13, transcript_distance(p.replace(refresh=0.0))
    (True, inf)
    """
    return _distance(protocol, protocol.start_variance, protocol.fresh_variance)


def _distance(protocol: Gossip, start: int, fresh: int) -> float:
    numbers, later = protocol.n * protocol.dimension, protocol.rounds - 1
    if later and not fresh:
        return math.inf
    absorbed = later * math.sqrt(numbers / (2 * math.pi * fresh)) if later else 0.0
    drawn = numbers / 24 * (1 / start + (later / fresh if later else 0.0))
    lost = 4 * numbers * protocol.rounds * math.exp(-(2.0**123) / (start + later * fresh))
    return (absorbed + drawn + lost) * (1 + 1e-12)


def first_value_delta(protocol: GossipOnAGrid, epsilon: FloatArray, parties: int = 1) -> FloatArray:
    """δ of one number (or vector) with the initial noise of so many parties, moved by `distance`: local DP if it is one."""
    variance = parties * protocol.start_variance
    apart = protocol.dimension * sum_distance(min(protocol.start_variance, 2**40), parties)  # falls with the variance
    shifted = epsilon - 2 * apart
    allowed = np.maximum(shifted, 0.0)
    if protocol.dimension == 1 and variance <= SUMMED_UP_TO:
        ideal = shift_delta(variance, int(protocol.distance), allowed)
    else:
        ideal = rounded_delta(variance, protocol.distance, protocol.dimension, allowed)
    found = math.exp(apart) * (ideal - np.expm1(np.minimum(shifted, 0.0))) * (1 + 8 * UNIT)
    return np.minimum.accumulate(np.minimum(found, 1.0))


def _mu(protocol: GossipOnAGrid, factor: FloatArray) -> FloatArray:
    return np.sqrt(factor) * (protocol.distance * protocol.step / protocol.sigma) * (1 + 8 * UNIT)


def grid_curve(protocol: GossipOnAGrid, kinds: FloatArray, apart: float, n: int) -> ProfileCurve:
    """One row for every factor: the least of the amplified bound and of local DP."""
    mu = _mu(protocol, np.maximum(kinds, 0.0))
    points = _points(np.append(mu[mu > 0], _mu(protocol, np.ones(1))), n)
    alone = first_value_delta(protocol, points)
    rows = np.zeros((len(kinds), len(points)))
    with np.errstate(over="ignore"):
        added = (1 + np.exp(points)) * apart * (1 + 8 * UNIT)
    for row, kind, one in zip(rows, kinds.tolist(), mu.tolist(), strict=True):
        if kind != OUT_OF_REACH:
            amplified = added + (np.asarray(gaussian_delta(one, points)) if one > 0 else 0.0)
            row[:] = np.minimum.accumulate(np.minimum(amplified, alone))
    return ProfileCurve(points, rows)


def _points(mu: FloatArray, n: int) -> FloatArray:
    """The ε of the table: laid out for some of the losses, from the least to the largest."""
    levels = np.unique(mu)
    if len(levels) > _LEVELS:
        levels = levels[np.unique(np.linspace(0, len(levels) - 1, _LEVELS).round().astype(np.int64))]
    each = max(24, min(1200, 3_000 // len(levels), _ENTRIES // (n * len(levels))))
    parts = [one * np.linspace(0.0, one / 2 + end, each) for one in levels.tolist() for end in (8.0, 36.0)]
    return np.unique(np.concatenate(parts))


def in_real_arithmetic(protocol: Gossip, observers: int | str | Iterable[int | str]) -> Guarantee:
    """The loss that the same gossip would have in real numbers: to stand beside the certified one, and no guarantee.

    >>> from netdp import account, graphs
    >>> p = Gossip(graphs.ring(8), rounds=6, sigma=2.0, grid=2.0**-20)
    >>> beside = in_real_arithmetic(p, [0])
    >>> beside.worst_epsilon(1e-6) <= account(p, [0]).worst_epsilon(1e-6), beside.is_certified
    (True, False)
    """
    members = observer_set(protocol.graph, observers)
    return dataclasses.replace(
        exact_loss(protocol.replace(grid=None), members),
        observers=Observers(members),
        claim=Claim.ESTIMATE,
        errata=("this figure is of real numbers; rounding to a grid can reveal more, so it is NOT a bound for a wire",),
    )


def wire_grid(protocol: Gossip, delta: float, *, epsilon: float = 10.0) -> float:
    """A grid to run this protocol on: the largest power of two that adds less than delta/1000 to δ at ε = 10.

    It is also no coarser than Δ/(1024√d), so that rounding a value adds next to nothing to Δ, and no finer than 64-bit states
    allow: then it may add more to δ, which the certified loss counts in any case. Without refresh only the grid's part in local DP
    matters, a millionth of σ.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.hypercube(6), rounds=12, sigma=4.0, refresh=1.0)
    >>> wire_grid(p, 1e-6) == 2.0**-50
    True
    """
    allowed = probability("delta", delta) / 1000
    step = power_below(min(protocol.sigma / 16, protocol.sensitivity / (1024 * math.sqrt(protocol.dimension))))
    if protocol.refresh == 0 and protocol.rounds > 1:
        return min(step, power_below(protocol.sigma / 2**20))
    square = Fraction(protocol.sigma) ** 2
    again = Fraction(protocol.refresh) * square / protocol.rounds
    while True:
        start, fresh = squared_steps(square, step), squared_steps(again, step)
        if (1 + math.exp(epsilon)) * _distance(protocol, start, fresh) <= allowed:
            return step
        finer = step / 2
        noise = squared_steps(square, finer) + (protocol.rounds - 1) * squared_steps(again, finer)
        if 16 * noise > MOST_STEPS**2 or protocol.sensitivity / finer > MOST_STEPS // 4:
            return step
        step = finer


@local.register
def _local(protocol: Gossip | RandomizedGossip) -> Guarantee:
    if protocol.grid is None:
        return local_in_real_numbers(protocol)
    return said(published_on_a_grid(protocol, 1), "every party publishes its own noisy value, on the grid", factor=1.0)


@curator.register
def _curator(protocol: Gossip | RandomizedGossip) -> Guarantee:
    if protocol.grid is None:
        return curator_in_real_numbers(protocol)
    said_of = (
        "a curator that everybody trusts sees all values, and only the sum with everybody's noise, on the grid, is seen"
    )
    return said(published_on_a_grid(protocol, protocol.n), said_of, factor=1.0 / protocol.n)


def published_on_a_grid(protocol: GossipOnAGrid, parties: int) -> ProfileCurve:
    """The curve of a single noisy value, or of a sum with the noise of so many parties, that everybody sees."""
    points = _points(_mu(protocol, np.array([1.0 / parties])), 1)
    return ProfileCurve(points, first_value_delta(protocol, points, parties))


def grid_assumptions(protocol: Gossip, apart: float, *, far: bool) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    said_of = [
        f"two values of one party have {coordinates} and differ by at most {protocol.sensitivity:g} in L2 norm (clip before "
        f"rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        "graph, weights, rounds, grid and noise levels are public and chosen without regard to the values",
        "values are fixed before the first send and do not react to messages",
        f"the initial noise is a discrete Gaussian of parameter {protocol.start_variance} squared grid steps, drawn exactly, from "
        "a cryptographic source; a simulation with NumPy's generators protects nobody",
    ]
    if math.isinf(apart):
        said_of.append(
            "no refresh: on a grid only local DP of the first noisy value is claimed, whatever the others do; the smaller, "
            "amplified figure holds in real arithmetic only (netdp.accounting.gossip.dithered.in_real_arithmetic)"
        )
        if far:
            said_of.append(
                f"parties out of reach, more than {protocol.rounds} hops from the observers, reveal nothing as long as all "
                "parties follow the protocol and messages are readable by sender and receiver alone"
            )
        return tuple(said_of)
    more = [
        "all parties follow the protocol to its end, and messages are readable by sender and receiver alone; the observers "
        "pool their own data, noise and all they receive",
        "every party keeps its final estimate; if party p publishes it, count p among the observers",
    ]
    if protocol.rounds > 1:
        more.append(
            f"fresh noise before every send but the first is a discrete Gaussian of parameter {protocol.fresh_variance} squared "
            "grid steps, drawn in the same way; states are mixed with the fractions of the gossip matrix and rounded exactly"
        )
    more.append(
        f"what is sent is within {apart:.2g} in total variation of the rounded ideal in real numbers: (1 + e^ε) times that is "
        "in δ; the factor is that of the ideal"
    )
    return (*said_of, *more)
