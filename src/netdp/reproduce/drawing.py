"""Panels to pictures: one look for all of them, sized for a column of a paper, told apart without colour.

Colours are those of Okabe and Ito (2008), which people with colour-blind eyes can tell apart; every kind of curve has its
own dash and mark as well, so that a black-and-white print can still be read. PDF for print (vectors, fonts embedded), PNG
for screens.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from netdp.report.files import matplotlib

from .experiment import Kind, Panel, Result, columns

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#000000"
OTHERS = (PURPLE, SKY, BLUE, GREEN, ORANGE, RED, BLACK)
# A column of a two-column paper, in inches, and the height of one panel in it.
WIDTH, HEIGHT, _LEGEND_LINE = 3.5, 2.4, 0.16
_DASHES = {
    Kind.PUBLISHED: "--",
    Kind.CERTIFIED: "-",
    Kind.LOCAL: ":",
    Kind.CENTRAL: "-.",
    Kind.MEASURED: "-",
    Kind.OTHER: "-",
}
_COLOURS = {
    Kind.PUBLISHED: RED,
    Kind.CERTIFIED: BLUE,
    Kind.LOCAL: BLACK,
    Kind.CENTRAL: GREEN,
    Kind.MEASURED: ORANGE,
}
_MARKS = "osD^vPX<>*"
_STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "pdf.fonttype": 42,  # fonts that editors of journals accept
    "svg.fonttype": "none",
    "figure.dpi": 100,
    "savefig.dpi": 200,
}


def colours(panel: Panel) -> list[str]:
    """One colour per curve: its kind's where the kind occurs once in the panel, else one after the other."""
    kinds = [series.kind for series in panel.series]
    alone = {kind for kind in kinds if kinds.count(kind) == 1 and kind in _COLOURS}
    free = [colour for colour in OTHERS if colour not in {_COLOURS[kind] for kind in alone}]
    out, used = [], 0
    same: dict[str, str] = {}  # published and certified curves of one setting share its colour
    for series in panel.series:
        if series.kind in alone:
            out.append(_COLOURS[series.kind])
            continue
        setting = series.label.split(":")[0]
        if setting not in same:
            same[setting] = free[used % len(free)]
            used += 1
        out.append(same[setting])
    return out


def pictures(result: Result, title: str) -> dict[str, bytes]:
    """The panels of a result as a PDF and a PNG; empty if it has none."""
    if not result.panels:
        return {}
    plt = matplotlib()
    with plt.rc_context(_STYLE):
        figure = _figure(plt, result.panels, min(result.columns, len(result.panels)))
        out = {}
        for kind in ("pdf", "png"):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata=_metadata(kind, title))
            out[kind] = buffer.getvalue()
        plt.close(figure)
    return out


def _metadata(kind: str, title: str) -> dict[str, Any]:
    """No date and no machine in the file: the same run writes the same bytes."""
    return (
        {"Title": title, "Creator": "netdp", "CreationDate": None}
        if kind == "pdf"
        else {"Title": title, "Software": None}
    )


def _figure(plt: Any, panels: Sequence[Panel], wide: int) -> Any:
    high = math.ceil(len(panels) / wide)
    # the legend stands below the axes, where it hides no curve
    legend = max(_LEGEND_LINE * math.ceil(len(panel.series) / _in_a_row(panel)) for panel in panels)
    size = (WIDTH * wide, (HEIGHT + legend) * high)
    figure, axes = plt.subplots(high, wide, figsize=size, squeeze=False, layout="constrained")
    for panel, place in zip(panels, axes.flat, strict=False):
        draw(figure, place, panel)
    for place in axes.flat[len(panels) :]:
        place.set_visible(False)
    return figure


def draw(figure: Any, axes: Any, panel: Panel) -> None:
    """One panel on its axes."""
    axes.set_title(panel.title)
    if panel.draw is not None:
        panel.draw(figure, axes)
        return
    for place, (series, colour) in enumerate(zip(panel.series, colours(panel), strict=True)):
        part = columns(series)
        few = len(part["x"]) <= 30
        mark = _MARKS[place % len(_MARKS)] if few or series.points else None
        line = "none" if series.points else _DASHES[series.kind]
        crowd = len(part["x"]) > 200 and series.points  # many small marks, as an image also in the PDF
        small = {"markersize": 1.5, "alpha": 0.5, "rasterized": True} if crowd else {}
        axes.plot(part["x"], part["y"], linestyle=line, color=colour, marker=mark, label=series.label, **small)
        if series.low is not None or series.high is not None:
            low = np.where(np.isnan(part["low"]), part["y"], part["low"])
            high = np.where(np.isnan(part["high"]), part["y"], part["high"])
            axes.fill_between(part["x"], low, high, color=colour, alpha=0.15, linewidth=0)
    if panel.limits is not None:
        if panel.log_y:
            axes.set_yscale("log")
        axes.set_ylim(*panel.limits)
    for wanted, name, axis in ((panel.log_x, "x", axes.xaxis), (panel.log_y, "y", axes.yaxis)):
        if wanted:
            getattr(axes, f"set_{name}scale")("log")
            _plain_ticks(axis)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.series:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.22),
            ncols=_in_a_row(panel),
            frameon=False,
            borderpad=0,
            handlelength=2.4,
            columnspacing=1.2,
        )


def _plain_ticks(axis: Any) -> None:
    """0.3, 1, 3, 10 instead of powers, as far as such numbers are short; all labels large enough to read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if low > 0 else 9.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.5 else (1.0, 3.0) if decades < 3 else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
    if low > 5e-4 and high < 2e5:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _in_a_row(panel: Panel) -> int:
    """How many names of curves stand beside each other."""
    longest = max((len(series.label) for series in panel.series), default=0)
    return 3 if longest <= 12 else 2 if longest <= 24 else 1
