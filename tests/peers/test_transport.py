"""One contract for both transports: order, both directions, back-pressure, loss and return of links, closing."""

import asyncio
import contextlib

import pytest

from netdp.errors import InvalidValue, LinkLost, NetdpError
from netdp.peers.transport.base import Lane, Limits, RealClock
from netdp.peers.transport.grpc import GrpcTransport
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock

SMALL = Limits(frame=6 << 20, waiting=1 << 20, waiting_frames=16, closing=1.0)


class Ear:
    """Writes down what it hears; `gate` closed makes it a slow receiver."""

    def __init__(self):
        self.events, self.frames = [], []
        self.gate, self._news = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.busy = set()

    def linked(self, peer):
        self.note("linked", peer)

    def lost(self, peer, reason):
        assert reason
        self.note("lost", peer, reason)

    async def received(self, peer, frame):
        assert peer not in self.busy, "one frame at a time on one link"
        self.busy.add(peer)
        self._news.set()
        await self.gate.wait()
        self.frames.append((peer, frame))
        self.busy.discard(peer)
        self._news.set()

    def note(self, *event):
        self.events.append(event)
        self._news.set()

    def count(self, kind, peer=None):
        return sum(event[0] == kind and peer in (None, event[1]) for event in self.events)

    async def until(self, condition):
        while not condition():
            self._news.clear()
            await self._news.wait()


class MemoryWorld:
    def __init__(self, n, limits):
        self.clock, self.limits, self.n = VirtualClock(), limits, n

    def run(self, main):
        async def all_of_it():
            self.network = MemoryNetwork(self.n, self.clock, limits=self.limits)
            async with asyncio.timeout(3000):
                await main(self)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left

        self.clock.run(all_of_it())

    def transport(self, u, ear):
        return self.network.transport(u, ear)

    def drop(self, u, v):
        self.network.drop(u, v)


class GrpcWorld:
    """Every party stands behind a recording proxy, which can cut its connections."""

    def __init__(self, n, limits, parties, proxy, free_ports):
        self.limits, self.n, self.parties, self._proxy = limits, n, parties[:n], proxy
        self.cards, self.ports = [party.card for party in self.parties], free_ports(n)

    def run(self, main):
        async def all_of_it():
            async with contextlib.AsyncExitStack() as stack:
                self.proxies = [
                    await stack.enter_async_context(self._proxy(f"127.0.0.1:{port}")) for port in self.ports
                ]
                async with asyncio.timeout(60):
                    await main(self)
            left = {task for task in asyncio.all_tasks() if "netdp" in repr(task.get_coro())}
            assert not left

        asyncio.run(all_of_it())

    def transport(self, u, ear, **settings):
        return GrpcTransport(
            self.parties[u],
            u,
            self.cards,
            [v for v in range(self.n) if v != u],
            [proxy.address for proxy in self.proxies],
            ear,
            self.limits,
            listen=f"127.0.0.1:{self.ports[u]}",
            **settings,
        )

    def drop(self, u, v):
        self.proxies[max(u, v)].cut()


@pytest.fixture(params=["memory", "grpc"])
def world(request, parties, recording_proxy, free_ports):
    """A function that makes a world of n parties, runs a story in it and looks whether anything is left running."""

    def make(n=2, limits=SMALL):
        if request.param == "memory":
            return MemoryWorld(n, limits)
        return GrpcWorld(n, limits, parties, recording_proxy, free_ports)

    return make


@contextlib.asynccontextmanager
async def joined(world, n=2):
    """All parties started and every pair linked; closed at the end."""
    ears = [Ear() for _ in range(n)]
    transports = [world.transport(u, ear) for u, ear in enumerate(ears)]
    try:
        for transport in transports:
            await transport.start()
        for ear in ears:
            await ear.until(lambda ear=ear: ear.count("linked") == n - 1)
        yield transports, ears
    finally:
        for transport in transports:
            await transport.close()


def test_frames_keep_their_order_in_both_directions(world):
    async def story(world):
        async with joined(world, 3) as (transports, ears):

            async def talk(u, v):
                for i in range(200):
                    await transports[u].send(v, f"{u}>{v}:{i}".encode())

            pairs = [(u, v) for u in range(3) for v in range(3) if u != v]
            await asyncio.gather(*(talk(u, v) for u, v in pairs))
            for u, v in pairs:
                want = [f"{u}>{v}:{i}".encode() for i in range(200)]
                got = lambda u=u, v=v: [frame for peer, frame in ears[v].frames if peer == u]  # noqa: E731
                await ears[v].until(lambda got=got: len(got()) >= 200)
                assert got() == want

    world(3).run(story)


