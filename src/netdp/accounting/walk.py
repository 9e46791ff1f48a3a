"""A token on a random walk over the complete graph: what c colluding users learn about any other user.

*Docs: docs/guarantees.md, sections 11 and 12.*

The observers O see when the token is theirs (public: its law does not depend on data), its value then, and the released
token. Everything is symmetric in the other users, so one curve holds for each of them.

**Secret path, sender hidden.** All they see is a function of the public visit times and of the sums of noisy contributions
over stretches between visits. Cut every stretch into blocks of g steps and a remainder, and show each block's sum: that only
helps the observers. Starting at the beginning or after a visit of O, a block is complete with probability (1−w)^g, w = c/n,
or is ended after r < g steps by a visit, with probability w(1−w)^r: public facts, and what happens afterwards is
independent. So blocks are independent and identically distributed, each bounded by the mean of `sampled.block` over its
length. The number of blocks in T steps is at most B except with probability 10⁻¹⁵ (Chernoff), which is added to δ. For g = 1
there are exactly T. There is no cycle to tell apart and no last cycle to treat: the release shows what the blocks show.

**Sender known.** O also sees who got the token from it and who brought it back: the first and the last user of every
stretch. In a stretch of j ≥ 3 steps let step i give ρ_iσ² of its noise to the sum of the known contributions and keep
(1−ρ_i)σ² for the hidden ones. That the two sums are shown instead of their total only helps. The known part is a Gaussian
shift of fΔ/(σ√Σρ_i), f = how many of the two are u: public facts, averaged over; the hidden part is as above with less
noise. ρ_i = ½ for the first n/32 steps of a stretch and smaller afterwards. Stretches of one or two steps are known
entirely (ρ = 1). There are at most N stretches except with probability 10⁻¹⁵.

**A limit on contributions** makes what the others add depend on how often they were visited, and so, through the secret path,
on u's data: R in `sampled` would not be the same on both sides. With such a limit only bounds that tell the path are used.

**Telling the path** altogether is a bound too: k visits in a stretch of j steps are a shift of kΔ/(σ√j).

**Descent** reacts to the token, so sums cannot be shown instead of states; all states are shown (g = 1), exactly a trusted
curator's noisy SGD that publishes every iterate. No convexity is needed. With known senders, known contributions are shown
with their own noise only. Two further bounds need no secrecy of the path: *iteration*, for non-expansive steps, and local DP.

**Iteration** (Feldman, Mironov, Talwar, Thakurta 2018, here in Gaussian DP). Let u contribute at step i, and let the next
step at which u or O holds the token (or the release) be i+l. Run A with u's data and B with its other data from the same
state, with the same later noise. Steer a third run C from A's start: C adds v_t to step t, of length at most ηΔ/l, towards
B; as steps do not expand, the distance to B shrinks by ηΔ/l in each of l steps and C meets B. Given C's states, B's and the
noise are determined, so C is A with shifts that depend on the past: l adaptive Gaussian mechanisms of μ = Δ/(lσ), together
Δ/(σ√l). Counted backwards from the release, the gaps l between visits to {u} ∪ O are independent and geometric with
parameter (c+1)/n, and public if we tell them. So one contribution of u is bounded by Σ_l P(l)·δ_Gauss(Δ/(σ√l)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

from .clones import response_profile
from .events import Event, Profile, compose_events, least
from .registry import certified
from .sampled import Shift, block, gaussian, mixture, sampled

FloatArray = npt.NDArray[np.float64]
Bound = Callable[[], ProfileCurve]

UNLIKELY = 1e-15
"""The probability of each thing that is assumed not to happen; added to δ."""

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35)  # ρ, the part of the noise that covers known contributions

REFERENCES = (
    "netdp, docs/guarantees.md: walks with a secret path.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
    "B. Balle, G. Barthe, M. Gaboardi. Privacy Amplification by Subsampling. NeurIPS 2018.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
)


@certified.register
def _sum(
    protocol: WalkSum, observers: tuple[int, ...], *, adjacency: str = "replace", progress: Any = None
) -> Guarantee:
    curve = sum_profile(protocol, len(observers), adjacency)
    return _statement(protocol, observers, curve, adjacency, f"in L2 norm at most {protocol.sensitivity:g} apart")


@certified.register
def _descent(
    protocol: WalkDescent, observers: tuple[int, ...], *, adjacency: str = "replace", progress: Any = None
) -> Guarantee:
    curve = descent_profile(protocol, len(observers), adjacency)
    clipped = f"gradients clipped to norm {protocol.clip:g} before the noise is added"
    return _statement(protocol, observers, curve, adjacency, clipped)


@certified.register
def _histogram(
    protocol: WalkHistogram, observers: tuple[int, ...], *, adjacency: str = "replace", progress: Any = None
) -> Guarantee:
    if Adjacency(adjacency) is not Adjacency.REPLACE:
        raise Unsupported("a category has no zero: histograms are accounted for under replacement")
    curve = histogram_profile(protocol, len(observers))
    return _statement(protocol, observers, curve, adjacency, f"labels in 0 … {protocol.domain - 1}")


def sum_profile(protocol: WalkSum, colluders: int = 1, adjacency: str = "replace") -> ProfileCurve:
    """δ(ε) of `WalkSum` for any user against any `colluders` others.

    >>> p = WalkSum(100, steps=10_000, sigma=61.0)
    >>> round(float(sum_profile(p).epsilon(1e-6)), 3)                 # local DP with 100 contributions: 0.673
    0.058
    """
    return least([bound() for bound in sum_bounds(protocol, colluders, adjacency)])


def sum_bounds(protocol: WalkSum, colluders: int = 1, adjacency: str = "replace") -> list[Bound]:
    """The bounds of `sum_profile`, the one that is usually the least first."""
    q, w, shift = _rates(protocol, colluders, adjacency)
    steps, tokens = protocol.steps, protocol.tokens

    def hidden() -> ProfileCurve:
        best, extra = best_blocks(shift, q, w, steps)
        return compose_events([best.repeated(tokens)], extra * tokens)

    def known() -> ProfileCurve:
        options = [_open_ends(shift, q, w, steps, stretches, share) for share in _SHARES]
        events, extra = min(options, key=lambda option: sum(event.times * event.variance for event in option[0]))
        return compose_events([event.repeated(tokens) for event in events], (extra + UNLIKELY) * tokens)

    def told() -> ProfileCurve:
        return compose_events([Event(_told(shift.near, q, w), stretches * tokens)], UNLIKELY * tokens)

    def local() -> ProfileCurve:
        return local_profile(protocol, shift.near)

    stretches = _most(steps, w) + 1
    if protocol.contributions is not None:
        return [told, local]
    return [hidden, local] if protocol.sender == "hidden" else [known, told, local]


def descent_profile(protocol: WalkDescent, colluders: int = 1, adjacency: str = "replace") -> ProfileCurve:
    """δ(ε) of `WalkDescent` for any user against any `colluders` others: the least of three bounds."""
    return least([bound() for bound in descent_bounds(protocol, colluders, adjacency)])


def descent_bounds(protocol: WalkDescent, colluders: int = 1, adjacency: str = "replace") -> list[Bound]:
    """The bounds of `descent_profile`, the one that is usually the least first."""
    q, w, shift = _rates(protocol, colluders, adjacency)

    def secret() -> ProfileCurve:
        event, _ = _blocks(shift, q, w, protocol.steps, 1)
        if protocol.sender == "hidden":
            return compose_events([event])
        one = gaussian(shift.near)
        seen = Event(lambda eps: q * one(eps), 2 * (_most(protocol.steps, w) + 1))
        return compose_events([event, seen], UNLIKELY)

    def iteration() -> ProfileCurve:
        count, unlikely = most_contributions(protocol)
        return compose_events([Event(_iterated(shift.near, (colluders + 1) / protocol.n), count)], unlikely)

    def local() -> ProfileCurve:
        return local_profile(protocol, shift.near)

    bounds = [local]
    if protocol.expansion == 1:
        bounds.insert(0, iteration)
    if protocol.contributions is None:
        bounds.insert(0, secret)
    return bounds


def histogram_profile(protocol: WalkHistogram, colluders: int = 1) -> ProfileCurve:
    """δ(ε) of `WalkHistogram` for any user against any `colluders` others.

    With hidden senders the steps are independent draws from one law, so that histograms lose nothing against the ordered
    list, and for L ≥ 3 the bound of one step is attained when all others hold a third value.
    """
    q, w, _ = _rates(protocol, colluders, "replace")
    epsilon0 = protocol.epsilon0
    floor = protocol.gamma / protocol.domain
    if epsilon0 == 0:
        return ProfileCurve([0.0], [0.0])
    count, unlikely = most_contributions(protocol)
    local = ProfileCurve([0.0, epsilon0], [floor * math.expm1(epsilon0) * (1 + 1e-12), 0.0]).self_compose(count)
    found = [more_delta(local, unlikely)]
    if protocol.contributions is not None:
        pass
    elif protocol.sender == "hidden":
        top = math.log1p(q * math.expm1(epsilon0))
        one = ProfileCurve([0.0, top], [(1 - w) * q * floor * math.expm1(epsilon0) * (1 + 1e-12), 0.0])
        found.append(one.self_compose(protocol.steps))
    else:
        found += [_known_responses(protocol, q, w, share) for share in (0.1, 0.3, 0.6)]
    return least(found)


def _known_responses(protocol: WalkHistogram, q: float, w: float, share: float) -> ProfileCurve:
    """Histograms with known senders: a share ρ of the hidden steps' random answers covers the known ones.

    A response with γ is, with probability ργ, a uniform draw, and else a response with γ″ = γ(1−ρ)/(1−ργ). Show the latter
    step by step, as with hidden senders. The uniform draws of a stretch, B of them, stay in one heap with the responses of
    its known first and last users. B is geometric: every further step ends the stretch with probability w, or else is such a
    draw with probability ργ. If one of the two known responses is u's, it hides among B draws; if both are, each among half.
    """
    L, gamma = protocol.domain, protocol.gamma
    seen = 1 - share * gamma
    rest = gamma * (1 - share) / seen
    shown = sampled(_response(L, rest), q)
    steps = Event(lambda eps: (1 - w) * seen * shown(eps), protocol.steps)
    more = (1 - w) * share * gamma / ((1 - w) * share * gamma + w)
    bare = _response(L, gamma)
    parts: list[tuple[float, Profile]] = [(w * (1 - w) * q, bare)]
    for first, last in [(0, 0), *_bins(1, max(1, math.ceil(45 / -math.log(more))), 1.3)]:
        chance = (1 - w) ** 2 * (more**first - more ** (last + 1))
        one = response_profile(0, L, gamma, sure=first)
        half = response_profile(0, L, gamma, sure=first // 2)
        parts.append((chance * 2 * q * (1 - q), _as_profile(one)))
        parts.append((chance * q**2, _as_profile(half.self_compose(2))))

    def ends(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([chance * part(eps) for chance, part in parts], axis=0)
        return total + 1e-19 * bare(eps)  # longer heaps than were looked at

    return compose_events([steps, Event(ends, _most(protocol.steps, w) + 1)], UNLIKELY)


def _response(domain: int, gamma: float) -> Profile:
    """The profile of one L-ary randomized response."""
    top = domain * (1 - gamma) / gamma  # e^ε₀ − 1
    return lambda eps: gamma / domain * np.maximum(top - np.expm1(eps), 0.0)


def _as_profile(curve: ProfileCurve) -> Profile:
    return lambda eps: np.asarray(curve.delta(eps))


def _rates(
    protocol: WalkSum | WalkDescent | WalkHistogram, colluders: int, adjacency: str
) -> tuple[float, float, Shift]:
    if not 1 <= colluders < protocol.n:
        raise InvalidValue(
            f"{colluders} of {protocol.n} users cannot collude against the others; name 1 to {protocol.n - 1}"
        )
    relation = Adjacency(adjacency)
    if relation is Adjacency.ADD_REMOVE:
        raise Unsupported("walks are accounted for under 'replace' or 'zero-out': the set of users is public")
    sigma = getattr(protocol, "sigma", 1.0)
    far = getattr(protocol, "sensitivity", 1.0) / sigma
    near = far / 2 if relation is Adjacency.ZERO_OUT else far
    return 1.0 / (protocol.n - colluders), colluders / protocol.n, Shift(near, far)


def best_blocks(shift: Shift, q: float, w: float, steps: int) -> tuple[Event, float]:
    """Blocks of the size whose losses vary least in total; any size is a bound."""
    sizes = [1, *(4**i for i in range(1, 12) if 4**i <= 1 / (3 * q))]
    options = (_blocks(shift, q, w, steps, size) for size in sizes)
    return min(options, key=lambda option: option[0].times * option[0].variance)


def _blocks(shift: Shift, q: float, w: float, steps: int, size: int) -> tuple[Event, float]:
    """Blocks of `size` steps: their mean profile, how many at most, and with which probability more."""
    if size == 1:
        single = block(shift, q, 1)
        return Event(lambda eps: (1 - w) * single(eps), steps), 0.0
    return Event(_cut(shift, q, w, size), _most_blocks(steps, size, w)), UNLIKELY


def _cut(shift: Shift, q: float, w: float, size: int) -> Profile:
    """A block of `size` steps, or of fewer if a visit of O ends it."""
    parts = [((1 - w) ** size, block(shift, q, size))]
    for first, last in _bins(1, size - 1):
        parts.append(((1 - w) ** first - (1 - w) ** (last + 1), block(shift, q, first, last)))

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([chance * part(eps) for chance, part in parts], axis=0)
        return total

    return profile


def _bins(first: int, last: int, ratio: float = 1.3) -> list[tuple[int, int]]:
    """first … last cut into ranges whose ends are about `ratio` apart."""
    edges, start = [], first
    while start <= last:
        end = min(last, max(start, int(start * ratio)))
        edges.append((start, end))
        start = end + 1
    return edges


def _most_blocks(steps: int, size: int, w: float) -> int:
    """B with P(the first B blocks cover fewer than `steps` steps) ≤ UNLIKELY.

    A block takes `size` steps, or r + 1 ≤ size if a visit ends it after r. Chernoff: P(ΣX < T) ≤ e^{sT}(E e^{−sX})^B.
    """
    r = np.arange(size)
    taken = np.append(r + 1, size).astype(np.float64)
    chance = np.append(w * (1 - w) ** r, (1 - w) ** size)

    def unlikely(blocks: int) -> bool:
        rates = np.geomspace(1e-6, 10, 120) / size
        logs = rates * steps + blocks * np.log(np.exp(-np.outer(rates, taken)) @ chance)
        return bool(np.min(logs) <= math.log(UNLIKELY))

    low, high = steps // size, 2 * (steps // size + 10)
    while not unlikely(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if unlikely(middle) else (middle, high)
    return min(high, steps)


def _most(steps: int, chance: float) -> int:
    """N with P(Binomial(steps, chance) > N) ≤ UNLIKELY."""
    from scipy.stats import binom

    return min(int(binom.isf(UNLIKELY * 0.99, steps, chance)), steps)


def _open_ends(shift: Shift, q: float, w: float, steps: int, stretches: int, share: float) -> tuple[list[Event], float]:
    """With known senders: what the known ends of a stretch reveal, and the hidden blocks with what noise is left.

    The first `early` steps of every stretch give half of their noise to the known ends, later ones only `share`: short
    stretches need it, and are a small part of the walk.
    """
    early = max(2, round(1 / (32 * q)))
    # j = 0 reveals nothing; j = 1 and 2 are known entirely
    mus = [shift.near, shift.near / math.sqrt(2), 2 * shift.near / math.sqrt(2)]
    weights = [w * (1 - w) * q, w * (1 - w) ** 2 * 2 * q * (1 - q), w * (1 - w) ** 2 * q**2]
    longest = math.ceil(90 / w)
    for first, last in [*_bins(3, longest, 1.2), (longest + 1, None)]:
        chance = (1 - w) ** first - (0.0 if last is None else (1 - w) ** (last + 1))
        noise = math.sqrt(0.5 * min(first, early) + share * max(0, first - early))
        mus += [shift.near / noise, 2 * shift.near / noise]
        weights += [chance * 2 * q * (1 - q), chance * q**2]
    known = mixture(np.array(mus), np.array(weights))
    rest = shift.over(math.sqrt(1 - share))
    later, extra = best_blocks(rest, q, w, steps)
    early_blocks = Event(_cut(shift.over(math.sqrt(0.5)), q, w, early), stretches)
    return [Event(known, stretches), early_blocks, later], extra


def _told(near: float, q: float, w: float) -> Profile:
    """A stretch of j steps with everything told: k ~ Binomial(j, q) contributions of u in noise of variance j."""
    from scipy.stats import binom

    mus, weights = [], []
    for first, last in [*_bins(1, math.ceil(60 / w), 1.05)]:
        chance = (1 - w) ** first - (1 - w) ** (last + 1)
        k = np.arange(1, min(last, 80) + 1)
        mus.append(k * near / math.sqrt(first))
        weights.append(chance * np.asarray(binom.pmf(k, last, q)))
    both = mixture(np.concatenate(mus), np.concatenate(weights))
    rest = (1 - w) ** math.ceil(60 / w) + 1e-25  # longer stretches, more than 80 visits
    return lambda eps: both(eps) + rest


def _iterated(near: float, chance: float) -> Profile:
    """One contribution, its shift spread over the gap to the next visit of u or O."""
    mus, weights = [], []
    for first, last in _bins(1, math.ceil(60 / chance), 1.02):
        mus.append(near / math.sqrt(first))
        weights.append((1 - chance) ** (first - 1) - (1 - chance) ** last)
    mus.append(near / math.sqrt(math.ceil(60 / chance)))
    weights.append((1 - chance) ** math.ceil(60 / chance))
    return mixture(np.array(mus), np.array(weights))


def most_contributions(protocol: WalkSum | WalkDescent | WalkHistogram) -> tuple[int, float]:
    """How often a user contributes at most, and the probability that it is more often."""
    steps = protocol.steps * getattr(protocol, "tokens", 1)
    most, unlikely = _most(steps, 1.0 / protocol.n), UNLIKELY
    limit = protocol.contributions
    if limit is not None and limit * getattr(protocol, "tokens", 1) <= most:
        return limit * getattr(protocol, "tokens", 1), 0.0
    return most, unlikely


def local_profile(protocol: WalkSum | WalkDescent, mu: float) -> ProfileCurve:
    """Local DP: every contribution of u shown with its own noise, their number too (its law does not depend on data)."""
    from scipy.stats import binom

    count, unlikely = most_contributions(protocol)
    steps = protocol.steps * getattr(protocol, "tokens", 1)
    k = np.arange(1.0, count + 1)
    weights = np.asarray(binom.pmf(k, steps, 1.0 / protocol.n))
    if not unlikely:
        weights[-1] = float(binom.sf(count - 1, steps, 1.0 / protocol.n))
    return compose_events([Event(mixture(np.sqrt(k) * mu, weights), 1)], unlikely)


def more_delta(curve: ProfileCurve, extra: float) -> ProfileCurve:
    """The same with `extra` added to every δ."""
    return ProfileCurve(curve.epsilons, np.minimum(curve.deltas + extra, 1.0)) if extra else curve


def _statement(
    protocol: WalkSum | WalkDescent | WalkHistogram,
    observers: tuple[int, ...],
    curve: ProfileCurve,
    adjacency: str,
    bounded: str,
) -> Guarantee:
    secret = "a user that holds the token learns neither who brought it nor who gets it next (an anonymous channel)"
    open_ = "a user sees who brings it the token and to whom it passes it, and nothing else of the path"
    return Guarantee(
        curve=curve,
        observers=observers,
        adjacency=Adjacency(adjacency),
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: {bounded}",
            "every step draws its user uniformly and secretly; all users follow the protocol; none but the observers collude",
            secret if protocol.sender == "hidden" else open_,
            "the number of the step is public, and so is the token after the last step",
            "what a user adds may depend on the step and the token it sees, not on how often it was visited before",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ"
            if not isinstance(protocol, WalkHistogram)
            else "responses are drawn from a perfect random source",
            "by symmetry the curve holds for every user outside the observers",
        ),
        references=REFERENCES,
    )
