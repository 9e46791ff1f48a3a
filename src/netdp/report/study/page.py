"""The report on a study as one HTML file: no script, nothing from outside, for the screen and for paper.

Everything that the page says is in the facts (`netdp.report.study.facts`); here it only gets its form. Whatever comes from a
file is escaped, and the page's own content security policy forbids everything but its one style sheet, which it names by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from . import afterwards, beforehand, grounds
from .html import Markup, joined, tag
from .pictures import loss_chart, network_picture, network_words

if TYPE_CHECKING:
    from netdp.peers.study import Study

GENERATOR = "netdp report"
"""By this name a page is known to be one of ours."""


def report_page(study: Study, said: Mapping[str, Any]) -> str:
    """The whole page, from what `report_facts` says of the study."""
    style = resources.files("netdp.report.study").joinpath("page.css").read_text("utf-8")
    style = style.replace("STUDY", f"{said['hash'][:16]}…")  # at the foot of every printed page
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = [part for part in _parts(study, said) if part[2]]
    contents = joined(tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts)
    head = joined([
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", name="robots", content="noindex"),
        tag("title", f"Report on the study “{said['name']}”"),
        Markup(f"<style>{style}</style>"),
    ])  # fmt: skip
    sections = joined(
        tag("section", tag("h2", title, id=f"{name}-heading"), made, id=name, aria_labelledby=f"{name}-heading")
        for name, title, made in parts
    )
    body = joined([
        tag("a", "To the text", href="#text", class_="skip"),
        tag("header", beforehand.head(said, _short(said))),
        tag("nav", tag("ol", contents), aria_label="Contents"),
        tag("main", sections, id="text"),
        tag("footer", tag("p", f"Written by netdp {said['versions']['netdp']} on {said['written']}. Study {said['hash']}.")),
    ])  # fmt: skip
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


def _parts(study: Study, said: Mapping[str, Any]) -> list[tuple[str, str, Markup | None]]:
    """(anchor, heading, content) in the order of the page; no content where there is nothing to say."""
    return [
        ("words", "The study in plain words", beforehand.plain_words(said)),
        ("losses", "What others can learn", beforehand.learned(said, loss_chart(said))),
        ("meaning", "What ε and δ mean", beforehand.what_it_means(said)),
        ("company", "Against whom the promise holds", beforehand.whom(said)),
        ("happened", "What really happened", afterwards.happening(said)),
        ("audit", "What an audit found", afterwards.audit(said)),
        ("accuracy", "How good the answer will be", beforehand.accuracy(said)),
        ("network", "Who talks to whom", beforehand.network(said, network_picture(study), network_words(study))),
        ("rests", "What all this rests on", grounds.assumptions(said)),
        ("parties", "Who takes part, and who has signed", grounds.parties(said)),
        ("references", "Where the method is proved", grounds.references(said)),
        ("about", "About this file", grounds.about(said)),
    ]


def _short(said: Mapping[str, Any]) -> dict[str, str]:
    """What the later parts have to say at the head of the page."""
    out = {} if said["happened"] is None else {"Happened": afterwards.run_in_short(said)}
    return out if said["audit"] is None else out | {"Audit": afterwards.audit_in_short(said["audit"])}
