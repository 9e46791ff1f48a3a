"""All parties of a study on this machine: each its own process with its own keys, folder and database, on loopback.

What a service manager does on a real machine is done here: a party that dies is started again (unless told not to), and
says the same things as before, because it reads them from its folder. The parties talk over the same encrypted links as
on many machines; this process only starts them, shows how far they are and collects what they hold in the end. It sees
no message between them.

Processes come from a fork server that has loaded everything once: two hundred of them are listening within seconds.
"""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
from netdp.mechanisms.discrete_gaussian import MANY
from netdp.peers.events import PeerEvent, statement_of
from netdp.peers.ledger.store import Store
from netdp.peers.outcome import FAILED, FINAL, REFUSED, UpResult, status_of
from netdp.peers.recordings.recording import keep_beside
from netdp.peers.runs import listed
from netdp.peers.setup import deal, settle, workplace
from netdp.peers.status import PROOF
from netdp.peers.study.progress import SoFar, check_free, together, training_words, write_model
from netdp.peers.study.study import Study
from netdp.peers.study.training import Training

RESTARTS = 10
"""A party is started again so often, at most."""

NOTES = 10_000
"""So many notes of all parties together are kept."""

LEAVING = 1.0
"""Seconds that parties get to leave by themselves once all hold the answer."""

RARELY = (20_000, 50, 100)
"""How seldom a party's process looks for garbage in circles, of which it makes little: it is a twentieth faster so."""

PRELOADED = ("netdp.peers.peer", "netdp.peers.ledger.policy", "netdp.peers.transport.grpc", "netdp.peers.study.planning",
             "netdp.protocols", "netdp.mechanisms")  # fmt: skip

FOR_SHARES = ("nacl.bindings",)
"""What it loads besides if the parties open their sum together."""

FOR_MANY = ("netdp.mechanisms.coin_kernels",)
"""What the fork server loads besides if the parties draw many numbers; for a few each of them would do without."""

Watch = Callable[["LaunchProgress"], None]

Target = Callable[..., None]


@dataclass
class LaunchProgress:
    """How far all parties are, for people who watch."""

    n: int
    listening: set[str] = field(default_factory=set)
    status: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    so_far: SoFar | None = None
    """Of a training: what its iterations have revealed."""

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Who of these may still come to an outcome."""
        return [name for name in names if name not in self.outcomes and name not in self.gone]

    @property
    def words(self) -> str:
        """One line."""
        linked = sum(status.get("links", 0) > 0 for status in self.status.values())
        held = min((status.get("contributions", 0) for status in self.status.values()), default=0)
        parts = [f"{len(self.listening)} of {self.n} listening", f"{linked} linked", f"all hold {held} contributions"]
        if (trained := together(self.status)) is not None:
            parts = [training_words(trained, self.so_far)]
        parts += [f"{len(self.outcomes)} have the answer"] if self.outcomes else []
        parts += [f"{sum(self.restarts.values())} restarts"] if self.restarts else []
        return ", ".join(parts)


def party_process(home: str, study: str, data: str | None, events: Connection, record: str | None = None) -> None:
    """The life of one party's process; tells `events` what happens, as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    gc.freeze()  # what the fork server loaded stays shared: looking through it for garbage would copy it
    gc.set_threshold(*RARELY)
    from netdp.peers.peer import prepare, run_peer
    from netdp.peers.status import Followers, Standing
    from netdp.peers.trace import Trace

    # whoever runs all parties may watch them (`netdp studio`)
    trace = Trace(Path(home))
    followers = Followers(Standing(Path(home)), trace=trace)

    def report(event: PeerEvent) -> None:
        followers(event)
        try:
            events.send_bytes(json.dumps(event).encode())
        except OSError:  # who started us is gone
            os._exit(FAILED)

    def give_up(problem: Exception) -> None:
        # a restart does not cure what was refused or cannot be read; a full disk, a port in use or a lost file it may
        refused = isinstance(problem, Refused | InvalidValue | FileFormatError)
        kind = "refused" if refused else "failed"
        report(cast(PeerEvent, {"event": kind, "reason": statement_of(problem), "final": True}))
        os._exit(REFUSED if refused else FAILED)

    frames = None if record is None else Path(record)
    try:
        file = None if data is None else Path(data)
        peer = prepare(Path(home), Path(study), file, report=report, record=frames, trace=trace)
        followers.begin(peer)
        told = run_peer(peer, lambda: followers.refresh(peer))
        followers.end(status_of(told), told["contributed"])
        if told["ok"]:
            write_model(peer.study, Path(home))
    except (NetdpError, OSError) as problem:
        give_up(problem)
    os._exit(status_of(told))


