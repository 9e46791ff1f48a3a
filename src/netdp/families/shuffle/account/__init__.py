"""What the curator of network shuffling learns, alone or with users who collude.

shuffling   direct links: a curve per user, single reports, and the classical alternatives
hiding      among whom a report hides, given what is seen of its way
mixing      how far every report's place is from the stationary law of its walk
faults      users who are away, lost reports, changing graphs: given what happened, and before it is known
relay       a server through which every hop passes: cover traffic, or bundles to random neighbours
"""
