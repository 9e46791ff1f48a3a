"""The noise that a privacy target asks of gossip, and the rounds, masks and refresh of smallest predicted error at that target.

`calibrate`: factors of gossip do not depend on σ, so σ = Δ·√demand in one step (docs/proofs/privacy.md#calibration).
`plan_gossip`: `Search` proposes settings, `certify` finds the noise that they demand over everybody in question, and the
error is predicted again with that noise; nothing that was guessed remains in the result. `advise` plans the same target on
several topologies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp import graphs
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.families.gossip.account.descent import loss_energy, redrawn_descent_loss, worst_energies
from netdp.families.gossip.account.exact import factors
from netdp.families.gossip.account.statements import certified_statement
from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
from netdp.families.gossip.error import SpectralError
from netdp.families.gossip.protocol import Gossip, RandomizedGossip
from netdp.families.gossip.search import Certificate, FoundSettings, Search, certify, named
from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
from netdp.families.gossip.views import GossipView
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import Mixing
from netdp.graphs.shape import vertex_transitive
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.arrays import Progress, rounded_up
from netdp.numerics.checks import count, positive
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import Limit, limits
from netdp.protocols.alternatives import local_dp
from netdp.protocols.calibration import HEADROOM, calibrations, checked_target, noise_for, smallest
from netdp.protocols.descents import own_releases, wire_grid
from netdp.protocols.links import DISTANCES, LinkCost, Linking, Sought
from netdp.protocols.planning import Asked, Option, Plan, baselines_at
from netdp.protocols.target import DRAWS, Audience, Policy, Target, audience
from netdp.protocols.views import observer_set

# Relative headroom on σ²: above what another order of additions moves a factor, below anything visible.
_HEADROOM = 1e-9


@calibrations.register
def _gossip(
    protocol: Gossip,
    epsilon: float | None,
    delta: float,
    *,
    scope: str | Policy = "worst",
    observers: Iterable[int | str] | int | str | None = None,
    coalitions: float | Sequence[Iterable[int | str]] | None = None,
    colluders: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Progress | None = None,
) -> Gossip:
    target = Target(protocol.graph, epsilon, delta, scope)
    who = audience(
        protocol.graph, observers, coalitions, colluders=colluders, seed=seed, draws=draws, mixing=protocol.mixing
    )
    real = protocol.replace(grid=None)
    found = with_noise(real, target, certify(real, target, who, progress))
    return found if protocol.grid is None else _with_noise_on_a_grid(protocol, found.sigma, target, who)


def _with_noise_on_a_grid(protocol: Gossip, sigma: float, target: Target, who: Audience) -> Gossip:
    """With as much more noise than in real numbers as the grid costs: until the target is missed for nobody.

    A loss on the grid is measured by the factor that would cost as much in real numbers, and held to what the target asks of that.
    """
    sets = [()] if who.any_of > 1 else who.sets(symmetric=target.symmetric)

    def excess(sigma: float, members: tuple[int, ...]) -> float:
        """σ that would be needed, over σ: at most 1 if the target is met."""
        noisier = protocol.replace(sigma=max(sigma, protocol.step))
        loss = account(noisier, members) if members else account(noisier, colluders=who.any_of)
        epsilon = np.nan_to_num(np.asarray(loss.epsilon(target.delta)), posinf=np.inf)
        mu = np.where(epsilon > 0, gaussian_mu(epsilon, target.delta), 0.0)
        asked = target.demand((mu / noisier.local_mu) ** 2, members)
        return math.sqrt(asked.value) * noisier.sensitivity / noisier.sigma * HEADROOM

    sigma = max(sigma, protocol.step)
    while True:
        needed = {members: excess(sigma, members) for members in sets}
        worst = max(sets, key=lambda members: needed[members])
        if needed[worst] <= 1:
            return protocol.replace(sigma=sigma)
        # strictly more noise each time: against the worst of them the target was missed until now
        sigma = max(smallest(partial(excess, members=worst), 1.0, sigma * needed[worst], 1e-6), protocol.step)


@calibrations.register
def _first_message(
    protocol: VaryingGossip | RandomizedGossip | ErdosRenyiGossip | PushSum, epsilon: float | None, delta: float
) -> VaryingGossip | RandomizedGossip | ErdosRenyiGossip | PushSum:
    """Somebody's first message is x + ση itself, and no view is worth more than all of them: the noise of local DP."""
    if isinstance(protocol, RandomizedGossip | VaryingGossip) and protocol.grid is not None:
        return _first_message_on_a_grid(protocol, epsilon, delta)
    return protocol.replace(sigma=noise_for(protocol.sensitivity, epsilon, delta))


