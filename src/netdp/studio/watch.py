"""All watched homes together, as one stream of changes that any number of pages can follow.

Everything that happens gets the next number: a message, an event, a new state of a party. A page says up to which number it knows
everything, and gets the rest. So a page may ask late, twice or from the beginning, and no home is read more often for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from netdp.peers.study.study import Study
from netdp.studio.homes import Home, Ledgers, TraceLine, about, find_place, promised, read_again

__path__: list[str] = []  # this was a folder: old paths below it are found by `netdp.moved`

APART = 0.1
"""Seconds between two looks at the homes, at least, however many pages ask."""

BYTES = 1 << 20
"""Of traces, read in one look."""

KEPT = 200_000
"""Messages that are kept; older ones are forgotten."""

AT_ONCE = 4_000
"""Messages in one change; the rest comes with the next."""

LEDGER_TIME, LEDGER_EVERY = 0.02, 2.0
"""Seconds of a look in which another ledger is begun with, and seconds after which one of them may be read again."""

PROMISE_WAIT = 0.4
"""Seconds that a page waits for what was promised to be certified again; where that takes longer it comes later."""

STUDY_EVERY = 1.0
"""Seconds between two looks whether another study was begun in the same folder."""

_MOVES = ("sent", "received")

_UNTOLD = (*_MOVES, "status", "spent", "log", "listening")


class Watch:
    """Watches the folder of a `netdp up`, or the home of one peer. See the package for what it tells.

    place   the folder that `netdp up --folder` was given, or a peer's home
    study   the study file, where the place does not hold it: a folder that `netdp up` has still to fill, or the home of a peer
            that is run without --trace
    now     the clock
    """

    def __init__(self, place: Path, study: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.place, found = find_place(Path(place), study)
        self._now, self._one = now, threading.Lock()
        self._number = 0
        self._fixed = study is not None and found.is_complete
        self._begun, self._checked = 0.0, float("-inf")
        if not self._fixed and (newest := self.place.newest_study()) is not None and study is None:
            self._begun = newest[0]
        self._begin(found)

    def first(self) -> dict[str, Any]:
        """What does not change, and the number to ask for changes from."""
        with self._one:
            return {"next": self._start, **self._about}

    def changes(self, since: int) -> dict[str, Any] | None:
        """What happened after a number that an earlier answer gave; None if nothing did."""
        with self._one:
            self._look()
            return self._told(since)

    def events(self) -> Iterator[dict[str, Any] | None]:
        """All changes, for ever, for one page: everything from the beginning first; None whenever there is nothing new."""
        since = 0
        while True:
            told = self.changes(since)
            if told is not None:
                since = told["next"]
            yield told

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, study: Study) -> None:
        """Watch this study from its beginning on."""
        self.study = study
        self._about = about(self.place, study)
        self._number += 1
        self._start = self._number
        names = frozenset(study.everybody)
        self._place_of = {name: u for u, name in enumerate(study.everybody)}
        self._homes = {name: Home(name, self.place.home(name), study.hash, names) for name in self.place.watched(study)}
        self._ledgers = Ledgers(study)
        self._moves: deque[tuple[int, list[Any]]] = deque()
        self._events: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT // 10)
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}
        self._spent: dict[str, tuple[int, dict[str, Any]]] = {}
        self._counts: tuple[int, tuple[int, int, bool]] = (self._number, (0, 0, True))
        self._forgotten = 0
        self._looked = float("-inf")
        self._turn = 0
        self._promise = _Promise(study)
        self._promised: tuple[int, dict[str, Any]] | None = None
        self._promise.wait(PROMISE_WAIT)
        self._look_at_the_promise()

    def _look_at_the_promise(self) -> None:
        if self._promised is None and (found := self._promise.found) is not None:
            self._about |= found
            self._promised = (self._next(), found)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _look(self) -> None:
        now = self._now()
        if now - self._looked < APART:
            return
        self._looked = now
        if now - self._checked >= STUDY_EVERY:
            self._checked = now
            self._look_for_another()
        self._read_traces(now)
        for name, home in self._homes.items():
            home.look(now)
            self._note_state(name, home.state(now), home)
        if self.place.me is not None:
            self._note_others(self._homes[self.place.me].state(now))
        self._read_ledgers(now)
        self._look_at_the_promise()
        live = any(home.running or home.behind for home in self._homes.values())
        counts = (sum(home.skipped for home in self._homes.values()), self._forgotten, live)
        if counts != self._counts[1]:
            self._counts = (self._next(), counts)

    def _look_for_another(self) -> None:
        newest = None if self._fixed else self.place.newest_study()
        if newest is None or newest[0] <= self._begun:
            return
        found = read_again(newest[1])
        if found is not None:
            self._begun = newest[0]
            if found.hash != self.study.hash:
                self._begin(found)

    def _read_traces(self, now: float) -> None:
        """New lines of all homes, those of a look in order of time; nobody's many lines keep the others waiting."""
        share = max(BYTES // max(1, len(self._homes)), 1 << 13)
        lines: list[tuple[TraceLine, str]] = []
        for name, home in self._homes.items():
            lines += [(line, name) for line in home.read(share, now)]
        lines.sort(key=lambda one: one[0].time)
        for line, name in lines:
            if line.event in _MOVES:
                self._note_move(line, name)
            elif line.event not in _UNTOLD:
                told = {"time": line.time, "party": name, "event": line.event, **line.fields}
                self._events.append((self._next(), told))

    def _note_move(self, line: TraceLine, name: str) -> None:
        peer = line.fields.get("peer")
        if peer is None or (line.event == "received" and peer in self._homes):
            return
        u, v = self._place_of[name], self._place_of[peer]
        ends = (u, v) if line.event == "sent" else (v, u)
        fields = line.fields
        # who is said to have written an item comes from outside: it must be somebody
        items = [item for item in fields.get("items", ()) if item[2] < len(self._place_of)]
        move = [line.time, *ends, items, fields.get("more", 0), fields.get("words", {})]
        self._moves.append((self._next(), move))
        if len(self._moves) > KEPT:
            self._moves.popleft()
            self._forgotten += 1

    def _note_state(self, name: str, state: dict[str, Any], home: Home | None = None) -> None:
        before = self._states.get(name, (0, {}))[1]
        if state == before:
            return
        self._states[name] = (self._next(), state)
        if home is not None and state["state"] == "killed" and before.get("state") != "killed":
            when = home.last_line or self._now()
            self._events.append((self._next(), {"time": when, "party": name, "event": "killed"}))

    def _note_others(self, mine: dict[str, Any]) -> None:
        """Of parties whose homes are not ours: whether there is a link to them."""
        linked, unlinked = set(mine.get("linked", ())), set(mine.get("unlinked", ()))
        near = {self.study.everybody[u] for u in self.study.neighbours(self.study.index(str(self.place.me)))}
        for name in self.study.everybody:
            if name != self.place.me:
                word = "linked" if name in linked else "unlinked" if name in unlinked | near else "beyond"
                self._note_state(name, {"state": word})

    def _read_ledgers(self, now: float) -> None:
        """Those that have changed, in turn, as long as there is time."""
        began = time.perf_counter()
        names = [name for name in self._homes if name in self.study.names]  # a curator has nothing to lose
        for _ in names:
            name = names[self._turn % len(names)]
            self._turn += 1
            home = self._homes[name].path
            if not self._ledgers.changed(home, now, LEDGER_EVERY):
                continue
            found = self._ledgers.read(home, now)
            if found is not None and found != self._spent.get(name, (0, None))[1]:
                self._spent[name] = (self._next(), found)
            if time.perf_counter() > began + LEDGER_TIME:
                return

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _told(self, since: int) -> dict[str, Any] | None:
        if since < self._start:  # it speaks of an earlier study
            return {
                "next": self._start,
                "now": self._now(),
                "live": True,
                "first": {"next": self._start, **self._about},
            }
        new = _newer(self._moves, since)
        upto = new[AT_ONCE - 1][0] if len(new) > AT_ONCE else self._number
        if upto <= since:
            return None
        skipped, forgotten, live = self._counts[1]
        told: dict[str, Any] = {"next": upto, "now": self._now(), "live": live or upto < self._number}
        if moves := [move for number, move in new if number <= upto]:
            told["moves"] = moves
        if events := [event for number, event in _newer(self._events, since) if number <= upto]:
            told["events"] = events
        for key, kept in (("states", self._states), ("spent", self._spent)):
            if found := {name: value for name, (number, value) in kept.items() if since < number <= upto}:
                told[key] = found
        if since < self._counts[0] <= upto:
            told |= {"skipped": skipped, "forgotten": forgotten}
        if self._promised is not None and since < self._promised[0] <= upto:
            told["promise"] = self._promised[1]
        return told


class _Promise:
    """What a study promises, certified again beside everything else: on a walk over many links that takes a minute."""

    def __init__(self, study: Study) -> None:
        self.found: dict[str, Any] | None = None
        self._work = threading.Thread(target=self._find, args=(study,), name="netdp studio promise", daemon=True)
        self._work.start()

    def _find(self, study: Study) -> None:
        self.found = promised(study)

    def wait(self, seconds: float) -> None:
        """Until it is found, but no longer."""
        self._work.join(seconds)


def _newer(kept: deque[tuple[int, Any]], since: int) -> list[tuple[int, Any]]:
    """Those with a number above `since`: they stand at the end."""
    found: list[tuple[int, Any]] = []
    for one in reversed(kept):
        if one[0] <= since:
            break
        found.append(one)
    return found[::-1]
