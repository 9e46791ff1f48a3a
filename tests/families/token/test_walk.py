"""The certified loss of walks on the complete graph: exact views of tiny walks, orientation, order, published bounds.

Proof: docs/proofs/token.md#secret-walk.
"""

import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

import netdp
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account import walk
from netdp.families.token.account.events import Event, Shift, compose_events, single_steps
from netdp.privacy import gaussian_delta, gaussian_epsilon
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

DELTA = 1e-6
SIGMA = math.sqrt(2 * math.log(1.25e8)) / 0.1
EPS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
ROUNDING = 1e-13  # of the sums of cells
SENDERS = ("hidden", "receiver-known", "known")
RELEASES = ("anonymous", "named")


def sum_views(n, steps, colluders, sigma, sender, release="anonymous", decay=1.0):
    """Exact views for the others anywhere in {0, 1/2, 1}, u between any two of these; mirror images left out."""
    for others in itertools.combinations_with_replacement((0.0, 0.5, 1.0), n - colluders - 1):
        for own, other in ((0.0, 1.0), (0.0, 0.5), (0.5, 0.0)):
            stretch = brute.sum_stretch(others, own, other, sigma, decay)
            yield brute.whole_view(steps, colluders / n, stretch, sender, release)


def largest(views):
    return np.max([brute.delta(view, EPS) for view in views], axis=0)


def covers(curve, truth):
    return bool(np.all(truth <= np.asarray(curve.delta(EPS)) + ROUNDING))


# ---- exact views: sums


@pytest.mark.parametrize(("n", "steps", "colluders"), [(3, 5, 1), (4, 4, 1), (4, 4, 2)])
@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_sums_are_covered(n, steps, colluders, sender, release, sigma):
    truth = largest(sum_views(n, steps, colluders, sigma, sender, release))
    p = WalkSum(n, steps, sigma, sender=sender, release=release)
    for bound in walk.sum_bounds(p, colluders):
        assert covers(bound(), truth), bound.__name__
    assert covers(netdp.account(p, list(range(colluders))).curve.curves, truth)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_longer_walks_in_blocks_are_covered(release, sigma):
    """40 steps: secret blocks of four and their ending come first among the bounds, and openings where ends are known."""
    n, steps = 14, 40
    for sender in SENDERS:
        p = WalkSum(n, steps, sigma, sender=sender, release=release)
        stretch = brute.equal_others(0.0, 1.0, 0.0, 1 / (n - 1), sigma)
        truth = brute.long_walk_delta(steps, 1 / n, stretch, sender, release, EPS)
        bounds = walk.sum_bounds(p)
        names = [bound.__name__ for bound in bounds]
        assert names[0] == ("in_blocks" if sender == "hidden" else "opened")
        assert sender == "hidden" or "in_pieces" in names
        for bound in bounds:
            assert covers(bound(), truth), bound


def test_knowing_more_costs_more():
    """Certified and true losses alike: nothing known, the receiver, both ends; an anonymous release, a named one."""
    n, steps, sigma = 3, 5, 1.0
    kinds = [("hidden", "anonymous"), ("hidden", "named"), ("receiver-known", "named"), ("known", "named")]
    certified = [
        netdp.account(WalkSum(n, steps, sigma, sender=s, release=r), [0]).curve.curves.delta(EPS) for s, r in kinds
    ]
    true = [largest(sum_views(n, steps, 1, sigma, s, r)) for s, r in kinds]
    for less, more in itertools.pairwise(certified):
        assert np.all(less <= more * (1 + 1e-9))
    for less, more in itertools.pairwise(true):
        assert np.all(less <= more * 1.01 + ROUNDING)
        assert more[4] > 1.05 * less[4]
    for p in (WalkSum(40, 160, 2.0), WalkDescent(100, 300, 1.0, step=0.1, clip=0.4)):
        losses = [eps_of(p.replace(sender=s, release=r)) for s, r in kinds]
        assert losses[0] < losses[1] < losses[2] < losses[3]


