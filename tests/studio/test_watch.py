"""Parties at work as the studio sees them, on real processes: what is shown is what was sent, and nothing more."""

import json
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.events import RotatingFile
from netdp.peers.launch import party_process
from netdp.peers.ledger.entries import total
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, decode, kind_of
from netdp.peers.study import Study
from netdp.studio import watch
from netdp.studio.homes import Tail
from netdp.studio.watch import Watch

sys.path.append(str(Path(__file__).parents[1] / "peers"))
sys.path.append(str(Path(__file__).parents[1] / "cli"))

import crew
import planted
from started import Started

from netdp.studio.homes import promised

STATES = {"absent", "starting", "running", "waiting", "silent", "answered", "ended", "stopped", "failed", "killed"}


class Clock:
    """A clock that can be put forward."""

    def __init__(self):
        self.ahead = 0.0

    def __call__(self):
        return time.time() + self.ahead


class Seen:
    """All that a page has been told, put together as a page does."""

    def __init__(self, place, study=None):
        self.clock = Clock()
        self.watch = Watch(place, study, now=self.clock)
        self.first = self.watch.first()
        self.next = self.first["next"]
        self.again()

    def again(self):
        self.moves, self.events, self.states, self.spent, self.skipped, self.live = [], [], {}, {}, 0, []

    def ask(self):
        """One question; whether there was an answer."""
        self.clock.ahead += 5.0  # every look may ask everything
        change = self.watch.changes(self.next)
        if change is None:
            return False
        assert json.loads(json.dumps(change, allow_nan=False)) == change
        self.next = change["next"]
        if "first" in change:
            self.first = change["first"]
            self.again()
            return True
        self.moves += change.get("moves", [])
        self.events += change.get("events", [])
        self.states |= change.get("states", {})
        self.spent |= change.get("spent", {})
        self.skipped = change.get("skipped", self.skipped)
        self.live.append(change["live"])
        return True

    def all(self):
        """Ask until nothing is new."""
        for _ in range(1000):
            if not self.ask():
                return self
        raise AssertionError("it never ends")

    @property
    def text(self):
        """Everything that was ever told, as it goes over the wire."""
        return json.dumps([self.first, self.moves, self.events, self.states, self.spent])


def frames_sent(one):
    """(from, to) → what every frame held, from the recordings: keys of items, and counts of other messages."""
    found = {}
    for u, name in enumerate(one.study.everybody):
        for to, frame in crew.frames(one.record / f"{name}.frames"):
            messages = decode(frame)
            items = [[m.key.kind.name.lower(), *m.key[1:]] for m in messages if isinstance(m, Item)]
            words = {}
            for m in messages:
                if not isinstance(m, Item):
                    words[kind_of(m)] = words.get(kind_of(m), 0) + 1
            found.setdefault((u, to), []).append((items, words))
    return found


def frames_seen(moves):
    found = {}
    for when, u, v, items, more, words in sorted(moves, key=lambda move: move[0]):
        assert more == 0
        found.setdefault((u, v), []).append((items, words))
        assert 1.7e9 < when < time.time() + 1
    return found


def in_any_order(frames):
    return {pair: sorted(map(json.dumps, said)) for pair, said in frames.items()}


def files(folder):
    """Everything that somebody who looks could have changed."""
    return {
        path.relative_to(folder): (its.st_size, its.st_mtime_ns, its.st_mode, its.st_ino)
        for path in sorted(folder.rglob("*"))
        for its in [path.stat()]
    }


