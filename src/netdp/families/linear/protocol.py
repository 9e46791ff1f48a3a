"""Linear-Gaussian views, written out: y = A x + B z, every noise with an identity.

x are contributions (one or more per party), z independent standard normal noises. A row is a message; it has readers. The same
noise seen twice is the same column of B; a mask is one noise with two places. What observers know themselves (their own
contributions, the noises known to them) is removed before anything is computed.

`LinearGaussianView` is a protocol of its own: whoever can write down A and B for a run can account for it. `LinearProtocol` is
the base class for protocols that are described that way (docs/howto/extending.md). For gossip, `explicit_view` writes the messages
down by running the protocol symbolically: the reference for small instances, beside `GossipView`, which has no size limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count, scale
from netdp.protocols.base import Protocol
from netdp.protocols.views import Seen


@dataclass(frozen=True, eq=False)
class LinearGaussianView(Protocol):
    """All messages of a run, y = A x + B z, who reads them, and who knows which noise.

    Parameters
    ----------
    n : parties.
    data : A, one row per message, one column per contribution.
    noise : B, one row per message, one column per independent standard normal noise.
    readers : per message, the parties that read it; None for a message that everybody reads.
    known : per noise, the parties that know it; by default, if there are n noises, noise u is known to party u.
    owners : per contribution, its party; by default contribution u is party u's.
    reading : (1, messages) or (n, messages): how the parties form their answer from the messages; None if nobody does.
    sensitivity : Δ, the largest L2 distance of two values that one contribution can take.

    Two parties hand their noisy values to a third, which publishes the sum:

    >>> A = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]])
    >>> view = LinearGaussianView(3, data=A, noise=2.0 * A, readers=[(2,), (2,), None])
    >>> import netdp
    >>> netdp.account(view, [2]).mu.round(3).tolist(), netdp.account(view, [1]).mu.round(3).tolist()
    ([0.5, 0.5, nan], [0.354, nan, 0.354])
    """

    kind: ClassVar[str] = "linear-gaussian-view"
    n: int
    data: FloatArray
    noise: FloatArray
    readers: tuple[tuple[int, ...] | None, ...]
    known: tuple[tuple[int, ...], ...] | None = None
    owners: IntArray | None = None
    reading: FloatArray | None = None
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        n = count("n", self.n)
        data, noise = _matrix("data", self.data), _matrix("noise", self.noise)
        if len(data) != len(noise):
            raise InvalidValue(f"data has {len(data)} messages and noise {len(noise)}; they must agree")
        owners = _owners(n, data.shape[1], self.owners)
        readers = _sets("readers", n, self.readers, len(data), everybody=True)
        known = self.known
        if known is None:
            if noise.shape[1] != n:
                raise InvalidValue(
                    f"there are {noise.shape[1]} noises and {n} parties: say who knows each noise, known=[(0,), …]"
                )
            known = tuple((u,) for u in range(n))
        reading = None if self.reading is None else _matrix("reading", self.reading)
        if reading is not None and (reading.shape[1] != len(data) or len(reading) not in (1, n)):
            raise InvalidValue(f"reading must have shape (1 or {n}, {len(data)}), got {reading.shape}")
        self._set(
            n=n,
            data=data,
            noise=noise,
            owners=owners,
            readers=readers,
            known=_sets("known", n, known, noise.shape[1], everybody=False),
            reading=reading,
            sensitivity=scale("sensitivity", self.sensitivity),
        )

    def view(self) -> LinearGaussianView:
        """All messages of a run: itself."""
        return self

    def seen_by(self, observers: tuple[int, ...]) -> Seen:
        """What these parties see together."""
        members = set(observers)
        assert self.owners is not None
        assert self.known is not None
        rows = [i for i, who in enumerate(self.readers) if who is None or members & set(who)]
        secret = [k for k, who in enumerate(self.known) if members.isdisjoint(who)]
        data = self.data[rows].copy()
        data[:, np.isin(self.owners, observers)] = 0.0
        return Seen(tuple(observers), data, self.noise[np.ix_(rows, secret)], owners=self.owners)

    def describe(self) -> str:
        return (
            f"{self.n:,} parties; {len(self.data)} messages, linear in {self.data.shape[1]} contributions and "
            f"{self.noise.shape[1]} Gaussian noises, Δ={self.sensitivity:g}"
        )

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, LinearGaussianView) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        arrays = (self.data, self.noise, self.owners, self.reading)
        parts = tuple(None if a is None else (a.shape, a.tobytes()) for a in arrays)
        return self.n, parts, self.readers, self.known, self.sensitivity


class LinearProtocol(Protocol):
    """Base class of protocols all of whose messages are linear in values and Gaussian noises: state them as matrices.

    A subclass is a frozen dataclass with `n` (a field or a property) and `view()`. It is then accounted (exactly), simulated
    and its error predicted from the one object, so they cannot drift apart; with a field `sigma`, calibrated too.
    """

    @abstractmethod
    def view(self) -> LinearGaussianView:
        """All messages of a run."""


def _matrix(name: str, value: Any) -> FloatArray:
    try:
        matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} must be a matrix of numbers, got {value!r}") from None
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
        raise InvalidValue(f"{name} must be a matrix of finite numbers with rows and columns, got shape {matrix.shape}")
    matrix.flags.writeable = False
    return matrix


def _owners(n: int, columns: int, given: npt.ArrayLike | None) -> IntArray:
    if given is None:
        if columns != n:
            raise InvalidValue(f"there are {columns} contributions and {n} parties: say whose each is, owners=[0, …]")
        return np.arange(n)
    owners = np.array(given)
    if owners.shape != (columns,) or owners.dtype.kind not in "iu" or owners.min() < 0 or owners.max() >= n:
        raise InvalidValue(f"owners must name one of the parties 0 to {n - 1} per contribution, got {given!r}")
    owners = owners.astype(np.int64)
    owners.flags.writeable = False
    return owners


def _sets(name: str, n: int, given: Any, length: int, *, everybody: bool) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != length:
        raise InvalidValue(f"{name} must have {length} entries, each a list of parties, got {given!r}")
    made: list[tuple[int, ...] | None] = []
    for entry in given:
        if entry is None and everybody:
            made.append(None)
            continue
        members = [entry] if isinstance(entry, int | np.integer) else entry
        if not isinstance(members, Iterable) or not all(
            isinstance(v, int | np.integer) and 0 <= v < n for v in members
        ):
            raise InvalidValue(f"{name}: {entry!r} must be a list of parties from 0 to {n - 1}")
        made.append(tuple(sorted({int(v) for v in members})))
    return tuple(made)
