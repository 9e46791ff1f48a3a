"""A token on a random walk (Cyffers and Bellet, sections 4 and 4.2; seed of the AISTATS 2022 version; any graph).

**Complete graph.** At each of T steps a user is drawn uniformly from all n, independently of everything: it adds a
contribution with its own noise and passes the token on. What a holder learns of the others depends on the channel:

    sender="known"           it sees from whom it gets the token and to whom it passes it. Plain connections give this: the
                             holder draws the next user and connects to it.
    sender="receiver-known"  it draws the next user and so knows it, but does not learn from whom it got the token. The
                             channel hides the sender from the receiver: onion routing, an anonymous mailbox.
    sender="hidden"          it learns only that it holds the token now. The network itself draws the next holder and tells
                             nobody: a mix network that delivers every message to a random user. A holder that draws the
                             next one knows it; that is not this mode, however anonymous the channel.

The global step number is public, so a user knows how many steps lie between two of its visits. After step T the token is
released:

    release="named"          the last holder publishes it under its own name, so all know whose the last step was
    release="anonymous"      nobody learns who the last holder was: it publishes through a channel that hides the sender, or
                             the network publishes the token instead of delivering it

Plain connections give a named release, the two others an anonymous one: that is what release=None means.

**Any graph.** The token moves to a random neighbour: the Metropolis walk (uniform in the long run) or the simple one
(proportional to degree).

A user that has contributed `contributions` times passes the token on with noise only: that bounds what it can ever lose.
It also lets what others add depend on the secret path, so the secrecy of the path no longer counts in the certified loss:
set it for local guarantees, leave it out for network ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph, as_graph
from netdp.graphs.transitions import WALKS, transition_matrix
from netdp.numerics.checks import count, positive, scale, share_or_switch

from .base import OnGraph, Protocol
from .ring import check_response, response_epsilon

KNOWN_ENDS = {"hidden": 0, "receiver-known": 1, "known": 2}
"""How many contributions between two visits an observer can put a name to: none, the first, the first and the last."""
SENDERS = tuple(KNOWN_ENDS)
RELEASES = ("named", "anonymous")


@dataclass(frozen=True)
class _Walk(Protocol):
    n: int
    steps: int

    def _channel(self) -> str:
        return f"sender {getattr(self, 'sender')}"  # noqa: B009  a field of every walk

    def _check_walk(self) -> None:
        object.__setattr__(self, "n", count("n", self.n))
        if self.n < 2:
            raise InvalidValue("a walk needs at least 2 users, got 1")
        object.__setattr__(self, "steps", count("steps", self.steps))
        if self.steps < self.n:
            raise InvalidValue(
                f"steps={self.steps} is shorter than one visit to each of {self.n} users; give at least {self.n}"
            )
        sender, contributions = getattr(self, "sender"), getattr(self, "contributions")  # noqa: B009
        if sender not in SENDERS:
            raise InvalidValue(f"unknown sender {sender!r}; choose one of {', '.join(SENDERS)}")
        release = getattr(self, "release")  # noqa: B009
        if release is None:
            release = "named" if sender == "known" else "anonymous"
            object.__setattr__(self, "release", release)
        if release not in RELEASES:
            raise InvalidValue(f"unknown release {release!r}; choose one of {', '.join(RELEASES)}")
        if contributions is not None:
            object.__setattr__(self, "contributions", count("contributions", contributions))


@dataclass(frozen=True)
class WalkSum(_Walk):
    """The sum of the contributions along a random walk on the complete graph (Algorithm 3).

    Parameters
    ----------
    n, steps : users, and the length T of the walk; on average T/n contributions each.
    sigma : standard deviation of the noise in every contribution.
    sender : "known" (plain connections), "receiver-known" or "hidden", see above.
    contributions : at most so many per user and token, or None.
    tokens : walks in parallel, independent of each other; the released sums are added up.
    sensitivity : Δ, the L2 diameter of one public set in which the contributions of *all* users lie, whatever their data.
        That one user's own two values are close is not enough: the secrecy of the path is worth nothing to a user that
        stands far away from all others. Clip all values to the set first. Under "zero-out" it is the ball of radius Δ/2.
    release : "named" or "anonymous", see above; None: as the channel does. `replace(sender=…)` keeps the release.

    >>> WalkSum(100, steps=10_000, sigma=61.0).expected_contributions
    100.0
    """

    kind: ClassVar[str] = "walk-sum"
    sigma: float
    sender: str = "known"
    contributions: int | None = None
    tokens: int = 1
    sensitivity: float = 1.0
    release: str | None = None

    def __post_init__(self) -> None:
        self._check_walk()
        object.__setattr__(self, "tokens", count("tokens", self.tokens))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))

    @property
    def expected_contributions(self) -> float:
        """How often a user is visited on average, all tokens together."""
        return self.tokens * self.steps / self.n

    def describe(self) -> str:
        tokens = "a token walks" if self.tokens == 1 else f"{self.tokens} tokens walk"
        cap = f", at most {self.contributions} contributions each" if self.contributions is not None else ""
        return (
            f"{self.n:,} users; {tokens} {self.steps:,} steps at random, σ={self.sigma:g} Δ={self.sensitivity:g}, "
            f"{self._channel()}{cap}"
        )


@dataclass(frozen=True)
class WalkHistogram(_Walk):
    """A histogram over `domain` values, by L-ary randomized responses added to a token on a random walk.

    A user that has used up its `contributions` adds uniformly random values. `sender` and `release` as for `WalkSum`.

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

    def __post_init__(self) -> None:
        self._check_walk()
        check_response(self)

    @property
    def epsilon0(self) -> float:
        """The local-DP loss of one contribution."""
        return response_epsilon(self.domain, self.gamma)

    def describe(self) -> str:
        return (
            f"{self.n:,} users; a token walks {self.steps:,} steps at random and collects a histogram of {self.domain} "
            f"values, random answers with probability γ={self.gamma:g}, {self._channel()}"
        )


