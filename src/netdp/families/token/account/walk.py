"""What c colluding users learn about any other user from a token on a random walk over the complete graph.

The observers see when the token is theirs, its value then, and the released token. Sums, histograms and descents have several
bounds each, of which the least counts: pieces of the walk shown without their owners (`netdp.families.token.account.events`, and
`openings` where ends of stretches are known by name), the whole path told, and local DP. With a limit on contributions what
others add depends on the secret path, so only the bounds that tell the path are used.

Proofs: docs/proofs/token.md#secret-walk and #known-ends.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.events import (
    UNLIKELY,
    Event,
    Profile,
    Shift,
    bins,
    block,
    blocks,
    compose_events,
    ending,
    gap_mixture,
    gap_profile,
    gaussian,
    least,
    mixture,
    named_chances,
    opening,
    single_steps,
)
from netdp.families.token.account.grid import WALK_ON_A_GRID_REFERENCES as GRID_REFERENCES
from netdp.families.token.account.grid import on_the_grid, wire_assumptions
from netdp.families.token.account.openings import known_ends, known_responses, pieces, sizes
from netdp.families.token.account.path import IDEAL as _LAPLACE
from netdp.families.token.account.path import walk_bounds as laplace_walk
from netdp.families.token.account.rdp import REFERENCES as RENYI_REFERENCES
from netdp.families.token.account.rdp import walk_rdp
from netdp.families.token.account.responses import published
from netdp.families.token.account.ring import heap_profile
from netdp.families.token.account.weights import Chances, Walk, by_weight, chances_of
from netdp.families.token.walk import KNOWN_ENDS, SENDERS, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import FloatArray
from netdp.numerics.binomial import beyond, most, visits
from netdp.privacy.curve import Curve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve, composed
from netdp.protocols.grid import norm_order
from netdp.protocols.table import certified

Bound = Callable[[], ProfileCurve]

STATEMENTS = ("profile", "renyi")
"""What is said of a walk: δ(ε), or Rényi divergences by order."""

_OPENINGS = (4, 8, 16, 32)  # parts of n that an opening may be

_CELLS = 1 << 20

_FEW = 100  # users up to which telling the path of a histogram is tried, too

REFERENCES = (
    "netdp, docs/proofs/token.md#secret-walk: walks with a secret path.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
    "B. Balle, G. Barthe, M. Gaboardi. Privacy Amplification by Subsampling. NeurIPS 2018.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
    "netdp, docs/proofs/token.md#known-ends: known senders and receivers.",
)


def _remembering(
    bounds: Callable[[Any, int | Chances, str], list[Bound]],
) -> Callable[[Any, int | Chances, str], tuple[Bound, ...]]:
    """Bounds of the last few protocols are kept, and what they found: a search for σ ends with one that it has seen."""

    @functools.lru_cache(maxsize=8)
    def remembered(protocol: Any, colluders: int | Chances, adjacency: str) -> tuple[Bound, ...]:
        return tuple(functools.cache(bound) for bound in bounds(protocol, colluders, adjacency))

    return remembered


@certified.register
def _sum(
    protocol: WalkSum,
    observers: tuple[int, ...],
    *,
    adjacency: str = "replace",
    statement: str = "profile",
    progress: Any = None,
) -> Guarantee:
    said = _sum_assumptions(protocol, adjacency)
    if protocol.grid is not None:
        if _renyi(statement) or adjacency != Adjacency.REPLACE:
            raise Unsupported(
                f"a walk on a grid is accounted for as δ(ε) under 'replace', got statement={statement!r}, adjacency={adjacency!r}; "
                "leave these out, or leave grid=None"
            )
        real = protocol.in_real_numbers
        curve = on_the_grid(_each_target(real, observers, lambda who: sum_profile(real, who)), protocol)
        loss = _statement(protocol, observers, curve, adjacency, *said)
        return dataclasses.replace(loss, references=(GRID_REFERENCES[0], *loss.references, *GRID_REFERENCES[1:]))
    if _renyi(statement):
        return _renyi_statement(protocol, observers, adjacency, *said)
    curve = _each_target(protocol, observers, lambda who: sum_profile(protocol, who, adjacency))
    return _statement(protocol, observers, curve, adjacency, *said)


@certified.register
def _descent(
    protocol: WalkDescent,
    observers: tuple[int, ...],
    *,
    adjacency: str = "replace",
    statement: str = "profile",
    progress: Any = None,
) -> Guarantee:
    if protocol.grid is not None:
        from netdp.families.token.account.descent_grid import on_its_grid

        if _renyi(statement) or adjacency != Adjacency.REPLACE:
            raise Unsupported(
                f"a walk on a grid is accounted for as δ(ε) under 'replace', got statement={statement!r}, adjacency={adjacency!r}; "
                "leave these out, or leave grid=None"
            )
        if protocol.weights is not None:
            raise Unsupported(
                "weights on a grid: users drawn unequally are accounted for in real numbers only; leave one out"
            )
        return on_its_grid(protocol, lambda real: _descent(real, observers, progress=progress))
    if protocol.graph is not None:
        _no_renyi_on_graphs(statement)
        from netdp.families.token.account.graph_walk import descent_on_graph

        return descent_on_graph(protocol, observers, adjacency, progress)
    if _renyi(statement):
        return _renyi_statement(protocol, observers, adjacency, *_descent_assumptions(protocol))
    curve = _each_target(protocol, observers, lambda who: descent_profile(protocol, who, adjacency))
    return _statement(protocol, observers, curve, adjacency, *_descent_assumptions(protocol))


@certified.register
def _histogram(
    protocol: WalkHistogram,
    observers: tuple[int, ...],
    *,
    adjacency: str = "replace",
    statement: str = "profile",
    progress: Any = None,
) -> Guarantee:
    if adjacency != Adjacency.REPLACE:
        raise Unsupported(
            f"adjacency {adjacency!r}: a category has no zero, histograms are accounted for under 'replace'"
        )
    if protocol.graph is not None:
        _no_renyi_on_graphs(statement)
        from netdp.families.token.account.graph_walk import histogram_on_graph

        return histogram_on_graph(protocol, observers, progress)
    if _renyi(statement):
        return _renyi_statement(protocol, observers, adjacency, *_histogram_assumptions(protocol))
    curve = _each_target(protocol, observers, lambda who: histogram_profile(protocol, who))
    return _statement(protocol, observers, curve, adjacency, *_histogram_assumptions(protocol))


def _renyi(statement: str) -> bool:
    """Whether Rényi divergences are asked for instead of δ(ε)."""
    if statement not in STATEMENTS:
        raise InvalidValue(f"unknown statement {statement!r}; choose one of {', '.join(STATEMENTS)}")
    return statement == "renyi"


def _no_renyi_on_graphs(statement: str) -> None:
    if _renyi(statement):
        raise Unsupported(
            "Rényi divergences of a walk are stated on the complete graph: elsewhere the number of visits is bounded with a "
            "probability, which is left to δ. Leave statement out, or account for the path that was drawn (run.protocol)"
        )


def _renyi_statement(protocol: Walk, observers: tuple[int, ...], adjacency: str, *said: str) -> Guarantee:
    if protocol.weights is not None:
        raise Unsupported(
            "weights: Rényi divergences are stated for users that are all drawn alike; leave statement out"
        )
    q, w, shift = _rates(protocol, len(observers), adjacency)
    curve = walk_rdp(protocol, q, w, 1.0 / protocol.n, shift)
    loss = _statement(protocol, observers, curve, adjacency, *said)
    return dataclasses.replace(loss, references=(*RENYI_REFERENCES, *loss.references[1:]))


def _each_target(
    protocol: Walk,
    observers: tuple[int, ...],
    profile: Callable[[int | Chances], ProfileCurve],
) -> Curve:
    """One curve for everybody, or with weights one for every weight."""
    return profile(len(observers)) if protocol.weights is None else by_weight(protocol, observers, profile)


def sum_profile(protocol: WalkSum, colluders: int | Chances = 1, adjacency: str = "replace") -> ProfileCurve:
    """δ(ε) of `WalkSum` for any user against any `colluders` others.

    >>> p = WalkSum(100, steps=10_000, sigma=61.0)                    # local DP with 100 contributions: 0.673
    >>> round(float(sum_profile(p).epsilon(1e-6)), 3)
    0.071
    >>> hidden = WalkSum(100, steps=10_000, sigma=61.0, sender="hidden")
    >>> round(float(sum_profile(hidden).epsilon(1e-6)), 3)
    0.058
    """
    return least([bound() for bound in sum_bounds(protocol, colluders, adjacency)])


def _channels(protocol: Any) -> list[Any]:
    """The same walk on this channel and on all that show more, which cannot cost less: a bound for one of them is one here.

    Bounds of channels are of different kinds, and where channels hardly differ that of the better one may be the larger. Under
    a limit on contributions all are alike. Histograms with hidden senders assume less than others, that answers may react.
    """
    if protocol.contributions is not None:
        return [protocol]
    senders = SENDERS[SENDERS.index(protocol.sender) :]
    if isinstance(protocol, WalkHistogram) and protocol.sender == "hidden":
        senders = senders[:1]
    releases = ("anonymous", "named") if protocol.release == "anonymous" else ("named",)
    # who knows the sender of every stretch knows who made the last step, so both releases are alike there
    return [
        protocol.replace(sender=sender, release=release)
        for sender in senders
        for release in (releases if KNOWN_ENDS[sender] < max(KNOWN_ENDS.values()) else (protocol.release,))
    ]


def sum_bounds(protocol: WalkSum, colluders: int | Chances = 1, adjacency: str = "replace") -> list[Bound]:
    """The bounds of `sum_profile`, the one that is usually the least first; in real numbers."""
    if protocol.grid is not None:
        raise InvalidValue(
            f"these bounds are in real numbers, and this walk is on a grid of {protocol.grid:g}; netdp.account handles it"
        )
    own, told = list(_sum_bounds(protocol, colluders, adjacency)), 0 if protocol.law == "laplace" else 2
    others = [_sum_bounds(one, colluders, adjacency) for one in _channels(protocol)[1:]]
    # the last are those of `_path_told`, which are the same for all
    here, last = own[: len(own) - told], own[len(own) - told :]
    return [*here, *(bound for bounds in others for bound in bounds[: len(bounds) - told]), *last]


@_remembering
def _sum_bounds(protocol: WalkSum, colluders: int | Chances, adjacency: str) -> list[Bound]:
    q, w, shift = _rates(protocol, colluders, adjacency)
    steps, tokens = protocol.steps, protocol.tokens
    if protocol.law == "laplace":
        own = _own(protocol, colluders)
        each = functools.partial(each_contribution, protocol, own=own)
        return laplace_walk(protocol, q, w, shift, each, contributions_law(protocol, own))
    without_secrecy = list(_path_told(protocol, colluders, shift.near))
    if protocol.contributions is not None:
        return without_secrecy
    ends, at_release = known_ends(protocol)
    if ends:
        opened = opened_bound(shift, q, w, steps, tokens, ends, at_release)
        return [opened, *known_bounds(shift, q, w, steps, tokens, ends), *without_secrecy]
    return [*hidden_bounds(shift, q, w, steps, tokens, named=protocol.release == "named"), *without_secrecy]


def _path_told(protocol: WalkSum | WalkDescent, colluders: int | Chances, near: float) -> tuple[Bound, Bound]:
    """Two bounds that need no secrecy of the path: each contribution in the noise of the gap that follows it, and local DP."""

    def gaps() -> ProfileCurve:
        return each_contribution(protocol, gap_mixture(near, _met(protocol, colluders)), _own(protocol, colluders))

    def local() -> ProfileCurve:
        return local_profile(protocol, near, _own(protocol, colluders))

    return gaps, local


def descent_profile(protocol: WalkDescent, colluders: int | Chances = 1, adjacency: str = "replace") -> ProfileCurve:
    """δ(ε) of `WalkDescent` for any user against any `colluders` others: the least of three bounds."""
    return least([bound() for bound in descent_bounds(protocol, colluders, adjacency)])


def descent_bounds(protocol: WalkDescent, colluders: int | Chances = 1, adjacency: str = "replace") -> list[Bound]:
    """The bounds of `descent_profile`, the one that is usually the least first."""
    bounds = list(_descent_bounds(protocol, colluders, adjacency))
    if protocol.contributions is None:  # the first of each uses the secrecy of the path
        bounds[1:1] = [_descent_bounds(one, colluders, adjacency)[0] for one in _channels(protocol)[1:]]
    return bounds


@_remembering
def _descent_bounds(protocol: WalkDescent, colluders: int | Chances, adjacency: str) -> list[Bound]:
    q, w, shift = _rates(protocol, colluders, adjacency)

    def secret() -> ProfileCurve:
        ends, tokens = KNOWN_ENDS[protocol.sender], protocol.tokens
        if not ends:
            every = _every_step(shift, q, w, protocol.steps, named=protocol.release == "named")
            return compose_events([event.repeated(tokens) for event in every])
        # a step is a single one, or O's, and then the ends of the stretch that follows are seen; so are those of the first
        single = block(shift, q, 1)
        seen = mixture(shift.near * np.sqrt(np.arange(1, ends + 1)), np.array(named_chances(ends, q)))
        steps = Event(lambda eps: (1 - w) * single(eps) + w * seen(eps), protocol.steps * tokens)
        return compose_events([steps, Event(seen, tokens)])  # a named release is one of the ends

    iteration, local = _path_told(protocol, colluders, shift.near)
    bounds = [local]
    if protocol.expansion == 1:
        bounds.insert(0, iteration)
    if protocol.contributions is None:
        bounds.insert(0, secret)
    return bounds


def histogram_profile(protocol: WalkHistogram, colluders: int | Chances = 1) -> ProfileCurve:
    """δ(ε) of `WalkHistogram` for any user against any `colluders` others.

    With hidden senders the steps are independent draws from one law, so that histograms lose nothing against the ordered
    list, and for L ≥ 3 the bound of one step is attained when all others hold a third value. If the release is named, the
    last response is seen with its name. If ends of stretches are known, they hide in openings (`openings.known_responses`); among
    few users, or with a limit on contributions, the path is told, the last step's user included.
    """
    q, w, _ = _rates(protocol, colluders, "replace")
    if protocol.epsilon0 == 0:
        return ProfileCurve([0.0], [0.0])
    own = _own(protocol, colluders)
    found = [published(protocol, *contributions_law(protocol, own))]
    for one in _channels(protocol) if protocol.contributions is None else []:
        if one.sender == "hidden":
            found.append(sampled_responses(one, q, w, named=one.release == "named"))
        else:
            found.append(known_responses(one, q, w))
    if protocol.contributions is not None or (protocol.sender != "hidden" and protocol.n <= _FEW):
        chance = _met(protocol, colluders)
        covered: list[tuple[int, Profile]] = [
            (l, heap_profile(l - 1, 0, protocol.domain, protocol.gamma, protocol.response).delta)
            for l, _ in bins(1, math.ceil(3 / chance), 1.6)  # noqa: E741
        ]
        found.append(each_contribution(protocol, gap_profile(covered, chance), own))
    return least(found)


def sampled_responses(protocol: WalkHistogram, q: float, w: float, *, named: bool = False) -> ProfileCurve:
    """All steps shown without their owners: each is u's with probability q, and O's with probability w.

    `named`: but for the last step, whose owner is known.
    """
    grown = math.expm1(protocol.epsilon0)
    top = math.log1p(q * grown)
    height = (1 - w) * q * (1 - protocol.gamma) * (1 + 1e-12)  # whatever the response
    one = ProfileCurve([0.0, top], [height, 0.0])
    if not named:
        return one.self_compose(protocol.steps * protocol.tokens)
    # the losses of single steps fall on a grid of step `top`, as long as that has not too many cells
    last = ProfileCurve([0.0, protocol.epsilon0], [height, 0.0])
    tokens = protocol.tokens
    return composed([(one, (protocol.steps - 1) * tokens), (last, tokens)], max(top, protocol.epsilon0 / _CELLS))


def _rates(protocol: Walk, colluders: int | Chances, adjacency: str) -> tuple[float, float, Shift]:
    if protocol.network is not None:
        raise InvalidValue("these bounds are for the complete graph; netdp.account handles walks on others")
    if not isinstance(colluders, Chances) and not 1 <= colluders < protocol.n:
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
    chances = chances_of(protocol, colluders)
    if isinstance(colluders, Chances):
        return chances.inside, chances.watched, Shift(near, far)
    return 1.0 / (protocol.n - colluders), colluders / protocol.n, Shift(near, far)


def _own(protocol: Walk, colluders: int | Chances) -> float:
    """How likely a step is the target's."""
    return chances_of(protocol, colluders).own


