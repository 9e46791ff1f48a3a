"""A world in which parties live without sockets: messages take random times, links break, parties die and come back.

Time is a number. Everything a party writes down survives it; everything else does not. `World.said` keeps every
contribution that ever left a party, so that tests can look for two different ones.
"""

import hashlib
import heapq
import itertools
from types import SimpleNamespace

import numpy as np

from netdp.errors import Refused
from netdp.families.masked.peer import Average, Flood
from netdp.families.masked.protocol import MaskedSum, contribution, quantised, to_bytes
from netdp.graphs import Graph, complete
from netdp.peers.messages import NEWEST, OLDEST, Item, ItemKind, Key, decode, encode, roster_body, roster_digest
from netdp.peers.party import Party
from netdp.peers.terms import Ended


def signature(key, body):
    return signature_of(key, hashlib.sha256(body).digest())


def signature_of(key, digest):
    return hashlib.sha256(repr((tuple(key), digest)).encode()).digest()


def proves(held):
    return held.signature == signature_of(held.key, held.digest)


def signed(key, body):
    return Item(key, body, signature(key, body))


class Notebook:
    """What a party has written down: the stand-in for its folder, keys and noise."""

    def __init__(self, world, me):
        self.world, self.me, self.items, self.spent = world, me, {}, []

    def own(self):
        return list(self.items.values())

    def _write(self, key, body):
        held = self.items.get(key)
        if held is not None:
            if held.body != body:
                raise Refused("a second one")
            return held
        self.items[key] = signed(key, body)
        return self.items[key]

    def vote(self, attempt, roster):
        return self._write(Key(ItemKind.VOTE, attempt, self.me), roster_body(roster))

    def contribute(self, attempt, roster):
        assert (attempt, self.me) not in [(a, self.me) for a, _ in self.spent], "drawn twice"
        p = self.world.protocol_of(roster)
        rng = np.random.default_rng([self.me, attempt, *roster])
        noise = rng.integers(-50, 50, p.dimension)
        y = contribution(
            p, quantised(p, self.world.values[self.me]), noise, self.world.pads(roster, attempt, self.me, p)
        )
        self.spent.append((attempt, roster))
        self.world.noise[self.me, attempt, roster] = noise
        return self._write(Key(ItemKind.CONTRIBUTION, attempt, self.me), roster_digest(roster) + to_bytes(y, p.q))

    def adopt(self, item, roster):
        self.items[item.key] = item
        if item.key.kind == ItemKind.CONTRIBUTION:
            self.spent.append((item.key.attempt, roster))

    def sign(self, key, body):
        return signed(key, body)

    def spread(self, attempt, roster):
        p = self.world.protocol_of(roster)
        if self.world.spread == "average" and self.me in roster:
            return Average(p, attempt, roster, self.me)
        return Flood(p, attempt, roster)


