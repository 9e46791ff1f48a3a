"""How to train when nobody has seen the data: a protocol, all its settings, and what may be expected of it.

`plan_learning` asks for a `Landscape`, which is a function of the data. Here nothing is asked for that is not public. Rows are
scaled to norm at most 1, so a feature counts by its size: before training, masked sums find ranges (where no bounds are known),
means and variances, each with its share of μ²: what makes means accurate to 0.05 and counts to 0.03 of the whole, at least 2 %
and at most 20 %. All are composed as the adaptive releases that they are: docs/proofs/learning.md#private-standardisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.masked.account import fewest_honest, release_of
from netdp.families.masked.account_descent import against_any, learned_curve
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import MaskedSum
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.learn.planning import (
    _TRAINING_OUTLOOK_PARTICULAR,
    ITERATIONS,
    LEAST_EDGE,
    MOMENTUM,
    WANDERING,
    Learning,
    Outlook,
    clip_for,
    learnings,
    rough_edge,
    sampling_for,
    step_for,
    talk_graph,
)
from netdp.mechanisms.noisy_sums import releases_curve
from netdp.models.schema import moment_count, moment_length
from netdp.numerics.checks import count, positive, switch, whole
from netdp.privacy.curve import Curve
from netdp.privacy.curves import everywhere
from netdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.wording import weak_words
from netdp.protocols.calibration import calibrate, checked_target
from netdp.protocols.grid import power_below

if TYPE_CHECKING:
    from netdp.protocols.training import TrainingCost

SMALLEST, LARGEST = -10, 29
"""Sizes are told apart by powers of two from 2^SMALLEST to 2^(LARGEST + 1), both signs; what is smaller counts as 0."""

SIZES = 2 * (LARGEST - SMALLEST + 1) + 1

_ACCURATE = 0.05

_COUNTED = 0.03

_SHARES = (0.02, 0.2)


def range_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of, for every feature, the share of values in each of `SIZES` classes of size (of records: how many).

    A party's shares are ≥ 0 and sum to 1 for every feature, so two parties' are at most √2 apart in each; a record is in one
    class of each feature, so it is √f long.

    >>> from netdp import graphs
    >>> p = range_sum(graphs.complete(10), features=4, unit="party", rows=None)
    >>> p.dimension == 4 * SIZES, round(p.sensitivity**2, 6)
    (True, 8.0)
    """
    record = unit == "record"
    length = math.sqrt((1 if record else 2) * features) * (1 + 1e-12)
    reach = 2.0 * (rows or 1) if record else 1.0
    return MaskedSum(graph, sigma=sigma, sensitivity=length, dimension=SIZES * features, unit=unit, reach=reach)


