"""Synchronous gossip, run: the steps of `netdp.protocols.gossip` as they stand there, on sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from netdp.graphs import Graph
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import ErdosRenyiDescent, ErdosRenyiGossip, Gossip, PushSum, VaryingGossip
from netdp.protocols.gossip import gossip_step, gossip_steps, gossip_weights, summed
from netdp.protocols.ring import Draw
from netdp.views import Transcript, transcribe

from .on_a_grid import held_on_the_grid
from .run import Normal, Record, Run, Values, execute, prepared

# Masks are drawn for this many edges at a time: they need not all be in memory at once.
_EDGES_AT_ONCE = 65_536

execute.refuse(
    ErdosRenyiDescent,
    why="it trains a model: netdp.learn.train(protocol.draw(seed), losses, seed), on the graphs of that draw",
)


@execute.register
def _gossip(protocol: Gossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    if protocol.grid is not None:
        return _on_a_grid(protocol, data, values.bounds, seed, observers)
    noise = protocol.sigma * normal(data.shape)
    start = data + noise
    edges, masks = add_masks(protocol.graph, protocol.mask_variance, start, normal, observers)
    tau = float(np.sqrt(protocol.refresh_variance))
    matrices = (protocol.matrix,) * protocol.rounds
    transcript = transcribe(protocol)
    watch = Watch(transcript, observers)
    estimates, refreshes = mix(start, matrices, protocol.chebyshev, tau, normal, watch)
    kept = watch.record(data, noise, masks, edges, refreshes) if observers else None
    return Run(estimates, transcript, seed, protocol, kept)


def _on_a_grid(protocol: Gossip, data: FloatArray, bounds: Any, seed: int, observers: tuple[int, ...]) -> Run:
    """The whole numbers that peers would send; noise from NumPy's words. The record is in units of the values."""
    integers = gossip_on_the_grid(protocol, data, bounds)
    draw = discrete(seed)
    (n, d), own = integers.shape, list(observers)
    noise = draw(protocol.start_variance, n * d).reshape(n, d)
    state = summed(integers, noise)
    weights = [gossip_weights(protocol, u) for u in range(n)]
    transcript = transcribe(protocol)
    watch = Watch(transcript, observers)
    refreshes = []
    for t in range(protocol.rounds):
        if t and protocol.fresh_variance:
            fresh = draw(protocol.fresh_variance, n * d).reshape(n, d)
            refreshes.append(_real(protocol, fresh[own]))
            state = summed(state, fresh)
        watch.see(t, _real(protocol, state))
        state = np.stack([gossip_step(row, state[u], {v: state[v] for v in row}) for u, row in enumerate(weights)])
    kept = None
    if observers:
        no_masks = np.empty((0, d)), np.empty((0, 2), dtype=np.int64)
        kept = watch.record(_real(protocol, integers), _real(protocol, noise), *no_masks, refreshes)
    return Run(_real(protocol, state), transcript, seed, protocol, kept)


def _real(protocol: Gossip, numbers: IntArray) -> FloatArray:
    return numbers.astype(np.float64) * protocol.step


def gossip_on_the_grid(protocol: Gossip, data: FloatArray, bounds: Any) -> IntArray:
    """The values in grid steps, (n, d), held to what the privacy rests on."""
    return held_on_the_grid(protocol, data, bounds, gossip_steps)


def discrete(seed: int) -> Draw:
    """Discrete Gaussians of any parameter, from NumPy's words: for simulation."""
    words = words_from(np.random.default_rng(seed))
    return lambda variance, size: FineGaussian(variance).sample((size,), words)


