"""What happens: each protocol as a frozen value that states everything that affects privacy, and nothing else."""

from .gossip import Gossip, response

__all__ = ["Gossip", "response"]
