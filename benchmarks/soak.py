"""A soak: studies one after another among eight peers that live on, with deaths and cuts: `python benchmarks/soak.py --minutes 60`.

Eight processes, started once, each with its own keys, folder and ledger, run study after study: every protocol in turn, now
and then a gossip of 60 rounds on a ring. Four of them are killed (−9) in the middle of every third study and started again,
links are cut in every other one. Printed, every half minute: studies, seconds per study, and the memory of the four that
are never killed; in the end the trends: memory, as a line fitted to the second and to the last quarter of the studies (the
first is the warm-up: modules, tables and the allocator's reserves), and seconds per study in the first and in the last
third, by protocol.

A peer keeps nothing of a study that is over: the count of its Python objects, files and threads stays what it was. What
still creeps, 20 to 30 KB per study, is native: a ledger that is read as a whole, and is a row longer each time (18 KB while
it is read), and what gRPC and the system's allocator do not give back. `netdp peer run` ends after one study, and with it all.

Fails if a study ends without an answer at somebody, if a ledger does not verify, or if memory still grows steadily in the
last quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests" / "peers"))

import crew
import matrix
import numpy as np

from measure import few, size
from netdp.peers.identity import Identity
from netdp.peers.launch import PRELOADED
from netdp.peers.ledger.store import Store
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study

PEERS, LASTING, LONG = 8, 4, 60
LONGEST = 120.0
"""Seconds after which a study has failed."""
STEADY = 50.0
"""Kilobytes per study that memory may grow in the last quarter of a soak, as a trend, if that is at least forty studies."""


def host(home: str, pipe: Connection) -> None:
    """A process that runs one peer after another: told ["run", study, data], ["cut"], ["leave"] or ["end"]."""
    from netdp.peers import peer as peers
    from netdp.peers.events import Statement

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    crew.trust(home)
    now: list[Any] = []

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                order = json.loads(pipe.recv_bytes())
                if order[0] in ("cut", "leave"):
                    tell(cut if order[0] == "cut" else leave)
                else:
                    orders.append(order)
                    some.set()
        os._exit(0)

    def tell(act: Callable[[Any], None]) -> None:
        # a function of its own: a name in `listen`, which never ends, would keep the peer, and so gRPC every event loop
        for peer, loop in list(now):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(act, peer)

    def cut(peer: Any) -> None:
        for end in list(peer._transport._ends.values())[:2]:
            end.end(Statement("cut by the soak", "connection"))

    def leave(peer: Any) -> None:  # all have the answer: as `netdp up` does, do not wait for who may still come back
        peer.party._leave_by = 0.0
        peer._changed.set()

    orders: list[list[str]] = []
    some = threading.Event()
    threading.Thread(target=listen, daemon=True).start()
    while True:
        some.wait()
        some.clear()
        order = orders.pop(0)
        if order[0] == "end":
            os._exit(0)

        async def life(order: list[str] = order) -> dict[str, Any]:
            data = Path(order[2]) if order[2] else None
            peer = peers.prepare(Path(home), Path(order[1]), data, report=report)
            now.append((peer, asyncio.get_running_loop()))
            try:
                return await peer.run()
            finally:
                now.clear()
                peer.store.close()

        def report(event: dict[str, Any]) -> None:
            if event["event"] == "outcome":
                pipe.send_bytes(json.dumps({"outcome": event["ok"], "reason": event.get("reason")}).encode())

        try:
            asyncio.run(life())
            pipe.send_bytes(b'{"left": true}')
        except Exception as problem:
            pipe.send_bytes(json.dumps({"failed": f"{type(problem).__name__}: {problem}"}).encode())


class Soak:
    """The parent: starts, orders, kills, measures."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOADED))
        self.names = [f"p{u}" for u in range(PEERS)]
        self.hosts: dict[str, tuple[Any, Connection]] = {}
        (folder / "unchecked").touch()
        self.drafts: dict[str, Study] = {}
        self.deaths = self.cuts = self.studies = 0

    def draft(self, row: str) -> Study:
        if row not in self.drafts:
            kind = "gossip" if row == "long gossip" else row.partition(",")[0]
            options: dict[str, Any] = {"protocol": kind} | matrix.COMPANY.get(row, {}) | {"graph": f"complete:{PEERS}"}
            task = options.pop("task", crew.MEAN)
            with crew.roughly(options["protocol"]):
                kind = options.pop("protocol")
                draft = Study.plan("soak", task, self.names, epsilon=2.0, delta=1e-6, kind=kind, **options)
            if row == "long gossip":
                draft = draft.replace(protocol={"rounds": LONG}, network={"graph": f"ring:{PEERS}"})
            self.drafts[row] = draft.replace(timing={"gather": 100.0, "patience": 60.0})
        return self.drafts[row]

    def start(self, name: str) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=host, args=(str(self.folder / name), theirs), daemon=True)
        process.start()
        theirs.close()
        self.hosts[name] = process, ours

    def order(self, name: str, *order: str) -> None:
        self.hosts[name][1].send_bytes(json.dumps(order).encode())

    def study(self, row: str) -> float:
        """One study, with what befalls it; seconds until everybody had its outcome."""
        shutil.rmtree(self.folder / "study.signatures", ignore_errors=True)  # of who is in no other study
        with crew.roughly(self.draft(row).settings.kind):
            study, path = settle(self.draft(row).replace(nonce=""), self.folder)
        table = self.folder / "data.csv"
        table.write_text("party,x\n" + "".join(f"{name},{37 * u % 121}\n" for u, name in enumerate(self.names)))
        data = {name: str(file) for name, file in deal(study, table, self.folder).items()}
        everybody = list(study.everybody)
        for name in everybody:
            if name not in self.hosts:
                self.start(name)
        self.studies += 1
        began = time.monotonic()
        for name in reversed(everybody):
            self.order(name, "run", str(path), data.get(name, ""))
        troubles = []
        if self.studies % 3 == 0:
            troubles.append((began + self.chance.uniform(0.05, 0.6), "kill"))
        if self.studies % 2 == 0:
            troubles.append((began + self.chance.uniform(0.05, 0.6), "cut"))
        lacking, staying = set(everybody), set(everybody)
        while staying:
            for due, trouble in [one for one in troubles if one[0] <= time.monotonic()]:
                troubles.remove((due, trouble))
                if trouble == "cut":
                    self.order(self.chance.choice(self.names), "cut")
                    self.cuts += 1
                else:
                    name = self.chance.choice(self.names[LASTING:])
                    process, pipe = self.hosts[name]
                    process.kill()
                    process.join()
                    pipe.close()
                    self.start(name)
                    self.order(name, "run", str(path), data[name])
                    lacking.add(name)
                    staying.add(name)
                    self.deaths += 1
            for ready in wait([self.hosts[name][1] for name in staying], timeout=0.01):
                name = next(name for name in staying if self.hosts[name][1] is ready)
                told = json.loads(ready.recv_bytes())  # type: ignore[union-attr]
                if told.get("outcome") is False or "failed" in told:
                    raise AssertionError(f"{row}, study {self.studies}: {name}: {told}")
                lacking.discard(name)
                if "left" in told:
                    staying.discard(name)
            if not lacking and "seconds" not in locals():
                seconds = time.monotonic() - began
            if not lacking and not troubles and time.monotonic() > began + seconds + 1:
                for name in staying:
                    self.order(name, "leave")
            if time.monotonic() > began + LONGEST:
                raise AssertionError(f"{row}, study {self.studies}: {lacking or staying} after {LONGEST:g} s")
        return seconds

    def memory(self) -> float:
        """Of the peers that are never killed, the mean, in megabytes."""
        sizes = []
        for name in self.names[:LASTING]:
            text = Path(f"/proc/{self.hosts[name][0].pid}/status").read_text()
            sizes.append(int(text.split("VmRSS:")[1].split()[0]) / 1024)
        return statistics.mean(sizes)

    def end(self) -> None:
        for process, pipe in self.hosts.values():
            with contextlib.suppress(OSError, ValueError):
                process.kill()
                process.join()
                pipe.close()

    def verify(self) -> int:
        """Every ledger; how many entries there are in all."""
        entries = 0
        for name in self.names:
            with Store.open(self.folder / name / "peer.db", read_only=True) as store:
                entries += store.verify(Identity.load(self.folder / name).card).rows
        return entries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=size(10.0, quick=0.001))
    parser.add_argument("--kind", action="append", choices=[*matrix.protocols(), "long gossip"])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = arguments.kind or few([*matrix.protocols(), "long gossip"])
    with tempfile.TemporaryDirectory(prefix="netdp-soak-", ignore_cleanup_errors=True) as folder:
        soak = Soak(Path(folder), arguments.seed)
        try:
            return run(soak, rows, 60 * arguments.minutes)
        finally:
            soak.end()


