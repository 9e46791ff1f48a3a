"""A token goes round: everybody adds what it has drawn beforehand, the last one releases the total.

A party's contributions to all rounds are drawn and written down together before the token first comes. So a token that
is lost with a party comes back from the party before it, and what is added to it is the same once more.

The ring goes round the roster: if somebody is missing from it, the party before passes the token to the one after.

A token that goes round the parties in their order (`netdp.RingSum` on a grid).

**What a ring promises.** By default its noise is distributed: every party adds a share σ/√n, the first and (before the
release) the last one σ. A single party sees the token once and the answer: a sum over those before it, which holds the
first one's σ, and a sum over those after it, which holds the closing σ. Two neighbours of a party that collude see what
it added, with its own share σ/√n only: to plan for two colluders multiplies the noise by about √n. A masked sum does not
have that weakness.

Counts that go round the parties in their order (`netdp.RingHistogram`).

The first party starts the token with random elements; everybody adds an answer per round, its own cell or, by a coin, any cell;
the last one adds random elements again and releases the counts. If parties may be missing (absent > 0), the ring closes over
them: then the network needs the links past them, and the promise is the worst over all sizes of the ring.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import RingHistogram, RingSum, ring_add, ring_contributions, ring_draw, ring_mean
from netdp.families.token.steps import is_heap, ring_answers, shares
from netdp.families.token.views import TokenTranscript
from netdp.numerics.arrays import FloatArray, IntArray, rounded_up
from netdp.peers.events import Sentence
from netdp.peers.kinds import COUNTS, DEVIATIONS, Kind, Roster, Wish
from netdp.peers.ledger.losses import accounted, highest, profile_loss, together, worst_entry
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_gamma, least_noise, power_of_two
from netdp.peers.promise import all_coalitions, stated, worst_coalition, worst_epsilon
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import context, noise_words
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.calibration import noise_for

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import AnyTask
    from netdp.protocols.views import Transcript


class Ring(Spread):
    """The sum of a `RingSum` on a grid, or the counts of a `RingHistogram`, of as many users as the roster has members.

    `drawn()` gives the party's contributions, (rounds, d), once they are durable.
    """

    needs_all = False
    keeps_last_token = True

    def __init__(
        self,
        protocol: RingSum | RingHistogram,
        attempt: int,
        roster: tuple[int, ...],
        me: int,
        drawn: Callable[[], IntArray],
    ) -> None:
        super().__init__(attempt, roster)
        self._protocol, self._me, self._drawn = protocol, me, drawn
        self._place = roster.index(me) if me in roster else -1  # on the ring; a party outside only reads the total
        self._width = protocol.dimension if isinstance(protocol, RingSum) else protocol.domain
        self.rounds = protocol.n * protocol.rounds
        self._contributions: IntArray | None = None
        self._last = -1  # the hop that was ours most recently
        self._refused: set[bytes] = set()

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        n = self._protocol.n
        released = held.get(Key(ItemKind.TOTAL, self.attempt, self.roster[-1]))
        if released is not None and self._reads(released.body, self.rounds or 0, moves):
            total = self._total(np.frombuffer(released.body, dtype="<i8"))
            self.answer = SpreadResult(self.attempt, self.roster, total, hashlib.sha256(released.body).digest())
            return moves
        arrived = self._arrived(held, moves) if self._place >= 0 else None
        if arrived is None:
            return moves
        hop, token = arrived
        if self._contributions is None:
            self._contributions = self._drawn()
        try:
            token = ring_add(token, self._contributions[hop // n])
        except InvalidValue as problem:
            moves.notes.append(Sentence.BAD_HOP(hop=hop - 1, problem=str(problem)))
            self._refused.add(token.astype("<i8").tobytes())
            return moves
        self._last = hop
        body = token.astype("<i8", copy=False).tobytes()
        if hop == n * self._protocol.rounds - 1:
            moves.published.append((Key(ItemKind.TOTAL, self.attempt, self._me), body))
        else:
            after = self.roster[(self._place + 1) % n]
            moves.addressed.append((after, Item(Key(ItemKind.TOKEN, self.attempt, self._me, hop), body)))
        return moves

    def _total(self, token: IntArray) -> FloatArray:
        """What the released token says of the sum over the roster."""
        protocol = self._protocol
        mean = ring_mean(protocol, token) if isinstance(protocol, RingSum) else shares(protocol, token)
        return np.asarray(protocol.n * mean)

    def _reads(self, body: bytes, hops: int, moves: Moves) -> bool:
        """Whether these can be the numbers of a token after so many hops; says once if they cannot."""
        if len(body) != 8 * self._width or body in self._refused:
            return False
        protocol = self._protocol
        if isinstance(protocol, RingSum):
            return True
        elements = hops + protocol.blanket + (protocol.closing_blanket if hops == self.rounds else 0)
        if is_heap(protocol, np.frombuffer(body, dtype="<i8"), elements):
            return True
        self._refused.add(body)
        moves.notes.append(Sentence.NO_HEAP(hops=hops, answers=elements))
        return False

    def _arrived(self, held: Mapping[Key, Item], moves: Moves) -> tuple[int, IntArray] | None:
        """The token that came to us and has not been handled: (our hop, what it holds)."""
        n = self._protocol.n
        before = self.roster[(self._place - 1) % n]
        if self._last < 0:  # we may have been here before and forgotten it: any hop that is ours
            hops = [key.index + 1 for key in held if key[:3] == (ItemKind.TOKEN, self.attempt, before)]
            hop = max((hop for hop in hops if hop % n == self._place), default=-1)
        else:
            hop = self._last + n
        item = held.get(Key(ItemKind.TOKEN, self.attempt, before, hop - 1)) if hop >= 0 else None
        if item is not None and self._reads(item.body, hop, moves):
            return hop, np.frombuffer(item.body, dtype="<i8")
        return (0, np.zeros(self._width, dtype=np.int64)) if self._place == 0 and self._last < 0 else None


_MOST_ROUNDS = 10_000


def check_rounds(rounds: int) -> None:
    """Refuse a token that never goes round, or for ever."""
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {rounds}")


def wished_rounds(wish: Wish) -> int:
    """How often the token is to go round: once per period, unless it is told."""
    return int(wish.options.get("rounds", wish.task.values_each))


def check_periods(study: Study) -> None:
    """Refuse a token that does not go round once per period."""
    periods, rounds = study.task.values_each, study.settings.rounds
    if periods not in (1, rounds):
        raise Misfit(
            ("protocol", "rounds"), f"is {rounds} and there are {periods} periods; the token goes round once for each"
        )


def rounds_words(study: Study) -> str:
    """How often the token goes round, in words, with a space before them; nothing where it does so once."""
    rounds = study.settings.rounds
    if rounds == 1:
        return ""
    what = "its value of that period" if study.task.values_each > 1 else "the same value with fresh randomness"
    return f" The token goes round {rounds} times, and each party adds {what} every time; one total is released in the end."


class RingSettings(Strict):
    """A token that goes round the parties in their order (`netdp.RingSum`)."""

    kind: Literal["ring-sum"]
    sigma: Number
    grid: Number
    noise: Literal["distributed", "single"] = "distributed"
    closing: Number = 1.0
    rounds: Whole = 1
    law: Literal["gaussian", "laplace"] = "gaussian"

    @model_serializer(mode="wrap")
    def _without_what_is_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The law is left out where noise is Gaussian: such a study is hashed as before there was another."""
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if name != "law" or value != "gaussian"}

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        check_rounds(self.rounds)
        return self


