"""Uniform shuffling: against exact sums, against all data of binary and ternary response, and against itself.

Proof: docs/proofs/shuffle.md#shuffled-heap.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.binomial import Law
from netdp.privacy import GaussianCurve, clones
from netdp.privacy.clones import Heap, response_loss, response_profile, shuffled_epsilon, shuffled_profile


def exact_delta(others, epsilon0, epsilon, *, keep=1, sure=0, sure_p=0, p=None):
    """The double sum over the counts (a, b), in 50 digits: binary symbols, or revealed blanks when p is given."""
    with mpmath.workdps(50):
        e, grow = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.exp(mpmath.mpf(epsilon))
        p = 1 / (e + 1) if p is None else mpmath.mpf(p)
        one = {(0, 0): mpmath.mpf(1)}

        def add(law, chance):
            out = {}
            for (a, b), mass in law.items():
                for (i, j), part in (((1, 0), chance), ((0, 1), chance), ((0, 0), 1 - 2 * chance)):
                    out[a + i, b + j] = out.get((a + i, b + j), 0) + mass * part
            return out

        for _ in range(others):
            one = add(one, p * keep)
        for _ in range(sure):
            one = add(one, mpmath.mpf(sure_p))
        q = e * p
        total = mpmath.mpf(0)
        for a, b in itertools.product(range(others + sure + 2), repeat=2):
            left, right = one.get((a - 1, b), 0), one.get((a, b - 1), 0)
            total += max(0, q * left + p * right - grow * (p * left + q * right))
        return total


def heap_delta(laws, victim, grow):
    """δ of a shuffled heap: `laws` of the others' reports, the victim's two laws; max of both directions, exactly."""

    def heap(first):
        out = {tuple([0] * len(first)): Fraction(1)}
        for law in [first, *laws]:
            new = {}
            for counts, mass in out.items():
                for symbol, chance in enumerate(law):
                    key = tuple(c + (i == symbol) for i, c in enumerate(counts))
                    new[key] = new.get(key, 0) + mass * chance
            out = new
        return out

    P, Q = heap(victim[0]), heap(victim[1])
    return max(
        sum((max(Fraction(0), P[h] - grow * Q[h]) for h in P), Fraction(0)),
        sum((max(Fraction(0), Q[h] - grow * P[h]) for h in P), Fraction(0)),
    )


@pytest.mark.parametrize("others", [1, 2, 7, 20])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
def test_equals_the_exact_double_sum(others, epsilon0):
    heap = Heap.of(others, epsilon0)
    for epsilon in np.linspace(0, epsilon0, 9)[:-1]:
        exact = exact_delta(others, epsilon0, epsilon)
        computed = heap.deltas(epsilon)[0]
        assert exact <= computed <= exact * (1 + mpmath.mpf(10) ** -10) + mpmath.mpf(10) ** -29


@pytest.mark.parametrize("settings_", [{"keep": 0.6}, {"sure": 5, "sure_p": 0.25}, {"p": 0.1}])
def test_thinned_sure_and_revealed(settings_):
    extra = {**settings_, **({"q": 0.1 * math.exp(1.5)} if "p" in settings_ else {})}
    heap = Heap.of(9, 1.5, **extra)
    for epsilon in (0.0, 0.3, 0.9, 1.4):
        exact = exact_delta(9, 1.5, epsilon, **settings_)
        assert exact * (1 - mpmath.mpf(10) ** -14) <= heap.deltas(epsilon)[0] <= exact * (1 + mpmath.mpf(10) ** -9)


def test_large_heap_against_mpmath():
    """One size of heap at n = 10⁵, where windows, recurrences and the subtraction matter."""
    heap = Heap.of(100_000, 1.0)
    epsilon = heap.epsilon(1e-12)
    with mpmath.workdps(40):
        e, grow = mpmath.exp(1), mpmath.exp(mpmath.mpf(epsilon))
        for j in (0, len(heap.cells.which) // 2, len(heap.cells.which) - 1):
            s = int(heap.coins.s[j])
            a = math.ceil(s * (grow * e - 1) / ((e - 1) * (1 + grow)))
            g = mpmath.binomial(s - 1, a - 1) / mpmath.mpf(2) ** (s - 1)
            tail, term = mpmath.mpf(0), g
            for k in range(a, s):
                term = term * (s - k) / k
                tail += term
                if term < tail * mpmath.mpf(10) ** -30:
                    break
            exact = g * (e - grow) / (e + 1) - (grow - 1) * tail
            found = heap.coins.deltas(np.array([j]), np.ones(1), 1.0, np.array([epsilon]))[0, 0]
            assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -7)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_binary_response_all_data(n):
    """Truth over all data of the others: never above; telling who is no clone is all that is lost."""
    e = Fraction(3)
    response = [(e / (e + 1), 1 / (e + 1)), (1 / (e + 1), e / (e + 1))]
    curve = Heap.of(n - 1, math.log(3))
    closest = math.inf
    for grow in (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(14, 5)):
        worst = max(
            heap_delta([response[x] for x in data], response, grow)
            for data in itertools.combinations_with_replacement((0, 1), n - 1)
        )
        bound = curve.deltas(math.log(grow))[0]
        assert worst <= Fraction(bound) + Fraction(1, 10**14)
        closest = min(closest, bound / float(worst)) if worst else closest
    assert closest < 1.35
    # just below ε₀ only the victim's own symbol helps: there the bound is the truth of the worst data
    near = Fraction(2999, 1000)
    worst = heap_delta([response[1]] * (n - 1), response, near)
    assert curve.deltas(math.log(near))[0] == pytest.approx(
        float(max(worst, heap_delta([response[0]] * (n - 1), response, near))), rel=1e-6
    )


@pytest.mark.parametrize("domain", [3, 4])
def test_larger_response_all_data(domain):
    gamma = Fraction(1, 2)
    uniform = gamma / domain

    def law(x):
        return tuple(uniform + (1 - gamma if i == x else 0) for i in range(domain))

    n, epsilon0 = 4, math.log1p(domain)
    bound = response_profile(n - 1, domain, 0.5, epsilons=np.linspace(0, epsilon0, 12))
    revealed = shuffled_profile(
        n - 1, epsilon0, p=float(uniform), q=float(uniform + 1 - gamma), epsilons=bound.epsilons
    )
    every = shuffled_profile(n - 1, epsilon0, epsilons=bound.epsilons)
    for i, epsilon in enumerate(bound.epsilons[:-1]):
        grow = Fraction(math.exp(epsilon))
        worst = max(
            heap_delta([law(x) for x in data], (law(0), law(1)), grow)
            for data in itertools.combinations_with_replacement(range(domain), n - 1)
        )
        for curve in (bound, revealed, every):
            assert worst <= Fraction(curve.deltas[i]) + Fraction(1, 10**14)
        assert bound.deltas[i] <= revealed.deltas[i] * (1 + 1e-9)
    assert bound.delta(0.1) < 1.6 * float(
        max(
            heap_delta([law(x) for x in data], (law(0), law(1)), Fraction(math.exp(0.1)))
            for data in itertools.combinations_with_replacement(range(domain), n - 1)
        )
    )


@pytest.mark.parametrize(("domain", "others", "sure"), [(5, 12, 0), (5, 9, 4), (3, 0, 10), (40, 15, 15)])
def test_response_against_the_sum_over_all_counts(domain, others, sure):
    """E(Z₁ + … + Z_n)₊/n over the numbers of both symbols and of blanks, written out for every number of uniform draws."""
    gamma = 0.4
    epsilon0 = math.log1p(domain * (1 - gamma) / gamma)
    eps = np.linspace(0, epsilon0, 8)[:-1]
    e, exact = math.exp(epsilon0), np.zeros(len(eps))
    for drawn in range(others + 1):
        chance = math.comb(others, drawn) * gamma**drawn * (1 - gamma) ** (others - drawn)
        T = drawn + sure + 1
        for a in range(T + 1):
            for b in range(T - a + 1):
                c = T - a - b
                ways = math.comb(T, a) * math.comb(T - a, b) * (1 - 2 / domain) ** c / domain ** (a + b)
                grow = np.exp(eps)
                score = (e * a + b + c - grow * (a + e * b + c)) / (e + domain - 1) * domain / T
                exact += chance * ways * np.maximum(score, 0)
    found = response_profile(others, domain, gamma, sure=sure, epsilons=eps).deltas
    assert found == pytest.approx(exact, rel=1e-8)
    assert (found >= exact * (1 - 1e-12)).all()


def test_counting_two_symbols_alone_would_be_unsound():
    """The case that forbids it: four values, the others all hold the third; the fourth gives the victim's blanks away."""
    p, q, m = Fraction(1, 16), Fraction(13, 16), 3
    laws = [(p, p, q, p)] * m
    victim = ((q, p, p, p), (p, q, p, p))
    merged = [(p, p, q + p)] * m, ((q, p, 2 * p), (p, q, 2 * p))
    grow = Fraction(137, 11)
    truth, counted = heap_delta(laws, victim, grow), heap_delta(*merged, grow)
    assert truth > 18 * counted
    assert truth <= Fraction(response_profile(m, 4, 0.25, epsilons=[math.log(137 / 11)]).deltas[-1])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(0.02, 1.0), min_size=3, max_size=4),
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=4),
    st.lists(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4), min_size=1, max_size=3),
    st.floats(0.0, 0.95),
)
def test_any_randomizer(base, tilt, tilts, part):
    """Random ε₀-DP randomizers, everybody with a law of its own: the default p and q hold for all of them."""
    size = min(len(base), len(tilt))

    def law(t):
        weights = np.array(base[:size]) * np.exp(0.7 * np.array(t[:size]))
        return weights / weights.sum()

    laws = [law(t) for t in tilts]
    zero, one = law(tilt), law([-t for t in tilt])
    logs = np.log(np.array([zero, one, *laws]))
    epsilon0 = float(max(np.abs(a - b).max() for a, b in itertools.combinations(logs, 2))) + 1e-9
    exact = [tuple(Fraction(float(x)) for x in row) for row in (zero, one, *laws)]
    epsilon = part * epsilon0
    truth = heap_delta(exact[2:], exact[:2], Fraction(math.exp(epsilon)))
    assert float(truth) <= shuffled_profile(len(laws), epsilon0, epsilons=[epsilon]).delta(epsilon) + 1e-12


