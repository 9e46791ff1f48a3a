"""`audit`: attack a protocol's guarantees where they matter most, and say what was found.

Which attacks are the best ones: docs/guarantees.md#best-attacks. What their scores prove: docs/guarantees.md#measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from netdp.accounting import account, local_dp
from netdp.accounting.table import published
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import check_delta, whole
from netdp.privacy import Curve, Observers, RenyiCurve, entry, gaussian_epsilon, gaussian_mu
from netdp.protocols import ErdosRenyiDescent, ErdosRenyiGossip, Protocol, RandomizedGossip
from netdp.simulate import simulate
from netdp.views import who_looks

from .attack import SIMULATOR, Attack, System, collect
from .bounds import CONFIDENCE, Measured, measure
from .findings import Audit, Finding
from .noise import noise_checks
from .pairs import Pair, by_distance, hops_from, pairs_of
from .shortened import said, shortened
from .shuffles import hop_checks
from .table import attacks

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
    system       what is under audit: a function with the arguments of `netdp.simulate.run.execute`
    title        what stands before the description of the protocol in the report

    >>> from netdp import Gossip, graphs
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
    found = _attacked(protocol, pairs, more, delta, trials, confidence, seed, system, given, title, progress)
    checks = [*hop_checks(protocol, pairs[0].target, system, seed), *noise_checks(protocol, seed)]
    return replace(found, checks=tuple(checks), notes=(note,) if note else ())


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
    found = []
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
        found.append(replace(known[key], name=pair.name))
        if progress is not None:
            progress(number + 1, len(rows))
    words = protocol.describe()
    return Audit(
        title=words if title is None else f"{title}: {words}", delta=delta, confidence=confidence, seed=seed,
        findings=tuple(found[: len(pairs)]), by_distance=tuple(found[len(pairs) :]), facts={"protocol": protocol.kind},
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
        told = measure(scores.without, scores.within, delta, 1 - doubt)
        wrong = told.refutes(promised)
        if best is None or (wrong and not refuted):
            best = attack, told, promised
        refuted |= wrong
    assert best is not None
    attack, told, promised = best
    printed = _published(protocol, members, target, attack.studies)
    graph = protocol.network
    return Finding(
        name=pair.name, observers=who, target=target, claim=loss.claim, measured=told, attack=attack.words, refuted=refuted,
        claimed=float(promised.epsilon(delta)), reading=attack.reading(told, promised),
        hops=None if graph is None or not who.parties else int(hops_from(graph, who.parties)[target]),
        published=None if printed is None else float(printed.epsilon(delta)),
        published_refuted=printed is not None and _refuted(printed, told, attack),
        local=_local(protocol, target, delta, attack.studies), resolution=resolution(told.trials // 2, delta, doubt),
        target_name=None if loss.names is None else loss.names[target],
    )  # fmt: skip


def drawn(protocol: Protocol, seed: int) -> tuple[Any, dict[str, Any]]:
    """The protocol and options of `account`: where random graphs or edges are public, those that were drawn."""
    if isinstance(protocol, ErdosRenyiGossip | ErdosRenyiDescent):
        return protocol.draw(seed), {}
    if isinstance(protocol, RandomizedGossip):
        return protocol, {"transcript": simulate(protocol, np.zeros(protocol.n), seed).transcript}
    return protocol, {}


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


def _refuted(printed: Curve, told: Measured, attack: Attack) -> bool:
    """Whether the printed formula is refuted. Scores that are Gaussian show a divergence of αμ²/2 at least."""
    if attack.gaussian and isinstance(printed, RenyiCurve) and printed.rho is not None:
        return bool(told.mu**2 / 2 > float(printed.rho))
    return told.refutes(printed)


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
