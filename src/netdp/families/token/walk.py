"""A token on a random walk (Cyffers and Bellet, sections 4 and 4.2; seed of the AISTATS 2022 version; any graph).

**Complete graph.** At each of T steps a user is drawn uniformly from all n, independently of everything: it adds a
contribution with its own noise and passes the token on. The number of the step is public. `sender` says what a holder learns of
the others, which depends on the channel:

    sender="known"           it sees from whom it gets the token and to whom it passes it: plain connections
    sender="receiver-known"  it draws the next user and so knows it, but does not learn from whom it got the token: onion routing,
                             an anonymous mailbox
    sender="hidden"          it learns only that it holds the token now: the network itself draws the next holder and tells nobody.
                             A holder that draws the next one knows it; that is not this mode, however anonymous the channel
    release="named"          the last holder publishes the token under its own name, so all know whose the last step was
    release="anonymous"      nobody learns who the last holder was

Plain connections give a named release, the two others an anonymous one: that is what release=None means.

**Any graph.** The token moves to a random neighbour: the Metropolis walk (uniform in the long run), the simple one
(proportional to degree), or any `graphs.Transition`, along the arrows of a directed graph too. `GraphWalkSum` is the sum;
`WalkDescent` and `WalkHistogram` take a graph in place of the number of users. Each walk then starts at a user drawn from its
long-run law, and neighbours see who hands them the token (sender="known").

A user that has contributed `contributions` times passes the token on with noise only: that bounds what it can ever lose. The
secrecy of the path then no longer counts in the certified loss: set it for local guarantees, leave it out for network ones.
What observers learn: docs/proofs/token.md#secret-walk and #graph-walk; on a grid (`grid=`, sums): #walk-on-a-grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.path import TokenGrid
from netdp.families.token.ring import GradientSteps, Responses
from netdp.graphs.convert import as_graph, is_networkx
from netdp.graphs.graph import Graph
from netdp.graphs.transitions import WALKS, Transition, transition_matrix
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.checks import count, positive, scale, share_or_switch
from netdp.protocols.base import OnGraph, Protocol
from netdp.protocols.descents import WholeSteps
from netdp.protocols.grid import checked_law

KNOWN_ENDS = {"hidden": 0, "receiver-known": 1, "known": 2}
"""How many contributions between two visits an observer can put a name to: none, the first, the first and the last."""

_LEAST_SHARE = 1e-100  # how seldom a user may be drawn

SENDERS = tuple(KNOWN_ENDS)

RELEASES = ("named", "anonymous")


Users: TypeAlias = Any
"""How many users, or the graph that they are the nodes of; read back it is always their number."""


class _WalkFields:
    """Fields that walks have in common but for the first two; `walk` only those that may be on a graph."""

    sender: str
    contributions: int | None
    tokens: int
    release: str | None
    weights: tuple[float, ...] | None
    walk: str | Transition


@dataclass(frozen=True)
class _Walk(_WalkFields, Protocol):
    n: Users
    steps: int

    @property
    def network(self) -> Graph | None:
        return getattr(self, "graph", None)

    def _settle(self) -> None:
        """Fields of a walk that may be on a graph: the first argument may be that graph."""
        given: Any = self.n
        graph = self.network
        if isinstance(given, Graph | Transition) or is_networkx(given):
            if graph is not None:
                raise InvalidValue("the graph is given twice, first and as graph=; give it once")
            graph, directed = settled(given, self.walk, type(self).__name__)
            self._set(graph=graph, n=graph.n, walk=directed)
        elif graph is not None:
            graph, directed = settled(graph, self.walk, type(self).__name__)
            self._set(graph=graph, walk=directed)
            if count("n", given) != graph.n:
                raise InvalidValue(f"n={given} users on {graph!r}; leave n to the graph")
        elif isinstance(self.walk, Transition | dict):
            raise InvalidValue("walk=Transition(…) needs its graph; give the Transition as the first argument")
        self._check_walk()
        if graph is None:
            return
        if (self.sender, self.release) != ("known", "named"):
            raise InvalidValue(
                "on a graph neighbours see who hands them the token, and the last holder is known: leave sender='known' and "
                "release='named'; what is certified tells the path, so it holds for any other channel too"
            )

    @cached_property
    def transition(self) -> Any:
        """P[u, w]: the probability that the token goes from u to w (CSR); None on the complete graph of uniform draws."""
        graph = self.network
        return None if graph is None else transition_matrix(graph, self.walk)

    @property
    def stationary(self) -> Any:
        """Where the token is in the long run, and starts."""
        graph = self.network
        return self.chances if graph is None else stationary(graph, self.walk)

    def prepare(self) -> None:
        self.transition  # noqa: B018

    def _where(self) -> str:
        graph = self.network
        return "" if graph is None else f"{graph.name}, {self.walk} walk: "

    def _walkers(self, what: str) -> str:
        return f"a {what} walks" if self.tokens == 1 else f"{self.tokens} {what}s walk"

    def _channel(self) -> str:
        return f"sender {self.sender}"

    def _check_walk(self) -> None:
        if isinstance(self.n, Graph | Transition) or is_networkx(self.n):
            raise InvalidValue(
                f"{type(self).__name__} draws users from all, on the complete graph; on a graph take GraphWalkSum(graph, …)"
            )
        object.__setattr__(self, "n", count("n", self.n))
        if self.n < 2:
            raise InvalidValue("a walk needs at least 2 users, got 1")
        object.__setattr__(self, "steps", count("steps", self.steps))
        if self.steps < self.n:
            raise InvalidValue(
                f"steps={self.steps} is shorter than one visit to each of {self.n} users; give at least {self.n}"
            )
        if self.sender not in SENDERS:
            raise InvalidValue(f"unknown sender {self.sender!r}; choose one of {', '.join(SENDERS)}")
        if self.release is None:
            self._set(release="named" if self.sender == "known" else "anonymous")
        if self.release not in RELEASES:
            raise InvalidValue(f"unknown release {self.release!r}; choose one of {', '.join(RELEASES)}")
        if self.contributions is not None:
            self._set(contributions=count("contributions", self.contributions))
        if self.weights is not None:
            if self.network is not None:
                raise InvalidValue(
                    "weights are for draws on the complete graph; on a graph take walk=graphs.Transition(…)"
                )
            self._set(weights=_shares(self.n, self.weights))

    @property
    def chances(self) -> FloatArray:
        """(n,) the probability that a step draws each user, on the complete graph."""
        weights = self.weights
        return np.full(self.n, 1.0 / self.n) if weights is None else np.asarray(weights, dtype=np.float64)

    def _drawn(self) -> str:
        weights = self.weights
        return "" if weights is None else f", draws with weights {min(weights):.3g} to {max(weights):.3g}"


def _shares(n: int, weights: Any) -> tuple[float, ...]:
    """Weights as probabilities that add up to 1; refuses any that is not a positive number."""
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise InvalidValue(f"weights must hold one number > 0 per user, got {weights!r}")
    given = [positive("a weight", weight) for weight in weights]
    if len(given) != n:
        raise InvalidValue(f"{len(given)} weights for {n} users; give one number > 0 per user")
    if max(given) > 1e200 or min(given) < 1e-200:
        raise InvalidValue(f"weights must lie between 1e-200 and 1e200, got {min(given)!r} to {max(given)!r}")
    total = math.fsum(given)
    shares = tuple(given if abs(total - 1) <= 1e-12 else (weight / total for weight in given))
    if min(shares) < _LEAST_SHARE:
        raise InvalidValue(
            f"the user of weight {min(given):g} would be drawn with probability {min(shares):.3g}; all weights together may be "
            f"at most {1 / _LEAST_SHARE:g} times the least: leave users out who are never drawn"
        )
    return shares


@dataclass(frozen=True)
class WalkSum(TokenGrid, _Walk):
    """The sum of the contributions along a random walk on the complete graph (Algorithm 3).

    Parameters
    ----------
    n, steps : users, and the length T of the walk; on average T/n contributions each.
    sigma : standard deviation of the noise in every contribution.
    sender : "known" (plain connections), "receiver-known" or "hidden": what the channel shows, see the module.
    contributions : at most so many per user and token, or None.
    tokens : walks in parallel, independent of each other; the released sums are added up.
    sensitivity : Δ, the L2 diameter of one public set in which the contributions of *all* users lie, whatever their data.
        That one user's own two values are close is not enough: the secrecy of the path is worth nothing to a user that
        stands far away from all others. Clip all values to the set first. Under "zero-out" it is the ball of radius Δ/2.
    release : "named" or "anonymous", see the module; None: as the channel does. `replace(sender=…)` keeps the release.
    weights : public numbers > 0, one per user: how often it is drawn, in proportion; None: all alike. The answer is then the
        mean *with these weights*. For the plain mean let user u add x_u/(n·w_u), w_u its share of the weights: for values in the
        ball of radius Δ/2 these lie in that of radius Δ/(2n·min w), so state sensitivity = Δ/(n·min w).
    law : "gaussian", or "laplace": noise of the same deviation, Δ then being an L1 diameter. All users are drawn alike then.
        No grid.
    grid : None for real numbers; or the step of a grid, a power of two: tokens then hold whole numbers.
    dimension : how many numbers a value has, at most. On a grid rounding moves more of them further apart.

    >>> WalkSum(100, steps=10_000, sigma=61.0).expected_contributions
    100.0
    >>> WalkSum(100, steps=10_000, sigma=61.0, grid=0.125).variance          # of the noise of a visit, in squared steps
    238144
    """

    kind: ClassVar[str] = "walk-sum"
    sigma: float
    sender: str = "known"
    contributions: int | None = None
    tokens: int = 1
    sensitivity: float = 1.0
    release: str | None = None
    weights: tuple[float, ...] | None = None
    law: str = "gaussian"
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        self._check_walk()
        self._set(law=checked_law(self.law))
        if self.law == "laplace" and self.weights is not None:
            raise InvalidValue(
                "law='laplace' with weights: users drawn unequally are accounted for with Gaussian noise only"
            )
        object.__setattr__(self, "tokens", count("tokens", self.tokens))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._settle_grid()

    @property
    def visits(self) -> int:
        """How many contributions the tokens collect, all together."""
        return self.tokens * self.steps

    @property
    def expected_contributions(self) -> float:
        """How often a user is visited on average, all tokens together."""
        return float(self.tokens * self.steps / self.n)

    def describe(self) -> str:
        tokens = "a token walks" if self.tokens == 1 else f"{self.tokens} tokens walk"
        cap = f", at most {self.contributions} contributions each" if self.contributions is not None else ""
        return (
            f"{self.n:,} users; {tokens} {self.steps:,} steps at random, σ={self.sigma:g} Δ={self.sensitivity:g}, "
            f"{self._channel()}{cap}{self._drawn()}{', Laplace noise' if self.law == 'laplace' else ''}{self._gridded()}"
        )


@dataclass(frozen=True)
class WalkHistogram(Responses, _Walk):
    """A histogram over `domain` values, by L-ary randomized responses added to a token on a random walk.

    Parameters
    ----------
    n : users (each step draws one of them uniformly), or the graph that the token walks on.
    steps : the length T of each walk.
    domain, gamma : L values; a response is random with probability γ.
    sender, release, tokens : as for `WalkSum`.
    contributions : a user that has used them up, per token, adds uniformly random values.
    walk : on a graph "metropolis", "simple" or a `graphs.Transition`.
    weights : on the complete graph, as for `WalkSum`: shares are then among users counted by weight.
    response : "k-ary" or "unary", as for `RingHistogram`.

    >>> round(WalkHistogram(1000, steps=10_000, domain=4, gamma=0.5).epsilon0, 4)
    1.6094
    """

    kind: ClassVar[str] = "walk-histogram"
    answer: ClassVar[str] = "the share of every value"
    domain: int
    gamma: float
    sender: str = "known"
    contributions: int | None = None
    release: str | None = None
    tokens: int = 1
    graph: Graph | None = None
    walk: str | Transition = "metropolis"
    weights: tuple[float, ...] | None = None
    response: str = "k-ary"

    def __post_init__(self) -> None:
        self._settle()
        self._set(tokens=count("tokens", self.tokens))
        self._settle_responses()

    def describe(self) -> str:
        return (
            f"{self._where()}{self.n:,} users; {self._walkers('token')} {self.steps:,} steps at random and collects a "
            f"histogram of {self.domain} values, random answers with probability γ={self.gamma:g}, {self._channel()}{self._drawn()}"
            f"{'' if self.response == 'k-ary' else f', {self.response} encoding'}"
        )


@dataclass(frozen=True)
class WalkDescent(WholeSteps, GradientSteps, _Walk):
    """Projected noisy SGD along random walks, on the complete graph or on any: θ ← Π(θ − η(g_u(θ) + Z)), Z ~ N(0, σ²I).

    Parameters
    ----------
    n : users (each step draws one of them uniformly), or the graph that the token walks on.
    steps : the number T of gradient steps of each walk.
    sigma : standard deviation, per coordinate, of the noise added to a gradient.
    step : η > 0.
    clip : L > 0: gradients are clipped to this norm *before* the noise, so that two of them differ by at most Δ = 2L.
    sender, contributions, release : as for `WalkSum`.
    radius : Π projects onto the ball of this radius around 0; None: no projection.
    expansion : Lipschitz constant of θ ↦ θ − η·g_u(θ), the clipping included: 1 for generalised linear models with rows
        clipped one by one and η ≤ 2/β (`netdp.learn.train_walk` checks it). Clipping a whole gradient can expand, for these
        models too: then state 1 + ηβ. Only the bound by iteration needs it to be 1; the bound by the secrecy of the walk
        does not.
    tokens : walks in parallel, independent of each other; each carries a model of its own, all are released, and the answer
        is their mean.
    walk : on a graph "metropolis" (every user is visited equally often), "simple" (in proportion to its degree) or a
        `graphs.Transition`.
    closing : on a graph, the last holder of each token adds noise of variance closing·(ησ)² to the model before the release:
        the last contributions have little cover otherwise. True means n, as much as n more steps would bring.
    weights : on the complete graph, as for `WalkSum`: losses are then averaged with these weights.
    batch : so many rows of a user, drawn anew, make a gradient; None: all of them.
    grid : None for real numbers; or a power of two: tokens then hold whole numbers of steps of it, as on real peers
        (`netdp.protocols.descents.wire_grid` proposes one). No radius then.
    dimension : how many numbers a model has, at most. On a grid every one of them is rounded.

    >>> WalkDescent(2000, steps=20_000, sigma=1.0, step=0.05, clip=0.4).sensitivity
    0.8
    >>> from netdp import graphs
    >>> print(WalkDescent(graphs.hypercube(4), steps=160, sigma=2.0, step=0.1, tokens=3))
    hypercube(4), metropolis walk: 16 users; 3 models walk 160 steps at random, a noisy gradient step at each: ...
    """

    kind: ClassVar[str] = "walk-descent"
    answer: ClassVar[str] = "a model"
    sigma: float
    step: float
    clip: float = 1.0
    sender: str = "known"
    contributions: int | None = None
    radius: float | None = None
    expansion: float = 1.0
    release: str | None = None
    tokens: int = 1
    graph: Graph | None = None
    walk: str | Transition = "metropolis"
    closing: float = False
    weights: tuple[float, ...] | None = None
    batch: int | None = None
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        self._settle()
        self._set(tokens=count("tokens", self.tokens), closing=share_or_switch("closing", self.closing, float(self.n)))
        if self.batch is not None:
            self._set(batch=count("batch", self.batch))
        if self.closing and self.graph is None:
            raise InvalidValue("closing noise is for walks on a graph; on the complete graph leave closing=False")
        self._settle_gradients()
        if self.grid is not None and self.radius is not None:
            raise InvalidValue(
                f"radius={self.radius:g} on a grid: projecting whole numbers is not proved; give None, or grid=None for "
                "real numbers"
            )
        self._settle_grid(self.steps, self.steps)

    @property
    def visits(self) -> int:
        """How many gradients the tokens collect, all together."""
        return self.tokens * self.steps

    @property
    def closing_variance(self) -> int:
        """On a grid: the parameter of the closing noise, in squared steps, rounded up; 0 if there is none."""
        return math.ceil(Fraction(self.closing) * self.variance)

    @property
    def other_variance(self) -> float:
        return float(self.closing_variance)

    @property
    def in_real_numbers(self) -> WalkDescent:
        """The same on no grid, with noise no larger and gradients that may be as far apart as rounded ones."""
        below = math.sqrt(self.variance) * (self.spacing / self.step) * (1 - 4 * UNIT)
        longest = self.reach * (self.spacing / self.step) * (1 + 4 * UNIT)
        return self.replace(grid=None, sigma=below, clip=longest)

    def describe(self) -> str:
        return (
            f"{self._where()}{self.n:,} users; {self._walkers('model')} {self.steps:,} steps at random, a noisy gradient "
            f"step at each: σ={self.sigma:g} step={self.step:g} clip={self.clip:g}, {self._channel()}{self._drawn()}"
            f"{f', {self.batch} rows each' if self.batch is not None else ''}"
            f"{f'; whole numbers on a grid of {self.grid:g}' if self.grid is not None else ''}"
        )


@dataclass(frozen=True)
class GraphWalkSum(TokenGrid, OnGraph):
    """The sum of the contributions along random walks on any connected graph.

    Parameters
    ----------
    graph : a connected `Graph`, its nodes are the users; or a strongly connected NetworkX DiGraph, or a `Transition`.
    steps : T, the length of each walk.
    sigma : standard deviation of the noise in every contribution.
    walk : "metropolis" (every user is visited equally often), "simple" (in proportion to its degree) or a `Transition`.
    tokens : walks in parallel, independent of each other.
    closing : the last holder adds noise of variance closing·σ² before the token is released; True means n, as much noise as
        n more steps would bring, False none: then the last contributions have little cover.
    contributions : at most so many per user and token, or None.
    sensitivity : Δ.
    grid, dimension : as for `WalkSum`.

    Each walk starts at a user drawn from its stationary distribution. Neighbours see who hands them the token.

    >>> from netdp import graphs
    >>> p = GraphWalkSum(graphs.path(3), steps=300, sigma=4.0)
    >>> p.transition.toarray().round(3).tolist(), p.closing
    ([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]], 3.0)
    """

    kind: ClassVar[str] = "graph-walk-sum"
    graph: Graph
    steps: int
    sigma: float
    walk: str | Transition = "metropolis"
    tokens: int = 1
    closing: float = True
    contributions: int | None = None
    sensitivity: float = 1.0
    grid: float | None = None
    dimension: int = 1

    def __post_init__(self) -> None:
        graph, walk = settled(self.graph, self.walk, "GraphWalkSum")
        self._set(graph=graph, walk=walk)
        for name in ("steps", "tokens"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        if self.steps < self.n:
            raise InvalidValue(
                f"steps={self.steps} is shorter than one visit to each of {self.n} users; give at least {self.n}"
            )
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(closing=share_or_switch("closing", self.closing, float(self.n)))
        if self.contributions is not None:
            object.__setattr__(self, "contributions", count("contributions", self.contributions))
        self._settle_grid()

    def prepare(self) -> None:
        self.transition  # noqa: B018

    @property
    def visits(self) -> int:
        """How many contributions the tokens collect, all together."""
        return self.tokens * self.steps

    def describe(self) -> str:
        tokens = "a token walks" if self.tokens == 1 else f"{self.tokens} tokens walk"
        return (
            f"{self.graph.name}: {self.n:,} users; {tokens} {self.steps:,} steps ({self.walk}), "
            f"σ={self.sigma:g} Δ={self.sensitivity:g}{'' if self.closing else ', no closing noise'}{self._gridded()}"
        )

    @cached_property
    def transition(self) -> Any:
        """P[u, w]: the probability that the token goes from u to w (CSR)."""
        return transition_matrix(self.graph, self.walk)

    @property
    def stationary(self) -> Any:
        """Where the token is in the long run, and starts."""
        return stationary(self.graph, self.walk)


def stationary(graph: Graph, walk: str | Transition) -> Any:
    """Where a walk on this graph is in the long run."""
    if isinstance(walk, Transition):
        return walk.stationary
    return np.full(graph.n, 1.0 / graph.n) if walk == "metropolis" else graph.degrees / graph.degrees.sum()


def settled(graph: Any, walk: Any, what: str) -> tuple[Graph, str | Transition]:
    """The graph and the walk on it, checked. Arrows are kept: a directed graph, or a `Transition`, is its own walk."""
    if isinstance(walk, dict):
        walk = Transition.from_dict(walk)
    if isinstance(graph, Transition) or (is_networkx(graph) and graph.is_directed()):
        if walk != "metropolis":  # the default
            raise InvalidValue(f"a directed graph says itself where its tokens go; leave out walk={walk!r}")
        walk = graph if isinstance(graph, Transition) else Transition.from_networkx(graph)
        graph = walk.graph
    undirected = as_graph(graph, what)
    undirected.require_connected("a walk")
    if isinstance(walk, Transition):
        if walk.graph != undirected:
            raise InvalidValue(f"walk={walk!r} goes along other links than {undirected!r}; take its own .graph")
    elif walk not in WALKS:
        raise InvalidValue(f"unknown walk {walk!r}; choose one of {', '.join(WALKS)} or a graphs.Transition")
    return undirected, walk