@pytest.mark.parametrize(("epsilon0", "expected"), [(0.5, 0.01753), (1.0, 0.04208), (2.0, 0.11209)])
def test_twitch_sized(epsilon0, expected):
    """n = 9498, δ = 2e-6; with 2021's p = e^−ε₀/2 it is 0.0198, 0.0517 and 0.1522."""
    found = shuffled_epsilon(9497, epsilon0, 2e-6)
    assert found == pytest.approx(expected, rel=1e-3)
    older = shuffled_epsilon(9497, epsilon0, 2e-6, p=math.exp(-epsilon0) / 2)
    assert older == pytest.approx({0.5: 0.01976, 1.0: 0.05170, 2.0: 0.15216}[epsilon0], rel=1e-3)
    assert found < older
    # below: binary response itself, whose sum is nearly normal
    own = 1 / (1 + math.exp(-epsilon0))
    truth = GaussianCurve(math.tanh(epsilon0 / 2) / math.sqrt(9497 * own * (1 - own))).epsilon(2e-6)
    assert truth < found < math.sqrt(2) * truth  # √(2e/(e+1)) is what telling costs


@pytest.mark.parametrize("others", [9, 500, 9_999, 999_999])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 5.0])
def test_the_curve_is_close_to_the_direct_epsilon(others, epsilon0):
    curve, heap = shuffled_profile(others, epsilon0), Heap.of(others, epsilon0)
    assert len(curve.epsilons) < 600
    for delta in (1e-3, 1e-6, 1e-9, 1e-14):
        direct = heap.epsilon(delta)
        assert direct <= curve.epsilon(delta) * (1 + 1e-9) + 1e-300
        if direct > 0.05 * heap.epsilon(1e-6):
            assert curve.epsilon(delta) <= direct * 1.001
        assert heap.deltas(direct)[0] <= delta


