"""What observers see of gossip, as a linear recursion of the hidden parties alone: sparse, never written out.

The observers know their own states at all times, so they subtract what these contribute: an invertible transformation, after
which the hidden states obey the same recursion with the rows and columns of the observers struck out. On a fixed graph:
docs/proofs/gossip.md#hidden-recursion; with a matrix that changes, and randomized gossip on known edges (`SequenceView`):
docs/proofs/gossip.md#changing-gossip; with momentum and along one-way links (`MomentumView`, `PushView`):
docs/proofs/gossip.md#state-views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent, GossipRounds
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block
from netdp.protocols.views import MAX_COEFFICIENTS, NoiseTerm, Seen, Transcript, _same, _unlike, observer_set, realised


def hidden_parties(n: int, observers: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """(n,) which parties are not observers."""
    mask = np.ones(n, dtype=bool)
    mask[list(observers)] = False
    return mask


def hidden_senders(graph: Graph, observers: tuple[int, ...]) -> IntArray:
    """The hidden parties that send to an observer, in increasing order."""
    seen = np.zeros(graph.n, dtype=bool)
    for v in observers:
        seen[graph.neighbors(v)] = True
    return np.flatnonzero(seen & hidden_parties(graph.n, observers))


@dataclass(frozen=True, eq=False)
class GossipView:
    """What colluding `observers` see of gossip: a whole `Gossip`, or the rounds of one iteration of learning."""

    protocol: Gossip | GossipRounds
    observers: tuple[int, ...]

    def __post_init__(self) -> None:
        if isinstance(self.protocol, Gossip) and self.protocol.grid is not None:
            raise Unsupported(
                f"this Gossip rounds to a grid of {self.protocol.grid:g}, and a linear view speaks of real numbers: "
                "account(protocol, observers) certifies it; to find σ, calibrate with grid=None, then state grid= and account "
                "again"
            )

    @classmethod
    def of(cls, protocol: Gossip | GossipRounds, observers: int | str | Iterable[int | str]) -> GossipView:
        """The view of the named observers."""
        return cls(protocol, observer_set(protocol.graph, observers))

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """(n,) which parties are not observers."""
        return hidden_parties(self.protocol.graph.n, self.observers)

    @cached_property
    def boundary(self) -> IntArray:
        """The parties that send to an observer, in increasing order."""
        return hidden_senders(self.protocol.graph, self.observers)

    def step(self, states: FloatArray) -> FloatArray:
        """W_HH applied to the columns of `states`, whose rows at the observers are zero and stay zero."""
        W = self.protocol.matrix
        product = csr_times_block(W.indptr, W.indices, W.data, states)
        product[list(self.observers)] = 0.0
        return product

    def mask_laplacian(self, states: FloatArray) -> FloatArray:
        """L′ applied to the columns of `states`: only edges between two hidden parties carry a secret mask."""
        graph = self.protocol.graph
        degrees = graph.degrees.astype(np.float64)
        for v in self.observers:
            degrees[graph.neighbors(v)] -= 1.0
        ones = np.ones(len(graph.indices))
        product = degrees[:, None] * states - csr_times_block(graph.indptr, graph.indices, ones, states)
        product[list(self.observers)] = 0.0
        return product


def transcribe(protocol: Gossip | VaryingGossip | PushSum | GossipDescent) -> Transcript:
    """The transcript of a protocol whose messages do not depend on chance."""
    if isinstance(protocol, VaryingGossip):
        return Transcript.varying(protocol.graphs)
    if isinstance(protocol, GossipDescent):
        return Transcript.varying(graph for graph in protocol.graphs for _ in range(protocol.gossip_rounds))
    if isinstance(protocol, PushSum):
        return Transcript(protocol.n, (np.array(protocol.links),), np.zeros(protocol.rounds, dtype=np.int64))
    return Transcript.synchronous(protocol.graph, protocol.rounds)


def explicit_view(protocol: Gossip, observers: int | str | Iterable[int | str]) -> Seen:
    """Run the protocol symbolically and write down what the observers receive.

    >>> from netdp import graphs
    >>> view = explicit_view(Gossip(graphs.ring(4), rounds=1, sigma=1.0, masks=9.0), observers=[0])
    >>> view.messages.tolist()                        # 1 and 3 send their masked values to 0
    [[0, 1, 0], [0, 3, 0]]
    >>> [noise.known_to for noise in view.noises]     # two masks are left, those on the edges of 0 are known
    [(1,), (2,), (3,), (1, 2), (2, 3)]
    >>> view.noise.tolist()
    [[1.0, 0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 1.0, 0.0, -3.0]]
    """
    if protocol.grid is not None:
        raise Unsupported(
            f"this Gossip rounds to a grid of {protocol.grid:g}, and a linear view speaks of real numbers; account(protocol, "
            "observers) certifies it, and replace(grid=None) is the same in real numbers"
        )
    members = observer_set(protocol.graph, observers)
    n = protocol.graph.n
    masked = protocol.masks > 0
    refreshes = range(1, protocol.rounds) if protocol.refresh > 0 else range(0)
    edges = protocol.graph.edges() if masked else np.empty((0, 2), dtype=np.int64)
    noises = [NoiseTerm("own", (u,)) for u in range(n)]
    noises += [NoiseTerm("mask", (int(u), int(w))) for u, w in edges]
    noises += [NoiseTerm("refresh", (u,), t) for t in refreshes for u in range(n)]
    width = n + len(noises)
    received = transcribe(protocol).received_by(members)
    if (len(received) + 2 * n) * width > MAX_COEFFICIENTS:
        raise Unsupported(
            f"writing out {len(received)} messages over {width} values and noises is too large; "
            "netdp.account handles this size without writing the view out"
        )

    # A state is a row of coefficients per party: first the values, then the noises.
    state = np.zeros((n, width))
    state[:, :n] = np.eye(n)
    state[:, n : 2 * n] = protocol.sigma * np.eye(n)
    for column, (u, w) in enumerate(edges, start=2 * n):
        state[u, column] += np.sqrt(protocol.mask_variance)
        state[w, column] -= np.sqrt(protocol.mask_variance)
    first_refresh = 2 * n + len(edges)
    W, gamma = protocol.matrix.toarray(), protocol.chebyshev
    remembered = state
    rows = []
    for t in range(protocol.rounds):
        if t in refreshes:
            columns = np.arange(n) + first_refresh + (t - 1) * n
            fresh = np.zeros((n, width))
            fresh[np.arange(n), columns] = np.sqrt(protocol.refresh_variance)
            state, remembered = state + fresh, remembered + fresh
        rows.append(state[received[received[:, 0] == t, 1]])
        mixed = W @ state
        if gamma is not None and t > 0:
            mixed = gamma * mixed + (1 - gamma) * remembered
        state, remembered = mixed, state
    seen = np.vstack(rows)

    known = set(members)
    secret = [i for i, noise in enumerate(noises) if known.isdisjoint(noise.known_to)]
    data = seen[:, :n].copy()
    data[:, list(members)] = 0.0
    return Seen(members, data, seen[:, n:][:, secret], tuple(noises[i] for i in secret), received)


@realised.register
def _as_prescribed(
    protocol: Gossip | VaryingGossip | PushSum | GossipDescent, transcript: Any
) -> Gossip | VaryingGossip | PushSum | GossipDescent:
    _same(protocol, transcript, transcribe(protocol))
    return protocol


@realised.register
def _drawn_graph(protocol: ErdosRenyiGossip, transcript: Any) -> Gossip | VaryingGossip:
    """From the transcript of a run, the protocol that ran (`protocol.draw(seed)`, `run.protocol`), or its graphs."""
    graphs = _graphs_of(protocol, transcript)
    if len(graphs) != (protocol.rounds if protocol.varying else 1) or any(g.n != protocol.n for g in graphs):
        raise InvalidValue(
            f"the draw has {graphs[0].n} parties and {len(graphs)} graphs, the protocol {protocol.n} parties and "
            f"{protocol.rounds if protocol.varying else 1}; take it from protocol.draw(seed) or run.transcript"
        )
    return protocol.on(graphs)


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
    drawn = protocol.on(graphs)
    if isinstance(transcript, Transcript):
        _same(drawn, transcript, transcribe(drawn))
    return drawn


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


class Step(NamedTuple):
    """One step backwards: multiply by P_t (`pull` = t), average two coordinates (`pull` = (u, w)) or nothing; then see."""

    pull: int | tuple[int, int] | None
    seen: IntArray


@dataclass(frozen=True, eq=False)
class SequenceView:
    """What colluding `observers` see of a `VaryingGossip`, or of a `RandomizedGossip` that drew `edges`."""

    protocol: VaryingGossip | RandomizedGossip
    observers: tuple[int, ...]
    edges: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.graph.n

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """(n,) which parties are not observers."""
        return hidden_parties(self.n, self.observers)

    def backward(self) -> Iterator[Step]:
        """The steps from the last to the first; steps that change nothing are left out."""
        nobody = np.empty(0, dtype=np.int64)
        if isinstance(self.protocol, VaryingGossip):
            senders: dict[str, IntArray] = {}
            for t in range(self.protocol.rounds - 1, -1, -1):
                graph = self.protocol.graphs[t]
                if graph.digest not in senders:
                    senders[graph.digest] = hidden_senders(graph, self.observers)
                yield Step(t, senders[graph.digest])
            return
        assert self.edges is not None
        hidden = self.hidden.tolist()
        known = set[int]()  # e_u is in the span already, and stays until u's coordinate is averaged
        for u, w in self.edges[::-1].tolist():
            if u < 0 or not (hidden[u] or hidden[w]):
                continue
            if hidden[u] and hidden[w]:
                known -= {u, w}
                yield Step((u, w), nobody)
            elif (sender := u if hidden[u] else w) not in known:
                known.add(sender)
                yield Step(None, np.array([sender]))

    @cached_property
    def reached(self) -> npt.NDArray[np.bool_]:
        """(n,) the hidden parties whose value reaches an observer along some path in time; nobody else's loss is above 0."""
        reached = np.zeros(self.n, dtype=bool)
        for pull, seen in self.backward():
            if isinstance(pull, tuple):
                reached[list(pull)] = reached[list(pull)].any()
            elif pull is not None:
                graph = self.protocol.graphs[pull]  # type: ignore[union-attr]
                spread = reached.copy()
                ends = graph.edges()
                np.logical_or.at(spread, ends[:, 0], reached[ends[:, 1]])
                np.logical_or.at(spread, ends[:, 1], reached[ends[:, 0]])
                reached = spread & self.hidden
            reached[seen] = True
        return reached


