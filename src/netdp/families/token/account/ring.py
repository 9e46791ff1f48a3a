"""What observers learn on rings: from a histogram, from a model, from a sum in a new random order every round.

RingHistogram   the answers between two visits of the observers are a heap, in no order; u's answer hides among the random ones.
                Heaps are independent, so their profiles compose (docs/proofs/token.md#known-path)
RingDescent     a step of u that is followed by l hops until an observer looks costs Δ/(σ√l) in Gaussian DP, so μ² =
                (Δ/σ)²·Σ 1/l over the rounds (docs/proofs/token.md#ring-descent)
SecretRingSum   who colludes is settled before the orders are drawn; c colluders cut a round into c + 1 stretches of random
                lengths (docs/proofs/token.md#secret-ring)

Sums on a fixed ring are paths: `netdp.families.token.account.path`, and on a grid `grid`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.account.events import (
    Event,
    Profile,
    bins,
    compose_events,
    gaussian,
    least,
    mean,
    mixture,
    sampled,
)
from netdp.families.token.ring import RingDescent, RingHistogram, SecretRingSum
from netdp.families.token.views import ring_path
from netdp.families.token.walk import WalkHistogram
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import Law
from netdp.privacy.clones import response_profile
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.table import certified
from netdp.protocols.views import observer_set

REFERENCES = (
    "netdp, docs/proofs/token.md#known-path: heaps of randomized responses between visits.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "V. Feldman, A. McMillan, K. Talwar. Hiding Among the Clones. FOCS, 2021.",
)

# A profile is cut where δ has fallen to this: the rest of the ε axis would only coarsen the grid of losses.
_NOTHING = 1e-24

# The number B of random elements is taken in bins of a standard deviation over this.
_PER_DEVIATION = 4

# Cells of the grid of losses for the profile of one heap, and knots of the result (fewer where there are many users).
_CELLS, _KNOTS = 2048, 512


def heaps(protocol: RingHistogram, observers: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The kinds of heaps, rows (other responses, sure random elements), and how many of each kind every user is in.

    >>> kinds, times = heaps(RingHistogram(5, rounds=3, domain=2, gamma=0.4), (3,))
    >>> kinds.tolist(), times[0].tolist(), times[4].tolist()       # user 0: the first heap, then two full rounds
    ([[0, 2], [2, 2], [3, 0]], [0, 1, 2], [1, 0, 2])
    """
    path = ring_path(protocol)
    own = np.zeros(protocol.n, dtype=bool)
    own[list(observers)] = True
    secret = ~own[path]
    place = np.cumsum(~secret)
    size = np.bincount(place[secret], minlength=int(place[-1]) + 1)
    sure = np.zeros(len(size), dtype=np.int64)
    if secret[0]:
        sure[0] += protocol.blanket
    if secret[-1] and protocol.closing:
        sure[-1] += protocol.closing_blanket
    kinds, kind = np.unique(np.column_stack([size - 1, sure]), axis=0, return_inverse=True)
    times = np.zeros((protocol.n, len(kinds)), dtype=np.int64)
    np.add.at(times, (path[secret], kind.ravel()[place[secret]]), 1)
    used = times.any(axis=0)
    return kinds[used], times[:, used]


@certified.register
def _ring_histogram(protocol: RingHistogram, observers: tuple[int, ...]) -> Guarantee:
    members = observer_set(protocol.n, observers)
    kinds, times = heaps(protocol, members)
    singles = [
        heap_profile(int(others), int(sure), protocol.domain, protocol.gamma, protocol.response)
        for others, sure in kinds
    ]
    hidden = times.any(axis=1)
    rows, which = np.unique(times[hidden], axis=0, return_inverse=True)
    curves = [_composed(protocol, singles, row) for row in rows]
    epsilons, table = _common(curves, protocol.n)
    deltas = np.full((protocol.n, len(epsilons)), np.nan)
    deltas[hidden] = table[which.ravel()]
    return Guarantee(
        curve=ProfileCurve(epsilons, deltas),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            "the ring is public; the token is readable by its holder alone until it is released, then by everybody",
            "all users follow the protocol to its end; the observers pool their own data, answers and all they read",
            "values are fixed beforehand, one for every visit, and do not react to the token",
            "the starting blanket is known to user 0 alone"
            + (
                f", the closing one to user {protocol.n - 1} alone" if protocol.closing else "; there is no closing one"
            ),
        ),
        references=REFERENCES,
    )


