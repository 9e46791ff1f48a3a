"""The noise of learning by gossip for a target: certified against every single observer, or against named ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.privacy import gaussian_mu
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent
from netdp.views import observer_set

from .iteration import loss_energy
from .symmetry import vertex_transitive

Progress = Callable[[int, int], None]


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
        alike = targets is None and isinstance(protocol.graph, Graph) and vertex_transitive(protocol.graph)
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


D = TypeVar("D", GossipDescent, LocalDescent, CentralDescent)


def calibrate_descent(
    protocol: D,
    epsilon: float,
    delta: float,
    observers: Iterable[Iterable[int]] | None = None,
    energy: float | None = None,
) -> D:
    """The same protocol with the smallest σ whose certified loss is at most ε at δ.

    `energy` spares the work if `worst_energy` is known already: it does not depend on σ.
    """
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InvalidValue(f"epsilon must be a finite number > 0, got {epsilon!r}")
    if isinstance(protocol, GossipDescent):
        energy = worst_energy(protocol, observers) if energy is None else energy
    else:
        if observers is not None:
            raise InvalidValue(f"{type(protocol).__name__} loses the same to every observer; leave observers out")
        energy = protocol.iterations * (1.0 if isinstance(protocol, LocalDescent) else 1.0 / protocol.n)
    if not (np.isfinite(energy) and energy > 0):
        raise InvalidValue(f"energy must be a finite number > 0, got {energy!r}; leave it out to have it computed")
    # One part in 10⁹ more than needed covers the rounding of this line.
    sigma = protocol.sensitivity * np.sqrt(energy) / float(gaussian_mu(epsilon, delta)) * (1 + 1e-9)
    return protocol.replace(sigma=float(sigma))
