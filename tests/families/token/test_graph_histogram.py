"""Histograms on graph walks: all walks and all counts of tiny graphs, moments of heaps, local DP counted out in fractions.

Proof: docs/proofs/token.md#response-moments.
"""

import collections
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

import netdp
from netdp import graphs
from netdp.families.token.account import energy, graph_walk, responses
from netdp.families.token.account.energy import EnergyMoments, laws, loss_profile
from netdp.families.token.account.responses import heap_moments, kind_of, moment_weights, published, published_slack
from netdp.graphs.transitions import transition_matrix
from netdp.privacy import gaussian_delta
from netdp.protocols import WalkHistogram

STEPS = 7
#: graph, observers, target
TINY = [
    (graphs.path(3), (0,), 2),
    (graphs.star(4), (0,), 2),
    (graphs.ring(4), (0,), 2),
    (graphs.path(4), (0, 3), 1),
    (graphs.complete(3), (1,), 0),
]
IDS = [f"{graph.name}, {observers}" for graph, observers, _ in TINY]


def all_walks(protocol):
    P, start = protocol.transition.toarray(), np.asarray(protocol.stationary)
    for path in itertools.product(range(protocol.n), repeat=protocol.steps):
        chance = start[path[0]] * math.prod(P[a, b] for a, b in itertools.pairwise(path))
        if chance:
            yield path, chance


def stretches(path, observers, target):
    """(u's visits, all steps) of every stretch that u is in, in no order."""
    found, k, m = [], 0, 0
    for holder in [*path, observers[0]]:
        if holder in observers:
            found += [(k, m)] if k else []
            k = m = 0
        else:
            k, m = k + (holder == target), m + 1
    return tuple(sorted(found))


def answers(protocol, label):
    """The law of what one response adds to the counts, as a map."""
    gamma, size = protocol.gamma, protocol.domain
    if protocol.response == "k-ary":
        return {tuple(int(i == j) for i in range(size)): gamma / size + (1 - gamma) * (j == label) for j in range(size)}
    return {
        bits: math.prod(1 - gamma / 2 if bit == (j == label) else gamma / 2 for j, bit in enumerate(bits))
        for bits in itertools.product((0, 1), repeat=size)
    }


def added(one, two):
    found = collections.defaultdict(float)
    for (x, p), (y, q) in itertools.product(one.items(), two.items()):
        found[tuple(a + b for a, b in zip(x, y, strict=True))] += p * q
    return found


def heap_losses(protocol, k, m, mine, theirs):
    """(probability, loss) of the counts of a heap, u's labels being `mine` or the other of 0 and 1."""
    worlds = []
    for label in (mine, 1 - mine):
        counts = {(0,) * protocol.domain: 1.0}
        for one in [label] * k + [theirs] * (m - k):
            counts = added(counts, answers(protocol, one))
        worlds.append(counts)
    here, there = worlds
    merged = collections.defaultdict(float)
    for counts, chance in here.items():
        merged[round(math.log(chance / there[counts]), 9)] += chance
    return merged


def told_path(protocol, observers, target, mine, theirs):
    """(probability, loss) of all that is seen, the walk told."""
    ways = collections.Counter()
    for path, chance in all_walks(protocol):
        ways[stretches(path, observers, target)] += chance
    heaps = {kind: heap_losses(protocol, *kind, mine, theirs) for way in ways for kind in way}
    total = collections.defaultdict(float)
    for way, chance in ways.items():
        seen = {0.0: chance}
        for kind in way:
            further = collections.defaultdict(float)
            for (a, p), (b, q) in itertools.product(seen.items(), heaps[kind].items()):
                further[round(a + b, 9)] += p * q
            seen = further
        for loss, p in seen.items():
            total[loss] += p
    return np.array(list(total.values())), np.array(list(total))


def delta_of(chances, losses, eps):
    return float(chances @ np.maximum(-np.expm1(eps - losses), 0.0))


