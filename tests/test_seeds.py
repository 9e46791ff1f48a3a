"""docs/papers/seeds.md: every row points at code and tests that exist, commands run, and numbers are those of a computation."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from netdp import cli
from netdp.errors import DataNotFound
from netdp.papers import catalogue
from netdp.papers.errata import base

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers" / "seeds.md").read_text("utf-8")
COLUMNS = ("place", "what it says", "in netdp", "test", "runs on peers", "published, ours, erratum")
SEEDS = ("000", "001", "002", "003", "004")


def rows():
    found = []
    seed = None
    for number, line in enumerate(PAGE.splitlines(), start=1):
        if heading := re.match(r"## Seed (\d{3})", line):
            seed = heading[1]
        if line.startswith("|") and not re.match(r"\|[\s:|-]+\|$", line):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if tuple(cells) != COLUMNS:
                found.append(pytest.param(seed, cells, id=f"line {number}"))
    return found


ROWS = rows()


def code(text):
    return re.findall(r"`([^`]+)`", text)


def resolve(name):
    """The object behind a dotted name such as netdp.Gossip or netdp.families.token.account.ring."""
    first, *rest = name.split(".")
    thing, path = importlib.import_module(first), first
    for attribute in rest:
        path = f"{path}.{attribute}"
        fields = getattr(thing, "__dataclass_fields__", {})
        if hasattr(thing, attribute):  # before modules: an old room of the same name would hide it
            thing = getattr(thing, attribute)
        elif attribute in fields:
            return fields[attribute]
        else:
            try:
                thing = importlib.import_module(path)
            except ImportError:
                raise AssertionError(f"nothing is called {name}") from None
    return thing


@functools.cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def check_test(place):
    path, _, function = place.partition("::")
    assert (ROOT / path).exists(), f"{path} does not exist"
    assert not function or function in functions(path), f"{path} has no {function}"


def command_line(command, folder):
    """A command as it is typed, with an output file if it writes one."""
    words = shlex.split(command)[1:]
    return [str(folder / word) if word.endswith(".html") else word for word in words]


def run(words):
    found = CliRunner().invoke(cli.app, words)
    assert found.exit_code == 0, f"netdp {shlex.join(words)}: {found.output[-500:]} {found.exception!r}"
    return found.output


def test_every_seed_has_its_table():
    assert {row.values[0] for row in ROWS} == set(SEEDS)
    assert len(ROWS) > 100


@pytest.mark.parametrize(("seed", "cells"), ROWS)
def test_a_row_holds(seed, cells):
    assert seed in SEEDS
    assert len(cells) == len(COLUMNS), f"{len(cells)} cells: {cells}"
    place, says, where, tested, peers, said = cells
    assert place
    assert re.match(r"(yes|no|not yet|by the period|Gaussian yes|absent users)\b.*[:;,]? \S|–$", peers), (
        "whether it runs on peers"
    )
    assert says
    names = [name for name in code(where) if name.startswith("netdp.")]
    for name in names:
        resolve(name)
    for command in code(where):
        if command.startswith("netdp reproduce "):
            catalogue.experiment(command.split()[2])
        elif command.startswith("netdp "):
            pass  # run below
        elif not command.startswith("netdp."):
            assert (ROOT / command.partition("#")[0]).exists(), f"{command} is no name, command or file"
            anchor = command.partition("#")[2]
            assert not anchor or f'id="{anchor}"' in (ROOT / command.partition("#")[0]).read_text("utf-8")
    tests = code(tested)
    for test in tests:
        check_test(test)
    if not (code(where) and tests):
        assert re.match(r"(not built|later|background): \S+", said), "a row without code and test says why"


def commands():
    """Every command of the page but `netdp reproduce`, once: `tests/papers` runs all of those."""
    found = {
        command for row in ROWS for cell in row.values[1] for command in code(cell) if command.startswith("netdp ")
    }
    return sorted(command for command in found if not command.startswith("netdp reproduce "))


@pytest.mark.parametrize("command", commands())
def test_commands_run(command, tmp_path):
    if " twitch " in command:
        skip_without("twitch")
    assert run(command_line(command, tmp_path)).strip()


def on_peers():
    """What stands behind a yes: the options of `netdp study new`."""
    return sorted({option for row in ROWS for option in code(row.values[1][4])})


@pytest.mark.parametrize("options", on_peers())
def test_what_runs_on_peers_can_be_drafted(options, tmp_path):
    """The first lines of the page, completed. That such studies run is tested in tests/peers, and on twelve processes there."""
    words = shlex.split(options)
    assert words[0] == "--protocol"
    lines = [line for line in PAGE.splitlines() if line.startswith("netdp study new s ")]
    of_counts = words[1] in ("ring-histogram", "walk-histogram", "shuffle")
    mark = "--label" if words[1].endswith("-descent") else "--task histogram" if of_counts else "--task sum"
    (line,) = [line for line in lines if mark in line]
    run([*shlex.split(line.removesuffix(" …"))[1:], *words[1:], "-o", str(tmp_path / "study.toml")])
    assert (tmp_path / "study.toml").exists()


def skip_without(name):
    from netdp import graphs

    try:
        graphs.dataset(name)
    except DataNotFound as absent:
        pytest.skip(str(absent))


# Numbers in the last column, in the order in which they stand there. Fractions are written as they are.


def theorem_3():
    from netdp import WalkSum, account
    from netdp.papers.formulas import amplification as paper

    walk = WalkSum(1000, 100_000, paper.local_sigma(0.1, 1e-8), sender="hidden")
    return paper.theorem3_2021(1000, 100_000, 0.1, 1e-6, 1e-6), account(walk, [0]).worst_epsilon(1e-6)


def shuffled():
    from netdp.papers.formulas import network_shuffling as paper
    from netdp.privacy.clones import shuffled_epsilon

    return paper.epsilon_all(1.0, 9498, paper.TABLE4["twitch"] / 9498, 2e-6), shuffled_epsilon(9497, 1.0, 2e-6)


def responses():
    from netdp.families.shuffle.account.randomizer import Randomizer

    return *shuffled(), Randomizer(1.0, values=16).heap(9497).epsilon(2e-6)


def gammas():
    from netdp.papers.formulas import network_shuffling as paper
    from netdp.papers.network_shuffling.common import graph_of

    for name in ("facebook-pages", "twitch", "deezer", "enron"):
        skip_without(name)
    return [paper.gamma(graph_of(name)) for name in ("facebook-pages", "twitch", "deezer", "enron")]


@functools.cache
def gossip_descent():
    from netdp.papers.muffliato.common import trial

    try:
        scores = [trial([2000, seed])["muffliato"][-1] for seed in range(10)]
    except DataNotFound as absent:
        pytest.skip(str(absent))
    return float(np.mean(scores)), float(np.std(scores))


def amplified():
    """The first and last ε₀ of Figure 6, over the four graphs, from which the published ε is above it."""
    from netdp.papers.network_shuffling import figures

    grid = figures.FIGURE_6_EPSILON0S
    found = []
    for name in ("twitch", "deezer"):
        skip_without(name)
        one = figures.curves_figure_6([name, False])["published"]
        found.append(next(e for e, p in zip(grid, one, strict=True) if p > e))
    return found


def of_erratum(name, *places):
    """Numbers that the demonstration of an erratum prints."""

    def numbers():
        try:
            lines = base.find(name).shown().lines
        except DataNotFound as absent:
            pytest.skip(str(absent))
        return [lines[place][1] for place in places]

    return numbers


def ring_of_64():
    from netdp import Gossip, account
    from netdp.graphs import ring

    far = ring(64).distances([0]) == 6
    ways = [
        account(Gossip(ring(64), rounds=20, sigma=1.0), [0], method=method) for method in ("published", "certified")
    ]
    return [float(way.factor[far].mean()) for way in ways]


def calibrations():
    from netdp.papers.program import sigma

    return [sigma(place, 10.0, 2000, 20_000) for place in ("central", "network", "local")]


NUMBERS = {
    ("000", "Theorem 3"): theorem_3,
    ("001", "§5, data"): of_erratum("001-label", 0, 1),
    ("001", "§5, parameters"): calibrations,
    ("002", "Theorem, gossip"): of_erratum("004-theorem1", 0),
    ("003", "§3.1"): lambda: (0.239, 0.190),  # asserted in the test that the row cites
    ("003", "Theorem 5.3"): shuffled,
    ("003", "Table 4"): gammas,
    ("003", "Figure 6"): amplified,
    ("003", "§5.6, dummies"): of_erratum("003-dummies", 1),
    ("003", "§7, tighter accounting"): responses,
    ("004", "Theorem 1, Equation 6"): ring_of_64,
    ("004", "Theorem 6, Equation 8"): of_erratum("004-theorem6", 1),
    ("004", "§5, Figure 1(c)"): gossip_descent,
    ("004", "Corollary 2"): of_erratum("004-corollary2", 0),
    ("004", "Table 2"): gossip_descent,
}

A_NUMBER = re.compile(r"(?<!Lemma )(?<![\w.{])(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+/\d+)(?![\w}])")


def with_numbers():
    rows = [(row.values[0], row.values[1][0], A_NUMBER.findall(row.values[1][5])) for row in ROWS]
    return [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in rows if row[2]]


@pytest.mark.parametrize(("seed", "place", "shown"), with_numbers())
def test_numbers_are_those_of_a_computation(seed, place, shown):
    assert (seed, place) in NUMBERS, f"{shown}: where do these numbers come from? Enter it in NUMBERS"
    computed = list(NUMBERS[seed, place]())
    if place == "Theorem 1, Equation 6":
        computed = computed[:1]  # "1 true" has no digits behind a point
    assert len(shown) == len(computed), (shown, computed)
    for text, number in zip(shown, computed, strict=True):
        if "/" in text:
            assert text == number
            continue
        value, digits = float(text.replace(",", "")), len(text.partition(".")[2])
        assert abs(float(number) - value) <= 0.5001 * 10**-digits, f"{place}: {text} on the page, {number} computed"


def test_every_number_that_is_computed_stands_on_the_page():
    shown = {(row.values[0], row.values[1]) for row in with_numbers()}
    assert set(NUMBERS) <= shown
