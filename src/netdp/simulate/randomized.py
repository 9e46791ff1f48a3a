"""Randomized gossip, run: one edge at a time; in real numbers without refresh in a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import RandomizedGossip
from netdp.protocols.exchange import difference
from netdp.protocols.gossip import gossip_steps, summed
from netdp.views import Transcript

from .gossip import discrete
from .on_a_grid import held_on_the_grid
from .run import Normal, Record, Run, Values, execute, prepared


@execute.register
def _randomized(protocol: RandomizedGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    if protocol.grid is not None:
        return _on_a_grid(protocol, data, values.bounds, seed, observers)
    noise = protocol.sigma * normal(data.shape)
    edges = protocol.draw(seed)
    if protocol.refresh > 0:
        tau, d = float(np.sqrt(protocol.refresh_variance)), data.shape[1]
        watch = _Watch(len(data), observers)
        state = along(edges, data + noise, lambda: tau * normal((d,)), _mean, watch)
        return watch.run(protocol, state, edges, seed, data, noise)
    return _plain(protocol, data, noise, edges, seed, observers)


def _plain(
    protocol: RandomizedGossip,
    data: FloatArray,
    noise: FloatArray,
    edges: IntArray,
    seed: int,
    observers: tuple[int, ...],
) -> Run:
    from netdp.numerics.kernels import average_along, drift_along

    watched = np.zeros(len(data), dtype=bool)
    watched[list(observers)] = True
    awake = edges[edges[:, 0] >= 0]
    state, payloads = data + noise, np.empty((int(watched[awake].sum()), data.shape[1]))
    if protocol.accelerated:
        drift_along(edges, state, state.copy(), *protocol.momentum, watched, payloads)
    else:
        average_along(edges, state, watched, payloads)
    watch = _Watch(len(data), observers)
    watch.payloads = list(payloads)
    return watch.run(protocol, state, edges, seed, data, noise)


def _on_a_grid(protocol: RandomizedGossip, data: FloatArray, bounds: Any, seed: int, observers: tuple[int, ...]) -> Run:
    """The whole numbers that peers would send; noise from NumPy's words. The record is in units of the values."""
    integers = held_on_the_grid(protocol, data, bounds, gossip_steps)
    draw, edges = discrete(seed), protocol.draw(seed)
    (n, d), step = integers.shape, protocol.step
    noise = draw(protocol.start_variance, n * d).reshape(n, d)
    ends = edges[edges[:, 0] >= 0]
    later = max(2 * len(ends) - len(np.unique(ends)), 0)
    fresh = iter(())
    if protocol.fresh_variance:
        fresh = iter(draw(protocol.fresh_variance, later * d).reshape(later, d))
    nothing = np.zeros(d, dtype=np.int64)
    watch = _Watch(n, observers, step)
    state = along(edges, summed(integers, noise), lambda: next(fresh, nothing), _halves, watch)
    in_units = [np.asarray(x, dtype=np.float64) * step for x in (state, integers, noise)]
    return watch.run(protocol, in_units[0], edges, seed, in_units[1], in_units[2])


def along(
    edges: IntArray,
    start: Any,
    fresh: Callable[[], Any],
    share: Callable[[int, Any, int, Any], tuple[Any, Any]],
    watch: _Watch,
) -> Any:
    """The final states (n, d): exchanges one after the other, each end adding `fresh()` before every send but its first."""
    state, began = start.copy(), np.zeros(len(start), dtype=bool)
    for u, w in edges.tolist():
        if u < 0:
            continue
        for p in (u, w):
            if began[p]:
                noise = fresh()
                state[p] = summed(state[p], noise) if state.dtype.kind == "i" else state[p] + noise
                watch.refreshed(p, noise)
            began[p] = True
        watch.exchanged(u, w, state)
        state[u], state[w] = share(u, state[u].copy(), w, state[w].copy())
    return state


def _mean(u: int, mine: FloatArray, w: int, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = 0.5 * (mine + other)
    return mean, mean


def _halves(u: int, mine: IntArray, w: int, other: IntArray) -> tuple[IntArray, IntArray]:
    return mine + difference(u, mine, w, other), other + difference(w, other, u, mine)


class _Watch:
    """Notes what the observers receive, in the order of `Transcript.received_by`, and the fresh noise they add."""

    def __init__(self, n: int, observers: tuple[int, ...], unit: float = 1.0) -> None:
        self._n, self._observers, self._unit = n, observers, unit
        self.payloads: list[FloatArray] = []
        self._fresh: dict[int, list[FloatArray]] = {p: [] for p in observers}

    def refreshed(self, party: int, noise: Any) -> None:
        if party in self._fresh:
            self._fresh[party].append(noise * self._unit)

    def exchanged(self, u: int, w: int, state: Any) -> None:
        for receiver, sender in sorted(((u, w), (w, u))):
            if receiver in self._fresh:
                self.payloads.append(state[sender] * self._unit)

    def run(
        self,
        protocol: RandomizedGossip,
        state: FloatArray,
        edges: IntArray,
        seed: int,
        data: FloatArray,
        noise: FloatArray,
    ) -> Run:
        transcript = Transcript.pairwise(self._n, edges)
        kept, own, d = None, list(self._observers), data.shape[1]
        if own:
            refreshes = np.zeros((max(map(len, self._fresh.values())), len(own), d))
            for place, party in enumerate(own):
                refreshes[: len(self._fresh[party]), place] = np.reshape(self._fresh[party], (-1, d))
            kept = Record(
                observers=self._observers,
                messages=transcript.received_by(own),
                payloads=np.reshape(self.payloads, (-1, d)),
                values=data[own],
                noises=noise[own],
                masks=np.empty((0, d)),
                mask_edges=np.empty((0, 2), dtype=np.int64),
                refreshes=refreshes,
            )
        return Run(state, transcript, seed, protocol, kept)
