"""Numbers on a grid, which a wire carries instead of real numbers, and the law of the noise that is added to them.

The step g of a grid is a power of two, and a number x becomes the whole number ⌊x/g + ½⌋. How far apart two values can be
afterwards: docs/proofs/gossip.md#gossip-steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import positive

SLACK = 2e-9
"""How much further apart than Δ, relatively, values are when they are accepted with rounding (`netdp.numerics.values`)."""


def power_below(value: float) -> float:
    """The largest power of two that is no larger.

    >>> power_below(0.3), power_below(4.0)
    (0.25, 4.0)
    """
    return math.ldexp(0.5, math.frexp(value)[1])


def grid_step(value: Any) -> float | None:
    """The step of a grid, a power of two; None, for real numbers, stays None."""
    if value is None:
        return None
    given = positive("grid", value)
    if math.frexp(given)[0] != 0.5:
        raise InvalidValue(
            f"grid must be a power of two, on which rounding is exact, got {given!r}; take {power_below(given)!r}"
        )
    return given


def squared_steps(variance: Fraction, grid: float) -> int:
    """A variance in squared grid steps, rounded up to a whole number.

    >>> squared_steps(Fraction(1, 3), 0.5)
    2
    """
    return math.ceil(variance / Fraction(grid) ** 2)


def nearest(steps: FloatArray) -> IntArray:
    """⌊s + ½⌋, exactly; |s| < 2⁶².

    >>> nearest(np.array([-0.5, 0.49999999999999994, 2.5])).tolist()
    [0, 0, 3]
    """
    if np.isnan(steps).any():
        raise InvalidValue("a value that is not a number cannot be rounded to a grid; leave it out, or replace it")
    # s + ½ would be rounded; the distance to the floor is exact where it is less than ½
    below = np.floor(steps)
    return below.astype(np.int64) + (steps - below >= 0.5)


def grid_distance(sensitivity: float, grid: float, dimension: int) -> float:
    """How far apart, in grid steps and L2 norm, two values at most Δ apart can be after rounding; whole if d = 1.

    Vectors pay for the relative 10⁻⁹ by which values may exceed Δ; a single number is clipped or refused in integers.

    >>> grid_distance(1.0, 0.25, 1), round(grid_distance(1.0, 0.25, 4), 6)
    (4, 6.0)
    """
    if dimension == 1:
        return math.ceil(Fraction(sensitivity) / Fraction(grid))
    return (sensitivity * (1 + SLACK) / grid + math.sqrt(dimension)) * (1 + 4 * UNIT)


def held_in_steps(integers: IntArray, distance: float, lowest: int | None, sensitivity: float) -> IntArray:
    """Single numbers on the grid, clipped from `lowest` on to what the privacy rests on; without it refused if too wide.

    Numbers are accepted a relative 10⁻⁹ further apart than Δ, which may be one step more than ⌈Δ/g⌉.
    """
    if lowest is not None:
        return np.asarray(np.minimum(integers, lowest + int(distance)))
    wide = int(integers.max() - integers.min())
    if wide > distance:
        raise InvalidValue(
            f"on the grid the values are {wide} steps apart, more than the {int(distance)} of the sensitivity {sensitivity!r}; "
            "state bounds=(lo, hi) into which they are clipped"
        )
    return integers


def lowest_of(bounds: Any) -> float | None:
    """The lower end of the set that values are clipped into: (lo, hi), or a radius; None if there is none."""
    if bounds is None:
        return None
    return -float(bounds) if isinstance(bounds, int | float | np.number) else float(bounds[0])


NOISE_LAWS = ("gaussian", "laplace")
"""Which noise is added: Gaussian, or Laplace of the same standard deviation."""


def checked_law(law: Any) -> str:
    """The law, or a refusal that names the choices.

    >>> checked_law("cauchy")
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: unknown law 'cauchy'; choose one of gaussian, laplace
    """
    if law not in NOISE_LAWS:
        raise InvalidValue(f"unknown law {law!r}; choose one of {', '.join(NOISE_LAWS)}")
    return str(law)


def only_gaussian(protocol: Any, what: str) -> None:
    """Refuse what is true of Gaussian noise alone."""
    if getattr(protocol, "law", "gaussian") != "gaussian":
        raise Unsupported(
            f"{what} is a number of Gaussian noise; {type(protocol).__name__} has law={protocol.law!r}: ask for epsilon(delta)"
        )


def norm_order(protocol: Any) -> int:
    """The norm in which Δ is measured: 1 under Laplace noise, 2 otherwise. For single numbers they are the same."""
    return 1 if getattr(protocol, "law", "gaussian") == "laplace" else 2


Draw: TypeAlias = Callable[[int, int], IntArray]
"""Independent discrete Gaussians: (variance in squared steps, how many) → whole numbers."""


def held_on_the_grid(
    protocol: Any,
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
