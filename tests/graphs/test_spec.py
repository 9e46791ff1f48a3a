"""Graphs as typed on a command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netdp import graphs
from netdp.errors import DataNotFound, InvalidValue


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("hypercube:8", graphs.hypercube(8)),
        ("grid:16x16", graphs.grid(16, 16)),
        ("grid:16,15", graphs.grid(16, 15)),
        ("torus:8X9", graphs.torus(8, 9)),
        ("torus:3x4x5", graphs.torus(3, 4, 5)),
        ("exponential:20", graphs.exponential(20)),
        ("ring:64", graphs.ring(64)),
        ("complete:10", graphs.complete(10)),
        ("path:5", graphs.path(5)),
        (" star:5 ", graphs.star(5)),
        ("Ring: 7", graphs.ring(7)),
        ("regular:1024,6,seed=0", graphs.regular(1024, 6, 0)),
        ("regular:64,6", graphs.regular(64, 6, 0)),
        ("erdos_renyi:200,0.05,seed=1", graphs.erdos_renyi(200, 0.05, 1)),
        ("erdos-renyi:200,5e-2,1", graphs.erdos_renyi(200, 0.05, 1)),
        ("geometric:200,0.12,seed=1", graphs.geometric(200, 0.12, 1)),
        ("geometric:seed=2,radius=0.2,n=30", graphs.geometric(30, 0.2, 2)),
        ("karate", graphs.dataset("karate")),
    ],
)
def test_parse(spec: str, expected: graphs.Graph) -> None:
    assert graphs.parse(spec) == expected
    assert graphs.parse(spec).name == expected.name


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "karate", "ring"):
        (tmp_path / name).write_text("0,1\n")
    assert graphs.parse("mine.csv").m == 1
    assert graphs.parse(str(tmp_path / "mine.csv")).m == 1
    assert graphs.parse("karate").m == 78
    assert graphs.parse("./karate").m == 1
    assert graphs.parse("ring").m == 1


def test_dataset_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETDP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataNotFound, match=r"twitch/edges.csv"):
        graphs.parse("twitch")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hipercube:8", "'hipercube:8' is no graph; did you mean 'hypercube:8'"),
        ("karatte", "did you mean 'karate'"),
        ("", "'' is no graph; Give a family .*ring:64.*data set .*twitch.*path of an existing"),
        ("no/such/file.csv", "'no/such/file.csv' is no graph"),
        ("ring", "'ring': ring needs n; write it like ring:64"),
        ("ring:", "needs n"),
        ("ring:five", "n must be a whole number, got 'five'"),
        ("ring:5.5", "n must be a whole number, got '5.5'"),
        ("ring:5,6", "ring does not take the parameter '6'"),
        ("ring:5,seed=1", "ring does not take the parameter 'seed'"),
        ("ring:n=5,n=6", "does not take a second n"),
        ("grid:4", "grid needs cols; write it like grid:16x16"),
        ("grid:4x5x6", "does not take the parameter '6'"),
        ("erdos_renyi:10,often", "p must be a number, got 'often'"),
        ("regular:10", "needs degree"),
        ("ring:2", "≥ 3, got 2"),
        ("erdos_renyi:10,nan", "p .* got nan"),
    ],
)
def test_refusals(spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match=message):
        graphs.parse(spec)


@pytest.mark.parametrize("spec", [3, None, b"ring:5", graphs.ring(3), ["ring:5"]], ids=repr)
def test_parse_refuses_what_is_no_text(spec: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "3").write_text("0,1\n")  # a number is no file name, even if there is such a file
    with pytest.raises(InvalidValue, match=r"written as text, for example 'ring:64'") as caught:
        graphs.parse(spec)  # type: ignore[arg-type]
    assert repr(spec) in str(caught.value)
    assert graphs.parse(Path("3")).m == 1


def test_importing_the_room_is_light() -> None:
    """Heavy packages load on first use."""
    code = (
        "import sys, netdp.graphs as g; g.hypercube(3); g.regular(20, 3, seed=0); "
        "print([m for m in ('numba', 'networkx', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
