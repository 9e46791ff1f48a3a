"""LogisticRegression and LinearRegression: scikit-learn's own checks, what they promise, and that they learn."""

import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import netdp  # noqa: E402
from netdp.errors import InvalidValue, Unsupported  # noqa: E402
from netdp.learn import LinearRegression, LogisticRegression, NoiseWarning, PreprocessingWarning  # noqa: E402

# Some ε here are large on purpose: little noise, so that what else is there can be seen.
pytestmark = pytest.mark.filterwarnings("ignore::netdp.privacy.wording.WeakPromise")


@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning", "ignore::netdp.learn.PreprocessingWarning")
@parametrize_with_checks(
    [
        LogisticRegression(parties=4, iterations=5),
        LinearRegression(parties=4, iterations=5, target_bounds=(-200.0, 200.0), unit="record"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(rows=4000, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return rng.standard_normal((rows, 3)) + 3.0 * np.eye(4)[y][:, 1:], np.array(["no", "yes", "maybe", "never"])[y]


@pytest.mark.parametrize("unit", ["party", "record"])
@pytest.mark.parametrize("classes", [2, 4])
def test_learns_and_certifies(unit, classes):
    X, y = blobs(classes=classes)
    model = LogisticRegression(200, unit=unit, epsilon=2.0, random_state=0).fit(X, y)
    assert model.score(*blobs(seed=1, classes=classes)) > 0.88
    assert model.guarantee_.unit.value == unit
    assert model.guarantee_.is_certified
    assert 1.99 < model.guarantee_.worst_epsilon(1e-6) <= 2.0
    seen = netdp.account(model.protocol_, [7]).worst_epsilon(1e-6)
    assert seen == pytest.approx(model.guarantee_.worst_epsilon(1e-6))
    assert model.coef_.shape == (1 if classes == 2 else 4, 3)
    assert model.predict_proba(X[:5]).shape == (5, classes)
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    assert "which classes occur: public" in str(model.guarantee_.assumptions)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_linear_regression_learns_and_certifies(unit):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 3))
    y = 100.0 + X @ [30.0, -20.0, 0.0] + rng.normal(0, 3.0, 5000)
    model = LinearRegression(500, unit=unit, target_bounds=(0, 200), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert 0.99 < model.guarantee_.worst_epsilon(1e-6) <= 1.0
    assert model.predict(100 * X).max() <= 200.0


@pytest.mark.parametrize("protocol", ["central", "local", "gossip", "walk"])
@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")
def test_other_protocols(protocol):
    X, y = blobs()
    model = LogisticRegression(64, protocol=protocol, epsilon=8.0, delta=1e-5, random_state=0, bounds=(-9, 9))
    if protocol == "walk":
        model.set_params(iterations=200)
    model.fit(X, y)
    assert protocol in model.protocol_.kind
    assert model.guarantee_.is_certified
    assert model.guarantee_.worst_epsilon(1e-5) <= 8.0 * (1 + 1e-9)
    assert model.guarantee_.epsilon(1e-5).shape == (64,)
    if protocol in ("central", "gossip"):
        assert model.score(*blobs(seed=1)) > 0.85
    assert set(model.predict(X)) <= {"no", "yes"}


def test_a_curator_is_no_better():
    X, y = blobs()
    scores = [
        LogisticRegression(256, protocol=protocol, random_state=1).fit(X, y).score(*blobs(seed=1))
        for protocol in ("masked", "central")
    ]
    assert scores[0] > scores[1] - 0.01 > 0.9


def test_bounds_and_private_standardisation():
    """One feature a million times as large as another: lost as it is, found within bounds, better with means and variances."""
    rng = np.random.default_rng(0)
    age, income, flag = rng.normal(50, 5, 6000), rng.normal(5e5, 1e5, 6000), rng.random(6000) < 0.5
    X = np.column_stack([age, income, flag])
    y = (age - 50) / 5 + rng.normal(0, 0.3, 6000) > 0
    with pytest.warns(PreprocessingWarning, match="feature 1 makes up nearly all of the length of most rows"):
        raw = LogisticRegression(512, random_state=0).fit(X, y).score(X, y)
    bounds = [(0, 120), (0, 2e6), (0, 1)]
    scaled = LogisticRegression(512, bounds=bounds, random_state=0).fit(X, y)
    private = LogisticRegression(512, bounds=bounds, standardise="private", random_state=0).fit(X, y)
    assert raw < 0.6 < scaled.score(X, y)
    assert private.score(X, y) > max(0.9, scaled.score(X, y))
    assert private.protocol_.sigma > scaled.protocol_.sigma  # part of the budget went there
    assert private.guarantee_.worst_epsilon(1e-6) <= 1.0
    assert private.plan_.scaling is not None
    unknown = LogisticRegression(512, standardise="private", epsilon=2.0, random_state=0).fit(X, y)
    assert unknown.plan_.ranges is not None
    assert unknown.score(X, y) > 0.85
    assert unknown.guarantee_.worst_epsilon(1e-6) <= 2.0
    assert unknown.scaling_.low.tolist()[1:] == [2**18, 0.0]
    with pytest.warns(NoiseWarning, match="ranges of the features are found by counts with noise"):
        LogisticRegression(60, standardise="private", epsilon=2.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(private.scaling_.mean, [50 / 60 - 1, -0.5, 0.0], atol=0.1)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
def test_scaling_that_looked_at_everybody_is_noticed_in_a_pipeline(scaler):
    X, y = blobs(600)
    pipeline = make_pipeline(scaler, LogisticRegression(30, epsilon=20.0, random_state=0))
    with pytest.warns(PreprocessingWarning, match='guarantee_ does not count it.* standardise="private"'):
        pipeline.fit(X, y)
    public = make_pipeline(StandardScaler().fit(blobs(50, seed=9)[0]), LogisticRegression(30, epsilon=20.0))
    public.named_steps["logisticregression"].fit(
        public.named_steps["standardscaler"].transform(X), y
    )  # nothing is said


def test_scikit_learn_life():
    X, y = blobs(600)
    model = LogisticRegression(20, epsilon=30.0, iterations=20, random_state=3)
    search = GridSearchCV(model, {"clip": [0.1, 0.5]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.7
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(model.fit(X, y).coef_, clone(model).fit(X, y).coef_)
    other = clone(model).set_params(random_state=4).fit(X, y)
    assert not np.array_equal(other.coef_, model.coef_)
    assert LogisticRegression().random_state is None
    fresh = [LogisticRegression(20, epsilon=30.0, iterations=3).fit(X, y).coef_ for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_progress_shows_what_everybody_sees(capsys):
    X, y = blobs(600)
    LogisticRegression(20, epsilon=10.0, iterations=20, verbose=1).fit(X, y)
    shown = capsys.readouterr().err.splitlines()
    assert "the rows' loss is private" in shown[2]
    lines = [line for line in shown if line.startswith("iteration ")]
    assert [line.split(":")[0] for line in lines] == [f"iteration {t}/20" for t in range(2, 21, 2)]
    spent = [float(line.split("ε spent = ")[1].split(",")[0]) for line in lines]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(10.0, rel=0.01)
    LogisticRegression(20, epsilon=10.0, iterations=20).fit(X, y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("protocol", ["masked", "central"])
def test_what_settings_are_made_of_is_stated(protocol):
    """The clip falls with the rows of a party, so how many there are is assumed to be public."""
    model = LogisticRegression(20, epsilon=10.0, iterations=2, protocol=protocol, random_state=0).fit(*blobs(600))
    assert any("about how many rows they have" in line and "public" in line for line in model.guarantee_.assumptions)
    assert model.protocol_.clip == pytest.approx(0.5 / 30**0.5)


def test_noise_that_will_win_is_announced():
    with pytest.warns(NoiseWarning, match="noise will win: 16 parties of 250 rows and 4 numbers"):
        LogisticRegression().fit(*blobs())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticRegression(unit="record").fit(*blobs())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number > 0, got 0"),
        ({"delta": 1}, "delta must lie between 0 and 1, got 1"),
        ({"parties": 5000}, "4000 rows cannot be dealt out to 5000 parties"),
        ({"parties": 1}, "at least two parties"),
        ({"parties": 64, "graph": "ring:5"}, r"parties=64 contradicts the graph ring\(5\)"),
        ({"protocol": "rumour"}, "unknown protocol 'rumour'"),
        ({"unit": "row"}, "unknown unit 'row'"),
        ({"unit": "record", "protocol": "central"}, "only protocol='masked' does that"),
        ({"unit": "record", "protocol": "gossip"}, "only protocol='masked' does that"),
        ({"sampling": 0.5, "protocol": "local"}, "only protocol='masked' does that"),
        ({"standardise": True}, "standardise must be None or 'private'"),
        ({"bounds": [(0, 1)]}, "a pair for each of the 3 features"),
        ({"bounds": (1, 0)}, "low below high"),
        ({"bounds": [(0, 1), (0, np.inf), (0, 1)]}, "bounds of feature 1"),
        ({"bounds": "wide"}, "bounds must be numbers"),
        ({"bounds": {0: (0, 1), 1: (0, 1)}}, r"missing: \[2\]"),
        ({"verbose": "loud"}, "verbose must be a whole number"),
        ({"random_state": np.random.RandomState(0)}, "too little randomness"),
        ({"colluders": 16}, "leaves nobody"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InvalidValue, match=message):
        LogisticRegression(**settings).fit(*blobs())


def test_more_refusals():
    X, y = blobs(600, classes=3)
    with pytest.raises(InvalidValue, match="fit takes no sample_weight: a party's rows count alike"):
        LogisticRegression().fit(X, y, sample_weight=np.ones(600))
    with pytest.raises(InvalidValue, match="fit takes X and y alone, not 'groups'"):
        LinearRegression(target_bounds=(0, 1)).fit(X, X[:, 0], groups=1)
    with pytest.raises(Unsupported, match="learns two classes, got 3"):
        LogisticRegression(protocol="gossip").fit(X, y)
    with pytest.raises(Unsupported, match="two classes only"):
        LinearRegression(protocol="walk", target_bounds=(0, 1)).fit(X, X[:, 0])
    for bounds, words in (
        (None, "is missing"),
        ((1, 1), "low below high"),
        (3, "must be a pair"),
        ((0, "x"), "finite"),
    ):
        with pytest.raises(InvalidValue, match=words):
            LinearRegression(target_bounds=bounds).fit(X, X[:, 0])
    holed = X.copy()
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression().fit(holed, y)