def _met(protocol: Walk, colluders: int | Chances) -> float:
    """How likely a step is the target's or an observer's."""
    return chances_of(protocol, colluders).met if isinstance(colluders, Chances) else (colluders + 1) / protocol.n


def hidden_bounds(shift: Shift, q: float, w: float, steps: int, tokens: int = 1, *, named: bool = False) -> list[Bound]:
    """A sum with a secret path: steps shown one by one; blocks of the two sizes whose losses vary least in total.

    named : the release tells who made the last step.
    """
    sizes = [4**i for i in range(1, 12) if 4**i <= min(1 / (3 * q), steps / 8)]
    options = [(size, blocks(shift, q, w, steps, size)) for size in sizes]
    options.sort(key=lambda option: option[1].weight)

    def in_blocks_of(size: int, event: Event) -> Bound:
        def in_blocks() -> ProfileCurve:
            last, unlikely = ending(shift, q, w, size, 2 * size - 1, hidden=not named)
            pieces = [event.repeated(tokens), Event(last, tokens)]
            return compose_events(pieces, (UNLIKELY + unlikely) * tokens)

        return in_blocks

    def one_by_one() -> ProfileCurve:
        return compose_events([event.repeated(tokens) for event in _every_step(shift, q, w, steps, named=named)])

    return [*(in_blocks_of(size, event) for size, event in options[:2]), one_by_one]


