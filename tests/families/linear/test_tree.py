"""The tree sum: the matrices are what the parties do, and the loss is that of sums worked out by hand."""

from fractions import Fraction

import numpy as np
import pytest

import netdp
from netdp.audit.audits import audit_pair, look
from netdp.audit.findings import Verdict
from netdp.errors import InvalidValue
from netdp.privacy import GaussianCurve

SIZES = (2, 3, 4, 6, 7, 8, 12)


def below(n, u):
    """u and everybody under it."""
    return [u] + [w for child in (2 * u + 1, 2 * u + 2) if child < n for w in below(n, child)]


def sent(n, u, noisy, masks):
    """What u passes on, told as the protocol is: what its children sent, and its own, and its mask."""
    children = [child for child in (2 * u + 1, 2 * u + 2) if child < n]
    own = noisy[u] + sum(sent(n, child, noisy, masks) for child in children)
    sibling = u + 1 if u % 2 else u - 1
    if u == 0 or sibling >= n:
        return own
    return own + (1 if u % 2 else -1) * masks[(u - 1) // 2]


@pytest.mark.parametrize("n", SIZES)
def test_the_messages_are_what_the_parties_send(n):
    p = netdp.TreeSum(n, sigma=1.5, masks=4.0)
    view = p.view()
    rng = np.random.default_rng(0)
    x, z = rng.random(n), rng.standard_normal(view.noise.shape[1])
    told = [sent(n, u, x + 1.5 * z[:n], 1.5 * 2.0 * z[n:]) for u in range(n)]
    np.testing.assert_allclose(view.data @ x + view.noise @ z, told, rtol=1e-12)
    assert view.readers == (None, *(((u - 1) // 2,) for u in range(1, n)))
    assert view.known == (*((u,) for u in range(n)), *((u, u + 1) for u in range(1, n - 1, 2)))


def energy(n, kappa, v):
    """μ²σ²/Δ² against v, in fractions: v reads two masked sums below it, and the sum of everybody that is not below it."""
    children = [below(n, child) for child in (2 * v + 1, 2 * v + 2) if child < n]
    rest = [u for u in range(n) if u not in below(n, v)]
    found = {u: Fraction(1, len(rest)) for u in rest}
    for k, mine in enumerate(children):
        a = len(mine)
        b = len(children[1 - k]) if len(children) == 2 else None
        # the covariance of the two is [[a + κ, −κ], [−κ, b + κ]]
        one = Fraction(1, a) if b is None else (b + kappa) / (a * b + kappa * (a + b))
        found.update(dict.fromkeys(mine, one))
    return [float(found[u]) if u != v else np.nan for u in range(n)]


@pytest.mark.parametrize("kappa", [Fraction(0), Fraction(1, 2), Fraction(100)])
@pytest.mark.parametrize("n", SIZES)
def test_the_loss_is_the_one_worked_out_by_hand(n, kappa):
    p = netdp.TreeSum(n, sigma=2.0, masks=float(kappa), sensitivity=0.5)
    for v in range(n):
        loss = netdp.account(p, [v])
        expected = np.array(energy(n, kappa, v)) / 16
        np.testing.assert_allclose(loss.mu**2, expected, rtol=1e-9)
        others = np.arange(n) != v
        assert (loss.mu[others] ** 2 >= expected[others] * (1 - 1e-15)).all()  # margins are on the safe side
        assert loss.claim == "exact"


def test_a_child_that_colludes_takes_the_mask_away():
    bare, masked = netdp.TreeSum(7, sigma=2.0), netdp.TreeSum(7, sigma=2.0, masks=1e4)
    assert netdp.account(masked, [1, 4]).mu[3] == pytest.approx(netdp.account(bare, [1, 4]).mu[3])
    assert netdp.account(masked, [1]).mu[3] < 0.72 * netdp.account(bare, [1]).mu[3]


def test_masks_cost_no_accuracy():
    masked = netdp.TreeSum(7, sigma=2.0, masks=100.0)
    assert netdp.expected_error(masked).rmse == pytest.approx(2 / np.sqrt(7))
    runs = [netdp.simulate(masked, np.zeros(7), seed).estimates[0, 0] for seed in range(2000)]
    assert np.mean(np.square(runs)) == pytest.approx(4 / 7, rel=0.15)  # 5 standard errors
    large = netdp.simulate(netdp.TreeSum(1023, sigma=1e-6, masks=1.0), np.linspace(0, 1, 1023), 1)
    np.testing.assert_allclose(large.estimates, 0.5, atol=1e-5)


def test_the_two_classical_ways_are_those_of_a_mean():
    p = netdp.TreeSum(9, sigma=2.0, masks=3.0)
    assert netdp.local_dp(p).mu == pytest.approx(0.5)
    assert netdp.trusted_curator(p).mu == pytest.approx(0.5 / 3)


def test_the_noise_is_found_and_no_less_would_do():
    p = netdp.calibrate(netdp.TreeSum(7, sigma=1.0, masks=100.0), epsilon=1.0, delta=1e-5)
    worst = max(netdp.account(p, [v]).worst_epsilon(1e-5) for v in range(7))
    assert 0.999 < worst <= 1.0
    assert p.sigma < netdp.calibrate(netdp.TreeSum(7, sigma=1.0), epsilon=1.0, delta=1e-5).sigma


def test_the_attack_attains_the_claim_and_refutes_that_of_masks_that_are_not_there():
    masked, bare = netdp.TreeSum(7, sigma=1.0, masks=100.0), netdp.TreeSum(7, sigma=1.0)
    found = audit_pair(masked, look(masked, [1], 3), trials=30_000, confidence=0.999)
    assert found.verdict is Verdict.ATTAINED, (found.claimed, found.measured.epsilon)
    promised = GaussianCurve(float(netdp.account(masked, [1]).mu[3]))
    assert audit_pair(bare, look(bare, [1], 3), trials=30_000, curve=promised).refuted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 1}, "n must be a whole number ≥ 2, got 1; a tree needs a root"),
        ({"masks": -1.0}, "masks must be a finite number ≥ 0"),
        ({"masks": 1e300, "sigma": 1e20}, "masks = 1e"),
        ({"sigma": 0.0}, "sigma must be"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(InvalidValue, match=message):
        netdp.TreeSum(7, sigma=1.0).replace(**change)