@pytest.mark.parametrize(("graph", "observers", "target"), TINY, ids=IDS)
@pytest.mark.parametrize(("domain", "gamma", "response"), [(2, 0.5, "k-ary"), (3, 0.7, "k-ary"), (2, 0.6, "unary")])
def test_certified_is_above_the_told_path_and_not_far(graph, observers, target, domain, gamma, response):
    p = WalkHistogram(graph, steps=STEPS, domain=domain, gamma=gamma, response=response)
    curve = graph_walk.histogram_profile(p, observers, target, stretches=True)
    worst = 0.0
    for mine, theirs in itertools.product((0, 1), range(domain)):
        chances, losses = told_path(p, observers, target, mine, theirs)
        for eps in np.linspace(0.0, losses.max(), 25):
            assert delta_of(chances, losses, eps) <= float(curve.delta(eps)) * (1 + 1e-7) + 1e-12
        worst = max(worst, *(eps for eps in np.linspace(0, 12, 1201) if delta_of(chances, losses, eps) > 1e-4))
    assert float(curve.epsilon(1e-4)) < 1.6 * worst


@pytest.mark.parametrize(("graph", "observers", "target"), TINY, ids=IDS)
def test_moments_are_those_of_all_paths(graph, observers, target):
    p = WalkHistogram(graph, steps=STEPS, domain=3, gamma=0.6)
    P, start = transition_matrix(graph, p.walk), np.asarray(p.stationary)
    cover, law = heap_moments(kind_of(p), STEPS), laws(P, start, target, observers, STEPS)
    if len(observers) == 1:
        found = energy.single_sum_moments(P, start, target, observers[0], law, STEPS, 0.0, 9.0, cover)
    else:
        found = energy.sum_moments(law, STEPS, 0.0, 9.0, cover)
    ways = list(all_walks(p))
    for s, log in list(zip(found.s, found.logs, strict=True))[::4]:
        each = cover.logs(float(s))
        total = 0.0
        for path, chance in ways:
            if len(observers) > 1:  # what comes before u's first visit hides nothing there
                path = since_the_first(path, observers, target)
            total += chance * math.exp(
                sum(each[len(part) - 1] for k, m in stretches(path, observers, target) for part in parts(k, m))
            )
        assert log == pytest.approx(math.log(total), abs=1e-6)
        assert log >= math.log(total) - 1e-9


def since_the_first(path, observers, target):
    """Without the steps of others before u's first visit of each stretch."""
    kept, seen = [], False
    for holder in path:
        seen = holder not in observers and (seen or holder == target)
        kept += [holder] if seen or holder in observers else []
    return kept


def parts(k, m):
    """m things dealt to k in turn."""
    return [range(i, m, k) for i in range(k)]


def test_short_laws_of_gaps_only_add():
    graph = graphs.ring(5)
    p = WalkHistogram(graph, steps=40, domain=3, gamma=0.6)
    P, start, cover = transition_matrix(graph, p.walk), np.asarray(p.stationary), heap_moments(kind_of(p), 40)
    whole, short = (energy.gap_moments(laws(P, start, 2, (0,), horizon), 40, 0.0, cover) for horizon in (40, 12))
    sharp = energy.single_sum_moments(P, start, 2, 0, laws(P, start, 2, (0,), 40), 40, 0.0, 99.0, cover)
    at = 0.3
    logs = [np.interp(at, found.s, found.logs) for found in (sharp, whole, short)]
    assert logs[0] < logs[1] <= logs[2] * (1 + 1e-3)


@pytest.mark.parametrize("response", ["k-ary", "unary"])
def test_a_bare_response_has_the_moments_that_are_counted_out(response):
    p = WalkHistogram(4, steps=8, domain=4, gamma=0.4, response=response)
    up, down, none = responses._losses(p)
    assert up + down + none == pytest.approx(1.0)
    assert math.log(up / down) == pytest.approx(p.epsilon0)
    cover = heap_moments(kind_of(p), 8)
    for s in (0.05, 0.7, 3.0):
        exact = math.log(up * math.exp(s * p.epsilon0) + none + down * math.exp(-s * p.epsilon0))
        assert exact <= cover.logs(s)[0] < exact * (1 + 1e-6)
        assert cover.logs(s)[0] <= s * cover.largest
        one = exact / cover.heaps  # of a single heap: two bits are independent
        assert cover.among(s)[0] - 1 >= math.expm1(one) * (1 + 0.9e-9)
        assert (cover.weight.sum(axis=1) >= 1 + 0.9 * 16 * 64 * 2.0**-53).all()
        assert (np.diff(cover.logs(s)) <= 0).all()


