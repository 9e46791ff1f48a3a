"""The estimators as they come, against the best that a trusted curator could do: `python benchmarks/estimators.py [case …]`.

defaults     `LogisticRegression(parties)` on tables that are standardised with public statistics: accuracy of the default, of the
             best of a grid of settings of a curator (real-valued Gaussian noise of all n parties; clip, step, clipped row by row or
             as a whole; best *on the test rows*, so an upper bound), not private, majority, seconds to fit
sizes        the same for few and many parties, small and large ε, 3 to 1,000 features, on synthetic tables
unscaled     raw features: as they are, standardised privately without any bounds, within public bounds, standardised privately
             within them, standardised for free (not private)
regression   `LinearRegression`, R², and four classes
skewed       every party has rows of mostly one class

Lengths of steps and iterations were chosen on `price` and `spam`, the least clip, how it falls with the rows of a party, shorter
steps where the edge is small, and momentum also with a look at `cardio`, `longitude` and a survey, on their test rows; the step
of linear regression on `price`. Only the tables of `sizes` had no part in any choice. Cases that need data take NETDP_DATA and
are skipped without it. `--seeds 3`: mean over so many draws of noise.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression as Plain
from sklearn.linear_model import LogisticRegression as PlainLogistic

from measure import few, size
from netdp.errors import DataNotFound
from netdp.graphs.named import data_file
from netdp.learn import LinearRegression, LogisticRegression
from netdp.learn.tables import _numbers
from netdp.models import prepared
from netdp.privacy import gaussian_mu

DELTA = 1e-6
FILES = {
    "price": ("housing/cal_housing.data", ",", "median_house_value"),
    "longitude": ("housing/cal_housing.data", ",", "longitude"),
    "spam": ("spambase/spambase.data", ",", None),
    "cardio": ("cardio/cardio_train.csv", ";", None),
}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def real(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw features, labels 0 and 1, and the number behind the label."""
    file, separator, column = FILES[name]
    header, numbers = _numbers(data_file(file, name, "see design.md"), separator)
    place = len(header) - 1 if column is None else header.index(column)
    target = numbers[:, place]
    keep = [i for i, field in enumerate(header) if i != place and field != "id"]
    labels = target if set(np.unique(target)) <= {0.0, 1.0} else (target < target.mean()).astype(float)
    return numbers[:, keep], labels, target


def survey(features: str, rows: int = 32_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Like a census: ages, hours, weights in the hundred thousands, rare gains, categories as numbers or one column each."""
    r = np.random.default_rng(seed)
    age, weight = np.clip(r.gamma(7, 5.5, rows), 17, 90), r.lognormal(12, 0.5, rows)
    school, hours = np.clip(np.round(r.normal(10, 2.6, rows)), 1, 16), np.clip(r.normal(40, 12, rows), 1, 99)
    married, sex = r.random(rows) < 1 / (1 + np.exp(-(age - 32) / 6)), r.random(rows) < 0.67
    work = np.minimum((r.gamma(2, 2, rows) + (school - 10) / 3).astype(int).clip(0), 13)
    gain = np.where(r.random(rows) < 0.08, np.minimum(r.lognormal(8.5, 1.2, rows), 1e5), 0)
    loss = np.where(r.random(rows) < 0.047, r.normal(1870, 370, rows).clip(0), 0)
    others = [(r.integers(0, 6, rows), 6), (np.minimum(r.geometric(0.8, rows) - 1, 4), 5)]
    others += [(np.minimum(r.geometric(0.6, rows) - 1, 7), 8), (np.minimum(r.geometric(0.9, rows) - 1, 40), 41)]
    score = 0.4 * school + 0.03 * (age - 38) - 0.0012 * (age - 45) ** 2 + 2.3 * married + 0.03 * (hours - 40)
    score += 0.35 * sex + 3e-4 * gain + 6e-4 * loss + 0.12 * (work - 4)
    score -= np.quantile(score, 0.78)  # about 24 % of the rows are positive
    labels = (r.random(rows) < 1 / (1 + np.exp(-1.3 * score))).astype(float)
    numbers = np.column_stack([age, weight, school, gain, loss, hours])
    categories = [(married.astype(int), 2), (sex.astype(int), 2), (work, 14), *others]
    if features == "numbers":
        return np.column_stack([numbers, *(values for values, _ in categories)]), labels
    return np.hstack([numbers, *(np.eye(size)[values] for values, size in categories)]), labels


def synthetic(rows: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features of which a tenth (at least two) decide."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((rows, features)) + 0.5 * r.standard_normal((rows, 1))
    weights = np.zeros(features)
    some = max(2, features // 10)
    weights[:some] = r.normal(0, 3 / math.sqrt(some), some)
    return X, (r.random(rows) < 1 / (1 + np.exp(-X @ weights))).astype(float)


def split(X: np.ndarray, y: np.ndarray, seed: int = 0) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    cut = len(y) - len(y) // 5
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def standardised(tables: Split) -> Split:
    """With statistics of the training rows, taken to be public here."""
    mean, spread = tables[0].mean(axis=0), tables[0].std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    # one millionth off, or the estimator would rightly warn
    return (tables[0] - mean) / spread * (1 + 1e-6), tables[1], (tables[2] - mean) / spread, tables[3]


def curators_best(tables: Split, parties: int, epsilon: float, seeds: int) -> tuple[float, str]:
    """The best test accuracy of a curator's noisy descent over a grid of settings, and which that was."""
    mu = float(gaussian_mu(epsilon, DELTA))
    X, y, tests, truth = prepared(tables[0]), tables[1], prepared(tables[2]), tables[3]
    each = len(y) // parties
    X, signs = X[: each * parties], np.where(y[: each * parties] > 0.5, 1.0, -1.0)
    edge = parties * mu / (2 * math.sqrt(X.shape[1]))
    best = (0.0, "")
    wide = X.size > 5e6  # a smaller grid, or it takes minutes
    clips, ways, iterations = ((0.1, 0.5), (10, 40), 40) if wide else ((0.05, 0.1, 0.2, 0.5), (5, 10, 20, 40), 80)
    for whole, clip, way in product((True, False), clips, ways):
        if each == 1 and whole:
            continue
        step = min(way * edge, 30.0 * iterations) / (iterations * clip)
        scores = []
        for seed in range(seeds):
            model = descent(X * signs[:, None], parties, mu, iterations, clip, step, whole, np.random.default_rng(seed))
            scores.append(float(((tests @ model > 0) == (truth > 0.5)).mean()))
        best = max(best, (float(np.mean(scores)), f"{'party' if whole else 'row'} clip {clip:g}, way {way}"))
    return best


def descent(
    rows: np.ndarray,
    n: int,
    mu: float,
    iterations: int,
    clip: float,
    step: float,
    whole: bool,
    rng: np.random.Generator,
) -> np.ndarray:
    """A curator's descent; `rows` carry the sign of their label. The later half is averaged."""
    d = rows.shape[1]
    noise = math.sqrt(iterations) * 2 * clip / (n * mu)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
    model, total = np.zeros(d), np.zeros(d)
    for t in range(iterations):
        slopes = 1 / (1 + np.exp(np.minimum(rows @ model, 500)))
        if whole:
            means = (rows * slopes[:, None]).reshape(n, -1, d).mean(axis=1)
            pull = (means * np.minimum(1, clip / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12))).mean(
                axis=0
            )
        else:
            pull = rows.T @ np.minimum(slopes, clip / lengths) / len(rows)
        model = model + step * (pull + noise * rng.standard_normal(d))
        if 2 * t >= iterations:
            total += model
    return total


