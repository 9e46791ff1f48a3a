"""The command line: one file per command, heavy imports only when a command runs."""

from __future__ import annotations

import sys

import typer

from netdp.errors import NetdpError

from . import account, graphs, plan

app = typer.Typer(
    name="netdp",
    help="Private computation over a network without a trusted server: what can each party learn about the others?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("account")(account.account)
app.command("graphs")(graphs.list_graphs)
app.command("plan")(plan.plan)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from netdp import __version__

        print(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command; errors that netdp raises on purpose become one line and exit status 2."""
    try:
        app()
    except NetdpError as error:
        print(f"netdp: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("netdp: interrupted", file=sys.stderr)
        sys.exit(130)
