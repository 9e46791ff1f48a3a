"""Lines of a log: what may stand in them, what cannot, and files that stay small."""

import ast
import json
import os
import pickle
import re
import stat
import string
from pathlib import Path

import pytest

from netdp import peers
from netdp.errors import NetdpError
from netdp.peers.events import (
    CODES,
    EVENTS,
    STATUS_EVERY,
    Log,
    RotatingFile,
    Sentence,
    Statement,
    fields_of,
    statement_of,
)
from netdp.peers.ledger.database import StoreFailed


class Lines(list):
    write = list.append

    def read(self):
        return [json.loads(line) for line in self]


SECRETS = ["17.250001", "c2VjcmV0", b"secret", [17.25], {"x": 1}, 10**50, float("nan"), "a name with spaces", "x" * 65]


@pytest.mark.parametrize("event", [*EVENTS, "something new"])
def test_no_field_takes_what_it_is_not_for(event):
    names = {*EVENTS.get(event, ()), "value", "noise", "key", "body", "total", "answer", "secret", "text", "roster"}
    for secret in SECRETS:
        found = fields_of({"event": event, **dict.fromkeys(names, secret)}, names=("ash", "birch"))
        assert set(found) <= {*EVENTS.get(event, ()), "dropped"}
        # a text becomes the word for an unknown sentence, a list its length, what is too large no bound
        told = {key: value for key, value in found.items() if key not in ("dropped", "parties", "worse")}
        assert set(map(str, told.values())) <= {"other", "inf"}, (secret, told)


@pytest.mark.parametrize("sentence", Sentence, ids=lambda one: one.name)
def test_every_sentence_has_a_code_and_is_made_from_its_fields(sentence):
    names = [name for _, name, _, _ in string.Formatter().parse(sentence.value[1]) if name is not None]
    said = sentence(**dict.fromkeys(names, 7))
    assert said.code in CODES
    assert said.count("7") == len(names)
    assert "{" not in said
    assert fields_of({"event": "note", "text": said}) == {"reason": said.code}
    if names:
        with pytest.raises(KeyError):
            sentence()


def test_people_read_names_and_no_numbers_of_parties():
    assert [one.name for one in Sentence if re.search(r"party \{", one.value[1])] == []


def test_what_quotes_a_problem_has_the_code_of_the_problem():
    assert Sentence.IGNORED(peer=3, problem=Sentence.NOT_SIGNED(what="a vote")).code == "signature"
    assert Sentence.IGNORED(peer=3, problem="minutes is 17.25 in row 4").code == "other"


def test_an_error_keeps_its_code_on_the_way_through_another_process():
    error = pickle.loads(pickle.dumps(NetdpError(Statement("the data have changed", "data-changed"))))
    assert (str(error), statement_of(error), statement_of(error).code) == (
        *["the data have changed"] * 2,
        "data-changed",
    )
    assert statement_of(StoreFailed("it is full")).code == "disk"
    assert statement_of(NetdpError("minutes is 17.25 in row 4")).code == "other"


def test_a_sentence_without_a_code_is_not_written():
    said = {"event": "failed", "reason": "stopped: minutes is 17.25 in row 4"}
    assert fields_of(said) == {"reason": "other"}


SAID = {"append": "notes", "_end": "", "_turn_away": "", "Rejected": ""}


def uncoded(path):
    """Sentences that a module hands to its owner without a code."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if SAID.get(name.split(".")[-1], "-") in name:
            parts = [part for one in node.args for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
            yield from (ast.unparse(part) for part in parts if isinstance(part, ast.JoinedStr | ast.Constant))


def test_every_sentence_of_a_party_and_its_links_has_a_code():
    """A log that says "other" helps nobody."""
    root = Path(peers.__file__).parent
    files = [root / "party.py", *(root / "transport").glob("*.py"), *(root / "spreads").glob("*.py")]
    assert [text for path in files for text in uncoded(path)] == []
    assert {code for code, _ in (one.value for one in Sentence)} <= CODES | {None}


def test_lines_name_party_and_study_and_are_ordered_in_time():
    lines, clock = Lines(), iter([0.0, 1.5])
    log = Log(lines, "ash", b"\xab" * 32, ["ash", "birch"], now=lambda: next(clock))
    log({"event": "linked", "peer": "birch"})
    log({"event": "lost", "peer": "birch", "reason": Sentence.ENDED_THERE()})
    first, second = lines.read()
    assert (first["party"], first["study"], first["peer"], first["level"]) == ("ash", "ab" * 8, "birch", "info")
    assert (first["time"], second["time"]) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.500Z")
    assert second["reason"] == "ended-there"


def test_progress_is_told_now_and_then_and_only_if_there_is_any():
    lines, clock = Lines(), [0.0]
    log = Log(lines, now=lambda: clock[0])
    for moment, votes in ((0, 1), (1, 2), (STATUS_EVERY, 2), (2 * STATUS_EVERY, 2), (3 * STATUS_EVERY, 3)):
        clock[0] = moment
        log({"event": "status", "attempt": 1, "links": 1, "votes": votes, "contributions": 0})
    assert [line["votes"] for line in lines.read()] == [1, 2, 3]


def test_a_disk_that_is_full_for_a_while_loses_lines_and_says_so():
    class Full(Lines):
        full = False

        def write(self, line):
            if self.full:
                raise OSError("no space")
            self.append(line)

    lines = Full()
    log = Log(lines, now=lambda: 0.0)
    log({"event": "listening"})
    lines.full = True
    for _ in range(3):
        log({"event": "listening"})
    lines.full = False
    log({"event": "listening"})
    assert [(line["event"], line.get("lost")) for line in lines.read()] == [
        ("listening", None),
        ("log", 3),
        ("listening", None),
    ]


def test_a_file_is_moved_aside_when_it_is_full_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "peer.log"
    file = RotatingFile(path, size=100, kept=2)
    for number in range(40):
        file.write(f"{number:02} " + 26 * "x" + "\n")  # 30 bytes: three to a file
    file.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["peer.log", "peer.log.1", "peer.log.2"]
    assert all(one.stat().st_size <= 100 for one in tmp_path.iterdir())
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in tmp_path.iterdir())
    kept = [(tmp_path / f"peer.log{name}").read_text() for name in (".2", ".1", "")]
    numbers = [line[:2] for text in kept for line in text.splitlines()]
    assert numbers == [f"{number:02}" for number in range(33, 40)]
    again = RotatingFile(path, size=100, kept=2)
    again.write("more\n")
    again.close()
    assert path.read_text().endswith("more\n")


def test_a_log_is_a_regular_file_that_can_be_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "no" / "folder.log", tmp_path):
        with pytest.raises(NetdpError, match=r"cannot be opened.*give another --log FILE"):
            RotatingFile(path)
