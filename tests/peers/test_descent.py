"""Learning together on whole peers, in virtual time: the simulator's model to the last bit, whatever happens on the way.

Random schedules with deaths, and real processes that are killed: `test_schedules.py`, `test_faults.py`. What must hold:
docs/proofs/peers.md#training-on-peers.
"""

import asyncio
import contextlib
import copy
import dataclasses
import heapq
import math
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from netdp.errors import NetdpError, Refused
from netdp.families.masked import peer as learners
from netdp.families.masked import simulate as simulated
from netdp.families.masked.peer import descent_curve
from netdp.families.masked.peer_descent import Descending
from netdp.families.masked.protocol import to_bytes
from netdp.graphs import Graph
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.models.parties import ModelParties
from netdp.peers import exchange
from netdp.peers.events import fields_of
from netdp.peers.exchange import Reason, proves
from netdp.peers.ledger.entries import CORRECTS, in_force, total
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.ledger.store import SHUT, Store
from netdp.peers.messages import (
    Announce,
    Held,
    Hello,
    Item,
    ItemKind,
    Key,
    Pull,
    roster_body,
    roster_digest,
    signed_bytes,
)
from netdp.peers.party import Party
from netdp.peers.peer import Peer
from netdp.peers.streams import Words
from netdp.peers.study import Study
from netdp.peers.transport.base import RealClock
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock
from netdp.protocols.training import train

sys.path.append(str(Path(__file__).parent))

import crew
import matrix
import trials

from netdp.peers.streams import context, noise_words

ROW = "masked-descent"
VICTIM, LIAR = 4, 1
PARTY = crew.TRAIN.model_copy(update={"unit": "party", "max_records": None, "records": None})


@pytest.fixture
def row(monkeypatch):
    """Studies of other settings, by a name of their own."""

    def made(name, **options):
        monkeypatch.setitem(matrix.COMPANY, f"{ROW}, {name}", matrix.COMPANY[ROW] | {"protocol": ROW} | options)
        return f"{ROW}, {name}"

    return made


def many_rows(trial, count=6):
    """Give every party several rows instead of one."""
    rng = np.random.default_rng(5)
    trial._rows = [np.column_stack([rng.uniform(-1, 1, count), rng.integers(0, 2, count)]) for _ in range(trial.n)]
    return trial


def calm(name=ROW, seed=1, twist=None):
    return trials.Trial(name, seed, tolerant=False, calm=True, twist=twist)


def run(trial, until=trials.HORIZON):
    for u in range(trial.n):
        trial.at(0.0, trial.start, u)
    trial.run(until=until, alive=range(trial.n))
    return trial


def right(trial):
    """Everybody has the same model, which follows from rows and secrets."""
    wanted, digest = crew.Crew.expected(trial, 1, tuple(range(trial.n)))
    assert {told["digest"] for told in trial.told.values()} == {digest}
    assert all(told["total"] == wanted for told in trial.told.values())
    assert len(trial.told) == trial.n


# ── the same as simulated ─────────────────────────────────────────────────────────────────────────────────────────────


def test_peers_hold_the_simulators_model_to_the_last_bit(row, monkeypatch):
    """Coins and noise of the peers, put into the simulator: the same sums, so the same model."""
    trial = many_rows(calm(row("plain", task=crew.TRAIN.model_copy(update={"held_out": 0.0}))))
    drawn, inner = {}, learners.Learner.drawn

    def listening(learner, t, state, show=False):
        p, me = learner.protocol, learner._desk.me
        integers = learner._gradient(t, state.theta, [])
        where = context(*learner._where, t)
        words = noise_words(learner._secret, where, integers.astype("<i8").tobytes())
        chosen = learner._coins(len(learner.training[1]), p.threshold, t, 1)
        drawn[t, me] = chosen, DiscreteGaussian(p.sum.share).sample(integers.shape, words), learner.training
        return inner(learner, t, state, show)

    monkeypatch.setattr(learners.Learner, "drawn", listening)
    try:
        run(trial)
        right(trial)
    finally:
        trial.close()
    p, everybody = trial.study.protocol(), range(trial.n)
    rounds = range(1, p.iterations + 1)
    coins = iter([np.concatenate([drawn[t, u][0] for u in everybody]) for t in rounds])
    noise = iter([sum(drawn[t, u][1] for u in everybody)[None, :] for t in rounds])
    monkeypatch.setattr(simulated, "takes_part", lambda *_: next(coins))
    monkeypatch.setattr(simulated, "noise_of_sums", lambda *_: noise)
    parts = [drawn[1, u][2] for u in everybody]
    parties = ModelParties(trial.study.task.model(), [X for X, _ in parts], [y for _, y in parts])
    assert train(p, parties, seed=0).models[0].tolist() == trial.told[0]["total"]
    assert any(drawn[t, u][0].any() and not drawn[t, u][0].all() for t in rounds for u in everybody)


def test_whole_parties_hold_the_same_model(row):
    trial = many_rows(calm(row("party", task=PARTY, sampling=0.5)))
    try:
        right(run(trial))
    finally:
        trial.close()


