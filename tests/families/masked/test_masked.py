"""What a coalition learns from a masked sum: the law of all messages enumerated, and the accountant against exact sums.

The counterexample at the end is why masks modulo q are needed: averages of values on a grid can be told apart.

Proof: docs/proofs/masked.md#masked-sum.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue
from netdp.families.masked.account import component_curve, component_delta, component_sizes
from netdp.families.masked.protocol import MaskedSum, add_pads, reduced
from netdp.papers.ours.figures import PRIMES, delta_of_an_average
from netdp.privacy import Claim, gaussian_delta
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.alternatives import local_dp, trusted_curator

# ── the theorem, enumerated ───────────────────────────────────────────────────────────────────────────────────────────

CASES = {
    "complete 3 modulo 8": (graphs.complete(3), 8),
    "complete 4 modulo 4": (graphs.complete(4), 4),
    "path 4 modulo 8": (graphs.path(4), 8),
    "path 4 modulo 4": (graphs.path(4), 4),
    "star 4 modulo 4": (graphs.star(4), 4),
    "ring 4 modulo 2": (graphs.ring(4), 2),
    "two pairs modulo 4": (graphs.Graph.from_edges(4, [(0, 1), (2, 3)]), 4),
}
NOISE = {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}


def coalitions(n):
    return [o for size in range(n) for o in itertools.combinations(range(n), size)]


def parts(graph, observers):
    honest = [u for u in range(graph.n) if u not in observers]
    if not honest:
        return []
    component = graph.subgraph(honest).components()
    return [[u for u, c in zip(honest, component, strict=True) if c == k] for k in range(int(component.max()) + 1)]


def messages(graph, modulus, observers, hidden):
    """Every y under all values of the pads that the observers do not know, (n, cases); theirs are fixed at some values."""
    edges = [tuple(edge) for edge in graph.edges().tolist()]
    secret = [edge for edge in edges if not set(edge) & set(observers)]
    cases = list(itertools.product(range(modulus), repeat=len(secret)))
    pads = {edge: np.full(len(cases), 1 + edge[0] + 2 * edge[1], dtype=np.uint64) for edge in edges}
    pads.update({edge: np.array([case[i] for case in cases], dtype=np.uint64) for i, edge in enumerate(secret)})
    state = np.repeat(np.array(hidden, dtype=np.int64)[:, None], len(cases), axis=1).astype(np.uint64)
    for u in range(graph.n):
        later = [v for a, v in edges if a == u]
        if later:
            add_pads(state, u, np.array(later), np.stack([pads[u, v] for v in later]))
    return reduced(state, modulus)


def known_part(graph, observers, u):
    """What the pads that u shares with the observers add to y_u: fixed above."""
    return sum(
        (1 if u < v else -1) * (1 + min(u, v) + 2 * max(u, v)) for v in graph.neighbors(u).tolist() if v in observers
    )


@pytest.mark.parametrize("name", CASES)
def test_messages_are_uniform_subject_to_the_sums_of_the_components(name):
    """For every coalition and whatever is hidden: exactly the vectors with the right component sums, all equally often."""
    graph, q = CASES[name]
    for observers in coalitions(graph.n):
        components = parts(graph, observers)
        honest = [u for part in components for u in part]
        step = 1 if q ** len(honest) <= 300 else 3  # every hidden vector, or a third of them in each coordinate
        for hidden in itertools.product(range(0, q, step), repeat=len(honest)):
            full = [0] * graph.n
            for u, value in zip(honest, hidden, strict=True):
                full[u] = value
            y = messages(graph, q, observers, full)[honest]
            seen = Counter(map(tuple, y.T.tolist()))
            place = {u: i for i, u in enumerate(honest)}
            size = math.prod(q ** (len(part) - 1) for part in components)
            assert len(seen) == size
            assert len(set(seen.values())) == 1
            for part in components:
                total = sum(full[u] + known_part(graph, observers, u) for u in part) % q
                assert all(sum(one[place[u]] for u in part) % q == total for one in seen)


def mixed(graph, q, observers, values):
    """The law of all that is published by the others, over their pads and noise, in fractions."""
    honest = [u for u in range(graph.n) if u not in observers]
    law = Counter()
    by_total = {}
    for noises in itertools.product(NOISE, repeat=len(honest)):
        full = list(values)
        for u, noise in zip(honest, noises, strict=True):
            full[u] += noise
        key = tuple(x % q for x in full)
        if key not in by_total:
            y = messages(graph, q, observers, key)[honest]
            by_total[key] = Counter(map(tuple, y.T.tolist()))
        counts = by_total[key]
        chance = math.prod((NOISE[x] for x in noises), start=Fraction(1)) / sum(counts.values())
        for seen, times in counts.items():
            law[seen] += chance * times
    return law


def summed(q, size, start):
    """The law of the noisy sum of a component modulo q."""
    law = Counter({start % q: Fraction(1)})
    for _ in range(size):
        law = sum((Counter({(x + e) % q: p * r for x, p in law.items()}) for e, r in NOISE.items()), Counter())
    return law


def hockey(one, other, growth):
    return sum(max(p - growth * other.get(x, 0), 0) for x, p in one.items())


@pytest.mark.parametrize("name", ["complete 3 modulo 8", "path 4 modulo 4", "two pairs modulo 4", "star 4 modulo 4"])
def test_all_messages_tell_what_the_noisy_sum_tells(name):
    """δ of everything a coalition sees = δ of the noisy sum of the target's component, for every coalition and target."""
    graph, q = CASES[name]
    for observers in coalitions(graph.n):
        values = [0] * graph.n
        before = mixed(graph, q, observers, values)
        for part in parts(graph, observers):
            for target in part:
                after = mixed(graph, q, observers, [int(u == target) for u in range(graph.n)])
                for growth in (Fraction(1), Fraction(3, 2), Fraction(3)):
                    alone = summed(q, len(part), 1), summed(q, len(part), 0)
                    assert hockey(after, before, growth) == hockey(*alone, growth)
                    assert hockey(before, after, growth) == hockey(*reversed(alone), growth)


