"""Every figure and table, redone quickly: what is said about each must hold, and the page shows it."""

import csv
import dataclasses
import importlib
import json
import math
import re
from pathlib import Path

import pytest
from markupsafe import escape

from netdp.errors import DataNotFound, InvalidValue
from netdp.papers import catalogue, drawing
from netdp.papers.catalogue import PAPERS
from netdp.papers.comparison import Close, Comparison
from netdp.papers.errata import base
from netdp.papers.experiment import (
    Agreement,
    Experiment,
    FigureKind,
    Observation,
    Panel,
    Result,
    ResultTable,
    Series,
    Size,
    near,
)
from netdp.papers.page import page, write_page
from netdp.papers.runs import Report, Work, reproduce


@pytest.mark.parametrize("name", catalogue.names())
def test_quickly(name, tmp_path, monkeypatch, quick):
    monkeypatch.setattr(drawing, "KINDS", ("png",))  # what the page shows; files of every kind are looked at below
    experiment, result = quick(name)
    report = reproduce(dataclasses.replace(experiment, run=lambda size, work: result), tmp_path)
    assert [f.what for f in report.findings if not f.holds] == []
    assert report.verdict is not Agreement.DIFFERS
    for file in report.files:
        assert (tmp_path / file).stat().st_size > 0
    numbers = [f for f in report.findings for n in (f.formula, f.certified) if isinstance(n, (int, float))]
    assert numbers, "no verdict without a number"
    shown = page([report], tmp_path)
    assert f'id="{name}"' in shown
    if report.why:  # where data are lacking, one sentence says where they come from
        shown = shown.replace(escape(report.why[1:]), "")
    assert all(part not in shown for part in ("http://", "https://", "<script"))


def test_the_catalogue_is_complete():
    """Every experiment of a module is listed, in the order of the documents."""
    root = Path(importlib.import_module("netdp.papers").__file__).parent
    holding = {
        f"{'.'.join(path.relative_to(root).with_suffix('').parts)}:{name}"
        for path in root.rglob("*.py")
        for name in re.findall(r"^(\w+) = Experiment\(", path.read_text("utf-8"), re.MULTILINE)
    }
    assert holding == set(catalogue.MODULES.values())
    found = [catalogue.experiment(name) for name in catalogue.names()]
    assert [e.id for e in found] == catalogue.names()
    papers = [list(PAPERS).index(e.paper) for e in found]
    assert papers == sorted(papers)
    with pytest.raises(InvalidValue, match="did you mean 000-fig2"):
        catalogue.experiment("000-fig2")


def test_every_erratum_that_is_named_exists():
    known = base.load()
    named = {erratum for name in catalogue.names() for erratum in catalogue.experiment(name).errata}
    assert named <= set(known)


def doubled(item):
    calls.append(item)
    if item == "stop":
        raise KeyboardInterrupt
    return {"twice": 2 * item, "far": math.inf}


calls = []


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        Work(tmp_path).map(doubled, [1, 2, "stop"])
    assert Work(tmp_path).map(doubled, [1, 2, 3]) == [{"twice": 2 * n, "far": math.inf} for n in (1, 2, 3)]
    assert calls == [1, 2, "stop", 3]
    (next(iter((tmp_path / "parts").iterdir()))).write_text("{broken")
    assert Work(tmp_path).map(doubled, [1, 2, 3])[0]["twice"] == 2
    assert len(calls) == 5


def test_parts_are_the_same_whether_read_or_computed(tmp_path):
    fresh = Work(None).map(doubled, [1, 2])
    Work(tmp_path).map(doubled, [1, 2])
    assert Work(tmp_path).map(doubled, [1, 2]) == fresh


def small(holds=True, errata=(), paper="000", missing=(), agrees=True, settings=None):
    """A figure of one curve and one table, held against one number of its document."""

    def run(size, work):
        runs.append(size)
        series = Series("a: b", [1, 2], [3.0, math.nan], FigureKind.CERTIFIED, low=[2.5, 1])
        return Result(
            {"n": 2} if settings is None else settings,
            (Observation("x < y", holds, printed="<b>", formula=math.inf, certified=1.5),),
            (
                Comparison(
                    "<i>x",
                    "<b>3",
                    {"a": [3.0 if agrees else 5.0]},
                    Close(3.0, relative=0.1),
                    note="" if agrees else "why",
                ),
            ),
            (Panel("P", "x", "y", [series]),),
            (ResultTable("T", ("u", "v"), ((1, 0.25),)),),
            missing,
        )

    return Experiment(f"{paper}-fig2a", "Figure 0", "title", "shows", run, "1 s", "2 s", errata)


runs = []


