"""`netdp peer`: its keys, its refusals, and five of them, as docs/howto/deploy.md tells it, with real processes on loopback."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from netdp.peers.identity import Card

sys.path.append(str(Path(__file__).parent))  # children of the fork server get this path, and import started from it

from started import Started

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "deploy.md"
NAMES = ("ash", "birch", "cedar", "elm", "fir")
SECONDS = 240
"""A bound on everything that runs here; on a quiet machine a tenth of it is enough."""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def processes():
    """Start commands in folders, as typed or forked; whatever still runs at the end is ended by its id."""
    running = []

    def start(words, folder, typed=False):
        process = Started(words, folder) if not typed else subprocess.Popen(
            [sys.executable, "-m", "netdp", *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        running.append(process)
        return process

    try:
        yield start
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def finish(process, seconds=SECONDS):
    """Its status, output and errors."""
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


@pytest.fixture
def party(run, tmp_path):
    home = tmp_path / "home"
    assert run("peer", "init", "ash", "--home", str(home))[0] == 0
    return home


@pytest.fixture
def pair(run, tmp_path, monkeypatch):
    """Two parties in two folders, a study signed by both; the folders."""
    monkeypatch.chdir(tmp_path)
    ports = free_ports(2)
    for name, minutes in (("ash", 31), ("birch", 44)):
        Path(name).mkdir()
        assert run("peer", "init", name, "--home", f"{name}/home")[0] == 0
        Path(name, "waits.csv").write_text(f"minutes\n{minutes}\n")
    cards = [word for name in ("ash", "birch") for word in ("--card", f"{name}/home/card.json")]
    where = [word for name, port in zip(("ash", "birch"), ports, strict=True)
             for word in ("--address", f"{name}=127.0.0.1:{port}")]  # fmt: skip
    asked = ("--task", "mean", "--column", "minutes", "--bounds", "0,120", "--epsilon", "0.9", "--patience", "12")
    assert run("study", "new", "Two", *asked, *cards, *where, "-o", "ash/study.toml")[0] == 0
    for name in ("ash", "birch"):
        assert run("study", "sign", "ash/study.toml", "--home", f"{name}/home")[0] == 0
    shutil.copy("ash/study.toml", "birch")
    shutil.copytree("ash/study.signatures", "birch/study.signatures")
    return tmp_path / "ash", tmp_path / "birch"


# ── keys ──


def test_init_makes_a_party_and_tells_no_secret(run, tmp_path):
    home = tmp_path / "home"
    status, out, err = run("peer", "init", "ash", "--home", str(home), "--days", "100")
    assert (status, err) == (0, "")
    card = Card.from_dict(json.loads((home / "card.json").read_text()))
    assert card.fingerprint[:39] in out
    assert card.fingerprint[40:] in out
    assert f"{card.valid[1]:%Y-%m-%d}" in out
    assert "policy.toml" in out
    assert stat.S_IMODE((home / "keys").stat().st_mode) == 0o700
    for file in (home / "keys").iterdir():
        if file.name != "card.json":
            assert not any(line in out for line in file.read_text().split() if len(line) > 20)


def test_init_overwrites_nothing(run, party):
    before = {path: path.read_bytes() for path in party.rglob("*") if path.is_file()}
    status, _, err = run("peer", "init", "birch", "--home", str(party))
    assert status == 2
    assert "is there already" in err
    assert {path: path.read_bytes() for path in party.rglob("*") if path.is_file()} == before


def test_init_keeps_a_policy_that_is_there(run, tmp_path):
    (tmp_path / "policy.toml").write_text("# mine\n")
    status, out, _ = run("peer", "init", "ash", "--home", str(tmp_path))
    assert status == 0
    assert "stays as it is" in out
    assert (tmp_path / "policy.toml").read_text() == "# mine\n"


def test_the_card_again_even_if_its_file_is_gone(run, party):
    first = json.loads((party / "card.json").read_text())
    (party / "card.json").unlink()
    status, out, _ = run("peer", "card", "--home", str(party), "--json")
    told = json.loads(out)
    assert status == 0
    assert told["card"] == first == json.loads((party / "card.json").read_text())
    assert told["fingerprint"] == Card.from_dict(first).fingerprint


# ── refusals ──


def test_a_study_over_the_limits_is_refused_with_the_table(run, pair, monkeypatch):
    monkeypatch.chdir(pair[0])
    policy = Path("home/policy.toml")
    policy.write_text(policy.read_text().replace("epsilon = 1.0", "epsilon = 0.25"))
    status, out, err = run("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv")
    assert (status, out) == (2, "")
    assert re.search(r"any 1 party, this study +0\.9\d* +0 +0\.9\d* +0\.250 +0\.6", err), err
    assert re.search(r"any 1 party, in all .* 10\.0 +–", err), err
    status, out, _ = run("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv", "--json")
    told = json.loads(out)
    assert status == 2
    assert (told["ok"], told["status"], [limit["holds"] for limit in told["limits"]]) == (
        False,
        "refused",
        [False, True, True],
    )


def test_a_missing_signature_and_a_wrong_file_are_refusals(run, pair, monkeypatch):
    monkeypatch.chdir(pair[0])
    status, _, err = run("peer", "run", "study.toml", "--home", "home", "--data", "nothing.csv")
    assert (status, "nothing.csv" in err) == (2, True)
    Path("study.signatures/birch.sig").unlink()
    status, _, err = run("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv")
    assert (status, "birch: has not signed" in err) == (2, True)


# ── ends ──


def test_alone_it_ends_without_an_answer_and_nothing_is_published(run, pair, monkeypatch):
    monkeypatch.chdir(pair[0])
    study = Path("study.toml")
    study.write_text(re.sub(r"gather = \S+", "gather = 1.0", study.read_text()))
    for home in ("home", "../birch/home"):
        assert run("study", "sign", "study.toml", "--home", home)[0] == 0
    before = signal.getsignal(signal.SIGTERM)
    status, out, _ = run("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv")
    assert status == 3
    assert out.startswith("No answer: ")
    assert "ash published nothing." in out
    assert signal.getsignal(signal.SIGTERM) is before
    _, out, _ = run("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv", "--json")
    told = json.loads(out)
    assert (told["status"], told["contributed"], told["spent"]["epsilon"]) == ("ended", 0, {"1": 0.0})


@pytest.mark.parametrize(
    ("task", "total", "words"),
    [
        ({"kind": "sum", "column": "x", "bounds": (0, 10)}, [0.5], ["over the parties, clipped to 0 … 10: 17.5"]),
        ({"kind": "variance", "column": "x", "bounds": (-1, 1)}, [0.0, -1e3], [": 0", "Mean: 0", "outweighs"]),
        ({"kind": "mean", "column": "x", "bounds": (0, 10), "unit": "record", "max_records": 9}, [1.0, 0.1],
         ["unknown, since the noisy number of records"]),
        ({"kind": "mean", "column": "x", "bounds": (0, 10), "unit": "record", "max_records": 9}, [0.0, 1e6],
         [": 5", "Records, with noise: 1,000,000.0", "by up to about"]),
        ({"kind": "histogram", "column": "x", "categories": ("red", "blue")}, [1.0, 3.25], ["  red ", "3.2", "moves each"]),
        ({"kind": "table", "columns": ("x", "y"), "categories": (("a", "b"), ("c", "d"))}, [1.0, 2.0, 3.0, 4.0],
         ["  a × c ", "  b × d "]),
        ({"kind": "histogram", "column": "x", "edges": tuple(range(60))}, [1.0] * 59, ["and 19 more (--json has all)"]),
    ],
)  # fmt: skip
def test_answers_in_words(task, total, words):
    from netdp.cli.peer_progress import outcome_lines
    from netdp.peers.study import Study
    from netdp.peers.study.task import Task

    study = Study.plan("s", Task(**task), NAMES[:4], graph="complete:4", epsilon=1.0, delta=1e-6, colluders=2)
    told = {"ok": True, "party": "ash", "answer": study.answer(total, 3), "attempt": 2, "roster": list(NAMES[:3]),
            "spent": {"delta": 1e-6, "epsilon": {"1": 0.5, "2": float("inf")}, "contributions": 2, "unit": "party",
                      "ledger": {"entries": 3, "epsilon": {"1": 0.9, "2": float("inf")},
                                 "fixed": {"1": 0.8, "2": float("inf")}}}}  # fmt: skip
    text = "\n".join(outcome_lines(study, told, Path("home")))
    assert [word for word in words if word not in text] == [], text
    assert "3 of 4 parties took part, without elm; attempt 2." in text
    assert "ash published 2 times." in text
    assert "at most, in epsilon at delta = 1e-06, by its whole ledger, 3 entries:" in text
    assert re.search("any single party +0.900 +0.800$", text, re.M)
    assert re.search("any 2 parties together +no bound +no bound   promised 1$", text, re.M)
    assert "This study alone, if all had been fixed beforehand: any single party 0.500" in text
    assert "netdp ledger show --home home" in text


# ── signals ──


def listening(process, errors):
    """Wait for the line that says so."""
    for line in process.stderr:
        errors.append(line)
        if "listening" in line:
            return
    raise AssertionError("".join(errors))


def looked(run, folder, process, errors):
    """What is told from outside about a peer that waits for birch."""
    home = str(folder / "home")
    code, out, _ = run("peer", "status", "--home", home, "--json")
    told = json.loads(out)
    assert (code, told["running"], told["pid"]) == (0, True, process.pid), out
    assert list(told["last"]["unlinked"]) == ["birch"]
    code, out, _ = run("peer", "status", "--home", home)
    assert code == 0
    assert re.search(r"links +0 of 1\n +without +birch, for \d+ s", out), out
    (port,) = re.findall(r"metrics on port (\d+)", "".join(errors))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS) as page:
        text = page.read().decode()
    assert "netdp_answered -1.0" in text
    assert "netdp_ledger_rows 0.0" in text
    assert "birch" not in text


def test_stopped_by_a_signal_it_goes_on_and_afterwards_shows_the_answer_again(run, pair, monkeypatch):
    words = ("peer", "run", "study.toml", "--home", "home", "--data", "waits.csv")
    ash, birch = pair
    with processes() as start:
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            asked, typed = (*words, "--log", "peer.log", "--metrics", "127.0.0.1:0"), number == signal.SIGTERM
            first, errors = start(asked, ash, typed), []
            listening(first, errors)
            looked(run, ash, first, errors)
            first.send_signal(number)
            code, out, err = finish(first)
            assert (code, out) == (status, ""), "".join(errors) + err
            assert "nothing was published so far. Start the same command again, and it goes on from where it was" in err
            code, out, _ = run("peer", "status", "--home", str(ash / "home"))
            assert (code, f"with status {status}" in out) == (3, True), out
        logged = [json.loads(line) for line in (ash / "peer.log").read_text().splitlines()]
        assert [(one["event"], one.get("starts"), one.get("signal"), one.get("exit")) for one in logged
                if one["event"] in ("starting", "stopping", "stopped")] == [
            ("starting", 1, None, None), ("stopping", None, 15, None), ("stopped", None, None, 143),
            ("starting", 2, None, None), ("stopping", None, 2, None), ("stopped", None, None, 130)]  # fmt: skip
        both = [start((*words, "--json", "--record", "frames"), folder) for folder in (ash, birch)]
        ends = [finish(process) for process in both]
        assert [code for code, _, _ in ends] == [0, 0], ends
        told = [json.loads(out) for _, out, _ in ends]
        assert told[0]["digest"] == told[1]["digest"]
        assert [one["contributed"] for one in told] == [1, 1]
        assert (ash / "frames").stat().st_size > 0
    monkeypatch.chdir(ash)  # alone, later
    code, out, err = run(*words, "--json")
    again = json.loads(out)
    assert (code, again["digest"], again["contributed"]) == (0, told[0]["digest"], 1)
    assert "the answer is here already" in err
    code, out, err = run(*words, "--quiet")
    assert (code, err) == (0, "")
    assert "The mean of 'minutes' over the parties, clipped to 0 … 120:" in out


# ── the walk-through ──


def commands():
    """The commands of the page with their outputs: (who, words, lines)."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if prompt := re.match(r"(ash|all)\$ (.*)", line):
                found.append((prompt[1], shlex.split(prompt[2]), []))
            elif found and not re.match(r"[$#] ", line):
                found[-1][2].append(line)
            else:
                found.append((None, [], []))  # not run here: as root, or in a container
    return [one for one in found if one[0] is not None]


