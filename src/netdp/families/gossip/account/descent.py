"""Learning by gossip: a certified bound on what is lost over all iterations together.

Gradients react to hidden states, which the target's data has already influenced, so single iterations do not simply add up. The
bound follows two runs that differ in the data of one party and have shown the observers the same messages
(docs/proofs/gossip.md#hidden-state). Against every single observer at once: a bound for all, exact work where it counts
(docs/proofs/gossip.md#told-everything). On secret graphs that are drawn anew in every iteration, certified before the draw:
docs/proofs/gossip.md#redrawn-descent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.special import logsumexp

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account import krylov
from netdp.families.gossip.account.bounds import told_everything
from netdp.families.gossip.account.exact import mask_condition, strongest_masks
from netdp.families.gossip.account.krylov import SeenSpace, seen_space
from netdp.families.gossip.account.secret_graphs import meeting
from netdp.families.gossip.account.sequences import knots
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
from netdp.families.gossip.protocol import response
from netdp.families.gossip.views import GossipView
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_delta
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import PerCurve, ProfileCurve
from netdp.privacy.renyi import DEFAULT_ORDERS, RenyiCurve
from netdp.protocols.table import certified, coalitions

# A few dense n × n matrices.
MAX_PARTIES = 6000

ITERATION_REFERENCES = ("netdp, docs/proofs/gossip.md#hidden-state: hidden-state composition for gossip descent.",)

ASSUMPTIONS = (
    "gradients are clipped to norm {clip:g} before the noise, so two of one party's differ by at most {sensitivity:g}",
    "all models start from one value that does not depend on anybody's data",
    "a party's step θ ↦ θ − ν·gradient depends on its own model and data, and on random choices that look at no data; it is "
    "{expansion:g}-Lipschitz (1 holds for generalised linear models whose rows are clipped one by one and ν ≤ 2/β, not if "
    "only the party's whole gradient is clipped)",
    "all parties follow the protocol to its end; the observers pool their own data, noise and all they receive",
    "graphs, weights, step and noise levels are public and chosen without regard to the data; messages are readable by "
    "sender and receiver alone; noise is fresh in every iteration",
    "every party keeps its final model; if party p publishes it, count p among the observers",
    "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
)


# Masks are taken as they are while the margin of rounding is below the first of these. Beyond it the strongest masks with
# each of these margins are tried, and the cheapest result counts.
_MARGINS = (1e-5, 1e-4, 1e-3)

# Pay for everything when that costs at most this much more than paying for the messages.
_GREEDY = 1.5


@dataclass(frozen=True, eq=False)
class _Run:
    """What was paid so far under the three rules of when to reveal everything, and the b of the first two."""

    never: FloatArray
    b_never: FloatArray
    greedy: FloatArray
    b_greedy: FloatArray
    always: FloatArray


@dataclass(frozen=True, eq=False)
class Geometry:
    """What one iteration shows and hides; all matrices entrywise absolute. Columns of `b` belong to targets."""

    shown: FloatArray | None  # |C|; None if the seen space could not be decided, then everything must be paid for
    carried: FloatArray | None  # |p_K(P)(I − SC)|
    inverse: FloatArray | None  # S⁻¹ ≥ 0 (S is an M-matrix); None without masks, where it is the identity
    margin: float  # bounds the spectral norm of the rounding error of each
    rounding: float  # that of the inverse alone, which needs no seen space
    masks: float  # the κ it was computed for: the protocol's, or a smaller one

    def messages(self, b: FloatArray) -> FloatArray:
        """The price of the messages, for each target."""
        return np.full(b.shape[1], np.inf) if self.shown is None else _form(self.shown, b) + self.margin * _squares(b)

    def everything(self, b: FloatArray) -> FloatArray:
        """The price of every party's whole first message."""
        return _squares(b) if self.inverse is None else _form(self.inverse, b) + self.rounding * _squares(b)

    def carry(self, b: FloatArray) -> FloatArray:
        """What stays hidden of the difference."""
        if self.carried is None:
            return np.zeros_like(b)
        return self.carried @ b + self.margin * np.sqrt(_squares(b))