def ran(folder, n=4, graph="ring:4", **options):
    folder.mkdir(exist_ok=True)
    one = crew.Crew(folder, n, graph, **options)
    one.result = one.run(target=party_process)
    return one


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A masked sum of four parties that ran to its end."""
    return ran(tmp_path_factory.mktemp("finished") / "up")


# ── what is shown is what was sent ────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_run_is_told_as_it_was_recorded_and_nothing_is_touched(finished):
    before = files(finished.folder)
    seen = Seen(finished.folder).all()
    assert files(finished.folder) == before
    first, study = seen.first, finished.study
    assert (first["what"], first["me"]) == ("up", None)
    assert "in a real study nobody sees all this" in first["eyes"]
    assert first["study"]["hash"] == study.hash.hex()
    assert [party["name"] for party in first["parties"]] == list(study.names)
    assert sorted(map(tuple, first["edges"])) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert first["links"] == 4
    assert in_any_order(frames_seen(seen.moves)) == in_any_order(frames_sent(finished))
    assert {state["state"] for state in seen.states.values()} == {"answered"}
    assert set(seen.states) == set(study.names)
    assert seen.live[-1] is False
    assert seen.skipped == 0
    outcomes = {event["party"]: event for event in seen.events if event["event"] == "outcome"}
    assert {name: event["ok"] for name, event in outcomes.items()} == dict.fromkeys(study.names, True)


def test_what_was_promised_and_spent_is_what_study_and_ledgers_say(finished):
    seen, study = Seen(finished.folder).all(), finished.study
    (stated,) = [one for one in seen.first["promised"] if one["stated"]]
    assert (stated["against"], stated["epsilon"]) == (study.privacy.colluders, study.privacy.epsilon)
    assert seen.first["assumptions"] == list(study.promise().assumptions)
    assert seen.first["claim"] == "upper"
    for u, name in enumerate(study.names):
        with Store.open(finished.home(u) / "peer.db", read_only=True) as store:
            entries = store.entries()
        told = seen.spent[name]
        assert (told["rows"], told["contributions"], told["problem"]) == (1, 1, None)
        for one in told["study"]:
            epsilon = float(total(entries, one["against"], study.task.unit).epsilon(study.privacy.delta))
            assert one["epsilon"] == pytest.approx(epsilon, rel=1e-9)
            assert float(one["text"]) >= one["epsilon"] * (1 - 1e-12)
        assert told["all"] == told["study"]


def test_nobody_waits_for_a_promise_that_takes_long_to_certify(finished, monkeypatch):
    """The page opens with what the study names; the rest comes when it is there."""
    asked, ready = promised, threading.Event()
    monkeypatch.setattr(watch, "promised", lambda study: ready.wait(60) and asked(study))
    monkeypatch.setattr(watch, "PROMISE_WAIT", 0.01)
    one = Watch(finished.folder)
    first = one.first()
    assert [row["stated"] for row in first["promised"]] == [True]
    assert (first["claim"], first["assumptions"]) == (None, [])
    ready.set()
    one._promise.wait(60)
    change = one.changes(first["next"])
    assert change["promise"]["claim"] == "upper"
    assert change["promise"]["assumptions"] == list(finished.study.promise().assumptions)
    assert one.first()["claim"] == "upper"  # for whoever opens it now


def test_of_one_home_only_that_partys_own_is_shown(finished):
    seen = Seen(finished.home(0)).all()
    assert (seen.first["what"], seen.first["me"]) == ("home", "p0")
    assert [party["name"] for party in seen.first["parties"] if party["mine"]] == ["p0"]
    everything = frames_sent(finished)
    own = {pair: said for pair, said in everything.items() if 0 in pair}
    assert in_any_order(frames_seen(seen.moves)) == in_any_order(own)
    assert {event["party"] for event in seen.events} == {"p0"}
    assert set(seen.spent) == {"p0"}
    assert seen.states["p0"]["state"] == "answered"
    assert {name: seen.states[name] for name in ("p1", "p2", "p3")} == {
        "p1": {"state": "unlinked"},
        "p2": {"state": "beyond"},
        "p3": {"state": "unlinked"},
    }


@pytest.mark.parametrize(
    ("protocol", "graph", "moving", "options"),
    [
        ("masked-sum", "ring:4", "state", {"spread": "average"}),
        ("ring-sum", "ring:4", "token", {}),
        ("walk-sum", "complete:4", "token", {"steps": 12, "rough": True}),
        ("gossip", "ring:4", "state", {}),
        ("randomized-gossip", "ring:4", "state", {"wakes": 3, "rough": True}),
    ],
    ids=["average", "ring", "walk", "gossip", "randomized"],
)
def test_whatever_runs_can_be_watched(tmp_path, protocol, graph, moving, options):
    one = crew.Crew(tmp_path, 4, graph, protocol=protocol, **options)
    one.run()
    seen = Seen(one.folder).all()
    assert in_any_order(frames_seen(seen.moves)) == in_any_order(frames_sent(one))
    kinds = {item[0] for move in seen.moves for item in move[3]}
    assert moving in kinds
    assert {state["state"] for state in seen.states.values()} == {"answered"}
    assert seen.first["study"]["kind"] == protocol


def test_a_live_run_is_told_while_it_runs(tmp_path):
    one = crew.Crew(tmp_path, 4, "ring:4")
    running = threading.Thread(target=lambda: setattr(one, "result", one.run(target=party_process)))
    seen = Seen(one.folder)
    running.start()
    while running.is_alive():
        seen.ask()
        time.sleep(0.02)
    running.join()
    assert one.result.ok
    assert True in seen.live
    early = len(seen.moves)
    seen.all()
    assert seen.live[-1] is False
    assert in_any_order(frames_seen(seen.moves)) == in_any_order(frames_sent(one))
    assert early > 0  # not only afterwards
    assert {state["state"] for state in seen.states.values()} == {"answered"}


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_party_that_is_killed_for_good_is_told_from_those_that_ended(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3", gather=120.0, patience=20.0, absent=1, attempts=2)
    crew.orders(one.home(2), ["before spend", 1])
    one.foresee("p2")
    result = one.run(restart=False)
    seen = Seen(one.folder).all()
    states = {name: state["state"] for name, state in seen.states.items()}
    assert states["p2"] == "killed"
    assert states["p0"] == states["p1"] == "answered"
    assert [event["party"] for event in seen.events if event["event"] == "killed"] == ["p2"]
    assert any(event["event"] == "lost" and event["peer"] == "p2" for event in seen.events)
    assert any(event["event"] == "note" and event["reason"] == "given-up" for event in seen.events)
    for name in ("p0", "p1"):  # once or twice: whether the vote of p2 was heard
        assert seen.spent[name]["contributions"] == result.outcomes[name]["contributed"]
    assert seen.spent["p2"]["contributions"] == 0
    assert seen.live[-1] is False


def test_a_party_that_was_started_again_says_so(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3")
    crew.orders(one.home(1), ["after contribution", 1])
    result = one.run()
    assert result.restarts == {"p1": 1}
    seen = Seen(one.folder).all()
    again = [event["party"] for event in seen.events if event["event"] == "starting" and event.get("starts", 1) > 1]
    assert again == ["p1"]
    assert seen.states["p1"]["starts"] == 2
    assert {state["state"] for state in seen.states.values()} == {"answered"}


def test_a_party_that_refused_is_named_with_its_reason(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3", gather=2.0, patience=2.0)
    policy = one.home(0) / "policy.toml"
    policy.write_text(policy.read_text().replace(repr(one.study.privacy.epsilon), "0.01"))
    one.result = one.run(target=party_process, only=["p0"])
    seen = Seen(one.folder).all()
    assert seen.states["p0"]["state"] == "failed"
    assert seen.states["p0"]["reason"] == "policy"
    assert seen.states["p1"]["state"] == "absent"


# ── what is no home, and what comes later ─────────────────────────────────────────────────────────────────────────────


def test_other_folders_are_refused_with_the_way_out(tmp_path, finished):
    with pytest.raises(InvalidValue, match="is no folder"):
        Watch(tmp_path / "nothing")
    with pytest.raises(InvalidValue, match="neither a peer's home"):
        Watch(tmp_path)
    shutil.copy(finished.path, tmp_path / "study.toml")
    with pytest.raises(InvalidValue, match="the home of none of its parties"):
        Watch(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidValue, match="is no folder"):
        Watch(tmp_path / "file", finished.path)
    (tmp_path / "study.toml").write_text("nonsense")
    with pytest.raises(FileFormatError):
        Watch(tmp_path)
    home = tmp_path / "lone"
    shutil.copytree(finished.home(1), home)
    (home / "traced-study.toml").unlink()
    with pytest.raises(InvalidValue, match="--trace"):
        Watch(home)
    assert Watch(home, finished.path).first()["me"] == "p1"
    other = Study.plan("other", crew.MEAN, ["x", "y", "z"], graph="ring:3", epsilon=1.0, delta=1e-6)
    other.write(tmp_path / "other.toml")
    with pytest.raises(InvalidValue, match="who is no party of 'other'"):
        Watch(home, tmp_path / "other.toml")


def test_a_folder_that_up_will_make_can_be_waited_for(tmp_path, finished):
    """A draft is shown first; when homes appear, everything begins with the study that really runs."""
    draft = Study.plan("crew", crew.MEAN, finished.study.names, graph="ring:4", epsilon=2.0, delta=1e-6)
    draft.write(tmp_path / "draft.toml")
    seen = Seen(tmp_path / "later", tmp_path / "draft.toml").all()
    assert seen.first["study"]["hash"] == ""
    assert {state["state"] for state in seen.states.values()} == {"absent"}
    shutil.copytree(finished.folder, tmp_path / "later")
    seen.all()
    assert seen.first["study"]["hash"] == finished.study.hash.hex()
    assert {state["state"] for state in seen.states.values()} == {"answered"}
    shutil.rmtree(tmp_path / "later")  # as `netdp up` without --folder does
    seen.all()
    assert len(seen.moves) == sum(map(len, frames_sent(finished).values()))


def test_a_page_that_knows_an_earlier_study_begins_anew(tmp_path, finished):
    folder = tmp_path / "up"
    shutil.copytree(finished.folder, folder)
    seen = Seen(folder).all()
    before = seen.next
    again = finished.study.replace(nonce="0" * 32)
    again.write(folder / "study-2.toml")
    seen.all()
    assert seen.first["study"]["hash"] == again.hash.hex()
    assert seen.moves == []
    late = seen.watch.changes(before)
    assert late["first"]["study"]["hash"] == again.hash.hex()


# ── damage, and much of everything ────────────────────────────────────────────────────────────────────────────────────


def test_damaged_lines_are_counted_and_hostile_ones_say_nothing(tmp_path, finished):
    folder = tmp_path / "up"
    shutil.copytree(finished.folder, folder)
    whole = Seen(folder).all()
    trace = folder / "p0" / "trace.jsonl"
    good = json.loads(trace.read_text().splitlines()[0])
    bad = [
        "{", "[]", "17", '"x"', "\x00\xff", "{}" * 3, "[" * 100_000,
        json.dumps(good | {"party": "p1"}),
        json.dumps(good | {"event": "value"}),
        json.dumps(good | {"time": "yesterday"}),
        json.dumps(good | {"time": 17}),
    ]  # fmt: skip
    hostile = [
        good | {"event": "sent", "peer": "p1", "items": [["contribution", 1, 4_000_000_000, 0]], "body": "3.14159"},
        good | {"event": "sent", "peer": "<script>", "items": []},
        good | {"event": "note", "reason": "the value is 3.14159", "text": "3.14159"},
        good | {"event": "linked", "peer": "p1", "answer": 3.14159},
        good | {"study": "f" * 16, "event": "linked", "peer": "p1"},
    ]
    with open(trace, "a", encoding="utf-8", errors="replace") as file:
        file.write("\n".join([*bad, *map(json.dumps, hostile), '{"cut off']))
    seen = Seen(folder).all()
    assert seen.skipped == len(bad)
    assert "3.14159" not in seen.text
    assert "<script>" not in seen.text
    assert len(seen.moves) == len(whole.moves) + 1
    assert all(item[2] < 4 for move in seen.moves for item in move[3])  # nobody has the number 4,000,000,000


def test_a_ledger_that_is_broken_is_named_instead_of_added_up(tmp_path, finished):
    import sqlite3

    folder = tmp_path / "up"
    shutil.copytree(finished.folder, folder)
    database = sqlite3.connect(folder / "p1" / "peer.db")
    database.executescript("DROP TRIGGER ledger_same; UPDATE ledger SET entry = replace(entry, 'crew', 'CREW')")
    database.close()
    seen = Seen(folder).all()
    assert "ledger" in seen.spent["p1"]["problem"]
    assert seen.spent["p1"]["study"] == []
    assert seen.spent["p0"]["problem"] is None


def test_a_trace_that_is_moved_aside_while_it_is_read_loses_nothing(tmp_path):
    path = tmp_path / "trace.jsonl"
    file, tail, got = RotatingFile(path, 1000, 1), Tail(path), []
    for number in range(500):
        file.write(f"line {number}\n")
        if number % 30 == 0:  # it is moved aside every hundred lines or so
            got += tail.read(100_000)
    for _ in range(5):
        got += tail.read(100_000)
    assert got == [f"line {number}".encode() for number in range(500)]
    assert tail.skipped == 0
    for number in range(1000):
        file.write(f"much {number}\n")
    file.close()
    for _ in range(5):
        got += tail.read(100_000)
    assert tail.skipped == 1  # it was moved aside more than once: a gap
    assert got[-1] == b"much 999"
    path.write_text("cut\n")
    for _ in range(2):
        got += tail.read(100_000)
    assert got[-1] == b"cut"
    assert tail.skipped == 2


def test_much_comes_in_pieces_and_no_piece_is_lost(finished, monkeypatch):
    whole = Seen(finished.folder).all()
    monkeypatch.setattr(watch, "AT_ONCE", 7)
    monkeypatch.setattr(watch, "BYTES", 1)  # the smallest share of every home
    pieces = Seen(finished.folder).all()
    assert sorted(map(json.dumps, pieces.moves)) == sorted(map(json.dumps, whole.moves))
    assert sorted(map(json.dumps, pieces.events)) == sorted(map(json.dumps, whole.events))
    assert pieces.spent == whole.spent
    monkeypatch.setattr(watch, "KEPT", 10)
    short = Seen(finished.folder).all()
    assert len(short.watch._moves) == 10


def test_many_pages_hear_the_same(finished):
    one = Watch(finished.folder)
    pages = [one.events() for _ in range(3)]
    heard = []
    for page in pages:
        told = [next(page) for _ in range(40)]
        assert "first" in told[0]
        heard.append([move for change in told if change for move in change.get("moves", ())])
    assert heard[0] == heard[1] == heard[2] != []


# ── no secrets ────────────────────────────────────────────────────────────────────────────────────────────────────────

VALUES = ["37.12345678", "81.98765432", "55.55443322"]


@pytest.mark.parametrize("protocol", ["masked-sum", "gossip", "walk-sum"])
def test_no_secret_is_in_a_trace_or_on_the_page(protocol, tmp_path):
    rough = {"steps": 9, "rough": True} if protocol == "walk-sum" else {}
    one = crew.Crew(tmp_path, 3, "complete:3", protocol=protocol, **rough)
    for u, value in enumerate(VALUES):
        one.data[f"p{u}"].write_text(f"x\n{value}\n")
    result = one.run()
    assert result.ok or protocol == "gossip"  # of gossip everybody has an estimate of its own
    secrets = {}
    for u in range(3):
        identity = crew.Identity.load(one.home(u))
        found = planted.secrets_of(identity)
        with Store.open(one.home(u) / "peer.db", read_only=True) as store:
            held = store.contribution(one.study.hash, 1)
        found |= {"body": held.body[32:], "written down": held.secret, "signature": held.signature}
        for key, secret in found.items():
            if secret:
                secrets[f"{key} of p{u}"] = planted.shapes(secret)
        secrets[f"numbers of p{u}"] = planted.numbers(held.secret) | planted.numbers(held.body[32:])
        secrets[f"value of p{u}"] = {VALUES[u], VALUES[u][:-2], VALUES[u].replace(".", "")}
        answer = result.outcomes[f"p{u}"]["total"]
        secrets[f"answer of p{u}"] = {str(number)[:10] for number in answer}
    for file in one.record.glob("*.frames"):
        for _, frame in crew.frames(file):
            for message in decode(frame):
                if isinstance(message, Item) and message.body and not message.key.kind.is_signed:
                    secrets[f"{message.key} on the wire"] = planted.shapes(message.body) | planted.numbers(message.body)
    assert len(secrets) > 20
    written = {"page": Seen(one.folder).all().text, "page of one": Seen(one.home(0)).all().text}
    for u in range(3):
        written[f"trace of p{u}"] = (one.home(u) / "trace.jsonl").read_text()
        written[f"status of p{u}"] = (one.home(u) / "status.json").read_text()
    for where, text in written.items():
        leaked = {name: hits for name, shapes in secrets.items() if (hits := planted.found_in(text, shapes))}
        assert leaked == {}, (where, leaked)
    for name in ("noise secret of p0", "value of p1", "answer of p2"):  # the search finds what is there
        assert all(planted.found_in(f'{{"x":"{shape}"}}', secrets[name]) for shape in secrets[name])


def test_every_state_has_a_look_on_the_page():
    page = Path(watch.__file__).parent / "page" / "watch-network.js"
    text = page.read_text("utf-8")
    for state in STATES | {"linked", "unlinked", "beyond"}:
        assert f"  {state}: {{ sign:" in text


def test_every_kind_of_message_has_words_on_the_page():
    from netdp.peers.events import KINDS

    text = (Path(watch.__file__).parent / "page" / "watch-story.js").read_text("utf-8")
    listed = text[text.index("export const KINDS") : text.index("const PAYLOAD")]
    assert {kind for kind in KINDS if f'"{kind}"' in listed} == KINDS


# ── one peer on its own machine ───────────────────────────────────────────────────────────────────────────────────────


def test_a_peer_that_is_run_with_a_trace_can_be_watched_and_one_without_shows_its_ledger(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3")
    commands = [
        ["peer", "run", one.path, "--home", one.home(u), "--data", one.data[f"p{u}"], "--quiet", *extra]
        for u, extra in enumerate((["--trace"], [], ["--trace"]))
    ]
    peers = [Started(command) for command in commands]
    for peer in peers:
        peer.communicate(timeout=120)
        assert peer.returncode == 0
    seen = Seen(one.home(0)).all()
    assert seen.states["p0"]["state"] == "answered"
    assert {(u, v) for _, u, v, *_ in seen.moves} == {(0, 1), (1, 0), (0, 2), (2, 0)}
    kinds = {item[0] for move in seen.moves for item in move[3]}
    assert {"vote", "contribution"} <= kinds
    assert not (one.home(1) / "trace.jsonl").exists()
    with pytest.raises(InvalidValue, match="--trace"):
        Watch(one.home(1))
    quiet = Seen(one.home(1), one.path).all()
    assert quiet.moves == []
    assert quiet.states["p1"]["state"] == "answered"
    assert quiet.spent["p1"]["contributions"] == 1
