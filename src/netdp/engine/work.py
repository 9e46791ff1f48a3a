"""What a worker does with a chunk: a worker imports this, and whatever the chunk's function needs."""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .choice import as_worker, plain_algebra_for_good
from .packed import Packed, unpack

# Seconds between looks whether the parent is still there.
_WATCH = 1.0


@dataclass
class Outcome:
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


def run_chunk(packed: Packed, chunk: list[Any]) -> Outcome:
    """A chunk in a worker process: what went wrong comes back as part of the outcome."""
    outcome = Outcome()
    plain_algebra_for_good()
    with warnings.catch_warnings(record=True) as said:
        try:
            function, shared = unpack(packed)
            each(function, shared, chunk, outcome)
        except Exception as problem:
            outcome.error, outcome.trace = _portable(problem), traceback.format_exc()
    outcome.warnings = [(w.category, str(w.message)) for w in said]
    return outcome


def each(function: Callable[..., Any], shared: tuple[Any, ...], chunk: list[Any], outcome: Outcome) -> None:
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
