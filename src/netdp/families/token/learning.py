"""Learning by a walking token: noise and promise of `WalkDescent` for an estimator, and how it is planned."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.token.calibration import calibrate_walk
from netdp.families.token.training import train_walk
from netdp.families.token.walk import WalkDescent
from netdp.graphs.convert import as_graph
from netdp.learn.fitting import (
    PARTIES,
    Fitted,
    TrainingRequest,
    checked_step,
    entropy,
    few_enough,
    step_for,
    target,
    unit_rows_with_constant,
    warn_if_noise_wins,
)
from netdp.learn.planning import Learning, learnings
from netdp.models.parties import LogisticParties
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, positive
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.privacy.wording import warn_if_weak
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate


class WalkLearning(Learning):
    """A walk has steps, releases its last model only, and its proved bound loses a logarithm: losses are taken for quadratic."""

    most = 100
    shape = "quadratic"
    average = "last"
    wandering = 10.0

    def unit(self, protocol: WalkDescent) -> int:
        return int(protocol.n)

    def length(self, protocol: WalkDescent) -> int:
        return protocol.steps

    def sized(self, draft: WalkDescent, length: int, rounds: int, step: float) -> WalkDescent:
        return draft.replace(steps=length, step=step)

    def edge(self, protocol: WalkDescent, reach: float, features: int, holder: int) -> float:
        return reach * math.sqrt(protocol.steps * protocol.tokens / features) / protocol.sigma


@learnings.register
def _learning(protocol: WalkDescent) -> Learning:
    return WalkLearning()


_CLIP = 0.1


def learn_walk(asked: TrainingRequest, X: FloatArray, labels: FloatArray, **own: Any) -> Fitted:
    """Binary logistic regression from rows and labels ±1; `own`: further settings of `WalkDescent`."""
    epsilon, delta = target(asked.epsilon, asked.delta)
    warn_if_weak(epsilon, stacklevel=4)
    clip = positive("clip", _CLIP if asked.clip is None else asked.clip)
    step = None if asked.step is None else checked_step(asked.step, clip)
    parties, colluders = (
        count("parties", PARTIES if asked.parties is None else asked.parties),
        count("colluders", asked.colluders),
    )
    few_enough(parties, len(labels))
    if colluders >= parties:
        raise InvalidValue(f"{colluders} of {parties} parties collude: nobody is left to protect; give fewer")
    seeds = entropy(asked.random_state).spawn(2)
    data = LogisticParties.deal(unit_rows_with_constant(X), labels, parties, np.random.default_rng(seeds[0]))
    if asked.graph is not None and (network := as_graph(asked.graph, "graph")).n != parties:
        raise InvalidValue(f"{network!r} has {network.n} nodes for parties={parties}; give as many parties as nodes")
    draft = WalkDescent(
        parties if asked.graph is None else network,
        50 * parties if asked.iterations is None else asked.iterations,
        sigma=1.0,
        step=1.0,  # neither the loss nor the noise depends on it
        clip=clip,
        **own,
    )
    protocol, guarantee = _promised(
        draft, epsilon, delta, colluders, None if draft.graph is None else draft.graph.labels
    )
    protocol = protocol.replace(step=step_for(protocol, data.d) if step is None else step)
    warn_if_noise_wins(protocol, data.d)
    return Fitted(train_walk(protocol, data, seeds[1]).model, protocol, guarantee, None)


@lru_cache(maxsize=64)
def _promised(
    draft: WalkDescent, epsilon: float, delta: float, colluders: int, names: tuple[str, ...] | None
) -> tuple[WalkDescent, Guarantee]:
    """The calibrated protocol and its loss: they do not depend on the data, so cross-validation computes them once.

    `names` are part of what is remembered: protocols are equal whatever their parties are called, and the result is not.
    """
    who = "single other party" if colluders == 1 else f"{colluders} other parties together"
    if draft.graph is not None:
        protocol = calibrate(draft, epsilon, delta, colluders=colluders)
        return protocol, dataclasses.replace(
            account(protocol, colluders=colluders), factor=None, observers=Observers(roles=(f"worst {who}",))
        )
    protocol = calibrate_walk(draft, epsilon, delta, colluders=colluders)
    seen = account(protocol, list(range(colluders)))
    # On the complete graph all parties are alike: what these learn about any other, any others learn about these.
    curve, everybody = seen.curve, np.zeros(protocol.n, dtype=np.int64)
    if isinstance(curve, SharedCurve):
        curve = SharedCurve(curve.curves, everybody)
    else:
        curve = GaussianCurve(np.full(protocol.n, np.nanmax(seen.mu)))
    return protocol, dataclasses.replace(
        seen,
        curve=curve,
        factor=None if seen.factor is None else np.full(protocol.n, seen.worst),
        observers=Observers(roles=(f"worst {who}",)),
    )
