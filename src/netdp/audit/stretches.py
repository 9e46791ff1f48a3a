"""Walks as observers really see them: stretches whose path is secret, and how often a target may have been visited in each.

A *stretch* is what lies between two visits of the observers to a token, before the first or after the last. They know how many
steps it has (the number of the step is public) and by how much the token changed in it; of the path they know at most its ends:

    the first step of a stretch    the observer before it drew its user, unless sender="hidden"
    the last step of a stretch     the observer after it sees who brings the token, if sender="known"
    the last step of all           everybody knows its user, if release="named"

On a graph, senders and the last holder are known. Names come from the transcript of the run, at these steps only.

**How often was the target visited?** All else being equal, that number k is all that matters of the path.

*On the complete graph* steps are drawn independently: every step of a stretch whose user is not known is the target's with
probability q = w_u/(1 − w_O). So k is the number of known steps that are the target's plus a binomial number.

*On a graph* the path of m steps from a to b, given that it met no observer, is a bridge of the walk. Cut it at the visits to
the target u. With h_a(t): from a, first at u at time t; r(t): first back at u after t steps; g_b(t): from u, at b after t steps
and not at u in between; all without meeting an observer:

    P(k visits, at b at time m−1) = (h_a ∗ r ∗ … ∗ r ∗ g_b)(m−1),  k−1 returns;     P(0 visits) by the walk that also avoids u.

The first stretch starts from the walk's long-run law instead of a known a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.protocols.walk import KNOWN_ENDS
from netdp.simulate.run import Run

UNKNOWN = -1
"""In place of a user whose name the observers do not learn."""
_TAIL = 1e-13
"""Numbers of visits that are less likely than this are left out: scores need not be exact to be scores."""
_SHORTEST = 256


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of one or many runs, one row each.

    run, token   where it happened
    steps        how many steps it has, at least 1
    first, last  whose its first and last steps are; `UNKNOWN` where the observers do not learn it
    opens        whether it is the beginning of the walk
    closes       whether it ends with the release
    change       (rows, d) by how much the token changed
    """

    run: IntArray
    token: IntArray
    steps: IntArray
    first: IntArray
    last: IntArray
    opens: BoolArray
    closes: BoolArray
    change: FloatArray

    @classmethod
    def together(cls, parts: Sequence[Stretches]) -> Stretches:
        """Those of many runs."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def known(self, target: int) -> tuple[IntArray, IntArray]:
        """For every stretch: how many of its steps have a known user, and how many of these are the target's."""
        same = (self.steps == 1) & (self.first != UNKNOWN)  # one step is first and last
        last = np.where(same, UNKNOWN, self.last)
        count = (self.first != UNKNOWN).astype(np.int64) + (last != UNKNOWN)
        return count, (self.first == target).astype(np.int64) + (last == target)

    def sums(self, scores: FloatArray, runs: int) -> FloatArray:
        """(runs,) the scores of all stretches of a run added up."""
        return np.asarray(np.bincount(self.run, weights=scores, minlength=runs), dtype=np.float64)


def cut(protocol: Any, run: Run, number: int = 0) -> Stretches:
    """The stretches of a run, which gets this number; from the record of its observers and what the channel shows of the path.

    >>> from netdp.protocols import WalkSum
    >>> from netdp.simulate import simulate
    >>> walk = WalkSum(4, steps=12, sigma=1.0, sender="receiver-known")
    >>> run = simulate(walk, [0.0] * 4, seed=2, record=[0])
    >>> run.transcript.paths[0].tolist()
    [0, 3, 1, 0, 2, 1, 0, 2, 0, 2, 2, 3]
    >>> found = cut(walk, run)
    >>> found.steps.tolist(), found.first.tolist(), found.last.tolist()
    ([2, 2, 1, 3], [3, 2, 2, 2], [-1, -1, -1, -1])
    """
    record: Any = run.record
    ends = KNOWN_ENDS[getattr(protocol, "sender", "known")]
    named = getattr(protocol, "release", "named") == "named"
    parts = []
    transcript: Any = run.transcript
    for token, path in enumerate(transcript.paths):
        mine = record.visits[:, 0] == token
        at = record.visits[mine, 1]
        begins, stops = np.append(0, at + 1), np.append(at, len(path))
        change = np.empty((len(at) + 1, record.release.shape[1]))
        change[:-1], change[-1] = record.arrivals[mine], record.release[token]
        change[1:] -= (record.arrivals + record.contributions + record.noises)[mine]
        # what the token held before a first, or got after a last, step of the observers' is theirs: no stretch is there
        kept = np.flatnonzero(stops > begins)
        begins, stops, size = begins[kept], stops[kept], len(kept)
        opens, closes = begins == 0, stops == len(path)
        first = np.where(opens, UNKNOWN, path[begins]) if ends >= 1 else np.full(size, UNKNOWN)
        last = np.where(closes if named else False, path[stops - 1], UNKNOWN)
        if ends == 2:
            last = np.where(closes, last, path[stops - 1])
        parts.append(
            Stretches(
                np.full(size, number), np.full(size, token), stops - begins, first, last, opens, closes, change[kept]
            )
        )
    return parts[0] if len(parts) == 1 else Stretches.together(parts)


