"""netdp: private computation over a network without a trusted server.

Parties that trust no server compute together by talking to their neighbours; netdp tells every party, before anything
is sent and with a proof, what each other party can learn about it.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import moved
from .exports import exports

__version__ = "0.1.0"

# Public names and the module each comes from; loaded on first use, so that `import netdp` is quick.
_PUBLIC = {
    "netdp.engines.choice": "engine",
    "netdp.errors": "NetdpError",
    "netdp.graphs": "Graph",
    "netdp.privacy": "Guarantee Observers",
    "netdp.protocols.base": "Protocol",
    "netdp.protocols.accounting": "account pairwise who_learns_most",
    "netdp.protocols.alternatives": "local_dp trusted_curator",
    "netdp.protocols.accuracy": "ExpectedError expected_error limits",
    "netdp.protocols.calibration": "calibrate",
    "netdp.protocols.planning": "Plan plan",
    "netdp.protocols.target": "Policy",
    "netdp.protocols.links": "advise_links",
    "netdp.protocols.simulation": "simulate",
}
_ROOMS = (
    "errors", "engines", "numerics", "graphs", "privacy", "mechanisms", "models", "protocols", "settings", "audit", "learn",
    "peers", "families", "report", "papers", "studio",
)  # fmt: skip

__all__ = [  # pinned by tests/test_public.py
    "Central",
    "CentralDescent",
    "ErdosRenyiDescent",
    "ErdosRenyiGossip",
    "ExpectedError",
    "FaultyShuffle",
    "Gossip",
    "GossipDescent",
    "Graph",
    "GraphWalkSum",
    "Guarantee",
    "LinearGaussianView",
    "LinearProtocol",
    "Local",
    "LocalDescent",
    "MaskedDescent",
    "MaskedSum",
    "NetdpError",
    "Observers",
    "PathSum",
    "Plan",
    "Policy",
    "Protocol",
    "PushSum",
    "RandomizedGossip",
    "RelayedShuffle",
    "RingDescent",
    "RingHistogram",
    "RingSum",
    "SecretRingSum",
    "Shuffle",
    "TreeSum",
    "VaryingGossip",
    "WalkDescent",
    "WalkHistogram",
    "WalkSum",
    "account",
    "advise_links",
    "calibrate",
    "engine",
    "expected_error",
    "graphs",
    "limits",
    "local_dp",
    "pairwise",
    "plan",
    "simulate",
    "trusted_curator",
    "who_learns_most",
]

if TYPE_CHECKING:
    from netdp.engines.choice import engine
    from netdp.errors import NetdpError
    from netdp.families.baselines.protocol import Central, CentralDescent, Local, LocalDescent
    from netdp.families.gossip.descent import ErdosRenyiDescent, GossipDescent
    from netdp.families.gossip.protocol import Gossip, RandomizedGossip
    from netdp.families.gossip.varying import ErdosRenyiGossip, PushSum, VaryingGossip
    from netdp.families.linear.protocol import LinearGaussianView, LinearProtocol
    from netdp.families.linear.tree import TreeSum
    from netdp.families.masked.descent import MaskedDescent
    from netdp.families.masked.protocol import MaskedSum
    from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
    from netdp.families.token.path import PathSum
    from netdp.families.token.ring import RingDescent, RingHistogram, RingSum, SecretRingSum
    from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
    from netdp.graphs import Graph
    from netdp.privacy import Guarantee, Observers
    from netdp.protocols.accounting import account, pairwise, who_learns_most
    from netdp.protocols.accuracy import ExpectedError, expected_error, limits
    from netdp.protocols.alternatives import local_dp, trusted_curator
    from netdp.protocols.base import Protocol
    from netdp.protocols.calibration import calibrate
    from netdp.protocols.links import advise_links
    from netdp.protocols.planning import Plan, plan
    from netdp.protocols.simulation import simulate
    from netdp.protocols.target import Policy

    from . import graphs


def _more() -> dict[str, Any]:
    """Rooms, protocols, and rooms that are gone."""
    from .protocols.family import protocol_modules, protocol_named

    rooms = {room: partial(import_module, f"netdp.{room}") for room in (*_ROOMS, *moved.ROOMS)}
    return {**rooms, **{name: partial(protocol_named, name) for name in protocol_modules()}}


_found, _listed = exports(__name__, _PUBLIC, _more)
__getattr__ = _found


def __dir__() -> list[str]:
    return [name for name in _listed() if name not in moved.ROOMS]


moved.install()
