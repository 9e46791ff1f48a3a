"""An audit in one run: guesses about everybody's coin prove something, never too much, and show missing noise."""

import numpy as np
import pytest

from netdp import graphs
from netdp.audit import SIMULATOR
from netdp.audit.canaries import one_run_audit
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.protocol import ShuffleTranscript
from netdp.families.shuffle.simulate import ShuffledReports, shuffle_reports
from netdp.protocols import Gossip, RingSum, Shuffle, WalkSum

LOCAL = Gossip(graphs.star(801), rounds=1, sigma=1.5)
"""The hub receives everybody's noisy value, and nothing else: local DP."""


def a_third(protocol, values, seed, normal, record):
    return SIMULATOR(protocol.replace(sigma=protocol.sigma / 3), values, seed, normal, record)


def at_home(protocol, reports, seed):
    """Nobody passes anything on."""
    run = shuffle_reports(protocol, reports, seed)
    stayed = np.arange(protocol.n)
    transcript = ShuffleTranscript(stayed, stayed, stayed)
    return ShuffledReports(transcript.view(np.asarray(reports)), transcript, run.traffic, seed, protocol)


def audited(protocol, observers, **options):
    return one_run_audit(protocol, observers, delta=1e-5, share=0.25, confidence=0.99, **options)


def test_one_run_proves_a_part_of_what_is_claimed():
    told = audited(LOCAL, [0], seed=1)
    assert (told.canaries, told.guessed) == (800, 200)
    assert 0.5 < told.epsilon < told.claimed == pytest.approx(2.76, abs=0.01)
    assert not told.refuted
    assert told.to_dict()["observers"]["parties"] == [0]


def test_a_third_of_the_noise_is_caught_in_one_run():
    told = audited(LOCAL, [0], seed=1, system=a_third)
    assert told.refuted
    assert told.claimed < told.epsilon < 3 * told.claimed


def test_guesses_follow_the_log_odds_of_the_coins():
    """Those that the observers are surest of are right as often as their log-odds say."""
    sure = one_run_audit(LOCAL, [0], delta=1e-5, share=0.1, seed=2)
    unsure = one_run_audit(LOCAL, [0], delta=1e-5, share=1.0, seed=2)
    assert unsure.guessed == 800
    # all guesses: Φ(1/3) = 0.631; the surest tenth: on average 0.80
    assert unsure.right / 800 == pytest.approx(0.631, abs=0.06)
    assert sure.right / 80 == pytest.approx(0.80, abs=0.15)


@pytest.mark.parametrize(
    ("protocol", "observers"),
    [
        (Gossip(graphs.regular(200, 6, seed=1), rounds=4, sigma=1.0), [0]),
        (Gossip(graphs.ring(101), rounds=40, sigma=1.0, refresh=0.3), [0, 50]),
        (Gossip(graphs.star(201), rounds=1, sigma=1.5, masks=4.0), [0]),
        (RingSum(101, rounds=2, sigma=3.0, grid=2.0**-6), [0]),
        (RingSum(101, rounds=3, sigma=3.0), [0, 30]),
    ],
    ids=["regular", "refreshed", "masked", "on a grid", "ring sum"],
)
def test_sound_views_are_not_refuted(protocol, observers):
    told = audited(protocol, observers, seed=3)
    assert told.epsilon <= told.claimed
    assert not told.refuted


def test_shuffled_reports_tell_little_and_reports_that_stay_tell_all():
    protocol = Shuffle(graphs.regular(300, 8, seed=1), rounds=12, epsilon0=2.0)
    sound, broken = (audited(protocol, "curator", seed=2, system=system) for system in (SIMULATOR, at_home))
    assert sound.epsilon <= sound.claimed < 1.0
    assert broken.refuted
    assert broken.epsilon < 2.0  # randomized all the same
    assert not audited(protocol, ["curator", 7], seed=1).refuted


def test_what_cannot_be_audited_in_one_run_is_refused():
    with pytest.raises(Unsupported, match="audit one target in many runs"):
        audited(WalkSum(10, steps=100, sigma=1.0), [0])
    with pytest.raises(Unsupported, match="audit one target in many runs"):
        audited(RingSum(10, rounds=1, sigma=1.0, law="laplace"), [0])
    with pytest.raises(InvalidValue, match="share must lie"):
        one_run_audit(LOCAL, [0], delta=1e-5, share=0.0)
