"""Attacks on gossip descent and on a curator's: the best linear distinguisher for losses whose gradients are constant.

The certified loss of `GossipDescent` is a bound for all losses whose local steps do not stretch
(docs/guarantees.md#hidden-state). One can attack it only with particular losses. Here everybody's loss is linear in the model: the
target's gradient is a clip long, +L or −L in one coordinate, in every iteration; everybody else's is 0. Then a run is linear in
gradients and noises,

    y^t = θ^t − ν(g^t + noise and masks of iteration t),     θ^{t+1} = p_K(W) y^t,     messages p_k(W) y^t for k < K,

and the likelihood ratio of all that the observers hold in all iterations (the messages that they get, their own noises, the
masks on their edges) is one linear function of it (`netdp.audit.linear`). It is found by feeding the run with unit gradients and
unit noises. A row that is used in iteration t only gives a gradient in that iteration only, so signs may differ by iteration: the
best are taken.

What such an attack attains over the certified ε is the tightness of the bound: how much of it is really lost by some data.
Quadratic losses, which pull models together, were tried too (every contraction c from 0 to 1, alike or party by party): they attain
less the farther the target is, as what it has pushed fades, and for neighbours at most a few per cent more; and the clip would cut
their gradients.

**The run** is put together from the parts of `netdp.simulate`, as `netdp.learn.train` does it, because that keeps no record
of messages; a test holds the two against each other. Every column is a run of its own, with a model of one number.
Descent of a trusted curator (`CentralDescent`) publishes the mean noisy gradient of every iteration; it is `train` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Observers
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent
from netdp.simulate.descent import clipped, train
from netdp.simulate.gossip import Watch, add_masks, mix
from netdp.simulate.run import Normal
from netdp.views import Transcript

from .attack import SIMULATOR, Attack, System
from .linear import SolvedAttack, solved
from .table import attacks

FAR = 1e3
"""How many times the clip the target's gradient is long in one of the two worlds; a sound system cuts it to the clip."""
_NUMBERS = 4_000_000
"""Numbers of a view held in memory at once."""

Trainer = Callable[[Any, FloatArray, int, Normal, Any], FloatArray]
"""(protocol, gradients (T, n, columns), seed, normal, observers) → (numbers, columns): all that the observers hold."""


def gossiped(protocol: GossipDescent, gradients: FloatArray, seed: int, normal: Normal, record: Any) -> FloatArray:
    """What the observers hold after a run in which party i's raw gradient in iteration t is gradients[t, i], column by column.

    First all messages that they received, then the noises that they added, then the masks on their edges. All that is drawn at
    random is noise, so the seed is not used.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.ring(4), iterations=1, gossip_rounds=1, sigma=2.0, step=0.5, clip=1.0)
    >>> gossiped(p, np.array([[[0.0], [3.0], [0.0], [0.25]]]), 0, np.ones, [0]).ravel().tolist()
    [-1.5, -1.125, 2.0]
    """
    return _run(protocol, gradients, normal, tuple(record))[0]


def gossiped_models(protocol: GossipDescent, gradients: FloatArray, normal: Normal) -> FloatArray:
    """(n, columns) the models that everybody has in the end."""
    return _run(protocol, gradients, normal, ())[1]


