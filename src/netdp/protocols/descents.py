"""Descents in whole numbers: what peers run, where models, clipped gradients and noise are steps of one grid.

A model is s·h, s whole numbers and h the grid, a power of two. A step adds −k + η to s: k is ν times the clipped gradient in steps,
rounded to the nearest and held to `reach` in L2 norm, in whole numbers; η is a discrete Gaussian of `variance` per coordinate.

**Local DP** rests on nothing but that: everything that a party ever sends depends on its data through its sums −k + η, whatever
the others send, so it is T releases of whole numbers that differ by at most 2·`reach` (`own_releases`).
**More than that** is claimed where every send brings fresh noise: what is sent is then within a total variation of the same descent
in real numbers, whose loss is known (`absorbed`). Proof: docs/proofs/learning.md#descents-on-a-grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.mechanisms.noisy_sums import Release, releases_curve
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.numerics.checks import count
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.grid import SLACK, grid_step, nearest, power_below, squared_steps

GRADIENT_ERROR = 2.0**-32
"""How far, in units of the clip, a party's gradient in floating point may be from that in real numbers: an assumption, printed."""

FINE = 2.0**44
"""Deviation of the noise of a gradient, in steps of the grid that is proposed."""

LARGEST = 2**62
"""No number of an honest model is larger, in steps, but once in 10³⁰⁰ runs."""

DEVIATIONS = 40.0
"""Of all noise together: further off less than once in 10³⁰⁰ draws, 2·exp(−40²/2)."""

LOST = 1e-300
"""The chance that a number of a run is beyond `LARGEST`."""


