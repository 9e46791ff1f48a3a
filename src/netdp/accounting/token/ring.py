"""A certified bound for the histogram on a ring: randomized responses heaped up between the observers' visits.

**What is seen.** As for sums (`netdp.views.token`), observers O see the increments of the token between their visits: each
is the *histogram*, an unordered heap, of the responses of the users between two observers. The heap before O's first visit
also holds the ⌈γn⌉ random elements that the token started with, unless user 0, who put them there, is in O. The heap after
O's last visit, seen when the token is released, also holds the closing blanket, unless its author n−1 is in O (then there is
no such heap). Heaps share no response and no random element: they are independent. Every user outside O has one response in
each of exactly K heaps.

**One heap.** It holds u's response, `others` further responses and `sure` uniform elements. Others' data are fixed. A
response is the true value with probability 1−γ and else uniform over all L. Tell the observers which of the other responses
were not random, and what they were: being told can only add to what they learn. What is left is u's response among B
uniform elements, B = Binomial(others, γ) + sure, with B known: δ(ε) ≤ E_B[δ of one response among B uniform draws], with
`netdp.accounting.heap.clones.response_profile` for each B. The
number B must be told: the counts of the two values in question alone are not enough, for the other L−2 counts say something
about how many of the others were random.

**Unary encoding.** A report is L independent bits, each a fair coin with probability γ. Under u's two values only the bits of
these two differ, and bits of one report are independent: what is seen of them is two heaps of binary responses, u's among the
others' and the sure elements' (fair coins) in each, and the other L − 2 counts say nothing of u. So δ is that of two heaps with
L = 2, composed.

**All heaps.** They are independent, so their profiles compose (`ProfileCurve.compose`); neighbouring inputs may differ in all
K values of u, each pair of values has the same profile by symmetry. Besides, the K responses are Kε₀-DP whatever hides them.

The claim is "upper": telling the observers more can only add to what they know.
"""

from __future__ import annotations

import math

import numpy as np

from netdp.accounting.heap.clones import response_profile
from netdp.accounting.table import certified
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import Law
from netdp.privacy import Adjacency, Claim, Guarantee, ProfileCurve
from netdp.protocols.ring import RingHistogram
from netdp.views import observer_set
from netdp.views.token import ring_path

REFERENCES = (
    "netdp, docs/guarantees.md#known-path: heaps of randomized responses between visits.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS, 2022.",
    "V. Feldman, A. McMillan, K. Talwar. Hiding Among the Clones. FOCS, 2021.",
)
# A profile is cut where δ has fallen to this: the rest of the ε axis would only coarsen the grid of losses.
_NOTHING = 1e-24
# The number B of random elements is taken in bins of a standard deviation over this.
_PER_DEVIATION = 4
# Cells of the grid of losses for the profile of one heap, and knots of the result (fewer where there are many users).
_CELLS, _KNOTS = 2048, 512


