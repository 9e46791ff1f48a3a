"""The scikit-learn estimator: its own checks, its certificate, and that it learns."""

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import netdp  # noqa: E402
from netdp import graphs  # noqa: E402
from netdp.errors import InvalidValue  # noqa: E402
from netdp.families.gossip import learning as module  # noqa: E402
from netdp.families.gossip.learning import worst_energies  # noqa: E402
from netdp.learn import GossipLogisticRegression, NoiseWarning  # noqa: E402
from netdp.learn.fitting import edge  # noqa: E402
from netdp.protocols import GossipDescent  # noqa: E402
from netdp.protocols.training import train  # noqa: E402

# Some ε here are large on purpose: little noise, so that what else is there can be seen.
pytestmark = pytest.mark.filterwarnings("ignore::netdp.privacy.wording.WeakPromise")


@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")  # a few rows, few parties: of course
@parametrize_with_checks(
    [GossipLogisticRegression(parties=4, iterations=5, gossip_rounds=4)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.standard_normal((rows, 3)) + 2.0 * y[:, None], np.array(["no", "yes"])[y]


@pytest.mark.parametrize("protocol", ["masked", "gossip"])
def test_learns_and_certifies(protocol):
    X, y = blobs()
    settings = {"parties": 64, "epsilon": 8.0, "delta": 1e-5, "random_state": 0}
    model = GossipLogisticRegression(protocol=protocol, **settings).fit(X, y)
    assert model.protocol_.kind.startswith(protocol)
    assert model.score(*blobs(seed=1)) > 0.9
    worst = max(netdp.account(model.protocol_, [v]).worst_epsilon(1e-5) for v in (0, 5, 63))
    assert worst <= 8.0
    assert worst > 7.9  # and no noise is wasted
    assert model.guarantee_.is_certified
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
    assert set(model.predict(X)) == {"no", "yes"}


def test_any_graph():
    X, y = blobs(600)
    model = GossipLogisticRegression(graph="regular:12,4,seed=1", epsilon=20.0, iterations=8, random_state=3).fit(X, y)
    assert model.protocol_.n == 12
    assert max(netdp.account(model.protocol_, [v]).worst_epsilon(1e-5) for v in range(12)) <= 20.0
    again = GossipLogisticRegression(
        graph=graphs.parse("regular:12,4,seed=1"), epsilon=20.0, iterations=8, random_state=3
    ).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_the_holder_is_named_as_observers_are():
    X, y = blobs(600)
    numbered = graphs.Graph.from_edges(4, graphs.ring(4).edges(), labels="1234")
    settings = {"graph": numbered, "epsilon": 100.0, "iterations": 4, "random_state": 0}
    model = GossipLogisticRegression(holder="3", **settings).fit(X, y)
    assert model.holder_guarantee_.observers.parties == (2,)
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
        (
            {"step": 23.0, "protocol": "gossip"},
            r"step 23.0 is too long for rows of norm 1 clipped to 0.1: at most 22.22",
        ),
        (
            {"step": 9.0, "clip": 1.0, "protocol": "gossip"},
            "step 9.0 is too long for rows of norm 1 clipped to 1: at most 8,",
        ),
        ({"parties": 16.0}, "parties must be a whole number ≥ 1, got 16.0"),
        ({"epsilon": "1"}, "epsilon must be a finite number > 0, got '1'"),
        ({"delta": 0}, "delta must be a finite number > 0, got 0"),
        ({"delta": 1}, "delta must lie between 0 and 1, got 1"),
        ({"holder": "x"}, "holder 'x' is no party"),
        ({"holder": 0.5}, "holder 0.5 is no party"),
        ({"graph": 7}, "7"),
        ({"masks": "many"}, "masks must be a finite number ≥ 0"),
        ({"gossip_rounds": 2.5}, "gossip_rounds must be a whole number ≥ 1, got 2.5"),
        ({"random_state": np.random.RandomState(0)}, "a RandomState has too little randomness"),
        ({"random_state": -1}, "random_state must be None .* got -1"),
        ({"random_state": "x"}, "random_state must be None .* got 'x'"),
        ({"parties": 5000}, "4000 rows cannot be dealt out to 5000 parties"),
        ({"iterations": 0}, "iterations must be a whole number ≥ 1, got 0"),
        ({"protocol": "masked", "masks": 4.0}, "masks belongs to protocol='gossip'"),
        ({"protocol": "rumour"}, "unknown protocol 'rumour'; choose one of masked, gossip"),
        ({"parties": 1}, "a masked sum needs at least two parties, got 1"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InvalidValue, match=message):
        GossipLogisticRegression(**settings).fit(*blobs())


def test_guarantee_covers_every_party_against_its_worst_single_observer():
    """On a graph without symmetry: entry u is the most that any single other party learns about u."""
    X, y = blobs(400)
    model = GossipLogisticRegression(graph="path:5", epsilon=99.0, iterations=6, holder=4, random_state=0).fit(X, y)
    every = netdp.pairwise(model.protocol_).mu
    np.testing.assert_allclose(model.guarantee_.mu, np.nanmax(every, axis=1), rtol=1e-9)
    assert model.guarantee_.epsilon(1e-5).shape == (5,)
    assert 98.99 < model.guarantee_.worst_epsilon(1e-5) <= 99.0
    assert model.holder_guarantee_.observers.parties == (4,)
    assert model.holder_guarantee_.worst_epsilon(1e-5) < 98.0  # the end of a path is not the worst place
    assert "single other party that learns most" in str(model.guarantee_)
    assert any("coef_ pools with the holder" in line for line in model.guarantee_.assumptions)
    assert model.guarantee_.is_certified


@pytest.mark.parametrize("graph", [graphs.hypercube(4), graphs.complete(7), graphs.ring(9), graphs.torus(3, 4)])
def test_one_target_per_distance_stands_for_all(graph):
    protocol = GossipDescent(graph, 5, 3, sigma=1.0, step=1.0, masks=20.0)
    every = netdp.pairwise(protocol).mu ** 2 / protocol.sensitivity**2
    np.testing.assert_allclose(worst_energies(protocol), np.nanmax(every, axis=1), rtol=1e-9)


def test_the_noise_is_fresh_by_default_and_its_whole_entropy_reaches_it(monkeypatch):
    seeds, run = [], train

    def watched(protocol, data, seed, **options):
        seeds.append(seed)
        return run(protocol, data, seed, **options)

    monkeypatch.setattr(module, "train", watched)
    X, y = blobs(600)
    settings = {"parties": 4, "epsilon": 200.0, "iterations": 4, "protocol": "gossip"}

    def fitted(state):
        return GossipLogisticRegression(random_state=state, **settings).fit(X, y).coef_

    assert GossipLogisticRegression().random_state is None
    assert not np.array_equal(fitted(None), fitted(None))
    np.testing.assert_array_equal(fitted(3), fitted(np.int64(3)))
    np.testing.assert_array_equal(fitted(np.random.default_rng(1)), fitted(np.random.default_rng(1)))
    assert not np.array_equal(fitted(np.random.default_rng(1)), fitted(np.random.default_rng(2)))
    assert all(isinstance(seed, np.random.SeedSequence) for seed in seeds)
    assert seeds[0].entropy.bit_length() > 96  # 128 random bits
    assert seeds[0].entropy != seeds[1].entropy
    drawn = seeds[4].entropy
    assert len(set(drawn)) == 8
    assert max(drawn).bit_length() > 28


def test_parties_that_contradict_the_graph_are_refused():
    X, y = blobs(600)
    with pytest.raises(InvalidValue, match=r"parties=64 contradicts the graph ring\(5\), which has 5"):
        GossipLogisticRegression(parties=64, graph="ring:5").fit(X, y)
    for settings, n in (({"graph": "ring:5"}, 5), ({"graph": "ring:5", "parties": 5}, 5), ({}, 16)):
        model = GossipLogisticRegression(epsilon=100.0, iterations=3, **settings).fit(X, y)
        assert model.protocol_.n == len(model.guarantee_.epsilon(1e-5)) == n
    with pytest.raises(InvalidValue, match="3 rows cannot be dealt out to 5 parties"):
        GossipLogisticRegression(graph="ring:5").fit(X[:3], np.array([0, 1, 1]))


def test_a_warning_says_beforehand_that_noise_will_win():
    X, y = blobs()
    with pytest.warns(
        NoiseWarning, match=r"noise will win: 16 parties with 4 features .* More parties, a larger epsilon"
    ):
        GossipLogisticRegression(epsilon=0.5, protocol="gossip", random_state=0).fit(X, y)
    with pytest.warns(
        NoiseWarning, match=r"noise will win: 16 parties of 250 rows and 4 numbers in the model: .* 0\.55"
    ):
        GossipLogisticRegression(epsilon=0.5, random_state=0).fit(X, y)
    # where it learns well, nothing is said (warnings are errors here)
    assert GossipLogisticRegression(parties=64, epsilon=4.0, random_state=0).fit(X, y).score(*blobs(seed=1)) > 0.9


@pytest.mark.parametrize("accelerated", [False, True])
def test_the_edge_counts_the_noise_that_is_there(accelerated):
    """The spread of the holder's model over many runs without any data, against the one that the edge is made of.

    docs/proofs/learning.md#schedules.
    """
    from netdp.learn import FromGradients, train

    protocol = GossipDescent(graphs.star(5), 6, 2, sigma=2.0, step=0.5, clip=0.3, masks=4.0, accelerated=accelerated)
    models = train(protocol, FromGradients(np.zeros_like, 5, 40_000, 0.0), seed=0).models
    for holder in (0, 3):
        reach = protocol.step * protocol.iterations * 0.3
        assert edge(protocol, 9, holder) == pytest.approx(reach / (models[holder].std() * 3), rel=0.02)
    mixed = protocol.replace(graph=graphs.complete(5), iterations=60)
    models = train(mixed, FromGradients(np.zeros_like, 5, 40_000, 0.0), seed=0).models
    assert edge(mixed, 9) == pytest.approx(0.5 * 60 * 0.3 / (models[0].std() * 3), rel=0.02)


def test_coef_is_the_mean_of_the_later_half_of_the_holders_models(monkeypatch):
    seen, run = [], train

    def watched(protocol, data, seed, after):
        def both(t, models):
            seen.append(models[2].copy())
            after(t, models)

        return run(protocol, data, seed, after=both)

    monkeypatch.setattr(module, "train", watched)
    model = GossipLogisticRegression(parties=4, holder=2, epsilon=200.0, iterations=7).fit(*blobs(600))
    kept = np.mean(seen[3:], axis=0)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), kept, rtol=1e-12)


