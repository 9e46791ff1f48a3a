"""Who sent something to whom, and when: a transcript without payloads.

The simulator and real peers produce the same one. It is stored as few *patterns* (arrays of sender, receiver) and a
schedule that names the pattern of each round, because a synchronous protocol repeats one pattern T times: a million
parties and twenty rounds are 80 million messages, but one pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.numerics.arrays import IntArray
from netdp.protocols import Gossip, VaryingGossip


@dataclass(frozen=True, eq=False)
class Transcript:
    """Messages of `len(schedule)` rounds among n parties.

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


def transcribe(protocol: Gossip | VaryingGossip) -> Transcript:
    """The transcript of a protocol whose messages do not depend on chance."""
    if isinstance(protocol, VaryingGossip):
        return Transcript.varying(protocol.graphs)
    return Transcript.synchronous(protocol.graph, protocol.rounds)
