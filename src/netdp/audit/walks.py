"""The likelihood ratio of what observers see of tokens on secret walks.

The observers see, stretch by stretch (`stretches`), the change y of a token over m steps that are not theirs. Let all others
hold the lower end of the public interval, and the target its lower end (`without`) or its upper end (`within`), Δ apart. If k
of the steps are the target's, then y minus what m lower ends make is r ~ N(k·Δ, V), with V the variance of the m noises (and of
the closing noise at the release). k is secret; its law p is known and does not depend on data. `without`, r ~ N(0, V) whatever
k is. So the likelihood ratio of one stretch, the best test there is of it (Neyman and Pearson), is

    Λ(r) = Σ_k p_k · exp((k·Δ·r − k²Δ²/2)/V).

*On the complete graph* steps are independent: stretches are, too, given what the observers know, and the score Σ log Λ is the
likelihood ratio of all they see. *With a limit on contributions* k counts up to the limit only, over all stretches of a token:
the sum over secret numbers of visits is then taken from stretch to stretch, by how many contributions the target has used up.
*On a graph* a stretch depends on the others through its ends only; these are known, so the score is the likelihood ratio there,
too. What is certified for graphs tells the observers the whole path, so this attack shows how much that costs.

*On a grid* noise is discrete and the values are chosen so that rounding moves them as far apart as it can; with Laplace noise V
is the variance all the same. There the score is not exactly the likelihood ratio; it is a function of what the observers see,
and what its scores prove is proved.

`within` is a value far beyond the interval, as everywhere (`linear`): a system that forgets to clip gives itself away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.privacy import Observers
from netdp.protocols import GraphWalkSum, WalkSum
from netdp.protocols.walk_steps import walk_values
from netdp.simulate.run import Run

from .attack import Attack, Columns, System, batch_seed
from .linear import FAR
from .stretches import Bridges, Draws, Stretches, cut
from .table import attacks

_RUNS = 64
"""Runs of a batch: each is one trial, as columns of a run would share its path."""
_ROUNDS_DOWN = 0.5 - 2.0**-20
"""A value of so many grid steps is still rounded to none, and with Δ added to as many as there can be."""


@dataclass(frozen=True, eq=False)
class WalkAttack(Attack):
    """See the module."""

    words: ClassVar[str] = "the likelihood ratio of all increments between the observers' visits, over the secret path"
    protocol: Any
    observers: tuple[int, ...]
    target: int
    system: System
    size: ClassVar[int] = _RUNS
    most: ClassVar[int] = 3_000

    def batch(self, within: bool, seed: int) -> FloatArray:
        """So many runs, each with a path of its own."""
        found = Stretches.together([cut(self.protocol, self.run(within, batch_seed(seed, i)), i) for i in range(_RUNS)])
        return self.scores(found, _RUNS)

    def run(self, within: bool, seed: int) -> Run:
        """One run of the system under audit."""
        values = np.full((self.protocol.n, 1), self._low)
        if within:
            values[self.target] += self.protocol.sensitivity * FAR
        given = Columns(values, (self._low, self._low + self.protocol.sensitivity))
        normal = np.random.default_rng(batch_seed(seed, 1)).standard_normal
        return self.system(self.protocol, given, seed, normal, list(self.observers))

    def scores(self, found: Stretches, runs: int) -> FloatArray:
        """(runs,) the logarithm of the likelihood ratio."""
        variance = self._deviation**2 * (found.steps + self._closing * found.closes)
        chances = self._visits.logs(found)
        k = np.arange(chances.shape[1]) * self._shift
        gains = (np.outer(found.change[:, 0], k) - k**2 / 2) / variance[:, None]
        limit = getattr(self.protocol, "contributions", None)
        if limit is None:
            return found.sums(_log_sum(chances + gains), runs)
        return _limited(found, chances, gains, limit, runs)

    @cached_property
    def _visits(self) -> Draws | Bridges:
        if isinstance(self.protocol, GraphWalkSum):
            return Bridges(self.protocol.transition, self.protocol.stationary, self.observers, self.target)
        return Draws(self.protocol.chances, self.observers, self.target)

    @property
    def _low(self) -> float:
        """The lower end of the public interval: no step of the grid, if there is one, and just below half a step."""
        return 0.0 if self.protocol.grid is None else self.protocol.grid * _ROUNDS_DOWN

    @cached_property
    def _shift(self) -> float:
        """How far apart the target's two values are, once rounded."""
        width, grid = float(self.protocol.sensitivity), self.protocol.grid
        if grid is None:
            return width
        return float(walk_values(self.protocol, np.array([self._low + width]))[0] * grid)

    @cached_property
    def _deviation(self) -> float:
        grid = self.protocol.grid
        return float(self.protocol.sigma if grid is None else np.sqrt(self.protocol.variance) * grid)

    @property
    def _closing(self) -> float:
        return float(getattr(self.protocol, "closing", 0.0))


def _log_sum(logs: FloatArray, axis: int = -1) -> FloatArray:
    """log Σ exp along an axis; -inf where all are."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def _limited(found: Stretches, chances: FloatArray, gains: FloatArray, limit: int, runs: int) -> FloatArray:
    """The same where the target contributes to a token `limit` times at most.

    state[c, s]: the logarithm of the likelihood ratio of what was seen of token c so far, times the probability, without the
    target's value, that it has contributed s times. Others add the lower end, which is 0, and past their limit 0 as well.
    """
    most = min(limit, gains.shape[1] - 1)
    missing = max(0, limit - most)
    padded = np.pad(chances, ((0, 0), (0, missing)), constant_values=-np.inf)[:, : limit + 1]
    at_least = np.stack([_log_sum(chances[:, k:]) for k in range(most + 1)], axis=1)
    at_least = np.pad(at_least, ((0, 0), (0, missing)), constant_values=-np.inf)
    gain = np.pad(gains, ((0, 0), (0, missing)))[:, : limit + 1]
    s = np.arange(limit + 1)
    more = s[None, :] - s[:, None]  # contributions from state s to state s'
    ahead = np.maximum(more, 0)
    tokens = int(found.token.max(initial=0)) + 1
    chain = found.run * tokens + found.token
    place = np.arange(len(chain)) - np.searchsorted(chain, chain)  # rows come run by run, token by token, in time order
    state = np.full((runs * tokens, limit + 1), -np.inf)
    state[:, 0] = 0.0
    for now in range(int(place.max(initial=-1)) + 1):
        rows = np.flatnonzero(place == now)
        step = np.where(s == limit, at_least[rows][:, ahead], padded[rows][:, ahead]) + gain[rows][:, ahead]
        step = np.where(more >= 0, step, -np.inf)
        state[chain[rows]] = _log_sum(state[chain[rows]][:, :, None] + step, axis=1)
    return np.asarray(_log_sum(state).reshape(runs, tokens).sum(axis=1))


@attacks.register
def _walks(
    protocol: WalkSum | GraphWalkSum, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    return [WalkAttack(protocol, observers.parties, target, system)]
