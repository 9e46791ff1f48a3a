"""Checks before the day: would this peer run, and can it talk to its neighbours? Nothing of the data or the study is sent.

Every check is one sentence: ok, warn (it would run, but look at this) or fail (it would not run), with the way out. A check
that needs something which failed before is not made, and says so. First the machine, the home and the study are looked at,
then the neighbours.

**Neighbours.** Can this party reach them, are they who the study says, and what do their clocks show?
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
import datetime
import os
import re
import socket
import ssl
import stat
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from netdp import __version__
from netdp.errors import FileFormatError, InvalidValue, LinkLost, NetdpError, Refused
from netdp.peers.identity import TLS_NAME, Identity
from netdp.peers.ledger.policy import OwnerPolicy, PolicyDecision, verdict_lines
from netdp.peers.ledger.store import Store
from netdp.peers.messages import NEWEST, OLDEST, agreed, refusal, stated
from netdp.peers.study import signatures
from netdp.peers.study.study import Study
from netdp.peers.study.training import Training
from netdp.privacy.wording import readable

if TYPE_CHECKING:
    from netdp.peers.ledger.entries import Entry
    from netdp.peers.transport.grpc import GrpcTransport

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
class ReachCheck:
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


Tell = Callable[[ReachCheck], None]


class _Deaf:
    """A receiver for a transport that makes no links."""

    def linked(self, peer: int) -> None: ...
    def lost(self, peer: int, reason: str) -> None: ...
    async def received(self, peer: int, frame: bytes) -> None: ...


async def look_around(identity: Identity, study: Study, me: int, listen: str | None, wait: float, add: Tell) -> None:
    """Listen, and look at all neighbours; `add` hears what is found."""
    from netdp.peers.transport.grpc import GrpcTransport

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
        add(ReachCheck("listening", "ok", f"{where} can be listened on"))
    except NetdpError as problem:
        way_out = "is this party's peer running already? Else see who has the port (ss -ltnp), or give --listen"
        add(ReachCheck("listening", "fail", str(problem), way_out))
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
) -> ReachCheck:
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
    from netdp.peers.transport.grpc import hello

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


def _verdict(study: Study, me: int, u: int, seen: _Seen, asked: bool, wait: float) -> ReachCheck:
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
            return ReachCheck(what, "ok", said, facts=facts)
        if seen.closed and not wait:
            return ReachCheck(what, "warn", seen.problem, f"peers listen only while they run: {together}", facts)
        if not dials and not wait and "certificate" not in seen.problem:
            return ReachCheck(what, "warn", f"{seen.problem}; it dials, so this may not matter", together, facts)
        return ReachCheck(what, "fail", seen.problem, together if seen.closed else firewall, facts)
    facts |= {"netdp": seen.hello["netdp"], "format": seen.hello["format"], "clock_seconds": round(seen.offset, 3)}
    theirs = stated(seen.hello["oldest"], seen.hello["format"])
    if agreed((OLDEST, NEWEST), theirs) is None:
        said, way_out = refusal((OLDEST, NEWEST), theirs, seen.hello["netdp"]).split("; ")
        return ReachCheck(what, "fail", said, way_out, facts)
    clock = f"clock {seen.offset:+.2f} s (± {max(seen.doubt, 0.005):.2f})"
    said = f"{study.address(u)}, listed certificate, netdp {seen.hello['netdp']}, {clock}"
    off = max(0.0, abs(seen.offset) - seen.doubt)
    if off > DAY:
        return ReachCheck(what, "fail", said, "set the clocks (NTP): a day apart, certificates are not good", facts)
    if off > CLOCK:
        return ReachCheck(what, "warn", said, "set the clocks (NTP): ledgers and limits per year go by them", facts)
    if seen.hello["netdp"] != __version__:
        return ReachCheck(
            what, "warn", said, f"this is netdp {__version__}; the same version everywhere is safer", facts
        )
    if wait and not asked and not dials:
        way_out = "it must reach this party, and has not tried: let its doctor run at the same time, open the port here"
        return ReachCheck(what, "warn", said, way_out, facts)
    return ReachCheck(what, "ok", said, facts=facts)


SOON = 30
"""Days before the end of a certificate from which on it is mentioned."""

SLOW_DISK, LITTLE_SPACE = 0.1, 100 << 20
"""Seconds for a durable write, and bytes free, worth a word."""


def examine(
    home: Path,
    study_path: Path,
    data: Path | None = None,
    *,
    listen: str | None = None,
    wait: float = 0.0,
    tell: Tell | None = None,
) -> list[ReachCheck]:
    """All checks, in order; `tell` hears each as soon as it is made. Nothing in the home is changed."""
    if not 0 <= wait < float("inf"):
        raise InvalidValue(f"wait is a number of seconds, 0 or more, got {wait!r}")
    found: list[ReachCheck] = []

    def add(check: ReachCheck) -> None:
        found.append(check)
        if tell is not None:
            tell(check)

    identity = _keys(home, add)
    study = _study(study_path, add)
    me = _place(identity, study, add)
    _dates(identity, study, add)
    if study is not None and study.is_complete:
        _signed(study, study_path, add)
    if study is not None:
        _promise(study, add)
    entries = _ledger(home, identity, add)
    collects = study is not None and me == study.n  # a curator has no data, and nothing to lose
    if collects:
        add(ReachCheck("policy", "ok", "none is needed: the curator hands in no data"))
    elif study is not None and me is not None and entries is not None:
        _policy(home, study, me, entries, add)
    else:
        add(ReachCheck("policy", "warn", "not checked: it takes keys, a study that lists them, and a ledger in order"))
    if collects and data is not None:
        add(
            ReachCheck(
                "data", "fail", f"{data}: a curator has no data in a study", "leave --data out, as for `netdp peer run`"
            )
        )
    elif study is not None and not _code(study, add):
        add(ReachCheck("data", "warn", "not checked: the model that reads them is not here"))
    elif study is not None and data is not None:
        _data(study, data, add)
    elif data is None and not collects:
        add(ReachCheck("data", "warn", "not checked: no file was given", "give --data FILE"))
    _disk(home, study, add)
    if identity is not None and study is not None and me is not None:
        asyncio.run(look_around(identity, study, me, listen, wait, add))
    else:
        add(ReachCheck("neighbours", "warn", "not checked: it takes keys, and a study that lists them"))
    return found


# ── this machine ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _keys(home: Path, add: Tell) -> Identity | None:
    try:
        identity = Identity.load(home)
    except NetdpError as problem:
        add(ReachCheck("keys", "fail", str(problem)))
        return None
    mode = stat.S_IMODE(home.stat().st_mode)
    facts = {"party": identity.card.name, "fingerprint": identity.card.fingerprint}
    if mode & 0o077:
        said = f"of {identity.card.name}, for this user only; but others can look into {home} (mode {mode:04o})"
        add(ReachCheck("keys", "warn", said, f"chmod 700 {home}", facts))
    else:
        add(ReachCheck("keys", "ok", f"of {identity.card.name}, readable by this user only", facts=facts))
    return identity


def _study(path: Path, add: Tell) -> Study | None:
    try:
        study = Study.read(path)
    except NetdpError as problem:
        add(ReachCheck("study", "fail", str(problem)))
        return None
    facts = {"study": study.name, "hash": study.hash.hex(), "parties": study.n}
    if not study.is_complete:
        said = f'"{study.name}" is a draft; it lacks {"; ".join(study.lacking)}'
        add(ReachCheck("study", "fail", said, "netdp study complete", facts))
    else:
        add(ReachCheck("study", "ok", f'"{study.name}", {study.n} parties, {study.hash.hex()[:16]}…', facts=facts))
    return study


def _place(identity: Identity | None, study: Study | None, add: Tell) -> int | None:
    """This party's number in the study, if the study lists this very card."""
    if identity is None or study is None or not study.is_complete:
        return None
    name = identity.card.name
    if name not in study.everybody:
        add(ReachCheck("card", "fail", f"{name} is no party of this study", "have your card put in; all sign again"))
        return None
    me = study.index(name)
    if study.card(me) != identity.card:
        said = f"the study lists another card under the name {name}; were the keys made anew?"
        add(ReachCheck("card", "fail", said, "have the card in this home put in (card.json); all sign again"))
        return None
    as_whom = f"party {me} of {study.n}" if me < study.n else "its curator"
    add(ReachCheck("card", "ok", f"the study lists the card of this home, as {as_whom}", facts={"number": me}))
    return me