def loss_energy(
    protocol: GossipDescent,
    observers: tuple[int, ...],
    targets: npt.ArrayLike | None = None,
) -> FloatArray:
    """Σ_t μ_t² in units of Δ²/σ², for each target (all parties by default): local DP has T. nan at the observers.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.hypercube(6), iterations=6, gossip_rounds=1, sigma=1.0, step=1.0, clip=0.5)
    >>> loss_energy(p, (0,))[[1, 3, 7, 15]].round(3).tolist()            # 1, 2, 3 and 4 hops away
    [6.0, 0.336, 0.047, 0.009]
    """
    _check_size(protocol)
    return _bound(protocol, observers, _checked(targets, protocol.n))[0]


def _bound(
    protocol: GossipDescent, observers: tuple[int, ...], chosen: IntArray, progress: Progress | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Σ_t μ_t² for the chosen targets, and a note if it was computed for weaker masks."""
    unit = np.zeros((protocol.n, len(chosen)))
    unit[chosen, np.arange(len(chosen))] = 1.0
    unit[list(observers)] = 0.0
    zero = np.zeros(len(chosen))
    runs, used = [_Run(zero, unit, zero, unit, zero)], {protocol.masks}
    for done, geometries in enumerate(_geometries(protocol, observers), start=1):
        if len(geometries) > len(runs):
            runs = runs * len(geometries)  # until now they were the same
        runs = [
            _Run(
                *_iterate(geometry, run.never, run.b_never, unit, protocol.expansion, 0.0),
                *_iterate(geometry, run.greedy, run.b_greedy, unit, protocol.expansion, _GREEDY),
                run.always + geometry.everything(unit),
            )
            for run, geometry in zip(runs, geometries * (len(runs) // len(geometries)), strict=True)
        ]
        used = {geometry.masks for geometry in geometries} | (used if done > 1 else set())
        if progress is not None:
            progress(done, protocol.iterations)
    rules = [energy for run in runs for energy in (run.never, run.greedy, run.always)]
    energy: FloatArray = np.minimum.reduce([*rules, np.full(len(chosen), float(protocol.iterations))])
    energy[np.isin(chosen, observers)] = np.nan
    if used == {protocol.masks}:
        return energy, ()
    note = (
        f"masks κ = {protocol.masks:g} strain floating point: evaluated at masks κ = "
        f"{' or '.join(f'{masks:.3g}' for masks in sorted(used))}, whichever is smallest; a bound for weaker masks holds for "
        "stronger ones"
    )
    return energy, (note,)


def _check_size(protocol: GossipDescent) -> None:
    if protocol.n > MAX_PARTIES:
        raise Unsupported(
            f"the bound for learning works with dense matrices over {protocol.n} parties; it is offered up to {MAX_PARTIES}"
        )


def _checked(targets: npt.ArrayLike | None, n: int) -> IntArray:
    """The targets as party numbers; none, unknown ones and no numbers are refused."""
    if targets is None:
        return np.arange(n)
    given = np.atleast_1d(np.asarray(targets))
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InvalidValue(f"targets must be a list of party numbers such as [3, 9], got {targets!r}")
    wrong = given[(given < 0) | (given >= n)]
    if wrong.size:
        raise InvalidValue(f"no party {wrong[0]} among the targets; the parties are 0 to {n - 1}")
    return given.astype(np.int64)


def _iterate(
    geometry: Geometry, energy: FloatArray, b: FloatArray, unit: FloatArray, expansion: float, eagerness: float
) -> tuple[FloatArray, FloatArray]:
    """One iteration: pay for the messages and carry the hidden part on, or pay for everything and start afresh."""
    messages, everything = geometry.messages(b), geometry.everything(b)
    reveal = everything <= eagerness * messages if eagerness else np.isinf(messages)
    hidden = np.zeros_like(b) if reveal.all() else np.where(reveal, 0.0, geometry.carry(b))
    return energy + np.where(reveal, everything, messages), expansion * hidden + unit


def _geometries(protocol: GossipDescent, observers: tuple[int, ...]) -> Iterator[list[Geometry]]:
    """For each iteration its geometry; if its margin is wide because of the masks, one for each of `_MARGINS`."""
    kept: list[Geometry] = []
    for t in range(protocol.iterations):
        if not (kept and protocol.is_static):
            view = GossipView(protocol.rounds_of(t), observers)
            space = _decided(view)
            masks = protocol.masks
            allowed = [strongest_masks(view, masks, limit / _margin(view, space)) for limit in _MARGINS]
            made = {used: _geometry(view, space, used) for used in dict.fromkeys(allowed)}
            kept = [made[masks]] if allowed[0] == masks else [made[used] for used in allowed]
        yield kept


def _margin(view: GossipView, space: SeenSpace | None) -> float:
    """The margin of rounding for masks of condition 1; it grows in proportion."""
    rounding = _rounding(len(view.hidden))
    return rounding if space is None else rounding + 10.0 * space.tilt * np.sqrt(2.0 * space.rank)


def _rounding(n: int) -> float:
    """The margin of an inverse of condition 1."""
    return 16.0 * n * UNIT


def _geometry(view: GossipView, space: SeenSpace | None, masks: float) -> Geometry:
    rounds, hidden = view.protocol, view.hidden
    n = len(hidden)
    condition, covariance, inverse = 1.0, None, None
    if masks > 0:
        identity = np.diag(hidden.astype(np.float64))
        covariance = identity + masks * view.mask_laplacian(identity)
        inverse = np.zeros((n, n))
        inverse[np.ix_(hidden, hidden)] = linalg.inv(covariance[np.ix_(hidden, hidden)])
        inverse = np.maximum((inverse + inverse.T) / 2, 0.0)
        condition = mask_condition(view, masks)
    margin, rounding = _margin(view, space) * condition, _rounding(n) * condition
    if space is None:
        return Geometry(None, None, inverse, margin, rounding, masks)
    Q = space.basis
    if covariance is None:
        shown = Q @ Q.T
        rest = -shown
    else:
        SQ = covariance @ Q
        root = linalg.cho_factor(Q.T @ SQ)
        solved = linalg.cho_solve(root, Q.T)
        shown = Q @ solved
        rest = -(SQ @ solved)
    rest[np.diag_indices(n)] += hidden  # I − SC on the hidden parties
    *_, carried = response(view.step, rest, rounds.rounds + 1, rounds.chebyshev)
    return Geometry(np.abs(shown), np.abs(carried), inverse, margin, rounding, masks)


def _decided(view: GossipView) -> SeenSpace | None:
    """The seen space, in long integers where floating point is in doubt; None if that takes too long.

    Unlike `GossipView` itself this allows observers with no neighbour in this iteration's graph: they see nothing.
    """
    if len(view.boundary) == 0:
        return SeenSpace(np.zeros((len(view.hidden), 0)), (0,), False, 0.0, "float64")
    space = seen_space(view)
    if space.doubtful:
        if not krylov.affordable(view):
            return None
        space = krylov.seen_space_wide(view)
    return None if space.doubtful else space


def _form(matrix: FloatArray, b: FloatArray) -> FloatArray:
    """bᵀ M b for every column b."""
    form: FloatArray = np.einsum("ij,ij->j", matrix @ b, b)
    return form


def _squares(b: FloatArray) -> FloatArray:
    squares: FloatArray = np.einsum("ij,ij->j", b, b)
    return squares


@certified.register
def _descent(protocol: GossipDescent, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    _check_size(protocol)
    if protocol.grid is not None:
        from netdp.families.gossip.account.descent_grid import loss_on_a_grid

        return loss_on_a_grid(protocol, observers, progress)
    return in_reals(protocol, observers, progress)


def in_reals(protocol: GossipDescent, observers: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """The loss in real numbers."""
    energy, notes = _bound(protocol, observers, np.arange(protocol.n), progress)
    factor = energy / protocol.iterations
    assumptions = [
        text.format(clip=protocol.clip, sensitivity=protocol.sensitivity, expansion=protocol.expansion)
        for text in ASSUMPTIONS
    ]
    if protocol.masks > 0:
        assumptions.append("masks are fresh in every iteration and known to the two ends of their edge only")
    return Guarantee(
        curve=GaussianCurve(np.sqrt(factor) * protocol.local_mu),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*assumptions, *notes),
        references=ITERATION_REFERENCES,
        factor=factor,
    )


# Multiplications, some 10¹⁰ a second.
EFFORT = 3e10


def worst_energies(protocol: GossipDescent, progress: Progress | None = None) -> FloatArray:
    """For every party, a bound on its largest Σμ_t² (in units of Δ²/σ²) over all other parties, each looking alone.

    `progress(done, total)` is told of observers, first bounded and then accounted for.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.path(5), 4, 3, sigma=1.0, step=1.0, masks=10.0)
    >>> worst_energies(p).round(2).tolist()              # the ends have one neighbour, and no secret that it does not know
    [4.0, 2.1, 1.54, 2.1, 4.0]
    """
    n, T = protocol.n, protocol.iterations
    if protocol.masks == 0 and all(graph.is_connected for graph in protocol.graphs):
        return np.where(protocol.graphs[0].degrees > 0, float(T), 0.0)
    allowed = int(EFFORT // (12.0 * float(n) ** 3 * (T if protocol.is_static else 2 * T)))
    if allowed >= n:
        worst = np.zeros(n)
        for v in range(n):
            worst = np.fmax(worst, loss_energy(protocol, (v,)))
            if progress is not None:
                progress(v + 1, n)
        return worst
    energy = _told(protocol, progress, n + allowed)
    largest, settled = np.nanmax(energy, axis=0), 0.0
    for done, v in enumerate(np.argsort(-largest, kind="stable")[:allowed].tolist(), start=1):
        if settled >= largest[v] * (1 - 1e-4):
            break
        energy[:, v] = np.minimum(energy[:, v], loss_energy(protocol, (v,)))
        settled = max(settled, float(np.nanmax(energy[:, v])))
        if progress is not None:
            progress(n + done, n + allowed)
    return np.asarray(np.fmax.reduce(energy, axis=1))


def _told(protocol: GossipDescent, progress: Progress | None, total: int) -> FloatArray:
    """Σ_t [S_v⁻¹]_uu for all pairs [u, v], at most T; and the margins that accounts of the observers have on top of it.

    They compute the same inverse, each with a rounding error of its own, and add as much: twice the margin covers both, so that
    noise found for this bound passes every account.
    """
    n, T = protocol.n, protocol.iterations
    times = Counter([protocol.network] if protocol.is_static else protocol.graphs)
    energy = np.zeros((n, n))
    for number, (graph, count) in enumerate(times.items()):
        for v, values in enumerate(told_everything(graph, protocol.masks)):
            margin = 2 * _rounding(n) * (1.0 + 2.0 * protocol.masks * float(graph.degrees.max(initial=0)))
            energy[:, v] += (T if protocol.is_static else count) * (values + min(margin, 2 * _MARGINS[0]))
            if progress is not None and v % 64 == 63:
                progress(int((number + v / n) / len(times) * n), total)
    return np.minimum(energy * (1 + 1e-12), float(T))


REDRAWN_DESCENT_REFERENCES = (
    "netdp, docs/proofs/gossip.md#redrawn-descent: proof.",
    "E. Cyffers, M. Even, A. Bellet, L. Massoulié. Muffliato. NeurIPS 2022, Appendix F and Proposition 1.",
)

# Cells of the grid on which the sum of a party's weights is followed, and the tails that count as the worst case.
_CELLS = 512

_OWN, _SPREAD = 128, 1024

_TAIL = 1e-30

_UP = 1e-9

#: The mixings whose weights are 1/(o + max(d_u, d_w)), halved if lazy: (o, share of an edge).
_WEIGHTS = {"metropolis": (1, 1.0), "lazy-metropolis": (1, 0.5), "hamilton": (0, 1.0), "lazy-hamilton": (0, 0.5)}


class Stars(NamedTuple):
    """Upper ends of ω and v with their probabilities, for a party that talks to no observer."""

    chance: FloatArray
    own: FloatArray
    spread: FloatArray


@lru_cache(maxsize=64)
def stars(n: int, p: float, observers: int, mixing: str = "metropolis") -> Stars:
    """The law of (W_uu, (W²)_uu) in a graph in which u talks to none of the observers, rounded up.

    >>> law = stars(2000, 0.004, 1)
    >>> round(float(law.chance.sum()), 6), 0.15 < float(law.chance @ law.spread) < 0.25
    (1.0, True)
    """
    if mixing not in _WEIGHTS:
        raise Unsupported(
            f"with mixing {mixing!r} the weights of a party depend on the whole graph; the law before the draw is worked out for "
            f"{', '.join(_WEIGHTS)}"
        )
    from scipy.stats import binom

    offset, share = _WEIGHTS[mixing]
    chances, owns, spreads = [], [], []
    others = n - 1 - observers
    lost = 0.0
    for d in range(_most(others, p) + 1):
        weight = float(binom.pmf(d, others, p))
        if weight <= _TAIL / (others + 1):
            lost += weight
            continue
        if d == 0:
            chances.append(np.array([weight]))
            owns.append(np.ones(1))
            spreads.append(np.ones(1))
            continue
        largest = share / (offset + d)
        rest = n - 1 - d
        degrees = np.arange(1, _most(rest, p) + 2)
        law = binom.pmf(degrees - 1, rest, p)
        cells = np.floor(share / (offset + np.maximum(d, degrees)) * _CELLS).astype(np.int64)
        sums = _power(np.bincount(cells, law).astype(np.float64), d)
        low_end = np.arange(len(sums)) / _CELLS
        high_end = np.minimum(low_end + d / _CELLS, d * largest)
        for edges, among in _edge_counts(d * (d - 1) // 2, p):
            own = np.minimum(1.0 - low_end + 2 * edges * share / ((offset + d) * (offset + d + 1)), 1.0)
            each = weight * among * sums
            kept = each > _TAIL / len(each)
            lost += float(each[~kept].sum())
            chances.append(each[kept])
            owns.append(own[kept])
            spreads.append(np.minimum(own**2 + high_end * largest, 1.0)[kept])
        lost += weight * 2 * _TAIL * (d + 1)
    chance = np.concatenate([*chances, [lost + 2 * _TAIL]])
    own, spread = np.append(np.concatenate(owns), 1.0), np.append(np.concatenate(spreads), 1.0)
    # few distinct pairs, rounded up: everything that follows is a mean over them, at hundreds of orders
    places = np.ceil(own * _OWN).astype(np.int64) * (_SPREAD + 1) + np.ceil(spread * _SPREAD).astype(np.int64)
    distinct, which = np.unique(places, return_inverse=True)
    first, second = np.divmod(distinct, _SPREAD + 1)
    return Stars(np.bincount(which, chance).astype(np.float64), first / _OWN, second / _SPREAD)


def _edge_counts(pairs: int, p: float) -> list[tuple[int, float]]:
    """How many of the pairs are edges, in steps of half a deviation rounded up, with probabilities."""
    from scipy.stats import binom

    stride = 1 + int(math.sqrt(pairs * p * (1 - p)) / 2)
    chances = binom.pmf(np.arange(_most(pairs, p) + 1), pairs, p)
    firsts = range(0, len(chances), stride)
    return [(min(i + stride, len(chances)) - 1, float(chances[i : i + stride].sum())) for i in firsts]


def _most(trials: int, p: float) -> int:
    """The least number that a binomial variable exceeds with probability at most `_TAIL`."""
    from scipy.stats import binom

    return int(np.argmax(binom.sf(np.arange(trials + 1), trials, p) <= _TAIL))


def _power(law: FloatArray, times: int) -> FloatArray:
    """The law of a sum of independent copies; positive numbers only."""
    result: FloatArray | None = None
    while times:
        if times & 1:
            result = law if result is None else np.convolve(result, law)
        times >>= 1
        if times:
            law = np.convolve(law, law)
    assert result is not None
    return result


def near(n: int, p: float, observers: int, hops: int) -> float:
    """An upper bound on the probability that a party has an observer within so many hops; exact for one.

    >>> round(near(2000, 0.004, 1, 2), 4)
    0.036
    """
    if hops == 1:
        return meeting(p, observers)
    paths = observers * math.fsum(math.exp((k - 1) * math.log(n) + k * math.log(p)) for k in range(1, hops + 1))
    return min(1.0, paths)


def divergence(protocol: ErdosRenyiDescent, observers: int, orders: FloatArray) -> FloatArray:
    """The bound on the Rényi divergence at every order, before the draw (docs/proofs/gossip.md#redrawn-descent).

    >>> p = ErdosRenyiDescent(2000, math.log(2000) / 2000, iterations=100, sigma=10.0, step=0.5, clip=0.5)
    >>> ours, local = divergence(p, 1, np.array([8.0]))[0], 8.0 * p.local_mu**2 / 2
    >>> round(float(ours / local), 2)
    0.21
    """
    n, p, ell, hops = protocol.n, protocol.p, protocol.expansion, protocol.gossip_rounds
    law = stars(n, p, observers, protocol.mixing)
    own = law.own if hops == 1 else np.sqrt(law.spread)
    step = protocol.sensitivity / protocol.sigma
    s = orders * (orders - 1) * step**2 / 2
    weights = np.log(law.chance + 1e-300)
    log0 = np.array([logsumexp(weights + rate * ell**2 * law.spread) for rate in s])
    log1 = np.array([logsumexp(weights + rate * (1 + 2 * ell * own + ell**2 * law.spread)) for rate in s])
    hit, away = near(n, p, observers, hops), 1.0 - meeting(p, observers)
    with np.errstate(divide="ignore"):
        log_hit, log_away = np.log(hit), np.log(max(away, 0.0))
    g, f = np.zeros_like(s), np.full_like(s, -np.inf)
    for _ in range(protocol.iterations):
        g, f = (
            log_hit + np.logaddexp(s + g, log1 + f),
            log_away + np.logaddexp(g, log0 + f),
        )
    total = np.logaddexp(f, g) + protocol.iterations * _UP
    local = orders * protocol.local_mu**2 / 2
    return np.asarray(np.minimum(total / (orders - 1), local * (1 + 1e-15)))


@certified.register
def _redrawn_descent(protocol: ErdosRenyiDescent, observers: tuple[int, ...]) -> Guarantee:
    """What the observers learn about anybody else, before the graphs are drawn."""
    return redrawn_descent_loss(protocol, len(observers))


@coalitions.register
def _any(protocol: ErdosRenyiDescent, colluders: int) -> Guarantee:
    """All coalitions of a size are alike before the draw."""
    return redrawn_descent_loss(protocol, colluders)


def redrawn_descent_loss(protocol: ErdosRenyiDescent, observers: int) -> Guarantee:
    """One curve for everybody outside a coalition of so many parties that is fixed before the graphs are drawn."""
    if observers >= protocol.n:
        raise InvalidValue(f"{observers} observers among {protocol.n} parties leave nobody to protect")
    orders = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    points = knots(protocol.local_mu)
    ours = RenyiCurve(orders, divergence(protocol, observers, orders))
    formula = partial(_redrawn_delta, ours, protocol.local_mu)
    return Guarantee(
        curve=ProfileCurve(points, np.minimum.accumulate(formula(points)), PerCurve((formula,))),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"gradients are clipped to norm {protocol.clip:g} before the noise, so two of one party's differ by at most "
            f"{protocol.sensitivity:g}",
            "all models start from one value that does not depend on anybody's data",
            "a party's step θ ↦ θ − ν·gradient depends on its own model and data, and on random choices that look at no data; it "
            f"is {protocol.expansion:g}-Lipschitz (1 holds for generalised linear models whose rows are clipped one by one and "
            "ν ≤ 2/β, not if only the party's whole gradient is clipped)",
            f"in every iteration every pair of parties is an edge with probability {protocol.p:g}, independently of all else, of "
            "data and of who observes, which is settled before (afterwards the graphs may become known); a statement before the "
            "draw, the weights being a function of the graph alone",
            "all parties follow the protocol to its end; the observers pool their own data, noise and all they receive",
            "messages are readable by sender and receiver alone; noise is fresh in every iteration",
            "every party keeps its final model; if party p publishes it, count p among the observers",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REDRAWN_DESCENT_REFERENCES,
    )


def _redrawn_delta(ours: RenyiCurve, local_mu: float, epsilon: FloatArray) -> FloatArray:
    """δ at each ε: by divergences, or of local DP."""
    return np.minimum(np.asarray(ours.delta(epsilon)), np.asarray(gaussian_delta(local_mu, epsilon)))
