"""The sampled Gaussian, composed: against integrals, enumeration, draws and dp-accounting.

Proof: docs/proofs/masked.md#sampled-descent.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from netdp.errors import InvalidValue
from netdp.privacy import gaussian_delta
from netdp.privacy import sampled_gaussian as _powers
from netdp.privacy import sampled_gaussian as sampled
from netdp.privacy.sampled_gaussian import (
    Masses,
    least_root,
    power,
    sampled_gaussian_curve,
    sampled_gaussian_multiplier,
    too_long,
)

LINE = np.linspace(-14.0, 16.0, 60_001)
PHI = stats.norm.pdf


def laws(r, q, kind, line=LINE):
    """P and Q as densities on the line."""
    mixture = (1 - q) * PHI(line) + q * PHI(line - r)
    if kind == "removed":
        return mixture, PHI(line)
    if kind == "added":
        return PHI(line), mixture
    return mixture, (1 - q) * PHI(line) + q * PHI(line + r)


def once(r, q, kind, epsilon):
    """sup_A P(A) − e^ε·Q(A) for any real ε: A is a half line, whose end need not be exact (it is where the slope is 0)."""
    p, other = laws(r, q, kind)
    loss, sign = np.log(p / other), -1.0 if kind == "added" else 1.0
    order = slice(None, None, int(sign))
    end = np.interp(epsilon, loss[order], LINE[order], left=-np.inf * sign, right=np.inf * sign)
    above, shifted, mirrored = (stats.norm.sf(sign * (end - mean)) for mean in (0.0, r, -r))
    mixture = (1 - q) * above + q * shifted
    first, second = {"removed": (mixture, above), "added": (above, mixture)}.get(
        kind, (mixture, (1 - q) * above + q * mirrored)
    )
    return first - np.exp(epsilon) * second


def exact_once(r, q, kind, epsilon):
    """Closed forms for ε ≥ 0 (joint convexity)."""
    if kind == "removed":
        return q * np.asarray(gaussian_delta(r, np.log1p(np.expm1(epsilon) / q)))
    gamma = np.exp(epsilon)
    rest = 1 - gamma * (1 - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = np.log(np.maximum(gamma * q / rest, 1.0))
    return np.where(rest > 0, rest * np.asarray(gaussian_delta(r, np.where(rest > 0, level, 0.0))), 0.0)


@pytest.mark.parametrize(("z", "q"), [(1.0, 0.1), (0.5, 0.01), (4.0, 0.5), (30.0, 0.9), (0.8, 1e-4)])
def test_one_release_is_the_closed_form(z, q):
    epsilon = np.array([0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 2.0]) * min(1.0, 3 / z)
    exact = np.maximum(exact_once(1 / z, q, "removed", epsilon), exact_once(1 / z, q, "added", epsilon))
    found = sampled_gaussian_curve(z, q, 1).delta(epsilon)
    assert (found >= exact * (1 - 1e-11)).all()
    assert (found <= exact * 1.01 + 1e-15).all()


@pytest.mark.parametrize("kind", ["removed", "added", "replaced"])
def test_two_releases_are_the_double_integral(kind):
    """δ of two = E_P[h(e^{ε − l(x)})] with h the profile of one, by quadrature."""
    r, q = 1.0, 0.2
    p, other = laws(r, q, kind)
    width = LINE[1] - LINE[0]
    curve = sampled_gaussian_curve(1 / r, q, 2, replaced=kind == "replaced")
    only = sampled._composed(
        {"removed": sampled._Removed, "added": sampled._Added}.get(kind, sampled._Replaced)(r, q), 2, (1e-3, 1e-6)
    )
    with np.errstate(divide="ignore"):
        loss = np.log(p / other)
    for epsilon in (0.0, 0.1, 0.4, 1.0):
        exact = float(np.sum(p * once(r, q, kind, epsilon - loss)) * width)
        assert exact * (1 - 1e-7) <= float(only.delta(epsilon)) <= exact * 1.01 + 0.01 * float(curve.delta(epsilon))
        assert float(only.delta(epsilon)) <= float(curve.delta(epsilon)) * (1 + 1e-3)


@pytest.mark.parametrize("kind", ["removed", "added", "replaced"])
def test_many_releases_against_draws(kind):
    r, q, times, draws = 0.7, 0.1, 30, 60_000
    rng = np.random.default_rng(5)
    x = rng.standard_normal((draws, times))
    if kind != "added":
        x += r * (rng.random((draws, times)) < q)
    pair = {"removed": sampled._Removed, "added": sampled._Added, "replaced": sampled._Replaced}[kind](r, q)
    total = pair.loss(x).sum(axis=1)
    curve = sampled._composed(pair, times, (1e-2, 1e-5))
    for epsilon in (0.0, 0.5, 1.0):
        seen = np.maximum(-np.expm1(epsilon - total), 0.0)
        error = 4.5 * seen.std() / math.sqrt(draws)
        assert seen.mean() - error <= float(curve.delta(epsilon)) <= (seen.mean() + error) * 1.005


@pytest.mark.parametrize(
    ("q", "times", "epsilon", "delta"), [(0.064, 300, 1.0, 1e-5), (0.5, 10, 1.0, 1e-6), (0.05, 50, 0.5, 1e-6)]
)
def test_the_multiplier_is_that_of_dp_accounting_and_never_below(q, times, epsilon, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    found = sampled_gaussian_multiplier(epsilon, delta, q, times)

    def theirs(z):
        interval = 0.01 * q * math.sqrt(math.expm1(1 / z**2))
        one = pld.from_gaussian_mechanism(z, sampling_prob=q, value_discretization_interval=min(interval, 1e-3))
        return one.self_compose(times).get_epsilon_for_delta(delta)

    assert theirs(found) <= epsilon  # theirs would do with no more noise
    assert theirs(found / 1.005) > epsilon  # and not with half a percent less
    assert float(sampled_gaussian_curve(found, q, times).epsilon(delta)) <= epsilon
    assert float(sampled_gaussian_curve(found / 1.0005, q, times).epsilon(delta)) > epsilon


def test_the_pair_for_a_replaced_party_dominates_every_other():
    """Vectors x, x′ in the ball, absent = 0, in one and two dimensions: no half plane, no event tells more."""
    R, q, width = 1.2, 0.3, 0.08
    side = np.arange(-7.0, 7.0, width)
    a, b = np.meshgrid(side, side)
    rng = np.random.default_rng(0)
    pairs = [((R, 0.0), (-R, 0.0)), ((R, 0.0), (0.0, R)), ((R, 0.0), (R, 0.0)), ((0.0, 0.0), (R, 0.0))]
    pairs += [
        tuple(R * math.sqrt(rng.random()) * np.array([math.cos(t), math.sin(t)]) for t in rng.uniform(0, 7, 2))
        for _ in range(12)
    ]
    curve = sampled_gaussian_curve(1 / R, q, 1, replaced=True)

    def law(x):
        return ((1 - q) * PHI(a) * PHI(b) + q * PHI(a - x[0]) * PHI(b - x[1])) * width**2

    for epsilon in (0.0, 0.2, 0.6, 1.2):
        allowed = float(curve.delta(epsilon))
        found = [np.maximum(law(x) - math.exp(epsilon) * law(y), 0).sum() for x, y in pairs]
        assert max(found) <= allowed * (1 + 1e-3)
        assert found[0] == pytest.approx(allowed, rel=5e-3)  # opposite ends attain it
        # twice the distance in one direction, as if absence were not at 0, would be another pair
        single = float(sampled_gaussian_curve(1 / (2 * R), q, 1).delta(epsilon))
        assert epsilon == 0 or single != pytest.approx(allowed, rel=1e-2)


def test_reactions_to_what_was_seen_gain_nothing():
    """Two adaptive releases on the line, enumerated: the second value depends on the first release."""
    r, q, width = 1.0, 0.4, 0.05
    z = np.arange(-7.0, 8.0, width)

    def joint(first, second):
        """P(z₁, z₂): u adds `first`, then second(z₁), each by a coin of its own."""
        one = (1 - q) * PHI(z) + q * PHI(z - first)
        shift = second(z)[:, None]
        return one[:, None] * ((1 - q) * PHI(z) + q * PHI(z[None, :] - shift)) * width**2

    always, never = joint(r, lambda seen: r + 0 * seen), joint(0.0, lambda seen: 0 * seen)
    others = [joint(r, lambda seen: np.where(seen > 0, r, -r)), joint(-r, lambda seen: np.clip(seen, -r, r))]
    curve = sampled_gaussian_curve(1 / r, q, 2)
    for epsilon in (0.0, 0.3, 1.0):
        allowed = float(curve.delta(epsilon))
        grown = math.exp(epsilon)
        found = [np.maximum(law - grown * never, 0).sum() for law in (always, *others)]
        found += [np.maximum(never - grown * law, 0).sum() for law in (always, *others)]
        assert max(found) <= allowed * (1 + 1e-4)
        assert max(found) >= allowed * 0.99


@pytest.mark.parametrize(
    "pair",
    [
        sampled._Removed(0.8, 0.05),
        sampled._Added(0.8, 0.05),
        sampled._Replaced(0.8, 0.05),
        sampled._Removed(3.0, 1e-3),
        sampled._Added(0.01, 0.3),
    ],
)
def test_masses_dominate_in_both_halves_and_edges_are_where_they_should_be(pair):
    one = sampled._discretised(pair)
    kind = {"_Removed": "removed", "_Added": "added", "_Replaced": "replaced"}[type(pair).__name__]
    for epsilon in (-1.0, -0.1, -0.01, 0.0, 0.001, 0.1, 1.0):
        held = (
            float((one.masses * np.maximum(-np.expm1(np.minimum(epsilon - one.losses, 0.0)), 0.0)).sum()) + one.infinite
        )
        exact = float(once(pair.r, pair.q, kind, np.array(epsilon)))
        assert exact * (1 - 1e-9) - 1e-12 <= held <= exact + 2 * one.step
    mp.mp.dps = 40
    for loss in one.losses[:: max(1, len(one.losses) // 25)]:
        x = pair.edges(np.array([loss]))[0]
        if not math.isfinite(x):
            continue
        ratio = [
            mp.log(
                1 - mp.mpf(pair.q) + mp.mpf(pair.q) * mp.exp(s * mp.mpf(pair.r) * mp.mpf(x) - mp.mpf(pair.r) ** 2 / 2)
            )
            for s in (1, -1)
        ]
        true = {"removed": ratio[0], "added": -ratio[0], "replaced": ratio[0] - ratio[1]}[kind]
        assert abs(true - mp.mpf(loss)) <= pair.slack


def test_powers_against_plain_convolution():
    rng = np.random.default_rng(1)
    for times in (1, 2, 7, 40):
        masses = rng.random(60) ** 3
        masses *= 0.999 / masses.sum()
        one = Masses(0.02, -25, masses, 1e-7)
        law = np.ones(1)
        for _ in range(times):
            law = np.convolve(law, masses)
        losses = 0.02 * (np.arange(len(law)) - 25 * times)
        found = power(one, times)
        for k in (0, 3, 20, min(60, len(found) - 1)):
            exact = float((law * np.maximum(-np.expm1(np.minimum(0.02 * k - losses, 0)), 0)).sum())
            assert exact <= found[k] <= exact * 1.0001 + 1.01e-7 * times + 1e-15


def test_windows_that_are_too_long_are_made_coarser(monkeypatch):
    usual = sampled._composed(sampled._Removed(0.5, 0.1), 200, (1e-5,))
    monkeypatch.setattr(_powers, "_LONGEST", 800)
    coarse = sampled._composed(sampled._Removed(0.5, 0.1), 200, (1e-5,))
    assert too_long(sampled._discretised(sampled._Removed(0.5, 0.1)), 200) > 1
    assert len(coarse.epsilons) < len(usual.epsilons) / 2
    assert float(usual.epsilon(1e-5)) < float(coarse.epsilon(1e-5)) < 1.05 * float(usual.epsilon(1e-5))


def test_no_sampling_is_the_gaussian_and_more_of_anything_costs_more():
    for epsilon in (0.0, 0.5, 2.0):
        assert float(sampled_gaussian_curve(5.0, 1.0, 25).delta(epsilon)) == pytest.approx(
            float(gaussian_delta(1.0, epsilon)), rel=1e-3
        )
        assert float(sampled_gaussian_curve(5.0, 1.0, 25, replaced=True).delta(epsilon)) == pytest.approx(
            float(gaussian_delta(2.0, epsilon)), rel=1e-3
        )
    base = {"multiplier": 2.0, "sampling": 0.1, "times": 50}
    at = float(sampled_gaussian_curve(**base).epsilon(1e-6))
    for change in ({"multiplier": 1.9}, {"sampling": 0.11}, {"times": 55}, {"replaced": True}):
        assert float(sampled_gaussian_curve(**{**base, **change}).epsilon(1e-6)) > at * 1.01
    assert sampled_gaussian_curve(2.0, 0.0, 5).delta(0.0) == 0.0


@pytest.mark.parametrize(
    ("z", "q", "times"),
    [
        (1e-3, 0.5, 10),
        (0.07, 1e-3, 3),
        (1e6, 0.1, 1000),
        (1e10, 0.1, 10),
        (1.0, 2**-32, 100),
        (1.0, 1 - 2**-32, 10),
        (100.0, 0.01, 10**6),
    ],
)
@pytest.mark.parametrize("replaced", [False, True])
def test_extremes_give_a_curve(z, q, times, replaced):
    curve = sampled_gaussian_curve(z, q, times, replaced=replaced)
    mu = math.sqrt(times) * (2 if replaced else 1) / z
    for epsilon in (0.0, 1e-3, 1.0):
        assert float(curve.delta(epsilon)) <= min(float(gaussian_delta(mu, epsilon)) * 1.001, 1.0) + 1e-12
        assert (
            float(curve.delta(epsilon))
            >= float(exact_once(1 / z, q, "removed", np.array([epsilon]))[0]) * (1 - 1e-9) - 1e-12
        )


def test_searching():
    assert sampled_gaussian_multiplier(1.0, 0.01, 0.001, 1) == pytest.approx(1 / 16)  # so rare that no noise is needed
    assert sampled_gaussian_multiplier(1.0, 1e-6, 1.0, 4) == pytest.approx(2 * 4.2247, rel=1e-3)
    assert least_root(lambda x: math.exp(-x) - 1e-3, 0.0, -5.0, 1e-6) == pytest.approx(math.log(1000), abs=2e-6)
    for wrong in (
        {"sampling": 1.5},
        {"sampling": -0.1},
        {"times": 0},
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"sampling": 0.0},
    ):
        with pytest.raises(InvalidValue):
            sampled_gaussian_multiplier(**{"epsilon": 1.0, "delta": 1e-5, "sampling": 0.1, "times": 10, **wrong})
    with pytest.raises(InvalidValue):
        sampled_gaussian_curve(0.0, 0.1, 5)


def test_the_normal_distribution_function_is_as_exact_as_is_counted_on():
    mp.mp.dps = 40
    for x in np.linspace(-29.7, 8.0, 200):
        true = mp.erfc(-mp.mpf(float(x)) / mp.sqrt(2)) / 2
        assert abs(mp.mpf(float(special.ndtr(x))) / true - 1) < sampled._NORMAL_ERROR / 3


def test_what_is_rarer_than_any_coin_is_refused_by_name():
    with pytest.raises(InvalidValue, match=r"sampling=1e-17 is less than 2\^-40"):
        sampled_gaussian_curve(1.0, 1e-17, 1000)
    assert 0 <= float(sampled_gaussian_curve(9e8, 2.0**-40, 100_000).delta(0.0)) < 1e-6


def test_what_edges_may_be_off_by_is_as_printed():
    """Formula pin: η = 64u(1 + |log q| + r(r + 13.5)) for every release: stated at ε + Tη, and e^{Tη} − 1 more at ε = 0."""
    q, r, times = 0.1, 0.5, 40
    pair = sampled._Removed(r, q)
    eta = 64 * 2.0**-53 * (1 - math.log(q) + r * (r + 13.5))
    curve = sampled._composed(pair, times, (1e-6,))
    assert curve.epsilons[1] == pytest.approx(times * eta, rel=1e-12, abs=0.0)
    assert curve.deltas[0] - curve.deltas[1] == pytest.approx(math.expm1(times * eta), rel=0.01, abs=0.0)
    step = (curve.epsilons[101] - curve.epsilons[1]) / 100
    one = sampled._discretised(pair)
    assert step / one.step - 1 == pytest.approx(1e-12, rel=0.05, abs=0.0)
