"""Learning under one-time pads (docs/proofs/masked.md#masked-descent): joint laws of adaptive sums enumerated, from both sides."""

import itertools
import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.account_descent import against_any, hidden_among, learned_curve
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.simulate import gradient_sums, shares_of_noise
from netdp.learn import FromGradients, LogisticParties, train
from netdp.privacy import gaussian_delta
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate

RING = graphs.ring(6)


def discrete_gaussian(variance, width):
    x = np.arange(-width, width + 1)
    weight = np.exp(-(x**2) / (2 * variance))
    return weight / weight.sum()


def hockey_stick(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def joint_law(reaction, h, variance, width):
    """P(S_1, S_2) where u adds reaction[0] first and reaction[1](S_1) then, h honest shares of noise in each sum."""
    share = discrete_gaussian(variance, width)
    noise = share
    for _ in range(h - 1):
        noise = np.convolve(noise, share)
    middle = len(noise) // 2
    size = len(noise) + 40
    law = np.zeros((size, size))
    for i, p in enumerate(noise):
        first = i - middle + reaction[0]
        start = size // 2 - middle + reaction[1](first)
        law[first + size // 2, start : start + len(noise)] += p * noise
    return law


def test_two_adaptive_iterations_against_their_joint_law():
    """All gradients that u can have react to what was published; nothing that O sees exceeds the curve, and one comes close."""
    p = MaskedDescent(graphs.ring(3), 2, sigma=4.0, step=0.1, clip=2.0, grid=1.0)
    assert (p.sum.share, p.sum.distance) == (16, 4)
    curve = account(p, [0]).curve
    reactions = [
        (2, lambda s: 2),
        (-2, lambda s: -2),
        (2, lambda s: 2 if s > 0 else -2),
        (-2, lambda s: 2 if s > 1 else -2),
        (0, lambda s: int(np.clip(s, -2, 2))),
        (2, lambda s: -2),
    ]
    laws = [joint_law(r, 2, 16, 40) for r in reactions]
    closest = 0.0
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        allowed = float(np.nanmax(np.asarray(curve.delta(epsilon))))
        for a, b in itertools.permutations(laws, 2):
            found = hockey_stick(a, b, epsilon)
            assert found <= allowed * (1 + 1e-9) + 1e-12
            closest = max(closest, found / allowed)
    assert closest > 0.999


def test_the_loss_is_a_curators_with_the_noise_of_the_honest():
    p = MaskedDescent(graphs.ring(100), 50, sigma=4.0, step=0.5, dimension=10, clip=0.5)
    for colluders in (1, 30):
        loss = account(p, list(range(colluders)))
        mu = math.sqrt(50 / (100 - colluders)) * 1.0 / 4.0
        for epsilon in (0.2, 0.5, 1.0):
            real, found = float(gaussian_delta(mu, epsilon)), float(loss.delta(epsilon)[-1])
            assert real <= found <= real * 1.05
        np.testing.assert_allclose(np.nanmax(loss.factor), 1 / (100 - colluders))
    twice = account(p.replace(attempts=2), [0])
    np.testing.assert_allclose(
        twice.epsilon(1e-6)[1:], account(p.replace(iterations=100), [0]).epsilon(1e-6)[1:], rtol=1e-9
    )
    assert "gradient is a function" in " ".join(twice.assumptions)
    assert account(p, [0]).worst_epsilon(1e-6) < netdp.local_dp(p).worst_epsilon(1e-6) / 5
    assert account(p, [0]).worst_epsilon(1e-6) > netdp.trusted_curator(p).worst_epsilon(1e-6)


def test_groups_hide_a_party_among_their_own_only():
    p = MaskedDescent(RING, 4, sigma=3.0, step=0.1, dimension=2, groups=2)
    alone, together = account(p, [0]), account(p, [0, 2])
    # groups are the even and the odd parties: 0 sits with 2 and 4
    np.testing.assert_allclose(alone.factor, [np.nan, 1 / 3, 1 / 2, 1 / 3, 1 / 2, 1 / 3])
    np.testing.assert_allclose(together.factor, [np.nan, 1 / 3, np.nan, 1 / 3, 1, 1 / 3])
    assert hidden_among(p, 1) == (2, 0.0)
    assert float(against_any(p, 1).epsilon(1e-4)) == pytest.approx(alone.worst_epsilon(1e-4), rel=1e-3)
    with pytest.raises(InvalidValue, match="all others of somebody's group"):
        against_any(p, 3)
    # as a mask graph of two triangles
    triangles = graphs.Graph.from_edges(6, [(0, 2), (0, 4), (2, 4), (1, 3), (1, 5), (3, 5)])
    given = account(p.replace(groups=1, masks=triangles), [0])
    np.testing.assert_allclose(given.epsilon(1e-4), alone.epsilon(1e-4))


def test_any_coalition_of_a_size():
    """Every coalition tried beside the bound that covers them all."""
    path = graphs.path(6)
    for change in ({}, {"groups": 2}, {"masks": path}):
        p = MaskedDescent(RING, 3, sigma=3.0, step=0.1, dimension=2).replace(**change)
        for f in (1, 3) if change else (2,):
            bound = account(p, colluders=f).epsilon(1e-4)
            worst = np.full(6, -np.inf)
            for members in itertools.combinations(range(6), f):
                worst = np.fmax(worst, account(p, list(members)).epsilon(1e-4))
            np.testing.assert_allclose(bound, worst, rtol=1e-4)  # tables of other points
            found = account(p, colluders=f).found
            assert found.epsilon(1e-4) <= bound.max() * (1 + 1e-9)
            named = account(p, list(found.observers.parties)).epsilon(1e-4)
            assert named[found.target] == pytest.approx(found.epsilon(1e-4), rel=2e-3)


def test_random_masks_add_the_probability_of_a_cut():
    p = MaskedDescent(graphs.ring(40), 5, sigma=3.0, step=0.1, dimension=2, masks=8)
    loss = account(p, [0, 1, 2], fixed_before_draw=True)
    plain = float(learned_curve(p, 37).delta(1.0))
    missed = hidden_among(p, 3)[1]
    assert missed > 0
    assert float(loss.delta(1.0)[5]) == pytest.approx(plain + missed, rel=1e-9)
    assert any("part of δ" in text for text in loss.assumptions)
    with pytest.raises(InvalidValue, match="groups are not drawn"):
        account(p.replace(masks="complete", groups=2), [0], fixed_before_draw=True)


@pytest.mark.parametrize("options", [{}, {"colluders": 4}, {"coalitions": [[0, 1], [2, 3, 4]]}])
@pytest.mark.parametrize("change", [{}, {"groups": 3}, {"attempts": 2}, {"dimension": 1}, {"grid": 0.125}])
def test_calibration_meets_the_target_and_not_much_less(options, change):
    p = MaskedDescent(graphs.ring(30), 20, sigma=1.0, step=0.1, clip=0.5, dimension=5).replace(**change)
    found = calibrate(p, 2.0, 1e-5, **options)
    worst = max(len(c) for c in options.get("coalitions", [range(options.get("colluders", 1))]))
    if options.get("coalitions") and p.groups > 1:
        loss = max(account(found, c).worst_epsilon(1e-5) for c in options["coalitions"])
    else:
        loss = float(against_any(found, worst).epsilon(1e-5))
    assert loss <= 2.0
    assert loss > 1.99 or change.get("grid")
    assert found.replace(sigma=p.sigma) == p


def test_what_calibration_refuses():
    p = MaskedDescent(RING, 3, sigma=1.0, step=0.1)
    with pytest.raises(InvalidValue, match="leaves nobody"):
        calibrate(p, 1.0, 1e-5, colluders=6)
    with pytest.raises(InvalidValue, match="not both"):
        calibrate(p, 1.0, 1e-5, colluders=1, coalitions=[[0]])
    with pytest.raises(Unsupported, match="not searched for"):
        calibrate(p.replace(masks=RING), 1.0, 1e-5, colluders=2)
    assert calibrate(p.replace(masks=RING), 1.0, 1e-5).sigma > 0


def test_pads_cancel_to_the_last_bit():
    rng = np.random.default_rng(3)
    for change in ({}, {"groups": 2}, {"masks": 4}):
        p = MaskedDescent(RING, 1, sigma=0.5, step=0.1, dimension=4).replace(**change)
        gradients = rng.uniform(-0.5, 0.5, (6, 4))
        noise = next(shares_of_noise(p, 4, rng))
        with_pads, without = (gradient_sums(p, gradients, noise, pads=pads) for pads in (5, None))
        assert np.array_equal(with_pads, without)
        assert without.shape == (p.groups, 4)
        means = np.stack([gradients[p.group == g].mean(axis=0) for g in range(p.groups)])
        assert np.abs(without - means).max() < 6 * 0.5 / math.sqrt(p.smallest_group)
    with pytest.raises(InvalidValue, match="state dimension=4"):
        next(shares_of_noise(p.replace(dimension=2), 4, rng))


def test_it_learns_as_a_curator_does():
    """The same descent within noise and rounding; one model for all; the noise is that of the mean."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((120, 3)) / 3
    data = LogisticParties.deal(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), 12)
    quiet = MaskedDescent(graphs.ring(12), 30, sigma=1e-4, step=1.0, clip=0.2, dimension=3)
    run = train(quiet, data, 0)
    assert np.ptp(run.models, axis=0).max() == 0
    central = train(netdp.CentralDescent(12, 30, sigma=1e-9, step=1.0, clip=0.2), data, 0)
    np.testing.assert_allclose(run.models, central.models, atol=2e-3)
    flat = FromGradients(lambda models: np.zeros_like(models), 12, 200, 0.0)
    noisy = quiet.replace(sigma=0.3, dimension=200, iterations=5)
    assert np.std(train(noisy, flat, 1).models[0]) == pytest.approx(math.sqrt(5 / 12) * 0.3, rel=0.25)
    with pytest.raises(InvalidValue, match="state dimension=3"):
        train(quiet.replace(dimension=2), data, 0)


def test_a_spoilt_group_does_not_move_the_median_beyond_the_honest_ones():
    p = MaskedDescent(graphs.ring(30), 1, sigma=0.2, step=1.0, dimension=2, groups=5, aggregate="median")
    rng = np.random.default_rng(0)
    honest = gradient_sums(p, rng.uniform(-0.5, 0.5, (30, 2)), next(shares_of_noise(p, 2, rng)))
    for how in ("median", "trimmed"):
        spoilt = honest.copy()
        spoilt[3] = [1e9, -1e9]
        others = np.delete(honest, 3, axis=0)
        found = p.replace(aggregate=how).combined(spoilt)
        assert (found >= others.min(axis=0)).all()
        assert (found <= others.max(axis=0)).all()
    assert np.abs(p.replace(aggregate="mean").combined(spoilt)).max() > 1e8


def test_what_is_refused():
    with pytest.raises(InvalidValue, match="leave masks"):
        MaskedDescent(RING, 3, sigma=1.0, step=0.1, groups=2, absent=1)
    with pytest.raises(InvalidValue, match="at most 3 groups"):
        MaskedDescent(RING, 3, sigma=1.0, step=0.1, groups=4)
    with pytest.raises(InvalidValue, match="at least 3 groups"):
        MaskedDescent(RING, 3, sigma=1.0, step=0.1, groups=2, aggregate="median")
    with pytest.raises(InvalidValue, match="unknown aggregate 'best'"):
        MaskedDescent(RING, 3, sigma=1.0, step=0.1, aggregate="best")
    with pytest.raises(Unsupported, match="median of groups is not their mean"):
        netdp.expected_error(
            MaskedDescent(RING, 3, sigma=1.0, step=0.1, groups=3, aggregate="median"),
            netdp.learn.Landscape(1, 1.0, 1.0),
        )
