"""Repeated averaging with the neighbours, in whole numbers with fresh noise (`netdp.Gossip` on a grid)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import IntArray
from netdp.numerics.rounding import rounded_up
from netdp.planning.calibrate import calibrate
from netdp.protocols import Gossip
from netdp.utility import expected_error

from ..messages import roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.gossip import Gossiping, gossip_noises
from ..streams import context, noise_words
from .base import DEVIATIONS, Desk, Roster, Running, Wish
from .noise import DIGITS, least_noise

if TYPE_CHECKING:
    from ..spreads.base import Spread

_MOST_ROUNDS = 10_000


class GossipSettings(Strict):
    """Repeated averaging with the neighbours, in whole numbers with fresh noise (`netdp.Gossip` on a grid)."""

    kind: Literal["gossip"]
    sigma: Number
    grid: Number
    rounds: Whole
    refresh: Number
    mixing: str = "metropolis"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {self.rounds}")
        return self


class GossipRunning(Running):
    """States that are averaged with the neighbours', round by round."""

    kind = "gossip"
    Settings = GossipSettings
    comments: ClassVar = {
        "rounds": "how often everybody sends",
        "refresh": "variance of all fresh noise, in sigma squared",
    }
    how = (
        "The parties add noise, then average with their neighbours again and again, with fresh noise each time. "
        "Neighbours see more than those far away."
    )
    told = (
        "Each of the {n} parties ends with an estimate of its own. One that passes it on counts as colluding with "
        "whoever gets it."
    )
    has_own_answers = True

    def protocol(self) -> Gossip:
        how, task = self.settings, self.study.task
        return Gossip(
            self.study.graph, rounds=how.rounds, sigma=how.sigma, refresh=how.refresh, mixing=how.mixing,
            sensitivity=task.sensitivity, dimension=task.dimension, grid=how.grid,
        )  # fmt: skip

    def noise(self, parties: int) -> float:
        return parties * expected_error(self.protocol()).rmse / math.sqrt(self.study.task.dimension)

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())
        return roster_digest(roster), gossip_noises(self.protocol(), desk.rows[0], words).astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol()

        def drawn() -> IntArray:
            return np.frombuffer(desk.written(attempt), dtype="<i8").astype(np.int64).reshape(-1, protocol.dimension)

        return Gossiping(protocol, attempt, roster, desk.me, drawn)

    @cached_property
    def furthest(self) -> float:
        """A mean of first states, roundings of ½ and means of fresh noise: each no further than its largest part."""
        protocol = self.protocol()
        noise = math.sqrt(protocol.start_variance) + protocol.rounds * math.sqrt(protocol.fresh_variance)
        return 1 / protocol.step + 1 + protocol.rounds + DEVIATIONS * noise

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """Rounds and fresh noise with the smallest predicted error against single parties, in real numbers, of a few choices.

        Fresh noise before every send is what makes rounding harmless; without it local DP is all that could be claimed.
        """
        gap = spectral_gap(wish.graph)
        trials = [
            calibrate(
                Gossip(
                    wish.graph, rounds=max(2, math.ceil(mixed / gap)), sigma=1.0, refresh=refresh,
                    sensitivity=wish.task.sensitivity, dimension=wish.task.dimension,
                ),
                wish.epsilon,
                wish.delta,
            )
            for mixed in (1.0, 2.0, 4.0)
            for refresh in (0.25, 1.0, 4.0)
        ]  # fmt: skip
        best = min(trials, key=lambda protocol: expected_error(protocol).rmse)
        best = best.replace(sigma=rounded_up(best.sigma, DIGITS))
        return {
            "kind": cls.kind, "sigma": best.sigma, "grid": _grid(best, wish.delta), "rounds": best.rounds,
            "refresh": best.refresh, "mixing": best.mixing,
        }  # fmt: skip

    def least(self) -> dict[str, Any]:
        terms, protocol = self.study.privacy, self.protocol()

        def stated(sigma: float) -> dict[str, Any]:
            grid = _grid(protocol.replace(sigma=sigma, grid=None), terms.delta)
            return dict(self.settings.model_dump(mode="json")) | {"sigma": sigma, "grid": grid}

        def meets(sigma: float) -> bool:
            found = self.with_settings(stated(sigma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon

        return stated(least_noise(meets, self.settings.sigma))


def _grid(protocol: Gossip, delta: float) -> float:
    from netdp.accounting.gossip.dithered import wire_grid

    return min(wire_grid(protocol, delta), 1.0)
