"""Attacks on sums and histograms that tokens collect: the likelihood ratio of what the observers read.

Observers of a walk see *stretches*: how many steps lie between two of their visits, by how much the token changed, and at most
whose the first and the last of these steps were (`Stretches`, `cut`). The score of a stretch is a sum over the secret number of
the target's visits, whose law is binomial on the complete graph (`Draws`) and that of a bridge on any other (`Bridges`).
Where a score is not exactly the likelihood ratio, it proves what it proves all the same.

Formulas: docs/proofs/token.md#token-attacks.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from netdp.audit.attack import Attack, Columns, System, attacks, batch_seed, canaries
from netdp.audit.canaries import from_numbers
from netdp.audit.linear import _SIGNS, FAR, LinearAttack
from netdp.audit.noise import _ANSWERS, Sampler, _ahead, _gaussian, _steps, noises
from netdp.audit.samples import finite_law, laplace_law, laplace_share_law
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingHistogram, RingSum, SecretRingSum, ring_draw
from netdp.families.token.steps import answer, walk_values
from netdp.families.token.walk import KNOWN_ENDS, GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.mechanisms.coins import ALL
from netdp.mechanisms.discrete_gaussian import Words
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.privacy.observers import Observers
from netdp.protocols.simulation import Run, Values

attacks.refuse(SecretRingSum, why="no attack on orders that are drawn anew and secret is built yet")


@attacks.register
def _attack_tokens(
    protocol: RingSum | PathSum, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    """Values over time, one per round of a ring: a noise that is used twice shows in their difference."""
    if protocol.law != "gaussian":
        return []
    periods = protocol.rounds if isinstance(protocol, RingSum) else 1
    return [LinearAttack(protocol, observers.parties, target, system, seed, min(periods, 2 * _SIGNS))]


@canaries.register
def _canaries(protocol: RingSum | PathSum, *asked: Any) -> FloatArray:
    return from_numbers(protocol, *asked)


@noises.register
def _noise_of_ring(protocol: RingSum) -> list[Sampler]:
    if protocol.grid is None:
        return []
    if protocol.law == "laplace":
        kinds = sorted(set(protocol.hop_shares.tolist()) - {0})
        return [one for shares in kinds if (one := _laplace_hops(protocol, shares)) is not None]
    square, hops = Fraction(protocol.sigma) ** 2, protocol.hop_variances
    full = _steps(square, protocol.grid)
    if protocol.noise == "single":
        found = _gaussian("noise of every hop that has some", full, int(hops[hops > 0].min()), protocol)
    else:
        found = _gaussian("noise of the first hop", full, int(hops[0]), protocol)
        each = _steps(square / protocol.n, protocol.grid)
        found += _gaussian("noise of every other hop", each, int(hops[1:].min()), protocol)
    closing = _steps(Fraction(protocol.closing) * square, protocol.grid)
    return found + _gaussian("noise before the release", closing, protocol.closing_variance, protocol)


def _laplace_hops(protocol: RingSum, shares: int) -> Sampler | None:
    """The noise of hops with so many shares, as it is deployed; None where a table of its law would be too long."""
    whole = shares == protocol.parts
    law = laplace_law(protocol.rate) if whole else laplace_share_law(protocol.rate, protocol.parts)

    def draw(size: int, words_of: Words) -> IntArray:
        return ring_draw(protocol, words_of)(shares, size)

    name = "noise of hops with a whole one" if whole else "noise of hops with a share"
    return None if law is None else Sampler(name, law, draw, int(protocol.distance), most=100_000)


@noises.register
def _noise_of_models(protocol: WalkDescent) -> list[Sampler]:
    if protocol.grid is None:
        return []
    each = _steps((Fraction(protocol.step) * Fraction(protocol.sigma)) ** 2, protocol.grid)
    found = _gaussian("noise of every gradient", each, protocol.variance, protocol, FineGaussian)
    if not protocol.closing_variance:
        return found
    closing = math.ceil(Fraction(protocol.closing) * each)
    return found + _gaussian("noise before the release", closing, protocol.closing_variance, protocol, FineGaussian)


@noises.register
def _noise_of_tokens(protocol: WalkSum | GraphWalkSum | PathSum) -> list[Sampler]:
    if protocol.grid is None:
        return []
    each = _steps(Fraction(protocol.sigma) ** 2, protocol.grid)
    found = _gaussian("noise of every visit", each, protocol.variance, protocol)
    closing = math.ceil(Fraction(getattr(protocol, "closing", 0.0)) * each)
    return found + _gaussian("noise before the release", closing, protocol.closing_variance, protocol)


@noises.register
def _histogram(protocol: RingHistogram | WalkHistogram) -> list[Sampler]:
    """Answers of a user with the first value: as k-ary ones name a value, as unary ones bit by bit."""
    random, size = min(Fraction(math.ceil(Fraction(protocol.gamma) * ALL), ALL), Fraction(1)), protocol.domain

    def draw(number: int, words: Words) -> IntArray:
        words = _ahead(words)
        rows = np.stack([answer(protocol, 0, words) for _ in range(number)])
        return np.asarray(rows[:, 0] + 2 * rows[:, -1] if protocol.response == "unary" else rows.argmax(axis=1))

    if protocol.response == "unary":  # the own bit, and another one
        own, other = 1 - random / 2, random / 2
        shares = [(1 - own) * (1 - other), own * (1 - other), (1 - own) * other, own * other]
    else:
        shares = [1 - random + random / size, *[random / size] * (size - 1)]
    return [Sampler("randomized answers", finite_law(shares, "the stated answers"), draw, most=_ANSWERS)]


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
    >>> from netdp.protocols import simulate
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


_RUNS = 64
"""Runs of a batch: each is one trial."""

_RARE = 1e-12
"""Numbers of visits that are less likely are left out."""

_NEVER = 1e-300
"""In place of a probability of 0, which a system that is not as stated may well show to be wrong."""


@dataclass(frozen=True, eq=False)
class _StretchAttack(Attack):
    """Runs are cut into stretches, and the stretches of each run are scored."""

    protocol: Any
    observers: tuple[int, ...]
    target: int
    system: System
    size: ClassVar[int] = _RUNS
    most: ClassVar[int] = 3_000

    def batch(self, within: bool, seed: int) -> FloatArray:
        """So many runs, each with a path of its own."""
        found = Stretches.together([cut(self.protocol, self.run(within, batch_seed(seed, i)), i) for i in range(_RUNS)])
        return self.scores(found, _RUNS)

    def run(self, within: bool, seed: int) -> Run:
        """One run of the system under audit."""
        normal = np.random.default_rng(batch_seed(seed, 1)).standard_normal
        return self.system(self.protocol, self.values(within), seed, normal, list(self.observers))

    @abstractmethod
    def values(self, within: bool) -> Values:
        """What the users hold in one of the two worlds."""

    @abstractmethod
    def scores(self, found: Stretches, runs: int) -> FloatArray:
        """(runs,) the logarithm of the likelihood ratio."""

    @cached_property
    def _visits(self) -> Draws | Bridges:
        """How often the target may have been visited on a walk."""
        if self.protocol.network is not None:
            return Bridges(self.protocol.transition, self.protocol.stationary, self.observers, self.target)
        return Draws(self.protocol.chances, self.observers, self.target)


@dataclass(frozen=True, eq=False)
class _HistogramAttack(_StretchAttack):
    @property
    def others(self) -> int:
        """The label of everybody else."""
        return 2 if self.protocol.domain > 2 else 0

    def values(self, within: bool) -> Values:
        labels = np.full(self.protocol.n, self.others)
        labels[self.target] = int(within)
        return Values(labels)

    def scores(self, found: Stretches, runs: int) -> FloatArray:
        return found.sums(self.ratios(found), runs)

    @abstractmethod
    def ratios(self, found: Stretches) -> FloatArray:
        """(stretches,) the logarithm of the likelihood ratio of each."""

    @property
    def one_bit(self) -> bool:
        """Whether every count is that of a bit: unary answers, or two labels."""
        return bool(self.protocol.response == "unary" or self.protocol.domain == 2)

    @cached_property
    def answers(self) -> FloatArray:
        """(L, L) row j: with what probability each label is answered by who holds j; unary: each bit 1."""
        L, gamma = self.protocol.domain, self.protocol.gamma
        return np.asarray((1 - gamma) * np.eye(L) + gamma / (2 if self.protocol.response == "unary" else L))

    @property
    def bits(self) -> tuple[int, ...]:
        """The counts that matter, where counts are bits: the target's two, and the others', which tells of the target's visits.

        Of two labels that are answered k-ary one is the other's rest.
        """
        if self.protocol.domain > 2:
            return (0, 1, self.others)
        return (1,) if self.protocol.response == "k-ary" else (0, 1)


@dataclass(frozen=True, eq=False)
class RingHistogramAttack(_HistogramAttack):
    """On a ring: every heap that holds an answer of the target's has a likelihood ratio of its own."""

    words: ClassVar[str] = "the likelihood ratio of all heaps between the observers' visits"

    def ratios(self, found: Stretches) -> FloatArray:
        """Heaps without the target say nothing."""
        counts = _whole(found)
        sure = self._sure(found, counts)
        first = np.where(found.opens, 0, found.first)  # the path is public
        telling = (self.target - first) % self.protocol.n < found.steps
        scores = np.zeros(len(counts))
        for steps, random in np.unique(np.column_stack([found.steps, sure])[telling], axis=0).tolist():
            rows = telling & (found.steps == steps) & (sure == random)
            heap = self._bits if self.one_bit else self._values
            scores[rows] = heap(counts[rows], steps - 1, random)
        return scores

    def _sure(self, found: Stretches, counts: IntArray) -> IntArray:
        """How many random elements each heap holds: what is in it beyond the answers, or with unary answers what is stated."""
        if self.protocol.response == "k-ary":
            return np.asarray(np.maximum(counts.sum(axis=1) - found.steps, 0))
        return np.asarray(found.opens * self.protocol.blanket + found.closes * self.protocol.closing_blanket)

    def _values(self, counts: IntArray, others: int, sure: int) -> FloatArray:
        L, gamma = self.protocol.domain, self.protocol.gamma
        elsewhere = counts.sum(axis=1) - counts[:, self.others]  # J
        law = np.convolve(binomial(others, gamma * (L - 1) / L), binomial(sure, (L - 1) / L))
        w = _at(law, elsewhere - 1) * (L - 1) / np.maximum(elsewhere, 1)
        any_label = gamma / L * (w * elsewhere + _at(law, elsewhere))
        return _ratio(*((1 - gamma) * w * counts[:, j] + any_label for j in (1, 0)))

    def _bits(self, counts: IntArray, others: int, sure: int) -> FloatArray:
        score = np.zeros(len(counts))
        for i in self.bits:
            law = np.convolve(binomial(others, self.answers[self.others, i]), binomial(sure, 0.5))
            one, zero = _at(law, counts[:, i] - 1), _at(law, counts[:, i])
            score += _ratio(*(self.answers[j, i] * one + (1 - self.answers[j, i]) * zero for j in (1, 0)))
        return score


