"""What a coalition learns from a masked sum, certified: the noisy sum over each connected part of the others, nothing else.

So the loss about a party is a curator's who publishes the noisy sum of those that hide with it, factor 1/(their number), for any
number of attempts and rosters that was promised. Proofs: docs/proofs/masked.md#masked-sum, #masked-attempts, #one-attempt (a
threshold instead of further attempts) and #laplace-shares (Laplace noise in shares); the probability
that a mask graph of random rings falls apart without a coalition that was fixed before the draw:
docs/proofs/masked.md#random-masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import MaskedSum
from netdp.families.masked.threshold import is_safe
from netdp.graphs.graph import Graph
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve
from netdp.mechanisms.noisy_sums import Release, repeated_curve, repeated_delta, repeated_points
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.numerics.checks import count, probability, switch, whole
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee, Unit
from netdp.privacy.profile import Formula, PerCurve, ProfileCurve
from netdp.protocols.alternatives import curator, local, said
from netdp.protocols.grid import norm_order
from netdp.protocols.table import certified, certified_pairs
from netdp.protocols.views import Transcript, _unlike, realised

_SUMMED = 256  # sizes of S for which the sum over a is carried out


def cut_probability(protocol: MaskedSum, colluders: int) -> float:
    """A bound on the probability, over the draw of the mask graph, that so many colluders cut honest parties off.

    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.ring(1000), sigma=1.0, masks=20)
    >>> cut_probability(p, 1), f"{cut_probability(p, 100):.1e}", f"{cut_probability(p, 300):.1e}"
    (0.0, '8.4e-18', '2.4e-08')
    """
    number = whole("colluders", colluders)
    if number >= protocol.n:
        raise InvalidValue(f"colluders={number} leaves nobody of {protocol.n} parties who could be cut off")
    if protocol.mask_graph is None:
        return 0.0
    if isinstance(protocol.masks, Graph):
        raise Unsupported(
            "masks is a given graph, which was not drawn at random after the coalition was fixed; name the coalition, give a "
            'degree, or share pads between all pairs, masks="complete"'
        )
    assert isinstance(protocol.masks, int)
    return rings_cut(protocol.n, number, protocol.masks // 2)


def rings_cut(n: int, colluders: int, rings: int) -> float:
    """The same for the union of so many random rings through n parties."""
    if colluders < 2 or n - colluders < 2:
        return 0.0
    sets, alone, error = _logarithms(n, colluders)
    terms = sets + rings * alone
    largest = float(terms.max())
    margin = (13 * rings + 3) * error + 1e-9
    total = largest + math.log(float(np.exp(terms - largest).sum())) + margin
    ties = rings * n * n * 2.0**-129
    return 1.0 if total >= 0 else min(math.exp(total) + ties, 1.0)


def partners_needed(n: int, colluders: int, chance: float) -> int | None:
    """The least even degree with which so many colluders cut anybody off with at most this probability; None if none does.

    >>> partners_needed(1000, 100, 1e-9)
    12
    """
    n, colluders = count("n", n), whole("colluders", colluders)
    probability("chance", chance)
    for rings in range(1, (n + 1) // 2):
        if rings_cut(n, colluders, rings) <= chance:
            return 2 * rings
    return None


@lru_cache(maxsize=64)
def _logarithms(n: int, colluders: int) -> tuple[FloatArray, FloatArray, float]:
    """log of how many sets S of size s = 1 … h/2 there are, log p_s, and the error of one logarithm of a factorial."""
    c, h = colluders, n - colluders
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    error = (n + 8) * UNIT * float(factorial[-1])

    def choose(top: Any, below: Any) -> FloatArray:
        top, below = np.broadcast_arrays(np.asarray(top, np.int64), np.asarray(below, np.int64))
        possible = (below >= 0) & (below <= top) & (top >= 0)
        a, b = np.where(possible, top, 0), np.where(possible, below, 0)
        return np.where(possible, factorial[a] - factorial[b] - factorial[a - b], -np.inf)

    def term(s: IntArray, a: IntArray) -> FloatArray:
        t = h - s
        return choose(c, a) + choose(s - 1, a - 1) + choose(t + c - a - 1, t)

    sizes = np.arange(1, h // 2 + 1, dtype=np.int64)
    ways = np.empty(len(sizes))
    for place, s in enumerate(sizes[:_SUMMED].tolist()):
        each = term(np.array(s), np.arange(1, min(s, c - 1) + 1, dtype=np.int64))
        top = float(each.max())
        ways[place] = top + math.log(float(np.exp(each - top).sum()))
    if len(sizes) > _SUMMED:
        s = sizes[_SUMMED:]
        low, high = np.ones_like(s), np.minimum(s, c - 1)  # the largest term lies between them
        terms = np.log(high) + 20 * error * high  # rounding may stop a rise that is less steep than it
        while (low < high).any():
            middle = (low + high) // 2
            grows = term(s, middle + 1) > term(s, middle)
            low, high = np.where(grows & (low < high), middle + 1, low), np.where(grows, high, middle)
        ways[_SUMMED:] = term(s, low) + terms
    t = h - sizes
    alone = np.minimum(ways + factorial[c - 1] + factorial[sizes] + factorial[t] - factorial[n - 1], 0.0)
    sets = choose(h, sizes) - np.where(2 * sizes == h, math.log(2), 0.0)
    return sets, alone, error


REFERENCES = (
    "netdp, docs/proofs/masked.md#masked-sum: theorem and margins; #masked-attempts: several of them; #random-masks: cuts.",
    "K. Bonawitz et al. Practical Secure Aggregation for Privacy-Preserving Machine Learning. CCS 2017.",
    "J. Bell, K. Bonawitz, A. Gascón, T. Lepoint, M. Raykova. Secure Single-Server Aggregation with (Poly)Logarithmic Overhead. "
    "CCS 2020.",
    "C. Canonne, G. Kamath, T. Steinke. The Discrete Gaussian for Differential Privacy. NeurIPS 2020.",
    "P. Kairouz, Z. Liu, T. Steinke. The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation. "
    "ICML 2021.",
)

ALL_PAIRS = "pads between all pairs: any other coalition of as many parties learns as much, and no more"

THIS_COALITION = "for this coalition and the mask graph as it is; another coalition of as many parties may learn more"

_SIZES = 16
"""At most so many different curves: sizes in between are counted as the next smaller one."""


@certified.register
def _certify_masked(
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
        check_not_cut(protocol, observers)
        return against_any(protocol, len(observers))
    return _guarantee(protocol, *_shared(protocol, component_sizes(protocol, observers), progress))


def check_not_cut(protocol: MaskedSum, observers: tuple[int, ...]) -> None:
    """Refuse observers who cut somebody off the mask graph as it was drawn: what they learn is known then."""
    sizes = component_sizes(protocol, observers)
    if int(sizes[sizes > 0].min()) < protocol.n - len(observers):
        raise InvalidValue(
            f"fixed_before_draw: on the mask graph that was drawn these {len(observers)} observers do cut parties off, so what "
            "they learn is known and more; account without it"
        )


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
    [0.6481, 0.9405, 0.6814]
    """
    missed, honest = cut_probability(protocol, colluders), fewest_honest(protocol, colluders)
    curve = component_curve(protocol, honest, protocol.attempts)
    factor = np.asarray(protocol.attempts / honest) if protocol.law == "gaussian" else None
    if protocol.mask_graph is None:
        return _guarantee(protocol, curve, factor)
    said_of = (
        *_common(protocol),
        f"the {colluders} who collude, and everybody's number, were fixed before the mask graph was drawn: before anybody could "
        f"foresee its seed ({protocol.mask_seed}), of which SHAKE-256 is as good as random; {protocol.masks} partners each from "
        f"random rings, all orders equally likely; they cut somebody off with a probability of at most {missed:.2g}, which is part "
        "of δ",
    )
    return replace(_guarantee(protocol, with_missed(curve, missed), factor), assumptions=said_of, factor=None)


