"""Network shuffling against the truth on graphs of four and five users: all walks, all responses, all data.

Proofs: docs/proofs/shuffle.md#network-shuffling and #curator-and-users.
"""

import itertools
import math
import operator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.families.shuffle import coalitions
from netdp.families.shuffle.account import shuffling
from netdp.families.shuffle.account.mixing import mixing, separation
from netdp.families.shuffle.account.shuffling import UserCurves, trusted_sampler
from netdp.graphs.certificate import RETURNS_FAILURE
from netdp.privacy import Observers
from netdp.privacy.clones import shuffled_epsilon, shuffled_profile
from netdp.protocols import Shuffle, account, local_dp, trusted_curator
from netdp.protocols.table import certified, published

E0 = math.log(3)
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
EPSILONS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.95, 1.08])


def add(law, items):
    """The multiset grown by one independent item."""
    out = {}
    for held, mass in law.items():
        for item, chance in items:
            key = tuple(sorted((*held, item)))
            out[key] = out.get(key, 0.0) + mass * chance
    return out


def heap(items):
    law = {(): 1.0}
    for one in items:
        law = add(law, one)
    return law


def single(law, n):
    """Every holder hands over one report at random, or a response to 0 if it holds none."""
    out = {}
    for held, mass in law.items():
        ones = []
        for user in range(n):
            mine = [content for place, content in held if place == user]
            ones.append(sum(mine) / len(mine) if mine else RESPONSE[0, 1])
        for said in itertools.product((0, 1), repeat=n):
            chance = math.prod(p if bit else 1 - p for p, bit in zip(ones, said, strict=True))
            out[said] = out.get(said, 0.0) + mass * chance
    return out


def distances(P, Q):
    """δ at EPSILONS, the larger of both directions."""
    keys = P.keys() | Q.keys()
    p, q = (np.array([law.get(k, 0.0) for k in keys]) for law in (P, Q))
    grow = np.exp(EPSILONS)[:, None]
    return np.maximum(np.maximum(p - grow * q, 0).sum(axis=1), np.maximum(q - grow * p, 0).sum(axis=1))


def truth(protocol, victim):
    """True δ at EPSILONS, the worst over the others' data."""
    n = protocol.n
    places = np.linalg.matrix_power(protocol.transition.toarray(), protocol.rounds)

    def view(data):
        items = [
            [((i, c), places[u, i] * RESPONSE[data[u], c]) for i in range(n) for c in (0, 1) if places[u, i] > 0]
            for u in range(n)
        ]
        law = heap(items)
        return single(law, n) if protocol.reporting == "single" else law

    worst = np.zeros(len(EPSILONS))
    for others in itertools.product((0, 1), repeat=n - 1):
        sides = [view([*others[:victim], x, *others[victim:]]) for x in (0, 1)]
        worst = np.maximum(worst, distances(*sides))
    return worst


KITE = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (0, 2), (2, 3)])


@pytest.mark.parametrize("reporting", ["all", "single"])
@pytest.mark.parametrize(
    ("graph", "rounds", "laziness"),
    [(KITE, 2, 0.0), (KITE, 6, 0.0), (KITE, 5, 0.3), (graphs.complete(4), 2, 0.0), (graphs.ring(4), 6, 0.5)],
)
def test_never_below_the_truth(graph, rounds, laziness, reporting):
    protocol = Shuffle(graph, rounds, E0, reporting=reporting, laziness=laziness)
    older = shuffling.curator_heap(protocol, separation(protocol).value).deltas(EPSILONS)
    table = UserCurves.of(protocol, mixing(protocol))
    each = table.deltas(EPSILONS)
    for victim in (0, 3):  # the best and the worst connected of the kite, where 1 is like 0
        real, bound = truth(protocol, victim), each[table.group[victim]]
        assert (real <= bound + 1e-12).all()
        assert (bound <= older + 1e-12).all()


def test_calling_a_short_walk_mixed_would_be_unsound():
    """The trusted shuffler's δ is below the truth after two rounds: what the published proof overlooks, and s repairs."""
    protocol = Shuffle(KITE, 2, E0)
    uniform = shuffling.uniform_heap(protocol).deltas(EPSILONS)
    assert max((truth(protocol, victim) / np.maximum(uniform, 1e-300)).max() for victim in range(4)) > 1.2


