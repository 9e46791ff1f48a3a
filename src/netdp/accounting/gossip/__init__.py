"""What observers of gossip learn.

exact                       gossip on a fixed graph: plain, accelerated, masked, refreshed
dithered                    the same on a grid, as on a wire
krylov, wide, modular       what is seen: in floating point, in long integers, and how many directions, exactly
sequences, chain            gossip that changes from step to step
secret_graph                gossip on a random graph that nobody knows
iteration                   learning by gossip
statements                  claims and assumptions in words
"""

from . import dithered, exact, iteration, secret_graph, sequences  # noqa: F401  they enter their accountants in the table
