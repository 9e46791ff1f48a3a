"""Decentralised learning as a matrix mechanism, as published (Bellet, Cyffers, Frey, Gaudel, Lerévérend, Taïani, ICLR 2026).

All gradients of a run stand in G, all noises of variance σ²Δ² in Z, one row per iteration and party. What an attacker sees is
A·G + B·Z; if A = B·C, the theorem on generalised sensitivity says that the run is 1/σ-Gaussian DP once C is scaled so that

    sens = max ‖C(G − G′)‖ in the seminorm of B⁺B                    over neighbouring G, G′

is 1, "if A is in column echelon form", which is to cover adaptive gradients. Two uses:

**What one party learns** (`attacked`): decentralised SGD with independent noise has C = I. The attacker gets its neighbours'
messages and knows its own noises; with P = B⁺B, the projector on what it sees, the authors compute for a party u that takes part
in every iteration

    μ² = (Δ/σ)²·Σ_{s,t} |P_{(s,u),(t,u)}|.

It is no bound where parties are hidden (`ERRATA`): P belongs to gradients that do not answer to what is hidden.

**Noise that is correlated over a party's own iterations** (MAFALDA-SGD, `encoder`): everybody sees all messages, all parties use
one T × T matrix C, and they add C⁻¹Z. A record that takes part in every b-th iteration is to have sens = 1; with X = CᵀC the
authors minimise tr(M X⁻¹), M the workload of all models of all parties after mixing, over the X with X_st = 0 for two iterations
of one record and ΣX_tt = 1 over the iterations of each. Here all is seen, so this guarantee does hold for gradients that react.

From the theorem as others quote it and from the authors' program (github.com/dimiarbre/MFDL); the paper's own text, so its proof,
was not at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.descent import GossipDescent
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee

REFERENCES = (
    "A. Bellet, E. Cyffers, D. Frey, R. Gaudel, D. Lerévérend, F. Taïani. Unified Privacy Guarantees for Decentralized Learning "
    "via Matrix Factorization. ICLR 2026. arXiv:2510.17480.",
)

ERRATA = (
    "Gradients of hidden parties answer to hidden models, which the target's earlier gradients have moved; the projector does not "
    "know. Star of 18 parties, 40 iterations, quadratic losses whose local steps do not expand, one leaf about another: printed "
    "μ² = 2.02 Δ²/σ², exact 11.07 or more.",
    "The matrix of a single attacker is not in column echelon form once two parties are hidden: two leaves of a star are first "
    "seen in the same message.",
    "The sum of absolute values may exceed T, what local DP pays.",
)

MAX_COLUMNS = 4000  # parties times iterations: a dense singular value decomposition


def attacked(protocol: GossipDescent, observers: Sequence[int], steps: FloatArray | None = None) -> FloatArray:
    """B, one row per message to the observers and per noise of theirs, one column per iteration and party, C = I.

    `steps`: parties' local steps are θ ↦ steps[u]·θ + a constant, as quadratic losses make them; then these are the messages of
    the closed loop. By default 1: gradients that do not answer, as in the paper.

    >>> from netdp import graphs
    >>> two = GossipDescent(graphs.path(2), 2, 1, sigma=1.0, step=1.0)
    >>> attacked(two, [0]).tolist()                  # party 1's messages, then party 0's own noises; columns (0,0), (0,1), (1,0), …
    [[0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    n, T = protocol.n, protocol.iterations
    if protocol.masks > 0 or protocol.accelerated:
        raise Unsupported(
            "the paper's decentralised SGD has neither masks nor acceleration; take masks=0 and accelerated=False"
        )
    if n * T > MAX_COLUMNS:
        raise Unsupported(
            f"a dense matrix of {n * T:,} columns, parties × iterations; it is offered up to {MAX_COLUMNS:,}"
        )
    state, rows = np.zeros((n, T * n)), []
    for t in range(T):
        gossip = protocol.rounds_of(t)
        W = gossip.matrix.toarray()
        if steps is not None:
            state = steps[:, None] * state
        state[np.arange(n), t * n + np.arange(n)] += 1.0
        near = np.unique(np.concatenate([gossip.graph.neighbors(v) for v in observers]))
        for _ in range(protocol.gossip_rounds):
            rows.append(state[near])
            state = W @ state
    own = np.eye(T * n)[[t * n + v for t in range(T) for v in observers]]
    return np.vstack([*rows, own])


def projector(B: FloatArray) -> FloatArray:
    """B⁺B, the orthogonal projector on the row space of B."""
    _, values, rows = np.linalg.svd(B, full_matrices=False)
    kept = rows[values > values[0] * max(B.shape) * np.finfo(float).eps]
    return np.asarray(kept.T @ kept)


def of_party(P: FloatArray, n: int, u: int) -> FloatArray:
    """The block of one party's iterations."""
    return P[u::n, u::n]


def energies(protocol: GossipDescent, observers: Sequence[int]) -> FloatArray:
    """Σ_{s,t} |P_{(s,u),(t,u)}| for every u, in units of Δ²/σ²; nan at the observers."""
    n = protocol.n
    P = projector(attacked(protocol, observers))
    found = np.array([np.abs(of_party(P, n, u)).sum() for u in range(n)])
    found[list(observers)] = np.nan
    return found


def in_column_echelon_form(A: FloatArray) -> bool:
    """Every non-zero column begins below the one before it, and zero columns come last.

    >>> in_column_echelon_form(np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]])), in_column_echelon_form(np.ones((2, 2)))
    (True, False)
    """
    first = [int(np.flatnonzero(column)[0]) if column.any() else len(A) for column in np.abs(A.T) > 1e-12]
    return all(a < b or a == b == len(A) for a, b in pairwise(first))


def pairwise_loss(protocol: GossipDescent, observers: tuple[int, ...]) -> Guarantee:
    """The loss of decentralised SGD by the projector of what the observers see."""
    energy = energies(protocol, observers)
    return Guarantee(
        curve=GaussianCurve(np.sqrt(energy) * protocol.sensitivity / protocol.sigma),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the projector of the paper, as its authors' program computes it; it is not a bound",),
        references=REFERENCES,
        errata=ERRATA,
        factor=energy / protocol.iterations,
    )


def workload(matrix: FloatArray, iterations: int) -> FloatArray:
    """M: noise N that all parties draw alike over time ends with tr(MN) in all mixed models; per model and party.

    M_st = Σ_{r ≥ s,t} tr(W^{r−s+1}ᵀ W^{r−t+1}) / (nT), W the matrix of one gossip round per gradient.

    >>> workload(np.full((2, 2), 0.5), 2).round(6).tolist()            # mixed at once: half of each noise in every later model
    [[0.5, 0.25], [0.25, 0.25]]
    """
    n, T = len(matrix), count("iterations", iterations)
    powers = [matrix]
    for _ in range(T - 1):
        powers.append(matrix @ powers[-1])
    flat = np.array([power.ravel() for power in powers])
    inner = flat @ flat.T
    M = np.zeros((T, T))
    for r in range(T):
        M[: r + 1, : r + 1] += inner[r::-1, r::-1]
    return np.asarray(M / (n * T))


def encoder(M: FloatArray, every: int, tolerance: float = 1e-10) -> FloatArray:
    """X = CᵀC of least tr(M X⁻¹), a record taking part in every `every`-th iteration with sens = 1.

    Descent on the affine space of the constraints, steps by Barzilai and Borwein, halved until the objective falls; it is convex.

    >>> encoder(np.eye(4), 4).round(6).tolist() == np.eye(4).tolist()      # one iteration each, nothing to correlate for
    True
    """
    T = len(M)
    if every < 1 or T % every:
        raise InvalidValue(f"every must divide the {T} iterations, got {every!r}")
    often = T // every
    mask = (np.subtract.outer(np.arange(T), np.arange(T)) % every != 0) | np.eye(T, dtype=bool)

    def value(X: FloatArray) -> tuple[float, FloatArray]:
        try:
            np.linalg.cholesky(X)
        except np.linalg.LinAlgError:
            return np.inf, X
        inverse = np.linalg.inv(X)
        slope = -inverse @ M @ inverse * mask
        diagonal = slope.diagonal().reshape(often, every)
        np.fill_diagonal(slope, (diagonal - diagonal.mean(axis=0)).ravel())
        return float((M * inverse).sum()), (slope + slope.T) / 2

    X = np.eye(T) / often
    now, slope = value(X)
    step = 1e-3 / max(float(np.abs(slope).max()), 1e-300)
    for _ in range(20_000):
        better, change = np.inf, 0.0
        while step > 1e-30:
            better, slope_there = value(X - step * slope)
            if better < now:
                break
            step /= 3
        else:
            return X
        moved, turned = -step * slope, slope_there - slope
        change, now = now - better, better
        X, slope = X + moved, slope_there
        if change < tolerance * now:
            return X
        curvature = float((moved * turned).sum())
        step = float((moved**2).sum()) / curvature if curvature > 0 else 2 * step
    return X
