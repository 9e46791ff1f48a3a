"""What the estimators do between `fit` and a model: deal rows out to parties, scale them, plan, train, and say what was promised.

Everything that settings are made of is public: how many parties and (about) how many rows there are, how many features, which
classes, the bounds. What a row's own party does with it (clip to the bounds, scale to norm 1) depends on that row and on public
numbers alone. `edge` says before anything is learned whether noise will win: how far T steps can lead over how far their noise
leads, TL/(s√d); the size of a step cancels. See docs/proofs/learning.md#schedules.
"""

from __future__ import annotations

import numbers
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp import graphs as graph_families
from netdp.errors import InvalidValue
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.learn.planning import Learning, NoiseWarning, learnings
from netdp.learn.scaling import Scaling, by_bounds, look_at
from netdp.models.base import Model
from netdp.models.linear import prepared
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, positive, whole
from netdp.privacy.guarantee import Guarantee
from netdp.protocols.base import Protocol
from netdp.protocols.family import families

LEAST_EDGE = 5.0
"""Below it one is warned."""

_START = 0.5  # the logistic loss has this slope at margin 0


def learner(word: str) -> Callable[..., Fitted]:
    """The function that learns by "masked", "gossip", "walk", "central" or "local"."""
    family = next(family for family in families() if word in family.training)
    function: Callable[..., Fitted] = family.named(family.training[word])
    return function


def edge(protocol: Protocol, features: int, holder: int = 0) -> float:
    """How far the steps can lead, in units of where the noise leads: docs/proofs/learning.md#schedules.

    >>> from netdp import WalkDescent
    >>> round(edge(WalkDescent(100, steps=400, sigma=2.0, step=0.1, clip=0.5), features=25), 9)
    1.0
    """
    way: Learning = learnings(protocol)
    return way.edge(protocol, _reach(protocol), features, holder)


def _reach(protocol: Any) -> float:
    return float(min(protocol.clip, _START))


def step_for(protocol: Any, features: int, holder: int = 0) -> float:
    """The step at which noise alone carries the model a set way, at most the longest that does not expand.

    The way, 15 units for gossip (whose later models are averaged) and 10 for a token, was chosen on the tables of the papers:
    `python benchmarks/learning.py defaults`.
    """
    way: Learning = learnings(protocol)
    wanted = way.wandering * edge(protocol, features, holder) / (way.length(protocol) * _reach(protocol))
    return min(wanted, longest_step(protocol.clip))


def longest_step(clip: float) -> float:
    """For rows of norm at most 1, clipped one by one: 2/β with β = L(1 − L), or 1/4 (netdp.models.parties)."""
    factor = min(clip, _START)
    return 2.0 / (factor * (1.0 - factor))


def checked_step(step: Any, clip: float) -> float:
    """A step that does not stretch the distance of two models, or a refusal."""
    length, longest = positive("step", step), longest_step(clip)
    if length > longest:
        raise InvalidValue(
            f"step {step!r} is too long for rows of norm 1 clipped to {clip:g}: at most {longest:.4g}, or a local step may "
            "expand; step=None chooses one"
        )
    return length


def unit_rows_with_constant(X: FloatArray) -> FloatArray:
    """A constant feature added, rows scaled down to norm at most 1: no row's scale depends on another's."""
    rows = np.hstack([X, np.ones((len(X), 1))])
    scaled: FloatArray = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return scaled


def warn_if_noise_wins(protocol: Protocol, features: int, holder: int = 0, stacklevel: int = 4) -> None:
    """A `NoiseWarning` if the edge is small."""
    reached = edge(protocol, features, holder)
    if reached < LEAST_EDGE:
        warnings.warn(
            f"noise will win: {protocol.n} parties with {features} features (the intercept among them) can move the model "
            f"{reached:.2g} times as far as the noise does, at best; below {LEAST_EDGE:g} little was learned on the "
            "tables tried. More parties, a larger epsilon or fewer features help; another step does not",
            NoiseWarning,
            stacklevel=stacklevel,
        )


def target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """ε > 0 and 0 < δ < 1, or a refusal that names them."""
    asked = positive("epsilon", epsilon), positive("delta", delta)
    if not asked[1] < 1:
        raise InvalidValue(f"delta must lie between 0 and 1, got {delta!r}; 1e-5 is a usual choice")
    return asked


