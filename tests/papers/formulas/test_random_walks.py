"""Walks over graphs as published: the formulas by hand, their errata computed, and ours below them."""

import math

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.papers.formulas import random_walks as pairwise
from netdp.papers.formulas import random_walks as tradeoff
from netdp.privacy import gaussian_delta
from netdp.protocols import WalkDescent, WalkHistogram

WALK = WalkDescent(graphs.hypercube(3), steps=80, sigma=6.0, step=0.1, clip=0.5)


def test_the_logarithm_is_the_sum_of_powers():
    W = graphs.mixing.metropolis(graphs.grid(3, 3)).toarray()
    n = len(W)
    J = np.full((n, n), 1 / n)
    total, power = np.zeros((n, n)), np.eye(n) - J
    for t in range(1, 3000):
        power = power @ W
        total += power / t
    np.testing.assert_allclose(pairwise.log_matrix(W), total, atol=1e-9)


def test_the_formula_of_2024_by_hand():
    loss = netdp.account(WALK, [0], method="published")
    assert loss.claim == "published"
    W = WALK.transition.toarray()
    logs = pairwise.log_matrix(W)
    near = max(logs[1, w] for w in WALK.graph.neighbors(0))
    slope = WALK.sensitivity**2 * 80 / (36 * 8) * (math.log(80) / 8 + near)
    assert float(np.asarray(loss.curve.rdp(2.0))[1]) == pytest.approx(2 * slope, rel=0.05)
    assert pairwise.largest_order(1.0, 1.0) == pytest.approx(2.0)
    assert np.isnan(loss.epsilon(1e-6)[0])


def exact_renyi(stay, steps, alpha, ratio):
    """Two users: v knows the whole path, and sees k contributions in k noises whenever the token comes. ratio = Δ²/σ²."""
    c, p = alpha * (alpha - 1) * ratio / 2, 1 - stay
    at_v, pending, unseen = 0.5, 0.5 * math.exp(c), 0.5
    for _ in range(steps - 1):
        at_v, pending, unseen = (
            at_v * stay + pending * p,
            (pending * stay + at_v * p) * math.exp(c),
            unseen * stay + at_v * p,
        )
    return math.log(at_v + unseen) / (alpha - 1)


def test_errata_of_2024():
    W = np.array([[0.99, 0.01], [0.01, 0.99]])
    formula = 2 * float(pairwise.pairwise_rdp(W, 100, math.sqrt(10.0))[0, 1])
    truth = exact_renyi(0.99, 100, 2.0, 0.1)
    assert (round(formula, 2), round(truth, 2)) == (3.47, 6.23)
    assert math.sqrt(10.0) >= math.sqrt(2 * 1 / 2)  # the condition on σ holds
    assert "3.47" in pairwise.PAIRWISE_ERRATA[0]
    assert "6.23" in pairwise.PAIRWISE_ERRATA[0]
    slow = pairwise.pairwise_rdp(graphs.mixing.metropolis(graphs.path(40)).toarray(), 400, 1.0)
    assert slow[0, 39] < 0  # a negative loss


def test_errata_of_2025():
    # right after u: one noise, a shift of Δ/σ; the formula has two
    one = graphs.path(2)
    p = WalkDescent(one, steps=2, sigma=1.0, step=0.1, clip=0.5)
    exact = 0.5 * float(gaussian_delta(1.0, 1.0))  # the walk starts at u with probability ½, then v sees it
    loss = tradeoff.first_times(p.transition.toarray(), 1, 2)
    formula = float(loss[0, 0] * gaussian_delta(1 / math.sqrt(2), 1.0))
    assert formula < exact
    # expanding steps keep the shift
    for t in (1, 5, 30):
        mu = 2.0**t / math.sqrt(sum(4.0**i for i in range(t + 1)))
        assert mu > math.sqrt(3) / 2 > 1 / math.sqrt(t + 1) or t == 1


@pytest.mark.parametrize("version", ["2024", "2025"])
def test_what_is_certified_is_less(version):
    """Sound, with the release counted, and still below formulas that are not."""
    printed = np.asarray(netdp.account(WALK, [0], method="published", version=version).epsilon(1e-6))
    ours = np.asarray(netdp.account(WALK, [0]).epsilon(1e-6))
    assert (ours[1:] < printed[1:]).all()


def test_what_the_papers_do_not_cover_is_refused():
    for change, said in (
        ({"tokens": 2}, "one token"), ({"walk": "simple"}, "symmetric"), ({"expansion": 1.1}, "do not expand"),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match=said):
            netdp.account(WALK.replace(**change), [0], method="published")
    with pytest.raises(Unsupported, match="one observer"):
        netdp.account(WALK, [0, 1], method="published")
    with pytest.raises(InvalidValue, match="unknown version '2022'"):
        netdp.account(WALK, [0], method="published", version="2022")
    with pytest.raises(Unsupported, match="one token"):
        netdp.account(WalkDescent(50, 100, 2.0, 0.1, tokens=2), [0], method="published")
    for counts in (
        WalkHistogram(graphs.ring(5), 20, 3, 0.9),
        WalkHistogram(50, 100, 3, 0.9, sender="hidden", tokens=2),
    ):
        with pytest.raises(Unsupported):
            netdp.account(counts, [0], method="published")
