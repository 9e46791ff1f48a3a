"""Predicted excess risk against exact risks of quadratic losses, where every run is linear.

Proof: docs/proofs/learning.md#excess-risk.
"""

import itertools
import json

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.protocol import CentralDescent, LocalDescent
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import response
from netdp.families.token.ring import RingDescent
from netdp.families.token.walk import WalkDescent
from netdp.learn import FromGradients, LogisticParties, train
from netdp.models.parties import Landscape
from netdp.protocols import ExcessRisk
from netdp.protocols.accuracy import expected_error
from netdp.protocols.risk import weights

CURVES = np.array([0.5, 1.0, 0.75, 1.0, 0.6])
CENTRES = np.array([1.0, -0.5, 2.0, 0.5, 1.5])


class Quadratic:
    """f_v(θ) = h_v/2·(θ − c_v)², one number: the mean has its minimum at Σhc/Σh."""

    def __init__(self, curves=CURVES, centres=CENTRES):
        self.h, self.c = curves, centres
        self.best = float((curves * centres).sum() / curves.sum())
        self.clip = 60.0  # never reached

    @property
    def landscape(self):
        return Landscape(1, float(self.h.max()), abs(self.best), float(self.h.min()))

    def excess(self, second_moment):
        """E f(θ) − f* from E(θ − θ*)²."""
        return self.h.mean() / 2 * second_moment


def moments(steps, start, kept):
    """E(Σ kept_t·θᵗ_i − best)² for every party of θ⁺ = A(θ) + B z, z fresh: `steps` are (A, shift, B)."""
    n = len(start)
    mean, columns = start.copy(), np.zeros((n, 0))
    total, spread = np.zeros(n), np.zeros((n, 0))
    for (A, shift, B), share in zip(steps, kept, strict=True):
        mean = A @ mean + shift
        columns = np.hstack([A @ columns, B])
        total += share * mean
        spread = np.hstack([spread, np.zeros((n, B.shape[1]))]) + share * columns
    return total, (spread**2).sum(axis=1)


def exact(protocol, losses, average):
    """The exact excess risk, mean over the parties."""
    n, T, nu = protocol.n, protocol.iterations, protocol.step
    m = losses.landscape.convexity if average == "weighted" else 0.0
    kept = weights(nu, m, T) if average == "weighted" else np.eye(T)[T - 1]
    if isinstance(protocol, GossipDescent):
        rounds = protocol.rounds_of(0)
        *_, P = response(rounds.matrix.dot, np.eye(n), rounds.rounds + 1, rounds.chebyshev)
        L = protocol.graph.laplacian().toarray()
        root = np.linalg.cholesky(np.eye(n) + protocol.masks * L)
        noise = nu * protocol.sigma * P @ root
    else:
        P = np.full((n, n), 1 / n)
        noise = nu * protocol.sigma * P
    A = P @ np.diag(1 - nu * losses.h)
    step = (A, P @ (nu * losses.h * losses.c), noise)
    mean, variance = moments([step] * T, np.zeros(n), kept)
    return float(losses.excess((mean - losses.best) ** 2 + variance).mean())


def protocols(step, iterations, sigma, clip):
    yield CentralDescent(5, iterations, sigma=sigma, step=step, clip=clip)
    yield LocalDescent(5, iterations, sigma=sigma, step=step, clip=clip)
    for options in ({}, {"accelerated": True, "masks": 2.0}):
        yield GossipDescent(graphs.ring(5), iterations, 6, sigma=sigma, step=step, clip=clip, expansion=2.0, **options)


@pytest.mark.parametrize("average", ["last", "weighted"])
@pytest.mark.parametrize(
    ("step", "iterations", "sigma"), [(1.0, 3, 0.0001), (0.3, 12, 0.5), (0.1, 40, 2.0), (0.5, 30, 1.0)]
)
def test_bounds_hold_for_quadratic_losses_and_are_not_far_off(average, step, iterations, sigma):
    losses = Quadratic()
    # a tight clip that is never reached: gradients stay below it where models stay within 4 of 0
    for p in protocols(step, iterations, sigma, clip=4.0):
        truth = exact(p, losses, average)
        bound = expected_error(p, losses.landscape, average=average)
        assert isinstance(bound, ExcessRisk)
        assert bound.total >= truth * (1 - 1e-9)
        # how far models differ is bounded with the clip, not with their gradients; the start with the least curvature of all
        if not isinstance(p, GossipDescent) and sigma >= 0.5:
            assert bound.total <= 30 * truth
        if average == "last":
            estimate = expected_error(p, losses.landscape, shape="quadratic")
            assert estimate.claim.value == "estimate"
            assert estimate.total >= truth * (1 - 1e-9)  # these losses are quadratic
            if not isinstance(p, GossipDescent) and sigma >= 0.5:
                assert estimate.total <= 4 * truth
        flat = Landscape(1, losses.landscape.smoothness, losses.landscape.distance)
        if average == "last":
            assert expected_error(p, flat).total >= truth * (1 - 1e-9)


