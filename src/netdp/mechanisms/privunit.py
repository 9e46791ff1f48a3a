"""PrivUnit: unit vectors, reported as a random direction that leans towards the true one.

With probability p the report is a uniform direction on the cap of the sphere around the value, otherwise one off the cap:
pure ε₀-DP, e^ε₀ = p(1−q)/((1−p)q) for a cap that covers the share q. `PrivUnit` has the threshold of the cap at which the squared
error is least, and draws in floating point, for simulation only. `GridPrivUnit` is the same randomizer in whole numbers, drawn
exactly; there q is replaced by a proved lower bound on the share of every cap on the grid. Proofs, margins and the draws:
docs/proofs/mechanisms.md#privunit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms.base import Pure, generator, local_loss, rows, whole
from netdp.mechanisms.coins import ALL, flips, log_ratio_up, with_share
from netdp.mechanisms.discrete_gaussian import Words, normaliser_excess, words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy.profile import ProfileCurve

_MARGIN = 1e-10

_LEAST = 1e-6

_LARGEST_DIMENSION = 1_000_000

_NORM = 1e-6  # how far from 1 a norm may be: single precision

_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class PrivUnit(Pure):
    """Unit vectors of `dimension` ≥ 2 numbers with local loss ε₀, at the least squared error that PrivUnit can have.

    >>> mechanism = PrivUnit(200, epsilon0=4.0)
    >>> print(f"{mechanism.threshold:.4f} {mechanism.cap:.4f} {mechanism.inside:.4f} {mechanism.squared_error(1):.2f}")
    0.1070 0.0653 0.7923 86.35
    >>> reports = mechanism.randomize(np.eye(200)[:3], np.random.default_rng(0))
    >>> np.linalg.norm(reports, axis=1).round(4).tolist()                   # always 1/m: the length tells nothing
    [9.346, 9.346, 9.346]
    """

    dimension: int
    epsilon0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", whole("dimension", self.dimension, least=2))
        if self.dimension > _LARGEST_DIMENSION:
            raise InvalidValue(
                f"dimension={self.dimension} is more than {_LARGEST_DIMENSION:,}, beyond which the size of a cap is "
                "not computed accurately enough; split the vector"
            )
        object.__setattr__(self, "epsilon0", local_loss(self.epsilon0))
        if self.epsilon0 < _LEAST:
            raise InvalidValue(f"epsilon0={self.epsilon0!r} is too small for PrivUnit; give at least {_LEAST:g}")

    @property
    def _shape(self) -> float:
        return (self.dimension - 1) / 2

    @cached_property
    def _height(self) -> float:
        """1 − γ for the best γ; solved for this, as γ comes close to 1 when ε₀ is large."""
        from scipy.optimize import brentq  # slow to load

        inverse = 1 / math.expm1(self.epsilon0)

        def excess(height: float) -> float:
            q, A = cap_of(self._shape, height)
            return (1 - height) * (inverse + q) - A

        # decreasing in the height: inverse > 0 at 0, −A < 0 at 1
        low = 0.5
        while excess(low) < 0:
            low /= 2
        return float(brentq(excess, low, 2 * low, xtol=1e-300, rtol=1e-14))

    @property
    def threshold(self) -> float:
        """γ: where the cap begins."""
        return 1 - self._height

    @cached_property
    def cap(self) -> float:
        """q: the share of the sphere that the cap covers."""
        return cap_of(self._shape, self._height)[0]

    @cached_property
    def outside(self) -> float:
        """1 − p."""
        q = self.cap
        return (1 - q) / (1 - q + math.exp(self.epsilon0 - _MARGIN) * q) * (1 + 8 * UNIT)

    @property
    def inside(self) -> float:
        """p: the probability that the report lies on the cap."""
        return 1 - self.outside

    @cached_property
    def mean_length(self) -> float:
        """m = ⟨E V, u⟩."""
        q, A = cap_of(self._shape, self._height)
        return A * (self.inside / q - self.outside / (1 - q))

    @property
    def curve(self) -> ProfileCurve:
        """δ(ε) = (p − e^ε (1−p)q/(1−q))₊, exactly."""
        # p and q of the randomizer at exactly ε₀, which is a little less private than what is drawn
        growth = math.expm1(self.epsilon0)
        distance = growth * self.cap / (1 + growth * self.cap) * (1 + 1e-10)
        return ProfileCurve([0.0, self.epsilon0], [min(distance, 1.0), 0.0])

    def check(self, values: npt.ArrayLike) -> FloatArray:
        """The values as (users, dimension); every row must have norm 1."""
        table = rows(values, self.dimension)
        norms = np.linalg.norm(table, axis=1)
        bad = np.abs(norms - 1) > _NORM
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InvalidValue(
                f"row {row} of values has norm {norms[row]:g}; PrivUnit takes unit vectors: divide each by its norm"
            )
        return table

    def answer(self, values: npt.ArrayLike) -> FloatArray:
        """The mean of the values."""
        return np.asarray(self.check(values).mean(axis=0))

    def randomize(self, values: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
        """One report per user, a vector of norm 1/m; no rejection."""
        data, rng = self.check(values), generator(rng)
        reports = np.empty(data.shape)
        step = max(1, _NUMBERS_AT_ONCE // self.dimension)
        for first in range(0, len(data), step):
            piece = data[first : first + step]
            reports[first : first + step] = self._directions(piece, rng)
        reports /= self.mean_length
        return reports

    def _directions(self, data: FloatArray, rng: np.random.Generator) -> FloatArray:
        """V for every row."""
        u = data / np.linalg.norm(data, axis=1, keepdims=True)
        half = self._half_heights(rng.random(len(u)) < self.outside, rng)
        side = rng.standard_normal(u.shape)
        # twice: what is left along u after the first time is rounding, and matters where the cap is narrow
        for _ in range(2):
            side -= np.einsum("ij,ij->i", side, u)[:, None] * u
            side /= np.linalg.norm(side, axis=1, keepdims=True)
        along, across = 1 - 2 * half, 2 * np.sqrt(half * (1 - half))
        return np.asarray(along[:, None] * u + across[:, None] * side)

    def _half_heights(self, off: npt.NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
        """(1 − ⟨V, u⟩)/2: Beta(a, a), held to at most (1−γ)/2 on the cap and to at least that off it.

        By inverting the distribution function from whichever end is nearer, so that neither tail loses digits.
        """
        a, q, edge = self._shape, self.cap, self._height / 2
        share = 1 - rng.random(len(off))  # in (0, 1]
        below = np.where(off, q + (1 - q) * (1 - share), q * share)  # the distribution function at the answer,
        above = np.where(off, (1 - q) * share, 1 - q * share)  # and one minus it
        mirrored = above < below
        inverse = special.betaincinv(a, a, np.where(mirrored, above, below))
        half = np.where(mirrored, 1 - inverse, inverse)
        return np.asarray(np.where(off, np.maximum(half, edge), np.minimum(half, edge)))

    def estimate(self, reports: npt.ArrayLike) -> FloatArray:
        """The mean of the reports."""
        return np.asarray(rows(reports, self.dimension, "reports").mean(axis=0))

    def squared_error(self, reports: int) -> float:
        """(1/m² − 1)/n: each report has squared norm 1/m² and a mean of norm 1."""
        return (1 / self.mean_length**2 - 1) / whole("reports", reports, least=1)


def cap_of(a: float, height: float) -> tuple[float, float]:
    """q and A of the cap that begins at γ = 1 − height.

    In three dimensions ⟨V, u⟩ is uniform on [−1, 1]:

    >>> [round(x, 12) for x in cap_of(1.0, 0.5)]           # q = (1−γ)/2, A = (1−γ²)/4
    [0.25, 0.1875]
    """
    q = float(special.betainc(a, a, height / 2))
    A = math.exp(a * math.log(height * (2 - height)) - math.log(2 * a) - special.betaln(a, 0.5))
    return q, A


SPREADS = (2, 2**26)

_LONGEST = 2**30  # s·√d at most: squared lengths fit in 62 bits

_PLACES = 40  # binary digits of γ

_FINER = 16  # s in units of ‖w‖

_TAILS = (10.0, 30.0)  # r of the proof: the first is better on coarse grids, the second for narrow caps of long vectors

_ERROR = 1e-9  # of special functions, relatively, and as much again for every 10⁵ dimensions (logarithms of Γ)

_CLOSE = 2.0**-45  # cosines in doubles are right to within 8·2⁻⁵³

_MOST_TRIES = 10_000  # on average

_WHOLE_NUMBERS_AT_ONCE = 1 << 20

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
            step = max(1, _WHOLE_NUMBERS_AT_ONCE // self.dimension)
            for first in range(0, len(asked), step):
                piece = asked[first : first + step]
                reports[piece] = self._until_kept(w[piece], draw, words)
        return reports

    def _until_kept(
        self, w: IntArray, draw: Callable[[IntArray, Words], tuple[IntArray, npt.NDArray[np.bool_]]], words: Words
    ) -> IntArray:
        """One vector for every row, tried until it is kept."""
        vectors, left = np.empty_like(w), np.arange(len(w))
        for _ in range(1000 * _MOST_TRIES):
            if not left.size:
                return vectors
            # several at once for each where there are few: of these the first that is kept
            at_once = max(1, min(math.ceil(1.5 * self.tries), _FEW_NUMBERS // (len(left) * self.dimension)))
            z, kept = draw(np.repeat(w[left], at_once, axis=0), words)
            kept = kept.reshape(len(left), at_once)
            done, first = kept.any(axis=1), kept.argmax(axis=1)
            vectors[left[done]] = z.reshape(len(left), at_once, -1)[done, first[done]]
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
    products = np.einsum("ij,ij->i", a, b)
    if len(a) and np.abs(np.einsum("ij,ij->i", a.astype(np.float64), b.astype(np.float64))).max() >= 2.0**62:
        raise NetdpError("a draw does not fit into 62 bits: the source of random words is broken")
    return np.asarray(products)
