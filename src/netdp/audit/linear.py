"""The optimal linear distinguisher, for views that are linear in values and Gaussian noises (docs/guarantees.md#linear-gaussian).

What the observers hold is y = A x + C z, with x the values and z standard normal noises; their own noises, masks and values are
rows of it like any other. Against a target whose contributions move by d, the best test of all is the likelihood ratio (Neyman
and Pearson), which is the one number

    s = wᵀy,     w = (C Cᵀ)⁺ A_u d,     N(s₀, μ²) against N(s₀ + μ², μ²),     μ² = dᵀ A_uᵀ (C Cᵀ)⁺ A_u d.

**A and C are found by feeding the system itself** (`probed`): as every column of a run is a run of its own, one run whose columns
hold one unit value or one unit noise each writes both matrices down. So the attack is the best one against what is really
run, bug included, while the claim is that of the accountant, which has seen nothing of it. If some direction of what the
target adds carries no noise at all (A_u d outside the range of C), that direction decides everything, and it is taken.

**Which d.** A target with one value: d = Δ. Values over time (tokens, several studies): the signs with the largest μ².

**Far values.** `within` is a value far outside of the public interval. A sound system clips it to the interval's end before noise
is added, and nothing changes; one that forgets to, or clips too late, gives itself away.

Rounding can only make w a little less than optimal: whatever w is, s is a function of what the observers hold, and what its scores
prove is proved.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.privacy import Observers
from netdp.protocols import (
    Central,
    ErdosRenyiDescent,
    ErdosRenyiGossip,
    Gossip,
    Local,
    PathSum,
    PushSum,
    RandomizedGossip,
    RingSum,
    SecretRingSum,
    VaryingGossip,
)
from netdp.simulate.run import Run
from netdp.views import LinearGaussianView, LinearProtocol, Seen

from .attack import Attack, Columns, System
from .table import attacks

_TOLERANCE = 1e-9
"""Directions of C Cᵀ below this share of its largest one count as without noise of their own: rounding."""
_CLEAR = 1e-6
"""What the target adds must have at least this share of itself outside the range of C to be taken for uncovered."""
_NUMBERS = 4_000_000
"""Numbers of a view held in memory at once."""
_SIGNS = 8
"""Up to so many contributions all signs are tried."""
FAR = 1e3
"""How many times Δ beyond its interval a far value lies."""


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

    >>> from netdp import graphs
    >>> from netdp.simulate.run import execute
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


@dataclass(frozen=True, eq=False)
class MatrixAttack(Attack):
    """The same on a protocol that is stated as matrices: what it says is seen is drawn, and judged."""

    words: ClassVar[str] = LinearAttack.words
    gaussian: ClassVar[bool] = True
    most: ClassVar[int] = 400_000
    seen: Seen
    target: int
    sensitivity: float

    @cached_property
    def size(self) -> int:
        """As many columns as fit into memory."""
        return int(np.clip(_NUMBERS // max(sum(self.seen.noise.shape), 1), 64, 1 << 14))

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        data = self.seen.data
        owners = np.arange(data.shape[1]) if self.seen.owners is None else self.seen.owners
        mine = data[:, owners == self.target]
        w, d, _ = solved(mine, self.seen.noise, self.sensitivity)
        return w, mine @ d * self.sensitivity / 2, self.seen.noise.T @ w

    def batch(self, within: bool, seed: int) -> FloatArray:
        w, shift, noise = self._solved
        z = np.random.default_rng(seed).standard_normal((len(noise), self.size))
        return np.asarray((1.0 if within else -1.0) * float(w @ shift) + noise @ z)


@attacks.register_with_subclasses
def _matrices(
    protocol: LinearGaussianView | LinearProtocol, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    view = protocol.view() if isinstance(protocol, LinearProtocol) else protocol
    return [MatrixAttack(view.seen_by(observers.parties), target, view.sensitivity)]


attacks.refuse(Local, Central, why="it is what other protocols are compared with, and no messages of it are recorded")
attacks.refuse(
    ErdosRenyiGossip,
    ErdosRenyiDescent,
    why="its graphs are drawn first: audit(protocol) does that, or audit protocol.draw(seed)",
)
attacks.refuse(SecretRingSum, why="no attack on orders that are drawn anew and secret is built yet")


@attacks.register
def _gossip(
    protocol: Gossip | VaryingGossip | PushSum | RandomizedGossip,
    observers: Observers,
    target: int,
    system: System,
    seed: int,
) -> list[Attack]:
    return [LinearAttack(protocol, observers.parties, target, system, seed)]


@attacks.register
def _tokens(protocol: RingSum | PathSum, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    """Values over time, one per round of a ring: a noise that is used twice shows in their difference."""
    if protocol.law != "gaussian":
        return []
    periods = protocol.rounds if isinstance(protocol, RingSum) else 1
    return [LinearAttack(protocol, observers.parties, target, system, seed, min(periods, 2 * _SIGNS))]
