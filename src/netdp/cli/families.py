"""What `netdp account` shows of protocols other than gossip, and of single observers."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account, who_learns_most
from netdp.accounting.table import certified
from netdp.numerics.arrays import jsonable
from netdp.privacy.readable import readable
from netdp.protocols import Protocol
from netdp.report.comparison import compare, comparison_table
from netdp.report.files import picture_path
from netdp.report.picture import save_picture
from netdp.settings.models import Accounting

from .progress import progress_bar
from .show import show


def account_and_compare(protocol: Protocol, settings: Accounting) -> None:
    """Account for a protocol and print it beside its alternatives."""
    if settings.plot is not None:
        picture_path(settings.plot)  # refuse before the work
    observers = None if settings.colluders is not None else settings.observers(protocol)
    with progress_bar("accounting") as progress:
        comparison = compare(protocol, observers, settings.delta, progress, colluders=settings.colluders)
    drawn = None
    if settings.plot is not None:
        with progress_bar("drawing") as progress:
            drawn = save_picture(comparison, settings.plot, progress)
    lines = [comparison_table(comparison), *([f"picture: {drawn}"] if drawn is not None else [])]
    data = {**comparison.to_dict(), "plot": str(drawn) if drawn else None}
    if settings.rdp is not None:
        divergence = _renyi(protocol, observers, settings.rdp, settings.colluders)
        lines.append(
            f"\nRényi divergence of order {settings.rdp:g}, the worst over all parties: {readable(divergence)}"
        )
        data["rdp"] = {"order": settings.rdp, "worst": jsonable(divergence)}
    show(data, lines, settings.as_json)


def _renyi(protocol: Protocol, observers: Any, order: float, colluders: int | None) -> float:
    """The Rényi loss, from the statement that is made for it where there is one."""
    options: dict[str, Any] = {} if colluders is None else {"colluders": colluders}
    if "statement" in certified.options(protocol):
        options["statement"] = "renyi"
    return float(np.nanmax(account(protocol, observers, **options).rdp(order)))


def show_who_learns_most(protocol: Protocol, settings: Accounting) -> None:
    """Every single observer, or those named, beside whom it learns most about."""
    named = None if settings.observer is None else settings.observers(protocol)
    with progress_bar("accounting") as progress:
        exposure = who_learns_most(protocol, settings.delta, named, progress=progress)
    show(exposure.to_dict(), [str(exposure)], settings.as_json)
