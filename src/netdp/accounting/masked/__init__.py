"""Sums under one-time pads.

sums   what a coalition learns from a masked sum: a curator's noisy sum over each part of the honest parties
"""

from . import sums

__all__ = ["sums"]
