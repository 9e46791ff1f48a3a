"""Models as files: what is written is read back, damage is refused, and code is run only if it is the agreed one."""

import json

import numpy as np
import pytest

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.learn import load_model
from netdp.models.code import digest_of
from netdp.models.files import read_about, save_model
from netdp.models.schema import Column, Schema

SCHEMA = Schema((Column("age", range=(20, 60)), Column("sex", values=("f", "m"))), Column("ill", values=("no", "yes")))
ROWS = [{"age": 60, "sex": "m"}, {"age": 20, "sex": "f"}]


def about(**changes):
    return {"name": "Four wards", "model": {"name": "logistic", "parameters": 3}, "schema": SCHEMA.to_dict()} | changes


def test_a_model_predicts_in_the_datas_own_words(tmp_path):
    files = save_model(tmp_path / "model", np.array([2.0, 0.0, 0.0]), about())
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["MODEL_CARD.md", "model.json", "model.npz"]
    for place in (tmp_path / "model", files["model.npz"], str(files["model.npz"])):
        model = load_model(place)
        assert model.predict(ROWS).tolist() == ["yes", "no"]
        assert model.predict_proba(ROWS).sum(axis=1) == pytest.approx([1, 1])
        assert model.classes == ("no", "yes")
    assert json.loads(files["model.json"].read_text("utf-8")) == read_about(files["model.npz"]) == model.card


def test_a_number_is_predicted_in_its_own_units_and_within_its_range(tmp_path):
    schema = Schema((Column("x", range=(0, 2)),), Column("price", range=(0, 10)))
    save_model(
        tmp_path, np.array([0.0, 0.5]), about(schema=schema.to_dict(), model={"name": "linear", "parameters": 2})
    )
    assert load_model(tmp_path).predict([{"x": 1.0}]).tolist() == [7.5]
    save_model(
        tmp_path, np.array([0.0, 50.0]), about(schema=schema.to_dict(), model={"name": "linear", "parameters": 2})
    )
    assert load_model(tmp_path).predict([{"x": 1.0}]).tolist() == [10.0]
    with pytest.raises(InvalidValue, match="has no classes"):
        load_model(tmp_path).predict_proba([{"x": 1.0}])


def test_rows_that_do_not_fit_are_named(tmp_path):
    save_model(tmp_path, np.zeros(3), about())
    model = load_model(tmp_path)
    with pytest.raises(InvalidValue, match="there is no column 'sex'"):
        model.predict([{"age": 3}])
    for rows, got in (
        ({"age": 3, "sex": "f"}, "got {'age': 3, 'sex': 'f'} of type dict"),
        ("age", "got 'age' of type str"),
        (None, "got None of type NoneType"),
        (3.5, "got 3.5 of type float"),
        ([ROWS[0], [1, 2]], r"row 1 is \[1, 2\] of type list"),
    ):
        for asked in (model.predict, model.predict_proba):
            with pytest.raises(InvalidValue, match=f"a list of dictionaries .*{got}"):
                asked(rows)


def test_files_that_are_damaged_or_of_another_make_are_refused(tmp_path):
    path = save_model(tmp_path, np.zeros(3), about())["model.npz"]
    with np.load(path) as held:
        text = held["about"]
    np.savez(path, theta=np.ones(3), about=text)
    with pytest.raises(FileFormatError, match="holds other numbers than those its card was written for"):
        load_model(path)
    for content in (b"", b"PK\\x03\\x04", b"hello"):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="is no model of netdp"):
            load_model(path)
    np.savez(path, theta=np.zeros(3))
    with pytest.raises(FileFormatError, match="is no model of netdp"):
        load_model(path)
    with path.open("wb") as file:
        np.savez(file, theta=np.array([{"a": 1}], dtype=object), about=text)  # a pickle
    with pytest.raises(FileFormatError, match="is no model of netdp"):
        load_model(path)
    np.savez(path, theta=np.zeros(3), about=np.frombuffer(b'{"format": "netdp model 7"}', dtype=np.uint8))
    with pytest.raises(FileFormatError, match="is no model that this version reads"):
        load_model(path)
    with pytest.raises(FileFormatError, match="there is no such file"):
        load_model(tmp_path / "nowhere.npz")


