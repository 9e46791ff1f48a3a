"""The world of world.py for randomized gossip: parties with a diary each, everything they send kept, deaths anywhere."""

import importlib.util
import struct
from pathlib import Path

import numpy as np

from netdp.families.gossip.logs import ExchangeLogs, Message
from netdp.families.gossip.peer_randomized import Exchanging, Pace
from netdp.families.gossip.protocol import RandomizedGossip, difference, gossip_start, waking_alike
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.peers.messages import Item, ItemKind, Key, roster_digest

_spec = importlib.util.spec_from_file_location("world", Path(__file__).parent / "world.py")
_world = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_world)


class Book(_world.Notebook):
    """A notebook with registers that are written once; `before_write` may kill its party."""

    def __init__(self, world, me):
        super().__init__(world, me)
        self.secret, self.registers = None, {}

    def contribute(self, attempt, roster):
        assert self.secret is None, "drawn twice"
        rng = np.random.default_rng([self.world.seed, self.me])
        words = words_from(rng)
        first = gossip_start(
            self.world.protocol, self.world.values[self.me], lambda v, size: FineGaussian(v).sample((size,), words)
        )
        self.secret = rng.bytes(32) + first.astype("<i8").tobytes()
        self.spent.append((attempt, roster))
        return self._write(Key(ItemKind.CONTRIBUTION, attempt, self.me), roster_digest(roster))

    def once(self, place, body):
        return self.registers.setdefault(place, body)

    def spread(self, attempt, roster):
        return Exchanging(
            self.world.protocol, attempt, roster, self.me, wakes=self.world.wakes,
            near=tuple(self.world.graph.neighbors(self.me).tolist()), pace=self.world.pace, written=lambda: self.secret,
            once=self.once, noted=self.registers.get,
        )  # fmt: skip


class Exchanges(_world.World):
    """A world in which parties exchange. `wire`: (sender, kind, number, receiver) → all bodies that ever left under it."""

    def __init__(self, graph, *, wakes=6, refresh=1.0, seed=0, patience=20.0, grid=2.0**-30, sigma=1.0, dimension=1):
        super().__init__(graph, seed=seed, patience=patience, dimension=dimension)
        self.seed, self.wakes = seed, wakes
        self.protocol = RandomizedGossip(
            graph, steps=graph.n * wakes, sigma=sigma, sensitivity=2.0, refresh=refresh, grid=grid, dimension=dimension,
            probabilities=waking_alike(graph),
        )  # fmt: skip
        self.pace = Pace(0.3, answer=patience / 8, quiet=patience / 2)
        self.books = [Book(self, u) for u in range(self.n)]
        self.wire, self.sends, self.heard = {}, 0, []
        self.deaths, self.final = {}, {}
        self.watch = self._watch

    def _watch(self, u, to, messages):
        """Note what leaves; a party told to die at its k-th send of something to one neighbour does, before or after it."""
        single = [
            m
            for m in messages
            if isinstance(m, Item) and m.key.kind in (ItemKind.OFFER, ItemKind.ACCEPT, ItemKind.STATE)
        ]
        for message in single:
            order = self.deaths.get(u)
            if order is not None:
                order[1] -= 1
                if order[1] == 0:
                    del self.deaths[u]
                    if order[0] == "after":
                        self._note(u, to, message)
                        self.at(0.0, self.kill, u, order[2])
                        return None
                    if order[2] is None:
                        self.at(0.0, self.kill, u)
                    return "kill" if order[2] is not None else None
            self._note(u, to, message)
        return None

    def _note(self, u, to, message):
        self.wire.setdefault((u, message.key.kind, message.key.index, to), set()).add(message.body)

    def start_all(self):
        for u in range(self.n):
            self.start(u)
        return self

    def logs(self, but=()):
        """Everybody's log, from what is written down."""
        deeds = {}
        for u in range(self.n):
            if u not in but and (spread := self.spread_of(u)) is not None:
                deeds[u] = tuple(tuple(d) for d in spread.realised["deeds"])
        return ExchangeLogs(self.n, deeds)

    def spread_of(self, u):
        """A fresh look into a party's diary."""
        book = self.books[u]
        if book.secret is None:
            return None
        spread = book.spread(1, tuple(range(self.n)))
        spread._open(_world_moves(), 0.0)
        return spread

    def replayed(self, logs):
        """The final states from the logs, the first states and what was on the wire: an independent reckoning.

        Also the fresh noise of every send, in an order in which they can have been made.
        """
        state = {
            u: np.frombuffer(self.books[u].secret[32:], dtype="<i8").astype(np.int64)
            for u in logs.deeds
            if self.books[u].secret
        }
        events, messages = logs.course
        sent, noises = {}, []
        for event in events:
            u = event.party
            if event.sends is not None:
                message = messages[event.sends]
                kind = ItemKind.STATE if message.exchange[0] == u else ItemKind.ACCEPT
                bodies = self.wire[u, kind, message.exchange[1], message.receiver]
                assert len(bodies) == 1
                body = np.frombuffer(next(iter(bodies)), dtype="<i8")
                if event.first:
                    assert (body == state[u]).all()
                else:
                    noises.append((u, body - state[u]))
                state[u] = sent[message] = body.astype(np.int64)
            if event.hears is not None:
                state[u] = state[u] + difference(u, sent[event.answers], event.hears.sender, sent[event.hears])
        return state, noises, events, sent

    def check(self, who=None):
        """No state left twice in two ways; everybody's answer is what its log says; the sum is what it must be."""
        assert all(len(bodies) == 1 for bodies in self.wire.values())
        who = range(self.n) if who is None else who
        logs = self.logs()
        state, noises, _, sent = self.replayed(logs)
        for u in who:
            answer = self.outcomes[u]
            assert not isinstance(answer, _world.Ended), answer
            held = self.final.get(u, state[u])
            np.testing.assert_array_equal(answer.total, held.astype(np.float64) * (self.protocol.step * self.n))
        firsts = sum(np.frombuffer(b.secret[32:], dtype="<i8").astype(object) for b in self.books if b.secret)
        moved = sum((x.astype(object) for _, x in noises), firsts)
        left = sum(x.astype(object) for x in state.values())
        torn = sum(
            (
                difference(u, sent[Message(u, w, (u, k))], w, sent[Message(w, u, (u, k))]).astype(object)
                for u, w, k in logs.torn
            ),
            np.zeros(self.dimension, dtype=object),
        )
        assert (left == moved + torn).all()
        return logs, left - moved


def _world_moves():
    from netdp.peers.spread import Moves

    return Moves()


def numbers(*values):
    return struct.pack(f"<{len(values)}q", *values)
