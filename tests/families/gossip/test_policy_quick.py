"""Policies that are as good as one ε, that depend on distances only, or that a neighbour decides: the same result, sooner."""

import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip.plan import plan_gossip
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.search import certify
from netdp.protocols.accounting import pairwise
from netdp.protocols.target import Policy, Rule, Target, audience

DELTA = 1e-6
UNIFORM = Policy([Rule("*", "*", 1.0)])
BY_HOPS = Policy([Rule("*", "*", 4.0), Rule("*", "distance>=2", 1.0)])
NAMED = Policy([Rule("*", "*", 4.0), Rule("3", "distance>=2", 1.0), Rule("5", "4", 0.5)])


def test_one_limit_for_all_is_the_worst_pair():
    graph = graphs.ring(8)
    by_policy, by_epsilon = plan_gossip(graph, None, DELTA, UNIFORM), plan_gossip(graph, 1.0, DELTA)
    assert [o.protocol for o in by_policy.options] == [o.protocol for o in by_epsilon.options]
    assert by_policy.limit == by_epsilon.limit is not None
    assert by_policy.option("plain").certificate.examined == 0


@pytest.mark.parametrize(
    ("policy", "uniform", "symmetric"), [(UNIFORM, True, True), (BY_HOPS, False, True), (NAMED, False, False)]
)
def test_what_kind_of_policy_it_is(policy, uniform, symmetric):
    target = Target(graphs.ring(8), None, DELTA, policy)
    assert (target.uniform, target.symmetric) == (uniform, symmetric)


@pytest.mark.parametrize("policy", [UNIFORM, BY_HOPS, NAMED])
@pytest.mark.parametrize("settings", [{}, {"refresh": 0.3}, {"masks": 30.0}])
@pytest.mark.parametrize("graph", [graphs.ring(8), graphs.regular(10, 3, seed=2)])
def test_certified_as_if_every_pair_were_looked_at(graph, policy, settings):
    p = Gossip(graph, rounds=5, sigma=1.0, **settings)
    target = Target(graph, None, DELTA, policy)
    found = certify(p, target, audience(graph))
    factor = np.asarray(pairwise(p).factor)
    asked = np.nan_to_num(factor, nan=0.0) / target.limits**2
    assert found.demand == pytest.approx(float(asked.max()), rel=1e-6)
    assert found.worst_factor == pytest.approx(float(np.nanmax(factor)), rel=1e-6)
    near = policy is UNIFORM or (policy is NAMED and 5 in graph.neighbors(4))  # the strictest limit is a neighbour's
    assert (found.examined == 0) == (near and "masks" not in settings)
