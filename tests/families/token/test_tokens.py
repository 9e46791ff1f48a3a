"""Tokens run: reproducible, aligned with their transcripts, unbiased with the predicted variance, attacked as accounted.

Proof: docs/proofs/token.md#token-error.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.path import path_energy
from netdp.families.token.path import PathSum
from netdp.families.token.simulate import draw_paths, expected_contributing
from netdp.families.token.steps import debiased
from netdp.families.token.views import TokenTranscript
from netdp.protocols import GraphWalkSum, RingHistogram, RingSum, WalkHistogram, WalkSum
from netdp.protocols.simulation import simulate

KARATE = graphs.dataset("karate")
SUMS = {
    "ring": RingSum(6, rounds=3, sigma=2.0),
    "ring distributed": RingSum(6, rounds=3, sigma=2.0, noise="distributed", closing=False),
    "path": PathSum(6, [[0, 1, 5, 5, 2], [3, 4, 3]], sigma=2.0, closing=3.0, contributions=1),
    "walk": WalkSum(6, steps=50, sigma=2.0, tokens=2),
    "walk capped": WalkSum(6, steps=50, sigma=2.0, contributions=4),
    "graph walk": GraphWalkSum(graphs.path(6), steps=50, sigma=2.0, tokens=2),
    "graph walk simple": GraphWalkSum(graphs.path(6), steps=50, sigma=2.0, walk="simple", closing=0.0),
}
HISTOGRAMS = {
    "ring": RingHistogram(6, rounds=3, domain=4, gamma=0.5),
    "walk": WalkHistogram(6, steps=50, domain=4, gamma=0.5),
    "walk capped": WalkHistogram(6, steps=50, domain=4, gamma=0.5, contributions=3),
}


def zeros(shape):
    return np.zeros(shape)


@pytest.mark.parametrize("name", SUMS)
def test_same_seed_same_run(name):
    values = np.random.default_rng(0).random((6, 3)) / 2
    first, again, other = (simulate(SUMS[name], values, seed, record=[1, 2]) for seed in (7, 7, 8))
    assert np.array_equal(first.estimates, again.estimates)
    assert first.transcript == again.transcript
    assert np.array_equal(first.record.arrivals, again.record.arrivals)
    assert not np.array_equal(first.estimates, other.estimates)
    unwatched = simulate(SUMS[name], values, 7)
    assert unwatched.record is None
    assert np.array_equal(first.estimates, unwatched.estimates)
    assert first.estimates.shape == (6, 3)
    assert first.estimates.strides[0] == 0  # one row, not n copies


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_same_seed_same_histogram(name):
    labels = [0, 1, 2, 3, 0, 0]
    first, again, other = (simulate(HISTOGRAMS[name], labels, seed, record=[1, 2]) for seed in (7, 7, 8))
    assert np.array_equal(first.estimates, again.estimates)
    assert np.array_equal(first.record.arrivals, again.record.arrivals)
    assert not np.array_equal(first.estimates, other.estimates)
    assert np.array_equal(first.estimates, simulate(HISTOGRAMS[name], labels, 7).estimates)


@pytest.mark.parametrize("name", SUMS)
def test_the_record_adds_up_to_the_run(name, run_columns):
    """All users observe but one who holds nothing: every reading follows from the one before."""
    values = np.random.default_rng(1).random((6, 2))
    values[5] = 0.0
    run = run_columns(SUMS[name], values, 3, record=range(5), normal=np.ones)
    kept = run.record
    drawn = run.protocol
    paths = run.transcript.paths
    assert isinstance(run.transcript, TokenTranscript)
    for k, path in enumerate(paths):
        rows = kept.visits[:, 0] == k
        assert kept.visits[rows, 1].tolist() == np.flatnonzero(path != 5).tolist()
        assert kept.visits[rows, 2].tolist() == path[path != 5].tolist()
        scales = drawn.hop_noise if isinstance(drawn, RingSum) else np.full(len(path), drawn.sigma)
        token = np.zeros(2)
        row = iter(np.flatnonzero(rows))
        for t, u in enumerate(path):
            if u == 5:
                token = token + scales[t]
                continue
            r = next(row)
            np.testing.assert_allclose(kept.arrivals[r], token, atol=1e-12)
            np.testing.assert_allclose(kept.noises[r], scales[t])
            assert np.array_equal(kept.contributions[r], values[u]) or drawn.contributions is not None
            token = token + kept.contributions[r] + kept.noises[r]
        closing = drawn.closing_noise if isinstance(drawn, RingSum) else drawn.sigma * np.sqrt(drawn.closing)
        np.testing.assert_allclose(kept.release[k], token + closing, atol=1e-12)
        assert np.isnan(kept.closings[k]).all() == (path[-1] == 5)
        assert np.isnan(kept.starts[k]).all() == (path[0] == 5)
    messages = run.transcript.received_by(kept.observers)
    assert all(paths[k][t - 1] == s and paths[k][t] == r for t, s, r in messages for k in range(1) if len(paths) == 1)


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_the_record_of_a_histogram_adds_up(name):
    p = HISTOGRAMS[name]
    run = simulate(p, [0, 1, 2, 3, 0, 0], seed=5, record=range(5))
    kept = run.record
    start = p.blanket if isinstance(p, RingHistogram) else 0
    assert kept.arrivals.sum(axis=1).tolist() == (kept.visits[:, 1] + start).tolist()
    assert kept.release.sum() == len(run.transcript.paths[0]) + (2 * start if start else 0)
    answers = kept.contributions + kept.noises
    assert set(np.unique(answers)) <= {0.0, 1.0}
    assert (answers.sum(axis=1) == 1).all()
    following = kept.visits[1:, 1] == kept.visits[:-1, 1] + 1
    np.testing.assert_array_equal((kept.arrivals[:-1] + answers[:-1])[following], kept.arrivals[1:][following])
    if start:
        assert np.array_equal(kept.starts[0], kept.arrivals[0])
        assert np.isnan(kept.closings).all()  # user 5 closes


def test_means_without_noise(run_columns):
    """The answer is a mean, whatever the token itself holds: the same values, the same answer, any number of rounds."""
    values = np.arange(6.0) / 5
    assert run_columns(SUMS["ring"], values, 0, normal=zeros).estimates[0, 0] == pytest.approx(0.5)
    assert run_columns(SUMS["ring"].replace(rounds=1), values, 0, normal=zeros).estimates[0, 0] == pytest.approx(0.5)
    rounds = np.random.default_rng(0).random((3, 6, 2)) / 2
    found = run_columns(SUMS["ring"], rounds, 0, normal=zeros).estimates[2]
    np.testing.assert_allclose(found, rounds.mean(axis=(0, 1)))
    # 0, 1, 5 (its second visit does not count), 2 and 3, 4
    assert run_columns(SUMS["path"], values, 0, normal=zeros).estimates[0, 0] == pytest.approx(0.5)
    assert simulate(SUMS["walk"], values, 4).protocol.to_dict() == draw_paths(SUMS["walk"], 4).to_dict()


@pytest.mark.parametrize("name", SUMS)
def test_variance_of_sums(name):
    """Values 0: what is left is noise of known variance, one run per column."""
    runs = 20_000
    p = SUMS[name]
    found = simulate(p, np.zeros((6, runs)), seed=1).estimates[0]
    if isinstance(p, RingSum):
        expected = ((p.hop_noise**2).sum() + p.closing_noise**2) / (p.rounds * p.n) ** 2
    else:
        tokens, steps = getattr(p, "tokens", 1), 8 if name == "path" else p.steps * p.tokens
        number = {"path": 6, "walk capped": expected_contributing(SUMS["walk capped"])}.get(name, steps)
        closing = 0.0 if isinstance(p, WalkSum) else p.closing
        expected = p.sigma**2 * (steps + closing * tokens) / number**2
    assert abs(found.mean()) < 5 * np.sqrt(expected / runs)
    assert found.var() == pytest.approx(expected, rel=5 * np.sqrt(2 / runs))


def within(samples, truth, deviations=5.0):
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - truth) <= deviations * error + 1e-12).all(), (
        samples.mean(axis=0),
        truth,
        error,
    )
    assert (error < 0.05).all(), "too wide an interval to show anything"


@pytest.mark.parametrize(
    ("p", "weights"),
    [
        (WalkSum(5, steps=8, sigma=1.0, sensitivity=2.0), np.ones(5)),
        (WalkSum(5, steps=12, sigma=1.0, contributions=2, sensitivity=2.0), np.ones(5)),
        (WalkSum(5, steps=6, sigma=1.0, contributions=1, tokens=3, sensitivity=2.0), np.ones(5)),
        (GraphWalkSum(graphs.star(5), steps=8, sigma=1.0, sensitivity=2.0), np.ones(5)),
        (GraphWalkSum(graphs.star(5), steps=8, sigma=1.0, walk="simple", sensitivity=2.0), np.array([4, 1, 1, 1, 1])),
    ],
)
def test_walks_are_unbiased(p, weights, run_columns):
    values = np.array([1.0, 0.0, 0.5, 2.0, 0.0])
    found = np.array([run_columns(p, values, seed, normal=zeros).estimates[0] for seed in range(2500)])
    within(found, values @ weights / weights.sum())


def test_expected_number_of_contributing_steps():
    p = WalkSum(4, steps=9, sigma=1.0, contributions=2)
    found = np.array([[draw_paths(p, seed).given.sum()] for seed in range(2000)])
    assert abs(found.mean() - expected_contributing(p)) < 5 * found.std() / np.sqrt(len(found))
    assert expected_contributing(p.replace(contributions=9)) == pytest.approx(9)
    assert expected_contributing(p.replace(contributions=50)) == pytest.approx(9)


def test_the_graph_walker_follows_its_transition_matrix():
    for walk in ("metropolis", "simple"):
        p = GraphWalkSum(KARATE, steps=300_000, sigma=1.0, walk=walk)
        (path,) = draw_paths(p, 2).paths
        counts = np.zeros((p.n, p.n))
        np.add.at(counts, (path[:-1], path[1:]), 1)
        P = p.transition.toarray()
        assert (counts[P == 0] == 0).all()
        leaving = counts.sum(axis=1, keepdims=True)
        spread = np.sqrt(P * (1 - P) / leaving)
        assert (np.abs(counts / leaving - P) <= 5.5 * spread + 1e-12).all()


def test_histograms_are_unbiased_and_the_printed_formula_is_not():
    labels = np.array([0, 0, 0, 1, 2, 2, 0, 1, 0, 2])
    truth = np.bincount(labels)
    for closing in (False, True):
        p = RingHistogram(10, rounds=3, domain=3, gamma=0.4, closing=closing)
        found = np.array([simulate(p, labels, seed).estimates[0] for seed in range(2000)])
        within(found, truth / 10)
    # closing=False, γn = 4 whole: the corrected formula of the paper, (τ − γn(K+1)/L)/(1−γ)
    p = p.replace(closing=False)
    heaps = np.array([simulate(p, labels, seed, record=[0]).record.release[0] for seed in range(2000)])
    corrected = (heaps - 0.4 * 10 * 4 / 3) / 0.6
    np.testing.assert_allclose(corrected, debiased(p, heaps, contributions=30, random=4))
    printed = (heaps - 0.4 / 3) / 0.6
    error = printed.std(axis=0) / np.sqrt(len(printed))
    assert ((printed.mean(axis=0) - 3 * truth) > 50 * error).all()


def test_labels_may_change_from_round_to_round():
    p = RingHistogram(4, rounds=2, domain=2, gamma=0.3)
    labels = np.array([[0, 0, 0, 1], [1, 1, 1, 1]])
    found = np.array([simulate(p, labels, seed).estimates[1] for seed in range(1500)])
    within(found, np.array([3 / 8, 5 / 8]))


@pytest.mark.parametrize("cap", [None, 1, 3])
def test_walk_histogram_is_unbiased(cap):
    p = WalkHistogram(5, steps=40, domain=3, gamma=0.3, contributions=cap)
    labels = np.array([0, 0, 1, 2, 0])
    found = np.array([simulate(p, labels, seed).estimates[0] for seed in range(2000)])
    within(found, np.array([0.6, 0.2, 0.2]))


@pytest.mark.parametrize(
    ("protocol", "values", "message"),
    [
        (HISTOGRAMS["ring"], [0, 1, 2, 7, 0, 0], "label 7 of user 3 is outside 0 … 3"),
        (HISTOGRAMS["ring"], [[0] * 6, [0] * 6, [0, 0, 0, 0, -1, 0]], "label -1 of user 4 is outside"),
        (
            HISTOGRAMS["walk"],
            [0, 1, 2],
            r"whole labels of shape \(6,\) or \(periods, 6\), one per user, got int64 of shape \(3,\)",
        ),
        (HISTOGRAMS["walk"], [0.0] * 6, "got float64"),
        (HISTOGRAMS["ring"].replace(gamma=1.0), [0] * 6, "gamma=1: every answer is random"),
        (SUMS["ring"], np.zeros((2, 6, 1)), r"shape \(3, 6, d\), got \(2, 6, 1\)"),
        (SUMS["ring"], np.full((3, 6, 1), np.nan), "not finite"),
        (SUMS["ring"], np.eye(18)[9].reshape(3, 6, 1) * 2, "parties 0 and 3 are 2 apart"),
        (SUMS["ring"], np.where(np.eye(18)[9] > 0, np.inf, 0).reshape(3, 6, 1), "value of party 3 is not finite"),
        (SUMS["walk"], np.zeros(5), r"shape \(6,\) or \(6, d\)"),
        (SUMS["walk"], [0, 0, 0, np.inf, 0, 0], "value of party 3 is not finite"),
    ],
)
def test_refuses_wrong_values(protocol, values, message):
    with pytest.raises(InvalidValue, match=message):
        simulate(protocol, values, seed=0)


def test_a_capped_walk_on_a_graph_has_no_public_number_to_divide_by():
    p = GraphWalkSum(graphs.path(6), steps=50, sigma=2.0, contributions=2)
    with pytest.raises(Unsupported, match="draw_paths"):
        simulate(p, np.zeros(6), 0)
    run = simulate(draw_paths(p, 0), np.ones(6), 0)  # the way out
    assert run.protocol.contributions == 2


RUNS = 6000
SHIFT = 4.0


def separation(run_columns, protocol, observers, target):
    """What a trained linear attacker attains on fresh runs, in standard deviations, and its standard error."""
    values = np.tile(np.random.default_rng(99).random((protocol.n, 1)), (1, 2 * RUNS))
    values[target] = np.repeat([0.0, SHIFT], RUNS)
    kept = run_columns(protocol, values, 0, record=observers).record
    known = kept.closings[~np.isnan(kept.closings[:, 0])]
    seen = np.vstack([kept.arrivals, kept.noises, kept.release, known])
    half = RUNS // 2
    train0, test0, train1, test1 = (seen[:, k * half : (k + 1) * half] for k in range(4))
    shift = train1.mean(axis=1) - train0.mean(axis=1)
    centred = np.hstack([part - part.mean(axis=1, keepdims=True) for part in (train0, train1)])
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    real = sizes > 1e-9 * sizes[0]
    direction = left[:, real] @ ((left[:, real].T @ shift) / sizes[real] ** 2)
    guess0, guess1 = direction @ test0, direction @ test1
    deviation = np.sqrt((guess0.var(ddof=1) + guess1.var(ddof=1)) / 2)
    measured = (guess1.mean() - guess0.mean()) / deviation
    return measured, np.sqrt(2 / half + measured**2 / (4 * half))


ATTACKS = {
    "ring": (RingSum(6, rounds=2, sigma=1.0, sensitivity=SHIFT), [2], 4),
    "ring distributed": (RingSum(6, rounds=2, sigma=1.0, noise="distributed", sensitivity=SHIFT), [0], 5),
    "ring, closed by the observer": (RingSum(6, rounds=2, sigma=1.0, sensitivity=SHIFT), [5], 3),
    "path": (
        PathSum(5, [[0, 1, 2, 2, 3, 1, 2, 4, 0, 3, 2]], sigma=1.0, closing=2.0, sensitivity=SHIFT), [1, 4], 2,
    ),
    "two paths, capped": (
        PathSum(5, [[2, 1, 2, 3, 2, 0], [3, 2, 2, 2, 0, 1]], sigma=1.0, contributions=2, sensitivity=SHIFT), [1], 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_attain_the_exact_loss_and_never_exceed_it(name, run_columns):
    protocol, observers, target = ATTACKS[name]
    true = np.sqrt(path_energy(protocol, observers)[target])
    measured, error = separation(run_columns, protocol, observers, target)
    assert true > 1.0
    assert true - 4 * error - 0.02 * true <= measured <= true + 4 * error, (measured, true, error)


def test_an_infinite_loss_is_one():
    """n = 10, K = 3, no closing: from the release user 8 subtracts what it passed on, and holds user 9's value."""
    protocol = RingSum(10, rounds=3, sigma=1.0, closing=False)
    values = np.random.default_rng(3).random((10, 5)) / 5
    kept = simulate(protocol, values, 0, record=[8]).record
    passed_on = kept.arrivals[-1] + kept.contributions[-1] + kept.noises[-1]
    np.testing.assert_allclose(kept.release[0] - passed_on, values[9], atol=1e-12)
    assert np.isinf(path_energy(protocol, [8])[9])
