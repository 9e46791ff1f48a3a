"""What one randomized report reveals when it is shuffled uniformly among others (docs/proofs/shuffle.md#shuffled-heap).

Whatever the ε₀-DP randomizer, the victim's bit hides among Binomial(n − 1, 2/(e^ε₀ + 1)) fair coins: the others' reports that
are a draw from a law common to all, whatever their data. `Heap` computes δ(ε) of that, averaged over the number of coins,
which is taken in narrow bins, each with the δ of its lower end; rounding is added.

Words: a *heap* is a set of reports without names and in no order. The *victim* is the user in question. Something is
*revealed* if the proof gives it to the observer for nothing. A *symbol* is a report for one of the victim's two values, a
*blank* one that speaks for neither. The laws of the counts are those of `netdp.numerics.binomial`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.binomial import Law, sum_of
from netdp.numerics.checks import between, non_negative, whole
from netdp.privacy.profile import ProfileCurve

_BIN = 2e-4  # relative width of a bin of s: moves ε by at most half of that

_BIN_TOTAL, _BIN_BLANK = 2e-3, 1e-3  # the same, of T and of s, where blanks are counted

_MANY = 4000  # more bins than these are put together, those of one s …

_NODE, _UP = 0.02, 1e-11  # … at log-steps of w; more than the rounding of a share of such a step

_OUTSIDE_BLANK, _LIGHT = 1e-24, 1e-26  # and there windows are narrower, and cells lighter than this are not looked into


@dataclass(frozen=True)
class Coins:
    """Bin(s − 1, ½) for several s: g[k] and its upper tails G[k], one part of the arrays per s."""

    s: IntArray
    start: IntArray  # where the part of s begins …
    first: IntArray  # … and which k that is
    last: IntArray  # the last k held; `beyond` bounds the mass of A ≥ last + 1, 0 if there is none
    beyond: FloatArray
    g: FloatArray
    G: FloatArray
    steps: int

    @classmethod
    def of(cls, sizes: IntArray) -> Coins:
        chances, tails, first, last, beyond, steps = [], [], [], [], [], 0
        for s in sizes.tolist():
            N = s - 1
            centre = (N + 1) // 2
            low = max(0, N // 2 - 4)
            high = min(N, math.ceil(N / 2 + 7.0 * math.sqrt(N)) + 60)
            k = np.arange(low, high)
            g = np.concatenate([[1.0], np.cumprod((N - k) / (k + 1.0))])
            upper = g[centre - low :]
            whole = 2 * upper[::-1].sum() - (upper[0] if N % 2 == 0 else 0.0)  # by symmetry
            g /= whole
            ratio = (N - high) / (high + 1.0)
            chances.append(g)
            tails.append(np.append(np.cumsum(g[::-1])[::-1][1:], 0.0))  # P(coins ≥ k + 1)
            first.append(low)
            last.append(high)
            beyond.append(0.0 if high == N else g[-1] / (1 - ratio))
            steps = max(steps, len(g))
        lengths = np.array([len(g) for g in chances], dtype=np.int64)
        return cls(
            sizes,
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
            np.array(first, dtype=np.int64),
            np.array(last, dtype=np.int64),
            np.array(beyond),
            np.concatenate(chances),
            np.concatenate(tails),
            steps,
        )

    def deltas(self, which: IntArray, w: FloatArray, epsilon0: float, eps: FloatArray) -> FloatArray:
        """δ for the sizes s[which], the victim's symbol there with probability w, at every ε < ε₀: (len(which), len(eps))."""
        own = 1.0 / (1.0 + math.exp(-epsilon0))
        tilt = math.tanh(epsilon0 / 2)
        grow = np.expm1(eps)
        s, w = self.s[which][:, None], w[:, None]
        share = (own * grow + tilt)[None, :] + (1 - w) * grow / (2 * w)  # e^ε·own − (1 − own), blanks added
        at = np.ceil(s * share / (tilt * (2 + grow)))
        gain_symbol, cost_blank = w * own * -np.expm1(eps - epsilon0), (1 - w) * grow / 2
        margin = 8 * UNIT * (self.steps + 16)
        best = np.zeros_like(at)
        start, first, last = self.start[which][:, None], self.first[which][:, None], self.last[which][:, None]
        beyond = self.beyond[which][:, None]
        # any event is a lower bound and the best of all is δ; its neighbours are tried because `at` is rounded
        for shift in (-1, 0, 1):
            k = np.minimum(at + shift, 4e18).astype(np.int64) - 1
            inside = np.clip(k, first, last)
            g, G = self.g[start + inside - first], self.G[start + inside - first]
            value = g * (gain_symbol - cost_blank) - grow * G
            value += margin * (g * (gain_symbol + cost_blank) + grow * G)
            np.maximum(best, np.where(k > last, beyond, np.where(k < first, 0.0, value)), out=best)
        return np.minimum(best, w * own * -np.expm1(eps - epsilon0))


