"""Muffliato as printed.

theorems      Theorems 1 and 12, Corollary 1: loss of synchronous gossip; ERRATA and REFERENCES of the paper
collusion     Corollaries 3 to 5, Theorem 9, Proposition 1: coalitions and secret graphs
randomized    Corollary 2: randomized gossip
varying       Equations (6) and (14): gossip on graphs that change
utility       Theorems 2, 3, 7, 8 and Table 1: error and number of rounds
"""
