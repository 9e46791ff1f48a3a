"""Runs through a server that sees all traffic.

Proof of what is accounted: docs/proofs/shuffle.md#relayed-shuffling.
"""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.simulate import collect_relayed, shuffle_relayed
from netdp.mechanisms import RandomizedResponse
from netdp.protocols import RelayedShuffle
from netdp.protocols.accuracy import expected_error


def test_without_cover_the_server_follows_reports_at_first_and_loses_them():
    graph = graphs.regular(300, 6, 1)
    sure = []
    for rounds in (1, 2, 20):
        run = shuffle_relayed(RelayedShuffle(graph, rounds, 1.0), np.arange(300), 3)
        laws = run.laws()
        assert laws.sum(axis=1) == pytest.approx(np.ones(300))
        sure.append(float(run.followed.mean()))
        assert (run.followed > 0).all()
        assert run.envelopes == 300 * rounds
        counts = sum(rows[:, 2].sum() for rows in run.traffic)
        assert counts == run.envelopes
    assert sure[0] == 1.0
    assert 0.4 < sure[1] < 0.9
    assert sure[2] < 0.02


def test_the_servers_reconstruction_is_calibrated():
    """Of all places that it gives a probability between .2 and .4, about that share is right."""
    graph = graphs.regular(400, 8, 2)
    said, right = [], []
    for seed in range(6):
        run = shuffle_relayed(RelayedShuffle(graph, 3, 1.0, laziness=0.2), np.arange(400), seed)
        laws = run.laws()
        u, i = np.nonzero((laws > 0.2) & (laws < 0.4))
        said += laws[u, i].tolist()
        right += (run.positions[u] == i).tolist()
    assert len(said) > 300
    assert np.mean(right) == pytest.approx(np.mean(said), abs=0.05)


def test_under_the_rule_there_is_nothing_to_follow_and_surplus_waits():
    graph = graphs.regular(300, 6, 1)
    run = shuffle_relayed(RelayedShuffle(graph, 20, 1.0, cover=1), np.arange(300), 3)
    assert run.traffic is None
    assert run.envelopes == 20 * 1800
    assert run.waited.sum() > 100
    with pytest.raises(Unsupported, match="nothing to follow"):
        run.laws()
    roomy = shuffle_relayed(RelayedShuffle(graph, 20, 1.0, cover=9), np.arange(300), 3)
    assert roomy.waited.sum() == 0
    for each in (run, roomy):
        assert sorted(each.view.reports) == list(range(300))
        assert (each.positions[each.view.reports] == each.view.holders).all()
        assert "envelopes through the server" in str(each)
    star = shuffle_relayed(RelayedShuffle(graphs.star(9), 1, 1.0, cover=1, laziness=0.5), np.arange(9), 0)
    assert star.waited.sum() == 0  # every leaf has a link of its own to the hub


def test_the_whole_task():
    p = RelayedShuffle(graphs.complete(60), 6, 2.0, cover=3)
    values = np.arange(60) % 2
    squared = [
        float(np.sum((collect_relayed(p, RandomizedResponse(2, 2.0), values, seed).estimate - 0.5) ** 2))
        for seed in range(300)
    ]
    assert np.mean(squared) == pytest.approx(expected_error(p).total, rel=0.25)
    assert "RandomizedResponse" in str(collect_relayed(p, RandomizedResponse(2, 2.0), values, 0))
    with pytest.raises(InvalidValue, match="one value for each"):
        collect_relayed(p, RandomizedResponse(2, 2.0), values[:-1], 0)


def test_bundles_move_reports_by_the_law_that_the_traffic_shows():
    graph = graphs.regular(200, 6, 1)
    p = RelayedShuffle(graph, 3, 1.0, laziness=0.2, bundles=3)
    said, right = [], []
    for seed in range(8):
        run = shuffle_relayed(p, np.arange(200), seed)
        assert run.envelopes == 200 * 3 * 3
        assert run.waited.sum() == 0
        laws = run.laws()
        assert laws.sum(axis=1) == pytest.approx(np.ones(200))
        u, i = np.nonzero((laws > 0.05) & (laws < 0.3))
        said += laws[u, i].tolist()
        right += (run.positions[u] == i).tolist()
        assert (run.followed > 0).all()
    assert len(said) > 2000
    assert np.mean(right) == pytest.approx(np.mean(said), abs=0.02)
    assert run.slots > 200 * 3 * 3 * 5
    assert "bundles to random neighbours" in str(run)
    long = shuffle_relayed(p.replace(rounds=40), np.arange(200), 0)
    assert long.followed.max() < 0.05