def ours(tables: Split, seeds: int, **settings: Any) -> tuple[float, float, bool]:
    """Mean accuracy (or R²) of the estimator, seconds of a fit, and whether it warned of noise."""
    kind = LinearRegression if "target_bounds" in settings else LogisticRegression
    scores, begun, warned = [], time.perf_counter(), False
    for seed in range(seeds):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = kind(random_state=seed, **settings).fit(tables[0], tables[1])
        warned |= any("noise will win" in str(warning.message) for warning in said)
        scores.append(model.score(tables[2], tables[3]))
    return float(np.mean(scores)), (time.perf_counter() - begun) / seeds, warned


def line(name: str, tables: Split, parties: int, epsilon: float, seeds: int) -> None:
    scaled = standardised(tables)
    party, seconds, warned = ours(scaled, seeds, parties=parties, epsilon=epsilon)
    record, *_ = ours(scaled, seeds, parties=parties, epsilon=epsilon, unit="record")
    curator, which = curators_best(scaled, parties, epsilon, seeds)
    plain = PlainLogistic(C=1e4, max_iter=3000).fit(scaled[0], scaled[1]).score(scaled[2], scaled[3])
    most = max(tables[3].mean(), 1 - tables[3].mean())
    print(
        f"{name:<18} {tables[0].shape[1]:>5} {parties:>6} {epsilon:>5g}  {party:.3f}{'!' if warned else ' '} {curator:.3f} "
        f"{party - curator:+.3f}   {record:.3f}   {plain:.3f}   {most:.3f}  {seconds:>5.1f} s   {which}",
        flush=True,
    )


HEAD = (
    f"{'table':<18} {'feat.':>5} {'parties':>6} {'ε':>5}  ours   curator's best   records  plain   majority  fit      best\n"
    f"{'':<37}  (! noise was announced)"
)


def tables_there() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray | None]]:
    for name in few(FILES):
        try:
            yield (name, *real(name))
        except DataNotFound as problem:
            print(f"{name}: skipped, {problem}")


def defaults(seeds: int) -> None:
    print(HEAD)
    for name, X, y, _ in tables_there():
        for parties, epsilon in ((2048, 1.0), (512, 1.0), (512, 4.0), (64, 4.0)):
            line(name, split(X, y), parties, epsilon, seeds)
    for kind in ("numbers", "columns"):
        for parties, epsilon in ((2048, 1.0), (256, 1.0)):
            line(f"survey, {kind}", split(*survey(kind)), parties, epsilon, seeds)


