"""Writing the report on a study: the page, whole or not at all, and what it says as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.errors import InvalidValue

from ..files import write_whole

if TYPE_CHECKING:
    from netdp.peers.study import Study


def check_output(output: Path) -> None:
    """Refuse a place where no page can be, before the work.

    >>> check_output(Path("report.doc"))
    Traceback (most recent call last):
    netdp.errors.InvalidValue: cannot write 'report.doc': a report is a page, its name must end in .html; a browser prints it as PDF
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue(
            f"cannot write {str(output)!r}: a report is a page, its name must end in .html; a browser prints it as PDF"
        )
    if not output.parent.is_dir():
        raise InvalidValue(f"cannot write {str(output)!r}: the folder {str(output.parent)!r} does not exist")


def write_report(
    study: Study,
    path: Path,
    output: Path,
    *,
    run: Path | None = None,
    audit: Mapping[str, Any] | None = None,
    with_answer: bool = False,
) -> dict[str, Any]:
    """Write the report on the study in the file `path` to `output`; returns what it says. Options as for `report_facts`."""
    from .facts import report_facts
    from .page import report_page

    check_output(output)
    said = report_facts(study, path, run=run, audit=audit, with_answer=with_answer)
    write_whole(output, report_page(study, said).encode())
    return said
