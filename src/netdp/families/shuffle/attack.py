"""An attack on what the curator of network shuffling sees: the likelihood ratio over where the reports may have gone.

    Λ = Σ_j P(item j is the target's | who handed over how many) · ℓ(r_j),   ℓ(r) = P(report r | 1)/P(report r | 0)

if all others hold 0 and everybody answers by binary randomized response (docs/proofs/shuffle.md#shuffling-attack). A protocol
that states its randomizer is attacked with that (`Response`): under k-ary response all others hold a third value, and Λ is a
ratio of two such sums. Users who collude with the curator recognise their own reports and those that they were handed in the
first round.

The system under audit is a function with the arguments of `netdp.families.shuffle.simulate.shuffle_reports`, as reports that
walk have no values to be added up; the simulator's `execute` stands for that function. `hops_made` and `where_it_ends` check
that reports walk as stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.audit.attack import SIMULATOR, Attack, System, attacks, batch_seed, canaries, checks
from netdp.audit.findings import Check
from netdp.audit.noise import _LARGEST, Sampler, noises
from netdp.audit.samples import finite_law, laplace_law
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.families.shuffle.simulate import ShuffledReports, shuffle_reports
from netdp.mechanisms.discrete_gaussian import Words
from netdp.mechanisms.laplace import GridLaplace
from netdp.mechanisms.responses import RandomizedResponse
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.privacy.observers import Observers


@noises.register
def _noise_of_shuffle(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> list[Sampler]:
    """What peers send: labels by randomized response, numbers in [−1, 1] by discrete Laplace noise."""
    if protocol.delta0 or protocol.epsilon0 > _LARGEST:
        return []
    labels, numbers = RandomizedResponse(protocol.values or 4, protocol.epsilon0), GridLaplace(2.0, protocol.epsilon0)
    other = 1 / (math.exp(protocol.epsilon0) + labels.domain - 1)

    def named(size: int, words: Words) -> IntArray:
        return labels.report(np.zeros(size, dtype=np.int64), words)

    def reported(size: int, words: Words) -> IntArray:
        return numbers.report(np.zeros(size), words)[:, 0]

    shares = [1 - (labels.domain - 1) * other, *[other] * (labels.domain - 1)]
    every = [
        Sampler("reports of labels", finite_law(shares, "randomized response"), named),
        Sampler(
            "reports of numbers", laplace_law(Fraction(protocol.epsilon0) / numbers.steps), reported, numbers.steps
        ),
    ]
    return every if protocol.values is None else every[:1]


_RUNS = 64
"""Runs of a batch: each is one trial."""

_LOOKS = 400
"""Runs that are looked at beforehand, to see where reports go."""

_FITS = 1e-4
"""Below this p-value the law that was found is used in place of the stated one. A wrong choice weakens the attack only."""

_CANARY_LOOKS, _CANARY_FITS = 200, 1e-6  # the same for canaries, whose reports all walk in one run

_SOUND, _COUNTED = 1e-6, 1e-9
"""p-values below which a goodness of fit, or a number of hops, is called wrong."""

_CELL = 5.0
"""Expected numbers below this are put together before a chi-square test."""

attacks.refuse(
    FaultyShuffle,
    why="where a report may be depends on who was away; audit the Shuffle with the same graph, rounds and ε₀",
)

attacks.refuse(
    RelayedShuffle,
    why="the server also sees how many envelopes go over every link; audit the Shuffle with the same graph, rounds and ε₀",
)


class Response:
    """The randomizer that is attacked: the worst of those that the protocol may have.

    The target holds 0 or 1, all others (and dummies) `others`; `laws` are the reports of a 0, of a 1 and of what the others hold.

    >>> from netdp import graphs
    >>> p = Shuffle(graphs.complete(5), rounds=3, epsilon0=math.log(3))
    >>> [law.round(3).tolist() for law in Response(p.replace(values=4)).laws]
    [[0.5, 0.167, 0.167, 0.167], [0.167, 0.5, 0.167, 0.167], [0.167, 0.167, 0.5, 0.167]]
    >>> [law.round(3).tolist() for law in Response(p.replace(variation=0.2)).laws]      # 2: a report for neither
    [[0.3, 0.1, 0.6], [0.1, 0.3, 0.6], [0.3, 0.1, 0.6]]
    """

    def __init__(self, protocol: Shuffle) -> None:
        self.values = protocol.values or 2
        self.others = 2 if self.values > 2 else 0
        randomizer = Randomizer.of(protocol)
        own = randomizer.makeup.get("q", 1 / (1 + math.exp(-protocol.epsilon0)))
        self.lie = own * math.exp(-protocol.epsilon0) * (self.values - 1)
        """The probability of another one of the values."""
        self.blank = max(0.0, 1 - own - self.lie) if protocol.variation is not None else 0.0
        width = self.values + (protocol.variation is not None)
        self.laws = np.full((3, width), self.lie / (self.values - 1))
        self.laws[:, self.values :] = self.blank
        self.laws[range(3), [0, 1, self.others]] = 1 - self.lie - self.blank

    def __call__(self, truth: IntArray, rng: np.random.Generator) -> IntArray:
        """One report of each value."""
        draws = rng.random(len(truth))
        other = np.minimum(draws / self.lie * (self.values - 1), self.values - 2).astype(np.int64)
        reports = np.where(draws < self.lie, other + (other >= truth), truth)
        return np.where((draws >= self.lie) & (draws < self.lie + self.blank), self.values, reports)


@dataclass(frozen=True, eq=False)
class ShuffleAttack(Attack):
    """See the module."""

    words: ClassVar[str] = "the likelihood ratio of all reports by who handed them over, over where the target's may be"
    protocol: Shuffle
    colluders: tuple[int, ...]
    target: int
    system: Any
    seed: int = 0
    size: ClassVar[int] = _RUNS
    most: ClassVar[int] = 8_000

    def batch(self, within: bool, seed: int) -> FloatArray:
        """So many runs."""
        return np.array([self.score(*self.runs(within, batch_seed(seed, i))) for i in range(_RUNS)])

    def runs(self, within: bool, seed: int) -> tuple[ShuffledReports, IntArray | None]:
        """One run, and where reports were after its first round if somebody colludes."""
        rng = np.random.default_rng(batch_seed(seed, 1))
        values = np.full(self.protocol.n, Response(self.protocol).others, dtype=np.int64)
        values[self.target] = int(within)
        run = shuffled(self.system, self.protocol, values, seed, rng)
        if not self.colluders:
            return run, None
        first = shuffled(self.system, self.protocol.replace(rounds=1), values, seed, rng)
        return run, np.asarray(first.transcript.positions, dtype=np.int64)

    def score(self, run: ShuffledReports, first: IntArray | None = None) -> float:
        """log Λ; `first`: who held the report of each user after the first round."""
        reports, holders = np.asarray(run.view.reports), np.asarray(run.view.holders)
        zero, one, others = self._response.laws[:, reports]
        hidden = np.ones(len(holders), dtype=bool)
        if first is not None:
            known = self._known(first)
            origins = np.asarray(run.transcript.origins)
            if known[self.target]:  # nothing is left to chance, unless it was not handed over
                return float(np.log((one / zero)[origins == self.target]).sum())
            hidden = (origins < 0) | ~known[origins]
        weights = self._weights[holders] * hidden
        left = 0.0 if self.protocol.reporting == "all" else 1 - float(self._weights.sum())
        above, below = (float(weights @ (law / others)) + left for law in (one, zero))
        return math.log(above / below) if below > 0 else 0.0

    def _known(self, first: IntArray) -> BoolArray:
        """Whose reports the colluders know: their own, and those that they were handed in the first round."""
        known = np.isin(first, self.colluders)
        known[list(self.colluders)] = True
        return np.asarray(known)

    @cached_property
    def _response(self) -> Response:
        return Response(self.protocol)

    @cached_property
    def _weights(self) -> FloatArray:
        """(n,) "all": in proportion to how likely an item there is the target's; "single": how likely it is."""
        n, mine = self.protocol.n, self.law
        everybody = walked(self.protocol, np.ones(n))
        others = np.maximum((everybody - stated_law(self.protocol, self.target)) / (n - 1), 1e-12)
        if self.protocol.reporting == "all":
            return np.asarray(mine / others)
        return np.asarray(mine * -np.expm1(n * np.log1p(-np.minimum(others, 1 - 1e-12))) / (n * others))

    @cached_property
    def law(self) -> FloatArray:
        """(n,) where the target's report ends, given that no colluder was handed it in the first round."""
        stated = stated_law(self.protocol, self.target, self.colluders)
        ends = []
        for number in range(_LOOKS):
            run, first = self.runs(False, batch_seed(self.seed, 2, number))
            if first is None or not self._known(first)[self.target]:
                ends.append(int(run.transcript.positions[self.target]))
        found = np.bincount(ends, minlength=self.protocol.n)
        if not ends or fit(found, stated) >= _FITS:
            return stated
        return (found / len(ends) + stated) / 2


