"""The masked sum as a value, and the steps of a party: rounding, pads, reduction, averaging."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import (
    MaskedSum,
    add_pads,
    averaging,
    contribution,
    opened,
    quantised,
    random_rings,
    reduced,
)
from netdp.graphs.mixing import mixing_matrix
from netdp.numerics import values as held_values
from netdp.protocols import Protocol
from netdp.protocols.grid import SLACK, grid_distance
from netdp.protocols.grid import squared_steps as square_steps

RING = graphs.ring(10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigma": 0.0}, "sigma must be a finite number > 0"),
        ({"sensitivity": -1.0}, "sensitivity must be a finite number > 0"),
        ({"masks": "some"}, "masks must be \"complete\", a degree or a Graph, got 'some'"),
        ({"masks": 0}, "masks .* must be a whole number ≥ 1"),
        ({"masks": True}, "masks"),
        ({"masks": 10}, "masks=10 among 10 parties: a degree is even and less than n"),
        ({"graph": graphs.ring(9), "masks": 3}, "masks=3 among 9 parties: .* or 8, which is everybody"),
        ({"masks": graphs.ring(9)}, "must have the same parties as"),
        ({"spread": "shout"}, "unknown spread 'shout'; choose one of flood, average"),
        ({"dimension": 0}, "dimension must be a whole number ≥ 1"),
        ({"centre": float("nan")}, "centre must be a finite number"),
        ({"grid": 0.3}, "grid must be a power of two.*take 0.25"),
        ({"grid": 2.0}, "sigma=1 is less than one step of the grid 2"),
        ({"grid": 2.0**-30}, "too fine"),
        ({"centre": 1e30}, "too fine"),
        ({"modulus": 1000}, "modulus must be a power of two"),
        ({"modulus": 2**63}, "modulus must be a power of two up to 2⁶²"),
        ({"modulus": 2**10}, "modulus=1024 cannot hold the sum of 10 values with its noise; give at least"),
        ({"mask_seed": -1}, "mask_seed"),
        ({"graph": "ring"}, "MaskedSum must be a netdp Graph"),
        ({"graph": graphs.Graph.from_edges(1, [])}, "at least two parties"),
        ({"attempts": 0}, "attempts must be a whole number ≥ 1"),
        ({"attempts": 1.5}, "attempts must be a whole number"),
        ({"absent": -1}, "absent must be a whole number ≥ 0"),
        ({"absent": 9}, "absent=9 of 10 parties leaves nobody beside a single observer; allow at most 8"),
        ({"unit": "user"}, "unknown unit 'user'; choose one of party, record"),
        ({"unit": "record", "centre": 0.5}, "centre=0.5 with unit='record'.*subtract the public middle"),
        ({"reach": 0.0}, "reach must be a finite number > 0"),
        ({"reach": 1e30}, "needs a modulus of"),
    ],
)
def test_refuses_nonsense(changes, message):
    with pytest.raises(InvalidValue, match=message):
        MaskedSum(**{"graph": RING, "sigma": 1.0, **changes})


def test_the_talk_graph_must_be_connected_the_mask_graph_need_not():
    apart = graphs.Graph.from_edges(4, [(0, 1), (2, 3)])
    with pytest.raises(GraphError, match="connected"):
        MaskedSum(apart, sigma=1.0)
    assert MaskedSum(graphs.ring(4), sigma=1.0, masks=apart).mask_graph == apart


@pytest.mark.parametrize("masks", ["complete", 4, graphs.path(10)], ids=["complete", "regular", "graph"])
def test_is_a_value_that_can_be_written_down(masks):
    more = {"attempts": 2, "unit": "record", "reach": 20.0, "absent": 3 if masks == "complete" else 0}
    one, same = (MaskedSum(graphs.ring(10), 0.5, masks, "average", dimension=3, grid=2**-12, **more) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != one.replace(mask_seed=1)
    with pytest.raises(AttributeError):
        one.sigma = 1.0
    text = json.dumps(one.to_dict())
    assert MaskedSum.from_dict(json.loads(text)) == one == Protocol.from_dict(json.loads(text))
    with pytest.raises(InvalidValue, match="unknown fields \\['speed'\\]"):
        MaskedSum.from_dict({**one.to_dict(), "speed": 1})
    with pytest.raises(InvalidValue, match="has no field 'speed'"):
        one.replace(speed=1)
    assert "masked sum σ=0.5" in str(one)


def test_the_mask_graph_is_drawn_from_the_stated_seed():
    drawn = MaskedSum(graphs.ring(20), 1.0, masks=4, mask_seed=7)
    assert drawn.mask_graph == random_rings(20, 2, 7)
    assert drawn.replace(mask_seed=8).mask_graph != drawn.mask_graph
    assert "pads along 2 random rings (seed 7)" in drawn.describe()
    for everybody in ("complete", 19, graphs.complete(20)):
        assert drawn.replace(masks=everybody).mask_graph is None
    assert "any coalition faces the noise of all others" in drawn.replace(masks="complete").describe()


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "dimension"), [(1.0, 1.0, 1), (0.01, 1.0, 1), (3.0, 0.7, 100), (1e-9, 1e-6, 4)]
)
def test_the_default_grid_is_fine_for_noise_and_values(sigma, sensitivity, dimension):
    p = MaskedSum(RING, sigma, sensitivity=sensitivity, dimension=dimension)
    assert math.frexp(p.step)[0] == 0.5
    coarsest = min(sigma / 16 / math.sqrt(10), sensitivity / 1024 / math.sqrt(dimension))
    assert coarsest / 2 < p.step <= coarsest
    assert (sigma / p.step) ** 2 <= p.share < (sigma / p.step) ** 2 + 1
    assert p.distance <= sensitivity / p.step * (1 + 1.1 / 1024)


def test_noise_is_never_less_than_asked_for():
    p = MaskedSum(RING, sigma=1.03, grid=1.0)
    assert p.share == 2  # 1.0609 rounded up


def test_the_modulus_is_the_usual_one_or_as_large_as_needed():
    assert MaskedSum(RING, 1.0).q == 2**32
    least = MaskedSum(RING, 1.0, spread="average").q
    assert least < 2**32
    assert MaskedSum(RING, 1.0, modulus=least).q == least
    with pytest.raises(InvalidValue, match="cannot hold"):
        MaskedSum(RING, 1.0, modulus=least // 2)
    assert MaskedSum(RING, 1.0, grid=2.0**-19, sensitivity=2.0**20).q > 2**32


def test_only_the_modulus_depends_on_the_reach():
    base = MaskedSum(RING, 1.0, spread="average")
    far, near = base.replace(reach=50.0), base.replace(reach=0.01)
    assert near.q < base.q < far.q
    for p in (far, near):
        assert (p.step, p.share, p.distance) == (base.step, base.share, base.distance)
    assert base.replace(reach=base.sensitivity).q == base.q


def test_the_modulus_holds_the_largest_sum():
    """All values as far from the centre as they may be, all noise ten deviations the same way."""
    for sigma, n in ((0.02, 3), (2.0, 50)):
        p = MaskedSum(graphs.ring(n), sigma, sensitivity=1.3, spread="average")
        for sign in (-1, 1):
            total = int(quantised(p, np.full(n, sign * 1.3 * (1 + SLACK))).sum()) + sign * 10 * math.isqrt(n * p.share)
            assert int(opened(np.array([total % p.q], dtype=np.uint64), p.q)[0]) == total


@settings(max_examples=300)
@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.integers(-12, 3), st.floats(-10, 10))
def test_rounding_moves_two_numbers_apart_by_less_than_a_step(a, b, power, centre):
    """… and not at all if they are whole steps apart: the margin of single numbers."""
    step = 2.0**power
    p = MaskedSum(RING, sigma=max(1.0, step), grid=step, sensitivity=4000.0, centre=centre)
    first, second = (int(quantised(p, np.array([x]))[0]) for x in (a, b))
    assert abs(first - second) <= math.ceil(abs(Fraction(a) - Fraction(b)) / Fraction(step))
    exact = math.floor(Fraction(a) / Fraction(step) + Fraction(1, 2)) - math.floor(
        Fraction(centre) / Fraction(step) + Fraction(1, 2)
    )
    assert first == exact


def test_the_margin_of_rounding_is_attained():
    p = MaskedSum(RING, sigma=1.0, grid=0.5, sensitivity=1.1)
    assert p.distance == 3  # 1.1 is 2.2 steps
    low, high = quantised(p, np.array([0.2, 1.3]))
    assert high - low == 3
    assert p.replace(sensitivity=1.0).distance == 2  # whole steps: nothing is added
    vectors = p.replace(dimension=4, sensitivity=1.0)
    assert vectors.distance == pytest.approx(2 + math.sqrt(4), rel=1e-8)
    assert vectors.distance > 4 * (1 - 1e-15)
    ends = quantised(
        vectors, np.array([[0.24] * 4, [0.24 + 0.5] * 4]) + np.array([[0.0], [0.01]])
    )  # at most 1.02 apart
    assert np.linalg.norm(ends[1] - ends[0]) == 4.0


def test_what_values_are_accepted_is_paid_for():
    assert SLACK >= held_values._ROUNDING


def test_halves_are_rounded_up_everywhere():
    """Rounding halves to even numbers would put 0.5 and 1.5 two steps apart."""
    p = MaskedSum(RING, sigma=8.0, grid=1.0, sensitivity=10.0)
    assert quantised(p, np.array([-1.5, -0.5, 0.5, 1.5, 0.49999999999999994])).tolist() == [-1, 0, 1, 2, 0]


def test_pads_have_the_sign_of_the_definition():
    """y_u = … + Σ_{v>u} m_uv − Σ_{v<u} m_uv."""
    state = np.zeros((3, 1), dtype=np.uint64)
    add_pads(state, 1, np.array([0, 2]), np.array([[5], [7]], dtype=np.uint64))
    assert opened(reduced(state, 2**10), 2**10).ravel().tolist() == [5, 2, -7]


def test_pads_cancel_and_noise_is_added_once():
    rng = np.random.default_rng(0)
    integers, noise = rng.integers(-50, 50, (6, 4)), rng.integers(-9, 9, (6, 4))
    state = np.zeros((6, 4), dtype=np.uint64)
    for u in range(5):
        add_pads(state, u, np.arange(u + 1, 6), rng.integers(0, 2**63, (5 - u, 4), dtype=np.uint64))
    protocol = MaskedSum(graphs.ring(6), sigma=8.0, grid=1.0, sensitivity=100.0, dimension=4, modulus=2**16)
    published = contribution(protocol, integers, noise, state)
    one_by_one = [contribution(protocol, integers[u], noise[u], state[u]) for u in range(6)]
    assert np.array_equal(published, one_by_one)
    total = published.sum(axis=0, dtype=np.uint64)
    assert opened(reduced(total, 2**16), 2**16).tolist() == (integers + noise).sum(axis=0).tolist()


SMALL = [graphs.ring(12), graphs.grid(5, 6), graphs.hypercube(5), graphs.dataset("karate"), graphs.complete(7)]


@pytest.mark.parametrize("graph", SMALL, ids=lambda g: g.name)
def test_averaging_keeps_what_it_promises(graph):
    """The polynomial of the weights, in the eigenvalues: 1 at the mean, small enough elsewhere."""
    modulus = 2**24
    plan = averaging(graph, modulus)
    eigenvalues = np.linalg.eigvalsh(mixing_matrix(graph).toarray())
    previous = state = np.ones_like(eigenvalues)
    for a, b in plan.weights:
        previous, state = state, a * eigenvalues * state - b * previous
    assert state[-1] == pytest.approx(1.0, abs=1e-11)
    worst = np.abs(state[:-1]).max() * graph.n**1.5 * modulus / 2
    assert worst <= plan.mixing_error * (1 + 1e-6) + 1e-3
    assert plan.mixing_error <= 0.125
    assert plan.rounding_error <= 0.35


def test_rounds_of_averaging_are_those_measured():
    assert averaging(graphs.hypercube(8), 2**32).rounds == 45  # 39 for typical values
    assert averaging(graphs.ring(64), 2**24).rounds == 312


def test_averaging_is_refused_where_doubles_are_too_short():
    p = MaskedSum(graphs.ring(1000), sigma=0.1, spread="average")
    with pytest.raises(Unsupported, match=r"ring\(1000\).*so it need not be exact; use spread='flood'"):
        p.rounds  # noqa: B018
    assert p.replace(spread="flood").rounds == 500
    with pytest.raises(Unsupported, match="modulo 2\\^60"):
        averaging(graphs.complete(4), 2**60)


def test_rounds_and_bytes():
    grid = MaskedSum(graphs.grid(4, 7), sigma=1.0, dimension=3)
    assert grid.rounds == 9
    assert grid.link_bytes == 28 * 3 * 4
    assert grid.replace(spread="average").link_bytes == 8 * 3 * grid.replace(spread="average").rounds


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("sigma", "sensitivity", "grid", "dimension"), [(1.3, 1.7, 0.25, 5), (0.9, 2.2, 2.0**-6, 1)])
def test_shares_and_distances_are_rounded_up(sigma, sensitivity, grid, dimension):
    """⌈σ²/g²⌉; Δ(1 + 2·10⁻⁹)/g + √d, half of √d for records; a value lies ⌈Δ(1 + 2·10⁻⁹)/g⌉ + 1 steps from the centre."""
    p = MaskedSum(graphs.ring(6), sigma=sigma, sensitivity=sensitivity, grid=grid, dimension=dimension)
    square = Fraction(sigma / grid) ** 2
    assert square <= p.share < square + 1
    assert p.share == square_steps(Fraction(sigma / grid * grid) ** 2, grid)
    steps = Fraction(sensitivity) / Fraction(grid)
    assert steps % 1 > 0
    assert p.reach_steps == math.floor(steps) + 2
    slack = Fraction(2, 10**9)
    if dimension == 1:
        assert p.distance == grid_distance(sensitivity, grid, 1) == math.floor(steps) + 1
        return
    for found, rounding in (
        (p.distance, math.sqrt(dimension)),
        (grid_distance(sensitivity, grid, dimension), math.sqrt(dimension)),
        (p.replace(unit="record", reach=9.0).distance, math.sqrt(dimension) / 2),
    ):
        exact = steps * (1 + slack) + Fraction(rounding)
        assert 1 < Fraction(found) / exact < 1 + Fraction(1, 10**14)
    records = {"unit": "record", "max_records": 9}
    descent = MaskedDescent(graphs.ring(6), 3, sigma=4.0, step=0.5, clip=1.7, dimension=dimension, **records)
    assert descent.distance == descent.sum.distance
    descent = descent.replace(unit="party", max_records=None, sampling=0.5)  # either of two values is so far from none
    exact = Fraction(1.7) * (1 + slack) / Fraction(descent.sum.step) + Fraction(math.sqrt(dimension) / 2)
    assert 1 < Fraction(descent.distance) / exact < 1 + Fraction(1, 10**14)
