"""What a peer does, one JSON object per line, without secrets.

    {"time":"2026-11-16T16:32:50.123Z","level":"info","party":"ash","study":"a2e640f3b8b2c4e9","event":"linked","peer":"elm"}

**Why nothing secret can get in.** A line is not what an event holds, but what this module asks of it: `EVENTS` lists for
every event its fields, and for every field which values it takes: the name of somebody who takes part, a whole number, a
number of seconds, yes or no, one word of a closed list, the key of an item (a word and whole numbers). A field that is not
listed is left out; a value that does not fit its field too, and the line says how many were (`dropped`). Sentences are not
written, they may quote anything: one word of `netdp.peers.reasons` stands for each. So answers, totals, bodies, states,
noise, keys and data have no way into a line: there is no field for them. An event that is not listed becomes a line without
fields.

**A log never ends a peer.** A line that cannot be written (full disk, closed pipe) is counted, and the next one that can
says how many were lost. A file is moved aside at `SIZE` bytes, and `KEPT` old ones are kept: it takes a bounded room for ever.
Files belong to their owner alone (mode 600): who talked to whom, and when, is nobody else's business.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

from netdp.errors import InvalidValue, NetdpError

from .reasons import OTHER, REASONS, reason_of

SIZE, KEPT = 10 << 20, 4
"""Bytes after which a file is moved aside, and how many old ones are kept beside it."""
STATUS_EVERY = 10.0
"""Seconds between two lines that only say how far the party is."""
KINDS = frozenset((
    "vote", "contribution", "fallback", "total", "state", "token", "offer", "accept", "bundle", "through", "step",
    "hello", "announce", "pull", "done", "remark",
))  # fmt: skip
"""Every kind of message that a line may name (`netdp.peers.messages`, which is slow to load)."""
LISTED = 64
"""Items of one frame that are named; of more, how many."""
_MOST = 2**40

# ── which fields there are, and what they take ────────────────────────────────────────────────────────────────────────

Check = Callable[[Any], Any]
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}([.+-]?[a-z]{1,5}[0-9]{0,4})?")


def _name(value: Any) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ValueError


def _version(value: Any) -> str:
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    raise ValueError


def _count(value: Any) -> int:
    if type(value) is int and 0 <= value <= _MOST:
        return value
    raise ValueError


def _yes(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise ValueError


def _number(value: Any) -> float | str:
    """Seconds, or an ε: six significant digits; "inf" from a thousand million on."""
    if type(value) not in (int, float) or math.isnan(value) or value < 0:
        raise ValueError
    return float(f"{value:.6g}") if value < 1e9 else "inf"


def _word(value: Any) -> str:
    if isinstance(value, str) and value in REASONS:
        return value
    raise ValueError


def _kind(value: Any) -> str:
    if isinstance(value, str) and value in KINDS:
        return value
    raise ValueError


def _items(value: Any) -> list[list[Any]]:
    """Keys of items: a kind, and three whole numbers: attempt, author, index."""
    if not isinstance(value, list) or len(value) > LISTED:
        raise ValueError
    return [[_kind(kind), _count(attempt), _count(author), _count(index)] for kind, attempt, author, index in value]


def _counts(value: Any) -> dict[str, int]:
    """How many messages of each kind."""
    if not isinstance(value, dict):
        raise ValueError
    return {_kind(kind): _count(number) for kind, number in value.items()}


EVENTS: Mapping[str, Mapping[str, Check]] = {
    "starting": {"version": _version, "parties": _count, "neighbours": _count, "contributed": _count, "starts": _count},
    "listening": {},
    "linked": {"peer": _name},
    "lost": {"peer": _name, "reason": _word},
    "refused": {"peer": _name, "reason": _word},
    "note": {"peer": _name, "reason": _word},
    "evidence": {"peer": _name, "attempt": _count},
    "status": {
        "attempt": _count,
        "links": _count,
        "votes": _count,
        "contributions": _count,
        "iteration": _count,  # of a training; its loss on own rows has no field here
        "of": _count,
        "rate": _number,
        "bytes": _count,
    },
    "outcome": {
        "ok": _yes,
        "attempt": _count,
        "parties": _count,
        "contributed": _count,
        "worse": _count,
        "reason": _word,
    },
    "spent": {"contributions": _count, "epsilon": _number, "against": _count, "delta": _number},
    "stopping": {"signal": _count, "contributed": _count},
    "stopped": {"exit": _count, "contributed": _count, "seconds": _number},
    "failed": {"reason": _word},
    "log": {"lost": _count},
    # frames, of which only a trace tells (`netdp.peers.trace`)
    "sent": {"peer": _name, "items": _items, "words": _counts, "more": _count},
    "received": {"peer": _name, "items": _items, "words": _counts, "more": _count},
}
_LEVELS = {"refused": "warning", "evidence": "warning", "lost": "warning", "failed": "error", "log": "warning"}
_HARMLESS = ("closed-here", "ended-there", "replaced", "stopped")
_SENTENCES = ("reason", "text")


def fields_of(event: Mapping[str, Any], names: Collection[str] | None = None) -> dict[str, Any]:
    """What a line may say of an event: only the fields of `EVENTS`, only values that fit them.

    names  of all who take part: no other name is written (None: any that a party could have)

    >>> fields_of({"event": "linked", "peer": "birch", "key": "abc"})
    {'peer': 'birch'}
    >>> fields_of({"event": "note", "text": "ignored from birch: a second Hello"})
    {'reason': 'second-hello'}
    >>> fields_of({"event": "linked", "peer": "the value 17.25"})
    {'dropped': 1}
    """
    wanted, found, dropped = EVENTS.get(str(event.get("event")), {}), {}, 0
    said = next((event[key] for key in _SENTENCES if isinstance(event.get(key), str)), None)
    given = {**event, "reason": said if said in REASONS else reason_of(said)} if said is not None else event
    if isinstance(given.get("roster"), list | tuple):
        given = {**given, "parties": len(given["roster"])}
    if isinstance(given.get("worse"), list | tuple):  # attempts that cost more than promised: how many
        given = {**given, "worse": len(given["worse"]) or None}
    for name, check in wanted.items():
        if given.get(name) is None:
            continue
        try:
            found[name] = check(given[name])
            if check is _name and names is not None and found[name] not in names:
                del found[name]
                raise ValueError
        except (ValueError, TypeError):
            dropped += 1
    if dropped:
        found["dropped"] = dropped
    return found


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Sink(Protocol):
    """Where lines go; raises OSError if one cannot be written."""

    def write(self, line: str) -> None: ...

    def close(self) -> None: ...


def _now() -> float:
    return datetime.now(UTC).timestamp()


class Log:
    """Hears what a peer reports, and writes lines about it.

    >>> class Lines(list):
    ...     write = list.append
    >>> lines = Lines()
    >>> log = Log(lines, "ash", bytes(32), now=lambda: 0.0)
    >>> log({"event": "outcome", "ok": True, "attempt": 1, "total": [17.25], "roster": ["ash", "birch"]})
    >>> print(lines[0], end="")
    {"time":"1970-01-01T00:00:00.000Z","level":"info","party":"ash","study":"0000000000000000","event":"outcome","ok":true,"attempt":1,"parties":2}
    """

    def __init__(
        self,
        sink: Sink,
        party: str = "",
        study: bytes = b"",
        names: Iterable[str] = (),
        *,
        now: Callable[[], float] = _now,
    ) -> None:
        self._sink, self._now, self.lost = sink, now, 0
        self._names: frozenset[str] = frozenset()
        self._status: tuple[dict[str, Any], float] = ({}, -math.inf)
        self.about(party, study, names)

    def about(self, party: str, study: bytes, names: Iterable[str] = ()) -> None:
        """Of whom and of which study the next lines are, and who else takes part: no other names are written."""
        self._names = frozenset(names)
        self._about = {key: value for key, value in (("party", party), ("study", study.hex()[:16])) if value}

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind, moment = str(event.get("event")), self._now()
        fields = fields_of(event, self._names)
        if kind == "status":
            before, when = self._status
            if fields == before or moment < when + STATUS_EVERY:
                return
            self._status = (fields, moment)
        if self.lost:
            gone, self.lost = self.lost, 0
            if not self._write("log", {"lost": gone}, moment):
                self.lost += gone
        self._write(kind if kind in EVENTS else "unlisted", fields, moment)

    def close(self) -> None:
        """Nothing more will be written."""
        self._sink.close()

    def _write(self, kind: str, fields: dict[str, Any], moment: float) -> bool:
        level = _LEVELS.get(kind, "info")
        if fields.get("reason") in _HARMLESS:
            level = "info"
        elif kind == "note" or (kind == "outcome" and (fields.get("ok") is False or "worse" in fields)):
            level = "warning"
        time = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": level, **self._about, "event": kind, **fields}
        try:
            self._sink.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
        except (OSError, ValueError):  # a full disk, a pipe that nobody reads, a stream that was closed
            self.lost += kind != "log"
            return False
        return True


class Stream:
    """Lines to an open text stream, such as standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        """Write and flush."""
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        """The stream is not ours to close."""


