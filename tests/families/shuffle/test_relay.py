"""A server that relays every hop, against the truth on three and four users: all draws, who waits, all responses, all data.

Proof: docs/proofs/shuffle.md#relayed-shuffling.
"""

import itertools
import math

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account import hiding, relay
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.relay import covered, overflow, overflows
from netdp.privacy import ProfileCurve
from netdp.protocols import RelayedShuffle, Shuffle
from netdp.protocols.accounting import account

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
EPSILONS = np.array([0.0, 0.1, 0.25, 0.5, 0.7, 0.95, 1.08])


def hockey(p, q):
    grow = np.exp(EPSILONS)[:, None]
    return np.maximum(np.maximum(p - grow * q, 0).sum(axis=1), np.maximum(q - grow * p, 0).sum(axis=1))


def truth(law, n, victim=0):
    """True δ at EPSILONS when (what the server saw, positions) has this law: the worst over the others' data."""
    worst = np.zeros(len(EPSILONS))
    for data in itertools.product((0, 1), repeat=n - 1):
        views = []
        for value in (0, 1):
            bits = [*data[:victim], value, *data[victim:]]
            view = {}
            for (saw, places), mass in law.items():
                for contents in itertools.product((0, 1), repeat=n):
                    key = (saw, tuple(sorted(zip(places, contents, strict=True))))
                    chance = math.prod(RESPONSE[b, c] for b, c in zip(bits, contents, strict=True))
                    view[key] = view.get(key, 0.0) + mass * chance
            views.append(view)
        keys = list(views[0].keys() | views[1].keys())
        worst = np.maximum(worst, hockey(*(np.array([v.get(k, 0.0) for k in keys]) for v in views)))
    return worst


def moves(graph, laziness, here):
    stays = [(here, None, laziness)] if laziness else []
    near = graph.neighbors(here).tolist()
    return stays + [(there, (here, there), (1 - laziness) / len(near)) for there in near]


def after_a_round(protocol, places):
    """(links used, positions, whether somebody waited) and probabilities, of one round under the protocol's rule."""
    options = [moves(protocol.graph, protocol.laziness, here) for here in places]
    out = {}
    for drawn in itertools.product(*options):
        mass = math.prod(chance for _, _, chance in drawn)
        links = [link for _, link, _ in drawn]
        full = {link for link in links if link is not None and protocol.cover and links.count(link) > protocol.cover}
        if not full:
            used = tuple(sorted(link for link in links if link is not None))
            key = (used, tuple(there for there, _, _ in drawn), False)
            out[key] = out.get(key, 0.0) + mass
            continue
        crowds = [[i for i, other in enumerate(links) if other == link] for link in sorted(full)]
        choices = [list(itertools.combinations(crowd, protocol.cover)) for crowd in crowds]
        ways = list(itertools.product(*choices))
        for lucky in ways:
            go = {i for some in lucky for i in some}
            ends = tuple(
                there if link not in full or i in go else places[i] for i, (there, link, _) in enumerate(drawn)
            )
            out[((), ends, True)] = out.get(((), ends, True), 0.0) + mass / len(ways)
    return out


def run(protocol, watched):
    """The law of (what the server saw of the traffic, final positions), and the probability that somebody waited."""
    law = {((), tuple(range(protocol.n)), False): 1.0}
    for _ in range(protocol.rounds):
        grown = {}
        for (saw, places, late), mass in law.items():
            for (used, ends, waits), chance in after_a_round(protocol, places).items():
                key = ((*saw, used) if watched else (), ends, late or waits)
                grown[key] = grown.get(key, 0.0) + mass * chance
        law = grown
    late = sum(mass for (_, _, waits), mass in law.items() if waits)
    out = {}
    for (saw, places, _), mass in law.items():
        out[saw, places] = out.get((saw, places), 0.0) + mass
    return out, late


def report_alone(eps):
    return (3 - np.exp(eps)) / 4


@pytest.mark.parametrize(
    ("graph", "rounds", "cover", "laziness"),
    [
        (graphs.complete(4), 3, 2, 0.0),
        (graphs.complete(4), 4, 3, 0.25),
        (graphs.complete(3), 5, 2, 0.3),
        (graphs.star(4), 4, 2, 0.5),
    ],
    ids=str,
)
def test_under_the_rule_the_server_learns_no_more_than_is_stated(graph, rounds, cover, laziness):
    protocol = RelayedShuffle(graph, rounds, E0, cover=cover, laziness=laziness)
    law, late = run(protocol, watched=False)
    assert sum(law.values()) == pytest.approx(1)
    assert late <= overflows(protocol.direct, cover)[-1]
    loss = account(protocol, "curator")
    for victim in {0, 0 if graph.name.startswith("complete") else graph.n - 1}:
        said = np.array([loss.delta(e)[victim] for e in EPSILONS])
        assert (said >= truth(law, protocol.n, victim) * (1 - 1e-9)).all()
    direct = account(protocol.direct, "curator")
    said, free = (np.array([each.delta(e)[0] for e in EPSILONS]) for each in (loss, direct))
    assert (said >= free).all()
    assert (said <= report_alone(EPSILONS) * (1 + 1e-9)).all()
    if laziness == 0.25:  # little overflows: the rule costs little
        assert overflow(protocol) < 0.02
        assert (said <= free + 2 * overflow(protocol)).all()


