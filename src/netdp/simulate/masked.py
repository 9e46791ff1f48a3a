"""A masked sum, run: the integers that real peers would send, with NumPy's generators for noise and pads.

Pads are drawn party by party, each party's with all its later neighbours at once, so that no more than n pads are in
memory. Nothing else differs from the wire: the steps are those of `netdp.protocols.masked`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.graphs.mixing import mixing_matrix
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import MaskedSum
from netdp.protocols.masked import (
    SLACK,
    add_pads,
    averaging_end,
    averaging_start,
    averaging_update,
    contribution,
    opened,
    quantised,
    record_tables,
    reduced,
    summed_records,
)
from netdp.views import Transcript

from .run import Normal, Run, Values, execute, observers_of, prepared

_NOISE, _PADS = 0, 1  # different streams of one seed


@dataclass(frozen=True, eq=False)
class MaskedRecord:
    """All that the observers hold after a run, and more than that if it was spread by averaging.

    observers   who they are, in increasing order
    messages    (messages, 3) round, sender, receiver: the rows of `transcript.received_by(observers)`
    published   (n, d) the y of every party, modulo q: what flooding brings to everybody. Of an averaged run they receive
                only mixtures of these; the guarantee grants them all
    values      (observers, d) their own values
    integers    (observers, d) the same in grid steps
    noises      (observers, d) the noise each of them added, in grid steps
    pads        (edges, d) the pad of each edge in `pad_edges`, added at its first end and subtracted at the second
    pad_edges   (edges, 2) the edges of the mask graph that touch an observer
    """

    observers: tuple[int, ...]
    messages: IntArray
    published: npt.NDArray[np.uint64]
    values: FloatArray
    integers: IntArray
    noises: IntArray
    pads: npt.NDArray[np.uint64]
    pad_edges: IntArray


@execute.register
def _masked(protocol: MaskedSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    if protocol.unit == "record":
        observers = observers_of(protocol, record)
        data, integers = added_up(protocol, values)
    else:
        data, observers = prepared(values, protocol, record)
        integers = on_the_grid(protocol, data, values.bounds)
    source = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_NOISE,)))
    noise = DiscreteGaussian(protocol.share).sample(data.shape, words_from(source))
    published, edges, pads = publish(protocol, integers, noise, seed, observers)
    totals = spread(protocol, published)
    mean = opened(totals, protocol.q) / protocol.n
    estimates = protocol.step * (mean + protocol.centre_steps)
    transcript = Transcript.synchronous(protocol.graph, protocol.rounds)
    kept: Any = None
    if observers:
        own = list(observers)
        kept = MaskedRecord(
            observers, transcript.received_by(own), published, data[own], integers[own], noise[own], pads, edges
        )
    return Run(estimates, transcript, seed, protocol, kept)


def on_the_grid(protocol: MaskedSum, data: FloatArray, bounds: Any) -> IntArray:
    """The values in grid steps, held to what privacy and modulus rest on: within Δ of each other, within reach of the centre."""
    if data.shape[1] > protocol.dimension:
        raise InvalidValue(
            f"values have {data.shape[1]} columns, the protocol states dimension={protocol.dimension}; rounding more columns "
            f"moves values further apart, so state dimension={data.shape[1]}"
        )
    reach, name = (protocol.sensitivity, "sensitivity") if protocol.reach is None else (protocol.reach, "reach")
    far = np.abs(data - protocol.centre) > reach * (1 + SLACK)
    if far.any():
        party, column = (int(i) for i in np.argwhere(far)[0])
        raise InvalidValue(
            f"the value of party {party}, {data[party, column]:g}, is further than the {name} {reach:g} from "
            f"the centre {protocol.centre:g}; state centre=, the public middle of all values, or a larger {name}"
        )
    integers = quantised(protocol, data)
    if protocol.dimension == 1:
        # numbers are accepted a relative 1e-9 further apart than Δ: that may be one step more
        if bounds is not None:
            low = -float(bounds) if isinstance(bounds, int | float | np.number) else float(bounds[0])
            return np.asarray(np.minimum(integers, quantised(protocol, np.array([low]))[0] + int(protocol.distance)))
        wide = int(integers.max() - integers.min())
        if wide > protocol.distance:
            raise InvalidValue(
                f"on the grid the values are {wide} steps apart, more than the {int(protocol.distance)} of the sensitivity "
                f"{protocol.sensitivity!r}; state bounds=(lo, hi) into which they are clipped"
            )
    return integers


def added_up(protocol: MaskedSum, values: Values) -> tuple[FloatArray, IntArray]:
    """Every party's sum over its records, (n, d), as it is and in grid steps, each record held to the norm Δ.

    Real peers clip a sum to its reach without a word; here it is refused, as a simulation has nothing to hide. Values are a
    sequence of n tables, one per party: (records, d) numbers, where d = 1 also (records,). A party may have none.
    """
    if values.bounds is not None:
        raise InvalidValue(
            f"bounds={values.bounds!r} with unit='record': the L2 norm of every record is held to the sensitivity "
            f"{protocol.sensitivity:g}; clip records before"
        )
    tables = record_tables(protocol, values.given)
    integers = []
    for party, table in enumerate(tables):
        try:
            integers.append(summed_records(protocol, table))
        except InvalidValue as problem:
            raise InvalidValue(f"party {party}: {problem}") from None
    return np.stack([table.sum(axis=0) for table in tables]), np.stack(integers)


def publish(
    protocol: MaskedSum, integers: IntArray, noise: IntArray, seed: int, observers: tuple[int, ...] = ()
) -> tuple[npt.NDArray[np.uint64], IntArray, npt.NDArray[np.uint64]]:
    """The y of all parties, and the edges and pads that the observers know."""
    n, columns = integers.shape
    state = np.zeros((n, columns), dtype=np.uint64)
    known_edges, known_pads = [np.empty((0, 2), dtype=np.int64)], [np.empty((0, columns), dtype=np.uint64)]
    watched = np.isin(np.arange(n), observers)
    for u in range(n - 1):
        others = later_neighbours(protocol, u)
        if not others.size:
            continue
        pads = pads_of(protocol, u, len(others), columns, seed)
        add_pads(state, u, others, pads)
        known = watched[others] | watched[u]
        if observers and known.any():
            known_edges.append(np.column_stack([np.full(np.count_nonzero(known), u, dtype=np.int64), others[known]]))
            known_pads.append(pads[known])
    return contribution(protocol, integers, noise, state), np.vstack(known_edges), np.vstack(known_pads)


def later_neighbours(protocol: MaskedSum, u: int) -> IntArray:
    """With whom u shares a pad, of the parties after it."""
    if protocol.mask_graph is None:
        return np.arange(u + 1, protocol.n)
    row = protocol.mask_graph.neighbors(u).astype(np.int64)
    return row[row > u]


def pads_of(protocol: MaskedSum, u: int, others: int, columns: int, seed: int) -> npt.NDArray[np.uint64]:
    """The pads that u shares with its later neighbours, (others, columns), uniform modulo q, from a stream of u's own."""
    source = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_PADS, u)))
    return reduced(words_from(source)(others * columns).reshape(others, columns), protocol.q)


def spread(protocol: MaskedSum, published: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The sum modulo q that every party holds in the end, (n, d).

    Flooding is not acted out: after as many rounds as the diameter everybody holds every y, and adds.
    """
    n, q = protocol.n, protocol.q
    total = reduced(published.sum(axis=0, dtype=np.uint64), q)
    if protocol.spread == "flood":
        return np.broadcast_to(total, published.shape)
    W = mixing_matrix(protocol.graph)
    previous = state = averaging_start(published, q)
    for a, b in protocol.averaging.weights:
        mixed = csr_times_block(W.indptr, W.indices, W.data, state)
        previous, state = state, averaging_update(mixed, a, b, previous)
    found = averaging_end(state, n, q)
    if not (found == total).all():  # must not happen; never hand out a sum that is not exact
        raise NetdpError(
            f"averaging on {protocol.graph!r} did not become exact; use spread='flood', and please report this"
        )
    return found
