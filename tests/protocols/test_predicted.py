"""Predicted errors of tokens, shuffling and matrices against the mean over many runs, and their parts by definition."""

import numpy as np
import pytest

from netdp import graphs, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.families.linear.protocol import LinearGaussianView
from netdp.families.shuffle.simulate import collect
from netdp.families.token import error as token
from netdp.mechanisms import Laplace, RandomizedResponse
from netdp.protocols import GraphWalkSum, PathSum, RingHistogram, RingSum, Shuffle, WalkHistogram, WalkSum
from netdp.protocols.accuracy import expected_error

RUNS = 400
VALUES = np.array([0.0, 1.0, 1.0, 0.2, 0.0, 0.7])
LABELS = np.array([0, 1, 1, 2, 1, 1])


def measured(protocol, values, truth, runs=RUNS):
    """The mean squared error over runs, and its standard error."""
    squares = []
    for seed in range(runs):
        run = simulate(protocol, values, seed)
        squares.append(((run.estimates - truth) ** 2).sum(axis=1).mean())
    return np.mean(squares), np.std(squares, ddof=1) / np.sqrt(runs)


SUMS = {
    "ring": RingSum(6, 2, sigma=1.0),
    "ring distributed": RingSum(6, 3, sigma=1.0, noise="distributed", closing=2.0),
    "ring open": RingSum(6, 3, sigma=1.0, closing=False),
    "paths": PathSum(6, [[0, 1, 2, 3, 4, 5, 1], [2, 2, 2]], sigma=0.5, closing=2.0),
    "paths capped": PathSum(6, [[0, 1, 2, 3, 4, 5, 1], [2, 2, 2]], sigma=0.5, contributions=1),
    "walk": WalkSum(6, 20, sigma=0.5),
    "walks": WalkSum(6, 10, sigma=0.2, tokens=3),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name):
    protocol = SUMS[name]
    found, error = measured(protocol, VALUES, VALUES.mean())
    predicted = expected_error(protocol, VALUES)
    assert abs(found - predicted.total) < 4 * error, (found, predicted, error)
    assert error < 0.1 * found
    # one cause at a time: without noise only who was visited is left, with equal values only noise
    quiet = protocol.replace(sigma=1e-9)
    found, error = measured(quiet, VALUES, VALUES.mean(), 200)
    assert abs(found - predicted.sampling) < 4 * error + 1e-12
    assert expected_error(protocol, np.full(6, 0.3)).sampling == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("name", SUMS)
def test_vectors_count_every_coordinate(name):
    values = np.column_stack([VALUES / 2, VALUES[::-1] / 3])
    parts = [expected_error(SUMS[name], values[:, k]).total for k in range(2)]
    assert expected_error(SUMS[name], values).total == pytest.approx(sum(parts))


@pytest.mark.parametrize("name", SUMS)
def test_without_values_the_worst_is_attained(name):
    """The largest error over all corners of the interval is the one that is stated (walks: if n is even)."""
    protocol = SUMS[name]
    corners = (np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T).astype(float)
    largest = max(expected_error(protocol, corner).total for corner in corners)
    assert expected_error(protocol).total == pytest.approx(largest)


@pytest.mark.parametrize(
    "protocol",
    [
        GraphWalkSum(graphs.ring(6), steps=40, sigma=0.3),
        GraphWalkSum(graphs.star(6), steps=40, sigma=0.3, tokens=2, closing=1.0),
        GraphWalkSum(graphs.path(6), steps=60, sigma=0.1, walk="simple", closing=False),
    ],
    ids=lambda p: p.describe(),
)
def test_walks_on_graphs_are_bounded_and_not_by_far(protocol):
    halves = np.array([0.0, 0, 0, 1, 1, 1])  # along a slow direction of rings and paths
    for values in (VALUES, halves):
        found, error = measured(protocol, values, values.mean())
        predicted = expected_error(protocol, values)
        assert found <= predicted.total + 4 * error
        assert found > predicted.total / 2 or values is VALUES
        assert predicted.total <= expected_error(protocol).total * (1 + 1e-12)
    # equal values: the noise alone, exactly
    found, error = measured(protocol, np.full(6, 0.5), 0.5)
    assert abs(found - expected_error(protocol, np.full(6, 0.5)).total) < 4 * error


def test_a_walk_that_is_not_uniform_is_biased_and_says_so():
    star = GraphWalkSum(graphs.star(6), steps=4000, sigma=1e-6, walk="simple", closing=False)
    values = np.array([1.0, 0, 0, 0, 0, 0])
    predicted = expected_error(star, values)
    # no luck in it: an even walk on a star is in the middle exactly half of the time
    assert predicted.sampling == pytest.approx((0.5 - 1 / 6) ** 2)  # the hub holds the token half of the time
    found, error = measured(star, values, values.mean(), 50)
    assert found <= predicted.total + 4 * error