def test_the_probability_of_waiting_is_bounded_and_not_far_off():
    for cover in (1, 2):
        protocol = RelayedShuffle(graphs.complete(4), 3, E0, cover=cover)
        _, late = run(protocol, watched=False)
        assert late <= overflows(protocol.direct, 2)[cover - 1] <= min(1.0, 12 * late)
    protocol = RelayedShuffle(graphs.regular(1000, 8, seed=1), 30, 1.0, cover=6)
    regular = 30 * 8000 * (1 / 8) ** 7 / math.factorial(7)
    assert overflow(protocol) == pytest.approx(regular, rel=1e-6)
    table = overflows(protocol.direct, 12)
    assert all(a >= b for a, b in itertools.pairwise(table))


def test_without_cover_traffic_one_hop_hides_little_and_more_hide_less_than_direct_links():
    eps = EPSILONS
    one = RelayedShuffle(graphs.complete(3), 1, E0)
    law, _ = run(one, watched=True)
    # whoever is alone in a hand, with probability 1/2, is revealed
    assert (truth(law, 3) >= 0.5 * report_alone(eps)).all()
    assert [account(one, "curator").delta(e)[0] for e in eps] == pytest.approx(report_alone(eps), rel=1e-9)
    many = one.replace(rounds=3)
    law, _ = run(many, watched=True)
    watched, unseen = truth(law, 3), truth(run(many, watched=False)[0], 3)
    said = np.array([account(many, "curator").delta(e)[0] for e in eps])
    assert (said >= watched * (1 - 1e-9)).all()
    assert (watched >= unseen - 1e-12).all()
    assert watched[3] > 1.1 * unseen[3]  # traffic analysis matters
    assert (watched[3], unseen[3]) == pytest.approx((0.239, 0.190), abs=5e-4)  # as docs/papers/seeds.md says
    assert watched[3] < 0.75 * said[3]  # and is not all: what meets in one hand is confused


def test_given_the_traffic_every_way_is_equally_likely():
    """The server's best reconstruction: F_r(i, j)/Σ_j F_r(i, j) for each report by itself."""
    protocol = RelayedShuffle(graphs.complete(3), 3, E0)
    law, _ = run(protocol, watched=True)
    by_traffic = {}
    for (saw, places), mass in law.items():
        by_traffic.setdefault(saw, []).append((places, mass))
    for saw, ends in by_traffic.items():
        P = np.eye(3)
        for used in saw:
            F = np.zeros((3, 3))
            for i, j in used:
                F[i, j] += 1
            P = P @ np.divide(
                F, F.sum(axis=1, keepdims=True), out=np.zeros((3, 3)), where=F.sum(axis=1, keepdims=True) > 0
            )
        total = sum(mass for _, mass in ends)
        for u in range(3):
            for i in range(3):
                assert sum(mass for places, mass in ends if places[u] == i) / total == pytest.approx(P[u, i])


def test_what_is_stated_and_refused():
    graph = graphs.regular(300, 6, 1)
    p = RelayedShuffle(graph, 80, 1.0, cover=9)
    loss, direct = account(p, "curator"), account(Shuffle(graph, 80, 1.0), "curator")
    assert direct.worst_epsilon(1e-6) <= loss.worst_epsilon(1e-6) <= 1.05 * direct.worst_epsilon(1e-6)
    assert not any("no traffic analysis" in text for text in loss.assumptions)
    assert any("exactly 9 sealed envelopes" in text for text in loss.assumptions)
    with_user = account(p, ["curator", 5])
    assert np.isnan(with_user.epsilon(1e-6)[5])
    assert (np.delete(with_user.epsilon(1e-6), 5) <= 1.0).all()
    for wrong in (-1, 1.5, "many", True):
        with pytest.raises(InvalidValue):
            p.replace(cover=wrong)
    assert p.envelopes == 80 * 9 * 6


def bundle_hops(protocol):
    """All P_r of one round of bundles, and their probabilities: every user draws k neighbours with repetition."""
    n, k, lazy = protocol.n, protocol.bundles, protocol.laziness
    each = []
    for i in range(n):
        rows = {}
        near = protocol.graph.neighbors(i).tolist()
        for drawn in itertools.product(near, repeat=k):
            row = np.zeros(n)
            row[i] = lazy
            for j in drawn:
                row[j] += (1 - lazy) / k
            key = tuple(row)
            rows[key] = rows.get(key, 0.0) + len(near) ** -k
        each.append(rows.items())
    for rows in itertools.product(*each):
        yield np.array([row for row, _ in rows]), math.prod(chance for _, chance in rows)