def test_a_known_receiver_breaks_what_is_certified_for_hidden_ones():
    """n = 40, T = 400, all others at one end: δ(2) = 3·10⁻⁵ where 10⁻⁵ is certified if nothing is known."""
    n, steps, sigma = 40, 400, 1.4226
    stretch = brute.equal_others(0.0, 1.0, 0.0, 1 / (n - 1), sigma)
    true = {
        sender: float(brute.long_walk_delta(steps, 1 / n, stretch, sender, "anonymous", 2.0, cells=1 << 12)[0])
        for sender in ("hidden", "receiver-known")
    }
    certified = {
        sender: float(netdp.account(WalkSum(n, steps, sigma, sender=sender), [0]).curve.curves.delta(2.0))
        for sender in SENDERS
    }
    assert true["receiver-known"] == pytest.approx(3.1e-5, rel=0.05)
    assert true["hidden"] < certified["hidden"] < 1e-5 < true["receiver-known"]
    assert true["receiver-known"] < certified["receiver-known"] < certified["known"]


def test_a_named_release_of_a_sum_breaks_what_is_certified_for_an_anonymous_one():
    """An observer among the last holders, then u, who publishes: n = T = 100, σ = Δ."""
    n, eps = 100, np.array([1.0, 2.0])
    p = WalkSum(n, n, 1.0, sender="hidden")
    stretch = brute.equal_others(0.0, 1.0, 0.0, 1 / (n - 1), 1.0)
    true = {r: brute.long_walk_delta(n, 1 / n, stretch, "hidden", r, eps) for r in RELEASES}
    anonymous, named = (walk.sum_bounds(p.replace(release=r))[0]() for r in RELEASES)
    assert walk.sum_bounds(p)[0].__name__ == "in_blocks"
    assert np.all(true["anonymous"] <= anonymous.delta(eps))
    assert np.all(true["named"] > 2 * np.asarray(anonymous.delta(eps)))
    assert np.all(true["named"] <= named.delta(eps))


def test_others_outside_the_public_set_break_the_bound():
    """u between ±1/2 as promised, all others at −30: which steps are u's is plain, and δ is 100 times the certified one."""
    n, steps, sigma = 30, 150, 2.183
    loss = netdp.account(WalkSum(n, steps, sigma, sender="hidden"), [0])
    certified = float(loss.curve.curves.delta(1.0))
    assert certified == pytest.approx(1e-6, rel=0.05)

    def true(others):
        stretch = brute.equal_others(others, 0.5, -0.5, 1 / (n - 1), sigma)
        return float(brute.long_walk_delta(steps, 1 / n, stretch, "hidden", "anonymous", 1.0, cells=1 << 12)[0])

    assert true(-0.5) < certified
    assert true(-30.0) > 90 * certified
    assert (
        "the values of all users at one step, whatever their data, lie in one public set of diameter 1"
        in loss.assumptions[0]
    )


@pytest.mark.parametrize(("sender", "factor"), [("hidden", 1.1), ("receiver-known", 1.6), ("known", 1.6)])
def test_sums_with_strong_noise_are_nearly_exact(sender, factor):
    """σ = 3, δ = 10⁻³: within a tenth of the truth if the path is secret; known senders, of few users, cost more."""
    certified = netdp.account(WalkSum(3, 5, 3.0, sender=sender), [0]).worst_epsilon(1e-3)
    exact = max(brute.epsilon(view, 1e-3) for view in sum_views(3, 5, 1, 3.0, sender))
    assert exact <= certified <= factor * exact


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_zeroed_values_are_covered(sender, sigma):
    """Values in [−1/2, 1/2] against 0, both ways."""
    n, steps = 4, 4
    p = WalkSum(n, steps, sigma, sender=sender)
    release = p.release
    truth = largest(
        brute.whole_view(steps, 1 / n, brute.sum_stretch(others, own, other, sigma), sender, release)
        for others in itertools.combinations_with_replacement((-0.5, 0.0, 0.5), n - 2)
        for own, other in ((0.0, 0.5), (0.5, 0.0))
    )
    for bound in walk.sum_bounds(p, 1, "zero-out"):
        assert covers(bound(), truth), bound.__name__
    # and is no bound under replacement: twice the shift
    replaced = largest([brute.whole_view(steps, 1 / n, brute.sum_stretch([-0.5] * 2, 0.5, -0.5, sigma))])
    if sender == "hidden":
        assert replaced[0] > 1.5 * truth[0]


