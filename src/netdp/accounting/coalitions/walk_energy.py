"""Any f users on a walk: moments of what a path loses, for all coalitions at once (docs/guarantees.md#any-coalition).

Given its path a token loses at most a Gaussian shift of μ² = E·(Δ/σ)², E the sum over u's visits of 1/L, L the steps
until u or O holds the token next, and 1/(1 + closing) for the release (`netdp.accounting.token.graph_energy`,
#walk-energy). Visits to u are renewals. With R the time of the return to u, τ_o that of the first visit to o, and w_l =
e^{s/l}, for every O of f users

    e^{s/L} = w_R + (w_{τ_O} − w_R)·1{τ_O < R} ≤ w_R + Σ_{o ∈ O} (w_{τ_o} − w_R)·1{τ_o < R},

because w falls with l. So the moment of what happens between two visits that are r steps apart is at most

    K̄_r = P(R = r)·w_r + the f largest of  Σ_l P_u(τ_o = l < R)·P_o(τ_u = r − l)·(w_l − w_r),

whoever O is. All coefficients of the renewal series are ≥ 0 and it grows with each of them, so the moment of a walk
against any coalition is at most what K̄ gives. What would come after the last step computed counts as coming there, as in
`graph_stretch.gap_moments`: sooner visits, and more of them, only add. The sums over l are convolutions, by fast Fourier
transform; its error is bounded by a part in 10¹³ of the whole and added.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from netdp.accounting.token.graph_energy import Moments, moments_of, series_coefficient
from netdp.accounting.token.graph_laws import laws, laws_of_each
from netdp.graphs import Graph, Transition
from netdp.graphs.transitions import transition_matrix
from netdp.numerics.arrays import UNIT
from netdp.protocols.walk import stationary

_FOURIER = 1e-13


@functools.lru_cache(maxsize=1024)
def moments_against_any(
    graph: Graph, walk: str | Transition, steps: int, closing: float, target: int, colluders: int
) -> Moments:
    """E[e^{sE}] of one walk about `target`, at most, against any so many others."""
    from scipy.signal import fftconvolve  # slow to load

    P, start = transition_matrix(graph, walk), np.asarray(stationary(graph, walk), dtype=np.float64)
    most = min(steps, 8 * graph.n)
    alone = laws(P, start, target, (), most)
    hit, back = (part * alone.grown for part in laws_of_each(P, target, most))
    together = fftconvolve(hit, back, axes=1)[:, : most + 1]
    missing = (
        np.clip(1.0 - np.cumsum(back, axis=1)[:, ::-1], 0.0, 1.0) + 4 * most * UNIT
    )  # P_o(τ_u > most − l), l = 0 …
    t, last = np.arange(most + 1), steps - 1
    first = alone.first * alone.grown
    rest = max(0.0, 1.0 - float(first[:steps].sum())) + 4 * most * UNIT  # not in the walk, or not in the laws
    never = rest if most >= last else 0.0
    if most < last:
        first[-1] += rest
    returns = alone.returns * alone.grown
    returns[-1] += float(alone.left[-1]) * alone.grown

    def log_moment(s: float) -> float:
        weight = np.exp(np.minimum(s / np.maximum(t, 1.0), 700.0))
        heavy = hit * weight
        size = heavy.sum(axis=1, keepdims=True)
        more = fftconvolve(heavy, back, axes=1)[:, : most + 1] - weight * together + _FOURIER * size
        more[:, -1] += (hit * (weight - weight[-1]) * missing).sum(axis=1)
        more = np.maximum(more, 0.0)
        top = np.sort(more, axis=0)[max(0, len(more) - colluders) :].sum(axis=0)
        kernel = returns * weight + top
        later = np.append(np.cumsum(kernel[::-1])[::-1][1:], 0.0)
        found = series_coefficient([[first, later]], [[kernel]], last) + s / (1.0 + closing)
        return math.inf if not math.isfinite(found) else math.log(math.exp(min(found, 600.0)) + never)

    return moments_of(log_moment)
