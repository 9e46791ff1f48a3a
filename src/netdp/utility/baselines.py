"""The error of the two classical ways: σ²/n per coordinate for both, by definition of their σ."""

from __future__ import annotations

import numpy.typing as npt

from netdp.numerics.values import party_values
from netdp.protocols import Central, Local

from .error import ExpectedError, predictions


@predictions.register
def _mean(protocol: Local | Central, values: npt.ArrayLike | None = None) -> ExpectedError:
    columns = 1 if values is None else party_values(values, protocol.n).shape[1]
    return ExpectedError(noise=protocol.sigma**2 / protocol.n * columns)
