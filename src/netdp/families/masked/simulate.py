"""Masked sums and learning by them, run in one process: the whole numbers that real peers would send and add up.

A sum is run with its pads, party by party, so that no more than n of them are in memory. In training pads cancel to the last bit
and are left out unless asked for (`pads=seed`). Only the sum of everybody's noise is ever seen: where it is within e^{±10⁻¹²} of
one discrete Gaussian with all their variance, over all iterations and coordinates, that one is drawn instead of n shares
(`sum_distance`, docs/proofs/masked.md#masked-sum), n times faster, and nobody could tell. Everything else is as on the wire: the
steps of `netdp.families.masked.protocol` and `descent`, the whole numbers of `netdp.models.whole_sum`, exact 32-bit coins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError
from netdp.families.masked.descent import COIN, MaskedDescent, State, begun, kept, stepped
from netdp.families.masked.protocol import (
    MaskedSum,
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
from netdp.graphs.mixing import mixing_matrix
from netdp.mechanisms.discrete_gaussian import MOST_VARIANCE, DiscreteGaussian, sum_distance, words_from
from netdp.models.base import whole_sum
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols.grid import SLACK
from netdp.protocols.simulation import Normal, Run, Values, execute, observers_of, prepared, trainers
from netdp.protocols.training import After, Losses, Trained, check_losses, checked, clipped, first_model, shares
from netdp.protocols.views import Transcript

if TYPE_CHECKING:
    from netdp.models.base import Model

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
def _run_masked(protocol: MaskedSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    if protocol.unit == "record":
        observers = observers_of(protocol, record)
        data, integers = added_up(protocol, values)
    else:
        data, observers = prepared(values, protocol, record)
        integers = on_the_grid(protocol, data, values.bounds)
    source = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_NOISE,)))
    noise = protocol.share_noise.sample(data.shape, words_from(source))
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
            f"bounds={values.bounds!r} with unit='record': the norm of every record is held to the sensitivity "
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


@runtime_checkable
class Records(Protocol):
    """Parties whose records a model sees one by one: `netdp.learn.ModelParties`."""

    @property
    def model(self) -> Model:
        """What is learned."""

    @property
    def Xs(self) -> Sequence[Any]:  # noqa: N802  as scikit-learn writes tables
        """The rows of every party."""

    @property
    def ys(self) -> Sequence[Any]:
        """Their labels."""


def shares_of_noise(protocol: MaskedDescent, columns: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Everybody's shares of the noise (n, columns) in one iteration after the other; drawn for several at once."""
    _check_columns(protocol, columns)
    yield from _drawn(protocol, protocol.sum.share, (protocol.n, columns), rng)


