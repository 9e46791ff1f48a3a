"""What no protocol of messages between neighbours can do (docs/proofs/coalitions.md#limits): true of ours, and of others."""

import io
import itertools
import math

import numpy as np
import pytest
from rich.console import Console

import netdp
from netdp import graphs
from netdp.errors import InvalidValue
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import _left, curator_limit, expected_error, limits, separated, variance_left
from netdp.protocols.calibration import calibrate
from netdp.report.notebook import plan_card
from netdp.report.plans import plan_table

TWO = (np.array([-0.3, 0.3]), np.array([0.5, 0.5]))


def variance_left_by_enumeration(r, epsilon, away, weight):
    """Signs ±1/2 with a common p from a prior, each answered by binary response; mean variance of their sum given the answers."""
    truth = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for answers in itertools.product((0, 1), repeat=r):
        mass = first = second = 0.0
        for signs in itertools.product((0, 1), repeat=r):
            likely = np.prod([truth if a == s else 1 - truth for a, s in zip(answers, signs, strict=True)])
            k = sum(signs)
            prior = float((weight * (0.5 + away) ** k * (0.5 - away) ** (r - k)).sum())
            mass += prior * likely
            first += prior * likely * (k - r / 2)
            second += prior * likely * (k - r / 2) ** 2
        total += second - first**2 / mass
    return total


@pytest.mark.parametrize("r", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_variance_that_is_left(r, epsilon):
    found = _left(r, epsilon, *TWO)
    assert found == pytest.approx(variance_left_by_enumeration(r, epsilon, *TWO), rel=1e-6)
    assert found <= variance_left(r, epsilon) * (1 + 1e-9)
    # no more is left than binary response leaves to the unbiased estimate, and no more than there was
    reached = r * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert r * math.exp(epsilon) / (1 + math.exp(epsilon)) ** 2 * (1 - 1e-9) <= variance_left(r, epsilon)
    assert variance_left(r, epsilon) <= min(reached, r * r / 4) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [30.0, 35.0, 40.0, 200.0])
def test_a_weak_limit_is_not_made_of_rounding(epsilon):
    """Somebody who answers truly but for e^−ε has an error of r·e^−ε: 1 − 1/(1 + e^−ε) in floating point may be more."""
    for r in (1, 5, 100):
        assert 0.9 * r * math.exp(-epsilon) < variance_left(r, epsilon) <= r * math.exp(-epsilon) * (1 + 1e-9)


def test_it_is_nearly_reached_by_many():
    for epsilon in (0.5, 1.0, 2.0):
        reached = math.exp(epsilon) / math.expm1(epsilon) ** 2
        assert 0.85 < variance_left(1000, epsilon) / (1000 * reached) < 1


@pytest.mark.parametrize("seed", range(8))
def test_interaction_does_not_help(seed):
    """Two parties answer in turn, each question chosen by the answers so far, ε in all: never below the limit."""
    rng = np.random.default_rng(seed)
    epsilon, away, weight = 1.0, *TWO

    # a transcript is (a1, b1, a2, b2); every party spends ε/2 per answer, with channels that depend on the past
    def channel(past):
        tilt = np.random.default_rng([seed, *past]).uniform(
            -epsilon / 2, epsilon / 2
        )  # log-odds of the two inputs differ by ε/2
        middle = np.random.default_rng([seed, 7, *past]).normal()
        low, high = middle - abs(tilt) / 2, middle + abs(tilt) / 2
        odds = (low, high) if tilt > 0 else (high, low)
        return [1 / (1 + math.exp(-o)) for o in odds]  # P(answer 1 | input 0), P(answer 1 | input 1)

    risk = 0.0
    for transcript in itertools.product((0, 1), repeat=4):
        chances = np.ones((2, 2))  # [x1, x2]
        past = [int(rng.integers(1, 2))]
        for step, answer in enumerate(transcript):
            one = np.array(channel(past))
            given = one if answer else 1 - one
            chances *= given[:, None] if step % 2 == 0 else given[None, :]
            past = [*past, answer]
        prior = np.array([[float((weight * (0.5 + away) ** (i + j) * (0.5 - away) ** (2 - i - j)).sum())
                           for j in (0, 1)] for i in (0, 1)])  # fmt: skip
        joint = prior * chances
        sums = np.array([[-1.0, 0.0], [0.0, 1.0]])
        risk += (joint * sums**2).sum() - (joint * sums).sum() ** 2 / joint.sum()
    assert risk >= _left(2, epsilon, *TWO) * (1 - 1e-9)


