"""The error of protocols that are stated as matrices: the answer is R y = R A x + R B z."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.values import party_values
from netdp.views import LinearGaussianView, LinearProtocol

from .error import ExpectedError, predictions


@predictions.register_with_subclasses
def _linear(protocol: LinearGaussianView | LinearProtocol, values: npt.ArrayLike | None = None) -> ExpectedError:
    view = protocol.view() if isinstance(protocol, LinearProtocol) else protocol
    if view.reading is None:
        raise Unsupported(f"{type(protocol).__name__} does not say how the answer is read: state reading= in its view")
    assert view.owners is not None
    n = view.n
    weights = np.zeros((len(view.reading), n))
    np.add.at(weights.T, view.owners, (view.reading @ view.data).T)
    away = weights - 1.0 / n  # what is read, less the mean of the parties' values
    if values is None:
        # the largest |Σ a_u x_u| over x in [0, Δ]ⁿ: all with a_u > 0 at Δ, or all with a_u < 0
        drift = (np.abs(away.sum(axis=1)) + np.abs(away).sum(axis=1)) / 2 * view.sensitivity
        mixing, columns = float((drift**2).mean()), 1
    else:
        data = party_values(values, n)
        mixing, columns = float(((away @ data) ** 2).sum(axis=1).mean()), data.shape[1]
    noise = float(((view.reading @ view.noise) ** 2).sum(axis=1).mean())
    return ExpectedError(noise=noise * columns, mixing=mixing)
