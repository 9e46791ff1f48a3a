"""How to train when nobody has seen the data: iterations, clipping, step and sampling from (ε, δ), n, d and rows alone.

`plan_learning` asks for a `Landscape`, which is a function of the data. Here nothing is asked for that is not public, and
nothing is looked at, so choosing costs no privacy. What is chosen changes only how much is learned: the loss of the
protocol that comes out is computed and certified by `netdp.account` whatever stands here.

**The edge.** T steps of length ν on gradients clipped to L move a model by at most νTL in the direction that all agree on, and
their noise by about ν·s·√(Td) in a random one, s the deviation of the mean gradient's noise in one coordinate. Their ratio

    edge = L·√T / (s·√d),       in Gaussian terms nμ/(2√d) for parties, Nμ/√d for N records,  μ = μ(ε, δ)

depends neither on ν nor, at a fixed (ε, δ), on T and L: it is what the target leaves to be won. Everything below is a
function of it.

**Four rules.** Lengths of steps and the number of iterations were chosen on housing prices and spambase; the least clip,
momentum and the longest step also with a look at cardio, housing longitude and a synthetic survey (rows of one class at each
party, features that are not centred). Test rows were used throughout, so figures on these tables flatter the rules a little.
Tables that had no part in it: case `sizes` of `python benchmarks/estimators.py`, which prints how far the default is from the
best of a grid.

1. T = 160 with momentum 0.9, and the mean of the later half of the models is kept. More or fewer iterations change little
   where noise decides (40 to 320: about a point); where it does not, ill-conditioned tables need them.
2. A party's gradient is its mean over its rows, *clipped as a whole*, not row by row: the mean of many rows is much shorter
   than a row's gradient but points the right way, so a tight clip costs nothing and the noise shrinks with it (housing,
   256 parties, ε = 1: .83 instead of .77). L = edge/300, at least 0.1 and at most 0.5. At 0.5 the gradient of a row of norm
   1 is no longer clipped at the start, so nothing is distorted when noise is no concern. Tighter than 0.1 gains half a
   point where all parties' rows are alike and loses four where every party has rows of one class only.
3. The way νTL/(1 − momentum) is 15·edge for parties and 20·edge for records: noise alone then carries the model 15 or 20
   units, and margins of a few units decide (linear regression, of targets in [−1, 1]: 4·edge). At most 30 units an
   iteration; linear regression: a step of at most 2, beyond which a quadratic might overshoot; models about which nothing is
   known, such as networks: L·step at most 0.5.
4. Everybody takes part in every iteration. At equal (ε, δ) sampling hardly changes the noise of a mean gradient, it saves
   work; so records are sampled only where an iteration would touch more than 2·10⁷ gradient coordinates at a party.

**Will noise win?** A gradient is mostly what is particular to its row or party: with m rows to a party the part that all
agree on is about 1/√(1 + 12/m) of it (on the tables above). Edge times that below 1.5: little was learned.

**Private standardisation.** Rows are scaled to norm at most 1, so a feature counts by its size. With public bounds every
feature is brought to [−1, 1] row by row, free of charge; its mean and variance there take one masked sum of two numbers a
feature (`netdp.learn.scaling`). Its share of μ² is what makes the means accurate to 0.05, at least 2 % and at most 20 %.
Where no bounds are known, a masked sum before that counts how many values of each feature are of which size (`netdp.learn.ranges`),
with a share of its own: what makes every count accurate to 0.03 of the whole, within the same limits. All are composed as the
adaptive releases that they are, not added up: docs/guarantees.md#private-standardisation.
"""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp import graphs as graph_families
from netdp.accounting.masked.descent import against_any, learned_curve
from netdp.accounting.masked.releases import releases_curve
from netdp.accounting.masked.sums import fewest_honest, release_of
from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.numerics.checks import count, positive, switch, whole
from netdp.planning.calibrate import calibrate
from netdp.planning.table import checked_target
from netdp.privacy import Curve, Guarantee, Observers, everywhere, gaussian_epsilon, gaussian_mu
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.grid import power_below

if TYPE_CHECKING:
    from netdp.utility.descent_cost import Cost

ITERATIONS = 160
MOMENTUM = 0.9
LEAST_EDGE = 1.5
"""Below it, in units of what all parties agree on, one is warned."""