def test_a_party_without_training_rows_takes_part(row):
    """All rows held out, or none drawn: zero and noise, nobody can tell."""
    trial = calm(row("half", task=crew.TRAIN.model_copy(update={"held_out": 0.5})), seed=3)
    try:
        right(run(trial))
    finally:
        trial.close()


def test_coins_have_their_probability_and_rows_their_own(row):
    trial = calm()
    try:
        trial.start(0)
        desk, study = trial.peers[0]._desk, trial.study
        desk.rows = np.column_stack([np.linspace(-1, 1, 4000), np.zeros(4000)])

        def learner(rows=None, attempt=1):
            desk.rows = desk.rows if rows is None else rows
            return learners.Learner(
                desk, study.protocol(), study.running.evaluation, attempt, tuple(range(5)), held_out=0.25
            )

        one = learner()
        m = len(one.training[1])
        assert abs(m - 3000) < 6 * math.sqrt(4000 * 0.25 * 0.75)
        first, second = (one._coins(m, one.protocol.threshold, t, 1) for t in (1, 2))
        assert abs(int(first.sum()) - m / 2) < 6 * math.sqrt(m / 4)
        assert abs(int((first & second).sum()) - m / 4) < 6 * math.sqrt(m * 3 / 16)
        assert np.array_equal(first, learner()._coins(m, one.protocol.threshold, 1, 1))
        other = learner(desk.rows + 1e-9)
        assert not np.array_equal(first[:1000], other._coins(m, one.protocol.threshold, 1, 1)[:1000])
        assert not np.array_equal(first, learner(attempt=2)._coins(m, one.protocol.threshold, 1, 1))
        law = [int((words >> np.uint64(32)) < 2**31) for words in Words(bytes(32))(20_000)]
        assert abs(sum(law) - 10_000) < 6 * math.sqrt(5000)
        assert [int(learners.coins(Words(bytes(32)), 9, k).sum()) for k in (0, 2**32)] == [0, 9]
    finally:
        trial.close()


def test_steps_of_a_party_are_held_in_whole_numbers(row):
    study, _, _ = trials.scene(row("held", task=PARTY, sampling=0.5), 0, False)
    p = study.protocol().replace(dimension=50)
    rng = np.random.default_rng(3)
    for scale in (1e-300, 1e-3, 1.0, 1e9, 1e160, 1e307):
        steps = learners.party_steps(p, scale * rng.standard_normal(50))
        assert math.isqrt(sum(int(k) ** 2 for k in steps)) <= p.distance
    assert not learners.party_steps(p, np.full(50, np.nan)).any()


# ── lives ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_step_it_ends_with_the_same_model(when):
    """One party dies before, or after, each of its transactions in turn, another one at the next: the same bits in the end."""
    trial = calm()
    try:
        right(run(trial))
    finally:
        trial.close()
    digest, steps = trial.told[0]["digest"], trial.study.running.most_steps()
    for k in range(1, steps + 3):  # vote, contribution, steps
        trial = calm()
        trial._writes = [(2, when, k, 0.2), (0, when, min(k + 1, steps + 2), 0.3)]
        try:
            run(trial)
            assert {told["digest"] for told in trial.told.values()} == {digest}, (when, k, trial.notes)
            assert len(trial.told) == trial.n
            trial.words.check()
        finally:
            trial.close()


def test_a_store_that_forgets_is_noticed(monkeypatch):
    """The checks above can fail: without the register a restarted party draws from another model's step, or is refused."""
    monkeypatch.setattr(Store, "risen", lambda *_: [])
    assert any(trials.attempt(ROW, seed)[1] for seed in range(6))


def test_an_old_copy_of_a_folder_says_nothing_new():
    """Party 2 is put back to where it was some iterations ago: it takes back its steps, or ends; never another y."""
    for lag in (1, 3):
        trial = calm()
        try:
            put_back(trial, 2, lambda _: completed(trial, 2) >= 1 + lag)  # noqa: B023  used at once
            trial.words.check()
            assert len(trial.told) == trial.n
            if lag == 1:
                right(trial)
            elif not trial.told[2]["ok"]:
                assert "older than what was sent" in trial.told[2]["reason"]
                with Store.open(trial.file(2), read_only=True) as store:
                    # the neighbours' word counts: not one step less than they hold
                    entries = [e.loss.get("releases", 0) for e in store.entries() if e.attempt > CORRECTS]
                    assert not entries or min(entries) >= 2
        finally:
            trial.close()


def put_back(trial, u, late, then=lambda: None):
    """Copy a party's folder after an iteration; once it is late(its step at that time), put the copy back and start it again."""
    copied = trial.folder / "old.db"
    for v in range(trial.n):
        trial.at(0.0, trial.start, v)
    while completed(trial, u) < 1:
        one_event(trial)
    trial.peers[u].store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(trial.file(u), copied)
    (stood, _), *_ = trial.peers[u].store.risen(trial.study.hash, 1, b"step")
    while not late(stood):
        one_event(trial)
    trial.kill(u)
    for file in trial.folder.glob(f"p{u}.db*"):
        file.unlink()
    shutil.copy(copied, trial.file(u))
    then()
    trial.at(0.1, trial.start, u)
    trial.run(until=trials.HORIZON, alive=range(trial.n))


