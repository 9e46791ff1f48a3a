"""Network shuffling as the curator sees it, and as it really was.

`ShuffledView` is what reaches the curator: reports, and the user who handed each of them over. Nothing in it depends on the
origins except through where the walks ended: the reports of one user lie in random order, and a dummy looks like a report.

`ShuffleTranscript` is the truth that nobody in the protocol holds: whose report each item is. The simulator keeps it so that
an attack on the view can be scored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import Int32Array


@dataclass(frozen=True, eq=False)
class ShuffledView:
    """What the curator receives.

    n         how many users there are
    holders   (items,) who handed over each item, in increasing order
    reports   (items, …) the items themselves, decrypted

    >>> view = ShuffledView(3, np.array([0, 0, 2]), np.array([1.5, 0.5, 2.5]))
    >>> view.handed_by(0).tolist(), view.counts.tolist()
    ([1.5, 0.5], [2, 0, 1])
    """

    n: int
    holders: Int32Array = field(repr=False)
    reports: npt.NDArray[Any] = field(repr=False)

    def __post_init__(self) -> None:
        holders = np.array(self.holders, dtype=np.int32)
        if holders.ndim != 1 or (holders.size and (holders.min() < 0 or holders.max() >= self.n)):
            raise InvalidValue(f"holders must be a list of users 0 … {self.n - 1}")
        if (np.diff(holders) < 0).any():
            raise InvalidValue("holders must come in increasing order: the curator knows no other order")
        if len(self.reports) != len(holders):
            raise InvalidValue(f"there are {len(holders)} holders and {len(self.reports)} reports; give one for each")
        holders.setflags(write=False)
        object.__setattr__(self, "holders", holders)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(n,) how many items each user handed over."""
        return np.bincount(self.holders, minlength=self.n)

    def handed_by(self, user: int) -> npt.NDArray[Any]:
        """The items that one user handed over."""
        first, last = np.searchsorted(self.holders, [user, user + 1])
        return self.reports[first:last]


@dataclass(frozen=True, eq=False)
class ShuffleTranscript:
    """Where every report ended up, and what was made of it: for scoring attacks, in nobody's view.

    positions  (n,) the user who held the report of user u when the walks ended
    holders    (items,) who handed over each item, in increasing order
    origins    (items,) whose report it was; −1 for a dummy

    >>> t = ShuffleTranscript(np.array([0, 0, 2]), holders=np.array([0, 1, 2]), origins=np.array([1, -1, 2]))
    >>> t.dummies.tolist(), t.dropped.tolist()            # user 1 held nothing; user 0 held two and kept back one
    ([1], [0])
    """

    positions: Int32Array = field(repr=False)
    holders: Int32Array = field(repr=False)
    origins: Int32Array = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("positions", "holders", "origins"):
            array = np.array(getattr(self, name), dtype=np.int32)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        real = self.origins >= 0
        if not np.array_equal(self.positions[self.origins[real]], self.holders[real]):
            raise InvalidValue("an item is handed over by somebody who does not hold it")

    @property
    def n(self) -> int:
        """How many users there are."""
        return len(self.positions)

    @property
    def dummies(self) -> Int32Array:
        """The users who held no report and sent a dummy."""
        return self.holders[self.origins < 0]

    @property
    def dropped(self) -> Int32Array:
        """The users whose report was never handed over."""
        missing = np.ones(self.n, dtype=bool)
        missing[self.origins[self.origins >= 0]] = False
        return np.flatnonzero(missing).astype(np.int32)

    def view(self, reports: npt.NDArray[Any], dummies: npt.NDArray[Any] | None = None) -> ShuffledView:
        """The curator's view when user u wrote reports[u] and the user dummies[i] of this transcript sends dummies[i]."""
        if len(reports) != self.n:
            raise InvalidValue(f"there are {self.n} users and {len(reports)} reports; give one for each")
        items = np.asarray(reports)[self.origins]
        places = np.flatnonzero(self.origins < 0)
        if len(places):
            if dummies is None or len(dummies) != len(places):
                given = "none" if dummies is None else len(dummies)
                raise InvalidValue(f"{len(places)} users send a dummy; got {given}")
            items[places] = dummies
        return ShuffledView(self.n, self.holders, items)
