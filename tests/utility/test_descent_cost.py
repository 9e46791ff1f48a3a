"""What a training costs, told beforehand."""

import pytest

from netdp import MaskedDescent, MaskedSum, graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.utility import Landscape, expected_error, influence
from netdp.utility.descent_cost import expected_cost


def test_bytes_are_those_of_the_numbers_on_the_wire():
    p = MaskedDescent(graphs.ring(6), 20, sigma=1.0, step=0.1, dimension=50)
    cost = expected_cost(p)
    assert cost.step_bytes == 50 * 4
    assert cost.link_bytes == 20 * 6 * 50 * 4 == 20 * p.sum.link_bytes
    assert cost.party_bytes == 2 * cost.link_bytes
    assert cost.rounds == 20 * 3
    assert cost.memory_bytes >= 6 * cost.step_bytes + 24 * 50
    wide = expected_cost(p.replace(modulus=2**40))
    assert wide.link_bytes == 2 * cost.link_bytes


def test_seconds_grow_with_what_they_should_grow_with():
    p = MaskedDescent(graphs.complete(5), 100, 1.0, 0.1, dimension=1000, unit="record", max_records=1000, sampling=0.1)
    base = expected_cost(p)
    assert base.seconds == pytest.approx(100 * base.seconds_per_iteration)
    for options in ({"latency": 0.1}, {"bandwidth": 1e5}, {"gradient_seconds": 1e-3}):
        assert expected_cost(p, **options).seconds > 2 * base.seconds
    assert expected_cost(p, gradient_seconds=1e-3).seconds == pytest.approx(
        expected_cost(p, gradient_seconds=0.0).seconds + 100 * 100 * 1e-3, rel=1e-6
    )
    ten_million = expected_cost(p.replace(dimension=10**7))
    assert "GB" in str(ten_million)
    assert ten_million.seconds > 100 * base.seconds
    assert ten_million.to_dict()["iterations"] == 100


def test_what_is_refused():
    with pytest.raises(InvalidValue, match="takes a MaskedDescent"):
        expected_cost(MaskedSum(graphs.ring(5), sigma=1.0))
    p = MaskedDescent(graphs.ring(6), 20, sigma=1.0, step=0.1)
    for wrong in ({"bandwidth": 0.0}, {"latency": -1.0}, {"gradient_seconds": -1.0}):
        with pytest.raises(InvalidValue):
            expected_cost(p, **wrong)
    for change in ({"sampling": 0.5}, {"momentum": 0.5}, {"average": "later"}, {"unit": "record", "max_records": 3}):
        name = next(iter(change))
        with pytest.raises(Unsupported, match=f"with {name}="):
            expected_error(p.replace(**change), Landscape(1, 1.0, 1.0))
        with pytest.raises(Unsupported, match=f"with {name}="):
            influence(p.replace(**change), [0])