def test_settings_of_gossip_ask_for_gossip():
    """Calls that were written when gossip was the default do what they did."""
    X, y = blobs(600)
    for settings in ({"gossip_rounds": 2}, {"masks": 10.0}, {"holder": 1}):
        model = GossipLogisticRegression(parties=4, epsilon=200.0, iterations=4, **settings).fit(X, y)
        assert isinstance(model.protocol_, GossipDescent)
    model = GossipLogisticRegression(parties=4, epsilon=200.0, iterations=4).fit(X, y)
    assert model.protocol_.kind == "masked-descent"
    assert model.holder_guarantee_.worst_epsilon(1e-5) == pytest.approx(model.guarantee_.worst_epsilon(1e-5))


def test_sample_weight_is_refused_in_words():
    X, y = blobs(600)
    with pytest.raises(InvalidValue, match="fit takes no sample_weight: a party's rows count alike"):
        GossipLogisticRegression().fit(X, y, sample_weight=np.ones(600))
    with pytest.raises(InvalidValue, match="fit takes X and y alone, not 'groups'"):
        GossipLogisticRegression().fit(X, y, groups=1)


@pytest.mark.filterwarnings("ignore::netdp.learn.NoiseWarning")
def test_the_holder_is_who_it_is_called_not_who_had_that_name_before():
    """Protocols are equal whatever their parties are called; what is remembered of one must not answer for another."""
    X, y = blobs(rows=100)
    edges = [(0, 1), (1, 2), (2, 3), (2, 4)]
    options = {"iterations": 3, "gossip_rounds": 1, "masks": 0.0, "epsilon": 50.0, "step": 0.1, "holder": "a"}
    for names in ("abcde", "cbade"):
        graph = graphs.Graph.from_edges(5, edges, labels=list(names))
        model = GossipLogisticRegression(graph=graph, random_state=0, **options).fit(X, y)
        holder = names.index("a")
        factor = netdp.account(model.protocol_, [holder]).factor
        np.testing.assert_array_equal(model.holder_guarantee_.factor, factor)
        assert np.isnan(factor[holder])
        assert model.guarantee_.names == tuple(names)


def test_weights_of_ones_own_are_looked_at_from_everywhere():
    ring = graphs.ring(6)
    own = graphs.GossipMatrix(ring, [0.01, 0.3, 0.02, 0.4, 0.5, 0.1])
    protocol = GossipDescent(ring, 3, 2, sigma=1.0, step=1.0, masks=5.0, mixing=own)
    each = np.fmax.reduce([netdp.account(protocol, [v]).factor for v in range(6)])
    np.testing.assert_allclose(worst_energies(protocol) / 3, each)