def with_missed(curve: ProfileCurve, missed: float) -> ProfileCurve:
    """The curve, with the probability added to δ that a mask graph falls apart."""
    formula = None if curve.formula is None else partial(_or_missed, curve.formula, missed)
    return ProfileCurve(curve.epsilons, np.minimum((curve.deltas + missed) * (1 + 4 * UNIT), 1.0), formula)


def _or_missed(formula: Formula, missed: float, numbers: IntArray, epsilon: FloatArray) -> FloatArray:
    return np.minimum((formula(numbers, epsilon) + missed) * (1 + 4 * UNIT), 1.0)


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
    loss = said(component_curve(protocol, size), words, factor=factor if protocol.law == "gaussian" else None)
    return replace(loss, adjacency=adjacency_of(protocol), unit=Unit(protocol.unit))


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
    if protocol.threshold is not None and not is_safe(protocol.n, observers, protocol.threshold):
        least = (protocol.n + observers) // 2 + 1
        way_out = f"; give a threshold of at least {least}" if least <= protocol.smallest_roster else ""
        raise Unsupported(
            f"threshold={protocol.threshold} among {protocol.n} parties is certified against at most "
            f"{2 * protocol.threshold - protocol.n - 1} colluders, not against {observers}: as many could have two different sums "
            f"opened, and learn their difference{way_out or '; allow fewer colluders or absences, or plan several attempts'}"
        )
    return left


