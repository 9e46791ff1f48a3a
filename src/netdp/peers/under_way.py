"""Which studies `netdp up` runs on this machine just now, so that they can be watched without knowing their folders.

Every `netdp up` writes a small file into a folder of the user's own (mode 700): which process, which folder, which study. It holds
a lock on that file for as long as it runs, and takes the file away in the end. The system gives the lock back when the process
dies, however it dies; so a file whose lock is free is a leftover. It is not believed, and the next `netdp up` removes it. Nobody
else can put a file there: a folder that belongs to somebody else, or that others may write to, is not used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


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
