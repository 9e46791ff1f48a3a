"""One HTML page of all figures and tables redone: a verdict each, the numbers behind it, the picture, the data.

The page is one file: pictures are inside it (as PNG), CSV and PDF lie beside it and are linked. It asks nothing of a network.
"""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netdp
from netdp.papers.catalogue import PAPERS
from netdp.papers.errata.base import load
from netdp.papers.experiment import Agreement, Size
from netdp.papers.runs import Report, comparisons_csv
from netdp.report.pages import formula, whole_page
from netdp.report.style import write_whole

if TYPE_CHECKING:
    from markupsafe import Markup

_MARK = {
    Agreement.REPRODUCED: "✓ reproduced",
    Agreement.WITH_ERRATUM: "✓ with erratum",
    Agreement.IN_PART: "in part",
    Agreement.NOT_REPRODUCED: "✗ not reproduced",
    Agreement.UNCOMPARED: "not compared",
    Agreement.NOT_HERE: "not here",
    Agreement.DIFFERS: "✗ differs",
    Agreement.OURS: "ours",
}

_CLASS = {
    Agreement.REPRODUCED: "good",
    Agreement.WITH_ERRATUM: "erratum",
    Agreement.IN_PART: "erratum",
    Agreement.NOT_REPRODUCED: "bad",
    Agreement.UNCOMPARED: "absent",
    Agreement.NOT_HERE: "absent",
    Agreement.DIFFERS: "bad",
    Agreement.OURS: "good",
}


def write_page(reports: Sequence[Report], out: Path) -> Path:
    """Write `index.html` into `out` and say where it is; `comparisons.csv` beside it."""
    target = out / "index.html"
    made = [(report.experiment.id, one) for report in reports for one in report.comparisons]
    write_whole(out / "comparisons.csv", comparisons_csv(made).encode())
    write_whole(target, page(reports, out).encode())
    return target


def page(reports: Sequence[Report], out: Path) -> str:
    """The page as text."""
    counts = {verdict: sum(report.verdict is verdict for report in reports) for verdict in Agreement}
    return whole_page(
        "papers.html",
        "page.css",
        version=netdp.__version__,
        sizes=sorted({report.size.value for report in reports}),
        counted=[f"{number} {verdict.value}" for verdict, number in counts.items() if number],
        reports=reports,
        papers=PAPERS,
        errata=load(),
        written=(out / "errata.md").exists(),
        marks=_MARK,
        kinds=_CLASS,
        formula=formula,
        cell=_cell,
        cost=_cost,
        pictures=lambda report: [_picture(out / file) for file in report.files if file.endswith(".png")],
        tables=lambda report: [
            table for file in report.files if file.endswith("tables.csv") for table in _tables(out / file)
        ],
    )


def _picture(file: Path) -> tuple[int, str]:
    """How wide a picture is shown, as large in print as on the screen and sharp on both, and its content."""
    content = file.read_bytes()
    return int.from_bytes(content[16:20], "big") * 5 // 8, base64.b64encode(content).decode()


def _tables(file: Path) -> list[tuple[str, list[str], list[list[Markup]]]]:
    """Title, columns and rows of every table in a file that `running` wrote."""
    found: list[tuple[str, list[str], list[list[Markup]]]] = []
    for row in filter(None, csv.reader(io.StringIO(file.read_text("utf-8")))):
        if row[0].startswith("# ") and len(row) == 1:
            found.append((row[0][2:], [], []))
        elif not found[-1][1]:
            found[-1][1].extend(row)
        else:
            found[-1][2].append([_short(cell) for cell in row])
    return found


def _cost(report: Report) -> str:
    """What the run cost, and what the other size costs."""
    e = report.experiment
    if report.size is Size.QUICK:
        return f"Cost of this run: {e.quick}. Full size: {e.full}."
    return f"Cost of this run: {e.full}. Quick: {e.quick}."


def _short(cell: str) -> Markup:
    """A cell of a table; numbers with four digits."""
    try:
        return _cell(float(cell)) if "." in cell or "e" in cell or "inf" in cell else formula(cell)
    except ValueError:
        return formula(cell)


def _cell(value: Any) -> Markup:
    """A number with four digits, nothing for nothing.

    >>> [str(_cell(value)) for value in (0.123456, None, 1e-7, -2.5e-9, "n > 100")]
    ['0.1235', '', '10<sup>−7</sup>', '−2.5·10<sup>−9</sup>', 'n &gt; 100']
    """
    if value is None:
        return formula("")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return formula(", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e6):
        return formula(f"{int(value)}".replace("-", "−"))
    if not math.isfinite(value):
        return formula("∞" if value > 0 else "−∞" if value < 0 else "")
    digits, _, power = f"{value:.4g}".partition("e")
    if power:
        ten = f"10^({int(power)})"
        digits = ten if digits == "1" else f"{digits}·{ten}"
    return formula(digits.replace("-", "−"))