class WholeSteps:
    """Fields `grid` and `dimension` of a descent with noise `sigma`, gradients clipped to `clip`, and steps of length `step`."""

    sigma: float
    step: float
    clip: float
    expansion: float
    grid: float | None
    dimension: int

    def _settle_grid(self, iterations: int, rounds: int) -> None:
        """Check and fix the two; so many gradients are in a model, and so often it is rounded."""
        object.__setattr__(self, "grid", grid_step(self.grid))
        object.__setattr__(self, "dimension", count("dimension", self.dimension))
        if self.grid is None:
            return
        if self.step * self.sigma < self.grid:
            raise InvalidValue(
                f"the noise of a step, step·sigma={self.step * self.sigma:g}, is less than one step of the grid {self.grid:g}; "
                f"give a grid of at most {power_below(self.step * self.sigma)!r}"
            )
        if self.largest(iterations, rounds) > LARGEST:
            raise InvalidValue(
                f"the grid {self.grid:g} is too fine for {iterations:,} steps of sigma={self.sigma:g} and clip={self.clip:g}: "
                "models are 64-bit numbers; give a coarser grid"
            )

    @property
    def spacing(self) -> float:
        """h, the step of the grid; refuses where there is none."""
        if self.grid is None:
            raise InvalidValue(
                f"this {type(self).__name__} is in real numbers and has no grid; state grid=, a power of two"
            )
        return self.grid

    @property
    def variance(self) -> int:
        """The parameter of the noise of a gradient: (νσ)² in squared steps, rounded up."""
        return squared_steps((Fraction(self.step) * Fraction(self.sigma)) ** 2, self.spacing)

    @property
    def other_variance(self) -> float:
        """The variance of all other noise that a model can hold, in squared steps."""
        return 0.0

    @property
    def length(self) -> float:
        """νL in steps: how long a clipped gradient is at most before it is rounded."""
        return self.step * self.clip / self.spacing * (1 + 4 * UNIT)

    @property
    def reach(self) -> float:
        """R: no rounded gradient is longer, in steps and L2 norm; a whole number for a single one."""
        if self.dimension == 1:
            return math.ceil(self.length * (1 + SLACK)) + 1
        return (self.length * (1 + SLACK) + math.sqrt(self.dimension) / 2) * (1 + 4 * UNIT)

    def largest(self, iterations: int, rounds: int, start: float = 0.0) -> float:
        """No number of a model is larger, in steps, with so many gradients, so often rounded, but once in 10³⁰⁰ runs."""
        noise = math.sqrt(iterations * float(self.variance) + self.other_variance)
        return start + iterations * self.reach + rounds + 1 + DEVIATIONS * noise

    def in_steps(self, gradient: FloatArray) -> IntArray:
        """A clipped gradient times ν in whole steps (d,), no longer than `reach`, which is checked in whole numbers.

        >>> from netdp import GossipDescent, graphs
        >>> p = GossipDescent(graphs.ring(3), 2, 1, sigma=2.0, step=0.5, grid=0.25, dimension=2)
        >>> p.in_steps(np.array([0.6, -0.8])).tolist(), p.in_steps(np.array([40.0, 30.0])).tolist()
        ([1, -2], [0, 0])
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(gradient, dtype=np.float64) * (self.step / self.spacing)
        if scaled.ndim != 1 or not 1 <= scaled.size <= self.dimension:
            raise InvalidValue(
                f"a gradient has shape (d,) with d ≤ dimension={self.dimension}, got {scaled.shape}; state dimension="
            )
        if not (np.isfinite(scaled).all() and np.abs(scaled).max(initial=0.0) <= 2 * self.reach):
            return np.zeros(scaled.size, dtype=np.int64)  # no gradient that was clipped: as good as no direction
        steps = nearest(scaled)
        # doubles settle all but what lies within their error of the bound
        if float(np.linalg.norm(steps.astype(np.float64))) <= self.reach * (1 - 1e-9):
            return steps
        whole = sum(int(k) ** 2 for k in steps.tolist())
        return steps if whole <= Fraction(self.reach) ** 2 else np.zeros_like(steps)

    def model(self, state: IntArray) -> FloatArray:
        """The model that whole numbers stand for."""
        return state.astype(np.float64) * self.spacing

    def start(self, theta: FloatArray) -> IntArray:
        """The public first model in whole steps."""
        steps = np.asarray(theta, dtype=np.float64) / self.spacing
        if not (np.abs(steps) <= LARGEST / 4).all():
            raise InvalidValue(
                f"the model starts from numbers beyond 2⁶⁰ steps of the grid {self.spacing:g}; give a coarser grid, or "
                "another start"
            )
        return nearest(steps)


def wire_grid(protocol: Any) -> float:
    """A grid to run a descent on: the deviation of a gradient's noise is 2⁴⁴ steps or a little more.

    >>> from netdp import GossipDescent, graphs
    >>> wire_grid(GossipDescent(graphs.ring(3), 2, 1, sigma=2.0, step=0.5)) == 2.0**-44
    True
    """
    return power_below(protocol.step * protocol.sigma / FINE)


def own_releases(protocol: WholeSteps, times: int) -> ProfileCurve:
    """δ(ε) of so many noisy gradients of one party that everybody sees, whatever the others do: local DP.

    >>> from netdp import GossipDescent, graphs
    >>> p = GossipDescent(graphs.ring(3), 16, 1, sigma=32.0, step=0.5, grid=2.0**-40, dimension=5)
    >>> from netdp.privacy.gaussian import gaussian_epsilon
    >>> round(float(own_releases(p, 16).epsilon(1e-6)), 6), round(float(gaussian_epsilon(p.local_mu, 1e-6)), 6)
    (1.060702, 1.060702)
    """
    return releases_curve([Release(protocol.variance, 1, 2 * protocol.reach, protocol.dimension)] * times)


def absorbed(kernels: Iterable[tuple[int, float, int]], numbers: int) -> float:
    """How far, in total variation, what is sent is from the rounded descent in real numbers; inf if a send brings no noise.

    kernels   (how many sends alike, how far their means are from the ideal ones at most, the parameter of their fresh noise)
    numbers   how many numbers one of them has

    >>> absorbed([(100, 3.0, 2**80)], 10) < 2e-11, absorbed([(3, 1.0, 0)], 1)
    (True, inf)
    """
    squares = drawn = 0.0
    for times, error, variance in kernels:
        if not times:
            continue
        if not variance or math.isinf(error):
            return math.inf
        squares += times * error**2 / variance
        drawn += times * numbers / (24 * variance)
    return (math.sqrt(squares / (2 * math.pi)) + drawn + LOST) * (1 + 1e-12)


def rounding_error(protocol: WholeSteps, parties: int, carried: float) -> float:
    """How far the means of noisy gradients of so many parties are, in steps and L2 norm, from those of the ideal.

    carried   how far their models are
    """
    own = math.sqrt(parties * protocol.dimension) / 2 + math.sqrt(parties) * GRADIENT_ERROR * protocol.length
    return (protocol.expansion * carried + own) * (1 + 1e-12)


def grid_assumptions(protocol: WholeSteps, apart: float) -> tuple[str, ...]:
    """What must hold of models, gradients and noise on a grid."""
    said = [
        f"a party's gradient has at most {protocol.dimension:,} coordinates and is clipped to an L2 norm of {protocol.clip:g}; "
        f"times the step it is rounded to whole steps of h = {protocol.spacing!r}, and no longer than {protocol.reach:.6g} "
        "of them, in "
        "whole numbers",
        f"the noise of every gradient is a discrete Gaussian of parameter {protocol.variance} squared steps, drawn exactly, from a "
        "cryptographic source; a simulation with NumPy's generators protects nobody",
        "a party's data are fixed beforehand; no step of an iteration is drawn a second time around other numbers",
    ]
    if math.isfinite(apart):
        said.append(
            f"a gradient in floating point is within {GRADIENT_ERROR:.2g} times the clip of the one in real numbers, of which the "
            f"expansion {protocol.expansion:g} is known; what is sent is then within {apart:.2g} in total variation of the rounded "
            "descent in real numbers: (1 + e^ε) times that is in δ; the factor is that of real numbers"
        )
    return tuple(said)
