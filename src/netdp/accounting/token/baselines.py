"""The classical alternatives to tokens, with the same noise and composed as tightly: local DP, a trusted curator."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.numerics.arrays import UNIT
from netdp.privacy import Claim, GaussianCurve, Guarantee, ProfileCurve
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, WalkDescent, WalkHistogram, WalkSum

from .events import Event, compose_events, least
from .graph_walk import histogram_visits, visits_profile
from .laplace import curator_profile, laplace_profile, scale_of
from .laplace import local_profile as laplace_local
from .ring import heap_profile
from .ring_on_a_grid import published_rounds
from .sampled import Shift, block, mixture
from .walk import contributions_law, hidden_bounds, local_profile, more_delta, most_contributions, sampled_responses
from .walk_on_a_grid import on_the_grid
from .weights import by_own

_LOCAL = "every user publishes all its contributions, each with its own noise"
_SHUFFLED = "a curator that everybody trusts publishes the histogram of every round's answers, without their owners"
_DRAWN = "a curator that everybody trusts draws users in secret and publishes every answer without its owner"
_ALONE = "a curator that everybody trusts runs the walk by itself and publishes {}, nothing else"
_CENTRAL = (
    "a curator that everybody trusts sees all contributions and keeps the walk to itself; only its answers are seen"
)


def _laplace(protocol: RingSum | PathSum | WalkSum) -> ProfileCurve:
    """One contribution with its own Laplace noise."""
    return laplace_profile(protocol.sensitivity / scale_of(protocol.sigma))


@local.register
def _local_ring(protocol: RingSum) -> Guarantee:
    if protocol.grid is not None:
        return said(published_rounds(protocol), _LOCAL)
    if protocol.law == "laplace":
        return said(_laplace(protocol).self_compose(protocol.rounds), _LOCAL)
    return said(GaussianCurve(protocol.local_mu), _LOCAL, Claim.EXACT)


@local.register
def _local_walk(protocol: WalkSum | WalkDescent) -> Guarantee:
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        return said(visits_profile(protocol, summed=False), _LOCAL)
    if isinstance(protocol, WalkSum) and protocol.grid is not None:
        return _carried(protocol, _local_walk(protocol.in_real_numbers))
    if isinstance(protocol, WalkSum) and protocol.law == "laplace":
        walk, unit = protocol, protocol.sensitivity / scale_of(protocol.sigma)
        return said(by_own(protocol, lambda own: laplace_local(unit, contributions_law(walk, own))), _LOCAL)
    mu = protocol.sensitivity / protocol.sigma
    return said(by_own(protocol, lambda own: local_profile(protocol, mu, own)), _LOCAL)


@local.register
def _local_histogram(protocol: RingHistogram | WalkHistogram) -> Guarantee:
    if isinstance(protocol, WalkHistogram) and protocol.graph is not None:
        return said(histogram_visits(protocol, hidden=False), _LOCAL)
    one = ProfileCurve([0.0, protocol.epsilon0], [(1 - protocol.gamma) * (1 + 1e-12), 0.0])
    if isinstance(protocol, RingHistogram):
        return said(one.self_compose(protocol.rounds), _LOCAL)
    walk = protocol

    def often(own: float) -> ProfileCurve:
        count, unlikely = most_contributions(walk, own=own)
        return more_delta(one.self_compose(count), unlikely)

    return said(by_own(walk, often), _LOCAL)


def _carried(protocol: WalkSum | GraphWalkSum | PathSum, loss: Guarantee) -> Guarantee:
    """What holds in real numbers, carried over to the protocol's grid: there the noises are shown one by one, or all together."""
    return dataclasses.replace(loss, curve=on_the_grid(loss.curve, protocol), claim=Claim.UPPER)


@local.register
def _local_path(protocol: PathSum) -> Guarantee:
    if protocol.grid is not None:
        return _carried(protocol, _local_path(protocol.in_real_numbers))
    if protocol.law == "laplace":
        return said(_laplace(protocol).self_compose(max(1, int(protocol.given.max()))), _LOCAL)
    mu = np.sqrt(protocol.given) * protocol.sensitivity / protocol.sigma
    return said(GaussianCurve(mu), _LOCAL, Claim.EXACT)


