"""Real links: one gRPC stream of raw bytes per pair of neighbours, both ends proved by their certificates.

**Who is at the other end.** The study lists one certificate per party. Trusting all of them as roots, as TLS usually
does, would let any listed party issue a certificate in another's name. So no name is ever looked at:

- who dials trusts one root, the very certificate of the party it dials. It belongs to one key, which proves itself in
  the handshake; every netdp certificate forbids itself to vouch for others (checked when the transport is made).
- who is dialled asks for a certificate, which proves the key, and then compares its bytes with the list. What is not
  in the list, or not a neighbour that should dial, is turned away with a reason before one of its frames is read.

**Making a link.** For a pair the smaller number dials. It opens the stream; the other accepts (a header); the first
answers with one message, LINK. After that both directions are known to work. A newer stream of a pair replaces the
older one: a party that was cut off silently comes back at once and not after the keep-alive.

**Before the day.** `hello` asks a party that listens which netdp it is and what its clock shows, without making a link
(`netdp peer doctor`). Any party of the list is told, whatever its number; nobody else is.

**Settings, and why.** so_reuseport off: else two peers share a port and each gets half of the calls. Keep-alive pings
by both ends, and servers told to bear them: else "too many pings" may end the link; and a ping's own timeout, without
which gRPC 1.85 had not given up a silent peer after 20 s, its keep-alive timeout being 0.3 s. A fresh channel for each
try: the back-off is ours alone (100 ms to 1 s). No HTTP proxy from the environment. Sizes are checked before sending,
so that a frame too large is an error here and not a broken link there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from netdp import __version__
from netdp.errors import InvalidValue, LinkLost, Refused
from netdp.numerics.checks import whole
from netdp.peers.events import Code, Sentence, Statement
from netdp.peers.identity import TLS_NAME, Card, Identity, pem
from netdp.peers.messages import NEWEST, OLDEST

from .base import End, Limits, NoMore, Read, Receiver, Write

# gRPC writes every failed handshake to standard error; they are reported by `refusals` and `troubles` instead.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

SERVICE, METHOD, HELLO = "netdp.Peers", "Link", "Hello"
LINK = b"netdp link 1"
"""The first message of who dials; frames follow."""
REPLACED = Sentence.REPLACED()
_HEADER = "netdp-link"
_LAST_TURNS = 0.1
"""Seconds that gRPC's tasks get to end after its server has stopped; they need a millisecond. If the event loop ends first, it
cancels them: gRPC prints a traceback, and never frees what it still waits for. Spent in full only if others share the loop."""


class GrpcTransport:
    """Party `me`'s links to its neighbours; `cards` and `addresses` ("host:port") are the study's, in its order.

    `listen` is where to wait for calls if it is not the address that the others dial (behind a router, say).
    `refused` is called with the reason whenever somebody is turned away; the last hundred are in `refusals`.
    `troubles` says for every neighbour without a link what went wrong last; `asked` holds who said `hello`.
    """

    def __init__(
        self,
        identity: Identity,
        me: int,
        cards: Sequence[Card],
        neighbours: Iterable[int],
        addresses: Sequence[str] | Mapping[int, str],
        receiver: Receiver,
        limits: Limits | None = None,
        *,
        listen: str | None = None,
        refused: Callable[[str], None] | None = None,
    ) -> None:
        self.limits, self.me, self._cards = limits or Limits(), whole("me", me), list(cards)
        self.neighbours = tuple(sorted({whole("a neighbour", peer) for peer in neighbours}))
        if self.me >= len(self._cards) or self._cards[self.me] != identity.card:
            raise Refused(
                f"party {me} is not {identity.card.name} with this fingerprint in the study's list; load the identity it names"
            )
        for peer in self.neighbours:
            if peer == self.me or peer >= len(self._cards):
                raise InvalidValue(f"a neighbour is another party below {len(self._cards)}, got {peer}")
        self._number = {card.certificate: number for number, card in enumerate(self._cards)}
        if len(self._number) != len(self._cards):
            raise Refused(
                "two parties of the study's list have the same certificate; each needs an identity of its own"
            )
        for card in self._cards:
            card.check()
        self._addresses = {peer: addresses[peer] for peer in self.neighbours}
        self._listen = listen or addresses[self.me]
        for address in (self._listen, *self._addresses.values()):
            _check_address(address)
        self._identity, self._receiver, self._refused = identity, receiver, refused
        self.refusals: deque[Statement] = deque(maxlen=100)
        self.troubles: dict[int, str] = dict.fromkeys(self.neighbours, "not tried yet")
        self.asked: set[int] = set()
        self.port = 0
        self._ends: dict[int, End] = {}
        self._dialling: list[asyncio.Task[None]] = []
        self._serving: set[asyncio.Task[str]] = set()
        self._server: Any = None
        self._closing = False

    async def start(self) -> None:
        """Listen, and begin to dial."""
        if self._server is not None or self._closing:
            raise InvalidValue("a transport starts once; make a new one")
        problem = self._identity.card.date_problem()
        if problem:
            raise Refused(problem)
        server = grpc.aio.server(options=self._options(server=True))
        handlers = {  # no serialisers: bytes in, bytes out
            METHOD: grpc.stream_stream_rpc_method_handler(self._serve),
            HELLO: grpc.unary_unary_rpc_method_handler(self._hello),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        credentials = grpc.ssl_server_credentials(
            [(self._identity.tls_key_pem, self._identity.tls_certificate_pem)],
            root_certificates=b"".join(pem(card.certificate) for card in self._cards),
            require_client_auth=True,
        )
        self._server = server
        try:
            self.port = server.add_secure_port(self._listen, credentials)
        except RuntimeError:
            await server.stop(None)
            raise Refused(
                f"cannot listen on {self._listen}: another program has this port, or the address is not of this machine; "
                "end it or choose another"
            ) from None
        await server.start()
        self._dialling = [asyncio.ensure_future(self._dial(peer)) for peer in self.neighbours if peer > self.me]

    async def send(self, peer: int, frame: bytes) -> None:
        """Return when the link has taken the frame."""
        self.limits.check_frame(frame)
        end = self._ends.get(peer)
        if end is None:
            if peer not in self.neighbours:
                raise InvalidValue(f"party {peer} is not a neighbour of party {self.me}; those are {self.neighbours}")
            raise LinkLost(f"there is no link to {self._name(peer)} now: {self.troubles[peer]}")
        await end.lane.put(frame)

    async def close(self) -> None:
        """Deliver what was taken, end all links, stop listening."""
        self._closing = True
        seconds, ends = self.limits.closing, list(self._ends.values())
        # Who dialled says that it has no more, and who was dialled then ends the call.
        await asyncio.gather(*(end.close(seconds, end.gone if end.peer > self.me else end.drained) for end in ends))
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(None)
        await asyncio.gather(*self._serving, return_exceptions=True)
        if calls := {task for task in asyncio.all_tasks() if _is_call(task)}:
            await asyncio.wait(calls, timeout=_LAST_TURNS)

    @property
    def linked(self) -> frozenset[int]:
        """The neighbours there is a link to now."""
        return frozenset(self._ends)

    # ---- who is dialled

    async def _serve(self, _: object, call: Any) -> None:
        peer, problem = self._caller(call)
        if problem is not None:
            self._turn_away(problem)
            await call.abort(grpc.StatusCode.PERMISSION_DENIED, str(problem))
        if self._closing:
            await call.abort(grpc.StatusCode.UNAVAILABLE, f"{self._name(self.me)} is closing")
        await call.send_initial_metadata(((_HEADER, "1"),))
        try:
            first = await asyncio.wait_for(call.read(), self.limits.handshake)
        except TimeoutError:
            first = None
        if first != LINK:
            if (
                first is not None and first is not grpc.aio.EOF
            ):  # else it died or was cut off in the middle of the handshake
                self._turn_away(Sentence.NO_LINK(name=self._name(peer)))
            await call.abort(grpc.StatusCode.FAILED_PRECONDITION, f"expected {LINK.decode()!r} first; update netdp")
        while (older := self._ends.get(peer)) is not None:
            older.end(REPLACED)
            await older.gone.wait()
        if self._closing:
            await call.abort(grpc.StatusCode.UNAVAILABLE, f"{self._name(self.me)} is closing")

        async def write(frame: bytes) -> None:
            try:
                await call.write(frame)
            except Exception as problem:
                raise LinkLost(_why(problem)) from None

        end = End(peer, self._receiver, self.limits, asyncio.get_running_loop().time)
        self._ends[peer] = end
        task = asyncio.ensure_future(self._live(end, _reader(call), write))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            reason = await asyncio.shield(task)
        except asyncio.CancelledError:
            end.end(Sentence.CONNECTION_ENDED())  # gRPC's way to say so; the receiver may still be busy with a frame
            raise
        # Why a receiver failed may quote this party's own data: of all reasons only this one is told.
        if reason == REPLACED:
            await call.abort(grpc.StatusCode.ABORTED, str(REPLACED))

    async def _hello(self, _: bytes, call: Any) -> bytes:
        """Tell a party of the list which netdp this is and what its clock shows."""
        peer, problem = self._shown(call)
        problem = problem or self._cards[peer].date_problem()
        if problem is not None:
            self._turn_away(problem)
            await call.abort(grpc.StatusCode.PERMISSION_DENIED, str(problem))
        self.asked.add(peer)
        told = {"netdp": __version__, "format": NEWEST, "oldest": OLDEST, "time": time.time()}
        return json.dumps(told).encode()

    def _shown(self, call: Any) -> tuple[int, Statement | None]:
        """Who calls, by the bytes of its certificate; or why that cannot be told."""
        shown = call.auth_context().get("x509_pem_cert", [])
        if len(shown) != 1:
            return -1, Sentence.NO_CERTIFICATE()
        der = x509.load_pem_x509_certificate(shown[0]).public_bytes(serialization.Encoding.DER)
        peer = self._number.get(der)
        if peer is None:
            return -1, Sentence.UNLISTED_CERTIFICATE()
        return peer, None

    def _caller(self, call: Any) -> tuple[int, Statement | None]:
        """Who wants a link, and why it is turned away, if it is."""
        peer, problem = self._shown(call)
        if problem is not None:
            return peer, problem
        if peer not in self.neighbours:
            return peer, Sentence.NO_NEIGHBOUR(name=self._name(peer), me=self._name(self.me))
        if peer > self.me:
            return peer, Sentence.DIAL_ORDER(name=self._name(peer), me=self._name(self.me))
        return peer, self._cards[peer].date_problem()

    def _turn_away(self, reason: Statement) -> None:
        self.refusals.append(reason)
        if self._refused is not None:
            self._refused(reason)

    # ---- who dials

    async def _dial(self, peer: int) -> None:
        limits, loop = self.limits, asyncio.get_running_loop()
        credentials = grpc.ssl_channel_credentials(
            pem(self._cards[peer].certificate), self._identity.tls_key_pem, self._identity.tls_certificate_pem
        )
        wait = limits.first_backoff
        while not self._closing:
            began = loop.time()
            problem = self._cards[peer].date_problem() or self._identity.card.date_problem()
            if problem and problem != self.troubles[peer]:
                self._turn_away(problem)
            self.troubles[peer] = problem or await self._dial_once(peer, credentials)
            if loop.time() - began > limits.most_backoff:  # it was a link for a while: a new story
                wait = limits.first_backoff
            await asyncio.sleep(wait)
            wait = min(2 * wait, limits.most_backoff)

    async def _dial_once(self, peer: int, credentials: Any) -> str:
        """Make a link and live through it; why it ended, or was not made."""
        channel = grpc.aio.secure_channel(self._addresses[peer], credentials, options=self._options(server=False))
        call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()

        async def write(frame: bytes) -> None:
            try:
                await call.write(frame)
            except asyncio.InvalidStateError:  # the call is over, and knows why
                raise LinkLost(_told(await call.code(), await call.details())) from None
            except Exception as problem:
                raise LinkLost(_why(problem)) from None

        async def no_more() -> None:
            with contextlib.suppress(Exception):
                await call.done_writing()

        try:
            async with asyncio.timeout(self.limits.handshake):
                accepted = await call.initial_metadata()
                if _HEADER not in (accepted or {}):
                    return self._explain(peer, await call.code(), await call.details())
                await write(LINK)
            end = End(peer, self._receiver, self.limits, asyncio.get_running_loop().time)
            self._ends[peer] = end
            return await self._live(end, _reader(call), write, no_more)
        except TimeoutError:
            return f"{self._name(peer)} at {self._addresses[peer]} did not answer in {self.limits.handshake:g} s"
        except LinkLost as problem:
            return str(problem)
        finally:
            call.cancel()
            await channel.close()

    def _explain(self, peer: int, code: Any, details: str | None) -> str:
        where, details = f"{self._name(peer)} at {self._addresses[peer]}", details or code.name
        if code == grpc.StatusCode.PERMISSION_DENIED:
            return f"{where} refused: {details}"
        if "CERTIFICATE_VERIFY_FAILED" in details:
            reason = Sentence.OTHER_CERTIFICATE(where=where)
            self._turn_away(reason)
            return reason
        return f"{where} cannot be reached: {details}"

    # ---- both

    async def _live(self, end: End, read: Read, write: Write, no_more: NoMore | None = None) -> str:
        try:
            return await end.run(read, write, no_more)
        finally:
            self.troubles[end.peer] = end.reason or "stopped"
            if self._ends.get(end.peer) is end:
                del self._ends[end.peer]

    def _name(self, peer: int) -> str:
        return f"party {peer} ({self._cards[peer].name})"

    def _options(self, *, server: bool) -> list[tuple[str, int | str]]:
        milliseconds, size = int(1000 * self.limits.keepalive), self.limits.frame + len(LINK)
        options: list[tuple[str, int | str]] = [
            ("grpc.max_send_message_length", size),
            ("grpc.max_receive_message_length", size),
            ("grpc.keepalive_time_ms", milliseconds),
            ("grpc.keepalive_timeout_ms", milliseconds),
            ("grpc.http2.ping_timeout_ms", milliseconds),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        handshake = int(1000 * self.limits.handshake)
        if server:
            return [
                *options,
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 2),
                ("grpc.server_handshake_timeout_ms", handshake),
                ("grpc.max_concurrent_streams", 8),
            ]
        return [
            *options,
            ("grpc.ssl_target_name_override", TLS_NAME),
            ("grpc.enable_http_proxy", 0),
            ("grpc.enable_retries", 0),
            ("grpc.service_config_disable_resolution", 1),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.min_reconnect_backoff_ms", handshake),  # gRPC's name for the deadline of one try
        ]


async def hello(identity: Identity, card: Card, address: str, seconds: float = 10.0) -> dict[str, Any]:
    """Ask the party with this very card: {"netdp": its version, "format": the newest of the wire, "oldest", "time": its clock}.

    Raises `LinkLost` with the reason, `Refused` if it turned this party away.
    """
    credentials = grpc.ssl_channel_credentials(
        pem(card.certificate), identity.tls_key_pem, identity.tls_certificate_pem
    )
    options = [
        ("grpc.ssl_target_name_override", TLS_NAME),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", 10_000),
    ]
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        try:
            told = json.loads(await channel.unary_unary(f"/{SERVICE}/{HELLO}")(b"", timeout=seconds))
            found: dict[str, Any] = {
                "netdp": str(told["netdp"])[:40],
                "format": int(told["format"]),
                "oldest": int(told.get("oldest", told["format"])),
                "time": float(told["time"]),
            }
            if not math.isfinite(found["time"]) or not found["netdp"].isprintable():
                raise ValueError
            return found
        except grpc.aio.AioRpcError as problem:
            if problem.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise Refused(f"{card.name} at {address} refused: {problem.details()}") from None
            raise LinkLost(f"{card.name} at {address}: {problem.details() or problem.code().name}") from None
        except (ValueError, KeyError, TypeError, OverflowError):
            raise LinkLost(f"{card.name} at {address} answered what no netdp of this version says") from None


def _check_address(address: object) -> None:
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidValue(f'an address is "host:port", such as "10.0.0.7:7400", got {address!r}')


def _is_call(task: asyncio.Task[Any]) -> bool:
    """Whether this is a task of gRPC's own for a call that somebody dialled; told by the names it has in gRPC 1.85."""
    return getattr(task.get_coro(), "__name__", "") in ("_schedule_rpc_coro", "_handle_exceptions")


def _reader(call: Any) -> Read:
    """The frames that come over a call, one after the other; None at its end."""

    async def read() -> bytes | None:
        try:
            frame = await call.read()
        except Exception as problem:
            raise LinkLost(_why(problem)) from None
        return None if frame is grpc.aio.EOF else bytes(frame)

    return read


def _why(problem: Exception) -> Statement:
    if isinstance(problem, grpc.aio.AioRpcError):
        return _told(problem.code(), problem.details())
    return (
        Statement(f"{type(problem).__name__}: {problem}", "connection") if str(problem) else Sentence.CONNECTION_ENDED()
    )


_CODES: dict[Any, Code] = {
    grpc.StatusCode.ABORTED: "replaced",
    grpc.StatusCode.CANCELLED: "connection",
    grpc.StatusCode.OK: "ended-there",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "frame-refused",
    grpc.StatusCode.UNAVAILABLE: "connection",
}


def _told(code: Any, details: str | None) -> Statement:
    """What gRPC says of a call that is over: its words for the owner, its status for everybody else."""
    return Statement(details, _CODES.get(code, "other")) if details else Sentence.ENDED_THERE()
