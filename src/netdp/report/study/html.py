"""A few functions that make HTML: what is text is escaped, what is markup is marked as such."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_VOID = ("meta", "br")
_FEW, _SHORT = 9, 60  # a table of so few rows with cells so short is not torn in two by the end of a page


class Markup(str):
    """A piece of HTML, to be told from a text that must be escaped."""

    __slots__ = ()


def tag(name: str, /, *inside: str | None, **attributes: str | None) -> Markup:
    """An element. Texts inside are escaped, `Markup` is not; `class_` is class, an underscore in a name is a hyphen.

    >>> tag("p", "a < b ", tag("b", "c"), class_="note", aria_label='"')
    '<p class="note" aria-label="&quot;">a &lt; b <b>c</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(one for one in inside if one is not None)}</{name}>")


def joined(pieces: Iterable[str]) -> Markup:
    """Pieces one after the other, texts escaped."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one, quote=False) for one in pieces))


def paragraphs(sentences: Iterable[str]) -> Markup:
    """A paragraph each."""
    return joined(tag("p", sentence) for sentence in sentences)


def listed(items: Iterable[str]) -> Markup:
    """A list with bullets."""
    return tag("ul", *(tag("li", item) for item in items))


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Iterable[int] = (),
    mono: Iterable[int] = (),
    marked: Iterable[int] = (),
    narrow: bool = False,
) -> Markup:
    """A table with a caption; the first column names the rows.

    numbers   columns that are set to the right
    mono      columns in letters of one width
    marked    rows that stand out
    narrow    no wider than what is in it
    """
    right, wide, loud = set(numbers), set(mono), set(marked)
    head = joined(
        tag("th", title, scope="col", class_="n" if place in right else None) for place, title in enumerate(columns)
    )
    body, longest = [], 0
    for number, row in enumerate(rows):
        longest = max(longest, *(len(cell) for cell in row if not isinstance(cell, Markup)))
        cells = [tag("th", row[0], scope="row")]
        for place, cell in enumerate(row[1:], start=1):
            kind = "n" if place in right else "mono" if place in wide else None
            cells.append(tag("td", cell, class_=kind))
        body.append(tag("tr", *cells, class_="mark" if number in loud else None))
    few = len(body) <= _FEW and longest <= _SHORT
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", *body),
        class_="narrow" if narrow else None,
    )
    return tag("div", made, class_="wide whole" if few else "wide", tabindex="0", role="region", aria_label=caption)
