"""How far parties that lie can move what is learned: a bound if they keep to the protocol, and who is not bound.

A *liar* takes part as prescribed, but computes its gradients from data of its choosing (flipped labels, poisoned
rows), or makes them up, in reaction to all it sees. Gradients are clipped to L before they are used, by the liar too.
Compare a run with liars B with the run in which they are honest: same noise, same masks, same path. Proofs:
docs/guarantees.md#influence.

**Theorem.** Let every honest local step θ ↦ θ − νg_v(θ) be c-Lipschitz (c = 1: convex β-smooth losses and ν ≤ 2/β; c
= max(1 − νm, νβ − 1) if they are m-strongly convex). After T iterations the models differ by at most

    all take the mean (curator, local DP, masked sums)   2νL·(|B|/n)·Σ_{t<T} cᵗ
    gossip, party i                                      xᵀ_i,  x⁰ = 0,  x^{t+1} = |p_K(W_t)|·(c·xᵗ + 2νL·1_B)
    a token                                              2ηL·Σ_{t: holder in B} c^{T−1−t}; on average 2ηL·π(B)·Σ_{t<T} cᵗ

(π the long-run law of the walk, in which it starts: |B|/n where all are visited alike; the mean of several tokens
moves by the mean), and, where models are kept in a ball of radius R, by at most 2R. Masked sums round gradients to a
grid of step g, which is no contraction: ν√d·g more in every iteration after the first, because what is rounded up in one
run may be rounded down in the other; in the first, two numbers of a liar are at most 2L + √d·g apart. *Proof.* In one iteration the
honest maps bring two models at most c times as far apart as before; where a liar acts, its gradient differs from the
honest one by at most 2L, which adds 2νL. Means of c-Lipschitz maps are c-Lipschitz, and rounds of gossip are linear:
absolute values of their weights bound what arrives at i. Noise and masks are the same in both runs and cancel;
projections do not expand. ∎ With c < 1 the first is at most 2L|B|/(nm), however long one learns. The loss f, being
L-Lipschitz, changes by at most L times that. With losses that do not care (all gradients zero) one liar that turns
its gradient from −L·e to L·e attains the bounds of the mean, of a token, and of gossip with weights ≥ 0.

**Who is not bound.** All this rests on liars doing what the protocol says with their gradient. Nobody can check that:
- a *token* is replaced by whoever holds it: the model of the next holder is whatever it sends;
- in *gossip* a message is what its sender says; two liars with opposite ends of the network need not even agree;
- a *masked sum* takes any number modulo q for a contribution: the pads that hide an honest gradient hide a false one.
  Here the only bound is the public ball that honest holders project on, `radius`, and what `netdp.learn.combine` does
  with several tokens or groups. Clipping what one *receives* is no remedy that the privacy proofs allow: a holder
  that keeps the token near the model it remembers makes the step depend on a second hidden state, which u's data
  moved too; trimming neighbours' messages makes gossip nonlinear, and only local DP is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import between, whole
from netdp.protocols import (
    CentralDescent,
    GossipDescent,
    LocalDescent,
    MaskedDescent,
    Protocol,
    RingDescent,
    Table,
    WalkDescent,
    response,
)
from netdp.protocols.descent import GossipRounds

from .learning import Landscape

# Rounds with negative weights (accelerated) need the matrix p_K(W) itself.
MAX_DENSE = 3000

influences = Table("the influence of liars", "has no bound on the influence of liars")
"""(protocol, liars, landscape or None) → how far each party's model can be moved (n,)."""


def influence(
    protocol: Protocol, liars: Iterable[int | str], losses: Landscape | None = None, **options: Any
) -> FloatArray:
    """How far parties that lie about their data can move the model of every party, at most (n,).

    liars    who they are, by number or name
    losses   a `Landscape`: its strong convexity makes the network forget; without it steps are taken not to expand (or by no more
             than the protocol's `expansion`)
    failure  (walks) None: on average over walks; a probability: exceeded by no more of them

    >>> from netdp import GossipDescent, LocalDescent, graphs
    >>> influence(LocalDescent(10, 5, sigma=1.0, step=0.1, clip=0.5), [3]).round(9).tolist()[0]      # 2·0.1·0.5·5/10
    0.05
    >>> p = GossipDescent(graphs.path(3), 2, 1, sigma=1.0, step=0.5, clip=1.0)
    >>> influence(p, [0]).round(4).tolist()
    [1.2222, 0.6667, 0.1111]
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.GossipDescent(…), got {protocol!r}")
    who = np.asarray(_members(protocol, liars), dtype=np.int64)
    found: FloatArray = influences(protocol, who, losses, **options)
    return found


def refuse_unpredicted(protocol: MaskedDescent) -> None:
    """Bounds are proved for plain steps along the mean of all parties' gradients, and for nothing else."""
    unlike = {"unit": "party", "sampling": 1.0, "momentum": 0.0, "average": "last"}
    if changed := [name for name, plain in unlike.items() if getattr(protocol, name) != plain]:
        raise Unsupported(
            f"MaskedDescent with {changed[0]}={getattr(protocol, changed[0])!r}: what is predicted of it is proved for plain steps "
            "in which every party takes part; train it in simulation"
        )


