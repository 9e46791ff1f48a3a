"""The network on paper: parties coloured by what is learned about them, observers as stars, names where there are few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray

from .layout import placed
from .scale import NO_BOUND, NOTHING, Scale

NAMED = 40
"""Up to so many parties have their names beside them."""
_VECTORS = 6000  # more lines or dots than this are an image also inside a vector file, which stays small
_LONGEST = 18  # letters of a name
_ROOM = 0.1  # beside the outermost parties, for their names


def draw_network(
    axes: Any,
    graph: Graph,
    losses: FloatArray | None = None,
    scale: Scale | None = None,
    observers: Sequence[int] = (),
    *,
    found: Sequence[int] = (),
    inches: float = 3.6,
) -> None:
    """Draw the graph into the axes, `inches` wide: links, parties with the colours of their losses, observers as stars.

    found   a coalition that is pointed out (hollow stars), while `losses` hold against any of its size
    """
    from matplotlib.collections import LineCollection

    points, edges = placed(graph), graph.edges()
    m, n = len(edges), graph.n
    alpha, width = float(np.clip(9 / max(m, 1) ** 0.5, 0.015, 0.6)), 0.8 if m < 300 else 0.5 if m < 5000 else 0.3
    axes.add_collection(
        LineCollection(
            list(points[edges]), colors="#3c4450", alpha=alpha, linewidths=width, zorder=1, rasterized=m > _VECTORS
        )
    )
    size = float(np.clip((0.3 * 72 * inches / np.sqrt(n)) ** 2, 1.6, 70))
    colours = np.full((n, 4), (0.114, 0.306, 0.537, 1.0)) if losses is None or scale is None else scale.painted(losses)
    looking = np.zeros(n, dtype=bool)
    looking[list(observers)] = True
    order = np.arange(n)[~looking]
    if losses is not None:  # who loses most is drawn last, and is not covered
        order = order[np.argsort(np.nan_to_num(losses[order], nan=-1.0, posinf=np.inf), kind="stable")]
    axes.scatter(
        *points[order].T, s=size, c=colours[order], zorder=2, rasterized=n > _VECTORS,
        edgecolors="#1b1f24", linewidths=0.5 if n <= 300 else 0.25 if n <= 2000 else 0.0,
    )  # fmt: skip
    star = float(np.clip(2.6 * size, 40, 150))
    if looking.any():
        axes.scatter(*points[looking].T, marker="*", c="black", s=star, zorder=4, edgecolors="white", linewidths=0.4)
    if found:
        axes.scatter(
            *points[list(found)].T, marker="*", s=star, zorder=4, facecolors="none", edgecolors="black", linewidths=0.9
        )
    if n <= NAMED and graph.labels is not None:
        _names(axes, graph, points, [*observers, *found], (np.sqrt(size) / 2, np.sqrt(star) / 2), inches)
    span = np.ptp(points, axis=0) / 2
    room = _ROOM if n <= NAMED and graph.labels is not None else 0.04
    axes.set_xlim(0.5 - span[0] - room, 0.5 + span[0] + room)
    axes.set_ylim(0.5 - span[1] - room, 0.5 + span[1] + room)
    axes.set_aspect("equal")
    axes.axis("off")


def legend_entries(losses: FloatArray, observers: Sequence[int], found: Sequence[int] = ()) -> list[Any]:
    """What a legend must explain: stars, nothing at all, no bound."""
    from matplotlib.lines import Line2D

    def mark(label: str, **look: Any) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **look)

    entries = []
    if len(observers):
        entries.append(
            mark("observer" if len(observers) == 1 else "observers, colluding", marker="*", color="black", markersize=8)
        )
    if len(found):
        entries.append(mark("worst coalition found", marker="*", markersize=8, markerfacecolor="none", color="black"))
    if (losses == 0).any():
        entries.append(
            mark("nothing learned (ε = 0)", marker="o", markerfacecolor=NOTHING, color="#1b1f24", markersize=5)
        )
    if np.isposinf(losses).any():
        entries.append(mark("no finite ε", marker="o", color=NO_BOUND, markersize=5))
    return entries


def _names(
    axes: Any, graph: Graph, points: FloatArray, bold: Sequence[int], radii: tuple[float, float], inches: float
) -> None:
    """Names beside the parties: each where it covers the fewest other names, parties and links, of eight places."""
    point = (1 + 2 * _ROOM) / (72 * inches)  # one point of type, in the units of the square
    links = points[graph.edges()].mean(axis=1) if graph.m else np.empty((0, 2))
    boxes: list[tuple[float, float, float, float]] = []
    for u in np.argsort(-graph.degrees, kind="stable").tolist():
        name = shortened(graph.labels[u] if graph.labels is not None else str(u))
        wide, high = (5.2 if u in bold else 4.6) * len(name) * point, 8 * point
        best, least, radius = None, np.inf, radii[u in bold]
        for turn in range(8):
            angle = turn * np.pi / 4
            away = (radius + 2.5) * point * np.array([np.cos(angle), np.sin(angle)])
            middle = (
                points[u] + away + 0.5 * np.array([wide * np.sign(np.round(np.cos(angle), 6)), high * np.sin(angle)])
            )
            box = (middle[0] - wide / 2, middle[1] - high / 2, middle[0] + wide / 2, middle[1] + high / 2)
            cost = sum(_overlap(box, other) for other in boxes) / (wide * high) * 4
            inside = (np.abs(points - middle) < np.array([wide, high]) / 2 + radius * point).all(axis=1)
            inside[u] = False
            cost += 2.0 * inside.sum() + 0.2 * (np.abs(links - middle) < np.array([wide, high]) / 2).all(axis=1).sum()
            cost += 0.5 * max(0.0, -box[0] - 0.06, box[2] - 1.06) / point + 0.01 * turn
            if cost < least:
                best, least = box, cost
        assert best is not None
        boxes.append(best)
        axes.text(
            (best[0] + best[2]) / 2, (best[1] + best[3]) / 2, name, ha="center", va="center", fontsize=7, zorder=5,
            fontweight="bold" if u in bold else "normal",
        )  # fmt: skip


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """The area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def shortened(name: str, most: int = _LONGEST) -> str:
    """A name that fits beside a dot.

    >>> shortened("Sankt Georg Spital am Rhein")
    'Sankt Georg Spita…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"
