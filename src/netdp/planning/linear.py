"""The noise of protocols that are stated as matrices: scaled with σ where that is what σ does, searched otherwise."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import gaussian_mu
from netdp.views import LinearGaussianView, LinearProtocol

from .smallest import smallest
from .table import HEADROOM, calibrations, checked_target

# Met as closely as this, the target is met by the smallest σ.
_TIGHT = 1 - 1e-6

calibrations.refuse(
    LinearGaussianView, why="its matrices are numbers already; calibrate the LinearProtocol that makes them"
)


@calibrations.register_with_subclasses
def _linear(protocol: LinearProtocol, epsilon: float, delta: float, *, observers: Any = None) -> LinearProtocol:
    """Against every single party, or each of `observers`."""
    if "sigma" not in {f.name for f in dataclasses.fields(protocol)}:  # type: ignore[arg-type]
        raise Unsupported(f"{type(protocol).__name__} has no field sigma to calibrate")
    epsilon, delta = checked_target(epsilon, delta)
    who = (
        range(protocol.n) if observers is None else [observers] if isinstance(observers, int | str) else list(observers)
    )

    def worst_mu(sigma: float) -> float:
        one = protocol.replace(sigma=sigma)
        return max(float(np.nanmax(account(one, [v]).mu)) for v in who)

    allowed = float(gaussian_mu(epsilon, delta))
    if allowed == 0:
        raise Unsupported(
            f"no noise level meets epsilon = {epsilon:g} at delta = {delta:g}; ask for delta > 0, such as 1e-6"
        )
    start = float(protocol.sigma)  # type: ignore[attr-defined]
    there = worst_mu(start)
    if not np.isfinite(there):
        raise Unsupported(
            "somebody has no protection at all, whatever the noise: account(protocol, observers) shows who"
        )
    if there == 0:
        raise InvalidValue("no noise is needed: nobody in question learns anything; set sigma yourself")
    scaled = start * there / allowed * HEADROOM
    if _TIGHT * allowed <= worst_mu(scaled) <= allowed:  # all noise is proportional to σ: nothing smaller would do
        return protocol.replace(sigma=scaled)
    return protocol.replace(sigma=smallest(worst_mu, allowed, scaled))
