"""`audit`: attack a protocol's guarantees where they matter most, and say what was found.

Looked at are the pair with the largest claimed loss, a random pair, the farthest pair, and a coalition. A learning protocol with
many iterations is audited as a shorter one, with the promise that is made for that (`shortened`). Which attacks are the best ones:
docs/proofs/audit.md#best-attacks. What their scores prove, and what a shorter run cannot show: docs/proofs/audit.md#measured.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from netdp.audit.attack import SIMULATOR, Attack, System, attacks, checks, collect, publicly_drawn, shorter
from netdp.audit.bounds import CONFIDENCE, Measured, measure
from netdp.audit.findings import Audit, Finding
from netdp.audit.noise import noise_checks
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import IntArray, Progress
from netdp.numerics.checks import check_delta, whole
from netdp.privacy.curve import Curve
from netdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from netdp.privacy.observers import Observers, entry
from netdp.privacy.renyi import RenyiCurve
from netdp.protocols.accounting import account, who_learns_most
from netdp.protocols.alternatives import local_dp
from netdp.protocols.base import Protocol
from netdp.protocols.table import published
from netdp.protocols.views import who_looks

_TRIED = 12
"""Parties that are tried as the next member of a coalition."""

_LOOKED_AT = 12
"""Observers that are looked at for the worst pair, where there are too many to look at all: those with most links."""

_ALL = 40

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""No options of `account`."""


@dataclass(frozen=True)
class Pair:
    """Who looks at whom, and why this pair was chosen."""

    name: str
    observers: Observers
    target: int


def pairs_of(
    protocol: Protocol, delta: float, colluders: int, seed: int, options: Mapping[str, Any] = NOTHING
) -> list[Pair]:
    """The pairs of a default audit; `colluders` parties pool what they see in the last one (0 or 1: none)."""
    rng = np.random.default_rng(seed)
    n, graph = protocol.n, protocol.network
    if protocol.roles:
        return _of_a_curator(protocol, delta, colluders, rng)
    hub, victim = _worst(protocol, delta, options)
    pairs = [Pair("worst pair", who_looks(protocol, [hub]), victim)]
    v, u = (int(x) for x in rng.choice(n, size=2, replace=False))
    pairs.append(Pair("random pair", who_looks(protocol, [v]), u))
    if graph is not None:
        far = int(np.argmax(hops_from(graph, [hub])))
        pairs.append(Pair("farthest pair", who_looks(protocol, [hub]), far))
    if 1 < colluders < n:
        members = _coalition(protocol, hub, victim, colluders, delta, rng, options)
        pairs.append(Pair(f"{colluders} colluders", who_looks(protocol, members), victim))
    return pairs


def by_distance(
    protocol: Protocol, observer: int, delta: float, options: Mapping[str, Any] = NOTHING, most: int = 8
) -> list[Pair]:
    """For every distance from one observer the party with the largest claimed loss; up to `most` distances.

    None where distance does not matter, as in a masked sum.
    """
    graph = protocol.network
    if graph is None or protocol.roles:
        return []
    who = who_looks(protocol, [observer])
    hops = hops_from(graph, [observer])
    epsilons = np.nan_to_num(np.asarray(account(protocol, [observer], **options).epsilon(delta)), posinf=1e300)
    alike = np.ptp(np.delete(epsilons, observer)) <= 1e-6 * epsilons.max()
    if alike and not published.handles(protocol):  # the same about everybody, and no formula that says otherwise
        return []
    distances = [int(h) for h in np.unique(hops) if h > 0]
    if len(distances) > most:
        distances = [distances[round(i)] for i in np.linspace(0, len(distances) - 1, most)]
    targets = [max(np.flatnonzero(hops == h).tolist(), key=lambda u: epsilons[u]) for h in distances]
    return [Pair(f"{h} hop{'s' if h > 1 else ''} away", who, int(u)) for h, u in zip(distances, targets, strict=True)]


def hops_from(graph: Graph, sources: Any) -> IntArray:
    """(n,) how many links from the nearest of the sources; −1 where none leads there.

    >>> from netdp import graphs
    >>> hops_from(graphs.ring(6), [0]).tolist()
    [0, 1, 2, 3, 2, 1]
    """
    hops = np.full(graph.n, -1, dtype=np.int64)
    hops[list(sources)] = 0
    queue = deque(int(v) for v in sources)
    while queue:
        v = queue.popleft()
        for u in graph.neighbors(v).tolist():
            if hops[u] < 0:
                hops[u] = hops[v] + 1
                queue.append(u)
    return hops


