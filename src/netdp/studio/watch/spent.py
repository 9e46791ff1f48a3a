"""What the ledger of a home holds, towards whom: ε of one study, and of all studies together. Read without leaving a mark.

Every number is an upper bound, as `netdp ledger show` prints it, computed again from the entries; a ledger whose chain is broken
is named instead of added up. Parties of one study often have the same entries but for their names, so what was computed once is
kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netdp.errors import NetdpError
from netdp.peers.ledger.database import mark_of
from netdp.peers.ledger.entries import CORRECTS, Entry, LedgerBroken, canonical, in_force, observers, total
from netdp.peers.ledger.store import Store
from netdp.peers.study import Study
from netdp.privacy.readable import readable

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
