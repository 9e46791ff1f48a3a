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

**Several attempts.** An honest party publishes at most `attempts` = K times, each time with fresh pads and noise,
only among a roster of at least n − `absent` parties, all of which have agreed to it by a signed vote, and votes for
one roster per attempt only. *Claim:* the loss about u against any c parties is at most that of K releases, each with
the shares of h = n − absent − c honest parties and the same shift: that of one release with K·h shares that is moved
K times as far (`netdp.accounting.masked.releases`). *Proof.* Pads are bound to attempt and roster, so the theorem
holds for each roster R of each attempt by itself: O learns S_R = Σ_{R∖O}(k_v + η_v) mod q, with noise drawn for it
alone. All members of R∖O voted for R; so two rosters of one attempt have no honest member in common, and each has at
least n − absent − c of them, however O has split the honest parties into groups. Only the at most K rosters in which
u published depend on k_u; in these grant O the y of all honest members, published or not. Their sums are simulated
from Z_i = b·D + X_i, i = 1 … K, X_i the noise of h parties, D what u's two values differ by: whenever O makes the
others form a roster R with u, in whatever way that depends on what it saw, add to the next Z_i the noise of the |R∖O|
− h further parties and everybody's values. So all that O sees is post-processing of Z_1 … Z_K: more shares, fewer
attempts, other rosters and adaptive choices only lose. ∎ Only with pads between all pairs do the members of R∖O stay
together whatever R is, so absences on another mask graph are refused.

**Unit record.** The theorem is about k_u, whatever it is made of; one record more or less moves k_u by at most
`protocol.distance` (`netdp.protocols.masked`). Neighbours: one record of one party is added or removed; everything else,
the number of records included, is hidden by the same noise, and who takes part is public.

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

from dataclasses import replace

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified, certified_pairs
from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.numerics.checks import switch
from netdp.privacy import Adjacency, Claim, Curve, Guarantee, ProfileCurve, SharedCurve, Unit
from netdp.protocols import MaskedSum

from .cuts import cut_probability
from .releases import Release, repeated_curve, repeated_delta, repeated_points

REFERENCES = (
    "netdp, docs/guarantees.md#masked-sum: theorem and margins; #masked-attempts: several of them; #random-masks: cuts.",
    "K. Bonawitz et al. Practical Secure Aggregation for Privacy-Preserving Machine Learning. CCS 2017.",
    "J. Bell, K. Bonawitz, A. Gascón, T. Lepoint, M. Raykova. Secure Single-Server Aggregation with (Poly)Logarithmic Overhead. "
    "CCS 2020.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation. "
    "ICML 2021.",
)
_SIZES = 16
"""At most so many different curves: sizes in between are counted as the next smaller one."""


@certified.register
def _masked(
    protocol: MaskedSum,
    observers: tuple[int, ...],
    *,
    fixed_before_draw: bool = False,
    progress: Progress | None = None,
) -> Guarantee:
    drawn = switch("fixed_before_draw", fixed_before_draw)
    if protocol.mask_graph is None:
        return against_any(protocol, len(observers))
    if drawn:
        sizes = component_sizes(protocol, observers)
        if int(sizes[sizes > 0].min()) < protocol.n - len(observers):
            raise InvalidValue(
                f"fixed_before_draw: on the mask graph that was drawn these {len(observers)} observers do cut parties off, so what "
                "they learn is known and more; account without it"
            )
        return against_any(protocol, len(observers))
    return _guarantee(protocol, *_shared(protocol, component_sizes(protocol, observers), progress))


@certified_pairs.register
def _pairs(protocol: MaskedSum, *, progress: Progress | None = None) -> Guarantee:
    n = protocol.n
    if protocol.mask_graph is None:
        return against_any(protocol, 1)
    sizes = np.stack([component_sizes(protocol, (v,)) for v in range(n)], axis=1)
    return _guarantee(protocol, *_shared(protocol, sizes, progress))


