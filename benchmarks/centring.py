"""Scaling before training: `python benchmarks/centring.py [case …] [--seeds K] [--table NAME]`. Needs NETDP_DATA and scikit-learn.

tables   accuracy at ε = 1, δ = 1e-6, unit record: by public ranges alone; after a private scaling within the same total, with
         several shares of μ² for it; of a curator who is told the true means and deviations; and not private
peers    the same two studies on real processes, against ranges alone: one run each, ε counted by the ledger

The ranges are what everybody knows of the columns, not what the rows hold: "fair" ones that were written with some care, and
"wide" ones that are merely safe (a percentage lies between 0 and 100). ± is the standard deviation over seeds; every seed has its
own split, a fifth of the rows for the test, and its own dealing out to the parties.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from measure import few, size
from netdp import graphs
from netdp.families.masked.learning import standardised
from netdp.families.masked.simulate import run
from netdp.families.masked.training import composed, plan_training, scaling_sum
from netdp.graphs.named import data_file
from netdp.learn.scaling import Scaling
from netdp.learn.tables import _numbers
from netdp.models import Logistic, prepared
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import FloatArray
from netdp.peers.study.planning import SHARE, scaling_epsilon
from netdp.privacy import gaussian_epsilon, gaussian_mu
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.calibration import calibrate

EPSILON, DELTA = 1.0, 1e-6
SHARES = (0.01, 0.02, 0.05, SHARE, 0.2, 0.4)
CARDIO = {"age": (10000, 25000), "height": (140, 200), "weight": (40, 130), "ap_hi": (80, 200), "ap_lo": (50, 130)}
WIDE_CARDIO = {"age": (0, 45000), "height": (0, 300), "weight": (0, 500), "ap_hi": (0, 500), "ap_lo": (0, 500)}
HOUSING = {"latitude": (32, 42), "housing_median_age": (0, 60), "total_rooms": (0, 40000), "total_bedrooms": (0, 7000),
           "population": (0, 40000), "households": (0, 7000), "median_income": (0, 16)}  # fmt: skip
TABLES = {
    "cardio, fair": ("cardio", "cardio", 5), "cardio, wide": ("cardio", "cardio", 5), "housing price": ("housing", "price", 10),
    "housing longitude": ("housing", "longitude", 10), "spambase, fair": ("spambase", "spam", 10),
    "spambase, wide": ("spambase", "spam", 10),
}  # fmt: skip


@lru_cache(maxsize=2)
def table(name: str) -> tuple[list[str], FloatArray, FloatArray, FloatArray, FloatArray]:
    """Names of the columns of numbers, the numbers, their ranges (f, 2), other columns as models read them, and labels."""
    which, label, _ = TABLES[name]
    file = {
        "cardio": "cardio/cardio_train.csv",
        "housing": "housing/cal_housing.data",
        "spambase": "spambase/spambase.data",
    }[which]
    header, rows = _numbers(data_file(file, which, "see docs"), ";" if which == "cardio" else ",")
    column = {field: rows[:, i] for i, field in enumerate(header)}
    rest = np.zeros((len(rows), 0))
    if which == "cardio":
        spans: dict[str, tuple[float, float]] = dict(WIDE_CARDIO if "wide" in name else CARDIO)
        flags = [2 * column["gender"] - 3, *(2 * column[field] - 1 for field in ("smoke", "alco", "active"))]
        rest = np.column_stack(
            [*flags, *(1.0 * (column[field] == k) for field in ("cholesterol", "gluc") for k in (1, 2, 3))]
        )
        y = column["cardio"]
    elif which == "housing":
        chosen = column["median_house_value"] > 200_000 if label == "price" else column["longitude"] < -119.57
        y = chosen.astype(np.float64)
        other = ("longitude", (-125, -114)) if label == "price" else ("median_house_value", (0, 500_001))
        spans = {other[0]: other[1], **HOUSING}
    else:
        ends = [100.0] * 54 + [1e3, 1e4, 2e4] if "wide" in name else [10.0] * 54 + [1e2, 1e3, 1e4]
        spans, y = {field: (0.0, end) for field, end in zip(header, ends, strict=False)}, rows[:, 57]
    X = np.column_stack([column[field] for field in spans])
    return list(spans), X, np.array(list(spans.values()), dtype=np.float64), rest, y


@lru_cache(maxsize=200)
def planned(n: int, d: int, features: int, records: int, share: float | None) -> tuple[MaskedSum | None, MaskedDescent]:
    """The sum before training, if there is one, and training, such that both together keep (ε, δ)."""
    graph, rows = graphs.complete(n), -(-records // n)
    if share is None:
        return None, plan_training(
            n, d, EPSILON, DELTA, rows=rows, unit="record", graph=graph, records=records
        ).protocol
    first = calibrate(
        scaling_sum(graph, features, "record", rows), scaling_epsilon(EPSILON, DELTA, share), DELTA, colluders=1
    )
    own = float(gaussian_epsilon(math.sqrt(1 - share) * float(gaussian_mu(EPSILON, DELTA)), DELTA))
    while True:
        second = plan_training(n, d, own, DELTA, rows=rows, unit="record", graph=graph, records=records).protocol
        if float(np.max(composed(second, [first], 1).epsilon(DELTA))) <= EPSILON:
            return first, second
        own *= 0.9995


def accuracy(name: str, how: str, seed: int, share: float | None = None) -> float:
    """On a fifth of the rows. how: "ranges", "private", "told" (a curator's) or "plain" (not private)."""
    _, X, spans, rest, y = table(name)
    n = TABLES[name][2]
    order = np.random.default_rng([1, seed]).permutation(len(y))
    train, test = order[: round(0.8 * len(y))], order[round(0.8 * len(y)) :]
    scaling = Scaling(spans[:, 0], spans[:, 1])
    first, second = planned(n, X.shape[1] + rest.shape[1] + 1, X.shape[1], len(train), share)
    if first is not None:
        scaling = standardised(scaling, first, [X[part] for part in np.array_split(train, n)], [3, seed])
    Z = scaling.applied(X)
    if how in ("told", "plain"):
        Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    rows = prepared(np.hstack([Z, rest]))
    if how == "plain":
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(C=100.0, fit_intercept=False, max_iter=2000).fit(rows[train], y[train])
        return float(fitted.score(rows[test], y[test]))
    if how == "told":  # a curator needs no noise for a party that colludes
        second = second.replace(sigma=second.sigma * math.sqrt((n - 1) / n))
    data = ModelParties.deal(Logistic(rows.shape[1]), rows[train], y[train], n, seed)
    theta = run(second, data, np.random.SeedSequence([5, seed]))
    return float(data.model.correct(theta, rows[test], y[test]).mean())


def tables(seeds: int, only: str) -> None:
    """One line a table and method."""
    for name in few(name for name in TABLES if only in name):
        for how, share in few(
            [("ranges", None), *(("private", share) for share in SHARES), ("told", None), ("plain", None)], quick=2
        ):
            found = [accuracy(name, how, seed, share) for seed in range(seeds)]
            said = f"private, {share:.0%}" if share else how
            print(f"{name:18} {said:14} {np.mean(found):.4f} ± {np.std(found, ddof=len(found) > 1):.4f}", flush=True)


def netdp(*words: Any, folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "netdp", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def peers(name: str = "housing price") -> None:
    """Five processes: by ranges alone; and after a scaling study, with one total."""
    from netdp.learn import load_model

    names, X, spans, _, y = table(name)
    n, order = 5, np.random.default_rng([1, 0]).permutation(len(y))
    train, test = order[: round(0.8 * len(y))], order[round(0.8 * len(y)) :]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "data").mkdir()
        for u, part in enumerate(np.array_split(train, n)):
            with (folder / "data" / f"p{u:02}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow([*names, "label"])
                writer.writerows([*map(repr, X[i].tolist()), int(y[i])] for i in part)
        lines = [f"{field} = [{lo}, {hi}]" for field, (lo, hi) in zip(names, spans.tolist(), strict=True)]
        (folder / "schema.toml").write_text(
            'label = "label"\nclasses = ["0", "1"]\n[features]\n' + "\n".join(lines) + "\n"
        )
        who = ("--n", n, "--max-records", 4000, "--delta", DELTA)
        with_records = (*who, "--records", len(train), "--held-out", 0)
        netdp("study", "new", "ranges", "--schema", "schema.toml", *with_records, "-o", "a.toml", folder=folder)
        netdp("up", "a.toml", "--data", "data", "--out", "a", folder=folder)
        netdp(
            "study",
            "new",
            "where",
            "--task",
            "scaling",
            "--schema",
            "schema.toml",
            *who,
            "--total",
            1,
            "-o",
            "s.toml",
            folder=folder,
        )
        (folder / "s.json").write_text(netdp("up", "s.toml", "--data", "data", "--json", folder=folder))
        netdp("study", "schema", "schema.toml", "--scaled-by", "s.json", "-o", "scaled.toml", folder=folder)
        netdp(
            "study",
            "new",
            "scaled",
            "--schema",
            "scaled.toml",
            *with_records,
            "--total",
            1,
            "-o",
            "b.toml",
            folder=folder,
        )
        netdp("up", "b.toml", "--data", "data", "--out", "b", folder=folder)
        for what, place in (("ranges alone", "a"), ("scaled first", "b")):
            model = load_model(folder / place)
            rows = [dict(zip(names, row, strict=True)) for row in X[test].tolist()]
            right = float((model.predict(rows).astype(float) == y[test]).mean())
            terms = json.loads((folder / place / "model.json").read_text())["privacy"]
            total = terms.get("scaled", {}).get("total", terms["certified"])
            print(
                f"{name}, {n} real processes, {what}: {right:.4f} at a certified total of ε = {total:.4f}", flush=True
            )


def main() -> None:
    """Run what was asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("cases", nargs="*", default=few(["tables", "peers"]), help="tables, peers")
    asked.add_argument("--seeds", type=int, default=size(5, quick=1))
    asked.add_argument("--table", default="", help="only tables whose name has this in it")
    given = asked.parse_args()
    for case in given.cases:
        tables(given.seeds, given.table) if case == "tables" else peers()


if __name__ == "__main__":
    main()
