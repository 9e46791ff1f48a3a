"""`netdp simulate`: run a protocol in this process, and say how good the answer was and what it gave away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import flags


def simulate(
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
    values: Annotated[
        Path | None,
        typer.Option(
            "--values", help="A file with one number per line, or a CSV file: a row per party, in their order."
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="The name of the column of --values, if it has several.")
    ] = None,
    uniform: Annotated[
        bool | None,
        typer.Option("--uniform", help="For a try: draw the values uniformly from the bounds.", show_default=False),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option("--bounds", help="lo,hi: the public interval of all values, into which they are clipped."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The same seed gives the same run; a fresh one is drawn and printed.")
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            "--record", help="Keep all that this party receives and knows, for --json; repeat it.", show_default=False
        ),
    ] = None,
    observer: flags.Observer = None,
    delta: flags.Delta = None,
    config: flags.Config = None,
    json: flags.Json = None,
) -> None:
    """Run a protocol on given or drawn values, in simulation: the answer, its error, and the certified loss of what happened.

    Everything happens in this process; nothing is sent over a network. Shuffled reports carry numbers with Laplace noise.
    """
    from netdp.report.outcome import outcome_table

    from .progress import progress_bar
    from .settings import simulate_settings
    from .show import show
    from .trial import run_trial

    settings = simulate_settings(config, flags.given(context))
    with progress_bar("simulating"):
        outcome = run_trial(settings)
    show(outcome.to_dict(), [outcome_table(outcome)], settings.as_json)
