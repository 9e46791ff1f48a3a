"""Whole studies as real processes, and all the reasons for which a peer refuses before it says anything.

The runs compare every party's total with one computed here from all data and secrets, to the last bit.
"""

import asyncio
import datetime
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.mechanisms.discrete_gaussian import MANY, _Coins
from netdp.peers import identity as identities
from netdp.peers import launch as ups
from netdp.peers.desk import Desk
from netdp.peers.identity import Identity
from netdp.peers.launch import party_process, run_study
from netdp.peers.ledger.store import Store
from netdp.peers.messages import ItemKind
from netdp.peers.outcome import REFUSED, exit_code
from netdp.peers.peer import prepare, run_peer
from netdp.peers.setup import settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "cli"))

import crew
from started import Started

# ── many parties ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("n", "graph", "settings"),
    [
        (30, "regular:30,6,seed=1", {"colluders": 3}),
        (20, "regular:20,6,seed=1", {"colluders": 3, "spread": "average"}),
        (8, "ring:8", {"protocol": "ring-sum"}),
    ],
    ids=["flood", "average", "ring"],
)
def test_many_parties_hold_the_exact_sum(tmp_path, n, graph, settings):
    one = crew.Crew(tmp_path, n, graph, **settings, gather=120.0, patience=60.0)
    result = one.run(target=party_process)
    one.check(result)
    assert exit_code(result) == 0
    assert not result.restarts
    told = result.to_dict()
    assert told["ok"]
    assert told["guarantee"]["spent_epsilon"]["1"] <= 1.01 * one.study.privacy.epsilon
    assert json.dumps(told)


def telling(home, study, data, events, record=None):
    """A party's process that tells when it turns to compiled code for its noise."""
    compiled = _Coins._compiled

    def noted(*given):
        events.send_bytes(json.dumps({"event": "note", "text": "compiled"}).encode())
        return compiled(*given)

    _Coins._compiled = noted
    party_process(home, study, data, events, record)


@pytest.mark.parametrize("numbers", [1, 2 * MANY])
def test_only_many_numbers_are_drawn_by_compiled_code(tmp_path, numbers):
    """Else each party of a small study would load it for one number, which takes longer than the study."""
    task = crew.MEAN if numbers == 1 else Task(kind="histogram", column="x", bounds=(0.0, 120.0), bins=numbers)
    one = crew.Crew(tmp_path, 3, "complete:3", task=task, gather=120.0, patience=60.0)
    result = one.run(target=telling)
    assert result.ok, result.gone
    assert {note for note in result.notes if note.endswith("compiled")} == (
        set() if numbers == 1 else {f"p{u}: compiled" for u in range(3)}
    )


def test_the_fork_server_loads_compiled_code_for_many_numbers_only(trio, monkeypatch):
    class Asked(Exception):
        pass

    class Context:
        def set_forkserver_preload(self, modules):
            raise Asked(*modules)

    monkeypatch.setattr(ups.multiprocessing, "get_context", lambda _: Context())
    for numbers, more in ((MANY - 1, ()), (MANY, ups.FOR_MANY)):
        task = Task(kind="histogram", column="x", bounds=(0.0, 120.0), bins=numbers)
        with pytest.raises(Asked) as caught:
            ups.up(trio.study.replace(task=task.model_dump(exclude_none=True)), trio.path, trio.data, trio.folder)
        assert caught.value.args == (*ups.PRELOADED, "netdp.families.masked.peer", *more)
    for name in ups.FOR_MANY:
        module = importlib.import_module(name)
        assert module.asked.signatures  # there as soon as it is imported
        assert module.survivors.signatures


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def trio(tmp_path):
    return crew.Crew(tmp_path / "trio", 3, "complete:3", gather=120.0, patience=60.0)


def start(one, u=0, path=None, **options):
    return prepare(one.home(u), path or one.path, one.data[f"p{u}"], **options)


