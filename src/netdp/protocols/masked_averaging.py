"""Averaging integers modulo q until everybody holds their exact sum: how many rounds, with which weights, and one party's steps.

**Why it is exact.** With |λ| ≤ ρ for all eigenvalues λ ≠ 1 of W, c_t = T_t(1/ρ) = cosh(tθ), cosh θ = 1/ρ:

    x^{t+1} = a_t W x^t − b_t x^{t−1},   a_t = 2c_t/(ρc_{t+1}),  b_t = c_{t−1}/c_{t+1} = a_t − 1,   x¹ = W x⁰

applies p_t(W) = T_t(W/ρ)/c_t: 1 on the mean, at most 1/c_t elsewhere. From x⁰ = y − q/2, ‖x⁰‖ ≤ √n·q/2, so n·x_u^T is
within n√n·(q/2)/c_T of Σx⁰. An error e made at step s reaches step T as (c_s/c_T)U_{T−s}(W/ρ)e: on the mean times A_s
= cosh(sθ)· sinh((T−s+1)θ)/(cosh(Tθ)·sinh θ), elsewhere at most (c_s/c_T)(T−s+1). One step makes ‖e‖ ≤ κu‖x⁰‖ with κ =
a(2·degree + 6) + 8b + 3 for the largest degree, a and b: a row of W has degree + 1 products, its entries are rounded
twice and the one on the diagonal, 1 minus the others, degree times; b is rounded 6 times. ‖x^s‖ ≤ ‖x⁰‖ throughout. So
the error of n·x_u^T from rounding is at most n·κu·(q/2)·Σ_s(A_s + √n(c_s/c_T)(T−s+1)). T is such that the mixing
error is ≤ 1/8; if rounding may add more than 0.35, averaging is refused. So n·x_u^T rounds to the exact sum, for
everybody, always (given the eigenvalue bound ρ; a run checks the result).

Nothing in the bound depends on the order in which a party adds what its neighbours sent, so a party that steps by
itself (`averaging_step`) and a simulator that steps for all at once end with the same whole number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs import Graph
from netdp.graphs.mixing import mixing_matrix
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import UNIT, FloatArray, IntArray

_MIXING_LEFT, _ROUNDING_LEFT = 0.125, 0.35


@dataclass(frozen=True)
class Averaging:
    """The weights (a_t, b_t) of every step, and how far n times the mean may be from the sum at the end."""

    weights: tuple[tuple[float, float], ...]
    mixing_error: float
    rounding_error: float

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.weights)


def averaging(graph: Graph, modulus: int) -> Averaging:
    """The fewest steps after which n times the mean of integers modulo q rounds to their sum, for everybody.

    >>> from netdp import graphs
    >>> averaging(graphs.hypercube(8), 2**32).rounds
    45
    """
    n = graph.n
    gap = spectral_gap(graph)
    rho = min(max(1.0 - gap * (1 - 1e-6), 1e-3), 1 - 1e-15)
    theta = math.acosh(1 / rho)
    scale = n * math.sqrt(n) * modulus / 2
    # cosh(Tθ) ≥ e^{Tθ}/2
    rounds = max(1, math.ceil(math.log(2 * scale / _MIXING_LEFT) / theta))
    b = 1 / math.cosh(min(2 * theta, 300))
    kappa = (1 + b) * (2 * int(graph.degrees.max()) + 6) + 8 * b + 3
    left = np.arange(rounds, dtype=np.float64)  # T − s
    fade = np.exp(-left * theta) * (1 + np.exp(-2 * (rounds - left) * theta))  # c_s/c_T, rounded up: c_T ≥ e^{Tθ}/2
    on_mean = fade * np.sinh(np.minimum((left + 1) * theta, 300)) / math.sinh(theta)
    late = (left + 1) * theta > 300
    on_mean[late] = math.exp(theta) / math.sinh(theta)
    amplified = float((on_mean + math.sqrt(n) * fade * (left + 1)).sum())
    rounding = n * (modulus / 2) * UNIT * (kappa * amplified + 4) * 1.01
    if modulus > 2**52 or rounding > _ROUNDING_LEFT:
        raise Unsupported(
            f"averaging on {graph!r} modulo 2^{modulus.bit_length() - 1} takes {rounds} rounds, in which doubles may be wrong by "
            f"{rounding:.2g} in the sum, so it need not be exact; use spread='flood', a coarser grid, or a smaller modulus"
        )
    weights = [(1.0, 0.0)]
    for t in range(1, rounds):
        # c_{t−1}/c_{t+1}, without large numbers
        b = math.exp(-2 * theta) * (1 + math.exp(-2 * (t - 1) * theta)) / (1 + math.exp(-2 * (t + 1) * theta))
        weights.append((1.0 + b, b))
    return Averaging(tuple(weights), 2 * scale * math.exp(-rounds * theta), rounding)


def averaging_row(graph: Graph, u: int) -> tuple[IntArray, FloatArray]:
    """Whose states party u mixes, its own included, in increasing order, and with which weights (Metropolis).

    >>> from netdp import graphs
    >>> members, weights = averaging_row(graphs.path(4), 1)
    >>> members.tolist(), weights.round(3).tolist()
    ([0, 1, 2], [0.333, 0.333, 0.333])
    """
    W = mixing_matrix(graph)
    start, end = int(W.indptr[u]), int(W.indptr[u + 1])
    order = np.argsort(W.indices[start:end], kind="stable")
    return W.indices[start:end][order].astype(np.int64), W.data[start:end][order].astype(np.float64)


def averaging_start(published: npt.NDArray[np.uint64], modulus: int) -> FloatArray:
    """x⁰ = y − q/2, exact in a double: the state that a party begins with.

    >>> averaging_start(np.array([0, 7], dtype=np.uint64), 8).tolist()
    [-4.0, 3.0]
    """
    if modulus > 2**52:
        raise InvalidValue(f"modulus={modulus} is too large to average in doubles, which hold whole numbers up to 2^52")
    return (published.astype(np.int64) - modulus // 2).astype(np.float64)


def averaging_step(weights: FloatArray, states: FloatArray, a: float, b: float, previous: FloatArray) -> FloatArray:
    """One party's next state, (d,): a·Σ weights·states − b·previous.

    weights    (members,) of `averaging_row`
    states     (members, d) the present states of the same members, its own included
    a, b       of this round, from `Averaging.weights`
    previous   (d,) its own state of the round before; in the first round any, for b = 0
    """
    return averaging_update(weights @ states, a, b, previous)


def averaging_update(mixed: FloatArray, a: float, b: float, previous: FloatArray) -> FloatArray:
    """The next state from what was mixed: of one party, or of all in one array."""
    return np.asarray(a * mixed - b * previous)


def averaging_end(state: FloatArray, n: int, modulus: int) -> npt.NDArray[np.uint64]:
    """The sum of all y modulo q from the last state: n·x is within 0.475 of Σ(y − q/2) if everybody kept to the steps.

    Refuses a state that cannot have come about that way: no number, out of range, or too far from whole numbers.

    >>> averaging_end(np.array([-0.51]), 2, 8).tolist()                   # −4 + 3 = −1, so 0 + 7
    [7]
    >>> averaging_end(np.array([0.26]), 2, 8)
    Traceback (most recent call last):
      ...
    netdp.errors.NetdpError: averaging did not become exact: 2 times the mean is 0.48 from a whole number, ...
    """
    sums = n * state
    half = modulus // 2
    if not np.isfinite(sums).all() or (np.abs(sums) > n * half + 1).any():
        raise NetdpError("averaging did not become exact: a state is out of range; somebody did not keep to the steps")
    nearest = np.rint(sums)
    doubt = float(np.abs(sums - nearest).max(initial=0.0))
    if doubt > _MIXING_LEFT + _ROUNDING_LEFT:
        raise NetdpError(
            f"averaging did not become exact: {n} times the mean is {doubt:.2g} from a whole number, more than "
            f"{_MIXING_LEFT + _ROUNDING_LEFT:g}; somebody did not keep to the steps"
        )
    return (nearest.astype(np.int64) + n * half).astype(np.uint64) & np.uint64(modulus - 1)
