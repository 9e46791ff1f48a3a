"""Deployed samplers draw what they state: laws summed from their definitions, words of the cipher that peers use, planted bugs.

A sound sampler does not pass with a probability of 10⁻⁹; keys and seeds are fixed, so that a test that passes once always does.
Proof: docs/proofs/audit.md#noise-tests.
"""

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from netdp import graphs
from netdp.audit import samples as chances
from netdp.audit.noise import noise_checks, noises, on_lattice
from netdp.audit.samples import finite_law, fits, gaussian_law, independent, laplace_law
from netdp.errors import InvalidValue
from netdp.families.masked.peer import coins
from netdp.families.shuffle.reports import below
from netdp.mechanisms import GridGaussian, GridLaplace, GridPrivUnit, RandomizedResponse, UnaryEncoding
from netdp.mechanisms.coins import ALL, flips, one_of, with_share
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.mechanisms.laplace import DiscreteLaplace
from netdp.peers.kinds import RUNNING
from netdp.peers.streams import Words
from netdp.protocols import (
    Gossip,
    GossipDescent,
    GraphWalkSum,
    Local,
    MaskedDescent,
    MaskedSum,
    PathSum,
    RandomizedGossip,
    RingHistogram,
    RingSum,
    Shuffle,
    WalkDescent,
    WalkHistogram,
    WalkSum,
)

DRAWS = 60_000
MANY = 200_000


def words(name="standing"):
    """The words of the cipher under a key that follows from a name."""
    return Words(hashlib.sha256(name.encode()).digest())


def as_claimed(sample, law):
    """Both checks, and what they say if they do not pass."""
    found = [fits(sample, law), independent(sample, law)]
    assert [check.words for check in found if not check.ok] == []


def caught(sample, law):
    return not fits(sample, law).ok


# ── how surprising counts are ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("shares", "n"), [([0.5, 0.5], 40), ([0.9, 0.1], 40), ([0.2, 0.3, 0.5], 24), ([0.05, 0.05, 0.9], 24)]
)
def test_the_chance_of_counts_is_never_below_the_true_one(shares, n):
    """All counts there are, enumerated: the probability of being as far off is at most what the bound says."""
    every = [
        (*head, n - sum(head)) for head in itertools.product(range(n + 1), repeat=len(shares) - 1) if sum(head) <= n
    ]
    mass = stats.multinomial(n, shares).pmf(every)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.array(every) * np.log(np.array(every) / (n * np.array(shares)))
    far = np.nan_to_num(parts).sum(axis=1)
    order = np.argsort(-far)
    true = np.empty(len(every))
    true[order] = np.cumsum(mass[order])
    for k in range(0, len(every), 7):
        tied = mass[np.isclose(far, far[k], rtol=1e-9)].sum()
        assert chances.of_counts(every[k], shares) >= (true[k] - tied) * (1 - 1e-9)
    assert min(chances.of_counts(one, shares) for one in every) < 1e-5  # and it says something


def test_the_chance_of_even_counts_is_never_below_the_true_one():
    n, p = 2000, 0.4
    counts = np.arange(n + 1)
    square = (counts - n * p) ** 2 / (n * p * (1 - p))
    mass = stats.binom.pmf(counts, n, p)
    for k in range(790, 811):
        assert chances.of_evenness([k, n - k], [p, 1 - p]) >= mass[square <= square[k] * (1 + 1e-12)].sum()
    assert chances.of_evenness([800, 1200], [p, 1 - p]) < 0.1  # not a draw off: once in fifty times
    assert chances.of_evenness([4, 6], [p, 1 - p]) == 1
    three = np.array([(a, b, 1800 - a - b) for a in range(560, 641) for b in range(560, 641)])
    square = ((three - 600) ** 2 / 600).sum(axis=1)
    mass = stats.multinomial(1800, [1 / 3] * 3).pmf(three)
    for limit in (0.0, 0.01, 0.05, 0.2, 0.5):
        at = int(np.argmax(np.where(square <= limit, square, -1.0)))
        assert chances.of_evenness(three[at], [1 / 3] * 3) >= mass[square <= square[at]].sum()


