"""Rings in a new random order every round: all orders of small rings enumerated, the told experiment counted out.

Proof: docs/proofs/token.md#secret-ring.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import netdp
from netdp.errors import InvalidValue
from netdp.families.token.account import ring
from netdp.privacy import gaussian_delta, gaussian_epsilon
from netdp.protocols import PathSum, RingSum, SecretRingSum

EPS = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0])
DELTA = 1e-6


def lengths_of(n, places):
    """How many users stand between observers at these places, the empty stretches included."""
    edges = [-1, *sorted(places), n]
    return [after - before - 1 for before, after in itertools.pairwise(edges)]


def mixture_delta(weights, means, others, variances):
    """δ(ε) of two mixtures of Gaussians with independent coordinates, integrated on a grid."""
    everything = np.concatenate([means, others])
    axes = [
        np.linspace(everything[:, i].min() - 8 * math.sqrt(v), everything[:, i].max() + 8 * math.sqrt(v), 81)
        for i, v in enumerate(variances)
    ]
    cell = math.prod(axis[1] - axis[0] for axis in axes)

    def density(centres):
        total = np.zeros([len(axis) for axis in axes])
        for weight, centre in zip(weights, centres, strict=True):
            one = weight
            for i, (axis, v) in enumerate(zip(axes, variances, strict=True)):
                shape = [1] * len(axes)
                shape[i] = -1
                one = one * (np.exp(-((axis - centre[i]) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v)).reshape(shape)
            total = total + one
        return total

    p, q = density(means), density(others)
    return np.array([cell * np.maximum(p - math.exp(e) * q, 0).sum() for e in EPS])


def merged(rows):
    """Equal pairs of means put together."""
    weights = defaultdict(float)
    for pair, weight in rows:
        weights[pair] += weight
    keys = list(weights)
    return [weights[k] for k in keys], np.array([k[0] for k in keys]), np.array([k[1] for k in keys])


def true_delta(n, colluders, sigma, own, other, rest):
    """One round, the order hidden: δ(ε) for u with the values own and other, everybody else holding `rest`."""
    total, count = np.zeros(len(EPS)), 0
    for places in itertools.combinations(range(n), colluders):
        count += 1
        lengths = lengths_of(n, places)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        rows = []
        for order in set(itertools.permutations([*range(len(rest)), "u"])):
            sums = []
            for value in (own, other):
                held = [value if who == "u" else rest[who] for who in order]
                sums.append(tuple(round(float(s), 9) for s in np.bincount(owner, held, len(lengths)) if s is not None))
            rows.append((tuple(tuple(s[j] for j, m in enumerate(lengths) if m) for s in sums), 1.0))
        weights, means, others = merged(rows)
        variances = [m * sigma**2 / n for m in lengths if m]
        total += mixture_delta(np.array(weights) / sum(weights), means, others, variances)
    return total / count


@pytest.mark.parametrize(("n", "colluders"), [(4, 1), (5, 1), (5, 2), (6, 2)])
@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_hidden_orders_are_covered(n, colluders, sigma):
    """Every bound, with every length from which a stretch counts as long, against the exact mixture of all orders."""
    p = SecretRingSum(n, 1, sigma, sender="hidden")
    thresholds = ring._thresholds(n, colluders)
    assert thresholds == [2] or (n, colluders) == (5, 2)
    truth = np.zeros(len(EPS))
    for rest in itertools.combinations_with_replacement((0.0, 1.0), n - colluders - 1):
        truth = np.maximum(truth, true_delta(n, colluders, sigma, 0.0, 1.0, rest))
    assert truth[0] > 0.05
    for curve in (ring._told(p, colluders), *(ring._hidden(p, colluders, b) for b in thresholds)):
        assert (truth <= np.asarray(curve.delta(EPS)) + 1e-9).all()
    # where all others hold the same value little is lost: the bound is not far above the truth
    assert float(ring._told(p, colluders).delta(0.0)) < 2.2 * truth[0]


def test_two_rounds_are_covered():
    """n = 3, one observer, two rounds: the stretch across the end of a round is seen as a whole, the bound shows both halves."""
    n, sigma = 3, 1.5
    truth = np.zeros(len(EPS))
    for z in (0.0, 0.5, 1.0):
        total = np.zeros(len(EPS))
        for first, second in itertools.product(range(n), repeat=2):
            cut = lengths_of(2 * n, (first, n + second))
            owner = np.repeat(np.arange(3), cut)
            rows = []
            for one, two in itertools.product(itertools.permutations("uz"), repeat=2):
                sums = []
                for own in (0.0, 1.0):
                    held = [own if who == "u" else z for who in (*one, *two)]
                    sums.append(tuple(float(s) for s, m in zip(np.bincount(owner, held, 3), cut, strict=True) if m))
                rows.append((tuple(sums), 0.25))
            weights, means, others = merged(rows)
            total += mixture_delta(weights, means, others, [m * sigma**2 / n for m in cut if m]) / n**2
        truth = np.maximum(truth, total)
    p = SecretRingSum(n, 2, sigma)
    assert (truth <= np.asarray(ring.ring_profile(p).delta(EPS))).all()
    assert float(ring.ring_profile(p).delta(0.3)) < 2 * truth[2]


@pytest.mark.parametrize(("n", "colluders"), [(3, 1), (5, 1), (6, 2), (7, 3), (6, 5)])
def test_told_orders_are_attained(n, colluders):
    """The law of u's stretch from all places; with one round and public orders the bound is the loss itself."""
    law = np.zeros(n - colluders + 1)
    for places in itertools.combinations(range(n), colluders):
        for m in lengths_of(n, places):
            law[m] += m / (n - colluders) / math.comb(n, colluders)
    np.testing.assert_allclose(ring._own_law(n, colluders), law, rtol=1e-12)
    assert ring.stretch_law(n, colluders).sum() == pytest.approx(1.0)
    p = SecretRingSum(n, 1, 2.0)
    m = np.arange(1, n - colluders + 1)
    exact = [float(law[1:] @ gaussian_delta(np.sqrt(n / m) / 2, e)) for e in EPS]
    found = ring.ring_profile(p, colluders).delta(EPS)
    assert (exact <= found).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "c", "b"), [(6, 2, 2), (8, 1, 2), (8, 1, 3), (9, 1, 4), (9, 2, 3), (10, 3, 2), (11, 2, 3)]
)
def test_what_is_told_counted_out(n, c, b):
    """q is what the proof says, whatever was told; Λ lies below every law of the long stretch in stochastic order."""
    N = n - c
    least = N - c * (b - 1)
    laws, weight_of = defaultdict(lambda: defaultdict(Fraction)), defaultdict(Fraction)
    odds = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for places in itertools.combinations(range(n), c):
        chance = Fraction(1, math.comb(n, c))
        slots = [m for m in lengths_of(n, places) for _ in range(m)]
        long, short = [i for i in range(N) if slots[i] >= b], [i for i in range(N) if slots[i] < b]
        M = len(long)
        assert least <= M
        kappa = {s: Fraction(least, M * c * slots[s]) for s in short}
        assert sum(kappa.values()) <= 1
        for s, one in itertools.product(short, long):
            both = (Fraction(1, N * M), kappa[s] / N)
            odds[places, s, one] = both
            laws[slots[s]][slots[one]] += chance * sum(both)
            weight_of[slots[s]] += chance * sum(both)
        for one in long:
            laws["none"][slots[one]] += chance * (1 - sum(kappa.values())) / N
    for (places, s, _), (there, elsewhere) in odds.items():
        m = [m for m in lengths_of(n, places) for _ in range(m)][s]
        assert there / (there + elsewhere) == Fraction(c * m, c * m + least)
    for m, weight in weight_of.items():
        q = c * m / (c * m + least)
        assert float(weight) == pytest.approx(ring._own_law(n, c)[m] / q)
    starts, weights = ring._long_law(n, c, b)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    for law in laws.values():
        whole = sum(law.values())
        if not whole:
            continue
        for t in range(b, N + 1):
            below = float(sum(w for k, w in law.items() if k <= t) / whole)
            assert weights[starts <= t].sum() >= below - 1e-12


