"""Attacks on gossip and on learning by gossip: the best linear distinguisher of two values of one party.

Gossip is linear in values and noises, so the attack is that of `netdp.audit.linear`. Learning is attacked with losses whose
gradients are constant, for which a run is linear too (docs/proofs/gossip.md#hidden-state): it is found by feeding a run
with unit gradients and unit noises. That run is put together here from the parts of `netdp.simulate`, because
`netdp.learn.train` keeps no record of messages; a test holds the two against each other. Every column is a run of its own,
with a model of one number.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from netdp.audit.attack import SIMULATOR, Attack, System, attacks, canaries, publicly_drawn, shorter
from netdp.audit.canaries import from_numbers
from netdp.audit.linear import DescentAttack, LinearAttack
from netdp.audit.noise import Sampler, _gaussian, _steps, noises
from netdp.errors import InvalidValue
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.simulate import MessageTap, add_masks, mix
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import FloatArray
from netdp.privacy.observers import Observers
from netdp.protocols.simulation import Normal, simulate
from netdp.protocols.training import clipped
from netdp.protocols.views import Transcript

attacks.refuse(
    ErdosRenyiGossip,
    ErdosRenyiDescent,
    why="its graphs are drawn first: audit(protocol) does that, or audit protocol.draw(seed)",
)


@attacks.register
def _attack_gossip_linear(
    protocol: Gossip | VaryingGossip | PushSum | RandomizedGossip,
    observers: Observers,
    target: int,
    system: System,
    seed: int,
) -> list[Attack]:
    return [LinearAttack(protocol, observers.parties, target, system, seed)]


def gossiped(protocol: GossipDescent, gradients: FloatArray, seed: int, normal: Normal, record: Any) -> FloatArray:
    """What the observers hold after a run in which party i's raw gradient in iteration t is gradients[t, i], column by column.

    First all messages that they received, then the noises that they added, then the masks on their edges. All that is drawn at
    random is noise, so the seed is not used.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.ring(4), iterations=1, gossip_rounds=1, sigma=2.0, step=0.5, clip=1.0)
    >>> gossiped(p, np.array([[[0.0], [3.0], [0.0], [0.25]]]), 0, np.ones, [0]).ravel().tolist()
    [-1.5, -1.125, 2.0]
    """
    return _run(protocol, gradients, normal, tuple(record))[0]


def gossiped_models(protocol: GossipDescent, gradients: FloatArray, normal: Normal) -> FloatArray:
    """(n, columns) the models that everybody has in the end."""
    return _run(protocol, gradients, normal, ())[1]


def _run(
    protocol: GossipDescent, gradients: FloatArray, normal: Normal, observers: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    iterations, n, columns = gradients.shape
    if (iterations, n) != (protocol.iterations, protocol.n):
        raise InvalidValue(
            f"gradients have shape {gradients.shape}; {protocol.iterations} iterations of {protocol.n} parties are expected"
        )
    own, models = list(observers), np.zeros((n, columns))
    messages, noises, masks, fresh = list[FloatArray](), list[FloatArray](), list[FloatArray](), list[FloatArray]()
    tau = protocol.step * protocol.sigma * math.sqrt(protocol.refresh / protocol.gossip_rounds)
    for t in range(iterations):
        rounds = protocol.rounds_of(t)
        gradient = clipped(gradients[t].reshape(-1, 1), protocol.clip).reshape(n, columns)
        noise = protocol.sigma * normal((n, columns))
        noises.append(noise[own])
        edges, known = add_masks(rounds.graph, rounds.masks * protocol.sigma**2, noise, normal, observers)
        masks.append(known)
        watch = MessageTap(Transcript.synchronous(rounds.graph, rounds.rounds), observers)
        start = models - protocol.step * (gradient + noise)
        models, more = mix(start, (rounds.matrix,) * rounds.rounds, rounds.chebyshev, tau, normal, watch)
        fresh += more
        if own:
            messages.append(watch.record(models, noise, known, edges, []).payloads)
    return np.vstack([*messages, *noises, *masks, *fresh]) if own else np.empty((0, columns)), models


@attacks.register
def _attack_gossip(
    protocol: GossipDescent, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    trainer: Any = gossiped if system is SIMULATOR else system
    return [DescentAttack(protocol, observers.parties, target, trainer, seed)]


@noises.register
def _noise_of_gossip(protocol: Gossip | VaryingGossip | RandomizedGossip) -> list[Sampler]:
    if protocol.grid is None:
        return []
    square = Fraction(protocol.sigma) ** 2
    fresh = Fraction(protocol.refresh) * square
    if isinstance(protocol, RandomizedGossip):
        fresh *= Fraction(protocol.n, 2 * protocol.steps)
    else:
        fresh *= Fraction(1, protocol.rounds)
    start, again = (_steps(variance, protocol.grid) for variance in (square, fresh))
    samplers = _gaussian("noise of the first state", start, protocol.start_variance, protocol, FineGaussian)
    return samplers + _gaussian("fresh noise", again, protocol.fresh_variance, protocol, FineGaussian)


@noises.register
def _noise_of_gossip_descent(protocol: GossipDescent) -> list[Sampler]:
    if protocol.grid is None:
        return []
    square = (Fraction(protocol.step) * Fraction(protocol.sigma)) ** 2
    fresh = Fraction(protocol.refresh) * square / protocol.gossip_rounds
    samplers = _gaussian(
        "noise of a gradient", _steps(square, protocol.grid), protocol.variance, protocol, FineGaussian
    )
    if not protocol.fresh_variance:
        return samplers
    return samplers + _gaussian(
        "fresh noise", _steps(fresh, protocol.grid), protocol.fresh_variance, protocol, FineGaussian
    )


@publicly_drawn.register
def _drawn_graphs(
    protocol: ErdosRenyiGossip | ErdosRenyiDescent, seed: int
) -> tuple[Gossip | VaryingGossip | GossipDescent, dict[str, Any]]:
    return protocol.draw(seed), {}


@publicly_drawn.register
def _drawn_edges(protocol: RandomizedGossip, seed: int) -> tuple[RandomizedGossip, dict[str, Any]]:
    return protocol, {"transcript": simulate(protocol, np.zeros(protocol.n), seed).transcript}


@canaries.register
def _canaries(protocol: Gossip | PushSum, *asked: Any) -> FloatArray:
    return from_numbers(protocol, *asked)


_NUMBERS = 4_000_000
"""Of the matrix that says what observers hold: its singular values are computed."""


@shorter.register
def _shorter(protocol: GossipDescent) -> GossipDescent:
    """Numbers that a single observer holds, times noises: both grow with the iterations."""
    degree = max(int(graph.degrees.max(initial=1)) for graph in protocol.graphs)
    edges = max(graph.m for graph in protocol.graphs) if protocol.masks else 0
    held = degree * (protocol.gossip_rounds + (1 if protocol.masks else 0)) + 1
    affordable = max(1, math.isqrt(_NUMBERS // (held * (protocol.n + edges))))
    if protocol.iterations <= affordable:
        return protocol
    if protocol.is_static:
        return protocol.replace(iterations=affordable)
    mixing = protocol.mixing[:affordable] if isinstance(protocol.mixing, tuple) else protocol.mixing
    return protocol.replace(iterations=affordable, graph=protocol.graphs[:affordable], mixing=mixing)
