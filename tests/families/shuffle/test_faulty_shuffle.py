"""Runs of shuffling with faults: where reports end, what is lost, and that the estimate is as good as predicted.

Proof of what is accounted: docs/proofs/shuffle.md#faulty-shuffling.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.protocol import FaultPattern
from netdp.families.shuffle.simulate import collect_with_faults, shuffle_with_faults, walk_with_faults
from netdp.mechanisms import Laplace, RandomizedResponse
from netdp.protocols import FaultyShuffle
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error


@pytest.mark.parametrize("absent", ["unreachable", "silent"])
def test_reports_walk_by_the_law_that_is_accounted(absent):
    """Given the pattern, the laws of `hop` and the frequencies of many runs agree."""
    p = FaultyShuffle(
        [graphs.star(4), graphs.complete(4)], 3, 1.0, outages=0.3, crashes=0.1, absent=absent, lost=0.1, laziness=0.2
    )
    away, crashed = np.zeros((3, 4), dtype=bool), np.zeros((3, 4), dtype=bool)
    away[0, 1] = away[1, 3] = crashed[2, 0] = True
    pattern = FaultPattern(away, crashed)
    law = np.eye(4)
    for r in range(3):
        law = law @ p.hop(r, pattern).toarray()
    runs = 3000
    counts = np.zeros((4, 5))
    for seed in range(runs):
        positions, _ = walk_with_faults(p, pattern, seed)
        counts[np.arange(4), positions] += 1  # −1, lost, is the last column
    expected = np.column_stack([law, 1 - law.sum(axis=1)])
    assert np.abs(counts / runs - expected).max() < 5 / np.sqrt(4 * runs)


def test_a_run_is_repeatable_and_accounted_for():
    p = FaultyShuffle(graphs.regular(200, 6, 1), 60, 1.0, outages=0.1, lost=0.001)
    run, same, other = (shuffle_with_faults(p, np.arange(200), seed) for seed in (1, 1, 2))
    assert np.array_equal(run.positions, same.positions)
    assert not np.array_equal(run.positions, other.positions)
    assert len(run.view.reports) == 200 - run.lost
    assert sorted(run.view.reports) == sorted(np.flatnonzero(run.positions >= 0))
    assert (run.positions[run.view.reports] == run.view.holders).all()
    assert "reports lost" in str(run)
    assert account(p, "curator", transcript=run.pattern).worst_epsilon(1e-3) < 0.5
    calm = FaultPattern(np.zeros((60, 200), dtype=bool))
    assert shuffle_with_faults(p, np.arange(200), 1, pattern=calm).pattern.share == 0
    with pytest.raises(InvalidValue, match="one report for each"):
        shuffle_with_faults(p, np.arange(199), 1)


def test_outages_delay_and_crashes_lose():
    graph = graphs.complete(30)
    base = FaultyShuffle(graph, 10, 1.0)
    calm, late = (shuffle_with_faults(base.replace(outages=rate), np.zeros(30), 0) for rate in (0.0, 0.5))
    assert calm.sent.sum() == 300
    assert 40 < late.sent.sum() < 130  # both ends must be there: a quarter
    assert calm.lost == late.lost == 0
    crashed = shuffle_with_faults(base.replace(crashes=0.1), np.zeros(30), 0)
    assert 10 < crashed.lost < 30


def test_the_error_is_as_predicted():
    n = 120
    p = FaultyShuffle(graphs.complete(n), 20, 2.0, outages=0.2, lost=0.03)
    values = np.arange(n) % 3 == 0
    mechanism = RandomizedResponse(2, 2.0)
    truth = np.array([1 - values.mean(), values.mean()])
    squared = [
        float(np.sum((collect_with_faults(p, mechanism, values.astype(int), seed).estimate - truth) ** 2))
        for seed in range(300)
    ]
    predicted = expected_error(p, values.astype(int), mechanism=mechanism)
    assert predicted.sampling > 0
    assert np.mean(squared) == pytest.approx(predicted.total, rel=0.2)
    assert predicted.total < expected_error(p).total
    assert expected_error(p.replace(lost=0.0)).sampling == 0
    with pytest.raises(Unsupported, match=r"crashes = 0\.1"):
        expected_error(p.replace(crashes=0.1))
    with pytest.raises(InvalidValue, match="values are needed"):
        expected_error(p, mechanism=Laplace(1.0, epsilon0=2.0))
    with pytest.raises(InvalidValue, match="this RandomizedResponse has δ"):
        collect_with_faults(p, RandomizedResponse(2, 3.0), values.astype(int), 0)
    assert "RandomizedResponse" in str(collect_with_faults(p, mechanism, values.astype(int), 1))
