"""`netdp report`: one HTML file about a study, for those who must judge what it reveals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.cli.output import may_write, progress_bar, show, working

from . import flags

if TYPE_CHECKING:
    from netdp.peers.study.study import Study


def report(
    study: Annotated[Path, typer.Argument(help="A study, or a draft of one: TOML.", show_default=False)],
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            help="What really happened: the folder of `netdp up --folder`, or one party's home. Ledgers are checked and added up.",
        ),
    ] = None,
    with_answer: Annotated[
        bool, typer.Option("--with-answer", help="With --run: show the answer, too.", show_default=False)
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", help="What `netdp audit … --json` printed about this study; another one is refused."),
    ] = None,
    audit_run: Annotated[
        bool,
        typer.Option("--audit-run", help="Audit the study now, in simulation: seconds to minutes.", show_default=False),
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.", show_default=False)] = False,
    json: flags.Json = None,
) -> None:
    """Write all that can be said about a study into one HTML file, to be read, kept and printed.

    What is asked and protected, what anybody can learn and what that means, against whom it holds, how good the answer will be,
    what it rests on and who sees to that, who has signed; with --run what was really spent, with --audit what attacks found. The
    file loads nothing and runs nothing.
    """
    may_write(output, force)
    with working("computing what others can learn"):
        from netdp.errors import InvalidValue
        from netdp.peers.study.study import Study
        from netdp.report.study import check_output, write_report
        from netdp.report.study.record import read_audit, study_of_run

        check_output(output)
        if audit is not None and audit_run:
            raise InvalidValue(f"give --audit {audit} or --audit-run, not both")
        if with_answer and run is None:
            raise InvalidValue("--with-answer is about a run; give its folder with --run")
        read, file = Study.read(study), study
        if run is not None:
            read, file = study_of_run(read, study, run)
        found = None if audit is None else read_audit(audit, read)
    if audit_run:
        found = _audited(read)
    with working("writing the report"):
        said = write_report(read, file, output, run=run, audit=found, with_answer=with_answer)
    lines = [f"report: {output} (open it in a browser; print it from there)"]
    lines += [str(one) for one in said["cautions"]]
    show({"path": str(output), **said}, lines, bool(json))


def _audited(study: Study) -> dict[str, Any]:
    from netdp.peers.recordings.audit import audit_in_simulation
    from netdp.report.study.record import audit_told

    with progress_bar("attacking") as progress:
        return audit_told(audit_in_simulation(study, progress=progress), study)
