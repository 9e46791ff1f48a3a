"""Values on a grid: what the randomizers in whole numbers add their noise to.

A value x becomes k = the whole number nearest to (x − centre)/g, g the step of the grid. Computed in doubles, this may be
off by one, and a value at the rim of its ball may leave it by rounding. Neither matters: k is *some* function of x, and `held`
then moves every k, in whole numbers only, into the ball of R steps that the privacy is stated for. Where rounding alone carried
a vector out, its numbers are cut towards zero instead: so no number is off by more than half a step inside the ball and for
single numbers, and by more than two steps at the rim (one for the cut, one for `held`, if doubles left it a little outside).

    held in L1:  k → sign(k)·⌊|k|·R/s⌋ if s = ‖k‖₁ > R                  so that Σ⌊|k_i|R/s⌋ ≤ R
    held in L2:  the same with s a whole number ≥ ‖k‖₂, if ‖k‖₂² > R²   so that Σ⌊|k_i|R/s⌋² ≤ R²

Any two vectors in the ball are at most 2R steps apart. See docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray

from .base import whole

MOST_STEPS = 2**30
"""No ball is divided into more steps, so that products and squares of two such numbers fit in 62 bits."""


def even_steps(value: Any) -> int:
    """Into how many steps Δ is divided: an even whole number, so that the centre lies on the grid."""
    steps = whole("steps", value, least=2)
    if steps % 2 or steps > MOST_STEPS:
        raise InvalidValue(
            f"steps must be an even whole number from 2 to 2³⁰, got {value!r}; a power of two is a good choice"
        )
    return steps


def step_of(sensitivity: float, steps: int) -> float:
    """Δ/steps, or a refusal if no double is that small: dividing by 0 is no function on the grid.

    >>> step_of(1e-318, 2**20)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: sensitivity=1e-318 in 1048576 steps: a step is too small for a double; rescale the values
    """
    step = sensitivity / steps
    if step < float(np.finfo(np.float64).tiny):
        raise InvalidValue(
            f"sensitivity={sensitivity!r} in {steps} steps: a step is too small for a double; rescale the values"
        )
    return step


def on_the_grid(table: FloatArray, centre: float, step: float, radius: int, order: int) -> IntArray:
    """Every row in whole steps from the centre, held within `radius` steps in the L1 or L2 norm.

    >>> on_the_grid(np.array([[1.0, 0.26], [0.0, -0.26]]), 0.0, 0.5, 2, order=1).tolist()
    [[2, 0], [0, -1]]
    """
    offset = np.clip((table - centre) / step, -radius, radius)
    near = np.rint(offset).astype(np.int64)
    inside = held(near, radius, order)
    moved = (inside != near).any(axis=1)
    if moved.any():
        inside[moved] = held(np.trunc(offset[moved]).astype(np.int64), radius, order)
    return inside


def held(rows: IntArray, radius: int, order: int) -> IntArray:
    """Rows outside the ball of `radius` steps are brought inside, in whole numbers; no entry may be larger than the radius.

    >>> held(np.array([[3, 4], [4, 4]]), 5, order=2).tolist(), held(np.array([[-3, 3]]), 4, order=1).tolist()
    ([[3, 4], [3, 3]], [[-2, 2]])
    """
    size = np.abs(rows)
    if order == 1:
        length = size.sum(axis=1)
        far = length > radius
    else:
        if np.linalg.norm(rows, axis=1).max(initial=0.0) > 2.0**31:
            raise InvalidValue(
                "a row is so far outside that its square does not fit into 63 bits; clip the values first"
            )
        squares = (size * size).sum(axis=1)
        far = squares > radius * radius
        length = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)  # the root, or one below or above it
        length += length * length < squares
    if far.any():
        rows = rows.copy()
        rows[far] = np.sign(rows[far]) * (size[far] * radius // length[far, None])
    return rows
