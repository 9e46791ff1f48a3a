"""Registers that only rise: what a party publishes in one iteration after the other (docs/proofs/peers.md#training-on-peers)."""

import sqlite3

import pytest

from netdp.errors import Refused
from netdp.peers.ledger.database import FORMAT, SINCE, TRIGGERS, StoreFailed
from netdp.peers.ledger.store import SHUT, Store

STUDY = b"s" * 32


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "peer.db") as one:
        yield one


def rise(store, number, body=b"", place=b"step"):
    return store.rise(STUDY, 1, number, {place: body})[place]


def test_the_first_body_of_a_number_stays(store):
    assert rise(store, 1, b"a") == b"a"
    assert rise(store, 1, b"b") == b"a"
    assert store.stands(STUDY, 1, b"step", 1) == b"a"
    assert store.stands(STUDY, 1, b"step", 2) is None


def test_it_only_rises_and_keeps_two(store):
    for number in (1, 2, 5):
        rise(store, number, bytes([number]))
    assert store.risen(STUDY, 1, b"step") == [(5, b"\5"), (2, b"\2")]
    assert rise(store, 2, b"other") == b"\2"
    for number in (1, 3, 4):
        with pytest.raises(Refused, match="stands at number 5"):
            rise(store, number, b"late")
    assert store.risen(STUDY, 1, b"other") == []
    rise(store, 1, b"x", place=b"other")
    assert store.risen(STUDY, 2, b"step") == store.risen(b"t" * 32, 1, b"step") == []


def test_several_rise_together_or_not_at_all(store):
    rise(store, 4, b"ahead", place=b"state")
    with pytest.raises(Refused):
        store.rise(STUDY, 1, 3, {b"step": b"y", b"state": b"s"})
    assert store.risen(STUDY, 1, b"step") == []
    assert store.rise(STUDY, 1, 4, {b"step": b"y", b"state": b"s"}) == {b"step": b"y", b"state": b"ahead"}


def test_shut_is_for_good(store):
    rise(store, 3, b"y")
    rise(store, SHUT)
    with pytest.raises(Refused, match="shut for good"):
        rise(store, 4, b"more")
    assert store.risen(STUDY, 1, b"step") == [(SHUT, b""), (3, b"y")]


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE rising SET body = x'00'",
        "DELETE FROM rising",
        "DELETE FROM rising WHERE number = 1",
        "INSERT INTO rising VALUES (x'73', 1, x'73', 1, x'00')",
        "INSERT OR REPLACE INTO rising VALUES (x'73', 1, x'73', 2, x'00')",
    ],
)
def test_the_database_itself_refuses(tmp_path, deed):
    with Store.open(tmp_path / "peer.db") as store:
        for number in (1, 2):
            store.rise(b"s", 1, number, {b"s": b"y"})
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store._database.execute(deed)
        assert store.risen(b"s", 1, b"s") == [(2, b"y"), (1, b"y")]


@pytest.mark.parametrize("old", [1, 2, 3])
def test_older_files_are_brought_up_to_date(tmp_path, old):
    """And may be looked at before; a file of the future is refused."""
    path = tmp_path / "peer.db"
    Store.open(path).close()
    database = sqlite3.connect(path)
    tables = [table for table, since in SINCE.items() if since > old]
    for name in TRIGGERS:
        if name.split("_")[0] in tables:
            database.execute(f"DROP TRIGGER {name}")
    for table in tables:
        database.execute(f"DROP TABLE {table}")
    database.execute(f"PRAGMA user_version = {old}")
    database.commit()
    database.close()
    with Store.open(path, read_only=True) as store:
        store.verify()
    with Store.open(path) as store:
        store.verify()
        assert rise(store, 1, b"y") == b"y"
        assert store.once(STUDY, 1, b"place", b"body") == b"body"
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.commit()
    database.close()
    with pytest.raises(StoreFailed, match="format"):
        Store.open(path)


def test_room_is_used_again(store):
    """A hundred iterations of a large model take no more room than a few."""
    for number in range(1, 8):
        rise(store, number, bytes(100_000))
    (few,) = store._one_row("PRAGMA page_count")
    for number in range(8, 60):
        rise(store, number, bytes(100_000))
    assert store._one_row("PRAGMA page_count")[0] <= few + 2
