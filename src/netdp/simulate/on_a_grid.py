"""Values of a simulation in grid steps, held to what the privacy of tokens and gossip on a grid rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import Gossip, PathSum, RandomizedGossip, RingSum
from netdp.protocols.grid import held_in_steps, lowest_of


def held_on_the_grid(
    protocol: RingSum | PathSum | Gossip | RandomizedGossip,
    data: FloatArray,
    bounds: Any,
    in_steps: Callable[[Any, FloatArray], IntArray],
) -> IntArray:
    """The values (…, d) in grid steps; single numbers clipped to the bounds in steps, or refused if they are too far apart."""
    columns = data.shape[-1]
    if columns > protocol.dimension:
        raise InvalidValue(
            f"values have {columns} columns, the protocol states dimension={protocol.dimension}; rounding more columns moves "
            f"values further apart, so state dimension={columns}"
        )
    integers = in_steps(protocol, data)
    if protocol.dimension > 1:
        return integers
    low = lowest_of(bounds)
    lowest = None if low is None else int(in_steps(protocol, np.array([low]))[0])
    return held_in_steps(integers, protocol.distance, lowest, protocol.sensitivity)
