"""How far liars move a model (docs/proofs/learning.md#influence): adversarial search never beats the bound, and reaches it."""

import itertools

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.protocol import CentralDescent, LocalDescent
from netdp.families.gossip.descent import GossipDescent
from netdp.families.masked.descent import MaskedDescent
from netdp.families.token.ring import RingDescent
from netdp.families.token.walk import WalkDescent
from netdp.learn import FromGradients, Landscape, influence, train
from netdp.protocols.training import clipped

CLIP = 0.8


class Liars:
    """Losses of which some parties answer with whatever an adversary likes, clipped as everybody's gradients are."""

    def __init__(self, honest, who, answers, iteration):
        self.honest, self.who, self.answers, self.iteration = honest, who, answers, iteration
        self.n, self.d = honest.n, honest.d

    def gradients(self, models, clip):
        found = self.honest.gradients(models, clip)
        found[self.who] = clipped(self.answers(self.iteration[0], models), clip)
        return found

    def expansion(self, step, clip):
        return 1.0


def convex(n, d, rng):
    """Logistic-like: gradients of a convex smooth function, never clipped."""
    rows, labels = rng.standard_normal((n, d)) / np.sqrt(d), np.sign(rng.standard_normal(n))

    def gradient(models):
        margin = (models * rows).sum(axis=1) * labels
        return -(labels / (1 + np.exp(margin)))[:, None] * rows * 0.4

    losses = FromGradients(gradient, n, d, smoothness=0.4)

    class Smooth:
        n, d = losses.n, losses.d

        def gradients(self, models, clip):
            return losses.gradients(models, clip)

        def expansion(self, step, clip):
            return 1.0

    return Smooth()


def descents(n):
    yield CentralDescent(n, 6, sigma=0.3, step=0.7, clip=CLIP)
    yield LocalDescent(n, 6, sigma=0.3, step=0.7, clip=CLIP)
    yield GossipDescent(graphs.ring(n), 6, 2, sigma=0.3, step=0.7, clip=CLIP)
    yield GossipDescent(graphs.path(n), 6, 3, sigma=0.3, step=0.7, clip=CLIP, accelerated=True, masks=1.0)


def apart(protocol, honest, who, answers):
    iteration = [0]

    def count(t, models):
        iteration[0] = t + 1

    lied = train(protocol, Liars(honest, who, answers, iteration), 5, after=count).models
    return np.linalg.norm(lied - train(protocol, honest, 5).models, axis=1)


def test_adversaries_stay_below_the_bound():
    rng = np.random.default_rng(1)
    n, d = 5, 2
    for protocol, who in itertools.product(descents(n), ([2], [0, 3])):
        bound = influence(protocol, who)
        for trial in range(6):
            honest, aim = convex(n, d, rng), rng.standard_normal(d)
            plans = [
                lambda t, models, aim=aim, who=who: np.tile(9 * aim, (len(who), 1)),
                lambda t, models, aim=aim, who=who: np.tile((-1) ** t * 9 * aim, (len(who), 1)),
                lambda t, models, who=who: -9 * models[who] - 1e-9,  # reacts: away from the middle
            ]
            found = apart(protocol, honest, who, plans[trial % 3])
            assert (found <= bound * (1 + 1e-9) + 1e-12).all()


def test_the_bound_is_attained_where_the_honest_do_not_care():
    n = 5
    for protocol in descents(n):
        if getattr(protocol, "accelerated", False):
            continue
        # a party that would pull one way pulls the other: the others have no gradient at all
        pulling = FromGradients(lambda models: np.eye(n)[:, [2]] * CLIP + 0 * models, n, 1, 0.0)
        found = apart(protocol, pulling, [2], lambda t, models: np.array([[-CLIP]]))
        np.testing.assert_allclose(found, influence(protocol, [2]), rtol=1e-9)


def test_strong_convexity_forgets():
    valley = Landscape(1, 1.0, 1.0, convexity=0.5)
    for T in (5, 500):
        p = CentralDescent(10, T, sigma=1.0, step=0.6, clip=CLIP)
        assert influence(p, [0], valley)[0] <= 2 * CLIP / (10 * 0.5)
        assert influence(p, [0], valley)[0] == pytest.approx(2 * 0.6 * CLIP / 10 * (1 - 0.7**T) / 0.3)
    assert influence(p, [0])[0] == pytest.approx(2 * 0.6 * CLIP / 10 * 500)
    # gossip on a quadratic: exact, honest gradient h(θ − c)
    gossip = GossipDescent(graphs.ring(5), 30, 2, sigma=0.1, step=0.6, clip=9.0, expansion=2.0)
    quadratic = FromGradients(lambda models: 0.5 * models, 5, 1, smoothness=0.5)
    found = apart(gossip, quadratic, [1], lambda t, models: np.array([[-9.0]]))
    bound = influence(gossip, [1], Landscape(1, 0.5, 1.0, convexity=0.5))
    assert (found <= bound).all()
    assert (found >= 0.4 * bound).all()