def _every_step(shift: Shift, q: float, w: float, steps: int, *, named: bool) -> list[Event]:
    """Every step shown by itself, the last one with its user's name if the release tells it."""
    if not named:
        return [single_steps(shift, q, w, steps)]
    one = gaussian(shift.near)
    return [single_steps(shift, q, w, steps - 1), Event(lambda eps: (1 - w) * q * one(eps), 1)]


def opened_bound(shift: Shift, q: float, w: float, steps: int, tokens: int, known: int, at_release: int) -> Bound:
    """`known` ends of every stretch known, `at_release` of the last: openings if some are u's, else single steps (`openings`)."""
    size = sizes(q, at_release)[-1]  # shorter openings gain little, and only at a very small δ

    def cover(j: int, m: int) -> Profile:
        return gaussian(shift.near * (j / math.sqrt(m) if m else math.sqrt(j)))

    def opened() -> ProfileCurve:
        events, lost = pieces(cover, block(shift, q, 1), q, w, steps, size, known, at_release)
        return compose_events([event.repeated(tokens) for event in events], lost * tokens)

    return opened


def known_bounds(shift: Shift, q: float, w: float, steps: int, tokens: int, known: int) -> list[Bound]:
    """`known` ends of every stretch known: openings of several lengths, the two whose losses vary least in total."""
    lengths = sorted({max(known + 1, round(1 / (part * q))) for part in _OPENINGS})
    sizes = [1, *(4**i for i in range(1, 12) if 4**i <= lengths[-1])]

    @functools.cache
    def options() -> list[tuple[list[Event], float]]:  # when asked for: who searches for σ may need other bounds only
        later = [(size, blocks(shift, q, w, steps, size)) for size in sizes]
        found = [_pieces(shift, q, w, steps, early, known, later) for early in lengths]
        return sorted(found, key=lambda option: sum(event.weight for event in option[0]))

    def in_pieces_of(which: int) -> Bound:
        def in_pieces() -> ProfileCurve:
            events, extra = options()[which]
            return compose_events([event.repeated(tokens) for event in events], extra * tokens)

        return in_pieces

    return [in_pieces_of(which) for which in range(min(2, len(lengths)))]


