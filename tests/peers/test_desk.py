"""The desk: what is drawn is drawn once, and is what the simulator would compute from the same noise and pads."""

import sqlite3

import numpy as np
import pytest

from netdp.errors import NetdpError, Refused
from netdp.families.masked.protocol import from_bytes, opened, quantised, quantised_records, reduced
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.peers.desk import Desk
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, Key, roster_body, roster_digest, signed_bytes
from netdp.peers.streams import context, noise_words
from netdp.peers.study import Study
from netdp.peers.study.task import Task

NAMES = ("ann", "bob", "cyd", "dan", "eve")
ROSTER = (0, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    home = tmp_path_factory.mktemp("homes")
    return [Identity.create(home / name, name) for name in NAMES]


def made_study(identities, task=None, **options):
    task = task or Task(kind="mean", column="x", bounds=(0, 10))
    options = {"graph": "ring:5", "epsilon": 1.0, "delta": 1e-6, "colluders": 1, **options}
    if options.get("kind", "masked-sum") == "masked-sum":
        options.setdefault("threshold", 0)
    draft = Study.plan("five", task, NAMES, **options)
    return draft.complete([one.card for one in identities], [f"127.0.0.1:{7001 + u}" for u in range(5)], nonce="0" * 32)


def desks(identities, study, folder, rows):
    stores = [Store.open(folder / f"{name}.db", sign=one.sign) for name, one in zip(NAMES, identities, strict=True)]
    return [Desk(one, study, store, row) for one, store, row in zip(identities, stores, rows, strict=True)], stores


def values(study):
    return [study.task.rows([{"x": str(2 * u)}]) for u in range(5)]


def test_all_contributions_add_up_to_values_and_noise(identities, tmp_path):
    study = made_study(identities)
    rows = values(study)
    written, stores = desks(identities, study, tmp_path, rows)
    p = study.protocol_of(ROSTER)
    total = np.zeros(1, dtype=np.uint64)
    expected = np.zeros(1, dtype=np.int64)
    for desk, one, row in zip(written, identities, rows, strict=True):
        desk.vote(1, ROSTER)
        item = desk.contribute(1, ROSTER)
        assert item.body[:32] == roster_digest(ROSTER)
        total += from_bytes(item.body[32:], p.q, 1)
        integers = quantised(p, row[0])
        words = noise_words(one.noise_secret, context(study.hash, 1, ROSTER), integers.astype("<i8").tobytes())
        expected += integers + DiscreteGaussian(p.share).sample((1,), words)
        assert one.card.verify(signed_bytes(study.hash, item.key, item.body), item.signature)
    assert opened(reduced(total, p.q), p.q).tolist() == expected.tolist()
    for store in stores:
        store.close()


def test_records_are_rounded_one_by_one(identities, tmp_path):
    task = Task(kind="mean", column="x", bounds=(0, 10), unit="record", max_records=9)
    study = made_study(identities, task)
    rows = [study.task.rows([{"x": str(u + k)} for k in range(u + 1)]) for u in range(5)]
    written, stores = desks(identities, study, tmp_path, rows)
    p = study.protocol_of(ROSTER)
    total, expected = np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.int64)
    for desk, one, row in zip(written, identities, rows, strict=True):
        desk.vote(1, ROSTER)
        total += from_bytes(desk.contribute(1, ROSTER).body[32:], p.q, 2)
        integers = quantised_records(p, row)
        words = noise_words(one.noise_secret, context(study.hash, 1, ROSTER), integers.astype("<i8").tobytes())
        expected += integers + DiscreteGaussian(p.share).sample((2,), words)
    assert opened(reduced(total, p.q), p.q).tolist() == expected.tolist()
    for store in stores:
        store.close()


def test_the_cost_is_written_with_the_contribution_and_once(identities, tmp_path):
    study = made_study(identities, attempts=2)
    written, stores = desks(identities, study, tmp_path, values(study))
    desk, store = written[2], stores[2]
    desk.vote(1, ROSTER)
    first = desk.contribute(1, ROSTER)
    assert desk.contribute(1, ROSTER) == first
    assert [(e.attempt, e.roster) for e in store.entries()] == [(1, NAMES)]
    desk.vote(2, ROSTER)
    second = desk.contribute(2, ROSTER)
    assert second.body != first.body
    assert len(store.entries()) == 2
    assert store.verify(identities[2].card).rows == 2
    for one in stores:
        one.close()


def test_data_must_not_change_between_attempts(identities, tmp_path):
    study = made_study(identities, attempts=2)
    for attempt, x in ((1, "3"), (2, "4"), (2, "3")):
        with Store.open(tmp_path / "peer.db", sign=identities[0].sign) as store:
            desk = Desk(identities[0], study, store, study.task.rows([{"x": x}]))
            desk.vote(attempt, ROSTER)
            if (attempt, x) == (2, "4"):
                with pytest.raises(Refused, match="have changed since attempt 1"):
                    desk.contribute(attempt, ROSTER)
            else:
                desk.contribute(attempt, ROSTER)
            assert len(store.entries()) == (2 if (attempt, x) == (2, "3") else 1)


def test_another_process_says_the_same(identities, tmp_path):
    study = made_study(identities)
    written, stores = desks(identities, study, tmp_path, values(study))
    vote, item = written[0].vote(1, ROSTER), written[0].contribute(1, ROSTER)
    for store in stores:
        store.close()
    again, stores = desks(identities, study, tmp_path, values(study))
    assert sorted(again[0].own(), key=lambda one: one.key) == [vote, item]
    assert again[0].contribute(1, ROSTER) == item
    for store in stores:
        store.close()


