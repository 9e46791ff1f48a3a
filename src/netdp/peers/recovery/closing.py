"""The closing of an attempt whose sum survives dropouts: from the sealed roster to one answer that all sign.

    contributions → ballot (prepare, commit) → seal → reveals → answer → signatures

The members agree by a locked ballot whose contributions are added up, each by its hash (`netdp.peers.recovery.ballot`); who hands
in none in time, or two, is left out. Who sees a seal reveals its shares for just this set, and erases the others in the same
transaction. The shares of `threshold` members take the masks off the sum of the set, and off nothing else. If nothing is sealed,
nothing is revealed: the attempt is free. Time decides only whose contributions are waited for, never what may be said: all words
are written down first, and follow from what was written and heard. Proofs: docs/proofs/peers.md#ballot and
docs/proofs/masked.md#one-attempt.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.peers.desk import SECRETS, SHARES
from netdp.peers.events import Sentence, Statement
from netdp.peers.exchange import PROOF_SIZE, Items
from netdp.peers.messages import Item, ItemKind, Key, roster_body, roster_digest
from netdp.peers.recovery.ballot import DIGEST, NOTHING, PART_SIZE, Ballot, Choice, Phase
from netdp.peers.recovery.dealing import (
    KEY,
    DealerCheated,
    Dealing,
    Secret,
    Share,
    TooFewShares,
    dealing_size,
    is_share,
    recovered,
)
from netdp.peers.recovery.group import scalar_bytes, scalar_of
from netdp.peers.recovery.masks import unmask
from netdp.peers.recovery.opening import Dealings
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.terms import Roster

WordArray = npt.NDArray[np.uint64]

KINDS = {Phase.PREPARE: ItemKind.PREPARE, Phase.COMMIT: ItemKind.COMMIT}
PHASES = {kind: phase for phase, kind in KINDS.items()}

BALLOTS = 12
"""How many numbers of a ballot fit into the patience of a study, the first ones, if nobody hands in late."""

LASTS = 10
"""After so many times the patience of a study without a seal, or without enough reveals, a party gives up."""


class MaskedNumbers(ABC):
    """What is added up: how a contribution is read, and what the sum stands for."""

    columns: int
    modulus: int

    @abstractmethod
    def read(self, body: bytes) -> WordArray:
        """The masked numbers in the body of a contribution, behind the roster's digest."""

    @abstractmethod
    def answer(self, attempt: int, members: Roster, total: WordArray) -> SpreadResult | Statement:
        """What the sum of the contributions of these members stands for; or why it cannot be right."""


def answer_digest(study: bytes, attempt: int, members: Roster, total: FloatArray) -> bytes:
    """What those who hold an answer sign: the study, the attempt, whose contributions are in it, and the total.

    >>> answer_digest(b"s" * 32, 1, (0, 1), np.array([2.5])).hex()[:16]
    'ff7165221df59248'
    """
    where = study + attempt.to_bytes(8, "big") + len(members).to_bytes(8, "big") + roster_body(members)
    return hashlib.sha256(b"netdp answer 1\0" + where + np.asarray(total, dtype="<f8").tobytes()).digest()


def recovery_sizes(n: int, threshold: int) -> dict[ItemKind, int]:
    """How long the bodies of an attempt that survives dropouts can be, among up to so many parties."""
    choice = n * PART_SIZE
    sizes = {ItemKind.KEYS: KEY + 4 * n, ItemKind.DEALING: dealing_size(n, threshold), ItemKind.PROOF: PROOF_SIZE}
    sizes |= {ItemKind.COMPLAINT: 0, ItemKind.DEFENCE: 2 * KEY, ItemKind.PREPARE: choice, ItemKind.COMMIT: choice}
    return sizes | {ItemKind.VOTE: 4 * n + DIGEST, ItemKind.REVEAL: DIGEST + KEY * n, ItemKind.ANSWER: DIGEST}