def test_bins_cost_little():
    fine = shuffled_epsilon(40_000, 1.0, 1e-8)
    from netdp.privacy import clones as heap_counts

    width = heap_counts._BIN
    try:
        heap_counts._BIN = 0.0
        assert shuffled_epsilon(40_000, 1.0, 1e-8) <= fine <= shuffled_epsilon(40_000, 1.0, 1e-8) * 1.0002
    finally:
        heap_counts._BIN = width


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 3000), st.integers(1, 200), st.floats(0.05, 6.0), st.floats(1.01, 1.5), st.floats(0.0, 1.0))
def test_monotone(others, more, epsilon0, factor, keep):
    eps = np.linspace(0, epsilon0, 7)
    base = shuffled_profile(others, epsilon0, keep=keep, epsilons=eps).deltas
    slack = 1e-9 * base + 1e-28
    assert (shuffled_profile(others + more, epsilon0, keep=keep, epsilons=eps).deltas <= base + slack).all()
    assert (shuffled_profile(others, epsilon0, keep=1.0, epsilons=eps).deltas <= base + slack).all()
    assert (shuffled_profile(others, epsilon0 * factor, keep=keep, epsilons=eps).delta(eps) >= base - slack).all()
    local = np.maximum(np.exp(epsilon0) - np.exp(eps), 0) / (np.exp(epsilon0) + 1)
    assert (base <= local * (1 + 1e-12) + 1e-16).all()
    assert (np.diff(base) <= 0).all()
    assert base[-1] == 0


