"""The life of a peer under its owner's eyes: what it reports goes to progress, log, status file, trace and metrics; signals end it.

**What a signal does.** SIGTERM and Ctrl-C ask for an orderly end. From that moment the peer hears nothing more and so says and
draws nothing new: no vote, no contribution, no cost that was not there before. What it had said already is given a moment to
leave, links are closed, the files are closed. Whether it had published anything is told, and that the same command goes on
from there. A second signal ends the process at once. That loses nothing either: what is published is on the disk before it is
sent, so to be killed at any moment is no worse; the neighbours only notice later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.peers.followed import Followers, contributed

if TYPE_CHECKING:
    from netdp.peers.log import Log
    from netdp.peers.peer import Peer
    from netdp.peers.status import Standing
    from netdp.peers.trace import Trace

    from .peer_words import Progress

EVERY = 1.0
"""Seconds between two looks at how far the party is, for the status file."""
_OWN = ("peer.db", "policy.toml", "status.json", "trace.jsonl", "traced-study.toml", "card.")


class Watchers(Followers):
    """Everybody who hears what a peer reports: its files, and whoever sits before the screen."""

    def __init__(self, progress: Progress, standing: Standing, log: Log | None, trace: Trace | None = None) -> None:
        super().__init__(standing, log, trace)
        self.progress = progress

    def __call__(self, event: dict[str, Any]) -> None:
        self.progress(event)
        super().__call__(event)

    def begin(self, peer: Peer) -> None:
        """The peer is made: say who it is."""
        self.progress.peer = peer
        super().begin(peer)


def live(
    peer: Peer, watchers: Watchers, stopped: list[int], stay: float | None, earlier: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, int]:
    """Run a peer to its end, for `stay` seconds at most, stopped in order by signals; closes its folder.

    Returns its outcome, if there is one by then (or `earlier`, that of a run before), and how often it contributed.
    """
    import asyncio

    from netdp.peers.peer import Stopped
    from netdp.peers.up import ANSWERED, ENDED, FAILED

    async def life() -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            stopped.append(number)
            watchers({"event": "stopping", "signal": number, "contributed": contributed(peer)})
            watchers.progress.say("stopping in order; once more ends it at once")
            for one in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(one)
                signal.signal(one, at_once)
            peer.stop()

        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, end, int(one))
        looking = asyncio.ensure_future(look())
        try:
            async with asyncio.timeout(stay):
                return await peer.run()
        finally:
            looking.cancel()

    async def look() -> None:
        while True:
            watchers.refresh(peer)
            await asyncio.sleep(EVERY)

    told: dict[str, Any] | None = None
    reason: str | None = None
    code, entries = FAILED, 0
    before = signal.getsignal(signal.SIGINT)
    try:
        try:
            told = asyncio.run(life())
        except TimeoutError:
            if stay is None:
                raise
            told = peer.outcome
        except (Stopped, KeyboardInterrupt, asyncio.CancelledError):
            told = peer.outcome
        if told is None or not told["ok"]:
            told = earlier or told
        if told is not None:
            code = ANSWERED if told["ok"] else ENDED
        else:
            code = 128 + (stopped[0] if stopped else signal.SIGINT)
    except BaseException as problem:
        reason = str(problem)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        try:
            with contextlib.suppress(Exception):  # the file may be what failed; the reason is on its way
                entries = contributed(peer)
            watchers.end(code, entries, reason)  # as long as the lock of the home is ours
        finally:
            peer.store.close()
    return told, entries


def at_once(number: int, frame: object) -> None:
    """The second signal: end here. What was published is on the disk; nothing else is worth waiting for."""
    with contextlib.suppress(OSError):
        os.write(
            2, b"\nnetdp: ended at once; what was published is written down, the same command goes on from there.\n"
        )
    os._exit(128 + number)


@contextlib.contextmanager
def signals() -> Iterator[list[int]]:
    """Let SIGTERM end the program as Ctrl-C does; yields the signals that came, for the exit status."""
    came: list[int] = []

    def end(number: int, frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def stopped_words(entries: int | None, links: int, patience: float, steps: int | None = None) -> str:
    """What an owner wants to know after a stop: was anything published, who waits, what to do.

    >>> stopped_words(1, 1, 60.0).split(";")[1].split(".")[0]
    ' published once so far, which is written down with its cost'
    >>> stopped_words(1, 1, 60.0, steps=37).split(";")[1].split(",")[0]
    ' published 37 steps so far'
    >>> stopped_words(0, 1, 60.0).split(",")[1].split(",")[0]
    ' but the others know that this party would take part'
    """
    if entries is None:
        wrote = "this start published nothing"
    elif entries:
        from netdp.peers.peer import published_words

        times = published_words(entries, steps).removesuffix(" so far")
        wrote = f"published {times} so far, which is written down with its cost"
    else:
        wrote = "nothing was published so far"
        if links:
            wrote += f", but the others know that this party would take part, and wait up to {patience:g} s"
    return f"stopped; {wrote}. Start the same command again, and it goes on from where it was."


def check_apart(home: Path, option: str, path: Path) -> None:
    """Refuse to append to a file that the home lives by: a line in the ledger would be damage."""
    from netdp.errors import Refused

    inside, place = home.resolve(), path.resolve()
    if place.parent == inside / "keys" or (place.parent == inside and place.name.startswith(_OWN)):
        raise Refused(f"{option} {path} is a file that {home} lives by, and would be damaged; give another name")


def make_log(where: str | None, home: Path) -> Log | None:
    """The log that `--log` asks for: a file, or "-" for standard error."""
    from netdp.peers.log import Log, RotatingFile, Stream

    if where is None:
        return None
    if where != "-":
        check_apart(home, "--log", Path(where))
    return Log(Stream(sys.stderr) if where == "-" else RotatingFile(Path(where)))
