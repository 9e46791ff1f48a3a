"""The documentation: every link and anchor leads somewhere, and the built site is whole and asks nothing of other computers."""

import importlib
import importlib.util
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import netdp

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
SOURCES = [
    path for folder in ("src", "tests", "benchmarks", "examples", "deploy") for path in (ROOT / folder).rglob("*.*")
]
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
           "object": "data", "use": "href", "image": "href"}  # fmt: skip


def module(name):
    """A module of the site's own, which is no part of the package."""
    if str(DOCS / "_ext") not in sys.path:
        sys.path.append(str(DOCS / "_ext"))
    return importlib.import_module(name)


def prose(path):
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.S | re.M)


def anchors(path):
    """What may stand behind # in a link to a page: anchors in HTML, and headings as Markdown names them."""
    text = prose(path)
    headings = [re.sub(r"[`*_]|\(([^)]*)\)$", r"\1", line) for line in re.findall(r"^#+ +(.*?)\s*$", text, flags=re.M)]
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]
    return {*re.findall(r'<a id="([^"]+)"></a>', text), *slugs}


def test_links_in_pages_lead_somewhere():
    """Files and anchors; what the site writes itself (commands, names) is looked at in the built site."""
    broken = []
    for path in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
            file, anchor = urldefrag(link)
            if "://" in link or link.startswith("mailto:"):
                continue
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{path.relative_to(ROOT)}: {link}")
    assert broken == []


def test_anchors_that_code_names_exist():
    """docs/proofs/masked.md#masked-sum in a docstring, an error message or a test is a promise to its reader."""
    broken = []
    seen = 0
    for path in SOURCES:
        if path.suffix in {".py", ".md", ".toml", ".html", ".js", ".service"} and path != Path(__file__):
            for page, anchor in re.findall(r"docs/([\w/-]+\.md)(?:#([\w-]+))?", path.read_text("utf-8")):
                seen += 1
                target = DOCS / page
                if not target.is_file() or (anchor and anchor not in anchors(target)):
                    broken.append(f"{path.relative_to(ROOT)}: docs/{page}#{anchor}")
    assert seen > 50
    assert broken == []


def test_no_formula_is_taken_for_emphasis():
    """(W_t)_u … x_u) would lose its underscores; stars are for emphasis here, and an underscore behind a bracket is escaped."""
    markdown = pytest.importorskip(
        "markdown_it", reason="markdown-it reads Markdown; pip install 'netdp[docs]' brings it"
    )
    reader = markdown.MarkdownIt("commonmark").enable("table")
    eaten = [
        f"{path.relative_to(ROOT)}: {token.content[:80]}"
        for path in PAGES
        for token in reader.parse(path.read_text("utf-8"))
        if any(child.type in {"em_open", "strong_open"} and child.markup[0] == "_" for child in token.children or [])
    ]
    assert eaten == []


def test_every_room_with_public_names_has_a_page():
    api = module("api_pages")
    public = {room for room in netdp._ROOMS if hasattr(importlib.import_module(f"netdp.{room}"), "__all__")}
    assert public <= set(api.ROOMS)
    assert {path.stem for path in (DOCS / "reference" / "api").glob("*.md")} == {*api.ROOMS, "families", "index"}


def test_contributors_are_told_the_order_of_the_rooms():
    order = re.search(r"^ORDER = \[(.*?)\]", (ROOT / "tests" / "test_rooms.py").read_text("utf-8"), flags=re.S | re.M)[
        1
    ]
    told = re.search(r"Imports go down this list only: (.*?)\. Inside", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))[
        1
    ]
    assert re.findall(r"`(\w+)`", told) == re.findall(r'"(\w+)"', order)


# The built site.


class Page(HTMLParser):
    """What a page loads, where it links to, what can be linked to in it, and what it says."""

    def __init__(self, html):
        super().__init__()
        self.loads, self.links, self.ids, self.words = [], [], set(), []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("href") and given.get("rel") not in {"canonical", "author", "license"}:
            self.loads.append(given["href"])
        elif tag in LOADING:
            self.loads += [given[name] for name in (LOADING[tag], f"xlink:{LOADING[tag]}") if given.get(name)]
        self.loads += [part.split()[0] for part in (given.get("srcset") or "").split(",") if part.strip()]
        self.loads += styles_load(given.get("style") or "")

    def handle_data(self, data):
        self.words.append(data)


def styles_load(css):
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    return re.findall(r"""(?:url\(|@import\s+)\s*["']?([^"')\s;]+)""", css)


