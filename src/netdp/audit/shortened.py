"""Learning protocols with many iterations, made as short as can be audited, and the sentence that says so.

A promise about T iterations is measured by runs of T iterations, thousands of them. Where that takes too long a shorter protocol is
audited instead: the same noise, clip, sampling and graph, fewer iterations (steps, rounds), *with the promise that
is made for these*. The two promises come from the same accountant; an error in the noise, the clip, the coins or the graph shows
in the shorter run as well. What it cannot show is an error in how the accountant adds up more iterations than are run.
"""

from __future__ import annotations

import math
from typing import Any

from netdp.protocols import GossipDescent, MaskedDescent, Protocol, RingDescent, WalkDescent

_SUMS = 16
"""Sums of masked descent in one trial, at most, if many trials fit into one run."""
_FEW_SUMS = 8
"""The same where every trial needs a party with a coin of its own."""
_NUMBERS = 4_000_000
"""Of the matrix that says what observers of gossip descent hold: its singular values are computed."""
_STEPS = 2_000
"""Steps of a token, unless there are more users."""


def shortened(protocol: Protocol) -> Any:
    """The protocol itself, or the same with so few iterations that thousands of runs take seconds.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(8), iterations=200, sigma=1.0, step=0.5)
    >>> shortened(p).iterations, shortened(p.replace(iterations=10)) == p.replace(iterations=10)
    (16, True)
    """
    if isinstance(protocol, MaskedDescent):
        most = _FEW_SUMS if protocol.replaced else _SUMS
        return _with(protocol, iterations=max(1, most // protocol.attempts))
    if isinstance(protocol, GossipDescent):
        return _gossip(protocol)
    if isinstance(protocol, WalkDescent):
        return _with(protocol, steps=max(protocol.n, _STEPS // protocol.tokens))
    if isinstance(protocol, RingDescent):
        return _with(protocol, rounds=max(1, _STEPS // protocol.n))
    return protocol


def said(protocol: Any, short: Any) -> str:
    """What a report has to say of it; empty if nothing was shortened.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(8), iterations=200, sigma=1.0, step=0.5)
    >>> said(p, shortened(p))
    'audited with 16 instead of 200 iterations, against what is promised for 16; all else is as stated'
    """
    for name in ("iterations", "steps", "rounds"):
        full, less = getattr(protocol, name, None), getattr(short, name, None)
        if full != less:
            return f"audited with {less:,} instead of {full:,} {name}, against what is promised for {less:,}; all else is as stated"
    return ""


def _with(protocol: Any, **most: int) -> Any:
    ((name, limit),) = most.items()
    return protocol if getattr(protocol, name) <= limit else protocol.replace(**most)


def _gossip(protocol: GossipDescent) -> GossipDescent:
    """Numbers that a single observer holds, times noises: both grow with the iterations."""
    degree = max(int(graph.degrees.max(initial=1)) for graph in protocol.graphs)
    edges = max(graph.m for graph in protocol.graphs) if protocol.masks else 0
    held = degree * (protocol.gossip_rounds + (1 if protocol.masks else 0)) + 1
    most = max(1, math.isqrt(_NUMBERS // (held * (protocol.n + edges))))
    if protocol.iterations <= most:
        return protocol
    if protocol.is_static:
        return protocol.replace(iterations=most)
    mixing = protocol.mixing[:most] if isinstance(protocol.mixing, tuple) else protocol.mixing
    return protocol.replace(iterations=most, graph=protocol.graphs[:most], mixing=mixing)
