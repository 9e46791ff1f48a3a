"""What is held is read as it comes, once; what is once known is not looked at, checked or sent again."""

import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import trials

from netdp.peers.exchange import Exchange, Items
from netdp.peers.messages import Item, ItemKind, Key
from netdp.peers.recovery import closing, opening
from netdp.peers.recovery.dealing import Dealing

ROW = "masked-sum, one attempt"


def test_a_dealing_is_checked_once_by_everybody(monkeypatch):
    """The opening and the closing of an attempt share what they know of its dealings."""
    seen = Counter()
    check = Dealing.check

    def counted(dealing, context):
        seen[context, dealing.dealer] += 1
        check(dealing, context)

    monkeypatch.setattr(Dealing, "check", counted)
    trial, problem = trials.attempt(ROW, 1, calm=True)
    assert problem is None
    assert len(trial.told) == trial.n
    assert set(seen.values()) == {trial.n}
    assert len(seen) == trial.n


def test_an_item_is_read_once_by_everybody(monkeypatch):
    """However often a party wakes up: else messages of n parties cost n² steps and more."""
    read, wakes = Counter(), Counter()
    for room in (opening.Opening, closing.Closing):
        hear, advance = room._hear, room.advance

        def counted(self, item, hear=hear):
            read[id(self), item.key] += 1
            hear(self, item)

        def counting(self, *arguments, advance=advance):
            wakes[id(self)] += 1
            return advance(self, *arguments)

        monkeypatch.setattr(room, "_hear", counted)
        monkeypatch.setattr(room, "advance", counting)
    _, problem = trials.attempt(ROW, 2, calm=True)
    assert problem is None
    assert max(wakes.values()) > 5
    assert max(read.values()) <= 2  # what is said is read at once, and again where it is held


def test_items_are_listed_in_the_order_in_which_they_came():
    held = Items()
    vote, keys, step = (Item(Key(kind, 1, 3), b"x") for kind in (ItemKind.VOTE, ItemKind.KEYS, ItemKind.STEP))
    for item in (keys, step, vote, Item(Key(ItemKind.KEYS, 2, 3), b"y")):
        held.keep(item)
    assert held.since(1, 0) == [keys, vote]
    assert held.since(1, 1) == [vote]
    assert held.since(1, 2) == held.since(7, 0) == []
    assert len(held) == 4


def test_what_a_neighbour_has_sent_is_not_sent_to_it():
    """But what it holds under the same key and is something else still is: two signatures prove who lies."""
    exchange = Exchange(lambda key: True, 1.0)
    exchange.link(5)
    prepared, other, paid = (
        Item(Key(kind, 1, 3, 1), body)
        for kind, body in ((ItemKind.PREPARE, b"x"), (ItemKind.PREPARE, b"y"), (ItemKind.CONTRIBUTION, b"z"))
    )
    exchange.held.keep(prepared)
    exchange.held.keep(paid)
    assert not exchange.is_superfluous(5, prepared)
    exchange.links[5].same |= {prepared.key, paid.key}
    assert exchange.is_superfluous(5, prepared)
    assert not exchange.is_superfluous(5, other)
    assert not exchange.is_superfluous(5, paid)  # who got a contribution from whom is in the transcript
    assert not exchange.is_superfluous(6, prepared)
    exchange.unlink(5, 0.0)
    exchange.link(5)  # another process, perhaps
    assert not exchange.is_superfluous(5, prepared)
