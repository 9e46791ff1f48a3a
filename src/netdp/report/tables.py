"""Tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

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
    return Group(Text(_subject(summary)), Text(_question(summary), style="bold"), table, Text(_footer(summary)))


def _subject(summary: Summary) -> str:
    protocol, graph = summary.protocol, summary.protocol.graph
    settings = [f"T={protocol.rounds}", f"σ={protocol.sigma:g}", f"Δ={protocol.sensitivity:g}"]
    settings += [f"refresh={protocol.refresh:g}"] if protocol.refresh else []
    settings += [f"masks={protocol.masks:g}"] if protocol.masks else []
    settings += ["accelerated"] if protocol.accelerated else []
    return f"{graph.name}: {graph.n:,} parties, {graph.m:,} edges; gossip {' '.join(settings)}"


def _question(summary: Summary) -> str:
    labels = summary.protocol.graph.labels
    names = [labels[v] if labels else str(v) for v in summary.observers]
    who = f"party {names[0]}"
    if len(names) > 1:
        who = (
            "parties "
            + ", ".join(names[:6])
            + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            + ", colluding,"
        )
    return f"What {who} can learn about a party: worst ε at δ = {summary.delta:g}\n"


def _footer(summary: Summary) -> str:
    lines = [f"\n{_CLAIMS[summary.chosen.claim.value]}; rounding margin {summary.chosen.slack:.0e}, on the safe side"]
    if summary.published_fails:
        lines.append("the published formula is below the exact loss at some distance (docs/guarantees.md)")
    return "\n".join(lines)
