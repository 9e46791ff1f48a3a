"""The audit as a whole: which pairs, the same scores on every engine, verdicts, refusals. docs/proofs/audit.md#measured."""

import dataclasses

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.audit import SIMULATOR, Check, Verdict, audit, audit_pair, audit_these, collect, look
from netdp.audit.audits import by_distance, hops_from, pairs_of, resolution, trials_for
from netdp.audit.linear import LinearAttack, probed
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.views import explicit_view
from netdp.families.masked.attack import furthest

GOSSIP = netdp.Gossip(graphs.ring(8), rounds=4, sigma=1.0)


def test_the_same_seed_gives_the_same_audit_and_another_another():
    one, again, other = (audit(GOSSIP, trials=2000, seed=seed, distances=False) for seed in (1, 1, 2))
    assert one.to_dict() == again.to_dict()
    assert [row.measured for row in one.findings] != [row.measured for row in other.findings]


def test_every_engine_gives_the_same_scores():
    attack = LinearAttack(GOSSIP, (0,), 3, SIMULATOR)
    with netdp.engine("serial"):
        here = collect(attack, 40_000, seed=5)
    with netdp.engine("threads", workers=2, from_seconds=0.0):
        threads = collect(attack, 40_000, seed=5)
    with netdp.engine("processes", workers=2, from_seconds=0.0):
        processes = collect(attack, 40_000, seed=5)
    for other in (threads, processes):
        np.testing.assert_array_equal(here.without, other.without)
        np.testing.assert_array_equal(here.within, other.within)


@pytest.mark.parametrize(
    "settings", [{}, {"refresh": 0.5}, {"masks": 9.0}, {"masks": 9.0, "refresh": 0.5, "accelerated": True}]
)
def test_matrices_found_by_feeding_are_those_that_are_written_down(settings):
    """Against the view written out by hand, for everything that the observers do not know: the same loss for every target."""
    protocol = GOSSIP.replace(**settings)
    data, noise = probed(SIMULATOR, protocol, (0, 3), seed=0)
    seen = explicit_view(protocol, [0, 3])
    for target in (1, 5):
        here = np.linalg.pinv(noise @ noise.T, rcond=1e-11, hermitian=True)
        there = np.linalg.pinv(seen.noise @ seen.noise.T, rcond=1e-11, hermitian=True)
        found = data[:, target] @ here @ data[:, target]
        assert found == pytest.approx(seen.data[:, target] @ there @ seen.data[:, target], rel=1e-4)
        assert found == pytest.approx(float(netdp.account(protocol, [0, 3]).mu[target]) ** 2, rel=1e-4)


def test_the_pairs_are_the_worst_a_random_the_farthest_and_a_coalition():
    pairs = pairs_of(GOSSIP, 1e-6, colluders=3, seed=0)
    assert [pair.name for pair in pairs] == ["worst pair", "random pair", "farthest pair", "3 colluders"]
    assert hops_from(graphs.ring(8), pairs[2].observers.parties)[pairs[2].target] == 4
    assert len(pairs[3].observers.parties) == 3
    epsilons = netdp.pairwise(GOSSIP).epsilon(1e-6)
    worst = pairs[0]
    assert epsilons[worst.target, worst.observers.parties[0]] == pytest.approx(np.nanmax(epsilons))


def test_a_curator_looks_where_there_is_one():
    pairs = pairs_of(netdp.Shuffle(graphs.complete(12), rounds=4, epsilon0=1.0), 1e-6, colluders=3, seed=0)
    assert [pair.observers.roles for pair in pairs] == [("curator",)] * 3
    assert [len(pair.observers.parties) for pair in pairs] == [0, 0, 2]


def test_distances_are_looked_at_where_they_matter():
    assert [pair.name for pair in by_distance(GOSSIP, 0, 1e-6)] == [
        "1 hop away", "2 hops away", "3 hops away", "4 hops away",
    ]  # fmt: skip
    assert by_distance(netdp.MaskedSum(graphs.ring(8), sigma=1.0), 0, 1e-6) == []


def test_what_is_too_small_to_measure_is_called_so():
    faint = netdp.Gossip(graphs.hypercube(4), rounds=20, sigma=400.0, masks=100.0)
    found = audit_pair(faint, look(faint, [0], 1), trials=2000)
    assert found.verdict is Verdict.TOO_SMALL
    assert found.claimed < found.resolution


def test_where_nothing_is_promised_nothing_is_refuted():
    ring = netdp.RingSum(10, rounds=3, sigma=4.0, closing=False)
    found = audit_pair(ring, look(ring, [8], 9), trials=2000)
    assert found.verdict is Verdict.NOTHING
    assert found.measured.by_counts > 3  # it is read off the token


def test_more_is_claimed_the_fewer_trials_are_needed():
    attack = LinearAttack(GOSSIP, (0,), 3, SIMULATOR)
    assert trials_for(attack, 0.5, 1e-6, 1e-3) > trials_for(attack, 2.0, 1e-6, 1e-3)
    assert trials_for(attack, float("inf"), 1e-6, 1e-3) <= 2000
    assert resolution(100, 1e-6, 1e-3) > resolution(10_000, 1e-6, 1e-3)


def test_an_audit_is_not_ok_if_a_check_is_not():
    found = audit_these(GOSSIP, [look(GOSSIP, [0], 1)], trials=2000)
    assert found.ok
    assert not dataclasses.replace(found, checks=(Check("noise", False, "is not there"),)).ok


@pytest.mark.parametrize(("dimension", "grid"), [(1, 0.25), (4, 0.125), (15, 0.25), (40, 0.5)])
@pytest.mark.parametrize("unit", ["party", "record"])
def test_two_neighbours_are_as_far_apart_on_the_grid_as_is_accounted_for(dimension, grid, unit):
    """Never further than the stated distance, and most of it."""
    reach = {"reach": 9.0} if unit == "record" else {}
    protocol = netdp.MaskedSum(graphs.ring(3), sigma=4.0, grid=grid, dimension=dimension, unit=unit, **reach)
    low, high = furthest(protocol)
    assert np.linalg.norm(high - low) <= protocol.sensitivity
    steps = np.linalg.norm(np.floor(high / grid + 0.5) - np.floor(low / grid + 0.5))
    assert 0.75 * protocol.distance <= steps <= protocol.distance


def test_long_learning_is_audited_for_fewer_iterations_and_says_so():
    long = netdp.MaskedDescent(graphs.complete(4), iterations=100, sigma=0.2, step=0.1, clip=0.1, dimension=2)
    found = audit(long, trials=512, colluders=1)
    assert found.ok
    assert "instead of 100 iterations" in found.notes[0]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: audit(netdp.Local(4, sigma=1.0)), Unsupported, "cannot be audited"),
        (lambda: audit(GOSSIP, delta=-1.0), InvalidValue, "delta"),
        (lambda: audit(GOSSIP, confidence=1.0), InvalidValue, "between 0 and 1"),
        (lambda: audit(GOSSIP, trials=0), InvalidValue, "trials"),
        (lambda: audit(GOSSIP, trials=2000, seed=-1), InvalidValue, "seed"),
        (lambda: look(GOSSIP, [0], 8), InvalidValue, "no party 8"),
        (lambda: audit_pair(GOSSIP, look(GOSSIP, [0], 0)), InvalidValue, "looks itself"),
    ],
)
def test_nonsense_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()
