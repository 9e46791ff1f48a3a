"""A compiled walker on a graph: compiled on first use, cached on disk, free of the interpreter lock."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, cache=True)
def walk_on(indptr: Any, indices: Any, holder: int, metropolis: bool, draws: Any, path: Any) -> int:
    """Write where the token goes from `holder`, one step per draw (uniform on [0, 1)), and return where it ends.

    A draw times the degree: the whole part names the neighbour, the rest, uniform again, decides whether a
    Metropolis move to it is taken (probability min(1, d_u/d_w), so P_uw = min(1/d_u, 1/d_w)) or the token stays.

    >>> import numpy as np
    >>> from netdp import graphs
    >>> g, path = graphs.path(3), np.empty(3, dtype=np.int32)
    >>> walk_on(g.indptr, g.indices, 0, True, np.array([0.4, 0.9, 0.9]), path), path.tolist()
    (2, [1, 2, 2])
    """
    for step in range(len(draws)):
        degree = indptr[holder + 1] - indptr[holder]
        place = draws[step] * degree
        choice = min(int(place), degree - 1)
        other = indices[indptr[holder] + choice]
        if not metropolis or (place - choice) * (indptr[other + 1] - indptr[other]) < degree:
            holder = other
        path[step] = holder
    return holder


@njit(nogil=True, cache=True)
def walk_along(indptr: Any, indices: Any, chances: Any, holder: int, draws: Any, path: Any) -> int:
    """The same for any transition matrix in compressed rows: the draw is held against the sums of a row's probabilities.

    >>> import numpy as np
    >>> path = np.empty(3, dtype=np.int32)
    >>> rows = np.array([0, 1, 3]), np.array([1, 0, 1]), np.array([1.0, 0.25, 0.75])
    >>> walk_along(*rows, 0, np.array([0.9, 0.1, 0.3]), path), path.tolist()
    (1, [1, 0, 1])
    """
    for step in range(len(draws)):
        entry, end = indptr[holder], indptr[holder + 1]
        passed = chances[entry]
        while entry < end - 1 and draws[step] >= passed:
            entry += 1
            passed += chances[entry]
        holder = indices[entry]
        path[step] = holder
    return holder
