"""An old copy of a home, put back at every stage of an attempt: it is mute there, since others prove that they hold more.

Of one party a copy of its folder is kept after each of its writes. Later, after each later write, the party is killed and the
copy started in its place, while the others go on. It must not say anything that it had not said before: no second key, dealing or
contribution, no other prepare or commit, no reveal for another set. Also if nobody gives it back what it said, and all that it
gets is the proof that others hold it: docs/proofs/peers.md#held-in-our-name, docs/proofs/peers.md#dealing.
"""

import contextlib
import functools
import itertools
import sqlite3
import sys
from pathlib import Path

import pytest

from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.party import Party
from netdp.peers.spread import SpreadResult

sys.path.append(str(Path(__file__).parent))

import matrix
import trials

ROW, VICTIM = "masked-sum, one attempt", 2


class PutBack(trials.Trial):
    """A calm trial in which the victim's folder, as it was after write `old`, is put back after its write `new`.

    given   whether the others' copies of what it said reach it again
    """

    def __init__(self, old, new, *, given=True, seed=3):
        twist = None if given else self.keep_back
        super().__init__(ROW, seed, tolerant=True, calm=True, twist=twist)
        self.old, self.new, self.writes, self.second = old, new, 0, False
        self.stages = []
        self.before = set()

    def keep_back(self, u, to, message):
        """What the victim itself said does not come back to it; that others hold it is still said, and proved."""
        own = isinstance(message, Item) and message.key.author == VICTIM and to == VICTIM
        return None if own else message

    def _doom(self, u, store):
        super()._doom(u, store)
        if u != VICTIM or self.second:
            return
        self.keep_copy()
        for name in trials.WRITES:
            inner = getattr(store, name)

            def write(*arguments, inner=inner, name=name, **named):
                result = inner(*arguments, **named)
                self.writes += 1
                self.stages.append(name)
                self.keep_copy()
                if self.writes == self.new:
                    self.at(0.01, self.put_back)
                return result

            setattr(store, name, write)

    def keep_copy(self):
        if self.writes != self.old:
            return
        with (
            contextlib.closing(sqlite3.connect(self.file(VICTIM))) as now,
            contextlib.closing(sqlite3.connect(self.copy)) as kept,
        ):
            now.backup(kept)

    @property
    def copy(self):
        return self.folder / "copy"

    def put_back(self):
        if self.parties[VICTIM] is None:
            return
        self.second = True
        self.kill(VICTIM)
        for known in (self.outcomes, self.told):  # its second life has an outcome of its own
            known.pop(VICTIM, None)
        for file in self.folder.glob(f"{self.file(VICTIM).name}*"):
            file.unlink()
        self.copy.chmod(0o600)
        self.copy.rename(self.file(VICTIM))
        self.before = self.said()
        with Store.open(self.file(VICTIM), read_only=True) as store:
            self.known = {key for key in self.before if self.is_written(store, key)}
        self.start(VICTIM)

    def is_written(self, store, key):
        """Whether the copy knows of something that its party said."""
        if key.kind == ItemKind.VOTE:
            return key.attempt in store.votes(self.study.hash)
        if key.kind == ItemKind.CONTRIBUTION:
            return store.contribution(self.study.hash, key.attempt) is not None
        return store.register(self.study.hash, key.attempt, b"said %d %d" % (key.kind, key.index)) is not None

    def said(self):
        """What the victim has said so far."""
        return {
            key
            for key in self.words.said
            if isinstance(key, Key) and key.author == VICTIM and key.kind != ItemKind.PROOF
        }

    def go(self):
        for u in range(self.n):
            self.at(0.0, self.start, u)
        try:
            self.run(until=trials.HORIZON, alive=range(self.n))
            self.run(until=self.now + 5.0, alive=[-1])
            self.check()
        finally:
            self.close()
        return self

    def check(self):
        assert self.second, "nothing was put back"
        self.words.check()
        lacks = {key for key in self.before - self.known if key.kind != ItemKind.VOTE}  # a vote says nothing of data
        fresh = {key for key in self.said() - self.before if key.attempt in {one.attempt for one in lacks}}
        fresh -= {key for key in fresh if key.kind == ItemKind.ANSWER}  # it follows from what all hold
        assert not fresh, f"the copy lacks {sorted(lacks)} and said {sorted(fresh)}"
        for u in set(range(self.n)) - {VICTIM}:
            assert isinstance(self.outcomes[u], SpreadResult), f"p{u}: {self.told[u].get('reason')}"
            matrix.right(self, u, self.told[u])
        assert len({told["digest"] for told in self.told.values() if told["ok"]}) == 1
        made = {key.attempt for key in self.said() if key.kind == ItemKind.CONTRIBUTION}
        if not made <= self.entered():  # never given back: it says so, and holds no answer
            assert self.told[VICTIM]["reason"].code == "older-folder", self.told[VICTIM]

    def entered(self):
        """The attempts that the victim's ledger holds."""
        if self.peers[VICTIM] is not None:
            self.peers[VICTIM].store.close()
        with Store.open(self.file(VICTIM), read_only=True) as store:
            return {entry.attempt for entry in store.entries()}


@functools.cache
def stages():
    """The writes of the victim in a study in which nothing happens."""
    trial = PutBack(0, 10**6)
    for u in range(trial.n):
        trial.at(0.0, trial.start, u)
    try:
        trial.run(until=trials.HORIZON, alive=range(trial.n))
    finally:
        trial.close()
    return tuple(trial.stages)


def pairs():
    """After which writes a copy is kept, and put back; when the answer is here, nothing more is said in the attempt."""
    return itertools.combinations(range(stages().index("set_result") + 1), 2)


def test_a_party_writes_at_every_stage():
    found = stages()
    assert len(found) >= 8
    assert {"settle", "put_vote", "spend", "set_result"} <= set(found)


@pytest.mark.parametrize("given", [True, False], ids=["given back", "proved only"])
def test_an_old_copy_of_any_stage_says_nothing_new(given):
    for old, new in pairs():
        if given and old and new > old + 1:
            continue  # much the same as the others
        try:
            PutBack(old, new, given=given).go()
        except AssertionError as problem:
            raise AssertionError(f"the folder after write {old}, put back after write {new}: {problem}") from problem


def problems():
    for old, new in pairs():
        try:
            PutBack(old, new, given=False).go()
        except Exception as problem:
            yield str(problem)


def test_a_party_that_is_not_mute_is_noticed(monkeypatch):
    monkeypatch.setattr(Party, "_be_mute", lambda *arguments: None)
    assert any("two ways" in problem or "and said" in problem for problem in problems())
