"""A walk with a secret path, cut into pieces that the observers are shown: what each piece is worth, and how many there are.

The steps at which O holds the token are public and independent of data, each with probability w. Between them lie
*stretches*, of which O sees only the sums (of fixed contributions with Gaussian noise). We go along the walk and decide at
each point, from what is public so far and from the number R of steps left, what is shown next:

**Blocks.** As long as R ≥ 2g: the sum of the next g steps, or of the r < g steps before the next visit of O. That visit is at
r with probability w(1−w)^r, whatever happened before: a public fact, averaged over (`block_cut`). A block takes at most g
steps, so R ≥ g after it. The number of blocks is at most B except with probability 10⁻¹⁵ (Chernoff on the steps they take).

**Openings**, if e ≥ 1 contributions of a stretch are known by name: e = 1 if an observer that passes the token on knows the
receiver, which makes the first contribution; e = 2 if it also knows from whom it gets the token, who made the last one. At
the beginning and after every visit of O, as long as R ≥ a + g: the next a > e steps, or the m < a before the next visit. The
users of a stretch are drawn independently, so the names are public facts that tell nothing of the other contributions; a sum
does not depend on the order, so think of the last as made second, wherever the stretch ends. How many of the known ones are
u's, f, is averaged over. If m ≤ e, all m are known: f ~ Binomial(m, q), a Gaussian shift of fΔ/(σ√m). If m > e, f ~
Binomial(e, q). f = 0: the sum of the m steps is e values that do not depend on u's data and m − e hidden contributions in the
noise of m, at most a block of m. f ≥ 1: tell also how often u is among the hidden ones, k: a Gaussian shift of (f + k)Δ/(σ√m).
(With values that change with the step: tell when O holds the token, all through the walk, first. These times do not depend on
data; given them, an opening is the sum of the first step, the last, and the next ones. What is counted of it depends on the
times through m only, as before, so the mean over the times is the same.)
Blocks continue after an opening. Neither the first contribution of the walk nor, unless the release names it, the last is
known; they are counted all the same.

**The ending.** When fewer steps are left than blocks and openings need, g ≤ R < max(2g, a + g) or all T if T is small, it
depends on the number v of visits of O among them. v = 0: one more block. v = 1: two blocks; the place of the visit is
uniform, so the shorter has s steps with weight at most 2w for each s; δ of two views at ε is at most δ₁(θε) + δ₂((1−θ)ε) for
any θ. v ≥ 2: v+1 blocks, with (v+1)w^v·C(R−1−a, v−1) as weight of the length a, each at ε/(v+1). If anything of the path is
known, be it ends of stretches or who made the last step (a named release; R ≥ 1, so the last step is always in the ending),
all of it is told instead: k contributions of u shift a sum of m steps by kΔ in noise of variance m; if u is in one of the
sums only, that one counts; if in several, which needs one more visit of u, at most Rq, their δ at ε/(v+1) add up.

Showing sums of parts instead of the whole, and telling more, only helps the observers, so all this bounds their view.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.numerics.binomial import beyond, visits

from .events import Event, Profile
from .sampled import Shift, block, mixture

_SPLITS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of ε between two views
_EVERY = 16

UNLIKELY = 1e-15
"""The probability of each thing that is assumed not to happen; added to δ."""


def single_steps(shift: Shift, q: float, w: float, steps: int) -> Event:
    """Every step shown by itself (g = 1): exactly `steps` of them, no ending."""
    one = block(shift, q, 1)
    return Event(lambda eps: (1 - w) * one(eps), steps)


def blocks(shift: Shift, q: float, w: float, steps: int, size: int) -> Event:
    """Blocks of `size` steps, as many as there can be but for 10⁻¹⁵."""
    return Event(block_cut(shift, q, w, size), most_blocks(steps, size, w))


def block_cut(shift: Shift, q: float, w: float, size: int) -> Profile:
    """A block of `size` steps, or of fewer if a visit of O ends it."""
    parts = [((1 - w) ** size, block(shift, q, size))]
    for first, last in bins(1, size - 1):
        parts.append(((1 - w) ** first - (1 - w) ** (last + 1), block(shift, q, first, last)))
    return mean(parts)


def opening(shift: Shift, q: float, w: float, size: int, known: int) -> Profile:
    """The first `size` > known steps of a stretch of which `known` contributions are known by name, or all of it."""
    mus, weights = [], []
    for m in range(1, known + 1):  # known entirely; a stretch of no steps reveals nothing
        for f, chance in zip(range(1, m + 1), _named(m, q), strict=True):
            mus.append(f * shift.near / math.sqrt(m))
            weights.append(w * (1 - w) ** m * chance)
    parts: list[tuple[float, Profile]] = []
    for first, last in [*bins(known + 1, size - 1), (size, size)]:
        chance = (1 - w) ** first - (0.0 if first == size else (1 - w) ** (last + 1))
        parts.append((chance * (1 - q) ** known, block(shift, q, first, last)))
        k, among = visits(last, q)
        for f, named in zip(range(1, known + 1), _named(known, q), strict=True):
            mus += list(shift.near * (f + k) / math.sqrt(first))
            weights += list(chance * named * among)
    return mean([*parts, (1.0, mixture(np.array(mus), np.array(weights)))])


def _named(count: int, q: float) -> list[float]:
    """The probabilities that 1, 2, … `count` of so many contributions, known by name, are u's."""
    return [math.comb(count, f) * q**f * (1 - q) ** (count - f) for f in range(1, count + 1)]


