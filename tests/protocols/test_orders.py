"""Protocols of every kind, drawn at random, keep the order of losses: docs/proofs/privacy.md#tables.

A superset of observers learns no less, nor do more colluders; what was found is within its bound; `pairwise` is `account`; more
noise or a larger δ costs less ε; noise that was calibrated meets its target; the network shows no more than local DP; two views
tell no less than one; a channel that shows less tells less. Compared to a relative 10⁻⁹ of ε, at δ drawn at random.

`NETDP_ORDERS=40 pytest tests/protocols/test_orders.py` draws forty of every kind instead of one or a few.
"""

import dataclasses
import itertools
import os

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import GraphError, InvalidValue, Unsupported
from netdp.privacy import GaussianCurve, ProfileCurve
from netdp.privacy.observers import entry
from netdp.protocols.accounting import account, pairwise
from netdp.protocols.alternatives import local_dp
from netdp.protocols.base import Protocol
from netdp.protocols.calibration import calibrate

CLOSE = 1e-9
"""Relative, of ε: what rounding may do."""

FEW = {
    "gossip": 3,
    "masked-sum": 4,
    "masked-descent": 3,
    "erdos-renyi-gossip": 2,
    "gossip-descent": 3,
    "shuffle": 3,
    "linear-gaussian-view": 3,
}
"""How many are drawn, if not one: more of those whose losses are quick to compute."""

SLOW = {"walk-histogram", "erdos-renyi-descent", "graph-walk-sum", "ring-histogram", "faulty-shuffle", "walk-sum"}
"""Their noise is calibrated only where many are asked for."""

MANY = int(os.environ.get("NETDP_ORDERS", "0"))


def a_graph(coins, least=4, most=7):
    n = int(coins.integers(least, most + 1))
    kind = int(coins.integers(5))
    if kind == 0:
        return graphs.ring(n)
    if kind == 1:
        return graphs.path(n)
    if kind == 2:
        return graphs.star(n)
    if kind == 3:
        return graphs.complete(n)
    edges = {(i, i + 1) for i in range(n - 1)} | {
        (min(u, w), max(u, w)) for u, w in coins.integers(0, n, (2, 2)).tolist() if u != w
    }
    return graphs.Graph.from_edges(n, sorted(edges), name=f"path({n}) and links")


def sigma(coins):
    return float(round(np.exp(coins.uniform(np.log(0.3), np.log(12))), 4))


def pick(coins, *choices):
    return choices[int(coins.integers(len(choices)))]


def masked_sum(coins):
    graph = a_graph(coins, 5, 9)
    options = {"grid": 2.0 ** -int(coins.integers(1, 12))} if coins.random() < 0.5 else {}
    if coins.random() < 0.3:
        options["masks"] = a_graph(coins, graph.n, graph.n)
    elif coins.random() < 0.4:
        options |= {"absent": 1, "attempts": int(coins.integers(1, 4))}
    return netdp.MaskedSum(
        graph,
        sigma=sigma(coins),
        dimension=pick(coins, 1, 1, 3),
        unit=pick(coins, "party", "record"),
        sensitivity=pick(coins, 1.0, 3.7),
        **options,
    )


def masked_descent(coins):
    graph = a_graph(coins, 5, 8)
    unit = pick(coins, "party", "record")
    options = {"sampling": pick(coins, 0.5, 0.02), "grid": 2.0**-12} if coins.random() < 0.3 else {}
    if unit == "record":
        options["max_records"] = 10
    if coins.random() < 0.3:
        options["masks"] = a_graph(coins, graph.n, graph.n)
    return netdp.MaskedDescent(
        graph,
        int(coins.integers(1, 30)),
        sigma=4 * sigma(coins),
        step=0.1,
        dimension=pick(coins, 1, 3),
        unit=unit,
        attempts=pick(coins, 1, 2),
        **options,
    )


