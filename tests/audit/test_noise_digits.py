"""The last digits of what is sent: attacks that break samplers in floating point, and break none of those that are deployed.

Proof: docs/proofs/audit.md#noise-tests.
"""

import hashlib

import numpy as np
import pytest

from netdp import graphs
from netdp.audit.noise import ZERO, float_leak, last_digit, on_lattice
from netdp.errors import InvalidValue
from netdp.families.gossip.protocol import gossip_start, gossip_step
from netdp.families.masked.protocol import contribution, opened, quantised
from netdp.families.token.ring import ring_contributions
from netdp.families.token.steps import visited, walk_values
from netdp.mechanisms import Gaussian, GridGaussian, GridLaplace, GridPrivUnit, Laplace, RandomizedResponse
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.peers.streams import Words
from netdp.privacy import GaussianCurve
from netdp.protocols import Gossip, MaskedSum, RingSum, WalkSum

DRAWS = 20_000


def words(name):
    return Words(hashlib.sha256(name.encode()).digest())


# ── samplers in floating point ────────────────────────────────────────────────────────────────────────────────────────


def naive_laplace(x, scale, seed):
    """x ± scale·log(u), u a multiple of 2⁻⁵³: what textbooks print."""
    rng = np.random.default_rng(seed)
    u = (rng.integers(0, 2**53, DRAWS) + 1) * 2.0**-53
    return x + np.where(rng.random(DRAWS) < 0.5, 1.0, -1.0) * (scale * np.log(u))


def naive_gaussian(x, scale, seed):
    """Box and Muller's transform of doubles."""
    rng = np.random.default_rng(seed)
    u, v = 1 - rng.random(DRAWS), rng.random(DRAWS)
    return x + scale * (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v))


@pytest.mark.parametrize("sampler", [naive_laplace, naive_gaussian])
@pytest.mark.parametrize("scale", [0.5, 1.0, 5.0])
def test_naive_samplers_give_the_value_away(sampler, scale):
    """{y·2⁵³ is no whole number} is seen with the value 0, and never with the value 1."""
    zero, one = sampler(0.0, scale, 1), sampler(1.0, scale, 2)
    beyond = [np.mean(np.ldexp(y, 53) != np.rint(np.ldexp(y, 53))) for y in (zero, one)]
    assert beyond[0] > 0.02
    assert beyond[1] == 0
    found = float_leak(zero, one)
    assert not found.ok
    assert "ε is at least" in found.words
    if scale >= 1:  # what the same noise in real numbers promises does not allow it
        promised = GaussianCurve(1 / scale) if sampler is naive_gaussian else Laplace(1.0, 1 / scale).curve
        assert not float_leak(zero, one, curve=promised).ok


def reachable(x, scale):
    """Mironov's attack: whether some u gives y, were the value x."""

    def looked_at(y):
        size = np.abs(y - x)
        guess = np.rint(np.exp(-size / scale) * 2.0**53)
        found = np.zeros(len(y), dtype=bool)
        for off in range(-16, 17):
            u = np.clip(guess + off, 1, 2.0**53) * 2.0**-53
            noise = scale * np.log(u)
            found |= (x + noise == y) | (x - noise == y)
        return found

    return looked_at


def test_which_doubles_can_come_out_depends_on_the_value():
    """Values with the same last digit, so that its place tells little: what no random number can have made tells them apart."""
    zero, one = naive_laplace(1.0, 1.0, 3), naive_laplace(1.5, 1.0, 4)
    can = reachable(1.0, 1.0)
    assert can(zero).mean() > 0.99
    assert can(one).mean() < 0.9
    told = float_leak(zero, one, also=can)
    assert not told.ok
    assert float_leak(naive_laplace(1.0, 1.0, 5), naive_laplace(1.0, 1.0, 6), also=can).ok  # the same value twice


