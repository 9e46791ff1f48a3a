"""Tokens that carry a model, on peers (`netdp.WalkDescent` on a grid): whoever holds one takes a noisy gradient step of it.

The walk is that of sums (`netdp.families.token.peer_tokens`): a token leaves once, with one content, written down first. What a
visit adds is a function of the token that came, of its place, and of the party's rows and secret (`netdp.peers.descents`). A token
holds the way from the public first model; everybody reads the released ones, and keeps their mean. What is claimed:
docs/proofs/token.md#walk-descent-on-a-grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from netdp.errors import Refused
from netdp.families.token.peer_tokens import KEY, Load, Route, TokenWalk
from netdp.families.token.peer_walk import WalkRunning, WalkSettings, _plain
from netdp.families.token.steps import visited
from netdp.families.token.walk import WalkDescent
from netdp.numerics.arrays import FloatArray, IntArray, rounded_up
from netdp.peers.descents import DescentKind, OwnSteps, known_expansion
from netdp.peers.kinds import Roster, Wish
from netdp.peers.ledger.losses import accounted
from netdp.peers.messages import roster_digest
from netdp.peers.noise import DIGITS, least_noise
from netdp.peers.records import Misfit, Number, Whole
from netdp.peers.spread import Spread
from netdp.peers.streams import context, noise_words, rows_digest
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import local
from netdp.protocols.calibration import noise_for
from netdp.protocols.descents import wire_grid
from netdp.protocols.training import TrainingCost

if TYPE_CHECKING:
    from netdp.peers.desk import Desk


class ModelLoad(Load):
    """A model in whole steps, as far as it has come from the public first one. `steps()`: what this party computes."""

    def __init__(self, protocol: WalkDescent, steps: Callable[[], OwnSteps], start: IntArray) -> None:
        self._protocol, self._make, self._start = protocol, steps, start
        self.width, self.tokens, self.steps = protocol.dimension, protocol.tokens, protocol.steps

    @cached_property
    def _own(self) -> OwnSteps:
        return self._make()

    def row(self, value: FloatArray) -> IntArray:
        raise NotImplementedError("the rows of a training are written down as a digest")

    def check(self, row: IntArray) -> None:
        if row.astype("<i8").tobytes() != self._own.digest:
            raise Refused(
                "the data here have changed since the training began; what was promised is about the same rows at all visits. Put "
                "the data back as they were, or take part in a new study"
            )

    def add(self, token: IntArray, row: IntArray, key: bytes, k: int, t: int) -> IntArray:
        state = self._start + token
        mean = visited(state, -self._own.gradient(state, k, t), np.zeros_like(state))
        return visited(mean, -self._start, self._own.noise(mean, self._protocol.variance, k, t))

    def close(self, token: IntArray, key: bytes, k: int) -> IntArray:
        noise = self._own.noise(token, self._protocol.closing_variance, k, self.steps)
        return visited(token, np.zeros_like(token), noise)

    def fits(self, token: IntArray, visits: int) -> bool:
        """No number is further from the start than so many gradients and 40 deviations of all noise lead."""
        most = self._protocol.largest(visits, visits)
        return all(abs(int(one)) <= most for one in token)

    def total(self, released: list[IntArray], parties: int) -> FloatArray:
        return np.asarray(np.mean([self._protocol.model(self._start + one) for one in released], axis=0))


class WalkDescentSettings(WalkSettings):
    """Tokens that carry a model (`netdp.WalkDescent` on a grid)."""

    kind: Literal["walk-descent"]
    batch: Whole = 0
    clip: Number
    step: Number
    sigma: Number
    grid: Number
    closing: Number = 0.0


_VISITS, _CLIP = 20, 0.1
"""Visits to each party, and where gradients are clipped, unless somebody says otherwise."""


class WalkDescentRunning(DescentKind, WalkRunning):
    """Tokens that walk at random; whoever holds one moves the model on it by a noisy gradient of its own rows."""

    kind = "walk-descent"
    Settings = WalkDescentSettings
    tolerates = False
    options = ("steps", "tokens", "batch", "clip", "step", "closing")
    comments: ClassVar = dict(WalkRunning.comments) | {
        "steps": "how many gradient steps each token takes",
        "batch": "rows drawn anew for a gradient; 0: all of them",
        "clip": "the longest that the gradient of a row may be",
        "sigma": "noise that every visit adds to every number of its gradient",
    }
    how = (
        "Tokens walk from party to party, and each carries a model. Whoever holds one moves the model by the gradient "
        "of its own rows, "
        "with fresh noise, then hands it to a party that it draws in secret. A party sees the model when a token "
        "comes, from whom it "
        "comes and to whom it goes. After its last step a token is published, and everybody keeps the mean of all."
    )
    told = "Everybody learns the model, and those that passed through its own hands: all {n} parties, and whoever they tell."

    def _among(self, parties: int) -> WalkDescent:
        how, task = self.settings, self.task
        uniform = how.walk == "uniform"
        if uniform and how.closing:
            raise Misfit(("protocol", "closing"), 'belongs to walks on a graph; with walk = "uniform" give 0')
        known = known_expansion(task, how.step, how.clip)
        users: Any = parties if uniform else self.study.graph
        return WalkDescent(
            users, how.steps, sigma=how.sigma, step=how.step, clip=how.clip, expansion=_UNKNOWN if known is None else known,
            tokens=how.tokens, walk="metropolis" if uniform else how.walk, closing=how.closing, batch=how.batch or None,
            grid=how.grid, dimension=task.dimension,
        )  # fmt: skip

    def _curve(self, parties: int, colluders: int, absent: int, *, told_only: bool = False) -> ProfileCurve:
        """All that a party adds, with its own noise alone, is what is left where the path may be known."""
        protocol = self._among(parties)
        if told_only:
            return _plain(local(protocol).curve)
        return _plain(accounted(protocol, tuple(range(min(colluders, parties - 1)))).curve)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        rows = rows_digest(desk.identity.noise_secret, desk.rows)
        words = noise_words(desk.identity.noise_secret, context(self.study.hash, attempt, roster), rows)
        drawn = words(2 * KEY // 8).astype("<u8").tobytes()
        return roster_digest(roster) + drawn[KEY:], drawn[:KEY] + rows

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        study, protocol = self.study, self._among(len(roster))

        def row() -> tuple[bytes, IntArray]:
            written = desk.written(attempt)
            return written[:KEY], np.frombuffer(written[KEY:], dtype="<i8").astype(np.int64)

        walk = "metropolis" if self._uniform else self.settings.walk
        return TokenWalk(
            ModelLoad(protocol, self.own_steps(protocol, desk, attempt, roster), protocol.start(self._first)),
            Route(roster, None if self._uniform else study.graph, walk),
            attempt, desk.me, row, desk, wait=study.timing.patience / 4,
            most=self._most_visits(protocol, roster, desk.me, 0), lasts=self._lasts, name=lambda u: study.names[u],
        )  # fmt: skip

    @cached_property
    def _first(self) -> FloatArray:
        from netdp.peers.descents import model_of

        return np.asarray(model_of(self.task).start())

    @property
    def _lasts(self) -> float:
        """Seconds that a party may hear nothing: a visit that takes long, of a model that is code, more."""
        return float(self.settings.steps) * (2.0 if self.task.is_code else 0.25)

    # ── what to expect of it ──────────────────────────────────────────────────────────────────────────────────────────

    def cost(self, latency: float) -> TrainingCost:
        """Every step is two messages and the token; a party holds one in n of them."""
        how, n, body = self.settings, self.study.n, 8 * self.task.dimension + 8
        visits = how.steps * how.tokens
        each = -(-visits // n)
        return TrainingCost(
            iterations=how.steps, rounds=how.steps, step_bytes=body, link_bytes=each * body,
            mean_bytes=each * body + how.tokens * body, party_bytes=2 * each * body + how.tokens * n * body,
            memory_bytes=body * (2 * each + how.tokens), seconds=how.steps * (2 * latency + body / 12.5e6),
        )  # fmt: skip

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        task: Any = wish.task
        given, n = wish.options, wish.graph.n
        steps, tokens = given.get("steps", _VISITS * n), given.get("tokens", 1)
        for name, value in (("steps", steps), ("tokens", tokens)):
            if value < 1:
                raise Misfit(("protocol", name), f"must be 1 or more, got {value}")
        complete = wish.graph.edges().shape[0] == n * (n - 1) // 2
        clip = given.get("clip", 1.0 if task.is_code else _CLIP)
        sigma = rounded_up(noise_for(2.0 * clip * math.sqrt(2 * steps * tokens / n), wish.epsilon, wish.delta), DIGITS)
        draft = WalkDescent(max(n, 2), max(steps, n), sigma=sigma, step=1.0, clip=clip, tokens=tokens)
        step = cls.step_of(draft, wish)
        closing = given.get("closing", 0.0 if complete else float(n))
        return {
            "kind": cls.kind, "steps": steps, "tokens": tokens, "walk": "uniform" if complete else "metropolis",
            "batch": given.get("batch", 0), "clip": clip, "step": step, "sigma": sigma, "grid": wire_grid(draft.replace(step=step)),
            "closing": closing,
        }  # fmt: skip

    def least(self) -> dict[str, Any]:
        terms, how = self.study.privacy, self.settings

        def stated(sigma: float) -> dict[str, Any]:
            draft = WalkDescent(2, 2, sigma=sigma, step=how.step, clip=how.clip)
            return dict(how.model_dump(mode="json")) | {"sigma": sigma, "grid": wire_grid(draft)}

        def meets(sigma: float) -> bool:
            found = self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon * self._room

        return stated(least_noise(meets, how.sigma / 2))


_UNKNOWN = 1e9
"""Stands for an expansion of which nothing is known: only bounds that do not ask for it are used."""
