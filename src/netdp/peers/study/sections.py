"""The sections of a study file: what is promised, what is run, who talks to whom, how long to wait, who takes part.

Each checks what can be seen in it alone; `netdp.peers.study` checks them against each other.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Self

from pydantic import model_validator

from netdp.errors import InvalidValue
from netdp.graphs.families import tree_size
from netdp.graphs.spec import LINKS, examples, parse
from netdp.peers.records import Misfit, Number, Strict, Whole

from ..identity import check_name

_DRAWN = ("barabasi_albert", "erdos_renyi", "geometric", "random_tree", "regular")
"""Families of graphs with chance in them: their edges are written out, so that all machines have the same."""
_LARGEST_DELTA = 1e-3
MOST_ATTEMPTS = 1000  # far below `netdp.peers.ledger.entries.CORRECTS`
_LONGEST = 30 * 24 * 3600.0
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([1-9][0-9]{0,4})")


class Privacy(Strict):
    """What is promised to every party, and against whom."""

    epsilon: Number
    delta: Number
    colluders: Whole = 1
    attempts: Whole = 1
    absent: Whole = 0

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.epsilon <= 0:
            raise Misfit(("epsilon",), f"must be larger than 0, got {self.epsilon!r}; 1 is a usual choice")
        if not 0 < self.delta <= _LARGEST_DELTA:
            raise Misfit(
                ("delta",),
                f"is the chance that the promise fails, more than 0 and at most {_LARGEST_DELTA:g}; got {self.delta!r}. A study "
                "promises but for such a chance, which may be tiny: 1e-6 is usual, and 1e-12 takes half as much noise again",
            )
        for name, least in (("colluders", 0), ("attempts", 1), ("absent", 0)):
            if getattr(self, name) < least:
                raise Misfit((name,), f"must be {least} or more, got {getattr(self, name)}")
        if self.attempts > MOST_ATTEMPTS:
            raise Misfit(("attempts",), f"must be at most {MOST_ATTEMPTS:,}, got {self.attempts:,}")
        return self


class NetworkSection(Strict):
    """Who talks to whom: a family of graphs without chance in it, or all edges by name."""

    graph: str | None = None
    edges: tuple[tuple[str, str], ...] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.graph is None) == (self.edges is None):
            raise Misfit((), 'give one of graph = "ring:16" and edges = [["ann", "bob"], …]')
        if self.graph is not None and not is_fixed(self.graph):
            fixed = ", ".join(example for name, example in examples().items() if name not in _DRAWN)
            raise Misfit(("graph",), f"{self.graph!r} is none of {fixed}; write any other out as edges")
        return self


class Timing(Strict):
    """In seconds: how long to wait for all parties at first, and how long without news before giving up on one."""

    gather: Number = 600.0
    patience: Number = 60.0

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        for name in ("gather", "patience"):
            if not 0 < getattr(self, name) <= _LONGEST:
                raise Misfit(
                    (name,), f"must be more than 0 and at most 30 days in seconds, got {getattr(self, name)!r}"
                )
        return self


class PartySection(Strict):
    """One party: its name, and unless the study is a draft, its address and public keys (base64)."""

    name: str
    address: str = ""
    signing: str = ""
    agreement: str = ""
    certificate: str = ""

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        try:
            check_name(self.name)
        except InvalidValue as problem:
            raise Misfit(("name",), str(problem)) from None
        if self.address:
            match = _ADDRESS.fullmatch(self.address)
            if match is None or not 1 <= int(match[2]) <= 65535:
                raise Misfit(("address",), f"must be host:port, such as 10.0.0.5:7000, got {self.address!r}")
        keys = {key: getattr(self, key) for key in ("signing", "agreement", "certificate")}
        if any(keys.values()) and not all(keys.values()):
            raise Misfit(("signing",), f"{self.name} has some of its keys only; copy its whole card, or none of it")
        for key, text in keys.items():
            if text and not _is_base64(text, None if key == "certificate" else 32):
                size = "" if key == "certificate" else ", 32 bytes"
                raise Misfit((key,), f"must be base64 text{size}, as in the card of {self.name}; got {text[:40]!r}")
        return self

    @property
    def is_complete(self) -> bool:
        """Whether address and keys are there."""
        return bool(self.address and self.signing)


def is_fixed(graph: str) -> bool:
    """Whether a text names a graph that is the same on every machine: a family without chance, no file, no data set.

    >>> [is_fixed(text) for text in ("ring:16", "regular:16,6", "karate", "ring:16+rings:1")]
    [True, False, False, False]
    """
    family, colon, _ = graph.partition(":")
    key = family.strip().lower().replace("-", "_")
    return bool(colon) and key in examples() and key not in _DRAWN and LINKS not in graph


def node_count(graph: str) -> int:
    """How many nodes a graph of a fixed family has, without building it.

    >>> [node_count(text) for text in ("ring:16", "grid:3x4", "hypercube:5", "balanced_tree:2,3")]
    [16, 12, 32, 15]
    """
    family, _, rest = graph.partition(":")
    sizes = [int(digits) for digits in re.findall("[0-9]{1,9}", rest)]
    if not sizes:
        parse(graph)  # says what is wrong
        raise InvalidValue(f"graph = {graph!r} states no size; write it like ring:16")
    kind = family.strip().lower().replace("-", "_")
    if kind == "balanced_tree" and len(sizes) == 2:
        return tree_size(sizes[0], min(sizes[1], 62)) if sizes[0] > 1 else sizes[1] + 1
    return 1 << min(sizes[0], 62) if kind == "hypercube" else math.prod(sizes)


def _is_base64(text: str, size: int | None) -> bool:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    # one text for one key: otherwise the same study could have several hashes
    return base64.b64encode(content).decode() == text and size in (None, len(content))
