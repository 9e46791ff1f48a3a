"""How long to learn, with how many rounds of gossip, in what steps: the least predicted excess risk at (ε, δ).

More iterations bring the model nearer to the best one and ask for more noise; more rounds of gossip bring the models
together and show more of each gradient. `expected_error` states the sum of it all (`netdp.utility.learning`), the
noise of each choice is the least that the target allows (`calibrate`), and the best of all choices is taken. The
papers choose T of the order β/m and K = ln(n)/√λ (`netdp.accounting.published.muffliato.learning`), for constants
they do not state. With losses that are only convex, many short steps are never worse than few long ones, but hardly
better either; so the shortest way within 2 % of the least risk is taken.

No data are looked at. The bound is a worst case over all losses with this `Landscape`; so is the choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from netdp.accounting.published.muffliato.learning import rounds_needed
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.checks import count
from netdp.planning.calibrate import calibrate
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, MaskedDescent, Protocol, WalkDescent
from netdp.utility import ExcessRisk, Landscape, expected_error

_STEPS = 24  # lengths of a step that are tried, then as many between the best two neighbours
_USUAL = 2000
_GOSSIP = 200
_VISITS = 100
_ENOUGH = 1.02
"""What is this close to the least risk is as good, and the shortest of those is taken."""


@dataclass(frozen=True)
class Choice:
    """One way to learn that was looked at: the calibrated protocol and its predicted excess risk."""

    protocol: Protocol
    risk: ExcessRisk

    @property
    def length(self) -> int:
        """Iterations, or steps of a walk."""
        return _length(self.protocol)


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
    tried: tuple[Choice, ...]

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
    if not isinstance(draft, CentralDescent | LocalDescent | MaskedDescent | GossipDescent | WalkDescent):
        raise InvalidValue(f"plan_learning takes a protocol that learns, such as netdp.MaskedDescent(…), got {draft!r}")
    known = (losses,) if isinstance(losses, Landscape) else tuple(losses) if isinstance(losses, Sequence) else ()
    if not known or not all(isinstance(landscape, Landscape) for landscape in known):
        raise InvalidValue(f"losses must be a netdp.learn.Landscape, or several, got {losses!r}")
    smoothness = max(landscape.smoothness for landscape in known)
    if smoothness == 0:
        raise Unsupported("smoothness=0: losses without any curvature have no best model; state a larger bound")
    if isinstance(draft, GossipDescent) and not isinstance(draft.graph, Graph):
        raise Unsupported(
            "GossipDescent on a graph for every iteration: their number is fixed; plan on one graph, or choose yourself"
        )
    curved = shape or ("quadratic" if isinstance(draft, WalkDescent) else "convex")
    kept = average or ("weighted" if curved == "convex" and not isinstance(draft, WalkDescent) else "last")
    unit = draft.n if isinstance(draft, WalkDescent) else 1
    usual = _VISITS if isinstance(draft, WalkDescent) else _GOSSIP if isinstance(draft, GossipDescent) else _USUAL
    longest = usual if most is None else count("most", most)
    tried: dict[tuple[int, int], Choice] = {}

    def look(length: int, rounds: int) -> Choice:
        place = (min(max(length, 1), longest), rounds)
        if place not in tried:
            sized = _sized(draft, place[0] * unit, rounds, 0.5 / smoothness)
            tried[place] = _best_step(calibrate(sized, epsilon, delta, **options), known, kept, curved)
        return tried[place]

    for rounds in _rounds(draft, longest):
        lengths = sorted({min(2**k, longest) for k in range(math.ceil(math.log2(longest)) + 1)})
        found = min((look(length, rounds) for length in lengths), key=lambda choice: choice.risk.total)
        middle = found.length // unit
        for factor in (0.6, 0.8, 1.25, 1.5):
            look(round(middle * factor), rounds)
    least = min(choice.risk.total for choice in tried.values())
    enough = [place for place, choice in tried.items() if choice.risk.total <= _ENOUGH * least]
    best = tried[min(enough, key=lambda place: (place[0] * max(place[1], 1), tried[place].risk.total))]
    return LearningPlan(best.protocol, best.risk, float(epsilon), float(delta), kept, tuple(tried.values()))


def _length(protocol: Any) -> int:
    return int(protocol.steps if isinstance(protocol, WalkDescent) else protocol.iterations)


def _sized(draft: Any, length: int, rounds: int, step: float) -> Any:
    if isinstance(draft, WalkDescent):
        return draft.replace(steps=length, step=step)
    if isinstance(draft, GossipDescent):
        return draft.replace(iterations=length, gossip_rounds=rounds, step=step)
    return draft.replace(iterations=length, step=step)


def _rounds(draft: Any, longest: int) -> Iterator[int]:
    """Rounds of gossip from 1 to what the papers' formula asks for, and a little beyond."""
    if not isinstance(draft, GossipDescent):
        yield 0
        return
    gap = spectral_gap(draft.network, draft.mixing_of(0)) if draft.gap is None else draft.gap
    enough = min(rounds_needed(gap, draft.n), longest)
    rounds = 1
    while rounds < enough:
        yield rounds
        rounds = max(rounds + 1, round(1.7 * rounds))
    yield enough


def _best_step(protocol: Any, known: tuple[Landscape, ...], average: str, shape: str) -> Choice:
    longest = -math.log(max(landscape.smoothness for landscape in known))

    def at(place: float) -> Choice:
        stepped = protocol.replace(step=math.exp(min(place, longest)))
        risks = [expected_error(stepped, landscape, average=average, shape=shape) for landscape in known]
        return Choice(stepped, min(risks, key=lambda risk: risk.total))  # type: ignore[arg-type]

    places = [longest - 12.0 * i / (_STEPS - 1) for i in range(_STEPS)]
    best = min((at(place) for place in places), key=lambda choice: choice.risk.total)
    middle = math.log(best.protocol.step)  # type: ignore[attr-defined]
    near = [middle + 12.0 / (_STEPS - 1) * (2 * i / (_STEPS - 1) - 1) for i in range(_STEPS)]
    return min([best, *(at(place) for place in near)], key=lambda choice: choice.risk.total)
