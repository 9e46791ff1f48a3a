"""A neighbour with a valid certificate that sends nonsense: it is noted and ignored, nobody dies, nothing grows.

Real peers on real links in one process; party 1 is honest in all it must do, and says much more besides.
"""

import asyncio
import contextlib
import hashlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import NetdpError
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
    encode,
    roster_body,
    roster_digest,
    signed_bytes,
)
from netdp.peers.peer import largest_frame, prepare

sys.path.append(str(Path(__file__).parent))

import crew


class Company:
    """All parties of a crew in this process."""

    def __init__(self, one, *, missing=()):
        self.one, self.notes = one, []
        self.peers = {
            u: prepare(one.home(u), one.path, one.data[f"p{u}"], report=lambda event, u=u: self._hear(u, event))
            for u in range(one.study.n)
            if u not in missing
        }

    def _hear(self, u, event):
        if event["event"] in ("note", "refused"):
            self.notes.append((u, event.get("text") or event.get("reason")))

    async def run(self, *others, who=None):
        """Until everybody, or all of `who`, have an outcome."""
        waiting = [self.peers[u] for u in (self.peers if who is None else who)]
        tasks = [asyncio.ensure_future(peer.run()) for peer in self.peers.values()]
        mischief = [asyncio.ensure_future(other) for other in others]
        try:
            async with asyncio.timeout(300):
                while any(peer._outcome is None for peer in waiting):
                    for task in tasks:
                        if task.done():
                            task.result()  # a peer that died
                    await asyncio.sleep(0.01)
            return {u: peer._outcome for u, peer in self.peers.items()}
        finally:
            for task in mischief:
                task.cancel()
            for peer in self.peers.values():  # let everybody leave in order, without waiting for each other
                peer.party._leave_by = 0.0
                if peer._outcome is None:
                    peer._failure = RuntimeError("the test is over")
                peer._changed.set()
            await asyncio.gather(*tasks, *mischief, return_exceptions=True)
            for peer in self.peers.values():
                peer.store.close()


def signed(peer, key, body):
    return Item(key, body, peer.identity.sign(signed_bytes(peer.study.hash, key, body)))


def nonsense(liar):
    """Frames that no honest party sends; each alone must do no harm."""
    study, me, n = liar.study.hash, liar.me, liar.study.n
    far = tuple(Key(ItemKind.CONTRIBUTION, attempt, author) for attempt in range(50, 60) for author in range(9, 500))
    states = tuple(Key(ItemKind.STATE, 1, me, index) for index in range(20_000))
    many = wire.Frame()
    for _ in range(50_000):
        many.messages.add()
    wrong_kind = wire.Frame()
    wrong_kind.messages.add().item.key.kind = 6
    wrong_kind = wrong_kind.SerializeToString().replace(b"\x08\x06", b"\x08\x63")
    everything = tuple(
        Key(kind, attempt, author) for kind in list(ItemKind)[:4] for attempt in range(1, 9) for author in range(n)
    )
    yield from [
        b"\xff" * 1000,
        b"",
        np.random.default_rng(1).bytes(5000),
        many.SerializeToString(),
        wrong_kind,
        encode([Hello(study, "again", far)] + [Hello(study, "again")] * 300),
        encode([Hello(b"another study".ljust(32), "other", ())])[:-1],
        encode([Announce(far + states)]),
        encode([Pull(far + states)] + [Pull(everything)] * 200),
        encode([Done(1, b"wrong digest"), Done(77, b"")]),
        encode([Item(Key(ItemKind.VOTE, 1, 0), roster_body(range(n)), b"forged")]),
        encode([signed(liar, Key(ItemKind.VOTE, 1, me), roster_body((me,)))]),
        encode([signed(liar, Key(ItemKind.VOTE, 2, me), roster_body(range(n + 3)))]),
        encode([signed(liar, Key(ItemKind.VOTE, 2, me), b"odd")]),
        encode([signed(liar, Key(ItemKind.VOTE, 2, me), b"")]),
        encode([signed(liar, Key(ItemKind.CONTRIBUTION, 999, me), b"x" * 36)]),
        encode([signed(liar, Key(ItemKind.CONTRIBUTION, 2, me), b"x" * 500_000)]),
        encode([signed(liar, Key(ItemKind.TOTAL, 1, me), b"x")]),
        encode([signed(liar, Key(ItemKind.FALLBACK, 7, me), b"")]),
        encode([Item(Key(ItemKind.STATE, 1, me, index), bytes(8)) for index in range(5000)]),
        encode([Item(Key(ItemKind.STATE, 1, 0, 1), bytes(8)), Item(Key(ItemKind.TOKEN, 1, me, 1), bytes(8))]),
        encode([Item(Key(ItemKind.STATE, 5, me, 3), np.array([np.nan]).tobytes())]),
    ]


