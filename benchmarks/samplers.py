"""Samplers in floating point and in whole numbers: what the last digits give away, and what exactness costs.

    python benchmarks/samplers.py

The set {y·2⁵³ is no whole number}, 400,000 draws of each value (100,000 of PrivUnit, the first coordinate of the direction),
then nanoseconds per number and the squared error of one report; then what `netdp.audit.noise` says of the samplers that peers
use, and of some with a bug in them, with so many draws.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from measure import few, seconds, size
from netdp.audit.samples import fits, gaussian_law, independent, laplace_law
from netdp.mechanisms import (
    ExactMechanism,
    Gaussian,
    GridLaplace,
    Laplace,
    Mechanism,
    PrivUnit,
    RandomizedResponse,
    UnaryEncoding,
    on_a_grid,
)
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.mechanisms.laplace import DiscreteLaplace

DRAWS = size(400_000, quick=1000)


def broken(y: Any) -> float:
    digits = np.ldexp(y, 53)
    return float(np.mean(digits != np.rint(digits)))


def numbers(mechanism: Mechanism, value: float, rng: np.random.Generator) -> Any:
    """Reports in the units of the values."""
    reports = mechanism.randomize(np.full(DRAWS, value), rng)[:, 0]
    step, centre = getattr(mechanism, "step", 1.0), getattr(mechanism, "centre", 0.0)
    return reports * step + centre if isinstance(mechanism, ExactMechanism) else reports


def directions(mechanism: PrivUnit, axis: int, rng: np.random.Generator) -> Any:
    """First coordinates of the directions V of reports."""
    value = np.tile(np.eye(mechanism.dimension)[axis], (DRAWS // 40, 1))
    found = []
    for _ in range(size(10, quick=1)):
        if isinstance(mechanism, ExactMechanism):
            z = mechanism.randomize(value, rng)
            found.append(z[:, 0] / np.linalg.norm(z, axis=1))
        else:
            found.append(mechanism._directions(value, rng)[:, 0])
    return np.concatenate(found)


def last_digits() -> None:
    rng = np.random.default_rng(0)
    print(f"{'share with digits beyond 2⁻⁵³':34} {'value 0':>9} {'value 1':>9}")
    for ideal in (Laplace.interval(0.0, 1.0, 1.0), Gaussian.calibrated(1.0, 1e-6, centre=0.5)):
        for mechanism in (ideal, on_a_grid(ideal)):
            shares = [broken(numbers(mechanism, value, rng)) for value in (0.0, 1.0)]
            print(f"{type(mechanism).__name__:34} {shares[0]:9.4f} {shares[1]:9.4f}")
    print(f"{'':34} {'axis 2':>9} {'axis 1':>9}   e^ε₀ = 2.718")
    for unit in (PrivUnit(200, 1.0), on_a_grid(PrivUnit(200, 1.0))):
        shares = [broken(directions(unit, axis, rng)) for axis in (1, 0)]
        print(f"{type(unit).__name__ + '(200, 1)':34} {shares[0]:9.4f} {shares[1]:9.4f}")


def speed() -> None:
    rng = np.random.default_rng(1)
    print(
        f"\n{'nanoseconds per number':34} {'float':>9} {'exact':>9} {'ratio':>7}  squared error of one report, float and exact"
    )
    units = rng.standard_normal((DRAWS // 200, 200))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    labels, shares = rng.integers(0, 16, DRAWS * 5 // 4), rng.random(DRAWS * 5 // 4)
    cases: list[tuple[str, Mechanism, Any]] = [
        ("k-ary response, 16 values", RandomizedResponse(16, 1.0), labels),
        ("unary encoding, 16 values", UnaryEncoding(16, 1.0), labels[:50_000]),
        ("Laplace, ε₀ = 1", Laplace.interval(0.0, 1.0, 1.0), shares),
        ("Gaussian, ε₀ = 1, δ₀ = 1e-6", Gaussian.calibrated(1.0, 1e-6, centre=0.5), shares),
        *((f"PrivUnit, d = 200, ε₀ = {e:g}", PrivUnit(200, e), units) for e in (1.0, 4.0, 8.0)),
    ]
    for name, ideal, values in few(cases, quick=3):
        exact = on_a_grid(ideal)
        count = exact.width * len(values)
        for warm in (ideal, exact):
            warm.randomize(values[:10], rng)
        slow = seconds(lambda exact=exact, values=values: exact.report(values, words_from(rng))) / count * 1e9
        fast = seconds(lambda ideal=ideal, values=values: ideal.randomize(values, rng)) / count * 1e9
        errors = f"{ideal.squared_error(1):10.4f} {exact.squared_error(1):10.4f}"
        print(f"{name:34} {fast:9.0f} {slow:9.0f} {slow / fast:7.1f}  {errors}")
    single = GridLaplace.interval(0.0, 1.0, 1.0)
    alone = seconds(lambda: [single.report([0.5], words_from(rng)) for _ in range(DRAWS // 400)]) / (DRAWS // 400)
    unit = on_a_grid(PrivUnit(200, 4.0))
    long = seconds(lambda: [unit.report(units[:1], words_from(rng)) for _ in range(size(50, quick=1))]) / size(
        50, quick=1
    )
    print(
        f"one report at a time, as a peer: discrete Laplace {alone * 1e3:.2f} ms, PrivUnit(200, 4) {long * 1e3:.1f} ms"
    )


def as_claimed() -> None:
    """The law and the pairs of draws, and how few draws give a bug away, doubling from a thousand on."""
    words = words_from(np.random.default_rng(2))
    print(f"\n{f'the noise itself, {DRAWS // 2:,} draws':34} {'law':>9} {'pairs':>9} {'seconds':>9}")
    sound: list[tuple[str, Any, Any]] = [
        *((f"DiscreteGaussian({v:,})", DiscreteGaussian(v), gaussian_law(v)) for v in (1, 262_144, 2**40)),
        ("FineGaussian(2**116)", FineGaussian(2**116), gaussian_law(2**116)),
        ("DiscreteLaplace(2**-20)", DiscreteLaplace(Fraction(1, 2**20)), laplace_law(Fraction(1, 2**20))),
    ]
    for name, sampler, law in few(sound):
        drawn = sampler.sample((DRAWS // 2,), words)
        took = seconds(lambda drawn=drawn, law=law: [fits(drawn, law), independent(drawn, law)])
        print(f"{name:34} {fits(drawn, law).ok!s:>9} {independent(drawn, law).ok!s:>9} {took:9.2f}")
    law, rng = gaussian_law(2500), np.random.default_rng(3)
    exact: Callable[[int], Any] = lambda n: DiscreteGaussian(2500).sample((n,), words)  # noqa: E731
    planted: list[tuple[str, Callable[[int], Any], Any]] = [
        ("σ halved", lambda n: DiscreteGaussian(625).sample((n,), words), law),
        ("σ a hundredth too small", lambda n: DiscreteGaussian(2450).sample((n,), words), law),
        ("cut off at 3σ", lambda n: np.clip(exact(n), -150, 150), law),
        ("cut off at 4σ", lambda n: np.clip(exact(n), -200, 200), law),
        ("a bias of σ/50", lambda n: exact(n) + 1, law),
        ("last digit always 0", lambda n: exact(n) // 2 * 2, law),
        ("a rounded float Gaussian, σ² = 2", lambda n: np.rint(rng.normal(0, 2**0.5, n)).astype(int), gaussian_law(2)),
        (
            "a rounded float Gaussian, σ = 2⁵⁸",
            lambda n: np.rint(rng.normal(0, 2**58, n)).astype(int),
            gaussian_law(2**116),
        ),
    ]
    print(f"{'found with how many draws':34}")
    for name, draw, stated in few(planted):
        n = 1000
        while n < 2_000_000 and fits(draw(n), stated).ok:
            n *= 2
        print(f"{name:34} {n:9,}")


if __name__ == "__main__":
    last_digits()
    speed()
    as_claimed()
