"""Gossip on a grid, on one graph or on a graph per round: everybody sends its state to its neighbours, averages, adds noise.

All noise of a party, for all rounds, is drawn and written down together before its first state leaves. So states are
functions of what is written down and of what the neighbours sent; a party that comes back computes them again. There is
no second way to the answer: if somebody stays away, it ends without one.

Repeated averaging with the neighbours, in whole numbers with fresh noise (`netdp.Gossip` on a grid).

**Changing graphs** (`netdp.VaryingGossip` on a grid). With `edge_probability` below 1 every link of the network carries in a round
by a coin of its own. The coins follow from a seed that the study states and all sign: everybody can compute every round's graph,
and does before it signs, for the promise is computed for these very graphs. So nothing rests on how the seed was chosen.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from netdp.families.gossip.protocol import Gossip, gossip_refresh, gossip_start, gossip_step, gossip_weights, summed
from netdp.families.gossip.varying import VaryingGossip
from netdp.graphs.graph import Graph
from netdp.graphs.spectrum import spectral_gap
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import FloatArray, IntArray, rounded_up
from netdp.peers.kinds import DEVIATIONS, Kind, Roster, Wish
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_noise
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import Words, context, noise_words
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate

if TYPE_CHECKING:
    from netdp.peers.desk import Desk


Rounds = Gossip | VaryingGossip


def drawn_rounds(network: Graph, chance: float, rounds: int, seed: str) -> tuple[Graph, ...]:
    """The graph of every round: each link of the network with this chance, by public coins from a seed of 32 hexadecimal digits.

    >>> from netdp import graphs
    >>> [graph.m for graph in drawn_rounds(graphs.complete(5), 0.5, 4, "0" * 32)]
    [5, 6, 4, 8]
    """
    words = Words(hashlib.sha256(_COINS + bytes.fromhex(seed)).digest())
    limit, edges = np.uint64(int(Fraction(chance) * 2**64)), network.edges()
    return tuple(
        Graph.from_edges(network.n, edges[words(len(edges)) < limit], name=f"round {t}", labels=network.labels)
        for t in range(rounds)
    )


_COINS = b"netdp gossip links 1 "


def gossip_noises(protocol: Rounds, value: FloatArray, words: Words) -> IntArray:
    """All that a party draws, (rounds, d): its first state, then the fresh noise of every later send."""

    def draw(variance: int, size: int) -> IntArray:
        return FineGaussian(variance).sample((size,), words)

    nothing = np.zeros(value.size, dtype=np.int64)
    fresh = [gossip_refresh(protocol, nothing, draw) for _ in range(protocol.rounds - 1)]
    return np.array([gossip_start(protocol, value, draw), *fresh], dtype=np.int64)


class Gossiping(Spread):
    """The mean by a `Gossip` on a grid; everybody ends with an estimate of its own. `drawn()` as in `Ring`."""

    needs_all = False

    def __init__(
        self, protocol: Rounds, attempt: int, roster: tuple[int, ...], me: int, drawn: Callable[[], IntArray]
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._drawn = protocol, me, drawn
        self._noises: IntArray | None = None
        self._sent: list[IntArray] = []

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        if self.answer is not None:
            return moves
        if self._noises is None:
            self._noises = self._drawn()
            self._send(self._noises[0], moves)
        while True:
            t = len(self._sent) - 1
            weights = gossip_weights(self._protocol, self._me, t)
            found = {v: self._state(held, v, t) for v in weights}
            received = {v: state for v, state in found.items() if state is not None}
            if len(received) < len(found):
                return moves
            previous = summed(self._sent[t - 1], self._noises[t]) if t else None
            mixed = gossip_step(weights, self._sent[t], received, previous, self._protocol.chebyshev)
            if t + 1 == self._protocol.rounds:
                total = mixed.astype(np.float64) * (self._protocol.step * self._protocol.n)
                self.answer = SpreadResult(self.attempt, self.roster, total, b"")
                return moves
            self._send(summed(mixed, self._noises[t + 1]), moves)

    def _send(self, state: IntArray, moves: Moves) -> None:
        t = len(self._sent)
        item = Item(Key(ItemKind.STATE, self.attempt, self._me, t), state.astype("<i8").tobytes())
        self._sent.append(state)
        moves.addressed += [(v, item) for v in gossip_weights(self._protocol, self._me, t)]

    def _state(self, held: Mapping[Key, Item], v: int, t: int) -> IntArray | None:
        item = held.get(Key(ItemKind.STATE, self.attempt, v, t))
        if item is None or len(item.body) != 8 * self._sent[0].size:
            return None
        return np.frombuffer(item.body, dtype="<i8").astype(np.int64)


_MOST_ROUNDS = 10_000


_USUAL: Mapping[str, Any] = {"gap": 0.0, "edge_probability": 1.0, "seed": ""}


class GossipSettings(Strict):
    """Repeated averaging with the neighbours, in whole numbers with fresh noise (`netdp.Gossip` on a grid)."""

    kind: Literal["gossip"]
    sigma: Number
    grid: Number
    rounds: Whole
    refresh: Number
    mixing: str = "metropolis"
    gap: Number = 0.0
    edge_probability: Number = 1.0
    seed: str = ""

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is newer is left out where it is not asked for: such a study is hashed as before there was any of it."""
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if value != _USUAL.get(name)}

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {self.rounds}")
        if not 0 <= self.gap <= 1:
            raise Misfit(("gap",), f"is a spectral gap, 0 to 1, with 0 for plain averaging; got {self.gap!r}")
        if not 0 < self.edge_probability <= 1:
            raise Misfit(
                ("edge_probability",),
                f"is the chance of a link to carry, above 0 and at most 1; got {self.edge_probability!r}",
            )
        if self.edge_probability < 1 and self.gap:
            raise Misfit(("gap",), "belongs to one graph; with links that change from round to round leave it out")
        if self.edge_probability < 1 and not re.fullmatch("[0-9a-f]{32}", self.seed):
            raise Misfit(("seed",), f"must be 32 hexadecimal digits, which all links are drawn from; got {self.seed!r}")
        if self.edge_probability == 1 and self.seed:
            raise Misfit(("seed",), "belongs to an edge_probability below 1; leave it out")
        return self


