"""Gossip and learning by gossip, run in simulation: the steps of docs/proofs/gossip.md#gossip-steps on all parties' values at once.

Rounds are products with sparse matrices; exchanges follow the random edges one by one, in a compiled loop where there is no
refresh.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from netdp.errors import InvalidValue
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
from netdp.families.gossip.protocol import (
    Gossip,
    NoisyStates,
    RandomizedGossip,
    difference,
    gossip_step,
    gossip_steps,
    gossip_weights,
    summed,
)
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.families.gossip.views import transcribe
from netdp.graphs.graph import Graph
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import average_along, csr_times_block, drift_along
from netdp.protocols.grid import Draw, held_on_the_grid
from netdp.protocols.simulation import Normal, Record, Run, Values, execute, prepared, trainers
from netdp.protocols.training import After, Losses, Trained, check_losses, checked, descended, first_model, shares
from netdp.protocols.views import Transcript

# Masks are drawn for this many edges at a time: they need not all be in memory at once.
_EDGES_AT_ONCE = 65_536


@execute.register
def _gossip(protocol: Gossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    if protocol.grid is not None:
        return _on_a_grid_gossip(protocol, data, values.bounds, seed, observers)
    noise = protocol.sigma * normal(data.shape)
    start = data + noise
    edges, masks = add_masks(protocol.graph, protocol.mask_variance, start, normal, observers)
    tau = float(np.sqrt(protocol.refresh_variance))
    matrices = (protocol.matrix,) * protocol.rounds
    transcript = transcribe(protocol)
    watch = MessageTap(transcript, observers)
    estimates, refreshes = mix(start, matrices, protocol.chebyshev, tau, normal, watch)
    kept = watch.record(data, noise, masks, edges, refreshes) if observers else None
    return Run(estimates, transcript, seed, protocol, kept)


def _on_a_grid_gossip(
    protocol: Gossip | VaryingGossip, data: FloatArray, bounds: Any, seed: int, observers: tuple[int, ...]
) -> Run:
    """The whole numbers that peers would send; noise from NumPy's words. The record is in units of the values."""
    integers = gossip_on_the_grid(protocol, data, bounds)
    draw = discrete(seed)
    (n, d), own = integers.shape, list(observers)
    noise = draw(protocol.start_variance, n * d).reshape(n, d)
    state = summed(integers, noise)
    transcript = transcribe(protocol)
    watch = MessageTap(transcript, observers)
    refreshes = []
    previous: IntArray | None = None
    for t in range(protocol.rounds):
        if t and protocol.fresh_variance:
            fresh = draw(protocol.fresh_variance, n * d).reshape(n, d)
            refreshes.append(_real(protocol, fresh[own]))
            state, previous = summed(state, fresh), None if previous is None else summed(previous, fresh)
        watch.see(t, _real(protocol, state))
        mixed = np.stack([
            gossip_step(
                row, state[u], {v: state[v] for v in row}, None if previous is None else previous[u], protocol.chebyshev
            )
            for u, row in enumerate(gossip_weights(protocol, u, t) for u in range(n))
        ])  # fmt: skip
        state, previous = mixed, state
    kept = None
    if observers:
        kept = watch.record(_real(protocol, integers), _real(protocol, noise), *no_masks(d), refreshes)
    return Run(_real(protocol, state), transcript, seed, protocol, kept)


def _real(protocol: NoisyStates, numbers: IntArray) -> FloatArray:
    return numbers.astype(np.float64) * protocol.step


def gossip_on_the_grid(protocol: NoisyStates, data: FloatArray, bounds: Any) -> IntArray:
    """The values in grid steps, (n, d), held to what the privacy rests on."""
    return held_on_the_grid(protocol, data, bounds, gossip_steps)


def discrete(seed: int) -> Draw:
    """Discrete Gaussians of any parameter, from NumPy's words: for simulation."""
    words = words_from(np.random.default_rng(seed))
    return lambda variance, size: FineGaussian(variance).sample((size,), words)


