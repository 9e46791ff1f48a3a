"""What observers see of tokens on known paths, cut into independent pieces.

Subtracting what the observers added themselves, two consecutive readings of a token differ by the sum of all that others added
in between, so the view is the list of increments over the *segments* between the observers' visits:

    increment of segment s = Σ contributions in s + N(0, V_s),   V_s = Σ of the variances of the noises in s.

Proof: docs/proofs/token.md#known-path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.families.token.path import PathSum, UserArray, checked_paths
from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols.views import _same, _unlike, observer_set, realised


@dataclass(frozen=True, eq=False)
class TokenTranscript:
    """Who handed a token to whom, and when: message t is the one that brings a token to its holder of step t.

    The holder of step 0 receives from nobody, and a token that stays where it is needs no message.

    >>> t = TokenTranscript(4, [[0, 1, 1, 3], [2, 3]])
    >>> t.rounds, len(t), t.received_by([1, 3]).tolist()      # columns: step, sender, receiver
    (4, 3, [[1, 0, 1], [1, 2, 3], [3, 1, 3]])
    """

    n: int
    paths: tuple[UserArray, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", checked_paths(self.n, self.paths))

    @property
    def rounds(self) -> int:
        """The number of steps of the longest path."""
        return max(len(path) for path in self.paths)

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(path[1:] != path[:-1])) for path in self.paths)

    def received_by(self, observers: npt.ArrayLike) -> IntArray:
        """What the observers together receive: rows (step, sender, receiver), in time order, then by token."""
        members = np.zeros(self.n, dtype=bool)
        members[np.asarray(observers, dtype=np.int64)] = True
        blocks = []
        for path in self.paths:
            t = np.flatnonzero(members[path[1:]] & (path[1:] != path[:-1])) + 1
            blocks.append(np.column_stack([t, path[t - 1], path[t]]).astype(np.int64))
        rows = np.vstack(blocks)
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenTranscript):
            return NotImplemented
        return (
            self.n == other.n
            and len(self.paths) == len(other.paths)
            and all(np.array_equal(a, b) for a, b in zip(self.paths, other.paths, strict=True))
        )


@dataclass(frozen=True, eq=False)
class Segments:
    """The hidden steps of all tokens, each with its segment.

    users      who holds the token at each hidden step that carries data
    places     the segment of each of these steps
    variances  V_s of every segment, in units of σ²; a segment without steps has none
    """

    users: IntArray
    places: IntArray
    variances: FloatArray


@dataclass(frozen=True, eq=False)
class TokenView:
    """What colluding `observers` see of tokens on known paths.

    paths      one per token
    carries    per token: which steps carry data
    shares     per token: the variance of the noise of every step, in units of σ²
    closing    the variance of the noise that the last holder of each token adds before the release, in units of σ²

    >>> view = TokenView.of(PathSum(4, [[1, 2, 0, 2, 2, 3]], sigma=1.0, closing=4.0), [0])
    >>> s = view.segments
    >>> s.users.tolist(), s.places.tolist(), s.variances.tolist()
    ([1, 2, 2, 2, 3], [0, 0, 1, 1, 1], [2.0, 7.0])
    """

    n: int
    paths: tuple[UserArray, ...]
    carries: tuple[BoolArray, ...]
    shares: tuple[FloatArray, ...]
    closing: float
    observers: tuple[int, ...]

    @classmethod
    def of(cls, protocol: PathSum | RingSum, observers: int | Iterable[int]) -> TokenView:
        """The view of the named observers."""
        members = observer_set(protocol.n, observers)
        if isinstance(protocol, RingSum):
            path = ring_path(protocol)
            everywhere = np.ones(len(path), dtype=bool)
            shares = (protocol.hop_noise / protocol.sigma) ** 2
            closing = (protocol.closing_noise / protocol.sigma) ** 2
            return cls(protocol.n, (path,), (everywhere,), (shares,), closing, members)
        ones = tuple(np.ones(len(path)) for path in protocol.paths)
        return cls(protocol.n, protocol.paths, protocol.carries, ones, protocol.closing, members)

    @cached_property
    def hidden(self) -> BoolArray:
        """(n,) which users are not observers."""
        mask = np.ones(self.n, dtype=bool)
        mask[list(self.observers)] = False
        return mask

    @cached_property
    def segments(self) -> Segments:
        """The cut. Sums run over the noises of a segment alone, so a segment without noise has variance exactly 0."""
        users, places, variances = [], [], []
        first = 0
        for path, carries, shares in zip(self.paths, self.carries, self.shares, strict=True):
            secret = self.hidden[path]
            place = np.cumsum(~secret)  # how often O has held the token so far
            length = int(place[-1]) + 1
            size = np.bincount(place[secret], weights=shares[secret], minlength=length)
            if secret[-1]:
                size[-1] += self.closing
            kept = secret & carries
            users.append(path[kept].astype(np.int64))
            places.append(place[kept] + first)
            variances.append(size)
            first += length
        return Segments(np.concatenate(users), np.concatenate(places), np.concatenate(variances))


def ring_path(protocol: RingSum | RingHistogram) -> UserArray:
    """Who holds the token at each hop: 0, 1, …, n−1, K times over."""
    return np.tile(np.arange(protocol.n, dtype=np.int32), protocol.rounds)


realised.refuse(
    WalkDescent,
    WalkHistogram,
    why="a walk that has become public is accounted for sums only (WalkSum, GraphWalkSum); account before the run",
)

realised.refuse(RingDescent, why="the ring is public and nothing is left to chance; account without transcript")


@realised.register
def _fixed_path(protocol: RingSum | RingHistogram | PathSum, transcript: Any) -> RingSum | RingHistogram | PathSum:
    paths = protocol.paths if isinstance(protocol, PathSum) else (ring_path(protocol),)
    _same(protocol, transcript, TokenTranscript(protocol.n, paths))
    return protocol


def _paths_taken(protocol: Any, transcript: Any) -> TokenTranscript:
    if isinstance(transcript, PathSum):  # run.protocol
        transcript = TokenTranscript(transcript.n, transcript.paths)
    if not isinstance(transcript, TokenTranscript):
        raise _unlike(protocol, transcript)
    return transcript


@realised.register
def _drawn_path(protocol: WalkSum | GraphWalkSum, transcript: Any) -> PathSum:
    transcript = _paths_taken(protocol, transcript)
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
    return path_sum(protocol, transcript.paths)


def path_sum(protocol: WalkSum | GraphWalkSum, paths: tuple[UserArray, ...]) -> PathSum:
    """The walk once its paths are drawn, as a protocol on public paths."""
    closing, law = getattr(protocol, "closing", 0.0), getattr(protocol, "law", "gaussian")
    return PathSum(
        protocol.n, paths, protocol.sigma, closing, protocol.contributions, protocol.sensitivity, law,
        protocol.grid, protocol.dimension,
    )  # fmt: skip


@realised.register
def _drawn_orders(protocol: SecretRingSum, transcript: Any) -> PathSum:
    transcript = _paths_taken(protocol, transcript)
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
