"""Every benchmark starts: each one in its quickest form (--quick), in a process of its own, as its reader would start it."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from netdp.errors import DataNotFound
from netdp.graphs.named import data_file

FOLDER = Path(__file__).parents[1] / "benchmarks"
TEXTS = {file.stem: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.py"))}
PROGRAMS = [name for name, text in TEXTS.items() if '\nif __name__ == "__main__":\n' in text]
TABLES = {"centring", "learning", "learning_predicted", "poisoning", "walk_learning"}
"""Those that have nothing to show without tables of NETDP_DATA."""
PACKAGES = {
    "together": ("torch", "dp_accounting"),
    "sampled": ("dp_accounting",),
    "together_flower": ("torch", "flwr"),
    "training_rounds": ("torch",),
}
ARGUMENTS = {"together_flower": ("2", "2")}  # parties and rounds; `together` starts it, with another interpreter
PATIENCE = 600.0


def reason_why_not(name):
    """What the benchmark needs and this machine lacks, if anything."""
    for package in PACKAGES.get(name, ()):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    if name in TABLES:
        try:
            data_file("housing/cal_housing.data", "housing", "it is a table of NETDP_DATA")
            data_file("cardio/cardio_train.csv", "cardio", "it is a table of NETDP_DATA")
        except DataNotFound as absent:
            return str(absent)
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_benchmark_starts(name, tmp_path):
    if (reason := reason_why_not(name)) is not None:
        pytest.skip(reason)
    one = dict.fromkeys(("NETDP_WORKERS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", *ARGUMENTS.get(name, ("--quick",))],
        cwd=tmp_path, env=os.environ | one, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.strip(), "it shows nothing"


def test_what_is_no_program_helps_one():
    for name in TEXTS.keys() - set(PROGRAMS):
        users = [other for other, text in TEXTS.items() if re.search(rf"(from|import) {name}\b", text)]
        assert users, f"benchmarks/{name}.py is neither a program nor imported by one"


def test_every_benchmark_of_make_bench_is_there():
    named = re.findall(r"benchmarks/(\w+)\.py", (FOLDER.parent / "Makefile").read_text(encoding="utf-8"))
    assert named
    assert set(named) <= set(PROGRAMS)


def test_every_program_has_a_quick_form():
    """By the one flag of `measure`, or a flag of its own; but for what is started by another program alone."""
    lacking = [
        name
        for name in PROGRAMS
        if not re.search(r"^from measure import .*\b(size|few|QUICK)\b|add_argument\(\s*\"--quick\"", TEXTS[name], re.M)
    ]
    assert lacking == ["together_flower"]


def test_no_mutant_of_the_safety_lines_is_lost():
    """Every line that `benchmarks/safety_mutants.py` weakens is there once, and so are the tests that should notice."""
    done = subprocess.run(
        [sys.executable, FOLDER / "safety_mutants.py", "--list"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
