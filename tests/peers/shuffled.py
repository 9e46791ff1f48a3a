"""Shuffled studies of whole peers in memory, on a virtual clock: everything but the wires and the time is real.

`Company` runs all participants of a study once. Parties can be killed, and started again from their folder, at the k-th frame
they send; every frame that was sent is kept: (from, to, bytes).
"""

import asyncio
import contextlib
import itertools
import os
import tempfile
from pathlib import Path

import numpy as np

from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, decode
from netdp.peers.peer import Peer
from netdp.peers.study import Study, Task
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock

HISTOGRAM = Task(kind="histogram", column="x", categories=("a", "b", "c"))
MEAN = Task(kind="mean", column="x", bounds=(0, 10))


def identities(folder, n):
    return [Identity.create(folder / name, name) for name in (*(f"p{u}" for u in range(n)), "curator")]


@contextlib.contextmanager
def folder():
    """A folder where writing is quick, if there is one: nothing here is about disks."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="netdp-test-", dir=memory if usable else None) as made:
        yield Path(made)


def study_of(
    people, task=HISTOGRAM, *, graph=None, patience=20.0, epsilon=1.0, nonce="1" * 32, privacy=None, **options
):
    """A study with these settings as they are: nothing is searched for."""
    n = len(people) - 1
    draft = Study(
        name="shuffled", task=task.model_dump(mode="json"), party=[{"name": f"p{u}"} for u in range(n)],
        curator={"name": "curator"}, network={"graph": graph or f"complete:{n}"},
        privacy={"epsilon": epsilon, "delta": 1e-3, "colluders": 0, **(privacy or {})},
        timing={"gather": 60.0, "patience": patience},
        protocol={"kind": "shuffle", "epsilon0": epsilon, "rounds": 4, **options},
    )  # fmt: skip
    return draft.complete([one.card for one in people], [f"127.0.0.1:{7001 + u}" for u in range(n + 1)], nonce=nonce)


class Company:
    """One run of a study by all its participants."""

    def __init__(self, study, people, folder, values=None):
        self.study, self.people, self.folder = study, people, folder
        folder.mkdir(exist_ok=True)
        if values is None:
            values = [3.0] * study.n if study.task.is_numeric else [("a", "b", "c")[u % 3] for u in range(study.n)]
        given = [value if isinstance(value, dict) else {"x": str(value)} for value in values]
        self.rows = [study.task.rows([row]) for row in given] + [np.zeros((0, study.task.dimension))]
        self.frames, self.told, self.notes = [], {}, []
        self.counts = dict.fromkeys(range(study.n + 1), 0)
        # participant → [(at which of its frames, or (kind, index) of an item of its own; seconds until it is back, or None)]
        self.deaths = {}
        self.between = lambda u: None  # what happens to a party while it is away

    def store(self, u):
        one = self.people[u]
        return Store.open(self.folder / f"{one.card.name}.db", sign=one.sign)

    def run(self):
        clock = VirtualClock()

        async def life(network, u):
            while True:
                store = self.store(u)
                died = asyncio.Event()
                orders = self.deaths.get(u) or []

                def transport(receiver, u=u, died=died, orders=orders):
                    made = network.transport(u, receiver)
                    inner = made.send

                    async def send(to, frame):
                        self.counts[u] += 1
                        if died.is_set():
                            await asyncio.sleep(1e5)
                        if orders and self._is_due(orders[0][0], u, frame):
                            died.set()
                            await asyncio.sleep(1e5)
                        self.frames.append((u, to, frame))
                        await inner(to, frame)

                    made.send = send
                    return made

                def report(event, u=u):
                    if event["event"] == "note":
                        self.notes.append((u, event["text"]))

                peer = Peer(self.people[u], self.study, store, self.rows[u], transport, clock=clock, report=report)
                running = asyncio.ensure_future(peer.run())
                dying = asyncio.ensure_future(died.wait())
                await asyncio.wait({running, dying}, return_when=asyncio.FIRST_COMPLETED)
                if not died.is_set():
                    dying.cancel()
                    self.told[u] = running.result()
                    store.close()
                    return
                network.crash(u)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                store.close()
                back = orders.pop(0)[1]
                if back is None:
                    return
                await clock.sleep(back)
                self.between(u)

        async def everybody():
            n = self.study.n
            edges = {tuple(sorted((u, v))) for u in range(n + 1) for v in self.study.neighbours(u)}
            network = MemoryNetwork(n + 1, clock, edges=sorted(edges), delay=0.01)
            await asyncio.gather(*(life(network, u) for u in range(n + 1)))

        clock.run(everybody())
        self.time = clock.time()
        return self

    def _is_due(self, when, u, frame):
        if isinstance(when, int):
            return self.counts[u] >= when
        return any(
            isinstance(one, Item) and one.key.author == u and (one.key.kind, one.key.index) == when
            for one in decode(frame)
        )

    # ── what was said ──

    def items(self, *, sender=None, to=None, kind=ItemKind.BUNDLE):
        """(from, to, item) of all items of a kind that were sent, in order."""
        for source, target, frame in self.frames:
            if (sender is None or source == sender) and (to is None or target == to):
                for message in decode(frame):
                    if isinstance(message, Item) and message.key.kind == kind:
                        yield source, target, message

    def said(self):
        """(from, to, key) → the bodies that were ever sent under it."""
        out = {}
        for source, target, item in itertools.chain(self.items(), self.items(kind=ItemKind.TOTAL)):
            if item.key.author == source:
                out.setdefault((source, target, item.key), set()).add(item.body)
        return out

    def written(self, u):
        """The secret row of a party: its key, its sealed report, its sealed dummy."""
        with self.store(u) as store:
            secret = store.contribution(self.study.hash, 1).secret
        size = self.study.running.reports().size
        return secret[:32], secret[32 : 32 + size], secret[32 + size : 32 + 2 * size]