def shuffled(system: Any, protocol: Shuffle, values: IntArray, seed: int, rng: np.random.Generator) -> ShuffledReports:
    """One run of the system under audit, on values that are randomized here; dummies are made from what the others hold."""
    run = shuffle_reports if system is SIMULATOR else system
    response = Response(protocol)

    def dummies(count: int) -> IntArray:
        return response(np.full(count, response.others, dtype=np.int64), rng)

    done: ShuffledReports = run(
        protocol, response(values, rng), seed, **({} if protocol.reporting == "all" else {"dummies": dummies})
    )
    return done


def walked(protocol: Shuffle, law: FloatArray) -> FloatArray:
    """Where reports are after all hops, if they start by this law; several laws are rows."""
    for _ in range(protocol.rounds):
        law = np.asarray(law @ protocol.transition)
    return law


def stated_law(protocol: Shuffle, target: int, met: tuple[int, ...] = ()) -> FloatArray:
    """(n,) where the target's report is after all hops, given that its first one was not to any of `met`.

    >>> from netdp import graphs
    >>> stated_law(Shuffle(graphs.complete(3), rounds=2, epsilon0=1.0), 0).tolist()
    [0.5, 0.25, 0.25]
    """
    law = np.eye(protocol.n)[target]
    if not met:
        return walked(protocol, law)
    law = np.asarray(law @ protocol.transition)
    law[list(met)] = 0.0
    law /= max(
        float(law.sum()), 1e-300
    )  # with no way but to the colluders nothing is hidden, and nothing asked of this law
    return law if protocol.rounds == 1 else walked(protocol.replace(rounds=protocol.rounds - 1), law)


