"""Parties that break the rules on purpose, in virtual time: what each trick comes to, as docs/threat-model.md says.

Beside `test_hostile.py` (nonsense over real links) and `test_fuzz.py` (a hundred thousand mutated messages).
"""

import asyncio
import contextlib
import copy
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.peers import party as parties
from netdp.peers.exchange import Reason, proves
from netdp.peers.kinds import RUNNING
from netdp.peers.messages import (
    Announce,
    Done,
    Hello,
    Item,
    ItemKind,
    Key,
    encode,
    roster_body,
    roster_of,
    signed_bytes,
)

sys.path.append(str(Path(__file__).parent))

import matrix
import mutants
import trials

LIAR, VICTIM = 1, 4


def signed(trial, key, body, study=None):
    """An item signed by its author, whoever that is."""
    message = signed_bytes(trial.study.hash if study is None else study, key, body)
    return Item(key, body, trial.people[key.author].sign(message))


@contextlib.contextmanager
def alone(row):
    """A party whose neighbours have all greeted it and voted: an attempt has begun; (trial, party)."""
    trial = trials.Trial(row, 0, tolerant=False, calm=True)
    try:
        trial.start(VICTIM)
        party, everybody = trial.parties[VICTIM], tuple(range(trial.n))
        votes = [signed(trial, Key(ItemKind.VOTE, 1, v), roster_body(everybody)) for v in everybody if v != VICTIM]
        for v in trial.neighbours[VICTIM]:
            party.linked(v, 0.1)
            party.received(v, [Hello(trial.study.hash, "")], 0.1)
        for v in trial.neighbours[VICTIM]:
            party.received(v, votes, 0.2)
        party.outbox()
        yield trial, party
    finally:
        trial.close()


# ── replay ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", matrix.protocols())
def test_nothing_can_be_replayed(row):
    """What was signed for another study, or for another attempt, is signed for nothing else; steps belong to one link."""
    with alone(row) as (trial, party):
        sender = trial.neighbours[VICTIM][0]
        for key in (Key(ItemKind.VOTE, 2, 0), Key(ItemKind.CONTRIBUTION, 1, 0), Key(ItemKind.FALLBACK, 1, 0)):
            fit = {ItemKind.VOTE: roster_body(range(trial.n)), ItemKind.FALLBACK: b""}.get(key.kind)
            if fit is None:
                fit = bytes(trial.study.running.longest()[ItemKind.CONTRIBUTION])
            old_study = signed(trial, key, fit, study=b"another study".ljust(32))
            old_attempt = Item(key, fit, signed(trial, key._replace(attempt=3), fit).signature)
            other_kind = Item(key, fit, signed(trial, key._replace(kind=ItemKind.TOTAL), fit).signature)
            before = party.rejections[Reason.SIGNATURE]
            party.received(sender, [old_study, old_attempt, other_kind], 0.3)
            assert party.rejections[Reason.SIGNATURE] == before + 3, (key, party.rejections, party.notes)
            assert key not in party._held or party._held[key].author == VICTIM
        other = next((v for v in range(trial.n) if v not in (VICTIM, sender)), 0)
        step = min(1, trial.study.running.most_rounds())
        for kind in (ItemKind.STATE, ItemKind.TOKEN, ItemKind.BUNDLE, ItemKind.ACCEPT):
            long = trial.study.running.longest().get(kind)
            item = Item(Key(kind, 1, other, step), bytes(long or 0))
            if long is not None and trial.study.running.is_legible(item):
                before = party.rejections[Reason.LINK]
                party.received(sender, [item], 0.4)
                assert party.rejections[Reason.LINK] == before + 1, (kind, party.rejections)
        assert party.heard == party.taken + sum(party.rejections.values())


@pytest.mark.parametrize("row", ["ring-sum", "ring-histogram"])
def test_a_step_that_is_not_due_moves_nothing(row):
    """Only the neighbour before us brings the token, and only at its own step: other parties' step numbers are ignored."""
    with alone(row) as (trial, party):
        n, before, d = trial.n, VICTIM - 1, trial.study.task.dimension
        token = np.ones(d, "<i8").tobytes()
        for author, index in [(before, before - 1), (before, before + 1), (before, 0), (0, before), (LIAR, LIAR)]:
            party.received(author, [Item(Key(ItemKind.TOKEN, 1, author, index), token)], 0.3)
            assert not [
                m for _, m in party.outbox() if isinstance(m, Item) and m.key.kind in (ItemKind.TOKEN, ItemKind.TOTAL)
            ]
        assert party.outcome is None
        party.received(before, [Item(Key(ItemKind.TOKEN, 1, before, n * 1000 + before), token)], 0.3)
        assert party.rejections[Reason.KEY] + party.rejections[Reason.EARLY] >= 1


