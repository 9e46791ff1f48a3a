"""Docstrings as they are written here, plain text with formulas, tables of words and doctests, turned into reStructuredText.

A paragraph stays a paragraph, in which nothing but `backticks` and *stars* around words has a meaning. Lines that begin with
`>>>` are a session, indented paragraphs are shown as they stand, and what looks like a table of names (``name    what it is``,
or ``Raises:`` and indented lines) becomes a list of definitions.
"""

import re

PAGE = re.compile(r"docs/((?:[a-z]+/)?[a-z-]+)\.md(?:#([a-z0-9-]+))?")
SECTION = re.compile(r"(Args|Arguments|Attributes|Parameters|Returns|Yields|Raises|Examples?|Notes?|References?):$")
TERM = re.compile(r"(\S(?:.{0,60}?\S)??)(?:\s{2,}| : )(\S.*)")
COLON = re.compile(r"(\S[^:]{0,60}?): +(\S.*)")
EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=[^\s*])([^*\n]*[^\s*])\1(?![\w*])")


def to_rest(lines: list[str], up: str = "../../") -> list[str]:
    """The lines of a docstring as reStructuredText; `up` leads from the page to the top of the site, for links to the proofs."""
    found: list[str] = []
    for block in _blocks(lines):
        found += [*_block(block, up), ""]
    return found


def _blocks(lines: list[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in (line.rstrip() for line in lines):
        begins = line.lstrip().startswith(">>>")
        ends = bool(line) and bool(blocks[-1]) and blocks[-1][0].lstrip().startswith(">>>")
        if not line or (begins and blocks[-1] and not ends):
            blocks.append([])
        if line:
            blocks[-1].append(line)
    return [block for block in blocks if block]


def _block(block: list[str], up: str) -> list[str]:
    if block[0].lstrip().startswith(">>>"):
        return [".. code-block:: pycon", "", *("   " + line for line in block)]
    if all(line.startswith("    ") for line in block):
        return ["::", "", *block]
    if len(block) > 2 and set(block[1]) == {"-"}:  # a heading over its line, as in NumPy's docstrings
        return [f"**{block[0]}**", "", *_block(block[2:], up)]
    if SECTION.match(block[0]) and len(block) > 1:
        inside = _dedent(block[1:])
        return [f"**{block[0].rstrip(':')}**", "", *(_terms(inside, COLON, up) or [_inline(" ".join(inside), up)])]
    terms = _terms(block, TERM, up)
    if terms:
        return terms
    if re.match(r"([-*•] |\d+[.)] )", block[0]):
        return _items(block, up)
    # An indented part inside a paragraph is a formula of its own.
    parts: list[list[str]] = [[]]
    for line in block:
        if parts[-1] and line.startswith("    ") != parts[-1][-1].startswith("    "):
            parts.append([])
        parts[-1].append(line)
    out: list[str] = []
    for part in parts:
        out += (
            ["::", "", *part, ""] if part[0].startswith("    ") else [_inline(" ".join(map(str.strip, part)), up), ""]
        )
    return out


def _dedent(lines: list[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]


def _terms(block: list[str], shape: re.Pattern[str], up: str) -> list[str]:
    """A list of definitions, if every line that is not indented has the shape of one."""
    entries: list[tuple[str, list[str]]] = []
    for line in block:
        if line.startswith(" "):
            if not entries:
                return []
            entries[-1][1].append(line.strip())
        elif match := shape.fullmatch(line):
            entries.append((match[1], [match[2]]))
        else:
            return []
    out: list[str] = []
    for term, text in entries:
        out += [f"``{term.replace('`', '')}``", "    " + _inline(" ".join(text), up), ""]
    return out


def _items(block: list[str], up: str) -> list[str]:
    items: list[str] = []
    for line in block:
        if match := re.match(r"(?:[-*•]|\d+[.)]) +(.*)", line):
            items.append(match[1])
        else:
            items[-1] += " " + line.strip()
    return [f"- {_inline(item, up)}" for item in items]


def _inline(text: str, up: str) -> str:
    parts = re.split(r"``([^`]+)``|`([^`]+)`", text)
    out = ""
    for k in range(0, len(parts), 3):
        out += _prose(parts[k], up)
        if k + 1 < len(parts):
            code = (parts[k + 1] or parts[k + 2]).strip()
            after = parts[k + 3][:1]
            out += ("\\ " if out[-1:].isalnum() else "") + f"``{code}``" + ("\\ " if after.isalnum() else "")
    return out


def _prose(text: str, up: str) -> str:
    kept: list[str] = []

    def keep(rest: str) -> str:
        kept.append(rest)
        return f"\0{len(kept) - 1}\0"

    def link(match: re.Match[str]) -> str:
        page, anchor = match[1], match[2]
        return keep(f"`{match[0]} <{up}{page}.html{'#' + anchor if anchor else ''}>`__")

    text = PAGE.sub(link, text)
    text = EMPHASIS.sub(lambda match: keep(match[0].replace("\\", "\\\\")), text)
    text = re.sub(r"([\\*|`_])", r"\\\1", text)
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text)