@pytest.mark.parametrize(("n", "steps", "most"), [(3, 3, 1), (3, 6, 2), (3, 7, 3), (4, 6, 1), (5, 6, 2)])
def test_a_limit_on_contributions_is_covered(n, steps, most):
    """The path told, u's first visits only: the mean of Gaussian profiles over all paths (observer, u, anybody else)."""
    chances = (1 / n, 1 / n, (n - 2) / n)
    energies = {}
    for path in itertools.product(range(3), repeat=steps):
        used, k, length, energy = 0, 0, 0, 0.0
        for who in (*path, 0):
            if who == 0:
                energy += k**2 / length if length else 0.0
                k = length = 0
            else:
                length += 1
                if who == 1 and used < most:
                    used, k = used + 1, k + 1
        energies[energy] = energies.get(energy, 0.0) + math.prod(chances[who] for who in path)
    mus, weights = np.sqrt(list(energies)), np.array(list(energies.values()))
    for sigma in (0.5, 1.0, 3.0):
        truth = np.array([float(np.asarray(gaussian_delta(mus / sigma, e)) @ weights) for e in EPS])
        for bound in walk.sum_bounds(WalkSum(n, steps, sigma, contributions=most)):
            assert covers(bound(), truth), bound.__name__


# ---- exact views: descent


