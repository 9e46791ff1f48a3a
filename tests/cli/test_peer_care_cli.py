"""`netdp peer status`, `backup`, `restore`, and `netdp ledger admit`."""

import json
import re
import shutil
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from netdp.peers.identity import Identity
from netdp.peers.ledger.entries import entry_of, spent
from netdp.peers.ledger.store import Store
from netdp.peers.setup import settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy.wording import readable

sys.path.append(str(Path(__file__).parent))  # children of the fork server get this path, too

from started import Started


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settled")
    draft = Study.plan("Waits", Task(kind="mean", column="x", bounds=(0, 120)), ["ash", "birch", "cedar"],
                       graph="complete:3", epsilon=2.0, delta=1e-6, attempts=2, absent=1)  # fmt: skip
    study, path = settle(draft, folder)
    (folder / "x.csv").write_text("x\n31\n")
    return folder, study, path


@pytest.fixture
def place(settled, tmp_path, monkeypatch):
    """A folder with the home of ash, which has contributed once, and the study."""
    folder, study, path = settled
    shutil.copytree(folder / "ash", tmp_path / "home")
    shutil.copy(path, tmp_path / "study.toml")
    shutil.copytree(path.with_suffix(".signatures"), tmp_path / "study.signatures")
    shutil.copy(folder / "x.csv", tmp_path)
    with Store.open(tmp_path / "home" / "peer.db", sign=Identity.load(tmp_path / "home").sign) as store:
        store.spend(study.hash, 1, (2, 1, 0, 0), b"body", b"", entry_of(study, 1, (0, 1, 2), 0))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_whole_way_from_a_backup_to_a_home_that_may_run_again(run, place):
    status, out, _ = run("peer", "backup", "--home", "home", "--to", "b.json")
    assert (status, "1 row of the ledger" in out, "no secret keys" in out) == (0, True, True)
    old = Identity.load(place / "home").card.fingerprint
    assert old[:39] in out
    assert run("peer", "backup", "--home", "home", "--to", "b.json")[0] == 2
    assert run("peer", "restore", "b.json", "--home", "home")[0] == 2
    assert run("peer", "restore", "b.json", "--home", "new", "--fingerprint", "abcd")[0] == 2
    status, out, _ = run("peer", "restore", "b.json", "--home", "new", "--fingerprint", old)
    new = Identity.load(place / "new").card
    assert status == 0
    assert "MISSING: whatever was spent after" in out
    assert old[:39] in out
    assert new.fingerprint[:39] in out
    assert json.loads((place / "new" / "card.json").read_text()) == new.to_dict()
    # it runs nothing: neither the old study nor, while the seam is open, anything else
    status, _, err = run("peer", "run", "study.toml", "--home", "new", "--data", "x.csv")
    assert status == 2
    assert "netdp ledger admit --complete --home new" in err
    _, out, _ = run("ledger", "verify", "--home", "new")
    assert "seam: row 1 comes from a backup of" in out
    assert "OPEN: what was spent between" in out
    status, out, _ = run("ledger", "admit", "study.toml", "--home", "new")
    assert (status, '"Waits": 1 row entered: all that it could still cost' in out) == (0, True), out
    status, out, _ = run("ledger", "admit", "study.toml", "--complete", "--home", "new", "--json")
    told = json.loads(out)
    assert (status, told["entered"], told["rows"], told["admitted"]) == (0, {"study.toml": 0}, 2, [2])
    assert [seam["complete"] for seam in told["seams"]] == [True]
    status, _, err = run("peer", "run", "study.toml", "--home", "new", "--data", "x.csv")
    assert (status, "entered by hand" in err) == (2, True)
    _, out, _ = run("ledger", "show", "--home", "new")
    assert "entered by hand: row 2" in out
    _, out, _ = run("ledger", "verify", "--home", "new")
    assert "OPEN" not in out
    assert "2 rows, each with its contribution, but for those named below" in out
    assert run("ledger", "verify", "--home", "home", "--json")[1].count('"seams": []') == 1


