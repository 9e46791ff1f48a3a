"""What happens: each protocol as a frozen value that states everything that affects privacy, and nothing else."""

from .base import Protocol
from .baselines import Central, CentralDescent, Local, LocalDescent
from .descent import GossipDescent, GossipRounds
from .faulty_shuffle import FaultPattern, FaultyShuffle
from .gossip import Gossip, response
from .masked import MaskedSum
from .masked_descent import MaskedDescent
from .path import PathSum
from .push_sum import PushSum
from .randomized import RandomizedGossip
from .redrawn_descent import ErdosRenyiDescent
from .relayed_shuffle import RelayedShuffle
from .ring import RingHistogram, RingSum
from .ring_descent import RingDescent
from .secret_ring import SecretRingSum
from .shuffle import Shuffle
from .table import Table
from .varying import ErdosRenyiGossip, VaryingGossip
from .walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum

__all__ = [
    "Central",
    "CentralDescent",
    "ErdosRenyiDescent",
    "ErdosRenyiGossip",
    "FaultPattern",
    "FaultyShuffle",
    "Gossip",
    "GossipDescent",
    "GossipRounds",
    "GraphWalkSum",
    "Local",
    "LocalDescent",
    "MaskedDescent",
    "MaskedSum",
    "PathSum",
    "Protocol",
    "PushSum",
    "RandomizedGossip",
    "RelayedShuffle",
    "RingDescent",
    "RingHistogram",
    "RingSum",
    "SecretRingSum",
    "Shuffle",
    "Table",
    "VaryingGossip",
    "WalkDescent",
    "WalkHistogram",
    "WalkSum",
    "response",
]