# ── two things said ───────────────────────────────────────────────────────────────────────────────────────────────────


def two_faced(row, kind, other):
    """A party that says `other(body)` instead of what it should to parties 3 and 4, in all items of a kind."""
    trial = None

    def twist(u, to, message):
        if not isinstance(message, Item) or message.key.kind != kind or message.key.author != LIAR:
            return message
        if to == LIAR:  # it does not listen to what it is told of itself: an honest party would stop there
            return None
        if u == LIAR and to > 2:
            return signed(trial, message.key, other(message.body))
        return message

    trial = trials.Trial(row, 3, tolerant=True, calm=True, twist=twist)
    try:
        trial.at(0.0, lambda: None)
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial.run(until=trials.HORIZON, alive=range(trial.n))
        trial.run(until=trial.now + 5.0, alive=[-1])  # what was on its way, until all have left
        honest = {u: told for u, told in trial.told.items() if u != LIAR}
    finally:
        trial.close()
    return trial, honest


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (ItemKind.CONTRIBUTION, lambda body: body[:-1] + bytes([body[-1] ^ 1])),
        (ItemKind.VOTE, lambda body: roster_body([u for u in roster_of(body) if u != 0])),
    ],
    ids=["values", "rosters"],
)
def test_who_says_two_things_is_found_out(kind, other):
    """Both signed items are kept, and prove it to anybody who has the study; a forged proof proves nothing."""
    trial, honest = two_faced("masked-sum", kind, other)
    found = [evidence for told in honest.values() for evidence in told["evidence"]]
    assert found
    assert len(honest) == trial.n - 1, "everybody honest comes to an end"
    for evidence in found:
        assert (evidence["party"], evidence["kind"]) == ("p1", kind.name.lower())
        assert proves(trial.study, evidence)
        assert proves(trial.study, json.loads(json.dumps(evidence)))
    assert any("somebody cheats" in note or "proof that it cheats" in note for note in trial.notes)
    one = found[0]
    same = copy.deepcopy(one)
    same["said"][1] = same["said"][0]
    framed = copy.deepcopy(one) | {"party": "p2"}
    moved = copy.deepcopy(one) | {"attempt": one["attempt"] + 1}
    elsewhere = copy.deepcopy(one) | {"study": "00" * 32}
    assert not any(proves(trial.study, wrong) for wrong in (same, framed, moved, elsewhere, {}, {"party": 3}))
    for u in honest:  # whatever it said, nobody honest contributed more often than was promised
        spent = {
            key.attempt for key in trial.words.said if isinstance(key, Key) and key[:3:2] == (ItemKind.CONTRIBUTION, u)
        }
        assert len(spent) <= trial.study.privacy.attempts


def test_an_honest_run_accuses_nobody():
    trial = trials.Trial("masked-sum", 3, tolerant=True, calm=True).go()
    assert all(told["evidence"] == [] for told in trial.told.values())


