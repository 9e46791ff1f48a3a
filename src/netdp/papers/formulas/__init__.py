"""The papers' formulas, as printed unless they say otherwise, each with its known errata. None of them is a guarantee.

muffliato           Cyffers, Even, Bellet, Massoulié: Muffliato (NeurIPS 2022)
amplification       Cyffers, Bellet: Privacy Amplification by Decentralization (2021 and AISTATS 2022)
random_walks        Cyffers, Bellet, Upadhyay (ICML 2024); Li, Su, Wang, Long, Su (NeurIPS 2025): walks over graphs
matrix_factorization  Bellet et al. (ICLR 2026): decentralised learning as a matrix mechanism, MAFALDA-SGD
network_shuffling   Liew et al.: Network Shuffling (SIGMOD 2022)
"""
