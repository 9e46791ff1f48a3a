"""The four notebooks run, show what they were saved with, and hold nothing of the machine they ran on."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = ["a-figure-of-a-paper", "first-steps", "five-hospitals", "reading-a-guarantee"]


def load_execute():
    spec = importlib.util.spec_from_file_location("netdp_docs_execute", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


execute = load_execute()


def read(path):
    return json.loads(path.read_text("utf-8"))


def joined(value):
    return "".join(value)


def test_there_are_four():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_saved_with_outputs_and_nothing_of_a_machine(name):
    path = FOLDER / f"{name}.ipynb"
    text, cells = path.read_text("utf-8"), read(path)["cells"]
    assert path.stat().st_size < 400_000
    assert sum(bool(cell.get("outputs")) for cell in cells) >= 6
    assert cells[0]["cell_type"] == "markdown"
    assert joined(cells[0]["source"]).startswith("# ")
    assert not re.search(r"/home/|/root/|/tmp/|/work/|Traceback|stderr", text)
    assert all(cell.get("execution_count") is None for cell in cells)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    for cell in read(FOLDER / f"{name}.ipynb")["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#]+)", joined(cell["source"])):
                assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("name", NAMES)
def test_runs_and_shows_what_it_was_saved_with(name, tmp_path):
    for needed in ("nbformat", "nbclient", "ipykernel", "pandas", "matplotlib", "grpc"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"running notebooks needs {needed}: pip install 'netdp[notebook]'")
    # a process of its own: what runs notebooks warns of its own old ways
    code = (
        "import sys, pathlib, nbformat; sys.path.insert(0, sys.argv[1]); import execute; "
        "nbformat.write(execute.executed(pathlib.Path(sys.argv[2])), sys.argv[3])"
    )
    fresh = tmp_path / "fresh.ipynb"
    words = [sys.executable, "-c", code, str(FOLDER), str(FOLDER / f"{name}.ipynb"), str(fresh)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for old, new in zip(read(FOLDER / f"{name}.ipynb")["cells"], read(fresh)["cells"], strict=True):
        if old["cell_type"] != "code":
            continue
        kinds = [[sorted(output.get("data", {"text": 0})) for output in cell["outputs"]] for cell in (old, new)]
        assert kinds[0] == kinds[1], joined(old["source"])
        if execute.VARIES not in old["metadata"].get("tags", []):
            assert execute.alike(shown(old), shown(new)), f"{joined(old['source'])}\n\n{shown(old)}\n\n{shown(new)}"


def shown(cell):
    """The words that a cell shows."""
    parts = []
    for output in cell["outputs"]:
        parts.append(joined(output.get("text", "")))
        parts += [joined(output.get("data", {}).get(kind, "")) for kind in ("text/html", "text/plain")]
    return "\n".join(parts)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ε = 1.07 (exact)", "ε = 1.08 (exact)", True),
        ("ε = 1.07 (exact)", "ε = 1.27 (exact)", False),
        ("ε = 1.07 (exact)", "ε = 1.07 (upper)", False),
        ("12 rounds", "13 rounds", False),
        ("1,024 users", "1,024 users", True),
    ],
)
def test_what_counts_as_the_same(first, second, same):
    assert execute.alike(first, second) is same
