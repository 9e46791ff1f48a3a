"""Checks of arguments, so that every refusal in this room reads alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from netdp.errors import GraphError, InvalidValue
from netdp.numerics.arrays import IntArray
from netdp.numerics.checks import whole

#: Every edge is stored (about 40 bytes each while a graph is built), so a family refuses to go beyond this.
MAX_EDGES = 100_000_000


def affordable(edges: float, what: str) -> None:
    """Refuse a graph whose edge list would not fit in memory, before anything is allocated."""
    if edges > MAX_EDGES:
        raise InvalidValue(
            f"{what} would have about {edges:.3g} edges; netdp stores every edge and stops at {MAX_EDGES:,}: "
            "choose a smaller or sparser graph"
        )


def generator(seed: Any) -> np.random.Generator:
    """The random generator that a seed stands for, or a refusal that says what a seed is.

    >>> generator(3).random() == np.random.default_rng(3).random()
    True
    >>> generator("x")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: seed must be a whole number ≥ 0, a numpy.random.Generator or None, got 'x'
    """
    complaint = f"seed must be a whole number ≥ 0, a numpy.random.Generator or None, got {seed!r}"
    if isinstance(seed, np.random.RandomState):
        raise InvalidValue(f"{complaint}; use numpy.random.default_rng(seed) instead of RandomState")
    if isinstance(seed, bool | np.bool_):
        raise InvalidValue(complaint)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidValue(complaint) from None


def listed(values: Any) -> Any:
    """Something numpy can take: iterators and sets become lists; what holds no values is left as it is."""
    return (
        list(values) if isinstance(values, Iterable) and not isinstance(values, np.ndarray | list | tuple) else values
    )


def node_count(n: object) -> int:
    """The number of nodes of a graph, or a refusal: at least 1, and ids must fit in 32 bits."""
    try:
        nodes = whole("n", n, 1)
    except InvalidValue as error:
        raise GraphError(f"a graph needs at least one node: {error}") from None
    if nodes >= 2**31:
        raise GraphError(f"a graph can have at most 2³¹ − 1 nodes, got {nodes}")
    return nodes


def checked_edges(n: int, edges: Any) -> IntArray:
    """The edges as an (m, 2) int64 array with u < v, sorted; or a refusal that names the first bad edge."""
    if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
        raise GraphError(f"edges must be pairs (u, v) of node ids, got {edges!r}; an empty list stands for no edge")
    edges = listed(edges)
    try:
        given = np.asarray(edges)
    except (TypeError, ValueError):  # ragged
        raise GraphError("edges must be pairs (u, v); some have another length") from None
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2:
        raise GraphError(f"edges must be pairs (u, v), an (m, 2) array of node ids, got the shape {given.shape}")
    if given.dtype.kind == "f":
        whole_numbers = np.isfinite(given) & (given == np.floor(given))
        if not whole_numbers.all():
            bad = float(given[~whole_numbers][0])
            row = int(np.flatnonzero(~whole_numbers.all(axis=1))[0])
            kind = "NaN" if math.isnan(bad) else repr(bad)
            raise GraphError(f"edge {row} names the node {kind}; node ids are integers 0 to {n - 1}")
    elif given.dtype.kind not in "iu":
        # numpy turns (0, "a") into text, (0, None) and (0, 2**70) into objects: name the culprit, not its neighbour
        ids = [(end, isinstance(end, int | np.integer) and not isinstance(end, bool)) for edge in edges for end in edge]
        bad = next((end for end, number in ids if not (number and 0 <= end < n)), ids[0][0])
        raise GraphError(f"node ids are integers 0 to {n - 1}, got {bad!r}; number the nodes and give names by labels=")
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