def heap_profile(others: int, sure: int, domain: int, gamma: float, response: str = "k-ary") -> ProfileCurve:
    """δ(ε) of one response among `others` responses and `sure` uniform elements: E_B[δ among B uniform elements].

    B = Binomial(others, γ) + sure is taken in bins, each with the δ of its lower end: δ falls with B, for one more
    element in the heap is post-processing. What lies outside the window of the law counts as if nothing hid u at all.

    >>> print(f"{heap_profile(999, 500, 5, 0.5).epsilon(1e-6):.3f}")
    0.189
    """
    if response == "unary":
        bit = heap_profile(others, sure, 2, gamma)
        return bit if gamma == 1 else bit.self_compose(2, float(bit.epsilons[-1]) / _CELLS)
    if gamma == 1 or others == 0:
        return response_profile(0, domain, gamma, sure=sure)
    mean, deviation = others * gamma, math.sqrt(others * gamma * (1 - gamma))
    width = max(1, int(deviation / _PER_DEVIATION))
    law = Law.binomial(others, gamma)
    starts = np.arange(law.low, law.low + len(law.chance), width)
    weights = np.add.reduceat(law.chance, starts - law.low) * (1 + 16 * UNIT * (law.steps + 64))
    epsilons = response_profile(0, domain, gamma, sure=sure + int(mean)).epsilons
    bare = response_profile(0, domain, gamma)
    epsilons = np.union1d(epsilons, bare.epsilons)
    total = np.asarray(bare.delta(epsilons)) * law.outside
    for start, weight in zip(starts.tolist(), weights.tolist(), strict=True):
        curve = response_profile(0, domain, gamma, sure=sure + start, epsilons=epsilons)
        total += weight * np.asarray(curve.delta(epsilons))
    return ProfileCurve(epsilons, np.minimum(np.minimum.accumulate(total), 1.0))


def bare_response(protocol: RingHistogram | WalkHistogram) -> ProfileCurve:
    """δ(ε) of one response with nothing around it: the chord from 1 − γ, whatever the response, to ε₀."""
    return ProfileCurve([0.0, protocol.epsilon0], [(1 - protocol.gamma) * (1 + 1e-12), 0.0])


def _trimmed(curve: ProfileCurve) -> ProfileCurve:
    """Without the points beyond the first δ that is next to nothing: the profile is constant there, which is sound."""
    small = np.flatnonzero(curve.deltas <= _NOTHING)
    end = int(small[0]) + 1 if small.size else len(curve.epsilons)
    return ProfileCurve(curve.epsilons[:end], curve.deltas[:end])