def _worst(protocol: Protocol, delta: float, options: Mapping[str, Any]) -> tuple[int, int]:
    graph, n = protocol.network, protocol.n
    named = None
    if n > _ALL:
        named = list(range(_LOOKED_AT)) if graph is None else np.argsort(-graph.degrees, kind="stable")[:_LOOKED_AT]
        named = [int(v) for v in named]
    exposure = who_learns_most(protocol, delta, named, **options)
    return exposure.hub, exposure.victim


def _coalition(
    protocol: Protocol,
    hub: int,
    victim: int,
    size: int,
    delta: float,
    rng: np.random.Generator,
    options: Mapping[str, Any],
) -> list[int]:
    """The worst observer, joined by those who add most to what is learned about its victim."""
    members, graph = [hub], protocol.network
    near = [] if graph is None else [int(w) for w in graph.neighbors(victim)]
    while len(members) < size:
        free = [w for w in range(protocol.n) if w not in members and w != victim]
        tried = [w for w in near if w in free][:_TRIED]
        others = [w for w in free if w not in tried]
        tried += [int(w) for w in rng.choice(others, size=min(len(others), max(_TRIED - len(tried), 1)), replace=False)]
        learned = [_epsilon(protocol, [*members, w], victim, delta, options) for w in tried]
        members.append(tried[int(np.argmax(learned))])
    return sorted(members)


def _epsilon(protocol: Protocol, members: list[int], victim: int, delta: float, options: Mapping[str, Any]) -> float:
    return float(np.nan_to_num(np.asarray(account(protocol, members, **options).epsilon(delta))[victim], posinf=1e300))


def _of_a_curator(protocol: Protocol, delta: float, colluders: int, rng: np.random.Generator) -> list[Pair]:
    alone = who_looks(protocol, list(protocol.roles))
    epsilons = np.asarray(account(protocol, list(protocol.roles)).epsilon(delta))
    worst, other = int(np.nanargmax(epsilons)), int(rng.integers(protocol.n))
    pairs = [Pair("worst placed user", alone, worst), Pair("random user", alone, other)]
    if colluders > 1:
        free = [w for w in range(protocol.n) if w != worst]
        joined = sorted(int(w) for w in rng.choice(free, size=min(colluders - 1, len(free) - 1), replace=False))
        who = who_looks(protocol, [*protocol.roles, *joined])
        pairs.append(Pair(f"curator and {len(joined)} users", who, worst))
    return pairs


def shortened(protocol: Protocol) -> Any:
    """The protocol itself, or the same with so few iterations that thousands of runs take seconds.

    >>> from netdp import graphs
    >>> from netdp.protocols import MaskedDescent
    >>> p = MaskedDescent(graphs.ring(8), iterations=200, sigma=1.0, step=0.5)
    >>> shortened(p).iterations, shortened(p.replace(iterations=10)) == p.replace(iterations=10)
    (16, True)
    """
    return shorter(protocol) if shorter.handles(protocol) else protocol


def said(protocol: Any, short: Any) -> str:
    """What a report has to say of it; empty if nothing was shortened.

    >>> from netdp import graphs
    >>> from netdp.protocols import MaskedDescent
    >>> p = MaskedDescent(graphs.ring(8), iterations=200, sigma=1.0, step=0.5)
    >>> said(p, shortened(p))
    'audited with 16 instead of 200 iterations, against what is promised for 16; all else is as stated'
    """
    for name in ("iterations", "steps", "rounds"):
        full, less = getattr(protocol, name, None), getattr(short, name, None)
        if full != less:
            return f"audited with {less:,} instead of {full:,} {name}, against what is promised for {less:,}; all else is as stated"
    return ""


def at_most(protocol: Any, **most: int) -> Any:
    """The protocol, with no more iterations (steps, rounds) than this."""
    ((name, limit),) = most.items()
    return protocol if getattr(protocol, name) <= limit else protocol.replace(**most)


_MARGIN = 0.05
"""Trials are made until the doubt about μ is about this share of what is claimed, if they may be so many."""

_LEAST = 2_000