def up(
    study: Study,
    study_path: Path,
    data: Mapping[str, Path],
    folder: Path,
    *,
    restart: bool = True,
    watch: Watch | None = None,
    target: Target = party_process,
    record: Path | None = None,
    only: Iterable[str] | None = None,
) -> UpResult:
    """Run all parties (or `only` some) of a complete, signed study as processes, until each has an outcome or is gone.

    target   the function that a party's process runs; tests put one here that dies when it is told to
    record   a folder: every party appends the frames it sends to NAME.frames
    """
    started = time.monotonic()
    names = list(study.everybody if only is None else only)
    context = multiprocessing.get_context("forkserver")
    more = (FOR_MANY if study.task.dimension >= MANY else ()) + (
        FOR_SHARES if study.running.threshold is not None else ()
    )
    context.set_forkserver_preload([*PRELOADED, type(study.running).__module__, *more])
    progress = LaunchProgress(len(study.everybody), so_far=None if watch is None else SoFar(study).begin())
    running: dict[str, tuple[Any, Connection]] = {}
    refused: set[str] = set()
    again: dict[str, float] = {}  # who is to be started again, and when
    seconds: dict[str, float] = {}

    def start(name: str) -> None:
        ours, theirs = context.Pipe(duplex=False)
        frames = None if record is None else str(record / f"{name}.frames")
        file = str(data[name]) if name in data else None  # a curator has none
        process = context.Process(
            target=target, args=(str(folder / name), str(study_path), file, theirs, frames), daemon=True
        )
        process.start()
        theirs.close()
        running[name] = (process, ours)

    try:
        for name in sorted(
            names, key=study.index, reverse=True
        ):  # who is dialled before who dials: see transport/grpc.py
            start(name)
        all_done: float | None = None
        while running or again:
            for name in [name for name, when in again.items() if time.monotonic() >= when]:
                del again[name]
                start(name)
            conns = {ours: name for name, (_, ours) in running.items()}
            sentinels = {process.sentinel: name for name, (process, _) in running.items()}
            for ready in wait([*conns, *sentinels], timeout=0.1):
                if ready in conns:
                    _listen(progress, study, conns[ready], ready, seconds, started)
            for name in [sentinels[s] for s in wait(list(sentinels), timeout=0)]:
                process, ours = running.pop(name)
                _listen(progress, study, name, ours, seconds, started)
                ours.close()
                process.join()
                code = process.exitcode
                process.close()
                if code in FINAL or (name in progress.outcomes and not progress.lacking(names)):
                    pass
                elif code == REFUSED:
                    if name not in progress.outcomes:
                        progress.gone.setdefault(name, "refused")
                        refused.add(name)
                elif restart and progress.restarts.get(name, 0) < RESTARTS:
                    times = progress.restarts[name] = progress.restarts.get(name, 0) + 1
                    again[name] = time.monotonic() + min(0.05 * 2 ** (times - 1), 2.0)
                elif name not in progress.outcomes:
                    progress.gone.setdefault(name, f"died (exit {code})" if code >= 0 else f"killed (signal {-code})")
            time.sleep(1e-4 * len(running))  # looking at all of them costs: let news gather
            if watch is not None:
                watch(progress)
            # not those that died: what they had said before may be all that the others need
            if len(refused) > study.privacy.absent and not progress.outcomes and len(study.everybody) == len(names):
                progress.notes.append(f"ended: {len(refused)} parties are not there, and the study needs them")
                break
            if not again and all(name in progress.outcomes for name in running):
                all_done = all_done or time.monotonic()
                if time.monotonic() > all_done + LEAVING:
                    break
    finally:
        _end(running.values())
    seconds["all"] = time.monotonic() - started
    silent = [name for name in names if name not in progress.outcomes]
    return UpResult(
        study, progress.outcomes, progress.restarts, progress.gone, tuple(progress.notes), seconds,
        frozenset(refused), {name: told for name in silent if (told := _ledger_of(study, folder / name)) is not None},
        bytes={name: int(status["bytes"]) for name, status in progress.status.items() if "bytes" in status},
    )  # fmt: skip


