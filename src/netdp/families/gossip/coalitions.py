"""What any f parties who gossip learn, whoever they are (docs/proofs/coalitions.md#any-coalition).

Without masks a neighbour's first message is all there is to learn: factor 1, exactly, and a *dominating set* has it of everybody.
With masks the loss is at most a resistance (`netdp.graphs.resistance`), whatever the rounds and the refresh; small networks are
tried coalition by coalition. Learning by gossip pays for everything in every iteration (docs/proofs/gossip.md#hidden-state). Where
graphs or edges change, the first party that u talks to learns u's noisy value, and nobody more.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.families.gossip.account.descent_grid import against_any
from netdp.families.gossip.account.grid import OUT_OF_REACH, before_the_run, stated_on_a_grid, transcript_distance
from netdp.families.gossip.account.statements import certified_statement, gossip_assumptions
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.varying import ErdosRenyiGossip, VaryingGossip
from netdp.families.gossip.views import exchanged
from netdp.graphs.graph import Graph
from netdp.graphs.resistance import all_targets
from netdp.graphs.shape import vertex_transitive
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.observers import Found, Observers, entry
from netdp.protocols.coalitions import accountant, affordable, coalitions_of, dominating, found_in, try_all
from netdp.protocols.table import certified, coalitions

REFERENCE = "netdp, docs/proofs/coalitions.md#any-coalition: every coalition of a size."

_TRIED, _TRIED_SLOWLY = 600, 100

_LARGEST_TRIED = 96


@coalitions.register
def _gossip(protocol: Gossip, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    if protocol.masks == 0:
        return _first_messages(protocol, colluders)
    # factors do not depend on σ: a search for σ asks once
    any_f = _masked(protocol.replace(sigma=1.0, sensitivity=1.0), colluders)
    loss = certified_statement(protocol, any_f.factor, any_f.claim, any_f.slack, any_f.notes)
    curve = GaussianCurve(math.sqrt(any_f.found) * protocol.local_mu)
    note = _cover_note(protocol.graph, colluders)
    found = Found(Observers(any_f.members), any_f.target, curve, any_f.attained, note)
    return _referred(dataclasses.replace(loss, found=found))


@dataclass(frozen=True, eq=False)
class AnyFactors:
    """Factors that hold against every coalition of a size, and what one of them was found to have."""

    factor: FloatArray
    claim: Claim
    slack: float
    notes: tuple[str, ...]
    members: tuple[int, ...]
    target: int
    found: float
    attained: bool


@lru_cache(maxsize=64)
def _masked(protocol: Gossip, colluders: int) -> AnyFactors:
    n, alike = protocol.n, vertex_transitive(protocol.graph, protocol.mixing)
    most = _TRIED_SLOWLY if protocol.refresh > 0 else _TRIED
    if n <= _LARGEST_TRIED and affordable(n, colluders, alike=alike, most=most):
        sets = coalitions_of(n, colluders, alike=alike)
        loss = try_all(n, accountant(protocol, {}), sets, alike=alike)
        assert loss.factor is not None
        assert loss.found is not None
        notes = tuple(text for text in loss.assumptions if text not in gossip_assumptions(protocol))
        worst, found = float(np.max(loss.factor)), loss.found
        return AnyFactors(
            np.asarray(loss.factor),
            loss.claim,
            loss.slack,
            notes,
            found.observers.parties,
            found.target,
            worst,
            found.attained,
        )
    bounds = all_targets(protocol.graph, protocol.masks, colluders, alike=alike)
    factor = np.array([one.upper for one in bounds])
    u = int(np.argmax([one.lower for one in bounds]))
    members = bounds[u].coalition
    named = certified(protocol, members)
    assert named.factor is not None
    # all neighbours of anybody may collude: 1 is attained; elsewhere it may only be where a bound ends
    claim = Claim.EXACT if (protocol.graph.degrees <= colluders).all() else Claim.UPPER
    return AnyFactors(factor, claim, 0.0, (), members, u, float(named.factor[u]), named.claim is Claim.EXACT)


@coalitions.register
def _descent(protocol: GossipDescent, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    if protocol.grid is not None:
        return against_any(protocol, colluders)
    n, account = protocol.n, accountant(protocol, {})
    alike = isinstance(protocol.graph, Graph) and vertex_transitive(protocol.graph, protocol.mixing)
    if n <= _LARGEST_TRIED and affordable(n, colluders, alike=alike, most=_TRIED_SLOWLY):
        # paying for everything is among what each of them may do: the resistance below is less in its margins only
        tried = try_all(n, account, coalitions_of(n, colluders, alike=alike), alike=alike, progress=progress)
        assert tried.factor is not None
        factor, found = tried.factor, tried.found
    else:
        factor = _everything_paid(protocol, colluders, alike, progress)
        u = int(np.argmax(factor))
        near = protocol.graphs[0].neighbors(u)
        members = tuple(sorted(int(w) for w in near[:colluders])) if len(near) else ((u + 1) % n,)
        tried = account(members)
        assert tried.factor is not None
        # what holds for all coalitions holds for this one, whose own figure has margins of its own
        mu = math.sqrt(min(float(tried.factor[u]), float(factor[u]))) * protocol.local_mu
        found = dataclasses.replace(found_in(tried, members, u), curve=GaussianCurve(mu))
    return dataclasses.replace(
        tried,
        curve=GaussianCurve(np.sqrt(factor) * protocol.local_mu),
        factor=factor,
        claim=Claim.UPPER,
        references=(*tried.references, REFERENCE),
        found=found,
    )


def _everything_paid(protocol: GossipDescent, colluders: int, alike: bool, progress: Progress | None) -> FloatArray:
    """Factors against every coalition of a size, if the observers are told all first messages of every iteration."""
    if protocol.masks == 0:
        return np.ones(protocol.n)
    kinds = list(dict.fromkeys(protocol.graphs))
    each = [all_targets(g, protocol.masks, colluders, alike=alike, progress=progress) for g in kinds]
    share = [protocol.graphs.count(g) / len(protocol.graphs) for g in kinds]
    sums = sum(s * np.array([one.upper for one in found]) for s, found in zip(share, each, strict=True))
    return np.minimum(sums * (1 + 1e-12), 1.0)


@coalitions.register
def _varying(protocol: VaryingGossip, colluders: int) -> Guarantee:
    """The first neighbour that a party ever has sees its first message; who never has one is never heard."""
    factor, first = np.zeros(protocol.n), np.full(protocol.n, -1, dtype=np.int64)
    for graph in protocol.graphs:
        for u in np.flatnonzero((factor == 0) & (graph.degrees > 0)).tolist():
            factor[u], first[u] = 1.0, int(graph.neighbors(u)[0])
    u = int(np.argmax(factor))
    plain = protocol.grid is None and protocol.refresh == 0  # a first message of a later round has fresh noise, too
    if protocol.grid is None:
        loss = _referred(certified_statement(protocol, factor, Claim.EXACT if plain else Claim.UPPER))
    else:
        loss = _referred(
            stated_on_a_grid(protocol, np.where(factor > 0, 1.0, OUT_OF_REACH), transcript_distance(protocol))
        )
    if not factor.any():
        return loss
    members = (int(first[u]),)
    curve = GaussianCurve(protocol.local_mu) if plain else entry(certified(protocol, members).curve, u)
    return dataclasses.replace(loss, found=Found(Observers(members), u, curve, attained=plain))


@coalitions.register
def _before_the_draw(protocol: RandomizedGossip, colluders: int, *, transcript: Any = None) -> Guarantee:
    """Nobody learns more than x + ση; after a run, whom a party exchanged with first learned exactly that."""
    if protocol.grid is not None:  # on a grid the same, whatever is seen
        return _referred(before_the_run(protocol))
    factor, found, claim = np.ones(protocol.n), None, Claim.UPPER
    if transcript is not None:
        edges = exchanged(protocol, transcript)
        factor, claim = np.zeros(protocol.n), Claim.EXACT
        for u, w in edges.tolist():
            if u >= 0:
                for one, other in ((u, w), (w, u)):
                    if factor[one] == 0 and found is None:
                        found = Found(Observers((other,)), one, GaussianCurve(protocol.local_mu), attained=True)
                factor[[u, w]] = 1.0
    loss = _referred(certified_statement(protocol, factor, claim))
    return dataclasses.replace(loss, found=found)


@coalitions.register
def _secret(protocol: ErdosRenyiGossip, colluders: int, *, degree: int | None = None) -> Guarantee:
    """Before the graph is drawn all coalitions of a size are alike."""
    members = tuple(range(colluders))
    loss = certified(protocol, members, degree=degree)
    found = found_in(loss, members, protocol.n - 1, note="before the draw all coalitions of a size are alike")
    return _referred(dataclasses.replace(loss, found=found))


def _first_messages(protocol: Gossip, colluders: int) -> Guarantee:
    graph = protocol.graph
    if protocol.grid is None:
        loss = certified_statement(protocol, np.ones(protocol.n), Claim.EXACT)
    else:
        loss = stated_on_a_grid(protocol, np.ones(protocol.n), transcript_distance(protocol))
    u = int(np.argmax(graph.degrees > 0))
    w = int(graph.neighbors(u)[0])
    curve = certified(protocol, (w,)).curve
    best = dominating([graph.neighbors(v) for v in range(graph.n)])
    if len(best) <= colluders:
        note = f"{_parties(best)} {'is' if len(best) == 1 else 'are'} next to everybody else and "
        note += f"{'learns' if len(best) == 1 else 'learn together'} as much about all of them at once"
    else:
        note = f"{len(best)} parties would be next to everybody else and learn as much about all of them at once"
    found = Found(Observers((w,)), u, entry(curve, u), attained=protocol.grid is None, note=note)
    return _referred(dataclasses.replace(loss, found=found))


def _referred(loss: Guarantee) -> Guarantee:
    return dataclasses.replace(loss, references=(*loss.references, REFERENCE))


def _cover_note(graph: Graph, colluders: int) -> str:
    """Parties without whom no two others are neighbours undo all masks at once."""
    alone, blocked = 0, np.zeros(graph.n, dtype=bool)
    for v in np.argsort(graph.degrees, kind="stable").tolist():
        if not blocked[v]:
            alone += 1
            blocked[v] = True
            blocked[graph.neighbors(v)] = True
    size = graph.n - alone
    least = int(graph.degrees.min())
    if size <= colluders:
        return f"{size} parties leave no two others next to each other: together they undo every mask at once"
    if least <= colluders:
        return f"{least} neighbours undo the masks of a party; {size} parties would undo all masks at once"
    return f"from {least} colluders on all neighbours of somebody may collude, and nothing but its own noise hides it"


def _parties(members: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, members[:8])) + (", …" if len(members) > 8 else "")
    return f"party {shown}" if len(members) == 1 else f"the {len(members)} parties {shown}"