def test_a_heap_has_more_moments_than_its_counts_and_not_many_more():
    p = WalkHistogram(4, steps=8, domain=3, gamma=0.6)
    cover = heap_moments(kind_of(p), 8)
    for k, m in ((1, 1), (1, 3), (1, 6), (2, 5), (3, 6)):
        counts = heap_losses(p, k, m, 0, 2)
        for s in (0.2, 1.0, 4.0):
            exact = math.log(sum(chance * math.exp(s * loss) for loss, chance in counts.items()))
            found = float(cover.shared(np.array([float(k)]), np.array([float(m)]))(s)[0])
            assert exact - 1e-6 <= found < 1.35 * exact


def test_the_integral_of_chords_and_its_margin():
    eps = np.array([0.0, 0.1, 0.5, 1.3])
    delta = np.array([0.4, 0.3, 0.1, 0.0])
    for s in (0.3, 2.0):

        def height(at, s=s):
            return (math.exp(s * at) + math.exp(-(s + 1) * at)) * np.interp(math.exp(at), np.exp(eps), delta)

        exact = sum(integrate.quad(height, a, b)[0] for a, b in itertools.pairwise(eps))
        assert moment_weights(eps, s) @ delta == pytest.approx(exact, rel=1e-9)
    assert responses._SUMMED == 1e-9


def test_the_price_of_moments_is_what_is_printed():
    s = np.geomspace(0.1, 40, 60)
    mu = 0.7
    curve = loss_profile(EnergyMoments(s, s * (s + 1) * mu**2 / 2, 1e-9))
    for eps in curve.epsilons[[3, 400, 900]]:
        heights = [a * (a + 1) * mu**2 / 2 - a * eps + math.log(a**a / (1 + a) ** (1 + a)) for a in s.tolist()]
        assert float(curve.delta(eps)) == pytest.approx(math.exp(min(heights)) + 1e-9, rel=2e-9)
    for eps in (0.5, 2.0, 3.5):
        assert float(gaussian_delta(mu, eps)) <= float(curve.delta(eps)) < 30 * float(gaussian_delta(mu, eps))
    x = np.linspace(0, 30, 4001)  # (1 − e^{−x})₊ ≤ s^s/(1+s)^{1+s}·e^{sx}, with equality somewhere
    for a in (0.1, 1.0, 7.0):
        gap = a**a / (1 + a) ** (1 + a) * np.exp(a * x) + np.expm1(-x)
        assert -1e-12 < gap.min() < 1e-4


def exact_deltas(counts, protocol):
    """δ at multiples of ε₀ of so many published responses, in fractions."""
    gamma = Fraction(protocol.gamma)
    if protocol.response == "unary":
        up, down = (1 - gamma / 2) ** 2, (gamma / 2) ** 2
    else:
        up, down = 1 - gamma + gamma / protocol.domain, gamma / protocol.domain
    none, ratio = 1 - up - down, down / up
    most = max(counts)
    found = [Fraction(0)] * (most + 1)
    for k, weight in counts.items():
        law = {0: Fraction(1)}
        for _ in range(k):
            further = collections.defaultdict(Fraction)
            for (at, p), (step, q) in itertools.product(law.items(), ((1, up), (-1, down), (0, none))):
                further[at + step] += p * q
            law = further
        for j in range(most + 1):
            found[j] += Fraction(weight) * sum(p * (1 - ratio ** (i - j)) for i, p in law.items() if i > j)
    return [float(one) for one in found]


