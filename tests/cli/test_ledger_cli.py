"""`netdp ledger show` and `netdp ledger verify`."""

import hashlib
import json
import sqlite3

import pytest

from netdp.peers.identity import Identity
from netdp.peers.ledger.database import SINCE, TRIGGERS, trigger
from netdp.peers.ledger.entries import Entry, spent, total
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.ledger.store import Store

STUDIES = [
    ("waits in the emergency rooms of all hospitals in the north", ("ann", "bob", "cy", "dan"), "party", "2025-12-30"),
    ("heights", ("ann", "bob", "eve"), "party", "2026-02-01"),
    ("ages", ("ann", "cy", "dan", "fay", "gus"), "record", "2026-03-01"),
]


def entries():
    loss = {"kind": "masked-sum", "share": 10**6, "distance": 300, "dimension": 1}
    return [
        Entry(day, hashlib.sha256(name.encode()).hexdigest(), name, 1, roster, "ann", unit, 1e-6, loss)
        for name, roster, unit, day in STUDIES
    ]


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    me = Identity.create(folder, "ann")
    with Store.open(folder / "peer.db", sign=me.sign) as store:
        for entry in entries():
            store.spend(bytes.fromhex(entry.study), 1, (2, 1, 0, 0), entry.name.encode(), b"", entry)
    return folder


def test_show_lists_rows_and_totals_on_80_columns(run, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run("ledger", "show", "--home", str(home))
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines[1:])  # the first names the folder
    assert [line.split()[0] for line in lines if line[:4].strip().isdigit()] == ["1", "2", "3"]
    assert "any 3 parties together" in out
    assert "bob (the most)" in out
    assert "no bound" in out
    assert "single records bound nothing" in out


def test_the_numbers_are_those_of_the_ledger(run, home):
    _, out, _ = run("ledger", "show", "--home", str(home), "--json")
    data = json.loads(out)
    assert data["delta"] == 1e-6
    assert [entry["row"] for entry in data["entries"]] == [1, 2, 3]
    for one in data["totals"] + data["observers"]:
        both = spent(entries(), one["against"], "record", 1e-6)
        assert (one["record"], one["fixed"]["record"]) == both
        assert both.fixed == float(total(entries(), one["against"], "record").epsilon(1e-6)) < both.epsilon
        assert one["party"] is one["fixed"]["party"] is None
    assert [one["against"] for one in data["totals"]] == [1, 2, 3]
    assert {one["against"] for one in data["observers"]} == {"bob", "cy", "dan", "eve", "fay", "gus"}
    assert data["worst"] == "bob"


@pytest.mark.parametrize("old", [1, 2])
def test_old_ledgers_are_read_and_answer_with_the_new_numbers(run, home, old):
    """A file as an earlier version wrote it, its rows to the last byte: they never held an ε, so nothing is out of date."""
    database = sqlite3.connect(home / "peer.db")
    gone = [table for table, since in SINCE.items() if since > old]
    for name in TRIGGERS:
        if name.split("_")[0] in gone:
            database.execute(f"DROP TRIGGER {name}")
    for name in gone:
        database.execute(f"DROP TABLE {name}")
    database.execute(f"PRAGMA user_version = {old}")
    database.commit()
    ((text,),) = database.execute("SELECT entry FROM ledger WHERE row = 2").fetchall()
    database.close()
    assert text == (
        '{"attempt":1,"delta":1e-06,"loss":{"dimension":1,"distance":300,"kind":"masked-sum","share":1000000},"me":"ann",'
        '"name":"heights","roster":["ann","bob","eve"],'
        f'"study":"{hashlib.sha256(b"heights").hexdigest()}","time":"2026-02-01T00:00:00Z","unit":"party"}}'
    )
    status, out, _ = run("ledger", "show", "--home", str(home), "--json")
    assert status == 0
    for one in json.loads(out)["totals"]:
        both = spent(entries(), one["against"], "record", 1e-6)
        assert (one["record"], one["fixed"]["record"]) == both
        assert both.epsilon > both.fixed
    told = json.loads(run("peer", "status", "--home", str(home), "--json")[1])["spent"]
    assert (told["epsilon"]["1"], told["fixed"]["1"]) == spent(entries(), 1, "record", 1e-6)


