"""What observers of gossip learn, exactly: the certified accountant (docs/guarantees.md has the proofs in full).

All losses are *factors*: multiples of the local-DP loss, μ_u² = factor_u · Δ²/σ². With σ = 1, write z⁰ = x + ζ with
Cov ζ = S = I + κL′ on the hidden parties, Q an orthonormal basis of the seen space (`krylov`), q_u its row for u.

No refresh.  The messages are an invertible function of Qᵀz⁰ = Qᵀx + Qᵀζ, a Gaussian with mean shift q_u Δ and covariance
    QᵀSQ, so factor_u = q_uᵀ (QᵀSQ)⁻¹ q_u. Plain gossip has S = I and this is the leverage score ‖q_u‖².

Refresh.  Fresh noise enters before every later send, so the order in time matters. Every response p_t(P)Cᵀ and
    r_t(P)Cᵀ, t < T, lies in span Q, hence equals Q·p_t(QᵀPQ)QᵀCᵀ: the whole observation model lives in k dimensions.
    The noise in the N = T·|boundary| messages is B z, B = [ S_Q^{1/2}X ; τ·(X shifted by one round) ; … ]ᵀ, and
    factor_u = a_uᵀ(BBᵀ)⁻¹a_u with a_u = (QX)_u. BBᵀ is never formed: B is reduced to a triangle R by QR, BBᵀ = RᵀR,
    factor_u = ‖R⁻ᵀa_u‖². That halves the digits lost. τ > 0 makes BBᵀ nonsingular (plain: BBᵀ ⪰ min(1, τ²)/4).

Rounding is added on the safe side: every returned value is an upper end, and `slack` says how wide the margin is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from netdp.accounting.published.muffliato import theorems
from netdp.accounting.table import certified, published, published_pairs
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy import Claim, Guarantee
from netdp.protocols import Gossip, response
from netdp.views import GossipView

from . import wide
from .krylov import CALM_TILT, SeenSpace, leverage, seen_space
from .statements import certified_statement, published_statement

UNIT = float(np.finfo(np.float64).eps)
# A result whose rounding margin is at most this much is called exact; a wider one an upper bound.
EXACT_BELOW = 1e-6
# Dense inverses for the fallback that reveals everything are affordable up to here.
_MAX_DENSE = 4000
# The covariance over time of more messages than this takes gigabytes and minutes.
_MAX_MESSAGES = 12_000
_COLUMNS_AT_ONCE = 16
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, eq=False)
class Factors:
    """Loss factors of all parties (nan at the observers), how large the rounding margin is, and what they claim."""

    values: FloatArray
    slack: float
    claim: Claim
    rank: int
    notes: tuple[str, ...] = ()


def factors(view: GossipView, progress: Progress | None = None) -> Factors:
    """The factors of one set of observers.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> view = GossipView.of(Gossip(graphs.hypercube(8), rounds=8, sigma=1.0), observers=[0])
    >>> factors(view).values[[0b11, 0b1111, 0b11111111]].round(4).tolist()      # 2/7, 4/35 and 1
    [0.2857, 0.1143, 1.0]
    """
    space = seen_space(view, progress)
    if view.protocol.refresh == 0 or view.protocol.rounds == 1:
        return _unrefreshed(view, space)
    # Fresh noise never helps the observers, so the loss without it is a bound too, where the exact one is out of reach.
    if view.protocol.rounds * len(view.boundary) > _MAX_MESSAGES:
        bound = _unrefreshed(view, space)
        note = "too many messages to follow the fresh noise through: bounded by the loss without it"
        return Factors(bound.values, bound.slack, Claim.UPPER, space.rank, (*bound.notes, note))
    result = _refreshed(view, space)
    if result.slack <= EXACT_BELOW:
        return result
    bound = _unrefreshed(view, space)
    note = "refresh too weak to resolve in floating point: bounded by the loss without it"
    values = np.fmin(result.values, bound.values)
    return Factors(values, bound.slack, Claim.UPPER, space.rank, (*bound.notes, note))


def _unrefreshed(view: GossipView, space: SeenSpace) -> Factors:
    notes: tuple[str, ...] = ()
    condition = 1.0 + 2.0 * view.protocol.masks * float(view.protocol.graph.degrees.max())
    # A tilt counts for more under strong masks: where it would spoil the result, long integers are worth their time.
    tilted = space.tilt > CALM_TILT and space.tilt * condition > EXACT_BELOW
    if space.doubtful or tilted:
        if wide.affordable(view):
            space = wide.seen_space(view)
            notes = ("what is seen was computed in 768-bit arithmetic",)
        if space.doubtful:
            return _everything_revealed(view, space.rank)
    if view.protocol.masks > 0:
        covariance = _masked_covariance(view, space.basis)
        values = _quadratic_form(_cholesky(covariance), space.basis)
        slack = (space.tilt + 8 * space.rank * UNIT) * condition
    else:
        values, slack = leverage(space.basis), space.tilt
    # A tilt of the space moves a factor by an absolute amount; parties out of reach stay at exactly zero.
    values = np.where(values > 0, values * (1 + slack) + space.tilt, 0.0)
    return _factors(view, values, slack, space.rank, notes)


def _refreshed(view: GossipView, space: SeenSpace) -> Factors:
    protocol, basis = view.protocol, space.basis
    T, b, k = protocol.rounds, len(view.boundary), space.rank
    step = np.empty((k, k))
    for columns in _slices(k, _COLUMNS_AT_ONCE):
        step[:, columns] = basis.T @ view.step(basis[:, columns])
    start = np.ascontiguousarray(basis[view.boundary].T)
    states = np.hstack(list(response(lambda x: step @ x, start, T, protocol.chebyshev)))
    impulses = np.hstack(list(response(lambda x: step @ x, start, T, protocol.chebyshev, fresh=True)))
    tau = np.sqrt(protocol.refresh / T)
    # Fold the noise of round j into the triangle of the later rounds, j = T−1 … 1; then the initial noise.
    triangle = np.empty((0, 0))
    for j in range(T - 1, 0, -1):
        triangle = _fold(tau * impulses[:, : (T - j) * b], triangle)
    root = _cholesky(_masked_covariance(view, basis)) if protocol.masks > 0 else np.eye(k)
    triangle = _fold(root @ states, triangle)

    reciprocal, _ = linalg.lapack.dtrcon(triangle)
    # Backward error of QR (Higham, Accuracy and Stability, Thm 19.4; constant as observed, with a safety factor) times
    # the condition of the triangle, and the Cholesky error of S_Q when there are masks.
    margin = 16.0 * T * b * UNIT / reciprocal if reciprocal > 0 else np.inf
    if protocol.masks > 0:
        margin += 8.0 * k * UNIT * (1.0 + 2.0 * protocol.masks * float(protocol.graph.degrees.max()))
    if not margin < 1.0:
        values = np.full(len(view.hidden), np.inf)
        return _factors(view, values, np.inf, k)
    values = np.empty(len(view.hidden))
    for rows in _slices(len(values), _ROWS_AT_ONCE):
        whitened = linalg.solve_triangular(triangle, (basis[rows] @ states).T, trans="T", check_finite=False)
        values[rows] = np.einsum("ij,ij->j", whitened, whitened)
    values = np.where(values > 0, (np.sqrt(values) * (1 + margin) + margin) ** 2, 0.0)
    return _factors(view, values, 2 * margin, k)


def _everything_revealed(view: GossipView, rank: int) -> Factors:
    """An upper bound: the observers are told every party's whole first message (masks stay secret)."""
    values = np.ones(len(view.hidden))
    if view.protocol.masks > 0 and len(values) <= _MAX_DENSE:
        everyone = np.zeros((len(values), int(view.hidden.sum())))
        everyone[view.hidden, np.arange(everyone.shape[1])] = 1.0
        values = _quadratic_form(_cholesky(_masked_covariance(view, everyone)), everyone) * (1 + EXACT_BELOW)
    distance = view.protocol.graph.distances(list(view.observers))
    values[distance > view.protocol.rounds] = 0.0
    note = "the seen space could not be decided: bounded by what observers of all first messages would learn"
    return Factors(_at_observers(view, values), EXACT_BELOW, Claim.UPPER, rank, (note,))