def test_five_users():
    graph = graphs.Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
    protocol = Shuffle(graph, 9, E0)
    table = UserCurves.of(protocol, mixing(protocol))
    assert (truth(protocol, 3) <= table.deltas(EPSILONS)[table.group[3]] + 1e-12).all()


def test_where_positions_are_exactly_stationary_it_is_the_uniform_shuffler():
    protocol = Shuffle(graphs.complete(4), 1, E0, laziness=0.25)
    loss = certified(protocol, "curator")
    uniform = shuffled_profile(3, E0, epsilons=EPSILONS)
    assert loss.curve.delta(EPSILONS) == pytest.approx(uniform.delta(EPSILONS), rel=2e-3)
    # and the truth is that of a uniform shuffle of the contents, to the last digit
    contents = np.zeros(len(EPSILONS))
    for others in itertools.product((0, 1), repeat=3):
        sides = [heap([list(enumerate(RESPONSE[x])) for x in (*others, own)]) for own in (0, 1)]
        contents = np.maximum(contents, distances(*sides))
    assert truth(protocol, 0) == pytest.approx(contents, abs=1e-12)
    assert (contents <= loss.curve.delta(EPSILONS)).all()


def test_irregular_degrees_cost_nothing_once_mixed():
    star = graphs.star(30)
    protocol = Shuffle(star, 200, 1.0, laziness=0.5)
    assert certified(protocol, "curator").epsilon(1e-3) == pytest.approx(shuffled_epsilon(29, 1.0, 1e-3), rel=2e-3)


@cache
def colluding_truth(protocol, spy, victim, k=2):
    """As `truth`, for the curator and one user who links, reads and times everything that passes through its hands."""
    P, t = protocol.transition.toarray(), protocol.rounds
    honest = [u for u in range(protocol.n) if u != spy]

    def items(u, x):
        law = {}
        for path in itertools.product(range(protocol.n), repeat=t):
            walk = (u, *path)
            chance = math.prod(P[a, b] for a, b in itertools.pairwise(walk))
            if chance == 0:
                continue
            seen = tuple((s, walk[s - 1], walk[s + 1] if s < t else -1) for s in range(1, t + 1) if walk[s] == spy)
            for content in range(k):
                key = (walk[-1], content, seen)
                law[key] = law.get(key, 0.0) + chance * response[x, content]
        return list(law.items())

    response = (np.ones((k, k)) + 2 * np.eye(k)) / (k + 2)  # ε₀ = ln 3
    made = {(u, x): items(u, x) for u in honest for x in range(k)}
    worst = np.zeros(len(EPSILONS))
    rest = [u for u in honest if u != victim]
    for data in itertools.product(range(k), repeat=len(rest)):
        base = heap([made[u, x] for u, x in zip(rest, data, strict=True)])
        sides = [add(base, made[victim, x]) for x in (0, 1)]
        worst = np.maximum(worst, distances(*sides))
    return worst


@pytest.mark.parametrize(("graph", "rounds", "laziness"), [(graphs.complete(4), 2, 0.25), (KITE, 3, 0.3)])
def test_one_colluder(graph, rounds, laziness):
    protocol = Shuffle(graph, rounds, E0, laziness=laziness)
    for spy in (0, 3):
        bound = coalitions.coalition_curve(protocol, (spy,), list(coalitions.hide(protocol, (spy,))))
        assert np.isnan(bound.delta(0.0)[spy])
        for victim in (1, 2) if spy == 0 else (0, 2):
            real = colluding_truth(protocol, spy, victim)
            found = np.array([bound.delta(e)[victim] for e in EPSILONS])
            assert (real <= found + 1e-12).all()
            assert (
                real > shuffled_profile(2, E0, epsilons=EPSILONS).delta(EPSILONS) + 1e-9
            ).any()  # unhidden, it fails
    known = protocol.replace(values=3)
    less = coalitions.coalition_curve(known, (3,), list(coalitions.hide(known, (3,))))
    found, before = (np.array([each.delta(e)[0] for e in EPSILONS]) for each in (less, bound))
    assert (colluding_truth(protocol, 3, 0, k=3) <= found + 1e-12).all()
    assert (found < before).all()
    if graph is not KITE:
        local = (math.exp(E0) - 1) / (math.exp(E0) + 1)
        assert np.nanmax(bound.delta(0.0)) < 0.97 * local  # something is gained


