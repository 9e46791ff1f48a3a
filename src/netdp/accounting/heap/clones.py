"""What a perfectly shuffled heap of randomized reports reveals: hiding among the clones (docs/guarantees.md#shuffled-heap).

**Words.** A *heap* is what a shuffler hands over: reports without names and in no order, so that only the number of each
kind can be seen. The *victim* is the user in question; everybody else's data are fixed. Something is *told* if the proof
gives it to the observer for nothing, such as whose a report is and what it says: that can only add to what is learned, so a
bound for an observer who was told is a bound. A *symbol* (0 or 1) is a report that speaks for one of the victim's two
values; a *blank* is a report that speaks for neither.

**The blanket.** Let R be ε₀-DP, e = e^ε₀, γ = e^ε, and R₀, R₁ the laws of the victim's report under its two values.
Everybody else's report has a law R_i ≥ ω, ω = max(R₀, R₁)/e: with probability ω's mass it is a draw from ω, whatever
the data. Tell the observer which of the others' reports are not, and what they say. Then, with n reports in all,

    δ(ε) ≤ E (Z₁ + … + Z_n)₊/n,   Z_i independent: (R₀ − γR₁)/ω at a draw from ω, 0 with the probability that ω lacks.

Proof. Let M_n be the law of the heap h of n such draws, those that are lacking counted, too. The victim's report is
any of its elements: P₀(h) = Σ_x R₀(x) M_{n−1}(h − x), and M_{n−1}(h − x) = M_n(h) h_x/(nω(x)). So P₀(h) − γP₁(h) =
M_n(h) Σ_x h_x (R₀ − γR₁)(x)/(nω(x)); take positive parts and sum. ∎ (Balle, Bell, Gascón, Nissim 2019.)

**The worst case is binary randomized response,** where Z is e − γ or 1 − γe with probability 1/(e + 1) each, else 0.
Proof: Z has the same mean, 1 − γ, for every R, so it is enough that E(Z − t)₊ for t ≥ 0 and E(t − Z)₊ for t ≤ 0 are
never larger: then Z is smaller in convex order, and so are sums, and E(·)₊ (a convex function) of them. R's own
profile gives ∫(R₀ − gR₁)₊ ≤ (e − g)₊/(e + 1) for g ≥ 1. For t ≥ 0: Z > t only where ω = R₀/e, so E(Z − t)₊ = ∫((1 −
t/e)R₀ − γR₁)₊ ≤ (e − t − γ)₊/(e + 1). For t ≤ 0: ω ≥ R₁/e, so E(t − Z)₊ ≤ ∫(kR₁ − R₀)₊ with k = γ + t/e; by the
profile with g = 1/k if k < 1, and because it is k − 1 + ∫(R₀ − kR₁)₊ if k ≥ 1, that is at most (ek − 1)₊/(e + 1).
Both are the values of binary response. ∎ So every report carries a symbol: the victim's own with q = e/(e + 1), the
other one with p = 1/(e + 1); anybody else's 0 or 1 with probability p each, or nothing (Feldman, McMillan, Talwar
2021 have p = 1/2e; 2023 this p). The same holds when the others are in the heap only with probability `keep`: ω and Z
scale.

**δ.** Let s count the symbols, the victim's included. Given s, the others' s − 1 are fair coins, and P₀/P₁ = (ea +
b)/(a + eb) grows with a, the number of the own symbol: δ_s(ε) = P₀(A ≥ a*) − e^εP₁(A ≥ a*). One more coin in the heap
is post-processing, so *δ_s falls with s*, and s may be rounded down: its law is taken in bins, each with the δ of its
lower end.

**Blanks.** For a particular randomizer p and q may be smaller: the victim then has no symbol with probability r = 1 −
q − q/e. By default the observer is told of that: δ = (1 − r)·E δ_s. (Counting only a and b is *not* sound: an unusual
blank gives itself away.) `blank` is the probability ν that another's report is a blank of the very same law. L-ary
randomized response is a uniform draw with probability γ′: p = γ′/L, ν = (L − 2)γ′/L. Among T such elements and the
victim, with s symbols and c = T + 1 − s blanks, Bayes: the victim has a symbol with probability w = αs/(αs + 2rcp/ν),
α = 1 − r, and the counts follow w·[Bin(s−1, ½) + victim] + (1 − w)·Bin(s, ½). δ of this grows with w (a smaller w
mixes in the same law on both sides; joint convexity) and falls with s (one more coin), and w grows with s: a bin [s₁,
s₂] takes δ at s₁ with the w of s₂. T is rounded down: one more element is post-processing.

**Approximate randomizers.** If R is (ε₀, δ₀)-DP, R₀ = (1 − δ₀)R₀′ + δ₀E₀ and R₁ = (1 − δ₀)R₁′ + δ₀E₁ with R₀′, R₁′
purely ε₀-close (Kairouz, Oh, Viswanath 2015). Let ω be theirs. Where R₀′ ≥ R₁′, (1 − δ₀)ω = (1 − δ₀)R₀′/e ≤ R₀/e, and
(R₀/e − R_i)₊ has mass ≤ δ₀/e; elsewhere likewise with R₁. So R_i lacks mass D ≤ 2δ₀/e of (1 − δ₀)ω; moving that mass
there from where R_i has more gives an R_i′ ≥ (1 − δ₀)ω with TV(R_i, R_i′) = D. The reports of all, true and primed,
are within τ = δ₀(1 + 2·others/e) in total variation, hence δ(ε) ≤ δ_pure(ε) + (1 + e^ε)τ, with (1 − δ₀)·keep for
keep. And never more than local: δ₀ + (1 − δ₀)δ_{ε₀}(ε).

**Rounding.** All probabilities are products and sums of positive numbers along recurrences of some 30√n steps:
relative errors below 10⁻¹⁰ at n = 10⁶, counted and added. The one subtraction, δ_s = gB − (e^ε − 1)G (g a
probability, G a tail), gets its own bound. Whatever lies outside a window is bounded by a geometric series and added
with the local δ. From ε₀ on, δ = 0 exactly, or δ₀ exactly.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.numerics.binomial import Law, sum_of
from netdp.numerics.checks import between, non_negative, whole
from netdp.privacy import ProfileCurve

from .counts import NO_CELLS, Cells, Coins, blank_cells, symbol_cells

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
    return _heap(others, epsilon0, makeup).profile(epsilons)


def shuffled_epsilon(others: int, epsilon0: float, delta: float, **makeup: Any) -> float:
    """The least ε with δ(ε) ≤ δ, computed directly and rounded up; inf if there is none (δ < δ₀). `makeup`: see `Heap.of`.

    >>> print(f"{shuffled_epsilon(9497, 0.5, 2e-6):.4f} {shuffled_epsilon(9497, 2.0, 2e-6):.4f}")
    0.0175 0.1121
    """
    return _heap(others, epsilon0, makeup).epsilon(between("delta", delta, 0.0, 1.0))


def _heap(others: int, epsilon0: float, makeup: dict[str, Any]) -> Heap:
    """`Heap.of`, an unknown keyword refused by name."""
    known = inspect.signature(Heap.of).parameters
    for name in makeup:
        if name not in known:
            raise InvalidValue(f"a heap knows no {name!r}; it is made of {', '.join(known)}")
    return Heap.of(others, epsilon0, **makeup)


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

    The observer is told which of the others answered truly, and what; the rest are uniform draws over the domain.

    >>> kept, told = response_profile(99, 10, 0.5), shuffled_profile(99, math.log(11), p=0.05, q=0.55)
    >>> print(f"{kept.epsilon(1e-3):.2f} {told.epsilon(1e-3):.2f}")       # the blanks of the other 8 values hide, too
    0.78 2.05
    """
    size, gamma = whole("domain", domain, 2), between("gamma", gamma, 0.0, 1.0, open_low=True)
    if gamma == 1:
        return ProfileCurve([0.0], [0.0])
    # ε₀ a little up: more loss in the victim's report than there is
    epsilon0 = math.nextafter(math.log1p(size * (1.0 - gamma) / gamma), math.inf)
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
    told: float

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
        told: float = 0.0,
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
        keep : each of the others is in the heap with this probability, independently, and is told otherwise.
        crowd : more others, in groups of (how many, their `keep`).
        blank : probability that another's report is a blank of the same law as the victim's; by default blanks are told.
        delta0 : δ₀ of an (ε₀, δ₀) randomizer.
        told : the observer is told which report is the victim's with this probability, drawn independently of everything.
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
        if more and blank is not None:
            raise Unsupported(
                f"blank = {blank!r} with crowd: only told blanks are proved for others in groups; drop blank"
            )
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
                        f"blank = {blank!r} with delta0 = {delta0!r}: only told blanks are proved; drop blank"
                    )
                if sure and not math.isclose(sure_p * nu, p * (1 - 2 * sure_p), rel_tol=1e-12, abs_tol=0.0):
                    raise InvalidValue(
                        f"sure_p = {sure_p!r} and blank = {blank!r} do not match: symbols and blanks must be in the "
                        f"proportion p : blank = {p:g} : {nu:g} in sure elements, too; drop blank to have blanks told"
                    )
                cells = blank_cells(others, keep, p, nu, sure, symbol)
            coins = Coins.of(cells.sizes)
        told = between("told", told, 0.0, 1.0)
        return cls(eps0, q, coins, cells, tau, delta0, told)

    def local(self, eps: FloatArray) -> FloatArray:
        """δ of the victim's report alone, without δ₀."""
        return self.q * np.maximum(-np.expm1(eps - self.epsilon0), 0.0)

    def deltas(self, epsilons: ArrayLike) -> FloatArray:
        """Upper bounds on δ at every ε, in any order; not yet forced to fall with ε."""
        eps = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
        return self.finished(self.hidden(eps), eps, self.told)

    def hidden(self, eps: FloatArray) -> FloatArray:
        """δ of the pure randomizer when the victim is not told."""
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

    def finished(self, hidden: FloatArray, eps: FloatArray, told: ArrayLike) -> FloatArray:
        """δ with the victim told with probability `told` (broadcast against ε), and δ₀ accounted for."""
        local, share = self.local(eps), np.asarray(told, dtype=np.float64)
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