def against_any(protocol: MaskedSum, colluders: int) -> Guarantee:
    """What any so many parties together learn about anybody else, in all attempts: one curve.

    With a random mask graph the parties were fixed before it was drawn, and δ has the probability added that they cut somebody
    off. A given mask graph is refused: it depends on who they are.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(200), sigma=0.5)
    >>> rings = p.replace(masks=12)
    >>> [round(float(against_any(q, 40).epsilon(1e-6)), 4) for q in (p, p.replace(attempts=2), rings)]
    [0.6481, 0.9405, 0.6815]
    """
    missed, honest = cut_probability(protocol, colluders), fewest_honest(protocol, colluders)
    curve = component_curve(protocol, honest, protocol.attempts)
    factor = np.asarray(protocol.attempts / honest)
    if protocol.mask_graph is None:
        return _guarantee(protocol, curve, factor)
    curve = ProfileCurve(curve.epsilons, np.minimum((curve.deltas + missed) * (1 + 4 * UNIT), 1.0))
    said_of = (
        *_common(protocol),
        f"the {colluders} who collude, and everybody's number, were fixed before the mask graph was drawn: before anybody could "
        f"foresee its seed ({protocol.mask_seed}), of which SHAKE-256 is as good as random; {protocol.masks} partners each from "
        f"random rings, all orders equally likely; they cut somebody off with a probability of at most {missed:.2g}, which is part "
        "of δ",
    )
    return replace(_guarantee(protocol, curve, factor), assumptions=said_of, factor=None)


def component_losses(protocol: MaskedSum, sizes: IntArray) -> Guarantee:
    """What is learned about parties that hide among so many, themselves included: one entry per party, none where it is 0."""
    return _guarantee(protocol, *_shared(protocol, sizes, None))


@local.register
def _local(protocol: MaskedSum) -> Guarantee:
    return _baseline(protocol, 1, "every party publishes its own value with its share of the noise, once", factor=1.0)


@curator.register
def _curator(protocol: MaskedSum) -> Guarantee:
    said_of = (
        "a curator that everybody trusts sees all values, and only the sum with everybody's share of the noise is seen"
    )
    return _baseline(protocol, protocol.n, said_of, factor=1.0 / protocol.n)


def _baseline(protocol: MaskedSum, size: int, words: str, factor: float) -> Guarantee:
    loss = said(component_curve(protocol, size), words, factor=factor)
    return replace(loss, adjacency=_adjacency(protocol), unit=Unit(protocol.unit))


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


def fewest_honest(protocol: MaskedSum, observers: int) -> int:
    """With pads between all pairs: how many parties outside a coalition of this size publish in an attempt, at least.

    >>> from netdp import graphs
    >>> fewest_honest(MaskedSum(graphs.ring(10), sigma=1.0, absent=2), observers=3)
    5
    """
    left = protocol.smallest_roster - observers
    if left < 1:
        raise InvalidValue(
            f"{observers} observers and absent={protocol.absent} leave nobody of {protocol.n} parties whose noise would hide a "
            "value; allow fewer to be absent"
        )
    return left


def release_of(protocol: MaskedSum, size: int) -> Release:
    """The noisy sum over a component of this size, as it is published in one attempt."""
    return Release(protocol.share, size, protocol.distance, protocol.dimension)


def component_curve(protocol: MaskedSum, size: int, releases: int = 1) -> ProfileCurve:
    """What the noisy sum over a component of this size tells about one of its members, published so often.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(100), sigma=0.5)
    >>> round(float(component_curve(p, 90).epsilon(1e-6)), 4), round(float(component_curve(p, 1).epsilon(1e-6)), 3)
    (0.8827, 10.997)
    >>> round(float(component_curve(p, 90, releases=3).epsilon(1e-6)), 4)
    1.5988
    """
    return repeated_curve(release_of(protocol, size), releases)


