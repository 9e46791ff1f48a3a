"""What each single observer of masked gossip would learn if it were told all first messages: a bound for all of them at once.

With S_v = I + κL(G∖v) that is [S_v⁻¹]_uu. One inverse G = (I + κL)⁻¹ serves all observers; striking out v and the masks of its
neighbours is a small correction (Woodbury), and a diagonal costs n·d² for an observer of degree d. All rounding is added. On large
graphs a party is looked at in a part of some hundred parties around it (`told_in_parts`): cutting edges only raises a resistance
(Rayleigh). Proof: docs/proofs/gossip.md#told-everything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import linalg

from netdp.errors import Unsupported
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import UNIT, BoolArray, FloatArray, IntArray
from netdp.numerics.kernels import csr_times_block

# A few dense n × n matrices.
MAX_PARTIES = 6000

_CONDITIONS = (1e6, 1e5, 1e4, 1e3)

_FINE = 1e-3

_COLUMNS_AT_ONCE = 64

# Parties in one part of a large graph, and how many parts there are at most.
_PART, _PARTS = 1000, 80


def told_everything(graph: Graph, masks: float) -> Iterator[FloatArray]:
    """For v = 0, 1, …: upper ends of what v alone, told all first messages, would learn about everybody; nan at v itself.

    >>> from netdp import graphs
    >>> first = next(told_everything(graphs.complete(4), 10.0))
    >>> first.round(3).tolist()                                   # (1 + 2/31)/3: 1/3 is the curator's
    [nan, 0.355, 0.355, 0.355]
    """
    n = graph.n
    if masks == 0 or graph.m == 0:
        for v in range(n):
            everything = np.ones(n)
            everything[v] = np.nan
            yield everything
        return
    if n > MAX_PARTIES:
        raise Unsupported(
            f"what single observers learn at most is computed from dense matrices over {n} parties; it is offered up to "
            f"{MAX_PARTIES}; name the observers of interest"
        )
    degree = float(graph.degrees.max())
    strengths = list(dict.fromkeys(min(masks, (condition - 1.0) / (2.0 * degree)) for condition in _CONDITIONS))
    inverses = dict[float, tuple[FloatArray, float]]()
    for v in range(n):
        values = np.ones(n)
        for kappa in strengths:
            if kappa not in inverses:
                inverses[kappa] = _inverse(graph, kappa)
            diagonal, share = _without(*inverses[kappa], kappa, v, graph.neighbors(v))
            values = np.minimum(values, diagonal)
            if share <= _FINE:
                break
        values[v] = np.nan
        yield values


def _inverse(graph: Graph, kappa: float) -> tuple[FloatArray, float]:
    """(I + κL)⁻¹, and by how much an entry may be wrong."""
    n, degrees = graph.n, graph.degrees.astype(np.float64)
    sources = np.repeat(np.arange(n), graph.degrees)
    matrix = np.zeros((n, n))
    matrix[sources, graph.indices] = -kappa
    matrix[np.diag_indices(n)] = 1.0 + kappa * degrees
    factor = linalg.cholesky(matrix, lower=True, check_finite=False, overwrite_a=True)
    half, _ = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    inverse = np.ascontiguousarray(np.tril(half) + np.tril(half, -1).T)
    ones, worst = np.ones(len(graph.indices)), 0.0
    for first in range(0, n, _COLUMNS_AT_ONCE):
        part = np.ascontiguousarray(inverse[:, first : first + _COLUMNS_AT_ONCE])
        residual = -(
            part + kappa * (degrees[:, None] * part - csr_times_block(graph.indptr, graph.indices, ones, part))
        )
        columns = np.arange(part.shape[1])
        residual[first + columns, columns] += 1.0
        worst = max(worst, float(np.abs(residual).max()))
    degree, largest = float(degrees.max()), float(np.abs(inverse).max())
    return inverse, worst + 4 * UNIT * (degree + 4) * (1 + 2 * kappa * degree) * largest


def _without(
    inverse: FloatArray, wrong: float, kappa: float, v: int, neighbours: npt.NDArray[np.int32]
) -> tuple[FloatArray, float]:
    """The diagonal of S_v⁻¹, upper ends (what it says at v means nothing), and the share c/λ that rounding may add."""
    d, share, column = len(neighbours), 0.0, inverse[:, v]
    error = 5 * wrong + 8 * UNIT
    ratio = column / column[v]
    values: FloatArray = np.diagonal(inverse) - column * ratio + error
    if d:
        rows = inverse[neighbours] - np.outer(column[neighbours], ratio)  # A_Nᵀ
        rows[:, v] = 0.0
        sizes, turned = np.linalg.eigh(np.eye(d) / kappa - rows[:, neighbours])
        smallest = float(sizes[0])
        off = d * error + 16 * d * UNIT / kappa
        if not off <= smallest / 2:
            return np.ones(len(column)), 1.0
        share = off / smallest
        whitened = (turned.T @ rows) / np.sqrt(sizes)[:, None]
        moved = (np.sqrt(d) * error + 8 * d**2 * UNIT * float(np.abs(rows).max())) / np.sqrt(smallest)
        roots = np.sqrt(np.einsum("ij,ij->j", whitened, whitened) * (1 + 8 * d * UNIT)) + moved
        values += roots**2 / (1 - share)
    return np.minimum(values * (1 + 16 * UNIT), 1.0), share


def told_in_parts(graph: Graph, observers: tuple[int, ...], masks: float) -> FloatArray:
    """Upper ends of what the observers, told all first messages, would learn about everybody on a large graph; 1 at themselves.

    >>> from netdp import graphs
    >>> told_in_parts(graphs.complete(4), (0,), 10.0).round(3).tolist()
    [1.0, 0.355, 0.355, 0.355]
    """
    values = np.ones(graph.n)
    degree = float(graph.degrees.max(initial=0))
    if masks == 0 or degree == 0:
        return values
    kappa = min(masks, (_CONDITIONS[0] - 1.0) / (2.0 * degree))
    hidden = np.ones(graph.n, dtype=bool)
    hidden[list(observers)] = False
    waiting = hidden.copy()
    sources = np.repeat(np.arange(graph.n), graph.degrees)
    shared = np.bincount(sources[hidden[graph.indices]], minlength=graph.n)  # edges with a secret mask
    values[hidden] = (1 + 8 * UNIT) / (1.0 + shared[hidden] * kappa / (1.0 + kappa))  # with its neighbours alone
    order = np.argsort(-graph.degrees, kind="stable")
    for number in range(_PARTS):
        left = order[waiting[order]]
        if not len(left):
            break
        start = int(left[0 if number % 2 else -1])  # hubs gather many, and leaves are easily left over
        part = _around(graph, start, hidden, waiting)
        place = np.full(graph.n, -1)
        place[part] = np.arange(len(part))
        inside = (place[sources] >= 0) & (place[graph.indices] >= 0)
        x, y = place[sources[inside]], place[graph.indices[inside]]
        matrix = np.zeros((len(part), len(part)))
        matrix[x, y] = -kappa
        degrees = np.bincount(x, minlength=len(part))
        matrix[np.diag_indices(len(part))] = 1.0 + kappa * degrees
        half, _ = linalg.lapack.dpotri(linalg.cholesky(matrix, lower=True, check_finite=False), lower=True)
        margin = 16 * len(part) * UNIT * (1.0 + 2.0 * kappa * degree)  # of the factorisation, as in `exact`
        values[part] = np.minimum(values[part], np.diagonal(half) * (1 + margin))
        # who has half of its neighbours with it, or several, is well enough off
        waiting[part[degrees >= np.minimum((shared[part] + 1) // 2, 6)]] = False
        waiting[start] = False
    return np.minimum(values, 1.0)


def _around(graph: Graph, start: int, hidden: BoolArray, waiting: BoolArray) -> IntArray:
    """Hidden parties close to `start`, at most `_PART` of them: breadth first, those first that are still waiting for a part."""
    seen, ring, count = ~hidden, [start], 1
    seen[start] = True
    part = [start]
    while ring and count < _PART:
        around = np.unique(np.concatenate([graph.neighbors(v) for v in ring]))
        around = around[~seen[around]]
        around = around[np.argsort(~waiting[around], kind="stable")][: _PART - count]
        seen[around] = True
        ring = around.tolist()
        part += ring
        count = len(part)
    return np.sort(np.asarray(part, dtype=np.int64))
