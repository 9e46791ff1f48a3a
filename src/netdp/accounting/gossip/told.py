"""What each single observer of masked gossip would learn if it were told all first messages: a bound for all of them at once.

*Proof: docs/guarantees.md#told-everything.*

An observer v that is told every party's whole first message learns at least what it does learn, and its factor for u is
[S_v⁻¹]_uu with S_v = I + κL(G∖v). One factorisation per observer costs n³; all of them together cost little more than one:

    G = (I + κL)⁻¹                                   once
    A = G − g gᵀ/g_v,  g = G e_v                     the inverse of I + κL with row and column v struck out
    S_v⁻¹ = A + A_N (I/κ − A_NN)⁻¹ A_Nᵀ               the masks of v with its neighbours N are known to it, and gone

(the middle line is the inverse of a principal part, the last Woodbury's). A diagonal costs n·d² for an observer of degree d.

Rounding.  G ≥ 0 and its rows sum to 1, since I + κL is an M-matrix and L1 = 0. So if Ĝ was computed and R = I − (I + κL)Ĝ, then
G − Ĝ = GR is at most ρ = max|R| in every entry; R itself is computed up to 4u(d + 4)(1 + 2κd)·max|Ĝ|. An entry of A is
then wrong by at most e = 5ρ + 8u, for g_i g_j/g_v has all its partial derivatives in [−1, 1] (g_i ≤ g_v). With λ the smallest
eigenvalue of the computed I/κ − A_NN and c = d·e + 16du/κ, its true inverse is at most 1/(1 − c/λ) times the computed one, so
√(aᵀ(I/κ − A_NN)⁻¹a) rises by that root and by ‖a − â‖/√λ. All of it is added. Where c is above λ/2, the factor counts as 1.
λ is small where masks are strong, for v is then nearly the only way out of the network for what flows in it. Smaller masks lose no
less (`exact`): where the share c/λ exceeds 10⁻³, those with 1 + 2κ·(largest degree) ≤ 10⁶, 10⁵, 10⁴, 10³ are tried too, and
for each party the smallest result counts.

**Large graphs.** R = [S⁻¹]_uu is the resistance from u to the ground in a network with conductance κ on every edge and 1 from every
party to the ground; cutting edges away only raises it (Rayleigh). So u may be looked at in any part of the graph that contains
it: `told_in_parts` covers the graph by parts of some hundred parties that are next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import linalg

from netdp.errors import Unsupported
from netdp.graphs import Graph
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
    most = float(graph.degrees.max())
    strengths = list(dict.fromkeys(min(masks, (condition - 1.0) / (2.0 * most)) for condition in _CONDITIONS))
    inverses = dict[float, tuple[FloatArray, float]]()
    for v in range(n):
        values = np.ones(n)
        for kappa in strengths:
            if kappa not in inverses:
                inverses[kappa] = _inverse(graph, kappa)
            found, share = _without(*inverses[kappa], kappa, v, graph.neighbors(v))
            values = np.minimum(values, found)
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
    most, largest = float(degrees.max()), float(np.abs(inverse).max())
    return inverse, worst + 4 * UNIT * (most + 4) * (1 + 2 * kappa * most) * largest


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
    most = float(graph.degrees.max(initial=0))
    if masks == 0 or most == 0:
        return values
    kappa = min(masks, (_CONDITIONS[0] - 1.0) / (2.0 * most))
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
        margin = 16 * len(part) * UNIT * (1.0 + 2.0 * kappa * most)  # of the factorisation, as in `exact`
        values[part] = np.minimum(values[part], np.diagonal(half) * (1 + margin))
        # who has half of its neighbours with it, or several, is well enough off
        waiting[part[degrees >= np.minimum((shared[part] + 1) // 2, 6)]] = False
        waiting[start] = False
    return np.minimum(values, 1.0)


def _around(graph: Graph, start: int, hidden: BoolArray, waiting: BoolArray) -> IntArray:
    """Hidden parties close to `start`, at most `_PART` of them: breadth first, those first that are still waiting for a part."""
    seen, ring, count = ~hidden, [start], 1
    seen[start] = True
    found = [start]
    while ring and count < _PART:
        around = np.unique(np.concatenate([graph.neighbors(v) for v in ring]))
        around = around[~seen[around]]
        around = around[np.argsort(~waiting[around], kind="stable")][: _PART - count]
        seen[around] = True
        ring = around.tolist()
        found += ring
        count = len(found)
    return np.sort(np.asarray(found, dtype=np.int64))
