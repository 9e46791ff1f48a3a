"""The certified loss of walks on the complete graph: exact views of tiny walks, orientation, order, published bounds."""

import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

import netdp
from netdp.accounting.token import walk
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import gaussian_delta, gaussian_epsilon
from netdp.protocols import WalkDescent, WalkHistogram, WalkSum

_spec = importlib.util.spec_from_file_location("walk_brute", Path(__file__).with_name("walk_brute.py"))
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)

DELTA = 1e-6
SIGMA = math.sqrt(2 * math.log(1.25e8)) / 0.1
EPS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
ROUNDING = 1e-13  # of the sums of cells


def sum_views(n, steps, colluders, sigma, sender, decay=1.0):
    """Exact views for the others anywhere in {0, 1/2, 1}, u between any two of these; mirror images left out."""
    for others in itertools.combinations_with_replacement((0.0, 0.5, 1.0), n - colluders - 1):
        for own, other in ((0.0, 1.0), (0.0, 0.5), (0.5, 0.0)):
            stretch = brute.sum_stretch(others, own, other, sigma, decay)
            yield brute.whole_view(steps, colluders / n, stretch, sender == "known")


def largest(views):
    return np.max([brute.delta(view, EPS) for view in views], axis=0)


def covers(curve, truth):
    return bool(np.all(truth <= np.asarray(curve.delta(EPS)) + ROUNDING))


# ---- exact views: sums


@pytest.mark.parametrize(("n", "steps", "colluders"), [(3, 5, 1), (4, 4, 1), (4, 4, 2)])
@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_sums_are_covered(n, steps, colluders, sender, sigma):
    truth = largest(sum_views(n, steps, colluders, sigma, sender))
    p = WalkSum(n, steps, sigma, sender=sender)
    for bound in walk.sum_bounds(p, colluders):
        assert covers(bound(), truth), bound.__name__
    assert covers(netdp.account(p, list(range(colluders))).curve, truth)


@pytest.mark.parametrize(("sender", "factor"), [("hidden", 1.1), ("known", 1.6)])
def test_sums_with_strong_noise_are_nearly_exact(sender, factor):
    """σ = 3, δ = 10⁻³: within a tenth of the truth if the path is secret; known senders, of few users, cost more."""
    certified = float(netdp.account(WalkSum(3, 5, 3.0, sender=sender), [0]).epsilon(1e-3))
    exact = max(brute.epsilon(view, 1e-3) for view in sum_views(3, 5, 1, 3.0, sender))
    assert exact <= certified <= factor * exact


@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_zeroed_values_are_covered(sender, sigma):
    """Values in [−1/2, 1/2] against 0, both ways."""
    n, steps = 4, 4
    truth = largest(
        brute.whole_view(steps, 1 / n, brute.sum_stretch(others, own, other, sigma), sender == "known")
        for others in itertools.combinations_with_replacement((-0.5, 0.0, 0.5), n - 2)
        for own, other in ((0.0, 0.5), (0.5, 0.0))
    )
    p = WalkSum(n, steps, sigma, sender=sender)
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


@pytest.mark.parametrize("decay", [1.0, 0.5])
@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_descent_is_covered(decay, sender, sigma):
    """Constant gradients, or θ ← θ/2 + ηg_u: both do not expand; gradients 2L = 1 apart. In units of η."""
    n, steps = 3, 4
    truth = largest(sum_views(n, steps, 1, sigma, sender, decay))
    p = WalkDescent(n, steps, sigma, step=0.1, clip=0.5, sender=sender)
    names = [bound.__name__ for bound in walk.descent_bounds(p)]
    assert names == ["secret", "iteration", "local"]
    for bound in walk.descent_bounds(p):
        assert covers(bound(), truth), bound.__name__
    assert covers(netdp.account(p, [0]).curve, truth)


def test_descent_of_four_users_with_two_colluders_is_covered():
    truth = largest(sum_views(4, 4, 2, 1.0, "known", 0.5))
    for bound in walk.descent_bounds(WalkDescent(4, 4, 1.0, step=0.1, clip=0.5, sender="known"), 2):
        assert covers(bound(), truth), bound.__name__


