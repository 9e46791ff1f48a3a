"""The classical alternatives to tokens, with the same noise and composed as tightly: local DP, a trusted curator."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from netdp.families.token.account.descent_grid import walk_distance, with_distance
from netdp.families.token.account.events import Event, Shift, block, compose_events, least, mixture, side_by_side
from netdp.families.token.account.graph_walk import histogram_visits, visits_profile
from netdp.families.token.account.grid import on_the_grid, published_rounds
from netdp.families.token.account.path import curator_profile, laplace_profile, scale_of
from netdp.families.token.account.path import local_profile as laplace_local
from netdp.families.token.account.responses import published
from netdp.families.token.account.ring import bare_response, heap_profile, ring_descent_slack
from netdp.families.token.account.walk import (
    contributions_law,
    hidden_bounds,
    local_profile,
    sampled_responses,
)
from netdp.families.token.account.weights import by_own_weight
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import UNIT
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.observers import entry
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import curator, local, said
from netdp.protocols.table import certified

_LOCAL = "every user publishes all its contributions, each with its own noise"

_EVERY_ROUND = "a trusted curator publishes the noisy sum of every round"

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
    """Every hop with the noise that the ring adds there: all that both neighbours see, but for the closing noise."""
    n, bare = protocol.n, protocol.replace(closing=False)
    kinds, first, which = np.unique(
        protocol.hop_noise.reshape(protocol.rounds, n).T, axis=0, return_index=True, return_inverse=True
    )
    how = _LOCAL if kinds.all() else f"{_LOCAL}; a hop of this ring that adds no noise would show the value"
    losses = []
    for u in first.tolist():
        around = tuple(sorted({(u - 1) % n, (u + 1) % n} - {u}))
        losses.append(entry(certified(bare, around).curve, u))
    if all(isinstance(one, GaussianCurve) for one in losses):
        return said(GaussianCurve(np.array([float(one.mu) for one in losses])[which.ravel()]), how, Claim.EXACT)  # type: ignore[attr-defined]
    points = np.unique(np.concatenate([one.epsilons for one in losses]))  # type: ignore[attr-defined]
    return said(SharedCurve(side_by_side(losses, points), which.ravel()), how)


@curator.register
def _curator_ring(protocol: RingSum) -> Guarantee:
    """K numbers with one noise each: the sums of its rounds."""
    if protocol.grid is not None:
        return said(published_rounds(protocol), _EVERY_ROUND)
    if protocol.law == "laplace":
        return said(_laplace(protocol).self_compose(protocol.rounds), _EVERY_ROUND)
    return said(GaussianCurve(protocol.local_mu), _EVERY_ROUND, Claim.EXACT)


@local.register
def _local_walk(protocol: WalkSum | WalkDescent) -> Guarantee:
    if isinstance(protocol, WalkDescent) and protocol.grid is not None:
        return _with_distance(protocol, _local_walk(protocol.in_real_numbers))
    if isinstance(protocol, WalkDescent) and protocol.graph is not None:
        return said(visits_profile(protocol, summed=False), _LOCAL)
    if isinstance(protocol, WalkSum) and protocol.grid is not None:
        return _carried(protocol, _local_walk(protocol.in_real_numbers))
    if isinstance(protocol, WalkSum) and protocol.law == "laplace":
        walk, unit = protocol, protocol.sensitivity / scale_of(protocol.sigma)
        return said(by_own_weight(protocol, lambda own: laplace_local(unit, contributions_law(walk, own))), _LOCAL)
    mu = protocol.sensitivity / protocol.sigma
    return said(by_own_weight(protocol, lambda own: local_profile(protocol, mu, own)), _LOCAL)


@local.register
def _local_histogram(protocol: RingHistogram | WalkHistogram) -> Guarantee:
    if isinstance(protocol, WalkHistogram) and protocol.graph is not None:
        return said(histogram_visits(protocol, hidden=False), _LOCAL)
    if isinstance(protocol, RingHistogram):
        return said(bare_response(protocol).self_compose(protocol.rounds), _LOCAL)
    if protocol.epsilon0 == 0:
        return said(ProfileCurve([0.0], [0.0]), _LOCAL)
    walk = protocol
    return said(by_own_weight(walk, lambda own: published(walk, *contributions_law(walk, own))), _LOCAL)


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
    return said(by_own_weight(protocol, lambda own: sampled_responses(protocol, own, 0.0)), _DRAWN)


@curator.register
def _curator_sum(protocol: WalkSum) -> Guarantee:
    """All contributions in noise of variance Tσ²: a shift of kΔ, k the number of u's visits, told or not."""
    if protocol.grid is not None:
        return _carried(protocol, _curator_sum(protocol.in_real_numbers))
    if protocol.law == "laplace":
        unit = protocol.sensitivity / protocol.sigma
        return said(by_own_weight(protocol, lambda own: curator_profile(protocol, unit, own)), _CENTRAL)
    steps, mu = protocol.steps * protocol.tokens, protocol.sensitivity / protocol.sigma

    def summed(own: float) -> ProfileCurve:
        k, weights, unlikely = contributions_law(protocol, own)
        found = [compose_events([Event(mixture(k * mu / math.sqrt(steps), weights), 1)], unlikely)]
        if protocol.contributions is None:
            found += [bound() for bound in hidden_bounds(Shift(mu, mu), own, 0.0, steps)]
        return least(found)

    return said(by_own_weight(protocol, summed), _CENTRAL)


