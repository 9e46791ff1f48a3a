"""Can a party reach its neighbours, are they who the study says, and what do their clocks show?

Peers listen only while they run, so two machines can see each other only if both listen: `wait` makes the doctor listen
for so many seconds and ask its neighbours again and again, so that doctors started at about the same time find each
other. A neighbour is looked at in three steps: does the address answer; does it prove, in a TLS handshake, the key of
exactly the certificate that the study lists; does it take this party for the one that the study lists (`hello`, which
tells its version and its clock). Of a pair the party with the smaller number dials; the other direction is tried for its
clock, and is not needed.

**Clocks.** A peer orders nothing by clocks. They matter for the dates of certificates (made out one day back, so a day's
difference breaks links) and for the dates in the ledger, by which limits per year are counted. The difference is read off
one question and answer: it is known up to half the time between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from netdp import __version__
from netdp.errors import LinkLost, NetdpError, Refused

from .identity import TLS_NAME, Identity
from .study import Study
from .versions import NEWEST, OLDEST, agreed, refusal, stated

if TYPE_CHECKING:
    from .transport.grpc import GrpcTransport

CLOCK, DAY = 60.0, 86_400.0
"""Seconds of difference that are worth a word, and those that break links."""
PROBE = 5.0
"""Seconds that one look at a neighbour may take."""
AGAIN = 0.5
"""Seconds until a neighbour that did not answer is looked at again."""
LAST_WORD = 1.0
"""Seconds that a doctor stays after all is known, so that its last answer arrives."""

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at: its name, how it is, a sentence, the way out if there should be one, and the numbers."""

    what: str
    status: Status
    said: str
    way_out: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "check": self.what, "status": self.status, "said": self.said, "way_out": self.way_out or None, **self.facts,
        }  # fmt: skip


Tell = Callable[[Check], None]


class _Deaf:
    """A receiver for a transport that makes no links."""

    def linked(self, peer: int) -> None: ...
    def lost(self, peer: int, reason: str) -> None: ...
    async def received(self, peer: int, frame: bytes) -> None: ...


async def look_around(identity: Identity, study: Study, me: int, listen: str | None, wait: float, add: Tell) -> None:
    """Listen, and look at all neighbours; `add` hears what is found."""
    from .transport.grpc import GrpcTransport

    until = time.monotonic() + wait
    where = listen or study.address(me)
    transport: GrpcTransport | None = None
    try:
        cards = list(study.cards)
        # without neighbours: it answers `hello`, and neither dials nor takes a link, which peers that run would notice
        transport = GrpcTransport(
            identity, me, cards, (), [study.address(u) for u in range(len(study.everybody))], _Deaf(), listen=listen
        )
        await transport.start()
        add(Check("listening", "ok", f"{where} can be listened on"))
    except NetdpError as problem:
        way_out = "is this party's peer running already? Else see who has the port (ss -ltnp), or give --listen"
        add(Check("listening", "fail", str(problem), way_out))
    try:
        looks = [_neighbour(identity, study, me, u, transport, wait, until) for u in study.neighbours(me)]
        for look in [asyncio.ensure_future(look) for look in looks]:  # all at once, told in the order of the study
            add(await look)
        if wait:
            await asyncio.sleep(LAST_WORD)
    finally:
        if transport is not None:
            await transport.close()


async def _neighbour(
    identity: Identity, study: Study, me: int, u: int, transport: GrpcTransport | None, wait: float, until: float
) -> Check:
    """Look at a neighbour until both have seen each other, or the time is over."""
    seen = await _probe(identity, study, u)
    while (left := until - time.monotonic()) > 0:
        asked = transport is not None and u in transport.asked
        if seen.reached and asked:
            break
        await asyncio.sleep(min(AGAIN, left))
        if not seen.reached:
            seen = await _probe(identity, study, u)
    return _verdict(study, me, u, seen, transport is not None and u in transport.asked, wait)


