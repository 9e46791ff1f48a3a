"""Privacy Amplification by Decentralization as printed.

tokens     Theorems 1 to 3: rings and walks, sums and histograms, in both versions of the paper
descent    stochastic gradient descent along a walk, and the calibration in the authors' code
"""

from . import descent, tokens  # noqa: F401  they enter their formulas in the table