def scripts_load(code):
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    calls = r"(?:import|fetch|importScripts|open|src\s*=|href\s*=|URL|WebSocket|Worker|EventSource|sendBeacon)"
    return re.findall(calls + r"""\s*\(?\s*(?:["']GET["']\s*,)?\s*["'`]((?:https?:|wss?:)?//[^"'`]+)""", code)


def outside(address):
    return bool(re.match(r"(?:https?:|wss?:|ftp:)?//", address))


def outside_requests(site):
    """Files of the site that would make a browser ask another computer for something."""
    found = []
    for path in site.rglob("*"):
        if path.suffix == ".html":
            text = path.read_text("utf-8")
            inline = " ".join(re.findall(r"<style[^>]*>(.*?)</style>", text, flags=re.S))
            code = " ".join(re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.S))
            loads = [*Page(text).loads, *styles_load(inline), *scripts_load(code)]
        elif path.suffix in {".css", ".svg"}:
            loads = styles_load(path.read_text("utf-8"))
        elif path.suffix == ".js":
            loads = scripts_load(path.read_text("utf-8"))
        else:
            continue
        found += [f"{path.relative_to(site)} loads {address}" for address in loads if outside(address)]
    return found


def dead_links(site):
    """Links within the site whose page or anchor is not there."""
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            file, anchor = urldefrag(link)
            if ":" in file or outside(link):
                continue
            target = (path.parent / unquote(file)).resolve() if file else path
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].ids):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def missing_commands(site):
    """Commands and flags that the reference does not have, each looked for in the section of its command."""
    page = (site / "reference" / "commands.html").read_text("utf-8")
    found = []
    for command, context in module("command_pages").every_command():
        path = context.command_path
        section = re.search(rf'<section id="{path.replace(" ", "-")}">(.*?)(?:<section|</section>)', page, flags=re.S)
        words = unescape(re.sub(r"<[^>]+>", " ", section[1])).replace(",", " ").split() if section else []
        found += [f"{path} {flag}" for flag in module("command_pages").flags(command, context) if flag not in words]
    return found


def missing_names(site):
    """Public names without an entry, or a pointer to it, on the page of their room."""
    api = module("api_pages")
    found = []
    for room in api.ROOMS:
        page = Page((site / "reference" / "api" / f"{room}.html").read_text("utf-8"))
        for name in api.names(room):
            thing = getattr(importlib.import_module(f"netdp.{room}"), name)
            entry = (
                getattr(thing, "__name__", "")
                if type(thing).__name__ == "module"
                else f"netdp.{api.home(name, room)}.{name}"
            )
            if (
                entry not in page.ids
                and f"module-{entry}" not in page.ids
                and f"{api.home(name, room)}.html#{entry}" not in page.links
            ):
                found.append(f"netdp.{room}.{name}")
    words = " ".join(Page((site / "reference" / "api" / "index.html").read_text("utf-8")).words)
    return found + [name for name in netdp.__all__ if f"netdp.{name}" not in words]


def hard_to_use(site):
    """What an accessibility check finds serious on a page of each kind, a small one, where there is a browser."""
    from tests.studio.browser import browser, reason_why_not, serious

    if reason_why_not() is not None:
        return []
    found = []
    for dark in (False, True):
        with browser(1240, 1000, dark=dark) as window:
            for page in (
                "introduction",
                "threat-model",
                "reference/commands",
                "reference/api/engines",
                "notebooks/first-steps",
            ):
                window.get((site / f"{page}.html").as_uri())
                found += [(page, dark, rule, places) for rule, _, places in serious(window)]
    return found


