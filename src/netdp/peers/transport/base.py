"""What every transport promises: links between neighbours that keep order, wait when the far end is slow, and end once.

A *link* joins two neighbours and carries frames of bytes both ways. Its life, at each of its two ends:

    linked(peer)                 both directions work
    received(peer, frame) …      in the order sent, one at a time: the next is read when this call has returned
    lost(peer, reason)           once for every `linked`; afterwards nothing of this link is heard any more

A link that is lost takes with it the frames on their way; the transport makes a new one by itself and nothing is sent
again: whoever needs it says it again (netdp.peers.party does). A link taken down by `close` first delivers what it took.

**Back-pressure.** `send` returns when the link has taken the frame, and the link takes only so many (`Limits.waiting`).
So a receiver that is slow slows its senders, and no memory grows. One consequence: a receiver that awaits `send`
inside `received` couples its links, and on a cycle of full links everybody would wait for everybody. Receivers put
frames aside and answer from a task of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from netdp.errors import InvalidValue, LinkLost, NetdpError
from netdp.numerics.checks import count, positive
from netdp.peers.events import Sentence, Statement, statement_of

MEGABYTE = 1 << 20


class Clock(Protocol):
    """Time as a party sees it: real, or virtual in tests."""

    def time(self) -> float:
        """Seconds since some moment; never falls."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""


