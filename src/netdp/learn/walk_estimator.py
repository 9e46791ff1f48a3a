"""A scikit-learn classifier trained by a token that walks from party to party: no server, every loss certified."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from netdp.accounting import account
from netdp.errors import InvalidValue
from netdp.graphs import as_graph
from netdp.numerics.checks import count, positive
from netdp.planning import calibrate
from netdp.planning.token.calibrate import calibrate_walk
from netdp.privacy import GaussianCurve, Guarantee, Observers, SharedCurve
from netdp.privacy.weak import warn_if_weak
from netdp.protocols.walk import WalkDescent
from netdp.simulate.logistic import LogisticParties
from netdp.simulate.walk_descent import train_walk

from .binary import BinaryLinear, checked_step, entropy, few_enough, target
from .noise import step_for, warn_if_noise_wins


class WalkLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by a token that walks at random among parties that trust no server.

    The rows are dealt out to the parties; each party that the token visits takes a clipped, noisy gradient step. The noise is
    the smallest whose certified loss against any `colluders` parties together is at most (epsilon, delta), for a party's
    whole data, the final model included. A `netdp.learn.NoiseWarning` says so beforehand if that much noise leaves nothing to
    learn.

    Parameters
    ----------
    parties : number of parties.
    epsilon, delta : the target, user-level, replacing one party's rows.
    steps : length of the walk; None: 50 visits per party on average.
    step, clip : η and L, see `netdp.protocols.WalkDescent`; step=None: as long as the noise allows.
    sender : "known": a party sees from whom it gets the token and to whom it goes, as over direct connections;
        "receiver-known" and "hidden" take anonymous channels (`netdp.protocols.walk`).
    release : "named" or "anonymous", whether the last holder publishes the model under its name; None: as the channel does.
    colluders : how many parties may pool what they see.
    tokens : walks in parallel, each with a model of its own from the same start; the mean of the released models is kept.
    graph : the links that the token keeps to, a connected `Graph` (or a NetworkX graph) of the parties; None: it goes from any
        party to any other. On a graph sender and release stay as they are by default.
    walk : on a graph "metropolis" or "simple".
    contributions : gradient steps per party, after which it adds noise only; None: no limit.
    random_state : None: dealing, path and (simulated) noise from fresh entropy of the operating system. A whole number or a
        numpy Generator repeats an experiment: whoever knows it can take the noise off.

    Attributes
    ----------
    guarantee_ : what was promised: for every party, its loss to any `colluders` other parties together (all are alike).
    protocol_ : the calibrated protocol.

    Rows are scaled down to norm at most 1, after a constant feature for the intercept was added; scale your features
    beforehand, with statistics that are public.
    """

    def __init__(
        self,
        parties: int = 16,
        *,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        steps: int | None = None,
        step: float | None = None,
        clip: float = 0.1,
        sender: str = "known",
        release: str | None = None,
        colluders: int = 1,
        tokens: int = 1,
        graph: Any = None,
        walk: str = "metropolis",
        contributions: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.parties = parties
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.step = step
        self.clip = clip
        self.sender = sender
        self.release = release
        self.colluders = colluders
        self.tokens = tokens
        self.graph = graph
        self.walk = walk
        self.contributions = contributions
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        rows, labels = self._labelled(X, y, options)
        epsilon, delta = target(self.epsilon, self.delta)
        warn_if_weak(epsilon)
        clip = positive("clip", self.clip)
        step = None if self.step is None else checked_step(self.step, clip)
        parties, colluders = count("parties", self.parties), count("colluders", self.colluders)
        few_enough(parties, len(labels))
        if colluders >= parties:
            raise InvalidValue(f"{colluders} of {parties} parties collude: nobody is left to protect; give fewer")
        seeds = entropy(self.random_state).spawn(2)
        data = LogisticParties.deal(rows, labels, parties, np.random.default_rng(seeds[0]))
        if self.graph is not None and (network := as_graph(self.graph, "graph")).n != parties:
            raise InvalidValue(
                f"{network!r} has {network.n} nodes for parties={parties}; give as many parties as nodes"
            )
        draft = WalkDescent(
            parties if self.graph is None else network,
            50 * parties if self.steps is None else self.steps,
            sigma=1.0,
            step=1.0,  # neither the loss nor the noise depends on it
            clip=clip,
            sender=self.sender,
            release=self.release,
            contributions=self.contributions,
            tokens=self.tokens,
            walk=self.walk,
        )
        protocol, self.guarantee_ = _promised(
            draft, epsilon, delta, colluders, None if draft.graph is None else draft.graph.labels
        )
        self.protocol_ = protocol.replace(step=step_for(protocol, data.d) if step is None else step)
        warn_if_noise_wins(self.protocol_, data.d)
        run = train_walk(self.protocol_, data, seeds[1])
        self.coef_, self.intercept_ = run.model[None, :-1], run.model[-1:]
        self.n_iter_ = self.protocol_.steps
        return self


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