def test_descent_uses_what_it_may():
    base = WalkDescent(50, 200, 1.0, step=0.1)
    assert [b.__name__ for b in walk.descent_bounds(base.replace(expansion=1.5))] == ["secret", "local"]
    assert [b.__name__ for b in walk.descent_bounds(base.replace(contributions=3))] == ["iteration", "local"]
    assert [b.__name__ for b in walk.descent_bounds(base.replace(contributions=3, expansion=2.0))] == ["local"]


# ---- exact views: histograms


@pytest.mark.parametrize(("n", "steps", "domain"), [(3, 4, 2), (3, 3, 3), (4, 4, 2), (4, 4, 3)])
@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("gamma", [0.2, 0.7])
def test_histograms_are_covered(n, steps, domain, sender, gamma):
    views = [
        brute.whole_view(steps, 1 / n, brute.heap_stretch(others, own, 1 - own, domain, gamma), sender == "known")
        for others in itertools.combinations_with_replacement(range(domain), n - 2)
        for own in (0, 1)
    ]
    truth = largest(views)
    curve = netdp.account(WalkHistogram(n, steps, domain=domain, gamma=gamma, sender=sender), [0]).curve
    assert covers(curve, truth)
    if sender == "hidden" and domain == 3:  # attained by one step; heaps of several hide no more than a list
        assert float(curve.delta(0.0)) <= 1.25 * truth[0]


def test_histograms_without_data_and_with_a_limit():
    assert float(netdp.account(WalkHistogram(20, 40, domain=3, gamma=1.0), [0]).epsilon(0.0)) == 0.0
    free = WalkHistogram(200, 1000, domain=3, gamma=0.4)
    limited = free.replace(contributions=2)
    # never more than two responses in the open
    assert float(netdp.account(limited, [0]).epsilon(0.0)) <= 2 * free.epsilon0 * (1 + 1e-9)
    assert float(netdp.account(free, [0]).epsilon(DELTA)) < float(netdp.account(limited, [0]).epsilon(DELTA))
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
    certified = float(netdp.account(WalkSum(n, 100 * n, SIGMA), [0]).epsilon(DELTA))
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
    WalkSum(40, 160, 4.0),
    WalkSum(20, 60, 4.0, sender="known"),
    WalkDescent(20, 80, 4.0, step=0.1, clip=0.5),
    WalkDescent(20, 80, 4.0, step=0.1, clip=0.5, sender="known"),
]


