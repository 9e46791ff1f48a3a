"""`netdp simulate`: run a protocol in this process, and say how good the answer was and what it gave away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import flags

RUN_FLAGS: dict[str, Any] = {
    "values": Annotated[
        Path | None,
        typer.Option(
            "--values", help="A file with one number per line, or a CSV file: a row per party, in their order."
        ),
    ],
    "column": Annotated[
        str | None, typer.Option("--column", help="The name of the column of --values, if it has several.")
    ],
    "uniform": Annotated[
        bool | None,
        typer.Option("--uniform", help="For a try: draw the values uniformly from the bounds.", show_default=False),
    ],
    "bounds": Annotated[
        str | None,
        typer.Option("--bounds", help="lo,hi: the public interval of all values, into which they are clipped."),
    ],
    "seed": Annotated[
        int | None, typer.Option("--seed", help="The same seed gives the same run; a fresh one is drawn and printed.")
    ],
    "record": Annotated[
        list[str] | None,
        typer.Option(
            "--record", help="Keep all that this party receives and knows, for --json; repeat it.", show_default=False
        ),
    ],
}


@flags.takes(
    {
        "graph": flags.Graph,
        "protocol": flags.Protocol,
        **flags.PROTOCOL_FLAGS,
        **RUN_FLAGS,
        "observer": flags.Observer,
        "delta": flags.Delta,
        **flags.ENGINE_FLAGS,
        "config": flags.Config,
        "json": flags.Json,
    }
)
def simulate(context: typer.Context, **typed: Any) -> None:
    """Run a protocol on given or drawn values, in simulation: the answer, its error, and the certified loss of what happened.

    Everything happens in this process; nothing is sent over a network. Shuffled reports carry numbers with Laplace noise.
    Descents learn to predict a label: --values housing, cardio or spambase, or a CSV file whose --column is the label; four
    fifths of the rows are dealt to the parties, the model is tried on the rest.
    """
    from netdp.report.learned import Learned, learned_table
    from netdp.report.outcome import outcome_table
    from netdp.settings.loading import simulate_settings

    from .progress import working
    from .show import show
    from .trial import run_trial

    settings = simulate_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    with working("simulating"):
        outcome = run_trial(settings)
    table = learned_table(outcome) if isinstance(outcome, Learned) else outcome_table(outcome)
    show(outcome.to_dict(), [table], settings.as_json)
