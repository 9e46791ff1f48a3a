"""From public numbers to a schedule: iterations, clipping, step and sampling from (ε, δ), n, d and rows alone.

Nothing is looked at, so choosing costs no privacy. What is chosen changes only how much is learned: the loss of the protocol
that comes out is computed and certified by `netdp.account` whatever stands here.

**The edge.** T steps of length ν on gradients clipped to L move a model by at most νTL in the direction that all agree on, and
their noise by about ν·s·√(Td) in a random one, s the deviation of the mean gradient's noise in one coordinate. Their ratio

    edge = L·√T / (s·√d),       in Gaussian terms nμ/(2√d) for parties, Nμ/√d for N records,  μ = μ(ε, δ)

depends neither on ν nor, at a fixed (ε, δ), on T and L: it is what the target leaves to be won. Everything below is a
function of it.

**Four rules.** Lengths of steps and the number of iterations were chosen on housing prices and spambase; the least clip,
momentum and the longest step also with a look at cardio, housing longitude and a synthetic survey (rows of one class at each
party, features that are not centred). Test rows were used throughout, so figures on these tables flatter the rules a little.
Tables that had no part in it: case `sizes` of `python benchmarks/estimators.py`, which prints how far the default is from the
best of a grid.

1. T = 160 with momentum 0.9, and the mean of the later half of the models is kept. More or fewer iterations change little
   where noise decides (40 to 320: about a point); where it does not, ill-conditioned tables need them.
2. A party's gradient is its mean over its rows, *clipped as a whole*, not row by row: the mean of many rows is much shorter
   than a row's gradient but points the right way, so a tight clip costs nothing and the noise shrinks with it (housing,
   256 parties, ε = 1: .83 instead of .77). L = edge/300, at least 0.1 and at most 0.5. At 0.5 the gradient of a row of norm
   1 is no longer clipped at the start, so nothing is distorted when noise is no concern. Of m rows to a party, what is
   particular to it averages out to about 0.5/√m, and the least clip is that, within 0.06 and 0.1. Where parties' rows are alike
   0.06 gains up to three points on 0.1 (cardio, 64 to 512 parties), where they are *mostly* of one class nothing or 0.3 of a
   point is lost, where every party has rows of one class only two to four points are (housing, 64 parties; then state
   clip=0.1). Tighter still gains and loses about as much again.
3. The way νTL/(1 − momentum) is w·edge: noise alone then carries the model w units, and margins of a few units decide. w is
   20 for records and 15 for parties, but of two classes where the edge is below 5 only three times the edge, at least 4:
   there noise would carry the model past what can be learned (spambase, 64 parties, ε = 1: .84 instead of .81; of four classes
   it would cost half a point). Linear regression, of targets in [−1, 1]: w = 4. At most 30 units an iteration; linear
   regression: a step of at most 2, beyond which a quadratic might overshoot; models about which nothing is known, such as
   networks: L·step at most 0.5.
4. Everybody takes part in every iteration. At equal (ε, δ) sampling hardly changes the noise of a mean gradient, it saves
   work; so records are sampled only where an iteration would touch more than 2·10⁷ gradient coordinates at a party.
"""

from __future__ import annotations

import math

from netdp import graphs as graph_families
from netdp.graphs import Graph
from netdp.protocols import MaskedDescent

ITERATIONS = 160
MOMENTUM = 0.9
WANDERING = {"party": 15.0, "record": 20.0}
"""Units that noise alone carries a model, at most, by what is protected."""
LINEAR_MODELS = ("logistic", "multinomial", "linear")

