"""What must hold on every graph."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.families.gossip.account.exact import factors
from netdp.families.gossip.protocol import Gossip
from netdp.families.gossip.views import GossipView
from netdp.protocols.accounting import account, pairwise

common = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
MARGIN = 1e-7  # far above the rounding margins involved, far below any real violation


@st.composite
def connected_graphs(draw, min_size=3, max_size=14):
    n = draw(st.integers(min_size, max_size))
    edges = {(draw(st.integers(0, v - 1)), v) for v in range(1, n)}
    possible = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1])
    edges |= set(draw(st.lists(possible, max_size=2 * n)))
    return graphs.Graph.from_edges(n, np.array(sorted(edges)))


@st.composite
def cases(draw):
    """A graph, observers, and settings of every kind."""
    graph = draw(connected_graphs())
    observers = draw(st.sets(st.integers(0, graph.n - 1), min_size=1, max_size=max(1, graph.n // 3)))
    options = {
        "rounds": draw(st.integers(1, 8)),
        "refresh": draw(st.sampled_from([0.0, 0.0, 0.1, 3.0])),
        "masks": draw(st.sampled_from([0.0, 0.0, 1.0, 50.0])),
        "accelerated": draw(st.booleans()),
        "mixing": draw(st.sampled_from(["metropolis", "maximum-degree", "lazy-metropolis"])),
    }
    return Gossip(graph, sigma=1.0, **options), sorted(observers)


def loss_of(protocol, observers):
    return account(protocol, observers).factor


def never_lower(more, less):
    """`more` ≥ `less` wherever both are defined."""
    both = ~(np.isnan(more) | np.isnan(less))
    assert both.any()
    assert (more[both] >= less[both] * (1 - MARGIN) - 1e-9).all(), (more, less)


@common
@given(cases())
def test_factors_between_zero_and_one(case):
    protocol, observers = case
    factor = loss_of(protocol, observers)
    hidden = np.setdiff1d(np.arange(protocol.graph.n), observers)
    assert np.isnan(factor[observers]).all()
    assert ((factor[hidden] >= 0) & (factor[hidden] <= 1)).all()


@common
@given(cases())
def test_plain_factors_sum_to_the_rank(case):
    protocol, observers = case
    protocol = protocol.replace(refresh=0.0, masks=0.0)
    result = factors(GossipView.of(protocol, observers))
    assert np.nansum(result.values) == pytest.approx(result.rank, abs=1e-8)
    messages = protocol.rounds * len(GossipView.of(protocol, observers).boundary)
    assert result.rank <= min(messages, protocol.graph.n - len(observers))


@common
@given(cases(), st.integers(1, 4))
def test_more_rounds_never_lower_a_loss(case, more):
    protocol, observers = case
    # The acceleration's messages span the same space whatever γ; with refresh γ and τ both matter, so plain there.
    protocol = protocol.replace(accelerated=False)
    never_lower(loss_of(protocol.replace(rounds=protocol.rounds + more), observers), loss_of(protocol, observers))


@common
@given(cases(), st.data())
def test_more_colluders_never_lower_a_loss(case, data):
    protocol, observers = case
    others = sorted(set(range(protocol.graph.n)) - set(observers))
    if len(others) < 2:
        return
    extra = data.draw(st.sampled_from(others))
    never_lower(loss_of(protocol, [*observers, extra]), loss_of(protocol, observers))


@common
@given(cases(), st.floats(0.01, 10))
def test_less_refresh_never_lowers_a_loss(case, refresh):
    protocol, observers = case
    never_lower(
        loss_of(protocol.replace(refresh=refresh), observers),
        loss_of(protocol.replace(refresh=2 * refresh), observers),
    )
    never_lower(
        loss_of(protocol.replace(refresh=0.0), observers),
        loss_of(protocol.replace(refresh=refresh), observers),
    )


@common
@given(cases(), st.floats(0.01, 1000))
def test_smaller_masks_never_lower_a_loss(case, masks):
    protocol, observers = case
    never_lower(
        loss_of(protocol.replace(masks=masks), observers),
        loss_of(protocol.replace(masks=3 * masks), observers),
    )
    never_lower(loss_of(protocol.replace(masks=0.0), observers), loss_of(protocol.replace(masks=masks), observers))


@common
@given(cases(), st.data())
def test_relabelling_permutes_the_result(case, data):
    protocol, observers = case
    permutation = np.array(data.draw(st.permutations(range(protocol.graph.n))))
    renamed = protocol.replace(graph=protocol.graph.relabel(permutation))
    factor = loss_of(protocol, observers)
    np.testing.assert_allclose(
        loss_of(renamed, permutation[observers].tolist())[permutation], factor, rtol=1e-7, atol=1e-9
    )


@common
@given(cases())
def test_refresh_to_zero_tends_to_no_refresh(case):
    protocol, observers = case
    # So few rounds that the faintest message, (1/(1+d))^T of a value, still stands out of fresh noise of size 1e-11.
    protocol = protocol.replace(rounds=min(protocol.rounds, 3), mixing="metropolis")
    faint = loss_of(protocol.replace(refresh=1e-13), observers)
    np.testing.assert_allclose(faint, loss_of(protocol.replace(refresh=0.0), observers), atol=2e-4)


@common
@given(cases())
def test_masks_to_infinity_tend_to_the_curator(case):
    """One over the size of the party's component in the graph without the observers, if it is seen at all."""
    protocol, observers = case
    graph = protocol.graph
    protocol = protocol.replace(refresh=0.0, rounds=graph.n + 2)  # everything that can be seen is seen
    hidden = np.setdiff1d(np.arange(graph.n), observers)
    component = graph.subgraph(hidden).components()
    limit = 1.0 / np.bincount(component)[component]
    np.testing.assert_allclose(loss_of(protocol.replace(masks=1e7), observers)[hidden], limit, rtol=2e-3)


@common
@given(cases(), st.data())
def test_surrounded_party_keeps_everything(case, data):
    protocol, _ = case
    graph = protocol.graph
    target = data.draw(st.integers(0, graph.n - 1))
    around = graph.neighbors(target).tolist()
    if len(around) < graph.n:
        assert loss_of(protocol, around)[target] == 1.0


@common
@given(cases())
def test_acceleration_is_post_processing_without_refresh(case):
    protocol, observers = case
    protocol = protocol.replace(refresh=0.0)
    np.testing.assert_allclose(
        loss_of(protocol.replace(accelerated=True), observers),
        loss_of(protocol.replace(accelerated=False), observers),
        rtol=1e-9,
        atol=1e-10,
    )


@common
@given(connected_graphs(max_size=9), st.integers(1, 5), st.sampled_from([0.0, 5.0]))
def test_pairwise_is_account_column_by_column(graph, rounds, masks):
    protocol = Gossip(graph, rounds=rounds, sigma=2.0, masks=masks, refresh=0.1 * masks)
    matrix = pairwise(protocol)
    for v in range(graph.n):
        column = account(protocol, v)
        # The same work with one thread of BLAS or several, whose rounding may differ: two results within the margin.
        np.testing.assert_allclose(matrix.factor[:, v], column.factor, rtol=0, atol=column.slack)


def test_neighbours_alone_show_that_less_is_not_always_less():
    """The checks above can fail: with fewer rounds a loss really drops."""
    ring = graphs.ring(12)
    assert loss_of(Gossip(ring, 1, 1.0), [0])[2] == 0.0
    assert loss_of(Gossip(ring, 2, 1.0), [0])[2] == 1.0
