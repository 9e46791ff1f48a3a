"""The histogram on a ring: the certified profile against all responses enumerated, hop by hop."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.token.account.ring import heap_profile, heaps
from netdp.families.token.ring import RingHistogram
from netdp.privacy import ProfileCurve
from netdp.privacy.clones import response_profile
from netdp.protocols.table import certified

EPSILONS = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0])


def add(law, counts):
    """The law of (readings, heap) after a random element with these chances per value joins the heap."""
    after = defaultdict(float)
    for (readings, heap), chance in law.items():
        for value, weight in enumerate(counts):
            if weight:
                grown = tuple(h + (i == value) for i, h in enumerate(heap))
                after[readings, grown] += chance * weight
    return after


def read(law):
    after = defaultdict(float)
    for (readings, heap), chance in law.items():
        after[(*readings, heap), heap] += chance
    return after


def view_law(p, data, observers):
    """The law of everything the observers read. What they add themselves is known to them: it is left out."""
    L = p.domain
    uniform = [1 / L] * L
    law = {((), (0,) * L): 1.0}
    if 0 not in observers:
        for _ in range(p.blanket):
            law = add(law, uniform)
    for k, u in itertools.product(range(p.rounds), range(p.n)):
        answer = [p.gamma / L + (1 - p.gamma) * (i == data[k][u]) for i in range(L)]
        law = read(law) if u in observers else add(law, answer)
    if p.closing and p.n - 1 not in observers:
        for _ in range(p.blanket):
            law = add(law, uniform)
    final = read(law)
    result = defaultdict(float)
    for (readings, _), chance in final.items():
        result[readings] += chance
    return result


def true_deltas(p, target, observers, data, other):
    """sup over events of P(S) − e^ε Q(S), for two data sets that differ in the target alone."""
    P, Q = view_law(p, data, observers), view_law(p, other, observers)
    keys = sorted(set(P) | set(Q))
    a, b = np.array([P[k] for k in keys]), np.array([Q[k] for k in keys])
    return np.array([np.maximum(a - np.exp(e) * b, 0).sum() for e in EPSILONS])


CASES = [
    (RingHistogram(3, 1, 2, 0.4), (0,)),
    (RingHistogram(3, 1, 2, 0.4), (2,)),
    (RingHistogram(3, 2, 2, 0.5), (1,)),
    (RingHistogram(4, 1, 3, 0.5), (1,)),
    (RingHistogram(4, 2, 2, 0.3, closing=False), (2,)),
    (RingHistogram(4, 1, 2, 0.5), (0, 2)),
    (RingHistogram(4, 1, 4, 0.7), (3,)),
]


@pytest.mark.parametrize(("p", "observers"), CASES)
def test_never_below_the_truth(p, observers):
    loss = certified(p, observers)
    rng = np.random.default_rng(1)
    hidden = [u for u in range(p.n) if u not in observers]
    for target in hidden:
        worst = np.zeros(len(EPSILONS))
        rest = [u for u in hidden if u != target]
        # all data of the others if they are few, else a sample with the extreme ones
        choices = list(itertools.product(range(p.domain), repeat=len(rest) * p.rounds))
        if len(choices) > 16:
            choices = [choices[0], choices[-1], *(choices[i] for i in rng.choice(len(choices), 8, replace=False))]
        for choice in choices:
            data = np.zeros((p.rounds, p.n), dtype=int)
            data[:, rest] = np.reshape(choice, (p.rounds, len(rest)))
            other = data.copy()
            other[:, target] = 1
            worst = np.maximum(worst, true_deltas(p, target, observers, data, other))
            worst = np.maximum(worst, true_deltas(p, target, observers, other, data))
        certain = np.array([loss.delta(e)[target] for e in EPSILONS])
        assert (certain >= worst - 1e-12).all(), (target, certain, worst)
        # not silly either: at ε = 0 it is below that of K bare responses, composed
        bare = response_profile(0, p.domain, p.gamma).self_compose(p.rounds)
        assert certain[0] <= bare.delta(0.0) + 1e-9
        assert certain[0] <= 3 * worst[0] + 1e-9


def test_two_counts_alone_would_not_be_enough():
    """L = 4, the others hold a third value: the fourth count tells how many of them were random.

    The profile that only looks at the counts of the two values in question is below the truth; ours is not.
    """
    p = RingHistogram(4, 1, 4, 0.7, closing=False)
    data = np.array([[0, 2, 2, 0]])
    other = np.array([[1, 2, 2, 0]])
    truth = true_deltas(p, 0, (3,), data, other)

    def counts(q0, q1):
        law = {((), (0, 0)): 1.0}
        for p0 in [0.7 / 4] * 2 + [1 / 4] * p.blanket:
            after = defaultdict(float)
            for (_, (a, b)), chance in law.items():
                after[(), (a + 1, b)] += chance * p0
                after[(), (a, b + 1)] += chance * p0
                after[(), (a, b)] += chance * (1 - 2 * p0)
            law = after
        final = defaultdict(float)
        for (_, (a, b)), chance in law.items():
            final[a + 1, b] += chance * q0
            final[a, b + 1] += chance * q1
            final[a, b] += chance * (1 - q0 - q1)
        return final

    own, rest = 0.3 + 0.7 / 4, 0.7 / 4
    P, Q = counts(own, rest), counts(rest, own)
    naive = np.array([sum(max(P[k] - np.exp(e) * Q[k], 0.0) for k in P) for e in EPSILONS])
    assert (naive < truth - 1e-6).any()
    loss = certified(p, (3,))
    assert all(loss.delta(e)[0] >= t - 1e-12 for e, t in zip(EPSILONS, truth, strict=True))


def test_heaps_of_a_ring():
    p = RingHistogram(6, rounds=4, domain=2, gamma=0.5)
    for observers in [(0,), (5,), (2,), (0, 5), (1, 2, 4)]:
        kinds, times = heaps(p, observers)
        hidden = [u for u in range(6) if u not in observers]
        assert (times[hidden].sum(axis=1) == 4).all()
        assert not times[list(observers)].any()
    kinds, times = heaps(p, (0,))  # user 0 knows the starting blanket
    assert kinds.tolist() == [[4, 0], [4, 3]]
    assert times[1].tolist() == [3, 1]
    kinds, _ = heaps(p, (0, 5))  # and user 5 the closing one
    assert kinds.tolist() == [[3, 0]]


def test_bins_of_the_number_of_random_elements_are_sound_and_close():
    for others, sure, domain, gamma in [(40, 5, 3, 0.3), (60, 0, 2, 0.5), (3, 2, 5, 0.6)]:
        ours, direct = heap_profile(others, sure, domain, gamma), response_profile(others, domain, gamma, sure=sure)
        for delta in (1e-3, 1e-6):
            assert ours.epsilon(delta) >= direct.epsilon(delta) * (1 - 2e-3)
            assert ours.epsilon(delta) <= direct.epsilon(delta) * 1.03


def test_statement_and_limits():
    p = RingHistogram(60, rounds=3, domain=4, gamma=0.5)
    loss = certified(p, (30,))
    assert loss.claim == "upper"
    assert loss.factor is None
    assert isinstance(loss.curve, ProfileCurve)
    epsilon = loss.epsilon(1e-5)
    assert np.isnan(epsilon[30])
    others = np.delete(epsilon, 30)
    assert (others < 0.75 * 3 * p.epsilon0).all()
    assert np.delete(loss.epsilon(0.0), 30) == pytest.approx(3 * p.epsilon0)
    assert len(np.unique(others[:30])) == 1  # all users before the observer are alike
    assert len(np.unique(others[30:])) == 1
    # without the closing blanket the users after the observer have less cover at the release
    bare = certified(p.replace(closing=False), (57,)).epsilon(1e-5)
    covered = certified(p, (57,)).epsilon(1e-5)
    assert bare[59] > covered[59] * 1.05
    assert bare[0] == pytest.approx(covered[0], rel=1e-3)
    # observers on both sides take all cover away: three bare responses
    alone = response_profile(0, 4, 0.5).self_compose(3)
    assert certified(p, (57, 59)).epsilon(1e-3)[58] == pytest.approx(alone.epsilon(1e-3), rel=1e-2)
    assert np.delete(certified(p.replace(gamma=1.0), (30,)).epsilon(0.0), 30).max() == 0.0


def test_more_users_hide_better():
    worst = [np.nanmax(certified(RingHistogram(n, 1, 2, 0.5), (n // 2,)).epsilon(1e-6)) for n in (50, 200, 800)]
    assert worst[0] > 1.8 * worst[1] > 1.8 * 1.8 * worst[2]


def test_unknown_options_are_refused_by_name():
    assert certified(RingHistogram(10, 1, 2, 0.5), (3,), progress=None).claim == "upper"
    with pytest.raises(InvalidValue, match="takes no option 'banana'"):
        certified(RingHistogram(10, 1, 2, 0.5), (3,), banana=1)
