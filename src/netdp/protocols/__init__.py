"""What happens: each protocol as a frozen value that states everything that affects privacy, and nothing else."""

from .baselines import Central, CentralDescent, Local, LocalDescent
from .descent import GossipDescent, GossipRounds
from .gossip import Gossip, response
from .randomized import RandomizedGossip
from .varying import ErdosRenyiGossip, VaryingGossip

__all__ = [
    "Central",
    "CentralDescent",
    "ErdosRenyiGossip",
    "Gossip",
    "GossipDescent",
    "GossipRounds",
    "Local",
    "LocalDescent",
    "RandomizedGossip",
    "VaryingGossip",
    "response",
]