@execute.register
def _varying(protocol: VaryingGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    if protocol.grid is not None:
        return _on_a_grid_gossip(protocol, data, values.bounds, seed, observers)
    noise = protocol.sigma * normal(data.shape)
    transcript = transcribe(protocol)
    watch = MessageTap(transcript, observers)
    tau = float(np.sqrt(protocol.refresh_variance))
    estimates, refreshes = mix(data + noise, protocol.matrices, None, tau, normal, watch)
    kept = watch.record(data, noise, *no_masks(data.shape[1]), refreshes) if observers else None
    return Run(estimates, transcript, seed, protocol, kept)


@execute.register
def _push_sum(protocol: PushSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    """Every message is a share of the sender's state."""
    data, observers = prepared(values, protocol, record)
    noise = protocol.sigma * normal(data.shape)
    transcript = transcribe(protocol)
    watch, state = MessageTap(transcript, observers), data + noise
    for t in range(protocol.rounds):
        watch.see(t, state / protocol.splits[:, None])
        state = np.asarray(protocol.matrix @ state)
    kept = watch.record(data, noise, *no_masks(data.shape[1]), []) if observers else None
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
    watch: MessageTap,
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


def no_masks(columns: int) -> tuple[FloatArray, IntArray]:
    """The masks that observers know, and on which edges, where there are none."""
    return np.empty((0, columns)), np.empty((0, 2), dtype=np.int64)


def add_masks(
    graph: Graph, variance: float, state: FloatArray, normal: Normal, observers: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """Draw one mask per edge, add it at u and subtract it at w, in place; return those the observers know."""
    nothing, no_edges = no_masks(state.shape[1])
    known, known_edges = [nothing], [no_edges]
    edges = graph.edges() if variance > 0 else no_edges
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


class MessageTap:
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


@trainers.register
def _train(
    protocol: GossipDescent | ErdosRenyiDescent,
    losses: Losses,
    seed: int,
    *,
    after: After | None = None,
    average: str = "last",
    convexity: float = 0.0,
) -> Trained:
    """Secret graphs are those that the seed draws."""
    if isinstance(protocol, ErdosRenyiDescent):
        protocol = protocol.draw(seed)
    check_losses(protocol, losses)
    # on a grid local DP may be all that is claimed, and rests on nothing
    needed = 1.0 if math.isinf(protocol.expansion) else losses.expansion(protocol.step, protocol.clip)
    if not needed <= protocol.expansion * (1 + 1e-12):  # the certified loss rests on it; nan is no answer either
        raise InvalidValue(
            f"a local step of size {protocol.step:g} may stretch distances by {needed:.4g}, the protocol's "
            "certified loss "
            f"assumes at most {protocol.expansion:g}; shorten the step, or state expansion={needed:.4g} in the "
            "protocol"
        )
    if protocol.batch is not None:
        losses = _Batches(losses, protocol.batch, seed)
    if protocol.grid is not None:
        return _train_on_a_grid(protocol, losses, seed, after, shares(protocol, average, convexity))
    rng = np.random.default_rng(seed)
    transcript = transcribe(protocol)
    nobody = MessageTap(transcript, ())

    def step(t: int, models: FloatArray, gradient: FloatArray) -> FloatArray:
        rounds = protocol.rounds_of(t)
        noise = protocol.sigma * rng.standard_normal(models.shape)
        add_masks(rounds.graph, rounds.masks * protocol.sigma**2, noise, rng.standard_normal, ())
        matrices = (rounds.matrix,) * rounds.rounds
        start = models - protocol.step * (gradient + noise)
        return mix(start, matrices, rounds.chebyshev, 0.0, rng.standard_normal, nobody)[0]

    return descended(protocol, losses, step, transcript, after=after, average=average, convexity=convexity)


class _Batches:
    """Losses whose gradients are of a few rows of each party, drawn anew every time, from a stream of their own."""

    def __init__(self, losses: Any, size: int, seed: int) -> None:
        if not hasattr(losses, "draw_batch"):
            raise InvalidValue(
                f"batch={size} draws rows, and {type(losses).__name__} has none to draw from; give LogisticParties or "
                "ModelParties, or leave batch out"
            )
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._losses, self._size = losses, size
        self._rng = np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, 1)))
        self.n, self.d = losses.n, losses.d

    def start(self) -> FloatArray:
        return first_model(self._losses)

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        found: FloatArray = self._losses.gradients(models, clip, self._losses.draw_batch(self._size, self._rng))
        return found

    def expansion(self, step: float, clip: float) -> float:
        return float(self._losses.expansion(step, clip))


