"""What commands print: a result on standard output, as JSON or for people; and on the error stream that work is going on.

A progress bar appears by itself for work that takes more than a second, before the work has said how far it is. Where nobody
knows how much there is to do, a line says what is done and for how long (`working`).
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from netdp.numerics.arrays import Progress

_SHOW_AFTER = 1.0

P = ParamSpec("P")

T = TypeVar("T")


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Yield `progress(done, total)`; silent when the work is short or nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    started = time.monotonic()
    bar = Bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    task = bar.add_task(label, total=None)
    shown, over, lock = False, False, threading.Lock()

    def appear() -> None:
        nonlocal shown
        with lock:
            if not (shown or over or bar.disable):  # an old rich ends even a disabled bar with an empty line
                bar.start()
                shown = True

    def update(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not shown and time.monotonic() - started > _SHOW_AFTER:
            appear()

    timer = threading.Timer(max(_SHOW_AFTER, 0.0), appear)
    timer.daemon = True
    if not bar.disable:  # nobody watches otherwise
        timer.start()
    try:
        yield update
    finally:
        timer.cancel()
        with lock:
            over = True
        if shown:
            bar.stop()


_WAIT, _EVERY = 1.0, 0.5
"""Seconds before such a line appears, and between two looks at the clock."""


@contextmanager
def working(label: str) -> Iterator[None]:
    """Say what is being done, after a second, until it is done; then the line is taken away. Nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    over, started = threading.Event(), time.monotonic()

    def show() -> None:
        shown, wait = False, _WAIT
        while not over.wait(wait):
            shown, wait = True, _EVERY
            line = f"netdp: {label}: {time.monotonic() - started:.0f} s"
            print(f"\r\033[K{line[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def watched(label: str, work: Callable[P, T]) -> Callable[P, T]:
    """The same function, with such a line while it runs.

    >>> watched("adding", sum)([1, 2])
    3
    """

    def run(*given: P.args, **named: P.kwargs) -> T:
        with working(label):
            return work(*given, **named)

    return run


def may_write(path: Path, force: bool) -> None:
    """Refuse to write over a file that is there, unless that was asked for."""
    from netdp.errors import InvalidValue

    if path.exists() and not force:
        raise InvalidValue(f"{path} is there already; give another --output, or --force to overwrite it")


def print_lines(data: dict[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Print `data` as one JSON object, or the `lines` as they are, however long."""
    print(json.dumps(_plain(data), allow_nan=False) if as_json else "\n".join(lines), flush=True)


def _plain(value: Any) -> Any:
    """The same value for JSON, which has no infinity: "inf" where there is no bound.

    >>> _plain({"epsilon": {"1": float("inf")}, "roster": ["ash"]})
    {'epsilon': {'1': 'inf'}, 'roster': ['ash']}
    """
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def show(data: dict[str, Any], lines: Iterable[Any], as_json: bool) -> None:
    """Print `data` as one JSON object, or the `lines` (text, or whatever rich can print)."""
    if as_json:
        print(json.dumps(data, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines:
        console.print(line, markup=False)
