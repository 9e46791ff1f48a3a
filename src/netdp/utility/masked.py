"""The error of a masked sum: everybody's share of the noise, and rounding to the grid.

The answer is the mean of the rounded values plus Σ η_u/n. A discrete Gaussian has at most its parameter as variance,
so the noise adds (n·v·g²)/n² per coordinate, v = `protocol.share` in squared steps g². Rounding moves the mean by the
mean of what every value is moved: known exactly for given values; at most g/2, so (g/2)² per coordinate, for any. Where
single records are rounded (unit record), what that adds up to depends on how many there are, and needs the records.
That the sum leaves the range of the modulus has probability below 4·10⁻²² per coordinate and is not counted. All n
parties take part; if a of them are absent, it is the mean of n − a values, with n − a instead of n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.values import party_values
from netdp.protocols import MaskedSum
from netdp.protocols.masked import quantised, record_tables, summed_records

from .error import ExpectedError, predictions


@predictions.register
def _masked(protocol: MaskedSum, values: Any = None) -> ExpectedError:
    step = protocol.step
    if protocol.unit == "record":
        if values is None:
            raise Unsupported(
                "unit='record': every record is rounded by itself, so the error depends on how many there are; give values, a "
                "table of records for every party"
            )
        tables = record_tables(protocol, values)
        columns = tables[0].shape[1]
        sums = np.stack([step * summed_records(protocol, table) - table.sum(axis=0) for table in tables])
        rounding = float((np.mean(sums, axis=0) ** 2).sum())
    elif values is None:
        columns, rounding = protocol.dimension, protocol.dimension * step**2 / 4
    else:
        data = party_values(values, protocol.n)
        columns = data.shape[1]
        moved = step * (quantised(protocol, data) + protocol.centre_steps) - data
        rounding = float((np.mean(moved, axis=0) ** 2).sum())
    return ExpectedError(noise=protocol.share * step**2 / protocol.n * columns, rounding=rounding)