def _composed(protocol: RingHistogram, singles: list[ProfileCurve], times: IntArray) -> ProfileCurve:
    """The profile of all heaps a user is in, with the pure bound Kε₀ as its last point."""
    parts = [(_trimmed(curve), int(k)) for curve, k in zip(singles, times, strict=True) if k]
    if all(curve.epsilons[-1] == 0 and curve.deltas[-1] == 0 for curve, _ in parts):
        return ProfileCurve([0.0], [0.0])  # γ = 1
    step = max(float(curve.epsilons[-1]) for curve, _ in parts) / max(16, min(_CELLS, 2_000_000 // int(times.sum())))
    total: ProfileCurve | None = None
    for curve, k in parts:
        power = curve.self_compose(k, step)
        total = power if total is None else _trimmed(total).compose(_trimmed(power), step)
    assert total is not None
    pure = protocol.rounds * protocol.epsilon0 * (1 + 1e-12)
    below = total.epsilons < pure
    return ProfileCurve(np.append(total.epsilons[below], pure), np.append(total.deltas[below], 0.0))


def _common(curves: list[ProfileCurve], n: int) -> tuple[FloatArray, FloatArray]:
    """Few common ε for all curves: bounds between two of them lie on the chord, so dropping points is sound."""
    knots = max(32, min(_KNOTS, 40_000_000 // n) // len(curves))
    chosen = [np.zeros(1)]
    for curve in curves:
        telling = int(np.count_nonzero(curve.deltas > _NOTHING))
        picked = np.unique(np.linspace(0, min(telling, len(curve.epsilons) - 1), knots).round().astype(np.int64))
        chosen += [curve.epsilons[picked], curve.epsilons[-1:]]
    epsilons = np.unique(np.concatenate(chosen))
    table = np.stack([np.asarray(curve.delta(epsilons)) for curve in curves])
    return epsilons, np.minimum.accumulate(table, axis=1)


RING_DESCENT_REFERENCES = (
    "netdp, docs/proofs/token.md#ring-descent: descent on a ring.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
)


def hops_to_sight(protocol: RingDescent, observers: tuple[int, ...]) -> IntArray:
    """(rounds, n): from each step, how many hops it is to the next observer or to the release; 0 at the observers.

    >>> hops_to_sight(RingDescent(5, rounds=2, sigma=1.0, step=0.1), (3,)).tolist()
    [[3, 2, 1, 0, 4], [3, 2, 1, 0, 1]]
    """
    n, users = protocol.n, np.arange(protocol.n)
    places = np.sort(np.asarray(observers, dtype=np.int64))
    following = np.append(places, places[0] + n)[np.searchsorted(places, users)]
    ahead = following - users
    hops = np.tile(ahead, (protocol.rounds, 1))
    hops[-1] = np.minimum(ahead, n - users)
    return hops


def ring_energy(protocol: RingDescent, observers: tuple[int, ...]) -> FloatArray:
    """(n,) μ_u² = (Δ/σ)²·Σ 1/l over the rounds; nan at the observers."""
    hops = hops_to_sight(protocol, observers)
    if protocol.expansion > 1:
        hops = np.minimum(hops, 1)
    with np.errstate(divide="ignore"):
        energy = (1.0 / hops).sum(axis=0) * (protocol.sensitivity / protocol.sigma) ** 2
    energy[list(observers)] = np.nan
    return np.asarray(energy * (1 + ring_descent_slack(protocol)))


def ring_descent_slack(protocol: RingDescent) -> float:
    """The relative rounding error of μ²."""
    return 4.0 * UNIT * (protocol.rounds + 16)


@certified.register
def _descent(protocol: RingDescent, observers: tuple[int, ...]) -> Guarantee:
    energy = ring_energy(protocol, observer_set(protocol.n, observers))
    steps = (
        "θ ↦ θ − η·g_u(θ), clipping and projection included, does not increase distances, for every user u. "
        "netdp.learn.train_ring checks it for logistic rows clipped one by one; for anything else it is the caller's to see to",
    )
    return Guarantee(
        curve=GaussianCurve(np.sqrt(energy)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: the gradients of all users are clipped to norm {protocol.clip:g} before the noise "
            "is added",
            "the ring is public; the token is readable by its holder alone until it is released, then by everybody",
            "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
            "a gradient may depend on the step and on the token that its user holds, on no earlier token",
            *(steps if protocol.expansion == 1 else ()),
            "the starting model does not depend on anybody's data",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=RING_DESCENT_REFERENCES,
        factor=energy / protocol.local_mu**2,
        slack=ring_descent_slack(protocol),
    )


SECRET_RING_REFERENCES = (
    "netdp, docs/proofs/token.md#secret-ring: rings in a new random order every round.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022 (time-evolving rings: proposed there).",
    "B. Balle, G. Barthe, M. Gaboardi. Privacy Amplification by Subsampling. NeurIPS 2018.",
)

_WORK = 2 * 10**7  # lengths of two stretches that are looked at

_RATIO = 1.02

_FINE = 1e-4  # of the ε axis: where one round is tabulated as it is


def stretch_law(n: int, colluders: int) -> FloatArray:
    """f(m), m = 0 … n − c: the probability that a given one of the c + 1 stretches has m users.

    >>> stretch_law(5, 2).round(12).tolist()                  # of C(5, 2) = 10 places of two observers
    [0.4, 0.3, 0.2, 0.1]
    """
    m = np.arange(n - colluders)
    ratios = (n - colluders - m) / (n - m - 1.0)
    return np.asarray(colluders / n * np.concatenate([[1.0], np.cumprod(ratios)]))


def ring_profile(protocol: SecretRingSum, colluders: int = 1) -> ProfileCurve:
    """δ(ε) of `SecretRingSum` for any user against any `colluders` others who were chosen before the orders are drawn.

    >>> p = SecretRingSum(1000, rounds=10, sigma=30.0)              # a fixed ring against two neighbours: 20.8
    >>> [round(float(ring_profile(p, c).epsilon(1e-6)), 2) for c in (1, 2, 10)]
    [1.86, 2.35, 3.61]
    >>> [round(float(ring_profile(p.replace(sender="hidden"), c).epsilon(1e-6)), 2) for c in (1, 2, 10)]
    [0.64, 0.77, 1.62]
    """
    everything = Event(gaussian(protocol.local_mu * (1 + 8 * UNIT)), 1)
    found = [everything.curve(_FINE * everything.reach), _told(protocol, colluders)]
    if protocol.sender == "hidden":
        found += [_hidden(protocol, colluders, b) for b in _thresholds(protocol.n, colluders)]
    return least(found)


def _thresholds(n: int, colluders: int) -> list[int]:
    """Lengths from which a stretch counts as long: parts of the mean length, as far as the work allows."""
    longest = -(-(n - colluders) // (colluders + 1))
    tried = {math.ceil(longest / part) for part in (1, 2, 4, 8, 16, 32)}
    return sorted(b for b in tried if b >= 2 and b * n <= _WORK)


def _shifts(protocol: SecretRingSum, lengths: FloatArray) -> FloatArray:
    return protocol.sensitivity / protocol.sigma * np.sqrt(protocol.n / lengths) * (1 + 8 * UNIT)


@functools.lru_cache(maxsize=64)
def _own_law(n: int, colluders: int) -> FloatArray:
    """P(m), m = 0 … N: how many users u's stretch has, with what covers the rounding."""
    f = stretch_law(n, colluders)
    m = np.arange(len(f))
    law = (colluders + 1) * m * f / (n - colluders) * (1 + 16 * n * UNIT)
    law.flags.writeable = False
    return np.asarray(law)


def _told(protocol: SecretRingSum, colluders: int) -> ProfileCurve:
    law = _own_law(protocol.n, colluders)
    starts = np.array([first for first, _ in bins(1, len(law) - 1, _RATIO)])
    weights = np.add.reduceat(law, starts)
    event = Event(mixture(_shifts(protocol, starts), weights), protocol.rounds)
    return event.curve(_FINE * event.reach) if protocol.rounds == 1 else compose_events([event])


def _hidden(protocol: SecretRingSum, colluders: int, threshold: int) -> ProfileCurve:
    """Two events a round: a sampled contribution in a short stretch, and a shift in a long one."""
    n = protocol.n
    law, least_long = _own_law(n, colluders), n - colluders - colluders * (threshold - 1)
    parts: list[tuple[float, Profile]] = []
    for first, last in bins(1, threshold - 1, 1.1):
        m = np.arange(first, last + 1)
        q = colluders * m / (colluders * m + least_long)
        mu = float(_shifts(protocol, np.array([float(first)]))[0])
        parts.append((float((law[m] / q).sum()), sampled(gaussian(mu), float(q[-1]) * (1 + 8 * UNIT))))
    starts, weights = _long_law(n, colluders, threshold)
    long = mixture(_shifts(protocol, starts), weights)
    return compose_events([Event(mean(parts), protocol.rounds), Event(long, protocol.rounds)])


@functools.lru_cache(maxsize=64)
def _long_law(n: int, c: int, b: int) -> tuple[FloatArray, FloatArray]:
    """Λ in bins: first lengths and weights."""
    f = stretch_law(n, c)
    N, least_long = n - c, n - c - c * (b - 1)
    k = np.arange(b, N + 1)
    padded = np.concatenate([f, np.zeros(N + b + 1)])
    # f(j) − f(j+1) without cancellation; for one observer all but the last vanish
    fall = np.zeros(2 * N + 2)
    j = np.arange(N)
    fall[:N] = f[:N] * (c - 1) / (n - j - 1.0)
    fall[N] = f[N]
    none = fall[k] + padded[k + b]
    worst = _ratio(k * (f[k] * (1 - least_long / N) + least_long / N * none), k * none, 1.0)
    for m in range(1, b):
        both = k * fall[m + k]
        worst = np.maximum(worst, _ratio(both, both, (N - m) / least_long))
    grown = np.minimum(worst * (1 + 32 * n * UNIT), 1.0)
    starts = np.array([first for first, _ in bins(b, N, _RATIO)], dtype=np.float64)
    ends = np.append(starts[1:] - 1, N).astype(np.int64)
    weights = np.diff(np.concatenate([[0.0], grown[ends - b]]))
    return starts, weights


def _ratio(above: FloatArray, below: FloatArray, scale: float) -> FloatArray:
    """A bound on a distribution function from partial sums; 1 everywhere if nothing is known."""
    whole = float(below.sum())
    if not whole > 0:
        return np.ones(len(above))
    return np.minimum(np.cumsum(above) * (scale / whole), 1.0)


@certified.register
def _secret_ring(protocol: SecretRingSum, observers: tuple[int, ...]) -> Guarantee:
    if not 1 <= len(observers) < protocol.n:
        raise InvalidValue(f"{len(observers)} of {protocol.n} users cannot collude against the others")
    size = protocol.sensitivity
    hidden = protocol.sender == "hidden"
    return Guarantee(
        curve=ring_profile(protocol, len(observers)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: the values of all users in one round lie in one public set of diameter {size:g} "
            "(L2 norm), whatever their data"
            if hidden
            else f"two values of one contribution differ by at most {size:g} in L2 norm (clip before the noise)",
            "who colludes was settled before the orders were drawn; in every round all orders of the users are equally likely, "
            "whatever happened before, and no observer has a hand in the draw",
            "nobody learns anything of the order but at which hops it holds the token itself: the network draws it, delivers, "
            "and publishes the token after the last hop"
            if hidden
            else "the orders may be public once they are drawn: the bound tells them",
            "a token is readable by its holder alone until it is released; the observers may also read it after every round",
            "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
            "values are fixed beforehand, one for every round, and do not react to the token",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
            "by symmetry the curve holds for every user outside the observers",
        ),
        references=SECRET_RING_REFERENCES,
    )
