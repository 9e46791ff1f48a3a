"""One iteration of learning under one-time pads, run: the whole numbers that real peers would add up.

Pads cancel in every sum modulo q, to the last bit, so they are not drawn unless asked for: `pads=seed` publishes
every party's number under its pads and adds those up (a test holds the two against each other). The steps are those
of `netdp.protocols.masked`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols.masked import opened, quantised, reduced
from netdp.protocols.masked_descent import MaskedDescent

from .masked import publish

_AT_ONCE = 200_000  # numbers of noise: a few megabytes


def shares_of_noise(protocol: MaskedDescent, columns: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Everybody's shares of the noise (n, columns) in one iteration after the other; drawn for several at once."""
    if columns > protocol.dimension:
        raise InvalidValue(
            f"models have {columns} numbers, the protocol states dimension={protocol.dimension}; rounding more of them moves "
            f"gradients further apart, so state dimension={columns}"
        )
    law = DiscreteGaussian(protocol.sum.share)
    at_once = max(1, min(protocol.iterations, _AT_ONCE // (protocol.n * columns)))
    while True:
        yield from law.sample((at_once, protocol.n, columns), words_from(rng))


def gradient_sums(
    protocol: MaskedDescent, gradients: FloatArray, noise: IntArray, *, pads: int | None = None
) -> FloatArray:
    """The noisy mean gradient of every group (G, d), as everybody reads it from the published sums; `pads` is their seed."""
    one = protocol.sum
    # norms are accepted a relative 1e-9 above the clip: single numbers are held to it before they are rounded
    integers = quantised(one, np.clip(gradients, -protocol.clip, protocol.clip))
    if pads is None:
        published = reduced((integers + noise).astype(np.uint64), one.q)
    else:
        published, _, _ = publish(one, integers, noise, pads)
    totals = np.stack([published[protocol.group == g].sum(axis=0, dtype=np.uint64) for g in range(protocol.groups)])
    sizes: IntArray = np.bincount(protocol.group, minlength=protocol.groups)
    return np.asarray(one.step * opened(reduced(totals, one.q), one.q) / sizes[:, None])
