"""A ring that adds whole numbers: what a token on a wire reveals (proofs: docs/guarantees.md#ring-on-a-grid).

**What is seen.** As in `netdp.views.token` the observers see the increments of the token over the segments between their
visits. On a grid an increment is Σ k + Σ η over the segment: whole numbers, and independent discrete Gaussians of
parameters v_1, …, v_m, possibly different. A user outside the observers has one contribution in each of K segments.

**Sums of unequal discrete Gaussians.** X, Y with parameters a and v, s² = av/(a + v): P[X + Y = x] is within e^{±t} of
the discrete Gaussian of parameter a + v at every x, t = log((1 + 2S)/(1 − 2S)), S = Σ_{k≥1} e^{−2π²s²k²}
(`netdp.mechanisms.discrete_gaussian`). Adding an independent number keeps such a bound and bounds multiply, so with A_j =
v_1 + … + v_j the sum of all m is within e^{±t} of the discrete Gaussian of parameter V = A_m, where t adds up over s_j² =
A_{j−1}v_j/A_j, j = 2 … m, in any order. Every v_j ≥ 1, so s_j² ≥ ½ and 2S < 1.

**All segments.** They are independent, so with d coordinates the joint law of all increments is within e^{±T} of
independent discrete Gaussians with parameters V_1, …, V_K, T = d·Σ t_s, and δ(ε) ≤ e^T δ′(ε − 2T), δ′ of the latter. A user
moves every increment by at most D steps (`distance`). Two bounds on δ′, of which the smaller counts:

- *Numbers, d = 1.* A segment has exactly the profile of one discrete Gaussian moved by D (`shift_delta`), which grows with
  the shift; independent segments compose (`netdp.privacy.profile.composed`).
- *Vectors, and fine grids.* Divide segment s by √V_s. Rounding N(0, V_s) is a Gaussian shift, post-processed, and with U =
  min V_s the factors between it and the discrete Gaussian are those of `rounded_delta` at variance U in K·d dimensions:
  a = Σ d/24V_s ≤ Kd/24U, b ≤ Σ_s ‖x_s‖²/24V_s² + d·Σ log c_s ≤ (Σ_s ‖x_s‖²/V_s)/24U + Kd·log c_U, and the norm of the
  divided vector exceeds √(Kd) + r + √(Kd)/2√U with probability at most e^{−r²/2}. The shift is μ with μ² = Σ D²/V_s. zCDP
  adds up to ρ = μ²/2 as well. So δ′ is bounded by `rounded_delta` at (U, μ√U, Kd).

A segment in which u contributes and nobody outside the observers adds noise shows u's value: the loss is infinite.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TypeAlias

import numpy as np

from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, rounded_delta, shift_delta
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve, SharedCurve
from netdp.privacy.profile import composed
from netdp.protocols.ring import RingSum
from netdp.views import observer_set
from netdp.views.token import ring_path

REFERENCES = (
    "netdp, docs/guarantees.md#ring-on-a-grid: a token that adds whole numbers.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism. ICML, 2021.",
)

Segment: TypeAlias = tuple[int, float]
"""V, the parameter of a segment's noise, and t, how far the noise is from one discrete Gaussian of that parameter."""
Seen: TypeAlias = tuple[tuple[Segment, int], ...]
"""The segments that a user contributes to, each kind with how many there are."""

_ATOMS = 20_000  # δ of a single number is computed at every jump of its slope, if there are no more of them
_POINTS = 2400
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
    noise = protocol.hop_variances
    hops = np.flatnonzero(secret)
    runs = np.split(hops, np.flatnonzero(np.diff(hops) > 1) + 1)
    found: list[Counter[Segment]] = [Counter() for _ in range(protocol.n)]
    known: dict[tuple[int, ...], Segment] = {}
    for run in runs:
        parts = noise[run]
        parts = np.sort(parts[parts > 0])
        if run[-1] == len(path) - 1 and protocol.closing_variance:
            parts = np.append(parts, protocol.closing_variance)
        key = tuple(parts.tolist())
        segment = known.get(key)
        if segment is None:
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
    return np.minimum.accumulate(np.minimum(found * (1 + 8 * UNIT), 1.0))


