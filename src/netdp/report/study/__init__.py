"""A study on paper: the report, written whole or not at all, and a few lines of HTML for notebooks and other pages.

The few lines are quick on purpose: they are shown whenever somebody names a study. What any k parties learn is computed where
that depends on their number alone, which takes milliseconds; elsewhere the promise stands as the study states it, and is said
to be that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.errors import InvalidValue
from netdp.peers.study.explanation import losses_of
from netdp.privacy.wording import readable
from netdp.report.pages import rendered
from netdp.report.study.wording import capital
from netdp.report.style import write_whole

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

_NAMES = 12


def summary_html(study: Study) -> str:
    """What is asked, what is protected, who takes part and what is promised: a fragment of HTML, without script.

    Every text that comes from the study is escaped.
    """
    terms = study.privacy
    promised = f"ε ≤ {terms.epsilon:g} at δ = {terms.delta:g} to {study.running.who(terms.colluders + study.running.has_curator)}"
    rows = [
        ("asked", capital(study.task.describe())),
        ("protected", capital(study.task.protected)),
        ("protocol", f"{study.settings.kind}; {study.n:,} parties, {study.graph.name}, {study.graph.m:,} links"),
        ("who", ", ".join(study.everybody[:_NAMES]) + (", …" if len(study.everybody) > _NAMES else "")),
        ("promised", promised),
    ]
    if study.running.depends_on_size_only:
        losses, _ = losses_of(study)
        for k, loss in losses.items():
            epsilon = readable(loss.worst_epsilon(terms.delta))
            rows.append((study.running.who(k), f"ε = {epsilon} ({loss.claim.value})"))
    else:
        rows.append(("certified", "not computed here; Study.explain() and netdp report compute it"))
    state = f"complete, {study.hash.hex()[:16]}…" if study.is_complete else "a draft: it cannot be signed yet"
    return rendered("card.html", kind="netdp-study", title=f"Study “{study.name}”", aside=state, parts=[([], rows)])


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
    from netdp.report.study.facts import report_facts
    from netdp.report.study.page import report_page

    check_output(output)
    said = report_facts(study, path, run=run, audit=audit, with_answer=with_answer)
    write_whole(output, report_page(study, said).encode())
    return said
