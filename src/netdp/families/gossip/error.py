"""The error of gossip, predicted from the same linear recursion as its privacy: nothing is simulated.

After T rounds the mean squared error is what mixing leaves of the differences between values, plus traces of p_T(W) for
noise, masks and refresh; `SpectralError` has them for all T at once from one diagonalisation. Changing graphs and random
edges: the product of the steps, or the exact recursion of its second moment. What rounding to a grid adds is estimated
(`netdp.families.gossip.rounding`), and bounded beside that.
Formulas and proofs: docs/proofs/gossip.md#gossip-error; of learning by gossip: docs/proofs/learning.md#excess-risk and
#influence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.descent import stars
from netdp.families.gossip.account.secret_graphs import connected_chance, meeting
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent, GossipRounds
from netdp.families.gossip.protocol import Gossip, RandomizedGossip, response
from netdp.families.gossip.rounding import added_error
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.families.gossip.views import exchanged
from netdp.graphs.families import erdos_renyi
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import Mixing, mixing_matrix
from netdp.graphs.spectrum import MAX_DENSE as MAX_DENSE_SPECTRUM
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.models.parties import Landscape
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import average_along, csr_times_block, drift_along
from netdp.numerics.values import party_values
from netdp.privacy.guarantee import Claim
from netdp.protocols.accuracy import ExpectedError, expected_error, forecasts, predictions
from netdp.protocols.risk import (
    Causes,
    ExcessRisk,
    checked_shape,
    consensus,
    everybody_steps,
    if_quadratic,
    influences,
    known,
    lipschitz,
    noise_part,
    with_liars,
)

predictions.refuse(
    ErdosRenyiDescent,
    why="its graphs are not drawn yet; ask for the error of a draw: expected_error(protocol.draw(seed))",
)

# Rounds with negative weights (accelerated) need the matrix p_K(W) itself.
MAX_DENSE = 3000


@influences.register
def _influence_on_gossip(protocol: GossipDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    c = lipschitz(protocol, losses)
    pushed = np.zeros(protocol.n)
    pushed[liars] = 2 * protocol.step * protocol.clip
    moved, spread = np.zeros(protocol.n), None
    for t in range(protocol.iterations):
        if spread is None or not protocol.is_static:
            spread = _absolute(protocol.rounds_of(t))
        moved = spread(c * moved + pushed)
    return moved


def _absolute(rounds: GossipRounds) -> Any:
    """x ↦ |p_K(W)|x."""
    W = rounds.matrix
    if rounds.chebyshev is None and (W.data >= 0).all():
        return lambda x: list(response(W.dot, x, rounds.rounds + 1, None))[-1]
    n = rounds.graph.n
    if n > MAX_DENSE:
        raise Unsupported(
            f"accelerated rounds take a matrix of {n} × {n} numbers; it is offered up to {MAX_DENSE} parties"
        )
    matrix = np.abs(list(response(W.dot, np.eye(n), rounds.rounds + 1, rounds.chebyshev))[-1])
    return matrix.dot


@dataclass(frozen=True, eq=False)
class Traces:
    """Entry T (0 ≤ T ≤ most rounds): the three traces divided by n, and ρ_T²."""

    noise: FloatArray
    masks: FloatArray
    refresh: FloatArray  # Σ over m = 1 … T−1
    mixing: FloatArray

    def squared_error(self, masks: float, refresh: float) -> FloatArray:
        """The variance of the answer for σ = 1, for every T."""
        rounds = np.maximum(np.arange(len(self.noise)), 1)
        return self.noise + masks * self.masks + refresh * self.refresh / rounds


class SpectralError:
    """The error of every `Gossip` on one graph and mixing, up to a number of rounds.

    >>> from netdp import graphs
    >>> errors = SpectralError(graphs.hypercube(4), rounds=9)
    >>> p = Gossip(graphs.hypercube(4), rounds=9, sigma=2.0, masks=3.0, refresh=0.5, accelerated=True)
    >>> from netdp.protocols.accuracy import expected_error
    >>> abs(errors.of(p, spread=0.0).total / expected_error(p, [0.5] * 16).total - 1) < 1e-12
    True
    """

    def __init__(self, graph: Graph, mixing: Mixing = "metropolis", rounds: int = 200) -> None:
        self.graph, self.mixing, self.rounds = graph, mixing, rounds
        self.eigenvalues, self.energies = spectrum(graph, mixing)
        self._traces = {False: self._compute(None)}

    def traces(self, accelerated: bool) -> Traces:
        """The traces of plain or accelerated gossip."""
        if accelerated not in self._traces:
            self._traces[accelerated] = self._compute(chebyshev_gamma(spectral_gap(self.graph, self.mixing)))
        return self._traces[accelerated]

    def of(self, protocol: Gossip, spread: float | None = None) -> ExpectedError:
        """The expected error of one protocol; `spread` is the mean squared distance of the values from their mean,
        Δ²/4 by default.
        """
        if protocol.rounds > self.rounds:
            raise InvalidValue(f"these traces end at {self.rounds} rounds, the protocol has {protocol.rounds}")
        own = protocol.gap is None
        traces, T = self.traces(protocol.accelerated) if own else self._compute(protocol.chebyshev), protocol.rounds
        width = protocol.sensitivity**2 / 4 if spread is None else spread
        return ExpectedError(
            noise=protocol.sigma**2 * float(traces.noise[T]),
            masks=protocol.mask_variance * float(traces.masks[T]),
            refresh=protocol.refresh_variance * float(traces.refresh[T]),
            mixing=width * float(traces.mixing[T]),
            claim=Claim.UPPER if width and traces.mixing[T] else Claim.EXACT,  # of the worst values of this spread
        )

    def _compute(self, gamma: float | None) -> Traces:
        # `response` runs on scalars here: one copy of the recursion per eigenvalue.
        powers = list(response(lambda x: self.eigenvalues * x, np.ones(self.graph.n), self.rounds + 1, gamma))
        impulses = response(lambda x: self.eigenvalues * x, np.ones(self.graph.n), self.rounds + 1, gamma, fresh=True)
        squares = np.asarray(powers) ** 2
        sizes = np.asarray([float((x**2).sum()) for x in impulses])
        refresh = np.concatenate([[0.0, 0.0], np.cumsum(sizes[1:])])[: self.rounds + 1]
        n = self.graph.n
        mixing = squares[:, 1:].max(axis=1)
        return Traces(squares.sum(axis=1) / n, squares @ self.energies / n, refresh / n, mixing)


def spectrum(graph: Graph, mixing: Mixing) -> tuple[FloatArray, FloatArray]:
    """λ_i and ℓ_i, that of the constant vector first."""
    degrees = graph.degrees
    affine = degrees.min() == degrees.max() or (isinstance(mixing, str) and mixing.endswith("maximum-degree"))
    if affine and isinstance(mixing, str) and (graph.laplacian_spectrum is not None or graph.n <= MAX_DENSE_SPECTRUM):
        if graph.laplacian_spectrum is not None:
            energies = np.sort(graph.laplacian_spectrum())
        else:
            energies = np.linalg.eigvalsh(graph.laplacian().toarray())
        energies = np.maximum(energies, 0.0)
        energies[0] = 0.0
        step = (
            1.0
            / ((0.0 if mixing.endswith("hamilton") else 1.0) + float(degrees.max()))
            / (2.0 if mixing.startswith("lazy-") else 1.0)
        )
        return 1.0 - step * energies, energies
    if graph.n > MAX_DENSE_SPECTRUM:
        raise Unsupported(
            f"the error of {graph.n:,} parties on an irregular graph, or with weights of your own, is planned up to "
            f"{MAX_DENSE_SPECTRUM:,} parties; "
            "choose rounds and masks yourself and use calibrate and expected_error"
        )
    matrix = mixing_matrix(graph, mixing).toarray()
    eigenvalues, vectors = np.linalg.eigh(matrix)
    eigenvalues, vectors = eigenvalues[::-1].copy(), vectors[:, ::-1]
    energies = np.einsum("ij,ij->j", vectors, graph.laplacian() @ vectors)
    eigenvalues[0], energies[0] = 1.0, 0.0  # a connected graph has the eigenvalue 1 once
    return eigenvalues, np.maximum(energies, 0.0)


# Eigenvalues of many different graphs: each takes its time.
_MAX_CHANGING = 600


@predictions.register
def _predict_gossip(
    protocol: GossipDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    if protocol.refresh > 0:
        raise Unsupported(
            f"GossipDescent with refresh={protocol.refresh:g}: the fresh noise of later sends is in no prediction; give 0"
        )
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

    def risk(parts: Causes) -> ExcessRisk:
        if quadratic:
            return if_quadratic(landscape, step, protocol.iterations, parts, own=own)
        return everybody_steps(landscape, step, protocol.iterations, parts, average, own=own)

    return with_liars(protocol, landscape, malicious, causes, risk, kept=not protocol.accelerated)


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
    mixings = np.array([_one_mixing(protocol.rounds_of(t)) for t in range(protocol.iterations)])
    return mixings[:, 0], mixings[:, 1]


@lru_cache(maxsize=256)
def _one_mixing(rounds: GossipRounds) -> tuple[float, float]:
    eigenvalues, energies = spectrum(rounds.graph, rounds.mixing)
    *_, left = response(lambda x: eigenvalues * x, np.ones(rounds.graph.n), rounds.rounds + 1, rounds.chebyshev)
    squares = left[1:] ** 2
    if not squares.size:
        return 0.0, 0.0
    return math.sqrt(float(squares.max())), float((squares * (1 + rounds.masks * energies[1:])).sum()) / rounds.graph.n


# The traces run over all n unit vectors: n² numbers pass through.
MAX_PARTIES = 20_000

# On a graph without a known spectrum that takes a few seconds up to here.
MAX_SHOWN = 4096

_BLOCK = 64

# Up to here all eigenvalues are computed in a moment.
_SPECTRAL = 600


@predictions.register
def _gossip_error(protocol: Gossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    real = _as_claimed(_in_real_numbers(protocol, values), values)
    return _of_what_is_sent(protocol, real, values, (protocol.rounds * protocol.lasting + 1) / 2)


@forecasts.register
def _quick(protocol: Gossip) -> ExpectedError | str:
    if protocol.n > MAX_SHOWN and protocol.graph.laplacian_spectrum is None:
        return f"not computed for more than {MAX_SHOWN:,} parties; netdp.expected_error(protocol) does, more slowly"
    return expected_error(protocol)


def _as_claimed(error: ExpectedError, values: npt.ArrayLike | None) -> ExpectedError:
    """Without values, what mixing leaves of the worst ones is bounded; all else is exact."""
    return replace(error, claim=Claim.UPPER) if values is None and error.mixing else error


def _of_what_is_sent(
    protocol: Gossip | VaryingGossip | RandomizedGossip,
    real: ExpectedError,
    values: npt.ArrayLike | None,
    moved: float,
    edges: IntArray | None = None,
) -> ExpectedError:
    """From the error in real numbers (without values, of a single number) that of vectors, and on a grid that of what is sent.

    moved   how far rounding moves the answer, at most: in grid steps per coordinate, root mean square over the parties
    """
    d = protocol.dimension
    if d > 1 and values is None:
        real = replace(
            real,
            noise=d * real.noise,
            masks=d * real.masks,
            refresh=d * real.refresh,
            mixing=2 * d / (d + 1) * real.mixing,
        )
    if protocol.grid is None:
        return real
    data = None if values is None else party_values(values, protocol.n)
    columns = d if data is None else data.shape[1]
    square = protocol.step**2
    noise = real.noise * (protocol.start_variance * square / protocol.sigma**2)
    fresh = real.refresh * (protocol.fresh_variance * square / protocol.refresh_variance) if real.refresh else 0.0
    without = replace(real, noise=noise, refresh=fresh)
    length = moved * np.sqrt(columns) * protocol.step
    most = float(2 * length * without.rmse + length**2)
    added = None if isinstance(protocol, VaryingGossip) else added_error(protocol, data, edges)
    if added is None:
        return replace(without, rounding=most, claim=Claim.UPPER)
    likely = min(max(added * square * columns, 0.0), most)
    return replace(without, rounding=likely, claim=Claim.ESTIMATE, bound=without.total + most)


def _unit_vectors(n: int) -> Iterator[FloatArray]:
    """All n unit vectors as columns, some at a time."""
    if n > MAX_PARTIES:
        raise Unsupported(f"the exact error runs over all pairs of {n} parties; it is offered up to {MAX_PARTIES}")
    for first in range(0, n, _BLOCK):
        columns = np.arange(min(_BLOCK, n - first))
        unit = np.zeros((n, len(columns)))
        unit[first + columns, columns] = 1.0
        yield unit


def _in_real_numbers(protocol: Gossip, values: npt.ArrayLike | None) -> ExpectedError:
    if values is None and (protocol.graph.laplacian_spectrum is not None or protocol.n <= _SPECTRAL):
        return SpectralError(protocol.graph, protocol.mixing, protocol.rounds).of(protocol)
    graph, W = protocol.graph, protocol.matrix
    n, T = graph.n, protocol.rounds
    data = party_values(values, n) if values is not None else np.zeros((n, 1))

    def step(block: FloatArray) -> FloatArray:
        return csr_times_block(W.indptr, W.indices, W.data, block)

    laplacian = graph.laplacian()
    noise = masks = refresh = 0.0
    for unit in _unit_vectors(n):
        *_, final = response(step, unit, T + 1, protocol.chebyshev)
        noise += float((final**2).sum())
        if protocol.masks > 0:
            masks += float((final * (laplacian @ final)).sum())
        if protocol.refresh > 0:
            impulses = response(step, unit, T, protocol.chebyshev, fresh=True)
            next(impulses)
            refresh += sum(float((x**2).sum()) for x in impulses)
    *_, mixed = response(step, data, T + 1, protocol.chebyshev)
    left = float(((mixed - data.mean(axis=0)) ** 2).sum()) / n
    if values is None:  # ρ² ≤ Σ_{i≥2} p_T(λ_i)², the Frobenius norm without the constant vector
        left = max(noise - 1.0, 0.0) * protocol.sensitivity**2 / 4
    per_coordinate = data.shape[1] / n
    return ExpectedError(
        noise=protocol.sigma**2 * noise * per_coordinate,
        masks=protocol.mask_variance * masks * per_coordinate,
        refresh=protocol.refresh_variance * refresh * per_coordinate,
        mixing=left,
    )


# Multiplications of the second-moment recursion: about a minute.
MAX_PRODUCTS = 3e10

_FEW = 1000
"""Among fewer parties compiled kernels are not worth the 70 MB that they take of a peer."""


@predictions.register
def _varying_error(protocol: VaryingGossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    def after(j: int, block: FloatArray) -> FloatArray:
        for W in protocol.matrices[j:]:
            block = W @ block if protocol.n < _FEW else csr_times_block(W.indptr, W.indices, W.data, block)
        return block

    real = _given(protocol, values, partial(after, 0))
    if protocol.refresh:
        columns = 1 if values is None else party_values(values, protocol.n).shape[1]
        traces = sum(
            float((after(j, u) ** 2).sum()) for j in range(1, protocol.rounds) for u in _unit_vectors(protocol.n)
        )
        real = replace(real, refresh=protocol.refresh_variance * traces * columns / protocol.n)
    return _of_what_is_sent(protocol, real, values, (protocol.rounds + 1) / 2)


@predictions.register
def _push_error(protocol: PushSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    """The estimates are D⁻¹Aᵀx of the noisy values: linear, D the public weights; rows sum to 1, columns need not."""

    def final(block: FloatArray) -> FloatArray:
        for _ in range(protocol.rounds):
            block = np.asarray(protocol.matrix @ block)
        return block / protocol.weights[:, None]

    return _given(protocol, values, final)


@predictions.register
def _redrawn_error(protocol: ErdosRenyiGossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    """Before the graphs are drawn, from a sample of them, and at most; for one graph per run ask for the error of a draw."""
    if not protocol.varying:
        raise Unsupported(
            "ErdosRenyiGossip: its graph is not drawn yet; ask for the error of a draw, expected_error(protocol.draw(seed))"
        )
    n, law = protocol.n, stars(protocol.n, protocol.p, 0, protocol.mixing)
    sure = connected_chance(n, meeting(protocol.p, protocol.rounds))
    if sure == 0:
        raise Unsupported(
            f"ErdosRenyiGossip: with p={protocol.p:g} the union of {protocol.rounds} rounds may hardly ever be connected; "
            "raise p or rounds, or ask for the error of a draw"
        )
    # a union that is not connected, which is refused, leaves 1/(n − 1) at least
    apart = isolated_chance(n, meeting(protocol.p, protocol.rounds)) / (n - 1)
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    spread = float(((data - data.mean(axis=0)) ** 2).sum()) / n if values is not None else protocol.sensitivity**2 / 4

    def error(squares: float) -> ExpectedError:
        kept = max(squares - 1.0, 0.0) / (n - 1)
        left = min(max(kept**protocol.rounds - apart, 0.0) / sure, 1.0)
        return ExpectedError(noise=protocol.sigma**2 * (1 + (n - 1) * left) * data.shape[1] / n, mixing=left * spread)

    most = error(n * float(law.chance @ law.spread))
    if n * n * _SAMPLED > _MAX_SAMPLED:
        return replace(most, claim=Claim.UPPER)
    return replace(error(_mean_squares(n, protocol.p, protocol.mixing)), claim=Claim.ESTIMATE, bound=most.total)


_SAMPLED, _MAX_SAMPLED = 400, 2e8


@lru_cache(maxsize=64)
def _mean_squares(n: int, p: float, mixing: str) -> float:
    """The mean of ‖W‖² (Frobenius) over a sample of graphs, always the same."""
    rng = np.random.default_rng(0)
    return float(np.mean([(mixing_matrix(erdos_renyi(n, p, rng), mixing).data ** 2).sum() for _ in range(_SAMPLED)]))


def isolated_chance(n: int, p: float) -> float:
    """A lower bound on the probability that an Erdős–Rényi graph has a party without links: Σ P(u) − Σ P(u and v).

    >>> round(isolated_chance(3, 0.5), 3)                              # 4 of 8 graphs have one
    0.375
    """
    alone = (1 - p) ** (n - 1)
    return max(0.0, n * alone - n * (n - 1) / 2 * (1 - p) ** (2 * n - 3)) * (1 - 1e-9)


@predictions.register
def _randomized_error(
    protocol: RandomizedGossip, values: npt.ArrayLike | None = None, *, transcript: Any = None
) -> ExpectedError:
    """In expectation over the edges, or given them (an array or a transcript)."""
    if transcript is None and protocol.accelerated:
        raise Unsupported(
            "RandomizedGossip: with acceleration the error is predicted for known edges only; ask "
            "expected_error(protocol, values, transcript=protocol.draw(seed))"
        )
    edges = None if transcript is None else exchanged(protocol, transcript)
    if edges is None:
        error, exchanges = _as_claimed(_in_expectation(protocol, values), values), protocol.steps
    else:
        error, exchanges = _along(protocol, values, edges), int((edges[:, 0] >= 0).sum())
    return _of_what_is_sent(protocol, error, values, 0.5 + exchanges / np.sqrt(2 * protocol.n), edges)


def _along(protocol: RandomizedGossip, values: npt.ArrayLike | None, edges: IntArray) -> ExpectedError:
    """In real numbers, given the edges."""

    def final(block: FloatArray) -> FloatArray:
        block = np.array(block, order="C")
        if protocol.accelerated:
            nobody = np.zeros(len(block), dtype=bool)
            drift_along(edges, block, block.copy(), *protocol.momentum, nobody, np.empty((0, block.shape[1])))
            return block
        average_along(edges, block, np.zeros(len(block), dtype=bool), np.empty((0, block.shape[1])))
        return block

    error = _given(protocol, values, final)
    columns = 1 if values is None else party_values(values, protocol.n).shape[1]
    fresh = protocol.refresh_variance * _fresh_along(edges, protocol.n) * columns / protocol.n
    return replace(error, refresh=fresh)


def _fresh_along(edges: IntArray, n: int) -> float:
    """tr of the covariance of fresh noises of variance 1 in the final states, given the edges."""
    covariance, began = np.zeros((n, n)), np.zeros(n, dtype=bool)
    for u, w in edges[edges[:, 0] >= 0].tolist():
        for p in (u, w):
            covariance[p, p] += began[p]
            began[p] = True
        covariance[u] = covariance[w] = 0.5 * (covariance[u] + covariance[w])
        covariance[:, u] = covariance[:, w] = 0.5 * (covariance[:, u] + covariance[:, w])
    return float(np.trace(covariance))


def _given(
    protocol: VaryingGossip | RandomizedGossip | PushSum,
    values: npt.ArrayLike | None,
    final: Callable[[FloatArray], FloatArray],
) -> ExpectedError:
    n = protocol.n
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    noise = sum(float((final(unit) ** 2).sum()) for unit in _unit_vectors(n))
    mixing = float(((final(data) - data.mean(axis=0)) ** 2).sum()) / n
    if values is None:  # the Frobenius norm without the constant vector bounds what is left of any values
        mixing = max(noise - 1.0, 0.0) * protocol.sensitivity**2 / 4
    return _as_claimed(ExpectedError(noise=protocol.sigma**2 * noise * data.shape[1] / n, mixing=mixing), values)


def _in_expectation(protocol: RandomizedGossip, values: npt.ArrayLike | None) -> ExpectedError:
    graph = protocol.graph
    n = graph.n
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    if 2.0 * (graph.m + n) * n * protocol.steps > MAX_PRODUCTS:
        raise Unsupported(
            f"the error over all edge sequences follows {n}² numbers through {protocol.steps} steps, which takes too long; "
            "ask for the error of one sequence, expected_error(protocol, values, transcript=protocol.draw(seed))"
        )
    u, w = graph.edges().T
    chances = protocol.edge_probabilities
    places = np.concatenate([u, w]), np.concatenate([w, u])
    weights = sparse.csr_array((np.tile(chances, 2), places), shape=(n, n))
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    second = np.eye(n)
    diagonal, fresh = np.arange(n), 0.0
    for after in range(protocol.steps):
        if protocol.refresh > 0:
            sent = 1.0 - (1.0 - np.minimum(degrees, 1.0)) ** (protocol.steps - 1 - after)  # before this step
            both = second[u, u] + second[w, w] + 2.0 * second[u, w]
            fresh += float((chances * (sent[u] + sent[w]) * both).sum()) / 4
        energy = 0.5 * (second[u, u] + second[w, w] - 2.0 * second[u, w])  # aᵀGa for every edge
        half = 0.5 * (
            degrees[:, None] * second - csr_times_block(weights.indptr, weights.indices, weights.data, second)
        )
        second = second - half - half.T
        share = 0.5 * chances * energy
        second[u, w] -= share
        second[w, u] -= share
        second[diagonal, diagonal] += np.bincount(u, share, n) + np.bincount(w, share, n)
    spread = data - data.mean(axis=0)
    mixing = float((spread * (second @ spread)).sum()) / n
    if values is None:  # the largest eigenvalue of G beside the 1 of the constant vector, on ‖y‖² ≤ nΔ²/4
        mixing = max(float(np.linalg.eigvalsh(second - 1.0 / n)[-1]), 0.0) * protocol.sensitivity**2 / 4
    return ExpectedError(
        noise=protocol.sigma**2 * float(np.trace(second)) * data.shape[1] / n,
        refresh=protocol.refresh_variance * fresh * data.shape[1] / n,
        mixing=mixing,
    )
