"""How good a model becomes under noisy descent, and how far parties that lie can move it: proved bounds for convex smooth losses.

`everybody_steps` and `one_steps` are the bounds (2), (3) and (4) on the excess risk, where all parties step together or a
token goes from one to the other; `if_quadratic` is the estimate (5). Each family says what of its protocols enters them:
noise, rounding, how far models differ (docs/proofs/learning.md#excess-risk). A liar keeps to the protocol and makes up its
gradients; its influence is bounded because every gradient is clipped. Who does not keep to the protocol is not bound at all
(docs/proofs/learning.md#influence).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.models.parties import Landscape
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, finite, non_negative, whole
from netdp.privacy.guarantee import Claim
from netdp.protocols.accuracy import ExpectedError
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table

SHAPES = ("convex", "quadratic")
"""What losses are taken to be: convex, which is proved, or nearly quadratic, which is an estimate."""

AVERAGES = ("last", "weighted")
"""Which model: that after the last step, or the average along the way, later models weighing more where losses are
strongly convex."""


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
        parts = [f"{name} {value:.3g}" for name, value in self.parts.items() if value]
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


influences = Table("the influence of liars", "has no bound on the influence of liars", part="error")
"""(protocol, liars, landscape or None) → how far each party's model can be moved (n,)."""


def influence(
    protocol: Protocol, liars: Iterable[int | str], losses: Landscape | None = None, **options: Any
) -> FloatArray:
    """How far parties that lie about their data can move the model of every party, at most (n,).

    liars    who they are, by number or name
    losses   a `Landscape`: its strong convexity makes the network forget; without it steps are taken not to expand (or by no more
             than the protocol's `expansion`)
    failure  (walks) None: on average over walks; a probability: exceeded by no more of them

    >>> from netdp import GossipDescent
    >>> from netdp import LocalDescent
    >>> from netdp import graphs
    >>> influence(LocalDescent(10, 5, sigma=1.0, step=0.1, clip=0.5), [3]).round(9).tolist()[0]      # 2·0.1·0.5·5/10
    0.05
    >>> p = GossipDescent(graphs.path(3), 2, 1, sigma=1.0, step=0.5, clip=1.0)
    >>> influence(p, [0]).round(4).tolist()
    [1.2222, 0.6667, 0.1111]
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.GossipDescent(…), got {protocol!r}")
    who = np.asarray(_members(protocol, liars), dtype=np.int64)
    found: FloatArray = influences(protocol, who, losses, **options)
    return found


def moved_mean(protocol: Any, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    """How far liars move a model whose every step is the mean of all gradients: by 2νL(f/n) in each of T steps, at most."""
    share = len(liars) / protocol.n
    c = lipschitz(protocol, losses)
    return np.full(protocol.n, 2 * protocol.step * protocol.clip * share * added_up(c, protocol.iterations))


def lipschitz(protocol: Any, losses: Landscape | None) -> float:
    """c: how far apart an honest step brings two models, at most."""
    if losses is None:
        return float(getattr(protocol, "expansion", 1.0))
    if not isinstance(losses, Landscape):
        raise InvalidValue(f"losses must be a netdp.learn.Landscape, or None, got {type(losses).__name__}")
    step = float(protocol.step)
    return max(1.0 - step * losses.convexity, step * losses.smoothness - 1.0, 0.0)


def added_up(c: float, iterations: int) -> float:
    """Σ_{t<T} cᵗ.

    >>> added_up(1.0, 7), round(added_up(0.5, 50), 9)
    (7.0, 2.0)
    """
    with np.errstate(over="ignore"):
        return float((np.float64(c) ** np.arange(iterations)).sum())


def _members(protocol: Protocol, liars: Any) -> list[int]:
    if isinstance(liars, int | str) or liars is None:
        raise InvalidValue(f"liars must be a list of parties such as [0, 5], got {liars!r}")
    network = protocol.network
    members = [whole("liars", i) if network is None else network.index(i) for i in liars]
    if len(set(members)) < len(members) or any(i >= protocol.n for i in members):
        raise InvalidValue(f"liars must be different parties, of {protocol.n} there are, got {liars!r}")
    return sorted(members)


def _all_alike(
    protocol: Any, landscape: Landscape, variance: Causes, average: str, malicious: int, shape: str
) -> ExcessRisk:
    """One model for all; `variance` holds s² (and b)."""
    nu, T = protocol.step, protocol.iterations
    if checked_shape(shape, average):
        return with_liars(protocol, landscape, malicious, variance, lambda parts: if_quadratic(landscape, nu, T, parts))
    causes = replace(variance, noise=noise_part(landscape, nu, variance.noise))
    return with_liars(
        protocol, landscape, malicious, causes, lambda parts: everybody_steps(landscape, nu, T, parts, average)
    )


def known(protocol: Any, losses: Any) -> Landscape:
    """The landscape, or a refusal that says what is missing."""
    if losses is None:
        raise Unsupported(
            f"{type(protocol).__name__} learns a model: how good it becomes depends on the losses. Say what is known "
            "of them, "
            "expected_error(protocol, netdp.learn.Landscape(dimension=…, smoothness=…, distance=…)), or train it in "
            "simulation "
            "(netdp.learn)"
        )
    if not isinstance(losses, Landscape):
        raise InvalidValue(
            f"the error of {type(protocol).__name__} is predicted from a netdp.learn.Landscape, got "
            f"{type(losses).__name__}; "
            "LogisticParties.landscape(clip) computes one"
        )
    return losses


def noise_part(landscape: Landscape, step: float, variance: float) -> float:
    """νs²(1 + νβ)/2."""
    return step * variance * (1 + step * landscape.smoothness) / 2


def few_enough(protocol: Any, malicious: Any) -> int:
    """How many lie, or a refusal."""
    number = whole("malicious", malicious)
    if number > protocol.n:
        raise InvalidValue(f"malicious={number} of {protocol.n} parties; give at most {protocol.n}")
    return number


def with_liars(
    protocol: Any,
    landscape: Landscape,
    malicious: Any,
    causes: Causes,
    risk: Callable[[Causes], ExcessRisk],
    *,
    kept: bool = True,
    often: FloatArray | None = None,
    steps: int | None = None,
) -> ExcessRisk:
    """The risk if so many parties lie: as a systematic error of the mean gradient, or by how far they move the model.

    They move it by 2νL(f/n)·Σcᵗ on average over the parties (weights ≥ 0, `kept`), and no loss has a larger slope than L.
    The smaller counts. `often`: the share of the `steps` that each party takes, where these differ;
    those who step most often lie.
    """
    number = few_enough(protocol, malicious)
    if number == 0:
        return risk(causes)
    share = number / protocol.n if often is None else float(np.sort(often)[-number:].sum())
    push = 2.0 * protocol.clip * share
    erring = risk(replace(causes, malice=push))
    if not kept:
        return erring
    iterations = protocol.iterations if steps is None else steps
    # gradients of models that differ may be rounded in opposite ways
    moved = (push + 2 * causes.rounding) * protocol.step * added_up(lipschitz(protocol, landscape), iterations)
    pushed = replace(risk(causes), malice=protocol.clip * moved)
    return min(erring, pushed, key=lambda found: found.total)
