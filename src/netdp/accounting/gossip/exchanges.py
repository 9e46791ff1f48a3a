"""Randomized gossip with fresh noise: what a run has revealed (proofs: docs/guarantees.md#dithered-exchanges).

In real numbers and on a grid. After a run it is known who exchanged with whom (`ExchangeLogs`), exchanges that were torn or
answered late included. In real numbers all that is seen is then y = A z⁰ + τ F g, z⁰ = x + ση the noisy values, g the fresh
noises (`netdp.views.exchanges`), and factor_u = a_uᵀ(AAᵀ + (τ/σ)²FFᵀ)⁻¹a_u, the loss of a linear-Gaussian view. The matrix
is never formed: [A F·τ/σ] is reduced to a triangle by QR, as for synchronous gossip (`exact`), and the margin is added in
the same way.

**Theorem** (on a grid; unit: one step). Let the hidden parties send M states in all, L of them with fresh noise, and let
l_j be the number of late answers that the sender of the j-th of these has added since its last send. For any values, all
that they send is within

    TV = √(d·Σ_j(1 + l_j)²)/√(2πV₁)  +  d·((M−L)/(24V₀) + L/(24V₁))  +  4dM·(e^{−2¹²¹/V} + e^{−128})

in total variation of the rounded ideal in real numbers, V a bound on the variance of the noise in any state (`course_of`).

**Proof.** As for synchronous gossip (`dithered`), with one kernel per send instead of one per round. In the ideal, party p
has sent z and now holds z + Σ_i(z′_i − z_i)/2 over the exchanges i heard since, z_i what it had sent in them; then it adds
√V₁·g and sends. Let H do so with everything rounded: y = ⌊z + ½⌋ for all that is sent, and the differences shared out in
whole numbers. Given the same past the two means differ per coordinate by at most 1 if one answer came in time (half of two
roundings of at most ½, and ½ of the sharing out), by at most 1 more for every late answer (again two halves of ½, and ½),
and by ½ if none came. So kernel j is a Gaussian shift of μ_j = √d(1 + l_j)/√V₁; adaptive compositions of Gaussian shifts
are no further apart than one with μ² = Σμ_j² (Dong, Roth, Su 2022), whose total variation is 2Φ(μ/2) − 1 ≤ μ/√(2π). What
observers send may be any function of what they have received, for it enters both processes alike. H, rounded, is what runs,
but for rounded Gaussians instead of discrete ones, 1/(24V) each. A run sends no state beyond 2⁶². A state is a mean of
others, or with late answers a combination whose coefficients are followed here (refused above 2): values make up at most
2⁶¹ of it, rounding next to nothing, and the noise exceeds 2⁶¹ with probability at most 2e^{−2¹²²/2V}; so does a single
draw. Peers send and take no state beyond a tighter limit, twice the largest value and 16 deviations of all noise
(`netdp.protocols.exchange.largest_state`): 2e^{−128}. ∎

**What follows.** δ(ε) ≤ δ_ideal(ε) + (1 + e^ε)·TV, as for synchronous gossip, and local DP of one discrete Gaussian is a
bound whatever happens: the least counts. Without fresh noise nothing absorbs the rounding, and on a grid local DP is all
that is claimed. A party whose value reached no observer along any path in time loses nothing at all.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import linalg

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import probability
from netdp.privacy import Adjacency, Claim, Guarantee, SharedCurve
from netdp.protocols import RandomizedGossip
from netdp.protocols.gossip import MOST_STEPS
from netdp.protocols.grid import power_below, squared_steps
from netdp.views import ExchangeLogs, ExchangeView

from .dithered import OUT_OF_REACH, grid_curve
from .exact import EXACT_BELOW, Factors
from .statements import certified_statement

REFERENCES = (
    "netdp, docs/guarantees.md#dithered-exchanges: randomized gossip with fresh noise, in real numbers and on a grid.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)
_MOST_ENTRIES = 60_000_000
"""Of [A F]: half a gigabyte."""


def factors(protocol: RandomizedGossip, view: ExchangeView) -> Factors:
    """The factors in real numbers of a run with these logs; 1 for everybody reached where floating point cannot tell.

    >>> from netdp import graphs
    >>> from netdp.views import ExchangeLogs, ExchangeView
    >>> edges = np.array([[0, 1], [1, 2], [0, 1]])
    >>> protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=1.0, refresh=2.0)          # τ = σ
    >>> factors(protocol, ExchangeView(ExchangeLogs.of_edges(3, edges), (0,))).values.round(4).tolist()
    [nan, 1.0, 0.1667]
    """
    n, count = view.logs.n, len(view.seen)
    everything = np.where(view.reached, 1.0, 0.0)
    everything[~view.hidden] = np.nan
    if count == 0:
        return Factors(everything, 0.0, Claim.EXACT, 0)
    if protocol.refresh == 0:
        return Factors(
            everything, 0.0, Claim.UPPER, count, ("no fresh noise: the loss of first messages is the bound",)
        )
    later = len(view.fresh)
    if (n + later) * count > _MOST_ENTRIES:
        note = f"{count} messages seen with {later} fresh noises are too many to follow: the loss of first messages is the bound"
        return Factors(everything, 0.0, Claim.UPPER, count, (note,))
    tau = math.sqrt(protocol.refresh_variance) / protocol.sigma * (1 - 4 * UNIT)
    stacked = np.vstack([view.values[view.hidden], tau * view.fresh])
    triangle = np.asarray(linalg.qr(stacked, mode="r", check_finite=False, overwrite_a=True)[0][:count])
    reciprocal = linalg.lapack.dtrcon(triangle)[0] if len(triangle) == count else 0.0
    margin = 32.0 * (count + n) * UNIT / reciprocal if reciprocal > 0 else np.inf
    if not 4 * margin * (1 + margin) < 0.1:
        note = "fresh noise too weak to resolve in floating point: the loss of first messages is the bound"
        return Factors(everything, 0.0, Claim.UPPER, count, (note,))
    whitened = linalg.solve_triangular(triangle, view.values.T, trans="T", check_finite=False)
    roots = np.sqrt(np.einsum("ij,ij->j", whitened, whitened))
    upper = np.where(view.reached, np.minimum((roots * (1 + margin) + margin) ** 2, 1.0), 0.0)
    upper[~view.hidden] = np.nan
    slack = float(4 * margin * (1 + margin))
    return Factors(upper, slack, Claim.EXACT if slack <= EXACT_BELOW else Claim.UPPER, count)


@dataclass(frozen=True)
class Course:
    """What the theorem asks of a run: sends of the hidden, those with fresh noise, and Σ(1 + l_j)² over the latter."""

    sends: int
    later: int
    squares: int
    weight: float = 1.0
    """No state has larger coefficients of values, in sum; it is 1 where no answer was late."""


def course_of(view: ExchangeView) -> Course:
    """Follow the deeds of all parties; who left no log is taken to hold no more than twice what means of states hold.

    The same weights bound the noise: at weight w its variance is at most w²(V₀ + MV₁) after M sends, for a send adds V₁, a mean
    is no larger than the larger of two, and w²V₀ + V₁ ≤ w²(V₀ + V₁).
    """
    events, index = view.logs.course[0], view.logs.numbers
    weight, since, held = dict[int, float](), dict[int, int](), list[float]()
    sends = later = squares = 0
    for event in events:
        p = event.party
        if event.sends is not None:
            if view.hidden[p]:
                sends += 1
                later += not event.first
                squares += 0 if event.first else (1 + since.get(p, 0)) ** 2
            since[p] = 0
            held.append(weight.setdefault(p, 1.0))
        if event.hears is not None and event.answers is not None:
            other = held[index[event.hears]] if event.hears in index else 2.0
            if event.late:
                since[p] += 1
                weight[p] += (other + held[index[event.answers]]) / 2
            else:
                weight[p] = max(weight[p], other)
    return Course(sends, later, squares, max(weight.values(), default=1.0))


def transcript_distance(protocol: RandomizedGossip, course: Course) -> float:
    """TV of the theorem; inf without refresh, or where late answers let states grow too far."""
    if course.later and not protocol.fresh_variance:
        return math.inf
    if course.weight > 2:
        return math.inf
    return _distance(protocol, course, protocol.start_variance, protocol.fresh_variance)


def _distance(protocol: RandomizedGossip, course: Course, start: int, fresh: int) -> float:
    d = protocol.dimension
    variance = course.weight**2 * (start + 2 * protocol.steps * fresh)
    absorbed = math.sqrt(d * course.squares / (2 * math.pi * fresh)) if course.later else 0.0
    drawn = d / 24 * ((course.sends - course.later) / start + (course.later / fresh if course.later else 0.0))
    lost = 4 * d * course.sends * (math.exp(-(2.0**121) / variance) + math.exp(-128.0))
    return (absorbed + drawn + lost) * (1 + 1e-12)


def loss_of_exchanges(protocol: RandomizedGossip, observers: tuple[int, ...], logs: ExchangeLogs) -> Guarantee:
    """What colluding observers learned about every other party in a run with these logs."""
    _check(protocol, logs)
    view = ExchangeView(logs, observers)
    found = factors(protocol, view)
    notes = (_EDGES, _LOGS, *found.notes)
    if unknown := [u for u in logs.missing if u not in observers]:
        # of what they sent themselves nothing is known: it follows from their first noisy values, and no more is said
        values = found.values.copy()
        values[unknown] = 1.0
        found = dataclasses.replace(found, values=values, claim=Claim.UPPER)
        notes += (
            f"{len(unknown)} parties left no log ({', '.join(map(str, unknown[:6]))}{'…' if len(unknown) > 6 else ''}): they are "
            "counted among the observers, which can only raise the figure; of themselves the loss of first messages is stated",
        )
    if logs.torn:
        notes += (f"{len(logs.torn)} exchanges were torn: one end averaged, the other did not; that is in the figure",)
    if protocol.grid is None:
        return certified_statement(protocol, found.values, observers, found.claim, found.slack, notes)
    apart = transcript_distance(protocol, course_of(view))
    factor = np.where(view.reached | ~view.hidden, found.values, OUT_OF_REACH)
    return stated_on_a_grid(protocol, factor, apart, notes)


_EDGES = "who exchanges with whom, and when, does not depend on the values, and is known to the observers"
_LOGS = (
    "the edges or logs given are those of the run: every log is true, in its party's own order, and holds all that the party "
    "sent and added"
)


def stated_on_a_grid(
    protocol: RandomizedGossip, factor: FloatArray, apart: float, notes: tuple[str, ...] = ()
) -> Guarantee:
    """The loss on the grid whose ideal in real numbers has these factors; nan at observers, −1 for parties out of reach."""
    far, n = factor == OUT_OF_REACH, protocol.n
    if math.isinf(apart):
        factor = np.where(far | np.isnan(factor), factor, 1.0)
    kinds, which = np.unique(factor, return_inverse=True)  # nan, if there is one, comes last
    curve = grid_curve(protocol, kinds[~np.isnan(kinds)], apart, n)
    return Guarantee(
        curve=SharedCurve(curve, np.where(np.isnan(factor), -1, which.reshape(n))),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*grid_assumptions(protocol, apart, far=bool(far.any())), *notes),
        references=REFERENCES,
        factor=np.where(far, 0.0, factor),
    )


def before_the_run(protocol: RandomizedGossip, observers: tuple[int, ...] = ()) -> Guarantee:
    """What is promised on a grid before the edges are known: local DP of everybody's first value, whatever happens."""
    factor = np.ones(protocol.n)
    factor[list(observers)] = np.nan
    note = (
        "before a run nobody knows who will exchange with whom: the promise is local DP of the first noisy value, which holds in "
        "any order, after any loss and against malice; what single parties learned is stated after the run, "
        "account(protocol, observers, transcript=…)",
    )
    return stated_on_a_grid(protocol, factor, math.inf, note)


