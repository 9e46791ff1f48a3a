"""`netdp studio`: a local web page to explore who learns what, and to watch parties at work."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer


def studio(
    study: Annotated[
        Path | None, typer.Argument(help="A study, or a draft of one, to begin with: TOML.", show_default=False)
    ] = None,
    watch: Annotated[
        Path | None,
        typer.Option(
            "--watch",
            help="Parties at work, or a run that ended: the folder of `netdp up --folder`, or the home of one peer.",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Where to listen; 0 is any free port.")] = 0,
    host: Annotated[str, typer.Option("--host", help="An address of this machine only.")] = "127.0.0.1",
    browser: Annotated[
        bool | None,
        typer.Option(
            "--browser/--no-browser", help="Open it in a browser; by default if this is a terminal.", show_default=False
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the address as JSON, for a program.", show_default=False)
    ] = False,
) -> None:
    """Open the studio: pick a network, a protocol and who looks, and see what they learn; or watch a study run.

    It answers on this machine only, to whoever has the address with its token, and asks nothing of any other machine. Ctrl-C ends
    it.
    """
    from netdp.cli.output import working
    from netdp.errors import MissingDependency

    try:
        with working("loading the studio"):
            from netdp.peers.study.study import Study
            from netdp.studio.explorer import Explorer
            from netdp.studio.server import Studio, listening, serve
            from netdp.studio.watch import Watch
    except ModuleNotFoundError as missing:
        raise MissingDependency(str(missing.name), "the studio", "studio") from None
    explorer = Explorer(None if study is None else Study.read(study))
    watched = None if watch is None else Watch(watch, study)

    def ready(address: str) -> None:
        if json:
            print(json_.dumps({"address": address}), flush=True)
        else:
            print(f"studio: {address}\nOnly on this machine, only with this address. Ctrl-C ends it.", flush=True)
        if browser or (browser is None and sys.stdout.isatty() and not json):
            import webbrowser

            webbrowser.open(address)

    with listening(host, port) as opened:
        serve(Studio(explorer, watched), opened, ready)