def scaling_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of (x, x² − 1) for every feature x in [−1, 1], and for records a one that counts them.

    Two parties' means of that are at most √(4f) apart, and a record's is at most √(f + 1) long (`netdp.models.schema`).

    >>> from netdp import graphs
    >>> p = scaling_sum(graphs.complete(10), features=4, unit="party", rows=None)
    >>> p.dimension, round(p.sensitivity**2, 6)
    (8, 16.0)
    """
    return MaskedSum(
        graph,
        sigma=sigma,
        sensitivity=moment_length(features, unit),
        dimension=moment_count(features, unit),
        unit=unit,
        reach=1.0 if unit == "party" else 2.0 * (rows or 1),
    )


def scaling_share(features: int, unit: str, units: int, mu: float) -> float:
    """The share of μ² with which the means of so many features are accurate to 0.05, at least 2 % and at most 20 %.

    units : how many parties (or records) there are, about.

    >>> round(scaling_share(10, "record", 1000, mu=0.2), 3), scaling_share(10, "record", 70_000, mu=0.2)
    (0.11, 0.02)
    """
    return _share(moment_length(features, unit) ** 2, _ACCURATE, units, mu)


def range_share(features: int, unit: str, units: int, mu: float) -> float:
    """The share of μ² with which every count of sizes is accurate to 0.03 of the whole, within the same limits.

    >>> round(range_share(10, "record", 2000, mu=0.2), 3)
    0.069
    """
    return _share((1.0 if unit == "record" else 2.0) * features, _COUNTED, units, mu)


def composed(protocol: MaskedDescent, before: Sequence[MaskedSum], colluders: int) -> Curve:
    """What the sums before training and training tell any so many colluders together about one of the others."""
    honest = fewest_honest(protocol.sum, colluders)
    if not before:
        return learned_curve(protocol, honest)
    firsts = [release_of(one, honest) for one in before]
    if protocol.sampling == 1:
        return releases_curve([*firsts, *[release_of(protocol.sum, honest)] * protocol.releases])
    return learned_curve(protocol, honest).compose(releases_curve(firsts))


@lru_cache(maxsize=64)
def calibrated_together(
    draft: MaskedDescent,
    epsilon: float,
    delta: float,
    colluders: int,
    features: int | None,
    shares: tuple[float, ...],
    names: tuple[str, ...] | None,
) -> tuple[MaskedDescent, tuple[MaskedSum, ...]]:
    """Training and the sums before it, all with the least noise that their shares and the rest of the budget leave.

    Nothing here depends on the data, so cross-validation computes it once; `names` because equal graphs may differ in them.
    """
    if features is None:
        return calibrate(draft, epsilon, delta, colluders=colluders), ()
    mu = float(gaussian_mu(epsilon, delta))
    made = (range_sum, scaling_sum)[-len(shares) :]
    before = tuple(
        calibrate(
            _on_a_fit_grid(
                make(draft.graph, features, draft.unit, draft.max_records),
                mu * math.sqrt(share * max(draft.n - colluders, 1)),
            ),
            float(gaussian_epsilon(mu * math.sqrt(share), delta)),
            delta,
            colluders=colluders,
        )
        for make, share in zip(made, shares, strict=True)
    )
    rest = float(gaussian_epsilon(mu * math.sqrt(1 - sum(shares)), delta))
    protocol = calibrate(draft, rest, delta, colluders=colluders)
    more = 1e-4
    while float(np.max(composed(protocol, before, colluders).epsilon(delta))) > epsilon:
        protocol = protocol.replace(sigma=protocol.sigma * (1 + more))
        more *= 2
    return protocol, before


def _share(square: float, off: float, units: int, mu: float) -> float:
    return min(max(square / (units * mu * off) ** 2, _SHARES[0]), _SHARES[1])


def _on_a_fit_grid(protocol: MaskedSum, mu: float) -> MaskedSum:
    """Where much noise is needed, a grid on which it can be drawn: a share of noise of about Δ/μ, at most 2¹⁸ steps."""
    sigma = protocol.sensitivity / mu
    coarse = power_below(sigma / 2**18)
    return protocol.replace(sigma=max(sigma, coarse), grid=coarse) if coarse > protocol.step else protocol


def edge_of(protocol: MaskedDescent) -> float:
    """How far the steps can lead, in units of where the noise of all parties leads.

    >>> p = MaskedDescent(talk_graph(100), 400, sigma=0.5, step=1.0, clip=0.5, dimension=25)
    >>> edge_of(p)
    40.0
    """
    spread = protocol.sigma * math.sqrt(protocol.n) / protocol.expected  # of the mean gradient, in one coordinate
    return protocol.clip * math.sqrt(protocol.iterations / protocol.dimension) / spread


def outlook(protocol: MaskedDescent, rows: int | None = None) -> Outlook:
    """How far training with this protocol will lead, and a warning if noise will win; no data looked at.

    rows : how many rows a party has, at most; None: nobody has said so, and one row is reckoned with. Unit "record": not used,
        the protocol states the records.

    >>> from netdp import graphs
    >>> found = outlook(MaskedDescent(graphs.complete(8), 100, sigma=0.25, step=1.0, clip=0.5, dimension=16), rows=4)
    >>> round(found.edge, 2), round(found.expected, 2), found.warnings
    (14.14, 7.07, ())
    """
    if not isinstance(protocol, MaskedDescent):
        raise InvalidValue(f"outlook takes a MaskedDescent, got {protocol!r}; plan_training makes one")
    each = 1 if protocol.unit == "record" or rows is None else count("rows", rows)
    edge = edge_of(protocol)
    useful = edge / math.sqrt(1 + _TRAINING_OUTLOOK_PARTICULAR / each)
    return Outlook(edge, useful, () if useful >= LEAST_EDGE else (_words(protocol, edge, useful, rows),))


def _words(protocol: MaskedDescent, edge: float, useful: float, rows: int | None) -> str:
    if protocol.unit == "record":
        who, also = f"{protocol.units:,} rows of {protocol.n:,} parties", ""
    else:
        who = f"{protocol.n:,} parties" + (f" of {rows:,} rows" if rows else "")
        also = ", and so does to protect single records instead of whole parties (unit record)"
    return (
        f"noise will win: {who} and {protocol.dimension:,} numbers in the model: steps can lead {edge:.2g} times as far as noise "
        f"does, and about {useful:.2g} times counting only what all agree on; below {LEAST_EDGE:g} little was learned on the "
        f"tables tried. More parties (or rows), a larger epsilon or fewer features (a smaller model) help{also}; another step "
        "does not"
    )


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A protocol ready to train, and what may be expected of it.

    protocol    the calibrated `MaskedDescent`
    scaling     the `MaskedSum` that finds mean and variance of every feature first, or None
    ranges      the `MaskedSum` that finds the range of every feature before that, or None
    edge        how far the steps can lead in units of where noise leads, see `netdp.learn.planning`
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
    def cost(self) -> TrainingCost:
        """Bytes and rounds of the training, and an estimate of the time."""
        from netdp.families.masked.error import expected_cost

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
    iterations, clip, step, sampling   None: by the rules of `netdp.learn.planning`; what is given is taken

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


@learnings.register
def _learning(protocol: MaskedDescent) -> Learning:
    return Learning()
