"""Formulas from papers, as printed unless they say otherwise, each with its errata: to compare with, never a guarantee."""
