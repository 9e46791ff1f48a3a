"""A scikit-learn classifier trained by masked gossip descent: no server sees the data, every loss is certified."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from netdp import graphs as graph_families
from netdp.accounting import account
from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.planning import calibrate
from netdp.protocols import GossipDescent
from netdp.simulate.descent import train
from netdp.simulate.logistic import LogisticParties

from .binary import BinaryLinear, few_enough


class GossipLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by parties on a network that trust no server.

    The rows are dealt out to the parties; they take clipped, noisy, masked gradient steps and gossip. The noise is the
    smallest whose certified loss against every single other party is at most (epsilon, delta), for a party's whole data.

    Parameters
    ----------
    parties : number of parties, if `graph` is not given: a hypercube for powers of two, else a complete graph.
    graph : a `netdp.Graph`, or a text such as "regular:20,4"; its nodes are the parties.
    epsilon, delta : the target, user-level, replacing one party's rows.
    iterations, gossip_rounds, masks, step : see `netdp.protocols.GossipDescent`.
    holder : the party, by number or name, whose final model becomes `coef_`. Nobody sees an average of all models.
        Whoever is given `coef_` learns no more than the holder; a party that is given it colludes with the holder
        (`netdp.account(est.protocol_, [v, holder])`).
    random_state : int, for dealing out and for the (simulated) noise.

    Rows are scaled down to norm at most 1, after a constant feature for the intercept was added; scale your features
    beforehand, with statistics that are public.
    """

    def __init__(
        self,
        parties: int = 16,
        *,
        graph: Graph | str | None = None,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        iterations: int = 30,
        gossip_rounds: int = 12,
        masks: float = 100.0,
        step: float = 4.0,
        holder: int | str = 0,
        random_state: int | None = 0,
    ) -> None:
        self.parties = parties
        self.graph = graph
        self.epsilon = epsilon
        self.delta = delta
        self.iterations = iterations
        self.gossip_rounds = gossip_rounds
        self.masks = masks
        self.step = step
        self.holder = holder
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        rows, labels = self._labelled(X, y, self.step)
        if self.graph is None:
            few_enough(self.parties, len(labels))
        graph = self._graph()
        try:
            holder = graph.index(self.holder)
        except InvalidValue as error:
            raise InvalidValue(f"holder {self.holder!r} is no party: {error}") from None
        seeds = np.random.SeedSequence(self.random_state).spawn(2)
        data = LogisticParties.deal(rows, labels, graph.n, np.random.default_rng(seeds[0]))
        draft = GossipDescent(
            graph, self.iterations, self.gossip_rounds, sigma=1.0, step=self.step, clip=1.0, masks=self.masks
        )
        self.protocol_ = calibrate(draft, self.epsilon, self.delta)
        run = train(self.protocol_, data, seeds[1])
        model = run.models[holder]
        self.coef_, self.intercept_ = model[None, :-1], model[-1:]
        self.guarantee_ = account(self.protocol_, [graph.label(holder)])
        self.n_iter_ = self.iterations
        return self

    def _graph(self) -> Graph:
        if isinstance(self.graph, Graph):
            return self.graph
        if self.graph is not None:
            return graph_families.parse(self.graph)
        if self.parties >= 2 and self.parties & (self.parties - 1) == 0:
            return graph_families.hypercube(self.parties.bit_length() - 1)
        return graph_families.complete(self.parties)
