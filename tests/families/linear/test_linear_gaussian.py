"""The general accountant on views written by hand."""

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.protocol import Gossip
from netdp.families.linear.account import shift_energy
from netdp.families.linear.protocol import LinearGaussianView
from netdp.protocols import NoiseTerm, Seen
from netdp.protocols.accounting import account, pairwise


def view(A, B, observers=(0,)):
    A, B = np.array(A, dtype=float), np.array(B, dtype=float)
    noises = tuple(NoiseTerm("own", (i + 1,)) for i in range(B.shape[1]))
    return Seen(observers, A, B, noises, np.zeros((len(A), 3), dtype=np.int64))


def test_one_message():
    assert shift_energy(view([[0, 3, 1]], [[2, 0]]))[1:].tolist() == pytest.approx([9 / 4, 1 / 4])


def test_same_noise_twice_cancels():
    """y₁ = x₁ + z, y₂ = x₂ + z: the difference x₁ − x₂ is free of noise, so both losses are infinite."""
    assert np.isinf(shift_energy(view([[0, 1, 0], [0, 0, 1]], [[1], [1]]))[1:]).all()


def test_repeating_a_message_costs_nothing():
    once = shift_energy(view([[0, 1, 2]], [[1, 1]]))
    twice = shift_energy(view([[0, 1, 2], [0, 2, 4]], [[1, 1], [2, 2]]))
    np.testing.assert_allclose(once[1:], twice[1:])


def test_independent_messages_add_up():
    energy = shift_energy(view([[0, 1], [0, 1]], [[1, 0], [0, 2]]))
    assert energy[1] == pytest.approx(1 + 1 / 4)


def test_no_noise_at_all():
    energy = shift_energy(view([[0, 1, 0]], [[0, 0]]))
    assert energy[1] == np.inf
    assert energy[2] == 0


def test_refuses_what_floating_point_cannot_tell():
    with pytest.raises(Unsupported, match="too faint"):
        shift_energy(view([[0, 1, 0], [0, 1, 1]], [[1, 0], [1, 1e-10]]))


def gossip_as_matrices(protocol):
    """Every message of a run of gossip, written down as a stranger would: who sends what, who reads it, who knows which noise."""
    n, graph = protocol.n, protocol.graph
    edges = graph.edges() if protocol.masks else np.empty((0, 2), dtype=int)
    fresh = range(1, protocol.rounds) if protocol.refresh else range(0)
    known = [(u,) for u in range(n)] + [(int(u), int(w)) for u, w in edges] + [(u,) for _ in fresh for u in range(n)]
    state = np.zeros((n, n + len(known)))  # over values, then noises
    state[:, :n], state[:, n : 2 * n] = np.eye(n), protocol.sigma * np.eye(n)
    for k, (u, w) in enumerate(edges):
        state[[u, w], 2 * n + k] = np.sqrt(protocol.mask_variance) * np.array([1, -1])
    previous, rows, readers = state, [], []
    for t in range(protocol.rounds):
        if t in fresh:
            noise = np.zeros_like(state)
            noise[range(n), 2 * n + len(edges) + (t - 1) * n + np.arange(n)] = np.sqrt(protocol.refresh_variance)
            state, previous = state + noise, previous + noise
        rows.append(state)
        readers += [tuple(graph.neighbors(u).tolist()) for u in range(n)]
        mixed = protocol.matrix.toarray() @ state
        if protocol.chebyshev is not None and t:
            mixed = protocol.chebyshev * mixed + (1 - protocol.chebyshev) * previous
        state, previous = mixed, state
    rows = np.vstack(rows)
    return LinearGaussianView(n, rows[:, :n], rows[:, n:], readers, known, sensitivity=protocol.sensitivity)


