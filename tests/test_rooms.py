"""Imports only go down the list of rooms; families do not import each other; machinery names no family."""

import ast
from pathlib import Path

import netdp

ORDER = ["errors", "display", "exports", "moved", "engines", "numerics", "graphs", "privacy", "mechanisms", "models",
         "protocols", "settings", "audit", "learn", "peers", "families", "report", "papers", "studio", "cli"]  # fmt: skip
ROOT = Path(netdp.__file__).parent
LISTED = {"netdp.families.KINDS"}
"""What may be named from below: words, no classes."""


def imported(path):
    """(line, full name) of everything that a module imports from netdp, inside functions too."""
    parts = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["netdp", *parts[:-1]][: len(parts) - node.level + 1] if node.level else []
            names = [".".join([*base, *(node.module or "").split("."), alias.name]) for alias in node.names]
        for name in names:
            bits = [bit for bit in name.split(".") if bit]
            if len(bits) > 1 and bits[0] == "netdp":
                yield node.lineno, bits


def climbs(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for line, bits in imported(path):
        if bits[1] in ORDER and ORDER.index(bits[1]) > ORDER.index(room) and ".".join(bits) not in LISTED:
            yield f"{path}:{line} imports {'.'.join(bits)}"


def crossings(path):
    """What one family imports of another."""
    family = path.relative_to(ROOT).parts[1]
    for line, bits in imported(path):
        if bits[1] == "families" and len(bits) > 3 and bits[2] != family:
            yield f"{path}:{line} imports {'.'.join(bits)}"


def modules():
    return [
        path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in {"__init__.py", "__main__.py"}
    ]


def test_no_import_climbs():
    assert len(modules()) > 100
    assert [problem for path in modules() for problem in climbs(path)] == []


def test_families_do_not_import_each_other():
    inside = [
        path for path in modules() if path.relative_to(ROOT).parts[0] == "families" and path.parent != ROOT / "families"
    ]
    assert len(inside) > 50
    assert [problem for path in inside for problem in crossings(path)] == []


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
    files = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] != "papers"]
    assert [problem for path in files for problem in slow_imports(path)] == []
    bad = tmp_path / "bad.py"
    bad.write_text("from scipy.signal import lfilter\nfrom scipy import stats\nimport scipy.optimize\n")
    assert len(list(slow_imports(bad))) == 3


def test_every_room_is_in_the_plan():
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert rooms <= set(ORDER)


def test_a_climb_is_found(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "families" / "gossip").mkdir(parents=True)
    low, high = tmp_path / "graphs" / "bad.py", tmp_path / "families" / "gossip" / "bad.py"
    low.write_text("def late():\n    from netdp.protocols.views import Transcript\n")
    high.write_text(
        "from netdp.families.token.ring import RingSum\nfrom netdp.families.gossip.protocol import Gossip\n"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(list(climbs(low))) == len(list(crossings(high))) == 1
