"""What the estimators do between `fit` and a model: deal rows out to parties, scale them, plan, train, and say what was promised.

Everything that settings are made of is public: how many parties and (about) how many rows there are, how many features, which
classes, the bounds. No setting is chosen by looking at a row; what a row's own party does with it (clip to the bounds, scale to
norm 1) depends on that row and on public numbers alone.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp import graphs as graph_families
from netdp.accounting import account
from netdp.accounting.masked.descent import learned_curve
from netdp.accounting.masked.sums import fewest_honest
from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.models import Model, prepared
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, positive, whole
from netdp.planning import calibrate
from netdp.planning.training import TrainingPlan, plan_training
from netdp.planning.training_outlook import NoiseWarning, warn
from netdp.planning.training_rules import ITERATIONS, clip_for, step_for, talk_graph
from netdp.privacy import GaussianCurve, Guarantee, Observers, gaussian_mu
from netdp.protocols import CentralDescent, LocalDescent, MaskedDescent, MaskedSum
from netdp.protocols.model_steps import State
from netdp.simulate.descent import clipped, train
from netdp.simulate.model_parties import ModelParties

from .binary import entropy, few_enough, target
from .ranges import HIDDEN, found_ranges
from .running import run
from .scaling import Scaling, by_bounds, look_at, standardised

PARTIES = 16
_BASELINES: dict[str, type[CentralDescent] | type[LocalDescent]] = {"central": CentralDescent, "local": LocalDescent}


@dataclass(frozen=True)
class Asked:
    """What an estimator was asked for, as its constructor took it; checked here, when it is fitted."""

    parties: Any
    graph: Any
    unit: Any
    epsilon: Any
    delta: Any
    colluders: Any
    bounds: Any
    standardise: Any
    iterations: Any
    clip: Any
    step: Any
    sampling: Any
    verbose: Any
    random_state: Any
    names: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Learned:
    """What comes out: the model (d,), by which protocol, what was promised, and how rows are to be scaled before they are used."""

    theta: FloatArray
    protocol: Any
    guarantee: Guarantee
    scaling: Scaling | None
    plan: TrainingPlan | None = None


def learn_masked(asked: Asked, model_for: Callable[[int], Model], X: FloatArray, y: FloatArray) -> Learned:
    """By masked descent, in one process; `model_for` is told how many columns prepared rows have."""
    target(asked.epsilon, asked.delta)
    level(asked.verbose)
    graph = party_graph(asked.graph, asked.parties, len(y), talk_graph)
    if graph.n < 2:
        raise InvalidValue("a masked sum needs at least two parties, got 1; give more, parties=…")
    scaling = _scaling(asked, X)
    dealing, noise, means, sizes = entropy(asked.random_state).spawn(4)
    parts = np.array_split(np.random.default_rng(dealing).permutation(len(y)), graph.n)
    model = model_for(X.shape[1] + 1)
    record = asked.unit == "record"
    plan = plan_training(
        graph.n,
        model.size,
        asked.epsilon,
        asked.delta,
        rows=_two_digits(math.ceil(len(y) / graph.n)),
        unit=asked.unit,
        colluders=asked.colluders,
        graph=graph,
        model=model.name,
        records=_two_digits(len(y)) if record else None,
        features=X.shape[1] if asked.standardise == "private" else None,
        bounded=scaling is not None,
        iterations=asked.iterations,
        clip=asked.clip,
        step=asked.step,
        sampling=asked.sampling,
    )
    warn(plan.warnings, stacklevel=4)
    if plan.scaling is not None:
        tables = [X[part] for part in parts]
        if plan.ranges is not None:
            _warn_if_hidden(plan.ranges, plan.protocol)
            scaling = found_ranges(plan.ranges, tables, sizes)
        assert scaling is not None
        scaling = standardised(scaling, plan.scaling, tables, means)
    rows = ready(X, scaling)
    data = ModelParties(model, [rows[part] for part in parts], [y[part] for part in parts])
    with Screen(asked.verbose, plan.protocol, plan) as screen:
        theta = run(plan.protocol, data, noise, after=screen.after)
    return Learned(theta, plan.protocol, _stated(plan.guarantee, asked, model), scaling, plan)


def learn_baseline(kind: str, asked: Asked, model_for: Callable[[int], Model], X: FloatArray, y: FloatArray) -> Learned:
    """By a trusted curator ("central") or with local noise ("local"): what to compare with."""
    epsilon, delta = target(asked.epsilon, asked.delta)
    level(asked.verbose)
    for name, given, usual in (("unit", asked.unit, "party"), ("standardise", asked.standardise, None)):
        if given != usual:
            raise InvalidValue(f"protocol={kind!r} with {name}={given!r}: only protocol='masked' does that")
    if asked.sampling not in (None, 1):
        raise InvalidValue(f"protocol={kind!r} with sampling={asked.sampling!r}: only protocol='masked' does that")
    graph = party_graph(asked.graph, asked.parties, len(y), talk_graph)
    scaling = _scaling(asked, X)
    dealing, noise, _ = entropy(asked.random_state).spawn(3)
    parts = np.array_split(np.random.default_rng(dealing).permutation(len(y)), graph.n)
    model = model_for(X.shape[1] + 1)
    iterations = count("iterations", ITERATIONS if asked.iterations is None else asked.iterations)
    mu = float(gaussian_mu(epsilon, delta))
    hidden = graph.n if kind == "central" else math.sqrt(graph.n)
    edge = hidden * mu / (2 * math.sqrt(model.size))
    each = _two_digits(math.ceil(len(y) / graph.n))
    clip = clip_for(edge, each) if asked.clip is None else positive("clip", asked.clip)
    step = step_for(edge, iterations=iterations, clip=clip, model=model.name) if asked.step is None else asked.step
    protocol = calibrate(
        _BASELINES[kind](graph.n, iterations, sigma=1.0, step=positive("step", step), clip=clip), epsilon, delta
    )
    rows = ready(X, scaling)
    data = ModelParties(model, [rows[part] for part in parts], [y[part] for part in parts])
    total = np.zeros(model.size)
    with Screen(asked.verbose, protocol, None) as screen:

        def keep(t: int, models: FloatArray) -> None:
            if t >= iterations // 2:
                total[:] += models[0]
            screen.told(t + 1, models[0])

        train(protocol, WholeGradients(data), noise, after=keep)
    seen = account(protocol, [0])
    guarantee = replace(
        seen,
        curve=GaussianCurve(np.full(graph.n, seen.mu[-1])),
        factor=None,
        observers=Observers(roles=("whoever sees the model",)),
        names=graph.labels,
    )
    return Learned(total / (iterations - iterations // 2), protocol, _stated(guarantee, asked, model), scaling)


@dataclass(frozen=True)
class WholeGradients:
    """`Losses` of parties whose mean gradient is clipped as a whole, not row by row."""

    data: ModelParties

    @property
    def n(self) -> int:
        """How many parties."""
        return self.data.n

    @property
    def d(self) -> int:
        """How many numbers a model has."""
        return self.data.d

    def start(self) -> FloatArray:
        """The public first model."""
        return self.data.start()

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        """(n, d)."""
        return clipped(self.data.gradients(models, math.inf), clip)

    def expansion(self, step: float, clip: float) -> float:
        """Clipping the whole is a projection; a step before it stretches as the model says without clipping."""
        return 1.0 + self.data.expansion(step, math.inf)


def party_graph(graph: Any, parties: Any, rows: int, usual: Callable[[int], Graph]) -> Graph:
    """Who the parties are and whom they talk to, from `graph` and `parties`, either of which may be None."""
    number = None if parties is None else count("parties", parties)
    if graph is None:
        number = PARTIES if number is None else number
        few_enough(number, rows)
        return usual(number)
    found = graph_families.parse(graph) if isinstance(graph, str) else as_graph(graph, "graph")
    if number is not None and number != found.n:
        raise InvalidValue(
            f"parties={number} contradicts the graph {found.name}, which has {found.n}; leave parties out, or the graph"
        )
    few_enough(found.n, rows)
    return found


def ready(X: FloatArray, scaling: Scaling | None) -> FloatArray:
    """Rows as models take them: scaled, a constant added, norm at most 1; each by itself."""
    return prepared(np.asarray(X, dtype=np.float64) if scaling is None else scaling.applied(X))


def _scaling(asked: Asked, X: FloatArray) -> Scaling | None:
    if asked.standardise not in (None, "private"):
        raise InvalidValue(f"standardise must be None or 'private', got {asked.standardise!r}")
    look_at(X, asked.names, scaled=asked.bounds is not None or asked.standardise is not None, stacklevel=5)
    return None if asked.bounds is None else by_bounds(asked.bounds, X.shape[1], asked.names)


def _warn_if_hidden(ranges: MaskedSum, protocol: MaskedDescent) -> None:
    """A warning, from the plan alone, if the noise of the counts hides sizes that a fair part of the values have."""
    noise = ranges.sigma * math.sqrt(ranges.n) / protocol.units
    if noise > HIDDEN:
        warnings.warn(
            f"the ranges of the features are found by counts with noise of {noise:.2g} of the whole: only sizes that most "
            "values have are seen, if any. State public bounds=(low, high) per feature, or allow a larger epsilon",
            NoiseWarning,
            stacklevel=5,
        )


def _stated(guarantee: Guarantee, asked: Asked, model: Model) -> Guarantee:
    """With what the estimator takes to be public, in words."""
    public = [
        "how many parties and features there are",
        "about how many rows they have (two digits; exactly, below 100)",
    ]
    if model.classes is not None:
        public.append("which classes occur")
    if asked.bounds is not None:
        public.append("the bounds")
    if model.classes is None:
        public.append("the bounds of the target")
    public += [name for name in ("iterations", "clip", "step", "sampling") if getattr(asked, name) is not None]
    words = (
        f"{', '.join(public)}: public, and the settings were made of these alone; what was given was chosen without a look at "
        "the rows"
    )
    run_here = "random_state is as secret as the rows: whoever knows it can take the noise off"
    return replace(guarantee, assumptions=(*guarantee.assumptions, words, run_here))


def _two_digits(number: int) -> int:
    """Rounded up to two digits, so that one row more or less hardly ever changes a setting.

    >>> _two_digits(37), _two_digits(20_641)
    (37, 21000)
    """
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


class Screen:
    """Progress for people: what everybody sees anyway. The loss on the rows is private, so it is not shown.

    verbose=1 prints ten lines, 2 a line for every iteration, to stderr.
    """

    def __init__(self, verbose: Any, protocol: Any, plan: TrainingPlan | None) -> None:
        self.level = level(verbose)
        self.protocol, self.plan = protocol, plan

    def __enter__(self) -> Screen:
        self.begun = time.monotonic()
        if self.level:
            self._say(self.protocol.describe() if self.plan is None else str(self.plan))
            self._say("shown: what all parties see (the rows' loss is private and is not)")
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def after(self, t: int, state: State) -> None:
        """Told by the masked trainer."""
        self.told(t, state.theta)

    def told(self, t: int, theta: FloatArray) -> None:
        """An iteration is over."""
        if not self.level:
            return
        of = self.protocol.iterations
        if self.level == 1 and t % max(1, of // 10) and t != of:
            return
        rate = t / max(time.monotonic() - self.begun, 1e-9)
        self._say(f"iteration {t}/{of}: |model| = {np.linalg.norm(theta):.4g}, {self._spent(t)}{rate:.3g} iterations/s")

    def _spent(self, t: int) -> str:
        if self.plan is None or not isinstance(self.protocol, MaskedDescent) or self.protocol.sampling < 1:
            return ""
        if self.plan.scaling is not None or self.level > 1:
            return ""
        honest = fewest_honest(self.protocol.sum, self.plan.colluders)
        spent = learned_curve(self.protocol.replace(iterations=t), honest).epsilon(self.plan.delta)
        return f"ε spent = {float(np.max(spent)):.3g}, "

    @staticmethod
    def _say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def level(verbose: Any) -> int:
    """How much to say: 0, 1, 2; True is 1."""
    given: Any = int(verbose) if isinstance(verbose, bool) else verbose
    return whole("verbose", given)


def unweighted(options: dict[str, Any]) -> None:
    """Refuse what `fit` does not take, in words."""
    if options.get("sample_weight") is not None:
        raise InvalidValue(
            "fit takes no sample_weight: a party's rows count alike, and the noise is calibrated for that; "
            "leave out the rows that shall not count"
        )
    options = {name: value for name, value in options.items() if name != "sample_weight"}
    if options:
        raise InvalidValue(f"fit takes X and y alone, not {', '.join(map(repr, sorted(options)))}")


def names_of(estimator: Any) -> Sequence[str] | None:
    """Column names as scikit-learn found them, if there were any."""
    found: npt.NDArray[Any] | None = getattr(estimator, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]