def grid_assumptions(protocol: RandomizedGossip, apart: float, *, far: bool) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    said_of = [
        f"two values of one party have {coordinates} and differ by at most {protocol.sensitivity:g} in L2 norm (clip before "
        f"rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        "graph, grid and noise levels are public and chosen without regard to the values",
        "values are fixed before the first send and do not react to messages",
        f"the initial noise is a discrete Gaussian of parameter {protocol.start_variance} squared grid steps, drawn exactly, from "
        "a cryptographic source; a simulation with NumPy's generators protects nobody",
    ]
    honest = "all parties follow the protocol, and messages are readable by sender and receiver alone"
    if math.isinf(apart):
        if protocol.refresh == 0:
            said_of.append(
                "no refresh: on a grid only local DP of the first noisy value is claimed, whatever the others do"
            )
        if far:
            said_of.append(f"parties whose value reached no observer reveal nothing as long as {honest}")
        return tuple(said_of)
    return (
        *said_of,
        f"{honest}; the observers pool their own data, noise and all they receive",
        "every party keeps its final estimate; if party p publishes it, count p among the observers",
        f"fresh noise before every send of a party but its first is a discrete Gaussian of parameter {protocol.fresh_variance} "
        "squared grid steps, drawn in the same way; the two ends of an exchange share their sum out in whole numbers",
        f"what is sent is within {apart:.2g} in total variation of the rounded ideal in real numbers: (1 + e^ε) times that is "
        "in δ; the factor is that of the ideal",
    )


