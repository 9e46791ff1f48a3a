"""The linear-Gaussian view, written out: y = A x + B z, every noise with an identity.

x are the parties' values, z independent standard normal noises. The same noise seen twice is the same column of B; a
mask is one noise with two places. What the observers know (their own values, their own noises, the masks of their own
edges) is removed. This is the reference: it is built by running the protocol symbolically, message by message, and it
is meant for instances small enough to write out. `GossipView` is the same view in structured form, for any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import Gossip

from .observers import observer_set
from .transcript import Transcript, transcribe

# Above this many coefficients a written-out view costs more than a gigabyte; GossipView has no such limit.
MAX_COEFFICIENTS = 10**8


@dataclass(frozen=True)
class Noise:
    """One independent Gaussian noise: what it is for, who knows it, since when."""

    kind: str  # "own" | "mask" | "refresh"
    known_to: tuple[int, ...]
    round: int = 0


@dataclass(frozen=True, eq=False)
class LinearGaussianView:
    """What `observers` see about the others: y = A x + B z, what they know themselves removed.

    `data` is A (messages × parties, the observers' columns are zero), `noise` is B (messages × noises, unit
    variance), `noises` names the columns of B, `messages` the rows (round, sender, receiver).
    """

    observers: tuple[int, ...]
    data: FloatArray
    noise: FloatArray
    noises: tuple[Noise, ...]
    messages: IntArray


def explicit_view(
    protocol: Gossip, observers: int | str | Iterable[int | str], transcript: Transcript | None = None
) -> LinearGaussianView:
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
    members = observer_set(protocol.graph, observers)
    transcript = transcribe(protocol) if transcript is None else transcript
    n = protocol.graph.n
    masked = protocol.masks > 0
    refreshes = range(1, protocol.rounds) if protocol.refresh > 0 else range(0)
    edges = protocol.graph.edges() if masked else np.empty((0, 2), dtype=np.int64)
    noises = [Noise("own", (u,)) for u in range(n)]
    noises += [Noise("mask", (int(u), int(w))) for u, w in edges]
    noises += [Noise("refresh", (u,), t) for t in refreshes for u in range(n)]
    width = n + len(noises)
    received = transcript.received_by(members)
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
    W, gamma = protocol.matrix.toarray(), protocol.gamma
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
    return LinearGaussianView(members, data, seen[:, n:][:, secret], tuple(noises[i] for i in secret), received)