class Closing(Spread):
    """One party's way from the sealed roster of an attempt to its answer."""

    needs_own: ClassVar[bool] = False
    keeps_time: ClassVar[bool] = True

    def __init__(
        self,
        desk: Desk,
        attempt: int,
        roster: Roster,
        threshold: int,
        fewest: int,
        patience: float,
        numbers: MaskedNumbers,
    ) -> None:
        super().__init__(attempt, roster)
        self.passes_on, self.rounds = True, 0
        self._desk, self._threshold, self._fewest, self._patience = desk, threshold, fewest, patience
        self._numbers, self._digest = numbers, roster_digest(roster)
        self._dealings = desk.dealings(attempt, roster)
        self._fewest_here = min(fewest, len(roster))
        self._ballot = Ballot(roster, desk.me, threshold, self._fewest_here, patience / BALLOTS)
        self._places = frozenset(roster)
        self._read = 0
        self._items: dict[Key, Item] = {}  # of this attempt, read or said
        self._hashes: dict[int, bytes] = {}  # of each member's contribution
        self._here: dict[int, bytes] = {}  # those of contributions to this roster
        self._viewed: tuple[dict[int, bytes], Choice] | None = None
        self._choices: dict[bytes, Choice | None] = {}  # what bodies of prepares and commits stand for
        self._named: set[Choice] = set()  # choices that others spoke of
        self._commits: dict[int, set[Choice]] = defaultdict(set)  # and committed to, by the number of the ballot
        self._fresh: list[Item] = []  # words of others that were not compared with the seal yet
        self._unlike: set[Key] = set()  # those for something else
        self._shown: set[Key] = set()  # and which of them were shown
        self._reveals: dict[int, Item] = {}
        self._revealed: dict[int, list[bytes]] | None = None  # what of them fits the seal, once there is one
        self._sealed_digest = b""
        self._began: float | None = None
        self._sealed_at: float | None = None
        self._opened: tuple[Choice, WordArray] | None = None
        self._working: tuple[Choice, int] | None = None
        self._wrong: set[int] = set()  # members that revealed something that is no share

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, held: Items, moment: Moment) -> None:
        """Read what has come since the last time; own words are there, too, also those of an earlier life."""
        self._dealings.take(held)
        fresh = held.since(self.attempt, self._read)
        self._read += len(fresh)
        for item in fresh:
            self._hear(item)
        for key in moment.second:
            if key.attempt == self.attempt and key.author in self._places:
                self._ballot.lied(key.author)

    def _hear(self, item: Item) -> None:
        key = item.key
        if key in self._items or key.author not in self._places:  # the first: our own, read when it was said
            return
        self._items[key] = item
        if key.kind == ItemKind.CONTRIBUTION:
            self._hashes[key.author] = hashlib.sha256(item.body).digest()
            if item.body[:32] == self._digest:
                self._here[key.author] = self._hashes[key.author]
        elif key.kind == ItemKind.REVEAL:
            self._reveals[key.author] = item
            if self._revealed is not None and item.body[:DIGEST] == self._sealed_digest:
                self._revealed[key.author] = [item.body[DIGEST:]]
        elif key.kind in PHASES:
            if key.author != self._desk.me:
                self._fresh.append(item)
            self._hear_word(item)

    def _hear_word(self, item: Item) -> None:
        """Tell the ballot a prepare or a commit; words that no honest member of this roster says are left aside."""
        key, phase = item.key, PHASES[item.key.kind]
        choice = self._choice(item.body)
        if choice is None:
            return
        with suppress(InvalidValue):
            self._ballot.hear(key.author, phase, key.index, choice)
            if key.author != self._desk.me:
                self._named.add(choice)
                if phase == Phase.COMMIT:
                    self._commits[key.index].add(choice)

    def _choice(self, body: bytes) -> Choice | None:
        """What a body stands for; most say the same."""
        if body not in self._choices:
            try:
                self._choices[body] = Choice.from_bytes(body, self._places, self._fewest_here)
            except InvalidValue:
                self._choices[body] = None
        return self._choices[body]

    def _contributed(self, moment: Moment) -> dict[int, bytes]:
        """The hash of each contribution to this roster that is here; who signed two is left out."""
        double = {
            key.author for key in moment.second if key.kind == ItemKind.CONTRIBUTION and key.attempt == self.attempt
        }
        return {u: digest for u, digest in self._here.items() if u not in double} if double else self._here

    # ── what comes next ───────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Items, moment: Moment) -> Moves:
        if self.answer is not None or self.over is not None or self.free:
            self.wake = math.inf  # nothing is due here any more
            return Moves()
        moves = Moves(waits=True)
        self.wake = math.inf
        if self._began is None:
            self._began = moment.now
            for item in self._desk.certificates(self.attempt):
                self._hear_word(item)
        self._take(held, moment)
        acts = moment.ready and not moment.mute and self._desk.me in self._places
        while acts and (wanted := self._ballot.wants(self._view(moment), moment.now)):
            for phase, number, choice in wanted:
                certificate = [
                    self._items[key]
                    for u in self._ballot.voters(Phase.PREPARE, number, choice)
                    if (key := Key(ItemKind.PREPARE, self.attempt, u, number)) in self._items
                ]
                item = self._desk.ballot(KINDS[phase], self.attempt, choice.to_bytes(), number, certificate)
                self._items[item.key] = item
                self._ballot.hear(self._desk.me, phase, number, choice)
                moves.said.append(item)
                if self._ballot.liars:  # who holds something else under these keys would never be sent them
                    moves.shown += [one.key for one in certificate]
        moves.doubted += self._doubts(moment)
        self.wake = min(self.wake, self._ballot.wake)
        sealed = self._ballot.sealed
        if sealed is None:
            self._wait_for_seal(moment)
            return moves
        if self._sealed_at is None:
            self._sealed_at = moment.now
        moves.shown += self._contrary(sealed)
        if sealed == NOTHING:
            if acts:
                self._desk.erase(self.attempt)
            self.free, self.realised = True, {"nothing": _seal_shown(self._ballot, self._items, self.attempt)}
            return moves
        if acts and (revealed := self._reveal(sealed)) is not None:
            moves.said.append(revealed)
            self._hear(revealed)
        self._open(sealed, moment, moves)
        return moves

    def _doubts(self, moment: Moment) -> list[Key]:
        """Keys under which others may hold something else: a word names another contribution than ours, or lacks its certificate.

        Somebody who lies may have told them and us two things, and without the proof neither could follow the other.
        """
        found: set[Key] = set()
        here = self._contributed(moment)
        for choice in self._named:
            found |= {
                Key(ItemKind.CONTRIBUTION, self.attempt, u)
                for u, digest in choice.parts
                if here.get(u, digest) != digest
            }
        for number, choices in self._commits.items():
            for choice in choices:
                if self._ballot.certificate(number) == choice:
                    continue
                body = choice.to_bytes()
                for u in self.roster:
                    prepared = self._items.get(Key(ItemKind.PREPARE, self.attempt, u, number))
                    if prepared is not None and prepared.body != body:
                        found.add(prepared.key)
        return sorted(key for key in found if key.author != self._desk.me)

    def _contrary(self, sealed: Choice) -> list[Key]:
        """Words of others for something else than was sealed, each once: who holds another one under that key finds a liar.

        None where more members than may collude said something else: then honest ones saw it differently, which takes many words.
        """
        seal, body = self._ballot.seal(), sealed.to_bytes()
        assert seal is not None
        self._unlike |= {item.key for item in self._fresh if item.key.index <= seal.number and item.body != body}
        self._fresh.clear()
        if len({key.author for key in self._unlike}) > self._desk.study.privacy.colluders:
            return []
        found = sorted(self._unlike - self._shown)
        self._shown.update(found)
        return found

    def _view(self, moment: Moment) -> Choice | None:
        """What this member would add up now; None: it waits for more."""
        assert self._began is not None
        here = self._contributed(moment)
        enough = len(here) >= self._fewest
        if enough and not self._places - here.keys() - {key.author for key in moment.second}:
            return self._chosen(here)
        first, last = self._began + self._patience, self._began + 2 * self._patience
        if moment.now >= first and enough:
            return self._chosen(here)
        if moment.now >= last:
            return NOTHING
        self.wake = min(self.wake, first if moment.now < first else last)
        return None

    def _chosen(self, here: dict[int, bytes]) -> Choice:
        """All that is here; made once, as long as nothing comes."""
        if self._viewed is None or self._viewed[0] != here:
            self._viewed = dict(here), Choice.of(here)
        return self._viewed[1]

    def _wait_for_seal(self, moment: Moment) -> None:
        assert self._began is not None
        waited = [u for u in self.roster if u not in self._hashes]
        prepared = set(self._ballot.heard(Phase.PREPARE, self._ballot.number))
        self.missing = tuple(waited) or tuple(u for u in self.roster if u not in prepared)
        end = self._began + LASTS * self._patience
        if moment.now >= end:
            self.over = Sentence.NO_SEAL(attempt=self.attempt)
        self.wake = min(self.wake, end)

    # ── opening ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _reveal(self, choice: Choice) -> Item | None:
        """The own shares for the sealed set: of the own masks of its members, of the pad keys of all others."""
        if self._desk.me in self._reveals:
            return None
        packed = self._desk.secret(self.attempt, SHARES)
        if packed is None:
            return None
        shares = [Share.from_bytes(packed[at : at + 2 * KEY]) for at in range(0, len(packed), 2 * KEY)]
        body = hashlib.sha256(choice.to_bytes()).digest()
        for u, share in zip(self.roster, shares, strict=True):
            body += scalar_bytes(share.of(_kind(choice, u)))
        return self._desk.say(ItemKind.REVEAL, self.attempt, body, erased=(SECRETS, SHARES))

    def _open(self, choice: Choice, moment: Moment, moves: Moves) -> None:
        """Take the masks off, as soon as everything for it is here."""
        assert self._sealed_at is not None
        bodies = self._sealed_bodies(choice, moment)
        moves.wanted += [Key(ItemKind.CONTRIBUTION, self.attempt, u) for u in choice.members if u not in bodies]
        if not self._dealings.is_complete:
            moves.wanted += [
                key
                for u in self.roster
                for kind in (ItemKind.KEYS, ItemKind.DEALING)
                if u not in self._dealings.by and (key := Key(kind, self.attempt, u)) not in self._items
            ]
        revealed = self._fitting(choice, moment)
        self.missing = tuple(u for u in self.roster if u not in revealed)
        moves.doubted += [
            item.key for v, item in sorted(self._reveals.items()) if v not in revealed or v in self._wrong
        ]
        if self._opened is not None and self._opened[0] == choice:
            self._conclude(choice, self._opened[1], moves)
            return
        enough = len(revealed) >= self._threshold and not moves.wanted and self._dealings.is_complete
        came = sum(map(len, revealed.values()))
        if enough and self.work is None and self._working != (choice, came):
            self._working = (choice, came)
            total = self._opener(choice, bodies, revealed)
            if self._numbers.columns * len(choice.members) > _LONG:
                self.work = total
            else:
                self.worked(total())
                if self._opened is not None:
                    self._conclude(choice, self._opened[1], moves)
                    return
        end = self._sealed_at + LASTS * self._patience
        if moment.now >= end and self.work is None:
            self.over = Sentence.NOT_OPENED(attempt=self.attempt, came=len(revealed), needed=self._threshold)
        self.wake = min(self.wake, end)

    def _sealed_bodies(self, choice: Choice, moment: Moment) -> dict[int, bytes]:
        """The contributions that the seal names; of two that somebody signed, the one that was sealed."""
        found: dict[int, bytes] = {}
        for u, digest in choice.parts:
            key = Key(ItemKind.CONTRIBUTION, self.attempt, u)
            if self._hashes.get(u) == digest:
                found[u] = self._items[key].body
                continue
            for item in moment.second.get(key, ()):
                if hashlib.sha256(item.body).digest() == digest:
                    found[u] = item.body
        return found

    def _fitting(self, choice: Choice, moment: Moment) -> dict[int, list[bytes]]:
        """Who revealed its shares for the sealed set, and which."""
        if self._revealed is None or any(key.kind == ItemKind.REVEAL for key in moment.second):
            self._sealed_digest = hashlib.sha256(choice.to_bytes()).digest()
            reveals = {item.key: item for item in self._reveals.values()}
            self._revealed = reveals_for(choice, self.roster, self.attempt, reveals, moment.second)
        return self._revealed

    def _opener(
        self, choice: Choice, bodies: Mapping[int, bytes], revealed: Mapping[int, Sequence[bytes]]
    ) -> Callable[[], WordArray | set[int] | TooFewShares]:
        """The sum of the sealed contributions without masks; or who is proven to have dealt wrongly; or whose shares are wrong."""
        dealings, numbers, roster = self._dealings, self._numbers, self.roster

        def total() -> WordArray | set[int] | TooFewShares:
            try:
                found, bad = opened_secrets(dealings, choice, roster, revealed)
            except TooFewShares as problem:
                return problem
            if bad:
                return bad
            masked = np.zeros(numbers.columns, dtype=np.uint64)
            for body in bodies.values():
                masked += numbers.read(body)
            b, s = found[Secret.MASK], found[Secret.PADS]
            return unmask(masked, choice.members, roster, b, s, dealings.by, dealings.context, numbers.modulus)

        return total

    def needs(self, item: Item) -> bool:
        choice = self._ballot.sealed
        if choice is None:
            return False
        if item.key.kind == ItemKind.REVEAL:
            return item.body[:DIGEST] == hashlib.sha256(choice.to_bytes()).digest()
        return choice.digests.get(item.key.author) == hashlib.sha256(item.body).digest()

    def worked(self, result: WordArray | set[int] | TooFewShares) -> None:
        self.work = None
        if isinstance(result, TooFewShares):
            self._wrong |= result.wrong
        elif isinstance(result, set):
            self.blamed |= result
        elif self._ballot.sealed is not None:
            self._opened = (self._ballot.sealed, result)

    def _conclude(self, choice: Choice, total: WordArray, moves: Moves) -> None:
        found = self._numbers.answer(self.attempt, choice.members, total)
        if isinstance(found, Statement):
            self.over = found
            return
        digest = answer_digest(self._desk.study.hash, self.attempt, choice.members, found.total)
        if self._desk.me in self.roster:
            moves.said.append(self._desk.say(ItemKind.ANSWER, self.attempt, digest))
        self.answer = replace(found, digest=digest)


