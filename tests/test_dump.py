"""The net under large changes: `benchmarks/dump.py` compares to the last digit, and says the same thing twice."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netdp

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "dump.py"


@pytest.fixture(scope="module")
def dump():
    spec = importlib.util.spec_from_file_location("dump_of_results", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def written(path, entries):
    path.write_text(json.dumps({"entries": entries}), "utf-8")
    return str(path)


def test_the_same_entries_are_equal(dump, tmp_path, capsys):
    entries = {"a": {"x": ["1", 2, None]}, "b": "refused: Unsupported: no"}
    a, b = (written(tmp_path / name, entries) for name in ("a.json", "b.json"))
    assert dump.compare(a, b) == 0
    assert capsys.readouterr().out == "2 entries, 0 differ, 0 only in A, 0 only in B\n"


def test_every_difference_is_named_with_its_place(dump, tmp_path, capsys):
    a = written(
        tmp_path / "a.json", {"same": 1, "gone": 1, "number": {"x": ["1", "2"]}, "kind": {"x": 1}, "more": {"y": [1]}}
    )
    b = written(
        tmp_path / "b.json",
        {"same": 1, "new": 1, "number": {"x": ["1", "2.0000000000000004"]}, "kind": {"x": True}, "more": {"y": [1, 2]}},
    )
    assert dump.compare(a, b) == 1
    assert capsys.readouterr().out.splitlines() == [
        "gone: only in A",
        "kind:",
        "    .x: 1 became true",
        "more:",
        "    .y: 1 items in A, 2 in B",
        "new: only in B",
        "number:",
        '    .x[1]: "2" became "2.0000000000000004"',
        "6 entries, 3 differ, 1 only in A, 1 only in B",
    ]


def test_an_entry_that_only_one_file_has_is_a_difference(dump, tmp_path):
    a, b = written(tmp_path / "a.json", {"x": 1}), written(tmp_path / "b.json", {"x": 1, "y": 2})
    assert dump.compare(a, b) == 1
    assert dump.compare(b, a) == 1


@pytest.mark.parametrize("number", [0.1, 1 / 3, 5e-324, 1e300, 2.0**-1074, float("inf"), -0.0])
def test_all_digits_are_kept(dump, number):
    assert float(dump.plain(number)) == number
    assert dump.plain(number) != dump.plain(np.nextafter(number, 1.0 if number != 1.0 else 2.0))


def test_one_bit_of_a_large_array_changes_what_is_written(dump):
    numbers = np.linspace(0.0, 1.0, 1000)
    other = numbers.copy()
    other[517] = np.nextafter(other[517], 2.0)
    for one, two in ((numbers, other), (numbers.tolist(), other.tolist())):
        assert dump.plain(one) == dump.plain(list(one) if isinstance(one, list) else one.copy())
        assert dump.plain(one) != dump.plain(two)
    assert dump.plain(numbers) != dump.plain(numbers.reshape(10, 100))


def test_a_guarantee_is_written_with_its_text_and_its_losses(dump):
    loss = netdp.account(netdp.RingSum(4, 1, sigma=2.0), [0])
    said = dump.plain(loss)
    assert said["epsilon"][1] == dump.digits(loss.epsilon(dump.DELTA)[1])
    assert said["assumptions"] == list(loss.assumptions)
    assert said["claim"] == "exact"
    json.dumps(said, allow_nan=False)


def test_what_refuses_is_an_answer_and_names_the_error(dump):
    assert dump.answered(lambda: netdp.RingSum(4, 1, sigma=-1.0)).startswith("refused: InvalidValue: sigma must be")
    assert dump.answered(lambda: 1 / 0) == "refused: ZeroDivisionError: division by zero"


def test_every_kind_of_protocol_has_an_example(dump):
    made = {one.protocol.kind for one in dump.examples().values()}
    brought = {kind for kind, cls in netdp.Protocol.kinds().items() if cls.__module__.startswith("netdp.")}
    assert made >= brought


def test_two_runs_give_the_same_file(tmp_path):
    """Whatever the folder and the order of sets."""
    texts = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        subprocess.run(
            [sys.executable, PROGRAM, "out.json", "--only", "account/gossip/", "--only", "study/masked-sum/mean",
             "--only", "command/graphs/", "--only", "simulate/walk-sum"],
            cwd=folder, env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True,
        )  # fmt: skip
        texts.append((folder / "out.json").read_text("utf-8"))
        assert os.listdir(folder) == ["out.json"]
    assert texts[0] == texts[1]
    entries = json.loads(texts[0])["entries"]
    assert len(entries) > 8
    refused = [name for name, said in entries.items() if str(said).startswith("refused")]
    assert refused == []
