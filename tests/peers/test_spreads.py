"""Ways from contributions to the answer, one by one: what is noticed, and what a restart gives again."""

import numpy as np
import pytest

from netdp import graphs
from netdp.families.gossip.peer import Gossiping, gossip_noises
from netdp.families.gossip.protocol import Gossip
from netdp.families.masked.peer import Average, Flood
from netdp.families.masked.protocol import MaskedSum, to_bytes
from netdp.families.token.peer_ring import Ring
from netdp.families.token.ring import RingSum
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.spread import Moment
from netdp.peers.streams import Words

NOW = Moment(0.0)


def contribution(p, u, y):
    body = roster_digest(tuple(range(p.n))) + to_bytes(np.array([y], dtype=np.uint64), p.q)
    return Item(Key(ItemKind.CONTRIBUTION, 1, u), body)


def averaged(p, ys, change=None):
    """Let all parties average, `change(item)` in between; the spreads at the end."""
    roster = tuple(range(p.n))
    spreads = [Average(p, 1, roster, u) for u in roster]
    held = [{(item := contribution(p, u, ys[u])).key: item} for u in roster]
    moving = True
    while moving:
        moving = False
        for u in roster:
            for to, item in spreads[u].advance(held[u], NOW).addressed:
                held[to][item.key] = item if change is None else change(item)
                moving = True
    return spreads


def test_everybody_averages_to_the_exact_sum():
    p = MaskedSum(graphs.ring(5), sigma=1.0, spread="average")
    ys = [p.q - 1, 0, p.q // 2, 17, 12345]
    spreads = averaged(p, ys)
    assert not any(spread.stuck for spread in spreads)
    exact = Flood(p, 1, tuple(range(5)))
    exact.advance({(item := contribution(p, u, y)).key: item for u, y in enumerate(ys)}, NOW)
    assert {spread.answer.digest for spread in spreads} == {exact.answer.digest}


@pytest.mark.parametrize("off", [0.05, 0.2, 1.3])
def test_a_state_that_is_a_little_off_is_noticed(off):
    """Somebody adds a fraction to a late state: n times the mean is no whole number any more, and nobody takes it for the sum."""
    p = MaskedSum(graphs.complete(4), sigma=1.0, spread="average")
    last = p.averaging.rounds - 1

    def change(item):
        if item.key.kind != ItemKind.STATE or item.key.author != 2 or item.key.index != last:
            return item
        return Item(item.key, (np.frombuffer(item.body) + off).tobytes())

    spreads = averaged(p, [1, 2, 3, 4], change)
    assert [spread.stuck for spread in spreads] == [True, True, False, True]
    assert all(spread.answer is None for spread in spreads if spread.stuck)


def test_a_contribution_to_another_roster_is_not_counted():
    p = MaskedSum(graphs.complete(3), sigma=1.0)
    spread = Flood(p, 1, (0, 1, 2))
    held = {(item := contribution(p, u, u)).key: item for u in range(3)}
    foreign = Item(
        Key(ItemKind.CONTRIBUTION, 1, 2), roster_digest((0, 2)) + held[Key(ItemKind.CONTRIBUTION, 1, 2)].body[32:]
    )
    spread.advance({**held, foreign.key: foreign}, NOW)
    assert spread.answer is None
    spread.advance(held, NOW)
    assert spread.answer is not None


def test_a_token_that_comes_again_is_answered_alike_and_once():
    p = RingSum(3, rounds=2, sigma=1.0, grid=0.25)
    drawn = np.array([[5], [7]])
    token = Item(Key(ItemKind.TOKEN, 1, 0, 0), np.array([100], dtype="<i8").tobytes())
    answers = []
    for _ in range(2):  # the second time as a new process
        spread = Ring(p, 1, (0, 1, 2), 1, lambda: drawn)
        answers.append(spread.advance({token.key: token}, NOW).addressed)
        assert spread.advance({token.key: token}, NOW).addressed == []
    assert answers[0] == answers[1]
    ((to, item),) = answers[0]
    assert (to, item.key.index, np.frombuffer(item.body, dtype="<i8").tolist()) == (2, 1, [105])


def test_a_token_of_the_second_round_meets_the_second_contribution():
    p = RingSum(3, rounds=2, sigma=1.0, grid=0.25)
    spread = Ring(p, 1, (0, 1, 2), 1, lambda: np.array([[5], [7]]))
    token = Item(Key(ItemKind.TOKEN, 1, 0, 3), np.array([100], dtype="<i8").tobytes())
    ((_, item),) = spread.advance({token.key: token}, NOW).addressed
    assert np.frombuffer(item.body, dtype="<i8").tolist() == [107]


def test_gossip_waits_for_all_neighbours():
    p = Gossip(graphs.path(3), rounds=2, sigma=1.0, refresh=1.0, grid=2.0**-20)
    drawn = gossip_noises(p, np.array([0.5]), Words(bytes(32)))
    spread = Gossiping(p, 1, (0, 1, 2), 1, lambda: drawn)
    held = {}
    first = spread.advance(held, NOW).addressed
    assert [(to, item.key.index) for to, item in first] == [(0, 0), (2, 0)]
    for t in range(2):
        held[Key(ItemKind.STATE, 1, 0, t)] = Item(Key(ItemKind.STATE, 1, 0, t), np.array([3], dtype="<i8").tobytes())
        assert spread.advance(held, NOW).addressed == []
        held[Key(ItemKind.STATE, 1, 2, t)] = Item(Key(ItemKind.STATE, 1, 2, t), np.array([9], dtype="<i8").tobytes())
        sent = spread.advance(held, NOW).addressed
        assert [item.key.index for _, item in sent] == ([1, 1] if t == 0 else [])
    assert spread.answer is not None
