"""One iteration of learning under one-time pads, run: the whole numbers that real peers would add up.

Pads cancel in every sum modulo q, to the last bit, so they are not drawn unless asked for: `pads=seed` publishes
every party's number under its pads and adds those up (a test holds the two against each other). The steps are those
of `netdp.protocols.masked` and `netdp.protocols.model_steps`; a record's whole numbers are those of `netdp.models.whole_sum`.

**Noise.** Only the sum of everybody's shares is ever seen. Where it is within e^{±10⁻¹²} of one discrete Gaussian with all
their variance, over all iterations and coordinates (`sum_distance`; for usual grids the distance is below 10^{−1000}), that one
is drawn instead of n shares: n times faster, and nobody could tell.

**Coins.** A party or record takes part if its 32-bit word is below `protocol.threshold`: exactly the probability that is
accounted for. Sampled records of all parties may be added up in one go: whole numbers have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import MOST_VARIANCE, DiscreteGaussian, sum_distance, words_from
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols.masked import opened, quantised, reduced
from netdp.protocols.masked_descent import COIN, MaskedDescent
from netdp.protocols.model_steps import State, begun, stepped

from .masked import publish

if TYPE_CHECKING:
    from netdp.models import Model

_AT_ONCE = 200_000  # numbers of noise: a few megabytes
_ALIKE = 1e-12


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
        from netdp.models import whole_sum

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
    one = protocol.sum
    if pads is None:
        published = reduced((integers + noise).astype(np.uint64), one.q)
    else:
        published, _, _ = publish(one, integers, noise, pads)
    totals = [published[protocol.group == g].sum(axis=0, dtype=np.uint64) for g in range(protocol.groups)]
    return opened(reduced(np.stack(totals), one.q), one.q)


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
