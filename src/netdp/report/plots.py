"""`loss.plot()` and `graph.plot()`: pictures of values, for notebooks and papers."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive
from netdp.privacy import Guarantee

from .curves import curves_of, draw_curves, draw_losses, stated
from .files import needs_matplotlib
from .heat import Heat, draw_heat
from .network import draw_network, legend_entries
from .scale import Scale

if TYPE_CHECKING:
    from .figures import Picture


def plot_graph(graph: Graph) -> Picture:
    """The graph with its links, and its names where there are few."""
    needs_matplotlib()
    from .figures import COLUMN, Picture, paper_style

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
    return _in_order(loss, epsilon, delta) if drawn == "order" else _curve(loss, delta)


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
    from .figures import Picture, paper_style

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
    from .figures import Picture, paper_style

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


def _in_order(loss: Guarantee, epsilon: np.ndarray, delta: float) -> Picture:
    from .figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, 2.5))
        axes = figure.subplots()
        draw_losses(axes, epsilon, delta, {})
        axes.set_title(_title(loss, delta, 60), loc="left")
    return figure


def _curve(loss: Guarantee, delta: float) -> Picture:
    from .figures import COLUMN, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN, 2.6))
        axes = figure.subplots()
        draw_curves(axes, curves_of(loss, {}), delta)
        axes.set_title(_title(loss, delta, 60), loc="left")
    return figure
