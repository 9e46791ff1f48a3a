"""Plans and noise against any f parties (docs/proofs/coalitions.md#any-coalition), and policies that are functions."""

import json

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue, Unsupported
from netdp.families.gossip.plan import plan_gossip
from netdp.families.token.plan import plan_token
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate
from netdp.protocols.target import Policy, Rule, audience

DELTA = 1e-5
PROTOCOLS = {
    "gossip": netdp.Gossip(graphs.grid(3, 3), rounds=10, sigma=1.0, masks=30.0),
    "plain gossip": netdp.Gossip(graphs.ring(8), rounds=4, sigma=1.0),
    "descent": netdp.GossipDescent(graphs.hypercube(3), 3, 2, sigma=1.0, step=0.1, masks=10.0),
    "varying": netdp.VaryingGossip([graphs.ring(5)] * 2, sigma=1.0),
    "randomized": netdp.RandomizedGossip(graphs.ring(5), steps=9, sigma=1.0),
    "ring": netdp.RingSum(6, 2, sigma=1.0, noise="distributed"),
    "ring histogram": netdp.RingHistogram(6, 1, domain=3, gamma=0.5),
    "path": netdp.PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=1.0, closing=True),
    "masked sum": netdp.MaskedSum(graphs.ring(8), sigma=1.0, masks=graphs.hypercube(3)),
    "local": netdp.Local(5, sigma=1.0),
    "shuffle": netdp.Shuffle(graphs.complete(6), rounds=5, epsilon0=3.0),
    "walk": netdp.WalkSum(6, 12, sigma=1.0),
}


