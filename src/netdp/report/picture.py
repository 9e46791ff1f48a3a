"""The picture of a loss: the network coloured by it, what every pair learns, and ε against δ; for any protocol.

What a protocol has decides what is drawn: a network only where parties are its nodes, all pairs only where they differ and
are quick to compute, losses in order where parties differ and no network shows it, curves always.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray, Progress
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.answers import CURATOR, LOCAL, PUBLISHED, SHUFFLER, Answer
from netdp.protocols.base import Protocol
from netdp.protocols.table import plainest
from netdp.report.charts import (
    DELTAS,
    Heat,
    any_heat_map,
    curves_of,
    draw_curves,
    draw_heat,
    draw_losses,
    short,
    stated,
)
from netdp.report.network import placed
from netdp.report.style import COLOURS, Scale, picture_path, write_picture

from .network import draw_network, legend_entries
from .pages import rendered
from .tables import distance_cells

if TYPE_CHECKING:
    from netdp.report.figures import Picture

# More links than this only blacken a page and make it slow.
MAX_EDGES = 12_000


@dataclass(frozen=True, eq=False)
class Shown:
    """All that a picture of a loss shows.

    loss        the certified loss, and at which δ
    curves      ε against δ of the worst party, by name
    baselines   what to compare with at δ, by name; None where it does not apply
    kinds       the loss, and plain gossip beside it where masks or fresh noise were chosen: name, column, ε, heat map
    table       caption, header and rows
    """

    protocol: Protocol
    loss: Guarantee
    delta: float
    curves: dict[str, FloatArray]
    baselines: dict[str, float | None]
    kinds: tuple[tuple[str, str, FloatArray, Heat | None], ...]
    table: tuple[str, list[str], list[list[str]]]

    @property
    def network(self) -> Graph | None:
        return self.protocol.network

    @property
    def epsilon(self) -> FloatArray:
        """Of every party; nan at the observers."""
        return self.kinds[0][2]

    @property
    def heat(self) -> Heat | None:
        return self.kinds[0][3]

    @property
    def scale(self) -> Scale:
        return Scale.of([self.epsilon, *([] if self.heat is None else [self.heat.epsilon])], self.baselines)

    @property
    def found(self) -> tuple[int, ...]:
        """The worst coalition that was found, where any of its size was asked about."""
        return () if self.loss.found is None else self.loss.found.observers.parties

    @property
    def differ(self) -> bool:
        """Whether parties lose differently."""
        known = self.epsilon[~np.isnan(self.epsilon)]
        return bool(known.size and known.max() > known.min() * (1 + 1e-9))

    @property
    def title(self) -> str:
        return self.protocol.describe()


def save_picture(answer: Answer, path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Write the picture to a .png, .svg, .pdf or .html file; it appears whole or not at all."""
    picture_path(path)  # refuse before the work
    shown = show_of(answer, progress)
    return write_picture(path, lambda: drawn(shown), lambda: page(shown))


def show_of(answer: Answer, progress: Progress | None = None) -> Shown:
    """What there is to show of an answer; computes the pairs where that is quick."""
    protocol, loss, delta, others = answer.protocol, answer.loss, answer.delta, answer.alternatives
    baselines = {
        name: None if isinstance(one, str) else one.worst_epsilon(delta)
        for name, one in others.items()
        if name in (LOCAL, CURATOR, SHUFFLER)
    }
    heat = None
    if answer.plain is not None or (not loss.observers.any_of and len(loss.observers.parties) <= 1):
        heat = any_heat_map(protocol, loss, progress, delta=delta)
    kinds = [("as chosen", answer.label, _epsilon(loss, delta), heat)]
    table: tuple[str, list[str], list[list[str]]]
    if answer.plain is not None and answer.by_distance:
        table = (answer.question, *distance_cells(answer))
        if (plain := answer.other(answer.plain)) is not None:
            form = plainest(protocol)[1]
            beside = any_heat_map(form, plain, progress, delta=delta)
            kinds.append((answer.plain, answer.column(answer.plain), _epsilon(plain, delta), beside))
        first = [name for name in (answer.plain, PUBLISHED) if name in others]
        named = {answer.column(name): others[name] for name in [*first, *(n for n in others if n not in first)]}
    else:
        rows = [[loss.claim.label, readable(loss.worst_epsilon(delta))]]
        rows += [
            [name, "–" if isinstance(one, str) else readable(one.worst_epsilon(delta))] for name, one in others.items()
        ]
        table, named = (answer.question, ["", "worst ε"], rows), others
    return Shown(protocol, loss, delta, curves_of(loss, named), baselines, tuple(kinds), table)


def _epsilon(loss: Guarantee, delta: float) -> FloatArray:
    return np.asarray(loss.epsilon(delta))


