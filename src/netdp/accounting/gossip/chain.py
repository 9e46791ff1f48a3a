"""What observers of a changing gossip learn, exactly: an orthonormal basis of the seen space, built backwards.

The seen space obeys S_t = span{e_w : w ∈ R_t} + P_t S_{t+1} (`netdp.views.sequence`), so with Q an orthonormal basis of S_0
the factor of u is ‖q_u‖², its leverage score, as for plain gossip on a fixed graph (docs/guarantees.md#changing-gossip).

Written out, the rows e_wᵀP_{t−1}⋯P_0 become nearly parallel as they mix, and rounding swallows what tells them apart. Run
backwards, the *whole basis* goes through every step and is orthonormalised again after a few of them, so what must be told
apart from rounding is what a few steps do, not what all of them do.

Whether a direction is there is decided twice. In floating point a size below `_NOTHING` is dropped, one above
`krylov.CLEAR` is kept, in between the space is doubtful. Dropping can only make the space smaller, step by step; so if the
dimension at the end is the rank (`modular`: certain for weights of one's own), nothing that is seen was lost. How far
rounding tilted the space is
measured as in `krylov`, by a second run whose numbers are perturbed by 1e-11. A doubtful space is
built again in 768-bit integers; if that takes too long, everybody whose value can have reached the observers gets factor 1.

**Thousands of sequences** of random edges, for an estimate, go a quicker way (`projected`). With Π the orthogonal projector
on S and a = (e_u − e_w)/√2, an exchange between hidden u and w takes S to (I − aaᵀ)S = (S + span a) ∩ a^⊥ [the inclusion
and the dimensions are plain], so one adds a to the space and then takes it away, Π ← Π + qqᵀ/‖q‖² − aaᵀ with q = (I − Π)a;
what is seen is added likewise. Nothing is orthonormalised, and the factors are the diagonal of Π. The only question is
whether q = 0; Π is rational, so the same recursion modulo a prime answers it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from netdp.graphs import GossipMatrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.numerics.kernels import csr_times_block
from netdp.privacy import Claim
from netdp.protocols import VaryingGossip
from netdp.views import SequenceView

from . import modular, wide
from .exact import EXACT_BELOW, Factors
from .krylov import CALM_TILT, CLEAR, TILT_LIMIT, SeenSpace, leverage

_NOTHING = 1e-11
_PERTURBATION = 1e-11
# Exchanges between two orthonormalisations. In floating point few, so that sizes stay well above rounding: more after a
# stretch that shrank nothing below _EASY, fewer after one that shrank something below _HARD.
_EXCHANGES, _MOST_EXCHANGES, _EASY, _HARD = 8, 1024, 0.5, 0.1
_WIDE_EXCHANGES, _WIDE_ROUNDS = 64, 4
# `projected`: the least square of a size that rounding leaves recognisable, and how far Π² may be off Π at the end.
_FAINT, _DEFECT = 1e-16, 1e-7
# Of estimates over edges that are drawn; a known sequence is accounted for with primes of its own (`modular`).
_PRIME = 2147483629


def factors(view: SequenceView, progress: Progress | None = None) -> Factors:
    """The factors of one set of observers against a known sequence of steps.

    >>> from netdp import graphs
    >>> from netdp.protocols import RandomizedGossip
    >>> edges = np.array([[1, 2], [0, 1], [1, 2], [0, 1]])
    >>> protocol = RandomizedGossip(graphs.path(3), steps=4, sigma=1.0)
    >>> factors(SequenceView(protocol, (0,), edges)).values.round(6).tolist()      # 0 sees x₁+x₂ twice, in two ways
    [nan, 0.5, 0.5]
    """
    rank = modular.seen_rank(view)
    space = seen_space(view, progress)
    notes: tuple[str, ...] = ()
    known, chance = _known(view, rank)
    rank = rank if known is None else known
    if space.doubtful or space.rank != known or chance:
        if known is not None and affordable(view, rank):
            space, notes = wide_space(view), ("rank decided in 768-bit arithmetic", *((chance,) if chance else ()))
        if space.doubtful or space.rank != known or (chance and not notes):
            return _everything_revealed(view, rank)
    values = np.minimum(leverage(space.basis) + space.tilt, 1.0)
    values[~view.reached] = 0.0
    values[list(view.observers)] = np.nan
    return Factors(values, space.tilt, Claim.EXACT if space.tilt <= EXACT_BELOW else Claim.UPPER, rank, notes)


def _known(view: SequenceView, rank: int) -> tuple[int | None, str]:
    """The rank, None if not known; and what it rests on if it is not certain and the weights are of one's own."""
    own = isinstance(view.protocol, VaryingGossip) and any(isinstance(m, GossipMatrix) for _, m in view.protocol.keys)
    if not own or rank == int(view.reached.sum()):  # no more than that can be seen
        return rank, ""
    certain = modular.certain_seen_rank(view)
    return (modular.likely_seen_rank(view), modular.CHANCE) if certain is None else (certain, "")


