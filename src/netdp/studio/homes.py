"""The homes of peers as the studio watches them: which folder, which study, what was spent, what each party does now.

**The folder**: all homes that a `netdp up` keeps in one folder, or the home of one peer; and which study runs there.

**What was spent**, towards whom: ε of one study, and of all studies together. Read without leaving a mark.

Every number is an upper bound, as `netdp ledger show` prints it, computed again from the entries; a ledger whose chain is broken
is named instead of added up. Parties of one study often have the same entries but for their names, so what was computed once is
kept.

**The study**, which does not change while it runs: its question, its parties, where they are drawn, what was promised.

**Lines** are read as they are added to a file that another process writes, and moves aside when it is full (FILE → FILE.1).

**One party** as its home shows it: lines of its trace, its status file, and whether its process is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.peers.events import CODES, EVENTS, fields_of
from netdp.peers.ledger.database import mark_of
from netdp.peers.ledger.entries import CORRECTS, Entry, LedgerBroken, canonical, in_force, observers, total
from netdp.peers.ledger.store import Store
from netdp.peers.status import FILE as STATUS
from netdp.peers.status import LATE, holder, sound_state
from netdp.peers.study.study import Study
from netdp.peers.trace import FILE as TRACE
from netdp.peers.trace import STUDY as TRACED
from netdp.privacy.wording import readable
from netdp.report.network import placed


@dataclass(frozen=True)
class WatchedFolder:
    """A folder to watch. `me` is the party whose home it is, or None if it holds the homes of all."""

    path: Path
    me: str | None = None

    def home(self, name: str) -> Path:
        """Where the home of a party is, or would be."""
        return self.path if name == self.me else self.path / name

    def watched(self, study: Study) -> tuple[str, ...]:
        """Whose homes are watched."""
        return study.everybody if self.me is None else (self.me,)

    def newest_study(self) -> tuple[float, Path] | None:
        """The study that was begun here last, as (when it was written, its file): in the folder, or beside a trace."""
        found = [self.path / TRACED] if self.me is not None else []
        if self.me is None:
            found = [*self.path.glob("study*.toml"), *self.path.glob(f"*/{TRACED}")]
        dated = []
        for file in found:
            with contextlib.suppress(OSError):
                dated.append((file.stat().st_mtime, file))
        return max(dated, default=None)


def find_place(path: Path, study: Path | None = None) -> tuple[WatchedFolder, Study]:
    """What a folder is, and the study that runs there, or will; refuses what is neither a home nor a folder of homes."""
    path, given = Path(path), None if study is None else Study.read(study)
    if is_home(path):
        place = WatchedFolder(path, _party_of(path))
        if given is not None and place.me not in given.everybody:
            raise InvalidValue(f"{path} is the home of {place.me}, who is no party of {given.name!r} ({study})")
        return place, given if given is not None else _study_of(place)
    place = WatchedFolder(path)
    if given is not None:  # homes may still come
        if path.exists() and not path.is_dir():
            raise InvalidValue(f"{path} is no folder; name the folder of `netdp up --folder`, or a peer's home")
        return place, given
    if not path.is_dir():
        raise InvalidValue(
            f"{path} is no folder; name the folder of `netdp up --folder`, or a peer's home. If `netdp up` will make it, name its "
            "study, too"
        )
    found = _study_of(place)
    if not any(is_home(path / name) for name in found.everybody):
        raise InvalidValue(f"{path} holds a study, but the home of none of its parties; run `netdp up --folder {path}`")
    return place, found


def is_home(path: Path) -> bool:
    """Whether a folder is the home of a party: it has keys, or a ledger."""
    return (path / "keys").is_dir() or (path / "peer.db").is_file()


def _study_of(place: WatchedFolder) -> Study:
    newest = place.newest_study()
    if newest is not None:
        return Study.read(newest[1])
    if place.me is not None:
        raise InvalidValue(
            f"{place.path} does not say which study runs there: name the study file, too, or run its peer with --trace"
        )
    raise InvalidValue(
        f"{place.path} is neither a peer's home (it has no keys) nor a folder of `netdp up --folder` (it has no study.toml)"
    )


def _party_of(home: Path) -> str:
    """Whose home it is: as its status file or its card says, else its name."""
    for file, key in ((home / STATUS, "party"), (home / "card.json", "name")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            name = json.loads(file.read_bytes()[: 1 << 20])[key]
            if isinstance(name, str) and name:
                return name
    return home.resolve().name


def read_again(path: Path) -> Study | None:
    """A study file that may just be written; None if it cannot be read now."""
    try:
        return Study.read(path)
    except (NetdpError, FileFormatError, OSError):
        return None


NAMED = 40
"""Observers are listed by name where there are no more of them."""

_KEPT = 4096


class Ledgers:
    """Reads the ledgers of a study's parties when they have changed."""

    def __init__(self, study: Study) -> None:
        self._study, self._delta, self._unit = study, study.privacy.delta, str(study.task.unit)
        curator = study.running.has_curator
        planned = study.privacy.colluders + curator
        self.sizes = tuple(sorted({1, 2, planned} if study.n > 2 else {1, planned}))
        self._seen: dict[Path, tuple[Any, float]] = {}
        self._known: dict[tuple[str, int | str], float] = {}

    def changed(self, home: Path, now: float, every: float) -> bool:
        """Whether the file has changed since it was read, and was not read just now."""
        mark, when = self._seen.get(home, (None, float("-inf")))
        return now - when >= every and (home / "peer.db").exists() and mark_of(home / "peer.db") != mark

    def read(self, home: Path, now: float) -> dict[str, Any] | None:
        """What was spent; None if it cannot be told now."""
        file = home / "peer.db"
        mark = mark_of(file)
        still = not Path(f"{file}-shm").exists()  # read as a file that nobody changes: see Store.look
        try:
            with Store.look(file) as store:
                store.verify()  # totals of a broken ledger would mean nothing
                entries = store.entries()
        except LedgerBroken as broken:
            if still and mark_of(file) != mark:
                return None
            self._seen[home] = (mark, now)
            return {"rows": 0, "contributions": 0, "study": [], "all": [], "named": [], "problem": str(broken)}
        except (NetdpError, OSError):
            self._seen[home] = (None, now)
            return None
        if still and mark_of(file) != mark:
            return None
        self._seen[home] = (mark, now)
        ours = [entry for entry in entries if entry.study == self._study.hash.hex()]
        return {
            "rows": len(entries),
            "contributions": sum(entry.attempt < CORRECTS for entry in ours),
            "study": self._totals(ours),
            "all": self._totals(entries),
            "named": self._named(ours),
            "problem": None,
        }

    def _totals(self, entries: Sequence[Entry]) -> list[dict[str, Any]]:
        who = self._study.running.who
        return [{"against": k, "who": who(k), **self._epsilon(entries, k)} for k in self.sizes]

    def _named(self, entries: Sequence[Entry]) -> list[dict[str, Any]]:
        """By name, the most first, where it matters who looks."""
        if len(self._study.everybody) > NAMED or not any(entry.loss["kind"] == "profile" for entry in entries):
            return []
        found = [{"name": name, **self._epsilon(entries, name)} for name in observers(entries)]
        return sorted(found, key=lambda one: -math.inf if one["epsilon"] is None else -one["epsilon"])

    def _epsilon(self, entries: Sequence[Entry], against: int | str) -> dict[str, Any]:
        counted = in_force(entries)
        inside = [[entry.loss, entry.unit, len(entry.roster), against in entry.roster] for entry in counted]
        key = (hashlib.sha256(canonical(inside).encode()).hexdigest(), against)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = float(total(entries, against, self._unit).epsilon(self._delta))
        return told_epsilon(self._known[key])


