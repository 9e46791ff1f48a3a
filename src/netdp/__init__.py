"""netdp: private computation over a network without a trusted server.

Parties that trust no server compute together by talking to their neighbours; netdp tells every party, before anything
is sent and with a proof, what each other party can learn about it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and the module each comes from; loaded on first use, so that `import netdp` is quick.
_PUBLIC = {
    "Central": "netdp.protocols",
    "CentralDescent": "netdp.protocols",
    "ErdosRenyiDescent": "netdp.protocols",
    "ErdosRenyiGossip": "netdp.protocols",
    "ExpectedError": "netdp.utility",
    "FaultyShuffle": "netdp.protocols",
    "Gossip": "netdp.protocols",
    "GossipDescent": "netdp.protocols",
    "Graph": "netdp.graphs",
    "Guarantee": "netdp.privacy",
    "Local": "netdp.protocols",
    "LinearGaussianView": "netdp.views",
    "LinearProtocol": "netdp.views",
    "LocalDescent": "netdp.protocols",
    "MaskedDescent": "netdp.protocols",
    "MaskedSum": "netdp.protocols",
    "NetdpError": "netdp.errors",
    "Observers": "netdp.privacy",
    "PathSum": "netdp.protocols",
    "Plan": "netdp.planning",
    "Protocol": "netdp.protocols",
    "PushSum": "netdp.protocols",
    "RandomizedGossip": "netdp.protocols",
    "RelayedShuffle": "netdp.protocols",
    "VaryingGossip": "netdp.protocols",
    "Policy": "netdp.planning",
    "GraphWalkSum": "netdp.protocols",
    "RingDescent": "netdp.protocols",
    "RingHistogram": "netdp.protocols",
    "RingSum": "netdp.protocols",
    "SecretRingSum": "netdp.protocols",
    "Shuffle": "netdp.protocols",
    "WalkDescent": "netdp.protocols",
    "WalkHistogram": "netdp.protocols",
    "WalkSum": "netdp.protocols",
    "account": "netdp.accounting",
    "advise_links": "netdp.planning",
    "calibrate": "netdp.planning",
    "expected_error": "netdp.utility",
    "limits": "netdp.utility",
    "local_dp": "netdp.accounting",
    "pairwise": "netdp.accounting",
    "plan": "netdp.planning",
    "trusted_curator": "netdp.accounting",
    "who_learns_most": "netdp.accounting",
}
_ROOMS = (
    "errors",
    "engine",
    "numerics",
    "graphs",
    "privacy",
    "mechanisms",
    "models",
    "protocols",
    "views",
    "accounting",
    "utility",
    "planning",
    "simulate",
    "audit",
    "learn",
    "peers",
    "report",
    "reproduce",
    "settings",
    "studio",
)

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
    from netdp.accounting import account, local_dp, pairwise, trusted_curator, who_learns_most
    from netdp.errors import NetdpError
    from netdp.graphs import Graph
    from netdp.planning import Plan, Policy
    from netdp.planning.calibrate import calibrate
    from netdp.planning.gossip.plan import plan
    from netdp.planning.links import advise_links
    from netdp.privacy import Guarantee, Observers
    from netdp.protocols import (
        Central,
        CentralDescent,
        ErdosRenyiDescent,
        ErdosRenyiGossip,
        FaultyShuffle,
        Gossip,
        GossipDescent,
        GraphWalkSum,
        Local,
        LocalDescent,
        MaskedDescent,
        MaskedSum,
        PathSum,
        Protocol,
        PushSum,
        RandomizedGossip,
        RelayedShuffle,
        RingDescent,
        RingHistogram,
        RingSum,
        SecretRingSum,
        Shuffle,
        VaryingGossip,
        WalkDescent,
        WalkHistogram,
        WalkSum,
    )
    from netdp.simulate import simulate
    from netdp.utility import ExpectedError, expected_error, limits
    from netdp.views import LinearGaussianView, LinearProtocol

    from . import engine, graphs


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    elif name in _ROOMS:
        value = import_module(f"netdp.{name}")
    else:
        raise AttributeError(f"module 'netdp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