@pytest.mark.parametrize("spread", ["flood", "average"])
def test_nonsense_changes_nothing(tmp_path, spread):
    """Before, while and after the others work; whatever is held or waiting stays as small as the study makes it."""
    one = crew.Crew(tmp_path, 4, "complete:4", spread=spread, gather=100.0, patience=100.0)
    company = Company(one)
    liar, victim = company.peers[1], company.peers[0]
    sent = 0

    async def talk():
        nonlocal sent
        for frame in [*nonsense(liar), *nonsense(liar)]:
            for to in (0, 2, 3):
                while True:
                    try:
                        await liar._transport.send(to, frame)
                        break
                    except NetdpError:  # no link yet
                        await asyncio.sleep(0.001)
                sent += 1

    waited = []

    async def watch():
        while True:
            waited.append(max((len(link.waiting) for link in victim._links.values()), default=0))
            await asyncio.sleep(0.005)

    honest = (0, 2, 3)  # the liar itself may never get what it says it has
    told = asyncio.run(company.run(talk(), watch(), who=honest))
    assert [(told[u]["total"], told[u]["digest"]) for u in honest] == [one.expected(1, range(4))] * 3
    assert sent > 10
    about = [text for u, text in company.notes if u == 0]
    assert any("ignored" in text for text in about)
    assert len(about) <= 30
    bound = 4 * 4 * (one.study.privacy.attempts + 8)
    assert len(victim.party._held) <= bound + 3 * 200
    assert len(victim.party._exchange._offers) <= bound
    assert max(waited) <= 4 * bound
    one.check_files()