def is_held(trial, u):
    """Whether somebody holds the next step of a party after a given one."""
    return lambda step: any(Key(ItemKind.STEP, 1, u, step + 1) in trial.parties[v]._held for v in trial.neighbours[u])


def draw_beside_other_models(monkeypatch):
    """Undo that no step is drawn while one that starts from another model is held."""
    agree = Descending._agree
    monkeypatch.setattr(
        Descending, "_agree", lambda self, t, bodies, *rest: self._me not in bodies or agree(self, t, bodies, *rest)
    )


@pytest.mark.parametrize("believes", [True, False])
def test_no_patience_makes_an_old_folder_speak_again(believes, monkeypatch):
    """The counterexample of docs/proofs/peers.md#held-in-our-name to claims that lapse: the same rows on the same machine, honest
    neighbours that hold a later step and cannot get it over, and one member that says another step than in the life before.

    Who heeds neither the proof nor steps of other models says a second y under the same pads.
    """
    if not believes:
        monkeypatch.setattr(Party, "_believe", lambda *_: None)
        draw_beside_other_models(monkeypatch)
    second_life = []

    def twist(u, to, message):
        if not isinstance(message, Item) or message.key.kind != ItemKind.STEP:
            return message
        key, body = message.key, message.body
        if (key.author, to) == (2, 2) or (
            key.author == LIAR and key.index > 2
        ):  # does not get over; holds all others up
            return None
        if second_life and (key.author, to) == (LIAR, 2):
            return signed(trial, key, body[:-1] + bytes([body[-1] ^ 1]))
        return message

    trial = calm(twist=twist)
    try:
        with contextlib.nullcontext() if believes else contextlib.suppress(NetdpError):
            put_back(trial, 2, is_held(trial, 2), lambda: second_life.append(True))
        steps = [trial.words.said.get(Key(ItemKind.STEP, 1, 2, t), set()) for t in range(1, 7)]
        assert list(map(len, steps)) == ([1, 1, 1, 0, 0, 0] if believes else [1, 1, 2, 0, 0, 0])
        if believes:
            assert "older than what was sent" in trial.told[2]["reason"]
            assert not trial.accused
    finally:
        trial.close()


@pytest.mark.parametrize("heeds", [True, False])
def test_an_honest_holder_who_is_no_neighbour(row, monkeypatch, heeds):
    """Beyond docs/proofs/peers.md#held-in-our-name: only a party further off holds the step that an old folder has forgotten.

    The only neighbour was started again from before it held that step, and a cheat says another step than in the life before.
    Nobody proves anything; but a step of another model comes by, and none is drawn beside it. Who draws says a second y.
    """
    old, neighbour, far, cheat = 0, 1, 2, 3
    apart = Graph.from_edges(5, [(old, neighbour), (neighbour, far), (neighbour, cheat), (far, cheat), (far, 4)])
    second_life = []

    def twist(u, to, message):
        if not isinstance(message, Item) or message.key.kind != ItemKind.STEP:
            return message
        key, body = message.key, message.body
        if not second_life:
            return None if key.author == cheat and key.index > 2 else message  # holds everybody up at iteration 3
        if (key.author, to) == (cheat, cheat):
            return None  # it does not mind what it hears of itself
        if (u, to) == (cheat, neighbour):
            return signed(trial, key, body[:-2] + bytes([body[-2] ^ 0x10]) + body[-1:]) if key.author == cheat else None
        return message

    if not heeds:
        draw_beside_other_models(monkeypatch)
    trial = calm(row("apart", graph=apart), twist=twist)
    many_rows(trial, 8)
    forgotten, inner, copied = Key(ItemKind.STEP, 1, old, 3), trial.flush, trial.folder / "old.db"

    def flush(u):
        """Every message in a frame of its own, as long steps are."""
        for pair in [] if trial.parties[u] is None else trial.parties[u].outbox():
            if trial.parties[u] is not None:
                trial.parties[u]._exchange._out = [pair]
                inner(u)
        inner(u)

    trial.flush = flush

    def steps_of(u):
        return 0 if trial.parties[u] is None else trial.parties[u].steps_made

    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        while steps_of(old) < 2:
            one_event(trial)
        trial.peers[old].store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(trial.file(old), copied)
        while forgotten not in trial.parties[far]._held or steps_of(neighbour) < 3:
            one_event(trial)
        second_life.append(True)
        for u in (old, neighbour):
            trial.kill(u)
        for file in trial.folder.glob(f"p{old}.db*"):
            file.unlink()
        shutil.copy(copied, trial.file(old))
        trial.stop(far, 1.0)
        trial.at(0.1, trial.start, neighbour)
        trial.at(0.2, trial.start, old)
        with contextlib.nullcontext() if heeds else contextlib.suppress(NetdpError):
            trial.run(until=trials.HORIZON, alive=range(trial.n))
        assert len(trial.words.said[forgotten]) == (1 if heeds else 2)
        if heeds:
            assert trial.told[old]["reason"].code == "models-differ"
    finally:
        trial.close()


