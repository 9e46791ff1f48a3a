"""Accountants of gossip that changes from step to step: given graphs, given edges, or a sample of them.

With the realised edges (`transcript=run.transcript`) or graphs the loss is exact: the seen space is built backwards, step by step,
and no direction that is seen is lost, for its dimension is checked against the rank modulo primes
(docs/proofs/gossip.md#changing-gossip). States that hold more numbers than parties, or steps that are not symmetric, go the same
way (docs/proofs/gossip.md#state-views). Before the edges are drawn the loss is an *estimate*: the mean of the exact δ over sampled
sequences, with a percentile bootstrap interval. The mean *factor* would mean nothing: a few sequences carry all of δ.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import sparse

from netdp.errors import InvalidValue
from netdp.families.gossip.account import grid as refreshed
from netdp.families.gossip.account import krylov
from netdp.families.gossip.account import rank as modular
from netdp.families.gossip.account.exact import EXACT_BELOW, Factors
from netdp.families.gossip.account.krylov import CALM_TILT, CLEAR, TILT_LIMIT, SeenSpace, leverage
from netdp.families.gossip.account.rank import SHORT_BITS, drawn_primes, independent
from netdp.families.gossip.account.statements import certified_statement
from netdp.families.gossip.logs import ExchangeLogs, ExchangeView
from netdp.families.gossip.protocol import RandomizedGossip
from netdp.families.gossip.varying import PushSum, VaryingGossip
from netdp.families.gossip.views import MomentumView, PushView, SequenceView, exchanged
from netdp.graphs.mixing import GossipMatrix
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.numerics.kernels import csr_times_block
from netdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.table import certified

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
            return _everything_revealed(view.observers, view.reached, rank)
    return _stated(view.observers, view.reached, space.basis, space.tilt, rank, notes)


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
    basis, course, doubtful = _build_chain(view, None, progress)
    ranks = tuple(kept for kept, _ in course)
    if doubtful:
        return SeenSpace(basis, ranks, True, np.inf, "float64")
    tilt = _tilt(basis, _build_chain(view, course)[0])
    return SeenSpace(basis, ranks, tilt > TILT_LIMIT, tilt, "float64")


def _build_chain(
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
        orthonormal, triangle = np.linalg.qr(block if rng is None else _perturbed(block, rng))
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
            block = np.hstack([block, _units(view.n, seen)])
        if since and (since >= wait or len(seen) or changing):
            (block, wait), since = reduce(block), 0
            if doubtful and prescribed is None:
                break
        if progress is not None:
            progress(min(done, total), total)
    return reduce(block)[0] if block.shape[1] else block, course, doubtful


def _perturbed(block: FloatArray, rng: np.random.Generator) -> FloatArray:
    """As rounding does: every entry that is not structurally zero is moved, relative to the size of its column."""
    touched = (block != 0).any(axis=1)
    count = int(touched.sum())
    size = np.linalg.norm(block, axis=0) / np.sqrt(max(count, 1))
    moved = block.copy()
    moved[touched] += _PERTURBATION * size * rng.standard_normal((count, block.shape[1]))
    return moved


def _tilt(basis: FloatArray, perturbed: FloatArray) -> float:
    """How far rounding may have tilted a space, from what perturbing every number does to the factors."""
    moved = np.abs(leverage(basis) - leverage(perturbed)).max(initial=0.0)
    return max(CALM_TILT, float(200.0 * moved * UNIT / _PERTURBATION))


def _units(width: int, places: IntArray) -> FloatArray:
    """The unit vectors of some coordinates, as columns."""
    units = np.zeros((width, len(places)))
    units[places, np.arange(len(places))] = 1.0
    return units


def affordable(view: SequenceView, rank: int) -> bool:
    """Whether the chain in long integers takes at most half a minute or so."""
    protocol, columns = view.protocol, float(min(rank, view.n) + 1)
    if isinstance(protocol, VaryingGossip):
        products = columns * sum(2.0 * graph.m + graph.n for graph in protocol.graphs)
        times = protocol.rounds / _WIDE_ROUNDS + 1
    else:
        products, times = columns * protocol.steps, protocol.steps / _WIDE_EXCHANGES + 1
    return products + times * 2.0 * columns**2 * view.n <= krylov.MAX_MULTIPLICATIONS


def wide_space(view: SequenceView) -> SeenSpace:
    """The seen space in long integers: the same recursion, orthonormalised more rarely."""
    n, protocol = view.n, view.protocol
    rows: krylov.Wide = np.zeros((0, n), dtype=object)
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
                    made[key] = krylov.step(*key, view.observers)
                rows = made[key](rows)
                since += _WIDE_EXCHANGES // _WIDE_ROUNDS
        if len(seen):
            units: krylov.Wide = np.zeros((len(seen), n), dtype=object)
            units[np.arange(len(seen)), seen] = 1 << krylov.BITS
            rows = np.vstack([rows, units])
        if since >= _WIDE_EXCHANGES or len(rows) > n + 8:
            rows, unclear = krylov.orthonormal(rows)
            ranks.append(len(rows))
            doubtful, since = doubtful or unclear, 0
    rows, unclear = krylov.orthonormal(rows)
    return krylov.rounded(rows, (*ranks, len(rows)), doubtful or unclear)


def _stated(
    observers: tuple[int, ...],
    reached: npt.NDArray[np.bool_],
    basis: FloatArray,
    tilt: float,
    rank: int,
    notes: tuple[str, ...] = (),
) -> Factors:
    """The factors of a seen space that is known up to a tilt, which is added."""
    values = np.where(reached, np.minimum(leverage(basis) + tilt, 1.0), 0.0)
    values[list(observers)] = np.nan
    return Factors(values, tilt, Claim.EXACT if tilt <= EXACT_BELOW else Claim.UPPER, rank, notes)


def _everything_revealed(observers: tuple[int, ...], reached: npt.NDArray[np.bool_], rank: int) -> Factors:
    """An upper bound: the observers are told the first message of everybody whose value can have reached them."""
    values = reached.astype(np.float64)
    values[list(observers)] = np.nan
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
    basis, doubtful = _build_states(view, None, progress)
    if not doubtful and basis.shape[1] == rank:
        tilt = _tilt(basis, _build_states(view, rank)[0])
        if tilt <= TILT_LIMIT:
            return _stated(view.observers, view.reached(), basis, tilt, rank)
    return _everything_revealed(view.observers, view.reached(), rank)


def _build_states(view: StateView, final: int | None, progress: Progress | None = None) -> tuple[FloatArray, bool]:
    """A basis of what is seen of the values, and any doubt. With the `final` rank given, every number is perturbed."""
    rng = None if final is None else np.random.default_rng(0)
    block, doubtful, since = np.zeros((view.width, 0)), False, 0

    def reduce(block: FloatArray, keep: int | None = None) -> FloatArray:
        nonlocal doubtful
        if not block.shape[1]:
            return block
        orthonormal, triangle = np.linalg.qr(block if rng is None else _perturbed(block, rng))
        rotation, sizes, _ = np.linalg.svd(triangle)
        kept = int((sizes > (_NOTHING if rng is None else CLEAR / 2)).sum()) if keep is None else keep
        if rng is None:
            doubtful = doubtful or bool(((sizes > _NOTHING) & (sizes < CLEAR)).any())
        return np.ascontiguousarray(orthonormal @ rotation[:, :kept])

    for t in range(view.steps - 1, -1, -1):
        if block.shape[1]:
            block = view.pull(t, block)
        places = view.seen(t)
        since += 1
        if len(places) or since >= _STRETCH:
            block, since = reduce(np.hstack([block, _units(view.width, places)])), 0
        if progress is not None:
            progress(view.steps - t, view.steps)
    block = reduce(block)
    return reduce(np.asarray(view.collapse(block), dtype=np.float64), final), doubtful


def _rank(view: StateView, prime: int) -> int:
    block = np.zeros((view.width, 0), dtype=np.int64)
    for t in range(view.steps - 1, -1, -1):
        if block.shape[1]:
            block = view.pull_modular(t, block, prime)
        block = np.hstack([block, _units(view.width, view.seen(t)).astype(np.int64)])
        if block.shape[1] > 2 * view.width:
            block = independent(block, prime)
    last = np.asarray(view.collapse(block), dtype=np.int64) % prime
    return int(independent(last, prime).shape[1])


# How many sequences are sampled: so many that what happens once in a thousand runs is seen often enough to count; fewer
# where one takes long (multiplications in all), and no more once so many could only be decided the slow way.
MOST_SAMPLES, FEWEST_SAMPLES, _WORK = 20_000, 40, 2e10

# A projector of more parties takes too much memory.
_MAX_PROJECTED = 2000

# The δ at which losses are compared in words, and the resamples of their interval.
_DELTA, _RESAMPLES = 1e-6, 1000

# Factors are rounded up to whole powers of e^this.
_FINENESS = 2e-4


@certified.register
def _varying(protocol: VaryingGossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    if protocol.grid is not None or protocol.refresh > 0:
        return refreshed.loss_of_rounds(protocol, observers)
    result = factors(SequenceView(protocol, observers), progress)
    notes = ("all graphs are fixed beforehand and public", *result.notes)
    return certified_statement(protocol, result.values, result.claim, result.slack, notes)


@certified.register
def _push_sum(protocol: PushSum, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = state_factors(PushView(protocol, observers), progress)
    return certified_statement(protocol, result.values, result.claim, result.slack, result.notes)


@certified.register
def _randomized(
    protocol: RandomizedGossip,
    observers: tuple[int, ...],
    *,
    transcript: Any = None,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Guarantee:
    """`transcript`: of a run, its edges (steps, 2) or the logs of its parties. Without it: an estimate over `samples`
    sequences from `seed`; on a grid local DP, which is certain.

    By default 20,000 sequences, fewer for large protocols. On a ring of 32 with 64 steps and σ = 2Δ that takes 4 s, and ε of
    the party five hops away at δ = 1e-6 (0.68; one sequence in 130 reaches the observer at all) came out between 0.55 and
    0.77 with 16 seeds.
    """
    if transcript is None and protocol.grid is None:
        return _estimate(protocol, observers, samples, seed, progress)
    if transcript is None:
        return refreshed.before_the_run(protocol, observers)
    if isinstance(transcript, ExchangeLogs) or protocol.grid is not None or protocol.refresh > 0:
        logs = transcript if isinstance(transcript, ExchangeLogs) else None
        logs = logs or ExchangeLogs.of_edges(protocol.n, exchanged(protocol, transcript))
        return refreshed.loss_of_exchanges(protocol, observers, logs)
    result = _given(protocol, observers, exchanged(protocol, transcript), progress)
    notes = ("the edges are drawn without regard to the values, and known to the observers", *result.notes)
    return certified_statement(protocol, result.values, result.claim, result.slack, notes)


def _given(
    protocol: RandomizedGossip, observers: tuple[int, ...], edges: IntArray, progress: Progress | None = None
) -> Factors:
    """The exact factors on known edges."""
    if protocol.refresh > 0:
        return refreshed.factors_of_exchanges(
            protocol, ExchangeView(ExchangeLogs.of_edges(protocol.n, edges), observers)
        )
    if protocol.accelerated:
        return state_factors(MomentumView(protocol, observers, edges), progress)
    return factors(SequenceView(protocol, observers, edges), progress)


def _estimate(
    protocol: RandomizedGossip, observers: tuple[int, ...], samples: int | None, seed: int, progress: Progress | None
) -> Guarantee:
    """δ(ε) averaged over sampled sequences, with an interval in words (docs/proofs/gossip.md#changing-gossip)."""
    n = protocol.graph.n
    patience = samples or FEWEST_SAMPLES
    if samples is None:
        samples = int(np.clip(_WORK / (protocol.steps * n**2), FEWEST_SAMPLES, MOST_SAMPLES))
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2:
        raise InvalidValue(f"samples must be a whole number ≥ 2, got {samples!r}")
    drawn = np.empty((samples, n))
    sequence = np.random.SeedSequence(seed)
    for i, state in enumerate(sequence.generate_state(samples).tolist()):
        edges = protocol.draw(state)
        plain = n <= _MAX_PROJECTED and not protocol.accelerated and protocol.refresh == 0
        quick = projected(SequenceView(protocol, observers, edges)) if plain else None
        drawn[i] = _given(protocol, observers, edges).values if quick is None else quick
        if progress is not None:
            progress(i + 1, samples)
        patience -= quick is None
        if patience == 0:
            break
    drawn = drawn[: i + 1]
    samples = len(drawn)
    mixture = Mixture(drawn, protocol.local_mu)
    losses = np.asarray(mixture.curve.epsilon(_DELTA))
    worst = int(np.nanargmax(losses))
    low, high, least, most = mixture.intervals(worst, float(losses[worst]), _DELTA, np.random.default_rng(sequence))
    each = np.nanmax(drawn, axis=1)
    notes = (
        f"an estimate over {samples} sampled edge sequences (seed {seed}): δ at every ε is the mean over them of the exact δ "
        "given the edges, which are drawn without regard to the values and known to the observers; what a run has lost is "
        "exact once its edges are known: account(protocol, observers, transcript=run.transcript)",
        f"at δ = {_DELTA:g} party {worst} loses most: ε = {losses[worst]:.4g}, 95 % interval {low:.4g} to {high:.4g}; δ at "
        f"this ε: {least:.2g} to {most:.2g} (bootstrap percentiles, {_RESAMPLES} resamples; sequences rarer than about one "
        f"in {samples} are not in the sample, and no interval knows of them)",
        "the factor is the mean factor over the sequences; no ε follows from it, since rare sequences carry most of δ",
        f"largest factor of any party in a sampled run: {each.mean():.4g} on average, {each.max():.4g} at most",
    )
    mean = drawn.mean(axis=0)
    return certified_statement(protocol, mean, Claim.ESTIMATE, 0.0, notes, mixture.curve)


class Mixture:
    """The mean over draws of the Gaussian δ(ε) of every party; `drawn` has a factor per draw and party, nan at observers."""

    def __init__(self, drawn: FloatArray, local_mu: float) -> None:
        self._samples, n = drawn.shape
        self._mu, self._knots = local_mu, knots(local_mu)
        # Factors of zero lose nothing at any ε and are left out of the counts.
        draw, party = np.nonzero(drawn > 0)
        levels = np.ceil(np.log(np.minimum(drawn[draw, party], 1.0)) / _FINENESS)
        kinds, which = np.unique(levels, return_inverse=True)
        self._kinds = np.exp(kinds * _FINENESS)
        self._counts = sparse.csc_array((np.ones(len(draw)), (party, which)), shape=(n, len(kinds)))
        deltas = np.zeros((n, len(self._knots)))
        for first in range(0, len(kinds), 2048):  # a table of all would be large
            some = slice(first, first + 2048)
            deltas += self._counts[:, some] @ self._deltas(self._kinds[some])
        deltas = np.minimum.accumulate(deltas / self._samples, axis=1)  # rounding may break the order
        deltas[np.isnan(drawn[0])] = np.nan
        self.curve = ProfileCurve(self._knots, deltas)

    def _deltas(self, factors: FloatArray) -> FloatArray:
        return np.asarray(gaussian_delta(np.sqrt(factors)[:, None] * self._mu, self._knots))

    def intervals(
        self, party: int, epsilon: float, delta: float, rng: np.random.Generator
    ) -> tuple[float, float, float, float]:
        """95 % percentile bootstrap intervals: of ε at `delta`, and of δ at `epsilon`."""
        counts = self._counts[[party], :].toarray()[0]
        present = counts > 0
        factors, counts = self._kinds[present], counts[present]
        chances = np.append(counts, max(self._samples - counts.sum(), 0.0)) / self._samples
        shares = rng.multinomial(self._samples, chances / chances.sum(), size=_RESAMPLES)[:, :-1] / self._samples
        profiles = np.minimum.accumulate(shares @ self._deltas(factors), axis=1)
        # Between knots the chord reads ε too large and a straight line in log δ, which is concave, too small.
        high = np.quantile(ProfileCurve(self._knots, profiles).epsilon(delta), 0.975)
        heights = -np.log(np.maximum(profiles, 1e-300))
        low = np.quantile([np.interp(-np.log(delta), height, self._knots) for height in heights], 0.025)
        failures = shares @ np.asarray(gaussian_delta(np.sqrt(factors) * self._mu, epsilon))
        least, most = np.quantile(failures, [0.025, 0.975])
        return float(low), float(high), float(least), float(most)


def knots(local_mu: float) -> FloatArray:
    """The ε at which a mixture of Gaussian losses of μ ≤ local_mu is tabulated, up to where δ is below 1e-30.

    How dense they are: docs/proofs/gossip.md#changing-gossip.
    """
    top = min(float(gaussian_epsilon(local_mu, 1e-30)), 1e6)
    knots, widest = [0.0, min(1e-3, 1e-4 * top)], max(0.125, top / 600)
    while knots[-1] < top:
        knots.append(knots[-1] + min(0.015 * knots[-1], widest))
    return np.asarray(knots)
