"""The example with five hospitals: its schema fits its tables, invented or not. `python examples/hospitals/run.py` runs it."""

import importlib.util
from pathlib import Path

import pytest

from netdp.peers.study import Training
from netdp.peers.study.schema_file import read_schema

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
