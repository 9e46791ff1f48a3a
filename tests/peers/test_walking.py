"""One user of a shuffle among neighbours who stall, invent reports, or are out of reach: what it decides, once and for all."""

import hashlib
from types import SimpleNamespace

import pytest

from netdp import graphs
from netdp.errors import NetdpError
from netdp.families.shuffle.peer import Server
from netdp.families.shuffle.peer_walk import KEY, DirectWalk, ReportWalk
from netdp.families.shuffle.reports import cuts_bytes, take_cuts
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.spread import Moment

SIZE, PATIENCE = 32, 40.0


def report(*text):
    return hashlib.sha256(repr(text).encode()).digest()


class Desk(SimpleNamespace):
    """What a party has written down; another `DirectWalk` at the same desk is its next life."""

    def __init__(self, me):
        super().__init__(me=me, registers={})

    def written(self, attempt):
        return report("key", self.me)[:KEY] + report("own", self.me) + report("dummy", self.me)

    def name(self, u):
        return f"p{u}"

    def noted(self, attempt, place):
        return self.registers.get((attempt, place))

    def once(self, attempt, place, body):
        return self.registers.setdefault((attempt, place), body)


def user(desk, rounds=2, reporting="all", n=4):
    shape = SimpleNamespace(size=SIZE, dimension=1)
    walk = ReportWalk(graphs.complete(n), tuple(range(n)), n, rounds, shape, PATIENCE, reporting)
    return DirectWalk(walk, 1, tuple(range(n)), desk)


def bundle(author, index, reports=(), cuts=()):
    key = Key(ItemKind.BUNDLE, 1, author, index)
    return key, Item(key, cuts_bytes(cuts) + b"".join(sorted(reports)))


def everybody(now, *without, n=4):
    return Moment(now, frozenset(range(n + 1)) - set(without))


def last_hand(moves, rounds=2):
    """(cuts, reports) of what is handed over."""
    body = next(item.body for peer, item in moves.addressed if item.key.index == rounds + 1)
    cuts, rest = take_cuts(body, 4, rounds)
    return cuts, {rest[at : at + SIZE] for at in range(0, len(rest), SIZE)}


def test_a_round_goes_on_when_every_bundle_is_there():
    me = user(Desk(0))
    first = me.advance({}, everybody(0.0))
    assert [(peer, item.key.index) for peer, item in first.addressed] == [(1, 1), (2, 1), (3, 1)]
    held = dict([bundle(1, 1, [report("a")]), bundle(2, 1)])
    waiting = me.advance(held, everybody(1.0))
    assert not waiting.addressed
    assert waiting.waits
    assert me.wake <= 1.0 + PATIENCE
    held |= dict([bundle(3, 1, [report("b")])])
    second = me.advance(held, everybody(2.0))
    sent = b"".join(item.body[4:] for _, item in second.addressed)
    assert {sent[at : at + SIZE] for at in range(0, len(sent), SIZE)} == {report("a"), report("b")}


def test_who_is_out_of_reach_is_given_up_after_half_the_patience_and_not_before():
    me = user(Desk(0))
    held = dict([bundle(1, 1), bundle(2, 1, [report("a")])])
    me.advance(held, everybody(0.0))
    me.advance(held, everybody(1.0, 3))
    assert not me.advance(held, everybody(1.0 + 0.49 * PATIENCE, 3)).addressed
    moves = me.advance(held, everybody(0.51 * PATIENCE + 1.0, 3))
    assert [item.key.index for _, item in moves.addressed] == [2, 2, 2]
    assert all(take_cuts(item.body, 4, 2)[0] == {(3, 0, 1)} for _, item in moves.addressed)  # and all are told
    assert next(item.body for peer, item in moves.addressed if peer == 3)[16:] == b""  # nothing goes there any more
    assert moves.notes == ["round 1 of 2 and all later ones go on without p3"]
    assert me.absent == {3}


