"""Panels to pictures: one look for all of them, sized for a column of a paper, told apart without colour.

Colours are those of Okabe and Ito (2008), which people with colour-blind eyes can tell apart; every kind of curve has its
own dash and mark as well, so that a black-and-white print can still be read. A curve that another one covers is drawn as a
wide pale band under it, so that two results that agree are seen to agree. Panels that show the same curves share one legend.
PDF for print (vectors, fonts embedded), SVG to work on, PNG for screens; the page (`page`) is the fourth.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.papers.experiment import FigureKind, Panel, Result, Series, columns
from netdp.report.style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, needs_matplotlib, plain

if TYPE_CHECKING:
    from netdp.report.figures import Picture

BLACK = "#000000"

OTHERS = (PURPLE, SKY, BLUE, GREEN, ORANGE, RED, BLACK)

# A column of a two-column paper and the whole of its page, in inches, and the height of one panel.
WIDTH, PAGE, HEIGHT, _LEGEND_LINE = 3.5, 7.0, 2.4, 0.16

_DASHES = {
    FigureKind.PUBLISHED: "--",
    FigureKind.CERTIFIED: "-",
    FigureKind.LOCAL: ":",
    FigureKind.CENTRAL: "-.",
    FigureKind.MEASURED: "-",
    FigureKind.OTHER: "-",
}

_COLOURS = {
    FigureKind.PUBLISHED: RED,
    FigureKind.CERTIFIED: BLUE,
    FigureKind.LOCAL: BLACK,
    FigureKind.CENTRAL: GREEN,
    FigureKind.MEASURED: ORANGE,
}

# the same ways to learn are the same colours, published or certified
_SETTINGS = {"local": BLACK, "network": BLUE, "central": GREEN}

_MARKS = "osD^vPX<>*"

_STYLE: Any = {  # a dictionary; matplotlib types its keys
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
    "svg.hashsalt": "netdp",
    "figure.dpi": 100,
}

_LEGEND: dict[str, Any] = {"frameon": False, "borderpad": 0, "handlelength": 2.4, "columnspacing": 1.2}

COLOURS_OF_LOSS = "viridis_r"
"""Dark where much is lost; the map keeps its order in black and white."""


def colours(panel: Panel) -> list[str]:
    """One colour per curve: its kind's for the first of that kind, else one after the other.

    Curves of one setting, "k = 4: published" and "k = 4: certified", share a colour and differ by their dash.
    """
    settings = {series.label.split(":")[0] for series in panel.series if ":" in series.label}
    paired = {series.kind for series in panel.series if ":" in series.label}
    first: dict[FigureKind, int] = {}
    for place, series in enumerate(panel.series):
        if series.kind in _COLOURS and series.kind not in paired:
            first.setdefault(series.kind, place)
    fixed = {_SETTINGS[setting] for setting in settings if setting in _SETTINGS}
    free = [colour for colour in OTHERS if colour not in {_COLOURS[kind] for kind in first} | fixed]
    out, same = [], {name: _SETTINGS[name] for name in settings if name in _SETTINGS}
    used = 0
    for place, series in enumerate(panel.series):
        if first.get(series.kind) == place:
            out.append(_COLOURS[series.kind])
            continue
        setting = series.label.split(":")[0]
        if setting not in same:
            same[setting] = free[used % len(free)]
            used += 1
        out.append(same[setting])
    return out


KINDS = ("pdf", "svg", "png")
"""Each figure is written as all of these."""


def pictures(result: Result, title: str) -> dict[str, bytes]:
    """The panels of a result as a PDF, an SVG and a PNG; empty if it has none."""
    if not result.panels:
        return {}
    needs_matplotlib()
    figure = drawn(result)
    return {kind: figure.rendered(kind, 200, title) for kind in KINDS}


def drawn(result: Result) -> Picture:
    """The panels of a result as one figure, which notebooks show."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        figure = _figure(result.panels, min(result.columns, len(result.panels)))
        if result.missing:
            _say_missing(figure, result.missing)
        return figure


def _say_missing(figure: Any, missing: Sequence[str]) -> None:
    """What should be in the picture and is not, above it, so that the picture alone says so."""
    width, height = figure.get_size_inches()
    size = _STYLE["legend.fontsize"]
    letters = int(72 * (width - 0.2) / (0.55 * size))
    lines = textwrap.wrap(f"Not in this picture: {'; '.join(missing)}.", letters)
    figure.set_size_inches(width, height + 0.06 + 1.4 * size / 72 * len(lines))
    figure.suptitle("\n".join(lines), fontsize=size, x=0.01, ha="left")


