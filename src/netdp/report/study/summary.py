"""A study in a few lines of HTML, for notebooks and other pages that want it inside.

Quick on purpose: it is shown whenever somebody names a study. What any k parties learn is computed where that depends on their
number alone, which takes milliseconds; elsewhere the promise stands as the study states it, and is said to be that.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from netdp.peers.study.explained import losses_of
from netdp.privacy.readable import readable

if TYPE_CHECKING:
    from netdp.peers.study import Study

_CELL = "padding:.15em 1em .15em 0;text-align:left;vertical-align:top;font-weight:normal"
_NAMES = 12


def summary_html(study: Study) -> str:
    """What is asked, what is protected, who takes part and what is promised: a fragment of HTML, without script.

    Every text that comes from the study is escaped.
    """
    terms = study.privacy
    promised = f"ε ≤ {terms.epsilon:g} at δ = {terms.delta:g} to {study.running.who(terms.colluders + study.running.has_curator)}"
    rows = [
        ("asked", _capital(study.task.describe())),
        ("protected", _capital(study.task.protected)),
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
    body = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        '<div class="netdp-study" style="max-width:52em"><strong>Study “'
        f"{escape(study.name)}”</strong> <small>{escape(state)}</small>"
        f'<table style="border-collapse:collapse;margin:.3em 0"><tbody>{body}</tbody></table></div>'
    )


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
