"""The protocols that run on peers, one file each, under the word that a study calls them by."""

from __future__ import annotations

from .base import Desk, Running, Wish
from .descent import DescentRunning
from .gossip import GossipRunning
from .masked import MaskedRunning
from .randomized import RandomizedRunning
from .ring import RingRunning
from .ring_histogram import RingHistogramRunning
from .shuffle import ShuffleRunning
from .walk import WalkHistogramRunning, WalkSumRunning

_KINDS: tuple[type[Running], ...] = (
    MaskedRunning,
    RingRunning,
    RingHistogramRunning,
    WalkSumRunning,
    WalkHistogramRunning,
    GossipRunning,
    RandomizedRunning,
    ShuffleRunning,
    DescentRunning,
)
RUNNING: dict[str, type[Running]] = {made.kind: made for made in _KINDS}
"""By kind; the first is what a study runs unless it says otherwise."""

KINDS = tuple(RUNNING)

__all__ = ["KINDS", "RUNNING", "Desk", "Running", "Wish"]