def heaps(protocol: RingHistogram, observers: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The kinds of heaps, rows (other responses, sure random elements), and how many of each kind every user is in.

    >>> kinds, times = heaps(RingHistogram(5, rounds=3, domain=2, gamma=0.4), (3,))
    >>> kinds.tolist(), times[0].tolist(), times[4].tolist()       # user 0: the first heap, then two full rounds
    ([[0, 2], [2, 2], [3, 0]], [0, 1, 2], [1, 0, 2])
    """
    path = ring_path(protocol)
    own = np.zeros(protocol.n, dtype=bool)
    own[list(observers)] = True
    secret = ~own[path]
    place = np.cumsum(~secret)
    size = np.bincount(place[secret], minlength=int(place[-1]) + 1)
    sure = np.zeros(len(size), dtype=np.int64)
    if secret[0]:
        sure[0] += protocol.blanket
    if secret[-1] and protocol.closing:
        sure[-1] += protocol.closing_blanket
    kinds, kind = np.unique(np.column_stack([size - 1, sure]), axis=0, return_inverse=True)
    times = np.zeros((protocol.n, len(kinds)), dtype=np.int64)
    np.add.at(times, (path[secret], kind.ravel()[place[secret]]), 1)
    used = times.any(axis=0)
    return kinds[used], times[:, used]


@certified.register
def _ring_histogram(protocol: RingHistogram, observers: tuple[int, ...]) -> Guarantee:
    members = observer_set(protocol.n, observers)
    kinds, times = heaps(protocol, members)
    singles = [
        heap_profile(int(others), int(sure), protocol.domain, protocol.gamma, protocol.response)
        for others, sure in kinds
    ]
    hidden = times.any(axis=1)
    rows, which = np.unique(times[hidden], axis=0, return_inverse=True)
    curves = [_composed(protocol, singles, row) for row in rows]
    epsilons, table = _common(curves, protocol.n)
    deltas = np.full((protocol.n, len(epsilons)), np.nan)
    deltas[hidden] = table[which.ravel()]
    return Guarantee(
        curve=ProfileCurve(epsilons, deltas),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            "the ring is public; the token is readable by its holder alone until it is released, then by everybody",
            "all users follow the protocol to its end; the observers pool their own data, answers and all they read",
            "values are fixed beforehand, one for every visit, and do not react to the token",
            "the starting blanket is known to user 0 alone"
            + (
                f", the closing one to user {protocol.n - 1} alone" if protocol.closing else "; there is no closing one"
            ),
        ),
        references=REFERENCES,
    )


def heap_profile(others: int, sure: int, domain: int, gamma: float, response: str = "k-ary") -> ProfileCurve:
    """δ(ε) of one response among `others` responses and `sure` uniform elements: E_B[δ among B uniform elements].

    B = Binomial(others, γ) + sure is taken in bins, each with the δ of its lower end: δ falls with B, for one more
    element in the heap is post-processing. What lies outside the window of the law counts as if nothing hid u at all.

    >>> print(f"{heap_profile(999, 500, 5, 0.5).epsilon(1e-6):.3f}")
    0.189
    """
    if response == "unary":
        bit = heap_profile(others, sure, 2, gamma)
        return bit if gamma == 1 else bit.self_compose(2, float(bit.epsilons[-1]) / _CELLS)
    if gamma == 1 or others == 0:
        return response_profile(0, domain, gamma, sure=sure)
    mean, deviation = others * gamma, math.sqrt(others * gamma * (1 - gamma))
    width = max(1, int(deviation / _PER_DEVIATION))
    law = Law.binomial(others, gamma)
    starts = np.arange(law.low, law.low + len(law.chance), width)
    weights = np.add.reduceat(law.chance, starts - law.low) * (1 + 16 * UNIT * (law.steps + 64))
    epsilons = response_profile(0, domain, gamma, sure=sure + int(mean)).epsilons
    bare = response_profile(0, domain, gamma)
    epsilons = np.union1d(epsilons, bare.epsilons)
    total = np.asarray(bare.delta(epsilons)) * law.outside
    for start, weight in zip(starts.tolist(), weights.tolist(), strict=True):
        curve = response_profile(0, domain, gamma, sure=sure + start, epsilons=epsilons)
        total += weight * np.asarray(curve.delta(epsilons))
    return ProfileCurve(epsilons, np.minimum(np.minimum.accumulate(total), 1.0))


def _trimmed(curve: ProfileCurve) -> ProfileCurve:
    """Without the points beyond the first δ that is next to nothing: the profile is constant there, which is sound."""
    small = np.flatnonzero(curve.deltas <= _NOTHING)
    end = int(small[0]) + 1 if small.size else len(curve.epsilons)
    return ProfileCurve(curve.epsilons[:end], curve.deltas[:end])


def _composed(protocol: RingHistogram, singles: list[ProfileCurve], times: IntArray) -> ProfileCurve:
    """The profile of all heaps a user is in, with the pure bound Kε₀ as its last point."""
    parts = [(_trimmed(curve), int(k)) for curve, k in zip(singles, times, strict=True) if k]
    if all(curve.epsilons[-1] == 0 and curve.deltas[-1] == 0 for curve, _ in parts):
        return ProfileCurve([0.0], [0.0])  # γ = 1
    step = max(float(curve.epsilons[-1]) for curve, _ in parts) / max(16, min(_CELLS, 2_000_000 // int(times.sum())))
    total: ProfileCurve | None = None
    for curve, k in parts:
        power = curve.self_compose(k, step)
        total = power if total is None else _trimmed(total).compose(_trimmed(power), step)
    assert total is not None
    pure = protocol.rounds * protocol.epsilon0 * (1 + 1e-12)
    below = total.epsilons < pure
    return ProfileCurve(np.append(total.epsilons[below], pure), np.append(total.deltas[below], 0.0))


def _common(curves: list[ProfileCurve], n: int) -> tuple[FloatArray, FloatArray]:
    """Few common ε for all curves: bounds between two of them lie on the chord, so dropping points is sound."""
    knots = max(32, min(_KNOTS, 40_000_000 // n) // len(curves))
    chosen = [np.zeros(1)]
    for curve in curves:
        telling = int(np.count_nonzero(curve.deltas > _NOTHING))
        picked = np.unique(np.linspace(0, min(telling, len(curve.epsilons) - 1), knots).round().astype(np.int64))
        chosen += [curve.epsilons[picked], curve.epsilons[-1:]]
    epsilons = np.unique(np.concatenate(chosen))
    table = np.stack([np.asarray(curve.delta(epsilons)) for curve in curves])
    return epsilons, np.minimum.accumulate(table, axis=1)
