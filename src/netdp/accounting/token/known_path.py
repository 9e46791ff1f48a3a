"""The exact loss of a token on a known path: rings, and walks once they are drawn.

**Theorem.** Let V_s be the variances of the segments that the observers' visits cut the paths into (`netdp.views.token`), and
c_{u,s} the number of contributions of u in segment s. Then what the observers see is exactly μ_u-Gaussian DP for user u with

    μ_u² = Δ² Σ_s c_{u,s}² / V_s,

infinite if u contributes to a segment without noise.

**Proof.** The view is the list of increments: independent N(Σ contributions, V_s I). Replacing u's contributions shifts
increment s by the sum of c_{u,s} differences of norm ≤ Δ each, so by at most c_{u,s}Δ, attained when all point the same way,
in all segments at once. Two Gaussians with the same covariance are told apart as well as N(0, 1) and N(μ, 1) with μ² the
squared shift over the variance, summed over the independent increments; a shift without noise is seen for certain. ∎

Contributions must not react to the token (their values are fixed beforehand). The path does not depend on the data.

**Ring.** With closing noise one observer learns μ ≤ √K·Δ/σ: any n−1 hops in a row hold one noise N(0, σ²), the first
segment starts with one, the last ends with one, and u contributes once to each of K segments. With distributed noise
the n−1 hops between two visits hold (n−1)σ²/n together, so μ ≤ √(K·n/(n−1))·Δ/σ: a little more.

**Rounding.** All terms are positive; sums of at most T of them, so a relative error of a few T units in the last place,
which is added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numba import njit

from netdp.accounting.table import certified, certified_pairs
from netdp.engine import cores, team
from netdp.errors import Unsupported
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.protocols.noise_law import norm_order, only_gaussian
from netdp.protocols.path import PathSum
from netdp.protocols.ring import RingSum
from netdp.views.token import TokenView

from .laplace import IDEAL, path_loss
from .ring_on_a_grid import ring_loss, ring_pairs
from .walk_on_a_grid import REFERENCES as GRID_REFERENCES
from .walk_on_a_grid import on_the_grid, wire_assumptions

REFERENCES = (
    "netdp, docs/guarantees.md#known-path: exact loss of a token on a known path.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "J. Dong, A. Roth, W. Su. Gaussian Differential Privacy. JRSS B, 2022.",
)
# Observers worked on at once by `path_energy_blocks`.
_BLOCK = 64


def path_energy(protocol: PathSum | RingSum, observers: int | Iterable[int]) -> FloatArray:
    """(n,) μ_u² of every user against colluding observers; inf where a value shows without noise, nan at the observers.

    >>> ring = RingSum(10, rounds=3, sigma=2.0, closing=False)
    >>> path_energy(ring, [8])[[0, 9]].round(9).tolist()    # 9 adds its last value after 8's last visit: no noise follows
    [0.75, inf]
    """
    view = TokenView.of(protocol, observers)
    energy = _view_energy(view) * _scale(protocol)
    energy[list(view.observers)] = np.nan
    return energy


def path_energy_blocks(protocol: PathSum | RingSum) -> Iterator[tuple[int, FloatArray]]:
    """μ² for every single observer, a few observers at a time: (first observer v, rows [v − first, u]).

    Never more than 64 rows are in memory; the array is reused, so copy what is to be kept.
    """
    view = TokenView.of(protocol, 0)
    scale = _scale(protocol)
    n = view.n
    block = np.empty((min(_BLOCK, n), n))
    threads = cores()
    with team(threads) as together:
        for first in range(0, n, len(block)):
            rows = block[: min(len(block), n - first)]
            rows[:] = 0.0

            def some(part: int, first: int = first, rows: FloatArray = rows) -> None:
                mark, base = np.zeros(n, dtype=np.int64), 0
                for row in range(part, len(rows), threads):
                    for path, carries, shares in zip(view.paths, view.carries, view.shares, strict=True):
                        base = _one_observer(path, carries, shares, view.closing, first + row, rows[row], mark, base)

            together(some, threads)
            rows *= scale
            rows[np.arange(len(rows)), first + np.arange(len(rows))] = np.nan
            yield first, rows


def path_energy_pairwise(protocol: PathSum | RingSum) -> FloatArray:
    """(n, n) μ²: entry [u, v] is what v alone learns about u; nan on the diagonal.

    The same numbers a few observers at a time, without the matrix: `path_energy_blocks`.
    """
    out = np.empty((protocol.n, protocol.n))
    for first, rows in path_energy_blocks(protocol):
        out[first : first + len(rows)] = rows
    return out.T


def _scale(protocol: PathSum | RingSum) -> float:
    """Δ²/σ², and what covers the rounding of the sums."""
    if protocol.grid is not None:
        raise Unsupported(
            f"this {type(protocol).__name__} adds whole numbers on a grid of {protocol.grid:g}, so its loss is no single μ and σ "
            "is not found by a formula: account(protocol, observers) certifies it; to find σ, calibrate with grid=None, then state "
            "grid= and account again"
        )
    only_gaussian(protocol, "μ²")
    return (protocol.sensitivity / protocol.sigma) ** 2 * (1.0 + _slack(protocol))


def _slack(protocol: PathSum | RingSum) -> float:
    steps = protocol.rounds * protocol.n if isinstance(protocol, RingSum) else sum(map(len, protocol.paths))
    return 4.0 * UNIT * (steps + 16)


def _view_energy(view: TokenView) -> FloatArray:
    """Σ_s c²/V_s for every user, V in units of σ²."""
    from scipy.sparse import coo_array

    seen = view.segments
    ones = np.ones(len(seen.users))
    counts = coo_array((ones, (seen.users, seen.places)), shape=(view.n, len(seen.variances))).tocsr()
    with np.errstate(divide="ignore"):
        terms = counts.data**2 / seen.variances[counts.indices]
    owners = np.repeat(np.arange(view.n), np.diff(counts.indptr))
    return np.bincount(owners, weights=terms, minlength=view.n).astype(np.float64)


@njit(nogil=True, cache=True, error_model="numpy")
def _one_observer(path: Any, carries: Any, shares: Any, closing: float, v: int, out: Any, mark: Any, base: int) -> int:
    """Add Σ_s c²/V_s of one token against observer v to `out`; c² is summed up as 1 + 3 + 5 + …

    mark[u] − base is how often u has contributed to this segment; bases of segments are further apart than that can be.
    """
    steps, start = len(path), 0
    while start < steps:
        end, variance = start, 0.0
        while end < steps and path[end] != v:
            variance += shares[end]
            end += 1
        if end == steps:
            variance += closing
        weight = 1.0 / variance  # without noise: inf
        for t in range(start, end):
            if carries[t]:
                u = path[t]
                place = max(mark[u], base)
                out[u] += (2 * (place - base) + 1) * weight
                mark[u] = place + 1
        base += end - start + 1
        start = end + 1
    return base


@certified.register
def _token(protocol: PathSum | RingSum, observers: tuple[int, ...]) -> Guarantee:
    if isinstance(protocol, RingSum) and protocol.grid is not None:
        return ring_loss(protocol, observers)
    if isinstance(protocol, PathSum) and protocol.grid is not None:
        return _on_the_grid(protocol, path_energy(protocol.in_real_numbers, observers))
    if protocol.law == "laplace":
        return dataclasses.replace(path_loss(protocol, observers), assumptions=token_assumptions(protocol))
    return _statement(protocol, path_energy(protocol, observers))


@certified_pairs.register
def _pairs(protocol: PathSum | RingSum) -> Guarantee:
    """What every single user learns about every other: matrices [u, v]."""
    if isinstance(protocol, RingSum) and protocol.grid is not None:
        return ring_pairs(protocol)
    if isinstance(protocol, PathSum) and protocol.grid is not None:
        return _on_the_grid(protocol, path_energy_pairwise(protocol.in_real_numbers))
    only_gaussian(protocol, "the matrix of all pairs")
    return _statement(protocol, path_energy_pairwise(protocol))


def _statement(protocol: PathSum | RingSum, energy: FloatArray) -> Guarantee:
    return Guarantee(
        curve=GaussianCurve(np.sqrt(energy)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.EXACT,
        assumptions=token_assumptions(protocol),
        references=REFERENCES,
        factor=energy / protocol.local_mu**2,
        slack=_slack(protocol),
    )


def _on_the_grid(protocol: PathSum, energy: FloatArray) -> Guarantee:
    """The same for tokens that add whole numbers, from the energy in real numbers."""
    loss = _statement(protocol, energy)
    return dataclasses.replace(
        loss,
        curve=on_the_grid(loss.curve, protocol),
        claim=Claim.UPPER,
        factor=energy / protocol.in_real_numbers.local_mu**2,
        references=(GRID_REFERENCES[0], *REFERENCES, *GRID_REFERENCES[1:]),
    )


def token_assumptions(protocol: PathSum | RingSum) -> tuple[str, ...]:
    """What must hold for the exact number to hold."""
    where = (
        "the ring is public"
        if isinstance(protocol, RingSum)
        else "the path is public: this is the loss given this path, not an average over paths"
    )
    closing = (
        "the closing noise is drawn, and known, by the last holder"
        if (protocol.closing_noise if isinstance(protocol, RingSum) else protocol.closing)
        else "there is no closing noise: what is added last is covered only by the noise around it"
    )
    return (
        f"two values of one contribution differ by at most {protocol.sensitivity:g} in L{norm_order(protocol)} norm "
        "(clip before the noise)",
        where,
        "a token is readable by its holder alone until it is released; then everybody reads every token",
        "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
        "values are fixed beforehand, one for every visit, and do not react to the token",
        closing,
        *(
            wire_assumptions(protocol)
            if isinstance(protocol, PathSum) and protocol.grid is not None
            else (
                IDEAL
                if protocol.law == "laplace"
                else "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
            )
        ),
    )
