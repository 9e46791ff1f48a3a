"""A masked sum: what any coalition learns is the noisy sum over each connected part of the others, and nothing else.

**Theorem.** Let O be a coalition, K a connected component of the mask graph without O, and give O everything it can
hold: its own values, noise and pads, and the y of *all* parties. Then the y_u, u ∈ K, are uniform on the vectors of
Z_q^K (coordinate by coordinate) whose sum is Σ_K(k_u + η_u) plus a constant that O knows; different components are
independent. So all that O sees is a function of the sums Σ_K(k_u + η_u) mod q and of randomness that has nothing to
do with anybody's value.

*Proof.* Subtract the pads shared with O, which O knows. What is left at u ∈ K is k_u + η_u + p_u, p_u the signed sum
of the pads on the edges of K at u. The map from pads to p is linear and its image lies in the vectors of sum zero,
each pad occurring once with each sign. Fix the pads outside a spanning tree of K at any values. The remaining |K| − 1
pads are mapped one-to-one onto the vectors of sum zero: given p, the pad of a leaf's edge is determined by the leaf's
entry; remove the leaf and go on. Both sets have q^{|K|−1} elements, so uniform pads give a p that is uniform on the
vectors of sum zero, whatever k and η are. Adding k + η makes y uniform subject to its sum. Pads of different
components are different pads. ∎

It holds in any order of arrival, after any loss, repetition or delay, and whatever the coalition does afterwards: the
others only pass on, add and round what is published, and that is a function of y. Nothing is asked of the coalition.
So the loss about u ∈ K is at most that of a curator who publishes Σ_K(k_u + η_u): the noise of |K| parties instead of
one, **factor 1/|K|**.

**From the sum to ε.** Reduction modulo q is post-processing. On the whole numbers the sum moves by at most
`protocol.distance` steps (Δ with its rounding to the grid: `netdp.protocols.masked`). Its noise is within e^{±t} of
one discrete Gaussian of |K| times the variance, t·d for d coordinates. Of that one, δ(ε) is summed exactly for single
numbers, and for vectors bounded by the better of Gaussian noise that is rounded, with a margin, and zCDP
(`netdp.mechanisms.discrete_gaussian` has the proofs). Together δ(ε) ≤ e^{td}·δ₁(ε − 2td), and below ε = 0, δ₁(ε) ≤
δ₁(0) + 1 − e^ε. Between the ε at which it is computed the chord is a bound (`ProfileCurve`); where the law has few
atoms, they are the points, and nothing is lost.

**Smaller components stand for larger ones** if there are more than a few sizes: the noise of further parties, added
to the sum of some, is post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified, certified_pairs
from netdp.mechanisms.discrete_gaussian import SUMMED_UP_TO, rounded_delta, shift_delta, sum_distance
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.privacy import Adjacency, Claim, Curve, Guarantee, ProfileCurve, SharedCurve
from netdp.protocols import MaskedSum

REFERENCES = (
    "netdp, docs/guarantees.md#masked-sum: theorem and margins.",
    "K. Bonawitz et al. Practical Secure Aggregation for Privacy-Preserving Machine Learning. CCS 2017.",
    "J. Bell, K. Bonawitz, A. Gascón, T. Lepoint, M. Raykova. Secure Single-Server Aggregation with (Poly)Logarithmic Overhead. "
    "CCS 2020.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation. "
    "ICML 2021.",
)
_SIZES = 16
"""At most so many different curves: sizes in between are counted as the next smaller one."""
_ATOMS = 3000
"""Where the loss takes no more values than this, δ is computed at each of them, and the curve is exact between them too."""


@certified.register
def _masked(protocol: MaskedSum, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    sizes = component_sizes(protocol, observers)
    if protocol.mask_graph is None:  # any coalition of this size learns the same about anybody
        honest = protocol.n - len(observers)
        return _guarantee(protocol, component_curve(protocol, honest), np.asarray(1.0 / honest))
    return _guarantee(protocol, *_shared(protocol, sizes, progress))


@certified_pairs.register
def _pairs(protocol: MaskedSum, *, progress: Progress | None = None) -> Guarantee:
    n = protocol.n
    if protocol.mask_graph is None:
        return _guarantee(protocol, component_curve(protocol, n - 1), np.asarray(1.0 / (n - 1)))
    sizes = np.stack([component_sizes(protocol, (v,)) for v in range(n)], axis=1)
    return _guarantee(protocol, *_shared(protocol, sizes, progress))


@local.register
def _local(protocol: MaskedSum) -> Guarantee:
    return said(
        component_curve(protocol, 1), "every party publishes its own value with its share of the noise", factor=1.0
    )


@curator.register
def _curator(protocol: MaskedSum) -> Guarantee:
    said_of = (
        "a curator that everybody trusts sees all values, and only the sum with everybody's share of the noise is seen"
    )
    return said(component_curve(protocol, protocol.n), said_of, factor=1.0 / protocol.n)


def component_sizes(protocol: MaskedSum, observers: tuple[int, ...]) -> IntArray:
    """With how many others each party hides, itself included: |K|; 0 for the observers.

    >>> from netdp import graphs
    >>> component_sizes(MaskedSum(graphs.ring(6), sigma=1.0, masks=graphs.path(6)), (1, 5)).tolist()
    [1, 0, 3, 3, 3, 0]
    """
    sizes = np.zeros(protocol.n, dtype=np.int64)
    honest = np.setdiff1d(np.arange(protocol.n), observers)
    if protocol.mask_graph is None:
        sizes[honest] = len(honest)
    else:
        part = protocol.mask_graph.subgraph(honest.tolist()).components()
        sizes[honest] = np.bincount(part)[part]
    return sizes


def component_curve(protocol: MaskedSum, size: int) -> ProfileCurve:
    """What the noisy sum over a component of this size tells about one of its members.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(100), sigma=0.5)
    >>> round(float(component_curve(p, 90).epsilon(1e-6)), 4), round(float(component_curve(p, 1).epsilon(1e-6)), 3)
    (0.8827, 10.997)
    """
    points = _points(protocol, size)
    return ProfileCurve(points, np.minimum.accumulate(component_delta(protocol, size, points)))


def component_delta(protocol: MaskedSum, size: int, epsilon: FloatArray) -> FloatArray:
    """δ at each ε, margins included."""
    variance, apart = size * protocol.share, protocol.dimension * sum_distance(protocol.share, size)
    shifted = epsilon - 2 * apart
    allowed = np.maximum(shifted, 0.0)
    if protocol.dimension == 1 and variance <= SUMMED_UP_TO:
        ideal = shift_delta(variance, int(protocol.distance), allowed)
    else:
        ideal = rounded_delta(variance, protocol.distance, protocol.dimension, allowed)
    found = math.exp(min(apart, 700.0)) * (ideal - np.expm1(np.minimum(shifted, 0.0)))
    return np.minimum(found * (1 + 8 * UNIT), 1.0)


def _points(protocol: MaskedSum, size: int) -> FloatArray:
    """The ε at which δ is computed: from 0 to where δ is below 10⁻²⁵⁰, closest where it matters."""
    variance = size * protocol.share
    mu = protocol.distance / math.sqrt(variance)
    usual, far = mu / 2 + 12, mu / 2 + 36
    apart = 2 * protocol.dimension * sum_distance(protocol.share, size)
    atoms = mu * usual * variance / protocol.distance
    if protocol.dimension == 1 and atoms <= _ATOMS:
        shift = int(protocol.distance)
        x = np.arange(shift // 2, shift // 2 - math.ceil(atoms) - 2, -1.0)
        near = (shift * shift - 2 * shift * x) / (2 * variance) + apart
    else:
        near = mu * np.linspace(0.0, usual, 2401)
    points = np.concatenate([[0.0, apart], near, mu * np.linspace(usual, far, 241)])
    return np.unique(points[points >= 0])


def _shared(protocol: MaskedSum, sizes: IntArray, progress: Progress | None) -> tuple[Curve, FloatArray]:
    """One curve per size, the parties that have it, and 1/|K|; nothing where the size is 0."""
    kinds = np.unique(sizes[sizes > 0])
    if len(kinds) > _SIZES:
        wanted = np.geomspace(kinds[0], kinds[-1], _SIZES)
        kinds = np.unique(
            kinds[np.maximum(np.searchsorted(kinds, wanted, side="right") - 1, 0)]
        )  # the smallest among them
    points = np.unique(np.concatenate([_points(protocol, int(size)) for size in kinds]))
    rows = []
    for done, size in enumerate(kinds.tolist()):
        rows.append(np.minimum.accumulate(component_delta(protocol, size, points)))
        if progress is not None:
            progress(done + 1, len(kinds))
    which = np.where(sizes > 0, np.searchsorted(kinds, sizes, side="right") - 1, -1)
    factor = np.where(sizes > 0, 1.0 / np.maximum(sizes, 1), np.nan)
    return SharedCurve(ProfileCurve(points, np.stack(rows)), which), factor


def _guarantee(protocol: MaskedSum, curve: Curve, factor: FloatArray) -> Guarantee:
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=assumptions(protocol),
        references=REFERENCES,
        factor=factor,
    )


def _coordinates(dimension: int) -> str:
    return "one coordinate" if dimension == 1 else f"at most {dimension:,} coordinates"


def assumptions(protocol: MaskedSum) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    said_of: list[Any] = [
        f"two values of one party have {_coordinates(protocol.dimension)} and differ by at most {protocol.sensitivity:g} in L2 "
        f"norm (clip before rounding); each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule",
        "every party outside the coalition publishes once, under fresh pads and noise of its own; if the attempt is repeated, "
        "each attempt counts",
        "values are fixed before the first of them is published; the coalition may do what it likes",
        "a pad is uniform, known to its two ends only, used once and never revealed: computational, as good as the key "
        "agreement and the stream cipher that pads come from",
        f"to every coordinate an honest party adds its own discrete Gaussian of parameter σ² = {protocol.share} squared grid "
        "steps, drawn exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
        "graphs, grid, modulus and noise level are public",
    ]
    if protocol.mask_graph is None:
        said_of.append("pads between all pairs: any other coalition of as many parties learns as much, and no more")
    else:
        said_of.append(
            "for this coalition and the mask graph as it is; another coalition of as many parties may learn more"
        )
    return tuple(said_of)
