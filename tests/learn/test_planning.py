"""Length, rounds and step chosen from the predicted excess risk (docs/proofs/learning.md#excess-risk); the papers' K and T_stop."""

import itertools
import json
import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.protocol import CentralDescent, LocalDescent
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.learning import rounds_needed
from netdp.families.masked.descent import MaskedDescent
from netdp.families.token.walk import WalkDescent
from netdp.graphs.spectrum import spectral_gap
from netdp.learn import Landscape, plan_learning
from netdp.papers.formulas.muffliato import LEARNING_ERRATA as ERRATA
from netdp.papers.formulas.muffliato import descent_bound, descent_stop
from netdp.protocols import calibrate
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error

VALLEY = Landscape(dimension=4, smoothness=0.25, distance=4.0)
STEEP = Landscape(dimension=4, smoothness=0.25, distance=4.0, convexity=0.05)
CUBE = graphs.hypercube(4)
DRAFTS = {
    "central": CentralDescent(100, 1, sigma=1.0, step=1.0, clip=0.5),
    "local": LocalDescent(100, 1, sigma=1.0, step=1.0, clip=0.5),
    "masked": MaskedDescent(graphs.ring(100), 1, sigma=1.0, step=1.0, clip=0.5, dimension=4),
    "gossip": GossipDescent(CUBE, 1, 1, sigma=1.0, step=1.0, clip=0.5, masks=10.0),
    "walk": WalkDescent(40, 40, sigma=1.0, step=1.0, clip=0.5),
}


@pytest.mark.parametrize("name", DRAFTS)
def test_plans_meet_the_target_and_no_choice_that_was_tried_is_much_better(name):
    draft = DRAFTS[name]
    plan = plan_learning(draft, 2.0, 1e-5, VALLEY, most=2 if name == "walk" else 20)
    p = plan.protocol
    assert type(p) is type(draft)
    assert account(p, [0]).worst_epsilon(1e-5) <= 2.0
    shape = "quadratic" if name == "walk" else "convex"
    assert plan.risk.total == expected_error(p, VALLEY, average=plan.average, shape=shape).total
    assert plan.risk.claim.value == ("estimate" if name == "walk" else "upper")
    assert plan.average == ("last" if name == "walk" else "weighted")
    assert plan.risk.total <= 1.02 * min(choice.risk.total for choice in plan.tried)
    assert p.step <= 1 / VALLEY.smoothness
    assert f"{len(plan.tried)} choices" in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["excess_risk"]["total"] == plan.risk.total
    kept = {f for f in p.to_dict() if p.to_dict()[f] != draft.to_dict()[f]}
    assert kept <= {"iterations", "steps", "gossip_rounds", "sigma", "step"}


def test_the_step_and_the_length_are_near_the_best_of_a_grid():
    draft = DRAFTS["central"]
    for landscape, average in itertools.product((VALLEY, STEEP), ("last", "weighted")):
        found = plan_learning(draft, 1.0, 1e-5, landscape, average=average, most=300).risk.total
        best = math.inf
        for T in (1, 3, 10, 30, 100, 300):
            noisy = calibrate(draft.replace(iterations=T), 1.0, 1e-5)
            for step in np.geomspace(1e-4, 1, 60) / landscape.smoothness:
                best = min(best, expected_error(noisy.replace(step=float(step)), landscape, average=average).total)
        assert found <= 1.03 * best


def test_rounds_of_gossip_are_chosen():
    draft = DRAFTS["gossip"]
    plan = plan_learning(draft, 2.0, 1e-5, VALLEY, most=12)
    tried = {choice.protocol.gossip_rounds for choice in plan.tried}
    assert min(tried) == 1
    assert max(tried) == rounds_needed(spectral_gap(CUBE), 16)
    for rounds in tried:
        for T in (4, 8, 12):
            noisy = calibrate(draft.replace(iterations=T, gossip_rounds=rounds, step=plan.protocol.step), 2.0, 1e-5)
            assert plan.risk.total <= 1.03 * expected_error(noisy, VALLEY, average="weighted").total