def opened_privately(path: Path) -> Any:
    """A file to append to, without a buffer, readable by its owner only, also if it was there before."""
    # not into a pipe (it could block) or a device, and not through a link that somebody put there
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    opened = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        os.fchmod(opened, 0o600)
    except BaseException:
        os.close(opened)
        raise
    return os.fdopen(opened, "ab", buffering=0)


class RotatingFile:
    """Lines to a file that is moved aside when it is full: FILE.1 is the last one, FILE.2 the one before."""

    def __init__(self, path: Path, size: int = SIZE, kept: int = KEPT) -> None:
        if size < 1 or kept < 0:
            raise InvalidValue(
                f"a log has room for at least one byte and keeps 0 or more old files, got {size}, {kept}"
            )
        self.path, self._size, self._kept = Path(path), size, kept
        self._file: Any = None
        try:
            self._open()
        except OSError as error:
            raise NetdpError(
                f"the log {path} cannot be opened: {error.strerror or error}; give another --log FILE"
            ) from None

    def _open(self) -> None:
        self._file = opened_privately(self.path)

    def write(self, line: str) -> None:
        """Append a line; first make room, if it would be too long."""
        data = line.encode()
        if self._file is None:
            self._open()
        written = os.fstat(self._file.fileno()).st_size
        if written and written + len(data) > self._size:
            self._turn()
        start = os.fstat(self._file.fileno()).st_size
        if self._file.write(data) != len(data):  # the disk became full in the middle of it
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), start)
            raise OSError("a line was written in part")

    def _turn(self) -> None:
        self.close()
        for number in range(self._kept - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        if self._kept:
            os.replace(self.path, f"{self.path}.1")
        else:
            self.path.unlink()
        self._open()

    def close(self) -> None:
        """Write no more to this file."""
        if self._file is not None:
            self._file.close()
            self._file = None


__all__ = ["EVENTS", "OTHER", "Log", "RotatingFile", "Stream", "fields_of"]
