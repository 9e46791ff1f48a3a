"""One HTML page of all figures and tables redone: a verdict each, the numbers behind it, the picture, the data.

The page is one file: pictures are inside it (as PNG), CSV and PDF lie beside it and are linked. It asks nothing of a network.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import math
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import netdp
from netdp.report.files import write_whole

from .errata.base import load
from .experiment import Finding, Size, Verdict
from .papers import PAPERS
from .running import Report

_MARK = {
    Verdict.REPRODUCED: "✓ reproduced",
    Verdict.WITH_ERRATUM: "✓ with erratum",
    Verdict.IN_PART: "✓ in part",
    Verdict.NOT_HERE: "not here",
    Verdict.DIFFERS: "✗ differs",
    Verdict.OURS: "ours",
}
_CLASS = {
    Verdict.REPRODUCED: "good",
    Verdict.WITH_ERRATUM: "erratum",
    Verdict.IN_PART: "erratum",
    Verdict.NOT_HERE: "absent",
    Verdict.DIFFERS: "bad",
    Verdict.OURS: "good",
}


def write_page(reports: Sequence[Report], out: Path) -> Path:
    """Write `index.html` into `out` and say where it is."""
    target = out / "index.html"
    write_whole(target, page(reports, out).encode())
    return target


def page(reports: Sequence[Report], out: Path) -> str:
    """The page as text."""
    sizes = sorted({report.size.value for report in reports})
    style = resources.files("netdp.reproduce").joinpath("page.css").read_text("utf-8")
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>Every figure and table, redone</title><style>{style}</style><main>",
        "<h1>Every figure and table, redone</h1>",
        f"<p>By netdp {netdp.__version__}, {' and '.join(sizes)} size. Each entry sets side by side what "
        "the document prints, what its formula gives when computed as printed, and what is true, with its claim "
        "(<i>exact</i>, a proved <i>upper</i> bound, an <i>estimate</i>). The errata named here are demonstrated on the page "
        f"{_errata_page(out)}. A verdict follows from the comparisons below it: <i>reproduced</i> if what the document "
        "says comes out, <i>with erratum</i> if it does once the named mistake is known, <i>in part</i> if some of it does "
        "not, <i>differs</i> if a comparison of ours fails.</p>",
        _overview(reports),
    ]
    for key, paper in PAPERS.items():
        mine = [report for report in reports if report.experiment.paper == key]
        if mine:
            parts.append(
                f"<h2 id='paper-{key}'>{html.escape(paper.short)}</h2><p class=note>{html.escape(paper.reference)}</p>"
            )
            if key == "ours":
                parts.append(
                    "<p class=note>“Maths page” in a note: what this project's own notes on the mathematics say; it is "
                    "computed again here.</p>"
                )
            parts.extend(_entry(report, out) for report in mine)
    parts.append("</main></html>\n")
    return "\n".join(parts)


def _errata_page(out: Path) -> str:
    there = (out / "errata.md").exists()
    return "<a href=errata.md>errata</a>" if there else "that <code>netdp reproduce errata</code> writes"


def _overview(reports: Sequence[Report]) -> str:
    counts = {verdict: sum(report.verdict is verdict for report in reports) for verdict in Verdict}
    said = ", ".join(f"{number} {verdict.value}" for verdict, number in counts.items() if number)
    rows = "".join(
        f"<tr><td><a href='#{r.experiment.id}'>{r.experiment.id}</a><td>{html.escape(PAPERS[r.experiment.paper].short)}"
        f"<td>{_text(r.experiment.place)}<td>{_text(r.experiment.title)}<td>{_verdict(r)}<td class=n>{r.seconds:.1f} s"
        for r in reports
    )
    return (
        f"<p><b>{said}.</b></p><div class=wide><table><tr><th>name<th>document<th>place<th>what<th>verdict<th class=n>took{rows}"
        "</table></div>"
    )


def _verdict(report: Report) -> str:
    return f"<span class='verdict {_CLASS[report.verdict]}'>{_MARK[report.verdict]}</span>"


def _entry(report: Report, out: Path) -> str:
    e = report.experiment
    parts = [
        f"<article id='{e.id}'><header><h3>{_text(e.place)}: {_text(e.title)}</h3>{_verdict(report)}</header>",
        f"<p>{_text(e.shows)}</p>",
    ]
    if report.why:
        parts.append(f"<p class=note>{html.escape(report.why[:1].upper() + report.why[1:])}.</p>")
    if e.errata:
        parts.append(_errata(e.errata, (out / "errata.md").exists()))
    for file in report.files:
        if file.endswith(".png"):
            picture = (out / file).read_bytes()
            wide = int.from_bytes(picture[16:20], "big") * 5 // 8  # as large in print as on the screen, sharp on both
            data = base64.b64encode(picture).decode()
            parts.append(
                f"<img alt='{html.escape(e.place)}: {html.escape(e.title)}' width={wide} src='data:image/png;base64,{data}'>"
            )
    if report.findings:
        parts.append(_findings(report.findings))
    for file in report.files:
        if file.endswith("tables.csv"):
            parts.append(_tables((out / file).read_text("utf-8")))
    links = ", ".join(f"<a href='{file}'>{Path(file).name}</a>" for file in report.files if not file.endswith(".png"))
    settings = "; ".join(f"{html.escape(key)} = {_cell(value)}" for key, value in report.settings.items())
    cost = e.quick if report.size is Size.QUICK else e.full
    other = f"Full size: {e.full}" if report.size is Size.QUICK else f"Quick: {e.quick}"
    parts.append(
        f"<p class=files><small>{settings}. Cost of this run: {html.escape(cost)}. {html.escape(other)}. "
        f"<code>netdp reproduce {e.id}</code>{': ' + links if links else ''}</small></p></article>"
    )
    return "\n".join(parts)


def _findings(findings: Sequence[Finding]) -> str:
    rows = []
    for finding in findings:
        claim = f" <small>{finding.claim.value}</small>" if finding.claim is not None else ""
        wrong = "" if finding.holds else " <b class=bad>does not hold in this run</b>"
        rows.append(
            f"<tr><td>{_text(finding.what)}{wrong}<td class=n>{_cell(finding.printed)}<td class=n>{_cell(finding.formula)}"
            f"<td class=n>{_cell(finding.certified)}{claim}<td>{_text(finding.note)}"
        )
    head = "<tr><th>compared<th class=n>printed<th class=n>its formula<th class=n>true<th>note"
    return f"<div class=wide><table>{head}{''.join(rows)}</table></div>"


def _tables(text: str) -> str:
    parts: list[str] = []
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    head = False
    for row in rows:
        if row[0].startswith("# ") and len(row) == 1:
            close = "</table></div></details>" if parts else ""
            title = html.escape(row[0][2:])
            parts.append(f"{close}<details open><summary>{title}</summary><div class=wide><table>")
            head = True
        else:
            cell, head_now = ("th" if head else "td"), head
            parts.append("<tr>" + "".join(f"<{cell}>{_text(c) if head_now else _short(c)}" for c in row))
            head = False
    return "".join([*parts, "</table></div></details>"] if parts else [])


def _errata(named: Sequence[str], written: bool) -> str:
    """What is mistaken in the document, each in a sentence or two, with its place on the page of errata if that is there."""
    known = load()
    items = []
    for name in named:
        one = known.get(name)
        said = "" if one is None else f": {_text(one.true)}"
        where = "" if one is None else f"{_text(one.place)} "
        id = html.escape(name)
        link = f"<a href='errata.md#{id}'>{id}</a>" if written else id
        items.append(f"<li>{where}({link}){said}")
    return f"<ul class=erratum>{''.join(items)}</ul>"


def _short(cell: str) -> str:
    """A cell of a table, as HTML; numbers with four digits."""
    try:
        return _cell(float(cell)) if "." in cell or "e" in cell or "inf" in cell else _text(cell)
    except ValueError:
        return _text(cell)


def _cell(value: Any) -> str:
    """A number with four digits, nothing for nothing; as HTML.

    >>> _cell(0.123456), _cell(None), _cell(1e-7), _cell(-2.5e-9), _cell("n > 100")
    ('0.1235', '', '10<sup>−7</sup>', '−2.5·10<sup>−9</sup>', 'n &gt; 100')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _text(", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e6):
        return f"{int(value)}".replace("-", "−")
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else ""
    digits, _, power = f"{value:.4g}".partition("e")
    if power:
        ten = f"10<sup>{int(power)}</sup>"
        digits = ten if digits == "1" else f"{digits}·{ten}"
    return digits.replace("-", "−")


def _text(words: str) -> str:
    """Words as HTML; what is raised, as in e^{2ε₀} or n^(1/4), raised.

    >>> _text("e^{2ε₀} < n^(1/4)")
    'e<sup>2ε₀</sup> &lt; n<sup>1/4</sup>'
    """
    return re.sub(
        r"\^(?:\{([^}]*)\}|\(([^)]*)\))", lambda found: f"<sup>{found[1] or found[2]}</sup>", html.escape(words)
    )
