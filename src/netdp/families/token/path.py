"""Tokens on public paths, which is what a random walk is once it has been drawn; and tokens that hold whole numbers.

Token k is at user paths[k][t] at step t = 0, 1, …. Its holder adds a contribution and noise N(0, σ²) and passes it on. Before
the release the last holder adds noise of variance closing·σ² once more. Then everybody reads every token. A user that has
contributed `contributions` times to a token adds noise only from then on.

On a grid (`TokenGrid`, which walks share) a value is its number of grid steps, ⌊x/g + ½⌋; the noise of a visit is a discrete
Gaussian whose variance, in squared steps, is σ²/g² rounded up; closing noise has `closing` times that, rounded up again. A token
only adds, so nothing is rounded after that. All contributions together stay below 2⁶², so that sums are 64-bit numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, BoolArray, FloatArray, IntArray
from netdp.numerics.checks import count, scale, share_or_switch
from netdp.protocols.base import Protocol
from netdp.protocols.grid import (
    checked_law,
    grid_distance,
    grid_step,
    nearest,
    only_gaussian,
    power_below,
    squared_steps,
)

FINEST = 2**40
"""The largest variance, in squared steps, that the exact sampler draws."""

ROOM = 2**62
"""All contributions together stay below this: a token is a 64-bit number."""

LARGEST_NOISE = 2**33
"""No draw of the sampler is larger."""


class TokenGrid:
    """Fields `grid` and `dimension` of a protocol whose tokens add contributions with noise at every visit."""

    grid_laws: ClassVar[tuple[str, ...]] = ("gaussian",)
    sigma: float
    sensitivity: float
    grid: float | None
    dimension: int

    @property
    def visits(self) -> int:
        """How many contributions the tokens collect, all together."""
        raise NotImplementedError

    def _settle_grid(self) -> None:
        """Check and fix `grid` and `dimension`."""
        object.__setattr__(self, "grid", grid_step(self.grid))
        object.__setattr__(self, "dimension", count("dimension", self.dimension))
        if self.grid is None:
            return
        law = getattr(self, "law", "gaussian")
        if law not in self.grid_laws:
            raise InvalidValue(
                f"law={law!r} with grid={self.grid!r}: on a grid noise is discrete Gaussian; leave one out"
            )
        step = self.grid
        if self.sigma < step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        if max(self.variance, self.closing_variance) > FINEST or self.sensitivity / step > 2**40:
            raise InvalidValue(
                f"the grid {step:g} is too fine for sigma={self.sigma:g} and sensitivity={self.sensitivity:g}: a noise, the "
                "closing one included, may have a deviation of 2²⁰ steps, Δ 2⁴⁰ steps; give a coarser grid"
            )
        if self.most_steps < 2 * self.sensitivity / step:
            raise InvalidValue(
                f"{self.visits:,} contributions of {self.sensitivity / step:.1e} grid steps do not fit into a 64-bit token; "
                "give a coarser grid"
            )

    @property
    def step(self) -> float:
        """The step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue(
                f"this {type(self).__name__} is in real numbers and has no grid; state grid=, a power of two"
            )
        return self.grid

    @property
    def variance(self) -> int:
        """The variance of the noise of one visit in squared grid steps, rounded up."""
        return squared_steps(Fraction(self.sigma) ** 2, self.step)

    @property
    def closing_variance(self) -> int:
        """The variance of the closing noise in squared grid steps, rounded up; 0 if there is none."""
        return math.ceil(Fraction(getattr(self, "closing", 0.0)) * self.variance)

    @property
    def most_steps(self) -> int:
        """The largest number of grid steps that a value may have, so that tokens stay 64-bit numbers."""
        return ROOM // (self.visits + 2) - 2 * LARGEST_NOISE

    @property
    def distance(self) -> float:
        """How far apart, in grid steps and L2 norm, two values of one contribution can be after rounding."""
        return grid_distance(self.sensitivity, self.step, self.dimension)

    def in_steps(self, values: FloatArray) -> IntArray:
        """Values in grid steps, ⌊x/g + ½⌋; refuses numbers that tokens of so many contributions could not hold."""
        steps = np.asarray(values, dtype=np.float64) / self.step
        wrong = ~(np.abs(steps) <= self.most_steps)
        if wrong.any():
            raise InvalidValue(
                f"the value {np.asarray(values)[wrong].flat[0]!r} has more than {self.most_steps:.2g} steps of the grid "
                f"{self.step:g}: {self.visits:,} of them would not fit into a 64-bit token"
            )
        return nearest(steps)

    @property
    def in_real_numbers(self) -> Any:
        """The same protocol measured in grid steps, with Gaussian noise of no larger variance, on no grid."""
        this: Any = self
        below = math.sqrt(self.variance) * (1 - 4 * UNIT)
        return this.replace(sigma=below, sensitivity=float(self.distance), grid=None, dimension=1)

    def _gridded(self) -> str:
        return "" if self.grid is None else f"; whole numbers on a grid of {self.grid:g}"


UserArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PathSum(TokenGrid, Protocol):
    """The sum of the contributions along public paths, one path per token.

    Parameters
    ----------
    n : users.
    paths : one sequence of users per token: entry t holds the token at step t.
    sigma : standard deviation of the noise in every step.
    closing : the last holder of each token adds noise of variance closing·σ² before the release; True means 1, False none.
    contributions : at most so many per user and token, or None.
    sensitivity : Δ, the largest L2 distance of two values that one contribution can take.
    law : "gaussian", or "laplace": noise of the same deviation, Δ then being an L1 distance. No grid.
    grid, dimension : as for `WalkSum`: tokens that hold whole numbers.

    >>> p = PathSum(4, paths=[[0, 1, 0, 3, 1, 0]], sigma=2.0, contributions=2)
    >>> p.carries[0].tolist()                                    # the third visit to user 0 carries no data
    [True, True, True, True, True, False]
    >>> p.given.tolist(), p.local_mu == 2**0.5 / 2
    ([2, 2, 0, 1], True)
    """

    kind: ClassVar[str] = "path-sum"
    n: int
    paths: tuple[UserArray, ...]
    sigma: float
    closing: float = 0.0
    contributions: int | None = None
    sensitivity: float = 1.0
    law: str = "gaussian"
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        self._set(law=checked_law(self.law))
        object.__setattr__(self, "n", count("n", self.n))
        if self.n < 2:
            raise InvalidValue("a token needs at least 2 users, got n=1")
        object.__setattr__(self, "paths", checked_paths(self.n, self.paths))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        object.__setattr__(self, "closing", share_or_switch("closing", self.closing, 1.0))
        if self.contributions is not None:
            object.__setattr__(self, "contributions", count("contributions", self.contributions))
        self._settle_grid()

    @property
    def visits(self) -> int:
        """How many contributions the tokens collect, all together."""
        return sum(len(path) for path in self.paths)

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return len(self.paths)

    @cached_property
    def carries(self) -> tuple[BoolArray, ...]:
        """Per token: which steps carry data."""
        return tuple(first_visits(path, self.contributions) for path in self.paths)

    @cached_property
    def given(self) -> IntArray:
        """(n,) how many contributions each user makes, all tokens together."""
        total = np.zeros(self.n, dtype=np.int64)
        for path, carries in zip(self.paths, self.carries, strict=True):
            total += np.bincount(path[carries], minlength=self.n)
        return total

    @property
    def local_mu(self) -> float:
        """μ of local DP for the user with the most contributions K: all published, each with noise N(0, σ²): √K·Δ/σ."""
        only_gaussian(self, "μ")
        return math.sqrt(int(self.given.max())) * self.sensitivity / self.sigma

    def describe(self) -> str:
        tokens = "a token goes" if self.tokens == 1 else f"{self.tokens} tokens go"
        steps = sum(len(path) for path in self.paths)
        return (
            f"{self.n:,} users; {tokens} along public paths of {steps:,} steps, σ={self.sigma:g} Δ={self.sensitivity:g}"
            f"{', Laplace noise' if self.law == 'laplace' else ''}{self._gridded()}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PathSum):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        paths = tuple(path.tobytes() for path in self.paths)
        bounds = self.contributions, self.sensitivity, self.law, self.grid, self.dimension
        return self.n, paths, self.sigma, self.closing, *bounds


def checked_paths(n: int, paths: Any) -> tuple[UserArray, ...]:
    """Private read-only copies of the paths; refuses unknown users, empty paths and anything but whole numbers."""
    if isinstance(paths, str) or not isinstance(paths, Sequence | np.ndarray) or len(paths) == 0:
        raise InvalidValue(f"paths must be a list with one path per token, got {paths!r}")
    checked = []
    for k, path in enumerate(paths):
        if np.ndim(path) == 0:
            raise InvalidValue(f"paths must hold one path per token, got {path!r} in it; for one token write [path]")
        users = np.asarray(path)
        if users.ndim != 1 or users.size == 0 or users.dtype.kind not in "iu":
            raise InvalidValue(f"path {k} must be a list of at least one user number, got shape {users.shape}")
        wrong = (users < 0) | (users >= n)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise InvalidValue(f"path {k} names user {int(users[t])} at step {t}; the users are 0 to {n - 1}")
        own = np.array(users, dtype=np.int32)
        own.setflags(write=False)
        checked.append(own)
    return tuple(checked)


def first_visits(path: UserArray, most: int | None) -> BoolArray:
    """Which steps are among the first `most` visits to their user; all of them without a limit.

    >>> first_visits(np.array([2, 2, 0, 2], dtype=np.int32), 2).tolist()
    [True, True, True, False]
    """
    chosen = np.ones(len(path), dtype=bool)
    if most is not None:
        order = np.argsort(path, kind="stable")
        users = path[order]
        starts = np.flatnonzero(np.r_[True, users[1:] != users[:-1]])
        before = np.arange(len(path)) - np.repeat(starts, np.diff(np.r_[starts, len(path)]))
        chosen[order] = before < most
    chosen.setflags(write=False)
    return chosen
