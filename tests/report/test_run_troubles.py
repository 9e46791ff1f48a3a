"""Why a run gave no common answer, told to people: by `make demo` and by `netdp up`."""

import runpy
from pathlib import Path

import pytest

from netdp.peers import launch as ups
from netdp.peers.study import Study
from netdp.report.run import run_rows, troubles

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"
STUDY = Study.read(ROOT / "examples" / "clinics" / "study.toml")
GIVEN_UP = "2 of 16 parties took part in attempt 1 (missing: alder, birch), and the study wants at least 14"
LEDGER = {"entries": 1, "epsilon": {"1": 0.55, "3": 0.75}, "fixed": {"1": 0.5, "3": 0.7}}
SPENT = {"delta": 1e-6, "epsilon": {"1": 0.5, "3": 0.7}, "contributions": 1, "ledger": LEDGER}


def ended(reason=GIVEN_UP):
    return {"ok": False, "reason": reason, "contributed": 0, "sent": [], "spent": SPENT}


def answered(digest="ab"):
    answer = STUDY.answer([10.0, 100.0], STUDY.n)
    told = {
        "ok": True,
        "attempt": 1,
        "digest": digest,
        "answer": answer,
        "roster": list(STUDY.names),
        "total": [10.0, 100.0],
    }
    return told | {"contributed": 1, "sent": [], "spent": SPENT}


def test_what_the_run_really_cost_holds_whatever_was_chosen_and_the_smaller_number_stands_beside_it():
    rows = run_rows(run_of(dict.fromkeys(STUDY.names, answered())))
    cost = [row for row in rows if row[0].startswith("ε at δ")]
    assert [row[1] for row in cost] == ["0.550", "0.750"]
    for (_, _, words), fixed in zip(cost, ("0.500", "0.700"), strict=True):
        assert f"learned, whatever was chosen; {fixed} if all had been fixed beforehand" in words
    assert "promised" in cost[1][2]


def run_of(outcomes, gone=None, notes=()):
    seconds = {"listening": 1.0, "answered": 2.0, "all": 3.0}
    return ups.UpResult(STUDY, outcomes, {}, gone or {}, tuple(notes), seconds)


def test_a_reason_is_told_once_with_all_whom_it_concerns():
    result = run_of(
        {name: ended() for name in STUDY.names[2:]} | {"birch": ended("another reason")}, {"alder": "killed (signal 9)"}
    )
    assert troubles(result) == [
        f"14 of 16 ended without the answer (cedar, elm, fir, hazel, holly and 9 more): {GIVEN_UP}",
        "1 of 16 ended without the answer (birch): another reason",
        "1 of 16 left before the end (alder): killed (signal 9)",
    ]


def test_many_reasons_are_counted():
    told = troubles(run_of({name: ended(f"reason {u}") for u, name in enumerate(STUDY.names)}))
    assert len(told) == 5
    assert told[-1] == "and 12 more reasons"


def test_different_answers_and_silence():
    assert troubles(run_of({name: answered() for name in STUDY.names})) == []
    apart = run_of({name: answered("ab" if u else "cd") for u, name in enumerate(STUDY.names)})
    assert troubles(apart) == ["16 of 16 hold an answer, but 2 different ones"]
    assert ("not agreed", "", "16 of 16 hold an answer, but 2 different ones") in run_rows(apart)
    assert troubles(run_of({}, notes=["first", "alder: the last word"])) == ["alder: the last word"]
    assert troubles(run_of({})) == ["no party said anything before it ended"]


@pytest.mark.parametrize(
    "result",
    [
        run_of({name: ended() for name in STUDY.names}, notes=["alder: attempt 1 is given up", "birch: the same"]),
        run_of({}, dict.fromkeys(STUDY.names, "died (exit 1)")),
        run_of({}, notes=["alder: failed: no such file"]),
    ],
)
def test_a_demo_without_an_answer_says_why_in_words(result, monkeypatch, capsys):
    monkeypatch.setattr(ups, "run_study", lambda *_, **__: result)
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(DEMO), run_name="__main__")
    said = str(left.value.code)
    assert said.startswith("The clinics came to no common answer:\n  - ")
    assert troubles(result)[0] in said
    assert "make demo" in said
    assert f"{STUDY.timing.patience:g} s" in said
    for python in ("('", "',)", "['", "{'", "': "):
        assert python not in said
    assert capsys.readouterr().out.startswith("16 clinics")