def _ledger_of(study: Study, home: Path) -> dict[str, Any] | None:
    """What a party that told nothing had spent, from its ledger; None if it has none."""
    from netdp.peers.peer import spent

    try:
        with Store.open(home / "peer.db", read_only=True) as store:
            return spent(study, store)
    except (NetdpError, OSError):
        return None


def _listen(
    progress: LaunchProgress, study: Study, name: str, events: Connection, seconds: dict[str, float], started: float
) -> None:
    """Take in what a party tells."""
    with contextlib.suppress(EOFError, OSError):
        while events.poll():
            event = json.loads(events.recv_bytes())
            kind = event.pop("event")
            if kind == "listening":
                progress.listening.add(name)
                if len(progress.listening) == progress.n:
                    seconds.setdefault("listening", time.monotonic() - started)
            elif kind == "status":
                progress.status[name] = event
            elif kind == "outcome":
                if event["hash"] != study.hash.hex():
                    progress.gone[name] = "it ran another study"
                    continue
                progress.outcomes[name] = event
                seconds["answered"] = time.monotonic() - started
            elif kind == "signed" and name in progress.outcomes:
                progress.outcomes[name] |= {key: event[key] for key in ("signatures", "blamed")}
            elif kind == "evidence" and name in progress.outcomes:
                known = progress.outcomes[name].setdefault("evidence", [])
                proof = {key: event[key] for key in PROOF}
                known += [] if proof in known else [proof]
            elif kind == "note":
                if len(progress.notes) < NOTES:
                    progress.notes.append(f"{name}: {event['text']}")
            elif kind in ("refused", "failed"):
                who = f" {event['peer']}" if "peer" in event else ""
                progress.notes.append(f"{name}: {kind}{who}: {event['reason']}")
                if event.get("final"):
                    progress.gone[name] = event["reason"]


def _end(running: Iterable[tuple[Any, Connection]]) -> None:
    """End processes that are still there: ask, then insist."""
    left = list(running)
    for process, _ in left:
        with contextlib.suppress(ValueError, OSError):
            process.terminate()
    for process, ours in left:
        with contextlib.suppress(ValueError, OSError):
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        ours.close()


def run_study(
    path: Path,
    data: Path,
    folder: Path | None = None,
    *,
    restart: bool = True,
    watch: Watch | None = None,
    target: Target = party_process,
    record: Path | None = None,
    out: Path | None = None,
) -> UpResult:
    """`netdp up`: read a study or draft, make what it lacks, run all of it on this machine.

    out   of a training: the folder for the model and its card, which are in the parties' homes, too
    """
    draft = Study.read(path)
    if out is not None and not isinstance(draft.task, Training):
        raise InvalidValue(f"--out {out} is for a model, and this study asks for {draft.task.describe()}; leave it out")
    if out is not None:
        check_free(out, draft)
    with workplace(folder) as place:
        began = time.monotonic()
        if draft.is_complete:
            study, study_path = draft, path
            for name in study.everybody:
                if not (place / name / "keys").exists():
                    raise InvalidValue(
                        f"the study has keys already, and {place} holds none for {name}; give the folder with the parties' homes "
                        "(--folder), or a draft without keys"
                    )
        else:
            study, study_path = settle(draft, place)
        files = deal(study, data, place)
        if record is not None:
            keep_beside(record, study, study_path, files, folder)
        settled = time.monotonic() - began
        with listed(place, study.name):
            result = up(study, study_path, files, place, restart=restart, watch=watch, target=target, record=record)
        result.seconds["settling"] = settled
        for name in result.answered if isinstance(study.task, Training) else ():
            result.files.update(write_model(study, place / name, out) or {})
            break
        return result
