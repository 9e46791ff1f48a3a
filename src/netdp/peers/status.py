"""What a peer is doing, for its owner: a small file in its home, replaced whole, and what can be said of it from outside.

A running peer writes `status.json` (mode 600) about once a second if anything changed, and every `BEAT` seconds if not. It
holds names of parties, numbers and words of a closed list (`netdp.peers.events`): no values, no answers, no keys. Proofs of
cheating are kept beside it, in `evidence.json`: what somebody signed, in public, twice.

**Running or not** is not what the file says but who holds the lock of the home: the system gives that back when a process
dies, however it dies. So `look` can tell a peer that runs, one that runs but has not written for a while (stopped, swapped
out, or busy), one that ended in order, and one that was killed; of the last two it tells the last known state.

The file is a convenience. If it cannot be written (full disk) the peer goes on without. `Followers` writes it beside a log and a
trace, where these are wanted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp import __version__
from netdp.peers.events import KINDS, PeerEvent, Statement, fields_of

if TYPE_CHECKING:
    from netdp.peers.events import Log
    from netdp.peers.peer import Peer
    from netdp.peers.trace import Trace

FILE = "status.json"

EVIDENCE = "evidence.json"
"""Beside it: proofs that somebody signed two different things, for whoever has the study (`netdp evidence verify`)."""

BEAT = 10.0
"""Seconds after which the file is written again though nothing changed."""

LATE = 6 * BEAT
"""Seconds without a word after which a running peer is called silent."""

PROOF = ("study", "party", "kind", "attempt", "index", "said")
"""What is kept of a proof."""

SHOWN = 8
"""Names that are listed; of more, how many."""


class Standing:
    """What is known of a running peer, and the file that says it.

    Feed it what the peer reports (it can be called), and `refresh` it now and then with what the party knows.
    """

    def __init__(self, home: Path, *, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = Path(home) / FILE, now
        self._written: tuple[dict[str, Any], float] = ({}, float("-inf"))
        before = _read(self._path)
        self._before = before if isinstance(before, dict) else {}
        self._names: frozenset[str] = frozenset()
        self.state: dict[str, Any] = {"pid": os.getpid(), "started": round(now(), 3), "phase": "preparing"}

    @property
    def starts(self) -> int:
        """How often this study was started from this home, as far as the file remembers."""
        return int(self.state.get("starts", 1))

    def begin(
        self, party: str, study: str, digest: bytes, neighbours: list[str], everybody: Iterable[str] = ()
    ) -> None:
        """The peer is made and will take part in this study; `everybody` may be named in the file."""
        self._names = frozenset(everybody)
        same = self._before.get("hash") == digest.hex()
        starts = self._before.get("starts", 0) if same else 0
        moment = round(self._now(), 3)
        self.state |= {
            "party": party, "study": study, "hash": digest.hex(), "phase": "starting", "progress": moment,
            "starts": 1 + (starts if type(starts) is int and 0 <= starts < 10**9 else 0),
            "linked": [], "unlinked": dict.fromkeys(neighbours, moment),
        }  # fmt: skip
        self.write()

    def __call__(self, event: PeerEvent) -> None:
        """What the peer reports."""
        kind, state = event["event"], self.state
        fields = fields_of(event, {*self._names, *state.get("linked", ()), *state.get("unlinked", ())})
        moment = round(self._now(), 3)
        if kind == "listening":
            state["phase"] = "running"
        elif kind == "linked" and "peer" in fields:
            state.setdefault("unlinked", {}).pop(fields["peer"], None)
            state["linked"] = sorted({*state.get("linked", ()), fields["peer"]})
        elif kind == "lost" and "peer" in fields:
            state["linked"] = [name for name in state.get("linked", ()) if name != fields["peer"]]
            state.setdefault("unlinked", {})[fields["peer"]] = moment
        elif kind in ("refused", "note"):
            counts = state.setdefault("refused" if kind == "refused" else "notes", {})
            word = fields.get("reason", "other")
            if kind == "note" and "peer" in fields:  # somebody is accused by name, once
                word += f" by {fields['peer']}"
            counts[word] = counts.get(word, 0) + 1
        elif kind == "evidence":
            if "peer" in fields:
                proofs = state.setdefault("proofs", {})
                proofs[fields["peer"]] = proofs.get(fields["peer"], 0) + 1
            keep_evidence(self._path.parent, [{key: event.get(key) for key in PROOF}])
        elif kind == "signed":
            state.setdefault("outcome", {}).update(fields)
        elif kind == "status":
            self._progress({key: value for key, value in fields.items() if key != "dropped"})
        elif kind == "outcome":
            state["outcome"] = fields
            state["phase"] = "leaving" if fields.get("ok") else "ending"
            state["progress"] = moment
        elif kind == "stopping":
            state["phase"] = "stopping"
        if kind in ("outcome", "stopping", "evidence", "signed"):
            self.write()

    def refresh(self, status: Mapping[str, Any], waiting: list[str], contributed: int) -> None:
        """How far the party is, and for whom it waits."""
        self._progress(fields_of({"event": "status", **status}))
        shown = waiting[:SHOWN]
        self.state |= {"waiting": shown, "waiting_more": len(waiting) - len(shown), "contributed": contributed}
        self.write(lazily=True)

    def end(self, code: int, contributed: int, reason: Statement | None = None) -> None:
        """The last word: with which exit status, after how many contributions, and why."""
        self.state |= {"phase": "ended", "exit": code, "contributed": contributed, "ended": round(self._now(), 3)}
        if reason is not None:
            self.state["reason"] = reason.code
        self.write()

    def _progress(self, fields: dict[str, Any]) -> None:
        if any(self.state.get(key) != value for key, value in fields.items()):
            self.state["progress"] = round(self._now(), 3)
        self.state |= fields

    def write(self, *, lazily: bool = False) -> None:
        """Replace the file; lazily: only if something changed, or the last time was long ago."""
        before, when = self._written
        moment = self._now()
        if lazily and self.state == before and moment < when + BEAT:
            return
        with contextlib.suppress(OSError):  # a full disk: the owner sees an older state, with its time
            _replace(self._path, {**self.state, "written": round(moment, 3)})
        self._written = (json.loads(json.dumps(self.state)), moment)


def words_of(proof: Mapping[str, Any]) -> str:
    """What was signed twice, in words.

    >>> words_of({"kind": "contribution", "attempt": 1, "index": 0}), words_of({"kind": "prepare", "attempt": 2, "index": 3})
    ('two different contributions to attempt 1', 'two different prepares (number 3) in attempt 2')
    """
    kind, attempt, index = (proof.get(key) for key in ("kind", "attempt", "index"))
    if kind not in KINDS or type(attempt) is not int or type(index) is not int:
        return "two different things"
    number = f" (number {index})" if index else ""
    return f"two different {PLURALS.get(kind, kind + 's')}{number} {'to' if kind == 'contribution' else 'in'} attempt {attempt}"


PLURALS = {"keys": "keys", "reveal": "sets of revealed shares"}
"""Kinds of items that do not take an s."""


def keep_evidence(home: Path, found: list[dict[str, Any]]) -> None:
    """Add proofs to those that a home keeps, each once."""
    known = _read(home / EVIDENCE)
    kept = known if isinstance(known, list) else []
    fresh = [one for one in found if one not in kept]
    if fresh:
        with contextlib.suppress(OSError):  # a full disk: the proof is in the outcome, and with the others
            _replace(home / EVIDENCE, [*kept, *fresh])


def _replace(path: Path, content: Any) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(content, file, allow_nan=False)
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes()[: 1 << 24])
    except (OSError, ValueError):
        return None


# ── from outside ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Look:
    """What can be said of a home's peer.

    running  whether a process holds the lock
    state    the last known state, if it is of this home
    """

    running: bool
    pid: int | None
    state: dict[str, Any] = field(default_factory=dict)
    now: float = 0.0

    @property
    def word(self) -> str:
        """running, silent, ended, killed or never."""
        if self.running:
            ours = self.state.get("pid") == self.pid and "written" in self.state
            return "running" if not ours or self.now - self.state["written"] < LATE else "silent"
        if not self.state:
            return "never"
        return "ended" if self.state.get("phase") == "ended" else "killed"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"running": self.running, "status": self.word, "pid": self.pid, "last": self.state or None}


def look(home: Path, *, now: Callable[[], float] = time.time) -> Look:
    """Whether a home's peer runs, and what it last said. Changes nothing."""
    pid = holder(home / "peer.db")
    state = _read(home / FILE)
    known = sound_state(state) if isinstance(state, dict) and type(state.get("pid")) is int else {}
    if pid is not None and known.get("pid") not in (pid, None) and pid > 0:
        known = {}  # another program (a ledger command) holds the lock, or the peer has not written yet
    return Look(pid is not None, pid or None, known, now())


