"""The flags of the commands, each written down once. `None` means: not given.

A flag is called like the setting it sets, in a `--config` file too (`netdp.cli.settings` says which belong to what). They
stand here without the protocols they belong to, so that `--help` need not load these; a test holds the two together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

Graph = Annotated[
    str | None,
    typer.Argument(help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`.", show_default=False),
]
Protocol = Annotated[
    str | None,
    typer.Option("--protocol", "-p", help="gossip (the default), masked, token, shuffle, …; see `netdp protocols`."),
]
Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with the very names of the flags, without the hyphens.")
]
Json = Annotated[bool | None, typer.Option("--json", help="Print JSON.", show_default=False)]
Delta = Annotated[float | None, typer.Option("--delta", help="δ of the ε(δ) in question; 1e-6 by default.")]
Observer = Annotated[
    list[str] | None,
    typer.Option(
        "--observer",
        "-o",
        help="Who looks; repeat it for colluding parties. shuffle: the curator, and users who collude with it.",
        show_default=False,
    ),
]
Colluders = Annotated[
    int | None,
    typer.Option(
        "--colluders", help="Instead of --observer: any so many parties pool what they see, the worst of all."
    ),
]


def _number(flag: str, words: str) -> Any:
    return Annotated[float | None, typer.Option(flag, help=words)]


def _whole(flag: str, words: str, short: str | None = None) -> Any:
    return Annotated[int | None, typer.Option(flag, *([short] if short else []), help=words)]


def _text(flag: str, words: str) -> Any:
    return Annotated[str | None, typer.Option(flag, help=words)]


def _switch(flag: str, words: str) -> Any:
    return Annotated[bool | None, typer.Option(flag, help=words, show_default=False)]


PROTOCOL_FLAGS: dict[str, Any] = {
    "rounds": _whole(
        "--rounds", "How often everybody sends; rounds of a token on a ring; hops of a report.", short="-T"
    ),
    "steps": _whole("--steps", "token and walks: the length of a walk; randomized: how often an edge wakes."),
    "sigma": _number("--sigma", "Standard deviation of one noise."),
    "sensitivity": _number(
        "--sensitivity", "Δ: all values come from one public interval of this length; 1 by default."
    ),
    "refresh": _number("--refresh", "gossip, randomized: variance r·σ² of fresh noise, before later sends."),
    "masks": _text(
        "--masks",
        "gossip, descent: κ, every edge shares a secret mask N(0, κσ²). masked: complete (the default), or with how many "
        "partners a party shares pads.",
    ),
    "accelerated": _switch("--accelerated/--plain", "gossip: Chebyshev acceleration."),
    "mixing": _text(
        "--mixing", "gossip: metropolis (the default), maximum-degree, hamilton, or lazy- before one of them."
    ),
    "edge_probability": _number("--edge-probability", "secret-graph: the probability of every link."),
    "varying": _switch("--varying/--fixed", "secret-graph: another graph for every round."),
    "iterations": _whole("--iterations", "descents: how many gradient steps everybody takes."),
    "gossip_rounds": _whole("--gossip-rounds", "descent: rounds of gossip after each gradient step."),
    "step": _number("--step", "descents: the length of a gradient step."),
    "clip": _number("--clip", "descents: the norm to which gradients are clipped."),
    "radius": _number("--radius", "walk-descent: models stay in the ball of this radius around 0."),
    "expansion": _number("--expansion", "descents: by how much a step can move two models apart; 1 by default."),
    "walk": _text("--walk", "token on a graph: metropolis (the default) or simple."),
    "tokens": _whole("--tokens", "walks: how many walk in parallel."),
    "weights": _text("--weights", "walks on complete:N: how likely each user is drawn, 1,2,2,…; alike by default."),
    "law": _text("--law", "token: gaussian (the default) or laplace noise."),
    "contributions": _whole("--contributions", "walks: at most so many of each user."),
    "domain": _whole("--domain", "histogram: how many values there are."),
    "response": _text("--response", "histogram: k-ary (the default) or unary."),
    "gamma": _number("--gamma", "histogram: the probability of a random answer."),
    "sender": _text(
        "--sender",
        "walks on complete:N: known (the default: plain connections), receiver-known (anonymous sending) or hidden (a mix "
        "network that draws the next holder).",
    ),
    "release": _text(
        "--release",
        "walks on complete:N: the last holder publishes under its name (named) or not (anonymous); as the channel does.",
    ),
    "noise": _text("--noise", "token on a ring: single or distributed."),
    "closing": _switch("--closing/--no-closing", "token on a ring or any graph: noise before the release."),
    "spread": _text("--spread", "masked: flood or average."),
    "attempts": _whole("--attempts", "masked: how often a party may publish in all; 1 by default."),
    "absent": _text(
        "--absent",
        "masked: how many parties may be missing from an attempt; 0 by default. faulty-shuffle: what becomes of the reports at a "
        "user who is away, unreachable (the default) or silent.",
    ),
    "grid": _number("--grid", "masked, ring, gossip: values are multiples of this power of two, as on real peers."),
    "dimension": _whole("--dimension", "masked, ring, gossip on a grid: how many numbers a value has at most."),
    "groups": _whole("--groups", "masked-descent: sums of so many groups of parties, put together robustly."),
    "aggregate": _text("--aggregate", "masked-descent: mean (the default), median or trimmed, over the groups."),
    "unit": _text("--unit", "masked: whose data is protected, party (the default) or record."),
    "sampling": _number(
        "--sampling",
        "masked-descent: the secret probability to take part in a step, of each party or record; 1 by default.",
    ),
    "max_records": _whole("--max-records", "masked-descent, unit record: how many records a party may have; public."),
    "records": _whole("--records", "masked-descent, unit record: about how many there are in all; public."),
    "momentum": _number("--momentum", "masked-descent: how much of a step goes on in the next; 0 by default."),
    "average": _text("--average", "masked-descent: keep the last model (the default), or the mean of the later half."),
    "reach": _number("--reach", "masked, unit record: each coordinate of a party's sum is clipped to this."),
    "centre": _number("--centre", "masked: the middle of the values."),
    "epsilon0": _number("--epsilon0", "shuffle: the local-DP loss of a report."),
    "delta0": _number("--delta0", "shuffle: δ₀ of an (ε₀, δ₀) randomizer; 0 by default."),
    "reporting": _text("--reporting", "shuffle: all or single."),
    "outages": _number("--outages", "faulty-shuffle: the probability that a user is away in a round."),
    "crashes": _number("--crashes", "faulty-shuffle: the probability that a user goes for good in a round."),
    "lost": _number("--lost", "faulty-shuffle: the probability that a report gets lost in a hop."),
    "cover": _whole("--cover", "relayed-shuffle: so many envelopes go over every link at every hop; 0: no cover."),
    "bundles": _whole(
        "--bundles", "relayed-shuffle: instead of --cover, so many bundles of each user to random neighbours."
    ),
    "laziness": _number("--laziness", "shuffle: probability that a report stays."),
}
"""What protocols take: a flag per field."""

Engine = Annotated[
    str | None,
    typer.Option("--engine", help="Where long work is done: processes (the default), threads, serial or dask."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", help="How many processes or threads; NETDP_WORKERS or all cores by default.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="dask: the address of the scheduler, such as tcp://127.0.0.1:8786. Programs are sent there and run as you, and what "
        "comes back can run here: name only a cluster that you control, tls:// on networks you share.",
    ),
]
ENGINE_FLAGS: dict[str, Any] = {"engine": Engine, "workers": Workers, "scheduler": Scheduler}
"""Where commands compute: `netdp.engine`."""

F = TypeVar("F", bound=Callable[..., Any])


def takes(flags: dict[str, Any]) -> Callable[[F], F]:
    """Give a command these flags, all optional; it gets them as keywords besides its context."""

    def dressed(command: F) -> F:
        own = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        rest = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in flags.items()
        ]
        command.__signature__ = inspect.Signature([own, *rest])  # type: ignore[attr-defined]
        command.__annotations__ = {"context": typer.Context, **flags}
        return command

    return dressed


def given(typed: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given, by their names without the leading hyphens."""
    return {
        name.replace("_", "-"): str(value) if isinstance(value, Path) else value
        for name, value in typed.items()
        if value not in (None, [], ()) and name != "config"
    }
