"""An orderly stop: nothing new is heard, said, drawn or spent after it; what was said already leaves; the next start goes on."""

import asyncio

import pytest

from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Hello, Item, ItemKind, Key, decode, encode, roster_body, signed_bytes
from netdp.peers.peer import Peer, Stopped
from netdp.peers.setup import settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task


class Wire:
    """A transport that keeps what is sent."""

    def __init__(self, receiver):
        self.receiver, self.sent, self.closed = receiver, [], False

    async def start(self):
        self.receiver.linked(1)

    async def send(self, peer, frame):
        self.sent += decode(frame)

    async def close(self):
        self.closed = True

    def items(self, kind):
        return [message for message in self.sent if isinstance(message, Item) and message.key.kind == kind]


@pytest.fixture
def pair(tmp_path):
    draft = Study.plan("two", Task(kind="mean", column="x", bounds=(0, 120)), ["ash", "birch"], graph="complete:2",
                       epsilon=2.0, delta=1e-6, threshold=0)  # fmt: skip
    study, _ = settle(draft, tmp_path)
    (tmp_path / "x.csv").write_text("x\n37\n")
    return study, tmp_path


def made(pair, events):
    study, folder = pair
    identity = Identity.load(folder / "ash")
    store = Store.open(folder / "ash" / "peer.db", sign=identity.sign)
    rows = study.task.rows(folder / "x.csv")
    return Peer(identity, study, store, rows, Wire, report=lambda event: events.append(event["event"]))


def of_birch(pair):
    """What birch says first: hello, and its vote. With these ash contributes at once."""
    study, folder = pair
    key, body = Key(ItemKind.VOTE, 1, 1), roster_body((0, 1))
    signature = Identity.load(folder / "birch").sign(signed_bytes(study.hash, key, body))
    return encode([Hello(study.hash, ""), Item(key, body, signature)])


async def when(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("first", ["stop", "hear"])
def test_after_a_stop_nothing_is_drawn_and_before_it_everything_is_sent(pair, first):
    events = []
    peer = made(pair, events)
    wire = peer._transport

    async def story():
        running = asyncio.ensure_future(peer.run())
        await when(lambda: wire.sent)  # the hello of ash
        if first == "hear":
            await peer.received(1, of_birch(pair))
            assert len(peer.store.entries()) == 1
            peer.stop()  # in the same breath: nothing has left yet
        else:
            peer.stop()
            await peer.received(1, of_birch(pair))  # on its way when the signal came
            peer.lost(1, "x")
        with pytest.raises(Stopped):
            await running

    asyncio.run(story())
    assert wire.closed
    assert len(peer.store.entries()) == (first == "hear")
    assert len(wire.items(ItemKind.CONTRIBUTION)) == (first == "hear")
    peer.store.verify(peer.identity.card)
    peer.store.close()


def test_the_next_start_says_the_same(pair):
    bodies = []
    for _ in range(3):
        peer = made(pair, [])
        wire = peer._transport

        async def story(peer=peer, wire=wire):
            running = asyncio.ensure_future(peer.run())
            await when(lambda: wire.sent)
            await peer.received(1, of_birch(pair))
            await when(lambda: wire.items(ItemKind.CONTRIBUTION))
            peer.stop()
            with pytest.raises(Stopped):
                await running

        asyncio.run(story())
        bodies += [item.body for item in wire.items(ItemKind.CONTRIBUTION)]
        assert len(peer.store.entries()) == 1
        peer.store.close()
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


def test_who_is_waited_for(pair):
    peer = made(pair, [])
    assert peer.party.waiting_for == [1]  # its vote
    party = peer.party

    async def story():
        peer.linked(1)
        await peer.received(1, of_birch(pair))
        assert party.waiting_for == [1]  # its contribution
        peer._forget(1)

    asyncio.run(story())
    peer.store.close()
