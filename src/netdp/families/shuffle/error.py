"""The expected error of estimates from shuffled reports (docs/proofs/shuffle.md#shuffling-error).

If every report arrives once, it is the randomizer's own. Lost reports add luck in who is heard; single reports add luck in the
number of dummies and in which reports are dropped. `largest_error` holds whatever the values are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.mechanisms.base import Mechanism
from netdp.mechanisms.responses import RandomizedResponse
from netdp.privacy.guarantee import Claim
from netdp.protocols.accuracy import ExpectedError, forecasts, predictions

_CLAIM = Claim.ESTIMATE
"""Of luck in who is heard: reports arrive nearly independently of each other, and are mixed until they are nearly stationary."""


def _response(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> Mechanism:
    """The randomized response that errors are stated for unless another randomizer is named."""
    if protocol.variation is not None:
        raise Unsupported(
            f"variation={protocol.variation:g} does not say which randomizer it is, and the error depends on it: give mechanism=…"
        )
    return RandomizedResponse(protocol.values or 2, protocol.epsilon0)


@predictions.register
def _with_faults(
    protocol: FaultyShuffle, values: npt.ArrayLike | None = None, *, mechanism: Mechanism | None = None
) -> ExpectedError:
    """By default for the answers yes or no, or the protocol's k values, by randomized response: the error of all shares."""
    if protocol.crashes:
        raise Unsupported(
            f"crashes = {protocol.crashes:g}: who is heard depends on where the reports are; run it instead: "
            "collect_with_faults of netdp.families.shuffle.simulate"
        )
    randomizer = _response(protocol) if mechanism is None else mechanism
    n = protocol.n
    each = one_over(n, protocol.arrives)
    if values is None:
        if mechanism is not None and not isinstance(mechanism, RandomizedResponse):
            raise InvalidValue("values are needed: how much luck in who is heard matters depends on them")
        deviation = 0.5 * n / (n - 1) if n % 2 == 0 else 0.5 * (n + 1) / n
        if isinstance(randomizer, RandomizedResponse) and randomizer.domain > 2:
            deviation = n / (n - 1) * (1 - 1 / randomizer.domain)
    else:
        deviation = _deviation(randomizer, _one_each(protocol, randomizer, values))
    noise = n * randomizer.squared_error(n) * each
    return ExpectedError(noise=noise, sampling=max(each - 1 / n, 0.0) * deviation, claim=_CLAIM)


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
    """By default for the answers yes or no, or the protocol's k values, by randomized response: the error of all shares."""
    randomizer = _response(protocol) if mechanism is None else mechanism
    if values is not None:
        _one_each(protocol, randomizer, values)
    return ExpectedError(noise=randomizer.squared_error(protocol.n))


@predictions.register
def _shuffled(
    protocol: Shuffle, values: npt.ArrayLike | None = None, *, mechanism: Mechanism | None = None, null: Any = None
) -> ExpectedError:
    """By default for the answers yes or no, or the protocol's k values, by randomized response: the error of all shares."""
    randomizer = _response(protocol) if mechanism is None else mechanism
    if protocol.reporting == "all":
        return ExpectedError(noise=randomizer.squared_error(protocol.n))
    if values is None or null is None:
        raise Unsupported(
            'the error of reporting="single" depends on the values and on the null value: '
            "expected_error(protocol, values, mechanism=…, null=…)"
        )
    total = collection_error(protocol, randomizer, values, null=null)
    noise = protocol.n**2 * randomizer.squared_error(protocol.n) / (protocol.n - empty_hands(protocol)[0]) ** 2
    return ExpectedError(noise=noise, sampling=max(total - noise, 0.0), claim=_CLAIM)