def test_two_colluders_no_longer_see_everything():
    """On a fixed ring the neighbours of a user see all its contributions, with their own noise; here that takes luck."""
    n, rounds, sigma = 1000, 10, 30.0
    fixed = netdp.account(RingSum(n, rounds, sigma, noise="distributed"), [499, 501])
    losses = [
        netdp.account(SecretRingSum(n, rounds, sigma, sender=s), [499, 501]).worst_epsilon(DELTA)
        for s in ring_senders()
    ]
    assert fixed.worst_epsilon(DELTA) == pytest.approx(float(gaussian_epsilon(math.sqrt(n * rounds) / sigma, DELTA)))
    assert fixed.worst_epsilon(DELTA) > 8 * losses[0]
    assert losses[0] > 2 * losses[1]
    curator = netdp.trusted_curator(SecretRingSum(n, rounds, sigma)).worst_epsilon(DELTA)
    assert curator < losses[1] < 2 * curator


def ring_senders():
    return ("known", "hidden")


def test_order():
    """More colluders learn more, more noise hides more; local DP is never better, the curator never worse."""
    base = SecretRingSum(60, 5, 6.0)
    for sender in ring_senders():
        p = base.replace(sender=sender)
        eps = [float(ring.ring_profile(p, c).epsilon(1e-4)) for c in (1, 2, 5, 20, 59)]
        assert eps == sorted(eps)
        assert float(ring.ring_profile(p.replace(sigma=9.0)).epsilon(1e-4)) < eps[0]
        local, curator = netdp.local_dp(p).worst_epsilon(1e-4), netdp.trusted_curator(p).worst_epsilon(1e-4)
        assert curator < eps[0]
        assert eps[-1] <= local * (1 + 1e-3)
    assert ring.ring_profile(base, 59).epsilon(1e-4) == pytest.approx(local, rel=1e-2)


