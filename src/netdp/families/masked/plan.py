"""How much noise a masked sum, or learning by masked sums, needs for a target, and which way of spreading costs less.

Gaussian noise: the loss depends on the smallest component that a coalition leaves, and falls with the noise, a whole number of
squared grid steps: so the least noise is found by halving, exactly. The default grid follows σ: it is chosen where the search
starts, and again if the result asks for another. What is returned was accounted for and found to meet the target. Both ways of
spreading give the same integers; they differ in rounds and bytes. The error is √(n/(n − c)) times a curator's: colluders know their
own shares of the noise.

Laplace noise: as many shares as honest parties are left make one whole noise, of which ε at δ = 0 is known in closed form. A plan
takes the law with the smaller error and says what the other costs: Laplace for one number, Gaussian for many, or for many
attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.families.masked.account import (
    against_any,
    component_curve,
    component_sizes,
    cut_probability,
    fewest_honest,
    partners_needed,
)
from netdp.families.masked.account_descent import hidden_among, learned_curve
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import SPREADS, MaskedSum
from netdp.families.masked.threshold import Threshold, fair_threshold
from netdp.graphs.convert import as_graph
from netdp.graphs.cuts import smallest_components
from netdp.graphs.graph import Graph
from netdp.graphs.shape import diameter
from netdp.numerics.arrays import UNIT, rounded_up
from netdp.numerics.checks import count, whole
from netdp.privacy.curves import everywhere
from netdp.privacy.observers import Observers
from netdp.privacy.sampled_gaussian import sampled_gaussian_multiplier
from netdp.privacy.wording import readable
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate, calibrations, checked_target, noise_for
from netdp.protocols.grid import NOISE_LAWS
from netdp.protocols.links import LinkCost, Linking, Sought
from netdp.protocols.planning import Asked, Option, Plan, baselines_at
from netdp.protocols.views import observer_set


@calibrations.register
def _masked(
    protocol: MaskedSum,
    epsilon: float,
    delta: float,
    *,
    colluders: int | None = None,
    coalitions: Sequence[Iterable[int | str]] | None = None,
) -> MaskedSum:
    epsilon, delta = checked_target(epsilon, delta)
    honest, missed = fewest_together(protocol, colluders, coalitions)
    if missed and missed >= delta:
        raise _cut_too_often(protocol, 1 if colluders is None else colluders, missed, delta)
    delta -= missed * (1 + 1e-12)
    if protocol.law == "laplace":
        return _laplace(protocol, epsilon, delta, honest)
    start = noise_for(protocol.sensitivity, epsilon, delta) * math.sqrt(protocol.attempts / honest)
    if protocol.grid is not None:
        start = max(start, protocol.grid)
    for _ in range(4):
        step = protocol.replace(sigma=start, modulus=None).step
        found = _on_grid(protocol, step, honest, start, epsilon, delta)
        if protocol.replace(sigma=found, modulus=None).step == step:
            break
        start = found
    while _loss(calibrated := protocol.replace(sigma=found), honest, delta) > epsilon:
        found *= 1 + 1e-3  # σ lies at the border of two grids, each of which asks for the other
    return calibrated


_LITTLE = 1e-5  # of ε: a smaller δ saves less than 2·10⁻⁵ of Laplace noise, and is not used


def _laplace(protocol: MaskedSum, epsilon: float, delta: float, honest: int) -> MaskedSum:
    """The least Laplace noise of which `honest` shares meet the target; they make one whole noise if nothing else is stated."""
    if epsilon == 0:
        raise Unsupported("no Laplace noise meets epsilon = 0; ask for a larger epsilon")
    draft = (
        protocol
        if protocol.honest is not None
        else protocol.replace(sigma=protocol.sensitivity, grid=None, modulus=None, honest=honest)
    )
    draft = draft.replace(grid=protocol.grid, modulus=None)

    def pure(step: float) -> float:
        """σ of the noise with which ε is met at δ = 0, on a grid of this step, by one whole noise."""
        fixed = draft.replace(sigma=max(protocol.sensitivity, step), grid=step)
        scale = Fraction(fixed.attempts) * int(fixed.distance) / Fraction(epsilon)
        return max(laplace_sigma(step, scale, fixed.parts), step / math.sqrt(fixed.parts) * (1 + 4 * UNIT))

    def meets(sigma: float) -> bool:
        return _loss(draft.replace(sigma=sigma), honest, delta) <= epsilon

    sigma = pure(draft.replace(sigma=protocol.sensitivity).step)
    for _ in range(4):
        step = draft.replace(sigma=sigma).step
        found = pure(step)
        if draft.replace(sigma=found).step == step:
            break
        sigma = found
    whole = draft.parts <= honest and draft.attempts == 1 and delta <= _LITTLE * epsilon
    if not (whole and meets(found)):
        found = _bisected(meets, found)
    return protocol.replace(sigma=found, honest=draft.parts)


def _bisected(meets: Callable[[float], bool], start: float) -> float:
    """The least σ that meets a target, within a part in 10⁵, sought from `start`."""
    high, more = start, 1e-3
    while not meets(high):
        high, more = high * (1 + more), 2 * more
        if more > 1e6:
            raise Unsupported("no noise was found that meets the target; give a finer grid, or allow fewer colluders")
    low, less = high, 1e-3
    while meets(low := low / (1 + less)):
        high, less = low, 2 * less
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def laplace_sigma(step: float, scale: Fraction, parts: int) -> float:
    """The σ of a share for which `MaskedSum.rate` is 1/scale or, rounded up to 16 binary digits, just below.

    >>> from netdp import graphs
    >>> sigma = laplace_sigma(2.0**-10, Fraction(1024), parts=11)
    >>> MaskedSum(graphs.ring(16), sigma, grid=2.0**-10, law="laplace", honest=11).rate
    Fraction(1, 1024)
    """
    rounded = Fraction(math.ceil(scale * 2**16), 2**16)
    square = max(2 * rounded**2 - Fraction(1, 6), Fraction(1, 6)) / parts
    sigma = math.sqrt(square) * step
    while Fraction(sigma / step) ** 2 > square:
        sigma = math.nextafter(sigma, 0.0)
    return sigma


def fewest_together(
    protocol: MaskedSum, colluders: int | None, coalitions: Sequence[Iterable[int | str]] | None
) -> tuple[int, float]:
    """The size of the smallest component that any of the coalitions leaves, and the probability that it is smaller."""
    who = _coalitions(protocol, colluders, coalitions)
    if isinstance(who, int):
        if protocol.mask_graph is None or isinstance(protocol.masks, int):
            return fewest_honest(protocol, who), cut_probability(protocol, who)
        if who > 1:
            return int(smallest_components(protocol.mask_graph, who)[0].min()), 0.0
        who = [(v,) for v in range(protocol.n)]
    if protocol.mask_graph is None:
        return fewest_honest(protocol, max(len(members) for members in who)), 0.0
    return _smallest_component(protocol, who), 0.0


def _coalitions(
    protocol: MaskedSum | MaskedDescent, colluders: int | None, coalitions: Sequence[Iterable[int | str]] | None
) -> int | list[tuple[int, ...]]:
    """How many parties collude, whoever they are, or the coalitions that were named."""
    if coalitions is None:
        number = whole("colluders", 1 if colluders is None else colluders, 1)
        if number >= protocol.n:
            raise InvalidValue(
                f"colluders={number} leaves nobody of {protocol.n} parties whose privacy could be at stake"
            )
        return number
    if colluders is not None:
        raise InvalidValue(
            f"give colluders or coalitions, not both; got colluders={colluders!r} and coalitions={coalitions!r}"
        )
    sets = [observer_set(protocol.graph, members) for members in coalitions]
    if not sets:
        raise InvalidValue("coalitions is empty; give sets such as [[0, 1]]")
    return sets


def _smallest_component(protocol: MaskedSum, coalitions: list[tuple[int, ...]]) -> int:
    sizes = [component_sizes(protocol, members) for members in coalitions]
    return min(int(size[size > 0].min()) for size in sizes)


def _cut_too_often(protocol: MaskedSum, colluders: int, missed: float, delta: float) -> Unsupported:
    enough = partners_needed(protocol.n, colluders, delta / 100)
    way_out = 'masks="complete"' if enough is None else f'masks={enough}, or masks="complete"'
    return Unsupported(
        f"{colluders} of {protocol.n} parties cut somebody off a random mask graph of {protocol.masks} partners each with a "
        f"probability of up to {missed:.2g}, more than delta = {delta:g}; give {way_out}"
    )


def _loss(protocol: MaskedSum, honest: int, delta: float) -> float:
    return float(component_curve(protocol, honest, protocol.attempts).epsilon(delta))


def _on_grid(protocol: MaskedSum, step: float, honest: int, start: float, epsilon: float, delta: float) -> float:
    """The σ of the least whole variance that meets the target on this grid."""

    def meets(share: int) -> bool:
        return _loss(protocol.replace(sigma=_sigma(step, share), grid=step, modulus=None), honest, delta) <= epsilon

    high = max(1, math.ceil((start / step) ** 2))
    low = 0
    while not meets(high):  # refused where the grid is too fine for so much noise
        low, high = high, high + max(1, high // 64)
    if not low:  # close below: the start is the ideal of real numbers
        low = high - max(1, high // 64)
        while low and meets(low):
            low, high = low - max(1, low // 64), low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return _sigma(step, high)


def _sigma(step: float, share: int) -> float:
    """The largest σ that is drawn with this variance."""
    root = math.sqrt(share)
    while Fraction(root) ** 2 > share:
        root = math.nextafter(root, 0.0)
    return root * step


_CLOSE = 1e-4  # relative, on σ


@calibrations.register
def _masked_descent(
    protocol: MaskedDescent,
    epsilon: float,
    delta: float,
    *,
    colluders: int | None = None,
    coalitions: Sequence[Iterable[int | str]] | None = None,
) -> MaskedDescent:
    epsilon, delta = checked_target(epsilon, delta)
    honest, missed = _hidden(protocol, colluders, coalitions)
    if missed and missed >= delta:
        raise Unsupported(
            f"the colluders cut somebody off the mask graph with a probability of up to {missed:.2g}, more than "
            f"delta = {delta:g}; "
            'share pads with more partners, masks=…, or with all, masks="complete"'
        )
    delta -= missed * (1 + 1e-12)

    def meets(sigma: float) -> bool:
        tried = protocol.replace(sigma=sigma)
        return float(learned_curve(tried, honest).epsilon(delta)) <= epsilon

    low = _ideal(protocol, epsilon, delta, honest)
    if protocol.grid is not None:
        low = max(low, protocol.grid)
    if meets(low):
        return protocol.replace(sigma=low)
    high, more = low, _CLOSE
    while not meets(high := high * (1 + more)):
        low, more = high, 2 * more
        if more > 1e6:
            raise Unsupported(
                f"no noise was found with which epsilon = {epsilon:g} is met at delta = {delta:g}; give a finer grid"
            )
    while high > low * (1 + _CLOSE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return protocol.replace(sigma=high)


def _ideal(protocol: MaskedDescent, epsilon: float, delta: float, honest: int) -> float:
    """The share of noise that would do without discreteness."""
    if protocol.sampling == 1:
        return noise_for(protocol.sensitivity, epsilon, delta) * math.sqrt(protocol.releases / honest)
    multiplier = sampled_gaussian_multiplier(
        epsilon, delta, protocol.sampling, protocol.releases, replaced=protocol.replaced
    )
    share = multiplier * protocol.clip / math.sqrt(honest)
    rounded = protocol.replace(sigma=max(share, protocol.grid or 0.0))  # whose grid is the one that will be used
    return multiplier * rounded.distance * rounded.sum.step / math.sqrt(honest)


def _hidden(
    protocol: MaskedDescent, colluders: int | None, coalitions: Sequence[Iterable[int | str]] | None
) -> tuple[int, float]:
    who = _coalitions(protocol, colluders, coalitions)
    masks = protocol.sum.mask_graph
    if isinstance(who, int):
        if masks is None or isinstance(protocol.masks, int) or protocol.groups > 1:
            return hidden_among(protocol, who)
        if who > 1:
            raise Unsupported(
                f"colluders={who}: which {who} parties cut the most off a given mask graph is not searched for; name the sets, "
                'coalitions=[[0, 1], …], or share pads between all pairs, masks="complete"'
            )
        who = [(v,) for v in range(protocol.n)]
    if masks is None:
        return hidden_among(protocol, max(len(members) for members in who))
    return _smallest_component(protocol.sum, who), 0.0


def plan_masked(
    graph: Graph,
    epsilon: float,
    delta: float,
    *,
    colluders: int = 1,
    sensitivity: float = 1.0,
    dimension: int = 1,
    attempts: int = 1,
    absent: int = 0,
    masks: str | int = "complete",
    mask_seed: int | None = None,
    grid: float | None = None,
    law: str | None = None,
) -> Plan:
    """The least noise of a `MaskedSum` against any `colluders` parties, all attempts and absences counted, and both ways to spread.

    attempts, absent, masks, grid : as in `MaskedSum`. With a degree as `masks`, coalitions are fixed before the mask graph is
        drawn, and the probability that they cut somebody off is part of δ. Absent parties in one attempt are planned with a
        threshold: the largest that is fair, or else the smallest that is safe.
    law : "gaussian" or "laplace"; by default the one with the smaller error. `option.errors` has both.

    σ is rounded up to four digits, and what is promised is certified for the rounded value.

    >>> from netdp import graphs
    >>> plan = plan_masked(graphs.hypercube(6), epsilon=1.0, delta=1e-6, colluders=16)
    >>> plan.guarantee.worst_epsilon(1e-6) <= 1.0, plan.law, round(plan.best.rmse / plan.curator_rmse / (64 / 48) ** 0.5, 2)
    (True, 'laplace', 1.0)
    >>> again = plan_masked(graphs.hypercube(6), epsilon=1.0, delta=1e-6, colluders=16, attempts=3)
    >>> round(again.best.rmse / plan.best.rmse, 2)
    3.0
    >>> one = plan_masked(graphs.complete(16), epsilon=1.0, delta=1e-6, colluders=3, absent=2)
    >>> one.law, one.threshold, one.fair, one.honest, round(one.times_curator, 2)
    ('laplace', 11, True, 11, 1.21)
    """
    graph = as_graph(graph, "a masked sum")
    epsilon, delta = checked_target(epsilon, delta)
    count("colluders", colluders)
    if not isinstance(masks, str | int):
        raise InvalidValue(
            f'a plan takes masks="complete" or a degree, got {masks!r}; calibrate takes a given mask graph'
        )
    drawn = masks != "complete"
    if drawn and mask_seed is None:
        raise InvalidValue(
            f"masks={masks!r} draws a mask graph: give mask_seed=, a number that nobody could foresee when it was fixed who takes "
            "part, such as one that all of them have tossed together"
        )
    draft = MaskedSum(
        graph, sigma=sensitivity if grid is None else max(sensitivity, grid), masks=masks, sensitivity=sensitivity,
        dimension=dimension, attempts=attempts, absent=absent, grid=grid, mask_seed=mask_seed or 0,
    )  # fmt: skip
    notes = []
    threshold: Threshold | None = None
    if absent and attempts == 1:
        try:
            threshold = fair_threshold(graph.n, colluders, absent)
        except (InvalidValue, Unsupported) as problem:
            notes.append(f"no threshold: {problem}")
        else:
            draft = draft.replace(threshold=threshold.value)
            notes.append(threshold.words(graph.n, colluders, absent))
    found = _by_law(draft, law, epsilon, delta, colluders)
    chosen = min(found, key=lambda name: expected_error(found[name]).rmse)
    errors = {name: expected_error(protocol).rmse for name, protocol in found.items()}
    if len(errors) > 1:
        told = ", ".join(
            f"{name} {readable(error)}" for name, error in sorted(errors.items(), key=lambda item: item[1])
        )
        notes.append(f"error by the law of the noise: {told}")
    role = "any single party" if colluders == 1 else f"any {colluders} parties together"
    if drawn and colluders > 1:
        role += " who were fixed before the mask graph was drawn"
    (local_law, local_rmse), (curator_law, curator_rmse) = baselines_at(graph.n, epsilon, delta, sensitivity, dimension)
    options = []
    for spread in SPREADS:
        try:
            protocol = found[chosen].replace(spread=spread)
            messages = protocol.rounds * 2.0 * graph.m / graph.n
        except Unsupported as problem:
            notes.append(f"average: not offered: {problem}")
            continue
        loss = against_any(protocol, colluders)
        promise = replace(
            loss,
            curve=everywhere(loss.curve, (graph.n,)),
            factor=None,
            observers=Observers(roles=(role,)),
            names=graph.labels,
        )
        sent, error = protocol.link_bytes, expected_error(protocol)
        extras = {
            "rounds": protocol.rounds, "bytes_per_link": sent, "modulus": protocol.q, "grid": protocol.step, "attempts": attempts,
            "law": chosen, "errors": errors, "honest": fewest_honest(protocol, colluders),
            "threshold": None if threshold is None else threshold.value, "fair": None if threshold is None else threshold.fair,
            "times_curator": error.rmse / curator_rmse,
        }  # fmt: skip
        options.append(Option(spread, protocol, promise, error, messages, cost=float(sent), extras=extras))
    return Plan(
        tuple(options),
        epsilon=epsilon,
        delta=delta,
        holds=f"holds for every party, against {role}, whatever gets lost, late or repeated"
        + _allowed(attempts, absent, threshold),
        local_rmse=local_rmse,
        curator_rmse=curator_rmse,
        local_law=local_law,
        curator_law=curator_law,
        notes=tuple(notes),
        family="masked",
        graph=graph,
        sensitivity=sensitivity,
        colluders=colluders,
        absent=absent,
    )


def _by_law(draft: MaskedSum, law: str | None, epsilon: float, delta: float, colluders: int) -> dict[str, MaskedSum]:
    """The least noise of either law that meets the target, σ rounded up to four digits; of those laws for which there is any."""
    if law is not None and law not in NOISE_LAWS:
        raise InvalidValue(
            f"unknown law {law!r}; choose one of {', '.join(NOISE_LAWS)}, or leave it out for the better one"
        )
    honest, missed = fewest_together(draft, colluders, None)
    found: dict[str, MaskedSum] = {}
    refused: NetdpError | None = None
    for name in NOISE_LAWS if law is None else (law,):
        changes: dict[str, Any] = {"law": name}
        if name == "laplace":  # two vectors at an L2 distance of Δ are at most Δ√d apart in L1 norm
            changes |= {
                "honest": honest,
                "sensitivity": draft.sensitivity * math.sqrt(draft.dimension) * (1 + 4 * UNIT),
            }
            if draft.dimension == 1:
                changes["sensitivity"] = draft.sensitivity
        try:
            one = draft.replace(**changes)
            one = one.replace(sigma=rounded_up(calibrate(one, epsilon, delta, colluders=colluders).sigma))
        except NetdpError as problem:
            refused = problem
            continue

        def meets(protocol: MaskedSum) -> bool:
            curve = component_curve(protocol, honest, protocol.attempts)
            return float(curve.epsilon(delta - missed * (1 + 1e-12))) <= epsilon

        while not meets(one):  # the grid follows σ
            one = one.replace(sigma=rounded_up(one.sigma * (1 + 1e-3)))
        found[name] = one
    if not found:
        assert refused is not None
        raise refused
    return found


def offer(asked: Asked) -> Plan:
    """What masked sums offer in the table of all families."""
    return plan_masked(
        asked.graph, asked.epsilon, asked.delta, colluders=asked.colluders, absent=asked.absent,
        sensitivity=asked.sensitivity, dimension=asked.dimension,
    )  # fmt: skip


def _allowed(attempts: int, absent: int, threshold: Threshold | None = None) -> str:
    """What else is covered, for the sentence about what holds."""
    words = [f"in at most {attempts} attempts"] if attempts > 1 else []
    words += [f"in one attempt that any {threshold.value} open"] if threshold is not None else []
    words += [f"with at most {absent} absent"] if absent else []
    return f",\n{', '.join(words)}" if words else ""


def flooded(sought: Sought, options: Mapping[str, Any]) -> Linking:
    """Rounds and error of a masked sum that is flooded through a graph with links.

    Its noise does not depend on who is linked with whom, so it is found once.
    """

    known: list[float] = []
    law, plain = options.get("law"), {name: value for name, value in options.items() if name != "law"}

    def cost(graph: Graph) -> LinkCost:
        graph.require_connected("a flood")
        if not known:
            size = sought.sensitivity
            draft = MaskedSum(graph, sigma=max(size, plain.get("grid") or 0.0), sensitivity=size, **plain)
            found = _by_law(draft, law, sought.epsilon, sought.delta, sought.colluders)
            known.append(min(expected_error(one).rmse for one in found.values()))
        # until everybody holds what all have published: the diameter, or a bound on it on very large graphs
        return LinkCost(diameter(graph).high, 2.0 * graph.m, known[0])

    note = "flood: every number crosses every link once, so links make it faster and everybody sends more"
    return Linking(cost, (note,))