def _factors(view: GossipView, values: FloatArray, slack: float, rank: int, notes: tuple[str, ...] = ()) -> Factors:
    claim = Claim.EXACT if slack <= EXACT_BELOW else Claim.UPPER
    return Factors(_at_observers(view, np.minimum(values, 1.0)), slack, claim, rank, notes)


def _at_observers(view: GossipView, values: FloatArray) -> FloatArray:
    values[list(view.observers)] = np.nan
    return values


def _masked_covariance(view: GossipView, basis: FloatArray) -> FloatArray:
    """QᵀSQ with S = I + κL′."""
    k = basis.shape[1]
    covariance = np.eye(k)
    for columns in _slices(k, _COLUMNS_AT_ONCE):
        covariance[:, columns] += view.protocol.masks * (basis.T @ view.mask_laplacian(basis[:, columns]))
    return (covariance + covariance.T) / 2


def _cholesky(matrix: FloatArray) -> FloatArray:
    return np.asarray(linalg.cholesky(matrix, check_finite=False))  # upper: matrix = rootᵀ root


def _quadratic_form(root: FloatArray, basis: FloatArray) -> FloatArray:
    """q_uᵀ (rootᵀ root)⁻¹ q_u for every row q_u of the basis."""
    values = np.empty(len(basis))
    for rows in _slices(len(basis), _ROWS_AT_ONCE):
        whitened = linalg.solve_triangular(root, basis[rows].T, trans="T", check_finite=False)
        values[rows] = np.einsum("ij,ij->j", whitened, whitened)
    return values


def _fold(block: FloatArray, triangle: FloatArray) -> FloatArray:
    """The triangle of [block ; 0 | triangle]: one more round of noise, which also reaches one more round of messages."""
    width = block.shape[1]
    stacked = np.zeros((len(block) + len(triangle), width))
    stacked[: len(block)] = block
    if len(triangle):
        stacked[len(block) :, width - triangle.shape[1] :] = triangle
    return np.asarray(linalg.qr(stacked, mode="r", check_finite=False, overwrite_a=True)[0][:width])


def _slices(length: int, size: int) -> Iterator[slice]:
    for first in range(0, length, size):
        yield slice(first, min(first + size, length))


@certified.register
def _gossip(protocol: Gossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = factors(GossipView(protocol, observers), progress)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, result.notes)


@published.register
def _muffliato(protocol: Gossip, observers: tuple[int, ...]) -> Guarantee:
    return published_statement(protocol, theorems.theorem12(protocol, observers, ids=True), observers)


@published_pairs.register
def _muffliato_pairs(protocol: Gossip) -> Guarantee:
    return published_statement(protocol, theorems.theorem1_pairwise(protocol), "each")
