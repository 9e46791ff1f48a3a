"""What a training costs, told beforehand."""

import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked import error as descent_cost
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.error import HEADER, copies, expected_cost
from netdp.families.masked.protocol import MaskedSum
from netdp.models.parties import Landscape
from netdp.protocols import expected_error, influence


def test_bytes_are_those_of_the_numbers_on_the_wire():
    p = MaskedDescent(graphs.ring(6), 20, sigma=1.0, step=0.1, dimension=50)
    cost = expected_cost(p)
    assert cost.step_bytes == 50 * 4
    each = 50 * 4 + HEADER
    assert cost.link_bytes == 20 * 4 * each  # of six parties on a ring one hears two others: four come over a link
    assert cost.party_bytes == cost.mean_bytes == 20 * 7 * each
    star = expected_cost(p.replace(graph=graphs.star(6)))
    assert (star.party_bytes, star.mean_bytes) == (20 * 25 * each, 20 * 5 * each)
    assert cost.rounds == 20 * 3
    assert cost.memory_bytes >= 6 * cost.step_bytes + 24 * 50
    wide = expected_cost(p.replace(modulus=2**40))
    assert wide.link_bytes == 20 * 4 * (50 * 8 + HEADER)
    average = expected_cost(p.replace(spread="average"))
    assert average.party_bytes > 2 * 20 * average.step_bytes  # doubles, round by round


@pytest.mark.parametrize("graph", [graphs.ring(7), graphs.path(5), graphs.star(6), graphs.hypercube(3), graphs.complete(4),
                                   graphs.parse("regular:12,3,seed=1"), graphs.ring(4)])  # fmt: skip
def test_copies_are_counted_neighbour_by_neighbour(graph):
    """The closed form against the rule as the peers have it: not to the author, nor to who hears it, nor where it came from."""
    wanted = []
    for u in range(graph.n):
        near = {int(w) for w in graph.neighbors(u)}
        copied = len(near)
        for v in set(range(graph.n)) - {u}:
            hear = {int(w) for w in graph.neighbors(v)}
            gets = near - hear - {v}
            came_from_one_of_them = v not in near and not near & hear
            copied += len(gets) - came_from_one_of_them
        wanted.append(copied)
    assert copies(graph).tolist() == wanted


def test_copies_on_graphs_too_large_to_follow_are_no_fewer(monkeypatch):
    found = copies(graphs.ring(9))
    monkeypatch.setattr(descent_cost, "_MOST_PAIRS", 1)
    assert (copies(graphs.ring(9)) >= found).all()


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