def gossip(coins):
    graph = a_graph(coins)
    grid = {"grid": 2.0 ** -int(coins.integers(8, 40))} if coins.random() < 0.5 else {}
    masks = {"masks": float(10 ** coins.uniform(-1, 3))} if not grid and coins.random() < 0.5 else {}
    return netdp.Gossip(
        graph,
        rounds=int(coins.integers(1, 8)),
        sigma=sigma(coins),
        refresh=pick(coins, 0.0, 1.0, 1.0),
        dimension=pick(coins, 1, 4) if grid else 1,
        **grid,
        **masks,
    )


def gossip_descent(coins):
    return netdp.GossipDescent(
        a_graph(coins),
        int(coins.integers(1, 5)),
        int(coins.integers(1, 4)),
        sigma=4 * sigma(coins),
        step=0.1,
        masks=pick(coins, 0.0, 10.0),
        accelerated=False,
    )


def randomized(coins):
    grid = {"grid": 2.0 ** -int(coins.integers(8, 40)), "refresh": 1.0} if coins.random() < 0.5 else {}
    return netdp.RandomizedGossip(a_graph(coins), steps=int(coins.integers(3, 12)), sigma=sigma(coins), **grid)


def varying(coins):
    n = int(coins.integers(4, 7))
    return netdp.VaryingGossip([a_graph(coins, n, n) for _ in range(int(coins.integers(1, 4)))], sigma=sigma(coins))


def push_sum(coins):
    n = int(coins.integers(4, 7))
    links = {(i, (i + 1) % n) for i in range(n)}
    links |= {(int(u), int(w)) for u, w in coins.integers(0, n, (2, 2)) if u != w}
    return netdp.PushSum(n, sorted(links), rounds=int(coins.integers(1, 6)), sigma=sigma(coins))


def secret_gossip(coins):
    return netdp.ErdosRenyiGossip(
        int(coins.integers(5, 16)),
        p=float(coins.uniform(0.05, 0.9)),
        rounds=int(coins.integers(1, 5)),
        sigma=sigma(coins),
        varying=pick(coins, True, False),
    )


def secret_descent(coins):
    return netdp.ErdosRenyiDescent(
        int(coins.integers(5, 16)), float(coins.uniform(0.02, 0.5)), int(coins.integers(1, 20)), 8 * sigma(coins), 0.1
    )


def paths(coins):
    n = int(coins.integers(4, 6))
    one = [[int(v) for v in coins.integers(0, n, int(coins.integers(3, 9)))] for _ in range(int(coins.integers(1, 3)))]
    return netdp.PathSum(n, one, sigma=sigma(coins), closing=pick(coins, True, False), **noise_of_a_token(coins))


def noise_of_a_token(coins):
    how = int(coins.integers(3))
    return [{}, {"law": "laplace"}, {"grid": 2.0 ** -int(coins.integers(4, 20)), "dimension": pick(coins, 1, 3)}][how]


def ring_sum(coins):
    return netdp.RingSum(
        int(coins.integers(4, 7)),
        int(coins.integers(1, 4)),
        sigma=sigma(coins),
        noise=pick(coins, "single", "distributed"),
        closing=pick(coins, True, False),
        **noise_of_a_token(coins),
    )


def secret_ring(coins):
    return netdp.SecretRingSum(
        int(coins.integers(4, 12)), int(coins.integers(1, 5)), sigma=sigma(coins), sender=pick(coins, "known", "hidden")
    )


def senders(coins):
    return pick(coins, "known", "known", "receiver-known", "hidden")


def walk_sum(coins):
    n = int(coins.integers(5, 12))
    return netdp.WalkSum(
        n, n + int(coins.integers(0, 30)), sigma=sigma(coins), sender=senders(coins), **noise_of_a_token(coins)
    )


def walk_descent(coins):
    return netdp.WalkDescent(
        int(coins.integers(5, 12)), int(coins.integers(4, 40)), sigma=sigma(coins), step=0.1, sender=senders(coins)
    )


