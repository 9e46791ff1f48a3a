"""`netdp account`: what do these observers learn about everybody else?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import flags

Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Draw the network with its losses, all pairs where they are quick, ε against δ: out.png, .svg, .pdf or .html.",
    ),
]

Rdp = Annotated[float | None, typer.Option("--rdp", help="Also the Rényi divergence of this order, such as 2.")]
WhoLearnsMost = Annotated[
    bool | None,
    typer.Option(
        "--who-learns-most", help="Instead: every single observer, the worst placed named.", show_default=False
    ),
]


@flags.takes(
    {
        "graph": flags.Graph,
        "protocol": flags.Protocol,
        **flags.PROTOCOL_FLAGS,
        "observer": flags.Observer,
        "colluders": flags.Colluders,
        "delta": flags.Delta,
        "rdp": Rdp,
        "who_learns_most": WhoLearnsMost,
        **flags.ENGINE_FLAGS,
        "config": flags.Config,
        "plot": Plot,
        "json": flags.Json,
    }
)
def account(context: typer.Context, **typed: Any) -> None:
    """Tell what the observers can learn about every other party, before anything is sent, and how good the answer will be.

    For gossip the table shows, by distance: the published formula (not a bound), the exact loss of plain gossip, the exact
    loss with the chosen refresh and masks, local DP and a trusted curator. For every other protocol it shows the certified
    loss beside the paper's formula, local DP and a trusted curator (or shuffler). With --colluders F the loss is that
    against the worst F parties of all, and the worst ones that were found are named.
    """
    from netdp.protocols import Gossip
    from netdp.report import save_picture, summarise, summary_table
    from netdp.report.files import picture_path
    from netdp.settings.loading import account_settings

    from .progress import progress_bar
    from .show import show

    settings = account_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    chosen = settings.made()
    if settings.who_learns_most:
        from .families import show_who_learns_most

        show_who_learns_most(chosen, settings)
        return
    if not isinstance(chosen, Gossip) or settings.colluders is not None or settings.rdp is not None:
        from .families import account_and_compare

        account_and_compare(chosen, settings)
        return
    if settings.plot is not None:
        picture_path(settings.plot)  # refuse before the work
    with progress_bar("accounting") as progress:
        summary = summarise(chosen, settings.observers(chosen), settings.delta, progress)
    drawn = None
    if settings.plot is not None:
        with progress_bar("all pairs") as progress:
            drawn = save_picture(summary, settings.plot, progress)
    lines = [summary_table(summary), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**summary.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)
