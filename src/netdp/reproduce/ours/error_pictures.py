"""How the pages of errors are drawn: curves that coincide are drawn one on top of the other, and at ε = 1 each has its row.

Local DP and the trusted curator are wide pale bands; what runs on a band is as bad, or as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from ..experiment import Series, columns

GREY = "#999999"
# colour, dash, width, mark
LOOKS: dict[str, tuple[str, Any, float, str]] = {
    "local DP": (GREY, "-", 5.0, ""),
    "plain gossip": (PURPLE, "-", 1.2, "s"),
    "refreshed gossip": (RED, (0, (4, 2)), 1.2, "D"),
    "token walk": (BLACK, "-", 1.2, "^"),
    "network shuffle": (SKY, "-", 1.2, ""),
    "trusted curator": (GREEN, "-", 5.0, ""),
    "masked gossip": (ORANGE, "-", 1.4, "o"),
    "masked sum": (BLUE, (0, (3, 2)), 1.4, "v"),
    "curator, Laplace noise": (GREEN, (0, (1, 1.5)), 1.2, ""),
    "bound for any protocol": (BLACK, (0, (1, 2, 4, 2)), 0.8, ""),
}


def look(label: str) -> tuple[str, Any, float, str]:
    return LOOKS[label.split(",")[0] if label.startswith("token") else label]


def curves(series: Sequence[Series], x: str, y: str, limits: tuple[float, float]) -> Callable[[Any, Any], None]:
    """Draws the curves, the legend below them."""

    def draw(_: Any, axes: Any) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        for one in series:
            part, (colour, dash, width, mark) = columns(one), look(one.label)
            band = width > 3
            axes.plot(
                part["x"], part["y"], color=colour, linestyle=dash, linewidth=width, marker=mark or None, label=one.label,
                alpha=0.4 if band else 1.0, markersize=3.5, solid_capstyle="butt", zorder=1 if band else 3,
                markevery=max(1, len(part["x"]) // 5),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.09, 11)
        axes.set_ylim(*limits)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, frameon=False, borderpad=0, handlelength=2.6,
            columnspacing=1.2,
        )  # fmt: skip

    return draw


def rows(table: Sequence[tuple[str, float, float]], x: str) -> Callable[[Any, Any], None]:
    """One row per protocol (name, worst, mean): the worst pair filled, the mean over pairs hollow."""

    def draw(_: Any, axes: Any) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        for place, (name, one, other) in enumerate(table):
            colour = look(name)[0]
            axes.plot([1, one], [place, place], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
            axes.plot(
                other,
                place,
                marker="o",
                color=colour,
                markerfacecolor="white",
                linestyle="none",
                label="mean over pairs" if not place else None,
            )
            axes.plot(
                one,
                place,
                marker="o",
                color=colour,
                linestyle="none",
                label="worst pair" if not place else None,
                zorder=4,
            )
            axes.text(max(one, other) * 1.1, place, f"{one:.3g}", va="center", fontsize=7)
        axes.axvline(1, color=GREEN, linewidth=4, alpha=0.4, zorder=0)
        axes.set_xscale("log")
        axes.set_xlim(0.9, max(one for _, one, _ in table) * 1.9)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_yticks(range(len(table)), [name for name, _, _ in table])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(x)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            handles[::-1],
            labels[::-1],
            loc="upper center",
            bbox_to_anchor=(0.4, -0.22),
            ncols=2,
            frameon=False,
            borderpad=0,
        )

    return draw
