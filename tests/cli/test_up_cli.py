"""`netdp up`: real processes, one command, one answer; refusals come before the work."""

import json

import pytest

from netdp.peers.study import Study
from netdp.peers.study.task import Task

NAMES = ("ann", "bob", "cy", "dee")


@pytest.fixture
def study(tmp_path):
    """A draft for four parties, and one table with everybody's number."""
    task = Task(kind="mean", column="x", bounds=(0, 10))
    draft = Study.plan(
        "four", task, NAMES, graph="ring:4", epsilon=2.0, delta=1e-6, timing={"gather": 120.0, "patience": 60.0}
    )
    path = tmp_path / "study.toml"
    draft.write(path)
    rows = [f"{name},{u + 1}" for u, name in enumerate(NAMES)]
    (tmp_path / "numbers.csv").write_text("\n".join(["party,x", *rows]) + "\n", "utf-8")
    return path


def test_one_command_runs_everybody_and_draws_it(run, study, tmp_path):
    folder, plot = tmp_path / "homes", tmp_path / "out.html"
    status, out, err = run("up", str(study), "--folder", str(folder), "--plot", str(plot), "--json")
    assert status == 0, err
    told = json.loads(out)
    assert told["ok"]
    assert told["roster"] == list(NAMES)
    assert told["plot"] == str(plot)
    assert told["guarantee"]["spent_epsilon"]["1"] <= told["guarantee"]["promised_epsilon"] <= 2
    page = plot.read_text("utf-8")
    assert all(f'"{name}"' in page for name in NAMES)
    assert {p.name for p in folder.iterdir()} >= {*NAMES, "study.toml", "study.signatures"}
    # the homes stay: a study with keys runs again in its folder only, and a party's ledger is there to be read
    status, out, _ = run("ledger", "show", "--home", str(folder / "ann"))
    assert status == 0
    assert "four" in out
    status, _, err = run("up", str(folder / "study.toml"), "--data", str(tmp_path / "numbers.csv"))
    assert status == 2
    assert "--folder" in err


@pytest.mark.parametrize("name", ["out.jpg", "nowhere/out.html"])
def test_a_picture_that_cannot_be_drawn_is_refused_before_anybody_starts(run, study, tmp_path, name):
    status, out, err = run("up", str(study), "--plot", str(tmp_path / name), "--folder", str(tmp_path / "homes"))
    assert (status, out) == (2, "")
    assert name.partition("/")[0] in err
    assert not (tmp_path / "homes").exists()


def test_it_asks_whose_data_when_there_is_doubt(run, study, tmp_path):
    (tmp_path / "more.csv").write_text("party,x\n", "utf-8")
    status, _, err = run("up", str(study))
    assert status == 2
    assert "2 CSV files" in err
    assert "--data" in err


def test_rows_of_strangers_are_refused(run, study, tmp_path):
    with (tmp_path / "numbers.csv").open("a") as file:
        file.write("eve,3\n")
    status, _, err = run("up", str(study))
    assert status == 2
    assert "'eve' is no party" in err


def test_a_bad_cell_is_refused_before_anybody_starts_with_the_users_own_line(run, study, tmp_path):
    (tmp_path / "numbers.csv").write_text("party,x\nann,1\nbob,many\ncy,3\ndee,4\n")
    status, out, err = run("up", str(study))
    assert (status, out) == (2, "")
    assert f"the data of bob: {tmp_path / 'numbers.csv'}:3: column 'x' holds 'many'" in err


def test_two_runs_do_not_share_a_folder(run, study, tmp_path):
    import fcntl

    (tmp_path / "homes").mkdir()
    with open(tmp_path / "homes" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, _, err = run("up", str(study), "--folder", str(tmp_path / "homes"))
    assert status == 2
    assert "another `netdp up` runs in" in err


def test_a_path_that_cannot_be_written_is_one_line(run, study, tmp_path):
    status, _, err = run("up", str(study), "--record", str(tmp_path / "numbers.csv"))
    assert status == 2
    assert err.startswith("netdp: ")
    assert "Traceback" not in err


def test_terminated_it_leaves_no_party_and_no_folder(study, tmp_path):
    """Nobody contributes, so the run waits; then it is ended from outside."""
    import os
    import shutil
    import signal
    import subprocess
    import sys
    import tempfile
    import time
    from pathlib import Path

    short = Path(tempfile.mkdtemp())  # a path of sockets has a hundred letters at most
    environment = {**os.environ, "TMPDIR": str(short)}
    hold = "import netdp.peers.party as p; p.Party._contribute = lambda self: None\n"
    (tmp_path / "sitecustomize.py").write_text(hold)
    environment["PYTHONPATH"] = str(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "netdp", "up", str(study)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while not list(short.glob("netdp-up-*/*/peer.db")) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
        assert process.returncode == 143
        assert list(short.glob("netdp-up-*")) == []
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(short, ignore_errors=True)
