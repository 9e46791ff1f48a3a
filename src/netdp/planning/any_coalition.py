"""The noise of any protocol against any f parties together, where its family has no way of its own.

What is searched is what `account(protocol, colluders=f)` certifies, so the result passes its own account. σ: where all
noise is proportional to it μ is proportional to 1/σ and nothing is searched; γ of histograms and ε₀ of reports are halved
to a part in a thousand.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeVar

import numpy as np

from netdp.accounting import account
from netdp.accounting.table import coalitions
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import GaussianCurve, gaussian_mu
from netdp.protocols import Protocol

from .smallest import smallest
from .table import HEADROOM, checked_target

P = TypeVar("P", bound=Protocol)
_TOLERANCE = 1e-3
_TIGHT = 1 - 1e-6


def calibrate_against_any(protocol: P, epsilon: Any, delta: Any, colluders: int, options: dict[str, Any]) -> P:
    """The least noise whose certified loss against any `colluders` parties is at most ε at δ.

    >>> import netdp
    >>> p = netdp.VaryingGossip([netdp.graphs.ring(5)] * 3, sigma=1.0)
    >>> round(calibrate_against_any(p, 1.0, 1e-6, 2, {}).sigma, 2)             # two neighbours: the noise of local DP
    4.22
    """
    level, failure = checked_target(epsilon, delta)
    known = set(coalitions.options(protocol)) - {"progress", "transcript"}
    if unknown := sorted(set(options) - known):
        listed = ", ".join(sorted(known | {"colluders"}))
        raise InvalidValue(
            f"the calibration of {type(protocol).__name__} against any {colluders} parties takes no option {unknown[0]!r}; its "
            f"options: {listed}"
        )
    fields = {f.name for f in dataclasses.fields(protocol)}  # type: ignore[arg-type]
    knob = next((name for name in ("sigma", "gamma", "epsilon0") if name in fields), None)
    if knob is None:
        raise Unsupported(f"{type(protocol).__name__} has no sigma, gamma or epsilon0 to calibrate")

    def loss(value: float) -> float:
        return account(protocol.replace(**{knob: value}), colluders=colluders, **options).worst_epsilon(failure)

    if knob != "sigma":
        return protocol.replace(**{knob: _halved(loss, knob, level, failure)})
    start = float(getattr(protocol, "sigma"))  # noqa: B009
    first = account(protocol, colluders=colluders, **options)
    if not isinstance(first.curve, GaussianCurve):
        if math.isinf(first.worst_epsilon(failure)):
            raise _hopeless(level, failure)
        return protocol.replace(sigma=smallest(loss, level, start))
    allowed, there = float(gaussian_mu(level, failure)), float(np.nanmax(first.mu))
    if allowed == 0:
        raise Unsupported(
            f"no noise level meets epsilon = {level:g} at delta = {failure:g}; ask for delta > 0, such as 1e-6"
        )
    if not math.isfinite(there):
        raise _hopeless(level, failure)
    if there == 0:
        raise InvalidValue("no noise is needed: nobody in question learns anything; set sigma yourself")
    scaled = start * there / allowed * HEADROOM

    def worst_mu(sigma: float) -> float:
        found = account(protocol.replace(sigma=sigma), colluders=colluders, **options)
        return float(np.nanmax(found.mu))

    if _TIGHT * allowed <= worst_mu(scaled) <= allowed:  # all noise is proportional to σ: nothing smaller would do
        return protocol.replace(sigma=scaled)
    return protocol.replace(sigma=smallest(worst_mu, allowed, scaled))


def _halved(loss: Any, knob: str, epsilon: float, delta: float) -> float:
    """The smallest γ, or the largest ε₀, that meets the target, within a part in a thousand."""
    grows = knob == "epsilon0"
    useful, safe = (max(epsilon, 1e-3) * 4, epsilon / 2 or 1e-6) if grows else (1e-3, 1 - 1e-3)
    if loss(safe) > epsilon:
        raise _hopeless(epsilon, delta)
    if loss(useful) <= epsilon:
        return useful
    while abs(useful - safe) > _TOLERANCE * min(useful, safe):
        middle = math.sqrt(useful * safe)
        useful, safe = (useful, middle) if loss(middle) <= epsilon else (middle, safe)
    return safe


def _hopeless(epsilon: float, delta: float) -> Unsupported:
    return Unsupported(
        f"no noise meets epsilon = {epsilon:g} at delta = {delta:g} against so many colluders: somebody is seen without any noise, "
        "or nothing useful is left; account(protocol, colluders=…).found shows by whom"
    )
