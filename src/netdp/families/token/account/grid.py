"""What observers learn from tokens that hold whole numbers, with discrete Gaussian noise, as they are sent over a wire.

A ring is accounted for directly: the noise of a segment is close to one discrete Gaussian of all its variance, and the closeness
is added (docs/proofs/token.md#ring-on-a-grid). Walks and public paths are accounted for in real numbers and carried over: if δ′
is the bound there, δ(ε) ≤ e^{a+t}·δ′(ε − a − b − 2t) + e^{ε−r²/2} on the grid (`Margins`; docs/proofs/token.md#walk-on-a-grid).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from netdp.errors import Unsupported
from netdp.families.token.account.events import read_off, side_by_side
from netdp.families.token.path import TokenGrid
from netdp.families.token.ring import RingSum
from netdp.families.token.views import ring_path
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, normaliser_excess, rounded_delta, shift_delta
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import PerCurve, ProfileCurve, composed
from netdp.protocols.grid import norm_order
from netdp.protocols.views import observer_set

LAPLACE_RING_REFERENCES = (
    "netdp, docs/proofs/token.md#laplace-ring-on-a-grid: a token that adds shares of Laplace noise.",
    "netdp, docs/proofs/masked.md#laplace-shares: what fewer shares than one noise hide.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
)

RING_ON_A_GRID_REFERENCES = (
    "netdp, docs/proofs/token.md#ring-on-a-grid: a token that adds whole numbers.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism. ICML, 2021.",
)

Segment: TypeAlias = tuple[int, float]
"""V, the parameter of a segment's noise, and t, how far the noise is from one discrete Gaussian of that parameter; of Laplace noise
how many shares there are, at most as many as make one, and 0."""

Seen: TypeAlias = tuple[tuple[Segment, int], ...]
"""The segments that a user contributes to, each kind with how many there are."""

_ATOMS = 20_000  # δ of a single number is computed at every jump of its slope, if there are no more of them

_RING_POINTS = 2400

_LAPLACE_POINTS = 257

_FINE = 1e-4  # where the margin of rounded_delta is below this share of μ, composing cannot do better

_FINEST = 1e-6  # where it is below this share, a sum over millions of terms is not worth its time


def sum_of_unequal(variances: IntArray) -> float:
    """t: a sum of discrete Gaussians of these parameters is within e^{±t}, everywhere, of one with all their variance.

    >>> from netdp.mechanisms.discrete_gaussian import sum_distance
    >>> round(sum_of_unequal(np.array([1, 1, 1])) / sum_distance(1, 3), 6), sum_of_unequal(np.array([7]))
    (1.0, 0.0)
    """
    if len(variances) < 2:
        return 0.0
    parts = np.sort(np.asarray(variances, dtype=np.float64))[::-1]
    before = np.cumsum(parts)[:-1]
    squares = before * (parts[1:] / (before + parts[1:]))
    with np.errstate(under="ignore"):
        first = np.exp(-2 * math.pi**2 * squares * (1 - 1e-9))
    rest = first / (1 - first**3)
    each = np.log1p(2 * rest) - np.log1p(-2 * rest)
    return float(each.sum()) * (1 + 1e-9) + len(parts) * 1e-300


def segments(protocol: RingSum, observers: tuple[int, ...]) -> list[Seen | None]:
    """What every user contributes to; None for the observers.

    >>> p = RingSum(5, rounds=2, sigma=2.0, grid=1.0)
    >>> segments(p, (3,))[4]                    # hops 4 … 7, which hold one noise, and hop 9 with the closing one
    (((4, 0.0), 2),)
    """
    path = ring_path(protocol)
    members = observer_set(protocol.n, observers)
    secret = ~np.isin(path, members)
    laplace = protocol.law == "laplace"
    noise, closing = (
        (protocol.hop_shares, protocol.closing_shares)
        if laplace
        else (protocol.hop_variances, protocol.closing_variance)
    )
    hops = np.flatnonzero(secret)
    runs = np.split(hops, np.flatnonzero(np.diff(hops) > 1) + 1)
    found: list[Counter[Segment]] = [Counter() for _ in range(protocol.n)]
    known: dict[tuple[int, ...], Segment] = {}
    for run in runs:
        parts = noise[run]
        parts = np.sort(parts[parts > 0])
        if run[-1] == len(path) - 1 and closing:
            parts = np.append(parts, closing)
        key = tuple(parts.tolist())
        segment = known.get(key)
        if segment is None and laplace:  # more shares than one noise has hide no less than one noise
            segment = known[key] = (min(sum(key), protocol.parts), 0.0)
        elif segment is None:
            segment = known[key] = (sum(key), sum_of_unequal(parts))
        for u in path[run].tolist():
            found[u][segment] += 1
    return [None if u in members else tuple(sorted(found[u].items())) for u in range(protocol.n)]


def mu_squared(protocol: RingSum, seen: Seen) -> float:
    """Σ D²/V_s, inf if a segment has no noise."""
    return sum(
        math.inf if variance == 0 else times * protocol.distance**2 / variance for (variance, _), times in seen
    ) * (1 + 16 * UNIT)


def seen_delta(protocol: RingSum, seen: Seen, epsilon: FloatArray) -> FloatArray:
    """A bound on δ at every ε for a user who contributes to these segments, margins included."""
    if any(variance == 0 for (variance, _), _ in seen):
        return np.ones_like(epsilon)
    apart = protocol.dimension * sum(times * t for (_, t), times in seen) * (1 + 16 * UNIT)
    shifted = epsilon - 2 * apart
    ideal = _ideal(protocol, seen, np.maximum(shifted, 0.0))
    found = math.exp(min(apart, 700.0)) * (ideal - np.expm1(np.minimum(shifted, 0.0)))
    return np.asarray(np.minimum(found * (1 + 8 * UNIT), 1.0))


def _ideal(protocol: RingSum, seen: Seen, epsilon: FloatArray) -> FloatArray:
    """The smaller of the two bounds on δ′, at every ε."""
    count, distance = sum(times for _, times in seen), protocol.distance
    least = min(variance for (variance, _), _ in seen)
    most = max(variance for (variance, _), _ in seen)
    mu = math.sqrt(mu_squared(protocol, seen))
    exact = protocol.dimension == 1 and most <= SUMMED_UP_TO
    dimension = count * protocol.dimension
    if exact and count == 1 and (1 + 30) ** 2 / (24 * least) >= _FINEST * mu:
        return shift_delta(most, int(distance), epsilon)
    vector = rounded_delta(least, mu * math.sqrt(least) * (1 + 8 * UNIT), dimension, epsilon)
    if not exact or (math.sqrt(dimension) + 30) ** 2 / (24 * least) < _FINE * mu:
        return vector
    # equal parameters are one kind whatever their t
    kinds = Counter[int]()
    for (variance, _), times in seen:
        kinds[variance] += times
    return np.minimum(vector, np.asarray(_composed(tuple(kinds.items()), distance).delta(epsilon)))


@functools.lru_cache(maxsize=256)
def _composed(kinds: tuple[tuple[int, int], ...], distance: float) -> ProfileCurve:
    """Single numbers of these parameters, each so often, composed on a grid of losses; asked for at every ε that is read off."""
    parts = []
    for variance, times in kinds:
        points = _points(variance, distance, 1, distance / math.sqrt(variance), 0.0, _RING_POINTS)
        deltas = np.minimum.accumulate(shift_delta(variance, int(distance), points))
        parts.append((ProfileCurve(points, deltas), times))
    return composed(parts)


def _points(variance: int, distance: float, dimension: int, mu: float, apart: float, wanted: int) -> FloatArray:
    """The ε at which δ is computed: from 0 to where δ is below 10⁻²⁵⁰, closest where it matters."""
    usual, far = mu / 2 + 12, mu / 2 + 36
    atoms = mu * usual * variance / distance
    if dimension == 1 and wanted >= _RING_POINTS and atoms <= _ATOMS:
        x = np.arange(int(distance) // 2, int(distance) // 2 - math.ceil(atoms) - 2, -1.0)
        near = (distance * distance - 2 * distance * x) / (2 * variance) + apart
    else:
        near = mu * np.linspace(0.0, usual, wanted) + apart
    points = np.concatenate([[0.0, apart], near, mu * np.linspace(usual, far, wanted // 10)])
    return np.unique(points[points >= 0])


def seen_curve(protocol: RingSum, kinds: list[Seen]) -> ProfileCurve:
    """One curve for every kind of user, at common ε."""
    if protocol.law == "laplace":
        curves = [_laplace_curve(protocol, seen) for seen in kinds]
        ends = [np.linspace(0.0, float(curve.epsilons[-1]), _LAPLACE_POINTS) for curve in curves]
        return side_by_side(curves, np.unique(np.concatenate([np.zeros(1), *ends, *(one.epsilons for one in curves)])))
    wanted = max(64, min(_RING_POINTS, 12_000 // max(len(kinds), 1)))
    points = [np.zeros(1)]
    for seen in kinds:
        mu = math.sqrt(mu_squared(protocol, seen))
        if math.isfinite(mu):
            apart = 2 * protocol.dimension * sum(times * t for (_, t), times in seen)
            least = min(variance for (variance, _), _ in seen)
            single = protocol.dimension * sum(times for _, times in seen)
            points.append(_points(least, protocol.distance, single, mu, apart, wanted))
    epsilon = np.unique(np.concatenate(points))
    bounds = tuple(functools.partial(seen_delta, protocol, seen) for seen in kinds)
    table = np.minimum.accumulate(np.stack([bound(epsilon) for bound in bounds]), axis=1)
    return ProfileCurve(epsilon, table, PerCurve(bounds))


def _laplace_curve(protocol: RingSum, seen: Seen) -> ProfileCurve:
    """Of a user who contributes to these segments: the profiles of independent sums with shares of Laplace noise, composed."""
    if any(shares == 0 for (shares, _), _ in seen):
        return ProfileCurve([0.0], [1.0])
    release = LaplaceRelease(protocol.rate, protocol.parts, protocol.parts, int(protocol.distance), protocol.dimension)
    parts = [(laplace_curve(release._replace(shares=shares)), times) for (shares, _), times in seen]
    (one, times), *more = parts
    return composed(parts) if more else one.self_compose(times)


def published_rounds(protocol: RingSum) -> ProfileCurve:
    """K numbers published, each with one noise of variance σ²: the sums of a curator."""
    if protocol.law == "laplace":
        return seen_curve(protocol, [(((protocol.parts, 0.0), protocol.rounds),)]).entry(0)
    return seen_curve(protocol, [(((int(protocol.hop_variances[0]), 0.0), protocol.rounds),)]).entry(0)


def ring_loss(protocol: RingSum, observers: tuple[int, ...]) -> Guarantee:
    """What colluding observers learn about every other user."""
    return _guarantee(protocol, [segments(protocol, observers)], (protocol.n,))


def ring_pairs(protocol: RingSum) -> Guarantee:
    """What every single user learns about every other: matrices [u, v]."""
    return _guarantee(protocol, [segments(protocol, (v,)) for v in range(protocol.n)], (protocol.n, protocol.n))


def _guarantee(protocol: RingSum, columns: list[list[Seen | None]], shape: tuple[int, ...]) -> Guarantee:
    kinds = sorted({seen for column in columns for seen in column if seen is not None})
    place = {seen: i for i, seen in enumerate(kinds)}
    which = np.array([[-1 if seen is None else place[seen] for seen in column] for column in columns]).T.reshape(shape)
    if protocol.law == "laplace":
        bare = any(shares == 0 for seen in kinds for (shares, _), _ in seen)
        return Guarantee(
            curve=SharedCurve(seen_curve(protocol, kinds), which), adjacency=Adjacency.REPLACE, claim=Claim.UPPER,
            assumptions=grid_assumptions(protocol, bare=bare), references=LAPLACE_RING_REFERENCES,
        )  # fmt: skip
    local = protocol.rounds * protocol.distance**2 / float(protocol.hop_variances[0])
    ratios = np.array([mu_squared(protocol, seen) / local for seen in kinds])
    return Guarantee(
        curve=SharedCurve(seen_curve(protocol, kinds), which),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=grid_assumptions(protocol, bare=bool(np.isinf(ratios).any())),
        references=RING_ON_A_GRID_REFERENCES,
        factor=np.where(which < 0, np.nan, ratios[which]),
    )


def grid_assumptions(protocol: RingSum, *, bare: bool = False) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    drawn = "drawn exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody"
    if protocol.law == "laplace":
        noises = (
            f"noises are discrete Laplace ones of rate {float(protocol.rate):.6g} per grid step (the first hop and, before the "
            f"release, the last; every other hop a share of which {protocol.parts} make one), {drawn}"
        )
        if protocol.noise == "single":
            noises = (
                f"noises are discrete Laplace ones of rate {float(protocol.rate):.6g} per grid step, one in any {protocol.parts} "
                f"hops in a row, {drawn}"
            )
    else:
        noises = (
            f"noises are discrete Gaussians of parameter {int(protocol.hop_variances[0])} squared grid steps (the first hop; the "
            f"others and the closing one as the protocol states), {drawn}"
        )
    said = [
        f"two values of one contribution have {coordinates} and differ by at most {protocol.sensitivity:g} in "
        f"L{norm_order(protocol)} norm (clip "
        f"before rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        "the ring is public; a token is readable by its holder alone until it is released, then by everybody",
        "all users follow the protocol to its end: each adds once per round, and never again; the observers pool their own "
        "data, noise and all they read",
        "values are fixed beforehand, one for every visit, and do not react to the token",
        "the closing noise is drawn, and known, by the last holder"
        if protocol.closing_variance
        else "there is no closing noise: what is added last is covered only by the noise around it",
        noises,
    ]
    if bare:
        said.append(
            "somebody here has no protection: between two visits of the observers its value is added and nobody else adds noise"
        )
    return tuple(said)


WALK_ON_A_GRID_REFERENCES = (
    "netdp, docs/proofs/token.md#walk-on-a-grid: tokens on a walk that add whole numbers.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism. ICML, 2021.",
)

_TAIL = 16.0  # r of the theorem: e^−128

_WALK_POINTS = 1200

_MOST_CURVES = 4096

_SMALLEST = 1e-30  # tables of Gaussian curves end where δ is this


@dataclasses.dataclass(frozen=True)
class Margins:
    """δ(ε) ≤ e^up·δ′(ε − both) + e^ε·tail."""

    up: float
    both: float
    tail: float

    @classmethod
    def of(cls, protocol: TokenGrid) -> Margins:
        """Of a protocol on a grid: a + t, a + b + 2t and e^{−r²/2} of the theorem, rounded up.

        >>> from netdp.protocols import WalkSum
        >>> fine, finer = (Margins.of(WalkSum(100, 1000, sigma=1.0, grid=2.0**-k)) for k in (10, 14))
        >>> 2e-4 > fine.both > 100 * finer.both
        True
        """
        v, noises = protocol.variance, protocol.visits
        numbers = noises * protocol.dimension
        least = min(v, protocol.closing_variance or v)
        first = math.exp(-(math.pi**2) * least * (1 - 1e-9))
        rest = first / (1 - first**3)
        # one more noise for every token's closing
        added = 2 * numbers * (math.log1p(2 * rest) - math.log1p(-2 * rest))
        reach = math.sqrt(numbers) * (1 + 0.5 / math.sqrt(v)) + _TAIL
        above = numbers / (24 * v)
        below = reach**2 / (24 * v) + numbers * normaliser_excess(v)
        room = 1 + 1e-9
        return cls((above + added) * room, (above + below + 2 * added) * room, math.exp(-(_TAIL**2) / 2))

    def apply(self, curve: ProfileCurve) -> ProfileCurve:
        """The curve of δ from that of δ′."""
        deltas = np.asarray(curve.deltas, dtype=np.float64)
        first = deltas[..., :1] + (-math.expm1(-self.both))  # at ε = 0, on the way to the first point
        epsilons = np.concatenate([[0.0], curve.epsilons + self.both])
        found = self._carried(np.concatenate([first, deltas], axis=-1), epsilons)
        bounds = read_off(curve)

        def formula(numbers: IntArray, epsilon: FloatArray) -> FloatArray:
            shifted = epsilon - self.both
            ideal = bounds(numbers, np.maximum(shifted, 0.0)) - np.expm1(np.minimum(shifted, 0.0))
            return self._carried(ideal, epsilon)

        return ProfileCurve(epsilons, np.minimum.accumulate(found, axis=-1), formula)

    def _carried(self, ideal: FloatArray, epsilon: FloatArray) -> FloatArray:
        """δ on the grid at ε, from δ′ at ε − both."""
        grown = math.exp(min(self.up, 700.0)) * (1 + 8 * UNIT)
        lost = np.exp(np.minimum(epsilon, 700.0)) * self.tail
        return np.asarray(np.minimum(grown * ideal + lost, 1.0))


def on_the_grid(curve: Curve, protocol: TokenGrid) -> Curve:
    """The loss of a protocol on a grid, from that of `protocol.in_real_numbers`."""
    margins = Margins.of(protocol)
    if isinstance(curve, ProfileCurve):
        return margins.apply(curve)
    if isinstance(curve, SharedCurve) and isinstance(curve.curves, ProfileCurve):
        return SharedCurve(margins.apply(curve.curves), curve.which)
    if isinstance(curve, GaussianCurve):
        return _gaussians(np.asarray(curve.mu, dtype=np.float64), margins)
    raise Unsupported(
        f"a {curve.kind} curve is not carried over to a grid; leave grid=None, or ask for δ(ε) (leave statement out)"
    )


def _gaussians(mu: FloatArray, margins: Margins) -> Curve:
    """A table for every different μ; nan stays without one."""
    kinds, which = np.unique(mu[~np.isnan(mu)], return_inverse=True)
    if len(kinds) > _MOST_CURVES:
        raise Unsupported(
            f"{len(kinds):,} different losses on a grid are more than {_MOST_CURVES:,} tables; ask for the observers of "
            "interest, account(protocol, observers), or leave grid=None"
        )
    finite = kinds[np.isfinite(kinds)]
    wanted = max(48, min(_WALK_POINTS, 60_000 // max(len(kinds), 1)))
    points = [np.zeros(1)]
    for one in finite if len(finite) <= 8 else np.quantile(finite, np.linspace(0, 1, 8)):
        points.append(np.linspace(0.0, max(float(GaussianCurve(float(one)).epsilon(_SMALLEST)), 1e-9), wanted))
    epsilon = np.unique(np.concatenate(points))
    deltas = np.ones((len(kinds), len(epsilon)))
    for row, one in enumerate(kinds.tolist()):
        if math.isfinite(one):
            deltas[row] = np.minimum.accumulate(np.asarray(GaussianCurve(one).delta(epsilon)))

    def formula(numbers: IntArray, at: FloatArray) -> FloatArray:
        return np.asarray(gaussian_delta(kinds[numbers], at))

    if not mu.shape:
        return margins.apply(ProfileCurve(epsilon, deltas[0], formula))
    place = np.full(mu.shape, -1, dtype=np.int64)
    place[~np.isnan(mu)] = which
    return SharedCurve(margins.apply(ProfileCurve(epsilon, deltas, formula)), place)


def wire_assumptions(protocol: Any) -> tuple[str, str]:
    """What must hold of values and noise on a grid."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    closing = f", the closing one of {protocol.closing_variance}" if protocol.closing_variance else ""
    return (
        f"a value has {coordinates}, clipped before it is rounded; each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, "
        "and by no other rule",
        f"the noise of every visit is a discrete Gaussian of parameter {protocol.variance} squared grid steps{closing}, drawn "
        "exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
    )