def _dates(identity: Identity | None, study: Study | None, add: Tell) -> None:
    """Certificates of everybody: one line for each that ends soon or is not good today, else one for all."""
    cards = [] if identity is None else [identity.card]
    if study is not None:
        cards += [study.card(u) for u, one in enumerate(study.participants) if one.signing]
    cards = list(dict.fromkeys(cards))
    now = datetime.datetime.now(datetime.UTC)
    for card in cards:
        end = card.valid[1]
        if problem := card.date_problem(now):
            add(ReachCheck("certificates", "fail", problem, facts={"party": card.name}))
        elif (left := (end - now).days) < SOON:
            said = f"the certificate of {card.name} ends in {left} day{'' if left == 1 else 's'}, on {end:%Y-%m-%d}"
            way_out = "it needs new keys (netdp peer init in a new folder), and the next study its new card"
            add(ReachCheck("certificates", "warn", said, way_out, {"party": card.name, "days": left}))
    good = [card.valid[1] for card in cards if card.date_problem(now) is None and (card.valid[1] - now).days >= SOON]
    if good:
        said = f"{len(good)} of {len(cards)} good for {SOON} days and more, until {min(good):%Y-%m-%d} at least"
        add(ReachCheck("certificates", "ok", said, facts={"until": f"{min(good):%Y-%m-%d}"}))