def fit(counts: IntArray | FloatArray, law: FloatArray) -> float:
    """The p-value of Pearson's test, cells put together until five or more are expected in each; 0 if the impossible happened.

    What is left over of the rarest cells joins another for that test, and has an exact one of its own: too many there are too many.

    >>> fit(np.array([52, 48]), np.array([0.5, 0.5])) > 0.5, fit(np.array([90, 10]), np.array([0.5, 0.5])) < 1e-9
    (True, True)
    """
    from scipy.stats import binom, chisquare

    if counts[law <= 0].any():
        return 0.0
    total = int(counts.sum())
    order = np.argsort(-law, kind="stable")
    expected, seen = law[order] * total / law.sum(), counts[order]
    group = np.zeros(len(order), dtype=np.int64)
    filled, number = 0.0, 0
    for place, many in enumerate(expected.tolist()):  # the likeliest first: a group ends as soon as it expects enough
        group[place] = number
        filled += many
        if filled >= _CELL:
            filled, number = 0.0, number + 1
    rare = group == number  # those of the last group, if it does not expect enough
    chance = float(binom.sf(seen[rare].sum() - 1, total, expected[rare].sum() / total)) if total else 1.0
    group = np.minimum(group, max(number - 1, 0))
    want, got = np.bincount(group, weights=expected), np.bincount(group, weights=seen)
    pearson = float(chisquare(got, want * got.sum() / want.sum()).pvalue) if len(want) > 1 else 1.0
    return min(1.0, 2 * min(pearson, chance))


