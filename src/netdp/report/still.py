"""A page around a picture that does not move: one file, nothing from outside, no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .figures import Picture

_STYLE = (
    ":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fbfaf7;--line:#00000026}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e6e1;--paper:#16181c;--line:#ffffff2e}}"
    "body{margin:0;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}"
    "main{max-width:60rem;margin:0 auto;padding:1.2rem}h1{font-size:1.3rem}"
    "figure{margin:1rem 0;padding:1rem;background:#fff;border:1px solid var(--line);border-radius:8px;overflow-x:auto}"
    "figure svg{width:100%;height:auto;display:block}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line)}"
    "th:first-child,td:first-child{text-align:left}.wide{overflow-x:auto}"
)


def page_around(
    title: str,
    picture: Picture,
    words: Sequence[str] = (),
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Title, sentences, the picture as vectors, a table of what it shows, notes. All text is escaped."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>{escape(title)}</title><style>{_STYLE}</style><main><h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in words),
        f"<figure><div style='max-width:{8 * picture.get_figwidth():.0f}rem'>{inline_svg(picture)}</div></figure>",
    ]
    if table is not None:
        header, rows = table
        lines = ["".join(f"<th>{escape(cell)}</th>" for cell in header)]
        lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        parts.append(f"<div class=wide><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table></div>")
    if notes:
        parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>")
    return "\n".join([*parts, "</main></html>\n"])


def inline_svg(picture: Picture) -> str:
    """The picture as SVG inside a page: without the preamble of a file, and without addresses."""
    text = picture.rendered("svg").decode()
    body = text[text.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