def _first_message_on_a_grid(
    protocol: RandomizedGossip | VaryingGossip, epsilon: float | None, delta: float
) -> RandomizedGossip | VaryingGossip:
    """The same on a grid, where rounding moves values further apart: searched, and accounted for again."""
    aim = checked_target(epsilon, delta)[0]
    guess = noise_for(protocol.distance * protocol.step, epsilon, delta)

    def loss(sigma: float) -> float:
        return float(local_dp(protocol.replace(sigma=max(sigma, protocol.step))).worst_epsilon(delta))

    return protocol.replace(sigma=max(smallest(loss, aim, guess, 1e-5), protocol.step))


def with_noise(protocol: Gossip, target: Target, certificate: Certificate) -> Gossip:
    """`protocol` with the σ that the certificate asks for, accounted again where it is tightest."""
    if certificate.demand == 0:
        raise InvalidValue(
            f"no noise is needed for {target.words}: nobody in question learns anything in {protocol.rounds} rounds; "
            "set sigma yourself, or ask for a wider scope"
        )
    sigma = protocol.sensitivity * math.sqrt(certificate.demand * (1 + _HEADROOM))
    if not math.isfinite(sigma):
        raise Unsupported(
            f"no finite noise level meets this for party {certificate.party} against {certificate.observers[:6]}; "
            "allow a larger epsilon or delta"
        )
    calibrated = protocol.replace(sigma=sigma)
    if certificate.examined == 0:  # known without accounting for single sets
        return calibrated
    again = factors(GossipView(calibrated, certificate.observers)).values
    needed = target.demand(again, certificate.observers).value * calibrated.sensitivity**2
    if not needed <= np.nextafter(sigma**2, 0):  # must not happen; never hand out a σ that fails
        raise NetdpError(f"σ = {sigma!r} came out too small by {needed / sigma**2 - 1:.1e}; please report this")
    return calibrated


