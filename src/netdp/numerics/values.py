"""The parties' values: checked, and held to the public set that the privacy proofs assume.

A protocol states Δ, the *sensitivity*: all values come from one public set of diameter Δ (for most protocols it would do if
two values of the same party differ by at most Δ; walks with a secret path need it for all parties together). The set is
stated by `bounds`: a pair (lo, hi) for every coordinate, or a radius around 0; values are then clipped into it. Without
bounds the values are taken as they are, and refused if no set of diameter Δ can hold them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue

from .arrays import FloatArray

_ROUNDING = 1e-9  # relative: 0.1 + 0.2 is a value of the interval [0, 0.3]
# Up to this many vectors all distances are computed where no ball settles the question.
_ALL_PAIRS = 4000


def party_values(values: npt.ArrayLike, n: int, parties: int | None = None) -> FloatArray:
    """The values as (n, d) numbers; refuses another number of parties, text, nan and inf.

    `parties`: if a party has several rows, row i is that of party i mod `parties`.

    >>> party_values(["a", "b"], 2)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: values must be numbers, got 'a'
    """
    try:
        given = np.asarray(values)
    except ValueError:
        raise InvalidValue("values must be a table of numbers, one row per party; the rows differ in length") from None
    if given.dtype.kind not in "fiub":
        raise InvalidValue(f"values must be numbers, got {given.ravel().tolist()[0] if given.size else values!r}")
    data = given.astype(np.float64)
    data = data[:, None] if data.ndim == 1 else data
    if data.ndim != 2 or len(data) != n:
        raise InvalidValue(f"values must have shape ({n},) or ({n}, d), one row per party, got {given.shape}")
    if data.shape[1] == 0:
        raise InvalidValue(f"values must have at least one column, got shape {given.shape}")
    if not np.isfinite(data).all():
        raise InvalidValue(
            f"the value of party {int(np.argwhere(~np.isfinite(data))[0, 0]) % (parties or n)} is not finite"
        )
    return data


def held(
    data: FloatArray, sensitivity: float, bounds: Any, parties: int | None = None, *, order: int = 2
) -> FloatArray:
    """The rows of `data` clipped into the set that `bounds` states; without bounds as they are, if some set can hold them.

    `parties`: as in `party_values`, for the message. `order`: of the norm in which the sensitivity is measured, 1 or 2.

    >>> held(np.array([[-3.0], [0.2], [9.0]]), 1.0, bounds=(0, 1)).ravel().tolist()
    [0.0, 0.2, 1.0]
    >>> held(np.array([[0.0], [100.0]]), 1.0, bounds=None)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: the values of parties 0 and 1 are 100 apart, more than the sensitivity 1 that the privacy ...
    """
    if bounds is None:
        _refuse_far_apart(data, sensitivity, len(data) if parties is None else parties, order)
        return data
    if isinstance(bounds, int | float | np.integer | np.floating):
        radius = float(bounds)
        if isinstance(bounds, bool) or not (math.isfinite(radius) and radius > 0):
            raise InvalidValue(f"bounds must be a radius > 0 or a pair (lo, hi), got {bounds!r}")
        _refuse_wide(f"the ball of radius {radius:g}", 2 * radius, sensitivity)
        length = np.linalg.norm(data, ord=order, axis=1, keepdims=True)
        scaled: FloatArray = data * np.minimum(1.0, radius / np.where(length > 0, length, 1.0))
        return scaled
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidValue(f"bounds must be a radius > 0 or a pair (lo, hi), got {bounds!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidValue(f"bounds must be finite numbers lo < hi, got {bounds!r}")
    d = data.shape[1]
    what = f"[{low:g}, {high:g}]" + (f" in each of {d} coordinates" if d > 1 else "")
    _refuse_wide(what, (d if order == 1 else math.sqrt(d)) * (high - low), sensitivity)
    return np.clip(data, low, high)


def _refuse_wide(what: str, diameter: float, sensitivity: float) -> None:
    if diameter > sensitivity * (1 + _ROUNDING):
        raise InvalidValue(
            f"{what} is {diameter:g} across, more than the sensitivity {sensitivity:g} that the privacy rests on; "
            f"narrow the bounds, or state sensitivity={diameter:g} in the protocol (and more noise)"
        )


def _refuse_far_apart(data: FloatArray, sensitivity: float, parties: int, order: int) -> None:
    limit = sensitivity * (1 + _ROUNDING)
    widths = data.max(axis=0) - data.min(axis=0)
    column = int(np.argmax(widths))
    if widths[column] > limit:
        u, w = sorted((int(np.argmin(data[:, column])), int(np.argmax(data[:, column]))))
        raise _too_far(u % parties, w % parties, float(np.linalg.norm(data[u] - data[w], ord=order)), sensitivity)
    if data.shape[1] == 1 or np.linalg.norm(widths, ord=order) <= limit:
        return
    centre = (data.max(axis=0) + data.min(axis=0)) / 2
    if 2 * np.linalg.norm(data - centre, ord=order, axis=1).max() <= limit:
        return
    if len(data) > _ALL_PAIRS:
        raise InvalidValue(
            f"whether {len(data)} vectors lie within {sensitivity:g} of each other is not looked at pair by pair; "
            "state the set they come from: bounds=radius, or bounds=(lo, hi)"
        )
    for u, row in enumerate(data):
        distance = np.linalg.norm(data[u:] - row, ord=order, axis=1)
        if distance.max() > limit:
            w = u + int(np.argmax(distance))
            raise _too_far(u % parties, w % parties, float(distance.max()), sensitivity)


def _too_far(u: int, w: int, distance: float, sensitivity: float) -> InvalidValue:
    return InvalidValue(
        f"the values of parties {u} and {w} are {distance:g} apart, more than the sensitivity {sensitivity:g} that the "
        "privacy rests on; clip them with bounds=(lo, hi) or bounds=radius, or state a larger sensitivity (and more noise)"
    )
