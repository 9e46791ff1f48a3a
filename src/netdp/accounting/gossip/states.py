"""What observers of any linear recursion of hidden states learn, exactly; proof: docs/guarantees.md#state-views.

The hidden states obey s_{t+1} = A_t s_t, started from s_0 = E z⁰ with z⁰ = x_H + ση_H, and at time t the observers see some
coordinates of s_t. As functionals of s_t let S_t be the span of all that is seen from time t on:

    S_T = 0,     S_t = span{e_i : i seen at t} + A_tᵀ S_{t+1},     and EᵀS_0 is what is seen of z⁰.

With Q an orthonormal basis of EᵀS_0 the factor of u is ‖q_u‖² (docs/guarantees.md#linear-gaussian). `chain` is this for
symmetric steps on n numbers; here a state may hold more numbers than parties (momentum) and A_t need not be symmetric
(push-sum).

The rest is as in `chain`: the whole basis goes through every step and is orthonormalised again; dropping directions only
shrinks the space, so it is accepted if its dimension is the rank modulo four primes drawn by a hash of the view (all
coefficients are fractions); the
tilt is measured by a second run with every number perturbed by 1e-11. Otherwise everybody whose value can have reached the
observers gets factor 1.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.privacy import Claim

from .exact import EXACT_BELOW, Factors
from .krylov import CALM_TILT, CLEAR, TILT_LIMIT, leverage
from .modular import SHORT_BITS, drawn_primes, independent

_NOTHING = 1e-11
_PERTURBATION = 1e-11
# Steps without anything seen after which the basis is orthonormalised again.
_STRETCH = 8
# How many primes of 31 bits the rank is taken modulo.
_PRIMES = 4


class StateView(Protocol):
    """A recursion of hidden states, and what is seen of it."""

    @property
    def observers(self) -> tuple[int, ...]:
        """Who looks."""

    @property
    def digest(self) -> bytes:
        """A hash of all that the recursion and what is seen depend on."""

    @property
    def n(self) -> int:
        """Parties."""

    @property
    def width(self) -> int:
        """Numbers in a state."""

    @property
    def steps(self) -> int:
        """T."""

    def seen(self, t: int) -> IntArray:
        """The coordinates of s_t that the observers see."""

    def pull(self, t: int, block: FloatArray) -> FloatArray:
        """A_tᵀ applied to columns."""

    def pull_modular(self, t: int, block: IntArray, prime: int) -> IntArray:
        """The same modulo a prime."""

    def collapse(self, block: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Eᵀ applied to columns: functionals of the values."""

    def reached(self) -> npt.NDArray[np.bool_]:
        """(n,) whose value can have reached an observer."""


def state_factors(view: StateView, progress: Progress | None = None) -> Factors:
    """The factors of all parties, nan at the observers."""
    rank = max(_rank(view, prime) for prime in islice(drawn_primes(view.digest, SHORT_BITS), _PRIMES))
    basis, doubtful = _build(view, None, progress)
    if not doubtful and basis.shape[1] == rank:
        moved = np.abs(leverage(basis) - leverage(_build(view, rank)[0])).max(initial=0.0)
        tilt = max(CALM_TILT, float(200.0 * moved * UNIT / _PERTURBATION))
        if tilt <= TILT_LIMIT:
            values = np.where(view.reached(), np.minimum(leverage(basis) + tilt, 1.0), 0.0)
            values[list(view.observers)] = np.nan
            return Factors(values, tilt, Claim.EXACT if tilt <= EXACT_BELOW else Claim.UPPER, rank)
    values = view.reached().astype(np.float64)
    values[list(view.observers)] = np.nan
    note = "the seen space could not be decided: bounded by what observers of all first messages would learn"
    return Factors(values, 0.0, Claim.UPPER, rank, (note,))


def _build(view: StateView, final: int | None, progress: Progress | None = None) -> tuple[FloatArray, bool]:
    """A basis of what is seen of the values, and any doubt. With the `final` rank given, every number is perturbed."""
    rng = None if final is None else np.random.default_rng(0)
    block, doubtful, since = np.zeros((view.width, 0)), False, 0

    def reduce(block: FloatArray, keep: int | None = None) -> FloatArray:
        nonlocal doubtful
        if not block.shape[1]:
            return block
        if rng is not None:
            touched = (block != 0).any(axis=1)
            size = np.linalg.norm(block, axis=0) / np.sqrt(max(int(touched.sum()), 1))
            block = block.copy()
            block[touched] += _PERTURBATION * size * rng.standard_normal((int(touched.sum()), block.shape[1]))
        orthonormal, triangle = np.linalg.qr(block)
        rotation, sizes, _ = np.linalg.svd(triangle)
        kept = int((sizes > (_NOTHING if rng is None else CLEAR / 2)).sum()) if keep is None else keep
        if rng is None:
            doubtful = doubtful or bool(((sizes > _NOTHING) & (sizes < CLEAR)).any())
        return np.ascontiguousarray(orthonormal @ rotation[:, :kept])

    for t in range(view.steps - 1, -1, -1):
        if block.shape[1]:
            block = view.pull(t, block)
        places = view.seen(t)
        units = np.zeros((view.width, len(places)))
        units[places, np.arange(len(places))] = 1.0
        since += 1
        if len(places) or since >= _STRETCH:
            block, since = reduce(np.hstack([block, units])), 0
        if progress is not None:
            progress(view.steps - t, view.steps)
    block = reduce(block)
    return reduce(np.asarray(view.collapse(block), dtype=np.float64), final), doubtful


def _rank(view: StateView, prime: int) -> int:
    block = np.zeros((view.width, 0), dtype=np.int64)
    for t in range(view.steps - 1, -1, -1):
        if block.shape[1]:
            block = view.pull_modular(t, block, prime)
        places = view.seen(t)
        units = np.zeros((view.width, len(places)), dtype=np.int64)
        units[places, np.arange(len(places))] = 1
        block = np.hstack([block, units])
        if block.shape[1] > 2 * view.width:
            block = independent(block, prime)
    last = np.asarray(view.collapse(block), dtype=np.int64) % prime
    return int(independent(last, prime).shape[1])
