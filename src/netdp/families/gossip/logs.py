"""What each party of randomized gossip did, in its own order, and what observers see of it: a linear view without clocks.

Every party keeps a *log* of its own deeds. An exchange is named by who offered it and by which of its offers it was:

    accepted (u, k)   offer k of u was taken up: fresh noise is added to the own state, and it is sent to u
    met (w, k)        w took up our offer k: the same, and sent to w; then half of the difference of the two states is added
    heard (u, k)      u's state has come: half of the difference is added, at once or late

Logs have no common clock and need none: one order of all deeds in which nobody hears what was not yet sent is as good as
any other. An exchange that was met but never heard is *torn*; one that was accepted but never met moved nobody (`torn`, `void`).
A party whose log is missing is counted among the observers. Proof: docs/proofs/gossip.md#dithered-exchanges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray

DEEDS = ("accepted", "met", "heard")


class Deed(NamedTuple):
    """One deed of a party: what, with whom, and which offer of the one who offered."""

    what: str
    other: int
    number: int


class Message(NamedTuple):
    """A state that was sent: by whom, to whom, in which exchange (who offered it, which of its offers)."""

    sender: int
    receiver: int
    exchange: tuple[int, int]


class ExchangeEvent(NamedTuple):
    """One deed in a common order: who did what; which message it sent, which it heard, and whether that came late."""

    party: int
    sends: int | None
    """Index into `messages`."""
    first: bool
    hears: Message | None
    answers: Message | None
    """What the party itself had sent in that exchange."""
    late: bool


@dataclass(frozen=True, eq=False)
class ExchangeLogs:
    """The logs of a run among n parties; who left none is `missing`.

    >>> logs = ExchangeLogs.of_edges(3, [[0, 1], [1, 2], [-1, -1], [0, 1]])
    >>> logs.deeds[0]
    (Deed(what='met', other=1, number=0), Deed(what='met', other=1, number=3))
    >>> logs.torn, logs.void, logs.exchanges
    ((), (), 3)
    """

    n: int
    deeds: Mapping[int, tuple[Deed, ...]]

    def __post_init__(self) -> None:
        checked = {}
        for party, log in self.deeds.items():
            if not 0 <= party < self.n:
                raise InvalidValue(f"a log of party {party}, but there are only parties 0 … {self.n - 1}")
            checked[party] = self._checked(party, log)
        object.__setattr__(self, "deeds", dict(sorted(checked.items())))

    def _checked(self, party: int, log: Iterable[Any]) -> tuple[Deed, ...]:
        deeds, known = [], set[Deed]()
        for given in log:
            try:
                what, other, number = given
                deed = Deed(str(what), int(other), int(number))
            except (TypeError, ValueError):
                raise InvalidValue(
                    f"the log of party {party} holds {given!r}; a deed is (what, other, number)"
                ) from None
            if deed.what not in DEEDS or not 0 <= deed.other < self.n or deed.other == party or deed.number < 0:
                raise InvalidValue(f"the log of party {party} holds {given!r}, which no party does")
            if deed in known or (deed.what == "heard" and Deed("accepted", *deed[1:]) not in known):
                raise InvalidValue(
                    f"the log of party {party}: {given!r} comes twice, or before the exchange was taken up"
                )
            known.add(deed)
            deeds.append(deed)
        return tuple(deeds)

    @classmethod
    def of_edges(cls, n: int, edges: npt.ArrayLike) -> ExchangeLogs:
        """Logs of exchanges one after the other along the edges (steps, 2); (−1, −1) for idle steps."""
        logs: dict[int, list[Deed]] = {u: [] for u in range(n)}
        for t, (u, w) in enumerate(np.asarray(edges, dtype=np.int64).reshape(-1, 2).tolist()):
            if u >= 0:
                logs[w].append(Deed("accepted", u, t))
                logs[u].append(Deed("met", w, t))
                logs[w].append(Deed("heard", u, t))
        return cls(n, {u: tuple(log) for u, log in logs.items()})

    @property
    def missing(self) -> tuple[int, ...]:
        """Parties without a log."""
        return tuple(u for u in range(self.n) if u not in self.deeds)

    def _named(self, what: str) -> set[tuple[int, int, int]]:
        """(who offered, to whom, which offer) of all deeds of a kind."""
        if what == "met":
            return {(u, d.other, d.number) for u, log in self.deeds.items() for d in log if d.what == what}
        return {(d.other, w, d.number) for w, log in self.deeds.items() for d in log if d.what == what}

    @cached_property
    def exchanges(self) -> int:
        """How many exchanges at least one end is known to have averaged in."""
        return len(self._named("met") | self._named("heard"))

    @cached_property
    def torn(self) -> tuple[tuple[int, int, int], ...]:
        """Exchanges (who offered, to whom, number) that one end averaged in and the other, whose log is here, never did."""
        met, heard = self._named("met"), self._named("heard")
        return tuple(sorted((u, w, k) for u, w, k in met - heard if w in self.deeds))

    @cached_property
    def void(self) -> tuple[tuple[int, int, int], ...]:
        """Exchanges that were taken up, but in which nobody averaged."""
        return tuple(sorted(self._named("accepted") - self._named("met") - self._named("heard")))

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """For JSON; the keys are parties."""
        return {str(u): [list(deed) for deed in log] for u, log in self.deeds.items()}

    @classmethod
    def from_dict(cls, n: int, given: Mapping[str, Sequence[Any]]) -> ExchangeLogs:
        """Inverse of `to_dict`."""
        return cls(n, {int(u): tuple(log) for u, log in given.items()})

    @cached_property
    def course(self) -> tuple[list[ExchangeEvent], list[Message]]:
        """All deeds in an order in which nobody hears what was not sent, and all messages, in the order in which they were."""
        events, messages, sent = list[ExchangeEvent](), list[Message](), dict[Message, int]()
        parties = list(self.deeds)
        at = dict.fromkeys(parties, 0)
        began = set[int]()
        waiting = {u: set[tuple[int, int]]() for u in parties}  # accepted, and nothing done since
        moved = True
        while moved:
            moved = False
            for u in parties:
                log = self.deeds[u]
                while at[u] < len(log):
                    event = self._event(u, log[at[u]], sent, began, waiting[u])
                    if event is None:
                        break
                    if event.sends is not None:
                        exchange = (
                            (log[at[u]].other, log[at[u]].number) if event.hears is None else (u, log[at[u]].number)
                        )
                        message = Message(u, log[at[u]].other, exchange)
                        sent[message] = len(messages)
                        messages.append(message)
                        began.add(u)
                    events.append(event)
                    at[u] += 1
                    moved = True
        if stuck := [u for u in parties if at[u] < len(self.deeds[u])]:
            u = stuck[0]
            raise InvalidValue(
                f"the logs contradict each other: party {u} says {tuple(self.deeds[u][at[u]])}, but nobody sent it that"
            )
        return events, messages

    @cached_property
    def numbers(self) -> dict[Message, int]:
        """Which place in the course each message has."""
        return {message: i for i, message in enumerate(self.course[1])}

    def _event(
        self,
        u: int,
        deed: Deed,
        sent: Mapping[Message, int],
        began: set[int],
        waiting: set[tuple[int, int]],
    ) -> ExchangeEvent | None:
        """The deed as an event, or None if what it hears was not sent yet."""
        what, other, number = deed
        if what == "accepted":
            waiting.clear()
            waiting.add((other, number))
            return ExchangeEvent(u, len(sent), u not in began, None, None, late=False)
        exchange = (u, number) if what == "met" else (other, number)
        hears, answers = Message(other, u, exchange), Message(u, other, exchange)
        if other in self.deeds and hears not in sent:
            return None
        if what == "met":
            waiting.clear()
            return ExchangeEvent(u, len(sent), u not in began, hears, answers, late=False)
        late = (other, number) not in waiting
        waiting.discard((other, number))
        return ExchangeEvent(u, None, False, hears, answers, late=late)


@dataclass(frozen=True, eq=False)
class ExchangeView:
    """What colluding `observers`, and the parties without a log, see of a run.

    `values` (n, seen): the coefficients of everybody's noisy value in what is seen; zero for observers.
    `fresh` (later sends, seen): those of every fresh noise, of deviation 1.
    `reached` (n,): whose value can have reached them at all.
    """

    logs: ExchangeLogs
    observers: tuple[int, ...]

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """(n,) who neither looks nor left no log."""
        mask = np.ones(self.logs.n, dtype=bool)
        mask[list(self.observers)] = False
        mask[list(self.logs.missing)] = False
        return mask

    @cached_property
    def seen(self) -> IntArray:
        """Which messages go from a hidden party to an observer."""
        messages, hidden = self.logs.course[1], self.hidden
        found = [i for i, m in enumerate(messages) if hidden[m.sender] and not hidden[m.receiver]]
        return np.array(found, dtype=np.int64)

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        events, index = self.logs.course[0], self.logs.numbers
        hidden, count = self.hidden.tolist(), len(self.seen)
        column = {int(i): c for c, i in enumerate(self.seen)}
        state, reached = np.zeros((self.logs.n, count)), np.zeros(self.logs.n, dtype=bool)
        open_: dict[int, FloatArray] = {}
        touched = set[int]()
        fresh = list[FloatArray]()
        for event in reversed(events):
            p = event.party
            if not hidden[p]:
                continue
            if event.hears is not None and event.answers is not None and reached[p]:
                for message, sign in ((event.hears, 0.5), (event.answers, -0.5)):
                    i = index[message] if hidden[message.sender] else None
                    if i is not None:  # what observers sent is known to them
                        open_[i] = open_[i] + sign * state[p] if i in open_ else sign * state[p]
                        touched.add(i)
            if event.sends is not None:
                if event.sends in open_:
                    state[p] += open_.pop(event.sends)
                reached[p] |= event.sends in touched
                if event.sends in column:
                    state[p, column[event.sends]] += 1.0
                    reached[p] = True
                if not event.first and reached[p]:
                    fresh.append(state[p].copy())
        state[~self.hidden] = 0.0
        return state, np.array(fresh).reshape(len(fresh), count), reached & self.hidden

    @property
    def values(self) -> FloatArray:
        """See the class."""
        return self._rows[0]

    @property
    def fresh(self) -> FloatArray:
        """See the class."""
        return self._rows[1]

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """See the class."""
        return self._rows[2]
