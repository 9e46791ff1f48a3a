"""Shuffling with faults and through a server: `python benchmarks/shuffling_faults.py a b c d`.

(a) hops for a rate of outages (ε₀ = 1, δ = 1e-6, 1 % above a trusted shuffler): certified before it is known who is away,
    beside the lazy walk that the paper takes for a model of outages; ε of one pattern that happened, and after how many hops
    of it one could have stopped
(b) losses: what arrives, and what the smaller crowd costs
(c) graphs that change: a hypercube's dimensions one after the other, a new random graph in every round
(d) cover traffic: envelopes on every link against the probability that some link overflows, and what a server follows without

Before this there was no accountant for any of it: an outage of a whole queue had ε = ε₀ = 1.
"""

from __future__ import annotations

import numpy as np

from measure import QUICK, few, run_cases, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.shuffle.account.relay import overflows
from netdp.families.shuffle.plan import hops_given, plan_relayed, plan_rounds, plan_with_faults
from netdp.families.shuffle.simulate import shuffle_relayed
from netdp.privacy.clones import shuffled_epsilon
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.protocols.accounting import account

DELTA = 1e-6
N = size(1000, quick=40)


def networks() -> list[graphs.Graph]:
    if QUICK:
        return [graphs.regular(N, 8, seed=1)]
    found = [graphs.regular(1000, 8, seed=1), graphs.regular(10_000, 10, seed=1)]
    try:
        found.append(graphs.dataset("twitch"))
    except DataNotFound as reason:
        print(f"    {reason}")
    return found


def outages() -> str:
    lines = [""]
    for graph in networks():
        uniform = shuffled_epsilon(graph.n - 1, 1.0, DELTA)
        lines.append(f"{graph.name}: a trusted shuffler has ε = {uniform:.4f}")
        for rate in few((0.0, 0.05, 0.1, 0.2, 0.4), quick=2):
            parts = []
            for absent in ("unreachable", "silent"):
                found = plan_with_faults(graph, 1.0, DELTA, outages=rate, absent=absent)
                told = ""
                if rate and graph.n <= 1000:
                    pattern = found.protocol.pattern(0)
                    loss = account(found.protocol, "curator", transcript=pattern)
                    enough = hops_given(found.protocol, pattern, DELTA)
                    told = f", as it happened {loss.worst_epsilon(DELTA):.4f}, {enough} hops were enough"
                parts.append(f"{absent} {found.protocol.rounds:4d} hops (ε {found.promised:.4f}{told})")
            lazy = plan_rounds(graph, 1.0, DELTA, laziness=rate).protocol.rounds
            lines.append(f"   {rate:4.0%} away: {'; '.join(parts)}; lazy walk {lazy}")
    return "\n    ".join(lines)


def losses() -> str:
    graph, lines = graphs.regular(N, 8, seed=1), [""]
    for lost in few((0.0, 1e-4, 1e-3, 5e-3)):
        found = plan_with_faults(graph, 1.0, DELTA, outages=0.1, lost=lost)
        lines.append(
            f"{lost:6g} lost in a round: {found.protocol.rounds} hops, {found.protocol.arrives:.1%} arrive, "
            f"ε {found.promised:.4f}, error {found.best.rmse:.4f}"
        )
    return "\n    ".join(lines)


def changing() -> str:
    dimensions, lines = size(10, quick=7), [""]
    n = 1 << dimensions
    cube = [
        graphs.Graph.from_edges(n, [(u, u ^ (1 << k)) for u in range(n) if not u >> k & 1], name=f"dimension {k}")
        for k in range(dimensions)
    ]
    uniform = shuffled_epsilon(n - 1, 1.0, DELTA)
    loss = account(FaultyShuffle(cube, dimensions, 1.0, laziness=0.5), "curator")
    fixed = plan_rounds(graphs.hypercube(dimensions), 1.0, DELTA, laziness=0.5)
    lines.append(
        f"hypercube of {n} users, one dimension after the other: {dimensions} hops, ε {loss.worst_epsilon(DELTA):.4f} (trusted "
        f"{uniform:.4f}); all dimensions in every round: {fixed.protocol.rounds} hops"
    )
    fresh = tuple(graphs.regular(N, 4, seed=k) for k in range(24))
    loss = account(FaultyShuffle(fresh, 24, 1.0), "curator")
    still = plan_rounds(fresh[0], 1.0, DELTA)
    lines.append(
        f"a new 4-regular graph in each of 24 rounds: ε {loss.worst_epsilon(DELTA):.4f}; the same graph all the time needs "
        f"{still.protocol.rounds} hops for {still.promised:.4f}"
    )
    return "\n    ".join(lines)


def cover() -> str:
    lines = [""]
    for graph in networks():
        found = plan_relayed(graph, 1.0, DELTA)
        chosen = found.protocol
        table = overflows(Shuffle(graph, chosen.rounds, 1.0), 14)
        lines.append(
            f"{graph.name}: {chosen.rounds} hops, {chosen.cover} envelopes a link and round, {chosen.envelopes:,.0f} per user "
            f"in all, ε {found.promised:.4f} (trusted {found.uniform:.4f}, no cover 1)"
        )
        for k in few((2, 3, 4)):
            bundled = plan_relayed(graph, 1.0, DELTA, bundles=k).protocol
            lines.append(
                f"   {k} bundles: {bundled.rounds} hops, {bundled.envelopes:,.0f} bundles per user in all, with room for "
                f"{bundled.room(1.0)} each on average"
            )
        lines.append("   overflow by cover: " + ", ".join(f"{c}: {table[c - 1]:.0e}" for c in (2, 4, 6, 8, 10, 12, 14)))
    graph = graphs.regular(N, 8, seed=1)
    lines.append(f"without cover, {N:,} users with 8 links: what the server still knows of where a report is")
    for rounds in few((1, 2, 4, 8, 16, 32)):
        run = shuffle_relayed(RelayedShuffle(graph, rounds, 1.0), np.zeros(N), 0)
        laws = run.laws()
        lines.append(
            f"   {rounds:3d} hops: certain of {np.mean(laws.max(axis=1) == 1):.1%}; median of the effective number of "
            f"places {np.median(1 / np.square(laws).sum(axis=1)):.0f}"
        )
    return "\n    ".join(lines)


CASES = {"a": outages, "b": losses, "c": changing, "d": cover}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, lambda: None)
