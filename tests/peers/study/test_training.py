"""What is asked when a model is trained: columns, labels, models that are code, bad rows; every refusal before anything is sent."""

import hashlib
import json
import tomllib

import numpy as np
import pytest

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.models import Logistic
from netdp.peers.records import Misfit
from netdp.peers.study import Study, Training
from netdp.peers.study.files import _training, drafted, quoted, read_schema, typed
from netdp.peers.study.rows import csv_columns, parquet_columns, read_rows

FEATURES = [
    {"name": "age", "range": [20, 60]},
    {"name": "sex", "values": ["f", "m"]},
    {"name": "ward", "values": ["a", "b", "c"]},
]
ASKED = {"features": FEATURES, "label": "ill", "classes": ["no", "yes"], "max_records": 100}
CODE = {"model": "nets:cnn", "source": "0" * 64, "fingerprint": "0" * 64}
ROWS = [
    {"age": "50", "sex": "m", "ward": "b", "ill": "yes"},
    {"age": "20", "sex": "f", "ward": "c", "ill": "no"},
    {"age": "999", "sex": "f", "ward": "a", "ill": "no"},
]


def asked(**changes):
    return Training(**{key: value for key, value in (ASKED | changes).items() if value is not None})


def table(path, rows, names=None):
    names = names or list(rows[0])
    lines = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cells_become_numbers_from_minus_one_to_one_and_the_label_stands_last():
    found = asked().rows(ROWS)
    assert found.tolist() == [
        [0.5, 1.0, 0.0, 1.0, 0.0, 1.0],
        [-1.0, -1.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, -1.0, 1.0, 0.0, 0.0, 0.0],
    ]


def test_a_row_becomes_the_same_whatever_stands_around_it():
    task = asked(min_records=1)
    all_of_them = task.rows(ROWS)
    for one, row in zip(ROWS, all_of_them, strict=True):
        assert task.rows([one]).tolist() == [row.tolist()]


def test_parts_are_what_the_model_takes():
    task = asked()
    X, y = task.parts(task.rows(ROWS))
    model = task.model()
    assert isinstance(model, Logistic)
    assert X.shape == (3, model.features)
    assert task.dimension == model.size == 6
    assert (np.linalg.norm(X, axis=1) <= 1 + 1e-12).all()
    assert y.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "nan"}, r"row 2: column 'age' holds 'nan', which is not a finite number"),
        ({"age": "inf"}, r"column 'age' holds 'inf'"),
        ({"age": "1_0"}, r"column 'age' holds '1_0'"),
        ({"age": ""}, r"row 2: column 'age' is empty; fill it in"),
        ({"age": float("nan")}, r"row 2: column 'age' is empty"),
        ({"ill": "perhaps"}, r"row 2: column 'ill' holds 'perhaps', which is none of 'no', 'yes'"),
        ({"ward": "z"}, r"column 'ward' holds 'z', which is none of 'a', 'b', 'c'"),
    ],
)
def test_cells_that_do_not_fit_are_named(change, words):
    with pytest.raises(InvalidValue, match=words):
        asked().rows([ROWS[0], ROWS[1] | change])


def test_rows_with_empty_cells_are_skipped_only_if_the_study_says_so():
    rows = [*ROWS, ROWS[0] | {"age": " "}, ROWS[0] | {"ill": None}]
    assert len(asked(missing="skip").rows(rows)) == 3
    with pytest.raises(InvalidValue, match="is empty"):
        asked().rows(rows)


def test_one_row_only_is_refused_and_the_promise_says_that_it_is():
    with pytest.raises(InvalidValue, match=r"has 1 row and the study asks for at least min_records = 2"):
        asked().rows(ROWS[:1])
    assert "every party has 2 to 100 rows" in asked().admitted
    assert len(asked(min_records=1).rows(ROWS[:1])) == 1
    with pytest.raises(InvalidValue, match=r"has 3 rows and the study allows at most max_records = 2"):
        asked(max_records=2).rows(ROWS)


def test_a_column_that_one_party_lacks_is_named_with_the_file(tmp_path):
    other = table(tmp_path / "birch.csv", [{"years": 50, "sex": "m", "ward": "a", "ill": "no"}] * 2)
    with pytest.raises(FileFormatError, match=r"birch\.csv:1: there is no column 'age'; there are 'years', 'sex'"):
        asked().rows(other)


def test_the_same_number_written_otherwise_is_the_same_class():
    task = asked(classes=["0", "1"], features=[{"name": "n", "values": ["1", "2"]}])
    found = task.rows([{"n": 1.0, "ill": "1.0"}, {"n": "2", "ill": 0}])
    assert found.tolist() == [[-1.0, 1.0], [1.0, 0.0]]