def _pieces(
    shift: Shift, q: float, w: float, steps: int, early: int, known: int, options: list[tuple[int, Event]]
) -> tuple[list[Event], float]:
    """Openings of `early` steps, the best blocks that are no longer, an ending; and what is assumed not to happen."""
    fitting = [(size, event) for size, event in options if size <= early]
    size, later = min(fitting, key=lambda option: option[1].weight)
    longest = min(steps, max(2 * size - 1, early + size - 1))
    last, unlikely = ending(shift, q, w, min(size, longest), longest, hidden=False)
    openings = Event(opening(shift, q, w, early, known), most(steps, w, UNLIKELY) + 1)
    return [later, openings, Event(last, 1)], 2 * UNLIKELY + unlikely


def each_contribution(protocol: Walk, profile: Profile, own: float | None = None) -> ProfileCurve:
    """As many independent gaps as u can have visits, the bound on their number chosen to suit δ.

    A limit on contributions does not count here: the *first* visits are the ones that carry data then, and their gaps are
    not independent of there being more. Leaving out what the later visits would cost is safe, counting fewer is not proved.
    """
    free: Any = protocol.replace(contributions=None)
    limits = {most_contributions(free, unlikely, own) for unlikely in (UNLIKELY, 1e-11, 1e-8)}
    return least([compose_events([Event(profile, count)], unlikely) for count, unlikely in sorted(limits)])


