"""Crowds against the truth: labelled reports of three or four users, every label and every response enumerated.

Proof: docs/proofs/shuffle.md#crowds.
"""

import itertools
import math

import numpy as np
import pytest

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account.hiding import crowd_heap, groups
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.privacy.clones import Heap, shuffled_epsilon

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
ANY = Randomizer(E0)
EPSILONS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.95, 1.08])


def crowd_delta(laws, classes=None, randomizer=ANY):
    """δ of user 0 at EPSILONS by the theorem, its label in one of the `classes` (by default one of all labels), or revealed."""
    victim, others = laws[0], laws[1:]
    alone = randomizer.heap().deltas(EPSILONS)
    total, left = np.zeros(len(EPSILONS)), 1.0
    for labels in [range(len(victim))] if classes is None else classes:
        inside = [label for label in labels if victim[label] > 0]
        if inside:
            chance = min(1.0, victim[inside].sum())
            shares = np.clip(chance * (others[:, inside] / victim[inside]).min(axis=1), 0.0, 1.0)
            total += chance * crowd_heap(shares, randomizer).deltas(EPSILONS)
            left -= chance
    return np.minimum(total + max(left, 0.0) * alone, alone)


def view(laws, data, response=RESPONSE):
    """The law of the set of (label, content), one per report."""
    out = {(): 1.0}
    for law, x in zip(laws, data, strict=True):
        grown = {}
        for held, mass in out.items():
            for label, content in itertools.product(range(len(law)), range(response.shape[1])):
                if law[label] > 0:
                    key = tuple(sorted((*held, (label, content))))
                    grown[key] = grown.get(key, 0.0) + mass * law[label] * response[x, content]
        out = grown
    return out


def distance(P, Q):
    keys = P.keys() | Q.keys()
    p, q = (np.array([law.get(k, 0.0) for k in keys]) for law in (P, Q))
    grow = np.exp(EPSILONS)[:, None]
    return np.maximum(np.maximum(p - grow * q, 0).sum(axis=1), np.maximum(q - grow * p, 0).sum(axis=1))


def truth(laws, response=RESPONSE):
    """True δ of user 0 at EPSILONS, the worst over the others' data."""
    worst = np.zeros(len(EPSILONS))
    for others in itertools.product(
        range(min(3, len(response))), repeat=len(laws) - 1
    ):  # two more values are as one more
        worst = np.maximum(worst, distance(*(view(laws, (x, *others), response) for x in (0, 1))))
    return worst


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_never_below_the_truth(n, seed):
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(3, 0.7 if seed % 2 else 4.0), size=n)
    laws[seed % n, 2] = 0.0
    laws /= laws.sum(axis=1, keepdims=True)
    real = truth(laws)
    whole, split = crowd_delta(laws), crowd_delta(laws, [[0], [1], [2]])
    two, dropped = crowd_delta(laws, [[0, 1], [2]]), crowd_delta(laws, [[0, 1]])
    for bound in (whole, split, two, dropped):
        assert (real <= bound + 1e-12).all()
    assert (two <= dropped + 1e-12).all()


def kary(k):
    """k-ary randomized response with ε₀ = ln 3."""
    return (np.full((k, k), 1.0) + 2 * np.eye(k)) / (k + 2)