def _signed(study: Study, path: Path, add: Tell) -> None:
    try:
        wrong = signatures.problems(study, signatures.read_all(path))
    except NetdpError as problem:
        add(ReachCheck("signatures", "fail", str(problem)))
        return
    if wrong:
        said = "; ".join(f"{name}: {problem}" for name, problem in list(wrong.items())[:5])
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        way_out = f"collect the missing ones in {signatures.folder(path)} (netdp study verify)"
        add(ReachCheck("signatures", "fail", said + more, way_out, {"missing": sorted(wrong)}))
    else:
        add(ReachCheck("signatures", "ok", f"all {len(study.everybody)} parties have signed exactly this study"))


def _promise(study: Study, add: Tell) -> None:
    terms = study.privacy
    try:
        epsilon = study.check_promise()
    except NetdpError as problem:
        add(ReachCheck("promise", "fail", str(problem)))
        return
    looking = terms.colluders + study.running.has_curator
    who = study.running.who(looking)
    said = (
        f"certified: {who} learn{'s' if looking == 1 else ''} at most epsilon {readable(epsilon)}, promised "
        f"{terms.epsilon:g}, at delta = {terms.delta:g}"
    )
    add(ReachCheck("promise", "ok", said, facts={"epsilon": epsilon, "delta": terms.delta}))


def _ledger(home: Path, identity: Identity | None, add: Tell) -> list[Entry] | None:
    path = home / "peer.db"
    if not path.exists():
        add(ReachCheck("ledger", "ok", "none yet: nothing was revealed by this party", facts={"entries": 0}))
        return []
    try:
        with Store.open(path, read_only=True) as store:
            checked = store.verify(None if identity is None else identity.card)
            entries = store.entries()
    except NetdpError as problem:
        add(ReachCheck("ledger", "fail", str(problem), "docs/howto/deploy.md says what may be restored"))
        return None
    count = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    if any(not seam.complete for seam in checked.seams):
        said = f"in order, {count}, but restored from a backup of {checked.seams[-1].taken}: what was spent since may be missing"
        way_out = f"netdp ledger admit STUDY.toml --home {home}, then netdp ledger admit --complete --home {home}"
        add(ReachCheck("ledger", "fail", said, way_out, {"entries": len(entries)}))
        return entries
    add(ReachCheck("ledger", "ok", f"in order, {count} so far", facts={"entries": len(entries)}))
    return entries


def _policy(home: Path, study: Study, me: int, entries: list[Entry], add: Tell) -> None:
    path = home / "policy.toml"
    verdicts: list[PolicyDecision] = []
    try:
        policy = OwnerPolicy.read(path)
        verdicts = policy.verdicts(study, entries, me)
        policy.check(study, entries, me)
    except NetdpError as problem:
        sentence = str(problem).removesuffix("; nothing was sent")
        table = ["", *(f"      {line}" for line in verdict_lines(verdicts))] if verdicts else []
        way_out = f"change {path}, or do not take part"
        facts = {"verdicts": [verdict.to_dict() for verdict in verdicts]}
        add(ReachCheck("policy", "fail", sentence + "\n".join(table), way_out, facts))
        return
    tightest = max(verdicts, key=lambda one: one.together / one.limit.epsilon if one.limit.epsilon else 0.0)
    said = (
        f"allows it; tightest limit, {tightest.words}: {readable(tightest.together)} of {tightest.limit.epsilon:g} "
        f"(delta = {policy.delta:g})"
    )
    add(ReachCheck("policy", "ok", said, facts={"verdicts": [verdict.to_dict() for verdict in verdicts]}))


