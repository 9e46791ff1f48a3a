"""What learning under one-time pads costs, before it starts: bytes, rounds, and an estimate of the seconds.

One number of one party takes w bytes on the wire, w the width of the modulus (`wire_width`), so what a party publishes in an
iteration, its y, takes d·w. To flood, every y crosses every link at most once in each direction: n·d·w bytes a link and
iteration, and a party with k links sends at most k times that. To average, a link carries one double per round and
coordinate in each direction. Bytes are exact up to the headers (signatures, some 200 bytes a message); attempts that are
repeated come on top, at most `attempts` times as many.

**Seconds** are an estimate, for processes that do one thing after the other: rounds times the latency of a link, bytes sent
by the busiest party over the bandwidth, and what is computed. Measured on one core of a usual server: noise a million numbers
a second, pads a gigabyte a second, clipped gradients of linear models 200 million numbers a second (records·d). Deep models
take longer: state `gradient_seconds`, the time that one record's gradient takes.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from netdp.errors import InvalidValue
from netdp.numerics.checks import non_negative, positive
from netdp.protocols.masked import wire_width
from netdp.protocols.masked_descent import MaskedDescent

NOISE_PER_SECOND = 1e6
PADS_PER_SECOND = 1e9
GRADIENTS_PER_SECOND = 2e8
_HELD = 3  # iterations whose numbers a peer keeps


@dataclass(frozen=True)
class Cost:
    """What a run takes; bytes and rounds are counted, seconds are estimated.

    iterations      gradient steps
    rounds          rounds of messages in all
    step_bytes      what one party publishes in one iteration
    link_bytes      what crosses one link in one direction in the whole run, at most
    party_bytes     what the party with the most links sends in the whole run, at most
    memory_bytes    what a party holds at a time: the numbers of all parties of the last iterations, and the model
    seconds         an estimate
    """

    iterations: int
    rounds: int
    step_bytes: int
    link_bytes: int
    party_bytes: int
    memory_bytes: int
    seconds: float

    @property
    def seconds_per_iteration(self) -> float:
        """An estimate."""
        return self.seconds / self.iterations

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.iterations:,} iterations, {self.rounds:,} rounds of messages; a party publishes {size(self.step_bytes)} in "
            f"each and sends at most {size(self.party_bytes)} in all, at most {size(self.link_bytes)} over one link; "
            f"{size(self.memory_bytes)} of memory; about {duration(self.seconds)} (an estimate)"
        )


def expected_cost(
    protocol: MaskedDescent,
    *,
    latency: float = 0.01,
    bandwidth: float = 12.5e6,
    gradient_seconds: float | None = None,
) -> Cost:
    r"""Bytes and rounds of a whole run in which no attempt fails, and about how many seconds it takes.

    latency           seconds that a message takes along one link
    bandwidth         bytes a second that a party can send
    gradient_seconds  for one record's gradient; by default that of a linear model with so many numbers

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.complete(5), 100, 0.5, 0.5, dimension=26_010, unit="record", max_records=2000, sampling=0.1)
    >>> print(*str(expected_cost(p)).split("; "), sep="\n")
    100 iterations, 100 rounds of messages
    a party publishes 104 KB in each and sends at most 208 MB in all, at most 52 MB over one link
    2.8 MB of memory
    about 23 s (an estimate)
    """
    if not isinstance(protocol, MaskedDescent):
        raise InvalidValue(f"expected_cost takes a MaskedDescent, got {protocol!r}")
    latency, bandwidth = non_negative("latency", latency), positive("bandwidth", bandwidth)
    one, n, d = protocol.sum, protocol.n, protocol.dimension
    each = d / GRADIENTS_PER_SECOND if gradient_seconds is None else non_negative("gradient_seconds", gradient_seconds)
    links = int(protocol.graph.degrees.max())
    own = d * wire_width(one.q)
    rows = protocol.max_records * protocol.sampling if protocol.max_records is not None else 1.0
    computed = d / NOISE_PER_SECOND + (n - 1) * 8 * d / PADS_PER_SECOND + rows * each
    sent = links * one.link_bytes
    return Cost(
        iterations=protocol.iterations,
        rounds=protocol.iterations * one.rounds,
        step_bytes=own,
        link_bytes=protocol.iterations * one.link_bytes,
        party_bytes=protocol.iterations * sent,
        memory_bytes=_HELD * n * own + 2 * 24 * d,
        seconds=protocol.iterations * (one.rounds * latency + sent / bandwidth + computed),
    )


def size(number: float) -> str:
    """Bytes for people.

    >>> [size(x) for x in (12, 1999, 3.2e6, 5e10)]
    ['12 bytes', '2 KB', '3.2 MB', '50 GB']
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if number >= unit:
            return f"{number / unit:.2g} {name}" if number < 99.5 * unit else f"{number / unit:,.0f} {name}"
    return f"{number:.0f} bytes"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> [duration(x) for x in (0.002, 75, 4000, 3e6)]
    ['0.002 s', '75 s', '67 minutes', '35 days']
    """
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{math.ceil(seconds / 86400 - 0.5):,} days"
