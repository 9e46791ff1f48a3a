"""The optimal linear distinguisher, for views that are linear in values and Gaussian noises: y = A x + C z.

By Neyman and Pearson the best test is one number, s = wᵀy with w = (C Cᵀ)⁺ A_u d, N(s₀, μ²) against N(s₀ + μ², μ²). A and C are
found by feeding the system itself, one unit value or one unit noise in each column (`probed`): so the attack is the best one
against what is really run, bug included, and shares nothing with the accountant. Whatever w is, what its scores prove is
proved. Which d, values far outside the interval, directions without noise: docs/proofs/audit.md#best-attacks; the theorem:
docs/proofs/linear.md#linear-gaussian.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.audit.attack import Attack, Columns, System
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.protocols.simulation import Normal, Run
from netdp.protocols.training import clipped

_TOLERANCE = 1e-9
"""Directions of C Cᵀ below this share of its largest one count as without noise of their own: rounding."""

_CLEAR = 1e-6
"""What the target adds must have at least this share of itself outside the range of C to be taken for uncovered."""

_SIGNS = 8
"""Up to so many contributions all signs are tried."""


class SolvedAttack(Attack):
    """An attack by one linear function of what observers hold: `_solved` is what `solved` found."""

    gaussian: ClassVar[bool] = True

    @property
    @abstractmethod
    def _solved(self) -> tuple[FloatArray, FloatArray, float]:
        """Weights, signs and μ."""

    @property
    def weights(self) -> FloatArray:
        """w, up to a factor."""
        return self._solved[0]

    @property
    def direction(self) -> FloatArray:
        """(contributions,) +1 or −1: which way each of the target's moves."""
        return self._solved[1]

    @property
    def mu(self) -> float:
        """What the matrices say the attack can do; inf if something is uncovered."""
        return self._solved[2]


