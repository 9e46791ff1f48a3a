"""The least noise for a target: it is met, and half a per cent less does not meet it."""

import math
import random

import pytest

import netdp
from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.account.walk import sum_bounds
from netdp.families.token.calibration import calibrate_walk
from netdp.families.token.plan import plan_token
from netdp.protocols import RingSum, WalkDescent, WalkSum
from netdp.protocols.calibration import smallest
from netdp.protocols.family import load

DELTA = 1e-6


@pytest.mark.parametrize(
    ("protocol", "epsilon", "observers"),
    [
        (WalkSum(40, 80, 1.0, sender="hidden"), 0.5, 1),
        (WalkSum(40, 80, 1.0, contributions=2), 0.5, 1),
        (WalkSum(12, 24, 1.0, sender="receiver-known"), 1.0, 2),
        (WalkSum(12, 24, 1.0, sender="known"), 1.0, 2),
        (WalkDescent(100, 300, 1.0, step=0.1, clip=0.4, sender="hidden"), 1.0, 1),
        (WalkDescent(100, 300, 1.0, step=0.1, clip=0.4, sender="hidden", release="named"), 1.0, 1),
        (WalkDescent(20, 40, 1.0, step=0.1, sender="known"), 2.0, 1),  # the first bound is not the best one
        (WalkDescent(500, 5000, 1.0, step=0.1, clip=0.4, sender="hidden"), 10.0, 1),  # very weak noise
    ],
    ids=["sum", "limited", "receiver", "known", "descent", "descent-named", "descent-known", "descent-weak-noise"],
)
def test_the_target_is_met_and_no_less_noise_would_do(protocol, epsilon, observers):
    found = calibrate_walk(protocol, epsilon, DELTA, observers)
    assert found == protocol.replace(sigma=found.sigma)
    group = list(range(observers))
    assert netdp.account(found, group).worst_epsilon(DELTA) <= epsilon
    less = protocol.replace(sigma=found.sigma * 0.995)
    assert netdp.account(less, group).worst_epsilon(DELTA) > epsilon


def test_a_bound_that_never_meets_the_target_is_passed_over():
    """Against seven of ten the openings lose more than δ, whatever the noise: the local bound decides."""
    walk = WalkSum(10, steps=30, sigma=5.0)
    assert all(sum_bounds(walk.replace(sigma=sigma), 7)[0]().epsilon(DELTA) == math.inf for sigma in (5.0, 1e3, 1e6))
    found = netdp.calibrate(walk, 1.0, DELTA, colluders=7)
    assert netdp.account(found, colluders=7).worst_epsilon(DELTA) <= 1.0
    assert netdp.account(found.replace(sigma=found.sigma * 0.995), colluders=7).worst_epsilon(DELTA) > 1.0
    plan = plan_token(10, 1.0, DELTA, visits=3, colluders=7)
    assert len(plan.options) == 5
    assert all(option.guarantee.worst_epsilon(DELTA) <= 1.0 for option in plan.options)


@pytest.mark.parametrize("seed", range(40))
def test_walks_against_coalitions_of_any_size(seed):
    rng = random.Random(seed)
    n = rng.randint(3, 30)
    colluders, steps = rng.randint(1, n - 1), rng.randint(n, 4 * n)
    options = {"sender": rng.choice(["hidden", "receiver-known", "known"])}
    if rng.random() < 0.25:
        options["contributions"] = rng.randint(1, 3)
    if rng.random() < 0.7:
        law, tokens = rng.choice(["gaussian", "gaussian", "laplace"]), rng.choice([1, 1, 2])
        walk = WalkSum(n, steps, rng.choice([0.1, 10.0]), law=law, tokens=tokens, **options)
    else:
        walk = WalkDescent(n, steps, 1.0, step=0.1, clip=0.5, **options)
    epsilon, delta = 10 ** rng.uniform(-1.5, 1), 10 ** rng.uniform(-9, -2)
    found = netdp.calibrate(walk, epsilon, delta, colluders=colluders)
    assert found == walk.replace(sigma=found.sigma)
    assert netdp.account(found, colluders=colluders).worst_epsilon(delta) <= epsilon
    less = walk.replace(sigma=found.sigma * 0.995)
    assert netdp.account(less, colluders=colluders).worst_epsilon(delta) > epsilon


def test_a_target_that_needs_no_noise_is_refused():
    """A user that is hardly ever visited: δ alone covers it, and no σ is the least."""
    for sender in ("hidden", "known"):
        with pytest.raises(InvalidValue, match=r"met by every noise level down to .*; ask for a smaller ε or δ"):
            netdp.calibrate(WalkSum(100, 100, 1.0, sender=sender), 1.0, 0.7)


def test_the_start_does_not_matter():
    """With weak noise blocks are best, with strong noise single steps."""
    sigmas = [calibrate_walk(WalkSum(60, 120, sigma, sender="hidden"), 0.2, DELTA).sigma for sigma in (0.05, 100.0)]
    assert sigmas[0] == pytest.approx(sigmas[1], rel=2e-3)


