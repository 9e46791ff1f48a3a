"""`plan.plot()`: error against ε of all ways of a plan, between local DP and a trusted curator."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from netdp.numerics.arrays import Progress
from netdp.planning.base import Plan
from netdp.planning.trade_off import Line, baselines, trade_off
from netdp.privacy.readable import readable

from .curves import below, log_axis
from .files import needs_matplotlib, picture_path, write_picture
from .scale import scientific

if TYPE_CHECKING:
    from .figures import Picture

_MARKS = "osD^vPX<>"


def plot_plan(plan: Plan, progress: Progress | None = None) -> Picture:
    """Error against ε: one line for every way, its noise smaller and larger; large marks: what was planned."""
    needs_matplotlib()
    return _drawn(plan, trade_off(plan, progress=progress))


def save_plan(plan: Plan, path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Write the picture of a plan: .png, .svg, .pdf or .html."""
    picture_path(path)  # refuse before the work
    lines = trade_off(plan, progress=progress)
    return write_picture(path, lambda: _drawn(plan, lines), lambda: _page(plan, lines))


def _drawn(plan: Plan, lines: tuple[Line, ...]) -> Picture:
    from .figures import BLUE, COLUMN, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Picture, paper_style

    with paper_style():
        figure = Picture(figsize=(COLUMN * 1.15, 3.2))
        axes = figure.subplots()
        known = [e for line in lines for e in line.epsilon if e > 0] + ([plan.epsilon] if plan.epsilon else [])
        if known:
            grid = np.geomspace(min(known), max(known), 60)
            looks = {"local DP": (RED, (0, (4, 1))), "trusted curator": (GREEN, ":")}
            for name, errors in baselines(plan, grid).items():
                axes.plot(grid, errors, color=looks[name][0], linestyle=looks[name][1], label=name)
        for place, (line, option) in enumerate(zip(lines, plan.options, strict=True)):
            colour, mark = (BLUE, ORANGE, PURPLE, SKY, GREY)[place % 5], _MARKS[place % len(_MARKS)]
            # ways that agree lie on each other, the later ones narrower
            width, label = 1.3 + 0.9 * min(2, len(lines) - 1 - place), f"{option.name} ({option.guarantee.claim.value})"
            axes.plot(line.epsilon, line.rmse, color=colour, label=label, linewidth=width)
            best = option is plan.best
            at = getattr(plan, "promised", None) or plan.worst_epsilon(option)
            axes.plot([at], [option.rmse], marker=mark, color=colour, markersize=8 if best else 5, markeredgecolor="black",
                      markeredgewidth=1.0 if best else 0.4, zorder=4)  # fmt: skip
        if plan.epsilon:
            axes.axvline(plan.epsilon, color="#9aa1ab", linewidth=0.8, zorder=0)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=f"certified ε at δ = {scientific(plan.delta)}",
            ylabel="predicted error (rms)",
        )
        log_axis(axes.xaxis)
        log_axis(axes.yaxis)
        axes.grid()
        below(axes, columns=2)
        axes.set_title(fill(f"{_subject(plan)}; chosen: {plan.best.name}", 66), loc="left")
    return figure


def _subject(plan: Plan) -> str:
    graph = plan.protocol.network
    return f"{plan.protocol.n:,} parties" if graph is None else f"{graph.name}: {graph.n:,} parties"


def _page(plan: Plan, lines: tuple[Line, ...]) -> str:
    from .still import page_around

    header = ["way", "claim", "certified ε", "predicted error", "× curator"]
    rows = [
        [("* " if option is plan.best else "") + option.name, option.guarantee.claim.value, readable(plan.worst_epsilon(option)),
         readable(option.rmse), f"{option.rmse / plan.curator_rmse:.2f}"]
        for option in plan.options
    ]  # fmt: skip
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        rows.append(
            [
                name,
                "",
                "" if plan.epsilon is None else readable(plan.epsilon),
                readable(rmse),
                f"{rmse / plan.curator_rmse:.2f}",
            ]
        )
    asked = "the policy" if plan.epsilon is None else f"ε ≤ {plan.epsilon:g}"
    words = [
        f"Asked: {asked} at δ = {plan.delta:g}; {plan.holds}.",
        f"Chosen (*): {plan.protocol.describe()}.",
        "Lines: the same ways with more and with less noise; at another target a plan would choose anew.",
    ]
    assumed = list(plan.guarantee.assumptions)
    return page_around("A plan: error against ε", _drawn(plan, lines), words, (header, rows), [*plan.notes, *assumed])