@pytest.mark.parametrize(("n", "k", "seed"), [(2, 2, 0), (2, 3, 1), (2, 4, 2), (3, 3, 3), (3, 4, 4), (4, 3, 5)])
def test_k_ary_responses_in_groups_of_different_chances(n, k, seed):
    """Others who are in the crowd with probabilities of their own, and draw uniformly then or not: every label and response."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(2, 2.0), size=n)
    real = truth(laws, kary(k))
    mechanism = Randomizer(E0, values=k)
    whole, split = (crowd_delta(laws, classes, mechanism) for classes in (None, [[0], [1]]))
    for bound in (whole, split):
        assert (real <= bound + 1e-12).all()
    if k > 2:
        assert (crowd_delta(laws, None, mechanism) < crowd_delta(laws))[:-1].all()
        # what is gained needs the mechanism: binary response under a k-ary claim is above it
        assert (truth(np.tile([0.5, 0.5], (n, 1))) > mechanism.heap(n - 1).deltas(EPSILONS)).any()


def test_k_ary_responses_are_nearly_reached():
    laws = np.tile([0.5, 0.5], (3, 1))
    bound, real = crowd_delta(laws, None, Randomizer(E0, values=3)), truth(laws, kary(3))
    assert (bound <= 1.35 * real + 1e-9)[:3].all()


def test_more_uniform_draws_than_there_are_would_be_unsound():
    """Half as many again among the others: below the truth."""
    k, laws = 3, np.tile([0.5, 0.5], (3, 1))
    made = Randomizer(E0, values=k).makeup
    planted = Heap.of(0, E0, crowd=[(2, 1.0)], **{**made, "p": 1.5 * made["p"]})
    assert (truth(laws, kary(k)) > planted.deltas(EPSILONS) + 1e-4).any()


def test_equal_laws_are_the_uniform_shuffler_and_it_is_reached():
    laws = np.tile([0.2, 0.3, 0.5], (4, 1))
    bound = crowd_delta(laws)
    assert bound == pytest.approx(Heap.of(3, E0).deltas(EPSILONS), abs=1e-12)
    assert bound == pytest.approx(truth(laws), abs=4e-2)


def test_the_least_ratio_and_not_the_overlap_is_needed():
    """1 − total variation is the chance of a common label if one may couple, and more than min p_w/p_u: too much."""
    laws = np.array([[0.3, 0.7], [0.0, 1.0], [0.0, 1.0]])
    real = truth(laws)
    honest, split = crowd_delta(laws), crowd_delta(laws, [[0], [1]])
    overlap = crowd_heap(np.full(2, 0.7), ANY).deltas(EPSILONS)
    assert (real <= honest).all()
    assert (real <= split).all()
    assert (split < honest)[1:-1].all()
    assert (real > overlap + 1e-3).any()


def test_nothing_of_the_victim_need_be_revealed():
    """Laws that differ by a third leave most of the gain; the older bound has nothing left at this δ."""
    s = 1 / 3
    older = Heap.of(999, 1.0, keep=1 - s, revealed=s).epsilon(1e-6)
    newer = crowd_heap(np.full(999, (1 - s) / (1 + s)), Randomizer(1.0)).epsilon(1e-6)
    assert older > 0.99
    assert newer == pytest.approx(shuffled_epsilon(499, 1.0, 1e-6), rel=0.03)


def test_groups_lose_little_and_never_gain():
    rng = np.random.default_rng(0)
    for shares in (rng.uniform(0, 1, 5000), rng.beta(8, 0.3, 5000), np.exp(rng.uniform(-12, 0, 5000)), np.zeros(4)):
        found = groups(shares)
        assert len(found) <= 32
        ordered = np.sort(shares)[::-1]
        rounded = np.concatenate([np.full(count, share) for count, share in found] or [np.zeros(0)])
        assert (rounded <= ordered[: len(rounded)]).all()
        assert rounded.sum() >= 0.8 * shares.sum()
    assert groups(np.ones(7)) == ((7, 1.0),)


def test_a_crowd_in_groups_is_the_sum_of_its_groups():
    eps = np.linspace(0, 0.9, 7)
    together = Heap.of(0, 1.0, crowd=[(30, 0.5), (30, 0.5)])
    assert together.deltas(eps) == pytest.approx(Heap.of(60, 1.0, keep=0.5).deltas(eps), rel=1e-9)
    mixed = Heap.of(10, 1.0, crowd=[(20, 0.25)], delta0=1e-9)
    assert (mixed.deltas(eps) <= Heap.of(10, 1.0, delta0=1e-9).deltas(eps) + 1e-7).all()
    assert (mixed.deltas(eps) >= Heap.of(30, 1.0, delta0=1e-9).deltas(eps) - 1e-12).all()


def test_refusals():
    with pytest.raises(InvalidValue, match=r"probabilities.*1\.5"):
        crowd_heap([0.5, 1.5], ANY)
    with pytest.raises(Unsupported, match="delta0"):
        Heap.of(0, 1.0, p=0.1, q=0.2, blank=0.1, delta0=1e-9, crowd=[(3, 0.5)])
