"""From a privacy target to a study: the noise that keeps the promise, and the promise itself.

`promise_of` is the one place where the loss of a study is computed; planning only searches for the least noise, in
numbers of four digits, with which it meets the target, so a planned study keeps its promise by construction, and
`Study.check_promise` computes the same again from what the file states.

**Who may collude.** Of a masked sum all coalitions of one size learn the same. Otherwise every coalition is looked at,
and δ(ε) of the promise is the largest over them: a maximum of convex curves is convex, so chords between computed points
bound it.

**What a ring promises.** By default its noise is distributed: every party adds a share σ/√n, the first and (before the
release) the last one σ. A single party sees the token once and the answer: a sum over those before it, which holds the
first one's σ, and a sum over those after it, which holds the closing σ. Two neighbours of a party that collude see what
it added, with its own share σ/√n only: to plan for two colluders multiplies the noise by about √n. A masked sum does not
have that weakness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, parse
from netdp.graphs.spectrum import spectral_gap
from netdp.numerics.checks import whole
from netdp.numerics.rounding import rounded_up
from netdp.planning.calibrate import calibrate
from netdp.planning.table import noise_for
from netdp.privacy import GaussianCurve, Guarantee, Observers, ProfileCurve, SharedCurve, weakest
from netdp.protocols import Gossip, MaskedSum, Protocol, RingSum
from netdp.utility import expected_error

from ..ledger.losses import accounted
from ..model import Misfit
from .sections import Privacy, is_fixed
from .task import Task

if TYPE_CHECKING:
    from .study import Study

KINDS = ("masked-sum", "ring-sum", "gossip")
_MOST_COALITIONS = 2000
_POINTS = 200
_DIGITS = 4


# ── the promise ───────────────────────────────────────────────────────────────────────────────────────────────────────


def promise(study: Study, colluders: int) -> Guarantee:
    """What any so many parties of a study learn together about any other, over all attempts."""
    loss = promise_of(study.protocol(), colluders)
    return replace(loss, assumptions=(*loss.assumptions, study.task.admitted))


def promise_of(protocol: Protocol, colluders: int) -> Guarantee:
    """What any so many parties learn together about any other, at most: one curve for everybody."""
    whole("colluders", colluders, 1)
    if isinstance(protocol, MaskedSum):
        if protocol.mask_graph is not None:
            raise Unsupported("a study shares pads between all pairs; on another mask graph coalitions differ")
        losses = [accounted(protocol, tuple(range(colluders)))]
    else:
        losses = [accounted(protocol, members) for members in coalitions(protocol.n, colluders)]
    who = "single party" if colluders == 1 else f"{colluders} parties together"
    return replace(
        losses[0],
        curve=_largest(losses, protocol.n),
        claim=weakest(*(loss.claim for loss in losses)),
        assumptions=tuple(dict.fromkeys(line for loss in losses for line in loss.assumptions)),
        observers=Observers(roles=(f"any {who}",)),
        factor=None,
        slack=max(loss.slack for loss in losses),
    )


def coalitions(n: int, size: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many of n parties; refuses where they are too many to look at each."""
    if (number := math.comb(n, size)) > _MOST_COALITIONS:
        raise Unsupported(
            f"there are {number:,} coalitions of {size} among {n} parties, and what they learn differs; at most "
            f"{_MOST_COALITIONS:,} are looked at. Use masked-sum, where all of one size learn the same, or fewer colluders"
        )
    yield from combinations(range(n), size)


def _largest(losses: Sequence[Guarantee], n: int) -> Any:
    """The largest loss over coalitions and targets, the same for everybody."""
    curve = losses[0].curve
    if len(losses) == 1 and isinstance(curve, SharedCurve):
        return SharedCurve(curve.curves, np.full(n, curve.which[-1]))
    if all(isinstance(loss.curve, GaussianCurve) for loss in losses):
        return GaussianCurve(np.full(n, max(float(np.nanmax(loss.mu)) for loss in losses)))
    asked = 10.0 ** -np.arange(1.0, 16.0)
    ends = [_worst(losses, delta) for delta in asked]
    top = max([end for end in ends if math.isfinite(end)], default=1.0)
    points = np.unique(np.concatenate([np.linspace(0.0, top, _POINTS), [end for end in ends if math.isfinite(end)]]))
    deltas = np.zeros(len(points))
    for loss in losses:
        found = np.stack([np.asarray(loss.delta(point), dtype=np.float64) for point in points])
        deltas = np.maximum(deltas, np.nanmax(found.reshape(len(points), -1), axis=1))
    return SharedCurve(ProfileCurve(points, np.minimum.accumulate(deltas)), np.zeros(n, dtype=np.int64))


