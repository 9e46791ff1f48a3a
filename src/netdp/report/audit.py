"""What an audit found, for people: a table for a terminal, one self-contained page, a picture by distance.

Claimed ε are rounded up, as everywhere; measured ones are lower bounds and are rounded *down*.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import netdp
from netdp.audit.findings import Audit, Check, Finding, Verdict
from netdp.privacy.wording import readable
from netdp.report.charts import below
from netdp.report.style import BLUE, ORANGE, RED, round_step, scientific, write_picture

from .pages import svg, whole_page

if TYPE_CHECKING:
    from netdp.report.figures import Picture

_STYLE = {
    Verdict.REFUTED: "bold red",
    Verdict.ATTAINED: "green",
    Verdict.HOLDS: "green",
    Verdict.TOO_SMALL: "dim",
    Verdict.NOTHING: "dim",
}
_CLASS = {
    Verdict.REFUTED: "bad",
    Verdict.ATTAINED: "good",
    Verdict.HOLDS: "good",
    Verdict.TOO_SMALL: "absent",
    Verdict.NOTHING: "absent",
}


def at_least(value: float, digits: int = 3) -> str:
    """A lower bound, rounded down.

    >>> [at_least(x) for x in (0.0, 0.98765, 0.04999, 12.349, math.inf)]
    ['0', '0.987', '0.0499', '12.3', '∞']
    """
    if value <= 0 or math.isinf(value):
        return "∞" if math.isinf(value) else "0"
    places = max(0, digits - 1 - math.floor(math.log10(value)))
    return f"{math.floor(value * 10**places) / 10**places:.{places}f}"


def audit_table(audit: Audit) -> RenderableType:
    """The rows with their verdicts, the checks, and what the numbers mean."""
    parts: list[RenderableType] = [Text(audit.title), Text(f"ε at δ = {audit.delta:g}\n", style="bold")]
    if audit.findings:
        parts.append(_rows(audit.findings))
    if audit.by_distance:
        parts += [Text("\nby distance from one observer", style="bold"), _rows(audit.by_distance)]
    if audit.checks:
        parts += [Text(""), _checks(audit.checks)]
    return Group(*parts, Text("\n" + "\n".join(_words(audit))))


def _rows(findings: Sequence[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("who looks at whom")
    for title in ("claimed", "measured\nat least", "of it", "published"):
        table.add_column(title, justify="right")
    table.add_column("verdict")
    for row in findings:
        share = _share(row)
        printed = "" if row.published is None else readable(row.published) + (" ✗" if row.published_refuted else "")
        table.add_row(
            row.name, f"{_short(row)} → {row.about}", readable(row.claimed), at_least(row.epsilon), share, printed,
            Text(row.verdict.value, style=_STYLE[row.verdict]),
        )  # fmt: skip
    return table


def _share(row: Finding) -> str:
    """How much of the claim was attained."""
    return "" if math.isinf(row.claimed) or row.claimed <= 0 else f"{100 * min(row.tightness, 9.99):.0f} %"


def _short(row: Finding) -> str:
    who = row.observers
    called = [*who.roles, *(str(name) for name in (who.names or who.parties))]
    return ", ".join(called[:4]) + (f" and {len(called) - 4} more" if len(called) > 4 else "")


def _checks(checks: Sequence[Check]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("")
    table.add_column("")
    for check in checks:
        table.add_row(
            Text("ok" if check.ok else "NOT OK", style="green" if check.ok else "bold red"),
            f"{check.name}: {check.words}",
        )
    return table


def _words(audit: Audit) -> list[str]:
    """What the numbers mean, in sentences."""
    lines = [verdict_words(audit)]
    if audit.findings:
        lines.append(
            f"measured: {audit.trials or _runs(audit)}; with {100 * audit.confidence:g} % confidence no row of a sound system is "
            f"called refuted{'' if audit.trials else f'; seed {audit.seed}'}"
        )
        if any(row.epsilon > row.measured.by_counts for row in audit.findings):
            lines.append(
                "measured as a Gaussian loss (from how often the best guess is right); by counts alone, whatever the law: "
                f"{at_least(max(row.measured.by_counts for row in audit.findings))} at most"
            )
    if any(row.published_refuted for row in (*audit.findings, *audit.by_distance)):
        lines.append("✗: the published formula is refuted by measurement")
    return [*lines, *audit.notes]


def _runs(audit: Audit) -> str:
    trials = sorted({row.measured.trials for row in (*audit.findings, *audit.by_distance)})
    many = f"{trials[0]:,}" if len(trials) == 1 else f"{trials[0]:,} to {trials[-1]:,}"
    return f"from {many} runs a row, half with one value of the target and half with another"


def verdict_words(audit: Audit) -> str:
    """The whole audit in one sentence.

    >>> verdict_words(Audit("nothing", 1e-6, 0.99, 0))
    'nothing was refuted'
    """
    bad = [row.name for row in (*audit.findings, *audit.by_distance) if row.verdict.is_bad]
    wrong = [check.name for check in audit.checks if not check.ok]
    if not bad and not wrong:
        return "nothing was refuted"
    said = [f"refuted: {', '.join(bad)}"] if bad else []
    said += [f"not as it should be: {', '.join(wrong)}"] if wrong else []
    return (
        "; ".join(said)
        + ": the system gives away more than is claimed, or is not what it claims to be; do not rely on it"
    )


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def save_audit(audit: Audit, path: str | os.PathLike[str]) -> Path:
    """The page (.html), or the picture alone (.png, .svg or .pdf)."""
    return write_picture(path, lambda: _drawn(audit), lambda: audit_page(audit))


def _drawn(audit: Audit) -> Picture:
    """Claim, measurement, local DP and the published formula, by distance or row by row."""
    from netdp.report.figures import COLUMN, Picture, paper_style

    rows = audit.by_distance or audit.findings
    labels = [str(row.hops) for row in rows] if audit.by_distance else [fill(row.name, 12) for row in rows]
    with paper_style():
        figure = Picture(figsize=(COLUMN * (1.0 if len(rows) <= 6 else 1.4), 2.8))
        axes = figure.subplots()
        x = list(range(len(rows)))
        if rows:
            finite = [_or_nan(row.claimed) for row in rows]
            axes.plot(x, finite, color=BLUE, marker="o", label=f"claimed ({rows[0].claim.value})")
            axes.plot(x, [row.epsilon for row in rows], color=ORANGE, marker="^", linestyle="none", markersize=6,
                      label="measured, at least")  # fmt: skip
        if any(row.local is not None for row in rows):
            axes.plot(x, [_or_nan(row.local) for row in rows], color="black", linestyle=":", label="local DP")
        if any(row.published is not None for row in rows):
            axes.plot(x, [_or_nan(row.published) for row in rows], color=RED, linestyle="--", marker="s", markersize=3,
                      label="published (not a bound)")  # fmt: skip
        axes.set_xticks(x, labels)
        under = "links between observer and target" if audit.by_distance else ""
        axes.set(xlabel=under, ylabel=f"ε at δ = {scientific(audit.delta)}")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        if rows:
            below(axes, columns=2, inches=0.4)
        else:
            axes.text(0.5, 0.5, "no pair was attacked", transform=axes.transAxes, ha="center")
    return figure


def _or_nan(value: float | None) -> float:
    return math.nan if value is None or math.isinf(value) else value


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def audit_page(audit: Audit) -> str:
    """One file, without anything from outside: verdict, tables, picture, what was done."""
    return whole_page(
        "audit.html", "page.css", audit=audit, words=_words(audit), version=netdp.__version__, kinds=_CLASS,
        picture=svg(_svg(audit)) if audit.by_distance or audit.findings else None,
        readable=readable, at_least=at_least, share=_share, short=_short,
    )  # fmt: skip


_W, _H, _LEFT, _BOTTOM, _TOP = 720, 330, 60, 46, 58


def _svg(audit: Audit) -> str:
    """The picture as inline SVG: needs no library, follows light and dark."""
    rows = audit.by_distance or audit.findings
    certified = [v for row in rows for v in (row.claimed, row.epsilon, row.local) if v is not None]
    highest = max([v for v in certified if math.isfinite(v)] + [1e-9])
    printed = [_or_nan(row.published) for row in rows]
    highest = 1.05 * max([highest, *(min(v, 2 * highest) for v in printed if math.isfinite(v))])
    step = round_step(highest / 5)
    marks = math.ceil(highest / step)
    top = marks * step

    def x(i: int) -> float:
        return _LEFT + (_W - _LEFT - 20) * (i + 0.5) / len(rows)

    def y(value: float) -> float:
        return _H - _BOTTOM - (_H - _BOTTOM - _TOP) * value / top

    def line(kind: str, numbers: Sequence[float]) -> str:
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(numbers) if math.isfinite(v))
        return f"<polyline class={kind} clip-path='url(#inside)' points='{points}'/>"

    body = [
        f"<clipPath id=inside><rect x={_LEFT} y={_TOP} width={_W - _LEFT - 20} height={_H - _BOTTOM - _TOP + 2} /></clipPath>"
    ]
    for k in range(marks + 1):
        at = f"{y(k * step):.1f}"
        body.append(f"<line class=grid x1={_LEFT} x2={_W - 20} y1={at} y2={at} />")
        body.append(f"<text x={_LEFT - 8} y={y(k * step) + 4:.1f} text-anchor=end>{k * step:g}</text>")
    legend = [("claimed", f"claimed ({rows[0].claim.value})"), ("measured", "measured, at least")]
    body.append(line("claimed", [row.claimed for row in rows]))
    if any(row.local is not None for row in rows):
        body.append(line("local", [_or_nan(row.local) for row in rows]))
        legend.append(("local", "local DP"))
    if any(row.published is not None for row in rows):
        body.append(line("printed", printed))
        legend.append(("printed", "published (not a bound)"))
    for i, row in enumerate(rows):
        cx, cy = x(i), y(min(row.epsilon, top))
        told = f"{row.name}: claimed {readable(row.claimed)}, measured at least {at_least(row.epsilon)}"
        body.append(f"<path class=measured d='M{cx:.1f} {cy - 6:.1f}l6 11h-12z'><title>{escape(told)}</title></path>")
        label = str(row.hops) if audit.by_distance else row.name
        body.append(f"<text x={cx:.1f} y={_H - _BOTTOM + 18} text-anchor=middle>{escape(label)}</text>")
    lx = _LEFT
    for kind, words in legend:
        mark = f"<line class={kind} x1={lx} x2={lx + 24} y1=18 y2=18 />"
        if kind == "measured":
            mark = f"<path class=measured d='M{lx + 12} 12l6 11h-12z'/>"
        body.append(f"{mark}<text x={lx + 30} y=22>{escape(words)}</text>")
        lx += 52 + 7 * len(words)
    under = "links between observer and target" if audit.by_distance else ""
    body.append(f"<text x={(_W + _LEFT) / 2:.0f} y={_H - 6} text-anchor=middle>{under}</text>")
    body.append(f"<text x=6 y={_TOP - 12}>ε at δ = {audit.delta:g}</text>")
    title = "Claimed and measured loss" + (" by distance" if audit.by_distance else "")
    inside = "".join(body)
    return f"<svg viewBox='0 0 {_W} {_H}' role=img aria-label='{title}'>{inside}</svg>"
