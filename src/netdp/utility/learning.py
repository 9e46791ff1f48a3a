"""How good a model becomes under noisy descent: bounds on its excess risk, proved for convex smooth losses.

Let f be the mean of the parties' losses f_v, all of them convex and β-smooth, θ* a model with f(θ*) ≤ inf f + G (G =
0: a minimiser), D ≥ ‖θ⁰ − θ*‖. Where m > 0 is stated, every f_v is m-strongly convex. Clipped gradients: f_v is the
loss whose gradient the clipped one is (`netdp.simulate.logistic`). Write e_t = E f(θᵗ) − f(θ*) ≥ −G and r_t = E‖θᵗ −
θ*‖². Proofs: docs/guarantees.md#excess-risk.

**Steps of everybody** (a curator, local DP, masked sums, gossip). θᵗ is the mean of all models, which moves by −ν(ḡ +
ξ), ḡ the mean of the gradients, each at its own party's model, ξ noise with E‖ξ‖² = s². Let V bound the mean squared
distance of the models from their mean, and b the length of a systematic error in ḡ (rounding; parties that lie). If ν
≤ 1/β,

    r_{t+1} + 2ν·e_{t+1} ≤ (1 − νm)·r_t + 2ν·a,       a = νs²(1 + νβ)/2 + βV/2 + b·R,      R² ≥ max r_t.             (1)

*Proof.* With g = ḡ (without error) and h = E_v[f_v(θ_v) + ⟨∇f_v(θ_v), θ − θ_v⟩] convexity and smoothness of every f_v
give, for all x, h + ⟨g, x − θ⟩ + m/2‖x − θ‖² ≤ f(x) ≤ h + ⟨g, x − θ⟩ + β/2(‖x − θ‖² + V): the mean of ‖x − θ_v‖² is
‖x − θ‖² + V. Let c be the error, ‖c‖ ≤ b. Then E‖θ⁺ − θ*‖² = ‖θ − θ*‖² − 2ν⟨g + c, θ − θ*⟩ + ν²‖g + c‖² + ν²s² with
⟨g, θ − θ*⟩ ≥ h − f(θ*) + m/2·‖θ − θ*‖², and E f(θ⁺) ≤ h − ν⟨g, g + c⟩ + β/2(ν²‖g + c‖² + ν²s² + V). Add 2ν times the
second to the first: what is left of c is ν²‖g + c‖² − 2ν²⟨g, g + c⟩ + βν³‖g + c‖² − 2ν⟨c, θ − θ*⟩ ≤ 2ν²⟨c, g + c⟩ −
2ν⟨c, θ − θ*⟩ = −2ν⟨c, E θ⁺ − θ*⟩ ≤ 2νb‖E θ⁺ − θ*‖, by νβ ≤ 1. ∎

**Weighted average** Σwₜθᵗ/Σwₜ, wₜ = (1 − νm)^{−t}, t = 1 … T. Multiply (1) by w_{t+1} and add up; f is convex:

    excess risk ≤ G + D²/(2νW) + a,   W = Σ_{t≤T} (1 − νm)^{−t}.                                                       (2)

**The last model.** (1) holds with any x in place of θ* (with 2R for R, as both may be that far from θ*). Let S_k be
the mean risk of the last k + 1 models; with x = θ^{T−k}, where r starts from 0, S_k − f(θ^{T−k}) ≤ a·k/(k+1), and
S_{k−1} = S_k + (S_k − f(θ^{T−k}))/k, so S_{k−1} ≤ S_k + a/(k+1): the argument of Shamir and Zhang. Begin with the
last j models: for every j ≤ T

    excess risk ≤ G + r_{T−j}/(2νj) + a·H_j,   H_j = 1 + 1/2 + … + 1/j,   r_i ≤ (1 − νm)ⁱD² + 2(a + G)(1 − (1 − νm)ⁱ)/m.   (3)

**How far models differ under gossip.** X = θ_v − θ̄ for all v. K rounds multiply by p_K(W) − J (J averages), of norm
ρ; gradients have norm at most L, the noise is fresh and has covariance σ²(I + κ·Laplacian) per coordinate. All start
alike:

    V_{t+1} ≤ ρ²(√V_t + νL)² + ν²σ²d·q,      q = tr[(p_K(W) − J)²(I + κ·Laplacian)]/n.

A party's own model instead of the mean: averaged over parties, f(θ_v) is at most f(θ̄) + βV/2, as ∇f(θ̄) is paired
with differences that cancel. (For single parties nothing is claimed.)

**One token on a walk over the complete graph.** θ⁺ = Π(θ − η(g_u(θ) + Z)), u uniform. E‖g_u + Z‖² ≤ Q = L² + dσ²,
projection onto a set that holds θ* only helps, so r_{t+1} ≤ (1 − ηm)r_t − 2ηe_t + η²Q + 2ηbR: no smoothness is
needed. Only the last model is released. As above, imagining one more step after the last, for every j ≤ T + 1

    excess risk ≤ G + r_{T+1−j}/(2ηj) + a(1 + H_{j−1}),     a = ηQ/2 + bR.                                            (4)

The mean of several tokens' models is no worse than (4), f being convex.

**Quadratic losses: an estimate for others.** If f is quadratic with curvatures h in [m, β] and noise is alike in all
directions, E f(θᵀ) − f(θ*) = ½Σ_i h_i[(1 − νh_i)^{2T}y_i² + ν²s²/d·(1 − (1 − νh_i)^{2T})/(1 − (1 − νh_i)²)], y = θ⁰ −
θ*, so that

    the last model's excess risk ≤ G + D²·max_h h(1 − νh)^{2T}/2 + νs²/(2(2 − νβ)),     h between m and β.             (5)

No logarithm is lost. Losses that are nearly quadratic where the model ends behave alike; (5) is then a better guide
than (3) and (4), and says that it is an `estimate` (shape="quadratic"). The noise of sampling is taken to be alike in
all directions too.

**The error b.** f of n parties that answer with other gradients of norm at most L move the mean by at most b = 2Lf/n,
whatever they choose and however they react. R: from x⁺² ≤ x² + c + 2νbx⁺ follows x_t ≤ √(D² + tc) + 2tνb (induction),
and for m > 0 also x ≤ max(D, (b + √(b² + 2m(a₀ + G)))/m), a₀ = a without b: above it (1) falls. Here c = 2ν(a₀ + G).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite, non_negative
from netdp.privacy import Claim

from .error import ExpectedError

SHAPES = ("convex", "quadratic")
"""What losses are taken to be: convex, which is proved, or nearly quadratic, which is an estimate."""

AVERAGES = ("last", "weighted")
"""Which model: that after the last step, or the average along the way, later models weighing more where losses are
strongly convex."""


@dataclass(frozen=True)
class Landscape:
    """What is known of the parties' losses: as much as it takes to predict how well they are learned.

    dimension    how many numbers a model has
    smoothness   β: the gradient of every party's loss (the clipped one, if gradients are clipped) is β-Lipschitz
    distance     D: how far the start (0) lies from a minimiser of the mean loss (or from a model that is good enough), at most
    convexity    m: every party's loss (the clipped one) is m-strongly convex wherever models go; 0 if all that is known is that
                 they are convex. Gradients clipped to L allow that within a distance of 2L/m at most, and liars or noise
                 may push models further: state m > 0 only where the clip is never reached
    behind       by how much the model at that distance is worse than the best, if it is not a minimiser: a nearer
                 model that is almost
                 as good often gives the better prediction

    `LogisticParties.landscape(clip)` computes one from data. That is for experiments: D says something about the data, so a
    plan for private data takes these numbers from public knowledge.

    >>> Landscape(dimension=10, smoothness=0.25, distance=4.0).condition
    inf
    """

    dimension: int
    smoothness: float
    distance: float
    convexity: float = 0.0
    behind: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", count("dimension", self.dimension))
        for name in ("smoothness", "distance", "convexity", "behind"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
        if self.convexity > self.smoothness:
            raise InvalidValue(
                f"convexity={self.convexity:g} is more than smoothness={self.smoothness:g}; no loss curves more than "
                "it may"
            )

    @property
    def condition(self) -> float:
        """β/m, the papers' κ."""
        return math.inf if self.convexity == 0 else self.smoothness / self.convexity

    def refuse_step(self, step: float) -> None:
        """Refuse a step for which nothing is proved."""
        if step * self.smoothness > 1 + 1e-12:
            raise Unsupported(
                f"step={step:g} is longer than 1/β = {1 / self.smoothness:.4g}, up to which the excess risk is "
                "bounded; shorten it"
            )