@pytest.mark.parametrize("name", CASES)
def test_the_accountant_counts_the_same_components(name):
    graph, _ = CASES[name]
    protocol = MaskedSum(graphs.complete(graph.n), sigma=1.0, masks=graph)
    for observers in coalitions(graph.n)[1:]:
        sizes = component_sizes(protocol, observers)
        expected = np.zeros(graph.n, dtype=int)
        for part in parts(graph, observers):
            expected[part] = len(part)
        assert sizes.tolist() == expected.tolist()


# ── from the sum to ε ─────────────────────────────────────────────────────────────────────────────────────────────────


def noise_of(share, parties, reach):
    """The exact law of the noise of some parties, in 50 digits."""
    one = {x: mp.exp(-mp.mpf(x * x) / (2 * share)) for x in range(-reach, reach + 1)}
    z = mp.fsum(one.values())
    law = {0: mp.mpf(1)}
    for _ in range(parties):
        grown = {}
        for x, p in law.items():
            for e, r in one.items():
                grown[x + e] = grown.get(x + e, 0) + p * r / z
        law = grown
    return law


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "steps"),
    [(1.0, 1.0, 1), (1.0, 1.5, 2), (1.0, 2.2, 3), (2.0, 3.0, 3), (1.3, 2.0, 2)],
)
@pytest.mark.parametrize("parties", [1, 2, 4])
def test_the_loss_of_a_coarse_grid_is_the_sum_over_all_outcomes(sigma, sensitivity, steps, parties):
    """Shares of one or two steps: the law of their sum, convolved exactly, and shifted by the most that rounding allows."""
    protocol = MaskedSum(graphs.complete(6), sigma, sensitivity=sensitivity, grid=1.0)
    share = math.ceil(sigma**2)
    with mp.workdps(50):
        law = noise_of(share, parties, 22 * math.ceil(sigma))
        loss = account(protocol, list(range(6 - parties)))
        for epsilon in (0.0, 0.2, 1.0, 2.5):
            growth = mp.exp(mp.mpf(epsilon))
            truth = mp.fsum(max(p - growth * law.get(x - steps, 0), 0) for x, p in law.items())
            found = float(np.nanmax(loss.delta(epsilon)))
            assert truth <= found
            margin = 2e-2 if share == 1 else 1e-6  # what the sum of shares of one step may differ from one Gaussian
            assert found <= truth * (1 + margin) + mp.mpf("1e-12")


def test_shares_of_many_steps_give_the_gaussian():
    protocol = MaskedSum(graphs.ring(50), sigma=0.5)
    for honest in (1, 10, 49):
        eps = np.linspace(0.0, 3.0, 20)
        np.testing.assert_allclose(
            component_delta(protocol, honest, eps), gaussian_delta(2 / math.sqrt(honest), eps), rtol=2e-4
        )


