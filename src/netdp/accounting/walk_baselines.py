"""The classical alternatives to tokens and shuffling, with the same noise and composed as tightly: local DP, a curator."""

from __future__ import annotations

import math

import numpy as np

from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.privacy import Claim, GaussianCurve, Guarantee, ProfileCurve
from netdp.privacy.curve import Curve
from netdp.protocols import RingHistogram, RingSum, Shuffle, WalkDescent, WalkHistogram, WalkSum

from .baselines import REFERENCES, local_dp, trusted_curator
from .clones import shuffled_profile
from .events import Event, compose_events, least
from .sampled import Shift, block, mixture
from .walk import hidden_bounds, local_profile, more_delta, most_contributions

_LOCAL = "every user publishes all its contributions, each with its own noise"
_CENTRAL = (
    "a curator that everybody trusts sees all contributions and keeps the walk to itself; only its answers are seen"
)


@local_dp.register
def _local_ring(protocol: RingSum) -> Guarantee:
    return _said(GaussianCurve(protocol.local_mu), _LOCAL, Claim.EXACT)


@local_dp.register(WalkSum)
@local_dp.register(WalkDescent)
def _local_walk(protocol: WalkSum | WalkDescent) -> Guarantee:
    return _said(local_profile(protocol, protocol.sensitivity / protocol.sigma), _LOCAL)


@local_dp.register(RingHistogram)
@local_dp.register(WalkHistogram)
def _local_histogram(protocol: RingHistogram | WalkHistogram) -> Guarantee:
    count, unlikely = (protocol.rounds, 0.0) if isinstance(protocol, RingHistogram) else most_contributions(protocol)
    return _said(more_delta(_response(protocol.epsilon0, protocol.domain).self_compose(count), unlikely), _LOCAL)


@local_dp.register
def _local_reports(protocol: Shuffle) -> Guarantee:
    pure, delta0 = _response(protocol.epsilon0, 2), protocol.delta0
    curve = ProfileCurve(pure.epsilons, delta0 + (1 - delta0) * pure.deltas)
    return _said(curve, "every user publishes its report", more=(IDEAL_DRAWS,))


@trusted_curator.register
def _curator_ring(protocol: RingSum) -> Guarantee:
    return _said(
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
    return _said(least(found), _CENTRAL)


@trusted_curator.register
def _curator_descent(protocol: WalkDescent) -> Guarantee:
    mu = protocol.sensitivity / protocol.sigma
    step = Event(block(Shift(mu, mu), 1.0 / protocol.n, 1), protocol.steps)
    return _said(compose_events([step]), "a trusted curator draws users in secret and publishes every noisy iterate")


@trusted_curator.register
def _curator_shuffle(protocol: Shuffle) -> Guarantee:
    curve = shuffled_profile(protocol.n - 1, protocol.epsilon0, delta0=protocol.delta0)
    return _said(curve, "a trusted shuffler permutes all reports uniformly", more=(IDEAL_DRAWS,))


def _response(epsilon0: float, domain: int) -> ProfileCurve:
    """The profile of L-ary randomized response: (e^ε₀ − e^ε)₊/(e^ε₀ + L − 1)."""
    top = math.expm1(epsilon0) / (math.expm1(epsilon0) + domain)
    return ProfileCurve([0.0, epsilon0], [top * (1 + 1e-12), 0.0])


def _said(curve: Curve, assumption: str, claim: Claim = Claim.UPPER, *, more: tuple[str, ...] = ()) -> Guarantee:
    said = (assumption, *more)
    return Guarantee(curve=curve, observers="everybody", claim=claim, assumptions=said, references=REFERENCES)
