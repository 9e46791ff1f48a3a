"""`simulate`: one run of a protocol on given values, and what is kept of it.

Families enter how their protocols run in `execute`, `trainers` and `collectors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms.laplace import Laplace
from netdp.mechanisms.responses import RandomizedResponse
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.values import held, party_values
from netdp.protocols.base import Protocol
from netdp.protocols.grid import norm_order
from netdp.protocols.table import Table
from netdp.protocols.views import Transcript, who_looks

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

    def __str__(self) -> str:
        first = ", ".join(f"{x:.4g}" for x in self.estimates[0, :6]) + (", …" if self.estimates.shape[1] > 6 else "")
        return (
            f"a run of {self.protocol.describe()}\n{self.protocol.answer}, as party 0 holds it: {first}\n"
            f"{len(self.transcript):,} messages; seed {self.seed}"
        )

    def __repr__(self) -> str:
        return f"Run({type(self.protocol).__name__}, estimates {self.estimates.shape}, {len(self.transcript)} messages)"


def simulate(
    protocol: Protocol,
    values: npt.ArrayLike,
    seed: int,
    *,
    bounds: float | tuple[float, float] | None = None,
    record: int | str | Iterable[int | str] | None = None,
    mechanism: Any = None,
    **options: Any,
) -> Any:
    """Run `protocol` on `values` (n,) or (n, d), one row per party; the same seed gives the same run.

    Every protocol runs. Averages, sums and histograms give a `Run`. Descents take losses in place of values, such as
    `netdp.learn.LogisticParties` or `ModelParties`, and give what `netdp.learn.train`, `train_ring` or `train_walk` give, with the
    same options and the same bits. Shuffles randomize every value before it is sent and give what the curator collects.

    mechanism   of a shuffle: the randomizer, no less private than the protocol's ε₀; by default Laplace noise on numbers within
             `bounds`, or randomized response of labels 0 … k−1 where the protocol states k `values`
    bounds   the public set that values come from, into which they are clipped: (lo, hi) for every coordinate, or a radius
             around 0. It must be no wider than the protocol's `sensitivity`, on which every guarantee rests. Without bounds
             values are taken as they are, and refused if two of them are further apart than that.
    record   [0, 5] keeps what parties 0 and 5 receive and know.

    Each of the d columns is a run of its own, with independent noise; random edges and graphs are shared by them.
    Histograms take labels 0 … L−1. `Run.estimates` is what `protocol.answer` says.

    >>> from netdp import graphs
    >>> from netdp.protocols import Gossip
    >>> p = Gossip(graphs.complete(4), rounds=1, sigma=0.001, sensitivity=3.0)
    >>> run = simulate(p, [0.0, 1.0, 2.0, 3.0], seed=0, record=[0])
    >>> run.estimates.round(2).ravel().tolist()
    [1.5, 1.5, 1.5, 1.5]
    >>> run.record.messages.tolist(), run.record.payloads.round(1).ravel().tolist()
    ([[0, 1, 0], [0, 2, 0], [0, 3, 0]], [1.0, 2.0, 3.0])
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.Gossip(…), got {protocol!r}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidValue(f"seed must be a whole number ≥ 0, got {seed!r}; the same seed gives the same run")
    if trainers.handles(protocol):
        for name, given in (("bounds", bounds), ("record", record), ("mechanism", mechanism)):
            if given is not None:
                raise InvalidValue(
                    f"{name}={given!r}: {type(protocol).__name__} trains a model and takes no {name}; leave it out"
                )
        return trainers(protocol, values, int(seed), **options)
    if collectors.handles(protocol):
        if record is not None:
            raise InvalidValue(
                f"record={record!r}: the curator has nothing to record but what it collects; leave it out"
            )
        return _collected(protocol, values, int(seed), bounds, mechanism, options)
    if mechanism is not None:
        raise InvalidValue(f"mechanism={mechanism!r}: {type(protocol).__name__} has noise of its own; leave it out")
    normal = np.random.default_rng(int(seed)).standard_normal
    return execute(protocol, Values(values, bounds), int(seed), normal, record, **options)


