"""What was spent in a folder of homes before, in a sentence: `netdp up --folder` started again is another study, and costs again.

A study that was broken off lies in the folder, complete and signed. Run again as it is, it goes on: every party says what it has
written down, and nothing is paid twice. The draft that it was made from would become a new study, with pads, noise and a cost
of its own, in the same ledgers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from netdp.errors import NetdpError
from netdp.privacy.readable import readable

from .ledger.entries import Entry, total
from .ledger.store import Store
from .study import Study

STUDY = "study.toml"


def spent_before(folder: Path, study: Study, data: Path) -> str | None:
    """One sentence on what ledgers in this folder hold already, before a study is run there; None if they hold nothing."""
    found = {name: entries for name in study.names if (entries := _entries(folder / name))}
    if not found:
        return None
    if study.is_complete and any(entry.study == study.hash.hex() for entries in found.values() for entry in entries):
        return f"this study was begun before in {folder}: it goes on from there, and what was paid is not paid again"
    name = max(found, key=lambda name: len(found[name]))
    entries, delta, unit = found[name], study.privacy.delta, str(study.task.unit)
    epsilon = float(total(entries, 1, unit).epsilon(delta))
    studies = len({entry.study for entry in entries})
    many = "1 study" if studies == 1 else f"{studies} studies"
    cost = f"epsilon {readable(epsilon)} at delta = {delta:g}" if math.isfinite(epsilon) else "an epsilon without bound"
    said = (
        f"parties in {folder} have spent before, {name} {cost} against any one other, in {many}; this run is a new study and its "
        "cost comes on top"
    )
    on = (f"netdp up {begun} --folder {folder} --data {data}" for begun in _broken_off(folder))
    return said + "".join(f"; to go on with the one that was broken off, instead: {command}" for command in on)


def place_for(folder: Path) -> Path:
    """Where a new study of a folder is written: never over one that was broken off and could go on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     place_for(Path(empty)).name
    'study.toml'
    """
    taken, number = set(_broken_off(folder)), 1
    while (path := folder / (STUDY if number == 1 else f"study-{number}.toml")) in taken:
        number += 1
    return path


def _broken_off(folder: Path) -> Iterator[Path]:
    """Studies of this folder that somebody has paid for and nobody has an answer to."""
    for path in sorted(folder.glob("study*.toml")):
        try:
            study = Study.read(path)
        except NetdpError:
            continue
        states = [state for name in study.names if (state := _state(folder / name, study.hash)) is not None]
        if states and not any(states):
            yield path


def _state(home: Path, study: bytes) -> bool | None:
    """Whether a party has the answer of a study; None if it has spent nothing in it."""
    try:
        with Store.open(home / "peer.db", read_only=True) as store:
            return (store.result(study) is not None) if store.entries_of(study) else None
    except (NetdpError, OSError):
        return None


def _entries(home: Path) -> list[Entry]:
    """What a party's ledger holds; nothing if it has none that can be read: then its own process says why."""
    try:
        with Store.open(home / "peer.db", read_only=True) as store:
            return store.entries()
    except (NetdpError, OSError):
        return []
