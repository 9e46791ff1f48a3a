"""Seed 001, the replication report: Figures 1 to 7."""
