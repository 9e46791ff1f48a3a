"""Lines as they are added to a file that another process writes, and moves aside when it is full (FILE → FILE.1)."""

from __future__ import annotations

import os
from pathlib import Path

LONGEST = 1 << 16
"""Bytes: no honest line is longer."""

HEAD = 64
"""Bytes at its beginning by which a file is known again."""


class Tail:
    """Reads what is new, from FILE.1 on if that is there. Holds nothing open in between.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "trace.jsonl"
    >>> tail = Tail(path)
    >>> tail.read(100), path.write_text("one\\ntw"), tail.read(100), path.write_text("one\\ntwo\\n"), tail.read(100)
    ([], 6, [b'one'], 8, [b'two'])
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path, self._aside = Path(path), Path(f"{path}.1")
        self._inode, self._offset, self._rest = 0, 0, b""
        self._head = b""  # with what the file begins: a system gives the inode of a removed file to the next one
        self.skipped = 0
        """Pieces that were cut off or far too long."""
        self.behind = False
        """Whether there is more to read already."""

    def read(self, most: int) -> list[bytes]:
        """Whole lines that are new, from about so many bytes at most."""
        self.behind = False
        now, aside = _inode(self.path), _inode(self._aside)
        if now == 0:
            return []
        if self._inode == 0:
            self._turn_to(aside or now)
        elif self._inode not in (now, aside):  # it was moved aside twice, or replaced: what was between is gone
            self.skipped += 1
            self._turn_to(aside or now)
        where = self.path if self._inode == now else self._aside
        data = self._from(where, most)
        if where is self._aside and not self.behind:
            self._cut()
            self._turn_to(now)
            self.behind = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            self._cut()
        return lines

    def _from(self, path: Path, most: int) -> bytes:
        try:
            with open(path, "rb") as file:
                its = os.fstat(file.fileno())
                if its.st_ino != self._inode:  # moved just now: next time
                    self.behind = True
                    return b""
                if its.st_size < self._offset or file.read(len(self._head)) != self._head:  # cut, or another file
                    self.skipped += 1
                    self._rest = b""
                    self._turn_to(self._inode)
                file.seek(self._offset)
                data = file.read(most)
                if self._offset == 0:
                    self._head = data[:HEAD]
                self._offset += len(data)
                self.behind = self._offset < its.st_size
                return data
        except OSError:
            return b""

    def _turn_to(self, inode: int) -> None:
        self._inode, self._offset, self._head = inode, 0, b""

    def _cut(self) -> None:
        self.skipped += bool(self._rest)
        self._rest = b""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
