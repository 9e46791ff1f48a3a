"""Attacks on histograms that tokens collect: exact likelihood ratios, sound claims survive, fewer random answers do not.

Proof: docs/proofs/token.md#token-attacks.
"""

import itertools

import numpy as np
import pytest

from netdp import graphs
from netdp.audit import SIMULATOR, Verdict, audit_pair, look
from netdp.families.token.attack import RingHistogramAttack, WalkHistogramAttack, binomial, cut
from netdp.families.token.walk import KNOWN_ENDS, RELEASES
from netdp.protocols import RingHistogram, WalkHistogram

from .all_paths import possible, visits

RESPONSES = ("k-ary", "unary")


def here(*arguments):
    """The simulator; a function of this file is not sent to other processes, which take longer to start than this takes."""
    return SIMULATOR(*arguments)


def seldom_random(protocol, values, seed, normal, record):
    return SIMULATOR(protocol.replace(gamma=protocol.gamma / 2), values, seed, normal, record)


def answer(label, gamma, domain, response):
    """All answers, as counts, with their probabilities."""
    if response == "k-ary":
        return [(tuple(row), (1 - gamma) * row[label] + gamma / domain) for row in np.eye(domain, dtype=int).tolist()]
    ones = (1 - gamma) * np.eye(domain)[label] + gamma / 2
    return [(bits, float(np.prod(np.where(bits, ones, 1 - ones)))) for bits in itertools.product((0, 1), repeat=domain)]


def heap(labels, protocol, sure=0):
    """{counts: probability} of the answers of these users and so many random elements, element by element."""
    law = {(0,) * protocol.domain: 1.0}
    for label, gamma in [(label, protocol.gamma) for label in labels] + [(0, 1.0)] * sure:
        grown = {}
        for counts, chance in law.items():
            for more, p in answer(label, gamma, protocol.domain, protocol.response):
                total = tuple(a + b for a, b in zip(counts, more, strict=True))
                grown[total] = grown.get(total, 0.0) + chance * p
        law = grown
    return law


def score(attack, run):
    found = cut(attack.protocol, run)
    return found.sums(attack.ratios(found), 1)[0]


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("domain", [2, 3, 4])
@pytest.mark.parametrize(("observers", "target"), [((1,), 2), ((0,), 1), ((2,), 0), ((0, 3), 1)])
def test_on_a_ring_the_score_is_the_likelihood_ratio_of_all_heaps(domain, response, observers, target):
    ring = RingHistogram(4, rounds=2, domain=domain, gamma=0.4, response=response)
    attack = RingHistogramAttack(ring, observers, target, SIMULATOR)
    for seed in range(2):
        run = attack.run(seed > 0, seed)
        found, expected = cut(ring, run), 0.0
        for i in range(len(found.steps)):
            first = 0 if found.opens[i] else found.first[i]
            users = [(first + step) % 4 for step in range(found.steps[i])]
            sure = ring.blanket * found.opens[i] + ring.closing_blanket * found.closes[i]
            seen = tuple(int(count) for count in found.change[i])
            law = [heap([j if w == target else attack.others for w in users], ring, sure)[seen] for j in (0, 1)]
            expected += np.log(law[1] / law[0])
        assert score(attack, run) == pytest.approx(expected, abs=1e-8)


def agrees(protocol):
    attack = WalkHistogramAttack(protocol, (0,), 2, SIMULATOR)
    for seed in range(2):
        run = attack.run(seed > 0, seed)
        found, worlds, known = cut(protocol, run), [0.0, 0.0], {}
        for path, weight in possible(protocol, run.transcript.paths[0], (0,)):
            for j in (0, 1):
                chance = weight
                for i, k in enumerate(visits(path, (0,), 2)):
                    kind = (j, int(k), int(found.steps[i]))
                    if kind not in known:
                        known[kind] = heap([j] * k + [attack.others] * (found.steps[i] - k), protocol)
                    chance *= known[kind].get(tuple(int(count) for count in found.change[i]), 0.0)
                worlds[j] += chance
        assert score(attack, run) == pytest.approx(np.log(worlds[1] / worlds[0]), abs=1e-8)


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("domain", [2, 3])
def test_on_a_walk_the_score_is_the_likelihood_ratio_over_all_paths(domain, response):
    walk = WalkHistogram(4, steps=5, domain=domain, gamma=0.4, response=response)
    for sender in KNOWN_ENDS:
        for release in RELEASES:
            agrees(walk.replace(sender=sender, release=release))
    agrees(walk.replace(weights=(1, 2, 3, 1)))


@pytest.mark.parametrize(("domain", "response"), [(2, "k-ary"), (2, "unary"), (3, "unary")])
@pytest.mark.parametrize("graph", [graphs.path(4), graphs.complete(4)], ids=["path", "complete"])
def test_so_it_is_on_a_graph_where_every_count_is_that_of_a_bit(graph, domain, response):
    agrees(WalkHistogram(graph, steps=5, domain=domain, gamma=0.4, response=response))


def test_on_a_graph_with_more_labels_the_score_still_leans_the_right_way():
    attack = WalkHistogramAttack(WalkHistogram(graphs.grid(3, 3), 45, domain=4, gamma=0.4), (0,), 4, SIMULATOR)
    without, within = (attack.batch(world, 5) for world in (False, True))
    assert without.mean() < -0.5
    assert within.mean() > 0.5


def test_probabilities_of_binomial_numbers():
    from scipy.stats import binom

    for count, chance in [(0, 0.3), (7, 0.3), (40, 0.0), (40, 1.0), (500, 0.01)]:
        assert binomial(count, chance) == pytest.approx(binom.pmf(np.arange(count + 1), count, chance), abs=1e-12)


RING = RingHistogram(12, rounds=3, domain=4, gamma=0.4)
WALK = WalkHistogram(12, steps=60, domain=4, gamma=0.4, sender="hidden")


@pytest.mark.parametrize(
    "protocol",
    [
        RING,
        RING.replace(response="unary"),
        RING.replace(domain=2),
        WALK,
        WALK.replace(sender="known", tokens=2),
        WALK.replace(response="unary"),
        WALK.replace(domain=2, contributions=2),
        WalkHistogram(graphs.grid(3, 3), 45, domain=4, gamma=0.6),
    ],
    ids=["ring", "ring, unary", "ring, bits", "walk", "walk, known", "walk, unary", "walk, limited", "graph"],
)
def test_a_sound_histogram_is_not_refuted(protocol):
    assert audit_pair(protocol, look(protocol, [0], 5), trials=256, seed=1, system=here).verdict is not Verdict.REFUTED


@pytest.mark.parametrize("protocol", [RING, RING.replace(response="unary"), WALK], ids=["ring", "ring, unary", "walk"])
def test_half_as_many_random_answers_are_refuted(protocol):
    found = audit_pair(protocol, look(protocol, [0], 5), trials=1_500, seed=1, system=seldom_random)
    assert found.verdict is Verdict.REFUTED