def test_alone_it_is_the_local_profile():
    curve = shuffled_profile(0, 2.0)
    assert curve.epsilons.tolist() == [0.0, 2.0]
    assert curve.deltas == pytest.approx([math.tanh(1.0), 0.0])
    assert shuffled_profile(50, 2.0, keep=0.0).delta(1.0) == pytest.approx((math.e**2 - math.e) / (math.e**2 + 1))


def test_large_epsilon0_stays_finite():
    assert shuffled_epsilon(10**6, 40.0, 1e-8) == pytest.approx(40.0, abs=1e-3)
    with pytest.raises(Unsupported, match="601"):
        shuffled_profile(10, 601.0)


def test_approximate_randomizers():
    pure, near = Heap.of(999, 1.0), Heap.of(999, 1.0, delta0=1e-12)
    tau = 1e-12 * (1 + 2 * 999 * math.exp(-1))
    for epsilon in (0.0, 0.1, 0.3):
        low, found = pure.deltas(epsilon)[0], near.deltas(epsilon)[0]
        assert (
            low + (1 + math.exp(epsilon)) * tau
            <= found
            <= low * (1 + 1e-9) + (1 + math.exp(epsilon)) * tau * (1 + 1e-9)
        )
    assert near.deltas(1.0)[0] == pytest.approx(1e-12)  # the local statement takes over
    assert near.epsilon(1e-13) == math.inf
    assert pure.epsilon(1e-6) < near.epsilon(1e-6) < pure.epsilon(0.99e-6)
    curve = near.profile()
    assert (np.diff(curve.deltas) <= 0).all()
    assert near.epsilon(1e-6) <= curve.epsilon(1e-6) <= near.epsilon(1e-6) * 1.001


