"""How values show themselves: the one deliberate seam by which lower rooms reach the room that draws.

`loss.plot()`, `graph.plot()`, `plan.to_frame()` and what a notebook shows of them are methods of values that live in low rooms;
drawing and writing for people live in `netdp.report`, high above. Imports never climb, so such a method asks `shown` for its
function by name. The table below is all there is; a function is loaded when somebody first looks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

SHOWN = {
    "Graph.plot": "netdp.report.notebook:plot_graph",
    "Graph.html": "netdp.report.notebook:graph_card",
    "Guarantee.plot": "netdp.report.notebook:plot_loss",
    "Guarantee.to_frame": "netdp.report.notebook:loss_frame",
    "Guarantee.html": "netdp.report.notebook:loss_card",
    "Plan.plot": "netdp.report.plans:plot_plan",
    "Plan.to_frame": "netdp.report.notebook:plan_frame",
    "Plan.html": "netdp.report.notebook:plan_card",
    "Study.html": "netdp.report.study:summary_html",
}
"""Who shows what, and where that is written: "module:function"."""


def shown(name: str) -> Callable[..., Any]:
    """The function that shows something, loaded on first use.

    >>> shown("Graph.plot").__name__
    'plot_graph'
    """
    module, _, function = SHOWN[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
