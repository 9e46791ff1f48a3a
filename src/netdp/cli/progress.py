"""A progress bar on the terminal's error stream, shown only for work that takes more than a second or two."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from netdp.numerics.arrays import Progress

_SHOW_AFTER = 1.5


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Yield `progress(done, total)`; silent when the work is short or nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    started = time.monotonic()
    bar = Bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    task = bar.add_task(label, total=None)
    shown = False

    def update(done: int, total: int) -> None:
        nonlocal shown
        bar.update(task, completed=done, total=total)
        if not shown and time.monotonic() - started > _SHOW_AFTER:
            bar.start()
            shown = True

    try:
        yield update
    finally:
        if shown:
            bar.stop()