def laplace_release_of(protocol: MaskedSum, size: int) -> LaplaceRelease:
    """The same under Laplace noise."""
    return LaplaceRelease(protocol.rate, protocol.parts, size, int(protocol.distance), protocol.dimension)


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
    >>> p = MaskedSum(graphs.ring(16), sigma=0.5, law="laplace", honest=11)
    >>> [round(float(component_curve(p, size).epsilon(0.0)), 3) for size in (16, 11, 8)]
    [0.853, 0.853, 1.503]
    """
    if protocol.law == "laplace":
        return laplace_curve(laplace_release_of(protocol, size), releases)
    return repeated_curve(release_of(protocol, size), releases)


def component_delta(protocol: MaskedSum, size: int, epsilon: FloatArray, releases: int = 1) -> FloatArray:
    """δ at each ε, margins included."""
    if protocol.law == "laplace":
        return np.asarray(component_curve(protocol, size, releases).delta(epsilon))
    return repeated_delta(release_of(protocol, size), releases, epsilon)


def _shared(protocol: MaskedSum, sizes: IntArray, progress: Progress | None) -> tuple[Curve, FloatArray | None]:
    """One curve per size, the parties that have it, and 1/|K|; nothing where the size is 0. Laplace noise has no such factor."""
    kinds = np.unique(sizes[sizes > 0])
    if len(kinds) > _SIZES:
        wanted = np.geomspace(kinds[0], kinds[-1], _SIZES)
        kinds = np.unique(
            kinds[np.maximum(np.searchsorted(kinds, wanted, side="right") - 1, 0)]
        )  # the smallest among them
    times = protocol.attempts
    which = np.where(sizes > 0, np.searchsorted(kinds, sizes, side="right") - 1, -1)
    if protocol.law == "laplace":
        curves = [component_curve(protocol, size, times) for size in kinds.tolist()]
        points = np.unique(np.concatenate([curve.epsilons for curve in curves]))
        return SharedCurve(curve_of_rows(points, [curve.delta for curve in curves], progress), which), None
    points = np.unique(np.concatenate([repeated_points(release_of(protocol, int(size)), times) for size in kinds]))
    rows = [partial(repeated_delta, release_of(protocol, size), times) for size in kinds.tolist()]
    return SharedCurve(curve_of_rows(points, rows, progress), which), factor_of(times, sizes)


def curve_of_rows(
    points: FloatArray, rows: Sequence[Callable[[FloatArray], FloatArray]], progress: Progress | None
) -> ProfileCurve:
    """The curves of some sizes of components, from the δ(ε) of each, tabulated at the same ε."""
    table = []
    for done, row in enumerate(rows, start=1):
        table.append(np.minimum.accumulate(row(points)))
        if progress is not None:
            progress(done, len(rows))
    return ProfileCurve(points, np.stack(table), PerCurve(tuple(rows)))


def factor_of(attempts: int, sizes: IntArray) -> FloatArray:
    """attempts/|K|, the loss of one sum as a multiple of local DP's; nothing where the size is 0."""
    return np.where(sizes > 0, attempts / np.maximum(sizes, 1), np.nan)


def _guarantee(protocol: MaskedSum, curve: Curve, factor: FloatArray | None) -> Guarantee:
    return Guarantee(
        curve=curve,
        adjacency=adjacency_of(protocol),
        unit=Unit(protocol.unit),
        claim=Claim.UPPER,
        assumptions=assumptions(protocol),
        references=REFERENCES,
        factor=factor,
    )