def test_who_withholds_its_numbers_costs_an_attempt_and_no_more():
    """It votes, and contributes nothing: the others go on without it, and both attempts are in their ledgers."""

    def twist(u, to, message):
        own = isinstance(message, Item) and message.key.author == LIAR and message.key.kind == ItemKind.CONTRIBUTION
        return None if u == LIAR and own else message

    trial = trials.Trial("masked-sum", 0, tolerant=True, calm=True, twist=twist)
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial.run(until=trials.HORIZON, alive=[u for u in range(trial.n) if u != LIAR])
        told = {u: trial.told[u] for u in range(trial.n) if u != LIAR}
        assert {(one["ok"], one["attempt"], one["contributed"]) for one in told.values()} == {(True, 2, 2)}
        for u, one in told.items():
            matrix.right(trial, u, one)
    finally:
        trial.close()


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", ["ring-sum", "gossip"])
def test_numbers_out_of_all_proportion_are_refused(row):
    """A state or token is checked against what clipped values and all noise can add up to; honest ones are far below."""
    trial = trials.Trial(row, 0, tolerant=False, calm=True).go()
    running = trial.study.running
    seen = [
        abs(int(number))
        for place, bodies in trial.words.said.items()
        for body in bodies
        if (place if isinstance(place, Key) else place[0]).kind in (ItemKind.STATE, ItemKind.TOKEN, ItemKind.TOTAL)
        for number in np.frombuffer(body, "<i8")
    ]
    assert 0 < max(seen) < running.furthest / 3
    assert running.furthest < 1000 * max(seen), "the bound says next to nothing"
    kind, index = (ItemKind.TOKEN, 3) if row == "ring-sum" else (ItemKind.STATE, 0)
    with alone(row) as (other, party):
        for wrong in (2**63 - 1, -(2**63), int(1.01 * running.furthest), -int(1.01 * running.furthest)):
            before = party.rejections[Reason.BODY]
            party.received(3, [Item(Key(kind, 1, 3, index), struct.pack("<q", wrong))], 0.3)
            assert party.rejections[Reason.BODY] == before + 1
        party.received(3, [Item(Key(kind, 1, 3, index), struct.pack("<q", int(0.99 * running.furthest)))], 0.3)
        assert Key(kind, 1, 3, index) in party._held
        assert other.n == 5


# ── floods and stalls ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_useless_messages_are_borne_at_a_rate():
    """Beyond it the neighbour is reported, once for every patience; honest repetitions are far below."""
    with alone("masked-sum") as (trial, party):
        honest = parties.BEARABLE + 8 * trial.n * (trial.study.privacy.attempts + 8)
        useless = [Announce((Key(ItemKind.VOTE, 1, 0),)), Done(1, b"")]
        party.received(LIAR, useless, 0.3)
        for _ in range(honest // 2000):
            party.received(LIAR, useless * 1000, 0.4)
        assert party.unbearable == []
        party.received(LIAR, useless * 1000, 0.5)
        assert [peer for peer, _ in party.unbearable] == [LIAR]
        party.unbearable.clear()
        party.received(0, useless * 500, 100.0)
        party.received(LIAR, useless * 500, 100.0)
        assert party.unbearable == []
        calm = trials.Trial("masked-sum", 1, calm=True)
        calm.go()
        assert all(peer is None or not peer.party.unbearable for peer in calm.peers)


def test_who_connects_and_says_nothing_holds_nobody_up(tmp_path):
    """Forty callers that send one byte, or none, and stay: neighbours are linked and heard all the same."""
    with mutants.Victim(tmp_path, "ring-sum") as victim:

        async def stall():
            host, port = victim.one.study.address(victim.me).rsplit(":", 1)
            await victim.counts()  # it listens
            callers = []
            for number in range(40):
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection(host, int(port))
                    writer.write(b"\x16" * (number % 2))
                    callers.append(writer)
            transport = victim.transport(victim.attackers[0], mutants.Ears())
            await transport.start()
            try:
                await mutants.send(transport, victim, encode([Hello(victim.one.study.hash, ""), Done(1, b"")]))
                return len(callers), await victim.counts(lambda told: told["heard"] >= 2)
            finally:
                await transport.close()
                for writer in callers:
                    writer.transport.abort()

        callers, told = asyncio.run(stall())
    assert callers == 40
    assert told["rejected"] == {}


# ── what is written about it ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_threat_model_speaks_of_every_protocol_and_points_to_what_exists():
    """A section per kind; every file that it names is there, and every test that it names."""
    root = Path(__file__).parent.parent.parent
    text = (root / "docs" / "threat-model.md").read_text("utf-8")
    for kind in RUNNING:
        assert f"## {kind}" in text, f"docs/threat-model.md has no section {kind}"
    named = {word.strip("`,.;:()") for word in text.split() if word.strip("`,.;:()").endswith(".py")}
    named |= {word.strip("`,.;:()").split("::")[0] for word in text.split() if ".py::" in word}
    assert len(named) > 10
    for file in named:
        assert (root / file).exists() or (root / "src" / file).exists(), file
    for word in text.split():
        word = word.strip("`,.;:()|")
        if ".py::" in word:
            file, _, name = word.partition("::")
            assert f"def {name}(" in (root / file).read_text("utf-8"), word