def test_the_site(tmp_path):
    """Built as `make docs` builds it, where a warning is an error. One test: it is built once, however many workers there are."""
    for needed in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed; pip install 'netdp[docs]' brings it")
    recipe = re.search(r"-m (sphinx .*) -d build/doctrees docs build/docs", (ROOT / "Makefile").read_text("utf-8"))[1]
    assert {"-W", "-E", "--keep-going"} <= set(recipe.split())
    site = tmp_path / "site"
    command = [sys.executable, "-m", *recipe.split(), "-d", str(tmp_path / "doctrees"), str(DOCS), str(site)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert built.stdout + built.stderr == ""
    assert built.returncode == 0
    assert outside_requests(site) == []
    assert dead_links(site) == []
    assert missing_commands(site) == []
    assert missing_names(site) == []
    introduction = (site / "introduction.html").read_text("utf-8")
    assert introduction.count('<svg class="picture"') == len(module("pictures").PICTURES)
    assert not [path for path in site.rglob("*.html") if "&lt;!-- write" in path.read_text("utf-8")]
    assert hard_to_use(site) == []


def test_pictures_in_the_repository_show_what_is_computed():
    """Up to rounding on another processor: for those who read the pages without the site."""
    number = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?")
    colour = re.compile(r"#[0-9a-f]{6}")
    for name, draw in module("pictures").PICTURES.items():
        kept = colour.sub("#", (DOCS / "images" / f"{name}.svg").read_text("utf-8"))
        fresh = colour.sub("#", module("drawing").alone(draw()))
        old = f"docs/images/{name}.svg is old: python docs/_ext/pictures.py"
        assert number.sub("0", kept) == number.sub("0", fresh), old
        pairs = zip(number.findall(kept), number.findall(fresh), strict=True)
        assert max(abs(float(a) - float(b)) for a, b in pairs) < 0.11, old


# That the checks above can fail.


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//cdn.example/x.css">'),
        ("a.html", '<img alt="" src="http://example/x.png">'),
        ("a.html", '<img alt="" srcset="x.png 1x, https://example/x.png 2x">'),
        ("a.html", "<style>@import 'https://fonts.example/x';</style>"),
        ("a.html", '<p style="background: url(https://example/x.png)">'),
        ("a.html", "<script>fetch('https://example/count')</script>"),
        ("a.css", "@font-face { src: url('https://fonts.example/x.woff2') }"),
        ("a.js", "const s = document.createElement('script'); s.src = 'https://example/x.js'"),
        ("a.js", 'new WebSocket("wss://example/live")'),
    ],
)
def test_a_request_to_another_computer_is_found(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    assert len(outside_requests(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<a href="https://example.org/paper">a paper</a><img alt="" src="data:image/png;base64,AA">'),
        ("a.css", "/* from https://example.org */ a { background: url('x.png') }"),
        ("a.js", "/* https://example.org, MIT */ fetch('searchindex.js')"),
    ],
)
def test_what_asks_nobody_is_let_through(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    assert outside_requests(tmp_path) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<p id="here">')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#gone"></a><a href="c.html"></a><a href="#me"></a>'
    )
    assert dead_links(tmp_path) == ["a.html: b.html#gone", "a.html: c.html", "a.html: #me"]


def test_what_the_reference_lacks_is_found(tmp_path):
    api = tmp_path / "reference" / "api"
    api.mkdir(parents=True)
    (tmp_path / "reference" / "commands.html").write_text('<section id="netdp"><p>--help</p></section>')
    for room in (*module("api_pages").ROOMS, "index"):
        (api / f"{room}.html").write_text('<p id="netdp.graphs.ring">netdp.account</p>')
    lacking = missing_commands(tmp_path)
    assert "netdp --help" not in lacking
    assert {"netdp --version", "netdp account --rounds", "netdp study new --epsilon"} <= set(lacking)
    names = missing_names(tmp_path)
    assert "netdp.graphs.ring" not in names
    assert {"netdp.graphs.torus", "netdp.privacy.Guarantee", "plan"} <= set(names)
    assert "account" not in names


def test_anchors_are_those_that_readers_type(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '<a id="masked-sum"></a>\n\n## Who looks: the *observer*\n```\n# no heading\n```\n### `netdp up`, at last\n'
    )
    assert anchors(page) == {"masked-sum", "who-looks-the-observer", "netdp-up-at-last"}


# Docstrings are plain text.


@pytest.mark.parametrize(
    ("plain", "rest"),
    [
        ("W_uv ≥ 0 and |x| by *one* step of `a_b`.", "W\\_uv ≥ 0 and \\|x\\| by *one* step of ``a_b``."),
        ("2*3*4 and `x`s", "2\\*3\\*4 and ``x``\\ s"),
        (">>> 1 + 1\n2", ".. code-block:: pycon\n\n   >>> 1 + 1\n   2"),
        ("See\n\n    f = g + h", "See\n\n::\n\n    f = g + h"),
        ("n      how many\nsigma  how much\n       of it", "``n``\n    how many\n\n``sigma``\n    how much of it"),
        ("Raises:\n    InvalidValue: no.", "**Raises**\n\n``InvalidValue``\n    no."),
        (
            "proof: docs/proofs/gossip.md#masks",
            "proof: `docs/proofs/gossip.md#masks <../../proofs/gossip.html#masks>`__",
        ),
        ("See docs/threat-model.md.", "See `docs/threat-model.md <../../threat-model.html>`__."),
    ],
)
def test_docstrings_become_pages(plain, rest):
    lines = module("plain_docstrings").to_rest(plain.split("\n"))
    assert re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() == rest