def entropy(random_state: Any) -> np.random.SeedSequence:
    """Where all randomness comes from. None: 128 bits from the operating system, so that nobody can guess the noise.

    A whole number or a Generator repeats a run: for experiments. RandomState is refused: it looks random, but one made from
    a seed holds 32 bits, and its whole state can be computed from what it puts out.

    >>> entropy(7).entropy, entropy(None).entropy.bit_length() > 96
    (7, True)
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence([int(word) for word in random_state.integers(0, 2**32, 8)])
    if isinstance(random_state, np.random.RandomState):
        raise InvalidValue(
            "random_state must be None, a whole number ≥ 0 or a numpy Generator; a RandomState has too little randomness to "
            "hide anything behind: use None, or numpy.random.default_rng(seed) to repeat an experiment"
        )
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral) or random_state < 0:
        raise InvalidValue(
            f"random_state must be None (fresh noise), a whole number ≥ 0 or a numpy Generator, got {random_state!r}"
        )
    return np.random.SeedSequence(int(random_state))


def few_enough(parties: int, rows: int) -> None:
    """Refuse to deal fewer rows than there are parties."""
    if parties > rows:
        words = "one sample, 1 row," if rows == 1 else f"{rows} rows"
        raise InvalidValue(f"{words} cannot be dealt out to {parties} parties; ask for fewer parties")


PARTIES = 16


@dataclass(frozen=True)
class TrainingRequest:
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
class Fitted:
    """What comes out: the model (d,), by which protocol, what was promised, and how rows are to be scaled before they are used.

    holder   the party whose model it is; where all have the same, the first
    """

    theta: FloatArray
    protocol: Any
    guarantee: Guarantee
    scaling: Scaling | None
    plan: Any = None
    holder: int | str = 0


def party_graph(graph: Any, parties: Any, rows: int, usual: Callable[[int], Graph]) -> Graph:
    """Who the parties are and whom they talk to, from `graph` and `parties`, either of which may be None."""
    number = None if parties is None else count("parties", parties)
    if graph is None:
        number = PARTIES if number is None else number
        few_enough(number, rows)
        return usual(number)
    network = graph_families.parse(graph) if isinstance(graph, str) else as_graph(graph, "graph")
    if number is not None and number != network.n:
        raise InvalidValue(
            f"parties={number} contradicts the graph {network.name}, which has {network.n}; leave parties out, or the graph"
        )
    few_enough(network.n, rows)
    return network


def ready(X: FloatArray, scaling: Scaling | None) -> FloatArray:
    """Rows as models take them: scaled, a constant added, norm at most 1; each by itself."""
    return prepared(np.asarray(X, dtype=np.float64) if scaling is None else scaling.applied(X))


def _scaling(asked: TrainingRequest, X: FloatArray) -> Scaling | None:
    if asked.standardise not in (None, "private"):
        raise InvalidValue(f"standardise must be None or 'private', got {asked.standardise!r}")
    look_at(X, asked.names, scaled=asked.bounds is not None or asked.standardise is not None, stacklevel=5)
    return None if asked.bounds is None else by_bounds(asked.bounds, X.shape[1], asked.names)


def _stated(guarantee: Guarantee, asked: TrainingRequest, model: Model) -> Guarantee:
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

    verbose=1 prints ten lines, 2 a line for every iteration, to stderr. `spent` tells the ε of so many iterations, where that
    takes no time.
    """

    def __init__(
        self, verbose: Any, protocol: Any, plan: Any = None, spent: Callable[[int], float] | None = None
    ) -> None:
        self.level = level(verbose)
        self.protocol, self.plan, self.spent = protocol, plan, spent

    def __enter__(self) -> Screen:
        self.begun = time.monotonic()
        if self.level:
            self._say(self.protocol.describe() if self.plan is None else str(self.plan))
            self._say("shown: what all parties see (the rows' loss is private and is not)")
        return self

    def __exit__(self, *_: object) -> None:
        return None

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
        return "" if self.spent is None or self.level > 1 else f"ε spent = {self.spent(t):.3g}, "

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
    names: npt.NDArray[Any] | None = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
