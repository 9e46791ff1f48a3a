"""Gossip descent in whole numbers, as peers run it: local DP whatever the others do, and more where every send brings fresh noise.

Between two sends a difference of the two runs is mixed, shown to the observers by their neighbours, and covered by the fresh noise
of its next send (`energy`). Rounding and floating point are absorbed by the same noise (`transcript_distance`). Without fresh noise
in every send local DP is all that is claimed. Proof: docs/proofs/gossip.md#descent-on-a-grid.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special

from netdp.errors import Unsupported
from netdp.families.gossip.account.descent import ASSUMPTIONS
from netdp.families.gossip.descent import GossipDescent
from netdp.mechanisms.noisy_sums import Release, releases_curve
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.privacy.curves import SharedCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import said
from netdp.protocols.descents import absorbed, grid_assumptions, own_releases, rounding_error
from netdp.protocols.table import in_real_numbers
from netdp.protocols.views import observer_set

REFERENCES = (
    "netdp, docs/proofs/gossip.md#descent-on-a-grid: gossip descent in whole numbers.",
    "netdp, docs/proofs/learning.md#descents-on-a-grid: what rounding and floating point cost.",
    "netdp, docs/proofs/gossip.md#hidden-state: hidden-state composition for gossip descent.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)

_OUT_OF_REACH = -1.0

_GREEDY = 1.5

_LEVELS, _POINTS = 24, 96

_LOCAL_ONLY = (
    "on this grid only local DP is claimed, of all noisy gradients of a party, whatever the others do: {why}; the smaller, "
    "amplified figure holds in real arithmetic only (account(protocol.in_real_numbers, observers))"
)


def transcript_distance(protocol: GossipDescent) -> float:
    """How far all that is sent is from the rounded ideal in real numbers, in total variation.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.ring(6), 100, 1, sigma=8.0, step=1.0, grid=2.0**-41)
    >>> transcript_distance(p) < 1e-9, transcript_distance(p.replace(gossip_rounds=2))
    (True, inf)
    """
    n, numbers = protocol.n, protocol.n * protocol.dimension
    carried = math.sqrt(numbers)  # half a step of what was sent and half of what was mixed, everywhere
    later = protocol.iterations * (protocol.gossip_rounds - 1)
    if math.isinf(protocol.expansion):
        return math.inf
    first = rounding_error(protocol, n, carried)
    return absorbed(
        [
            (protocol.iterations, first, protocol.variance),
            (later, carried * (1 + 1e-12), protocol.fresh_variance if later else 1),
        ],
        numbers,
    )


def energy(protocol: GossipDescent, observers: tuple[int, ...], progress: Progress | None = None) -> FloatArray:
    """Σμ² over all sends, in units of Δ²/σ², for every target: local DP has T. nan at the observers.

    Every send is one that shows the observers their neighbours' noisy states; what it does not show is carried on.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.hypercube(6), 6, 1, sigma=1.0, step=1.0, clip=0.5, grid=2.0**-40)
    >>> energy(p, (0,))[[1, 3, 7, 15]].round(3).tolist()            # as in real numbers, and as 1, 2, 3 and 4 hops away
    [6.0, 0.336, 0.047, 0.009]
    """
    n, hidden = protocol.n, np.ones(protocol.n, dtype=bool)
    hidden[list(observers)] = False
    near = np.zeros(n, dtype=bool)
    for v in observers:
        near[protocol.network.neighbors(v)] = True
    near &= hidden
    W = protocol.rounds_of(0).matrix
    unit = np.diag(hidden.astype(np.float64))
    later = protocol.fresh_variance / protocol.variance
    zero = np.zeros(n)
    never, greedy = (zero, np.zeros((n, n))), (zero, np.zeros((n, n)))
    for done in range(1, protocol.iterations + 1):
        for k in range(protocol.gossip_rounds):
            variance = later if k else 1.0
            never = _sent(never, k, unit, near, W, variance, protocol.expansion, hidden, eager=0.0)
            greedy = _sent(greedy, k, unit, near, W, variance, protocol.expansion, hidden, eager=_GREEDY)
        if progress is not None:
            progress(done, protocol.iterations)
    margin = 1 + 8 * UNIT * (n + 8) * (protocol.sends + 1)
    found = np.minimum(np.minimum(never[0], greedy[0]) * margin, float(protocol.iterations))
    found = np.where(hidden, found, np.nan)
    return np.asarray(found)


def _sent(
    before: tuple[FloatArray, FloatArray],
    k: int,
    unit: FloatArray,
    near: FloatArray,
    W: object,
    variance: float,
    expansion: float,
    hidden: FloatArray,
    *,
    eager: float,
) -> tuple[FloatArray, FloatArray]:
    """One send: its price, of what observers are shown or of everything, and the difference that is carried on by mixing."""
    paid, carried = before
    with np.errstate(over="ignore", invalid="ignore"):
        apart = carried if k else np.minimum(expansion * carried, 1e150) + unit
        squares = apart**2
        shown, everything = squares[near].sum(axis=0) / variance, squares.sum(axis=0) / variance
        reveal = (everything <= eager * shown) if eager else np.zeros(len(shown), dtype=bool)
        left = np.where(reveal, 0.0, np.where(near[:, None], 0.0, apart))
        mixed = W @ left
    return paid + np.where(reveal, everything, shown), np.where(hidden[:, None], mixed, 0.0)


@dataclass(frozen=True)
class _Formula:
    """δ at any ε for every kind of factor: as of `netdp.families.gossip.account.grid.GridFormula`, with this family's local DP."""

    kinds: tuple[float, ...]
    mu: tuple[float, ...]
    apart: float
    own: ProfileCurve

    def __call__(self, numbers: IntArray, epsilon: FloatArray) -> FloatArray:
        return amplified(
            np.asarray(self.kinds)[numbers],
            np.asarray(self.mu)[numbers],
            self.apart,
            epsilon,
            np.asarray(self.own.delta(epsilon)),
        )