@pytest.mark.parametrize(("graph", "rounds", "laziness"), [(graphs.complete(4), 2, 0.25), (KITE, 3, 0.3)])
def test_a_colluders_neighbour_stays_near_epsilon0_and_not_at_it(graph, rounds, laziness):
    """δ_u(ε) ≥ δ_{ε₀}(ε)(1 − ℓ)/degree, by all walks; yet below δ = 1/degree smaller ε than ε₀ are true, and said."""
    protocol = Shuffle(graph, rounds, E0, laziness=laziness)
    spy, victim = 0, 1
    degree = int(graph.degrees[victim])
    alone = (math.exp(E0) - np.exp(EPSILONS)) / (math.exp(E0) + 1)
    real = colluding_truth(protocol, spy, victim)
    assert (real >= alone * (1 - laziness) / degree - 1e-12).all()
    bound = coalitions.coalition_curve(protocol, (spy,), list(coalitions.hide(protocol, (spy,))))
    said = float(bound.epsilon(0.3 / degree)[victim])
    assert real[EPSILONS == 0.95] < 0.3 / degree  # so ε < 0.95 is true at this δ
    assert 0.2 < math.log(3 - 4 * 0.3 / (1 - laziness)) < said < 0.99 * E0


def small_graphs():
    for seed in range(12):
        yield graphs.erdos_renyi(4 + seed % 6, 0.6, seed).largest_component()
    yield KITE
    yield graphs.complete(7)
    yield graphs.ring(7)


def test_rounding_never_makes_a_report_better_hidden_than_it_is():
    """g_u, l_u and h_u against exact fractions: plain floats are on the wrong side for many users, `hide` for none."""
    wrong = users = 0
    for graph, laziness in itertools.product(small_graphs(), (0.0, 0.3)):
        if graph.n < 4 or (graph.is_bipartite and not laziness):
            continue
        protocol = Shuffle(graph, 12, 1.0, laziness=laziness)
        lazy, degree = Fraction(laziness), int(np.diff(protocol.transition.indptr).max())
        for hiding in coalitions.hide(protocol, (0,)):
            mine = hiding.users.tolist()
            Q = [
                [
                    lazy * (u == w) + (1 - lazy) * Fraction(int(graph.has_edge(u, w)), int(graph.degrees[u]))
                    for w in mine
                ]
                for u in mine
            ]
            power = [[Fraction(int(i == j)) for j in range(len(mine))] for i in range(len(mine))]
            for _ in range(hiding.time):
                power = [[sum(map(operator.mul, row, column)) for column in zip(*Q, strict=True)] for row in power]
            law = coalitions.quasi_stationary(protocol.transition[mine][:, mine].tocsr())
            assert sum(map(Fraction, law.tolist())) >= 1  # what it is too large by is on the safe side
            margin = 1 - hiding.time * 4 * (degree + 4) * Fraction(1, 2**53)
            for k in range(len(mine)):
                ratios = [power[k][i] / Fraction(law[i]) for i in hiding.places.tolist()]
                least, most = Fraction(float(hiding.least[k])), Fraction(float(hiding.most[k]))
                assert least <= min(1, *ratios)
                assert most >= max(ratios)
                assert Fraction(float(hiding.seen[k])) <= sum(power[k][i] for i in hiding.places.tolist())
                assert least >= min(1, *ratios) * (1 - 3 * (1 - margin)) - Fraction(1, 2**60)
                wrong += least > min(ratios) * margin  # the same without the margin would be too large
                users += 1
    assert users > 60
    assert wrong >= 8


def test_large_components_by_returns_hide_no_better_than_all_pairs(monkeypatch):
    """Q^t of 150 users in full: for every pair, g_u l_w/h_u is at most what the theorem allows, and not far below it."""
    monkeypatch.setattr(coalitions, "PAIRS", 10)
    graph = graphs.erdos_renyi(150, 0.06, 3).largest_component()
    protocol = Shuffle(graph, 30, 1.0)
    found = list(coalitions.hide(protocol, (0, 7)))
    assert found
    for hiding in found:
        Q = protocol.transition[hiding.users][:, hiding.users].toarray()
        law = np.linalg.matrix_power(Q, hiding.time)[:, hiding.places]
        assert (hiding.seen <= law.sum(axis=1) + 1e-12).all()
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = np.array([np.nanmin(law / row, axis=1) for row in law])  # [u, w]
            claimed = hiding.least[None, :] / hiding.most[:, None]
        assert (claimed <= allowed + 1e-12).all()
    assert found[-1].failure > 0
    assert np.median(claimed / allowed) > 0.8
    loss = certified(protocol, ("curator", 0, 7))
    assert any("coins" in line for line in loss.assumptions)


