"""A scikit-learn classifier trained by a token that walks from party to party: no server, every loss certified."""

from __future__ import annotations

from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from netdp.accounting import account
from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.planning.token.calibrate import calibrate_walk
from netdp.privacy import Guarantee
from netdp.protocols.walk import WalkDescent
from netdp.simulate.logistic import LogisticParties
from netdp.simulate.walk_descent import train_walk

from .binary import BinaryLinear, few_enough


class WalkLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by a token that walks at random among parties that trust no server.

    The rows are dealt out to the parties; each party that the token visits takes a clipped, noisy gradient step. The noise is
    the smallest whose certified loss against any `colluders` parties together is at most (epsilon, delta), for a party's
    whole data, the final model included.

    Parameters
    ----------
    parties : number of parties.
    epsilon, delta : the target, user-level, replacing one party's rows.
    steps : length of the walk; None: 50 visits per party on average.
    step, clip : η and L, see `netdp.protocols.WalkDescent`; rows have norm at most 1, so η ≤ 8.
    sender : "hidden": a party does not see from whom it gets the token; "known": it does, as over a direct connection.
    colluders : how many parties may pool what they see.
    contributions : gradient steps per party, after which it adds noise only; None: no limit.
    random_state : int, for dealing out, the path and the (simulated) noise.

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
        step: float = 0.5,
        clip: float = 1.0,
        sender: str = "hidden",
        colluders: int = 1,
        contributions: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.parties = parties
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.step = step
        self.clip = clip
        self.sender = sender
        self.colluders = colluders
        self.contributions = contributions
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        rows, labels = self._labelled(X, y, self.step)
        parties, colluders = count("parties", self.parties), count("colluders", self.colluders)
        few_enough(parties, len(labels))
        if colluders >= parties:
            raise InvalidValue(f"{colluders} of {parties} parties collude: nobody is left to protect; give fewer")
        seeds = np.random.SeedSequence(self.random_state).spawn(2)
        data = LogisticParties.deal(rows, labels, parties, np.random.default_rng(seeds[0]))
        draft = WalkDescent(
            parties,
            50 * parties if self.steps is None else self.steps,
            sigma=1.0,
            step=self.step,
            clip=self.clip,
            sender=self.sender,
            contributions=self.contributions,
        )
        self.protocol_, self.guarantee_ = _certified(draft, self.epsilon, self.delta, colluders)
        run = train_walk(self.protocol_, data, seeds[1])
        self.coef_, self.intercept_ = run.model[None, :-1], run.model[-1:]
        self.n_iter_ = self.protocol_.steps
        return self


@lru_cache(maxsize=64)
def _certified(draft: WalkDescent, epsilon: float, delta: float, colluders: int) -> tuple[WalkDescent, Guarantee]:
    """The calibrated protocol and its loss: they do not depend on the data, so cross-validation computes them once."""
    protocol = calibrate_walk(draft, epsilon, delta, observers=colluders)
    return protocol, account(protocol, list(range(colluders)))