@pytest.mark.parametrize("delta0", [1e-12, 1e-6, 0.1, 1 / 3])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 2.3])
def test_from_epsilon0_on_delta_is_delta0_exactly(epsilon0, delta0):
    """At (ε₀, δ₀) the randomizer's own statement holds, without a rounding factor that would make ε(δ₀) infinite."""
    for others, extra in ((0, {}), (50, {}), (2000, {"keep": 0.5, "revealed": 0.25})):
        heap = Heap.of(others, epsilon0, delta0=delta0, **extra)
        assert heap.deltas([epsilon0, 2 * epsilon0]).tolist() == [delta0, delta0]
        assert heap.deltas(math.nextafter(epsilon0, 0.0))[0] > delta0
        assert heap.epsilon(delta0) == epsilon0
        assert heap.epsilon(math.nextafter(delta0, 0.0)) == math.inf
        curve = heap.profile()
        assert curve.epsilon(delta0) == epsilon0
        assert curve.epsilon(math.nextafter(delta0, 0.0)) == math.inf


def test_unknown_keywords_of_a_heap_are_refused_by_name():
    for call in (
        lambda: shuffled_profile(5, 1.0, banana=1),
        lambda: shuffled_epsilon(5, 1.0, 1e-3, banana=1),
    ):
        with pytest.raises(InvalidValue, match=r"no 'banana'; it is made of others, epsilon0, p, q, sure, .*revealed"):
            call()
    options = {"keep": 0.7, "revealed": 0.1, "p": 0.2, "q": 0.5}
    heap = Heap.of(40, 1.0, **options)
    assert shuffled_epsilon(40, 1.0, 1e-2, **options) == heap.epsilon(1e-2)
    assert (shuffled_profile(40, 1.0, **options).deltas == heap.profile().deltas).all()


def test_cells_add_up_and_are_named():
    """All mass is in a cell, missing, or that of a victim whose blank is revealed."""
    revealed = Heap.of(500, 1.5, p=0.1, q=0.1 * math.exp(1.5)).cells
    symbol = 0.1 * math.exp(1.5) + 0.1
    assert revealed.weight.sum() == pytest.approx(symbol, rel=1e-12)
    assert (revealed.symbol == 1).all()
    counted = Heap.of(500, 1.5, p=0.1, q=0.1 * math.exp(1.5), blank=0.8).cells
    assert counted.weight.sum() + counted.missing == pytest.approx(1, rel=1e-12)
    assert counted.sizes[counted.which].min() >= 1
    assert (counted.symbol <= 1).all()
    # the mean of P(victim has a symbol | cell) is its probability, up to the width of the bins
    assert counted.weight @ counted.symbol == pytest.approx(symbol, rel=5e-3)


@pytest.mark.parametrize("domain", [3, 5])
def test_a_crowd_with_blanks_against_the_sum_over_all_counts(domain):
    """E(Z₁ + … + Z_n)₊/n over how many uniform draws there are, of others who are there with different probabilities."""
    epsilon0, groups = 1.2, [(3, 0.9), (2, 0.4), (4, 0.15)]
    e, eps = math.exp(epsilon0), np.linspace(0, 1.1, 7)
    made = clones.of_response(domain, epsilon0)
    gamma = domain * made["p"]
    drawn = np.ones(1)
    for count, keep in groups:
        for _ in range(count):
            drawn = np.append(drawn, 0.0) * (1 - gamma * keep) + np.insert(drawn, 0, 0.0) * gamma * keep
    exact = np.zeros(len(eps))
    for number, chance in enumerate(drawn):
        T = number + 1
        for a in range(T + 1):
            for b in range(T - a + 1):
                c = T - a - b
                ways = math.comb(T, a) * math.comb(T - a, b) * (1 - 2 / domain) ** c / domain ** (a + b)
                score = (e * a + b + c - np.exp(eps) * (a + e * b + c)) / (e + domain - 1) * domain / T
                exact += chance * ways * np.maximum(score, 0)
    found = Heap.of(0, epsilon0, crowd=groups, **made).deltas(eps)
    assert (found >= exact * (1 - 1e-12)).all()
    assert found == pytest.approx(exact, rel=1e-8)