def test_empty_and_large_frames(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            frames = [b"", bytes(range(256)) * 20_480, b"\0", b"x" * (6 << 20)]
            for frame in frames:
                await transports[0].send(1, frame)
                await transports[1].send(0, frame)
            for u in (0, 1):
                await ears[u].until(lambda u=u: len(ears[u].frames) == 4)
                assert [frame for _, frame in ears[u].frames] == frames

    world().run(story)


def test_a_frame_over_the_limit_is_refused_by_name_and_the_link_lives(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            with pytest.raises(InvalidValue, match=r"6,291,457 bytes is over the limit of 6,291,456"):
                await transports[0].send(1, bytes((6 << 20) + 1))
            with pytest.raises(InvalidValue, match="a frame is bytes, got str"):
                await transports[0].send(1, "text")
            await transports[0].send(1, b"still here")
            await ears[1].until(lambda: ears[1].frames)
            assert ears[1].count("lost") == 0

    world().run(story)


@pytest.mark.parametrize("sender", [0, 1])
def test_a_slow_receiver_slows_its_sender(world, sender):
    receiver, frames, size = 1 - sender, 400, 1 << 18

    async def story(world):
        async with joined(world) as (transports, ears):
            ears[receiver].gate.clear()
            taken = 0

            async def push():
                nonlocal taken
                for i in range(frames):
                    await transports[sender].send(receiver, i.to_bytes(4, "big") + bytes(size - 4))
                    taken += 1

            task, before = asyncio.ensure_future(push()), -1
            while taken != before:
                before = taken
                await asyncio.sleep(0.5)
            # 1 MB of the queue and what gRPC and the proxy hold; 100 MB were offered
            assert 4 <= taken < frames // 2
            ears[receiver].gate.set()
            await task
            await ears[receiver].until(lambda: len(ears[receiver].frames) == frames)
            assert [int.from_bytes(frame[:4], "big") for _, frame in ears[receiver].frames] == list(range(frames))

    world().run(story)


def test_a_link_that_breaks_is_reported_once_and_made_again(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            for again in (1, 2):
                world.drop(0, 1)
                for u in (0, 1):
                    await ears[u].until(lambda u=u, again=again: ears[u].count("linked") == 1 + again)
                    assert ears[u].count("lost") == again
                await transports[0].send(1, b"after %d" % again)
                await transports[1].send(0, b"after %d" % again)
                for u in (0, 1):
                    await ears[u].until(lambda u=u, again=again: len(ears[u].frames) == again)
            for u in (0, 1):
                assert [event[0] for event in ears[u].events] == ["linked", "lost", "linked", "lost", "linked"]

    world().run(story)


def test_senders_that_wait_are_told_when_the_link_breaks(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            ears[1].gate.clear()

            async def push():
                while True:
                    await transports[0].send(1, bytes(1 << 18))

            tasks = [asyncio.ensure_future(push()) for _ in range(3)]
            await asyncio.sleep(1)
            assert not any(task.done() for task in tasks)
            world.drop(0, 1)
            for task in tasks:
                with pytest.raises(LinkLost):
                    await task
            await asyncio.sleep(0.5)
            assert ears[1].count("lost") == 0  # it is busy with a frame of that link
            ears[1].gate.set()
            await ears[1].until(lambda: ears[1].count("linked") == 2)
            heard = len(ears[1].frames)
            assert heard == 1  # the frame in hand was not interrupted; those behind it are gone
            assert ears[1].events[1][0] == "lost"
            await asyncio.sleep(0.2)
            assert len(ears[1].frames) == heard  # nothing of the old link after `lost`

    world().run(story)


def test_a_sender_that_gives_up_does_not_break_the_link(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            ears[1].gate.clear()
            sent = 0
            with contextlib.suppress(TimeoutError):
                while True:
                    await asyncio.wait_for(transports[0].send(1, bytes(1 << 18)), 1)
                    sent += 1
            ears[1].gate.set()
            await transports[0].send(1, b"last")
            await ears[1].until(lambda: len(ears[1].frames) == sent + 1)
            assert ears[1].frames[-1] == (0, b"last")
            assert ears[0].count("lost") == ears[1].count("lost") == 0

    world().run(story)


@pytest.mark.parametrize("restarted", [0, 1])
def test_a_party_that_restarts_is_linked_again(world, restarted):
    async def story(world):
        stays = 1 - restarted
        async with joined(world) as (transports, ears):
            await transports[restarted].close()
            await ears[stays].until(lambda: ears[stays].count("lost") == 1)
            with pytest.raises(LinkLost):
                await transports[restarted].send(stays, b"x")
            with pytest.raises(LinkLost):
                await transports[stays].send(restarted, b"x")
            ears[restarted] = Ear()
            transports[restarted] = world.transport(restarted, ears[restarted])
            await transports[restarted].start()
            for ear, times in ((ears[stays], 2), (ears[restarted], 1)):
                await ear.until(lambda ear=ear, times=times: ear.count("linked") == times)
            await transports[stays].send(restarted, b"welcome back")
            await transports[restarted].send(stays, b"thank you")
            await ears[restarted].until(lambda: ears[restarted].frames == [(stays, b"welcome back")])
            await ears[stays].until(lambda: ears[stays].frames == [(restarted, b"thank you")])

    world().run(story)


@pytest.mark.parametrize("closed", [0, 1])
def test_what_was_taken_before_closing_arrives(world, closed):
    other = 1 - closed

    async def story(world):
        async with joined(world) as (transports, ears):
            for i in range(10):
                await transports[closed].send(other, bytes([i]) * 50_000)
            await transports[closed].close()
            await transports[closed].close()  # twice does no harm
            await ears[other].until(lambda: ears[other].count("lost"))
            assert [frame[0] for _, frame in ears[other].frames] == list(range(10))
            assert ears[closed].events[-1] == ("lost", other, "closed here")

    world().run(story)


def test_closing_does_not_wait_for_ever_for_a_receiver(world):
    async def story(world):
        async with joined(world) as (transports, ears):
            ears[1].gate.clear()
            await transports[0].send(1, b"x")
            await ears[1].until(lambda: ears[1].busy)
            await transports[1].close()
            assert ears[1].count("lost") == 1
            assert ears[1].frames == []

    world().run(story)


def test_a_receiver_that_fails_loses_the_link_and_says_why(world):
    class Strict(Ear):
        async def received(self, peer, frame):
            if frame == b"bad":
                raise InvalidValue("bad frame")
            if frame == b"bug":
                raise KeyError("bug")
            await super().received(peer, frame)

    async def story(world):
        shown = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: shown.append(told["message"]))
        ears = [Ear(), Strict()]
        transports = [world.transport(u, ear) for u, ear in enumerate(ears)]
        for transport in transports:
            await transport.start()
        for again, (frame, reason) in enumerate([(b"bad", "bad frame"), (b"bug", "KeyError: 'bug'")], 1):
            await ears[0].until(lambda again=again: ears[0].count("linked") == again)
            await ears[1].until(lambda again=again: ears[1].count("linked") == again)
            await transports[0].send(1, frame)
            await ears[1].until(lambda again=again: ears[1].count("lost") == again)
            assert reason in ears[1].events[-1][2]
        await ears[1].until(lambda: ears[1].count("linked") == 3)
        assert shown == ["the receiver failed on the link to party 0"]
        # what went wrong may quote private data: the other end is not told
        await ears[0].until(lambda: ears[0].count("lost") == 2)
        assert not any("bug" in str(event) or "bad" in str(event) for event in ears[0].events)
        for transport in transports:
            await transport.close()

    world().run(story)


def test_no_link_no_send(world):
    async def story(world):
        transport = world.transport(0, Ear())
        with pytest.raises(LinkLost, match="no link"):
            await transport.send(1, b"x")
        await transport.start()
        with pytest.raises(LinkLost, match="no link"):
            await transport.send(1, b"x")
        await transport.close()

    world().run(story)


# ---- the twin in memory


def test_virtual_time_jumps_and_notices_that_nothing_will_happen():
    clock = VirtualClock(start=5.0)

    async def sleepers():
        order = []

        async def nap(seconds):
            await clock.sleep(seconds)
            order.append((seconds, clock.time()))

        await asyncio.gather(nap(3600), nap(1), nap(60))
        return order

    assert clock.run(sleepers()) == [(1, 6.0), (60, 65.0), (3600, 3605.0)]

    async def stuck():
        await asyncio.Event().wait()

    with pytest.raises(NetdpError, match="nothing will ever happen"):
        clock.run(stuck())

    async def restless():
        while True:
            await clock.sleep(10)

    with pytest.raises(NetdpError, match="virtual time passed 100 s"):
        VirtualClock(longest=100.0).run(restless())


def chatter(seed_delay):
    """A noisy story in virtual time; everything heard, with its time."""
    clock, heard = VirtualClock(), []

    class Clerk(Ear):
        def __init__(self, u):
            super().__init__()
            self.u = u

        def note(self, *event):
            super().note(*event)
            heard.append((clock.time(), self.u, *event))

        async def received(self, peer, frame):
            heard.append((clock.time(), self.u, peer, frame))

    async def story():
        network = MemoryNetwork(4, clock, delay=lambda u, v, size: 0.01 * (1 + (7 * u + 3 * v + size + seed_delay) % 5))
        transports = [network.transport(u, Clerk(u)) for u in range(4)]
        for transport in transports:
            await transport.start()
        await clock.sleep(1)
        for i in range(30):
            for u in range(4):
                with contextlib.suppress(LinkLost):
                    await transports[u].send((u + 1 + i % 3) % 4, bytes(i))
            if i == 10:
                network.partition({0, 1})
            if i == 20:
                network.heal()
            await clock.sleep(0.05)
        for transport in transports:
            await transport.close()

    clock.run(story())
    return heard


def test_runs_in_virtual_time_repeat_themselves():
    assert chatter(0) == chatter(0) != chatter(1)
    assert len(chatter(0)) > 60


def test_delays_partitions_and_crashes():
    clock = VirtualClock()

    async def story():
        network = MemoryNetwork(3, clock, delay=0.5, edges=[(0, 1), (2, 1)])
        ears = [Ear() for _ in range(3)]
        transports = [network.transport(u, ear) for u, ear in enumerate(ears)]
        for transport in transports:
            await transport.start()
        assert network.neighbours(1) == (0, 2)
        await ears[1].until(lambda: ears[1].count("linked") == 2)
        assert clock.time() == 1.0  # there and back
        await transports[0].send(1, b"a")
        await transports[0].send(1, b"b")
        await ears[1].until(lambda: len(ears[1].frames) == 2)
        assert clock.time() == 1.5  # both were on their way at once

        await transports[0].send(1, b"lost on the way")
        await clock.sleep(0.4)
        network.cut(0, 1)
        await clock.sleep(60)
        assert len(ears[1].frames) == 2
        assert not network.linked(0, 1)
        assert [event[0] for event in ears[0].events] == ["linked", "lost"]
        network.mend(0, 1)
        await ears[0].until(lambda: ears[0].count("linked") == 2)

        network.partition({2})
        assert ears[2].count("lost", 1) == 0  # told when the loop runs on
        await clock.sleep(0)
        await clock.sleep(0)
        await ears[2].until(lambda: ears[2].count("lost", 1) == 1)
        assert network.linked(0, 1)
        network.heal()
        await ears[2].until(lambda: ears[2].count("linked", 1) == 2)

        events = list(ears[1].events)
        await transports[0].send(1, b"never heard")
        network.crash(1)
        await ears[0].until(lambda: ears[0].count("lost") == 2)
        await clock.sleep(10)
        assert ears[1].events == events
        assert len(ears[1].frames) == 2
        with pytest.raises(LinkLost):
            await transports[1].send(0, b"from the dead")
        ears[1] = Ear()
        transports[1] = network.transport(1, ears[1])
        await transports[1].start()
        await ears[1].until(lambda: ears[1].count("linked") == 2)
        with pytest.raises(InvalidValue, match="party 1 is in the network already"):
            await network.transport(1, Ear()).start()
        with pytest.raises(InvalidValue, match="not neighbours"):
            network.cut(0, 2)
        for transport in transports:
            await transport.close()

    clock.run(story())


def test_lanes_are_bounded_in_frames_and_bytes():
    async def story():
        lane = Lane(Limits(waiting=100, waiting_frames=3), RealClock().time)
        await lane.put(bytes(5000))  # larger than all the room, but alone
        waiting = [asyncio.ensure_future(lane.put(bytes([i]))) for i in range(4)]
        await asyncio.sleep(0)
        assert len(lane) == 1
        assert len((await lane.get())[1]) == 5000
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(lane) == 3
        assert [(await lane.get())[1][0] for _ in range(4)] == [0, 1, 2, 3]
        await asyncio.gather(*waiting)
        lane.finish("done")
        with pytest.raises(LinkLost, match="done"):
            await lane.put(b"")
        assert await lane.get() is None

    VirtualClock().run(story())


@pytest.mark.parametrize(
    ("name", "value"), [("frame", 0), ("waiting_frames", 2.5), ("handshake", -1), ("frame", 2**31)]
)
def test_limits_are_checked(name, value):
    with pytest.raises(InvalidValue, match=f"{name} must be"):
        Limits(**{name: value})
