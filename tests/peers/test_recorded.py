"""Recordings: what is read from the files that peers wrote, what a coalition holds of it, and what is refused.

The peers live in memory, on a virtual clock; their folders are those that `netdp up --folder DIR --record DIR` leaves behind.

docs/proofs/audit.md#recordings.
"""

import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.errors import FileFormatError, InvalidValue
from netdp.peers.identity import Identity
from netdp.peers.messages import Hello, Item, ItemKind
from netdp.peers.recordings.recording import frames_in, keep_beside, read_recording, read_recordings, view_of
from netdp.peers.study import Task

sys.path.append(str(Path(__file__).parent))

import recordings
import shuffled

TASK = Task(kind="mean", column="x", bounds=(0, 10))
SETTINGS = {"kind": "masked-sum", "sigma": 0.5, "grid": 2.0**-10, "modulus": 2**32}


@pytest.fixture(scope="module")
def sound():
    """A recording of four parties on a ring."""
    with shuffled.folder() as folder:
        study = recordings.study_of(folder, TASK, 4, SETTINGS, graph="ring:4")
        recordings.deal(folder, study, [[{"x": 2.0 + u}] for u in range(4)])
        recordings.run(folder, study)
        yield folder


@pytest.fixture
def copy(sound, tmp_path):
    """The same in a folder of its own, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def test_everything_that_was_sent_is_read(sound):
    recording = read_recording(sound)
    assert recording.rosters == {1: (0, 1, 2, 3)}
    assert not recording.odd
    assert not recording.notes
    number = sum(len(list(frames_in(sound / f"p{u}.frames"))) for u in range(4))
    assert {one.sender for one in recording.said} == {0, 1, 2, 3}
    assert len({(one.sender, one.place) for one in recording.said}) == number
    np.testing.assert_allclose(recording.rows[3], [[0.0]])
    # a sender's words are in its own order, and every link begins with a Hello
    for u in range(4):
        mine = [one for one in recording.said if one.sender == u]
        assert [one.place for one in mine] == sorted(one.place for one in mine)
        first = {one.to: one.message for one in reversed(mine)}
        assert all(isinstance(message, Hello) for message in first.values())


def test_a_coalition_holds_its_own_frames_and_opens_its_own_homes_only(sound, monkeypatch):
    recording, opened = read_recording(sound), []
    load = Identity.load.__func__
    monkeypatch.setattr(Identity, "load", classmethod(lambda cls, home: opened.append(home) or load(cls, home)))
    view = view_of(recording.study, recording.said, {2: recording.home(2)})
    assert opened == [sound / "p2"]
    assert view.observers == (2,)
    assert set(view.answers) == {2}
    assert view.items
    assert all(2 in (one.sender, one.to) for one in view.items)
    # flooded: it holds what everybody published, though two of them are no neighbours of it
    assert set(view.bodies(ItemKind.CONTRIBUTION, 1)) == {(u, 0) for u in range(4)}


def test_keys_of_somebody_else_are_refused(sound):
    recording = read_recording(sound)
    with pytest.raises(InvalidValue, match="not those of p1"):
        view_of(recording.study, recording.said, {1: recording.home(2)})


def test_homes_may_lie_elsewhere(copy, tmp_path):
    homes = tmp_path / "homes"
    for u in range(4):
        (homes / f"p{u}").mkdir(parents=True)
        shutil.move(copy / f"p{u}" / "keys", homes / f"p{u}" / "keys")
    assert read_recording(copy, homes).home(3) == homes / "p3"
    (copy / "homes.txt").write_text(f"{homes}\n")
    assert read_recording(copy).home(3) == homes / "p3"
    (copy / "homes.txt").unlink()
    with pytest.raises(FileFormatError, match="home of p3"):
        read_recording(copy).home(3)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────────


def refused(folder, match):
    with pytest.raises(FileFormatError, match=match) as caught:
        read_recording(folder)
    assert "record again" in str(caught.value)
    return str(caught.value)


def test_no_folder(tmp_path):
    refused(tmp_path / "nowhere", "no folder")


def test_a_missing_file_is_named(copy):
    (copy / "p2.frames").unlink()
    assert "p2.frames" in refused(copy, "is missing")


def test_a_half_frame_at_the_end_is_named_with_its_place(copy):
    path = copy / "p1.frames"
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    assert f"of {len(content) - 3:,}" in refused(copy, "cut off in frame")
    path.write_bytes(content + b"\0\0\0")
    refused(copy, "cut off in frame")


def test_a_beginning_that_is_missing(copy):
    path = copy / "p1.frames"
    frames = list(frames_in(path))
    kept = [(to, frame) for to, place, frame in frames if place > 2]
    path.write_bytes(b"".join(struct.pack("<II", to, len(frame)) + frame for to, frame in kept))
    refused(copy, "before any Hello")


def test_bytes_that_are_no_frame(copy):
    path = copy / "p0.frames"
    path.write_bytes(path.read_bytes() + struct.pack("<II", 1, 3) + b"\xff\xff\xff")
    refused(copy, "cannot be read")
    path.write_bytes(path.read_bytes()[:-11] + struct.pack("<II", 77, 0))
    refused(copy, "participant 77")


def test_a_study_that_is_missing_or_a_draft(copy):
    study = read_recording(copy).study
    (copy / "study.toml").unlink()
    refused(copy, "which study")
    study.replace(nonce="", party=[{"name": f"p{u}"} for u in range(4)]).write(copy / "study.toml")
    refused(copy, "draft")


def test_another_study_than_the_one_that_was_run(copy):
    study = read_recording(copy).study
    other = study.replace(nonce="2" * 32)
    other.write(copy / "study.toml")
    text = refused(copy, "of another one")
    assert other.hash.hex()[:12] in text
    assert study.hash.hex()[:12] in text


def test_data_that_are_missing(copy):
    recording = read_recording(copy)
    (copy / "p3" / "data.csv").unlink()
    with pytest.raises(FileFormatError, match="data of p3 are missing"):
        recording.rows  # noqa: B018


def test_frames_of_two_studies_in_one_folder_are_told_apart(copy):
    """Run again in the same folder: the frames are appended, and each study finds its own."""
    first = read_recording(copy)
    second = recordings.study_of(copy, TASK, 4, SETTINGS, graph="ring:4", nonce="3" * 32)
    recordings.run(copy, second)
    one = read_recording(copy)  # only the second study is still there
    assert one.study.hash == second.hash
    assert "left out" in one.notes[0]
    first.study.write(copy / "study-2.toml")
    both = {found.study.hash: found for found in read_recordings(copy)}
    assert set(both) == {first.study.hash, second.hash}
    assert len(both[first.study.hash].said) == len(first.said)
    with pytest.raises(InvalidValue, match="2 studies"):
        read_recording(copy)


# ── what is written ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_study_and_data_are_kept_beside_the_frames(sound, tmp_path):
    """Whatever the data came from, and wherever the study lay."""
    study, data, record = read_recording(sound).study, tmp_path / "data", tmp_path / "record"
    data.mkdir()
    files = {}
    for name in study.names:
        files[name] = data / f"{name}.csv"
        shutil.copy(sound / name / "data.csv", files[name])
    keep_beside(record, study, sound / "study.toml", files, sound)
    for u in range(4):
        shutil.copy(sound / f"p{u}.frames", record)
    recording = read_recording(record)
    assert recording.home(1) == sound / "p1"
    assert recording.study.hash == study.hash
    assert recording.rows[1].tolist() == read_recording(sound).rows[1].tolist()
    assert (record / "p0" / "data.csv").stat().st_mode & 0o077 == 0
    # a second study into the same folder does not take the place of the first
    keep_beside(record, study.replace(nonce="4" * 32), sound / "study.toml", files)
    keep_beside(record, study, sound / "study.toml", files)
    assert sorted(path.name for path in record.glob("study*.toml")) == ["study-2.toml", "study.toml"]


def test_items_know_who_made_them(sound):
    recording = read_recording(sound)
    assert all(isinstance(one.item, Item) for one in recording.items)
    assert {one.item.key.kind for one in recording.items} == {ItemKind.VOTE, ItemKind.CONTRIBUTION}