def component_delta(protocol: MaskedSum, size: int, epsilon: FloatArray, releases: int = 1) -> FloatArray:
    """δ at each ε, margins included."""
    return repeated_delta(release_of(protocol, size), releases, epsilon)


def _shared(protocol: MaskedSum, sizes: IntArray, progress: Progress | None) -> tuple[Curve, FloatArray]:
    """One curve per size, the parties that have it, and 1/|K|; nothing where the size is 0."""
    kinds = np.unique(sizes[sizes > 0])
    if len(kinds) > _SIZES:
        wanted = np.geomspace(kinds[0], kinds[-1], _SIZES)
        kinds = np.unique(
            kinds[np.maximum(np.searchsorted(kinds, wanted, side="right") - 1, 0)]
        )  # the smallest among them
    times = protocol.attempts
    points = np.unique(np.concatenate([repeated_points(release_of(protocol, int(size)), times) for size in kinds]))
    rows = []
    for done, size in enumerate(kinds.tolist()):
        rows.append(np.minimum.accumulate(component_delta(protocol, size, points, times)))
        if progress is not None:
            progress(done + 1, len(kinds))
    which = np.where(sizes > 0, np.searchsorted(kinds, sizes, side="right") - 1, -1)
    factor = np.where(sizes > 0, times / np.maximum(sizes, 1), np.nan)
    return SharedCurve(ProfileCurve(points, np.stack(rows)), which), factor


def _guarantee(protocol: MaskedSum, curve: Curve, factor: FloatArray) -> Guarantee:
    return Guarantee(
        curve=curve,
        adjacency=_adjacency(protocol),
        unit=Unit(protocol.unit),
        claim=Claim.UPPER,
        assumptions=assumptions(protocol),
        references=REFERENCES,
        factor=factor,
    )


def _adjacency(protocol: MaskedSum) -> Adjacency:
    return Adjacency.ADD_REMOVE if protocol.unit == "record" else Adjacency.REPLACE


def _coordinates(dimension: int) -> str:
    return "one coordinate" if dimension == 1 else f"at most {dimension:,} coordinates"


def assumptions(protocol: MaskedSum) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    if protocol.mask_graph is None:
        last = "pads between all pairs: any other coalition of as many parties learns as much, and no more"
    else:
        last = "for this coalition and the mask graph as it is; another coalition of as many parties may learn more"
    return (*_common(protocol), last)


def _common(protocol: MaskedSum) -> tuple[str, ...]:
    """What must hold against any coalition."""
    columns, limit = _coordinates(protocol.dimension), f"{protocol.sensitivity:g}"
    rule = f"each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule"
    if protocol.unit == "record":
        values = (
            f"a record has {columns} and an L2 norm of at most {limit} (clip before rounding); {rule}; a party's value is the sum "
            "of its rounded records, and nothing else that it sends or does depends on how many there are"
        )
    else:
        values = f"two values of one party have {columns} and differ by at most {limit} in L2 norm (clip before rounding); {rule}"
    if protocol.attempts == 1:
        often = (
            "every party outside the coalition publishes once, under fresh pads and noise of its own; if the attempt is repeated, "
            "each attempt counts"
        )
    else:
        often = (
            f"every party outside the coalition publishes at most {protocol.attempts} times in all, each time under fresh pads and "
            "noise of its own; all of them are counted"
        )
    if protocol.attempts > 1 or protocol.absent:
        often += (
            f"; and only among a roster of at least {protocol.smallest_roster} parties to which all of them have agreed, each to "
            "one roster per attempt; pads are bound to attempt and roster"
        )
    return (
        values,
        often,
        "values are fixed before the first of them is published; the coalition may do what it likes",
        "a pad is uniform, known to its two ends only, used once and never revealed: computational, as good as the key "
        "agreement and the stream cipher that pads come from",
        f"to every coordinate an honest party adds its own discrete Gaussian of parameter σ² = {protocol.share} squared grid "
        "steps, drawn exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
        "graphs, grid, modulus and noise level are public",
    )
