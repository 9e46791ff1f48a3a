"""Randomized gossip with fresh noise, from both sides (docs/proofs/gossip.md#dithered-exchanges): enumerated laws, limits, logs."""

import dataclasses
import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import netdp
from netdp import graphs, simulate
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.grid import course_of, first_value_delta, transcript_distance, wire_grid
from netdp.families.gossip.account.grid import factors_of_exchanges as factors
from netdp.families.gossip.logs import ExchangeLogs, ExchangeView
from netdp.families.gossip.protocol import RandomizedGossip, difference, fits, shared, waking_alike
from netdp.families.linear.account import shift_energy
from netdp.privacy import Claim
from netdp.protocols import Seen
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate

EPSILONS = np.array([0.0, 0.1, 0.3, 1.0])
CHAIN = graphs.path(3)  # 0 watches, 1 is between, 2 is the target

# 1 and 2 exchange, then 0 and 1: nothing goes wrong
PLAIN = ExchangeLogs.of_edges(3, [[1, 2], [0, 1]])
# 2 offers to 1; 1 sends, goes on without the answer, and exchanges with 0; the answer comes late; 0 and 1 exchange again
LATE = ExchangeLogs(
    3,
    {
        0: [("met", 1, 0), ("met", 1, 1)],
        1: [
            ("accepted", 2, 0),
            ("accepted", 0, 0),
            ("heard", 0, 0),
            ("heard", 2, 0),
            ("accepted", 0, 1),
            ("heard", 0, 1),
        ],
        2: [("met", 1, 0)],
    },
)
# 1 offers to 2, 2 averages at once on the answer that 1 sent … and 1 never does: torn; then 2's neighbour asks again
TORN = ExchangeLogs(
    3,
    {
        0: [("met", 1, 0)],
        1: [("accepted", 2, 0), ("accepted", 0, 0), ("heard", 0, 0)],
        2: [("met", 1, 0)],
    },
)


def protocol(sigma, tau, logs, **more):
    """σ and τ in steps; 2·steps/n = r·σ²/τ²."""
    steps = 6
    return RandomizedGossip(CHAIN, steps=steps, sigma=sigma, refresh=2 * steps * tau**2 / (3 * sigma**2), **more)


def law(variance, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2.0 * variance))
    return x, weights / weights.sum()


def enumerated(p, value):
    """P of all that 0 sees in LATE: (y₁, y₂ − what 0 knows of it), as a dictionary of arrays."""
    reach0, reach1 = 9 * math.isqrt(p.start_variance) + 9, 9 * math.isqrt(p.fresh_variance) + 9
    first, chances = law(p.start_variance, reach0)
    _, noises = law(p.fresh_variance, reach1)
    wide = 3 * reach0 + 2 * reach1 + int(p.distance) + 10
    table = np.zeros((2 * wide + 1, 2 * wide + 1))
    for a, pa in zip(first.tolist(), chances, strict=True):
        b = first + value
        moved = difference(1, np.full(len(b), a), 2, b)
        low = int(moved.min())
        law_moved = np.bincount(moved - low, weights=chances)
        second = np.convolve(law_moved, noises)  # from low − reach1 on
        start = low - reach1 + wide
        row = np.zeros(2 * wide + 1)
        row[start : start + len(second)] = second
        table[a - reach1 + wide : a + reach1 + wide + 1] += pa * noises[:, None] * row
    return table


def worst(zero, moved, epsilons):
    return np.array(
        [
            max(np.maximum(one - math.exp(e) * two, 0).sum() for one, two in ((zero, moved), (moved, zero)))
            for e in epsilons
        ]
    )


def plain_law(p, value):
    """P[⌊(s₁ + s₂)/2⌋ + γ = ·]: all that 0 sees in PLAIN."""
    reach0, reach1 = 12 * math.isqrt(p.start_variance) + 12, 12 * math.isqrt(p.fresh_variance) + 12
    _, chances = law(p.start_variance, reach0)
    _, noises = law(p.fresh_variance, reach1)
    total = np.convolve(chances, chances)
    sums = np.arange(-2 * reach0, 2 * reach0 + 1) + value
    half = sums // 2
    low = -reach0
    return np.convolve(np.bincount(half - low, weights=total, minlength=3 * reach0 + 9), noises)


