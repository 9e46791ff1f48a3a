"""Tokens that walk: every visit adds what its party has drawn for it, then the token goes to a party drawn in secret.

**What a party's messages follow from.** Its row (a key and its numbers, written down with their cost before anything is sent),
the tokens that came (written down before anything is added to them), and registers that are written once. The noise of visit
(k, t) of token k at step t, and where the token goes from there, are functions of the key and of (k, t). So a party that
comes back adds the same numbers to the same token and sends it to the same neighbour.

**Nothing is counted twice.** A token leaves for one neighbour only, ever, and with one content: both are in a register before it
leaves, and so is what is released. A party adds to (k, t) once: the first token of that place stands. Steps are numbered, the
number is public.

**Handing over.** The holder *offers* the token, without its content, to the one it drew; the content follows once that one has
accepted. If it does not in time, and the study allows absences, the holder draws another from the rest: "the token goes to
another". It does so only while no more parties are missing than the study allows, those it has skipped at this step and all whose
links are down: else it waits, and the attempt may come to nothing. (To skip no more than are allowed is not enough: if all but u
were away, one of a + 1 draws would find u with probability (a+1)/n, not 1/(n−a).) How many were skipped is carried along and
released with the token.

**The first holder** follows from all contributions of the roster, each of which holds 32 bytes drawn by its author: nobody
chooses it (the last author could, by not following the protocol; the promise is about parties that do). It is known to all.

**Not covered:** who talks to whom and when, as seen by somebody who watches the network. The promise is about what parties are
told.

An attempt that this party has given up, having voted for the next, gets nothing more from it.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar
from typing import Protocol as Interface

import numpy as np

from netdp.families.token.path import ROOM
from netdp.families.token.steps import answer as response
from netdp.families.token.steps import first_holder, is_heap, next_among, next_neighbour, shares, summed_tokens, visited
from netdp.families.token.walk import GraphWalkSum, WalkHistogram, WalkSum
from netdp.graphs.graph import Graph
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.events import Sentence
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import Words

KEY = 32
"""Bytes of the key of a row, and of what its author publishes for the first holders."""

_SKIPS = struct.Struct("<II")  # most parties skipped at one step, and skips in all

_TO = struct.Struct("<I")  # the next holder; what it gets follows

_FROM = struct.Struct("<II")  # index, who brought it

_NOISE, _NEXT, _START, _CLOSING = (f"netdp walk {word} 1".encode() for word in ("noise", "next", "start", "closing"))


class Registers(Interface):
    """What a walk writes down as it goes (`netdp.peers.desk.Desk`)."""

    def once(self, attempt: int, place: bytes, body: bytes) -> bytes:
        """Write once; what stands there is given."""

    def noted(self, attempt: int, place: bytes) -> bytes | None:
        """What stands there, if anything does."""


def key_words(key: bytes, label: bytes, *numbers: int) -> Words:
    """Words that belong to a row's key and to these numbers, and to nothing else."""
    return Words(hmac.digest(key, label + b"".join(number.to_bytes(8, "big") for number in numbers), "sha256"))


# ── what a token carries ──────────────────────────────────────────────────────────────────────────────────────────────


class Load(ABC):
    """What is on a token: how a visit adds to it, and what is read off it in the end."""

    width: int
    """How many whole numbers there are."""
    tokens: int
    steps: int

    @abstractmethod
    def row(self, values: FloatArray) -> IntArray:
        """A party's numbers as they are written down: of its one value, or of its values of all periods, one after the other."""

    def _of_period(self, row: IntArray, width: int, t: int) -> IntArray:
        """Of a row with so many numbers per period those that step t adds: of the period of the step, which is public."""
        periods = len(row) // width
        period = t * periods // self.steps
        return row[period * width : (period + 1) * width]

    @abstractmethod
    def add(self, token: IntArray, row: IntArray, key: bytes, k: int, t: int) -> IntArray:
        """Token k after step t."""

    def close(self, token: IntArray, key: bytes, k: int) -> IntArray:
        """Token k as it is released."""
        return token

    @abstractmethod
    def fits(self, token: IntArray, visits: int) -> bool:
        """Whether a token that so many visits have added to can hold these numbers."""

    def check(self, row: IntArray) -> None:  # noqa: B027  most have nothing to compare
        """Refuse what is here now if it is not what was written down."""

    @abstractmethod
    def total(self, released: list[IntArray], parties: int) -> FloatArray:
        """The sum over so many parties, estimated from all released tokens."""