def amplified(kinds: FloatArray, mu: FloatArray, apart: float, epsilon: FloatArray, alone: FloatArray) -> FloatArray:
    """δ_μ(ε) + (1 + e^ε)·d, from its least value on that value, or local DP where that is less; 0 out of reach."""
    if math.isinf(apart):
        return np.where(kinds == _OUT_OF_REACH, 0.0, alone)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.maximum(-mu * (float(special.ndtri(min(apart, 0.5))) + mu / 2), 0.0)
    at = np.where(mu > 0, np.minimum(epsilon, np.nan_to_num(least, nan=0.0)), 0.0)
    with np.errstate(over="ignore"):
        added = (1 + np.exp(at)) * apart * (1 + 8 * UNIT)
    better = (kinds >= 0) & (kinds < 1)  # next to an observer nothing is amplified: local DP holds whatever others do
    found = np.where(better, np.minimum(added + np.asarray(gaussian_delta(mu, at)), alone), alone)
    return np.where(kinds == _OUT_OF_REACH, 0.0, found)


def stated(protocol: GossipDescent, factor: FloatArray, apart: float) -> Guarantee:
    """The loss on the grid whose ideal has these factors; nan at observers, −1 out of reach."""
    far, n = factor == _OUT_OF_REACH, protocol.n
    if math.isinf(apart):
        factor = np.where(far | np.isnan(factor), factor, 1.0)
    own = own_releases(protocol, protocol.iterations)
    kinds, which = np.unique(factor, return_inverse=True)
    kinds = kinds[~np.isnan(kinds)]
    mu = np.sqrt(np.maximum(kinds, 0.0)) * protocol.local_mu * (1 + 8 * UNIT)
    formula = _Formula(tuple(kinds.tolist()), tuple(mu.tolist()), apart, own)
    points = _points(mu, own)
    numbers = np.repeat(np.arange(len(kinds)), len(points)).reshape(len(kinds), -1)
    table = np.minimum.accumulate(np.stack([formula(row, points) for row in numbers]), axis=1)
    return Guarantee(
        curve=SharedCurve(ProfileCurve(points, table, formula), np.where(np.isnan(factor), -1, which.reshape(n))),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=assumptions(protocol, apart, far=bool(far.any())),
        references=REFERENCES,
        factor=np.where(far, 0.0, factor),
    )