@pytest.mark.parametrize(("sigma", "tau"), [(2.0, 1.0), (8.0, 4.0), (100.0, 40.0), (1000.0, 900.0)])
def test_the_bound_lies_above_the_truth_by_what_is_stated(sigma, tau):
    p = protocol(sigma, tau, PLAIN, grid=1.0, sensitivity=sigma)
    assert math.ceil(tau**2) <= p.fresh_variance <= tau**2 + 1
    truth = worst(plain_law(p, 0), plain_law(p, int(p.distance)), EPSILONS)
    check(p, PLAIN, truth)


@pytest.mark.parametrize(("sigma", "tau"), [(2.0, 1.0), (3.0, 6.0), (6.0, 5.0)])
def test_a_late_answer_is_counted(sigma, tau):
    p = protocol(sigma, tau, LATE, grid=1.0, sensitivity=sigma)
    truth = worst(enumerated(p, 0), enumerated(p, int(p.distance)), EPSILONS)
    check(p, LATE, truth)
    course = course_of(ExchangeView(LATE, (0,)))
    assert (course.sends, course.later, course.squares, course.weight) == (4, 2, 1 + 4, 2.0)


def printed_distance(p, course):
    """TV of the theorem with 40 digits; V bounds the noise of any state: weight²·(V₀ + 2·steps·V₁)."""
    with mpmath.workdps(40):
        d, v0, v1 = p.dimension, mpmath.mpf(p.start_variance), mpmath.mpf(p.fresh_variance)
        m, later = course.sends, course.later
        most = mpmath.mpf(course.weight) ** 2 * (v0 + 2 * p.steps * v1)
        absorbed = mpmath.sqrt(d * mpmath.mpf(course.squares)) / mpmath.sqrt(2 * mpmath.pi * v1)
        drawn = d * ((m - later) / (24 * v0) + later / (24 * v1))
        return absorbed + drawn + 4 * d * m * (mpmath.exp(-(mpmath.mpf(2) ** 121) / most) + mpmath.exp(-128))


def printed_course(logs, observers, hidden):
    """M, L and Σ(1 + l_j)², read off the logs: an answer is late if its party has sent something else since."""
    sends = later = squares = 0
    for u in hidden:
        since = {}
        for i, (what, other, k) in enumerate(logs.deeds[u]):
            if what == "heard":
                at = next(j for j, one in enumerate(logs.deeds[u]) if tuple(one) == ("accepted", other, k))
                late = any(one[0] != "heard" for one in logs.deeds[u][at + 1 : i])
                since["late"] = since.get("late", 0) + late
                continue
            sends += 1
            if since or any(one[0] != "heard" for one in logs.deeds[u][:i]):
                later += 1
                squares += (1 + since.get("late", 0)) ** 2
            since = {"late": 0}
    return sends, later, squares


@pytest.mark.parametrize("logs", [PLAIN, LATE, TORN], ids=["plain", "late", "torn"])
@pytest.mark.parametrize("dimension", [1, 7])
def test_the_distance_is_the_one_that_is_printed(logs, dimension):
    """Formula pin: brute force cannot see a loose margin; the printed TV can."""
    course = course_of(ExchangeView(logs, (0,)))
    assert (course.sends, course.later, course.squares) == printed_course(logs, (0,), (1, 2))
    for sigma, tau, grid in ((2.0, 1.0, 1.0), (8.0, 4.0, 2.0**-20), (2.0, 1.0, 2.0**-55)):
        p = protocol(sigma, tau, logs, grid=grid, dimension=dimension)
        exact = printed_distance(p, course)
        assert 1 <= float(transcript_distance(p, course) / exact) <= 1 + 1e-11