@pytest.mark.parametrize("laziness", [0.0, 0.3])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("graph", [graphs.complete(4), graphs.ring(5)], ids=lambda g: g.name)
def test_one_round_of_bundles_contracts_as_proved(graph, k, laziness):
    protocol = RelayedShuffle(graph, 1, E0, laziness=laziness, bundles=k)
    square, total = np.zeros((graph.n, graph.n)), 0.0
    for P, chance in bundle_hops(protocol):
        square += chance * P.T @ P  # regular graphs: π is uniform
        total += chance
    assert total == pytest.approx(1)
    away = np.eye(graph.n) - 1 / graph.n
    worst = np.linalg.eigvalsh(away @ square @ away)[-1]
    assert worst <= relay.contraction(protocol)
    if laziness == 0:
        assert worst == pytest.approx(relay.contraction(protocol))


def test_bundles_on_average_over_all_traffic():
    """Three users, two rounds, all draws of neighbours: what they have in common, and δ itself."""
    protocol = RelayedShuffle(graphs.complete(3), 2, E0, laziness=1 / 3, bundles=2)
    hops = list(bundle_hops(protocol))
    squared, total = 0.0, np.zeros(len(EPSILONS))
    for (one, p), (two, q) in itertools.product(hops, hops):
        laws = one @ two
        squared += p * q * (1 - laws.min(axis=0).sum()) ** 2
        if p * q > 1.5e-3:
            places = {
                ((), ends): math.prod(laws[u, i] for u, i in enumerate(ends))
                for ends in itertools.product(range(3), repeat=3)
            }
            total += p * q * truth({key: mass for key, mass in places.items() if mass}, 3)
    assert squared <= relay.contraction(protocol) ** 2 * 9
    ways = relay.before(protocol)
    said = np.min([way.deltas(way.heap(Randomizer(E0)), EPSILONS) for way in ways], axis=0)
    assert (said >= total).all()


def test_bundles_are_as_good_as_a_trusted_shuffler_after_enough_rounds():
    p = RelayedShuffle(graphs.regular(300, 8, 1), 110, 1.0, bundles=4)
    loss, direct = account(p, "curator"), account(p.direct, "curator")
    assert direct.worst_epsilon(1e-5) * (1 - 1e-3) <= loss.worst_epsilon(1e-5) <= 1.01 * direct.worst_epsilon(1e-5)
    assert any("exactly 4 sealed bundles" in text for text in loss.assumptions)
    assert account(p, ["curator", 3]).worst_epsilon(0.0) == 1.0  # nothing is claimed then
    with pytest.raises(Unsupported, match=r"after 5 rounds of bundles .*rounds=\d+ would do"):
        account(p.replace(rounds=5), "curator")
    with pytest.raises(InvalidValue, match="two rules; choose one"):
        p.replace(cover=2)
    with pytest.raises(InvalidValue, match="keeps all reports of a user together"):
        p.replace(bundles=1)
    room = p.room(1.0)
    assert 0.25 ** (room + 1) / math.factorial(room + 1) * 110 * 300 * 4 <= 1e-12
    assert 0.25**room / math.factorial(room) * 110 * 300 * 4 > 1e-12


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_the_overflow_is_as_printed():
    """p = Σ_r Σ_links μ^{c+1}/(c + 1)!; on a regular graph every link expects (1 − laziness)/d reports. 10⁻⁹ on top, and more."""
    p = RelayedShuffle(graphs.complete(10), rounds=7, epsilon0=1.0, cover=4, laziness=0.25)
    for cover in (3, 4, 6):
        exact = 7 * 90 * (0.75 / 9) ** (cover + 1) / math.factorial(cover + 1)
        on_top = 1e-9 + (cover + 1) * 7 * 8 * (9 + 4) * 2.0**-53
        assert overflow(p.replace(cover=cover)) / exact - 1 == pytest.approx(on_top, rel=1e-3, abs=0.0)


def test_what_moved_labels_add_is_as_printed():
    """δ + moved·(e^ε − 1 + 2δ_local), and never more than the report alone."""
    still, moved = (hiding.Hiding(1.0, 0.05, np.full(300, 0.5), share) for share in (0.0, 1e-4))
    heap, eps = still.heap(Randomizer(1.0)), np.array([0.05, 0.2, 0.5])
    local = np.maximum(-np.expm1(eps - 1.0), 0.0) / (1 + math.exp(-1.0))
    expected = still.deltas(heap, eps) + 1e-4 * (np.expm1(eps) + 2 * local)
    assert moved.deltas(heap, eps) == pytest.approx(np.minimum(expected, local), rel=1e-12, abs=0.0)
    assert (expected < local).any()


def test_what_waiting_adds_is_as_printed():
    """δ_direct + p·(e^ε − 1 + 2δ_ε₀(ε)), at the points of the curve, and never more than a report alone."""
    p, direct = RelayedShuffle(graphs.complete(10), rounds=7, epsilon0=1.0, cover=4), [0.2, 0.05, 1e-4]
    found = covered(p, ProfileCurve([0.0, 0.4, 0.8], direct), 1e-3)
    for eps, base in zip((0.0, 0.4, 0.8), direct, strict=True):
        alone = (math.e - math.exp(eps)) / (math.e + 1)
        expected = min(base + 1e-3 * (math.expm1(eps) + 2 * alone), alone)
        assert float(found.delta(eps)) == pytest.approx(expected, rel=1e-12, abs=0.0)
