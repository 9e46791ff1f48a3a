"""The error of the answer, predicted from the same linear recursion as the privacy: no simulation.

After T rounds party v holds x_v^T = (p_T(W)(x + σζ))_v + τ Σ_{1≤j<T} (r_{T−j}(W)gʲ)_v with Cov ζ = I + κL. So the expected
squared error around the true mean x̄, averaged over the parties, is

    ‖p_T(W)x − x̄1‖²/n  +  σ² tr[p_T(W)(I + κL)p_T(W)]/n  +  τ² Σ_{m=1}^{T−1} ‖r_m(W)‖²_F/n.
       mixing                        noise and masks                   refresh
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import Gossip, response

# The traces run over all n unit vectors: n² numbers pass through.
MAX_PARTIES = 20_000
_BLOCK = 64


@dataclass(frozen=True)
class ExpectedError:
    """Expected squared error of a party's answer, averaged over the parties, by its cause."""

    noise: float
    masks: float
    refresh: float
    mixing: float

    @property
    def total(self) -> float:
        """The mean squared error."""
        return self.noise + self.masks + self.refresh + self.mixing

    @property
    def rmse(self) -> float:
        """Its square root."""
        return float(np.sqrt(self.total))


@singledispatch
def expected_error(protocol: Any, values: npt.ArrayLike | None = None) -> ExpectedError:
    """The expected error of `protocol`; `values` (n,) or (n, d) adds what mixing leaves of their spread.

    With vectors, the error is the squared L2 norm, so each coordinate's noise counts.

    >>> from netdp import graphs
    >>> error = expected_error(Gossip(graphs.complete(4), rounds=1, sigma=2.0))
    >>> round(error.noise, 9)                                         # one round averages perfectly: σ²/n
    1.0
    """
    raise Unsupported(f"the error of {type(protocol).__name__} cannot be predicted")


@expected_error.register
def _gossip_error(protocol: Gossip, values: npt.ArrayLike | None = None) -> ExpectedError:
    graph, W = protocol.graph, protocol.matrix
    n, T = graph.n, protocol.rounds
    data = checked_values(values, n) if values is not None else np.zeros((n, 1))
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
        *_, final = response(step, unit, T + 1, protocol.gamma)
        noise += float((final**2).sum())
        if protocol.masks > 0:
            masks += float((final * (laplacian @ final)).sum())
        if protocol.refresh > 0:
            impulses = response(step, unit, T, protocol.gamma, fresh=True)
            next(impulses)
            refresh += sum(float((x**2).sum()) for x in impulses)
    *_, mixed = response(step, data, T + 1, protocol.gamma)
    per_coordinate = data.shape[1] / n
    return ExpectedError(
        noise=protocol.sigma**2 * noise * per_coordinate,
        masks=protocol.mask_variance * masks * per_coordinate,
        refresh=protocol.refresh_variance * refresh * per_coordinate,
        mixing=float(((mixed - data.mean(axis=0)) ** 2).sum()) / n,
    )


def checked_values(values: npt.ArrayLike, n: int) -> FloatArray:
    """The values as (n, d) numbers; refuses another number of parties, nan and inf."""
    data = np.asarray(values, dtype=np.float64)
    data = data[:, None] if data.ndim == 1 else data
    if data.ndim != 2 or len(data) != n:
        raise InvalidValue(f"values must have shape ({n},) or ({n}, d), one row per party, got {np.shape(values)}")
    if not np.isfinite(data).all():
        raise InvalidValue(f"the value of party {int(np.argwhere(~np.isfinite(data))[0, 0])} is not finite")
    return data
