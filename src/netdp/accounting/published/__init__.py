"""Formulas from papers, computed as printed, each with its known errata: to compare with, never offered as a guarantee."""
