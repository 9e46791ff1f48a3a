"""Sums of Laplace noises, on paths and walks: docs/proofs/token.md#laplace-tokens."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, kv

import netdp
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.path import laplace_profile, local_profile, scale_of
from netdp.privacy import gaussian_delta
from netdp.protocols import PathSum, RingSum, WalkSum


def density(x, count):
    """Of a sum of Laplace noises of scale 1, by a Bessel function (|x| > 0)."""
    x = np.maximum(np.abs(x), 1e-9)
    order = count - 0.5
    return x**order * kv(order, x) / (math.sqrt(math.pi) * gamma(count) * 2**order)


def true_delta(shift, count, eps):
    """∫ (f(x − s) − e^ε f(x))₊ dx."""

    def part(x):
        return max(float(density(x - shift, count) - math.exp(eps) * density(x, count)), 0.0)

    return quad(part, 0.5 * shift, 40 + shift, limit=400, points=[shift])[0]


@pytest.mark.parametrize(("shift", "count"), [(1.0, 1), (3.0, 2), (0.5, 5), (2.0, 12), (6.0, 3)])
def test_the_profile_of_a_sum(shift, count):
    curve = laplace_profile(shift, count)
    for share in (0.0, 0.1, 0.3, 0.6, 0.85):
        exact, found = true_delta(shift, count, share * shift), float(curve.delta(share * shift))
        assert exact * (1 - 1e-6) - 1e-13 <= found <= exact * (1.001 if exact > 1e-6 else 1.2) + 1e-12
    assert float(curve.delta(shift * (1 + 1e-9))) == 0.0


def test_one_noise_is_known_in_closed_form():
    eps = np.linspace(0.0, 2.0, 9)
    np.testing.assert_allclose(laplace_profile(2.0).delta(eps), -np.expm1((eps - 2.0) / 2), rtol=1e-4, atol=1e-14)


def test_many_noises_are_nearly_gaussian():
    for eps in (0.0, 0.05, 0.1):
        found = float(laplace_profile(1.0, 400).delta(eps))
        assert found == pytest.approx(float(gaussian_delta(1 / math.sqrt(800), eps)), rel=0.08)


def test_more_noise_and_smaller_shifts_lose_less():
    eps = np.linspace(0.0, 3.0, 31)
    table = np.array([laplace_profile(3.0, l).delta(eps) for l in (1, 2, 3, 5, 9, 40, 200, 5000)])  # noqa: E741
    assert (np.diff(table, axis=0) <= 1e-12).all()
    table = np.array([laplace_profile(s, 4).delta(eps) for s in (0.2, 1.0, 2.0, 3.0)])
    assert (np.diff(table, axis=0) >= -1e-12).all()


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_norm_is_what_counts(count):
    """Two coordinates moved by 1 and 2 are told apart no better than one moved by 3; moved by 3 each, better."""
    x = np.linspace(-14.0, 17.0, 1241)
    step = x[1] - x[0]
    f, g, h = (density(x - s, count) for s in (0.0, 1.0, 2.0))
    for eps in (0.0, 0.5, 1.5):
        both = np.maximum(np.outer(g, h) - math.exp(eps) * np.outer(f, f), 0.0).sum() * step**2
        assert both <= float(laplace_profile(3.0, count).delta(eps)) + 1e-4
        far = density(x - 3.0, count)
        wide = np.maximum(np.outer(far, far) - math.exp(eps) * np.outer(f, f), 0.0).sum() * step**2
        assert wide > float(laplace_profile(3.0, count).delta(eps))


# ---- rings and paths


def test_a_ring_is_a_composition_of_its_segments():
    p = RingSum(5, rounds=2, sigma=2.0, law="laplace")
    unit = 1 / scale_of(2.0)
    loss = netdp.account(p, [2])
    assert loss.claim == "upper"
    assert loss.factor is None
    # hops 0, 4, 8 hold noise, and the closing: user 3 has hop 4 in its first segment, hop 8 and the closing in the second
    expected = laplace_profile(unit).compose(laplace_profile(unit, 2), unit / 4096)
    for eps in (0.0, 0.5, 1.0):
        assert float(loss.delta(eps)[3]) == pytest.approx(float(expected.delta(eps)), rel=1e-2)
    assert loss.worst_epsilon(0.0) == pytest.approx(2 * unit, rel=1e-6)
    assert any("L1 norm" in line for line in loss.assumptions)
    assert any("Laplace" in line for line in loss.assumptions)


def test_a_segment_without_noise_shows_everything():
    loss = netdp.account(RingSum(10, 3, sigma=2.0, closing=False, law="laplace"), [8])
    assert float(loss.epsilon(0.5)[9]) == math.inf
    assert float(loss.epsilon(0.5)[0]) < math.inf


def test_unequal_noises_may_be_taken_as_smaller_ones():
    """Distributed noise: σ at the first hop, σ/√n elsewhere; the true law of Lap(1) + Lap(1/2) is less telling than two of ½."""
    x = np.linspace(-30.0, 30.0, 6001)
    step = x[1] - x[0]
    one, half = np.exp(-np.abs(x)) / 2, np.exp(-2 * np.abs(x))
    both = np.convolve(one, half, "same") * step
    moved = np.interp(x - 1.0, x, both)
    for eps in (0.0, 0.4, 0.8):
        true = np.maximum(moved - math.exp(eps) * both, 0.0).sum() * step
        assert true <= float(laplace_profile(2.0, 2).delta(eps))
        assert true <= float(laplace_profile(1.0, 1).delta(eps)) + 1e-6
    # between two visits n − 1 noises of σ/√n: nearly a Gaussian of deviation σ
    loss = netdp.account(RingSum(30, 3, 2.0, noise="distributed", law="laplace"), [1])
    assert loss.worst_epsilon(1e-6) < netdp.account(RingSum(30, 3, 2.0, noise="distributed"), [1]).worst_epsilon(1e-6)


def test_paths_and_realised_walks():
    p = PathSum(4, [[0, 1, 0, 3, 1, 0]], sigma=2.0, closing=True, law="laplace")
    loss = netdp.account(p, [1])
    unit = 1 / scale_of(2.0)
    # user 0: one contribution in noise of 1, one in two steps (with user 3), one in a step and the closing
    parts = laplace_profile(unit, 2).self_compose(2, unit / 4096).compose(laplace_profile(unit), unit / 4096)
    assert float(loss.epsilon(1e-3)[0]) == pytest.approx(float(parts.epsilon(1e-3)), rel=1e-2)
    walk = WalkSum(4, 6, sigma=2.0, law="laplace")
    run = netdp.simulate(walk, [0.0, 1.0, 0.5, 0.2], 3)
    assert run.protocol.law == "laplace"
    assert netdp.account(walk, [0], transcript=run.transcript).claim == "upper"


# ---- walks


def stretch_laws(lengths, values, scale, x):
    """The law of the sum over each stretch, users drawn from `values`, on a grid."""
    one = np.mean([np.exp(-np.abs(x - v) / scale) / (2 * scale) for v in values], axis=0)
    step, laws = x[1] - x[0], {1: one}
    for m in range(2, max(lengths) + 1):
        laws[m] = np.convolve(laws[m - 1], one, "same") * step
    return laws


def test_hidden_walks_are_covered():
    """All visit patterns of a walk of three steps among three users, sums on a grid."""
    n, steps, sigma = 3, 3, 2.5
    x = np.linspace(-40.0, 40.0, 2001)
    step = x[1] - x[0]
    P, Q = (stretch_laws([1, 2, 3], [0.0, own], scale_of(sigma), x) for own in (0.0, 1.0))
    curve = netdp.account(WalkSum(n, steps, sigma=sigma, law="laplace", sender="hidden"), [0]).curve.curves
    for eps in (0.0, 0.1, 0.3, 0.7):
        total = 0.0
        for pattern in itertools.product((0, 1), repeat=steps):
            chance = (1 / n) ** sum(pattern) * (1 - 1 / n) ** (steps - sum(pattern))
            lengths = [len(part) for part in "".join(map(str, pattern)).split("1") if part]
            joint_p, joint_q = np.ones(1), np.ones(1)
            for m in lengths[:2]:
                joint_p, joint_q = (
                    np.outer(joint_p, P[m] * step).ravel(),
                    np.outer(joint_q, Q[m] * step).ravel(),
                )
            total += chance * max(
                np.maximum(joint_p - math.exp(eps) * joint_q, 0).sum(),
                np.maximum(joint_q - math.exp(eps) * joint_p, 0).sum(),
            )
        assert total <= float(curve.delta(eps)) + 1e-4


def test_order_of_the_channels_and_of_the_laws():
    found = {}
    for law, sender in (
        ("gaussian", "hidden"),
        ("laplace", "hidden"),
        ("laplace", "receiver-known"),
        ("laplace", "known"),
    ):
        p = WalkSum(30, 150, sigma=6.0, sender=sender, law=law)
        found[law, sender] = netdp.account(p, [0]).worst_epsilon(1e-6)
    assert found["laplace", "hidden"] < found["laplace", "receiver-known"] <= found["laplace", "known"]
    # with strong noise a Laplace step of the same deviation is told apart √2 times as easily
    assert 1.1 < found["laplace", "hidden"] / found["gaussian", "hidden"] < 1.5
    local = netdp.local_dp(WalkSum(30, 150, sigma=6.0, law="laplace"))
    assert found["laplace", "known"] < 0.7 * local.worst_epsilon(1e-6)


def test_zero_out_and_a_limit():
    p = WalkSum(60, 600, sigma=6.0, sender="hidden", law="laplace")
    assert netdp.account(p, [0], adjacency="zero-out").worst_epsilon(1e-6) < netdp.account(p, [0]).worst_epsilon(1e-6)
    limited = netdp.account(p.replace(contributions=2), [0])
    assert limited.worst_epsilon(0.0) <= 2 / scale_of(6.0) * (1 + 1e-9)


def test_the_number_of_visits_is_averaged_over():
    k, weights = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.3, 0.2])
    found = local_profile(1.0, (k, weights, 1e-9))
    each = [laplace_profile(1.0).self_compose(j) for j in (1, 2, 3)]
    for eps in (0.0, 0.7, 1.5):
        exact = sum(w * float(curve.delta(eps)) for w, curve in zip(weights, each, strict=True))
        assert exact <= float(found.delta(eps)) <= 1.02 * exact + 2e-9


def test_noise_of_a_run_has_the_law_and_the_deviation():
    p = WalkSum(2, steps=40_000, sigma=3.0, law="laplace", sensitivity=1.0)
    ends = [netdp.simulate(PathSum(2, [[0]], sigma=3.0, law="laplace"), np.zeros((2, 20_000)), 1).estimates[0]]
    noise = np.concatenate(ends)
    assert np.std(noise) == pytest.approx(3.0, rel=0.03)
    assert np.mean(np.abs(noise)) == pytest.approx(scale_of(3.0), rel=0.03)  # √(2/π)·σ = 2.39 if it were Gaussian
    assert abs(netdp.simulate(p, [0.0, 0.0], 1).estimates[0, 0]) < 0.1


def test_calibration_and_refusals():
    ring = netdp.calibrate(RingSum(5, 2, sigma=1.0, law="laplace"), 1.0, 1e-6)
    assert 0.95 < max(netdp.account(ring, [v]).worst_epsilon(1e-6) for v in range(5)) <= 1.0
    assert (
        netdp.calibrate(RingSum(5, 2, sigma=1.0), 1.0, 1e-6).sigma > ring.sigma
    )  # a small ring and a small δ: Laplace wins
    with pytest.raises(InvalidValue, match="on a grid noise is discrete Gaussian"):
        WalkSum(5, 10, sigma=1.0, grid=0.5, law="laplace")
    with pytest.raises(InvalidValue, match="unknown law 'cauchy'"):
        WalkSum(5, 10, sigma=1.0, law="cauchy")
    with pytest.raises(Unsupported, match="is a number of Gaussian noise"):
        RingSum(5, 2, sigma=1.0, law="laplace").local_mu  # noqa: B018
    with pytest.raises(InvalidValue, match="3 apart"):
        netdp.simulate(RingSum(3, 1, 1.0, law="laplace", sensitivity=2.5), [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]], 0)
    old = RingSum(5, 2, sigma=1.0).to_dict()
    del old["law"]
    assert RingSum.from_dict(old) == RingSum(5, 2, sigma=1.0)


def test_published_formulas_with_laplace_noise():
    """Seed 000 leaves the noise open: Theorem 1 with δ₀ = 0; what Theorem 3 takes for granted of sums fails."""
    from netdp.papers.formulas.amplification import advanced_composition

    ring = netdp.account(RingSum(10, 3, sigma=20.0, law="laplace"), [1], method="published")
    assert ring.claim == "published"
    assert ring.worst_epsilon(1e-6) == pytest.approx(advanced_composition(math.sqrt(2) / 20, 3, 1e-6))
    walk = netdp.account(WalkSum(100, 1000, sigma=20.0, law="laplace"), [1], method="published")
    assert any("not purely ε/√l-DP" in line for line in walk.errata)
    assert float(laplace_profile(0.1, 16).delta(0.1 / 4)) == pytest.approx(0.00058, rel=0.02)
    with pytest.raises(Unsupported, match="stated for Gaussian noise"):
        netdp.account(WalkSum(100, 1000, sigma=20.0, law="laplace", sender="hidden"), [1], method="published")


def test_the_margin_of_laplace_noise_is_on_top():
    """Formula pin: one noise, δ = 1 − e^{(ε−s)/2} = F̄(x − s) − e^ε·F̄(x); either tail wrong by 16u(log 3 + x + 64)."""
    curve = laplace_profile(2.0)
    looked = 0
    for eps, found in zip(curve.epsilons[1:-1].tolist(), curve.deltas[1:-1].tolist(), strict=True):
        x = (2.0 + eps) / 2
        back = 1 - math.exp(x - 2.0) / 2
        added = 16 * 2.0**-53 * (math.log(3) + x + 64) * (back + math.exp(eps - x) / 2)
        exact = -mpmath.expm1((mpmath.mpf(eps) - 2) / 2)
        assert 0.9 * added < float(mpmath.mpf(found) - exact) < 1.1 * added + 1e-15
        looked += 1
    assert looked > 100