@dataclass(frozen=True, eq=False)
class WalkHistogramAttack(_HistogramAttack):
    """On a walk: the heap of every stretch, over the secret number of the target's visits."""

    words: ClassVar[str] = "the likelihood ratio of all heaps between the observers' visits, over the secret path"

    def ratios(self, found: Stretches) -> FloatArray:
        """Each stretch of a walk by itself."""
        counts = _whole(found)
        if not self.one_bit:
            return self._values(found, counts)
        chances = np.exp(self._visits.logs(found))
        score = np.zeros(len(counts))
        for steps in np.unique(found.steps).tolist():
            rows = np.flatnonzero(found.steps == steps)
            p = chances[rows]
            most = int(np.flatnonzero(p.max(axis=0) > _RARE)[-1])
            worlds = [(p[:, : most + 1] * self._given_visits(counts[rows], steps, most, j)).sum(axis=1) for j in (1, 0)]
            score[rows] = _ratio(*worlds)
        return score

    def _given_visits(self, counts: IntArray, steps: int, most: int, label: int) -> FloatArray:
        """(rows, most + 1) the probability of the counts given the number of visits to the target, which holds this label."""
        chance = np.ones((len(counts), most + 1))
        for i in self.bits:
            own, another = float(self.answers[label, i]), float(self.answers[self.others, i])
            if own == another:
                chance *= _at(binomial(steps, own), counts[:, i])[:, None]
            else:
                chance *= _at(_two_kinds(steps, most, own, another), counts[:, i]).T
        return chance

    def _values(self, found: Stretches, counts: IntArray) -> FloatArray:
        """k-ary answers: multinomial counts, and answers at known ends."""
        another = self.answers[self.others]
        count, mine = found.known(self.target)
        share = self._share(found, count, mine)
        worlds = []
        for j in (1, 0):
            own = self.answers[j]
            p = share[:, None] * own + (1 - share[:, None]) * another
            part = counts / p
            # the law of the first known answer and of the second; which of two is the target's does not matter
            laws = [np.where((mine >= known)[:, None], own, another) for known in (1, 2)]
            one, two = ((law * part).sum(axis=1) for law in laws)
            both = one * two - (laws[0] * laws[1] * part / p).sum(axis=1)
            taken = np.where(count == 2, both, np.where(count == 1, one, 1.0))
            worlds.append((counts * np.log(p)).sum(axis=1) + np.log(np.maximum(taken, _NEVER)))
        return np.asarray(worlds[0] - worlds[1])

    def _share(self, found: Stretches, count: IntArray, mine: IntArray) -> FloatArray:
        """How likely a step without a known user is the target's; on a graph on average over the stretch."""
        if isinstance(self._visits, Draws):
            return np.full(len(count), self._visits.share)
        chances = np.exp(self._visits.logs(found))
        free = np.maximum(found.steps - count, 1)
        return np.asarray(np.clip((chances @ np.arange(chances.shape[1]) - mine) / free, 0.0, 1.0))


