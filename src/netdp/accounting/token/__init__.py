"""What observers of a token learn.

known_path, ring            paths that are public: sums, and histograms on a ring
ring_on_a_grid              a ring that adds whole numbers
ring_descent                learning on a ring
laplace                     Laplace noise instead of Gaussian, on paths and walks
rdp                         Rényi divergences of walks, nothing left to δ
openings, known_histogram   walks whose observers know the ends of stretches by name
walk                        secret paths on the complete graph: sums, histograms, descent
sampled, stretches, events  one step or block of such a path; how a walk is cut; composing many small events
graph_walk                  walks on any graph: sums, histograms, descent
graph_energy, graph_stretch, graph_laws   the energy of a path, stretch by stretch; the laws of visits
secret_ring                 a ring in a new random order every round
baselines                   the same noise under local DP and with a trusted curator
"""

from . import baselines, graph_walk, known_path, ring, ring_descent, secret_ring, walk  # noqa: F401  they enter their accountants in the table