def told_epsilon(value: float) -> dict[str, Any]:
    """An ε for the page: the number (None where nothing bounds it) and its text, rounded up.

    >>> told_epsilon(0.58351), told_epsilon(math.inf)
    ({'epsilon': 0.58351, 'text': '0.584'}, {'epsilon': None, 'text': 'no bound'})
    """
    if not math.isfinite(value):
        return {"epsilon": None, "text": "no bound"}
    return {"epsilon": value, "text": readable(value)}


ALL_HERE = "All these parties are on this machine, and so is all that they see; in a real study nobody sees all this."

ONE_HERE = "Only what {me} itself may see: the messages it sent and got, its links, and its own ledger."

DRAWN = 20_000
"""Links that are drawn; of more a picture would show nothing, and a page would load for long."""


def about(place: WatchedFolder, study: Study) -> dict[str, Any]:
    """The part of `Watch.first` that is about the study."""
    watched, running = set(place.watched(study)), study.running
    places = positions(study)
    how = study.settings
    return {
        "what": "up" if place.me is None else "home",
        "me": place.me,
        "eyes": ALL_HERE if place.me is None else ONE_HERE.format(me=place.me),
        "study": {
            "name": study.name,
            "hash": study.hash.hex() if study.is_complete else "",
            "complete": study.is_complete,
            "question": study.task.describe(),
            "protected": study.task.protected,
            "unit": str(study.task.unit),
            "delta": study.privacy.delta,
            "kind": how.kind,
            "spread": getattr(how, "spread", "flood") if how.kind == "masked-sum" else None,
            "how": running.how,
            "colluders": study.privacy.colluders,
            "attempts": study.privacy.attempts,
            "absent": study.privacy.absent,
            "n": study.n,
            "steps": running.most_steps(),
            "rounds": running.most_rounds() if how.kind in ("gossip", "shuffle") else 0,
            "visits": how.steps if how.kind.startswith("walk") else 0,
        },
        "parties": [
            {
                "name": name,
                "x": round(float(places[u, 0]), 4),
                "y": round(float(places[u, 1]), 4),
                "curator": u >= study.n,
                "mine": name in watched,
            }
            for u, name in enumerate(study.everybody)
        ],
        **links(study),
        "promised": [_stated(study)],
        "claim": None,
        "assumptions": [],
    }


