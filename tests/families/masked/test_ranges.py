"""Ranges of features from noisy counts of sizes: what is found, and how far one party or record moves the counts."""

import numpy as np
import pytest

from netdp import graphs
from netdp.families.masked.learning import ends_of, found_ranges, noisy_shares, sizes_of
from netdp.families.masked.training import LARGEST, SIZES, SMALLEST, range_sum
from netdp.protocols.calibration import calibrate


def test_sizes_cover_the_line_and_rise():
    x = np.sort(np.concatenate([-np.geomspace(1e-5, 1e12, 500), [0.0], np.geomspace(1e-5, 1e12, 500)]))
    sizes = sizes_of(x)
    assert (np.diff(sizes) >= 0).all()
    assert (sizes.min(), sizes.max()) == (0, SIZES - 1)
    for number, size in zip(x, sizes, strict=True):
        low, high = ends_of(int(size))
        if abs(number) < 2.0**SMALLEST:
            assert (low, high) == (0.0, 0.0)
        elif abs(number) < 2.0 ** (LARGEST + 1):
            assert low <= number <= high
    assert sizes_of(np.array([1e300, -np.inf, -0.0])).tolist() == [SIZES - 1, 0, SIZES // 2]


def table(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    age, pay, degree = rng.uniform(20, 60, rows), rng.uniform(3e4, 6e4, rows), rng.uniform(-124, -114, rows)
    rare = np.where(rng.random(rows) < 0.004, rng.lognormal(9, 1, rows), 0.0)
    return np.column_stack([age, pay, degree, rng.random(rows) < 0.5, rare])


@pytest.mark.parametrize("unit", ["party", "record"])
def test_ranges_of_a_usual_table(unit):
    X = table()
    protocol = range_sum(graphs.ring(400), 5, unit, rows=10, sigma=0.2)
    shares, noise = noisy_shares(protocol, np.split(X, 400), 0)
    exact = np.stack([np.bincount(sizes_of(column), minlength=SIZES) / 4000 for column in X.T])
    # the number of records is noisy too, which moves large shares a little further
    assert 0.85 * noise < np.std(shares - exact) < (1.15 if unit == "party" else 2.0) * noise
    found = found_ranges(protocol, np.split(X, 400), 0)
    assert found.low.tolist() == [16.0, 16384.0, -128.0, 0.0, -1.0]
    assert found.high.tolist() == [64.0, 65536.0, -64.0, 2.0, 1.0]


def test_hidden_sizes_leave_the_largest():
    found = found_ranges(range_sum(graphs.ring(40), 5, "party", None, sigma=1e-3), np.split(table(400), 40), 0)
    assert found.high[1] == 65536.0
    drowned = found_ranges(range_sum(graphs.ring(40), 5, "party", None, sigma=50.0), np.split(table(400), 40), 0)
    assert (drowned.low < drowned.high).all()


@pytest.mark.parametrize("unit", ["party", "record"])
def test_nobody_moves_the_counts_further_than_is_accounted(unit, monkeypatch):
    """docs/proofs/learning.md#private-standardisation: in whole numbers; and the worst pair comes close to it."""
    protocol = calibrate(range_sum(graphs.ring(4), 3, unit, rows=10), 1.0, 1e-6)
    monkeypatch.setattr(
        "netdp.families.masked.learning.noises", lambda share, n, d, times, rng: iter([np.zeros(d, dtype=np.int64)])
    )

    def counts(tables):
        return noisy_shares(protocol, tables, 0)[0]

    others = list(np.split(table(30)[:, :3], 3))
    one, other = np.full((1, 3), 1.0), np.full((1, 3), 1000.0)
    if unit == "party":
        apart = np.linalg.norm((counts([one, *others]) - counts([other, *others])) * 4)
        assert apart == pytest.approx(np.sqrt(6))
    else:
        with_one = np.vstack([others[0], one])
        number = 31.0
        apart = np.linalg.norm(counts([one, *others]) * number - counts([np.zeros((0, 3)), *others]) * 30.0)
        again = np.linalg.norm(counts([with_one, *others[1:]]) * number - counts(others) * 30.0)
        assert apart == pytest.approx(np.sqrt(3))
        assert again == pytest.approx(np.sqrt(3))
    assert apart / protocol.step <= protocol.distance
