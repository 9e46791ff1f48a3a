"""What `MaskedDescent` states of units, coins, grid and modulus."""

import math

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent
from netdp.protocols import Protocol
from netdp.protocols.grid import nearest

RING = graphs.ring(6)
RECORDS = MaskedDescent(RING, 10, 1.0, 0.1, clip=0.7, dimension=5, unit="record", sampling=0.1, max_records=40)


def test_coins_are_exact_multiples():
    for given in (0.1, 1 / 3, 2**-32, 0.999999999999):
        p = RECORDS.replace(sampling=given)
        assert p.sampling <= given
        assert given - p.sampling < 2**-32
        assert p.threshold == p.sampling * 2**32 == int(p.threshold)
        assert p.replace(sampling=p.sampling) == p
    assert RECORDS.replace(sampling=1).threshold == 2**32
    for wrong in (0.0, -0.1, 1.5, math.nan, 2**-33):
        with pytest.raises(InvalidValue, match="sampling"):
            RECORDS.replace(sampling=wrong)


@pytest.mark.parametrize("d", [1, 3, 40])
def test_no_rounded_gradient_is_longer_than_is_counted(d):
    """Clipped vectors, the worst of many and those made to round up, against `distance`."""
    rng = np.random.default_rng(d)
    for grid in (0.5, 0.125, 2**-8):
        record = RECORDS.replace(dimension=d, grid=grid, sigma=1.0)
        party = MaskedDescent(RING, 10, 1.0, 0.1, clip=0.7, dimension=d, sampling=0.5, grid=grid)
        vectors = rng.standard_normal((4000, d))
        vectors *= (0.7 / np.linalg.norm(vectors, axis=1))[:, None] * np.minimum(1, rng.random((4000, 1)) * 1.2)
        each = 0.7 / math.sqrt(d)
        halves = math.floor(each / grid - 0.5)  # as many steps and a half are as far as a coordinate goes, if any
        half = np.full((1, d), each if halves < 0 else (halves + 0.5) * grid)
        lengths = np.linalg.norm(nearest(np.vstack([vectors, half, -half]) / grid), axis=1)
        for p in (record, party):
            assert lengths.max() <= p.distance
            assert p.distance <= 0.7 * (1 + 1e-8) / grid + math.sqrt(d) / 2 + 1e-9 or d == 1
        assert record.distance == party.distance
        always = party.replace(sampling=1.0)
        assert always.distance == always.sum.distance >= lengths.max()
        assert (party.replaced, always.replaced, record.replaced) == (True, False, False)


def test_the_modulus_holds_all_records_at_their_longest():
    p = RECORDS.replace(records=100)
    most = p.n * p.max_records * math.floor(p.distance) + 10 * math.isqrt(p.n * p.sum.share)
    assert p.sum.q > 2 * most
    assert p.sum.reach_steps >= p.max_records * math.floor(p.distance)
    assert p.replace(max_records=10**7).sum.q > p.sum.q
    with pytest.raises(InvalidValue, match="cannot hold"):
        p.replace(modulus=2**10)


def test_grids_are_coarser_where_that_saves_bytes_and_costs_nothing():
    wide = MaskedDescent(
        graphs.complete(5), 100, 0.5, 0.5, dimension=26_010, unit="record", max_records=2000, sampling=0.1
    )
    usual = wide.sum.replace(grid=None, reach=None).step
    assert wide.sum.step == 2 * usual
    assert wide.sum.q == 2**32
    assert wide.replace(iterations=10**7).sum.step == usual  # there it would cost
    assert wide.replace(grid=usual).sum.q > 2**32
    huge = wide.replace(dimension=10**7, sigma=5.0)
    assert huge.sum.share <= 2**40
    assert huge.replace(sigma=0.1).sum.step < huge.sum.step


def test_it_is_written_down_and_read_back():
    for p in (
        RECORDS,
        RECORDS.replace(momentum=0.9, average="later", records=77),
        MaskedDescent(RING, 3, 2.0, 0.1, sampling=0.25),
    ):
        assert Protocol.from_dict(p.to_dict()) == p
    told = RECORDS.replace(momentum=0.9, average="later").describe()
    for words in (
        "record by record",
        "each of about 240 records takes part with probability 0.1",
        "momentum 0.9",
        "later half",
    ):
        assert words in told


def test_what_is_refused():
    for wrong, words in (
        ({"unit": "row"}, "unknown unit"),
        ({"max_records": None}, "needs max_records"),
        ({"unit": "party"}, "belong to unit='record'"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"average": "weighted"}, "unknown average"),
        ({"max_records": 0}, "max_records"),
        ({"records": 2.5}, "records"),
    ):
        with pytest.raises(InvalidValue, match=words):
            RECORDS.replace(**wrong)
