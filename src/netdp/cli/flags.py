"""The flags of the commands, each written down once. `None` means: not given.

A flag is called like the setting it sets, in a `--config` file too (`netdp.cli.settings` says which belong to what).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Graph = Annotated[
    str | None,
    typer.Argument(help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`.", show_default=False),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol", "-p", help="gossip (the default), token (ring:N, complete:N or any graph), shuffle or masked."
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", "-T", help="How often everybody sends; rounds of a token on a ring; hops of a report."),
]
Sigma = Annotated[float | None, typer.Option("--sigma", help="Standard deviation of one noise.")]
Refresh = Annotated[
    float | None, typer.Option("--refresh", help="gossip: fresh noise, r·σ²/rounds before every later send.")
]
Masks = Annotated[float | None, typer.Option("--masks", help="gossip: κ, every edge shares a secret mask N(0, κσ²).")]
Accelerated = Annotated[
    bool | None, typer.Option("--accelerated/--plain", help="gossip: Chebyshev acceleration.", show_default=False)
]
Sensitivity = Annotated[
    float | None,
    typer.Option("--sensitivity", help="Δ: all values come from one public interval of this length; 1 by default."),
]
Mixing = Annotated[
    str | None,
    typer.Option("--mixing", help="gossip: metropolis, maximum-degree, lazy-metropolis, lazy-maximum-degree."),
]
Steps = Annotated[int | None, typer.Option("--steps", help="token on complete:N or any graph: the length of its walk.")]
Sender = Annotated[
    str | None,
    typer.Option(
        "--sender",
        help="token on complete:N: known (the default: plain connections), receiver-known (anonymous sending) or hidden "
        "(a mix network that draws the next holder).",
    ),
]
Release = Annotated[
    str | None,
    typer.Option(
        "--release",
        help="token on complete:N: the last holder publishes under its name (named) or not (anonymous); as the channel does.",
    ),
]
Noise = Annotated[str | None, typer.Option("--noise", help="token on a ring: single or distributed.")]
Closing = Annotated[
    bool | None,
    typer.Option(
        "--closing/--no-closing", help="token on a ring or any graph: noise before the release.", show_default=False
    ),
]
Spread = Annotated[str | None, typer.Option("--spread", help="masked: flood or average.")]
Attempts = Annotated[
    int | None, typer.Option("--attempts", help="masked: how often a party may publish in all; 1 by default.")
]
Absent = Annotated[
    int | None, typer.Option("--absent", help="masked: how many parties may be missing from an attempt; 0 by default.")
]
Grid = Annotated[float | None, typer.Option("--grid", help="masked: the step of the grid of values, a power of two.")]
Epsilon0 = Annotated[float | None, typer.Option("--epsilon0", help="shuffle: the local-DP loss of a report.")]
Reporting = Annotated[str | None, typer.Option("--reporting", help="shuffle: all or single.")]
Laziness = Annotated[float | None, typer.Option("--laziness", help="shuffle: probability that a report stays.")]
Observer = Annotated[
    list[str] | None,
    typer.Option(
        "--observer",
        "-o",
        help="Who looks; repeat it for colluding parties. shuffle: the curator, and users who collude with it.",
        show_default=False,
    ),
]
Delta = Annotated[float | None, typer.Option("--delta", help="δ of the ε(δ) in question; 1e-6 by default.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same draws.")]
Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with the very names of the flags, without the hyphens.")
]
Json = Annotated[bool | None, typer.Option("--json", help="Print JSON.", show_default=False)]


def given(context: typer.Context) -> dict[str, Any]:
    """The flags that were given, by their names without the leading hyphens."""
    return {
        name.replace("_", "-"): str(value) if isinstance(value, Path) else value
        for name, value in context.params.items()
        if value not in (None, [], ()) and name != "config"
    }
