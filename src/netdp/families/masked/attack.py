"""Attacks on masked sums and on learning by them: what a coalition really gets, and what it would get if a pad failed.

    masked sums   `SumAttack` and its kin read the published numbers, the pads that the coalition knows, its own values and noises;
                  columns are trials: many runs with the same noise, pads of their own, and the same modulus
    training      `MembershipAttack`: is somebody's record in the data, asked by one who knows all the rest
    lattices      `AverageAttack`, `ResidueAttack`: what residues of whole numbers give away that real numbers would not

If the claims of docs/proofs/masked.md#masked-sum and #sampled-descent are right, the best of these attain and none exceeds them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.audit.attack import SIMULATOR, Attack, Columns, System, attacks, batch_seed, shorter
from netdp.audit.audits import at_most
from netdp.audit.bounds import Measured
from netdp.audit.noise import Sampler, _gaussian, _steps, noises
from netdp.audit.samples import laplace_law, laplace_share_law
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent, begun, stepped
from netdp.families.masked.protocol import MaskedSum, add_pads, opened, quantised, reduced
from netdp.families.masked.simulate import MaskedRecord, later_neighbours, pads_of
from netdp.graphs.families import complete
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, Words, words_from
from netdp.models.base import Model
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.observers import Observers
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve
from netdp.protocols.simulation import Values
from netdp.protocols.training import train

_SUM_COLUMNS = 1 << 13

_RECORDS = 1 << 10
"""Columns of a run that protects records: as many records as trials are made, each a row as long as the run is wide."""

GUESSES = 8
"""So many public seeds are tried."""

_TINY = 2.0**-20


def furthest(protocol: MaskedSum) -> tuple[FloatArray, FloatArray]:
    """Two neighbouring values (d,), from the centre, that are as far apart on the grid as rounding allows.

    They differ in j coordinates by r = Δ/√j each. Just below a half step one value is rounded down; m steps further, m the largest
    whole number below r/g, the other is rounded up: m + 1 steps apart. For records the one value is no record at all, and the
    other m + ½ steps in each coordinate, m + ½ ≤ r/g. The j with the largest distance is taken.

    >>> from netdp import graphs
    >>> low, high = furthest(MaskedSum(graphs.ring(3), sigma=8.0, grid=0.25, dimension=15, sensitivity=1.0))
    >>> int(np.linalg.norm(np.floor(high / 0.25 + 0.5) - np.floor(low / 0.25 + 0.5)) ** 2)    # 7.7 steps; Δ is 4
    60
    """
    g, best = protocol.step, (0.0, 0, 0.0)
    record = protocol.unit == "record"
    for j in range(1, protocol.dimension + 1):
        steps = protocol.sensitivity / math.sqrt(j) / g * (1 - 1e-12)
        m = math.floor(steps - 0.5) if record else math.ceil(steps) - 1
        if m >= 0:
            best = max(best, (math.sqrt(j) * (m + 1), j, float(m)))
    _, j, most = best
    low, high = np.zeros(protocol.dimension), np.zeros(protocol.dimension)
    if not record:
        low[:j] = (0.5 - _TINY) * g
    high[:j] = (most + 0.5) * g
    if not record:  # around the centre, so that both fit into a public interval of length Δ
        shift = math.floor((most + 1) / 2) * g
        low[:j] -= shift
        high[:j] -= shift
    return low, high


@dataclass(frozen=True, eq=False)
class MaskedAttack(Attack):
    """What all attacks on masked sums share: runs in the two worlds, and what the target's move is in steps."""

    protocol: MaskedSum
    observers: tuple[int, ...]
    target: int
    system: System

    @cached_property
    def size(self) -> int:
        """Trials of a batch."""
        columns = _RECORDS if self.protocol.unit == "record" else _SUM_COLUMNS
        return min(max(8, columns // self.protocol.dimension), self.most)

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The target's values in the two worlds, (d,)."""
        return furthest(self.protocol)

    @cached_property
    def steps(self) -> tuple[IntArray, IntArray]:
        """The same in grid steps."""
        middle = self.protocol.centre_steps * self.protocol.step
        low, high = (quantised(self.protocol, np.atleast_1d(middle + end)) for end in self.ends)
        return low, high

    @cached_property
    def wide(self) -> MaskedSum:
        """The protocol with room for all trials side by side: the same noise, grid and modulus."""
        p = self.protocol
        reach = p.reach if p.reach is not None or p.unit == "record" else max(p.sensitivity, 1.0 * p.step)
        return p.replace(dimension=p.dimension * self.size, grid=p.step, modulus=p.q, reach=reach)

    def run(self, within: bool, seed: int) -> MaskedRecord:
        """What the coalition holds after one run of all trials."""
        p, width = self.protocol, self.size * self.protocol.dimension
        values: Values
        if p.unit == "record":
            rows = np.kron(np.eye(self.size), self.ends[1]) if within else np.zeros((0, width))
            tables: list[Any] = [np.zeros((0, width))] * p.n
            tables[self.target] = rows
            values = Values(tables)
        else:
            middle = p.centre_steps * p.step
            data = np.full((p.n, width), middle)
            data[self.target] += np.tile(self.ends[int(within)], self.size)
            values = Columns(data)
        normal = np.random.default_rng(seed).standard_normal
        record: Any = self.system(self.wide, values, seed, normal, list(self.observers)).record
        assert isinstance(record, MaskedRecord)
        return record

    def scored(self, residual: npt.NDArray[np.uint64]) -> FloatArray:
        """⟨opened − k₀, k⟩ for every trial."""
        low, high = self.steps
        numbers = opened(reduced(residual, self.protocol.q), self.protocol.q).reshape(self.size, -1)
        return np.asarray((numbers - low).astype(np.float64) @ (high - low).astype(np.float64))

    def uncovered(self, record: MaskedRecord, parties: IntArray) -> npt.NDArray[np.uint64]:
        """The sum of what these parties published, less the pads that the coalition knows."""
        q = self.protocol.q
        total = record.published[parties].sum(axis=0, dtype=np.uint64)
        inside = np.zeros(self.protocol.n, dtype=bool)
        inside[parties] = True
        for (u, v), pad in zip(record.pad_edges, record.pads, strict=True):
            total = total - np.where(inside[u], pad, 0) + np.where(inside[v], pad, 0)
        return reduced(total, q)

    @abstractmethod
    def batch(self, within: bool, seed: int) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class SumAttack(MaskedAttack):
    """The sum of the target's component, less all that the coalition knows; of all attempts together.

    The theorem says that the y of the target's component tell their sum and nothing else. So the best attack adds them up, takes
    off the pads to the coalition and all values it knows, and is left with R = b·k + noise of the honest parties: b = 1 within, k
    the target's move in grid steps. Its score is ⟨R, k⟩, over all attempts. If the claim is right it attains it.
    """

    words: ClassVar[str] = "the published numbers added up, less all pads and values the coalition knows"
    most: ClassVar[int] = 160_000
    attempts: int = 1

    @property
    def budget(self) -> int:
        """As many numbers in all: those of every attempt and coordinate count."""
        return max(8_192, 160_000 // (self.attempts * self.protocol.dimension))

    def batch(self, within: bool, seed: int) -> FloatArray:
        total = np.zeros(self.size)
        for attempt in range(self.attempts):
            record = self.run(within, batch_seed(seed, attempt))
            total += self.scored(self.uncovered(record, component(self.protocol, record, self.target)))
        return total


@dataclass(frozen=True, eq=False)
class AloneAttack(MaskedAttack):
    """The target's own published number, less known pads, and less pads made from public seeds.

    Pads that are not secret leave y_u itself: less known pads (those of the coalition's own edges, and any that were revealed), is
    it small? The score is ⟨opened y_u, k⟩.
    """

    most: ClassVar[int] = 4_000
    words: ClassVar[str] = "what the target alone published, less known, revealed and guessed pads"

    def batch(self, within: bool, seed: int) -> FloatArray:
        record = self.run(within, seed)
        alone = np.array([self.target])
        tries = [self.uncovered(record, alone)]
        tries += [reduced(record.published[self.target] - self._guess(s), self.protocol.q) for s in range(GUESSES)]
        # the right guess leaves small numbers, a wrong one uniform ones
        sizes = [np.median(np.abs(opened(one, self.protocol.q))) for one in tries]
        return self.scored(tries[int(np.argmin(sizes))])

    def _guess(self, seed: int) -> npt.NDArray[np.uint64]:
        p = self.wide
        state = np.zeros((p.n, p.dimension), dtype=np.uint64)
        for u in range(self.target + 1):
            others = later_neighbours(p, u)
            if others.size and (u == self.target or self.target in others):
                add_pads(state, u, others, pads_of(p, u, len(others), p.dimension, seed))
        return np.asarray(state[self.target])


@dataclass(frozen=True, eq=False)
class TwiceAttack(MaskedAttack):
    """The difference of what the target published in two studies: a pad that serves twice is gone from it.

    So is a noise from the difference of two sums. The target's value goes up in one study and down in the other, and the score is
    ⟨opened(y¹ − y²), k⟩, of the target alone or of its component. The claim is that of two studies.
    """

    most: ClassVar[int] = 4_000
    words: ClassVar[str] = "the difference of what the target published in two studies, less known pads"
    studies: ClassVar[int] = 2

    def batch(self, within: bool, seed: int) -> FloatArray:
        first, second = self.run(within, batch_seed(seed, 1)), self.run(not within, batch_seed(seed, 2))
        parties = self.parties(first)
        return self.scored(self.uncovered(first, parties) - self.uncovered(second, parties))

    def parties(self, record: MaskedRecord) -> IntArray:
        """Whose numbers are added up."""
        return np.array([self.target])


@dataclass(frozen=True, eq=False)
class SumTwiceAttack(TwiceAttack):
    """The difference of two sums: a noise that serves twice is gone from it."""

    most: ClassVar[int] = 8_000
    words: ClassVar[str] = "the difference of the sums of two studies, less all pads and values the coalition knows"

    def parties(self, record: MaskedRecord) -> IntArray:
        return component(self.protocol, record, self.target)


def component(protocol: MaskedSum, record: MaskedRecord, target: int) -> IntArray:
    """Who is still tied to the target by pads that the coalition does not know."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n = protocol.n
    if protocol.mask_graph is None:
        tied = np.ones((n, n), dtype=bool)
    else:
        tied = np.zeros((n, n), dtype=bool)
        _mark(tied, protocol.mask_graph.edges(), True)
    _mark(tied, record.pad_edges, False)
    labels = connected_components(sparse.csr_array(tied), directed=False)[1]
    return np.flatnonzero(labels == labels[target])


def _mark(tied: npt.NDArray[np.bool_], edges: IntArray, whether: bool) -> None:
    for u, v in np.asarray(edges, dtype=np.int64).reshape(-1, 2).tolist():
        tied[u, v] = tied[v, u] = whether


@attacks.register
def _attack_sum(protocol: MaskedSum, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    given = (*smallest(protocol, observers.parties, target), system)
    first = SumAttack(*given, attempts=protocol.attempts)
    tried: list[Attack] = [first, AloneAttack(*given), TwiceAttack(*given), SumTwiceAttack(*given)]
    if protocol.step <= protocol.sensitivity:
        tried += [ResidueAttack(*given, modulo=modulo) for modulo in MODULI]
    return tried


def smallest(protocol: MaskedSum, observers: tuple[int, ...], target: int) -> tuple[MaskedSum, tuple[int, ...], int]:
    """One attempt among the fewest parties that are allowed, observers and target among them: where least hides the target."""
    if not protocol.absent:
        return _once(protocol, grid=protocol.step, modulus=protocol.q), observers, target
    needed = {*observers, target}
    spare = [u for u in range(protocol.n) if u not in needed]
    roster = sorted([*needed, *spare[: protocol.smallest_roster - len(needed)]])
    made = _once(
        protocol, graph=complete(len(roster)), masks="complete", absent=0, grid=protocol.step, modulus=protocol.q
    )
    return made, tuple(roster.index(v) for v in observers), roster.index(target)


def _once(protocol: MaskedSum, **changes: Any) -> MaskedSum:
    """One attempt of it with the same shares of noise, by those who are there."""
    honest = {"honest": protocol.parts} if protocol.law == "laplace" else {}
    return protocol.replace(attempts=1, threshold=None, **honest, **changes)


FAR = 4.0
"""How many times the clip the crafted gradient is long, before it is clipped."""

_MEMBERSHIP_COLUMNS = 256
"""Trials side by side in one run; more of them take longer than they bring."""

_NUMBERS = 1 << 17
"""Numbers in everybody's gradients of one iteration."""

_PARTIES = 64
"""Parties with coins of their own in one run, if there are fewer."""

_WIDE = 16
"""The variance of a split share, in squared grid steps, at least."""

_RUN = 256
"""Iterations of one run, unless a single trial has more."""

Seen = Callable[[int, FloatArray], IntArray]
"""(t, θ) → whole numbers (d,): something that is in the sum of iteration t, which starts at the model θ."""


# ── the attack on sums, wherever they come from ───────────────────────────────────────────────────────────────────────


def ratios(
    left: npt.ArrayLike,
    within: npt.ArrayLike,
    variance: float,
    sampling: float = 1.0,
    without: npt.ArrayLike | None = None,
) -> FloatArray:
    """log of the likelihood ratio of every iteration, from what is left of its sum, (…, d) grid steps.

    within     k: what the protected one adds in one world, when it takes part; (…, d)
    without    what it adds in the other; None: it is not there
    variance   of the honest parties' noise, in squared grid steps
    sampling   q, the probability with which it takes part

    >>> ratios([[3], [0]], [[2]], variance=4.0).tolist()                     # (3·2 − 2²/2)/4 and (0 − 2)/4
    [1.0, -0.5]
    >>> [round(x, 4) for x in ratios([[3], [-3]], [[2]], 4.0, sampling=0.5, without=[[-2]]).tolist()]
    [1.1863, -1.1863]
    """
    seen = np.asarray(left, dtype=np.float64)

    def one(moved: npt.ArrayLike) -> FloatArray:
        k = np.asarray(moved, dtype=np.float64)
        shift = ((seen * k).sum(axis=-1) - (k * k).sum(axis=-1) / 2) / variance
        if sampling == 1:
            return np.asarray(shift)
        return np.asarray(np.logaddexp(math.log1p(-sampling), math.log(sampling) + shift))

    return one(within) if without is None else one(within) - one(without)


def ratios_of_sums(
    protocol: MaskedDescent, start: FloatArray, sums: Sequence[IntArray], known: Seen, moved: Seen, honest: int
) -> FloatArray:
    """(T,) the same for the opened sums of one run, in grid steps, as simulated or real parties read them.

    start    the public first model
    known    (t, θ) → all that the attacker knows to be in sum t: the records of others that took part, its own noise
    moved    (t, θ) → k_t, what the record in question adds when it takes part
    honest   how many parties' noise is not known to the attacker

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(3), 2, sigma=2.0, step=0.5, grid=0.5)           # shares of variance 16
    >>> seen = [np.array([13]), np.array([-3])]
    >>> ratios_of_sums(p, np.zeros(1), seen, lambda t, at: np.array([t]), lambda t, at: np.array([4]), honest=2).tolist()
    [1.25, -0.875]
    """
    state, out = begun(start), np.empty(len(sums))
    for t, total in enumerate(sums, 1):
        left = np.asarray(total) - known(t, state.theta)
        k = moved(t, state.theta)
        out[t - 1] = ratios(left, k, honest * protocol.sum.share, protocol.sampling)
        state = stepped(protocol, state, t, np.asarray(total))
    return out


def in_a_row(scores: FloatArray, times: int) -> FloatArray:
    """Trials of so many iterations in a row: sums of their scores; what is left over at the end is left out.

    A promise about m iterations holds from any model that they start from, so every m in a row of a long run are one trial.

    >>> in_a_row(np.arange(7.0), 3).tolist()
    [3.0, 12.0]
    """
    m = count("times", times)
    whole = len(scores) // m
    return np.asarray(scores[: whole * m].reshape(whole, m, *scores.shape[1:]).sum(axis=1))


def as_sampled(measured: Measured, sampling: float, times: int, *, replaced: bool = False) -> float:
    """ε at δ of the sampled Gaussian with the most noise under which what was counted is possible; 0 if it proves nothing.

    For masked descent the reading that "as Gaussian" is for sums: its noise is Gaussian but for its grid, so only the amount is in
    question. (With sampling, a Gaussian shift that is guessed right as often has the smaller ε at a small δ.)

    >>> from netdp.audit.bounds import measure
    >>> rng = np.random.default_rng(0)
    >>> there = rng.standard_normal(20_000) + 2.0 * (rng.random(20_000) < 0.5)
    >>> measured = measure(rng.standard_normal(20_000), there, delta=1e-5)
    >>> true = float(sampled_gaussian_curve(0.5, 0.5, 1).epsilon(1e-5))
    >>> 0.8 * true < as_sampled(measured, 0.5, 1) < true, measured.as_gaussian < 0.5 * true
    (True, True)
    """

    def possible(multiplier: float) -> bool:
        return not measured.refutes(sampled_gaussian_curve(multiplier, sampling, times, replaced=replaced))

    low, high = 1 / 16, 2.0**20
    if possible(high):
        return 0.0
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    return float(sampled_gaussian_curve(high, sampling, times, replaced=replaced).epsilon(measured.delta))


# ── what is run ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ConstantGradients(Model):
    """The loss of a record x is ⟨x, θ⟩: its gradient is x, wherever the model stands, and no step stretches anything.

    >>> model = ConstantGradients(2)
    >>> [block.tolist() for block in model.gradients(np.ones(2), np.array([[3.0, 4.0]]), np.zeros(1))]
    [[[3.0, 4.0]]]
    """

    name = "constant gradients"
    classes: int | None = None
    exact = True
    assumptions = ()

    def __init__(self, size: int) -> None:
        self.size = count("size", size)

    def start(self) -> FloatArray:
        """θ = 0."""
        return np.zeros(self.size)

    def gradients(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """The rows."""
        yield np.array(X, dtype=np.float64)

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """⟨x, θ⟩."""
        return np.asarray(X @ theta)

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """⟨x, θ⟩."""
        return np.asarray(X @ theta)

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """1: a step moves every model alike."""
        return 1.0


def trained_sums(protocol: MaskedDescent, losses: ModelParties, seed: int, normal: Any, record: Any) -> IntArray:
    """(T, d) the sums that everybody reads in a simulated run, in grid steps: what is under audit, unless another is given.

    With the arguments of `netdp.protocols.simulation.execute`, losses in place of values. Noise and coins come from the seed;
    `normal` and `record` are not used: everybody sees the same sums. Without momentum a sum is what a step moved the model by.
    """
    if protocol.momentum or protocol.groups > 1:
        raise InvalidValue(
            "sums are read off the steps of one group without momentum; what follows from sums is no secret"
        )
    models = np.empty((protocol.iterations + 1, losses.d))
    models[0] = losses.start()

    def after(t: int, found: FloatArray) -> None:
        models[t + 1] = found[0]

    train(protocol, losses, seed, after=after)
    moved = -np.diff(models, axis=0) / protocol.step
    return np.rint(moved * (protocol.expected / protocol.sum.step)).astype(np.int64)


def hidden_with(protocol: MaskedDescent, observers: Sequence[int], target: int) -> int:
    """How many parties' noise covers the target, its own included, in the worst roster.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(9), 4, sigma=1.0, step=0.5, groups=3)
    >>> hidden_with(p, [0, 1], 3), hidden_with(p.replace(groups=1, absent=2), [0, 1], 3)
    (2, 5)
    """
    honest = [u for u in range(protocol.n) if u not in set(observers)]
    if target not in honest:
        raise InvalidValue(f"target {target} is an observer, or no party; the others are {honest[:8]}")
    pads = protocol.sum.mask_graph
    if pads is None:
        return len(honest) - protocol.absent
    part = pads.subgraph(honest).components()
    return int((part == part[honest.index(target)]).sum())


@dataclass(frozen=True, eq=False)
class MembershipAttack(Attack):
    """Is somebody's record in the data that a model is trained on, asked by one who knows all the rest.

    Of every noisy sum it subtracts what it knows, and is left with the record's clipped gradient, if a secret coin let it take
    part, and the noise of the parties that hide with the target; its score is the likelihood ratio of all iterations. What is run
    is the descent of these parties alone, with a crafted record for every coordinate, so that one run holds many trials. One trial
    is all iterations of the protocol: shorten it first if they are many (`shortened`). Why no test is better, and why coordinates
    and stretches are independent trials: docs/proofs/audit.md#best-attacks.
    """

    words: ClassVar[str] = (
        "membership inference: the likelihood ratio of all sums, for a record (party) whose gradient is always as long as allowed"
    )
    most: ClassVar[int] = 40_000
    protocol: MaskedDescent
    observers: tuple[int, ...]
    target: int
    system: Callable[..., IntArray] = trained_sums

    @property
    def times(self) -> int:
        """Iterations, and attempts at them, of one trial."""
        return self.protocol.releases

    @cached_property
    def columns(self) -> int:
        """Trials side by side."""
        n = self.run.n
        if self.protocol.replaced:
            return n  # a party has one coin for all of its coordinates
        return (
            _MEMBERSHIP_COLUMNS
            if self.protocol.unit == "record"
            else int(np.clip(_NUMBERS // n, 16, _MEMBERSHIP_COLUMNS))
        )

    @cached_property
    def rows(self) -> int:
        """Trials one after the other."""
        return max(1, _RUN // self.times)

    @property
    def size(self) -> int:
        """Trials of one run."""
        return self.columns * self.rows

    @cached_property
    def honest(self) -> int:
        """How many parties' noise covers the target."""
        return hidden_with(self.protocol, self.observers, self.target)

    @cached_property
    def run(self) -> MaskedDescent:
        """The descent of the parties that hide together, without what is post-processing; one coordinate as yet."""
        p, n = self.protocol, max(self.honest, 2)
        if p.replaced:
            # every party is a trial: a few are split up, and their noise with them, as long as it is wide on the grid
            n = max(n, min(_PARTIES, self.honest * p.sum.share // _WIDE))
        return p.replace(
            graph=complete(n), masks="complete", groups=1, aggregate="mean", attempts=1, absent=0, momentum=0.0,
            average="last", sigma=p.sigma * math.sqrt(self.honest / n), grid=p.sum.step, modulus=None, spread="flood",
        )  # fmt: skip

    @property
    def reach(self) -> float:
        """How far, in grid steps, one who takes part moves its coordinate."""
        return max(1.0, math.floor(self.protocol.clip / self.protocol.sum.step + 0.5))

    @cached_property
    def _wide(self) -> MaskedDescent:
        p, columns = self.run.replace(iterations=self.rows * self.times, dimension=self.columns), self.columns
        if p.unit == "record":
            return p.replace(max_records=columns, records=None)
        # cut a little shorter, so that no rounding error carries a coordinate beyond its clip to the next grid step
        return p if p.replaced else p.replace(clip=p.clip * math.sqrt(columns) * (1 - 1e-9))

    def losses(self, within: bool) -> ModelParties:
        """Who holds which rows."""
        p, columns = self._wide, self.columns
        nobody, rows = np.zeros((0, columns)), FAR * self.protocol.clip * np.eye(columns)
        if p.unit == "record":
            tables = [rows if within else nobody, *[nobody] * (p.n - 1)]
        elif p.replaced:
            tables = [row[None] if within else -row[None] for row in rows]
        else:
            push = np.full((1, columns), FAR * self.protocol.clip)
            tables = [push if within else -push, *[nobody] * (p.n - 1)]
        return ModelParties(ConstantGradients(columns), tables, [np.zeros(len(X)) for X in tables])

    def batch(self, within: bool, seed: int) -> FloatArray:
        """The scores of one run: coordinate by coordinate, stretch by stretch."""
        sums = self.system(self._wide, self.losses(within), seed, np.random.default_rng(seed).standard_normal, [])
        if sums.shape != (self.rows * self.times, self.columns):
            raise InvalidValue(f"the system gave sums of shape {sums.shape}, one row per iteration is expected")
        k, other = np.array([self.reach]), None if self.protocol.unit == "record" else np.array([-self.reach])
        variance = self.honest * self.protocol.sum.share
        each = ratios(sums[..., None], k, variance, self.protocol.sampling, other)
        return in_a_row(each, self.times).ravel()

    def reading(self, measured: Measured, claim: Curve | None = None) -> float:
        """What trials of this attack say of ε if noise is Gaussian, in an amount to be found out: `as_sampled`."""
        replaced = self.protocol.unit == "party"
        return as_sampled(measured, self.protocol.sampling, self.times, replaced=replaced)


@attacks.register
def _attack_descent(
    protocol: MaskedDescent, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    sums: Any = trained_sums if system is SIMULATOR else system
    return [MembershipAttack(protocol, observers.parties, target, sums)]


_SUMS = 16
"""Sums in one trial, at most, if many trials fit into one run."""

_FEW_SUMS = 8
"""The same where every trial needs a party with a coin of its own."""


@shorter.register
def _shorter(protocol: MaskedDescent) -> Any:
    most = _FEW_SUMS if protocol.replaced else _SUMS
    return at_most(protocol, iterations=max(1, most // protocol.attempts))


@noises.register
def _noise_of_sum(protocol: MaskedSum) -> list[Sampler]:
    if protocol.law == "laplace":
        return _laplace_shares(protocol)
    stated = _steps(Fraction(protocol.sigma) ** 2, protocol.step)
    return _gaussian("every party's share of the noise", stated, protocol.share, protocol)


def _laplace_shares(protocol: MaskedSum) -> list[Sampler]:
    """A share by itself, and so many together that they should make one whole Laplace noise."""
    parts, far = protocol.parts, max(1, math.ceil(protocol.sensitivity / protocol.step))
    variance = parts * (protocol.sigma / protocol.step) ** 2
    stated = Fraction(2 * math.asinh(1 / math.sqrt(2 * variance)))
    draw = protocol.share_noise.sample

    def whole(size: int, words: Words) -> IntArray:
        return np.asarray(draw((parts, size), words).sum(axis=0))

    found = [Sampler(f"the sum of {parts} shares of the noise", laplace_law(stated), whole, far, most=100_000)]
    if (law := laplace_share_law(stated, parts)) is not None:
        found.append(Sampler("every party's share of the noise", law, lambda size, words: draw((size,), words)))
    return found


@noises.register
def _noise_of_descent(protocol: MaskedDescent) -> list[Sampler]:
    stated = _steps(Fraction(protocol.sigma) ** 2, protocol.sum.step)
    return _gaussian("every party's share of the noise", stated, protocol.sum.share, protocol.sum)


MODULI = (2, 3)

_REACH = 12


@dataclass(frozen=True)
class AverageAttack(Attack):
    """On s = Σ y_i/p_i, seen once in exact arithmetic; the last party is the target.

    In real numbers the loss about party j is the factor p_j⁻²/Σ p_i⁻² of local DP's. But s·Πp is a whole number, and modulo p_j
    it is (Πp/p_j)·y_j: the residue of y_j is seen as it is, and its likelihood ratio taken. Where the noise is no wider than p_j
    steps, that is as much as under local DP, and the claim in real numbers is refuted: why no amplified claim is made for plain
    averages on a grid (docs/proofs/masked.md#masked-sum).

    primes   the p_i
    steps    σ of everybody's noise, in grid steps
    shift    how far the target's two values are apart, in grid steps
    """

    words: ClassVar[str] = "the residue of an average of whole numbers, seen in exact arithmetic"
    primes: tuple[int, ...]
    steps: int
    shift: int

    def __post_init__(self) -> None:
        if len(self.primes) < 2 or any(math.gcd(p, q) > 1 for i, p in enumerate(self.primes) for q in self.primes[:i]):
            raise InvalidValue(f"primes must be two or more coprime denominators, got {self.primes}")

    @property
    def size(self) -> int:
        """Trials of a batch."""
        return 20_000

    @property
    def in_real_numbers(self) -> GaussianCurve:
        """What an analysis in real numbers would promise."""
        factor = self.primes[-1] ** -2 / sum(p**-2 for p in self.primes)
        return GaussianCurve(math.sqrt(factor) * self.shift / self.steps)

    @cached_property
    def _table(self) -> FloatArray:
        """Per residue of the target's number: the logarithm of its likelihood ratio."""
        p, reach = self.primes[-1], _REACH * self.steps
        numbers = np.arange(-reach, reach + 1)
        mass = np.exp(-(numbers**2) / (2.0 * self.steps**2))
        without = np.bincount(numbers % p, weights=mass, minlength=p)
        return np.asarray(np.log(np.roll(without, self.shift % p) / without))

    def batch(self, within: bool, seed: int) -> FloatArray:
        words = words_from(np.random.default_rng(seed))
        y = DiscreteGaussian(self.steps**2).sample((len(self.primes), self.size), words)
        y[-1] += self.shift if within else 0
        whole = math.prod(self.primes)
        seen = sum((whole // p) * row for p, row in zip(self.primes, y, strict=True))
        p = self.primes[-1]
        residue = (seen * pow(whole // p, -1, p)) % p
        return np.asarray(self._table[residue])


@dataclass(frozen=True, eq=False)
class ResidueAttack(MaskedAttack):
    """The sum of a masked sum modulo a small number, while the target moves by one grid step.

    If all noise of a sum is a multiple of m grid steps (scaled after it was drawn, or drawn on another grid), then the sum modulo
    m is that of the values. Against noise on every step, σ of several steps, the residue says nothing.
    """

    words: ClassVar[str] = "the sum modulo a small number, while the target moves by a single grid step"
    most: ClassVar[int] = 4_000
    modulo: int = 2

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """One step apart: neighbours, as they are within Δ."""
        low, high = np.zeros(self.protocol.dimension), np.zeros(self.protocol.dimension)
        high[0] = self.protocol.step
        return low, high

    def batch(self, within: bool, seed: int) -> FloatArray:
        record = self.run(within, seed)
        total = opened(self.uncovered(record, component(self.protocol, record, self.target)), self.protocol.q)
        first = total.reshape(self.size, -1)[:, 0] - self.steps[0][0]
        return np.where(first % self.modulo == 1, 1.0, -1.0)
