"""Who decides after looking what happens next: what is charged holds, what is recomputed from what happened need not.

docs/proofs/peers.md#steered
"""

import json

import numpy as np
import pytest
from scipy import stats

import netdp
from netdp import graphs
from netdp.audit.analysts import best_analyst
from netdp.families.gossip.peer_exchanges import ExchangeLosses
from netdp.families.token.peer_paths import PeerWalkLosses
from netdp.families.token.views import TokenTranscript
from netdp.peers.hindsight import Hindsight
from netdp.peers.ledger.entries import entry_of, losses, spent, total
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.protocols.accounting import NOT_STEERED, account, pairwise
from netdp.protocols.alternatives import local_dp

DELTA = 1e-6


def best_of_two(first, more, stated):
    """sup P(E) − Σ_j e^{ε_j}·Q(E, ε_j was stated) of who sees N(μ₁, 1) or N(0, 1), and then may look at N(μ₂, 1) or N(0, 1), too.

    After y the loss is l = μ₁y − μ₁²/2; to stop is worth (1 − e^{ε₁ − l})₊, to go on δ_{μ₂}(ε₂ − l). By quadrature.
    """
    y = np.linspace(-10.0, 10.0 + first, 400_001)
    loss = first * y - first**2 / 2
    beyond = stated[1] - loss
    stop = -np.expm1(np.minimum(stated[0] - loss, 0.0))
    go_on = stats.norm.cdf(more / 2 - beyond / more) - np.exp(beyond) * stats.norm.cdf(-more / 2 - beyond / more)
    return float(np.trapezoid(stats.norm.pdf(y - first) * np.maximum(stop, go_on), y))


# ── exchanges ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# party 0 hears ½x₁ + ¼x₂ + ¼x₃ of party 1; then it invites nobody, or party 3, who holds ½x₂ + ½x₃: then x₁ is known
QUIET = np.array([(2, 3), (1, 2), (0, 1), (-1, -1)])
CURIOUS = np.array([(2, 3), (1, 2), (0, 1), (0, 3)])
FOUR = netdp.RandomizedGossip(graphs.complete(4), steps=4, sigma=2.0)


def test_a_coalition_that_chooses_exchanges_after_looking_beats_the_number_recomputed_from_them():
    few, many = (account(FOUR, [0], transcript=edges) for edges in (QUIET, CURIOUS))
    assert (few.factor[1], many.factor[1]) == pytest.approx((2 / 3, 1.0))
    local = FOUR.local_mu
    first, more = (local * np.sqrt(share) for share in (2 / 3, 1 / 3))
    recomputed = [float(loss.epsilon(DELTA)[1]) for loss in (few, many)]
    # each alone is exact
    assert best_of_two(first, 1e-9, [recomputed[0], 99.0]) == pytest.approx(DELTA, rel=1e-3)
    assert best_of_two(first, more, [99.0, recomputed[1]]) == pytest.approx(DELTA, rel=1e-3)
    steered = best_of_two(first, more, recomputed)
    assert steered > 1.3 * DELTA
    # what is charged was stated before the run: local DP, whatever is exchanged
    promise = float(local_dp(FOUR).worst_epsilon(DELTA))
    assert promise >= recomputed[1]
    assert best_of_two(first, more, [promise, promise]) <= DELTA * (1 + 1e-6)


