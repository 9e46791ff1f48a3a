"""What observers of gossip learn, exactly: the certified accountant in real numbers.

All losses are *factors*: multiples of the local-DP loss, μ_u² = factor_u·Δ²/σ². Without refresh a factor is q_uᵀ(QᵀSQ)⁻¹q_u, Q an
orthonormal basis of what is seen (`krylov`) and S the covariance of noise and masks; with refresh the whole observation model lives
in the dimensions of Q (`_Messages`), and where there are many messages one factorisation suffices (`Followed`). Rounding is added
on the safe side: every returned value is an upper end, and `slack` says how far it may lie above the value computed. Noise too
strong to compute with is bounded by weaker noise. Proofs: docs/proofs/gossip.md#leverage-scores, #masks and #refresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import linalg

from netdp.families.gossip.account import krylov
from netdp.families.gossip.account.bounds import told_in_parts
from netdp.families.gossip.account.krylov import CALM_TILT, SeenSpace, leverage, moved, seen_space
from netdp.families.gossip.account.statements import certified_statement
from netdp.families.gossip.descent import GossipRounds
from netdp.families.gossip.protocol import Gossip, response
from netdp.families.gossip.views import GossipView
from netdp.graphs.mixing import GossipMatrix
from netdp.numerics.arrays import UNIT, FloatArray, Progress
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.protocols.table import observer_seconds, plainest

_FOLLOWED_ROWS_AT_ONCE = 8_192


class Followed:
    """The fresh noise of refreshed gossip followed through all messages; what they lose at given masks and refresh."""

    def __init__(self, view: GossipView, basis: FloatArray, progress: Progress | None = None) -> None:
        protocol = view.protocol
        T, b, k = protocol.rounds, len(view.boundary), basis.shape[1]
        step, start = _in_the_space(view, basis)
        gamma = protocol.chebyshev
        states = list(response(step, start, T, gamma))
        impulses = states if gamma is None else list(response(step, start, T - 1, gamma, fresh=True))
        self.view, self.basis, self.count = view, basis, T * b
        if progress is not None:
            progress(1, 4)
        covariance = _covariance(impulses[: T - 1], gamma is None)
        size = float(np.abs(covariance).sum(axis=0).max())
        root = linalg.cholesky(covariance, lower=True, check_finite=False, overwrite_a=True)
        smallest = 0.25
        if gamma is not None:
            reciprocal = linalg.lapack.dpocon(root, size, uplo="L")[0]
            smallest = max(reciprocal * size / 10.0, ((2.0 - gamma) / (2.0 * gamma)) ** 2)
        self.condition = max(size / smallest, 1.0) if smallest > 0 else np.inf
        self._size, self._smallest = size, smallest
        if progress is not None:
            progress(2, 4)
        white = linalg.solve_triangular(root, np.hstack(states[1:]).T, lower=True, check_finite=False)[:, b:]
        if len(white) > k - b > 0:
            white = linalg.qr(white, mode="r", check_finite=False, overwrite_a=True)[0][: k - b]
        self.white = np.asarray(white)
        if progress is not None:
            progress(3, 4)

    def displaced(self, dropped: float, condition: float, refresh: float) -> float:
        """How far a factor may be off because the space is built of rounded vectors, `dropped` the largest size left out."""
        rounds, k = self.view.protocol.rounds, self.basis.shape[1]
        moved = float(rounds) ** 2 * (dropped + 16.0 * np.sqrt(k) * UNIT)
        if self.view.protocol.chebyshev is not None:
            moved *= 4.0 * float(rounds) ** 2
        tau = np.sqrt(refresh / rounds)
        if not (tau > 0 and self._smallest > 0):
            return np.inf
        with np.errstate(over="ignore"):
            responses = np.sqrt(condition / self._smallest) / tau
            return float(moved * (responses + 2.0 * np.sqrt(self._size) / self._smallest))

    def factors(self, root: FloatArray | None, masked: float, refresh: float) -> tuple[FloatArray, FloatArray]:
        """Upper ends of all factors, and the same without their margins; `root` is Λ (None: 1), `masked` its relative error."""
        view, basis, k, b = self.view, self.basis, self.basis.shape[1], len(self.view.boundary)
        tau = np.sqrt(refresh / view.protocol.rounds)
        unit = 32.0 * (self.count + k) * UNIT
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of refresh next to nothing
            seen = (self.white if root is None else self.white @ root[b:, b:]) / tau
            rows, columns = np.abs(seen).sum(axis=1).max(initial=0.0), np.abs(seen).sum(axis=0).max(initial=0.0)
            lost = unit * self.condition / 2 + 2 * unit * np.sqrt(self.condition) * (1 + np.sqrt(rows * columns))
        triangle = None
        if k > b and lost < 1:
            triangle = linalg.qr(np.vstack([np.eye(k - b), seen]), mode="r", check_finite=False, overwrite_a=True)[0]
            triangle = triangle[: k - b]
        upper, computed = np.empty(len(basis)), np.empty(len(basis))
        for first in range(0, len(basis), _FOLLOWED_ROWS_AT_ONCE):
            part = slice(first, first + _FOLLOWED_ROWS_AT_ONCE)
            w = basis[part].T
            if root is not None:
                w = linalg.solve_triangular(root, w, lower=True, check_finite=False)
            whole = np.einsum("ij,ij->j", w, w)
            if triangle is not None:
                left = linalg.solve_triangular(triangle, w[b:], trans="T", check_finite=False)
                hidden = np.einsum("ij,ij->j", left, left)
                sure = np.maximum(np.sqrt(hidden) * (1 - lost) - masked, 0.0) ** 2
            else:  # anything between nothing and all of it
                hidden, sure = np.einsum("ij,ij->j", w[b:], w[b:]), np.zeros(len(whole))
            computed[part] = whole - hidden
            upper[part] = np.where(whole > 0, whole * (1 + 16 * k * UNIT) / (1 - masked) - sure, 0.0)
        return np.maximum(upper, 0.0), computed


def _in_the_space(view: GossipView, basis: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """A round of gossip, and the parties that send to observers, in the k dimensions of the seen space."""
    k = basis.shape[1]
    step = np.empty((k, k))
    for columns in _slices(k, _COLUMNS_AT_ONCE):
        step[:, columns] = basis.T @ view.step(basis[:, columns])
    return (lambda x: step @ x), np.ascontiguousarray(basis[view.boundary].T)


def _covariance(impulses: list[FloatArray], plain: bool) -> FloatArray:
    """F: the covariance of the fresh noise in the messages of rounds 1, 2, …, for τ = 1, from the responses r₀, r₁, … to it.

    Its block for the rounds s and t is Σ_{1≤j≤min(s,t)} r_{s−j}ᵀ r_{t−j}: one more term than the block before it on the diagonal.
    """
    count, b = len(impulses), impulses[0].shape[1]
    products: FloatArray
    if plain:  # rᵀ_s r_t depends on s + t alone
        moments = [impulses[i // 2].T @ impulses[i - i // 2] for i in range(2 * count - 1)]
    else:
        together = np.hstack(impulses)
        products = together.T @ together
    covariance = np.empty((count * b, count * b))
    for s in range(count):
        for t in range(s + 1):
            block = moments[s + t] if plain else products[s * b : (s + 1) * b, t * b : (t + 1) * b]
            if t:
                block = block + covariance[(s - 1) * b : s * b, (t - 1) * b : t * b]
            covariance[s * b : (s + 1) * b, t * b : (t + 1) * b] = block
            if s != t:
                covariance[t * b : (t + 1) * b, s * b : (s + 1) * b] = block.T
    return covariance


# A result whose rounding margin is at most this much is called exact; a wider one an upper bound.
EXACT_BELOW = 1e-6

# Dense inverses for the fallback that reveals everything are affordable up to here.
_MAX_DENSE = 4000

# The covariance over time of more messages than this takes gigabytes and minutes.
_MAX_MESSAGES = 12_000

# Multiplications for the triangle over time, some 10¹⁰ a second: above the first `Followed` is quicker; above the second the
# triangle is not tried even where it would lose fewer digits.
_FEW, _MANY = 1e9, 5e10

# Seconds that following observers exactly may take, at so many multiplications a second; beyond it a bound is returned at once.
PATIENCE, _PER_SECOND = 120.0, 4e9

_COLUMNS_AT_ONCE = 16

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, eq=False)
class Factors:
    """Loss factors of all parties (nan at the observers), how far they may lie above what was computed, what they claim.

    `slack` is absolute: a factor is at most 1, so it is a share of the local-DP loss.
    """

    values: FloatArray
    slack: float
    claim: Claim
    rank: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Bound:
    """Upper ends of all factors, and in words how they were found ("" if from the protocol as it is)."""

    values: FloatArray
    computed: FloatArray  # the same before rounding was added
    slack: float  # how far the first may lie above the second, whatever the factors
    note: str = ""


def factors(view: GossipView, progress: Progress | None = None, patience: float = PATIENCE) -> Factors:
    """The factors of one set of observers; a bound at once if the exact ones are estimated to take more than `patience` seconds.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> view = GossipView.of(Gossip(graphs.hypercube(8), rounds=8, sigma=1.0), observers=[0])
    >>> factors(view).values[[0b11, 0b1111, 0b11111111]].round(4).tolist()      # 2/7, 4/35 and 1
    [0.2857, 0.1143, 1.0]
    """
    if (seconds := float(expected_seconds(view.protocol, len(view.boundary)))) > patience:
        return _everything_revealed(view, 0, _too_much(view, seconds))
    space = seen_space(view, progress)
    if view.protocol.refresh == 0 or view.protocol.rounds == 1:
        return _unrefreshed(view, space, progress)
    if space.doubtful and isinstance(view.protocol.mixing, GossipMatrix):
        # a direction may be missing that weights of one's own make as faint as the fresh noise
        space = krylov.seen_space_wide(view, progress) if krylov.affordable(view) else space
        if space.doubtful:
            return replace(_unrefreshed(view, space), claim=Claim.UPPER)
    # Fresh noise never helps the observers, so the loss without it is a bound too, where the exact one is out of reach.
    if view.protocol.rounds * len(view.boundary) > _MAX_MESSAGES:
        bound = _unrefreshed(view, space)
        note = "too many messages to follow the fresh noise through: bounded by the loss without it"
        return Factors(bound.values, bound.slack, Claim.UPPER, space.rank, (*bound.notes, note))
    work = _work(view, space.rank)
    messages: _Messages | _ManyMessages
    messages = _ManyMessages(view, space, progress) if work > _FEW else _Messages(view, space)
    result = messages.bound(view.protocol.masks, view.protocol.refresh)
    if result.slack > EXACT_BELOW and _FEW < work <= _MANY:
        messages = _Messages(view, space)
        result = messages.bound(view.protocol.masks, view.protocol.refresh)
    if result.slack <= EXACT_BELOW:
        return _factors(view, result.values, result.slack, space.rank, _with(space.note))
    return _unresolved(view, space, messages, result)


def expected_seconds(protocol: Gossip | GossipRounds, links: npt.ArrayLike) -> FloatArray:
    """How long `factors` takes for observers with so many neighbours, by order of magnitude.

    Building k directions in n dimensions takes 4nk² multiplications; masks and refresh add theirs.

    >>> from netdp import graphs
    >>> expected_seconds(Gossip(graphs.ring(20_000), rounds=10, sigma=1.0), [10, 100, 1000]).round(1).tolist()
    [0.2, 20.0, 2000.0]
    """
    b, n = np.asarray(links, dtype=np.float64), float(protocol.graph.n)
    messages = b * protocol.rounds
    k = np.minimum(n, messages)
    work = np.where((k > b) & (protocol.rounds > 1), 4.0 * n * k**2, 0.0)
    if protocol.masks > 0:
        work += 2 * n * k**2 + k**3
    if protocol.refresh > 0 and protocol.rounds > 1:
        followed = messages**3 / 3 + 2 * messages**2 * k + n * k**2
        work += np.where(messages <= _MAX_MESSAGES, followed, 0.0)
    return np.asarray(work / _PER_SECOND)


@observer_seconds.register
def _seconds(protocol: Gossip, links: npt.ArrayLike) -> FloatArray:
    return expected_seconds(protocol, links)


@plainest.register
def _plain(protocol: Gossip) -> tuple[str, Gossip]:
    """Without masks and fresh noise."""
    return "plain gossip", protocol.replace(refresh=0.0, masks=0.0)


def _too_much(view: GossipView, seconds: float) -> str:
    time = f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
    return (
        f"following {len(view.boundary):,} neighbours through {view.protocol.rounds} rounds exactly takes some {time}: bounded by "
        "what observers of all first messages would learn; account for fewer rounds or for a less connected observer, or wait for "
        "it, netdp.families.gossip.account.exact.factors(view, patience=…)"
    )


def _work(view: GossipView, rank: int) -> float:
    """Multiplications that it takes `_Messages` to fold the noise of all rounds into one triangle."""
    messages = float(view.protocol.rounds * len(view.boundary))
    return view.protocol.rounds * messages**2 * (rank / 3 + messages / 4)


def _unrefreshed(view: GossipView, space: SeenSpace, progress: Progress | None = None) -> Factors:
    notes: tuple[str, ...] = ()
    condition = mask_condition(view, view.protocol.masks)
    # A tilt counts for more under strong masks: where it would spoil the result, long integers are worth their time.
    tilted = space.tilt > CALM_TILT and space.tilt * condition > EXACT_BELOW
    if tilted and not space.doubtful and view.protocol.masks > 0:
        result = _masked_as_moved(view, space)
        if result is not None:
            return _factors(view, result.values, result.slack, space.rank)
    if space.doubtful or tilted:
        if krylov.affordable(view):
            space = krylov.seen_space_wide(view, progress)
            notes = _with("what is seen was computed in 768-bit arithmetic", space.note)
        if space.doubtful:
            return _roughly(view, space)
    if view.protocol.masks > 0:
        result = _masked(view, space.basis, space.tilt)
        return _factors(view, result.values, result.slack, space.rank, notes, result.note)
    # A tilt of the space moves a factor by an absolute amount; parties out of reach stay at exactly zero.
    values = leverage(space.basis)
    values = np.where(values > 0, values * (1 + space.tilt) + space.tilt, 0.0)
    return _factors(view, values, 2 * space.tilt, space.rank, notes)


def _masked(view: GossipView, basis: FloatArray, tilt: float) -> Bound:
    """q_uᵀ(QᵀSQ)⁻¹q_u with its margin, for masks κ; where that margin is too wide, the best of what smaller κ′ give.

    The computed v is off by at most a relative m, the error of the Cholesky factorisation and of a tilted space times the
    condition of S, and by the tilt itself: v(1 + m) + tilt is returned, at most m + tilt above v ≤ 1.
    A smaller κ′ has a smaller margin and a larger loss; some are tried, and for each party the smallest result counts.
    """
    masks = view.protocol.masks
    unit = tilt + 16 * basis.shape[1] * UNIT
    fine = strongest_masks(view, masks, (EXACT_BELOW - tilt) / unit)
    bounds = list[Bound]()
    for strength in dict.fromkeys(min(fine * wider, masks) for wider in (1, 10, 100, 1000)):
        try:
            values = _quadratic_form(_cholesky(_masked_covariance(view, basis, strength)), basis)
        except linalg.LinAlgError:  # cannot happen at the first of them, whose margin is small
            break
        relative = unit * mask_condition(view, strength)
        upper = np.where(values > 0, values * (1 + relative) + tilt, 0.0)
        note = "" if strength == masks else f"at masks κ = {strength:.3g}"
        bounds.append(Bound(upper, values, relative + tilt, note))
    if fine == masks:
        return bounds[0]
    best = _smallest(bounds)
    return replace(best, note=f"masks κ = {masks:g} too strong for floating point: {_how(best, 'κ')}")


def _roughly(view: GossipView, space: SeenSpace) -> Factors:
    """A bound where the seen space is in doubt: as if all first messages were revealed, or with a tilt that is not small."""
    revealed = _everything_revealed(view, space.rank)
    if space.rough is None:
        return revealed
    tilted = _unrefreshed(view, space.rough)
    note = f"what is seen is known up to a tilt of {space.rough.tilt:.1e}, which is added"
    values = np.fmin(tilted.values, revealed.values)
    return Factors(values, tilted.slack, Claim.UPPER, space.rough.rank, (note, *tilted.notes))


def _masked_as_moved(view: GossipView, space: SeenSpace) -> Bound | None:
    """The masked loss with what a tilt of the space does to it measured instead of bounded; None if that leaves it too wide.

    The tilt times the condition of S is the most that a tilt can do. What it does is measured as the tilt itself is (`krylov`): the
    factors are computed again for a space built from perturbed vectors, and what that moves is scaled down to rounding with a
    factor 200 to spare.
    """
    masks = view.protocol.masks
    relative = 16 * space.rank * UNIT * mask_condition(view, masks)
    if relative > EXACT_BELOW / 2:
        return None

    def lost(basis: FloatArray) -> FloatArray:
        return _quadratic_form(_cholesky(_masked_covariance(view, basis, masks)), basis)

    values = lost(space.basis)
    tilt = max(space.tilt, moved(view, space.ranks, lambda basis: lost(basis) - values))
    if relative + tilt > EXACT_BELOW:
        return None
    return Bound(np.where(values > 0, values * (1 + relative) + tilt, 0.0), values, relative + tilt)


class _Messages:
    """All messages of refreshed gossip in the k dimensions of the seen space; what they lose at given masks and refresh."""

    def __init__(self, view: GossipView, space: SeenSpace) -> None:
        protocol, basis = view.protocol, space.basis
        # What was dropped may do this to all messages together (`Followed.displaced`).
        self._dropped = float(protocol.rounds) ** 2 * space.dropped
        T, b = protocol.rounds, len(view.boundary)
        step, start = _in_the_space(view, basis)
        self._view, self._basis, self._count = view, basis, T * b
        self._states = np.hstack(list(response(step, start, T, protocol.chebyshev)))
        impulses = np.hstack(list(response(step, start, T, protocol.chebyshev, fresh=True)))
        # Fold the noise of round j into the triangle of the later rounds, j = T−1 … 1; `bound` adds the initial noise.
        tau = np.sqrt(protocol.refresh / T)
        self._fresh = np.empty((0, 0))
        for j in range(T - 1, 0, -1):
            self._fresh = _fold(tau * impulses[:, : (T - j) * b], self._fresh)

    def strongest(self) -> tuple[float, float]:
        """Masks and refresh at which to start: stronger ones have a margin that is no longer small."""
        view, k = self._view, self._basis.shape[1]
        masks = strongest_masks(view, view.protocol.masks, 100 * EXACT_BELOW / (16 * k * UNIT))
        # The first message has noise 1, the later ones about τ, so τ is at most the condition of the triangle.
        tau = EXACT_BELOW / (4 * 32 * self._count * UNIT)
        return masks, min(view.protocol.refresh, view.protocol.rounds * max(tau, 1.0) ** 2)

    def bound(self, masks: float, refresh: float) -> Bound:
        """Upper ends of the factors if masks and refresh had these values; slack inf (and no values) if out of reach.

        For a computed v and a margin m, (√v(1 + m) + m)² is returned, at most 4m(1 + m) above v: the slack.
        """
        view, basis, k = self._view, self._basis, self._basis.shape[1]
        everything = np.full(len(view.hidden), np.inf)
        hopeless = Bound(everything, everything, np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            margin, root = 0.0, np.eye(k)
            if masks > 0:
                margin = 16.0 * k * UNIT * mask_condition(view, masks)  # of the Cholesky factorisation
                if not margin < 1.0:
                    return hopeless
                root = _cholesky(_masked_covariance(view, basis, masks))
            weaker = np.sqrt(refresh / view.protocol.refresh)
            triangle = _fold(root @ self._states, self._fresh if weaker == 1 else weaker * self._fresh)
        # Backward error of QR (Higham, Accuracy and Stability, Thm 19.4; constant as observed, with a safety factor) and what was
        # dropped of the space, times the condition of the triangle.
        reciprocal = linalg.lapack.dtrcon(triangle)[0] if np.isfinite(triangle).all() else 0.0
        margin += (32.0 * self._count * UNIT + self._dropped) / reciprocal if reciprocal > 0 else np.inf
        if not margin < 1.0:
            return hopeless
        values = np.empty(len(view.hidden))
        for rows in _slices(len(values), _ROWS_AT_ONCE):
            whitened = linalg.solve_triangular(triangle, (basis[rows] @ self._states).T, trans="T", check_finite=False)
            values[rows] = np.einsum("ij,ij->j", whitened, whitened)
        upper = np.where(values > 0, (np.sqrt(values) * (1 + margin) + margin) ** 2, 0.0)
        return Bound(upper, values, 4 * margin * (1 + margin))


class _ManyMessages:
    """The same as `_Messages`, from one factorisation of the fresh noise (`Followed`)."""

    def __init__(self, view: GossipView, space: SeenSpace, progress: Progress | None) -> None:
        self._view, self._space, self._basis = view, space, space.basis
        self._followed = Followed(view, space.basis, progress)

    def strongest(self) -> tuple[float, float]:
        """Masks and refresh at which to start; no refresh is too strong here."""
        protocol, k = self._view.protocol, self._basis.shape[1]
        return strongest_masks(self._view, protocol.masks, EXACT_BELOW / (4 * 16 * k * UNIT)), protocol.refresh

    def bound(self, masks: float, refresh: float) -> Bound:
        """Upper ends of the factors if masks and refresh had these values."""
        margin, root, condition = 0.0, None, mask_condition(self._view, masks)
        tilted = np.inf if self._space.doubtful else self._space.tilt * (1.0 + condition)
        tilted = min(tilted, self._followed.displaced(self._space.dropped, condition, refresh))
        if masks > 0:
            margin = 16.0 * self._basis.shape[1] * UNIT * condition
            if not margin < 0.01:
                everything = np.full(len(self._view.hidden), np.inf)
                return Bound(everything, everything, np.inf)
            root = _cholesky(_masked_covariance(self._view, self._basis, masks)).T
        upper, computed = self._followed.factors(root, margin, refresh)
        upper = np.where(upper > 0, upper + tilted, 0.0)
        return Bound(upper, computed, max(float((upper - computed).max(initial=0.0)), margin))


def _unresolved(view: GossipView, space: SeenSpace, messages: _Messages | _ManyMessages, direct: Bound) -> Factors:
    """The best of several bounds where rounding drowns the refreshed loss, and which of its noises is to blame.

    Weaker noise than there is gives a bound (docs/proofs/gossip.md#masks). Masks are taken away first: if that helps, they were too
    strong. If not, refresh is lowered to fresh noise as large as the initial one: if that helps, it was too strong. If
    neither helps, it is too weak, or there are too many messages.
    """
    protocol = view.protocol
    masks, refresh = messages.strongest()
    even = float(protocol.rounds)  # the refresh at which fresh noise is as large as the initial one
    unmasked = messages.bound(0.0, refresh)
    while unmasked.slack > EXACT_BELOW and refresh > even:
        refresh = max(refresh / 100, even)
        unmasked = messages.bound(0.0, refresh)
    bounds = [direct]
    if unmasked.slack <= EXACT_BELOW:
        weaker = messages.bound(masks, refresh)
        while weaker.slack > EXACT_BELOW and masks > 0:
            bounds.append(_weakened(weaker, protocol, masks, refresh))
            masks = masks / 10 if masks > 10 else 0.0
            weaker = messages.bound(masks, refresh)
        bounds.append(_weakened(weaker, protocol, masks, refresh))
        blame = [f"masks κ = {protocol.masks:g}"] if masks < protocol.masks else []
        blame += [f"refresh r = {protocol.refresh:g}"] if refresh < protocol.refresh else []
        reason = f"{' and '.join(blame)} too strong for floating point"
    elif protocol.refresh < even and messages.bound(0.0, even).slack <= EXACT_BELOW:
        reason = f"refresh r = {protocol.refresh:g} too weak to resolve in floating point"
    else:
        reason = f"{protocol.rounds * len(view.boundary)} messages are too many to follow the fresh noise through"
    bound = _unrefreshed(view, space)
    without = "without refresh" + "".join(f" ({note})" for note in bound.notes)
    best = _smallest([*bounds, Bound(bound.values, bound.values - bound.slack, bound.slack, without)])
    values = _at_observers(view, np.minimum(best.values, 1.0))
    return Factors(values, best.slack, Claim.UPPER, space.rank, _with(f"{reason}: {_how(best, 'κ and r')}", space.note))


def _weakened(bound: Bound, protocol: Gossip | GossipRounds, masks: float, refresh: float) -> Bound:
    """The bound with words that say at which weaker noise it was evaluated."""
    changed = [f"masks κ = {masks:.3g}"] if masks < protocol.masks else []
    changed += [f"refresh r = {refresh:.3g}"] if refresh < protocol.refresh else []
    return replace(bound, note=f"at {' and '.join(changed)}" if changed else "")


def _how(bound: Bound, noise: str) -> str:
    if not bound.note:
        return f"the rounding margin is {bound.slack:.1e}"
    return f"evaluated {bound.note}; the loss only falls with {noise}"


def _smallest(bounds: list[Bound]) -> Bound:
    """For each party the smallest of several bounds, with the words of those that are the smallest for somebody."""
    table = np.stack([bound.values for bound in bounds])
    values = np.fmin.reduce(table)
    first = np.argmax(table == values, axis=0)
    computed = np.choose(first, [bound.computed for bound in bounds])
    seen = (values > 0) & np.isfinite(values)
    notes = dict.fromkeys(bounds[i].note or "as it is" for i in np.unique(first[seen]))
    if list(notes) == ["as it is"]:
        notes = {}
    slack = float((values[seen] - computed[seen]).max(initial=0.0))
    words = " or ".join(notes) + (", whichever is smaller" if len(notes) > 1 else "")
    return Bound(values, computed, slack, words)


def strongest_masks(view: GossipView, masks: float, condition: float) -> float:
    """The largest κ′ ≤ `masks` for which the condition number of S = I + κ′L′ is surely at most `condition`."""
    degree = float(view.protocol.graph.degrees.max(initial=0))
    return min(masks, max(condition - 1.0, 0.0) / (2.0 * degree)) if degree else masks


def mask_condition(view: GossipView, masks: float) -> float:
    """A bound on the condition number of S = I + κL′, whose eigenvalues lie between 1 and 1 + 2κ·(largest degree)."""
    return 1.0 + 2.0 * masks * float(view.protocol.graph.degrees.max(initial=0))


def _with(*notes: str) -> tuple[str, ...]:
    return tuple(note for note in notes if note)


def _everything_revealed(view: GossipView, rank: int, why: str = "") -> Factors:
    """An upper bound: the observers are told every party's whole first message (masks stay secret)."""
    values, slack, weaker = np.ones(len(view.hidden)), EXACT_BELOW, ""
    if view.protocol.masks > 0 and len(values) > _MAX_DENSE:
        values = told_in_parts(view.protocol.graph, view.observers, view.protocol.masks)
    elif view.protocol.masks > 0:
        everyone = np.zeros((len(values), int(view.hidden.sum())))
        everyone[view.hidden, np.arange(everyone.shape[1])] = 1.0
        result = _masked(view, everyone, 0.0)
        values, slack, weaker = result.values * (1 + EXACT_BELOW), slack + result.slack, result.note
    distance = view.protocol.graph.distances(list(view.observers))
    values[distance > view.protocol.rounds] = 0.0
    note = why or "the seen space could not be decided: bounded by what observers of all first messages would learn"
    return Factors(_at_observers(view, np.minimum(values, 1.0)), slack, Claim.UPPER, rank, _with(note, weaker))


def _factors(
    view: GossipView, values: FloatArray, slack: float, rank: int, notes: tuple[str, ...] = (), weaker: str = ""
) -> Factors:
    """`weaker` says in words if the values are those of a protocol with weaker noise: then they are only a bound."""
    claim = Claim.EXACT if slack <= EXACT_BELOW and not weaker else Claim.UPPER
    return Factors(_at_observers(view, np.minimum(values, 1.0)), slack, claim, rank, _with(*notes, weaker))


def _at_observers(view: GossipView, values: FloatArray) -> FloatArray:
    values[list(view.observers)] = np.nan
    return values


def _masked_covariance(view: GossipView, basis: FloatArray, masks: float) -> FloatArray:
    """QᵀSQ with S = I + κL′, κ = `masks`."""
    k = basis.shape[1]
    covariance = np.eye(k)
    for columns in _slices(k, _COLUMNS_AT_ONCE):
        covariance[:, columns] += masks * (basis.T @ view.mask_laplacian(basis[:, columns]))
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


def exact_loss(protocol: Gossip, observers: tuple[int, ...], progress: Progress | None = None) -> Guarantee:
    """What colluding observers learn about every other party, in real numbers; `grid` enters it in the table."""
    result = factors(GossipView(protocol, observers), progress)
    return certified_statement(protocol, result.values, result.claim, result.slack, result.notes)
