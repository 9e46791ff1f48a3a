"""Neighbours of different versions: they use the best format that both speak, or turn each other away and say why."""

import itertools
import sys
from pathlib import Path

import pytest

from netdp import graphs
from netdp.errors import InvalidValue
from netdp.peers import messages as versions
from netdp.peers import wire_pb2 as wire
from netdp.peers.messages import (
    NEWEST,
    OLDEST,
    REMARKS,
    Announce,
    Done,
    Hello,
    Item,
    ItemKind,
    Key,
    Remark,
    agreed,
    decode,
    encode,
)

sys.path.append(str(Path(__file__).parent))

from world import World

STUDY = b"s" * 32


def mixed(*formats, **settings):
    """A world on a ring whose parties speak these ranges."""
    made = World(graphs.ring(len(formats)), **settings)
    made.formats = formats
    return made


def talking(party, peer, formats, *messages):
    """Let a neighbour of a version say hello, and something more; what the party notes and whom it turns away."""
    party.linked(peer, 1.0)
    said = decode(encode([Hello(STUDY, "9.1", (), formats[0], formats[1])]))
    party.received(peer, [*said, *messages], 1.0)
    return party.notes, party.refusals


# ── which format ──


def test_both_ends_find_the_same_format_and_the_highest():
    for a, b, c, d in itertools.product(range(1, 5), repeat=4):
        if a > b or c > d:
            continue
        common = set(range(a, b + 1)) & set(range(c, d + 1))
        assert agreed((a, b), (c, d)) == agreed((c, d), (a, b)) == max(common, default=None)


def test_a_future_peer_that_still_speaks_ours_takes_part():
    """Parties of today and of two later versions, in one study."""
    world = mixed((2, 2), (2, 3), (2, 9), (2, 2), seed=3)
    for u in range(4):
        world.start(u)
    world.run()
    world.check_answers(range(4))
    found = {(u, v): link.format for u in range(4) for v, link in world.parties[u]._exchange.links.items()}
    assert found == {**found, (0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3}


def test_without_a_common_format_each_says_both_ranges_and_what_to_do():
    world = mixed((2, 2), (3, 4), (2, 4), (2, 4), seed=1)
    world.start(0)
    party = world.parties[0]
    notes, refusals = talking(party, 1, (3, 4))
    assert notes == []
    assert refusals == [
        (1, "it speaks formats 3 to 4 (netdp 9.1), we speak format 2: none in common; install a newer netdp here")
    ]
    assert 1 not in party._exchange.links
    party.refusals.clear()
    _, refusals = talking(party, 3, (1, 0))  # a Hello of format 1 had no range
    assert (
        "it speaks format 1 (netdp 9.1), we speak format 2: none in common; install a newer netdp there"
        in refusals[0][1]
    )


def test_nothing_is_contributed_to_somebody_who_was_turned_away():
    world = mixed((2, 2), (3, 4), (3, 4), (3, 4), seed=1, patience=1.0)
    for u in range(4):
        world.start(u)
    world.run(until=30.0)
    assert world.said == {}
    assert world.books[0].spent == []


def test_a_version_that_is_no_version_is_not_repeated():
    assert "netdp" not in versions.refusal((2, 2), (3, 3), "\x1b[31m evil").split("install")[0]


# ── what is unknown ──


def future(number, body=b"\x0a\x03abc"):
    """A frame with a message of a kind that this version does not have."""
    tag = number << 3 | 2
    varint = bytes([tag & 0x7F | 0x80, tag >> 7]) if tag > 127 else bytes([tag])
    message = varint + bytes([len(body)]) + body
    return b"\x0a" + bytes([len(message)]) + message


def test_remarks_are_read_as_such_and_everything_else_that_is_unknown_is_a_fault():
    assert decode(future(REMARKS)) == [Remark(REMARKS)]
    assert decode(future(REMARKS + 77) + encode([Done(1, b"x")])) == [Remark(REMARKS + 77), Done(1, b"x")]
    for number in (6, 60, REMARKS - 1):
        with pytest.raises(InvalidValue, match="of no known kind"):
            decode(future(number))
    frame = wire.Frame()
    frame.messages.add().item.key.kind = REMARKS + 2
    assert decode(frame.SerializeToString()) == [Remark(REMARKS + 2)]
    frame.messages[0].item.key.kind = 99
    with pytest.raises(InvalidValue, match="no netdp message"):
        decode(frame.SerializeToString())


def test_unknown_keys_in_a_hello_are_left_out_and_elsewhere_refused():
    frame = wire.Frame()
    hello = frame.messages.add().hello
    hello.format, hello.newest, hello.study = 2, 3, STUDY
    for kind in (99, 1, REMARKS + 1):
        hello.have.add(kind=kind, attempt=1, author=2)
    (said,) = decode(frame.SerializeToString())
    assert (said.have, said.format, said.newest) == ((Key(ItemKind.VOTE, 1, 2),), 2, 3)
    frame = wire.Frame()
    frame.messages.add().announce.keys.add(kind=99, attempt=1, author=2)
    with pytest.raises(InvalidValue):
        decode(frame.SerializeToString())


def test_unknown_fields_are_neither_kept_nor_passed_on():
    item = Item(Key(ItemKind.VOTE, 1, 2), b"body", b"signature")
    frame = bytearray(encode([item]))
    extra = b"\xa2\x06\x04more"  # field 100 of the item
    frame[1] += len(extra)  # the message
    frame[3] += len(extra)  # the item
    assert decode(bytes(frame) + extra) == [item]
    assert b"more" not in encode(decode(bytes(frame) + extra))


def test_a_remark_is_ignored_only_where_the_format_says_so():
    for formats, ignored in (((2, 2), True), ((1, 1), False)):
        world = mixed(formats, formats, formats, seed=1)
        world.start(0)
        notes, refusals = talking(world.parties[0], 1, formats, *decode(future(REMARKS)))
        assert refusals == []
        assert (notes == []) is ignored, notes
        assert world.parties[0]._exchange.is_greeted(1)
        assert ignored or "of kind 128, which this format does not have" in notes[0]


def test_a_flood_of_remarks_costs_no_memory_and_stops_nothing():
    world = mixed((2, 2), (2, 2), (2, 2), seed=1)
    world.start(0)
    party = world.parties[0]
    held = len(party._held)
    talking(party, 1, (2, 2))
    party.received(1, [Remark(REMARKS + k % 50) for k in range(10_000)], 2.0)
    assert len(party._held) == held
    assert len(party.notes) == 0
    with pytest.raises(TypeError, match="remark"):
        encode([Remark(REMARKS)])  # this version makes none


def test_this_version_says_which_formats_it_speaks():
    world = mixed((2, 2), (2, 2), (2, 2))
    world.start(0)
    world.parties[0].linked(1, 1.0)
    (hello,) = [m for _, m in world.parties[0].outbox() if isinstance(m, Hello)]
    assert (hello.format, hello.newest) == (2, 2)
    assert 1 <= OLDEST <= NEWEST
    assert decode(encode([hello, Announce(())]))[0] == hello