def test_bins_put_together_are_above_and_near(monkeypatch):
    """Formula pin: on nodes e^(−0.02 j) of w the mean of w is kept but for 10⁻¹¹ of a step; δ is then a chord above itself."""
    made = clones.of_response(4, 1.0)
    together = Heap.of(999, 1.0, **made)
    monkeypatch.setattr(clones, "_MANY", 10**9)
    apart = Heap.of(999, 1.0, **made)
    assert len(together.cells.which) < len(apart.cells.which) / 3
    eps = np.linspace(0.01, 0.2, 9)
    ratio = together.deltas(eps) / apart.deltas(eps)
    assert (ratio >= 1 - 1e-12).all()
    assert (ratio <= 1.06).all()
    assert together.epsilon(1e-6) == pytest.approx(apart.epsilon(1e-6), rel=1e-3)
    rng = np.random.default_rng(0)
    which, weight, w = np.sort(rng.integers(0, 5, 200)), rng.random(200), rng.uniform(0.3, 1.0, 200)
    place, mass, node = clones.on_nodes(which, weight, w)
    step = 1 - math.exp(-0.02)
    for size in range(5):
        held, before = place == size, which == size
        assert mass[held].sum() == pytest.approx(weight[before].sum(), rel=1e-12)
        added = mass[held] @ node[held] - weight[before] @ w[before]
        assert 0.5e-11 * step * 0.3 * weight[before].sum() < added < 2e-11 * step * weight[before].sum()
    assert np.log(node) / 0.02 == pytest.approx(np.round(np.log(node) / 0.02), abs=1e-9)


def unary(domain, own, other):
    """The law of a row of bits, the bit of x set with probability `own`, others with `other`."""
    rows = list(itertools.product((0, 1), repeat=domain))

    def law(x):
        chances = [own if i == x else other for i in range(domain)]
        return tuple(math.prod(c if bit else 1 - c for c, bit in zip(chances, row, strict=True)) for row in rows)

    return law


@pytest.mark.parametrize(("own", "other"), [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 2), Fraction(1, 5))])
@pytest.mark.parametrize("n", [2, 3])
def test_total_variation_all_data(own, other, n):
    """Unary encoding, both ways, of three values: all data of two and three users."""
    law, ratio = unary(3, own, other), own * (1 - other) / (other * (1 - own))
    heap = Heap.of(n - 1, math.log(ratio), **clones.of_variation(float(own - other), math.log(ratio)))
    worse, closest = Heap.of(n - 1, math.log(ratio)), math.inf
    for grow in (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(7, 2)):
        worst = max(
            heap_delta([law(x) for x in data], (law(0), law(1)), grow)
            for data in itertools.combinations_with_replacement(range(3), n - 1)
        )
        bound = heap.deltas(math.log(grow))[0]
        assert worst <= Fraction(bound) + Fraction(1, 10**14)
        assert bound < worse.deltas(math.log(grow))[0]
        closest = min(closest, bound / float(worst)) if worst else closest
    assert closest < 1.2


def test_any_randomizer_is_no_worse_than_its_total_variation_says():
    """Random ε₀-DP laws on four symbols: δ of the blanket E(ΣZ)₊/n is below that of the three-point randomizer."""
    rng = np.random.default_rng(3)
    e = 3.0
    for _ in range(25):
        one = rng.dirichlet(np.ones(4))
        two = one * rng.uniform(1 / e, e, 4) ** 0.9
        two = np.append(two / two.sum(), 0)[:4]
        if max((one / two).max(), (two / one).max()) > e:
            continue
        floor = np.maximum(one, two) / e
        heap = Heap.of(2, math.log(e), **clones.of_variation(float(np.maximum(one - two, 0).sum()), math.log(e)))
        for grow in (1.0, 1.2, 1.6, 2.4):
            values = np.append((one - grow * two) / floor, 0.0)
            chances = np.append(floor, 1 - floor.sum())
            exact = sum(
                math.prod(chances[i] for i in drawn) * max(sum(values[i] for i in drawn), 0.0) / 3
                for drawn in itertools.product(range(5), repeat=3)
            )
            assert exact <= heap.deltas(math.log(grow))[0] * (1 + 1e-9) + 1e-12


