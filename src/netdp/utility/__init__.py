"""The error of the answer, predicted without running anything: one file per family.

error       `expected_error` and its parts by cause
gossip      gossip on a fixed graph; spectral: for all numbers of rounds at once
varying     gossip that changes from step to step
token       rings, paths and walks
shuffle     network shuffling
masked      sums under one-time pads
baselines   local DP, a trusted curator
"""

from . import baselines, gossip, linear, masked, shuffle, token, varying  # noqa: F401  they enter what they can predict
from .error import ExpectedError, expected_error

__all__ = ["ExpectedError", "expected_error"]
