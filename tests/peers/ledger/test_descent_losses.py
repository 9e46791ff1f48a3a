"""What a training costs, in a ledger: docs/proofs/peers.md#training-on-peers, against brute force on small instances."""

import math

import numpy as np
import pytest
from scipy import stats

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.peer import DESCENT, descent_curve, descent_loss
from netdp.families.masked.protocol import MaskedSum
from netdp.peers.ledger.entries import Entry, correction_of, curve, in_force, total
from netdp.peers.ledger.losses import check_loss, is_covered
from netdp.protocols import account

GRAPH = graphs.complete(5)
TRAINED = MaskedDescent(GRAPH, 20, sigma=4.0, step=0.5, dimension=3, unit="record", sampling=0.25, max_records=100)
COUNTED = MaskedSum(GRAPH, sigma=3.0, sensitivity=math.sqrt(2), dimension=2, unit="record", reach=100.0)
NAMES = ("Ann", "Bob", "Cy", "Di", "Ed")


def entry(loss, unit="record"):
    return Entry("2026-11-16T10:00:00Z", 64 * "a", "heart", 1, NAMES, "Ann", unit, 1e-6, loss)


@pytest.mark.parametrize(
    "protocol", [TRAINED, TRAINED.replace(unit="party", max_records=None), TRAINED.replace(sampling=1.0)]
)
def test_the_entry_is_the_accountants_figure(protocol):
    loss = descent_loss(protocol, None)
    for colluders in (1, 2, 4):
        known = account(protocol, list(range(colluders))).worst_epsilon(1e-6)
        assert float(descent_curve(loss, 5 - colluders).epsilon(1e-6)) == pytest.approx(known, rel=1e-9)
        assert float(curve(entry(loss), colluders).epsilon(1e-6)) == pytest.approx(known, rel=1e-9)
    assert float(curve(entry(loss), "Bob").epsilon(1e-6)) == float(curve(entry(loss), 1).epsilon(1e-6))
    assert float(curve(entry(loss), "nobody").epsilon(1e-6)) <= float(curve(entry(loss), 1).epsilon(1e-6))


def test_evaluation_is_the_larger_for_records_and_added_for_parties():
    alone = [float(descent_curve(descent_loss(TRAINED, None), 4).epsilon(1e-6))]
    both = descent_loss(TRAINED, COUNTED)
    counted = both | {"releases": 0}
    assert float(descent_curve(both, 4).epsilon(1e-6)) == pytest.approx(
        max(*alone, float(descent_curve(counted, 4).epsilon(1e-6)))
    )
    party = TRAINED.replace(unit="party", max_records=None)
    count = COUNTED.replace(unit="party", reach=1.0)
    for sampling in (0.25, 1.0):
        one = party.replace(sampling=sampling)
        with_count = descent_loss(one, count)
        assert not with_count["evaluation"]["apart"]
        found = float(descent_curve(with_count, 4).epsilon(1e-6))
        assert found > float(descent_curve(descent_loss(one, None), 4).epsilon(1e-6))


def test_a_row_in_one_of_two_places_loses_no_more_than_in_the_worse():
    """A coin of probability h puts a record into one Gaussian sum or another: δ by integration, against the larger curve."""
    a, b, h = 0.9, 1.3, 0.3
    x = np.linspace(-9, 10, 700)
    grid = (x[1] - x[0]) ** 2
    without = np.outer(stats.norm.pdf(x), stats.norm.pdf(x))
    there = (1 - h) * np.outer(stats.norm.pdf(x - a), stats.norm.pdf(x)) + h * np.outer(
        stats.norm.pdf(x), stats.norm.pdf(x - b)
    )
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        true = max(
            np.maximum(there - math.exp(epsilon) * without, 0).sum(),
            np.maximum(without - math.exp(epsilon) * there, 0).sum(),
        )
        worse = max(
            float(stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))
            for mu in (a, b)
        )
        assert true * grid <= worse + 1e-9
        assert worse < 0.9  # says something


# ── broken off ────────────────────────────────────────────────────────────────────────────────────────────────────────


def best_stop(mu, epsilons):
    """What an observer wins who may stop T Gaussian sums when it likes: the largest E_Q[(L_τ − e^{ε_τ})₊], backwards."""
    most = len(epsilons)
    s = np.linspace(-40, 40, 4001)
    step = s[1] - s[0]
    kernel = stats.norm.pdf(np.arange(-8, 8 + step / 2, step)) * step
    value = np.zeros_like(s)
    for k in range(most, 0, -1):
        stopped = np.exp(mu * s - k * mu * mu / 2) - math.exp(epsilons[k - 1])
        value = np.maximum(np.maximum(stopped, 0.0), value)
        value = np.convolve(value, kernel, mode="same")
    return float(value[len(s) // 2])


def gaussian_epsilon(mu, delta):
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        at = stats.norm.cdf(mu / 2 - middle / mu) - math.exp(middle) * stats.norm.cdf(-mu / 2 - middle / mu)
        low, high = (middle, high) if at > delta else (low, middle)
    return high


def test_who_chooses_the_end_wins_more_than_delta_unless_the_whole_is_entered():
    """T = 16 sums of μ = 0.25: entering the k sums that were made is too little, the whole is enough."""
    mu, most, delta = 0.25, 16, 1e-3
    plain = [gaussian_epsilon(mu * math.sqrt(k), delta) for k in range(1, most + 1)]
    assert best_stop(mu, plain) > 1.5 * delta
    assert 0.5 * delta < best_stop(mu, [plain[-1]] * most) <= delta * (1 + 1e-3)

    loss = descent_loss(TRAINED, COUNTED)
    assert [DESCENT.broken_off(loss, made) for made in range(1, 21)] == [None] * 20
    assert float(descent_curve(DESCENT.broken_off(loss, 0), 4).epsilon(1e-9)) == 0.0


def test_a_correction_takes_the_place_of_the_whole():
    first = entry(descent_loss(TRAINED, COUNTED))
    less = correction_of(first, DESCENT.broken_off(first.loss, 0))
    assert in_force([first, less]) == [less]
    assert float(total([first, less], 1, "record").epsilon(1e-6)) < float(total([first], 1, "record").epsilon(1e-6))
    assert is_covered(less.loss, less.loss)
    assert not is_covered(first.loss, less.loss)


@pytest.mark.parametrize(
    "change",
    [
        {"share": 0}, {"share": 1.5}, {"distance": math.inf}, {"distance": -1}, {"dimension": 0}, {"sampling": 0.0},
        {"sampling": 1.1}, {"sampling": "1"}, {"replaced": 1}, {"releases": -1}, {"releases": 2.0},
        {"evaluation": {}}, {"evaluation": {"share": 1, "distance": 1.0, "dimension": 2, "apart": 0}}, {"more": 1},
        {"dimension": 1, "distance": 1.5},
    ],
)  # fmt: skip
def test_what_cannot_be_added_up_is_refused(change):
    loss = descent_loss(TRAINED, COUNTED)
    check_loss(loss, NAMES, "Ann")
    assert Entry.from_json(entry(loss).to_json()) == entry(loss)
    with pytest.raises(InvalidValue):
        check_loss(loss | change, NAMES, "Ann")
