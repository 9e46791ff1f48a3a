"""Real peers, all on this machine, each a process of its own: `python benchmarks/peers.py a b c d`.

(a) hops per second of a token of 8 KB and of 1 MB on a ring of 8: netdp (a ring sum, everything durable), a bare gRPC stream
    with the same settings, raw TLS sockets; medians of alternating runs, and ratios
(b) memory per peer: of 16 peers from one fork server at the end of a run (PSS: shared pages divided among those who share
    them; USS: pages of its own), and of one peer that runs alone (RSS)
(c) seconds of a masked sum of 1, 10⁴ and 10⁶ numbers among 10, 50 and 200 peers on a random 6-regular graph: from when all
    listen to the last answer, and the round itself, from the first sealed roster to the last answer
(d) one number among 10, 50 and 200 peers: the one attempt that survives the loss of parties beside the attempts of before, which
    a party that goes away spoils (`threshold=0`), alternating in one run. Seconds from when all listen to the last answer,
    processor seconds and bytes that a party has sent by then; medians, and the ratios of each pair of runs

The error at equal certified privacy is case (a) of benchmarks/masked.py.

Times depend on how busy the machine is; its load is printed with every case.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import run_cases, size

RING = size(8, quick=4)
TOKENS = size({"8 KB": (1024, 150), "1 MB": (131_072, 20)}, quick={"8 KB": (1024, 3)})
"""How many numbers a token has, and how often it goes round."""
PEERS = size(16, quick=4)
REPEATS = size(3, quick=1)
PATIENCE = 600.0
BARE = 30.0
MOST_BYTES = 12e9
LONGEST = 120.0


def warm() -> None:
    import netdp.peers.launch  # noqa: F401


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="netdp-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


# ── a token on a ring ─────────────────────────────────────────────────────────────────────────────────────────────────


def ring_study(numbers: int, rounds: int) -> Any:
    """A ring sum of so many numbers. Its noise is as large as the promise needs; one user in n − 1 adds it."""
    from netdp.peers.study import Study

    names = [f"p{u}" for u in range(RING)]
    return Study(
        name="token", nonce="", task={"kind": "histogram", "column": "x", "bounds": (0.0, 1.0), "bins": numbers},
        privacy={"epsilon": 8.0, "delta": 1e-6, "colluders": 1}, network={"graph": f"ring:{RING}"},
        protocol={"kind": "ring-sum", "sigma": 64.0, "grid": 0.03125, "noise": "single", "rounds": rounds},
        timing={"gather": 60.0, "patience": PATIENCE}, party=[{"name": name} for name in names],
    )  # fmt: skip


def timed_ring_party(home: str, study: str, data: str, events: Any, record: str | None = None) -> None:
    """A party's process. The last party, which gets the token when all others have had it, times it until it is released."""
    from netdp.families.token.peer_ring import Ring
    from netdp.peers.launch import party_process

    advance, visits = Ring.advance, []

    def timed(self: Any, held: Any, moment: Any) -> Any:
        said = advance(self, held, moment)
        if said.addressed or said.published:
            visits.append(time.perf_counter())
        if said.published:
            rounds, spent = len(visits) - 1, visits[-1] - visits[0]
            events.send_bytes(json.dumps({"event": "note", "text": f"{rounds} rounds in {spent}"}).encode())
        return said

    if Path(home).name == f"p{RING - 1}":
        Ring.advance = timed  # type: ignore[method-assign]
    party_process(home, study, data, events, record)


def netdp_ring(numbers: int, rounds: int) -> float:
    """Hops per second, from when everybody has drawn and had the token once to its release."""
    from netdp.peers.launch import up

    with folder() as place:
        study, path, files = settled(ring_study(numbers, rounds), place)
        result = up(study, path, files, place, restart=False, target=timed_ring_party)
        notes = [note.split() for note in result.notes if " rounds in " in note]
        if not result.ok or len(notes) != 1:
            raise RuntimeError(f"the ring did not end well: {result.gone} {result.notes[:5]}")
        return int(notes[0][1]) * RING / float(notes[0][4])