def refused(one, match, u=0, kind=Refused, path=None):
    """The peer refuses, has written no vote and no contribution, and its folder is free for the next one."""
    record = one.record / f"p{u}.frames"
    with pytest.raises(kind, match=match) as caught:
        run_peer(start(one, u, path, record=record))
    assert not record.exists() or record.read_bytes() == b""
    if (one.home(u) / "peer.db").exists():
        with Store.open(one.home(u) / "peer.db") as store:
            assert store.contribution(one.study.hash, 1) is None
    return str(caught.value)


def allow(one, u, per, epsilon):
    (one.home(u) / "policy.toml").write_text(
        f'delta = 1e-6\n\n[[limit]]\nagainst = 1\nper = "{per}"\nepsilon = {epsilon}\n'
    )


def test_a_policy_that_is_too_small(trio):
    """Says by how much; the process ends with its own code, and is not started again."""
    allow(trio, 0, "study", 1.25)
    text = refused(trio, "too much")
    assert "1.25" in text
    assert re.search(r"0\.7[45]\d* too much", text)  # the study takes a little less than 2.0
    result = trio.run(target=party_process)
    assert "too much" in result.gone["p0"]
    assert not result.restarts
    assert exit_code(result) == REFUSED == 2
    assert not result.answered
    assert not any(key.kind == ItemKind.CONTRIBUTION for key in trio.said())


def test_a_budget_that_earlier_studies_used_up(tmp_path):
    trio = crew.Crew(tmp_path / "trio", 3, "complete:3", gather=60.0, patience=40.0)  # it must be answered
    for u in range(3):
        allow(trio, u, "year", 2.5)
    first = trio.run()
    trio.check(first)
    second, path = settle(trio.study.replace(nonce="", party=[{"name": f"p{u}"} for u in range(3)]), trio.folder)
    assert second.hash != trio.study.hash
    with pytest.raises(Refused, match="before"):
        start(trio, 1, path)
    with Store.open(trio.home(1) / "peer.db") as store:
        assert len(store.entries()) == 1
        assert store.votes(second.hash) == {}


def test_a_study_that_was_changed_or_not_signed(trio, tmp_path):
    changed = tmp_path / "trio" / "study.toml"
    text = changed.read_text()
    line = next(line for line in text.splitlines() if line.startswith("patience"))
    changed.write_text(text.replace(line, "patience = 2.5"))
    refused(trio, "sign")
    changed.write_text(text)
    start(trio).store.close()  # as it was: allowed
    next(Path(tmp_path / "trio").glob("study.signatures/p1*")).unlink()
    assert "p1" in refused(trio, "sign")


def test_a_study_that_promises_more_than_its_noise_keeps(trio, tmp_path):
    weak = trio.study.replace(protocol={"sigma": trio.study.settings.sigma / 2})
    path = tmp_path / "weak.toml"
    with pytest.raises(Refused, match="allows"):
        trio.sign(weak, path)
    with pytest.MonkeyPatch.context() as careless:
        careless.setattr(Study, "check_promise", lambda study: 0.0)
        trio.sign(weak, path)
    refused(trio, "allows", path=path)


def test_other_keys_under_the_same_name(trio):
    Identity.create(trio.home(0), "p0", force=True)
    refused(trio, "other keys")
    Identity.create(trio.home(1), "somebody", force=True)
    refused(trio, "no party", u=1, kind=InvalidValue)


def test_a_second_process_with_the_same_home(trio):
    first = start(trio)
    try:
        with pytest.raises(NetdpError, match="in use by process"):
            start(trio)
    finally:
        first.store.close()
    start(trio).store.close()


def test_an_expired_certificate(tmp_path, monkeypatch):
    honest = identities.certificate
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1000)
    monkeypatch.setattr(identities, "certificate", lambda name, key, days: honest(name, key, days=days, now=past))
    Identity.create(tmp_path / "p1", "p1")
    monkeypatch.undo()
    one = crew.Crew(tmp_path, 3, "complete:3", gather=120.0, patience=60.0)
    refused(one, "expired", u=1)
    result = one.run(target=party_process)
    assert "expired" in result.gone["p1"]
    assert exit_code(result) == REFUSED
    assert not any(key.kind == ItemKind.CONTRIBUTION for key in one.said())