def worst_energy(
    protocol: GossipDescent,
    observers: Iterable[Iterable[int]] | None = None,
    targets: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> float:
    """The largest Σμ_t² in units of Δ²/σ², over the targets (all by default) and sets of observers (all single ones).

    On a vertex-transitive graph one single observer stands for all, unless targets are named: those are in different places
    as seen from different observers. The value does not depend on σ: masks are relative to it.

    >>> from netdp import graphs
    >>> p = GossipDescent(graphs.hypercube(6), 6, 8, sigma=1.0, step=1.0, masks=100.0)
    >>> round(worst_energy(p) / 6 * 64, 1)                       # in units of the trusted curator's
    1.2
    """
    if observers is None:
        alike = (
            targets is None and isinstance(protocol.graph, Graph) and vertex_transitive(protocol.graph, protocol.mixing)
        )
        if targets is None and not alike and protocol.n > 1:
            return float(worst_energies(protocol, progress).max())
        sets: list[tuple[int, ...]] = [(v,) for v in range(1 if alike else protocol.n)]
    else:
        sets = [observer_set(protocol.graphs[0], group) for group in observers]
        if not sets:
            raise InvalidValue(
                "observers is empty; name sets of them such as [[0], [1, 2]], or None for everybody alone"
            )
    energies = list[float]()
    for done, group in enumerate(sets, start=1):
        energy = loss_energy(protocol, group, targets)
        if not np.isnan(energy).all():
            energies.append(float(np.nanmax(energy)))
        elif observers is not None or protocol.n == 1:
            raise InvalidValue(
                f"all targets are among the observers {group}: nobody is left whose privacy could be at stake"
            )
        if progress is not None:
            progress(done, len(sets))
    return max(energies)


@calibrations.register
def _descent(
    protocol: GossipDescent,
    epsilon: float,
    delta: float,
    *,
    observers: Iterable[Iterable[int]] | None = None,
    energy: float | None = None,
    progress: Progress | None = None,
) -> GossipDescent:
    """`observers`: sets that look together; every single party by default. `energy` spares the work if `worst_energy` is known."""
    if protocol.grid is not None:
        if observers is not None or energy is not None:
            raise Unsupported(
                "GossipDescent on a grid is calibrated to its promise, against any single party; leave observers and energy out"
            )
        return _descent_on_a_grid(protocol, epsilon, delta)
    energy = worst_energy(protocol, observers, progress=progress) if energy is None else positive("energy", energy)
    return protocol.replace(sigma=noise_for(protocol.sensitivity * math.sqrt(energy), epsilon, delta))


def _descent_on_a_grid(protocol: GossipDescent, epsilon: float, delta: float) -> GossipDescent:
    """The least noise, to 0.1 %, with which everybody's noisy gradients keep the target; the grid goes with it."""
    aim, delta = checked_target(epsilon, delta)

    def at(sigma: float) -> GossipDescent:
        made = protocol.replace(sigma=sigma, grid=None, refresh=0.0)
        return made.replace(grid=wire_grid(made), refresh=protocol.refresh)

    def loss(sigma: float) -> float:
        made = at(sigma)
        return float(own_releases(made, made.iterations).epsilon(delta))

    return at(smallest(loss, aim, noise_for(protocol.sensitivity * math.sqrt(protocol.iterations), epsilon, delta)))


@calibrations.register
def _redrawn(protocol: ErdosRenyiDescent, epsilon: float, delta: float, *, colluders: int = 1) -> ErdosRenyiDescent:
    """The smallest σ (within 0.1 %) that meets the target before the graphs are drawn, against any so many parties."""
    together = count("colluders", colluders)
    local = noise_for(protocol.sensitivity * math.sqrt(protocol.iterations), epsilon, delta)
    aim, delta = checked_target(epsilon, delta)

    def loss(sigma: float) -> float:
        return float(redrawn_descent_loss(protocol.replace(sigma=sigma), together).epsilon(delta))

    return protocol.replace(sigma=smallest(loss, aim, 0.7 * local))


KINDS = ("plain", "refreshed", "masked", "masked, refreshed")


def plan_gossip(
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
) -> Plan:
    """The settings of smallest predicted error whose certified loss meets the target, for each kind of gossip.

    scope, observers, coalitions, colluders, seed, draws : as in `calibrate`. σ is rounded up to four digits.
    max_rounds : no more rounds than this. Masks can buy a trusted curator's privacy with rounds; where a graph mixes
        slowly this decides.
    spread : mean squared distance of the values from their mean; by default Δ²/4, the largest that values in an
        interval of length Δ can have.

    >>> from netdp import graphs
    >>> p = plan_gossip(graphs.hypercube(6), epsilon=1.0, delta=1e-6)
    >>> p.best.name, round(p.best.rmse / p.curator_rmse, 1), p.curator_law      # 1.0 times a curator's Gaussian noise
    ('masked', 3.0, 'Laplace')
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
    options: list[Option] = []
    notes: list[str] = []

    def add(kind: str, settings: FoundSettings | None) -> None:
        if settings is None:
            notes.append(
                f"{kind}: not offered, it changes nothing or there is nothing to protect within {max_rounds} rounds"
            )
            return
        certificate = certify(settings.protocol, target, who, progress)
        p = with_noise(settings.protocol, target, certificate)
        p = p.replace(sigma=rounded_up(p.sigma))  # more noise than certified, by at most a part in a thousand
        messages = p.rounds * 2.0 * graph.m / graph.n
        promise = _promise(p, certificate, who)
        extras = {"rounds": p.rounds, "bytes_per_link": 8 * p.rounds, "certificate": named(certificate, graph)}
        options.append(Option(kind, p, promise, errors.of(p, width), messages, extras=extras))

    if "plain" in kinds:
        add("plain", search.plain())
    if "refreshed" in kinds:
        add("refreshed", search.refreshed())
        if search.first_message is not None:
            notes.append("refreshed: fresh noise cannot help against direct neighbours, who see the first message")
    if "masked" in kinds or "masked, refreshed" in kinds:
        settings = search.masked()
        if "masked" in kinds:
            add("masked", settings)
        if "masked, refreshed" in kinds and settings is not None:
            both = search.masked_refreshed(settings.protocol) if colluders == 1 else None
            if colluders > 1:
                notes.append("masked, refreshed: not offered, the bound for any coalition counts the masks only")
            elif both is None:
                notes.append(
                    "masked, refreshed: not searched, there are too many messages to follow fresh noise through quickly"
                )
            elif both.squared_error >= settings.squared_error:
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
    strictest = float(np.nanmin(target.scope.limits(graph))) if isinstance(target.scope, Policy) else target.epsilon
    assert strictest is not None
    (local_law, local_rmse), (curator_law, curator_rmse) = baselines_at(graph.n, strictest, delta, base.sensitivity)
    return Plan(
        tuple(options),
        epsilon=epsilon,
        delta=delta,
        holds=f"holds for {target.words},\nagainst {who.words}",
        local_rmse=local_rmse,
        curator_rmse=curator_rmse,
        local_law=local_law,
        curator_law=curator_law,
        notes=tuple(notes),
        limit=_limit(base, target, who),
        family="gossip",
        graph=graph,
        target=target,
        audience=who,
        colluders=colluders,
        sensitivity=base.sensitivity,
    )


def offer(asked: Asked) -> Plan:
    """What gossip offers in the table of all families."""
    asked.refuse_absent("gossip")
    asked.refuse_vectors("gossip")
    return plan_gossip(
        asked.graph, asked.epsilon, asked.delta, colluders=asked.colluders, sensitivity=asked.sensitivity,
        progress=asked.progress,
    )  # fmt: skip


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
    loss = certified_statement(protocol, factor, certificate.claim, certificate.slack, (f"against {who.words}",))
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


# "As good as a curator" for the recommendation: within this factor of its error.
GOOD = 1.5


def _gaussian_curator(plan: Plan) -> float:
    """The error of a curator who adds Gaussian noise, at the plan's target."""
    assert plan.target is not None
    return plan.sensitivity / (plan.target.mu * plan.n)


# The complete graph sends n messages per party and round; above this it is not worth looking at.
_MAX_COMPLETE = 512


@dataclass(frozen=True, eq=False)
class Candidate:
    """One topology with its plan."""

    graph: Graph
    gap: float
    plan: Plan

    @property
    def option(self) -> Option:
        """The best option on it."""
        return self.plan.best

    @property
    def cost(self) -> float:
        """Messages per party, a key agreement with every neighbour counted as one more."""
        return self.option.messages + 2.0 * self.graph.m / self.graph.n

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "graph": self.graph.name,
            "spectral_gap": self.gap,
            "degree": 2.0 * self.graph.m / self.graph.n,
            "over_curator": self.option.rmse / self.plan.curator_rmse,
            **self.option.to_dict(),
            "worst_epsilon": self.plan.worst_epsilon(self.option),
        }