def sound_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """What of a file can be shown: a damaged one shows less, and what does not belong on a terminal is left out."""
    return {key: value for key, value in state.items() if _fits(key, value)}


def _fits(key: str, value: Any) -> bool:
    if key in ("linked", "waiting"):
        return isinstance(value, list) and all(map(_is_word, value))
    if key in ("unlinked", "refused", "notes", "proofs"):
        return isinstance(value, dict) and all(_is_word(one) and _is_number(n) for one, n in value.items())
    if key == "outcome":
        return isinstance(value, dict) and all(_is_word(one) or _is_number(one) for one in value.values())
    return _is_word(value) if key in ("phase", "party", "study", "hash", "reason") else _is_number(value)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e15


def holder(path: Path) -> int | None:
    """The id of the process that holds the lock of a store; 0 if it cannot be read; None if nobody does.

    The lock is asked for, shared, and given back at once; who wants it in that instant tries again (`locked`).
    """
    try:
        lock = os.open(f"{path}.lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        with contextlib.suppress(ValueError, OSError):
            return int(os.pread(lock, 20, 0).decode("ascii", "replace").strip())
        return 0
    finally:
        os.close(lock)


def lines(found: Look, home: Path) -> list[str]:
    """The same in words."""
    state, now = found.state, found.now
    by = f" (process {found.pid})" if found.pid else ""
    first = {
        "running": f"running{by}",
        "silent": f"running{by}, but without a word for {_span(now - state.get('written', now))}: stopped, or very busy",
        "ended": f"not running: it ended {_ago(state.get('ended'), now)} with status {state.get('exit')}",
        "killed": "not running: its process was killed or the machine went down; start it again, and it goes on",
        "never": f"not running, and nothing is known of a run in {home}",
    }[found.word]
    if found.running and not state:
        return [first, "It has not said yet what it does, or another command uses the home."]
    out = [first]
    if not {"study", "hash", "party"} <= state.keys():
        return out if found.word != "ended" or "reason" not in state else [*out, f"reason      {state['reason']}"]
    again = f", started {state['starts']} times" if state.get("starts", 1) > 1 else ""
    out.append(f'study       "{state["study"]}" {state["hash"][:16]}…, as {state["party"]}{again}')
    if not found.running:
        out.append(f"last known  {_ago(state.get('written'), now)}:")
    if found.word != "ended":  # who ended in order has closed its links
        out += _link_lines(state, now if found.running else state.get("written", now))
    if "attempt" in state:
        out.append(
            f"attempt     {state['attempt']}: {state.get('votes', 0)} votes, {state.get('contributions', 0)} contributions here"
        )
    if "iteration" in state and "of" in state:
        rate = f", {state['rate']:.2g} a second" if state.get("rate") and found.running else ""
        out.append(f"training    iteration {state['iteration']} of {state['of']}{rate}")
    if state.get("waiting") and "outcome" not in state:
        more = f" and {state['waiting_more']} more" if state.get("waiting_more") else ""
        out.append(
            f"waiting     for {', '.join(state['waiting'])}{more}; nothing new for {_span(now - state.get('progress', now))}"
        )
    if "contributed" in state:
        times = {0: "nothing so far", 1: "once"}.get(state["contributed"], f"{state['contributed']} times")
        if state["contributed"] and "of" in state and "iteration" in state:  # it may be at the next one
            times = f"up to {min(state['iteration'] + 1, state['of']):,} of {state['of']:,} steps"
        out.append(f"published   {times}")
    if (outcome := state.get("outcome")) is not None:
        if outcome.get("ok"):
            said = f"the answer is here (attempt {outcome.get('attempt')}, {outcome.get('parties')} parties)"
        else:
            said = f"ended without an answer: {outcome.get('reason', 'other')}"
        if outcome.get("reason") == "out-of-reach":
            said = "the answer is withheld: honest parties cannot have come to it (out-of-reach)"
        if outcome.get("signed"):
            said += f", signed by {outcome['signed']}"
        if outcome.get("worse"):
            said += "; WORSE THAN PROMISED, the ledger holds the true cost"
        waits = " ; staying for the neighbours" if found.running and state.get("phase") == "leaving" else ""
        out.append(f"outcome     {said}{waits}".replace(" ;", ";"))
    if state.get("proofs"):
        names = ", ".join(f"{name} ×{count}" for name, count in sorted(state["proofs"].items()))
        out.append(f"PROVED      signed two different things: {names}")
        out.append(f"            netdp evidence verify {home / EVIDENCE} --study STUDY")
    for what in ("refused", "notes"):
        if state.get(what):
            out.append(f"{what:<12}" + ", ".join(f"{word} ×{count}" for word, count in sorted(state[what].items())))
    if state.get("reason"):
        out.append(f"reason      {state['reason']}")
    return out


def _link_lines(state: Mapping[str, Any], now: float) -> list[str]:
    linked, unlinked = state.get("linked", []), state.get("unlinked", {})
    out = [f"links       {len(linked)} of {len(linked) + len(unlinked)}"]
    for name, since in sorted(unlinked.items(), key=lambda one: one[1])[:SHOWN]:
        out.append(f"  without   {name}, for {_span(now - since)}")
    if len(unlinked) > SHOWN:
        out.append(f"  without   {len(unlinked) - SHOWN} more")
    return out


def _span(seconds: float) -> str:
    """A stretch of time in words.

    >>> _span(3), _span(200), _span(9000), _span(200000)
    ('3 s', '3 min', '2.5 h', '2.3 days')
    """
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _ago(moment: Any, now: float) -> str:
    return "at an unknown time" if not isinstance(moment, int | float) else f"{_span(now - moment)} ago"


class Followers:
    """Everybody who writes down what a peer reports. Give it to the peer as its `report`."""

    def __init__(self, standing: Standing, log: Log | None = None, trace: Trace | None = None) -> None:
        self.standing, self.log, self.trace = standing, log, trace
        self.began = time.monotonic()

    @property
    def _lines(self) -> list[Callable[[PeerEvent], None]]:
        return [one for one in (self.log, self.trace) if one is not None]

    def __call__(self, event: PeerEvent) -> None:
        self.standing(event)
        for write in self._lines:
            write(event)
            if event["event"] == "outcome" and (spent := event.get("spent")):
                for size, epsilon in spent["epsilon"].items():
                    write({
                        "event": "spent", "contributions": spent["contributions"], "epsilon": epsilon, "against": int(size),
                        "delta": spent["delta"],
                    })  # fmt: skip

    def begin(self, peer: Peer) -> None:
        """The peer is made: say who it is."""
        study, name = peer.study, peer.identity.card.name
        neighbours = [study.everybody[u] for u in study.neighbours(peer.me)]
        self.standing.begin(name, study.name, study.hash, neighbours, study.everybody)
        if self.log is not None:
            self.log.about(name, study.hash, study.everybody)
        self({
            "event": "starting", "version": __version__, "parties": study.n, "neighbours": len(neighbours),
            "contributed": contributed(peer), "starts": self.standing.starts,
        })  # fmt: skip

    def refresh(self, peer: Peer) -> None:
        """How far it is, for whom it waits."""
        waiting = [peer.study.everybody[u] for u in peer.party.waiting_for]
        self.standing.refresh(peer.party.status, waiting, contributed(peer))

    def close(self, reason: Statement | None = None) -> None:
        """It did not begin."""
        for write in self._lines:
            if reason is not None:
                write({"event": "failed", "reason": reason})
        self._close()

    def end(self, code: int, entries: int, reason: Statement | None = None) -> None:
        """It is over."""
        if reason is not None:
            self({"event": "failed", "reason": reason})
        self({
            "event": "stopped", "exit": code, "contributed": entries, "seconds": time.monotonic() - self.began,
        })  # fmt: skip
        self.standing.end(code, entries, reason)
        self._close()

    def _close(self) -> None:
        for one in (self.log, self.trace):
            if one is not None:
                one.close()


def contributed(peer: Peer) -> int:
    """How often this party has published in its study."""
    from netdp.peers.ledger.entries import CORRECTS

    return sum(entry.attempt < CORRECTS for entry in peer.store.entries_of(peer.study.hash))