class SumLoad(Load):
    """Values with discrete Gaussian noise."""

    def __init__(self, protocol: WalkSum | GraphWalkSum, reach: float | None = None) -> None:
        self._protocol = protocol
        self._reach = None if reach is None else math.ceil(reach / protocol.step)
        self.width, self.tokens, self.steps = protocol.dimension, protocol.tokens, protocol.steps
        self._noise = DiscreteGaussian(protocol.variance)
        self._closing = DiscreteGaussian(protocol.closing_variance) if protocol.closing_variance else None

    def row(self, values: FloatArray) -> IntArray:
        from netdp.families.token.steps import walk_values

        return walk_values(self._protocol, values).ravel()

    def add(self, token: IntArray, row: IntArray, key: bytes, k: int, t: int) -> IntArray:
        noise = self._noise.sample((self.width,), key_words(key, _NOISE, k, t))
        return visited(token, self._of_period(row, self.width, t), noise)

    def close(self, token: IntArray, key: bytes, k: int) -> IntArray:
        if self._closing is None:
            return token
        nothing = np.zeros(self.width, dtype=np.int64)
        return visited(token, nothing, self._closing.sample((self.width,), key_words(key, _CLOSING, k)))

    def fits(self, token: IntArray, visits: int) -> bool:
        """No number is beyond what so many visits add up to, noise of 13 deviations included: a chance of 10⁻³⁸ each."""
        most = ROOM
        if self._reach is not None:
            noise = 13 * (math.isqrt(self._protocol.variance) + 1)
            closing = 13 * (math.isqrt(self._protocol.closing_variance) + 1)
            most = min(ROOM, visits * (self._reach + noise) + (closing if visits == self.steps else 0))
        return all(abs(int(one)) <= most for one in token)

    def total(self, released: list[IntArray], parties: int) -> FloatArray:
        scale = self._protocol.step * parties / self._protocol.visits
        return np.asarray(summed_tokens(released).astype(np.float64) * scale)


class CountLoad(Load):
    """Randomized answers, one per visit."""

    def __init__(self, protocol: WalkHistogram) -> None:
        self._protocol = protocol
        self.width, self.tokens, self.steps = protocol.domain, protocol.tokens, protocol.steps

    def row(self, values: FloatArray) -> IntArray:
        return np.asarray(np.argmax(np.atleast_2d(values), axis=1), dtype=np.int64)

    def add(self, token: IntArray, row: IntArray, key: bytes, k: int, t: int) -> IntArray:
        nothing = np.zeros(self.width, dtype=np.int64)
        own = int(self._of_period(row, 1, t)[0])
        return visited(token, nothing, response(self._protocol, own, key_words(key, _NOISE, k, t)))

    def fits(self, token: IntArray, visits: int) -> bool:
        return is_heap(self._protocol, token, visits)

    def total(self, released: list[IntArray], parties: int) -> FloatArray:
        return parties * shares(self._protocol, summed_tokens(released))


def load_of(protocol: WalkSum | GraphWalkSum | WalkHistogram, reach: float | None = None) -> Load:
    """What the tokens of a protocol carry; `reach`: no coordinate of a value is larger, where that is known."""
    return CountLoad(protocol) if isinstance(protocol, WalkHistogram) else SumLoad(protocol, reach)


# ── where tokens go ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Route:
    """Among whom tokens walk, and how the next holder is drawn."""

    roster: tuple[int, ...]
    graph: Graph | None = None
    """Who may pass a token to whom, in the order of the roster; None: anybody to anybody, oneself included."""
    walk: str = "metropolis"

    def start(self, seed: bytes, k: int) -> int:
        """The first holder of token k."""
        return first_holder(self.roster, self.graph, self.walk, key_words(seed, _START, k))

    def following(self, holder: int, key: bytes, k: int, t: int, skipped: tuple[int, ...] = ()) -> int:
        """Who holds token k after `holder` had it at step t, if those `skipped` do not answer."""
        words = key_words(key, _NEXT, k, t, len(skipped))
        if self.graph is None:
            return next_among([u for u in self.roster if u not in skipped], words)
        return self.roster[next_neighbour(self.graph, self.roster.index(holder), self.walk, words)]


