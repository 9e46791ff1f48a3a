"""`netdp account`: what do these observers learn about everybody else?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import flags

if TYPE_CHECKING:
    from netdp.protocols.base import Protocol
    from netdp.settings.models import Accounting


@flags.takes(
    {
        "graph": flags.Graph,
        "protocol": flags.Protocol,
        **flags.PROTOCOL_FLAGS,
        "observer": flags.Observer,
        "colluders": flags.Colluders,
        "delta": flags.Delta,
        "rdp": flags.option(float, "Also the Rényi divergence of this order, such as 2."),
        "who_learns_most": flags.option(
            bool, "Instead: every single observer, the worst placed named.", "--who-learns-most"
        ),
        **flags.ENGINE_FLAGS,
        "config": flags.Config,
        "plot": flags.option(
            Path,
            "Draw the network with its losses, all pairs where they are quick, ε against δ: out.png, .svg, .pdf or .html.",
        ),
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
    from netdp.cli.output import progress_bar, show
    from netdp.protocols.answers import answer
    from netdp.report.picture import save_picture
    from netdp.report.style import picture_path
    from netdp.report.tables import answer_table
    from netdp.settings.loading import account_settings

    settings = account_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    chosen = settings.made()
    if settings.who_learns_most:
        _show_who_learns_most(chosen, settings)
        return
    if settings.plot is not None:
        picture_path(settings.plot)  # refuse before the work
    observers = None if settings.colluders is not None else settings.observers(chosen)
    with progress_bar("accounting") as progress:
        found = answer(
            chosen, observers, settings.delta, colluders=settings.colluders, rdp=settings.rdp, progress=progress
        )
    drawn = None
    if settings.plot is not None:
        with progress_bar("drawing") as progress:
            drawn = save_picture(found, settings.plot, progress)
    lines = [answer_table(found), *([f"picture: {drawn}"] if drawn is not None else [])]
    show({**found.to_dict(), "plot": str(drawn) if drawn else None}, lines, settings.as_json)


def _show_who_learns_most(protocol: Protocol, settings: Accounting) -> None:
    """Every single observer, or those named, beside whom it learns most about."""
    from netdp.cli.output import progress_bar, show
    from netdp.protocols.accounting import who_learns_most

    named = None if settings.observer is None else settings.observers(protocol)
    with progress_bar("accounting") as progress:
        exposure = who_learns_most(protocol, settings.delta, named, progress=progress)
    show(exposure.to_dict(), [str(exposure)], settings.as_json)