@dataclass(frozen=True)
class _Look:
    """Colour and mark of a curve, by its name."""

    colour: str
    mark: str


def _looks(panel: Panel) -> dict[str, _Look]:
    return {
        series.label: _Look(colour, _MARKS[place % len(_MARKS)])
        for place, (series, colour) in enumerate(zip(panel.series, colours(panel), strict=True))
    }


def shared_legend(panels: Sequence[Panel]) -> Panel | None:
    """The panel whose legend can stand for all of them: the others show no curve that it does not have."""
    if len(panels) < 2 or any(panel.draw is not None for panel in panels):
        return None
    largest = max(panels, key=lambda panel: len(panel.series))
    names = {series.label for series in largest.series}
    every = all({series.label for series in panel.series} <= names for panel in panels)
    bands = {panel.band for panel in panels if panel.band}
    return largest if every and len(bands) <= 1 else None


def _figure(panels: Sequence[Panel], wide: int) -> Picture:
    from netdp.report.figures import Picture

    high = math.ceil(len(panels) / wide)
    width = WIDTH if wide == 1 else PAGE
    each = width / wide
    shared = shared_legend(panels)
    # the legend stands below the axes, where it hides no curve
    if shared is None:
        legend = max(_LEGEND_LINE * math.ceil(_entries(panel) / _in_a_row(panel, each)) for panel in panels) * high
    else:
        legend = _LEGEND_LINE * (1 + math.ceil(_entries(shared) / _in_a_row(shared, width)))
    # networks are drawn in squares
    tall = each if all(panel.scale is not None for panel in panels) else HEIGHT * min(1.0, 0.35 + each / WIDTH)
    size = (width, min(tall, HEIGHT + 0.3) * high + legend)
    figure = Picture(figsize=size, look=_STYLE)
    axes = figure.subplots(high, wide, squeeze=False)
    looks = None if shared is None else _looks(shared)
    for place, panel in enumerate(panels):
        column = place % wide
        beside = panels[place - 1] if column else None
        again = beside is not None and beside.y == panel.y and panel.draw is None  # said once in a row
        draw(figure, axes.flat[place], panel, width=each, looks=looks, label_y=not again)
    for place in axes.flat[len(panels) :]:
        place.set_visible(False)
    if shared is not None:
        handles: dict[str, Any] = {}
        for place in axes.flat[: len(panels)]:
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        band = next((panel.band for panel in panels if panel.band), "")
        named = [series.label for series in shared.series] + ([band] if band else [])
        figure.legend(
            [handles[label] for label in named],
            named,
            loc="outside lower center",
            ncols=_in_a_row(shared, width),
            **_LEGEND,
        )
    _colour_bar(figure, axes, panels)
    return figure


def _colour_bar(figure: Any, axes: Any, panels: Sequence[Panel]) -> None:
    """One bar for all panels whose dots are coloured."""
    scales = {panel.scale for panel in panels if panel.scale is not None}
    if not scales:
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    ((least, most, what),) = scales  # the panels of one figure are coloured alike
    shown = list(axes.flat[: len(panels)])
    bar = figure.colorbar(
        ScalarMappable(LogNorm(least, most), COLOURS_OF_LOSS), ax=shown, shrink=0.8, pad=0.01, aspect=30
    )
    bar.set_label(what)