def test_single_counts_have_their_binomial_chance():
    for n, p in ((50, 0.3), (4000, 0.002)):
        k = np.arange(0, n + 1, max(1, n // 50))
        exact = np.minimum(1, 2 * np.minimum(stats.binom.cdf(k, n, p), stats.binom.sf(k - 1, n, p)))
        np.testing.assert_allclose(chances.of_each(k, n, p), exact, rtol=1e-8, atol=1e-280)


def test_the_chance_of_a_sum_is_never_below_the_true_one_and_near_it():
    n = 400
    for k in (150, 180, 200, 230, 260):
        true = stats.binom.cdf(min(k, n - k), n, 0.5) * 2
        found = chances.of_sum(2 * k / n - 1, n, [-1.0, 1.0], [0.5, 0.5])
        assert found >= min(true, 1.0)
        assert found <= 40 * true
    assert chances.of_sum(1.5, n, [-1.0, 1.0], [0.5, 0.5]) == 0


def test_counts_without_shares_are_refused():
    with pytest.raises(InvalidValue, match="3 counts and 2 shares"):
        chances.of_counts([1, 2, 3], [0.5, 0.5])


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variance", [1, 9, 12_345, 10**9, 2**80])
def test_laws_have_the_moments_that_theory_gives(variance):
    law = gaussian_law(variance)
    exact = variance if variance > 8 else sum(k * k * math.exp(-k * k / 2 / variance) for k in range(-40, 41)) / sum(
        math.exp(-k * k / 2 / variance) for k in range(-40, 41)
    )  # fmt: skip
    # a bin is taken for its middle, which adds to the variance as rounding does
    assert law.deviation**2 - (law.width**2 - 1) / 12 == pytest.approx(exact, rel=1e-9)
    assert law.shares.sum() == pytest.approx(1, abs=1e-12)
    assert law.remainders(3).sum() == pytest.approx(1, abs=1e-12)


def test_bins_hold_what_their_whole_numbers_hold():
    """The Gauss sum over a bin against the sum over its numbers."""
    for law, mass in (
        (gaussian_law(10**8), lambda x: np.exp(-(x**2) / 2e8)),
        (laplace_law(Fraction(1, 5000)), lambda x: np.exp(-np.abs(x) / 5000)),
    ):
        w = law.width
        assert w > 1
        for place in (0, len(law.shares) // 2 - 1, len(law.shares) // 2, len(law.shares) // 2 + 3000):
            inside = mass(np.arange((law.first + place) * w, (law.first + place + 1) * w, dtype=np.float64)).sum()
            other = mass(np.arange(0, w, dtype=np.float64)).sum()
            assert law.shares[place] / law.shares[-law.first] == pytest.approx(inside / other, rel=1e-10)


# ── every deployed sampler ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variance", [1, 2, 9, 262_144, 2**40])
def test_discrete_gaussian_is_as_claimed(variance):
    as_claimed(DiscreteGaussian(variance).sample((DRAWS,), words()), gaussian_law(variance))


@pytest.mark.parametrize("variance", [1, 5, 2**60, 2**116])
def test_fine_gaussian_is_as_claimed(variance):
    as_claimed(FineGaussian(variance).sample((DRAWS,), words()), gaussian_law(variance))


@pytest.mark.parametrize("rate", [Fraction(5, 2), Fraction(1, 3), Fraction(1, 2**20), Fraction(1, 2**52)], ids=float)
def test_discrete_laplace_is_as_claimed(rate):
    as_claimed(DiscreteLaplace(rate).sample((DRAWS,), words()), laplace_law(rate))


def test_draws_one_at_a_time_are_as_claimed():
    """As a peer makes them: a few numbers from a key of their own, by other lines of the sampler than many at once."""
    drawn = [DiscreteGaussian(40).sample((4,), words(f"{i}")) for i in range(1000)]
    as_claimed(np.concatenate(drawn), gaussian_law(40))


def test_reports_of_numbers_are_as_claimed():
    laplace = GridLaplace(2.0, 1.0)
    as_claimed(laplace.report(np.zeros(DRAWS), words())[:, 0], laplace_law(Fraction(1, 2**20)))
    gaussian = GridGaussian.calibrated(1.0, 1e-6)
    far = gaussian.report(np.full(DRAWS, 0.5), words())[:, 0] - gaussian.quantised([0.5])[0, 0]
    as_claimed(far, gaussian_law(math.ceil((Fraction(gaussian.sigma) * gaussian.steps) ** 2)))


def test_answers_are_as_claimed():
    response = RandomizedResponse(5, 1.5)
    e = math.exp(1.5)
    as_claimed(
        response.report(np.full(DRAWS, 2), words()), finite_law([1 / (e + 4)] * 2 + [e / (e + 4)] + [1 / (e + 4)] * 2)
    )
    for encoding, keep, gain in (
        ("optimised", 0.5, 1 / (e + 1)),
        ("symmetric", math.sqrt(e) / (math.sqrt(e) + 1), 1 / (math.sqrt(e) + 1)),
    ):
        bits = UnaryEncoding(3, 1.5, encoding).report(np.full(DRAWS, 1), words())
        shares = [
            math.prod(p if bit else 1 - p for p, bit in zip((gain, keep, gain), number, strict=True))
            for number in itertools.product((0, 1), repeat=3)
        ]
        as_claimed(bits @ [4, 2, 1], finite_law(shares))


def test_directions_are_as_claimed():
    """On the cap as often as stated, exactly; across it all signs alike, and last digits uniform."""
    mechanism = GridPrivUnit(6, 2.0)
    u = np.tile(np.eye(6)[0], (DRAWS // 3, 1))
    z = mechanism.report(u, words())
    assert on_lattice(z).ok
    on = mechanism.on_cap(z, mechanism.directions(u)).astype(np.int64)
    as_claimed(on, finite_law([mechanism.flips / ALL, 1 - mechanism.flips / ALL]))
    for axis in (1, 5):
        as_claimed((z[:, axis] > 0).astype(np.int64), finite_law([0.5, 0.5]))
        as_claimed(z[:, axis] % 16, finite_law([1 / 16] * 16))
    assert (np.linalg.norm(z.astype(np.float64), axis=1) >= mechanism.shortest).all()


def test_coins_and_choices_are_as_claimed():
    share = ALL // 7
    as_claimed(with_share(share, DRAWS, words()).astype(np.int64), finite_law([1 - share / ALL, share / ALL]))
    as_claimed(one_of(7, DRAWS, words()), finite_law([1 / 7] * 7))
    exponents = np.full(DRAWS, 0.3)
    heads = flips(exponents, lambda i: (3, 10), words()).astype(np.int64)
    as_claimed(heads, finite_law([1 - math.exp(-0.3), math.exp(-0.3)]))
    stream = words()
    as_claimed(np.array([below(stream, 5) for _ in range(4000)]), finite_law([0.2] * 5))
    as_claimed(coins(words(), DRAWS, 2**30).astype(np.int64), finite_law([0.75, 0.25]))


def test_words_of_the_cipher_are_uniform():
    """First bits, last bits, whole bytes, and one word after the other."""
    drawn = words()(MANY)
    for part in (drawn >> np.uint64(58), drawn & np.uint64(63), (drawn >> np.uint64(30)) & np.uint64(63)):
        as_claimed(part.astype(np.int64), finite_law([1 / 64] * 64))
    assert chances.of_counts(np.bincount(drawn.view(np.uint8), minlength=256), [1 / 256] * 256) > 1e-9
    whole_range = (drawn >> np.uint64(2)).astype(np.int64)
    assert fits(whole_range >> 44, finite_law([2.0**-18] * 2**18)).ok


# ── bugs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sound():
    return DiscreteGaussian(2500).sample((MANY,), words())


LAW = gaussian_law(2500)


def test_the_sound_sample_passes(sound):
    as_claimed(sound, LAW)


def test_half_the_deviation_is_caught():
    assert caught(DiscreteGaussian(625).sample((5000,), words()), LAW)


def test_three_hundredths_less_variance_are_caught():
    assert caught(DiscreteGaussian(2425).sample((MANY,), words()), LAW)


def test_a_tail_cut_off_at_three_deviations_is_caught(sound):
    assert caught(sound[np.abs(sound) <= 150], LAW)
    assert caught(np.where(np.abs(sound) <= 150, sound, 0), LAW)


def test_a_bias_of_a_fiftieth_of_a_deviation_is_caught(sound):
    assert caught(np.concatenate([sound, DiscreteGaussian(2500).sample((MANY,), words("more"))]) + 1, LAW)


def test_a_zero_that_has_two_signs_is_caught():
    """The classical mistake of the sampler: −0 is not drawn anew, so that 0 comes twice as often."""
    drawn = DiscreteGaussian(25).sample((MANY,), words())
    zero = np.flatnonzero(drawn == 0)
    assert caught(np.concatenate([drawn, np.zeros(len(zero), dtype=np.int64)]), gaussian_law(25))


def test_a_rounded_float_gaussian_is_caught_on_coarse_and_on_very_fine_grids():
    rng = np.random.default_rng(0)
    assert caught(np.rint(rng.normal(0, math.sqrt(2), MANY)).astype(np.int64), gaussian_law(2))
    assert caught(np.rint(rng.normal(0, 2.0**58, 20_000)).astype(np.int64), gaussian_law(2**116))
    # in between no sample of this size tells, and the check does not pretend to: the source of the code does
    assert not caught(np.rint(rng.normal(0, 512, MANY)).astype(np.int64), gaussian_law(512**2))


def test_noise_of_another_kind_with_the_right_variance_is_caught():
    laplace = DiscreteLaplace(Fraction(141421, 5_000_000)).sample((MANY,), words())
    assert laplace.std() == pytest.approx(50, rel=0.02)
    assert caught(laplace, LAW)


def test_last_digits_that_are_always_even_are_caught(sound):
    assert caught(sound // 2 * 2, LAW)


def test_counts_that_are_too_even_are_caught():
    """Numbers dealt out instead of drawn: every cell has exactly its share."""
    counts = np.rint(MANY * LAW.shares).astype(np.int64)
    dealt = np.repeat(LAW.first + np.arange(len(counts)), counts)
    assert caught(np.random.default_rng(0).permutation(dealt), LAW)


def test_a_number_beyond_all_bounds_is_caught(sound):
    assert "5000 was drawn" in fits(np.append(sound, 5000), LAW).words
    assert not independent(np.append(sound, 5000), LAW).ok


@pytest.mark.parametrize("lag", [1, 2, 3, 7])
def test_draws_that_hang_together_are_caught(sound, lag):
    assert not independent(np.where(np.arange(MANY) % (2 * lag) < lag, sound, np.roll(sound, lag)), LAW).ok
    sign = np.where(np.arange(MANY) % (2 * lag) < lag, 1, -1)
    assert not independent(sign * np.where(sign > 0, sound, np.roll(sound, lag)), LAW).ok  # antithetic draws


def test_sizes_that_hang_together_are_caught(sound):
    """Signs are drawn apart, sizes are not."""
    assert not independent(np.abs(np.repeat(sound, 2)) * np.sign(np.roll(np.repeat(sound, 2), 1000)), LAW).ok


def test_a_slight_correlation_is_caught():
    rng = np.random.default_rng(1)
    z = rng.standard_normal(MANY)
    z[1:] += 0.05 * z[:-1]
    assert not independent(np.rint(50 * z / np.hypot(1, 0.05)).astype(np.int64), LAW).ok


def test_samples_that_are_no_whole_numbers_are_refused():
    with pytest.raises(InvalidValue, match="whole numbers"):
        fits([0.5, 1.0], LAW)
    with pytest.raises(InvalidValue, match="doubt"):
        fits([1, 2], LAW, doubt=0.0)


# ── the noise of a protocol ───────────────────────────────────────────────────────────────────────────────────────────

RING = graphs.ring(8)
PROTOCOLS = [
    MaskedSum(RING, sigma=0.5),
    MaskedSum(RING, sigma=3.0, grid=1.0, unit="record"),
    MaskedDescent(RING, 5, sigma=2.0, step=0.5, grid=0.25, dimension=2),
    RingSum(8, 2, sigma=2.0, grid=2.0**-10, noise="distributed"),
    RingSum(8, 2, sigma=2.0, grid=0.5),
    WalkSum(8, 64, sigma=2.0, grid=2.0**-8),
    GraphWalkSum(RING, 64, sigma=2.0, grid=2.0**-8),
    PathSum(4, [[0, 1, 0, 3]], sigma=2.0, grid=0.25),
    Gossip(RING, 5, sigma=2.0, refresh=0.1, grid=2.0**-40),
    RandomizedGossip(RING, 50, sigma=2.0, refresh=0.1, grid=2.0**-30),
    RingHistogram(8, 1, domain=5, gamma=0.5),
    WalkHistogram(8, 64, domain=5, gamma=0.3, response="unary"),
    Shuffle(graphs.complete(8), 3, 1.0),
    GossipDescent(RING, 3, 2, sigma=1.0, step=0.5, clip=0.5, refresh=0.5, grid=2.0**-30, dimension=2),
    WalkDescent(RING, 16, sigma=1.0, step=0.5, clip=0.5, closing=1.0, grid=2.0**-30, dimension=2),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: f"{type(p).__name__}")
def test_the_noise_of_a_protocol_is_as_claimed(protocol):
    found = noise_checks(protocol, draws=20_000)
    assert len(found) >= 2
    assert [check.words for check in found if not check.ok] == []
    assert found == noise_checks(protocol, draws=20_000)


def test_the_words_of_a_cipher_may_be_put_in():
    assert all(check.ok for check in noise_checks(PROTOCOLS[0], draws=20_000, words=words()))


@pytest.mark.parametrize(
    "protocol",
    [Gossip(RING, 5, sigma=2.0), RingSum(8, 2, sigma=1.0), WalkSum(8, 64, sigma=1.0), Local(5, sigma=1.0),
     GossipDescent(RING, 3, 2, sigma=1.0, step=0.1), Shuffle(graphs.complete(8), 3, 1.0, delta0=1e-6)],
    ids=lambda p: type(p).__name__,
)  # fmt: skip
def test_protocols_in_real_numbers_say_so(protocol):
    (found,) = noise_checks(protocol)
    assert found.ok
    assert "no deployed sampler is involved" in found.words


def test_every_kind_that_peers_run_has_its_noise_looked_at():
    kinds = {type(protocol).kind for protocol in PROTOCOLS}
    assert set(RUNNING) <= kinds
    assert all(noises.handles(protocol) for protocol in PROTOCOLS)


def sampling(monkeypatch, sampler, change):
    """Let a sampler draw something else."""
    inner = sampler.sample
    monkeypatch.setattr(sampler, "sample", lambda self, shape, words: change(self, inner, shape, words))


@pytest.mark.parametrize(("protocol", "sampler"), [(PROTOCOLS[0], DiscreteGaussian), (PROTOCOLS[8], FineGaussian)])
def test_bugs_in_a_sampler_show_in_the_audit_of_a_protocol(monkeypatch, protocol, sampler):
    def halved(self, inner, shape, words):
        return inner(self, shape, words) // 2

    def cut(self, inner, shape, words):
        drawn = inner(self, shape, words)
        return np.clip(drawn, -3 * math.isqrt(self.variance), 3 * math.isqrt(self.variance))

    def repeated(self, inner, shape, words):
        return np.repeat(inner(self, (shape[0] // 2,), words), 2)

    def floats(self, inner, shape, words):
        return inner(self, shape, words) * 0.5

    for bug in (halved, cut, repeated, floats):
        with monkeypatch.context() as planted:
            sampling(planted, sampler, bug)
            assert not all(check.ok for check in noise_checks(protocol, draws=60_000)), bug.__name__
    assert all(check.ok for check in noise_checks(protocol, draws=20_000))


@pytest.mark.parametrize(
    ("kind", "name", "protocol"),
    [
        (MaskedSum, "share", MaskedSum(RING, sigma=2.0)),
        (RingSum, "closing_variance", RingSum(8, 2, sigma=2.0, grid=0.25)),
        (Gossip, "fresh_variance", PROTOCOLS[8]),
        (WalkSum, "variance", PROTOCOLS[5]),
    ],
)
def test_a_protocol_that_hands_too_little_noise_to_its_sampler_is_caught(monkeypatch, kind, name, protocol):
    """How much there should be is computed from σ and the grid, not taken from what the sampler is given."""
    value = getattr(protocol, name)
    monkeypatch.setattr(kind, name, property(lambda self: value // 4))
    assert not all(check.ok for check in noise_checks(protocol, draws=20_000))
