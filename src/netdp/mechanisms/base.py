"""What a local randomizer is, and the checks all of them share.

A randomizer turns one user's value into one report. It knows three things: how to draw reports, how private one report is,
and how to undo its own bias when many reports are averaged. Whoever holds the reports afterwards is not its business.

**Two kinds of draws.** `report(values, words)` draws whole numbers, exactly from the stated law, from 64-bit words: what is
stated (the curve, ε₀ and δ₀) is true of what is sent, if the words are uniform and independent. Randomized response and unary
encoding have it; `on_a_grid` gives Laplace, Gaussian and PrivUnit a version that has it. `randomize(values, rng)` draws from
NumPy's generators, for simulation, and for the versions on real numbers that is not the same thing:

- Laplace, Gaussian and PrivUnit only approximate their laws. Sums and products are rounded to doubles, and which doubles
  can come out depends on the value. Measured on [0, 1]: a report y for which y·2⁵³ is no whole number comes from the
  value 0 in a quarter of all draws, from the value 1 never. Whoever sees all digits of one such report knows the value.
- Randomized response and unary encoding choose among finitely many reports, and their probabilities err on the safe side
  only: what is drawn is ε₀-DP either way.
- NumPy's generators are predictable, and so is every draw for whoever knows the seed or has seen enough of the output.

Proofs, and the measurement: docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics import checks
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy import Curve

from .discrete_gaussian import Words

IDEAL_DRAWS = (
    "reports are drawn exactly from the randomizer's law, as those in whole numbers are (netdp.mechanisms.on_a_grid); the "
    "float samplers of netdp.mechanisms.Laplace, Gaussian and PrivUnit only approximate theirs, and an attacker who sees all "
    "digits can exploit it: for simulation only"
)
"""What a guarantee about randomized reports assumes if it does not know how they are drawn, in words."""
EXACT_DRAWS = (
    "reports are whole numbers, drawn from a law that is as private as stated to the last digit, if the random words they are "
    "made from are uniform and independent"
)
"""What it assumes if they are drawn by `report`."""
FLOAT_DRAWS = (
    "reports are drawn in floating point, which only approximates the randomizer's law: an attacker who sees all digits can "
    "exploit it, and no guarantee holds for these very reports; for simulation only"
)
"""What is said of reports that are drawn by `randomize` of a randomizer on real numbers."""
OWN_DRAWS = "reports are drawn by the randomizer's own randomize; that it draws exactly from the law it states is not checked here"
"""What is said of reports of a randomizer that is not from here and draws no whole numbers."""
LEAST, LARGEST = 1e-50, 50.0
"""No randomizer with a larger ε₀ is offered: such a report is as good as the value itself. With a smaller one the noise, or
its square, would not fit in a double."""
FURTHEST = 1e100
"""No parameter and no value may be larger, or its square would not fit in a double."""


@runtime_checkable
class Mechanism(Protocol):
    """A local randomizer. `values` and reports have one row per user.

    >>> from netdp.mechanisms import Laplace, RandomizedResponse
    >>> isinstance(Laplace(1.0, epsilon0=1.0), Mechanism), isinstance(RandomizedResponse(4, 1.0), Mechanism)
    (True, True)
    """

    @property
    def epsilon0(self) -> float:
        """The local-DP loss of one report, at `delta0`."""

    @property
    def delta0(self) -> float:
        """0 for a pure randomizer."""

    @property
    def curve(self) -> Curve:
        """The privacy profile of one report, for the two values that are easiest to tell apart."""

    def check(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """The values as an array; a refusal names the first row that is outside the domain."""

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """What `estimate` aims at: the mean of the values, or their frequencies."""

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user."""

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """An unbiased estimate of `answer(values)`: the mean of one unbiased number (or vector) per report."""

    def squared_error(self, reports: int) -> float:
        """The expected squared L2 error of `estimate` from so many reports; it does not depend on the values."""


@runtime_checkable
class ExactMechanism(Mechanism, Protocol):
    """A local randomizer that draws whole numbers, exactly from its law: what is stated of it is true of what is sent.

    >>> from netdp.mechanisms import Laplace, RandomizedResponse, on_a_grid
    >>> isinstance(RandomizedResponse(4, 1.0), ExactMechanism), isinstance(Laplace(1.0, epsilon0=1.0), ExactMechanism)
    (True, False)
    >>> isinstance(on_a_grid(Laplace(1.0, epsilon0=1.0)), ExactMechanism)
    True
    """

    @property
    def width(self) -> int:
        """How many whole numbers a report is; each fits into 64 bits with its sign."""

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user from uniform 64-bit words: (users,) categories, or (users, width) numbers."""

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which rows can be reports at all; a curator drops the others, they are not from this randomizer."""