def test_zero_out_needs_less():
    p = WalkDescent(100, 300, 1.0, step=0.1)
    zeroed = calibrate_walk(p, 1.0, DELTA, adjacency="zero-out")
    assert zeroed.sigma < calibrate_walk(p, 1.0, DELTA).sigma
    assert netdp.account(zeroed, [0], adjacency="zero-out").worst_epsilon(DELTA) <= 1.0


@pytest.mark.parametrize("noise", ["single", "distributed"])
def test_rings(noise):
    found = netdp.calibrate(RingSum(12, 5, 1.0, noise=noise), 1.0, DELTA)
    worst = [netdp.account(found, [v]).worst_epsilon(DELTA) for v in range(12)]
    assert 0.999 < max(worst) <= 1.0
    less = found.replace(sigma=found.sigma * 0.995)
    assert max(netdp.account(less, [v]).worst_epsilon(DELTA) for v in range(12)) > 1.0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (-1.0, 1e-6), (math.inf, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0)]
)
def test_targets_that_make_no_sense(epsilon, delta):
    with pytest.raises(InvalidValue, match="finite epsilon > 0"):
        calibrate_walk(WalkSum(20, 40, 1.0), epsilon, delta)


def test_what_cannot_be_calibrated():
    with pytest.raises(Unsupported, match="closing=True"):
        netdp.calibrate(RingSum(6, 3, 1.0, closing=False), 1.0, DELTA)
    with pytest.raises(Unsupported, match="against so many colluders: somebody is seen without any noise"):
        netdp.calibrate(RingSum(6, 3, 1.0), 1.0, DELTA, colluders=2)
    for observers in (0, 20, -1):
        with pytest.raises(InvalidValue, match="cannot collude"):
            calibrate_walk(WalkSum(20, 40, 1.0), 1.0, DELTA, observers)
    for colluders in (0, -1, [0, 1], 0.5, True):
        with pytest.raises(InvalidValue, match="colluders must be a whole number ≥ 1"):
            netdp.calibrate(WalkSum(20, 40, 1.0), 1.0, DELTA, colluders=colluders)


def test_smallest_finds_the_root_from_anywhere():
    for guess in (1e-6, 0.1, 3.0, 1e6):
        calls = []

        def loss(sigma, calls=calls):
            calls.append(sigma)
            return 2.0 / sigma + 1.0 / sigma**2

        root = smallest(loss, 1.5, guess)
        assert loss(root) <= 1.5 < loss(root * (1 - 1.1e-3))
        assert root in calls
    with pytest.raises(Unsupported, match="no noise level"):
        smallest(lambda sigma: 2.0, 1.0, 1.0)
    # one that stays just above the target for long, and then falls below it
    root = smallest(lambda sigma: 1.0001 if sigma < 1e4 else 0.5, 1.0, 1.0)
    assert 1e4 <= root < 1e4 * (1 + 1.1e-3)
    # an infinite one is given up soon, one that ends being infinite far away is not
    asked = []
    with pytest.raises(Unsupported, match="no noise level from 3 on meets ε = 1"):
        smallest(lambda sigma: asked.append(sigma) or math.inf, 1.0, 3.0)
    assert len(asked) < 10
    assert max(asked) > 1e8
    assert smallest(lambda sigma: math.inf if sigma < 1e7 else 0.0, 1.0, 1.0) == pytest.approx(1e7, rel=2e-3)
    # a loss that is infinite below, and flat above
    for guess in (1.0, 3.0, 100.0):
        assert smallest(lambda sigma: math.inf if sigma < 2 else 1.0, 1.0, guess) == pytest.approx(2.0, rel=2e-3)
    # one that jumps over the target
    assert smallest(lambda sigma: 5.0 if sigma < 3 else 0.5 / sigma, 1.0, 0.1) == pytest.approx(3.0, rel=2e-3)


@pytest.mark.parametrize("tolerance", [1e-3, 3e-3])
@pytest.mark.parametrize("power", [0.8, 1.0, 1.3, 2.0])
def test_the_search_asks_for_few_losses(power, tolerance):
    """Each is a composition that takes a second: from half or twice the answer five must do."""
    for guess in (0.5, 0.7, 1.5, 2.0):
        asked = []

        def loss(sigma, asked=asked):
            asked.append(sigma)
            return sigma**-power + 0.1 / sigma

        root = smallest(loss, 1.1, guess, tolerance)
        assert root in asked
        assert 1.0 <= root <= 1 + tolerance
        assert len(asked) <= 5


def test_accounting_for_what_was_found_costs_nothing(monkeypatch):
    """The search has composed all bounds at the σ that it returns; they are kept."""
    found = calibrate_walk(WalkDescent(50, 100, 1.0, step=0.1, sender="hidden"), 1.0, DELTA)

    load(WalkDescent, "account")  # what is imported later would keep the function that fails

    def fail(*_):
        raise AssertionError("composed again")

    monkeypatch.setattr("netdp.families.token.account.events.compose_events", fail)
    assert netdp.account(found, [0]).worst_epsilon(DELTA) <= 1.0