def test_a_number_to_predict_is_clipped_and_scaled():
    task = asked(classes=None, label_range=[0, 10], features=[{"name": "x", "range": [0, 2]}])
    assert task.named == "linear"
    assert task.rows([{"x": 1, "ill": 2.5}, {"x": 5, "ill": 70}]).tolist() == [[0.0, -0.5], [1.0, 1.0]]


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parquet_gives_the_same_numbers_as_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"age": 50.0, "sex": "m", "ward": "b", "ill": True}, {"age": 20.0, "sex": "f", "ward": "c", "ill": False}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "ash.parquet")
    task = asked(classes=["false", "true"])
    same = table(tmp_path / "ash.csv", [row | {"ill": str(row["ill"]).lower()} for row in rows])
    assert task.rows(tmp_path / "ash.parquet").tolist() == task.rows(same).tolist()
    assert parquet_columns(tmp_path / "ash.parquet") == ["age", "sex", "ward", "ill"]
    with pytest.raises(FileFormatError, match=r"ash\.parquet:1: there is no column 'height'"):
        read_rows(tmp_path / "ash.parquet", ["height"])
    empty = [rows[0], rows[1] | {"age": None}]
    parquet.write_table(pyarrow.Table.from_pylist(empty), tmp_path / "gap.parquet")
    with pytest.raises(InvalidValue, match=r"gap\.parquet: row 2: column 'age' is empty"):
        task.rows(tmp_path / "gap.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1 no", b"age,ill\n1,2\n"])
def test_what_is_no_parquet_is_refused(tmp_path, content):
    pytest.importorskip("pyarrow")
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
        read_rows(tmp_path / "x.parquet", ["age"])


def test_only_the_first_line_of_a_table_is_read_for_a_schema(tmp_path):
    (tmp_path / "secret.csv").write_bytes(b"age, sex,ill\n\xff\xfe this is no text, and nobody looks")
    assert csv_columns(tmp_path / "secret.csv") == ["age", "sex", "ill"]


# ── schema files ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_drafted_schema_is_refused_until_it_is_filled_in(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(drafted(["age", "blood pressure", "ill"]), "utf-8")
    assert tomllib.loads(path.read_text())["features"] == {"age": ["?"], "blood pressure": ["?"]}
    with pytest.raises(FileFormatError, match=r"the column 'age' is still open"):
        read_schema(path)
    filled = path.read_text().replace('["?"]  # the', '["no", "yes"]  # the').replace('["?"]', "[0, 200]")
    path.write_text(filled, "utf-8")
    task = Training(**read_schema(path), max_records=10)
    assert task.needed == ("age", "blood pressure", "ill")
    assert task.named == "logistic"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('label = "y"\nclasses = ["a", "b"]', r"has no section \[features\]"),
        ("[features]\nx = [0, 1]", "does not say which column is predicted"),
        ('label = "y"\nrange = ["a", "b"]\n[features]\nx = [0, 1]', "must be two numbers"),
        ('label = "y"\nclasses = ["a", "b"]\n[features]\nx = 3', "the column 'x' has 3; write its range"),
        ('lable = "y"\n[features]\nx = [0, 1]', "lable: is not known here"),
        ("label = ", "is not valid TOML"),
    ],
)
def test_schemas_that_make_no_sense_are_refused(tmp_path, content, words):
    (tmp_path / "schema.toml").write_text(content, "utf-8")
    with pytest.raises(FileFormatError, match=words):
        read_schema(tmp_path / "schema.toml")


@pytest.mark.parametrize("text", ["age", "age=", "=1..2", "age=a..b", "age=1-2"])
def test_columns_that_are_typed_wrongly_are_refused(text):
    with pytest.raises(InvalidValue, match=r"--feature is NAME=LOWEST\.\.HIGHEST"):
        typed("--feature", text)


