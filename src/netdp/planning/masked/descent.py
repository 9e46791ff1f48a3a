"""The least share of noise with which learning under one-time pads meets a target.

As for one sum (`netdp.planning.masked.calibrate`), with T times as many releases: start from what Gaussian noise
would need and go up in small steps, then halve what is too much. With sampling, start from what T sampled Gaussian
releases would need (`netdp.privacy.sampled_gaussian`). What is returned was accounted for and found to meet the target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from netdp.accounting.masked.descent import hidden_among, learned_curve
from netdp.accounting.masked.sums import component_sizes
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import whole
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.privacy.sampled_gaussian import sampled_gaussian_multiplier
from netdp.protocols.masked_descent import MaskedDescent
from netdp.views import observer_set

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
    if coalitions is None:
        number = whole("colluders", 1 if colluders is None else colluders, 1)
        if number >= protocol.n:
            raise InvalidValue(
                f"colluders={number} leaves nobody of {protocol.n} parties whose privacy could be at stake"
            )
        if protocol.sum.mask_graph is not None and not isinstance(protocol.masks, int) and protocol.groups == 1:
            if number > 1:
                raise Unsupported(
                    f"colluders={number}: which {number} parties cut the most off a given mask graph is not searched "
                    "for; name the "
                    'sets, coalitions=[[0, 1], …], or share pads between all pairs, masks="complete"'
                )
            return _fewest(protocol, [(v,) for v in range(protocol.n)]), 0.0
        return hidden_among(protocol, number)
    if colluders is not None:
        raise InvalidValue(f"give colluders or coalitions, not both; got {colluders!r} and {coalitions!r}")
    sets = [observer_set(protocol.graph, members) for members in coalitions]
    if not sets:
        raise InvalidValue("coalitions is empty; give sets such as [[0, 1]]")
    if protocol.sum.mask_graph is None:
        return hidden_among(protocol, max(len(members) for members in sets))
    return _fewest(protocol, sets), 0.0


def _fewest(protocol: MaskedDescent, sets: list[tuple[int, ...]]) -> int:
    sizes = [component_sizes(protocol.sum, members) for members in sets]
    return min(int(size[size > 0].min()) for size in sizes)
