"""Sampled sums of whole numbers: discrete noise with mixtures, enumerated, from both sides.

Proof: docs/proofs/masked.md#sampled-descent.
"""

import math

import mpmath
import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.mechanisms.noisy_sums import releases_curve, sampled_releases_curve
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve


def noise_law(variance, shares, width):
    """The sum of so many discrete Gaussians, on −width … width."""
    x = np.arange(-width, width + 1)
    share = np.exp(-(x**2) / (2 * variance))
    share /= share.sum()
    law = share
    for _ in range(shares - 1):
        law = np.convolve(law, share)
    middle = len(law) // 2
    return law[middle - width : middle + width + 1]


def moved(law, by):
    """The law of noise + by."""
    out = np.zeros_like(law)
    out[max(by, 0) : len(law) + min(by, 0)] = law[max(-by, 0) : len(law) - max(by, 0)]
    return out


def hockey_stick(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(
    ("variance", "shares", "distance", "q"), [(4, 3, 3, 0.25), (100, 4, 20, 0.1), (2500, 9, 150, 0.5)]
)
def test_one_sampled_number_enumerated(variance, shares, distance, q):
    law = noise_law(variance, shares, int(9 * math.sqrt(variance * shares)) + 2 * distance)
    mixed = {k: (1 - q) * law + q * moved(law, k) for k in {distance, -distance, distance // 2, 1, 0}}
    once = sampled_releases_curve(variance, shares, distance, 1, q, 1, False)
    both = sampled_releases_curve(variance, shares, distance, 1, q, 1, True)
    closest = {"once": 0.0, "both": 0.0}
    for epsilon in (0.0, 0.05, 0.2, 0.5):
        added = max(hockey_stick(a, b, epsilon) for x in mixed.values() for a, b in ((x, law), (law, x)))
        swapped = max(hockey_stick(a, b, epsilon) for a in mixed.values() for b in mixed.values())
        assert added <= float(once.delta(epsilon)) * (1 + 1e-9)
        assert swapped <= float(both.delta(epsilon)) * (1 + 1e-9)
        closest["once"] = max(closest["once"], added / float(once.delta(epsilon)))
        closest["both"] = max(closest["both"], swapped / float(both.delta(epsilon)))
    if variance * shares > 10_000:  # a fine grid: nothing to speak of is lost
        assert min(closest.values()) > 0.98


def test_two_adaptive_sampled_numbers_enumerated():
    """Coins of their own, the second value a function of the first sum: no reaction exceeds the curve, and one comes close."""
    variance, shares, distance, q, width = 800, 2, 40, 0.3, 290
    law = noise_law(variance, shares, width)
    place = np.arange(-width, width + 1)

    def joint(first, second):
        one = (1 - q) * law + q * moved(law, first)
        rows = [p * ((1 - q) * law + q * moved(law, int(second(s)))) for p, s in zip(one, place, strict=True)]
        return np.stack(rows)

    absent = joint(0, lambda s: 0)
    reactions = [
        joint(distance, lambda s: distance),
        joint(-distance, lambda s: -distance),
        joint(distance, lambda s: distance if s > 3 else -distance),
        joint(5, lambda s: np.clip(s, -distance, distance)),
    ]
    once = sampled_releases_curve(variance, shares, distance, 1, q, 2, False)
    both = sampled_releases_curve(variance, shares, distance, 1, q, 2, True)
    for epsilon in (0.0, 0.3, 0.8):
        added = max(hockey_stick(*pair, epsilon) for x in reactions for pair in ((x, absent), (absent, x)))
        swapped = max(hockey_stick(a, b, epsilon) for a in reactions for b in reactions)
        assert 0.9 * float(once.delta(epsilon)) < added <= float(once.delta(epsilon)) * (1 + 1e-9)
        assert 0.9 * float(both.delta(epsilon)) < swapped <= float(both.delta(epsilon)) * (1 + 1e-9)


def test_vectors_enumerated():
    variance, shares, q, width = 400, 4, 0.4, 260
    law = noise_law(variance, shares, width)
    plane = np.outer(law, law)

    def mixed(a, b):
        return (1 - q) * plane + q * np.outer(moved(law, a), moved(law, b))

    distance = math.hypot(24, 32)
    once = sampled_releases_curve(variance, shares, distance, 2, q, 1, False)
    both = sampled_releases_curve(variance, shares, distance, 2, q, 1, True)
    for epsilon in (0.0, 0.2, 0.6):
        for vector in ((24, 32), (40, 0), (28, -28)):
            assert hockey_stick(mixed(*vector), plane, epsilon) <= float(once.delta(epsilon))
            assert hockey_stick(plane, mixed(*vector), epsilon) <= float(once.delta(epsilon))
        assert hockey_stick(mixed(24, 32), mixed(-24, -32), epsilon) <= float(both.delta(epsilon))
        assert hockey_stick(mixed(24, 32), mixed(-24, -32), epsilon) >= 0.9 * float(both.delta(epsilon))


def test_on_fine_grids_it_is_the_sampled_gaussian_and_on_coarse_ones_no_worse_than_without_sampling():
    ideal = sampled_gaussian_curve(4.0, 0.05, 400)
    fine = sampled_releases_curve(10**9, 16, 4e4 / 1.2649110640673518, 100, 0.05, 400, False)
    assert float(ideal.epsilon(1e-6)) < float(fine.epsilon(1e-6)) < 1.002 * float(ideal.epsilon(1e-6))
    coarse = sampled_releases_curve(4, 2, 1.5, 30, 0.9, 50, False)
    always = releases_curve([(4, 2, 1.5, 30)] * 50)
    assert float(coarse.epsilon(1e-6)) <= float(always.epsilon(1e-6)) * (1 + 1e-9)


def test_its_ends():
    always = releases_curve([(100, 5, 30, 1)] * 3)
    for epsilon in (0.0, 1.0):
        assert sampled_releases_curve(100, 5, 30, 1, 1.0, 3, False).delta(epsilon) == always.delta(epsilon)
        twice = releases_curve([(100, 5, 60, 1)] * 3)
        assert sampled_releases_curve(100, 5, 30, 1, 1.0, 3, True).delta(epsilon) == twice.delta(epsilon)
    assert sampled_releases_curve(100, 5, 0, 1, 0.5, 3, False).delta(0.0) == 0.0
    for wrong in (
        {"sampling": 1.2},
        {"times": 0},
        {"distance": -1.0},
        {"variance": 0},
        {"replaced": "yes"},
        {"distance": 2.5},
    ):
        given = {
            "variance": 100,
            "shares": 5,
            "distance": 30,
            "dimension": 1,
            "sampling": 0.5,
            "times": 3,
            "replaced": False,
        }
        with pytest.raises(InvalidValue):
            sampled_releases_curve(**{**given, **wrong})


def test_the_margins_of_sampled_sums_are_those_that_are_printed():
    """Formula pin: e^{t+t′}·δ″(ε − 2(t + t′)), δ″ of sampled Gaussians of variance V − τ."""
    for variance, shares, distance, dimension, q, times in ((40, 3, 9.0, 4, 0.2, 5), (1, 60, 3, 1, 0.3, 2)):
        v, numbers = variance * shares, times * dimension
        with mpmath.workdps(30):

            def apart(square):
                s = mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * square * i**2) for i in range(1, 9))
                return mpmath.log((1 + 2 * s) / (1 - 2 * s))

            tau = min(mpmath.log(numbers * 1000 * v) / (2 * mpmath.pi**2), mpmath.mpf(v) / 2)
            t = numbers * (sum(apart(mpmath.mpf(variance) * k / (k + 1)) for k in range(1, shares)) + apart(tau))
        t, noise = float(t), math.sqrt(v - float(tau))
        ideal = sampled_gaussian_curve(noise / distance, q, times, replaced=False)
        always = releases_curve([(variance, shares, distance, dimension)] * times)
        found = sampled_releases_curve(variance, shares, distance, dimension, q, times, False)
        smaller = 0
        for eps in found.epsilons[np.linspace(5, len(found.epsilons) - 5, 40).astype(int)].tolist():
            if eps <= 2 * t:
                continue
            best = math.exp(t) * float(ideal.delta(eps - 2 * t))
            smaller += best < float(always.delta(eps))
            if best < min(0.9, float(always.delta(eps))) and best > 1e-25:
                assert best * (1 - 1e-6) <= float(found.delta(eps)) <= best * (1 + 1e-6)
        assert smaller > 10


@pytest.mark.parametrize(("steps", "most"), [(2, 1.03), (4, 1.01), (16, 1.001)])
@pytest.mark.parametrize("replaced", [False, True])
def test_sampling_amplifies_on_coarse_grids(steps, most, replaced):
    """Line "amplification is lost altogether below 64 grid steps of σ": ε of 300 sampled vectors over that in real numbers."""
    total = 10 * steps**2
    distance = math.sqrt(total) / (6.0 if replaced else 3.0)
    found = sampled_releases_curve(steps**2, 10, distance, 50, 0.05, 300, replaced)
    ideal = sampled_gaussian_curve(math.sqrt(total) / distance, 0.05, 300, replaced=replaced)
    assert 1 < float(found.epsilon(1e-6)) / float(ideal.epsilon(1e-6)) < most


def test_a_coarse_sampled_pair_of_numbers_enumerated():
    """A grid of one and a half steps: no reaction exceeds the curve, which is below the one without coins."""
    variance, shares, q, width = 2, 1, 0.2, 30
    law = noise_law(variance, shares, width)
    once = sampled_releases_curve(variance, shares, 1, 1, q, 2, False)
    always = releases_curve([(variance, shares, 1, 1)] * 2)
    place = np.arange(-width, width + 1)

    def joint(first, second):
        one = (1 - q) * law + q * moved(law, first)
        rows = [p * ((1 - q) * law + q * moved(law, int(second(s)))) for p, s in zip(one, place, strict=True)]
        return np.stack(rows)

    absent = joint(0, lambda s: 0)
    reactions = [joint(1, lambda s: 1), joint(1, lambda s: 1 if s > 0 else -1), joint(-1, lambda s: np.sign(s))]
    for epsilon in (0.0, 0.1, 0.3):
        truth = max(hockey_stick(*pair, epsilon) for x in reactions for pair in ((x, absent), (absent, x)))
        found = float(once.delta(epsilon))
        assert truth <= found * (1 + 1e-9)
        assert found < 0.7 * float(always.delta(epsilon))