def links(study: Study) -> dict[str, Any]:
    """Every pair of participants that are linked, once; of too many only how many there are."""
    near = [study.neighbours(u) for u in range(len(study.everybody))]
    count = sum(map(len, near)) // 2
    pairs = [[u, v] for u, others in enumerate(near) for v in others if u < v] if count <= DRAWN else []
    return {"links": count, "edges": pairs}


def positions(study: Study) -> FloatArray:
    """Where everybody is drawn, in the unit square; a curator beside it, on the right."""
    points = placed(study.graph)
    if len(study.everybody) == study.n:
        return points
    return np.vstack([points, [[1.25, 0.5]]])


def _stated(study: Study) -> dict[str, Any]:
    """What the study itself names."""
    against = study.privacy.colluders + study.running.has_curator
    return {
        "against": against,
        "who": study.running.who(against),
        **told_epsilon(study.privacy.epsilon),
        "stated": True,
    }


def promised(study: Study) -> dict[str, Any]:
    """What the study promises, and what is certified of it for single parties; with claim and assumptions, verbatim.

    May take long: on a walk over many links a minute.
    """
    terms, running = study.privacy, study.running
    stated, found = terms.colluders + running.has_curator, [_stated(study)]
    try:
        if (fewest := max(1, running.least_colluders + running.has_curator)) < stated:
            certified = running.worst_epsilon(fewest - running.has_curator, terms.delta)
            one = {"against": fewest, "who": running.who(fewest), **told_epsilon(certified), "stated": False}
            found.insert(0, one)
        promise = study.promise()
        return {"promised": found, "claim": promise.claim.value, "assumptions": list(promise.assumptions)}
    except NetdpError:  # too many coalitions to look at here: the study says no more
        return {"promised": found, "claim": None, "assumptions": []}