def ending(shift: Shift, q: float, w: float, shortest: int, longest: int, *, hidden: bool) -> tuple[Profile, float]:
    """The last R steps, shortest ≤ R ≤ longest; and the probability of more visits of O than are treated.

    hidden : nothing is known of the path; else all of it is told.
    """
    often = 1
    while often < 60 and beyond(often, longest, w) > 1e-17:
        often += 1
    parts = _hidden_ending if hidden else _told_ending
    profile = parts(shift, q, w, shortest, longest, often)
    return (lambda eps: np.minimum(profile(eps), 1.0)), beyond(often, longest, w)


def _hidden_ending(shift: Shift, q: float, w: float, shortest: int, longest: int, visits_of_o: int) -> Profile:
    """Blocks between v ≤ `visits_of_o` visits, nothing told."""
    quiet = [(first, block(shift, q, first, last)) for first, last in bins(shortest, longest)]
    pairs = []
    for first, last in bins(0, max(0, (longest - 1) // 2)):  # the shorter of two
        longer = block(shift, q, max(1, first, shortest - 1 - last), max(1, longest - 1 - first))
        shorter = block(shift, q, first, last) if first else None
        pairs.append((2 * w * (last - first + 1), shorter, longer))
    lengths = bins(1, max(1, longest - 2), 1.5)
    pieces = [block(shift, q, first, last) for first, last in lengths]
    weights = [(v + 1, _weights(w, v, longest, lengths)) for v in range(2, visits_of_o + 1)]

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.max([(1 - w) ** first * part(eps) for first, part in quiet], axis=0)
        for chance, shorter, longer in pairs:
            if shorter is None:
                total = total + chance * longer(eps)
                continue
            total = total + chance * _split(shorter, longer, eps)
        for count, chances in weights:
            for chance, piece in zip(chances, pieces, strict=True):
                total = total + (chance * piece(eps / count) if chance > 1e-22 else chance)
        return total

    return profile


def _split(shorter: Profile, longer: Profile, eps: FloatArray) -> FloatArray:
    """δ₁(θε) + δ₂((1−θ)ε), θ being the best of some at the nearest of every sixteenth ε: any choice is sound."""

    def both(share: Any, at: FloatArray) -> FloatArray:
        return np.asarray(shorter(share * at) + longer((1 - share) * at))

    if len(eps) <= _EVERY:
        return np.asarray(np.min([both(share, eps) for share in _SPLITS], axis=0))
    places = np.append(np.arange(0, len(eps) - 1, _EVERY), len(eps) - 1)
    best = np.argmin([both(share, eps[places]) for share in _SPLITS], axis=0)
    after = np.minimum(np.searchsorted(places, np.arange(len(eps))), len(places) - 1)
    right, left = np.asarray(_SPLITS)[best[after]], np.asarray(_SPLITS)[best[np.maximum(after - 1, 0)]]
    total = both(right, eps)
    if (between := left != right).any():
        total[between] = np.minimum(total[between], both(left[between], eps[between]))
    return total


def _told_ending(shift: Shift, q: float, w: float, shortest: int, longest: int, visits_of_o: int) -> Profile:
    """The path told, v ≤ `visits_of_o` visits."""
    near = shift.near
    quiet = []
    for first, last in bins(shortest, longest):
        k, among = visits(last, q)
        quiet.append(mixture(k * near / math.sqrt(first), (1 - w) ** first * among))
    mus, weights = [], []
    for first, last in bins(0, max(0, (longest - 1) // 2)):  # the shorter of two parts
        k, among = visits(last, q)
        other = max(1, first, shortest - 1 - last)
        l, beside = visits(longest - 1 - first, q)  # noqa: E741  as k
        energy = (k[:, None] ** 2 / first if first else np.zeros((len(k), 1))) + l[None, :] ** 2 / other
        mus.append(near * np.sqrt(energy).ravel())
        weights.append(2 * w * (last - first + 1) * np.outer(among, beside).ravel())
    once = mixture(np.concatenate(mus), np.concatenate(weights), 1e-22)
    anywhere = -math.expm1(longest * math.log1p(-q)) if q < 1 else 1.0
    lengths = bins(1, max(1, longest - 2), 1.5)
    inside = [visits(last, q) for _, last in lengths]
    sizes = np.concatenate(
        [k[1:] * near / math.sqrt(first) for (first, _), (k, _) in zip(lengths, inside, strict=True)]
    )
    totals, several = np.zeros(len(sizes)), []
    for v in range(2, visits_of_o + 1):
        chances = _weights(w, v, longest, lengths)
        weight = np.concatenate([chance * among[1:] for chance, (_, among) in zip(chances, inside, strict=True)])
        totals += weight
        several.append((v + 1, mixture(sizes, anywhere * weight, 1e-22)))
    often = mixture(sizes, totals, 1e-22)

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.max([part(eps) for part in quiet], axis=0) + once(eps) + often(eps)
        for parts, piece in several:
            total = total + piece(eps / parts)
        return total

    return profile


def _weights(w: float, v: int, longest: int, lengths: list[tuple[int, int]]) -> list[float]:
    """(v+1)w^v·C(R−1−a, v−1) added up over ranges of a, at the longest R."""
    from scipy.special import comb

    scale = (v + 1) * w**v
    return [scale * float(np.sum(comb(longest - 1 - np.arange(a, b + 1), v - 1))) for a, b in lengths]


def mean(parts: list[tuple[float, Profile]]) -> Profile:
    """Profiles averaged over a public fact."""

    def profile(eps: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([chance * part(eps) for chance, part in parts], axis=0)
        return total

    return profile


def bins(first: int, last: int, ratio: float = 1.3) -> list[tuple[int, int]]:
    """first … last cut into ranges whose ends are about `ratio` apart.

    >>> bins(0, 9)
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (6, 7), (8, 9)]
    """
    edges, start = [], first
    while start <= last:
        end = min(last, max(start, int(start * ratio)))
        edges.append((start, end))
        start = end + 1
    return edges


@functools.lru_cache(maxsize=1024)
def most_blocks(steps: int, size: int, w: float) -> int:
    """B with P(the first B blocks cover fewer than `steps` steps) ≤ UNLIKELY.

    A block takes `size` steps, or r + 1 ≤ size if a visit ends it after r. Chernoff: P(ΣX < T) ≤ e^{sT}(E e^{−sX})^B.
    """
    r = np.arange(size)
    taken = np.append(r + 1, size).astype(np.float64)
    chance = np.append(w * (1 - w) ** r, (1 - w) ** size)

    def unlikely(count: int) -> bool:
        rates = np.geomspace(1e-6, 10, 120) / size
        logs = rates * steps + count * np.log(np.exp(-np.outer(rates, taken)) @ chance)
        return bool(np.min(logs) <= math.log(UNLIKELY))

    low, high = steps // size, 2 * (steps // size + 10)
    while not unlikely(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if unlikely(middle) else (middle, high)
    return min(high, steps)


def gap_mixture(near: float, chance: float) -> Profile:
    """One contribution, covered by the noise of the steps until the next visit of u or O: a geometric gap, told."""
    mus, weights = [], []
    longest = math.ceil(60 / chance)
    for first, last in bins(1, longest, 1.02):
        mus.append(near / math.sqrt(first))
        weights.append((1 - chance) ** (first - 1) - (1 - chance) ** last)
    mus.append(near / math.sqrt(longest))
    weights.append((1 - chance) ** longest)
    return mixture(np.array(mus), np.array(weights))


def gap_profile(covered: list[tuple[int, Profile]], chance: float) -> Profile:
    """The same for any cover: `covered` holds gaps l₁ = 1 < l₂ < … and the profile that holds from each of them on."""
    parts = []
    for (first, part), following in zip(covered, [*(start for start, _ in covered[1:]), None], strict=True):
        beyond = 0.0 if following is None else (1 - chance) ** (following - 1)
        parts.append(((1 - chance) ** (first - 1) - beyond, part))
    return mean(parts)


__all__ = [
    "UNLIKELY", "bins", "block_cut", "blocks", "ending", "gap_mixture", "gap_profile", "mean", "most_blocks",
    "opening", "single_steps",
]  # fmt: skip