@pytest.mark.parametrize("p", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_noise_meets_the_target_and_little_less_would_not(p):
    found = calibrate(p, 1.0, DELTA, colluders=2)
    assert type(found) is type(p)
    reached = account(found, colluders=2).worst_epsilon(DELTA)
    assert 0.98 < reached <= 1.0


def test_one_colluder_is_what_it_was():
    for name in ("gossip", "ring", "path", "varying"):
        p = PROTOCOLS[name]
        assert calibrate(p, 1.0, DELTA, colluders=1) == calibrate(p, 1.0, DELTA)
    # of a shuffle one user colludes with the curator: not the curator alone
    p = PROTOCOLS["shuffle"]
    assert calibrate(p, 1.0, DELTA, colluders=1).epsilon0 == pytest.approx(1.0, rel=2e-3)


def test_what_no_noise_can_do_is_refused():
    with pytest.raises(Unsupported, match="against so many colluders"):
        calibrate(netdp.RingSum(6, 3, sigma=1.0), 1.0, DELTA, colluders=2)
    with pytest.raises(InvalidValue, match="against any 2 parties takes no option 'banana'"):
        calibrate(PROTOCOLS["ring"], 1.0, DELTA, colluders=2, banana=1)
    for wrong in (0, 1.5, True, [0, 1]):
        with pytest.raises(InvalidValue, match="colluders must be a whole number ≥ 1"):
            calibrate(PROTOCOLS["ring"], 1.0, DELTA, colluders=wrong)
    with pytest.raises(InvalidValue, match="leave out observers"):
        calibrate(PROTOCOLS["gossip"], 1.0, DELTA, colluders=2, observers=[0])
    with pytest.raises(Unsupported, match="any 2 parties may be anywhere"):
        calibrate(PROTOCOLS["gossip"], 1.0, DELTA, colluders=2, scope="beyond:2")


@pytest.mark.parametrize("graph", [graphs.hypercube(4), graphs.regular(14, 5, seed=1)])
def test_a_plan_against_any_three(graph):
    found = plan_gossip(graph, 1.0, DELTA, colluders=3, max_rounds=60)
    assert "any 3 parties together" in found.holds
    for option in found.options:
        assert account(option.protocol, colluders=3).worst_epsilon(DELTA) <= 1.0
    assert found.best.name == "masked"
    assert found.best.rmse < found.local_rmse
    assert found.best.rmse > found.limit.rmse
    assert found.guarantee.observers.any_of == 3
    assert found.guarantee.found.epsilon(DELTA) <= found.guarantee.worst_epsilon(DELTA) * (1 + 1e-9)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["limit"]["rmse"] == found.limit.rmse
    assert text["options"][0]["found"]["target"] == found.guarantee.found.target
    assert "no protocol of messages between neighbours" in str(found)


def test_a_limit_is_stated_only_where_it_holds():
    graph = graphs.hypercube(3)
    assert plan_gossip(graph, 1.0, DELTA, kinds=("masked",)).limit is not None
    assert plan_gossip(graph, 1.0, DELTA, kinds=("masked",), observers=[0]).limit is None
    assert plan_gossip(graph, 1.0, DELTA, "beyond:2", kinds=("plain",)).limit is None
    token = plan_token(5, 4.0, 1e-2, visits=1)
    assert token.limit.rmse < token.curator_rmse


def test_whom_it_covers():
    who = audience(graphs.ring(6), colluders=3)
    assert (who.any_of, who.words) == (3, "any 3 parties together")
    with pytest.raises(InvalidValue, match="leaves nobody of 6"):
        audience(graphs.ring(6), colluders=6)


def test_a_policy_against_coalitions_takes_the_strictest_member():
    graph = graphs.hypercube(3)
    p = netdp.Gossip(graph, rounds=10, sigma=1.0, masks=30.0)
    strict = Policy((Rule("*", "*", 4.0), Rule("5", "2", 1.0)))
    found = calibrate(p, None, DELTA, scope=strict, colluders=2)
    loss = account(found, colluders=2).epsilon(DELTA)
    assert loss[5] == pytest.approx(1.0, rel=1e-6)
    assert (loss <= 4.0).all()


FIELD = graphs.geometric(24, 0.45, seed=3)
APART = np.sqrt(((FIELD.positions[:, None] - FIELD.positions[None]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("scope", ["mean", "beyond:2"])
def test_any_parties_and_a_scope_of_places_are_refused(scope):
    with pytest.raises(Unsupported, match="may be anywhere"):
        plan_gossip(graphs.ring(6), 1.0, DELTA, colluders=2, scope=scope)


def test_a_plan_by_policy_against_any_parties():
    """All kinds are offered, and each meets the policy: without masks a neighbour decides, whoever colludes."""
    graph, policy = graphs.ring(6), Policy([Rule("*", "*", 4.0), Rule("2", "distance>=2", 1.0)])
    found = plan_gossip(graph, None, DELTA, colluders=2, scope=policy)
    assert {"plain", "refreshed", "masked"} <= {option.name for option in found.options}
    assert found.limit is None
    for option in found.options:
        reached = account(option.protocol, colluders=2).epsilon(DELTA)
        assert (reached <= [4, 4, 1, 4, 4, 4]).all()


def test_nobody_is_asked_how_far_it_is_from_itself():
    limits = Policy.by_position(lambda apart: 1 / apart).limits(FIELD)
    assert np.isfinite(limits[~np.eye(FIELD.n, dtype=bool)]).all()


def test_policies_by_position():
    rules = Policy((Rule("*", "*", 6.0), Rule("*", "euclidean>=0.5", 2.0), Rule("3", "euclidean <= 0.2", 1.0)))
    limits = rules.limits(FIELD)
    expected = np.where(APART >= 0.5, 2.0, 6.0)
    expected[3] = np.where(APART[3] <= 0.2, 1.0, expected[3])
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_array_equal(limits, expected)

    def by_distance(apart):
        return 6.0 if apart < 0.5 else 2.0

    same = Policy.by_position(by_distance).limits(FIELD)
    expected = np.where(APART >= 0.5, 2.0, 6.0)
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_array_equal(same, expected)


def test_policies_as_functions(tmp_path):
    def trust(u, v):
        return None if v == 0 else 2.0 + (u + v) % 3

    policy = Policy((Rule("*", "*", 3.5),), limit=trust)
    limits = policy.limits(FIELD)
    assert limits[4, 0] == 3.5  # no limit by the function, one by the rule
    assert limits[4, 5] == 2.0
    assert limits[1, 1 + 3] == 3.5
    p = netdp.Gossip(FIELD, rounds=10, sigma=1.0, masks=50.0)
    found = calibrate(p, None, DELTA, scope=policy)
    losses = netdp.pairwise(found).epsilon(DELTA)
    kept = ~np.isnan(losses)
    assert (losses[kept] <= limits[kept] * (1 + 1e-9)).all()
    planned = plan_gossip(FIELD, None, DELTA, policy, kinds=("masked",), max_rounds=40)
    assert {"limit": "trust"} in planned.to_dict()["scope"]["rules"]
    file = tmp_path / "policy.csv"
    file.write_text("*, euclidean>=0.4, 2\n")
    assert np.nanmin(Policy.read(file).limits(FIELD)) == 2.0
    with pytest.raises(FileFormatError, match="has no positions"):
        Policy.read(file).limits(graphs.Graph.from_edges(3, [(0, 1), (1, 2)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Policy(limit=3.0), "limit must be a function"),
        (lambda: Policy(), "at least one rule"),
        (lambda: Policy(limit=lambda u, v: -1.0).limits(FIELD), "says -1.0"),
        (lambda: Policy(limit=lambda u, v: "much").limits(FIELD), "says 'much'"),
        (lambda: Policy(limit=lambda u, v: float("nan")).limits(FIELD), "says nan"),
        (lambda: Rule("*", "euclidean=3", 1.0), "write euclidean>=0.25"),
        (lambda: Rule("euclidean>=3", "*", 1.0), "distances belong to the observer"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(InvalidValue, match=message):
        make()