class Cells(NamedTuple):
    """Bins of the number s of symbols in a heap, the victim's included; each is taken at its lower end."""

    sizes: IntArray
    """The different lower ends."""
    which: IntArray
    """Bin j has the lower end sizes[which[j]]."""
    weight: FloatArray
    """The probability of bin j; where blanks are revealed, of bin j and a victim with a symbol."""
    symbol: FloatArray
    """At most this is the probability that the victim has a symbol, given bin j."""
    missing: float
    """The probability outside of all bins: there the local δ counts."""
    relative: float
    """The relative rounding error of the weights."""


NO_CELLS = Cells(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 1.0, 0.0)
"""Nobody else in the heap."""


def symbol_cells(law: Law, symbol: float) -> Cells:
    """Bins of the number of symbols, the victim's included; a victim without one is revealed."""
    first, _, mass = law.bins(_BIN, 1)
    relative = 16 * UNIT * (law.steps + 64)
    return Cells(first + 1, np.arange(len(first)), mass * symbol, np.ones(len(first)), law.outside, relative)


def blank_cells(total: Law, p: float, nu: float, sure: int, symbol: float) -> Cells:
    """Bins of the number T of elements in the heap, `total` and `sure` together, and in each of the number s of symbols."""
    T, _, mass = total.bins(_BIN_TOTAL, sure + 1)
    T = T + sure
    rest, missing, steps = 1 - symbol, total.outside, 0
    sizes, weights, chances = [], [], []
    for count, chance in zip(T.tolist(), mass.tolist(), strict=True):
        law = Law.binomial(count, 2 * p / (2 * p + nu), _OUTSIDE_BLANK)
        # s = the others' symbols, plus one if the victim has one
        both = np.append(law.chance, 0.0) * rest + np.insert(law.chance, 0, 0.0) * symbol
        first, last, part = Law(law.low, both, law.outside, law.steps).bins(_BIN_BLANK, 0)
        seen = last > 0
        first, last, part = np.maximum(first[seen], 1), last[seen].astype(np.float64), part[seen]
        sizes.append(first)
        weights.append(part * chance)
        chances.append(symbol * last / (symbol * last + 2 * rest * (p / nu) * np.maximum(count + 1 - last, 0)))
        missing += law.outside * chance
        steps = max(steps, law.steps)
    size, weight, w = np.concatenate(sizes), np.concatenate(weights), np.concatenate(chances)
    heavy = weight > _LIGHT
    missing += float(weight[~heavy].sum())
    every, which = np.unique(size[heavy], return_inverse=True)
    which, weight, w = which.astype(np.int64), weight[heavy], w[heavy]
    if len(which) > _MANY:
        which, weight, w = on_nodes(which, weight, w)
    relative = 16 * UNIT * (total.steps + steps + len(T) + 64)
    return Cells(every, which, weight, w, missing, relative)