def test_total_variation_is_not_less_than_is_stated():
    """Formula pin: q = η/(1 − e^−ε₀), the others e^−ε₀ of all that the victim's report may be; nothing from tanh(ε₀/2) on."""
    for epsilon0 in (0.1, 1.0, 5.0):
        eta = 0.4 * math.tanh(epsilon0 / 2)
        made = clones.of_variation(eta, epsilon0)
        q = eta / (1 - math.exp(-epsilon0))
        assert made["q"] == pytest.approx(q, rel=1e-12)
        assert made["q"] * (1 - math.exp(-epsilon0)) >= eta * (1 - 1e-15)
        assert made["p"] == pytest.approx(q * math.exp(-epsilon0), rel=1e-12)
        assert made["blank"] == pytest.approx((1 - q * (1 + math.exp(-epsilon0))) * math.exp(-epsilon0), rel=1e-12)
        assert clones.of_variation(math.tanh(epsilon0 / 2), epsilon0) == {}
        binary = clones.of_response(2, epsilon0)
        assert binary == {}
    assert clones.of_response(5, math.log(4)) == pytest.approx({"p": 1 / 8, "q": 1 / 2, "blank": 3 / 8})


def test_approximate_brute_force():
    """A response that betrays itself with probability δ₀: the truth over all data is below."""
    e, leak = Fraction(2), Fraction(1, 50)
    stay = (1 - leak) / (e + 1)
    laws = ((stay * e, stay, leak, 0), (stay, stay * e, 0, leak))
    heap = Heap.of(3, math.log(2), delta0=float(leak))
    for grow in (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(5, 2)):
        worst = max(
            heap_delta([laws[x] for x in data], laws, grow)
            for data in itertools.combinations_with_replacement((0, 1), 3)
        )
        assert float(worst) <= heap.deltas(math.log(grow))[0] + 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: shuffled_profile(-1, 1.0), "others.*-1"),
        (lambda: shuffled_profile(5, 0.0), "epsilon0"),
        (lambda: shuffled_profile(5, 1.0, p=0.7), "p must lie.*0.7"),
        (lambda: shuffled_profile(5, 1.0, q=0.9), "q must lie.*0.9"),
        (lambda: shuffled_profile(5, 1.0, sure=3), "sure_p"),
        (lambda: shuffled_profile(5, 1.0, keep=1.5), "keep.*1.5"),
        (lambda: shuffled_profile(5, 1.0, epsilons=[-1.0]), "epsilons"),
        (lambda: shuffled_epsilon(5, 1.0, 2.0), "delta.*2.0"),
        (lambda: response_profile(5, 1, 0.5), "domain"),
        (lambda: response_profile(5, 3, 0.0), "gamma"),
        (lambda: shuffled_profile(5, 1.0, p=0.1, q=0.2, sure=2, sure_p=0.4, blank=0.3), "do not match"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidValue, match=words):
        call()


def test_response_with_nothing_to_hide():
    assert response_profile(10, 4, 1.0).delta(0.0) == 0


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


def test_what_a_failed_report_adds_is_as_printed():
    """δ = pure + (1 + e^ε)·τ, τ = δ₀(1 + 2(n − 1)e^{−ε₀}), or the local (ε₀, δ₀) statement, whichever is less."""
    heap = Heap.of(30, 1.5, delta0=1e-5)
    eps = np.array([0.1, 0.4, 0.9])
    tau = 1e-5 * (1 + 2 * 30 * math.exp(-1.5))
    hidden = np.array([0.02, 0.01, 1e-4])
    assert (hidden < heap.local(eps)).all()
    assert heap.finished(hidden, eps, 0.0) == pytest.approx(hidden + (1 + np.exp(eps)) * tau, rel=1e-12, abs=0.0)
    alone = 1e-5 + (1 - 1e-5) * heap.local(eps)
    assert heap.finished(np.ones(3), eps, 0.0) == pytest.approx(alone, rel=1e-12, abs=0.0)