_CLIPS = (0.1, 0.5)
_TIGHTEST = 0.06
_PARTICULAR = 0.5  # over √m: how long what is particular to a party's mean gradient over m rows is
_PER_EDGE, _SHORT = (
    3.0,
    4.0,
)  # units that noise may carry the model of parties where the edge is small: per edge, at least
_EDGE_PER_CLIP = 300.0
_NEAR = 4.0  # the same for linear regression, whose targets lie in [−1, 1]
_FURTHEST = 30.0  # units an iteration, gradients as long as the clip, momentum included
_LINEAR = 2.0  # rows have norm at most 1: no eigenvalue is above 1, and heavy balls are stable below 2(1 + momentum)
_UNKNOWN = 0.5  # clip times step, of models about which nothing is known
_WORK = 2e7  # coordinates of gradients that a party computes in an iteration


def talk_graph(n: int) -> Graph:
    """Whom n parties talk to if nobody says: everybody for a few, a hypercube for powers of two, else the exponential graph.

    >>> [talk_graph(n).name for n in (5, 64, 100)]
    ['complete(5)', 'hypercube(6)', 'exponential(100)']
    """
    if n <= 16:
        return graph_families.complete(n)
    if n & (n - 1) == 0:
        return graph_families.hypercube(n.bit_length() - 1)
    return graph_families.exponential(n)


def rough_edge(n: int, d: int, mu: float, *, colluders: int = 1, records: int | None = None) -> float:
    """The edge before anything is calibrated: nμ/(2√d) for parties, Nμ/√d for records; the colluders' noise helps nobody.

    >>> round(rough_edge(2048, 15, 0.237), 1)
    62.6
    """
    honest = math.sqrt(max(n - colluders, 1) / n)
    return (n / 2 if records is None else records) * mu * honest / math.sqrt(d)


def clip_for(edge: float, rows: int | None = None) -> float:
    """L = edge/300, within 0.1 … 0.5; with `rows` to a party, whose mean gradient is clipped, down to 0.06.

    >>> clip_for(60.0), clip_for(5.0), round(clip_for(5.0, rows=50), 3), clip_for(5.0, rows=1000)
    (0.2, 0.1, 0.071, 0.06)
    """
    least = _CLIPS[0] if rows is None else min(max(_PARTICULAR / math.sqrt(rows), _TIGHTEST), _CLIPS[0])
    return min(max(edge / _EDGE_PER_CLIP, least), _CLIPS[1])


def edge_of(protocol: MaskedDescent) -> float:
    """How far the steps can lead, in units of where the noise of all parties leads.

    >>> p = MaskedDescent(talk_graph(100), 400, sigma=0.5, step=1.0, clip=0.5, dimension=25)
    >>> edge_of(p)
    40.0
    """
    spread = protocol.sigma * math.sqrt(protocol.n) / protocol.expected  # of the mean gradient, in one coordinate
    return protocol.clip * math.sqrt(protocol.iterations / protocol.dimension) / spread


def step_for(
    edge: float, *, iterations: int, clip: float, unit: str = "party", momentum: float = 0.0, model: str = "logistic"
) -> float:
    """The step with which noise alone carries the model the set way, and no further in one iteration than is allowed.

    >>> step_for(60.0, iterations=160, clip=0.2), step_for(600.0, iterations=160, clip=0.2, model="linear")
    (28.125, 2.0)
    """
    wandering = _NEAR if model == "linear" else WANDERING[unit]
    if unit == "party" and model == "logistic":
        wandering = min(wandering, max(_PER_EDGE * edge, _SHORT))
    step = (1 - momentum) * min(wandering * edge / iterations, _FURTHEST) / clip
    if model == "linear":
        return min(step, _LINEAR)
    return step if model in LINEAR_MODELS else min(step, _UNKNOWN / clip)


def sampling_for(rows: int | None, d: int, unit: str) -> float:
    """The probability with which a record takes part: 1, or less where an iteration would take too long.

    >>> sampling_for(1000, 50, "record"), round(sampling_for(4000, 50_000, "record"), 3)
    (1.0, 0.1)
    """
    if unit == "party" or rows is None or rows * d <= _WORK:
        return 1.0
    return max(_WORK / (rows * d), min(1.0, 256 / rows))
