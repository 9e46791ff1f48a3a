"""Choose rounds, noise, masks and refresh for the smallest predicted error at a certified privacy target.

`search` proposes settings, `certify` finds the noise that they demand over everybody in question, and the error is
predicted again with that noise. Nothing that `search` guessed remains in the result: σ, ε and the claim come from
the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.gossip.statements import certified_statement
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.mixing import Mixing
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import count
from netdp.numerics.rounding import rounded_up
from netdp.planning.audience import DRAWS, Audience, audience
from netdp.planning.base import Option, Plan
from netdp.planning.policy import Policy
from netdp.planning.target import Target
from netdp.privacy import Guarantee, Observers
from netdp.protocols import Gossip
from netdp.utility.limits import Limit, limits
from netdp.utility.spectral import SpectralError

from .calibrate import with_noise
from .certify import Certificate, certify
from .search import REFRESH, Finding, Search

KINDS = ("plain", "refreshed", "masked", "masked, refreshed")


@dataclass(frozen=True, eq=False)
class GossipOption(Option):
    """One kind of gossip with its best settings and the certificate of its noise."""

    protocol: Gossip
    certificate: Certificate

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        c, label = self.certificate, self.protocol.graph.label
        return {
            **super().to_dict(),
            "certificate": {
                "claim": c.claim.value,
                "worst_factor": c.worst_factor,
                "tightest": None
                if c.party < 0
                else {  # a mean is over all parties
                    "party": c.party,
                    "observers": list(c.observers),
                    "names": {"party": label(c.party), "observers": [label(v) for v in c.observers]},
                },
                "sets_covered": c.covered,
                "sets_examined": c.examined,
                "slack": c.slack,
            },
        }


@dataclass(frozen=True, eq=False, repr=False)
class GossipPlan(Plan):
    """The kinds of gossip in the order of `KINDS`."""

    options: tuple[GossipOption, ...]
    graph: Graph
    target: Target
    audience: Audience

    @property
    def best(self) -> GossipOption:
        """The option of smallest predicted error."""
        return min(self.options, key=lambda option: option.rmse)

    @property
    def protocol(self) -> Gossip:
        """The protocol chosen."""
        return self.best.protocol

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        graph, scope = self.graph, self.target.scope
        return {
            "graph": {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest},
            **super().to_dict(),
            "scope": scope if isinstance(scope, str) else {"policy": scope.source, "rules": scope.describe_rules()},
        }


def plan(
    graph: Graph,
    epsilon: float | None,
    delta: float,
    scope: str | Policy = "worst",
    *,
    observers: Iterable[int | str] | int | str | None = None,
    coalitions: float | Sequence[Iterable[int | str]] | None = None,
    colluders: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    sensitivity: float = 1.0,
    mixing: Mixing = "metropolis",
    max_rounds: int = 200,
    spread: float | None = None,
    kinds: Sequence[str] = KINDS,
    progress: Progress | None = None,
) -> GossipPlan:
    """The settings of smallest predicted error whose certified loss meets the target, for each kind of gossip.

    scope, observers, coalitions, colluders, seed, draws : as in `calibrate`. σ is rounded up to four digits.
    max_rounds : no more rounds than this. Masks can buy a trusted curator's privacy with rounds; where a graph mixes
        slowly this decides.
    spread : mean squared distance of the values from their mean; by default Δ²/4, the largest that values in an
        interval of length Δ can have.

    >>> from netdp import graphs
    >>> p = plan(graphs.hypercube(6), epsilon=1.0, delta=1e-6)
    >>> p.best.name, p.best.rmse < 1.1 * p.curator_rmse < p.local_rmse / 5
    ('masked', True)
    """
    count("max_rounds", max_rounds)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise InvalidValue(f"unknown kind {unknown[0]!r} of gossip; choose from {', '.join(map(repr, KINDS))}")
    base = Gossip(graph, rounds=1, sigma=1.0, sensitivity=sensitivity, mixing=mixing)
    if spread is not None and not (math.isfinite(spread) and spread >= 0):
        raise InvalidValue(f"spread must be a finite number ≥ 0, got {spread!r}")
    width = base.sensitivity**2 / 4 if spread is None else float(spread)
    target = Target(graph, epsilon, delta, scope)
    if target.mu == 0:
        target.demand(_neighbours_seen(graph), (0,))  # refuses, naming a pair
        raise Unsupported(f"no noise level meets epsilon = {epsilon} at delta = {delta}; ask for delta > 0")
    who = audience(graph, observers, coalitions, colluders=colluders, seed=seed, draws=draws, mixing=base.mixing)
    errors = SpectralError(graph, base.mixing, max_rounds)
    search = Search(base, target, who, errors, width)
    options: list[GossipOption] = []
    notes: list[str] = []

    def add(kind: str, found: Finding | None) -> None:
        if found is None:
            notes.append(
                f"{kind}: not offered, it changes nothing or there is nothing to protect within {max_rounds} rounds"
            )
            return
        certificate = certify(found.protocol, target, who, progress)
        p = with_noise(found.protocol, target, certificate)
        p = p.replace(sigma=rounded_up(p.sigma))  # more noise than certified, by at most a part in a thousand
        messages = p.rounds * 2.0 * graph.m / graph.n
        promise = _promise(p, certificate, who)
        options.append(GossipOption(kind, p, promise, errors.of(p, width), messages, certificate=certificate))

    if "plain" in kinds:
        add("plain", search.plain())
    if "refreshed" in kinds:
        add("refreshed", search.refreshed())
        if search.first_message is not None:
            notes.append("refreshed: fresh noise cannot help against direct neighbours, who see the first message")
    if "masked" in kinds or "masked, refreshed" in kinds:
        found = search.masked()
        if "masked" in kinds:
            add("masked", found)
        if "masked, refreshed" in kinds and found is not None:
            both = search.masked_refreshed(found.protocol) if colluders == 1 else None
            if colluders > 1:
                notes.append("masked, refreshed: not offered, the bound for any coalition counts the masks only")
            elif both is None:
                notes.append(
                    "masked, refreshed: not searched, there are too many messages to follow fresh noise through quickly"
                )
            elif both.squared_error >= found.squared_error:
                notes.append(
                    "masked, refreshed: fresh noise on top of the masks gains nothing here (r = 0.1 and 1 tried)"
                )
            else:
                add("masked, refreshed", both)
    if not options:
        raise InvalidValue(f"nothing to plan for {target.words}: {'; '.join(notes) or 'no kind was asked for'}")
    masked = next((option for option in options if option.name == "masked"), None)
    if masked is not None and masked.certificate.party >= 0:
        notes.extend(_why_no_better(graph, masked.certificate))
    return GossipPlan(
        tuple(options),
        epsilon=epsilon,
        delta=delta,
        holds=f"holds for {target.words},\nagainst {who.words}",
        local_rmse=base.sensitivity / (target.mu * math.sqrt(graph.n)),
        curator_rmse=base.sensitivity / (target.mu * graph.n),
        notes=tuple(notes),
        limit=_limit(base, target, who),
        graph=graph,
        target=target,
        audience=who,
    )


def _limit(base: Gossip, target: Target, who: Audience) -> Limit | None:
    """What no protocol on the graph can do, where the target is one ε for everybody against everybody."""
    if not target.uniform or not (who.everybody or who.any_of > 1):
        return None
    level = float(target.scope.limits(base.graph)[0, 1]) if isinstance(target.scope, Policy) else target.epsilon
    assert level is not None
    return limits(base.graph, level, target.delta, colluders=who.any_of, sensitivity=base.sensitivity)


def _promise(protocol: Gossip, certificate: Certificate, who: Audience) -> Guarantee:
    """The worst loss of any pair or coalition looked at, also outside the scope, for every party."""
    factor = np.full(protocol.n, certificate.worst_factor)
    loss = certified_statement(protocol, factor, (), certificate.claim, certificate.slack, (f"against {who.words}",))
    if who.any_of > 1:
        said = account(protocol, colluders=who.any_of)
        return replace(said, curve=loss.curve, factor=factor)
    return replace(loss, observers=Observers(roles=("worst-placed party or coalition",)), names=protocol.graph.labels)


def _why_no_better(graph: Graph, certificate: Certificate) -> list[str]:
    """Say so when the party that decides is cut off from most honest parties: no mask can hide it among them."""
    if not certificate.observers:
        return []
    honest = [v for v in range(graph.n) if v not in set(certificate.observers)]
    rest = graph.subgraph(honest)
    component = rest.components()
    size = int((component == component[honest.index(certificate.party)]).sum())
    if 2 * size >= graph.n:
        return []
    against = (
        f"party {certificate.observers[0]}"
        if len(certificate.observers) == 1
        else f"a coalition of {len(certificate.observers)}"
    )
    return [
        f"masked: party {certificate.party} decides: without {against} it is connected to {size - 1} other "
        f"honest parties only, "
        f"so no masks bring its loss below 1/{size} of local DP's"
    ]


def _neighbours_seen(graph: Graph) -> Any:
    seen = np.zeros(graph.n)
    seen[graph.neighbors(0)] = 1.0
    return seen


__all__ = ["KINDS", "REFRESH", "GossipOption", "GossipPlan", "plan"]
