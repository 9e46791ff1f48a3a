"""Gossip on a grid: what may be claimed of a running system, whose parties send whole numbers of grid steps.

Local DP of the first noisy value survives any rounding. Amplified claims rest on the linear structure of what is seen, which
rounding breaks: fresh noise absorbs the rounding errors, and all that is sent is within `transcript_distance` of an ideal in real
numbers, whose loss is known. Without refresh local DP is all that is claimed. Gossip in rounds: proved in
docs/proofs/gossip.md#dithered-gossip; in exchanges, which are known after a run: docs/proofs/gossip.md#dithered-exchanges.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from netdp.errors import InvalidValue
from netdp.families.gossip.account.exact import EXACT_BELOW, Factors, exact_loss, factors
from netdp.families.gossip.account.statements import certified_statement
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
from netdp.families.gossip.logs import ExchangeLogs, ExchangeView
from netdp.families.gossip.protocol import MOST_STEPS, Gossip, NoisyStates, RandomizedGossip
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.families.gossip.views import GossipView, SequenceView, hidden_senders
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, moved, rounded_delta, shift_delta, sum_distance
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.numerics.checks import probability
from netdp.numerics.kernels import csr_times_block
from netdp.privacy.curves import SharedCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.profile import PerCurve, ProfileCurve
from netdp.protocols.alternatives import curator, gaussian_curator, gaussian_local, local, said
from netdp.protocols.grid import power_below, squared_steps
from netdp.protocols.table import certified, in_real_numbers
from netdp.protocols.views import observer_set

REFERENCES_OF_ROUNDS = (
    "netdp, docs/proofs/gossip.md#dithered-gossip: gossip on a grid.",
    "netdp, docs/proofs/gossip.md#refresh: the loss in real numbers.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)

REFERENCES_OF_ACCELERATED = (
    "netdp, docs/proofs/gossip.md#dithered-acceleration: accelerated gossip on a grid.",
    *REFERENCES_OF_ROUNDS[1:],
)

REFERENCES_OF_CHANGING = (
    "netdp, docs/proofs/gossip.md#dithered-changing: changing graphs with fresh noise, in real numbers and on a grid.",
    *REFERENCES_OF_ROUNDS[1:],
)

REFERENCES_OF_EXCHANGES = (
    "netdp, docs/proofs/gossip.md#dithered-exchanges: randomized gossip with fresh noise, in real numbers and on a grid.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS, 2020.",
)

OUT_OF_REACH = -1.0
"""Stands for the factor of a party whose value cannot have reached the observers."""

_LEVELS = 40  # losses for which the ε of the table are laid out

_TABLE_ENTRIES = 20_000_000  # of the table of all parties

_VIEW_ENTRIES = 60_000_000
"""Of [A F]: half a gigabyte."""

Rounds = Gossip | VaryingGossip
"""Gossip in which all send at once."""

_EDGES = "who exchanges with whom, and when, does not depend on the values, and is known to the observers"

_LOGS = (
    "the edges or logs given are those of the run: every log is true, in its party's own order, and holds all that the party "
    "sent and added"
)


# ── the curve of a factor ─────────────────────────────────────────────────────────────────────────────────────────────


def first_value_delta(protocol: NoisyStates, epsilon: FloatArray, parties: int = 1) -> FloatArray:
    """δ of one number (or vector) with the initial noise of so many parties, moved by `distance`: local DP if it is one."""
    variance = parties * protocol.start_variance
    apart = protocol.dimension * sum_distance(min(protocol.start_variance, 2**40), parties)  # falls with the variance
    if protocol.dimension == 1 and variance <= SUMMED_UP_TO:
        return moved(partial(shift_delta, variance, int(protocol.distance)), apart, epsilon)
    return moved(partial(rounded_delta, variance, protocol.distance, protocol.dimension), apart, epsilon)


def _mu(protocol: NoisyStates, factor: FloatArray) -> FloatArray:
    return np.sqrt(factor) * (protocol.distance * protocol.step / protocol.sigma) * (1 + 8 * UNIT)


def grid_curve(protocol: NoisyStates, kinds: FloatArray, apart: float, n: int) -> ProfileCurve:
    """One row for every factor: the least of the amplified bound and of local DP."""
    mu = _mu(protocol, np.maximum(kinds, 0.0))
    points = _points(np.append(mu[mu > 0], _mu(protocol, np.ones(1))), n)
    formula = GridFormula(protocol, tuple(kinds.tolist()), tuple(mu.tolist()), apart)
    alone = first_value_delta(protocol, points)
    each = np.full(len(points), 0)
    rows = [np.minimum.accumulate(formula.least(each + row, points, alone)) for row in range(len(kinds))]
    return ProfileCurve(points, np.stack(rows), formula)


@dataclass(frozen=True)
class GridFormula:
    """δ at any ε for every kind of factor, a formula of `ProfileCurve`. The amplified bound counts from its least value on.

    δ_μ(ε) + (1 + e^ε)·d falls until e^ε·Φ(−μ/2 − ε/μ) = e^ε·d, for the derivative of δ_μ is −e^ε·Φ(−μ/2 − ε/μ): up to there the
    formula itself is taken, and beyond it its least value, which also holds.
    """

    protocol: NoisyStates
    kinds: tuple[float, ...]
    mu: tuple[float, ...]
    apart: float

    def __call__(self, numbers: IntArray, epsilon: FloatArray) -> FloatArray:
        return self.least(numbers, epsilon, first_value_delta(self.protocol, epsilon))

    def least(self, numbers: IntArray, epsilon: FloatArray, alone: FloatArray) -> FloatArray:
        """The least of the two bounds, local DP being at hand."""
        kinds, mu = np.asarray(self.kinds)[numbers], np.asarray(self.mu)[numbers]
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.maximum(-mu * (float(special.ndtri(min(self.apart, 0.5))) + mu / 2), 0.0)
        at = np.where(mu > 0, np.minimum(epsilon, np.nan_to_num(least, nan=0.0)), 0.0)
        with np.errstate(over="ignore"):
            added = (1 + np.exp(at)) * self.apart * (1 + 8 * UNIT)
        amplified = added + np.asarray(gaussian_delta(mu, at))
        return np.where(kinds == OUT_OF_REACH, 0.0, np.minimum(amplified, alone))


def _points(mu: FloatArray, n: int) -> FloatArray:
    """The ε of the table: laid out for some of the losses, from the least to the largest."""
    levels = np.unique(mu)
    if len(levels) > _LEVELS:
        levels = levels[np.unique(np.linspace(0, len(levels) - 1, _LEVELS).round().astype(np.int64))]
    each = max(24, min(1200, 3_000 // len(levels), _TABLE_ENTRIES // (n * len(levels))))
    parts = [one * np.linspace(0.0, one / 2 + end, each) for one in levels.tolist() for end in (8.0, 36.0)]
    return np.unique(np.concatenate(parts))


# ── how far what is sent is from the ideal in real numbers ────────────────────────────────────────────────────────────


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


def transcript_distance(protocol: Rounds | RandomizedGossip, course: Course | None = None) -> float:
    """TV of the theorem: how far all that is sent is from the rounded ideal in real numbers.

    It is infinite without refresh, and where late answers let states grow too far. Randomized gossip needs the course of a run.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.hypercube(6), rounds=12, sigma=4.0, refresh=1.0, grid=2.0**-50)
    >>> transcript_distance(p) < 1e-13, transcript_distance(p.replace(refresh=0.0))
    (True, inf)
    """
    return _distance(protocol, course, protocol.start_variance, protocol.fresh_variance)


def _distance(protocol: Rounds | RandomizedGossip, course: Course | None, start: int, fresh: int) -> float:
    d = protocol.dimension
    if isinstance(protocol, Rounds):
        numbers, later = protocol.n * d, protocol.rounds - 1
        if later and not fresh:
            return math.inf
        absorbed = _means_apart(protocol) * math.sqrt(numbers / (2 * math.pi * fresh)) if later else 0.0
        drawn = numbers / 24 * (1 / start + (later / fresh if later else 0.0))
        noise = (start + later * fresh) * protocol.growth**2
        lost = 4 * numbers * protocol.rounds * math.exp(-(2.0 ** (123 if protocol.chebyshev is None else 121)) / noise)
        return (absorbed + drawn + lost) * (1 + 1e-12)
    if course is None:
        raise InvalidValue("how far randomized gossip is from its ideal depends on the run: pass course_of(view)")
    if (course.later and not fresh) or course.weight > 2:
        return math.inf
    variance = course.weight**2 * (start + 2 * protocol.steps * fresh)
    absorbed = math.sqrt(d * course.squares / (2 * math.pi * fresh)) if course.later else 0.0
    drawn = d / 24 * ((course.sends - course.later) / start + (course.later / fresh if course.later else 0.0))
    lost = 4 * d * course.sends * (math.exp(-(2.0**121) / variance) + math.exp(-128.0))
    return (absorbed + drawn + lost) * (1 + 1e-12)


def _means_apart(protocol: Rounds) -> float:
    """Σ_t C_t over the T − 1 kernels with fresh noise, in units of √(nd) steps: T − 1, and with acceleration

        C_1 = 1,   C_t = (3γ − 1)/2 + (γ − 1)·C_{t−1}.

    >>> from netdp import graphs
    >>> p = Gossip(graphs.ring(8), rounds=4, sigma=4.0, refresh=1.0, grid=2.0**-20)
    >>> _means_apart(p), round(_means_apart(p.replace(accelerated=True, gap=1.0)), 4)         # γ = 1.0718
    (3.0, 3.3719)
    """
    gamma = protocol.chebyshev
    if gamma is None:
        return float(protocol.rounds - 1)
    total, apart = 0.0, 1.0
    for _ in range(protocol.rounds - 1):
        total += apart
        apart = (3 * gamma - 1) / 2 + (gamma - 1) * apart
    return total


def wire_grid(protocol: Rounds | RandomizedGossip, delta: float) -> float:
    """A grid to run this protocol on: the largest power of two that adds less than delta/1000 to δ at ε = 10.

    It is also no coarser than Δ/(1024√d), so that rounding a value adds next to nothing to Δ, and no finer than 64-bit states
    allow: then it may add more to δ, which the certified loss counts in any case. Without refresh only the grid's part in local DP
    matters, a millionth of σ.

    >>> from netdp import graphs
    >>> wire_grid(Gossip(graphs.hypercube(6), rounds=12, sigma=4.0, refresh=1.0), 1e-6) == 2.0**-50
    True
    >>> wire_grid(RandomizedGossip(graphs.hypercube(4), steps=16 * 20, sigma=4.0, refresh=1.0), 1e-6) == 2.0**-49
    True
    """
    course = None
    if isinstance(protocol, Rounds):
        later, share, room = protocol.rounds - 1, Fraction(1, protocol.rounds), protocol.room
    else:
        later = sends = 2 * protocol.steps
        share, room = Fraction(protocol.n, sends), 64
        course = Course(sends, max(sends - protocol.n, 0), sends)
    allowed = probability("delta", delta) / 1000
    step = power_below(min(protocol.sigma / 16, protocol.sensitivity / (1024 * math.sqrt(protocol.dimension))))
    if protocol.refresh == 0 and later:
        return min(step, power_below(protocol.sigma / 2**20))
    square = Fraction(protocol.sigma) ** 2
    again = Fraction(protocol.refresh) * square * share
    while True:
        start, fresh = squared_steps(square, step), squared_steps(again, step)
        if (1 + math.exp(10.0)) * _distance(protocol, course, start, fresh) <= allowed:
            return step
        finer = step / 2
        noise = squared_steps(square, finer) + later * squared_steps(again, finer)
        if room * noise > MOST_STEPS**2 or protocol.sensitivity / finer > protocol.most_steps // 4:
            return step
        step = finer


# ── what is claimed, from the factors of the ideal ────────────────────────────────────────────────────────────────────


def stated_on_a_grid(
    protocol: Rounds | RandomizedGossip, factor: FloatArray, apart: float, notes: tuple[str, ...] = ()
) -> Guarantee:
    """The loss on the grid whose ideal in real numbers has these factors; nan at observers, −1 for parties out of reach.

    apart   how far what is sent is from the ideal, `transcript_distance`
    """
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
        references=_references(protocol),
        factor=np.where(far, 0.0, factor),
    )


def _references(protocol: Rounds | RandomizedGossip) -> tuple[str, ...]:
    if isinstance(protocol, VaryingGossip):
        return REFERENCES_OF_CHANGING
    if isinstance(protocol, Gossip):
        return REFERENCES_OF_ROUNDS if protocol.chebyshev is None else REFERENCES_OF_ACCELERATED
    return REFERENCES_OF_EXCHANGES


def grid_assumptions(protocol: Rounds | RandomizedGossip, apart: float, *, far: bool) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    readable = "messages are readable by sender and receiver alone"
    local_only = "no refresh: on a grid only local DP of the first noisy value is claimed, whatever the others do"
    if isinstance(protocol, Rounds):
        public, end, later = "graph, weights, rounds, grid", " to its end", protocol.rounds > 1
        every = "fresh noise before every send but the first"
        mixed = "states are mixed with the fractions of the gossip matrix and rounded exactly"
        if protocol.chebyshev is not None:
            public = "graph, weights, gap, rounds, grid"
            mixed = (
                f"from the second step on states are mixed with gamma = {protocol.chebyshev!r}, the remembered state, which has "
                "the last fresh noise added too, with 1 - gamma; all fractions are exact, and the result is rounded once"
            )
        unreached = (
            f"parties out of reach, more than {protocol.rounds} hops from the observers, reveal nothing as long as all parties "
            f"follow the protocol and {readable}"
        )
        if isinstance(protocol, VaryingGossip):
            public = "the graph of every round, weights, grid"
            unreached = (
                "parties whose value reaches no observer along any path in time reveal nothing as long as all parties follow the "
                f"protocol and {readable}"
            )
            every = "fresh noise of everybody before every round but the first"
        local_only += (
            ""
            if isinstance(protocol, VaryingGossip)
            else (
                "; the smaller, amplified figure holds in real arithmetic only "
                "(netdp.families.gossip.account.grid.in_real_arithmetic)"
            )
        )
    else:
        public, end, later = "graph, grid", "", True
        every = "fresh noise before every send of a party but its first"
        mixed = "the two ends of an exchange share their sum out in whole numbers"
        unreached = (
            "parties whose value reached no observer reveal nothing as long as all parties follow the protocol, and "
            f"{readable}"
        )
    coordinates = "one coordinate" if protocol.dimension == 1 else f"at most {protocol.dimension:,} coordinates"
    said_of = [
        f"two values of one party have {coordinates} and differ by at most {protocol.sensitivity:g} in L2 norm (clip before "
        f"rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        f"{public} and noise levels are public and chosen without regard to the values",
        "values are fixed before the first send and do not react to messages",
        f"the initial noise is a discrete Gaussian of parameter {protocol.start_variance} squared grid steps, drawn exactly, from "
        "a cryptographic source; a simulation with NumPy's generators protects nobody",
    ]
    if math.isinf(apart):
        if isinstance(protocol, Rounds) or protocol.refresh == 0:
            said_of.append(local_only)
        if far:
            said_of.append(unreached)
        return tuple(said_of)
    said_of += [
        f"all parties follow the protocol{end}, and {readable}; the observers pool their own data, noise and all they receive",
        "every party keeps its final estimate; if party p publishes it, count p among the observers",
    ]
    if later:
        said_of.append(
            f"{every} is a discrete Gaussian of parameter {protocol.fresh_variance} squared grid steps, drawn in the same way; "
            f"{mixed}"
        )
    said_of.append(
        f"what is sent is within {apart:.2g} in total variation of the rounded ideal in real numbers: (1 + e^ε) times that is "
        "in δ; the factor is that of the ideal"
    )
    return tuple(said_of)


# ── in rounds ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@certified.register
def _gossip(protocol: Gossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    if protocol.grid is None:
        return exact_loss(protocol, observers, progress)
    return loss_on_a_grid(protocol, observers, progress)


def loss_on_a_grid(protocol: Gossip, observers: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """What colluding observers learn about every other party from whole numbers."""
    n = protocol.n
    reached = protocol.graph.distances(list(observers)) <= protocol.rounds
    apart = transcript_distance(protocol)
    notes: tuple[str, ...] = ()
    factor = np.ones(n)
    if math.isfinite(apart):
        found = factors(GossipView(protocol.replace(grid=None), observers), progress)
        factor, notes = found.values, found.notes
    # nothing at all is not the same as a factor of zero: rounding may carry what mixing cancels
    factor = np.where(reached, factor, OUT_OF_REACH)
    factor[list(observers)] = np.nan
    return stated_on_a_grid(protocol, factor, apart, notes)


@in_real_numbers.register
def in_real_arithmetic(protocol: Gossip, observers: int | str | Iterable[int | str]) -> Guarantee:
    """The loss that the same gossip would have in real numbers: to stand beside the certified one, and no guarantee.

    >>> from netdp.protocols.accounting import account
    >>> from netdp import graphs
    >>> p = Gossip(graphs.ring(8), rounds=6, sigma=2.0, grid=2.0**-20)
    >>> beside = in_real_arithmetic(p, [0])
    >>> beside.worst_epsilon(1e-6) <= account(p, [0]).worst_epsilon(1e-6), beside.is_certified
    (True, False)
    """
    members = observer_set(protocol.graph, observers)
    return dataclasses.replace(
        exact_loss(protocol.replace(grid=None), members),
        observers=Observers(members),
        claim=Claim.ESTIMATE,
        errata=("this figure is of real numbers; rounding to a grid can reveal more, so it is NOT a bound for a wire",),
    )


# ── in exchanges, after the run and before ────────────────────────────────────────────────────────────────────────────


def factors_of_exchanges(protocol: RandomizedGossip, view: ExchangeView) -> Factors:
    """The factors in real numbers of a run with these logs; 1 for everybody reached where floating point cannot tell.

    >>> from netdp import graphs
    >>> from netdp.families.gossip.logs import ExchangeLogs, ExchangeView
    >>> edges = np.array([[0, 1], [1, 2], [0, 1]])
    >>> protocol = RandomizedGossip(graphs.path(3), steps=3, sigma=1.0, refresh=2.0)          # τ = σ
    >>> factors_of_exchanges(protocol, ExchangeView(ExchangeLogs.of_edges(3, edges), (0,))).values.round(4).tolist()
    [nan, 1.0, 0.1667]
    """
    count = len(view.seen)
    everything = np.where(view.reached, 1.0, 0.0)
    everything[~view.hidden] = np.nan
    if count == 0:
        return Factors(everything, 0.0, Claim.EXACT, 0)
    if protocol.refresh == 0:
        return Factors(
            everything, 0.0, Claim.UPPER, count, ("no fresh noise: the loss of first messages is the bound",)
        )
    return absorbed(protocol, view.values, view.fresh, view.hidden, view.reached)


def absorbed(
    protocol: RandomizedGossip | VaryingGossip,
    values: FloatArray,
    fresh: FloatArray,
    hidden: npt.NDArray[np.bool_],
    reached: npt.NDArray[np.bool_],
    extra: float = 0.0,
) -> Factors:
    """a_uᵀ(AAᵀ + (τ/σ)²FFᵀ)⁻¹a_u of every hidden party; 1 for everybody reached where floating point cannot tell.

    values, fresh   A, (n, messages) by party, and F, (fresh noises, messages)
    extra           how far the entries of both may be off, in units of rounding, relative to their sizes
    """
    n, count = values.shape
    later = len(fresh)
    everything = np.where(reached, 1.0, 0.0)
    everything[~hidden] = np.nan
    if (n + later) * count > _VIEW_ENTRIES:
        note = f"{count} messages seen with {later} fresh noises are too many to follow: the loss of first messages is the bound"
        return Factors(everything, 0.0, Claim.UPPER, count, (note,))
    tau = math.sqrt(protocol.refresh_variance) / protocol.sigma * (1 - 4 * UNIT)
    stacked = np.vstack([values[hidden], tau * fresh])
    triangle = np.asarray(linalg.qr(stacked, mode="r", check_finite=False, overwrite_a=True)[0][:count])
    reciprocal = linalg.lapack.dtrcon(triangle)[0] if len(triangle) == count else 0.0
    margin = 32.0 * (count + n + extra) * UNIT / reciprocal if reciprocal > 0 else np.inf
    if not 4 * margin * (1 + margin) < 0.1:
        note = "fresh noise too weak to resolve in floating point: the loss of first messages is the bound"
        return Factors(everything, 0.0, Claim.UPPER, count, (note,))
    whitened = linalg.solve_triangular(triangle, values.T, trans="T", check_finite=False)
    roots = np.sqrt(np.einsum("ij,ij->j", whitened, whitened))
    upper = np.where(reached, np.minimum((roots * (1 + margin) + margin) ** 2, 1.0), 0.0)
    upper[~hidden] = np.nan
    slack = float(4 * margin * (1 + margin))
    return Factors(upper, slack, Claim.EXACT if slack <= EXACT_BELOW else Claim.UPPER, count)


# ── in rounds on changing graphs ──────────────────────────────────────────────────────────────────────────────────────


def factors_of_rounds(protocol: VaryingGossip, view: SequenceView) -> Factors:
    """The factors in real numbers of changing graphs with fresh noise before every round but the first.

    >>> from netdp import graphs
    >>> protocol = VaryingGossip([graphs.path(3), graphs.path(3)], sigma=1.0, refresh=2.0)               # τ = σ
    >>> factors_of_rounds(protocol, SequenceView(protocol, (0,))).values.round(4).tolist()
    [nan, 1.0, 0.1]
    """
    hidden, n, T = view.hidden, protocol.n, protocol.rounds
    senders = [hidden_senders(graph, view.observers) for graph in protocol.graphs]
    first = np.cumsum([0, *map(len, senders)])
    if n * T * int(first[-1]) > _VIEW_ENTRIES or not first[-1]:
        everything = np.where(view.reached, 1.0, 0.0)
        everything[~hidden] = np.nan
        note = (
            f"{first[-1]} messages seen in {T} rounds are too many to follow: the loss of first messages is the bound"
        )
        return Factors(
            everything, 0.0, Claim.UPPER if first[-1] else Claim.EXACT, int(first[-1]), (note,) if first[-1] else ()
        )
    values, fresh = np.zeros((n, first[-1])), np.zeros(((T - 1) * n, first[-1]))
    for t, seen in enumerate(senders):
        block = np.zeros((n, len(seen)))
        block[seen, np.arange(len(seen))] = 1.0
        columns = slice(first[t], first[t + 1])
        for j in range(t, 0, -1):
            fresh[(j - 1) * n : j * n, columns] = block
            W = protocol.matrices[j - 1]
            block = csr_times_block(W.indptr, W.indices, W.data, block)
            block[~hidden] = 0.0
        values[:, columns] = block
    degree = max(int(graph.degrees.max()) for graph in protocol.graphs)
    return absorbed(protocol, values, fresh, hidden, view.reached, extra=T * (degree + 3))


def loss_of_rounds(protocol: VaryingGossip, observers: tuple[int, ...]) -> Guarantee:
    """What colluding observers learn of changing graphs with fresh noise, in real numbers or on a grid."""
    view, note = SequenceView(protocol, observers), "all graphs are fixed beforehand and public"
    if protocol.grid is None:
        found = factors_of_rounds(protocol, view)
        return certified_statement(protocol, found.values, found.claim, found.slack, (note, *found.notes))
    apart, notes = transcript_distance(protocol), tuple[str, ...]()
    factor = np.ones(protocol.n)
    if math.isfinite(apart):
        found = factors_of_rounds(protocol, view)
        factor, notes = found.values, found.notes
    factor = np.where(view.reached, factor, OUT_OF_REACH)
    factor[list(observers)] = np.nan
    return stated_on_a_grid(protocol, factor, apart, (note, *notes))


def loss_of_exchanges(protocol: RandomizedGossip, observers: tuple[int, ...], logs: ExchangeLogs) -> Guarantee:
    """What colluding observers learned about every other party in a run with these logs."""
    _check(protocol, logs)
    view = ExchangeView(logs, observers)
    found = factors_of_exchanges(protocol, view)
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
        return certified_statement(protocol, found.values, found.claim, found.slack, notes)
    apart = transcript_distance(protocol, course_of(view))
    factor = np.where(view.reached | ~view.hidden, found.values, OUT_OF_REACH)
    return stated_on_a_grid(protocol, factor, apart, notes)


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


# ── what there is without gossip ──────────────────────────────────────────────────────────────────────────────────────


@local.register
def _locally_changing(protocol: VaryingGossip) -> Guarantee:
    return gaussian_local(protocol.local_mu) if protocol.grid is None else _on_the_grid(protocol)


@curator.register
def _curator_changing(protocol: VaryingGossip) -> Guarantee:
    return gaussian_curator(protocol.local_mu, protocol.n) if protocol.grid is None else _summed_on_the_grid(protocol)


@local.register
def _locally(
    protocol: PushSum | ErdosRenyiGossip | ErdosRenyiDescent | GossipDescent,
) -> Guarantee:
    if getattr(protocol, "grid", None) is not None:
        from netdp.families.gossip.account.descent_grid import locally

        return locally(protocol)  # type: ignore[arg-type]
    return gaussian_local(protocol.local_mu)


@curator.register
def _by_a_curator(
    protocol: PushSum | ErdosRenyiGossip | ErdosRenyiDescent | GossipDescent,
) -> Guarantee:
    if getattr(protocol, "grid", None) is not None:
        from netdp.families.gossip.account.descent_grid import by_a_curator

        return by_a_curator(protocol)  # type: ignore[arg-type]
    return gaussian_curator(protocol.local_mu, protocol.n)


@local.register
def _local(protocol: Rounds | RandomizedGossip) -> Guarantee:
    if protocol.grid is None:
        return gaussian_local(protocol.local_mu)
    return _on_the_grid(protocol)


def _on_the_grid(protocol: Rounds | RandomizedGossip) -> Guarantee:
    return said(published_on_a_grid(protocol, 1), "every party publishes its own noisy value, on the grid", factor=1.0)


@curator.register
def _curator(protocol: Rounds | RandomizedGossip) -> Guarantee:
    if protocol.grid is None:
        return gaussian_curator(protocol.local_mu, protocol.n)
    return _summed_on_the_grid(protocol)


def _summed_on_the_grid(protocol: Rounds | RandomizedGossip) -> Guarantee:
    said_of = (
        "a curator that everybody trusts sees all values, and only the sum with everybody's noise, on the grid, is seen"
    )
    return said(published_on_a_grid(protocol, protocol.n), said_of, factor=1.0 / protocol.n)


def published_on_a_grid(protocol: NoisyStates, parties: int) -> ProfileCurve:
    """The curve of a single noisy value, or of a sum with the noise of so many parties, that everybody sees."""
    points = _points(_mu(protocol, np.array([1.0 / parties])), 1)
    formula = partial(first_value_delta, protocol, parties=parties)
    return ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,)))
