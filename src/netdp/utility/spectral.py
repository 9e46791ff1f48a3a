"""The predicted error of gossip for all numbers of rounds at once, from one diagonalisation of W.

Let W = VΛVᵀ, ℓ_i = v_iᵀLv_i. The traces of `utility.expected_error` need only diagonals in that basis:

    tr p_T(W)² = Σ p_T(λ_i)²,   tr p_T(W)Lp_T(W) = Σ p_T(λ_i)²ℓ_i,   ‖r_m(W)‖²_F = Σ r_m(λ_i)².

When W is an affine function of L (regular graphs; maximum-degree mixing), ℓ_i are the eigenvalues of L and V is not needed.

**The part that depends on the data.** Mixing leaves ‖p_T(W)x − x̄1‖²/n ≤ ρ_T²·‖x − x̄1‖²/n with ρ_T = max |p_T(λ_i)|
over all eigenvalues but that of the constant vector. Values in an interval, or in a ball, of diameter Δ have ‖x −
x̄1‖²/n ≤ Δ²/4 (the mean minimises the mean square, so put the centre in its place). That bound is used unless a
spread is stated: the prediction is then no smaller than the error of any such data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.mixing import Mixing, mixing_matrix
from netdp.graphs.spectrum import chebyshev_gamma, spectral_gap
from netdp.numerics.arrays import FloatArray
from netdp.protocols import Gossip, response

from .error import ExpectedError

# Eigenvectors of a dense matrix: seconds up to here.
MAX_DENSE = 3000


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
    >>> from netdp import expected_error
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
        traces, T = self.traces(protocol.accelerated), protocol.rounds
        width = protocol.sensitivity**2 / 4 if spread is None else spread
        return ExpectedError(
            noise=protocol.sigma**2 * float(traces.noise[T]),
            masks=protocol.mask_variance * float(traces.masks[T]),
            refresh=protocol.refresh_variance * float(traces.refresh[T]),
            mixing=width * float(traces.mixing[T]),
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
    if affine and isinstance(mixing, str) and (graph.laplacian_spectrum is not None or graph.n <= MAX_DENSE):
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
    if graph.n > MAX_DENSE:
        raise Unsupported(
            f"the error of {graph.n:,} parties on an irregular graph, or with weights of your own, is planned up to "
            f"{MAX_DENSE:,} parties; "
            "choose rounds and masks yourself and use calibrate and expected_error"
        )
    matrix = mixing_matrix(graph, mixing).toarray()
    eigenvalues, vectors = np.linalg.eigh(matrix)
    eigenvalues, vectors = eigenvalues[::-1].copy(), vectors[:, ::-1]
    energies = np.einsum("ij,ij->j", vectors, graph.laplacian() @ vectors)
    eigenvalues[0], energies[0] = 1.0, 0.0  # a connected graph has the eigenvalue 1 once
    return eigenvalues, np.maximum(energies, 0.0)
