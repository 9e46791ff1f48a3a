"""The five documents: their formulas as printed, their figures and tables redone, their errata, and figures of our own.

Nothing certified imports this room: formulas enter the table `published` from above.
"""
