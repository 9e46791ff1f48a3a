"""Every erratum is demonstrated, and docs/papers/errata.md says what the demonstrations print."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netdp import cli
from netdp.errors import DataNotFound
from netdp.papers.catalogue import PAPERS
from netdp.papers.errata import base
from netdp.papers.errata.base import entry

ERRATA = base.load()
PAGE = Path(__file__).parents[2] / "docs" / "papers" / "errata.md"


@pytest.mark.parametrize("name", list(ERRATA))
def test_it_is_shown_and_the_page_says_so(name):
    try:
        text = entry(ERRATA[name])
    except DataNotFound as absent:
        pytest.skip(str(absent))
    assert text in PAGE.read_text("utf-8"), "docs/papers/errata.md is old: netdp reproduce errata --out docs/papers"


def test_the_page_has_all_of_them_and_no_other():
    text = PAGE.read_text("utf-8")
    assert text.count('<a id="') == len(ERRATA)
    places = [text.index(f'<a id="{name}"></a>') for name in ERRATA]
    assert places == sorted(places)
    assert {erratum.paper for erratum in ERRATA.values()} <= set(PAPERS)


def test_names_are_unique_and_unknown_ones_are_refused():
    with pytest.raises(ValueError, match="no erratum is called 'x'"):
        base.find("x")
    with pytest.raises(ValueError, match="two errata are called"):
        base.erratum("000-debias", "000", "", printed="", true="")(lambda: None)


def test_the_command_prints_them_as_json(tmp_path):
    found = CliRunner().invoke(cli.app, ["reproduce", "errata", "--json", "--out", str(tmp_path)])
    if isinstance(found.exception, DataNotFound):
        pytest.skip(str(found.exception))
    assert found.exit_code == 0, found.output
    printed = json.loads(found.stdout)
    assert [one["id"] for one in printed["errata"]] == list(ERRATA)
    assert printed["reports"] == []
    for one in printed["errata"]:
        assert set(one) == {"id", "paper", "place", "printed", "true", "computed", "demonstration"}
        assert one["computed"]
        assert all(line["what"] and line["value"] for line in one["computed"])
    assert (tmp_path / "errata.md").read_text("utf-8") == PAGE.read_text("utf-8")
