"""Laplace noise on tokens: the exact profile of a shift in a sum of Laplace noises, and what follows for paths and walks.

*Proofs: docs/guarantees.md#laplace-tokens.*

**One sum.** Let S_l be the sum of l independent Laplace noises of scale b = σ/√2 (deviation σ each). Its density is even and
log-concave, so the log-ratio of the density shifted by s and the density itself grows along the line: the best tests are
half-lines, and δ(ε) = P(S_l > x − s) − e^ε P(S_l > x) where the ratio at x is e^ε. Each x gives one point (ε, δ) of the profile
exactly; chords between points lie above it. The ratio is never above e^{s/b}: δ = 0 from ε = s/b on. For x ≥ 0, in units of b,

    P(S_l > x) = Σ_{i<l} e^{−x}x^i/i! · P(B < l − i),   density Σ_{i<l} e^{−x}x^i/i! · P(B = l − 1 − i),   B ~ NegBin(l, ½):

S_l is a difference of two Gamma(l) variables, and on x ≥ 0 its density is a mixture of Gamma(l − j) with weights
C(l−1+j, j)/2^{l+j}. All terms are positive.

**Vectors: Δ is an L1 distance.** Independent noises of one log-concave law in every coordinate, the mean moved by v: no test
does better than for one number moved by ‖v‖₁. Proof. Let T_s(α) be the least type II error at level α for a shift of s in one
coordinate. If T(P, Q) ≥ f and T(Q, R) ≥ g then T(P, R) ≥ g(1 − f) (a test of level α for P has level at most 1 − f(α) for Q).
Move coordinate by coordinate. In one coordinate half-lines are best for every pair of shifts, so that T_{s+t} = T_t(1 − T_s)
exactly. ∎ (Among Gaussians the L2 norm counts; Laplace noise in many coordinates wants the L1 norm.)

**Unequal noises.** A Laplace noise of scale b is one of scale b′ < b plus an independent one: the quotient of characteristic
functions, (1 + b′²t²)/(1 + b²t²), is b′²/b² + (1 − b′²/b²)/(1 + b²t²), a mixture of 0 and a Laplace noise. So noises may be
replaced by smaller ones, or left out: all that are at least as large as some scale, as if they had that scale.

**Known path.** Segments between the observers' visits are independent, u shifts each by at most c·Δ: their profiles compose.
**Walk.** Told: cut each stretch at u's visits, each contribution is a shift of Δ in the noise of the gap that follows.
Secret, single steps: `sampled`, whose proof uses nothing of the noise but δ of a shift. Known ends: `openings`; j contributions
among m are a shift of jΔ in S_m.

**Rounding.** A term has a relative error of some (l·ln l + x) units; 16 times that, of both probabilities, is added to δ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from netdp.errors import Unsupported
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import visits
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.privacy.profile import composed
from netdp.protocols.path import PathSum
from netdp.protocols.ring import RingSum
from netdp.protocols.walk import KNOWN_ENDS, WalkSum
from netdp.views.token import TokenView

from .events import Event, Profile, compose_events, least
from .openings import pieces, sizes
from .sampled import Shift
from .stretches import bins, gap_profile

_POINTS = 240
_LONGEST = 1024  # noises that are added up; more count as so many
_LIGHT = 1e-24
_CELLS = 4096
_MOST_USERS = 3000

REFERENCES = (
    "netdp, docs/guarantees.md#laplace-tokens: sums of Laplace noises.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)
IDEAL = "noise is real-valued Laplace; floating-point draws only approximate it"


# ---- one sum


@functools.lru_cache(maxsize=8192)
def laplace_profile(shift: float, count: int = 1) -> ProfileCurve:
    """δ(ε) of a shift, in units of the scale b, in the sum of `count` Laplace noises of scale 1.

    >>> one, sixteen = laplace_profile(1.0), laplace_profile(1.0, 16)
    >>> print(f"{one.delta(0.0):.4f} {1 - np.exp(-0.5):.4f}  {sixteen.delta(0.0):.4f}")
    0.3935 0.3935  0.0721
    >>> round(float(sixteen.epsilon(0.0)), 9)
    1.0
    """
    if shift == 0:
        return ProfileCurve([0.0], [0.0])
    l = min(count, _LONGEST)  # noqa: E741  as in the text
    if shift > 500:
        return ProfileCurve([0.0], [1.0])
    deviation = math.sqrt(2 * l)
    near = np.linspace(shift / 2, shift, _POINTS // 2)
    far = shift + deviation * np.linspace(0.0, 9.0, _POINTS)[1:]
    end = shift + 9.0 * deviation + np.linspace(0.0, 60.0, _POINTS // 8)[1:]
    x = np.concatenate([near, far, end] if l > 1 else [near])
    back = x - shift
    log_here, tail = _log_density(x, l), _upper(x, l)
    log_back, mirrored = _log_density(np.abs(back), l), _upper(np.abs(back), l)
    tail_back = np.where(back >= 0, mirrored, 1 - mirrored)
    eps = np.maximum(log_back - log_here, 0.0)
    margin = 16 * UNIT * (l * math.log(l + 2) + x + 64)
    with np.errstate(over="ignore"):
        cost = np.exp(eps) * tail
        delta = np.clip(tail_back - cost + margin * (tail_back + cost), 0.0, 1.0)
    order = np.argsort(eps, kind="stable")
    eps, delta = eps[order], np.minimum.accumulate(delta[order])
    kept = np.concatenate([[True], np.diff(eps) > 1e-7 * shift]) & (eps < shift * (1 - 1e-9))
    eps, delta = eps[kept], delta[kept]
    eps[0] = 0.0
    return ProfileCurve(np.append(eps, shift * (1 + 4 * UNIT)), np.append(delta, 0.0))


def _poisson(x: FloatArray, l: int) -> FloatArray:  # noqa: E741
    i = np.arange(l, dtype=np.float64)
    logs = special.xlogy(i, x[:, None]) - x[:, None] - special.gammaln(i + 1)
    return np.asarray(np.exp(logs))


@functools.lru_cache(maxsize=64)
def _weights(l: int) -> tuple[FloatArray, FloatArray]:  # noqa: E741
    """P(B = j) and P(B ≤ j) for j < l, B ~ NegBin(l, ½)."""
    j = np.arange(l, dtype=np.float64)
    logs = special.gammaln(l + j) - special.gammaln(l) - special.gammaln(j + 1) - (l + j) * math.log(2)
    one = np.exp(logs)
    return one, np.cumsum(one)


def _log_density(x: FloatArray, l: int) -> FloatArray:  # noqa: E741
    """log of the density of S_l at x ≥ 0: far out e^{−x} is taken out of the sum."""
    i = np.arange(l, dtype=np.float64)
    logs = special.xlogy(i, x[:, None]) - special.gammaln(i + 1) + np.log(_weights(l)[0])[::-1]
    return np.asarray(special.logsumexp(logs, axis=1) - x)


def _upper(x: FloatArray, l: int) -> FloatArray:  # noqa: E741
    """P(S_l > x) at x ≥ 0."""
    return np.asarray(_poisson(x, l) @ _weights(l)[1][::-1])


def scale_of(sigma: float) -> float:
    """b of a Laplace noise of standard deviation σ."""
    return sigma / math.sqrt(2)


# ---- known paths


def path_loss(protocol: RingSum | PathSum, observers: tuple[int, ...]) -> Guarantee:
    """The certified loss of Laplace noise on a ring or a public path, one entry per user."""
    if protocol.n > _MOST_USERS:
        raise Unsupported(
            f"Laplace noise with {protocol.n} users: every user's losses are composed one by one, offered up to {_MOST_USERS}; "
            "take law='gaussian', whose losses add up"
        )
    view = TokenView.of(protocol, observers)
    seen = view.segments
    covers = _covers(view)
    unit = protocol.sensitivity / scale_of(protocol.sigma)
    kinds: dict[tuple[float, int], int] = {}
    times: list[dict[int, int]] = [{} for _ in range(protocol.n)]
    pairs, counts = np.unique(np.column_stack([seen.users, seen.places]), axis=0, return_counts=True)
    for (u, place), c in zip(pairs.tolist(), counts.tolist(), strict=True):
        noises, share = covers[place]
        kind = (math.inf, 0) if not noises else (c * unit / share, noises)
        which = kinds.setdefault(kind, len(kinds))
        times[u][which] = times[u].get(which, 0) + 1
    profiles = [laplace_profile(*kind) if kind[1] else ProfileCurve([0.0], [1.0]) for kind in kinds]
    hidden = np.flatnonzero(view.hidden)
    rows = {tuple(sorted(times[u].items())): None for u in hidden.tolist()}
    curves = {row: _composed([(profiles[kind], count) for kind, count in row]) for row in rows}
    return Guarantee(
        curve=_one_table(protocol.n, hidden, [curves[tuple(sorted(times[u].items()))] for u in hidden.tolist()]),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        references=REFERENCES,
    )


def _covers(view: TokenView) -> list[tuple[int, float]]:
    """Per segment: how many noises of at least which share of σ cover it, chosen by variance."""
    found: list[tuple[int, float]] = []
    for path, shares in zip(view.paths, view.shares, strict=True):
        secret = view.hidden[path]
        place = np.cumsum(~secret)
        for segment in range(int(place[-1]) + 1):
            inside = shares[secret & (place == segment)]
            if segment == place[-1] and secret[-1]:
                inside = np.append(inside, view.closing)
            sizes_of = np.sort(inside[inside > 0])[::-1]
            if not sizes_of.size:
                found.append((0, 0.0))
                continue
            best = int(np.argmax(sizes_of * np.arange(1, len(sizes_of) + 1)))
            found.append((_rounded_down(best + 1), math.sqrt(sizes_of[best])))
    return found


def _rounded_down(count: int) -> int:
    """Counts of noises are put together in narrow bins, each at its lower end: fewer noises cover less."""
    return next(first for first, last in bins(1, 10**7, 1.05) if first <= count <= last)


def _composed(parts: list[tuple[ProfileCurve, int]]) -> ProfileCurve:
    if not parts:
        return ProfileCurve([0.0], [0.0])
    if any(curve.deltas[-1] > 0 for curve, _ in parts):
        return ProfileCurve([0.0], [1.0])
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return composed(parts, max(float(curve.epsilons[-1]) for curve, _ in parts) / _CELLS)


def _one_table(n: int, users: IntArray, curves: list[ProfileCurve]) -> ProfileCurve:
    """All users' curves at common ε: chords between some of their points are bounds."""
    ends = sorted({float(curve.epsilons[-1]) for curve in curves})
    some = [curve.epsilons[:: max(1, len(curve.epsilons) // 200)] for curve in dict.fromkeys(curves)]
    eps = np.unique(np.concatenate([[0.0], ends, *some[:20]]))
    table = np.full((n, len(eps)), np.nan)
    known: dict[int, FloatArray] = {}
    for u, curve in zip(users.tolist(), curves, strict=True):
        if id(curve) not in known:
            known[id(curve)] = np.minimum.accumulate(np.asarray(curve.delta(eps)))
        table[u] = known[id(curve)]
    return ProfileCurve(eps, table)


# ---- walks on the complete graph


def walk_bounds(
    protocol: WalkSum,
    q: float,
    w: float,
    shift: Shift,
    each: Callable[[Profile], ProfileCurve],
    law: tuple[FloatArray, FloatArray, float],
) -> list[Callable[[], ProfileCurve]]:
    """Bounds on δ(ε) of a walk with Laplace noise, the one that is usually the least first.

    each    composes the gaps of as many visits as there can be
    law     how often a user contributes, with which probability, and that of more often (`walk.contributions_law`)
    """
    root = math.sqrt(2)
    close, distant = shift.near * root, shift.far * root
    single = sampled_step(close, distant, q)

    def told() -> ProfileCurve:
        chance = w + q * (1 - w)  # the next visit of u or O
        longest = min(_LONGEST, math.ceil(20 / chance))
        covered: list[tuple[int, Profile]] = [(l, laplace_profile(close, l).delta) for l, _ in bins(1, longest, 1.2)]  # noqa: E741
        return each(gap_profile(covered, chance))

    def local() -> ProfileCurve:
        return local_profile(close, law)

    def hidden() -> ProfileCurve:
        steps = protocol.steps - (protocol.release == "named")
        events = [Event(lambda eps: (1 - w) * single(eps), steps * protocol.tokens)]
        if protocol.release == "named":
            one = laplace_profile(close)
            events.append(Event(lambda eps: (1 - w) * q * np.asarray(one.delta(eps)), protocol.tokens))
        return compose_events(events)

    def known() -> ProfileCurve:
        ends = KNOWN_ENDS[protocol.sender]
        last = 2 if protocol.release == "named" else ends
        found = []
        for size in sizes(q, last):
            events, lost = pieces(functools.partial(_cover, close), single, q, w, protocol.steps, size, ends, last)
            found.append(compose_events([event.repeated(protocol.tokens) for event in events], lost * protocol.tokens))
        return least(found)

    if protocol.contributions is not None:
        return [told, local]
    return [known if KNOWN_ENDS[protocol.sender] else hidden, told, local]


def local_profile(shift: float, law: tuple[FloatArray, FloatArray, float]) -> ProfileCurve:
    """Every contribution of u shown with its own noise, and their number."""
    k, weights, unlikely = law
    one, parts, start = laplace_profile(shift), [], 0
    for _, last in bins(1, int(k[-1]), 1.15):
        end = int(np.searchsorted(k, last, side="right"))
        if end > start and (weight := float(weights[start:end].sum())) > _LIGHT:
            parts.append((weight, one.self_compose(last, shift / 400)))
        elif end > start:
            unlikely += float(weights[start:end].sum())
        start = end
    eps = np.unique(np.concatenate([curve.epsilons for _, curve in parts]))
    delta = unlikely + sum(weight * np.asarray(curve.delta(eps)) for weight, curve in parts)
    return ProfileCurve(eps, np.minimum.accumulate(np.minimum(delta, 1.0)))


def sampled_step(near: float, far: float, q: float) -> Profile:
    """One step that is u's with probability q, secretly: `sampled.block` of one step, for Laplace noise."""
    close, distant = laplace_profile(near), laplace_profile(far)

    def profile(eps: FloatArray) -> FloatArray:
        grown = np.expm1(eps) / q
        inner = np.log1p(grown)
        delta = np.asarray(close.delta(inner))
        if far > near:
            beta = np.minimum(np.exp(eps) / (1 + grown), 1.0)
            delta = beta * delta + (1 - beta) * np.asarray(distant.delta(inner))
        return q * delta

    return profile


@functools.lru_cache(maxsize=8192)
def _cover(shift: float, j: int, m: int) -> Profile:
    """j contributions of u among m; m = 0: each in the clear, which a shift of j in one noise bounds."""
    return laplace_profile(j * shift, max(1, m)).delta


def curator_profile(protocol: WalkSum, shift: float, own: float) -> ProfileCurve:
    """The sum of all contributions in all the noise: a shift of kΔ, k the number of u's visits, told or not.

    own : how likely a step is u's.
    """
    steps, unit = protocol.steps * protocol.tokens, shift * math.sqrt(2)
    k, chance = visits(steps, own, 1)
    many = np.minimum(k, protocol.contributions * protocol.tokens) if protocol.contributions is not None else k
    light = (chance < _LIGHT) | ~np.isfinite(many)
    parts = [
        (float(p), laplace_profile(unit * float(j), _rounded_down(steps)))
        for j, p in zip(many[~light], chance[~light], strict=True)
    ]
    rest = float(chance[light].sum())

    def profile(eps: FloatArray) -> FloatArray:
        total = np.full(len(eps), rest)
        for p, curve in parts:
            total = total + p * np.asarray(curve.delta(eps))
        return total

    found = [compose_events([Event(profile, 1)])] if steps <= 4 * _LONGEST or protocol.contributions is not None else []
    if protocol.contributions is None:
        found.append(compose_events([Event(sampled_step(unit, unit, own), steps)]))
    return least(found)
