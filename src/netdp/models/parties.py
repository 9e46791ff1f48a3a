"""Parties that learn together, each with rows of its own: losses and clipped gradients of all parties at once.

`ModelParties` take any `netdp.models.Model`. Party u's gradient is the mean over its rows of their gradients, clipped to norm L
row by row (clipping="rows"), or as a whole (clipping="whole"), as estimators and real peers do under masks: the mean of many
rows is shorter than they are, and L may be smaller. A party without rows has the gradient 0. `LogisticParties` do the first,
fast, for logistic regression with labels ±1 (a test holds the two against each other). How far a step stretches:
docs/proofs/learning.md#step-expansion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.models.base import Model, blocks, tell_lost
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, non_negative, positive

AGGREGATES = ("mean", "median", "trimmed")


class Rows(Protocol):
    """Rows to test a model on, such as `netdp.learn.Table`: X (rows, d) and y in {−1, +1}."""

    @property
    def X(self) -> FloatArray: ...  # noqa: N802
    @property
    def y(self) -> FloatArray: ...


def aggregated(rows: FloatArray, how: str, sizes: IntArray | None = None) -> FloatArray:
    """Rows (k, d) as one, coordinate by coordinate: their mean (weighted by `sizes`), median, or mean without the outer quarters.

    >>> aggregated(np.array([[0.0], [1.0], [2.0], [3.0], [100.0]]), "trimmed").tolist()
    [2.0]
    """
    if how == "mean":
        return np.asarray(np.average(rows, axis=0, weights=sizes))
    if how == "median":
        return np.asarray(np.median(rows, axis=0))
    if how != "trimmed":
        raise InvalidValue(f"unknown aggregate {how!r}; choose one of {', '.join(AGGREGATES)}")
    cut = len(rows) // 4
    return np.asarray(np.sort(rows, axis=0)[cut : len(rows) - cut].mean(axis=0))


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

    def gradients(self, models: FloatArray, clip: float, batch: ModelParties | None = None) -> FloatArray:
        """(n, d): every party's clipped gradient at its own model; `batch` replaces the rows (SGD)."""
        if batch is not None:
            return batch.gradients(models, clip)
        totals = np.zeros((self.n, self.d))
        if (models == models[0]).all():  # as everywhere but in gossip: all rows in one go
            self._add(np.asarray(models[0]), slice(None), clip, totals)
        else:
            for u in range(self.n):
                self._add(np.asarray(models[u]), slice(self._ends[u], self._ends[u + 1]), clip, totals)
        return self._held(totals, clip)

    def draw_batch(self, size: int, rng: np.random.Generator) -> ModelParties:
        """The same parties with `size` rows each, drawn uniformly, with replacement, from each party's own."""
        chosen = [drawn_rows(rng.random(size), len(y)) for y in self.ys]
        Xs, ys = ([rows[at] for rows, at in zip(tables, chosen, strict=True)] for tables in (self.Xs, self.ys))
        return ModelParties(self.model, Xs, ys, self.smoothness, self.clipping)

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


