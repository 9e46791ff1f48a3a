"""Shuffling with faults against the truth on three and four users: all ways, all responses, all data, all patterns.

Proof: docs/proofs/shuffle.md#faulty-shuffling.
"""

import itertools
import math

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account import faults, hiding
from netdp.families.shuffle.protocol import FaultPattern
from netdp.privacy.clones import shuffled_epsilon
from netdp.protocols import FaultyShuffle, Shuffle
from netdp.protocols.accounting import account

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
EPSILONS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.95, 1.08])


def hockey(p, q):
    grow = np.exp(EPSILONS)[:, None]
    return np.maximum(np.maximum(p - grow * q, 0).sum(axis=1), np.maximum(q - grow * p, 0).sum(axis=1))


def ways(protocol, pattern, origin):
    """All ways of a report, (places at times 0 … t, or None once it is lost), and their probabilities."""
    law = {(origin,): 1.0}
    for r in range(protocol.rounds):
        P = protocol.hop(r, pattern).toarray()
        after = {}
        for way, mass in law.items():
            here = way[-1]
            if here is None:
                after[(*way, None)] = after.get((*way, None), 0.0) + mass
                continue
            for place, chance in enumerate(P[here]):
                if chance:
                    after[(*way, place)] = after.get((*way, place), 0.0) + mass * chance
            if (rest := 1 - P[here].sum()) > 1e-12:
                after[(*way, None)] = after.get((*way, None), 0.0) + mass * rest
        law = after
    return law


def seen(way, members):
    """The label: what the curator and the members see of a report's way; None if nothing."""
    final = way[-1]
    met = [t for t, place in enumerate(way) if place in members and t > 0]
    if not met:
        return None if final is None else ("handed", final)
    trace = tuple((t, way[t - 1], way[t], way[t + 1] if t + 1 < len(way) else final) for t in met)
    return (trace, final)


def label_laws(protocol, pattern, members=()):
    laws, numbers = [], {None: None}
    for u in range(protocol.n):
        law = {}
        for way, mass in ways(protocol, pattern, u).items():
            label = numbers.setdefault(seen(way, members), len(numbers))
            law[label] = law.get(label, 0.0) + mass
        laws.append(law)
    return laws


def truth(laws, victim, honest, response=RESPONSE):
    """The true δ at EPSILONS, the worst over the others' data; labels None are in no view."""
    others = [w for w in honest if w != victim]
    worst, k = np.zeros(len(EPSILONS)), len(response)
    for data in itertools.product(range(k), repeat=len(others)):
        views = []
        for value in (0, 1):
            law = {(): 1.0}
            for w, bit in zip([*others, victim], [*data, value], strict=True):
                grown = {}
                for held, mass in law.items():
                    for label, chance in laws[w].items():
                        for content in range(k):
                            if label is None:
                                key, weight = held, chance / k
                            else:
                                key = tuple(sorted((*held, k * label + content)))
                                weight = chance * response[bit, content]
                            grown[key] = grown.get(key, 0.0) + mass * weight
                law = grown
            views.append(law)
        keys = list(views[0].keys() | views[1].keys())
        worst = np.maximum(worst, hockey(*(np.array([view.get(k, 0.0) for k in keys]) for view in views)))
    return worst


def out(rounds, n, *pairs):
    table = np.zeros((rounds, n), dtype=bool)
    for r, u in pairs:
        table[r, u] = True
    return table


