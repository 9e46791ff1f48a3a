"""How much noise a sampled Gaussian release needs, repeated: our certified multiplier over that of dp-accounting.

    python benchmarks/sampled.py

dp-accounting composes privacy loss distributions on a grid of its own (Google; Doroshenko et al. 2022), rounding pessimistically;
here on a grid five times finer than ours, where it has an error below ours. Ours also rounds every float on the safe side. The
ratio must lie in [1, 1.01]; add/remove adjacency. The last columns: replacing a party's value while absence is secret, and the
seconds that either search takes.

Then what a coarse grid costs: ε of sampled sums of whole numbers over that of real numbers with the same noise, by whole numbers
drawn around Gaussians (what is certified) and by rounded Gaussians (what was certified before), and without the gain of sampling.
"""

from __future__ import annotations

import math
import time

from dp_accounting.pld import privacy_loss_distribution

from measure import size
from netdp.mechanisms.noisy_sums import releases_curve, sampled_releases_curve
from netdp.privacy.sampled_gaussian import least_root, sampled_gaussian_curve, sampled_gaussian_multiplier

CASES = (
    (0.064, 300, 1.0, 1e-5),
    (0.001, 1, 1.0, 1e-6),
    (0.001, 100, 1.0, 1e-6),
    (0.001, 10_000, 0.1, 1e-6),
    (0.001, 10_000, 1.0, 1e-6),
    (0.001, 10_000, 8.0, 1e-6),
    (0.01, 10, 1.0, 1e-8),
    (0.01, 1000, 1.0, 1e-5),
    (0.01, 10_000, 3.0, 1e-6),
    (0.1, 1, 3.0, 1e-5),
    (0.1, 2, 1.0, 1e-5),
    (0.1, 100, 0.1, 1e-6),
    (0.1, 1000, 1.0, 1e-6),
    (0.5, 10, 1.0, 1e-6),
    (0.5, 1000, 8.0, 1e-6),
    (0.9, 100, 1.0, 1e-6),
    (1.0, 1, 1.0, 1e-6),
    (1.0, 10_000, 1.0, 1e-6),
)


def theirs(epsilon: float, delta: float, q: float, times: int, guess: float) -> float:
    """dp-accounting's multiplier, to 10⁻⁵."""
    deviation = q * math.sqrt(math.expm1(min(1 / guess**2, 30.0))) if q < 1 else 1 / guess
    interval = min(1e-3, max((0.01 if q < 1 else 0.002) * deviation, 2e-6))

    def excess(log_multiplier: float) -> float:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            math.exp(log_multiplier), sampling_prob=q, value_discretization_interval=interval
        )
        return math.log(max(one.self_compose(times).get_epsilon_for_delta(delta), 1e-9) / epsilon)

    return math.exp(least_root(excess, math.log(guess), -10.0, 1e-5))


GRIDS = (1, 2, 4, 8, 16, 64, 256)
"""σ of one party in grid steps."""

_TAILS = (4.0, 6.0, 8.0, 10.0, 13.0, 18.0, 30.0)


def by_rounded_gaussians(total: int, distance: float, dimension: int, q: float, times: int, delta: float) -> float:
    """ε with the margins of rounding, outside of the coin: δ(ε) ≤ e^a·δ″(ε − a − b) + e^{ε − r²/2}, or without sampling."""
    ideal = sampled_gaussian_curve(math.sqrt(total) / distance, q, times)
    numbers = times * dimension
    least = float(releases_curve([(total, 1, distance, dimension)] * times).epsilon(delta))
    a = numbers / (24 * total)
    for r in _TAILS:
        b = (math.sqrt(numbers / total) + r / math.sqrt(total) + math.sqrt(numbers) / total / 2) ** 2 / 24
        low, high = 0.0, least
        for _ in range(40):
            eps = (low + high) / 2
            inside = eps - a - b
            reached = math.exp(min(a, 700.0)) * float(ideal.delta(inside)) if inside > 0 else 1.0
            low, high = (low, eps) if reached + math.exp(eps - r * r / 2) <= delta else (eps, high)
        least = min(least, high)
    return least


def coarse_grids() -> None:
    parties, q, times, dimension, delta, multiplier = 10, 0.05, 300, 50, 1e-6, 3.0
    print(f"\n{parties} parties, q = {q}, T = {times}, {dimension} numbers, δ = {delta:g}: ε over that of real numbers")
    print("σ of a party in steps   certified   rounded Gaussians   without sampling")
    for steps in size(GRIDS, quick=(4,)):
        total = parties * steps**2
        distance = math.sqrt(total) / multiplier
        real = float(sampled_gaussian_curve(multiplier, q, times).epsilon(delta))
        now = float(sampled_releases_curve(steps**2, parties, distance, dimension, q, times, False).epsilon(delta))
        before = by_rounded_gaussians(total, distance, dimension, q, times, delta)
        always = float(releases_curve([(total, 1, distance, dimension)] * times).epsilon(delta))
        print(f"{steps:21d} {now / real:11.4f} {before / real:19.4f} {always / real:18.2f}", flush=True)


def main() -> None:
    print("      q       T    ε      δ   ours  dp-accounting   ratio   replaced   s ours  s theirs")
    ratios = []
    for q, times, epsilon, delta in size(CASES, quick=((1.0, 1, 1.0, 1e-6),)):
        start = time.perf_counter()
        ours = sampled_gaussian_multiplier(epsilon, delta, q, times)
        middle = time.perf_counter()
        other = theirs(epsilon, delta, q, times, ours)
        end = time.perf_counter()
        both = sampled_gaussian_multiplier(epsilon, delta, q, times, replaced=True)
        ratios.append(ours / other)
        print(
            f"{q:7g} {times:7,} {epsilon:4g} {delta:6.0e} {ours:6.4g} {other:14.6g} {ours / other:7.5f} {both:10.5g} "
            f"{middle - start:8.2f} {end - middle:9.2f}",
            flush=True,
        )
    print(f"ratios between {min(ratios):.5f} and {max(ratios):.5f}")
    coarse_grids()


if __name__ == "__main__":
    main()
