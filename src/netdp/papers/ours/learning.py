"""Accuracy against ε: logistic regression on tables, protecting single records or whole parties, δ = 10⁻⁶.

    masked sums        `MaskedDescent` as planned from public numbers alone, simulated in the whole numbers that peers would add up
    trusted curator    the same descent with the noise that a curator needs: an observer among n parties knows its own share, so
                       the parties add n/(n − 1) times that variance
    local DP           the same with every party hiding behind its own noise, in steps as much shorter
    gossip, a walk     the estimators of `netdp.learn` with their usual settings; they protect parties
    not private        logistic regression by scikit-learn

All methods see the same split for the same seed. Tables are standardised with all their rows, which no line accounts for; it
is the same for all.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from netdp import graphs
from netdp.families.masked.descent import MaskedDescent
from netdp.learn.tables import table
from netdp.models.linear import Logistic, prepared
from netdp.models.parties import ModelParties
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Series, Size
from netdp.papers.runs import Work
from netdp.privacy.guarantee import Claim

DELTA = 1e-6

LABEL = {"housing": "price", "cardio": "cardio", "spambase": "spam"}

EPSILONS = (0.3, 1.0, 3.0, 10.0)

RECORDS = 10

METHODS = {
    "record": ("trusted curator", "masked sums", "local DP"),
    "party": ("trusted curator", "masked sums", "gossip", "walk", "local DP"),
}

KINDS = {
    "trusted curator": FigureKind.CENTRAL,
    "masked sums": FigureKind.CERTIFIED,
    "gossip": FigureKind.MEASURED,
    "walk": FigureKind.PUBLISHED,
    "local DP": FigureKind.LOCAL,
    "not private": FigureKind.OTHER,
}

PLURAL = {"record": "records", "party": "parties"}

UNITS = {"record": f"single records, {RECORDS} parties", "party": "whole parties"}


@functools.lru_cache(maxsize=4)
def rows_of(name: str, seed: int) -> Any:
    """Learn from four fifths, test on one: the table's parts, and rows of norm at most 1 with a constant feature."""
    train, test = table(name, LABEL[name]).split(0.2, seed)
    return train, test, prepared(train.X), (train.y + 1) / 2, prepared(test.X), (test.y + 1) / 2