def test_only_a_study_that_all_have_signed_and_that_lists_this_party_is_admitted(run, place, tmp_path):
    before = (place / "home" / "peer.db").read_bytes()
    assert run("ledger", "admit", "--home", "home")[0] == 2
    (place / "study.signatures" / "cedar.sig").unlink()
    status, _, err = run("ledger", "admit", "study.toml", "--home", "home")
    assert (status, "cedar: has not signed" in err) == (2, True)
    stranger = Identity.create(tmp_path / "stranger", "ash")
    Store.open(tmp_path / "stranger" / "peer.db", sign=stranger.sign).close()
    shutil.copytree(place / "study.signatures", tmp_path / "x")
    status, _, err = run("ledger", "admit", "study.toml", "--home", "stranger")
    assert status == 2
    assert (place / "home" / "peer.db").read_bytes() == before
    status, out, _ = run("ledger", "admit", "--complete", "--home", "home")
    assert (status, "no backup was restored here" in out) == (0, True)


def test_a_card_that_was_never_of_this_home_is_not_admitted(run, place, tmp_path):
    stranger = Identity.create(tmp_path / "stranger", "ash")
    Store.open(tmp_path / "stranger" / "peer.db", sign=stranger.sign).close()
    status, _, err = run("ledger", "admit", "study.toml", "--home", "stranger")
    assert (status, "has a card of this home, now or before" in err) == (2, True)


def test_status_without_a_home_or_a_run(run, tmp_path):
    assert run("peer", "status", "--home", str(tmp_path / "nothing"))[0] == 2
    status, out, _ = run("peer", "status", "--home", str(tmp_path), "--json")
    assert (status, json.loads(out)) == (
        3,
        {"running": False, "status": "never", "pid": None, "last": None, "spent": None},
    )


def test_status_states_what_the_whole_ledger_has_cost_whatever_was_chosen_and_if_all_had_been_fixed(run, place):
    with Store.open(place / "home" / "peer.db", read_only=True) as store:
        both = {k: spent(store.entries(), k, "party", 1e-6) for k in (1,)}
    status, out, _ = run("peer", "status", "--home", "home")
    assert status == 3
    assert "spent       1 entry in all; epsilon at delta = 1e-06 about all data here, at most:" in out
    assert "whatever was    if all had been" in out
    assert "chosen   fixed beforehand" in out
    assert re.search(rf"any single party +{readable(both[1].epsilon)} +{readable(both[1].fixed)}$", out, re.M), out
    told = json.loads(run("peer", "status", "--home", "home", "--json")[1])["spent"]
    assert (told["entries"], told["delta"], told["unit"]) == (1, 1e-6, "party")
    assert (told["epsilon"]["1"], told["fixed"]["1"]) == both[1]
    assert told["epsilon"]["1"] > told["fixed"]["1"] > 0
    assert max(map(len, out.splitlines())) <= 100


def test_metrics_that_others_could_read_are_refused(run, place):
    words = ("peer", "run", "study.toml", "--home", "home", "--data", "x.csv", "--metrics")
    status, _, err = run(*words, "0.0.0.0:9101")
    assert (status, "--metrics-anywhere" in err) == (2, True)
    status, _, err = run("peer", "run", "study.toml", "--home", "home", "--data", "x.csv", "--log", "no/folder/log")
    assert (status, "give another --log FILE" in err) == (2, True)


def test_a_second_signal_ends_at_once(place):
    """Of a peer whose orderly end hangs. The killed one is not taken for one that ended."""
    code = textwrap.dedent("""
        import sys
        from netdp.cli import main
        from netdp.peers.peer import Peer

        Peer.stop = lambda self: print("asked", file=sys.stderr, flush=True)
        sys.argv = ["netdp", "peer", "run", "study.toml", "--home", "home", "--data", "x.csv"]
        main()
    """)
    process = Started([], place, script=code)
    try:
        seen = []
        for line in process.stderr:
            seen.append(line)
            if "listening" in line:
                process.send_signal(signal.SIGTERM)
            if "asked" in line:
                process.send_signal(signal.SIGTERM)
                break
        rest = process.communicate(timeout=240)[1]
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 143, "".join(seen) + rest
    assert "ended at once; what was published is written down" in rest
    from netdp.peers.status import look

    assert look(place / "home").word == "killed"
