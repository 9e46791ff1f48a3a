"""Tokens on public paths: what a random walk is once it has been drawn.

Token k is at user paths[k][t] at step t = 0, 1, …. Its holder adds a contribution and noise N(0, σ²) and passes it on. Before
the release the last holder adds noise of variance closing·σ² once more. Then everybody reads every token.

A user that has contributed `contributions` times to a token adds noise only from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import BoolArray, IntArray
from netdp.numerics.checks import count, scale, share_or_switch

from .base import Protocol
from .noise_law import checked_law, only_gaussian
from .token_grid import TokenGrid

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
