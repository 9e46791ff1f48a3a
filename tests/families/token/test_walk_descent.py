"""Learning by a walking token: the compiled loop against plain NumPy, caps, projections, seeds, history, refusals."""

import numpy as np
import pytest

from netdp.errors import DataNotFound, InvalidValue
from netdp.families.token.training import draws, loss, train_walk, train_walks
from netdp.families.token.walk import WalkDescent
from netdp.learn import LogisticParties, accuracy, objective, table
from netdp.learn.tables import DataTable, unit_rows


def users(n=12, rows=41, d=5, seed=0, scale=1.0):
    """Uneven numbers of rows: some users have one more than others."""
    rng = np.random.default_rng(seed)
    X = scale * unit_rows(rng.standard_normal((rows, d)))
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    return LogisticParties.deal(X, y, n, seed)


def plain(protocol, data, seed, after_cap="noise"):
    """The protocol step by step, with the gradients of `LogisticParties`."""
    path, noises = draws(protocol, seed)
    model, used = np.zeros(data.d), np.zeros(data.n, dtype=int)
    for u in path:
        noise = protocol.sigma * noises.standard_normal(data.d)
        if protocol.contributions is not None and used[u] >= protocol.contributions:
            if after_cap == "nothing":
                continue
            gradient = np.zeros(data.d)
        else:
            gradient = data.gradients(np.tile(model, (data.n, 1)), protocol.clip)[u]
            used[u] += 1
        model = model - protocol.step * (gradient + noise)
        if protocol.radius is not None:
            model = model * min(1.0, protocol.radius / max(np.linalg.norm(model), 1e-300))
    return model, used


