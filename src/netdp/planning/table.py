"""How each protocol is calibrated: families enter their functions here, `calibrate` looks here."""

from __future__ import annotations

import math
from typing import Any

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import between, finite
from netdp.privacy import gaussian_mu
from netdp.protocols import Table

calibrations = Table("the calibration", "cannot be calibrated")
"""(protocol, ε, δ) → the same protocol with the least noise whose certified loss is at most ε at δ."""

# One part in 10⁹ more than needed covers the rounding of a closed form.
HEADROOM = 1 + 1e-9


def checked_target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """ε and δ as numbers, or a refusal that names them."""
    level = finite("epsilon", epsilon, "a finite number ≥ 0")
    if level < 0:
        raise InvalidValue(f"epsilon must be a finite number ≥ 0, got {epsilon!r}")
    return level, between("delta", delta, 0.0, 1.0, open_high=True)


def noise_for(mu_at_one: float, epsilon: Any, delta: Any) -> float:
    """σ for a Gaussian loss of μ = mu_at_one/σ."""
    target = checked_target(epsilon, delta)
    allowed = float(gaussian_mu(*target))
    if allowed == 0:
        raise Unsupported(
            f"no noise level meets epsilon = {epsilon:g} at delta = {delta:g}; ask for delta > 0, such as 1e-6"
        )
    if not math.isfinite(mu_at_one):
        raise Unsupported(
            "somebody has no protection at all, whatever the noise: account(protocol, observers) shows who"
        )
    return mu_at_one / allowed * HEADROOM
