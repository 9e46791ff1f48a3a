"""One answer, signed; who says two things, named; what honest parties cannot have come to, withheld: real processes and commands.

`netdp study result`, `netdp evidence verify`, `netdp peer status`, exit status 4. What must hold:
docs/proofs/masked.md#one-attempt.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

from netdp.peers.ledger.store import Store
from netdp.peers.outcome import IMPLAUSIBLE, exit_code

sys.path.append(str(Path(__file__).parents[1] / "peers"))  # children of the fork server get this path, too

import crew
import matrix

LIAR = 2
WHO = f"p{LIAR}"


def company(folder, *lies):
    """Six peers, one of whom may lie and one be away; the second lies. (the crew, what came of it)"""
    of = matrix.SIX
    one = crew.Crew(
        folder, of.parties, f"complete:{of.parties}", rough=True, colluders=of.colluders, absent=of.absent,
        threshold=of.threshold, gather=120.0, patience=20.0,
    )  # fmt: skip
    if lies:
        crew.orders(one.home(LIAR), *lies)
    return one, one.run(restart=False)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A study in which nothing happens."""
    one, result = company(tmp_path_factory.mktemp("calm"))
    assert exit_code(result) == 0, (result.gone, result.notes)
    return one, result


@pytest.fixture(scope="module")
def cheated(tmp_path_factory):
    """A study in which one party says two things."""
    return company(tmp_path_factory.mktemp("cheated"), ["lie contribution", "double"])


@pytest.fixture
def kept(run, calm, tmp_path):
    """The result of a run, in a file."""
    one, _ = calm
    out = tmp_path / "result.json"
    status, said, err = run("study", "result", str(one.path), "--run", str(one.folder), "--out", str(out))
    assert (status, err) == (0, ""), said
    return one, out


# ── the result ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_is_checked_with_the_study_alone(run, kept, tmp_path):
    one, out = kept
    (alone := tmp_path / "elsewhere").mkdir()
    shutil.copy(one.path, alone / "study.toml")
    shutil.copy(out, alone / "result.json")
    words = ("study", "result", str(alone / "study.toml"), "--verify", str(alone / "result.json"))
    status, said, err = run(*words)
    assert (status, err) == (0, ""), said
    assert "Signed by 6: p0, p1, p2, p3, p4, p5." in said
    assert "At most 1 party colludes, says the study; so at least 5 of these are of" in said
    assert "It is what the study's parties signed." in said
    status, said, _ = run(*words, "--json")
    told = json.loads(said)
    assert (status, told["ok"], told["problems"]) == (0, True, [])
    assert told["answer"] == json.loads(out.read_text())["answer"]
    assert told["signed"] == [f"p{u}" for u in range(6)]


def changed(out, **changes):
    told = json.loads(out.read_text()) | changes
    out.write_text(json.dumps(told))
    return told