def adjacency_of(protocol: MaskedSum | MaskedDescent) -> Adjacency:
    """A record comes or goes; a party's data are replaced."""
    return Adjacency.ADD_REMOVE if protocol.unit == "record" else Adjacency.REPLACE


def _coordinates(dimension: int) -> str:
    return "one coordinate" if dimension == 1 else f"at most {dimension:,} coordinates"


def assumptions(protocol: MaskedSum) -> tuple[str, ...]:
    """What must hold for the number to hold."""
    if protocol.mask_graph is None:
        return (*_common(protocol), ALL_PAIRS)
    return (*_common(protocol), THIS_COALITION)


def pads_and_noise(protocol: MaskedSum) -> tuple[str, str]:
    """What must hold of pads and of everybody's noise."""
    pads = (
        "a pad is uniform, known to its two ends only, used once and never revealed: computational, as good as the key "
        "agreement and the stream cipher that pads come from"
    )
    if protocol.threshold is not None:
        pads = (
            "a pad, and the second mask of a contribution, is uniform, used once, and revealed as the rules of the one attempt say "
            "and not otherwise: computational, as good as the key agreement, the stream cipher, the signatures and the hash "
            "function that it rests on"
        )
    if protocol.law == "laplace":
        return (
            pads,
            f"to every coordinate an honest party adds its own share of Laplace noise, A − B for two negative binomial numbers "
            f"NB(1/{protocol.parts}, e^−r), r = {protocol.rate} per grid step, drawn exactly, from a cryptographic source; a "
            "simulation with NumPy's generators protects nobody",
        )
    return (
        pads,
        f"to every coordinate an honest party adds its own discrete Gaussian of parameter σ² = {protocol.share} squared grid "
        "steps, drawn exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
    )


def _common(protocol: MaskedSum) -> tuple[str, ...]:
    """What must hold against any coalition."""
    columns, limit = _coordinates(protocol.dimension), f"{protocol.sensitivity:g}"
    norm = f"L{norm_order(protocol)} norm"
    rule = f"each coordinate x becomes ⌊x/g + ½⌋, g = {protocol.step!r}, and by no other rule"
    held = ""
    if protocol.unit == "record" and protocol.law == "laplace" and protocol.dimension > 1:
        held = f", and is taken back by single steps where a record comes to more than {protocol.distance:,} steps"
    if protocol.unit == "record":
        values = (
            f"a record has {columns} and an {norm} of at most {limit} (clip before rounding); {rule}{held}; a party's value is "
            "the sum of its rounded records, and nothing else that it sends or does depends on how many there are"
        )
    else:
        values = f"two values of one party have {columns} and differ by at most {limit} in {norm} (clip before rounding); {rule}"
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
    if protocol.threshold is not None:
        often = _one_attempt(protocol)
    elif protocol.attempts > 1 or protocol.absent:
        often += (
            f"; and only among a roster of at least {protocol.smallest_roster} parties to which all of them have agreed, each to "
            "one roster per attempt; pads are bound to attempt and roster"
        )
    return (
        values,
        often,
        "values are fixed before the first of them is published; the coalition may do what it likes",
        *pads_and_noise(protocol),
        "graphs, grid, modulus and noise level are public",
    )


def _one_attempt(protocol: MaskedSum) -> str:
    """What the proof of the one attempt uses: docs/proofs/masked.md#one-attempt."""
    t, n = protocol.threshold, protocol.n
    return (
        f"every party outside the coalition contributes at most once, under keys and seeds that are fresh, random and erased as "
        f"soon as the rules allow; it has checked its shares of everybody's secrets, any {t} of {n} of which open one; it locks "
        f"its ballot on one set of at least {protocol.smallest_roster} contributions, names each by its hash, and reveals, for the "
        f"set that {t} parties have sealed, of each member one of two secrets, and for no other set anything; the coalition has "
        f"at most {2 * protocol.threshold - n - 1 if protocol.threshold else 0} members, and may own the network"
    )


realised.refuse(
    MaskedDescent,
    why="its loss is the same in any order of arrival, after any loss or repetition; account without transcript",
)


@realised.register
def _realise_masked(protocol: MaskedSum, transcript: Any) -> MaskedSum:
    """Its loss is the same in any order of arrival, after any loss or repetition: any transcript will do."""
    if not isinstance(transcript, Transcript) or transcript.n != protocol.n:
        raise _unlike(protocol, transcript)
    return protocol