def test_what_is_held_of_one_attempt_keeps_no_other_waiting(training):
    _, party, _ = training
    party._steps[2] = 3  # somebody proves a step of attempt 2
    assert [party._moment(attempt).claimed for attempt in (1, 2)] == [0, 3]
    party.attempt = 2
    assert party._moment(1).claimed == 0


def boastful(liar, ahead):
    """A party that says in every Hello that it holds the other end's steps, up to some that are not made yet."""

    def twist(u, to, message):
        if u != liar or not isinstance(message, Hello):
            return message
        keys = [Key(ItemKind.CONTRIBUTION, 1, to), *(Key(ItemKind.STEP, 1, to, t) for t in ahead)]
        mine = [held for held in message.proofs if held.key.kind == ItemKind.STEP][:1]
        forged = [Held(key, bytes(32), bytes(64)) for key in keys]
        forged += [dataclasses.replace(one, key=key) for one in mine for key in keys]
        return dataclasses.replace(message, have=(*message.have, *keys), proofs=(*forged, *message.proofs))

    return twist


@pytest.mark.parametrize("ahead", [(1,), (2, 3), range(1, 9)])
def test_who_boasts_of_our_steps_is_named_and_the_model_comes(ahead):
    """From the first Hello on, and after a death and a start: everybody ends with the model, and knows who lied."""
    trial = calm(twist=boastful(LIAR, ahead))
    trial._writes = [(2, "after", 4, 0.2), (VICTIM, "before", 5, 0.3)]
    try:
        run(trial)
        right(trial)
        trial.words.check()
        assert {liar for _, liar in trial.accused} == {LIAR}
        assert {u for u, _ in trial.accused} == set(range(trial.n)) - {LIAR}
    finally:
        trial.close()


def completed(trial, u):
    party = trial.parties[u]
    return 0 if party is None else party._completed[1]


def one_event(trial):
    trial.now, _, act, arguments = heapq.heappop(trial.events)
    act(*arguments)


def test_memory_is_level(row, monkeypatch):
    """Held items, what is known of links, and offers: the same after 24 iterations as after 6, on two graphs."""
    sizes = {}

    def size(party):
        exchange = party._exchange
        sets = [len(link.knows) + len(link.pulled) for link in exchange.links.values()]
        return len(party._held) + sum(sets) + len(exchange._offers) + len(exchange._asked) + len(party.sent)

    for graph in ("ring:5", "complete:5"):
        for iterations in (6, 24):
            trial = calm(row(f"{graph} {iterations}", graph=graph, iterations=iterations))
            most, inner = 0, trial.flush

            def flush(u, trial=trial, inner=inner):
                nonlocal most
                if trial.parties[u] is not None:
                    most = max(most, size(trial.parties[u]))
                inner(u)

            trial.flush = flush
            try:
                run(trial)
                right(trial)
                with Store.open(trial.file(0), read_only=True) as store:
                    (rows,) = store._one_row("SELECT COUNT(*) FROM rising")
                assert rows <= 4
            finally:
                trial.close()
            sizes[graph, iterations] = most
        assert sizes[graph, 24] <= 1.5 * sizes[graph, 6]  # four times as many steps; peaks depend on who is late


# ── hostile ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def signed(trial, key, body, study=None):
    message = signed_bytes(trial.study.hash if study is None else study, key, body)
    return Item(key, body, trial.people[key.author].sign(message))


@pytest.fixture
def training():
    """A party in its first iteration: all have voted and contributed, nobody else has taken a step; (trial, party, a body)."""
    trial = calm()
    try:
        trial.start(VICTIM)
        party, everybody = trial.parties[VICTIM], tuple(range(trial.n))
        said = [signed(trial, Key(ItemKind.VOTE, 1, v), roster_body(everybody)) for v in everybody if v != VICTIM]
        said += [
            signed(trial, Key(ItemKind.CONTRIBUTION, 1, v), roster_digest(everybody)) for v in everybody if v != VICTIM
        ]
        for v in trial.neighbours[VICTIM]:
            party.linked(v, 0.1)
            party.received(v, [Hello(trial.study.hash, "")], 0.1)
        party.received(0, said, 0.2)
        own = party._held[Key(ItemKind.STEP, 1, VICTIM, 1)]
        one = trial.study.protocol().sum
        body = own.body[:32] + to_bytes(np.zeros(one.dimension, np.uint64), one.q)
        yield trial, party, body
    finally:
        trial.close()