def binomial(count: int, chance: float) -> FloatArray:
    """(count + 1,) the probabilities of a binomial number.

    >>> binomial(2, 0.5).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, chance) + xlog1py(count - k, -chance)))


@lru_cache(maxsize=2048)
def _two_kinds(steps: int, most: int, own: float, another: float) -> FloatArray:
    """(most + 1, steps + 1) the law of Binomial(k, own) + Binomial(steps − k, another) for k = 0 … most."""
    rows = [np.convolve(binomial(k, own), binomial(steps - k, another)) for k in range(most + 1)]
    return np.array(rows)


def _at(law: FloatArray, numbers: IntArray) -> FloatArray:
    """The probabilities of these numbers along the last axis, 0 outside of the law."""
    inside = (numbers >= 0) & (numbers < law.shape[-1])
    return np.asarray(np.where(inside, law[..., np.where(inside, numbers, 0)], 0.0))


def _ratio(within: FloatArray, without: FloatArray) -> FloatArray:
    """log(within/without); 0 if neither can be."""
    return np.asarray(np.log(np.maximum(within, _NEVER)) - np.log(np.maximum(without, _NEVER)))


def _whole(found: Stretches) -> IntArray:
    return np.asarray(found.change.round(), dtype=np.int64)


@attacks.register
def _attack_ring(protocol: RingHistogram, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    return [RingHistogramAttack(protocol, observers.parties, target, system)]


@attacks.register
def _walk(protocol: WalkHistogram, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    return [WalkHistogramAttack(protocol, observers.parties, target, system)]


_ROUNDS_DOWN = 0.5 - 2.0**-20
"""A value of so many grid steps is still rounded to none, and with Δ added to as many as there can be."""


@dataclass(frozen=True, eq=False)
class WalkAttack(_StretchAttack):
    """On sums: Σ_k p_k·exp((kΔr − k²Δ²/2)/V) of every stretch, k the secret number of the target's visits."""

    words: ClassVar[str] = "the likelihood ratio of all increments between the observers' visits, over the secret path"

    def values(self, within: bool) -> Values:
        values = np.full((self.protocol.n, 1), self._low)
        if within:
            values[self.target] += self.protocol.sensitivity * FAR
        return Columns(values, (self._low, self._low + self.protocol.sensitivity))

    def scores(self, found: Stretches, runs: int) -> FloatArray:
        variance = self._deviation**2 * (found.steps + self._closing * found.closes)
        chances = self._visits.logs(found)
        k = np.arange(chances.shape[1]) * self._shift
        gains = (np.outer(found.change[:, 0], k) - k**2 / 2) / variance[:, None]
        limit = getattr(self.protocol, "contributions", None)
        if limit is None:
            return found.sums(_log_sum(chances + gains), runs)
        return _limited(found, chances, gains, limit, runs)

    @property
    def _low(self) -> float:
        """The lower end of the public interval: no step of the grid, if there is one, and just below half a step."""
        return 0.0 if self.protocol.grid is None else self.protocol.grid * _ROUNDS_DOWN

    @cached_property
    def _shift(self) -> float:
        """How far apart the target's two values are, once rounded."""
        width, grid = float(self.protocol.sensitivity), self.protocol.grid
        if grid is None:
            return width
        return float(walk_values(self.protocol, np.array([self._low + width]))[0] * grid)

    @cached_property
    def _deviation(self) -> float:
        grid = self.protocol.grid
        return float(self.protocol.sigma if grid is None else np.sqrt(self.protocol.variance) * grid)

    @property
    def _closing(self) -> float:
        return float(getattr(self.protocol, "closing", 0.0))


