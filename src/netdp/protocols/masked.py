"""A sum under one-time pads: values on a grid, as integers modulo q, each hidden by pads that cancel in the sum.

Every pair {u, v} of a *mask graph* shares a pad m_uv, uniform on Z_q^d. Party u publishes once

    y_u = k_u + η_u + Σ_{v>u} m_uv − Σ_{v<u} m_uv   (mod q)        k_u its value in grid steps, η_u its share of noise

and the sum of all y is the sum of all k + η, because each pad comes once with each sign. The *talk graph* only
spreads the y:

- flood: everybody passes on what is new until all hold all y; as many rounds as the graph's diameter.
- average: everybody averages with its neighbours (Chebyshev weights) until n times the mean, rounded, is the sum of all y.

**On the grid.** The step g is a power of two, so x/g is exact in floating point, and k = ⌊x/g + ½⌋ − ⌊centre/g + ½⌋
is computed exactly. That map is monotone and commutes with shifts by whole steps, so two numbers at most Δ apart
become at most ⌈Δ/g⌉ steps apart: nothing is added where Δ is a multiple of g. Vectors: every coordinate of a
difference moves by less than a step, so at most Δ/g + √d in L2 norm. (`held` accepts values a relative 10⁻⁹ further
apart than Δ; vectors pay for 2·10⁻⁹ more, and a single number is clipped or refused in integers.) σ²/g² is rounded up
to the whole number that the exact sampler needs.

**The modulus.** The sum is read off as the representative between −q/2 and q/2. Every |k_u| is at most ⌈Δ/g⌉ + 1,
because values lie within Δ of `centre`, and the noise of all exceeds 10 of its deviations with probability below
4·10⁻²² (the discrete Gaussian is subgaussian with its own variance). So q > 2(n(⌈Δ/g⌉ + 1) + 10√(nσ²/g²)) is asked
for. Privacy does not depend on q.

**Averaging exactly.** With |λ| ≤ ρ for all eigenvalues λ ≠ 1 of W, c_t = T_t(1/ρ) = cosh(tθ), cosh θ = 1/ρ:

    x^{t+1} = a_t W x^t − b_t x^{t−1},   a_t = 2c_t/(ρc_{t+1}),  b_t = c_{t−1}/c_{t+1} = a_t − 1,   x¹ = W x⁰

applies p_t(W) = T_t(W/ρ)/c_t: 1 on the mean, at most 1/c_t elsewhere. From x⁰ = y − q/2, ‖x⁰‖ ≤ √n·q/2, so n·x_u^T is
within n√n·(q/2)/c_T of Σx⁰. An error e made at step s reaches step T as (c_s/c_T)U_{T−s}(W/ρ)e: on the mean times A_s
= cosh(sθ)· sinh((T−s+1)θ)/(cosh(Tθ)·sinh θ), elsewhere at most (c_s/c_T)(T−s+1). One step makes ‖e‖ ≤ κu‖x⁰‖ with κ =
a(2·degree + 6) + 8b + 3 for the largest degree, a and b: a row of W has degree + 1 products, its entries are rounded
twice and the one on the diagonal, 1 minus the others, degree times; b is rounded 6 times. ‖x^s‖ ≤ ‖x⁰‖ throughout. So
the error of n·x_u^T from rounding is at most n·κu·(q/2)·Σ_s(A_s + √n(c_s/c_T)(T−s+1)). T is such that the mixing
error is ≤ 1/8; if rounding may add more than 0.35, averaging is refused. So n·x_u^T rounds to the exact sum, for
everybody, always (given the eigenvalue bound ρ; a run checks the result).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, as_graph, regular
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count, finite, positive, scale, whole

from .base import OnGraph

SPREADS = ("flood", "average")
SLACK = 2e-9
"""How much further apart than Δ, relatively, values are when they are accepted with rounding (`netdp.numerics.values`)."""

_FINEST = 2**40  # variance of a share in squared steps that the sampler draws
_LARGEST = 2**62
_USUAL = 2**32
_DEVIATIONS = 10
_MIXING_LEFT, _ROUNDING_LEFT = 0.125, 0.35


@dataclass(frozen=True)
class MaskedSum(OnGraph):
    """The mean of all values, each published once under one-time pads that cancel in the sum.

    Parameters
    ----------
    graph : connected `Graph` to talk along; it spreads what is published and has no part in the privacy.
    sigma : standard deviation of one party's share of the noise, in units of the values.
    masks : who shares pads: "complete" (everybody with everybody), a degree k (a random k-regular graph, drawn publicly
        from `mask_seed`), or a `Graph`.
    spread : "flood" or "average".
    sensitivity : Δ, the largest L2 distance between two values of one party.
    dimension : how many numbers a value has, at most; rounding to the grid moves more of them further apart.
    centre : a public number; all coordinates of all values lie within Δ of it. 0 does for values in [0, Δ] or [−Δ, Δ].
    grid : the step of the grid, a power of two. By default the largest that is no coarser than σ/(16√n) and
        Δ/(1024√d): rounding then adds at most a thousandth to Δ and to the error of the mean.
    modulus : q, a power of two that holds the sum with its noise. By default 2³² to flood, the smallest to average; more
        if that is needed.
    mask_seed : of the random mask graph, if `masks` is a degree.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(100), sigma=0.5)
    >>> p.step, p.share, p.q == 2**32, p.rounds
    (0.0009765625, 262144, True, 50)
    >>> p.replace(modulus=2**16)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: modulus=65536 cannot hold the sum of 100 values with its noise; give at least 2**19 = 524288, ...
    """

    kind: ClassVar[str] = "masked-sum"
    graph: Graph
    sigma: float
    masks: str | int | Graph = "complete"
    spread: str = "flood"
    sensitivity: float = 1.0
    dimension: int = 1
    centre: float = 0.0
    grid: float | None = None
    modulus: int | None = None
    mask_seed: int = 0

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "MaskedSum"))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(dimension=count("dimension", self.dimension), centre=finite("centre", self.centre))
        self._set(mask_seed=whole("mask_seed", self.mask_seed), masks=self._checked_masks())
        if self.spread not in SPREADS:
            raise InvalidValue(f"unknown spread {self.spread!r}; choose one of {', '.join(SPREADS)}")
        if self.graph.n < 2:
            raise InvalidValue("a masked sum needs at least two parties, the graph has 1")
        self.graph.require_connected("spreading what is published")
        self._check_grid()
        self._check_modulus()

    def _checked_masks(self) -> str | int | Graph:
        given: Any = self.masks
        if isinstance(given, str):
            if given != "complete":
                raise InvalidValue(f'masks must be "complete", a degree or a Graph, got {given!r}')
            return given
        if isinstance(given, dict):
            given = Graph.from_dict(given)
        if isinstance(given, Graph):
            return given.in_order_of(self.graph)
        degree = count('masks ("complete", a degree or a Graph)', given)
        if degree >= self.graph.n or degree * self.graph.n % 2:
            raise InvalidValue(
                f"no graph of {self.graph.n} parties is {degree}-regular: masks must be less than n, and n·masks even"
            )
        return degree

    def _check_grid(self) -> None:
        if self.grid is not None:
            given = positive("grid", self.grid)
            if math.frexp(given)[0] != 0.5:
                raise InvalidValue(
                    f"grid must be a power of two, on which rounding is exact, got {given!r}; take {_power_below(given)!r}"
                )
            self._set(grid=given)
        if self.sigma < self.step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {self.step:g}; give a grid of at most "
                f"{_power_below(self.sigma)!r}"
            )
        if self.share > _FINEST or self.sensitivity / self.step > 2**40 or abs(self.centre) / self.step > 2**50:
            raise InvalidValue(
                f"the grid {self.step:g} is too fine for sigma={self.sigma:g}, sensitivity={self.sensitivity:g} and "
                f"centre={self.centre:g}: σ may have 2²⁰ steps, Δ 2⁴⁰ and the centre 2⁵⁰; give a coarser grid"
            )

    def _check_modulus(self) -> None:
        least = self._least_modulus()
        if least > _LARGEST:
            raise InvalidValue(
                f"the sum with its noise needs a modulus of {least:g}, more than 2⁶²; give a coarser grid"
            )
        if self.modulus is None:
            return
        given = count("modulus", self.modulus)
        if given & (given - 1) or given > _LARGEST:
            raise InvalidValue(f"modulus must be a power of two up to 2⁶², got {given}")
        if given < least:
            raise InvalidValue(
                f"modulus={given} cannot hold the sum of {self.n} values with its noise; give at least "
                f"2**{least.bit_length() - 1} = {least}, or a coarser grid"
            )
        self._set(modulus=given)

    def _least_modulus(self) -> int:
        values = self.n * (math.ceil(self.sensitivity * (1 + SLACK) / self.step) + 1)
        noise = _DEVIATIONS * (math.isqrt(self.n * self.share) + 1)
        return 1 << (2 * (values + noise)).bit_length()

    @cached_property
    def step(self) -> float:
        """The step of the grid that is used."""
        if self.grid is not None:
            return self.grid
        return _power_below(
            min(self.sigma / (16 * math.sqrt(self.n)), self.sensitivity / (1024 * math.sqrt(self.dimension)))
        )

    @cached_property
    def share(self) -> int:
        """The variance of one party's noise in squared grid steps: σ²/g², rounded up to a whole number."""
        return math.ceil(Fraction(self.sigma / self.step) ** 2)

    @cached_property
    def q(self) -> int:
        """The modulus that is used."""
        if self.modulus is not None:
            return self.modulus
        least = self._least_modulus()
        return least if self.spread == "average" else max(least, _USUAL)

    @property
    def centre_steps(self) -> int:
        """The centre in grid steps, rounded as values are."""
        return int(_nearest(np.array([self.centre / self.step]))[0])

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one party can be after rounding."""
        if self.dimension == 1:
            return math.ceil(Fraction(self.sensitivity) / Fraction(self.step))
        return (self.sensitivity * (1 + SLACK) / self.step + math.sqrt(self.dimension)) * (1 + 4 * UNIT)

    @cached_property
    def mask_graph(self) -> Graph | None:
        """Who shares pads; None if everybody does with everybody."""
        if isinstance(self.masks, Graph):
            return None if self.masks.m == self.n * (self.n - 1) // 2 else self.masks
        if isinstance(self.masks, str) or self.masks == self.n - 1:
            return None
        return regular(self.n, self.masks, self.mask_seed)

    @cached_property
    def averaging(self) -> Averaging:
        """The weights with which averaging is exact; refuses where it cannot be."""
        return averaging(self.graph, self.q)

    @cached_property
    def rounds(self) -> int:
        """How many rounds it takes until everybody holds the sum."""
        if self.spread == "average":
            return self.averaging.rounds
        return max(int(self.graph.distances(u).max()) for u in range(self.n))

    @property
    def link_bytes(self) -> int:
        """How many bytes cross a link in one direction, at most: all y once, or one double per round and coordinate."""
        if self.spread == "average":
            return 8 * self.dimension * self.rounds
        return self.n * self.dimension * ((self.q.bit_length() + 6) // 8)

    def prepare(self) -> None:
        self.step, self.share, self.q, self.mask_graph  # noqa: B018

    def describe(self) -> str:
        if isinstance(self.masks, Graph):
            pads = f"pads along {self.masks.name}"
        elif self.masks == "complete":
            pads = "pads between all pairs, so that any coalition faces the noise of all others"
        else:
            pads = f"pads along a random {self.masks}-regular graph (seed {self.mask_seed})"
        return (
            f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; masked sum σ={self.sigma:g} Δ={self.sensitivity:g}, "
            f"{pads}; grid {self.step:g} modulo 2^{self.q.bit_length() - 1}, spread by {self.spread}"
        )


def _power_below(value: float) -> float:
    """The largest power of two that is no larger."""
    return math.ldexp(0.5, math.frexp(value)[1])


# ── the steps of a party ──────────────────────────────────────────────────────────────────────────────────────────────


def quantised(protocol: MaskedSum, values: FloatArray) -> IntArray:
    """Values in grid steps from the centre: ⌊x/g + ½⌋ − ⌊centre/g + ½⌋, exactly.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(3), sigma=8.0, grid=1.0, centre=10.0, sensitivity=4.0)
    >>> quantised(p, np.array([8.5, 10.4, 11.5])).tolist()
    [-1, 0, 2]
    """
    return _nearest(values / protocol.step) - protocol.centre_steps


def _nearest(steps: FloatArray) -> IntArray:
    # steps + ½ would be rounded; the distance to the floor is exact where it is less than ½
    below = np.floor(steps)
    return below.astype(np.int64) + (steps - below >= 0.5)


def contributions(integers: IntArray, noise: IntArray) -> npt.NDArray[np.uint64]:
    """k + η modulo 2⁶⁴, which every modulus divides: what is hidden by the pads."""
    return integers.astype(np.uint64) + noise.astype(np.uint64)


def add_pads(state: npt.NDArray[np.uint64], u: int, others: IntArray, pads: npt.NDArray[np.uint64]) -> None:
    """Add the pads that u shares with `others`, in place: plus at the smaller number of a pair, minus at the larger."""
    first = others > u
    state[u] += pads[first].sum(axis=0, dtype=np.uint64)
    state[u] -= pads[~first].sum(axis=0, dtype=np.uint64)
    state[others[first]] -= pads[first]
    state[others[~first]] += pads[~first]


def reduced(state: npt.NDArray[np.uint64], modulus: int) -> npt.NDArray[np.uint64]:
    """Modulo q, a power of two up to 2⁶³."""
    return state & np.uint64(modulus - 1)


def opened(total: npt.NDArray[np.uint64], modulus: int) -> IntArray:
    """The representative between −q/2 and q/2.

    >>> opened(np.array([3, 7], dtype=np.uint64), 8).tolist()
    [3, -1]
    """
    signed = total.astype(np.int64)
    return np.where(signed >= modulus // 2, signed - modulus, signed)


# ── averaging ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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
