"""A token on a random walk over the complete graph: what c colluding users learn about any other user.

*Docs: docs/guarantees.md, sections 11 and 12.*

The observers O see when the token is theirs (public: its law does not depend on data), its value then, and the released
token. Everything is symmetric in the other users, so one curve holds for each of them.

**Secret path.** What they see of sums is bounded by pieces of the walk shown in the clear but for the names
(`stretches`, `sampled`): blocks of g steps and an ending; with known senders also an opening of every stretch.

**A limit on contributions** makes what the others add depend on how often they were visited, and so, through the secret path,
on u's data: R in `sampled` would not be the same on both sides. With such a limit only bounds that tell the path are used.

**Telling the path** is a bound too. Count backwards from the release: the gaps l between visits to {u} ∪ O are independent
and geometric with parameter (c+1)/n, whatever the later ones were, and public if told. In a stretch in which u contributes k
times, followed by gaps l₁ … l_k, the sum is shifted by kΔ in noise of variance at least (l₁ + … + l_k)σ², and
k²/(l₁ + … + l_k) ≤ Σ1/l_i (Cauchy–Schwarz): each contribution costs at most Δ/(σ√l). A response in a histogram hides in the
same way among the l − 1 responses that follow it.

**Descent** reacts to the token, so sums cannot be shown instead of states; all states are shown (g = 1), exactly a trusted
curator's noisy SGD that publishes every iterate. No convexity is needed. With known senders (tell the visits of O first)
known contributions are shown with their own noise only, besides. Two further bounds need no secrecy of the path:
*iteration*, for non-expansive steps, and local DP.

**Iteration** (Feldman, Mironov, Talwar, Thakurta 2018, here in Gaussian DP). Let u contribute at step i, and let the next
step at which u or O holds the token (or the release) be i+l. Run A with u's data and B with its other data from the same
state, with the same later noise. Steer a third run C from A's start: C adds v_t to step t, of length at most ηΔ/l, towards
B; as steps do not expand, the distance to B shrinks by ηΔ/l in each of l steps and C meets B. Given C's states, B's and the
noise are determined, so C is A with shifts that depend on the past: l adaptive Gaussian mechanisms of μ = Δ/(lσ), together
Δ/(σ√l), with the same gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from netdp.accounting.table import certified
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

from .events import Event, Profile, compose_events, least
from .ring import heap_profile
from .sampled import Shift, gaussian, mixture
from .stretches import UNLIKELY, bins, blocks, ending, gap_mixture, gap_profile, most, opening, single_steps

Bound = Callable[[], ProfileCurve]

_OPENINGS = (4, 8, 16, 32)  # parts of n that an opening may be

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
    if adjacency != Adjacency.REPLACE:
        raise Unsupported(
            f"adjacency {adjacency!r}: a category has no zero, histograms are accounted for under 'replace'"
        )
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

    def told() -> ProfileCurve:
        return _each_contribution(protocol, gap_mixture(shift.near, (colluders + 1) / protocol.n))

    def local() -> ProfileCurve:
        return local_profile(protocol, shift.near)

    if protocol.contributions is not None:
        return [told, local]
    secret = known_bounds if protocol.sender == "known" else hidden_bounds
    return [*secret(shift, q, w, steps, tokens), told, local]


def descent_profile(protocol: WalkDescent, colluders: int = 1, adjacency: str = "replace") -> ProfileCurve:
    """δ(ε) of `WalkDescent` for any user against any `colluders` others: the least of three bounds."""
    return least([bound() for bound in descent_bounds(protocol, colluders, adjacency)])


def descent_bounds(protocol: WalkDescent, colluders: int = 1, adjacency: str = "replace") -> list[Bound]:
    """The bounds of `descent_profile`, the one that is usually the least first."""
    q, w, shift = _rates(protocol, colluders, adjacency)

    def secret() -> ProfileCurve:
        event = single_steps(shift, q, w, protocol.steps)
        if protocol.sender == "hidden":
            return compose_events([event])
        one = gaussian(shift.near)
        seen = Event(lambda eps: q * one(eps), 2 * (most(protocol.steps, w) + 1))
        return compose_events([event, seen], UNLIKELY)

    def iteration() -> ProfileCurve:
        return _each_contribution(protocol, gap_mixture(shift.near, (colluders + 1) / protocol.n))

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
    if protocol.contributions is None and protocol.sender == "hidden":
        found.append(sampled_responses(protocol, q, w))
    else:
        chance = (colluders + 1) / protocol.n
        covered = [
            (l, _as_profile(heap_profile(l - 1, 0, protocol.domain, protocol.gamma)))
            for l, _ in bins(1, math.ceil(3 / chance), 1.6)  # noqa: E741
        ]
        found.append(_each_contribution(protocol, gap_profile(covered, chance)))
    return least(found)


def sampled_responses(protocol: WalkHistogram, q: float, w: float) -> ProfileCurve:
    """All steps shown without their owners: each is u's with probability q, and O's with probability w."""
    grown = math.expm1(protocol.epsilon0)
    top = math.log1p(q * grown)
    height = (1 - w) * q * protocol.gamma / protocol.domain * grown * (1 + 1e-12)
    return ProfileCurve([0.0, top], [height, 0.0]).self_compose(protocol.steps)


def _as_profile(curve: ProfileCurve) -> Profile:
    return lambda eps: np.asarray(curve.delta(eps))


def _rates(
    protocol: WalkSum | WalkDescent | WalkHistogram, colluders: int, adjacency: str
) -> tuple[float, float, Shift]:
    if not 1 <= colluders < protocol.n:
        raise InvalidValue(
            f"{colluders} of {protocol.n} users cannot collude against the others; name 1 to {protocol.n - 1}"
        )
    if adjacency not in (Adjacency.REPLACE, Adjacency.ZERO_OUT):
        raise Unsupported(
            f"walks are accounted for under adjacency 'replace' or 'zero-out', got {adjacency!r}: the set of users is public"
        )
    relation = Adjacency(adjacency)
    sigma = getattr(protocol, "sigma", 1.0)
    far = getattr(protocol, "sensitivity", 1.0) / sigma
    near = far / 2 if relation is Adjacency.ZERO_OUT else far
    return 1.0 / (protocol.n - colluders), colluders / protocol.n, Shift(near, far)


def hidden_bounds(shift: Shift, q: float, w: float, steps: int, tokens: int = 1) -> list[Bound]:
    """A sum with a secret path: steps shown one by one; blocks of the two sizes whose losses vary least in total."""
    sizes = [4**i for i in range(1, 12) if 4**i <= min(1 / (3 * q), steps / 8)]
    options = _all_blocks(shift, q, w, steps, sizes)
    options.sort(key=lambda option: option[1].times * option[1].variance)

    def in_blocks(size: int, event: Event) -> ProfileCurve:
        last, unlikely = ending(shift, q, w, size, 2 * size - 1, hidden=True)
        pieces = [event.repeated(tokens), Event(last, tokens)]
        return compose_events(pieces, (UNLIKELY + unlikely) * tokens)

    def one_by_one() -> ProfileCurve:
        return compose_events([single_steps(shift, q, w, steps).repeated(tokens)])

    return [*(partial(in_blocks, size, event) for size, event in options[:2]), one_by_one]


def _all_blocks(shift: Shift, q: float, w: float, steps: int, sizes: list[int]) -> list[tuple[int, Event]]:
    return [(size, blocks(shift, q, w, steps, size)) for size in sizes]


def known_bounds(shift: Shift, q: float, w: float, steps: int, tokens: int = 1) -> list[Bound]:
    """Known senders: openings of several lengths, the two whose losses vary least in total."""
    lengths = sorted({max(3, round(1 / (part * q))) for part in _OPENINGS})
    options = [_pieces(shift, q, w, steps, early) for early in lengths]
    options.sort(key=lambda option: sum(event.times * event.variance for event in option[0]))

    def composed(events: list[Event], extra: float) -> ProfileCurve:
        return compose_events([event.repeated(tokens) for event in events], extra * tokens)

    return [partial(composed, events, extra) for events, extra in options[:2]]


def _pieces(shift: Shift, q: float, w: float, steps: int, early: int) -> tuple[list[Event], float]:
    """Openings of `early` steps, blocks, an ending; and what is assumed not to happen."""
    options = _all_blocks(shift, q, w, steps, [1, *(4**i for i in range(1, 12) if 4**i <= early)])
    size, later = min(options, key=lambda option: option[1].times * option[1].variance)
    longest = min(steps, max(2 * size - 1, early + size - 1))
    last, unlikely = ending(shift, q, w, min(size, longest), longest, hidden=False)
    openings = Event(opening(shift, q, w, early), most(steps, w) + 1)
    return [later, openings, Event(last, 1)], 2 * UNLIKELY + unlikely


def _each_contribution(protocol: WalkSum | WalkDescent | WalkHistogram, profile: Profile) -> ProfileCurve:
    """As many independent gaps as u can have visits, the bound on their number chosen to suit δ.

    A limit on contributions does not count here: the *first* visits are the ones that carry data then, and their gaps are
    not independent of there being more. Leaving out what the later visits would cost is safe, counting fewer is not proved.
    """
    free: Any = protocol.replace(contributions=None)
    limits = {most_contributions(free, unlikely) for unlikely in (UNLIKELY, 1e-11, 1e-8)}
    return least([compose_events([Event(profile, count)], unlikely) for count, unlikely in sorted(limits)])


def most_contributions(
    protocol: WalkSum | WalkDescent | WalkHistogram, unlikely: float = UNLIKELY
) -> tuple[int, float]:
    """How often a user contributes at most, and a bound on the probability that it is more often."""
    tokens = getattr(protocol, "tokens", 1)
    count = most(protocol.steps * tokens, 1.0 / protocol.n, unlikely)
    if protocol.contributions is not None and protocol.contributions * tokens <= count:
        return protocol.contributions * tokens, 0.0
    return count, unlikely


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
    every_step_shown = isinstance(protocol, WalkDescent) or (
        isinstance(protocol, WalkHistogram) and protocol.sender == "hidden"
    )
    secret = "a user that holds the token learns neither who brought it nor who gets it next (an anonymous channel)"
    open_ = "a user sees who brings it the token and to whom it passes it, and nothing else of the path"
    return Guarantee(
        curve=curve,
        adjacency=Adjacency(adjacency),
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: {bounded}",
            "every step draws its user uniformly and secretly; all users follow the protocol; none but the observers collude",
            secret if protocol.sender == "hidden" else open_,
            "the number of the step is public, and so is the token after the last step",
            "what a user adds may depend on the step and the token it sees, not on how often it was visited before"
            if every_step_shown
            else "values are fixed before the first step and do not react to the token",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ"
            if not isinstance(protocol, WalkHistogram)
            else "responses are drawn from a perfect random source",
            "by symmetry the curve holds for every user outside the observers",
        ),
        references=REFERENCES,
    )
