"""Tokens that walk from party to party at random (`netdp.WalkSum`, `netdp.GraphWalkSum`, `netdp.WalkHistogram`).

**What is promised.** A study that is run once, by all (attempts = 1, absent = 0), is accounted for with the secrecy of the path:
a connection shows who hands over the token (sender="known"), the last holder releases it under its name (release="named"), all
know the first holder, and nobody learns more of the path. If attempts may be repeated, or parties be away, the path is told
(docs/proofs/token.md#walk-absences): then nothing depends on what a broken attempt or a party that does not answer gives away of
it. On the complete graph (walk = "uniform") up to `absent` parties may be skipped at a step; those that are missing from the
roster count among them. On other graphs everybody must be there, because who is missing changes where all others meet the token.

**What it costs** is in the ledger before the first token leaves, for the whole attempt. A holder skips nobody while more parties
are missing than are paid for, and waits instead. So, if who is missing is as assumed, it can turn out to be more in one case only:
a study to be run once, by all, in which a party vanished. Who it was, and when, may tell of the path whose secrecy was counted;
then the loss is computed again with the path told (`recomputed`), entered in place of the other, and reported.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.errors import NetdpError, Unsupported
from netdp.families.token.account.absences import told_profile
from netdp.families.token.account.events import least as least_of
from netdp.families.token.account.graph_walk import most_visits
from netdp.families.token.account.walk import most_contributions
from netdp.families.token.peer_paths import PeerWalkLosses, walked_in
from netdp.families.token.peer_tokens import KEY, Route, TokenWalk, load_of
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.graphs.shape import vertex_transitive
from netdp.numerics.arrays import IntArray, rounded_up
from netdp.peers.kinds import COUNTS, Kind, Roster, Wish
from netdp.peers.ledger.losses import accounted, highest, profile_loss, together, worst_entry
from netdp.peers.messages import Item, ItemKind, roster_digest
from netdp.peers.noise import DIGITS, least_gamma, least_noise, power_of_two
from netdp.peers.promise import all_coalitions, stated
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.streams import context, noise_words
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import noise_for

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.spread import Spread
    from netdp.peers.study.training import AnyTask


WALKS = ("uniform", "metropolis", "simple")

_MOST_VISITS = 1_000_000

_PER_STEP = 0.25  # seconds that a step may take: how long a party waits for a token that has not come to it

_SHARE = 1e-3  # of ε that the grid may cost

_MOST_PAIRS = 600  # losses on a graph that every peer computes anew: some tenths of a second each

_CERTAIN = 1e-15  # chance of more visits than a party puts up with

Tokens = WalkSum | GraphWalkSum | WalkHistogram | WalkDescent


class WalkSettings(Strict):
    """What walks of sums and of histograms have in common."""

    kind: str
    steps: Whole
    tokens: Whole = 1
    walk: Literal["uniform", "metropolis", "simple"] = "uniform"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.tokens < 1:
            raise Misfit(("tokens",), f"must be 1 or more, got {self.tokens}")
        if not 1 <= self.steps * self.tokens <= _MOST_VISITS:
            raise Misfit(
                ("steps",),
                f"all tokens together must take 1 to {_MOST_VISITS:,} steps, got {self.steps * self.tokens:,}",
            )
        return self


class WalkSumSettings(WalkSettings):
    """Tokens that add up numbers."""

    kind: Literal["walk-sum"]
    sigma: Number
    grid: Number
    closing: Number = 0.0


class WalkHistogramSettings(WalkSettings):
    """Tokens that collect randomized answers."""

    kind: Literal["walk-histogram"]
    gamma: Number


class WalkRunning(Kind):
    """Tokens on a random walk over the parties."""

    options: ClassVar[tuple[str, ...]] = ("steps", "tokens")
    takes_periods = True
    sends = frozenset({ItemKind.OFFER, ItemKind.ACCEPT, ItemKind.TOKEN, ItemKind.TOTAL})
    tolerates = True
    comments: ClassVar = {
        "steps": "how many visits each token makes",
        "tokens": "how many walk at the same time",
        "walk": '"uniform": to any party, itself included; "metropolis", "simple": to a neighbour',
        "closing": "noise before the release, in units of sigma squared",
        "gamma": "the chance that an answer is random",
    }

    # ── the study ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        super().check()
        study, how = self.study, self.settings
        if how.steps < study.n:
            raise Misfit(("protocol", "steps"), f"{how.steps} are fewer than one visit to each of {study.n} parties")
        if (periods := study.task.values_each) > 1:
            if how.walk != "uniform":
                raise Misfit(
                    ("task", "periods"),
                    f'with walk = "{how.walk}" the error of values that change over time is not predicted; take walk = "uniform" '
                    "on the complete graph, or ring-sum",
                )
            if how.steps % periods:
                raise Misfit(
                    ("protocol", "steps"),
                    f"{how.steps} are not as many in each of {periods} periods; give a multiple of {periods}",
                )
        if how.walk == "uniform":
            for u in range(study.n):
                missing = sorted(set(range(study.n)) - {u} - set(study.neighbours(u)))
                if missing:
                    a, b = study.names[u], study.names[missing[0]]
                    raise Misfit(
                        ("network",),
                        f"a token may go from any party to any other, and {a} and {b} are no neighbours; take graph = "
                        f'"complete:{study.n}", or walk = "metropolis" along the links there are',
                    )
        elif study.privacy.absent:
            raise Misfit(
                ("privacy", "absent"),
                f'with walk = "{how.walk}" everybody must be there: who is missing changes where all others meet a token; give 0, '
                'or walk = "uniform" on the complete graph',
            )
        degrees = study.graph.degrees
        if how.walk == "simple" and degrees.min() < degrees.max():
            raise Misfit(
                ("protocol", "walk"),
                f'"simple" visits parties in proportion to their neighbours, here {degrees.min()} to {degrees.max()}, so some '
                'would count more than others in the answer; take "metropolis", which visits all alike',
            )
        try:
            self.protocol()
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None

    @property
    def how_words(self) -> str:
        periods = self.study.task.values_each
        if periods == 1:
            return self.how
        each = self.settings.steps // periods
        return f"{self.how} Of {periods} periods each has {each} steps of every token; a holder adds what it has of that period."

    @abstractmethod
    def _among(self, parties: int) -> Tokens:
        """The protocol among so many parties on the complete graph, or on the study's graph."""

    def protocol(self) -> Tokens:
        return self._among(self.study.n)

    def protocol_of(self, roster: Roster) -> Tokens:
        return self._among(len(roster))

    @property
    def is_strict(self) -> bool:
        """Whether it is run once, by all, so that the secrecy of the path counts."""
        return self.study.privacy.attempts == 1 and self.study.privacy.absent == 0

    @property
    def _room(self) -> float:
        """On a graph parties have different curves, and grids on which several attempts are added up differ a little."""
        return 1.0 if self._uniform or self.study.privacy.attempts == 1 else 0.998

    @property
    def _uniform(self) -> bool:
        return bool(self.settings.walk == "uniform")

    def _curve(self, parties: int, colluders: int, absent: int, *, told_only: bool = False) -> ProfileCurve:
        """δ(ε) of one attempt among so many parties on the complete graph, for any of them against any so many others."""
        protocol = self._among(parties)
        assert isinstance(protocol, WalkSum | WalkHistogram)
        together = min(colluders, parties - absent - 1)
        told = told_profile(protocol, together, absent)
        if told_only or not self.is_strict:
            return told
        secret = accounted(protocol, tuple(range(together))).curve
        found = secret.curves if isinstance(secret, SharedCurve) else secret
        assert isinstance(found, ProfileCurve)
        return least_of([told, _plain(found)])

    def promise(self, colluders: int) -> Guarantee:
        study = self.study
        if self._uniform:
            losses = [accounted(self.protocol(), tuple(range(colluders)))]
        else:
            losses = [loss for loss, _ in self._losses(colluders)]
        curve = SharedCurve(self._all_attempts(colluders), np.zeros(study.n, dtype=np.int64))
        loss = stated(losses, study.n, colluders, curve)
        return replace(loss, assumptions=(*loss.assumptions, *self._assumed()), names=None)

    def _all_attempts(self, colluders: int) -> Curve:
        """δ(ε) of all attempts, from tables as the ledger keeps them: a party's own sum is never more."""
        terms = self.study.privacy
        return together([self._table(self.study.n, colluders, terms.absent)] * terms.attempts)

    def _table(
        self, parties: int, colluders: int, absent: int, *, told_only: bool = False
    ) -> GaussianCurve | ProfileCurve:
        """One attempt against any so many, as an entry of the ledger keeps it."""
        if self._uniform:
            return worst_entry([self._curve(parties, colluders, absent, told_only=told_only)], 0)
        return highest(
            [
                worst_entry([loss.curve], u)
                for loss, who in self._losses(colluders)
                for u in range(parties)
                if u not in who
            ]
        )

    @property
    def _is_looked_at_one_by_one(self) -> bool:
        return not self._uniform and self.study.privacy.attempts == 1

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        if self._is_looked_at_one_by_one:
            return max(self._alone(members, delta) for members in self._telling(colluders))
        return float(self._all_attempts(colluders).epsilon(delta))

    def _losses(self, colluders: int) -> list[tuple[Guarantee, tuple[int, ...]]]:
        return [(accounted(self.protocol(), members), members) for members in self._telling(colluders)]

    def _alone(self, members: tuple[int, ...], delta: float) -> float:
        return accounted(self.protocol(), members).require_certified().worst_epsilon(delta)

    def _telling(self, colluders: int) -> Iterator[tuple[int, ...]]:
        """Coalitions on a graph one of which learns most: all, or one where all parties are alike."""
        n = self.study.n
        if colluders == 1 and vertex_transitive(self.study.graph):
            return iter([(0,)])
        if (pairs := math.comb(n, colluders) * (n - colluders)) > _MOST_PAIRS:
            raise Unsupported(
                f"on this graph {pairs:,} losses, of every party against any {colluders}, would have to be looked at one by one; "
                f"at most {_MOST_PAIRS} are. On the complete graph all are alike; masked-sum has no such limit"
            )
        return all_coalitions(n, colluders)

    def _assumed(self) -> tuple[str, ...]:
        terms = self.study.privacy
        said = [
            "the first holder follows from 32 bytes of every party and is known to all: nobody chose it, as long as all follow the "
            "protocol",
            "who is connected to whom and when, as seen on the network itself, is not covered: the promise is about what parties "
            "are told",
        ]
        if not self.is_strict:
            said.append(
                "whatever is said above of the secrecy of the path is not needed: every number is for a path that is told"
            )
        elif self._uniform:
            said.append(
                "everybody is there until all tokens are released: who vanishes, and when, could tell of the path, whose secrecy "
                "counts; what breaks off is entered with the path told"
            )
        if terms.absent:
            said.append(
                f"at every step, until the token has been passed on, at most {terms.absent} of the parties do not answer in all (a "
                "holder skips nobody while links to more are down, and waits rather than skip more); who they are may depend on "
                "where tokens have been, but not on anybody's data, nor on whom the holder asks"
            )
        if terms.attempts > 1:
            said.append(
                f"a token that vanishes does so whatever it holds; all {terms.attempts} attempts are counted in full"
            )
        return tuple(said)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        protocol = self.protocol_of(roster)
        assert not isinstance(protocol, WalkDescent)
        row = load_of(protocol).row(desk.rows)
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, row.astype("<i8").tobytes())
        drawn = words(2 * KEY // 8).astype("<u8").tobytes()
        return roster_digest(roster) + drawn[KEY:], drawn[:KEY] + row.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        study, protocol = self.study, self.protocol_of(roster)
        assert not isinstance(protocol, WalkDescent)
        load = load_of(protocol, study.task.reach)

        def row() -> tuple[bytes, IntArray]:
            written = desk.written(attempt)
            return written[:KEY], np.frombuffer(written[KEY:], dtype="<i8").astype(np.int64)

        allowance = max(0, study.privacy.absent - (study.n - len(roster)))
        patience = study.timing.patience
        return TokenWalk(
            load,
            Route(roster, None if self._uniform else study.graph, "metropolis" if self._uniform else self.settings.walk),
            attempt,
            desk.me,
            row,
            desk,
            allowance=allowance,
            wait=patience / 4,
            most=self._most_visits(protocol, roster, desk.me, allowance),
            lasts=_PER_STEP * self.settings.steps + (patience if allowance else 0.0),
            name=lambda u: study.names[u],
        )  # fmt: skip

    def _most_visits(self, protocol: Tokens, roster: Roster, me: int, allowance: int) -> int:
        """So many visits are more than chance brings but once in 10¹⁵ walks."""
        if not isinstance(protocol, WalkSum) and protocol.network is not None:
            if me not in roster:
                return 0
            return most_visits(protocol, roster.index(me), _CERTAIN)[0] * protocol.tokens
        assert not isinstance(protocol, GraphWalkSum)
        return most_contributions(protocol, _CERTAIN, 1.0 / (protocol.n - allowance))[0]

    def longest(self) -> dict[ItemKind, int]:
        token = 8 * self._width + 8
        common = {ItemKind.VOTE: 4 * self.study.n, ItemKind.CONTRIBUTION: 32 + KEY, ItemKind.FALLBACK: 0}
        return common | {ItemKind.TOTAL: token, ItemKind.TOKEN: token, ItemKind.OFFER: 0, ItemKind.ACCEPT: 0}

    def is_legible(self, item: Item) -> bool:
        if item.key.kind in (ItemKind.TOTAL, ItemKind.TOKEN):
            return len(item.body) == 8 * self._width + 8
        return len(item.body) == 32 + KEY if item.key.kind == ItemKind.CONTRIBUTION else True

    @property
    def _width(self) -> int:
        return self.study.task.dimension

    def most_releases(self) -> int:
        return int(self.settings.tokens)

    def most_rounds(self) -> int:
        return int(self.settings.tokens * self.settings.steps)

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def recomputed(self, attempt: int, roster: Roster, me: int, realised: Mapping[str, Any]) -> dict[str, Any] | None:
        """A walk that was to be run once, by all, and broke off: who vanished, and when, may tell of the path. So it is told."""
        left = realised.get("visits") or realised.get("unheard")  # an earlier life may have been visited
        if realised.get("released") or not left or not (self.is_strict and self._uniform):
            return None
        return self._loss(roster, me, told_only=True)

    def looked_back(self, outcomes: Mapping[str, Mapping[str, Any]]) -> PeerWalkLosses | None:
        return walked_in(self.study, outcomes)

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        """Against each other party alone as against the worst of them: who is met where is not told apart."""
        return self._loss(roster, me)

    def _loss(self, roster: Roster, me: int, *, told_only: bool = False) -> dict[str, Any]:
        study, parties = self.study, len(roster)
        names = tuple(study.names[u] for u in roster)
        allowance = max(0, study.privacy.absent - (study.n - parties))
        one = self._table(parties, 1, allowance, told_only=told_only)
        sizes = {
            k: self._table(parties, k, allowance, told_only=told_only) for k in range(2, study.privacy.colluders + 1)
        }
        if self._uniform:
            everybody = self._table(parties, parties - 1, allowance, told_only=told_only)
        else:
            others = tuple(place for place, u in enumerate(roster) if u != me)
            everybody = worst_entry([accounted(self.protocol_of(roster), others).curve], roster.index(me))
        return profile_loss({name: one for u, name in zip(roster, names, strict=True) if u != me}, everybody, sizes)


class WalkSumRunning(WalkRunning):
    """Tokens that walk at random and add up numbers with noise."""

    kind = "walk-sum"
    Settings = WalkSumSettings
    how = (
        "Tokens walk from party to party; whoever holds one adds its numbers with fresh noise, then hands it to a party that it "
        "draws in secret. A party sees what a token holds when it comes, from whom it comes and to whom it goes. After its last "
        "step a token is published."
    )

    def _among(self, parties: int) -> WalkSum | GraphWalkSum:
        how, task = self.settings, self.study.task
        if how.walk == "uniform":
            if how.closing:
                raise Misfit(("protocol", "closing"), 'belongs to walks on a graph; with walk = "uniform" give 0')
            return WalkSum(
                parties, how.steps, sigma=how.sigma, tokens=how.tokens, sensitivity=task.sensitivity, grid=how.grid,
                dimension=task.dimension,
            )  # fmt: skip
        return GraphWalkSum(
            self.study.graph, how.steps, sigma=how.sigma, walk=how.walk, tokens=how.tokens, closing=how.closing,
            sensitivity=task.sensitivity, grid=how.grid, dimension=task.dimension,
        )  # fmt: skip

    def noise(self, parties: int) -> float:
        return parties * expected_error(self.protocol()).rmse / math.sqrt(self.study.task.dimension)

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        how = _walk_of(wish)
        visits = how["steps"] * how["tokens"] / wish.graph.n * wish.attempts
        sigma = rounded_up(noise_for(wish.task.sensitivity * math.sqrt(visits), wish.epsilon, wish.delta), DIGITS)
        closing = 0.0 if how["walk"] == "uniform" else float(wish.graph.n)
        numbers = how["steps"] * how["tokens"] * wish.task.dimension
        grid = grid_for_walk(sigma, numbers, closing, wish.task, wish.epsilon)
        return {"kind": cls.kind, "sigma": sigma, "grid": grid, **how, "closing": closing}

    def least(self) -> dict[str, Any]:
        study, terms, how = self.study, self.study.privacy, self.settings
        numbers = how.steps * how.tokens * study.task.dimension

        def stated(sigma: float) -> dict[str, Any]:
            grid = grid_for_walk(sigma, numbers, how.closing, study.task, terms.epsilon)
            return dict(how.model_dump(mode="json")) | {"sigma": sigma, "grid": grid}

        worst: list[tuple[int, ...]] = []  # who learned too much the last time: looked at first

        def meets(sigma: float) -> bool:
            one: Any = self.with_settings(stated(sigma))
            limit = terms.epsilon * self._room
            if not self._is_looked_at_one_by_one:
                return bool(one.worst_epsilon(terms.colluders, terms.delta) <= limit)
            rest = (members for members in one._telling(terms.colluders) if members not in worst)
            looked = [*filter(None, worst), *rest]
            worst[:] = [next((members for members in looked if one._alone(members, terms.delta) > limit), ())]
            return worst == [()]

        def roughly(sigma: float) -> bool:
            one: Any = self.with_settings(stated(sigma))
            curve = one._curve(study.n, terms.colluders, terms.absent, told_only=True)
            return bool(curve.epsilon(terms.delta) <= terms.epsilon)

        # the path told is quickly computed, and nearly as good as its secrecy
        guess = how.sigma / 2
        if self._uniform:
            guess = least_noise(roughly, guess) * math.sqrt(terms.attempts)
        return stated(least_noise(meets, guess))


class WalkHistogramRunning(WalkRunning):
    """Tokens that walk at random and collect randomized answers."""

    kind = "walk-histogram"
    Settings = WalkHistogramSettings
    tasks = COUNTS
    how = (
        "Tokens walk from party to party; whoever holds one adds an answer to its counts, its own cell or, by a coin, any cell at "
        "random, then hands it to a party that it draws in secret. A party sees the counts when a token comes, from whom it comes "
        "and to whom it goes. After its last step a token is published."
    )

    def _among(self, parties: int) -> WalkHistogram:
        how = self.settings
        users: Any = parties if how.walk == "uniform" else self.study.graph
        walk = "metropolis" if how.walk == "uniform" else how.walk
        return WalkHistogram(
            users, how.steps, domain=self.study.task.dimension, gamma=how.gamma, tokens=how.tokens, walk=walk
        )

    @property
    def noise_words(self) -> str:
        return f"gamma = {self.settings.gamma:g}"

    def noise(self, parties: int) -> float:
        """Of one cell: of the coins, and of who was visited."""
        how, cells = self.settings, self.study.task.dimension
        own, other = 1 - how.gamma + how.gamma / cells, how.gamma / cells
        coins = 1 - own**2 - (cells - 1) * other**2
        drawn = (1 - how.gamma) ** 2 * (1 - 1 / cells)
        return float(parties * math.sqrt((coins + drawn) / cells / (how.steps * how.tokens)) / (1 - how.gamma))

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        return {"kind": cls.kind, "gamma": 0.5, **_walk_of(wish)}

    def least(self) -> dict[str, Any]:
        terms = self.study.privacy

        def stated(gamma: float) -> dict[str, Any]:
            return dict(self.settings.model_dump(mode="json")) | {"gamma": gamma}

        def meets(gamma: float) -> bool:
            found = self.with_settings(stated(gamma)).worst_epsilon(terms.colluders, terms.delta)
            return found <= terms.epsilon * self._room

        return stated(least_gamma(meets))


def _walk_of(wish: Wish) -> dict[str, Any]:
    """Steps, tokens and the kind of walk that a wish asks for."""
    n = wish.graph.n
    periods = wish.task.values_each
    steps, tokens = wish.options.get("steps", math.ceil(10 * n / periods) * periods), wish.options.get("tokens", 1)
    for name, value in (("steps", steps), ("tokens", tokens)):  # before a grid is made of them
        if value < 1:
            raise Misfit(("protocol", name), f"must be 1 or more, got {value}")
    complete = wish.graph.edges().shape[0] == n * (n - 1) // 2
    return {"steps": steps, "tokens": tokens, "walk": "uniform" if complete else "metropolis"}


def grid_for_walk(sigma: float, numbers: int, closing: float, task: AnyTask, epsilon: float) -> float:
    """Fine enough that whole numbers cost a thousandth of ε, and rounding adds a thousandth to Δ, if the sampler allows it."""
    reach = math.sqrt(numbers) + 16
    enough = math.sqrt(3 * reach**2 / (24 * _SHARE * epsilon))  # steps in σ
    finest = sigma * math.sqrt(max(closing, 1.0)) / 2**19.5  # of which the sampler draws 2²⁰ at most
    wanted = min(sigma / enough, task.sensitivity / (1024 * math.sqrt(task.dimension)))
    return min(2 * power_of_two(finest) if power_of_two(wanted) < finest else power_of_two(wanted), 1.0)


def _plain(curve: Any) -> ProfileCurve:
    """One table for everybody: the largest of all, at the points of all."""
    if isinstance(curve, SharedCurve):
        return _plain(curve.curves)
    assert isinstance(curve, ProfileCurve)
    if not curve.shape:
        return curve
    deltas = np.nanmax(curve.deltas.reshape(-1, curve.deltas.shape[-1]), axis=0)
    return ProfileCurve(curve.epsilons, np.minimum.accumulate(deltas))
