"""The two classical ways, run: everybody publishes, or a curator answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.families.baselines.protocol import Central, CentralDescent, Local, LocalDescent
from netdp.learn.fitting import (
    Fitted,
    Screen,
    TrainingRequest,
    _scaling,
    _stated,
    _two_digits,
    entropy,
    level,
    party_graph,
    ready,
    target,
)
from netdp.learn.planning import ITERATIONS, Learning, clip_for, learnings, step_for, talk_graph
from netdp.models.base import Model
from netdp.models.parties import ModelParties
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, positive
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.calibration import calibrate
from netdp.protocols.simulation import Normal, Run, Values, execute, prepared, trainers
from netdp.protocols.training import After, Losses, Trained, check_losses, clipped, descended, train
from netdp.protocols.views import Transcript

_BASELINES: dict[str, type[CentralDescent] | type[LocalDescent]] = {"central": CentralDescent, "local": LocalDescent}


def learn_baseline(
    kind: str, asked: TrainingRequest, model_for: Callable[[int], Model], X: FloatArray, y: FloatArray
) -> Fitted:
    """By a trusted curator ("central") or with local noise ("local"): what to compare with."""
    epsilon, delta = target(asked.epsilon, asked.delta)
    level(asked.verbose)
    for name, given, usual in (("unit", asked.unit, "party"), ("standardise", asked.standardise, None)):
        if given != usual:
            raise InvalidValue(f"protocol={kind!r} with {name}={given!r}: only protocol='masked' does that")
    if asked.sampling not in (None, 1):
        raise InvalidValue(f"protocol={kind!r} with sampling={asked.sampling!r}: only protocol='masked' does that")
    graph = party_graph(asked.graph, asked.parties, len(y), talk_graph)
    scaling = _scaling(asked, X)
    dealing, noise, _ = entropy(asked.random_state).spawn(3)
    parts = np.array_split(np.random.default_rng(dealing).permutation(len(y)), graph.n)
    model = model_for(X.shape[1] + 1)
    iterations = count("iterations", ITERATIONS if asked.iterations is None else asked.iterations)
    mu = float(gaussian_mu(epsilon, delta))
    hidden = graph.n if kind == "central" else math.sqrt(graph.n)
    edge = hidden * mu / (2 * math.sqrt(model.size))
    each = _two_digits(math.ceil(len(y) / graph.n))
    clip = clip_for(edge, each) if asked.clip is None else positive("clip", asked.clip)
    step = step_for(edge, iterations=iterations, clip=clip, model=model.name) if asked.step is None else asked.step
    protocol = calibrate(
        _BASELINES[kind](graph.n, iterations, sigma=1.0, step=positive("step", step), clip=clip), epsilon, delta
    )
    rows = ready(X, scaling)
    data = ModelParties(model, [rows[part] for part in parts], [y[part] for part in parts])
    total = np.zeros(model.size)
    with Screen(asked.verbose, protocol, None) as screen:

        def keep(t: int, models: FloatArray) -> None:
            if t >= iterations // 2:
                total[:] += models[0]
            screen.told(t + 1, models[0])

        train(protocol, WholeGradients(data), noise, after=keep)
    seen = account(protocol, [0])
    guarantee = replace(
        seen,
        curve=GaussianCurve(np.full(graph.n, seen.mu[-1])),
        factor=None,
        observers=Observers(roles=("whoever sees the model",)),
        names=graph.labels,
    )
    return Fitted(total / (iterations - iterations // 2), protocol, _stated(guarantee, asked, model), scaling)


learn_central, learn_local = partial(learn_baseline, "central"), partial(learn_baseline, "local")


@dataclass(frozen=True)
class WholeGradients:
    """`Losses` of parties whose mean gradient is clipped as a whole, not row by row."""

    data: ModelParties

    @property
    def n(self) -> int:
        """How many parties."""
        return self.data.n

    @property
    def d(self) -> int:
        """How many numbers a model has."""
        return self.data.d

    def start(self) -> FloatArray:
        """The public first model."""
        return self.data.start()

    def gradients(self, models: FloatArray, clip: float) -> FloatArray:
        """(n, d)."""
        return clipped(self.data.gradients(models, math.inf), clip)

    def expansion(self, step: float, clip: float) -> float:
        """Clipping the whole is a projection; a step before it stretches as the model says without clipping."""
        return 1.0 + self.data.expansion(step, math.inf)


@execute.register
def _average(protocol: Local | Central, values: Values, seed: int, normal: Normal, record: Any) -> Run:
    """Everybody ends up with the same answer. Nobody sends to anybody in particular, so the transcript is empty."""
    if record is not None:
        raise Unsupported(f"{type(protocol).__name__} has no messages between parties to record")
    data, _ = prepared(values, protocol, None)
    if isinstance(protocol, Local):
        answer = (data + protocol.sigma * normal(data.shape)).mean(axis=0)
    else:
        answer = data.mean(axis=0) + protocol.sigma / np.sqrt(protocol.n) * normal((data.shape[1],))
    return Run(np.tile(answer, (protocol.n, 1)), Transcript.empty(protocol.n), seed, protocol)


@trainers.register
def _train(
    protocol: LocalDescent | CentralDescent,
    losses: Losses,
    seed: int,
    *,
    after: After | None = None,
    average: str = "last",
    convexity: float = 0.0,
) -> Trained:
    check_losses(protocol, losses)
    rng = np.random.default_rng(seed)

    def step(t: int, models: FloatArray, gradient: FloatArray) -> FloatArray:
        # Local: the mean of n noisy gradients; central: the mean, then noise. The same law for the same σ.
        mean = gradient.mean(axis=0) + protocol.sigma / np.sqrt(protocol.n) * rng.standard_normal(losses.d)
        moved: FloatArray = models - protocol.step * mean
        return moved

    silent = Transcript.empty(protocol.n)
    return descended(protocol, losses, step, silent, after=after, average=average, convexity=convexity)


@learnings.register
def _learning(protocol: LocalDescent | CentralDescent) -> Learning:
    return Learning()
