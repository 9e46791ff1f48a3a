"""A ring on a grid, run: whole numbers, exactly added, with the noise that is accounted for."""

import numpy as np
import pytest

from netdp import simulate
from netdp.errors import InvalidValue
from netdp.families.token.ring import RingSum
from netdp.families.token.simulate import pooled, ring_integers, ring_on_the_grid
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error


def test_the_token_is_the_sum_of_all_contributions_to_the_last_bit():
    p = RingSum(5, rounds=2, sigma=1.0, grid=2.0**-6, dimension=2, sensitivity=2.0)
    values = np.random.default_rng(0).uniform(-0.7, 0.7, (5, 2))
    run = simulate(p, values, 3, record=range(4))
    r = run.record
    for part in (r.arrivals, r.contributions, r.noises, r.release):
        np.testing.assert_array_equal(part / p.grid, np.rint(part / p.grid))
    assert len(r.arrivals) == 8
    np.testing.assert_array_equal(r.arrivals[1] - r.arrivals[0], r.contributions[0] + r.noises[0])
    assert (r.visits[:, 1] % 5 == r.visits[:, 2]).all()
    assert np.isnan(r.closings).all()
    assert (r.starts == 0).all()
    np.testing.assert_allclose(run.estimates[0], r.release[0] / 10, rtol=1e-14)
    np.testing.assert_array_equal(run.estimates, simulate(p, values, 3).estimates)
    last = simulate(p, values, 3, record=[4]).record
    np.testing.assert_array_equal(
        r.release[0], last.arrivals[-1] + last.contributions[-1] + last.noises[-1] + last.closings[0]
    )
    assert account(p, [0], transcript=run.transcript).is_certified


def test_the_error_is_the_predicted_one():
    p = RingSum(6, rounds=2, sigma=1.0, grid=0.25, noise="distributed")
    values = np.array([0.1, 0.2, 0.8, 0.4, 0.9, 1.0])
    found = [float(simulate(p, values, seed).estimates[0, 0]) - values.mean() for seed in range(3000)]
    predicted = expected_error(p, values)
    assert predicted.rounding > 0
    assert np.mean(np.square(found)) == pytest.approx(predicted.total, rel=0.1)
    assert predicted.total <= expected_error(p).total
    assert expected_error(p.replace(grid=None)).rounding == 0
    fine = expected_error(p.replace(grid=2.0**-15)).total
    assert fine == pytest.approx(expected_error(p.replace(grid=None)).total, rel=1e-4)
    assert expected_error(p.replace(dimension=3)).total == pytest.approx(3 * expected_error(p).total)


def test_every_noise_of_a_run_is_drawn_for_it_alone():
    p = RingSum(4, 2, sigma=2.0, grid=1.0, noise="distributed", closing=0.25)
    draw = pooled(p, 1, 0)
    total = [draw(int(v), 1) for v in p.hop_variances]
    assert len(total) == 8
    assert p.closing_variance == p.hop_variances[1] == 1
    draw(1, 1)
    with pytest.raises(StopIteration):
        draw(1, 1)
    token, record = ring_integers(p, np.zeros((2, 4, 1), dtype=np.int64), 0, ())
    assert record is None
    assert token.dtype == np.int64


def test_values_are_held_to_what_the_privacy_rests_on():
    p = RingSum(3, 1, sigma=1.0, grid=0.25, sensitivity=1.0)
    with pytest.raises(InvalidValue, match="dimension=2"):
        simulate(p, np.zeros((3, 2)), 0)
    # a relative 1e-9 more than Δ is let through as rounding; on the grid it may be one step more
    data = np.array([[0.125 - 2e-10], [1.125], [0.5]])[None]
    with pytest.raises(InvalidValue, match="5 steps apart, more than the 4"):
        ring_on_the_grid(p, data, None)
    assert ring_on_the_grid(p, data, (0.125 - 2e-10, 1.125)).max() == 4
    each_round = np.array([[[0.0], [0.5], [1.0]], [[1.0], [0.0], [0.25]]])
    run = simulate(p.replace(rounds=2), each_round, 1)
    assert run.estimates.shape == (3, 1)
