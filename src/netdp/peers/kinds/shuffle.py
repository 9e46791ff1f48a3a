"""Network shuffling with a curator (`netdp.Shuffle`, `netdp.RelayedShuffle`): sealed reports that hop before they are read.

What it promises to whom: `shuffle_losses`. What a party and the curator do: `netdp.peers.spreads.shuffle` and `curator`.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from netdp.accounting.shuffle.hiding import report_alone
from netdp.accounting.shuffle.mixing import fewest_rounds_for
from netdp.accounting.shuffle.relay import overflows
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs import Graph
from netdp.numerics.rounding import rounded_down
from netdp.privacy import SharedCurve
from netdp.protocols import Shuffle

from ..hops import check_laziness, unpacked
from ..ledger.losses import profile_loss
from ..messages import Item, Kind, roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..reports import Reports, Total, expected_empty, longest_cuts, take_cuts
from ..sealed import seal
from ..spreads.curator import Curator, Server
from ..spreads.shuffle import DirectWalk, Listening, RelayedWalk, Walk
from ..streams import context, noise_words
from .base import Desk, Roster, Wish
from .promised import for_everybody
from .shuffle_losses import ShuffleLosses

if TYPE_CHECKING:
    from ..ledger.store import Contribution
    from ..spreads.base import Spread
    from ..study import Study

_MOST_ROUNDS = 10_000
_MOST_COVER = 64
_CROWD = 0.99  # hops are planned until everybody hides among this share of the others
_LARGEST = 20.0
_DIGITS = 4
_STEPS = 2.0**-19


class ShuffleSettings(Strict):
    """Reports with a local loss of ε₀ that hop through the network, sealed, before the curator gets them."""

    kind: Literal["shuffle"]
    epsilon0: Number
    rounds: Whole
    reporting: Literal["all", "single"] = "all"
    laziness: Number = 0.0
    cover: Whole = 0
    grid: Number = _STEPS

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise Misfit(("rounds",), f"must be 1 to {_MOST_ROUNDS:,}, got {self.rounds}")
        if not 0 < self.epsilon0 <= _LARGEST:
            raise Misfit(("epsilon0",), f"must be more than 0 and at most {_LARGEST:g}, got {self.epsilon0!r}")
        if not 0 <= self.cover <= _MOST_COVER:
            raise Misfit(("cover",), f"must be 0 (direct links) to {_MOST_COVER}, got {self.cover}")
        if math.frexp(self.grid)[0] != 0.5 or not 2.0**-40 <= self.grid <= 1:
            raise Misfit(("grid",), f"must be a power of two from 2^-40 to 1, got {self.grid!r}")
        try:
            check_laziness(self.laziness)
        except InvalidValue as problem:
            raise Misfit(("laziness",), str(problem)) from None
        return self


class ShuffleRunning(ShuffleLosses):
    """Sealed reports that hop from party to party before the curator opens them."""

    kind = "shuffle"
    Settings = ShuffleSettings
    options = ("rounds", "reporting", "laziness", "cover")
    comments: ClassVar = {
        "epsilon0": "what one report says at most, to anybody, whatever the others do",
        "rounds": "hops of every report",
        "reporting": '"all": hand over all reports held; "single": one, or a dummy',
        "laziness": "a report stays where it is for a round with this chance",
        "cover": "0: direct links; else through the curator's server, so many places a link",
    }
    how = (
        "Each party randomizes its value and seals this report so that only the curator can open it. The reports then hop from "
        "party to party, each by draws of its own, and are handed to the curator in the end: it reads them, but sees only who "
        "handed them over, not whose they are. Few parties hide each other little."
    )
    told = (
        "{curator} learns the reports without their origins, and tells everybody the answer: all {n} parties, and whoever "
        "they tell."
    )
    tasks = ("sum", "mean", "histogram", "table")
    tolerates = True
    least_colluders = 0
    has_curator = True

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._walks: dict[Roster, Walk] = {}

    def check(self) -> None:
        super().check()
        if self.settings.reporting == "single" and self.study.smallest_roster < 4:
            raise Misfit(("protocol", "reporting"), "single reports need four parties or more")
        for roster in self.rosters():
            try:
                self.protocol_of(roster)
            except NetdpError as problem:
                away = sorted(set(range(self.study.n)) - set(roster))
                if not away:
                    raise Misfit(("protocol",), str(problem)) from None
                names = ", ".join(self.study.names[u] for u in away)
                raise Misfit(("privacy", "absent"), f"without {names} the others cannot shuffle: {problem}") from None

    @property
    def noise_words(self) -> str:
        return f"epsilon0 = {self.settings.epsilon0:g}"

    def reports(self) -> Reports:
        """What a report is."""
        return Reports(self.study.task, self.settings.epsilon0, self.settings.grid)

    def noise(self, parties: int) -> float:
        error = math.sqrt(self.reports().mechanism.squared_error(parties) / self.study.task.dimension)
        dummies = expected_empty(self.study.graph, range(self.study.n)) if self.settings.reporting == "single" else 0.0
        return parties * error * self.study.n / (self.study.n - dummies)

    def neighbours(self, u: int) -> tuple[int, ...]:
        n = self.study.n
        if u == n:
            return tuple(range(n))
        return (n,) if self.settings.cover else (*super().neighbours(u), n)

    # ── one participant ───────────────────────────────────────────────────────────────────────────────────────────────

    def walk(self, roster: Roster | None = None) -> Walk:
        """What everybody knows of it, among all parties unless told otherwise."""
        members = tuple(range(self.study.n)) if roster is None else roster
        if members not in self._walks:
            how, patience = self.settings, self.study.timing.patience
            self._walks[members] = Walk(
                self.graph_of(members), members, self.study.n, how.rounds, self.reports(), patience, how.reporting,
                how.laziness, how.cover,
            )  # fmt: skip
        return self._walks[members]

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        where, secret = context(self.study.hash, attempt, roster), desk.identity.noise_secret
        reports, curator = self.reports(), desk.cards[self.study.n]
        own = reports.of(desk.rows[0], noise_words(secret, where, desk.rows.astype("<f8").tobytes()))
        key = noise_words(secret, b"hops" + where, b"")(4).astype("<u8").tobytes()
        dummy = reports.dummy(noise_words(secret, b"dummy" + where, b""))
        sealed = [seal(curator, text, self.study.hash, attempt, roster) for text in (own, dummy)]
        # what is published says nothing about the report: else whoever meets it would know whose it is
        return roster_digest(roster), b"".join([key, *sealed, self._mark(desk, where)])

    def _mark(self, desk: Desk, where: bytes) -> bytes:
        """A mark of the data, kept with what was drawn: sealing gives other bytes every time, and hides them from us too."""
        rows = desk.rows.astype("<f8").tobytes()
        return hmac.digest(desk.identity.noise_secret, b"netdp data 1" + where + rows, "sha256")

    def is_same_data(self, desk: Desk, attempt: int, roster: Roster, held: Contribution) -> bool:
        mark = self._mark(desk, context(self.study.hash, attempt, roster))
        return not held.secret or hmac.compare_digest(held.secret[-len(mark) :], mark)

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        walk = self.walk(roster)
        if desk.me == self.study.n:
            return (Server if self.settings.cover else Curator)(walk, attempt, roster, desk)
        if desk.me not in roster:
            return Listening(walk, attempt, roster, desk)
        return (RelayedWalk if self.settings.cover else DirectWalk)(walk, attempt, roster, desk)

    def longest(self) -> dict[Kind, int]:
        study, size = self.study, self.reports().size
        links, widest = study.graph.m, int(np.max(study.graph.degrees))
        bundle = longest_cuts(links) + size * study.n
        if self.settings.cover:
            bundle = max(bundle, widest * (1 + self.walk().envelope))
        return {
            Kind.VOTE: 4 * study.n, Kind.CONTRIBUTION: 32, Kind.FALLBACK: 0, Kind.BUNDLE: bundle,
            Kind.TOTAL: Total.longest(links, study.task.dimension),
        }  # fmt: skip

    def is_legible(self, item: Item) -> bool:
        n, walk, key = self.study.n, self.walk(), item.key
        if key.kind == Kind.TOTAL:
            return key.author == n and Total.from_bytes(item.body, n, walk.rounds, walk.reports.dimension) is not None
        if key.kind != Kind.BUNDLE:
            return True
        if walk.cover and key.index <= walk.rounds:
            each = walk.envelope + (key.author == n)
            number, rest = divmod(len(item.body), each)
            most = np.max(walk.graph.degrees) if key.author == n else walk.graph.degrees[key.author]
            return not rest and 1 <= number <= int(most)  # one for every neighbour in the roster
        parsed = take_cuts(item.body, n, walk.rounds)
        reports = None if parsed is None else unpacked(parsed[1], walk.reports.size)
        if reports is None or not 1 <= key.index <= walk.rounds + 1 or key.author == n:
            return False
        return len(reports) == 1 or walk.reporting == "all" or key.index <= walk.rounds

    def most_rounds(self) -> int:
        return int(self.settings.rounds) + 1

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        return self._entry([self.once(f).curve for f in range(self.study.privacy.colluders + 1)], me)

    def _entry(self, curves: list[Any], me: int) -> dict[str, Any]:
        """Tables against any 1, 2, … participants, and against everybody, deviating or not."""
        tables = [one.curves if isinstance(one, SharedCurve) else one for one in curves]  # one for all parties
        single = {name: tables[0] for u, name in enumerate(self.study.everybody) if u != me}
        sizes = {k + 1: table for k, table in enumerate(tables) if k}
        return profile_loss(single, report_alone(self.settings.epsilon0, 0.0), sizes)

    def recomputed(self, attempt: int, roster: Roster, me: int, realised: Mapping[str, Any]) -> dict[str, Any] | None:
        """The loss given which links failed and how many reports arrived; None if it is no more than was promised."""
        arrived, terms = int(realised.get("accepted", len(roster))), self.study.privacy
        if realised.get("unheard"):  # who was given up elsewhere, and what the curator has got, nobody has told us
            return self._entry([report_alone(self.settings.epsilon0, 0.0)] * (terms.colluders + 1), me)
        lists = [list(realised.get("cuts", ()))]
        if unsaid := [cut for cut in realised.get("unsaid", ()) if cut not in lists[0]]:
            lists.append([*lists[0], *unsaid])  # the curator may have our hand by now, after its total
        if arrived >= len(roster) and not lists[-1]:
            return None
        sizes = range(terms.colluders + 1)
        promised = [self.once(f) for f in sizes]
        found = [[self.realised(f, {**realised, "cuts": cuts}, roster) for cuts in lists] for f in sizes]
        pairs = [(new, old) for news, old in zip(found, promised, strict=True) for new in news]
        if all(_is_within(new.curve, old.curve) for new, old in pairs):
            return None
        both = [
            for_everybody([*news, old], self.study.n, f + 1)
            for f, (news, old) in enumerate(zip(found, promised, strict=True))
        ]
        return self._entry([one.curve for one in both], me)

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """ε₀ = ε, with as many hops as it takes to mix, and laziness where it cannot mix without."""
        given, graph = wish.options, wish.graph
        laziness = given.get("laziness")
        if laziness is None:
            laziness = 0.5 if graph.is_bipartite else 0.0
        reporting, rounds = given.get("reporting"), given.get("rounds")
        settings = {
            "kind": cls.kind, "epsilon0": rounded_down(wish.epsilon, _DIGITS),
            "reporting": "all" if reporting is None else reporting,
            "rounds": fewest_rounds_for(graph, laziness, _CROWD).rounds if rounds is None else rounds,
            "laziness": float(laziness), "cover": 0, "grid": _STEPS,
        }  # fmt: skip
        if given.get("cover"):
            settings["cover"] = _enough_cover(graph, settings, int(given["cover"]), wish.delta)
        return settings

    def least(self) -> dict[str, Any]:
        """The largest ε₀ of four digits that keeps the promise."""
        terms = self.study.privacy
        settings: dict[str, Any] = self.settings.model_dump(mode="json")
        start = rounded_down(settings["epsilon0"] / terms.attempts, _DIGITS)  # reports alone keep the promise

        def having(epsilon0: float) -> ShuffleRunning:
            made = self.with_settings(settings | {"epsilon0": epsilon0})
            assert isinstance(made, ShuffleRunning)
            return made

        def meets(epsilon0: float) -> bool:
            return having(epsilon0).worst_epsilon(terms.colluders, terms.delta) <= terms.epsilon

        if not meets(start):  # refuses where hops are too few
            raise Unsupported(
                f"epsilon = {terms.epsilon:g} at delta = {terms.delta:g} is met by no report of this study"
            )
        # one case in which most is learnt shows where to look; in the end all of them count
        cases = self.cases(terms.colluders) if terms.attempts == 1 else []
        worst = max(cases, key=lambda case: having(start).with_parties(case, terms.delta), default=None)

        def may_meet(epsilon0: float) -> bool:
            if worst is None:
                return meets(epsilon0)
            made = having(epsilon0)
            alone = made.without_curator(terms.colluders, terms.delta)
            return max(alone, made.with_parties(worst, terms.delta)) <= terms.epsilon

        low, high = start, min(2 * start, _LARGEST)
        while high < _LARGEST and may_meet(high):
            low, high = high, min(2 * high, _LARGEST)
        while (middle := rounded_down((low + high) / 2, _DIGITS)) not in (low, high):
            low, high = (middle, high) if may_meet(middle) else (low, middle)
        while low > start and not meets(low):
            low = max(start, rounded_down(low * (1 - 1e-3), _DIGITS))
        return settings | {"epsilon0": low}


def _is_within(new: Any, old: Any) -> bool:
    """Whether one table is nowhere above another: a ledger adds up whole tables, so one δ does not decide it."""
    tables: list[Any] = [one.curves if isinstance(one, SharedCurve) else one for one in (new, old)]
    points = np.unique(np.concatenate([np.asarray(one.epsilons) for one in tables]))
    a, b = (np.asarray([np.max(one.delta(point)) for point in points]) for one in tables)
    return bool(np.all(a <= b))


def _enough_cover(graph: Graph, settings: Mapping[str, Any], least: int, delta: float) -> int:
    """So many places on a link that reports wait with a chance far below δ, and at least as many as asked for."""
    if not 1 <= least <= _MOST_COVER or settings["rounds"] < 1:
        return least  # the settings refuse it
    direct = Shuffle(graph, settings["rounds"], settings["epsilon0"], laziness=settings["laziness"])
    for cover, chance in enumerate(overflows(direct, _MOST_COVER), start=1):
        if cover >= least and chance <= delta / 100:
            return cover
    raise Unsupported(
        f"{_MOST_COVER} places on a link are too few at delta = {delta:g}: the chance that a report must wait is "
        f"{overflows(direct, _MOST_COVER)[-1]:.1e}; use fewer rounds, or direct links (no cover)"
    )
