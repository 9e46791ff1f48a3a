"""How to learn with a given privacy budget: number of iterations, rounds of gossip, step, clipping, before any data are looked at.

`plan_learning` takes the choice with the least bound on the excess risk, for losses with a stated `Landscape`
(docs/proofs/learning.md#excess-risk). Where nothing but public numbers is known, clip, step and sampling are functions of the
*edge*, how far the steps can lead over how far their noise leads: `rough_edge` = L·√T/(s·√d), which the target (ε, δ) fixes. An
`Outlook` says beforehand whether noise will win. The rules, and the tables that they were chosen on:
docs/proofs/learning.md#schedules.
"""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from netdp import graphs as graph_families
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs.graph import Graph
from netdp.models.parties import Landscape
from netdp.numerics.checks import count
from netdp.privacy.wording import WeakPromise, is_weak
from netdp.protocols.accuracy import expected_error
from netdp.protocols.base import Protocol
from netdp.protocols.calibration import calibrate
from netdp.protocols.risk import ExcessRisk
from netdp.protocols.table import Table

_STEPS = 24  # lengths of a step that are tried, then as many between the best two neighbours

_ENOUGH = 1.02
"""What is this close to the least risk is as good, and the shortest of those is taken."""


class Learning:
    """How a kind of protocol learns, for those who plan it: a curator's descent, or one like it; other families say otherwise.

    most      iterations at most, unless somebody says otherwise; where `unit` is the number of parties, visits to each
    shape     what losses are taken to be in predictions, "convex" or "quadratic"
    average   the model that is kept, "weighted" or "last"
    """

    most = 2000
    shape = "convex"
    average = "weighted"

    def unit(self, protocol: Any) -> int:
        """Iterations that are added or left out together."""
        return 1

    def length(self, protocol: Any) -> int:
        """Iterations, or steps of a walk."""
        return int(protocol.iterations)

    def sized(self, draft: Any, length: int, rounds: int, step: float) -> Any:
        """The draft with this length, so many rounds between two iterations, and this step."""
        return draft.replace(iterations=length, step=step)

    def rounds(self, draft: Any, longest: int) -> Iterable[int]:
        """Rounds between two iterations that are worth trying; 0 where there are none. Refuses what cannot be planned."""
        return (0,)

    def edge(self, protocol: Any, reach: float, features: int, holder: int) -> float:
        """How far steps of this reach can lead, in units of where the noise leads (`netdp.learn.fitting`)."""
        raise Unsupported(f"{type(protocol).__name__} has its own rules for steps; see netdp.learn.plan_training")

    wandering = 0.0
    """Units that the noise may carry the model: margins of a few units decide, and averaging takes much of the noise out again."""


learnings = Table("how it learns", "does not learn", part="learn")
"""(protocol) → its `Learning`."""


@dataclass(frozen=True)
class Trial:
    """One way to learn that was looked at: the calibrated protocol and its predicted excess risk."""

    protocol: Protocol
    risk: ExcessRisk

    @property
    def length(self) -> int:
        """Iterations, or steps of a walk."""
        return int(learnings(self.protocol).length(self.protocol))


@dataclass(frozen=True)
class LearningPlan:
    """The best of many lengths, rounds and steps at one target, all of them with the least noise that it allows.

    protocol   ready to train
    risk       its predicted excess risk
    tried      everything that was looked at, each with its best step
    """

    protocol: Any
    risk: ExcessRisk
    epsilon: float
    delta: float
    average: str
    tried: tuple[Trial, ...]

    def __str__(self) -> str:
        what = "the last model" if self.average == "last" else "the average of the models along the way"
        return (
            f"plan for ε ≤ {self.epsilon:g} at δ = {self.delta:g}: {self.protocol.describe()}\n"
            f"{what}: {self.risk}; {len(self.tried)} choices were compared"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        described = self.protocol.to_dict()
        if isinstance(described.get("graph"), dict):
            described["graph"] = self.protocol.network.name
        causes = {name: value for name, value in vars(self.risk).items() if name != "claim"}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "protocol": described,
            "average": self.average,
            "excess_risk": {**causes, "total": self.risk.total, "claim": self.risk.claim.value},
        }


