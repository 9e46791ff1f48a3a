"""The workers of a Dask cluster.

Programs go to the scheduler that is named, and what its workers return is unpickled here: `netdp.engine` says whom to trust.
A worker that is killed is replaced by another: Dask keeps what a task was made of until its result is here, what all items
share included. Every task checks that its worker has the very netdp, Python, NumPy, SciPy and numba of this process; a worker
that joins later, too.
"""

from __future__ import annotations

import hashlib
import logging
import math
import platform
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from netdp.engines.work import Packed, WorkResult, pack, run_chunk
from netdp.errors import MissingDependency, Unsupported, WorkersLost

# Seconds to wait for the scheduler to answer, and for a worker to be there.
_ANSWERS, _WORKERS = 10.0, 30.0

_LOOK = 2.0


class Cluster:
    """A connection to a Dask scheduler."""

    def __init__(self, address: str) -> None:
        try:
            import dask
            from distributed import Client
        except ImportError:
            raise MissingDependency("dask and distributed", "computing on a cluster", "scale") from None
        self.address = address
        self._name = f"netdp-{uuid.uuid4().hex[:8]}"
        try:
            with dask.config.set({"distributed.comm.timeouts.connect": f"{_ANSWERS}s"}):
                self._client = Client(address, timeout=_ANSWERS, set_as_default=False, name="netdp")
        except (OSError, ValueError, TypeError) as problem:
            said = " ".join(str(problem).split())
            secure = "; certificates for tls:// are named in Dask's configuration, distributed.comm.tls"
            raise WorkersLost(
                f"no Dask scheduler answers at {address} ({said[:200]}); `dask scheduler` starts one and prints its address"
                + (secure if address.startswith("tls") else "")
            ) from None
        self._threads, self._asked, self._lost = 1, -math.inf, False
        self._wait_for_workers()

    @property
    def workers(self) -> int:
        """How many threads the cluster has; workers may come and go, so it is asked again now and then."""
        if time.monotonic() > self._asked + _LOOK:
            self._threads, self._asked = max(self._there(), 1), time.monotonic()
        return self._threads

    def share(self, work: tuple[Any, ...]) -> Any:
        """Held by the scheduler as part of a task, so that it can be made again wherever it is needed."""
        import dask

        packed = pack(work)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(_held, packed, key=f"{self._name}-shared-{packed.key}", pure=False)

    def submit(self, ticket: Any, chunk: list[Any]) -> Any:
        """Have a chunk done."""
        key = f"{self._name}-chunk-{uuid.uuid4().hex}"
        return self._client.submit(run_checked, ticket, chunk, fingerprint(), key=key, pure=False)

    def wait(self, job: Any) -> WorkResult:
        """Its outcome, done again elsewhere if a worker is lost; `WorkersLost` if all are."""
        from distributed import TimeoutError as NotYet
        from distributed import wait

        while True:
            try:
                with self._client.as_current():
                    wait([job], timeout=_LOOK)
                break
            except NotYet:
                self._wait_for_workers()
        if job.status == "finished":
            return job.result()  # type: ignore[no-any-return]
        if job.status == "cancelled" or job.status == "lost":
            raise self._gone()
        problem = job.exception()
        raise WorkersLost(
            f"the workers of {self.address} could not do it ({type(problem).__name__}: {' '.join(str(problem).split())[:300]}); "
            "install on every worker the same netdp, and see to its memory: a task is given up when four workers died of it"
        )

    def forget(self, ticket: Any, jobs: Iterable[Any], *, hard: bool) -> None:
        """Work that has not begun is not begun."""
        with suppress(OSError):  # the scheduler is gone, and they with it
            self._client.cancel(list(jobs), force=True)

    def unshare(self, ticket: Any) -> None:
        """Nobody needs it any more."""
        ticket.release()

    def close(self) -> None:
        """End the connection; the cluster stays."""
        log = logging.getLogger("distributed.client")
        level = log.level
        if self._lost:  # said already; Dask would print where it was when it noticed
            log.setLevel(logging.CRITICAL)
        try:
            self._client.close()
        finally:
            log.setLevel(level)

    def _there(self) -> int:
        """How many threads there are now."""
        try:
            return int(sum(self._client.nthreads().values()))
        except OSError as problem:  # a lost connection is one
            raise self._gone() from problem

    def _gone(self) -> WorkersLost:
        self._lost = True
        return WorkersLost(f"the Dask scheduler at {self.address} is gone, and what it was doing with it; run it again")

    def _wait_for_workers(self) -> None:
        until = time.monotonic() + _WORKERS
        while time.monotonic() < until:
            if self._there():
                return
            time.sleep(0.1)
        raise WorkersLost(
            f"the Dask scheduler at {self.address} has no workers; start some with `dask worker {self.address}` on machines "
            "that have the same netdp"
        )


def _held(packed: Packed) -> Packed:
    return packed


def run_checked(packed: Packed, chunk: list[Any], expected: dict[str, str]) -> WorkResult:
    """A chunk on a worker of a cluster, if it runs the same programs."""
    found = fingerprint()
    if found != expected:
        name = next(key for key in expected if found.get(key) != expected[key])
        return WorkResult(
            error=Unsupported(
                f"a worker of the cluster on {platform.node()} has {name} {found.get(name)}, this process {expected[name]}: the "
                "answers could differ; install the same on every worker"
            )
        )
    return run_chunk(packed, chunk)


@cache
def fingerprint() -> dict[str, str]:
    """What the answers depend on: versions, and the source of netdp itself."""
    source = hashlib.blake2b(digest_size=8)
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        source.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}
    return {"Python": platform.python_version(), **versions, "netdp of source": source.hexdigest()}
