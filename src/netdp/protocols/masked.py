"""A sum under one-time pads: values on a grid, as integers modulo q, each hidden by pads that cancel in the sum.

Every pair {u, v} of a *mask graph* shares a pad m_uv, uniform on Z_q^d. Party u publishes once

    y_u = k_u + η_u + Σ_{v>u} m_uv − Σ_{v<u} m_uv   (mod q)        k_u its value in grid steps, η_u its share of noise

and the sum of all y is the sum of all k + η, because each pad comes once with each sign. The *talk graph* only
spreads the y:

- flood: everybody passes on what is new until all hold all y; as many rounds as the graph's diameter.
- average: everybody averages with its neighbours (Chebyshev weights) until n times the mean, rounded, is the sum of all y.

**On the grid.** The step g is a power of two, so x/g is exact in floating point, and k = ⌊x/g + ½⌋ − ⌊centre/g + ½⌋
is computed exactly. That map is monotone and commutes with shifts by whole steps, so two numbers at most Δ apart
become at most ⌈Δ/g⌉ steps apart: nothing is added where Δ is a multiple of g. Vectors: every coordinate of a
difference moves by less than a step, so at most Δ/g + √d in L2 norm. (`held` accepts values a relative 10⁻⁹ further
apart than Δ; vectors pay for 2·10⁻⁹ more, and a single number is clipped or refused in integers.) σ²/g² is rounded up
to the whole number that the exact sampler needs.

**Unit record.** A party's value is the sum of its records, each of L2 norm at most Δ, *each rounded by itself* to
whole numbers, which are then added. Adding or removing a record moves the value by exactly that record's rounded
vector r: rounding the sum instead would let one record carry others over a half. A coordinate moves by at most ½ in
rounding, so ‖r‖ ≤ Δ/g + √d/2; a single number in [−Δ, Δ] becomes at most ⌊Δ/g + ½⌋ (the rule is monotone, and −Δ/g
is rounded up where Δ/g is). Clipping every coordinate of the sum to what it may reach, `quantised_records`, brings two
sums no further apart. The number of records is hidden with the rest: no records give 0, so `centre` must be 0.

**The modulus.** The sum is read off as the representative between −q/2 and q/2. Every |k_u| is at most ⌈R/g⌉ + 1,
because values lie within R = `reach` of `centre` (Δ by default; `contribution` refuses what lies further), and the noise
of all exceeds 10 of its deviations with probability below 4·10⁻²² (the discrete Gaussian is subgaussian with its own
variance). So q > 2(n(⌈R/g⌉ + 1) + 10√(nσ²/g²)) is asked for. Privacy does not depend on q.

**Averaging exactly**: `netdp.protocols.masked_averaging`; the steps of one party: `netdp.protocols.masked_steps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, as_graph
from netdp.graphs.diameter import diameter
from netdp.numerics.arrays import UNIT
from netdp.numerics.checks import count, finite, scale, whole

from .base import OnGraph
from .grid import SLACK, grid_step, nearest, power_below
from .mask_graphs import random_rings
from .masked_averaging import (
    Averaging,
    averaging,
    averaging_end,
    averaging_row,
    averaging_start,
    averaging_step,
    averaging_update,
)
from .masked_steps import (
    add_pads,
    contribution,
    from_bytes,
    opened,
    quantised,
    quantised_records,
    record_tables,
    reduced,
    summed_records,
    to_bytes,
    wire_width,
)

SPREADS = ("flood", "average")
UNITS = ("party", "record")

_FINEST = 2**40  # variance of a share in squared steps that the sampler draws
_LARGEST = 2**62
_USUAL = 2**32
_DEVIATIONS = 10


@dataclass(frozen=True)
class MaskedSum(OnGraph):
    """The mean of all values, each published once under one-time pads that cancel in the sum.

    Parameters
    ----------
    graph : connected `Graph` to talk along; it spreads what is published and has no part in the privacy.
    sigma : standard deviation of one party's share of the noise, in units of the values.
    masks : who shares pads: "complete" (everybody with everybody), an even degree k (k/2 random rings through all
        parties, drawn publicly from `mask_seed`), or a `Graph`.
    spread : "flood" or "average".
    sensitivity : Δ, the largest L2 distance between two values of one party.
    dimension : how many numbers a value has, at most; rounding to the grid moves more of them further apart.
    centre : a public number; all coordinates of all values lie within Δ of it. 0 does for values in [0, Δ] or [−Δ, Δ].
    grid : the step of the grid, a power of two. By default the largest that is no coarser than σ/(16√n) and
        Δ/(1024√d): rounding then adds at most a thousandth to Δ and to the error of the mean.
    modulus : q, a power of two that holds the sum with its noise. By default 2³² to flood, the smallest to average; more
        if that is needed.
    mask_seed : of the random mask graph, if `masks` is a degree.
    attempts : how often a party publishes in all, at most, each time with fresh pads and fresh noise. The guarantee covers
        all of them: whoever delays messages can force them.
    absent : how many parties may be missing from the roster of an attempt, at most. Fewer shares of noise hide each value
        then, and the guarantee counts only those.
    unit : what is protected: "party", all data of one party, or "record", one record added to or removed from its data.
        Then a party's value is the sum of its records, Δ bounds the L2 norm of a record, and `centre` is 0.
    reach : how far from `centre` a coordinate of a party's (rounded) value may lie; by default the sensitivity. Only the
        modulus depends on it.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(100), sigma=0.5)
    >>> p.step, p.share, p.q == 2**32, p.rounds
    (0.0009765625, 262144, True, 50)
    >>> p.replace(modulus=2**16)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: modulus=65536 cannot hold the sum of 100 values with its noise; give at least 2**19 = 524288, ...
    """

    kind: ClassVar[str] = "masked-sum"
    graph: Graph
    sigma: float
    masks: str | int | Graph = "complete"
    spread: str = "flood"
    sensitivity: float = 1.0
    dimension: int = 1
    centre: float = 0.0
    grid: float | None = None
    modulus: int | None = None
    mask_seed: int = 0
    attempts: int = 1
    absent: int = 0
    unit: str = "party"
    reach: float | None = None

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "MaskedSum"))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(dimension=count("dimension", self.dimension), centre=finite("centre", self.centre))
        self._set(mask_seed=whole("mask_seed", self.mask_seed), masks=self._checked_masks())
        if self.spread not in SPREADS:
            raise InvalidValue(f"unknown spread {self.spread!r}; choose one of {', '.join(SPREADS)}")
        if self.graph.n < 2:
            raise InvalidValue("a masked sum needs at least two parties, the graph has 1")
        self.graph.require_connected("spreading what is published")
        self._check_unit()
        self._check_attempts()
        self._check_grid()
        self._check_modulus()

    def _check_unit(self) -> None:
        if self.unit not in UNITS:
            raise InvalidValue(f"unknown unit {self.unit!r}; choose one of {', '.join(UNITS)}")
        self._set(unit=str(self.unit))
        if self.unit == "record" and self.centre != 0:
            raise InvalidValue(
                f"centre={self.centre!r} with unit='record': a party without records adds 0, so records are measured from 0; "
                "subtract the public middle from every record, and leave centre out"
            )
        if self.reach is not None:
            self._set(reach=scale("reach", self.reach))

    def _check_attempts(self) -> None:
        self._set(attempts=count("attempts", self.attempts), absent=whole("absent", self.absent))
        if self.absent >= self.n - 1:
            raise InvalidValue(
                f"absent={self.absent} of {self.n} parties leaves nobody beside a single observer; allow at most {self.n - 2}"
            )
        if self.absent and not self._complete_masks:
            raise Unsupported(
                f"absent={self.absent} on a mask graph that is not complete: whose absence cuts the others apart is not searched "
                'for; share pads between all pairs, masks="complete", or allow no absence'
            )

    @property
    def _complete_masks(self) -> bool:
        if isinstance(self.masks, Graph):
            return self.masks.m == self.n * (self.n - 1) // 2
        return isinstance(self.masks, str) or self.masks == self.n - 1

    def _checked_masks(self) -> str | int | Graph:
        given: Any = self.masks
        if isinstance(given, str):
            if given != "complete":
                raise InvalidValue(f'masks must be "complete", a degree or a Graph, got {given!r}')
            return given
        if isinstance(given, dict):
            given = Graph.from_dict(given)
        if isinstance(given, Graph):
            return given.in_order_of(self.graph)
        degree = count('masks ("complete", a degree or a Graph)', given)
        if degree != self.graph.n - 1 and (degree >= self.graph.n or degree % 2):
            raise InvalidValue(
                f"masks={degree} among {self.graph.n} parties: a degree is even and less than n, as random rings give two partners "
                f"each; or {self.graph.n - 1}, which is everybody"
            )
        return degree

    def _check_grid(self) -> None:
        if self.grid is not None:
            self._set(grid=grid_step(self.grid))
        if self.sigma < self.step:
            raise InvalidValue(
                f"sigma={self.sigma:g} is less than one step of the grid {self.step:g}; give a grid of at most "
                f"{power_below(self.sigma)!r}"
            )
        if self.share > _FINEST or self.sensitivity / self.step > 2**40 or abs(self.centre) / self.step > 2**50:
            raise InvalidValue(
                f"the grid {self.step:g} is too fine for sigma={self.sigma:g}, sensitivity={self.sensitivity:g} and "
                f"centre={self.centre:g}: σ may have 2²⁰ steps, Δ 2⁴⁰ and the centre 2⁵⁰; give a coarser grid"
            )

    def _check_modulus(self) -> None:
        least = self._least_modulus()
        if least > _LARGEST:
            raise InvalidValue(
                f"the sum with its noise needs a modulus of {least:g}, more than 2⁶²; give a coarser grid"
            )
        if self.modulus is None:
            return
        given = count("modulus", self.modulus)
        if given & (given - 1) or given > _LARGEST:
            raise InvalidValue(f"modulus must be a power of two up to 2⁶², got {given}")
        if given < least:
            raise InvalidValue(
                f"modulus={given} cannot hold the sum of {self.n} values with its noise; give at least "
                f"2**{least.bit_length() - 1} = {least}, or a coarser grid"
            )
        self._set(modulus=given)

    def _least_modulus(self) -> int:
        values = self.n * self.reach_steps
        noise = _DEVIATIONS * (math.isqrt(self.n * self.share) + 1)
        return 1 << (2 * (values + noise)).bit_length()

    @cached_property
    def step(self) -> float:
        """The step of the grid that is used."""
        if self.grid is not None:
            return self.grid
        return power_below(
            min(self.sigma / (16 * math.sqrt(self.n)), self.sensitivity / (1024 * math.sqrt(self.dimension)))
        )

    @cached_property
    def share(self) -> int:
        """The variance of one party's noise in squared grid steps: σ²/g², rounded up to a whole number."""
        return math.ceil(Fraction(self.sigma / self.step) ** 2)

    @cached_property
    def q(self) -> int:
        """The modulus that is used."""
        if self.modulus is not None:
            return self.modulus
        least = self._least_modulus()
        return least if self.spread == "average" else max(least, _USUAL)

    @property
    def smallest_roster(self) -> int:
        """How many parties take part in an attempt, at least."""
        return self.n - self.absent

    @cached_property
    def reach_steps(self) -> int:
        """How many grid steps from the centre a coordinate of a party's rounded value may lie."""
        furthest = self.sensitivity if self.reach is None else self.reach
        return math.ceil(furthest * (1 + SLACK) / self.step) + 1

    @property
    def centre_steps(self) -> int:
        """The centre in grid steps, rounded as values are."""
        return int(nearest(np.array([self.centre / self.step]))[0])

    @property
    def distance(self) -> float:
        """How far, in grid steps and L2 norm, what is protected moves a party's value: two values of it, or one record."""
        steps = Fraction(self.sensitivity) / Fraction(self.step)
        record = self.unit == "record"
        if self.dimension == 1:
            return max(1, math.floor(steps + Fraction(1, 2))) if record else math.ceil(steps)
        moved = math.sqrt(self.dimension) / (2 if record else 1)
        return (self.sensitivity * (1 + SLACK) / self.step + moved) * (1 + 4 * UNIT)

    @cached_property
    def mask_graph(self) -> Graph | None:
        """Who shares pads; None if everybody does with everybody."""
        if self._complete_masks:
            return None
        if isinstance(self.masks, Graph):
            return self.masks
        assert isinstance(self.masks, int)
        return random_rings(self.n, self.masks // 2, self.mask_seed)

    @cached_property
    def averaging(self) -> Averaging:
        """The weights with which averaging is exact; refuses where it cannot be."""
        return averaging(self.graph, self.q)

    @cached_property
    def rounds(self) -> int:
        """How many rounds it takes until everybody holds the sum."""
        if self.spread == "average":
            return self.averaging.rounds
        return diameter(self.graph, work=math.inf).high

    @property
    def link_bytes(self) -> int:
        """How many bytes cross a link in one direction, at most: all y once, or one double per round and coordinate."""
        if self.spread == "average":
            return 8 * self.dimension * self.rounds
        return self.n * self.dimension * wire_width(self.q)

    def prepare(self) -> None:
        self.step, self.share, self.q, self.mask_graph  # noqa: B018

    def describe(self) -> str:
        if isinstance(self.masks, Graph):
            pads = f"pads along {self.masks.name}"
        elif self._complete_masks:
            pads = "pads between all pairs, so that any coalition faces the noise of all others"
        else:
            assert isinstance(self.masks, int)
            pads = f"pads along {self.masks // 2} random rings (seed {self.mask_seed})"
        more = f", at most {self.attempts} attempts" if self.attempts > 1 else ""
        more += f", at most {self.absent} absent" if self.absent else ""
        more += "; protects single records" if self.unit == "record" else ""
        return (
            f"{self.graph.name}: {self.n:,} parties, {self.graph.m:,} edges; masked sum σ={self.sigma:g} Δ={self.sensitivity:g}, "
            f"{pads}; grid {self.step:g} modulo 2^{self.q.bit_length() - 1}, spread by {self.spread}{more}"
        )


__all__ = [
    "SLACK",
    "SPREADS",
    "UNITS",
    "Averaging",
    "MaskedSum",
    "add_pads",
    "averaging",
    "averaging_end",
    "averaging_row",
    "averaging_start",
    "averaging_step",
    "averaging_update",
    "contribution",
    "from_bytes",
    "nearest",
    "opened",
    "quantised",
    "quantised_records",
    "record_tables",
    "reduced",
    "summed_records",
    "to_bytes",
    "wire_width",
]
