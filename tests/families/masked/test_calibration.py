"""The least share of noise of a masked sum."""

import math

import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.account import component_curve
from netdp.families.masked.protocol import MaskedSum
from netdp.privacy import gaussian_mu
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate

RING = graphs.ring(60)


@pytest.mark.parametrize("colluders", [1, 6, 30, 59])
@pytest.mark.parametrize("target", [(1.0, 1e-6), (0.1, 1e-5), (4.0, 1e-9)])
def test_it_is_the_least_on_its_grid(target, colluders):
    protocol = calibrate(MaskedSum(RING, sigma=1.0), *target, colluders=colluders)
    assert account(protocol, list(range(colluders))).worst_epsilon(target[1]) <= target[0]
    less = protocol.replace(sigma=math.sqrt(protocol.share - 1.5) * protocol.step, grid=protocol.step)
    assert less.share == protocol.share - 1
    assert account(less, list(range(colluders))).worst_epsilon(target[1]) > target[0]


@pytest.mark.parametrize("colluders", [1, 6, 30])
@pytest.mark.parametrize("dimension", [1, 50])
def test_no_more_noise_than_a_curator_with_the_honest_shares(colluders, dimension):
    protocol = calibrate(MaskedSum(RING, sigma=1.0, dimension=dimension), 1.0, 1e-6, colluders=colluders)
    ideal = 1 / float(gaussian_mu(1.0, 1e-6)) / math.sqrt(60 - colluders)
    assert ideal * (1 - 1e-4) < protocol.sigma < ideal * 1.002


def test_a_coarse_grid_is_kept_and_whole_steps_are_counted():
    protocol = calibrate(MaskedSum(RING, sigma=4.0, grid=0.25), 2.0, 1e-6, colluders=10)
    assert protocol.grid == protocol.step == 0.25
    assert float(component_curve(protocol, 50).epsilon(1e-6)) <= 2.0


def test_little_noise_is_still_a_step():
    protocol = calibrate(MaskedSum(RING, sigma=4.0, grid=1.0), 200.0, 1e-6)
    assert protocol.share == 1


def test_named_coalitions_on_a_given_mask_graph():
    protocol = MaskedSum(RING, sigma=1.0, masks=graphs.path(60))
    cut = calibrate(protocol, 1.0, 1e-6, coalitions=[[30], [10, 50]])
    assert account(cut, [30]).worst_epsilon(1e-6) <= 1.0
    loss = account(cut, [10, 50])
    assert loss.worst == 1 / 9
    assert 0.999 < loss.worst_epsilon(1e-6) <= 1.0
    single = calibrate(protocol, 1.0, 1e-6)  # party 1 cuts off party 0
    assert single.sigma == pytest.approx(3 * cut.sigma, rel=2e-3)
    two = calibrate(protocol, 1.0, 1e-6, colluders=2)  # both neighbours leave nothing but its own share
    assert two.sigma == pytest.approx(single.sigma, rel=1e-9)


def test_refusals():
    protocol = MaskedSum(RING, sigma=1.0)
    with pytest.raises(InvalidValue, match="leaves nobody"):
        calibrate(protocol, 1.0, 1e-6, colluders=60)
    with pytest.raises(InvalidValue, match="not both"):
        calibrate(protocol, 1.0, 1e-6, colluders=2, coalitions=[[1]])
    with pytest.raises(InvalidValue, match="coalitions is empty"):
        calibrate(protocol, 1.0, 1e-6, coalitions=[])
    with pytest.raises(InvalidValue, match="takes no option 'banana'; its options: coalitions, colluders"):
        calibrate(protocol, 1.0, 1e-6, banana=1)
    with pytest.raises(Unsupported, match="delta > 0"):
        calibrate(protocol, 1.0, 0.0)
    with pytest.raises(InvalidValue, match="colluders must be a whole number"):
        calibrate(protocol, 1.0, 1e-6, colluders=0.1)


def test_attempts_absences_and_records_are_calibrated_for():
    base = MaskedSum(RING, sigma=1.0)
    more = calibrate(base.replace(attempts=4, absent=20), 1.0, 1e-6, colluders=10)
    plain = calibrate(base, 1.0, 1e-6, colluders=10)
    assert more.sigma / plain.sigma == pytest.approx(math.sqrt(4 * 50 / 30), rel=2e-3)
    assert 0.99 < account(more, list(range(10))).worst_epsilon(1e-6) <= 1.0
    records = calibrate(base.replace(unit="record", reach=100.0, dimension=3), 1.0, 1e-6)
    assert account(records, [0]).unit.value == "record"
    assert 0.99 < account(records, [0]).worst_epsilon(1e-6) <= 1.0
    named = calibrate(base.replace(absent=20), 1.0, 1e-6, coalitions=[[0], [1, 2, 3]])
    assert 0.99 < account(named, [7, 8, 9]).worst_epsilon(1e-6) <= 1.0
    with pytest.raises(InvalidValue, match="40 observers and absent=20 leave nobody"):
        calibrate(base.replace(absent=20), 1.0, 1e-6, colluders=40)


def test_random_mask_graphs_hide_among_all_but_for_a_probability():
    protocol = MaskedSum(RING, sigma=1.0, masks=12)
    one, ten = (calibrate(protocol, 1.0, 1e-6, colluders=c) for c in (1, 10))
    ideal = 1 / float(gaussian_mu(1.0, 1e-6))
    assert one.sigma == pytest.approx(ideal / math.sqrt(59), rel=2e-3)
    assert ideal / math.sqrt(50) < ten.sigma < 1.02 * ideal / math.sqrt(50)
    assert account(ten, list(range(10)), fixed_before_draw=True).worst_epsilon(1e-6) <= 1.0
    with pytest.raises(Unsupported, match=r"20 of 60 parties cut somebody off a random mask graph of 4 partners each"):
        calibrate(protocol.replace(masks=4), 1.0, 1e-6, colluders=20)