def drawn_rows(uniform: FloatArray, count: int) -> IntArray:
    """Which of so many rows numbers in [0, 1) draw, with replacement; none of none.

    >>> drawn_rows(np.array([0.0, 0.5, 0.999]), 4).tolist(), drawn_rows(np.array([0.3]), 0).tolist()
    ([0, 2, 3], [])
    """
    return (uniform * count).astype(np.int64) if count else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Landscape:
    """What is known of the parties' losses: as much as it takes to predict how well they are learned.

    dimension    how many numbers a model has
    smoothness   β: the gradient of every party's loss (the clipped one, if gradients are clipped) is β-Lipschitz
    distance     D: how far the start (0) lies from a minimiser of the mean loss (or from a model that is good enough), at most
    convexity    m: every party's loss (the clipped one) is m-strongly convex wherever models go; 0 if all that is known is that
                 they are convex. Gradients clipped to L allow that within a distance of 2L/m at most, and liars or noise
                 may push models further: state m > 0 only where the clip is never reached
    behind       by how much the model at that distance is worse than the best, if it is not a minimiser: a nearer
                 model that is almost
                 as good often gives the better prediction

    `LogisticParties.landscape(clip)` computes one from data. That is for experiments: D says something about the data, so a
    plan for private data takes these numbers from public knowledge.

    >>> Landscape(dimension=10, smoothness=0.25, distance=4.0).condition
    inf
    """

    dimension: int
    smoothness: float
    distance: float
    convexity: float = 0.0
    behind: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", count("dimension", self.dimension))
        for name in ("smoothness", "distance", "convexity", "behind"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
        if self.convexity > self.smoothness:
            raise InvalidValue(
                f"convexity={self.convexity:g} is more than smoothness={self.smoothness:g}; no loss curves more than "
                "it may"
            )

    @property
    def condition(self) -> float:
        """β/m, the papers' κ."""
        return math.inf if self.convexity == 0 else self.smoothness / self.convexity

    def refuse_step(self, step: float) -> None:
        """Refuse a step for which nothing is proved."""
        if step * self.smoothness > 1 + 1e-12:
            raise Unsupported(
                f"step={step:g} is longer than 1/β = {1 / self.smoothness:.4g}, up to which the excess risk is "
                "bounded; shorten it"
            )


@dataclass(frozen=True, eq=False)
class LogisticParties:
    """The data of n parties, padded to equally many rows: X (n, m, d), y (n, m) in {−1, +1}, weight (n, m) summing to 1."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray

    def __post_init__(self) -> None:
        n, m = self.X.shape[:2]
        if self.y.shape != (n, m) or self.weight.shape != (n, m):
            raise InvalidValue(
                f"X has shape {self.X.shape}, y {self.y.shape} and weight {self.weight.shape}; they must be (n, m, d), "
                "(n, m) and (n, m)"
            )
        if not np.isfinite(self.X).all():
            raise InvalidValue(f"a row of party {int(np.argwhere(~np.isfinite(self.X))[0, 0])} is not finite")
        # What a clipped mean gradient is worth rests on it: weights that sum to 2 double the sensitivity.
        if not ((self.weight >= 0).all() and np.allclose(self.weight.sum(axis=1), 1.0, rtol=0.0, atol=1e-9)):
            raise InvalidValue(
                "the weights of a party's rows must be ≥ 0 and sum to 1; LogisticParties.of sees to that"
            )

    @classmethod
    def deal(cls, X: FloatArray, y: FloatArray, parties: int, seed: int | np.random.Generator = 0) -> LogisticParties:
        """Deal the rows out to the parties at random, as evenly as possible.

        >>> data = LogisticParties.deal(np.eye(5), np.array([1.0, 1, -1, -1, 1]), parties=2)
        >>> (data.weight > 0).sum(axis=1).tolist()
        [3, 2]
        """
        if len(X) < parties:
            raise InvalidValue(
                f"{len(X)} rows cannot be dealt out to {parties} parties; give fewer parties or more rows"
            )
        order = np.random.default_rng(seed).permutation(len(X))
        return cls.of(
            [X[part] for part in np.array_split(order, parties)], [y[part] for part in np.array_split(order, parties)]
        )

    @classmethod
    def of(cls, Xs: Sequence[FloatArray], ys: Sequence[FloatArray]) -> LogisticParties:
        """From one table per party."""
        m = max(len(y) for y in ys)
        X, y, weight = np.zeros((len(Xs), m, Xs[0].shape[1])), np.ones((len(Xs), m)), np.zeros((len(Xs), m))
        for i, (rows, labels) in enumerate(zip(Xs, ys, strict=True)):
            if not np.isin(labels, (-1.0, 1.0)).all():
                wrong = float(labels[~np.isin(labels, (-1.0, 1.0))][0])
                raise InvalidValue(f"party {i} has the label {wrong!r}; labels must be −1 or +1")
            X[i, : len(labels)], y[i, : len(labels)], weight[i, : len(labels)] = rows, labels, 1.0 / len(labels)
        return cls(X, y, weight)

    @property
    def n(self) -> int:
        """How many parties."""
        return len(self.X)

    @property
    def d(self) -> int:
        """How many features."""
        return int(self.X.shape[2])

    def smoothness(self, clip: float = math.inf) -> float:
        """β = max ‖x‖²·q(1 − q) with q = min(1/2, clip/‖x‖); max‖x‖²/4 without clipping.

        >>> data = LogisticParties.of([np.eye(2)], [np.array([1.0, -1.0])])
        >>> data.smoothness(), round(data.smoothness(clip=0.1), 9)
        (0.25, 0.09)
        """
        lengths = np.sqrt((self.X**2).sum(axis=2))
        factor = np.minimum(0.5, clip / np.where(lengths > 0, lengths, 1.0))
        return float((lengths**2 * factor * (1 - factor)).max())

    def gradients(self, models: FloatArray, clip: float, batch: FloatArray | None = None) -> FloatArray:
        """The clipped gradient of every party at its own model (n, d); `batch` replaces the weights of the rows (SGD)."""
        margins = np.matmul(self.X, models[:, :, None])[:, :, 0] * self.y
        slope = 1.0 / (1.0 + np.exp(np.minimum(margins, 500.0)))
        lengths = np.sqrt((self.X**2).sum(axis=2))
        slope = np.minimum(slope, clip / np.where(lengths > 0, lengths, 1.0))
        weights = self.weight if batch is None else batch
        pulled: FloatArray = -np.matmul((slope * self.y * weights)[:, None, :], self.X)[:, 0, :]
        return pulled

    def expansion(self, step: float, clip: float) -> float:
        """θ ↦ θ − step·gradient, rows clipped one by one: gradients increase with slope in [0, β], so max(1, step·β − 1)."""
        return max(1.0, step * self.smoothness(clip) - 1.0)

    def risk(self, model: FloatArray, clip: float = math.inf) -> float:
        """The mean over parties of the loss whose gradient is clipped to `clip`: what descent with clipped gradients minimises.

        Where the slope of a row's loss exceeds clip/‖x‖ the loss goes on as a straight line. Parties count alike, however many
        rows they hold.

        >>> data = LogisticParties.of([np.eye(2)], [np.array([1.0, -1.0])])
        >>> round(data.risk(np.zeros(2)), 4), round(data.risk(np.array([-9.0, 9.0]), clip=0.25), 4)
        (0.6931, 2.8123)
        """
        margins = self.X @ np.asarray(model, dtype=np.float64) * self.y
        lengths = np.sqrt((self.X**2).sum(axis=2))
        steepest = np.minimum(clip / np.where(lengths > 0, lengths, 1.0), 1.0)
        with np.errstate(divide="ignore"):
            bend = np.where(
                steepest < 1, np.log1p(-steepest) - np.log(steepest), -np.inf
            )  # the slope is `steepest` there
        held = np.maximum(margins, bend)
        each = np.logaddexp(0.0, -held) + np.where(held > margins, steepest * (held - margins), 0.0)
        return float((self.weight * each).sum() / self.n)

    def landscape(self, clip: float = math.inf, *, penalty: float = 0.0) -> Landscape:
        """What `expected_error` asks of these losses, clipped: dimension, smoothness, and how far 0 is from a good model.

        That is the best model, or the minimiser of risk + penalty/2·‖model‖², which is nearer and a little worse (`behind`).
        For experiments: the distance is a function of the data, and saying it has a price that is nowhere counted.

        >>> data = LogisticParties.of([np.array([[1.0], [1.0], [1.0]])], [np.array([1.0, 1.0, -1.0])])
        >>> round(data.landscape().distance, 4)                                      # log 2
        0.6931
        >>> near = data.landscape(penalty=0.5)
        >>> round(near.distance, 4), round(near.behind, 4)
        (0.2225, 0.0257)
        """
        best = self._lowest(clip, 0.0)
        least = self.risk(best, clip)
        if (np.where(self.weight > 0, self.X @ best * self.y, 1.0) > 0).all():
            least = 0.0  # a plane separates the rows: longer models are ever better
            if penalty == 0:
                raise Unsupported(
                    "there is no best model, as a plane separates the rows; give a penalty, such as 0.01, to compare "
                    "with a model that is good enough"
                )
        good = best if penalty == 0 else self._lowest(clip, positive("penalty", penalty))
        behind = max(self.risk(good, clip) - least, 0.0)
        return Landscape(self.d, self.smoothness(clip), float(np.linalg.norm(good)), behind=behind)

    def _lowest(self, clip: float, penalty: float) -> FloatArray:
        from scipy.optimize import minimize

        def downhill(model: FloatArray) -> tuple[float, FloatArray]:
            everywhere = np.ascontiguousarray(np.broadcast_to(model, (self.n, self.d)))
            slope = self.gradients(everywhere, clip).mean(axis=0) + penalty * model
            return self.risk(model, clip) + penalty / 2 * float(model @ model), slope

        found = minimize(
            downhill, np.zeros(self.d), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9}
        )
        steepness = float(np.linalg.norm(downhill(found.x)[1]))
        if not steepness <= 1e-5:
            raise Unsupported(
                f"no best model was found (a slope of {steepness:.2g} is left); scale the features, or give a penalty"
            )
        return np.asarray(found.x)

    def draw_batch(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Weights of `size` rows drawn uniformly, with replacement, from each party's own."""
        counts = (self.weight > 0).sum(axis=1)
        chosen = (rng.random((self.n, size)) * counts[:, None]).astype(np.int64)
        weights = np.zeros_like(self.weight)
        np.add.at(weights, (np.arange(self.n)[:, None], chosen), 1.0 / size)
        return weights


def accuracy(model: FloatArray, X: FloatArray, y: FloatArray) -> float:
    """The share of rows on the right side."""
    return float(((X @ model > 0) == (y > 0)).mean())


def objective(model: FloatArray, X: FloatArray, y: FloatArray) -> float:
    """The mean logistic loss."""
    return float(np.logaddexp(0.0, -y * (X @ model)).mean())


def loss(data: LogisticParties | ModelParties, model: FloatArray) -> float:
    """The mean loss over all rows of all parties."""
    if isinstance(data, ModelParties):
        return data.risk(model)
    own = data.weight > 0
    return objective(model, data.X[own], data.y[own])