def test_between_the_points_the_curve_is_a_bound():
    for sigma, grid in ((1.0, 1.0), (0.5, None), (3.0, None)):
        protocol = MaskedSum(graphs.ring(20), sigma, sensitivity=1.0, grid=grid)
        curve = component_curve(protocol, 13)
        eps = np.linspace(0.0, float(curve.epsilons[-1]) * 0.5, 501)
        assert (curve.delta(eps) >= component_delta(protocol, 13, eps) * (1 - 1e-12)).all()
        usual = component_delta(protocol, 13, eps) > 1e-12
        np.testing.assert_allclose(curve.delta(eps)[usual], component_delta(protocol, 13, eps)[usual], rtol=1e-3)


def test_more_columns_cost_what_rounding_costs():
    one, many = (MaskedSum(graphs.ring(50), sigma=0.5, dimension=d, grid=2.0**-10) for d in (1, 400))
    mu = (1 + 20 / 1024) / (0.5 * math.sqrt(49))
    exact = component_curve(many, 49).delta(0.5)
    assert component_curve(one, 49).delta(0.5) < exact
    assert gaussian_delta(mu, 0.5) <= exact <= gaussian_delta(mu, 0.5) * 1.02


def test_very_fine_grids_are_bounded_without_summing():
    fine = MaskedSum(graphs.ring(5000), sigma=0.5, grid=2.0**-20)
    assert fine.share * 4999 > 2**32
    delta = component_delta(fine, 4999, np.array([0.05]))[0]
    truth = gaussian_delta(2 / math.sqrt(4999), 0.05)
    assert truth * (1 - 1e-6) <= delta <= truth * (1 + 1e-6)


# ── the guarantee ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_any_coalition_faces_the_noise_of_all_others():
    protocol = MaskedSum(graphs.ring(12), sigma=0.7)
    few, others = account(protocol, [0, 1, 2]), account(protocol, [3, 7, 11])
    assert few.claim is Claim.UPPER
    np.testing.assert_allclose(few.factor[3:], 1 / 9)
    assert np.isnan(few.factor[:3]).all()
    assert np.isnan(few.epsilon(1e-6)[:3]).all()
    assert few.epsilon(1e-6).shape == (12,)
    assert few.worst_epsilon(1e-6) == others.worst_epsilon(1e-6)
    assert account(protocol, [0]).worst_epsilon(1e-6) < few.worst_epsilon(1e-6)
    assert any("any other coalition of as many" in line for line in few.assumptions)
    assert any("key agreement and the stream cipher" in line for line in few.assumptions)


def test_a_party_whose_partners_all_collude_has_local_privacy():
    protocol = MaskedSum(graphs.ring(16), sigma=0.7, masks=4, mask_seed=4)
    target = 5
    loss = account(protocol, protocol.mask_graph.neighbors(target).tolist())
    assert loss.factor[target] == 1.0
    assert loss.epsilon(1e-6)[target] == pytest.approx(local_dp(protocol).epsilon(1e-6)[0], rel=1e-5)
    assert loss.worst == 1.0
    assert np.nanmin(loss.factor) < 1 / 8


def test_parts_of_a_mask_graph_that_a_coalition_cuts():
    protocol = MaskedSum(graphs.complete(9), sigma=0.7, masks=graphs.path(9))
    loss = account(protocol, [3])
    np.testing.assert_allclose(loss.factor, [1 / 3] * 3 + [np.nan] + [1 / 5] * 5)
    for place, size in ((0, 3), (8, 5)):
        assert loss.epsilon(1e-6)[place] == pytest.approx(
            float(component_curve(protocol, size).epsilon(1e-6)), rel=1e-5
        )


def test_many_sizes_are_counted_as_smaller_ones():
    protocol = MaskedSum(graphs.complete(60), sigma=0.7, masks=graphs.path(60))
    loss = pairwise(protocol)
    assert loss.factor.shape == (60, 60)
    assert np.isnan(np.diagonal(loss.factor)).all()
    assert loss.factor[0, 20] == 1 / 20
    exact = account(protocol, [20])
    assert (np.delete(loss.epsilon(1e-6)[:, 20], 20) >= np.delete(exact.epsilon(1e-6), 20) * (1 - 1e-5)).all()
    assert np.nanmax(loss.epsilon(1e-6)) == pytest.approx(local_dp(protocol).worst_epsilon(1e-6), rel=1e-5)


def test_all_pairs_of_a_complete_mask_graph_are_alike():
    protocol = MaskedSum(graphs.ring(7), sigma=0.7)
    every = pairwise(protocol)
    assert every.epsilon(1e-6).shape == (7, 7)
    assert np.nanmax(every.epsilon(1e-6)) == account(protocol, [3]).worst_epsilon(1e-6)


