"""Learning by gossip: rounds, noise and promise of `GossipDescent` for an estimator, and how it is planned."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from netdp import graphs as graph_families
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account import descent
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.plan import worst_energy
from netdp.families.gossip.protocol import response
from netdp.graphs.graph import Graph
from netdp.graphs.shape import vertex_transitive
from netdp.graphs.spectrum import spectral_gap
from netdp.learn.fitting import (
    Fitted,
    Screen,
    TrainingRequest,
    checked_step,
    entropy,
    party_graph,
    step_for,
    target,
    unit_rows_with_constant,
    warn_if_noise_wins,
)
from netdp.learn.planning import Learning, learnings
from netdp.models.parties import LogisticParties
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, non_negative, positive
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.wording import warn_if_weak
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate
from netdp.protocols.training import TrainingCost, train


def rounds_needed(gap: float, n: int, heterogeneity: float = 0.0, variance: float = 1.0) -> int:
    """Theorem 5: K = ⌈ln(max(n, ζ̄²/(σ² + ρ̄²)))/√λ⌉ rounds of accelerated gossip per gradient.

    >>> rounds_needed(0.25, 100), rounds_needed(0.25, 100, heterogeneity=500.0, variance=0.5)
    (10, 14)
    """
    if not 0 < gap <= 1:
        raise InvalidValue(f"the spectral gap must lie in (0, 1], got {gap!r}; a gap of 0 never mixes")
    ratio = max(count("n", n), non_negative("heterogeneity", heterogeneity) / positive("variance", variance))
    return max(1, math.ceil(math.log(ratio) / math.sqrt(gap)))


def _left_over(protocol: GossipDescent, holder: int) -> float:
    """Σ_j (|h_j|² + κ·h_jᵀLh_j): the variance of the holder's model in units of ν²σ²."""
    impulse = np.zeros((protocol.n, 1))
    impulse[holder] = 1.0
    total = 0.0
    for j in range(protocol.iterations):
        rounds = protocol.rounds_of(protocol.iterations - 1 - j)
        # p_K(W)ᵀ: whose noise, and how much of it, is in the holder's model
        *_, impulse = response(rounds.matrix.T.dot, impulse, rounds.rounds + 1, rounds.chebyshev)
        square = float((impulse**2).sum())
        total += square + rounds.masks * _differences(rounds.graph, impulse)
        if protocol.is_static and np.ptp(impulse) < 1e-3 / protocol.n:  # mixed: all that follow are alike
            return total + (protocol.iterations - 1 - j) / protocol.n
    return total


def _differences(graph: Graph, values: FloatArray) -> float:
    """Σ over edges of the squared difference."""
    ends = np.asarray(graph.edges())
    return float(((values[ends[:, 0]] - values[ends[:, 1]]) ** 2).sum())


# On slow graphs more rounds would take longer than they are worth; the loss is certified for whatever number is used.
_MOST_ROUNDS = 50

# One observer stands for all on a symmetric graph; above this many parties a bound for all is quicker than that one.
_FEW_PARTIES = 256


def _usual_graph(parties: int) -> Graph:
    if parties >= 2 and parties & (parties - 1) == 0:
        return graph_families.hypercube(parties.bit_length() - 1)
    return graph_families.complete(parties)


def _mixing_rounds(graph: Graph, masks: float) -> int:
    """Rounds after which masks have sunk to the size of the noise of a mean: (1 − gap)^2K ≤ 1/(n·max(κ, 1))."""
    slowest = 1.0 - spectral_gap(graph)
    if slowest <= 1e-9:  # a complete graph mixes at once
        return 1
    return max(1, min(_MOST_ROUNDS, math.ceil(math.log(graph.n * max(masks, 1.0)) / (-2.0 * math.log(slowest)))))


@lru_cache(maxsize=64)
def _promised(
    draft: GossipDescent, epsilon: float, delta: float, names: tuple[str, ...] | None
) -> tuple[GossipDescent, Guarantee]:
    """The calibrated protocol and its loss: they do not depend on the data, so cross-validation computes them once.

    `names` are those of the parties: protocols are equal whatever their parties are called, and the result is not.
    """
    energy = worst_energies(draft)
    protocol = calibrate(draft, epsilon, delta, energy=float(energy.max()))
    # What a loss assumes does not depend on the graph: ask about a small one.
    small = account(protocol.replace(graph=graph_families.complete(2), iterations=1, gossip_rounds=1), [0])
    return protocol, dataclasses.replace(
        small,
        curve=GaussianCurve(np.sqrt(energy) * protocol.sensitivity / protocol.sigma),
        factor=energy / protocol.iterations,
        observers=Observers(roles=("single other party that learns most",)),
        assumptions=(
            *small.assumptions,
            "no two parties pool what they see; whoever is given coef_ pools with the holder",
        ),
        names=names,
    )


def worst_energies(protocol: GossipDescent) -> FloatArray:
    """For every party, its largest Σμ_t² (in units of Δ²/σ²) over all other parties, each looking alone.

    >>> p = GossipDescent(graph_families.hypercube(3), 4, 3, sigma=1.0, step=1.0, masks=10.0)
    >>> bool(np.allclose(worst_energies(p), worst_energy(p)))
    True
    """
    if isinstance(protocol.graph, Graph) and vertex_transitive(protocol.graph, protocol.mixing):
        targets = _one_per_distance(protocol.network)
        if targets is not None or protocol.n <= _FEW_PARTIES:
            return np.full(protocol.n, worst_energy(protocol, [(0,)], targets))
    return descent.worst_energies(protocol)


