"""Gossip on a grid, run: the parties' own steps, and the errors that are predicted."""

import numpy as np
import pytest

from netdp import graphs, simulate
from netdp.errors import InvalidValue
from netdp.families.gossip.protocol import Gossip, gossip_refresh, gossip_start, gossip_step, gossip_weights
from netdp.families.gossip.simulate import discrete, gossip_on_the_grid
from netdp.protocols.accuracy import expected_error


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("refresh", [0.0, 1.5])
def test_a_run_is_what_the_parties_do(refresh, accelerated):
    p = Gossip(
        graphs.erdos_renyi(7, 0.5, seed=2), rounds=4, sigma=2.0, refresh=refresh, grid=2.0**-45, dimension=2,
        accelerated=accelerated,
    )  # fmt: skip
    values = np.random.default_rng(0).uniform(0, 0.7, (7, 2))
    run = simulate(p, values, 11, record=range(6))
    draw = discrete(11)
    noises = draw(p.start_variance, 14).reshape(7, 2)
    states = [gossip_start(p, values[u], lambda v, size, u=u: noises[u]) for u in range(7)]
    before = [None] * 7
    for t in range(p.rounds):
        if t and refresh:
            fresh = draw(p.fresh_variance, 14).reshape(7, 2)
            before = [None if one is None else one + fresh[u] for u, one in enumerate(before)]
            states = [gossip_refresh(p, states[u], lambda v, size, u=u, fresh=fresh: fresh[u]) for u in range(7)]
        rows = run.record.messages[:, 0] == t
        senders = run.record.messages[rows, 1]
        np.testing.assert_array_equal(run.record.payloads[rows], np.stack(states)[senders] * p.grid)
        weights = [gossip_weights(p, u) for u in range(7)]
        mixed = [
            gossip_step(row, states[u], {v: states[v] for v in row}, before[u], p.chebyshev)
            for u, row in enumerate(weights)
        ]
        before, states = states, mixed
    np.testing.assert_array_equal(run.estimates, np.stack(states) * p.grid)
    np.testing.assert_array_equal(run.record.noises, noises[:6] * p.grid)
    assert run.record.refreshes.shape == ((3 if refresh else 0), 6, 2)


@pytest.mark.parametrize(
    ("grid", "refresh", "more"),
    [
        (2.0**-40, 1.0, {}), (0.25, 1.0, {}), (0.25, 0.0, {}),
        (2.0**-40, 1.0, {"accelerated": True, "gap": 0.3}), (0.25, 1.0, {"accelerated": True}),
    ],
)  # fmt: skip
def test_the_error_is_the_predicted_one(grid, refresh, more):
    p = Gossip(graphs.complete(4), rounds=3, sigma=1.0, refresh=refresh, grid=grid, **more)
    values = np.array([0.1, 0.35, 0.8, 1.0])
    found = [simulate(p, values, seed).estimates - values.mean() for seed in range(1500)]
    predicted = expected_error(p, values)
    measured = float(np.mean(np.square(found)))
    assert measured <= predicted.total * 1.1
    assert measured >= (predicted.total - predicted.rounding) * 0.8
    if grid < 1e-9:
        assert predicted.total == pytest.approx(expected_error(p.replace(grid=None), values).total, rel=1e-6)
    assert predicted.total <= expected_error(p).total * (1 + 1e-9)


def test_errors_of_vectors_without_values():
    p = Gossip(graphs.ring(6), rounds=3, sigma=1.0, refresh=1.0)
    one, three = expected_error(p), expected_error(p.replace(dimension=3))
    assert three.noise == pytest.approx(3 * one.noise)
    assert three.mixing == pytest.approx(1.5 * one.mixing)
    values = np.zeros((6, 3))
    values[:3] = [0.4, 0.4, 0.4]
    assert expected_error(p.replace(dimension=3), values).total <= three.total


def test_values_are_held_to_what_the_privacy_rests_on():
    p = Gossip(graphs.ring(3), rounds=1, sigma=1.0, grid=0.25)
    with pytest.raises(InvalidValue, match="dimension=2"):
        simulate(p, np.zeros((3, 2)), 0)
    data = np.array([[0.125 - 2e-10], [1.125], [0.5]])
    with pytest.raises(InvalidValue, match="5 steps apart, more than the 4"):
        gossip_on_the_grid(p, data, None)
    assert gossip_on_the_grid(p, data, (0.125 - 2e-10, 1.125)).max() == 4
