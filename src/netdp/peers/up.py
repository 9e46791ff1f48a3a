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
from functools import cached_property
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
from netdp.protocols import RingSum
from netdp.views import ExchangeLogs, Transcript
from netdp.views.token import TokenTranscript

from .audits.recorded import keep_beside
from .learned import Learned, learned_in
from .ledger.store import Store
from .settle import deal, settle, workplace
from .so_far import SoFar, together, training_words
from .study import Study
from .study.training import Training
from .trained import check_free, write_model
from .under_way import listed
from .walked import Walked, walked_in

ANSWERED, FAILED, REFUSED, ENDED = 0, 1, 2, 3
"""Exit codes of a party: it holds the answer; a failure (it is started again); it refused; the study ended without answer."""
RESTARTS = 10
"""A party is started again so often, at most."""
NOTES = 10_000
"""So many notes of all parties together are kept."""
LEAVING = 1.0
"""Seconds that parties get to leave by themselves once all hold the answer."""
PRELOADED = ("netdp.peers.peer", "netdp.peers.ledger.policy", "netdp.peers.transport.grpc", "netdp.peers.study.plan",
             "netdp.accounting", "netdp.mechanisms")  # fmt: skip

Watch = Callable[["Progress"], None]
Target = Callable[..., None]


@dataclass
class Progress:
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


