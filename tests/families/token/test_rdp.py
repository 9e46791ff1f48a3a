"""Rényi statements for walks: docs/proofs/token.md#renyi-walks."""

import importlib.util
import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import rdp
from netdp.families.token.account.events import Shift
from netdp.families.token.account.rdp import response_moment, sampled_moment, told_moment
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

ALPHAS = (1.5, 2.0, 4.0, 8.0)


def divergence(pair, alpha):
    """Of a view cut into cells, from below: cells of next to no probability are left out."""
    kept = (pair[0] > 1e-60) & (pair[1] > 1e-60)
    P, Q = np.log(pair[0][kept]), np.log(pair[1][kept])
    return max(math.log(np.exp(alpha * a + (1 - alpha) * b).sum()) / (alpha - 1) for a, b in ((P, Q), (Q, P)))


def stated(p):
    return netdp.account(p, [0], statement="renyi")


# ---- the pieces


def test_telling_the_path_by_enumeration():
    """All walks of five steps: who is u, O or anybody else at each."""
    cost, own, watched, steps = 0.8, 0.3, 0.2, 5
    total = 0.0
    for path in itertools.product("uox", repeat=steps):
        chance = math.prod({"u": own, "o": watched, "x": 1 - own - watched}[step] for step in path)
        lost = 0.0
        for i, who in enumerate(path):
            if who == "u":
                following = [k for k in range(i + 1, steps) if path[k] != "x"]
                lost += cost / ((following[0] if following else steps) - i)
        total += chance * math.exp(lost)
    assert told_moment(cost, own, watched, steps) == pytest.approx(math.log(total))


@pytest.mark.parametrize(
    ("cost", "own", "watched"), [(0.5, 0.01, 0.01), (3.0, 0.002, 0.004), (0.05, 0.05, 0.3), (1.0, 0.4, 0.6)]
)
def test_the_closed_form_is_above_the_recursion_and_close(cost, own, watched, monkeypatch):
    for steps in (200, 1500):
        exact = told_moment(cost, own, watched, steps)
        with monkeypatch.context() as patch:
            patch.setattr(rdp, "_SHORT", 0)
            closed = told_moment(cost, own, watched, steps)
        assert exact <= closed <= 1.02 * exact + math.log1p(math.exp(cost))


def test_a_long_and_costly_walk_does_not_overflow():
    assert 1000 < told_moment(30.0, 0.1, 0.1, 1500) < 30 * 1500
    assert told_moment(1e4, 0.1, 0.1, 10) == math.inf


def test_the_rounding_of_the_recursion_is_on_top():
    """Formula pin: log A_T + 4·2⁻⁵³·T², A_T with 40 digits; where every step is u's or O's, A_T = (p·φ(1) + w)^T."""
    for cost, own, watched in ((0.01, 0.25, 0.75), (1e-3, 0.5, 0.5)):
        exact = 2000 * mpmath.log(mpmath.mpf(own) * mpmath.exp(mpmath.mpf(cost)) + mpmath.mpf(watched))
        added = float(told_moment(cost, own, watched, 2000) - exact)
        assert added == pytest.approx(4 * 2.0**-53 * 2000**2, rel=1e-3, abs=0.0)
    with mpmath.workdps(40):
        cost, own, watched, steps = mpmath.mpf(0.5), mpmath.mpf(0.125), mpmath.mpf(0.25), 200
        rest, means = 1 - own - watched, [mpmath.mpf(1)]
        k = [rest ** (i - 1) * (own * mpmath.exp(cost / i) + watched) for i in range(1, steps + 1)]
        for t in range(1, steps + 1):
            means.append(rest**t + mpmath.fsum(k[i - 1] * means[t - i] for i in range(1, t + 1)))
        added = float(told_moment(0.5, 0.125, 0.25, steps) - mpmath.log(means[-1]))
    assert added == pytest.approx(4 * 2.0**-53 * steps**2, rel=0.02, abs=0.0)


@pytest.mark.parametrize(("mu", "q", "alpha"), [(0.5, 0.1, 2.0), (1.0, 0.01, 4.0), (2.0, 0.05, 1.5), (0.2, 0.3, 8.0)])
def test_a_sampled_step(mu, q, alpha):
    """Others anywhere between u's two values: the moment is above all of them, and not far above the worst."""

    def normal(x, m):
        return math.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)

    found = []
    for others in (0.0, mu / 2, mu):
        for one, two in ((mu, 0.0), (0.0, mu)):

            def part(x, others=others, one=one, two=two):
                P, Q = ((1 - q) * normal(x, others) + q * normal(x, m) for m in (one, two))
                return P**alpha * Q ** (1 - alpha)

            found.append(quad(part, -12, 12 + mu, limit=300)[0])
    exact, stated = math.log(max(found)), sampled_moment(Shift(mu, mu), q, alpha)
    assert exact <= stated <= 2.2 * exact


def test_a_response():
    """q-sampled L-ary response, three outcomes in question."""
    gamma, domain, alpha = 0.5, 4, 3.0
    own, other = 1 - gamma + gamma / domain, gamma / domain
    exact = own**alpha * other ** (1 - alpha) + other**alpha * own ** (1 - alpha) + (domain - 2) * other
    assert response_moment(math.log(own / other), 1 - gamma, alpha) == pytest.approx(math.log(exact))
    assert response_moment(0.0, 0.0, 2.0) == 0.0
    assert response_moment(5.0, 0.5, 400.0) == math.inf


