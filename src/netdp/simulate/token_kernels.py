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
