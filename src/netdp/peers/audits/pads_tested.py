"""Attacks on the pads of recorded sums: are published numbers uniform, are their pads public, did a pad serve twice.

All that is promised of a masked sum rests on its pads: a party's own noise is a share that hides nothing by itself. Two honest
parties and more: y_u less the pads that the coalition knows is uniform modulo q, whatever u's numbers are. Looked at is

- **uniform**: every honest author's numbers, as they are and less the known pads, pooled over sums (`odds.uneven`);
- **public**: whether y_u becomes small when pads are taken off that anybody could compute: none at all, or those of a shared secret
  that is zero, or made of the study's hash, its nonce, names or public keys;
- **twice**: whether two published numbers of one author, in two attempts, two iterations or two recordings, differ by something
  small: then the pad in both is the same, and what is left is the difference of two numbers under little noise.

*Small* is what noise explains: known numbers are taken off, and what is left must lie within ten deviations. A check fails only
where uniform numbers would be as small with a probability below 10⁻¹², over all authors and all that was tried; where there are
too few numbers for that, it says so.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from netdp.audit.findings import Check
from netdp.numerics.arrays import IntArray
from netdp.protocols.masked_steps import opened, reduced

from ..identity import Identity
from ..streams import Words as Stream
from ..streams import pad
from .masked_sums import Sum, Words
from .odds import DOUBT, FEWEST, chance_of_small, uneven

CERTAIN = 1e-12
"""Uniform numbers look small with no larger probability than this where a check says that they are no uniform numbers."""
_DEVIATIONS = 10.0
_SUMS, _GUESSED = 64, 4
"""Of a training so many iterations are compared with each other, and so many are tried without pads that are guessed."""
_NUMBERS = 1 << 16
"""So many numbers of an author are enough."""


@dataclass(frozen=True, eq=False)
class Seen:
    """One sum as a coalition sees it: with the keys it holds, and everybody's numbers (None: not known)."""

    sum: Sum
    identities: Mapping[int, Identity]
    numbers: Mapping[int, IntArray] | None = None
    _uncovered: dict[int, Words] = field(default_factory=dict)

    @property
    def honest(self) -> list[int]:
        """Authors outside of the coalition whose numbers are here."""
        return [u for u in self.sum.roster if u not in self.identities and u in self.sum.published]

    @property
    def is_covered(self) -> bool:
        """Whether two or more are outside of the coalition: else there is no pad that it does not know."""
        return sum(u not in self.identities for u in self.sum.roster) > 1

    def uncovered(self, u: int) -> Words:
        """What u published, less the pads that the coalition knows."""
        if u not in self._uncovered:
            self._uncovered[u] = self.sum.uncovered(u, self.identities)
        return self._uncovered[u]

    def left(self, u: int, known: bool) -> Words:
        """What u published, less its own numbers, and if wanted less the pads that the coalition knows."""
        return self.less(self.uncovered(u) if known else self.sum.published[u], u)

    def less(self, y: Words, u: int) -> Words:
        """Less u's own numbers, where they are known."""
        if self.numbers is None or u not in self.numbers:
            return y
        return reduced(y - self.numbers[u].astype(np.uint64), self.sum.one.q)


def pads_tested(seen: Sequence[Seen], name: Callable[[Sum, int], str]) -> list[Check]:
    """The three checks, over all sums that were seen; `name` says what an author is called."""
    covered = [one for one in seen if one.is_covered]
    if not covered:
        alone = "at most one party is outside of the coalition: all pads are known to it, and its noise is all there is"
        return [Check("published numbers are uniform", True, alone)]
    return [_uniform(covered, name), _secret(covered), _fresh(covered, name)]