def test_more_colluders_never_help_privacy():
    protocol = Shuffle(graphs.regular(60, 8, 0), 12, 1.0)
    one, two = (certified(protocol, ("curator", *who)) for who in ([5], [5, 17]))
    both = np.setdiff1d(np.arange(60), [5, 17])
    assert (one.delta(0.3)[both] <= two.delta(0.3)[both] + 1e-12).all()
    assert account(protocol, ["curator", 5]).observers == Observers((5,), ("curator",))
    far = np.array([u for u in both if not protocol.graph.has_edge(u, 5)])
    assert one.epsilon(0.2)[far].max() < 0.9
    # a neighbour hands its report to the colluder with probability 1/8: ε stays near ε₀ at a δ well under that
    near = protocol.graph.neighbors(5)
    assert one.epsilon(1e-3)[near].min() > 0.95


def test_a_cut_off_user_has_nothing_but_epsilon0():
    path = graphs.Graph.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 2), (2, 5), (5, 3)])
    loss = certified(Shuffle(path, 10, 1.0, laziness=0.2), ("curator", 1))
    assert loss.epsilon(1e-9)[0] == pytest.approx(1.0)
    assert loss.delta(0.0)[0] == pytest.approx(math.tanh(0.5))
    assert loss.delta(0.0)[3] < math.tanh(0.5)


def test_statement():
    loss = account(Shuffle(graphs.regular(200, 10, 1), 25, 1.0), "curator")
    assert loss.claim.value == "upper"
    assert loss.observers == Observers(roles=("curator",))
    assert loss.curve.shape == (200,)  # one entry per user, from one curve for all
    assert len(set(loss.epsilon(1e-4).tolist())) == 1
    assert any("colludes" in line for line in loss.assumptions)
    assert not any("coins" in line for line in loss.assumptions)
    assert "curator" in loss.describe(delta=1e-4)
    big = certified(Shuffle(graphs.regular(1800, 10, 1), 60, 1.0), "curator")
    assert any("coins" in line for line in big.assumptions)
    assert big.epsilon(1e-5) == pytest.approx(shuffled_epsilon(1799, 1.0, 1e-5), rel=1e-2)


def test_every_guarantee_says_that_ideal_draws_are_assumed():
    protocol = Shuffle(graphs.regular(200, 10, 1), 25, 1.0)
    for loss in (
        certified(protocol, "curator"),
        certified(protocol, ("curator", 3)),
        certified(protocol.replace(delta0=1e-9), "curator"),
        published(protocol, "curator"),
        local_dp(protocol),
        trusted_curator(protocol),
    ):
        (said,) = (line for line in loss.assumptions if "drawn exactly from the randomizer's law" in line)
        assert "Laplace, Gaussian and PrivUnit only approximate theirs" in said
        assert "for simulation only" in said
        assert said in loss.describe()


def test_walks_that_do_not_mix_are_refused_with_a_way_out():
    short = Shuffle(graphs.regular(200, 4, 1), 3, 2.0)
    with pytest.raises(Unsupported, match=r"after 3 rounds.*s ≤ 1.*epsilon0 = 2.*rounds=\d+ would do") as refusal:
        certified(short, "curator")
    enough = int(str(refusal.value).split("rounds=")[1].split()[0])
    assert np.max(certified(short.replace(rounds=enough), "curator").epsilon(1 / 200)) < 0.9


def test_approximate_randomizer():
    graph = graphs.regular(200, 10, 1)
    pure = certified(Shuffle(graph, 25, 1.0), "curator")
    near = certified(Shuffle(graph, 25, 1.0, delta0=1e-9), "curator")
    tau = 1e-9 * (1 + 2 * 199 / math.e)
    assert pure.delta(0.2) < near.delta(0.2) <= pure.delta(0.2) + 2.3 * tau + 1e-3 * pure.delta(0.2)