def test_what_lies_outside_the_bins_is_lost(monkeypatch):
    """The mass that no bin holds counts as a report alone; bins too light to look into are among it."""
    heap, eps = Heap.of(200, 1.0), np.array([0.05, 0.2])
    more = dataclasses.replace(heap, cells=heap.cells._replace(missing=heap.cells.missing + 1e-3))
    assert more.hidden(eps) - heap.hidden(eps) == pytest.approx(1e-3 * heap.local(eps), rel=1e-9, abs=0.0)
    whole = clones.blank_cells(Law.binomial(100, 0.5), 0.1, 0.3, 0, 0.7)
    monkeypatch.setattr(clones, "_LIGHT", 1e-3)
    lighter = clones.blank_cells(Law.binomial(100, 0.5), 0.1, 0.3, 0, 0.7)
    assert len(lighter.weight) < len(whole.weight)
    assert lighter.missing - whole.missing == pytest.approx(
        whole.weight.sum() - lighter.weight.sum(), rel=1e-9, abs=0.0
    )


def test_the_rounding_of_coins_and_bins_is_on_top():
    """8u(steps + 16) of both parts of δ, 16u(steps + 64) of every bin; what lies beyond the last coin is bounded."""
    unit, epsilon0, eps = 2.0**-53, 1.0, 0.3
    size = 41
    coins = clones.Coins.of(np.array([size]))
    found = Fraction(float(coins.deltas(np.array([0]), np.ones(1), epsilon0, np.array([eps]))[0, 0]))
    with mpmath.workdps(40):
        own, grow = 1 / (1 + mpmath.exp(-epsilon0)), mpmath.expm1(mpmath.mpf(eps))
        gain = own * -mpmath.expm1(mpmath.mpf(eps) - epsilon0)
        law = [mpmath.binomial(size - 1, k) / mpmath.mpf(2) ** (size - 1) for k in range(size)]
        best, parts = max((law[k] * gain - grow * mpmath.fsum(law[k + 1 :]), k) for k in range(size))
        sizes = law[parts] * gain + grow * mpmath.fsum(law[parts + 1 :])
        added = 8 * unit * (coins.steps + 16) * sizes
        above = mpmath.mpf(found.numerator) / found.denominator - best
        assert 0.8 * added < above < 1.2 * added
        far = clones.Coins.of(np.array([4001]))
        last = int(far.last[0])
        tail = mpmath.fsum(mpmath.binomial(4000, k) for k in range(last + 1, 4001)) / mpmath.mpf(2) ** 4000
        assert last < 4000
        assert tail <= mpmath.mpf(float(far.beyond[0])) < 3 * tail + mpmath.binomial(4000, last) / mpmath.mpf(2) ** 3999
    law = Law.binomial(50, 0.3)
    assert clones.symbol_cells(law, 1.0).relative == 16 * unit * (law.steps + 64)


def test_the_loss_of_a_response_is_rounded_up():
    """Never below log(1 + L(1 − γ)/γ) with γ as it is stored, and at most twelve units above; one nextafter was not enough."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(60):
        for _ in range(2000):
            domain, gamma = int(rng.integers(2, 10**6)), float(rng.uniform(1e-6, 1.0))
            exact = mpmath.log1p(domain * (1 - mpmath.mpf(gamma)) / mpmath.mpf(gamma))
            found = mpmath.mpf(response_loss(domain, gamma))
            assert exact <= found <= exact * (1 + mpmath.mpf(12) / 2**53)
            assert response_profile(0, domain, gamma).epsilon(0.0) == response_loss(domain, gamma)
