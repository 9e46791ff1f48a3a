"""docs/papers/seeds.md: every row points at code, commands and tests that exist, or says why there is nothing to point at."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers" / "seeds.md").read_text("utf-8")
COLUMNS = ("place", "what it says", "in netdp", "test", "published, ours, erratum")
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


def check_command(command):
    from netdp.cli import account, plan, simulate
    from netdp.settings.catalogue import CATALOGUE

    words = shlex.split(command)[1:]
    known = {"account": account.account, "plan": plan.plan, "simulate": simulate.simulate}
    commands = {*known, "protocols", "graphs", "up", "study", "peer", "ledger", "audit", "reproduce"}
    assert words[0] in commands, f"{command}: no such command"
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "-p":
            assert following in CATALOGUE, f"{command}: no such protocol"
        if word.startswith("--") and words[0] in known:
            flag = word.removeprefix("--no-").removeprefix("--").replace("-", "_")
            assert flag in known[words[0]].__annotations__, f"{command}: no such flag {word}"


def test_every_seed_has_its_table():
    assert {row.values[0] for row in ROWS} == set(SEEDS)
    assert len(ROWS) > 100


@pytest.mark.parametrize(("seed", "cells"), ROWS)
def test_a_row_holds(seed, cells):
    assert seed in SEEDS
    assert len(cells) == len(COLUMNS), f"{len(cells)} cells: {cells}"
    place, says, where, tested, said = cells
    assert place
    assert says
    names = [name for name in code(where) if name.startswith("netdp.")]
    for name in names:
        resolve(name)
    for command in code(where):
        if command.startswith("netdp "):
            check_command(command)
        elif not command.startswith("netdp."):
            assert (ROOT / command.partition("#")[0]).exists(), f"{command} is no name, command or file"
            anchor = command.partition("#")[2]
            assert not anchor or f'id="{anchor}"' in (ROOT / command.partition("#")[0]).read_text("utf-8")
    tests = code(tested)
    for test in tests:
        check_test(test)
    if not (code(where) and tests):
        assert re.match(r"(not built|later|background): \S+", said), "a row without code and test says why"