def most_contributions(protocol: Walk, unlikely: float = UNLIKELY, own: float | None = None) -> tuple[int, float]:
    """How often a user contributes at most, and a bound on the probability that it is more often.

    own : how likely a step is the user's; by default as for the one who is drawn most often.
    """
    tokens = getattr(protocol, "tokens", 1)
    count = most(protocol.steps * tokens, _most_drawn(protocol) if own is None else own, unlikely)
    if protocol.contributions is not None and protocol.contributions * tokens <= count:
        return protocol.contributions * tokens, 0.0
    return max(count, 1), unlikely


def _most_drawn(protocol: Walk) -> float:
    return 1.0 / protocol.n if protocol.weights is None else max(protocol.weights)


def local_profile(protocol: WalkSum | WalkDescent, mu: float, own: float | None = None) -> ProfileCurve:
    """Local DP: every contribution of u shown with its own noise, their number too (its law does not depend on data)."""
    k, weights, unlikely = contributions_law(protocol, own)
    return compose_events([Event(mixture(np.sqrt(k) * mu, weights), 1)], unlikely)


def contributions_law(protocol: Walk, own: float | None = None) -> tuple[FloatArray, FloatArray, float]:
    """How often a user contributes, k ≥ 1, with which probability; and that of more often, which is left to δ."""
    chance = _most_drawn(protocol) if own is None else own
    count, unlikely = most_contributions(protocol, own=chance)
    steps = protocol.steps * getattr(protocol, "tokens", 1)
    k, weights = visits(steps, chance, 1)
    if unlikely:  # what `visits` does not list singly is left to δ as well
        return k[k <= count], weights[k <= count], unlikely + float(weights[-1])
    # a cap: whoever is visited more often contributes so often
    reached = beyond(count - 1, steps, chance)
    return np.append(k[k < count], float(count)), np.append(weights[k < count], reached), 0.0


