"""Attacks on learning, to be tried in simulation: who lies, how, and what is left of the model.

Liars keep to the protocol and lie about their data; what they can do is bounded (docs/proofs/learning.md#influence):

    flip   all labels of a liar are turned round
    push   all rows of a liar are one unit vector, labelled so that its gradient pulls the model towards it: the longest gradient
           that the clip allows, in one direction, until the margin is reached at which even a row that is clipped is content

Deviators do not keep to it, and nothing bounds them: `replaced_tokens` lets whoever holds a token put any model in
its place. Several tokens and a median of their models help only as long as fewer than half of them were replaced. A
walk of T ≥ n steps has met a given user with probability 1 − (1 − 1/n)^T > 63 %, so a holder that always does it
defeats every median; one that does it now and then does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.models.parties import LogisticParties, Rows, accuracy, aggregated, loss
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import between
from netdp.protocols.simulation import trainers
from netdp.protocols.training import train

ATTACKS = ("flip", "push")


@dataclass(frozen=True, eq=False)
class Attacked:
    """What was learned although some lied.

    model      (d,): the mean of what the honest parties keep; the answer of a walk
    liars      who lied
    objective  mean logistic loss over the rows of all parties, as they were before anybody lied
    accuracy   share of the test rows on the right side; nan without a test set
    """

    model: FloatArray
    liars: IntArray
    objective: float
    accuracy: float

    def __str__(self) -> str:
        tested = "" if np.isnan(self.accuracy) else f", accuracy {self.accuracy:.3f}"
        return f"{len(self.liars)} liars: loss {self.objective:.3g}{tested}"


def attacked(
    protocol: Any,
    data: LogisticParties,
    share: float,
    seed: int,
    *,
    attack: str = "flip",
    towards: FloatArray | None = None,
    test: Rows | None = None,
    average: str = "last",
    aggregate: str = "mean",
) -> Attacked:
    """Train with a share of liars, drawn from the seed: the same seed gives the same liars, path and noise.

    towards     (push) the direction that liars pull to; by default away from the best model, which they are taken to know
    average     of gossip, masked and classical descents: as in `train`
    aggregate   of a walk with several tokens: "mean", "median" or "trimmed" of their models

    >>> from netdp import WalkDescent
    >>> rows = np.random.default_rng(0).standard_normal((60, 2)) / 4
    >>> data = LogisticParties.deal(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), 20)
    >>> walk = WalkDescent(20, steps=400, sigma=0.01, step=1.0, clip=0.2)
    >>> attacked(walk, data, 0.0, 1).objective < attacked(walk, data, 0.25, 1).objective < attacked(walk, data, 0.5, 1).objective
    True
    """
    root = np.random.SeedSequence(seed)
    choice, run = (np.random.SeedSequence(root.entropy, spawn_key=(child,)) for child in (0, 1))
    number = round(between("share", share, 0.0, 1.0) * data.n)
    liars = np.sort(np.random.default_rng(choice).permutation(data.n)[:number])
    lied = poisoned(data, liars, attack, towards)
    if trainers.handles(protocol) and "average" not in trainers.options(
        protocol
    ):  # tokens: one model each, for everybody
        model = combine(trainers(protocol, lied, run).models, aggregate)
    else:
        if aggregate != "mean":
            raise InvalidValue(
                f"aggregate={aggregate!r} combines the models of several tokens; gossip leaves every party its own "
                "model, and MaskedDescent states groups and aggregate itself"
            )
        models = train(protocol, lied, run, average=average).models
        honest = np.setdiff1d(np.arange(data.n), liars)
        model = models[honest if len(honest) else slice(None)].mean(axis=0)
    right = np.nan if test is None else accuracy(model, test.X, test.y)
    return Attacked(model, liars, loss(data, model), right)


def poisoned(
    data: LogisticParties, liars: Iterable[int], attack: str = "flip", towards: FloatArray | None = None
) -> LogisticParties:
    """The data as liars present them.

    >>> data = LogisticParties.of([np.eye(2), np.eye(2)], [np.array([1.0, -1.0])] * 2)
    >>> poisoned(data, [1]).y.tolist(), poisoned(data, [1], "push", np.array([3.0, 4.0])).X[1].tolist()
    ([[1.0, -1.0], [-1.0, 1.0]], [[0.6, 0.8], [0.6, 0.8]])
    """
    who = np.asarray(list(liars), dtype=np.int64)
    if attack not in ATTACKS:
        raise InvalidValue(f"unknown attack {attack!r}; choose one of {', '.join(ATTACKS)}")
    if who.size and not (who.min() >= 0 and who.max() < data.n):
        raise InvalidValue(f"liars must be numbers from 0 to {data.n - 1}, got {who.tolist()!r}")
    y, X = data.y.copy(), data.X.copy()
    if attack == "flip":
        y[who] *= -1
        return replace(data, y=y)
    if towards is None:
        towards = -data._lowest(np.inf, 1e-3)
    aim = np.asarray(towards, dtype=np.float64)
    length = float(np.linalg.norm(aim))
    if aim.shape != (data.d,) or not (np.isfinite(length) and length > 0):
        raise InvalidValue(f"towards must be a direction of {data.d} numbers, not all 0, got {towards!r}")
    X[who], y[who] = aim / length, 1.0
    return replace(data, X=X, y=y)


def combine(models: FloatArray, aggregate: str = "mean") -> FloatArray:
    """One model from those of several tokens (k, d), coordinate by coordinate: "mean", "median", or "trimmed" of the
    outer quarters.

    The models are released anyway, so this costs no privacy. A median lies, in every coordinate, between honest
    models as long as fewer
    than half of the tokens were spoilt; a trimmed mean as long as no more than a quarter were.

    >>> combine(np.array([[0.0, 1.0], [0.2, 1.1], [99.0, -99.0]]), "median").tolist()
    [0.2, 1.0]
    """
    rows = np.asarray(models, dtype=np.float64)
    if rows.ndim != 2 or not len(rows):
        raise InvalidValue(f"models must have the shape (tokens, d), got {rows.shape}")
    return aggregated(rows, aggregate)
