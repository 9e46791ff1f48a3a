"""Hops for a rate of faults, and cover traffic for a server: planned, and certified again."""

import json

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account.faults import before, unharmed
from netdp.families.shuffle.account.hiding import reaches
from netdp.families.shuffle.account.relay import overflow
from netdp.families.shuffle.plan import hops_given, plan_relayed, plan_with_faults
from netdp.families.shuffle.protocol import FaultPattern
from netdp.protocols import FaultyShuffle, RelayedShuffle
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate

GRAPH = graphs.regular(120, 8, 0)


def test_more_outages_need_more_hops_and_what_is_promised_holds():
    rounds = []
    for rate in (0.0, 0.1, 0.2):
        found = plan_with_faults(GRAPH, 1.0, 1e-4, outages=rate)
        rounds.append(found.protocol.rounds)
        assert found.promised <= 1.012 * found.uniform
        assert found.promised == pytest.approx(account(found.protocol, "curator").worst_epsilon(1e-4), rel=1e-6)
        pattern = found.protocol.pattern(7)
        if rate:
            shorter = found.protocol.replace(rounds=found.protocol.rounds - 1)
            assert not reaches(shorter, before(shorter), 1.01 * unharmed(shorter).epsilon(1e-4), 1e-4)
            assert account(found.protocol, "curator", transcript=pattern).worst_epsilon(1e-4) <= 1.02 * found.uniform
    assert rounds[0] < rounds[1] < rounds[2]
    assert found.faultless == rounds[0]
    assert f"{rounds[0]} would do without faults" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_may_stop_when_the_pattern_so_far_is_enough():
    protocol = FaultyShuffle(GRAPH, 60, 1.0, outages=0.2)
    pattern = protocol.pattern(3)
    enough = hops_given(protocol, pattern, 1e-4)
    assert 8 < enough < 32
    for rounds, meets in ((enough, True), (enough - 1, False)):
        shorter = protocol.replace(rounds=rounds)
        loss = account(shorter, "curator", transcript=FaultPattern(pattern.away[:rounds]))
        assert (loss.worst_epsilon(1e-4) <= 1.01 * unharmed(shorter).epsilon(1e-4)) is meets
    assert hops_given(protocol, pattern, 1e-4, epsilon=0.6) < enough
    everybody = FaultPattern(np.ones((60, 120), dtype=bool))
    with pytest.raises(Unsupported, match="60 rounds of this pattern are not enough"):
        hops_given(protocol, everybody, 1e-4)


def test_losses_cost_a_part_of_the_crowd():
    found = plan_with_faults(GRAPH, 1.0, 1e-4, outages=0.1, lost=0.002)
    assert 0.8 < found.protocol.arrives < 0.95
    plain = plan_with_faults(GRAPH, 1.0, 1e-4, outages=0.1)
    assert found.uniform > plain.uniform
    assert found.best.rmse > plain.best.rmse


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(Unsupported, match="no number of hops is proved"):
        plan_with_faults(graphs.ring(300), 1.0, 1e-4, outages=0.1, lost=0.1)
    for wrong in ({"delta": 0.0}, {"share": 2.0}):
        with pytest.raises(InvalidValue):
            plan_with_faults(GRAPH, **{"epsilon0": 1.0, "delta": 1e-4, **wrong})
    with pytest.raises(Unsupported, match="delta0"):
        calibrate(FaultyShuffle(GRAPH, 50, 1.0, delta0=1e-9), 0.2, 1e-4)


def test_noise_for_a_target_in_spite_of_faults():
    for protocol in (
        FaultyShuffle(GRAPH, 80, 1.0, outages=0.1, absent="silent"),
        FaultyShuffle(graphs.complete(100), 4, 1.0, lost=0.01),
        RelayedShuffle(GRAPH, 60, 1.0, cover=5),  # overflows cost something here
        RelayedShuffle(GRAPH, 60, 1.0),
    ):
        found = calibrate(protocol, 0.3, 1e-3)
        reached = account(found, "curator").worst_epsilon(1e-3)
        assert 0.29 <= reached <= 0.3, protocol
        assert found.epsilon0 > 0.3


def test_the_least_cover_is_chosen():
    found = plan_relayed(GRAPH, 1.0, 1e-4)
    chosen = found.protocol
    assert found.promised <= 1.005 * found.uniform
    assert found.overflow[chosen.cover - 1] == overflow(chosen)
    less = chosen.replace(cover=chosen.cover - 1)
    assert overflow(less) > 10 * overflow(chosen)
    assert overflow(less) > 0.004 * 1e-4
    assert found.best.messages == chosen.rounds * chosen.cover * 8
    assert "envelopes per user" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(InvalidValue, match="share"):
        plan_relayed(GRAPH, 1.0, 1e-4, share=0.0)
    bundled = plan_relayed(GRAPH, 1.0, 1e-4, bundles=3)
    assert bundled.promised <= 1.012 * bundled.uniform
    assert bundled.best.messages == 3 * bundled.protocol.rounds < 0.5 * found.best.messages
    assert "3 bundles" in str(bundled)