def plan_learning(
    draft: Any,
    epsilon: float,
    delta: float,
    losses: Landscape | Sequence[Landscape],
    *,
    average: str | None = None,
    shape: str | None = None,
    most: int | None = None,
    **options: Any,
) -> LearningPlan:
    """The draft with the length, rounds of gossip and step at which the predicted excess risk is least at (ε, δ).

    draft     a protocol that learns; its iterations (steps of a walk), gossip_rounds, step and sigma are replaced, all else is kept
    losses    what is known of the losses: a `netdp.learn.Landscape`, or several of the same losses (nearer models that are further
              behind), of which the one with the best prediction counts
    average   "last" or "weighted", the model that is kept; by default weighted, but of a walk, which releases its last model
              only, and where losses are taken to be quadratic
    shape     "convex", what is proved, or "quadratic", an estimate for losses that are nearly so; by default convex, but of a walk,
              whose proved bound loses a logarithm and would choose too short steps
    most      iterations at most: 2,000 by default, 200 for gossip; for a walk visits per user, 100 by default

    Other options are those of `calibrate`, such as `colluders`.

    >>> from netdp import CentralDescent
    >>> valley = Landscape(dimension=8, smoothness=0.25, distance=5.0)
    >>> draft = CentralDescent(1000, 1, sigma=1.0, step=1.0, clip=0.5)
    >>> plans = [plan_learning(draft, epsilon, 1e-6, valley) for epsilon in (0.5, 4.0)]
    >>> plans[0].risk.total > plans[1].risk.total, plans[0].protocol.iterations < plans[1].protocol.iterations
    (True, True)
    """
    if not learnings.handles(draft):
        raise InvalidValue(f"plan_learning takes a protocol that learns, such as netdp.MaskedDescent(…), got {draft!r}")
    known = (losses,) if isinstance(losses, Landscape) else tuple(losses) if isinstance(losses, Sequence) else ()
    if not known or not all(isinstance(landscape, Landscape) for landscape in known):
        raise InvalidValue(f"losses must be a netdp.learn.Landscape, or several, got {losses!r}")
    smoothness = max(landscape.smoothness for landscape in known)
    if smoothness == 0:
        raise Unsupported("smoothness=0: losses without any curvature have no best model; state a larger bound")
    way: Learning = learnings(draft)
    curved = shape or way.shape
    kept = average or (way.average if curved == "convex" else "last")
    unit = way.unit(draft)
    longest = way.most if most is None else count("most", most)
    tried: dict[tuple[int, int], Trial] = {}

    def look(length: int, rounds: int) -> Trial:
        place = (min(max(length, 1), longest), rounds)
        if place not in tried:
            sized = way.sized(draft, place[0] * unit, rounds, 0.5 / smoothness)
            tried[place] = _best_step(calibrate(sized, epsilon, delta, **options), known, kept, curved)
        return tried[place]

    for rounds in way.rounds(draft, longest):
        lengths = sorted({min(2**k, longest) for k in range(math.ceil(math.log2(longest)) + 1)})
        shortest = min((look(length, rounds) for length in lengths), key=lambda choice: choice.risk.total)
        middle = shortest.length // unit
        for factor in (0.6, 0.8, 1.25, 1.5):
            look(round(middle * factor), rounds)
    least = min(choice.risk.total for choice in tried.values())
    enough = [place for place, choice in tried.items() if choice.risk.total <= _ENOUGH * least]
    best = tried[min(enough, key=lambda place: (place[0] * max(place[1], 1), tried[place].risk.total))]
    return LearningPlan(best.protocol, best.risk, float(epsilon), float(delta), kept, tuple(tried.values()))


def _best_step(protocol: Any, known: tuple[Landscape, ...], average: str, shape: str) -> Trial:
    longest = -math.log(max(landscape.smoothness for landscape in known))

    def at(place: float) -> Trial:
        stepped = protocol.replace(step=math.exp(min(place, longest)))
        risks = [expected_error(stepped, landscape, average=average, shape=shape) for landscape in known]
        return Trial(stepped, min(risks, key=lambda risk: risk.total))  # type: ignore[arg-type]

    places = [longest - 12.0 * i / (_STEPS - 1) for i in range(_STEPS)]
    best = min((at(place) for place in places), key=lambda choice: choice.risk.total)
    middle = math.log(best.protocol.step)  # type: ignore[attr-defined]
    near = [middle + 12.0 / (_STEPS - 1) * (2 * i / (_STEPS - 1) - 1) for i in range(_STEPS)]
    return min([best, *(at(place) for place in near)], key=lambda choice: choice.risk.total)


