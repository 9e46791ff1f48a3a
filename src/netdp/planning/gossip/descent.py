"""The noise of learning by gossip for a target: certified against every single observer, or against named ones."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from netdp.accounting.gossip.everybody import worst_energies
from netdp.accounting.gossip.iteration import loss_energy
from netdp.accounting.gossip.redrawn_descent import redrawn_descent_loss
from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.graphs.symmetry import vertex_transitive
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import count, positive
from netdp.planning.smallest import smallest
from netdp.planning.table import calibrations, checked_target, noise_for
from netdp.protocols import ErdosRenyiDescent, GossipDescent
from netdp.views import observer_set


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
    found = list[float]()
    for done, group in enumerate(sets, start=1):
        energy = loss_energy(protocol, group, targets)
        if not np.isnan(energy).all():
            found.append(float(np.nanmax(energy)))
        elif observers is not None or protocol.n == 1:
            raise InvalidValue(
                f"all targets are among the observers {group}: nobody is left whose privacy could be at stake"
            )
        if progress is not None:
            progress(done, len(sets))
    return max(found)


@calibrations.register
def _descent(
    protocol: GossipDescent,
    epsilon: float,
    delta: float,
    *,
    observers: Iterable[Iterable[int]] | None = None,
    energy: float | None = None,
) -> GossipDescent:
    """`observers`: sets that look together; every single party by default. `energy` spares the work if `worst_energy` is known."""
    energy = worst_energy(protocol, observers) if energy is None else positive("energy", energy)
    return protocol.replace(sigma=noise_for(protocol.sensitivity * math.sqrt(energy), epsilon, delta))


@calibrations.register
def _redrawn(protocol: ErdosRenyiDescent, epsilon: float, delta: float, *, colluders: int = 1) -> ErdosRenyiDescent:
    """The smallest σ (within 0.1 %) that meets the target before the graphs are drawn, against any so many parties."""
    together = count("colluders", colluders)
    local = noise_for(protocol.sensitivity * math.sqrt(protocol.iterations), epsilon, delta)
    aim, delta = checked_target(epsilon, delta)

    def loss(sigma: float) -> float:
        return float(redrawn_descent_loss(protocol.replace(sigma=sigma), together).epsilon(delta))

    return protocol.replace(sigma=smallest(loss, aim, 0.7 * local))