# ── what is stated ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"model": "forest"}, ("model",), "must be one of logistic, multinomial, linear, or module:function"),
        ({"model": "linear"}, ("model",), "linear predicts a number"),
        ({"classes": ["a", "b", "c"], "model": "logistic"}, ("model",), "use multinomial"),
        ({"classes": ["a"]}, ("classes",), "two or more different values"),
        ({"label_range": [0, 1]}, ("classes",), "one of them"),
        ({"features": []}, ("features",), "at least one column"),
        ({"features": [{"name": "x", "range": [1, 1]}]}, ("features", 0), "must rise"),
        ({"features": [{"name": "x"}]}, ("features", 0), "needs its public range"),
        ({"features": [{"name": "ill", "range": [0, 1]}]}, ("features",), "stands twice"),
        ({"features": [{"name": "x", "range": [0, 1], "colour": 1}]}, ("features", 0, "colour"), "is not known here"),
        ({"max_records": None}, ("max_records",), "how many a party may have"),
        ({"max_records": 0}, ("max_records",), "must be 1 to"),
        ({"min_records": 200}, ("min_records",), "are more than max_records"),
        ({"held_out": 0.7}, ("held_out",), "0 to 0.5"),
        ({"source": "ab"}, ("source",), "belongs to a model that is code"),
        ({"model": "nets:cnn"}, ("source",), "must be a SHA-256"),
        (CODE, ("parameters",), "how many numbers"),
        ({**CODE, "parameters": 10**9}, ("parameters",), "more than 100,000,000"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(change, place, words):
    with pytest.raises(Misfit, match=words) as refused:
        asked(**change)
    assert refused.value.place == place


def test_the_label_chooses_the_model():
    assert asked().named == "logistic"
    assert asked(classes=["a", "b", "c"]).named == "multinomial"
    assert asked(classes=["a", "b", "c"]).dimension == 3 * 6
    assert asked(classes=None, label_range=[0, 1]).named == "linear"


def test_it_is_written_as_toml_and_read_back_the_same():
    for task in (asked(held_out=0.1, records=250), asked(classes=None, label_range=[-1.5, 1e6]), asked(label='a "b"')):
        content = "\n".join(_training(task.model_dump(mode="json", by_alias=True)))
        assert Training(**tomllib.loads(content)) == task
    assert quoted("ill") in content.replace('a \\"b\\"', "ill")


def test_other_kinds_of_study_do_not_train():
    parties = [{"name": name} for name in "abcdef"]
    fields = {
        "name": "waits", "task": asked().model_dump(mode="json", by_alias=True), "privacy": {"epsilon": 1, "delta": 1e-6},
        "protocol": {"kind": "masked-sum", "sigma": 2.0, "grid": 2.0**-9, "modulus": 2**32}, "network": {"graph": "ring:6"},
        "party": parties,
    }  # fmt: skip
    with pytest.raises(
        Misfit, match=r"task\.kind: masked-sum answers sum, mean, variance, histogram, table, scaling, not train"
    ):
        Study(**fields)
    with pytest.raises(
        Misfit,
        match=r"task\.kind: must be one of sum, mean, variance, histogram, table, direction, train, scaling, got 'guess'",
    ):
        Study(**fields | {"task": {"kind": "guess"}})


# ── models that are code ──────────────────────────────────────────────────────────────────────────────────────────────

MODULE = '''
"""A model of our own."""
from pathlib import Path
from netdp.models import Logistic
import numpy as np

Path("RAN").write_text("ran")

class Ours(Logistic):
    def prepared(self, X):
        return np.asarray(X) - np.mean(X, axis=0)

def ours(features, classes):
    assert classes == 2
    return Logistic(features + 1)

def mixing(features):
    return Ours(features)

def huge(features):
    return Logistic(10**7)

def wrong():
    return 7
'''


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with the module of a model in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(MODULE, "utf-8")
    return tmp_path


def of_code(function="ours", **changes):
    return Training.of_code(f"nets:{function}", **ASKED | changes)


def test_a_model_that_is_code_states_its_hash_and_its_numbers(place):
    task = of_code()
    assert task.source == hashlib.sha256((place / "nets.py").read_bytes()).hexdigest()
    assert task.parameters == task.dimension == 6
    assert task.model() is task.model()
    assert task.parts(task.rows(ROWS))[0].shape == (3, 6)


def test_a_module_that_differs_at_one_party_is_refused_and_not_run(place):
    task = Training(**of_code().model_dump(mode="json", by_alias=True))
    (place / "RAN").unlink()
    (place / "nets.py").write_text(MODULE + "\n", "utf-8")
    for act in (lambda: task.rows(ROWS), task.model, task.check_source, lambda: task.parts(np.zeros((2, 6)))):
        with pytest.raises(Refused, match=r"nets\.py is not the module that was agreed upon.*ask for the file"):
            act()
    (place / "nets.py").unlink()
    with pytest.raises(Refused, match=r"is not on this machine: no file nets\.py"):
        task.rows(ROWS)
    assert not (place / "RAN").exists()


def test_reading_and_describing_runs_no_code(place):
    fields = of_code().model_dump(mode="json", by_alias=True)
    (place / "RAN").unlink()
    task = Training(**fields)
    task.describe(), task.dimension, task.admitted, task.check_source()
    assert not (place / "RAN").exists()
    task.rows(ROWS)
    assert (place / "RAN").exists()


def test_what_was_hashed_is_what_runs(place, monkeypatch):
    """The file is exchanged after it was compared: the text that was compared runs."""
    from netdp.models import code

    task, first = of_code(), code._check_imports
    fresh = Training(**task.model_dump(mode="json", by_alias=True))

    def exchange(tree, path):
        path.write_text("raise SystemExit('the other file ran')", "utf-8")
        return first(tree, path)

    monkeypatch.setattr(code, "_check_imports", exchange)
    assert fresh.model().size == 6


def test_a_module_of_a_package_runs_nothing_of_the_package(place):
    (place / "pack").mkdir()
    (place / "pack" / "__init__.py").write_text("raise SystemExit('the package ran')")
    (place / "pack" / "nets.py").write_text(MODULE, "utf-8")
    assert Training.of_code("pack.nets:ours", **ASKED).parameters == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": 7}, "has 6 numbers here, and the study says 7"),
        ({"fingerprint": "f" * 64}, "begins with other numbers here"),
    ],
)
def test_code_that_gives_another_model_here_is_refused(place, change, words):
    fields = of_code().model_dump(mode="json", by_alias=True)
    with pytest.raises(Refused, match=words):
        Training(**fields | change).rows(ROWS)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import helpers\ndef ours(): pass", r"nets\.py:1: imports helpers, which the agreed hash does not cover"),
        ("from .near import x\ndef ours(): pass", r"imports \.near"),
        ("def ours(:", "is not valid Python"),
        ("def other(): pass", "has no function 'ours'; it has other"),
        ("1/0", "cannot be run: ZeroDivisionError"),
        ("def ours(depth): pass", "asks for 'depth'; it can be given features, classes"),
        ("def ours(): return 7", "as a int; it must return a torch.nn.Module"),
        ("def ours(): 1/0", "cannot be made: ZeroDivisionError"),
    ],
)
def test_modules_that_do_not_do_are_refused(place, source, words):
    (place / "nets.py").write_text(source, "utf-8")
    with pytest.raises(InvalidValue, match=words):
        of_code()


