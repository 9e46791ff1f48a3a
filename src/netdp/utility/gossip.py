"""The error of the answer, predicted from the same linear recursion as the privacy: no simulation.

After T rounds party v holds x_v^T = (p_T(W)(x + σζ))_v + τ Σ_{1≤j<T} (r_{T−j}(W)gʲ)_v with Cov ζ = I + κL. So the expected
squared error around the true mean x̄, averaged over the parties, is

    ‖p_T(W)x − x̄1‖²/n  +  σ² tr[p_T(W)(I + κL)p_T(W)]/n  +  τ² Σ_{m=1}^{T−1} ‖r_m(W)‖²_F/n.
       mixing                        noise and masks                   refresh

Without values, mixing is bounded for all values from an interval of length Δ (`spectral`): exactly ρ²Δ²/4 where the spectrum
is at hand, and by the Frobenius norm, which is no smaller, on large graphs. A set of diameter Δ in d dimensions lies in a ball
of radius Δ√(d/(2(d+1))) (Jung), so vectors may be spread 2d/(d+1) times as much as numbers.

On a grid of step g every value is rounded, and every state after each of T steps: each time by at most g/2 per number, and W
is no larger than 1, so the answer moves by at most ρ = (T+1)·√d·g/2 (root mean square over the parties). By the triangle
inequality the mean squared error grows by at most 2ρ·r + ρ², r the root of the error without.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.numerics.values import party_values
from netdp.protocols import Gossip, response

from .error import ExpectedError, predictions
from .spectral import SpectralError

# The traces run over all n unit vectors: n² numbers pass through.
MAX_PARTIES = 20_000
_BLOCK = 64
# Up to here all eigenvalues are computed in a moment.
_SPECTRAL = 600


@predictions.register
def _gossip_error(protocol: Gossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    if protocol.dimension > 1 and values is None:
        d = protocol.dimension
        one = predictions(protocol.replace(dimension=1, grid=None))
        real = ExpectedError(d * one.noise, d * one.masks, d * one.refresh, 2 * d / (d + 1) * one.mixing)
    else:
        real = _in_real_numbers(protocol, values)
    return real if protocol.grid is None else _rounded(protocol, real, values)


def _rounded(protocol: Gossip, real: ExpectedError, values: npt.ArrayLike | None) -> ExpectedError:
    columns = protocol.dimension if values is None else party_values(values, protocol.n).shape[1]
    square = protocol.step**2
    noise = real.noise * (protocol.start_variance * square / protocol.sigma**2)
    fresh = real.refresh * (protocol.fresh_variance * square / protocol.refresh_variance) if real.refresh else 0.0
    moved = (protocol.rounds + 1) * np.sqrt(columns) * protocol.step / 2
    without = ExpectedError(noise=noise, refresh=fresh, mixing=real.mixing)
    return replace(without, rounding=float(2 * moved * without.rmse + moved**2))


def _in_real_numbers(protocol: Gossip, values: npt.ArrayLike | None) -> ExpectedError:
    if values is None and (protocol.graph.laplacian_spectrum is not None or protocol.n <= _SPECTRAL):
        return SpectralError(protocol.graph, protocol.mixing, protocol.rounds).of(protocol)
    graph, W = protocol.graph, protocol.matrix
    n, T = graph.n, protocol.rounds
    data = party_values(values, n) if values is not None else np.zeros((n, 1))
    if n > MAX_PARTIES:
        raise Unsupported(f"the exact error runs over all pairs of {n} parties; it is offered up to {MAX_PARTIES}")

    def step(block: FloatArray) -> FloatArray:
        return csr_times_block(W.indptr, W.indices, W.data, block)

    laplacian = graph.laplacian()
    noise = masks = refresh = 0.0
    for first in range(0, n, _BLOCK):
        width = min(_BLOCK, n - first)
        unit = np.zeros((n, width))
        unit[first + np.arange(width), np.arange(width)] = 1.0
        *_, final = response(step, unit, T + 1, protocol.chebyshev)
        noise += float((final**2).sum())
        if protocol.masks > 0:
            masks += float((final * (laplacian @ final)).sum())
        if protocol.refresh > 0:
            impulses = response(step, unit, T, protocol.chebyshev, fresh=True)
            next(impulses)
            refresh += sum(float((x**2).sum()) for x in impulses)
    *_, mixed = response(step, data, T + 1, protocol.chebyshev)
    left = float(((mixed - data.mean(axis=0)) ** 2).sum()) / n
    if values is None:  # ρ² ≤ Σ_{i≥2} p_T(λ_i)², the Frobenius norm without the constant vector
        left = max(noise - 1.0, 0.0) * protocol.sensitivity**2 / 4
    per_coordinate = data.shape[1] / n
    return ExpectedError(
        noise=protocol.sigma**2 * noise * per_coordinate,
        masks=protocol.mask_variance * masks * per_coordinate,
        refresh=protocol.refresh_variance * refresh * per_coordinate,
        mixing=left,
    )
