"""Tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .accuracy import error_words
from .summary import Summary

_CLAIMS = {
    "exact": "claim: exact, a matching attack exists",
    "upper": "claim: upper, a proved bound",
}


def summary_table(summary: Summary) -> RenderableType:
    """The account of one set of observers, by distance."""
    header, cells = summary.table()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in header:
        style = {"published (not a bound)": "dim", f"{summary.chosen.claim.value}, as chosen": "green"}.get(title)
        table.add_column(
            title.replace(" (", "\n(").replace(", ", ",\n").replace("trusted ", "trusted\n"),
            justify="right",
            style=style,
        )
    for row in cells:
        table.add_row(*row, style="bold" if row[0] == "worst" else "dim" if row[0] == "mean factor" else None)
    return Group(
        Text(summary.protocol.describe()), Text(f"{summary.question}\n", style="bold"), table, Text(_footer(summary))
    )


def _footer(summary: Summary) -> str:
    lines = [f"\n{_CLAIMS[summary.chosen.claim.value]}; rounding margin {summary.chosen.slack:.0e}, on the safe side"]
    lines.append(error_words(summary.protocol, summary.error))
    if summary.published_fails:
        lines.append("the published formula is below the exact loss at some distance (docs/guarantees.md)")
    return "\n".join(lines)