@functools.lru_cache(maxsize=32)
def planned(name: str, unit: str, n: int, epsilon: float) -> MaskedDescent:
    """From public numbers: rows, features, parties."""
    from netdp.families.masked.training import plan_training

    X = rows_of(name, 0)[2]
    records = len(X) if unit == "record" else None
    return plan_training(
        n, X.shape[1], epsilon, DELTA, rows=-(-len(X) // n), unit=unit, graph=graphs.complete(n), records=records
    ).protocol


def accuracy(item: dict[str, Any]) -> float:
    """One method on one table with one seed."""
    name, method, seed = item["table"], item["method"], item["seed"]
    train, test, X, y, tests, truth = rows_of(name, seed)
    if method == "not private":
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(C=100.0, fit_intercept=False, max_iter=2000).fit(X, y)
        return float(fitted.score(tests, truth))
    n, epsilon, unit = item["n"], item["epsilon"], item["unit"]
    if method in ("gossip", "walk"):
        from netdp.learn import GossipLogisticRegression, WalkLogisticRegression

        given: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
        estimator: Any = (
            WalkLogisticRegression(n, **given)
            if method == "walk"
            else GossipLogisticRegression(n, protocol="gossip", **given)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that noise wins is what this picture shows
            return float(estimator.fit(train.X, train.y).score(test.X, test.y))
    from netdp.families.masked.simulate import run as descend

    protocol = planned(name, unit, n, epsilon)
    if method == "trusted curator":
        protocol = protocol.replace(sigma=protocol.sigma * math.sqrt((n - 1) / n))
    elif method == "local DP":
        more = math.sqrt(n - 1)
        protocol = protocol.replace(
            sigma=protocol.sigma * more, step=protocol.step / more, grid=32 * protocol.sum.step
        )  # a coarser grid: noise is drawn faster
    data = ModelParties.deal(Logistic(X.shape[1]), X, y, n, seed)
    theta = descend(protocol, data, np.random.SeedSequence([50, seed]))
    return float(data.model.correct(theta, tests, truth).mean())


def run(size: Size, work: Work) -> Result:
    names = ["spambase"] if size is Size.QUICK else list(LABEL)
    seeds = range(1 if size is Size.QUICK else 5)
    many = 256 if size is Size.QUICK else 1024
    epsilons = (1.0, 10.0) if size is Size.QUICK else EPSILONS
    for name in names:
        rows_of(name, 0)  # DataNotFound before anything is computed
    plain = [{"table": name, "method": "not private", "seed": seed} for name in names for seed in seeds]
    private: list[dict[str, Any]] = [
        {
            "table": name, "unit": unit, "method": method, "epsilon": epsilon, "n": RECORDS if unit == "record" else many,
            "seed": seed,
        }
        for name in names for unit in METHODS for method in METHODS[unit] for epsilon in epsilons for seed in seeds
    ]  # fmt: skip
    scores = work.map(accuracy, plain + private)
    best = dict(zip(names, np.array(scores[: len(plain)]).reshape(len(names), -1).mean(axis=1).tolist(), strict=True))
    found: dict[tuple[str, str, str, float], list[float]] = {}
    for item, score in zip(private, scores[len(plain) :], strict=True):
        found.setdefault((item["table"], item["unit"], item["method"], item["epsilon"]), []).append(score)
    mean = {key: float(np.mean(values)) for key, values in found.items()}

    def panel(name: str, unit: str) -> Panel:
        series = [Series("not private", epsilons, [best[name]] * len(epsilons))]
        for method in METHODS[unit]:
            parts = [found[name, unit, method, epsilon] for epsilon in epsilons]
            bar = (None, None) if len(seeds) == 1 else ([min(part) for part in parts], [max(part) for part in parts])
            series.append(Series(method, epsilons, [float(np.mean(part)) for part in parts], KINDS[method], *bar))
        words = UNITS[unit] if unit == "record" else f"whole parties, {many:,} of them"
        shaded = "" if len(seeds) == 1 else "least to largest of the seeds"
        return Panel(
            f"{name}: {words}", "ε at δ = 10⁻⁶", "accuracy on the test rows", tuple(series), log_x=True, band=shaded
        )

    findings = []
    for name in names:
        for unit in METHODS:
            one = {method: mean[name, unit, method, 1.0] for method in METHODS[unit]}
            gap = max(
                mean[name, unit, "trusted curator", epsilon] - mean[name, unit, "masked sums", epsilon]
                for epsilon in epsilons
                if epsilon >= 1
            )
            findings.append(
                Observation(
                    f"{name}, {PLURAL[unit]}: the curator's accuracy less that of masked sums, largest over ε ≥ 1",
                    gap < 0.03 and one["masked sums"] > one["local DP"],
                    certified=gap,
                    claim=Claim.ESTIMATE,
                    note="at ε = 1: " + ", ".join(f"{method} {value:.3f}" for method, value in one.items()),
                )
            )
    ahead = [
        mean[name, "party", "masked sums", 1.0] - max(mean[name, "party", other, 1.0] for other in ("gossip", "walk"))
        for name in names
    ]
    findings.append(
        Observation(
            "parties, ε = 1: accuracy of masked sums less the better of gossip and a walk, least over tables",
            min(ahead) > -0.01,
            certified=min(ahead),
            claim=Claim.ESTIMATE,
            note="every message of gossip or of a walk shows a noisy model; masked sums show the sum only",
        )
    )
    rows = tuple(
        (name, unit, method, *(mean[name, unit, method, epsilon] for epsilon in epsilons))
        for name in names
        for unit in METHODS
        for method in METHODS[unit]
    )
    return Result(
        settings={"δ": DELTA, "seeds": len(seeds), "parties": f"{RECORDS} (records), {many} (parties)"},
        findings=tuple(findings),
        panels=tuple(panel(name, unit) for name in names for unit in METHODS),
        tables=(
            ResultTable("Accuracy", ("table", "unit", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)), rows),
        ),
    )


EXPERIMENT = Experiment(
    id="ours-learning",
    place="Learning",
    title="accuracy against ε, for records and for parties",
    shows="Parties that add up gradients under pads learn as well as at a trusted curator; gossip, walks and local DP fall behind.",
    run=run,
    quick="6 s; spambase, one seed, 256 parties, two ε",
    full="20 min; three tables, five seeds, 1,024 parties",
)