HISTOGRAMS = {
    "ring": RingHistogram(6, 2, domain=3, gamma=0.4),
    "ring open": RingHistogram(6, 1, domain=4, gamma=0.7, closing=False),
    "ring closed twice": RingHistogram(6, 2, domain=3, gamma=0.4, closing=2.0),
    "walk": WalkHistogram(6, 30, domain=3, gamma=0.4),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(name):
    protocol = HISTOGRAMS[name]
    truth = np.bincount(LABELS, minlength=protocol.domain) / 6
    found, error = measured(protocol, LABELS, truth, 1000)
    predicted = expected_error(protocol, LABELS)
    assert abs(found - predicted.total) < 4 * error, (found, predicted, error)
    assert predicted.total <= expected_error(protocol).total * (1 + 1e-12)


def test_a_histogram_of_random_answers_only_says_nothing():
    assert expected_error(HISTOGRAMS["ring"].replace(gamma=1.0)).total == np.inf


@pytest.mark.parametrize(
    ("protocol", "mechanism", "values", "null"),
    [
        (Shuffle(graphs.complete(12), 1, epsilon0=1.0, laziness=1 / 12), None, np.arange(12) % 2, None),
        (
            Shuffle(graphs.complete(12), 1, epsilon0=2.0, laziness=1 / 12), RandomizedResponse(3, 2.0),
            np.arange(12) % 3, None,
        ),
        (
            Shuffle(graphs.complete(12), 1, epsilon0=2.0, laziness=1 / 12, reporting="single"),
            RandomizedResponse(3, 2.0), np.arange(12) % 2, 2,
        ),
        (
            Shuffle(graphs.complete(12), 1, epsilon0=2.0, laziness=1 / 12, reporting="single"),
            Laplace.interval(0.0, 1.0, 2.0), np.linspace(0, 1, 12), 0.5,
        ),
    ],
    ids=["binary", "three values", "single", "single, numbers"],
)  # fmt: skip
def test_shuffling(protocol, mechanism, values, null):
    used = RandomizedResponse(2, protocol.epsilon0) if mechanism is None else mechanism
    options = {} if mechanism is None else {"mechanism": mechanism}
    asked = {} if null is None else {"null": null}
    predicted = expected_error(protocol, values, **options, **asked)
    truth = used.answer(used.check(values))
    squares = np.array(
        [((collect(protocol, used, values, seed, **asked).estimate - truth) ** 2).sum() for seed in range(1500)]
    )
    assert abs(squares.mean() - predicted.total) < 4 * squares.std() / np.sqrt(len(squares)), (
        squares.mean(),
        predicted,
    )
    assert (predicted.sampling > 0) == (protocol.reporting == "single")


def test_shuffling_with_single_reports_asks_for_values_and_null():
    protocol = Shuffle(graphs.complete(5), 3, epsilon0=1.0, reporting="single")
    with pytest.raises(Unsupported, match="depends on the values and on the null value"):
        expected_error(protocol)
    with pytest.raises(InvalidValue, match="give one value for each, got 3"):
        expected_error(protocol, [0, 1, 0], null=1)


A = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    "view",
    [
        LinearGaussianView(3, A, 0.5 * A, [(2,), (2,), None], reading=[[0, 0, 1 / 3]]),
        # everybody reads in a way of its own, one of them badly; party 1 contributes twice
        LinearGaussianView(
            3, np.array([[1.0, 0, 0, 0], [0, 1, 1, 1]]), [[0.3, 0], [0.1, 0.2]], [None, None], known=[(0,), (1,)],
            owners=[0, 1, 1, 2], reading=[[1 / 3, 1 / 3], [0, 1 / 3], [1, 0]],
        ),
    ],
    ids=["one reading", "three readings"],
)  # fmt: skip
def test_matrices(view):
    values = np.array([0.1, 0.9, 0.4])
    found, error = measured(view, values, values.mean(), 1500)
    predicted = expected_error(view, values)
    assert abs(found - predicted.total) < 4 * error
    corners = (np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T).astype(float)
    assert expected_error(view).total >= max(expected_error(view, corner).total for corner in corners) * (1 - 1e-12)
    columns = np.column_stack([values / 2, values[::-1] / 3])
    parts = [expected_error(view, columns[:, k]).total for k in range(2)]
    assert expected_error(view, columns).total == pytest.approx(sum(parts))


def test_matrices_without_a_reading_have_no_error():
    with pytest.raises(Unsupported, match="does not say how the answer is read: state reading="):
        expected_error(LinearGaussianView(3, A, A, [None] * 3))


def test_refusals(monkeypatch):
    for capped in (
        WalkSum(6, 20, sigma=1.0, contributions=2),
        WalkHistogram(6, 20, domain=2, gamma=0.5, contributions=2),
        GraphWalkSum(graphs.ring(6), steps=20, sigma=1.0, contributions=2),
    ):
        with pytest.raises(Unsupported, match="contributions=2"):
            expected_error(capped)
    for protocol in SUMS.values():
        with pytest.raises(InvalidValue, match=r"\(6,\) or \(6, d\)"):
            expected_error(protocol, VALUES[:5])
    monkeypatch.setattr(token, "MAX_USERS", 5)
    with pytest.raises(Unsupported, match="eigenvalues of 6 users"):
        expected_error(GraphWalkSum(graphs.ring(6), steps=20, sigma=1.0))
