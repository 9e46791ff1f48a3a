"""The loss of any written-out linear-Gaussian view y = A x + B z (proof: docs/guarantees.md#linear-gaussian).

Let u make contributions with columns A_u, each moved by at most Δ. With M_u = A_uᵀ(BBᵀ)⁺A_u the view is μ-Gaussian DP for u with

    μ_u² = max over |d_k| ≤ Δ of dᵀ M_u d  ≤  Δ² Σ |M_ij|,

with equality for one contribution and where M_u has no negative entry. If a column of A_u leaves the range of B, some combination
of messages carries u's value without any noise and the loss is infinite.

Exact when no contribution reacts to a hidden state: averages, sums and histograms of values fixed beforehand. Where floating
point cannot tell a noise-free direction from a faint one, it is refused.

**Rounding.** The computed singular values and vectors are those of B + E, ‖E‖ ≤ p·u·‖B‖ with a modest p (backward stability), and
B + E = (I + EB⁺)B on the range of B, ‖EB⁺‖ ≤ p·u·κ with κ the condition number: whitening changes by that factor, the energy by
at most twice it and its square. p = 8·(rows + columns) is added.

**Scale.** Each message is first divided by the size of its noise (a power of two, so nothing is rounded): a message in small
units is no fainter than in large ones. A message without any noise shows every value in it, however small its coefficient.
Otherwise the computed complement of the range is tilted towards the singular vector i by at most p·u·‖B‖/s_i, so a column a
inside the range sticks out of it by at most p·u·(‖B‖·‖whitened a‖ + ‖a‖); one that sticks out further leaves the range.
"""

from __future__ import annotations

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.views import LinearGaussianView, LinearProtocol, Seen

from .baselines import curator, local
from .table import certified

REFERENCES = (
    "netdp, docs/guarantees.md#linear-gaussian: exact loss of linear-Gaussian views.",
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
def _linear(protocol: LinearGaussianView | LinearProtocol, observers: tuple[int, ...]) -> Guarantee:
    view = protocol.view() if isinstance(protocol, LinearProtocol) else protocol
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
