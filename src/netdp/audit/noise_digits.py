"""What the last digits of a number that was sent give away: the set of numbers that can come out must not depend on the data.

Noise that is added in floating point is rounded, and which doubles can come out depends on the value it is added to (Mironov,
*On significance of the least significant bits for differential privacy*, 2012): 0 + z has all 53 digits of z, however small z is,
and 1 + z has none below 2⁻⁵³. So the event {y·2⁵³ is no whole number} has a probability of some percent for one value and 0 for
the other: no ε allows that. Likewise {no random number gives y, were the value x}.

**`on_lattice`**: every number is a whole multiple of the stated step, exactly. Then what can come out is the same set for all
data, and all that is left is the law on it, which `noise_law` looks at and accountants account for.

**`float_leak`** is the attack: from numbers sent with one value and with another it learns which places of the last digit tell
them apart, and is judged on numbers it has not seen (`bounds`). All events {y·2ʲ is no whole number} are among what it can
learn; `also` gives it further ones, such as Mironov's. Two ways to judge:

    without a curve   digits below the noise must tell nothing at all. A discrete Gaussian of deviation s, shifted anyhow, has
                      remainders modulo m uniform to within 2e^{−2π²s²/m²}: nothing, from m ≤ s/2 on. Places above that are
                      taken together: there the numbers themselves, and not their digits, are what differs.
    with a curve      no place is left out, and what the events tell must be impossible under the promise
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import IntArray
from netdp.privacy import Curve

from .bounds import measure
from .findings import Check
from .noise_law import DOUBT

ZERO = 2000
"""Where the last digit of 0 is said to be: it has none."""
_FEWEST = 400


def on_lattice(values: npt.ArrayLike, step: float = 1.0, name: str = "numbers on the grid") -> Check:
    """Whether every number is a whole multiple of `step`, a power of two, exactly. Whole numbers count in steps already.

    >>> on_lattice([0.25, -1.5], 0.25).ok, on_lattice([0.25, 0.1], 0.25).ok, on_lattice(np.array([3, -1])).ok
    (True, False, True)
    """
    numbers = np.asarray(values)
    if math.frexp(step)[0] != 0.5:
        raise InvalidValue(
            f"step={step!r} is no power of two: doubles do not hold its multiples; give whole numbers of steps"
        )
    if numbers.dtype.kind in "iu":
        return Check(name, True, f"{numbers.size:,} whole numbers, in steps of {step:g}")
    if numbers.dtype.kind != "f":
        raise InvalidValue(f"values must be numbers, got an array of {numbers.dtype}")
    # dividing by a power of two is exact, and what overflows is off the grid of 64-bit numbers anyhow
    with np.errstate(over="ignore", invalid="ignore"):
        steps = numbers.astype(np.float64) / step
        off = ~(np.isfinite(steps) & (steps == np.rint(steps)))
    if off.any():
        odd = numbers[off].flat[0]
        return Check(
            name,
            False,
            f"{int(off.sum()):,} of {numbers.size:,} numbers, such as {odd!r}, are no multiples of {step:g}",
        )
    return Check(name, True, f"{numbers.size:,} numbers are whole multiples of {step:g}, exactly")


def last_digit(values: npt.ArrayLike) -> IntArray:
    """The place j of the last binary digit that is set: y·2⁻ʲ is odd; `ZERO` for 0.

    >>> last_digit([0.75, 12.0, 0.0, 2.0**-60]).tolist(), last_digit(np.array([12, -1])).tolist()
    ([-2, 2, 2000, -60], [2, 0])
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iu":
        whole, place = numbers.astype(np.int64).ravel(), np.zeros(numbers.size, dtype=np.int64)
    elif numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            raise InvalidValue("a number that is not finite has no last digit; leave it out")
        part, exponent = np.frexp(numbers.astype(np.float64).ravel())
        whole, place = np.ldexp(part, 53).astype(np.int64), exponent.astype(np.int64) - 53
    else:
        raise InvalidValue(f"values must be numbers, got an array of {numbers.dtype}")
    lowest = (whole & -whole).astype(np.uint64).astype(np.float64)  # a power of two: exact
    with np.errstate(divide="ignore"):
        return np.where(whole == 0, ZERO, place + np.where(whole == 0, 0, np.frexp(lowest)[1] - 1))


def float_leak(
    samples0: npt.ArrayLike,
    samples1: npt.ArrayLike,
    *,
    curve: Curve | None = None,
    also: Callable[[Any], npt.ArrayLike] | None = None,
    doubt: float = DOUBT,
    name: str = "last digits tell nothing",
) -> Check:
    """Whether last digits tell two values apart: ok if they do not, or by no more than the curve allows.

    samples0, samples1 : what was sent with one value, and with the other; equally many independent numbers
    also : a further thing that the attack may look at: numbers → one whole number for each, such as "can come from value 0"

    >>> z = np.random.default_rng(0).laplace(size=(2, 20_000))
    >>> float_leak(z[0], 1 + z[1]).ok, float_leak(np.rint(z[0] * 1024), np.rint((1 + z[1]) * 1024)).ok
    (False, True)
    """
    zero, one = (np.asarray(given).ravel() for given in (samples0, samples1))
    if zero.shape != one.shape or len(zero) < _FEWEST:
        raise InvalidValue(f"{zero.size} and {one.size} numbers: give equally many of both, {_FEWEST} or more")
    highest = ZERO
    if curve is None:  # the noise of either; half of its deviation is the largest modulus that is looked at
        spread = max(float(np.std(part.astype(np.float64))) for part in (zero, one))
        highest = math.frexp(spread)[1] - 2 if spread else -ZERO
    features = [tuple(np.minimum(last_digit(part), highest) for part in (zero, one))]
    if also is not None:
        features.append(tuple(np.asarray(also(part)).astype(np.int64).ravel() for part in (zero, one)))
    for looked_at in features:
        half = len(zero) // 2
        score = _learned(looked_at[0][:half], looked_at[1][:half])
        without, within = (score(part[half:]) for part in looked_at)
        told = measure(without, within, delta=0.0, confidence=1 - doubt / len(features))
        leaks = told.by_counts > 0 or told.mu > 0 if curve is None else told.refutes(curve)
        if leaks:
            best = max(told.points, key=lambda point: point.epsilon(0.0))
            said = (
                f"an event of the last digits has probability {best.true:.3g} or more with one value and {best.false:.3g} or less "
                f"with the other: ε is at least {told.by_counts:.3g} at δ = 0"
            )
            return Check(name, False, said)
    allowed = "at all" if curve is None else "beyond what is promised"
    return Check(
        name, True, f"2 × {len(zero):,} numbers: no place of the last digit tells the two values apart {allowed}"
    )


def _learned(without: IntArray, within: IntArray) -> Callable[[IntArray], Any]:
    """Scores by how much more often something was seen with the second value; 0 for what was never seen."""
    keys = np.unique(np.concatenate([without, within]))
    a, b = (np.bincount(np.searchsorted(keys, part), minlength=len(keys)) + 0.5 for part in (without, within))
    logs = np.log(b / a)

    def score(part: IntArray) -> Any:
        place = np.minimum(np.searchsorted(keys, part), len(keys) - 1)
        return np.where(keys[place] == part, logs[place], 0.0)

    return score
