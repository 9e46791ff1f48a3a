"""Logistic regression over parties: losses and clipped gradients of all parties at once.

Party i holds rows x_ij with labels y_ij = ±1 and the loss f_i(θ) = (1/m_i) Σ_j log(1 + exp(−y_ij θᵀx_ij)). Each row's
gradient −y x/(1 + exp(yθᵀx)) is clipped to norm L by clipping its scalar factor at L/‖x‖. That factor is a
non-decreasing function of the margin with slope at most 1/4, before and after clipping: the clipped gradient is the
gradient of another convex function, still (max‖x‖²/4)-smooth. So a step of size ν ≤ 8/max‖x‖² is non-expansive,
clipping or not, and the mean over a party's rows has norm at most L.

**A tight clip allows longer steps.** The factor s = 1/(1 + exp(yθᵀx)) changes with slope s(1 − s) where it is not
clipped, that is where s < L/‖x‖, and not at all where it is. So a row's clipped gradient has slope at most β =
‖x‖²·q(1 − q) with q = min(1/2, L/‖x‖), the maximum of s(1 − s) over s ≤ L/‖x‖. For ‖x‖ ≤ 1 and L ≤ 1/2 that is at
most L(1 − L): if ‖x‖ ≥ 2L it is L(‖x‖ − L), else ‖x‖²/4 ≤ L². A gradient of a convex β-smooth function is cocoercive,
so θ ↦ θ − ν·gradient is non-expansive for ν ≤ 2/β, and for longer steps it stretches by at most νβ − 1 (eigenvalues
of I − νH in [1 − νβ, 1]).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive
from netdp.utility.learning import Landscape


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
        """β = max ‖x‖²·q(1 − q) with q = min(1/2, clip/‖x‖), see above; max‖x‖²/4 without clipping.

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
                    "with a model "
                    "that is good enough"
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