@execute.register
def _varying(protocol: VaryingGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    noise = protocol.sigma * normal(data.shape)
    transcript = transcribe(protocol)
    watch = Watch(transcript, observers)
    estimates, refreshes = mix(data + noise, protocol.matrices, None, 0.0, normal, watch)
    nobody = np.empty((0, data.shape[1])), np.empty((0, 2), dtype=np.int64)
    kept = watch.record(data, noise, *nobody, refreshes) if observers else None
    return Run(estimates, transcript, seed, protocol, kept)


@execute.register
def _push_sum(protocol: PushSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    """Every message is a share of the sender's state."""
    data, observers = prepared(values, protocol, record)
    noise = protocol.sigma * normal(data.shape)
    transcript = Transcript(protocol.n, (np.array(protocol.links),), np.zeros(protocol.rounds, dtype=np.int64))
    watch, state = Watch(transcript, observers), data + noise
    for t in range(protocol.rounds):
        watch.see(t, state / protocol.splits[:, None])
        state = np.asarray(protocol.matrix @ state)
    nobody = np.empty((0, data.shape[1])), np.empty((0, 2), dtype=np.int64)
    kept = watch.record(data, noise, *nobody, []) if observers else None
    return Run(state / protocol.weights[:, None], transcript, seed, protocol, kept)


@execute.register
def _erdos_renyi(protocol: ErdosRenyiGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    run: Run = execute(protocol.draw(seed), values, seed, normal, record)
    return run


def mix(
    state: FloatArray,
    matrices: Sequence[sparse.csr_array],
    gamma: float | None,
    tau: float,
    normal: Normal,
    watch: Watch,
) -> tuple[FloatArray, list[FloatArray]]:
    """The final states, and the fresh noises of the watched parties."""
    remembered, refreshes = state, []
    for t, W in enumerate(matrices):
        if t and tau > 0:
            fresh = tau * normal(state.shape)
            refreshes.append(fresh[list(watch.observers)])
            state = state + fresh
            if gamma is not None:
                remembered = remembered + fresh
        watch.see(t, state)
        mixed = csr_times_block(W.indptr, W.indices, W.data, state)
        if gamma is not None and t:
            mixed *= gamma
            mixed += (1.0 - gamma) * remembered
        state, remembered = mixed, state
    return state, refreshes


def add_masks(
    graph: Graph, variance: float, state: FloatArray, normal: Normal, observers: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """Draw one mask per edge, add it at u and subtract it at w, in place; return those the observers know."""
    known_edges, known = [np.empty((0, 2), dtype=np.int64)], [np.empty((0, state.shape[1]))]
    edges = graph.edges() if variance > 0 else known_edges[0]
    for first in range(0, len(edges), _EDGES_AT_ONCE):
        u, w = chosen = edges[first : first + _EDGES_AT_ONCE].T
        masks = np.sqrt(variance) * normal((len(u), state.shape[1]))
        places = np.arange(len(u))
        signs = sparse.csr_array(
            (np.repeat([1.0, -1.0], len(u)), (np.concatenate([u, w]), np.tile(places, 2))), shape=(len(state), len(u))
        )
        state += signs @ masks
        own = np.isin(chosen, observers).any(axis=0)
        known_edges.append(chosen.T[own])
        known.append(masks[own])
    return np.vstack(known_edges), np.vstack(known)


class Watch:
    """Notes what the observers receive, in the order of `Transcript.received_by`."""

    def __init__(self, transcript: Transcript, observers: tuple[int, ...]) -> None:
        self.observers, self._transcript = observers, transcript
        self._senders = [p[np.isin(p[:, 1], observers), 0] for p in transcript.patterns] if observers else []
        self._payloads: list[FloatArray] = []

    def see(self, t: int, state: FloatArray) -> None:
        if self.observers:
            self._payloads.append(state[self._senders[int(self._transcript.schedule[t])]])

    def record(
        self, values: FloatArray, noise: FloatArray, masks: FloatArray, edges: IntArray, refreshes: list[FloatArray]
    ) -> Record:
        own = list(self.observers)
        return Record(
            observers=self.observers,
            messages=self._transcript.received_by(own),
            payloads=np.vstack(self._payloads),
            values=values[own],
            noises=noise[own],
            masks=masks,
            mask_edges=edges,
            refreshes=np.array(refreshes).reshape(len(refreshes), len(own), values.shape[1]),
        )
