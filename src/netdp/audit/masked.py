"""Attacks on masked sums: what a coalition really gets, and what it would get if a pad failed (docs/guarantees.md#masked-sum).

Every attack reads the published numbers y modulo q, the pads that the coalition knows, and its own values and noises.

**The sum.** The theorem says that the y of the target's component tell their sum and nothing else. So the best attack adds them
up, takes off the pads to the coalition and all values it knows, and is left with R = b·k + noise of the honest parties: b = 1
within, k the target's move in grid steps. Its score is ⟨R, k⟩, over all attempts. If the claim is right it attains it.

**One alone.** Pads that are not secret leave y_u itself: less known pads, is it small? The pads that the coalition knows are
those of its own edges *and any that were revealed*; besides, it tries pads made from public seeds. The score is ⟨opened y_u, k⟩.

**Two studies.** If a pad serves twice, it is gone from the difference of two published numbers, and so is a noise from the
difference of two sums. The target's value goes up in one study and down in the other, and the score is ⟨opened(y¹ − y²), k⟩,
of the target alone or of its component. The claim is that of two studies.

**How far a value can move.** Δ is about values before they are rounded; rounding can move vectors apart by up to √d steps more.
`furthest` finds two neighbouring values that gain from rounding in all coordinates, so a claim that forgets it is found out.

Columns are trials: a run with many columns is many runs with the same noise, pads of their own, and the same modulus.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.graphs import complete
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy import Observers
from netdp.protocols import MaskedSum
from netdp.protocols.masked import add_pads, opened, quantised, reduced
from netdp.simulate.masked import MaskedRecord, later_neighbours, pads_of
from netdp.simulate.run import Values

from .attack import Attack, Columns, System, batch_seed
from .table import attacks

_COLUMNS = 1 << 13
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
        columns = _RECORDS if self.protocol.unit == "record" else _COLUMNS
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
    """The sum of the target's component, less all that the coalition knows; of all attempts together."""

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
    """The target's own published number, less known pads, and less pads made from public seeds."""

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
    """The difference of what the target published in two studies: a pad that serves twice is gone from it."""

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
def _masked(protocol: MaskedSum, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    given = (*smallest(protocol, observers.parties, target), system)
    first = SumAttack(*given, attempts=protocol.attempts)
    tried: list[Attack] = [first, AloneAttack(*given), TwiceAttack(*given), SumTwiceAttack(*given)]
    if protocol.step <= protocol.sensitivity:
        from .residues import MODULI, ResidueAttack

        tried += [ResidueAttack(*given, modulo=modulo) for modulo in MODULI]
    return tried


def smallest(protocol: MaskedSum, observers: tuple[int, ...], target: int) -> tuple[MaskedSum, tuple[int, ...], int]:
    """One attempt among the fewest parties that are allowed, observers and target among them: where least hides the target."""
    if not protocol.absent:
        return protocol.replace(attempts=1, grid=protocol.step, modulus=protocol.q), observers, target
    needed = {*observers, target}
    spare = [u for u in range(protocol.n) if u not in needed]
    roster = sorted([*needed, *spare[: protocol.smallest_roster - len(needed)]])
    made = protocol.replace(
        graph=complete(len(roster)), masks="complete", attempts=1, absent=0, grid=protocol.step, modulus=protocol.q
    )
    return made, tuple(roster.index(v) for v in observers), roster.index(target)