@pytest.mark.parametrize("mechanism", [Laplace.interval(0.0, 1.0, 1.0), Gaussian.calibrated(1.0, 1e-6, centre=0.5)])
def test_the_simulators_own_float_draws_are_broken_as_they_say(mechanism):
    zero, one = (mechanism.randomize(np.full(DRAWS, x), np.random.default_rng(7))[:, 0] for x in (0.0, 1.0))
    assert not float_leak(zero, one).ok
    assert not on_lattice(zero, 2.0**-53).ok


def test_a_float_that_is_rounded_to_the_grid_after_the_noise_does_not_leak_its_digits():
    """Not that anybody should: but what is attacked here are digits, and there are none left."""
    zero, one = naive_laplace(0.0, 1.0, 8), naive_laplace(1.0, 1.0, 9)
    assert float_leak(np.rint(zero * 2**20) / 2**20, np.rint(one * 2**20) / 2**20).ok


# ── what is deployed, as it is sent ───────────────────────────────────────────────────────────────────────────────────

RING = graphs.ring(5)


def masked(x, name):
    p = MaskedSum(RING, sigma=0.5, dimension=DRAWS, grid=2.0**-10)
    noise = DiscreteGaussian(p.share).sample((DRAWS,), words(name))
    return contribution(p, quantised(p, np.full(DRAWS, x)), noise, words(name + " pads")(DRAWS)), p.step


def masked_total(x, name):
    """The sum once the pads are gone."""
    p = MaskedSum(RING, sigma=0.5, dimension=DRAWS, grid=2.0**-10)
    noise = DiscreteGaussian(p.share).sample((DRAWS,), words(name))
    nothing = np.zeros(DRAWS, dtype=np.uint64)
    return opened(contribution(p, quantised(p, np.full(DRAWS, x)), noise, nothing), p.q), p.step


def token(x, name):
    p = RingSum(5, 1, sigma=1.0, grid=2.0**-8, dimension=DRAWS)
    stream = words(name)
    drawn = ring_contributions(
        p, 0, np.full(DRAWS, x), lambda variance, size: DiscreteGaussian(variance).sample((size,), stream)
    )
    return drawn[0], p.step


def walking(x, name):
    p = WalkSum(5, 20, sigma=1.0, grid=2.0**-8)
    nothing, value = np.zeros(DRAWS, dtype=np.int64), walk_values(p, np.full(DRAWS, x))
    return visited(nothing, value, DiscreteGaussian(p.variance).sample((DRAWS,), words(name))), p.step


def state(x, name):
    """A neighbour's state after a round, rounded as it is mixed."""
    p = Gossip(RING, 3, sigma=1.0, refresh=0.1, grid=2.0**-30, dimension=DRAWS)
    stream = words(name)
    sent = [
        gossip_start(p, np.full(DRAWS, value), lambda v, size: FineGaussian(v).sample((size,), stream))
        for value in (x, 0.0, 0.0)
    ]
    return gossip_step({0: 3, 2: 3}, sent[1], {0: sent[0], 2: sent[2]}), p.step


def laplace_report(x, name):
    mechanism = GridLaplace(1.0, 1.0)
    return mechanism.report(np.full(DRAWS, x - 0.5), words(name))[:, 0], mechanism.step


def gaussian_report(x, name):
    mechanism = GridGaussian.calibrated(1.0, 1e-6)
    return mechanism.report(np.full(DRAWS, x - 0.5), words(name))[:, 0], mechanism.step


SENT = [masked, masked_total, token, walking, state, laplace_report, gaussian_report]


@pytest.mark.parametrize("sends", SENT, ids=lambda f: f.__name__)
def test_nothing_that_is_deployed_leaks_through_its_last_digits(sends):
    (zero, step), (one, _) = sends(0.0, "zero"), sends(1.0, "one")
    assert zero.dtype.kind in "iu"
    assert on_lattice(zero).ok
    assert float_leak(zero, one).ok
    as_floats = [part.astype(np.int64) * step for part in (zero, one)]  # in the units of the values
    assert on_lattice(as_floats[0], step).ok
    assert float_leak(*as_floats).ok


