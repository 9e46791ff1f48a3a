"""The command line: one file per command, heavy imports only when a command runs."""

from __future__ import annotations

import sys

import typer

from netdp.cli import (
    account,
    audit,
    evidence,
    flags,
    ledger,
    lists,
    peer,
    plan,
    report,
    reproduce,
    simulate,
    studio,
    study,
    up,
)
from netdp.errors import NetdpError

app = typer.Typer(
    name="netdp",
    help="Private computation over a network without a trusted server: what can each party learn about the others?",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("account")(account.account)
app.command("audit")(audit.audit)
app.add_typer(evidence.app, name="evidence")
app.command("graphs")(lists.list_graphs)
app.add_typer(ledger.app, name="ledger")
app.add_typer(peer.app, name="peer")
app.command("plan")(plan.plan)
app.command("protocols")(lists.list_protocols)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("simulate")(simulate.simulate)
app.command("studio")(studio.studio)
app.add_typer(study.app, name="study")
app.command("up")(up.up)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from netdp import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run a command; errors that netdp raises on purpose, and nonsense typed, become one line and exit status 2."""
    try:
        status = app(standalone_mode=False)
    except NetdpError as error:
        _refuse(flags.as_flags(str(error)))
    except (KeyboardInterrupt, typer.Abort):
        print("netdp: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:  # a path that does not exist, may not be written, is full …
        _refuse(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        # The parser of typer raises exceptions of its own, which have their sentence; anything else is a bug to be seen.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # `netdp study` alone asks what there is
            print(error.format_message())
            sys.exit(0)
        _refuse(f"{error.format_message().rstrip('.')}; `netdp --help` and `netdp COMMAND --help` list what there is")
    else:
        if status == 130:
            print("netdp: interrupted", file=sys.stderr)
        sys.exit(status if isinstance(status, int) else 0)


def _refuse(sentence: str) -> None:
    print(f"netdp: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)
