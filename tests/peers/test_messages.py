"""Frames: what is said is what arrives, and nothing else is taken for a message."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.peers import wire_pb2 as wire
from netdp.peers.messages import (
    Announce,
    Done,
    Held,
    Hello,
    Item,
    ItemKind,
    Key,
    Pull,
    decode,
    encode,
    roster_body,
    roster_digest,
    roster_of,
    signed_bytes,
)

numbers = st.integers(0, 2**32 - 1)
keys = st.builds(Key, st.sampled_from(ItemKind), numbers, numbers, numbers)
key_lists = st.lists(keys, max_size=5).map(tuple)
proofs = st.lists(st.builds(Held, keys, st.binary(max_size=32), st.binary(max_size=64)), max_size=3).map(tuple)
messages = st.one_of(
    st.builds(Item, keys, st.binary(max_size=200), st.binary(max_size=64), numbers),
    st.builds(Hello, st.binary(max_size=32), st.text(max_size=9), key_lists, numbers, numbers, proofs),
    st.builds(Announce, key_lists),
    st.builds(Pull, key_lists),
    st.builds(Done, numbers, st.binary(max_size=32)),
)


@given(st.lists(messages, max_size=6))
def test_what_is_said_arrives(said):
    assert decode(encode(said)) == said


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_empty_of_surprises(frame):
    """No other error than ours, whatever the bytes."""
    with contextlib.suppress(InvalidValue):
        assert all(isinstance(message, Item | Hello | Announce | Pull | Done) for message in decode(frame))


def test_unknown_kinds_are_refused():
    frame = wire.Frame()
    frame.messages.add().item.key.kind = 0
    with pytest.raises(InvalidValue, match="no netdp message"):
        decode(frame.SerializeToString())
    frame = wire.Frame()
    frame.messages.add()
    with pytest.raises(InvalidValue, match="no known kind"):
        decode(frame.SerializeToString())


def test_kinds_are_those_of_the_wire():
    assert {kind.name: int(kind) for kind in ItemKind} == {
        name: number for name, number in wire.Kind.items() if name != "NONE"
    }


@given(st.tuples(keys, st.binary(max_size=40)), st.tuples(keys, st.binary(max_size=40)))
def test_no_two_items_have_the_same_signed_bytes(one, other):
    study = bytes(32)
    if one != other:
        assert signed_bytes(study, *one) != signed_bytes(study, *other)
    assert signed_bytes(study, *one) != signed_bytes(b"x" * 32, *one)


def test_rosters():
    assert roster_of(roster_body(())) == ()
    assert roster_digest((0, 1, 2)) != roster_digest((0, 1, 3))
    for body in (b"abc", roster_body((1, 1)), roster_body((2, 1))):
        with pytest.raises(InvalidValue):
            roster_of(body)
