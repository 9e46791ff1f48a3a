"""Protocols stated as matrices, y = A x + B z: their loss, attack, calibration, run and error, all from the same matrices.

With M = A_uᵀ(BBᵀ)⁺A_u and contributions moved by at most Δ each the view is μ-Gaussian DP for u with μ² = Δ²·Σ|M_ij|,
exactly for one contribution and where no entry of M is negative; a column of A_u outside the range of B shows u's value
without noise. Exact where no contribution reacts to a hidden state. Rounding is added, and what floating point cannot
decide is refused. Proof: docs/proofs/linear.md#linear-gaussian.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.audit.attack import Attack, System, attacks
from netdp.audit.linear import _NUMBERS, LinearAttack, solved
from netdp.errors import Unsupported
from netdp.families.linear.protocol import LinearGaussianView, LinearProtocol
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.values import party_values
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import ExpectedError, predictions
from netdp.protocols.alternatives import curator, local
from netdp.protocols.calibration import calibrations, checked_target, least_sigma
from netdp.protocols.simulation import Normal, Run, Values, execute
from netdp.protocols.table import certified
from netdp.protocols.views import Seen, Transcript, realised

REFERENCES = (
    "netdp, docs/proofs/linear.md#linear-gaussian: exact loss of linear-Gaussian views.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)

local.refuse(
    LinearGaussianView,
    LinearProtocol,
    why="the matrices do not say what a party would publish on its own; compare with netdp.Local(n, sigma=…)",
)

curator.refuse(
    LinearGaussianView,
    LinearProtocol,
    why="the matrices do not say how much noise a curator would add; compare with netdp.Central(n, sigma=…)",
)

# Relative to the largest singular value of B: below _ZERO rounding, above _CLEAR a real noise.
_ZERO, _CLEAR = 1e-13, 1e-8

# A margin up to this is called exact.
_EXACT = 1e-6


@certified.register_with_subclasses
def _certify_linear(protocol: LinearGaussianView | LinearProtocol, observers: tuple[int, ...]) -> Guarantee:
    view = protocol.view()
    energy, exact, slack = party_energy(view.seen_by(observers), view.n)
    mu = np.sqrt(energy) * view.sensitivity
    sigma = getattr(protocol, "sigma", None)
    factor = None if sigma is None else np.where(np.isinf(mu), np.inf, mu**2) * (sigma / view.sensitivity) ** 2
    return Guarantee(
        curve=GaussianCurve(mu),
        adjacency=Adjacency.REPLACE,
        claim=Claim.EXACT if exact and slack <= _EXACT else Claim.UPPER,
        assumptions=(
            f"two values of one contribution differ by at most {view.sensitivity:g} in L2 norm (clip before the noise is added)",
            "messages are what the matrices say, readable by the parties named as readers and by nobody else",
            "each noise is known to the parties named as knowing it and to nobody else; noises are independent",
            "all parties follow the protocol; the observers pool their own data, noise and all they read",
            "values are fixed before the first message and do not react to messages",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REFERENCES,
        factor=factor,
        slack=slack,
    )


def party_energy(view: Seen, n: int) -> tuple[FloatArray, bool, float]:
    """μ_u² for Δ = 1 and every party, whether it is attained for all of them, and the rounding margin, already added."""
    if len(view.data) == 0:
        energy = np.zeros(n)
        energy[list(view.observers)] = np.nan
        return energy, True, 0.0
    whitened, visible, condition = _whitened(view)
    slack = 2.5 * 8 * sum(view.noise.shape) * UNIT * condition
    owners = np.arange(n) if view.owners is None else view.owners
    energy, exact = np.zeros(n), True
    for u in range(n):
        mine = np.flatnonzero(owners == u)
        M = whitened[:, mine].T @ whitened[:, mine]
        energy[u] = np.inf if visible[mine].any() else float(np.abs(M).sum()) * (1 + slack)
        exact = exact and (len(mine) <= 1 or bool((-_EXACT * np.abs(M).max(initial=0.0) <= M).all()))
    energy[list(view.observers)] = np.nan
    return energy, exact, slack


def shift_energy(view: Seen) -> FloatArray:
    """A_uᵀ(BBᵀ)⁺A_u for every column: μ² for Δ = 1, no margin added. inf where a value shows without noise, nan at observers.

    >>> A, B = np.array([[0.0, 1, 0], [0, 1, 1]]), np.array([[2.0, 0], [2, 0]])   # party 2 adds no noise of its own
    >>> shift_energy(Seen((0,), A, B)).round(9).tolist()
    [nan, 0.25, inf]
    """
    whitened, visible, _ = _whitened(view)
    energy = (whitened**2).sum(axis=0)
    energy[visible] = np.inf
    energy[list(view.observers)] = np.nan
    return np.asarray(energy)


def _whitened(view: Seen) -> tuple[FloatArray, FloatArray, float]:
    """(BBᵀ)^{+1/2}A, which columns of A leave the range of B, and the condition number of B on its range."""
    loudest = np.abs(view.noise).max(axis=1, initial=0.0)
    bare = loudest == 0
    visible = (view.data[bare] != 0).any(axis=0)
    if bare.all():
        return np.zeros((0, view.data.shape[1])), visible, 1.0
    unit = -np.frexp(loudest[~bare])[1][:, None]
    data, noise = np.ldexp(view.data[~bare], unit), np.ldexp(view.noise[~bare], unit)
    left, sizes, _ = np.linalg.svd(noise, full_matrices=True)
    largest = sizes.max(initial=0.0)
    if np.any((sizes > _ZERO * largest) & (sizes < _CLEAR * largest)):
        faint = float(sizes[sizes > _ZERO * largest].min() / largest)
        raise Unsupported(
            f"a combination of messages carries noise of relative size {faint:.1e}: too faint to tell from none in "
            "floating point; for gossip netdp.account works without writing the view out"
        )
    noisy = int(np.count_nonzero(sizes > _ZERO * largest))
    coordinates = left.T @ data
    whitened = coordinates[:noisy] / sizes[:noisy, None]
    outside = np.linalg.norm(coordinates[noisy:], axis=0)
    rounding = largest * np.linalg.norm(whitened, axis=0) + np.linalg.norm(data, axis=0)
    visible |= outside > 8 * sum(noise.shape) * UNIT * rounding
    return whitened, visible, float(sizes[0] / sizes[noisy - 1])


@dataclass(frozen=True, eq=False)
class MatrixAttack(Attack):
    """The same on a protocol that is stated as matrices: what it says is seen is drawn, and judged."""

    words: ClassVar[str] = LinearAttack.words
    gaussian: ClassVar[bool] = True
    most: ClassVar[int] = 400_000
    seen: Seen
    target: int
    sensitivity: float

    @cached_property
    def size(self) -> int:
        """As many columns as fit into memory."""
        return int(np.clip(_NUMBERS // max(sum(self.seen.noise.shape), 1), 64, 1 << 14))

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        data = self.seen.data
        owners = np.arange(data.shape[1]) if self.seen.owners is None else self.seen.owners
        mine = data[:, owners == self.target]
        w, d, _ = solved(mine, self.seen.noise, self.sensitivity)
        return w, mine @ d * self.sensitivity / 2, self.seen.noise.T @ w

    def batch(self, within: bool, seed: int) -> FloatArray:
        w, shift, noise = self._solved
        z = np.random.default_rng(seed).standard_normal((len(noise), self.size))
        return np.asarray((1.0 if within else -1.0) * float(w @ shift) + noise @ z)


@attacks.register_with_subclasses
def _matrices(
    protocol: LinearGaussianView | LinearProtocol, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    view = protocol.view()
    return [MatrixAttack(view.seen_by(observers.parties), target, view.sensitivity)]


calibrations.refuse(
    LinearGaussianView, why="its matrices are numbers already; calibrate the LinearProtocol that makes them"
)


@calibrations.register_with_subclasses
def _calibrate_linear(
    protocol: LinearProtocol, epsilon: float, delta: float, *, observers: Any = None
) -> LinearProtocol:
    """Against every single party, or each of `observers`."""
    if "sigma" not in {f.name for f in dataclasses.fields(protocol)}:  # type: ignore[arg-type]
        raise Unsupported(f"{type(protocol).__name__} has no field sigma to calibrate")
    epsilon, delta = checked_target(epsilon, delta)
    who = (
        range(protocol.n) if observers is None else [observers] if isinstance(observers, int | str) else list(observers)
    )

    def worst_mu(sigma: float) -> float:
        noisier = protocol.replace(sigma=sigma)
        return max(float(np.nanmax(account(noisier, [v]).mu)) for v in who)

    start = float(protocol.sigma)  # type: ignore[attr-defined]
    return protocol.replace(sigma=least_sigma(worst_mu, start, worst_mu(start), epsilon, delta))


def _read(protocol: LinearGaussianView | LinearProtocol) -> tuple[LinearGaussianView, FloatArray]:
    """The view, and how the answer is read off it."""
    view = protocol.view()
    if view.reading is None:
        raise Unsupported(f"{type(protocol).__name__} does not say how the answer is read: state reading= in its view")
    return view, view.reading


@execute.register_with_subclasses
def _run_linear(
    protocol: LinearGaussianView | LinearProtocol, values: Values, seed: int, normal: Normal, record: Any
) -> Run:
    view, reading = _read(protocol)
    if record is not None:
        raise Unsupported(f"{type(protocol).__name__}: what observers see is view.seen_by(observers) of its matrices")
    data = values.of(view)
    messages = view.data @ data[view.owners] + view.noise @ normal((view.noise.shape[1], data.shape[1]))
    answers = np.broadcast_to(reading @ messages, (view.n, data.shape[1]))
    return Run(answers, Transcript.empty(view.n), seed, protocol)


@predictions.register_with_subclasses
def _predict_linear(
    protocol: LinearGaussianView | LinearProtocol, values: npt.ArrayLike | None = None
) -> ExpectedError:
    view, reading = _read(protocol)
    assert view.owners is not None
    n = view.n
    weights = np.zeros((len(reading), n))
    np.add.at(weights.T, view.owners, (reading @ view.data).T)
    away = weights - 1.0 / n  # what is read, less the mean of the parties' values
    claim = Claim.EXACT
    if values is None:
        # the largest |Σ a_u x_u| over x in [0, Δ]ⁿ: all with a_u > 0 at Δ, or all with a_u < 0
        drift = (np.abs(away.sum(axis=1)) + np.abs(away).sum(axis=1)) / 2 * view.sensitivity
        mixing, columns = float((drift**2).mean()), 1
        claim = Claim.UPPER if mixing and len(drift) > 1 else Claim.EXACT  # every party has worst values of its own
    else:
        data = party_values(values, n)
        mixing, columns = float(((away @ data) ** 2).sum(axis=1).mean()), data.shape[1]
    noise = float(((reading @ view.noise) ** 2).sum(axis=1).mean())
    return ExpectedError(noise=noise * columns, mixing=mixing, claim=claim)


realised.refuse(
    LinearGaussianView,
    LinearProtocol,
    why="its matrices say all that happens, and nothing is left to chance; account without transcript",
)
