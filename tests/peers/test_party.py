"""Parties in a world of lost links and sudden deaths: the right answer or a clean end, and never two contributions.

What must hold: docs/proofs/peers.md#real-peers.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.peers.messages import Announce, Done, Hello, Item, ItemKind, Key, Pull, roster_body
from netdp.peers.spread import SpreadResult
from netdp.peers.terms import Ended

_spec = importlib.util.spec_from_file_location("world", Path(__file__).parent / "world.py")
_world = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_world)
World, signed = _world.World, _world.signed


def everybody(world):
    for u in range(world.n):
        world.start(u)
    return world


@pytest.mark.parametrize("spread", ["flood", "average"])
@pytest.mark.parametrize("graph", [graphs.ring(7), graphs.complete(5), graphs.grid(3, 3), graphs.path(2)], ids=str)
def test_everybody_holds_the_exact_sum(graph, spread):
    world = everybody(World(graph, spread=spread)).run()
    world.check_answers(range(graph.n))
    assert all(world.outcomes[u].attempt == 1 for u in range(graph.n))


def test_large_contributions_are_announced_and_pulled():
    world = World(graphs.ring(5), dimension=20_000)
    kinds = []
    world.watch = lambda u, to, messages: kinds.extend(type(m).__name__ for m in messages)
    everybody(world).run()
    world.check_answers(range(5))
    assert {"Announce", "Pull"} <= set(kinds)
    # everybody needs the four others once; nobody is sent a large one twice
    assert kinds.count("Item") <= 5 * 4 + 5 * 5 * 2


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["flood", "average"]),
    st.lists(st.tuples(st.integers(0, 8), st.floats(0, 3), st.floats(0.05, 4)), max_size=6),
    st.lists(st.tuples(st.integers(0, 11), st.floats(0, 3)), max_size=6),
)
def test_deaths_and_broken_links_change_nothing(seed, spread, deaths, cuts):
    """Any party dies at any time and comes back; any link breaks: everybody holds the exact sum of one attempt."""
    graph = graphs.grid(3, 3)
    world = everybody(World(graph, spread=spread, seed=seed, attempts=3, absent=2, patience=30.0))
    for u, when, back in deaths:
        world.at(when, world.kill, u, back)
    edges = graph.edges().tolist()
    for edge, when in cuts:
        world.at(when, world.cut, *edges[edge])
    world.run(until=3000)
    world.check_answers(range(9))


@pytest.mark.parametrize("spread", ["flood", "average"])
@pytest.mark.parametrize("moment", range(1, 12))
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_send(moment, after, spread):
    """Party 2 is killed before or after its k-th frame leaves, and comes back."""
    world = World(graphs.ring(4), spread=spread, patience=20.0)
    count = 0

    def watch(u, to, messages):
        nonlocal count
        if u != 2:
            return None
        count += 1
        if count == moment:
            if after:
                world.at(0.0, world.kill, 2, 0.5)
                return None
            return "kill"
        return None

    world.watch = watch
    everybody(world).run()
    world.check_answers(range(4))
    assert all(world.outcomes[u].attempt == 1 for u in range(4))


def test_vanished_after_sending_costs_nothing():
    world = World(graphs.ring(5), attempts=2, absent=1)

    def watch(u, to, messages):
        if u == 3 and any(
            isinstance(m, Item) and m.key.kind == ItemKind.CONTRIBUTION and m.key.author == 3 for m in messages
        ):
            world.at(0.06, world.kill, 3)

    world.watch = watch
    everybody(world).run(alive=[0, 1, 2, 4])
    world.check_answers([0, 1, 2, 4])
    assert world.outcomes[0].attempt == 1
    assert world.outcomes[0].roster == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("spread", ["flood", "average"])
def test_vanished_before_sending_costs_an_attempt(spread):
    world = World(graphs.complete(5), attempts=2, absent=1, spread=spread)

    def watch(u, to, messages):
        return (
            "kill"
            if u == 3 and any(isinstance(m, Item) and m.key.kind == ItemKind.CONTRIBUTION for m in messages)
            else None
        )

    world.watch = watch
    world.kill_for_good = True
    original = world.kill
    world.kill = lambda u, back=None: original(u)
    everybody(world).run(alive=[0, 1, 2, 4])
    world.check_answers([0, 1, 2, 4])
    assert {world.outcomes[u].roster for u in (0, 1, 2, 4)} == {(0, 1, 2, 4)}
    assert world.outcomes[0].attempt == 2
    assert all(len(world.books[u].spent) == 2 for u in (0, 1, 2, 4)), "both attempts are charged"


def test_never_there_costs_nothing():
    world = World(graphs.complete(5), attempts=1, absent=1)
    for u in (0, 1, 2, 4):
        world.start(u)
    world.run(alive=[0, 1, 2, 4])
    world.check_answers([0, 1, 2, 4])
    assert all(len(world.books[u].spent) == 1 for u in (0, 1, 2, 4))


def test_too_many_missing_is_a_clean_end():
    world = World(graphs.complete(5), attempts=2, absent=1)
    for u in (0, 1, 2):
        world.start(u)
    world.run(alive=[0, 1, 2])
    for u in (0, 1, 2):
        assert isinstance(world.outcomes[u], Ended)
        assert (
            "3 of 5 parties took part in attempt 1 (missing: 3, 4), and the study wants at least 4"
            in world.outcomes[u].reason
        )
        assert world.outcomes[u].contributed == 0
    assert not world.said


def test_a_latecomer_hears_the_answer_and_contributes_nothing():
    world = World(graphs.complete(4), attempts=1, absent=1, patience=5.0)
    for u in (0, 1, 2):
        world.start(u)
    world.at(12.0, world.start, 3)
    world.run()
    world.check_answers(range(4))
    assert world.books[3].spent == []
    assert world.outcomes[3].roster == (0, 1, 2)


def test_attempts_used_up():
    """With one attempt allowed, a party that vanishes at the wrong moment ends the study; nobody contributes twice."""
    world = World(graphs.complete(4), attempts=1, absent=1)
    original = world.kill
    world.kill = lambda u, back=None: original(u)
    world.watch = lambda u, to, messages: (
        "kill"
        if u == 1 and any(isinstance(m, Item) and m.key.kind == ItemKind.CONTRIBUTION for m in messages)
        else None
    )
    everybody(world).run(alive=[0, 2, 3])
    assert all("used up; missing: 1" in world.outcomes[u].reason for u in (0, 2, 3))
    world.check_honesty()


def test_a_restored_backup_takes_back_what_it_said():
    world = World(graphs.ring(4), patience=30.0)

    def watch(u, to, messages):
        if u == 1 and any(isinstance(m, Item) and m.key == Key(ItemKind.CONTRIBUTION, 1, 1) for m in messages):
            world.at(0.051, forget)
            world.watch = None

    def forget():
        world.books[1] = _world.Notebook(world, 1)  # an old copy of its folder
        world.outcomes.pop(1, None)
        world.kill(1, back=0.3)

    world.watch = watch
    everybody(world).run()
    world.check_answers(range(4))
    assert world.books[1].spent == [(1, (0, 1, 2, 3))]


# ── hostile company ───────────────────────────────────────────────────────────────────────────────────────────────────


def lone_party(n=4, **settings):
    world = World(graphs.complete(n), **settings)
    world.start(0)
    party = world.parties[0]
    for v in range(1, n):
        party.linked(v, 0.0)
        party.received(v, [Hello(b"s" * 32, "")], 0.0)
    party.outbox()
    return world, party


def vote(author, attempt, roster):
    return signed(Key(ItemKind.VOTE, attempt, author), roster_body(roster))


def test_who_holds_the_answer_and_left_keeps_nobody_waiting():
    _, party = lone_party(3)
    party.resume(SpreadResult(1, (0, 1, 2), np.zeros(1), b"d"), [], {})
    party.received(1, [Done(1, b"d")], 1.0)
    party.lost(1, 1.0)
    assert not party.may_leave
    party.received(2, [Done(1, b"d")], 1.0)
    assert party.may_leave
    party.linked(1, 1.0)  # it came back, and may have forgotten the answer
    assert not party.may_leave


def test_a_second_roster_for_the_same_attempt_is_refused():
    _, party = lone_party(attempts=2, absent=1)
    party.received(1, [vote(1, 1, (0, 1, 2, 3))], 0.1)
    party.received(2, [vote(1, 1, (0, 1, 2))], 0.1)
    assert any("refused: a second vote of 1 for attempt 1" in note for note in party.notes)


def test_a_roster_that_is_too_small_is_refused():
    _, party = lone_party(absent=1)
    party.received(1, [vote(1, 2, (0, 1))], 0.1)
    assert any("voted for a roster of 2; the study allows no fewer than 3" in note for note in party.notes)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Item(Key(ItemKind.VOTE, 1, 2), roster_body((0, 1, 2, 3)), b"forged"), "signature"),
        (signed(Key(ItemKind.VOTE, 99, 2), roster_body((0, 1, 2, 3))), "belongs to no attempt"),
        (signed(Key(ItemKind.CONTRIBUTION, 1, 7), b"x"), "belongs to no attempt or party"),
        (signed(Key(ItemKind.CONTRIBUTION, 1, 2, 5), b"x"), "belongs to no attempt or party"),
        (signed(Key(ItemKind.CONTRIBUTION, 1, 2), b"x" * 10**7), "belongs to no attempt or party"),
        (Item(Key(ItemKind.STATE, 1, 2, 1), bytes(8)), "came over a link of 1"),
        (signed(Key(ItemKind.VOTE, 1, 2), b"xyz"), "no list of parties"),
        (signed(Key(ItemKind.VOTE, 1, 2), roster_body((0, 2, 1, 3))), "not in increasing order"),
        (signed(Key(ItemKind.VOTE, 1, 2), roster_body((0, 1, 3))), "cannot be part of"),
        (signed(Key(ItemKind.VOTE, 1, 2), roster_body((0, 1, 2, 9))), "cannot be part of"),
    ],
)
def test_nonsense_is_ignored_and_noted(item, words):
    _, party = lone_party(absent=1)
    before = dict(party._held)
    party.received(1, [item], 0.1)
    assert any(words in note for note in party.notes), party.notes
    assert party._held == before


def test_nothing_is_contributed_before_all_have_voted_for_the_same_roster():
    world, party = lone_party(attempts=2, absent=1)
    for v, roster in ((1, (0, 1, 2, 3)), (2, (0, 1, 2, 3)), (3, (1, 2, 3))):
        party.received(v, [vote(v, 1, roster)], 0.1)
    party.tick(5.0)
    assert world.books[0].spent == []
    party.received(3, [vote(3, 1, (0, 1, 2, 3))], 5.0)  # a second vote does not heal it
    assert world.books[0].spent == []


def test_a_split_roster_gets_nothing_from_those_outside_it():
    """The others seal a roster without us in attempt 1: we contribute nothing to it."""
    world, party = lone_party(absent=1)
    for v in (1, 2, 3):
        party.received(v, [vote(v, 1, (1, 2, 3))], 0.1)
    party.tick(5.0)
    assert world.books[0].spent == []


@pytest.mark.parametrize("attempts", [1, 2])
def test_no_contribution_beyond_those_that_the_study_allows(attempts):
    """An old folder: others hand back our votes and contributions of so many attempts, and seal one attempt more with us."""
    world, party = lone_party(attempts=attempts, absent=1)
    everyone = (0, 1, 2, 3)
    for attempt in range(1, attempts + 1):
        party.received(
            1, [vote(0, attempt, everyone)] if Key(ItemKind.VOTE, attempt, 0) not in party._held else [], 0.1
        )
        party.received(1, [signed(Key(ItemKind.CONTRIBUTION, attempt, 0), bytes(40))], 0.1)
    assert len(world.books[0].spent) == attempts
    one_more = attempts + 1
    party.received(1, [vote(u, one_more, everyone) for u in everyone], 0.2)
    assert party.attempt == one_more
    assert party._sealed[one_more] == everyone
    assert len(world.books[0].spent) == attempts
    assert f"all {attempts} attempts that the study allows are used up" in party.outcome.reason


def test_another_study_or_format_is_not_talked_to():
    future = Hello(b"s" * 32, "", format=98, newest=98)
    for hello, words in ((Hello(b"t" * 32, ""), "another study"), (future, "format 98")):
        world = World(graphs.complete(3))
        world.start(0)
        party = world.parties[0]
        party.linked(1, 0.0)
        party.received(1, [hello], 0.0)
        assert words in party.refusals[0][1]
        party.outbox()
        party.received(1, [vote(1, 1, (0, 1, 2))], 0.1)
        assert party.outbox() == []


def test_items_before_the_hello_are_ignored():
    world = World(graphs.complete(3))
    world.start(0)
    party = world.parties[0]
    party.linked(1, 0.0)
    party.received(1, [vote(1, 1, (0, 1, 2)), Announce(()), Done(1, b"")], 0.0)
    assert sum("before the Hello" in note for note in party.notes) == 3


def test_somebody_else_with_our_keys_stops_us():
    from netdp.errors import NetdpError

    _, party = lone_party(attempts=2, absent=1)
    with pytest.raises(NetdpError, match="its keys are in use elsewhere"):
        party.received(1, [vote(0, 1, (0, 1, 2))], 0.1)


def test_wrong_states_lead_to_flooding_and_the_right_sum():
    """A neighbour that sends wrong numbers while averaging is found out by the checksum; the sum comes by flooding."""
    world = World(graphs.ring(4), spread="average")

    def watch(u, to, messages):
        for i, m in enumerate(messages):
            if u == 1 and isinstance(m, Item) and m.key.kind == ItemKind.STATE and m.key.index == 3:
                messages[i] = Item(m.key, (np.frombuffer(m.body) * 1.7).tobytes())

    world.watch = watch
    everybody(world).run()
    world.check_answers(range(4))


def test_what_is_announced_and_does_not_come_is_asked_of_another():
    _, party = lone_party()
    key = Key(ItemKind.CONTRIBUTION, 1, 3)
    for liar in (1, 2):
        party.received(liar, [Announce((key,))], 0.0)
    assert party.outbox() == [(1, Pull((key,)))]
    party.tick(party.wake)
    assert party.outbox() == []
    later = party.terms.patience / 4
    assert party.wake <= later
    party.tick(later)
    assert party.outbox() == [(2, Pull((key,)))]
    party.lost(2, later)
    party.received(1, [Announce((key,))], later)  # nobody else has it: the first is asked again
    assert party.outbox() == [(1, Pull((key,)))]