def test_too_large_a_frame_breaks_the_link_and_nothing_else(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3", patience=20.0)
    company = Company(one)
    liar = company.peers[1]
    largest = largest_frame(one.study)
    assert largest < 1 << 23
    object.__setattr__(liar._transport.limits, "frame", 1 << 26)  # its own end does not object
    tried = []

    async def talk():
        while not tried:
            try:
                await liar._transport.send(0, bytes(largest + 100_000))
                tried.append(0)
            except NetdpError:
                await asyncio.sleep(0.001)

    told = asyncio.run(company.run(talk()))
    assert tried
    assert {told[u]["digest"] for u in range(3)} == {one.expected(1, range(3))[1]}


def lie(monkeypatch, liar, kind, body):
    """Let a party say `body(to, item)` instead of what it should, in all items of a kind that are its own."""
    honest = liar.party._exchange.say

    def say(peer, item):
        if item.key.kind == kind and item.key.author == liar.me:
            item = signed(liar, item.key, body(peer, item))
        honest(peer, item)

    monkeypatch.setattr(liar.party._exchange, "say", say)


@pytest.mark.parametrize("wrong", [lambda body: body[:-1], lambda body: body + b"xxxx", lambda body: b""])
def test_an_illegible_contribution_counts_as_none(tmp_path, wrong, monkeypatch):
    """Signed, but no numbers of this study: its author is left out of the next attempt, and nobody dies of it."""
    one, clock = crew.Crew(tmp_path, 4, "complete:4", attempts=2, absent=1, patience=60.0), crew.Pushed()
    monkeypatch.setattr(crew.peers, "RealClock", lambda: clock)
    company = Company(one)
    lie(monkeypatch, company.peers[1], ItemKind.CONTRIBUTION, lambda to, item: wrong(item.body))
    honest = {Key(ItemKind.CONTRIBUTION, 1, u) for u in (0, 2, 3)}

    async def wait_in_vain():
        """Until all honest contributions are everywhere: then there is nothing to wait for but patience."""
        while not all(honest <= company.peers[u].party._held.keys() for u in (0, 2, 3)):
            await asyncio.sleep(0.01)
        clock.push(one.study.timing.patience)

    told = asyncio.run(company.run(wait_in_vain()))
    assert all(told[u]["attempt"] == 2 and told[u]["roster"] == ["p0", "p2", "p3"] for u in (0, 2, 3))
    assert {told[u]["digest"] for u in (0, 2, 3)} == {one.expected(2, (0, 2, 3))[1]}
    assert [one.spent(u) for u in (0, 2, 3)] == [[(1, 4), (2, 3)]] * 3


def test_wrong_states_are_noticed_and_the_sum_is_exact(tmp_path, monkeypatch):
    """A neighbour that averages something else: the checksum fails, contributions are passed on, the answer is the same."""
    one = crew.Crew(tmp_path, 4, "complete:4", spread="average", patience=20.0)
    company = Company(one)
    wrong = [np.nan, 0.0, np.inf, 1e300]
    lie(monkeypatch, company.peers[1], ItemKind.STATE, lambda to, item: np.array([wrong[to]]).tobytes())
    told = asyncio.run(company.run())
    assert {told[u]["digest"] for u in (0, 2, 3)} == {one.expected(1, range(4))[1]}
    assert any("averaging is stuck" in text for _, text in company.notes)


def test_a_second_contribution_of_a_party_is_refused(tmp_path):
    """The first one stands, with a note, however often either is said again."""
    one = crew.Crew(tmp_path, 3, "complete:3", patience=20.0)
    company = Company(one)
    liar, victim = company.peers[1], company.peers[0]

    async def talk():
        while (first := victim.party._held.get(Key(ItemKind.CONTRIBUTION, 1, 1))) is None:
            await asyncio.sleep(0.001)
        other = signed(liar, first.key, first.body[:-1] + bytes([first.body[-1] ^ 1]))
        messages = [first, first, other, other, first]
        victim.linked(1)  # as if the link were new: the answer may be there before we have said anything
        await victim.received(1, encode([Hello(one.study.hash, "", ()), *messages]))
        assert victim.party._held[first.key].body == first.body

    told = asyncio.run(both(company, talk))
    assert {told[u]["digest"] for u in range(3)} == {one.expected(1, range(3))[1]}
    assert any("a second contribution of p1" in text for u, text in company.notes if u == 0)
    assert one.spent(0) == [(1, 3)]


async def both(company, talk):
    told, _ = await asyncio.gather(company.run(), talk())
    return told


# ── what neighbours hold in our name ──────────────────────────────────────────────────────────────────────────────────

_spec = importlib.util.spec_from_file_location("world", Path(__file__).parent / "world.py")
_world = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_world)


def test_nothing_is_contributed_where_a_neighbour_holds_our_contribution():
    """A folder from an old backup: one neighbour shows at once that it holds ours, and is slow to send it."""
    world = _world.World(graphs.complete(3))
    world.start(0)
    party, book = world.parties[0], world.books[0]
    votes = [_world.signed(Key(ItemKind.VOTE, 1, u), roster_body((0, 1, 2))) for u in (1, 2)]
    mine = Key(ItemKind.CONTRIBUTION, 1, 0)
    study = party.terms.study
    for peer in (1, 2):
        party.linked(peer, 0.1)
    body = roster_digest((0, 1, 2)) + b"what"
    party.received(1, [Hello(study, "", (mine,), proofs=(Held.of(_world.signed(mine, body)),))], 0.2)
    party.received(2, [Hello(study, ""), *votes], 0.3)
    party.tick(10.0)  # all neighbours have greeted, the roster is sealed, the grace is over
    assert book.spent == []
    assert not party.accused
    party.received(1, [_world.signed(mine, body)], 11.0)
    assert book.spent == [(1, (0, 1, 2))]
    assert book.items[mine].body == body


