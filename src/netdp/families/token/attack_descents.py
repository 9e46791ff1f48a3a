"""Attacks on descent by a token, on a walk or round a ring: the likelihood ratio of what the observers read of the model.

All gradients are constant: the target's is as long as allowed, one way or the other, and everybody else's 0. Then a stretch of m
steps, k of them the target's, shows N(±kL, mσ²), and what the observers do not know of k is averaged over. Formula, and what such
an attack can attain: docs/proofs/token.md#token-attacks.

The run is written down here for many walks side by side, each with a path and a model (one number) of its own; a test holds it
against `netdp.learn.train_walk` and `train_ring`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.audit.attack import SIMULATOR, Attack, System, attacks, shorter
from netdp.audit.audits import at_most
from netdp.errors import InvalidValue
from netdp.families.token.ring import RingDescent
from netdp.families.token.simulate import walk_path
from netdp.families.token.walk import KNOWN_ENDS, WalkDescent
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.privacy.observers import Observers
from netdp.protocols.simulation import Normal
from netdp.protocols.training import clipped

FAR = 1e3
"""How many times the clip the target's gradient is long in one of the two worlds; a sound system cuts it to the clip."""

_STEPS = 1 << 20
"""Steps of all walks of one batch."""

_LEAST = 1e-12
"""Numbers of steps less likely than this are not thought of."""


@dataclass(frozen=True, eq=False)
class Readings:
    """What the observers hold of walks side by side, one row each.

    models   (walks, steps + 1) the model before every step, and the released one; nan where they do not see it
    names    (walks, steps) who made a step; −1 where they do not know
    """

    models: FloatArray
    names: IntArray


Tokens = Callable[[Any, FloatArray, int, Normal, Any], Readings]
"""(protocol, gradients (n, runs), seed, normal, observers) → what they read; `protocol.tokens` walks of each run in turn."""


def readings_of(
    protocol: WalkDescent | RingDescent, gradients: FloatArray, seed: int, normal: Normal, record: Any
) -> Readings:
    """What observers read if user u's raw gradient is gradients[u, j] in run j: paths come from the seed, noise from `normal`.

    >>> ring = RingDescent(3, rounds=1, sigma=1.0, step=0.5, clip=1.0)
    >>> seen = readings_of(ring, np.array([[4.0], [0.0], [0.0]]), 0, np.zeros, [1])
    >>> seen.models.tolist(), seen.names.tolist()
    ([[0.0, -0.5, -0.5, -0.5]], [[0, 1, 2]])
    """
    tokens = getattr(protocol, "tokens", 1)
    paths = token_paths(protocol, gradients.shape[1] * tokens, seed)
    models = models_along(protocol, paths, np.repeat(gradients, tokens, axis=1), normal)
    own = np.isin(paths, list(record))
    models[~known_models(own)] = np.nan
    return Readings(models, np.where(known_names(protocol, own), paths, -1))


def token_paths(protocol: WalkDescent | RingDescent, walks: int, seed: int) -> IntArray:
    """(walks, steps) who holds the token."""
    if isinstance(protocol, RingDescent):
        return np.tile(np.arange(protocol.n), (walks, protocol.rounds))
    rng = np.random.default_rng(seed)
    if protocol.graph is not None:
        return np.stack([walk_path(protocol, rng) for _ in range(walks)]).astype(np.int64)
    if protocol.weights is not None:
        return np.asarray(rng.choice(protocol.n, (walks, protocol.steps), p=protocol.chances))
    return rng.integers(0, protocol.n, (walks, protocol.steps))


def models_along(
    protocol: WalkDescent | RingDescent, paths: IntArray, gradients: FloatArray, normal: Normal
) -> FloatArray:
    """(walks, steps + 1) the models along the paths from 0, the released ones last; gradients (n, walks), not yet clipped."""
    walks, steps = paths.shape
    cut = clipped(gradients.reshape(-1, 1), protocol.clip).reshape(gradients.shape)
    cap, radius = getattr(protocol, "contributions", None), protocol.radius
    models, rows = np.zeros((walks, steps + 1)), np.arange(walks)
    used = np.zeros((walks, protocol.n), dtype=np.int64)
    for t in range(steps):
        who = paths[:, t]
        push = cut[who, rows]
        if cap is not None:
            push = np.where(used[rows, who] < cap, push, 0.0)
            used[rows, who] += 1
        models[:, t + 1] = models[:, t] - protocol.step * (push + protocol.sigma * normal((walks,)))
        if radius is not None:
            models[:, t + 1] = np.clip(models[:, t + 1], -radius, radius)
    closing = getattr(protocol, "closing", 0.0)
    if closing:
        models[:, steps] += protocol.step * protocol.sigma * math.sqrt(closing) * normal((walks,))
    return models


def known_models(own: BoolArray) -> BoolArray:
    """(walks, steps + 1) which models the observers know: before and after their own steps, the first, and the released."""
    walks, steps = own.shape
    seen = np.zeros((walks, steps + 1), dtype=bool)
    seen[:, :-1] |= own
    seen[:, 1:] |= own
    seen[:, [0, steps]] = True
    return seen


def known_names(protocol: WalkDescent | RingDescent, own: BoolArray) -> BoolArray:
    """(walks, steps) whose name they know: their own; who follows them, whom they follow, who released, as the channel tells."""
    if isinstance(protocol, RingDescent):
        return np.ones_like(own)
    known = own.copy()
    if KNOWN_ENDS[protocol.sender] >= 1:
        known[:, 1:] |= own[:, :-1]
    if KNOWN_ENDS[protocol.sender] >= 2:
        known[:, :-1] |= own[:, 1:]
    if protocol.release == "named":
        known[:, -1] = True
    return known


