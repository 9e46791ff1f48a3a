"""Who sent something to whom, and when: a transcript without payloads.

The simulator and real peers produce the same one. It is stored as few *patterns* (arrays of sender, receiver) and a
schedule that names the pattern of each round, because a synchronous protocol repeats one pattern T times: a million
parties and twenty rounds are 80 million messages, but one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.protocols import Gossip

IntArray = npt.NDArray[np.int64]


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


def transcribe(protocol: Gossip) -> Transcript:
    """The transcript of a protocol whose messages do not depend on chance."""
    return Transcript.synchronous(protocol.graph, protocol.rounds)
