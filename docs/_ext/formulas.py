"""Formulas are written in plain text here (μ_u², (BBᵀ)^{+1/2}); on the site their indices are set below and above the line."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

# A sign, perhaps with marks above it or raised ones behind, then its index. Words with underscores are names, and stay.
INDEX = re.compile(
    r"(?<=[^\s_^\"'`(,;:/.])(?P<sign>[_^])(?P<index>\{[^{}]+\}|[+−-]?[A-Za-z0-9α-ωΑ-Ω₀-₉]+(?:,[A-Za-z0-9α-ωΑ-Ω₀-₉]+)*)(?!_)"
)
NAME = re.compile(r"[A-Za-z]{2,}_[a-z]{2,}|_[a-z]+_|::|\.py")
KEPT = (nodes.literal, nodes.literal_block, nodes.raw, nodes.comment, addnodes.desc_signature)


def set_in_type(app: Any, doctree: nodes.document) -> None:
    """Replace `A_u` by A with a lowered u wherever it stands in running text."""
    for node in list(doctree.findall(nodes.Text)):
        parts = split(str(node))
        if len(parts) > 1 and not _kept(node):
            node.parent.replace(
                node, [kind(words, words) if kind is not nodes.Text else nodes.Text(words) for kind, words in parts]
            )


def split(text: str) -> list[tuple[type, str]]:
    """A text in parts: what stands on the line, below it and above it.

    >>> [(kind.__name__, words) for kind, words in split("μ_u² = (BBᵀ)^{+1/2} of test_a_b.py")]
    [('Text', 'μ'), ('subscript', 'u'), ('Text', '² = (BBᵀ)'), ('superscript', '+1/2'), ('Text', ' of test_a_b.py')]
    """
    parts: list[tuple[type, str]] = []
    done = 0
    for match in INDEX.finditer(text):
        begin, end = text.rfind(" ", 0, match.start()) + 1, text.find(" ", match.end())
        if NAME.search(text[begin : end if end >= 0 else None]):
            continue
        parts.append((nodes.Text, text[done : match.start()]))
        kind = nodes.subscript if match["sign"] == "_" else nodes.superscript
        parts.append((kind, match["index"].strip("{}")))
        done = match.end()
    parts.append((nodes.Text, text[done:]))
    return [part for part in parts if part[1]]


def _kept(node: nodes.Node | None) -> bool:
    while node is not None and not isinstance(node, KEPT):
        node = node.parent
    return node is not None
