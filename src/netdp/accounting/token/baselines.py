"""The classical alternatives to tokens, with the same noise and composed as tightly: local DP, a trusted curator."""

from __future__ import annotations

import math

import numpy as np

from netdp.accounting.baselines import curator, local, said, single_response
from netdp.numerics.arrays import UNIT
from netdp.privacy import Claim, GaussianCurve, Guarantee, ProfileCurve
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, WalkDescent, WalkHistogram, WalkSum

from .events import Event, compose_events, least
from .graph_walk import visits_profile
from .ring import heap_profile
from .ring_on_a_grid import published_rounds
from .sampled import Shift, block, mixture
from .walk import contributions_law, hidden_bounds, local_profile, more_delta, most_contributions, sampled_responses

_LOCAL = "every user publishes all its contributions, each with its own noise"
_SHUFFLED = "a curator that everybody trusts publishes the histogram of every round's answers, without their owners"
_DRAWN = "a curator that everybody trusts draws users in secret and publishes every answer without its owner"
_CENTRAL = (
    "a curator that everybody trusts sees all contributions and keeps the walk to itself; only its answers are seen"
)


@local.register
def _local_ring(protocol: RingSum) -> Guarantee:
    if protocol.grid is not None:
        return said(published_rounds(protocol), _LOCAL)
    return said(GaussianCurve(protocol.local_mu), _LOCAL, Claim.EXACT)


@local.register
def _local_walk(protocol: WalkSum | WalkDescent) -> Guarantee:
    return said(local_profile(protocol, protocol.sensitivity / protocol.sigma), _LOCAL)


@local.register
def _local_histogram(protocol: RingHistogram | WalkHistogram) -> Guarantee:
    count, unlikely = (protocol.rounds, 0.0) if isinstance(protocol, RingHistogram) else most_contributions(protocol)
    return said(more_delta(single_response(protocol.epsilon0, protocol.domain).self_compose(count), unlikely), _LOCAL)


@local.register
def _local_path(protocol: PathSum) -> Guarantee:
    mu = np.sqrt(protocol.given) * protocol.sensitivity / protocol.sigma
    return said(GaussianCurve(mu), _LOCAL, Claim.EXACT)


@local.register
def _local_graph_walk(protocol: GraphWalkSum) -> Guarantee:
    return said(visits_profile(protocol, summed=False), _LOCAL)


@curator.register
def _curator_path(protocol: PathSum) -> Guarantee:
    """The sum of all contributions with all their noise: u's shift it by c_u·Δ."""
    steps = sum(len(path) for path in protocol.paths) + protocol.closing * protocol.tokens
    mu = protocol.given * protocol.sensitivity / (protocol.sigma * math.sqrt(steps))
    return said(GaussianCurve(mu * (1 + 8 * UNIT)), _CENTRAL, Claim.EXACT)


@curator.register
def _curator_graph_walk(protocol: GraphWalkSum) -> Guarantee:
    return said(visits_profile(protocol, summed=True), _CENTRAL)


@curator.register
def _curator_ring_histogram(protocol: RingHistogram) -> Guarantee:
    if protocol.epsilon0 == 0:
        return said(ProfileCurve([0.0], [0.0]), _SHUFFLED)
    heap = heap_profile(protocol.n - 1, 0, protocol.domain, protocol.gamma)
    return said(heap.self_compose(protocol.rounds), _SHUFFLED)


@curator.register
def _curator_walk_histogram(protocol: WalkHistogram) -> Guarantee:
    if protocol.epsilon0 == 0:
        return said(ProfileCurve([0.0], [0.0]), _DRAWN)
    return said(sampled_responses(protocol, 1.0 / protocol.n, 0.0), _DRAWN)


@curator.register
def _curator_ring(protocol: RingSum) -> Guarantee:
    every_round = "a trusted curator publishes the noisy sum of every round"
    if protocol.grid is not None:
        return said(published_rounds(protocol), every_round)
    return said(GaussianCurve(protocol.local_mu), every_round, Claim.EXACT)


@curator.register
def _curator_sum(protocol: WalkSum) -> Guarantee:
    """All contributions in noise of variance Tσ²: a shift of kΔ, k the number of u's visits, told or not."""
    steps, chance = protocol.steps * protocol.tokens, 1.0 / protocol.n
    mu = protocol.sensitivity / protocol.sigma
    k, weights, unlikely = contributions_law(protocol)
    found = [compose_events([Event(mixture(k * mu / math.sqrt(steps), weights), 1)], unlikely)]
    if protocol.contributions is None:
        found += [bound() for bound in hidden_bounds(Shift(mu, mu), chance, 0.0, steps)]
    return said(least(found), _CENTRAL)


@curator.register
def _curator_descent(protocol: WalkDescent) -> Guarantee:
    mu = protocol.sensitivity / protocol.sigma
    step = Event(block(Shift(mu, mu), 1.0 / protocol.n, 1), protocol.steps)
    return said(compose_events([step]), "a trusted curator draws users in secret and publishes every noisy iterate")
