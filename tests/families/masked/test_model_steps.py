"""From the published sums to the model: the same bits for everybody, and what a checkpoint holds."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import (
    MaskedDescent,
    State,
    begun,
    from_bytes,
    kept,
    mean_gradient,
    stepped,
    to_bytes,
)

P = MaskedDescent(
    graphs.ring(5),
    7,
    1.0,
    0.3,
    dimension=4,
    unit="record",
    sampling=0.2,
    max_records=30,
    records=90,
    momentum=0.7,
    average="later",
)


def sums(seed=0, iterations=7, d=4):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, (iterations, d))


def along(protocol, rows, start):
    state, states = begun(start), []
    for t, row in enumerate(rows, start=1):
        state = stepped(protocol, state, t, row)
        states.append(state)
    return states


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"momentum": 0.0},
        {"average": "last"},
        {"iterations": 6},
        {"unit": "party", "max_records": None, "records": None},
    ],
)
def test_every_step_is_plain_arithmetic_of_doubles(change):
    """Held against Python's own doubles, one operation at a time, to the last bit."""
    protocol = P.replace(**change)
    rows, start = sums(iterations=protocol.iterations), np.array([0.1, -2.0, 3.7, 0.0])
    last = along(protocol, rows, start)[-1]
    count = (protocol.iterations + 1) // 2
    for i in range(4):
        theta, velocity, total = float(start[i]), 0.0, 0.0
        for t, row in enumerate(rows, start=1):
            gradient = protocol.sum.step * float(int(row[i])) / protocol.expected
            velocity = protocol.momentum * velocity + gradient
            theta = theta - protocol.step * velocity
            if 2 * t > protocol.iterations:
                total = total + theta
        assert last.theta[i] == theta
        assert kept(protocol, last)[i] == (total / count if protocol.average == "later" else theta)
    assert last.count == count


def test_expected_is_what_the_step_divides_by():
    assert P.expected == 90 * P.sampling
    assert P.replace(records=None).expected == 150 * P.sampling
    one = mean_gradient(P, np.array([2**10] * 4))
    np.testing.assert_allclose(one, 2**10 * P.sum.step / 18, rtol=1e-8)
    grouped = P.replace(groups=2, average="last")
    by_group = mean_gradient(grouped, np.array([[60] * 4, [40] * 4]))  # groups of three and two parties
    np.testing.assert_allclose(by_group, 100 * grouped.sum.step / grouped.expected)


def test_a_restart_goes_on_with_the_same_bits():
    rows = sums(3)
    states = along(P, rows, np.zeros(4))
    for stop in range(1, 7):
        again = from_bytes(to_bytes(states[stop - 1]))
        assert again == states[stop - 1]
        for t in range(stop + 1, 8):
            again = stepped(P, again, t, rows[t - 1])
        assert to_bytes(again) == to_bytes(states[-1])
    assert states[0] != states[1]
    assert to_bytes(begun(np.zeros(1))) == b"netdp model 1\n\0\0" + (1).to_bytes(8, "little") + bytes(8 + 24)


def test_the_models_before_the_later_half_are_kept_as_they_are():
    states = along(P, sums(), np.zeros(4))
    assert [state.count for state in states] == [0, 0, 0, 1, 2, 3, 4]
    assert np.array_equal(kept(P, states[1]), states[1].theta)
    np.testing.assert_allclose(kept(P, states[-1]), np.mean([s.theta for s in states[3:]], axis=0))


def test_what_is_refused():
    state = begun(np.zeros(4))
    with pytest.raises(InvalidValue, match="numbered from 1"):
        stepped(P, state, 8, sums()[0])
    with pytest.raises(InvalidValue):
        stepped(P, state, 0, sums()[0])
    with pytest.raises(InvalidValue, match="int64"):
        stepped(P, state, 1, np.zeros(4))
    with pytest.raises(InvalidValue, match="must agree"):
        stepped(P, state, 1, np.zeros(3, dtype=np.int64))
    with pytest.raises(InvalidValue, match="have a sum each"):
        stepped(P.replace(groups=2), state, 1, np.zeros(4, dtype=np.int64))
    for start in (np.zeros((2, 2)), np.array([np.nan]), np.zeros(0)):
        with pytest.raises(InvalidValue, match="finite numbers in one row"):
            begun(start)
    data = to_bytes(state)
    broken = to_bytes(State(np.array([np.inf]), np.zeros(1), np.zeros(1), 0))
    for wrong in (b"", data[:-1], data + b"\0", b"x" + data[1:], data[:16] + bytes(8) + data[24:], broken):
        with pytest.raises(InvalidValue):
            from_bytes(wrong)