def _log_sum(logs: FloatArray, axis: int = -1) -> FloatArray:
    """log Σ exp along an axis; -inf where all are."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def _limited(found: Stretches, chances: FloatArray, gains: FloatArray, limit: int, runs: int) -> FloatArray:
    """The same where the target contributes to a token `limit` times at most.

    state[c, s]: the logarithm of the likelihood ratio of what was seen of token c so far, times the probability, without the
    target's value, that it has contributed s times. Others add the lower end, which is 0, and past their limit 0 as well.
    """
    most = min(limit, gains.shape[1] - 1)
    missing = max(0, limit - most)
    padded = np.pad(chances, ((0, 0), (0, missing)), constant_values=-np.inf)[:, : limit + 1]
    at_least = np.stack([_log_sum(chances[:, k:]) for k in range(most + 1)], axis=1)
    at_least = np.pad(at_least, ((0, 0), (0, missing)), constant_values=-np.inf)
    gain = np.pad(gains, ((0, 0), (0, missing)))[:, : limit + 1]
    s = np.arange(limit + 1)
    more = s[None, :] - s[:, None]  # contributions from state s to state s'
    ahead = np.maximum(more, 0)
    tokens = int(found.token.max(initial=0)) + 1
    chain = found.run * tokens + found.token
    place = np.arange(len(chain)) - np.searchsorted(chain, chain)  # rows come run by run, token by token, in time order
    state = np.full((runs * tokens, limit + 1), -np.inf)
    state[:, 0] = 0.0
    for now in range(int(place.max(initial=-1)) + 1):
        rows = np.flatnonzero(place == now)
        step = np.where(s == limit, at_least[rows][:, ahead], padded[rows][:, ahead]) + gain[rows][:, ahead]
        step = np.where(more >= 0, step, -np.inf)
        state[chain[rows]] = _log_sum(state[chain[rows]][:, :, None] + step, axis=1)
    return np.asarray(_log_sum(state).reshape(runs, tokens).sum(axis=1))


@attacks.register
def _walks(
    protocol: WalkSum | GraphWalkSum, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    return [WalkAttack(protocol, observers.parties, target, system)]
