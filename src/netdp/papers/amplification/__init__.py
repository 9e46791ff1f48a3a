"""Seed 000, Privacy Amplification by Decentralization: Figures 2a to 2d, Theorems 1 to 3 as tables."""
