"""What happens, and the doors to it: each protocol a frozen value that states all that affects privacy, and nothing else.

base, family, table    what a protocol is; what its family offers; the strict tables from protocols to functions
accounting             `account`, `pairwise`, `who_learns_most`; coalitions: any f parties; alternatives: local DP, a curator
calibration, planning  the least noise for a target, and the best protocol; target: what is asked for; links: a few more links
accuracy, risk         the error of the answer, or of the model, predicted without running anything
simulation, training   one run in this process
views, grid            what observers see; what runs in whole numbers
answers                all that is asked about a protocol, in one value

Protocols themselves live in `netdp.families` and are found here, and in `netdp`, by name.
"""

from functools import partial
from typing import Any

from netdp.exports import exports

from .family import protocol_modules, protocol_named

_DOORS = {
    "netdp.protocols.base": "Protocol",
    "netdp.protocols.table": "Table",
    "netdp.protocols.accounting": "Exposure METHODS account pairwise who_learns_most",
    "netdp.protocols.alternatives": "local_dp trusted_curator",
    "netdp.protocols.accuracy": "ExpectedError Limit expected_error limits",
    "netdp.protocols.risk": "ExcessRisk influence",
    "netdp.protocols.calibration": "calibrate",
    "netdp.protocols.planning": "Option Plan plan",
    "netdp.protocols.target": "Policy",
    "netdp.protocols.links": "LinkAdvice advise_links",
    "netdp.protocols.simulation": "Record Run simulate",
    "netdp.protocols.views": "NoiseTerm Seen Transcript observer_set realised who_looks",
}


def _protocols() -> dict[str, Any]:
    return {name: partial(protocol_named, name) for name in protocol_modules()}


__getattr__, __dir__ = exports(__name__, _DOORS, _protocols, {"Noise": "NoiseTerm"})