@pytest.mark.parametrize(
    "settings",
    [{}, {"masks": 3.0}, {"refresh": 1.5}, {"accelerated": True, "masks": 1.0, "refresh": 0.5, "sensitivity": 2.0}],
    ids=["plain", "masked", "refreshed", "everything"],
)
@pytest.mark.parametrize("observers", [[0], [1, 4]])
def test_gossip_written_as_matrices_has_the_loss_of_gossip(settings, observers):
    protocol = Gossip(graphs.grid(2, 4), rounds=3, sigma=1.5, **settings)
    theirs = account(gossip_as_matrices(protocol), observers)
    ours = account(protocol, observers)
    np.testing.assert_allclose(theirs.mu, ours.mu, rtol=1e-6)
    assert theirs.claim == "exact"


def test_all_pairs_are_the_columns():
    view = gossip_as_matrices(Gossip(graphs.star(5), rounds=2, sigma=1.0, masks=1.0))
    both = pairwise(view)
    for v in range(5):
        np.testing.assert_allclose(both.mu[:, v], account(view, [v]).mu, rtol=1e-12)
    assert both.claim == "exact"


def test_a_coalition_knows_its_members_noises_and_sees_what_they_read():
    """0 masks its value for 1 with a noise that 2 knows: harmless alone, nothing is left if 1 and 2 talk."""
    view = LinearGaussianView(3, [[1, 0, 0]], [[2.0, 0.5]], [(1,)], known=[(2,), (0,)])
    assert account(view, [1]).mu[0] == pytest.approx(1 / np.hypot(2.0, 0.5))
    assert account(view, [2]).mu[0] == 0
    assert account(view, [1, 2]).mu[0] == pytest.approx(2.0)
    assert account(view.replace(known=[(2,), (2,)]), [1, 2]).mu[0] == np.inf


TWICE = [
    # party 0 contributes to both messages, party 1 to one of them
    ([[1, 0, 0], [0, 1, 1]], [[1.0, 0.0], [0.5, 1.0]]),  # correlated noises: M has negative entries
    ([[1, 0, 0], [0, 1, 1]], [[1.0, 0.0], [0.0, 1.0]]),
    ([[1, 1, 0], [0, 1, 1]], [[1.0, 0.2], [0.2, 1.0]]),
    ([[2, 1, 0], [1, 1, 1]], [[1.0, 0.0], [0.1, 3.0]]),
]


@pytest.mark.parametrize(("data", "noise"), TWICE)
def test_several_contributions_against_brute_force_over_their_changes(data, noise):
    """μ² is the largest dᵀMd over |d_k| ≤ Δ, which is at a corner: exact where M has no negative entry, else a bound."""
    view = LinearGaussianView(3, data, noise, [(2,), (2,)], known=[(0,), (1,)], owners=[0, 0, 1], sensitivity=1.5)
    loss = account(view, [2])
    A, B = np.array(data, dtype=float)[:, :2], np.array(noise)
    M = A.T @ np.linalg.inv(B @ B.T) @ A
    corners = np.array([[i, j] for i in np.linspace(-1.5, 1.5, 41) for j in np.linspace(-1.5, 1.5, 41)])
    largest = np.sqrt(max(d @ M @ d for d in corners))
    nothing_negative = (M >= 0).all()
    assert loss.mu[0] >= largest * (1 - 1e-12)
    if nothing_negative:
        assert loss.mu[0] == pytest.approx(largest)
    assert (loss.claim == "exact") == nothing_negative
    # two contributions of opposite sign: dᵀMd is largest at d = (Δ, −Δ), which is Σ|M|·Δ² again
    assert loss.mu[0] == pytest.approx(1.5 * np.sqrt(np.abs(M).sum()))


