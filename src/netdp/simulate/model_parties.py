"""Parties that learn any `netdp.models.Model`: what the masked, gossip, local, central, walk and ring trainers take.

Party u's gradient is the mean over its rows of their gradients. It is clipped to norm L row by row (clipping="rows"), which is what
`LogisticParties` does too, for the one model that it is fast at (a test holds the two against each other); or as a whole
(clipping="whole"), as estimators and real peers do under masks: the mean of many rows is shorter than they are, and L may be
smaller. A party without rows has the gradient 0.

**How far a step stretches.** A mean of maps θ ↦ θ − ν·g_r(θ) that are c-Lipschitz each is c-Lipschitz, so the model's own
`expansion` over all rows, clipped one by one, holds for every party. Where a model has none, or where means are clipped as a whole,
`smoothness` may be stated: that every record's gradient is β-Lipschitz in θ is then the caller's word. Clipping to a ball is a
projection, so 1 + νβ holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.models import Model
from netdp.models.base import blocks, tell_lost
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import non_negative

CLIPPINGS = ("rows", "whole")


@dataclass(frozen=True, eq=False)
class ModelParties:
    """A model, and one table of rows per party.

    model        any `netdp.models.Model`
    Xs, ys       one table (m_u, …) and labels (m_u,) per party, as the model takes them (`model.prepared`)
    smoothness   β, if the model does not know it: your word
    clipping     "rows" or "whole", see above

    >>> from netdp.models import Linear
    >>> parties = ModelParties(Linear(1), [[[1.0]], [[1.0], [0.5]]], [[-0.2], [-9.0, 0.0]])
    >>> parties.gradients(np.zeros((2, 1)), clip=1.0).tolist(), parties.expansion(0.5, clip=1.0)
    ([[0.2], [0.5]], 1.0)
    """

    model: Model
    Xs: Sequence[Any]
    ys: Sequence[Any]
    smoothness: float | None = None
    clipping: str = "rows"

    def __post_init__(self) -> None:
        if self.clipping not in CLIPPINGS:
            raise InvalidValue(f"unknown clipping {self.clipping!r}; choose one of {', '.join(CLIPPINGS)}")
        if not isinstance(self.model, Model):
            raise InvalidValue(f"model must be a netdp.models.Model, such as Logistic(5), got {self.model!r}")
        if len(self.Xs) != len(self.ys) or not len(self.Xs):
            raise InvalidValue(
                f"got the rows of {len(self.Xs)} parties and the labels of {len(self.ys)}; give one table each"
            )
        tables = []
        for u, (X, y) in enumerate(zip(self.Xs, self.ys, strict=True)):
            try:
                tables.append(self.model.checked_rows(X, y))
            except InvalidValue as problem:
                raise InvalidValue(f"party {u}: {problem}") from None
        if self.smoothness is not None:
            non_negative("smoothness", self.smoothness)
        object.__setattr__(self, "Xs", tuple(X for X, _ in tables))
        object.__setattr__(self, "ys", tuple(y for _, y in tables))

    @classmethod
    def deal(
        cls,
        model: Model,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        parties: int,
        seed: int | np.random.Generator = 0,
        *,
        clipping: str = "rows",
    ) -> ModelParties:
        """Deal the rows out to the parties at random, as evenly as possible.

        >>> from netdp.models import Linear
        >>> [len(y) for y in ModelParties.deal(Linear(1), np.ones((5, 1)), np.ones(5), parties=2).ys]
        [3, 2]
        """
        rows, labels = model.checked_rows(X, y)
        if len(rows) < parties:
            raise InvalidValue(
                f"{len(rows)} rows cannot be dealt out to {parties} parties; give fewer parties or more rows"
            )
        parts = np.array_split(np.random.default_rng(seed).permutation(len(rows)), parties)
        return cls(model, [rows[part] for part in parts], [labels[part] for part in parts], clipping=clipping)

    @property
    def n(self) -> int:
        """How many parties."""
        return len(self.Xs)

    @property
    def d(self) -> int:
        """How many numbers a model has."""
        return self.model.size

    def start(self) -> FloatArray:
        """The public first model (d,)."""
        return self.model.start()

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        """(n, d): every party's clipped gradient at its own model."""
        totals = np.zeros((self.n, self.d))
        if (models == models[0]).all():  # as everywhere but in gossip: all rows in one go
            self._add(np.asarray(models[0]), slice(None), clip, totals)
        else:
            for u in range(self.n):
                self._add(np.asarray(models[u]), slice(self._ends[u], self._ends[u + 1]), clip, totals)
        return self._held(totals, clip)

    def gradient(self, theta: FloatArray, party: int, clip: float) -> FloatArray:
        """One party's clipped gradient (d,)."""
        total = np.zeros((1, self.d))
        self._add(theta, slice(self._ends[party], self._ends[party + 1]), clip, total, first=party)
        return np.asarray(self._held(total, clip)[0])

    def expansion(self, step: float, clip: float) -> float:
        """A Lipschitz constant of θ ↦ θ − step·(a party's gradient), for every party."""
        if self.smoothness is not None:
            return (1.0 + step * self.smoothness) * (1 + 1e-12)
        if self.clipping == "whole":
            raise Unsupported(
                "gossip and walks rest on how far a step can stretch the distance between two models, which is known for rows "
                'that are clipped one by one; leave clipping="rows", or state smoothness=… (your word)'
            )
        return self.model.expansion(self._rows[0], step, clip)

    def risk(self, theta: FloatArray) -> float:
        """The mean loss over all rows of all parties, unclipped."""
        X, y = self._rows
        return float(self.model.losses(theta, X, y).mean()) if len(y) else math.nan

    def walk(
        self,
        path: IntArray,
        noise: FloatArray,
        theta: FloatArray,
        used: IntArray,
        *,
        step: float,
        clip: float,
        cap: int,
        forward: bool,
        radius: float,
    ) -> None:
        """θ ← Π(θ − step·(g_u(θ) + Z)) along `path`, in place; as `walk_descent_kernels.walk_steps`, for any model."""
        for u, z in zip(path.tolist(), noise, strict=True):
            spent = cap >= 0 and used[u] >= cap
            if spent and forward:
                continue
            gradient = 0.0 if spent else self.gradient(theta, u, clip)
            used[u] += not spent
            theta -= step * (gradient + z)
            length = float(np.linalg.norm(theta))
            if 0.0 < radius < length:
                theta *= radius / length

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """All rows one below the other, and their labels."""
        return np.concatenate(self.Xs), np.concatenate(self.ys)

    @cached_property
    def _ends(self) -> list[int]:
        """Party u has the rows from _ends[u] to _ends[u+1]."""
        return [0, *np.cumsum([len(y) for y in self.ys]).tolist()]

    @cached_property
    def _owner(self) -> tuple[IntArray, FloatArray]:
        """Whose every row is, and 1 over how many rows that party has."""
        sizes = np.array([len(y) for y in self.ys])
        owner = np.repeat(np.arange(self.n), sizes)
        return owner, 1.0 / sizes[owner]

    def _held(self, means: FloatArray, clip: float) -> FloatArray:
        """Means of rows that were not clipped are clipped now."""
        from netdp.models.kernels import clip_rows

        if self.clipping == "whole":
            tell_lost(clip_rows(means, clip), self.model, None)
        return means

    def _add(self, theta: FloatArray, rows: slice, clip: float, totals: FloatArray, first: int = 0) -> None:
        from netdp.models.kernels import add_shares

        X, y = self._rows
        owner, share = self._owner
        X, y, owner, share = X[rows], y[rows], owner[rows] - first, share[rows]
        done = gone = 0
        limit = clip if self.clipping == "rows" else math.inf
        for block in blocks(self.model, theta, X, y):
            part = slice(done, done + len(block))
            gone += add_shares(block, limit, owner[part], share[part], totals)
            done += len(block)
        tell_lost(gone, self.model, None)
