"""A Dask scheduler and two workers as processes of their own: one is killed in the middle, the answer is the same."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import netdp
from netdp import engines, graphs
from netdp.errors import InvalidValue, MissingDependency, NetdpError, Unsupported, WorkersLost

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="dask is not installed (the extra scale)"
)
DEADLINE = 60.0


def wait_for(happened, what):
    until = time.monotonic() + DEADLINE
    while not (found := happened()):
        assert time.monotonic() < until, f"waited {DEADLINE} s for {what}"
        time.sleep(0.02)
    return found


def start(folder, *words):
    quiet = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical", "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"],
            env={**os.environ, **quiet},
            cwd=folder,
            stdout=log,
            stderr=log,
        )


@pytest.fixture
def cluster(tmp_path):
    """(address of the scheduler, its workers) on loopback, at ports the system chooses."""
    file = tmp_path / "scheduler.json"
    running = [start(tmp_path, "scheduler", "--port", "0", "--scheduler-file", str(file))]
    try:
        running += [
            start(tmp_path, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--death-timeout", "60",
                  "--memory-limit", "0", "--local-directory", str(tmp_path))
            for _ in range(2)
        ]  # fmt: skip
        wait_for(lambda: file.exists() and file.read_text(), "the scheduler")
        yield json.loads(file.read_text())["address"], running[1:]
    finally:
        for process in reversed(running):
            process.kill()
            process.wait(DEADLINE)


@needs_dask
def test_a_worker_is_killed_and_the_answer_is_the_same(cluster, tmp_path, random_graph):
    address, workers = cluster
    note = tmp_path / "victim"

    def spectrum(matrix, v):
        """Eigenvalues; the first process that is asked about item 7 says who it is and never answers."""
        if v == 7 and not note.exists():
            note.with_suffix(".new").write_text(str(os.getpid()))
            note.with_suffix(".new").rename(note)
            time.sleep(600)
        return np.linalg.eigvalsh(matrix + v * matrix.T)

    matrix = np.random.default_rng(1).standard_normal((60, 60))
    expected = [np.linalg.eigvalsh(matrix + v * matrix.T) for v in range(16)]

    def kill():
        wait_for(note.exists, "a worker with item 7")
        victim = int(note.read_text())
        assert victim in {worker.pid for worker in workers}
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    told = []
    with netdp.engine("dask", scheduler=address, from_seconds=0.0) as chosen:
        wait_for(lambda: chosen.cluster().workers == 2, "two workers")  # before one of them goes
        killer.start()
        found = [*engines.map_items(spectrum, range(16), shared=(matrix,), progress=lambda *at: told.append(at))]
        killer.join(DEADLINE)
        # the one that is left accounts for all pairs, says what went wrong, and is not trusted with other versions
        protocol = netdp.Gossip(random_graph(12, 3), rounds=4, sigma=2.0, masks=10.0)
        pairs = netdp.pairwise(protocol)

        def refuses(i):
            raise InvalidValue(f"no {i}")

        with pytest.raises(InvalidValue, match="no 0"):
            list(engines.map_items(refuses, range(3)))
        with pytest.raises(Unsupported, match="not part of netdp"):
            list(engines.map_items(abs, [1], portable=False))
        engines.cluster.fingerprint()["numpy"] = "0.9"
        try:
            with pytest.raises(
                Unsupported, match=r"has numpy .*, this process 0\.9: .* install the same on every worker"
            ):
                list(engines.map_items(abs, [1]))
        finally:
            engines.cluster.fingerprint.cache_clear()
    assert sum(worker.poll() is None for worker in workers) == 1
    assert told == [(done, 16) for done in range(1, 17)]
    assert [values.tobytes() for values in found] == [values.tobytes() for values in expected]
    with netdp.engine("serial"):
        assert netdp.pairwise(protocol).mu.tobytes() == pairs.mu.tobytes()


@needs_dask
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    import socket

    from netdp.engines import cluster as room

    monkeypatch.setattr(room, "_ANSWERS", 0.3)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    with (
        netdp.engine("dask", scheduler=address, from_seconds=0.0),
        pytest.raises(WorkersLost, match=f"no Dask scheduler answers at {address}"),
    ):
        netdp.pairwise(netdp.Gossip(graphs.ring(5), rounds=2, sigma=1.0))


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "dask", None)
    with (
        netdp.engine("dask", scheduler="tcp://127.0.0.1:1", from_seconds=0.0),
        pytest.raises(MissingDependency, match=r"netdp\[scale\]") as refused,
    ):
        list(engines.map_items(abs, [1, 2]))
    assert isinstance(refused.value, NetdpError)