@pytest.mark.parametrize("delta0", [1e-9, 1e-3])
def test_at_delta0_the_loss_is_epsilon0_and_not_infinite(delta0):
    protocol = Shuffle(graphs.regular(60, 10, 1), 25, 1.3, delta0=delta0)
    assert certified(protocol, "curator").epsilon(delta0) == 1.3
    assert (local_dp(protocol).epsilon(delta0) == np.full(60, 1.3)).all()
    assert (trusted_curator(protocol).epsilon(delta0) == np.full(60, 1.3)).all()
    against = certified(protocol, ("curator", 4)).epsilon(delta0)
    assert (np.delete(against, 4) == 1.3).all()
    assert certified(protocol, "curator").epsilon(delta0 * 0.999) == math.inf


@pytest.mark.parametrize(
    ("observers", "words"),
    [([0], "read by the curator"), ("nobody", "nobody"), ((), "curator"), (("curator", 99), "99"), (3, "got 3")],
)
def test_observers(observers, words):
    with pytest.raises(InvalidValue, match=words):
        certified(Shuffle(graphs.complete(6), 3, 1.0), observers)


def test_colluders_of_a_large_graph():
    """More than 1,000 users, once refused. Far from a colluder a crowd is found, its neighbours keep ε₀."""
    protocol = Shuffle(graphs.regular(1100, 12, 0), 24, 1.0)
    loss = certified(protocol, ("curator", 1)).epsilon(0.02)
    near = np.zeros(1100, dtype=bool)
    near[protocol.graph.neighbors(1)] = True
    assert np.isnan(loss[1])
    assert loss[near].min() > 0.3
    near[1] = True
    assert loss[~near].max() < 0.15


def two_parts():
    one, two = graphs.regular(150, 8, 0), graphs.regular(50, 6, 1)
    return one, two, graphs.Graph.from_edges(200, np.concatenate([one.edges(), two.edges() + 150]))


def test_components_are_heaps_of_their_own():
    one, two, both = two_parts()
    loss = account(Shuffle(both, 25, 1.0), "curator")
    for part, users in ((one, slice(0, 150)), (two, slice(150, 200))):
        alone = account(Shuffle(part, 25, 1.0), "curator")
        assert loss.epsilon(1e-3)[users] == pytest.approx(alone.epsilon(1e-3), rel=1e-3)
    assert loss.epsilon(1e-3)[150:].min() > 1.3 * loss.epsilon(1e-3)[:150].max()
    against = account(Shuffle(both, 25, 1.0), ["curator", 3])
    assert against.epsilon(0.01)[150:] == pytest.approx(
        account(Shuffle(two, 25, 1.0), "curator").epsilon(0.01), rel=0.1
    )


def test_what_cannot_be_shuffled_is_refused_by_name():
    with pytest.raises(GraphError, match=r"component of user 3 \(4 of the 7 users.*bipartite.*laziness"):
        Shuffle(graphs.Graph.from_edges(7, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (6, 3)]), 5, 1.0)
    with pytest.raises(GraphError, match=r"user 3 .*no neighbour"):
        Shuffle(graphs.Graph.from_edges(4, [(0, 1), (1, 2), (0, 2)]), 5, 1.0)
    with pytest.raises(GraphError, match=r"not connected.*biased"):
        Shuffle(two_parts()[2], 5, 1.0, reporting="single")
    assert Shuffle(two_parts()[2], 5, 1.0).stationary.sum() == pytest.approx(2.0)


def test_a_trusted_sampler():
    """(1 − q)B + qR against the truth, and the profile of it in closed form."""
    protocol = Shuffle(graphs.complete(16), 4, E0)
    loss = trusted_sampler(protocol)
    q, grow = 0.25, np.exp(EPSILONS)[:, None]
    worst = np.zeros(len(EPSILONS))
    for blank in (np.array([0.75, 0.25]), np.array([0.25, 0.75])):  # where the report is not drawn, any other one
        sides = [(1 - q) * blank + q * row for row in RESPONSE]
        worst = np.maximum(worst, np.maximum(sides[0] - grow * sides[1], 0).sum(axis=1))
    assert (worst <= loss.curve.delta(EPSILONS) + 1e-12).all()
    assert loss.worst_epsilon(0.0) == pytest.approx(math.log(1 + 0.25 * 2))


