"""Checks of arguments, so that every refusal in this room reads alike."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.numerics.arrays import IntArray

#: Every edge is stored (about 40 bytes each while a graph is built), so a family refuses to go beyond this.
MAX_EDGES = 100_000_000


def whole(value: object, what: str, minimum: int, hint: str = "") -> int:
    """Return `value` as an int of at least `minimum`, or refuse it by name.

    >>> whole(3, "n", 1)
    3
    >>> whole(2.5, "n", 1)
    Traceback (most recent call last):
    netdp.errors.InvalidValue: n must be a whole number of at least 1, not 2.5
    """
    complaint = f"{what} must be a whole number of at least {minimum}, not {value!r}"
    if hint:
        complaint += f"; {hint}"
    if isinstance(value, bool | np.bool_ | np.ndarray) or not isinstance(value, SupportsIndex):
        raise InvalidValue(complaint)
    number = operator.index(value)
    if number < minimum:
        raise InvalidValue(complaint)
    return number


def real(value: object, what: str, low: float, high: float, *, open_low: bool = False) -> float:
    """Return `value` as a float in [low, high] (or (low, high]), or refuse it by name; NaN is refused."""
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{']' if math.isfinite(high) else ')'}"
    complaint = f"{what} must be a number in {interval}, not {value!r}"
    if isinstance(value, bool | np.bool_ | np.ndarray) or not isinstance(value, SupportsFloat):
        raise InvalidValue(complaint)
    number = float(value)
    # Written so that NaN fails every comparison and falls through to the refusal.
    if not math.isnan(number) and (low < number or (number == low and not open_low)) and number <= high:
        return number
    raise InvalidValue(complaint)


def affordable(edges: float, what: str) -> None:
    """Refuse a graph whose edge list would not fit in memory, before anything is allocated."""
    if edges > MAX_EDGES:
        raise InvalidValue(
            f"{what} would have about {edges:.3g} edges; netdp stores every edge and stops at {MAX_EDGES:,}: "
            "choose a smaller or sparser graph"
        )


def listed(values: Any) -> Any:
    """Something numpy can take: iterators and sets become lists."""
    return values if isinstance(values, np.ndarray | list | tuple) else list(values)


def node_count(n: object) -> int:
    """The number of nodes of a graph, or a refusal: at least 1, and ids must fit in 32 bits."""
    try:
        nodes = whole(n, "n", 1)
    except InvalidValue as error:
        raise GraphError(f"a graph needs at least one node: {error}") from None
    if nodes >= 2**31:
        raise GraphError(f"a graph can have at most 2³¹ − 1 nodes, not {nodes}")
    return nodes


def checked_edges(n: int, edges: Any) -> IntArray:
    """The edges as an (m, 2) int64 array with u < v, sorted; or a refusal that names the first bad edge."""
    try:
        given = np.asarray(listed(edges))
    except ValueError:  # ragged
        raise GraphError("edges must be pairs (u, v); some have another length") from None
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2:
        raise GraphError(f"edges must be an (m, 2) array of node ids, not of shape {given.shape}")
    if given.dtype.kind == "f":
        whole_numbers = np.isfinite(given) & (given == np.floor(given))
        if not whole_numbers.all():
            bad = float(given[~whole_numbers][0])
            row = int(np.flatnonzero(~whole_numbers.all(axis=1))[0])
            kind = "NaN" if math.isnan(bad) else repr(bad)
            raise GraphError(f"edge {row} names the node {kind}; node ids are integers 0 to {n - 1}")
    elif given.dtype.kind not in "iu":
        raise GraphError(f"node ids are integers 0 to {n - 1}, not {given.ravel()[0].item()!r}; use labels=")
    outside = (given < 0) | (given >= n)
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise GraphError(
            f"edge {row} names the node {given[outside][0]}, outside 0 to {n - 1}; number nodes from 0 or raise n"
        )
    pairs = given.astype(np.int64)
    keys = np.minimum(pairs[:, 0], pairs[:, 1]) * n + np.maximum(pairs[:, 0], pairs[:, 1])
    keys.sort()
    u, v = np.divmod(keys, n)
    if (u == v).any():
        node = int(u[u == v][0])
        raise GraphError(f"the self-loop ({node}, {node}) is no edge of a simple graph; remove it")
    again = keys[1:] == keys[:-1]
    if again.any():
        first = int(np.flatnonzero(again)[0])
        raise GraphError(
            f"the edge ({u[first]}, {v[first]}) is listed more than once; list each edge once, in one direction"
        )
    return np.column_stack((u, v))
