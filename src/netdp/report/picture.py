"""The picture: the network coloured by what the observers learn, and the pairwise heat map; as PNG or one HTML file."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.accounting import pairwise, who_learns_most
from netdp.accounting.gossip.exact import expected_seconds
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.rounding import rounded_up
from netdp.privacy.readable import readable
from netdp.protocols import Gossip

from .files import matplotlib, picture_path, write_whole
from .layout import positions
from .summary import Summary

# All pairs are computed up to here, if that takes at most so many seconds; otherwise the heat map shows evenly spaced observers
# and parties, as many as the seconds suffice for, but no fewer than `FEWEST`. Observers of whom a single one would take a third of
# the time are left out of the sample.
MAX_FULL = 512
SAMPLE, FEWEST = 96, 12
SECONDS = 3.0
# On small graphs the estimate of the seconds is cautious: overheads aside, all pairs are quicker by about this.
SLOWER_TOGETHER = 6.0
# More edges than this only blacken the picture.
MAX_EDGES = 12_000
# From "hardly anything" to "as much as local DP".
COLOURS = ("#1d4e89", "#5fa8d3", "#f4ead5", "#ee9b6b", "#b3242a")


@dataclass(frozen=True, eq=False)
class Heat:
    """ε [u, v] for the parties and observers shown."""

    parties: npt.NDArray[np.int64]
    epsilon: FloatArray
    complete: bool
    links: int | None = None  # observers with more links than this were left out; None: nobody was

    def to_dict(self) -> dict[str, Any]:
        return {
            "parties": self.parties.tolist(),
            "complete": self.complete,
            "epsilon": [_short(row) for row in self.epsilon],
        }


def save_picture(summary: Summary, path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Write the picture to a .png or .html file; the file appears whole or not at all."""
    target = picture_path(path, (".png", ".html"))
    heat = heat_map(summary.protocol, summary.delta, progress)
    png = target.suffix.lower() == ".png"
    write_whole(target, _png(summary, heat) if png else _html(summary, heat, progress).encode())
    return target


def heat_map(protocol: Gossip, delta: float, progress: Progress | None = None) -> Heat:
    """What each party alone learns about each other: in full where that is quick, else for a sample."""
    n = protocol.graph.n
    seconds = expected_seconds(protocol, protocol.graph.degrees)
    if n <= MAX_FULL and seconds.sum() <= SECONDS * SLOWER_TOGETHER:
        return Heat(np.arange(n), np.asarray(pairwise(protocol, progress=progress).epsilon(delta)), True)
    shown, links = _sample(seconds, protocol.graph.degrees)
    names = [protocol.graph.label(v) for v in shown.tolist()]
    rows = who_learns_most(protocol, delta, names, progress=progress).epsilons
    return Heat(shown, rows[:, shown].T, False, links)


