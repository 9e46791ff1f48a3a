"""The steps that a simulator and a real peer share: records, contributions, averaging by oneself, bytes, random rings."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from netdp import graphs
from netdp.errors import InvalidValue, NetdpError
from netdp.families.masked.protocol import (
    MaskedSum,
    averaging,
    averaging_end,
    averaging_row,
    averaging_start,
    averaging_step,
    contribution,
    from_bytes,
    quantised_records,
    random_order,
    random_rings,
    record_tables,
    reduced,
    summed_records,
    to_bytes,
)

# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_records(dimension=1, sensitivity=1.0, grid=0.25, reach=1000.0):
    return MaskedSum(
        graphs.ring(5), sigma=2.0, unit="record", dimension=dimension, sensitivity=sensitivity, grid=grid, reach=reach
    )


@settings(max_examples=300)
@given(st.lists(st.floats(-1.1, 1.1), max_size=6), st.floats(-1.1, 1.1), st.integers(-4, 1), st.floats(0.05, 10.0))
def test_one_record_moves_a_number_by_at_most_the_distance(others, record, power, reach):
    p = of_records(sensitivity=1.1, grid=2.0**power, reach=reach)
    before, after = quantised_records(p, others), quantised_records(p, [*others, record])
    assert abs(int(after[0] - before[0])) <= p.distance
    exact = math.floor(Fraction(record) / Fraction(p.step) + Fraction(1, 2))
    assert int(summed_records(p, [*others, record])[0] - summed_records(p, others)[0]) == exact


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 6), st.floats(0.3, 20.0))
def test_one_record_moves_a_vector_by_at_most_the_distance(seed, dimension, count, reach):
    p = of_records(dimension, sensitivity=1.3, reach=reach)
    rng = np.random.default_rng(seed)
    records = rng.standard_normal((count + 1, dimension))
    records *= 1.3 / np.linalg.norm(records, axis=1, keepdims=True)
    before, after = quantised_records(p, records[:count]), quantised_records(p, records)
    assert np.linalg.norm(after - before) <= p.distance


def test_the_margins_of_records_are_attained():
    """⌊Δ/g + ½⌋ for a number; Δ/g + √d/2 for a vector whose coordinates are all rounded up by a half."""
    assert of_records(sensitivity=1.1, grid=0.5).distance == 2  # 2.2 steps
    assert of_records(sensitivity=1.3, grid=0.5).distance == 3  # 2.6 steps
    p = of_records(sensitivity=1.25, grid=0.5)  # 2.5 steps: a half is rounded up, below zero too
    assert p.distance == 3
    assert quantised_records(p, [1.25]).tolist() == [3]
    assert quantised_records(p, [-1.25]).tolist() == [-2]
    assert of_records(sensitivity=0.1, grid=1.0).distance == 1  # never nothing
    half = of_records(4, sensitivity=1.5 * 2 * 0.25)  # four coordinates of 1.5 steps
    moved = quantised_records(half, np.full((1, 4), 1.5 * 0.25))
    assert np.linalg.norm(moved) == pytest.approx(half.distance, rel=1e-8)
    assert np.linalg.norm(moved) <= half.distance


def test_records_are_rounded_one_by_one():
    """Rounding their sum would give another number, and could move it by a step more for one record."""
    p = of_records(grid=1.0)
    assert quantised_records(p, [0.5] * 10).tolist() == [10]
    assert quantised_records(p, [0.4] * 10).tolist() == [0]


def test_a_hair_more_than_the_norm_is_not_one_step_more():
    p = of_records(sensitivity=1.2499999999, grid=0.5)  # just below two and a half steps
    assert p.distance == 2
    assert quantised_records(p, [1.25]).tolist() == [2]


def test_sums_are_clipped_to_their_reach():
    p = of_records(reach=2.0, grid=0.25)
    assert summed_records(p, [1.0] * 5).tolist() == [20]
    assert quantised_records(p, [1.0] * 5).tolist() == [p.reach_steps] == [10]
    assert quantised_records(p, [-1.0] * 5).tolist() == [-10]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([1.1], "record 0 has the L2 norm 1.1, more than the sensitivity 1"),
        ([0.5, float("nan")], "record 1 has the L2 norm nan"),
        ([0.5, float("inf")], "record 1 has the L2 norm inf"),
        ([[0.1, 0.1]], "a table of at most 1 columns"),
        (0.5, "a table of at most 1 columns"),
    ],
)
def test_records_that_break_the_promise_are_refused(records, words):
    with pytest.raises(InvalidValue, match=words):
        quantised_records(of_records(), records)


def test_records_belong_to_their_unit():
    with pytest.raises(InvalidValue, match="unit='record', got unit='party'"):
        quantised_records(MaskedSum(graphs.ring(5), sigma=1.0), [0.5])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.1]] * 4, "there are 5 parties, got the records of 4"),
        ([[[0.1, 0.2]], [[0.1]], [], [], []], "equally many columns"),
        ([0.1] * 5, "a table \\(records, columns\\)"),
        (["a"] * 5, "a sequence of tables of numbers"),
        (3.0, "a sequence of tables of numbers"),
    ],
)
def test_tables_of_records_are_checked(values, words):
    with pytest.raises(InvalidValue, match=words):
        record_tables(of_records(), values)


# ── what is published ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_contribution_is_refused_where_the_sum_would_be_wrong():
    p = MaskedSum(graphs.ring(5), sigma=2.0, grid=0.25)
    zero, pads = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint64)
    assert contribution(p, np.array([p.reach_steps]), zero, pads).tolist() == [p.reach_steps]
    with pytest.raises(
        InvalidValue, match=r"a value lies 7 grid steps from the centre 0, more than the 6 .*state reach=1.75"
    ):
        contribution(p, np.array([-p.reach_steps - 1]), zero, pads)
    with pytest.raises(InvalidValue, match="noise must be int64 numbers of shape \\(1,\\)"):
        contribution(p, zero, np.zeros(2, dtype=np.int64), pads)
    with pytest.raises(InvalidValue, match="pads must be uint64"):
        contribution(p, zero, zero, zero)
    with pytest.raises(InvalidValue, match="integers must be int64"):
        contribution(p, zero.astype(float), zero, pads)


@given(st.integers(1, 62), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_bytes_come_back(power, numbers):
    q = 2**power
    y = reduced(np.array(numbers, dtype=np.uint64), q)
    data = to_bytes(y, q)
    assert len(data) == len(y) * (4 if power <= 32 else 8)
    assert np.array_equal(from_bytes(data, q, len(y)), y)
    assert b"".join(int(x).to_bytes(len(data) // len(y), "little") for x in y) == data
    for wrong in (data + b"\0", data[:-1], b""):
        with pytest.raises(InvalidValue, match=r"take .* bytes, got"):
            from_bytes(wrong, q, len(y))


def test_numbers_that_are_not_below_the_modulus_are_refused():
    with pytest.raises(InvalidValue, match="8 is not below the modulus 8"):
        to_bytes(np.array([8], dtype=np.uint64), 8)
    with pytest.raises(InvalidValue, match="8 is not below the modulus 2\\^3"):
        from_bytes(bytes([8, 0, 0, 0]), 8, 1)
    with pytest.raises(InvalidValue, match="a row of uint64 numbers"):
        to_bytes(np.array([[1]], dtype=np.uint64), 8)


# ── averaging by oneself ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("graph", [graphs.grid(3, 4), graphs.star(9), graphs.dataset("karate")], ids=lambda g: g.name)
def test_parties_that_step_by_themselves_all_end_with_the_sum(graph):
    q, d = 2**22, 3
    y = reduced(np.random.default_rng(0).integers(0, 2**62, (graph.n, d), dtype=np.uint64), q)
    rows = [averaging_row(graph, u) for u in range(graph.n)]
    for u, (members, weights) in enumerate(rows):
        assert sorted({u, *graph.neighbors(u).tolist()}) == members.tolist()
        assert weights.sum() == pytest.approx(1.0)
    states = [averaging_start(one, q) for one in y]
    previous = list(states)
    for a, b in averaging(graph, q).weights:
        following = [
            averaging_step(weights, np.stack([states[v] for v in members]), a, b, previous[u])
            for u, (members, weights) in enumerate(rows)
        ]
        previous, states = states, following
    total = reduced(y.sum(axis=0, dtype=np.uint64), q)
    for state in states:
        assert np.array_equal(averaging_end(state, graph.n, q), total)


@pytest.mark.parametrize("state", [[math.nan], [math.inf], [1e9], [0.1]], ids=str)
def test_states_that_cannot_be_are_refused(state):
    with pytest.raises(NetdpError, match="averaging did not become exact"):
        averaging_end(np.array(state), 5, 2**10)


def test_too_large_a_modulus_is_not_averaged():
    with pytest.raises(InvalidValue, match="too large to average"):
        averaging_start(np.zeros(1, dtype=np.uint64), 2**53)


# ── random rings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_orders_are_equally_likely():
    """5! orders over 6,000 seeds, and independent of each other from ring to ring."""
    seen = Counter(tuple(random_order(5, seed, 0).tolist()) for seed in range(6000))
    assert len(seen) == 120
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4
    pairs = Counter((int(random_order(5, seed, 0)[0]), int(random_order(5, seed, 1)[0])) for seed in range(5000))
    assert stats.chisquare([pairs[i, j] for i in range(5) for j in range(5)]).pvalue > 1e-4


def test_every_machine_draws_the_same_rings():
    assert random_order(8, 7, 0).tolist() == EIGHT
    one = random_rings(8, 1, 7)
    assert one.m == 8
    assert one.degrees.tolist() == [2] * 8
    assert all(one.has_edge(u, v) for u, v in zip(EIGHT, [*EIGHT[1:], EIGHT[0]], strict=True))
    two = random_rings(8, 2, 7)
    assert {tuple(edge) for edge in one.edges().tolist()} <= {tuple(edge) for edge in two.edges().tolist()}
    with pytest.raises(InvalidValue, match="at least three parties"):
        random_rings(2, 1, 0)


EIGHT = [0, 5, 3, 2, 6, 7, 4, 1]
