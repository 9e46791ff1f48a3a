"""The loss of any written-out linear-Gaussian view y = A x + B z (maths: the heart of the accountant).

Changing the contribution of u by d shifts y by A_u d, in Gaussian noise of covariance BBᵀ. The likelihood ratio of the
two laws depends on μ² = d² A_uᵀ(BBᵀ)⁺A_u alone, so the view is exactly μ-Gaussian DP for u; if A_u leaves the range of B,
some combination of messages carries u's value without any noise and the loss is infinite. With σ and Δ the protocol's,
factor_u = μ_u²σ²/Δ² = σ² A_uᵀ(BBᵀ)⁺A_u.

Exact when no contribution reacts to a hidden state: averages, sums and histograms of values fixed beforehand.
This module is the reference for small instances; where floating point cannot tell a noise-free direction from a faint one it
refuses.
"""

from __future__ import annotations

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.views import LinearGaussianView

# Relative to the largest singular value of B: below _ZERO rounding, above _CLEAR a real noise.
_ZERO, _CLEAR = 1e-13, 1e-8


def shift_energy(view: LinearGaussianView) -> FloatArray:
    """A_uᵀ(BBᵀ)⁺A_u for every party u: μ_u² for Δ = 1. inf where a value shows without noise, nan at the observers.

    >>> import numpy as np
    >>> from netdp.views import LinearGaussianView, Noise
    >>> own = tuple(Noise("own", (u,)) for u in (1, 2))
    >>> messages = np.array([[0, 1, 0], [1, 2, 0]])
    >>> A, B = np.array([[0.0, 1, 0], [0, 1, 1]]), np.array([[2.0, 0], [2, 0]])   # party 2 adds no noise of its own
    >>> shift_energy(LinearGaussianView((0,), A, B, own, messages)).round(9).tolist()
    [nan, 0.25, inf]
    """
    left, sizes, _ = np.linalg.svd(view.noise, full_matrices=True)
    largest = sizes.max(initial=0.0)
    if np.any((sizes > _ZERO * largest) & (sizes < _CLEAR * largest)):
        faint = float(sizes[sizes > _ZERO * largest].min() / largest)
        raise Unsupported(
            f"a combination of messages carries noise of relative size {faint:.1e}: too faint to tell from none in "
            "floating point; netdp.account works without writing the view out"
        )
    noisy = int(np.count_nonzero(sizes > _ZERO * largest))
    coordinates = left.T @ view.data
    energy = ((coordinates[:noisy] / sizes[:noisy, None]) ** 2).sum(axis=0)
    energy[np.abs(coordinates[noisy:]).max(axis=0, initial=0.0) > _CLEAR * max(1.0, np.abs(view.data).max())] = np.inf
    energy[list(view.observers)] = np.nan
    return np.asarray(energy)
