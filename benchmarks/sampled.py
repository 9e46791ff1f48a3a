"""How much noise a sampled Gaussian release needs, repeated: our certified multiplier over that of dp-accounting.

    python benchmarks/sampled.py

dp-accounting composes privacy loss distributions on a grid of its own (Google; Doroshenko et al. 2022), rounding pessimistically;
here on a grid five times finer than ours, where it has an error below ours. Ours also rounds every float on the safe side. The
ratio must lie in [1, 1.01]; add/remove adjacency. The last columns: replacing a party's value while absence is secret, and the
seconds that either search takes.
"""

from __future__ import annotations

import math
import time

from dp_accounting.pld import privacy_loss_distribution

from measure import size
from netdp.privacy.sampled_gaussian import least_root, sampled_gaussian_multiplier

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


if __name__ == "__main__":
    main()