def sizes(seeds: int) -> None:
    print(HEAD)
    cases = (
        (20_000, 3, 16, 10.0), (20_000, 3, 16, 1.0), (20_000, 10, 10_000, 1.0), (20_000, 10, 10_000, 0.1),
        (20_000, 100, 1_000, 10.0), (20_000, 100, 4_000, 1.0), (20_000, 1_000, 4_000, 1.0), (8_000, 1_000, 4_000, 10.0),
        (20_000, 20, 200, 0.1), (20_000, 20, 100, 3.0),
    )  # fmt: skip
    for rows, features, parties, epsilon in size(cases, quick=((400, 3, 16, 10.0),)):
        line(f"synthetic, {rows // parties} rows", split(*synthetic(rows, features)), parties, epsilon, seeds)


def unscaled(seeds: int) -> None:
    print(
        f"{'table':<18} {'parties':>7} {'unit':<7} as they are   private   bounds   bounds + private   standardised for free"
    )
    for name, X, y in [(name, X, y) for name, X, y, _ in tables_there()] + [
        ("survey, numbers", *survey("numbers")),
        ("survey, columns", *survey("columns")),
    ]:
        tables = split(X, y)
        low, high = (np.quantile(X, q, axis=0) for q in (0.001, 0.999))  # as if somebody knew them
        bounds = np.column_stack([low, np.where(high > low, high, low + 1)])
        for unit in ("party", "record"):
            common = {"parties": 2048, "epsilon": 1.0, "unit": unit}
            raw, alone, within, private, free = (
                ours(given, seeds, **common, **more)[0]
                for given, more in (
                    (tables, {}),
                    (tables, {"standardise": "private"}),
                    (tables, {"bounds": bounds}),
                    (tables, {"bounds": bounds, "standardise": "private"}),
                    (standardised(tables), {}),
                )
            )
            print(
                f"{name:<18} {2048:>7} {unit:<7} {raw:.3f}         {alone:.3f}     {within:.3f}    {private:.3f}"
                f"              {free:.3f}",
                flush=True,
            )


def regression(seeds: int) -> None:
    print(f"{'price, ε':<10} {'parties':>7} {'unit':<7} R²: ours  plain    four classes: ours  plain")
    for _, X, _, target in [found for found in tables_there() if found[0] == "price"]:
        numbers = standardised(split(X, target))
        quarters = standardised(split(X, np.searchsorted(np.quantile(target, [0.25, 0.5, 0.75]), target).astype(float)))
        plain = Plain().fit(*numbers[:2]).score(*numbers[2:])
        plain4 = PlainLogistic(C=1e3, max_iter=3000).fit(*quarters[:2]).score(*quarters[2:])
        for parties, epsilon, unit in product((1024, 128), (1.0, 4.0), ("party", "record")):
            common = {"parties": parties, "epsilon": epsilon, "unit": unit}
            one, *_ = ours(numbers, seeds, target_bounds=(0, 500_001), **common)
            four, *_ = ours(quarters, seeds, **common)
            print(
                f"{epsilon:<10g} {parties:>7} {unit:<7}     {one:.3f}  {plain:.3f}                  {four:.3f}  {plain4:.3f}",
                flush=True,
            )


def skewed(seeds: int) -> None:
    """Rows sorted by label with some noise, then dealt out in that order: the estimator deals at random, so this uses its parts."""
    from netdp.families.masked.simulate import run
    from netdp.families.masked.training import plan_training
    from netdp.models import Logistic
    from netdp.models.parties import ModelParties

    print(f"{'table':<18} {'parties':>7}   dealt at random   mostly one class each   one class each")
    cases = [(name, X, y) for name, X, y, _ in tables_there()] + [("survey, numbers", *survey("numbers"))]
    for name, X, y in cases:
        X, y, tests, truth = standardised(split(X, y))
        n = min(1024, len(y) // 4)
        protocol = plan_training(n, X.shape[1] + 1, 1.0, DELTA, rows=len(y) // n).protocol
        found = []
        for mixed in (100.0, 0.5, 0.0):
            scores = []
            for seed in range(seeds):
                order = np.argsort(y + mixed * np.random.default_rng(seed).standard_normal(len(y)), kind="stable")
                parts = np.array_split(order, n)
                rows = prepared(X)
                data = ModelParties(Logistic(rows.shape[1]), [rows[p] for p in parts], [y[p] for p in parts])
                theta = run(protocol, data, np.random.SeedSequence(seed))
                scores.append(float(((prepared(tests) @ theta > 0) == (truth > 0.5)).mean()))
            found.append(float(np.mean(scores)))
        print(
            f"{name:<18} {n:>7}   {found[0]:.3f}             {found[1]:.3f}                   {found[2]:.3f}",
            flush=True,
        )


CASES = {case.__name__: case for case in (defaults, sizes, unscaled, regression, skewed)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--seeds", type=int, default=size(3, quick=1))
    options = parser.parse_args()
    for case in options.cases or size(list(CASES), quick=["sizes"]):
        print(f"\n{case}")
        CASES[case](options.seeds)
