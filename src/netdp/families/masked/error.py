"""What a masked sum and learning by it cost, before they start: error, bytes, rounds, and an estimate of the seconds.

Error: everybody's share of the noise, and rounding to the grid (docs/proofs/masked.md#masked-sum). Bytes are counted (`copies`;
tests/families/masked/test_descent_cost.py holds them against peers in memory, `benchmarks/training_rounds.py` against processes).
Seconds are an estimate, for processes that do one thing after the other: rounds times the latency of a link, bytes sent by the
busiest party over the bandwidth, the check of everybody's signature, and what is computed, as measured on one core of a usual
server. Deep models take longer: state `gradient_seconds`, the time that one record's gradient takes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import MaskedSum, quantised, record_tables, summed_records, wire_width
from netdp.graphs.graph import Graph
from netdp.models.parties import Landscape
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import non_negative, positive
from netdp.numerics.values import party_values
from netdp.protocols.accuracy import ExpectedError, predictions
from netdp.protocols.risk import Causes, ExcessRisk, _all_alike, added_up, influences, known, lipschitz, moved_mean
from netdp.protocols.training import TrainingCost

NOISE_PER_SECOND = 1e6

PADS_PER_SECOND = 1e9

GRADIENTS_PER_SECOND = 2e8

PUSHED = 40_000
"""Bytes: a longer y is announced and sent to who asks, by all but its author; `netdp.peers.exchange`."""

HEADER = 180
"""Bytes that a copy of a y takes besides its numbers."""

_MESSAGE = 1.5e-3  # seconds for each step of another party: links, signatures

_HELD = 3  # iterations whose numbers a peer keeps

_MOST_PAIRS = 5_000_000  # two-link ways that are followed; beyond, nobody is taken to be three links off


def expected_cost(
    protocol: MaskedDescent,
    *,
    latency: float = 0.01,
    bandwidth: float = 12.5e6,
    gradient_seconds: float | None = None,
) -> TrainingCost:
    r"""Bytes and rounds of a whole run in which no attempt fails, and about how many seconds it takes.

    latency           seconds that a message takes along one link
    bandwidth         bytes a second that a party can send
    gradient_seconds  for one record's gradient; by default that of a linear model with so many numbers

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.complete(5), 100, 0.5, 0.5, dimension=26_010, unit="record", max_records=2000, sampling=0.1)
    >>> print(*str(expected_cost(p)).split("; "), sep="\n")
    100 iterations, 100 rounds of messages
    a party publishes 104 KB in each and sends about 42 MB in all, none more than 42 MB, at most 10 MB over one link
    2.8 MB of memory
    about 10 s (an estimate)
    """
    if not isinstance(protocol, MaskedDescent):
        raise InvalidValue(f"expected_cost takes a MaskedDescent, got {protocol!r}")
    latency, bandwidth = non_negative("latency", latency), positive("bandwidth", bandwidth)
    single, n, d = protocol.sum, protocol.n, protocol.dimension
    each = d / GRADIENTS_PER_SECOND if gradient_seconds is None else non_negative("gradient_seconds", gradient_seconds)
    own = d * wire_width(single.q)
    rows = protocol.max_records * protocol.sampling if protocol.max_records is not None else 1.0
    computed = d / NOISE_PER_SECOND + (n - 1) * (8 * d / PADS_PER_SECOND + _MESSAGE) + rows * each
    link, mean, busiest = _sent(single, own)
    return TrainingCost(
        iterations=protocol.iterations,
        rounds=protocol.iterations * single.rounds,
        step_bytes=own,
        link_bytes=round(protocol.iterations * link),
        mean_bytes=round(protocol.iterations * mean),
        party_bytes=round(protocol.iterations * busiest),
        memory_bytes=_HELD * n * own + 2 * 24 * d,
        seconds=protocol.iterations * (single.rounds * latency + busiest / bandwidth + computed),
    )


def copies(graph: Graph) -> IntArray:
    """How many copies of a y, d numbers of `wire_width` bytes and `HEADER` more, every party sends in an iteration, at most.

    Party u sends its own to its k neighbours. The y of another author v it passes on to those neighbours only who do not hear v
    themselves, and never to whom it came from. Of its k neighbours one is v where v is a neighbour, and those that are neighbours
    of v hear v; where v is three links off or more nobody near u hears v, but one of them sent it. Summed over all v, with k' the
    links of a neighbour,

        copies(u) ≤ k + (n − 1)·k − k − Σ (k' − 1) − #{v: at least 3 links off}

    n − 1 where all are linked to all, n + 1 on a ring, (n − 1)² in the middle of a star. It is met nearly (small steps are
    pushed, so on graphs with many ways most cross most links); a y of more than `PUSHED` bytes is sent only to who asks, so all
    parties together send each exactly n − 1 times, and n − 1 copies a party is the mean. Where one link is slower than two others
    together, a y is asked for of somebody else before it comes, and crosses once more. A link carries, towards a party with k'
    links, the y of its sender and of all that the party does not hear: n − k' of them. To average instead, a link carries one
    double per round and coordinate in each direction. Attempts that are repeated come on top, at most `attempts` times as many.

    >>> from netdp import graphs
    >>> [copies(g).tolist() for g in (graphs.complete(5), graphs.ring(6), graphs.star(5))]
    [[4, 4, 4, 4, 4], [7, 7, 7, 7, 7, 7], [16, 1, 1, 1, 1]]
    """
    n, links = graph.n, np.asarray(graph.degrees, dtype=np.int64)
    if int(links.min()) == n - 1:
        return links
    near = graph.adjacency()
    off = np.zeros(n, dtype=np.int64)
    if int((links**2).sum()) <= _MOST_PAIRS:
        within = near + near @ near
        within.setdiag(1)
        off = n - np.diff(within.tocsr().indptr)
    return np.asarray((n - 1) * links - (near @ (links - 1)).astype(np.int64) - off)


def _sent(one: MaskedSum, own: int) -> tuple[float, float, float]:
    """Bytes of one iteration: over one link and by the busiest party at most, and by a party in the mean."""
    links = np.asarray(one.graph.degrees)
    if one.spread == "average":
        carried = one.link_bytes + HEADER * one.rounds
        return carried, carried * float(links.mean()), carried * int(links.max())
    found, each = copies(one.graph), own + HEADER
    mean = float(found.mean()) if own <= PUSHED else one.n - 1.0
    return (one.n - int(links.min())) * each, mean * each, int(found.max()) * each


def refuse_unpredicted(protocol: MaskedDescent) -> None:
    """Bounds are proved for plain steps along the mean of all parties' gradients, and for nothing else."""
    unlike = {"unit": "party", "sampling": 1.0, "momentum": 0.0, "average": "last"}
    if changed := [name for name, plain in unlike.items() if getattr(protocol, name) != plain]:
        raise Unsupported(
            f"MaskedDescent with {changed[0]}={getattr(protocol, changed[0])!r}: what is predicted of it is proved for plain steps "
            "in which every party takes part; train it in simulation"
        )


@predictions.register
def _predict_descent(
    protocol: MaskedDescent, losses: Any = None, *, average: str = "last", malicious: int = 0, shape: str = "convex"
) -> ExcessRisk:
    landscape, single = known(protocol, losses), protocol.sum
    if protocol.aggregate != "mean":
        raise Unsupported(
            f"MaskedDescent with aggregate={protocol.aggregate!r}: the median of groups is not their mean, and how "
            "far it is from it depends on the losses; train it in simulation"
        )
    refuse_unpredicted(protocol)
    if landscape.dimension > protocol.dimension:
        raise InvalidValue(
            f"models have {landscape.dimension} numbers, the protocol states dimension={protocol.dimension}; state "
            "at least as many"
        )
    d = landscape.dimension
    variance = Causes(noise=d * single.share * single.step**2 / protocol.n, rounding=math.sqrt(d) * single.step / 2)
    return _all_alike(protocol, landscape, variance, average, malicious, shape)


@predictions.register
def _predict_sum(protocol: MaskedSum, values: Any = None) -> ExpectedError:
    step = protocol.step
    if protocol.unit == "record":
        if values is None:
            raise Unsupported(
                "unit='record': every record is rounded by itself, so the error depends on how many there are; give values, a "
                "table of records for every party"
            )
        tables = record_tables(protocol, values)
        columns = tables[0].shape[1]
        sums = np.stack([step * summed_records(protocol, table) - table.sum(axis=0) for table in tables])
        rounding = float((np.mean(sums, axis=0) ** 2).sum())
    elif values is None:
        columns, rounding = protocol.dimension, protocol.dimension * step**2 / 4
    else:
        data = party_values(values, protocol.n)
        columns = data.shape[1]
        moved = step * (quantised(protocol, data) + protocol.centre_steps) - data
        rounding = float((np.mean(moved, axis=0) ** 2).sum())
    return ExpectedError(noise=protocol.share_variance * step**2 / protocol.n * columns, rounding=rounding)


@influences.register
def _moved(protocol: MaskedDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    if protocol.aggregate != "mean":
        raise Unsupported(
            f"MaskedDescent with aggregate={protocol.aggregate!r}: a liar may decide which group is the middle one, "
            "so that how far it moves the model depends on how far the honest groups lie apart"
        )
    refuse_unpredicted(protocol)
    if not len(liars):
        return moved_mean(protocol, liars, losses)
    share = len(liars) / protocol.n
    c, T = lipschitz(protocol, losses), protocol.iterations
    # on the grid: in the first iteration all models agree, later on everybody's gradient may be rounded the other way
    single = protocol.sum
    first = share * single.distance * single.step
    later = 2 * protocol.clip * share + math.sqrt(protocol.dimension) * single.step
    with np.errstate(over="ignore"):
        faded = float(np.float64(c) ** (T - 1))
    return np.full(protocol.n, protocol.step * (first * faded + later * added_up(c, T - 1)))
