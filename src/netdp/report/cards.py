"""What a notebook shows of a graph, a loss and a plan: a few lines of HTML, without script, light and dark alike.

Colours and fonts are the page's own; names from files are escaped; ε is rounded up; what is assumed is folded away, word for
word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from netdp.graphs import Graph
from netdp.planning.base import Plan
from netdp.privacy import Guarantee, Unit
from netdp.privacy.readable import readable

from .scale import scientific

_DELTA = 1e-6
_MOST = 5  # parties named, those that lose most
_CELL = "padding:.1em 1em .1em 0;text-align:left;vertical-align:top;font-weight:normal;border:0"
_NUMBER = _CELL.replace("left", "right") + ";font-variant-numeric:tabular-nums"


def graph_card(graph: Graph) -> str:
    """Name, parties, links, degrees."""
    degrees = graph.degrees
    rows = [
        ("parties", f"{graph.n:,}"),
        ("links", f"{graph.m:,}"),
        ("links of a party", f"{degrees.min():,} to {degrees.max():,}, {degrees.mean():.3g} on average"),
        ("connected", "yes" if graph.is_connected else f"no, {int(graph.components().max()) + 1:,} components"),
    ]
    return _card("netdp-graph", f"Graph “{graph.name}”", "", _pairs(rows))


def loss_card(loss: Guarantee) -> str:
    """The worst ε, against whom, how sure; who loses most; assumptions and references folded."""
    pairs = len(loss.curve.shape) > 1
    epsilon = np.asarray(loss.epsilon(_DELTA))
    count = int(np.count_nonzero(~np.isnan(epsilon)))
    about = f"{count:,} {'pairs' if pairs else 'parties'}"
    meaning = loss.adjacency.meaning_for_records if loss.unit is Unit.RECORD else loss.adjacency.meaning
    rows = [("worst", f"ε = {readable(loss.worst_epsilon(_DELTA))} at δ = {scientific(_DELTA)}")]
    if loss.factor is not None:
        rows.append(("of local DP", f"×{readable(loss.worst)} at worst, ×{readable(loss.mean_factor)} on average"))
    rows += [("against", loss.observers.words), ("protected", meaning), ("claim", loss.claim.meaning)]
    if loss.found is not None:
        rows.append(("found", loss.found.sentence(_DELTA)))
    body = _pairs(rows)
    if not pairs and count > 1 and np.nanmax(epsilon) > np.nanmin(epsilon) * (1 + 1e-9):
        body += _who_loses_most(loss, epsilon)
    warning = "" if loss.is_certified else "<p><strong>Not a guarantee.</strong></p>"
    folded = _folded("assumes", loss.assumptions) + _folded("proved or printed in", loss.references)
    folded += _folded("known mistakes of the formula", loss.errata)
    return _card("netdp-loss", f"Privacy loss of {about}", loss.claim.value, warning + body + folded)


def _who_loses_most(loss: Guarantee, epsilon: np.ndarray) -> str:
    order = np.argsort(-np.nan_to_num(epsilon, nan=-1.0), kind="stable")[:_MOST].tolist()
    named = [str(u) if loss.names is None else loss.names[u] for u in order]
    rows = [
        [name, readable(float(epsilon[u]))] for name, u in zip(named, order, strict=True) if not np.isnan(epsilon[u])
    ]
    return _table(["loses most", f"ε at δ = {scientific(_DELTA)}"], rows)


def plan_card(plan: Plan) -> str:
    """What was asked, the ways with their certified ε and predicted error, what was chosen; assumptions folded."""
    asked = "the policy" if plan.epsilon is None else f"ε ≤ {plan.epsilon:g}"
    header = ["", "way", "certified ε", "claim", "predicted error", "× curator"]
    rows = [
        ["✓" if option is plan.best else "", option.name, readable(plan.worst_epsilon(option)), option.guarantee.claim.value,
         readable(option.rmse), f"{option.rmse / plan.curator_rmse:.2f}"]
        for option in plan.options
    ]  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        rows.append(["", name, "", "", readable(rmse), f"{rmse / plan.curator_rmse:.2f}"])
    words = [("asked", f"{asked} at δ = {scientific(plan.delta)}; {plan.holds}"), ("chosen", plan.protocol.describe())]
    if plan.limit is not None:
        words.append(("limit", plan.limit.words))
    folded = _folded("assumes", plan.guarantee.assumptions) + _folded("notes", plan.notes)
    return _card("netdp-plan", f"Plan for {asked}", "", _table(header, rows) + _pairs(words) + folded)


def _card(kind: str, title: str, aside: str, body: str) -> str:
    said = f" <small>{escape(aside)}</small>" if aside else ""
    return f'<div class="{kind}" style="max-width:52em"><strong>{escape(title)}</strong>{said}{body}</div>'


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL};opacity:.75">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="border-collapse:collapse;margin:.3em 0"><tbody>{lines}</tbody></table>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Numbers to the right, words to the left."""
    numeric = [
        bool(rows) and all(not row[k] or row[k][0] in "0123456789<∞–" for row in rows) for k in range(len(header))
    ]
    styles = [_NUMBER if number else _CELL for number in numeric]

    def line(cells: Sequence[str], tag: str, more: str = "") -> str:
        inside = (
            f'<{tag} style="{style}{more}">{escape(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    head, lines = line(header, "th", ";opacity:.75"), "".join(line(row, "td") for row in rows)
    return f'<table style="border-collapse:collapse;margin:.3em 0"><thead>{head}</thead><tbody>{lines}</tbody></table>'


def _folded(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<details><summary>{escape(title)} ({len(lines)})</summary><ul>{listed}</ul></details>"
