"""One function for many items, on whatever engine is chosen; the results come in the order of the items.

Whole items are grouped into chunks, and a few chunks more than there are workers are under way at a time. Results are taken
in order, so a caller that stops early gets what it would have got one by one. The first items run here: they show how long
one takes (the first may have had to compile, for which a second is taken off), and compile for all workers what is then found
on disk. A pool of workers takes a ticket for what all chunks share, and chunks; `wait` returns the outcome of a chunk, and `forget`
gives up those that are not needed any more. Compiled code that leaves the interpreter's lock alone runs on threads under every
engine: nothing has to be sent and nothing started.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from typing import Any, Protocol, TypeAlias

from netdp.engines.choice import Engine, current, engine, inside, plain_algebra
from netdp.engines.work import Packed, WorkResult, discard, each, end_with, pack, run_chunk
from netdp.errors import NetdpError, Unsupported, WorkersLost

# What is shared goes with every chunk up to this size, and above it into a file that the workers map into memory.
_INLINE = 1 << 20

# Seconds that idle worker processes stay.
_IDLE = 300

# One thread per worker, whatever library would like more; compiled functions come from the cache on disk.
_ALONE = dict.fromkeys(
    ("NETDP_WORKERS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
     "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1",
)  # fmt: skip


class Pool(Protocol):
    """Workers, wherever they are."""

    @property
    def workers(self) -> int:
        """How many there are."""

    def share(self, work: tuple[Any, ...]) -> Any:
        """A ticket for (function, shared)."""

    def submit(self, ticket: Any, chunk: list[Any]) -> Any:
        """Have a chunk done."""

    def wait(self, job: Any) -> WorkResult:
        """Its outcome, when it is there."""

    def forget(self, ticket: Any, jobs: Iterable[Any], *, hard: bool) -> None:
        """These are not needed any more; `hard`: nor may those that have begun go on."""

    def unshare(self, ticket: Any) -> None:
        """The ticket is not needed any more."""


@contextmanager
def open_pool(chosen: Engine, *, frees_lock: bool, portable: bool) -> Iterator[Pool]:
    """The workers of an engine."""
    if chosen.name == "dask":
        if not portable:
            raise Unsupported(
                "this protocol, or what accounts for it, is not part of netdp, so the workers of a cluster would not know it; "
                "use the engine threads or serial"
            )
        yield chosen.cluster()
    elif chosen.name == "threads" or frees_lock or not portable:
        pool = Threads(chosen.many)
        try:
            with plain_algebra():
                yield pool
        finally:
            pool.close()
    else:
        yield Processes.of(chosen.many)


class Threads:
    """Threads of this process."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers)
        self._stop = threading.Event()

    def share(self, work: tuple[Any, ...]) -> tuple[Any, ...]:
        """Nothing to send."""
        return work

    def submit(self, ticket: tuple[Any, ...], chunk: list[Any]) -> Future[WorkResult]:
        """Have a chunk done."""
        function, shared = ticket
        return self._pool.submit(self._run, function, shared, chunk)

    def _run(self, function: Any, shared: tuple[Any, ...], chunk: list[Any]) -> WorkResult:
        outcome = WorkResult()
        try:
            for item in chunk:
                if self._stop.is_set():
                    break
                each(function, shared, [item], outcome)
        except Exception as problem:
            outcome.error, outcome.trace = problem, traceback.format_exc()
        return outcome

    def wait(self, job: Future[WorkResult]) -> WorkResult:
        """Its outcome."""
        return job.result()

    def forget(self, ticket: Any, jobs: Iterable[Future[WorkResult]], *, hard: bool) -> None:
        """Threads cannot be ended: they stop after their item."""
        self._stop.set()
        for job in jobs:
            job.cancel()

    def unshare(self, ticket: Any) -> None:
        """Nothing was sent."""

    def close(self) -> None:
        """All threads have ended."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Processes:
    """Processes of this machine, started by loky (joblib's): fresh interpreters, never forks."""

    _kept: dict[tuple[int, int], Processes] = {}  # noqa: RUF012
    _lock = threading.Lock()

    def __init__(self, workers: int) -> None:
        from loky import ProcessPoolExecutor

        # loky warns when idle workers have gone, or are started afresh because they hold much memory: both as intended.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        self.workers = workers
        self._pool = ProcessPoolExecutor(
            workers, timeout=_IDLE, env=_ALONE, initializer=end_with, initargs=(os.getpid(),)
        )

    @classmethod
    def of(cls, workers: int) -> Processes:
        """So many processes; those that are there already."""
        mine = os.getpid(), workers  # a fork has none yet
        with cls._lock:
            if mine not in cls._kept:
                cls._kept[mine] = cls(workers)
            return cls._kept[mine]

    def share(self, work: tuple[Any, ...]) -> Packed:
        """Packed once, in memory or in a file."""
        return pack(work, _INLINE)

    def submit(self, ticket: Packed, chunk: list[Any]) -> Future[WorkResult]:
        """Have a chunk done."""
        try:
            return self._pool.submit(run_chunk, ticket, chunk)  # type: ignore[no-any-return]
        except (BrokenProcessPool, RuntimeError) as problem:
            raise self._lost(problem) from problem

    def wait(self, job: Future[WorkResult]) -> WorkResult:
        """Its outcome; `WorkersLost` if a process was killed."""
        try:
            return job.result()
        except (BrokenProcessPool, RuntimeError) as problem:
            raise self._lost(problem) from problem

    def _lost(self, problem: BaseException) -> WorkersLost:
        self._drop()
        codes = re.search(r"exit codes of the workers are \{(.*?)\}", str(problem))
        how = f"exit code {codes[1]}" if codes else type(problem).__name__
        return WorkersLost(
            f"a worker process ended in the middle of its work, often for lack of memory ({how}); nothing was lost but time: run "
            f"it again with fewer workers than {self.workers} (--workers, NETDP_WORKERS), or with the engine serial"
        )

    def _drop(self) -> None:
        """The next one who asks gets new processes."""
        with self._lock:
            for mine in [key for key, pool in self._kept.items() if pool is self]:
                del self._kept[mine]
        self._pool.shutdown(wait=False, kill_workers=True)

    def forget(self, ticket: Packed, jobs: Iterable[Future[WorkResult]], *, hard: bool) -> None:
        """Short work that has begun goes on and is thrown away; else the processes are ended."""
        running = [job for job in jobs if not job.cancel()]
        if hard and not all(job.done() for job in running):
            self._drop()

    def unshare(self, ticket: Packed) -> None:
        """Remove its file."""
        discard(ticket)


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


Together: TypeAlias = Callable[[Callable[[int], object], int], None]
"""`together(part, parts)` calls part(0) … part(parts − 1), side by side, and returns when all are done."""


@contextmanager
def team(size: int) -> Iterator[Together]:
    """So many threads; with one, everything is done in this thread.

    >>> squares = [0, 0, 0]
    >>> with team(2) as together:
    ...     together(lambda i: squares.__setitem__(i, i * i), 3)
    >>> squares
    [0, 1, 4]
    """
    if size <= 1:

        def alone(part: Callable[[int], object], parts: int) -> None:
            for i in range(parts):
                part(i)

        yield alone
        return
    with ThreadPoolExecutor(size) as pool:

        def together(part: Callable[[int], object], parts: int) -> None:
            for _ in pool.map(part, range(parts)):
                pass

        yield together
