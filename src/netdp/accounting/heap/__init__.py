"""A heap of randomized reports in random order, and one victim's report among them.

clones    the theorem and δ(ε)
counts    the laws of the numbers of reports that hide it
"""
