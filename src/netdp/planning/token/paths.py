"""The noise of tokens on known paths, and on walks over any graph."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from netdp.accounting import account
from netdp.accounting.token.known_path import path_energy_blocks
from netdp.errors import Unsupported
from netdp.graphs.symmetry import vertex_transitive
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.privacy import Observers
from netdp.protocols import GraphWalkSum, PathSum, RingSum
from netdp.views import observer_set

from .calibrate import smallest

_MOST = 64  # observers that are looked at one by one on a graph


@calibrations.register
def _known_path(protocol: RingSum | PathSum, epsilon: float, delta: float) -> RingSum | PathSum:
    """The worst pair of all decides; μ is proportional to 1/σ."""
    worst = math.sqrt(max(float(np.nanmax(rows)) for _, rows in path_energy_blocks(protocol)))
    if not math.isfinite(worst):
        raise Unsupported("without closing noise the last users have no protection at all; set closing=True")
    return protocol.replace(sigma=noise_for(protocol.sigma * worst, epsilon, delta))


@calibrations.register
def _graph_walk(
    protocol: GraphWalkSum, epsilon: float, delta: float, *, observers: Iterable[int | str] | int | str | None = None
) -> GraphWalkSum:
    """Against every single user (one stands for all on rings, tori, hypercubes, complete graphs), or each of `observers`."""
    epsilon, delta = checked_target(epsilon, delta)
    if observers is not None:
        who = observer_set(protocol.graph, observers)
    elif vertex_transitive(protocol.graph):
        who = (0,)
    elif protocol.n <= _MOST:
        who = tuple(range(protocol.n))
    else:
        raise Unsupported(
            f"{protocol.n} observers one by one take too long; name some, observers=[…], and the result holds for those only"
        )

    def worst(sigma: float) -> float:
        one = protocol.replace(sigma=sigma)
        return max(account(one, Observers((v,))).worst_epsilon(delta) for v in who)

    guess = noise_for(protocol.sensitivity * math.sqrt(protocol.steps * protocol.tokens) / protocol.n, epsilon, delta)
    return protocol.replace(sigma=smallest(worst, epsilon, guess))
