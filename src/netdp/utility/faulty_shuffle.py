"""The error of shuffling when reports are lost on the way, or go through a server.

**Losses.** Every report arrives with the same probability ρ = (1 − lost)^t, independently of all others and of what
it says. So given the number N of those that arrive, these are a uniformly random N of the n, and the mean over them
has the expected squared error

    v/N + (1/N − 1/n)·S²,      v the randomizer's error per report, S² = Σ‖x_u − x̄‖²/(n − 1):

noise, and luck in who is heard. It is averaged over N ~ Binomial(n, ρ), given N ≥ 1 (with none there is no answer).
Outages delay reports, and lose none. A crash takes everything in one hand: who is heard then depends on where reports
are, and no error is stated.

**Whatever the values.** The answers are yes or no by binary randomized response: S² ≤ ½·n/(n − 1), at half yes and
half no.

**Through a server** every report arrives: the error is the randomizer's own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms import Mechanism, RandomizedResponse
from netdp.protocols import FaultyShuffle, RelayedShuffle

from .error import ExpectedError, predictions


@predictions.register
def _with_faults(
    protocol: FaultyShuffle, values: npt.ArrayLike | None = None, *, mechanism: Mechanism | None = None
) -> ExpectedError:
    """By default for the answers yes or no, randomized by binary response: the error of the two shares."""
    if protocol.crashes:
        raise Unsupported(
            f"crashes = {protocol.crashes:g}: who is heard depends on where the reports are; run it instead: "
            "collect_with_faults of netdp.simulate.faulty_shuffle"
        )
    randomizer: Mechanism = RandomizedResponse(2, protocol.epsilon0) if mechanism is None else mechanism
    n = protocol.n
    each = one_over(n, protocol.arrives)
    if values is None:
        if mechanism is not None and not isinstance(mechanism, RandomizedResponse):
            raise InvalidValue("values are needed: how much luck in who is heard matters depends on them")
        deviation = 0.5 * n / (n - 1) if n % 2 == 0 else 0.5 * (n + 1) / n
        if isinstance(mechanism, RandomizedResponse) and mechanism.domain > 2:
            deviation = n / (n - 1) * (1 - 1 / mechanism.domain)
    else:
        data = randomizer.check(values)
        if len(data) != n:
            raise InvalidValue(f"there are {n} users; give one value for each, got {len(data)}")
        mean = randomizer.answer(data)
        squares = float(np.sum(np.square(data))) if data.ndim == 2 else float(n)
        deviation = max(squares - n * float(mean @ mean), 0.0) / (n - 1)
    noise = n * randomizer.squared_error(n) * each
    return ExpectedError(noise=noise, sampling=max(each - 1 / n, 0.0) * deviation)


def one_over(n: int, chance: float) -> float:
    """E[1/N | N ≥ 1] of N ~ Binomial(n, chance).

    >>> print(f"{one_over(2, 0.5):.4f}")                                       # N = 1, 1, 2 of three equally likely
    0.8333
    """
    from scipy.stats import binom

    if chance >= 1:
        return 1.0 / n
    counts = np.arange(1, n + 1)
    weights = binom.pmf(counts, n, chance)
    total = float(weights.sum())
    if total <= 0:
        raise Unsupported(f"reports arrive with probability {chance:.2g} only: none of {n} is expected; fewer rounds")
    return float(weights @ (1.0 / counts)) / total


@predictions.register
def _relayed(
    protocol: RelayedShuffle, values: npt.ArrayLike | None = None, *, mechanism: Mechanism | None = None
) -> ExpectedError:
    """By default for the answers yes or no, randomized by binary response: the error of the two shares."""
    randomizer: Mechanism = RandomizedResponse(2, protocol.epsilon0) if mechanism is None else mechanism
    if values is not None and len(randomizer.check(values)) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each")
    return ExpectedError(noise=randomizer.squared_error(protocol.n))