def start_seed(bodies: list[bytes]) -> bytes:
    """What the first holders follow from: the contributions of all members, in the order of the roster."""
    return hashlib.sha256(b"".join([_START, *(hashlib.sha256(body).digest() for body in bodies)])).digest()


# ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Held:
    """A token that is here: where in its walk, what it holds, and who was asked to take it."""

    k: int
    t: int
    numbers: IntArray
    most: int
    skips: int
    skipped: list[int] = field(default_factory=list)
    asked: float | None = None


class TokenWalk(Spread):
    """One party's part in the walks of one attempt.

    row        () → (key, numbers): what was written down for this attempt
    book       the registers
    allowance  how many parties may be skipped at one step
    wait       seconds after which one that does not answer is skipped
    most       visits beyond which somebody must be forging tokens
    """

    needs_all: ClassVar[bool] = False

    def __init__(
        self,
        load: Load,
        route: Route,
        attempt: int,
        me: int,
        row: Callable[[], tuple[bytes, IntArray]],
        book: Registers,
        *,
        allowance: int = 0,
        wait: float = 15.0,
        most: int | None = None,
        lasts: float = 0.0,
        name: Callable[[int], str] = str,
    ) -> None:
        super().__init__(attempt, route.roster)
        self.passes_on = True
        self.rounds = load.tokens * load.steps
        self.lasts = lasts
        self._load, self._route, self._me, self._row_of, self._book = load, route, me, row, book
        self._allowance, self._wait, self._most, self._name = allowance, wait, most, name
        self._digest = roster_digest(route.roster)
        self._row: tuple[bytes, IntArray] | None = None
        self._here: dict[int, _Held] = {}
        self._seen: set[int] = set()  # places (k, t) at which a token came, or began
        self._receipts = 0
        self._read = 0  # how many keys of what is held have been looked at
        self._began = False
        self._refused: set[Key] = set()
        self._away: dict[int, float] = {}
        self.realised = {"visits": [], "skipped": [], "most_skipped": 0, "skips": 0, "released": False}

    # ── the Spread ────────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        self.wake = float("inf")
        if self.answer is not None or self._released(held, moves):
            return moves
        if self._me not in self.roster or Key(ItemKind.VOTE, self.attempt + 1, self._me) in held:
            return moves
        self._notice(moment)
        if self._row is None:
            self._row = self._row_of()
            self._load.check(self._row[1])
            self._recall(moves)
        self._hear(held, moves)
        self._begin(held)
        for place in list(self._here):
            self._carry(self._here.pop(place), held, moment, moves)
        return moves

    def _released(self, held: Mapping[Key, Item], moves: Moves) -> bool:
        """Read the released tokens; True once all are here."""
        found: list[IntArray] = []
        most = skips = 0
        bodies = []
        for k in range(self._load.tokens):
            keys = [Key(ItemKind.TOTAL, self.attempt, u, k) for u in self.roster]
            items = [held[key] for key in keys if key in held]
            if len(items) > 1 and keys[0] not in self._refused:
                self._refused.add(keys[0])
                authors = ", ".join(self._name(item.key.author) for item in items)
                moves.notes.append(Sentence.RELEASED_TWICE(token=k, authors=authors))
            if len(items) != 1:
                return False
            numbers, (one_most, one_skips) = self._parsed(items[0].body)
            handed = self._load.steps - 1
            if not self._load.fits(numbers, handed + 1) or not self._can_have_skipped(one_most, one_skips, handed):
                if items[0].key not in self._refused:
                    self._refused.add(items[0].key)
                    moves.notes.append(Sentence.OVERFULL(name=self._name(items[0].key.author)))
                return False
            found.append(numbers)
            bodies.append(items[0].body)
            most, skips = max(most, one_most), skips + one_skips
        self.realised |= {"most_skipped": most, "skips": skips, "released": True}
        total = self._load.total(found, len(self.roster))
        self.answer = SpreadResult(self.attempt, self.roster, total, hashlib.sha256(b"".join(bodies)).digest())
        return True

    # ── what came ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _recall(self, moves: Moves) -> None:
        """Tokens that were here before this process began."""
        while (body := self._book.noted(self.attempt, b"in" + self._receipts.to_bytes(8, "big"))) is not None:
            index, _ = _FROM.unpack_from(body)
            self._receipts += 1
            self._take(index, body[_FROM.size :])

    def _hear(self, held: Mapping[Key, Item], moves: Moves) -> None:
        """Offers and tokens that were not looked at yet; nothing that is held is ever taken away."""
        if len(held) < self._read:
            self._read = 0
        fresh = list(itertools.islice(held, self._read, None))
        self._read = len(held)
        for key in fresh:
            if key.attempt != self.attempt or key.kind not in (ItemKind.OFFER, ItemKind.TOKEN):
                continue
            if (problem := self._implausible(key)) is not None:
                name, kind = self._name(key.author), key.kind.name.lower()
                moves.notes.append(Sentence.STRAY_TOKEN(kind=kind, index=key.index, name=name, problem=problem))
            elif key.kind == ItemKind.OFFER:
                if key.index not in self._seen:
                    moves.addressed.append(
                        (key.author, Item(Key(ItemKind.ACCEPT, self.attempt, self._me, key.index), b""))
                    )
            elif key.index not in self._seen:
                self._receive(key, held[key].body, moves)

    def _implausible(self, key: Key) -> str | None:
        k, t = divmod(key.index, self._load.steps)
        if k >= self._load.tokens or t == 0:
            return "no token is passed on to that step"
        if key.author == self._me or key.author not in self.roster:
            return "its author takes no part in this attempt"
        if self._route.graph is not None:
            mine, other = (self.roster.index(u) for u in (self._me, key.author))
            if not self._route.graph.has_edge(mine, other):
                return "the walk has no link from there to here"
        return None

    def _receive(self, key: Key, body: bytes, moves: Moves) -> None:
        numbers, (most, skips) = self._parsed(body)
        step = key.index % self._load.steps
        if not self._load.fits(numbers, step) or not self._can_have_skipped(most, skips, step):
            moves.notes.append(Sentence.IMPOSSIBLE_TOKEN(token=key.index, name=self._name(key.author), visits=step))
            return
        if self._most is not None and len(self._seen) >= self._most:
            moves.notes.append(
                Sentence.MANY_VISITS(token=key.index, name=self._name(key.author), visits=len(self._seen))
            )
            return
        self._note(key.index, key.author, body)

    def _note(self, index: int, author: int, body: bytes) -> None:
        """Write down that a token is here, then take it."""
        place = b"in" + self._receipts.to_bytes(8, "big")
        self._book.once(self.attempt, place, _FROM.pack(index, author) + body)
        self._receipts += 1
        self._take(index, body)

    def _can_have_skipped(self, most: int, skips: int, handovers: int) -> bool:
        return most <= self._allowance and most <= skips <= self._allowance * handovers

    def _take(self, index: int, body: bytes) -> None:
        """A token is here to be added to."""
        if index in self._seen:
            return
        numbers, (most, skips) = self._parsed(body)
        self._seen.add(index)
        self._here[index] = _Held(*divmod(index, self._load.steps), numbers, most, skips)

    def _parsed(self, body: bytes) -> tuple[IntArray, tuple[int, int]]:
        width = 8 * self._load.width
        numbers = np.frombuffer(body[:width], dtype="<i8").astype(np.int64)
        most, skips = _SKIPS.unpack(body[width:])
        return numbers, (most, skips)

    def _body(self, token: _Held) -> bytes:
        return token.numbers.astype("<i8").tobytes() + _SKIPS.pack(token.most, token.skips)

    def _begin(self, held: Mapping[Key, Item]) -> None:
        """Start the tokens whose first holder we are, once all contributions are here."""
        if self._began:
            return
        keys = [Key(ItemKind.CONTRIBUTION, self.attempt, u) for u in self.roster]
        bodies = [held[key].body for key in keys if key in held and held[key].body[:32] == self._digest]
        if len(bodies) < len(keys):
            return
        self._began = True
        seed = start_seed(bodies)
        for k in range(self._load.tokens):
            index = k * self._load.steps
            if self._route.start(seed, k) == self._me and index not in self._seen:
                self._note(index, self._me, self._body(_Held(k, 0, np.zeros(self._load.width, dtype=np.int64), 0, 0)))

    # ── what is done with it ──────────────────────────────────────────────────────────────────────────────────────────

    def _notice(self, moment: Moment) -> None:
        """Since when which members cannot be reached."""
        for u in self.roster:
            if u == self._me or u in moment.linked:
                self._away.pop(u, None)
            else:
                self._away.setdefault(u, moment.now)

    def _carry(self, token: _Held, held: Mapping[Key, Item], moment: Moment, moves: Moves) -> None:
        """Add to a token and pass it on; steps that stay here follow each other in this loop."""
        assert self._row is not None
        key, row = self._row
        while True:
            index = token.k * self._load.steps + token.t
            if token.t == self._load.steps - 1:
                self._count(token)
                token.numbers = self._load.close(
                    self._load.add(token.numbers, row, key, token.k, token.t), key, token.k
                )
                place = Key(ItemKind.TOTAL, self.attempt, self._me, token.k)
                if place not in held:
                    said = b"total" + token.k.to_bytes(8, "big")
                    moves.published.append((place, self._book.once(self.attempt, said, self._body(token))))
                return
            passed = self._next(token, held, moment, moves)
            if passed is None:
                self._here[index] = token
                return
            target, body = passed
            self._count(token)
            if target != self._me:
                place = Key(ItemKind.TOKEN, self.attempt, self._me, index + 1)
                moves.addressed.append((target, Item(place, body)))
                return
            if index + 1 in self._seen:  # a forged token was here first
                return
            self._seen.add(index + 1)
            numbers, skips = self._parsed(body)
            token = _Held(token.k, token.t + 1, numbers, *skips)

    def _onward(self, token: _Held) -> bytes:
        """What the next holder gets."""
        assert self._row is not None
        key, row = self._row
        after, skipped = self._load.add(token.numbers, row, key, token.k, token.t), len(token.skipped)
        return self._body(_Held(token.k, token.t + 1, after, max(token.most, skipped), token.skips + skipped))

    def _count(self, token: _Held) -> None:
        self.realised["visits"].append([token.k, token.t])

    def _next(self, token: _Held, held: Mapping[Key, Item], moment: Moment, moves: Moves) -> tuple[int, bytes] | None:
        """To whom the token goes from here and with what on it, written down; None while nobody has accepted."""
        assert self._row is not None
        key, index = self._row[0], token.k * self._load.steps + token.t
        place = b"to" + index.to_bytes(8, "big")
        drawn = self._route.following(self._me, key, token.k, token.t, tuple(token.skipped))
        if drawn == self._me and not token.skipped:
            return drawn, self._onward(token)  # follows from the key alone
        if token.asked is None and (decided := self._book.noted(self.attempt, place)) is not None:
            return _TO.unpack_from(decided)[0], decided[_TO.size :]
        while True:
            if drawn == self._me or Key(ItemKind.ACCEPT, self.attempt, drawn, index + 1) in held:
                decided = self._book.once(self.attempt, place, _TO.pack(drawn) + self._onward(token))
                return _TO.unpack_from(decided)[0], decided[_TO.size :]
            # else this one must come, or some of those must whose links are down
            may_skip = len({*self._away, *token.skipped, drawn}) <= self._allowance
            since = min(self._away.get(drawn, moment.now), moment.now if token.asked is None else token.asked)
            if not may_skip or moment.now < since + self._wait:
                if token.asked is None:
                    token.asked = moment.now
                    moves.addressed.append((drawn, Item(Key(ItemKind.OFFER, self.attempt, self._me, index + 1), b"")))
                if may_skip:
                    self.wake = min(self.wake, since + self._wait)
                return None
            token.skipped.append(drawn)
            token.asked = None
            if drawn not in self.absent:  # said once
                moves.notes.append(Sentence.TO_ANOTHER(name=self._name(drawn), token=token.k))
            self.absent.add(drawn)
            self.realised["skipped"] = sorted(self._name(u) for u in self.absent)
            drawn = self._route.following(self._me, key, token.k, token.t, tuple(token.skipped))
