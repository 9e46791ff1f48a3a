"""The error of tokens: of the mean of the users' values, or of the share of every value (squared L2 norm over the values).

**Known paths.** What is read is Σ c_u x_u / C plus noise, c_u the contributions of u and C their number. The noise has the
variance of all noises over C²; the rest is (Σ (c_u/C − 1/n) x_u)², for values in an interval of length Δ at most
(Δ/2·Σ|c_u/C − 1/n|)².

**Walk on the complete graph.** T contributions of users drawn with replacement: noise σ²/T, and the variance v ≤ Δ²/4 of the
values over T.

**Walk on a graph.** It starts in its stationary law π, so the time average has mean Σπ_u x_u and, the walk being reversible,
variance at most Var_π(x)·(1 + λ₂)/((1 − λ₂)T): expand x in eigenvectors of the transition matrix; each contributes
Σ_{|s|<T}(1 − |s|/T)λ^|s|/T ≤ (1 + λ)/((1 − λ)T), which grows with λ.

**Histograms.** One answer is value i with probability P_i = (1−γ)·[i is true] + γ/L: its variance, summed over i, is
1 − a² − (L−1)b² with a = 1 − γ + γ/L, b = γ/L, whatever the true value; a uniformly random element has 1 − 1/L.
Estimates divide counts by (1−γ) and by the number of answers. On a walk the drawn users add 1 − Σf_i² per answer,
f the true shares.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.values import party_values
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, WalkHistogram, WalkSum
from netdp.protocols.ring import ring_steps

from .error import ExpectedError, predictions

# Eigenvalues of a dense matrix: about a second.
MAX_USERS = 2000


@predictions.register
def _ring(protocol: RingSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    variance = float((protocol.hop_noise**2).sum()) + protocol.closing_noise**2
    columns = protocol.dimension if values is None else _columns(values, protocol.n)
    return ExpectedError(
        noise=variance * columns / (protocol.rounds * protocol.n) ** 2,
        rounding=0.0 if protocol.grid is None else _rounding(protocol, values),
    )


def _rounding(protocol: RingSum, values: npt.ArrayLike | None) -> float:
    """What rounding to the grid moves the mean by, squared: known for given values, at most (g/2)² per coordinate."""
    if values is None:
        return protocol.dimension * protocol.step**2 / 4
    data = party_values(values, protocol.n)
    moved = protocol.step * ring_steps(protocol, data) - data
    return float((np.mean(moved, axis=0) ** 2).sum())


@predictions.register
def _path(protocol: PathSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    contributing = int(protocol.given.sum())
    noises = sum(len(path) for path in protocol.paths) + protocol.closing * protocol.tokens
    uneven = protocol.given / contributing - 1.0 / protocol.n
    if values is None:
        sampling = (protocol.sensitivity / 2 * float(np.abs(uneven).sum())) ** 2
    else:
        sampling = float(((uneven @ party_values(values, protocol.n)) ** 2).sum())
    noise = protocol.sigma**2 * noises / contributing**2
    return ExpectedError(noise=noise * _columns(values, protocol.n), sampling=sampling)


@predictions.register
def _walk(protocol: WalkSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(
            f"contributions={protocol.contributions}: with a cap, how often data is added depends on the walk in a way that "
            "is not predicted; leave the cap out, or simulate"
        )
    steps = protocol.steps * protocol.tokens
    spread = _spread(values, protocol.n, protocol.sensitivity)
    return ExpectedError(noise=protocol.sigma**2 * _columns(values, protocol.n) / steps, sampling=spread / steps)


@predictions.register
def _graph_walk(protocol: GraphWalkSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: a capped walk on a graph has no public answer")
    n, steps = protocol.n, protocol.steps * protocol.tokens
    if n > MAX_USERS:
        raise Unsupported(f"the error of a walk needs the eigenvalues of {n} users; it is offered up to {MAX_USERS}")
    pi = np.asarray(protocol.stationary, dtype=np.float64)
    root = np.sqrt(pi)
    symmetric = root[:, None] * protocol.transition.toarray() / root[None, :]
    second = float(np.linalg.eigvalsh((symmetric + symmetric.T) / 2)[-2]) if n > 1 else 0.0
    if values is None:
        spread = protocol.sensitivity**2 / 4
        bias = (protocol.sensitivity / 2 * float(np.abs(pi - 1.0 / n).sum())) ** 2
    else:
        data = party_values(values, n)
        centre = pi @ data
        spread = float((pi @ (data - centre) ** 2).sum())
        bias = float(((centre - data.mean(axis=0)) ** 2).sum())
    noises = (protocol.steps + protocol.closing) * protocol.tokens
    return ExpectedError(
        noise=protocol.sigma**2 * noises / steps**2 * _columns(values, n),
        sampling=spread * (1 + second) / ((1 - second) * steps) + bias,
    )


@predictions.register
def _ring_histogram(protocol: RingHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    answers = protocol.rounds * protocol.n
    random = protocol.blanket + protocol.closing_blanket
    variance = answers * _answer_variance(protocol.domain, protocol.gamma) + random * (1 - 1 / protocol.domain)
    return ExpectedError(noise=_over(variance, protocol.gamma, answers))


@predictions.register
def _walk_histogram(protocol: WalkHistogram, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.contributions is not None:
        raise Unsupported(f"contributions={protocol.contributions}: with a cap the error is not predicted; simulate")
    if values is None:
        unlike = 1 - 1 / protocol.domain
    else:
        labels = np.asarray(values)
        unlike = 1 - float(((np.bincount(labels, minlength=protocol.domain) / len(labels)) ** 2).sum())
    variance = protocol.steps * _answer_variance(protocol.domain, protocol.gamma)
    return ExpectedError(noise=_over(variance, protocol.gamma, protocol.steps), sampling=unlike / protocol.steps)


def _answer_variance(domain: int, gamma: float) -> float:
    own, other = 1 - gamma + gamma / domain, gamma / domain
    return 1 - own**2 - (domain - 1) * other**2


def _over(variance: float, gamma: float, answers: int) -> float:
    return math.inf if gamma >= 1 else variance / ((1 - gamma) * answers) ** 2


def _columns(values: npt.ArrayLike | None, n: int) -> int:
    return 1 if values is None else int(np.shape(party_values(values, n))[1])


def _spread(values: npt.ArrayLike | None, n: int, sensitivity: float) -> float:
    """The mean squared distance of the values from their mean; Δ²/4 is the largest there can be."""
    if values is None:
        return sensitivity**2 / 4
    data: FloatArray = party_values(values, n)
    return float(((data - data.mean(axis=0)) ** 2).sum()) / n