@local.register
def _local_graph_walk(protocol: GraphWalkSum) -> Guarantee:
    if protocol.grid is not None:
        return _carried(protocol, _local_graph_walk(protocol.in_real_numbers))
    return said(visits_profile(protocol, summed=False), _LOCAL)


@curator.register
def _curator_path(protocol: PathSum) -> Guarantee:
    """The sum of all contributions with all their noise: u's shift it by c_u·Δ."""
    if protocol.grid is not None:
        return _carried(protocol, _curator_path(protocol.in_real_numbers))
    if protocol.law == "laplace":
        noises, most = sum(len(path) for path in protocol.paths), int(protocol.given.max())
        unit = protocol.sensitivity / scale_of(protocol.sigma)
        return said(
            least([laplace_profile(most * unit, noises), _laplace(protocol).self_compose(max(1, most))]), _CENTRAL
        )
    steps = sum(len(path) for path in protocol.paths) + protocol.closing * protocol.tokens
    mu = protocol.given * protocol.sensitivity / (protocol.sigma * math.sqrt(steps))
    return said(GaussianCurve(mu * (1 + 8 * UNIT)), _CENTRAL, Claim.EXACT)


@curator.register
def _curator_graph_walk(protocol: GraphWalkSum) -> Guarantee:
    if protocol.grid is not None:
        return _carried(protocol, _curator_graph_walk(protocol.in_real_numbers))
    return said(visits_profile(protocol, summed=True), _CENTRAL)


@curator.register
def _curator_ring_histogram(protocol: RingHistogram) -> Guarantee:
    if protocol.epsilon0 == 0:
        return said(ProfileCurve([0.0], [0.0]), _SHUFFLED)
    heap = heap_profile(protocol.n - 1, 0, protocol.domain, protocol.gamma, protocol.response)
    return said(heap.self_compose(protocol.rounds), _SHUFFLED)


@curator.register
def _curator_walk_histogram(protocol: WalkHistogram) -> Guarantee:
    if protocol.graph is not None:
        return said(histogram_visits(protocol, hidden=True), _ALONE.format("the histogram"))
    if protocol.epsilon0 == 0:
        return said(ProfileCurve([0.0], [0.0]), _DRAWN)
    return said(by_own(protocol, lambda own: sampled_responses(protocol, own, 0.0)), _DRAWN)


@curator.register
def _curator_ring(protocol: RingSum) -> Guarantee:
    every_round = "a trusted curator publishes the noisy sum of every round"
    if protocol.grid is not None:
        return said(published_rounds(protocol), every_round)
    if protocol.law == "laplace":
        return said(_laplace(protocol).self_compose(protocol.rounds), every_round)
    return said(GaussianCurve(protocol.local_mu), every_round, Claim.EXACT)


@curator.register
def _curator_sum(protocol: WalkSum) -> Guarantee:
    """All contributions in noise of variance Tσ²: a shift of kΔ, k the number of u's visits, told or not."""
    if protocol.grid is not None:
        return _carried(protocol, _curator_sum(protocol.in_real_numbers))
    if protocol.law == "laplace":
        unit = protocol.sensitivity / protocol.sigma
        return said(by_own(protocol, lambda own: curator_profile(protocol, unit, own)), _CENTRAL)
    steps, mu = protocol.steps * protocol.tokens, protocol.sensitivity / protocol.sigma

    def summed(own: float) -> ProfileCurve:
        k, weights, unlikely = contributions_law(protocol, own)
        found = [compose_events([Event(mixture(k * mu / math.sqrt(steps), weights), 1)], unlikely)]
        if protocol.contributions is None:
            found += [bound() for bound in hidden_bounds(Shift(mu, mu), own, 0.0, steps)]
        return least(found)

    return said(by_own(protocol, summed), _CENTRAL)


@curator.register
def _curator_descent(protocol: WalkDescent) -> Guarantee:
    if protocol.graph is not None:
        return said(visits_profile(protocol, summed=True), _ALONE.format("the models as they are released"))
    mu = protocol.sensitivity / protocol.sigma
    every = "a trusted curator draws users in secret and publishes every noisy iterate"
    shift, steps = Shift(mu, mu), protocol.steps * protocol.tokens
    return said(by_own(protocol, lambda own: compose_events([Event(block(shift, own, 1), steps)])), every)