def wire_grid(protocol: RandomizedGossip, delta: float, *, epsilon: float = 10.0) -> float:
    """A grid to run this protocol on: the largest power of two that adds less than delta/1000 to δ at ε = 10.

    It is also no coarser than Δ/(1024√d), so that rounding a value adds next to nothing to Δ, and no finer than 64-bit states
    allow. Without refresh only the grid's part in local DP matters, a millionth of σ.

    >>> from netdp import graphs
    >>> p = RandomizedGossip(graphs.hypercube(4), steps=16 * 20, sigma=4.0, refresh=1.0)
    >>> wire_grid(p, 1e-6) == 2.0**-49
    True
    """
    allowed = probability("delta", delta) / 1000
    step = power_below(min(protocol.sigma / 16, protocol.sensitivity / (1024 * math.sqrt(protocol.dimension))))
    if protocol.refresh == 0:
        return min(step, power_below(protocol.sigma / 2**20))
    square, sends = Fraction(protocol.sigma) ** 2, 2 * protocol.steps
    again = Fraction(protocol.refresh) * square * protocol.n / sends
    while True:
        start, fresh = squared_steps(square, step), squared_steps(again, step)
        course = Course(sends, max(sends - protocol.n, 0), sends)
        if (1 + math.exp(epsilon)) * _distance(protocol, course, start, fresh) <= allowed:
            return step
        finer = step / 2
        noise = squared_steps(square, finer) + sends * squared_steps(again, finer)
        if 64 * noise > MOST_STEPS**2 or protocol.sensitivity / finer > MOST_STEPS // 4:
            return step
        step = finer


def _check(protocol: RandomizedGossip, logs: ExchangeLogs) -> None:
    if logs.n != protocol.n:
        raise InvalidValue(f"the logs are of {logs.n} parties, the protocol has {protocol.n}")
    sends = 0
    for u, log in logs.deeds.items():
        near = set(protocol.graph.neighbors(u).tolist())
        for deed in log:
            sends += deed.what != "heard"
            if deed.other not in near:
                raise InvalidValue(
                    f"party {u} exchanged with {deed.other}, which is no neighbour in {protocol.graph!r}"
                )
    if sends > 2 * protocol.steps:
        raise InvalidValue(f"the logs hold {sends} sends, more than the two of each of {protocol.steps} steps")