def graph_walk(coins):
    return netdp.GraphWalkSum(
        a_graph(coins, 4, 5), int(coins.integers(5, 12)), sigma=sigma(coins), tokens=pick(coins, 1, 2)
    )


def walk_histogram(coins):
    return netdp.WalkHistogram(
        int(coins.integers(4, 7)),
        int(coins.integers(7, 16)),
        domain=int(coins.integers(2, 5)),
        gamma=float(coins.uniform(0.1, 0.9)),
        sender=senders(coins),
        response=pick(coins, "k-ary", "unary"),
    )


def ring_histogram(coins):
    return netdp.RingHistogram(
        int(coins.integers(4, 7)),
        int(coins.integers(1, 3)),
        domain=int(coins.integers(2, 5)),
        gamma=float(coins.uniform(0.1, 0.9)),
        closing=pick(coins, True, False),
    )


def tall(coins):
    """ε₀ of a report."""
    return float(round(np.exp(coins.uniform(np.log(0.3), np.log(4))), 4))


def shuffle(coins):
    graph = pick(coins, a_graph(coins, 5, 20), graphs.regular(60, 6, seed=1))
    return netdp.Shuffle(graph, int(coins.integers(8, 60)), tall(coins), laziness=pick(coins, 0.0, 0.3))


def faulty(coins):
    graph = pick(coins, a_graph(coins, 5, 20), graphs.regular(60, 6, seed=1))
    return netdp.FaultyShuffle(graph, int(coins.integers(20, 120)), tall(coins), outages=pick(coins, 0.0, 0.1))


def relayed(coins):
    rule = {"cover": int(coins.integers(4, 12))} if coins.random() < 0.5 else {"bundles": int(coins.integers(2, 6))}
    graph = pick(coins, graphs.complete(int(coins.integers(5, 30))), graphs.regular(60, 6, seed=1))
    return netdp.RelayedShuffle(
        graph, int(coins.integers(20, 120)), tall(coins), laziness=pick(coins, 0.0, 0.5), **rule
    )


def linear(coins):
    n = int(coins.integers(3, 6))
    rows = int(coins.integers(n, n + 3))
    readers = [tuple(sorted({int(v) for v in coins.integers(0, n, 2)})) for _ in range(rows)]
    known = [(int(v),) for v in coins.integers(0, n, rows)]
    data = coins.integers(-2, 3, (rows, n)).astype(float)
    return netdp.LinearGaussianView(n, data, sigma(coins) * np.eye(rows), readers, known=known)


DRAW = {
    "central": lambda coins: netdp.Central(int(coins.integers(3, 9)), sigma(coins)),
    "central-descent": lambda coins: netdp.CentralDescent(
        int(coins.integers(3, 9)), int(coins.integers(1, 9)), sigma(coins), 0.1
    ),
    "erdos-renyi-descent": secret_descent,
    "erdos-renyi-gossip": secret_gossip,
    "faulty-shuffle": faulty,
    "gossip": gossip,
    "gossip-descent": gossip_descent,
    "graph-walk-sum": graph_walk,
    "linear-gaussian-view": linear,
    "local": lambda coins: netdp.Local(int(coins.integers(3, 9)), sigma(coins)),
    "local-descent": lambda coins: netdp.LocalDescent(
        int(coins.integers(3, 9)), int(coins.integers(1, 9)), sigma(coins), 0.1
    ),
    "masked-descent": masked_descent,
    "masked-sum": masked_sum,
    "path-sum": paths,
    "push-sum": push_sum,
    "randomized-gossip": randomized,
    "relayed-shuffle": relayed,
    "ring-descent": lambda coins: netdp.RingDescent(
        int(coins.integers(4, 9)), int(coins.integers(1, 4)), sigma(coins), 0.1
    ),
    "ring-histogram": ring_histogram,
    "ring-sum": ring_sum,
    "secret-ring-sum": secret_ring,
    "shuffle": shuffle,
    "tree-sum": lambda coins: netdp.TreeSum(int(coins.integers(3, 12)), sigma(coins), masks=pick(coins, 0.0, 9.0)),
    "varying-gossip": varying,
    "walk-descent": walk_descent,
    "walk-histogram": walk_histogram,
    "walk-sum": walk_sum,
}


