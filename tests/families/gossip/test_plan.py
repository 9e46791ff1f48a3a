"""Plans meet their target by an independent accounting, and their error by an independent prediction."""

import math

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.error import SpectralError
from netdp.families.gossip.plan import advise, plan_gossip, topologies
from netdp.families.gossip.protocol import Gossip
from netdp.privacy import gaussian_mu
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.accuracy import expected_error
from netdp.protocols.target import Policy, Rule

DELTA = 1e-6


@pytest.mark.parametrize(
    "graph", [graphs.hypercube(4), graphs.grid(3, 5), graphs.star(7), graphs.regular(12, 3, seed=1)]
)
@pytest.mark.parametrize("mixing", ["metropolis", "lazy-maximum-degree"])
@pytest.mark.parametrize("accelerated", [False, True])
def test_spectral_error_is_the_expected_error(graph, mixing, accelerated):
    errors = SpectralError(graph, mixing, rounds=12)
    values = np.random.default_rng(0).uniform(size=graph.n)
    for rounds in (1, 2, 3, 12):
        p = Gossip(
            graph,
            rounds=rounds,
            sigma=1.5,
            masks=4.0,
            refresh=0.7,
            accelerated=accelerated,
            sensitivity=1.0,
            mixing=mixing,
        )
        ours, theirs = errors.of(p), expected_error(p, values)
        for name in ("noise", "masks", "refresh"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9)
        assert theirs.mixing <= ours.mixing * (1 + 1e-9) + 1e-15
        assert errors.of(p, spread=float(values.var())).mixing >= theirs.mixing * (1 - 1e-9)


@pytest.mark.parametrize("rounds", [1, 3])
def test_worst_spread_is_attained(rounds):
    # a slowest mode of the hypercube has entries ±1/2: values at both ends of the interval, by one of the bits
    graph = graphs.hypercube(3)
    p = Gossip(graph, rounds=rounds, sigma=1.0)
    slowest = SpectralError(graph, rounds=rounds).of(p).mixing
    assert slowest > 0
    assert expected_error(p, np.repeat([0.0, 1.0], 4)).mixing == pytest.approx(slowest, rel=1e-12)
    # where the slowest mode is no such vector, values at both ends fall short of it
    around = Gossip(graphs.ring(8), rounds=rounds, sigma=1.0)
    ends = np.array([[(x >> i) & 1 for i in range(8)] for x in range(256)], dtype=np.float64)
    errors = [expected_error(around, values).mixing for values in ends]
    assert 0.5 < max(errors) / SpectralError(around.graph, rounds=rounds).of(around).mixing < 1


@pytest.mark.parametrize("graph", [graphs.hypercube(5), graphs.regular(24, 4, seed=2), graphs.grid(4, 5)])
def test_every_option_meets_the_target(graph):
    found = plan_gossip(graph, 1.0, DELTA, max_rounds=80)
    gaussian = 1 / (float(gaussian_mu(1.0, DELTA)) * graph.n)
    assert found.local_law == found.curator_law == "Laplace"
    assert found.local_rmse == pytest.approx(math.sqrt(2 / graph.n))
    assert found.curator_rmse == pytest.approx(math.sqrt(2) / graph.n)
    many = plan_gossip(graph, 1e-3, 0.01, max_rounds=80, kinds=["plain"])  # at a large δ Gaussian noise is less
    assert (many.curator_law, many.curator_rmse) == (
        "Gaussian",
        pytest.approx(1 / float(gaussian_mu(1e-3, 0.01)) / graph.n),
    )
    for option in found.options:
        assert pairwise(option.protocol).worst_epsilon(DELTA) <= 1.0
        assert pairwise(option.protocol).worst_epsilon(DELTA) <= option.guarantee.worst_epsilon(DELTA) * (1 + 1e-9)
        assert found.worst_epsilon(option) <= 1.0
        noise = expected_error(option.protocol)
        assert option.error.total == pytest.approx(noise.total, rel=1e-9)
    assert found.best.name.startswith("masked")
    assert gaussian < found.best.rmse < 1.2 * gaussian  # a curator's with the noise that gossip adds
    assert found.option("plain").rmse >= gaussian * math.sqrt(graph.n)