def test_a_link_that_comes_back_in_time_is_waited_for():
    me = user(Desk(0))
    held = dict([bundle(1, 1), bundle(2, 1)])
    for now in range(0, int(3 * PATIENCE), 10):
        moment = everybody(float(now), 3) if (now // 10) % 2 else everybody(float(now))
        me.advance(held, moment)
    assert me.absent == set()


def test_who_can_be_reached_but_sends_nothing_is_given_up_in_the_end():
    me = user(Desk(0))
    held = dict([bundle(1, 1), bundle(2, 1)])
    me.advance(held, everybody(0.0))
    assert not me.advance(held, everybody(3.9 * PATIENCE)).addressed
    assert me.advance(held, everybody(4.1 * PATIENCE)).addressed
    assert me.absent == {3}


def test_what_was_decided_holds_in_the_next_life_even_if_the_bundle_has_come_since():
    desk = Desk(0)
    me = user(desk)
    held = dict([bundle(1, 1), bundle(2, 1, [report("a")])])
    me.advance(held, everybody(0.0))
    before = me.advance(held, everybody(5 * PATIENCE))
    late = held | dict([bundle(3, 1, [report("late")])])
    after = user(desk).advance(late, everybody(6 * PATIENCE))
    said = {(peer, item.key): item.body for peer, item in after.addressed}
    assert {(peer, item.key): item.body for peer, item in before.addressed}.items() <= said.items()
    # and in every later round, too
    again = late | dict([bundle(1, 2), bundle(2, 2), bundle(3, 2, [report("later")])])
    cuts, hand = last_hand(user(desk).advance(again, everybody(7 * PATIENCE)))
    assert cuts == {(3, 0, 1)}
    assert not hand & {report("late"), report("later")}


def test_a_folder_is_enough_to_go_on_without_the_neighbours():
    desk = Desk(0)
    held = dict([bundle(v, r, [report(v, r)]) for v in (1, 2, 3) for r in (1, 2)])
    whole = user(desk).advance(held, everybody(0.0))
    again = user(desk).advance({}, everybody(1.0))  # they need not send it all once more
    assert last_hand(again) == last_hand(whole)
    assert {(p, i.key, i.body) for p, i in again.addressed} == {(p, i.key, i.body) for p, i in whole.addressed}


def test_cuts_of_others_are_passed_on_and_do_not_bind_us():
    me = user(Desk(0))
    held = dict([bundle(1, 1, cuts={(2, 1, 1)}), bundle(2, 1, [report("a")]), bundle(3, 1)])
    moves = me.advance(held, everybody(0.0))
    assert all(take_cuts(item.body, 4, 2)[0] == {(2, 1, 1)} for _, item in moves.addressed if item.key.index == 2)
    held |= dict([bundle(v, 2) for v in (1, 3)] + [bundle(2, 2, [report("b")])])
    cuts, hand = last_hand(me.advance(held, everybody(1.0)))
    assert cuts == {(2, 1, 1)}
    assert report("b") in hand


def test_invented_reports_fill_no_hand():
    """A neighbour that sends more reports than there are parties does not make ours too long; which stay is our secret."""
    kept = set()
    for who in range(3):
        desk = Desk(0)
        desk.written = lambda attempt, who=who: report("key", who) + report("own") + report("dummy")
        me = user(desk, rounds=1)
        many = [report("invented", k) for k in range(40)]
        moves = me.advance(dict([bundle(1, 1, many), bundle(2, 1), bundle(3, 1)]), everybody(0.0))
        _, hand = last_hand(moves, rounds=1)
        assert len(hand) == 4
        assert "somebody invents reports" in moves.notes[0]
        kept.add(frozenset(hand))
    assert len(kept) == 3


@pytest.mark.parametrize("empty", [True, False])
def test_a_single_report_is_one_of_the_hand_or_the_dummy(empty):
    me = user(Desk(0), rounds=1, reporting="single")
    coming = [] if empty else [report("a"), report("b")]
    _, hand = last_hand(me.advance(dict([bundle(1, 1, coming), bundle(2, 1), bundle(3, 1)]), everybody(0.0)), rounds=1)
    assert len(hand) == 1
    assert hand <= ({report("dummy", 0)} if empty else {report("a"), report("b")})


def test_a_damaged_folder_stops_the_party():
    desk = Desk(0)
    desk.registers[1, b"hand" + (1).to_bytes(4, "big")] = b"nonsense"
    with pytest.raises(NetdpError, match="the folder is damaged"):
        user(desk).advance({}, everybody(0.0))


def test_a_curator_that_is_gone_is_not_waited_for_for_ever():
    me = user(Desk(0), rounds=1)
    held = dict([bundle(v, 1) for v in (1, 2, 3)])
    assert me.advance(held, everybody(0.0)).waits
    assert me.advance(held, everybody(1.0, 4)).waits
    assert me.advance(held, everybody(0.5 * PATIENCE, 4)).waits
    assert not me.advance(held, everybody(0.5 * PATIENCE + 2.0, 4)).waits


def test_a_server_that_comes_back_passes_on_what_it_had_passed_on():
    """Who was in a round and is gone by now is not called lost: its envelopes are somewhere, and losses are computed from cuts."""
    shape = SimpleNamespace(size=SIZE, dimension=1)
    n, rounds = 4, 2
    walk = ReportWalk(graphs.complete(n), tuple(range(n)), n, rounds, shape, PATIENCE, "all", cover=1)
    desk = Desk(n)
    envelope = walk.envelope
    held = {
        (key := Key(ItemKind.BUNDLE, 1, u, 1)): Item(key, b"".join(report(u, v)[:1] * envelope for v in range(3)))
        for u in range(n)
    }
    first = Server(walk, 1, tuple(range(n)), desk)
    passed = first.advance(held, everybody(0.0)).addressed
    assert [peer for peer, _ in passed] == [0, 1, 2, 3]
    again = Server(walk, 1, tuple(range(n)), desk)
    assert again.advance({}, everybody(9 * PATIENCE, 2)).addressed == passed
    assert not again._cuts_seen()
    desk.registers = {place: body[:-1] for place, body in desk.registers.items()}
    with pytest.raises(NetdpError, match="damaged"):
        Server(walk, 1, tuple(range(n)), desk).advance({}, everybody(0.0))