def _worst(losses: Sequence[Guarantee], delta: float) -> float:
    return max(loss.worst_epsilon(delta) for loss in losses)


def worst_epsilon(protocol: Protocol, colluders: int, delta: float) -> float:
    """ε of the promise at one δ."""
    return worst_coalition(protocol, colluders, delta)[0]


def worst_coalition(protocol: Protocol, colluders: int, delta: float) -> tuple[float, tuple[int, ...]]:
    """ε of the promise at one δ, and a coalition that may learn as much."""
    if isinstance(protocol, MaskedSum):
        loss = promise_of(protocol, colluders).require_certified()
        return loss.worst_epsilon(delta), tuple(range(colluders))
    return max((_alone(protocol, members, delta), members) for members in coalitions(protocol.n, colluders))


def _alone(protocol: Protocol, members: tuple[int, ...], delta: float) -> float:
    return accounted(protocol, members).require_certified().worst_epsilon(delta)


# ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan(
    name: str,
    task: Task,
    names: Sequence[str],
    *,
    graph: str | Graph,
    epsilon: float,
    delta: float,
    colluders: int = 1,
    attempts: int = 1,
    absent: int = 0,
    kind: str = "masked-sum",
    spread: str | None = None,
    timing: dict[str, float] | None = None,
    nonce: str = "",
) -> Study:
    """A draft for these parties whose certified loss meets ε at δ against any `colluders` of them, with the least noise.

    graph : who talks to whom: a text such as "ring:16" or "regular:16,6,seed=1", or a `Graph`, in the order of the names.
        Graphs with chance in them are written out edge by edge.
    spread : masked sums: "flood" (the default) or "average".
    attempts, absent : masked sums: how often a party may publish, and how many parties may be missing
        from an attempt. The noise is chosen so that the promise covers all attempts.
    """
    from .study import Study

    if kind not in KINDS:
        raise InvalidValue(f"unknown protocol {kind!r}; choose one of {', '.join(KINDS)}")
    if spread is not None and kind != "masked-sum":
        raise InvalidValue(f"spread={spread!r} belongs to masked-sum, not to {kind}; leave it out")
    try:  # nonsense is refused before any noise is looked for
        Privacy(epsilon=epsilon, delta=delta, colluders=colluders, attempts=attempts, absent=absent)
    except Misfit as problem:
        raise Misfit(("privacy", *problem.place), problem.problem) from None
    fixed = isinstance(graph, str) and is_fixed(graph)
    made = parse(graph) if isinstance(graph, str) else graph
    if made.n != len(names):
        raise InvalidValue(f"the graph {made.name} has {made.n} nodes, and there are {len(names)} parties")
    edges = [[names[u], names[v]] for u, v in made.edges().tolist()]
    fields: dict[str, Any] = {
        "name": name, "nonce": nonce, "task": task.model_dump(mode="json"),
        "privacy": {"epsilon": epsilon, "delta": delta, "colluders": colluders, "attempts": attempts, "absent": absent},
        "network": {"graph": graph} if fixed else {"edges": edges},
        "timing": timing or {}, "party": [{"name": one} for one in names],
    }  # fmt: skip
    # With noise that is surely drawable, so that everything else is checked before the search starts.
    rough = Study(**fields | {"protocol": _start(kind, spread or "flood", task, made, epsilon, delta)})
    return rough.replace(protocol=_least(rough))


def _start(kind: str, spread: str, task: Task, graph: Graph, epsilon: float, delta: float) -> dict[str, Any]:
    """Settings that can be run, with noise for local DP."""
    sigma = rounded_up(noise_for(task.sensitivity, epsilon, delta), _DIGITS)
    if kind == "masked-sum":
        trial = MaskedSum(
            graph, sigma=sigma, sensitivity=task.sensitivity, dimension=task.dimension, spread=spread,
            unit=task.unit, reach=task.reach,
        )  # fmt: skip
        return {"kind": kind, "sigma": sigma, "grid": min(trial.step, 1.0), "modulus": trial.q, "spread": spread}
    if kind == "ring-sum":
        return {"kind": kind, "sigma": sigma, "grid": _ring_grid(sigma, graph.n, task)}
    found = _gossip(graph, task, epsilon, delta)
    grid = _gossip_grid(found, delta)
    return {
        "kind": kind, "sigma": found.sigma, "grid": grid, "rounds": found.rounds, "refresh": found.refresh,
        "mixing": found.mixing,
    }  # fmt: skip


