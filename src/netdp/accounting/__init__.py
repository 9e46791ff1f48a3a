"""From a protocol to a guarantee: certified accountants, one folder per family, and the papers' formulas in `published`.

front, table     `account` and `pairwise`; which accountant handles which protocol
exposure         who learns most, by name
baselines        local DP and a trusted curator
gossip/          gossip of every kind, learning by gossip
token/           tokens on known and on secret paths
heap/            a shuffled heap of randomized reports: used by token/ and shuffle/
shuffle/         network shuffling
masked/          sums under one-time pads
coalitions/      any so many parties, whoever they are
published/       one folder or file per paper, errata attached
"""

from . import gossip, linear_gaussian, masked, shuffle, token  # noqa: F401  they enter their accountants in the table
from .baselines import local_dp, trusted_curator
from .exposure import Exposure, who_learns_most
from .front import METHODS, account, pairwise
from .published import amplification, muffliato, network_shuffling  # noqa: F401  they enter the papers' formulas

__all__ = ["METHODS", "Exposure", "account", "local_dp", "pairwise", "trusted_curator", "who_learns_most"]
