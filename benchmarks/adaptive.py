"""What choosing after looking does to stated budgets: `python benchmarks/adaptive.py`, three tables, under a minute.

1. *Readings.* After every study an ε is stated at δ; the best analyst goes on or stops as it likes. By composition of what happened
   it reaches a δ that is larger than stated; against the odometer it does not.
2. *Limits.* A limit ε at δ, and studies of two kinds that each end exactly at it: the analyst picks one after the first answer.
3. *What it costs.* The smallest limit that admits given studies, over composition of the same studies fixed beforehand: the
   price of not having to fix them.
"""

from __future__ import annotations

import math

import numpy as np

from measure import few, size
from netdp.audit.analysts import best_analyst
from netdp.mechanisms.noisy_sums import Release, repeated_curve, sampled_releases_curve
from netdp.privacy import Curve, Filter, GaussianCurve, Odometer, ProfileCurve
from netdp.privacy.filters import least_limit
from netdp.privacy.profile import composed

DELTA = 1e-6
STEP = size(1e-3, quick=2e-2)


def laplace(epsilon: float) -> ProfileCurve:
    """One number with Laplace noise."""
    at = np.linspace(0.0, epsilon, 200)
    return ProfileCurve(at, np.maximum(-np.expm1((at - epsilon) / 2), 0.0))


def table(curve: Curve) -> ProfileCurve:
    """Any curve as a table."""
    if isinstance(curve, ProfileCurve):
        return curve
    return ProfileCurve.of(curve, np.linspace(0.0, float(curve.epsilon(1e-30)), 2001))


def fixed(curves: list[tuple[Curve, int]]) -> float:
    """ε if all of them had been fixed beforehand."""
    return float(composed([(table(curve), times) for curve, times in curves]).epsilon(DELTA))


def readings() -> None:
    print(f"1. stated after every study at δ = {DELTA:g}; the best analyst stops when it likes")
    print(f"{'studies':<34}{'stated by':<14}{'ε after 1 … all':<22}{'true δ / stated':>16}")
    cases: list[tuple[str, Curve, int]] = [
        ("16 masked sums, μ = 1/4", GaussianCurve(0.25), 16),
        ("2 of them (a second attempt)", GaussianCurve(0.25), 2),
        ("20 Laplace means, ε₀ = 0.3", laplace(0.3), 20),
    ]
    for name, curve, times in few(cases):
        composition = [0.0, *(fixed([(curve, k)]) for k in range(1, times + 1))]
        odometer, read = Odometer(DELTA), [0.0]
        for _ in range(times):
            odometer.spend(curve)
            read.append(odometer.epsilon)
        for way, stated in (("composition", composition), ("odometer", read)):
            found = best_analyst([curve], lambda k, s=stated: s[k[0]] if k[0] < len(s) else None, step=STEP)
            print(f"{name:<34}{way:<14}{f'{stated[1]:.3f} … {stated[-1]:.3f}':<22}{found / DELTA:>16.2f}")


def limits() -> None:
    print(
        f"\n2. a limit of ε = 3 at δ = {DELTA:g}: first a study of μ = 0.2, then a Gaussian or a pure one, as the analyst likes"
    )
    first = GaussianCurve(0.2)
    exact = [GaussianCurve(0.6161), ProfileCurve([0.0, 2.1707], [math.tanh(2.1707 / 2), 0.0])]

    def largest(make: object, high: float) -> Curve:
        low = 0.0
        for _ in range(40):
            middle = (low + high) / 2
            year = Filter(3.0, DELTA)
            year.spend(first)
            low, high = (middle, high) if year.admits(make(middle)) else (low, middle)  # type: ignore[operator]
        return make(low)  # type: ignore[operator,no-any-return]

    admitted = [
        largest(GaussianCurve, 1.0),
        largest(lambda e: ProfileCurve([0.0, e], [math.tanh(e / 2), 0.0]), 3.0),
    ]
    ways = {(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1)}
    print(f"{'limit kept by':<34}{'largest μ, ε₀ after it':<28}{'true δ / stated':>16}")
    for way, second in (("composition", exact), ("filter", admitted)):
        found = best_analyst([first, *second], lambda k: 3.0 if k in ways else None, step=STEP)
        sizes = f"{float(second[0].mu):.4f}, {float(second[1].epsilon(0.0)):.4f}"  # type: ignore[attr-defined]
        print(f"{way:<34}{sizes:<28}{found / DELTA:>16.2f}")


def price() -> None:
    print(f"\n3. the smallest limit that admits them, whatever was chosen, at δ = {DELTA:g}")
    print(f"{'studies':<46}{'fixed beforehand':>17}{'filter':>9}{'ratio':>8}{'odometer':>10}{'ratio':>8}")
    masked = repeated_curve(Release(400, 9, 18))
    training = sampled_releases_curve(10**6, 100, 3500.0, 50, 0.064, 100, False)
    cases: dict[str, list[tuple[Curve, int]]] = {
        "4 masked sums, ε = 1.29 each": [(masked, 4)],
        "16 masked sums": [(masked, 16)],
        "60 Laplace means, ε₀ = 0.1": [(laplace(0.1), 60)],
        "3 Laplace means, ε₀ = 1": [(laplace(1.0), 3)],
        "6 trainings, ε = 1.05 each": [(training, 6)],
        "3 trainings, 5 masked sums, 5 Laplace of 0.2": [(training, 3), (masked, 5), (laplace(0.2), 5)],
        "1 training, 3 masked sums": [(training, 1), (masked, 3)],
    }
    for name, curves in few(cases.items(), quick=2):
        before, limit = fixed(curves), least_limit(curves, DELTA)
        odometer = Odometer(DELTA)
        for curve, times in curves:
            odometer.spend(curve, times)
        read = odometer.epsilon
        print(f"{name:<46}{before:>17.3f}{limit:>9.3f}{limit / before:>8.3f}{read:>10.3f}{read / before:>8.3f}")


if __name__ == "__main__":
    readings()
    limits()
    price()