@dataclass(frozen=True)
class ExcessRisk(ExpectedError):
    """How much worse the model is than the best one: expected loss minus the least loss, by its cause.

    start     what is left of the way from the start to the best model
    noise     the noise that parties add
    sampling  whose turn it happened to be
    mixing    models that differ from party to party
    rounding  of gradients to a grid
    malice    parties that answer with gradients of their choosing
    claim     "upper", a proved bound, or "estimate"

    The `total` is a difference of losses, not a squared error: there is no `rmse`.
    """

    start: float = 0.0
    malice: float = 0.0
    claim: Claim = Claim.UPPER

    @property
    def total(self) -> float:
        """The excess risk."""
        return self.start + self.noise + self.sampling + self.mixing + self.rounding + self.malice

    @property
    def rmse(self) -> float:
        """There is none: an excess risk is a difference of losses."""
        raise Unsupported(
            "an excess risk is a difference of losses, not a squared error: it has no rmse; ask for .total"
        )

    def __str__(self) -> str:
        parts = [f"{name} {value:.3g}" for name, value in vars(self).items() if name != "claim" and value]
        return f"excess risk {'at most' if self.claim == Claim.UPPER else 'about'} {self.total:.3g} ({', '.join(parts) or '0'})"


@dataclass(frozen=True)
class Causes:
    """What one iteration adds, a of (1) by its parts, and the length b of a systematic error by its parts."""

    noise: float = 0.0
    sampling: float = 0.0
    mixing: float = 0.0
    rounding: float = 0.0  # of b
    malice: float = 0.0  # of b

    @property
    def random(self) -> float:
        """a without b."""
        return self.noise + self.sampling + self.mixing

    @property
    def systematic(self) -> float:
        """b."""
        return self.rounding + self.malice


