"""Masked descent on rows that lie in one process: the whole numbers that real peers would add up, in seconds.

The estimators hold everybody's rows, so pads hide nothing from anybody here: they cancel in every sum to the last bit and are
left out. What is kept is all that decides the model: gradients clipped and rounded as at a party (`netdp.models.whole_sum`, or
the party's mean clipped as a whole), secret coins, noise in whole numbers, and the steps of `netdp.protocols.model_steps`.

**The noise of a sum, drawn at once.** n shares of parameter v add up to the discrete Gaussian of parameter nv, every
probability within a factor e^{±t} (`netdp.mechanisms.discrete_gaussian`, sums). Where T·d·t is below 10⁻¹², which a share of
three grid steps sees to, one number is drawn instead of n: no experiment can tell. For fewer steps the shares are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import MOST_VARIANCE, DiscreteGaussian, sum_distance, words_from
from netdp.models import whole_sum
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols.masked import quantised
from netdp.protocols.masked_descent import MaskedDescent
from netdp.protocols.model_steps import State, begun, kept, stepped
from netdp.simulate.descent import clipped
from netdp.simulate.model_parties import ModelParties

_ALIKE = 1e-12
_AT_ONCE = 200_000  # numbers: a few megabytes

After = Callable[[int, State], None]
"""Told after every iteration t = 1 … T how things stand: post-processing of what everybody sees."""


def run(
    protocol: MaskedDescent, data: ModelParties, seed: np.random.SeedSequence, *, after: After | None = None
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
