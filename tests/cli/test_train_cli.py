"""Training from the command line: a schema, a study, its explanation, real processes, a model card; bad input is refused first."""

import json

import numpy as np
import pytest

from netdp.cli.training import model_lines
from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.learn import load_model
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.peer import prepare
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study, Training
from netdp.peers.study.progress import write_model

NAMES = ("p00", "p01", "p02")
ASKED = ("--label", "ill=no|yes", "--feature", "age=20..60", "--feature", "sex=f|m", "--n", "3", "--max-records", "200")
QUICK = ("--epsilon", "8", "--iterations", "4", "--gather", "120", "--patience", "60")
MODULE = """
from netdp.models import Logistic

def ours(features):
    return Logistic(features + 1)

def huge():
    return Logistic(10_000_000)
"""


def people(count, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        age = rng.uniform(20, 60)
        yield {"age": f"{age:.1f}", "sex": str(rng.choice(["f", "m"])), "ill": "yes" if age > 40 else "no"}


def written(path, rows, columns=("age", "sex", "ill")):
    lines = [",".join(columns), *(",".join(row[name] for name in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with everybody's table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for u, name in enumerate(NAMES):
        written(tmp_path / "data" / f"{name}.csv", people(60, seed=u))
    return tmp_path


@pytest.fixture
def study(run, folder):
    """A draft for three parties."""
    status, _, err = run("study", "new", "Ill", *ASKED, *QUICK)
    assert status == 0, err
    return folder / "study.toml"


# ── drafting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_from_a_header_to_a_study(run, folder):
    status, out, err = run("study", "schema", "data/p00.csv")
    assert status == 0, err
    assert "no row of data/p00.csv was read" in out
    schema = folder / "schema.toml"
    status, _, err = run("study", "new", "Ill", "--schema", "schema.toml", "--n", "3", "--max-records", "200")
    assert status == 2
    assert "the column 'age' is still open" in err
    text = schema.read_text("utf-8").replace('classes = ["?"]', 'classes = ["no", "yes"]')
    schema.write_text(text.replace('age = ["?"]', "age = [20, 60]").replace('sex = ["?"]', 'sex = ["f", "m"]'), "utf-8")
    status, out, err = run(
        "study", "new", "Ill", "--schema", "schema.toml", "--n", "3", "--max-records", "200", *QUICK, "--json"
    )
    assert status == 0, err
    told = json.loads(out)
    assert told["training"]["parameters"] == 3
    assert told["kept"]
    made = Study.read(folder / "study.toml")
    assert made.task == Training(
        features=[{"name": "age", "range": [20, 60]}, {"name": "sex", "values": ["f", "m"]}], label="ill", classes=["no", "yes"],
        max_records=200, held_out=0.1,
    )  # fmt: skip
    assert made.check_promise() <= 8
    status, _, err = run("study", "schema", "data/p00.csv")
    assert status == 2
    assert "is there already" in err


def test_nobody_has_to_know_how_to_choose_iterations_step_and_clip(run, folder):
    status, _, err = run("study", "new", "Ill", *ASKED, "--epsilon", "4")
    assert status == 0, err
    settings = Study.read(folder / "study.toml").settings
    assert settings.iterations >= 20
    assert settings.step > 0
    assert 0 < settings.clip <= 1


def test_the_explanation_says_what_is_read_what_it_costs_and_how_often(run, study):
    status, out, err = run("study", "explain", str(study))
    assert status == 0, err
    said = " ".join(out.split())
    for words in (
        "A logistic regression of 'ill' (no, yes) on 2 columns",
        "It reads age (20 to 60), sex (f, m)",
        "A share of 0.1 of the rows is not trained on",
        "What it costs 5 rounds; in each every party sends about",
        "publishes once in each of 5 rounds",
        "Any one record of a party",
    ):
        assert words in said
    assert "CODE THAT RUNS" not in out
    assert Study.read(study).text == study.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--task", "mean", "--label", "ill=no|yes"), "belong to --task train, not to mean"),
        (("--task", "train"), "which columns? give --schema FILE"),
        (("--label", "ill=no|yes"), "which columns?"),
        (("--label", "ill", "--feature", "age=1..2"), "--label is NAME=LOWEST..HIGHEST"),
        (("--label", "ill=no|yes", "--feature", "age=1..2", "--column", "age"), "--column belongs to sums"),
        (("--label", "ill=no|yes", "--feature", "age=1..2"), "max_records: to protect records, say how many"),
        (
            ("--label", "ill=no|yes", "--feature", "age=1..2", "--max-records", "9", "--model", "nets:cnn"),
            "no file nets.py",
        ),
        (("--label", "ill=no|yes", "--feature", "age=1..2", "--max-records", "9", "--code", "nowhere"), "is no folder"),
        (("--label", "ill=no|yes", "--feature", "age=1..2", "--max-records", "9", "-p", "ring-sum"), "not train"),
        (("--task", "mean", "--column", "x", "--bounds", "0,1", "--iterations", "3"), "belongs to masked-descent"),
        (
            ("--task", "mean", "--column", "x", "--bounds", "0,1", "-p", "masked-descent"),
            "task.kind: masked-descent answers train, not mean; what does: masked-sum, ring-sum, ",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(run, folder, words, problem):
    status, out, err = run("study", "new", "Ill", "--n", "3", *words)
    assert (status, out) == (2, "")
    assert problem in err
    assert not (folder / "study.toml").exists()


def test_a_large_model_is_announced_loudly_before_anything_starts(run, folder):
    (folder / "nets.py").write_text(MODULE, "utf-8")
    words = ("--model", "nets:huge", "--iterations", "100", "--epsilon", "8")
    status, out, err = run("study", "new", "Ill", *ASKED, *words)
    assert status == 0, err
    said = " ".join(out.split())
    assert "THIS IS LARGE: the model has 10,000,000 numbers" in said
    assert "80 MB, 8 GB in all" in said
    assert "NOISE WILL WIN" in said


def test_code_is_announced_and_neither_explaining_nor_signing_runs_it(run, folder):
    (folder / "nets.py").write_text(MODULE, "utf-8")
    status, _, err = run("study", "new", "Ill", *ASKED, *QUICK, "--model", "nets:ours")
    assert status == 0, err
    content = (folder / "nets.py").read_bytes()
    (folder / "nets.py").write_text("raise SystemExit('it ran')")
    status, out, _ = run("study", "explain", "study.toml")
    assert status == 0
    assert "CODE THAT RUNS BESIDE YOUR DATA" in out
    made, path = settle(Study.read(folder / "study.toml"), folder / "homes")
    status, _, err = run("study", "sign", str(path), "--home", "homes/p00")
    assert status == 2
    assert "is not the module that was agreed upon" in err
    (folder / "nets.py").write_bytes(content)
    assert run("study", "sign", str(path), "--home", "homes/p00")[0] == 0
    assert made.task.is_code


# ── bad rows: nothing is sent ─────────────────────────────────────────────────────────────────────────────────────────


def columns_differ(data):
    text = (data / "p01.csv").read_text("utf-8")
    (data / "p01.csv").write_text(text.replace("age,sex", "years,sex", 1), "utf-8")
    return FileFormatError, r"p01\.csv:1: there is no column 'age'; there are 'years', 'sex', 'ill'"


def not_a_number(data):
    written(data / "p01.csv", [{"age": "nan", "sex": "f", "ill": "no"}] * 3)
    return InvalidValue, r"p01\.csv:2: column 'age' holds 'nan', which is not a finite number"


def empty_cell(data):
    written(data / "p01.csv", [{"age": "", "sex": "f", "ill": "no"}] * 3)
    return InvalidValue, r"p01\.csv:2: column 'age' is empty"


def unseen_label(data):
    written(data / "p01.csv", [{"age": "30", "sex": "f", "ill": "perhaps"}] * 3)
    return InvalidValue, r"p01\.csv:2: column 'ill' holds 'perhaps', which is none of 'no', 'yes'"


def one_row(data):
    written(data / "p01.csv", people(1))
    return InvalidValue, r"has 1 row and the study asks for at least min_records = 2"


def too_many_rows(data):
    written(data / "p01.csv", people(201))
    return InvalidValue, r"has 201 rows and the study allows at most max_records = 200"


BAD = [columns_differ, not_a_number, empty_cell, unseen_label, one_row, too_many_rows]


@pytest.mark.parametrize("spoil", BAD)
def test_bad_rows_are_refused_by_the_party_before_anything_is_sent(folder, study, spoil):
    made, path = settle(Study.read(study), folder / "homes")
    kind, words = spoil(folder / "data")
    events = []
    with pytest.raises(kind, match=words):
        prepare(folder / "homes" / "p01", path, folder / "data" / "p01.csv", report=events.append)
    assert events == []
    assert not (folder / "homes" / "p01" / "peer.db").exists()
    assert made.names == NAMES


@pytest.mark.parametrize("spoil", [columns_differ, unseen_label])
def test_netdp_up_refuses_them_before_anybody_starts(run, folder, study, spoil):
    spoil(folder / "data")
    status, out, err = run("up", str(study))
    assert (status, out) == (2, "")
    assert "p01.csv" in err
    assert not (folder / "model").exists()


def test_a_module_that_differs_at_one_party_stops_that_party_before_anything_is_sent(run, folder, monkeypatch):
    (folder / "nets.py").write_text(MODULE, "utf-8")
    status, _, err = run("study", "new", "Ill", *ASKED, *QUICK, "--model", "nets:ours")
    assert status == 0, err
    _, path = settle(Study.read(folder / "study.toml"), folder / "homes")
    files = {name: folder / "data" / f"{name}.csv" for name in NAMES}
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "nets.py").write_text(
        MODULE.replace("+ 1", "+ 2") + "\nraise SystemExit('it ran')\n", "utf-8"
    )
    monkeypatch.chdir(folder / "elsewhere")
    events = []
    with pytest.raises(Refused, match=r"nets\.py is not the module that was agreed upon"):
        prepare(folder / "homes" / "p01", path, files["p01"], report=events.append)
    assert events == []
    assert not (folder / "homes" / "p01" / "peer.db").exists()
    monkeypatch.chdir(folder)
    peer = prepare(folder / "homes" / "p00", path, files["p00"])
    peer.store.close()


def test_a_doctor_sees_that_the_module_is_another_and_runs_nothing(run, folder):
    from netdp.peers.doctor import _code

    (folder / "nets.py").write_text(MODULE, "utf-8")
    assert run("study", "new", "Ill", *ASKED, *QUICK, "--model", "nets:ours")[0] == 0
    found = []
    made = Study.read(folder / "study.toml")
    assert _code(made, found.append)
    (folder / "nets.py").write_text("raise SystemExit('it ran')")
    assert not _code(made, found.append)
    assert [check.status for check in found] == ["ok", "fail"]


# ── tables of everybody ───────────────────────────────────────────────────────────────────────────────────────────────


def test_one_parquet_table_is_dealt_out_as_csv_is(folder, study):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {"party": name, **row, "age": float(row["age"])} for u, name in enumerate(NAMES) for row in people(60, seed=u)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "all.parquet")
    made, _ = settle(Study.read(study), folder / "homes")
    dealt = deal(made, folder / "all.parquet", folder / "homes")
    own = deal(made, folder / "data", folder / "homes")
    for name in NAMES:
        assert made.task.rows(dealt[name]).tolist() == made.task.rows(own[name]).tolist()
    for name in NAMES:
        parquet.write_table(pyarrow.Table.from_pylist(list(people(60))), folder / "data" / f"{name}.parquet")
    with pytest.raises(InvalidValue, match=r"has p00\.csv and p00\.parquet"):
        deal(made, folder / "data", folder / "homes")
    for name in NAMES:
        (folder / "data" / f"{name}.csv").unlink()
    assert deal(made, folder / "data", folder / "homes")["p01"].name == "p01.parquet"


# ── real processes ────────────────────────────────────────────────────────────────────────────────────────────────────


def without_resume(held):
    """A result as a backup keeps it."""
    return {key: value for key, value in held.items() if key != "resume"}


def test_one_command_from_tables_to_a_model_card(run, folder, study, monkeypatch):
    load = Store.result
    status, out, err = run("up", str(study), "--folder", "homes", "--json")
    assert status == 0, err
    told = json.loads(out)
    assert told["ok"]
    assert told["guarantee"]["spent_epsilon"]["1"] <= 8
    assert told["result"]["coefficients"].keys() == {"age", "sex", "constant"}
    model = load_model("model")
    card = (folder / "model" / "MODEL_CARD.md").read_text("utf-8")
    made = Study.read("homes/study.toml")
    for words in ("ε = 8 at δ = 1e-06", made.hash.hex(), "one record added or removed", "| age | 20 to 60 | feature |"):
        assert words in card
    for line in made.promise().assumptions:
        assert line in card
    # all hold the same numbers, in their own homes too; and what a party's ledger says is what the card promises
    for name in NAMES:
        own = load_model(folder / "homes" / name / "models" / made.hash.hex()[:16])
        assert own.card["digest"] == model.card["digest"]
        assert own.theta.tobytes() == model.theta.tobytes()
        with Store.open(folder / "homes" / name / "peer.db", read_only=True) as store:
            assert len(store.entries_of(made.hash)) == 1
    assert list(model.theta) == pytest.approx(list(told["result"]["coefficients"].values()))
    assert set(model.predict([{"age": 58, "sex": "f"}, {"age": 21, "sex": "m"}])) <= {"no", "yes"}
    # it can be written again from any home, with a file in the way it is said how; another study does not replace it
    status, out, err = run("study", "model", "homes/study.toml", "--home", "homes/p01", "--out", "again")
    assert status == 0, err
    assert load_model("again").theta.tobytes() == model.theta.tobytes()
    (folder / "file").write_text("in the way")
    files, words = model_lines(made, folder / "homes" / "p02", folder / "file")
    assert "model_error" in files
    assert "netdp study model STUDY --home" in words[0]
    monkeypatch.setattr(Store, "result", lambda store, study: without_resume(load(store, study)))
    assert write_model(made, folder / "homes" / "p01", folder / "restored") is not None
    assert load_model("restored").theta.tobytes() == model.theta.tobytes()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    status, _, err = run("up", str(study), "--json")
    assert status == 2
    assert "give another folder, --out FOLDER" in err
    assert Identity.load(folder / "homes" / "p00").card.name == "p00"


def test_what_would_fail_after_all_was_spent_is_refused_before(run, study):
    """A place for the model that cannot be written, more iterations than anybody waits for, more rows than there can be."""
    taken = study.parent / "afile"
    taken.write_text("mine")
    status, _, err = run("up", str(study), "--data", "data", "--out", str(taken), "--folder", "homes")
    assert status == 2
    assert "no model can be written to" in err
    assert not (study.parent / "homes").exists()
    status, _, err = run("study", "new", "Long", *ASKED, "--iterations", "1000000000", "-o", "long.toml")
    assert status == 2
    assert "must be 1 to 100,000" in err
    status, _, err = run("study", "new", "Many", *ASKED, *QUICK, "--records", "1000000", "-o", "many.toml")
    assert status == 2
    assert "1,000,000 rows in all are more than 3 parties" in err


def test_a_few_rows_all_of_them_right_are_not_everything(study):
    task = Study.read(study).task
    found = task.answer([0.0] * task.dimension + [24.9, 23.6], 3, 1.0)["evaluation"]
    assert found["accuracy"] == 1.0
    assert found["chance"] > 0.02
