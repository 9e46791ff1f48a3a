"""What observers of gossip learn.

exact           gossip on a fixed graph: plain, accelerated, masked, refreshed
grid            the same on a grid, as on a wire, and randomized gossip with fresh noise
krylov, rank    what is seen: in floating point and in long integers; how many directions there are, exactly
sequences       gossip that changes from step to step, momentum, one-way links
secret_graphs   gossip on random graphs that nobody knows, given the degrees and before the draw
descent         learning by gossip, on fixed and on secret graphs
bounds          observers who are told all first messages
statements      claims and assumptions in words
"""
