"""The energy of paths: moments against all paths, the taut string against its law, profiles from both sides.

Proof: docs/proofs/token.md#walk-energy.
"""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.families.token.account import energy as graph_stretch
from netdp.families.token.account import graph_walk
from netdp.families.token.account.energy import EnergyMoments, laws, laws_of_each, profile, series_coefficient
from netdp.families.token.account.path import path_energy
from netdp.graphs.transitions import transition_matrix
from netdp.privacy import gaussian_delta, gaussian_epsilon
from netdp.protocols import GraphWalkSum, PathSum, WalkDescent

ARROWS = graphs.transition(nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 1), (0, 0)]))
CASES = [
    ("path", graphs.path(3), "metropolis", (0,), 2),
    ("path, two observers", graphs.path(4), "metropolis", (0, 3), 1),
    ("star, a leaf by the hub", graphs.star(4), "metropolis", (0,), 2),
    ("star, the hub by a leaf", graphs.star(4), "simple", (1,), 0),
    ("ring", graphs.ring(4), "simple", (0,), 2),
    ("arrows", ARROWS.graph, ARROWS, (0,), 2),
]
each = pytest.mark.parametrize(
    ("graph", "walk", "observers", "target"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
STEPS, CLOSING = 8, 0.7


def all_walks(P, start, steps):
    for path in itertools.product(range(P.shape[0]), repeat=steps):
        chance = start[path[0]] * math.prod(P[a, b] for a, b in itertools.pairwise(path))
        if chance:
            yield path, chance


def taut(points):
    """Σ (Δy)²/Δx over the faces of the greatest convex minorant of points (x, y), by definition of a lower hull."""
    hull = []
    for x, y in points:
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-1][0]) >= (y - hull[-1][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return sum((b[1] - a[1]) ** 2 / (b[0] - a[0]) for a, b in itertools.pairwise(hull))


def energies(path, target, observers, closing):
    """By gaps, by k²/D, and by the string, of one path."""
    gaps = summed = string = 0.0
    visits = []

    def close(end, extra):
        nonlocal gaps, summed, string
        if visits:
            ends = [*visits[1:], end]
            gaps += sum(1 / (b - a + (extra if b == end else 0.0)) for a, b in zip(visits, ends, strict=True))
            summed += len(visits) ** 2 / (end - visits[0] + extra)
            string += taut([(t, i) for i, t in enumerate(visits)]) + 1 / (end - visits[-1] + extra)
        visits.clear()

    for t, holder in enumerate(path):
        if holder in observers:
            close(t, 0.0)
        elif holder == target:
            visits.append(t)
    close(len(path), closing)
    return gaps, summed, string


def close_to(moments, energy, chances):
    return max(
        abs(log - math.log(chances @ np.exp(s * energy)))
        for s, log in zip(moments.s, moments.logs, strict=True)
        if s < 12
    )


@each
def test_moments_are_those_of_all_paths(graph, walk, observers, target):
    P = transition_matrix(graph, walk)
    start = np.full(graph.n, 1 / graph.n)
    found = list(all_walks(P.toarray(), start, STEPS))
    chances = np.array([chance for _, chance in found])
    gaps, summed, string = np.array([energies(path, target, observers, CLOSING) for path, _ in found]).T
    assert (summed <= string * (1 + 1e-12)).all()
    assert (string <= gaps * (1 + 1e-12)).all()
    law = laws(P, start, target, observers, STEPS)
    assert close_to(graph_stretch.sum_moments(law, STEPS, CLOSING, 9.0), summed, chances) < 1e-6
    assert close_to(graph_stretch.descent_moments(law, STEPS, CLOSING, 9.0), string, chances) < 1e-3
    told = np.array(
        [path_energy(PathSum(graph.n, [path], 1.0, closing=CLOSING), list(observers))[target] for path, _ in found]
    )
    assert (told <= summed * (1 + 1e-12)).all()
    if len(observers) == 1:
        whole = graph_stretch.single_sum_moments(P, start, target, observers[0], law, STEPS, CLOSING, 9.0)
        assert close_to(whole, told, chances) < 1e-6
    # gaps are counted to their end, and the release once more: above, but by no more than that
    for horizon in (STEPS, 5):
        short = graph_stretch.gap_moments(laws(P, start, target, observers, horizon), STEPS, CLOSING)
        for s, log in zip(short.s, short.logs, strict=True):
            exact = math.log(chances @ np.exp(s * gaps))
            assert log >= exact - 1e-9
            if horizon == STEPS:
                assert log <= exact + s / (1 + CLOSING) + 0.5 * s


@each
def test_laws_of_each_observer_are_the_laws_to_the_last_bit(graph, walk, observers, target):
    P, start = transition_matrix(graph, walk), np.full(graph.n, 1 / graph.n)
    ends, back = laws_of_each(P, target, 30)
    others = [o for o in range(graph.n) if o != target]
    assert len(ends) == len(back) == len(others)
    for row, o in enumerate(others):
        alone = laws(P, start, target, (o,), 30)
        assert (ends[row] == alone.ends[0]).all()
        assert (back[row] == alone.back[0]).all()


def test_visits_by_moments():
    graph = graphs.star(4)
    P, start = transition_matrix(graph, "metropolis"), np.full(4, 0.25)
    found = list(all_walks(P.toarray(), start, 7))
    law = laws(P, start, 1, (), 7)
    moments = graph_stretch.visit_moments(law, 7)
    chances, visits = np.array([c for _, c in found]), np.array([path.count(1) for path, _ in found])
    assert close_to(moments, visits, chances) < 1e-6
    counts, weights, outside = graph_stretch.visits_law(law, 7)
    for k, weight in zip(counts, weights, strict=True):
        assert weight == pytest.approx(chances[visits == k].sum(), abs=1e-12)
    assert outside < 1e-10


@pytest.mark.parametrize("gaps", [(1, 2, 5), (2, 3), (1, 1, 4, 7)])
def test_faces_are_cycles_of_a_random_permutation(gaps):
    """Σ over the orders of the minorant's faces is Σ over permutations and their cycles, gap by gap, ties and all."""
    n = len(gaps)
    s = 0.37

    def value(order):
        return math.exp(s * taut([(sum(order[:i]), i) for i in range(n + 1)]))

    minorants = sum(value(order) for order in itertools.permutations(gaps))
    cycles = 0.0
    for permutation in itertools.permutations(range(n)):
        left, energy = set(range(n)), 0.0
        while left:
            first = here = left.pop()
            length, total = 1, gaps[first]
            while (here := permutation[here]) != first:
                left.discard(here)
                length, total = length + 1, total + gaps[here]
            energy += length**2 / total
        cycles += math.exp(s * energy)
    assert minorants == pytest.approx(cycles, rel=1e-12)


def test_a_string_is_the_best_schedule():
    """Against a direct minimisation over schedules that never work off more than has arisen."""
    from scipy.optimize import LinearConstraint, minimize

    visits, end = [0, 1, 4, 9], 12
    arisen = np.array([sum(v <= t for v in visits) for t in range(end)])
    tri = np.tril(np.ones((end, end)))
    found = minimize(
        lambda a: float(a @ a), np.full(end, len(visits) / end), jac=lambda a: 2 * a, method="trust-constr",
        constraints=[LinearConstraint(tri[:-1], -np.inf, arisen[:-1]), LinearConstraint(tri[-1:], len(visits), len(visits))],
        bounds=[(0, None)] * end, options={"gtol": 1e-9, "maxiter": 3000},
    )  # fmt: skip
    points = [*((t, i) for i, t in enumerate(visits)), (end, len(visits))]
    assert found.fun == pytest.approx(taut(points), rel=1e-3)
    assert taut(points) <= taut(points[:-1]) + 1 / (end - visits[-1])  # what is counted: touching at the last visit


def test_series_by_recursion():
    rng = np.random.default_rng(3)
    kernel, above, growth = rng.random(9) * 0.4, rng.random(9), np.r_[0.0, rng.random(8) * 0.2]
    kernel[0] = 0.0
    exponential, power = np.zeros(31), np.r_[1.0, np.zeros(30)]
    for j in range(1, 40):
        exponential += power
        power = np.convolve(power, growth)[:31] / j
    top, step = np.convolve(exponential, above)[:31], np.convolve(exponential, kernel)[:31]
    exact = np.zeros(31)
    for t in range(31):
        exact[t] = top[t] + step[1 : t + 1] @ exact[t - 1 :: -1][:t] if t else top[0]
    for place in (0, 3, 8, 30):
        found = math.exp(series_coefficient([[above]], [[kernel]], place, growth))
        assert exact[place] <= found <= exact[place] * (1 + 1e-6)


@pytest.mark.parametrize("mu", [0.03, 0.4, 2.5])
def test_a_fixed_energy_is_a_gaussian_shift(mu):
    s = np.geomspace(0.02, 3000, 60)
    curve = profile(EnergyMoments(s, 2.0 * s), mu, tokens=2)  # E = 2, two tokens
    for delta in (1e-3, 1e-6, 1e-9):
        exact = float(gaussian_epsilon(2 * mu, delta))
        assert exact <= float(curve.epsilon(delta)) <= 1.03 * exact


@each
def test_profiles_are_above_the_mean_over_all_paths_and_near_it(graph, walk, observers, target):
    sigma = 1.5
    p = GraphWalkSum(graph, steps=STEPS, sigma=sigma, walk=walk, closing=CLOSING)
    descent = WalkDescent(graph, steps=STEPS, sigma=2 * sigma, step=0.1, walk=walk, closing=CLOSING)
    found = list(all_walks(p.transition.toarray(), p.stationary, STEPS))
    chances = np.array([chance for _, chance in found])
    told = np.array(
        [path_energy(PathSum(graph.n, [path], 1.0, closing=CLOSING), list(observers))[target] for path, _ in found]
    )
    # steps that forget nothing and add a constant are a sum: a descent loses at least as much as it may
    for curve in (
        graph_walk.target_profile(p, observers, target, stretches=True),
        graph_walk.target_profile(p, observers, target),
        graph_walk.descent_profile(descent, observers, target, stretches=True),
        graph_walk.descent_profile(descent, observers, target),
    ):
        for eps in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
            truth = float(np.asarray(gaussian_delta(np.sqrt(told) / sigma, eps)) @ chances)
            assert float(curve.delta(eps)) >= truth * (1 - 1e-9)
    best = graph_walk.target_profile(p, observers, target, stretches=True)
    eps = float(best.epsilon(1e-5))
    for share in (0.75, 0.5):
        if float(np.asarray(gaussian_delta(np.sqrt(told) / sigma, share * eps)) @ chances) > 1e-5:
            break
    else:
        pytest.fail("more than twice the loss of a told path")


def test_stretches_gain():
    """Far away u comes back often before the observer looks: gaps cost as much as nearby, stretches do not."""
    p = GraphWalkSum(graphs.ring(12), steps=240, sigma=6.0)
    for observers, most in (((0,), 0.8), ((0, 3), 0.9)):
        gaps = float(graph_walk.target_profile(p, observers, 7).epsilon(1e-6))
        stretches = float(graph_walk.target_profile(p, observers, 7, stretches=True).epsilon(1e-6))
        assert stretches < most * gaps


def test_moments_do_not_depend_on_the_noise():
    graph_walk._moments.cache_clear()
    p = GraphWalkSum(graphs.ring(5), steps=20, sigma=2.0)
    graph_walk.target_profile(p, (0,), 2)
    before = graph_walk._moments.cache_info().misses
    graph_walk.target_profile(p.replace(sigma=5.0, sensitivity=3.0), (0,), 2)
    assert graph_walk._moments.cache_info().misses == before
    graph_walk.target_profile(p.replace(closing=0.0), (0,), 2)
    assert graph_walk._moments.cache_info().misses == before + 1


def test_who_learns_most_on_a_star():
    """The hub sees every contribution of a leaf as it is; a leaf sees little of anybody."""
    p = WalkDescent(graphs.star(6), steps=60, sigma=6.0, step=0.1)
    hub, leaf = (netdp.account(p, [v]) for v in (0, 1))
    assert hub.worst_epsilon(1e-6) > 1.3 * float(np.nanmin(np.asarray(leaf.epsilon(1e-6))))


@pytest.mark.parametrize("seldom", [1e-20, 1e-120, 1e-190])
@pytest.mark.parametrize("kind", ["sum", "descent", "gaps", "visits"])
def test_users_that_are_hardly_ever_visited(seldom, kind):
    """u is visited with probability `seldom`, at once before the observer: moments of all s offered are not too small."""
    walk = graphs.Transition(3, [(0, 0), (0, 1), (1, 2), (2, 0)], [1, seldom, 1, 1])
    key = graph_walk._key(GraphWalkSum(walk, 4, 1.0, closing=0.0))
    found = graph_walk._moments(key, () if kind == "visits" else (2,), 1, kind)
    # at least P(u is visited) · e^s, but for what is left to δ
    first = math.log(float(walk.stationary[1]))
    assert found.outside >= 0.9 * seldom or (found.logs >= np.maximum(first + found.s, 0.0) - 1e-6).all()
    loss = netdp.account(GraphWalkSum(walk, 4, 1.0, closing=0.0), [2])
    assert (np.asarray(loss.delta(0.5))[1] >= seldom * gaussian_delta(1.0, 0.5)).all()


def test_what_is_left_out_of_the_moments_is_added():
    """Formula pin: P(B) is in δ at every ε, once for every token."""
    inside = EnergyMoments(np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.4, 0.9]))
    less = profile(inside, 1.0, tokens=2)
    more = profile(EnergyMoments(inside.s, inside.logs, outside=1e-3), 1.0, tokens=2)
    assert list(more.epsilons) == list(less.epsilons)
    assert more.deltas == pytest.approx(np.minimum(less.deltas + 2e-3, 1.0), rel=1e-12, abs=0.0)
