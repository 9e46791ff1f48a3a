"""What observers of a changing gossip learn, exactly: an orthonormal basis of the seen space, built backwards.

The seen space obeys S_t = span{e_w : w ∈ R_t} + P_t S_{t+1} (`netdp.views.sequence`), so with Q an orthonormal basis of S_0
the factor of u is ‖q_u‖², its leverage score, as for plain gossip on a fixed graph (docs/guarantees.md).

Written out, the rows e_wᵀP_{t−1}⋯P_0 become nearly parallel as they mix, and rounding swallows what tells them apart. Run
backwards, the *whole basis* goes through every step and is orthonormalised again after a few of them, so what must be told
apart from rounding is what a few steps do, not what all of them do.

Whether a direction is there is decided twice. In floating point a size below `_NOTHING` is dropped, one above
`krylov.CLEAR` is kept, in between the space is doubtful. Dropping can only make the space smaller, step by step; so if the
dimension at the end is the exact rank (`modular`), nothing that is seen was lost. How far rounding tilted the space is
measured as in `krylov`, by a second run whose numbers are perturbed by 1e-11. A doubtful space is
built again in 768-bit integers; if that takes too long, everybody whose value can have reached the observers gets factor 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.graphs.kernels import csr_times_block
from netdp.privacy import Claim
from netdp.privacy._numeric import UNIT
from netdp.protocols import VaryingGossip
from netdp.views import SequenceView

from . import modular, wide
from .gossip import EXACT_BELOW, Factors
from .krylov import CALM_TILT, CLEAR, TILT_LIMIT, Progress, SeenSpace, leverage

FloatArray = npt.NDArray[np.float64]

_NOTHING = 1e-11
_PERTURBATION = 1e-11
# Exchanges between two orthonormalisations. In floating point few, so that sizes stay well above rounding: more after a
# stretch that shrank nothing below _EASY, fewer after one that shrank something below _HARD.
_EXCHANGES, _MOST_EXCHANGES, _EASY, _HARD = 8, 1024, 0.5, 0.1
_WIDE_EXCHANGES, _WIDE_ROUNDS = 64, 4


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
    if space.doubtful or space.rank != rank:
        if affordable(view, rank):
            space, notes = wide_space(view), ("rank decided in 768-bit arithmetic",)
        if space.doubtful or space.rank != rank:
            return _everything_revealed(view, rank)
    values = np.minimum(leverage(space.basis) + space.tilt, 1.0)
    values[~view.reached] = 0.0
    values[list(view.observers)] = np.nan
    return Factors(values, space.tilt, Claim.EXACT if space.tilt <= EXACT_BELOW else Claim.UPPER, rank, notes)


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
                graph = protocol.graphs[pull]
                if graph.digest not in made:
                    made[graph.digest] = wide.step(graph, protocol.mixing, view.observers)
                rows = made[graph.digest](rows)
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
