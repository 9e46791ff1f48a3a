"""Workers of this machine: threads, and processes that stay for a while.

A pool takes a ticket for what all chunks share, and chunks; `wait` returns the outcome of a chunk, and `forget` gives up those that
are not needed any more.
"""

from __future__ import annotations

import os
import re
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol

from netdp.errors import Unsupported, WorkersLost

from .choice import Engine, plain_algebra
from .packed import Packed, discard, pack
from .work import Outcome, each, end_with, run_chunk

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

    def wait(self, job: Any) -> Outcome:
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

    def submit(self, ticket: tuple[Any, ...], chunk: list[Any]) -> Future[Outcome]:
        """Have a chunk done."""
        function, shared = ticket
        return self._pool.submit(self._run, function, shared, chunk)

    def _run(self, function: Any, shared: tuple[Any, ...], chunk: list[Any]) -> Outcome:
        outcome = Outcome()
        try:
            for item in chunk:
                if self._stop.is_set():
                    break
                each(function, shared, [item], outcome)
        except Exception as problem:
            outcome.error, outcome.trace = problem, traceback.format_exc()
        return outcome

    def wait(self, job: Future[Outcome]) -> Outcome:
        """Its outcome."""
        return job.result()

    def forget(self, ticket: Any, jobs: Iterable[Future[Outcome]], *, hard: bool) -> None:
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

    def submit(self, ticket: Packed, chunk: list[Any]) -> Future[Outcome]:
        """Have a chunk done."""
        try:
            return self._pool.submit(run_chunk, ticket, chunk)  # type: ignore[no-any-return]
        except (BrokenProcessPool, RuntimeError) as problem:
            raise self._lost(problem) from problem

    def wait(self, job: Future[Outcome]) -> Outcome:
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

    def forget(self, ticket: Packed, jobs: Iterable[Future[Outcome]], *, hard: bool) -> None:
        """Short work that has begun goes on and is thrown away; else the processes are ended."""
        running = [job for job in jobs if not job.cancel()]
        if hard and not all(job.done() for job in running):
            self._drop()

    def unshare(self, ticket: Packed) -> None:
        """Remove its file."""
        discard(ticket)