def on_nodes(which: IntArray, weight: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Bins of one size put together at few values of w, each between the two next to it so that the mean of w stays.

    δ is the largest of functions that are linear in w, hence convex: the chord that this reads it along lies above it. The part of
    the upper value is rounded up, as δ grows with w.

    >>> which, weight, w = on_nodes(np.array([7]), np.array([1.0]), np.array([0.985]))
    >>> which.tolist(), f"{weight @ w:.9f}"
    ([7, 7], '0.985000000')
    """
    node = np.floor(-np.log(w) / _NODE)
    node = np.maximum(node - (np.exp(-_NODE * node) < w), 0.0)
    upper, lower = np.exp(-_NODE * node), np.exp(-_NODE * (node + 1))
    share = np.clip((w - lower) / (upper - lower) + _UP, 0.0, 1.0)
    most = int(node.max(initial=0.0)) + 2
    key = np.concatenate([which * most + node.astype(np.int64), which * most + node.astype(np.int64) + 1])
    keys, place = np.unique(key, return_inverse=True)
    together = np.bincount(place, weights=np.concatenate([weight * share, weight * (1 - share)]))
    return (keys // most).astype(np.int64), np.asarray(together), np.asarray(np.exp(-_NODE * (keys % most)))


_LARGEST_EPSILON0 = 600.0

_TOLERANCE = 3e-4  # relative, of ε read off a chord instead of computed


def shuffled_profile(
    others: int,
    epsilon0: float,
    *,
    epsilons: ArrayLike | None = None,
    **makeup: Any,
) -> ProfileCurve:
    """δ(ε) of one report shuffled uniformly among `others` reports of the same ε₀-DP randomizer.

    `epsilons` says where δ is wanted; by default knots that make ε(δ) exact within 0.1 % for δ from 1e-16 to 0.1.
    `makeup` is what else the heap is made of: the keywords of `Heap.of`.

    >>> curve = shuffled_profile(9497, 1.0)
    >>> print(f"{curve.epsilon(2e-6):.4f} {curve.epsilon(0.0):.1f}")
    0.0421 1.0
    """
    return _checked_heap(others, epsilon0, makeup).profile(epsilons)


def shuffled_epsilon(others: int, epsilon0: float, delta: float, **makeup: Any) -> float:
    """The least ε with δ(ε) ≤ δ, computed directly and rounded up; inf if there is none (δ < δ₀). `makeup`: see `Heap.of`.

    >>> print(f"{shuffled_epsilon(9497, 0.5, 2e-6):.4f} {shuffled_epsilon(9497, 2.0, 2e-6):.4f}")
    0.0175 0.1121
    """
    return _checked_heap(others, epsilon0, makeup).epsilon(between("delta", delta, 0.0, 1.0))


def _checked_heap(others: int, epsilon0: float, makeup: dict[str, Any]) -> Heap:
    """`Heap.of`, an unknown keyword refused by name."""
    known = inspect.signature(Heap.of).parameters
    for name in makeup:
        if name not in known:
            raise InvalidValue(f"a heap knows no {name!r}; it is made of {', '.join(known)}")
    return Heap.of(others, epsilon0, **makeup)


def of_response(domain: int, epsilon0: float) -> dict[str, float]:
    """What a heap of L-ary randomized responses is made of, for `Heap.of`: p, q and the blanks of the other L − 2 values.

    With two values nothing: binary response is what every ε₀-DP randomizer is taken for.

    >>> made = of_response(4, math.log(5))                       # 5/8 the own value, 1/8 each other one
    >>> [round(made[name], 6) for name in ("p", "q", "blank")]
    [0.125, 0.625, 0.25]
    """
    if domain == 2:
        return {}
    down = math.exp(-epsilon0)
    every = 1 + (domain - 1) * down
    return {"p": down / every, "q": 1 / every, "blank": (domain - 2) * down / every}


def of_variation(variation: float, epsilon0: float) -> dict[str, float]:
    """The same of any ε₀-DP randomizer whose laws are at most so far apart in total variation (docs/proofs/shuffle.md#variation).

    Binary response is the worst, of tanh(ε₀/2); from there on this says nothing.

    >>> made = of_variation(0.2, math.log(3))
    >>> [round(made[name], 6) for name in ("p", "q", "blank")]
    [0.1, 0.3, 0.2]
    """
    down = math.exp(-epsilon0)
    q = variation / -math.expm1(-epsilon0) * (1 + 8 * UNIT)
    if not q * (1 + down) < 1 - 1e-12:
        return {}
    return {"p": q * down, "q": q, "blank": (1 - q - q * down) * down}


def response_loss(domain: int, gamma: float) -> float:
    """ε₀ of one L-ary randomized response that is uniform with probability γ: log(1 + L(1 − γ)/γ), rounded up.

    Three roundings under the logarithm, whose condition is at most 1, and two of its own: six units cover them.
    """
    return math.log1p(domain * (1.0 - gamma) / gamma) * (1 + 6 * UNIT)


def response_profile(
    others: int,
    domain: int,
    gamma: float,
    *,
    sure: int = 0,
    keep: float = 1.0,
    epsilons: ArrayLike | None = None,
) -> ProfileCurve:
    """δ(ε) of one L-ary randomized response (uniform with probability γ, else true) among `others` and `sure` uniform draws.

    The observer is shown which of the others answered truly, and what; the rest are uniform draws over the domain.

    >>> kept, shown = response_profile(99, 10, 0.5), shuffled_profile(99, math.log(11), p=0.05, q=0.55)
    >>> print(f"{kept.epsilon(1e-3):.2f} {shown.epsilon(1e-3):.2f}")       # the blanks of the other 8 values hide, too
    0.78 2.05
    """
    size, gamma = whole("domain", domain, 2), between("gamma", gamma, 0.0, 1.0, open_low=True)
    if gamma == 1:
        return ProfileCurve([0.0], [0.0])
    epsilon0 = response_loss(size, gamma)  # a little up: more loss in the victim's report than there is
    p = gamma / size
    q = min((1.0 - gamma) + p, 1.0 / (1.0 + math.exp(-epsilon0)))
    blank = (size - 2) * p if size > 2 else None
    return shuffled_profile(
        others, epsilon0, p=p, q=q, sure=sure, sure_p=1.0 / size, keep=keep, epsilons=epsilons, blank=blank
    )


@dataclass(frozen=True)
class Heap:
    """A heap of reports with one victim, ready to be asked for δ at any ε: `Heap.of` makes it.

    `cells` are the bins of the number of symbols, `coins` what hides a symbol in each of them; None if nothing does.
    """

    epsilon0: float
    q: float
    coins: Coins | None
    cells: Cells
    tau: float
    delta0: float
    revealed: float

    @classmethod
    def of(
        cls,
        others: int,
        epsilon0: float,
        *,
        p: float | None = None,
        q: float | None = None,
        sure: int = 0,
        sure_p: float | None = None,
        keep: float = 1.0,
        crowd: Sequence[tuple[int, float]] = (),
        blank: float | None = None,
        delta0: float = 0.0,
        revealed: float = 0.0,
    ) -> Heap:
        """Checked, with the law of the counts.

        Parameters
        ----------
        others : how many other reports there are.
        epsilon0 : ε₀.
        p : probability of each symbol in another's report, whatever the data.
        q : probability of the own symbol in the victim's report; the other symbol has q e^−ε₀. By default p = 1/(e^ε₀ + 1)
            and q = e^ε₀/(e^ε₀ + 1), right for every ε₀-DP randomizer.
        sure, sure_p : so many elements that are in the heap anyway, and the probability of each symbol in them; p and q
            must then be the randomizer's own.
        keep : each of the others is in the heap with this probability, independently, and is revealed otherwise.
        crowd : more others, in groups of (how many, their `keep`); with `blank`, of the same randomizer (#crowds).
        blank : probability that another's report is a blank of the same law as the victim's; by default blanks are revealed.
        delta0 : δ₀ of an (ε₀, δ₀) randomizer.
        revealed : the observer is shown which report is the victim's with this probability, drawn independently of everything.
        """
        others, sure = whole("others", others), whole("sure", sure)
        eps0 = non_negative("epsilon0", epsilon0)
        if eps0 == 0:
            raise InvalidValue("epsilon0 must be > 0; reports with ε₀ = 0 reveal nothing")
        if eps0 > _LARGEST_EPSILON0:
            raise Unsupported(f"epsilon0 = {eps0:g} is more than {_LARGEST_EPSILON0:g}: e^ε must fit in a double")
        # a rounding of p or q is one of some 10⁴ steps of the recurrences below, and counted with them
        p = math.exp(-eps0) / (1 + math.exp(-eps0)) if p is None else between("p", p, 0.0, 0.5)
        q = 1 / (1 + math.exp(-eps0)) if q is None else between("q", q, 0.0, 1.0)
        symbol = q * (1 + math.exp(-eps0))
        if q == 0 or symbol > 1 + 1e-12:
            raise InvalidValue(
                f"q must lie in (0, 1/(1 + e^−ε₀)], got {q!r} with epsilon0 = {eps0!r}: the victim's two symbols have "
                f"probability q(1 + e^−ε₀) = {symbol:g} together"
            )
        symbol = 1.0 if symbol > 1 - 1e-14 else symbol
        keep, delta0 = between("keep", keep, 0.0, 1.0), between("delta0", delta0, 0.0, 1.0)
        if sure and sure_p is None:
            raise InvalidValue(f"sure = {sure} needs sure_p, the probability of each symbol in such an element")
        sure_p = 0.0 if sure_p is None else between("sure_p", sure_p, 0.0, 0.5)
        more = [(whole("crowd", count), between("keep", share, 0.0, 1.0)) for count, share in crowd]
        everybody = others + sum(count for count, _ in more)
        tau = delta0 * (1 + 2 * everybody * math.exp(-eps0))
        keep *= 1 - delta0
        cells, coins = NO_CELLS, None
        if everybody + sure:
            nu = 0.0 if blank is None else min(between("blank", blank, 0.0, (1.0 - 2 * p) * (1 + 1e-15)), 1.0 - 2 * p)
            if blank is None or nu == 0 or symbol == 1:
                law = sum_of(Law.binomial(others, 2 * p * keep), Law.binomial(sure, 2 * sure_p))
                for count, share in more:
                    law = sum_of(law, Law.binomial(count, 2 * p * share * (1 - delta0)))
                cells = symbol_cells(law, symbol)
            else:
                if delta0:
                    raise Unsupported(
                        f"blank = {blank!r} with delta0 = {delta0!r}: only revealed blanks are proved; drop blank"
                    )
                if sure and not math.isclose(sure_p * nu, p * (1 - 2 * sure_p), rel_tol=1e-12, abs_tol=0.0):
                    raise InvalidValue(
                        f"sure_p = {sure_p!r} and blank = {blank!r} do not match: symbols and blanks must be in the "
                        f"proportion p : blank = {p:g} : {nu:g} in sure elements, too; drop blank to have blanks revealed"
                    )
                total = Law.binomial(others, keep * (2 * p + nu), _OUTSIDE_BLANK)
                for count, share in more:
                    total = sum_of(total, Law.binomial(count, share * (2 * p + nu), _OUTSIDE_BLANK))
                cells = blank_cells(total, p, nu, sure, symbol)
            coins = Coins.of(cells.sizes)
        revealed = between("revealed", revealed, 0.0, 1.0)
        return cls(eps0, q, coins, cells, tau, delta0, revealed)

    def local(self, eps: FloatArray) -> FloatArray:
        """δ of the victim's report alone, without δ₀."""
        return self.q * np.maximum(-np.expm1(eps - self.epsilon0), 0.0)

    def deltas(self, epsilons: ArrayLike) -> FloatArray:
        """Upper bounds on δ at every ε, in any order; not yet forced to fall with ε."""
        eps = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
        return self.finished(self.hidden(eps), eps, self.revealed)

    def hidden(self, eps: FloatArray) -> FloatArray:
        """δ of the pure randomizer when the victim is not revealed."""
        local = self.local(eps)
        cells = self.cells
        hidden = cells.missing * local
        inside = eps < self.epsilon0
        if self.coins is not None and inside.any():
            asked = eps[inside]
            total = np.zeros(len(asked))
            rows = max(1, 2_000_000 // len(asked))
            for i in range(0, len(cells.which), rows):
                part = slice(i, i + rows)
                total += cells.weight[part] @ self.coins.deltas(
                    cells.which[part], cells.symbol[part], self.epsilon0, asked
                )
            hidden[inside] += total * (1 + cells.relative)
        return np.minimum(hidden, local)

    def finished(self, hidden: FloatArray, eps: FloatArray, revealed: ArrayLike) -> FloatArray:
        """δ with the victim revealed with probability `revealed` (broadcast against ε), and δ₀ accounted for."""
        local, share = self.local(eps), np.asarray(revealed, dtype=np.float64)
        pure = np.minimum((1 - share) * hidden + share * local, local)
        if not self.delta0:
            return pure
        # (ε₀, δ₀): the local statement alone is free of the error of the whole heap, and from ε₀ on it is δ₀, unrounded
        with np.errstate(over="ignore"):
            shuffled = pure + (2 + np.expm1(eps)) * self.tau
        alone = np.where(local > 0, (self.delta0 + (1 - self.delta0) * local) * (1 + 8 * UNIT), self.delta0)
        return np.minimum(np.minimum(shuffled * (1 + 8 * UNIT), alone), 1.0)

    def epsilon(self, delta: float) -> float:
        """The least ε with δ(ε) ≤ delta, rounded up."""
        if self.deltas(0.0)[0] <= delta:
            return 0.0
        if self.delta0:
            # the sum of a falling and a growing term: look where it can be small first
            grid = np.linspace(0.0, self.epsilon0, 257)
            met = np.flatnonzero(self.deltas(grid) <= delta)
            if not met.size:
                return math.inf if delta < self.delta0 else self.epsilon0
            high, low = float(grid[met[0]]), float(grid[met[0] - 1])
        else:
            low, high = 0.0, self.epsilon0
        while high - low > 1e-10 * high:
            points = np.linspace(low, high, 18)[1:-1]
            met = np.flatnonzero(self.deltas(points) <= delta)
            i = int(met[0]) if met.size else len(points)
            low, high = (low if i == 0 else float(points[i - 1])), (high if i == len(points) else float(points[i]))
        return high

    def profile(self, epsilons: ArrayLike | None = None) -> ProfileCurve:
        """The curve at the given ε, or at knots chosen where δ bends."""
        if epsilons is not None:
            eps = np.unique(np.append(np.asarray(epsilons, dtype=np.float64).ravel(), 0.0))
            if not np.isfinite(eps).all() or eps[0] < 0:
                raise InvalidValue(f"epsilons must be finite numbers ≥ 0, got {epsilons!r}")
            deltas = self.deltas(eps)
        else:
            eps, deltas = self._knots()
        return ProfileCurve(eps, np.minimum.accumulate(deltas))

    def _knots(self) -> tuple[FloatArray, FloatArray]:
        top = self.epsilon0
        if self.coins is None and not self.delta0:
            eps = np.array([0.0, top])  # randomized response alone is a single chord
            return eps, self.deltas(eps)
        # the scale of ε, from coarse to fine: where δ has fallen to 1e-6, and to next to nothing
        ladder = top * 2.0 ** -np.arange(40.0, -0.5, -1.0)
        coarse = self.deltas(ladder)
        scale = float(ladder[np.argmax(coarse <= 1e-6)]) if (coarse <= 1e-6).any() else top
        end = float(ladder[np.argmax(coarse <= 1e-25)]) if (coarse <= 1e-25).any() else top
        eps = np.unique(np.concatenate([np.linspace(0.0, min(scale, top), 33), np.linspace(0.0, end, 33), [top]]))
        deltas = self.deltas(eps)
        fine = np.zeros(len(eps) - 1, dtype=bool)  # intervals whose chord is known to be good enough
        for _ in range(12):
            middle = 0.5 * (eps[:-1] + eps[1:])
            slack = _TOLERANCE * (middle + 0.02 * scale)
            at = np.flatnonzero(~fine & (deltas[:-1] > 1e-17) & (deltas[1:] < 0.3) & (np.diff(eps) > slack))
            if not at.size:
                break
            found = self.deltas(middle[at])
            drop = np.maximum(deltas[at] - deltas[at + 1], 1e-300)
            share = np.clip((deltas[at] - found) / drop, 0.0, 1.0)
            chord = eps[at] + np.log1p(share * np.expm1(eps[at + 1] - eps[at]))
            bent = chord - middle[at] > slack[at]
            fine[at[~bent]] = True
            split = at[bent]
            eps, deltas = np.insert(eps, split + 1, middle[split]), np.insert(deltas, split + 1, found[bent])
            fine = np.insert(fine, split + 1, False)
        return eps, deltas