def everybody_steps(
    landscape: Landscape, step: float, iterations: int, causes: Causes, average: str = "last", *, own: float = 0.0
) -> ExcessRisk:
    """Bounds (2) and (3); `own` is what a party's own model adds to the mean's.

    >>> valley = Landscape(dimension=1, smoothness=1.0, distance=2.0, convexity=0.5)
    >>> str(everybody_steps(valley, 0.5, 20, Causes(noise=0.01), "weighted"))
    'excess risk at most 0.0132 (noise 0.01, start 0.00318)'
    """
    landscape.refuse_step(step)
    if average not in AVERAGES:
        raise InvalidValue(f"unknown average {average!r}; choose one of {', '.join(AVERAGES)}")
    reach = _furthest(landscape, step, iterations, causes)
    if average == "weighted":
        start = landscape.distance**2 / (2 * step * _weights(step * landscape.convexity, iterations))
        return _by_cause(causes, start + landscape.behind, 1.0, reach, own)
    tails = np.arange(1, iterations + 1) if landscape.convexity else np.array([iterations])
    harmonic = np.cumsum(1.0 / np.arange(1, iterations + 1))[tails - 1]
    return _best_tail(landscape, step, iterations - tails, tails, harmonic, causes, 2 * reach, own)


def one_steps(
    landscape: Landscape, step: float, steps: int, causes: Causes, *, radius: float | None = None
) -> ExcessRisk:
    """Bound (4): a token, one user after the other."""
    reach = _furthest(landscape, step, steps, causes)
    if radius is not None:
        reach = min(reach, radius + landscape.distance)
    tails = np.arange(1, steps + 2) if landscape.convexity else np.array([steps + 1])
    harmonic = 1.0 + np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, steps + 1))])[tails - 1]
    return _best_tail(landscape, step, steps + 1 - tails, tails, harmonic, causes, 2 * reach, 0.0)


def if_quadratic(landscape: Landscape, step: float, steps: int, variance: Causes, *, own: float = 0.0) -> ExcessRisk:
    """Estimate (5) for the last model; `variance` holds s² of one step by its parts (and b by its own).

    >>> valley = Landscape(dimension=1, smoothness=1.0, distance=2.0)
    >>> str(if_quadratic(valley, 0.5, 20, Causes(noise=0.01)))
    'excess risk about 0.038 (noise 0.00167, start 0.0363)'
    """
    landscape.refuse_step(step)
    steepest = min(
        max(1.0 / (step * (2 * steps + 1)), landscape.convexity), max(landscape.smoothness, landscape.convexity)
    )
    left = steepest / 2 * (1.0 - step * steepest) ** (2 * steps)
    per_unit = step / (2 * (2 - step * landscape.smoothness))
    reach = _furthest(landscape, step, steps, Causes(noise=step * variance.random, malice=variance.systematic))
    return ExcessRisk(
        noise=per_unit * variance.noise,
        sampling=per_unit * variance.sampling,
        mixing=variance.mixing + own,
        rounding=variance.rounding * reach,
        start=landscape.behind + landscape.distance**2 * left,
        malice=variance.malice * reach,
        claim=Claim.ESTIMATE,
    )


