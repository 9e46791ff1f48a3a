"""The two classical ways, accounted, calibrated and their error predicted: everybody publishes, or a trusted curator answers.

All of it is in closed form. Everybody sees all answers, so it does not matter who colludes; the error of the mean is σ²/n
per coordinate for both, by definition of their σ.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy.typing as npt

from netdp.families.baselines.protocol import Central, CentralDescent, Local, LocalDescent
from netdp.models.parties import Landscape
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.values import party_values
from netdp.privacy.guarantee import Guarantee
from netdp.protocols.accuracy import ExpectedError, predictions
from netdp.protocols.alternatives import curator, gaussian_curator, gaussian_local, local
from netdp.protocols.calibration import calibrations, noise_for
from netdp.protocols.coalitions import found_in
from netdp.protocols.risk import Causes, ExcessRisk, _all_alike, influences, known, moved_mean
from netdp.protocols.table import certified, coalitions
from netdp.protocols.views import Transcript, _same, realised


@certified.register
def _account_local(protocol: Local | LocalDescent, observers: tuple[int, ...]) -> Guarantee:
    return gaussian_local(protocol.local_mu)


@certified.register
def _account_central(protocol: Central | CentralDescent, observers: tuple[int, ...]) -> Guarantee:
    return gaussian_curator(protocol.local_mu, protocol.n)


@local.register
def _locally(protocol: Local | LocalDescent | Central | CentralDescent) -> Guarantee:
    return gaussian_local(protocol.local_mu)


@curator.register
def _by_a_curator(protocol: Local | LocalDescent | Central | CentralDescent) -> Guarantee:
    return gaussian_curator(protocol.local_mu, protocol.n)


@coalitions.register
def _alike(protocol: Local | LocalDescent | Central | CentralDescent, colluders: int) -> Guarantee:
    members = tuple(range(colluders))
    loss: Guarantee = certified(protocol, members)
    return dataclasses.replace(loss, found=found_in(loss, members, protocol.n - 1, note="everybody learns the same"))


@calibrations.register
def _local(protocol: Local | LocalDescent, epsilon: float, delta: float) -> Local | LocalDescent:
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma, epsilon, delta))


@calibrations.register
def _central(protocol: Central | CentralDescent, epsilon: float, delta: float) -> Central | CentralDescent:
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma / math.sqrt(protocol.n), epsilon, delta))


@predictions.register
def _mean(protocol: Local | Central, values: npt.ArrayLike | None = None) -> ExpectedError:
    columns = 1 if values is None else party_values(values, protocol.n).shape[1]
    return ExpectedError(noise=protocol.sigma**2 / protocol.n * columns)


@predictions.register
def _mean_of_all(
    protocol: CentralDescent | LocalDescent,
    losses: Any = None,
    *,
    average: str = "last",
    malicious: int = 0,
    shape: str = "convex",
) -> ExcessRisk:
    landscape = known(protocol, losses)
    variance = landscape.dimension * protocol.sigma**2 / protocol.n
    return _all_alike(protocol, landscape, Causes(noise=variance), average, malicious, shape)


@influences.register
def _moved(protocol: CentralDescent | LocalDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    return moved_mean(protocol, liars, losses)


realised.refuse(
    LocalDescent,
    CentralDescent,
    why="nobody sends to anybody in particular and nothing is left to chance; account without transcript",
)


@realised.register
def _nothing_sent(protocol: Local | Central, transcript: Any) -> Local | Central:
    _same(protocol, transcript, Transcript.empty(protocol.n))
    return protocol