def test_what_is_written(tmp_path):
    report = reproduce(small(missing=("web-google: not on this machine",)), tmp_path)
    folder = tmp_path / "000-fig2a" / "quick"
    rows = list(csv.DictReader((folder / "data.csv").read_text("utf-8").splitlines()))
    assert rows[0] == {"panel": "P", "curve": "a: b", "kind": "certified", "x": "1", "y": "3", "low": "2.5", "high": ""}
    assert rows[1]["y"] == ""
    assert (folder / "figure.pdf").read_bytes()[:5] == b"%PDF-"
    saved = json.loads((folder / "result.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert saved["findings"][0]["formula"] == "∞"
    shown = page([report], tmp_path)
    assert "web-google: not on this machine" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown.replace("<b>1 reproduced in part.</b>", "")


def test_the_page_says_what_an_erratum_is_and_writes_numbers_and_powers_to_be_read(tmp_path):
    settings = {"δ": 1e-06, "t": "a < b", "e^{2x}": [1, 2]}
    report = reproduce(small(errata=("003-table4", "unknown"), settings=settings), tmp_path)
    assert "errata.md" not in page([report], tmp_path)  # no link to what is not there
    (tmp_path / "errata.md").write_text("")
    shown = page([report], tmp_path)
    assert base.load()["003-table4"].place in shown
    assert "errata.md#003-table4" in shown
    assert '(<a href="errata.md#unknown">unknown</a>)' in shown
    assert "δ = 10<sup>−6</sup>; t = a &lt; b; " in shown
    assert "&amp;" not in shown


def test_a_verdict_and_its_comparisons_survive_being_read_again(tmp_path):
    made = small(agrees=False)
    first = reproduce(made, tmp_path, Size.FULL)
    assert "✗ not reproduced" in page([first], tmp_path)
    again = Report.read(made, tmp_path, Size.FULL)
    assert again.verdict is Agreement.NOT_REPRODUCED
    assert again.comparisons == first.comparisons
    assert not again.comparisons[0]["agrees"]


def test_every_comparison_is_a_line_of_the_csv_and_a_row_of_the_page(tmp_path):
    report = reproduce(small(agrees=False), tmp_path)
    write_page([report, reproduce(small(paper="001"), tmp_path)], tmp_path)
    rows = list(csv.DictReader((tmp_path / "comparisons.csv").read_text("utf-8").splitlines()))
    assert [(row["id"], row["agrees"]) for row in rows] == [("000-fig2a", "no"), ("001-fig2a", "yes")]
    assert rows[0]["document"] == "<b>3"
    assert rows[0]["ours"] == "5"
    assert rows[0]["tolerance"] == "± 10 %"
    assert rows[0]["note"] == "why"
    own = (tmp_path / "000-fig2a" / "quick" / "comparisons.csv").read_text("utf-8").splitlines()
    assert list(csv.DictReader(own)) == rows[:1]
    shown = (tmp_path / "index.html").read_text("utf-8")
    assert "&lt;b&gt;3" in shown
    assert "does not come out" in shown
    assert "statement of the document" in shown


def test_pictures_do_not_depend_on_the_day(tmp_path):
    for place in ("a", "b"):
        reproduce(small(), tmp_path / place)
    for name in ("figure.pdf", "figure.svg", "figure.png"):
        assert len({(tmp_path / place / "000-fig2a/quick" / name).read_bytes() for place in ("a", "b")}) == 1


def test_a_finished_full_run_is_not_repeated(tmp_path):
    runs.clear()
    first = reproduce(small(), tmp_path, Size.FULL)
    again = reproduce(small(), tmp_path, Size.FULL)
    assert runs == [Size.FULL]
    assert again.findings[0].what == first.findings[0].what
    assert reproduce(small(), tmp_path, Size.FULL, again=True).verdict is Agreement.REPRODUCED
    (tmp_path / "000-fig2a" / "full" / "figure.png").unlink()
    assert Report.read(small(), tmp_path, Size.FULL) is None


def test_missing_data_is_a_verdict_and_not_an_error(tmp_path):
    def run(size, work):
        raise DataNotFound("the data set x is not on this machine")

    report = reproduce(Experiment("000-fig2a", "F", "t", "s", run, "", ""), tmp_path)
    assert report.verdict is Agreement.NOT_HERE
    assert "set x is not on this machine" in page([report], tmp_path)


def test_results_are_checked():
    with pytest.raises(ValueError, match="without a finding"):
        Result({}, ())
    with pytest.raises(ValueError, match="1 cells, there are 2 columns"):
        ResultTable("T", ("a", "b"), ((1,),))
    assert near(1.0, 1.01)
    assert not near(1.0, 1.05)
