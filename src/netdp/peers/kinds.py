"""How one kind of protocol runs on peers: everything that a study, a party, a ledger, a planner and an audit ask of it.

A kind is the word after `kind =` in the section [protocol] of a study. A class in the `peer` module of its family holds all of
it: the settings that the study states, the protocol that they stand for (whose certified loss is the promise), what a party
draws, how contributions become the answer, what is entered in the ledger, and what a run shows afterwards. `RUNNING` lists them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from netdp.errors import Unsupported
from netdp.families import KINDS
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray
from netdp.peers.ledger.losses import loss_of
from netdp.peers.messages import Item, ItemKind
from netdp.peers.promise import promise_of
from netdp.peers.records import Misfit, Strict
from netdp.privacy.guarantee import Guarantee
from netdp.protocols.base import Protocol
from netdp.protocols.family import family_of_kind

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.hindsight import Hindsight
    from netdp.peers.ledger.store import Contribution
    from netdp.peers.spread import Spread
    from netdp.peers.study.study import Study
    from netdp.peers.study.training import AnyTask
    from netdp.protocols.views import Transcript

__path__: list[str] = []  # this was a folder: old paths below it are found by `netdp.moved`

NUMBERS = ("sum", "mean", "variance", "histogram", "table")
"""Tasks that are sums of numbers."""

COUNTS = ("histogram", "table")
"""Tasks in which a party names one of finitely many cells."""

DEVIATIONS = 40.0
"""Of noise: further off less than once in 10³⁰⁰ draws, 2·exp(−40²/2) by the discrete Gaussian's sub-Gaussian tail."""

Roster = tuple[int, ...]


