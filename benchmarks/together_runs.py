"""One run of one method on one data set with one seed, for the tables of `together.py`; results may be kept in a folder.

Every method gets the same split and the same public start for the same seed, so methods can be compared seed by seed.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from netdp import graphs
from netdp.learn import table
from netdp.models import Logistic, prepared
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import FloatArray
from netdp.protocols import MaskedDescent, calibrate
from together_curator import apart, multiplier, opacus
from together_data import PIXELS, cnn, cnn_model, mnist

PARTIES = 10
DELTA = 1e-5
CNN = {1.0: 60, 3.0: 100, 8.0: 120}
"""Iterations at each ε, those of design.md; q = .064, clip 0.1, momentum 0.9, step 0.5/clip."""


class Kept:
    """Results by name, in a folder of JSON files, so that a long table can be made in several goes; or nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        path = None if self.folder is None else self.folder / f"{name}.json"
        if path is not None and path.exists():
            kept: dict[str, Any] = json.loads(path.read_text())
            return kept
        begin = time.perf_counter()
        found = {**work(), "seconds": time.perf_counter() - begin}
        if path is not None:
            path.write_text(json.dumps(found))
        return found


# ── MNIST ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def cnn_protocol(epsilon: float, parties: int = PARTIES, iterations: int | None = None) -> MaskedDescent:
    """MaskedDescent for the network, calibrated against any one party."""
    draft = MaskedDescent(
        graphs.complete(parties), iterations or CNN[epsilon], sigma=1.0, step=5.0, clip=0.1, dimension=26_010, unit="record",
        sampling=0.064, max_records=-(-8000 // parties), records=8000, momentum=0.9,
    )  # fmt: skip
    return calibrate(draft, epsilon, DELTA, colluders=1)


def cnn_curator(epsilon: float, seed: int) -> dict[str, Any]:
    """DP-SGD by Opacus."""
    p = cnn_protocol(epsilon)
    noise = multiplier(epsilon, DELTA, p.sampling, p.iterations)
    return {**_cnn_by_opacus(seed, noise, p.clip, p.step, p.iterations, p.sampling), "noise": noise}


def cnn_plain(seed: int, iterations: int = 400) -> dict[str, Any]:
    """Not private: the same network by plain SGD, as long as it gains."""
    return _cnn_by_opacus(seed, 0.0, float("inf"), 0.1, iterations, 0.064)


def curator_is_fair() -> dict[str, float]:
    """Opacus' clipped sums against netdp's, on gradients of which some are clipped and some are not: relative distances."""
    import torch

    X, y, *_ = mnist(0)
    model, rng = cnn_model(), np.random.default_rng(0)
    theta = model.start() + 0.05 * rng.standard_normal(model.size)
    found = {"cnn": apart(cnn, model, theta, X[:300], y[:300], _cross_entropy, 2.0)}
    X, y, *_ = rows_of("cardio", 0)
    made = lambda: torch.nn.Linear(X.shape[1], 1, bias=False)  # noqa: E731
    found["logistic"] = apart(
        made, Logistic(X.shape[1]), np.linspace(-2, 2, X.shape[1]), X[:2000], y[:2000], _log_loss, 0.3
    )
    if max(found.values()) > 1e-3:
        raise RuntimeError(
            f"Opacus adds up other clipped gradients than netdp: {found}; the curator would not be a fair one"
        )
    return found


def _cross_entropy(out: Any, label: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(out, label.long(), reduction="sum")


def _log_loss(out: Any, label: Any) -> Any:
    import torch

    return torch.nn.functional.binary_cross_entropy_with_logits(out[:, 0], label.float(), reduction="sum")


def _cnn_by_opacus(
    seed: int, noise: float, clip: float, step: float, iterations: int, sampling: float
) -> dict[str, Any]:
    X, y, tests, truth = mnist(seed)
    model = cnn_model()
    theta = opacus(
        cnn, X, y, shape=(PIXELS,), start=model.start(), noise=noise, clip=clip, step=step, momentum=0.9, sampling=sampling,
        iterations=iterations, average="last", seed=seed,
        loss=_cross_entropy,
    )  # fmt: skip
    return {"accuracy": float(model.correct(theta, tests, truth).mean())}


def cnn_masked(epsilon: float, seed: int, *, shared: bool = True) -> dict[str, Any]:
    """MaskedDescent, simulated: the whole numbers that ten peers add up. shared=False: every party hides behind its own noise."""
    from netdp.families.masked.simulate import run

    p = cnn_protocol(epsilon)
    if not shared:  # nine honest shares become one
        p = p.replace(sigma=p.sigma * (PARTIES - 1) ** 0.5)
    X, y, tests, truth = mnist(seed)
    model = cnn_model()
    data = ModelParties.deal(model, X, y, PARTIES, seed)
    theta = run(p, data, np.random.SeedSequence([40, seed]))
    return {"accuracy": float(model.correct(theta, tests, truth).mean()), "sigma": p.sigma}


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

TABLES = ("housing", "cardio", "spambase")
LABEL = {"housing": "price", "cardio": "cardio", "spambase": "spam"}
EPSILON = 1.0
LEVELS = {"party": (1024, 1e-6), "record": (PARTIES, 1e-6)}
"""unit: how many parties, and δ"""

Split = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@functools.lru_cache(maxsize=4)
def rows_of(name: str, seed: int) -> Split:
    """Rows with a constant feature, of norm at most 1, and labels 0 and 1: four fifths to learn from, one to test on."""
    train, test = table(name, LABEL[name]).split(0.2, seed)
    return prepared(train.X), (train.y + 1) / 2, prepared(test.X), (test.y + 1) / 2


@functools.cache
def table_protocol(name: str, unit: str) -> MaskedDescent:
    """What the planner chooses, from public numbers alone."""
    from netdp.families.masked.training import plan_training

    X, *_ = rows_of(name, 0)
    n, delta = LEVELS[unit]
    rows = -(-len(X) // n)
    records = {"records": len(X)} if unit == "record" else {}
    return plan_training(
        n, X.shape[1], EPSILON, delta, rows=rows, unit=unit, graph=graphs.complete(n), **records
    ).protocol


def table_plain(name: str, seed: int) -> dict[str, Any]:
    """Not private: logistic regression as scikit-learn fits it."""
    from sklearn.linear_model import LogisticRegression

    X, y, tests, truth = rows_of(name, seed)
    fitted = LogisticRegression(C=100.0, fit_intercept=False, max_iter=2000).fit(X, y)
    return {"accuracy": float(fitted.score(tests, truth)), "majority": float(max(truth.mean(), 1 - truth.mean()))}


def table_masked(name: str, unit: str, seed: int, *, shared: bool = True) -> dict[str, Any]:
    """MaskedDescent, simulated. shared=False: local DP, every party hides behind its own noise and steps as short as that asks."""
    from netdp.families.masked.simulate import run

    p = table_protocol(name, unit)
    if not shared:
        more = (p.n - 1) ** 0.5
        p = p.replace(
            sigma=p.sigma * more, step=p.step / more, grid=32 * p.sum.step
        )  # a coarser grid: noise is drawn faster
    X, y, tests, truth = rows_of(name, seed)
    data = ModelParties.deal(Logistic(X.shape[1]), X, y, p.n, seed)
    theta = run(p, data, np.random.SeedSequence([50, seed]))
    return {"accuracy": float(data.model.correct(theta, tests, truth).mean()), "sigma": p.sigma}


def table_curator(name: str, unit: str, seed: int) -> dict[str, Any]:
    """A trusted curator with the same settings: Opacus for records, a few lines of NumPy for parties."""
    p = table_protocol(name, unit)
    X, y, tests, truth = rows_of(name, seed)
    _, delta = LEVELS[unit]
    if unit == "record":
        import torch

        noise = multiplier(EPSILON, delta, p.sampling, p.iterations)
        theta = opacus(
            lambda: torch.nn.Linear(X.shape[1], 1, bias=False), X, y, shape=(X.shape[1],), start=np.zeros(X.shape[1]),
            noise=noise, clip=p.clip, step=p.step, momentum=p.momentum, sampling=p.sampling, iterations=p.iterations,
            average=p.average, seed=seed, loss=_log_loss,
        )  # fmt: skip
    else:
        noise = multiplier(EPSILON, delta, p.sampling, p.iterations)
        theta = _parties_at_a_curator(p, X, y, 2 * p.clip * noise, seed)
    return {"accuracy": float(((tests @ theta > 0) == (truth > 0.5)).mean()), "noise": noise}


def _parties_at_a_curator(p: MaskedDescent, X: FloatArray, y: FloatArray, deviation: float, seed: int) -> FloatArray:
    """Noisy descent on the sum of the parties' mean gradients, each clipped as a whole; one Gaussian draw per number."""
    rng = np.random.default_rng([60, seed])
    order = np.random.default_rng(seed).permutation(len(X))
    owner = np.empty(len(X), dtype=np.int64)
    for u, part in enumerate(np.array_split(order, p.n)):
        owner[part] = u
    sizes = np.bincount(owner)[:, None]
    theta, velocity, total = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t in range(1, p.iterations + 1):
        errors = 1 / (1 + np.exp(-X @ theta)) - y
        means = np.zeros((p.n, X.shape[1]))
        np.add.at(means, owner, X * errors[:, None])
        means /= sizes
        means *= np.minimum(1, p.clip / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-300))
        gradient = (means.sum(axis=0) + rng.normal(0, deviation, X.shape[1])) / p.n
        velocity = p.momentum * velocity + gradient
        theta = theta - p.step * velocity
        if 2 * t > p.iterations:
            total += theta / (p.iterations - p.iterations // 2)
    return total if p.average == "later" else theta


def table_estimator(name: str, kind: str, seed: int, parties: int = 1024) -> dict[str, Any]:
    """Gossip or walk descent as the estimators run it by default."""
    import warnings

    from netdp.learn import GossipLogisticRegression, WalkLogisticRegression

    X, y, tests, truth = rows_of(name, seed)
    _, delta = LEVELS["party"]
    given: dict[str, Any] = {"epsilon": EPSILON, "delta": delta, "random_state": seed}
    if kind == "walk":
        estimator = WalkLogisticRegression(parties, **given)
    else:
        if "protocol" in GossipLogisticRegression().get_params():
            given["protocol"] = "gossip"
        estimator = GossipLogisticRegression(parties, **given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X[:, :-1] / X[:, -1:], y)  # the rows before the constant feature was added
    score = estimator.score(tests[:, :-1] / tests[:, -1:], truth)
    return {"accuracy": float(score), "warned": bool(caught)}