@pytest.mark.parametrize("graph", [graphs.star(20), graphs.path(15), graphs.hypercube(4), graphs.grid(4, 4)])
@pytest.mark.parametrize("f", [1, 2, 3])
def test_our_own_protocols_keep_it(graph, f):
    epsilon, delta = 1.0, 1e-6
    limit = limits(graph, epsilon, delta, colluders=f)
    p = calibrate(netdp.Gossip(graph, rounds=40, sigma=1.0, masks=30.0), epsilon, delta, colluders=f)
    assert account(p, colluders=f).worst_epsilon(delta) <= epsilon
    assert expected_error(p).rmse > limit.rmse
    assert limit.rmse > 0


def test_sets_behind_few_parties():
    for graph, f in ((graphs.path(9), 1), (graphs.grid(4, 5), 2), (graphs.star(8), 1), (graphs.grid(5, 5), 3)):
        sets = separated(graph, f)
        members = [u for one in sets for u in one]
        assert len(members) == len(set(members))
        for one in sets:
            around = {int(w) for u in one for w in graph.neighbors(u)} - set(one)
            assert len(around) <= f
    # a pendant triangle hangs on one party
    hung = graphs.Graph.from_edges(
        8, [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 3), (3, 5), (4, 6)]
    )
    assert (0, 1, 2) in separated(hung, 1) or (1, 2) in separated(hung, 1)


def test_the_more_parts_the_higher_the_limit():
    n, e = 100, math.e
    one = 0.01 * math.sqrt(e / (1 + e) ** 2)
    assert limits(graphs.hypercube(5), 1.0).rmse == pytest.approx(math.sqrt(e / (1 + e) ** 2) / 32, rel=1e-6)
    assert limits(graphs.star(n), 1.0, 1e-6).rmse == pytest.approx(
        one * math.sqrt(98), rel=1e-5
    )  # a leaf estimates, too
    assert limits(graphs.ring(n), 1.0, 1e-6, colluders=2).counted == 99
    assert curator_limit(n, 1.0, 1e-6, sensitivity=2.0).rmse == pytest.approx(2 * one, rel=1e-5)
    assert "100 parts of it" in limits(graphs.ring(n), 1.0, colluders=2).words


def test_a_masked_sum_gets_round_it_by_keys():
    """Pads by public keys are secrets between parties that are no neighbours: private against who cannot break them."""
    graph = graphs.star(500)
    p = calibrate(netdp.MaskedSum(graph, sigma=1.0), 1.0, 1e-6, colluders=1)
    assert expected_error(p).rmse < limits(graph, 1.0, 1e-6).rmse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 0.0), "epsilon must be a finite number ≥ 0"),
        ((1.0, 1.0), "delta"),
        ((1.0, 0.0, 0), "colluders must be a whole number ≥ 1"),
        ((1.0, 0.0, 5), "leaves nobody of 5"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        limits(graphs.ring(5), *arguments[:2], **({"colluders": arguments[2]} if len(arguments) > 2 else {}))


def test_wherever_a_limit_is_shown_it_says_that_parties_share_no_secrets():
    """A masked sum on a star goes below the limit of messages between neighbours: its pads are secrets shared beforehand."""
    found = netdp.plan(graphs.star(100), 1.0, 1e-6, protocols=["masked", "gossip"])
    assert found.best.rmse < found.limit.rmse
    said = "if parties share no secrets beforehand"
    for shown in (found.limit.words, str(found), plan_card(found)):
        assert said in shown
    assert said in " ".join(text(plan_table(found)).split())
    assert found.to_dict()["limit"]["assumes"].startswith("parties share no secrets beforehand")
    # that of a curator needs no such thing
    curator = limits(graphs.complete(12), 1.0, 1e-6)
    assert curator.words.endswith("whatever secrets they share")
    assert curator.to_dict()["assumes"] is None


def text(renderable):
    console = Console(width=200, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()