class RingRunning(Kind):
    """A running total that everybody adds to, in the order of the list."""

    kind = "ring-sum"
    Settings = RingSettings
    sends = frozenset({ItemKind.TOKEN, ItemKind.TOTAL})
    releases_the_answer = True
    options = ("rounds", "law")
    takes_periods = True
    canaries = "party"
    comments: ClassVar = {
        "noise": '"distributed": every party adds a share',
        "closing": "noise before the release, in units of sigma squared",
        "rounds": "how often the token goes round",
        "law": "of the noise",
    }
    how = (
        "A running total goes round the parties, in the order of the list; each adds its numbers with its "
        "share of noise and sees the total so far. Two neighbours of a party that collude see what it added with its own "
        "share of noise only."
    )

    def check(self) -> None:
        super().check()
        check_periods(self.study)
        check_ring_edges(self.study)

    @property
    def how_words(self) -> str:
        return self.how + rounds_words(self.study)

    def protocol(self) -> RingSum:
        how, task = self.settings, self.study.task
        return RingSum(
            self.study.n, rounds=how.rounds, sigma=how.sigma, noise=how.noise, closing=how.closing, grid=how.grid,
            sensitivity=task.sensitivity_under(how.law), dimension=task.dimension, law=how.law,
        )  # fmt: skip

    def noise(self, parties: int) -> float:
        protocol = self.protocol()
        return math.hypot(*protocol.hop_noise.tolist(), protocol.closing_noise) / protocol.rounds

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())

        protocol, values = self.protocol(), desk.rows if len(desk.rows) > 1 else desk.rows[0]
        added = ring_contributions(protocol, desk.me, values, ring_draw(protocol, words))
        return roster_digest(roster), added.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol()

        def drawn() -> IntArray:
            return np.frombuffer(desk.written(attempt), dtype="<i8").astype(np.int64).reshape(-1, protocol.dimension)

        return Ring(protocol, attempt, roster, desk.me, drawn)

    @cached_property
    def furthest(self) -> float:
        """n·rounds clipped values, and all noise; Laplace noise has longer tails, its sums too: e^−1000 beyond 25 times as far."""
        protocol = self.protocol()
        noise = math.hypot(*protocol.hop_noise.tolist(), protocol.closing_noise)
        noise *= 25.0 if protocol.law == "laplace" else 1.0
        return protocol.n * protocol.rounds * (1 / protocol.step + 1) + DEVIATIONS * noise / protocol.step

    def most_rounds(self) -> int:
        protocol = self.protocol()
        return protocol.n * protocol.rounds

    def transcript(self, sent: Transcript) -> TokenTranscript:
        hops = [sent.messages(t)[0].tolist() for t in range(sent.rounds)]
        path = [*(u for u, _ in hops), hops[-1][1]] if hops else [0]
        return TokenTranscript(self.study.n, (np.array(path),))

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        law, rounds = wish.options.get("law", "gaussian"), wished_rounds(wish)
        sigma = rounded_up(_first_guess(wish.task, wish.epsilon, wish.delta, law, rounds), DIGITS)
        grid = ring_grid(sigma, wish.graph.n, wish.task, law)
        found = {"kind": cls.kind, "sigma": sigma, "grid": grid, "rounds": rounds}
        return found | ({"law": law} if law != "gaussian" else {})

    def least(self) -> dict[str, Any]:
        study, terms = self.study, self.study.privacy

        def stated(sigma: float) -> dict[str, Any]:
            grid = ring_grid(sigma, study.n, study.task, self.settings.law)
            return dict(self.settings.model_dump(mode="json")) | {"sigma": sigma, "grid": grid}

        def with_noise(sigma: float) -> RingSum:
            protocol = self.with_settings(stated(sigma)).protocol()
            assert isinstance(protocol, RingSum)
            return protocol

        guess = _first_guess(study.task, terms.epsilon, terms.delta, self.settings.law, self.settings.rounds)
        # most coalitions learn less than one of them: the noise that it asks for is where to look
        members = worst_coalition(with_noise(guess), terms.colluders)

        def nearly(sigma: float) -> bool:
            return accounted(with_noise(sigma), members).worst_epsilon(terms.delta) <= terms.epsilon

        guess = least_noise(nearly, guess)

        def meets(sigma: float) -> bool:
            return worst_epsilon(with_noise(sigma), terms.colluders, terms.delta) <= terms.epsilon

        return stated(least_noise(meets, guess))


