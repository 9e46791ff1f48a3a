"""`netdp reproduce`: figures and tables of the documents, redone."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from netdp.errors import InvalidValue

from . import flags

if TYPE_CHECKING:
    from netdp.papers.experiment import Size
    from netdp.papers.runs import Report


def reproduce(
    context: typer.Context,
    names: list[str] = typer.Argument(
        None, metavar="ID...", help="Figures or tables, such as 000-fig2a; or all; or errata."
    ),
    list_: bool = typer.Option(False, "--list", help="List them, with their cost, and exit."),
    quick: bool = typer.Option(False, "--quick", help="Smaller sizes, the same findings (the default)."),
    full: bool = typer.Option(
        False, "--full", help="The papers' sizes; goes on where an earlier full run was broken off."
    ),
    again: bool = typer.Option(False, "--again", help="With --full: run what is finished once more."),
    out: Path = typer.Option(Path("reproduced"), "--out", help="Folder for CSV, pictures and the page."),
    engine: flags.Engine = None,
    workers: flags.Workers = None,
    scheduler: flags.Scheduler = None,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Redo figures and tables of the documents: CSV, pictures, and what is printed, computed and true side by side."""
    from netdp.cli.output import progress_bar
    from netdp.engines.choice import engine as chosen_engine
    from netdp.papers import catalogue
    from netdp.papers.errata.base import load, markdown
    from netdp.papers.experiment import Agreement, Size
    from netdp.papers.page import write_page
    from netdp.papers.runs import reproduce_all
    from netdp.report.style import write_whole

    context.with_resource(chosen_engine(engine, workers=workers, scheduler=scheduler))
    if quick and full:
        raise InvalidValue("--quick and --full exclude each other; leave one out")
    if again and not full:
        raise InvalidValue("--again is for --full: a quick run always runs")
    if list_:
        if names:
            raise InvalidValue(f"--list lists everything; leave out {' '.join(names)}")
        _print_list(json)
        return
    if not names:
        raise InvalidValue("which figure or table? netdp reproduce --list shows them; netdp reproduce all does all")
    everything = names == ["all"]
    chosen = catalogue.names() if everything else [name for name in names if name != "errata"]
    experiments = [catalogue.experiment(name) for name in dict.fromkeys(chosen)]
    size = Size.FULL if full else Size.QUICK
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(
            f"cannot write into {str(out)!r}: {error.strerror}; name another folder with --out"
        ) from None
    wants_errata = everything or "errata" in names
    if wants_errata:
        errata = out / "errata.md"
        write_whole(errata, markdown().encode())
        if not json:
            print(f"Errata, each with its demonstration: {errata}")
    reports = []
    with progress_bar("redoing") as progress:
        for report in reproduce_all(experiments, out, size, progress, again=again):
            reports.append(report)
            if not json:
                _say(report, whole=not everything)
    page = write_page(_with_earlier(reports, out, size), out) if reports else None
    if json:
        found = {"page": page and str(page), "reports": [report.to_dict() for report in reports]}
        if wants_errata:
            found["errata"] = [one.to_dict() for one in load().values()]
        print(json_.dumps(found, indent=2, ensure_ascii=False))
    elif page is not None:
        print(f"Pictures, data and the page: {page}")
    if any(report.verdict is Agreement.DIFFERS for report in reports):
        raise typer.Exit(1)


def _with_earlier(reports: list[Report], out: Path, size: Size) -> list[Report]:
    """These, and what earlier runs of this version left in the folder, in the order of the catalogue."""
    from netdp.papers import catalogue
    from netdp.papers.runs import Report

    now = {report.experiment.id: report for report in reports}
    found = [now.get(name) or Report.read(catalogue.experiment(name), out, size) for name in catalogue.names()]
    return [report for report in found if report is not None]


def _say(report: Report, *, whole: bool) -> None:
    """A line for each experiment; with `whole`, one for every comparison that does not come out, too."""
    e = report.experiment
    agreeing = sum(one["agrees"] for one in report.comparisons)
    counted = f"{agreeing}/{len(report.comparisons)}" if report.comparisons else ""
    print(f"{e.id:20} {report.seconds:6.1f} s  {report.verdict.value:24} {counted:6} {e.title}", flush=True)
    for one in report.comparisons:
        if whole and not one["agrees"]:
            why = f" (erratum {one['erratum']})" if one["erratum"] else ""
            print(f"{'':14} does not come out{why}: {one['what']}: {one['ours']}; the document: {one['document']}")
    for finding in report.findings:
        if not finding.holds:
            print(f"{'':14} does not hold: {finding.what}: {finding.note}")
    if report.why:
        print(f"{'':14} {report.why}")


def _print_list(json: bool) -> None:
    from netdp.papers import catalogue
    from netdp.papers.catalogue import PAPERS

    found = [catalogue.experiment(name) for name in catalogue.names()]
    if json:
        listing = [
            {"id": e.id, "paper": e.paper, "place": e.place, "title": e.title, "quick": e.quick, "full": e.full,
             "errata": list(e.errata)}
            for e in found
        ]  # fmt: skip
        print(json_.dumps(listing, indent=2, ensure_ascii=False))
        return
    for key, paper in PAPERS.items():
        mine = [e for e in found if e.paper == key]
        if mine:
            print(f"{paper.short}:")
        for e in mine:
            print(f"  {e.id:14} {e.place}: {e.title}")
            print(f"  {'':14} quick: {e.quick}; full: {e.full}")
