"""Which accountant handles which protocol: modules enter theirs here, `account` and `pairwise` look here.

An accountant takes the protocol and the observers and returns a `Guarantee` with one entry per party (nan at the observers),
or with a single curve that holds for every party outside them. Its keyword arguments are the options that `account` takes
for that protocol; one called `progress` is told how far the work is.
"""

from __future__ import annotations

from netdp.protocols import Table

certified = Table("the certified loss", "has no certified accountant")
"""Proved or exact: claims exact, upper, or estimate where it says so."""

published = Table("the published loss", "has no published formula; ask for method='certified'")
"""The formula of a paper, as printed."""

certified_pairs = Table("the certified loss of all pairs", "is accounted for observer by observer")
"""All pairs at once, where that is faster than one observer after the other."""

published_pairs = Table("the published loss of all pairs", "is accounted for observer by observer")

coalitions = Table("the certified loss against any coalition", "is accounted for coalition by coalition")
"""(protocol, f) → a guarantee that holds against every f parties; where there is none, all coalitions are tried."""