def test_a_token_is_moved_once_per_visit():
    p = WalkDescent(10, 200, sigma=1.0, step=0.1, clip=CLIP)
    each = 2 * 0.1 * CLIP
    assert influence(p, [3, 4])[0] == pytest.approx(each * 200 * 0.2)
    likely = influence(p, [3, 4], failure=1e-3)[0] / each
    visits = np.random.default_rng(0).binomial(200, 0.2, 20_000)
    assert 0 < (visits > likely).mean() < 2e-3
    assert (visits > likely - 2).mean() > 5e-4
    assert influence(p.replace(contributions=3), [3, 4])[0] == pytest.approx(each * 6)
    assert influence(p.replace(radius=0.5), [3])[0] == 1.0
    assert influence(p.replace(tokens=4), [3], failure=1e-3)[0] < influence(p, [3], failure=1e-3)[0]
    weights = tuple(np.arange(1, 11) / 55)
    assert influence(p.replace(weights=weights), [9])[0] == pytest.approx(each * 200 * 10 / 55)
    star = WalkDescent(graphs.star(10), 200, sigma=1.0, step=0.1, clip=CLIP, walk="simple")
    assert influence(star, [0])[0] == pytest.approx(each * 200 / 2)  # the hub holds it half of the time
    with pytest.raises(Unsupported, match="on the complete graph only"):
        influence(star, [0], failure=0.1)


def test_on_a_ring_those_who_come_last_count_most_where_steps_contract():
    p = RingDescent(4, 3, sigma=1.0, step=0.5, clip=CLIP)
    assert influence(p, [1])[0] == pytest.approx(2 * 0.5 * CLIP * 3)
    valley = Landscape(1, 1.0, 1.0, convexity=0.5)
    early, late = (influence(p, [u], valley)[0] for u in (0, 3))
    assert early == pytest.approx(0.75**3 * late)
    # exact: honest gradients 0.5·θ, a liar that says −CLIP instead
    honest = lied = 0.0
    for u in [0, 1, 2, 3] * 3:
        honest, lied = honest - 0.25 * honest, lied - 0.5 * (-CLIP if u == 3 else 0.5 * lied)
    assert abs(lied - honest) <= late
    assert influence(p.replace(radius=0.1), [1])[0] == 0.2


def test_what_is_refused():
    p = CentralDescent(5, 3, sigma=1.0, step=0.5)
    assert influence(p, []).tolist() == [0.0] * 5
    for wrong in (3, "Bob", None, [5], [1, 1], [0.5]):
        with pytest.raises(InvalidValue):
            influence(p, wrong)
    with pytest.raises(InvalidValue, match=r"losses must be a netdp\.learn\.Landscape"):
        influence(p, [0], 0.5)
    with pytest.raises(InvalidValue, match="a protocol such as"):
        influence("p", [0])
    with pytest.raises(Unsupported, match="which group is the middle one"):
        influence(MaskedDescent(graphs.ring(9), 3, sigma=1.0, step=0.1, groups=3, aggregate="median"), [0])
    masked = MaskedDescent(graphs.ring(5), 3, sigma=1.0, step=0.5)
    assert influence(p, [0])[0] <= influence(masked, [0])[0] <= 1.02 * influence(p, [0])[0]
    assert (influence(masked, []) == 0).all()


def test_a_coarse_grid_lets_liars_do_more() -> None:
    # found by an attack: what a liar sends, and what honest gradients become, is rounded: 0.6 counts as 1
    protocol = MaskedDescent(graphs.ring(4), 3, sigma=1.0, step=1.0, clip=0.6, grid=1.0)

    def model(first: float, others: float) -> float:
        theta = 0.0
        for _ in range(protocol.iterations):
            # the others: gradient of a Huber loss, flat up to where it is rounded
            sent = [first, *[float(np.clip(0.55 * theta - others, -0.6, 0.6))] * 3]
            theta -= protocol.step * sum(float(np.floor(g + 0.5)) for g in sent) / 4
        return theta

    bound = influence(protocol, [0])[0]
    assert 1.5 <= max(abs(model(-0.6, x) - model(0.6, x)) for x in np.linspace(-0.6, 0.6, 49)) <= bound
