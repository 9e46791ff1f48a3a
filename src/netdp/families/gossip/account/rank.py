"""How many directions are seen: the rank of the seen rows modulo large primes.

A minor that is not zero modulo p is not zero, so rank mod p ≤ rank, whatever rounding does; it is smaller only if p divides every
largest minor. That is excluded certainly, modulo so many primes that their product exceeds every minor (`certain_krylov_rank`,
`certain_seen_rank`); or by two primes that a hash drew, for weights that the graph fixes (`krylov_rank`, `krylov_ranks`,
`seen_rank`); or, for weights of one's own, by three of them beside long integers, with a chance of at most 2⁻⁸⁰
(`likely_krylov_rank`, `likely_seen_rank`). Proof: docs/proofs/gossip.md#rank-modulo-primes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numba import njit

from netdp.families.gossip.varying import VaryingGossip
from netdp.families.gossip.views import GossipView, SequenceView
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import GossipMatrix, Mixing, rational_weights
from netdp.numerics.arrays import IntArray

BITS = 50

SHORT_BITS = 31  # for recursions that multiply residues in 63 bits

MAX_PRODUCTS = 3e8  # a few seconds

MAX_RANK_PRODUCTS = 2e9  # half of them are done, for each prime: some ten seconds

CHANCE = (
    "that nothing more is seen was decided in 768-bit arithmetic and modulo three primes drawn by a hash of the protocol: for any "
    "weights, a share of at most 2⁻⁸⁰ of all draws hides a direction"
)

_DRAWN, _DRAWN_FOR_OWN = 2, 3

_PRIMES_THERE_ARE = 1.6e13  # at least, with 50 bits (Dusart: x/(ln x − 1) ≤ π(x) ≤ x/(ln x − 1.1))

_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


def drawn_primes(seed: bytes, bits: int = BITS) -> Iterator[int]:
    """Different primes of so many bits, all equally likely, drawn by BLAKE2b of the seed.

    >>> first, second = islice(drawn_primes(b"some protocol"), 2)
    >>> first != second, first.bit_length(), second.bit_length()
    (True, 50, 50)
    """
    known, counter = set[int](), 0
    while True:
        counter += 1
        digest = hashlib.blake2b(seed + counter.to_bytes(8, "big"), digest_size=16).digest()
        number = 1 << (bits - 1) | int.from_bytes(digest, "big") >> (128 - bits + 1)
        if number not in known and _is_prime(number):
            known.add(number)
            yield number


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test, with bases that leave nothing to chance below 3.8·10¹⁸."""
    if any(number % small == 0 for small in _SMALL_PRIMES):
        return number in _SMALL_PRIMES
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for base in _SMALL_PRIMES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _primes(view: SequenceView | GossipView) -> Iterator[int]:
    """The primes of a view: from all that its rows depend on."""
    digest = hashlib.blake2b(repr((type(view).__name__, view.observers)).encode())
    if isinstance(view, GossipView):
        keys: tuple[tuple[Graph, Mixing], ...] = ((view.protocol.graph, view.protocol.mixing),)
        digest.update(repr((view.protocol.rounds, view.protocol.chebyshev)).encode())
    elif isinstance(view.protocol, VaryingGossip):
        keys = view.protocol.keys
    else:
        keys = ()
        digest.update(np.ascontiguousarray(view.edges, dtype="<i8").tobytes())
    for graph, mixing in keys:
        named = mixing.weights.astype("<f8").tobytes() if isinstance(mixing, GossipMatrix) else mixing.encode()
        digest.update(f"{graph.digest} {len(named)} ".encode() + named)
    return drawn_primes(digest.digest())


def seen_rank(view: SequenceView) -> int:
    """The dimension of what is seen: the largest rank modulo the primes drawn.

    >>> from netdp import graphs
    >>> from netdp.protocols import RandomizedGossip
    >>> edges = np.array([[0, 1], [1, 2], [0, 1], [0, 1]])       # the last exchange repeats what is known
    >>> protocol = RandomizedGossip(graphs.path(3), steps=4, sigma=1.0)
    >>> seen_rank(SequenceView(protocol, (0,), edges))
    2
    """
    return max(_rank(view, prime) for prime in islice(_primes(view), _DRAWN))