FIXED = (
    "values are fixed before the first step, one for every user and step (the number of the step is public), and do not react "
    "to the token"
)

_VISITS = "what a user adds does not depend on how often it, or anybody, was visited"

#: For protocols of several tokens.
SEPARATE = "the tokens walk independently of each other: no user chooses where one goes by what it knows of another"

_GAUSSIAN = "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ"

_CHANNELS = {
    "hidden": "a user that holds the token learns neither who brought it nor who gets it next: the network itself draws the "
    "next holder (a mix network that delivers to a random user)",
    "receiver-known": "a user that holds the token draws who gets it next, and does not learn who brought it: a channel that "
    "hides the sender from the receiver",
    "known": "a user sees who brings it the token and to whom it passes it, and nothing else of the path: plain connections",
}

_RELEASED = {
    "named": "the last holder publishes the token under its own name: all know who made the last step",
    "anonymous": "nobody learns who made the last step: the last holder publishes the token through a channel that hides the "
    "sender, or the network itself publishes it",
}


def _sum_assumptions(protocol: WalkSum, adjacency: str) -> tuple[str, ...]:
    """With a limit on contributions the bounds tell the path: then only u's own two values count, and visits may."""
    size, order = protocol.sensitivity, norm_order(protocol)
    noise: tuple[str, ...] = (_LAPLACE if protocol.law == "laplace" else _GAUSSIAN,)
    if protocol.grid is not None:
        noise = wire_assumptions(protocol)
    zeroed = adjacency == Adjacency.ZERO_OUT
    separate = (SEPARATE,) if protocol.tokens > 1 else ()
    if protocol.contributions is not None:
        own = (
            f"has an L{order} norm of at most {size / 2:g}"
            if zeroed
            else f"differs by at most {size:g} in L{order} norm between its data"
        )
        return f"every contribution is bounded: what one user adds {own}", FIXED, *separate, *noise
    public = f"in the ball of radius {size / 2:g} around 0" if zeroed else f"in one public set of diameter {size:g}"
    return (
        f"every contribution is bounded: the values of all users at one step, whatever their data, lie {public} (L{order} "
        "norm); that one user's own two values are close is not enough",
        FIXED,
        _VISITS,
        *separate,
        *noise,
    )