@pytest.mark.parametrize("after_cap", ["noise", "nothing"])
@pytest.mark.parametrize(
    "options",
    [{}, {"contributions": 20}, {"radius": 0.7}, {"contributions": 5, "radius": 0.7}, {"clip": 0.1}, {"clip": 10.0}],
    ids=str,
)
def test_against_plain_numpy(options, after_cap):
    data = users()
    protocol = WalkDescent(12, 300, sigma=0.3, step=0.4, **{"clip": 0.4, **options})
    run = train_walk(protocol, data, seed=3, after_cap=after_cap)
    model, used = plain(protocol, data, 3, after_cap)
    np.testing.assert_allclose(run.model, model, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(run.contributions, used)


def test_clipping_is_before_the_noise_and_row_by_row():
    """A step without noise moves the model by at most η·L, whatever the row; noise is not clipped."""
    far = LogisticParties.of([np.array([[30.0, 0.0]]), np.array([[0.0, 0.2]])], [np.ones(1), np.ones(1)])
    quiet = WalkDescent(2, 2, sigma=1e-60, step=0.001, clip=0.4)
    path, _ = draws(quiet, 1)
    model = train_walk(quiet, far, 1).model
    # far row: clipped to 0.4; near row: at most 0.2·σ(0) = 0.1
    expected = np.array([0.4, 0.1]) * np.bincount(path, minlength=2) * 0.001
    np.testing.assert_allclose(model, expected, rtol=1e-3)
    loud = train_walk(WalkDescent(2, 2, sigma=100.0, step=0.001, clip=0.4), far, 1).model
    assert np.linalg.norm(loud) > 2 * 0.001 * 0.4


def test_a_step_does_not_expand():
    """Two models walk along the same path with the same noise: they never part, clipped or not (the bound by iteration)."""
    data = users(scale=1.0)
    for clip in (0.05, 0.4, 5.0):
        rng = np.random.default_rng(0)
        for _ in range(50):
            two, u = rng.standard_normal((2, data.d)) * 3, rng.integers(data.n)
            moved = [m - 2.0 / data.smoothness(clip) * data.gradients(np.tile(m, (data.n, 1)), clip)[u] for m in two]
            assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(two[0] - two[1]) * (1 + 1e-12)


def test_noise_has_the_stated_size():
    """No gradient at all (rows of zeros): after T steps the model is N(0, η²σ²T)."""
    data = LogisticParties.of([np.zeros((1, 2000))] * 2, [np.ones(1)] * 2)
    protocol = WalkDescent(2, 50, sigma=3.0, step=0.1)
    model = train_walk(protocol, data, 0).model
    assert model.std() == pytest.approx(0.1 * 3.0 * np.sqrt(50), rel=0.1)
    assert abs(model.mean()) < 4 * 0.1 * 3.0 * np.sqrt(50 / 2000)


def test_path_is_uniform_over_all_users():
    path, _ = draws(WalkDescent(5, 50_000, sigma=1.0, step=0.1), 0)
    counts = np.bincount(path, minlength=5)
    assert counts.sum() == 50_000
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(50_000 * 0.2 * 0.8)


def test_seeds():
    data = users()
    protocol = WalkDescent(12, 100, sigma=0.3, step=0.4, clip=0.4)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = (train_walk(protocol, data, s).model for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002  nothing global was touched
    root = np.random.SeedSequence(1)
    np.testing.assert_array_equal(train_walk(protocol, data, root).model, one)
    np.testing.assert_array_equal(train_walk(protocol, data, root).model, one)  # nor was the caller's object
    child = np.random.SeedSequence(1).spawn(1)[0]
    assert not np.array_equal(train_walk(protocol, data, child).model, one)
    many = train_walks(protocol, data, [1, 2, 1], workers=2)
    for run, expected in zip(many, (one, other, one), strict=True):
        np.testing.assert_array_equal(run.model, expected)


def test_watching_changes_nothing():
    data = users()
    rng = np.random.default_rng(5)
    test = DataTable(rng.standard_normal((30, 5)), np.where(rng.random(30) < 0.5, 1.0, -1.0), ("a", "b", "c", "d", "e"))
    protocol = WalkDescent(12, 105, sigma=0.3, step=0.4, clip=0.4)
    quiet = train_walk(protocol, data, 7)
    watched = train_walk(protocol, data, 7, watch_every=10, test=test)
    np.testing.assert_array_equal(quiet.model, watched.model)
    assert watched.steps.tolist() == [*range(10, 101, 10), 105]
    assert quiet.steps.size == quiet.objective.size == quiet.accuracy.size == 0
    assert watched.objective[-1] == loss(data, watched.model)
    assert watched.accuracy[-1] == accuracy(watched.model, test.X, test.y)
    short = train_walk(protocol.replace(steps=50), data, 7, watch_every=50)
    assert short.objective[0] == watched.objective[4]  # a shorter run is the beginning of a longer one
    assert short.accuracy.size == 0


def test_chunks_change_nothing(monkeypatch):
    data = users()
    protocol = WalkDescent(12, 300, sigma=0.3, step=0.4, clip=0.4)
    whole = train_walk(protocol, data, 0).model
    monkeypatch.setattr("netdp.families.token.training._CHUNK", 7)
    np.testing.assert_array_equal(train_walk(protocol, data, 0).model, whole)


def test_the_objective_is_over_the_users_own_rows():
    data = users(n=3, rows=4)
    own = data.weight > 0
    assert own.sum() == 4
    assert loss(data, np.ones(5)) == pytest.approx(objective(np.ones(5), data.X[own], data.y[own]))


def test_learns():
    data = users(n=100, rows=2000)
    own = data.weight > 0
    run = train_walk(WalkDescent(100, 4000, sigma=0.05, step=1.0, clip=1.0), data, 0)
    assert accuracy(run.model, data.X[own], data.y[own]) > 0.8


def test_refusals():
    data = users()
    draft = WalkDescent(12, 100, sigma=0.3, step=0.4)
    with pytest.raises(InvalidValue, match="the protocol has 13 users and the data 12"):
        train_walk(draft.replace(n=13), data, 0)
    with pytest.raises(InvalidValue, match="unknown after_cap 'silence'"):
        train_walk(draft, data, 0, after_cap="silence")
    with pytest.raises(InvalidValue, match="watch_every must be a whole number ≥ 1, got 0"):
        train_walk(draft, data, 0, watch_every=0)
    with pytest.raises(InvalidValue, match=r"step 9.0 is too long for these rows: at most 8, or state expansion=1.25"):
        train_walk(draft.replace(step=9.0), data, 0)
    train_walk(draft.replace(step=9.0, expansion=1.25), data, 0)
    skewed = data.weight * np.linspace(0.5, 1.5, data.X.shape[1])
    uneven = LogisticParties(data.X, data.y, skewed / skewed.sum(axis=1, keepdims=True))
    with pytest.raises(InvalidValue, match="the rows of a user must weigh the same"):
        train_walk(draft, uneven, 0)


def test_rows_that_are_no_numbers_and_weights_that_do_not_sum_to_one_are_refused():
    """A party whose rows weigh 2 together would move the model twice as far as the noise is made for."""
    data = users()
    with pytest.raises(InvalidValue, match="must be ≥ 0 and sum to 1"):
        LogisticParties(data.X, data.y, 2 * data.weight)
    broken = data.X.copy()
    broken[3, 0, 0] = np.nan
    with pytest.raises(InvalidValue, match="a row of party 3 is not finite"):
        LogisticParties(broken, data.y, data.weight)


def test_housing_like_the_papers():
    """n = 2000, T = 20 000, L = 0.4: accuracy near that of the papers with the same noise."""
    try:
        rows, test = table("housing").split(0.2, 0)
    except DataNotFound as missing:
        pytest.skip(str(missing))
    data = LogisticParties.deal(rows.X, rows.y, 2000, 0)
    quiet = WalkDescent(2000, 20_000, sigma=1e-9, step=0.5, clip=0.4)
    assert accuracy(train_walk(quiet, data, 0).model, test.X, test.y) > 0.93
    noisy = train_walks(quiet.replace(sigma=1.23, step=0.03, contributions=12), data, range(3))
    assert np.mean([accuracy(run.model, test.X, test.y) for run in noisy]) > 0.92