def hops_made(protocol: Shuffle, run: ShuffledReports) -> Check:
    """Whether every report moved as often as the protocol states; with laziness, whether so many moves are likely."""
    from scipy.stats import binom

    moves, made = protocol.n * protocol.rounds, run.traffic.total
    name = "hops of the reports"
    if not protocol.laziness:
        words = f"{made:,} moves; {protocol.n:,} reports that make {protocol.rounds} hops each make {moves:,}"
        return Check(name, made == moves, words)
    moving = 1 - protocol.laziness
    tail = min(float(binom.cdf(made, moves, moving)), float(binom.sf(made - 1, moves, moving)))
    words = f"{made:,} moves, expected {moves * moving:,.0f}: so far off with probability {min(1.0, 2 * tail):.2g}"
    return Check(name, 2 * tail >= _COUNTED, words)


def where_it_ends(protocol: Shuffle, target: int, system: System = SIMULATOR, seed: int = 0, runs: int = 2000) -> Check:
    """Whether the target's reports end where t hops take them; called wrong at a p-value below 10⁻⁶."""
    attack = ShuffleAttack(protocol, (), target, system, seed)
    ends = [
        int(attack.runs(False, batch_seed(seed, 3, number))[0].transcript.positions[target]) for number in range(runs)
    ]
    chance = fit(np.bincount(ends, minlength=protocol.n), stated_law(protocol, target))
    words = f"{runs:,} reports of user {target} ended where {protocol.rounds} hops take them: p-value {chance:.2g}"
    return Check("where reports end", chance >= _SOUND, words)


@checks.register
def _hop_checks(protocol: Shuffle, target: int, system: System, seed: int) -> list[Check]:
    """Of shuffling: whether all hops were made, and the target's reports end where these take them."""
    run = ShuffleAttack(protocol, (), target, system, seed).runs(False, batch_seed(seed, 4))[0]
    return [hops_made(protocol, run), where_it_ends(protocol, target, system, seed)]


@attacks.register
def _attack_shuffle(protocol: Shuffle, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    return [ShuffleAttack(protocol, observers.parties, target, system, seed)]


@canaries.register
def _from_reports(
    protocol: Shuffle, colluders: tuple[int, ...], planted: IntArray, coins: IntArray, seed: int, system: System
) -> FloatArray:
    """By how much more often than elsewhere the report is 1, and not 0, where the report of a canary may be."""
    n, rng = protocol.n, np.random.default_rng(batch_seed(seed, 5))
    values = np.full(n, Response(protocol).others, dtype=np.int64)
    values[planted] = coins
    run = shuffled(system, protocol, values, seed, rng)
    laws = walked(protocol, np.eye(n))
    found = np.zeros((n, n))
    for number in range(_CANARY_LOOKS):
        look = shuffled(system, protocol, values, batch_seed(seed, 6, number), rng)
        found[np.arange(n), look.transcript.positions] += 1
    if min(fit(row, law) for row, law in zip(found, laws, strict=True)) * n < _CANARY_FITS:
        laws = (found / _CANARY_LOOKS + laws) / 2
    weights = (laws / np.maximum(laws.mean(axis=0), 1e-300))[planted][:, run.view.holders]
    hidden = ~np.isin(run.transcript.origins, colluders)  # they know their own reports
    reports = np.asarray(run.view.reports)
    reports = (reports == 1).astype(np.float64) - (reports == 0)  # binary: as good as the reports themselves
    mean = weights[:, hidden] @ reports[hidden] / np.maximum(weights[:, hidden].sum(axis=1), 1e-300)
    return np.asarray(mean - reports[hidden].mean())