def _ideal(protocol: RingSum, seen: Seen, epsilon: FloatArray) -> FloatArray:
    """The smaller of the two bounds on δ′, at increasing ε."""
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
    # composed on a grid of losses: equal parameters are one kind whatever their t
    kinds = Counter[int]()
    for (variance, _), times in seen:
        kinds[variance] += times
    parts = []
    for variance, times in kinds.items():
        points = _points(variance, distance, 1, distance / math.sqrt(variance), 0.0, _POINTS)
        deltas = np.minimum.accumulate(shift_delta(variance, int(distance), points))
        parts.append((ProfileCurve(points, deltas), times))
    together = np.asarray(composed(parts).delta(epsilon))
    return np.minimum(vector, together)


def _points(variance: int, distance: float, dimension: int, mu: float, apart: float, wanted: int) -> FloatArray:
    """The ε at which δ is computed: from 0 to where δ is below 10⁻²⁵⁰, closest where it matters."""
    usual, far = mu / 2 + 12, mu / 2 + 36
    atoms = mu * usual * variance / distance
    if dimension == 1 and wanted >= _POINTS and atoms <= _ATOMS:
        x = np.arange(int(distance) // 2, int(distance) // 2 - math.ceil(atoms) - 2, -1.0)
        near = (distance * distance - 2 * distance * x) / (2 * variance) + apart
    else:
        near = mu * np.linspace(0.0, usual, wanted) + apart
    points = np.concatenate([[0.0, apart], near, mu * np.linspace(usual, far, wanted // 10)])
    return np.unique(points[points >= 0])


def seen_curve(protocol: RingSum, kinds: list[Seen]) -> ProfileCurve:
    """One curve for every kind of user, at common ε."""
    wanted = max(64, min(_POINTS, 12_000 // max(len(kinds), 1)))
    points = [np.zeros(1)]
    for seen in kinds:
        mu = math.sqrt(mu_squared(protocol, seen))
        if math.isfinite(mu):
            apart = 2 * protocol.dimension * sum(times * t for (_, t), times in seen)
            least = min(variance for (variance, _), _ in seen)
            single = protocol.dimension * sum(times for _, times in seen)
            points.append(_points(least, protocol.distance, single, mu, apart, wanted))
    epsilon = np.unique(np.concatenate(points))
    return ProfileCurve(epsilon, np.stack([seen_delta(protocol, seen, epsilon) for seen in kinds]))


def published_rounds(protocol: RingSum) -> ProfileCurve:
    """K numbers published, each with one noise of variance σ²: local DP, and the sums of a curator."""
    curve = seen_curve(protocol, [(((int(protocol.hop_variances[0]), 0.0), protocol.rounds),)])
    return ProfileCurve(curve.epsilons, curve.deltas[0])


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
    local = protocol.rounds * protocol.distance**2 / float(protocol.hop_variances[0])
    ratios = np.array([mu_squared(protocol, seen) / local for seen in kinds])
    return Guarantee(
        curve=SharedCurve(seen_curve(protocol, kinds), which),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=grid_assumptions(protocol, bare=bool(np.isinf(ratios).any())),
        references=REFERENCES,
        factor=np.where(which < 0, np.nan, ratios[which]),
    )


def grid_assumptions(protocol: RingSum, *, bare: bool = False) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    said = [
        f"two values of one contribution have {coordinates} and differ by at most {protocol.sensitivity:g} in L2 norm (clip "
        f"before rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        "the ring is public; a token is readable by its holder alone until it is released, then by everybody",
        "all users follow the protocol to its end: each adds once per round, and never again; the observers pool their own "
        "data, noise and all they read",
        "values are fixed beforehand, one for every visit, and do not react to the token",
        "the closing noise is drawn, and known, by the last holder"
        if protocol.closing_variance
        else "there is no closing noise: what is added last is covered only by the noise around it",
        f"noises are discrete Gaussians of parameter {int(protocol.hop_variances[0])} squared grid steps (the first hop; the "
        "others and the closing one as the protocol states), drawn exactly, from a cryptographic source; a simulation with "
        "NumPy's generators protects nobody",
    ]
    if bare:
        said.append(
            "somebody here has no protection: between two visits of the observers its value is added and nobody else adds noise"
        )
    return tuple(said)
