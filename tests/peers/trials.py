"""Random schedules in virtual time: whole parties, real databases and keys, and a world in which everything may go wrong.

A *trial* is one study of one protocol under one schedule, drawn from a seed: who starts when, who dies when (between two
events, or before or after one of its transactions) and comes back or not, which links break, how long messages take, who
stands still for a while. Time is a number, so hours pass in milliseconds, and the same seed gives the same run: keys and the
study's hash are made from it too. What is asked at the end is what `matrix.judge` asks of real processes; besides,

- everybody who is there at the end has an outcome: nobody waits for ever;
- if the schedule was *mild* (all come, all come back, nothing lasts as long as the patience), everybody has the answer.

`python benchmarks/schedules.py --kind K --seed S` replays one; `test_schedules.py` runs some hundreds.
"""

import copy
import hashlib
import heapq
import itertools
import shutil
import tempfile
import traceback
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import crew
import matrix
import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from world import World

from netdp.errors import NetdpError
from netdp.peers.desk import SECRETS
from netdp.peers.identity import Card, Identity, certificate
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Hello, Item, decode, encode
from netdp.peers.peer import Peer
from netdp.peers.recovery.dealing import AttemptSecrets
from netdp.peers.spread import SpreadResult
from netdp.peers.study import Study

PATIENCE = 10.0
HORIZON = 100 * PATIENCE
"""By then everybody must have an outcome."""
NONCES = 5
"""So many different studies per protocol: planning one takes longer than a trial."""
COMPANIES = {}
"""More studies beside the rows of the matrix: options of a plan, with `parties`."""
WRITES = ("put_vote", "spend", "adopt", "once", "rise", "settle", "set_result")


EXPECTED = {}
"""What the parties of a scene must find; it follows from its number."""


class Died(BaseException):
    """The process is killed at this very line."""


class Time:
    """The clock of all parties of a world."""

    def __init__(self):
        self.now = 0.0

    def time(self):
        return self.now


def identity(name, folder):
    """Keys that follow from the name; only the certificate, which nobody uses here, is drawn."""
    seed = hashlib.sha256(name.encode()).digest()
    signing = Ed25519PrivateKey.from_private_bytes(seed)
    agreement = X25519PrivateKey.from_private_bytes(hashlib.sha256(seed).digest())
    tls = ec.generate_private_key(ec.SECP256R1())
    card = Card(
        name, signing.public_key().public_bytes_raw(), agreement.public_key().public_bytes_raw(), certificate(name, tls)
    )
    return Identity(folder / name, card, signing, agreement, hashlib.sha256(b"noise" + seed).digest(), tls)  # fmt: skip


@lru_cache(maxsize=100)
def cast(row, tolerant):
    """A study of a row of the matrix, and everybody's keys."""
    if row in COMPANIES:
        options = {"protocol": "masked-sum"} | COMPANIES[row]
    else:
        options = {"graph": f"complete:{matrix.PARTIES}", "protocol": row.partition(",")[0]}
        options |= matrix.COMPANY.get(row, {}) | (matrix.tolerance(row) if tolerant else {})
    names = [f"p{u}" for u in range(options.pop("parties", matrix.PARTIES))]
    task, kind = options.pop("task", crew.MEAN), options.pop("protocol")
    with crew.roughly(kind):
        draft = Study.plan("trial", task, names, epsilon=2.0, delta=1e-6, kind=kind, **options)
    draft = draft.replace(timing={"gather": 2 * PATIENCE, "patience": PATIENCE})
    people = [identity(name, Path("/nowhere")) for name in draft.everybody]
    addresses = {name: f"127.0.0.1:{7001 + u}" for u, name in enumerate(draft.everybody)}
    study = draft.complete({one.card.name: one.card for one in people}, addresses, nonce="0" * 32)
    # what an entry holds is no matter here, and it may take a second to compute
    study.running.loss = lambda roster, me: dict(crew.ANY_LOSS)
    return study, people


@lru_cache(maxsize=100)
def scene(row, number, tolerant):
    """The same with another hash, hence other noise, and other data; the number makes a few different ones."""
    common, people = cast(row, tolerant)
    study = common.model_copy()
    study.__dict__["running"] = copy.copy(common.running)
    study.running.study = study
    study.__dict__["hash"] = hashlib.sha256(f"{row} {number} {tolerant}".encode()).digest()  # certificates are drawn
    rows = [
        study.task.rows(
            [
                {
                    "x": str(37 * (u + number) % 121),
                    "y": "no" if u % 2 else "yes",
                    "z": str(1 + 53 * u % 97),
                    "period": period,
                }
                for period in getattr(study.task, "periods", None) or ("",)
            ]
        )
        for u in range(study.n)
    ]
    rows += [np.zeros((0, study.task.dimension))] * (len(people) - study.n)
    return study, people, rows


