"""What the curator of network shuffling learns, alone or with users who collude.

shuffling                   the theorem, and the front door
crowds                      among whom a report hides, given what is seen of its way
mixing                      how far every report's position is from the stationary law
per_user                    a curve per user
single                      what one item per holder gains
coalition                   users who collude with the curator
separation                  how far a report's position still depends on its origin
baselines                   local DP, a trusted shuffler, a trusted sampler
faults, outages             users who are away, lost reports, changing graphs; before that is known (hiding: their bounds)
relay, bundles              a server through which every hop passes: cover traffic, or bundles to random neighbours
"""

from . import baselines, faults, relay, shuffling  # noqa: F401  they enter their accountants in the table