def _one_per_distance(graph: Graph) -> list[int] | None:
    """One party at every distance from party 0, where that settles what it learns; else None, for all. Of a known family."""
    if graph.name.startswith("complete"):
        return [1]
    if graph.name.startswith("hypercube"):
        return [2**bits - 1 for bits in range(1, graph.n.bit_length())]
    return None


class GossipLearning(Learning):
    """Rounds of gossip stand between two iterations."""

    most = 200
    wandering = 15.0

    def sized(self, draft: GossipDescent, length: int, rounds: int, step: float) -> GossipDescent:
        return draft.replace(iterations=length, gossip_rounds=rounds, step=step)

    def rounds(self, draft: GossipDescent, longest: int) -> Iterator[int]:
        """From 1 to what the papers' formula asks for, and a little beyond."""
        if not isinstance(draft.graph, Graph):
            raise Unsupported(
                "GossipDescent on a graph for every iteration: their number is fixed; plan on one graph, or choose yourself"
            )
        gap = spectral_gap(draft.network, draft.mixing_of(0)) if draft.gap is None else draft.gap
        enough = min(rounds_needed(gap, draft.n), longest)
        rounds = 1
        while rounds < enough:
            yield rounds
            rounds = max(rounds + 1, round(1.7 * rounds))
        yield enough

    def edge(self, protocol: GossipDescent, reach: float, features: int, holder: int) -> float:
        return reach * protocol.iterations / (protocol.sigma * math.sqrt(_left_over(protocol, holder) * features))


@learnings.register
def _learning(protocol: GossipDescent) -> Learning:
    return GossipLearning()


_ITERATIONS, _CLIP, _MASKS = 160, 0.1, 100.0


def learn_gossip(
    asked: TrainingRequest,
    X: FloatArray,
    labels: FloatArray,
    *,
    gossip_rounds: Any = None,
    masks: Any = None,
    holder: Any = None,
) -> Fitted:
    """Binary logistic regression from rows and labels ±1; what is kept is the holder's model, averaged over the later half."""
    if asked.colluders != 1:
        raise Unsupported(f"protocol='gossip' with colluders={asked.colluders!r}: use 'masked' or 'walk'")
    epsilon, delta = target(asked.epsilon, asked.delta)
    warn_if_weak(epsilon, stacklevel=5)
    clip = positive("clip", _CLIP if asked.clip is None else asked.clip)
    masks = non_negative("masks", _MASKS if masks is None else masks)
    step = None if asked.step is None else checked_step(asked.step, clip)
    graph = party_graph(asked.graph, asked.parties, len(labels), _usual_graph)
    place = _place(graph, holder)
    seeds = entropy(asked.random_state).spawn(2)
    data = LogisticParties.deal(unit_rows_with_constant(X), labels, graph.n, np.random.default_rng(seeds[0]))
    rounds = _mixing_rounds(graph, masks) if gossip_rounds is None else gossip_rounds
    iterations = _ITERATIONS if asked.iterations is None else asked.iterations
    draft = GossipDescent(graph, iterations, rounds, sigma=1.0, step=step or 1.0, clip=clip, masks=masks)
    protocol, guarantee = _promised(draft, epsilon, delta, graph.labels)
    protocol = protocol if step is not None else protocol.replace(step=step_for(protocol, data.d, place))
    warn_if_noise_wins(protocol, data.d, place, stacklevel=5)
    later = protocol.iterations // 2
    total = np.zeros(data.d)
    with Screen(asked.verbose, protocol) as screen:

        def keep(t: int, models: FloatArray) -> None:
            if t >= later:
                total[:] += models[place]
            screen.told(t + 1, models[place])

        train(protocol, data, seeds[1], after=keep)
    return Fitted(total / (protocol.iterations - later), protocol, guarantee, None, holder=graph.label(place))


def _place(graph: Graph, holder: Any) -> int:
    try:
        return graph.index(0 if holder is None else holder)
    except InvalidValue as error:
        raise InvalidValue(f"holder {holder!r} is no party: {error}") from None


_BANDWIDTH = 12.5e6  # bytes a second that a party can send
_SLOPE = 1e-9  # seconds for one number of one record's gradient


def expected_cost(protocol: GossipDescent, latency: float) -> TrainingCost:
    """Bytes and rounds of a whole run on peers, and about how many seconds it takes: every round waits for the slowest.

    >>> p = GossipDescent(graph_families.ring(6), 100, 2, sigma=1.0, step=0.5, grid=2.0**-40, dimension=1000)
    >>> print(*str(expected_cost(p, 0.05)).split("; "), sep="\\n")
    100 iterations, 200 rounds of messages
    a party publishes 8 KB in each and sends about 3.2 MB in all, none more than 3.2 MB, at most 1.6 MB over one link
    72 KB of memory
    about 10 s (an estimate)
    """
    body, degrees = 8 * protocol.dimension, protocol.network.degrees
    link = protocol.sends * body
    most = int(degrees.max(initial=0))
    seconds = protocol.sends * (latency + most * body / _BANDWIDTH)
    return TrainingCost(
        iterations=protocol.iterations, rounds=protocol.sends, step_bytes=body, link_bytes=link,
        mean_bytes=round(float(degrees.mean()) * link), party_bytes=most * link, memory_bytes=body * (3 + 3 * most),
        seconds=seconds + protocol.iterations * protocol.dimension * _SLOPE,
    )  # fmt: skip
