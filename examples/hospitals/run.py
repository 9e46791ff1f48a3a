"""Five hospitals, one model, no curator: from a table to a model card with one command.

    python examples/hospitals/run.py [FOLDER]

The rows of the cardiovascular disease table (NETDP_DATA/cardio/cardio_train.csv) are dealt out to five hospitals of different
sizes, each with a file of its own. If that table is not here, an invented one is used, and said to be. Every hospital's policy
allows epsilon = 1 about any patient, in all. Two studies share that, each run by five processes of this machine with keys and
ledgers of their own: a tenth of the budget finds centre and scale of the columns, the rest trains the model on columns scaled by
them. The commands of netdp are printed as they are run. What is in FOLDER in the end: data/, scaling.toml and its result
scaling.json, scaled.toml, study.toml, homes/, model/ with MODEL_CARD.md.
"""

from __future__ import annotations

import csv
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

from netdp.errors import DataNotFound
from netdp.graphs.named import data_file

HERE = Path(__file__).parent
HOSPITALS = {"alder": 0.32, "birch": 0.25, "cedar": 0.20, "elm": 0.13, "fir": 0.10}
COLUMNS = (
    "age",
    "gender",
    "height",
    "weight",
    "ap_hi",
    "ap_lo",
    "cholesterol",
    "gluc",
    "smoke",
    "alco",
    "active",
    "cardio",
)
MOST = 25_000
"""No hospital has more patients, as everybody knows."""
EPSILON, DELTA = 1.0, 1e-6
"""What all of it together may reveal about any patient, at most, to any one of the other hospitals."""
POLICY = f"""\
# What this hospital allows, over all studies that it ever joins.
delta = {DELTA!r}
unit = "record"

[[limit]]
against = 1
per = "total"
epsilon = {EPSILON!r}
"""


def patients() -> list[dict[str, str]]:
    """The rows of the cardio table; invented ones if it is not here."""
    try:
        path = data_file("cardio/cardio_train.csv", "cardio", "the cardiovascular disease data set, cardio_train.csv")
    except DataNotFound as absent:
        print(f"THE ROWS ARE INVENTED: {absent}\n")
        return invented(20_000)
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: row[name] for name in COLUMNS} for row in csv.DictReader(file, delimiter=";")]


def invented(count: int) -> list[dict[str, str]]:
    """Rows that look like the table, and say nothing about anybody."""
    rng = np.random.default_rng(5)
    age = rng.uniform(11_000, 24_000, count)
    pressure = rng.normal(126, 16, count)
    numbers = {
        "age": age, "gender": rng.integers(1, 3, count), "height": rng.normal(165, 8, count), "weight": rng.normal(74, 14, count),
        "ap_hi": pressure, "ap_lo": pressure * 0.65, "cholesterol": rng.integers(1, 4, count), "gluc": rng.integers(1, 4, count),
        "smoke": rng.integers(0, 2, count), "alco": rng.integers(0, 2, count), "active": rng.integers(0, 2, count),
    }  # fmt: skip
    score = (age - 19_500) / 4_000 + (pressure - 126) / 10 + 0.5 * (numbers["cholesterol"] - 2)
    ill = rng.random(count) < 1 / (1 + np.exp(-score))
    columns = {name: [f"{x:.0f}" for x in values] for name, values in numbers.items()} | {
        "cardio": [str(int(x)) for x in ill]
    }
    return [{name: columns[name][i] for name in COLUMNS} for i in range(count)]


def deal(rows: list[dict[str, str]], folder: Path) -> dict[str, int]:
    """Every row to one hospital, into a file of its own; a real hospital has only that one."""
    folder.mkdir(parents=True)
    whose = np.random.default_rng(7).choice(list(HOSPITALS), size=len(rows), p=list(HOSPITALS.values()))
    sizes = {}
    for name in HOSPITALS:
        own = [row for row, owner in zip(rows, whose, strict=True) if owner == name]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(own)
        sizes[name] = len(own)
    return sizes


def netdp(*words: str | Path, into: Path | None = None) -> None:
    """Run a command of netdp, as one would type it; what it prints may go into a file."""
    typed = [str(word) for word in words]
    print(f"$ netdp {shlex.join(typed)}" + (f" > {shlex.quote(str(into))}" if into else ""), flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "netdp", *typed], check=False, stdout=None if into is None else subprocess.PIPE
    )
    if done.returncode:
        sys.exit(done.returncode)
    if into is not None:
        into.write_bytes(done.stdout)
    print(flush=True)


def main(folder: Path) -> None:
    """From the table to the model card."""
    if folder.exists():
        sys.exit(f"{folder} is there already; give another folder: python {sys.argv[0]} FOLDER")
    rows = patients()
    sizes = deal(rows, folder / "data")
    print(
        f"{len(rows):,} patients of {len(sizes)} hospitals: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}\n"
    )
    names, homes = folder / "hospitals.txt", folder / "homes"
    names.write_text("\n".join(HOSPITALS) + "\n", "utf-8")
    for name in HOSPITALS:
        (homes / name).mkdir(mode=0o700, parents=True)
        (homes / name / "policy.toml").write_text(POLICY, "utf-8")
    who = ("--parties", names, "--max-records", str(MOST), "--total", f"{EPSILON:g}", "--delta", f"{DELTA:g}")
    first, found, scaled, second = (
        folder / name for name in ("scaling.toml", "scaling.json", "scaled.toml", "study.toml")
    )
    netdp(
        "study",
        "new",
        "Where the columns lie",
        "--task",
        "scaling",
        "--schema",
        HERE / "schema.toml",
        *who,
        "-o",
        first,
    )
    netdp("up", first, "--data", folder / "data", "--folder", homes, "--json", into=found)
    netdp("study", "schema", HERE / "schema.toml", "--scaled-by", found, "-o", scaled)
    netdp(
        "study", "new", "Heart disease in five hospitals", "--schema", scaled, *who, "--records", str(round(len(rows), -3)),
        "-o", second,
    )  # fmt: skip
    netdp("up", second, "--data", folder / "data", "--folder", homes, "--out", folder / "model")
    netdp("ledger", "show", "--home", homes / next(iter(HOSPITALS)))
    print((folder / "model" / "MODEL_CARD.md").read_text("utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("hospitals-run"))
