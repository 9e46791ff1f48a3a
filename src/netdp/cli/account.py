"""`netdp account`: what do these observers learn about everybody else?"""

from __future__ import annotations

import json as json_
from pathlib import Path

import typer


def account(
    graph: str | None = typer.Argument(
        None, help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`."
    ),
    rounds: int | None = typer.Option(None, "--rounds", "-T", help="How many times everybody sends."),
    sigma: float | None = typer.Option(None, "--sigma", help="Standard deviation of each party's noise."),
    refresh: float | None = typer.Option(None, "--refresh", help="Fresh noise, r·σ²/rounds before every later send."),
    masks: float | None = typer.Option(None, "--masks", help="κ: every edge shares a secret mask N(0, κσ²)."),
    accelerated: bool | None = typer.Option(None, "--accelerated/--plain", help="Chebyshev acceleration."),
    sensitivity: float | None = typer.Option(
        None, "--sensitivity", help="Largest distance between two values of a party."
    ),
    mixing: str | None = typer.Option(
        None, "--mixing", help="metropolis, maximum-degree, lazy-metropolis, lazy-maximum-degree."
    ),
    observer: list[str] | None = typer.Option(
        None, "--observer", "-o", help="Who looks; repeat it for colluding parties."
    ),
    delta: float | None = typer.Option(None, "--delta", help="δ of the printed ε(δ); 1e-6 by default."),
    config: Path | None = typer.Option(None, "--config", "-c", help="TOML file with the same names as the flags."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the network and the pairwise heat map: out.png or out.html."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Tell what the observers can learn about every other party, before anything is sent.

    The table shows, by distance: the published formula (not a bound), the exact loss of plain gossip, the exact loss with
    the chosen refresh and masks, local DP and a trusted curator.
    """
    from netdp import graphs
    from netdp.protocols import Gossip
    from netdp.report import save_picture, summarise, summary_table

    from .progress import progress_bar
    from .settings import account_settings, parties

    flags = {
        "graph": graph, "rounds": rounds, "sigma": sigma, "refresh": refresh, "masks": masks, "accelerated": accelerated,
        "sensitivity": sensitivity, "mixing": mixing, "observers": observer, "delta": delta,
    }  # fmt: skip
    settings = account_settings(config, flags)
    protocol = Gossip(
        graphs.parse(settings.graph or ""),
        rounds=settings.rounds,  # type: ignore[arg-type]
        sigma=settings.sigma,  # type: ignore[arg-type]
        refresh=settings.refresh,
        masks=settings.masks,
        accelerated=settings.accelerated,
        sensitivity=settings.sensitivity,
        mixing=settings.mixing,
    )
    with progress_bar("accounting") as progress:
        summary = summarise(protocol, parties(protocol.graph, settings.observers), settings.delta, progress)
    drawn = None
    if plot is not None:
        with progress_bar("all pairs") as progress:
            drawn = save_picture(summary, plot, progress)
    if json:
        print(json_.dumps({**summary.to_dict(), "plot": str(drawn) if drawn else None}, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(summary_table(summary))
    if drawn is not None:
        console.print(f"picture: {drawn}")