_CLIPS = (0.1, 0.5)
_EDGE_PER_CLIP = 300.0
_WANDERING = {"party": 15.0, "record": 20.0}
_NEAR = 4.0  # the same for linear regression, whose targets lie in [−1, 1]
_FURTHEST = 30.0  # units an iteration, gradients as long as the clip, momentum included
_LINEAR = 2.0  # rows have norm at most 1: no eigenvalue is above 1, and heavy balls are stable below 2(1 + momentum)
_UNKNOWN = 0.5  # clip times step, of models about which nothing is known
_WORK = 2e7  # coordinates of gradients that a party computes in an iteration
_PARTICULAR = 12.0
_ACCURATE = 0.05
_COUNTED = 0.03
SMALLEST, LARGEST = -10, 29
"""Sizes are told apart by powers of two from 2^SMALLEST to 2^(LARGEST + 1), both signs; what is smaller counts as 0."""
SIZES = 2 * (LARGEST - SMALLEST + 1) + 1
_SHARES = (0.02, 0.2)
LINEAR_MODELS = ("logistic", "multinomial", "linear")


class NoiseWarning(UserWarning):
    """The noise that privacy asks for is expected to drown what could be learned."""


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A protocol ready to train, and what may be expected of it.

    protocol    the calibrated `MaskedDescent`
    scaling     the `MaskedSum` that finds mean and variance of every feature first, or None
    ranges      the `MaskedSum` that finds the range of every feature before that, or None
    edge        how far the steps can lead in units of where noise leads, see `netdp.planning.training`
    expected    the edge times the part of a gradient that all agree on, as on the tables tried
    warnings    why this will hardly work, if so
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
    iterations, clip, step, sampling   None: as above; what is given is taken

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
    if unit not in _WANDERING:
        raise InvalidValue(f"unknown unit {unit!r}; choose one of {', '.join(_WANDERING)}")
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
        record, units = unit == "record", n if every is None else every
        lengths = [(1.25 * features + 1 if record else 5.0 * features, _ACCURATE)]
        if not switch("bounded", bounded):
            lengths.insert(0, ((1.0 if record else 2.0) * features, _COUNTED))
        shares = tuple(min(max(square / (units * mu * off) ** 2, _SHARES[0]), _SHARES[1]) for square, off in lengths)
    rough = rough_edge(n, d, mu * math.sqrt(1 - sum(shares)), colluders=colluders, records=every)
    draft = MaskedDescent(
        talk_graph(n) if graph is None else as_graph(graph, "graph"),
        count("iterations", ITERATIONS if iterations is None else iterations),
        sigma=1.0,
        step=1.0 if step is None else positive("step", step),
        clip=clip_for(rough) if clip is None else positive("clip", clip),
        dimension=d,
        unit=unit,
        sampling=_sampling(each, d, unit) if sampling is None else sampling,
        max_records=each if unit == "record" else None,
        records=every,
        momentum=MOMENTUM,
        average="later",
    )
    protocol, before = _calibrated(draft, epsilon, delta, colluders, features, shares, draft.graph.labels)
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
    useful = found / math.sqrt(1 + _PARTICULAR / (1 if unit == "record" else each or 1))
    return TrainingPlan(
        protocol,
        scaling,
        epsilon,
        delta,
        colluders,
        found,
        useful,
        _warnings(protocol, found, useful, each, every),
        ranges,
    )


def talk_graph(n: int) -> Graph:
    """Whom n parties talk to if nobody says: everybody for a few, a hypercube for powers of two, else the exponential graph.

    >>> [talk_graph(n).name for n in (5, 64, 100)]
    ['complete(5)', 'hypercube(6)', 'exponential(100)']
    """
    if n <= 16:
        return graph_families.complete(n)
    if n & (n - 1) == 0:
        return graph_families.hypercube(n.bit_length() - 1)
    return graph_families.exponential(n)


def rough_edge(n: int, d: int, mu: float, *, colluders: int = 1, records: int | None = None) -> float:
    """The edge before anything is calibrated: nμ/(2√d) for parties, Nμ/√d for records; the colluders' noise helps nobody.

    >>> round(rough_edge(2048, 15, 0.237), 1)
    62.6
    """
    honest = math.sqrt(max(n - colluders, 1) / n)
    return (n / 2 if records is None else records) * mu * honest / math.sqrt(d)


def clip_for(edge: float) -> float:
    """L = edge/300, within 0.1 … 0.5."""
    return min(max(edge / _EDGE_PER_CLIP, _CLIPS[0]), _CLIPS[1])


def edge_of(protocol: MaskedDescent) -> float:
    """How far the steps can lead, in units of where the noise of all parties leads.

    >>> p = MaskedDescent(talk_graph(100), 400, sigma=0.5, step=1.0, clip=0.5, dimension=25)
    >>> edge_of(p)
    40.0
    """
    spread = protocol.sigma * math.sqrt(protocol.n) / protocol.expected  # of the mean gradient, in one coordinate
    return protocol.clip * math.sqrt(protocol.iterations / protocol.dimension) / spread