def test_states_that_late_answers_let_grow_are_refused():
    """The proof follows coefficients of at most 2 in sum: beyond that no distance is stated, and local DP is all."""
    p = protocol(8.0, 4.0, LATE, grid=1.0)
    course = course_of(ExchangeView(LATE, (0,)))
    assert course.weight == 2.0
    assert math.isfinite(transcript_distance(p, course))
    for weight in (math.nextafter(2.0, 3.0), 2.5, 4.0, 5.0):
        assert transcript_distance(p, dataclasses.replace(course, weight=weight)) == math.inf
    # 1 offers twice to 2 and adds both answers late: 1 + (1 + 1)/2 + (1 + 1)/2
    twice = ExchangeLogs(
        3,
        {
            0: [("met", 1, 0), ("met", 1, 1)],
            1: [
                ("accepted", 2, 0),
                ("accepted", 2, 1),
                ("accepted", 0, 0),
                ("heard", 2, 0),
                ("heard", 2, 1),
                ("accepted", 0, 1),
            ],
            2: [("met", 1, 0), ("met", 1, 1)],
        },
    )
    grown = course_of(ExchangeView(twice, (0,)))
    assert grown.weight == 3.0
    assert transcript_distance(p, grown) == math.inf
    # who left no log is taken to hold twice what means of states hold: 1 hears 0 in time, 2 + (2 + 2)/2 … late
    for kept, grown in (((1, 2), 3.0), ((0, 1), 2.5), ((1,), 3.5)):
        unknown = ExchangeLogs(3, {u: LATE.deeds[u] for u in kept})
        assert course_of(ExchangeView(unknown, (0,))).weight == grown
    local = np.asarray(netdp.local_dp(p).delta(1.0))[1:]
    assert account(p, [0], transcript=twice).delta(1.0)[1:] == pytest.approx(local, rel=1e-3, abs=0.0)


def check(p, logs, truth):
    found = np.array([account(p, [0], transcript=logs).delta(eps)[2] for eps in EPSILONS])
    assert (found >= truth - 1e-12).all()
    ideal = account(p.replace(grid=None), [0], transcript=logs)
    real = np.array([ideal.delta(eps)[2] for eps in EPSILONS])
    added = (1 + np.exp(EPSILONS)) * transcript_distance(p, course_of(ExchangeView(logs, (0,))))
    assert (found <= np.minimum(real + added, first_value_delta(p, EPSILONS)) * 1.003 + 1e-6).all()
    assert (
        np.abs(truth - real) <= added + 1e-12
    ).all()  # the truth is no further from real numbers than the theorem says


@pytest.mark.parametrize(("sigma", "tau"), [(2.0, 1.0), (3.0, 2.0)])
def test_the_theorem_on_an_instance(sigma, tau):
    """(s₁, s₂, s₁′) of PLAIN against the rounded ideal, whose cells are integrals of Gaussians: quadrature."""
    p = protocol(sigma, tau, PLAIN, grid=1.0)
    v0, v1 = p.start_variance, p.fresh_variance
    x, chances = law(v0, int(6 * sigma) + 2)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    density = stats.norm.pdf(x[:, None] + nodes / 2, scale=math.sqrt(v0)) * weights / 2  # (values, nodes)
    wide = int(6 * tau) + 3
    place = np.arange(-wide, wide + 1)
    distance = 0.0
    _, noises = law(v1, wide)
    for (a, pa, da), (b, pb, db) in itertools.product(zip(x.tolist(), chances, density, strict=True), repeat=2):
        mean = ((a + nodes / 2)[:, None] + (b + nodes / 2)[None, :]) / 2 - (a + b) // 2
        edges = stats.norm.cdf((np.append(place - 0.5, place[-1] + 0.5)[:, None, None] - mean) / math.sqrt(v1))
        ideal = np.einsum("kij,i,j->k", np.diff(edges, axis=0), da, db)
        distance += 0.5 * np.abs(pa * pb * noises - ideal).sum()
    view = ExchangeView(PLAIN, (0,))
    assert distance <= transcript_distance(p, course_of(view))
    assert distance > 0.01 * transcript_distance(p, course_of(view))


