"""The noise of local DP and of a trusted curator for a target: closed forms."""

from __future__ import annotations

import math

from netdp.protocols import Central, CentralDescent, Local, LocalDescent

from .table import calibrations, noise_for


@calibrations.register
def _local(protocol: Local | LocalDescent, epsilon: float, delta: float) -> Local | LocalDescent:
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma, epsilon, delta))


@calibrations.register
def _central(protocol: Central | CentralDescent, epsilon: float, delta: float) -> Central | CentralDescent:
    return protocol.replace(sigma=noise_for(protocol.local_mu * protocol.sigma / math.sqrt(protocol.n), epsilon, delta))
