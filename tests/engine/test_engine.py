"""The same answer, bit for bit and in order, wherever it is computed; errors as they are; nothing started for small work."""

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import netdp
from netdp import engines, errors, graphs
from netdp.engines import choice, maps
from netdp.engines import maps as pools
from netdp.engines import work as packed
from netdp.engines.work import WorkResult
from netdp.errors import FileFormatError, InvalidValue, NetdpError, WorkersLost
from netdp.families.gossip.search import certify
from netdp.numerics.kernels import csr_times_block
from netdp.papers.amplification.walks import walk_losses
from netdp.protocols.table import certified
from netdp.protocols.target import Target, audience

HERE = [("serial", None), ("threads", 2), ("threads", 3)]


def at_once(name, workers=None):
    return netdp.engine(name, workers=workers, from_seconds=0.0)


# ── the same answer ───────────────────────────────────────────────────────────────────────────────────────


def answers(random_graph):
    """Everything that goes through the room, as bytes."""
    graph = random_graph(8, 5)
    gossip = netdp.Gossip(graph, rounds=3, sigma=2.0, masks=10.0)
    walk = netdp.GraphWalkSum(random_graph(5, 2), steps=8, sigma=3.0)
    plan = certify(gossip, Target(graph, 1.0, 1e-6), audience(graph))
    exposure = netdp.who_learns_most(walk, 1e-5)
    return {
        "all pairs": netdp.pairwise(gossip).mu.tobytes(),
        "a search, and how far it went": plan,
        "who learns most": exposure.epsilons.tobytes(),
        "drawn walks": walk_losses(12, runs=3, steps=60, seed=4),
    }


@pytest.fixture(scope="module")
def one_by_one(random_graph):
    with netdp.engine("serial"):
        return answers(random_graph)


@pytest.mark.parametrize(("name", "workers"), [("threads", 3), ("processes", 2)])
def test_the_same_bit_for_bit(name, workers, random_graph, one_by_one):
    with at_once(name, workers):
        assert answers(random_graph) == one_by_one


@pytest.mark.parametrize(("name", "workers"), [*HERE, ("processes", 2)])
def test_order_sharing_and_errors(name, workers):
    """Results in order, shared arrays as they were, the error's own class after the results before it."""
    big = np.arange(400_000.0)  # above a megabyte: a file that is mapped
    fixed = np.arange(3.0)
    fixed.flags.writeable = False

    def look(big, fixed, i):
        time.sleep(0.02 if i == 0 else 0.0)  # the first is done last
        big[i] += 1  # a worker's own
        return i, float(big[i]), type(big) is np.ndarray, big.flags.writeable, fixed.flags.writeable, engines.cores()

    told = []
    with at_once(name, workers):
        found = [*engines.map_items(look, range(9), shared=(big.copy(), fixed), progress=lambda *at: told.append(at))]
        cores = 1 if name != "serial" else engines.cores()
        assert found == [(i, i + 1.0, True, True, False, cores) for i in range(9)]
        assert told == [(i, 9) for i in range(1, 10)]

        def fails(i):
            if i == 5:
                raise FileFormatError("table.csv", 7, "is odd")
            return i

        results = engines.map_items(fails, range(9))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(FileFormatError, match=r"table\.csv:7: is odd") as refused:
            next(results)
        assert (refused.value.line, refused.value.path) == (7, "table.csv")

        def warns(i):
            warnings.warn(f"odd {i}", stacklevel=1)
            return i

        with pytest.warns(UserWarning, match="odd"):
            assert [*engines.map_items(warns, [1, 2])] == [1, 2]


def test_threads_of_compiled_code_do_not_change_it():
    graph = graphs.torus(60, 60)
    A = graph.adjacency()
    block = np.random.default_rng(0).standard_normal((3600, 300))
    with netdp.engine("serial"):
        alone = csr_times_block(A.indptr, A.indices, A.data, block)
    with netdp.engine("threads", workers=3):
        assert np.array_equal(csr_times_block(A.indptr, A.indices, A.data, block), alone)