def test_a_lost_folder_gives_the_same_bytes_for_the_same_data_and_other_noise_for_other_data(identities, tmp_path):
    study = made_study(identities)
    bodies = []
    for folder, x in (("a", "3"), ("b", "3"), ("c", "4")):
        (tmp_path / folder).mkdir()
        with Store.open(tmp_path / folder / "peer.db", sign=identities[0].sign) as store:
            desk = Desk(identities[0], study, store, study.task.rows([{"x": x}]))
            desk.vote(1, ROSTER)
            bodies.append(desk.contribute(1, ROSTER).body)
    assert bodies[0] == bodies[1]
    p = study.protocol_of(ROSTER)
    apart = opened(from_bytes(bodies[2][32:], p.q, 1) - from_bytes(bodies[0][32:], p.q, 1) & np.uint64(p.q - 1), p.q)
    step = quantised(p, np.array([0.2])) - quantised(p, np.array([0.0]))
    assert abs(int(apart[0])) != int(step[0]), "the difference of the data alone would show under one noise"


def test_what_it_did_not_vote_for_gets_nothing(identities, tmp_path):
    study = made_study(identities, attempts=2, absent=1)
    written, stores = desks(identities, study, tmp_path, values(study))
    written[0].vote(1, ROSTER)
    with pytest.raises(Refused, match="did not vote for the roster"):
        written[0].contribute(1, (0, 1, 2, 3))
    with pytest.raises(Refused, match="voted otherwise"):
        written[0].vote(1, (0, 1, 2, 3))
    assert stores[0].entries() == []
    for store in stores:
        store.close()


def test_own_words_are_taken_back_with_their_cost(identities, tmp_path):
    study = made_study(identities)
    written, stores = desks(identities, study, tmp_path, values(study))
    said = [written[1].vote(1, ROSTER), written[1].contribute(1, ROSTER)]
    for store in stores:
        store.close()
    (tmp_path / "old").mkdir()
    with Store.open(tmp_path / "old" / "peer.db", sign=identities[1].sign) as store:
        desk = Desk(identities[1], study, store, study.task.rows([{"x": "9"}]))  # the data have changed since
        with pytest.raises(NetdpError, match="not the roster we voted for"):
            desk.adopt(said[1], None)
        desk.adopt(said[0], None)
        desk.adopt(said[1], ROSTER)
        assert desk.contribute(1, ROSTER).body == said[1].body
        assert len(store.entries()) == 1


def test_nothing_private_is_signed_without_being_written(identities, tmp_path):
    study = made_study(identities)
    written, stores = desks(identities, study, tmp_path, values(study))
    with pytest.raises(NetdpError, match="must be written down first"):
        written[0].sign(Key(ItemKind.CONTRIBUTION, 1, 0), b"anything")
    assert written[0].sign(Key(ItemKind.FALLBACK, 1, 0), b"").signature
    for store in stores:
        store.close()


def test_another_identity_of_the_same_name_is_refused(identities, tmp_path):
    study = made_study(identities)
    other = Identity.create(tmp_path / "ann", "ann")
    with Store.open(tmp_path / "peer.db") as store, pytest.raises(Refused, match="other keys for 'ann'"):
        Desk(other, study, store, values(study)[0])


def test_a_failed_write_hands_nothing_out(identities, tmp_path, monkeypatch):
    study = made_study(identities)
    written, stores = desks(identities, study, tmp_path, values(study))
    written[0].vote(1, ROSTER)

    def broken(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Store, "_append", broken)
    with pytest.raises((NetdpError, sqlite3.OperationalError), match="full"):
        written[0].contribute(1, ROSTER)
    monkeypatch.undo()
    assert written[0].own() == [
        Item(Key(ItemKind.VOTE, 1, 0), roster_body(ROSTER), written[0].vote(1, ROSTER).signature)
    ]
    for store in stores:
        store.close()


@pytest.mark.parametrize("kind", ["ring-sum", "gossip"])
def test_all_noise_of_a_token_or_of_gossip_is_written_at_once(identities, tmp_path, kind):
    study = made_study(identities, kind=kind)
    written, stores = desks(identities, study, tmp_path, values(study))
    written[3].vote(1, ROSTER)
    item = written[3].contribute(1, ROSTER)
    assert item.body == roster_digest(ROSTER), "nothing of it is published"
    numbers = written[3].written(1)
    assert len(numbers) == 8 * study.protocol().rounds
    assert written[3].written(1) == numbers
    for store in stores:
        store.close()


def test_bodies_have_the_length_that_is_allowed(identities, tmp_path):
    study = made_study(identities)
    written, stores = desks(identities, study, tmp_path, values(study))
    written[0].vote(1, ROSTER)
    longest = study.running.longest()
    assert len(written[0].contribute(1, ROSTER).body) == longest[ItemKind.CONTRIBUTION]
    assert len(written[0].vote(1, ROSTER).body) == longest[ItemKind.VOTE]
    for store in stores:
        store.close()


def test_a_total_is_released_once(identities, tmp_path):
    """After a restart a neighbour may hand over another token: two signed totals would look like cheating, and show more."""
    study = made_study(identities, kind="ring-sum")
    written, stores = desks(identities, study, tmp_path, values(study))
    first = written[2].sign(Key(ItemKind.TOTAL, 1, 2), bytes(8))
    again = written[2].sign(Key(ItemKind.TOTAL, 1, 2), b"\1" + bytes(7))
    assert again == first
    assert written[2].sign(Key(ItemKind.TOTAL, 1, 2, 1), b"\1" + bytes(7)).body == b"\1" + bytes(7)
    for store in stores:
        store.close()
