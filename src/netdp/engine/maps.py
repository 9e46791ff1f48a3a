"""One function for many items, on whatever engine is chosen; the results come in the order of the items.

Whole items are grouped into chunks, and a few chunks more than there are workers are under way at a time. Results are taken
in order, so a caller that stops early gets what it would have got one by one. The first items run here: they show how long
one takes (the first may have had to compile, for which a second is taken off), and compile for all workers what is then found
on disk.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any

from netdp.errors import NetdpError

from .choice import Engine, current, engine, inside, plain_algebra
from .pools import Pool, open_pool

# Seconds that a chunk should take at least: far above what it costs to send it.
_CHUNK = 0.2
# What the first call may have spent on compiling.
_COMPILING = 1.0


def map_items(
    function: Callable[..., Any],
    items: Iterable[Any],
    *,
    shared: tuple[Any, ...] = (),
    seconds_each: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    frees_lock: bool = False,
    portable: bool = True,
    workers: int | None = None,
) -> Generator[Any, None, None]:
    """function(*shared, item) for every item, in their order, wherever the chosen engine computes.

    function      of a module, so that workers find it; what it returns must depend on its arguments alone
    shared        what all items need, such as the protocol: sent once to each worker
    seconds_each  about how long an item takes; by default the first ones show it
    progress      told (done, total) after every item
    frees_lock    the time is spent in compiled code without the interpreter's lock: threads do, and nothing is sent
    portable      False: only this process knows what is needed (an accountant that was entered by a script), so threads do it
    workers       instead of as many as the engine has

    >>> list(map_items(pow, [3, 1, 2], shared=(2,)))
    [8, 2, 4]
    """
    chosen = current()
    if workers is not None and chosen.name in ("processes", "threads"):
        chosen = engine(chosen.name, workers=workers, from_seconds=chosen.from_seconds)
    return _results(chosen, function, list(items), shared, seconds_each, progress, frees_lock, portable)


def _results(
    chosen: Engine,
    function: Callable[..., Any],
    items: list[Any],
    shared: tuple[Any, ...],
    seconds: float | None,
    progress: Callable[[int, int], None] | None,
    frees_lock: bool,
    portable: bool,
) -> Generator[Any, None, None]:
    done, total = 0, len(items)

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    alone = inside() or (chosen.name != "dask" and chosen.many == 1)
    # Threads cost nothing to start, so nothing has to be found out first.
    threshold = 0.0 if frees_lock and chosen.name != "dask" else chosen.from_seconds
    each, spent = seconds, 0.0
    with plain_algebra():
        while done < total and (alone or not _worth_it(threshold, each, total - done)):
            started = time.perf_counter()
            result = function(*shared, items[done])
            took = time.perf_counter() - started
            if seconds is None:
                spent += took if done else 0.0
                each = spent / done if done else max(took - _COMPILING, 0.0)
            tell()
            yield result
    if done == total:
        return
    each = _CHUNK if each is None else each
    with open_pool(chosen, frees_lock=frees_lock, portable=portable) as pool:
        size = max(1, min(math.ceil(_CHUNK / max(each, 1e-6)), (total - done) // (4 * pool.workers)))
        chunks = [items[first : first + size] for first in range(done, total, size)]
        with closing(_ordered(pool, function, shared, chunks, seconds_each=each * size)) as results:
            for result in results:
                tell()
                yield result


def _worth_it(from_seconds: float, each: float | None, left: int) -> bool:
    """Whether the rest is expected to take long enough; nothing is known before the first item."""
    if from_seconds == 0:
        return True
    return each is not None and left > 1 and each * left > from_seconds


def _ordered(
    pool: Pool, function: Callable[..., Any], shared: tuple[Any, ...], chunks: list[list[Any]], seconds_each: float
) -> Generator[Any, None, None]:
    ticket = pool.share((function, shared))
    waiting: deque[Any] = deque()
    rest = iter(chunks)
    try:
        while True:
            while len(waiting) < 2 * pool.workers and (chunk := next(rest, None)) is not None:
                waiting.append(pool.submit(ticket, chunk))
            if not waiting:
                return
            outcome = pool.wait(waiting[0])
            waiting.popleft()
            for category, text in outcome.warnings:
                warnings.warn(text, category, stacklevel=2)
            yield from outcome.results
            if outcome.error is not None:
                if not isinstance(outcome.error, NetdpError):
                    outcome.error.add_note(f"in a worker:\n{outcome.trace}")
                raise outcome.error
    except GeneratorExit:  # the caller has what it wants
        pool.forget(ticket, waiting, hard=seconds_each > 2.0)
        raise
    except BaseException as problem:
        pool.forget(ticket, waiting, hard=not isinstance(problem, Exception))
        raise
    finally:
        pool.unshare(ticket)
