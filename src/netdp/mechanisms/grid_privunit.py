"""PrivUnit on a grid: the randomizer `PrivUnit` in whole numbers, a pure ε₀ that is proved of what is drawn.

**The randomizer.** Let Q be the law of d independent discrete Gaussians of deviation s steps, given that the vector z they form
is at least ρ ≥ 1 long. It does not depend on anybody's value. A unit vector u becomes a vector w of whole numbers, u·s/16
rounded (some function of u; nothing that follows rests on how well it is rounded). The cap of w is the set of those z with
⟨z, w⟩ ≥ γ‖z‖‖w‖, γ = c/2⁴⁰ > 0; whether z belongs to it is decided in whole numbers: ⟨z, w⟩ ≥ 0 and ⟨z, w⟩²·2⁸⁰ ≥ c²‖z‖²‖w‖².
The report is z drawn from Q, given that it lies on the cap, for exactly 2⁶⁴ − F of the 2⁶⁴ words, and given that it lies off the
cap for the other F. All that is done with z later (its length is set to 1/m, and reports are averaged) is post-processing.

**Privacy.** With p = 1 − F/2⁶⁴ and q_w = Q(cap of w) the report is z with probability Q(z)·p/q_w on the cap, Q(z)·(1−p)/(1−q_w)
off it. If q_w lies between q₋ and q₊ ≤ p for every w, two such probabilities differ by at most the factor

    e^ε₀ = p(1−q₋)/((1−p)q₋).

(On one cap and off the other: p(1−q_w′)/(q_w(1−p)), at most that. On both: q_w′/q_w ≤ q₊/q₋ ≤ p/q₋, off both: (1−q_w′)/(1−q_w)
≤ (1−q₋)/(1−q₊) ≤ (1−q₋)/(1−p): less.) Every report has at least (1−p)/(1−q₋) of Q in it, so δ(0) ≤ 1 − (1−p)/(1−q₋), and the
profile lies below the chord, in e^ε, from there to (ε₀, 0).

**The share of a cap.** Let G ~ N(0, s²I), R its coordinates rounded, h = √d/2 ≥ ‖R − G‖, and q = q(θ) the share of the sphere
that a cap of angle θ = arccos γ ≤ π/2 covers; its density in θ is f(θ) = sin^{d−2}θ/B(½, (d−1)/2), which grows up to π/2. R is
off the direction of G by at most arcsin(h/‖G‖) ≤ πh/2‖G‖, and ‖G‖ and the direction of G are independent, so

    P[R on the cap, ‖R‖ ≥ ρ] ≥ q·P[‖G‖ ≥ ρ + h] − f(θ)·ℓ,         ℓ = (π/2)·h·E[1/‖G‖; ‖G‖ ≥ ρ + h],
    P[R on the cap, ‖R‖ ≥ ρ] ≤ q·P[‖G‖ ≥ ρ − h] + f(π/2)·ℓ′ + P[‖G‖ ≤ h],     ℓ′ = (π/2)·h·E[1/‖G‖; ‖G‖ ≥ ρ − h],

the last term only where ρ ≤ 2h, and E[1/‖G‖; ‖G‖ ≥ x] ≤ min(E[1/‖G‖], P[‖G‖ ≥ x]/x): on long vectors it matters that both
fall with P. The discrete law is within e^a above the law of R everywhere, and within e^{−b} below it where ‖R‖ ≤ Ts
(`discrete_gaussian`, "Vectors"), all but e^{−r²/2} of R, for any r. Divided by what Q is conditioned on, this gives

    q₋ = e^{−b}·(q·P[‖G‖ ≥ ρ+h] − f(θ)ℓ − e^{−r²/2})/min(1, e^a·P[‖G‖ ≥ ρ−h]),
    q₊ = e^{a+b}·(q·P[‖G‖ ≥ ρ−h] + f(π/2)ℓ′ + P[‖G‖ ≤ h])/(P[‖G‖ ≥ ρ+h] − e^{−r²/2}).

E[1/‖G‖] ≈ 1/(s√d): the cap's edge is blurred by about π/4s, whatever d is. For ε₀ ≥ 1 and up to 1,000 dimensions
(s ≥ 2²⁵) all of this costs less than 10⁻⁵ of ε₀; in 10⁶ dimensions, where s is 2²⁰, 10⁻³.

**The draw.** Off the cap, and on wide caps: by rejection. On wide caps z and −z are tried at once (Q is symmetric, and γ > 0
lets at most one of the two in). Narrow caps of many dimensions: let t = kw, k a whole number with k‖w‖ ≈ γρ. A vector
z = t + y, y discrete Gaussian of parameter v = s², has a probability ∝ e^{−‖z‖²/2v}·e^{⟨z,t⟩/v}. On the cap and with ‖z‖ ≥ ρ,
⟨z, t⟩ ≥ kγρ‖w‖ ≥ L for a whole number L, so keeping z with probability e^{−(⟨z,t⟩−L)/v} leaves exactly the law wanted;
e^{γ²ρ²/2v} times as many z are kept.

Rounding: q, P, the Beta and Gamma functions are taken with relative errors of 10⁻⁹·(1 + d/10⁵), term by term, on the safe side.
Means and errors (`mean_length`, `squared_error`) are those of the sphere; the grid changes them by a relative amount of order
√d/s, and as w is s/16 long only, a single direction is off by up to 8√d/s. Proofs and the check by enumeration:
docs/guarantees.md#finite-precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.privacy import ProfileCurve

from .base import generator, rows, whole
from .coins import ALL, flips, log_ratio_up, with_share
from .discrete_gaussian import Words, normaliser_excess, words_from
from .fine_gaussian import FineGaussian
from .privunit import PrivUnit, cap_of

SPREADS = (2, 2**26)
_LONGEST = 2**30  # s·√d at most: squared lengths fit in 62 bits
_PLACES = 40  # binary digits of γ
_FINER = 16  # s in units of ‖w‖
_TAILS = (10.0, 30.0)  # r above: the first is better on coarse grids, the second for narrow caps of long vectors
_ERROR = 1e-9  # of special functions, relatively, and as much again for every 10⁵ dimensions (logarithms of Γ)
_CLOSE = 2.0**-45  # cosines in doubles are right to within 8·2⁻⁵³
_MOST_TRIES = 10_000  # on average
_NUMBERS_AT_ONCE = 1 << 20
_FEW_NUMBERS = 1 << 12


@dataclass(frozen=True)
class GridPrivUnit(PrivUnit):
    """Unit vectors of `dimension` ≥ 2 numbers with local loss ε₀; reports are vectors of whole numbers.

    spread : s, the deviation of every number of a report; 0 takes the largest that is offered (2²⁶, or 2³⁰/√d if that is less).

    >>> mechanism = GridPrivUnit(200, epsilon0=4.0)
    >>> print(f"{mechanism.squared_error(1):.2f}", 4.0 - 1e-5 < mechanism.drawn_loss <= 4.0)     # 86.35 on real numbers
    86.35 True
    >>> reports = mechanism.report(np.eye(200)[:3], words_from(np.random.default_rng(0)))
    >>> reports.shape, reports.dtype
    ((3, 200), dtype('int64'))
    """

    spread: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = SPREADS
        largest = min(most, 1 << (math.isqrt(_LONGEST**2 // self.dimension).bit_length() - 1))
        spread = whole("spread", self.spread, least=0) or largest
        if not least <= spread <= largest:
            raise InvalidValue(
                f"spread must lie between {least} and {largest} for {self.dimension} numbers, got {self.spread!r}"
            )
        object.__setattr__(self, "spread", spread)
        low, high = self.shares
        if low <= 0:
            raise InvalidValue(
                f"with spread={spread} no share of the cap is proved in {self.dimension} dimensions; give a larger spread"
            )
        if not high <= 1 - self.flips / ALL:
            raise InvalidValue(
                f"epsilon0={self.epsilon0:g} is too small for spread={spread}: the share of a cap is known to within "
                f"{high - low:.1g} only; give a larger spread, or a larger ε₀"
            )
        if self.tries > _MOST_TRIES:
            raise InvalidValue(
                f"epsilon0={self.epsilon0:g} in {self.dimension} dimensions needs {self.tries:.0f} tries for a report, more "
                f"than {_MOST_TRIES:,}; take a smaller ε₀ (for simulation only, PrivUnit draws in floating point)"
            )

    # ── the cap ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def edge(self) -> int:
        """c = 2⁴⁰γ."""
        return max(1, math.floor(math.ldexp(super().threshold, _PLACES)))

    @property
    def threshold(self) -> float:
        """γ: where the cap begins."""
        return math.ldexp(self.edge, -_PLACES)

    @cached_property
    def shortest(self) -> int:
        """ρ: no report is shorter, in steps. Of a few lengths around s√d the one that takes the fewest tries."""
        around = [math.sqrt(self.dimension) + quarter / 4 for quarter in range(-12, 21)]
        best = min([0.0, *(x for x in around if x > 0)], key=self._tries_at)
        return max(1, math.floor(self.spread * best))

    @cached_property
    def cap(self) -> float:
        """q: the share of the sphere that the cap covers."""
        return cap_of(self._shape, 1 - self.threshold)[0]

    @cached_property
    def shares(self) -> tuple[float, float]:
        """q₋ and q₊: what every cap on the grid covers of Q, at least and at most."""
        d, s, rho = self.dimension, float(self.spread), float(self.shortest)
        v, h = s * s, math.sqrt(self.dimension) / 2
        a, error = d / (24 * v), _ERROR * (1 + d / 1e5)
        longer = float(special.gammaincc(d / 2, (rho + h) ** 2 / (2 * v)))
        about = float(special.gammaincc(d / 2, max(rho - h, 0.0) ** 2 / (2 * v)))
        tiny = float(special.gammainc(d / 2, h * h / (2 * v))) if rho <= 2 * h else 0.0
        inverse = math.exp(special.gammaln((d - 1) / 2) - special.gammaln(d / 2)) / (math.sqrt(2) * s)  # E[1/‖G‖]
        beta = math.exp(-special.betaln(0.5, self._shape))
        rim = beta * math.exp((d - 2) / 2 * math.log((1 - self.threshold) * (1 + self.threshold)))
        blurred = math.pi / 2 * h * min(inverse, longer / (rho + h))
        more = math.pi / 2 * h * (min(inverse, about / (rho - h)) if rho > h else inverse)
        low, high = 0.0, 1.0
        for r in _TAILS:
            tail = math.exp(-(r**2) / 2)
            b = (math.sqrt(d) + r + h / s) ** 2 / (24 * v) + d * normaliser_excess(self.spread**2)
            # every term by itself on the safe side: the difference may be small against them
            least = self.cap * longer * (1 - error) - (rim * blurred + tail) * (1 + error)
            low = max(low, math.exp(-b) * least / min(1.0, math.exp(a) * about))
            most = self.cap * about + beta * more + tiny
            high = min(high, math.exp(a + b) * most / max(longer * (1 - error) - tail, 1e-300))
        return low * (1 - error) - 1e-300, min(high * (1 + error), 1.0)

    @cached_property
    def flips(self) -> int:
        """F: for how many of the 2⁶⁴ words the report lies off the cap."""
        low = max(self.shares[0], 0.0)
        return min(math.ceil(ALL * Fraction((1 - low) / (1 - low + math.exp(self.epsilon0) * low) * (1 + 1e-13))), ALL)

    @property
    def outside(self) -> float:
        """1 − p."""
        return self.flips / ALL

    @property
    def drawn_loss(self) -> float:
        """The loss of what `report` draws: log of p(1−q₋)/((1−p)q₋), from these very numbers, rounded up."""
        p, low = ALL - self.flips, Fraction(self.shares[0])
        return min(log_ratio_up(p * (low.denominator - low.numerator), self.flips * low.numerator), self.epsilon0)

    @property
    def curve(self) -> ProfileCurve:
        """The chord from δ(0) ≤ 1 − (1−p)/(1−q₋) to (ε₀, 0)."""
        distance = 1 - self.flips / ALL / (1 - self.shares[0]) * (1 - 1e-12)
        return ProfileCurve([0.0, self.epsilon0], [min(max(distance, 0.0), 1.0), 0.0])

    @cached_property
    def mean_length(self) -> float:
        """m = ⟨E z/‖z‖, u⟩ on the sphere."""
        q, moment = cap_of(self._shape, 1 - self.threshold)
        return moment * (self.inside / q - self.outside / (1 - q))

    # ── the draw ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _gain_at(self, length: float) -> float:
        """e^{γ²x²/2}: how many times more vectors are kept when they are drawn around the cap; ρ = x·s."""
        return math.exp(min((self.threshold * length) ** 2 / 2, 700.0))

    def _tries_at(self, length: float) -> float:
        """How many vectors a report takes, on average, about, if none may be shorter than x·s."""
        q, kept = self.cap, max(float(special.gammaincc(self.dimension / 2, length**2 / 2)), 1e-300)
        off = (1 - q) / (1 - q + math.exp(self.epsilon0) * q)
        return ((1 - off) / (max(2.0, self._gain_at(length)) * q) + off / (1 - q)) / kept

    @property
    def tries(self) -> float:
        """How many vectors a report takes, on average, about."""
        return self._tries_at(self.shortest / self.spread)

    @property
    def width(self) -> int:
        """How many whole numbers a report is."""
        return self.dimension

    def directions(self, values: npt.ArrayLike) -> IntArray:
        """w for every user: about s/16 long, whole numbers."""
        data = self.check(values)
        u = data / np.linalg.norm(data, axis=1, keepdims=True)
        w: IntArray = np.rint(u * max(self.spread // _FINER, 1)).astype(np.int64)
        none = ~w.any(axis=1)
        if none.any():  # the grid is so coarse that nothing is left: the longest coordinate is
            longest = np.abs(u[none]).argmax(axis=1)
            w[np.flatnonzero(none), longest] = np.where(u[none, longest] < 0, -1, 1)
        return w

    def report(self, values: npt.ArrayLike, words: Words) -> IntArray:
        """One report per user, (users, dimension) whole numbers, drawn exactly: what leaves a party."""
        w = self.directions(values)
        off = with_share(self.flips, len(w), words)
        reports = np.empty_like(w)
        on_cap = self._around if self._gain_at(self.shortest / self.spread) > 2 else self._either
        for draw, asked in ((on_cap, np.flatnonzero(~off)), (self._off, np.flatnonzero(off))):
            step = max(1, _NUMBERS_AT_ONCE // self.dimension)
            for first in range(0, len(asked), step):
                piece = asked[first : first + step]
                reports[piece] = self._until_kept(w[piece], draw, words)
        return reports

    def _until_kept(
        self, w: IntArray, draw: Callable[[IntArray, Words], tuple[IntArray, npt.NDArray[np.bool_]]], words: Words
    ) -> IntArray:
        """One vector for every row, tried until it is kept."""
        found, left = np.empty_like(w), np.arange(len(w))
        for _ in range(1000 * _MOST_TRIES):
            if not left.size:
                return found
            # several at once for each where there are few: of these the first that is kept
            at_once = max(1, min(math.ceil(1.5 * self.tries), _FEW_NUMBERS // (len(left) * self.dimension)))
            z, kept = draw(np.repeat(w[left], at_once, axis=0), words)
            kept = kept.reshape(len(left), at_once)
            done, first = kept.any(axis=1), kept.argmax(axis=1)
            found[left[done]] = z.reshape(len(left), at_once, -1)[done, first[done]]
            left = left[~done]
        raise NetdpError("no vector was kept: the source of random words is broken")  # not in any lifetime

    def _drawn(self, size: int, words: Words) -> IntArray:
        return FineGaussian(self.spread**2).sample((size, self.dimension), words)

    def _off(self, w: IntArray, words: Words) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        z = self._drawn(len(w), words)
        return z, self._long_enough(z) & ~self.on_cap(z, w)

    def _either(self, w: IntArray, words: Words) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """z or −z, whichever lies on the side of w."""
        z = self._drawn(len(w), words)
        z = np.where((_inner(z, w) < 0)[:, None], -z, z)
        return z, self._long_enough(z) & self.on_cap(z, w)

    def _around(self, w: IntArray, words: Words) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """z = kw + y, kept with probability e^{−(⟨z, kw⟩ − L)/v} where it is long enough and on the cap."""
        length = np.sqrt(_inner(w, w).astype(np.float64))
        k = np.rint(self.threshold * self.shortest / length).astype(np.int64)
        centre = k[:, None] * w
        z = self._drawn(len(w), words) + centre
        kept = self._long_enough(z) & self.on_cap(z, w)
        at = np.flatnonzero(kept)
        # γρ‖w‖k is computed with a relative error below 2⁻⁴⁹: L is below it
        least = np.floor(k[at] * (self.threshold * self.shortest) * length[at] * (1 - 2.0**-40)).astype(np.int64)
        excess, v = _inner(z[at], centre[at]) - least, self.spread**2
        kept[at] = flips(excess / float(v), lambda i: (int(excess[i]), v), words)
        return z, kept

    def _long_enough(self, z: IntArray) -> npt.NDArray[np.bool_]:
        return np.asarray(_inner(z, z) >= self.shortest**2)

    def on_cap(self, z: IntArray, w: IntArray) -> npt.NDArray[np.bool_]:
        """Whether every z lies on the cap of its w; exact, in doubles where these can tell and in whole numbers where not."""
        inner, zz, ww = _inner(z, w), _inner(z, z), _inner(w, w)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = inner / (np.sqrt(zz.astype(np.float64)) * np.sqrt(ww.astype(np.float64)))
        on = cosine >= self.threshold
        for i in np.flatnonzero(~(np.abs(cosine - self.threshold) > _CLOSE)).tolist():
            along = int(inner[i])
            on[i] = along >= 0 and along**2 << (2 * _PLACES) >= self.edge**2 * int(zz[i]) * int(ww[i])
        return np.asarray(on)

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """One report per user, from the words of a NumPy generator: for simulation, as these are predictable."""
        return self.report(values, words_from(generator(rng)))

    # ── the curator ───────────────────────────────────────────────────────────────────────────────────────────────────

    def readable(self, reports: IntArray) -> npt.NDArray[np.bool_]:
        """Which of these rows of whole numbers can be reports: neither too short nor absurdly long."""
        length = np.linalg.norm(np.asarray(reports, dtype=np.float64), axis=-1)
        fits = np.shape(reports)[-1] == self.width
        return np.asarray((length >= self.shortest * (1 - 1e-12)) & (length <= 2.0**31) & fits)

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports' directions, divided by m."""
        table = rows(reports, self.dimension, "reports")
        length = np.linalg.norm(table, axis=1, keepdims=True)
        if not length.all():
            raise InvalidValue(f"row {int(np.flatnonzero(length[:, 0] == 0)[0])} of reports is zero; no report is")
        return np.asarray((table / length).mean(axis=0) / self.mean_length)


def _inner(a: IntArray, b: IntArray) -> IntArray:
    """Inner products of the rows, exact: none is beyond 2⁶², or the words are broken."""
    found = np.einsum("ij,ij->i", a, b)
    if len(a) and np.abs(np.einsum("ij,ij->i", a.astype(np.float64), b.astype(np.float64))).max() >= 2.0**62:
        raise NetdpError("a draw does not fit into 62 bits: the source of random words is broken")
    return np.asarray(found)
