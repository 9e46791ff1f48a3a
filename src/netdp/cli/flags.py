"""The flags of the commands, each written down once. `None` means: not given.

A flag is called like the setting it sets, in a `--config` file too (`netdp.settings.models` says which belong to what). They
stand here without the protocols they belong to, so that `--help` need not load these; a test holds the two together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from netdp.settings.words import SWITCHES, WORDS

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
    "rounds": _whole("--rounds", WORDS["rounds"], short="-T"),
    "steps": _whole("--steps", WORDS["steps"]),
    "sigma": _number("--sigma", WORDS["sigma"]),
    "sensitivity": _number("--sensitivity", WORDS["sensitivity"]),
    "refresh": _number("--refresh", WORDS["refresh"]),
    "masks": _text("--masks", WORDS["masks"]),
    "accelerated": _switch("/".join(SWITCHES["accelerated"]), WORDS["accelerated"]),
    "mixing": _text("--mixing", WORDS["mixing"]),
    "edge_probability": _number("--edge-probability", WORDS["edge_probability"]),
    "varying": _switch("/".join(SWITCHES["varying"]), WORDS["varying"]),
    "iterations": _whole("--iterations", WORDS["iterations"]),
    "gossip_rounds": _whole("--gossip-rounds", WORDS["gossip_rounds"]),
    "step": _number("--step", WORDS["step"]),
    "clip": _number("--clip", WORDS["clip"]),
    "radius": _number("--radius", WORDS["radius"]),
    "expansion": _number("--expansion", WORDS["expansion"]),
    "walk": _text("--walk", WORDS["walk"]),
    "tokens": _whole("--tokens", WORDS["tokens"]),
    "weights": _text("--weights", WORDS["weights"]),
    "law": _text("--law", WORDS["law"]),
    "contributions": _whole("--contributions", WORDS["contributions"]),
    "domain": _whole("--domain", WORDS["domain"]),
    "response": _text("--response", WORDS["response"]),
    "gamma": _number("--gamma", WORDS["gamma"]),
    "sender": _text("--sender", WORDS["sender"]),
    "release": _text("--release", WORDS["release"]),
    "noise": _text("--noise", WORDS["noise"]),
    "closing": _switch("/".join(SWITCHES["closing"]), WORDS["closing"]),
    "spread": _text("--spread", WORDS["spread"]),
    "attempts": _whole("--attempts", WORDS["attempts"]),
    "absent": _text("--absent", WORDS["absent"]),
    "grid": _number("--grid", WORDS["grid"]),
    "dimension": _whole("--dimension", WORDS["dimension"]),
    "groups": _whole("--groups", WORDS["groups"]),
    "aggregate": _text("--aggregate", WORDS["aggregate"]),
    "unit": _text("--unit", WORDS["unit"]),
    "sampling": _number("--sampling", WORDS["sampling"]),
    "max_records": _whole("--max-records", WORDS["max_records"]),
    "records": _whole("--records", WORDS["records"]),
    "momentum": _number("--momentum", WORDS["momentum"]),
    "average": _text("--average", WORDS["average"]),
    "reach": _number("--reach", WORDS["reach"]),
    "centre": _number("--centre", WORDS["centre"]),
    "epsilon0": _number("--epsilon0", WORDS["epsilon0"]),
    "delta0": _number("--delta0", WORDS["delta0"]),
    "reporting": _text("--reporting", WORDS["reporting"]),
    "outages": _number("--outages", WORDS["outages"]),
    "crashes": _number("--crashes", WORDS["crashes"]),
    "lost": _number("--lost", WORDS["lost"]),
    "cover": _whole("--cover", WORDS["cover"]),
    "bundles": _whole("--bundles", WORDS["bundles"]),
    "laziness": _number("--laziness", WORDS["laziness"]),
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