def test_steps_that_no_honest_party_makes_are_refused(training):
    trial, party, body = training
    last, key = trial.study.running.most_steps(), Key(ItemKind.STEP, 1, LIAR, 1)
    beyond = np.full(trial.study.task.dimension, 2**32 - 1, "<u4").tobytes()
    small = trial.study.protocol().sum.q < 2**32
    for item, reason in [
        (Item(key, body, b"forged".ljust(64)), Reason.SIGNATURE),
        (signed(trial, key, body, study=b"another study".ljust(32)), Reason.SIGNATURE),
        (Item(key, body, signed(trial, key._replace(index=2), body).signature), Reason.SIGNATURE),
        (Item(key, body, signed(trial, key._replace(attempt=2), body).signature), Reason.SIGNATURE),
        (Item(key, body, signed(trial, key._replace(author=0), body).signature), Reason.SIGNATURE),
        (signed(trial, key._replace(index=3), body), Reason.KEY),  # nobody can be so far
        (signed(trial, key._replace(index=last), body), Reason.KEY),
        (signed(trial, key._replace(index=last + 1), body), Reason.KEY),
        (signed(trial, key._replace(index=2**31), body), Reason.KEY),
        (signed(trial, key._replace(index=0), body), Reason.KEY),
        (signed(trial, key._replace(attempt=99), body), Reason.KEY),
        (signed(trial, key, body + b"\0"), Reason.BODY),
        (signed(trial, key, body[:-1]), Reason.BODY),
        (signed(trial, key, b""), Reason.BODY),
        (signed(trial, key, bytes(10**6)), Reason.BODY),
        *([(signed(trial, key, body[:32] + beyond), Reason.BODY)] if small else []),
    ]:
        before = party.rejections[reason]
        party.received(LIAR, [item], 0.3)
        assert party.rejections[reason] == before + 1, (item.key, reason, party.rejections)
    assert not [k for k in party._held if k.kind == ItemKind.STEP and k.author == LIAR]
    assert party.heard == party.taken + sum(party.rejections.values())
    party.received(LIAR, [signed(trial, key, body)], 0.4)
    assert key in party._held


def test_what_is_claimed_to_be_held_is_bounded(training):
    """A neighbour may say that it holds steps of all iterations: those that cannot be are not noted."""
    trial, party, _ = training
    keys = tuple(Key(ItemKind.STEP, a, u, t) for a in range(12) for u in range(9) for t in range(500))
    party.received(LIAR, [Announce(keys), Pull(keys)], 0.3)
    link = party._exchange.links[LIAR]
    assert len(link.knows) + len(link.pulled) + len(party._exchange._offers) <= 3 * 9 * (2 + 1) * trial.n


def test_a_lie_about_our_steps_is_reported_with_the_name(training):
    """Once, for log and status; what was published already, or has a proof, is no lie."""
    trial, party, _ = training
    peer, events = trial.peers[VICTIM], []
    peer._tell = events.append
    own = party._held[Key(ItemKind.STEP, 1, VICTIM, 1)]

    def greet(*keys, proofs=()):
        party.lost(LIAR, 0.3)
        party.linked(LIAR, 0.3)
        peer._do(lambda: party.received(LIAR, [Hello(trial.study.hash, "", keys, proofs=proofs)], 0.3))
        return [event for event in events if event["event"] == "note"]

    assert greet(own.key) == []
    assert greet(own.key, proofs=(Held.of(own),)) == []
    assert greet(own.key._replace(attempt=99), own.key._replace(index=10**6)) == []  # of no attempt, no iteration
    later = own.key._replace(index=2)
    for _ in range(3):
        (said,) = greet(later)
    assert said["peer"] == "p1"
    assert fields_of(said) == {"peer": "p1", "reason": "unproved-claim"}
    assert party._moment(1).claimed <= 1
    greet(later, proofs=(Held.of(signed(trial, later, own.body)),))  # with our own signature it is believed
    assert party._moment(1).claimed == 2


def test_a_late_step_is_no_fault(training):
    """What is over is ignored, without a complaint."""
    trial, party, body = training
    party._completed[1] = 3
    party.received(LIAR, [signed(trial, Key(ItemKind.STEP, 1, LIAR, 2), body)], 0.3)
    assert not party.rejections
    assert Key(ItemKind.STEP, 1, LIAR, 2) not in party._held


def test_who_takes_two_different_steps_is_found_out():
    """Models part, digests show it, the two steps meet: all who are honest end, with proof; each said one y per iteration."""
    trial = None

    def twist(u, to, message):
        if not isinstance(message, Item) or message.key.kind != ItemKind.STEP or message.key.author != LIAR:
            return message
        if to == LIAR:
            return None
        if u == LIAR and to > 2 and message.key.index == 2:
            return signed(trial, message.key, message.body[:-1] + bytes([message.body[-1] ^ 1]))
        return message

    trial = calm(twist=twist)
    try:
        run(trial)
        honest = {u: told for u, told in trial.told.items() if u != LIAR}
        assert len(honest) == trial.n - 1
        assert not any(told["ok"] for told in honest.values())
        assert all("another model" in told["reason"] for told in honest.values())
        found = [one for peer in trial.peers if peer is not None for one in peer.party.evidence.values()]
        found += [evidence for told in honest.values() for evidence in told["evidence"]]
        assert found
        proof = next(one for one in found if isinstance(one, dict))
        assert (proof["party"], proof["kind"], proof["index"]) == ("p1", "step", 2)
        assert proves(trial.study, proof)
        assert not proves(trial.study, copy.deepcopy(proof) | {"index": 3})
        for key, bodies in trial.words.said.items():
            if isinstance(key, Key) and key.author != LIAR:
                assert len(bodies) == 1
    finally:
        trial.close()