class Draws:
    """The number of visits to the target on the complete graph, stretch by stretch."""

    def __init__(self, chances: FloatArray, observers: tuple[int, ...], target: int) -> None:
        self.target = target
        hidden = np.delete(np.arange(len(chances)), list(observers))
        self.share = min(1.0, float(chances[target] / chances[hidden].sum()))
        """q: how likely a step outside the observers' is the target's."""

    def logs(self, found: Stretches) -> FloatArray:
        """(stretches, K + 1) the logarithm of the probability of k = 0 … K visits."""
        from scipy.special import gammaln, xlog1py, xlogy

        count, mine = found.known(self.target)
        # few kinds of stretches among many
        kinds, which = np.unique(3 * (found.steps - count) + mine, return_inverse=True)
        free, mine = np.divmod(kinds, 3)
        longest = int(free.max(initial=0))
        mean = longest * self.share
        most = min(longest, int(mean + 8 * np.sqrt(mean) + 20)) + 2
        table = gammaln(np.arange(longest + 1) + 1.0)
        k = np.arange(most + 1) - mine[:, None]
        fits = (k >= 0) & (k <= free[:, None])
        j = np.where(fits, k, 0)
        rest = free[:, None] - j
        chance = table[free][:, None] - table[j] - table[rest] + xlogy(j, self.share) + xlog1py(rest, -self.share)
        return np.asarray(np.where(fits, chance, -np.inf)[which])


class Bridges:
    """The number of visits to the target on a graph, stretch by stretch."""

    def __init__(self, transition: Any, start: FloatArray, observers: tuple[int, ...], target: int) -> None:
        P = transition.toarray()
        hidden = np.delete(np.arange(len(P)), list(observers))
        self._place = {int(user): place for place, user in enumerate(hidden)}
        self._within = P[np.ix_(hidden, hidden)]
        self._target = self._place[target]
        border = np.flatnonzero(P[list(observers)][:, hidden].sum(axis=0) > 0)
        self._starts = np.vstack([np.asarray(start)[hidden], np.eye(len(hidden))[border]])
        self._start = {UNKNOWN: 0} | {int(hidden[place]): row for row, place in enumerate(border, start=1)}
        self._laws: dict[tuple[int, int, int], FloatArray] = {}
        self._tables: dict[int, _Ways] = {}

    def logs(self, found: Stretches) -> FloatArray:
        """(stretches, K + 1) the logarithm of the probability of k = 0 … K visits."""
        # one number for what a stretch is like: many are alike
        users, length = int(found.last.max()) + 1, int(found.steps.max()) + 1
        kinds, which = np.unique(((found.first + 1) * users + found.last) * length + found.steps, return_inverse=True)
        ends, steps = np.divmod(kinds, length)
        first, last = np.divmod(ends, users)
        laws = [self.law(*kind) for kind in zip((first - 1).tolist(), last.tolist(), steps.tolist(), strict=True)]
        table = np.zeros((len(laws), max(len(law) for law in laws)))
        for row, law in zip(table, laws, strict=True):
            row[: len(law)] = law
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table)[which])

    def law(self, first: int, last: int, steps: int) -> FloatArray:
        """P(k visits to the target), k = 0, 1, …, on a bridge of so many steps from `first` (or from the start) to `last`."""
        key = first, last, steps
        if key not in self._laws:
            row, end, time = self._start[first], self._place[last], steps - 1
            ways = self._ways(steps)
            came = ways.came[row][:, :steps]
            if end == self._target:
                law = np.append(0.0, came[:, time])
            else:
                law = np.append(ways.around[time, row, end], came @ ways.leave[time::-1, end])
            law = np.maximum(law, 0.0)
            law /= law.sum()
            self._laws[key] = law[: int(np.flatnonzero(law > _TAIL)[-1]) + 1]
        return self._laws[key]

    def _ways(self, steps: int) -> _Ways:
        """Tables for so many steps, and for up to twice as many: which ones depends on nothing else, nor do their last digits."""
        length = max(_SHORTEST, 1 << (steps - 1).bit_length())
        if length not in self._tables:
            self._tables[length] = _Ways.of(self._within, self._starts, self._target, length)
        return self._tables[length]


@dataclass(frozen=True, eq=False)
class _Ways:
    """Walks that meet no observer, by time.

    around   (times, starts, users) from a start, never at the target so far
    leave    (times, users) from the target, not back at it so far
    came     per start (k, times): at the target for the k-th time, k = 1, 2, …
    """

    around: FloatArray
    leave: FloatArray
    came: list[FloatArray]

    @classmethod
    def of(cls, Q: FloatArray, starts: FloatArray, u: int, length: int) -> _Ways:
        avoid = Q.copy()
        avoid[u] = avoid[:, u] = 0.0
        into = Q[:, u].copy()
        into[u] = 0.0
        around = np.zeros((length, *starts.shape))
        hits = np.zeros((length, len(starts)))
        around[0], hits[0] = starts, starts[:, u]
        around[0, :, u] = 0.0
        leave, back = np.zeros((length, len(Q))), np.zeros(length)
        leave[0, u] = 1.0
        leave[1], back[1] = Q[u], Q[u, u]
        leave[1, u] = 0.0
        for t in range(1, length):
            around[t], hits[t] = around[t - 1] @ avoid, around[t - 1] @ into
            if t > 1:
                leave[t], back[t] = leave[t - 1] @ avoid, leave[t - 1] @ into
        return cls(around, leave, [_visits(hits[:, row], back) for row in range(len(starts))])


def _visits(first: FloatArray, back: FloatArray) -> FloatArray:
    """(k, times): the probability of being at u for the k-th time, k = 1, 2, …, at each time."""
    length = len(first)
    size = 2 * length
    turn, now = np.fft.rfft(back, size), np.fft.rfft(first, size)
    rows: list[FloatArray] = []
    while len(rows) < length:
        row = np.maximum(np.fft.irfft(now, size)[:length], 0.0)
        rows.append(row)
        if row.sum() < _TAIL:
            break
        # cut off what lies beyond the table, or it would come round again
        now = np.fft.rfft(row, size) * turn
    return np.array(rows)