def trend(sizes: list[float]) -> float:
    """Kilobytes per study: the slope of the line through these megabytes."""
    return 1024 * float(np.polyfit(range(len(sizes)), sizes, 1)[0]) if len(sizes) > 2 else 0.0


def run(soak: Soak, rows: list[str], seconds: float) -> int:
    began = time.monotonic()
    took: dict[str, list[float]] = {row: [] for row in rows}
    sizes: list[float] = []
    shown, window = began, []
    while time.monotonic() < began + seconds:
        row = rows[soak.studies % len(rows)]
        one = soak.study(row)
        took[row].append(one)
        window.append(one)
        sizes.append(soak.memory())
        if time.monotonic() >= shown + 30:
            shown = time.monotonic()
            middle, longest, load = statistics.median(window), max(window), os.getloadavg()[0]
            print(
                f"{shown - began:6.0f} s  {soak.studies:5} studies  median {middle:6.2f} s  longest {longest:6.2f} s  "
                f"memory {sizes[-1]:7.1f} MB  {soak.deaths} deaths, {soak.cuts} cuts, load {load:.0f}",
                flush=True,
            )
            window = []
    entries = soak.verify()
    quarter = len(sizes) // 4
    early, late = trend(sizes[quarter : 2 * quarter]), trend(sizes[-quarter:])
    print(f"\n{soak.studies} studies, all answered; {soak.deaths} deaths, {soak.cuts} cuts")
    print(f"{entries} entries, all ledgers verify")
    marks = [sizes[0], sizes[quarter], sizes[2 * quarter], sizes[-1]]
    print("memory of the lasting peers: {:.1f} MB at first, {:.1f} after a quarter, {:.1f} after half, {:.1f} at last; "
          "KB per study: {:+.0f} in the second quarter, {:+.0f} in the last".format(*marks, early, late))  # fmt: skip
    print(f"{'seconds per study':24}{'studies':>8}{'first third':>13}{'last third':>12}")
    for row, times in took.items():
        part = max(1, len(times) // 3)
        if times:
            first, last = statistics.median(times[:part]), statistics.median(times[-part:])
            print(f"{row:24}{len(times):8}{first:13.2f}{last:12.2f}")
    grows = late > STEADY and quarter >= 40
    if grows:
        print("memory grows")
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