@dataclass(frozen=True)
class WalkDescent(_Walk):
    """Projected noisy SGD along a random walk on the complete graph: θ ← Π(θ − η(g_u(θ) + Z)), Z ~ N(0, σ²I).

    Parameters
    ----------
    n, steps : users, and the number T of gradient steps.
    sigma : standard deviation, per coordinate, of the noise added to a gradient.
    step : η > 0.
    clip : L > 0: gradients are clipped to this norm *before* the noise, so that two of them differ by at most Δ = 2L.
    sender, contributions, release : as for `WalkSum`.
    radius : Π projects onto the ball of this radius around 0; None: no projection.
    expansion : Lipschitz constant of θ ↦ θ − η·g_u(θ), the clipping included: 1 for generalised linear models with rows
        clipped one by one and η ≤ 2/β (`netdp.learn.train_walk` checks it). Clipping a whole gradient can expand, for these
        models too: then state 1 + ηβ. Only the bound by iteration needs it to be 1; the bound by the secrecy of the walk
        does not.

    >>> WalkDescent(2000, steps=20_000, sigma=1.0, step=0.05, clip=0.4).sensitivity
    0.8
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

    def __post_init__(self) -> None:
        self._check_walk()
        for name in ("sigma", "step", "clip", "expansion"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        if not self.clip < math.inf:
            raise InvalidValue("gradients without a bound cannot be protected: give a finite clip")
        if self.expansion < 1:
            raise InvalidValue(f"expansion must be ≥ 1, got {self.expansion!r}; a contraction is covered by 1")
        if self.radius is not None:
            object.__setattr__(self, "radius", positive("radius", self.radius))

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    def describe(self) -> str:
        return (
            f"{self.n:,} users; a model walks {self.steps:,} steps at random, a noisy gradient step at each: "
            f"σ={self.sigma:g} step={self.step:g} clip={self.clip:g}, {self._channel()}"
        )


@dataclass(frozen=True)
class GraphWalkSum(OnGraph):
    """The sum of the contributions along random walks on any connected graph.

    Parameters
    ----------
    graph : a connected `Graph`; its nodes are the users.
    steps : T, the length of each walk.
    sigma : standard deviation of the noise in every contribution.
    walk : "metropolis" (every user is visited equally often) or "simple" (in proportion to its degree).
    tokens : walks in parallel, independent of each other.
    closing : the last holder adds noise of variance closing·σ² before the token is released; True means n, as much noise as
        n more steps would bring, False none: then the last contributions have little cover.
    contributions : at most so many per user and token, or None.
    sensitivity : Δ.

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
    walk: str = "metropolis"
    tokens: int = 1
    closing: float = True
    contributions: int | None = None
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._set(graph=as_graph(self.graph, "GraphWalkSum"))
        self.graph.require_connected("a walk")
        for name in ("steps", "tokens"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        if self.steps < self.n:
            raise InvalidValue(
                f"steps={self.steps} is shorter than one visit to each of {self.n} users; give at least {self.n}"
            )
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))
        self._set(closing=share_or_switch("closing", self.closing, float(self.n)))
        if self.walk not in WALKS:
            raise InvalidValue(f"unknown walk {self.walk!r}; choose one of {', '.join(WALKS)}")
        if self.contributions is not None:
            object.__setattr__(self, "contributions", count("contributions", self.contributions))

    def prepare(self) -> None:
        self.transition  # noqa: B018

    def describe(self) -> str:
        tokens = "a token walks" if self.tokens == 1 else f"{self.tokens} tokens walk"
        return (
            f"{self.graph.name}: {self.n:,} users; {tokens} {self.steps:,} steps ({self.walk}), "
            f"σ={self.sigma:g} Δ={self.sensitivity:g}{'' if self.closing else ', no closing noise'}"
        )

    @cached_property
    def transition(self) -> Any:
        """P[u, w]: the probability that the token goes from u to w (CSR)."""
        return transition_matrix(self.graph, self.walk)

    @property
    def stationary(self) -> Any:
        """Where the token is in the long run, and starts."""
        if self.walk == "metropolis":
            return np.full(self.n, 1.0 / self.n)
        return self.graph.degrees / self.graph.degrees.sum()