def test_a_wrong_digest_ends_it_cleanly():
    def twist(u, to, message):
        if isinstance(message, Item) and message.key[:4] == (ItemKind.STEP, 1, LIAR, 2):
            return signed(trial, message.key, bytes(32) + message.body[32:])
        return message

    trial = calm(twist=twist)
    try:
        run(trial, until=60.0)
        honest = [trial.told[u] for u in range(trial.n) if u != LIAR]
        assert all(not told["ok"] and "p1 starts from another model" in told["reason"] for told in honest)
    finally:
        trial.close()


# ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_is_paid_for_and_written_before_a_step_leaves():
    seen = []

    def twist(u, to, message):
        if isinstance(message, Item) and message.key.kind == ItemKind.STEP and message.key.author == u:
            store, study = trial.peers[u].store, trial.study.hash
            assert [entry.attempt for entry in store.entries_of(study)] == [1]
            assert store.contribution(study, 1) is not None
            assert store.stands(study, 1, b"step", message.key.index) == message.body
            seen.append(message.key)
        return message

    trial = calm(twist=twist)
    try:
        right(run(trial))
    finally:
        trial.close()
    assert {key.index for key in seen} == set(range(1, trial.study.running.most_steps() + 1))


def test_steps_are_signed_only_as_they_stand_in_the_register():
    trial = calm()
    try:
        trial.start(0)
        desk = trial.peers[0]._desk
        with pytest.raises(NetdpError, match="written down first"):
            desk.sign(Key(ItemKind.STEP, 1, 0, 1), b"anything")
        with pytest.raises(NetdpError, match="before the attempt is entered"):
            desk.rise(1, 1, {b"step": b"anything"})
    finally:
        trial.close()


@pytest.fixture(scope="module")
def planned():
    """A study with the least noise, signed by nobody."""
    names = [f"p{u}" for u in range(5)]
    draft = Study.plan(
        "five", crew.TRAIN, names, graph="complete:5", epsilon=2.0, delta=1e-6, iterations=8, sampling=0.5
    )
    people = [trials.identity(name, Path("/nowhere")) for name in names]
    addresses = {name: f"127.0.0.1:{7001 + u}" for u, name in enumerate(names)}
    return draft.complete({one.card.name: one.card for one in people}, addresses, nonce="3" * 32), people


def peers_of(planned, folder, clock, network, rows=None):
    study, people = planned
    rows = rows or [study.task.rows([{"x": str(20 * u), "y": "no" if u % 2 else "yes"}]) for u in range(study.n)]
    return [
        Peer(
            one, study, Store.open(folder / f"p{u}.db", sign=one.sign), rows[u],
            lambda receiver, u=u: network.transport(u, receiver), clock=clock,
        )
        for u, one in enumerate(people)
    ]  # fmt: skip


def test_the_entry_is_the_promise_and_the_policy_sees_it(planned, tmp_path):
    study, people = planned
    assert 1.9 < study.check_promise() <= 2.0
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = peers_of(planned, tmp_path, clock, network)
        found = await asyncio.gather(*(peer.run() for peer in peers))
        for peer in peers:
            peer.store.close()
        return found

    told = clock.run(everybody())
    assert all(one["ok"] for one in told)
    assert len({one["digest"] for one in told}) == 1
    assert told[0]["spent"]["epsilon"]["1"] == pytest.approx(study.check_promise())
    assert told[0]["worse"] == []
    with Store.open(tmp_path / "p0.db", sign=people[0].sign) as store:
        store.verify(people[0].card)
        entries = store.entries()
        once = float(total(entries, 1, "record").epsilon(1e-6))
        assert once == pytest.approx(study.check_promise())
        assert float(total(entries * 2, 1, "record").epsilon(1e-6)) > 1.2 * once
        assert math.isinf(float(total(entries, 1, "party").epsilon(1e-6)))
        limits = 'delta = 1e-6\nunit = "record"\n[[limit]]\nagainst = 1\nper = "study"\nepsilon = {}\n'
        for allowed, fits in ((2.0, True), (1.5, False)):
            (tmp_path / "policy.toml").write_text(limits.format(allowed))
            policy = OwnerPolicy.read(tmp_path / "policy.toml")
            other = study.replace(nonce="4" * 32)
            if fits:
                policy.check(other, store, 0)
            else:
                with pytest.raises(Refused):
                    policy.check(other, store, 0)


