"""Protocols run for real, in this process: seeded, sparse, with what chosen observers receive on record.

The room is named like its one function, so the module itself can be called: `netdp.simulate(protocol, values, seed=0)`
works whether or not somebody imported the room first.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from . import (  # noqa: F401  register what they can run
    baselines,
    faulty_shuffle,
    gossip,
    linear,
    masked,
    randomized,
    relayed_shuffle,
    secret_ring,
    shuffle,
    tokens,
)
from .masked import MaskedRecord
from .run import Record, Run, simulate
from .tokens import TokenRecord, draw_paths

__all__ = ["MaskedRecord", "Record", "Run", "TokenRecord", "draw_paths", "simulate"]


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Run:
        return simulate(*arguments, **options)

    def __reduce__(self) -> tuple[Any, ...]:  # a function that names this module can be sent to workers
        return import_module, (__name__,)


sys.modules[__name__].__class__ = _Callable
