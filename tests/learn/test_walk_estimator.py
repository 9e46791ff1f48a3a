"""The scikit-learn estimator trained by a walking token: its own checks, its certificate, and that it learns."""

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import netdp  # noqa: E402
from netdp.errors import InvalidValue  # noqa: E402
from netdp.learn import NoiseWarning  # noqa: E402
from netdp.learn.classifiers import WalkLogisticRegression  # noqa: E402

# Some ε here are large on purpose: little noise, so that what else is there can be seen.
pytestmark = pytest.mark.filterwarnings("ignore::netdp.privacy.wording.WeakPromise")


@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")  # a few rows, few parties: of course
@parametrize_with_checks([WalkLogisticRegression(parties=4, steps=8)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.standard_normal((rows, 3)) + 2.0 * y[:, None], np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def fitted():
    return WalkLogisticRegression(parties=100, epsilon=8.0, delta=1e-5, steps=500, sender="hidden", random_state=0).fit(
        *blobs()
    )


def test_learns_and_certifies(fitted):
    X, _ = blobs()
    assert fitted.score(*blobs(seed=1)) > 0.85
    worst = netdp.account(fitted.protocol_, [7]).worst_epsilon(1e-5)
    assert worst <= 8.0
    assert worst > 7.5  # and little noise is wasted
    assert fitted.guarantee_.is_certified
    assert fitted.guarantee_.worst_epsilon(1e-5) == pytest.approx(worst)
    assert fitted.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
    assert set(fitted.predict(X)) == {"no", "yes"}
    assert fitted.n_iter_ == fitted.protocol_.steps == 500


@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")
def test_harder_settings_need_more_noise():
    """Senders that are seen, more so with colluders: more noise for the same ε, certified against just these observers."""
    sigma = 0.0
    for changes in ({"sender": "hidden"}, {}, {"colluders": 5}):
        model = WalkLogisticRegression(parties=40, steps=80, delta=1e-5, epsilon=2.0, **changes).fit(*blobs(200))
        assert model.protocol_.sigma > 1.01 * sigma
        sigma = model.protocol_.sigma
        assert 1.9 < model.guarantee_.worst_epsilon(1e-5) <= 2.0


def test_guarantee_covers_every_party_against_any_others(fitted):
    """One entry per party, none left out, and equal to what two different observers learn."""
    losses = fitted.guarantee_.epsilon(1e-5)
    assert losses.shape == (100,)
    assert np.isfinite(losses).all()
    for v in (0, 42):
        seen = netdp.account(fitted.protocol_, [v]).epsilon(1e-5)
        np.testing.assert_allclose(np.delete(losses, v), np.delete(seen, v), rtol=1e-12)
    assert "worst single other party" in str(fitted.guarantee_)


def test_same_seed_same_model(fitted):
    again = WalkLogisticRegression(**fitted.get_params()).fit(*blobs())
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    other = WalkLogisticRegression(**{**fitted.get_params(), "random_state": 1}).fit(*blobs())
    assert not np.array_equal(other.coef_, fitted.coef_)


def test_default_walk_visits_everybody_fifty_times():
    model = WalkLogisticRegression(parties=3, epsilon=200.0).fit(*blobs(60))
    assert model.protocol_.steps == 150


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number > 0, got 0"),
        ({"epsilon": "1"}, "epsilon must be a finite number > 0, got '1'"),
        ({"delta": 0}, "delta must be a finite number > 0, got 0"),
        ({"parties": 16.0}, "parties must be a whole number ≥ 1, got 16.0"),
        ({"random_state": np.random.RandomState(0)}, "a RandomState has too little randomness"),
        ({"step": 23.0}, "step 23.0 is too long"),
        ({"parties": 5000}, "4000 rows cannot be dealt out to 5000 parties"),
        ({"parties": 4, "colluders": 4}, "4 of 4 parties collude"),
        ({"colluders": 0}, "colluders must be a whole number ≥ 1, got 0"),
        ({"steps": 3}, "steps=3 is shorter than one visit"),
        ({"sender": "masked"}, "unknown sender 'masked'"),
        ({"clip": float("inf")}, "clip must be a finite number > 0"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InvalidValue, match=message):
        WalkLogisticRegression(**settings).fit(*blobs())


def test_the_noise_is_fresh_by_default():
    assert WalkLogisticRegression().random_state is None
    one, other = (WalkLogisticRegression(parties=3, epsilon=200.0).fit(*blobs(60)) for _ in range(2))
    assert not np.array_equal(one.coef_, other.coef_)


def test_a_warning_says_beforehand_that_noise_will_win():
    with pytest.warns(NoiseWarning, match="noise will win: 20 parties with 4 features"):
        WalkLogisticRegression(parties=20, steps=40, epsilon=1.0).fit(*blobs())


def test_sample_weight_is_refused_in_words():
    with pytest.raises(InvalidValue, match="fit takes no sample_weight"):
        WalkLogisticRegression().fit(*blobs(60), sample_weight=np.ones(60))


def test_tokens_on_a_graph():
    """The promise is that of the protocol that ran: against every single party, for each of them."""
    import warnings

    from netdp import graphs
    from netdp.protocols.accounting import account

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = WalkLogisticRegression(5, epsilon=6.0, steps=15, tokens=2, graph=graphs.ring(5), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert (model.protocol_.tokens, model.protocol_.graph) == (2, graphs.ring(5))
    promised = model.guarantee_.epsilon(1e-5)
    assert promised.shape == (5,)
    assert account(model.protocol_, [1]).worst_epsilon(1e-5) <= promised.max() <= 6.0
    with pytest.raises(InvalidValue, match="as many parties as nodes"):
        WalkLogisticRegression(6, graph=graphs.ring(5)).fit(X, y)
