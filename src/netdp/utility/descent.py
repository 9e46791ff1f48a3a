"""The excess risk of every learning protocol: what of it enters the bounds of `netdp.utility.learning`.

    curator, local DP    s² = dσ²/n: the noise of the mean is the same by definition of their σ
    masked sums          s² = d·v·g²/n, v the variance of a share in squared steps of the grid g (a discrete Gaussian has no more);
                         rounding moves the mean gradient by at most b = √d·g/2
    gossip               s² = dσ²/n: every round keeps the mean, and masks cancel in it; models differ (V)
    a token              L² + dσ² per step; users drawn with unequal weights learn the mean of the losses with these weights;
                         on a graph the users' gradients come in runs: an estimate, see below

**A token on a ring.** Let θ_k be the model before round k. In one round E‖θ_{k+1} − x‖² ≤ ‖θ_k − x‖² −
2ηΣ_i(f_i(θ_{k,i}) − f_i(x)) + η²n(L² + dσ²), θ_{k,i} the model before user i, which is E‖θ_{k,i} − θ_k‖ ≤ η(iL +
σ√(id)) away; f_i has a slope of at most L, so Σ_i f_i(θ_{k,i}) ≥ n·f(θ_k) − ηL(Ln²/2 + ⅔σ√d·n^{3/2}). With one step
of length nη per round that is (4) with a = η(dσ²/2 + ⅔Lσ√(dn) + L²(1 + n)/2): a fixed order may be n times as bad as
drawing users. Liars are paid for by how far they move the model (`netdp.utility.influence`).

**A token on a graph.** Holders are a reversible Markov chain, so the gradients of successive steps are correlated,
and (4) of `netdp.utility.learning` is not proved for it. A time average of the chain has up to (1 + λ₂)/(1 − λ₂)
times the variance of as many independent draws (`netdp.utility.token`); the part of (4) that comes from sampling is
multiplied by that. The claim is `estimate`. The walk must visit all users equally often (walk="metropolis", or a
regular graph): otherwise it learns a weighted mean of the losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.transitions import transition_matrix
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import whole
from netdp.privacy import Claim
from netdp.protocols import (
    CentralDescent,
    GossipDescent,
    LocalDescent,
    MaskedDescent,
    RingDescent,
    WalkDescent,
    response,
)
from netdp.protocols.descent import GossipRounds

from .error import predictions
from .influence import added_up, lipschitz, refuse_unpredicted
from .learning import (
    Causes,
    ExcessRisk,
    Landscape,
    checked_shape,
    consensus,
    everybody_steps,
    if_quadratic,
    one_steps,
)
from .spectral import MAX_DENSE, spectrum

# Eigenvalues of many different graphs: each takes its time.
_MAX_CHANGING = 600


@predictions.register
def _mean_of_all(
    protocol: CentralDescent | LocalDescent,
    losses: Any = None,
    *,
    average: str = "last",
    malicious: int = 0,
    shape: str = "convex",
) -> ExcessRisk:
    landscape = known(protocol, losses)
    variance = landscape.dimension * protocol.sigma**2 / protocol.n
    return _all_alike(protocol, landscape, Causes(noise=variance), average, malicious, shape)


@predictions.register
def _masked(
    protocol: MaskedDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape, one = known(protocol, losses), protocol.sum
    if protocol.aggregate != "mean":
        raise Unsupported(
            f"MaskedDescent with aggregate={protocol.aggregate!r}: the median of groups is not their mean, and how "
            "far it is from it "
            "depends on the losses; train it in simulation"
        )
    refuse_unpredicted(protocol)
    if landscape.dimension > protocol.dimension:
        raise InvalidValue(
            f"models have {landscape.dimension} numbers, the protocol states dimension={protocol.dimension}; state "
            "at least as many"
        )
    d = landscape.dimension
    variance = Causes(noise=d * one.share * one.step**2 / protocol.n, rounding=math.sqrt(d) * one.step / 2)
    return _all_alike(protocol, landscape, variance, average, malicious, shape)


def _all_alike(
    protocol: Any, landscape: Landscape, variance: Causes, average: str, malicious: int, shape: str
) -> ExcessRisk:
    """One model for all; `variance` holds s² (and b)."""
    nu, T = protocol.step, protocol.iterations
    if checked_shape(shape, average):
        return with_liars(protocol, landscape, malicious, variance, lambda found: if_quadratic(landscape, nu, T, found))
    causes = replace(variance, noise=noise_part(landscape, nu, variance.noise))
    return with_liars(
        protocol, landscape, malicious, causes, lambda found: everybody_steps(landscape, nu, T, found, average)
    )


@predictions.register
def _gossip(
    protocol: GossipDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape = known(protocol, losses)
    d, step, beta = landscape.dimension, protocol.step, landscape.smoothness
    kept, traces = mixed(protocol)
    apart = consensus(step, protocol.clip, kept, d * protocol.sigma**2 * traces)
    causes = Causes(
        noise=noise_part(landscape, step, d * protocol.sigma**2 / protocol.n),
        mixing=beta * float(apart[:-1].max()) / 2,
    )
    own = beta * float(apart[1:].max() if average == "weighted" else apart[-1]) / 2
    quadratic = checked_shape(shape, average)
    if quadratic:
        causes = replace(causes, noise=d * protocol.sigma**2 / protocol.n)

    def risk(found: Causes) -> ExcessRisk:
        if quadratic:
            return if_quadratic(landscape, step, protocol.iterations, found, own=own)
        return everybody_steps(landscape, step, protocol.iterations, found, average, own=own)

    return with_liars(protocol, landscape, malicious, causes, risk, kept=not protocol.accelerated)


@predictions.register
def _walk(
    protocol: WalkDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape = known(protocol, losses)
    if average != "last":
        raise Unsupported(
            f"WalkDescent with average={average!r}: only the last model is released. A token that also carried the "
            "average of "
            "its models would show every holder sums of models that were hidden, which no bound on the loss allows for"
        )
    if protocol.contributions is not None:
        raise Unsupported(
            f"WalkDescent with contributions={protocol.contributions}: with a cap, how often a gradient is added "
            "depends on the "
            "walk in a way that is not predicted; leave the cap out, or train it in simulation"
        )
    if protocol.radius is not None and protocol.radius < landscape.distance:
        raise Unsupported(
            f"WalkDescent with radius={protocol.radius:g}: the best model may lie {landscape.distance:g} away, "
            "outside the ball "
            "that models are kept in; widen the radius"
        )
    quadratic = checked_shape(shape, average)
    half = 1.0 if quadratic else protocol.step / 2
    causes = Causes(
        noise=half * landscape.dimension * protocol.sigma**2,
        sampling=half * protocol.clip**2,
    )
    if protocol.graph is not None:
        causes = replace(causes, sampling=causes.sampling * _runs(protocol.graph, protocol.walk))

    def risk(found: Causes) -> ExcessRisk:
        if quadratic:
            return if_quadratic(landscape, protocol.step, protocol.steps, found)
        return one_steps(landscape, protocol.step, protocol.steps, found, radius=protocol.radius)

    found = with_liars(protocol, landscape, malicious, causes, risk)
    # closing noise moves the released model: f grows by at most β/2 times its mean square
    closing = (
        landscape.smoothness / 2 * landscape.dimension * float(protocol.closing) * (protocol.step * protocol.sigma) ** 2
    )
    return replace(found, noise=found.noise + closing, claim=found.claim if protocol.graph is None else Claim.ESTIMATE)


@predictions.register
def _ring(
    protocol: RingDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape = known(protocol, losses)
    if average != "last":
        raise Unsupported(f"RingDescent with average={average!r}: as of a walk, only the last model is released")
    if protocol.radius is not None and protocol.radius < landscape.distance:
        raise Unsupported(
            f"RingDescent with radius={protocol.radius:g}: the best model may lie {landscape.distance:g} away, "
            "outside the "
            "ball that models are kept in; widen the radius"
        )
    if checked_shape(shape, average):
        raise Unsupported(
            "RingDescent with shape='quadratic': users in a fixed order pull the model to and fro, which no estimate "
            "from the "
            "mean loss shows; leave shape out"
        )
    n, d, eta, sigma, clip = protocol.n, landscape.dimension, protocol.step, protocol.sigma, protocol.clip
    causes = Causes(
        noise=eta * (d * sigma**2 / 2 + 2 / 3 * clip * sigma * math.sqrt(d * n)),
        sampling=eta * clip**2 * (1 + n) / 2,
    )
    flat = replace(landscape, convexity=0.0)
    found = one_steps(flat, n * eta, protocol.rounds, causes, radius=protocol.radius)
    number = few_enough(protocol, malicious)
    moved = 2 * eta * clip * number * added_up(lipschitz(protocol, landscape) ** n, protocol.rounds)
    return replace(found, malice=clip * moved)


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
) -> ExcessRisk:
    """The risk if so many parties lie: as a systematic error of the mean gradient, or by how far they move the model.

    They move it by 2νL(f/n)·Σcᵗ on average over the parties (`netdp.utility.influence`; weights ≥ 0, `kept`), and no loss
    has a larger slope than L. The smaller counts.
    """
    number = few_enough(protocol, malicious)
    if number == 0:
        return risk(causes)
    share = number / protocol.n
    if isinstance(protocol, WalkDescent) and protocol.weights is not None:
        share = float(np.sort(protocol.chances)[-number:].sum())  # those who are drawn most often
    push = 2.0 * protocol.clip * share
    erring = risk(replace(causes, malice=push))
    if not kept:
        return erring
    iterations = protocol.steps if isinstance(protocol, WalkDescent) else protocol.iterations
    # gradients of models that differ may be rounded in opposite ways
    moved = (push + 2 * causes.rounding) * protocol.step * added_up(lipschitz(protocol, landscape), iterations)
    pushed = replace(risk(causes), malice=protocol.clip * moved)
    return min(erring, pushed, key=lambda found: found.total)


def mixed(protocol: GossipDescent) -> tuple[FloatArray, FloatArray]:
    """ρ and q of every iteration: what K rounds keep of differences, and of fresh noise."""
    if protocol.is_static:
        rho, trace = _one_mixing(protocol.rounds_of(0))
        return np.full(protocol.iterations, rho), np.full(protocol.iterations, trace)
    if protocol.n > _MAX_CHANGING:
        raise Unsupported(
            f"GossipDescent on changing graphs: each takes the eigenvalues of {protocol.n} parties; it is offered up "
            f"to {_MAX_CHANGING}"
        )
    found = np.array([_one_mixing(protocol.rounds_of(t)) for t in range(protocol.iterations)])
    return found[:, 0], found[:, 1]


@lru_cache(maxsize=256)
def _one_mixing(rounds: GossipRounds) -> tuple[float, float]:
    eigenvalues, energies = spectrum(rounds.graph, rounds.mixing)
    *_, left = response(lambda x: eigenvalues * x, np.ones(rounds.graph.n), rounds.rounds + 1, rounds.chebyshev)
    squares = left[1:] ** 2
    if not squares.size:
        return 0.0, 0.0
    return math.sqrt(float(squares.max())), float((squares * (1 + rounds.masks * energies[1:])).sum()) / rounds.graph.n


def _runs(graph: Graph, walk: Any) -> float:
    """(1 + λ₂)/(1 − λ₂) of the walk."""
    if not isinstance(walk, str) or (walk != "metropolis" and graph.degrees.min() != graph.degrees.max()):
        raise Unsupported(
            f"WalkDescent with walk={walk!r}: users are visited unequally often, so it learns a weighted mean of the "
            "losses; "
            'walk="metropolis" visits all alike'
        )
    if graph.n > MAX_DENSE:
        raise Unsupported(
            f"WalkDescent on a graph: it takes the eigenvalues of {graph.n} users; offered up to {MAX_DENSE}"
        )
    second = float(np.linalg.eigvalsh(transition_matrix(graph, walk).toarray())[-2])
    return (1 + second) / (1 - second)
