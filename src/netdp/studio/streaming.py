"""One answer after another as lines of JSON: how far it is, then the answer, or a sentence why there is none.

Work runs in a thread and tells its progress. When the browser goes away, because its user has moved the slider on, the next word of
progress ends the work: nobody waits for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from netdp.errors import NetdpError
from netdp.numerics.arrays import Progress

logger = logging.getLogger("netdp.studio")
EVERY = 0.15
"""Seconds between two words of progress."""
WORKERS = 4
"""Answers that are worked on at once; those that nobody waits for any more may be among them for a moment."""

Work = Callable[[Progress], Any]


class GivenUp(Exception):
    """Nobody waits for this answer any more."""


class Desk:
    """Where answers are worked out."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="netdp studio")

    def close(self) -> None:
        """No more answers."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def lines(self, work: Work) -> AsyncIterator[bytes]:
        """The lines of one answer."""
        loop, told = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
        gone = threading.Event()
        last = 0.0

        def say(line: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(told.put_nowait, line)

        def progress(done: int, total: int) -> None:
            nonlocal last
            if gone.is_set():
                raise GivenUp
            if (now := time.monotonic()) > last + EVERY:
                last = now
                say({"progress": done / max(total, 1)})

        def run() -> None:
            if not gone.is_set():
                say(_outcome(lambda: work(progress)))

        self._pool.submit(run)
        try:
            while True:
                line = await told.get()
                yield encoded(line)
                if "progress" not in line:
                    return
        finally:
            gone.set()

    async def changes(self, steps: Iterator[dict[str, Any] | None], pause: float) -> AsyncIterator[bytes]:
        """The lines of something that goes on: asked again and again, silent while nothing changes."""
        loop = asyncio.get_running_loop()
        while True:
            line = await loop.run_in_executor(self._pool, lambda: next(steps, {"end": True}))
            if line is not None:
                yield encoded(line)
                if "end" in line or "error" in line:
                    return
            await asyncio.sleep(pause)


def _outcome(work: Callable[[], Any]) -> dict[str, Any]:
    """The answer; a refusal is a sentence, and a bug is logged and owned up to, without its insides."""
    try:
        return {"answer": work()}
    except GivenUp:
        return {"error": "given up: nobody waits for this answer"}
    except NetdpError as refusal:
        return {"error": " ".join(str(refusal).split())}
    except (RecursionError, MemoryError):
        return {"error": "this is too large for the machine; take a smaller network or fewer rounds"}
    except Exception:
        logger.exception("an answer failed")
        return {"error": "netdp failed on this; that is a bug. The terminal where the studio runs shows where"}


def encoded(line: dict[str, Any]) -> bytes:
    """One line of JSON."""
    return json.dumps(line, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