def test_exact_risks_are_those_of_a_run():
    """The linear recursion above against training: without noise they agree to the last digits."""
    losses = Quadratic()
    real = FromGradients(lambda models: losses.h[:, None] * (models - losses.c[:, None]), n=5, d=1, smoothness=1.0)
    for p in protocols(0.3, 7, 1e-12, clip=50.0):
        for average in ("last", "weighted"):
            m = losses.landscape.convexity if average == "weighted" else 0.0
            run = train(p, real, 0, average=average, convexity=m)
            found = losses.excess((run.models - losses.best) ** 2).mean()
            assert found == pytest.approx(exact(p, losses, average), rel=1e-6)


def test_the_noise_term_is_of_the_right_size():
    """Many steps on one curvature: the stationary variance is νs²/(2h − νh²), the bound at the weighted average above it."""
    losses = Quadratic(np.full(5, 1.0), np.full(5, 0.0))
    p = CentralDescent(5, 400, sigma=1.0, step=0.05, clip=9.0)
    truth, bound = exact(p, losses, "weighted"), expected_error(p, losses.landscape, average="weighted")
    assert truth < bound.total < 60 * truth
    last, bound = exact(p, losses, "last"), expected_error(p, losses.landscape)
    assert last < bound.total < 20 * last


def walk_exact(protocol, losses, liars=(), push=0.0):
    """All paths of a token, exactly: the mean over paths of the exact second moment of a linear recursion."""
    n, T, eta = protocol.n, protocol.steps, protocol.step
    total = 0.0
    for path in itertools.product(range(n), repeat=T):
        mean, variance = 0.0, 0.0
        for u in path:
            if u in liars:
                mean, variance = mean - eta * push, variance
            else:
                mean, variance = (
                    mean - eta * losses.h[u] * (mean - losses.c[u]),
                    (1 - eta * losses.h[u]) ** 2 * variance,
                )
            variance += (eta * protocol.sigma) ** 2
        total += (mean - losses.best) ** 2 + variance
    return float(losses.excess(total / n**T))


@pytest.mark.parametrize(("step", "sigma"), [(0.05, 0.3), (0.3, 0.01), (0.6, 1.0)])
def test_a_token_on_all_paths(step, sigma):
    losses = Quadratic(np.array([0.5, 1.0, 0.8]), np.array([1.0, -0.5, 2.0]))
    p = WalkDescent(3, 7, sigma=sigma, step=step, clip=4.0)
    for landscape in (losses.landscape, Landscape(1, 1.0, abs(losses.best))):
        assert expected_error(p, landscape).total >= walk_exact(p, losses)
    tight = p.replace(clip=2.5)  # no gradient is larger: centres up to 2, models between them but for little noise
    assert expected_error(tight, losses.landscape).total >= walk_exact(p, losses)
    assert expected_error(p, losses.landscape).total <= 400 * walk_exact(p, losses)


@pytest.mark.parametrize(("step", "sigma"), [(0.05, 0.3), (0.2, 0.01), (0.3, 1.0)])
def test_a_token_on_a_ring(step, sigma):
    losses = Quadratic(np.array([0.5, 1.0, 0.8]), np.array([1.0, -0.5, 2.0]))
    for rounds in (1, 4, 20):
        p = RingDescent(3, rounds, sigma=sigma, step=step, clip=4.0)
        mean = variance = 0.0
        for u in [0, 1, 2] * rounds:
            mean, variance = mean - step * losses.h[u] * (mean - losses.c[u]), (1 - step * losses.h[u]) ** 2 * variance
            variance += (step * sigma) ** 2
        truth = losses.excess((mean - losses.best) ** 2 + variance)
        assert truth <= expected_error(p, losses.landscape).total
        mean_with_liar = 0.0
        for u in [0, 1, 2] * rounds:
            pull = -4.0 if u == 1 else losses.h[u] * (mean_with_liar - losses.c[u])
            mean_with_liar -= step * pull
        liar = losses.excess((mean_with_liar - losses.best) ** 2)
        assert liar <= expected_error(p, losses.landscape, malicious=1).total
    with pytest.raises(Unsupported, match="only the last model"):
        expected_error(p, losses.landscape, average="weighted")