def _collected(
    protocol: Any, values: npt.ArrayLike, seed: int, bounds: Any, mechanism: Any, options: dict[str, Any]
) -> Any:
    """Reports that a mechanism randomizes; without one, numbers of a public interval with Laplace noise.

    A protocol that states how many values its randomized response has takes labels, and needs neither.
    """
    if mechanism is None and bounds is None and (domain := getattr(protocol, "values", None)) is not None:
        mechanism = RandomizedResponse(domain, protocol.epsilon0)
        if getattr(protocol, "reporting", "all") == "single":
            options = {"null": 0} | options
    if mechanism is not None:
        if bounds is not None:
            raise InvalidValue(f"bounds={bounds!r}: the mechanism knows the values it takes; leave one of the two out")
        return collectors(protocol, mechanism, values, seed, **options)
    if bounds is None:
        raise Unsupported(
            f"{type(protocol).__name__}: values are randomized before they are shuffled: use bounds=(lo, hi) for numbers with "
            "Laplace noise, or mechanism=… from netdp.mechanisms, such as RandomizedResponse, as in "
            "netdp.families.shuffle.simulate.collect"
        )
    low, high = (-bounds, bounds) if isinstance(bounds, int | float) else bounds
    if getattr(protocol, "reporting", "all") == "single":
        options = {"null": [(low + high) / 2]} | options
    data = np.clip(party_values(values, protocol.n), low, high)
    return collectors(protocol, Laplace.interval(low, high, protocol.epsilon0), data, seed, **options)


@dataclass(frozen=True, eq=False)
class Values:
    """What `simulate` was given: values, and the set they shall be clipped into."""

    given: npt.ArrayLike
    bounds: Any = None

    def of(self, protocol: Any, *, rows: int | None = None) -> FloatArray:
        """(n, d) numbers, held to the protocol's sensitivity."""
        data = party_values(self.given, protocol.n if rows is None else rows, protocol.n)
        return held(data, protocol.sensitivity, self.bounds, protocol.n, order=norm_order(protocol))

    def labels(self) -> npt.ArrayLike:
        """As they are: a histogram checks labels against its domain."""
        if self.bounds is not None:
            raise InvalidValue(f"bounds={self.bounds!r}: a histogram takes labels, which have no bounds but the domain")
        return self.given


execute = Table("a run", "cannot be simulated", part="simulate")
"""The run itself: (protocol, values, seed, normal, record). All noise comes from `normal`, other chance from the seed."""

trainers = Table("training", "cannot be trained: it learns no model", part="simulate")
"""Descents: (protocol, losses, seed) → the models that come out."""

collectors = Table("a collection", "collects no reports", part="simulate")
"""Shuffles: (protocol, mechanism, values, seed) → the curator's estimate."""


hindsight = Table("hindsight", "is accounted for by the messages that were really sent", part="simulate")
"""(protocol) → what the loss of a transcript is about, in words, where that is more than the messages that were sent."""


def observers_of(protocol: Protocol, record: Any) -> tuple[int, ...]:
    """The observers to record, () for none."""
    return () if record is None else who_looks(protocol, record).parties


def prepared(values: Values, protocol: Protocol, record: Any) -> tuple[FloatArray, tuple[int, ...]]:
    """Values as (n, d) numbers and the observers to record."""
    return values.of(protocol), observers_of(protocol, record)


def unit_noise(law: str, normal: Normal) -> Normal:
    """Noise of mean 0 and variance 1 of the given law, made from standard normal numbers, the one source of noise of a run.

    The determinant of a 2 × 2 matrix of them, N₁N₂ − N₃N₄, has the Laplace law of scale 1: its characteristic function is
    E e^{−t²(N₂² + N₄²)/2} = 1/(1 + t²).
    """
    if law == "gaussian":
        return normal

    def laplace(shape: tuple[int, ...]) -> FloatArray:
        a, b, c, d = normal((4, *shape))
        noise: FloatArray = (a * b - c * d) / math.sqrt(2)
        return noise

    return laplace
