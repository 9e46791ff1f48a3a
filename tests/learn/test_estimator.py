"""The scikit-learn estimator: its own checks, its certificate, and that it learns."""

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import netdp  # noqa: E402
from netdp import graphs  # noqa: E402
from netdp.errors import InvalidValue  # noqa: E402
from netdp.learn import GossipLogisticRegression  # noqa: E402


@parametrize_with_checks(
    [GossipLogisticRegression(parties=4, iterations=5, gossip_rounds=4)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.standard_normal((rows, 3)) + 2.0 * y[:, None], np.array(["no", "yes"])[y]


def test_learns_and_certifies():
    X, y = blobs()
    model = GossipLogisticRegression(parties=64, epsilon=8.0, delta=1e-5, iterations=20, gossip_rounds=12).fit(X, y)
    assert model.score(*blobs(seed=1)) > 0.9
    worst = max(netdp.account(model.protocol_, [v]).worst_epsilon(1e-5) for v in (0, 5, 63))
    assert worst <= 8.0
    assert worst > 7.9  # and no noise is wasted
    assert model.guarantee_.is_certified
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
    assert set(model.predict(X)) == {"no", "yes"}


def test_any_graph():
    X, y = blobs(600)
    model = GossipLogisticRegression(graph="regular:12,4,seed=1", epsilon=20.0, iterations=8).fit(X, y)
    assert model.protocol_.n == 12
    assert max(netdp.account(model.protocol_, [v]).worst_epsilon(1e-5) for v in range(12)) <= 20.0
    again = GossipLogisticRegression(graph=graphs.parse("regular:12,4,seed=1"), epsilon=20.0, iterations=8).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_the_holder_is_named_as_observers_are():
    X, y = blobs(600)
    numbered = graphs.Graph.from_edges(4, graphs.ring(4).edges(), labels="1234")
    settings = {"graph": numbered, "epsilon": 20.0, "iterations": 4}
    model = GossipLogisticRegression(holder="3", **settings).fit(X, y)
    assert model.guarantee_.observers == (2,)
    plain = graphs.Graph.from_edges(4, numbered.edges())
    unnamed = GossipLogisticRegression(holder=2, **{**settings, "graph": plain}).fit(X, y)
    np.testing.assert_allclose(model.coef_, unnamed.coef_, rtol=1e-9)
    with pytest.raises(InvalidValue, match=r"holder 2 is no party: 2 could mean two nodes.*'2' or '3'"):
        GossipLogisticRegression(holder=2, **settings).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number > 0, got 0"),
        ({"holder": 99}, "holder 99 is no party"),
        ({"step": 9.0}, "step 9.0 is too long"),
        ({"parties": 5000}, "4000 rows cannot be dealt out to 5000 parties"),
        ({"iterations": 0}, "iterations must be a whole number ≥ 1, got 0"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InvalidValue, match=message):
        GossipLogisticRegression(**settings).fit(*blobs())
