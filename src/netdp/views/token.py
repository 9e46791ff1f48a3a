"""What observers see of tokens on known paths, cut into independent pieces.

Observers O know their own contributions and noises. They read a token each time one of them holds it, and everybody reads it
when it is released. Subtracting what O added itself, two consecutive readings differ by the sum of all that users outside O
added in between. Readings determine these differences and the other way round (the token starts at 0), so *the view is the
list of increments over the maximal runs of steps at users outside O*: before the first visit of O, between visits, and after
the last one up to the release. Runs share no step, so their noises are independent:

    increment of segment s = Σ contributions in s + N(0, V_s),   V_s = Σ of the variances of the noises in s.

The closing noise is drawn by the last holder: it belongs to the last segment if the last holder is outside O, and is known
otherwise (then there is nothing after O's last visit).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from netdp.errors import Unsupported
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols.path import PathSum, UserArray, checked_paths
from netdp.protocols.ring import RingHistogram, RingSum

from .observers import observer_set

# Above this many coefficients a written-out view costs more than a gigabyte; TokenView itself has no such limit.
MAX_COEFFICIENTS = 10**8


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
class WrittenOut:
    """The same view as y = A x + B z: one row per reading, one column of A per contribution, of B per noise (σ = 1).

    `owners` names the user of each column of A; rows are the readings at O's visits and the releases, token by token.
    """

    data: FloatArray
    noise: FloatArray
    owners: IntArray


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

    def written_out(self) -> WrittenOut:
        """The reference: every reading over all contributions and noises, as they stand. For small instances."""
        rows = [int((~self.hidden[path]).sum()) + 1 for path in self.paths]
        steps = [len(path) for path in self.paths]
        if sum(rows) * (sum(steps) + len(rows)) > MAX_COEFFICIENTS:
            raise Unsupported(
                f"writing out {sum(rows)} readings over {sum(steps)} steps is too large; "
                "netdp.account handles this size without writing the view out"
            )
        data = np.zeros((sum(rows), sum(steps)))
        noise = np.zeros((sum(rows), sum(steps) + len(rows)))
        known_data = np.zeros(sum(steps), dtype=bool)
        known_noise = np.zeros(sum(steps) + len(rows), dtype=bool)
        row = first = 0
        for k, (path, carries, shares) in enumerate(zip(self.paths, self.carries, self.shares, strict=True)):
            columns = np.arange(first, first + len(path))
            own = ~self.hidden[path]
            known_data[columns] = own | ~carries
            known_noise[columns] = own
            known_noise[sum(steps) + k] = own[-1]
            for t in [*np.flatnonzero(own).tolist(), len(path)]:
                data[row, columns[:t]] = 1.0
                noise[row, columns[:t]] = np.sqrt(shares[:t])
                if t == len(path):
                    noise[row, sum(steps) + k] = np.sqrt(self.closing)
                row += 1
            first += len(path)
        owners = np.concatenate(self.paths).astype(np.int64)
        return WrittenOut(data[:, ~known_data], noise[:, ~known_noise], owners[~known_data])


def ring_path(protocol: RingSum | RingHistogram) -> UserArray:
    """Who holds the token at each hop: 0, 1, …, n−1, K times over."""
    return np.tile(np.arange(protocol.n, dtype=np.int32), protocol.rounds)
