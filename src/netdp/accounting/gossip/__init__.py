"""What observers of gossip learn.

exact                       gossip on a fixed graph: plain, accelerated, masked, refreshed
dithered                    the same on a grid, as on a wire
krylov, wide, modular       what is seen: in floating point, in long integers, and how many directions, exactly
sequences, chain            gossip that changes from step to step
secret_graph, redrawn       gossip on random graphs that nobody knows, given the degree and before the draw
redrawn_descent             learning on random graphs that nobody knows, another one in every iteration
iteration                   learning by gossip
printed                     the papers' formulas for gossip that changes or stays secret
statements                  claims and assumptions in words
"""

from . import dithered, exact, iteration, printed, redrawn, redrawn_descent, secret_graph, sequences  # noqa: F401  they enter their accountants in the table