def test_a_step_of_rounding_that_is_forgotten_shows():
    """The value is not put on the grid before noise in whole steps is added: a fraction of a step stays, and tells it."""
    noise = DiscreteGaussian(2**16).sample((2, DRAWS), words("forgotten")) * 2.0**-8
    zero, one = noise[0] + 0.0, noise[1] + 0.3
    assert not float_leak(zero, one).ok
    assert not on_lattice(one, 2.0**-8).ok


def test_a_value_that_is_put_on_a_coarser_grid_than_the_noise_does_not_show_but_a_coarser_noise_does():
    drawn = DiscreteGaussian(2**16).sample((2, DRAWS), words("coarse"))
    assert float_leak(drawn[0], drawn[1] + 32).ok
    even = drawn // 2 * 2
    assert not float_leak(even[0], even[1] + 1).ok


def test_coarse_grids_are_judged_by_what_is_promised():
    """With a deviation of one step the last digit is the number itself: it tells, and it may, as much as the curve says."""
    drawn = DiscreteGaussian(1).sample((2, DRAWS), words("one step"))
    assert float_leak(drawn[0], drawn[1] + 1).ok  # no digit lies below the noise
    assert float_leak(drawn[0], drawn[1] + 1, curve=GaussianCurve(1.2)).ok
    assert not float_leak(drawn[0], drawn[1] + 1, curve=GaussianCurve(0.1)).ok
    answers = RandomizedResponse(2, 1.0)
    zero, one = (answers.report(np.full(DRAWS, x), words(f"label {x}")) for x in (0, 1))
    assert float_leak(zero, one, curve=answers.curve).ok
    assert not float_leak(zero, one, curve=RandomizedResponse(2, 0.5).curve).ok


def test_directions_do_not_leak():
    mechanism = GridPrivUnit(5, 2.0)
    reports = [mechanism.report(np.tile(np.eye(5)[axis], (DRAWS // 4, 1)), words(f"axis {axis}")) for axis in (0, 1)]
    assert on_lattice(reports[0]).ok
    assert float_leak(reports[0][:, 0], reports[1][:, 0]).ok
    assert float_leak(reports[0][:, 2], reports[1][:, 2]).ok


# ── the pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_place_of_the_last_digit():
    assert last_digit([1.0, 0.5, 0.1, -3.0, 0.0, 5e-324, 2.0**60]).tolist() == [0, -1, -55, 0, ZERO, -1074, 60]
    assert last_digit(np.array([1, 6, -8, 0, -(2**63)])).tolist() == [0, 1, 3, ZERO, 63]
    assert last_digit(np.array([2**63], dtype=np.uint64)).tolist() == [63]
    for bad in ([np.nan], [np.inf], ["a"]):
        with pytest.raises(InvalidValue):
            last_digit(bad)


def test_numbers_off_the_grid_are_found():
    grid = np.arange(-50, 50) * 2.0**-20
    assert on_lattice(grid, 2.0**-20).ok
    assert not on_lattice(grid + 2.0**-21, 2.0**-20).ok
    assert not on_lattice(np.nextafter(grid, 1), 2.0**-20).ok
    assert not on_lattice([np.inf], 1.0).ok
    assert not on_lattice([np.nan], 1.0).ok
    assert "such as" in on_lattice([0.5, 1.0]).words
    with pytest.raises(InvalidValue, match="power of two"):
        on_lattice([0.1], 0.1)
    with pytest.raises(InvalidValue, match="numbers"):
        on_lattice(["a"])


def test_few_or_unequal_numbers_are_refused():
    with pytest.raises(InvalidValue, match="equally many"):
        float_leak(np.zeros(1000), np.zeros(999))
    with pytest.raises(InvalidValue, match="400 or more"):
        float_leak(np.zeros(100), np.zeros(100))