def test_liars_are_paid_for():
    """Constant pushes of length L, either way: the risk stays below the prediction, and lying matters."""
    losses = Quadratic()
    for p in protocols(0.4, 15, 0.05, clip=4.0):
        n, T, nu = p.n, p.iterations, p.step
        honest = expected_error(p, losses.landscape).total
        bound = expected_error(p, losses.landscape, malicious=1).total
        assert bound > honest
        for liar, push in itertools.product(range(n), (-4.0, 4.0)):
            h, pulled = losses.h.copy(), losses.h * losses.c
            h[liar], pulled[liar] = 0.0, -push
            if isinstance(p, GossipDescent):
                rounds = p.rounds_of(0)
                *_, P = response(rounds.matrix.dot, np.eye(n), rounds.rounds + 1, rounds.chebyshev)
            else:
                P = np.full((n, n), 1 / n)
            mean, _ = moments(
                [(P @ np.diag(1 - nu * h), P @ (nu * pulled), np.zeros((n, 0)))] * T, np.zeros(n), np.eye(T)[-1]
            )
            assert losses.excess((mean - losses.best) ** 2).mean() <= bound
    walk = WalkDescent(3, 6, sigma=0.1, step=0.3, clip=3.0)
    losses = Quadratic(np.array([0.5, 1.0, 0.8]), np.array([1.0, -0.5, 2.0]))
    for push in (-3.0, 3.0):
        assert walk_exact(walk, losses, (1,), push) <= expected_error(walk, losses.landscape, malicious=1).total


def test_a_walk_on_a_graph_is_an_estimate():
    valley = Landscape(2, 0.25, 2.0)
    complete = WalkDescent(16, 160, sigma=0.5, step=0.1, clip=0.5)
    cube, ring = (complete.replace(n=16, graph=graph) for graph in (graphs.hypercube(4), graphs.ring(16)))
    found = [expected_error(p, valley) for p in (complete, cube, ring)]
    assert [risk.claim.value for risk in found] == ["upper", "estimate", "estimate"]
    assert found[0].sampling < found[1].sampling < found[2].sampling  # slower graphs, longer runs of the same gradients
    assert found[0].noise == found[1].noise == found[2].noise
    closing = expected_error(cube.replace(closing=4.0), valley)
    assert closing.noise == pytest.approx(found[1].noise + 0.25 / 2 * 2 * 4.0 * (0.1 * 0.5) ** 2)
    assert "about" in str(closing)
    assert "at most" in str(found[0])
    with pytest.raises(Unsupported, match="visited unequally often"):
        expected_error(WalkDescent(graphs.star(16), 160, sigma=0.5, step=0.1, walk="simple"), valley)
    # users that are drawn more often: liars are taken to be those
    weighted = complete.replace(weights=tuple(np.arange(1, 17) / 136))
    assert expected_error(weighted, valley, malicious=1).malice > expected_error(complete, valley, malicious=1).malice


