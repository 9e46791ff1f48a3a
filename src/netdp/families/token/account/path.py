"""What observers learn from a token on a public path: exactly with Gaussian noise, bounded with Laplace noise.

Between two visits of the observers lies a segment (`netdp.families.token.views`) of which they see the sum. With c
contributions of u in a segment of noise variance V, u loses a Gaussian shift of μ² = Δ²·Σ c²/V, which is exact; a segment
without noise shows u's value. Proof: docs/proofs/token.md#known-path.

Laplace noise has no μ: `laplace_profile` is the exact δ(ε) of a shift in a sum of Laplace noises, segments compose, and walks
are bounded as with Gaussian noise (`walk_bounds`). Proofs: docs/proofs/token.md#laplace-tokens. A path on a grid is carried over
from real numbers by `netdp.families.token.account.grid`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numba import njit
from scipy import special

from netdp.engines.choice import cores
from netdp.engines.maps import team
from netdp.errors import Unsupported
from netdp.families.token.account.events import (
    Event,
    Profile,
    Shift,
    bins,
    compose_events,
    gap_profile,
    least,
    side_by_side,
)
from netdp.families.token.account.grid import WALK_ON_A_GRID_REFERENCES as GRID_REFERENCES
from netdp.families.token.account.grid import on_the_grid, ring_loss, ring_pairs, wire_assumptions
from netdp.families.token.account.openings import known_ends, pieces, sizes
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingSum
from netdp.families.token.views import TokenView
from netdp.families.token.walk import KNOWN_ENDS, WalkSum
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import visits
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve, composed
from netdp.protocols.grid import norm_order, only_gaussian
from netdp.protocols.table import certified, certified_pairs

_POINTS = 240

_LONGEST = 1024  # noises that are added up; more count as so many

_LIGHT = 1e-24

_CELLS = 4096

_MOST_USERS = 3000

LAPLACE_REFERENCES = (
    "netdp, docs/proofs/token.md#laplace-tokens: sums of Laplace noises.",
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
        references=LAPLACE_REFERENCES,
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


def _one_table(n: int, users: IntArray, curves: list[ProfileCurve]) -> SharedCurve:
    """All users' curves at common ε, each once."""
    ends = sorted({float(curve.epsilons[-1]) for curve in curves})
    some = [curve.epsilons[:: max(1, len(curve.epsilons) // 200)] for curve in dict.fromkeys(curves)]
    eps = np.unique(np.concatenate([[0.0], ends, *some[:20]]))
    different = {id(curve): curve for curve in curves}
    place = {key: row for row, key in enumerate(different)}
    which = np.full(n, -1, dtype=np.int64)
    which[users] = [place[id(curve)] for curve in curves]
    return SharedCurve(side_by_side(list(different.values()), eps), which)


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
    law     how often a user contributes, with which probability, and that of more often (`account.walk.contributions_law`)
    """
    root = math.sqrt(2)
    close, distant = shift.near * root, shift.far * root
    single = sampled_step(close, distant, q)

    def told() -> ProfileCurve:
        chance = w + q * (1 - w)  # the next visit of u or O
        longest = min(_LONGEST, math.ceil(20 / chance))
        covered: list[tuple[int, Profile]] = [(l, laplace_profile(close, l).delta) for l, _ in bins(1, longest, 1.2)]  # noqa: E741
        return each(gap_profile(covered, chance))

    def hidden() -> ProfileCurve:
        steps = protocol.steps - (protocol.release == "named")
        events = [Event(lambda eps: (1 - w) * single(eps), steps * protocol.tokens)]
        if protocol.release == "named":
            one = laplace_profile(close)
            events.append(Event(lambda eps: (1 - w) * q * np.asarray(one.delta(eps)), protocol.tokens))
        return compose_events(events)

    def known() -> ProfileCurve:
        ends, at_release = known_ends(protocol)
        found = []
        for size in sizes(q, at_release):
            events, lost = pieces(
                functools.partial(_cover, close), single, q, w, protocol.steps, size, ends, at_release
            )
            found.append(compose_events([event.repeated(protocol.tokens) for event in events], lost * protocol.tokens))
        return least(found)

    def local() -> ProfileCurve:
        return local_profile(close, law)

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
    """One step that is u's with probability q, secretly: `events.block` of one step, for Laplace noise."""
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


KNOWN_PATH_REFERENCES = (
    "netdp, docs/proofs/token.md#known-path: exact loss of a token on a known path.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)

# Observers worked on at once by `path_energy_blocks`.
_BLOCK = 64


def path_energy(protocol: PathSum | RingSum, observers: int | Iterable[int]) -> FloatArray:
    """(n,) μ_u² of every user against colluding observers; inf where a value shows without noise, nan at the observers.

    >>> ring = RingSum(10, rounds=3, sigma=2.0, closing=False)
    >>> path_energy(ring, [8])[[0, 9]].round(9).tolist()    # 9 adds its last value after 8's last visit: no noise follows
    [0.75, inf]
    """
    view = TokenView.of(protocol, observers)
    energy = _view_energy(view) * _scale(protocol)
    energy[list(view.observers)] = np.nan
    return energy


def path_energy_blocks(protocol: PathSum | RingSum) -> Iterator[tuple[int, FloatArray]]:
    """μ² for every single observer, a few observers at a time: (first observer v, rows [v − first, u]).

    Never more than 64 rows are in memory; the array is reused, so copy what is to be kept.
    """
    view = TokenView.of(protocol, 0)
    scale = _scale(protocol)
    n = view.n
    block = np.empty((min(_BLOCK, n), n))
    threads = cores()
    with team(threads) as together:
        for first in range(0, n, len(block)):
            rows = block[: min(len(block), n - first)]
            rows[:] = 0.0

            def some(part: int, first: int = first, rows: FloatArray = rows) -> None:
                mark, base = np.zeros(n, dtype=np.int64), 0
                for row in range(part, len(rows), threads):
                    for path, carries, shares in zip(view.paths, view.carries, view.shares, strict=True):
                        base = _one_observer(path, carries, shares, view.closing, first + row, rows[row], mark, base)

            together(some, threads)
            rows *= scale
            rows[np.arange(len(rows)), first + np.arange(len(rows))] = np.nan
            yield first, rows


def path_energy_pairwise(protocol: PathSum | RingSum) -> FloatArray:
    """(n, n) μ²: entry [u, v] is what v alone learns about u; nan on the diagonal.

    The same numbers a few observers at a time, without the matrix: `path_energy_blocks`.
    """
    out = np.empty((protocol.n, protocol.n))
    for first, rows in path_energy_blocks(protocol):
        out[first : first + len(rows)] = rows
    return out.T


def _scale(protocol: PathSum | RingSum) -> float:
    """Δ²/σ², and what covers the rounding of the sums."""
    if protocol.grid is not None:
        raise Unsupported(
            f"this {type(protocol).__name__} adds whole numbers on a grid of {protocol.grid:g}, so its loss is no single μ and σ "
            "is not found by a formula: account(protocol, observers) certifies it; to find σ, calibrate with grid=None, then state "
            "grid= and account again"
        )
    only_gaussian(protocol, "μ²")
    return (protocol.sensitivity / protocol.sigma) ** 2 * (1.0 + _slack(protocol))


def _slack(protocol: PathSum | RingSum) -> float:
    steps = protocol.rounds * protocol.n if isinstance(protocol, RingSum) else sum(map(len, protocol.paths))
    return 4.0 * UNIT * (steps + 16)


def _view_energy(view: TokenView) -> FloatArray:
    """Σ_s c²/V_s for every user, V in units of σ²."""
    from scipy.sparse import coo_array

    seen = view.segments
    ones = np.ones(len(seen.users))
    counts = coo_array((ones, (seen.users, seen.places)), shape=(view.n, len(seen.variances))).tocsr()
    with np.errstate(divide="ignore"):
        terms = counts.data**2 / seen.variances[counts.indices]
    owners = np.repeat(np.arange(view.n), np.diff(counts.indptr))
    return np.bincount(owners, weights=terms, minlength=view.n).astype(np.float64)


@njit(nogil=True, cache=True, error_model="numpy")
def _one_observer(path: Any, carries: Any, shares: Any, closing: float, v: int, out: Any, mark: Any, base: int) -> int:
    """Add Σ_s c²/V_s of one token against observer v to `out`; c² is summed up as 1 + 3 + 5 + …

    mark[u] − base is how often u has contributed to this segment; bases of segments are further apart than that can be.
    """
    steps, start = len(path), 0
    while start < steps:
        end, variance = start, 0.0
        while end < steps and path[end] != v:
            variance += shares[end]
            end += 1
        if end == steps:
            variance += closing
        weight = 1.0 / variance  # without noise: inf
        for t in range(start, end):
            if carries[t]:
                u = path[t]
                place = max(mark[u], base)
                out[u] += (2 * (place - base) + 1) * weight
                mark[u] = place + 1
        base += end - start + 1
        start = end + 1
    return base


@certified.register
def _token(protocol: PathSum | RingSum, observers: tuple[int, ...]) -> Guarantee:
    if isinstance(protocol, RingSum) and protocol.grid is not None:
        return ring_loss(protocol, observers)
    if isinstance(protocol, PathSum) and protocol.grid is not None:
        return _on_the_grid(protocol, path_energy(protocol.in_real_numbers, observers))
    if protocol.law == "laplace":
        return dataclasses.replace(path_loss(protocol, observers), assumptions=token_assumptions(protocol))
    return _statement(protocol, path_energy(protocol, observers))


@certified_pairs.register
def _pairs(protocol: PathSum | RingSum) -> Guarantee:
    """What every single user learns about every other: matrices [u, v]."""
    if isinstance(protocol, RingSum) and protocol.grid is not None:
        return ring_pairs(protocol)
    if isinstance(protocol, PathSum) and protocol.grid is not None:
        return _on_the_grid(protocol, path_energy_pairwise(protocol.in_real_numbers))
    only_gaussian(protocol, "the matrix of all pairs")
    return _statement(protocol, path_energy_pairwise(protocol))


def _statement(protocol: PathSum | RingSum, energy: FloatArray) -> Guarantee:
    return Guarantee(
        curve=GaussianCurve(np.sqrt(energy)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.EXACT,
        assumptions=token_assumptions(protocol),
        references=KNOWN_PATH_REFERENCES,
        factor=energy / protocol.local_mu**2,
        slack=_slack(protocol),
    )


def _on_the_grid(protocol: PathSum, energy: FloatArray) -> Guarantee:
    """The same for tokens that add whole numbers, from the energy in real numbers."""
    loss = _statement(protocol, energy)
    return dataclasses.replace(
        loss,
        curve=on_the_grid(loss.curve, protocol),
        claim=Claim.UPPER,
        factor=energy / protocol.in_real_numbers.local_mu**2,
        references=(GRID_REFERENCES[0], *KNOWN_PATH_REFERENCES, *GRID_REFERENCES[1:]),
    )


def token_assumptions(protocol: PathSum | RingSum) -> tuple[str, ...]:
    """What must hold for the exact number to hold."""
    where = (
        "the ring is public"
        if isinstance(protocol, RingSum)
        else "the path is public: this is the loss given this path, not an average over paths"
    )
    closing = (
        "the closing noise is drawn, and known, by the last holder"
        if (protocol.closing_noise if isinstance(protocol, RingSum) else protocol.closing)
        else "there is no closing noise: what is added last is covered only by the noise around it"
    )
    return (
        f"two values of one contribution differ by at most {protocol.sensitivity:g} in L{norm_order(protocol)} norm "
        "(clip before the noise)",
        where,
        "a token is readable by its holder alone until it is released; then everybody reads every token",
        "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
        "values are fixed beforehand, one for every visit, and do not react to the token",
        closing,
        *(
            wire_assumptions(protocol)
            if isinstance(protocol, PathSum) and protocol.grid is not None
            else (
                IDEAL
                if protocol.law == "laplace"
                else "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
            )
        ),
    )
