"""Imports only go down the list of rooms."""

import ast
from pathlib import Path

import netdp

ORDER = ["errors", "shown", "engine", "numerics", "graphs", "privacy", "mechanisms", "models", "protocols", "views",
         "accounting", "utility", "planning", "simulate", "audit", "learn",
         "peers", "report", "reproduce", "settings", "studio", "cli"]  # fmt: skip
ROOT = Path(netdp.__file__).parent


def climbs(path):
    parts = path.relative_to(ROOT).parts
    room = parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["netdp", *parts[:-1]][: len(parts) - node.level + 1] if node.level else []
            names = [".".join([*base, *(node.module or "").split("."), alias.name]) for alias in node.names]
        for name in names:
            bits = [bit for bit in name.split(".") if bit]
            if len(bits) > 1 and bits[0] == "netdp" and bits[1] in ORDER and ORDER.index(bits[1]) > ORDER.index(room):
                yield f"{path}:{node.lineno} imports {name}"


def test_no_import_climbs():
    files = [
        path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in {"__init__.py", "__main__.py"}
    ]
    assert len(files) > 30
    assert [problem for path in files for problem in climbs(path)] == []


def slow_imports(path):
    """Parts of scipy that take a second to load, loaded with the module."""
    for node in ast.parse(path.read_text("utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        yield from (f"{path} imports {name}" for name in names if name.split(".")[:2] in SLOW)


SLOW = [["scipy", part] for part in ("signal", "stats", "optimize", "spatial")]


def test_a_peer_starts_without_what_it_does_not_need(tmp_path):
    """Every command and every process of a study pays for these; the functions that need them load them."""
    files = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] != "reproduce"]
    assert [problem for path in files for problem in slow_imports(path)] == []
    bad = tmp_path / "bad.py"
    bad.write_text("from scipy.signal import lfilter\nfrom scipy import stats\nimport scipy.optimize\n")
    assert len(list(slow_imports(bad))) == 3


def test_every_room_is_in_the_plan():
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(ORDER)


def test_a_climb_is_found(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    bad = tmp_path / "graphs" / "bad.py"
    bad.write_text("from netdp.views import Transcript\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(list(climbs(bad))) == 1