def projected(view: SequenceView) -> FloatArray | None:
    """The factors of randomized gossip on known edges, quickly and right to some 1e-6; None if floating point cannot tell.

    >>> from netdp import graphs
    >>> from netdp.protocols import RandomizedGossip
    >>> edges = np.array([[1, 2], [0, 1], [1, 2], [0, 1]])
    >>> projected(SequenceView(RandomizedGossip(graphs.path(3), steps=4, sigma=1.0), (0,), edges)).round(6).tolist()
    [nan, 0.5, 0.5]
    """
    values, clear = _projected(view.edges, view.hidden, _PRIME)
    if not clear:
        return None
    values = np.clip(values, 0.0, 1.0)
    values[list(view.observers)] = np.nan
    return np.asarray(values)


def seen_space(view: SequenceView, progress: Progress | None = None) -> SeenSpace:
    """The seen space in floating point."""
    basis, course, doubtful = _build(view, None, progress)
    ranks = tuple(kept for kept, _ in course)
    if doubtful:
        return SeenSpace(basis, ranks, True, np.inf, "float64")
    moved = np.abs(leverage(basis) - leverage(_build(view, course)[0])).max(initial=0.0)
    tilt = max(CALM_TILT, float(200.0 * moved * UNIT / _PERTURBATION))
    return SeenSpace(basis, ranks, tilt > TILT_LIMIT, tilt, "float64")


