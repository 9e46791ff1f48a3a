"""An orthonormal basis of what the observers' messages span: the block Krylov space, built step by step.

The messages of plain gossip are y_t = C p_t(P) z⁰ with P = W_HH and C the rows of the boundary. p_t has degree exactly t
(also when accelerated: γ > 0), so the rows seen in T rounds span

    K_T = span{ Pˢ e_w : w in the boundary, 0 ≤ s < T }.

Never form the powers: their directions shrink like (1/3)ˢ on a ring and rounding swallows them, so rank and privacy loss
come out too small. Instead each round multiplies the newest *orthonormal* directions by P and keeps what is new: the
size of the new part is then a Lanczos coefficient (around 0.2 to 0.5 on real graphs), not a product of them.

Every new block is orthogonalised against everything seen before, twice, so the basis stays orthonormal to rounding.

Is a direction new? Its size s after removing everything seen before is compared with two limits. Below `ZERO` it is
rounding; above `CLEAR` it is new; in between floating point cannot tell, and the space is marked `doubtful`.

How far is the computed space tilted from the true one? Rounding errors grow when coefficients are small, typically when
nearly all there is to see has been seen. Where a size fell below `CALM`, the run is therefore repeated with vectors
perturbed by 1e-11, far more than rounding: what that moves, scaled down to rounding with a factor 200 to spare, is the
`tilt`, an absolute error of the factors that is added on the safe side; above `TILT_LIMIT` the space is doubtful too.
And where such a run dropped directions as rounding, their number is checked against the exact rank (`modular`). With
weights of one's own (`graphs.GossipMatrix`) it always is: they may be as small as 2⁻²⁰⁰, or break a symmetry by a last bit.
Against 768-bit arithmetic on 10,000 random graphs of five kinds: calm runs are right within 3e-14, and no clear
space had a wrong rank or an error above its tilt (tests/accounting/gossip/test_wide.py repeats a part of that).

A doubtful space is not used for a plain or masked loss: `wide.seen_space` decides it in long integers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netdp.errors import Unsupported
from netdp.graphs import GossipMatrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.views import GossipView

from .modular import krylov_rank

ZERO = 1e-14
CLEAR = 1e-5
CALM = 0.1
CALM_TILT = 1e-12
TILT_LIMIT = 1e-9
_PERTURBATION = 1e-11
# Sizes below this are orthogonalised a third time.
_AGAIN_BELOW = 0.1
# Above this a block is orthonormalised through its Gram matrix, which squares its condition; below through QR and SVD.
_GRAM_FROM = 1e-2


@dataclass(frozen=True, eq=False)
class SeenSpace:
    """An orthonormal basis (n × k, zero at the observers) of the span of the rows seen, and how it came about."""

    basis: FloatArray
    ranks: tuple[int, ...]  # new directions per round, until a round brings nothing new
    doubtful: bool
    tilt: float  # how far a leverage score may be off
    arithmetic: str  # "float64" or "768-bit"

    @property
    def rank(self) -> int:
        """k, the dimension of what is seen: the sum of the plain factors."""
        return int(self.basis.shape[1])


def seen_space(view: GossipView, progress: Progress | None = None) -> SeenSpace:
    """The seen space of a view in floating point, with full re-orthogonalisation and deflation.

    `progress(done, total)` is told of every round.
    """
    basis, ranks, smallest, doubtful = _build(view, view.step, None, progress)
    tilt = CALM_TILT
    if not doubtful and smallest < CALM:
        tilt = max(tilt, _measured_tilt(view, basis, ranks))
        doubtful = tilt > TILT_LIMIT
    if not doubtful and (smallest < CALM or isinstance(view.protocol.mixing, GossipMatrix)):
        doubtful = lost_directions(view, basis.shape[1])
    return SeenSpace(basis, ranks, doubtful, tilt, "float64")


def _build(
    view: GossipView,
    step: Callable[[FloatArray], FloatArray],
    prescribed: tuple[int, ...] | None,
    progress: Progress | None = None,
) -> tuple[FloatArray, tuple[int, ...], float, bool]:
    """Basis, new directions per round, smallest size kept, whether any size was doubtful.

    With `prescribed` ranks, each round keeps that many of its largest directions.
    """
    boundary = view.boundary
    n, honest = len(view.hidden), int(view.hidden.sum())
    capacity = min(honest, len(boundary) * view.protocol.rounds)
    try:
        basis = np.zeros((n, capacity), order="F")  # memory is only touched as far as the rank goes
    except MemoryError:
        raise Unsupported(
            f"{len(boundary)} parties send to the observers for {view.protocol.rounds} rounds: the basis of what is seen "
            f"takes up to {n * capacity * 8 / 1e9:.0f} GB; account for fewer rounds or for a less connected observer"
        ) from None
    basis[boundary, np.arange(len(boundary))] = 1.0
    ranks = [len(boundary)]
    rank, smallest, doubtful = len(boundary), 1.0, False
    rounds = view.protocol.rounds if prescribed is None else len(prescribed)
    while len(ranks) < rounds and ranks[-1] > 0 and rank < honest:
        block = step(basis[:, rank - ranks[-1] : rank])
        # Twice: one pass leaves 1e-16/size of the earlier directions, which accumulates over many rounds.
        _remove(block, basis[:, :rank])
        _remove(block, basis[:, :rank])
        directions, sizes = _orthonormal(block)
        doubtful |= bool(((sizes > ZERO) & (sizes < CLEAR)).any())
        # Rounding cannot make more directions than there are parties.
        kept = min(directions.shape[1], honest - rank if prescribed is None else prescribed[len(ranks)])
        directions = directions[:, :kept]
        if kept:
            smallest = min(smallest, float(sizes[kept - 1]))
            if sizes[kept - 1] < _AGAIN_BELOW:  # normalising a small block blew its rounding up
                _remove(directions, basis[:, :rank])
                directions = np.linalg.qr(directions)[0]
        basis[:, rank : rank + kept] = directions
        rank += kept
        ranks.append(kept)
        if progress is not None:
            progress(len(ranks), rounds)
    if ranks[-1] == 0:
        ranks.pop()
    return basis[:, :rank], tuple(ranks), smallest, doubtful


def lost_directions(view: GossipView, rank: int) -> bool:
    """Whether fewer directions were kept than there are; only a run that dropped some can have lost any.

    With weights of one's own it may have, if the rank is not known: they can be tiny, or differ by as little as rounding.
    """
    if rank >= min(int(view.hidden.sum()), len(view.boundary) * view.protocol.rounds):
        return False
    exact = krylov_rank(view)
    return isinstance(view.protocol.mixing, GossipMatrix) if exact is None else exact != rank


def _measured_tilt(view: GossipView, basis: FloatArray, ranks: tuple[int, ...]) -> float:
    """How far rounding may have moved a leverage score, from what a known larger perturbation moves.

    Rounding disturbs the entries of the vectors, by amounts relative to their size as a whole; so does the perturbation, at
    every party that can have been reached. (Perturbing W instead would keep what its zeros and symmetries protect.)
    """
    rng = np.random.default_rng(0)
    reached = np.zeros(len(view.hidden), dtype=bool)
    reached[view.boundary] = True

    def step(states: FloatArray) -> FloatArray:
        product = view.step(states)
        reached[(product != 0).any(axis=1)] = True
        count = int(reached.sum())
        size = np.linalg.norm(product, axis=0) / np.sqrt(count)
        product[reached] += _PERTURBATION * size * rng.standard_normal((count, product.shape[1]))
        return product

    perturbed = _build(view, step, ranks)[0]
    moved = np.abs(leverage(basis) - leverage(perturbed)).max()
    return float(200.0 * moved * UNIT / _PERTURBATION)


def leverage(basis: FloatArray) -> FloatArray:
    """‖q_u‖² for every row of an orthonormal basis, without a second copy of it."""
    scores = np.zeros(len(basis))
    for column in range(basis.shape[1]):
        scores += basis[:, column] ** 2
    return scores


def _remove(block: FloatArray, basis: FloatArray) -> None:
    """Subtract from `block` its orthogonal projection on the span of `basis`."""
    block -= basis @ (basis.T @ block)


def _orthonormal(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions of the part of `block` that is not rounding, and all its singular values, descending."""
    # numpy.linalg rather than scipy.linalg: it lets other threads run.
    squares, rotation = np.linalg.eigh(block.T @ block)
    if squares[0] > _GRAM_FROM**2:
        sizes = np.sqrt(squares[::-1])
        return block @ (rotation[:, ::-1] / sizes), sizes
    orthonormal, triangle = np.linalg.qr(block)
    rotation, sizes, _ = np.linalg.svd(triangle)
    return orthonormal @ rotation[:, sizes > ZERO], sizes
