"""Run gossip descent and its baselines on gradients given as a function: what is accounted is what runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, response

Gradients = Callable[[FloatArray, np.random.Generator], FloatArray]
Watch = Callable[[int, FloatArray], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """The model of every party after the last iteration (n, d)."""

    models: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The average model: what perfect gossip would leave with everybody. Nobody sees it in the protocol."""
        average: FloatArray = self.models.mean(axis=0)
        return average


def train(
    protocol: GossipDescent | LocalDescent | CentralDescent,
    gradients: Gradients,
    dimension: int,
    seed: int,
    watch: Watch | None = None,
) -> Trained:
    """Run the protocol from θ = 0. `gradients(models, rng)` returns every party's gradient (n, d); it is clipped here.

    The certified loss assumes that a clipped local step is `protocol.expansion`-Lipschitz. 1 is right for the logistic loss
    of `LogisticParties`, which clips row by row; for any other loss with β-Lipschitz gradients set expansion = 1 + step·β.

    `watch(t, models)` is called after every iteration.
    """
    rng = np.random.default_rng(seed)
    models = np.zeros((protocol.n, dimension))
    for t in range(protocol.iterations):
        gradient = clipped(checked(gradients(models, rng), models.shape), protocol.clip)
        if isinstance(protocol, GossipDescent):
            noisy = models - protocol.step * (gradient + _noise(protocol, t, dimension, rng))
            models = _gossip(protocol, t, noisy)
        else:
            # Local: the mean of n noisy gradients; central: the mean, then noise. The same law for the same σ.
            mean = gradient.mean(axis=0) + protocol.sigma / np.sqrt(protocol.n) * rng.standard_normal(dimension)
            models = models - protocol.step * mean
        if watch is not None:
            watch(t, models)
    return Trained(models)


def clipped(gradient: FloatArray, clip: float) -> FloatArray:
    """Every row scaled down to norm at most `clip`; before any noise is added.

    >>> clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(9).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    scaled: FloatArray = gradient * np.minimum(1.0, clip / np.where(length > 0, length, 1.0))
    return scaled


def checked(gradient: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The gradients, if they are finite numbers of the right shape."""
    array = np.asarray(gradient, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValue(f"gradients have shape {array.shape}, expected {shape}: one row per party")
    if not np.isfinite(array).all():
        raise InvalidValue(
            f"the gradient of party {int(np.argwhere(~np.isfinite(array))[0, 0])} is not finite; try a smaller step"
        )
    return array


def _noise(protocol: GossipDescent, iteration: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """σ·η and this iteration's masks, which cancel over every edge."""
    noise = protocol.sigma * rng.standard_normal((protocol.n, dimension))
    if protocol.masks > 0:
        edges = protocol.graphs[iteration].edges()
        masks = protocol.sigma * np.sqrt(protocol.masks) * rng.standard_normal((len(edges), dimension))
        np.add.at(noise, edges[:, 0], masks)
        np.subtract.at(noise, edges[:, 1], masks)
    return noise


def _gossip(protocol: GossipDescent, iteration: int, states: FloatArray) -> FloatArray:
    rounds = protocol.rounds_of(iteration)
    W = rounds.matrix
    *_, mixed = response(
        lambda x: csr_times_block(W.indptr, W.indices, W.data, x), states, rounds.rounds + 1, rounds.gamma
    )
    return mixed
