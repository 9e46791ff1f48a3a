"""An orthonormal basis of what the observers' messages span: the block Krylov space, built step by step.

Powers of the gossip matrix lose directions to rounding, so rank and loss would come out too small. Here each round multiplies the
newest *orthonormal* directions and keeps what is new, twice orthogonalised: a size below `ZERO` is rounding, one above `CLEAR` is
new, in between the space is `doubtful`. Then the directions are counted modulo primes (`rank`) and the space is built again with
that many; what stays in doubt is decided in 768-bit integers (`seen_space_wide`). How far rounding `tilt`s the space is measured
and added to the factors. Proof: docs/proofs/gossip.md#leverage-scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.families.gossip.account.rank import (
    CHANCE,
    certain_krylov_rank,
    krylov_rank,
    krylov_ranks,
    likely_krylov_rank,
)
from netdp.families.gossip.views import GossipView
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import GossipMatrix, Mixing, rational_weights
from netdp.numerics.arrays import UNIT, FloatArray, Progress

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
    """A doubtful space built again with as many new directions per round as there are (`krylov_ranks`); None if doubt stays."""
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


BITS = 768

_ZERO = 1 << (BITS - 300)

_CLEAR = 1 << (BITS - 100)

# Multiplications of long integers, one to ten million a second.
MAX_MULTIPLICATIONS = 6e7

Wide = npt.NDArray[Any]  # object arrays of Python integers, scaled by 2^BITS


def affordable(view: GossipView) -> bool:
    """Whether the wide recurrence takes at most a minute."""
    graph, b = view.protocol.graph, len(view.boundary)
    rank = min(graph.n, b * view.protocol.rounds)
    return rank * (2.0 * graph.m + graph.n * (1 + 10.0 * b)) <= MAX_MULTIPLICATIONS


def seen_space_wide(view: GossipView, progress: Progress | None = None) -> SeenSpace:
    """The seen space of a view, decided in long integers; the basis is returned in floating point."""
    multiply = step(view.protocol.graph, view.protocol.mixing, view.observers)
    n, honest, boundary = len(view.hidden), int(view.hidden.sum()), view.boundary
    newest: Wide = np.zeros((len(boundary), n), dtype=object)  # rows are directions
    newest[np.arange(len(boundary)), boundary] = 1 << BITS
    blocks, ranks, doubtful = [newest], [len(boundary)], False
    while len(ranks) < view.protocol.rounds and ranks[-1] > 0 and sum(ranks) < honest:
        rest = multiply(newest)
        for _ in range(2):
            for earlier in blocks[-2:]:
                rest = rest - _project(rest, earlier)
        newest, unclear = orthonormal(rest)
        doubtful |= unclear
        ranks.append(len(newest))
        if progress is not None:
            progress(sum(ranks), min(honest, len(boundary) * view.protocol.rounds))
        if len(newest):
            blocks.append(newest)
    if ranks[-1] == 0:
        ranks.pop()
    note = ""
    if isinstance(view.protocol.mixing, GossipMatrix) and not doubtful:  # a product of tiny weights is below any limit
        doubtful, note = lost_directions(view, sum(ranks), long=True)
    return replace(rounded(np.vstack(blocks), tuple(ranks), doubtful), note=note)


def rounded(directions: Wide, ranks: tuple[int, ...], doubtful: bool) -> SeenSpace:
    """The space of these orthonormal rows in floating point; rows that are not orthonormal after all make it doubtful."""
    basis = np.asfortranarray((directions / (1 << BITS)).astype(np.float64).T)
    n, k = basis.shape
    if k and np.abs(basis.T @ basis - np.eye(k)).max() > 1e-13 * max(n, 100):
        doubtful = True
    return SeenSpace(basis, ranks, doubtful, CALM_TILT, "768-bit")


def step(graph: Graph, mixing: Mixing, observers: Iterable[int]) -> Callable[[Wide], Wide]:
    """Multiplication of row vectors by W_HH in wide arithmetic."""
    tops, bottoms = rational_weights(graph, mixing)
    weights: Wide = np.array([(top << BITS) // d for top, d in zip(tops, bottoms, strict=True)], dtype=object)
    diagonal: Wide = np.full(graph.n, 1 << BITS, dtype=object)
    starts = graph.indptr[:-1]
    has_neighbours = np.diff(graph.indptr) > 0
    if graph.m:
        diagonal[has_neighbours] -= np.add.reduceat(weights, starts[has_neighbours])
    struck = list(observers)

    def multiply(rows: Wide) -> Wide:
        product = rows * diagonal
        if graph.m:
            product[:, has_neighbours] += np.add.reduceat(
                rows[:, graph.indices] * weights, starts[has_neighbours], axis=1
            )
        product[:, struck] = 0
        return product >> BITS

    return multiply


def _project(rows: Wide, basis: Wide) -> Wide:
    return np.asarray(((rows @ basis.T >> BITS) @ basis) >> BITS)


def orthonormal(rows: Wide) -> tuple[Wide, bool]:
    """Gram–Schmidt with pivoting; the second value says whether some size was neither zero nor clear."""
    kept: list[Wide] = []
    left = list(rows)
    while left:
        squares = [int(row @ row) for row in left]
        largest = max(range(len(left)), key=squares.__getitem__)
        size = math.isqrt(squares[largest])
        if size < _CLEAR:
            return _stack(kept, rows), size > _ZERO
        direction = (left.pop(largest) << BITS) // size
        kept.append(direction)
        left = [row - ((int(row @ direction) >> BITS) * direction >> BITS) for row in left]
    return _stack(kept, rows), False


def _stack(kept: list[Wide], rows: Wide) -> Wide:
    return np.array(kept, dtype=object).reshape(len(kept), rows.shape[1])