def test_logistic_losses_in_simulation():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((160, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rows @ [2.0, -1.0, 0.5] + 0.7 * rng.standard_normal(160) > 0, 1.0, -1.0)
    data = LogisticParties.deal(rows, labels, 16)
    clip = 0.3
    least = data.risk(data._lowest(clip, 0.0), clip)
    landscape = data.landscape(clip)
    near = data.landscape(clip, penalty=0.05)
    assert near.distance < landscape.distance
    assert near.behind > 0 == landscape.behind
    cases = [
        CentralDescent(16, 30, sigma=0.5, step=2.0, clip=clip),
        GossipDescent(graphs.hypercube(4), 30, 6, sigma=0.5, step=2.0, clip=clip),
    ]
    for p, average in itertools.product(cases, ("last", "weighted")):
        runs = [train(p, data, seed, average=average).models for seed in range(8)]
        risks = [np.mean([data.risk(model, clip) for model in models[:4]]) for models in runs]
        truth, margin = np.mean(risks) - least, 4 * np.std(risks) / np.sqrt(len(risks))
        for known in (landscape, near):
            bound = expected_error(p, known, average=average).total
            assert truth - margin <= bound
            assert bound < 60 * truth


def test_the_risk_that_clipping_minimises_has_the_clipped_gradient():
    rng = np.random.default_rng(1)
    data = LogisticParties.of([rng.standard_normal((3, 2)), rng.standard_normal((2, 2))], [np.ones(3), -np.ones(2)])
    for clip in (0.2, 0.7, np.inf):
        for model in 3 * rng.standard_normal((5, 2)):
            slope = data.gradients(np.tile(model, (2, 1)), clip).mean(axis=0)
            for k in range(2):
                e = 1e-6 * np.eye(2)[k]
                assert (data.risk(model + e, clip) - data.risk(model - e, clip)) / 2e-6 == pytest.approx(
                    slope[k], abs=1e-6
                )


def test_what_is_refused():
    p = CentralDescent(4, 3, sigma=1.0, step=3.0)
    with pytest.raises(Unsupported, match=r"step=3 is longer than 1/β = 0\.5"):
        expected_error(p, Landscape(2, 2.0, 1.0))
    with pytest.raises(Unsupported, match="CentralDescent learns a model: how good"):
        expected_error(p)
    with pytest.raises(InvalidValue, match=r"predicted from a netdp\.learn\.Landscape, got list"):
        expected_error(p, [1.0])
    with pytest.raises(InvalidValue, match="unknown shape 'round'"):
        expected_error(p, Landscape(2, 0.2, 1.0), shape="round")
    with pytest.raises(InvalidValue, match="estimates the last model"):
        expected_error(p, Landscape(2, 0.2, 1.0), shape="quadratic", average="weighted")
    with pytest.raises(Unsupported, match="to and fro"):
        expected_error(RingDescent(4, 2, sigma=1.0, step=0.1), Landscape(2, 0.2, 1.0), shape="quadratic")
    with pytest.raises(InvalidValue, match="malicious=5 of 4"):
        expected_error(p, Landscape(2, 0.2, 1.0), malicious=5)
    with pytest.raises(InvalidValue, match="unknown average 'best'"):
        expected_error(p, Landscape(2, 0.2, 1.0), average="best")
    with pytest.raises(InvalidValue, match="convexity=2 is more than smoothness=1"):
        Landscape(2, 1.0, 1.0, 2.0)
    walk = WalkDescent(4, 8, sigma=1.0, step=0.1)
    with pytest.raises(Unsupported, match="only the last model is released"):
        expected_error(walk, Landscape(2, 0.2, 1.0), average="weighted")
    with pytest.raises(Unsupported, match="contributions=2"):
        expected_error(walk.replace(contributions=2), Landscape(2, 0.2, 1.0))
    with pytest.raises(Unsupported, match=r"radius=0\.5"):
        expected_error(walk.replace(radius=0.5), Landscape(2, 0.2, 1.0))
    with pytest.raises(Unsupported, match="no rmse"):
        expected_error(walk, Landscape(2, 0.2, 1.0)).rmse  # noqa: B018
    with pytest.raises(InvalidValue, match=r"convexity=1\.0 is used by average='weighted' only"):
        train(p, FromGradients(lambda models: models, 4, 2, 1.0), 0, convexity=1.0)
    separable = LogisticParties.of([np.eye(2)], [np.ones(2)])
    with pytest.raises(Unsupported, match="no best model, as a plane separates"):
        separable.landscape()
    near = separable.landscape(penalty=0.1)
    assert near.behind == pytest.approx(np.log1p(np.exp(-near.distance / np.sqrt(2))))


def test_weights_are_those_of_the_bound():
    assert weights(0.5, 0.2, 4).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights(0.5, 0.2, 4)[1:] / weights(0.5, 0.2, 4)[:-1], 1 / 0.9)
    with pytest.raises(InvalidValue, match="must be below 1"):
        weights(0.5, 2.0, 4)
    assert json.dumps(vars(Landscape(2, 1.0, 1.0)))