def test_contributions_that_cannot_all_help_each_other_are_bounded():
    """Three contributions whose M has an odd number of negative pairs: Σ|M| is out of reach, and the claim says upper."""
    B = np.linalg.cholesky(np.linalg.inv([[2.0, -0.9, -0.9], [-0.9, 2.0, -0.9], [-0.9, -0.9, 2.0]]))
    view = LinearGaussianView(2, np.eye(3), B, [(1,)] * 3, known=[(0,)] * 3, owners=[0, 0, 0])
    loss = account(view, [1])
    corners = [np.array([i, j, k]) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    M = np.linalg.inv(B @ B.T)
    largest = np.sqrt(max(d @ M @ d for d in corners))
    assert largest < loss.mu[0] * 0.95
    assert loss.mu[0] == pytest.approx(np.sqrt(np.abs(M).sum()))
    assert loss.claim == "upper"


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1.0, 1e9])
def test_a_value_without_noise_shows_in_any_unit(unit):
    """A coefficient of 1e-9 without noise used to count as rounding: loss 0 where it is infinite."""
    bare = LinearGaussianView(3, [[unit, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 1, 0]], [(2,), (2,)])
    assert account(bare, [2]).mu[:2].tolist() == [np.inf, pytest.approx(1.0)]
    # the same noise on both: their difference is bare
    same = LinearGaussianView(3, [[unit, 0, 0], [0, unit, 0]], [[unit] * 3, [unit] * 3], [(2,), (2,)])
    assert np.isinf(account(same, [2]).mu[:2]).all()
    # a message in small units with noise in small units says as much as in large ones
    noisy = LinearGaussianView(3, [[unit, 0, 0], [0, 1, 0]], [[2 * unit, 0, 0], [0, 1, 0]], [(2,), (2,)])
    assert account(noisy, [2]).mu[:2] == pytest.approx([0.5, 1.0])


def test_a_small_share_that_sticks_out_of_the_noise_is_seen():
    """y₁ = x₀ + z, y₂ = (1 + 1e-10)x₀ + z: their difference shows x₀ without noise."""
    view = LinearGaussianView(2, [[1, 0], [1 + 1e-10, 0]], [[1.0, 0], [1.0, 0]], [(1,), (1,)])
    assert account(view, [1]).mu[0] == np.inf
    equal = LinearGaussianView(2, [[1 / 3, 0], [1 / 7, 0]], [[1 / 3, 0], [1 / 7, 0]], [(1,), (1,)])
    assert account(equal, [1]).mu[0] == pytest.approx(1.0)


def test_whoever_reads_nothing_learns_nothing_and_everybody_reads_what_is_published():
    view = LinearGaussianView(3, [[1, 0, 0], [1, 1, 1]], [[1.0, 0, 0], [1, 1, 1]], [(1,), None])
    silent = view.replace(readers=[(1,), (1,)])
    assert account(silent, [2]).mu[:2].tolist() == [0.0, 0.0]
    assert account(view, [2]).mu[:2] == pytest.approx([1 / np.sqrt(2)] * 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": [[1, 0, np.nan]]}, "data must be a matrix of finite numbers"),
        ({"data": [1, 0, 0]}, r"data must be a matrix of finite numbers with rows and columns, got shape \(3,\)"),
        ({"data": "A"}, "data must be a matrix of numbers, got 'A'"),
        ({"noise": np.eye(3)}, "data has 1 messages and noise 3; they must agree"),
        ({"noise": [[1.0, 2.0]]}, r"there are 2 noises and 3 parties: say who knows each noise, known="),
        ({"data": [[1, 0]]}, "there are 2 contributions and 3 parties: say whose each is, owners="),
        ({"owners": [0, 1, 3]}, "owners must name one of the parties 0 to 2"),
        ({"owners": [0, 1]}, "owners must name"),
        ({"readers": []}, "readers must have 1 entries"),
        ({"readers": [(3,)]}, r"readers: \(3,\) must be a list of parties from 0 to 2"),
        ({"readers": "all"}, "readers must have 1 entries"),
        ({"known": [(0,), None, (2,)]}, "known: None must be a list of parties"),
        ({"reading": [[1, 2]]}, r"reading must have shape \(1 or 3, 1\), got \(1, 2\)"),
        ({"sensitivity": 0}, "sensitivity must be a finite number > 0"),
        ({"n": 0}, "n must be a whole number"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InvalidValue, match=message):
        LinearGaussianView(
            **{"n": 3, "data": [[1, 1, 1]], "noise": [[1.0, 1, 1]], "readers": [None], **changes}
        )  # fmt: skip


def test_matrices_are_kept_as_they_were():
    data = np.ones((1, 3))
    view = LinearGaussianView(3, data, data, [None])
    data[0, 0] = 9.0
    assert view.data[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        view.data[0, 0] = 2.0
