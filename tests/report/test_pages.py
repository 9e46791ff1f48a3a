"""Pages from templates: on every kind of page a hostile name stays text, and nothing gets past the escaping unseen."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import netdp
from netdp import graphs
from netdp.audit import Check
from netdp.peers.study import Study, Task
from netdp.report import pages
from netdp.report.audit import audit_page
from netdp.report.study import summary_html
from netdp.report.study.facts import report_facts
from netdp.report.study.page import report_page

SOURCE = Path(netdp.__file__).parent
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}&amp;"


class Taken(HTMLParser):
    """A page taken apart: its elements with their attributes, and its words."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.words = [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def study():
    task = Task(kind="histogram", column=HOSTILE, categories=[[HOSTILE, "no"]])
    return Study.plan(HOSTILE, task, list("abcd"), graph="ring:4", epsilon=1.0, delta=1e-6)


def study_page(tmp_path):
    return report_page(study(), report_facts(study(), tmp_path / "study.toml"))


def study_card(tmp_path):
    return summary_html(study())


def network():
    return graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=[HOSTILE, "b", "c"], name=HOSTILE)


def graph_card(tmp_path):
    return network()._repr_html_()


def loss_card(tmp_path):
    return netdp.account(netdp.Gossip(network(), rounds=1, sigma=4.0), [0])._repr_html_()


def audit_of_a_protocol(tmp_path):
    found = netdp.audit.audit(netdp.Gossip(network(), rounds=1, sigma=4.0), trials=200)
    named = tuple(replace(row, name=HOSTILE, attack=HOSTILE) for row in found.findings)
    return audit_page(
        replace(found, title=HOSTILE, findings=named, checks=(Check(HOSTILE, False, HOSTILE),), notes=(HOSTILE,))
    )


def loss_page(tmp_path):
    from netdp.report import answer, save_picture

    return save_picture(answer(netdp.Gossip(network(), 2, 1.0), HOSTILE), tmp_path / "x.html").read_text("utf-8")


def run_page(tmp_path):
    return pages.rendered("run.html", data={"title": HOSTILE})


def still_page(tmp_path):
    pytest.importorskip("matplotlib")
    from netdp.report.figures import Picture, paper_style
    from netdp.report.style import page_around

    with paper_style():
        picture = Picture(figsize=(2, 2))
        picture.suptitle(HOSTILE)
    return page_around(HOSTILE, picture, [HOSTILE], ([HOSTILE], [[HOSTILE]]), [HOSTILE])


def papers_page(tmp_path):
    from netdp.papers.comparison import Close, Comparison
    from netdp.papers.experiment import Experiment, Observation, Result, ResultTable, Size
    from netdp.papers.page import page
    from netdp.papers.runs import reproduce

    def run(size, work):
        finding = Observation(HOSTILE, True, printed=HOSTILE, certified=1.5, note=HOSTILE)
        compared = Comparison(HOSTILE, HOSTILE, {HOSTILE: [1.0]}, Close(2.0), erratum=HOSTILE, note=HOSTILE)
        table = ResultTable(HOSTILE, (HOSTILE,), ((HOSTILE,),))
        return Result({HOSTILE: HOSTILE}, (finding,), (compared,), (), (table,), (HOSTILE,))

    made = Experiment("000-fig2a", HOSTILE, HOSTILE, HOSTILE, run, HOSTILE, HOSTILE, (HOSTILE,))
    (tmp_path / "errata.md").write_text("")
    return page([reproduce(made, tmp_path, Size.QUICK)], tmp_path)


WITHOUT_SCRIPT = [study_page, study_card, graph_card, loss_card, audit_of_a_protocol, still_page, papers_page]


@pytest.mark.parametrize("made", WITHOUT_SCRIPT)
def test_a_hostile_name_is_text_on_every_page(made, tmp_path):
    page = Taken(made(tmp_path))
    assert "script" not in {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("src", "data:").startswith("data:")
        assert tag != "img" or "src" in attributes
    assert "".join(HOSTILE.split()) in "".join("".join(page.words).split())  # word for word: nothing was computed in it


@pytest.mark.parametrize("made", [loss_page, run_page])
def test_a_hostile_name_does_not_end_the_script_of_a_page(made, tmp_path):
    source = made(tmp_path)
    assert source.count("<script") == source.count("</script") == 1
    assert [tag for tag, _ in Taken(source).elements].count("img") == 0
    assert "alert(2)" in source


@pytest.mark.parametrize("made", [study_page, audit_of_a_protocol, papers_page])
def test_pages_without_script_allow_one_sheet_and_nothing_from_outside(made, tmp_path):
    source = made(tmp_path)
    page = Taken(source)
    policy = next(one["content"] for tag, one in page.elements if one.get("http-equiv") == "Content-Security-Policy")
    style = re.search("<style>(.*?)</style>", source, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    images = "; img-src data:" if made is papers_page else ""
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'{images}; base-uri 'none'; form-action 'none'"
    assert not [tag for tag, attributes in page.elements if "style" in attributes]  # the policy would ignore it


def test_a_template_that_names_what_it_was_not_given_is_refused():
    with pytest.raises(UndefinedError, match="title"):
        pages.rendered("card.html", kind="", parts=[])


def test_one_module_alone_calls_texts_markup():
    """Who wants to know what is not escaped reads `netdp.report.pages`."""
    code = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    assert {path for path, text in code.items() if re.search(r"\bMarkup\(|\bjinja2\b", text)} == {"report/pages.py"}
    for path in (SOURCE / "report" / "templates").iterdir():
        assert not re.search(r"\bsafe\b|autoescape", path.read_text("utf-8")), path.name
