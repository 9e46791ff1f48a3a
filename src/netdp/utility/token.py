"""The error of tokens: of the mean of the users' values, or of the share of every value (squared L2 norm over the values).

**Known paths.** What is read is Σ c_u x_u / C plus noise, c_u the contributions of u and C their number. The noise has the
variance of all noises over C²; the rest is (Σ (c_u/C − 1/n) x_u)², for values in an interval of length Δ at most
(Δ/2·Σ|c_u/C − 1/n|)².

**Walk on the complete graph.** T contributions of users drawn with replacement: noise σ²/T, and the variance v ≤ Δ²/4
of the values over T. With weights w the mean and the variance are those with weights, and the mean is off by Σ(w_u −
1/n)x_u, at most Δ/2·Σ|w_u − 1/n|.

**Values over time**, (periods, n, d): what is read estimates the mean over all periods, each counted by its steps
(all alike if their number divides T). Draws are independent, so the variances of the steps are averaged. On a graph
the correlation of two steps s apart is at most |λ|^s times their deviations, |λ| the largest modulus below 1, so the
factor is (1 + |λ|)/(1 − |λ|).

**Walk on a graph.** It starts in its stationary law π, so the time average has mean Σπ_u x_u and, the walk being reversible,
variance at most Var_π(x)·(1 + λ₂)/((1 − λ₂)T): expand x in eigenvectors of the transition matrix; each contributes
Σ_{|s|<T}(1 − |s|/T)λ^|s|/T ≤ (1 + λ)/((1 − λ)T), which grows with λ.

**Histograms.** One answer is value i with probability P_i = (1−γ)·[i is true] + γ/L: its variance, summed over i, is
1 − a² − (L−1)b² with a = 1 − γ + γ/L, b = γ/L, whatever the true value; a uniformly random element has 1 − 1/L. Unary
encoding: every bit is 0 or 1 with probabilities γ/2 and 1 − γ/2, so L·(γ/2)(1 − γ/2); a random element has L/4.
Estimates divide counts by (1−γ) and by the number of answers. On a walk the drawn users add 1 − Σf_i² per answer, f
the true shares.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.values import party_values
from netdp.protocols import (
    GraphWalkSum,
    PathSum,
    RingDescent,
    RingHistogram,
    RingSum,
    SecretRingSum,
    WalkHistogram,
    WalkSum,
)
from netdp.protocols.ring import ring_steps
from netdp.protocols.walk_steps import walk_values

from .error import ExpectedError, predictions

predictions.refuse(
    RingDescent,
    why="how good a model becomes when users come in a fixed order depends on the order and on the data; train it in "
    "simulation (netdp.learn.train_ring), or predict a walk of as many steps (WalkDescent)",
)

# Eigenvalues of a dense matrix: about a second.
MAX_USERS = 2000
Weighted: TypeAlias = tuple[float, float, int]


@predictions.register
def _ring(protocol: RingSum, values: npt.ArrayLike | None = None) -> ExpectedError:
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
    uneven = protocol.given / contributing - 1.0 / protocol.n
    if values is None:
        sampling = (protocol.sensitivity / 2 * float(np.abs(uneven).sum())) ** 2
    else:
        sampling = float(((uneven @ party_values(values, protocol.n)) ** 2).sum())
    columns = protocol.dimension if values is None else int(np.shape(party_values(values, protocol.n))[1])
    return ExpectedError(
        noise=_one_noise(protocol) * noises / contributing**2 * columns,
        sampling=sampling,
        rounding=_moved(protocol, protocol.given / contributing, values),
    )


def _one_noise(protocol: PathSum | WalkSum | GraphWalkSum) -> float:
    """The variance of the noise of one visit."""
    return protocol.sigma**2 if protocol.grid is None else protocol.variance * protocol.step**2


def _moved(protocol: PathSum | WalkSum | GraphWalkSum, weights: FloatArray, values: npt.ArrayLike | None) -> float:
    """What rounding to the grid moves the mean with these weights by, squared; at most (g/2)² per coordinate."""
    if protocol.grid is None:
        return 0.0
    if values is None:
        return protocol.dimension * protocol.step**2 / 4
    data = over_time(values, protocol.n)
    moved = protocol.step * walk_values(protocol, data) - data
    return float((np.mean(np.einsum("u,pud->pd", weights, moved), axis=0) ** 2).sum())


@predictions.register
def _walk(protocol: WalkSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(
            f"contributions={protocol.contributions}: with a cap, how often data is added depends on the walk in a way that "
            "is not predicted; leave the cap out, or simulate"
        )
    steps = protocol.steps * protocol.tokens
    spread, bias, columns = _weighted(protocol, protocol.chances, values)
    return ExpectedError(
        noise=_one_noise(protocol) * columns / steps,
        sampling=spread / steps + bias,
        rounding=_moved(protocol, protocol.chances, values),
    )


def _weighted(
    protocol: WalkSum | GraphWalkSum | WalkHistogram, weights: FloatArray, values: npt.ArrayLike | None
) -> Weighted:
    """For users visited in proportion to `weights`: the variance of one contribution, the squared bias, the columns."""
    uneven = weights - 1.0 / protocol.n
    if values is None:
        assert not isinstance(protocol, WalkHistogram)
        bias = (protocol.sensitivity / 2 * float(np.abs(uneven).sum())) ** 2 if np.ptp(weights) else 0.0
        return protocol.sensitivity**2 / 4, bias, protocol.dimension
    data = over_time(values, protocol.n)
    length = (
        np.diff(-(-np.arange(len(data) + 1) * protocol.steps // len(data))) / protocol.steps
    )  # shares of the periods
    centre = np.einsum("u,pud->pd", weights, data)
    spread = float(np.einsum("p,u,pud->", length, weights, (data - centre[:, None]) ** 2))
    off = np.einsum("p,u,pud->d", length, uneven, data) if np.ptp(weights) else np.zeros(data.shape[2])
    return spread, float((off**2).sum()), data.shape[2]


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
    spread, bias, columns = _weighted(protocol, pi, values)
    noises = (protocol.steps + protocol.closing) * protocol.tokens
    periods = 1 if values is None else len(over_time(values, protocol.n))
    return ExpectedError(
        noise=_one_noise(protocol) * noises / steps**2 * columns,
        sampling=spread * _correlation(protocol, pi, periods) / steps + bias,
        rounding=_moved(protocol, pi, values),
    )


def _correlation(protocol: GraphWalkSum | WalkHistogram, pi: FloatArray, periods: int) -> float:
    """By how much the steps of a walk on a graph say the same: the variance of their mean over that of independent draws."""
    n = protocol.n
    if n > MAX_USERS:
        raise Unsupported(f"the error of a walk needs the eigenvalues of {n} users; it is offered up to {MAX_USERS}")
    root = np.sqrt(pi)
    symmetric = root[:, None] * protocol.transition.toarray() / root[None, :]
    if not np.allclose(symmetric, symmetric.T, rtol=1e-9, atol=1e-12):
        raise Unsupported(
            "a walk along arrows is not reversible, and how much its steps say the same is not proved; simulate"
        )
    eigenvalues = np.linalg.eigvalsh((symmetric + symmetric.T) / 2)[:-1] if n > 1 else np.zeros(1)
    second = float(eigenvalues[-1])
    if periods > 1:
        second = float(np.abs(eigenvalues).max())
        if not second < 1 - 1e-12:
            raise Unsupported(
                "values over time on a graph whose two halves take turns (bipartite, simple walk): the error does "
                "not shrink with "
                "the steps; take walk='metropolis', or one period"
            )
    return (1 + second) / (1 - second)


@predictions.register
def _ring_histogram(protocol: RingHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    answers = protocol.rounds * protocol.n
    random = protocol.blanket + protocol.closing_blanket
    besides = protocol.domain / 4 if protocol.response == "unary" else 1 - 1 / protocol.domain
    variance = answers * _answer_variance(protocol) + random * besides
    return ExpectedError(noise=_over(variance, protocol.gamma, answers))


@predictions.register
def _walk_histogram(protocol: WalkHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: with a cap the error is not predicted; simulate")
    steps, periods = protocol.steps * protocol.tokens, 1
    pi = np.asarray(protocol.stationary, dtype=np.float64)
    if values is None:
        unlike = 1 - 1 / protocol.domain
        # the worst: who is visited too often holds one value, the others another
        bias = 2 * (np.abs(pi - 1.0 / protocol.n).sum() / 2) ** 2 if np.ptp(pi) else 0.0
    else:
        labels = np.atleast_2d(np.asarray(values))
        periods = len(labels)
        unlike, bias, _ = _weighted(protocol, pi, np.eye(protocol.domain)[labels])
    if protocol.network is not None:
        unlike *= _correlation(protocol, pi, periods)
    variance = steps * _answer_variance(protocol)
    return ExpectedError(noise=_over(variance, protocol.gamma, steps), sampling=unlike / steps + float(bias))


def _answer_variance(protocol: RingHistogram | WalkHistogram) -> float:
    domain, gamma = protocol.domain, protocol.gamma
    if protocol.response == "unary":
        return domain * gamma / 2 * (1 - gamma / 2)
    own, other = 1 - gamma + gamma / domain, gamma / domain
    return 1 - own**2 - (domain - 1) * other**2


def _over(variance: float, gamma: float, answers: int) -> float:
    return math.inf if gamma >= 1 else variance / ((1 - gamma) * answers) ** 2