_LONG = 200_000
"""Numbers that are unmasked in one go: some hundredths of a second."""


def opened_secrets(
    dealings: Dealings, choice: Choice, roster: Roster, revealed: Mapping[int, Sequence[bytes]]
) -> tuple[dict[Secret, dict[int, int]], set[int]]:
    """What the revealed shares open of each member: its own mask if it is in the sum, else its pads; and proven cheats.

    revealed   holder → its shares, in the order of the roster; several, of a holder who said several things
    """
    found: dict[Secret, dict[int, int]] = {kind: {} for kind in Secret}
    bad: set[int] = set()
    for place, u in enumerate(roster):
        kind = _kind(choice, u)
        try:
            shares = _column(revealed, place, dealings.context, dealings.by[u], kind)
            found[kind][u] = recovered(dealings.context, dealings.by[u], kind, shares)
        except DealerCheated:
            bad.add(u)
    return found, bad


def reveals_for(
    choice: Choice,
    roster: Roster,
    attempt: int,
    held: Mapping[Key, Item],
    second: Mapping[Key, Sequence[Item]] | None = None,
) -> dict[int, list[bytes]]:
    """Who revealed its shares for a sealed set, and which; who says two things is taken by either."""
    digest, found = hashlib.sha256(choice.to_bytes()).digest(), {}
    for v in roster:
        key = Key(ItemKind.REVEAL, attempt, v)
        said = (held.get(key), *(second or {}).get(key, ()))
        fits = [one.body[DIGEST:] for one in said if one is not None and one.body[:DIGEST] == digest]
        if fits:
            found[v] = fits
    return found


