"""Proofs have one home, docs/guarantees.md: its anchors are what code and tests name, and each is named by both."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
ANCHORS = re.findall(r'<a id="([a-z-]+)"></a>', TEXT)


def named(folder):
    """Anchors of the page that files of a folder name, and the file that names each."""
    found = {}
    for path in (ROOT / folder).rglob("*.py"):
        if path != Path(__file__):
            for passage in re.findall(r"guarantees\.md((?:#[a-z-]+|, | and )+)", path.read_text("utf-8")):
                found.update(dict.fromkeys(re.findall(r"#([a-z-]+)", passage), path))
    return found


def test_every_proof_that_is_named_exists():
    for folder in ("src", "tests"):
        assert {anchor: str(path) for anchor, path in named(folder).items() if anchor not in ANCHORS} == {}
    assert set(re.findall(r"\]\(#([a-z-]+)\)", TEXT)) <= set(ANCHORS)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_every_proof_is_named_by_code_and_by_a_test(anchor):
    assert anchor in named("src")
    assert anchor in named("tests")


def test_every_section_has_an_anchor_that_no_other_has():
    assert len(ANCHORS) == len(set(ANCHORS)) == len(re.findall(r"^## ", TEXT, flags=re.M)) > 10


def test_the_contents_name_every_proof_once():
    contents = TEXT[TEXT.index("All proofs, by family:") : TEXT.index("<a id=")]
    assert sorted(re.findall(r"\]\(#([a-z-]+)\)", contents)) == sorted(ANCHORS)


@pytest.mark.parametrize("path", re.findall(r"`((?:netdp|tests)/[\w/]+\.py)`", TEXT))
def test_files_that_the_page_names_exist(path):
    assert (ROOT / path).is_file() or (ROOT / "src" / path).is_file()
