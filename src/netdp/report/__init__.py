"""For people: tables, pictures, one-file pages."""

import warnings
from typing import Any

from netdp.protocols.answers import Answer, answer

from .picture import save_picture
from .tables import answer_table

__all__ = ["Answer", "answer", "answer_table", "save_picture"]

_RENAMED = {"Summary": "Answer", "summarise": "answer", "summary_table": "answer_table"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:  # for one release
        warnings.warn(f"netdp.report.{name} is netdp.report.{_RENAMED[name]} now", DeprecationWarning, stacklevel=2)
        return globals()[_RENAMED[name]]
    raise AttributeError(f"module 'netdp.report' has no attribute {name!r}")