@dataclass(frozen=True)
class Wish:
    """What a study is planned for."""

    task: AnyTask
    graph: Graph
    epsilon: float
    delta: float
    colluders: int = 1
    attempts: int = 1
    absent: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the kind alone understands, by the names in its `options`."""


class Kind(ABC):
    """A protocol as one study runs it."""

    kind: ClassVar[str]
    Settings: ClassVar[type[Strict]]
    """The section [protocol], with `kind: Literal[…]` in it."""
    options: ClassVar[tuple[str, ...]] = ()
    """What a planner may be told beyond the target."""
    comments: ClassVar[Mapping[str, str]] = {}
    """What stands behind a setting in the file."""
    how: ClassVar[str]
    """How it works, for `netdp study explain`."""
    told: ClassVar[str] = "Everybody learns the answer: all {n} parties, and whoever they tell."
    """Who learns the answer, and what that means."""
    tasks: ClassVar[tuple[str, ...]] = NUMBERS
    units: ClassVar[tuple[str, ...]] = ("party",)
    tolerates: ClassVar[bool] = False
    """Whether a study may allow several attempts, and absences."""
    goes_on: ClassVar[bool] = False
    """Whether those who are left come to an answer in the same attempt if somebody vanishes on the way."""
    takes_periods: ClassVar[bool] = False
    """Whether a party may add one value per period instead of one."""
    least_colluders: ClassVar[int] = 1
    has_curator: ClassVar[bool] = False
    has_own_answers: ClassVar[bool] = False
    """Whether every party ends with an estimate of its own instead of all with the same answer."""
    depends_on_size_only: ClassVar[bool] = False
    """Whether all coalitions of one size learn the same, and less the more take part."""
    depends_on_place: ClassVar[bool] = False
    """Whether what an attempt costs a party depends on its place in the roster."""
    sends: ClassVar[frozenset[ItemKind]] = frozenset()
    """The kinds of items that it has beside votes, contributions and fallbacks."""
    sends_all_the_same: ClassVar[bool] = False
    """Whether a state is the same for all neighbours."""
    releases_the_answer: ClassVar[bool] = False
    """Whether the total that one party releases is the answer, to the last bit."""
    canaries: ClassVar[str | None] = None
    """What an audit run puts in or leaves out: "record", "party", or None where no such run is made of this kind."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.settings: Any = study.settings

    # ── the study ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def check_task(cls, task: AnyTask) -> None:
        """Refuse a question that this kind does not answer, and say which do."""
        if task.kind not in cls.tasks:
            able = ", ".join(kind for kind, other in RUNNING.items() if task.kind in other.tasks)
            raise Misfit(
                ("task", "kind"), f"{cls.kind} answers {', '.join(cls.tasks)}, not {task.kind}; what does: {able}"
            )
        if task.values_each > 1 and not cls.takes_periods:
            able = ", ".join(
                kind for kind, other in RUNNING.items() if other.takes_periods and task.kind in other.tasks
            )
            raise Misfit(("task", "periods"), f"{cls.kind} adds one value of a party; what adds one per period: {able}")

    def check(self) -> None:
        """Refuse settings that do not fit the rest of the study: raises `Misfit` with the place."""
        study = self.study
        self.check_task(study.task)
        if study.task.unit not in self.units:
            raise Misfit(("task", "unit"), f'{self.kind} protects whole parties; use masked-sum or "party"')
        if not self.tolerates:
            for name, usual in (("attempts", 1), ("absent", 0)):
                if getattr(study.privacy, name) != usual:
                    raise Misfit(("privacy", name), f"{self.kind} is run once, by all; use masked-sum or {usual}")

    @abstractmethod
    def protocol(self) -> Protocol:
        """What all parties run, with every attempt and absence that the study allows: what is promised beforehand."""

    def protocol_of(self, roster: Roster) -> Protocol:
        """One attempt among these parties."""
        return self.protocol()

    def promise(self, colluders: int) -> Guarantee:
        """What any so many parties learn together about any other, at most, over all attempts."""
        return promise_of(self.protocol(), colluders)

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        """ε of the promise at one δ."""
        return self.promise(colluders).require_certified().worst_epsilon(delta)

    @property
    def threshold(self) -> int | None:
        """How many members open a sum that survives dropouts; None where every attempt needs all its members to the end."""
        return None

    @property
    def is_fair(self) -> bool:
        """Whether the honest parties that stay open the sum by themselves, so that nobody gets it alone."""
        terms = self.study.privacy
        return self.threshold is not None and self.threshold <= self.study.n - terms.colluders - terms.absent

    @property
    def how_words(self) -> str:
        """How it works as this study states it, for `netdp study explain`."""
        return self.how

    @property
    def noise_words(self) -> str:
        """The setting that says how much noise there is, for people."""
        return f"sigma = {self.settings.sigma:g}"

    @abstractmethod
    def noise(self, parties: int) -> float:
        """The standard deviation of the noise in one coordinate of the total over so many parties."""

    def answer(self, total: Sequence[float] | FloatArray, parties: int) -> dict[str, Any]:
        """The answer in the data's own units."""
        return self.study.task.answer(total, parties, self.noise(parties))

    def beyond(self, total: FloatArray, parties: int) -> float:
        """How far outside what so many honest parties can hand in a total lies, over all that their noise can do; above 1 it is
        none of theirs. 0 where nothing is said of the total (its parts are checked on their way: `furthest`, or cannot be)."""
        return 0.0

    def further(self) -> tuple[str, ...]:
        """What parties that are not neighbours learn, or what a figure of the papers would be: beside the promise, in sentences."""
        return ()

    def who(self, participants: int) -> str:
        """So many of those who take part, for people; a curator counts as one of them."""
        if not self.has_curator:
            return "any single party" if participants == 1 else f"any {participants} parties together"
        if participants <= 1:
            return "the curator, or any one party"
        return "the curator and any party" if participants == 2 else f"the curator and any {participants - 1}"

    def neighbours(self, u: int) -> tuple[int, ...]:
        """Whom participant u is linked to."""
        return tuple(int(v) for v in self.study.graph.neighbors(u))

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        """What is published, which begins with the roster's digest, and what later messages are computed from."""

    def is_same_data(self, desk: Desk, attempt: int, roster: Roster, held: Contribution) -> bool:
        """Whether the data at hand are those of an earlier contribution: the same data give the same noise, so the same bytes."""
        body, secret = self.draw(desk, attempt, roster)
        return body == held.body and (
            not held.secret or secret == held.secret
        )  # what was adopted came without its secret

    @abstractmethod
    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        """How the contributions of an attempt become the answer, for this participant."""

    def longest(self) -> dict[ItemKind, int]:
        """How long a body of each kind can be, if its author is honest; what is not listed is never sent."""
        numbers = 8 * self.study.task.dimension
        common = {ItemKind.VOTE: 4 * self.study.n, ItemKind.CONTRIBUTION: 32, ItemKind.FALLBACK: 0}
        return common | {ItemKind.TOTAL: numbers, ItemKind.STATE: numbers, ItemKind.TOKEN: numbers}

    def is_legible(self, item: Item) -> bool:
        """Whether a body can be read: numbers of the right count, and of a size that honest ones have. All judge alike."""
        if item.key.kind in (ItemKind.TOTAL, ItemKind.STATE, ItemKind.TOKEN):
            return len(item.body) == 8 * self.study.task.dimension and self.is_within_reach(item.body)
        return True

    @cached_property
    def furthest(self) -> float | None:
        """No whole number in an honest state, token or total is larger (in grid steps); None where nothing can be said.

        Values are clipped; noise is not, but all of it together is DEVIATIONS deviations off less than once in 10³⁰⁰ runs.
        """
        return None

    def is_within_reach(self, body: bytes) -> bool:
        """Whether no number of a body is out of all proportion. A lie within proportion cannot be told from the truth."""
        if self.furthest is None:
            return True
        numbers = np.frombuffer(body, dtype="<i8")
        return bool(-self.furthest <= numbers.min(initial=0) and numbers.max(initial=0) <= self.furthest)

    def items(self) -> frozenset[ItemKind]:
        """The kinds of items that honest parties send."""
        return self.sends | {ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.FALLBACK}

    def most_releases(self) -> int:
        """How many totals one author may release."""
        return 1

    def most_steps(self) -> int:
        """In how many iterations a party publishes, where there are any."""
        return 0

    def most_rounds(self) -> int:
        """No state, token, offer or bundle of an honest party has a larger index."""
        return int(getattr(self.protocol(), "rounds", 0))

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        """What an entry keeps of one attempt among these parties, for party `me` (`netdp.peers.ledger.losses`)."""
        names = tuple(self.study.names[u] for u in roster)
        return loss_of(self.protocol_of(roster), roster.index(me), names, self.study.privacy.colluders)

    def entered(self, roster: Roster, me: int) -> dict[str, Any]:
        """The same, computed once: it may take long, and a party that computes in the middle of a study answers nobody.

        The policy asks before the first link is made; a contribution is then entered at once.
        """
        found = self._entered.get((roster, me))
        if found is None:
            found = self._entered[roster, me] = self.loss(roster, me)
        return copy.deepcopy(found)

    @cached_property
    def _entered(self) -> dict[tuple[Roster, int], dict[str, Any]]:
        return {}

    def costly_rosters(self, me: int) -> list[Roster]:
        """Rosters with party `me` such that no allowed one has a loss which one of these does not have too, or a smaller one."""
        n, fewest = self.study.n, self.study.smallest_roster
        before, after = list(range(me)), list(range(me + 1, n))
        found = []
        for size in [fewest] if self.depends_on_size_only else range(fewest, n + 1):
            # so many of the others stand before it
            places = range(max(0, size - 1 - len(after)), min(me, size - 1) + 1)
            for place in places if self.depends_on_place else places[-1:]:
                found.append((*before[:place], me, *after[: size - 1 - place]))
        return found

    def recomputed(self, attempt: int, roster: Roster, me: int, realised: Mapping[str, Any]) -> dict[str, Any] | None:
        """The loss of an attempt as it really went, where that is not what was entered before; None where it is."""
        return None

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────────────

    def transcript(self, sent: Transcript) -> Any:
        """Who sent to whom in which round, as a simulation of the protocol writes it."""
        return sent

    def looked_back(self, outcomes: Mapping[str, Mapping[str, Any]]) -> Hindsight | None:
        """What a run really gave away, from the outcomes that parties told; None where nothing is known beyond the promise."""
        return None

    # ── trainings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def cost(self, latency: float) -> Any:
        """Rounds, bytes, memory and seconds of a training, with so many seconds for a message there and back."""
        raise Unsupported(f"{self.kind} trains no model, so there is no cost of a training")

    def outlook(self) -> Any:
        """What may be expected of a training, from its sizes alone (`netdp.learn.planning.Outlook`)."""
        raise Unsupported(f"{self.kind} trains no model, so there is nothing to expect of one")

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    @abstractmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        """Settings that can surely be run, so that all else is checked before noise is looked for."""

    @abstractmethod
    def least(self) -> dict[str, Any]:
        """The settings with the least noise that keeps the promise of this (rough) study."""

    def settings_for(self, task: AnyTask) -> dict[str, Any]:
        """The settings that another task needs changed, where nothing that the promise rests on may change."""
        return {}

    def with_settings(self, settings: Mapping[str, Any]) -> Kind:
        """The same study with other settings, not checked against the rest again."""
        made = type(self)(self.study)
        made.settings = self.Settings(**settings)
        return made


def with_task(loss: Guarantee, task: AnyTask) -> Guarantee:
    """A promise, with what the task adds to its assumptions."""
    return replace(loss, assumptions=(*loss.assumptions, *task.assumed, task.admitted))


class _Kinds(Mapping[str, type[Kind]]):
    """By the word that a study uses; a family's peers are loaded when they are asked for."""

    def __getitem__(self, word: str) -> type[Kind]:
        if word not in KINDS:
            raise KeyError(word)
        one = family_of_kind(word)
        found: type[Kind] = one.named(one.kinds[word])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)

    def __contains__(self, word: object) -> bool:
        return word in KINDS


RUNNING: Mapping[str, type[Kind]] = _Kinds()
"""How each kind runs; the first is what a study runs unless it says otherwise."""