def _train_on_a_grid(
    protocol: GossipDescent, losses: Losses, seed: int, after: After | None, share: FloatArray
) -> Trained:
    """The whole numbers that peers would send; noise from NumPy's words."""
    n, d, draw = protocol.n, losses.d, discrete(seed)
    weights = [gossip_weights(protocol, u) for u in range(n)]
    states = np.tile(protocol.start(first_model(losses)), (n, 1))
    kept = np.zeros((n, d))
    for t in range(protocol.iterations):
        models = protocol.model(states)
        gradients = checked(losses.gradients(models, protocol.clip), models.shape, protocol.clip)
        sent = states - np.stack([protocol.in_steps(one) for one in gradients])
        for k in range(protocol.gossip_rounds):
            if variance := protocol.fresh_variance if k else protocol.variance:
                sent = summed(sent, draw(variance, n * d).reshape(n, d))
            sent = np.stack([gossip_step(row, sent[u], {v: sent[v] for v in row}) for u, row in enumerate(weights)])
        states = sent
        if share[t]:
            kept += share[t] * protocol.model(states)
        if after is not None:
            after(t, protocol.model(states))
    return Trained(kept, transcribe(protocol))


@execute.register
def _randomized(protocol: RandomizedGossip, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data, observers = prepared(values, protocol, record)
    if protocol.grid is not None:
        return _on_a_grid_randomized(protocol, data, values.bounds, seed, observers)
    noise = protocol.sigma * normal(data.shape)
    edges = protocol.draw(seed)
    watch = _Watch(len(data), observers)
    if protocol.refresh > 0:
        tau, d = float(np.sqrt(protocol.refresh_variance)), data.shape[1]
        state = along(edges, data + noise, lambda: tau * normal((d,)), _mean, watch)
    else:
        state = data + noise
        watch.payloads = list(_compiled(protocol, edges, state, observers))
    return watch.run(protocol, state, edges, seed, data, noise)


def _compiled(protocol: RandomizedGossip, edges: IntArray, state: FloatArray, observers: tuple[int, ...]) -> FloatArray:
    """All exchanges without refresh, in place; returns what the observers receive."""
    watched = np.zeros(len(state), dtype=bool)
    watched[list(observers)] = True
    awake = edges[edges[:, 0] >= 0]
    payloads = np.empty((int(watched[awake].sum()), state.shape[1]))
    if protocol.accelerated:
        drift_along(edges, state, state.copy(), *protocol.momentum, watched, payloads)
    else:
        average_along(edges, state, watched, payloads)
    return payloads


def _on_a_grid_randomized(
    protocol: RandomizedGossip, data: FloatArray, bounds: Any, seed: int, observers: tuple[int, ...]
) -> Run:
    """The whole numbers that peers would send; noise from NumPy's words. The record is in units of the values."""
    integers = gossip_on_the_grid(protocol, data, bounds)
    draw, edges = discrete(seed), protocol.draw(seed)
    n, d = integers.shape
    noise = draw(protocol.start_variance, n * d).reshape(n, d)
    ends = edges[edges[:, 0] >= 0]
    later = max(2 * len(ends) - len(np.unique(ends)), 0)
    fresh = iter(())
    if protocol.fresh_variance:
        fresh = iter(draw(protocol.fresh_variance, later * d).reshape(later, d))
    nothing = np.zeros(d, dtype=np.int64)
    watch = _Watch(n, observers, protocol.step)
    state = along(edges, summed(integers, noise), lambda: next(fresh, nothing), _halves, watch)
    return watch.run(protocol, _real(protocol, state), edges, seed, _real(protocol, integers), _real(protocol, noise))


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