def written_out(p, logs, observers):
    """What observers see, run forwards on symbols: an independent reckoning of the same view."""
    n, tau = p.n, math.sqrt(p.refresh_variance) / p.sigma
    width = n + sum(d.what != "heard" for log in logs.deeds.values() for d in log)
    state = np.zeros((n, width))
    state[:, :n] = np.eye(n)
    sent, at, fresh, began, rows = {}, dict.fromkeys(logs.deeds, 0), n, set(), []
    owner = list(range(n))
    while any(at[u] < len(logs.deeds[u]) for u in at):
        for u in at:
            while at[u] < len(logs.deeds[u]):
                what, other, k = logs.deeds[u][at[u]]
                exchange = (u, other, k) if what == "met" else (other, u, k)
                if what != "accepted" and (other, exchange) not in sent:
                    break
                if what != "heard":
                    if u in began:
                        state[u, fresh] = tau
                        owner.append(u)
                        fresh += 1
                    began.add(u)
                    sent[u, exchange] = state[u].copy()
                    if other in observers:
                        rows.append(state[u].copy())
                if what != "accepted":
                    state[u] += (sent[other, exchange] - sent[u, exchange]) / 2
                at[u] += 1
    rows = np.array(rows).reshape(-1, width)[:, :fresh]
    rows[:, np.isin(owner, observers)] = 0.0
    return Seen(tuple(observers), rows[:, :n], rows), state


def random_logs(graph, exchanges, rng, faults):
    """Logs of a run in which exchanges overlap, come late, are torn or void."""
    logs, owed, number = {u: [] for u in range(graph.n)}, [], itertools.count()
    for u, w in graph.edges()[rng.integers(0, graph.m, exchanges)].tolist():
        if rng.random() < 0.5:
            u, w = w, u
        k = next(number)
        logs[w].append(("accepted", u, k))
        kind = rng.random()
        if kind < faults / 3:
            continue
        logs[u].append(("met", w, k))
        if kind < 2 * faults / 3:
            continue
        if kind < faults:
            owed.append((w, ("heard", u, k)))
            continue
        logs[w].append(("heard", u, k))
        if owed and rng.random() < 0.5:
            late, deed = owed.pop(0)
            logs[late].append(deed)
    return ExchangeLogs(graph.n, logs)


@pytest.mark.parametrize("logs", [PLAIN, LATE], ids=["plain", "late"])
def test_the_rounding_of_the_factors_is_stated(logs):
    """Formula pin: (√v(1 + m) + m)² above the exact factor v, found with 40 digits; m is at least 32(M + n) units."""
    p = protocol(1.0, 0.5, logs)
    seen, _ = written_out(p, logs, (0,))
    found = factors(p, ExchangeView(logs, (0,)))
    m = math.sqrt(1 + found.slack) / 2 - 0.5  # slack = 4m(1 + m)
    assert m >= 32 * (len(seen.data) + 3) * 2.0**-53
    with mpmath.workdps(40):
        tau = mpmath.sqrt(mpmath.mpf(p.refresh) * 3 / (2 * p.steps))
        assert float(tau) == pytest.approx(0.5)
        noise = mpmath.matrix(seen.noise.tolist())
        noise[:, 3:] *= tau / 0.5
        covariance = noise * noise.T
        for u in (1, 2):
            column = noise[:, u]
            exact = (column.T * mpmath.lu_solve(covariance, column))[0]
            root = float(mpmath.sqrt(exact))
            above = float(mpmath.mpf(float(found.values[u])) - exact)
            assert found.values[u] == 1.0 or above == pytest.approx(
                (root * (1 + m) + m) ** 2 - root**2, rel=0.1, abs=0.0
            )
    assert found.values[2] < 1