def noise_of_sums(protocol: MaskedDescent, columns: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """The noise of every group's sum (G, columns) in one iteration after the other.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(100), 5, sigma=2.0, step=0.5, grid=0.25)
    >>> noise = noise_of_sums(p, 1, np.random.default_rng(0))
    >>> round(float(np.std([next(noise) for _ in range(3000)])) / 80, 1)          # 2·√100 in steps of 1/4
    1.0
    """
    _check_columns(protocol, columns)
    sizes, share = group_sizes(protocol), protocol.sum.share
    apart = max(sum_distance(share, int(size)) for size in sizes)
    if apart * columns * protocol.groups * protocol.iterations > _ALIKE or share * int(sizes.max()) > MOST_VARIANCE:
        for shares in _drawn(protocol, share, (protocol.n, columns), rng):
            yield _by_group(protocol, shares)
        return  # never: there are always more
    each = [_drawn(protocol, share * int(size), (columns,), rng) for size in sizes]
    while True:
        yield np.stack([next(noise) for noise in each])


def _drawn(
    protocol: MaskedDescent, variance: int, shape: tuple[int, ...], rng: np.random.Generator
) -> Iterator[IntArray]:
    law = DiscreteGaussian(variance)
    at_once = max(1, min(protocol.iterations, _AT_ONCE // int(np.prod(shape))))
    while True:
        yield from law.sample((at_once, *shape), words_from(rng))


def _check_columns(protocol: MaskedDescent, columns: int) -> None:
    if columns > protocol.dimension:
        raise InvalidValue(
            f"models have {columns} numbers, the protocol states dimension={protocol.dimension}; rounding more of them moves "
            f"gradients further apart, so state dimension={columns}"
        )


def takes_part(protocol: MaskedDescent, many: int, rng: np.random.Generator) -> BoolArray:
    """Who of so many is in the sum of this iteration: one exact coin each."""
    if protocol.sampling == 1:
        return np.ones(many, dtype=bool)
    return np.asarray(rng.integers(0, COIN, size=many, dtype=np.int64) < protocol.threshold)


def party_integers(protocol: MaskedDescent, gradients: FloatArray, present: BoolArray) -> IntArray:
    """Unit "party": everybody's gradient (n, d) on the grid; zero for whoever does not take part."""
    # norms are accepted a relative 1e-9 above the clip: single numbers are held to it before they are rounded
    integers = quantised(protocol.sum, np.clip(gradients, -protocol.clip, protocol.clip))
    return np.asarray(integers * present[:, None])


def check_records(protocol: MaskedDescent, losses: Any) -> Records:
    """The parties' records, if the model sees them one by one and nobody has more than the protocol allows for."""
    if not isinstance(losses, Records):
        raise InvalidValue(
            "unit='record' clips the gradient of every record: give netdp.learn.ModelParties(model, Xs, ys), which has them, "
            f"got {type(losses).__name__}"
        )
    assert protocol.max_records is not None
    most = max(len(y) for y in losses.ys)
    if most > protocol.max_records:
        raise InvalidValue(
            f"party {max(range(len(losses.ys)), key=lambda u: len(losses.ys[u]))} has {most:,} records, the protocol allows for "
            f"max_records={protocol.max_records:,}; state at least as many, the modulus is made for it"
        )
    return losses


class RecordSums:
    """Unit "record": the whole numbers of the sampled records, added up by group, iteration after iteration."""

    def __init__(self, protocol: MaskedDescent, losses: Records) -> None:
        self._protocol, self._model = protocol, losses.model
        owner = np.repeat(np.arange(protocol.n), [len(y) for y in losses.ys])
        group = protocol.group[owner]
        order = np.argsort(group, kind="stable")
        X, y = np.concatenate(list(losses.Xs)), np.concatenate(list(losses.ys))
        self._X, self._y, self._group = X[order], y[order], group[order]

    def drawn(self, theta: FloatArray, rng: np.random.Generator) -> IntArray:
        """(G, d): the sums of one iteration before noise, in grid steps."""
        protocol = self._protocol
        present = takes_part(protocol, len(self._y), rng)
        sums = []
        for g in range(protocol.groups):
            chosen = present & (self._group == g)
            sums.append(
                whole_sum(
                    self._model,
                    theta,
                    self._X[chosen],
                    self._y[chosen],
                    protocol.clip,
                    protocol.sum.step,
                    protocol.distance,
                )
            )
        return np.stack(sums)


def states_along(
    protocol: MaskedDescent,
    start: FloatArray,
    gradients: Callable[[FloatArray], FloatArray] | Records,
    rng: np.random.Generator,
) -> Iterator[State]:
    """The state after every iteration: everybody's gradients (n, d) as a function of the model, or the parties' records."""
    state, noise = begun(start), noise_of_sums(protocol, start.size, rng)
    records = RecordSums(protocol, gradients) if isinstance(gradients, Records) else None
    for t in range(1, protocol.iterations + 1):
        if records is not None:
            totals = records.drawn(state.theta, rng)
        else:
            assert callable(gradients)
            present = takes_part(protocol, protocol.n, rng)
            totals = _by_group(protocol, party_integers(protocol, gradients(state.theta), present))
        sums = opened_sums(protocol, totals + next(noise))
        state = stepped(protocol, state, t, sums[0] if protocol.groups == 1 else sums)
        yield state


def opened_sums(protocol: MaskedDescent, totals: IntArray) -> IntArray:
    """Sums with their noise (G, d) as everybody reads them modulo q, in grid steps."""
    q = protocol.sum.q
    return opened(reduced(totals.astype(np.uint64), q), q)


def published_sums(
    protocol: MaskedDescent, integers: IntArray, noise: IntArray, *, pads: int | None = None
) -> IntArray:
    """(G, d): what everybody reads from the numbers (n, d) and shares of noise that were published; `pads` is their seed."""
    single = protocol.sum
    if pads is None:
        published = reduced((integers + noise).astype(np.uint64), single.q)
    else:
        published, _, _ = publish(single, integers, noise, pads)
    totals = [published[protocol.group == g].sum(axis=0, dtype=np.uint64) for g in range(protocol.groups)]
    return opened(reduced(np.stack(totals), single.q), single.q)


def gradient_sums(
    protocol: MaskedDescent, gradients: FloatArray, noise: IntArray, *, pads: int | None = None
) -> FloatArray:
    """The noisy mean gradient of every group (G, d) if all take part, as everybody reads it from the published sums."""
    everybody = np.ones(protocol.n, dtype=bool)
    sums = published_sums(protocol, party_integers(protocol, gradients, everybody), noise, pads=pads)
    return np.asarray(protocol.sum.step * sums / group_sizes(protocol)[:, None])


def group_sizes(protocol: MaskedDescent) -> IntArray:
    """How many parties every group has."""
    return np.bincount(protocol.group, minlength=protocol.groups)


def _by_group(protocol: MaskedDescent, numbers: IntArray) -> IntArray:
    """Rows (n, d) added up by group (G, d)."""
    return np.stack([numbers[protocol.group == g].sum(axis=0) for g in range(protocol.groups)])


@trainers.register
def _train(
    protocol: MaskedDescent,
    losses: Losses,
    seed: int,
    *,
    after: After | None = None,
    average: str = "last",
    convexity: float = 0.0,
) -> Trained:
    check_losses(protocol, losses)
    share = shares(protocol, average, convexity)
    if average == "weighted" and protocol.average != "last":
        raise InvalidValue(
            f"average='weighted' of a MaskedDescent with average={protocol.average!r}: two averages; leave one out"
        )
    models = _masked_descent(protocol, losses, np.random.default_rng(seed), after, share if average != "last" else None)
    return Trained(models, Transcript.synchronous(protocol.graph, protocol.iterations * protocol.sum.rounds))


def _masked_descent(
    protocol: MaskedDescent,
    losses: Losses,
    rng: np.random.Generator,
    after: After | None,
    share: FloatArray | None,
) -> FloatArray:
    """The one model that everybody keeps, once per party (n, d); `share` weighs the models along the way, if given."""
    everybody = (protocol.n, losses.d)

    def gradients(theta: FloatArray) -> FloatArray:
        return checked(losses.gradients(np.tile(theta, (protocol.n, 1)), protocol.clip), everybody, protocol.clip)

    source = check_records(protocol, losses) if protocol.unit == "record" else gradients
    average = np.zeros(losses.d)
    for t, state in enumerate(states_along(protocol, first_model(losses), source, rng)):
        if share is not None and share[t]:
            average += share[t] * state.theta
        if after is not None:
            after(t, np.broadcast_to(state.theta, everybody))
    return np.tile(average if share is not None else kept(protocol, state), (protocol.n, 1))


_ALIKE = 1e-12

_AT_ONCE = 200_000  # numbers: a few megabytes

AfterStep = Callable[[int, State], None]
"""Told after every iteration t = 1 … T how things stand: post-processing of what everybody sees."""


def run(
    protocol: MaskedDescent, data: ModelParties, seed: np.random.SeedSequence, *, after: AfterStep | None = None
) -> FloatArray:
    """The model that everybody keeps (d,).

    >>> from netdp import graphs
    >>> from netdp.models import Linear
    >>> p = MaskedDescent(graphs.ring(4), 3, sigma=1e-9, step=1.0, clip=0.5)
    >>> data = ModelParties.deal(Linear(1), np.ones((8, 1)), np.full(8, 0.25), parties=4)
    >>> run(p, data, np.random.SeedSequence(0)).round(6).tolist()
    [0.25]
    """
    if protocol.n != data.n or protocol.dimension != data.d or protocol.groups > 1:
        raise InvalidValue(
            f"the protocol is for {protocol.n} parties in {protocol.groups} group(s) and {protocol.dimension} numbers, the data "
            f"are of {data.n} parties and a model of {data.d}; they must agree, in one group"
        )
    coins, draws = (np.random.default_rng(part) for part in seed.spawn(2))
    X, y = np.concatenate(data.Xs), np.concatenate(data.ys)
    state, drawn = (
        begun(data.start()),
        noises(protocol.sum.share, protocol.n, protocol.dimension, protocol.iterations, draws),
    )
    for t in range(1, protocol.iterations + 1):
        if protocol.unit == "record":
            there = _taking_part(protocol, len(y), coins)
            # whole numbers: the sum of the parties' sums is the sum over all their records
            sums = whole_sum(
                data.model, state.theta, X[there], y[there], protocol.clip, protocol.sum.step, protocol.distance
            )
        else:
            rounded = party_steps(protocol, data, state.theta)
            sums = np.asarray(rounded[_taking_part(protocol, data.n, coins)].sum(axis=0))
        state = stepped(protocol, state, t, sums + next(drawn))
        if after is not None:
            after(t, state)
    return kept(protocol, state)


def party_steps(protocol: MaskedDescent, data: ModelParties, theta: FloatArray) -> IntArray:
    """Every party's mean gradient over its rows, clipped as a whole, in grid steps (n, d)."""
    means = data.gradients(np.broadcast_to(theta, (data.n, data.d)), math.inf)
    return quantised(protocol.sum, np.clip(clipped(means, protocol.clip), -protocol.clip, protocol.clip))


def noises(share: int, n: int, d: int, times: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """The sum of n shares of noise (d,), time after time, see above; drawn for several of `times` at once.

    >>> drawn = next(noises(share=900, n=100, d=20_000, times=1, rng=np.random.default_rng(0)))
    >>> drawn.shape, round(float(drawn.std()), -1)
    ((20000,), 300.0)
    """
    words = words_from(rng)
    together = max(1, min(n, MOST_VARIANCE // share)) if d * times * sum_distance(share, n) < _ALIKE else 1
    laws = [(DiscreteGaussian(together * share), n // together)]
    if n % together:
        laws.append((DiscreteGaussian(n % together * share), 1))
    at_once = max(1, min(times, _AT_ONCE // (d * sum(each for _, each in laws))))
    while True:
        yield from sum(law.sample((at_once, each, d), words).sum(axis=1) for law, each in laws)


def _taking_part(protocol: MaskedDescent, units: int, coins: np.random.Generator) -> BoolArray | slice:
    if protocol.sampling == 1:
        return slice(None)
    return np.asarray(coins.integers(0, 2**32, size=units, dtype=np.uint64) < protocol.threshold)
