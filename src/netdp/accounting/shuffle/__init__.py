"""What the curator of network shuffling learns, alone or with users who collude.

shuffling                   the theorem
separation                  how far a report's position still depends on its origin
baselines                   local DP and a trusted shuffler
"""

from . import baselines, shuffling  # noqa: F401  they enter their accountants in the table
