"""What a notebook shows of a graph, a loss and a plan: a few lines of HTML, a table for pandas, a picture.

**HTML** has no script and is light or dark as the page is. Colours and fonts are the page's own; names from files are escaped; ε
is rounded up; what is assumed is folded away, word for word.

**Tables**: `to_frame()` of losses and plans; pandas is loaded only here.

**Pictures**: `loss.plot()` and `graph.plot()`, for notebooks and papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import InvalidValue, MissingDependency
from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive
from netdp.privacy.guarantee import Guarantee, Unit
from netdp.privacy.wording import readable
from netdp.protocols.planning import Plan
from netdp.report.charts import Heat, curves_of, draw_curves, draw_heat, draw_losses, stated
from netdp.report.network import draw_network, legend_entries
from netdp.report.pages import rendered
from netdp.report.style import Scale, needs_matplotlib, scientific

if TYPE_CHECKING:
    from netdp.report.figures import Picture

_DELTA = 1e-6

_MOST = 5  # parties named, those that lose most

_Part = tuple[Sequence[tuple[str, bool]], Sequence[Sequence[str]]]
"""Titles of columns, each with whether it holds numbers, and rows; without titles, rows of a name and what is said of it."""


def graph_card(graph: Graph) -> str:
    """Name, parties, links, degrees."""
    degrees = graph.degrees
    rows = [
        ("parties", f"{graph.n:,}"),
        ("links", f"{graph.m:,}"),
        ("links of a party", f"{degrees.min():,} to {degrees.max():,}, {degrees.mean():.3g} on average"),
        ("connected", "yes" if graph.is_connected else f"no, {int(graph.components().max()) + 1:,} components"),
    ]
    return rendered("card.html", kind="netdp-graph", title=f"Graph “{graph.name}”", parts=[([], rows)])


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
    parts: list[_Part] = [([], rows)]
    if not pairs and count > 1 and np.nanmax(epsilon) > np.nanmin(epsilon) * (1 + 1e-9):
        parts.append(_who_loses_most(loss, epsilon))
    return rendered(
        "card.html",
        kind="netdp-loss",
        title=f"Privacy loss of {about}",
        aside=loss.claim.value,
        warning="" if loss.is_certified else "Not a guarantee.",
        parts=parts,
        folded=[
            ("assumes", loss.assumptions),
            ("proved or printed in", loss.references),
            ("known mistakes of the formula", loss.errata),
        ],
    )


def _who_loses_most(loss: Guarantee, epsilon: np.ndarray) -> _Part:
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
         option.error.cell, f"{option.rmse / plan.curator_rmse:.2f}"]
        for option in plan.options
    ]  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        rows.append(["", name, "", "", readable(rmse), f"{rmse / plan.curator_rmse:.2f}"])
    words = [("asked", f"{asked} at δ = {scientific(plan.delta)}; {plan.holds}"), ("chosen", plan.protocol.describe())]
    if plan.limit is not None:
        words.append(("limit", plan.limit.words))
    folded = [
        ("assumes", plan.guarantee.assumptions),
        ("notes", (*plan.notes, "≤ before an error: it is at most this")),
    ]
    parts = [_table(header, rows), ([], words)]
    return rendered("card.html", kind="netdp-plan", title=f"Plan for {asked}", parts=parts, folded=folded)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> _Part:
    """A table: numbers to the right, words to the left."""
    return [(title, _numeric([row[k] for row in rows])) for k, title in enumerate(header)], rows


def _numeric(column: Sequence[str]) -> bool:
    return bool(column) and all(not cell or cell[0] in "0123456789<∞–" for cell in column)


def loss_frame(loss: Guarantee, delta: float = 1e-6) -> Any:
    """One row per party: whether it observes, ε at δ, its factor of the local-DP loss, its distance; of all pairs one row each.

    An observer has no loss to itself: nan. Numbers are as certified, not rounded.
    """
    pandas = _pandas()
    positive("delta", delta)
    epsilon = np.asarray(loss.epsilon(delta))
    names = np.array(loss.names if loss.names is not None else [str(u) for u in range(len(epsilon))])
    factor = None if loss.factor is None else np.asarray(loss.factor)
    if epsilon.ndim == 2:
        u, v = np.indices(epsilon.shape).reshape(2, -1)
        columns: dict[str, Any] = {"party": names[u], "observer": names[v], "epsilon": epsilon.ravel()}
        if factor is not None:
            columns["factor"] = factor.ravel()
        frame = pandas.DataFrame(columns)[u != v].reset_index(drop=True)
    else:
        observers = np.zeros(len(epsilon), dtype=bool)
        observers[list(loss.observers.parties)] = True
        columns = {"party": names, "observer": observers, "epsilon": epsilon}
        if factor is not None:
            columns["factor"] = factor
        if loss.network is not None and loss.observers.parties and loss.network.n == len(epsilon):
            columns["hops"] = loss.network.distances(list(loss.observers.parties))
        frame = pandas.DataFrame(columns)
    frame.attrs = {"delta": delta, "claim": loss.claim.value, "observers": loss.observers.words}
    return frame


def plan_frame(plan: Plan) -> Any:
    """One row per way, then local DP and a trusted curator: certified ε at the plan's δ, claim, error, messages, chosen or not."""
    pandas = _pandas()
    rows: list[dict[str, Any]] = [
        {
            "way": option.name,
            "family": option.family,
            "epsilon": plan.worst_epsilon(option),
            "claim": option.guarantee.claim.value,
            "rmse": option.rmse,
            "error_claim": option.error.claim.value,
            "times_curator": option.rmse / plan.curator_rmse,
            "messages_per_party": option.messages,
            "chosen": option is plan.best,
        }
        for option in plan.options
    ]
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        rows.append({"way": name, "rmse": rmse, "times_curator": rmse / plan.curator_rmse, "chosen": False})
    frame = pandas.DataFrame(rows)
    frame.attrs = {"epsilon": plan.epsilon, "delta": plan.delta, "holds": plan.holds}
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency("pandas", "to_frame()", "notebook") from None
    return pandas


