"""Mutated messages against a live peer: what a neighbour with a valid certificate, and strangers without one, can do to it.

The victim is a real process with real links; the attacker holds the keys of *all* other parties, speaks for all of its
neighbours, and starts from messages that would be right (`Forge`), with some field made wrong: kinds, attempts, other parties' step
numbers, bodies of another size or shape, NaN and infinity, whole numbers at the edge, bad signatures, lengths of a gigabyte
that are not there. Byte by byte mutations come in frames of their own, because one broken message spoils its frame.

`fuzz` counts what it sends, asks the victim what it heard, took and rejected and why, and looks at its memory.
`python benchmarks/fuzz.py --messages 1000000` does it at length; `test_fuzz.py` in short.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import ssl
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import crew
import matrix
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from netdp.errors import InvalidValue, NetdpError
from netdp.peers import peer as peers
from netdp.peers import wire_pb2 as wire
from netdp.peers.exchange import Reason
from netdp.peers.identity import Identity, certificate, pem
from netdp.peers.launch import PRELOADED, party_process
from netdp.peers.messages import (
    Announce,
    Done,
    Hello,
    Item,
    ItemKind,
    Key,
    Pull,
    decode,
    encode,
    roster_body,
    roster_digest,
    signed_bytes,
)
from netdp.peers.transport.base import Limits
from netdp.peers.transport.grpc import GrpcTransport

TOGETHER = 250
"""Messages in a frame."""
GROWTH = 16.0
"""Megabytes of memory that a victim may use more in the end than after a tenth: caches fill, allocators keep a reserve."""
EDGES = (0, 1, 2, 3, 4, 7, 8, 9, 10, 63, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1)
NUMBERS = [
    struct.pack("<d", value) for value in (float("nan"), float("inf"), float("-inf"), 1e308, -0.0, 5e-324, 0.5)
] + [struct.pack("<q", value) for value in (2**63 - 1, -(2**63), 2**62, -1, 0)]


class Forge:
    """Messages as an attacker makes them: right ones, and right ones with something wrong."""

    def __init__(self, one, victim, seed):
        self.one, self.study, self.victim = one, one.study, victim
        self.sender = 0  # over whose link the next message goes
        self.chance = random.Random(seed)
        others = [u for u in range(len(self.study.everybody)) if u != victim]
        self.keys = {u: Identity.load(one.home(u)) for u in others}
        self.everybody = tuple(range(self.study.n))
        self.longest, self.rounds = self.study.running.longest(), self.study.running.most_rounds()

    def signed(self, key, body):
        signer = self.keys.get(key.author)
        if signer is None:
            return Item(key, body, self.chance.randbytes(64))
        return Item(key, body, signer.sign(signed_bytes(self.study.hash, key, body)))

    def start(self):
        """What makes the victim's first attempt begin: the votes of all others."""
        return [
            self.signed(Key(ItemKind.VOTE, 1, u), roster_body(self.everybody)) for u in self.keys if u < self.study.n
        ]

    def body(self, kind):
        chance, d = self.chance, self.study.task.dimension
        long = self.longest.get(kind, 50)
        match chance.randrange(16):
            case 0:
                return b""
            case 1:
                return roster_body(self.everybody)
            case 2:
                return roster_body(sorted(chance.sample(range(8), chance.randrange(1, 5))))
            case 3:
                return roster_digest(self.everybody) + chance.randbytes(chance.choice([0, 1, 4 * d, 8 * d]))
            case 4:
                return chance.choice(NUMBERS) * d
            case 5:
                return chance.choice(NUMBERS) * chance.choice([d + 1, max(d - 1, 0), 2 * d, 100])
            case 6:
                return chance.randbytes(chance.randrange(long + 50))
            case 7:
                return chance.choice(NUMBERS)[:7] * d
            case 8 | 9:
                return (chance.choice(NUMBERS) * (long // 8 + 1))[:long]
            case 10 | 11:
                return chance.randbytes(long)
            case _:
                return (struct.pack("<q", chance.randrange(-(10**6), 10**6)) * (long // 8 + 1))[:long]

    def key(self):
        chance = self.chance
        kind = chance.choice(list(ItemKind) if chance.random() < 0.1 else list(self.longest))
        author = self.sender if chance.random() < 0.7 else chance.choice(self.everybody)
        step = 0 if kind.is_signed else chance.choice([0, 1, 2, 3, chance.randint(0, self.rounds), self.rounds])
        usual = Key(kind, 1, author, step)
        match chance.randrange(9):
            case 0:
                return usual._replace(attempt=chance.choice(EDGES))
            case 1:
                return usual._replace(author=chance.choice(EDGES))
            case 2:
                return Key(usual[0], usual[1], usual[2], chance.choice(EDGES))
            case _:
                return usual

    def message(self):
        """One message that can be read, and is most likely wrong."""
        chance, study = self.chance, self.study.hash
        kind = chance.random()
        if kind < 0.8:
            key = self.key()
            body = self.body(key.kind)
            if key.kind.is_signed and chance.random() < 0.15:
                return self.signed(key, body)
            hops = chance.choice(EDGES)
            return Item(key, body, chance.randbytes(chance.choice([0, 1, 63, 64, 64, 65])), hops)
        keys = tuple(self.key() for _ in range(chance.randrange(5)))
        if kind < 0.85:
            return Hello(
                chance.choice([study, bytes(32), b"", chance.randbytes(32)]), "?" * chance.randrange(9), keys, 1
            )
        if kind < 0.92:
            return Announce(keys)
        return Pull(keys) if kind < 0.97 else Done(chance.choice(EDGES), chance.randbytes(chance.choice([0, 32])))

    def broken(self):
        """Bytes that are no frame, or hardly one."""
        chance = self.chance
        frame = bytearray(encode([self.message()]))
        match chance.randrange(8):
            case 0:
                frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            case 1:
                del frame[chance.randrange(len(frame)) :]
            case 2:
                place = chance.randrange(len(frame))
                frame[place:place] = chance.randbytes(chance.randrange(1, 20))
            case 3:
                frame += frame[: chance.randrange(len(frame))]
            case 4:  # a gigabyte is announced, and does not come
                return b"\x0a" + b"\x80\x80\x80\x80\x04" + bytes(frame)
            case 5:  # the same one level deeper: the body of an item
                return b"\x0a\x07\x12\x05\x12" + b"\x80\x80\x80\x80\x04"
            case 6:  # a kind of item that does not exist
                odd = wire.Frame()
                odd.messages.add().item.key.kind = chance.choice([0, 1])
                raw = odd.SerializeToString()
                return raw.replace(b"\x08\x01", b"\x08" + bytes([chance.choice([0, 12, 42, 99])]))
            case _:
                return chance.randbytes(chance.randrange(200))
        return bytes(frame)

    def frame(self, most, alone=0.05):
        """How many messages, and the frame: many that can be read, or one that is broken."""
        if self.chance.random() < alone * TOGETHER / (1 + alone * TOGETHER):
            return 1, self.broken()
        size = min(TOGETHER, most)
        return size, encode([self.message() for _ in range(size)])


# ── the victim ────────────────────────────────────────────────────────────────────────────────────────────────────────


def victim_process(home, study, data, events, record=None):
    """A party that bears any amount of nonsense, and tells what it counted, whenever its home holds the file `ask`."""
    from netdp.peers import party as parties

    if (bears := Path(home) / "bears").exists():
        parties.BEARABLE = int(bears.read_text())
    crew.trust(home)
    parties.Party.may_leave = property(lambda party: False)  # it stays, whatever its neighbours say
    run = peers.Peer.run

    async def counting(peer):
        async def tell():
            ask = Path(home) / "ask"
            while True:
                await asyncio.sleep(0.02)
                if ask.exists():
                    question = ask.read_text()
                    party = peer.party
                    told = {
                        "question": question,
                        "heard": party.heard,
                        "taken": party.taken,
                        "rejected": dict(party.rejections),
                    }
                    told |= {"held": len(party._held), "outcome": party.outcome is not None}
                    answer = Path(home) / "answer.new"
                    answer.write_text(json.dumps(told))
                    answer.rename(Path(home) / "answer")

        task = asyncio.ensure_future(tell())
        try:
            return await run(peer)
        finally:
            task.cancel()

    peers.Peer.run = counting
    party_process(home, study, data, events, record)


def memory(process):
    """Resident memory in megabytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(process)


@dataclass
class Fuzzed:
    """What a victim bore."""

    row: str
    messages: int = 0
    frames: int = 0
    readable: int = 0
    """Messages in frames that can be read, and frames that cannot."""
    heard: int = 0
    taken: int = 0
    rejected: Counter = field(default_factory=Counter)
    strangers: int = 0
    before: float = 0.0
    after: float = 0.0
    held: int = 0
    seconds: float = 0.0

    @property
    def words(self):
        """In one line."""
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.rejected.items()))
        return (
            f"{self.messages:,} messages in {self.frames:,} frames, {self.seconds:.1f} s; heard {self.heard:,}, taken "
            f"{self.taken:,}, rejected {sum(self.rejected.values()):,} ({reasons}); {self.strangers} strangers; "
            f"memory {self.before:.1f} → {self.after:.1f} MB"
        )

    def check(self):
        """Every message was counted, once, under a known reason; most were rejected; memory stayed."""
        assert self.heard == self.readable, f"{self.readable} messages could be heard, {self.heard} were"
        assert self.heard == self.taken + sum(self.rejected.values()), (self.heard, self.taken, self.rejected)
        assert set(self.rejected) <= set(Reason), self.rejected
        assert sum(self.rejected.values()) > self.heard / 2
        assert self.after <= self.before + GROWTH, f"memory grew from {self.before:.1f} to {self.after:.1f} MB"


class Victim:
    """A live peer, alone with its attacker; everybody else is away."""

    def __init__(self, folder, row, *, bears=10**12, **options):
        self.one = matrix.settled(folder, row, **({"gather": 3000.0, "patience": 3000.0} | options))
        self.me = self.one.study.n - 1  # the smaller number dials
        self.attackers = [v for v in self.one.study.neighbours(self.me) if v < self.me]
        self.home = self.one.home(self.me)
        (self.home / "bears").write_text(str(bears))
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOADED))
        self.events = []
        self._questions = 0

    def __enter__(self):
        ours, theirs = self.context.Pipe(duplex=False)
        name = self.one.study.names[self.me]
        arguments = (str(self.home), str(self.one.path), str(self.one.data[name]), theirs)
        self.process = self.context.Process(target=victim_process, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self._pipe = ours
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()
        self._pipe.close()

    def hear(self):
        """What the victim reported since."""
        with contextlib.suppress(EOFError, OSError):
            while self._pipe.poll():
                self.events.append(json.loads(self._pipe.recv_bytes()))
        return self.events

    def check_alive(self):
        """A victim that died is what all this looks for."""
        self.hear()
        if self.process.exitcode is not None:
            raise AssertionError(f"the victim died (exit {self.process.exitcode}): {self.events[-3:]}")

    async def counts(self, until=lambda told: True):
        """Ask the victim until what it says is enough."""
        ask, answer = self.home / "ask", self.home / "answer"
        async with asyncio.timeout(300):
            while True:
                self._questions += 1
                ask.write_text(str(self._questions))
                while not answer.exists() or json.loads(answer.read_text())["question"] != str(self._questions):
                    self.check_alive()
                    await asyncio.sleep(0.005)
                if until(told := json.loads(answer.read_text())):
                    return told

    def transport(self, attacker, receiver):
        """Links in the name of a neighbour."""
        study, identity = self.one.study, Identity.load(self.one.home(attacker))
        addresses = [study.address(u) for u in range(len(study.everybody))]
        return GrpcTransport(
            identity, attacker, study.cards, [self.me], addresses, receiver, Limits(frame=1 << 26), listen="127.0.0.1:0"
        )


class Ears:
    """A receiver that hears nothing."""

    def linked(self, peer):
        pass

    def lost(self, peer, reason):
        pass

    async def received(self, peer, frame):
        pass


async def send(transport, victim, frame):
    """Until the link has taken it."""
    while True:
        try:
            await transport.send(victim.me, frame)
            return
        except NetdpError:
            victim.check_alive()
            await asyncio.sleep(0.01)


async def fuzz(victim, count, seed, show=lambda words: None):
    """Send so many mutated messages; what the victim says of them."""
    found = Fuzzed(victim.one.study.settings.kind)
    forge, began = Forge(victim.one, victim.me, seed), time.monotonic()
    transports = [victim.transport(attacker, Ears()) for attacker in victim.attackers]
    try:
        for transport in transports:
            await transport.start()
            hello = [Hello(victim.one.study.hash, "", ()), *forge.start()]
            await send(transport, victim, encode(hello))
            found.readable += len(hello)
        warm = count // 10
        for number in range(10**9):
            if found.messages >= count:
                break
            transport = transports[number % len(transports)]
            forge.sender = transport.me
            size, frame = forge.frame(count - found.messages)
            await send(transport, victim, frame)
            try:
                found.readable += len(decode(frame))
            except InvalidValue:
                found.readable += 1
            found.messages += size
            found.frames += 1
            if not found.before and found.messages >= warm:  # what it holds for good, it holds by now
                await victim.counts(lambda told: told["heard"] >= found.readable)
                found.before = memory(victim.process.pid)
            if found.frames % 2000 == 0:
                show(f"{found.messages:,} messages, {memory(victim.process.pid):.1f} MB")
        found.strangers = await strangers(victim)
        told = await victim.counts(lambda told: told["heard"] >= found.readable)
        found.after = memory(victim.process.pid)
    finally:
        for transport in transports:
            await transport.close()
    found.heard, found.taken, found.held = told["heard"], told["taken"], told["held"]
    found.rejected, found.seconds = Counter(told["rejected"]), time.monotonic() - began
    return found


# ── strangers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def strangers(victim):
    """Connections of those who are no party: no certificate, their own, a neighbour's without its key, no TLS at all.

    None of them may get as far as a byte of an answer to what it sends; how many tried.
    """
    host, port = victim.one.study.address(victim.me).rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        contexts = [context for _ in range(3) for context in _contexts(victim, stack)]
        for context in contexts:
            for request in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), os.urandom(300), gigabyte()):
                await _knock(host, int(port), context, request)
    return 3 * len(contexts)


def _contexts(victim, stack):
    """Ways to call: without TLS, without a certificate, with a stranger's, with one that expired long ago."""
    import datetime
    import tempfile

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    yield None
    for number, when in enumerate((None, "now", datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC))):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if when is not None:
            key = ec.generate_private_key(ec.SECP256R1())
            made = certificate("p1", key, now=None if when == "now" else when)
            file = folder / f"{number}.pem"
            private = key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            file.write_bytes(private + pem(made))
            context.load_cert_chain(file)
        yield context


async def _knock(host, port, context, request):
    answer = b""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(5):
            options = {} if context is None else {"ssl": context, "server_hostname": "netdp-peer"}
            reader, writer = await asyncio.open_connection(host, port, **options)
            try:
                writer.write(request)
                await writer.drain()
                answer = await reader.read(1 << 16)
            finally:
                writer.transport.abort()
    assert b"netdp" not in answer, answer


# ── a gigabyte that is announced below the frame: HTTP/2 by hand ──────────────────────────────────────────────────────


def gigabyte():
    """A call that announces a message of a gigabyte: the preface, empty settings, headers, and five bytes of data."""

    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def text(value):
        return bytes([len(value)]) + value

    path = b"/netdp.Peers/Link"
    headers = b"\x83\x87" + b"\x04" + text(path) + b"\x01" + text(b"netdp-peer")
    for name, value in ((b"content-type", b"application/grpc"), (b"te", b"trailers")):
        headers += b"\x00" + text(name) + text(value)
    announced = b"\x00" + (1 << 30).to_bytes(4, "big")
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, headers) + frame(0, 0, 1, announced + bytes(100))
    )  # fmt: skip


__all__ = ["Ears", "Forge", "Fuzzed", "Victim", "fuzz", "gigabyte", "send", "strangers"]