@pytest.mark.parametrize("name", ["os:abort", "torch.nn:Module", "netdp.cli:main"])
def test_what_lies_on_every_machine_is_no_model(place, name):
    with pytest.raises(Refused, match="is a part of Python, numpy, torch or netdp"):
        Training.of_code(name, **ASKED)
    fields = of_code().model_dump(mode="json", by_alias=True) | {"model": name}
    with pytest.raises(Refused, match="is a part of Python"):
        Training(**fields).rows(ROWS)


def test_a_class_of_models_that_could_mix_records_is_refused(place):
    with pytest.raises(InvalidValue, match=r"is a Ours, a class of its own making.*Return a torch\.nn\.Module"):
        of_code("mixing")


def test_a_promise_with_code_says_that_it_rests_on_it(place):
    task = of_code()
    assert asked().assumed == ()
    assert task.source[:16] in task.assumed[0]
    study = Study.plan("code", task, ["a", "b", "c"], graph="ring:3", epsilon=4.0, delta=1e-6, iterations=4)
    assert task.assumed[0] in study.promise().assumptions


def test_a_torch_module_is_a_model(place):
    pytest.importorskip("torch")
    (place / "nets.py").write_text(
        "import torch\n"
        "def ours(features, classes):\n"
        "    return torch.nn.Sequential(torch.nn.Linear(features, 4), torch.nn.Tanh(), torch.nn.Linear(4, classes))\n"
    )
    task = of_code()
    assert task.dimension == 5 * 4 + 4 + 4 * 2 + 2
    X, y = task.parts(task.rows(ROWS))
    model = task.model()
    assert sum(len(block) for block in model.gradients(model.start(), X, y)) == 3


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_answer_names_the_numbers_of_the_model_and_how_good_it_is():
    task = asked(held_out=0.1)
    told = task.answer([*range(6), 730.0, 1000.0], parties=5, noise=2.0)
    assert told["coefficients"]["age"] == 0.0
    assert told["coefficients"]["constant"] == 5.0
    found = told["evaluation"]
    assert found["accuracy"] == 0.73
    # (730 ± 2)/(1000 ± 2), by hand
    assert found["noise"] == pytest.approx(2 * (1 + 0.73**2) ** 0.5 / 1000)
    assert found["rows"] == 1000.0
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_nothing_is_said_of_so_few_rows_that_noise_outweighs_them():
    found = asked(held_out=0.1).answer([*range(6), 3.0, 7.0], parties=5, noise=2.0)["evaluation"]
    assert found["accuracy"] is None
    assert "is below 8" in found["why"]


def test_an_error_of_numbers_is_in_the_labels_own_units():
    task = asked(classes=None, label_range=[0, 10], held_out=0.1, features=[{"name": "x", "range": [0, 2]}])
    found = task.answer([0.0, 0.0, 40.0, 1000.0], parties=5, noise=1.0)["evaluation"]
    assert found["rmse"] == pytest.approx(5 * 0.2)


def test_totals_of_another_length_are_refused():
    for total in ([0.0] * 6, [0.0] * 9, [float("nan")] * 8):
        with pytest.raises(InvalidValue, match="6 numbers of the model and 2 counts"):
            asked(held_out=0.1).answer(total, parties=5)
