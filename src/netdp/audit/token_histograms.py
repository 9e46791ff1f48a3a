"""The likelihood ratio of what observers see of a histogram that a token collects.

Between two readings of the token the observers see the heap of all answers given in between (`stretches`), the random elements
of the blankets among them where they were put in. An answer is true with probability 1 − γ and else drawn at random. Let the
target hold the label 0 (`without`) or 1 (`within`), and all others one label that is neither (if there are two labels only, 0):
then what they answer truthfully hides nothing.

**Ring** (path public). A heap holds one answer of the target's, `others` further ones and `sure` random elements. With R(n) the
probability of the counts n without the target's answer, the counts have under the target's label j the probability

    P_j(n) = (1 − γ)·R(n − e_j) + γ/L·Σ_i R(n − e_i).

Elements that do not have the others' label have one of the other L − 1 labels, all alike. So with J of them, and S the law of
their number without the target's answer, a sum of two binomial numbers, R(n − e_j) ∝ S(J−1)·(L−1)·n_j/J, while R(n − e_c) ∝
S(J) for the others' label c, and

    P_j ∝ (1 − γ)·w·n_j + γ/L·(w·J + S(J)),     w = S(J − 1)·(L − 1)/J.

*Two labels, or unary answers:* every bit is a count of its own, P(n) = a·S(n−1) + (1−a)·S(n), with a the probability that the
target's bit is 1 and S a sum of two binomial numbers; bits of one answer are independent.

**Walk, k-ary answers.** On the complete graph a step whose user is not known is the target's with probability q, so its answer
has the law p_j = q·(law of the target's answer) + (1 − q)·(law of another's), independent of all others: counts are
multinomial. The answers at known ends have laws e, e′ of their own; taking them out of the heap, with n_i/p_i the ratio of
multinomial probabilities,

    P_j(n) ∝ Π_i p_i^{n_i} · (Σ_i e_i·n_i/p_i · Σ_i e′_i·n_i/p_i − Σ_i e_i·e′_i·n_i/p_i²).

On a graph steps are not independent. They are scored as if they were, with q the mean share of the target's visits on the
bridge between the known ends: no longer the likelihood ratio, but near it.

**Walk, two labels or unary answers.** A sum over the secret number k of the target's visits (`stretches`), on any graph. Given
k every bit is a count of its own, Binomial(k, a) + Binomial(m − k, b), where the target's bit is 1 with probability a and
another's with b.

A limit on contributions is left out of the score: it is the likelihood ratio as long as nobody has reached it, and a score
anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy import Observers
from netdp.protocols import RingHistogram, WalkHistogram
from netdp.simulate.run import Run, Values

from .attack import Attack, System, batch_seed
from .stretches import Bridges, Draws, Stretches, cut
from .table import attacks

_RUNS = 64
"""Runs of a batch: each is one trial."""
_RARE = 1e-12
"""Numbers of visits that are less likely are left out."""
_NEVER = 1e-300
"""In place of a probability of 0, which a system that is not as stated may well show to be wrong."""


@dataclass(frozen=True, eq=False)
class _HistogramAttack(Attack):
    protocol: Any
    observers: tuple[int, ...]
    target: int
    system: System
    size: ClassVar[int] = _RUNS
    most: ClassVar[int] = 3_000

    @property
    def others(self) -> int:
        """The label of everybody else."""
        return 2 if self.protocol.domain > 2 else 0

    def batch(self, within: bool, seed: int) -> FloatArray:
        """So many runs."""
        found = Stretches.together([cut(self.protocol, self.run(within, batch_seed(seed, i)), i) for i in range(_RUNS)])
        return found.sums(self.ratios(found), _RUNS)

    def run(self, within: bool, seed: int) -> Run:
        """One run of the system under audit."""
        labels = np.full(self.protocol.n, self.others)
        labels[self.target] = int(within)
        normal = np.random.default_rng(batch_seed(seed, 1)).standard_normal
        return self.system(self.protocol, Values(labels), seed, normal, list(self.observers))

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
    """See the module."""

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
    """See the module."""

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

    @cached_property
    def _visits(self) -> Draws | Bridges:
        if self.protocol.graph is not None:
            return Bridges(self.protocol.transition, self.protocol.stationary, self.observers, self.target)
        return Draws(self.protocol.chances, self.observers, self.target)


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
def _ring(protocol: RingHistogram, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    return [RingHistogramAttack(protocol, observers.parties, target, system)]


@attacks.register
def _walk(protocol: WalkHistogram, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    return [WalkHistogramAttack(protocol, observers.parties, target, system)]
