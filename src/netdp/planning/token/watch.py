"""How far a search for noise has come, where nobody knows how many losses it will take.

A plan has so many ways to compare, and each is a search of about `_ABOUT` losses. A search that takes more waits near its
end, one that takes fewer jumps; what is shown never runs backwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from netdp.numerics.arrays import Progress

_ABOUT = 8
_MOST = 0.95  # of a part, while it is not known to be done


@dataclass
class Watch:
    """Tells `progress`, if there is any, the hundredths that are done of `parts` searches.

    >>> watch = Watch(lambda done, total: print(f"{done} of {total}"), parts=2)
    >>> watch.inside(1, 2); watch.one(); watch.next()
    3 of 100
    6 of 100
    50 of 100
    """

    progress: Progress | None = None
    parts: int = 1
    done: int = 0
    losses: int = 0

    def inside(self, done: int, total: int) -> None:
        """So much of the present loss is computed."""
        self._tell(done / total)

    def one(self) -> None:
        """A loss is computed."""
        self.losses += 1
        self._tell(0.0)

    def next(self) -> None:
        """A part is done."""
        self.done, self.losses = self.done + 1, 0
        self._tell(0.0)

    def _tell(self, more: float) -> None:
        if self.progress is not None:
            share = min((self.losses + more) / _ABOUT, _MOST)
            self.progress(int(100 * (self.done + share) / self.parts), 100)


__all__ = ["Watch"]
