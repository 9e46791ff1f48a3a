"""Real peers, all on this machine, each a process of its own: `python benchmarks/peers.py a b c d`.

(a) hops per second of a token of 8 KB and of 1 MB on a ring of 8: netdp (a ring sum, everything durable), a bare gRPC stream
    with the same settings, raw TLS sockets; medians of alternating runs, and ratios
(b) memory per peer: of 16 peers from one fork server at the end of a run (PSS: shared pages divided among those who share
    them; USS: pages of its own), and of one peer that runs alone (RSS)
(c) seconds of a masked sum of 1, 10⁴ and 10⁶ numbers among 10, 50 and 200 peers on a random 6-regular graph: from when all
    listen to the last answer, and the round itself, from the first sealed roster to the last answer
(d) what a peer does in such a run: CPU seconds, messages and frames, and where the CPU went

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

from measure import run_cases

RING = 8
TOKENS = {"8 KB": (1024, 150), "1 MB": (131_072, 16)}
"""How many numbers a token has, and how often it goes round."""
REPEATS = 3
PATIENCE = 150.0
BARE = 30.0
MOST_BYTES = 12e9
LONGEST = 180.0


def warm() -> None:
    import netdp.peers.up  # noqa: F401


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
    """A party's process, in which the first party notes when the token comes round the first time and when it is released."""
    import netdp.peers.hand as hand
    from netdp.peers.up import party_process

    class Timed(hand.Ring):
        moves: list[float] = []  # noqa: RUF012  one per process

        def advance(self, held: Any) -> Any:
            said = super().advance(held)
            if said.addressed:
                self.moves.append(time.perf_counter())
            if self.answer is not None and self.moves:
                spent = time.perf_counter() - self.moves[1]
                note = {"event": "note", "text": f"{len(self.moves) - 1} rounds in {spent}"}
                events.send_bytes(json.dumps(note).encode())
            return said

    if Path(home).name == "p0":
        hand.Ring = Timed  # type: ignore[misc]
    party_process(home, study, data, events, record)


def netdp_ring(numbers: int, rounds: int) -> float:
    """Hops per second, from when everybody has had the token once to its release."""
    from netdp.peers.up import deal, settle, up

    with folder() as place:
        study, path = settle(ring_study(numbers, rounds), place)
        (place / "all.csv").write_text("party,x\n" + "".join(f"{name},0.5\n" for name in study.names))
        result = up(study, path, deal(study, place / "all.csv", place), place, restart=False, target=timed_ring_party)
        notes = [note.split() for note in result.notes if " rounds in " in note]
        if not result.ok or len(notes) != 1:
            raise RuntimeError(f"the ring did not end well: {result.gone} {result.notes[:5]}")
        return int(notes[0][1]) * RING / float(notes[0][4])


def bare_ring(place_of_ring: Callable[..., None], size: int, rounds: int) -> float:
    """Hops per second of so many bytes where every process passes on what it gets and does nothing else."""
    from netdp.peers.identity import Identity
    from netdp.peers.up import PRELOADED, free_ports

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
        credentials = grpc.ssl_channel_credentials(pem(cards[after].certificate), me.tls_key_pem, me.tls_certificate_pem)
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


CASES = {"a": hops}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