def _points(mu: FloatArray, own: ProfileCurve) -> FloatArray:
    levels = np.unique(mu[mu > 0])
    if len(levels) > _LEVELS:
        levels = levels[np.unique(np.linspace(0, len(levels) - 1, _LEVELS).round().astype(np.int64))]
    each = [one * np.linspace(0.0, one / 2 + end, _POINTS) for one in levels.tolist() for end in (8.0, 36.0)]
    return np.unique(np.concatenate([own.epsilons, *each]))


def assumptions(protocol: GossipDescent, apart: float, *, far: bool = False) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    lines = list(grid_assumptions(protocol, apart))
    if math.isinf(apart):
        why = (
            "nothing is known of how far a step of this model can stretch the distance of two models"
            if math.isinf(protocol.expansion)
            else f"of {protocol.gossip_rounds} sends in an iteration all but the first bring no fresh noise (refresh=0)"
        )
        lines.append(_LOCAL_ONLY.format(why=why))
        if far:
            lines.append(
                f"parties out of reach, more than {protocol.sends} hops from the observers, reveal nothing as long as all parties "
                "follow the protocol and messages are readable by sender and receiver alone"
            )
        return tuple(lines)
    lines += [
        text.format(clip=protocol.clip, sensitivity=protocol.sensitivity, expansion=protocol.expansion)
        for text in ASSUMPTIONS[1:6]
    ]
    if protocol.gossip_rounds > 1:
        lines.append(
            f"every send but the first of an iteration brings a fresh discrete Gaussian of parameter {protocol.fresh_variance} "
            "squared steps, drawn in the same way; states are mixed with the fractions of the gossip matrix and rounded exactly"
        )
    lines.append("next to an observer local DP is claimed, which holds whatever the others do")
    return tuple(lines)


def loss_on_a_grid(protocol: GossipDescent, observers: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """What colluding observers learn about every other party from whole numbers."""
    apart = transcript_distance(protocol)
    factor = np.ones(protocol.n)
    if math.isfinite(apart):
        factor = energy(protocol, observers, progress) / protocol.iterations
    reached = protocol.network.distances(list(observers)) <= protocol.sends
    factor = np.where(reached, factor, _OUT_OF_REACH)
    factor[list(observers)] = np.nan
    return stated(protocol, factor, apart)


def against_any(protocol: GossipDescent, colluders: int) -> Guarantee:
    """Against any so many parties: local DP, for every party has a neighbour, who sees all its noisy gradients."""
    own = own_releases(protocol, protocol.iterations)
    return Guarantee(
        curve=SharedCurve(own, np.zeros(protocol.n, dtype=np.int64)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            *grid_assumptions(protocol, math.inf),
            "somebody's neighbour sees all its noisy gradients: what is promised is local DP, whatever the others do; who is "
            "further away learns less (account(protocol, observers))",
        ),
        references=REFERENCES,
        factor=np.ones(protocol.n),
    )


def locally(protocol: GossipDescent) -> Guarantee:
    """Every party publishes all its noisy gradients."""
    words = "every party publishes its own noisy gradients, on the grid"
    return said(own_releases(protocol, protocol.iterations), words, factor=1.0)


def by_a_curator(protocol: GossipDescent) -> Guarantee:
    """A curator whom everybody trusts publishes the sums of all noisy gradients."""
    release = Release(protocol.variance, protocol.n, 2 * protocol.reach, protocol.dimension)
    words = "a curator that everybody trusts sees all gradients, and only their sums with everybody's noise, on the grid, are seen"
    return said(releases_curve([release] * protocol.iterations), words, factor=1.0 / protocol.n)


@in_real_numbers.register
def _in_real_arithmetic(protocol: GossipDescent, observers: int | str | Iterable[int | str]) -> Guarantee:
    """The loss that the same descent would have in real numbers: to stand beside the certified one, and no guarantee."""
    from netdp.families.gossip.account.descent import in_reals

    members = observer_set(protocol.network, observers)
    if math.isinf(protocol.expansion):
        raise Unsupported(
            "nothing is known of how far a step of this model stretches the distance of two models, so there is no figure in real "
            "numbers but local DP"
        )
    return dataclasses.replace(
        in_reals(protocol.in_real_numbers, members),
        observers=Observers(members),
        claim=Claim.ESTIMATE,
        errata=("this figure is of real numbers; rounding to a grid can reveal more, so it is NOT a bound for a wire",),
    )
