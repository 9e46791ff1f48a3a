"""The flags of the commands, each written down once. `None` means: not given.

A flag is called like the setting it sets, in a `--config` file too (`netdp.settings.models` says which belong to what). They
stand here without the protocols they belong to, so that `--help` need not load these; a test holds the two together.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from netdp.settings.catalogue import SWITCHES, WORDS


def option(kind: Any, words: str, *flag: str) -> Any:
    """An optional flag with a value of this kind behind it, called `flag`, or else like the setting that it sets."""
    annotated: Any = Annotated
    return annotated[
        kind | None, typer.Option(*flag, help=words, show_default=kind not in (bool, list[str], list[Path]))
    ]


Graph = Annotated[
    str | None,
    typer.Argument(help="hypercube:8, grid:16x16, karate, a file of edges …; see `netdp graphs`.", show_default=False),
]
Protocol = option(str, "gossip (the default), masked, token, shuffle, …; see `netdp protocols`.", "--protocol", "-p")
Config = option(Path, "TOML file with the very names of the flags, without the hyphens.", "--config", "-c")
Json = Annotated[bool | None, typer.Option("--json", help="Print JSON.", show_default=False)]
Delta = option(float, "δ of the ε(δ) in question; 1e-6 by default.")
Observer = option(
    list[str],
    "Who looks; repeat it for colluding parties. shuffle: the curator, and users who collude with it.",
    "--observer",
    "-o",
)
Colluders = option(int, "Instead of --observer: any so many parties pool what they see, the worst of all.")


_KINDS: dict[str, Any] = {
    "rounds": int, "steps": int, "sigma": float, "sensitivity": float, "refresh": float, "masks": str, "accelerated": bool,
    "mixing": str, "edge_probability": float, "varying": bool, "iterations": int, "gossip_rounds": int, "step": float,
    "clip": float, "radius": float, "expansion": float, "walk": str, "tokens": int, "weights": str, "law": str,
    "contributions": int, "domain": int, "response": str, "gamma": float, "sender": str, "release": str, "noise": str,
    "closing": bool, "spread": str, "attempts": int, "absent": str, "honest": int,
    "threshold": int, "grid": float, "dimension": int, "groups": int,
    "aggregate": str, "unit": str, "sampling": float, "max_records": int, "records": int, "momentum": float, "average": str,
    "reach": float, "centre": float, "epsilon0": float, "delta0": float, "values": int, "variation": float, "reporting": str,
    "outages": float,
    "crashes": float, "lost": float, "cover": int, "bundles": int, "batch": int, "laziness": float,
}  # fmt: skip

_CALLED = {"rounds": ("--rounds", "-T"), **{name: ("/".join(both),) for name, both in SWITCHES.items()}}

PROTOCOL_FLAGS: dict[str, Any] = {
    name: option(kind, WORDS[name], *_CALLED.get(name, ())) for name, kind in _KINDS.items()
}
"""What protocols take: a flag per field, in the order of the help."""

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

_SAID = re.compile(r"(?<![\w.])([a-z][a-z_0-9]*)=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|-?\w+(?:\.\d+)?(?:e-?\d+)?)")
_ELSEWHERE = {"observers": "observer", "colluders": "colluders", "delta": "delta", "rdp": "rdp", "epsilon": "epsilon"}


def as_flags(sentence: str) -> str:
    """A refusal in the words of the command line: options of Python become the flags of the same name.

    >>> as_flags("colluders=40 leaves nobody of Graph('ring(5)', n=5, m=5)")
    "--colluders 40 leaves nobody of Graph('ring(5)', n=5, m=5)"
    >>> as_flags("set laziness=0.5, closing=False, sender='known', grid=None")
    'set --laziness 0.5, --no-closing, --sender known, no --grid'
    >>> as_flags('say observers="curator", or observers=["curator", 3]')
    'say --observer curator, or --observer curator --observer 3'
    """

    def flag(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in _KINDS and name not in _ELSEWHERE:
            return found[0]
        called = _ELSEWHERE.get(name, name).replace("_", "-")
        if value == "None":
            return f"no --{called}"
        if value in ("True", "False") and name in SWITCHES:
            return SWITCHES[name][value == "False"]
        values = [one.strip(" '\"") for one in value.strip("[]").split(",")]
        return " ".join(f"--{called} {one}" for one in values)

    return _SAID.sub(flag, sentence)


F = TypeVar("F", bound=Callable[..., Any])


def takes(flags: dict[str, Any], **defaults: Any) -> Callable[[F], F]:
    """Give a command these flags, all optional; it gets them as keywords besides its context.

    `defaults` are what they are if nobody gives them, None unless it is said here; ... for what must be given.
    """

    def dressed(command: F) -> F:
        own = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        rest = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind)
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