def _build(
    view: SequenceView, prescribed: list[tuple[int, int]] | None, progress: Progress | None = None
) -> tuple[FloatArray, list[tuple[int, int]], bool]:
    """Basis; its dimension after every orthonormalisation and how many exchanges to wait for the next; any doubt.

    With a `prescribed` course that is kept to, and every number is perturbed.
    """
    rng = None if prescribed is None else np.random.default_rng(0)
    changing = isinstance(view.protocol, VaryingGossip)
    total = view.protocol.rounds if isinstance(view.protocol, VaryingGossip) else view.protocol.steps
    observers = list(view.observers)
    block, course, doubtful, since, wait = np.zeros((view.n, 0)), list[tuple[int, int]](), False, 0, _EXCHANGES

    def reduce(block: FloatArray) -> tuple[FloatArray, int]:
        nonlocal doubtful
        if rng is not None:
            # As rounding does: every entry that is not structurally zero, relative to the size of its column.
            reached = (block != 0).any(axis=1)
            count = int(reached.sum())
            size = np.linalg.norm(block, axis=0) / np.sqrt(max(count, 1))
            block = block.copy()
            block[reached] += _PERTURBATION * size * rng.standard_normal((count, block.shape[1]))
        orthonormal, triangle = np.linalg.qr(block)
        rotation, sizes, _ = np.linalg.svd(triangle)
        if prescribed is None:
            kept, smallest = int((sizes > _NOTHING).sum()), sizes[-1]
            doubtful = doubtful or bool(((sizes > _NOTHING) & (sizes < CLEAR)).any())
            course.append((kept, min(2 * wait, _MOST_EXCHANGES) if smallest > _EASY else wait))
            if smallest < _HARD:
                course[-1] = kept, max(wait // 2, _EXCHANGES)
        else:
            course.append(prescribed[len(course)])
        kept, following = course[-1]
        return np.ascontiguousarray(orthonormal @ rotation[:, :kept]), following

    for done, (pull, seen) in enumerate(view.backward(), start=1):
        if block.shape[1]:
            if isinstance(pull, tuple):
                u, w = pull
                block[u] = block[w] = 0.5 * (block[u] + block[w])
                since += 1
            elif pull is not None:
                W = view.protocol.matrices[pull]  # type: ignore[union-attr]
                block = csr_times_block(W.indptr, W.indices, W.data, block)
                block[observers] = 0.0
                since += 1
        if len(seen):
            units = np.zeros((view.n, len(seen)))
            units[seen, np.arange(len(seen))] = 1.0
            block = np.hstack([block, units])
        if since and (since >= wait or len(seen) or changing):
            (block, wait), since = reduce(block), 0
            if doubtful and prescribed is None:
                break
        if progress is not None:
            progress(min(done, total), total)
    return reduce(block)[0] if block.shape[1] else block, course, doubtful


def affordable(view: SequenceView, rank: int) -> bool:
    """Whether the chain in long integers takes at most half a minute or so."""
    protocol, columns = view.protocol, float(min(rank, view.n) + 1)
    if isinstance(protocol, VaryingGossip):
        products = columns * sum(2.0 * graph.m + graph.n for graph in protocol.graphs)
        times = protocol.rounds / _WIDE_ROUNDS + 1
    else:
        products, times = columns * protocol.steps, protocol.steps / _WIDE_EXCHANGES + 1
    return products + times * 2.0 * columns**2 * view.n <= wide.MAX_MULTIPLICATIONS


def wide_space(view: SequenceView) -> SeenSpace:
    """The seen space in long integers: the same recursion, orthonormalised more rarely."""
    n, protocol = view.n, view.protocol
    rows: wide.Wide = np.zeros((0, n), dtype=object)
    ranks, doubtful, since, made = list[int](), False, 0, {}
    for pull, seen in view.backward():
        if len(rows):
            if isinstance(pull, tuple):
                u, w = pull
                mean = (rows[:, u] + rows[:, w]) >> 1
                rows[:, u], rows[:, w] = mean, mean
                since += 1
            elif pull is not None and isinstance(protocol, VaryingGossip):
                key = protocol.keys[pull]
                if key not in made:
                    made[key] = wide.step(*key, view.observers)
                rows = made[key](rows)
                since += _WIDE_EXCHANGES // _WIDE_ROUNDS
        if len(seen):
            units: wide.Wide = np.zeros((len(seen), n), dtype=object)
            units[np.arange(len(seen)), seen] = 1 << wide.BITS
            rows = np.vstack([rows, units])
        if since >= _WIDE_EXCHANGES or len(rows) > n + 8:
            rows, unclear = wide.orthonormal(rows)
            ranks.append(len(rows))
            doubtful, since = doubtful or unclear, 0
    rows, unclear = wide.orthonormal(rows)
    return wide.rounded(rows, (*ranks, len(rows)), doubtful or unclear)


def _everything_revealed(view: SequenceView, rank: int) -> Factors:
    """An upper bound: the observers are told the first message of everybody whose value can have reached them."""
    values = view.reached.astype(np.float64)
    values[list(view.observers)] = np.nan
    note = "the seen space could not be decided: bounded by what observers of all first messages would learn"
    return Factors(values, 0.0, Claim.UPPER, rank, (note,))


@njit(nogil=True, cache=True)
def _projected(edges: Any, hidden: Any, prime: int) -> Any:
    """The diagonal of the projector on what is seen, and whether floating point was good enough for it.

    Modulo a prime the same recursion says whether q is zero; the vectors there are not normalised, 2aaᵀ has entries ±1.
    """
    n = len(hidden)
    half, clear = (prime + 1) // 2, True
    projector, residues = np.zeros((n, n)), np.zeros((n, n), dtype=np.int64)
    reached, position, count = np.empty(n, dtype=np.int64), np.full(n, -1), 0  # nothing is known of the others
    part, remainder = np.empty(n), np.empty(n, dtype=np.int64)
    for step in range(len(edges) - 1, -1, -1):
        u, w = edges[step, 0], edges[step, 1]
        if u < 0 or not (hidden[u] or hidden[w]):
            continue
        both = hidden[u] and hidden[w]
        if both and position[u] < 0 and position[w] < 0:
            continue
        if not hidden[u]:
            u, w = w, u
        for party in (u, w):
            if hidden[party] and position[party] < 0:
                position[party], reached[count] = count, party
                count += 1
        # q = (I − Π)(e_u − e_w), or (I − Π)e_u
        size, residue, new = 0.0, 0, False
        for i in range(count):
            p = reached[i]
            part[i], remainder[i] = (p == u) - projector[p, u], (p == u) - residues[p, u]
            if both:
                part[i] -= (p == w) - projector[p, w]
                remainder[i] -= (p == w) - residues[p, w]
            remainder[i] %= prime
            new = new or remainder[i] != 0
            size += part[i] * part[i]
            residue = (residue + remainder[i] * remainder[i]) % prime
        if new:
            if residue == 0 or size < _FAINT:
                return np.diag(projector).copy(), False
            inverse, base, exponent = 1, residue, prime - 2  # Fermat
            while exponent:
                if exponent & 1:
                    inverse = inverse * base % prime
                base = base * base % prime
                exponent >>= 1
            for i in range(count):
                scaled = remainder[i] * inverse % prime
                for j in range(count):
                    projector[reached[i], reached[j]] += part[i] * part[j] / size
                    residues[reached[i], reached[j]] = (
                        residues[reached[i], reached[j]] + scaled * remainder[j]
                    ) % prime
        if both:
            for x, y, sign in ((u, u, 1), (w, w, 1), (u, w, -1), (w, u, -1)):
                projector[x, y] -= 0.5 * sign
                residues[x, y] = (residues[x, y] - sign * half) % prime
    # Rounding shows: a projector is its own square.
    for i in range(count):
        square = 0.0
        for j in range(count):
            square += projector[reached[i], reached[j]] ** 2
        clear = clear and abs(square - projector[reached[i], reached[i]]) < _DEFECT
    return np.diag(projector).copy(), clear