def step_for(
    edge: float, *, iterations: int, clip: float, unit: str = "party", momentum: float = 0.0, model: str = "logistic"
) -> float:
    """The step with which noise alone carries the model the set way, and no further in one iteration than is allowed.

    >>> step_for(60.0, iterations=160, clip=0.2), step_for(600.0, iterations=160, clip=0.2, model="linear")
    (28.125, 2.0)
    """
    wandering = _NEAR if model == "linear" else _WANDERING[unit]
    step = (1 - momentum) * min(wandering * edge / iterations, _FURTHEST) / clip
    if model == "linear":
        return min(step, _LINEAR)
    return step if model in LINEAR_MODELS else min(step, _UNKNOWN / clip)


def composed(protocol: MaskedDescent, before: Sequence[MaskedSum], colluders: int) -> Curve:
    """What the sums before training and training tell any so many colluders together about one of the others."""
    honest = fewest_honest(protocol.sum, colluders)
    if not before:
        return learned_curve(protocol, honest)
    firsts = [release_of(one, honest) for one in before]
    if protocol.sampling == 1:
        return releases_curve([*firsts, *[release_of(protocol.sum, honest)] * protocol.releases])
    return learned_curve(protocol, honest).compose(releases_curve(firsts))


def range_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of, for every feature, the share of values in each of `SIZES` classes of size (of records: how many).

    A party's shares are ≥ 0 and sum to 1 for every feature, so two parties' are at most √2 apart in each; a record is in one
    class of each feature, so it is √f long.

    >>> p = range_sum(talk_graph(10), features=4, unit="party", rows=None)
    >>> p.dimension == 4 * SIZES, round(p.sensitivity**2, 6)
    (True, 8.0)
    """
    record = unit == "record"
    length = math.sqrt((1 if record else 2) * features) * (1 + 1e-12)
    reach = 2.0 * (rows or 1) if record else 1.0
    return MaskedSum(graph, sigma=sigma, sensitivity=length, dimension=SIZES * features, unit=unit, reach=reach)


def scaling_sum(graph: Graph, features: int, unit: str, rows: int | None, sigma: float = 1.0) -> MaskedSum:
    """The masked sum of (x, x² − ½) for every feature x in [−1, 1], and for records a one that counts them.

    A party's mean of that lies in [−1, 1] and [−½, ½]: two of them are at most √(4f + f) apart. A record's is at most
    √(f + f/4 + 1) long.

    >>> p = scaling_sum(talk_graph(10), features=4, unit="party", rows=None)
    >>> p.dimension, round(p.sensitivity**2, 6)
    (8, 20.0)
    """
    record = unit == "record"
    length = math.sqrt(1.25 * features + 1 if record else 5.0 * features) * (1 + 1e-12)
    return MaskedSum(
        graph,
        sigma=sigma,
        sensitivity=length,
        dimension=2 * features + record,
        unit=unit,
        reach=1.0 if not record else 2.0 * (rows or 1),
    )


def warn(plan: TrainingPlan, stacklevel: int = 3) -> None:
    """A `NoiseWarning` for every warning of the plan."""
    for text in plan.warnings:
        python_warnings.warn(text, NoiseWarning, stacklevel=stacklevel + 1)


def _sampling(rows: int | None, d: int, unit: str) -> float:
    if unit == "party" or rows is None or rows * d <= _WORK:
        return 1.0
    return max(_WORK / (rows * d), min(1.0, 256 / rows))


@lru_cache(maxsize=64)
def _calibrated(
    draft: MaskedDescent,
    epsilon: float,
    delta: float,
    colluders: int,
    features: int | None,
    shares: tuple[float, ...],
    names: tuple[str, ...] | None,
) -> tuple[MaskedDescent, tuple[MaskedSum, ...]]:
    """Neither depends on the data, so cross-validation computes them once; `names` because equal graphs may differ in them."""
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


def _on_a_fit_grid(protocol: MaskedSum, mu: float) -> MaskedSum:
    """Where much noise is needed, a grid on which it can be drawn: a share of noise of about Δ/μ, at most 2¹⁸ steps."""
    sigma = protocol.sensitivity / mu
    coarse = power_below(sigma / 2**18)
    return protocol.replace(sigma=max(sigma, coarse), grid=coarse) if coarse > protocol.step else protocol


def _warnings(
    protocol: MaskedDescent, edge: float, useful: float, rows: int | None, records: int | None
) -> tuple[str, ...]:
    if useful >= LEAST_EDGE:
        return ()
    who = f"{protocol.n:,} parties" + (f" of {rows:,} rows" if rows and not records else "")
    who = who if records is None else f"{records:,} rows of {protocol.n:,} parties"
    return (
        f"noise will win: {who} and {protocol.dimension:,} numbers in the model: steps can lead {edge:.2g} times as far as noise "
        f"does, and about {useful:.2g} times counting only what all agree on; below {LEAST_EDGE:g} little was learned on the "
        "tables tried. More parties (or rows), a larger epsilon or fewer features help; another step does not",
    )
