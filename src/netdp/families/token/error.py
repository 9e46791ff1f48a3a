"""The error of tokens: of the mean of the users' values, of the share of every value, or of a model, as a squared L2 norm.

A walk of T steps has noise of variance σ²/T, and the variance of the values over T, because users are drawn with replacement; on a
graph times (1 + λ₂)/(1 − λ₂) of the walk. Users that are visited unequally often add a bias. Proofs:
docs/proofs/token.md#token-error; of descents, and what liars can do: docs/proofs/learning.md#excess-risk and #influence.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum, ring_steps
from netdp.families.token.steps import walk_values
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.graphs.graph import Graph
from netdp.graphs.spectrum import MAX_DENSE
from netdp.graphs.transitions import transition_matrix
from netdp.models.parties import Landscape
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import between
from netdp.numerics.values import party_values
from netdp.privacy.guarantee import Claim
from netdp.protocols.accuracy import ExpectedError, predictions
from netdp.protocols.risk import (
    Causes,
    ExcessRisk,
    added_up,
    checked_shape,
    few_enough,
    if_quadratic,
    influences,
    known,
    lipschitz,
    one_steps,
    with_liars,
)


@influences.register
def _influence_on_walk(
    protocol: WalkDescent, liars: IntArray, losses: Landscape | None = None, *, failure: float | None = None
) -> FloatArray:
    n, each = protocol.n, 2 * protocol.step * protocol.clip
    share = float(np.asarray(protocol.stationary)[liars].sum())
    c = lipschitz(protocol, losses)
    if failure is None:
        moved = each * share * added_up(c, protocol.steps)
    else:
        chance = between("failure", failure, 0.0, 1.0, open_low=True, open_high=True)
        if protocol.graph is not None:
            raise Unsupported(
                "WalkDescent on a graph with failure=…: how often a walk meets the liars is bounded on the complete "
                "graph only; failure=None gives the average"
            )
        if c > 1:
            raise Unsupported(
                f"WalkDescent with expansion={c:g}: late visits count more than early ones, and only their average "
                "is bounded"
            )
        from scipy.stats import binom

        visits = (
            float(binom.isf(chance / (1 + 1e-9), protocol.steps * protocol.tokens, min(share, 1.0))) if share else 0.0
        )
        moved = each * visits / protocol.tokens
    if protocol.contributions is not None and c <= 1:
        moved = min(moved, each * protocol.contributions * len(liars))
    if protocol.radius is not None:
        moved = min(moved, 2 * protocol.radius)
    return np.full(n, moved)


@influences.register
def _influence_on_ring(protocol: RingDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    c, last = lipschitz(protocol, losses), protocol.steps - 1
    when = (np.arange(protocol.rounds)[:, None] * protocol.n + liars).ravel()
    with np.errstate(over="ignore"):
        moved = 2 * protocol.step * protocol.clip * float((np.float64(c) ** (last - when)).sum())
    return np.full(protocol.n, moved if protocol.radius is None else min(moved, 2 * protocol.radius))


@predictions.register
def _predict_walk(
    protocol: WalkDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape = known(protocol, losses)
    if average != "last":
        raise Unsupported(
            f"WalkDescent with average={average!r}: only the last model is released. A token that also carried the "
            "average of its models would show every holder sums of models that were hidden, which no bound on the "
            "loss allows for"
        )
    if protocol.contributions is not None:
        raise Unsupported(
            f"WalkDescent with contributions={protocol.contributions}: with a cap, how often a gradient is added "
            "depends on the walk in a way that is not predicted; leave the cap out, or train it in simulation"
        )
    _check_radius(protocol, landscape)
    quadratic = checked_shape(shape, average)
    half = 1.0 if quadratic else protocol.step / 2
    causes = Causes(
        noise=half * landscape.dimension * protocol.sigma**2,
        sampling=half * protocol.clip**2,
    )
    if protocol.graph is not None:
        causes = replace(causes, sampling=causes.sampling * _repetition(protocol.graph, protocol.walk))

    def risk(found: Causes) -> ExcessRisk:
        if quadratic:
            return if_quadratic(landscape, protocol.step, protocol.steps, found)
        return one_steps(landscape, protocol.step, protocol.steps, found, radius=protocol.radius)

    often = None if protocol.weights is None else protocol.chances
    found = with_liars(protocol, landscape, malicious, causes, risk, often=often, steps=protocol.steps)
    # closing noise moves the released model: f grows by at most β/2 times its mean square
    closing = (
        landscape.smoothness / 2 * landscape.dimension * float(protocol.closing) * (protocol.step * protocol.sigma) ** 2
    )
    return replace(found, noise=found.noise + closing, claim=found.claim if protocol.graph is None else Claim.ESTIMATE)


@predictions.register
def _predict_ring(
    protocol: RingDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape = known(protocol, losses)
    if average != "last":
        raise Unsupported(f"RingDescent with average={average!r}: as of a walk, only the last model is released")
    _check_radius(protocol, landscape)
    if checked_shape(shape, average):
        raise Unsupported(
            "RingDescent with shape='quadratic': users in a fixed order pull the model to and fro, which no "
            "estimate from the mean loss shows; leave shape out"
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


def _check_radius(protocol: WalkDescent | RingDescent, landscape: Landscape) -> None:
    if protocol.radius is not None and protocol.radius < landscape.distance:
        raise Unsupported(
            f"{type(protocol).__name__} with radius={protocol.radius:g}: the best model may lie {landscape.distance:g} away, "
            "outside the ball that models are kept in; widen the radius"
        )


def _repetition(graph: Graph, walk: Any) -> float:
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


# Eigenvalues of a dense matrix: about a second.
MAX_USERS = 2000


@predictions.register
def _predict_ring_token(protocol: RingSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    variance = float((protocol.hop_noise**2).sum()) + protocol.closing_noise**2
    columns = protocol.dimension if values is None else over_time(values, protocol.n).shape[2]
    return ExpectedError(
        noise=variance * columns / (protocol.rounds * protocol.n) ** 2,
        rounding=0.0 if protocol.grid is None else _rounding(protocol, values),
    )


def _rounding(protocol: RingSum, values: npt.ArrayLike | None) -> float:
    """What rounding to the grid moves the mean by, squared: known for given values, at most (g/2)² per coordinate."""
    if values is None:
        return protocol.dimension * protocol.step**2 / 4
    data = over_time(values, protocol.n)
    moved = protocol.step * ring_steps(protocol, data) - data
    return float((np.mean(moved, axis=(0, 1)) ** 2).sum())


@predictions.register
def _secret_ring(protocol: SecretRingSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    """Everybody contributes once a round: the noise of all rounds is all there is."""
    columns = 1 if values is None else over_time(values, protocol.n).shape[2]
    return ExpectedError(noise=protocol.sigma**2 * columns / (protocol.rounds * protocol.n**2))


@predictions.register
def _path(protocol: PathSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    contributing = int(protocol.given.sum())
    noises = sum(len(path) for path in protocol.paths) + protocol.closing * protocol.tokens
    weights = protocol.given / contributing
    columns = protocol.dimension if values is None else over_time(values, protocol.n).shape[2]
    bias = _bias(protocol, weights, values)
    return replace(bias, noise=_one_noise(protocol) * noises / contributing**2 * columns)


def _one_noise(protocol: PathSum | WalkSum | GraphWalkSum) -> float:
    """The variance of the noise of one visit."""
    return protocol.sigma**2 if protocol.grid is None else protocol.variance * protocol.step**2


def _as_added(protocol: PathSum | WalkSum | GraphWalkSum | WalkHistogram, data: FloatArray) -> FloatArray:
    """Values as a token adds them: on a grid, rounded."""
    if isinstance(protocol, WalkHistogram) or protocol.grid is None:
        return data
    return np.asarray(protocol.step * walk_values(protocol, data), dtype=np.float64)


def _bias(
    protocol: PathSum | WalkSum | GraphWalkSum | WalkHistogram, weights: FloatArray, values: npt.ArrayLike | None
) -> ExpectedError:
    """How far the mean with these weights of what is added lies from the mean of the values, squared.

    Without values uneven weights and rounding are taken at their worst at the same time; by at most g/2 per coordinate.
    """
    uneven = weights - 1.0 / protocol.n if np.ptp(weights) else np.zeros(protocol.n)
    if values is not None:
        data = over_time(values, protocol.n)
        shares = _shares_of_time(protocol, len(data))
        added = _as_added(protocol, data)
        off = np.einsum("p,u,pud->d", shares, uneven, added) + np.einsum("p,pud->d", shares, added - data) / protocol.n
        square = float((off**2).sum())
        return ExpectedError(0.0, sampling=square) if uneven.any() else ExpectedError(0.0, rounding=square)
    assert not isinstance(protocol, WalkHistogram)
    away = protocol.sensitivity / 2 * float(np.abs(uneven).sum())
    rounded = 0.0 if protocol.grid is None else math.sqrt(protocol.dimension) * protocol.step / 2
    claim = Claim.UPPER if away and rounded else Claim.EXACT
    return ExpectedError(0.0, sampling=away**2, rounding=(2 * away + rounded) * rounded, claim=claim)


def _shares_of_time(protocol: PathSum | WalkSum | GraphWalkSum | WalkHistogram, periods: int) -> FloatArray:
    if isinstance(protocol, PathSum):
        return np.full(periods, 1 / periods)
    return np.diff(-(-np.arange(periods + 1) * protocol.steps // periods)) / protocol.steps


@predictions.register
def _predict_walk_token(protocol: WalkSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(
            f"contributions={protocol.contributions}: with a cap, how often data is added depends on the walk in a way that "
            "is not predicted; leave the cap out, or simulate"
        )
    steps = protocol.steps * protocol.tokens
    noise = _one_noise(protocol) * _columns(protocol, values) / steps
    return _sampled(
        _bias(protocol, protocol.chances, values), noise, _spread(protocol, protocol.chances, values) / steps, values
    )


def _sampled(bias: ExpectedError, noise: float, luck: float, values: npt.ArrayLike | None) -> ExpectedError:
    """With noise, and luck in who is visited, which is bounded where no values are given."""
    claim = Claim.UPPER if values is None else bias.claim
    return replace(bias, noise=noise, sampling=bias.sampling + luck, claim=claim)


def _columns(protocol: WalkSum | GraphWalkSum, values: npt.ArrayLike | None) -> int:
    return protocol.dimension if values is None else over_time(values, protocol.n).shape[2]


def _spread(
    protocol: WalkSum | GraphWalkSum | WalkHistogram, weights: FloatArray, values: npt.ArrayLike | None
) -> float:
    """The variance of one contribution of users that are visited in proportion to `weights`."""
    if values is None:
        assert not isinstance(protocol, WalkHistogram)
        wider = 0.0 if protocol.grid is None else math.sqrt(protocol.dimension) * protocol.step
        return (protocol.sensitivity + wider) ** 2 / 4
    data = _as_added(protocol, over_time(values, protocol.n))
    centre = np.einsum("u,pud->pd", weights, data)
    shares = _shares_of_time(protocol, len(data))
    return float(np.einsum("p,u,pud->", shares, weights, (data - centre[:, None]) ** 2))


def over_time(values: npt.ArrayLike, n: int) -> FloatArray:
    """(periods, n, d) numbers; (n,) and (n, d) are one period."""
    given: Any = values
    if np.ndim(given) != 3:
        return party_values(given, n)[None]
    return np.stack([party_values(period, n) for period in given])


@predictions.register
def _graph_walk(protocol: GraphWalkSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: a capped walk on a graph has no public answer")
    steps = protocol.steps * protocol.tokens
    pi = np.asarray(protocol.stationary, dtype=np.float64)
    noises = (protocol.steps + protocol.closing) * protocol.tokens
    noise = _one_noise(protocol) * noises / steps**2 * _columns(protocol, values)
    bias, spread = _bias(protocol, pi, values), _spread(protocol, pi, values)
    data = None if values is None else _as_added(protocol, over_time(values, protocol.n))
    luck, claim = _correlated(protocol, pi, spread, data)
    return replace(_sampled(bias, noise, luck / steps, values), claim=claim)


def _correlated(
    protocol: GraphWalkSum | WalkHistogram, pi: FloatArray, spread: float, data: FloatArray | None
) -> tuple[float, Claim]:
    """The variance of the mean of a stationary walk, times its steps: exact for the values of one period, else at most.

    A function f = Σ c_i ψ_i of the eigenfunctions has Σ c_i²·k(λ_i), k(λ) = (1 + λ)/(1 − λ) − 2λ(1 − λ^T)/(T(1 − λ)²), which grows
    with λ (docs/proofs/token.md#token-error).
    """
    n, T = protocol.n, protocol.steps
    periods = 1 if data is None else len(data)
    if n > MAX_USERS:
        raise Unsupported(f"the error of a walk needs the eigenvalues of {n} users; it is offered up to {MAX_USERS}")
    root = np.sqrt(pi)
    symmetric = root[:, None] * protocol.transition.toarray() / root[None, :]
    if not np.allclose(symmetric, symmetric.T, rtol=1e-9, atol=1e-12):
        raise Unsupported(
            "a walk along arrows is not reversible, and how much its steps say the same is not proved; simulate"
        )
    eigenvalues, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    if n == 1:
        return 0.0, Claim.EXACT
    eigenvalues, vectors = np.minimum(eigenvalues[:-1], 1 - 1e-15), vectors[:, :-1]
    k = (1 + eigenvalues) / (1 - eigenvalues) - 2 * eigenvalues * (1 - eigenvalues**T) / (T * (1 - eigenvalues) ** 2)
    if data is not None and periods == 1:
        parts = (vectors.T @ (root[:, None] * data[0])) ** 2
        return float((k[:, None] * parts).sum()), Claim.EXACT
    second = float(eigenvalues[-1])
    if periods == 1:
        return spread * float(k[-1]), Claim.UPPER
    if periods > 1:
        second = float(np.abs(eigenvalues).max())
        if not second < 1 - 1e-12:
            raise Unsupported(
                "values over time on a graph whose two halves take turns (bipartite, simple walk): the error does "
                "not shrink with the steps; take walk='metropolis', or one period"
            )
    return spread * (1 + second) / (1 - second), Claim.UPPER


@predictions.register
def _ring_histogram(protocol: RingHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    answers = protocol.rounds * protocol.n
    random = protocol.blanket + protocol.closing_blanket
    besides = protocol.domain / 4 if protocol.response == "unary" else 1 - 1 / protocol.domain
    variance = answers * _answer_variance(protocol) + random * besides
    return ExpectedError(noise=_shares_variance(variance, protocol.gamma, answers))


@predictions.register
def _walk_histogram(protocol: WalkHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: with a cap the error is not predicted; simulate")
    steps = protocol.steps * protocol.tokens
    pi = np.asarray(protocol.stationary, dtype=np.float64)
    claim, data = Claim.EXACT, None
    if values is None:
        unlike, claim = 1 - 1 / protocol.domain, Claim.UPPER
        # the worst: who is visited too often holds one value, the others another
        bias = 2 * (np.abs(pi - 1.0 / protocol.n).sum() / 2) ** 2 if np.ptp(pi) else 0.0
    else:
        data = np.eye(protocol.domain)[np.atleast_2d(np.asarray(values))]
        unlike, bias = _spread(protocol, pi, data), _bias(protocol, pi, data).sampling
    if protocol.network is not None:
        unlike, claim = _correlated(protocol, pi, unlike, data)
    noise = _shares_variance(steps * _answer_variance(protocol), protocol.gamma, steps)
    return ExpectedError(noise=noise, sampling=unlike / steps + float(bias), claim=claim)


def _answer_variance(protocol: RingHistogram | WalkHistogram) -> float:
    domain, gamma = protocol.domain, protocol.gamma
    if protocol.response == "unary":
        return domain * gamma / 2 * (1 - gamma / 2)
    own, other = 1 - gamma + gamma / domain, gamma / domain
    return 1 - own**2 - (domain - 1) * other**2


def _shares_variance(variance: float, gamma: float, answers: int) -> float:
    return math.inf if gamma >= 1 else variance / ((1 - gamma) * answers) ** 2