def test_a_full_disk_ends_the_peer_and_nothing_is_half_written(planned, tmp_path):
    study, people = planned
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = peers_of(planned, tmp_path, clock, network)
        rise, count = peers[2].store.rise, iter(range(100))

        def full(*arguments):
            if next(count) == 3:
                (pages,) = peers[2].store._database.execute("PRAGMA page_count").fetchone()
                peers[2].store._database.execute(f"PRAGMA max_page_count = {pages}")
                arguments = (*arguments[:3], {place: body.ljust(10**6, b"x") for place, body in arguments[3].items()})
            return rise(*arguments)

        peers[2].store.rise = full
        tasks = [asyncio.ensure_future(peer.run()) for peer in peers]
        with pytest.raises(NetdpError, match="full"):
            await tasks[2]
        with pytest.raises(NetdpError, match="open it again"):
            peers[2].store.entries()
        peers[2].store.close()
        again = Peer(
            people[2], study, Store.open(tmp_path / "p2.db", sign=people[2].sign), peers[2]._desk.rows,
            lambda receiver: network.transport(2, receiver), clock=clock,
        )  # fmt: skip
        found = await asyncio.gather(again.run(), *(task for u, task in enumerate(tasks) if u != 2))
        for peer in [again, *peers]:
            peer.store.close()
        return found

    told = clock.run(everybody())
    assert len({one["digest"] for one in told}) == 1
    assert all(one["ok"] for one in told)


