"""Lines of a log: what may stand in them, what cannot, and files that stay small."""

import ast
import json
import os
import stat
from pathlib import Path

import pytest

from netdp.errors import NetdpError
from netdp.peers import reasons
from netdp.peers.log import EVENTS, STATUS_EVERY, Log, RotatingFile, fields_of
from netdp.peers.reasons import REASONS, reason_of


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


def test_every_sentence_becomes_a_word_of_the_list():
    sentences = {
        "ignored from birch: a frame of 12 bytes is no netdp message: x": "not-a-message",
        "ignored from party 3: vote 0 of party 9 belongs to no attempt or party of this study": "implausible",
        "ignored from party 3: the signature under vote 0 of party 3 in attempt 1 is not its author's": "signature",
        "a caller whose certificate is not in the study's list": "certificate",
        "replaced by a newer connection": "replaced",
        "attempt 1 is given up: elm missing; attempt 2": "given-up",
        "minutes is 17.25 in row 4": "other",
    }
    assert {text: reason_of(text) for text in sentences} == sentences
    assert set(sentences.values()) <= REASONS


def sentences(path):
    """What a module says to its owner, with 7 for what is filled in."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
        if name in ("append", "_end", "_turn_away", "Rejected"):
            parts = [part for one in node.args for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
            for part in parts:
                if isinstance(part, ast.JoinedStr):
                    text = "".join(v.value if isinstance(v, ast.Constant) else "7" for v in part.values)
                elif isinstance(part, ast.Constant):
                    text = str(part.value)
                else:
                    continue
                if text.count(" ") > 2 and "7: 7" not in text:
                    yield text


def test_every_sentence_of_a_party_and_its_links_has_a_word():
    """A log that says "other" helps nobody."""
    root, found = Path(reasons.__file__).parent, []
    for name in ("party.py", "transport/grpc.py"):
        found += sentences(root / name)
    assert len(found) > 15
    assert [text for text in found if reason_of(text) == "other"] == []


def test_lines_name_party_and_study_and_are_ordered_in_time():
    lines, clock = Lines(), iter([0.0, 1.5])
    log = Log(lines, "ash", b"\xab" * 32, ["ash", "birch"], now=lambda: next(clock))
    log({"event": "linked", "peer": "birch"})
    log({"event": "lost", "peer": "birch", "reason": "ended by the other end"})
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
