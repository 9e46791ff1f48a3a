"""What observers of a token learn.

known_path, ring            paths that are public: sums, and histograms on a ring
ring_on_a_grid              a ring that adds whole numbers
walk                        secret paths on the complete graph: sums, histograms, descent
sampled, stretches, events  one step or block of such a path; how a walk is cut; composing many small events
graph_walk                  a walk on any graph
baselines                   the same noise under local DP and with a trusted curator
"""

from . import baselines, graph_walk, known_path, ring, walk  # noqa: F401  they enter their accountants in the table