def test_other_files_than_the_numbers_are_told_from_them(tmp_path):
    files = save_model(tmp_path / "model", np.zeros(3), about())
    for name in ("model.json", "MODEL_CARD.md"):
        for read in (load_model, read_about):
            with pytest.raises(
                FileFormatError, match=r"is the text about a model; its numbers are in model.npz: load_model\("
            ) as said:
                read(files[name])
            assert "pickle" not in str(said.value)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(FileFormatError, match=r"is no model of netdp, or damaged; give the model.npz") as said:
        load_model(tmp_path / "notes.txt")
    assert "pickle" not in str(said.value)
    with pytest.raises(FileFormatError, match=r"is a folder without model.npz"):
        load_model(tmp_path)
    with pytest.raises(InvalidValue, match=r"from the path of model.npz, or of its folder, got None"):
        load_model(None)


def snippet(card):
    """The Python of a card."""
    text = card.read_text("utf-8")
    return text.partition("```python\n")[2].partition("```")[0]


@pytest.mark.parametrize("columns", [2, 40])
def test_the_example_of_the_card_runs_as_it_stands(tmp_path, monkeypatch, capsys, columns):
    features = tuple(
        Column(f'a "{i}" \\', range=(0, i + 1)) if i % 2 else Column(f"w {i}", values=("x", "y"))
        for i in range(columns)
    )
    schema = Schema(features, Column("ill", values=("no", "yes")))
    said = about(schema=schema.to_dict(), model={"name": "logistic", "parameters": columns + 1})
    files = save_model(tmp_path, np.arange(columns + 1.0), said)
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet(files["MODEL_CARD.md"]), "card", "exec"), {})
    first = {one["name"]: (one.get("values") or one["range"])[0] for one in schema.to_dict()["features"]}
    assert capsys.readouterr().out.strip() == str(load_model(tmp_path).predict([first]))


def test_the_example_of_the_card_of_a_model_that_is_code_runs_beside_its_module(tmp_path, monkeypatch, capsys):
    source = "from netdp.models import Logistic\ndef ours(features):\n    return Logistic(features + 1)\n"
    (tmp_path / "carded.py").write_text(source)
    said = {"name": "carded:ours", "parameters": 3, "source": digest_of(source.encode())}
    files = save_model(tmp_path, np.array([2.0, 0.0, 0.0]), about(model=said))
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet(files["MODEL_CARD.md"]), "card", "exec"), {})
    assert capsys.readouterr().out.strip() == "['no']"


def test_a_model_that_is_code_wants_its_very_module_and_to_be_asked(tmp_path, monkeypatch):
    source = "from netdp.models import Logistic\ndef ours(features):\n    return Logistic(features + 1)\n"
    (tmp_path / "nets.py").write_text(source)
    said = {"name": "nets:ours", "parameters": 3, "source": digest_of(source.encode())}
    save_model(tmp_path / "model", np.array([2.0, 0.0, 0.0]), about(model=said))
    assert load_model(tmp_path / "model", code=[tmp_path]).predict(ROWS).tolist() == ["yes", "no"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match="is code, and no file runs code by itself"):
        load_model(tmp_path / "model")
    with pytest.raises(Refused, match="is not on this machine"):
        load_model(tmp_path / "model", code=[tmp_path / "model"])
    (tmp_path / "nets.py").write_text(source.replace("+ 1", "+ 2"))
    with pytest.raises(Refused, match="is not the module that was agreed upon"):
        load_model(tmp_path / "model", code=[tmp_path])


def test_the_card_says_what_was_promised_and_what_it_rests_on(tmp_path):
    terms = {
        "epsilon": 1.0, "delta": 1e-6, "certified": 0.998, "unit": "record", "neighbours": "one record added or removed",
        "protected": "any one record", "against": "any single party", "claim": "certified", "assumptions": ["honest code", "a | b"],
    }  # fmt: skip
    found = {"accuracy": 0.7312, "noise": 0.004, "chance": 0.006, "rows": 5312.4}
    card = save_model(tmp_path, np.zeros(3), about(privacy=terms, evaluation=found, versions={"netdp": "0.1"}))[
        "MODEL_CARD.md"
    ]
    text = card.read_text("utf-8")
    for words in (
        "ε = 1 at δ = 1e-06",
        "- honest code",
        "0.731",
        "| age | 20 to 60 | feature |",
        "| ill | no, yes | label |",
        "netdp 0.1",
    ):
        assert words in text
    bare = save_model(tmp_path / "bare", np.zeros(3), about())["MODEL_CARD.md"].read_text("utf-8")
    assert "Nothing is promised" in bare
    assert "No rows were held out" in bare