def _sample(seconds: FloatArray, degrees: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int | None]:
    """Evenly spaced parties who take at most `SECONDS` together, and the most links among them if that leaves anybody out.

    >>> _sample(np.array([1.0, 1.0, 90.0, 1.0]), np.array([2, 2, 50, 2]))[1]
    2
    """
    quick = np.flatnonzero(seconds <= max(SECONDS / 3, seconds.min()))
    count = min(SAMPLE, len(quick))
    while True:
        shown = quick[np.unique(np.linspace(0, len(quick) - 1, count).astype(np.int64))]
        if count <= FEWEST or seconds[shown].sum() <= SECONDS:
            break
        count = max(FEWEST, count * 3 // 4)
    return shown, int(degrees[quick].max()) if len(quick) < len(seconds) else None


def scale(summary: Summary) -> tuple[float, float]:
    """The ends of the logarithmic colour scale: below the trusted curator's ε, and local DP's."""
    high = summary.local_epsilon if math.isfinite(summary.local_epsilon) and summary.local_epsilon > 0 else 1.0
    low = summary.curator_epsilon if summary.curator_epsilon > 0 else high / 100
    return min(low, high / 3), high


def _png(summary: Summary, heat: Heat) -> bytes:
    import io

    plt = matplotlib()
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    graph = summary.protocol.graph
    points = positions(graph, summary.observers)
    low, high = scale(summary)
    colours = LinearSegmentedColormap.from_list("netdp", COLOURS).with_extremes(bad="#9a9a9a")
    norm = LogNorm(low, high, clip=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13.5, 6.2), width_ratios=(1, 1.08), layout="constrained")
    figure.suptitle(_headline(summary), fontsize=12)
    edges = graph.edges()
    if len(edges) <= MAX_EDGES:
        left.add_collection(LineCollection(list(points[edges]), colors="#00000022", linewidths=0.6, zorder=1))
    epsilon = np.asarray(summary.chosen.epsilon(summary.delta))
    hidden = ~np.isnan(epsilon)
    size = float(np.clip(9000 / graph.n, 3, 160))
    left.scatter(
        *points[hidden].T, c=np.maximum(epsilon[hidden], low), cmap=colours, norm=norm, s=size, zorder=2,
        edgecolors="#00000055", linewidths=0.3 if graph.n < 2000 else 0,
    )  # fmt: skip
    left.scatter(*points[~hidden].T, marker="*", c="black", s=max(size * 2.2, 90), zorder=3, label="observer")
    left.set_title("What the observer (★) learns about each party" if len(summary.observers) == 1 else
                   f"What {len(summary.observers)} colluding observers (★) learn about each party", fontsize=10)  # fmt: skip
    left.set_aspect("equal")
    left.axis("off")
    image = right.imshow(np.maximum(heat.epsilon, low), cmap=colours, norm=norm, interpolation="nearest")
    sample = "a sample" if heat.links is None else f"a sample of those with at most {heat.links:,} links"
    right.set_xlabel("observer v" if heat.complete else f"observer v ({sample})")
    right.set_ylabel("party u")
    right.set_title(
        "What v alone learns about u, all pairs" if heat.complete else "What v alone learns about u",
        fontsize=10,
    )
    bar = figure.colorbar(image, ax=right)
    bar.ax.set_title(f"ε at δ = {summary.delta:g}", fontsize=9, loc="left")
    end = "≤ {} trusted curator" if low == summary.curator_epsilon else "≤ {}"
    bar.ax.set_yticks([low, high], labels=[end.format(readable(low)), f"{readable(high)} local DP"])
    bar.ax.minorticks_off()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    return buffer.getvalue()


def _html(summary: Summary, heat: Heat, progress: Progress | None = None) -> str:
    graph = summary.protocol.graph
    kinds = [
        {
            "name": "as chosen",
            "column": f"{summary.chosen.claim.value}, as chosen" if summary.has_extras else "exact, plain gossip",
            "epsilon": _short(np.asarray(summary.chosen.epsilon(summary.delta))),
            "heat": heat.to_dict(),
        }
    ]
    if summary.has_extras:
        plain = heat_map(summary.plain_protocol, summary.delta, progress)
        epsilon = _short(np.asarray(summary.plain.epsilon(summary.delta)))
        kinds.append(
            {"name": "plain gossip", "column": "exact, plain gossip", "epsilon": epsilon, "heat": plain.to_dict()}
        )
    low, high = scale(summary)
    edges = graph.edges()
    data = {
        "title": _headline(summary),
        "n": graph.n,
        "points": positions(graph, summary.observers).round(4).tolist(),
        "labels": list(graph.labels) if graph.labels else None,
        "edges": edges.tolist() if len(edges) <= MAX_EDGES else [],
        "observers": list(summary.observers),
        "distances": summary.distances.tolist(),
        "kinds": kinds,
        "delta": summary.delta,
        "low": low,
        "high": high,
        "local": summary.local_epsilon,
        "curator": summary.curator_epsilon,
        "colours": COLOURS,
        "table": summary.table(),
        "assumptions": list(summary.chosen.assumptions),
    }
    # "</" inside a script would end it: labels come from files.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    template = resources.files("netdp.report").joinpath("page.html").read_text("utf-8")
    return template.replace("/*DATA*/null", text)


def _headline(summary: Summary) -> str:
    protocol, graph = summary.protocol, summary.protocol.graph
    kind = [
        name
        for name, on in (
            ("masked", protocol.masks),
            ("refreshed", protocol.refresh),
            ("accelerated", protocol.accelerated),
        )
        if on
    ]
    how = f"{', '.join(kind) or 'plain'} gossip, {protocol.rounds} rounds"
    return (
        f"{graph.name}, {graph.n:,} parties: {how}; local DP ε = {readable(summary.local_epsilon)}, "
        f"trusted curator ε = {readable(summary.curator_epsilon)}"
    )


def _short(row: FloatArray) -> list[float | None]:
    """Five digits, rounded up, are enough for a page, which rounds up to three; JSON has neither nan nor inf."""
    return [None if math.isnan(x) else rounded_up(min(x, 1e300), 5) for x in row.tolist()]
