"""What observers of a token learn.

path            paths that are public: the exact loss, with Gaussian or Laplace noise
ring            rings: histograms, learning, a secret order in every round
walk            secret paths on the complete graph: sums, histograms, learning
openings        walks whose observers know the ends of stretches by name
graph_walk      walks on any graph; energy: the energy of a path, stretch by stretch
grid            rings and walks that add whole numbers
events          one step or block of a path; how a walk is cut; composing many small events
rdp             Rényi divergences of walks, nothing left to δ
weights         walks that draw some users more often
alternatives    the same noise under local DP and with a trusted curator
"""
