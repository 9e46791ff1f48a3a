"""`netdp simulate`: run a protocol in this process, and say how good the answer was and what it gave away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from netdp.cli import flags

RUN_FLAGS: dict[str, Any] = {
    "values": flags.option(Path, "A file with one number per line, or a CSV file: a row per party, in their order."),
    "column": flags.option(str, "The name of the column of --values, if it has several."),
    "uniform": flags.option(bool, "For a try: draw the values uniformly from the bounds.", "--uniform"),
    "bounds": flags.option(str, "lo,hi: the public interval of all values, into which they are clipped."),
    "seed": flags.option(int, "The same seed gives the same run; a fresh one is drawn and printed."),
    "record": flags.option(list[str], "Keep all that this party receives and knows, for --json; repeat it."),
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
    from netdp.cli.output import show, working
    from netdp.cli.trial import run_trial
    from netdp.report.outcome import TrainingOutcome, learned_table, outcome_table
    from netdp.settings.loading import simulate_settings

    settings = simulate_settings(typed["config"], flags.given(typed))
    context.with_resource(settings.running())
    with working("simulating"):
        outcome = run_trial(settings)
    table = learned_table(outcome) if isinstance(outcome, TrainingOutcome) else outcome_table(outcome)
    show(outcome.to_dict(), [table], settings.as_json)
