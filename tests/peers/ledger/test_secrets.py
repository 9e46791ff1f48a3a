"""Secrets of an attempt: kept once, erased in the transaction that makes them superfluous, and then nowhere in the folder."""

import secrets

import pytest

from netdp.errors import Refused
from netdp.peers.ledger.store import Store, StoreFailed

STUDY = b"s" * 32


def bytes_in(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "peer.db") as store:
        yield store


def test_a_secret_is_kept_with_what_is_said_of_it(store, tmp_path):
    secret = secrets.token_bytes(32)
    store.settle(STUDY, 1, {b"keys": b"said"}, secrets={b"key": secret})
    assert store.secret(STUDY, 1, b"key") == secret
    assert store.register(STUDY, 1, b"keys") == b"said"
    assert secret in bytes_in(tmp_path)  # the test below can fail


def test_what_is_erased_is_in_no_file_any_more(store, tmp_path):
    kept = {place: secrets.token_bytes(size) for place, size in ((b"key", 32), (b"shares", 20_000))}
    store.settle(STUDY, 1, {}, secrets=kept)
    store.settle(STUDY, 1, {b"done": b""}, erased=[b"key", b"shares"])
    left = bytes_in(tmp_path)
    assert not any(
        secret[start : start + 16] in left for secret in kept.values() for start in range(0, len(secret), 16)
    )
    assert store.secret(STUDY, 1, b"key") is None


def test_what_was_erased_is_never_kept_again(store):
    store.settle(STUDY, 1, {}, secrets={b"key": b"one"}, erased=[b"other"])
    store.settle(STUDY, 1, {}, erased=[b"key"])
    for place in (b"key", b"other"):
        with pytest.raises(StoreFailed, match="secrets is append-only"):
            store.settle(STUDY, 1, {}, secrets={place: b"two"})
        store._ended = None


def test_a_secret_cannot_be_changed_or_taken_away_but_by_erasing(store):
    store.settle(STUDY, 1, {}, secrets={b"key": b"one"})
    for statement in ("UPDATE secrets SET body = X'00'", "DELETE FROM secrets"):
        with pytest.raises(Exception, match="append-only"):
            store._database.execute(statement)
    store.settle(STUDY, 1, {}, erased=[b"key"])
    store.settle(STUDY, 1, {}, erased=[b"key"])  # asked again, nothing happens
    store.verify()


def test_nothing_is_half_written(store):
    store.settle(STUDY, 1, {b"said": b"one"}, secrets={b"key": b"one"})
    with pytest.raises(Refused, match="said once"):
        store.settle(STUDY, 1, {b"new": b"", b"said": b"two"}, erased=[b"key"])
    assert store.register(STUDY, 1, b"new") is None
    assert store.secret(STUDY, 1, b"key") == b"one"


def test_registers_are_listed_by_how_their_places_begin(store):
    for attempt, place in ((2, b"ballot 2"), (1, b"ballot 1"), (1, b"keys")):
        store.settle(STUDY, attempt, {place: place.upper()})
    assert store.registers(STUDY, b"ballot ") == [(1, b"ballot 1", b"BALLOT 1"), (2, b"ballot 2", b"BALLOT 2")]
    assert store.registers(b"another", b"") == []


def test_secrets_outlive_the_process_and_erasure_does_too(tmp_path):
    with Store.open(tmp_path / "peer.db") as store:
        store.settle(STUDY, 1, {}, secrets={b"key": b"one", b"gone": b"two"})
        store.settle(STUDY, 1, {}, erased=[b"gone"])
    with Store.open(tmp_path / "peer.db") as store:
        assert store.secret(STUDY, 1, b"key") == b"one"
        assert store.secret(STUDY, 1, b"gone") is None
        store.verify()