@dataclass(frozen=True)
class Schedule:
    """What happens, drawn from a seed."""

    seed: int
    mild: bool
    slow: float
    starts: tuple
    deaths: tuple
    writes: tuple
    cuts: tuple
    stops: tuple

    @classmethod
    def calm(cls, seed, n):
        """Everybody comes and stays."""
        return cls(seed, True, 0.02, tuple((u, 0.0) for u in range(n)), (), (), (), ())

    @classmethod
    def draw(cls, seed, n, edges):
        rng = np.random.default_rng([12, seed])
        mild = bool(rng.random() < 0.5)
        short = 0.15 * PATIENCE
        span = short if mild else float(PATIENCE * 10 ** rng.uniform(-0.8, 0.5))
        some = lambda most: range(int(rng.integers(0, most + 1)))  # noqa: E731

        def back():
            return None if not mild and rng.random() < 0.3 else float(rng.uniform(0.05, 0.05 * span + 0.4))

        def when():
            return float(rng.uniform(0, 1.0) if rng.random() < 0.7 else rng.uniform(0, span))

        starts = tuple(
            (u, None if not mild and rng.random() < 0.05 else float(rng.choice([0.0, rng.uniform(0, span)])))
            for u in range(n)
        )
        deaths = tuple((int(rng.integers(n)), when(), back()) for _ in some(4))
        writes = tuple(
            (int(rng.integers(n)), str(rng.choice(["before", "after"])), int(rng.integers(1, 7)), back())
            for _ in some(4)
        )
        cuts = tuple(
            (*edges[rng.integers(len(edges))], when(), float(rng.uniform(0.01, span / 3 if mild else span)))
            for _ in some(5)
        )
        stops = tuple(
            (int(rng.integers(n)), when(), float(rng.uniform(0, span / 3 if mild else 2 * span))) for _ in some(2)
        )
        slow = float(rng.choice([0.001, 0.02, 0.1 if mild else 1.0]))
        return cls(seed, mild, slow, starts, deaths, writes, cuts, stops)


