"""`expected_error`: how far the answer will be from the truth, predicted without running anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.protocols import ErdosRenyiDescent, Protocol, Table

predictions = Table("the predicted error", "has no predicted error")
"""One function per protocol: (protocol, values or None) → `ExpectedError`."""
predictions.refuse(
    ErdosRenyiDescent,
    why="its graphs are not drawn yet; ask for the error of a draw: expected_error(protocol.draw(seed))",
)


@dataclass(frozen=True)
class ExpectedError:
    """Expected squared error of the answer (`Protocol.answer`), averaged over the parties, by its cause.

    noise     the noise that parties add, or random answers
    masks     what mixing leaves of the masks
    refresh   fresh noise added on the way
    mixing    what mixing leaves of the differences between the parties
    sampling  who happened to be visited how often
    rounding  of values to a grid
    """

    noise: float
    masks: float = 0.0
    refresh: float = 0.0
    mixing: float = 0.0
    sampling: float = 0.0
    rounding: float = 0.0

    @property
    def total(self) -> float:
        """The mean squared error."""
        return self.noise + self.masks + self.refresh + self.mixing + self.sampling + self.rounding

    @property
    def rmse(self) -> float:
        """Its square root."""
        return math.sqrt(self.total)

    def __str__(self) -> str:
        parts = [f"{name} {value:.3g}" for name, value in vars(self).items() if value]
        return f"root mean squared error {self.rmse:.3g} (squared: {', '.join(parts) or '0'})"


def expected_error(protocol: Protocol, values: npt.ArrayLike | Any | None = None, **options: Any) -> ExpectedError:
    """The expected error of what the parties hold in the end.

    `values` (n,) or (n, d): for these values; with vectors the error is the squared L2 norm, so each coordinate's noise
    counts. None: the largest over all values from an interval of length Δ, the protocol's sensitivity.
    A protocol that learns takes a `netdp.learn.Landscape`, what is known of the losses, instead; the error is then an `ExcessRisk`.
    Options belong to particular protocols: `transcript` for random edges that are known, `mechanism` for shuffling, `average`
    ("last" or "weighted" model) and `malicious` (parties that lie) for learning.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> error = expected_error(Gossip(graphs.complete(4), rounds=1, sigma=2.0))
    >>> round(error.noise, 9)                                         # one round averages perfectly: σ²/n
    1.0
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.Gossip(…), got {protocol!r}")
    error: ExpectedError = predictions(protocol, values, **options)
    return error