# ── uniform ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _uniform(seen: Sequence[Seen], name: Callable[[Sum, int], str]) -> Check:
    title = "published numbers are uniform"
    pools: dict[tuple[int, str, str], list[Words]] = defaultdict(list)
    sizes: dict[tuple[int, str, str], int] = defaultdict(int)
    for one in seen:
        # all of them together with their sum are not independent, all but one are
        for place, u in enumerate(one.honest):
            who = name(one.sum, u)
            for how, y in (
                ("", one.sum.published[u]),
                (" less known pads", one.uncovered(u) if one.identities else None),
            ):
                if y is None:
                    continue
                for pool in (who, *(["all but one"] if place else [])):
                    key = (one.sum.one.q, pool, how)
                    if sizes[key] < _NUMBERS:
                        pools[key].append(y)
                        sizes[key] += len(y)
    enough = {key: np.concatenate(parts)[:_NUMBERS] for key, parts in pools.items() if sizes[key] >= FEWEST}
    if not enough:
        return Check(title, True, f"too few numbers to tell: {max(sizes.values(), default=0)}, and {FEWEST} are needed")
    for (q, who, how), numbers in enough.items():
        if (problem := uneven(numbers, q, DOUBT / len(enough))) is not None:
            return Check(
                title, False, f"{who}{how}: {problem}; they would be even under pads modulo 2^{q.bit_length() - 1}"
            )
    most = max(len(numbers) for numbers in enough.values())
    return Check(
        title,
        True,
        f"bits and remainders of up to {most:,} numbers, in {len(enough)} pools, as even as chance makes them",
    )


# ── small ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _doubt_of_small(small: int, authors: int, bound: float, modulus: int, numbers: int, tries: int) -> float:
    """log of the chance that, of so many authors' uniform numbers, some or others of `small` authors are, in any of the tries.

    The numbers of all honest authors have a small sum whatever happens, so one author less counts than there are.
    """
    counted = min(small, authors - 1)
    ways = math.log(math.comb(authors, small)) + math.log(tries)
    return ways + chance_of_small(bound, modulus, counted * numbers)


# ── public ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _secret(seen: Sequence[Seen]) -> Check:
    title, certain = "pads are secret", math.log(CERTAIN)
    looked = [one for one in _few(seen) if len(one.honest) > 1]
    told = tried = 0
    for one in looked:
        s, honest = one.sum, one.honest
        bound = _DEVIATIONS * math.sqrt(s.one.share) + (0 if one.numbers is not None else s.one.reach_steps)
        guesses = list(_guesses(s))

        def doubt(
            small: int, s: Sum = s, bound: float = bound, honest: int = len(honest), ways: int = len(guesses)
        ) -> float:
            return _doubt_of_small(small, honest, bound, s.one.q, s.one.dimension, ways * len(looked))

        told += doubt(len(honest)) < certain
        for words, pads in guesses:
            tried += 1
            left = [one.less(reduced(s.published[u] - pads(u), s.one.q), u) for u in honest]
            small = sum(bool((np.abs(opened(y, s.one.q)) <= bound).all()) for y in left)
            if small and doubt(small) < certain:
                who = "every author" if small == len(honest) else f"{small} of {len(honest)} authors"
                return Check(title, False, f"{s.words}: without {words} the numbers of {who} are open to anybody")
    if not told:
        return Check(title, True, "too few numbers to tell")
    return Check(
        title, True, f"{tried:,} guesses at pads that anybody could compute, and no number is small without them"
    )


def _few(seen: Sequence[Seen]) -> list[Seen]:
    """Some sums of every study: what makes one open makes all open."""
    found: dict[bytes, list[Seen]] = defaultdict(list)
    for one in seen:
        found[one.sum.study.hash].append(one)
    return [one for those in found.values() for one in those[:_GUESSED]]


