"""Masked sums, run: exact integers, the same by both ways of spreading, and records from which observers learn sums only."""

import math

import numpy as np
import pytest
from scipy import stats

from netdp import graphs, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.protocol import MaskedSum, opened, quantised, reduced
from netdp.families.masked.simulate import publish, spread
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.protocols.accuracy import expected_error

GRAPHS = [
    graphs.ring(40),
    graphs.grid(6, 9),
    graphs.hypercube(6),
    graphs.dataset("karate"),
    graphs.regular(120, 6, seed=3),
    graphs.complete(5),
    graphs.star(30),
    graphs.path(6),
]


@pytest.mark.parametrize("masks", ["complete", 4, "talk"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.name)
def test_both_ways_give_the_plain_sum_to_the_last_bit(graph, masks):
    protocol = MaskedSum(graph, 0.3, graph if masks == "talk" else masks, "average", dimension=3)
    rng = np.random.default_rng(0)
    values = rng.random((graph.n, 3)) * 0.5
    integers = quantised(protocol, values)
    noise = DiscreteGaussian(protocol.share).sample(values.shape, words_from(rng))
    published, _, _ = publish(protocol, integers, noise, seed=9)
    assert published.max() < protocol.q
    averaged = spread(protocol, published)
    flooded = spread(protocol.replace(spread="flood", modulus=protocol.q), published)
    plain = (integers + noise).sum(axis=0)
    assert np.array_equal(averaged, flooded)
    assert (opened(averaged, protocol.q) == plain).all()
    one = simulate(protocol, values, seed=4).estimates
    other = simulate(protocol.replace(spread="flood", modulus=protocol.q), values, seed=4).estimates
    assert np.array_equal(one, other)
    assert (one == one[0]).all()


def test_the_worst_published_values_are_averaged_exactly_too():
    """All at one end of the range, half at each, and one alone: no luck with uniform numbers."""
    protocol = MaskedSum(graphs.grid(8, 8), 0.3, spread="average")
    q, n = protocol.q, protocol.n
    for y in (
        np.zeros(n),
        np.full(n, q - 1),
        (q - 1) * (np.arange(n) % 2),
        (q - 1) * (np.arange(n) == 0),
        (q - 1) * (np.arange(n) < n // 2),
    ):
        published = y.astype(np.uint64)[:, None]
        assert (spread(protocol, published) == reduced(published.sum(dtype=np.uint64), q)).all()


def test_two_parties():
    """The smallest of all: each hides behind its own share only, and the answer is right."""
    for spread_by in ("flood", "average"):
        protocol = MaskedSum(graphs.complete(2), sigma=1e-4, spread=spread_by)
        assert simulate(protocol, [0.0, 1.0], seed=0).estimates.ravel() == pytest.approx([0.5, 0.5], abs=1e-3)


def test_runs_repeat_themselves_and_watching_changes_nothing():
    protocol = MaskedSum(graphs.ring(9), sigma=0.4)
    values = np.linspace(0, 1, 9)
    first, again, other = (simulate(protocol, values, seed=s, record=[2]) for s in (7, 7, 8))
    assert np.array_equal(first.record.published, again.record.published)
    assert not np.array_equal(first.record.published, other.record.published)
    assert np.array_equal(simulate(protocol, values, seed=7).estimates, first.estimates)
    assert simulate(protocol, values, seed=7).record is None


@pytest.mark.parametrize("masks", ["complete", 4])
def test_the_record_holds_what_observers_know(masks):
    protocol = MaskedSum(graphs.ring(12), sigma=0.4, masks=masks, dimension=2)
    values = np.random.default_rng(1).random((12, 2)) * 0.7
    run = simulate(protocol, values, seed=5, record=[8, 3])
    kept = run.record
    assert kept.observers == (3, 8)
    assert np.array_equal(kept.messages, run.transcript.received_by([3, 8]))
    np.testing.assert_array_equal(kept.values, values[[3, 8]])
    np.testing.assert_array_equal(kept.integers, quantised(protocol, values)[[3, 8]])
    pads = protocol.mask_graph or graphs.complete(12)
    partners = int(pads.degrees[3] + pads.degrees[8]) - pads.has_edge(3, 8)
    assert len(kept.pads) == len(kept.pad_edges) == partners
    for i, v in enumerate(kept.observers):  # its own y, from what it knows
        signs = (kept.pad_edges[:, 0] == v).astype(int) - (kept.pad_edges[:, 1] == v)
        own = (kept.integers[i] + kept.noises[i]).astype(object) + (signs[:, None] * kept.pads.astype(object)).sum(
            axis=0
        )
        assert [x % protocol.q for x in own] == kept.published[v].tolist()
    assert run.transcript.rounds == protocol.rounds == 6


def test_a_coalition_can_open_the_sums_of_the_components_and_no_less():
    """From the record of parties 3 and 8 on a path of pads: three sums, with noise of as many shares as there are parties."""
    protocol = MaskedSum(graphs.complete(12), sigma=0.4, masks=graphs.path(12))
    values = np.linspace(0.0, 1.0, 12)
    integers = quantised(protocol, values[:, None])
    left = {(0, 1, 2): [], (4, 5, 6, 7): [], (9, 10, 11): []}
    for seed in range(400):
        kept = simulate(protocol, values, seed=seed, record=[3, 8]).record
        for part, found in left.items():
            total = int(kept.published[list(part)].astype(object).sum())
            for (u, v), pad in zip(kept.pad_edges.tolist(), kept.pads.ravel().tolist(), strict=True):
                total -= pad * ((u in part) - (v in part))
            found.append(
                int(opened(np.array([total % protocol.q], dtype=np.uint64), protocol.q)[0])
                - int(integers[list(part)].sum())
            )
    for part, noises in left.items():
        deviation = math.sqrt(len(part) * protocol.share)
        assert stats.kstest(np.array(noises) / deviation, "norm").pvalue > 1e-4


def test_what_one_party_publishes_is_uniform():
    protocol = MaskedSum(graphs.ring(6), sigma=0.1, masks=graphs.path(6))
    tops = [simulate(protocol, np.ones(6), seed=s, record=[5]).record.published for s in range(1600)]
    for party in (0, 2):  # one pad only, and two
        counts = np.bincount((np.array([y[party, 0] for y in tops]) >> np.uint64(28)).astype(int), minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_errors_meet_the_prediction():
    protocol = MaskedSum(graphs.complete(5), sigma=0.6, dimension=4000, sensitivity=70.0, grid=2.0**-4)
    values = np.tile(np.random.default_rng(2).random(5)[:, None], (1, 4000))
    run = simulate(protocol, values, seed=3)
    squares = (run.estimates[0] - values.mean(axis=0)) ** 2
    predicted = expected_error(protocol, values)
    assert abs(squares.mean() - predicted.total / 4000) < 5 * squares.std() / math.sqrt(4000)
    assert predicted.noise > 0.99 * predicted.total


def test_values_are_held_to_the_sensitivity_on_the_grid():
    protocol = MaskedSum(graphs.ring(4), sigma=2.0, grid=0.5, sensitivity=1.0)
    run = simulate(protocol, [-9.0, 0.2, 0.6, 9.0], seed=0, bounds=(0, 1), record=[0, 1, 3])
    assert run.record.integers.ravel().tolist() == [0, 0, 2]
    with pytest.raises(InvalidValue, match="more than the sensitivity 1"):
        simulate(protocol, [0.0, 0.0, 0.0, 1.2], seed=0)
    with pytest.raises(
        InvalidValue, match=r"the value of party 0, 5\.1, is further than the sensitivity 1 from the centre 0"
    ):
        simulate(protocol, [5.1, 5.5, 5.2, 5.3], seed=0)
    with pytest.raises(InvalidValue, match="state dimension=2"):
        simulate(protocol, np.zeros((4, 2)), seed=0)


def test_a_hair_more_than_the_sensitivity_is_not_one_step_more():
    """Values a relative 1e-10 further apart than Δ pass for rounding errors; on the grid they must not pass for three steps."""
    protocol = MaskedSum(graphs.ring(4), sigma=2.0, grid=0.5, sensitivity=1.0, centre=0.5)
    low = 0.25 - 4e-11
    values = [low, low + 1 + 8e-11, 0.5, 0.5]
    with pytest.raises(InvalidValue, match="on the grid the values are 3 steps apart, more than the 2"):
        simulate(protocol, values, seed=0)
    run = simulate(protocol, values, seed=0, bounds=(low, low + 1 + 8e-11), record=[0, 1])
    assert run.record.integers.ravel().tolist() == [-1, 1]


def test_a_centre_far_from_zero():
    protocol = MaskedSum(graphs.ring(50), sigma=1e-3, centre=1000.0)
    values = 1000 + np.linspace(0, 1, 50)
    run = simulate(protocol, values, seed=0)
    assert run.estimates[0, 0] == pytest.approx(values.mean(), abs=2e-3)
    assert "the mean of the parties' values" in str(run)


def test_averaging_that_cannot_be_exact_is_refused():
    with pytest.raises(Unsupported, match="use spread='flood'"):
        simulate(MaskedSum(graphs.ring(1000), sigma=0.1, spread="average"), np.zeros(1000), seed=0)


def test_a_thousand_parties_with_a_hundred_numbers():
    protocol = MaskedSum(graphs.regular(1000, 6, seed=0), sigma=0.02, dimension=100)
    values = np.random.default_rng(0).random((1000, 100)) * 0.1
    run = simulate(protocol, values, seed=0, bounds=(0, 0.1))
    np.testing.assert_allclose(run.estimates[0], values.mean(axis=0), atol=6 * 0.02 / math.sqrt(1000))


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_records_are_added_up_and_their_number_is_hidden_with_them():
    protocol = MaskedSum(graphs.ring(6), sigma=1e-4, unit="record", dimension=2, sensitivity=1.5, reach=40.0)
    rng = np.random.default_rng(0)
    tables = [np.column_stack([rng.random(m), np.ones(m)]) for m in (5, 0, 1, 30, 2, 7)]
    run = simulate(protocol, tables, seed=3, record=[3])
    truth = np.sum([table.sum(axis=0) for table in tables], axis=0) / 6
    np.testing.assert_allclose(run.estimates[0], truth, atol=5e-3)
    assert round(run.estimates[0, 1] * 6) == 45
    np.testing.assert_allclose(run.record.values[0], tables[3].sum(axis=0))
    error = expected_error(protocol, tables)
    assert np.abs(run.estimates[0] - truth).max() < 6 * error.rmse
    with pytest.raises(Unsupported, match="depends on how many there are; give values"):
        expected_error(protocol)


def test_the_error_of_records_is_predicted():
    protocol = MaskedSum(graphs.ring(4), sigma=0.5, unit="record", grid=0.25, reach=20.0)
    tables = [[0.125] * 8, [0.3], [], [0.9, -0.9]]  # 0.125 is rounded up, eight times; 0.3 → 0.25; 0.9 and −0.9 → ±1
    error = expected_error(protocol, tables)
    assert error.rounding == pytest.approx(((8 * 0.125 - 0.05) / 4) ** 2)
    found = [simulate(protocol, tables, seed=s).estimates[0, 0] for s in range(1200)]
    truth = sum(sum(table) for table in tables) / 4
    assert np.mean((np.array(found) - truth) ** 2) == pytest.approx(error.total, rel=0.2)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([[0.5], [2.0], []], {}, "party 1: record 0 has the L2 norm 2, more than the sensitivity 1"),
        ([[0.5], [1.0]], {}, "there are 3 parties, got the records of 2"),
        ([[0.5], [1.0] * 9, []], {}, "a value lies .* grid steps from the centre 0.*state reach=9"),
        ([[0.5], [], []], {"bounds": (0, 1)}, "bounds=\\(0, 1\\) with unit='record'"),
    ],
)
def test_records_are_held_to_what_is_promised(values, options, words):
    protocol = MaskedSum(graphs.ring(3), sigma=1.0, unit="record")
    with pytest.raises(InvalidValue, match=words):
        simulate(protocol, values, seed=0, **options)


def test_values_are_held_to_the_reach():
    protocol = MaskedSum(graphs.ring(3), sigma=1.0, reach=0.5)
    with pytest.raises(InvalidValue, match=r"further than the reach 0.5 from the centre 0; .* a larger reach"):
        simulate(protocol, [0.0, 0.4, 0.6], seed=0)
    assert simulate(protocol.replace(reach=30.0, sensitivity=25.0), [0.0, 0.0, 24.0], seed=0).estimates[0, 0] > 4