@dataclass(frozen=True, eq=False)
class LinearAttack(SolvedAttack):
    """See the module. `periods`: how many values over time the target has; 1: one value."""

    words: ClassVar[str] = "the likelihood ratio of everything the observers hold, which is one linear function of it"
    most: ClassVar[int] = 400_000
    protocol: Any
    observers: tuple[int, ...]
    target: int
    system: System
    seed: int = 0
    periods: int = 1

    @cached_property
    def size(self) -> int:
        """As many columns as fit into memory."""
        return int(np.clip(_NUMBERS // max(len(self.weights), 1), 64, 1 << 14))

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray, float]:
        data, noise = probed(self.system, self.real, self.observers, self.seed, self.periods)
        mine = data[:, self.target :: self.real.n]  # (numbers seen, periods)
        return solved(mine, noise, self.protocol.sensitivity)

    @property
    def real(self) -> Any:
        """The protocol in real numbers: on a grid it is the same up to rounding, and noise comes from elsewhere."""
        return self.protocol.replace(grid=None) if getattr(self.protocol, "grid", None) is not None else self.protocol

    def batch(self, within: bool, seed: int) -> FloatArray:
        """Values: everybody in the middle; the target at an end of the interval, or far beyond the other one."""
        width = self.protocol.sensitivity
        values = np.zeros((self.periods, self.real.n, self.size))
        up = self.direction if within else -self.direction
        values[:, self.target] = (up * width * (FAR if within else 0.5))[:, None]
        normal = np.random.default_rng(seed).standard_normal
        given = Columns(values[0] if self.periods == 1 else values, (-width / 2, width / 2))
        # on a grid noise comes from the seed; else the seed decides what is public, and noise is drawn anew
        chosen = seed if self.real is not self.protocol else self.seed
        run = self.system(_wide(self.protocol, self.size), given, chosen, normal, list(self.observers))
        return np.asarray(self.weights @ held(run))


def _wide(protocol: Any, columns: int) -> Any:
    """On a grid a protocol states how many columns there may be; each is a run of its own, with the same noise."""
    return protocol.replace(dimension=columns) if getattr(protocol, "grid", None) is not None else protocol


def held(run: Run) -> FloatArray:
    """(numbers, columns): all that the observers hold, one column per run; what they do not know (nan) left out."""
    record = run.record
    if record is None:
        raise InvalidValue("the system under audit keeps no record of what the observers hold")
    parts = []
    for name, part in sorted(vars(record).items()):
        array = np.asarray(part)
        if array.dtype.kind == "f" and array.ndim >= 2 and array.size:
            flat = array.reshape(-1, array.shape[-1])
            parts.append(flat[~np.isnan(flat).any(axis=1)])
        elif array.dtype.kind == "f" and array.ndim < 2:
            raise InvalidValue(f"the record's {name} has no columns")
    return np.vstack(parts)


def probed(
    system: System, protocol: Any, observers: tuple[int, ...], seed: int, periods: int = 1
) -> tuple[FloatArray, FloatArray]:
    """A (numbers, periods·n) and C (numbers, noises): what the observers hold, as a function of values and noises.

    >>> from netdp import Gossip, graphs
    >>> from netdp.protocols.simulation import execute
    >>> data, noise = probed(execute, Gossip(graphs.ring(4), rounds=1, sigma=2.0), (0,), seed=0)
    >>> data.shape, noise.shape                 # 1 and 3 send their noisy values; 0 knows its own value and noise
    ((4, 4), (4, 4))
    """
    n = protocol.n
    asked: list[tuple[int, ...]] = []

    def count(shape: tuple[int, ...]) -> FloatArray:
        asked.append(shape)
        return np.zeros(shape)

    def run(columns: int, values: FloatArray, normal: Any) -> FloatArray:
        given = Columns(values if periods > 1 else values[0])
        return held(system(protocol, given, seed, normal, list(observers)))

    zero = run(1, np.zeros((periods, n, 1)), count)
    noises = [int(np.prod(shape)) for shape in asked]  # one column: every number is a noise
    width, first = periods * n + sum(noises), periods * n
    values = np.zeros((periods, n, width))
    reach = protocol.sensitivity / 2
    values.reshape(periods * n, width)[:, :first] = reach * np.eye(periods * n)
    start = 0

    def units(shape: tuple[int, ...]) -> FloatArray:
        nonlocal start
        rows = int(np.prod(shape)) // width
        block = np.zeros((rows, width))
        block[np.arange(rows), first + start + np.arange(rows)] = 1.0
        start += rows
        return block.reshape(shape)

    found = run(width, values, units) - zero
    return found[:, :first] / reach, found[:, first:]


def solved(mine: FloatArray, noise: FloatArray, reach: float) -> tuple[FloatArray, FloatArray, float]:
    """w, the signs of d and μ for a target with these columns of A."""
    # C Cᵀ is never formed: its singular directions are those of C, with twice the digits
    U, s, _ = np.linalg.svd(noise, full_matrices=False)
    kept = s > _TOLERANCE * max(s.max(initial=0.0), 1e-300)
    U, s = U[:, kept], s[kept]
    inside = U.T @ mine
    outside = mine - U @ inside
    size = np.linalg.norm(mine)
    if size and np.linalg.norm(outside) > _CLEAR * size:
        d = _signs(outside)
        w = outside @ d
        return w / np.linalg.norm(w), d, float("inf")
    whitened = inside / s[:, None]
    d = _signs(whitened)
    shift = whitened @ d
    mu = reach * float(np.linalg.norm(shift))
    return np.asarray(U @ (shift / s)), d, mu


def _signs(columns: FloatArray) -> FloatArray:
    """The signs d with the longest Σ d_k·column_k: all tried where they are few, else by turning one at a time."""
    count = columns.shape[1]
    if count <= _SIGNS:
        tries = np.array(list(itertools.product([1.0], *[[1.0, -1.0]] * (count - 1))))
        lengths = np.linalg.norm(columns @ tries.T, axis=0)
        return np.asarray(tries[int(np.argmax(lengths))])
    gram, d = columns.T @ columns, np.ones(count)
    for _ in range(100):
        gain = d * (gram @ d) - np.diag(gram)
        worst = int(np.argmin(gain))
        if gain[worst] >= 0:
            break
        d[worst] = -d[worst]
    return d


FAR = 1e3
"""How many times the clip the target's gradient is long in one of the two worlds; a sound system cuts it to the clip."""

_NUMBERS = 4_000_000
"""Numbers of a view held in memory at once."""

Trainer = Callable[[Any, FloatArray, int, Normal, Any], FloatArray]
"""(protocol, gradients (T, n, columns), seed, normal, observers) → (numbers, columns): all that the observers hold."""


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
        data, noise = probed_descents(self.trainer, self.protocol, self.observers, self.target, self.seed)
        return solved(data, noise, self.protocol.sensitivity)

    def batch(self, within: bool, seed: int) -> FloatArray:
        """The target's gradients are a clip long, one way or the other; in one world because they are cut to it."""
        gradients = np.zeros((self.protocol.iterations, self.protocol.n, self.size))
        long = self.protocol.clip * (FAR if within else -1.0)
        gradients[:, self.target] = (self.direction * long)[:, None]
        normal = np.random.default_rng(seed).standard_normal
        held = self.trainer(self.protocol, gradients, self.seed, normal, list(self.observers))
        return np.asarray(self.weights @ held)


def probed_descents(
    trainer: Trainer, protocol: Any, observers: tuple[int, ...], target: int, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """(numbers, T) and (numbers, noises): what the observers hold, as a function of the target's gradients and of noises.

    >>> from netdp import CentralDescent
    >>> from netdp.families.baselines.attack import published_gradients
    >>> p = CentralDescent(4, iterations=2, sigma=2.0, step=0.5, clip=1.0)
    >>> data, noise = probed_descents(published_gradients, p, (0,), target=1)
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
