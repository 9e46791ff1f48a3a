"""Members that lie in an attempt whose sum survives dropouts, in virtual time: what they do, and what must hold all the same.

A *plot* is a trial (`trials.py`) in which some parties follow the protocol but for their tricks: what leaves them under their own
names is withheld, late, changed, or another thing for every second party. They are `colluders` at most, and what is asked is what
docs/proofs/peers.md promises: all honest answers are one, and right; no honest party opens two sets; the coalition could
compute one sum at most; and where at most `absent` of them keep out of the sum, everybody honest has it, in time.
"""

import hashlib
import itertools
import re
import secrets
import struct
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import trials

from netdp.families.masked.protocol import from_bytes, to_bytes
from netdp.peers.ledger.entries import CORRECTS
from netdp.peers.ledger.store import Store
from netdp.peers.messages import KEY_SIZE, Item, ItemKind, Key, roster_body, roster_of, signed_bytes, vote_of
from netdp.peers.recovery import dealing
from netdp.peers.recovery.ballot import Choice
from netdp.peers.recovery.dealing import KEY, AttemptSecrets
from netdp.peers.spread import SpreadResult

COMPANIES = {
    "4, 1 lies": {"parties": 4, "graph": "complete:4", "colluders": 1, "absent": 0},
    "6, 1 lies, 1 absent": {"parties": 6, "graph": "complete:6", "colluders": 1, "absent": 1},
    "7, 2 lie": {"parties": 7, "graph": "complete:7", "colluders": 2, "absent": 0},
    "7, 1 lies, 1 absent": {"parties": 7, "graph": "ring:7", "colluders": 1, "absent": 1},
    "5, 1 lies, 1 absent, unfair": {"parties": 5, "graph": "complete:5", "colluders": 1, "absent": 1},
    "11, 2 lie, 2 absent": {"parties": 11, "graph": "complete:11", "colluders": 2, "absent": 2},
}
"""Studies of one attempt with liars in them."""
trials.COMPANIES |= COMPANIES

OWN = (
    ItemKind.KEYS, ItemKind.DEALING, ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.PREPARE, ItemKind.COMMIT, ItemKind.REVEAL,
    ItemKind.ANSWER,
)  # fmt: skip
"""What a member says, in order."""
BEFORE = OWN[:4]
"""Who lies in these may not be in the sum."""


@dataclass(frozen=True)
class Trick:
    """One thing that a liar does.

    what    "withhold", "late", "double" (another thing for some), "false" (another thing for all), "share" (one that does not fit),
            "accuse" (falsely), "copy" (somebody's dealing), "stop" (says nothing more)
    kind    of what it says
    whom    the parties it does so to
    how     which other thing; when
    """

    what: str
    kind: ItemKind
    whom: frozenset
    how: int = 0

    @property
    def keeps_out(self):
        """Whether it may keep its author out of the sum."""
        return self.what in ("share", "accuse", "copy") or self.kind in BEFORE

    @staticmethod
    def draw(rng, others):
        what = str(rng.choice(["withhold", "late", "double", "double", "false", "share", "accuse", "copy", "stop"]))
        some = frozenset(int(v) for v in others if rng.random() < 0.5) or frozenset(others[:1])
        whom = frozenset(others) if rng.random() < 0.3 else some
        kind = OWN[int(rng.integers(len(OWN)))]
        if what in ("share", "copy"):
            kind = ItemKind.DEALING
        if what == "accuse":
            kind = OWN[int(rng.integers(1, 4))]  # along with which
        return Trick(what, kind, some if what == "double" else whom, int(rng.integers(4)))