def exchanged(protocol: RandomizedGossip, edges: Any) -> IntArray:
    """The realised edges (steps, 2) from an array or a transcript, checked against the protocol.

    >>> from netdp import graphs
    >>> exchanged(RandomizedGossip(graphs.ring(4), steps=2, sigma=1.0), [[1, 0], [0, 2]])
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: step 1 wakes (0, 2), which is no edge of Graph('ring(4)', n=4, m=4)
    """
    pairs = edges.exchanges() if isinstance(edges, Transcript) else np.asarray(edges)
    if pairs.shape != (protocol.steps, 2) or pairs.dtype.kind not in "iu":
        raise InvalidValue(
            f"edges must be whole numbers of shape ({protocol.steps}, 2), one pair per step and (-1, -1) for idle steps, "
            f"or the transcript of a run; got shape {pairs.shape}"
        )
    pairs = np.sort(pairs.astype(np.int64), axis=1)
    known = protocol.graph.edges()
    n = protocol.graph.n
    idle = (pairs == -1).all(axis=1)
    valid = idle | ((pairs[:, 0] >= 0) & np.isin(pairs[:, 0] * n + pairs[:, 1], known[:, 0] * n + known[:, 1]))
    if not valid.all():
        t = int(np.argmin(valid))
        raise InvalidValue(f"step {t} wakes ({pairs[t, 0]}, {pairs[t, 1]}), which is no edge of {protocol.graph!r}")
    return pairs


