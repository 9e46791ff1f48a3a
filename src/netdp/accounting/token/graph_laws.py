"""When a walk on a graph comes to u and to the observers: the laws that the bounds on walks are made of.

From u, the *gap* is the time to the next visit of u or an observer. It ends at u (a *return*) or at an observer; from an
observer the walk comes back to u at some later time. By the strong Markov property all that follows a visit to u is
independent of the past, so these laws are all there is to a walk as far as u is concerned. They are found by running the
walk, absorbed, for `horizon` steps. Entries are exact but for rounding, which the factor `grown` covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.numerics.arrays import UNIT, FloatArray


@dataclass(frozen=True, eq=False)
class Laws:
    """All arrays run over steps 0 … horizon.

    returns   P(the gap ends at u after l steps)
    ends      (observers, ·) P(the gap ends at this observer after l steps)
    left      P(the gap is longer than a)
    back      (observers, ·) from this observer, P(u comes after l steps)
    first     from the start of the walk, P(u comes after l steps): 0 means that the walk starts there
    """

    returns: FloatArray
    ends: FloatArray
    left: FloatArray
    back: FloatArray
    first: FloatArray
    grown: float

    @property
    def horizon(self) -> int:
        """How many steps were computed."""
        return len(self.left) - 1

    @property
    def gaps(self) -> FloatArray:
        """P(the gap is l), for l = 0 … horizon, whatever ends it."""
        return np.asarray(self.returns + self.ends.sum(axis=0))


def laws(P: Any, start: FloatArray, target: int, observers: tuple[int, ...], horizon: int) -> Laws:
    """The laws for one target.

    `laws_of_each` has what depends on the observer for every other user in turn.

    >>> from netdp import graphs
    >>> from netdp.graphs.transitions import transition_matrix
    >>> found = laws(transition_matrix(graphs.ring(4)), np.full(4, 0.25), 0, (2,), 4)
    >>> found.returns.tolist(), found.ends.tolist(), found.back[0].tolist()
    ([0.0, 0.0, 0.5, 0.0, 0.0], [[0.0, 0.0, 0.5, 0.0, 0.0]], [0.0, 0.0, 0.5, 0.0, 0.25])
    """
    from .graph_kernels import first_hits, times_to

    n = P.shape[0]
    backwards = P.T.tocsr()
    transposed = backwards.indptr, backwards.indices, backwards.data
    # the first step from u, then absorbed at u and at O
    mark = np.full(n, -1, dtype=np.int64)
    mark[target] = 0
    mark[list(observers)] = 1 + np.arange(len(observers))
    step = np.asarray(P[[target]].toarray())[0]
    hits, left = first_hits(*transposed, step, mark, 1 + len(observers), horizon - 1)
    zero = np.zeros((1 + len(observers), 1))
    hits = np.hstack([zero, hits])
    left = np.concatenate([[1.0], left])
    back = times_to(P.indptr, P.indices, P.data, target, np.array(observers, dtype=np.int64), horizon)
    alone = np.full(n, -1, dtype=np.int64)
    alone[target] = 0
    first, _ = first_hits(*transposed, np.asarray(start, dtype=np.float64), alone, 1, horizon)
    degree = int(max(np.diff(P.indptr).max(), np.diff(backwards.indptr).max()))
    grown = 1.0 + 3.0 * (horizon + 2) * (degree + 2) * UNIT
    return Laws(hits[0], hits[1:], left, back, first[0], grown)


def laws_of_each(P: Any, target: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    """`ends` and `back` of `laws` for every user but the target as the only observer, a row each: the same numbers.

    What they share, the walk backwards and all times to the target, is computed once.
    """
    from .graph_kernels import first_hits, times_to

    n = P.shape[0]
    others = np.delete(np.arange(n, dtype=np.int64), target)
    backwards = P.T.tocsr()
    step = np.asarray(P[[target]].toarray())[0]
    ends = np.zeros((n - 1, horizon + 1))
    for row, observer in enumerate(others.tolist()):
        mark = np.full(n, -1, dtype=np.int64)
        mark[target], mark[observer] = 0, 1
        hits, _ = first_hits(backwards.indptr, backwards.indices, backwards.data, step, mark, 2, horizon - 1)
        ends[row, 1:] = hits[1]
    return ends, times_to(P.indptr, P.indices, P.data, target, others, horizon)