def test_of_several_landscapes_the_best_counts():
    near = Landscape(dimension=4, smoothness=0.25, distance=1.0, behind=0.02)
    draft = DRAFTS["central"]
    alone = [plan_learning(draft, 0.5, 1e-5, valley, most=32).risk.total for valley in (VALLEY, near)]
    assert plan_learning(draft, 0.5, 1e-5, [VALLEY, near], most=32).risk.total <= min(alone) * (1 + 1e-9)


def test_more_privacy_costs_more_and_colluders_too():
    draft = DRAFTS["masked"]
    risks = [plan_learning(draft, epsilon, 1e-5, VALLEY, most=16).risk.total for epsilon in (0.25, 1.0, 4.0)]
    assert risks == sorted(risks, reverse=True)
    assert plan_learning(draft, 1.0, 1e-5, VALLEY, colluders=50, most=16).risk.total > risks[1]
    assert risks[1] > plan_learning(DRAFTS["central"], 1.0, 1e-5, VALLEY, most=16).risk.total
    assert plan_learning(DRAFTS["local"], 1.0, 1e-5, VALLEY, most=16).risk.total > 2 * risks[1]


def test_what_is_refused():
    with pytest.raises(InvalidValue, match="takes a protocol that learns"):
        plan_learning(netdp.Local(4, sigma=1.0), 1.0, 1e-5, VALLEY)
    with pytest.raises(InvalidValue, match=r"netdp\.learn\.Landscape, or several, got 2"):
        plan_learning(DRAFTS["local"], 1.0, 1e-5, 2.0)
    with pytest.raises(Unsupported, match="without any curvature"):
        plan_learning(DRAFTS["local"], 1.0, 1e-5, Landscape(4, 0.0, 1.0))
    with pytest.raises(Unsupported, match="a graph for every iteration"):
        plan_learning(DRAFTS["gossip"].replace(graph=(CUBE,)), 1.0, 1e-5, VALLEY)


def test_the_papers_formulas():
    assert rounds_needed(1.0, 1) == 1
    for gap in (0.0, 1.5):
        with pytest.raises(InvalidValue, match="spectral gap"):
            rounds_needed(gap, 10)
    # T_stop: where the two terms of Theorem 10 are equal
    T = descent_stop(100, 2.0, 3, 0.5, 0.02, 4.0)
    noise, start = 3 * 4.0 / (100 * 0.02 * T), 0.5 * 16 * math.exp(-T * 0.02 / (2 * 0.5))
    assert noise == pytest.approx(start, rel=0.1)
    assert descent_bound(T, 100, 2.0, 3, 0.5, 0.02, 4.0) == pytest.approx(noise + start)
    assert len(ERRATA) == 6


def test_errata_of_the_papers_utility():
    """d coordinates of noise, and no contraction for two parties: both shown by the exact risk of a quadratic."""
    # f = θ²/2 in d dimensions, many parties, weighted average: the exact noise part grows with d
    n, T, sigma, step = 10, 200, 1.0, 0.1
    from netdp.protocols.risk import weights

    w = weights(step, 1.0, T)
    # θ̃ − θ* = Σ_j noise_j·(Σ_{t>j} w_t·(1−ν)^{t−1−j}·ν)
    influence = np.array([sum(w[t] * (1 - step) ** (t - j) for t in range(j, T)) for j in range(T)]) * step
    per_coordinate = 0.5 * sigma**2 / n * float((influence**2).sum())
    printed = sigma**2 / (n * 1.0 * T)
    assert 100 * per_coordinate > 2 * printed  # with d = 100 the printed σ²/(nμT) is exceeded
    assert 2 * (1 - math.sqrt(0.01)) ** rounds_needed(0.01, 2) > 0.95  # 1 − p: nothing is contracted