def check_page(lines, text):
    """Every line of the page without a number is in the real output."""
    for line in lines:
        if line.strip() and "…" not in line and not re.search(r"\d", line):
            assert line in text.splitlines(), f"docs/howto/deploy.md shows {line!r}; the command says:\n{text}"


def test_the_page_is_read():
    kinds = [tuple(words[1:3]) for _, words, _ in commands() if words[0] == "netdp"]
    assert kinds == [("peer", "init"), ("peer", "card"), ("study", "new"), ("study", "explain"), ("study", "sign"),
                     ("study", "verify"), ("peer", "doctor"), ("peer", "run"), ("ledger", "show"),
                     ("ledger", "verify")]  # fmt: skip
    with pytest.raises(AssertionError, match="no such line"):
        check_page(["no such line"], "another")


def test_five_parties_as_the_page_tells(run, tmp_path, monkeypatch):
    ports = dict(zip((str(7401 + u) for u in range(5)), map(str, free_ports(5)), strict=True))
    truth = 0
    for u, name in enumerate(NAMES):
        (tmp_path / name).mkdir()
        waits = [(7 * k + 11 * u) % 90 for k in range(280)]
        truth += sum(waits) / 1400
        (tmp_path / name / "waits.csv").write_text("minutes\n" + "".join(f"{minutes}\n" for minutes in waits))
    answers = []
    with processes() as start:
        for who, page_words, lines in commands():
            words = [re.sub("740[1-5]", lambda found: ports[found[0]], word) for word in page_words]
            each = {name: [name if word == "ash" else word for word in words] for name in NAMES}
            if words[0] == "sed":
                for name in NAMES:
                    subprocess.run(each[name], cwd=tmp_path / name, check=True)
                continue
            if words[1:3] in (["peer", "doctor"], ["peer", "run"]):
                living = {name: start(each[name][1:], tmp_path / name) for name in NAMES}
                deadline = time.monotonic() + SECONDS
                ends = {name: finish(one, deadline - time.monotonic()) for name, one in living.items()}
                assert {code for code, _, _ in ends.values()} == {0}, ends
                check_page(lines, ends["ash"][2] + ends["ash"][1])
                answers = [out.splitlines()[:2] for _, out, _ in ends.values()] if words[2] == "run" else []
                if words[2] == "run":
                    assert all(one == answers[0] for one in answers), answers
                    mean = float(answers[0][0].rsplit(" ", 1)[1])
                    assert abs(mean - truth) < 10  # twelve standard deviations of the noise
                continue
            if words[1:3] == ["study", "new"]:
                for name in NAMES:
                    shutil.copy(tmp_path / name / "home/card.json", tmp_path / "ash" / f"{name}.json")
            if words[1:3] == ["study", "verify"]:  # everybody has sent its signature to everybody
                for name in NAMES:
                    for other in NAMES:
                        if other != name:
                            sig = tmp_path / name / "study.signatures" / f"{name}.sig"
                            shutil.copy(sig, tmp_path / other / "study.signatures")
            for name in NAMES if who == "all" else ("ash",):
                monkeypatch.chdir(tmp_path / name)
                status, out, err = run(*each[name][1:])
                assert status == 0, err
                if name == "ash":
                    check_page(lines, out)
            if words[1:3] == ["study", "new"]:
                for name in NAMES[1:]:
                    shutil.copy(tmp_path / "ash/study.toml", tmp_path / name)
    # what the run has cost is in everybody's ledger, once
    for name in NAMES:
        _, out, _ = run("ledger", "show", "--home", str(tmp_path / name / "home"), "--json")
        assert len(json.loads(out)["entries"]) == 1


def test_the_unit_is_not_started_again_after_refusals_and_ends():
    """The service file and the exit statuses agree."""
    from netdp.peers.outcome import ENDED, REFUSED

    text = (ROOT / "deploy" / "netdp-peer.service").read_text()
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    assert {int(code) for code in settings["RestartPreventExitStatus"].split()} == {REFUSED, ENDED}
    assert settings["Restart"] == "on-failure"
    assert int(settings["SuccessExitStatus"]) == 128 + signal.SIGTERM
    assert "ProtectSystem=strict" in text
    assert "NoNewPrivileges=yes" in text