def _code(study: Study, add: Tell) -> bool:
    """Whether the module of a model that is code is here, and the agreed one. Nothing of it runs."""
    if not isinstance(study.task, Training) or not study.task.is_code:
        return True
    try:
        path = study.task.check_source()
    except NetdpError as problem:
        add(ReachCheck("code", "fail", str(problem), "put the agreed file there, and read it before you do"))
        return False
    add(ReachCheck("code", "ok", f"{path} is the module that was agreed upon ({study.task.source[:16]}…)"))
    return True


def _data(study: Study, path: Path, add: Tell) -> None:
    """Whether the task can read the file. No value of it is shown: people send these lines to each other."""
    try:
        columns = study.task.rows(path).shape[1]
    except NetdpError as problem:
        if isinstance(problem, FileFormatError) and problem.line is None:  # about the file, not about what is in it
            add(ReachCheck("data", "fail", str(problem), "give --data, the file that the peer will read"))
            return
        # which line, and nothing that stands in it or follows from how many there are
        line = re.match(re.escape(str(path)) + r":\d+", str(problem))
        where = line[0] if line else str(path)
        sentence = f"{where}: the study does not take this file as it is (what is wrong is not shown here)"
        add(
            ReachCheck(
                "data", "fail", sentence, "`netdp peer run` says what is wrong, on this screen only; correct the file"
            )
        )
        return
    numbers = f"{columns} number{'' if columns == 1 else 's'}"
    add(
        ReachCheck(
            "data", "ok", f"{path} fits the question; it becomes {numbers}, none is shown", facts={"numbers": columns}
        )
    )


def _disk(home: Path, study: Study | None, add: Tell) -> None:
    """A few durable writes, and the space left."""
    times = []
    try:
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            for _ in range(5):
                file.write(b"\0" * 4096)
                file.flush()
                began = time.perf_counter()
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
        room = os.statvfs(home)
    except OSError as problem:
        way_out = f"give this user the right to write there, and room (df {home})"
        add(ReachCheck("disk", "fail", f"{home} cannot be written: {problem.strerror or problem}", way_out))
        return
    usual, free = statistics.median(times), room.f_bavail * room.f_frsize
    facts = {"fsync_seconds": round(usual, 6), "free_bytes": free}
    # every attempt writes its numbers, of gossip those of all rounds: what is published, what is kept, and the journal
    numbers = 0 if study is None else study.task.dimension * (1 + getattr(study.settings, "rounds", 0))
    needed = (1 << 20) + 32 * numbers * (1 if study is None else study.privacy.attempts)
    said = f"a durable write takes {1000 * usual:.3g} ms, {_bytes(free)} free"
    if free < needed:
        add(ReachCheck("disk", "fail", f"{said}, {_bytes(needed)} may be needed", "make room", facts))
    elif free < LITTLE_SPACE:
        add(ReachCheck("disk", "warn", said, "make room: a full disk ends the peer", facts))
    elif usual > SLOW_DISK:
        add(ReachCheck("disk", "warn", f"{said}: slow", "a local disk is better than a network share", facts))
    else:
        add(ReachCheck("disk", "ok", said, facts=facts))


def _bytes(size: float) -> str:
    """A size for people.

    >>> _bytes(5 << 20), _bytes(3 << 30)
    ('5.0 MB', '3 GB')
    """
    return f"{size / (1 << 30):,.0f} GB" if size >= 1 << 30 else f"{size / (1 << 20):,.1f} MB"


def as_lines(check: ReachCheck) -> list[str]:
    """A check for people: one line, and a second one with the way out."""
    said = f"{check.status:<5} {check.what:<13} {check.said}"
    return [said, *([f"      → {check.way_out}"] if check.way_out and check.status != "ok" else [])]
