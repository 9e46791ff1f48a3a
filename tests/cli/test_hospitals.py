"""The example with five hospitals: its schema fits its tables, invented or not. `python examples/hospitals/run.py` runs it."""

import importlib.util
import json
from pathlib import Path

import pytest

from netdp.peers.ledger.entries import entry_of, total
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.study import Study, Training
from netdp.peers.study.files import read_schema

PLACE = Path(__file__).parents[2] / "examples" / "hospitals"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("hospitals_run", PLACE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_hospital_has_a_table_that_the_schema_takes(example, tmp_path):
    task = Training(**read_schema(PLACE / "schema.toml"), max_records=example.MOST)
    sizes = example.deal(example.invented(300), tmp_path / "data")
    assert sum(sizes.values()) == 300
    for name, size in sizes.items():
        assert task.rows(tmp_path / "data" / f"{name}.csv").shape == (size, 16)
    assert task.needed == example.COLUMNS


def test_invented_rows_are_said_to_be(example, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NETDP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(example, "invented", lambda count: [])
    assert example.patients() == []
    assert "THE ROWS ARE INVENTED" in capsys.readouterr().out


def test_it_overwrites_nothing(example, tmp_path):
    with pytest.raises(SystemExit, match="is there already"):
        example.main(tmp_path)


def test_both_studies_are_planned_within_what_the_hospitals_allow(example, run, tmp_path, monkeypatch):
    """All commands as they are typed, but for the processes: what these would find is computed here."""
    folder = tmp_path / "run"
    monkeypatch.setattr(example, "patients", lambda: example.invented(1000))
    typed = []

    def netdp(*words, into=None):
        typed.append([str(word) for word in words])
        if words[0] == "up" and into is not None:
            study = Study.read(words[1])
            added = [study.task.rows(folder / "data" / f"{name}.csv").sum(axis=0) for name in study.names]
            into.write_text(json.dumps({"ok": True, "result": study.answer(sum(added))}), "utf-8")
        elif words[0] == "up":
            (folder / "model").mkdir()
            (folder / "model" / "MODEL_CARD.md").write_text("# A card\n", "utf-8")
        elif words[0] == "study":
            status, _, err = run(*typed[-1])
            assert status == 0, err

    monkeypatch.setattr(example, "netdp", netdp)
    example.main(folder)
    assert [words[0] for words in typed] == ["study", "up", "study", "study", "up", "ledger"]
    policy = OwnerPolicy.read(folder / "homes" / "alder" / "policy.toml")
    first, second = Study.read(folder / "scaling.toml"), Study.read(folder / "study.toml")
    entries = [entry_of(study, 1, range(5), 0) for study in (first, second)]
    assert (policy.unit, policy.limits[0].per) == ("record", "total")
    (verdict,) = policy.verdicts(second, entries[:1], 0)
    assert verdict.holds
    assert 0.99 < verdict.together <= policy.limits[0].epsilon
    assert 0.9 < float(total(entries, 1, "record").epsilon(policy.delta)) < verdict.together
    assert [one.name for one in second.task.features if one.centre is not None] == list(first.task.needed)