@pytest.mark.parametrize("seed", range(12))
def test_backwards_is_as_forwards(seed):
    rng = np.random.default_rng(seed)
    graph = [graphs.path(4), graphs.ring(6), graphs.complete(5), graphs.star(5)][seed % 4]
    logs = random_logs(graph, int(rng.integers(1, 40)), rng, [0.0, 0.5][seed % 2])
    p = RandomizedGossip(graph, steps=40, sigma=1.5, refresh=float(rng.uniform(0.1, 20)))
    observers = tuple(sorted(rng.choice(graph.n, size=1 + seed % 3 // 2, replace=False).tolist()))
    seen, _ = written_out(p, logs, observers)
    found = factors(p, ExchangeView(logs, observers))
    if len(seen.data):
        np.testing.assert_allclose(found.values, shift_energy(seen), rtol=1e-7, atol=1e-9)
    out = ~ExchangeView(logs, observers).reached
    assert (found.values[out & ~np.isnan(found.values)] == 0).all()
    # a party without a log is one more observer
    gone = next(u for u in range(graph.n) if u not in observers)
    less = ExchangeLogs(graph.n, {u: log for u, log in logs.deeds.items() if u != gone})
    assert less.missing == (gone,)
    both = factors(p, ExchangeView(logs, (*observers, gone))).values
    np.testing.assert_allclose(factors(p, ExchangeView(less, observers)).values, both, rtol=1e-9, atol=1e-12)
    known = ~np.isnan(both)
    assert (both[known] >= found.values[known] - 1e-9).all()


def test_without_faults_it_is_the_known_accountant():
    graph = graphs.ring(5)
    p = RandomizedGossip(graph, steps=30, sigma=1.0, refresh=1e-7)
    edges = p.draw(4)
    weak, none = account(p, [0], transcript=edges), account(p.replace(refresh=0.0), [0], transcript=edges)
    np.testing.assert_allclose(weak.factor, none.factor, atol=2e-2)
    strong = account(p.replace(refresh=5.0), [0], transcript=edges)
    assert (strong.factor[1:] <= none.factor[1:] + 1e-9).all()
    assert strong.factor[1:].sum() < none.factor[1:].sum()


def test_what_is_claimed_before_and_after():
    p = RandomizedGossip(graphs.ring(6), steps=60, sigma=2.0, refresh=1.0)
    p = p.replace(grid=wire_grid(p, 1e-6))
    edges = p.draw(1)
    local = netdp.local_dp(p).epsilon(1e-6)
    before = account(p, [0])
    np.testing.assert_allclose(before.epsilon(1e-6)[1:], local[1:], rtol=1e-3)
    assert before.claim == "upper"
    after = account(p, [0], transcript=edges)
    ideal = account(p.replace(grid=None), [0], transcript=edges)
    np.testing.assert_allclose(after.epsilon(1e-6), ideal.epsilon(1e-6), rtol=1e-3)
    assert (after.epsilon(1e-6)[1:] >= ideal.epsilon(1e-6)[1:] * (1 - 1e-12)).all()
    assert np.nanmin(after.epsilon(1e-6)) < 0.7 * before.worst_epsilon(1e-6)
    plain = account(p.replace(refresh=0.0), [0], transcript=edges)
    np.testing.assert_allclose(plain.epsilon(1e-6)[1:], local[1:], rtol=1e-3)
    assert any("only local DP" in text for text in plain.assumptions)
    few = p.replace(steps=1, grid=2.0**-40)
    far = account(few, [0], transcript=[[2, 3]])
    assert (far.epsilon(0.0)[1:] == 0).all()
    assert account(p, colluders=2).worst_epsilon(1e-6) == pytest.approx(before.worst_epsilon(1e-6), rel=1e-9)


def test_torn_exchanges_are_found_and_counted():
    assert (PLAIN.torn, LATE.torn, TORN.torn) == ((), (), ((2, 1, 0),))
    assert (PLAIN.exchanges, LATE.exchanges, TORN.exchanges) == (2, 3, 2)
    p = protocol(2.0, 1.0, TORN, grid=2.0**-40)
    loss = account(p, [0], transcript=TORN)
    assert loss.factor[2] == 0  # nothing of 2 ever came to 1
    assert loss.factor[1] > 0
    assert any("torn" in text for text in loss.assumptions)
    assert account(p, [1], transcript=TORN).factor[2] == pytest.approx(1.0)
    assert ExchangeLogs.from_dict(3, json.loads(json.dumps(TORN.to_dict()))).deeds == TORN.deeds
    void = ExchangeLogs(3, {0: [], 1: [("accepted", 0, 3)], 2: []})
    assert void.void == ((0, 1, 3),)


@pytest.mark.parametrize("grid", [None, 2.0**-40])
def test_who_left_no_log_is_not_left_out_of_the_worst(grid):
    """0 and 1 exchange, 2 and 3 too. Without the log of 1, what 0 learned about 1 is still all that it can be."""
    p = RandomizedGossip(graphs.path(4), steps=4, sigma=2.0, refresh=0.1, grid=grid)
    all_logs = ExchangeLogs.of_edges(4, [[0, 1], [2, 3]])
    truth = account(p, [0], transcript=all_logs).worst_epsilon(1e-6)
    for kept in ((0, 2, 3), (0,), (2,), ()):
        loss = account(p, [0], transcript=ExchangeLogs(4, {u: all_logs.deeds[u] for u in kept}))
        assert loss.worst_epsilon(1e-6) >= truth * (1 - 1e-9)
        assert loss.claim is Claim.UPPER
        assert np.isnan(loss.factor).tolist() == [True, False, False, False]
        assert all(loss.factor[u] == 1 for u in range(1, 4) if u not in kept)
        assert any("left no log" in text for text in loss.assumptions)
    others = ExchangeLogs(4, {u: all_logs.deeds[u] for u in (1, 2, 3)})  # 0 looks anyway: its own log is not needed
    own = account(p, [0], transcript=others)
    assert own.factor[1:].tolist() == account(p, [0], transcript=all_logs).factor[1:].tolist()
    assert any("every log is true" in text for text in own.assumptions)


@pytest.mark.parametrize(
    ("deeds", "said"),
    [
        ({0: [("met", 1, 0)], 1: [], 2: []}, "contradict"),
        ({0: [("heard", 1, 0)]}, "before the exchange"),
        ({0: [("met", 1, 0), ("met", 1, 0)]}, "twice"),
        ({0: [("met", 0, 0)]}, "no party does"),
        ({0: [("danced", 1, 0)]}, "no party does"),
        ({0: [("met", 7, 0)]}, "no party does"),
        ({0: ["x"]}, "a deed is"),
        ({5: []}, "only parties"),
        ({0: [("accepted", 2, 0)], 1: [], 2: []}, "no neighbour"),
    ],
)
def test_impossible_logs_are_refused(deeds, said):
    p = protocol(2.0, 1.0, None, grid=2.0**-40)
    with pytest.raises(InvalidValue, match=said):
        account(p, [2 if 0 in deeds else 1], transcript=ExchangeLogs(3, deeds))


def test_too_many_sends_are_refused():
    p = RandomizedGossip(CHAIN, steps=1, sigma=2.0, refresh=1.0, grid=2.0**-40)
    with pytest.raises(InvalidValue, match="more than the two"):
        account(p, [0], transcript=PLAIN)
    with pytest.raises(InvalidValue, match="of 4 parties"):
        account(p, [0], transcript=ExchangeLogs.of_edges(4, [[0, 1]]))


def test_old_forms_load_and_bad_values_are_refused():
    p = RandomizedGossip(graphs.ring(4), steps=8, sigma=1.0)
    old = {k: v for k, v in p.to_dict().items() if k not in ("refresh", "grid", "dimension")}
    assert RandomizedGossip.from_dict(old) == p
    fine = p.replace(refresh=0.5, grid=2.0**-30, dimension=3)
    assert RandomizedGossip.from_dict(json.loads(json.dumps(fine.to_dict()))) == fine
    for change in (
        {"grid": 0.3},
        {"grid": 2.0},
        {"grid": 2.0**-59},
        {"refresh": -1},
        {"accelerated": True, "refresh": 1},
    ):
        with pytest.raises(InvalidValue):
            p.replace(**change)
    with pytest.raises(InvalidValue, match="no grid"):
        p.step  # noqa: B018
    with pytest.raises(Unsupported, match="Corollary 2"):
        account(fine, [0], method="published", transcript=fine.draw(0))


def recorded(p, values, seed):
    """What all parties hold, from two runs that are the same: nobody would be left if all looked."""
    some, last = simulate(p, values, seed, record=range(p.n - 1)), simulate(p, values, seed, record=[p.n - 1])
    np.testing.assert_array_equal(some.estimates, last.estimates)
    one, two = some.record, last.record
    refreshes = np.zeros((max(len(one.refreshes), len(two.refreshes)), p.n, 1))
    refreshes[: len(one.refreshes), :-1], refreshes[: len(two.refreshes), -1:] = one.refreshes, two.refreshes
    told = {tuple(m): x for r in (one, two) for m, x in zip(r.messages.tolist(), r.payloads, strict=True)}
    return some.estimates, np.vstack([one.values, two.values]), np.vstack([one.noises, two.noises]), refreshes, told


def test_not_a_unit_is_lost():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**62), 2**62, (2, 1000))
    lower, upper = shared(a, b)
    assert all(x + y == s + t for x, y, s, t in zip(*(v.tolist() for v in (a, b, lower, upper)), strict=True))
    assert ((upper - lower >= 0) & (upper - lower <= 1)).all()
    assert (difference(1, a, 2, b) == -difference(2, b, 1, a)).all()
    assert fits(lower)
    p = RandomizedGossip(graphs.ring(5), steps=50, sigma=2.0, grid=2.0**-20)  # no fresh noise: the sum of all stays
    estimates, values, noises, _, _ = recorded(p, np.arange(5) / 4, 1)
    assert estimates.sum() == values.sum() + noises.sum()  # small whole numbers of steps: exact
    with pytest.raises(InvalidValue, match="expected"):
        difference(0, a, 1, b[:3])


@pytest.mark.parametrize("grid", [None, 2.0**-30])
def test_the_record_explains_what_is_seen(grid):
    p = RandomizedGossip(graphs.ring(5), steps=40, sigma=2.0, refresh=2.0, grid=grid)
    estimates, values, noises, refreshes, told = recorded(p, np.arange(5) / 4, 2)
    state, began = values + noises, [0] * 5
    for t, (u, w) in enumerate(p.draw(2).tolist()):
        if u < 0:
            continue
        for v in (u, w):
            if began[v]:
                state[v] += refreshes[began[v] - 1, v]
            began[v] += 1
        np.testing.assert_allclose(told[t, u, w], state[u], atol=1e-7)
        np.testing.assert_allclose(told[t, w, u], state[w], atol=1e-7)
        state[u] = state[w] = (state[u] + state[w]) / 2
    np.testing.assert_allclose(estimates, state, atol=1e-7)
    assert refreshes.any()


def test_the_error_is_predicted():
    x = np.array([0.0, 1, 0, 1, 0, 1])
    p = RandomizedGossip(graphs.ring(6), steps=60, sigma=2.0, refresh=3.0, grid=2.0**-40)
    predicted = expected_error(p, x)
    errors = [((simulate(p, x, seed=s).estimates - 0.5) ** 2).mean() for s in range(144)]
    assert abs(np.mean(errors) - predicted.total) < 5 * np.std(errors) / 12
    assert predicted.refresh > predicted.noise
    given = [expected_error(p, x, transcript=p.draw(s)).total for s in range(36)]
    assert abs(np.mean(given) - predicted.total) < 5 * np.std(given) / 6
    logs = ExchangeLogs.of_edges(6, p.draw(3))
    _, final = written_out(p, logs, ())
    exact = expected_error(p, x, transcript=p.draw(3))
    assert exact.noise + exact.refresh == pytest.approx(4.0 * (final**2).sum() / 6, rel=1e-9)


def test_noise_for_a_target_on_a_grid():
    p = RandomizedGossip(graphs.ring(6), steps=60, sigma=2.0, refresh=1.0, grid=2.0**-6, dimension=4)
    found = calibrate(p, 1.0, 1e-6)
    assert account(found, [0]).worst_epsilon(1e-6) <= 1.0
    assert account(found.replace(sigma=found.sigma * 0.999), [0]).worst_epsilon(1e-6) > 1.0
    assert found.sigma > calibrate(p.replace(grid=None), 1.0, 1e-6).sigma


def test_everybody_wakes_alike():
    graph = graphs.star(5)
    p = RandomizedGossip(graph, steps=4, sigma=1.0, probabilities=waking_alike(graph))
    assert sum(p.edge_probabilities) == pytest.approx(1.0)
    assert p.edge_probabilities[0] == pytest.approx((1 + 1 / 4) / 5)