def test_periods_observers_and_delta(run, home):
    def shown(*words):
        status, out, _ = run("ledger", "show", "--home", str(home), *words, "--json")
        assert status == 0
        return json.loads(out)

    assert [entry["row"] for entry in shown("--year", "2026")["entries"]] == [2, 3]
    first = shown("--year", "2025")
    assert [entry["row"] for entry in first["entries"]] == [1]
    assert first["totals"][0]["party"] == first["totals"][0]["record"] > 0
    assert [entry["row"] for entry in shown("--since", "2026-02-15")["entries"]] == [3]
    nothing = {"record": 0.0, "party": 0.0}
    assert shown("--year", "2020")["totals"][0] == {"against": 1, **nothing, "fixed": nothing}
    bob = shown("--against", "bob")
    both = spent(entries(), "bob", "record", 1e-6)
    fixed = {"record": both.fixed, "party": None}
    assert bob["totals"] == [{"against": "bob", "record": both.epsilon, "party": None, "fixed": fixed}]
    assert [one["against"] for one in shown("--against", "5")["totals"]] == [5]
    assert shown("--delta", "1e-3")["totals"][0]["record"] < bob["totals"][0]["record"]


def test_the_policy_says_which_delta_and_coalitions(run, home):
    text = OwnerPolicy.default_text.replace("1e-6", "1e-5", 1).replace("against = 1", "against = 4", 1)
    (home / "policy.toml").write_text(text)
    data = json.loads(run("ledger", "show", "--home", str(home), "--json")[1])
    assert data["delta"] == 1e-5
    assert [one["against"] for one in data["totals"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--against", "zed"], "no roster names such a party"),
        (["--year", "2026", "--since", "2026-01-01"], "give one of them"),
        (["--since", "spring"], "cannot read 'spring'"),
        (["--delta", "2"], "2"),
    ],
)
def test_what_makes_no_sense_is_refused(run, home, words, message):
    status, _, err = run("ledger", "show", "--home", str(home), *words)
    assert status == 2
    assert message in err


def test_no_ledger_is_not_an_empty_one(run, tmp_path):
    status, _, err = run("ledger", "show", "--home", str(tmp_path))
    assert status == 2
    assert "does not exist" in err


def test_verify(run, home):
    status, out, _ = run("ledger", "verify", "--home", str(home))
    assert status == 0
    assert "3 rows, each with its contribution" in out
    assert "signed by ann" in out
    assert json.loads(run("ledger", "verify", "--home", str(home), "--json")[1])["ok"] is True


def test_a_broken_ledger_is_named_with_its_row_and_not_added_up(run, home):
    database = sqlite3.connect(home / "peer.db")
    database.execute("DROP TRIGGER ledger_same")
    database.execute("UPDATE ledger SET entry = replace(entry, '300', '200') WHERE row = 2")
    database.execute(trigger("ledger_same"))
    database.commit()
    database.close()
    status, out, _ = run("ledger", "verify", "--home", str(home))
    assert status == 1
    assert "BROKEN: row 2 of the ledger" in out
    status, out, _ = run("ledger", "verify", "--home", str(home), "--json")
    assert (status, json.loads(out)["row"]) == (1, 2)
    status, out, err = run("ledger", "show", "--home", str(home))
    assert (status, out) == (2, "")
    assert "row 2 of the ledger" in err


def test_verify_with_somebody_elses_keys(run, home, tmp_path):
    other = tmp_path / "other"
    Identity.create(other, "eve")
    (other / "peer.db").write_bytes((home / "peer.db").read_bytes())
    (other / "peer.db").chmod(0o600)
    status, out, _ = run("ledger", "verify", "--home", str(other))
    assert status == 1
    assert "not signed by eve" in out


def test_alone_it_says_what_there_is(run):
    status, out, _ = run("ledger")
    assert status == 0
    assert "verify" in out