# ---- whole walks, enumerated


@pytest.mark.parametrize("sender", ["hidden", "receiver-known", "known"])
@pytest.mark.parametrize(("release", "sigma"), [("anonymous", 0.8), ("named", 2.0)])
def test_sums_are_covered(sender, release, sigma):
    n, steps = 3, 4
    loss = stated(WalkSum(n, steps, sigma=sigma, sender=sender, release=release))
    for others, own in itertools.product(((0.0,), (1.0,)), (0.0, 1.0)):
        pair = brute.whole_view(steps, 1 / n, brute.sum_stretch(others, own, 1 - own, sigma), sender, release)
        for alpha in ALPHAS:
            assert divergence(pair, alpha) <= float(loss.rdp(alpha)[1]) + 1e-12


@pytest.mark.parametrize("decay", [0.0, 0.6, 1.0])
def test_descents_are_covered(decay):
    n, steps, sigma = 3, 4, 1.5
    loss = stated(WalkDescent(n, steps, sigma=sigma, step=1.0, clip=0.5))
    pair = brute.whole_view(steps, 1 / n, brute.sum_stretch((0.0,), 0.0, 1.0, sigma, decay), "known", "named")
    for alpha in ALPHAS:
        assert divergence(pair, alpha) <= float(loss.rdp(alpha)[1]) + 1e-12


@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("response", ["k-ary", "unary"])
def test_histograms_are_covered(sender, response):
    p = WalkHistogram(4, 5, domain=2, gamma=0.5, sender=sender, response=response)
    loss = stated(p)
    if response == "unary":  # a unary answer tells more than one bit of it
        assert (loss.rdp(2.0)[1:] >= stated(p.replace(response="k-ary")).rdp(2.0)[1:]).all()
        return
    for others, own in itertools.product(((0, 0), (0, 1), (1, 1)), (0, 1)):
        view = brute.heap_stretch(others, own, 1 - own, 2, 0.5)
        pair = brute.whole_view(5, 1 / 4, view, sender, p.release)
        for alpha in ALPHAS:
            assert divergence(pair, alpha) <= float(loss.rdp(alpha)[1]) + 1e-12


# ---- orientation


def test_hidden_senders_are_as_good_as_a_curator():
    """αT(Δ/nσ)²/2·…: with strong noise T sampled steps of q = 1/n, α·T·q²·μ²/2 each."""
    p = WalkSum(1000, 100_000, sigma=61.0, sender="hidden")
    small = 2.0 * 100_000 / 999**2 / 61.0**2 / 2
    assert small <= float(stated(p).rdp(2.0)[1]) < 1.1 * small
    assert stated(p).worst_epsilon(1e-6) < 1.3 * 0.0167
    known = stated(p.replace(sender="known", release="named"))
    assert float(known.rdp(2.0)[1]) < 5 * small
    assert float(known.rdp(2.0)[1]) < 0.02 * 2.0 * 100 / 61.0**2 / 2  # local DP with 100 contributions


def test_the_divergences_hold_with_their_statement():
    p = WalkDescent(20, 60, sigma=3.0, step=0.1, clip=0.5)
    loss = stated(p)
    assert loss.claim == "upper"
    assert loss.assumptions == netdp.account(p, [0]).assumptions
    assert any("renyi-walks" in line for line in loss.references)
    assert math.isnan(float(loss.rdp(2.0)[0]))
    assert (np.diff([float(loss.rdp(a)[1]) for a in ALPHAS]) >= 0).all()
    two = stated(p.replace(tokens=2))
    assert float(two.rdp(2.0)[1]) == pytest.approx(2 * float(loss.rdp(2.0)[1]))
    many = WalkDescent(2000, 20_000, sigma=8.0, step=0.1, clip=0.5)
    published = netdp.account(many, [0], method="published")
    assert stated(many).worst_epsilon(1e-6) < published.worst_epsilon(1e-6)


def test_a_limit_and_refusals():
    p = WalkSum(50, 500, sigma=3.0, contributions=3)
    assert float(stated(p).rdp(2.0)[1]) <= 3 * 2.0 / 9 / 2 * (1 + 1e-8)
    assert float(stated(WalkDescent(50, 500, sigma=3.0, step=0.1, clip=0.5, expansion=2.0)).rdp(2.0)[1]) > 0
    with pytest.raises(InvalidValue, match="unknown statement 'gdp'; choose one of profile, renyi"):
        netdp.account(p, [0], statement="gdp")
    with pytest.raises(Unsupported, match="number of Gaussian noise"):
        stated(WalkSum(50, 500, sigma=3.0, law="laplace"))
    with pytest.raises(Unsupported, match="complete graph"):
        stated(WalkDescent(graphs.ring(5), 50, sigma=3.0, step=0.1))
    with pytest.raises(Unsupported, match="drawn alike"):
        stated(WalkSum(4, 50, sigma=3.0, weights=(1, 1, 1, 3)))