RATES = {"outages": 0.3, "crashes": 0.1}
CASES = {
    "unreachable": (
        FaultyShuffle(graphs.complete(4), 4, E0, laziness=0.2, **RATES),
        FaultPattern(out(4, 4, (0, 1), (1, 1), (2, 3))),
    ),
    "silent": (
        FaultyShuffle(graphs.complete(4), 4, E0, absent="silent", **RATES),
        FaultPattern(out(4, 4, (0, 0), (1, 2), (3, 2))),
    ),
    "lost": (
        FaultyShuffle(graphs.complete(3), 5, E0, lost=0.1, laziness=0.3, **RATES),
        FaultPattern(out(5, 3, (1, 0))),
    ),
    "crash": (
        FaultyShuffle(graphs.complete(4), 4, E0, laziness=0.25, **RATES),
        FaultPattern(out(4, 4, (1, 0)), out(4, 4, (0, 2), (2, 1))),
    ),
    "severed": (  # of what 0 sent in round 1 the part for 2 got through, and nothing came from 1 to 3 later
        FaultyShuffle(graphs.complete(4), 4, E0, laziness=0.25, **RATES),
        FaultPattern(out(4, 4, (3, 2)), severed=[(0, 0, 1), (0, 0, 3), (2, 1, 3)]),
    ),
    "barred": (  # 1 and 2 have given 0 up after the first round
        FaultyShuffle(graphs.complete(4), 4, E0, **RATES),
        FaultPattern(
            out(4, 4),
            severed=[(r, 0, v) for r in (0, 1, 2, 3) for v in (1, 2)],
            barred=[(r, u, 0) for r in (1, 2, 3) for u in (1, 2)],
        ),
    ),
    "changing": (
        FaultyShuffle([graphs.path(4), graphs.ring(4), graphs.star(4)], 6, E0, laziness=0.4, **RATES),
        FaultPattern(out(6, 4, (2, 3))),
    ),
    "islands": (  # {0, 1} and {2, 3} never meet
        FaultyShuffle(graphs.Graph.from_edges(4, [(0, 1), (2, 3)]), 3, E0, laziness=0.4, **RATES),
        FaultPattern(out(3, 4, (0, 3))),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_given_the_pattern_nobody_loses_more_than_is_stated(case, monkeypatch):
    protocol, pattern = case
    laws = label_laws(protocol, pattern)
    for law in laws:
        assert sum(law.values()) == pytest.approx(1)
    for exact in (96, 0):  # pair by pair, and with a law between
        monkeypatch.setattr(faults, "_EXACT", exact)
        loss = account(protocol, "curator", transcript=pattern)
        for u in range(protocol.n):
            said = np.array([loss.delta(e)[u] for e in EPSILONS])
            true = truth(laws, u, range(protocol.n))
            assert (said >= true * (1 - 1e-9)).all(), (u, said, true)
            if exact:
                assert said[0] <= 2.1 * true[0]


@pytest.mark.parametrize(("name", "members"), [("lost", ()), ("short", (2,)), ("severed", ())])
def test_nor_with_the_randomizer_that_is_stated(name, members):
    """Three values, of randomized response: all ways, all responses, all data; and the bound is below that of any randomizer."""
    short = FaultyShuffle(graphs.complete(3), 3, E0, lost=0.1, laziness=0.3, **RATES)
    protocol, pattern = {**CASES, "short": (short, FaultPattern(out(3, 3, (1, 0))))}[name]
    stated = protocol.replace(values=3)
    response = (np.full((3, 3), 1.0) + 2 * np.eye(3)) / 5
    honest = [u for u in range(protocol.n) if u not in members]
    laws = label_laws(protocol, pattern, members)
    loss, any_ = (account(one, ("curator", *members), transcript=pattern) for one in (stated, protocol))
    for u in honest[:2]:
        said, before = (np.array([each.delta(e)[u] for e in EPSILONS]) for each in (loss, any_))
        assert (said >= truth(laws, u, honest, response) * (1 - 1e-9)).all()
        assert (said < before).all()


def test_hiding_in_a_crowd_that_has_mixed_is_nearly_the_truth():
    protocol = FaultyShuffle(graphs.complete(4), 6, E0, outages=0.2, laziness=0.25, lost=0.02)
    pattern = FaultPattern(out(6, 4, (0, 1), (3, 2)))
    loss = account(protocol, "curator", transcript=pattern)
    true = truth(label_laws(protocol, pattern), 0, range(4))
    said = np.array([loss.delta(e)[0] for e in EPSILONS])
    assert (said >= true * (1 - 1e-9)).all()
    assert (said[:4] <= 1.25 * true[:4]).all()
    assert said[3] < 0.5 * (3 - math.exp(EPSILONS[3])) / 4  # and far below the report alone


@pytest.mark.parametrize("absent", ["unreachable", "silent"])
def test_colluders_given_the_pattern(absent):
    lost = 0.05 if absent == "unreachable" else 0.0
    protocol = FaultyShuffle(graphs.complete(4), 3, E0, outages=0.3, absent=absent, lost=lost, laziness=lost)
    pattern = FaultPattern(out(3, 4, (0, 1), (1, 3)))
    laws = label_laws(protocol, pattern, (3,))
    loss = account(protocol, ("curator", 3), transcript=pattern)
    assert np.isnan(loss.epsilon(0.1)[3])
    better = False
    for u in range(3):
        said, true = np.array([loss.delta(e)[u] for e in EPSILONS]), truth(laws, u, range(3))
        assert (said >= true * (1 - 1e-9)).all()
        better |= bool((said < (3 - np.exp(EPSILONS)) / 4 * 0.98).any())
    assert better  # than the report alone


def test_what_a_colluder_gave_up_still_reaches_it():
    """Everybody gave everybody up in round 1; what was sent then comes late, and a colluder reads it all the same."""
    n, lazy = 6, 0.25
    protocol = FaultyShuffle(graphs.complete(n), 3, E0, laziness=lazy)
    pairs = list(itertools.permutations(range(n), 2))
    pattern = FaultPattern(
        out(3, n),
        severed=[(r, u, v) for r in range(3) for u, v in pairs],
        barred=[(r, u, v) for r in (1, 2) for u, v in pairs],
    )
    alone = (3 - np.exp(EPSILONS)) / 4
    said = np.array([account(protocol, "curator", transcript=pattern).delta(e)[0] for e in EPSILONS])
    assert said == pytest.approx(lazy * alone, rel=1e-6)
    watched = np.array([account(protocol, ("curator", 5), transcript=pattern).delta(e)[0] for e in EPSILONS])
    assert (watched >= (lazy + (1 - lazy) / (n - 1)) * alone * (1 - 1e-9)).all()


def every_pattern(n, rounds):
    for bits in itertools.product((False, True), repeat=n * rounds):
        yield FaultPattern(np.array(bits).reshape(rounds, n))


@pytest.mark.parametrize("absent", ["unreachable", "silent"])
@pytest.mark.parametrize(
    "graph", [graphs.complete(4), graphs.star(5), graphs.path(4), graphs.ring(5)], ids=lambda g: g.name
)
@pytest.mark.parametrize("laziness", [0.0, 0.3])
def test_one_round_contracts_as_proved(graph, absent, laziness, monkeypatch):
    """E‖P_r g‖² over all 2ⁿ patterns, for the worst g of mean 0, is κ; of large graphs at most κ."""
    protocol = FaultyShuffle(graph, 1, E0, outages=0.3, absent=absent, laziness=laziness)
    weights = graph.degrees / graph.degrees.sum()
    square = np.zeros((graph.n, graph.n))
    for pattern in every_pattern(graph.n, 1):
        P = protocol.hop(0, pattern).toarray()
        chance = math.prod(0.3 if away else 0.7 for away in pattern.away[0])
        square += chance * P.T @ (weights[:, None] * P)
    root = np.sqrt(weights)
    scaled = square / root[:, None] / root[None, :]
    away = np.eye(graph.n) - np.outer(root, root)
    worst = np.linalg.eigvalsh(away @ scaled @ away)[-1]
    kappa = faults.contraction(protocol, graph)
    assert worst <= kappa
    assert worst == pytest.approx(kappa)
    monkeypatch.setattr(faults, "DENSE", 0)
    large = faults.contraction(protocol, graph)
    assert kappa <= large * (1 + 1e-12)
    if graph.name == "complete(4)":  # and not far above where no tree dictates
        assert large <= kappa + 0.15


@pytest.mark.parametrize("absent", ["unreachable", "silent"])
def test_before_the_draw_the_average_over_all_patterns_is_not_above_what_is_stated(absent):
    """Three users, all patterns of two and three rounds; every step of the proof, then δ itself."""
    rate = 0.04
    for rounds in (2, 3):
        protocol = FaultyShuffle(graphs.complete(3), rounds, E0, outages=rate, absent=absent, laziness=1 / 3, lost=0.02)
        total, squared, moved, mass = np.zeros(len(EPSILONS)), 0.0, {0.1: 0.0, 0.3: 0.0}, 0.0
        for pattern in every_pattern(3, rounds):
            chance = math.prod(rate if away else 1 - rate for away in pattern.away.ravel())
            mass += chance
            laws = np.linalg.multi_dot([np.eye(3), *(protocol.hop(r, pattern).toarray() for r in range(rounds))])
            laws /= protocol.arrives
            squared += chance * (1 - laws.min(axis=0).sum()) ** 2
            for x in moved:
                lacks = np.maximum((1 - x) / 3 - laws[1:], 0).sum() + np.maximum(laws[0] - (1 + x) / 3, 0).sum()
                moved[x] += chance * lacks
            if chance > 1e-4:  # the rest adds less than one per cent
                total += chance * truth(label_laws(protocol, pattern), 0, range(3))
        assert mass == pytest.approx(1)
        log_kappa, ratios = faults.spread(protocol)
        assert squared <= (math.exp(log_kappa / 2) * np.sqrt(ratios).sum()) ** 2
        if absent == "unreachable":
            for x, chance in moved.items():
                assert 0 < chance <= math.exp(log_kappa) * 9 / (4 * x)
        curve = hiding.shared_curve(protocol, faults.before(protocol))
        said = np.array([float(curve.delta(e)) for e in EPSILONS])
        assert (said >= total * (1 - 1e-9)).all(), (said, total)
    assert said[2] < (3 - math.exp(EPSILONS[2])) / 4 * protocol.arrives * 0.9  # something is gained


def test_before_the_draw_is_as_good_as_a_trusted_shuffler_after_enough_rounds():
    graph = graphs.regular(400, 8, 0)
    uniform = shuffled_epsilon(399, 1.0, 1e-4)
    for absent in ("unreachable", "silent"):
        protocol = FaultyShuffle(graph, 150, 1.0, outages=0.2, absent=absent)
        before = account(protocol, "curator")
        assert uniform * (1 - 1e-6) <= before.worst_epsilon(1e-4) <= 1.01 * uniform
        assert before.claim.value == "upper"
        after = account(protocol, "curator", transcript=protocol.pattern(1))
        assert uniform * (1 - 1e-6) <= after.worst_epsilon(1e-4) <= 1.01 * uniform
    few = protocol.replace(rounds=6)
    with pytest.raises(Unsupported, match=r"after 6 rounds with outages .*rounds=\d+ would do"):
        account(few, "curator")
    assert account(few, "curator", transcript=few.pattern(0)).worst_epsilon(1e-4) < 1  # what happened is always stated
    assert account(few, ["curator", 3]).worst_epsilon(0.0) == 1.0


def test_more_faults_cost_more_and_none_cost_nothing():
    graph = graphs.regular(300, 6, 1)
    plain = account(Shuffle(graph, 80, 1.0), "curator").worst_epsilon(1e-4)
    assert account(FaultyShuffle(graph, 80, 1.0), "curator").worst_epsilon(1e-4) == pytest.approx(plain, rel=2e-3)
    found = [account(FaultyShuffle(graph, 80, 1.0, outages=p), "curator").delta(0.3)[0] for p in (0.05, 0.1, 0.15)]
    assert found[0] < found[1] < found[2]
    lost = account(FaultyShuffle(graph, 80, 1.0, lost=0.005), "curator").worst_epsilon(1e-4)
    assert plain < lost < 1.4 * plain  # a third of the crowd is gone


def test_changing_graphs_are_worth_what_they_are_together():
    """Two graphs that are nothing alone: each is bipartite or in pieces."""
    pieces = graphs.Graph.from_edges(64, [(u, u ^ 1) for u in range(0, 64, 2)])
    cube = [graphs.Graph.from_edges(64, [(u, u ^ (1 << k)) for u in range(64) if not u >> k & 1]) for k in range(6)]
    alone = FaultyShuffle(pieces, 24, 1.0, laziness=0.5)
    together = FaultyShuffle(cube, 6, 1.0, laziness=0.5)
    assert account(alone, "curator").worst_epsilon(1e-3) > 0.9
    assert account(together, "curator").worst_epsilon(1e-3) == pytest.approx(shuffled_epsilon(63, 1.0, 1e-3), rel=1e-3)
    with pytest.raises(Unsupported, match="not connected: before it is known who is away"):
        account(together.replace(outages=0.1), "curator")
    rings = [graphs.regular(200, 6, seed) for seed in range(3)]  # the same degrees: weights stay
    changing = FaultyShuffle(rings, 60, 1.0, outages=0.1)
    one = FaultyShuffle(rings[0], 60, 1.0, outages=0.1)
    log_changing, log_one = faults.spread(changing)[0], faults.spread(one)[0]
    assert log_changing == pytest.approx(log_one, rel=0.1)
    mixed = FaultyShuffle([graphs.star(5), graphs.complete(5)], 4, 1.0, outages=0.1, laziness=0.3)
    pays = faults.spread(mixed)[0] - sum(2 * math.log(faults.contraction(mixed, g)) for g in mixed.graphs)
    assert pays == pytest.approx(2 * math.log(5 / 2) + math.log(8 / 5), rel=1e-6)


def test_what_is_lost_tells_nothing():
    p = FaultyShuffle(graphs.complete(4), 2, E0, crashes=0.2, outages=0.1)
    everybody = FaultPattern(out(2, 4), np.ones((2, 4), dtype=bool))
    assert account(p, "curator", transcript=everybody).worst_epsilon(0.0) == 0.0
    assert account(p, ("curator", 3), transcript=everybody).worst_epsilon(0.0) == 0.0
    one = account(p, "curator", transcript=FaultPattern(out(2, 4), out(2, 4, (0, 1))))
    assert one.delta(0.0)[1] == 0.0  # its queue was lost with its own report in it
    assert (np.delete(one.delta(0.0), 1) > 0.1).all()


def test_what_is_refused_and_why():
    p = FaultyShuffle(graphs.complete(6), 8, 1.0, outages=0.1)
    with pytest.raises(InvalidValue, match="transcript must be the FaultPattern"):
        account(p, "curator", transcript="yesterday")
    with pytest.raises(InvalidValue, match="of 7 rounds and 6 users"):
        account(p, "curator", transcript=p.replace(rounds=7).pattern(0))
    with pytest.raises(InvalidValue, match="crashes = 0"):
        account(p, "curator", transcript=FaultPattern(out(8, 6), out(8, 6, (1, 1))))
    with pytest.raises(Unsupported, match=r"crashes = 0\.1: .*transcript=run\.pattern"):
        account(p.replace(crashes=0.1), "curator")
    for wrong in ({"outages": 1.0}, {"lost": -0.1}, {"absent": "asleep"}, {"outages": 0.6, "crashes": 0.5}):
        with pytest.raises(InvalidValue):
            p.replace(**wrong)
    big = FaultyShuffle(graphs.regular(7000, 4, 0), 100, 1.0, outages=0.1)
    with pytest.raises(Unsupported, match="Without transcript there is no such limit"):
        account(big, "curator", transcript=big.pattern(0))


def test_the_ways_to_hide_are_as_printed():
    """Formula pin: (1 − x) of those who arrive and S + (S/x)² revealed, or (1 − x)/(1 + x) of them and κ^T·Σ1/π/4x moved."""
    p = FaultyShuffle(graphs.complete(12), rounds=12, epsilon0=1.0, outages=0.2, lost=0.001)
    kappa = faults.contraction(p, p.graphs[0]) ** 12
    size = 12 * math.sqrt(kappa)
    alone, *ways = faults.before(p)
    assert alone.revealed == pytest.approx(p.arrives, rel=1e-13, abs=0.0)
    revealed = [way for way in ways if way.moved == 0]
    moved = [way for way in ways if way.moved > 0]
    assert revealed
    assert moved
    for way in revealed:
        x = 1 - float(way.shares[0]) / (p.arrives * (1 - 1e-9))
        assert way.revealed == pytest.approx(p.arrives * (size + (size / x) ** 2), rel=1e-6, abs=0.0)
    levels = [x for x in hiding.LEVELS if kappa * 144 / (4 * x) < 1]
    for way, x in zip(moved, levels, strict=True):
        assert float(way.shares[0]) == pytest.approx((1 - x) / (1 + x) * p.arrives * (1 - 1e-9), rel=1e-13, abs=0.0)
        assert way.moved == pytest.approx(kappa * 144 / (4 * x), rel=1e-7, abs=0.0)
        assert way.hidden >= p.arrives