def test_every_error_survives_the_way_back():
    made = {
        FileFormatError: FileFormatError("a", None, "b"),
        errors.MissingDependency: errors.MissingDependency("dask", "a cluster", "scale"),
    }
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, NetdpError)]
    assert len(kinds) > 8
    for kind in kinds:
        error = made.get(kind) or kind("a sentence")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))


# ── where, and when ───────────────────────────────────────────────────────────────────────────────────────


def test_small_work_starts_nothing(monkeypatch, random_graph):
    @contextmanager
    def none(*_, **__):
        raise AssertionError("started")
        yield

    monkeypatch.setattr(maps, "open_pool", none)
    protocol = netdp.Gossip(random_graph(9, 1), rounds=3, sigma=1.0)
    with netdp.engine("processes", workers=2):
        netdp.pairwise(protocol)
    with at_once("processes", 2), pytest.raises(AssertionError, match="started"):
        netdp.pairwise(protocol)


@pytest.mark.parametrize(
    ("items", "takes", "options", "handed_over"),
    [
        (100, [0.5, 0.1], {}, 98),  # 98 · 0.1 s > 2 s, known after the second; the first may have compiled
        (10, [0.5, 0.1], {}, 0),
        (10, [3.0], {}, 9),  # more than a second of compiling
        (10, [0.1], {"seconds_each": 1.0}, 10),
        (10, [0.1], {"frees_lock": True}, 10),  # threads cost nothing
        (400, [0.001, 0.001, 0.1], {}, 397),  # the mean of those seen, not the quickest
        (1, [9.0], {"seconds_each": 9.0}, 0),
    ],
)
def test_when_work_is_handed_over(monkeypatch, items, takes, options, handed_over):
    now, asked = 0.0, []

    class Fake:
        workers = 2

        def share(self, work):
            return work

        def submit(self, work, chunk):
            asked.append(chunk)
            return WorkResult([work[0](*work[1], item) for item in chunk])

        def wait(self, job):
            return job

        def unshare(self, ticket):
            asked.append("end")

    @contextmanager
    def fake(chosen, **_):
        yield Fake()

    def work(i):
        nonlocal now
        now += takes[min(i, len(takes) - 1)]
        return i

    monkeypatch.setattr(maps, "open_pool", fake)
    monkeypatch.setattr(maps.time, "perf_counter", lambda: now)
    with netdp.engine("processes", workers=2):
        assert [*engines.map_items(work, range(items), **options)] == [*range(items)]
    sizes = [len(chunk) for chunk in asked[:-1]]
    assert sum(sizes) == handed_over
    assert asked[-1:] == (["end"] if handed_over else [])
    assert max(sizes, default=0) <= max(1, handed_over // 8)


def test_work_of_a_worker_hands_nothing_over(monkeypatch):
    def outer(i):
        before = maps.open_pool
        maps.open_pool = None  # whoever asks for workers fails
        try:
            return engines.cores(), [*engines.map_items(pow, [1, 2], shared=(i,))]
        finally:
            maps.open_pool = before

    with at_once("threads", 2):
        assert [*engines.map_items(outer, [2])] == [(1, [2, 4])]


def test_only_what_every_process_knows_is_sent():
    @dataclass(frozen=True)
    class Mine(netdp.Protocol):
        n: int = 3
        kind = "test of the engine"

        def describe(self):
            return "mine"

    try:
        assert certified.ours(netdp.Gossip(graphs.ring(4), rounds=2, sigma=1.0))
        assert not certified.ours(Mine())
    finally:
        del netdp.Protocol._kinds["test of the engine"]
    with at_once("processes", 2):
        found = [*engines.map_items(lambda i: os.getpid(), range(3), portable=False)]
    assert found == [os.getpid()] * 3


# ── when something goes wrong ─────────────────────────────────────────────────────────────────────────────


def test_a_killed_process_is_one_clear_error_and_the_next_call_works():
    def dies(i):
        os.kill(os.getpid(), signal.SIGKILL)

    with at_once("processes", 2):
        with pytest.raises(WorkersLost, match=r"ended in the middle of its work.*fewer workers than 2 \(--workers"):
            list(engines.map_items(dies, range(3)))
        assert not pools.Processes._kept
    assert [*engines.map_items(abs, [-1])] == [1]


def test_who_stops_early_gets_what_one_by_one_gives():
    done = []
    with at_once("threads", 2):
        results = engines.map_items(lambda i: done.append(i) or i, range(1000))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        results.close()
    assert len(done) < 20


def test_ctrl_c_ends_the_workers(tmp_path):
    """The command line's way: a signal to the process, whose workers end with it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time, netdp\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background is born deaf to it
        "from pathlib import Path\n"
        "def slow(i):\n"
        f"    Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()\n"
        "    time.sleep(600)\n"
        "with netdp.engine('processes', workers=2, from_seconds=0.0):\n"
        "    list(netdp.engines.maps.map_items(slow, range(6)))\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while len(pids := [int(path.stem) for path in tmp_path.glob("*.pid")]) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert b"KeyboardInterrupt" in said

    def gone(pid):
        status = Path(f"/proc/{pid}/stat")
        try:
            os.kill(pid, 0)
            return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"
        except ProcessLookupError:
            return True

    while not all(map(gone, pids)):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_files_are_private_and_removed():
    value = {"numbers": np.arange(10.0), "empty": np.zeros((0, 3)), "text": "x"}
    written = packed.pack(value, inline=0)
    path = Path(written.path)
    assert path.parent.stat().st_mode & 0o077 == 0
    again = packed.unpack(written)
    again["numbers"][0] = 7.0
    packed._unpacked.clear()
    assert packed.unpack(written)["numbers"].tolist() == value["numbers"].tolist()
    assert packed.unpack(written)["empty"].shape == (0, 3)
    packed.discard(written)
    assert not path.parent.exists()
    for _ in range(3):
        packed.unpack(packed.pack(1))
    assert len(packed._unpacked) == packed._KEPT


# ── choosing ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gpu", {}, "unknown engine 'gpu'; choose one of processes, threads, serial, dask"),
        (None, {"scheduler": "tcp://a:1"}, "a scheduler belongs to the engine dask, got .* with no engine"),
        ("threads", {"scheduler": "tcp://a:1"}, "with engine 'threads'; choose dask, or leave it out"),
        ("dask", {}, "the engine dask needs a scheduler"),
        ("dask", {"scheduler": "tcp://a:1", "workers": 2}, "has the workers it has, got workers=2"),
        ("serial", {"workers": 2}, "the engine serial has one worker, got workers=2"),
        ("threads", {"workers": 0}, "workers must be a whole number ≥ 1, got 0"),
        ("threads", {"workers": True}, "workers must be a whole number ≥ 1, got True"),
        ("threads", {"from_seconds": -1}, "from_seconds must be a number of seconds ≥ 0, got -1"),
        ("threads", {"from_seconds": float("nan")}, "from_seconds must be"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, options, message):
    with pytest.raises(InvalidValue, match=message):
        netdp.engine(name, **options)


def test_one_place_decides_how_many(monkeypatch):
    monkeypatch.setenv("NETDP_WORKERS", "3")
    assert engines.cores() == 3
    with netdp.engine("threads", workers=5):
        assert engines.cores() == 5
        with netdp.engine("serial"):
            assert engines.cores() == 1
        assert engines.cores() == 5
    assert engines.cores() == 3
    for wrong in ("many", "0", "-1", "1.5"):
        monkeypatch.setenv("NETDP_WORKERS", wrong)
        with pytest.raises(InvalidValue, match=f"NETDP_WORKERS must be a whole number ≥ 1, got '{wrong}'"):
            engines.cores()
    monkeypatch.delenv("NETDP_WORKERS")
    assert 1 <= engines.cores() <= (os.cpu_count() or 1)
    assert choice.current().name == "processes"
