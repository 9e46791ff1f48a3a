"""What is special about this site: pages written while it is built, anchors that are HTML, notebooks, docstrings in plain text."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import api_pages
import command_pages
import drawing
import formulas
import module_pages
import notebook_pages
import pictures
import plain_docstrings
from sphinx.application import Sphinx

ANCHOR = re.compile(r'<a id="([A-Za-z0-9_-]+)"></a>')
WRITTEN = re.compile(r"<!-- write: ([a-z-]+)(?: ([\w.-]+))? -->")
DRAWN = re.compile(r"!\[[^\]]*\]\((?:\.\./)*images/([a-z-]+)\.svg\)")
IMAGE = re.compile(r"<!-- image: ([\w.-]+) \| ([^|]+?) -->")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(notebook_pages.NotebookParser)
    app.connect("source-read", _write_pages)
    app.connect("source-read", _find_anchors)
    app.connect("doctree-read", _make_anchors_known)
    app.connect("doctree-read", formulas.set_in_type)
    app.connect("autodoc-process-docstring", _plain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


@cache
def _drawn(picture: str) -> str:
    """A picture for a page, computed once however many pages show it."""
    return drawing.framed(pictures.PICTURES[picture]())


def _write_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """`<!-- write: commands -->` and its like stand for what a program writes."""

    def written(match: re.Match[str]) -> str:
        what, argument = match[1], match[2]
        if what == "commands":
            return command_pages.reference()
        if what == "modules":
            return module_pages.modules()
        if what == "names":
            return api_pages.top_level()
        if what == "families":
            return api_pages.families_page()
        if what == "room":
            return api_pages.room_page(argument)
        if what == "demo":
            readme = (Path(app.srcdir).parent / "README.md").read_text("utf-8")
            return re.search(r"```console\n\$ make demo\n.*?```", readme, flags=re.S)[0]
        raise ValueError(f"{docname}: nothing is called {what!r}")

    def shown(match: re.Match[str]) -> str:
        """A screenshot, where there is one."""
        there = (Path(app.srcdir) / "images" / match[1]).is_file()
        return f"![{match[2]}](/images/{match[1]})" if there else ""

    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    source[0] = WRITTEN.sub(written, source[0])
    source[0] = IMAGE.sub(shown, source[0])
    source[0] = DRAWN.sub(lambda match: _drawn(match[1]), source[0])
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # doctest wants a blank line there, readers do not


def _find_anchors(app: Sphinx, docname: str, source: list[str]) -> None:
    """Anchors such as `<a id="masked-sum"></a>`; links to them in their own page are given its name, to be found like others."""
    anchors = ANCHOR.findall(source[0])
    app.env.metadata[docname]["anchors"] = anchors
    own = Path(docname).name + ".md"
    for anchor in anchors:
        source[0] = source[0].replace(f"](#{anchor})", f"]({own}#{anchor})")


def _make_anchors_known(app: Sphinx, doctree: Any) -> None:
    metadata = app.env.metadata[app.env.docname]
    slugs = dict(metadata.get("myst_slugs", {}))
    slugs.update({anchor: (0, anchor, anchor) for anchor in metadata.pop("anchors", [])})
    metadata["myst_slugs"] = slugs


def _plain(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain_docstrings.to_rest(lines)