def test_the_ledger_of_a_gossip_charges_the_promise_and_not_what_was_exchanged():
    study = Study.plan("g", Task(kind="mean", column="x", bounds=(0, 1)), ["a", "b", "c", "d"], graph="complete:4",
                       epsilon=2.0, delta=DELTA, kind="randomized-gossip")  # fmt: skip
    protocol = study.protocol()
    promise = float(local_dp(protocol).worst_epsilon(DELTA))
    for against in (1, 2, 3):
        charged = float(total([entry_of(study, 1, range(4), 0)], against).epsilon(DELTA))
        assert 0.9999 * promise <= charged <= 1.01 * promise  # its own table of the same discrete law
    assert study.running.recomputed(1, (0, 1, 2, 3), 0, {"deeds": []}) is None


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_holder_that_chooses_where_the_token_goes_beats_the_number_of_this_path():
    walk = netdp.WalkSum(4, 4, sigma=2.0)
    elsewhere, again = (
        account(walk, [0], transcript=TokenTranscript(4, (np.array(path, dtype=np.int32),)))
        for path in ([1, 0, 2, 0], [1, 0, 1, 0])
    )
    once = walk.sensitivity / walk.sigma
    recomputed = [float(loss.epsilon(DELTA)[1]) for loss in (elsewhere, again)]
    assert recomputed == pytest.approx(
        [float(netdp.privacy.GaussianCurve(once * k).epsilon(DELTA)) for k in (1, 2**0.5)]
    )
    assert best_of_two(once, once, recomputed) > 1.3 * DELTA
    assert best_of_two(once, once, [recomputed[1]] * 2) <= DELTA * (1 + 1e-6)
    assert NOT_STEERED in elsewhere.assumptions


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_attempt_forced_after_the_first_was_seen_is_covered_by_what_is_charged():
    names = [f"c{u}" for u in range(6)]
    study = Study.plan("waits", Task(kind="mean", column="x", bounds=(0, 120)), names, graph="complete:6", epsilon=1.0,
                       delta=DELTA, attempts=2, absent=1)  # fmt: skip
    made = [entry_of(study, attempt, range(6), 0) for attempt in (1, 2)]
    ((one, _),) = losses(made[:1], 1)

    def reached(stated):
        return best_analyst([one], lambda counts: stated[counts[0]] if counts[0] < len(stated) else None, step=1e-3)

    both = [spent(made[:k], 1, "party", DELTA) for k in (0, 1, 2)]
    assert reached([at.fixed for at in both]) > 1.5 * DELTA
    assert reached([at.epsilon for at in both]) <= DELTA
    policy = OwnerPolicy(delta=DELTA, limit=[{"against": 1, "per": "study", "epsilon": 1.0}])
    (verdict,) = policy.check(study, [], 0)
    promise = float(study.promise().worst_epsilon(DELTA))
    assert verdict.study == pytest.approx(promise, rel=1e-9)
    assert reached([0.0, promise, promise]) <= DELTA
    assert [policy.check(study, made[:k], 0)[0].study for k in (1, 2)] == [verdict.study] * 2


# ── it is said ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_loss_of_what_happened_says_that_nobody_may_have_steered_it():
    shuffle = netdp.FaultyShuffle(graphs.complete(5), rounds=8, epsilon0=1.0, outages=0.1)
    drawn = [
        (FOUR, [0], QUIET),
        (netdp.WalkSum(4, 6, sigma=2.0), [0], None),
        (netdp.GraphWalkSum(graphs.ring(4), 6, sigma=2.0), [0], None),
        (netdp.SecretRingSum(4, 2, sigma=2.0), [0], None),
        (
            netdp.ErdosRenyiGossip(6, p=0.9, rounds=2, sigma=2.0),
            [0],
            netdp.ErdosRenyiGossip(6, p=0.9, rounds=2, sigma=2.0).draw(1),
        ),
        (shuffle, "curator", shuffle.pattern(1)),
    ]
    for protocol, who, transcript in drawn:
        if transcript is None:
            transcript = netdp.simulate(protocol, np.zeros(protocol.n), 0).transcript
        assert NOT_STEERED in account(protocol, who, transcript=transcript).assumptions, protocol
    assert NOT_STEERED in pairwise(FOUR, transcript=QUIET).assumptions
    assert NOT_STEERED in account(FOUR, colluders=2, transcript=QUIET).assumptions
    for protocol in (netdp.Gossip(graphs.ring(4), 2, sigma=2.0), netdp.RingSum(4, 1, sigma=2.0)):
        run = netdp.simulate(protocol, np.zeros(4), 0)
        assert NOT_STEERED not in account(protocol, [0], transcript=run.transcript).assumptions


@pytest.mark.parametrize("kind", [ExchangeLosses, PeerWalkLosses])
def test_what_a_run_shows_in_hindsight_prints_its_condition(kind):
    assert issubclass(kind, Hindsight)
    assert kind.holds_if.startswith("if ")
    assert kind.holds_if.endswith("did not depend on what anybody saw")


def test_hindsight_is_written_with_its_condition():
    path = np.array([0, 1, 2, 0], dtype=np.int32)
    told = PeerWalkLosses((0, 1, 2), TokenTranscript(3, (path,)), None, 0, 0).to_dict()
    assert json.loads(json.dumps(told))["holds"] == PeerWalkLosses.holds_if
