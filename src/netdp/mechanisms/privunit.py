"""PrivUnit: unit vectors, reported as a random direction that leans towards the true one.

Bhowmick, Duchi, Freudiger, Kapoor, Rogers, *Protection Against Reconstruction and Its Applications in Private Federated
Learning* (2018), Algorithm 1. For a unit vector u in R^d the report is V/m, V uniform on the cap {v : ⟨v, u⟩ ≥ γ} of the
sphere with probability p, and uniform on the rest of the sphere otherwise.

**Privacy, exactly.** Let q be the share of the sphere that a cap covers. The density of V, relative to uniform, is p/q on the
cap and (1−p)/(1−q) elsewhere, so two of them differ by at most the factor e^ε₀ = p(1−q)/((1−p)q); any two different caps of
one size have a part outside each other, so it is attained. P_u(S) − e^ε P_u′(S) grows only with the part of S in u's cap and
not in that of u′, whose share is q when the two caps are disjoint: for γ ≥ 0 and u′ = −u. Hence

    δ(ε) = q·[p/q − e^ε (1−p)/(1−q)]₊,

linear in e^ε up to ε₀: two points state it without loss.

**Unbiased.** ⟨V, u⟩ for uniform V is 2X−1 with X ~ Beta(a, a), a = (d−1)/2, so q = I_{(1−γ)/2}(a, a), and with
A = E[⟨V, u⟩; ⟨V, u⟩ ≥ γ] = (1−γ²)^a / (2a·B(a, ½)) the mean of V is m·u,

    m = A (p−q)/(q(1−q)) = A·E/(1 + E·q),   E = e^ε₀ − 1.

The squared error of one report is 1/m² − 1.

**The best split of ε₀.** Given ε₀ only γ is free, and γ < 0 is no better than −γ (A is even in γ, q falls): maximise m over
[0, 1). With f the density of ⟨V, u⟩: A′ = −γf and q′ = −f, so m′ has the sign of E·A − γ(1 + E·q). The function
γ(1 + E·q) − E·A has the derivative 1 + E·q > 0: it has exactly one root, m is largest there, and m = γ there.

**Safe side.** p is set for an ε₀ smaller by 10⁻¹⁰, more than the error of q; and as NumPy's uniform numbers are multiples
of 2⁻⁵³, "random() < 1−p" sends V off the cap at least as often as it should.

**The draw is for simulation only.** That is about the cap alone. V itself is made of rounded products of u with other
numbers: the last digits of a report depend on u, and whoever sees all of them can tell vectors apart (see `base`). For
u = (1, 0, …) the first coordinate of V is a multiple of 2⁻⁵³, for others it is not. `GridPrivUnit` is the same randomizer in
whole numbers, and what `collect` uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy import ProfileCurve

from .base import generator, local_loss, rows, whole

_MARGIN = 1e-10
_LEAST = 1e-6
_LARGEST_DIMENSION = 1_000_000
_NORM = 1e-6  # how far from 1 a norm may be: single precision
_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class PrivUnit:
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
    def delta0(self) -> float:
        """0: the randomizer is pure."""
        return 0.0

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
