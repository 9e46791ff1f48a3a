"""Threads for compiled code that leaves the interpreter's lock alone: row ranges of a product, observers of a path.

Nothing has to be sent and nothing started, so these stay threads under every engine; how many there are is decided where it
is decided for all (`netdp.engine.cores`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Together: TypeAlias = Callable[[Callable[[int], object], int], None]
"""`together(part, parts)` calls part(0) … part(parts − 1), side by side, and returns when all are done."""


@contextmanager
def team(size: int) -> Iterator[Together]:
    """So many threads; with one, everything is done in this thread.

    >>> squares = [0, 0, 0]
    >>> with team(2) as together:
    ...     together(lambda i: squares.__setitem__(i, i * i), 3)
    >>> squares
    [0, 1, 4]
    """
    if size <= 1:

        def alone(part: Callable[[int], object], parts: int) -> None:
            for i in range(parts):
                part(i)

        yield alone
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(size) as pool:

        def together(part: Callable[[int], object], parts: int) -> None:
            for _ in pool.map(part, range(parts)):
                pass

        yield together