def _descent_assumptions(protocol: WalkDescent) -> tuple[str, ...]:
    """What the bounds in `descent_bounds` need: the secrecy of the path, iteration, or local DP only."""
    iteration = protocol.expansion == 1
    if protocol.contributions is None:
        reacts = "the step and the token that its user holds, not on how often it, or anybody, was visited"
    elif iteration:
        reacts = "the step, on the token that its user holds and on how often users were visited, on no earlier token"
    else:
        reacts = "everything that its user has seen"
    steps = (
        "θ ↦ θ − η·g_u(θ), clipping and projection included, does not increase distances, for every user u; used by the "
        "bound by iteration only. netdp.learn.train_walk checks it for logistic rows clipped one by one; for anything else "
        "it is the caller's to see to",
    )
    return (
        f"every contribution is bounded: the gradients of all users are clipped to norm {protocol.clip:g} before the noise "
        "is added",
        f"a gradient may depend on {reacts}",
        *(steps if iteration else ()),
        "the starting model does not depend on anybody's data",
        *((SEPARATE,) if protocol.tokens > 1 else ()),
        _GAUSSIAN,
    )


def _histogram_assumptions(protocol: WalkHistogram) -> tuple[str, ...]:
    """Steps shown one by one let values react; a response that hides among others' needs them fixed."""
    shown = protocol.contributions is None and not KNOWN_ENDS[protocol.sender]
    reacts = (
        "what a user adds may depend on the step and the token it sees, not on how often it, or anybody, was visited"
    )
    return (
        f"every contribution is bounded: labels in 0 … {protocol.domain - 1}",
        reacts if shown else FIXED,
        *(() if shown or protocol.contributions is not None else (_VISITS,)),
        *((SEPARATE,) if protocol.tokens > 1 else ()),
        "responses are drawn from a perfect random source",
    )


def _statement(
    protocol: Walk,
    observers: tuple[int, ...],
    curve: Curve,
    adjacency: str,
    bounded: str,
    *particular: str,
) -> Guarantee:
    assert protocol.release is not None
    limit = protocol.contributions
    drawn = "uniformly" if protocol.weights is None else "by the public weights, independently of everything"
    return Guarantee(
        curve=curve,
        adjacency=Adjacency(adjacency),
        claim=Claim.UPPER,
        assumptions=(
            bounded,
            f"every step, the first included, draws its user {drawn} and secretly; all users follow the protocol; none but "
            "the observers collude",
            _CHANNELS[protocol.sender],
            _RELEASED[protocol.release],
            "the number of the step is public, and so is the token after the last step",
            *(() if limit is None else (f"a user that has contributed {limit} times per token adds noise only",)),
            *particular,
            "by symmetry the curve holds for every user outside the observers"
            if protocol.weights is None
            else "every user has the curve of its weight, which may be rounded up",
        ),
        references=REFERENCES,
    )