@pytest.mark.parametrize("p", BASES, ids=["sum", "sum-known", "descent", "descent-known"])
def test_order(p):
    base = eps_of(p)
    slack = 1.01  # of the grids
    assert eps_of(p.replace(sigma=4.4)) < base / 1.05
    assert eps_of(p.replace(n=3 * p.n, steps=3 * p.steps)) < base
    assert eps_of(p.replace(steps=3 * p.steps // 2)) > base * 1.05
    assert eps_of(p, 5) > base
    assert base / 2.2 < eps_of(p, 1, "zero-out") <= base
    assert eps_of(p.replace(sender="hidden")) <= base * slack
    # never more than local DP
    assert base <= float(netdp.local_dp(p).epsilon(DELTA)) * slack


def test_tokens():
    for sender, n in (("hidden", 40), ("known", 12)):
        one = WalkSum(n, 5 * n, 4.0, sender=sender)
        two, long = one.replace(tokens=2), one.replace(steps=10 * n)
        assert eps_of(two) > eps_of(one)
        # two walks have one ending more than a walk of twice the length
        assert 0.99 * eps_of(long) <= eps_of(two) <= 1.3 * eps_of(long)


def test_a_limit_gives_up_the_secrecy_of_the_path():
    free = WalkSum(100, 1000, 4.0)
    curves = [eps_of(free.replace(contributions=most)) for most in (1, 3, 8, 1000)]
    assert curves == sorted(curves)
    # with a limit that is never reached the bounds that tell the path are left, and the secret ones are out
    assert eps_of(free) < curves[0]
    told = [bound.__name__ for bound in walk.sum_bounds(free.replace(contributions=1000))]
    assert told == ["told", "local"]
    assert curves[-1] == pytest.approx(
        min(float(bound().epsilon(DELTA)) for bound in walk.sum_bounds(free)[-2:]), rel=1e-6
    )
    # one contribution in the open at most
    assert curves[0] <= float(gaussian_epsilon(1 / 4, DELTA)) * 1.01


def test_all_but_one_collude():
    """They see every contribution of the last one by itself, or next to others of its own."""
    p = WalkSum(5, 20, 3.0)
    assert eps_of(p, 1) < eps_of(p, 3) < eps_of(p, 4) <= float(netdp.local_dp(p).epsilon(DELTA)) * 1.01
    assert eps_of(p.replace(sender="known"), 3) >= eps_of(p, 3) * 0.99


def test_known_senders_and_all_but_one_collude():
    assert math.isfinite(eps_of(WalkSum(5, 20, 3.0, sender="known"), 4))


def test_known_senders_and_nearly_everybody_colludes():
    assert math.isfinite(eps_of(WalkSum(300, 600, 5.0, sender="known"), 298))


def test_refusals():
    p = WalkSum(10, 100, 3.0)
    with pytest.raises(InvalidValue, match="10 of 10"):
        walk.sum_profile(p, 10)
    with pytest.raises(InvalidValue, match="0 of 10"):
        walk.sum_profile(p, 0)
    with pytest.raises(Unsupported, match="zero-out"):
        netdp.account(p, [0], adjacency="add-remove")


def test_statements():
    fixed = "values are fixed before the first step and do not react to the token"
    for p, said in (
        (WalkSum(10, 100, 3.0), True),
        (WalkDescent(10, 100, 3.0, step=0.1), False),
        (WalkHistogram(10, 100, domain=2, gamma=0.5), False),
        (WalkHistogram(10, 100, domain=2, gamma=0.5, sender="known"), True),
    ):
        loss = netdp.account(p, [3])
        assert loss.claim.value == "upper"
        assert (fixed in loss.assumptions) == said
        assert loss.observers == (3,)


# ---- the published bounds


@pytest.mark.parametrize(("n", "per_user"), [(20, 1), (20, 100), (100, 10)])
@pytest.mark.parametrize("sender", ["hidden", "known"])
def test_certified_sums_are_below_published_ones(n, per_user, sender):
    p = WalkSum(n, per_user * n, SIGMA, sender=sender)
    stated = netdp.account(p, [0], method="published")
    certified = netdp.account(p, [0])
    for delta in (1e-4, DELTA):
        assert float(certified.epsilon(delta)) < float(stated.epsilon(delta))


@pytest.mark.parametrize(("n", "per_user"), [(10_000, 1), (10_000, 100), (100_000, 10)])
def test_certified_sums_of_many_users_are_below_published_ones(n, per_user):
    """Telling the path is enough: the certified loss is the least of several bounds, of which this is one."""
    p = WalkSum(n, per_user * n, SIGMA)
    told = walk.sum_bounds(p)[-2]
    assert told.__name__ == "told"
    assert float(told().epsilon(DELTA)) < float(netdp.account(p, [0], method="published").epsilon(DELTA))


@pytest.mark.parametrize("sender", ["hidden", "known"])
@pytest.mark.parametrize("n", [20, 500])
def test_certified_descent_is_below_published(n, sender):
    p = WalkDescent(n, 10 * n, 10.0, step=0.05, clip=0.4, sender=sender)
    stated = netdp.account(p, [0], method="published")
    assert float(netdp.account(p, [0]).epsilon(DELTA)) < float(stated.epsilon(DELTA))


def test_certified_histograms_are_below_published():
    p = WalkHistogram(20_000, 40_000, domain=4, gamma=0.97)
    stated = netdp.account(p, [0], method="published")
    assert float(netdp.account(p, [0]).epsilon(DELTA)) < float(stated.epsilon(DELTA))


@pytest.mark.parametrize("adjacency", ["replacement", "add-remove", None])
def test_unknown_relations_are_refused(adjacency):
    with pytest.raises(Unsupported, match="adjacency 'replace' or 'zero-out', got"):
        netdp.account(WalkSum(10, 100, 3.0), [0], adjacency=adjacency)