def test_rows_that_changed_are_refused_after_a_restart(planned, tmp_path):
    study, _ = planned
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = peers_of(planned, tmp_path, clock, network)
        tasks = [asyncio.ensure_future(peer.run()) for peer in peers]
        while not any(key.kind == ItemKind.STEP and key.index == 3 for key in peers[1].party._held):
            await clock.sleep(0.001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in peers:
            peer.store.close()
        rows = [peer._desk.rows for peer in peers]
        rows[1] = rows[1] * 0.5
        again = peers_of(planned, tmp_path, clock, MemoryNetwork(5, clock, edges=study.graph.edges().tolist()), rows)
        tasks = [asyncio.ensure_future(peer.run()) for peer in again]
        with pytest.raises(Refused, match="have changed"):
            await tasks[1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in again:
            peer.store.close()

    clock.run(everybody())


# ── away for good ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_stays_away_ends_it_and_what_it_cost_is_entered(row):
    """After 1 of 16 iterations a party is gone. The others end and shut their registers; the whole stays entered; none goes on."""
    name = row("long", iterations=16)
    trial = calm(name)
    study = trial.study = trial.study.model_copy()
    study.__dict__["running"] = copy.copy(study.running)
    study.running.study = study
    study.running.__dict__.pop("loss", None)  # the true one
    study.running.__dict__.pop("_entered", None)
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        while completed(trial, 3) < 1:
            one_event(trial)
        trial.kill(3)
        trial.forgone.add(3)
        trial.run(until=trials.HORIZON, alive=[u for u in range(trial.n) if u != 3])
        left = [u for u in range(trial.n) if u != 3]
        assert all(not trial.told[u]["ok"] for u in left)
        assert all("the step of p3 did not come" in trial.told[u]["reason"] for u in left), trial.told[0]["reason"]
        for u in left:
            assert trial.told[u]["worse"] == []
        full = float(curve_of(study, 16, 1).epsilon(1e-6))
        with Store.open(trial.file(0)) as store:
            entries = store.entries()
            (counts,) = in_force(entries)  # the whole: whoever ended it may have looked first
            made = max(number for number, _ in store.risen(study.hash, 1, b"step") if number < SHUT)
            assert 0 < made < counts.loss["releases"] == 16
            assert store.risen(study.hash, 1, b"step")[0][0] == SHUT
            assert float(total(entries, 1, "record").epsilon(1e-6)) == pytest.approx(full)
            with pytest.raises(Refused, match="shut for good"):
                store.rise(study.hash, 1, made + 1, {b"step": b"more"})
        trial.run(until=trial.now + 5.0, alive=[-1])  # until all have left
        trial.forgone.clear()  # all come back, the one that was away too
        before = {key: set(bodies) for key, bodies in trial.words.said.items() if isinstance(key, Key)}
        trial.told.clear(), trial.outcomes.clear()
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial.run(until=trial.now + trials.HORIZON, alive=range(trial.n))
        assert len(trial.told) == trial.n
        assert not any(told["ok"] for told in trial.told.values())
        after = {key: set(bodies) for key, bodies in trial.words.said.items() if isinstance(key, Key)}
        new = [key for key in after if key not in before and key.kind == ItemKind.STEP and key.author != 3]
        assert not new
        with Store.open(trial.file(0)) as store:
            assert [entry.attempt for entry in store.entries()] == [1]
    finally:
        trial.close()


def curve_of(study, releases, against):
    return descent_curve(study.running._loss() | {"releases": releases}, study.n - against)


def test_nothing_sent_costs_nothing(row):
    """A party that never contributes: the others paid, took no step, and get it back."""
    trial = calm()
    try:
        for u in range(trial.n):
            trial.at(0.0, trial.start, u)
        trial._writes = [(3, "before", 2, None)]  # votes, and dies before it contributes
        trial.run(until=trials.HORIZON, alive=[0, 1, 2, 4])
        assert not any(isinstance(key, Key) and key.kind == ItemKind.STEP for key in trial.words.said)
        for u in (0, 1, 2, 4):
            assert "missing: p3" in trial.told[u]["reason"]
        with Store.open(trial.file(0)) as store:
            (counts,) = in_force(store.entries())
            assert (counts.loss["releases"], counts.attempt) == (0, 1 + CORRECTS)
    finally:
        trial.close()


# ── long gradients ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_links_live_while_a_gradient_is_computed(monkeypatch, planned, tmp_path):
    """Long gradients run in a thread. One of them does not end before the loop has done something else: it would hang otherwise."""
    study, _ = planned
    alive, seen = threading.Event(), []

    async def everybody():
        clock = RealClock()
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.0)
        peers = peers_of(planned, tmp_path, clock, network)
        tasks = [asyncio.ensure_future(peer.run()) for peer in peers]
        while not seen:
            await asyncio.sleep(0.001)
        alive.set()
        found = await asyncio.gather(*tasks)
        for peer in peers:
            peer.store.close()
        return found

    inner = learners.Learner.drawn

    def drawn(learner, t, state, show=False):
        seen.append(threading.current_thread() is threading.main_thread())
        assert alive.wait(300)
        return inner(learner, t, state, show)

    monkeypatch.setattr(learners.Learner, "drawn", drawn)
    monkeypatch.setattr(learners.Learner, "is_long", True)
    told = asyncio.run(asyncio.wait_for(everybody(), 100))
    assert set(seen) == {False}
    assert len({one["digest"] for one in told}) == 1
    assert all(one["ok"] for one in told)


class Slow(trials.Trial):
    """Gradients take virtual time: a quarter of the patience, and of party 2 two and a half times the patience."""

    def act(self, u, deed):
        super().act(u, deed)
        party = self.parties[u]
        if party is not None and (work := party.work()) is not None:
            result = work()
            took = (2.5 if u == 2 else 0.25) * trials.PATIENCE
            self.at(took, self.act, u, lambda party: party.worked(result, self.now))


@pytest.mark.parametrize("graph", ["complete:5", "ring:5"])
def test_a_slow_party_is_waited_for_as_long_as_it_can_be_reached(row, monkeypatch, graph):
    monkeypatch.setattr(learners.Learner, "is_long", True)
    trial = Slow(row(f"slow {graph}", graph=graph, iterations=3), 1, tolerant=False, calm=True)
    try:
        right(run(trial))
        assert trial.now > 7 * trials.PATIENCE
    finally:
        trial.close()


@pytest.mark.parametrize("graph", ["complete:5", "path:5"])
def test_long_steps_are_asked_for(row, monkeypatch, graph):
    """Steps that are too long to be sent unasked: announced and pulled, through deaths and broken links as ever."""
    for name in ("PUSHED", "OWN_STEP"):
        monkeypatch.setattr(exchange, name, 10)
    for seed in range(4):
        trial, problem = trials.attempt(row(f"long steps {graph}", graph=graph), seed)
        assert problem is None, problem
        assert any(told["ok"] for told in trial.told.values()) or not trial.schedule.mild


def test_who_has_left_remembers_what_others_said_to_hold(row):
    """A neighbour says to hold step 5 of ours. Shutting counts it, and a later life reads the same: it is not taken for none."""
    from types import SimpleNamespace

    from netdp.families.masked.peer_descent import Descending

    trial = calm(row("left", iterations=6))
    try:
        registers: list = []
        desk = SimpleNamespace(
            me=0,
            risen=lambda attempt, place: list(registers) if place == b"step" else [],
            rise=lambda attempt, number, bodies: registers.insert(0, (number, bodies[b"step"])),
        )
        running = trial.study.running

        def life():
            roster = tuple(range(trial.study.n))
            return Descending(running.protocol(), None, 1, roster, desk, lambda: None, patience=1.0)

        first = life()
        first._begun, first._claimed = True, 5
        first.leave()
        assert first.realised == {"left": True, "releases": 5} == life().realised
        assert "after 5 of 6 steps" in life().over
    finally:
        trial.close()


def test_a_neighbour_that_does_not_answer_is_waited_for_before_a_step(row):
    """Contributions do not wait for ever; steps do: other gradients of the same rows must not leave under the same pads."""
    trial = calm(row("alone", iterations=3))
    try:
        trial.start(0)
        party = trial.parties[0]
        later = party._born + party.terms.grace + 1.0
        party.tick(min(later, party.deadline - 1e-3))
        assert party._now >= party._born + party.terms.grace
        assert party._has_asked
        assert not party._moment(1).asked
        party._greeted |= set(party.terms.neighbours)
        assert party._moment(1).asked
    finally:
        trial.close()
