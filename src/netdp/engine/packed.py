"""What all items share, packed once for all workers.

The object is pickled with its arrays set apart (pickle protocol 5), so a worker that reads them from a file maps it into
memory instead of copying: an array of a gigabyte is there once, however many workers there are. The mapping is private: what
one worker writes into an array no other sees. An array that was read-only here is read-only there, so compiled functions see
the same types and are found in the cache on disk.

Files are made in a folder only this user can enter, and are removed when the work is done. Pickles are programs: `netdp.engine`
says why that is no risk here.
"""

from __future__ import annotations

import math
import mmap
import pickle
import shutil
import struct
import tempfile
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
