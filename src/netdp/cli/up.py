"""`netdp up`: all parties of a study on this machine, each a process of its own."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

import typer


def up(
    study: Annotated[Path, typer.Argument(help="A study, or a draft of one (names only): TOML.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="A CSV or Parquet file with a column `party`, or a folder with NAME.csv or NAME.parquet for every party; by "
            "default the folder data/ or the only such file beside the study.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="Where the parties' homes are kept: keys, ledgers, results, their data. Else they are gone afterwards.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Where a trained model goes, with its card; by default the folder model/ beside the study."
        ),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option("--code", help="The folder with the module of a model that is code; else this folder."),
    ] = None,
    no_restart: Annotated[
        bool, typer.Option("--no-restart", help="Leave a party that dies dead.", show_default=False)
    ] = False,
    record: Annotated[
        Path | None, typer.Option("--record", help="A folder: every party appends each frame it sends to NAME.frames.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw who sent to whom, and what any k parties learned: out.html, .png, .svg or .pdf."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.", show_default=False)] = False,
) -> int:
    """Run all parties of a study here, as real processes with their own keys and ledgers, talking over loopback.

    A party that dies is started again, as a service manager would. Exit status: 0 everybody holds the same answer, 2 refused,
    3 the study ended without an answer, 1 anything else.
    """
    from netdp.cli.output import working

    with contextlib.nullcontext() if json else working("loading what runs parties"):
        from netdp.peers.launch import LaunchProgress, run_study
        from netdp.peers.outcome import exit_code
        from netdp.peers.runs import spent_before
        from netdp.peers.study.study import Study

    from netdp.cli.output import show

    from .training import Plain, announce, use_code

    if plot is not None:
        from netdp.report.style import picture_path

        picture_path(plot)  # refuse before the work
    data = data or _data_beside(study)
    use_code(code)
    with contextlib.nullcontext() if json else working("reading the study"):
        announced, out = announce(study, out)
        before = None if folder is None else spent_before(folder, Study.read(study), data)
    if before is not None:
        announced.append(f"netdp: {before}")
    if announced and not json:
        print("\n".join(announced), file=sys.stderr)
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
    terminal = sys.stderr.isatty() and not json
    shown, plain = "", Plain()

    def watch(progress: LaunchProgress) -> None:
        nonlocal shown
        if not terminal:
            plain(progress.words)
        elif progress.words != shown:
            shown = progress.words
            print(f"\r\033[K{shown[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    # as Ctrl-C: end the parties, and leave no keys or data behind
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, lambda number, _: sys.exit(128 + number))
    try:
        result = run_study(
            study, data, folder, restart=not no_restart, watch=None if json else watch, record=record, out=out
        )
    finally:
        if terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    from netdp.report.run import run_table

    lines: list[object] = [] if json else [run_table(result)]
    if not json and folder is not None:
        lines.append(
            f"homes, ledgers and results: {folder} (netdp ledger show --home {folder / result.study.names[0]})"
        )
        lines.append(f"who sent to whom, to look at again: netdp studio --watch {folder}")
    if record is not None and folder is not None and not json:
        lines.append(f"recording: {record} (netdp audit --peers {record})")
    if result.files and not json:
        lines.append(f"model: {result.files['model.npz']}   card: {result.files['MODEL_CARD.md']}")
    if plot is not None:
        from netdp.report.run import save_run_picture

        lines.append(f"picture: {save_run_picture(result, plot)}")
    for note in result.notes[:5]:
        print(f"netdp: {note}", file=sys.stderr)
    if len(result.notes) > 5:
        print(f"netdp: … and {len(result.notes) - 5} more notes (--json has all)", file=sys.stderr)
    show({**result.to_dict(), "plot": None if plot is None else str(plot)}, lines, json)
    return exit_code(result)


def _data_beside(study: Path) -> Path:
    """The data that lie beside a study, if there is no doubt."""
    from netdp.errors import FileFormatError, InvalidValue

    if not study.is_file():
        raise FileFormatError(study, None, "cannot be read: there is no such file")
    tables = sorted([*study.parent.glob("*.csv"), *study.parent.glob("*.parquet")])
    found = [study.parent / "data"] if (study.parent / "data").is_dir() else tables
    if len(found) != 1:
        seen = "is no CSV file" if not found else f"are {len(found)} CSV files"
        raise InvalidValue(f"whose data? There {seen} beside {study}; give --data FILE or FOLDER")
    return found[0]
