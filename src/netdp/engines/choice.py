"""Which engine is chosen, and how many cores there are: the one place that decides.

A choice holds inside its `with` block, for this thread. Outside, the default: processes, as many as NETDP_WORKERS says, or as
there are cores this process may use (its affinity and its container's share count). Work that is itself done by a worker uses
one core.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from netdp.errors import InvalidValue

if TYPE_CHECKING:
    from netdp.engines.cluster import Cluster

ENGINES = ("processes", "threads", "serial", "dask")
"""Ways to do long work: the names that `engine` and `--engine` take."""

FROM_SECONDS = 2.0


@dataclass(eq=False)
class Engine:
    """A chosen engine, used with `with`; made by `netdp.engine(...)`."""

    name: str = "processes"
    workers: int | None = None
    scheduler: str | None = None
    from_seconds: float = FROM_SECONDS
    _cluster: Cluster | None = field(default=None, repr=False)
    _before: list[Token[Engine]] = field(default_factory=list, repr=False)

    def __enter__(self) -> Engine:
        self._before.append(_chosen.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _chosen.reset(self._before.pop())
        if self._cluster is not None and not self._before:
            self._cluster.close()
            self._cluster = None

    @property
    def many(self) -> int:
        """How many workers there are on this machine."""
        return 1 if self.name == "serial" else self.workers or default_workers()

    def cluster(self) -> Cluster:
        """The connection to the cluster, made when it is first needed; it ends with the `with` block."""
        from netdp.engines.cluster import Cluster

        assert self.scheduler is not None
        if self._cluster is None:
            self._cluster = Cluster(self.scheduler)
        return self._cluster


_chosen: ContextVar[Engine] = ContextVar("netdp engine", default=Engine())  # noqa: B039  never changed: it is not entered

_here = threading.local()


def engine(
    name: str | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    from_seconds: float = FROM_SECONDS,
) -> Engine:
    """Choose where work that takes long is done, for a `with` block.

    name          "processes" (the default), "threads", "serial" or "dask"
    workers       how many processes or threads; as many as NETDP_WORKERS says, or as there are cores, by default
    scheduler     the address of a Dask scheduler, such as tcp://127.0.0.1:8786. Programs are sent there and run as you, and
                  what comes back is unpickled here: only name a cluster that you control (`netdp.engine`)
    from_seconds  work that is expected to take less is done in this process

    >>> with engine("serial"):
    ...     cores()
    1
    >>> engine("threads", scheduler="tcp://127.0.0.1:8786")
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: a scheduler belongs to the engine dask, got scheduler='tcp://127.0.0.1:8786' with ...
    """
    chosen = name if name is not None else "processes"
    if chosen not in ENGINES:
        raise InvalidValue(f"unknown engine {name!r}; choose one of {', '.join(ENGINES)}")
    if scheduler is not None and chosen != "dask":
        given = f"engine {name!r}" if name is not None else "no engine"
        raise InvalidValue(
            f"a scheduler belongs to the engine dask, got scheduler={scheduler!r} with {given}; choose dask, or leave it out"
        )
    if chosen == "dask" and not scheduler:
        raise InvalidValue(
            "the engine dask needs a scheduler; give its address, such as tcp://127.0.0.1:8786 "
            "(`dask scheduler` prints it, `dask worker ADDRESS` adds workers)"
        )
    if workers is not None:
        _whole("workers", workers)
        if chosen == "dask":
            raise InvalidValue(f"a Dask cluster has the workers it has, got workers={workers}; leave workers out")
        if chosen == "serial" and workers != 1:
            raise InvalidValue(f"the engine serial has one worker, got workers={workers}; leave workers out")
    if isinstance(from_seconds, bool) or not isinstance(from_seconds, int | float) or not 0 <= from_seconds < math.inf:
        raise InvalidValue(f"from_seconds must be a number of seconds ≥ 0, got {from_seconds!r}")
    return Engine(chosen, workers, scheduler, float(from_seconds))


def current() -> Engine:
    """The engine that is chosen here."""
    return _chosen.get()


def cores() -> int:
    """How many threads compiled code may use here: all cores, or as many as were chosen; one inside a worker."""
    return 1 if inside() else current().many


def inside() -> bool:
    """Whether this thread is a worker's."""
    return getattr(_here, "working", False)


@contextmanager
def as_worker() -> Iterator[None]:
    """Mark this thread as a worker's: what it does uses one core, and hands nothing over."""
    before = inside()
    _here.working = True
    try:
        yield
    finally:
        _here.working = before


@contextmanager
def plain_algebra() -> Iterator[None]:
    """Linear algebra on one thread: many small products gain more side by side, and sums are always added in one order."""
    limits = plain_algebra_for_good()
    try:
        yield
    finally:
        limits.restore_original_limits()


def plain_algebra_for_good() -> Any:
    """The same without an end, for a process that does nothing else: threads of it may be at it at the same time."""
    import scipy.linalg  # noqa: F401  only libraries that are loaded can be told
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def default_workers() -> int:
    """NETDP_WORKERS, or the number of cores this process may use."""
    written = os.environ.get("NETDP_WORKERS", "").strip()
    if not written:
        return _all_cores()
    try:
        return _whole("NETDP_WORKERS", int(written))
    except ValueError:
        raise InvalidValue(
            f"NETDP_WORKERS must be a whole number ≥ 1, got {written!r}; unset it for all cores"
        ) from None


@cache
def _all_cores() -> int:
    from loky import cpu_count

    return max(int(cpu_count()), 1)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValue(f"{name} must be a whole number ≥ 1, got {value!r}")
    return value