@pytest.mark.parametrize("sealed", [True, False])
def test_a_contribution_that_never_comes_back_counts_as_one_of_ours(sealed):
    """An old folder whose only link shows its contribution to attempt 1 and keeps it: no other attempt gets one, and it is said."""
    everybody = tuple(range(5))
    world = _world.World(graphs.complete(5), attempts=2, absent=2)
    world.start(0)
    party, book = world.parties[0], world.books[0]
    mine = _world.signed(Key(ItemKind.CONTRIBUTION, 1, 0), roster_digest(everybody) + b"what was sent before")

    def others_vote(attempt, roster, now):
        said = [_world.signed(Key(ItemKind.VOTE, attempt, u), roster_body(roster)) for u in roster if u]
        party.received(1, said, now)

    party.linked(1, 0.0)
    party.received(1, [Hello(party.terms.study, "", (mine.key,), proofs=(Held.of(mine),))], 0.1)
    assert [note.code for note in party.notes] == ["older-folder"]
    others_vote(1, everybody if sealed else everybody[:4], 0.2)
    for attempt, roster in ((2, everybody[:4]), (3, everybody[:3])):
        party.tick(now := party.deadline + 1)
        others_vote(attempt, roster, now)
    assert book.spent == []
    assert max(key.attempt for key in book.items) == 1  # no further vote
    assert party.outcome.reason.code == "older-folder"
    assert "netdp ledger admit" in party.outcome.reason
    assert party.outcome.contributed == 1


@pytest.mark.parametrize("lie", ["nothing", "forged", "of another", "of another key"])
def test_who_only_says_that_it_holds_our_contribution_is_not_believed(lie):
    """No proof, a forged one, somebody else's, one of another key: named once, and all goes on."""
    world = _world.World(graphs.complete(3))
    world.start(0)
    party = world.parties[0]
    mine, body = Key(ItemKind.CONTRIBUTION, 1, 0), roster_digest((0, 1, 2)) + b"what"
    theirs = Held.of(_world.signed(Key(ItemKind.CONTRIBUTION, 1, 1), body))
    proofs = {
        "nothing": (),
        "forged": (Held(mine, hashlib.sha256(body).digest(), bytes(32)),) * 1000,
        "of another": (theirs,),
        "of another key": (Held(mine, theirs.digest, theirs.signature),),
    }[lie]
    for peer, said in ((1, Hello(party.terms.study, "", (mine,), proofs=proofs)), (2, Hello(party.terms.study, ""))):
        party.linked(peer, 0.1)
        vote = _world.signed(Key(ItemKind.VOTE, 1, peer), roster_body((0, 1, 2)))
        party.received(peer, [said, vote], 0.2)
    assert world.books[0].spent == [(1, (0, 1, 2))]
    ((peer, said),) = party.accused
    assert (peer, said.code) == (1, "unproved-claim")
    assert "1 says that it holds contribution 0 of ours in attempt 1" in said


def test_our_own_signature_under_something_else_stops_the_peer():
    """The proof alone shows that the keys are in use elsewhere: no need to see the body."""
    world = _world.World(graphs.complete(3))
    world.start(0)
    party, mine = world.parties[0], Key(ItemKind.CONTRIBUTION, 1, 0)
    for peer in (1, 2):
        party.linked(peer, 0.1)
        vote = _world.signed(Key(ItemKind.VOTE, 1, peer), roster_body((0, 1, 2)))
        party.received(peer, [Hello(party.terms.study, ""), vote], 0.2)
    same, other = (Held.of(item) for item in (party._held[mine], _world.signed(mine, b"another")))
    for shown, stops in ((same, False), (other, True)):
        party.lost(1, 0.3)
        party.linked(1, 0.4)
        with pytest.raises(NetdpError, match="in use elsewhere") if stops else contextlib.nullcontext():
            party.received(1, [Hello(party.terms.study, "", (mine,), proofs=(shown,))], 0.5)
    assert not party.accused


def test_without_such_a_claim_it_is_contributed():
    world = _world.World(graphs.complete(3))
    world.start(0)
    party = world.parties[0]
    for peer in (1, 2):
        party.linked(peer, 0.1)
        vote = _world.signed(Key(ItemKind.VOTE, 1, peer), roster_body((0, 1, 2)))
        party.received(peer, [Hello(party.terms.study, ""), vote], 0.2)
    assert world.books[0].spent == [(1, (0, 1, 2))]
