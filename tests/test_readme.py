"""The commands in the README and in the pages of docs/ print what is written there, on any processor."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
# docs/howto/deploy.md plays on five machines; tests/cli/test_peer_cli.py runs it.
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name != "deploy.md")]
BLOCKS = [
    (path.relative_to(ROOT).as_posix(), " ".join(command.replace("\\\n", " ").split()), printed)
    for path in PAGES
    for command, printed in re.findall(
        r"```console\n\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", path.read_text("utf-8"), flags=re.S
    )
]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
LEFT_OUT = "…"


def unit(text):
    """One in the last printed digit; whole numbers are counts and have none."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    if "." not in mantissa and not exponent:
        return 0.0
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def same(said, written):
    """The same words and whole numbers; other numbers within one unit in the last printed digit. Blanks are layout."""
    if " ".join(NUMBER.sub("#", said).split()) != " ".join(NUMBER.sub("#", written).split()):
        return False
    if said.startswith("this run: "):  # what is drawn at random differs from run to run
        return True
    pairs = zip(NUMBER.findall(said), NUMBER.findall(written), strict=True)
    value = [(float(a.replace(",", "")), float(b.replace(",", "")), max(unit(a), unit(b))) for a, b in pairs]
    return all(abs(a - b) <= 1.001 * tolerance for a, b, tolerance in value)


def differences(said, written):
    """What is written and was not said in that order; a line `…` stands for any lines, also none."""
    at = 0
    skipping = False
    for line in written:
        if line.strip() == LEFT_OUT:
            skipping = True
            continue
        while skipping and at < len(said) and not same(said[at], line):
            at += 1
        if at == len(said):
            return [f"not said: {line}"]
        if not same(said[at], line):
            return [f"said {said[at]!r}, written {line!r}"]
        at += 1
        skipping = False
    return [] if skipping else [f"not written: {line}" for line in said[at:]]


@pytest.mark.parametrize(
    ("said", "written", "alike"),
    [
        ("σ = 0.2656, ε = 1.000", "σ = 0.2657,   ε = 0.999", True),
        ("σ = 0.2656", "σ = 0.2658", False),
        ("worst ε 0.0999", "worst ε 0.100", True),
        ("1,024 edges", "1,025 edges", False),
        ("margin 2e-09", "margin 3e-09", True),
        ("margin 2e-09", "margin 2e-08", False),
        ("party 0 learns", "party 0 learned", False),
        ("hypercube(8)", "hypercube(7)", False),
        ("exact 1.00", "upper 1.00", False),
        ("this run: mean 3.5 of 16", "this run: mean 4.1 of 17", True),
        ("this run: mean 3.5", "this run: sum 3.5", False),
    ],
)
def test_numbers_are_compared_within_what_is_meant(said, written, alike):
    assert same(said, written) is alike


@pytest.mark.parametrize(
    ("written", "alike"),
    [
        ("a 1.0|b|c 3", True),
        ("a 1.0|…", True),
        ("…|c 3", True),
        ("…|b|…", True),
        ("a 1.0|c 3", False),
        ("a 1.0|b", False),
        ("…|b", False),
        ("…|d|…", False),
        ("…|c 3|b", False),
        ("…|c 4", False),
    ],
)
def test_lines_may_be_left_out_where_it_says_so(written, alike):
    assert (differences(["a 1.0", "b", "c 3"], written.split("|")) == []) is alike


def test_no_number_is_printed_with_more_digits_than_are_meant():
    printed = " ".join(text for _, _, text in BLOCKS)
    assert [n for n in NUMBER.findall(printed) if len(n.partition(".")[2]) > 6] == []


def test_there_are_blocks():
    commands = [command.split()[:2] for _, command, _ in BLOCKS]
    assert {first for first, _ in commands} == {"make", "netdp"}
    assert {"demo", "account", "plan", "simulate", "study"} <= {second for _, second in commands}
    assert [command for page, command, _ in BLOCKS if page == "README.md"] == ["make demo"]
    assert len(BLOCKS) == len({command for _, command, _ in BLOCKS}) > 12


def test_the_readme_is_a_screen_or_two():
    assert len(README.splitlines()) < 80
    assert len(README) < 8_000


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_tables_are_not_broken_by_blank_lines(path):
    """Every row of a table belongs to one that has a header and a line of dashes."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        rows = table.splitlines()
        assert len(rows) > 2
        assert re.fullmatch(r"\|( ?-+ ?\|)+", rows[1]), rows[:2]
        assert len({len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in rows}) == 1, rows


def test_a_newcomer_is_told_where_the_command_is_and_that_it_is_a_simulation():
    words = " ".join(README.split())
    assert ".venv/bin/netdp" in words
    assert "make shell" in words
    assert "simulation" in words
    assert re.search(r"^shell: \$\(VENV\)/\.run$", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)


@pytest.mark.parametrize(
    ("page", "command", "printed"), BLOCKS, ids=[f"{page}: {command}" for page, command, _ in BLOCKS]
)
def test_prints_what_it_says(page, command, printed, tmp_path, monkeypatch, capfd):
    """As `python -m netdp …` in a folder with the examples; in this process, which has the package in memory already."""
    words = shlex.split(command)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NETDP_DEMO", "demo.html")
    monkeypatch.setattr(sys, "argv", words)
    try:
        if words[0] == "make":
            runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
        else:
            runpy.run_module(words[0], run_name="__main__")
        code = 0
    except SystemExit as left:
        code = left.code or 0
    out, err = capfd.readouterr()
    assert code == (2 if err else 0)
    assert differences((out + err).splitlines(), printed.splitlines()) == []
