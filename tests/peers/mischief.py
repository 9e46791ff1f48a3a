"""What can befall a party's process besides death: it stops, its disk is full, its clock jumps, its messages go astray.

`crew.orders` writes what is to happen, `inflict` arranges it inside the process before the party starts. Links are
encrypted and keep order, so a network alone can only delay, or break a link with all that is on it; frames that vanish,
come twice or change places are the work of a hostile neighbour, and are put between the party and its transport.

    ["pause word", 1, 5.0]       before its first word in an attempt it stops (SIGSTOP) for five seconds
    ["full spend", 1]            from the first contribution on, no byte fits on the disk; there is room again soon
    ["jump clock", 3600.0]       the wall clock shows an hour more from the third send on
    ["swallow send", 0.1, 7]     a tenth of the frames vanish, by the seed 7; ["double send", …], ["shuffle send", …] alike
    ["delay send", 0.05, 7]      every frame waits up to so many seconds
    ["mark word", 1]             the file `mark` tells the test that the party is about to say something
    ["hold send", ["p1"]]        it says nothing before these have heard the votes of those who are to go (`crew.Crew.foresee`)
    ["lie contribution", "double"]   every second neighbour is told another contribution, signed like the first; or any other kind
    ["lie reveal", "withhold"]   no reveal of its own leaves
    ["boast"]                    its contribution is a quarter of the modulus too large, and the same to all
    ["gone"]                     this life is none: the party stays away for good
"""

import asyncio
import datetime
import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from netdp.families.masked.peer import MaskedRunning
from netdp.families.masked.protocol import from_bytes, to_bytes
from netdp.peers import identity
from netdp.peers.ledger.database import StoreFailed
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, decode, encode, signed_bytes
from netdp.peers.outcome import ENDED
from netdp.peers.study import Study
from netdp.peers.transport.grpc import GrpcTransport

FILLER = "filler"
ROOM_AGAIN = 0.7
"""Seconds after which a full disk has room again."""


def inflict(home, moment, *details):
    """Arrange a mishap; False if it is none of those above."""
    if moment == "gone":
        os._exit(ENDED)
    what, _, where = moment.partition(" ")
    if what == "pause":
        _at(home, where, details[0], lambda: _stop(details[1]))
    elif moment == "hold send":
        _hold([Path(home).parent / name / "heard" for name in details[0]])
    elif what == "mark":
        _at(home, where, details[0], lambda: (Path(home) / "mark").touch(), 0.1)
    elif moment == "jump clock":
        _at(home, "send", 3, lambda: _jump(details[0]))
    elif what == "full":
        _fill_at(Path(home), where, *details)
    elif where == "send" and what in ("swallow", "double", "shuffle", "delay"):
        _interpose(what, details[0], random.Random(f"{details[1]} {Path(home).name}"))
    elif what == "lie":
        _lie(Path(home), ItemKind[where.upper()], details[0])
    elif moment == "boast":
        _boast()
    else:
        return False
    return True


def says_something(transport, frame):
    """Whether a frame holds an own item that follows from the party's data: anything but a vote."""
    return any(
        isinstance(message, Item) and message.key.kind != ItemKind.VOTE and message.key.author == transport.me
        for message in decode(frame)
    )


def _at(home, where, k, act, then=0.0):
    """Act before the k-th frame, or the k-th word, leaves; then wait a moment."""
    inner, left = GrpcTransport.send, k

    async def send(transport, peer, frame):
        nonlocal left
        if where == "send" or says_something(transport, frame):
            left -= 1
            if left == 0:
                act()
                await asyncio.sleep(then)
        await inner(transport, peer, frame)

    GrpcTransport.send = send


def _hold(marks):
    """Send nothing before all these files are there."""
    inner = GrpcTransport.send

    async def send(transport, peer, frame):
        while not all(mark.exists() for mark in marks):
            await asyncio.sleep(0.02)
        await inner(transport, peer, frame)

    GrpcTransport.send = send


def _stop(seconds):
    """Stop this process as it stands; a shell wakes it."""
    subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


