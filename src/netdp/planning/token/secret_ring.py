"""The noise of a ring in a new random order every round."""

from __future__ import annotations

from netdp.accounting.token.secret_ring import ring_profile
from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.planning.smallest import smallest
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.protocols import SecretRingSum


@calibrations.register
def _secret_ring(protocol: SecretRingSum, epsilon: float, delta: float, *, colluders: int = 1) -> SecretRingSum:
    """The smallest σ against any `colluders` users who were chosen before the orders are drawn: all so many learn the same."""
    epsilon, delta = checked_target(epsilon, delta)
    many = count("colluders", colluders)
    if many >= protocol.n:
        raise InvalidValue(
            f"{many} of {protocol.n} users cannot collude against the others; name 1 to {protocol.n - 1}"
        )
    if not (epsilon > 0 and delta > 0):
        raise InvalidValue(f"the target needs epsilon > 0 and delta > 0, got {epsilon!r} and {delta!r}")

    def loss(sigma: float) -> float:
        return float(ring_profile(protocol.replace(sigma=sigma), many).epsilon(delta))

    # a little above the curator's noise: what the stretches cost is found by the search
    guess = noise_for(protocol.sensitivity * (protocol.rounds * (many + 1.0)) ** 0.5, epsilon, delta)
    return protocol.replace(sigma=smallest(loss, epsilon, 1.5 * guess))