class World:
    def __init__(self, graph, *, attempts=1, absent=0, spread="flood", seed=0, dimension=1, patience=10.0):
        self.graph, self.n, self.spread, self.dimension = graph, graph.n, spread, dimension
        self.attempts, self.absent, self.patience = attempts, absent, patience
        self.rng = np.random.default_rng(seed)
        self.values = self.rng.uniform(-1, 1, (self.n, dimension)) / np.sqrt(dimension)
        self.noise, self.said = {}, {}
        self.books = [Notebook(self, u) for u in range(self.n)]
        self.parties = [None] * self.n
        self.now, self.events, self.order = 0.0, [], itertools.count()
        self.links = {}  # frozenset → number of the link
        self.numbers = itertools.count()
        self.outcomes, self.latest = {}, {}
        self.formats = [(OLDEST, NEWEST)] * self.n  # of the wire, for each party
        self.watch = (
            None  # called (sender, receiver, messages) before a frame leaves; returning "kill" kills the sender
        )

    def protocol_of(self, roster):
        talk = self.graph.subgraph(list(roster))
        if len(set(talk.components().tolist())) > 1:
            talk = complete(len(roster))
        return MaskedSum(
            talk, sigma=0.5, sensitivity=2.0, dimension=self.dimension, grid=2.0**-12, spread=self.spread, modulus=2**32
        )

    def pads(self, roster, attempt, me, p):
        total = np.zeros(p.dimension, dtype=np.uint64)
        for v in roster:
            if v != me:
                pair = np.random.default_rng([9, attempt, min(me, v), max(me, v), *roster])
                words = pair.integers(0, p.q, p.dimension, dtype=np.uint64)
                total = total + words if v > me else total - words
        return total

    def truth(self, attempt, roster):
        p = self.protocol_of(roster)
        return sum(quantised(p, self.values[u]) + self.noise[u, attempt, roster] for u in roster) * p.step

    # ── life ──

    def at(self, delay, act, *arguments):
        heapq.heappush(self.events, (self.now + delay, next(self.order), act, arguments))

    def terms(self, u):
        """What a party asks of its study (`netdp.peers.terms.Terms`), without a study."""
        return SimpleNamespace(
            study=b"s" * 32, n=self.n, others=0, name=str, neighbours=tuple(self.graph.neighbors(u).tolist()),
            fewest=self.n - self.absent, attempts=self.attempts, tolerates=False, gather=2 * self.patience, patience=self.patience,
            grace=1.0, verify=lambda item: item.signature == signature(item.key, item.body), proves=proves,
            longest=dict.fromkeys(ItemKind, 10 ** 6), rounds=10_000, releases=1, steps=0, fits=lambda item: True, version="",
            formats=self.formats[u], hears=lambda peer, author: False, deals=False, ballots=0,
            proofs=4 * (self.attempts + 8),
        )  # fmt: skip

    def start(self, u):
        if self.parties[u] is not None:
            return
        terms = self.terms(u)
        self.parties[u] = Party(u, terms, self.books[u], self.now)
        for v in terms.neighbours:
            self.at(0.01, self.link, u, v)
        self.flush(u)

    def link(self, u, v):
        if self.parties[u] is None or self.parties[v] is None or frozenset((u, v)) in self.links:
            return
        self.links[frozenset((u, v))] = next(self.numbers)
        for a, b in ((u, v), (v, u)):
            self.parties[a].linked(b, self.now)
        for a in (u, v):
            self.flush(a)

    def cut(self, u, v, again=1.0):
        if self.links.pop(frozenset((u, v)), None) is None:
            return
        for a, b in ((u, v), (v, u)):
            if self.parties[a] is not None:
                self.parties[a].lost(b, self.now)
                self.flush(a)
        self.at(again, self.link, u, v)

    def kill(self, u, back=None):
        self.parties[u] = None
        for v in self.graph.neighbors(u).tolist():
            self.cut(u, v)
        if back is not None:
            self.at(back, self.start, u)

    def flush(self, u):
        party = self.parties[u]
        if party is None:
            return
        for peer, _ in party.refusals:
            self.cut(u, peer, again=1e9)
        batches = {}
        for to, message in party.outbox():
            batches.setdefault(to, []).append(message)
        for to, messages in batches.items():
            link = self.links.get(frozenset((u, to)))
            if link is None:
                continue
            if self.watch is not None and self.watch(u, to, messages) == "kill":
                self.kill(u, back=0.5)
                return
            for message in messages:
                if isinstance(message, Item) and message.key.kind == ItemKind.CONTRIBUTION:
                    self.said.setdefault(message.key, set()).add(message.body)
            # a link keeps the order
            arrival = max(self.now + float(self.rng.uniform(0.001, 0.05)), self.latest.get((link, u), 0.0))
            self.latest[link, u] = arrival
            self.at(arrival - self.now, self.deliver, u, to, link, encode(messages))
        if party.outcome is not None and u not in self.outcomes:
            self.outcomes[u] = party.outcome
        self.at(max(party.wake - self.now, 0.001), self.tick, u, party)

    def deliver(self, u, to, link, frame):
        if self.links.get(frozenset((u, to))) == link:
            self.parties[to].received(u, decode(frame), self.now)
            self.flush(to)

    def tick(self, u, party):
        if self.parties[u] is party and self.now >= party.wake and u not in self.outcomes:
            party.tick(self.now)
            self.flush(u)

    def run(self, until=400.0, alive=None):
        wanted = set(range(self.n) if alive is None else alive)
        while self.events and self.now < until and not wanted <= set(self.outcomes):
            self.now, _, act, arguments = heapq.heappop(self.events)
            act(*arguments)
        return self

    # ── what must hold ──

    def check_answers(self, who):
        for u in who:
            answer = self.outcomes[u]
            assert not isinstance(answer, Ended), answer
            np.testing.assert_array_equal(answer.total, self.truth(answer.attempt, answer.roster))
        self.check_honesty()

    def check_honesty(self):
        """No contribution was ever said in two ways, none was made without being written down, none too many."""
        assert all(len(bodies) == 1 for bodies in self.said.values())
        for u, book in enumerate(self.books):
            spent = {attempt for attempt, _ in book.spent}
            assert len(spent) == len(book.spent) <= self.attempts
            assert {key.attempt for key in self.said if key.author == u} <= spent


def world(graph, **settings):
    return World(graph if isinstance(graph, Graph) else complete(graph), **settings)
