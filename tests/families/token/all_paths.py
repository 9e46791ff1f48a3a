"""Every path that a walk may have taken, given what observers see of it: the likelihood ratio by brute force."""

import itertools

import numpy as np

from netdp.families.token.walk import KNOWN_ENDS


def names_seen(protocol, path, observers):
    """{step: user} of all steps whose user the observers know, their own included."""
    ends = KNOWN_ENDS[getattr(protocol, "sender", "known")]
    last = len(path) - 1
    seen = {last: path[last]} if getattr(protocol, "release", "named") == "named" else {}
    for step in np.flatnonzero(np.isin(path, observers)):
        seen[step] = path[step]
        if ends == 2 and step > 0:
            seen[step - 1] = path[step - 1]
        if ends >= 1 and step < last:
            seen[step + 1] = path[step + 1]
    return seen


def possible(protocol, path, observers):
    """All paths that look the same, with their probabilities."""
    seen = names_seen(protocol, path, observers)
    theirs = [user in observers for user in path]
    graph = getattr(protocol, "graph", None)
    chance = protocol.stationary if graph is not None else protocol.chances
    hop = protocol.transition.toarray() if graph is not None else np.tile(chance, (protocol.n, 1))
    options = [
        [seen[step]] if step in seen else [user for user in range(protocol.n) if (user in observers) == theirs[step]]
        for step in range(len(path))
    ]
    for other in itertools.product(*options):
        weight = chance[other[0]] * np.prod([hop[a, b] for a, b in itertools.pairwise(other)])
        if weight > 0:
            yield other, weight


def visits(path, observers, target, limit=None):
    """How often the target contributes in each stretch between two visits of the observers."""
    found, inside, used = [], False, 0
    for user in path:
        if user in observers:
            inside = False
            continue
        if not inside:
            found.append(0)
            inside = True
        if user == target and (limit is None or used < limit):
            found[-1] += 1
            used += 1
    return np.array(found)
