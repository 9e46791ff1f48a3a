"""A result on standard output: JSON for a program, or tables and lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def show(data: dict[str, Any], lines: Iterable[Any], as_json: bool) -> None:
    """Print `data` as one JSON object, or the `lines` (text, or whatever rich can print)."""
    if as_json:
        print(json.dumps(data, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines:
        console.print(line, markup=False)
