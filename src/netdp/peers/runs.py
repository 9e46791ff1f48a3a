"""Runs of `netdp up` on this machine: what an earlier one left in a folder of homes, and which are going on just now.

**Earlier ones.** `netdp up --folder` started again is another study, and costs again; what was spent before is said in a
sentence. A study that was broken off lies in the folder, complete and signed. Run again as it is, it goes on: every party
says what it has written down, and nothing is paid twice. The draft that it was made from would become a new study, with
pads, noise and a cost of its own, in the same ledgers. A ledger that is there and cannot be read may hold anything: it is
named, and no study that its party belongs to is taken to be over.

**Those that go on** can be watched without knowing their folders. Every `netdp up` writes a small file into a folder of the
user's own (mode 700): which process, which folder, which study. It holds a lock on that file for as long as it runs, and
takes the file away in the end. The system gives the lock back when the process dies, however it dies; so a file whose lock
is free is a leftover. It is not believed, and the next `netdp up` removes it. Nobody else can put a file there: a folder
that belongs to somebody else, or that others may write to, is not used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shlex
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from netdp.errors import NetdpError
from netdp.peers.ledger.entries import Entry, spent
from netdp.peers.ledger.store import Store
from netdp.peers.study.study import Study
from netdp.privacy.wording import readable

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
    costs = {name: spent(entries, 1, unit, delta).epsilon for name, entries in found.items()}
    name = max(costs, key=lambda name: costs[name])
    epsilon, studies = costs[name], len({entry.study for entry in found[name]})
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


@dataclass(frozen=True)
class UnderWay:
    """A study that runs here: by which process, with the homes in which folder, since when (seconds since 1970)."""

    pid: int
    folder: Path
    study: str
    since: float


def place() -> Path:
    """The folder of these files: XDG_RUNTIME_DIR/netdp, which is gone when the user logs out; else one for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "netdp"
    return Path(tempfile.gettempdir()) / f"netdp-{os.getuid()}"


@contextlib.contextmanager
def listed(folder: Path, study: str) -> Iterator[None]:
    """Let others of this user find the study while this lasts. What goes wrong here is no reason not to run it."""
    file, path = None, place() / f"{os.getpid()}-{time.monotonic_ns()}.json"
    told = {"pid": os.getpid(), "folder": str(folder.resolve()), "study": study, "since": time.time()}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(path.parent):
            for old in path.parent.glob("*.json"):
                if _read(old) is None:
                    old.unlink(missing_ok=True)
            fresh = path.with_suffix(
                ".new"
            )  # it gets its name when it is locked: before, it would look like a leftover
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = open(os.open(fresh, flags, 0o600), "w", encoding="utf-8")  # noqa: SIM115  open to the end
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(told, file)
            file.flush()
            fresh.rename(path)
    try:
        yield
    finally:
        if file is not None:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                file.close()


def under_way() -> list[UnderWay]:
    """All studies of this user that `netdp up` runs here, the newest first. Changes nothing."""
    folder = place()
    if not _is_ours(folder):
        return []
    found = [one for path in folder.glob("*.json") if (one := _read(path)) is not None]
    return sorted(found, key=lambda one: -one.since)


def _is_ours(folder: Path) -> bool:
    """Whether nobody else could have put a file there."""
    try:
        its = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(its.st_mode) and its.st_uid == os.getuid() and not its.st_mode & 0o077


def _read(path: Path) -> UnderWay | None:
    """What a file says, if its process still runs."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None  # nobody holds it
            except BlockingIOError:
                told = json.loads(file.read(1 << 16))
        if not Path(told["folder"]).is_dir():
            return None
        return UnderWay(int(told["pid"]), Path(told["folder"]), str(told["study"]), float(told["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
