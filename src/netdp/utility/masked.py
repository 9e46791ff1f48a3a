"""The error of a masked sum: everybody's share of the noise, and rounding to the grid.

The answer is the mean of the rounded values plus Σ η_u/n. A discrete Gaussian has at most its parameter as variance,
so the noise adds (n·v·g²)/n² per coordinate, v = `protocol.share` in squared steps g². Rounding moves the mean by the
mean of what every value is moved: known exactly for given values; at most g/2, so (g/2)² per coordinate, for any.
That the sum leaves the range of the modulus has probability below 4·10⁻²² per coordinate and is not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.numerics.values import party_values
from netdp.protocols import MaskedSum
from netdp.protocols.masked import quantised

from .error import ExpectedError, predictions


@predictions.register
def _masked(protocol: MaskedSum, values: npt.ArrayLike | None = None) -> ExpectedError:
    step = protocol.step
    if values is None:
        columns, rounding = protocol.dimension, protocol.dimension * step**2 / 4
    else:
        data = party_values(values, protocol.n)
        columns = data.shape[1]
        moved = step * (quantised(protocol, data) + protocol.centre_steps) - data
        rounding = float((np.mean(moved, axis=0) ** 2).sum())
    return ExpectedError(noise=protocol.share * step**2 / protocol.n * columns, rounding=rounding)
