"""`netdp account`: what do these observers learn about everybody else?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import flags


def account(
    context: typer.Context,
    graph: flags.Graph = None,
    protocol: flags.Protocol = None,
    rounds: flags.Rounds = None,
    sigma: flags.Sigma = None,
    refresh: flags.Refresh = None,
    masks: flags.Masks = None,
    accelerated: flags.Accelerated = None,
    sensitivity: flags.Sensitivity = None,
    mixing: flags.Mixing = None,
    steps: flags.Steps = None,
    sender: flags.Sender = None,
    release: flags.Release = None,
    noise: flags.Noise = None,
    closing: flags.Closing = None,
    spread: flags.Spread = None,
    attempts: flags.Attempts = None,
    absent: flags.Absent = None,
    grid: flags.Grid = None,
    epsilon0: flags.Epsilon0 = None,
    reporting: flags.Reporting = None,
    laziness: flags.Laziness = None,
    observer: flags.Observer = None,
    delta: flags.Delta = None,
    config: flags.Config = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Draw the network and the pairwise heat map: out.png or out.html. Tokens, shuffling: ε against δ, "
            ".png or .svg.",
        ),
    ] = None,
    json: flags.Json = None,
) -> None:
    """Tell what the observers can learn about every other party, before anything is sent, and how good the answer will be.

    For gossip the table shows, by distance: the published formula (not a bound), the exact loss of plain gossip, the exact
    loss with the chosen refresh and masks, local DP and a trusted curator. For tokens and shuffling it shows the certified
    loss beside the paper's formula, local DP and a trusted curator (or shuffler).
    """
    from netdp.protocols import Gossip
    from netdp.report import save_picture, summarise, summary_table
    from netdp.report.files import picture_path

    from .progress import progress_bar
    from .settings import account_settings
    from .show import show

    settings = account_settings(config, flags.given(context))
    chosen = settings.made()
    if not isinstance(chosen, Gossip):
        from .walkers import account_walkers

        account_walkers(chosen, settings)
        return
    if settings.plot is not None:
        picture_path(settings.plot, (".png", ".html"))  # refuse before the work
    with progress_bar("accounting") as progress:
        summary = summarise(chosen, settings.observers(chosen), settings.delta, progress)
    drawn = None
    if settings.plot is not None:
        with progress_bar("all pairs") as progress:
            drawn = save_picture(summary, settings.plot, progress)
    lines = [summary_table(summary), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**summary.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)