class RealClock:
    """The time of this machine."""

    def time(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Receiver(Protocol):
    """Whoever listens to a transport; called on its event loop."""

    def linked(self, peer: int) -> None:
        """Frames can go both ways from now on."""

    def lost(self, peer: int, reason: Statement) -> None:
        """The link ended; what was on its way may be gone."""

    async def received(self, peer: int, frame: bytes) -> None:
        """A frame has come; the next one of this link waits until this returns."""


class Transport(Protocol):
    """Frames to neighbours."""

    async def send(self, peer: int, frame: bytes) -> None:
        """Return when the link to this neighbour has taken the frame; LinkLost if there is no link or it ends first."""

    async def start(self) -> None:
        """Begin to make links."""

    async def close(self) -> None:
        """Deliver what was taken, end all links, leave nothing behind."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a transport; both ends of a link should state the same `frame` and `keepalive`."""

    frame: int = 64 * MEGABYTE
    """The largest frame, in bytes."""
    waiting: int = 4 * MEGABYTE
    """How many bytes may wait in one link, besides one frame that is larger than that."""
    waiting_frames: int = 64
    """How many frames may wait in one link."""
    handshake: float = 10.0
    """Seconds that making a link may take."""
    keepalive: float = 20.0
    """Seconds of silence after which an end asks whether the other is still there, and then waits for an answer."""
    first_backoff: float = 0.1
    """Seconds before a link that failed is tried again; doubled every time."""
    most_backoff: float = 1.0
    """No wait between two tries is longer."""
    closing: float = 2.0
    """Seconds that `close` gives frames that were taken."""

    def __post_init__(self) -> None:
        for name in ("frame", "waiting", "waiting_frames"):
            count(name, getattr(self, name))
        for name in ("handshake", "keepalive", "first_backoff", "most_backoff", "closing"):
            positive(name, getattr(self, name))
        if self.frame > 1 << 30:
            raise InvalidValue(f"frame must be at most 2³⁰ bytes, got {self.frame}; split what is sent")

    def check_frame(self, frame: bytes) -> None:
        """Refuse what no link takes."""
        if not isinstance(frame, bytes):
            raise InvalidValue(f"a frame is bytes, got {type(frame).__name__}")
        if len(frame) > self.frame:
            raise InvalidValue(
                f"a frame of {len(frame):,} bytes is over the limit of {self.frame:,}; split it, or raise Limits.frame at both ends"
            )


class Lane:
    """Frames waiting for one direction of a link: `put` waits while it is full, and keeps the order of its callers."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits, self._now = limits, now
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._bytes = 0
        self._turn = asyncio.Lock()  # first come, first served
        self._room, self._some = asyncio.Event(), asyncio.Event()
        self._shut: Statement | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def _full(self, size: int) -> bool:
        limits, frames = self._limits, len(self._waiting)
        return frames > 0 and (frames >= limits.waiting_frames or self._bytes + size > limits.waiting)

    async def put(self, frame: bytes) -> None:
        """Add a frame, when there is room for it."""
        async with self._turn:
            while self._shut is None and self._full(len(frame)):
                self._room.clear()
                await self._room.wait()
            if self._shut is not None:
                raise LinkLost(self._shut)
            self._waiting.append((self._now(), frame))
            self._bytes += len(frame)
            self._some.set()

    async def get(self) -> tuple[float, bytes] | None:
        """The next frame and when it was put; None after `finish` when all is taken. For one caller at a time."""
        while not self._waiting:
            if self._shut is not None:
                return None
            self._some.clear()
            await self._some.wait()
        taken, frame = self._waiting.popleft()
        self._bytes -= len(frame)
        self._room.set()
        return taken, frame

    def finish(self, reason: Statement) -> None:
        """Take no more; what waits can still be got."""
        self._shut = self._shut or reason
        self._room.set()
        self._some.set()

    def drop(self, reason: Statement) -> None:
        """Take no more, and forget what waits."""
        self._waiting.clear()
        self._bytes = 0
        self.finish(reason)


Read = Callable[[], Awaitable[bytes | None]]
"""The next frame of the far end, None when it has ended the link in order; LinkLost when the link broke."""
Write = Callable[[bytes], Awaitable[None]]
"""Hand one frame to the wire; LinkLost when the link broke."""

NoMore = Callable[[], Awaitable[None]]
"""Tell the far end that all frames were written."""


class End:
    """One party's end of one link: runs its two directions until one of them ends, and then says so once."""

    def __init__(self, peer: int, receiver: Receiver, limits: Limits, now: Callable[[], float]) -> None:
        self.peer = peer
        self.lane = Lane(limits, now)
        self.reason: Statement | None = None
        self.drained = asyncio.Event()
        self.gone = asyncio.Event()
        self._receiver = receiver
        self._stop, self._interrupt = asyncio.Event(), asyncio.Event()
        self._handing_over = self._abandoned = False
        self._finishing: Statement | None = None

    def end(self, reason: Statement, *, abandon: bool = False) -> None:
        """End the link now. With `abandon` as if this party's process were killed: it hears nothing of it."""
        self.reason = self.reason or self._finishing or reason
        self._abandoned = self._abandoned or abandon
        self.lane.drop(self.reason)
        self._stop.set()
        if abandon:
            self._interrupt.set()

    async def close(self, seconds: float, until: asyncio.Event) -> None:
        """Take no more frames, give those that were taken `seconds` to get through (until the event), end the link.

        A receiver that is still busy with a frame gets as long again, then it is interrupted.
        """
        self._finishing = self._finishing or Sentence.CLOSED_HERE()
        self.lane.finish(self._finishing)
        await _wait(until, seconds)
        self.end(self._finishing)
        await _wait(self.gone, seconds)
        self._interrupt.set()
        await self.gone.wait()

    async def run(self, read: Read, write: Write | None = None, no_more: NoMore | None = None) -> Statement:
        """Live through the link and return why it ended; `write` is None if the far end takes from `lane` itself."""
        reader, stop = asyncio.ensure_future(self._incoming(read)), asyncio.ensure_future(self._stop.wait())
        interrupt = asyncio.ensure_future(self._interrupt.wait())
        tasks: list[asyncio.Future[Any]] = [reader, stop, interrupt]
        if write is not None:
            tasks.append(asyncio.ensure_future(self._outgoing(write, no_more)))
        try:
            self._tell(lambda: self._receiver.linked(self.peer))
            await asyncio.wait([reader, stop], return_when=asyncio.FIRST_COMPLETED)
            self.end(Sentence.ENDED_THERE())  # unless a reason is known
            if self._handing_over:  # a receiver is not stopped in the middle of a frame
                await asyncio.wait([reader, interrupt], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.end(Sentence.STOPPED())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.drained.set()
            self.gone.set()
            if not self._abandoned:
                self._tell(lambda: self._receiver.lost(self.peer, self.reason or Sentence.STOPPED()))
        return self.reason or Sentence.STOPPED()

    async def _incoming(self, read: Read) -> None:
        try:
            while (frame := await read()) is not None and self.reason is None:
                self._handing_over = True
                try:
                    await self._receiver.received(self.peer, frame)
                finally:
                    self._handing_over = False
                del frame  # up to 64 MB that would otherwise live until the next one comes
        except LinkLost as problem:
            self.end(statement_of(problem))
        except NetdpError as problem:
            self.end(Sentence.FRAME_REFUSED(problem=str(problem)))
        except Exception as problem:
            self._failed(problem)

    async def _outgoing(self, write: Write, no_more: NoMore | None) -> None:
        try:
            while (waiting := await self.lane.get()) is not None:
                await write(waiting[1])
                del waiting
            if no_more is not None:
                await no_more()
        except LinkLost as problem:
            self.end(statement_of(problem))
        self.drained.set()

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as problem:
            self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        """A mistake of the receiver ends the link, and is shown with its traceback."""
        self.end(Sentence.RECEIVER_FAILED(problem=f"{type(problem).__name__}: {problem}"))
        told = {"message": f"the receiver failed on the link to party {self.peer}", "exception": problem}
        asyncio.get_running_loop().call_exception_handler(told)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