def _run(
    protocol: GossipDescent, gradients: FloatArray, normal: Normal, observers: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    iterations, n, columns = gradients.shape
    if (iterations, n) != (protocol.iterations, protocol.n):
        raise InvalidValue(
            f"gradients have shape {gradients.shape}; {protocol.iterations} iterations of {protocol.n} parties are expected"
        )
    own, models = list(observers), np.zeros((n, columns))
    messages, noises, masks = [], [], []
    for t in range(iterations):
        rounds = protocol.rounds_of(t)
        gradient = clipped(gradients[t].reshape(-1, 1), protocol.clip).reshape(n, columns)
        noise = protocol.sigma * normal((n, columns))
        noises.append(noise[own])
        _, known = add_masks(rounds.graph, rounds.masks * protocol.sigma**2, noise, normal, observers)
        masks.append(known)
        watch = Watch(Transcript.synchronous(rounds.graph, rounds.rounds), observers)
        start = models - protocol.step * (gradient + noise)
        models, _ = mix(start, (rounds.matrix,) * rounds.rounds, rounds.chebyshev, 0.0, normal, watch)
        if own:
            nobody = np.empty((0, 2), dtype=np.int64)
            messages.append(watch.record(models, noise, known, nobody, []).payloads)
    return np.vstack([*messages, *noises, *masks]) if own else np.empty((0, columns)), models


def published_gradients(
    protocol: CentralDescent, gradients: FloatArray, seed: int, normal: Normal, record: Any
) -> FloatArray:
    """(T, columns): what a trusted curator publishes, as `netdp.simulate.descent.train` computes it; noise comes from `normal`.

    Columns are the coordinates of one model. All of them together may be √columns times as long as one.

    >>> p = CentralDescent(4, iterations=2, sigma=2.0, step=0.5, clip=1.0)
    >>> raw = np.zeros((2, 4, 1))
    >>> raw[:, 1] = 9.0
    >>> published_gradients(p, raw, 0, np.ones, []).ravel().tolist()             # a gradient of 1/4, and noise 2/√4
    [1.25, 1.25]
    """
    columns = gradients.shape[2]
    wide = protocol.replace(clip=protocol.clip * math.sqrt(columns))
    models = np.zeros((protocol.iterations + 1, columns))

    def after(t: int, found: FloatArray) -> None:
        models[t + 1] = found[0]

    train(wide, _Scheduled(gradients), _Fed(normal), after=after)  # type: ignore[arg-type]
    return np.asarray(-np.diff(models, axis=0) / protocol.step)


class _Scheduled:
    """Losses whose gradient in the next iteration is the next of a list, wherever the models are."""

    def __init__(self, gradients: FloatArray) -> None:
        self._left = iter(gradients)
        _, self.n, self.d = gradients.shape

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        return clipped(next(self._left), clip)

    def expansion(self, step: float, clip: float) -> float:
        return 1.0


class _Fed(np.random.Generator):
    """A generator whose normal numbers are those that it is given; `default_rng` passes it on as it is."""

    def __init__(self, normal: Normal) -> None:
        super().__init__(np.random.PCG64(0))
        self._normal = normal

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """So many numbers from elsewhere."""
        return self._normal((size,) if isinstance(size, int) else tuple(size))


@dataclass(frozen=True, eq=False)
class DescentAttack(SolvedAttack):
    """See the module. One trial is one run of all iterations."""

    words: ClassVar[str] = (
        "the likelihood ratio of everything the observers hold in all iterations, which is one linear function of it, for a target "
        "whose gradients are always as long as allowed"
    )
    most: ClassVar[int] = 200_000
    protocol: Any
    observers: tuple[int, ...]
    target: int
    trainer: Trainer
    seed: int = 0

    @cached_property
    def size(self) -> int:
        """As many columns as fit into memory."""
        numbers = max(len(self.weights), self.protocol.iterations * self.protocol.n)
        return int(np.clip(_NUMBERS // numbers, 64, 1 << 14))

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray, float]:
        data, noise = probed(self.trainer, self.protocol, self.observers, self.target, self.seed)
        return solved(data, noise, self.protocol.sensitivity)

    def batch(self, within: bool, seed: int) -> FloatArray:
        """The target's gradients are a clip long, one way or the other; in one world because they are cut to it."""
        gradients = np.zeros((self.protocol.iterations, self.protocol.n, self.size))
        long = self.protocol.clip * (FAR if within else -1.0)
        gradients[:, self.target] = (self.direction * long)[:, None]
        normal = np.random.default_rng(seed).standard_normal
        held = self.trainer(self.protocol, gradients, self.seed, normal, list(self.observers))
        return np.asarray(self.weights @ held)


def probed(
    trainer: Trainer, protocol: Any, observers: tuple[int, ...], target: int, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """(numbers, T) and (numbers, noises): what the observers hold, as a function of the target's gradients and of noises.

    >>> p = CentralDescent(4, iterations=2, sigma=2.0, step=0.5, clip=1.0)
    >>> data, noise = probed(published_gradients, p, (0,), target=1)
    >>> data.tolist(), noise.tolist()
    ([[0.25, 0.0], [0.0, 0.25]], [[1.0, 0.0], [0.0, 1.0]])
    """
    iterations, n = protocol.iterations, protocol.n
    asked: list[int] = []

    def count(shape: tuple[int, ...]) -> FloatArray:
        asked.append(math.prod(shape))
        return np.zeros(shape)

    zero = trainer(protocol, np.zeros((iterations, n, 1)), seed, count, list(observers))
    width, start = iterations + sum(asked), iterations
    gradients = np.zeros((iterations, n, width))
    gradients[np.arange(iterations), target, np.arange(iterations)] = protocol.clip

    def units(shape: tuple[int, ...]) -> FloatArray:
        nonlocal start
        rows = math.prod(shape) // width
        block = np.zeros((rows, width))
        block[np.arange(rows), start + np.arange(rows)] = 1.0
        start += rows
        return block.reshape(shape)

    found = trainer(protocol, gradients, seed, units, list(observers)) - zero
    return found[:, :iterations] / protocol.clip, found[:, iterations:]


@attacks.register
def _gossip(protocol: GossipDescent, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    trainer: Any = gossiped if system is SIMULATOR else system
    return [DescentAttack(protocol, observers.parties, target, trainer, seed)]


@attacks.register
def _curator(protocol: CentralDescent, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    trainer: Any = published_gradients if system is SIMULATOR else system
    return [DescentAttack(protocol, observers.parties, target, trainer, seed)]


attacks.refuse(LocalDescent, why="its simulation draws the mean of all noisy gradients only, and nobody's own")