TAMPERED = {
    "total": (lambda told: {"total": [told["total"][0] + 1e-3]}, "does not follow from its total"),
    "answer": (lambda told: {"answer": told["answer"] | {"value": 99.0}}, "the answer that it states does not follow"),
    "roster": (lambda told: {"roster": told["roster"][1:]}, "the signature of p0 does not fit"),
    "short roster": (lambda told: {"roster": told["roster"][:2]}, "its roster has 2 parties; the study asks for 5"),
    "attempt": (lambda told: {"attempt": 2}, "the signature of p3 does not fit: this is not what p3 signed"),
    "another study": (lambda told: {"study": {"name": "crew", "hash": "00" * 32}}, "it is a result of another study"),
    "one signature": (lambda told: {"signatures": {"p4": told["signatures"]["p4"]}}, "1 signature proves nothing"),
    "no signature": (lambda told: {"signatures": {}}, "0 signatures prove nothing"),
    "another's signature": (
        lambda told: {"signatures": {"p4": told["signatures"]["p3"]}}, "the signature of p4 does not fit",
    ),
    "a stranger": (lambda told: {"signatures": told["signatures"] | {"eve": "00"}}, "'eve' signed, and is no party"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_changed_or_signed_by_too_few_is_said(run, kept, what):
    one, out = kept
    change, said = TAMPERED[what]
    changed(out, **change(json.loads(out.read_text())))
    words = ("study", "result", str(one.path), "--verify", str(out))
    status, text, _ = run(*words)
    assert status == 1
    assert said in " ".join(text.split()), text
    assert text.rstrip().endswith("Do not rely on it.")
    status, text, _ = run(*words, "--json")
    told = json.loads(text)
    assert (status, told["ok"]) == (1, False)
    assert any(said in problem for problem in told["problems"]), told["problems"]


def test_two_signatures_are_enough_where_one_party_may_lie(run, kept):
    one, out = kept
    told = json.loads(out.read_text())
    changed(out, signatures={name: told["signatures"][name] for name in ("p0", "p5")})
    status, text, _ = run("study", "result", str(one.path), "--verify", str(out))
    assert status == 0
    assert "Without the signature of p1, p2, p3, p4, whose numbers are in it." in " ".join(text.split())
    assert "one of these signatures is that of an honest party" in " ".join(text.split())


def test_whose_result_is_asked_and_files_that_are_none_are_one_line(run, kept, tmp_path):
    one, out = kept
    for words, said in (
        ((), "whose result? Give one of --home FOLDER, --run FOLDER and --verify FILE, got none"),
        (("--verify", str(out), "--run", str(one.folder)), "got --run and --verify"),
        (("--verify", str(out), "--out", str(tmp_path / "x")), "checks a file and writes none"),
        (("--verify", str(tmp_path / "nothing.json")), "cannot be read"),
        (("--verify", str(one.path)), "is no JSON; a result is written by netdp study result --out"),
        (("--home", str(tmp_path)), "peer.db"),
    ):
        status, _, err = run("study", "result", str(one.path), *words)
        assert (status, err.count("\n")) == (2, 1), err
        assert said in err, err


def test_the_result_of_one_home(run, calm):
    one, _ = calm
    status, said, _ = run("study", "result", str(one.path), "--home", str(one.home(3)), "--json")
    told = json.loads(said)
    assert status == 0
    assert "p3" in told["signed"]


def test_the_example_in_the_repository_says_what_its_page_says(run):
    folder = Path(__file__).parents[2] / "examples" / "signed"
    page = (folder / "README.md").read_text("utf-8")
    study = str(folder / "study.toml")
    for words in (
        ("study", "result", study, "--verify", str(folder / "result.json")),
        ("evidence", "verify", str(folder / "evidence.json"), "--study", study),
    ):
        status, said, err = run(*words)
        assert (status, err) == (0, "")
        assert said.splitlines()[-1] in page
        assert next(line for line in said.splitlines() if "cedar" in line) in page


# ── two things said ───────────────────────────────────────────────────────────────────────────────────────────────────


def honest(one):
    return [name for name in one.study.names if name != WHO]


def test_who_says_two_things_is_named_by_all_who_are_honest(cheated):
    one, result = cheated
    assert set(honest(one)) <= set(result.answered), (result.gone, result.outcomes, result.notes)
    assert len({result.answered[name]["digest"] for name in honest(one)}) == 1
    for name in honest(one):
        assert {(proof["party"], proof["kind"]) for proof in result.outcomes[name]["evidence"]} == {
            (WHO, "contribution")
        }
    assert not any("party 2" in note for note in result.notes)
    assert any(WHO in note and "proof that it cheats" in note for note in result.notes), result.notes


def test_a_proof_is_checked_with_the_study_alone(run, cheated, tmp_path):
    one, _ = cheated
    name = honest(one)[0]
    study, proofs = tmp_path / "study.toml", tmp_path / "evidence.json"
    shutil.copy(one.path, study)
    shutil.copy(one.folder / name / "evidence.json", proofs)
    status, said, err = run("evidence", "verify", str(proofs), "--study", str(study))
    assert (status, err) == (0, "")
    assert f'PROVED: {WHO} signed two different contributions to attempt 1 of the study "crew".' in " ".join(
        said.split()
    )
    status, said, _ = run("evidence", "verify", str(proofs), "--study", str(study), "--json")
    assert (status, json.loads(said)["ok"]) == (0, True)
    status, said, _ = run("evidence", "verify", str(proofs))
    assert status == 1
    assert "without the study nobody knows whose keys these are" in " ".join(said.split())
    framed = json.loads(proofs.read_text())
    framed[0]["party"] = name
    proofs.write_text(json.dumps(framed))
    status, said, _ = run("evidence", "verify", str(proofs), "--study", str(study))
    assert status == 1
    assert f"NOT PROVED that {name} signed" in said
    proofs.write_text("[]")
    status, said, _ = run("evidence", "verify", str(proofs), "--study", str(study))
    assert (status, "holds no proof" in said) == (1, True)


def test_a_proof_of_another_study_proves_nothing_here(run, cheated, calm):
    one, _ = cheated
    proofs = one.folder / honest(one)[0] / "evidence.json"
    status, said, _ = run("evidence", "verify", str(proofs), "--study", str(calm[0].path))
    assert status == 1
    assert "it is about another study" in " ".join(said.split())


def test_the_owner_sees_it_in_status(run, cheated):
    one, _ = cheated
    home = one.folder / honest(one)[0]
    _, said, _ = run("peer", "status", "--home", str(home))
    assert f"PROVED      signed two different things: {WHO} ×1" in said
    assert f"netdp evidence verify {home / 'evidence.json'} --study STUDY" in said
    _, said, _ = run("peer", "status", "--home", str(home), "--json")
    assert json.loads(said)["last"]["proofs"] == {WHO: 1}


def test_who_withholds_its_shares_does_not_get_the_answer_alone(tmp_path):
    one, result = company(tmp_path, ["lie reveal", "withhold"])
    assert set(honest(one)) <= set(result.answered), (result.gone, result.notes)


# ── an answer that cannot be ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_out_of_reach_is_withheld_with_a_status_of_its_own(run, tmp_path):
    one, result = company(tmp_path, ["boast"])
    assert exit_code(result) == IMPLAUSIBLE == 4
    assert len(result.outcomes) == 6
    for name, told in result.outcomes.items():
        assert (told["ok"], told["withheld"], told["code"]) == (False, True, "out-of-reach"), name
        assert "answer" not in told
        assert "total" not in told
        with Store.open(one.folder / name / "peer.db") as store:
            assert store.result(one.study.hash) is None
            assert len(store.entries()) == 1  # what was published was published, and is entered
    _, said, _ = run("peer", "status", "--home", str(one.home(0)))
    assert "the answer is withheld: honest parties cannot have come to it (out-of-reach)" in said
    status, _, err = run("study", "result", str(one.path), "--run", str(one.folder))
    assert (status, "no answer of the study 'crew'" in err) == (2, True)