class Plot(trials.Trial):
    """A trial in which some lie: liars are {party: its tricks}."""

    def __init__(self, company, seed, *, liars=None, calm=True, slow=None):
        super().__init__(company, seed, tolerant=False, calm=calm, twist=self.lie)
        self.colluders, self.absent = (COMPANIES[company][name] for name in ("colluders", "absent"))
        rng = np.random.default_rng([31, seed])
        if liars is None:
            named = sorted(int(u) for u in rng.choice(self.n, self.colluders, replace=False))
            liars = {
                u: [Trick.draw(rng, [v for v in range(self.n) if v != u]) for _ in range(int(rng.integers(1, 3)))]
                for u in named
            }
        self.tricks, self.liars = liars, set(liars)
        self.calm = calm
        self.changed = {}  # (kind, attempt, author, index, how) → the other thing
        self.offsets = {}  # hash of a contribution → what was added to an honest one of the same author
        self.accused_by, self.stopped = set(), {}
        self.traffic = defaultdict(set)

    # ── lying ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lie(self, u, to, message):
        if u not in self.liars or not isinstance(message, Item):
            return message
        key = message.key
        if key.author != u:
            return message
        for number, trick in enumerate(self.tricks[u]):
            if trick.what == "accuse" and trick.kind == key.kind and (u, number, key.attempt) not in self.accused_by:
                self.accused_by.add((u, number, key.attempt))
                for victim in sorted(trick.whom):
                    self.say_all(u, self.signed(Key(ItemKind.COMPLAINT, key.attempt, u, victim), b""))
            if trick.what == "share" and key.kind == ItemKind.DEFENCE and trick.how < 3:
                if trick.how == 0:
                    return None
                body = bytes(len(message.body)) if trick.how == 1 else message.body[::-1]
                message = self.signed(key, body)
            if trick.what == "stop" and OWN.index(trick.kind) <= (OWN.index(key.kind) if key.kind in OWN else -1):
                return None
            if trick.kind != key.kind or to not in trick.whom:
                continue
            if trick.what == "withhold":
                return None
            if trick.what == "late":
                self.at(trials.PATIENCE * (0.3, 0.9, 1.1, 2.1)[trick.how], self.say, u, to, message)
                return None
            if trick.what in ("double", "false", "share", "copy"):
                message = self.other(message, trick)
        return message

    def signed(self, key, body):
        return Item(key, body, self.people[key.author].sign(signed_bytes(self.study.hash, key, body)))

    def say(self, u, to, item):
        link = self.links.get(frozenset((u, to)))
        if link is not None and self.parties[u] is not None:
            self.send(u, to, link, [item])

    def say_all(self, u, item):
        for to in self.neighbours[u]:
            self.at(0.0, self.say, u, to, item)

    def other(self, item, trick):
        """Another thing to say under a key: always the same one."""
        key, how = item.key, trick.how
        if trick.what == "share":
            how = 10
        if trick.what == "copy":
            how = 11 + min(trick.whom)
        where = (key, how)
        if where not in self.changed:
            body = self._changed(key, item.body, how)
            self.changed[where] = item if body is None or body == item.body else self.signed(key, body)
        return self.changed[where]

    def _changed(self, key, body, how):
        party = self.parties[key.author]
        if key.kind == ItemKind.KEYS:
            members = roster_of(body[KEY_SIZE:])
            if how == 0:  # another key
                return dealing.advertised(AttemptSecrets.fresh()) + body[KEY_SIZE:]
            if how == 1:  # a key that is none
                return bytes(KEY_SIZE) + body[KEY_SIZE:]
            fewer = [v for v in members if v != next(v for v in members if v != key.author)]
            return body[:KEY_SIZE] + roster_body(fewer)  # others
        if key.kind == ItemKind.DEALING:
            opening = party._openings.get(key.attempt)
            if opening is None:
                return None
            d, mine = opening.dealings, self.drawn[key.author, key.attempt]
            if how >= 11:  # somebody else's
                victim = Key(ItemKind.DEALING, key.attempt, how - 11)
                return party._held[victim].body if victim in party._held else None
            if how == 10:  # a share that nobody can open, for some
                places = [place for place, v in enumerate(d.members) if v != key.author][:: 1 + key.author % 2]
                found, size = bytearray(body), 2 * KEY + dealing.streams.SEAL
                start = KEY * (5 + 2 * len(d.members))
                for place in places:
                    found[start + size * place : start + size * (place + 1)] = bytes(size)
                return bytes(found)
            if how == 2:  # to other holders, as it seems
                return bytes(32) + body[32:]
            if how == 3:  # nonsense
                return body[:-1] + bytes([body[-1] ^ 1])
            fresh = AttemptSecrets.fresh()
            fresh = AttemptSecrets(mine.private_key, fresh.s, fresh.b, fresh.noise, fresh.seed)
            return dealing.deal(d.context, key.author, d.threshold, d.keys, fresh)
        if key.kind == ItemKind.VOTE:
            roster, named = vote_of(body, True)
            if how == 0 and len(roster) > self.study.smallest_roster:
                gone = next(v for v in roster if v != key.author)
                return roster_body([v for v in roster if v != gone]) + named
            return body[:-32] + hashlib.sha256(named).digest()
        if key.kind == ItemKind.CONTRIBUTION:
            q, d = self.study.running.protocol().q, self.study.task.dimension
            numbers = (from_bytes(body[32:], q, d) + np.uint64(1 + how)) & np.uint64(q - 1)
            found = body[:32] + to_bytes(numbers, q)
            self.offsets[hashlib.sha256(found).digest()] = 1 + how
            return found
        if key.kind in (ItemKind.PREPARE, ItemKind.COMMIT):
            if how % 2 == 0 or not body:
                return b"" if body else None
            parts = [body[at : at + 36] for at in range(0, len(body), 36)]
            if len(parts) > self.study.smallest_roster:
                return b"".join(parts[1:])
            return body[:-1] + bytes([body[-1] ^ 1])
        if key.kind == ItemKind.REVEAL:
            if how % 2 == 0:
                return hashlib.sha256(body).digest() + body[32:]
            return body[:32] + bytes(len(body) - 32)
        return hashlib.sha256(body).digest() if body else b""

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def honest(self):
        return [u for u in range(self.n) if u not in self.liars]

    @property
    def promised(self):
        """Whether the theorem promises an answer to all who are honest: enough take part in the sum, whatever liars do."""
        n, c, a = self.n, self.colluders, self.absent
        fair = self.study.running.threshold <= n - c - a
        out = sum(any(trick.keeps_out for trick in tricks) for tricks in self.tricks.values())
        return self.calm and fair and out <= a

    def go(self):
        if not self.calm:
            return super().go()
        for u in range(self.n):
            self.at(float(self.rng.uniform(0, 0.1)), self.start, u)
        try:
            self.run(until=trials.HORIZON, alive=self.honest)
            self.run(until=self.now + trials.PATIENCE, alive=[-1])  # what was on its way, until all have left
            self.check()
        finally:
            self.close()
        return self

    def check(self):
        waiting = [u for u in self.honest if self.parties[u] is not None and u not in self.outcomes]
        assert not waiting, f"after {self.now:.0f} s {waiting} still wait"
        said = {key: bodies for key, bodies in self.words.said.items() if isinstance(key, Key)}
        double = {key: len(bodies) for key, bodies in said.items() if key.author not in self.liars and len(bodies) > 1}
        assert not double, f"honest parties said two things: {double}"
        answers = {}
        for u in self.honest:
            found = self.outcomes.get(u)
            if isinstance(found, SpreadResult):
                answers[u] = (found.attempt, found.roster, found.total.tolist(), found.digest)
                self._right(found, said)
        assert len(set(map(str, answers.values()))) <= 1, f"two answers: {answers}"
        self._one_sum(said)
        for u in range(self.n):
            if self.peers[u] is not None:
                self.peers[u].store.close()
        for u in self.honest:
            if self.file(u).exists():
                with Store.open(self.file(u)) as store:
                    self._check_ledger(u, store)
        proved = {one["party"] for u in self.honest if u in self.told for one in self.told[u]["evidence"]}
        assert proved <= {f"p{u}" for u in self.liars}, f"proofs against the honest: {proved}"
        words = [*self.notes, *(str(self.told[u].get("reason")) for u in self.honest if u in self.told)]
        unnamed = [said for said in words if re.search(r"\bpart(y|ies) \W?\d", said)]
        assert not unnamed, f"people have names: {unnamed}"
        if self.promised:
            lacking = {u: self.told[u].get("reason") for u in self.honest if u not in answers}
            assert not lacking, f"no answer although it is promised: {lacking}"

    def _right(self, found, said):
        """The total is what its members contributed: honest ones by the rules, liars whatever was sealed."""
        total, _ = self.expected(found.attempt, found.roster)
        step, ways = self.study.running.protocol().step, [[0]]
        for u in found.roster:
            bodies = said.get(Key(ItemKind.CONTRIBUTION, found.attempt, u), ())
            ways.append([self.offsets.get(hashlib.sha256(body).digest(), 0) for body in bodies] or [0])
        could = [np.array(total) + sum(way) * step for way in itertools.product(*ways)]
        assert any(np.allclose(found.total, one, rtol=0, atol=step / 4) for one in could), (found.total, total)
        assert len(found.roster) >= self.study.smallest_roster

    def _one_sum(self, said):
        """At most one set is sealed in an attempt, honest reveals are for it alone, and nobody honest has both b and s known."""
        attempts = {key.attempt for key in said}
        t, charged = self.study.running.threshold, Counter()
        for attempt in sorted(attempts):
            sealed = set()
            words = defaultdict(set)
            for key, bodies in said.items():
                if key.attempt == attempt and key.kind == ItemKind.COMMIT:
                    for body in bodies:
                        words[key.index, body].add(key.author)
            for (_, body), authors in words.items():
                honest = len(authors - self.liars)
                if honest and len(authors | self.liars) >= t and honest + self.colluders >= t:
                    sealed.add(body)
            assert len(sealed) <= 1, f"two seals in attempt {attempt}"
            revealed = {
                key.author: body for key, bodies in said.items() for body in bodies
                if key.attempt == attempt and key.kind == ItemKind.REVEAL and key.author not in self.liars
            }  # fmt: skip
            for author, body in revealed.items():
                assert body[:32] in {hashlib.sha256(one).digest() for one in sealed}, f"p{author} revealed for no seal"
            handed = {
                u for u in self.honest if Key(ItemKind.CONTRIBUTION, attempt, u) in said
            }  # fmt: skip
            if b"" in sealed:
                assert not revealed
            else:
                charged.update(handed)
            self._never_both(said, attempt, sealed, len(revealed), t)
        over = {u: times for u, times in charged.items() if times > self.study.privacy.attempts}
        assert not over, f"contributed more often than allowed, and not free: {over}"

    def _never_both(self, said, attempt, sealed, honest_reveals, t):
        """Shares of an honest party's secrets that anybody could have: the coalition's, what was revealed, what was defended."""
        rosters = {vote_of(body, True)[0] for key, bodies in said.items() for body in bodies
                   if key.kind == ItemKind.VOTE and key.attempt == attempt and key.author not in self.liars}  # fmt: skip
        for roster in rosters:
            c = len(self.liars & set(roster))
            for u in set(roster) - self.liars:
                shown = {
                    key.index for key in said
                    if key.kind == ItemKind.DEFENCE and key.attempt == attempt and key.author == u
                }  # fmt: skip
                assert shown <= self.liars, f"p{u} defended itself against somebody honest: {shown}"
                known = {"b": c, "s": c}
                for body in sealed:
                    inside = u in Choice.from_bytes(body, roster, 1).members if body else False
                    known["b" if inside else "s"] += honest_reveals
                assert min(known.values()) < t, f"both secrets of p{u} in attempt {attempt}"

    def _check_ledger(self, u, store):
        store.verify(self.people[u].card)
        entries = store.entries()
        first = [entry for entry in entries if entry.attempt < CORRECTS]
        free = {entry.attempt % CORRECTS for entry in entries if entry.loss["kind"] == "nothing"}
        spent = {entry.attempt for entry in first}
        assert len(spent) == len(first)
        assert len(spent - free) <= self.study.privacy.attempts
        for place in self.words.said:
            if isinstance(place, Key) and place.author == u and place.kind == ItemKind.CONTRIBUTION:
                assert place.attempt in spent, f"p{u} contributed to {place.attempt} and did not enter it"
        found = self.outcomes.get(u)
        if isinstance(found, SpreadResult):
            assert found.attempt not in free


def attempt(company, seed, **options):
    """One plot; None, or what is wrong with it."""
    plot = Plot(company, seed, **options)
    try:
        plot.go()
    except Exception:
        return plot, traceback.format_exc(limit=-4)
    return plot, None


__all__ = ["COMPANIES", "Plot", "Trick", "attempt", "secrets", "struct"]
