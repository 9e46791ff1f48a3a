"""What happens: each protocol as a frozen value that states everything that affects privacy, and nothing else."""

from .base import Protocol
from .baselines import Central, CentralDescent, Local, LocalDescent
from .descent import GossipDescent, GossipRounds
from .gossip import Gossip, response
from .masked import MaskedSum
from .path import PathSum
from .randomized import RandomizedGossip
from .ring import RingHistogram, RingSum
from .shuffle import Shuffle
from .table import Table
from .varying import ErdosRenyiGossip, VaryingGossip
from .walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum

__all__ = [
    "Central",
    "CentralDescent",
    "ErdosRenyiGossip",
    "Gossip",
    "GossipDescent",
    "GossipRounds",
    "GraphWalkSum",
    "Local",
    "LocalDescent",
    "MaskedSum",
    "PathSum",
    "Protocol",
    "RandomizedGossip",
    "RingHistogram",
    "RingSum",
    "Shuffle",
    "Table",
    "VaryingGossip",
    "WalkDescent",
    "WalkHistogram",
    "WalkSum",
    "response",
]
