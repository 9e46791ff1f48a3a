"""What a worker does with a chunk, and how what all items share is packed once for all workers.

The object is pickled with its arrays set apart (pickle protocol 5), so a worker that reads them from a file maps it into memory
instead of copying: an array of a gigabyte is there once, however many workers there are. The mapping is private: what one
worker writes into an array no other sees. An array that was read-only here is read-only there, so compiled functions see the
same types and are found in the cache on disk. Files are made in a folder only this user can enter, and are removed when the
work is done. Pickles are programs: `netdp.engine` says why that is no risk here.
"""

from __future__ import annotations

import math
import mmap
import os
import pickle
import shutil
import struct
import tempfile
import threading
import time
import traceback
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netdp.engines.choice import as_worker, plain_algebra_for_good

_ALIGNED = 64

_HEAD = struct.Struct("<Q")

# Objects a worker keeps unpacked.
_KEPT = 2

_unpacked: OrderedDict[str, Any] = OrderedDict()


@dataclass(frozen=True)
class Packed:
    """A packed object: its bytes, or the file they are in."""

    key: str
    data: bytes | None = None
    path: str | None = None


def pack(value: Any, inline: float = math.inf) -> Packed:
    """Pack an object into bytes; one of more than `inline` bytes into a file, in a folder of its own (`discard`).

    >>> unpack(pack({"answer": 42}))
    {'answer': 42}
    """
    pieces, key = _pieces(value), uuid.uuid4().hex
    if sum(memoryview(piece).nbytes for piece in pieces) <= inline:
        return Packed(key, data=b"".join(pieces))
    path = Path(tempfile.mkdtemp(prefix="netdp-")) / key
    packed = Packed(key, path=str(path))
    try:
        with path.open("wb") as file:
            file.writelines(pieces)
    except BaseException:  # a full disk
        discard(packed)
        raise
    return packed


def discard(packed: Packed) -> None:
    """Remove the file, if there is one; who has mapped it keeps what it mapped."""
    if packed.path is not None:
        shutil.rmtree(Path(packed.path).parent, ignore_errors=True)


def unpack(packed: Packed) -> Any:
    """The object again; a worker that unpacked it before has it still."""
    if packed.key in _unpacked:
        _unpacked.move_to_end(packed.key)
        return _unpacked[packed.key]
    if packed.data is not None:
        memory, copied = memoryview(packed.data), True
    else:
        assert packed.path is not None
        with open(packed.path, "rb") as file:
            memory, copied = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)), False
    (length,) = _HEAD.unpack_from(memory)
    main, places = pickle.loads(memory[_HEAD.size : _HEAD.size + length])
    buffers: list[Any] = []
    for start, size, fixed in places:
        part = memory[start : start + size]
        if fixed:
            buffers.append(part.toreadonly())
        else:
            buffers.append(bytearray(part) if copied else part)
    value = pickle.loads(main, buffers=buffers)
    _unpacked[packed.key] = value
    while len(_unpacked) > _KEPT:
        _unpacked.popitem(last=False)
    return value


def _pieces(value: Any) -> list[Any]:
    """The index, the pickle and the arrays, each array at a multiple of 64 bytes."""
    import cloudpickle

    found: list[pickle.PickleBuffer] = []
    main = cloudpickle.dumps(value, protocol=5, buffer_callback=found.append)
    arrays = [buffer.raw() for buffer in found]
    # The index names places in the file, and its own length moves them: they are counted from a generous beginning.
    room = _up(_HEAD.size + len(main) + 64 * len(arrays) + 1024)
    places, at = [], room
    for array in arrays:
        places.append((at, array.nbytes, array.readonly))
        at = _up(at + array.nbytes)
    index = pickle.dumps((main, places), protocol=5)
    head = _HEAD.pack(len(index)) + index
    assert len(head) <= room
    pieces: list[Any] = [head, bytes(room - len(head))]
    for array in arrays:
        pieces += [array, bytes(_up(array.nbytes) - array.nbytes)]
    return pieces


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


# Seconds between looks whether the parent is still there.
_WATCH = 1.0


@dataclass
class WorkResult:
    """The results of a chunk, up to the first error if there was one; and the warnings on the way."""

    results: list[Any] = field(default_factory=list)
    error: Exception | None = None
    trace: str = ""
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)


def end_with(parent: int) -> None:
    """Have this process end when the one that started it is gone: killed, it could not tell its workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True, name="netdp-parent").start()


def run_chunk(packed: Packed, chunk: list[Any]) -> WorkResult:
    """A chunk in a worker process: what went wrong comes back as part of the outcome."""
    outcome = WorkResult()
    plain_algebra_for_good()
    with warnings.catch_warnings(record=True) as said:
        try:
            function, shared = unpack(packed)
            each(function, shared, chunk, outcome)
        except Exception as problem:
            outcome.error, outcome.trace = _portable(problem), traceback.format_exc()
    outcome.warnings = [(w.category, str(w.message)) for w in said]
    return outcome


def each(function: Callable[..., Any], shared: tuple[Any, ...], chunk: list[Any], outcome: WorkResult) -> None:
    """The items one by one, as a worker does them."""
    with as_worker():
        for item in chunk:
            outcome.results.append(function(*shared, item))


def _portable(problem: Exception) -> Exception:
    """The error, if it survives the way back; else its text."""
    try:
        if type(again := pickle.loads(pickle.dumps(problem))) is type(problem):
            return again
    except Exception:  # whatever it is that cannot be sent
        pass
    return RuntimeError(f"{type(problem).__name__}: {problem}")