@curator.register
def _curator_descent(protocol: WalkDescent) -> Guarantee:
    if protocol.grid is not None:
        return _with_distance(protocol, _curator_descent(protocol.in_real_numbers))
    if protocol.graph is not None:
        return said(visits_profile(protocol, summed=True), _ALONE.format("the models as they are released"))
    mu = protocol.sensitivity / protocol.sigma
    every = "a trusted curator draws users in secret and publishes every noisy iterate"
    shift, steps = Shift(mu, mu), protocol.steps * protocol.tokens
    return said(by_own_weight(protocol, lambda own: compose_events([Event(block(shift, own, 1), steps)])), every)


def _with_distance(protocol: WalkDescent, loss: Guarantee) -> Guarantee:
    """The same with noise in whole numbers."""
    assert isinstance(loss.curve, ProfileCurve)
    return dataclasses.replace(loss, curve=with_distance(loss.curve, walk_distance(protocol)), claim=Claim.UPPER)


@local.register
def _local_ring_descent(protocol: RingDescent) -> Guarantee:
    return said(
        GaussianCurve(protocol.local_mu), "every user publishes all its gradients, each with its own noise", Claim.EXACT
    )


@curator.register
def _curator_ring_descent(protocol: RingDescent) -> Guarantee:
    """Only the last model is seen: u's steps are followed by n hops each, until u's next one, the last by n − u."""
    n = protocol.n
    last = n - np.arange(n) if protocol.expansion == 1 else np.ones(n)
    before = (protocol.rounds - 1) / (n if protocol.expansion == 1 else 1)
    energy = (before + 1.0 / last) * (protocol.sensitivity / protocol.sigma) ** 2 * (1 + ring_descent_slack(protocol))
    return said(
        GaussianCurve(np.minimum(np.sqrt(energy), protocol.local_mu)),
        "a curator that everybody trusts takes the same steps in the same public order and publishes the last model only",
    )


@local.register
def _local_secret_ring(protocol: SecretRingSum) -> Guarantee:
    return said(GaussianCurve(protocol.local_mu), _LOCAL, Claim.EXACT)


@curator.register
def _curator_secret_ring(protocol: SecretRingSum) -> Guarantee:
    mu = math.sqrt(protocol.rounds) * protocol.sensitivity / protocol.sigma
    return said(GaussianCurve(mu), _EVERY_ROUND, Claim.EXACT)