def whole(name: str, value: Any, least: int) -> int:
    """`value` as a whole number ≥ `least` that fits in 64 bits, or a refusal."""
    number = checks.whole(name, value, least)
    if number >= 2**63:
        raise InvalidValue(f"{name} must be a whole number ≥ {least} and < 2⁶³, got {value!r}")
    return number


def finite(name: str, value: Any) -> float:
    """`value` as a finite number, not beyond `FURTHEST`, or a refusal."""
    number = checks.finite(name, value)
    if abs(number) > FURTHEST:
        raise InvalidValue(f"{name} must lie within ±{FURTHEST:g}, got {value!r}; rescale the values")
    return number


def positive(name: str, value: Any) -> float:
    """`value` as a finite number > 0, not beyond `FURTHEST`, or a refusal."""
    return finite(name, checks.positive(name, value))


def local_loss(value: Any) -> float:
    """ε₀, or a refusal."""
    number = positive("epsilon0", value)
    if number > LARGEST:
        raise InvalidValue(f"epsilon0={value!r} protects nothing; randomizers are offered up to ε₀ = {LARGEST:g}")
    if number < LEAST:
        raise InvalidValue(f"epsilon0={value!r} drowns everything; randomizers are offered from ε₀ = {LEAST:g} on")
    return number


def generator(rng: Any) -> np.random.Generator:
    """A NumPy generator, or a refusal that says how to make one."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidValue(f"rng must be a numpy Generator such as np.random.default_rng(seed), got {rng!r}")
    return rng


def rows(values: npt.ArrayLike, dimension: int, what: str = "values") -> FloatArray:
    """Finite numbers as (users, dimension); one number per user may come as a plain list.

    >>> rows([1.0, float("nan")], 1)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: row 1 of values is not finite: nan
    """
    array = plain(values, what)
    if array.dtype.kind not in "fiu":
        raise InvalidValue(f"{what} must be numbers, got an array of {array.dtype}; convert them first")
    table = array.astype(np.float64, copy=False)
    if dimension == 1 and table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != dimension:
        shape = f"({dimension},) per user" if dimension > 1 else "one number per user"
        raise InvalidValue(f"{what} must have {shape}, got an array of shape {array.shape}")
    if not len(table):
        raise InvalidValue(f"{what} is empty; give at least one row")
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        odd = table[row][~np.isfinite(table[row])][0]
        raise InvalidValue(f"row {row} of {what} is not finite: {odd}")
    far = np.abs(table).max(axis=1) > FURTHEST
    if far.any():
        row = int(np.flatnonzero(far)[0])
        raise InvalidValue(
            f"row {row} of {what} is beyond ±{FURTHEST:g}: {np.abs(table[row]).max():g}; rescale the values"
        )
    return table


def plain(values: npt.ArrayLike, what: str = "values") -> npt.NDArray[Any]:
    """The values as an array of some kind: rows of one length, none masked out."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidValue(f"{what} has masked entries; drop those rows, or fill them with {what}.filled(…)")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidValue(f"{what} must be a table of numbers, one row per user; the rows differ in length") from None


def within(table: FloatArray, centre: float, reach: float, radius: float, order: int) -> FloatArray:
    """The table, if each row is at most `reach` from (centre, …, centre) in the L1 or L2 norm.

    `reach` is the radius and a little more, for rounding; refusals speak of the radius.
    """
    distance = np.linalg.norm(table - centre, ord=order, axis=1)
    bad = distance > reach
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        if table.shape[1] == 1:
            raise InvalidValue(
                f"row {row} of values is {table[row, 0]:g}, outside [{centre - radius:g}, {centre + radius:g}]; "
                "clip(values) brings values inside, or state a wider range (and more noise)"
            )
        raise InvalidValue(
            f"row {row} of values lies {distance[row]:g} from {centre:g} in L{order} norm, more than the radius "
            f"Δ/2 = {radius:g}; clip(values) brings values inside, or state a larger sensitivity (and more noise)"
        )
    return table


def pulled_in(table: FloatArray, centre: float, radius: float, order: int) -> FloatArray:
    """Rows outside the ball are moved straight towards its centre, onto its surface."""
    offset = table - centre
    distance = np.linalg.norm(offset, ord=order, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(distance > radius, radius / distance, 1.0)
    return np.asarray(centre + offset * scale)