LONGEST = 1 << 16
"""Bytes: no honest line is longer."""

HEAD = 64
"""Bytes at its beginning by which a file is known again."""


class Tail:
    """Reads what is new, from FILE.1 on if that is there. Holds nothing open in between.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "trace.jsonl"
    >>> tail = Tail(path)
    >>> tail.read(100), path.write_text("one\\ntw"), tail.read(100), path.write_text("one\\ntwo\\n"), tail.read(100)
    ([], 6, [b'one'], 8, [b'two'])
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path, self._aside = Path(path), Path(f"{path}.1")
        self._inode, self._offset, self._rest = 0, 0, b""
        self._head = b""  # with what the file begins: a system gives the inode of a removed file to the next one
        self.skipped = 0
        """Pieces that were cut off or far too long."""
        self.behind = False
        """Whether there is more to read already."""

    def read(self, most: int) -> list[bytes]:
        """Whole lines that are new, from about so many bytes at most."""
        self.behind = False
        now, aside = _inode(self.path), _inode(self._aside)
        if now == 0:
            return []
        if self._inode == 0:
            self._turn_to(aside or now)
        elif self._inode not in (now, aside):  # it was moved aside twice, or replaced: what was between is gone
            self.skipped += 1
            self._turn_to(aside or now)
        where = self.path if self._inode == now else self._aside
        data = self._from(where, most)
        if where is self._aside and not self.behind:
            self._cut()
            self._turn_to(now)
            self.behind = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            self._cut()
        return lines

    def _from(self, path: Path, most: int) -> bytes:
        try:
            with open(path, "rb") as file:
                its = os.fstat(file.fileno())
                if its.st_ino != self._inode:  # moved just now: next time
                    self.behind = True
                    return b""
                if its.st_size < self._offset or file.read(len(self._head)) != self._head:  # cut, or another file
                    self.skipped += 1
                    self._rest = b""
                    self._turn_to(self._inode)
                file.seek(self._offset)
                data = file.read(most)
                if self._offset == 0:
                    self._head = data[:HEAD]
                self._offset += len(data)
                self.behind = self._offset < its.st_size
                return data
        except OSError:
            return b""

    def _turn_to(self, inode: int) -> None:
        self._inode, self._offset, self._head = inode, 0, b""

    def _cut(self) -> None:
        self.skipped += bool(self._rest)
        self._rest = b""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


QUIET = 1.0
"""Seconds without a new line after which it is asked whether the process is still there; again after as many."""

WAITING = 2.0
"""Seconds without progress after which a party that lacks somebody is called waiting."""

_SHOWN = ("attempt", "votes", "contributions", "contributed", "iteration", "of", "starts", "waiting", "waiting_more", "linked",
          "unlinked", "refused", "notes", "progress")  # fmt: skip


class TraceLine(NamedTuple):
    """What a trace says happened."""

    time: float
    event: str
    fields: dict[str, Any]


class Home:
    """What is known of one party. `read` gives new lines; `state` says how it is."""

    def __init__(self, name: str, path: Path, study: bytes, names: Collection[str]) -> None:
        self.name, self.path = name, path
        self._hash, self._names = study.hex(), names
        self._tail = Tail(path / TRACE)
        self._damaged = 0
        self._status: dict[str, Any] = {}
        self._dated: tuple[int, int] | None = None
        self._running, self._asked, self._heard = False, float("-inf"), float("-inf")
        self._last: dict[str, Any] = {}
        self.last_line = 0.0
        """When the last line was written, by its own word."""

    @property
    def skipped(self) -> int:
        """Lines that could not be read."""
        return self._damaged + self._tail.skipped

    @property
    def behind(self) -> bool:
        """Whether lines are still to be read."""
        return self._tail.behind

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, most: int, now: float) -> list[TraceLine]:
        """New lines of this study, from about so many bytes at most."""
        found = [line for raw in self._tail.read(most) if (line := self._line(raw)) is not None]
        if found:
            self.last_line = found[-1].time
            self._heard = min(now, self.last_line)  # what is read of an old trace is no sign of life
        for line in found:
            if line.event == "starting":
                self._last = {}
            elif line.event in ("outcome", "stopped", "failed") or (
                line.event == "refused" and "peer" not in line.fields
            ):
                self._last[line.event] = line.fields
        return found

    def _line(self, raw: bytes) -> TraceLine | None:
        if not raw:
            return None
        try:
            told = json.loads(raw)
            if told.get("study") != self._hash[:16]:
                return None  # of another study, in the same home
            if told["party"] != self.name or told["event"] not in EVENTS:
                raise ValueError
            # nothing but the fields of the closed list goes on, whoever wrote the file
            return TraceLine(
                datetime.fromisoformat(told["time"]).timestamp(), told["event"], fields_of(told, self._names)
            )
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            self._damaged += 1
            return None

    # ── how it is ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def look(self, now: float) -> None:
        """Read the status file if it changed, and ask whether the process is there if nothing was heard of it."""
        file = self.path / STATUS
        try:
            its = file.stat()
            dated = (its.st_mtime_ns, its.st_ino)
            if dated != self._dated:
                found = json.loads(file.read_bytes()[: 1 << 20])
                ours = isinstance(found, dict) and found.get("hash") == self._hash
                self._status = self._known(sound_state(found)) if ours else {}
                self._dated = dated
        except (OSError, ValueError):
            self._status, self._dated = {}, None
        if now - self._heard < QUIET:
            self._running = "stopped" not in self._last
        elif now - self._asked >= QUIET:
            self._asked = now
            self._running = holder(self.path / "peer.db") is not None

    def _known(self, status: dict[str, Any]) -> dict[str, Any]:
        """What speaks of parties of the study, in words of the closed list."""
        for key in ("linked", "waiting"):
            if key in status:
                status[key] = [name for name in status[key] if name in self._names]
        if "unlinked" in status:
            status["unlinked"] = {name: since for name, since in status["unlinked"].items() if name in self._names}
        for key in ("refused", "notes"):
            if key in status:
                status[key] = {word: n for word, n in status[key].items() if word.split(" by ")[0] in CODES}
        for told in (status, status.get("outcome", {})):
            if "reason" in told and told["reason"] not in CODES:
                del told["reason"]
        return status

    @property
    def running(self) -> bool:
        """Whether its process is there, as far as known."""
        return self._running

    def state(self, now: float) -> dict[str, Any]:
        """How the party is, in one word, and what its status file says besides."""
        status = self._status
        shown = {key: status[key] for key in _SHOWN if key in status}
        outcome = self._last.get("outcome") or status.get("outcome") or {}
        word, reason = self._word(now, outcome)
        found = {"state": word, "running": self._running, **shown}
        return {**found, "reason": reason} if reason else found

    def _word(self, now: float, outcome: dict[str, Any]) -> tuple[str, str | None]:
        status, last = self._status, self._last
        if outcome:
            return ("answered", None) if outcome.get("ok") else ("ended", outcome.get("reason"))
        if not self._running:
            for kind in ("failed", "refused"):
                if kind in last:
                    return "failed", last[kind].get("reason")
            if "stopped" in last or status.get("phase") == "ended":
                return "stopped", status.get("reason")
            return ("killed", None) if status or self.last_line else ("absent", None)
        if not status or status.get("phase") in ("preparing", "starting"):
            return "starting", None
        if now - status.get("written", now) > LATE:
            return "silent", None
        if status.get("waiting") and now - status.get("progress", now) > WAITING:
            return "waiting", None
        return "running", None