@dataclass(frozen=True, eq=False)
class MomentumView:
    """What colluding `observers` see of accelerated randomized gossip that drew `edges`."""

    protocol: RandomizedGossip
    observers: tuple[int, ...]
    edges: IntArray

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.n

    @property
    def digest(self) -> bytes:
        """A hash of graph, momentum, edges and observers."""
        about = repr((self.protocol.graph.digest, self.protocol.momentum, self.observers)).encode()
        return hashlib.blake2b(about + np.ascontiguousarray(self.edges, dtype="<i8").tobytes()).digest()

    @property
    def width(self) -> int:
        """x and z of everybody."""
        return 2 * self.n

    @property
    def steps(self) -> int:
        """How many edges were drawn."""
        return len(self.edges)

    @cached_property
    def _hidden(self) -> list[bool]:
        hidden: list[bool] = hidden_parties(self.n, self.observers).tolist()
        return hidden

    def seen(self, t: int) -> IntArray:
        """x of the hidden end of an exchange with an observer."""
        u, w = self.edges[t].tolist()
        if u < 0 or self._hidden[u] == self._hidden[w]:
            return np.empty(0, dtype=np.int64)
        return np.array([u if self._hidden[u] else w])

    def pull(self, t: int, block: FloatArray) -> FloatArray:
        """The transposed drift, then the transposed exchange."""
        (tau, zeta), n = self.protocol.momentum, self.n
        x, z = (1 - tau) * block[:n] + tau * block[n:], (1 - tau) * block[n:] + tau * block[:n]
        return np.asarray(self._exchange(t, np.vstack([x, z]), 0.5, zeta))

    def pull_modular(self, t: int, block: IntArray, prime: int) -> IntArray:
        """The same modulo a prime: τ and ζ are binary fractions."""
        tau, zeta = (_residue(number, prime) for number in self.protocol.momentum)
        rest, n = _residue(1 - self.protocol.momentum[0], prime), self.n
        x = (rest * block[:n] % prime + tau * block[n:] % prime) % prime
        z = (rest * block[n:] % prime + tau * block[:n] % prime) % prime
        return np.asarray(self._exchange(t, np.vstack([x, z]), (prime + 1) // 2, zeta, prime))

    def _exchange(self, t: int, block: Any, half: Any, zeta: Any, prime: int | None = None) -> Any:
        def mod(row: Any) -> Any:
            return row if prime is None else row % prime

        u, w = self.edges[t].tolist()
        n = self.n
        if u < 0 or not (self._hidden[u] or self._hidden[w]):
            return block
        if self._hidden[u] and self._hidden[w]:
            mean = mod(half * mod(block[u] + block[w]))
            shift = mod(zeta * mod(block[n + u] - block[n + w]))
            block[u], block[w] = mod(mean - shift), mod(mean + shift)
            return block
        sender = u if self._hidden[u] else w
        block[sender] = mod(mod(half * block[sender]) - mod(zeta * block[n + sender]))
        return block

    def collapse(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Both numbers start as the noisy value."""
        return np.asarray(block[: self.n] + block[self.n :])

    def reached(self) -> npt.NDArray[np.bool_]:
        """As without momentum: the drift is everybody's own."""
        return SequenceView(self.protocol, self.observers, self.edges).reached


@dataclass(frozen=True, eq=False)
class PushView:
    """What colluding `observers` see of push-sum."""

    protocol: PushSum
    observers: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of parties."""
        return self.protocol.n

    @property
    def digest(self) -> bytes:
        """A hash of links, rounds and observers."""
        about = (self.n, self.protocol.links, self.steps, self.observers)
        return hashlib.blake2b(repr(about).encode()).digest()

    @property
    def width(self) -> int:
        """One number per party."""
        return self.n

    @property
    def steps(self) -> int:
        """Rounds."""
        return self.protocol.rounds

    @cached_property
    def _senders(self) -> IntArray:
        members = set(self.observers)
        return np.array(
            sorted({a for a, b in self.protocol.links if b in members and a not in members}), dtype=np.int64
        )

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.protocol.matrix.T)

    def seen(self, t: int) -> IntArray:
        """Hidden parties with a link to an observer."""
        return self._senders

    def pull(self, t: int, block: FloatArray) -> FloatArray:
        """A_HHᵀ."""
        product = np.asarray(self._transposed @ block)
        product[list(self.observers)] = 0.0
        return product

    def pull_modular(self, t: int, block: IntArray, prime: int) -> IntArray:
        """The same modulo a prime: party j's row is the mean of its own and its receivers' rows."""
        ones = sparse.csr_array(
            (np.ones(self._transposed.nnz, dtype=np.int64), self._transposed.indices, self._transposed.indptr),
            shape=self._transposed.shape,
        )
        inverse = np.array([pow(int(parts), -1, prime) for parts in self.protocol.splits], dtype=np.int64)
        product = np.asarray(ones @ block) % prime * inverse[:, None] % prime
        product[list(self.observers)] = 0
        return product

    def collapse(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The state is the noisy value."""
        return block

    def reached(self) -> npt.NDArray[np.bool_]:
        """Parties from which links lead to an observer within the rounds."""
        links = np.array(self.protocol.links)
        hidden = hidden_parties(self.n, self.observers)
        reached = np.zeros(self.n, dtype=bool)
        for _ in range(self.steps):
            following = reached.copy()
            np.logical_or.at(following, links[:, 0], reached[links[:, 1]])
            following[self._senders] = True
            reached = following & hidden
        return reached


def _residue(number: float, prime: int) -> int:
    top, bottom = float(number).as_integer_ratio()
    return top * pow(bottom, -1, prime) % prime