def _guesses(s: Sum) -> Iterator[tuple[str, Callable[[int], Words]]]:
    """Pads that need no key: in words, and what each author would have added."""
    one, study = s.one, s.study
    nothing = np.zeros(one.dimension, dtype=np.uint64)
    yield "any pad", lambda u: nothing

    def hashed(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    def card(u: int, key: str) -> bytes:
        return bytes(getattr(study.cards[u], key))

    names = [name.encode() for name in study.everybody]
    nonce = bytes.fromhex(study.nonce)
    secrets: list[tuple[str, Callable[[int, int], bytes]]] = [
        ("an all-zero secret", lambda u, v: bytes(32)),
        ("a secret of all ones", lambda u, v: b"\xff" * 32),
        ("the study's hash", lambda u, v: study.hash),
        ("a hash of the study's hash", lambda u, v: hashed(study.hash)),
        ("the study's nonce", lambda u, v: nonce.ljust(32, b"\0")),
        ("a hash of the study's nonce", lambda u, v: hashed(nonce)),
        ("a hash of both names", lambda u, v: hashed(names[u], names[v])),
        *(
            (f"{words} {key} key", secret)
            for key in ("agreement", "signing")
            for words, secret in (
                ("the first one's", partial(lambda key, u, v: card(u, key), key)),
                ("the second one's", partial(lambda key, u, v: card(v, key), key)),
                ("a hash of each one's", partial(lambda key, u, v: hashed(card(u, key), card(v, key)), key)),
            )
        ),
    ]
    for words, secret in secrets:
        for how, made in (("derived as pads are", _derived), ("as it is", _plain)):
            yield f"pads from {words}, {how}", partial(_guessed, s, secret, made)


def _guessed(
    s: Sum, secret: Callable[[int, int], bytes], made: Callable[[Sum, bytes, int, int], Words], u: int
) -> Words:
    total = np.zeros(s.one.dimension, dtype=np.uint64)
    for v in s.roster:
        if v != u:
            words = made(s, secret(min(u, v), max(u, v)), min(u, v), max(u, v))
            total = total + words if v > u else total - words
    return total


def _derived(s: Sum, secret: bytes, first: int, second: int) -> Words:
    where = s.where
    pair = len(where).to_bytes(8, "big") + where + first.to_bytes(8, "big") + second.to_bytes(8, "big")
    return pad(secret, pair, s.one.dimension, s.one.q)


def _plain(s: Sum, secret: bytes, first: int, second: int) -> Words:
    return reduced(Stream(secret)(s.one.dimension), s.one.q)


# ── twice ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fresh(seen: Sequence[Seen], name: Callable[[Sum, int], str]) -> Check:
    """Two sums, and the authors that published in both; they are known by their keys, so that studies can be compared."""
    title, certain = "no pad serves twice", math.log(CERTAIN)
    pairs = [(a, b, common) for a, b in _pairs(seen) if (common := _common(a, b))]
    if not pairs:
        return Check(title, True, "nobody published twice in what was recorded")
    told = 0
    for a, b, common in pairs:
        p, r = a.sum.one, b.sum.one
        q, d = min(p.q, r.q), min(p.dimension, r.dimension)
        bound = _DEVIATIONS * math.sqrt(p.share + r.share)
        if a.numbers is None or b.numbers is None:
            bound += p.reach_steps + r.reach_steps
        authors = max(len(common), 2)  # of a single one nothing else is known to be small
        told += _doubt_of_small(len(common), authors, bound, q, d, 2 * len(pairs)) < certain
        for known in (False, True):
            left = [reduced(a.left(u, known)[:d] - b.left(v, known)[:d], q) for u, v in common]
            small = [bool((np.abs(opened(y, q)) <= bound).all()) for y in left]
            if any(small) and _doubt_of_small(sum(small), authors, bound, q, d, 2 * len(pairs)) < certain:
                who = ", ".join(name(a.sum, u) for (u, _), one in zip(common, small, strict=True) if one)
                return Check(
                    title, False, f"what {who} published in {_in(a, b)} and in {_in(b, a)} differs by noise alone"
                )
    if not told:
        return Check(title, True, "too few numbers to tell")
    return Check(
        title, True, f"{told:,} pairs of sums: what one author published in both differs as uniform numbers do"
    )


def _pairs(seen: Sequence[Seen]) -> list[tuple[Seen, Seen]]:
    """All pairs of a few, neighbours of many."""
    return list(itertools.combinations(seen[:_SUMS], 2)) + list(itertools.pairwise(seen[_SUMS - 1 :]))


def _common(a: Seen, b: Seen) -> list[tuple[int, int]]:
    """Honest authors of both sums: their numbers in the one study and in the other."""
    keys = {b.sum.study.card(v).agreement: v for v in b.honest}
    named = ((u, keys.get(a.sum.study.card(u).agreement)) for u in a.honest)
    return [(u, v) for u, v in named if v is not None]


def _in(one: Seen, other: Seen) -> str:
    study = one.sum.study
    return one.sum.words if study.hash == other.sum.study.hash else f"{study.name!r} ({study.hash.hex()[:8]}…)"
