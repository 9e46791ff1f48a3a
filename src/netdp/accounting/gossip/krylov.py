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
And where such a run dropped directions as rounding, their number is checked against the rank modulo primes (`modular`). With
weights of one's own (`graphs.GossipMatrix`) it always is, and modulo so many primes that the rank is certain: they may be
as small as
2⁻²⁰⁰, break a symmetry by a last bit, or be made against known primes. What is not certain then counts as doubt.
Against 768-bit arithmetic on 10,000 random graphs of five kinds: calm runs are right within 3e-14, and no clear
space had a wrong rank or an error above its tilt (tests/accounting/gossip/test_wide.py repeats a part of that).

In doubt, how many directions each round shows is counted modulo primes drawn by a hash, and the space is built again with
that many, the largest,
in each round. Where all that is kept is then clear, all that is dropped is below `FAINT` and the tilt is small, nothing is left to
doubt: typical for hubs of real graphs, where many directions are exactly zero and rounding grows to 1e-12 beside sizes of 1e-3.
Where the tilt is not small but at most `ROUGH_LIMIT`, the space is kept as `rough`: with the tilt added, its factors are a bound.
A space that stays doubtful is not used for a plain or masked loss: `wide.seen_space` decides it in long integers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netdp.errors import Unsupported
from netdp.graphs import GossipMatrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.views import GossipView

from .modular import CHANCE, certain_krylov_rank, krylov_rank, krylov_ranks, likely_krylov_rank

ZERO = 1e-14
CLEAR = 1e-5
FAINT = 1e-7
CALM = 0.1
CALM_TILT = 1e-12
TILT_LIMIT = 1e-9
ROUGH_LIMIT = 1e-4
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
    rough: SeenSpace | None = None  # of a doubtful one: the same with the right ranks and a tilt that is not small
    dropped: float = 0.0  # the largest size that was taken for rounding
    note: str = ""  # what its rank rests on, if somebody could have had a reason to aim at it

    @property
    def rank(self) -> int:
        """k, the dimension of what is seen: the sum of the plain factors."""
        return int(self.basis.shape[1])


def seen_space(view: GossipView, progress: Progress | None = None) -> SeenSpace:
    """The seen space of a view in floating point, with full re-orthogonalisation and deflation.

    `progress(done, total)` is told of every round.
    """
    basis, ranks, smallest, doubtful, dropped = _build(view, view.step, None, progress)
    rough = _settled(view, progress) if doubtful else None
    if rough is not None and rough.tilt <= TILT_LIMIT:
        return rough
    tilt = CALM_TILT
    if not doubtful and smallest < CALM:
        tilt = max(tilt, _measured_tilt(view, basis, ranks))
        doubtful = tilt > TILT_LIMIT
    if not doubtful and (smallest < CALM or isinstance(view.protocol.mixing, GossipMatrix)):
        doubtful = lost_directions(view, basis.shape[1])[0]
    return SeenSpace(basis, ranks, doubtful, tilt, "float64", rough, dropped)


def _settled(view: GossipView, progress: Progress | None) -> SeenSpace | None:
    """A doubtful space built again with as many new directions per round as there are (`modular`); None if doubt stays."""
    ranks = None if isinstance(view.protocol.mixing, GossipMatrix) else krylov_ranks(view)
    if ranks is None:
        return None
    basis, found, smallest, _, dropped = _build(view, view.step, ranks, progress)
    if found != ranks or smallest < CLEAR or dropped > FAINT:
        return None
    tilt = max(CALM_TILT, _measured_tilt(view, basis, ranks))
    return None if tilt > ROUGH_LIMIT else SeenSpace(basis, ranks, False, tilt, "float64", None, dropped)


def _build(
    view: GossipView,
    step: Callable[[FloatArray], FloatArray],
    prescribed: tuple[int, ...] | None,
    progress: Progress | None = None,
) -> tuple[FloatArray, tuple[int, ...], float, bool, float]:
    """Basis, new directions per round, smallest size kept, whether any size was doubtful, largest size dropped.

    With `prescribed` ranks, each round keeps that many of its largest directions.
    """
    boundary, observers = view.boundary, list(view.observers)
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
    rank, smallest, doubtful, dropped = len(boundary), 1.0, False, 0.0
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
        dropped = max(dropped, float(sizes[kept:].max(initial=0.0)))
        if kept:
            smallest = min(smallest, float(sizes[kept - 1]))
            if sizes[kept - 1] < _AGAIN_BELOW:  # normalising a small block blew its rounding up
                directions[observers] = 0.0  # and with it what a factorisation leaves there, which masks would multiply
                _remove(directions, basis[:, :rank])
                directions = np.linalg.qr(directions)[0]
            directions[observers] = 0.0
        basis[:, rank : rank + kept] = directions
        rank += kept
        ranks.append(kept)
        if progress is not None:
            progress(len(ranks), rounds)
    if ranks[-1] == 0:
        ranks.pop()
    return basis[:, :rank], tuple(ranks), smallest, doubtful, dropped


def lost_directions(view: GossipView, rank: int, long: bool = False) -> tuple[bool, str]:
    """Whether fewer directions may have been kept than there are, and what that rests on; only a run that dropped some can have.

    With weights of one's own it may have, if the rank is not known for certain: they can be tiny, differ by as little as
    rounding, or
    be made so that a rank modulo known primes is too small. Of a run in `long` integers primes that nobody could aim at are enough.
    """
    if rank >= min(int(view.hidden.sum()), len(view.boundary) * view.protocol.rounds):
        return False, ""
    if not isinstance(view.protocol.mixing, GossipMatrix):
        exact = krylov_rank(view)
        return exact is not None and exact != rank, ""
    exact = certain_krylov_rank(view)
    if exact is not None:
        return exact != rank, ""
    return not long or likely_krylov_rank(view) != rank, CHANCE


def _measured_tilt(view: GossipView, basis: FloatArray, ranks: tuple[int, ...]) -> float:
    """How far rounding may have moved a leverage score."""
    scores = leverage(basis)
    return moved(view, ranks, lambda perturbed: scores - leverage(perturbed))


def moved(view: GossipView, ranks: tuple[int, ...], difference: Callable[[FloatArray], FloatArray]) -> float:
    """How far rounding may have moved what is computed from a basis, from what a known larger perturbation moves.

    `difference` tells what that is for another basis of the same ranks, less what it is for the one in use.

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
    return float(200.0 * np.abs(difference(perturbed)).max() * UNIT / _PERTURBATION)


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