def audit(
    protocol: Protocol,
    *,
    delta: float = 1e-6,
    colluders: int = 3,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    distances: bool = True,
    system: System = SIMULATOR,
    title: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Attack the worst pair, a random pair, the farthest pair and a coalition, with the strongest attacks there are.

    delta        at which ε is stated and measured
    colluders    how many parties pool what they see in the last row; 1: no such row
    trials       in each world; by default as many as the claim needs to be measured, within limits
    confidence   that no row of a sound system is called refuted, all rows together
    distances    also one pair for every distance from the worst observer, for the picture
    system       what is under audit: a function with the arguments of `netdp.protocols.simulation.execute`
    title        what stands before the description of the protocol in the report

    >>> from netdp.protocols import Gossip
    >>> from netdp import graphs
    >>> found = audit(Gossip(graphs.ring(8), rounds=4, sigma=1.0), colluders=1, distances=False, trials=4_000)
    >>> [row.name for row in found.findings], found.ok
    (['worst pair', 'random pair', 'farthest pair'], True)
    """
    check_delta(delta)
    whole("seed", seed)
    stated, given = drawn(protocol, seed)
    protocol = shortened(stated)
    note = said(stated, protocol)
    if not attacks.handles(protocol):
        attacks(protocol)  # refuses, with the reason
    pairs = pairs_of(protocol, delta, whole("colluders", colluders), seed, given)
    looks = pairs[0].observers.parties
    more = by_distance(protocol, looks[0], delta, given) if distances and looks else []
    measured = _attacked(protocol, pairs, more, delta, trials, confidence, seed, system, given, title, progress)
    own = checks(protocol, pairs[0].target, system, seed) if checks.handles(protocol) else []
    return replace(measured, checks=(*own, *noise_checks(protocol, seed)), notes=(note,) if note else ())


def audit_these(
    protocol: Protocol,
    pairs: Sequence[Pair],
    *,
    delta: float = 1e-6,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    system: System = SIMULATOR,
    title: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Attack these pairs (`look` makes them); the arguments are those of `audit`."""
    protocol, given = drawn(protocol, seed)
    return _attacked(protocol, pairs, (), delta, trials, confidence, seed, system, given, title, progress)


def _attacked(
    protocol: Any,
    pairs: Sequence[Pair],
    more: Sequence[Pair],
    delta: float,
    trials: int | None,
    confidence: float,
    seed: int,
    system: System,
    given: Mapping[str, Any],
    title: str | None,
    progress: Progress | None,
) -> Audit:
    if not 0 < confidence < 1:
        raise InvalidValue(f"confidence must lie between 0 and 1, got {confidence!r}; 0.9999 is usual")
    rows = [*pairs, *more]
    doubt = (1 - confidence) / len({(pair.observers, pair.target) for pair in rows})
    known: dict[Any, Finding] = {}
    findings = []
    for number, pair in enumerate(rows):
        key = (pair.observers, pair.target)
        if key not in known:
            known[key] = audit_pair(
                protocol,
                pair,
                delta=delta,
                trials=trials,
                confidence=1 - doubt,
                seed=seed,
                system=system,
                options=given,
            )
        findings.append(replace(known[key], name=pair.name))
        if progress is not None:
            progress(number + 1, len(rows))
    words = protocol.describe()
    return Audit(
        title=words if title is None else f"{title}: {words}", delta=delta, confidence=confidence, seed=seed,
        findings=tuple(findings[: len(pairs)]), by_distance=tuple(findings[len(pairs) :]), facts={"protocol": protocol.kind},
    )  # fmt: skip


def audit_pair(
    protocol: Protocol,
    pair: Pair,
    *,
    delta: float = 1e-6,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    system: System = SIMULATOR,
    curve: Curve | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Finding:
    """Attack one pair. `curve`: another claim about the target than that of `account`; `options`: those of `account`."""
    who, target = pair.observers, pair.target
    if target in who.parties:
        raise InvalidValue(f"party {target} looks itself; the target must be somebody else")
    members = [*who.roles, *who.parties]
    loss = account(protocol, members, **options)
    claim = entry(loss.curve, target) if curve is None else curve
    tried = attacks(protocol, who, target, system, seed)
    if not tried:
        raise Unsupported(f"there is no attack on {type(protocol).__name__} with these settings")
    doubt = (1 - confidence) / len(tried)
    best: tuple[Attack, Measured, Curve] | None = None
    refuted = False
    for number, attack in enumerate(tried):
        promised = claim if attack.studies == 1 else claim.self_compose(attack.studies)
        epsilon = float(promised.epsilon(delta))
        # beside the first attack, which is the strongest if all is well, the others look for what should not be
        count = trials_for(attack, epsilon, delta, doubt) if trials is None else trials
        count = count if not number else min(count, attack.budget)
        scores = collect(attack, count, _seed(seed, pair, number), portable=system is SIMULATOR)
        measured = measure(scores.without, scores.within, delta, 1 - doubt)
        wrong = measured.refutes(promised)
        if best is None or (wrong and not refuted):
            best = attack, measured, promised
        refuted |= wrong
    assert best is not None
    attack, measured, promised = best
    printed = _published(protocol, members, target, attack.studies)
    graph = protocol.network
    return Finding(
        name=pair.name, observers=who, target=target, claim=loss.claim, measured=measured, attack=attack.words, refuted=refuted,
        claimed=float(promised.epsilon(delta)), reading=attack.reading(measured, promised),
        hops=None if graph is None or not who.parties else int(hops_from(graph, who.parties)[target]),
        published=None if printed is None else float(printed.epsilon(delta)),
        published_refuted=printed is not None and _refuted(printed, measured, attack),
        local=_local(protocol, target, delta, attack.studies), resolution=resolution(measured.trials // 2, delta, doubt),
        target_name=None if loss.names is None else loss.names[target],
    )  # fmt: skip


def drawn(protocol: Protocol, seed: int) -> tuple[Any, dict[str, Any]]:
    """The protocol and options of `account`: where random graphs or edges are public, those that were drawn."""
    return publicly_drawn(protocol, seed) if publicly_drawn.handles(protocol) else (protocol, {})


def trials_for(attack: Attack, epsilon: float, delta: float, doubt: float) -> int:
    """So many trials in each world that a claim of this ε can be attained, as far as the attack allows."""
    if not math.isfinite(epsilon) or epsilon <= 0:
        return min(_LEAST, attack.budget)
    wanted = (_width(doubt) / (_MARGIN * float(gaussian_mu(epsilon, delta)))) ** 2
    return int(min(max(wanted, _LEAST), attack.budget))


def resolution(trials: int, delta: float, doubt: float) -> float:
    """The smallest ε that so many trials in each world can tell from nothing."""
    return float(gaussian_epsilon(_width(doubt) / math.sqrt(trials), delta))


def _width(doubt: float) -> float:
    """Half the width of the confidence interval of μ, times the root of the number of trials."""
    from scipy.special import ndtri

    # a guess is right with probability ½ + μ·φ(0)/2, counted in 2·(7/8)·m trials; half of the doubt is for it
    return float(-ndtri(doubt / 2) * math.sqrt(math.pi) * math.sqrt(8 / 7))


def _seed(seed: int, pair: Pair, number: int) -> int:
    parties = (*pair.observers.parties, pair.target, number)
    return int(np.random.SeedSequence([seed, *parties]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _published(protocol: Protocol, members: list[Any], target: int, studies: int) -> Curve | None:
    """What the paper's formula says, where there is one that takes these settings."""
    if not published.handles(protocol):
        return None
    try:
        curve = entry(account(protocol, members, method="published").curve, target)
        return curve if studies == 1 else curve.self_compose(studies)
    except NetdpError:  # the formula does not take these settings
        return None


def _refuted(printed: Curve, measured: Measured, attack: Attack) -> bool:
    """Whether the printed formula is refuted. Scores that are Gaussian show a divergence of αμ²/2 at least."""
    if attack.gaussian and isinstance(printed, RenyiCurve) and printed.rho is not None:
        return bool(measured.mu**2 / 2 > float(printed.rho))
    return measured.refutes(printed)


def _local(protocol: Protocol, target: int, delta: float, studies: int) -> float | None:
    try:
        curve = local_dp(protocol).curve
        one = entry(curve, target) if curve.shape else curve
        return float((one if studies == 1 else one.self_compose(studies)).epsilon(delta))
    except NetdpError:
        return None


def look(protocol: Protocol, observers: Any, target: int, name: str = "this pair") -> Pair:
    """A pair by the names of its members."""
    who: Observers = who_looks(protocol, observers)
    if not 0 <= target < protocol.n:
        raise InvalidValue(f"there is no party {target}; the parties are 0 … {protocol.n - 1}")
    return Pair(name, who, target)