def test_colluding_plan():
    graph = graphs.hypercube(5)
    found = plan_gossip(graph, 1.0, DELTA, coalitions=[[0, 1, 2]], kinds=("masked",))
    assert account(found.protocol, [0, 1, 2]).worst_epsilon(DELTA) <= 1.0
    assert pairwise(found.protocol).worst_epsilon(DELTA) <= 1.0


@pytest.mark.parametrize("scope", ["beyond:2", "mean", Policy((Rule("*", "distance>=2", 1.0),))])
def test_other_scopes(scope):
    graph = graphs.torus(4, 4)
    epsilon = None if isinstance(scope, Policy) else 1.0
    found = plan_gossip(graph, epsilon, DELTA, scope, max_rounds=40)
    far = np.array([graph.distances(v) >= 2 for v in range(graph.n)])
    for option in found.options:
        loss = pairwise(option.protocol)
        if scope == "mean":
            assert np.nanmean(loss.mu**2, axis=0).max() <= gaussian_mu(1.0, DELTA) ** 2
        else:
            assert loss.epsilon(DELTA)[far].max() <= 1.0
        assert found.worst_epsilon(option) >= loss.worst_epsilon(DELTA) * (1 - 1e-9)
    refreshed, plain = found.option("refreshed"), found.option("plain")
    assert refreshed.rmse < plain.rmse  # refresh does help those far away


def test_what_stands_in_the_way_is_named():
    found = plan_gossip(graphs.path(6), 1.0, DELTA, kinds=("masked",), max_rounds=60)
    assert any("party 0 decides" in note or "party 5 decides" in note for note in found.notes)
    with pytest.raises(Unsupported, match="no noise level meets this"):
        plan_gossip(graphs.ring(6), 1.0, 0.0)
    with pytest.raises(InvalidValue, match="unknown kind 'best'"):
        plan_gossip(graphs.ring(6), 1.0, DELTA, kinds=("best",))
    with pytest.raises(InvalidValue, match="max_rounds must be a whole number ≥ 1, got 0"):
        plan_gossip(graphs.ring(6), 1.0, DELTA, max_rounds=0)
    with pytest.raises(InvalidValue, match="spread"):
        plan_gossip(graphs.ring(6), 1.0, DELTA, spread=-1.0)


def test_plans_are_scale_free():
    one = plan_gossip(graphs.hypercube(4), 1.0, DELTA, kinds=("masked",))
    ten = plan_gossip(graphs.hypercube(4), 1.0, DELTA, kinds=("masked",), sensitivity=10.0)
    assert ten.best.rmse == pytest.approx(10 * one.best.rmse, rel=2e-3)  # σ has four digits in both
    assert ten.protocol.masks == one.protocol.masks


def test_sigma_is_rounded_up_to_four_digits_and_certified_as_printed():
    for option in plan_gossip(graphs.hypercube(4), 1.0, DELTA, max_rounds=30).options:
        assert float(f"{option.protocol.sigma:.4g}") == option.protocol.sigma
        assert 0.998 < pairwise(option.protocol).worst_epsilon(DELTA) <= 1.0


def test_advice():
    advice = advise(graphs.ring(16), 1.0, DELTA, max_rounds=60)
    assert len(advice.candidates) == len(topologies(graphs.ring(16)))
    gaussian = 1 / float(gaussian_mu(1.0, DELTA)) / 16  # a curator's error with the noise that gossip adds
    good = [c for c in advice.candidates if c.option.rmse <= 1.5 * gaussian]
    assert advice.recommended.cost == min(c.cost for c in good)
    assert advice.recommended.graph.name in advice.sentence
    assert advice.to_dict()["recommended"] == advice.recommended.graph.name
    assert f"* {advice.recommended.graph.name}: error" in str(advice)
    assert "Candidate(" not in str(advice)