@pytest.mark.parametrize(("n", "share"), [(3, None), (4, 0.25), (4, 0.5), (4, 0.7)])
def test_a_trusted_sampler_draws_a_fixed_number(n, share):
    """All sets and responses: what is said is what k of n drawn reports show; a coin for each report would show more."""
    loss = trusted_sampler(Shuffle(graphs.complete(n), 4, E0, laziness=0.5), share)
    said = loss.curve.delta(EPSILONS)
    drawn = math.ceil(math.sqrt(n) if share is None else share * n)
    assert f"draws {drawn} of the {n} reports" in loss.assumptions[0]
    fixed, coins = np.zeros(len(EPSILONS)), np.zeros(len(EPSILONS))
    for others in itertools.product((0, 1), repeat=n - 1):
        sides = []
        for value in (0, 1):
            laws = [[(answer, RESPONSE[x, answer]) for answer in (0, 1)] for x in (value, *others)]
            by_size = [{} for _ in range(n + 1)]
            for chosen in itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1)):
                for seen, chance in heap([laws[w] for w in chosen]).items():
                    size = len(chosen)
                    by_size[size][seen] = by_size[size].get(seen, 0.0) + chance / math.comb(n, size)
            sides.append(by_size)
        by_size = np.array(
            [
                [sum(max(a[s] - math.exp(e) * b[s], 0.0) for s in a) for e in EPSILONS]
                for a, b in zip(*sides, strict=True)
            ]
        )
        weights = [math.comb(n, k) * (drawn / n) ** k * (1 - drawn / n) ** (n - k) for k in range(n + 1)]
        fixed, coins = np.maximum(fixed, by_size[drawn]), np.maximum(coins, weights @ by_size)
    assert (fixed <= said + 1e-12).all()
    assert drawn > 1 or said == pytest.approx(fixed, abs=1e-9)  # several hide each other, which is not counted
    assert (coins > said + 1e-6).any()


@pytest.mark.parametrize("epsilon0", [30.0, 300.0, 500.0])
def test_reports_with_next_to_no_noise(epsilon0):
    """e^2ε₀ may be beyond all doubles, and δ of the report 1 but for rounding."""
    for reporting in ("all", "single"):
        protocol = Shuffle(graphs.complete(20), 30, epsilon0, reporting=reporting)
        for loss in (account(protocol, "curator"), local_dp(protocol)):
            assert loss.worst_epsilon(0.5) == pytest.approx(epsilon0 - math.log(2), abs=1e-6)
    assert trusted_sampler(protocol).worst_epsilon(0.0) == pytest.approx(epsilon0 - math.log(4), abs=1e-6)


def test_the_quantile_of_returns_is_as_printed():
    """Formula pin: Σ(Mx)² over the coins, divided by 0.99 of the chi-squared quantile that fails once in 1/FAILURE in all."""
    protocol = Shuffle(graphs.regular(30, 6, seed=2), 2, 1.0, laziness=0.2)
    users = np.arange(1, 30)
    Q = protocol.transition[users][:, users].tocsr()
    found = next(iter(coalitions._by_returns(protocol, users, Q, 0.0, None)))
    degree = protocol.graph.degrees[users].astype(float)
    root = np.sqrt(degree)
    M = root[:, None] * Q.toarray() / root
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    rho, phi = float(values[-1]), np.abs(vectors[:, -1])
    coins = np.random.default_rng(np.random.SeedSequence([int(protocol.graph.digest, 16), 1, 2, 3, 4, 29]))
    square = np.zeros(29)
    for start in range(0, coalitions._VECTORS, 32):
        y = coins.standard_normal((29, min(32, coalitions._VECTORS - start)))
        y -= phi[:, None] * (phi @ y)
        square += ((M @ y) ** 2).sum(axis=1)
    quantile = 0.99 * float(chi2.ppf(RETURNS_FAILURE / 29, coalitions._VECTORS))
    far = np.sqrt(square / quantile / rho**2) / phi
    scale = rho**2 * (phi / root) * float(phi @ root)
    assert found.time == 2
    assert found.most == pytest.approx(scale * (1 + far * far.max()), rel=1e-6, abs=0.0)