def louder(protocol):
    """The same with more noise."""
    names = {field.name for field in dataclasses.fields(protocol)}
    if "sigma" in names:
        return protocol.replace(sigma=1.3 * protocol.sigma)
    if "gamma" in names:
        return protocol.replace(gamma=1 - (1 - protocol.gamma) / 1.3)
    return protocol.replace(epsilon0=protocol.epsilon0 / 1.3) if "epsilon0" in names else None


def refused(ask, *arguments, **options):
    """The answer, or None where there is none to be had."""
    try:
        return ask(*arguments, **options)
    except (GraphError, InvalidValue, Unsupported):
        return None


def certified(*arguments, **options):
    """A certified loss, or None."""
    loss = refused(account, *arguments, **options)
    return loss if loss is not None and loss.is_certified else None


@dataclasses.dataclass
class Column:
    """What observer v learns, of all pairs."""

    loss: object
    v: int

    def epsilon(self, delta):
        return np.asarray(self.loss.epsilon(delta))[:, self.v]


class Relations:
    """The relations that were looked at, and those that were broken: (relation, by how much of ε, where)."""

    def __init__(self, deltas):
        self.deltas, self.broken, self.looked = deltas, [], set()

    def ordered(self, relation, *losses, note=""):
        """Each loss is at most the next one, where both have a target; those that are None are left out."""
        for small, large in itertools.pairwise([loss for loss in losses if loss is not None]):
            for delta in self.deltas:
                self.compare(relation, small.epsilon(delta), large.epsilon(delta), f"{note} δ={delta:.3g}")

    def compare(self, relation, low, high, note=""):
        self.looked.add(relation)
        low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        some = ~(np.isnan(low) | np.isnan(high)) & (low > high)
        over = float(((low[some] - high[some]) / np.maximum(high[some], 1e-6)).max(initial=0.0))
        if over > CLOSE:
            self.broken.append((relation, over, note))


def relations(p, coins):
    """All relations of one protocol."""
    held = Relations(np.sort(10.0 ** coins.uniform(-9, -0.5, 3)))
    roles, n, first = list(p.roles), p.n, {}
    if p.kind == "randomized-gossip" and p.grid is None:
        first = {"samples": 20}
    elif p.kind == "erdos-renyi-gossip" and not p.varying:
        first = {"degree": 3}
    a, b = (int(v) for v in coins.permutation(n)[:2])
    nobody = certified(p, roles) if roles else None
    one, two = certified(p, [*roles, a], **first), certified(p, [*roles, a, b], **first)
    any_one, any_two = certified(p, colluders=1), certified(p, colluders=2) if n > 2 else None
    named = [loss for loss in (nobody, one, two) if loss is not None]
    against_any = [loss for loss in (any_one, any_two) if loss is not None]
    held.ordered("superset of observers", nobody, one, two, note=f"{a}, {b}")
    held.ordered("more colluders", any_one, any_two)
    if not first:
        for loss, of_any in ((one, any_one), (two, any_two)):
            if loss is not None and of_any is not None:
                held.ordered("named is at most any", loss, of_any, note=f"{a}, {b}")
    for loss in against_any:
        if loss.found is not None:
            held.ordered("found is at most its bound", loss.found, entry(loss.curve, loss.found.target))
    _pairs(p, first, a, held)
    quiet = louder(p)
    if quiet is not None:
        held.ordered(
            "more noise", refused(account, quiet, roles or [a], **first), named[0] if named and not first else None
        )
        if any_two is not None:
            held.ordered("more noise", refused(account, quiet, colluders=2), any_two, note="any 2")
    for loss in (*named, *against_any):
        epsilons = [np.asarray(loss.epsilon(delta)) for delta in held.deltas]
        for less, more in itertools.pairwise(epsilons):
            held.compare("larger δ", more, less)
        here = np.isfinite(epsilons[0])
        if here.any():
            held.compare("δ at ε", np.asarray(loss.delta(float(epsilons[0][here].max())))[here], held.deltas[0])
    alone = refused(local_dp, p)
    if alone is not None and getattr(p, "attempts", 1) == 1:  # local DP counts one attempt
        for loss in (*named, *against_any):
            held.ordered("network is at most local", loss, alone)
    if named and not first:
        part = entry(named[0].curve, b)
        held.ordered("composed is at least a part", part, refused(part.self_compose, 2))
    if hasattr(p, "sender") and p.network is None:
        shown = [refused(p.replace, sender=how) for how in ("hidden", "receiver-known", "known")]
        held.ordered("a channel that shows less", *(None if q is None else certified(q, [a]) for q in shown))
    if MANY or p.kind not in SLOW:
        _calibrated(p, coins, held)
    return held


