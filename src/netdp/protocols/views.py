"""Who looks, what was sent to whom, and what observers see of it: observers, transcripts and written-out linear views.

`observer_set` and `who_looks` read what a person typed. A `Transcript` says who sent something to whom, and when;
`realised` turns it and its protocol into a protocol without chance, which can be accounted for after a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy.observers import Observers
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table


def observer_set(
    graph: Graph | int, observers: int | str | Iterable[int | str], *, ids: bool = False
) -> tuple[int, ...]:
    """The observers as sorted party numbers, looked up in a graph or among n parties.

    Unknown, repeated, no or too many parties are refused, and so is a number that could mean two parties of a graph
    with names (`Graph.index`). `ids=True` says that the numbers were computed, not typed by a person: they count
    from 0 whatever the parties are called, and nothing is looked up.

    >>> from netdp import graphs
    >>> observer_set(graphs.ring(5), [3, 1])
    (1, 3)
    >>> observer_set(graphs.ring(5), 7)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: no node 7 in Graph('ring(5)', n=5, m=5); its nodes are 0 to 4
    >>> numbered = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=["1", "2", "3"])
    >>> observer_set(numbered, "1"), observer_set(numbered, [1], ids=True)
    ((0,), (1,))
    """
    single = isinstance(observers, int | str | np.integer)
    given: list[int | str] = [observers] if single else list(observers)  # type: ignore[list-item, arg-type]
    n = graph if isinstance(graph, int) else graph.n
    numbered = ids or isinstance(graph, int)
    members = [_number(n, party) if numbered else graph.index(party) for party in given]  # type: ignore[union-attr]
    if not members:
        raise InvalidValue("observers is empty; name at least one party, for example observers=[0]")
    if len(set(members)) < len(members):
        twice = next(party for party in members if members.count(party) > 1)
        raise InvalidValue(f"observer {twice} is named twice; name each colluding party once")
    _room_left(n, len(members))
    return tuple(sorted(members))


def _number(n: int, party: int | str) -> int:
    if isinstance(party, bool | str) or not 0 <= party < n or int(party) != party:
        raise InvalidValue(f"no party {party!r}; the parties are 0 to {n - 1}")
    return int(party)


def who_looks(protocol: Protocol, observers: Any) -> Observers:
    """What a person typed, as parties and roles of this protocol, with the parties' names.

    >>> from netdp import graphs
    >>> from netdp.protocols import Shuffle
    >>> who_looks(Shuffle(graphs.complete(5), rounds=3, epsilon0=1.0), ["curator", 3])
    Observers(parties=(3,), roles=('curator',), names=None, each=False, any_of=0)
    """
    if isinstance(observers, Observers):
        chosen = observers
        if chosen.any_of:
            raise InvalidValue(
                f"observers {observers!r} name nobody: any {chosen.any_of} parties are account(…, colluders=)"
            )
        if chosen.each or (not chosen.parties and not chosen.roles):
            raise InvalidValue(f"observers must name parties or a role, got {observers!r}; all pairs: netdp.pairwise")
        if chosen.parties and not 0 <= min(chosen.parties) <= max(chosen.parties) < protocol.n:
            raise InvalidValue(f"observers {chosen.parties} are not all among the parties 0 to {protocol.n - 1}")
        if len(set(chosen.parties)) < len(chosen.parties):
            raise InvalidValue(f"observers {chosen.parties} name a party twice; name each colluding party once")
        chosen = replace(chosen, parties=tuple(sorted(chosen.parties)))
        _room_left(protocol.n, len(chosen.parties))
    else:
        if observers is None or not isinstance(observers, int | str | np.integer | Iterable):
            raise InvalidValue(f"observers must name who looks, for example [0], got {observers!r}")
        given: list[Any] = [observers] if isinstance(observers, int | str | np.integer) else list(observers)
        roles = tuple(role for role in protocol.roles if role in given)
        people = [party for party in given if party not in roles]
        network = protocol.network
        parties = observer_set(protocol.n if network is None else network, people) if people or not roles else ()
        chosen = Observers(parties, roles)
    told = observers.words if isinstance(observers, Observers) else repr(observers)
    foreign = [role for role in chosen.roles if role not in protocol.roles]
    if foreign:
        known = f"its roles are {', '.join(protocol.roles)}" if protocol.roles else "it has parties only"
        raise InvalidValue(f"observers {told}: {type(protocol).__name__} has no {foreign[0]!r}; {known}")
    missing = [role for role in protocol.roles if role not in chosen.roles]
    if missing:
        raise InvalidValue(
            f'observers {told}: reports are collected by a {missing[0]}; say observers="{missing[0]}", or '
            f'observers=["{missing[0]}", 3] if user 3 colludes with it (relays alone see only encrypted reports)'
        )
    labels = protocol.network.labels if protocol.network is not None else None
    return replace(chosen, names=None if labels is None else tuple(labels[v] for v in chosen.parties))


def _room_left(n: int, members: int) -> None:
    if members == n:
        raise InvalidValue(f"all {n} parties observe, so nobody is left whose privacy could be at stake; name fewer")


@dataclass(frozen=True, eq=False)
class Transcript:
    """Who sent something to whom, and when, without payloads: messages of `len(schedule)` rounds among n parties.

    The simulator and real peers produce the same one. It is stored as few *patterns* (arrays of sender, receiver) and a
    schedule that names the pattern of each round, because a synchronous protocol repeats one pattern T times: a million
    parties and twenty rounds are 80 million messages, but one pattern.

    >>> from netdp import graphs
    >>> t = Transcript.synchronous(graphs.ring(5), rounds=3)
    >>> t.rounds, len(t)
    (3, 30)
    >>> t.received_by([0])[:2].tolist()      # columns: round, sender, receiver
    [[0, 1, 0], [0, 4, 0]]
    """

    n: int
    patterns: tuple[IntArray, ...]
    schedule: IntArray

    def __post_init__(self) -> None:
        checked = []
        for pattern in self.patterns:
            messages = np.array(pattern, dtype=np.int64).reshape(-1, 2)
            if messages.size and (messages.min() < 0 or messages.max() >= self.n):
                bad = int(messages[(messages < 0) | (messages >= self.n)][0])
                raise InvalidValue(f"party {bad} in the transcript, but there are only parties 0 … {self.n - 1}")
            messages = messages[np.lexsort((messages[:, 0], messages[:, 1]))]
            messages.setflags(write=False)
            checked.append(messages)
        schedule = np.array(self.schedule, dtype=np.int64)
        if schedule.size and not (schedule.min() >= 0 and schedule.max() < len(checked)):
            raise InvalidValue(f"the schedule names pattern {int(schedule.max())}, there are {len(checked)}")
        schedule.setflags(write=False)
        object.__setattr__(self, "patterns", tuple(checked))
        object.__setattr__(self, "schedule", schedule)

    @classmethod
    def empty(cls, n: int) -> Transcript:
        """Nobody sends to anybody in particular."""
        return cls(n, (), np.empty(0, dtype=np.int64))

    @classmethod
    def synchronous(cls, graph: Graph, rounds: int) -> Transcript:
        """Everybody sends to all neighbours in each of `rounds` rounds."""
        edges = graph.edges()
        return cls(graph.n, (np.vstack([edges, edges[:, ::-1]]),), np.zeros(rounds, dtype=np.int64))

    @classmethod
    def varying(cls, graphs: Iterable[Graph]) -> Transcript:
        """Everybody sends to all neighbours in the graph of the round; rounds on the same graph share a pattern."""
        given = list(graphs)
        numbers = {digest: k for k, digest in enumerate(dict.fromkeys(graph.digest for graph in given))}
        distinct = {graph.digest: graph.edges() for graph in given}
        patterns = tuple(np.vstack([distinct[digest], distinct[digest][:, ::-1]]) for digest in numbers)
        return cls(given[0].n, patterns, np.array([numbers[graph.digest] for graph in given], dtype=np.int64))

    @classmethod
    def pairwise(cls, n: int, edges: npt.ArrayLike) -> Transcript:
        """One exchange per step along the edges (steps, 2); (−1, −1) for a step in which nobody sends.

        >>> Transcript.pairwise(3, [[0, 1], [-1, -1], [2, 1], [0, 1]]).exchanges().tolist()
        [[0, 1], [-1, -1], [1, 2], [0, 1]]
        """
        pairs = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
        # One number per pair: sorting numbers is many times faster than sorting rows.
        keys, schedule = np.unique(pairs[:, 0] * n + pairs[:, 1], return_inverse=True)
        distinct = np.column_stack(np.divmod(keys, n))
        return cls(n, tuple(np.array([e, e[::-1]])[: 2 * (e[0] >= 0)] for e in distinct), schedule.ravel())

    def exchanges(self) -> IntArray:
        """The inverse of `pairwise`: the two parties of every step, (−1, −1) if nobody sends; refuses other transcripts."""
        ends = np.full((len(self.patterns), 2), -1, dtype=np.int64)
        for k, pattern in enumerate(self.patterns):
            if len(pattern) == 2 and np.array_equal(pattern[0], pattern[1, ::-1]):
                ends[k] = np.sort(pattern[0])
            elif len(pattern):
                raise InvalidValue(
                    f"a step of this transcript has {len(pattern)} messages; pairwise exchanges have two, there and back"
                )
        return ends[self.schedule]

    @property
    def rounds(self) -> int:
        """How many rounds it covers."""
        return len(self.schedule)

    def __len__(self) -> int:
        sizes = np.array([len(p) for p in self.patterns], dtype=np.int64)
        return int(sizes[self.schedule].sum())

    def messages(self, round_: int) -> IntArray:
        """The messages of one round: rows (sender, receiver), by receiver then sender."""
        return self.patterns[int(self.schedule[round_])]

    def received_by(self, observers: npt.ArrayLike) -> IntArray:
        """What the observers together receive: rows (round, sender, receiver), in time order."""
        members = np.zeros(self.n, dtype=bool)
        members[np.asarray(observers, dtype=np.int64)] = True
        received = [pattern[members[pattern[:, 1]]] for pattern in self.patterns]
        blocks = [
            np.column_stack([np.full(len(received[k]), t, dtype=np.int64), received[k]])
            for t, k in enumerate(self.schedule.tolist())
            if len(received[k])
        ]
        return np.vstack(blocks) if blocks else np.empty((0, 3), dtype=np.int64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript):
            return NotImplemented
        return (
            self.n == other.n
            and self.rounds == other.rounds
            and all(np.array_equal(self.messages(t), other.messages(t)) for t in range(self.rounds))
        )


# Above this many coefficients a written-out view costs more than a gigabyte; GossipView has no such limit.
MAX_COEFFICIENTS = 10**8


@dataclass(frozen=True)
class NoiseTerm:
    """One independent Gaussian noise: what it is for, who knows it, since when."""

    kind: str  # "own" | "mask" | "refresh"
    known_to: tuple[int, ...]
    round: int = 0


@dataclass(frozen=True, eq=False)
class Seen:
    """What `observers` see about the others: y = A x + B z, what they know themselves removed.

    `data` is A (messages × parties, the observers' columns are zero), `noise` is B (messages × noises, unit
    variance), `noises` names the columns of B, `messages` the rows (round, sender, receiver). `owners` names the party of
    each column of A, if a party has several.
    """

    observers: tuple[int, ...]
    data: FloatArray
    noise: FloatArray
    noises: tuple[NoiseTerm, ...] = ()
    messages: IntArray | None = None
    owners: IntArray | None = None


realised = Table("what happened in a run", "leaves no transcript that could be accounted for", part="account")
"""`realised(protocol, transcript)`: the protocol without chance that the transcript belongs to.

Before a run, a walk, a random graph or random edges are not known; afterwards they are, and the transcript says what they
were. Where nothing is left to chance the transcript must be the one that the protocol prescribes: a run in which messages
were lost or added is another protocol, and is refused.
"""


def _same(protocol: Any, given: Any, expected: Any) -> None:
    if type(given) is not type(expected):
        raise _unlike(protocol, given)
    if given != expected:
        raise InvalidValue(
            f"this is not the transcript of {type(protocol).__name__} as it stands: {len(given)} messages in {given.rounds} "
            f"rounds, the protocol prescribes {len(expected)} in {expected.rounds}. A run with lost or added messages is "
            "another protocol, whose loss is not proved"
        )


def _unlike(protocol: Any, given: Any) -> InvalidValue:
    return InvalidValue(
        f"transcript must be that of a run of {type(protocol).__name__} (run.transcript), got {type(given).__name__}"
    )