ITERATIONS = 160

MOMENTUM = 0.9

WANDERING = {"party": 15.0, "record": 20.0}
"""Units that noise alone carries a model, at most, by what is protected."""

LINEAR_MODELS = ("logistic", "multinomial", "linear")

_CLIPS = (0.1, 0.5)

_TIGHTEST = 0.06

_TRAINING_RULES_PARTICULAR = 0.5  # over √m: how long what is particular to a party's mean gradient over m rows is

_PER_EDGE, _SHORT = (
    3.0,
    4.0,
)  # units that noise may carry the model of parties where the edge is small: per edge, at least

_EDGE_PER_CLIP = 300.0

_NEAR = 4.0  # the same for linear regression, whose targets lie in [−1, 1]

_FURTHEST = 30.0  # units an iteration, gradients as long as the clip, momentum included

_LINEAR = 2.0  # rows have norm at most 1: no eigenvalue is above 1, and heavy balls are stable below 2(1 + momentum)

_UNKNOWN = 0.5  # clip times step, of models about which nothing is known

_WORK = 2e7  # coordinates of gradients that a party computes in an iteration


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


def clip_for(edge: float, rows: int | None = None) -> float:
    """L = edge/300, within 0.1 … 0.5; with `rows` to a party, whose mean gradient is clipped, down to 0.06.

    >>> clip_for(60.0), clip_for(5.0), round(clip_for(5.0, rows=50), 3), clip_for(5.0, rows=1000)
    (0.2, 0.1, 0.071, 0.06)
    """
    least = _CLIPS[0] if rows is None else min(max(_TRAINING_RULES_PARTICULAR / math.sqrt(rows), _TIGHTEST), _CLIPS[0])
    return min(max(edge / _EDGE_PER_CLIP, least), _CLIPS[1])


def step_for(
    edge: float, *, iterations: int, clip: float, unit: str = "party", momentum: float = 0.0, model: str = "logistic"
) -> float:
    """The step with which noise alone carries the model the set way, and no further in one iteration than is allowed.

    >>> step_for(60.0, iterations=160, clip=0.2), step_for(600.0, iterations=160, clip=0.2, model="linear")
    (28.125, 2.0)
    """
    wandering = _NEAR if model == "linear" else WANDERING[unit]
    if unit == "party" and model == "logistic":
        wandering = min(wandering, max(_PER_EDGE * edge, _SHORT))
    step = (1 - momentum) * min(wandering * edge / iterations, _FURTHEST) / clip
    if model == "linear":
        return min(step, _LINEAR)
    return step if model in LINEAR_MODELS else min(step, _UNKNOWN / clip)


def sampling_for(rows: int | None, d: int, unit: str) -> float:
    """The probability with which a record takes part: 1, or less where an iteration would take too long.

    >>> sampling_for(1000, 50, "record"), round(sampling_for(4000, 50_000, "record"), 3)
    (1.0, 0.1)
    """
    if unit == "party" or rows is None or rows * d <= _WORK:
        return 1.0
    return max(_WORK / (rows * d), min(1.0, 256 / rows))


LEAST_EDGE = 1.5
"""Below it, in units of what all parties agree on, one is warned."""

_TRAINING_OUTLOOK_PARTICULAR = 12.0


class NoiseWarning(UserWarning):
    """The noise that privacy asks for is expected to drown what could be learned."""


@dataclass(frozen=True)
class Outlook:
    """What may be expected of a training.

    edge        how far the steps can lead in units of where noise leads, see `netdp.learn.planning`
    expected    the edge times the part of a gradient that all agree on, as on the tables tried
    warnings    why this will hardly work, if so
    """

    edge: float
    expected: float
    warnings: tuple[str, ...]


def warn(warnings: Iterable[str], stacklevel: int = 3) -> None:
    """A `NoiseWarning` for each of these, or a `WeakPromise`."""
    for text in warnings:
        python_warnings.warn(text, WeakPromise if is_weak(text) else NoiseWarning, stacklevel=stacklevel + 1)
