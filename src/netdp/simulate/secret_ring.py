"""Rings in a new random order every round, run. Values are (n,) or (n, d), the same in every round, or (rounds, n, d).

What is read at the end is the token over rounds·n: the mean of all contributions. The orders come from a stream of their own;
`Run.protocol` is the sum along the path that was drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.protocols.path import PathSum
from netdp.protocols.secret_ring import SecretRingSum

from .run import Normal, Run, Values, execute, observers_of
from .tokens import carry, every_round, stream, token_run


def draw_orders(protocol: SecretRingSum, seed: int) -> PathSum:
    """The orders that `simulate` with this seed draws, one after the other, as a protocol on a public path.

    >>> draw_orders(SecretRingSum(4, rounds=2, sigma=2.0), seed=1).paths[0].reshape(2, 4).tolist()
    [[3, 1, 0, 2], [3, 0, 1, 2]]
    """
    rng = stream(seed)
    path = np.concatenate([rng.permutation(protocol.n) for _ in range(protocol.rounds)]).astype(np.int32)
    return PathSum(protocol.n, (path,), protocol.hop_noise, sensitivity=protocol.sensitivity)


@execute.register
def _secret_ring(protocol: SecretRingSum, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    data = every_round(protocol, values)
    observers = observers_of(protocol, record)
    drawn = draw_orders(protocol, seed)
    path = drawn.paths[0]

    def gifts(_: int, first: int, last: int) -> FloatArray:
        return data[np.arange(first, last) // protocol.n, path[first:last]]

    noise = np.broadcast_to(protocol.hop_noise, len(path)), 0.0
    release, kept = carry(protocol.n, drawn.paths, gifts, (noise,), data.shape[2], normal, observers)
    return token_run(drawn, release[0] / len(path), drawn.paths, seed, kept)
