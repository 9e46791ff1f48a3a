"""Will noise win? Known before anything is learned, from the protocol and the number of features alone.

T steps of size ν move a model by at most νTL in the direction that all parties agree on: L the clip, or 1/2 if that is less,
because the gradient of a row of norm 1 starts at 1/2. Their noise moves it by about ν·s·√d in a random one, where s² is the
variance that T unit steps leave in one coordinate of the model that is kept:

    a walking token     s² = Tσ², of the mean of several Tσ²/tokens
    gossip              s² = σ²·Σ_j (|h_j|² + κ·h_jᵀLh_j),  h_j = p_K(W)ʲe_holder: what j iterations leave of one noise

(perfect mixing would leave Tσ²/n). The *edge* is the ratio of the two, TL/(s√d). The size of a step cancels, so no choice of it
can help, and no data are looked at, so saying it costs no privacy. Real gradients are shorter than L: on the tables of the
papers (housing with two labels, spambase, cardio; 64 to 1,024 parties, ε = 1 and 4) accuracies at edges below 3 were within a
few points of guessing on three of the four, and most of what can be learned was learned from 8 on.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray
from netdp.planning.training_outlook import NoiseWarning
from netdp.protocols import GossipDescent, WalkDescent, response

LEAST_EDGE = 5.0
"""Below it one is warned."""

# Units that the noise may carry the model: margins of a few units decide, and averaging takes much of the noise out again.
_WANDERING = {GossipDescent: 15.0, WalkDescent: 10.0}
_START = 0.5  # the logistic loss has this slope at margin 0


def edge(protocol: GossipDescent | WalkDescent, features: int, holder: int = 0) -> float:
    """How far the steps can lead, in units of where the noise leads; see above.

    >>> round(edge(WalkDescent(100, steps=400, sigma=2.0, step=0.1, clip=0.5), features=25), 9)
    1.0
    """
    reach = min(protocol.clip, _START)
    if isinstance(protocol, WalkDescent):
        return reach * math.sqrt(protocol.steps * protocol.tokens / features) / protocol.sigma
    return reach * protocol.iterations / (protocol.sigma * math.sqrt(_left_over(protocol, holder) * features))


def step_for(protocol: GossipDescent | WalkDescent, features: int, holder: int = 0) -> float:
    """The step at which noise alone carries the model a set way, at most the longest that does not expand.

    The way, 15 units for gossip (whose later models are averaged) and 10 for a token, was chosen on the tables of the papers:
    `python benchmarks/learning.py defaults`.
    """
    steps = protocol.steps if isinstance(protocol, WalkDescent) else protocol.iterations
    wanted = _WANDERING[type(protocol)] * edge(protocol, features, holder) / (steps * min(protocol.clip, _START))
    return min(wanted, longest_step(protocol.clip))


def longest_step(clip: float) -> float:
    """For rows of norm at most 1, clipped one by one: 2/β with β = L(1 − L), or 1/4 (netdp.simulate.logistic)."""
    factor = min(clip, _START)
    return 2.0 / (factor * (1.0 - factor))


def warn_if_noise_wins(protocol: GossipDescent | WalkDescent, features: int, holder: int = 0) -> None:
    """A `NoiseWarning` if the edge is small."""
    found = edge(protocol, features, holder)
    if found < LEAST_EDGE:
        warnings.warn(
            f"noise will win: {protocol.n} parties with {features} features (the intercept among them) can move the model "
            f"{found:.2g} times as far as the noise does, at best; below {LEAST_EDGE:g} little was learned on the "
            "tables tried. More parties, a larger epsilon or fewer features help; another step does not",
            NoiseWarning,
            stacklevel=3,
        )


def _left_over(protocol: GossipDescent, holder: int) -> float:
    """Σ_j (|h_j|² + κ·h_jᵀLh_j): the variance of the holder's model in units of ν²σ²."""
    impulse = np.zeros((protocol.n, 1))
    impulse[holder] = 1.0
    total = 0.0
    for j in range(protocol.iterations):
        rounds = protocol.rounds_of(protocol.iterations - 1 - j)
        # p_K(W)ᵀ: whose noise, and how much of it, is in the holder's model
        *_, impulse = response(rounds.matrix.T.dot, impulse, rounds.rounds + 1, rounds.chebyshev)
        square = float((impulse**2).sum())
        total += square + rounds.masks * _differences(rounds.graph, impulse)
        if protocol.is_static and np.ptp(impulse) < 1e-3 / protocol.n:  # mixed: all that follow are alike
            return total + (protocol.iterations - 1 - j) / protocol.n
    return total


def _differences(graph: Graph, values: FloatArray) -> float:
    """Σ over edges of the squared difference."""
    ends = np.asarray(graph.edges())
    return float(((values[ends[:, 0]] - values[ends[:, 1]]) ** 2).sum())
