"""Recordings of whole peers in memory, on a virtual clock: folders as `netdp up --folder DIR --record DIR` leaves them behind."""

import asyncio
import csv
import struct

import numpy as np

from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, decode, encode
from netdp.peers.peer import Peer
from netdp.peers.recordings.recording import frames_in
from netdp.peers.study import Study
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock


def study_of(folder, task, n, protocol, *, graph=None, nonce="1" * 32, curator=False, **privacy):
    """A study with these settings as they are, written into a folder with the homes of its parties; keys that are there stay."""
    names = [f"p{u}" for u in range(n)] + ["curator"] * curator
    people = [
        Identity.load(folder / name) if (folder / name / "keys").exists() else Identity.create(folder / name, name)
        for name in names
    ]
    draft = Study(
        name="recorded", task=task.model_dump(mode="json", by_alias=True), party=[{"name": name} for name in names[:n]],
        network={"graph": graph or f"complete:{n}"}, timing={"gather": 60.0, "patience": 20.0}, protocol=protocol,
        privacy={"epsilon": 1e6, "delta": 1e-6, "colluders": 1, **privacy}, **({"curator": {"name": "curator"}} if curator else {}),
    )  # fmt: skip
    study = draft.complete(
        [one.card for one in people], [f"127.0.0.1:{7001 + u}" for u in range(len(names))], nonce=nonce
    )
    study.write(folder / "study.toml")
    return study


def deal(folder, study, tables):
    """Write everybody's rows, dictionaries, into its home."""
    for name, rows in zip(study.names, tables, strict=True):
        with open(folder / name / "data.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, study.task.read)
            writer.writeheader()
            writer.writerows(rows)


def run(folder, study, *, vanishes=None, delay=0.01):
    """One run of all participants, recorded into the folder; one of them may vanish when it is about to contribute."""
    clock, told = VirtualClock(longest=1e9), {}

    async def life(network, u):
        name, gone = study.everybody[u], asyncio.Event()

        def transport(receiver):
            made = network.transport(u, receiver)
            inner = made.send

            async def send(to, frame):
                own = (one for one in decode(frame) if isinstance(one, Item) and one.key.author == u)
                if u == vanishes and any(one.key.kind == ItemKind.CONTRIBUTION for one in own):
                    gone.set()
                    await asyncio.sleep(1e6)
                await inner(to, frame)

            made.send = send
            return made

        identity = Identity.load(folder / name)
        rows = study.task.rows(folder / name / "data.csv") if u < study.n else np.zeros((0, study.task.dimension))
        with Store.open(folder / name / "peer.db", sign=identity.sign) as store:
            record = folder / f"{name}.frames"
            running = asyncio.ensure_future(
                Peer(identity, study, store, rows, transport, clock=clock, record=record).run()
            )
            leaving = asyncio.ensure_future(gone.wait())
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if not gone.is_set():
                told[u] = running.result()
                return
            network.crash(u)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def everybody():
        count = len(study.everybody)
        edges = sorted({tuple(sorted((u, v))) for u in range(count) for v in study.neighbours(u)})
        network = MemoryNetwork(count, clock, edges=edges, delay=delay)
        await asyncio.gather(*(life(network, u) for u in range(count)))

    clock.run(everybody())
    return told


def rewrite(path, change):
    """Every frame of a file through `change(to, messages)`, which gives messages, bytes, or None for as it was."""
    out = []
    for to, _, frame in frames_in(path):
        made = change(to, decode(frame))
        made = frame if made is None else encode(made) if isinstance(made, list) else made
        out.append(struct.pack("<II", to, len(made)) + made)
    path.write_bytes(b"".join(out))
