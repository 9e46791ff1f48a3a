"""The classical alternatives to tokens, with the same noise and composed as tightly: local DP, a trusted curator."""

from __future__ import annotations

import math

import numpy as np

from netdp.accounting.baselines import local_dp, said, single_response, trusted_curator
from netdp.privacy import Claim, GaussianCurve, Guarantee
from netdp.protocols import RingHistogram, RingSum, WalkDescent, WalkHistogram, WalkSum

from .events import Event, compose_events, least
from .sampled import Shift, block, mixture
from .walk import hidden_bounds, local_profile, more_delta, most_contributions

_LOCAL = "every user publishes all its contributions, each with its own noise"
_CENTRAL = (
    "a curator that everybody trusts sees all contributions and keeps the walk to itself; only its answers are seen"
)


@local_dp.register
def _local_ring(protocol: RingSum) -> Guarantee:
    return said(GaussianCurve(protocol.local_mu), _LOCAL, Claim.EXACT)


@local_dp.register(WalkSum)
@local_dp.register(WalkDescent)
def _local_walk(protocol: WalkSum | WalkDescent) -> Guarantee:
    return said(local_profile(protocol, protocol.sensitivity / protocol.sigma), _LOCAL)


@local_dp.register(RingHistogram)
@local_dp.register(WalkHistogram)
def _local_histogram(protocol: RingHistogram | WalkHistogram) -> Guarantee:
    count, unlikely = (protocol.rounds, 0.0) if isinstance(protocol, RingHistogram) else most_contributions(protocol)
    return said(more_delta(single_response(protocol.epsilon0, protocol.domain).self_compose(count), unlikely), _LOCAL)


@trusted_curator.register
def _curator_ring(protocol: RingSum) -> Guarantee:
    return said(
        GaussianCurve(protocol.local_mu), "a trusted curator publishes the noisy sum of every round", Claim.EXACT
    )


@trusted_curator.register
def _curator_sum(protocol: WalkSum) -> Guarantee:
    """All contributions in noise of variance Tσ²: a shift of kΔ, k the number of u's visits, told or not."""
    from scipy.stats import binom

    steps, chance = protocol.steps * protocol.tokens, 1.0 / protocol.n
    count, unlikely = most_contributions(protocol)
    k = np.arange(1.0, count + 1)
    mu = protocol.sensitivity / protocol.sigma
    weights = np.asarray(binom.pmf(k, steps, chance))
    if not unlikely:
        weights[-1] = float(binom.sf(count - 1, steps, chance))
    found = [compose_events([Event(mixture(k * mu / math.sqrt(steps), weights), 1)], unlikely)]
    if protocol.contributions is None:
        found += [bound() for bound in hidden_bounds(Shift(mu, mu), chance, 0.0, steps)]
    return said(least(found), _CENTRAL)


@trusted_curator.register
def _curator_descent(protocol: WalkDescent) -> Guarantee:
    mu = protocol.sensitivity / protocol.sigma
    step = Event(block(Shift(mu, mu), 1.0 / protocol.n, 1), protocol.steps)
    return said(compose_events([step]), "a trusted curator draws users in secret and publishes every noisy iterate")