def test_baselines():
    protocol = MaskedSum(graphs.ring(25), sigma=0.5)
    alone, together = local_dp(protocol), trusted_curator(protocol)
    assert alone.factor.tolist() == [1.0] * 25
    np.testing.assert_allclose(together.factor, 1 / 25)
    assert alone.worst_epsilon(1e-6) == pytest.approx(float(component_curve(protocol, 1).epsilon(1e-6)))
    assert together.worst_epsilon(1e-6) < account(protocol, [0]).worst_epsilon(1e-6)


def test_what_is_not_known_is_refused():
    protocol = MaskedSum(graphs.ring(7), sigma=0.7)
    with pytest.raises(InvalidValue, match="takes no option 'banana'; its options: fixed_before_draw"):
        account(protocol, [0], banana=1)
    with pytest.raises(InvalidValue, match="all 7 parties observe"):
        account(protocol, list(range(7)))
    with pytest.raises(netdp.NetdpError, match="no published formula"):
        account(protocol, [0], method="published")


def test_what_got_lost_on_the_way_does_not_matter():
    from netdp.protocols import Transcript

    protocol = MaskedSum(graphs.ring(7), sigma=0.7)
    run = netdp.simulate(protocol, np.linspace(0, 1, 7), seed=0)
    before = account(protocol, [0]).worst_epsilon(1e-6)
    assert account(protocol, [0], transcript=run.transcript).worst_epsilon(1e-6) == before
    assert account(protocol, [0], transcript=Transcript.pairwise(7, [[0, 1]])).worst_epsilon(1e-6) == before
    with pytest.raises(InvalidValue, match="transcript must be that of a run of MaskedSum"):
        account(protocol, [0], transcript=Transcript.pairwise(6, [[0, 1]]))


# ── why pads are needed ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("steps", "printed", "digits"), [(2, 0.053, 3), (4, 1.5e-3, 4), (8, 8.64e-6, 8), (16, 8.6231e-6, 10)]
)
def test_averages_on_a_grid_tell_more_than_real_numbers_do(steps, printed, digits):
    factor = (1 / 13) ** 2 / sum(1 / p**2 for p in PRIMES)
    assert round(factor, 3) == 0.079
    real = float(gaussian_delta(math.sqrt(factor) / 2, 0.5))
    assert f"{real:.4e}" == "8.6231e-06"
    found = delta_of_an_average(steps)
    assert round(found, digits) == printed
    assert found > real * (1.5 if steps < 8 else 1 - 1e-8)
    if steps == 2:  # as bad as local DP: the residues modulo 13 show y₄ itself
        from netdp.mechanisms.discrete_gaussian import shift_delta

        assert found == pytest.approx(float(shift_delta(4, 1, [0.5])[0]), rel=0.03)


def test_masks_modulo_q_do_not():
    """The same four parties, noise and grid under pads: a curator's loss, whatever the grid."""
    for steps in (2, 4, 8, 16):
        protocol = MaskedSum(graphs.complete(5), sigma=float(steps), sensitivity=steps / 2, grid=1.0)
        delta = float(np.nanmax(account(protocol, [4]).delta(0.5)))
        assert delta == pytest.approx(float(gaussian_delta(0.25, 0.5)), rel=0.02)


def test_a_mask_graph_is_matched_by_names():
    """Both graphs name the same four people and number them differently: who holds all pads is told by name."""
    talk = graphs.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)], labels=["ann", "bob", "cid", "dan"])
    star = graphs.Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)], labels=["dan", "ann", "bob", "cid"])
    protocol = MaskedSum(talk, sigma=1.0, masks=star)
    np.testing.assert_array_equal(account(protocol, ["dan"]).factor, [1, 1, 1, np.nan])
    np.testing.assert_allclose(account(protocol, ["ann"]).factor, [np.nan, 1 / 3, 1 / 3, 1 / 3])
    assert MaskedSum.from_dict(protocol.to_dict()) == protocol
    strangers = graphs.Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)], labels=["v", "w", "x", "y"])
    with pytest.raises(InvalidValue, match="which has no 'v'"):
        MaskedSum(talk, sigma=1.0, masks=strangers)


@pytest.mark.parametrize(
    "words",
    [
        "two values of one party have at most 3 coordinates and differ by at most 1 in L2 norm",
        "each coordinate x becomes ⌊x/g + ½⌋, g = 0.25, and by no other rule",
        "its own discrete Gaussian of parameter σ² = 1024 squared grid steps, drawn exactly",
    ],
)
def test_it_says_what_its_proof_uses(words):
    protocol = MaskedSum(graphs.ring(4), sigma=8.0, grid=0.25, dimension=3)
    assert words in "\n".join(account(protocol, [0]).assumptions)
