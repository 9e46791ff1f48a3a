"""Muffliato (seed 004): its figures and tables redone.

Settings that the text leaves out are facts of the authors' code: α = 2 and σ = 1, so that a loss of 1 is local DP's; T is
Theorem 2's number of rounds for values of variance 1/4; the "Hamilton" weights come out as 1/(1 + max(d_u, d_v)), that is
Metropolis (a loop counts twice in the degrees that they are made of), and not as Table 1's 1/max(d_u, d_v).
"""
