"""Sums under one-time pads.

sums       what a coalition learns from a masked sum: a curator's noisy sum over each part of the honest parties
releases   several noisy sums of whole numbers, together
cuts       the probability that a coalition cuts parties off on a random mask graph
"""

from . import cuts, releases, sums

__all__ = ["cuts", "releases", "sums"]
