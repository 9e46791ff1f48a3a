"""How to train when nobody has seen the data: a protocol, all its settings, and what may be expected of it.

`plan_learning` asks for a `Landscape`, which is a function of the data. Here nothing is asked for that is not public:

    training_rules     (ε, δ), n, d and rows → iterations, clip, step, sampling
    training_before    the sums that standardise features, and how the budget is divided
    training_outlook   whether noise will win
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from netdp.accounting.masked.descent import against_any
from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.checks import count, positive, switch, whole
from netdp.planning.table import checked_target
from netdp.privacy import Guarantee, Observers, everywhere, gaussian_mu
from netdp.privacy.weak import weak_words
from netdp.protocols import MaskedDescent, MaskedSum

from .training_before import calibrated_together, composed, range_share, scaling_share
from .training_outlook import outlook
from .training_rules import (
    ITERATIONS,
    MOMENTUM,
    WANDERING,
    clip_for,
    edge_of,
    rough_edge,
    sampling_for,
    step_for,
    talk_graph,
)

if TYPE_CHECKING:
    from netdp.utility.descent_cost import Cost


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A protocol ready to train, and what may be expected of it.

    protocol    the calibrated `MaskedDescent`
    scaling     the `MaskedSum` that finds mean and variance of every feature first, or None
    ranges      the `MaskedSum` that finds the range of every feature before that, or None
    edge        how far the steps can lead in units of where noise leads, see `netdp.planning.training_rules`
    expected    the edge times the part of a gradient that all agree on, as on the tables tried
    warnings    why this will hardly work, if so
    rows        about how many rows a party has, if settings were chosen by it; public
    """

    protocol: MaskedDescent
    scaling: MaskedSum | None
    epsilon: float
    delta: float
    colluders: int
    edge: float
    expected: float
    warnings: tuple[str, ...]
    ranges: MaskedSum | None = None
    rows: int | None = None

    @property
    def before(self) -> tuple[MaskedSum, ...]:
        """The masked sums that are published before training, in their order."""
        return tuple(one for one in (self.ranges, self.scaling) if one is not None)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What any `colluders` parties together learn about anybody else, the scaling included."""
        found = against_any(self.protocol, self.colluders)
        who = "single other party" if self.colluders == 1 else f"{self.colluders} other parties together"
        more = tuple(
            f"{what} are published once, by a masked sum of its own (σ={one.sigma:g}), which is counted here"
            for one, what in (
                (self.ranges, "counts of how many values of each feature are of which size"),
                (self.scaling, "the means and mean squares of the features, clipped to these or to public bounds,"),
            )
            if one is not None
        )
        if self.rows is not None:
            more = (
                *more,
                f"about how many rows parties have ({self.rows:,} each at most, as stated) is public: clip, step and sampling may "
                "have been chosen by it",
            )
        return replace(
            found,
            curve=everywhere(composed(self.protocol, self.before, self.colluders), (self.protocol.n,)),
            factor=None,
            observers=Observers(roles=(f"worst {who}",)),
            names=self.protocol.graph.labels,
            assumptions=(*found.assumptions, *more),
        )

    @property
    def cost(self) -> Cost:
        """Bytes and rounds of the training, and an estimate of the time."""
        from netdp.utility.descent_cost import expected_cost

        return expected_cost(self.protocol)

    def __str__(self) -> str:
        lines = [f"plan for ε ≤ {self.epsilon:g} at δ = {self.delta:g}: {self.protocol.describe()}"]
        for one in self.before:
            lines.append(f"before that, ranges or mean and variance of the features: {one.describe()}")
        lines.append(f"steps can lead {self.edge:.3g} times as far as noise does; about {self.expected:.3g} usefully")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        described = self.protocol.to_dict()
        described["graph"] = self.protocol.graph.name
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "colluders": self.colluders,
            "protocol": described,
            "before": [{"sigma": one.sigma, "grid": one.step, "dimension": one.dimension} for one in self.before],
            "edge": self.edge,
            "expected": self.expected,
            "warnings": list(self.warnings),
        }


def plan_training(
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    *,
    rows: int | None = None,
    unit: str = "party",
    colluders: int = 1,
    graph: Graph | None = None,
    model: str = "logistic",
    records: int | None = None,
    features: int | None = None,
    bounded: bool = True,
    iterations: int | None = None,
    clip: float | None = None,
    step: float | None = None,
    sampling: float | None = None,
) -> TrainingPlan:
    """A `MaskedDescent` for n parties and models of d numbers at (ε, δ): all settings chosen, the least noise, no data looked at.

    rows        how many rows a party has, at most; public. Needed for unit="record"
    unit        what is protected: "party", all data of one party, or "record", one row more or less
    colluders   how many parties may pool what they see
    graph       whom the parties talk to; None: `talk_graph(n)`
    model       "logistic", "multinomial", "linear", or another name
    records     unit "record": about how many rows there are in all; by default n·rows
    features    how many features to standardise privately first; None: none
    bounded     whether they have public bounds; False: their ranges are found privately before
    iterations, clip, step, sampling   None: by the rules of `netdp.planning.training_rules`; what is given is taken

    >>> plan = plan_training(2048, 15, epsilon=1.0, delta=1e-6, rows=16)
    >>> plan.protocol.iterations, round(plan.protocol.clip, 2), round(plan.edge), plan.warnings
    (160, 0.21, 63, ())
    >>> plan.guarantee.worst_epsilon(1e-6) <= 1.0
    True
    >>> print(plan_training(16, 50, epsilon=0.5, delta=1e-6, rows=4).warnings[0])
    noise will win: 16 parties of 4 rows and 50 numbers in the model: steps can lead 0.14 times as far as noise does, ...
    """
    n, d = whole("n", n, 2), count("d", d)
    epsilon, delta = checked_target(positive("epsilon", epsilon), delta)
    colluders = count("colluders", colluders)
    each = None if rows is None else count("rows", rows)
    if unit not in WANDERING:
        raise InvalidValue(f"unknown unit {unit!r}; choose one of {', '.join(WANDERING)}")
    if unit == "record" and each is None:
        raise InvalidValue(
            "unit='record' needs rows=…, how many rows a party has at most: the modulus is made for so many"
        )
    if graph is not None and as_graph(graph, "graph").n != n:
        raise InvalidValue(f"{graph!r} has {graph.n} nodes for n = {n} parties; they must agree")
    if features is not None:
        features = count("features", features)
    every = None
    if unit == "record":
        assert each is not None
        every = n * each if records is None else count("records", records)
    elif records is not None:
        raise InvalidValue(f"records={records!r} belongs to unit='record'; leave it out")
    mu = float(gaussian_mu(epsilon, delta))
    shares: tuple[float, ...] = ()
    if features is not None:
        units = n if every is None else every
        shares = (scaling_share(features, unit, units, mu),)
        if not switch("bounded", bounded):
            shares = (range_share(features, unit, units, mu), *shares)
    rough = rough_edge(n, d, mu * math.sqrt(1 - sum(shares)), colluders=colluders, records=every)
    draft = MaskedDescent(
        talk_graph(n) if graph is None else as_graph(graph, "graph"),
        count("iterations", ITERATIONS if iterations is None else iterations),
        sigma=1.0,
        step=1.0 if step is None else positive("step", step),
        clip=clip_for(rough, each if unit == "party" else None) if clip is None else positive("clip", clip),
        dimension=d,
        unit=unit,
        sampling=sampling_for(each, d, unit) if sampling is None else sampling,
        max_records=each if unit == "record" else None,
        records=every,
        momentum=MOMENTUM,
        average="later",
    )
    protocol, before = calibrated_together(draft, epsilon, delta, colluders, features, shares, draft.graph.labels)
    scaling, ranges = (before[-1] if before else None), (before[0] if len(before) > 1 else None)
    found = edge_of(protocol)
    if step is None:
        length = step_for(
            found,
            iterations=protocol.iterations,
            clip=protocol.clip,
            unit=unit,
            momentum=protocol.momentum,
            model=model,
        )
        protocol = protocol.replace(step=length)
    expected = outlook(protocol, each)
    weak = weak_words(epsilon)
    warnings = expected.warnings if weak is None else (weak, *expected.warnings)
    return TrainingPlan(
        protocol, scaling, epsilon, delta, colluders, expected.edge, expected.expected, warnings, ranges, each
    )