def check_ring_edges(study: Study) -> None:
    """Refuse a network in which a party is not linked to the next of the list."""
    for u in range(study.n - (study.settings.rounds == 1)):
        v = (u + 1) % study.n
        if not study.graph.has_edge(u, v):
            a, b = study.names[u], study.names[v]
            raise Misfit(("network",), f"the token goes from {a} to {b}, which are no neighbours; add that edge")


def _first_guess(task: AnyTask, epsilon: float, delta: float, law: str, rounds: int) -> float:
    """About the noise of one hop against a single party: under Laplace noise what costs so much in all rounds at δ = 0."""
    if law == "laplace":
        return math.sqrt(2) * rounds * task.sensitivity_under(law) / epsilon
    return noise_for(task.sensitivity, epsilon, delta)


def ring_grid(sigma: float, n: int, task: AnyTask, law: str = "gaussian") -> float:
    """Fine enough that a share of σ/√n has 16 steps, and rounding adds a thousandth to Δ at most.

    Of Laplace noise σ has 512 steps, and not many more where Δ allows it: what fewer shares than one noise hide is computed step by
    step, up to some thousands.
    """
    if law == "laplace":
        return min(power_of_two(min(sigma / 512, task.sensitivity_under(law) / (256 * task.dimension))), 1.0)
    finest = min(sigma / (16 * math.sqrt(n)), task.sensitivity / (1024 * math.sqrt(task.dimension)))
    return min(power_of_two(finest), 1.0)


