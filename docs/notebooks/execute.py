"""Run the notebooks of this folder again, and keep what they show: python docs/notebooks/execute.py [NAME.ipynb …]

A notebook is committed with its outputs, so that it can be read without running anything. What would differ from run to run is
removed: counters, times, the machine. A cell whose text differs by nature (real peers draw real noise) has the tag "varies".
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VARIES = "varies"
_KEPT = ("image/png", "text/html", "text/plain")
_NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def executed(path: Path) -> Any:
    """The notebook with fresh outputs, tidied; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
    return tidied(notebook)


def tidied(notebook: Any) -> Any:
    """Without what differs from run to run and from machine to machine."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place:02}"
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_tidied(output) for output in _joined(cell.outputs)]
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Neighbouring pieces of one stream in one piece, errors of the machine's own chatter left out."""
    kept: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if kept and output.output_type == "stream" == kept[-1].output_type:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def _tidied(output: Any) -> Any:
    if "data" in output:
        kept = [kind for kind in _KEPT if kind in output.data]
        if "text/html" in kept:  # says the same
            kept.remove("text/plain")
        output.data = {kind: output.data[kind] for kind in kept}
        output.metadata = {}
    if "execution_count" in output:
        output.execution_count = None
    return output


def alike(first: str, second: str, within: float = 0.02) -> bool:
    """Whether two texts have the same words, and numbers that agree to a few parts in a hundred.

    >>> alike("ε = 1.07 (exact)", "ε = 1.08 (exact)"), alike("12 rounds", "13 rounds"), alike("exact", "upper")
    (True, False, False)
    """
    if _NUMBER.sub("#", first) != _NUMBER.sub("#", second):
        return False
    pairs = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    return all(_near(a, b, within) for a, b in pairs)


def _near(a: str, b: str, within: float) -> bool:
    x, y = (float(word.replace(",", "").replace("−", "-")) for word in (a, b))
    return x == y if "." not in a + b and "e" not in a + b else abs(x - y) <= within * max(abs(x), abs(y)) + 1e-12


def main(names: list[str]) -> None:
    """Run those named, or all of them, and write them back."""
    import nbformat

    for path in [HERE / name for name in names] or sorted(HERE.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
