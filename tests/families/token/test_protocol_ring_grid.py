"""The steps of a user of a ring on a grid."""

import json
from fractions import Fraction

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.token.ring import RingSum, hops_of, ring_add, ring_contributions, ring_mean, ring_steps
from netdp.protocols.base import Protocol
from netdp.protocols.grid import grid_distance, nearest


def counted(asked):
    def draw(variance, size):
        asked.append((variance, size))
        return np.full(size, len(asked), dtype=np.int64)

    return draw


@pytest.mark.parametrize("noise", ["single", "distributed"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_every_noise_is_drawn_once_by_whom_the_protocol_says(noise, rounds):
    p = RingSum(5, rounds, sigma=3.0, noise=noise, closing=0.5, grid=0.5, dimension=2)
    asked = []
    for u in range(p.n):
        before = len(asked)
        rows = ring_contributions(p, u, np.array([1.0, -1.0]), counted(asked))
        assert rows.shape == (rounds, 2)
        assert rows.dtype == np.int64
        mine = [int(p.hop_variances[hop]) for hop in hops_of(p, u) if p.hop_variances[hop]]
        mine += [p.closing_variance] if u == p.n - 1 else []
        assert asked[before:] == [(v, 2) for v in mine]
        np.testing.assert_array_equal((rows - [2, -2]).sum(axis=0), sum(range(before + 1, len(asked) + 1)))
    expected = (p.hop_noise**2).sum() + p.closing_noise**2
    assert sum(v for v, _ in asked) * 0.25 == pytest.approx(expected)
    if noise == "single":
        assert len(asked) == len(np.flatnonzero(p.replace(grid=None).hop_noise)) + 1


def test_variances_are_whole_and_never_below_the_real_ones():
    p = RingSum(7, 2, sigma=1.1, noise="distributed", closing=0.3, grid=0.25)
    square = Fraction(1.1) ** 2 * 16
    assert p.hop_variances[0] == -(-square // 1)
    assert p.hop_variances[1] == -(-square // 7)
    assert p.closing_variance == -(-Fraction(0.3) * square // 1)
    assert (p.hop_noise >= p.replace(grid=None).hop_noise).all()
    assert p.replace(closing=False).closing_variance == 0


def test_values_of_every_round():
    p = RingSum(4, 2, sigma=1.0, grid=0.5, dimension=2)
    zeros = lambda variance, size: np.zeros(size, dtype=np.int64)  # noqa: E731
    rows = ring_contributions(p, 1, np.array([[0.5, 1.0], [0.75, -0.3]]), zeros)
    assert rows.tolist() == [[1, 2], [2, -1]]
    for wrong in (np.zeros(3), np.zeros((3, 2)), np.zeros(0), np.array(1.0)):
        with pytest.raises(InvalidValue, match="dimension"):
            ring_contributions(p, 1, wrong, zeros)
    with pytest.raises(InvalidValue, match="no user 4"):
        hops_of(p, 4)


def test_rounding_is_exact_and_moves_two_numbers_by_no_more_than_stated():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-3, 3, 2000), [0.49999999999999994, -0.5, 0.5]])
    exact = [int((Fraction(v) + Fraction(1, 2)) // 1) for v in x.tolist()]
    assert nearest(x).tolist() == exact
    apart = np.abs(nearest(x)[:-1] - nearest(x)[1:])
    near = np.abs(np.diff(x)) <= 1.25
    assert apart[near].max() == grid_distance(1.25, 1.0, 1) == 2
    vectors = rng.uniform(-0.5, 0.5, (500, 9))
    moved = np.linalg.norm(nearest(vectors) - nearest(vectors * 0.999), axis=1)
    assert moved.max() <= grid_distance(np.linalg.norm(vectors * 0.001, axis=1).max(), 1.0, 9)


def test_the_token_is_a_64_bit_number_and_says_so():
    assert ring_add(np.array([2**62]), np.array([2**62 - 1])).tolist() == [2**63 - 1]
    for token, added in (([2**62], [2**62]), ([-(2**63)], [-1])):
        with pytest.raises(InvalidValue, match="64 bits"):
            ring_add(np.array(token), np.array(added))
    with pytest.raises(InvalidValue, match="alike"):
        ring_add(np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64))
    p = RingSum(4, 2, sigma=1.0, grid=0.5)
    with pytest.raises(InvalidValue, match="64-bit token"):
        ring_steps(p, np.array([1e18]))
    with pytest.raises(InvalidValue, match="64-bit token"):
        ring_steps(p, np.array([np.nan]))
    assert p.most_steps * 8 < 2**62
    assert ring_mean(p, np.array([16])).tolist() == [1.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grid": 0.3}, r"power of two.*take 0\.25"),
        ({"grid": 0.0}, "grid must be"),
        ({"grid": "fine"}, "grid must be"),
        ({"grid": 2.0}, r"sigma=1 is less than one step of the grid 2; give a grid of at most 1\.0"),
        ({"grid": 2.0**-22}, "too fine"),
        ({"grid": 2.0**-10, "sensitivity": 1e12}, "too fine"),
        ({"grid": 2.0**-10, "rounds": 10**9, "sensitivity": 2.0**29}, "64-bit token"),
        ({"dimension": 0}, "dimension must be a whole number ≥ 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(fields, message):
    if fields.get("rounds", 0) > 10**6:
        fields = {**fields, "rounds": 10**4, "n": 10**3, "sensitivity": 2.0**30, "grid": 2.0**-10, "sigma": 1.0}
    with pytest.raises(InvalidValue, match=message):
        RingSum(**{"n": 4, "rounds": 2, "sigma": 1.0, **fields})


def test_it_is_written_down_and_read_back():
    p = RingSum(5, 2, sigma=2.0, grid=0.25, dimension=3)
    assert Protocol.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    old = {k: v for k, v in RingSum(5, 2, sigma=2.0).to_dict().items() if k not in ("grid", "dimension")}
    assert Protocol.from_dict(old) == RingSum(5, 2, sigma=2.0)
    assert "grid of 0.25" in p.describe()
    assert "grid" not in p.replace(grid=None).describe()
    with pytest.raises(InvalidValue, match="real numbers and has no grid"):
        p.replace(grid=None).step  # noqa: B018