class GossipRunning(Kind):
    """States that are averaged with the neighbours', round by round."""

    kind = "gossip"
    Settings = GossipSettings
    sends = frozenset({ItemKind.STATE})
    sends_all_the_same = True
    options = ("accelerated", "edge_probability", "seed")
    canaries = "party"
    comments: ClassVar = {
        "rounds": "how often everybody sends",
        "refresh": "variance of all fresh noise, in sigma squared",
        "gap": "spectral gap that the weights of accelerated averaging are for",
        "edge_probability": "of a link of the network to carry in a round",
        "seed": "which links do so when follows from it: public, and the same for all",
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

    @property
    def how_words(self) -> str:
        protocol = self.protocol()
        if isinstance(protocol, VaryingGossip):
            links = [graph.m for graph in protocol.graphs]
            return (
                f"{self.how} In every round each link of the network carries by a public coin, with probability "
                f"{self.settings.edge_probability:g}: {min(links)} to {max(links)} of {self.study.graph.m} links. All coins follow "
                "from the seed in this study, and the promise is computed for these very links."
            )
        if protocol.chebyshev is None:
            return self.how
        return (
            f"{self.how} Averaging is accelerated: every new state is {protocol.chebyshev:.4g} times the mean minus "
            f"{protocol.chebyshev - 1:.4g} times the state before."
        )

    def protocol(self) -> Rounds:
        return self._protocol

    @cached_property
    def _protocol(self) -> Rounds:
        how, task = self.settings, self.study.task
        if how.edge_probability < 1:
            return VaryingGossip(
                drawn_rounds(self.study.graph, how.edge_probability, how.rounds, how.seed), sigma=how.sigma, refresh=how.refresh,
                mixing=how.mixing, sensitivity=task.sensitivity, dimension=task.dimension, grid=how.grid,
            )  # fmt: skip
        return Gossip(
            self.study.graph, rounds=how.rounds, sigma=how.sigma, refresh=how.refresh, mixing=how.mixing,
            sensitivity=task.sensitivity, dimension=task.dimension, grid=how.grid,
            accelerated=how.gap > 0, gap=how.gap or None,
        )  # fmt: skip

    def most_rounds(self) -> int:
        return int(self.settings.rounds) - 1

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
        """A mean of first states, roundings of ½ and means of fresh noise: each no further than its largest part.

        With acceleration a combination whose weights have a sum of squares of at most 1, `lasting`² and `growth`².
        """
        protocol = self.protocol()
        fresh = protocol.rounds * protocol.growth * math.sqrt(protocol.fresh_variance)
        reach = 1 / protocol.step + 1 + protocol.rounds * protocol.lasting
        further = math.sqrt(protocol.n) if protocol.chebyshev is not None else 1.0
        return further * (reach + DEVIATIONS * (math.sqrt(protocol.start_variance) + fresh))

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """Rounds and fresh noise with the smallest predicted error against single parties, in real numbers, of a few choices.

        Fresh noise before every send is what makes rounding harmless; without it local DP is all that could be claimed.
        """
        gap, accelerated = spectral_gap(wish.graph), bool(wish.options.get("accelerated", False))
        if (chance := wish.options.get("edge_probability", 1.0)) < 1:
            if accelerated:
                raise Misfit(("protocol", "accelerated"), "is for one graph; leave it out, or edge_probability")
            return cls._start_changing(wish, gap * chance, chance)
        time = math.sqrt(gap) if accelerated else gap
        trials = [
            calibrate(
                Gossip(
                    wish.graph, rounds=max(2, math.ceil(mixed / time)), sigma=1.0, refresh=refresh,
                    sensitivity=wish.task.sensitivity, dimension=wish.task.dimension, accelerated=accelerated,
                    gap=gap if accelerated else None,
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
            "refresh": best.refresh, "mixing": best.mixing, "gap": best.gap or 0.0,
        }  # fmt: skip

    @classmethod
    def _start_changing(cls, wish: Wish, gap: float, chance: float) -> dict[str, Any]:
        """The same where links change: their seed is an option, and zeros without it, for nothing rests on it."""
        seed = wish.options.get("seed", "0" * 32)
        usual = GossipSettings(
            kind="gossip", sigma=1.0, grid=1.0, rounds=1, refresh=0.0, edge_probability=chance, seed=seed
        )  # refuses what makes no sense
        trials = [
            calibrate(
                VaryingGossip(
                    drawn_rounds(wish.graph, chance, max(2, math.ceil(mixed / gap)), seed), sigma=1.0, refresh=refresh,
                    sensitivity=wish.task.sensitivity, dimension=wish.task.dimension,
                ),
                wish.epsilon, wish.delta,
            )
            for mixed in (2.0, 4.0)
            for refresh in (0.25, 1.0, 4.0)
        ]  # fmt: skip
        best = min(trials, key=lambda protocol: expected_error(protocol).rmse)
        best = best.replace(sigma=rounded_up(best.sigma, DIGITS))
        return {
            **usual.model_dump(mode="json"), "sigma": best.sigma, "grid": _grid(best, wish.delta), "rounds": best.rounds,
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


def _grid(protocol: Rounds, delta: float) -> float:
    from netdp.families.gossip.account.grid import wire_grid

    return min(wire_grid(protocol, delta), 1.0)
