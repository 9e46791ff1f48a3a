"""The seam by which values of low rooms show themselves: complete, lazy, and the only one."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import netdp
from netdp.display import SHOWN, shown

ROOT = Path(netdp.__file__).parent


@pytest.mark.parametrize("name", SHOWN)
def test_everything_that_is_shown_is_there(name):
    module, _, function = SHOWN[name].partition(":")
    assert module.startswith("netdp.report.")
    assert shown(name) is getattr(import_module(module), function)


def test_every_entry_is_used_and_only_these():
    asked = {
        node.args[0].value
        for path in ROOT.rglob("*.py")
        if "from netdp.display import shown" in path.read_text("utf-8")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "shown" and node.args
    }
    assert asked == set(SHOWN)


def test_nobody_else_climbs_by_name():
    """Modules named in strings and loaded later: the seam, the public names, and one's own room."""
    climbing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "import_module(" in path.read_text("utf-8") and "netdp.report" in path.read_text("utf-8")
    }
    assert climbing <= {"display.py", "__init__.py"} | {
        path.relative_to(ROOT).as_posix()
        for room in ("papers", "report", "studio", "cli")
        for path in (ROOT / room).rglob("*.py")
    }


def test_accounting_loads_nothing_that_draws():
    code = (
        "import netdp, sys; p = netdp.Gossip(netdp.graphs.ring(4), 2, 1.0); netdp.account(p, 0).epsilon(1e-6); "
        "print([m for m in sys.modules if m.split('.')[0] in ('matplotlib', 'pandas') or m.startswith('netdp.report')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
