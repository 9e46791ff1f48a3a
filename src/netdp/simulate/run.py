"""`simulate`: one run of a protocol on given values, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, WalkDescent
from netdp.utility.gossip import checked_values
from netdp.views import Transcript, observer_set

#: Standard normal numbers of a shape. The only source of noise: the tests put zeros here.
Normal = Callable[[tuple[int, ...]], FloatArray]


@dataclass(frozen=True, eq=False)
class Record:
    """All that the observers hold after a run: enough to mount an attack from it, and nothing they could not know.

    observers   who they are, in increasing order
    messages    (messages, 3) round, sender, receiver: the rows of `transcript.received_by(observers)`
    payloads    (messages, d) what each of these messages carried
    values      (observers, d) their own values
    noises      (observers, d) the noise each of them added to its value
    masks       (edges, d) the mask of each edge in `mask_edges`, added at its first end and subtracted at the second
    mask_edges  (edges, 2) the edges that touch an observer, if the protocol has masks
    refreshes   (rounds − 1, observers, d) the fresh noise they added before their second send, third send, …
    """

    observers: tuple[int, ...]
    messages: IntArray
    payloads: FloatArray
    values: FloatArray
    noises: FloatArray
    masks: FloatArray
    mask_edges: IntArray
    refreshes: FloatArray


@dataclass(frozen=True, eq=False)
class Run:
    """One run: every party's final `estimates` (n, d), who sent to whom, and the record of the observers if asked for.

    `protocol` is what really ran: where the graph is drawn at random, the protocol on the graph that was drawn.
    """

    estimates: FloatArray
    transcript: Transcript
    seed: int
    protocol: Any
    record: Record | None = None


def simulate(
    protocol: Any,
    values: npt.ArrayLike,
    seed: int,
    *,
    record: int | str | Iterable[int | str] | None = None,
) -> Run:
    """Run `protocol` on `values` (n,) or (n, d), one row per party; the same seed gives the same run.

    Each of the d columns is a run of its own, with independent noise; random edges and graphs are shared by them.
    `record=[0, 5]` keeps what parties 0 and 5 receive and know.

    Values are taken as they are: that two values of one party differ by at most the protocol's `sensitivity` in L2 norm
    over all d columns, which every privacy guarantee assumes, is the caller's business (clip them first).

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> run = simulate(Gossip(graphs.complete(4), rounds=1, sigma=0.001), [0.0, 1.0, 2.0, 3.0], seed=0, record=[0])
    >>> run.estimates.round(2).ravel().tolist()
    [1.5, 1.5, 1.5, 1.5]
    >>> run.record.messages.tolist(), run.record.payloads.round(1).ravel().tolist()
    ([[0, 1, 0], [0, 2, 0], [0, 3, 0]], [1.0, 2.0, 3.0])
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed!r}; the same seed gives the same run")
    normal = np.random.default_rng(int(seed)).standard_normal
    return execute(protocol, values, int(seed), normal, record)


@singledispatch
def execute(protocol: Any, values: npt.ArrayLike, seed: int, normal: Normal, record: Any) -> Run:
    """The run itself, by type of protocol; all noise comes from `normal`, random edges and graphs from the seed."""
    if isinstance(protocol, GossipDescent | LocalDescent | CentralDescent | WalkDescent):
        how = (
            "train_walk(protocol, data, seed)"
            if isinstance(protocol, WalkDescent)
            else "train(protocol, gradients, d, seed)"
        )
        raise Unsupported(f"{type(protocol).__name__} trains a model instead of adding up values: netdp.learn.{how}")
    raise Unsupported(f"{type(protocol).__name__} cannot be simulated")


def prepared(values: npt.ArrayLike, parties: Graph | int, record: Any) -> tuple[FloatArray, tuple[int, ...]]:
    """Values as (n, d) numbers and the observers to record, () for none."""
    n = parties if isinstance(parties, int) else parties.n
    return checked_values(values, n), () if record is None else observer_set(parties, record)