@dataclass(frozen=True)
class UpResult:
    """What came of it: every party's outcome, who was started again, and who sent to whom."""

    study: Study
    outcomes: dict[str, dict[str, Any]]
    restarts: dict[str, int]
    gone: dict[str, str]
    """Parties without an outcome, and why."""
    notes: tuple[str, ...]
    seconds: dict[str, float]
    refused: frozenset[str] = frozenset()
    """Those of the parties that are gone who declined."""
    silent: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What parties without an outcome had spent, from their ledgers."""
    files: dict[str, Path] = field(default_factory=dict)
    """Of a training: where the model and its card were written."""
    bytes: dict[str, int] = field(default_factory=dict)
    """Of a training: what each party has sent, when it last told."""

    @property
    def answered(self) -> dict[str, dict[str, Any]]:
        """The outcomes of the parties that hold an answer."""
        return {name: told for name, told in self.outcomes.items() if told["ok"]}

    @property
    def ok(self) -> bool:
        """Whether everybody who is still there holds the answer, and all the same one."""
        agree = len({(told["attempt"], told["digest"]) for told in self.answered.values()}) == 1
        return agree and len(self.answered) == len(self.outcomes)

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer, as the first party that has one holds it."""
        return next((told["answer"] for told in self.answered.values() if told["answer"] is not None), None)

    @property
    def transcript(self) -> Transcript | TokenTranscript | ExchangeLogs:
        """Who sent to whom in which round of the attempt that gave the answer; of randomized gossip the parties' logs."""
        attempt = next((told["attempt"] for told in self.answered.values()), 0)
        if self.learned is not None:
            return self.learned.logs  # as mere edges, torn and late exchanges would look whole, and the loss too small
        if self.walked is not None:
            return self.walked.transcript
        return transcript_of(self.study, self._sent(), attempt)

    @cached_property
    def learned(self) -> Learned | None:
        """What each party really learned about each other one, for randomized gossip: from the exchanges that happened."""
        return learned_in(self.study, self.outcomes)

    @cached_property
    def walked(self) -> Walked | None:
        """Where tokens that walk really went, and what that gave away."""
        return walked_in(self.study, self.outcomes)

    @property
    def messages(self) -> Transcript:
        """The same as messages by round, whatever the protocol: for pictures and counts."""
        attempt = next((told["attempt"] for told in self.answered.values()), 0)
        if self.learned is not None and self.learned.logs.n == self.study.n and not self.learned.problem:
            return self.learned.transcript
        return messages_of(len(self.study.everybody), self._sent(), attempt)

    def _sent(self) -> dict[int, list[tuple[int, int, int]]]:
        return {self.study.index(name): told["sent"] for name, told in self.outcomes.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: result, guarantee, summary of the transcript."""
        study, first = self.study, next(iter(self.answered.values()), None)
        promised = study.promise()
        delta = study.privacy.delta
        spent = [told["spent"] for name, told in self.outcomes.items() if name in study.names]
        spent += [told for name, told in self.silent.items() if name in study.names]
        sizes = spent[0]["epsilon"] if spent else {}
        transcript = self.messages
        return {
            "study": {"name": study.name, "hash": study.hash.hex(), "parties": study.n, "task": study.task.describe()},
            "ok": self.ok,
            "result": self.answer,
            "attempt": None if first is None else first["attempt"],
            "roster": None if first is None else first["roster"],
            "total": None if first is None else first["total"],
            "guarantee": {
                "delta": delta,
                "colluders": study.privacy.colluders,
                "promised_epsilon": _plain(promised.worst_epsilon(delta)),
                "spent_epsilon": {k: _plain(max(one["epsilon"][k] for one in spent)) for k in sizes},
                "contributions": max((one["contributions"] for one in spent), default=0),
                "unit": str(study.task.unit),
                "claim": promised.claim.value,
                "assumptions": list(promised.assumptions),
            },
            "transcript": {"rounds": transcript.rounds, "messages": len(transcript)},
            **({"bytes_sent": dict(self.bytes)} if self.bytes else {}),
            **({} if self.learned is None else {"learned": self.learned.to_dict()}),
            **({} if self.walked is None else {"walked": self.walked.to_dict()}),
            "parties": {
                name: {
                    "ok": name in self.answered,
                    "contributed": self.outcomes[name]["contributed"] if name in self.outcomes else None,
                    "restarts": self.restarts.get(name, 0),
                    "reason": self.gone.get(name) or self.outcomes.get(name, {}).get("reason"),
                }
                for name in study.everybody
            },
            "notes": list(self.notes),
            "seconds": {name: round(spent, 3) for name, spent in self.seconds.items()},
            **({"files": {name: str(path) for name, path in self.files.items()}} if self.files else {}),
        }


def transcript_of(
    study: Study, sent: Mapping[int, Iterable[tuple[int, int, int]]], attempt: int
) -> Transcript | TokenTranscript:
    """The transcript of an attempt, from what each party has sent: (attempt, round, to).

    Of averages, gossip and rings it is the one that a simulation writes. A flood's rounds are the links that contributions
    had crossed before; which way came first is up to the wires.
    """
    found = messages_of(len(study.everybody), sent, attempt)
    if not isinstance(study.protocol(), RingSum):
        return found
    hops = [found.messages(t)[0].tolist() for t in range(found.rounds)]
    path = [*(u for u, _ in hops), hops[-1][1]] if hops else [0]
    return TokenTranscript(study.n, (np.array(path),))


def messages_of(n: int, sent: Mapping[int, Iterable[tuple[int, int, int]]], attempt: int) -> Transcript:
    """Who sent to whom in which round of an attempt."""
    rounds: dict[int, list[tuple[int, int]]] = {}
    for sender, messages in sent.items():
        for its_attempt, when, to in messages:
            if its_attempt == attempt:
                rounds.setdefault(when, []).append((sender, to))
    patterns = [np.array(rounds[t], dtype=np.int64) for t in sorted(rounds)]
    return Transcript(n, tuple(patterns), np.arange(len(patterns), dtype=np.int64))


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def party_process(home: str, study: str, data: str | None, events: Connection, record: str | None = None) -> None:
    """The life of one party's process; tells `events` what happens, as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    gc.freeze()  # what the fork server loaded stays shared: looking through it for garbage would copy it
    from .followed import Followers
    from .peer import prepare, run_peer
    from .status import Standing
    from .trace import Trace

    # whoever runs all parties may watch them (`netdp studio`)
    trace = Trace(Path(home))
    followers = Followers(Standing(Path(home)), trace=trace)

    def report(event: dict[str, Any]) -> None:
        followers(event)
        try:
            events.send_bytes(json.dumps(event).encode())
        except OSError:  # who started us is gone
            os._exit(FAILED)

    def give_up(problem: Exception) -> None:
        # a restart does not cure what was refused or cannot be read; a full disk, a port in use or a lost file it may
        refused = isinstance(problem, Refused | InvalidValue | FileFormatError)
        report({"event": "refused" if refused else "failed", "reason": str(problem), "final": True})
        os._exit(REFUSED if refused else FAILED)

    frames = None if record is None else Path(record)
    try:
        file = None if data is None else Path(data)
        peer = prepare(Path(home), Path(study), file, report=report, record=frames, trace=trace)
        followers.begin(peer)
        told = run_peer(peer, lambda: followers.refresh(peer))
        followers.end(ANSWERED if told["ok"] else ENDED, told["contributed"])
        if told["ok"]:
            write_model(peer.study, Path(home))
    except (NetdpError, OSError) as problem:
        give_up(problem)
    os._exit(ANSWERED if told["ok"] else ENDED)


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
    context.set_forkserver_preload(list(PRELOADED))
    progress = Progress(len(study.everybody), so_far=None if watch is None else SoFar(study).begin())
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
                if code in (ANSWERED, ENDED) or (name in progress.outcomes and not progress.lacking(names)):
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
    from .peer import spent

    try:
        with Store.open(home / "peer.db", read_only=True) as store:
            return spent(study, store)
    except (NetdpError, OSError):
        return None


def _listen(
    progress: Progress, study: Study, name: str, events: Connection, seconds: dict[str, float], started: float
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


def _plain(value: float) -> float | str:
    return value if np.isfinite(value) else "inf"


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


def exit_code(result: UpResult) -> int:
    """0: everybody who is there holds the same answer; 2: refused; 3: the study ended without one; 1: anything else."""
    if result.ok:
        return ANSWERED
    if result.outcomes:
        return ENDED if not result.answered else FAILED
    return REFUSED if result.refused else FAILED


__all__ = ["Progress", "UpResult", "exit_code", "run_study", "settle", "up"]
