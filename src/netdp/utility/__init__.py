"""The error of the answer, predicted without running anything: one file per family.

error       `expected_error` and its parts by cause
gossip      gossip on a fixed graph; spectral: for all numbers of rounds at once
varying     gossip that changes from step to step
token       rings, paths and walks
shuffle     network shuffling; faulty_shuffle: with losses, or through a server
masked      sums under one-time pads
baselines   local DP, a trusted curator
influence   how far parties that lie can move a model
limits      what no protocol of messages between neighbours can do
learning    bounds on the excess risk of noisy descent; descent: of every protocol that learns
"""

from . import (  # noqa: F401  they enter what they can predict
    baselines,
    descent,
    faulty_shuffle,
    gossip,
    linear,
    masked,
    shuffle,
    token,
    varying,
)
from .error import ExpectedError, expected_error
from .influence import influence
from .learning import ExcessRisk, Landscape
from .limits import Limit, limits

__all__ = ["ExcessRisk", "ExpectedError", "Landscape", "Limit", "expected_error", "influence", "limits"]