@influences.register
def _mean_of_all(
    protocol: CentralDescent | LocalDescent | MaskedDescent, liars: IntArray, losses: Landscape | None = None
) -> FloatArray:
    if isinstance(protocol, MaskedDescent) and protocol.aggregate != "mean":
        raise Unsupported(
            f"MaskedDescent with aggregate={protocol.aggregate!r}: a liar may decide which group is the middle one, "
            "so that how far it "
            "moves the model depends on how far the honest groups lie apart"
        )
    if isinstance(protocol, MaskedDescent):
        refuse_unpredicted(protocol)
    share = len(liars) / protocol.n
    c, T = lipschitz(protocol, losses), protocol.iterations
    if not isinstance(protocol, MaskedDescent) or not len(liars):
        return np.full(protocol.n, 2 * protocol.step * protocol.clip * share * added_up(c, T))
    # on the grid: in the first iteration all models agree, later on everybody's gradient may be rounded the other way
    one = protocol.sum
    first = share * one.distance * one.step
    later = 2 * protocol.clip * share + math.sqrt(protocol.dimension) * one.step
    with np.errstate(over="ignore"):
        faded = float(np.float64(c) ** (T - 1))
    return np.full(protocol.n, protocol.step * (first * faded + later * added_up(c, T - 1)))


@influences.register
def _gossip(protocol: GossipDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    c = lipschitz(protocol, losses)
    pushed = np.zeros(protocol.n)
    pushed[liars] = 2 * protocol.step * protocol.clip
    moved, spread = np.zeros(protocol.n), None
    for t in range(protocol.iterations):
        if spread is None or not protocol.is_static:
            spread = _absolute(protocol.rounds_of(t))
        moved = spread(c * moved + pushed)
    return moved


@influences.register
def _walk(
    protocol: WalkDescent, liars: IntArray, losses: Landscape | None = None, *, failure: float | None = None
) -> FloatArray:
    n, each = protocol.n, 2 * protocol.step * protocol.clip
    share = float(np.asarray(protocol.stationary)[liars].sum())
    c = lipschitz(protocol, losses)
    if failure is None:
        moved = each * share * added_up(c, protocol.steps)
    else:
        chance = between("failure", failure, 0.0, 1.0, open_low=True, open_high=True)
        if protocol.graph is not None:
            raise Unsupported(
                "WalkDescent on a graph with failure=…: how often a walk meets the liars is bounded on the complete "
                "graph only; "
                "failure=None gives the average"
            )
        if c > 1:
            raise Unsupported(
                f"WalkDescent with expansion={c:g}: late visits count more than early ones, and only their average "
                "is bounded"
            )
        from scipy.stats import binom

        visits = (
            float(binom.isf(chance / (1 + 1e-9), protocol.steps * protocol.tokens, min(share, 1.0))) if share else 0.0
        )
        moved = each * visits / protocol.tokens
    if protocol.contributions is not None and c <= 1:
        moved = min(moved, each * protocol.contributions * len(liars))
    if protocol.radius is not None:
        moved = min(moved, 2 * protocol.radius)
    return np.full(n, moved)


@influences.register
def _ring(protocol: RingDescent, liars: IntArray, losses: Landscape | None = None) -> FloatArray:
    c, last = lipschitz(protocol, losses), protocol.steps - 1
    when = (np.arange(protocol.rounds)[:, None] * protocol.n + liars).ravel()
    with np.errstate(over="ignore"):
        moved = 2 * protocol.step * protocol.clip * float((np.float64(c) ** (last - when)).sum())
    return np.full(protocol.n, moved if protocol.radius is None else min(moved, 2 * protocol.radius))


def lipschitz(protocol: Any, losses: Landscape | None) -> float:
    """c: how far apart an honest step brings two models, at most."""
    if losses is None:
        return float(getattr(protocol, "expansion", 1.0))
    if not isinstance(losses, Landscape):
        raise InvalidValue(f"losses must be a netdp.learn.Landscape, or None, got {type(losses).__name__}")
    step = float(protocol.step)
    return max(1.0 - step * losses.convexity, step * losses.smoothness - 1.0, 0.0)


def added_up(c: float, iterations: int) -> float:
    """Σ_{t<T} cᵗ.

    >>> added_up(1.0, 7), round(added_up(0.5, 50), 9)
    (7.0, 2.0)
    """
    with np.errstate(over="ignore"):
        return float((np.float64(c) ** np.arange(iterations)).sum())


def _absolute(rounds: GossipRounds) -> Any:
    """x ↦ |p_K(W)|x."""
    W = rounds.matrix
    if rounds.chebyshev is None and (W.data >= 0).all():
        return lambda x: list(response(W.dot, x, rounds.rounds + 1, None))[-1]
    n = rounds.graph.n
    if n > MAX_DENSE:
        raise Unsupported(
            f"accelerated rounds take a matrix of {n} × {n} numbers; it is offered up to {MAX_DENSE} parties"
        )
    matrix = np.abs(list(response(W.dot, np.eye(n), rounds.rounds + 1, rounds.chebyshev))[-1])
    return matrix.dot


def _members(protocol: Protocol, liars: Any) -> list[int]:
    if isinstance(liars, int | str) or liars is None:
        raise InvalidValue(f"liars must be a list of parties such as [0, 5], got {liars!r}")
    network = protocol.network
    members = [whole("liars", i) if network is None else network.index(i) for i in liars]
    if len(set(members)) < len(members) or any(i >= protocol.n for i in members):
        raise InvalidValue(f"liars must be different parties, of {protocol.n} there are, got {liars!r}")
    return sorted(members)