def certain_seen_rank(view: SequenceView) -> int | None:
    """The same without any chance, modulo so many primes that no minor has all of them as divisors; None if that takes long."""
    rank, primes = 0, _primes(view)
    rows, products = _sequence_size(view)
    done = 0
    while done < (needed := int(_sequence_bits(view, rank + 1)) // (BITS - 1) + 1):
        if needed * products > MAX_PRODUCTS:
            return None
        rank = max(rank, _rank(view, next(primes)))
        if rank >= rows:
            return rank
        done += 1
    return rank


def likely_seen_rank(view: SequenceView) -> int | None:
    """The rank modulo three primes; None if they hide a direction with a chance above 2⁻⁸⁰."""
    rank = max(_rank(view, prime) for prime in islice(_primes(view), _DRAWN_FOR_OWN))
    return rank if _hopeless_to_aim_at(_sequence_bits(view, rank + 1)) else None


def _hopeless_to_aim_at(bits: float) -> bool:
    return _DRAWN_FOR_OWN * math.log2(max(bits, 1.0) / (BITS - 1) / _PRIMES_THERE_ARE) <= -80


def _sequence_size(view: SequenceView) -> tuple[int, float]:
    """The most directions there can be, and about how many multiplications a rank takes."""
    rows = sum(len(seen) for _, seen in view.backward())
    width = float(min(rows, 2 * view.n))
    work = width * view.n * min(rows, view.n) * (1 + rows / view.n)
    if isinstance(view.protocol, VaryingGossip):
        work += width * sum(2.0 * graph.m + graph.n for graph in view.protocol.graphs)
    return min(rows, int(view.hidden.sum())), work


def _sequence_bits(view: SequenceView, rows: int) -> float:
    """How many bits a minor of so many rows has at most, made whole by its denominators."""
    per_key = dict[tuple[Graph, Mixing], float]()
    # Per row: the bits of its denominators, and one for its length.
    protocol, before = view.protocol, list[float]()
    steps = list(view.backward())[::-1]
    bits = 1.0
    for pull, seen in steps:
        before += [bits] * len(seen)
        if isinstance(pull, tuple):
            bits += 1.0
        elif pull is not None and isinstance(protocol, VaryingGossip):
            key = protocol.keys[pull]
            if key not in per_key:
                per_key[key] = _denominator_bits(*key)
            bits += per_key[key]
    return math.fsum(sorted(before, reverse=True)[:rows])


def _denominator_bits(graph: Graph, mixing: Mixing) -> float:
    return float(math.lcm(*set(rational_weights(graph, mixing)[1])).bit_length())


def _rank(view: SequenceView, prime: int) -> int:
    block = np.zeros((view.n, 0), dtype=np.int64)
    protocol = view.protocol
    steps = _Steps(view.observers, prime)
    for pull, seen in view.backward():
        if block.shape[1]:
            if isinstance(pull, tuple):
                u, w = pull
                both = (block[u] + block[w]) % prime
                block[u] = block[w] = (both + (both & 1) * prime) >> 1
            elif pull is not None and isinstance(protocol, VaryingGossip):
                block = steps.multiply(*protocol.keys[pull], block)
        if len(seen):
            units = np.zeros((view.n, len(seen)), dtype=np.int64)
            units[seen, np.arange(len(seen))] = 1
            block = np.hstack([block, units])
        if block.shape[1] > 2 * view.n:
            block = independent(block, prime)
    return int(independent(block, prime).shape[1])


def krylov_rank(view: GossipView) -> int | None:
    """The dimension of what is seen of gossip on a fixed graph: the rank of {Pˢe_w}; None if that takes long.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> krylov_rank(GossipView.of(Gossip(graphs.dataset("karate"), rounds=60, sigma=1.0), 11))
    26
    """
    rounds, graph, boundary = view.protocol.rounds, view.protocol.graph, view.boundary
    rows = len(boundary) * min(rounds, graph.n)
    if rows * (float(min(rows, graph.n)) * graph.n + 2.0 * graph.m) > MAX_PRODUCTS:
        return None
    return max(sum(_krylov_ranks(view, prime)) for prime in islice(_primes(view), _DRAWN))


def krylov_ranks(view: GossipView) -> tuple[int, ...] | None:
    """How many new directions each round of gossip on a fixed graph shows; None if that takes long to find out.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> krylov_ranks(GossipView.of(Gossip(graphs.dataset("karate"), rounds=4, sigma=1.0), 1))
    (9, 5, 4, 4)
    """
    if _krylov_work(view) > MAX_RANK_PRODUCTS:
        return None
    found = [_krylov_ranks(view, prime) for prime in islice(_primes(view), _DRAWN)]
    return max(found, key=lambda ranks: (sum(ranks), ranks))


def certain_krylov_rank(view: GossipView) -> int | None:
    """The rank without any chance, modulo so many primes that no minor has all of them as divisors; None if that takes long.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> mixing = GossipMatrix(graphs.ring(6), [0.25] * 6)                 # what is to the left and the right is never told apart
    >>> certain_krylov_rank(GossipView.of(Gossip(graphs.ring(6), rounds=9, sigma=1.0, mixing=mixing), 0))
    5
    """
    if _krylov_work(view) > MAX_RANK_PRODUCTS:
        return None
    primes = _primes(view)
    best = _krylov_ranks(view, next(primes))
    most = min(int(view.hidden.sum()), len(view.boundary) * view.protocol.rounds)
    denominator, done = _denominator_bits(view.protocol.graph, view.protocol.mixing), 1
    while sum(best) < most and done < (needed := int(_krylov_bits(view, best, denominator)) // (BITS - 1) + 1):
        if needed * _rank_products(view, sum(best)) > MAX_PRODUCTS:
            return None
        best = max(best, _krylov_ranks(view, next(primes)), key=lambda ranks: (sum(ranks), ranks))
        done += 1
    return sum(best)


def likely_krylov_rank(view: GossipView) -> int | None:
    """The rank modulo three primes; None if that takes long or they hide a direction with a chance above 2⁻⁸⁰."""
    if _krylov_work(view) > MAX_RANK_PRODUCTS:
        return None
    found = [_krylov_ranks(view, prime) for prime in islice(_primes(view), _DRAWN_FOR_OWN)]
    best = max(found, key=lambda ranks: (sum(ranks), ranks))
    denominator = _denominator_bits(view.protocol.graph, view.protocol.mixing)
    return sum(best) if _hopeless_to_aim_at(_krylov_bits(view, best, denominator)) else None


def _krylov_bits(view: GossipView, ranks: tuple[int, ...], denominator: float) -> float:
    """How many bits a minor of one row more than these has at most, made whole by its denominators.

    If there are more directions than `ranks` says, some minor with one row more is not zero, of rows Pˢe_w taken as early
    as they are
    independent: not later than modulo a prime, and the last of them at the latest when every round has brought one.
    """
    rank = sum(ranks)
    last = min(view.protocol.rounds - 1, rank + 1 - len(view.boundary))
    lengths = rank + 1.0  # a bit each
    return denominator * (sum(s * new for s, new in enumerate(ranks)) + last) + lengths


def _krylov_work(view: GossipView) -> float:
    return _rank_products(view, min(int(view.hidden.sum()), len(view.boundary) * view.protocol.rounds))


def _rank_products(view: GossipView, rank: int) -> float:
    graph = view.protocol.graph
    return float(rank) * (rank + len(view.boundary)) * graph.n + 2.0 * rank * graph.m


def _krylov_ranks(view: GossipView, prime: int) -> tuple[int, ...]:
    """New directions per round modulo a prime.

    Only what a round shows anew is multiplied on: the rest would show again what is known. So no more than twice the rank is
    ever reduced.
    """
    graph, boundary, rounds = view.protocol.graph, view.boundary, view.protocol.rounds
    most = min(int(view.hidden.sum()), len(boundary) * rounds)
    steps = _Steps(view.observers, prime)
    echelon = np.zeros((most, graph.n), dtype=np.int64)
    pivots = np.zeros(most, dtype=np.int64)
    rows = np.zeros((len(boundary), graph.n), dtype=np.int64)
    rows[np.arange(len(boundary)), boundary] = 1
    ranks: list[int] = []
    rank = 0
    while len(ranks) < rounds and rank < most:
        reached = int(_reduce(echelon, pivots, rank, rows, prime, 1.0 / prime))
        if reached == rank:
            break
        ranks.append(reached - rank)
        new = np.ascontiguousarray(echelon[rank:reached].T)
        rows = np.ascontiguousarray(steps.multiply(graph, view.protocol.mixing, new).T)
        rank = reached
    return tuple(ranks)


class _Steps:
    """Multiplication by W_HH modulo a prime."""

    def __init__(self, observers: tuple[int, ...], prime: int) -> None:
        self._observers, self._prime = list(observers), prime
        self._weights = dict[tuple[Graph, Mixing], tuple[IntArray, IntArray]]()

    def multiply(self, graph: Graph, mixing: Mixing, block: IntArray) -> IntArray:
        prime, key = self._prime, (graph, mixing)
        if key not in self._weights:
            tops, bottoms = rational_weights(graph, mixing)
            inverse = {d: pow(d, -1, prime) for d in set(bottoms)}
            weights = np.array([top * inverse[d] % prime for top, d in zip(tops, bottoms, strict=True)], dtype=np.int64)
            self._weights[key] = weights, _rest(graph.indptr, weights, prime)
        out = np.empty_like(block)
        block = np.ascontiguousarray(block)
        _multiply(graph.indptr, graph.indices, *self._weights[key], block, out, prime, 1.0 / prime)
        out[self._observers] = 0
        return out


def independent(block: IntArray, prime: int) -> IntArray:
    """A basis of the span of the columns."""
    rows = np.ascontiguousarray(block.T)
    return np.ascontiguousarray(rows[: _eliminate(rows, prime, 1.0 / prime)].T)


@njit(nogil=True, cache=True, inline="always")
def _times(a: Any, b: Any, prime: Any, reciprocal: Any) -> Any:
    """a·b modulo the prime, of at most 50 bits."""
    rest = a * b - np.int64(float(a) * reciprocal * float(b)) * prime  # modulo 2⁶⁴, and between −prime and 2·prime
    if rest < 0:
        rest += prime
    if rest >= prime:
        rest -= prime
    return rest


@njit(nogil=True, cache=True)
def _inverse(number: Any, prime: Any, reciprocal: Any) -> Any:
    """By Fermat."""
    inverse, base, exponent = np.int64(1), number, prime - 2
    while exponent:
        if exponent & 1:
            inverse = _times(inverse, base, prime, reciprocal)
        base = _times(base, base, prime, reciprocal)
        exponent >>= 1
    return inverse


@njit(nogil=True, cache=True)
def _rest(indptr: Any, weights: Any, prime: int) -> Any:
    """What is left of every row for its diagonal."""
    rest = np.empty(len(indptr) - 1, dtype=np.int64)
    for row in range(len(rest)):
        left = np.int64(1)
        for entry in range(indptr[row], indptr[row + 1]):
            left -= weights[entry]
            if left < 0:
                left += prime
        rest[row] = left
    return rest


@njit(nogil=True, cache=True)
def _add(row: Any, first: Any, factor: Any, other: Any, prime: Any, reciprocal: Any) -> None:
    """Add a multiple of `other` to `row`, from an entry on."""
    for column in range(first, len(row)):
        total = row[column] + _times(factor, other[column], prime, reciprocal)
        row[column] = total - prime if total >= prime else total


@njit(nogil=True, cache=True)
def _multiply(
    indptr: Any, indices: Any, weights: Any, rest: Any, block: Any, out: Any, prime: int, reciprocal: float
) -> None:
    out[:] = 0
    for row in range(len(indptr) - 1):
        _add(out[row], 0, rest[row], block[row], prime, reciprocal)
        for entry in range(indptr[row], indptr[row + 1]):
            _add(out[row], 0, weights[entry], block[indices[entry]], prime, reciprocal)


@njit(nogil=True, cache=True)
def _eliminate(rows: Any, prime: int, reciprocal: float) -> int:
    """Row echelon form in place; returns the rank."""
    height, width = rows.shape
    rank = 0
    for column in range(width):
        if rank == height:
            break
        pivot = rank
        while pivot < height and rows[pivot, column] == 0:
            pivot += 1
        if pivot == height:
            continue
        if pivot != rank:
            for j in range(width):
                rows[pivot, j], rows[rank, j] = rows[rank, j], rows[pivot, j]
        inverse = _inverse(rows[rank, column], prime, reciprocal)
        for i in range(rank + 1, height):
            if rows[i, column]:
                times = prime - _times(rows[i, column], inverse, prime, reciprocal)
                _add(rows[i], column, times, rows[rank], prime, reciprocal)
        rank += 1
    return rank


@njit(nogil=True, cache=True)
def _reduce(echelon: Any, pivots: Any, rank: int, rows: Any, prime: int, reciprocal: float) -> int:
    """Add to an echelon form of `rank` rows, each with a 1 at its pivot, what is new in `rows`; returns the new rank."""
    width = rows.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        for j in range(rank):
            factor = row[pivots[j]]
            if factor:
                _add(row, pivots[j], prime - factor, echelon[j], prime, reciprocal)
        pivot = 0
        while pivot < width and row[pivot] == 0:
            pivot += 1
        if pivot == width:
            continue
        inverse = _inverse(row[pivot], prime, reciprocal)
        for column in range(width):
            echelon[rank, column] = _times(row[column], inverse, prime, reciprocal)
        pivots[rank] = pivot
        rank += 1
        if rank == len(echelon):
            break
    return rank
