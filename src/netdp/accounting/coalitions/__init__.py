"""Guarantees over all coalitions of a size (docs/guarantees.md#any-coalition).

search       every coalition tried, or everybody else at once: for any protocol; `Worst` keeps the largest losses
currents     gossip with masks: a branch and bound that proves its answer
walk_energy  walks on graphs: moments of what a path loses that hold for all coalitions
gossip, token, masked, shuffle, baselines      one bound per protocol, entered in `netdp.accounting.table.coalitions`
"""

from . import baselines, gossip, masked, masked_descent, shuffle, token  # noqa: F401  they enter their bounds in the table
from .search import FIXED, general

__all__ = ["FIXED", "general"]