@forecasts.register
def largest_error(protocol: Shuffle) -> ExpectedError:
    """The error of the shares of yes and no, or of k values, whatever they are; with single reports, dummies say the first.

    >>> from netdp import graphs
    >>> p = Shuffle(graphs.complete(50), rounds=9, epsilon0=1.0)
    >>> largest_error(p).total < largest_error(p.replace(reporting="single")).total
    True
    """
    randomizer = _response(protocol)
    if protocol.reporting == "all":
        return ExpectedError(noise=randomizer.squared_error(protocol.n))
    n, (empty, luck) = protocol.n, empty_hands(protocol)
    noise = n**2 * randomizer.squared_error(n) / (n - empty) ** 2
    dropped = (empty * (n - empty) - luck) / (n - 1)
    # a share f says something else: in one value if the luck of dummies matters more, else spread over all others
    both = 2.0 if luck >= dropped else 1 + 1 / ((protocol.values or 2) - 1)
    shares = [1.0] if luck >= dropped else [1.0, min(1.0, dropped / (both * (dropped - luck)))]
    sampling = max(luck * both * f * f + dropped * f * (2 - both * f) for f in shares)
    return ExpectedError(noise=noise, sampling=sampling / (n - empty) ** 2, claim=_CLAIM)


def empty_hands(protocol: Shuffle) -> tuple[float, float]:
    """Mean and variance of the number of users who end up without a report, under the stationary law.

    P(u and w both empty) = (1 − π_u − π_w)ⁿ. Users of one degree are alike, so the sum over pairs is one over pairs of
    degrees.

    The paper's number of dummies for Twitch, 7,080, is something else: how many users have n·π_u < 1, that is, expect less
    than one report. The mean here is 5,456.

    >>> from netdp import graphs
    >>> mean, variance = empty_hands(Shuffle(graphs.complete(3), rounds=1, epsilon0=1.0))
    >>> round(mean * 27, 9), round(variance + mean**2, 9)       # of 27 equally likely outcomes: 6, 18, 3 with D = 0, 1, 2
    (24.0, 1.111111111)
    """
    n = protocol.n
    degrees, counts = np.unique(protocol.graph.degrees, return_counts=True)
    share = degrees / degrees.dot(counts)
    with np.errstate(divide="ignore"):
        alone = np.exp(n * np.log1p(-share))
        # the covariance of two indicators is negative: (1−a−b)ⁿ − ((1−a)(1−b))ⁿ, as a relative change
        both = np.maximum(-share[:, None] - share[None, :], -1.0)
        product = np.log1p(-share)[:, None] + np.log1p(-share)[None, :]
        covariance = np.exp(n * product) * np.expm1(n * (np.log1p(both) - product))
    pairs = np.outer(counts, counts) - np.diag(counts)
    variance = float(counts @ (alone * (1 - alone)) + np.sum(pairs * covariance))
    return float(counts @ alone), max(variance, 0.0)


def collection_error(protocol: Shuffle, mechanism: Mechanism, values: npt.ArrayLike, *, null: Any = None) -> float:
    """The expected squared L2 error of `collect`: exact for "all", exact under the stationary law for "single"."""
    data = _one_each(protocol, mechanism, values)
    if protocol.reporting == "all":
        return mechanism.squared_error(protocol.n)
    n, (empty, variance) = protocol.n, empty_hands(protocol)
    mean, instead = mechanism.answer(data), mechanism.answer(null_row(mechanism, null))
    crowd = empty * (n - empty) - variance  # E[D(n − D)]
    chance = variance * float(np.sum((instead - mean) ** 2)) + crowd / n * _deviation(mechanism, data)
    return (n * n * mechanism.squared_error(n) + chance) / (n - empty) ** 2


def _one_each(
    protocol: Shuffle | FaultyShuffle | RelayedShuffle, mechanism: Mechanism, values: npt.ArrayLike
) -> npt.NDArray[Any]:
    data = mechanism.check(values)
    if len(data) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each, got {len(data)}")
    return data


def _deviation(mechanism: Mechanism, data: npt.NDArray[Any]) -> float:
    """S² = Σ‖x_u − x̄‖²/(n − 1); for categories ‖x_u‖² = 1."""
    n, mean = len(data), mechanism.answer(data)
    squares = float(np.sum(np.square(data))) if data.ndim == 2 else float(n)
    return max(squares - n * float(mean @ mean), 0.0) / (n - 1)


def null_row(mechanism: Mechanism, null: Any) -> npt.NDArray[Any]:
    """The null value as a table of one row."""
    if null is None:
        raise InvalidValue(
            'reporting="single" needs null: the value that users without a report randomize instead, in the '
            "randomizer's domain"
        )
    return mechanism.check(np.asarray(null)[None])
