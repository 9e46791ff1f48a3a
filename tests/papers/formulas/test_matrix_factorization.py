"""The matrix mechanism as published: its projector against a covariance, its errata computed, its encoder against known optima."""

from itertools import product

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.descent import loss_energy
from netdp.papers.formulas import matrix_factorization as mf
from netdp.protocols import GossipDescent


def descent(graph, iterations, rounds=1, **more):
    return GossipDescent(graph, iterations, rounds, **{"sigma": 1.0, "step": 1.0, "clip": 0.5, **more})


def by_covariance(protocol, observer, target, steps):
    """max over ±1 of dᵀAᵀΣ⁻¹Ad: messages run step by step, one unit impulse at a time; nothing is shared with the package."""
    graph, T, K, n = protocol.graph, protocol.iterations, protocol.gossip_rounds, protocol.n
    W = np.zeros((n, n))
    for u in range(n):
        for w in graph.neighbors(u):
            W[u, w] = 1 / (1 + max(graph.degrees[u], graph.degrees[w]))
        W[u, u] = 1 - W[u].sum()

    def messages(iteration, party):
        theta, sent = np.zeros(n), []
        for t in range(T):
            theta = steps * theta
            if t == iteration:
                theta[party] += 1
            for _ in range(K):
                sent += [theta[w] for w in graph.neighbors(observer)]
                theta = W @ theta
        return sent

    response = {(t, u): np.array(messages(t, u)) for t in range(T) for u in range(n)}
    noise = np.array([response[t, u] for t in range(T) for u in range(n) if u != observer])
    signal = np.array([response[t, target] for t in range(T)]).T
    inverse = np.linalg.pinv(noise.T @ noise, rcond=1e-11, hermitian=True)
    M = signal.T @ inverse @ signal
    return M, max(np.array(s) @ M @ np.array(s) for s in product((1.0, -1.0), repeat=T))


@pytest.mark.parametrize(
    ("graph", "T", "K"),
    [(graphs.path(4), 3, 1), (graphs.star(5), 4, 1), (graphs.ring(6), 3, 2), (graphs.hypercube(3), 3, 1)],
)
def test_the_projector_is_the_inverse_covariance(graph, T, K):
    protocol = descent(graph, T, K)
    energy = mf.energies(protocol, [0])
    assert np.isnan(energy[0])
    for u in range(1, graph.n):
        M, _ = by_covariance(protocol, 0, u, np.ones(graph.n))
        assert energy[u] == pytest.approx(np.abs(M).sum(), abs=1e-8)
    loss = netdp.account(protocol.replace(sigma=3.0), 0, method="published", version="2026")
    assert loss.claim == "published"
    np.testing.assert_allclose(np.asarray(loss.mu)[1:], np.sqrt(energy[1:]) / 3)
    assert loss.errata == mf.ERRATA


def test_graphs_that_change_and_several_observers():
    protocol = descent((graphs.path(4), graphs.ring(4)), 2)
    both = mf.energies(protocol, [0, 3])
    assert (both[1:3] >= np.maximum(mf.energies(protocol, [0]), mf.energies(protocol, [3]))[1:3] - 1e-9).all()
    same = descent((graphs.ring(5),) * 3, 3)
    np.testing.assert_allclose(mf.energies(same, [1]), mf.energies(descent(graphs.ring(5), 3), [1]))


def test_hidden_gradients_that_react_exceed_it():
    """The star of the errata, and small ones: quadratic losses, steps that do not expand; ours is above."""
    for leaves, T in ((3, 3), (5, 6)):
        protocol = descent(graphs.star(leaves + 1), T)
        steps = np.zeros(leaves + 1)
        steps[[0, 2]] = 1.0
        _, exact = by_covariance(protocol, 1, 2, steps)
        assert mf.energies(protocol, [1])[2] * 1.05 < exact <= loss_energy(protocol, (1,))[2]
    protocol = descent(graphs.star(18), 40)
    steps = np.zeros(18)
    steps[[0, 2]] = 1.0
    printed = float(mf.energies(protocol, [1])[2])
    assert (round(printed, 2), round(shifts_alike(steps, 40), 2)) == (2.02, 11.07)
    assert "2.02" in mf.ERRATA[0]
    assert "11.07" in mf.ERRATA[0]