def _jump(seconds):
    """Another date for all that asks: certificates, entries of the ledger, what is told to neighbours."""
    now, moment = time.time, datetime.datetime

    class Moment(moment):
        @classmethod
        def now(cls, tz=None):
            return moment.now(tz) + datetime.timedelta(seconds=seconds)

    time.time = lambda: now() + seconds
    identity.datetime = type("datetime", (), {"datetime": Moment, "UTC": datetime.UTC, "timedelta": datetime.timedelta})
    from netdp.peers.ledger import entries

    entries.datetime = Moment


# ── a full disk ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _fill_at(home, where, k=1, room_again=ROOM_AGAIN):
    """At the k-th write of a kind the disk is full: really, if the home is a small disk of its own, else by a limit."""
    name = {"vote": "put_vote", "spend": "spend", "result": "set_result", "once": "once"}[where]
    inner, left = getattr(Store, name), k

    def write(*arguments, **named):
        nonlocal left
        left -= 1
        if left == 0:
            _fill(home, room_again)
        try:
            return inner(*arguments, **named)
        except StoreFailed:
            with open(home.parent / "full", "a") as marks:  # elsewhere: here is no room
                marks.write(f"{home.name} {where}\n")
            raise
        finally:
            if left == 0:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    setattr(Store, name, write)


def _fill(home, room_again):
    if not os.path.ismount(home):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        return
    block = 1 << 20
    with open(home / FILLER, "ab", buffering=0) as filler:
        while block:
            try:
                while filler.write(bytes(block)) == block:
                    pass
            except OSError:
                block //= 2
    subprocess.Popen(["sh", "-c", f"sleep {room_again}; rm -f '{home / FILLER}'"])


# ── frames that go astray ─────────────────────────────────────────────────────────────────────────────────────────────


def _interpose(what, amount, chance):
    """Let frames vanish, come twice, change places or wait."""
    inner = GrpcTransport.send
    kept = {}

    async def send(transport, peer, frame):
        if what == "delay":
            await asyncio.sleep(chance.uniform(0, amount))
        elif chance.random() < amount:
            if what == "swallow":
                return
            if what == "double":
                await inner(transport, peer, frame)
            if what == "shuffle" and peer not in kept:
                kept[peer] = frame  # goes after the next one, or after a while
                asyncio.get_running_loop().call_later(0.2, lambda: asyncio.ensure_future(late(transport, peer)))
                return
        await inner(transport, peer, frame)
        await late(transport, peer)

    async def late(transport, peer):
        frame = kept.pop(peer, None)
        if frame is not None:
            try:
                await inner(transport, peer, frame)
            except Exception:  # the link is gone, and the frame with it
                return

    GrpcTransport.send = send


# ── lies ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lie(home, kind, how):
    """Own items of a kind do not leave as they are."""
    inner, me = GrpcTransport.send, identity.Identity.load(home)
    study = Study.read(home.parent / "study.toml").hash

    def other(peer, message):
        if not isinstance(message, Item) or message.key.kind != kind or message.key.author != own:
            return message
        if how == "withhold":
            return None
        if peer % 2:
            return message
        body = message.body[:-1] + bytes([message.body[-1] ^ 1])
        return Item(message.key, body, me.sign(signed_bytes(study, message.key, body)))

    own = Study.read(home.parent / "study.toml").index(me.card.name)

    async def send(transport, peer, frame):
        said = [one for message in decode(frame) if (one := other(peer, message)) is not None]
        await inner(transport, peer, encode(said))

    GrpcTransport.send = send


def _boast():
    inner = MaskedRunning.draw

    def draw(running, desk, attempt, roster):
        body, secret = inner(running, desk, attempt, roster)
        q, d = running.protocol().q, running.study.task.dimension
        numbers = (from_bytes(body[32:], q, d) + np.uint64(q // 4)) & np.uint64(q - 1)
        return body[:32] + to_bytes(numbers, q), secret

    MaskedRunning.draw = draw


def reroute(routes):
    """Dial some neighbours somewhere else: through a proxy of the test. routes: number → address."""
    inner = GrpcTransport.__init__

    def made(transport, *arguments, **named):
        inner(transport, *arguments, **named)
        for peer, address in routes.items():
            transport._addresses[int(peer)] = address

    GrpcTransport.__init__ = made