@dataclass(frozen=True)
class _Seen:
    """What one look at a neighbour gave: its `hello`, or what is wrong."""

    hello: dict[str, Any] | None = None
    problem: str = ""
    closed: bool = False
    """Its machine answers, and nobody listens."""
    offset: float = 0.0
    doubt: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether it answered as the party that it should be."""
        return self.hello is not None


async def _probe(identity: Identity, study: Study, u: int) -> _Seen:
    """Address, certificate, `hello`."""
    from .transport.grpc import hello

    address = study.address(u)
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(PROBE):
            shown = await _certificate(host.strip("[]"), int(port))
    except ConnectionRefusedError:
        return _Seen(problem=f"nobody listens at {address} now", closed=True)
    except TimeoutError:
        return _Seen(problem=f"{address} does not answer in {PROBE:g} s")
    except socket.gaierror:
        return _Seen(problem=f"the name in {address} is not known here")
    except ssl.SSLError:
        return _Seen(problem=f"what listens at {address} does not speak as a peer does")
    except OSError as problem:
        return _Seen(problem=f"{address} cannot be reached: {problem.strerror or problem}")
    if shown != study.card(u).certificate:
        others = [study.everybody[v] for v in range(len(study.everybody)) if study.card(v).certificate == shown]
        who = f"{others[0]} answers" if others else "the one who answers is no party of this study"
        return _Seen(problem=f"{address} does not show the certificate of {study.everybody[u]}: {who}")
    began, clock = time.monotonic(), time.time()
    try:
        told = await hello(identity, study.card(u), address, PROBE)
    except Refused as problem:
        return _Seen(problem=str(problem))
    except LinkLost as problem:
        return _Seen(
            problem=f"{problem}; it shows its listed certificate, but does not take ours, or is an older netdp"
        )
    took = time.monotonic() - began
    return _Seen(hello=told, offset=told["time"] - (clock + took / 2), doubt=took / 2)


async def _certificate(host: str, port: int) -> bytes:
    """The certificate whose key the other end proves to hold; nothing is trusted for it, it is compared."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # it shows its own certificate before it asks for ours
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=TLS_NAME)
    try:
        return bytes(writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b"")
    finally:
        writer.transport.abort()
        with contextlib.suppress(Exception):
            await writer.wait_closed()


def _verdict(study: Study, me: int, u: int, seen: _Seen, asked: bool, wait: float) -> Check:
    """One line about a neighbour."""
    name, what = study.everybody[u], f"neighbour {study.everybody[u]}"
    dials = me < u  # for a pair the smaller number dials
    facts: dict[str, Any] = {"party": name, "reached": seen.reached, "asked": asked}
    together = "start the doctor with --wait 120 on both machines at about the same time"
    if seen.hello is None:
        firewall = f"open the port there, and the way to it; or {together}"
        if asked and not dials:
            said = (
                f"reaches this party, and dials; the other way ({seen.problem}) is not needed, its clock is not known"
            )
            return Check(what, "ok", said, facts=facts)
        if seen.closed and not wait:
            return Check(what, "warn", seen.problem, f"peers listen only while they run: {together}", facts)
        if not dials and not wait and "certificate" not in seen.problem:
            return Check(what, "warn", f"{seen.problem}; it dials, so this may not matter", together, facts)
        return Check(what, "fail", seen.problem, together if seen.closed else firewall, facts)
    facts |= {"netdp": seen.hello["netdp"], "format": seen.hello["format"], "clock_seconds": round(seen.offset, 3)}
    theirs = stated(seen.hello["oldest"], seen.hello["format"])
    if agreed((OLDEST, NEWEST), theirs) is None:
        said, way_out = refusal((OLDEST, NEWEST), theirs, seen.hello["netdp"]).split("; ")
        return Check(what, "fail", said, way_out, facts)
    clock = f"clock {seen.offset:+.2f} s (± {max(seen.doubt, 0.005):.2f})"
    said = f"{study.address(u)}, listed certificate, netdp {seen.hello['netdp']}, {clock}"
    off = max(0.0, abs(seen.offset) - seen.doubt)
    if off > DAY:
        return Check(what, "fail", said, "set the clocks (NTP): a day apart, certificates are not good", facts)
    if off > CLOCK:
        return Check(what, "warn", said, "set the clocks (NTP): ledgers and limits per year go by them", facts)
    if seen.hello["netdp"] != __version__:
        return Check(what, "warn", said, f"this is netdp {__version__}; the same version everywhere is safer", facts)
    if wait and not asked and not dials:
        way_out = "it must reach this party, and has not tried: let its doctor run at the same time, open the port here"
        return Check(what, "warn", said, way_out, facts)
    return Check(what, "ok", said, facts=facts)


__all__ = ["Check", "look_around"]