def test_a_second_roster_for_the_same_attempt(tmp_path):
    one = crew.Crew(tmp_path, 4, "complete:4", attempts=2, absent=1)
    identity = Identity.load(one.home(0))
    with Store.open(one.home(0) / "peer.db", sign=identity.sign) as store:
        desk = Desk(identity, one.study, store, one.study.task.rows(one.data["p0"]))
        desk.vote(1, (0, 1, 2, 3))
        with pytest.raises(Refused, match="voted otherwise"):
            desk.vote(1, (0, 1, 2))
        with pytest.raises(Refused, match="did not vote for"):
            desk.contribute(1, (0, 1, 2))
        first = desk.contribute(1, (0, 1, 2, 3))
        assert desk.contribute(1, (0, 1, 2, 3)) == first  # asked again: the same, and charged once
        assert len(store.entries()) == 1


def test_another_study_at_the_address(trio, tmp_path, monkeypatch):
    """Same parties, same addresses, another study: the link is refused with both hashes, and nobody contributes."""
    other = trio.study.replace(nonce="cd" * 16)
    path = trio.sign(other, tmp_path / "other.toml")
    told, clock = [], crew.Pushed()
    monkeypatch.setattr(crew.peers, "RealClock", lambda: clock)
    peers = [start(trio, u, path if u == 0 else None, report=told.append) for u in range(3)]

    async def everybody():
        running = asyncio.gather(*(peer.run() for peer in peers))
        while not running.done() and not any(event["event"] == "refused" for event in told):
            await asyncio.sleep(0.01)
        clock.push(trio.study.timing.gather)  # whoever was refused does not come any more
        return await running

    try:
        outcomes = asyncio.run(everybody())
    finally:
        for peer in peers:
            peer.store.close()
    assert [(o["ok"], o["contributed"]) for o in outcomes] == [(False, 0)] * 3
    reasons = [event["reason"] for event in told if event["event"] == "refused"]
    assert any(other.hash.hex()[:16] in reason and trio.study.hash.hex()[:16] in reason for reason in reasons)


# ── as people use it ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_draft_is_settled_and_run_and_its_homes_are_gone_afterwards(tmp_path):
    names = ["ann", "bob", "cy"]
    draft = Study.plan("waits", crew.MEAN, names, graph="ring:3", epsilon=2.0, delta=1e-6)
    draft.write(tmp_path / "draft.toml")
    (tmp_path / "data").mkdir()
    for u, name in enumerate(names):
        (tmp_path / "data" / f"{name}.csv").write_text(f"x\n{20 * u}\n")
    result = run_study(tmp_path / "draft.toml", tmp_path / "data")
    assert result.ok
    assert result.answer["parties"] == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data", "draft.toml"]


def test_a_killed_party_can_be_started_again_by_hand(tmp_path):
    """The way of a service manager on another machine: a process of its own, killed from outside, then started anew."""
    one = crew.Crew(tmp_path, 3, "ring:3", gather=60.0, patience=40.0)
    script = "import sys; from pathlib import Path; from netdp.peers.peer import prepare, run_peer\n"
    script += "told = run_peer(prepare(*map(Path, sys.argv[1:4]), record=Path(sys.argv[4])))\nprint(told['digest'])"

    def launch(u):
        files = [one.home(u), one.path, one.data[f"p{u}"], one.record / f"p{u}.frames"]
        if u:  # the others need no interpreter of their own
            return Started(files, script=script)
        return subprocess.Popen([sys.executable, "-c", script, *map(str, files)], stdout=subprocess.PIPE, text=True)

    processes = {u: launch(u) for u in (0, 1)}
    killed = processes[0]
    try:
        while not (one.record / "p0.frames").exists() or not (one.record / "p0.frames").read_bytes():
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        processes[2], processes[0] = launch(2), launch(0)
        digests = {process.communicate(timeout=300)[0].strip() for process in processes.values()}
    finally:
        for process in [killed, *processes.values()]:
            process.kill()
            process.communicate()
    assert digests == {one.expected(1, range(3))[1]}
    one.check_files()