def test_what_is_assumed_is_what_the_proof_uses():
    known, hidden = (
        " ".join(netdp.account(SecretRingSum(6, 2, 2.0, sender=s), [0]).assumptions) for s in ring_senders()
    )
    for text in (known, hidden):
        assert "settled before the orders were drawn" in text
        assert "one for every round" in text
    assert "the orders may be public once they are drawn" in known
    assert "two values of one contribution" in known
    assert "nobody learns anything of the order" in hidden
    assert "values of all users in one round lie in one public set" in hidden


def test_calibrated_against_colluders():
    p = netdp.calibrate(SecretRingSum(200, 4, 1.0, sender="hidden"), 1.0, DELTA, colluders=3)
    loss = netdp.account(p, [1, 50, 100]).worst_epsilon(DELTA)
    assert 0.99 < loss <= 1.0
    with pytest.raises(InvalidValue, match="200 of 200"):
        netdp.calibrate(p, 1.0, DELTA, colluders=200)


def test_runs_and_what_happened():
    p = SecretRingSum(6, 3, 1e-9)
    values = np.arange(18).reshape(3, 6, 1) / 18
    run = netdp.simulate(p, values, seed=2, record=[1, 4])
    np.testing.assert_allclose(run.estimates, values.mean(), atol=1e-8)
    orders = run.protocol.paths[0].reshape(3, 6)
    assert all(sorted(order) == list(range(6)) for order in orders.tolist())
    assert len({tuple(order) for order in orders.tolist()}) == 3
    realised = netdp.account(p, [1, 4], transcript=run.transcript)
    np.testing.assert_allclose(realised.epsilon(0.1), netdp.account(run.protocol, [1, 4]).epsilon(0.1))
    assert isinstance(run.protocol, PathSum)
    wrong = netdp.families.token.views.TokenTranscript(6, [[0, 1, 2, 3, 4, 4] * 3])
    with pytest.raises(InvalidValue, match="round 0 of this transcript does not visit every user"):
        netdp.account(p, [1], transcript=wrong)
    with pytest.raises(InvalidValue, match=r"must have shape \(3, 6, d\)"):
        netdp.simulate(p, values[:2], seed=0)


def test_the_mean_over_orders_of_what_happened_is_below_the_bound():
    """The exact loss of drawn paths, stretches across rounds joined: their mean δ is a lower bound on that of the bound."""
    from netdp.families.token.simulate import draw_orders

    p = SecretRingSum(20, 4, 6.0)
    deltas = [float(np.asarray(netdp.account(draw_orders(p, seed), [3, 9]).delta(0.5))[0]) for seed in range(200)]
    bound = float(ring.ring_profile(p, 2).delta(0.5))
    assert 0.4 * bound < np.mean(deltas) < bound


def test_the_error_is_that_of_the_noise():
    p = SecretRingSum(10, 4, 3.0)
    expected = netdp.expected_error(p)
    assert expected.total == pytest.approx(9 / (4 * 100))
    runs = [float(netdp.simulate(p, np.full(10, 0.3), seed).estimates[0, 0]) for seed in range(600)]
    assert np.mean((np.array(runs) - 0.3) ** 2) == pytest.approx(expected.total, rel=0.25)


def test_refusals():
    for change, message in (
        ({"n": 2}, "n ≥ 3"),
        ({"sender": "receiver-known"}, "known, hidden"),
        ({"rounds": 0}, "rounds"),
    ):
        with pytest.raises(InvalidValue, match=message):
            SecretRingSum(5, 2, 1.0).replace(**change)
    with pytest.raises(netdp.errors.Unsupported, match="has no published formula"):
        netdp.account(SecretRingSum(5, 2, 1.0), [0], method="published")
