"""What the last digits of a report give away: much in floating point, nothing in whole numbers.

The set {y·2⁵³ is no whole number} is an attack that needs no knowledge of the noise. Proofs:
docs/proofs/mechanisms.md#finite-precision.
"""

import math

import numpy as np
import pytest

from netdp import graphs
from netdp.families.shuffle.simulate import collect, collect_relayed, collect_with_faults, which_draws
from netdp.mechanisms import Gaussian, Laplace, PrivUnit, RandomizedResponse, on_a_grid
from netdp.mechanisms.base import EXACT_DRAWS, FLOAT_DRAWS, OWN_DRAWS
from netdp.mechanisms.discrete_gaussian import words_from
from netdp.peers.streams import noise_words
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle

DRAWS = 40_000
NUMBERS = [Laplace.interval(0.0, 1.0, 1.0), Gaussian.calibrated(1.0, 1e-6, centre=0.5)]


def broken(y):
    """Which numbers have a digit beyond 2⁻⁵³."""
    digits = np.ldexp(y, 53)
    return digits != np.rint(digits)


@pytest.mark.parametrize("mechanism", NUMBERS, ids=lambda m: type(m).__name__)
def test_float_draws_tell_zero_from_one(mechanism):
    rng = np.random.default_rng(0)
    zero, one = (np.mean(broken(mechanism.randomize(np.full(DRAWS, x), rng)[:, 0])) for x in (0.0, 1.0))
    assert one == 0
    assert zero > 0.05  # an ε of infinity, in one report of twenty


@pytest.mark.parametrize("mechanism", NUMBERS, ids=lambda m: type(m).__name__)
def test_whole_numbers_do_not(mechanism):
    """Neither this set, nor any last bits: what is seen under 0 is at most e^ε₀ as likely as under 1, and the other way."""
    exact = on_a_grid(mechanism)
    reports = [
        exact.report(np.full(DRAWS, x), words_from(np.random.default_rng(seed)))[:, 0]
        for seed, x in enumerate((0.0, 1.0))
    ]
    assert not any(broken(r * exact.step + exact.centre).any() for r in reports)
    for modulus in (2, 3, 8):
        shares = [np.bincount(r % modulus, minlength=modulus) / DRAWS for r in reports]
        np.testing.assert_allclose(shares[0], shares[1], atol=4.5 * math.sqrt(2 * 0.25 / DRAWS))
    telling = [np.mean(r < 0) for r in reports]  # the half-line that tells most, so that the test can fail
    allowed = math.exp(exact.epsilon0)
    assert telling[0] > 1.1 * telling[1]
    assert telling[0] <= allowed * telling[1] + 4.5 * math.sqrt((allowed + 1) ** 2 / 4 / DRAWS)


def test_directions():
    """PrivUnit along the first axis or along the second: the digits of the first coordinate of the direction."""
    mechanism, n, rng = PrivUnit(50, 1.0), 6000, np.random.default_rng(0)
    exact = on_a_grid(mechanism)
    floats, whole = [], []
    for axis in (0, 1):
        u = np.tile(np.eye(50)[axis], (n, 1))
        floats.append(np.mean(broken(mechanism.randomize(u, rng)[:, 0] * mechanism.mean_length)))
        z = exact.report(u, words_from(rng))
        direction = z[:, 0] / np.linalg.norm(z, axis=1)
        whole.append([np.mean(broken(direction)), *(np.mean(z[:, 0] % 4 == k) for k in range(4)), np.mean(z[:, 0] > 0)])
    assert floats[1] > math.e * floats[0] + 0.3
    first, second = np.array(whole)
    margin = 4.5 * math.sqrt((math.e + 1) ** 2 / 4 / n)
    for a, b in ((first, second), (second, first), (1 - first, 1 - second), (1 - second, 1 - first)):
        assert np.all(a <= math.e * b + margin)
    np.testing.assert_allclose(first[1:5], second[1:5], atol=4.5 * math.sqrt(2 * 0.25 / n))


def test_collect_draws_whole_numbers_unless_told_otherwise():
    protocol = Shuffle(graphs.complete(30), rounds=2, epsilon0=1.0)
    values = np.linspace(0, 1, 30)
    done = collect(protocol, NUMBERS[0], values, 0)
    assert done.run.view.reports.dtype == np.int64
    assert done.mechanism == on_a_grid(NUMBERS[0])
    assert done.draws == EXACT_DRAWS
    assert str(done).endswith(EXACT_DRAWS)
    fast = collect(protocol, NUMBERS[0], values, 0, floats=True)
    assert fast.run.view.reports.dtype == np.float64
    assert fast.draws == FLOAT_DRAWS
    assert "no guarantee holds" in str(fast)
    response = collect(protocol, RandomizedResponse(2, 1.0), [0, 1] * 15, 0, floats=True)  # whole numbers in any case
    assert response.draws == EXACT_DRAWS
    single = collect(protocol.replace(reporting="single"), NUMBERS[0], values, 0, null=0.5)
    assert single.run.view.reports.dtype == np.int64
    assert abs(single.estimate[0] - 0.5) < 2


def test_gaussian_and_directions_pass_the_check_of_the_protocol():
    protocol = Shuffle(graphs.complete(30), rounds=2, epsilon0=1.0, delta0=1e-6)
    assert collect(protocol, NUMBERS[1], np.linspace(0, 1, 30), 0).draws == EXACT_DRAWS
    assert collect(protocol, PrivUnit(3, 1.0), np.eye(3)[np.arange(30) % 3], 0).run.view.reports.shape == (30, 3)


def test_the_other_ways_to_collect():
    values = np.linspace(0, 1, 30)
    for protocol, run in (
        (FaultyShuffle(graphs.complete(30), rounds=2, epsilon0=1.0, outages=0.1), collect_with_faults),
        (RelayedShuffle(graphs.complete(30), rounds=2, epsilon0=1.0, cover=4), collect_relayed),
    ):
        assert run(protocol, NUMBERS[0], values, 0).draws == EXACT_DRAWS
        assert run(protocol, NUMBERS[0], values, 0).run.view.reports.dtype == np.int64
        assert run(protocol, NUMBERS[0], values, 0, floats=True).draws == FLOAT_DRAWS


def test_a_randomizer_of_ones_own_is_used_as_it_is():
    class Own(RandomizedResponse):
        report = None  # no draws in whole numbers

    own = Own(2, 1.0)
    assert which_draws(own, floats=False) == (own, OWN_DRAWS)


def test_a_stream_cipher_gives_the_same_report_every_time():
    """What a party of the real peers does: the same secret, place and data give the same bytes."""
    for mechanism, value in (
        (RandomizedResponse(5, 1.0), [3]),
        (on_a_grid(NUMBERS[0]), [0.3]),
        (on_a_grid(NUMBERS[1]), [0.3]),
        (on_a_grid(PrivUnit(4, 1.0)), [[0.0, 1.0, 0.0, 0.0]]),
    ):
        first, again, other = (
            mechanism.report(value, noise_words(b"s" * 32, place, b"data")).tobytes() for place in (b"1", b"1", b"2")
        )
        assert first == again
        assert first != other or isinstance(mechanism, RandomizedResponse)
