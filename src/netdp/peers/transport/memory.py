"""A network inside one process, in virtual time: what takes hours on real wires takes none, and repeats itself exactly.

`VirtualClock.run` runs asyncio code on an event loop whose time stands still while anything can be done and jumps to
the next timer when nothing can. So every `asyncio.sleep` and every timeout is virtual, no test waits, and two runs do
the same steps in the same order. If nothing can be done and no timer is set, nothing ever will happen: the loop says
so instead of hanging. Threads are outside of its time: code under a virtual clock starts none.

`MemoryNetwork` joins parties by links that keep what netdp.peers.transport.base promises, with a delay, and that can be
made to fail: `drop` one link (it comes back), `cut` and `mend` it, `partition` and `heal` the network, `crash` a party.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from netdp.errors import InvalidValue, LinkLost, NetdpError
from netdp.numerics.checks import count, non_negative, positive, whole
from netdp.peers.events import Sentence, Statement

from .base import Clock, End, Limits, Read, Receiver

Result = TypeVar("Result")
Delay = Callable[[int, int, int], float]
"""Seconds a frame takes: from whom, to whom, how many bytes."""


class VirtualClock:
    """Time that jumps from event to event.

    >>> clock = VirtualClock()
    >>> async def nap():
    ...     await clock.sleep(3600)
    ...     return clock.time()
    >>> clock.run(nap())
    3600.0
    """

    def __init__(self, start: float = 0.0, longest: float = 1e6) -> None:
        self._now = non_negative("start", start)
        self._end = self._now + positive("longest", longest)

    def time(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Run to its end, as `asyncio.run` does, in virtual time; tasks left over are cancelled."""
        with asyncio.Runner(loop_factory=lambda: _VirtualLoop(self)) as runner:
            return runner.run(main)

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise NetdpError("nothing will ever happen any more: every task waits and no timer is set")
        self._now += seconds
        if self._now > self._end:
            raise NetdpError(
                f"virtual time passed {self._end:g} s and the task has not ended; raise `longest` if it should"
            )


