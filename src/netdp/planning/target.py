"""What is asked for: an (ε, δ) and for whom it must hold, turned into the noise that given losses demand.

A linear-Gaussian view has μ_u² = factor_u·Δ²/σ². So ε_u(δ) ≤ ε means factor_u·Δ²/σ² ≤ μ*(ε, δ)², with μ* the largest μ that
the budget allows: (σ/Δ)² ≥ factor_u/μ*². The largest right-hand side over the pairs in question is the *demand*.

**Neighbours.** Without masks a factor is at most 1, and 1 for whoever sends to an observer: its first message is x + ση. So if
the strictest limit of all pairs in question is that of a neighbour, the demand is 1/μ*² at that limit, whatever else happens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray
from netdp.privacy import gaussian_mu

from .policy import Policy

SCOPES = 'scope must be "worst", "mean", "beyond:2" (pairs at least 2 hops apart) or a Policy'


@dataclass(frozen=True)
class Demand:
    """(σ/Δ)² that a loss asks for, and the party u that asks for it (-1: none, or a mean)."""

    value: float
    party: int


@dataclass(frozen=True, eq=False)
class Target:
    """ε at δ over a scope, on one graph.

    >>> from netdp import graphs
    >>> Target(graphs.ring(5), 1.0, 1e-6, "beyond:2").words
    'every pair at least 2 hops apart'
    """

    graph: Graph
    epsilon: float | None
    delta: float
    scope: str | Policy = "worst"

    def __post_init__(self) -> None:
        if isinstance(self.delta, bool) or not isinstance(self.delta, int | float) or not 0 <= self.delta < 1:
            raise InvalidValue(f"delta must lie in [0, 1), got {self.delta!r}; 1e-6 is a usual choice")
        if isinstance(self.scope, Policy):
            if self.epsilon is not None:
                raise InvalidValue(
                    f"a policy states its own epsilons, got epsilon={self.epsilon!r} as well; give "
                    f"epsilon=None, or add the rule *, *, …"
                )
            self.limits  # noqa: B018  unknown parties are refused now
            return
        if not isinstance(self.scope, str) or (self.scope not in ("worst", "mean") and self.hops < 1):
            raise InvalidValue(f"{SCOPES}, got {self.scope!r}")
        epsilon = self.epsilon
        if (
            isinstance(epsilon, bool)
            or not isinstance(epsilon, int | float)
            or not (math.isfinite(epsilon) and epsilon >= 0)
        ):
            raise InvalidValue(f"epsilon must be a finite number ≥ 0, got {epsilon!r}")
        if self.hops > 1 and all(int(self.graph.distances(u).max()) < self.hops for u in range(self.graph.n)):
            raise InvalidValue(
                f"no two parties are {self.hops} hops apart in {self.graph!r}; choose a smaller distance"
            )

    @cached_property
    def hops(self) -> int:
        """k of beyond:k, 0 for other scopes."""
        match = re.fullmatch(r"beyond:(\d{1,9})", self.scope) if isinstance(self.scope, str) else None
        return int(match[1]) if match else 0

    @cached_property
    def symmetric(self) -> bool:
        """Whether only distances matter, not who is who; so it may be with a policy, too."""
        if isinstance(self.scope, str) or self.uniform:
            return True
        stated: dict[int, float] = {}
        for u in range(self.graph.n):
            others = np.arange(self.graph.n) != u
            hops, limits = self.graph.distances(u)[others], self.limits[u, others]
            for apart in np.unique(hops).tolist():
                here = limits[hops == apart]
                if not (here == stated.setdefault(apart, float(here[0]))).all():
                    return False
        return True

    @cached_property
    def uniform(self) -> bool:
        """Whether one limit holds for all pairs: scope "worst", or a policy that says the same."""
        if isinstance(self.scope, str):
            return self.scope == "worst"
        limits = self.limits[~np.eye(self.graph.n, dtype=np.bool_)]
        return limits.size > 0 and bool(np.isfinite(limits).all() and (limits == limits[0]).all())

    @cached_property
    def limits(self) -> FloatArray:
        """μ* for every pair, of a policy."""
        assert isinstance(self.scope, Policy)
        epsilon = self.scope.limits(self.graph)
        if not np.isfinite(epsilon).any():
            raise InvalidValue(f"{self.scope.source} limits no pair of {self.graph!r}; add a rule such as: *, *, 1.0")
        filled = np.where(np.isnan(epsilon), np.inf, epsilon)
        kinds, inverse = np.unique(filled, return_inverse=True)
        allowed = np.where(np.isinf(kinds), np.inf, gaussian_mu(kinds, self.delta))  # no limit, also at δ = 0
        return np.asarray(allowed[inverse].reshape(filled.shape))

    @cached_property
    def mu(self) -> float:
        """μ* of the budget; of a policy, of its strictest rule."""
        if isinstance(self.scope, Policy):
            return float(self.limits.min())
        return float(gaussian_mu(self.epsilon, self.delta))  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """For whom it holds, in words."""
        if isinstance(self.scope, Policy):
            return f"every pair that {self.scope.source} limits"
        if self.hops:
            return f"every pair at least {self.hops} hops apart"
        if self.scope == "mean":
            return (
                "the mean loss over the parties, for the worst observer (a mean is not a guarantee: single "
                "parties may lose more)"
            )
        return "every pair"

    def demand(self, factor: FloatArray, observers: tuple[int, ...]) -> Demand:
        """What the losses `factor` (nan at the observers) ask for; refuses what no noise can give."""
        if self.scope == "mean":
            mean = float(np.nanmean(factor))
            return Demand(self._over(np.asarray([mean]), np.asarray([self.mu]), (-1,), observers)[0], -1)
        allowed = self._allowed(observers)
        value, party = self._over(np.nan_to_num(factor, nan=0.0), allowed, range(len(factor)), observers)
        return Demand(value, party if value > 0 else -1)

    def strictest_neighbour(self, sets: Sequence[tuple[int, ...]]) -> tuple[float, tuple[int, ...]] | None:
        """What a first message asks for where the strictest limit is a neighbour's, and who sees it; None where it is not.

        >>> from netdp import graphs
        >>> from netdp.planning import Policy
        >>> from netdp.planning.policy import Rule
        >>> near, far = Policy([Rule("*", "*", 1.0)]), Policy([Rule("*", "*", 4.0), Rule("*", "distance>=2", 1.0)])
        >>> [Target(graphs.ring(5), None, 1e-6, one).strictest_neighbour([(0,)]) is None for one in (near, far)]
        [False, True]
        """
        if self.scope == "mean" or self.hops > 1 or not sets:
            return None
        if isinstance(self.scope, str):
            return (1.0 / self.mu**2 if self.mu > 0 else np.inf), sets[0]
        strictest, seen_by = np.inf, None
        for observers in sets:
            allowed = self._allowed(observers)
            allowed[list(observers)] = np.inf
            least = float(allowed.min())
            neighbour = any(float(allowed[self.graph.neighbors(v)].min(initial=np.inf)) == least for v in observers)
            if least < strictest:
                strictest, seen_by = least, observers if neighbour else None
            elif least == strictest and neighbour and seen_by is None:
                seen_by = observers
        if seen_by is None or not strictest < np.inf:
            return None
        return (1.0 / strictest**2 if strictest > 0 else np.inf), seen_by

    def _allowed(self, observers: tuple[int, ...]) -> FloatArray:
        """μ* for every party against these observers together."""
        if isinstance(self.scope, Policy):
            # nobody named: anybody may be among them, and a coalition is held to the strictest limit of its members
            return np.asarray((self.limits[:, list(observers)] if observers else self.limits).min(axis=1))
        allowed = np.full(self.graph.n, self.mu)
        if self.hops > 1:
            allowed[self.graph.distances(list(observers)) < self.hops] = np.inf
        return allowed

    def _over(
        self, factor: FloatArray, allowed: FloatArray, parties: range | tuple[int, ...], observers: tuple[int, ...]
    ) -> tuple[float, int]:
        hopeless = (factor > 0) & (allowed == 0)
        if hopeless.any():
            party = parties[int(np.flatnonzero(hopeless)[0])]
            who = "the mean party" if party < 0 else f"party {party}"
            raise Unsupported(
                f"no noise level meets this: {who} is seen by {_names(observers)} (loss factor "
                f"{float(factor[hopeless][0]):.3g}), "
                f"and Gaussian noise gives no guarantee at delta = {self.delta:g}; ask for delta > 0, such as 1e-6"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            asked = np.where(factor > 0, factor / allowed**2, 0.0)
        worst = int(np.argmax(asked))
        if not math.isfinite(asked[worst]):
            raise Unsupported(
                f"no finite noise level meets this: party {parties[worst]} against {_names(observers)} allows only "
                f"mu = {allowed[worst]:.3g}; allow a larger epsilon or delta"
            )
        return float(asked[worst]), int(parties[worst])


def _names(observers: tuple[int, ...]) -> str:
    if not observers:
        return "some coalition"
    if len(observers) == 1:
        return f"party {observers[0]}"
    return (
        f"the coalition of {len(observers)} parties "
        f"({', '.join(map(str, observers[:6]))}{', …' if len(observers) > 6 else ''})"
    )
