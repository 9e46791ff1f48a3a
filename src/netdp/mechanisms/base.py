"""What a local randomizer is, the checks all of them share, and values on a grid, to which those in whole numbers add their noise.

A randomizer turns one user's value into one report. It knows how to draw reports, how private one is, and how to undo its own bias
when many are averaged. `report(values, words)` draws whole numbers exactly from the stated law: what is stated is true of what is
sent, if the words are uniform and independent. `randomize(values, rng)` is for simulation: NumPy's generators are predictable, and
Laplace, Gaussian and PrivUnit in floating point only approximate their laws. Of numbers in [0, 1], a report y for which y·2⁵³ is no
whole number comes from the value 0 in a quarter of all draws, from the value 1 never: its last digits give the value away.
Why, and why rounding to a grid costs no privacy: docs/proofs/mechanisms.md#finite-precision.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import Words, words_from
from netdp.numerics import checks
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy.curve import Curve

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


class Pure:
    """A randomizer whose loss is at most ε₀ always."""

    @property
    def delta0(self) -> float:
        """0: the randomizer is pure."""
        return 0.0


class InBall:
    """A randomizer of numbers or vectors from a ball around a centre, two of which are at most `sensitivity` apart."""

    order: ClassVar[int]
    """Of the norm: 1 or 2."""
    sensitivity: float
    dimension: int
    centre: float

    @property
    def _rounding(self) -> float:
        """How far outside the ball a value may be by rounding alone; the noise, or the curve, covers it."""
        return 1e-12 * (self.sensitivity / 2 + self.dimension * abs(self.centre))

    def check(self, values: npt.ArrayLike) -> FloatArray:
        """The values as (users, dimension); none may be outside the ball."""
        radius = self.sensitivity / 2
        return within(rows(values, self.dimension), self.centre, radius + self._rounding, radius, self.order)

    def clip(self, values: npt.ArrayLike) -> FloatArray:
        """Values outside are moved towards the centre, onto the surface of the ball."""
        return pulled_in(rows(values, self.dimension), self.centre, self.sensitivity / 2, self.order)

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The mean of the values."""
        return np.asarray(self.check(values).mean(axis=0))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports."""
        return np.asarray(rows(reports, self.dimension, "reports").mean(axis=0))


class Noise(Protocol):
    """A law on the whole numbers that is drawn exactly."""

    @property
    def variance(self) -> float:
        """Its variance, or a bound on it."""

    def sample(self, shape: tuple[int, ...], words: Words) -> IntArray:
        """Independent draws, from so many words as it takes."""


class InBallOnGrid(InBall):
    """The same in whole numbers: values in `steps` steps to Δ, noise on whole numbers in every coordinate."""

    steps: int

    @property
    def noise(self) -> Noise:
        """The law of the noise, in steps."""
        raise NotImplementedError

    @property
    def furthest(self) -> int:
        """No honest report holds a number further from zero, in steps, but with a chance that nobody will ever see."""
        raise NotImplementedError

    @property
    def step(self) -> float:
        """g = Δ/steps: what a step of the grid is worth."""
        return self.sensitivity / self.steps

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return self.dimension

    def quantised(self, values: npt.ArrayLike) -> IntArray:
        """The values in whole steps from the centre, (users, dimension)."""
        return on_the_grid(self.check(values), self.centre, self.step, self.steps // 2, self.order)

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, (users, dimension) whole numbers, drawn exactly: what leaves a party."""
        steps = self.quantised(values)
        return steps + self.noise.sample(steps.shape, words)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """One report per user, from the words of a NumPy generator: for simulation, as these are predictable."""
        return self.report(values, words_from(generator(rng)))

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these rows of whole numbers can be reports: none of their numbers is beyond `furthest`."""
        fits = reports.shape[-1] == self.width
        return np.asarray(((reports <= self.furthest) & (reports >= -self.furthest)).all(axis=-1) & fits)

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports, back in the units of the values."""
        return np.asarray(super().estimate(reports) * self.step + self.centre)

    def squared_error(self, reports: int) -> float:
        """The variance of the noise over n, and half a step of rounding in every number; vectors at the rim have up to two."""
        noise = self.noise.variance / whole("reports", reports, least=1)
        return (noise + 0.25) * self.step**2 * self.dimension


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
