"""What really happened: a protocol and the transcript of a run together, as a protocol without chance.

Before a run, a walk, a random graph or random edges are not known; afterwards they are, and the transcript says what they
were. Where nothing is left to chance the transcript must be the one that the protocol prescribes: a run in which messages
were lost or added is another protocol, and is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.protocols import (
    Central,
    CentralDescent,
    ErdosRenyiDescent,
    ErdosRenyiGossip,
    Gossip,
    GossipDescent,
    GraphWalkSum,
    Local,
    LocalDescent,
    MaskedDescent,
    MaskedSum,
    PathSum,
    PushSum,
    RelayedShuffle,
    RingDescent,
    RingHistogram,
    RingSum,
    SecretRingSum,
    Shuffle,
    Table,
    VaryingGossip,
    WalkDescent,
    WalkHistogram,
    WalkSum,
)

from .linear import LinearGaussianView, LinearProtocol
from .token import TokenTranscript, ring_path
from .transcript import Transcript, transcribe

realised = Table("what happened in a run", "leaves no transcript that could be accounted for")
"""`realised(protocol, transcript)`: the protocol without chance that the transcript belongs to."""
realised.refuse(
    Shuffle,
    RelayedShuffle,
    why="where the reports really went is nobody's knowledge; what the curator learns is stated before the run",
)
realised.refuse(
    WalkDescent,
    WalkHistogram,
    why="a walk that has become public is accounted for sums only (WalkSum, GraphWalkSum); account before the run",
)
realised.refuse(
    LocalDescent,
    CentralDescent,
    why="nobody sends to anybody in particular and nothing is left to chance; account without transcript",
)
realised.refuse(RingDescent, why="the ring is public and nothing is left to chance; account without transcript")
realised.refuse(
    MaskedDescent,
    why="its loss is the same in any order of arrival, after any loss or repetition; account without transcript",
)
realised.refuse(
    LinearGaussianView,
    LinearProtocol,
    why="its matrices say all that happens, and nothing is left to chance; account without transcript",
)


@realised.register
def _synchronous(protocol: Gossip | VaryingGossip, transcript: Any) -> Gossip | VaryingGossip:
    _same(protocol, transcript, transcribe(protocol))
    return protocol


@realised.register
def _descent(protocol: GossipDescent, transcript: Any) -> GossipDescent:
    rounds = [graph for graph in protocol.graphs for _ in range(protocol.gossip_rounds)]
    _same(protocol, transcript, Transcript.varying(rounds))
    return protocol


@realised.register
def _pushed(protocol: PushSum, transcript: Any) -> PushSum:
    prescribed = Transcript(protocol.n, (np.array(protocol.links),), np.zeros(protocol.rounds, dtype=np.int64))
    _same(protocol, transcript, prescribed)
    return protocol


@realised.register
def _nothing_sent(protocol: Local | Central, transcript: Any) -> Local | Central:
    _same(protocol, transcript, Transcript(protocol.n, (), np.empty(0, dtype=np.int64)))
    return protocol


@realised.register
def _masked(protocol: MaskedSum, transcript: Any) -> MaskedSum:
    """Its loss is the same in any order of arrival, after any loss or repetition: any transcript will do."""
    if not isinstance(transcript, Transcript) or transcript.n != protocol.n:
        raise _unlike(protocol, transcript)
    return protocol


@realised.register
def _fixed_path(protocol: RingSum | RingHistogram | PathSum, transcript: Any) -> RingSum | RingHistogram | PathSum:
    paths = protocol.paths if isinstance(protocol, PathSum) else (ring_path(protocol),)
    _same(protocol, transcript, TokenTranscript(protocol.n, paths))
    return protocol


@realised.register
def _drawn_path(protocol: WalkSum | GraphWalkSum, transcript: Any) -> PathSum:
    if isinstance(transcript, PathSum):  # run.protocol
        transcript = TokenTranscript(transcript.n, transcript.paths)
    if not isinstance(transcript, TokenTranscript):
        raise _unlike(protocol, transcript)
    lengths = [len(path) for path in transcript.paths]
    if transcript.n != protocol.n or lengths != [protocol.steps] * protocol.tokens:
        raise InvalidValue(
            f"this transcript has {transcript.n} users and walks of {lengths} steps, the protocol {protocol.n} users and "
            f"{protocol.tokens} of {protocol.steps}; take run.transcript of a run of this protocol"
        )
    if isinstance(protocol, GraphWalkSum):
        for path in transcript.paths:
            moved = np.flatnonzero(path[1:] != path[:-1])
            along = np.asarray(protocol.transition[path[moved], path[moved + 1]]).ravel() > 0
            for t in moved[~along][:1].tolist():
                raise InvalidValue(f"step {t + 1} goes from {path[t]} to {path[t + 1]}, no edge of {protocol.graph!r}")
    closing = protocol.closing if isinstance(protocol, GraphWalkSum) else 0.0
    law = getattr(protocol, "law", "gaussian")
    return PathSum(
        protocol.n, transcript.paths, protocol.sigma, closing, protocol.contributions, protocol.sensitivity, law,
        protocol.grid, protocol.dimension,
    )  # fmt: skip


@realised.register
def _drawn_orders(protocol: SecretRingSum, transcript: Any) -> PathSum:
    if isinstance(transcript, PathSum):  # run.protocol
        transcript = TokenTranscript(transcript.n, transcript.paths)
    if not isinstance(transcript, TokenTranscript):
        raise _unlike(protocol, transcript)
    n = protocol.n
    if transcript.n != n or [len(path) for path in transcript.paths] != [protocol.rounds * n]:
        raise InvalidValue(
            f"this transcript is not that of one token that goes round {n} users {protocol.rounds} times; take run.transcript "
            "of a run of this protocol"
        )
    for k, order in enumerate(transcript.paths[0].reshape(protocol.rounds, n)):
        if len(np.unique(order)) < n:
            raise InvalidValue(f"round {k} of this transcript does not visit every user once; it is another protocol")
    return PathSum(n, transcript.paths, protocol.hop_noise, sensitivity=protocol.sensitivity)


@realised.register
def _drawn_graph(protocol: ErdosRenyiGossip, transcript: Any) -> Gossip | VaryingGossip:
    """From the transcript of a run, the protocol that ran (`protocol.draw(seed)`, `run.protocol`), or its graphs."""
    graphs = _graphs_of(protocol, transcript)
    if len(graphs) != (protocol.rounds if protocol.varying else 1) or any(g.n != protocol.n for g in graphs):
        raise InvalidValue(
            f"the draw has {graphs[0].n} parties and {len(graphs)} graphs, the protocol {protocol.n} parties and "
            f"{protocol.rounds if protocol.varying else 1}; take it from protocol.draw(seed) or run.transcript"
        )
    common: dict[str, Any] = {
        "sigma": protocol.sigma, "sensitivity": protocol.sensitivity, "mixing": protocol.mixing,
    }  # fmt: skip
    if protocol.varying:
        return VaryingGossip(tuple(graphs), **common)
    return Gossip(graphs[0], rounds=protocol.rounds, accelerated=protocol.accelerated, **common)


@realised.register
def _drawn_graphs(protocol: ErdosRenyiDescent, transcript: Any) -> GossipDescent:
    """From the protocol that ran (`protocol.draw(seed)`), its graphs, or the transcript of its training."""
    if isinstance(transcript, GossipDescent):
        graphs = list(transcript.graphs)
    elif isinstance(transcript, list | tuple) and all(isinstance(graph, Graph) for graph in transcript):
        graphs = list(transcript)
    elif isinstance(transcript, Transcript):
        if transcript.rounds != protocol.iterations * protocol.gossip_rounds:
            raise InvalidValue(
                f"the transcript has {transcript.rounds} rounds, the protocol {protocol.iterations} iterations of "
                f"{protocol.gossip_rounds}"
            )
        graphs = _graphs_in(transcript)[:: protocol.gossip_rounds]
    else:
        raise _unlike(protocol, transcript)
    if len(graphs) != protocol.iterations or any(graph.n != protocol.n for graph in graphs):
        raise InvalidValue(
            f"the draw has {len(graphs)} graphs of {graphs[0].n} parties, the protocol {protocol.iterations} of {protocol.n}; take "
            "it from protocol.draw(seed) or the transcript of its training"
        )
    found = protocol.draw(0).replace(graph=tuple(graphs))
    if isinstance(transcript, Transcript):
        _same(found, transcript, Transcript.varying(g for g in graphs for _ in range(protocol.gossip_rounds)))
    return found


def _graphs_of(protocol: ErdosRenyiGossip, transcript: Any) -> list[Graph]:
    if isinstance(transcript, Gossip):
        if transcript.rounds != protocol.rounds:
            raise InvalidValue(f"the run has {transcript.rounds} rounds, the protocol {protocol.rounds}")
        return [transcript.graph]
    if isinstance(transcript, VaryingGossip):
        return list(transcript.graphs)
    if isinstance(transcript, Graph):
        return [transcript]
    if isinstance(transcript, list | tuple) and all(isinstance(graph, Graph) for graph in transcript):
        return list(transcript)
    if not isinstance(transcript, Transcript):
        raise _unlike(protocol, transcript)
    if transcript.rounds != protocol.rounds:
        raise InvalidValue(f"the transcript has {transcript.rounds} rounds, the protocol {protocol.rounds}")
    graphs = _graphs_in(transcript)
    if protocol.varying:
        return graphs
    if len(set(graphs)) > 1:
        raise InvalidValue("the rounds of this transcript are on different graphs, the protocol has one for all")
    return graphs[:1]


def _graphs_in(transcript: Transcript) -> list[Graph]:
    """The graph of every round."""
    made = []
    for pattern in transcript.patterns:
        once = pattern[pattern[:, 0] < pattern[:, 1]]
        if 2 * len(once) != len(pattern):
            raise InvalidValue("a round of this transcript has messages in one direction only; gossip sends both ways")
        made.append(Graph.from_edges(transcript.n, once))
    return [made[k] for k in transcript.schedule.tolist()]


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