def bare_ring(place_of_ring: Callable[..., None], size: int, rounds: int) -> float:
    """Hops per second of so many bytes where every process passes on what it gets and does nothing else."""
    from netdp.peers.identity import Identity
    from netdp.peers.launch import PRELOADED
    from netdp.peers.setup import free_ports

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    ours, theirs = context.Pipe(duplex=False)
    with folder() as place:
        homes = [str(Identity.create(place / f"p{u}", f"p{u}").home) for u in range(RING)]
        where = (homes, free_ports(RING), size, rounds, theirs)
        running = [context.Process(target=place_of_ring, args=(u, *where), daemon=True) for u in range(RING)]
        try:
            for process in running:
                process.start()
            if not ours.poll(BARE):
                raise RuntimeError(f"{place_of_ring.__name__} did not end in {BARE:g} s")
            return rounds * RING / float(ours.recv())
        finally:
            for process in running:
                process.kill()
            for process in running:
                process.join()


def grpc_place(u: int, homes: list[str], ports: list[int], size: int, rounds: int, pipe: Any) -> None:
    """One place of a ring of gRPC streams, with the settings of netdp's links."""
    import grpc

    from netdp.peers.identity import Identity, pem
    from netdp.peers.transport.grpc import GrpcTransport

    me, cards = Identity.load(Path(homes[u])), [Identity.load(Path(home)).card for home in homes]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    options = GrpcTransport(me, u, cards, [], addresses, receiver=None)._options  # type: ignore[arg-type]
    after = (u + 1) % RING

    async def run() -> None:
        over = asyncio.Event()

        async def serve(_: object, call: Any) -> None:
            visits = 0
            while (frame := await call.read()) is not grpc.aio.EOF:
                if u == 0:
                    if visits == 0:
                        begun = time.perf_counter()
                    if visits == rounds:
                        pipe.send(time.perf_counter() - begun)
                        over.set()
                    visits += 1
                await out.write(frame)

        server = grpc.aio.server(options=options(server=True))
        handlers = {"Pass": grpc.stream_stream_rpc_method_handler(serve)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare", handlers),))
        roots = b"".join(pem(card.certificate) for card in cards)
        own = [(me.tls_key_pem, me.tls_certificate_pem)]
        server.add_secure_port(addresses[u], grpc.ssl_server_credentials(own, roots, require_client_auth=True))
        await server.start()
        credentials = grpc.ssl_channel_credentials(
            pem(cards[after].certificate), me.tls_key_pem, me.tls_certificate_pem
        )
        channel = grpc.aio.secure_channel(addresses[after], credentials, options=options(server=False))
        out = channel.stream_stream("/bare/Pass")(wait_for_ready=True)
        await out.wait_for_connection()
        if u == 0:
            await out.write(bytes(size))
        await over.wait()

    asyncio.run(run())


def tls_place(u: int, homes: list[str], ports: list[int], size: int, rounds: int, pipe: Any) -> None:
    """One place of a ring of blocking TLS sockets."""
    from netdp.peers.identity import Identity, pem

    me, cards = Identity.load(Path(homes[u])), [Identity.load(Path(home)).card for home in homes]
    own = Path(homes[u]) / "both.pem"
    own.write_bytes(me.tls_key_pem + me.tls_certificate_pem)

    def settings(side: int, card: Any) -> ssl.SSLContext:
        made = ssl.SSLContext(side)
        made.check_hostname, made.verify_mode = False, ssl.CERT_REQUIRED
        made.load_cert_chain(own)
        made.load_verify_locations(cadata=pem(card.certificate).decode())
        return made

    def dial() -> socket.socket:
        for _ in range(1000):
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", ports[(u + 1) % RING]))
            time.sleep(0.02)
        raise RuntimeError("the next place does not listen")

    listener = socket.create_server(("127.0.0.1", ports[u]))
    plain = dial()
    incoming, _ = listener.accept()
    for one in (plain, incoming):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # the handshakes on a ring wait for each other: all but the first place answer before they ask
    def ask() -> ssl.SSLSocket:
        return settings(ssl.PROTOCOL_TLS_CLIENT, cards[(u + 1) % RING]).wrap_socket(plain)

    def answer() -> ssl.SSLSocket:
        return settings(ssl.PROTOCOL_TLS_SERVER, cards[(u - 1) % RING]).wrap_socket(incoming, server_side=True)

    if u == 0:
        out, back = ask(), answer()
        out.sendall(bytes(size))
    else:
        back, out = answer(), ask()
    frame, visits, begun = memoryview(bytearray(size)), 0, 0.0
    while True:
        have = 0
        while have < size:
            got = back.recv_into(frame[have:])
            if not got:
                return
            have += got
        if u == 0:
            if visits == 0:
                begun = time.perf_counter()
            if visits == rounds:
                pipe.send(time.perf_counter() - begun)
            visits += 1
        out.sendall(frame)


def hops() -> str:
    lines = [f"token     hops/s: netdp  bare gRPC  raw TLS   netdp over gRPC   over TLS      ({load()})"]
    for name, (numbers, rounds) in TOKENS.items():
        ways: tuple[Callable[[], float], ...] = (
            lambda numbers=numbers, rounds=rounds: netdp_ring(numbers, rounds),
            lambda numbers=numbers, rounds=rounds: bare_ring(grpc_place, 8 * numbers, rounds),
            lambda numbers=numbers, rounds=rounds: bare_ring(tls_place, 8 * numbers, rounds),
        )
        found = [[way() for way in ways] for _ in range(REPEATS)]
        ours, stream, tls = (statistics.median(column) for column in zip(*found, strict=True))
        lines.append(f"{name:8}{ours:15,.0f}{stream:11,.0f}{tls:9,.0f}{ours / stream:18.2f}{ours / tls:11.2f}")
    return "\n    ".join(["", *lines])


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def draft(n: int, numbers: int, spread: str = "flood", **options: Any) -> Any:
    """A masked mean of one number, or a histogram of many, among n parties on a random 6-regular graph."""
    from netdp import graphs
    from netdp.families.masked.protocol import MaskedSum
    from netdp.peers.study import Study
    from netdp.peers.study.task import Task

    names, graph = [f"p{u}" for u in range(n)], f"regular:{n},6,seed=0" if n > 6 else f"complete:{n}"
    timing = {"gather": PATIENCE, "patience": PATIENCE}
    if numbers == 1:
        task = Task(kind="mean", column="x", bounds=(0.0, 1.0))
    else:
        task = Task(kind="histogram", column="x", bounds=(0.0, 1.0), bins=numbers)
    common: dict[str, Any] = {"graph": graph, "delta": 1e-6, "colluders": max(1, n // 10), "timing": timing}
    if numbers <= 10**5:
        return Study.plan("benchmark", task, names, epsilon=1.0, spread=spread, **common, **options)
    # the grid that planning would choose is too fine for so many numbers: state a coarser one
    made = graphs.parse(graph)
    p = MaskedSum(made, sigma=1.0, grid=2.0**-17, sensitivity=task.sensitivity, dimension=numbers, spread=spread)
    return Study(
        name="benchmark", task=task, timing=timing, party=[{"name": name} for name in names],
        network={"edges": [(names[u], names[v]) for u, v in made.edges().tolist()]},
        privacy={"epsilon": 8.0, "delta": 1e-6, "colluders": max(1, n // 10)},
        protocol={"kind": "masked-sum", "sigma": p.sigma, "grid": p.step, "modulus": p.q, "spread": spread},
    )  # fmt: skip


def settled(study: Any, place: Path) -> tuple[Any, Path, dict[str, Path]]:
    """Keys, signatures and data for everybody."""
    from netdp.peers.setup import deal, settle

    complete, path = settle(study, place)
    (place / "all.csv").write_text("party,x\n" + "".join(f"{name},0.5\n" for name in complete.names))
    return complete, path, deal(complete, place / "all.csv", place)


def pages(pid: int | str = "self") -> dict[str, float]:
    """Rss, Pss and Uss (private pages) of a process, in MB."""
    found = dict.fromkeys(("Rss", "Pss", "Private_Clean", "Private_Dirty"), 0.0)
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split()[:2]
        if name[:-1] in found:
            found[name[:-1]] = int(value) / 1024
    return {"Rss": found["Rss"], "Pss": found["Pss"], "Uss": found["Private_Clean"] + found["Private_Dirty"]}


def weighed_party(home: str, study: str, data: str, events: Any, record: str | None = None) -> None:
    """A party's process that says how large it is when it holds the answer."""
    from netdp.peers.launch import party_process
    from netdp.peers.peer import Peer

    conclude = Peer._conclude

    def weighed(self: Any, outcome: Any) -> dict[str, Any]:
        told = conclude(self, outcome)
        events.send_bytes(json.dumps({"event": "note", "text": "weight " + json.dumps(pages())}).encode())
        return told

    Peer._conclude = weighed  # type: ignore[method-assign]
    party_process(home, study, data, events, record)


ALONE = """
import sys
from pathlib import Path
from netdp.peers.peer import prepare, run_peer
def pages():
    return max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
peer = prepare(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
print(pages(), flush=True)
run_peer(peer)
print(pages(), flush=True)
"""


def memory() -> str:
    from netdp.peers.launch import up

    with folder() as place:
        study, path, files = settled(draft(PEERS, 1), place)
        result = up(study, path, files, place, restart=False, target=weighed_party)
        found = [json.loads(note.split("weight ")[1]) for note in result.notes if "weight " in note]
        middle = {name: statistics.median(one[name] for one in found) for name in ("Pss", "Uss", "Rss")}
    with folder() as place:
        study, path, files = settled(draft(3, 1), place)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", ALONE, str(place / name), str(path), str(files[name])],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in study.names
        ]
        try:
            alone = [[float(line) for line in one.communicate(timeout=LONGEST)[0].split()] for one in running]
        finally:
            for one in running:
                one.kill()
                one.wait()
        ready, most = (statistics.median(column) for column in zip(*alone, strict=True))
    return (
        f"{PEERS} peers of a fork server, at the answer: PSS {middle['Pss']:.0f} MB, USS {middle['Uss']:.0f} MB each (RSS "
        f"{middle['Rss']:.0f} MB, most of it shared); a peer that runs alone: RSS {ready:.0f} MB before its first link, "
        f"{most:.0f} MB at most   (asked: 60 MB)"
    )


# ── seconds of a round ────────────────────────────────────────────────────────────────────────────────────────────────


def timed_party(home: str, study: str, data: str, events: Any, record: str | None = None) -> None:
    """A party's process that tells when it listens, when its roster is sealed and when it answers, and its CPU seconds."""
    from netdp.peers import launch as module
    from netdp.peers.desk import Desk
    from netdp.peers.peer import Peer

    when: dict[str, float] = {}
    spread, dumps = Desk.spread, json.dumps

    def sealed(self: Desk, attempt: int, roster: Any) -> Any:
        when.setdefault("sealed", time.monotonic())
        return spread(self, attempt, roster)

    class Noting:
        """The pipe to the parent, which sees the events pass."""

        def send_bytes(self, told: bytes) -> None:
            for event in ("listening", "outcome"):
                if event not in when and told.startswith(f'{{"event": "{event}"'.encode()):
                    when[event], when[f"{event} cpu"] = time.monotonic(), time.process_time()
                    if event == "outcome":
                        events.send_bytes(dumps({"event": "note", "text": "when " + dumps(when)}).encode())
            events.send_bytes(told)

    conclude = Peer._conclude

    def concluded(self: Peer, outcome: Any) -> dict[str, Any]:
        when["sent"] = self.meter.bytes["out"]
        return conclude(self, outcome)

    Desk.spread, Peer._conclude = sealed, concluded  # type: ignore[method-assign]
    module.party_process(home, study, data, Noting(), record)  # type: ignore[arg-type]


def one_round(n: int, numbers: int, spread: str) -> str:
    """Seconds from listening, seconds from the sealed roster, CPU seconds of a peer; or why it is not run."""
    from netdp.peers.launch import up
    from netdp.peers.messages import ItemKind

    begun = time.monotonic()
    study = draft(n, numbers, spread)
    body = study.running.longest()[ItemKind.CONTRIBUTION]
    wanted = n * (40e6 + n * body + 100 * numbers)  # everybody holds everything
    if wanted > MOST_BYTES:
        return f"not run: {n} peers that each hold {n} times {body / 1e6:.1f} MB need some {wanted / 1e9:.0f} GB"
    with folder() as place:
        study, path, files = settled(study, place)
        deadline = time.monotonic() + LONGEST
        result = up(study, path, files, place, restart=False, target=timed_party, watch=_until(deadline))
        if not result.ok:
            return f"failed: {list(result.gone.values())[:2]} {result.notes[-2:]}"
        found = [json.loads(note.split("when ")[1]) for note in result.notes if "when " in note]
        answered = max(one["outcome"] for one in found)
        listening = answered - max(one["listening"] for one in found)
        sealed = answered - min(one["sealed"] for one in found)
        cpu = statistics.median(one["outcome cpu"] - one["listening cpu"] for one in found)
        return f"{listening:9.2f}{sealed:9.2f}{cpu:10.2f}{result.seconds['listening']:11.1f}{time.monotonic() - begun:8.1f}"


def _until(deadline: float) -> Callable[[Any], None]:
    def watch(_: Any) -> None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done in {LONGEST:g} s")

    return watch


ROUNDS = size(
    [
        (10, 1, "flood"), (10, 1, "average"), (10, 10**4, "flood"), (10, 10**6, "flood"), (50, 1, "flood"), (50, 1, "average"),
        (50, 10**4, "flood"), (50, 10**6, "flood"), (200, 1, "flood"), (200, 1, "average"), (200, 10**4, "flood"),
        (200, 10**6, "flood"),
    ],
    quick=[(4, 1, "flood")],
)  # fmt: skip


def rounds() -> str:
    lines = [
        "peers    numbers  spread    listening   sealed  CPU a peer  started in   in all   (s; to the last answer)"
    ]
    for n, numbers, spread in ROUNDS:
        try:
            found = one_round(n, numbers, spread)
        except TimeoutError as problem:
            found = str(problem)
        lines.append(f"{n:5}{numbers:11,}  {spread:8}{found}   {load()}")
        print("    " + lines[-1], file=sys.stderr, flush=True)
    return "\n    ".join(["", *lines])


def one_run(n: int, threshold: int | None) -> tuple[float, float, float]:
    """Seconds from all listening to the last answer; processor seconds, and bytes sent, of a party in the middle."""
    from netdp.peers.launch import up
    from netdp.report.run import troubles

    with folder() as place:
        study, path, files = settled(draft(n, 1, threshold=threshold), place)
        watch = _until(time.monotonic() + LONGEST_PAIR)
        result = up(study, path, files, place, restart=False, target=timed_party, watch=watch)
    if not result.ok:
        raise RuntimeError(f"{n} peers came to no common answer: {'; '.join(troubles(result))}")
    found = [json.loads(note.split("when ")[1]) for note in result.notes if "when " in note]
    took = max(one["outcome"] for one in found) - max(one["listening"] for one in found)
    cpu = statistics.median(one["outcome cpu"] - one["listening cpu"] for one in found)
    return took, cpu, statistics.median(one["sent"] for one in found)


LONGEST_PAIR = 400.0

PAIRS = size({10: 5, 50: 3, 200: 1}, quick={4: 1})
"""How many peers, and how often both ways are run."""


def survival() -> str:
    lines = [
        "peers  threshold   seconds  CPU s a peer  CPU s in all   KB a peer   KB a link, both ways        (one attempt / attempts)"
    ]
    for n, repeats in PAIRS.items():
        pairs, links = [], draft(n, 1).graph.m
        try:
            for _ in range(repeats):
                pairs.append((one_run(n, 0), one_run(n, None)))
        except (TimeoutError, RuntimeError) as problem:
            lines.append(f"{n:5}  {problem}   {load()}")
            continue
        for name, column in (("none", 0), (str(draft(n, 1).running.threshold), 1)):
            took, cpu, sent = (statistics.median(pair[column][k] for pair in pairs) for k in range(3))
            lines.append(
                f"{n:5}{name:>11}{took:10.2f}{cpu:14.3f}{n * cpu:14.1f}{sent / 1e3:12.0f}{n * sent / links / 1e3:14.0f}"
            )
        took, cpu, sent = (statistics.median(one[k] / old[k] for old, one in pairs) for k in range(3))
        lines.append(f"{n:5}{'ratio':>11}{took:10.1f}{cpu:14.1f}{cpu:14.1f}{sent:12.1f}{sent:14.1f}   {load()}")
        print("\n".join("    " + line for line in lines[-3:]), file=sys.stderr, flush=True)
    return "\n    ".join(["", *lines])


CASES = {"a": hops, "b": memory, "c": rounds, "d": survival}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