@dataclass(frozen=True, eq=False)
class TokenAttack(Attack):
    """The likelihood ratio of all readings of a run. One trial is one run: a path, or one per token, and a model."""

    words: ClassVar[str] = (
        "the likelihood ratio of the models that the observers read, over what they do not know of the path, for a target whose "
        "gradients are always as long as allowed"
    )
    protocol: Any
    observers: tuple[int, ...]
    target: int
    tokens: Tokens = readings_of

    def __post_init__(self) -> None:
        if self.target in self.observers:
            raise InvalidValue(f"target {self.target} is one of the observers {self.observers}")

    @cached_property
    def size(self) -> int:
        """As many walks as fit into memory."""
        each = self.protocol.steps * getattr(self.protocol, "tokens", 1)
        return int(np.clip(_STEPS // each, 16, 1 << 14))

    @cached_property
    def chance(self) -> float:
        """q: how likely a step of somebody else is the target's."""
        if isinstance(self.protocol, RingDescent):
            return 0.0  # all names are known
        law = np.asarray(self.protocol.stationary)
        return float(law[self.target] / (1 - law[list(self.observers)].sum()))

    def batch(self, within: bool, seed: int) -> FloatArray:
        """The target's gradients are a clip long, one way or the other; in one world because they are cut to it."""
        gradients = np.zeros((self.protocol.n, self.size))
        gradients[self.target] = self.protocol.clip * (FAR if within else -1.0)
        normal = np.random.default_rng([seed, 1]).standard_normal
        seen = self.tokens(self.protocol, gradients, seed, normal, list(self.observers))
        return np.asarray(self.scores(seen).reshape(self.size, -1).sum(axis=1))

    def scores(self, seen: Readings) -> FloatArray:
        """(walks,) the likelihood ratio of every walk."""
        walks, steps = seen.names.shape
        row, at = np.nonzero(~np.isnan(seen.models))
        first, last = slice(None, -1), slice(1, None)
        alike = row[first] == row[last]  # two readings of one walk, one after the other
        row, begin, end = row[first][alike], at[first][alike], at[last][alike]
        mine = ~np.isin(seen.names[row, begin], self.observers)  # an observer's own step tells it nothing
        row, begin, end = row[mine], begin[mine], end[mine]
        sums = (seen.models[row, begin] - seen.models[row, end]) / self.protocol.step

        def count(which: BoolArray) -> IntArray:
            total = np.concatenate([np.zeros((walks, 1), dtype=np.int64), np.cumsum(which, axis=1)], axis=1)
            return np.asarray(total[row, end] - total[row, begin])

        known, hidden = count(seen.names == self.target), count(seen.names < 0)
        variance = (end - begin) * self.protocol.sigma**2
        closing = getattr(self.protocol, "closing", 0.0)
        if closing:
            variance = variance + np.where(end == steps, closing * self.protocol.sigma**2, 0.0)
        ratio = self._mixed(sums, known, hidden, variance) - self._mixed(-sums, known, hidden, variance)
        return np.asarray(np.bincount(row, weights=ratio, minlength=walks), dtype=np.float64)

    def _mixed(self, sums: FloatArray, known: IntArray, hidden: IntArray, variance: FloatArray) -> FloatArray:
        """log E exp((kL·D − k²L²/2)/V), k = known + Bin(hidden, q)."""
        length, law = self.protocol.clip, log_binomials(int(hidden.max(initial=0)), self.chance)
        total = np.full(len(sums), -np.inf)
        for more in range(law.shape[1]):
            some = np.flatnonzero(law[hidden, more] > -np.inf)
            moved = (known[some] + more) * length
            shift = (moved * sums[some] - moved**2 / 2) / variance[some]
            total[some] = np.logaddexp(total[some], law[hidden[some], more] + shift)
        return total


def log_binomials(most: int, q: float) -> FloatArray:
    """[h, j] the logarithm of P(Bin(h, q) = j) for h up to `most`; −inf from where on it is next to nothing.

    >>> np.exp(log_binomials(2, 0.25)).tolist()
    [[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5625, 0.375, 0.0625]]
    """
    mean = most * q
    law = np.zeros((most + 1, min(most, math.ceil(mean + 10 * math.sqrt(mean) + 20)) + 1))
    law[0, 0] = 1.0
    for h in range(most):  # one more step that is the target's or not
        law[h + 1] = (1 - q) * law[h]
        law[h + 1, 1:] += q * law[h, :-1]
    with np.errstate(divide="ignore"):
        law = np.log(np.where(law > _LEAST, law, 0.0))
    return np.asarray(law[:, (law > -np.inf).any(axis=0)])


@attacks.register
def _walk(
    protocol: WalkDescent | RingDescent, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    tokens: Any = readings_of if system is SIMULATOR else system
    return [TokenAttack(protocol, observers.parties, target, tokens)]


_SHORT = 2_000
"""Steps of a token in one trial, unless there are more users."""


@shorter.register
def _shorter_walk(protocol: WalkDescent) -> Any:
    return at_most(protocol, steps=max(protocol.n, _SHORT // protocol.tokens))


@shorter.register
def _shorter_ring(protocol: RingDescent) -> Any:
    return at_most(protocol, rounds=max(1, _SHORT // protocol.n))