@pytest.mark.parametrize("response", ["k-ary", "unary"])
def test_local_dp_is_counted_out_with_its_margin(response):
    p = WalkHistogram(4, steps=8, domain=5, gamma=0.375, response=response)
    counts = {1: 0.25, 2: 0.125, 6: 0.0625, 0: 0.5625}
    curve = published(p, np.array(list(counts)), np.array(list(counts.values())), 1e-7)
    exact = exact_deltas(counts, p)
    margin = 32 * 2.0**-53 * (6 + 16)
    assert published_slack(6) / margin == pytest.approx(1.0)
    assert published_slack(0) * 2**53 == pytest.approx(512)
    for j, one in enumerate(exact):
        found = float(curve.deltas[j]) - 1e-7
        assert found == pytest.approx(one * (1 + margin), rel=1e-9, abs=1e-15)
        assert curve.epsilons[j] >= j * p.epsilon0


def test_local_dp_of_a_walk_averages_over_its_visits():
    p = WalkHistogram(graphs.path(3), steps=6, domain=3, gamma=0.5, tokens=2)
    visits = collections.Counter()
    for path, chance in all_walks(p):
        visits[path.count(1)] += chance
    both = collections.Counter()
    for (a, x), (b, y) in itertools.product(visits.items(), visits.items()):
        both[a + b] += x * y
    curve = graph_walk.published_profile(p, 1)
    exact = exact_deltas(both, p)
    for j, one in enumerate(exact[:9]):
        assert one <= float(curve.delta(j * p.epsilon0)) * (1 + 1e-9) + 1e-12
        assert float(curve.delta(j * p.epsilon0)) < one * (1 + 1e-4) + 1e-11
    capped = graph_walk.published_profile(p.replace(contributions=2), 1)
    assert float(capped.delta(4 * p.epsilon0 * (1 + 1e-9))) < 1e-12
    # on the complete graph as well
    free = WalkHistogram(4, steps=5, domain=3, gamma=0.5)
    law = {k: math.comb(5, k) * 0.25**k * 0.75 ** (5 - k) for k in range(6)}
    local = netdp.local_dp(free)
    for j, one in enumerate(exact_deltas(law, free)[:5]):
        assert float(np.max(local.curve.delta(j * free.epsilon0))) == pytest.approx(one, rel=1e-6)


def test_many_responses_and_none():
    p = WalkHistogram(4, steps=8, domain=5, gamma=0.999)
    few = published(p, np.array([3_999.0]), np.ones(1), 0.0)
    many = published(p, np.array([4_001.0]), np.ones(1), 0.0)
    assert float(few.epsilon(1e-6)) < float(many.epsilon(1e-6)) < 1.05 * float(few.epsilon(1e-6))
    assert published(p, np.zeros(1), np.ones(1), 1e-5).delta(0.0) == 1e-5


def test_any_observers_learn_no_less_than_named_ones():
    graph = graphs.ring(6)
    p = WalkHistogram(graph, steps=60, domain=2, gamma=0.9)
    any_two = netdp.account(p, colluders=2)
    for members in ((1, 5), (2, 3)):
        named = netdp.account(p, list(members)).worst_epsilon(1e-5)
        assert named <= any_two.worst_epsilon(1e-5) * (1 + 1e-9)
    cover = heap_moments(kind_of(p), 60)
    bound = energy.moments_against_any(graph, p.walk, 60, 0.0, 0, 2, cover)
    P, start = transition_matrix(graph, p.walk), np.asarray(p.stationary)
    for members in ((1, 5), (2, 3), (3, 4)):
        named = energy.gap_moments(laws(P, start, 0, members, 48), 60, 0.0, cover)
        s = float(named.s[9])
        assert np.interp(s, named.s, named.logs) <= np.interp(s, bound.s, bound.logs) * (1 + 2e-2)


@pytest.mark.parametrize("gamma", [1e-9, 0.01, 0.5, 0.9999])
@pytest.mark.parametrize("response", ["k-ary", "unary"])
def test_the_curator_the_walk_and_local_dp_are_in_order(gamma, response):
    p = WalkHistogram(graphs.ring(5), steps=30, domain=4, gamma=gamma, response=response, tokens=2)
    for delta in (1e-3, 1e-6, 1e-9):
        curator, walk, local = (
            loss.epsilon(delta)[1:] for loss in (netdp.trusted_curator(p), netdp.account(p, [0]), netdp.local_dp(p))
        )
        assert (curator <= walk * (1 + 1e-9)).all()
        assert (walk <= local * (1 + 1e-9)).all()
