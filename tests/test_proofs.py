"""Proofs have one home each, a page in docs/proofs: their anchors are what code and tests name, and each is named by both."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXTS = {path.stem: path.read_text("utf-8") for path in sorted((DOCS / "proofs").glob("*.md"))}
CONTENTS = (DOCS / "guarantees.md").read_text("utf-8")
ANCHORS = [
    (page, anchor) for page, text in TEXTS.items() for anchor in re.findall(r'^<a id="([a-z-]+)"></a>$', text, re.M)
]
HOME = {anchor: page for page, anchor in ANCHORS}


def mentions(text):
    """Pages and anchors that a text names: `docs/proofs/gossip.md#masks and #refresh` are two."""
    return [
        (page, anchor)
        for page, passage in re.findall(r"docs/proofs/([\w-]+)\.md((?:#[a-z-]+|,\s|\sand\s)+)", text)
        for anchor in re.findall(r"#([a-z-]+)", passage)
    ]


@cache
def named(folder):
    """All that the files of a folder name, and a file that names it."""
    return {
        mention: path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for mention in mentions(path.read_text("utf-8"))
    }


def test_mentions_are_read_page_by_page():
    said = "see docs/proofs/gossip.md#masks, #refresh and #told-everything, docs/proofs/masked.md#masked-sum; #limits"
    assert mentions(said) == [
        ("gossip", "masks"),
        ("gossip", "refresh"),
        ("gossip", "told-everything"),
        ("masked", "masked-sum"),
    ]


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_proof_that_is_named_is_on_that_page(folder):
    assert {mention: path for mention, path in named(folder).items() if mention not in ANCHORS} == {}


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples"])
def test_the_page_that_holds_a_proof_is_named_and_not_the_list_of_all(folder):
    old = re.compile(r"guarantees\.md#[a-z-]+")
    found = {
        path.relative_to(ROOT).as_posix(): old.findall(path.read_text("utf-8"))
        for path in (ROOT / folder).rglob("*.py")
        if path.name not in {"test_proofs.py", "test_docs.py"}
    }
    assert {path: passages for path, passages in found.items() if passages} == {}


@pytest.mark.parametrize(("page", "anchor"), ANCHORS, ids=[anchor for _, anchor in ANCHORS])
def test_every_proof_is_named_by_code_and_by_a_test(page, anchor):
    assert (page, anchor) in named("src")
    assert (page, anchor) in named("tests")


@pytest.mark.parametrize("page", TEXTS)
def test_every_section_has_an_anchor(page):
    sections = re.split(r"^## .*$", TEXTS[page], flags=re.M)
    assert len(sections) > 1
    for before in sections[:-1]:
        assert re.search(r'<a id="[a-z-]+"></a>\s*\Z', before), before[-80:]
    assert len(re.findall(r'<a id="', TEXTS[page])) == len(sections) - 1


def test_no_anchor_is_on_two_pages():
    assert len(ANCHORS) == len(HOME) > 50


@pytest.mark.parametrize("page", TEXTS)
def test_references_between_proofs_lead_to_the_page_that_holds_them(page):
    links = re.findall(r"\]\((?:([a-z]+)\.md)?#([a-z-]+)\)", TEXTS[page])
    assert [(there, anchor) for there, anchor in links if HOME.get(anchor) != (there or page)] == []
    assert re.findall(r"(?<!\])\(#[a-z-]+\)", TEXTS[page]) == []


def test_the_contents_name_every_proof_once():
    """Old links, guarantees.md#anchor, arrive there: at an anchor of that name, in front of the link to the proof."""
    entries = re.findall(r'<a id="([a-z-]+)"></a>\[[^\]]+\]\(proofs/([a-z]+)\.md#([a-z-]+)\)', CONTENTS)
    assert sorted((page, anchor) for _, page, anchor in entries) == sorted(ANCHORS)
    assert all(old == anchor for old, _, anchor in entries)
    assert len(re.findall(r'<a id="', CONTENTS)) == len(re.findall(r"\]\(proofs/\w+\.md#", CONTENTS)) == len(entries)
    assert sorted(re.findall(r"\]\(proofs/(\w+)\.md\)", CONTENTS)) == sorted(TEXTS)


@pytest.mark.parametrize(
    "path", sorted({path for text in TEXTS.values() for path in re.findall(r"`((?:netdp|tests)/[\w/]+\.py)`", text)})
)
def test_files_that_the_pages_name_exist(path):
    assert (ROOT / path).is_file() or (ROOT / "src" / path).is_file()
