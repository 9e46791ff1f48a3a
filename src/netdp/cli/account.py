"""`netdp account`: what do these observers learn about everybody else?"""

from __future__ import annotations

import json as json_
from pathlib import Path

import typer


def account(
    graph: str | None = typer.Argument(
        None, help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`."
    ),
    protocol: str | None = typer.Option(
        None, "--protocol", "-p", help="gossip (the default), token (ring:N, complete:N or any graph) or shuffle."
    ),
    rounds: int | None = typer.Option(
        None, "--rounds", "-T", help="How many times everybody sends; rounds of a token on a ring; hops of a report."
    ),
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
    steps: int | None = typer.Option(None, "--steps", help="token: the length of its walk."),
    sender: str | None = typer.Option(
        None, "--sender", help="token on complete:N: is the sender hidden from the receiver, or known?"
    ),
    noise: str | None = typer.Option(None, "--noise", help="token on a ring: single or distributed."),
    closing: bool | None = typer.Option(
        None, "--closing/--no-closing", help="token: noise before the release, or none."
    ),
    epsilon0: float | None = typer.Option(None, "--epsilon0", help="shuffle: the local-DP loss of a report."),
    reporting: str | None = typer.Option(None, "--reporting", help="shuffle: all or single."),
    laziness: float | None = typer.Option(None, "--laziness", help="shuffle: probability that a report stays."),
    observer: list[str] | None = typer.Option(
        None,
        "--observer",
        "-o",
        help="Who looks; repeat it for colluding parties. shuffle: the curator, and users who collude with it.",
    ),
    delta: float | None = typer.Option(None, "--delta", help="δ of the printed ε(δ); 1e-6 by default."),
    config: Path | None = typer.Option(None, "--config", "-c", help="TOML file with the same names as the flags."),
    plot: Path | None = typer.Option(
        None,
        "--plot",
        help="Draw the network and the pairwise heat map: out.png or out.html. Tokens, shuffling: ε against δ, .png or .svg.",
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Tell what the observers can learn about every other party, before anything is sent.

    For gossip the table shows, by distance: the published formula (not a bound), the exact loss of plain gossip, the exact
    loss with the chosen refresh and masks, local DP and a trusted curator. For tokens and shuffling it shows the certified
    loss beside the paper's formula, local DP and a trusted curator (or shuffler).
    """
    from netdp import graphs
    from netdp.protocols import Gossip
    from netdp.report import save_picture, summarise, summary_table

    from .progress import progress_bar
    from .settings import account_settings, parties

    flags = {
        "graph": graph, "rounds": rounds, "sigma": sigma, "refresh": refresh, "masks": masks, "accelerated": accelerated,
        "sensitivity": sensitivity, "mixing": mixing, "observers": observer, "delta": delta, "protocol": protocol,
        "steps": steps, "sender": sender, "noise": noise, "closing": closing, "epsilon0": epsilon0,
        "reporting": reporting, "laziness": laziness,
    }  # fmt: skip
    settings = account_settings(config, flags)
    if settings.protocol != "gossip":
        from .walkers import account_walkers

        account_walkers(settings, plot, json)
        return
    chosen = Gossip(
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
        summary = summarise(chosen, parties(chosen.graph, settings.observers), settings.delta, progress)
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
