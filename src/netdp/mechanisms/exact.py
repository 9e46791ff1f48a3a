"""Which randomizer in whole numbers belongs to which on real numbers: docs/proofs/mechanisms.md#finite-precision."""

from __future__ import annotations

from functools import lru_cache

from netdp.errors import Unsupported
from netdp.mechanisms.gaussian import GridGaussian
from netdp.mechanisms.laplace import GridLaplace
from netdp.mechanisms.privunit import GridPrivUnit

from .base import ExactMechanism, Mechanism
from .gaussian import Gaussian
from .laplace import Laplace
from .privunit import PrivUnit


def on_a_grid(mechanism: Mechanism) -> ExactMechanism:
    """The same randomizer in whole numbers: the same domain, no less private, and drawn exactly as stated.

    >>> from netdp.mechanisms import Laplace, RandomizedResponse
    >>> on_a_grid(Laplace.interval(0.0, 1.0, 1.0))
    GridLaplace(sensitivity=1.0, epsilon0=1.0, dimension=1, centre=0.5, steps=1048576)
    >>> on_a_grid(RandomizedResponse(4, 1.0))                   # draws among finitely many reports already
    RandomizedResponse(domain=4, epsilon0=1.0)
    """
    if isinstance(mechanism, ExactMechanism):
        return mechanism
    if isinstance(mechanism, Laplace | Gaussian | PrivUnit):
        return _version(mechanism)
    raise Unsupported(
        f"{type(mechanism).__name__} has no version in whole numbers here; give it report(values, words), readable(reports) "
        "and width (netdp.mechanisms.ExactMechanism), or draw in floating point, for simulation"
    )


@lru_cache(maxsize=64)  # their curves are worth keeping
def _version(mechanism: Laplace | Gaussian | PrivUnit) -> ExactMechanism:
    if isinstance(mechanism, Laplace):
        return GridLaplace.of(mechanism)
    if isinstance(mechanism, Gaussian):
        return GridGaussian.of(mechanism)
    return GridPrivUnit(mechanism.dimension, mechanism.epsilon0)