class _VirtualSelector(selectors.SelectSelector):
    """Instead of waiting for a timer, moves the clock to it."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and (timeout is None or timeout > 0):
            self._clock._jump(timeout)
        return events


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_VirtualSelector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.time()


class MemoryNetwork:
    """Parties 0 … n−1 joined by links in memory, along `edges` (all pairs unless given)."""

    def __init__(
        self,
        n: int,
        clock: Clock,
        *,
        edges: Iterable[tuple[int, int]] | None = None,
        delay: float | Delay = 0.01,
        limits: Limits | None = None,
    ) -> None:
        self.n, self.clock, self.limits = count("n", n), clock, limits or Limits()
        pairs = [(u, v) for u in range(n) for v in range(u + 1, n)] if edges is None else list(edges)
        self._edges = dict.fromkeys(self._pair(u, v) for u, v in pairs)
        if not callable(delay):
            seconds = non_negative("delay", delay)
            delay = lambda source, target, size: seconds  # noqa: E731
        self._delay: Delay = delay
        self._transports: dict[int, MemoryTransport] = {}
        self._cut: set[tuple[int, int]] = set()
        self._making: dict[tuple[int, int], asyncio.Task[None]] = {}

    def transport(self, u: int, receiver: Receiver) -> MemoryTransport:
        """The transport of party u; a second one, as after a restart, once the first is closed or has crashed."""
        if whole("party", u) >= self.n:
            raise InvalidValue(f"party must be below {self.n}, got {u}")
        return MemoryTransport(self, u, receiver)

    def drop(self, u: int, v: int, reason: Statement | None = None) -> None:
        """Break the link between two parties now, with all that is on its way; a new one is made after the back-off."""
        for a, b in ((u, v), (v, u)):
            if a in self._transports:
                for end in self._transports[a]._links.get(b, ()):
                    end.end(reason or Sentence.CONNECTION_RESET())

    def cut(self, u: int, v: int) -> None:
        """Break the link between two parties, and make none until `mend`."""
        self._cut.add(self._edge(u, v))
        self.drop(u, v)

    def mend(self, u: int, v: int) -> None:
        """Undo `cut`."""
        pair = self._edge(u, v)
        self._cut.discard(pair)
        self._consider(pair)

    def partition(self, *groups: Iterable[int]) -> None:
        """Cut every link between different groups; parties in no group form one more."""
        place = {party: number for number, group in enumerate(groups, 1) for party in group}
        for u, v in self._edges:
            if place.get(u, 0) != place.get(v, 0):
                self.cut(u, v)

    def heal(self) -> None:
        """Mend every link."""
        for u, v in sorted(self._cut):
            self.mend(u, v)

    def crash(self, u: int) -> None:
        """Party u is gone, as a process that is killed: it hears nothing more, its neighbours lose their links."""
        transport = self._transports.pop(u, None)
        if transport is not None:
            transport._running = False
            for end, other in transport._links.values():
                end.end(Sentence.CRASHED(), abandon=True)
                other.end(Sentence.CONNECTION_RESET())

    def linked(self, u: int, v: int) -> bool:
        """Whether there is a link between two parties now."""
        return u in self._transports and v in self._transports[u]._links

    def neighbours(self, u: int) -> tuple[int, ...]:
        """Whom party u may talk to."""
        return tuple(sorted(b if a == u else a for a, b in self._edges if u in (a, b)))

    def _pair(self, u: int, v: int) -> tuple[int, int]:
        u, v = whole("party", u), whole("party", v)
        if u == v or max(u, v) >= self.n:
            raise InvalidValue(f"a link joins two different parties below {self.n}, got ({u}, {v})")
        return (u, v) if u < v else (v, u)

    def _edge(self, u: int, v: int) -> tuple[int, int]:
        pair = self._pair(u, v)
        if pair not in self._edges:
            raise InvalidValue(f"parties {u} and {v} are not neighbours in this network")
        return pair

    def _consider(self, pair: tuple[int, int], wait: float = 0.0) -> None:
        """Begin to make a link, if one could be made."""
        if pair not in self._making and pair not in self._cut and all(party in self._transports for party in pair):
            here = self._transports[pair[0]], self._transports[pair[1]]
            self._making[pair] = asyncio.ensure_future(self._make(pair, here, wait))

    async def _make(self, pair: tuple[int, int], here: tuple[MemoryTransport, MemoryTransport], wait: float) -> None:
        u, v = pair
        await self.clock.sleep(wait + self._delay(u, v, 0) + self._delay(v, u, 0))
        del self._making[pair]
        same = here == (self._transports.get(u), self._transports.get(v))  # neither has left or come anew meanwhile
        if not same or pair in self._cut or v in here[0]._links or u in here[1]._links:
            self._consider(pair, self.limits.first_backoff)
            return
        first = End(v, here[0]._receiver, self.limits, self.clock.time)
        second = End(u, here[1]._receiver, self.limits, self.clock.time)
        for transport, end, other in ((here[0], first, second), (here[1], second, first)):
            transport._links[end.peer] = end, other
            transport._tasks[end] = asyncio.ensure_future(self._live(transport, end, other))

    def _wire(self, source: int, target: int, other: End) -> Read:
        """How party `target` reads: from the lane of the other end, when a frame has come through."""
        last = 0.0

        async def read() -> bytes | None:
            nonlocal last
            waiting = await other.lane.get()
            if waiting is None:
                return None  # finished or broken; the other end's own reason stays there
            taken, frame = waiting
            last = max(last, taken + self._delay(source, target, len(frame)))  # order is kept
            if last > self.clock.time():
                await self.clock.sleep(last - self.clock.time())
            return frame

        return read

    async def _live(self, transport: MemoryTransport, end: End, other: End) -> None:
        try:
            await end.run(self._wire(end.peer, transport.me, other))
        finally:
            other.end(Sentence.ENDED_THERE())
            del transport._links[end.peer]
            del transport._tasks[end]
        self._consider(self._pair(transport.me, end.peer), self.limits.first_backoff)


class MemoryTransport:
    """One party's side of a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, me: int, receiver: Receiver) -> None:
        self.me = me
        self._network, self._receiver = network, receiver
        self._links: dict[int, tuple[End, End]] = {}
        self._tasks: dict[End, asyncio.Task[None]] = {}
        self._running = False

    async def start(self) -> None:
        """Take this party's place in the network; links follow."""
        network = self._network
        if self.me in network._transports:
            raise InvalidValue(f"party {self.me} is in the network already; close it first, or let it crash")
        network._transports[self.me] = self
        self._running = True
        for peer in network.neighbours(self.me):
            network._consider(network._pair(self.me, peer))

    async def send(self, peer: int, frame: bytes) -> None:
        """Return when the link has taken the frame."""
        self._network.limits.check_frame(frame)
        link = self._links.get(peer) if self._running else None
        if link is None:
            raise LinkLost(f"there is no link from party {self.me} to party {peer} now")
        await link[0].lane.put(frame)

    async def close(self) -> None:
        """Deliver what was taken, end all links."""
        network = self._network
        if not self._running:
            return
        self._running = False
        del network._transports[self.me]
        making = [network._making.pop(pair) for pair in list(network._making) if self.me in pair]
        for task in making:
            task.cancel()
        seconds, ends = network.limits.closing, [end for end, _ in self._links.values()]
        await asyncio.gather(*making, *(end.close(seconds, end.gone) for end in ends), return_exceptions=True)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
