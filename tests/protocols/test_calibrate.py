"""Calibration from both sides: the target is met by an independent accounting, and a little less noise fails it.

Proof: docs/proofs/privacy.md#calibration.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue, Unsupported
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.search import certify, revealed
from netdp.families.gossip.views import GossipView
from netdp.families.masked.account import against_any, component_curve, cut_probability
from netdp.families.masked.protocol import MaskedSum
from netdp.graphs.shape import vertex_transitive
from netdp.privacy import gaussian_mu
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.calibration import calibrate, noise_for
from netdp.protocols.target import Policy, Rule, Target, audience

DELTA = 1e-6
PROTOCOLS = [
    Gossip(graphs.hypercube(4), rounds=6, sigma=1.0),
    Gossip(graphs.hypercube(4), rounds=6, sigma=1.0, masks=20.0, accelerated=True),
    Gossip(graphs.grid(3, 5), rounds=5, sigma=3.0, masks=5.0, refresh=0.5),
    Gossip(graphs.regular(18, 3, seed=1), rounds=4, sigma=1.0, refresh=1.0, sensitivity=2.0),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_factors_do_not_depend_on_sigma(protocol):
    a, b = pairwise(protocol).factor, pairwise(protocol.replace(sigma=37.0)).factor
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_worst_is_met_and_tight(protocol, epsilon):
    p = calibrate(protocol, epsilon, DELTA)
    assert pairwise(p).worst_epsilon(DELTA) <= epsilon
    assert all(account(p, [v]).worst_epsilon(DELTA) <= epsilon for v in range(3))
    assert pairwise(p.replace(sigma=p.sigma * (1 - 1e-6))).worst_epsilon(DELTA) > epsilon
    assert p.replace(sigma=protocol.sigma) == protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_beyond_and_mean(protocol):
    n = protocol.graph.n
    far = np.array([protocol.graph.distances(v) >= 2 for v in range(n)])
    p = calibrate(protocol, 1.0, DELTA, scope="beyond:2")
    epsilon = pairwise(p).epsilon(DELTA)
    assert 1 - 1e-6 < epsilon[far].max() <= 1.0
    mean = calibrate(protocol, 1.0, DELTA, scope="mean")
    factors = pairwise(mean).factor
    worst_mean = np.nanmean(factors, axis=0).max() * mean.local_mu**2
    reached = calibrate(Gossip(graphs.complete(3), rounds=1, sigma=1.0), 1.0, DELTA).local_mu ** 2  # factor 1: μ*²
    assert worst_mean == pytest.approx(reached, rel=1e-7)
    assert mean.sigma < calibrate(protocol, 1.0, DELTA).sigma


def test_coalitions_and_named_observers():
    protocol = Gossip(graphs.hypercube(5), rounds=8, sigma=1.0, masks=50.0)
    alone = calibrate(protocol, 1.0, DELTA)
    together = calibrate(protocol, 1.0, DELTA, coalitions=[[0, 1, 2], [5, 9]])
    assert together.sigma > alone.sigma
    assert account(together, [0, 1, 2]).worst_epsilon(DELTA) <= 1.0
    drawn = audience(protocol.graph, coalitions=0.2, seed=3, draws=4)
    assert [len(members) for members in drawn.coalitions] == [6] * 4
    assert "drawn at random (seed 3), other coalitions may learn more" in drawn.words
    p = calibrate(protocol, 1.0, DELTA, coalitions=0.2, seed=3, draws=4)
    assert max(account(p, members).worst_epsilon(DELTA) for members in drawn.coalitions) <= 1.0
    star = Gossip(graphs.star(9), rounds=4, sigma=1.0, masks=50.0)
    leaf = calibrate(star, 1.0, DELTA, observers=[3])
    assert leaf.sigma < calibrate(star, 1.0, DELTA).sigma
    assert "only" in audience(star.graph, [3]).words


def test_pruning_finds_the_true_worst(random_graph):
    for seed in range(6):
        graph = random_graph(14, seed, density=0.3)
        protocol = Gossip(graph, rounds=4, sigma=1.0, masks=10.0)
        found = certify(protocol, Target(graph, 1.0, DELTA), audience(graph))
        full = pairwise(protocol).factor
        assert found.worst_factor == pytest.approx(np.nanmax(full), rel=1e-12)
        assert full[found.party, found.observers[0]] == pytest.approx(found.worst_factor, rel=1e-12)
        for v in range(graph.n):
            bound = revealed(GossipView(protocol, (v,)))
            others = np.arange(graph.n) != v
            assert (bound[others] >= full[others, v]).all()


def test_one_observer_stands_for_all_on_symmetric_graphs():
    for graph in (graphs.ring(9), graphs.torus(3, 4), graphs.hypercube(4), graphs.complete(6)):
        assert vertex_transitive(graph)
        protocol = Gossip(graph, rounds=5, sigma=1.0, masks=7.0)
        found = certify(protocol, Target(graph, 1.0, DELTA, "mean"), audience(graph))
        assert found.examined == 1
        columns = np.nanmean(pairwise(protocol).factor, axis=0)
        np.testing.assert_allclose(columns, columns[0], rtol=1e-9)
    assert not vertex_transitive(graphs.star(8))
    assert not vertex_transitive(graphs.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)], name="ring(4)"))
    assert not vertex_transitive(graphs.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)], name="ring(99999999999)"))


@pytest.mark.parametrize("suffix", ["csv", "toml"])
def test_policies_from_files(tmp_path, suffix):
    path = tmp_path / f"policy.{suffix}"
    if suffix == "csv":
        path.write_text("target, observer, epsilon\n*, *, 4  # anybody\n\n*, distance>=2, 1\n0, 1, 0.5\n")
    else:
        rule = '[[rule]]\ntarget = "{}"\nobserver = "{}"\nepsilon = {}\n'
        path.write_text(rule.format("*", "*", 4) + rule.format("*", "distance>=2", 1.0) + rule.format("0", "1", 0.5))
    policy = Policy.read(path)
    protocol = Gossip(graphs.ring(7), rounds=5, sigma=1.0, masks=30.0)
    limits = policy.limits(protocol.graph)
    assert limits[0, 1] == 0.5
    assert limits[1, 0] == 4.0
    assert limits[2, 5] == 1.0
    p = calibrate(protocol, None, DELTA, scope=policy)
    epsilon = pairwise(p).epsilon(DELTA)
    off = ~np.eye(7, dtype=bool)
    assert (epsilon[off] <= limits[off]).all()
    less = pairwise(p.replace(sigma=p.sigma * (1 - 1e-6))).epsilon(DELTA)
    assert (less[off] > limits[off]).any()
    # a coalition is held to the strictest of its members
    both = calibrate(protocol, None, DELTA, scope=policy, coalitions=[[1, 3]])
    assert account(both, [1, 3]).epsilon(DELTA)[0] <= 0.5


def test_a_number_in_a_policy_is_a_name(tmp_path):
    """In a file everything is text, so 1 is the party that the graph calls 1, in whatever place it stands."""
    graph = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=["1", "2", "3"])
    path = tmp_path / "policy.csv"
    path.write_text("1, 3, 0.5\n2, distance=1, 2\n")
    limits = Policy.read(path).limits(graph)
    np.testing.assert_array_equal(limits, [[np.nan, np.inf, 0.5], [2.0, np.nan, 2.0], [np.inf, np.inf, np.nan]])
    path.write_text("0, 3, 0.5\n")
    with pytest.raises(FileFormatError, match=r"policy.csv:1: no node is labelled '0'"):
        Policy.read(path).limits(graph)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("*, *\n", ":1: has 2 columns, not 3"),
        ("*, *, 1\n*, *, much\n", ":2: epsilon 'much' is not a number"),
        ("*, *, -1\n", ":1: epsilon must be a finite number ≥ 0, got -1.0"),
        ("*, *, nan\n", "got nan"),
        ("# nothing\n", "holds no rule"),
        ("*, distance>2, 1\n", ":1: cannot read 'distance>2'"),
        ("distance>=2, *, 1\n", "distances belong to the observer"),
        (", *, 1\n", ":1: the target of a rule is empty"),
    ],
)
def test_bad_policies(tmp_path, content, message):
    path = tmp_path / "p.csv"
    path.write_text(content)
    with pytest.raises(FileFormatError) as caught:
        Policy.read(path)
    assert message in str(caught.value)


def test_more_bad_policies(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("*, *, 1\n\n*, Ann, 1\n")
    with pytest.raises(FileFormatError, match=r"p.csv:3: no node 'Ann'"):
        calibrate(PROTOCOLS[0], None, DELTA, scope=Policy.read(path))
    toml = tmp_path / "p.toml"
    for content, message in (
        ("[[rule]]\ntarget = 1 = 2\n", "p.toml:2: is not valid TOML"),
        ('[[rule]]\ntarget = "*"\n', "p.toml:1: a rule has target, observer and epsilon"),
        ("speed = 3\n", r"must consist of \[\[rule\]\] tables"),
        ('[[rule]]\ntarget = "*"\nobserver = "*"\nepsilon = "1"\n', "p.toml:1: epsilon must be a number"),
    ):
        toml.write_text(content)
        with pytest.raises(FileFormatError, match=message):
            Policy.read(toml)
    with pytest.raises(FileFormatError, match="cannot be read"):
        Policy.read(tmp_path / "none.csv")
    with pytest.raises(InvalidValue, match="limits no pair"):
        calibrate(PROTOCOLS[0], None, DELTA, scope=Policy((Rule("*", "distance>=9", 1.0),)))


@pytest.mark.parametrize("rules", ["x", "", b"x", None, 3, Rule("*", "*", 1.0), {"*": 1.0}], ids=repr)
def test_a_policy_is_made_of_rules(rules):
    """Policy("x") used to be accepted, and failed much later."""
    with pytest.raises(
        InvalidValue, match=r"made of rules, Policy\(\[Rule\(.*got .*Policy.read\('policy.csv'\)"
    ) as caught:
        Policy(rules)
    assert repr(rules) in str(caught.value)


def test_every_rule_of_a_policy_is_checked():
    rule = Rule("*", "*", 1.0)
    with pytest.raises(InvalidValue, match=r"got \('\*', '\*', 1.0\) among them"):
        Policy((rule, ("*", "*", 1.0)))
    assert Policy([rule]) == Policy((rule,))
    assert hash(Policy([rule])) == hash(Policy((rule,)))


@pytest.mark.parametrize("path", [3, None, b"p.csv", [1]], ids=repr)
def test_a_policy_is_read_from_a_named_file(path):
    with pytest.raises(InvalidValue, match=r"takes the name of a .csv or .toml file, got"):
        Policy.read(path)


def test_what_no_noise_can_meet_names_the_pair():
    policy = Policy((Rule("3", "2", 0.0),))
    protocol = Gossip(graphs.ring(7), rounds=3, sigma=1.0)
    with pytest.raises(Unsupported, match=r"party 3 is seen by party 2 .*no guarantee at delta = 0"):
        calibrate(protocol, None, 0.0, scope=policy)
    # with δ > 0 Gaussian noise does meet ε = 0, with a great deal of noise
    p = calibrate(protocol, None, DELTA, scope=policy)
    assert float(account(p, [2]).delta(0.0)[3]) <= DELTA
    assert p.sigma > 1e5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number ≥ 0, got -1.0"),
        ({"epsilon": None}, "got None"),
        ({"delta": 1.0}, r"delta must lie in \[0, 1\), got 1.0"),
        ({"scope": "best"}, "scope must be .* got 'best'"),
        ({"scope": "beyond:0"}, "got 'beyond:0'"),
        ({"scope": "beyond:9"}, "no two parties are 9 hops apart"),
        ({"scope": "beyond:4", "rounds": 2}, "no noise is needed"),
        ({"coalitions": 1.5}, "share strictly between 0 and 1 or a list of sets, got 1.5"),
        ({"coalitions": []}, "coalitions is empty"),
        ({"coalitions": 0.5, "draws": 0}, "draws must be a whole number ≥ 1, got 0"),
        ({"observers": [99]}, "99"),
        ({"colluders": [[0, 1]]}, "colluders must be a whole number ≥ 1"),
        ({"banana": 1}, "the calibration of Gossip takes no option 'banana'; its options: coalitions, colluders"),
    ],
)
def test_bad_arguments(arguments, message):
    settings = {"epsilon": 1.0, "delta": DELTA, **arguments}
    protocol = PROTOCOLS[0].replace(rounds=settings.pop("rounds", 6))
    with pytest.raises(InvalidValue, match=message):
        calibrate(protocol, **settings)


def test_every_pair_of_a_large_graph_is_refused_not_guessed():
    graph = graphs.regular(5000, 4, seed=0)
    protocol = Gossip(graph, rounds=3, sigma=1.0, masks=10.0)
    with pytest.raises(Unsupported, match="name observers"):
        calibrate(protocol, 1.0, DELTA)
    p = calibrate(protocol, 1.0, DELTA, observers=[7, 8])
    assert max(account(p, [v]).worst_epsilon(DELTA) for v in (7, 8)) <= 1.0
    large = graphs.ring(5000)
    assert calibrate(Gossip(large, rounds=3, sigma=1.0), 1.0, DELTA).sigma > 0


@pytest.mark.parametrize("masks", [1_000, 100_000])
def test_strong_masks_are_not_below_the_truth(random_graph, exact_factors, masks):
    """The planner asks for masks far stronger than elsewhere: their margin must still cover the rounding."""
    for seed, rounds in ((0, 3), (1, 5), (2, 8)):
        graph = random_graph(9, seed, density=0.3)
        true = exact_factors(graph, rounds, [0], masks=masks)
        ours = account(Gossip(graph, rounds=rounds, sigma=1.0, masks=float(masks)), [0]).factor
        for u in range(1, graph.n):
            assert float(true[u]) <= ours[u] <= float(true[u]) * (1 + 1e-5) + 1e-9


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_the_headroom_is_as_printed():
    """σ = Δ/μ(ε, δ) with 10⁻⁹ on top; in gossip 10⁻⁹ on σ²."""
    allowed = float(gaussian_mu(1.0, 1e-6))
    assert noise_for(2.0, 1.0, 1e-6) * allowed / 2 - 1 == pytest.approx(1e-9, rel=1e-3, abs=0.0)
    once = calibrate(Gossip(graphs.complete(3), rounds=1, sigma=1.0), 1.0, 1e-6)
    assert once.sigma * allowed - 1 == pytest.approx(0.5e-9, rel=0.05, abs=0.0)


def test_the_probability_of_a_cut_is_taken_off_delta():
    """A third of δ is spent on random mask graphs: what is calibrated meets the target with what is left."""
    draft = MaskedSum(graphs.ring(40), sigma=1.0, masks=6, mask_seed=1)
    missed = cut_probability(draft, 8)
    found = calibrate(draft, 1.0, 3 * missed, colluders=8)
    assert 0.98 < float(against_any(found, 8).epsilon(3 * missed)) <= 1.0
    assert float(component_curve(found, 32).epsilon(3 * missed)) < 0.99