class Trial(World):
    """A world of real parties, with real pens and real databases in a folder of memory."""

    def __init__(self, row, seed, *, tolerant=None, calm=False, twist=None):
        rng = np.random.default_rng([7, seed])
        able = row not in COMPANIES and bool(matrix.tolerance(row))
        tolerant = able and bool(rng.random() < 0.5) if tolerant is None else tolerant
        self.row, self.study_number = row, seed % NONCES
        self.study, self.people, self._rows = scene(row, self.study_number, tolerant)
        self.n, self.all = self.study.n, len(self.people)
        self.neighbours = [self.study.neighbours(u) for u in range(self.all)]
        edges = [(u, v) for u in range(self.all) for v in self.neighbours[u] if u < v]
        self.schedule = Schedule.calm(seed, self.all) if calm else Schedule.draw(seed, self.all, edges)
        self.twist = twist  # (from, to, message) → what is sent instead, if anything: for parties that lie
        self.liars = set()  # they hear nothing of what they said in two ways, and may fail
        self.rng = np.random.default_rng([1, seed])
        self.clock = Time()
        self.events, self.order, self.numbers = [], itertools.count(), itertools.count()
        self.links, self.latest, self.outcomes = {}, {}, {}
        self.parties, self.peers = [None] * self.all, [None] * self.all
        self.told, self.notes, self.forgone = {}, [], set()
        self.accused = set()  # (by whom, who lied about what it holds)
        self.drawn = {}  # (party, attempt) → the fresh secrets of the attempt, which the party itself erases
        self.awake = [0.0] * self.all
        self.words, self._writes, self._return = matrix.Words(), [], None
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="netdp-trial-", dir=memory if memory.is_dir() else None))
        self.watch = None

    @property
    def now(self):
        return self.clock.now

    @now.setter
    def now(self, value):
        self.clock.now = value

    # ── as `matrix.right` wants it ──

    def secret(self, u):
        return self.people[u].noise_secret

    knows_noise = True

    def noise_secret(self, u, attempt):
        drawn = self.drawn.get((u, attempt))
        return self.secret(u) if drawn is None else drawn.noise

    def rows(self, u):
        return self._rows[u]

    def written(self, u, attempt):
        with Store.open(self.file(u), read_only=True) as store:
            return store.contribution(self.study.hash, attempt).secret

    def expected(self, attempt, roster):
        where = self.row, self.study.hash, attempt, roster, *(self.noise_secret(u, attempt) for u in roster)
        if where not in EXPECTED:
            EXPECTED[where] = crew.Crew.expected(self, attempt, roster)
        return EXPECTED[where]

    # ── life ──

    def file(self, u):
        return self.folder / f"p{u}.db"

    def start(self, u):
        if self.parties[u] is not None or u in self.forgone:
            return
        store = Store.open(self.file(u), sign=self.people[u].sign)
        self._doom(u, store)
        try:
            peer = Peer(self.people[u], self.study, store, self._rows[u], lambda receiver: None, clock=self.clock)
        except Died:
            self._fell(u, store)
            return
        self.peers[u], self.parties[u] = peer, peer.party
        for v in self.neighbours[u]:
            self.at(float(self.rng.uniform(0.001, 0.02)), self.link, u, v)
        self.flush(u)

    def _doom(self, u, store):
        """Let this life end at a transaction, if the schedule says so; and remember what it draws."""
        settled = store.settle

        def settle(study, attempt, bodies, *, secrets=None, erased=()):
            settled(study, attempt, bodies, secrets=secrets, erased=erased)
            if secrets and SECRETS in secrets:
                self.drawn[u, attempt] = AttemptSecrets.from_bytes(secrets[SECRETS])

        store.settle = settle
        mine = next((order for order in self._writes if order[0] == u), None)
        if mine is None:
            return
        self._writes.remove(mine)
        _, when, left, self._return = mine
        count = itertools.count(1)
        for name in WRITES:
            inner = getattr(store, name, None)
            if inner is None:
                continue

            def write(*arguments, inner=inner, **named):
                due = next(count) == left
                if due and when == "before":
                    raise Died
                result = inner(*arguments, **named)
                if due:
                    raise Died
                return result

            setattr(store, name, write)

    def _fell(self, u, store):
        """A party was killed in the middle of something."""
        store.close()
        self.parties[u] = self.peers[u] = None
        back = self._return
        for v in self.neighbours[u]:
            self.cut(u, v)
        if back is not None:
            self.at(back, self.start, u)

    def kill(self, u, back=None):
        if self.parties[u] is None:
            return
        self.peers[u].store.close()
        self.parties[u] = self.peers[u] = None
        for v in self.neighbours[u]:
            self.cut(u, v, again=float(self.rng.uniform(0.01, 0.3)))
        if back is not None:
            self.at(back, self.start, u)

    def act(self, u, deed):
        """Let a party do something; it may die of it."""
        if self.parties[u] is None:
            return
        peer = self.peers[u]
        try:
            deed(peer.party)
            if peer.party.outcome is not None and peer._outcome is None:
                peer._outcome = self.told[u] = peer._conclude(peer.party.outcome)
                self.outcomes[u] = peer.party.outcome
            if len(peer.party.evidence) > peer._accused:
                peer._keep_evidence()
            peer._collect()
        except Died:
            self._fell(u, peer.store)
            return
        except NetdpError:
            if u not in self.liars:
                raise
            self.kill(u)
        self.flush(u)

    def link(self, u, v):
        if self.parties[u] is None or self.parties[v] is None or frozenset((u, v)) in self.links:
            return
        if max(self.awake[u], self.awake[v]) > self.now:  # who stands still answers no call
            self.at(max(self.awake[u], self.awake[v]) - self.now + 0.01, self.link, u, v)
            return
        self.links[frozenset((u, v))] = next(self.numbers)
        for a, b in ((u, v), (v, u)):
            self.act(a, lambda party, b=b: party.linked(b, self.now))

    def cut(self, u, v, again=0.2):
        if self.links.pop(frozenset((u, v)), None) is None:
            return
        for a, b in ((u, v), (v, u)):
            self.at(0.0, self.hear_cut, a, b)
        self.at(again, self.link, u, v)

    def hear_cut(self, a, b):
        if self.parties[a] is not None and frozenset((a, b)) not in self.links:
            if self.awake[a] > self.now:
                self.at(self.awake[a] - self.now, self.hear_cut, a, b)
                return
            self.act(a, lambda party: party.lost(b, self.now))

    def flush(self, u):
        party = self.parties[u]
        if party is None:
            return
        for peer, _ in party.refusals:
            self.cut(u, peer, again=1e9)
        party.refusals.clear()
        self.notes += [f"{self.now:.3f} p{u}: {note}" for note in party.notes]
        party.notes.clear()
        self.accused |= {(u, peer) for peer, _ in party.accused}
        batches = {}
        for to, message in party.outbox():
            batches.setdefault(to, []).append(message)
        for to, messages in batches.items():
            link = self.links.get(frozenset((u, to)))
            if link is None:
                continue
            if self.twist is not None:
                messages = [said for message in messages if (said := self.twist(u, to, message)) is not None]
            self.send(u, to, link, messages)
        if party.may_leave:
            self.peers[u]._write_late()
            self.forgone.add(u)
            self.at(0.0, self.kill, u)
            return
        self.at(max(party.wake - self.now, 0.001) if party.wake < float("inf") else 1e9, self.tick, u, party)

    def send(self, u, to, link, messages):
        """Put messages on a link."""
        for message in messages:
            self.words.hear(u, to, message)
        arrival = max(self.now + float(self.rng.exponential(self.schedule.slow)), self.latest.get((link, u), 0.0))
        self.latest[link, u] = arrival  # a link keeps the order
        heapq.heappush(self.events, (arrival, next(self.order), self.deliver, (u, to, link, encode(messages))))

    def deliver(self, u, to, link, frame):
        if self.awake[to] > self.now:
            heapq.heappush(self.events, (self.awake[to], next(self.order), self.deliver, (u, to, link, frame)))
        elif self.links.get(frozenset((u, to))) == link:
            messages = decode(frame)
            if to in self.liars:
                messages = [
                    replace(one, proofs=()) if isinstance(one, Hello) else one
                    for one in messages
                    if not (isinstance(one, Item) and one.key.author == to)
                ]
            self.act(to, lambda party: party.received(u, messages, self.now))

    def tick(self, u, party):
        if self.parties[u] is not party:
            return
        if self.awake[u] > self.now:
            self.at(self.awake[u] - self.now, self.tick, u, party)
        elif self.now >= party.wake:
            self.act(u, lambda party: party.tick(self.now))

    def stop(self, u, seconds):
        self.awake[u] = max(self.awake[u], self.now + seconds)

    # ── the trial ──

    def go(self):
        """Run the schedule, then ask what must be true."""
        plan = self.schedule
        self._writes = list(plan.writes)
        for u, when in plan.starts:
            if when is not None:
                self.at(when, self.start, u)
        for u, when, back in plan.deaths:
            self.at(when, self.kill, u, back)
        for u, v, when, again in plan.cuts:
            self.at(when, self.cut, u, v, again)
        for u, when, seconds in plan.stops:
            self.at(when, self.stop, u, seconds)
        try:
            self.run(until=HORIZON, alive=range(self.all))
            self.check()
        finally:
            self.close()
        return self

    def close(self):
        """Leave nothing behind."""
        for peer in self.peers:
            if peer is not None:
                peer.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def check(self):
        """The questions of `matrix.judge`, and that nobody waits for ever."""
        plan = self.schedule
        waiting = [u for u in range(self.all) if self.parties[u] is not None and u not in self.outcomes]
        assert not waiting, f"after {self.now:.0f} s {waiting} still wait"
        if plan.mild:
            ended = {u: self.told[u].get("reason") for u in self.told if not self.told[u]["ok"]}
            assert not ended, f"no answer in a mild schedule: {ended}"
            assert len(self.told) == self.all, f"only {sorted(self.told)} have an outcome"
        for u, told in self.told.items():
            if not told["ok"]:
                assert told["reason"]
            elif u < self.n:
                matrix.right(self, u, told)
        self.words.check()
        for u in range(self.all):
            if self.peers[u] is not None:
                self.peers[u].store.close()
            if self.file(u).exists():
                with Store.open(self.file(u)) as store:
                    self._check_ledger(u, store)

    def _check_ledger(self, u, store):
        store.verify(self.people[u].card)
        matrix.check_entries(self.study, store.entries(), (u, self.words.said))


def attempt(row, seed, **options):
    """One trial; None, or what is wrong with it."""
    trial = Trial(row, seed, **options)
    try:
        trial.go()
    except Exception:
        return trial, traceback.format_exc(limit=-4)
    return trial, None


__all__ = ["Schedule", "SpreadResult", "Trial", "attempt"]
