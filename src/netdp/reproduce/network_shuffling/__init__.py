"""Seed 003, Network Shuffling: Tables 1, 3 and 4 and Figures 4 to 9, one file each, and what a few random links buy.

`curves` computes published and certified curves for any graph; the files of the figures choose the paper's graphs and judge.
"""