@dataclass(frozen=True, eq=False)
class Advice:
    """Candidates in the order given, the recommended one, and why, in a sentence."""

    candidates: tuple[Candidate, ...]
    recommended: Candidate
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "recommended": self.recommended.graph.name,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        lines = [
            f" {'*' if candidate is self.recommended else ' '} {candidate.graph.name}: error {readable(candidate.option.rmse)}, "
            f"{candidate.option.messages:,.0f} messages per party"
            for candidate in self.candidates
        ]
        return "\n".join([*lines, f"recommended: {self.sentence}"])


def topologies(graph: Graph) -> list[Graph]:
    """The given graph and the usual others on as many parties.

    >>> [g.name for g in topologies(graphs.ring(16))]
    ['ring(16)', 'torus(4, 4)', 'hypercube(4)', 'regular(16, 4)', 'regular(16, 8)', 'complete(16)']
    """
    n = graph.n
    usual = [graph]
    if n >= 3:
        usual.append(graphs.ring(n))
    side = next((s for s in range(math.isqrt(n), 2, -1) if n % s == 0), None)
    if side is not None:
        usual.append(graphs.torus(side, n // side))
    if n & (n - 1) == 0 and n >= 4:
        usual.append(graphs.hypercube(n.bit_length() - 1))
    for degree in (4, 8):
        if degree < n - 1 and n * degree % 2 == 0:
            usual.append(graphs.regular(n, degree, seed=0))
    if n <= _MAX_COMPLETE:
        usual.append(graphs.complete(n))
    different: list[Graph] = []
    for candidate in usual:
        if candidate.is_connected and candidate not in different:
            different.append(candidate)
    return different


def advise(graph: Graph, epsilon: float, delta: float, *, progress: Progress | None = None, **options: Any) -> Advice:
    """Plan the target with masks on several topologies and recommend the one with the fewest messages among the
    accurate ones.

    Accurate: a predicted error within 1.5 times that of a trusted curator with Gaussian noise, which is what gossip adds; if none
    is, within 1.5 times the smallest.
    """
    candidates = []
    for candidate in topologies(graph):
        try:
            planned = plan_gossip(candidate, epsilon, delta, kinds=("masked",), progress=progress, **options)
        except InvalidValue:
            raise
        except NetdpError:
            continue  # too large for one topology need not be too large for another
        candidates.append(Candidate(candidate, spectral_gap(candidate), planned))
    if not candidates:
        raise InvalidValue(f"no topology on {graph.n} parties could be planned; plan the graph itself to see why")
    smallest = min(candidate.option.rmse for candidate in candidates)
    # all noise of gossip is Gaussian: a curator's with that noise is what more rounds can come close to
    gaussian = min(_gaussian_curator(candidate.plan) for candidate in candidates)
    limit = GOOD * max(smallest, gaussian)
    good = [candidate for candidate in candidates if candidate.option.rmse <= limit]
    chosen = min(good, key=lambda candidate: (candidate.cost, candidate.option.rmse))
    ratio, noise = chosen.option.rmse / chosen.plan.curator_rmse, "a curator with Gaussian noise"
    sentence = (
        f"{chosen.graph.name}: {ratio:.2f} times a trusted curator's error at the same privacy, with "
        f"{chosen.option.messages:,.0f} "
        f"messages per party in {chosen.option.protocol.rounds} rounds: the least traffic, key agreements "
        f"included, among the topologies "
        f"{f'within {GOOD} times {noise}' if limit > GOOD * smallest else f'within {GOOD} times the best error'}."
    )
    return Advice(tuple(candidates), chosen, sentence)


CERTIFIED = 256
"""Up to so many parties gossip with more links is planned and certified for every pair; a few seconds for every graph."""

_LEFT = 1e-3


def gossip_rounds(gap: float) -> float:
    """Rounds of plain gossip until what is left of all differences is a thousandth: (1 − gap)^rounds ≤ 1/1000.

    >>> gossip_rounds(0.5), gossip_rounds(1.0), gossip_rounds(0.0)
    (10, 1, inf)
    """
    if gap <= 0:
        return math.inf
    return 1 if gap >= 1 - _LEFT else math.ceil(math.log(_LEFT) / math.log1p(-gap))


def gossiped(sought: Sought, options: Mapping[str, Any]) -> Linking:
    """Rounds and error of gossip on a graph with links."""
    given = {"colluders": sought.colluders, "sensitivity": sought.sensitivity, **options}

    def cost(graph: Graph) -> LinkCost:
        degree = 2 * graph.m / graph.n
        graph.require_connected("gossip")
        if graph.n <= CERTIFIED:
            best = plan_gossip(graph, sought.epsilon, sought.delta, kinds=("masked",), **given).best
            return LinkCost(best.protocol.rounds, best.protocol.rounds * degree, best.rmse)
        rounds = int(gossip_rounds(spectral_gap(graph, given.get("mixing", "metropolis"))))
        return LinkCost(rounds, rounds * degree)

    note = (
        "gossip: rounds and error of the best masked gossip, certified"
        if sought.graph.n <= CERTIFIED
        else f"gossip: rounds until plain gossip leaves a thousandth of all differences, from the spectral gap (more than "
        f"{CERTIFIED} parties)"
    )
    return Linking(cost, (note, DISTANCES) if str(options.get("scope", "worst")).startswith("beyond") else (note,))
