"""The documents' own learning algorithms beside masked sums: `python benchmarks/descents.py [--epsilon E] [--seeds K] [--quick]`.

One table, one promise about whole parties at δ = 1e-6, six ways to train a logistic regression: a trusted curator's descent, local
DP, Muffliato-GD and -SGD (gossip descent), SGD on a walking token, and a masked descent. Every way without a trusted curator is
planned as a study (`netdp study new`), run once as real processes (bytes and seconds are theirs), and K times in simulation, in
which the same numbers are computed (tests hold the two against each other): accuracy on a fifth of the rows, mean ± deviation over
seeds, each with a split and a dealing of its own. ε is the certified loss: of the pair that loses most, the mean of all pairs.

With NETDP_DATA: housing, whether a block lies west of longitude −119.57. Without it, or with --quick: rows that are drawn.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from netdp import account, local_dp, trusted_curator
from netdp.errors import DataNotFound
from netdp.graphs.named import data_file
from netdp.learn.tables import _numbers
from netdp.models import Logistic
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import FloatArray
from netdp.peers.launch import up
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study, Training
from netdp.protocols.simulation import trainers
from netdp.protocols.training import train

DELTA = 1e-6
SPANS = {
    "latitude": (32, 42), "housing_median_age": (0, 60), "total_rooms": (0, 40000), "total_bedrooms": (0, 7000),
    "population": (0, 40000), "households": (0, 7000), "median_income": (0, 16), "median_house_value": (0, 500_001),
}  # fmt: skip
WAYS = {
    "Muffliato-GD": {"kind": "gossip-descent"},
    "Muffliato-SGD": {"kind": "gossip-descent", "batch": 16},
    "walk SGD": {"kind": "walk-descent", "batch": 16},
    "masked": {"kind": "masked-descent"},
}


def table(quick: bool) -> tuple[Training, FloatArray, FloatArray, str]:
    """What is asked, raw columns, labels, and what it is called."""
    try:
        if quick:
            raise DataNotFound("not asked for")
        header, rows = _numbers(data_file("housing/cal_housing.data", "housing", "see docs"), ",")
        column = {field: rows[:, i] for i, field in enumerate(header)}
        X = np.column_stack([column[name] for name in SPANS])
        y, spans, name = (column["longitude"] < -119.57).astype(float), SPANS, "housing"
    except DataNotFound:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (600 if quick else 6000, 4))
        y = (X @ [1.0, -1.0, 0.5, 0.0] + 0.2 * rng.standard_normal(len(X)) > 0).astype(float)
        spans, name = {f"x{i}": (-1, 1) for i in range(4)}, "rows that were drawn"
    features = [{"name": field, "range": list(map(float, span))} for field, span in spans.items()]
    task = Training(features=features, label="label", classes=["no", "yes"], unit="party", min_records=1)
    return task, X, y, name


def dealt(
    task: Training, X: FloatArray, y: FloatArray, n: int, seed: int
) -> tuple[ModelParties, FloatArray, FloatArray, Any]:
    """Parties with four fifths of the rows, the rest as models read it, and whose rows are which."""
    order = np.random.default_rng([1, seed]).permutation(len(y))
    learn, test = order[: round(0.8 * len(y))], order[round(0.8 * len(y)) :]
    spans = np.array([feature.range for feature in task.features])
    scaled = np.clip((2 * X - spans.sum(axis=1)) / np.diff(spans, axis=1)[:, 0], -1, 1)
    model = Logistic(X.shape[1] + 1)
    parts = np.array_split(learn, n)
    parties = ModelParties(model, [model.prepared(scaled[part]) for part in parts], [y[part] for part in parts])
    return parties, model.prepared(scaled[test]), y[test], parts


def simulated(protocol: Any, kept: str, parties: ModelParties, seed: int) -> FloatArray:
    """Party 0's model."""
    if protocol.kind == "walk-descent":
        found: FloatArray = trainers(protocol, parties, seed).model
        return found
    if protocol.kind == "masked-descent":
        parties = ModelParties(parties.model, parties.Xs, parties.ys, clipping="whole")
        return train(protocol, parties, seed).models[0]
    later: list[FloatArray] = []
    last = train(protocol, parties, seed, after=lambda t, models: later.append(models[0].copy())).models[0]
    return last if kept == "last" else np.mean(later[len(later) // 2 :], axis=0)


def pairs(protocol: Any) -> tuple[float, float]:
    """Certified ε of the pair that loses most, and the mean over all pairs."""
    found = np.array([account(protocol, [v]).epsilon(DELTA) for v in range(protocol.n)])
    return float(np.nanmax(found)), float(np.nanmean(found))


def on_peers(study: Study, X: FloatArray, y: FloatArray, parts: Any) -> tuple[FloatArray, float, float]:
    """The model of the first party of one real run, bytes that a party sent, seconds from all listening."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(folder / "data.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["party", *(one.name for one in study.task.features), "label"])  # type: ignore[union-attr]
            for party, part in zip(study.names, parts, strict=True):
                out.writerows([party, *map(float, X[row]), "yes" if y[row] else "no"] for row in part)
        settled, path = settle(study, folder)
        frames = folder / "frames"
        frames.mkdir()
        result = up(settled, path, deal(settled, folder / "data.csv", folder), folder, record=frames)
        reasons = {told["reason"] for told in result.outcomes.values() if not told["ok"]}
        assert len(result.answered) == study.n, (result.gone, result.notes, reasons)
        sent = sum(file.stat().st_size for file in frames.glob("*.frames")) / study.n
        total = result.answered[study.names[0]]["total"]
        return np.array(total), sent, max(result.seconds.values())


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--epsilon", type=float, default=10.0)
    asked.add_argument("--parties", type=int, default=16)
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--graph", default=None, help="of gossip; the walk and masked sums are on the complete graph")
    asked.add_argument("--no-peers", action="store_true", help="simulation alone")
    asked.add_argument("--quick", action="store_true", help="few drawn rows, six parties, one seed")
    given = asked.parse_args()
    n, seeds = (6, 1) if given.quick else (given.parties, given.seeds)
    task, X, y, name = table(given.quick)
    graph = given.graph or (f"ring:{n}" if n < 8 else f"regular:{n},4,seed=1")
    model = Logistic(X.shape[1] + 1)
    print(
        f"{name}: {len(y):,} rows, {n} parties, {model.size} numbers; promised ε = {given.epsilon:g} about a whole party"
    )
    print(f"gossip on {graph}\n")
    print(
        f"{'way':<15}{'accuracy':>16}{'ε worst':>9}{'ε mean':>8}{'real run':>10}{'KB/party':>10}{'seconds':>9}{'planned in':>12}"
    )

    def row(way: str, accuracies: list[float], eps: tuple[float, float], rest: str = "") -> None:
        mean, off = np.mean(accuracies), np.std(accuracies)
        print(f"{way:<15}{mean:>9.3f} ± {off:.3f}{eps[0]:>9.2f}{eps[1]:>8.2f}{rest}", flush=True)

    def right(theta: FloatArray, test: FloatArray, labels: FloatArray) -> float:
        return float(model.correct(theta, test, labels).mean())

    splits = [dealt(task, X, y, n, seed) for seed in range(seeds)]
    names = [f"p{u:02}" for u in range(n)]
    more = {"iterations": 20} if given.quick else {}
    masked: Any = Study.plan(
        "baseline",
        task,
        names,
        graph=f"complete:{n}",
        epsilon=given.epsilon,
        delta=DELTA,
        kind="masked-descent",
        **more,
    ).protocol()
    # the masked descent, if its sums had a curator's noise, or if everybody published its own gradients
    for way, shares, baseline in (("curator", (n - 1) / n, trusted_curator), ("local DP", n - 1.0, local_dp)):
        protocol = masked.replace(sigma=masked.sigma * np.sqrt(shares), grid=None, modulus=None)
        eps = float(baseline(protocol).epsilon(DELTA).max())
        scores = [
            right(simulated(protocol, "", parties, seed), *rest[:2]) for seed, (parties, *rest) in enumerate(splits)
        ]
        row(way, scores, (eps, eps))
    for way, options in WAYS.items():
        began = time.perf_counter()
        chosen = dict(options) | {"graph": graph if "gossip" in options["kind"] else f"complete:{n}"}
        if given.quick:
            chosen |= {"steps": 30} if options["kind"] == "walk-descent" else {"iterations": 20}
        study = Study.plan("descents", task, names, epsilon=given.epsilon, delta=DELTA, **chosen)
        study = study.replace(timing={"gather": 1200.0, "patience": 300.0})  # of a machine that does other things, too
        took, protocol = time.perf_counter() - began, study.protocol()
        kept = getattr(study.settings, "average", "last")
        scores = [
            right(simulated(protocol, kept, parties, seed), *rest[:2]) for seed, (parties, *rest) in enumerate(splits)
        ]
        rest = ""
        if not given.no_peers:
            theta, sent, seconds = on_peers(study, X, y, splits[0][3])
            rest = f"{right(theta, *splits[0][1:3]):>10.3f}{sent / 1e3:>10.1f}{seconds:>9.1f}"
        row(way, scores, pairs(protocol), f"{rest}{took:>10.1f} s")


if __name__ == "__main__":
    main()
