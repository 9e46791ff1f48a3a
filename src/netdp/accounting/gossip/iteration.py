"""Learning by gossip: a certified bound by hidden-state composition (proof in docs/guarantees.md#hidden-state).

Gradients react to hidden states, which the target's data has already influenced, so the linear view of one iteration
does not simply add up. The bound follows two runs that differ in the data of u alone and have shown the observers the same
messages so far. Let b_i bound the distance of their models at party i, in units of νΔ, right before the noise of an
iteration (b = e_u in the first). With S = I + κL′ the covariance of noise and masks, Q the seen space of K rounds and
C = Q(QᵀSQ)⁻¹Qᵀ:

    pay      the messages shift by Qᵀ(m − m′): the iteration is μ_t-GDP with μ_t² = (Δ/σ)²·bᵀ|C|b
    carry    noise independent of the messages is the same in both runs: what stays different is (I − SC)(m − m′), and after
             gossip p_K(P)(I − SC)(m − m′), so b ← ℓ·|p_K(P)(I − SC)|·b + e_u

(absolute values entrywise, ℓ the Lipschitz constant of a gradient step). In any iteration one may instead pay for everything,
bᵀS⁻¹b, and go on with b = e_u. When to do so may be decided by any rule that does not look at data: three rules are tried
(never, when it costs little more than the messages, always), and the cheapest counts, for each target. Revealing
everything every time costs at most 1 per iteration, so the result never exceeds local DP.

**Masks that are too strong to compute with.** Every bound for masks κ′ ≤ κ holds for masks κ, in each iteration for a κ′ of
its own. Proof: draw the mask of every edge as N(0, κ′σ²) plus an independent N(0, (κ − κ′)σ²) and give the observers all
second parts. They do not depend on data, so conditioning on them changes neither the one law nor the other of what is
left, and more information never helps privacy. Given them, yᵗ = mᵗ + ν(Nᵗ + sᵗ) with Nᵗ the noise of masks κ′ and sᵗ
known: the messages are those of κ′ plus known vectors, and the models that follow are the same function of mᵗ, messages and
noise up to known vectors, equal in both runs. In the proof above every difference of the two runs is what it was, and
local steps are ℓ-Lipschitz wherever they start. So given the second parts the view is μ-Gaussian DP with the μ of κ′, and
therefore also without knowing them. ∎ (It does not follow from the formulas: the recursion for b is not monotone in κ.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from netdp.accounting.published.muffliato import theorems as muffliato
from netdp.accounting.table import certified, published
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.protocols import GossipDescent, response
from netdp.views import GossipView

from . import wide
from .exact import strongest_masks
from .krylov import SeenSpace, seen_space
from .statements import published_statement

# A few dense n × n matrices.
MAX_PARTIES = 6000

ERRATA = (
    "Theorems 6 and 11 add the iterations up as if later gradients did not react to earlier ones; they do, through states "
    "that the observer does not see, so the sum of the terms of single iterations is not a proof.",
)
REFERENCES = ("netdp, docs/guarantees.md#hidden-state: hidden-state composition for gossip descent.",)
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
    masks: float  # the κ it was computed for: the protocol's, or a smaller one

    def messages(self, b: FloatArray) -> FloatArray:
        """The price of the messages, for each target."""
        return np.full(b.shape[1], np.inf) if self.shown is None else _form(self.shown, b) + self.margin * _squares(b)

    def everything(self, b: FloatArray) -> FloatArray:
        """The price of every party's whole first message."""
        return _squares(b) if self.inverse is None else _form(self.inverse, b) + self.margin * _squares(b)

    def carry(self, b: FloatArray) -> FloatArray:
        """What stays hidden of the difference."""
        if self.carried is None:
            return np.zeros_like(b)
        return self.carried @ b + self.margin * np.sqrt(_squares(b))


def loss_energy(
    protocol: GossipDescent,
    observers: tuple[int, ...],
    targets: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Σ_t μ_t² in units of Δ²/σ², for each target (all parties by default): local DP has T. nan at the observers.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.hypercube(6), iterations=6, gossip_rounds=1, sigma=1.0, step=1.0, clip=0.5)
    >>> loss_energy(p, (0,))[[1, 3, 7, 15]].round(3).tolist()            # 1, 2, 3 and 4 hops away
    [6.0, 0.336, 0.047, 0.009]
    """
    _check_size(protocol)
    return _bound(protocol, observers, _checked(targets, protocol.n), progress)[0]


def _bound(
    protocol: GossipDescent, observers: tuple[int, ...], chosen: IntArray, progress: Progress | None
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
    rounding = 16.0 * len(view.hidden) * UNIT
    return rounding if space is None else rounding + 10.0 * space.tilt * np.sqrt(2.0 * space.rank)


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
        condition = 1.0 + 2.0 * masks * float(rounds.graph.degrees.max(initial=0))
    margin = _margin(view, space) * condition
    if space is None:
        return Geometry(None, None, inverse, margin, masks)
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
    return Geometry(np.abs(shown), np.abs(carried), inverse, margin, masks)


def _decided(view: GossipView) -> SeenSpace | None:
    """The seen space, in long integers where floating point is in doubt; None if that takes too long.

    Unlike `GossipView` itself this allows observers with no neighbour in this iteration's graph: they see nothing.
    """
    if len(view.boundary) == 0:
        return SeenSpace(np.zeros((len(view.hidden), 0)), (0,), False, 0.0, "float64")
    space = seen_space(view)
    if space.doubtful:
        if not wide.affordable(view):
            return None
        space = wide.seen_space(view)
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
        references=REFERENCES,
        factor=factor,
    )


@published.register
def _muffliato_sgd(
    protocol: GossipDescent, observers: tuple[int, ...], *, progress: Progress | None = None
) -> Guarantee:
    """Theorem 6/11 as printed: the sum over iterations of Theorem 1 for the K rounds of each."""
    iterations = range(1 if protocol.is_static else protocol.iterations)
    factor = np.mean([muffliato.theorem12(protocol.rounds_of(t), observers, ids=True) for t in iterations], axis=0)
    return published_statement(protocol, factor, observers, ERRATA)