def shifts_alike(steps, T):
    """μ² of leaf 2's shifts, all alike, to leaf 1 on the star of 18: the centre's messages as linear forms, solved directly."""
    n = len(steps)
    W = np.eye(n) - np.diag([17 / 18, *[1 / 18] * 17])
    W[0, 1:] = W[1:, 0] = 1 / 18
    forms, state = [], np.zeros((n, T * n))
    for t in range(T):
        state = steps[:, None] * state
        state[range(n), range(t * n, t * n + n)] += 1
        forms.append(state[0].copy())
        state = W @ state
    forms = np.array(forms)
    shift = forms.reshape(T, T, n)[:, :, 2].sum(axis=1)
    hidden = np.delete(forms, range(1, T * n, n), axis=1)
    return float(shift @ np.linalg.solve(hidden @ hidden.T, shift))


def test_between_two_parties_it_is_local_dp():
    for steps in ((1.0, 1.0), (0.3, 0.8), (1.0, 0.0)):
        protocol = descent(graphs.path(2), 4)
        assert mf.energies(protocol, [0])[1] == pytest.approx(4)
        assert by_covariance(protocol, 0, 1, np.array(steps))[1] == pytest.approx(4)


def test_it_may_exceed_local_dp():
    energy = mf.energies(descent(graphs.star(4), 5), [1])
    assert energy[0] > 5


def test_a_single_attacker_is_not_in_echelon_form_once_two_are_hidden():
    def hidden(graph, T):
        A = mf.attacked(descent(graph, T), [0])
        return np.delete(A[: A.shape[0] - T], range(0, A.shape[1], graph.n), axis=1)

    assert mf.in_column_echelon_form(hidden(graphs.path(2), 3))
    assert not mf.in_column_echelon_form(hidden(graphs.path(3), 2))
    path = hidden(graphs.path(3), 2)
    assert path.any(axis=0).sum() > np.linalg.matrix_rank(path)  # so no order of columns or rows makes it one


def test_what_the_paper_does_not_cover_is_refused():
    for change in ({"masks": 1.0}, {"accelerated": True}):
        with pytest.raises(Unsupported, match="masks"):
            netdp.account(descent(graphs.ring(5), 2, **change), 0, method="published", version="2026")
    with pytest.raises(Unsupported, match=r"4,020 columns"):
        mf.attacked(descent(graphs.ring(201), 20), [0])
    with pytest.raises(InvalidValue, match="choose 2022 or 2026"):
        netdp.account(descent(graphs.ring(5), 2), 0, method="published", version="2024")


# --- correlated noise ------------------------------------------------------------------------------------------------


def test_the_workload_counts_all_mixed_models():
    rng = np.random.default_rng(0)
    W, T = graphs.mixing.metropolis(graphs.star(4)).toarray(), 5
    S = rng.normal(size=(T, T))  # everybody adds S z
    total = 0.0
    for t in range(T):
        for u in range(4):
            theta = np.zeros(4)
            for s in range(T):
                theta[u] += S[s, t]
                theta = W @ theta
                total += theta @ theta
    assert (mf.workload(W, T) * (S @ S.T)).sum() == pytest.approx(total / 20)


@pytest.mark.parametrize("every", [1, 2, 6])
def test_the_encoder_obeys_and_is_optimal(every):
    A = np.tri(6)
    M = A.T @ A
    X = mf.encoder(M, every)
    for first in range(every):
        own = np.arange(first, 6, every)
        block = X[np.ix_(own, own)]
        assert np.trace(block) == pytest.approx(1)
        np.testing.assert_allclose(block - np.diag(block.diagonal()), 0, atol=1e-12)
    reached = (M * np.linalg.inv(X)).sum()
    if every == 1:
        assert reached == pytest.approx(np.sqrt(M.diagonal()).sum() ** 2, rel=1e-6)
    if every == 6:  # X = D^½(D^−½ M D^−½)^½D^½ with unit diagonal, found by the fixed point that the literature uses
        d = np.ones(6)
        for _ in range(2000):
            half = np.sqrt(d)
            values, vectors = np.linalg.eigh(half[:, None] * M * half)
            d = ((vectors * np.sqrt(values)) @ vectors.T).diagonal()
        assert reached == pytest.approx(d.sum(), rel=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(50):  # no feasible neighbour is better
        other = mf.encoder(M + 0.1 * np.diag(rng.random(6)), every)
        assert (M * np.linalg.inv(other)).sum() >= reached * (1 - 1e-6)


def test_the_encoder_needs_whole_epochs():
    with pytest.raises(InvalidValue, match="divide the 6 iterations"):
        mf.encoder(np.eye(6), 4)
