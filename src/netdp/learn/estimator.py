"""A scikit-learn classifier for parties on a network: by masked descent, or by gossip with correlated noise.

**By default** it learns as `netdp.learn.LogisticRegression` does: sums under one-time pads, a curator's accuracy.

**What gossip promises.** Party u's loss to party v is μ² = E(u, v)·(Δ/σ)² (docs/guarantees.md#hidden-state), and E does not depend
on σ. `guarantee_` states for every party u the worst of all other parties v, each alone; the noise is the least with which
none of these losses exceeds (ε, δ). On vertex-transitive graphs the worst is the same for every u, so one observer is enough;
on hypercubes and complete graphs what v learns about u depends on their distance alone (automorphisms that keep v take any
party to any other at the same distance), so one target per distance is enough.

**What is kept.** The holder's own model after each iteration is part of what the holder sees, so the mean of the later half of
them is post-processing: it loses nothing more.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from netdp import graphs as graph_families
from netdp.accounting import account
from netdp.accounting.gossip import everybody
from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.graphs.spectrum import spectral_gap
from netdp.graphs.symmetry import vertex_transitive
from netdp.models import Logistic
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import non_negative, positive
from netdp.planning import calibrate
from netdp.planning.gossip.descent import worst_energy
from netdp.privacy import GaussianCurve, Guarantee, Observers
from netdp.privacy.weak import warn_if_weak
from netdp.protocols import GossipDescent
from netdp.simulate.descent import train
from netdp.simulate.logistic import LogisticParties

from .binary import BinaryLinear, checked_step, entropy, target, unit_rows_with_constant
from .noise import step_for, warn_if_noise_wins
from .together import Asked, Screen, learn_masked, names_of, party_graph

_PROTOCOLS = ("masked", "gossip")
_ITERATIONS, _CLIP, _MASKS = 160, 0.1, 100.0
# On slow graphs more rounds would take longer than they are worth; the loss is certified for whatever number is used.
_MOST_ROUNDS = 50
# One observer stands for all on a symmetric graph; above this many parties a bound for all is quicker than that one.
_FEW_PARTIES = 256


class GossipLogisticRegression(BinaryLinear):
    """Binary logistic regression learned by parties on a network that trust no server.

    The rows are dealt out to the parties, who add up clipped gradients under one-time pads, or gossip with noise that cancels.
    The noise is the smallest whose certified loss against every single other party is at most (epsilon, delta), for a party's
    whole data. A `netdp.learn.NoiseWarning` says so beforehand if that much noise leaves nothing to learn.

    Parameters
    ----------
    parties : number of parties; None: as many as `graph` has, or 16.
    graph : a `netdp.Graph`, or a text such as "regular:20,4"; its nodes are the parties. By default a hypercube for powers of
        two; else a complete graph for gossip, and links at powers of two for masked sums.
    protocol : "masked" (`netdp.protocols.MaskedDescent`) or "gossip" (`netdp.protocols.GossipDescent`). None: masked, or gossip
        where `gossip_rounds`, `masks` or `holder` is given, which belong to it.
    epsilon, delta : the target, user-level, replacing one party's rows.
    iterations : None: 160.
    clip : None: planned for masked sums, 0.1 for gossip.
    step : None: as long as the noise allows.
    gossip_rounds : of gossip, per iteration; None: until the graph has mixed, at most 50.
    masks : of gossip, the variance of the noise that cancels, in units of σ²; None: 100.
    holder : of gossip, the party, by number or name, whose models become `coef_`: the mean over the later half of the
        iterations; None: the first. Nobody sees an average over parties. Whoever is given `coef_` learns no more than the
        holder; a party that is given it colludes with the holder (`netdp.account(est.protocol_, [v, holder])`).
    verbose : 1: ten lines of progress on stderr, 2: one for every iteration. Only what parties see is shown.
    random_state : None: dealing and (simulated) noise from fresh entropy of the operating system. A whole number or a numpy
        Generator repeats an experiment: whoever knows it can take the noise off.

    Attributes
    ----------
    guarantee_ : what was promised: for every party, its loss to the single other party that learns most about it.
    holder_guarantee_ : what the holder learns about every other party (computed when asked for).
    protocol_ : the calibrated protocol.

    Rows are scaled down to norm at most 1, after a constant feature for the intercept was added; scale your features
    beforehand, with statistics that are public, or use `netdp.learn.LogisticRegression`, which has public bounds and private
    standardisation, more classes, and the privacy of single records.
    """

    def __init__(
        self,
        parties: int | None = None,
        *,
        graph: Graph | str | None = None,
        protocol: str | None = None,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        iterations: int | None = None,
        gossip_rounds: int | None = None,
        masks: float | None = None,
        step: float | None = None,
        clip: float | None = None,
        holder: int | str | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.parties = parties
        self.graph = graph
        self.protocol = protocol
        self.epsilon = epsilon
        self.delta = delta
        self.iterations = iterations
        self.gossip_rounds = gossip_rounds
        self.masks = masks
        self.step = step
        self.clip = clip
        self.holder = holder
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Self:
        """Deal the rows out, calibrate the noise, learn."""
        features, labels = self._validated(X, y, options)
        model = self._by_gossip(features, labels) if self._chosen() == "gossip" else self._by_sums(features, labels)
        self.coef_, self.intercept_ = model[None, :-1], model[-1:]
        self._holder_loss: Guarantee | None = None
        self.n_iter_ = self.protocol_.iterations
        return self

    def _chosen(self) -> str:
        own = {"gossip_rounds": self.gossip_rounds, "masks": self.masks, "holder": self.holder}
        given = [name for name, value in own.items() if value is not None]
        if self.protocol is None:
            return "gossip" if given else "masked"
        if self.protocol not in _PROTOCOLS:
            raise InvalidValue(f"unknown protocol {self.protocol!r}; choose one of {', '.join(_PROTOCOLS)}")
        if self.protocol == "masked" and given:
            raise InvalidValue(f"{given[0]} belongs to protocol='gossip'; leave it out, or choose that")
        return self.protocol

    def _by_sums(self, X: FloatArray, labels: FloatArray) -> FloatArray:
        asked = Asked(
            self.parties, self.graph, "party", self.epsilon, self.delta, 1, None, None,
            self.iterations, self.clip, self.step, None, self.verbose, self.random_state, names_of(self),
        )  # fmt: skip
        found = learn_masked(asked, Logistic, X, (labels > 0).astype(np.float64))
        self.protocol_, self.guarantee_, self._holder_name = (
            found.protocol,
            found.guarantee,
            found.protocol.graph.label(0),
        )
        return found.theta

    def _by_gossip(self, X: FloatArray, labels: FloatArray) -> FloatArray:
        epsilon, delta = target(self.epsilon, self.delta)
        warn_if_weak(epsilon, stacklevel=4)
        clip = positive("clip", _CLIP if self.clip is None else self.clip)
        masks = non_negative("masks", _MASKS if self.masks is None else self.masks)
        step = None if self.step is None else checked_step(self.step, clip)
        graph = party_graph(self.graph, self.parties, len(labels), _usual_graph)
        holder = self._place(graph)
        seeds = entropy(self.random_state).spawn(2)
        data = LogisticParties.deal(unit_rows_with_constant(X), labels, graph.n, np.random.default_rng(seeds[0]))
        rounds = _mixing_rounds(graph, masks) if self.gossip_rounds is None else self.gossip_rounds
        iterations = _ITERATIONS if self.iterations is None else self.iterations
        draft = GossipDescent(graph, iterations, rounds, sigma=1.0, step=step or 1.0, clip=clip, masks=masks)
        protocol, self.guarantee_ = _promised(draft, epsilon, delta, graph.labels)
        self.protocol_ = protocol if step is not None else protocol.replace(step=step_for(protocol, data.d, holder))
        warn_if_noise_wins(self.protocol_, data.d, holder)
        later = self.protocol_.iterations // 2
        total = np.zeros(data.d)
        with Screen(self.verbose, self.protocol_, None) as screen:

            def keep(t: int, models: FloatArray) -> None:
                if t >= later:
                    total[:] += models[holder]
                screen.told(t + 1, models[holder])

            train(self.protocol_, data, seeds[1], after=keep)
        self._holder_name = graph.label(holder)
        model: FloatArray = total / (self.protocol_.iterations - later)
        return model

    @property
    def holder_guarantee_(self) -> Guarantee:
        """What the holder, and whoever is given `coef_`, learns about every other party."""
        check_is_fitted(self)
        if self._holder_loss is None:
            self._holder_loss = account(self.protocol_, [self._holder_name])
        return self._holder_loss

    def _place(self, graph: Graph) -> int:
        try:
            return graph.index(0 if self.holder is None else self.holder)
        except InvalidValue as error:
            raise InvalidValue(f"holder {self.holder!r} is no party: {error}") from None


def _usual_graph(parties: int) -> Graph:
    if parties >= 2 and parties & (parties - 1) == 0:
        return graph_families.hypercube(parties.bit_length() - 1)
    return graph_families.complete(parties)


def _mixing_rounds(graph: Graph, masks: float) -> int:
    """Rounds after which masks have sunk to the size of the noise of a mean: (1 − gap)^2K ≤ 1/(n·max(κ, 1))."""
    slowest = 1.0 - spectral_gap(graph)
    if slowest <= 1e-9:  # a complete graph mixes at once
        return 1
    return max(1, min(_MOST_ROUNDS, math.ceil(math.log(graph.n * max(masks, 1.0)) / (-2.0 * math.log(slowest)))))


@lru_cache(maxsize=64)
def _promised(
    draft: GossipDescent, epsilon: float, delta: float, names: tuple[str, ...] | None
) -> tuple[GossipDescent, Guarantee]:
    """The calibrated protocol and its loss: they do not depend on the data, so cross-validation computes them once.

    `names` are those of the parties: protocols are equal whatever their parties are called, and the result is not.
    """
    energy = worst_energies(draft)
    protocol = calibrate(draft, epsilon, delta, energy=float(energy.max()))
    # What a loss assumes does not depend on the graph: ask about a small one.
    small = account(protocol.replace(graph=graph_families.complete(2), iterations=1, gossip_rounds=1), [0])
    return protocol, dataclasses.replace(
        small,
        curve=GaussianCurve(np.sqrt(energy) * protocol.sensitivity / protocol.sigma),
        factor=energy / protocol.iterations,
        observers=Observers(roles=("single other party that learns most",)),
        assumptions=(
            *small.assumptions,
            "no two parties pool what they see; whoever is given coef_ pools with the holder",
        ),
        names=names,
    )


def worst_energies(protocol: GossipDescent) -> FloatArray:
    """For every party, its largest Σμ_t² (in units of Δ²/σ²) over all other parties, each looking alone.

    >>> p = GossipDescent(graph_families.hypercube(3), 4, 3, sigma=1.0, step=1.0, masks=10.0)
    >>> bool(np.allclose(worst_energies(p), worst_energy(p)))
    True
    """
    if isinstance(protocol.graph, Graph) and vertex_transitive(protocol.graph, protocol.mixing):
        targets = _one_per_distance(protocol.network)
        if targets is not None or protocol.n <= _FEW_PARTIES:
            return np.full(protocol.n, worst_energy(protocol, [(0,)], targets))
    return everybody.worst_energies(protocol)


def _one_per_distance(graph: Graph) -> list[int] | None:
    """One party at every distance from party 0, where that settles what it learns; else None, for all. Of a known family."""
    if graph.name.startswith("complete"):
        return [1]
    if graph.name.startswith("hypercube"):
        return [2**bits - 1 for bits in range(1, graph.n.bit_length())]
    return None