def checked_shape(shape: str, average: str) -> bool:
    """Whether losses are taken to be quadratic."""
    if shape not in SHAPES:
        raise InvalidValue(f"unknown shape {shape!r}; choose one of {', '.join(SHAPES)}")
    if shape == "quadratic" and average != "last":
        raise InvalidValue(
            f"shape='quadratic' estimates the last model, not average={average!r}; leave one of them out"
        )
    return shape == "quadratic"


def consensus(step: float, clip: float, kept: FloatArray, fresh: FloatArray) -> FloatArray:
    """V_0 … V_T: how far models differ under gossip, mean square; ρ and σ²d·q of every iteration.

    >>> consensus(0.5, 1.0, np.array([0.5, 0.5]), np.array([1.0, 1.0])).round(4).tolist()
    [0.0, 0.3125, 0.5304]
    """
    apart = [0.0]
    for rho, variance in zip(kept, fresh, strict=True):
        apart.append(float(rho**2 * (math.sqrt(apart[-1]) + step * clip) ** 2 + step**2 * variance))
    return np.asarray(apart)


def weights(step: float, convexity: float, iterations: int) -> FloatArray:
    """How much each model θ¹ … θᵀ weighs in the average of (2), summing to 1: (1 − νm)^{−t}; alike where m = 0.

    >>> weights(0.5, 1.0, 3).round(4).tolist(), weights(0.5, 0.0, 4).tolist()
    ([0.1429, 0.2857, 0.5714], [0.25, 0.25, 0.25, 0.25])
    """
    rate = finite("step·convexity", step * non_negative("convexity", convexity))
    if not rate < 1:
        raise InvalidValue(f"step·convexity = {rate:g} must be below 1: a step is at most 1/smoothness")
    ages = np.arange(count("iterations", iterations))[::-1]
    heavy = (1.0 - rate) ** ages
    return np.asarray(heavy / heavy.sum())


def _weights(rate: float, iterations: int) -> float:
    """W = Σ_{t=1}^T (1 − νm)^{−t}; infinite where the start is forgotten."""
    if rate == 0:
        return float(iterations)
    if rate >= 1:
        return math.inf
    grown = -iterations * math.log1p(-rate)
    return math.inf if grown > 700 else math.expm1(grown) / rate


def _furthest(landscape: Landscape, step: float, iterations: int, causes: Causes) -> float:
    """R: no model is further from the best one than this, root mean square."""
    b, a = causes.systematic, causes.random + landscape.behind
    far = math.sqrt(landscape.distance**2 + 2 * step * a * iterations) + 2 * iterations * step * b
    if landscape.convexity:
        m = landscape.convexity
        far = min(far, max(landscape.distance, (b + math.sqrt(b**2 + 2 * m * a)) / m))
    return far


def _best_tail(
    landscape: Landscape,
    step: float,
    before: IntArray,
    tails: IntArray,
    harmonic: FloatArray,
    causes: Causes,
    reach: float,
    own: float,
) -> ExcessRisk:
    """The least over j of r_{before}/(2νj) + a·harmonic."""
    rate = step * landscape.convexity
    left = (1.0 - min(rate, 1.0)) ** before
    later = (1.0 - left) / (rate * tails) if rate else np.zeros(len(tails))
    start = left * landscape.distance**2 / (2 * step * tails) + (1.0 + later) * landscape.behind
    more = harmonic + later
    a = causes.random + causes.systematic * reach
    best = int(np.argmin(start + more * a))
    return _by_cause(causes, float(start[best]), float(more[best]), reach, own)


def _by_cause(causes: Causes, start: float, times: float, reach: float, own: float) -> ExcessRisk:
    return ExcessRisk(
        noise=times * causes.noise,
        sampling=times * causes.sampling,
        mixing=times * causes.mixing + own,
        rounding=times * causes.rounding * reach,
        start=start,
        malice=times * causes.malice * reach,
    )
