"""One exchange of randomized gossip on a grid: two whole numbers become their mean, and not a unit is lost.

    before it leaves      s ← s + γ             γ discrete Gaussian of parameter V₁; nothing before a party's first send
    u and w, u < w        u takes ⌊(s_u + s_w)/2⌋, w the rest, s_u + s_w − ⌊(s_u + s_w)/2⌋

So the sum of the two stays to the last unit. What an exchange does to an end is written as a *difference* that it adds to
whatever its state is by then: what it takes minus what it sent (`difference`). If an answer comes late, when its receiver
has gone on already, the difference is added all the same, and the sum of all states is again what it was. An exchange is
*torn* if one end has added its difference and the other never does: then the sum has moved by that difference.

These are the steps of a party, the same in a simulation and on a wire.
"""

from __future__ import annotations

import math

from netdp.errors import InvalidValue
from netdp.numerics.arrays import IntArray

LARGEST = 2**62
"""No state that is sent is larger, in grid steps; what an honest run holds stays far below."""


def shared(lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray]:
    """What the party with the smaller number takes, and what the other takes, of what the two sent.

    >>> import numpy as np
    >>> lower, upper = shared(np.array([3, -3, 2**62]), np.array([4, 0, 2**62]))
    >>> lower.tolist(), upper.tolist()
    ([3, -2, 4611686018427387904], [4, -1, 4611686018427387904])
    """
    apart = (lower ^ upper) >> 1
    return (lower & upper) + apart, (lower | upper) - apart


def difference(me: int, sent: IntArray, other: int, heard: IntArray) -> IntArray:
    """What party `me` adds to its state after an exchange with `other`: what it takes minus what it sent.

    >>> import numpy as np
    >>> difference(0, np.array([3]), 5, np.array([8])).tolist(), difference(5, np.array([8]), 0, np.array([3])).tolist()
    ([2], [-2])
    """
    if sent.shape != heard.shape:
        raise InvalidValue(f"party {other} sent {heard.shape} numbers, {sent.shape} are expected")
    if me < other:
        return shared(sent, heard)[0] - sent
    return shared(heard, sent)[1] - sent


def largest_state(reach: int, variance: int, steps: int) -> int:
    """A bound, in grid steps, that honest states exceed with a probability below 2e⁻¹²⁸ each: more is neither sent nor taken.

    reach      no value has more steps
    variance   of all noise together, in squared steps: V₀ + 2·steps·V₁
    steps      how many exchanges there are, at most: each rounds by at most half a step

    A state is a mean of noisy values, or with late answers a combination of weight up to two: values make up at most 2·reach of it,
    and its noise has a deviation of at most 2·√variance, of which 16 are allowed.

    >>> largest_state(100, 400, 10)
    892
    """
    return min(LARGEST, 2 * (reach + steps + 16 * (math.isqrt(variance) + 1)))


def fits(state: IntArray, largest: int = LARGEST) -> bool:
    """Whether all numbers of a state are so small in size, 2⁶² without more, that they may be sent.

    >>> import numpy as np
    >>> fits(np.array([2**62, -(2**62)])), fits(np.array([2**62 + 1]))
    (True, False)
    """
    return bool(((state >= -largest) & (state <= largest)).all())
