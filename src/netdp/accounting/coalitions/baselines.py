"""Any f parties where everybody learns the same: local DP, and a trusted curator, whose answers everybody sees."""

from __future__ import annotations

import dataclasses

from netdp.accounting.table import certified, coalitions
from netdp.privacy import Guarantee
from netdp.protocols import Central, CentralDescent, Local, LocalDescent

from .search import found_in


@coalitions.register
def _alike(protocol: Local | LocalDescent | Central | CentralDescent, colluders: int) -> Guarantee:
    members = tuple(range(colluders))
    loss: Guarantee = certified(protocol, members)
    return dataclasses.replace(loss, found=found_in(loss, members, protocol.n - 1, note="everybody learns the same"))