def sealed_choice(roster: Roster, attempt: int, threshold: int, fewest: int, held: Mapping[Key, Item]) -> Choice | None:
    """What the members of a roster have sealed, as anybody sees who has heard all that they said."""
    ballot = Ballot(roster, -1, threshold, min(fewest, len(roster)))
    for key, item in held.items():
        if key.kind == ItemKind.COMMIT and key.attempt == attempt and key.author in roster:
            try:
                choice = Choice.from_bytes(item.body, roster, min(fewest, len(roster)))
                ballot.hear(key.author, Phase.COMMIT, key.index, choice)
            except InvalidValue:
                continue
    return ballot.sealed


def _kind(choice: Choice, u: int) -> Secret:
    """Of which secret of a member the shares are revealed: of its own mask if it is in the sum, else of its pads."""
    return Secret.MASK if u in choice.digests else Secret.PADS


def _column(
    revealed: Mapping[int, Sequence[bytes]], place: int, context: bytes, dealt: Dealing, kind: Secret
) -> dict[int, int]:
    """What each holder revealed as its share of the member at a place of the roster; of several things what is right."""
    found: dict[int, int] = {}
    for holder, bodies in revealed.items():
        for body in bodies:
            try:
                value = scalar_of("a revealed share", body[place * KEY : (place + 1) * KEY])
            except InvalidValue:
                continue
            if holder not in found or is_share(context, dealt, holder, kind, value):
                found[holder] = value
    return found


def _seal_shown(ballot: Ballot, held: Mapping[Key, Item], attempt: int) -> list[dict[str, object]]:
    """The commits that seal a ballot, as plain values: anybody can check the signatures with the study alone."""
    seal = ballot.seal()
    assert seal is not None
    keys = [Key(ItemKind.COMMIT, attempt, u, seal.number) for u in seal.authors]
    return [
        {"party": key.author, "number": key.index, "body": held[key].body.hex(), "signature": held[key].signature.hex()}
        for key in keys
    ]
