"""What was spent in a folder of homes before, in a sentence: `netdp up --folder` started again is another study, and costs again.

A study that was broken off lies in the folder, complete and signed. Run again as it is, it goes on: every party says what it has
written down, and nothing is paid twice. The draft that it was made from would become a new study, with pads, noise and a cost
of its own, in the same ledgers. A ledger that is there and cannot be read may hold anything: it is named, and no study that its
party belongs to is taken to be over.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from netdp.errors import NetdpError
from netdp.privacy.readable import readable

from .ledger.entries import Entry, total
from .ledger.store import Store
from .study import Study

STUDY = "study.toml"


def spent_before(folder: Path, study: Study, data: Path) -> str | None:
    """What ledgers in this folder hold already, in a sentence, before a study is run there; None if they hold nothing."""
    held = {name: _entries(folder / name) for name in study.names}
    unread = [name for name, entries in held.items() if entries is None]
    found = {name: entries for name, entries in held.items() if entries}
    said = [f"what {name} spent before in {folder} is not known: its ledger cannot be read" for name in unread]
    if found:
        said.append(_cost_before(folder, study, found))
    if not said:
        return None
    if not _was_begun(study, found):
        on = (
            f"netdp up {_typed(begun)} --folder {_typed(folder)} --data {_typed(data)}" for begun in _broken_off(folder)
        )
        said += [f"to go on with the one that was broken off, instead: {command}" for command in on]
    return "; ".join(said)


def _was_begun(study: Study, found: dict[str, list[Entry]]) -> bool:
    """Whether somebody has paid for this very study."""
    entries = (entry for entries in found.values() for entry in entries)
    return study.is_complete and any(entry.study == study.hash.hex() for entry in entries)


def _cost_before(folder: Path, study: Study, found: dict[str, list[Entry]]) -> str:
    """What the party that has spent most has spent."""
    if _was_begun(study, found):
        return f"this study was begun before in {folder}: it goes on from there, and what was paid is not paid again"
    delta, unit = study.privacy.delta, str(study.task.unit)
    spent = {name: float(total(entries, 1, unit).epsilon(delta)) for name, entries in found.items()}
    name = max(spent, key=lambda name: spent[name])
    epsilon, studies = spent[name], len({entry.study for entry in found[name]})
    many = "1 study" if studies == 1 else f"{studies} studies"
    cost = f"epsilon {readable(epsilon)} at delta = {delta:g}" if math.isfinite(epsilon) else "an epsilon without bound"
    return (
        f"parties in {folder} have spent before, {name} {cost} against any one other, in {many}; this run is a new study and its "
        "cost comes on top"
    )


def _typed(path: Path) -> str:
    """A path as a shell reads it."""
    return shlex.quote(str(path))


def place_for(folder: Path) -> Path:
    """Where a new study of a folder is written: never over one that could go on for somebody, nor over one that cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     place_for(Path(empty)).name
    'study.toml'
    """
    taken, number = set(_broken_off(folder)), 1
    while (path := folder / (STUDY if number == 1 else f"study-{number}.toml")) in taken or _is_unread(path):
        number += 1
    return path


def _is_unread(path: Path) -> bool:
    """Whether something is there that is no study."""
    try:
        if os.path.lexists(path):
            Study.read(path)
    except (NetdpError, OSError):
        return True
    return False


def _broken_off(folder: Path) -> Iterator[Path]:
    """Studies of this folder that somebody has paid for, or may have, without an answer to it."""
    for path in sorted(folder.glob("study*.toml")):
        try:
            study = Study.read(path)
        except (NetdpError, OSError):
            continue
        states = [state for name in study.names if (state := _state(folder / name, study.hash)) is not None]
        if not all(states):
            yield path


def _state(home: Path, study: bytes) -> bool | None:
    """Whether a party has the answer of a study; None if it has spent nothing in it. A ledger that cannot be read has none."""
    file = home / "peer.db"
    try:
        if not os.path.lexists(file):
            return None
        with Store.open(file, read_only=True) as store:
            return (store.result(study) is not None) if store.entries_of(study) else None
    except (NetdpError, OSError):
        return False


def _entries(home: Path) -> list[Entry] | None:
    """What a party's ledger holds; None if there is one that cannot be read: its own process says why."""
    file = home / "peer.db"
    try:
        if not os.path.lexists(file):
            return []
        with Store.open(file, read_only=True) as store:
            return store.entries()
    except (NetdpError, OSError):
        return None