def draw(
    figure: Any,
    axes: Any,
    panel: Panel,
    *,
    width: float = WIDTH,
    looks: dict[str, _Look] | None = None,
    label_y: bool = True,
) -> None:
    """One panel on its axes, so many inches wide; `looks` if the legend is drawn once for several panels."""
    axes.set_title(panel.title)
    if panel.draw is not None:
        panel.draw(figure, axes)
        return
    look = _looks(panel) if looks is None else looks
    over = covered(panel)
    for place, series in enumerate(panel.series):
        part = columns(series)
        colour, mark = look[series.label].colour, look[series.label].mark
        few = len(part["x"]) <= 30 and not over[place]
        small = {"markersize": 1.5, "alpha": 0.5, "rasterized": True} if _crowded(series) else {}
        band = {"linewidth": 1.3 + 1.8 * over[place], "alpha": 0.45, "linestyle": "-"} if over[place] else {}
        look_of = {"linestyle": "none" if series.points else _DASHES[series.kind], **small, **band}
        axes.plot(
            part["x"], part["y"], color=colour, marker=mark if few or series.points else None, label=series.label, **look_of
        )  # fmt: skip
        if series.low is not None or series.high is not None:
            low = np.where(np.isnan(part["low"]), part["y"], part["low"])
            high = np.where(np.isnan(part["high"]), part["y"], part["high"])
            axes.fill_between(part["x"], low, high, color=colour, alpha=0.15, linewidth=0)
    if panel.band:
        axes.fill_between([], [], [], color="#777777", alpha=0.25, linewidth=0, label=panel.band)
    if panel.limits is not None:
        if panel.log_y:
            axes.set_yscale("log")
        axes.set_ylim(*panel.limits)
    for wanted, name, axis in ((panel.log_x, "x", axes.xaxis), (panel.log_y, "y", axes.yaxis)):
        if wanted:
            getattr(axes, f"set_{name}scale")("log")
            _log_ticks(axis, narrow=name == "x" and width < 3)
        else:
            whole = name == "x" and all(float(x).is_integer() for s in panel.series for x in columns(s)["x"])
            _even_ticks(axis, most=5 if name == "x" and width < 3 else 7, whole=whole)
    axes.set_xlabel(panel.x)
    if label_y:
        axes.set_ylabel(panel.y)
    if panel.series and looks is None:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.22 * HEIGHT / max(HEIGHT * min(1.0, 0.35 + width / WIDTH), 1.0)),
            ncols=_in_a_row(panel, width),
            markerscale=2.0 if any(_crowded(series) for series in panel.series) else 1.0,
            **_LEGEND,
        )


def _crowded(series: Series) -> bool:
    """Many small marks, as an image also in the PDF."""
    return series.points and len(columns(series)["x"]) > 100


def covered(panel: Panel) -> list[int]:
    """For every curve: how many later ones run along it, to a hundredth of the panel's height, for nearly all of it."""
    parts = [columns(series) for series in panel.series]
    heights = [np.log10(np.maximum(part["y"], 1e-300)) if panel.log_y else part["y"] for part in parts]
    shown = np.concatenate([height[np.isfinite(height)] for height in heights]) if heights else np.zeros(0)
    for end, limit in zip(panel.limits or (), (np.maximum, np.minimum), strict=False):
        if end is not None:
            shown = limit(shown, math.log10(max(end, 1e-300)) if panel.log_y else end)
    room = 0.015 * float(np.ptp(shown)) if len(shown) else 0.0
    out = []
    for place, part in enumerate(parts):
        count = 0
        for later in range(place + 1, len(parts)):
            if panel.series[place].points or panel.series[later].points or len(parts[later]["x"]) < 3:
                continue
            both, mine, theirs = np.intersect1d(part["x"], parts[later]["x"], return_indices=True)
            close = np.abs(heights[place][mine] - heights[later][theirs]) <= room
            count += len(both) >= 0.9 * len(part["x"]) and len(both) > 2 and bool(close.mean() >= 0.9)
        out.append(count)
    return out


def _log_ticks(axis: Any, *, narrow: bool) -> None:
    """0.3, 1, 3, 10 instead of powers, as far as such numbers are short; all labels large enough to read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if low > 0 else 9.0
    if narrow:
        decades *= 1.5
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 3.2 else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
    if decades > 4:
        axis.set_minor_locator(NullLocator())
    if low > 9e-5 and high < 2e5:
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def _even_ticks(axis: Any, *, most: int, whole: bool) -> None:
    """Few round numbers, whole ones where only whole numbers have a meaning."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = axis.get_view_interval()
    steps = [1, 2, 3, 4, 5, 10] if whole and high - low < 30 else [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(most, steps=steps, integer=whole))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def _entries(panel: Panel) -> int:
    """How many names the legend has."""
    return len(panel.series) + bool(panel.band)


def _in_a_row(panel: Panel, width: float) -> int:
    """How many names of curves stand beside each other in so many inches; letters are about half as wide as high."""
    longest = max((len(name) for name in (*(series.label for series in panel.series), panel.band)), default=0)
    points = 0.53 * _STYLE["legend.fontsize"] * longest + 4.8 * _STYLE["legend.fontsize"]
    return max(1, min(_entries(panel), int(72 * (width - 0.1) / points)))