def _pairs(p, first, a, held):
    if p.roles:
        return
    both, column = refused(pairwise, p, workers=1, **first), refused(account, p, [a], **first)
    if both is not None and column is not None:
        held.ordered("all pairs are accounts", Column(both, a), column, Column(both, a))


def _calibrated(p, coins, held):
    delta, target = float(10.0 ** coins.uniform(-8, -2)), float(np.exp(coins.uniform(np.log(0.2), np.log(5))))
    if (
        getattr(p, "draw", None) is not None and p.kind != "erdos-renyi-descent"
    ):  # found for a draw that is not known yet
        return
    for options in ({}, {"colluders": 2}):
        found = refused(calibrate, p, target, delta, **options)
        if found is not None:
            who = [{"observers": list(p.roles) or [v]} for v in range(1 if p.roles else p.n)]
            reached = max(account(found, **one).worst_epsilon(delta) for one in ([options] if options else who))
            held.looked.add("calibrated")
            if reached > target:
                held.broken.append(("calibrated", reached / target - 1, f"{options} ε={target:.4g} δ={delta:.3g}"))


def drawn(kind, number):
    """The protocol of this number, and coins for what is asked of it; parameters that do not fit are drawn again."""
    coins = np.random.default_rng([number, *kind.encode()])
    while True:
        protocol = refused(DRAW[kind], coins)
        if protocol is not None:
            return protocol, coins


def test_every_kind_is_drawn():
    assert set(DRAW) == {kind for kind, cls in Protocol.kinds().items() if cls.__module__.startswith("netdp.")}


@pytest.mark.parametrize("kind", DRAW)
def test_no_order_is_broken(kind):
    looked = set()
    for number in range(MANY or FEW.get(kind, 1)):
        protocol, coins = drawn(kind, number)
        assert protocol.kind == kind
        held = relations(protocol, coins)
        broken = held.broken
        assert broken == [], protocol
        looked |= held.looked
    assert {"more colluders", "larger δ"} <= looked


def test_a_broken_order_is_noticed():
    """Chords of thin tables, as they were read once: the same loss, tabulated twice."""
    exact = GaussianCurve(1.0)
    dense, thin = (ProfileCurve.of(exact, np.linspace(0.0, 12.0, many)) for many in (2401, 256))
    held = Relations([1e-6])
    held.ordered("same", exact, dense, thin)
    assert held.broken == []
    held.ordered("same", thin, dense)
    held.ordered("same", dense, exact)
    assert [relation for relation, over, _ in held.broken if over > 1e-7] == ["same", "same"]
    held.ordered("more noise", exact, GaussianCurve(0.9))
    assert held.broken[-1][0] == "more noise"