# ── on paper ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn(shown: Shown) -> Picture:
    """The picture for a page of a paper: the network large, the rest beside it; without a network one row of panels."""
    from netdp.report.figures import COLUMN, PAGE, Picture, paper_style

    beside = [*(["heat"] if shown.heat is not None else [])]
    beside += ["losses"] if shown.network is None and shown.differ else []
    beside += ["curves"]
    with paper_style():
        if shown.network is None:
            figure = Picture(figsize=(COLUMN * 1.2 if len(beside) == 1 else PAGE, 3.1))
            figure.suptitle(_headline(shown, 62 if len(beside) == 1 else 115), fontsize=8, x=0.01, ha="left")
            grid = figure.add_gridspec(2, len(beside), height_ratios=(1, 0.04), hspace=0.02)
            rows = [grid[0, place] if name == "heat" else grid[:, place] for place, name in enumerate(beside)]
            panels = [figure.add_subplot(place) for place in rows]
            if shown.heat is not None:
                shown.scale.bar(figure.add_subplot(grid[1, 0]), shown.delta, [shown.heat.epsilon])
        else:
            figure = Picture(figsize=(PAGE, 4.6 if len(beside) > 1 else 4.1))
            figure.suptitle(_headline(shown, 115), fontsize=8, x=0.01, ha="left")
            grid = figure.add_gridspec(2, 2, width_ratios=(1.3, 1), height_ratios=(1, 0.035), wspace=0.04, hspace=0.02)
            who = shown.loss.observers.parties
            network = figure.add_subplot(grid[0, 0])
            draw_network(network, shown.network, shown.epsilon, shown.scale, who, found=shown.found)
            if entries := legend_entries(shown.epsilon, who, shown.found):
                network.legend(handles=entries, loc="upper left", bbox_to_anchor=(-0.02, 1.06), ncols=3, columnspacing=1.0,
                               handletextpad=0.2, borderpad=0)  # fmt: skip
            shades = [shown.epsilon, *([] if shown.heat is None else [shown.heat.epsilon])]
            shown.scale.bar(figure.add_subplot(grid[1, 0]), shown.delta, shades)
            right = grid[:, 1].subgridspec(len(beside), 1, height_ratios=(1.35, 1)[: len(beside)])
            panels = [figure.add_subplot(right[place]) for place in range(len(beside))]
        for name, axes in zip(beside, panels, strict=True):
            if name == "heat" and shown.heat is not None:
                draw_heat(axes, shown.heat, shown.scale, shown.loss.names)
                axes.set_title("what v alone learns about u")
            elif name == "losses":
                draw_losses(axes, shown.epsilon, shown.delta, shown.baselines)
            else:
                draw_curves(axes, shown.curves, shown.delta)
    return figure


def _headline(shown: Shown, width: int) -> str:
    return fill(f"{shown.title}. Against {shown.loss.observers.words}: {stated(shown.loss, shown.delta)}", width)


# ── as a page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def page(shown: Shown) -> str:
    """One file that holds everything: hover over a party, click it to look through its eyes."""
    graph = shown.network
    edges = np.empty((0, 2), dtype=np.int64) if graph is None else graph.edges()
    scale = shown.scale
    caption, header, rows = shown.table
    observers = shown.loss.observers.parties
    by_distance = graph is not None and bool(observers) and header[0] == "hops away"
    data = {
        "title": shown.title,
        "question": caption,
        "who": shown.loss.observers.words,
        "n": shown.protocol.n,
        "points": None if graph is None else placed(graph).round(4).tolist(),
        "labels": list(graph.labels) if graph is not None and graph.labels else None,
        "edges": edges.tolist() if len(edges) <= MAX_EDGES else [],
        "observers": list(observers),
        "found": list(shown.found),
        "distances": graph.distances(list(observers)).tolist() if graph is not None and observers else None,
        "kinds": [
            {
                "name": name,
                "column": column,
                "epsilon": short(epsilon),
                "heat": None if heat is None else heat.to_dict(),
            }
            for name, column, epsilon, heat in shown.kinds
        ],
        "delta": shown.delta,
        "low": scale.low,
        "high": scale.high,
        "ticks": scale.ticks,
        "baselines": [[name, *short(np.array([value]))] for name, value in scale.baselines],
        "colours": COLOURS,
        "table": [header, rows],
        "byDistance": by_distance,
        "deltas": DELTAS.tolist(),
        "curves": [{"name": name, "epsilon": short(values)} for name, values in shown.curves.items()],
        "claim": shown.loss.claim.meaning,
        "certified": shown.loss.is_certified,
        "assumptions": list(shown.loss.assumptions),
        "references": list(shown.loss.references),
    }
    return rendered("loss.html", data=data)
