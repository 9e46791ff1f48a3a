"""A private mean by a token: which way has the least error at a certified (ε, δ)?

All ways estimate the mean of n values from an interval of length Δ. Their errors (root mean square, over noise and walk):

    ring, one round      the token holds the sum with the noises at hops 0 and n−1 and the closing noise: √3·σ/n
    walk of T steps      mean of T contributions of users drawn with replacement: √((σ² + v)/T), v ≤ Δ²/4 the values' variance
    local DP             everybody publishes its value once: σ/√n
    trusted curator      the mean with the noise that it needs: Δ/(nμ), μ the largest that (ε, δ) allows
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from netdp.accounting.front import account
from netdp.errors import InvalidValue
from netdp.planning.calibrate import calibrate
from netdp.privacy import gaussian_mu
from netdp.protocols import RingSum, WalkSum

from .calibrate import calibrate_walk

_WALKS = {
    "hidden": "walk, sender hidden",
    "receiver-known": "walk, receiver known",
    "known": "walk, sender known",
}
_RING_CHECKED = 2000  # users up to which every pair of the ring is accounted for; beyond, μ ≤ √K·Δ/σ is used


@dataclass(frozen=True)
class TokenOption:
    """One way: its protocol (None for the classical ones), noise, certified ε, error, and what is claimed of ε."""

    name: str
    protocol: RingSum | WalkSum | None
    sigma: float
    epsilon: float
    rmse: float
    claim: str


@dataclass(frozen=True)
class TokenPlan:
    """All ways at one target, the one with the least error among the protocols first."""

    n: int
    epsilon: float
    delta: float
    sensitivity: float
    colluders: int
    options: tuple[TokenOption, ...]
    local_rmse: float
    curator_rmse: float

    @property
    def best(self) -> TokenOption:
        """The protocol with the least error."""
        return self.options[0]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "n": self.n,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "sensitivity": self.sensitivity,
            "colluders": self.colluders,
            "options": [
                {
                    "name": option.name,
                    "protocol": option.protocol.to_dict() if option.protocol else None,
                    "sigma": option.sigma,
                    "epsilon": option.epsilon,
                    "rmse": option.rmse,
                    "claim": option.claim,
                }
                for option in self.options
            ],
            "local_dp": {"rmse": self.local_rmse},
            "trusted_curator": {"rmse": self.curator_rmse},
        }


def plan_token(
    n: int, epsilon: float, delta: float, *, visits: int = 100, sensitivity: float = 1.0, colluders: int = 1
) -> TokenPlan:
    """Compare a ring and walks (T = visits·n, over each of the three channels of `WalkSum`) at a certified (ε, δ).

    On a ring two colluders leave those between them without protection, so it is offered against single observers only.

    >>> plan = plan_token(50, epsilon=2.0, delta=1e-4, visits=20)
    >>> plan.best.name, plan.best.rmse < 1.5 * plan.curator_rmse < plan.local_rmse / 4
    ('walk, sender hidden', True)
    """
    if isinstance(visits, bool) or not isinstance(visits, int) or visits < 1:
        raise InvalidValue(f"visits must be a whole number ≥ 1, got {visits!r}")
    most = float(gaussian_mu(epsilon, delta))
    options = []
    for sender, name in _WALKS.items():
        walk = WalkSum(n, visits * n, sigma=1.0, sender=sender, sensitivity=sensitivity)
        found = calibrate_walk(walk, epsilon, delta, colluders, tolerance=0.003)
        loss = account(found, list(range(colluders)))
        error = math.sqrt((found.sigma**2 + sensitivity**2 / 4) / found.steps)
        options.append(TokenOption(name, found, found.sigma, float(loss.epsilon(delta)), error, loss.claim.value))
    if colluders == 1 and n >= 3:
        options.append(_ring(n, sensitivity, most, epsilon, delta))
    options.sort(key=lambda option: option.rmse)
    return TokenPlan(
        n,
        epsilon,
        delta,
        sensitivity,
        colluders,
        tuple(options),
        local_rmse=sensitivity / most / math.sqrt(n),
        curator_rmse=sensitivity / most / n,
    )


def _ring(n: int, sensitivity: float, most: float, epsilon: float, delta: float) -> TokenOption:
    ring = RingSum(n, 1, sigma=sensitivity / most * (1 + 1e-9), sensitivity=sensitivity)
    claim = "upper"
    if n <= _RING_CHECKED:
        ring = calibrate(ring, epsilon, delta)
        claim = "exact"
    return TokenOption("ring, one round", ring, ring.sigma, epsilon, math.sqrt(3) * ring.sigma / n, claim)
