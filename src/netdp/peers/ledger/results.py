"""How a result is written down: as text that people can read, and where it holds very many numbers, those as eight bytes each.

A short result is canonical JSON. A million numbers in JSON take a second to write, half a second to read and twenty bytes each.
So long lists of numbers are taken out of the text, which says where they belong, and follow it as they stand in memory:

    MARK ‖ length of the text, eight bytes ‖ the text, {"numbers": [[path, how many], …], "result": …} ‖ the numbers, <f8

Both are read to the same values, to the last bit; SQLite itself tells text from bytes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from netdp.errors import NetdpError

from .entries import canonical

MARK = b"netdp result 1\0"
LONG = 1000
"""So many numbers in one list are written as bytes."""
_LENGTH = 8


def written(result: dict[str, Any]) -> str | bytes:
    """A result as it is kept.

    >>> written({"value": 1.5})
    '{"value":1.5}'
    >>> len(written({"counts": [0.1] * 1000}))
    8079
    """
    found: list[tuple[list[str], list[float]]] = []
    rest = _without_numbers(result, [], found)
    if not found:
        return canonical(result)
    text = canonical({"numbers": [[path, len(numbers)] for path, numbers in found], "result": rest}).encode()
    bodies = (np.array(numbers, dtype="<f8").tobytes() for _, numbers in found)
    return b"".join([MARK, len(text).to_bytes(_LENGTH, "big"), text, *bodies])


def read(kept: str | bytes) -> dict[str, Any]:
    """Back from `written`, or from the text that every result was before.

    >>> read(written({"counts": [0.1] * 1000})) == {"counts": [0.1] * 1000}
    True
    """
    if isinstance(kept, str):
        return dict(json.loads(kept))
    start = len(MARK) + _LENGTH
    end = start + int.from_bytes(kept[len(MARK) : start], "big")
    try:
        if not kept.startswith(MARK):
            raise ValueError("it begins in another way")
        told = json.loads(kept[start:end])
        result = dict(told["result"])
        for path, many in told["numbers"]:
            place = result
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = np.frombuffer(kept, dtype="<f8", count=many, offset=end).tolist()
            end += 8 * many
        if end != len(kept):
            raise ValueError(f"{len(kept) - end} bytes are left over")
    except (ValueError, KeyError, TypeError, IndexError) as problem:
        raise NetdpError(
            f"a result of {len(kept):,} bytes cannot be read ({problem}): the file is damaged, or a newer netdp wrote it"
        ) from None
    return result


def _without_numbers(
    value: dict[Any, Any], path: list[str], found: list[tuple[list[str], list[float]]]
) -> dict[str, Any]:
    """The same without long lists of finite numbers, which are `found`; with null in their places."""
    out = dict(value)
    for key, one in value.items():
        if not isinstance(key, str):
            continue  # JSON would make a text of it
        if isinstance(one, dict):
            out[key] = _without_numbers(one, [*path, key], found)
        elif isinstance(one, list) and len(one) >= LONG and _are_numbers(one):
            found.append(([*path, key], one))
            out[key] = None
    return out


def _are_numbers(values: list[Any]) -> bool:
    """Whether these are finite numbers, all of them; others JSON writes in its own way, or refuses."""
    return all(type(value) is float for value in values) and bool(np.isfinite(values).all())
