"""Sums under one-time pads.

sums       what a coalition learns from a masked sum: a curator's noisy sum over each part of the honest parties
releases   several noisy sums of whole numbers, together
descent    learning on masked sums: iterations as releases
cuts       the probability that a coalition cuts parties off on a random mask graph
"""

from . import cuts, descent, releases, sums

__all__ = ["cuts", "descent", "releases", "sums"]