def _gossip(graph: Graph, task: Task, epsilon: float, delta: float) -> Gossip:
    """Rounds and fresh noise with the smallest predicted error against single parties, in real numbers, of a few choices.

    Fresh noise before every send is what makes rounding harmless; without it local DP is all that could be claimed.
    """
    gap = spectral_gap(graph)
    trials = [
        calibrate(
            Gossip(
                graph, rounds=max(2, math.ceil(mixed / gap)), sigma=1.0, refresh=refresh, sensitivity=task.sensitivity,
                dimension=task.dimension,
            ),
            epsilon,
            delta,
        )
        for mixed in (1.0, 2.0, 4.0)
        for refresh in (0.25, 1.0, 4.0)
    ]  # fmt: skip
    best = min(trials, key=lambda protocol: expected_error(protocol).rmse)
    return best.replace(sigma=rounded_up(best.sigma, _DIGITS))


def _least(study: Study) -> dict[str, Any]:
    """The settings with the least noise of four digits that keeps the promise; grid and modulus follow it."""
    terms = study.privacy

    def stated(sigma: float) -> dict[str, Any]:
        settings = study.settings.model_dump(mode="json") | {"sigma": sigma}
        protocol = study.protocol()
        if isinstance(protocol, MaskedSum):
            follows = protocol.replace(sigma=sigma, grid=None, modulus=None)
            follows = follows.replace(grid=min(follows.step, 1.0))
            settings |= {"grid": follows.step, "modulus": follows.q}
        elif isinstance(protocol, RingSum):
            settings["grid"] = _ring_grid(sigma, study.n, study.task)
        else:
            settings["grid"] = _gossip_grid(protocol.replace(sigma=sigma, grid=None), terms.delta)
        return settings

    def with_noise(sigma: float) -> Protocol:
        fields = {key: value for key, value in stated(sigma).items() if key in ("sigma", "grid", "modulus")}
        return study.protocol().replace(**fields)

    guess = noise_for(study.task.sensitivity, terms.epsilon, terms.delta) * math.sqrt(terms.attempts)
    if study.settings.kind == "masked-sum":
        guess /= math.sqrt(study.smallest_roster - terms.colluders)
    elif study.settings.kind == "gossip":
        guess = study.settings.sigma
    else:  # most coalitions learn less than one of them: the noise that it asks for is where to look
        _, members = worst_coalition(with_noise(guess), terms.colluders, terms.delta)
        guess = least_noise(lambda sigma: _alone(with_noise(sigma), members, terms.delta) <= terms.epsilon, guess)
    found = least_noise(
        lambda sigma: worst_epsilon(with_noise(sigma), terms.colluders, terms.delta) <= terms.epsilon, guess
    )
    return stated(found)


def least_noise(meets: Callable[[float], bool], guess: float) -> float:
    """The least σ of four digits for which `meets` holds, where it holds from some σ on; sought from a guess.

    >>> least_noise(lambda sigma: sigma >= 1.23456, guess=5.0)
    1.235
    """
    high = rounded_up(guess, _DIGITS)
    factor = 1.02
    if meets(high):
        low = _next(high / factor)
        while meets(low):
            high, factor = low, factor**2
            low = _next(low / factor)
    else:
        low = high
        for _ in range(40):
            high = _next(high * factor)
            if meets(high):
                break
            low, factor = high, min(factor**2, 1e3)
        else:
            raise Unsupported("no noise meets this target: somebody sees a value without any; allow fewer colluders")
    while (middle := _next((low + high) / 2)) not in (low, high):
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _next(value: float) -> float:
    return rounded_up(value, _DIGITS)


def _power(value: float) -> float:
    """The largest power of two that is no larger."""
    return math.ldexp(0.5, math.frexp(value)[1])


def _ring_grid(sigma: float, n: int, task: Task) -> float:
    """Fine enough that a share of σ/√n has 16 steps, and rounding adds a thousandth to Δ at most."""
    return min(_power(min(sigma / (16 * math.sqrt(n)), task.sensitivity / (1024 * math.sqrt(task.dimension)))), 1.0)


def _gossip_grid(protocol: Protocol, delta: float) -> float:
    from netdp.accounting.gossip.dithered import wire_grid

    assert isinstance(protocol, Gossip)
    return min(wire_grid(protocol, delta), 1.0)
