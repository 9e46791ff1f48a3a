"""Randomized gossip, run: one edge at a time, in a compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.protocols import RandomizedGossip
from netdp.views import Transcript

from .run import Normal, Record, Run, Values, execute, prepared


@execute.register
def _randomized(protocol: RandomizedGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    from netdp.numerics.kernels import average_along, drift_along

    data, observers = prepared(values, protocol, record)
    noise = protocol.sigma * normal(data.shape)
    edges = protocol.draw(seed)
    watched = np.zeros(len(data), dtype=bool)
    watched[list(observers)] = True
    awake = edges[edges[:, 0] >= 0]
    state, payloads = data + noise, np.empty((int(watched[awake].sum()), data.shape[1]))
    if protocol.accelerated:
        drift_along(edges, state, state.copy(), *protocol.momentum, watched, payloads)
    else:
        average_along(edges, state, watched, payloads)
    transcript = Transcript.pairwise(len(data), edges)
    kept = None
    if observers:
        own, d = list(observers), data.shape[1]
        kept = Record(
            observers=observers,
            messages=transcript.received_by(own),
            payloads=payloads,
            values=data[own],
            noises=noise[own],
            masks=np.empty((0, d)),
            mask_edges=np.empty((0, 2), dtype=np.int64),
            refreshes=np.empty((0, len(own), d)),
        )
    return Run(state, transcript, seed, protocol, kept)