_FEW = 30  # coalitions that are looked at for the sake of an explanation alone

_Loss = tuple[Guarantee, int, tuple[int, ...]]


class RingHistogramSettings(Strict):
    """A token that goes round the parties in their order and counts (`netdp.RingHistogram`)."""

    kind: Literal["ring-histogram"]
    gamma: Number
    closing: Number = 1.0
    rounds: Whole = 1

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        check_rounds(self.rounds)
        return self


class RingHistogramRunning(Kind):
    """Counts that everybody adds a randomized answer to, in the order of the list."""

    kind = "ring-histogram"
    Settings = RingHistogramSettings
    sends = frozenset({ItemKind.TOKEN, ItemKind.TOTAL})
    releases_the_answer = True
    options = ("rounds",)
    takes_periods = True
    tasks = COUNTS
    tolerates = True
    depends_on_place = True
    comments: ClassVar = {
        "gamma": "the chance that an answer is random",
        "closing": "random elements before the release, in units of gamma times the parties",
        "rounds": "how often the token goes round",
    }
    how = (
        "Counts go round the parties, in the order of the list; each adds an answer, its own cell or, by a coin, any cell at "
        "random, and sees the counts so far. The first and the last party add random elements. Two neighbours of a party that "
        "collude see its answer by itself."
    )

    def check(self) -> None:
        super().check()
        study, most = self.study, self.study.privacy.absent
        around = self.settings.rounds > 1
        check_periods(study)
        if study.smallest_roster < 3:
            raise Misfit(("privacy", "absent"), f"leaves {study.smallest_roster} parties; a ring needs 3")
        for u in range(study.n):
            for ahead in range(1, 2 + most):
                v = u + ahead
                if v >= study.n and not around:
                    continue
                if v % study.n != u and not study.graph.has_edge(u, v % study.n):
                    a, b = study.names[u], study.names[v % study.n]
                    why = "" if ahead == 1 else f" if {ahead - 1} in between are missing"
                    raise Misfit(
                        ("network",), f"the token goes from {a} to {b}{why}, which are no neighbours; add that edge"
                    )

    @property
    def how_words(self) -> str:
        return self.how + rounds_words(self.study)

    def protocol(self) -> RingHistogram:
        return self._among(self.study.n)

    def protocol_of(self, roster: Roster) -> RingHistogram:
        return self._among(len(roster))

    def _among(self, parties: int) -> RingHistogram:
        how = self.settings
        return RingHistogram(
            parties, how.rounds, domain=self.study.task.dimension, gamma=how.gamma, closing=how.closing
        )

    @cached_property
    def _sizes(self) -> list[RingHistogram]:
        """The ring of every size that a roster may have."""
        return [self._among(parties) for parties in range(self.study.smallest_roster, self.study.n + 1)]

    def promise(self, colluders: int) -> Guarantee:
        losses = [loss for loss, _, _ in self._losses(colluders)]
        curve = SharedCurve(self._all_attempts(colluders), np.zeros(self.study.n, dtype=np.int64))
        loss = stated(losses, self.study.n, colluders, curve)
        if (attempts := self.study.privacy.attempts) == 1:
            return loss
        said = f"a token that vanishes does so whatever it holds; all {attempts} attempts are counted in full"
        return replace(loss, assumptions=(*loss.assumptions, said))

    def _losses(self, colluders: int, sizes: Sequence[RingHistogram] | None = None) -> list[_Loss]:
        """What the coalitions learn that learn most, of which one always does: on a ring single users 1 and n − 2
        (`netdp.families.token.calibration`); of more, all are looked at."""
        found: list[_Loss] = []
        rings = self._sizes if sizes is None else sizes
        if (
            colluders not in (1, self.study.privacy.colluders)
            and math.comb(self.study.n, colluders) * len(rings) > _FEW
        ):
            raise Unsupported(
                f"what any {colluders} learn takes minutes to compute and is not what the study plans for"
            )
        for ring in rings:
            who = [(1,), (ring.n - 2,)] if colluders == 1 else all_coalitions(ring.n, colluders)
            found += [(accounted(ring, members), ring.n, members) for members in who]
        return found

    def _table(self, losses: Sequence[_Loss]) -> GaussianCurve | ProfileCurve:
        """One attempt, as an entry of the ledger keeps it: the worst of these about anybody."""
        return highest([worst_entry([loss.curve], u) for loss, n, who in losses for u in range(n) if u not in who])

    def _all_attempts(self, colluders: int) -> Curve:
        """δ(ε) of all attempts, from tables as the ledger keeps them."""
        return together([self._table(self._losses(colluders))] * self.study.privacy.attempts)

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        return float(self._all_attempts(colluders).epsilon(delta))

    @property
    def noise_words(self) -> str:
        return f"gamma = {self.settings.gamma:g}"

    def noise(self, parties: int) -> float:
        """Of the coins and the random elements, in one cell."""
        how, cells, ring = self.settings, self.study.task.dimension, self._among(parties)
        own, other = 1 - how.gamma + how.gamma / cells, how.gamma / cells
        coins = ring.rounds * parties * (1 - own**2 - (cells - 1) * other**2)
        elements = (ring.blanket + ring.closing_blanket) * (1 - 1 / cells)
        return float(math.sqrt((coins + elements) / cells) / (1 - how.gamma) / ring.rounds)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        protocol = self.protocol_of(roster)
        where = context(self.study.hash, attempt, roster)
        words = noise_words(desk.identity.noise_secret, where, desk.rows.astype("<f8").tobytes())
        labels = np.broadcast_to(np.argmax(desk.rows, axis=1), protocol.rounds).tolist()  # one, or one per period
        added = ring_answers(protocol, roster.index(desk.me), labels, words)
        return roster_digest(roster), added.astype("<i8").tobytes()

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        protocol = self.protocol_of(roster)

        def drawn() -> IntArray:
            return np.frombuffer(desk.written(attempt), dtype="<i8").astype(np.int64).reshape(-1, protocol.domain)

        return Ring(protocol, attempt, roster, desk.me, drawn)

    def most_rounds(self) -> int:
        return int(self.study.n * self.settings.rounds)

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        """Against each other party alone as against the worst of them."""
        study, ring = self.study, self.protocol_of(roster)
        one, *more = (
            self._table(self._losses(k, [ring])) for k in range(1, min(study.privacy.colluders, ring.n - 1) + 1)
        )
        others = tuple(place for place, u in enumerate(roster) if u != me)
        everybody = worst_entry([accounted(ring, others).curve], roster.index(me))
        single = {study.names[u]: one for u in roster if u != me}
        return profile_loss(single, everybody, dict(enumerate(more, start=2)))

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        return {"kind": cls.kind, "gamma": 0.5, "rounds": wished_rounds(wish)}

    def least(self) -> dict[str, Any]:
        terms = self.study.privacy

        def stated(gamma: float) -> dict[str, Any]:
            return dict(self.settings.model_dump(mode="json")) | {"gamma": gamma}

        def meets(gamma: float) -> bool:
            found = self.with_settings(stated(gamma)).worst_epsilon(terms.colluders, terms.delta)
            # rosters have different curves, and grids on which several attempts are added up differ a little
            return found <= terms.epsilon * (1.0 if terms.attempts == 1 else 0.998)

        return stated(least_gamma(meets))
