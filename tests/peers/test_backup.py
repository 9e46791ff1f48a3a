"""Backups: what is in them, what a restored home can and cannot do, and that its ledger never says too little.

The claims are those of docs/proofs/peers.md#backups.
"""

import base64
import hashlib
import json
import math
import shutil
import sqlite3
import stat
import sys
from itertools import combinations
from pathlib import Path

import pytest

from netdp.errors import FileFormatError, NetdpError, Refused
from netdp.peers import backup
from netdp.peers.doctor import ReachCheck, _ledger
from netdp.peers.identity import Identity, alone
from netdp.peers.ledger import continuity as carrying
from netdp.peers.ledger import entries as seams
from netdp.peers.ledger.database import trigger
from netdp.peers.ledger.entries import LedgerBroken, canonical, entry_of, total
from netdp.peers.ledger.store import Store
from netdp.peers.peer import prepare
from netdp.peers.setup import settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task

sys.path.append(str(Path(__file__).parent))

import planted

MEAN = Task(kind="mean", column="x", bounds=(0, 120))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A study of three parties with two attempts, signed by all; their homes; data."""
    folder = tmp_path_factory.mktemp("world")
    draft = Study.plan(
        "waits", MEAN, ["ash", "birch", "cedar"], graph="complete:3", epsilon=2.0, delta=1e-6, attempts=2, absent=1
    )
    study, path = settle(draft, folder)
    (folder / "x.csv").write_text("x\n37.125\n")
    return folder, study, path


@pytest.fixture
def home(world, tmp_path):
    """The home of ash, which has contributed once."""
    folder, study, _ = world
    shutil.copytree(folder / "ash", tmp_path / "ash")
    me = Identity.load(tmp_path / "ash")
    with Store.open(tmp_path / "ash" / "peer.db", sign=me.sign) as store:
        spend(store, study, 1, (0, 1, 2))
        store.put_vote(study.hash, 1, b"the vote", b"signed")
        store.once(study.hash, 1, b"place", b"a register")
        store.set_result(study.hash, {"ok": True, "answer": {"value": 3.5}, "resume": {"single": "STATES"}})
    return tmp_path / "ash"


def spend(store, study, attempt, roster):
    entry = entry_of(study, attempt, roster, 0)
    store.spend(study.hash, attempt, (2, attempt, 0, 0), b"PUBLISHED BODY", b"NOISE NUMBERS", entry, b"ITEM SIGNATURE")


def edited(path, target, change):
    content = json.loads(path.read_text())
    change(content)
    target.write_text(canonical(content))
    return target


def totals(home, study):
    with Store.open(home / "peer.db", read_only=True) as store:
        entries = store.entries()
    return [float(total(entries, k, "party").epsilon(1e-6)) for k in (1, 2)]


# ── what is in it ──


def test_a_backup_holds_no_secret_and_is_its_owners_alone(home, tmp_path):
    made = backup.make(home, tmp_path / "b.json")
    assert stat.S_IMODE((tmp_path / "b.json").stat().st_mode) == 0o600
    content = (tmp_path / "b.json").read_bytes()
    secrets = [b"PUBLISHED BODY", b"NOISE NUMBERS", b"ITEM SIGNATURE", b"a register", b"the vote", b"STATES"]
    secrets += planted.secrets_of(Identity.load(home)).values()
    for secret in secrets:
        assert secret not in content
        assert not [shape for shape in planted.shapes(secret) if shape.encode() in content]
    assert (len(made.entries), made.card.name) == (1, "ash")
    assert backup.read(tmp_path / "b.json").ledger.results  # the answer is in it
    with pytest.raises(Refused, match="is there already"):
        backup.make(home, tmp_path / "b.json")


def test_it_can_be_made_while_the_peer_runs(home, tmp_path):
    with Store.open(home / "peer.db", sign=Identity.load(home).sign):
        assert len(backup.make(home, tmp_path / "b.json").ledger.rows) == 1


def test_a_broken_ledger_is_not_backed_up(home, tmp_path):
    database = sqlite3.connect(home / "peer.db")
    database.execute("DROP TRIGGER ledger_same")
    database.execute("UPDATE ledger SET entry = replace(entry, 'waits', 'waltz')")
    database.execute(trigger("ledger_same"))
    database.commit()
    database.close()
    with pytest.raises(LedgerBroken):
        backup.make(home, tmp_path / "b.json")
    assert not (tmp_path / "b.json").exists()


# ── restoring ──


def test_a_restored_home_has_the_ledger_new_keys_and_nothing_to_send(home, tmp_path, world):
    _, study, _ = world
    backup.make(home, tmp_path / "b.json")
    found, new = backup.restore(tmp_path / "b.json", tmp_path / "new")
    old = Identity.load(home)
    assert new.card.name == "ash"
    for key in ("signing", "agreement", "certificate"):
        assert getattr(new.card, key) != getattr(old.card, key)
    assert new.noise_secret != old.noise_secret
    assert (tmp_path / "new" / "policy.toml").read_text() == (home / "policy.toml").read_text()
    with Store.open(tmp_path / "new" / "peer.db", sign=new.sign) as store:
        checked = store.verify(new.card)
        assert (checked.rows, checked.signed, [seam.rows for seam in checked.seams]) == (1, True, [1])
        assert checked.seams[0].card == old.card
        assert not checked.seams[0].complete
        assert store.contribution(study.hash, 1) is None
        assert store.votes(study.hash) == {}
        assert store.register(study.hash, 1, b"place") is None
        assert "resume" not in store.result(study.hash)
        with pytest.raises(LedgerBroken):
            store.verify(old.card)
    assert totals(tmp_path / "new", study) == totals(home, study)
    assert found.time == checked.seams[0].taken


def test_a_long_result_is_carried_over_to_the_last_bit(home, tmp_path, world):
    """In a home very many numbers are bytes, in a backup they are text."""
    study, counts = world[1], [math.sin(k) / 3 for k in range(5000)]
    with Store.open(home / "peer.db", sign=Identity.load(home).sign) as store:
        store.set_result(study.hash, {"ok": True, "answer": {"counts": counts}, "resume": {"single": "STATES"}})
    backup.make(home, tmp_path / "b.json")
    _, new = backup.restore(tmp_path / "b.json", tmp_path / "new")
    with Store.open(tmp_path / "new" / "peer.db", sign=new.sign) as store:
        assert store.result(study.hash) == {"ok": True, "answer": {"counts": counts}}
    database = sqlite3.connect(tmp_path / "new" / "peer.db")
    assert database.execute("SELECT typeof(result) FROM results").fetchall() == [("blob",)]
    database.close()


def test_a_restored_home_can_run_no_study_of_the_old_card(home, tmp_path, world):
    folder, study, path = world
    backup.make(home, tmp_path / "b.json")
    _, new = backup.restore(tmp_path / "b.json", tmp_path / "new")
    with Store.open(tmp_path / "new" / "peer.db", sign=new.sign) as store:
        carrying.say_complete(store)  # whatever its owner says
    with pytest.raises(Refused, match="the study lists other keys for 'ash' than those in"):
        prepare(tmp_path / "new", path, folder / "x.csv")
    with Store.open(tmp_path / "new" / "peer.db", sign=new.sign) as store, pytest.raises(Refused, match="already"):
        spend(store, study, 1, (0, 1, 2))  # not even by hand


def test_an_open_seam_keeps_the_home_from_everything(home, tmp_path, world):
    folder, _, _ = world
    backup.make(home, tmp_path / "b.json")
    _, new = backup.restore(tmp_path / "b.json", tmp_path / "new")
    # a study made afterwards, with the new card
    draft = Study.plan("later", MEAN, ["ash", "birch", "cedar"], graph="complete:3", epsilon=0.5, delta=1e-6)
    place = tmp_path / "later"
    for name in ("birch", "cedar"):
        shutil.copytree(folder / name, place / name)
    (tmp_path / "new").rename(place / "ash")
    study, path = settle(draft, place)
    assert study.card(0) == new.card
    with pytest.raises(Refused, match=r"restored on .* from a backup of .*netdp ledger admit STUDY\.toml"):
        prepare(place / "ash", path, folder / "x.csv")
    found: list[ReachCheck] = []
    assert len(_ledger(place / "ash", new, found.append)) == 1
    assert (found[0].status, "may be missing" in found[0].said) == ("fail", True)
    with Store.open(place / "ash" / "peer.db", sign=new.sign) as store:
        assert carrying.say_complete(store)
        assert not carrying.say_complete(store)
        assert store.verify(new.card).seams[0].complete
    peer = prepare(place / "ash", path, folder / "x.csv")
    peer.store.close()


def test_nothing_is_restored_over_a_home(home, tmp_path):
    backup.make(home, tmp_path / "b.json")
    for place in (home, tmp_path / "b.json"):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(Refused, match="new folder only"):
            backup.restore(tmp_path / "b.json", place)
        assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "empty").mkdir()
    backup.restore(tmp_path / "b.json", tmp_path / "empty")
    with pytest.raises(Refused, match="new folder only"):
        backup.restore(tmp_path / "b.json", tmp_path / "empty")


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["rows"].clear(),
        lambda c: c["rows"].pop(),
        lambda c: c["rows"][0].__setitem__(3, c["rows"][0][3].replace("waits", "waltz")),
        lambda c: c.update(time="2020-01-01T00:00:00Z"),
        lambda c: c.update(policy=None),
        lambda c: c.update(head=None),
        lambda c: c.update(records=[[1, "{}", ""]]),
        lambda c: c.update(signature=base64.b64encode(bytes(64)).decode()),
        lambda c: c.update(signature=7),
        lambda c: c.update(extra=1),
        lambda c: c.update(netdp_backup=2),
        lambda c: c.pop("card"),
        lambda c: c["card"].update(name="birch"),
        lambda c: c["results"].clear(),
    ],
)
def test_a_changed_backup_is_refused(home, tmp_path, change):
    backup.make(home, tmp_path / "b.json")
    bad = edited(tmp_path / "b.json", tmp_path / "bad.json", change)
    with pytest.raises(FileFormatError):
        backup.restore(bad, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_garbage_is_no_backup(tmp_path):
    for content in (b"", b"[]", b"{", b"\xff" * 100, b"[" * 100_000, b'{"netdp_backup": 1}'):
        (tmp_path / "b.json").write_bytes(content)
        with pytest.raises(FileFormatError):
            backup.read(tmp_path / "b.json")
    with pytest.raises(FileFormatError, match="cannot be read"):
        backup.read(tmp_path / "nothing.json")


def test_a_shorter_ledger_signed_by_other_keys_has_another_fingerprint(home, tmp_path):
    """Who can write the file could sign another one; the fingerprint tells."""
    other = Identity.create(tmp_path / "other", "ash")
    backup.make(tmp_path / "other", tmp_path / "b.json")
    with pytest.raises(Refused, match="not by the one you gave"):
        backup.restore(tmp_path / "b.json", tmp_path / "new", fingerprint=Identity.load(home).card.fingerprint)
    backup.restore(tmp_path / "b.json", tmp_path / "new", fingerprint=other.card.fingerprint.upper().replace(" ", ""))


# ── the seam ──


def test_a_ledger_is_carried_over_twice_and_still_verifies(home, tmp_path, world):
    _, study, _ = world
    backup.make(home, tmp_path / "b1")
    _, second = backup.restore(tmp_path / "b1", tmp_path / "h2")
    with Store.open(tmp_path / "h2" / "peer.db", sign=second.sign) as store:
        carrying.admit(store, carrying.promised(study, store, 0))
        carrying.say_complete(store)
    backup.make(tmp_path / "h2", tmp_path / "b2")
    _, third = backup.restore(tmp_path / "b2", tmp_path / "h3")
    with Store.open(tmp_path / "h3" / "peer.db", sign=third.sign) as store:
        found = store.verify(third.card)
        assert [(seam.rows, seam.complete) for seam in found.seams] == [(1, True), (2, False)]
        assert (found.rows, found.admitted) == (2, (2,))
        later = entry_of(study, 7, (0, 1), 0)
        store.spend(study.hash, 7, (2, 7, 0, 0), b"body", b"", later)
        assert store.verify(third.card).rows == 3


def _tamper(path, *statements):
    database = sqlite3.connect(path)
    for name in ("records_same", "records_kept", "records_next", "ledger_same", "contributions_kept"):
        database.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        database.execute(*statement)
    for name in ("records_same", "records_kept", "records_next", "ledger_same", "contributions_kept"):
        database.execute(trigger(name))
    database.commit()
    database.close()


def test_who_goes_around_the_triggers_breaks_a_signature(home, tmp_path, world):
    _, study, _ = world
    backup.make(home, tmp_path / "b.json")
    _, new = backup.restore(tmp_path / "b.json", tmp_path / "new")
    database = tmp_path / "new" / "peer.db"
    with Store.open(database, sign=new.sign) as store:
        store.spend(study.hash, 2, (2, 2, 0, 0), b"body", b"", entry_of(study, 2, (0, 1), 0))
        ((_, text, signature),) = carrying.taken_out(store).records
    said = json.loads(text)
    closed = seams.complete(1, bytes.fromhex(said["head"]))
    for statements in (
        [("DELETE FROM records",)],
        [("UPDATE records SET text = ?", (canonical({**said, "taken": "2030-01-01T00:00:00Z"}),))],
        [("UPDATE records SET text = ?", (canonical({**said, "rows": 2}),))],
        [("UPDATE records SET signature = ?", (bytes(64),))],
        [("UPDATE records SET number = 2",)],
        [("INSERT INTO records VALUES (2, ?, ?)", (closed, signature))],
        [("UPDATE records SET text = '{}'",)],
        [("UPDATE records SET text = 7",)],
        [("DELETE FROM contributions",)],  # of the row after the seam
    ):
        copy = tmp_path / "copy.db"
        shutil.copy(database, copy)
        _tamper(copy, *statements)
        with Store.open(copy, read_only=True) as store, pytest.raises(LedgerBroken):
            store.verify(new.card)
    with Store.open(database, read_only=True) as store:
        assert store.verify(new.card).rows == 2


# ── what was lost ──


def of(study, attempts):
    """A ledger in memory with these attempts of a study, for `promised`."""

    class Ledger:
        def entries_of(self, name):
            return [entry_of(study, attempt, roster, 0) for attempt, roster in attempts if name == study.hash]

    return Ledger()


def above(entries, truth, observers, unit="party"):
    """Whether the total of some entries lies above the true one, for all these observers."""
    for against in observers:
        mine, true = total(entries, against, unit), total(truth, against, unit)
        assert float(mine.epsilon(1e-6)) >= float(true.epsilon(1e-6)) * (1 - 1e-9), against  # each is read to 1e-11


@pytest.mark.parametrize(
    ("kind", "n", "settings"),
    [
        ("masked-sum", 4, {"attempts": 2, "absent": 1}),
        ("masked-sum", 3, {"attempts": 1, "absent": 0}),
        ("ring-sum", 4, {}),
        ("ring-histogram", 4, {"absent": 1, "colluders": 1}),
        ("randomized-gossip", 4, {"absent": 1}),
    ],
)
def test_what_is_admitted_is_never_below_what_may_have_been_spent(kind, n, settings):
    """Every roster that is allowed, every party of it by name, and every number of parties that the promise speaks of."""
    task = Task(kind="histogram", column="x", categories=("a", "b")) if kind == "ring-histogram" else MEAN
    names = [f"p{u}" for u in range(n)]
    graph = f"ring:{n}" if kind == "ring-sum" else f"complete:{n}"
    study = Study.plan("s", task, names, kind=kind, graph=graph, epsilon=4.0, delta=1e-6, **{"colluders": 2} | settings)
    fewest, attempts = study.smallest_roster, study.privacy.attempts
    rosters = [(0, *rest) for m in range(fewest, n + 1) for rest in combinations(range(1, n), m - 1)]
    admitted = carrying.promised(study, of(study, []), 0)
    each = (
        len(admitted) == attempts
    )  # one row per attempt: then composing them keeps the order, and one is enough to look at
    for roster in rosters:
        truth = [entry_of(study, attempt, roster, 0) for attempt in range(1, 1 + (1 if each else attempts))]
        above(admitted[:1], truth, [1, study.privacy.colluders, *names[1:]])
    assert len(carrying.promised(study, of(study, [(1, rosters[0])]), 0)) == (attempts == 2)
    assert {name for entry in admitted for name in entry.roster} == set(names)
    # and not needlessly far above: the promise
    assert float(total(admitted, study.privacy.colluders, "party").epsilon(1e-6)) <= 1.05 * study.privacy.epsilon


def test_after_admission_the_totals_are_never_below_the_truth(home, tmp_path, world):
    """Whatever happened after the backup: another attempt of the study, with either roster, and all of another study."""
    _, study, _ = world
    other = study.replace(name="another")
    backup.make(home, tmp_path / "b.json")
    for number, (attempt, roster) in enumerate([(2, (0, 1, 2)), (3, (0, 2))]):
        truth = tmp_path / f"truth{number}"
        shutil.copytree(home, truth)
        with Store.open(truth / "peer.db", sign=Identity.load(truth).sign) as store:
            spend(store, study, attempt, roster)
            store.spend(other.hash, 1, (2, 1, 0, 0), b"b", b"", entry_of(other, 1, roster, 0))
        new = tmp_path / f"new{number}"
        _, identity = backup.restore(tmp_path / "b.json", new)
        with Store.open(new / "peer.db", sign=identity.sign) as store:
            assert carrying.admit(store, carrying.promised(study, store, 0)) == 1  # one attempt is in the backup
            assert carrying.admit(store, carrying.promised(other, store, 0)) == 2
            assert carrying.promised(other, store, 0) == []
            assert carrying.is_admitted(store, other.hash)
            assert len(carrying.promised(other, store, 0, times=2)) == 2
            found = store.verify(identity.card)
            assert (found.rows, found.admitted) == (4, (2, 3, 4))
            mine = store.entries()
        with Store.open(truth / "peer.db", read_only=True) as store:
            above(mine, store.entries(), [1, "cedar"])


def test_a_study_entered_by_hand_is_not_run(tmp_path, world):
    """Also with the card that it lists: what was published is not here."""
    folder, study, path = world
    home = tmp_path / "ash"
    shutil.copytree(folder / "ash", home)
    me = Identity.load(home)
    with Store.open(home / "peer.db", sign=me.sign) as store:
        carrying.admit(store, carrying.promised(study, store, 0))
        with pytest.raises(Refused, match="already"):
            spend(store, study, 2, (0, 1, 2))
    with pytest.raises(Refused, match="entered by hand"):
        prepare(home, path, folder / "x.csv")


def test_rows_without_contribution_are_written_by_their_owner_only(home):
    with Store.open(home / "peer.db") as store, pytest.raises(NetdpError, match="identity"):
        carrying.admit(store, [])


# ── copies ──


def test_a_copy_of_the_folder_does_not_run_beside_the_original(tmp_path, world):
    folder, _, path = world
    for name in ("original", "copy"):
        shutil.copytree(folder / "ash", tmp_path / name)
    first = prepare(tmp_path / "original", path, folder / "x.csv")
    try:
        with pytest.raises(Refused, match="very same keys, from another folder"):
            prepare(tmp_path / "copy", path, folder / "x.csv")
    finally:
        first.store.close()
    prepare(tmp_path / "copy", path, folder / "x.csv").store.close()


def test_the_name_that_is_held_tells_nothing_of_the_keys(home):
    me = Identity.load(home)
    with alone(me) as held:
        name = held.getsockname()
        assert len(name) == 39
        for secret in (me.noise_secret, me.card.signing, hashlib.sha256(me.noise_secret).digest()):
            assert secret.hex()[:16].encode() not in name
        with pytest.raises(Refused, match="End one of them"):
            alone(me)
    alone(me).close()


def test_keys_that_were_used_do_not_begin_again_without_their_memory(tmp_path, world):
    folder, _, path = world
    shutil.copytree(folder / "ash", tmp_path / "home")
    prepare(tmp_path / "home", path, folder / "x.csv").store.close()
    prepare(tmp_path / "home", path, folder / "x.csv").store.close()
    (tmp_path / "other").mkdir()
    for name in ("keys", "policy.toml"):  # the keys alone, elsewhere
        (shutil.copytree if name == "keys" else shutil.copy)(tmp_path / "home" / name, tmp_path / "other" / name)
    with pytest.raises(Refused, match="make a new home from a backup"):
        prepare(tmp_path / "other", path, folder / "x.csv")
    assert not (tmp_path / "other" / "peer.db").exists()
    (tmp_path / "home" / "peer.db").unlink()
    with pytest.raises(Refused, match=r"the keys in .* were used before"):
        prepare(tmp_path / "home", path, folder / "x.csv")
