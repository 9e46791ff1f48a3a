"""One party as its home shows it: lines of its trace, its status file, and whether its process is there."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from netdp.peers.log import EVENTS, fields_of
from netdp.peers.reasons import REASONS
from netdp.peers.status import FILE as STATUS
from netdp.peers.status import LATE, holder, sound_state
from netdp.peers.trace import FILE as TRACE

from .tail import Tail

QUIET = 1.0
"""Seconds without a new line after which it is asked whether the process is still there; again after as many."""
WAITING = 2.0
"""Seconds without progress after which a party that lacks somebody is called waiting."""
_SHOWN = ("attempt", "votes", "contributions", "contributed", "iteration", "of", "starts", "waiting", "waiting_more", "linked",
          "unlinked", "refused", "notes", "progress")  # fmt: skip


class Line(NamedTuple):
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

    def read(self, most: int, now: float) -> list[Line]:
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

    def _line(self, raw: bytes) -> Line | None:
        if not raw:
            return None
        try:
            told = json.loads(raw)
            if told.get("study") != self._hash[:16]:
                return None  # of another study, in the same home
            if told["party"] != self.name or told["event"] not in EVENTS:
                raise ValueError
            # nothing but the fields of the closed list goes on, whoever wrote the file
            return Line(datetime.fromisoformat(told["time"]).timestamp(), told["event"], fields_of(told, self._names))
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
                status[key] = {word: n for word, n in status[key].items() if word.split(" by ")[0] in REASONS}
        for told in (status, status.get("outcome", {})):
            if "reason" in told and told["reason"] not in REASONS:
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
