"""The least share of noise with which a masked sum meets a target.

The loss depends on the size of the smallest component that a coalition leaves (`netdp.accounting.masked.sums`): with
pads between all pairs, n − c − `absent` against any c parties, and so with random mask graphs, for which the probability
that somebody is cut off is taken from δ; all `attempts` count. On a given grid the noise is a whole number of squared steps, and
the certified loss falls with it, so the least one is found by halving, exactly; σ is the largest number that is drawn
as that. The default grid follows σ: it is chosen from where the search starts, and again if the result asks for
another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from netdp.accounting.coalitions.masked import smallest_components
from netdp.accounting.masked.cuts import cut_probability, partners_needed
from netdp.accounting.masked.sums import component_curve, component_sizes, fewest_honest
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import whole
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.protocols import MaskedSum
from netdp.views import observer_set


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


def fewest_together(
    protocol: MaskedSum, colluders: int | None, coalitions: Sequence[Iterable[int | str]] | None
) -> tuple[int, float]:
    """The size of the smallest component that any of the coalitions leaves, and the probability that it is smaller."""
    if coalitions is not None:
        if colluders is not None:
            raise InvalidValue(
                f"give colluders or coalitions, not both; got colluders={colluders!r} and coalitions={coalitions!r}"
            )
        sets = [observer_set(protocol.graph, members) for members in coalitions]
        if not sets:
            raise InvalidValue("coalitions is empty; give sets such as [[0, 1]]")
    else:
        number = whole("colluders", 1 if colluders is None else colluders, 1)
        if number >= protocol.n:
            raise InvalidValue(
                f"colluders={number} leaves nobody of {protocol.n} parties whose privacy could be at stake"
            )
        if protocol.mask_graph is None or isinstance(protocol.masks, int):
            return fewest_honest(protocol, number), cut_probability(protocol, number)
        if number > 1:
            return int(smallest_components(protocol.mask_graph, number)[0].min()), 0.0
        sets = [(v,) for v in range(protocol.n)]
    if protocol.mask_graph is None:
        return fewest_honest(protocol, max(len(members) for members in sets)), 0.0
    sizes = [component_sizes(protocol, members) for members in sets]
    return min(int(size[size > 0].min()) for size in sizes), 0.0


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