def plot_graph(graph: Graph) -> Picture:
    """The graph with its links, and its names where there are few."""
    needs_matplotlib()
    from netdp.report.figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, COLUMN))
        axes = figure.subplots()
        draw_network(axes, graph, inches=COLUMN * 0.9)
        axes.set_title(fill(f"{graph.name}: {graph.n:,} parties, {graph.m:,} links", 60))
    return figure


KINDS = ("network", "pairs", "order", "curve")


def plot_loss(loss: Guarantee, graph: Graph | None = None, delta: float = 1e-6, kind: str | None = None) -> Picture:
    """The network coloured by the loss where it is known; all pairs as a heat map; else losses in order, or ε against δ."""
    needs_matplotlib()
    positive("delta", delta)
    if kind is not None and kind not in KINDS:
        raise InvalidValue(f"kind = {kind!r} is no picture of a loss; choose one of {', '.join(KINDS)}")
    epsilon = np.asarray(loss.epsilon(delta))
    network = loss.network if graph is None else graph
    if graph is not None and not isinstance(graph, Graph):
        raise InvalidValue(
            f"graph = {graph!r} is no netdp graph; graphs.from_networkx(G) and graphs.parse('ring:8') make one"
        )
    if graph is not None and graph.n != epsilon.shape[-1]:
        raise InvalidValue(
            f"the loss is about {epsilon.shape[-1]} parties and {graph!r} has {graph.n}; give the graph it was run on"
        )
    fitting = network is not None and network.n == epsilon.size and epsilon.ndim == 1
    drawn = _usual(epsilon, fitting) if kind is None else kind
    if (drawn == "pairs") != (epsilon.ndim == 2) and drawn != "curve":
        what = "pairs" if epsilon.ndim == 2 else "one set of observers"
        raise InvalidValue(
            f"kind = {drawn!r}: this loss is about {what}; `netdp.pairwise` is about pairs, `netdp.account` about observers"
        )
    if drawn == "network":
        if network is None or not fitting:
            raise InvalidValue("kind = 'network': this loss knows no network; give plot(graph=...)")
        return _network(loss, network, epsilon, delta)
    if drawn == "pairs":
        return _pairs(loss, epsilon, delta)
    if drawn == "order":
        return _on_axes(loss, delta, 2.5, lambda axes: draw_losses(axes, epsilon, delta, {}))
    return _on_axes(loss, delta, 2.6, lambda axes: draw_curves(axes, curves_of(loss, {}), delta))


def _usual(epsilon: FloatArray, fitting: bool) -> str:
    """What there is to see: places, pairs, differences; or nothing but one number for all, at every δ."""
    if epsilon.ndim == 2:
        return "pairs"
    if fitting:
        return "network"
    known = epsilon[~np.isnan(epsilon)]
    return "order" if known.size > 1 and known.max() > known.min() * (1 + 1e-9) else "curve"


def _title(loss: Guarantee, delta: float, width: int) -> str:
    return fill(f"{loss.observers.words}: {stated(loss, delta)}", width)


def _network(loss: Guarantee, graph: Graph, epsilon: np.ndarray, delta: float) -> Picture:
    from netdp.report.figures import Picture, paper_style

    scale = Scale.of([epsilon], {})
    found = () if loss.found is None else loss.found.observers.parties
    with paper_style():
        figure = Picture(figsize=(4.2, 4.5))
        network, bar = figure.subplots(2, 1, height_ratios=(1, 0.035))
        draw_network(network, graph, epsilon, scale, loss.observers.parties, found=found, inches=3.9)
        if entries := legend_entries(epsilon, loss.observers.parties, found):
            network.legend(handles=entries, loc="lower left", bbox_to_anchor=(0.0, -0.06), ncols=3, handletextpad=0.2)
        figure.suptitle(_title(loss, delta, 66), fontsize=8, x=0.02, ha="left")
        scale.bar(bar, delta, [epsilon])
    return figure


def _pairs(loss: Guarantee, epsilon: np.ndarray, delta: float) -> Picture:
    from netdp.report.figures import Picture, paper_style

    scale = Scale.of([epsilon], {})
    with paper_style():
        figure = Picture(figsize=(4.2, 4.6))
        square, bar = figure.subplots(2, 1, height_ratios=(1, 0.035))
        draw_heat(square, Heat(np.arange(len(epsilon)), epsilon, complete=True), scale, loss.names)
        figure.suptitle(_title(loss, delta, 66), fontsize=8, x=0.02, ha="left")
        entries = [entry for entry in legend_entries(epsilon, ()) if entry is not None]
        if entries:
            square.legend(handles=entries, loc="lower left", bbox_to_anchor=(0.0, 1.06), ncols=2, handletextpad=0.2)
        scale.bar(bar, delta, [epsilon])
    return figure


def _on_axes(loss: Guarantee, delta: float, height: float, draw: Callable[[Any], None]) -> Picture:
    """One pair of axes under a title."""
    from netdp.report.figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, height))
        axes = figure.subplots()
        draw(axes)
        axes.set_title(_title(loss, delta, 60), loc="left")
    return figure
