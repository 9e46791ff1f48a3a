"""Seed 003, Network Shuffling: Tables 1, 3 and 4 and Figures 4 to 9 redone, with published and certified curves."""