@pytest.mark.parametrize("decay", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_descent_is_covered(decay, sender, release, sigma):
    """Constant gradients, θ ← θ/2 + ηg_u, θ ← ηg_u: none of these expands; gradients 2L = 1 apart. In units of η."""
    n, steps = 3, 4
    truth = largest(sum_views(n, steps, 1, sigma, sender, release, decay))
    p = WalkDescent(n, steps, sigma, step=0.1, clip=0.5, sender=sender, release=release)
    names = [bound.__name__ for bound in walk.descent_bounds(p)]
    assert names[-2:] == ["gaps", "local"]
    assert set(names[:-2]) == {"secret"}  # its own first, then those of channels that show more
    for bound in walk.descent_bounds(p):
        assert covers(bound(), truth), bound.__name__
    assert covers(netdp.account(p, [0]).curve.curves, truth)


def test_descent_of_four_users_with_two_colluders_is_covered():
    for sender in SENDERS:
        truth = largest(sum_views(4, 4, 2, 1.0, sender, "named", 0.5))
        for bound in walk.descent_bounds(WalkDescent(4, 4, 1.0, step=0.1, clip=0.5, sender=sender, release="named"), 2):
            assert covers(bound(), truth), bound.__name__


def test_a_named_release_breaks_what_is_certified_for_an_anonymous_one():
    """Steps that forget the token: the last one is seen with its own noise only, and a name tells whose it is."""
    p = WalkDescent(100, 300, 1.0, step=0.1, clip=0.4, sender="hidden")
    assert p.release == "anonymous"
    seen = 1 / p.n * float(gaussian_delta(p.sensitivity / p.sigma, 1.0))
    anonymous, named = (float(walk.descent_profile(p.replace(release=r)).delta(1.0)) for r in RELEASES)
    assert anonymous < 1e-3 * seen
    assert seen <= named <= 1.5 * seen
    # known ends of stretches count the last one already
    for sender in ("receiver-known", "known"):
        both = [walk.descent_profile(p.replace(sender=sender, release=r)) for r in RELEASES]
        assert float(both[0].delta(1.0)) == float(both[1].delta(1.0)) >= named


def test_descent_counts_the_known_ends():
    """One or two of every stretch; v visits make v + 1 stretches, and each known end is u's with probability 1/(n − 1)."""
    n, steps, sigma = 20, 80, 4.0
    one = Event(lambda eps: np.asarray(gaussian_delta(1 / sigma, eps)) / (n - 1), 1)
    every = single_steps(Shift(1 / sigma, 1 / sigma), 1 / (n - 1), 0.0, 1)
    for sender, ends in (("receiver-known", 1), ("known", 2)):
        secret = walk.descent_bounds(WalkDescent(n, steps, sigma, step=0.1, clip=0.5, sender=sender))[0]()
        for eps in (0.3, 1.0):
            given = [
                compose_events([every.repeated(steps - v), one.repeated(ends * (v + 1))]).delta(eps) for v in range(16)
            ]
            expected = float(binom.pmf(np.arange(16), steps, 1 / n) @ given)
            assert 0.97 * expected <= float(secret.delta(eps)) <= 1.03 * expected + 1e-6


def test_descent_uses_what_it_may():
    base = WalkDescent(50, 200, 1.0, step=0.1)
    assert [b.__name__ for b in walk.descent_bounds(base.replace(expansion=1.5))] == ["secret", "local"]
    assert [b.__name__ for b in walk.descent_bounds(base.replace(contributions=3))] == ["gaps", "local"]
    assert [b.__name__ for b in walk.descent_bounds(base.replace(contributions=3, expansion=2.0))] == ["local"]


# ---- exact views: histograms


@pytest.mark.parametrize(("n", "steps", "domain"), [(3, 4, 2), (3, 3, 3), (4, 4, 2), (4, 4, 3)])
@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("gamma", [0.2, 0.7])
def test_histograms_are_covered(n, steps, domain, sender, release, gamma):
    views = [
        brute.whole_view(steps, 1 / n, brute.heap_stretch(others, own, 1 - own, domain, gamma), sender, release)
        for others in itertools.combinations_with_replacement(range(domain), n - 2)
        for own in (0, 1)
    ]
    truth = largest(views)
    p = WalkHistogram(n, steps, domain=domain, gamma=gamma, sender=sender, release=release)
    curve = netdp.account(p, [0]).curve.curves
    assert covers(curve, truth)
    if sender == "hidden" and domain == 3:  # attained by one step; heaps of several hide no more than a list
        assert float(curve.delta(0.0)) <= 1.25 * truth[0]


def test_a_named_release_shows_one_response():
    """Of 2000 secret ones and the last: pure ε is that of T − 1 secret responses and one in the open."""
    p = WalkHistogram(500, 2000, domain=3, gamma=0.4, sender="hidden")
    one = math.log1p(math.expm1(p.epsilon0) / 499)
    anonymous, named = (netdp.account(p.replace(release=r), [0]).curve.curves for r in RELEASES)
    assert float(anonymous.epsilon(0.0)) == pytest.approx(2000 * one)
    assert float(named.epsilon(0.0)) == pytest.approx(1999 * one + p.epsilon0)
    top = p.gamma / p.domain * math.expm1(p.epsilon0)  # of one response, at ε = 0
    seen = top * -math.expm1(1.5 - p.epsilon0) / -math.expm1(-p.epsilon0) / p.n  # and at 1.5, if it is u's
    assert float(anonymous.delta(1.5)) < 0.1 * seen
    assert seen <= float(named.delta(1.5)) <= 3 * seen


def test_histograms_without_data_and_with_a_limit():
    assert netdp.account(WalkHistogram(20, 40, domain=3, gamma=1.0), [0]).worst_epsilon(0.0) == 0.0
    free = WalkHistogram(60, 300, domain=3, gamma=0.4, sender="hidden")
    limited = free.replace(contributions=2)
    # never more than two responses in the open
    assert netdp.account(limited, [0]).worst_epsilon(0.0) <= 2 * free.epsilon0 * (1 + 1e-9)
    assert netdp.account(free, [0]).worst_epsilon(DELTA) < netdp.account(limited, [0]).worst_epsilon(DELTA)
    with pytest.raises(Unsupported, match="no zero"):
        netdp.account(free, [0], adjacency="zero-out")


# ---- orientation (maths, section 4)


def zeros_epsilon(n, lengths):
    """ε at δ = 10⁻⁶ if all others contribute 0: Σ_k Bin(k; j, q)·N(k, jσ²) against N(0, jσ²), composed over the stretches."""
    q = 1 / (n - 1)
    parts = []
    binned, times = np.unique(np.maximum(1, np.round(np.exp(np.round(np.log(lengths) * 40) / 40))), return_counts=True)
    for length, count in zip(binned, times, strict=True):
        k = np.arange(0, 30)
        weight = binom.pmf(k, int(length), q)
        deviation = SIGMA * math.sqrt(length)
        y = np.linspace(-8.5 * deviation, 8.5 * deviation, 1201)
        ratio = np.exp((k[None, :] * y[:, None] - k**2 / 2) / deviation**2) @ weight
        mass = norm.pdf(y / deviation) * (y[1] - y[0]) / deviation * ratio
        parts.append((np.log(ratio), mass / mass.sum(), int(count)))
    return brute.loss_epsilon(*brute.composed_losses(parts, 4e-6, 1 << 16), DELTA)


@pytest.mark.parametrize(("n", "ours", "page"), [(100, 0.0582, 0.045), (1000, 0.0167, 0.013)])
def test_orientation(n, ours, page):
    """The numbers of the page are those of stretches cut at length n; whole ones come close to the certified loss."""
    certified = netdp.account(WalkSum(n, 100 * n, SIGMA, sender="hidden"), [0]).worst_epsilon(DELTA)
    assert certified == pytest.approx(ours, rel=5e-3)
    weak = float(gaussian_epsilon(math.sqrt(100 * n * (1 - 1 / n)) / (n - 1) / SIGMA, DELTA))
    assert weak <= certified <= 1.02 * weak
    path = np.random.default_rng(0).integers(n, size=100 * n)
    lengths = np.diff(np.concatenate([[-1], np.flatnonzero(path == 0), [path.size]])) - 1
    lengths = lengths[lengths > 0]
    whole, cut = zeros_epsilon(n, lengths), zeros_epsilon(n, np.minimum(lengths, n))
    assert 0.94 * certified <= whole <= certified
    assert cut == pytest.approx(page, rel=0.06)


# ---- order


def eps_of(p, colluders=1, adjacency="replace"):
    profile = walk.sum_profile if isinstance(p, WalkSum) else walk.descent_profile
    return float(profile(p, colluders, adjacency).epsilon(DELTA))


BASES = [
    WalkSum(40, 160, 4.0, sender="hidden"),
    WalkSum(20, 60, 4.0, sender="receiver-known"),
    WalkSum(20, 60, 4.0, sender="known"),
    WalkDescent(20, 80, 4.0, step=0.1, clip=0.5, sender="hidden"),
    WalkDescent(20, 80, 4.0, step=0.1, clip=0.5, sender="receiver-known"),
    WalkDescent(20, 80, 4.0, step=0.1, clip=0.5, sender="known"),
]


@pytest.mark.parametrize("p", BASES, ids=lambda p: f"{p.kind}-{p.sender}")
def test_order(p):
    base = eps_of(p)
    slack = 1.01  # of the grids
    assert eps_of(p.replace(sigma=4.4)) < base / 1.05
    assert eps_of(p.replace(n=3 * p.n, steps=3 * p.steps)) < base
    assert eps_of(p.replace(steps=3 * p.steps // 2)) > base * 1.02
    assert eps_of(p, 5) > base
    assert base / 2.3 < eps_of(p, 1, "zero-out") <= base
    assert eps_of(p.replace(sender="hidden")) <= base * slack
    # never more than local DP
    assert base <= netdp.local_dp(p).worst_epsilon(DELTA) * slack


def test_tokens():
    for sender, n in (("hidden", 40), ("receiver-known", 12), ("known", 12)):
        one = WalkSum(n, 5 * n, 4.0, sender=sender)
        two, long = one.replace(tokens=2), one.replace(steps=10 * n)
        assert eps_of(two) > eps_of(one)
        # two walks have one ending more than a walk of twice the length
        assert 0.99 * eps_of(long) <= eps_of(two) <= 1.3 * eps_of(long)


def test_a_limit_gives_up_the_secrecy_of_the_path():
    free = WalkSum(100, 1000, 4.0, sender="hidden")
    curves = [eps_of(free.replace(contributions=most)) for most in (1, 3, 8, 1000)]
    assert all(less <= more * (1 + 1e-9) for less, more in itertools.pairwise(curves))
    # with a limit that is never reached the bounds that tell the path are left, and the secret ones are out
    assert eps_of(free) < curves[0]
    told = [bound.__name__ for bound in walk.sum_bounds(free.replace(contributions=1000))]
    assert told == ["gaps", "local"]
    assert curves[-1] == pytest.approx(
        min(float(bound().epsilon(DELTA)) for bound in walk.sum_bounds(free)[-2:]), rel=1e-6
    )
    # one contribution in the open at most
    assert curves[0] <= float(gaussian_epsilon(1 / 4, DELTA)) * 1.01


def test_all_but_one_collude():
    """They see every contribution of the last one by itself, or next to others of its own."""
    p = WalkSum(5, 20, 3.0, sender="hidden")
    assert eps_of(p, 1) < eps_of(p, 3) < eps_of(p, 4) <= netdp.local_dp(p).worst_epsilon(DELTA) * 1.01
    assert eps_of(p.replace(sender="known"), 3) >= eps_of(p, 3) * 0.99


@pytest.mark.parametrize("sender", SENDERS)
def test_with_all_but_one_colluding_every_contribution_is_seen(sender):
    """Nobody else is left to hide among: a stretch of k steps is k contributions of u. Exactly local DP."""
    k = np.arange(21)
    exact = np.array([binom.pmf(k, 20, 1 / 5) @ np.asarray(gaussian_delta(np.sqrt(k) / 3, e)) for e in EPS])
    found = np.asarray(walk.sum_profile(WalkSum(5, 20, 3.0, sender=sender), 4).delta(EPS))
    assert np.all(exact <= found * (1 + 1e-12))
    assert np.all(found <= 1.1 * exact + 1e-14)


@pytest.mark.parametrize("sender", ["receiver-known", "known"])
def test_with_two_left_known_ends_leave_little_to_hide(sender):
    n, steps, sigma = 100, 200, 5.0
    p = WalkSum(n, steps, sigma, sender=sender)
    stretch = brute.equal_others(0.0, 1.0, 0.0, 1 / 2, sigma)
    eps = np.array([0.0, 0.5, 1.0])
    true = brute.long_walk_delta(steps, 98 / n, stretch, sender, p.release, eps, cells=1 << 12)
    found = np.asarray(walk.sum_profile(p, 98).delta(eps))
    assert np.all(true <= found)
    assert np.all(found <= 1.2 * true)
    # hidden senders still hide u behind the other one
    assert eps_of(p.replace(sender="hidden", release="anonymous"), 98) < 0.75 * eps_of(p, 98)


def test_refusals():
    p = WalkSum(10, 100, 3.0)
    with pytest.raises(InvalidValue, match="10 of 10"):
        walk.sum_profile(p, 10)
    with pytest.raises(InvalidValue, match="0 of 10"):
        walk.sum_profile(p, 0)
    with pytest.raises(Unsupported, match="zero-out"):
        netdp.account(p, [0], adjacency="add-remove")


FIXED = walk.FIXED


def said(p, **options):
    loss = netdp.account(p, [3], **options)
    assert loss.claim.value == "upper"
    assert loss.observers.parties == (3,)
    return loss.assumptions


def test_sums_say_what_their_proof_uses():
    p = WalkSum(10, 100, 3.0, sensitivity=2.0)
    visits = "what a user adds does not depend on how often it, or anybody, was visited"
    secret, zeroed, told = said(p), said(p, adjacency="zero-out"), said(p.replace(contributions=3))
    assert (
        "the values of all users at one step, whatever their data, lie in one public set of diameter 2 (L2 norm)"
        in secret[0]
    )
    assert (
        "the values of all users at one step, whatever their data, lie in the ball of radius 1 around 0 (L2 norm)"
        in zeroed[0]
    )
    assert FIXED in secret
    assert visits in secret
    # a limit: the path is told, u's own two values count and how often it was visited decides what it adds
    assert (
        told[0] == "every contribution is bounded: what one user adds differs by at most 2 in L2 norm between its data"
    )
    assert "has an L2 norm of at most 1" in said(p.replace(contributions=3), adjacency="zero-out")[0]
    assert FIXED in told
    assert visits not in told
    assert "a user that has contributed 3 times per token adds noise only" in told


def test_descents_say_what_their_proof_uses():
    p = WalkDescent(10, 100, 3.0, step=0.1)

    def about(p):
        lines = said(p)
        assert FIXED not in lines
        assert "the starting model does not depend on anybody's data" in lines
        assert "the gradients of all users are clipped to norm 1 " in lines[0]
        reacts = next(line for line in lines if line.startswith("a gradient may depend on"))
        steps = [
            line for line in lines if line.startswith("θ ↦ θ − η·g_u(θ), clipping and projection included, does not in")
        ]
        assert all(
            "used by the bound by iteration only" in line and "rows clipped one by one" in line for line in steps
        )
        return reacts, len(steps)

    free, capped = about(p), about(p.replace(contributions=4))
    assert free[0].endswith("not on how often it, or anybody, was visited")
    assert "and on how often users were visited" in capped[0]
    assert free[1] == capped[1] == 1
    # what may expand: no iteration; with a limit only local DP is left, which lets a gradient depend on anything
    assert about(p.replace(expansion=1.5)) == (free[0], 0)
    assert about(p.replace(expansion=1.5, contributions=4)) == (
        "a gradient may depend on everything that its user has seen",
        0,
    )


def test_histograms_say_what_their_proof_uses():
    p = WalkHistogram(10, 100, domain=2, gamma=0.5, sender="hidden")
    shown = (
        "what a user adds may depend on the step and the token it sees, not on how often it, or anybody, was visited"
    )
    for changes, fixed in (
        ({}, False),
        ({"release": "named"}, False),
        ({"contributions": 3}, True),
        ({"sender": "receiver-known"}, True),
        ({"sender": "known"}, True),
    ):
        lines = said(p.replace(**changes))
        assert (FIXED in lines) == fixed
        assert (shown in lines) != fixed


@pytest.mark.parametrize(
    "p", [WalkSum(10, 20, 3.0), WalkDescent(10, 20, 3.0, step=0.1), WalkHistogram(10, 20, domain=2, gamma=0.5)]
)
def test_the_channel_and_the_release_are_printed_with_what_provides_them(p):
    assert (p.sender, p.release) == ("known", "named")  # what plain connections give
    channels = {
        "hidden": ("learns neither who brought it nor who gets it next", "a mix network"),
        "receiver-known": ("draws who gets it next, and does not learn who brought it", "hides the sender"),
        "known": ("sees who brings it the token and to whom it passes it", "plain connections"),
    }
    releases = {
        "named": ("publishes the token under its own name", "all know who made the last step"),
        "anonymous": ("nobody learns who made the last step", "a channel that hides the sender"),
    }
    for sender, release in itertools.product(SENDERS, RELEASES):
        lines = said(p.replace(sender=sender, release=release))
        for words, chosen in ((channels, sender), (releases, release)):
            for name, (what, how) in words.items():
                matching = [line for line in lines if what in line]
                assert len(matching) == (name == chosen)
                assert all(how in line for line in matching)


# ---- the published bounds


@pytest.mark.parametrize(("n", "per_user"), [(20, 1), (20, 100), (100, 10)])
@pytest.mark.parametrize("sender", SENDERS)
def test_certified_sums_are_below_published_ones(n, per_user, sender):
    p = WalkSum(n, per_user * n, SIGMA, sender=sender)
    stated = netdp.account(p, [0], method="published")
    certified = netdp.account(p, [0])
    for delta in (1e-4, DELTA):
        assert certified.worst_epsilon(delta) < stated.worst_epsilon(delta)


@pytest.mark.parametrize(("n", "per_user"), [(10_000, 1), (10_000, 100), (100_000, 10)])
def test_certified_sums_of_many_users_are_below_published_ones(n, per_user):
    """Telling the path is enough: the certified loss is the least of several bounds, of which this is one."""
    p = WalkSum(n, per_user * n, SIGMA, sender="hidden")
    told = walk.sum_bounds(p)[-2]
    assert told.__name__ == "gaps"
    assert float(told().epsilon(DELTA)) < netdp.account(p, [0], method="published").worst_epsilon(DELTA)


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("n", [20, 500])
def test_certified_descent_is_below_published(n, sender):
    p = WalkDescent(n, 10 * n, 10.0, step=0.05, clip=0.4, sender=sender)
    stated = netdp.account(p, [0], method="published")
    assert netdp.account(p, [0]).worst_epsilon(DELTA) < stated.worst_epsilon(DELTA)


def test_certified_histograms_are_below_published():
    p = WalkHistogram(20_000, 40_000, domain=4, gamma=0.97, sender="hidden")
    stated = netdp.account(p, [0], method="published")
    assert netdp.account(p, [0]).worst_epsilon(DELTA) < stated.worst_epsilon(DELTA)


@pytest.mark.parametrize("adjacency", ["replacement", "add-remove", None])
def test_unknown_relations_are_refused(adjacency):
    with pytest.raises(Unsupported, match="adjacency 'replace' or 'zero-out', got"):
        netdp.account(WalkSum(10, 100, 3.0), [0], adjacency=adjacency)


@pytest.mark.parametrize(
    "p",
    [
        WalkSum(8, 400, sigma=60.0),  # a named release had the smaller bound
        WalkSum(8, 40, sigma=6.0, grid=0.5),
        WalkSum(8, 40, sigma=6.0, law="laplace"),
        WalkDescent(12, 40, 6.0, step=0.1, clip=0.5),
        WalkHistogram(9, 30, domain=3, gamma=0.8),
    ],
    ids=lambda p: p.kind,
)
def test_a_channel_that_shows_less_never_costs_more(p):
    eps = {
        (sender, release): np.asarray(
            netdp.account(p.replace(sender=sender, release=release), [0]).epsilon([[1e-3], [1e-6], [1e-9]])
        )
        for sender in ("known", "receiver-known", "hidden")
        for release in ("named", "anonymous")
    }
    order = ("hidden", "receiver-known", "known")
    for (sender, release), here in eps.items():
        for worse in [("known", release), ("receiver-known", release), (sender, "named")]:
            # histograms with hidden senders rest on fewer assumptions
            other = p.kind == "walk-histogram" and (sender == "hidden") != (worse[0] == "hidden")
            if order.index(worse[0]) >= order.index(sender) and not other:
                assert (here[:, 1:] <= eps[worse][:, 1:] * (1 + 1e-9)).all()
