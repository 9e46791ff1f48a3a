"""Real processes, killed without warning at every moment that matters: the right answer, and nothing said twice.

`crew.py` kills; `netdp.peers.launch` starts again, as a service manager would. The expected total is computed here from every
party's data and secret by the steps that the simulator takes, and must agree to the last bit.
"""

import contextlib
import shutil
import sqlite3
import struct
import sys
from pathlib import Path

import pytest

from netdp.peers.messages import Item, ItemKind, encode
from netdp.peers.outcome import ENDED, exit_code

sys.path.append(str(Path(__file__).parent))  # children of the fork server get this path, and import crew from it

import crew
import matrix

WAYS = {
    "flood": {"graph": "ring:5"},
    "average": {"graph": "complete:5", "spread": "average"},
    "ring": {"graph": "ring:5", "protocol": "ring-sum"},
}

SENDS = [
    [("before send", k) for k in (1, 2, 3, 4, 5)],
    [("after send", k) for k in (1, 2, 3, 4, 5)],
    [("before send", k) for k in (6, 7, 8, 9, 10)],
    [("after send", k) for k in (6, 7, 8, 9, 10)],
    [("long-after send", k) for k in (1, 3, 5, 7)],
]
WRITES = [
    [("before vote",), ("after vote",), ("before spend",), ("in commit",), ("after spend",)],
    [("before contribution",), ("after contribution",), ("long-after contribution",)],
    [("before result",), ("after result",)],
    [("before frame", k) for k in (1, 2, 4, 6)],
    [("after frame", k) for k in (1, 2, 4, 6)],
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("deaths", [SENDS, WRITES], ids=["sends", "writes"])
def test_killed_at_every_moment(tmp_path, way, deaths):
    """All parties die again and again, each at other moments, and come back: everybody holds the exact sum of attempt 1."""
    one = crew.Crew(tmp_path, 5, **WAYS[way])
    if deaths is SENDS and way != "flood":
        # one side of every send; both sides, in virtual time: test_party, test_walks, test_schedules
        deaths = [lives[u % 2 :: 2] for u, lives in enumerate(deaths)]
    for u, lives in enumerate(deaths):
        crew.orders(one.home(u), *lives)
    result = one.run()
    one.check(result)
    assert exit_code(result) == 0
    assert sum(result.restarts.values()) >= (8 if way == "flood" or deaths is WRITES else 6)
    if deaths is WRITES:
        assert not any(one.left(u) for u in (0, 1, 2))


def test_killed_at_every_write_of_an_attempt_that_survives(tmp_path):
    """Before and after each word that is written down, and in every other transaction: the same words, and all have the sum."""
    one = crew.Crew(tmp_path, 5, "complete:5", threshold=4, patience=90.0)
    before, after = ("before settle",), ("after settle",)
    lives = [
        [after] * 8,  # after each of: keys, dealing, prepare, commit, reveal, answer; some more, should it say more
        [before, after] * 4,
        [("before settle", 2), ("after settle", 2)] * 2 + [before] * 2,
        WRITES[0] + WRITES[2],
        [("before settle", 6), ("before settle", 5), ("before settle", 4), ("before settle", 3)],
    ]
    for u, deaths in enumerate(lives):
        crew.orders(one.home(u), *deaths)
    result = one.run()
    matrix.judge(one, result, answers=True)
    assert exit_code(result) == 0
    assert {(told["attempt"], *told["roster"]) for told in result.answered.values()} == {(1, *one.study.names)}
    assert not result.evidence
    assert not result.blamed
    died = [len(deaths) - len(one.left(u)) for u, deaths in enumerate(lives)]
    assert died[0] >= 5, died
    assert died[1] == 8, died
    assert sum(died) >= 18, died
    said = {key.kind for key in one.said() if key.author == 0}  # a ballot that is over needs no word of it
    assert {ItemKind.KEYS, ItemKind.DEALING, ItemKind.REVEAL} <= said


@pytest.mark.parametrize("way", ["flood", "average"])
def test_gone_for_good_after_its_contribution_left(tmp_path, way):
    """The others finish attempt 1, with the value of the one that is gone."""
    one = crew.Crew(tmp_path, 5, **WAYS[way], patience=15.0)
    # one of its neighbours is never sent its contribution
    crew.orders(one.home(2), ("mute-after contribution", 1 if way == "flood" else 3))
    result = one.run(restart=False)
    one.check(result, who=(0, 1, 3, 4))
    assert not one.left(2)  # it did die; on a ring it may have seen the answer before
    assert exit_code(result) == 0
    assert all(one.spent(u) == [(1, 5)] for u in range(5))


@pytest.mark.parametrize("way", ["flood", "average"])
def test_gone_for_good_before_its_contribution(tmp_path, way):
    """It has voted, so the roster is sealed: the others contribute twice, and both are in their ledgers."""
    one = crew.Crew(tmp_path, 5, graph="complete:5", spread=way, attempts=2, absent=1, gather=120.0, patience=20.0)
    crew.orders(one.home(2), ("before spend",))
    one.foresee("p2")
    crew.orders(one.home(0), ("hold send", ["p1", "p3", "p4"]))  # the last to vote: who dies has been heard by then
    result = one.run(restart=False)
    one.check(result, attempt=2, roster=(0, 1, 3, 4), who=(0, 1, 3, 4))
    assert exit_code(result) == 0
    assert [one.spent(u) for u in range(5)] == [[(1, 5), (2, 4)]] * 2 + [[]] + [[(1, 5), (2, 4)]] * 2
    assert all(told["spent"]["contributions"] == 2 for told in result.answered.values())
    promised = one.study.privacy.epsilon
    assert all(0 < told["spent"]["epsilon"]["1"] <= promised for told in result.answered.values())


def test_absent_from_the_beginning(tmp_path):
    """One that never comes costs nobody an attempt; two are more than the study allows: an end, and nothing was sent."""
    one = crew.Crew(tmp_path / "one", 5, graph="complete:5", attempts=2, absent=1, gather=120.0, patience=20.0)
    one.foresee(absent=["p4"])
    result = one.run(only=[f"p{u}" for u in range(4)])
    one.check(result, attempt=2, roster=range(4), who=range(4))
    assert [one.spent(u) for u in range(4)] == [[(2, 4)]] * 4

    two = crew.Crew(tmp_path / "two", 5, graph="complete:5", attempts=2, absent=1, gather=120.0, patience=20.0)
    two.foresee(absent=["p3", "p4"])
    result = two.run(only=[f"p{u}" for u in range(3)])
    assert exit_code(result) == ENDED == 3
    assert {told["contributed"] for told in result.outcomes.values()} == {0}
    assert all("at least 4" in told["reason"] for told in result.outcomes.values())
    assert not any(key.kind == ItemKind.CONTRIBUTION for key in two.said())
    assert [two.spent(u) for u in range(3)] == [[]] * 3


def test_a_record_that_shows_two_contributions_is_noticed(tmp_path):
    """The check of this file can fail: another contribution in a record is found."""
    one = crew.Crew(tmp_path, 3, graph="ring:3")
    one.check(one.run())
    (key, (body,)) = next((k, b) for k, b in one.said().items() if k.kind == ItemKind.CONTRIBUTION)
    frame = encode([Item(key, body[:-1] + bytes([body[-1] ^ 1]))])
    with open(one.record / "p0.frames", "ab") as file:
        file.write(struct.pack("<II", 1, len(frame)) + frame)
    with pytest.raises(AssertionError):
        one.check_files()


@pytest.mark.parametrize("way", ["flood", "average"])
def test_who_holds_the_answer_serves_others_after_a_restart(tmp_path, way):
    """Party 0 is done and gone; party 1, started again, has what party 2 needs of it, in its folder."""
    one = crew.Crew(tmp_path, 3, "path:3", spread=way, patience=20.0)
    first = one.run()
    one.check(first)
    with contextlib.closing(sqlite3.connect(one.home(2) / "peer.db")) as database:  # as if it had died a moment earlier
        database.execute("DELETE FROM results")
        database.commit()
    shutil.rmtree(one.folder / "meeting")
    one.check(one.run(only=["p1", "p2"]), who=(1, 2))
