"""What is new in the accounting of network shuffling: `python benchmarks/shuffling_more.py a b c d` (a, c, d need NETDP_DATA).

(a) hops until the ε of a trusted shuffler (1 % above it) is certified on the real graphs of the paper: by one common law (as
    before), by crowds, for all users, 99 % and half of them; ε₀ = 1, δ = 10⁻⁶; and a trusted sampler of √n reports
(b) single reporting: certified ε beside "all" and a lower bound; errors at equal ε
(c) one user who colludes with the curator: of least, median and largest degree; ε of the users at several δ
(d) ε after few hops: what is certified before and after, for the worst, 99 % and the median user
"""

from __future__ import annotations

import sys
import time

import numpy as np

import netdp
from measure import QUICK, few, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.shuffle.account.mixing import fewest_rounds, mixing, separation
from netdp.families.shuffle.account.shuffling import UserCurves, least_deltas, trusted_sampler
from netdp.families.shuffle.error import empty_hands, largest_error
from netdp.families.shuffle.plan import calibrate_epsilon0, plan_rounds
from netdp.privacy.clones import Heap
from netdp.protocols import Shuffle

REAL = ("twitch", "facebook-pages", "deezer", "enron")
DELTA, EPSILON0 = 1e-6, 1.0


def real():
    if QUICK:
        yield "twitch", graphs.regular(300, 8, seed=0)
        return
    for name in REAL:
        try:
            yield name, graphs.dataset(name)
        except DataNotFound as absent:
            print(f"  {name}: {absent}")


def before(graph, share=0.01):
    """Hops by the older bound for δ at most (1 + share)·δ at the trusted shuffler's ε: what `plan_rounds` did."""
    uniform = Heap.of(graph.n - 1, EPSILON0).epsilon(DELTA)
    local = float(Heap.of(0, EPSILON0).deltas(uniform)[0])
    return fewest_rounds(graph, 0.0, 0.9 * share * DELTA / local).rounds


def hops() -> None:
    print(f"(a) hops at ε₀ = {EPSILON0:g}, δ = {DELTA:g}")
    print(
        "  graph             before   crowds: all users   99 %   half   certified   trusted shuffler   trusted sampler   s"
    )
    for name, graph in real():
        start = time.perf_counter()
        plans = [plan_rounds(graph, EPSILON0, DELTA, users=users) for users in (1.0, 0.99, 0.5)]
        took = time.perf_counter() - start
        found = [plan.protocol.rounds for plan in plans]
        print(
            f"  {name:<15} {before(graph):>8,} {found[0]:>14,} {found[1]:>12,} {found[2]:>6,} {plans[0].promised:>11.4f} "
            f"{plans[0].uniform:>14.4f} {plans[0].sampled:>17.4f} {took:>9.0f}"
        )


def single() -> None:
    print(
        "(b) single reporting at δ = 1e-06: certified ε, a lower bound on it, and errors (shares of yes and no) at the ε of all"
    )
    cases = [("regular(1000, 8)", graphs.regular(size(1000, quick=300), 8, 0), 60)]
    try:
        if not QUICK:
            cases.append(("twitch", graphs.dataset("twitch"), 120))
    except DataNotFound as absent:
        print(f"  twitch: {absent}")
    for name, graph, rounds in cases:
        for epsilon0 in few((0.5, 1.0, 2.0)):
            every = Shuffle(graph, rounds, epsilon0)
            alone = every.replace(reporting="single")
            losses = [netdp.account(p, "curator").worst_epsilon(DELTA) for p in (every, alone)]
            handed = 1 - empty_hands(every)[0] / graph.n
            grid = np.linspace(0.2, 1.0, 161) * losses[1]
            low = least_deltas(graph.n, handed, epsilon0, grid)
            least = grid[max(0, int(np.argmax(low <= DELTA)) - 1)]
            chosen = calibrate_epsilon0(graph, losses[0], DELTA, rounds=rounds, reporting="single").protocol
            print(
                f"  {name:<17} ε₀ = {epsilon0:3.1f}  all {losses[0]:.4f}  single {losses[1]:.4f} (×{losses[1] / losses[0]:.2f}, "
                f"at least ×{least / losses[0]:.2f})  error: all {largest_error(every).rmse:.4f}, single before "
                f"{largest_error(alone).rmse:.4f}, now {largest_error(chosen).rmse:.4f} (ε₀ = {chosen.epsilon0:g})"
            )


def colluders() -> None:
    print("(c) the curator and one user, ε₀ = 1: ε of the best, the median and the 99th of 100 users")
    for name, graph in real():
        rounds = 100 if name == "twitch" else 1000
        order = np.argsort(graph.degrees, kind="stable")
        for spy in few((order[0], order[graph.n // 2], order[-1])):
            start = time.perf_counter()
            loss = netdp.account(Shuffle(graph, rounds, EPSILON0), ["curator", int(spy)])
            took = time.perf_counter() - start
            lines = []
            for delta in (1e-2, 1e-3, 1e-4, 1e-5):
                low, middle, high = np.nanquantile(loss.epsilon(delta), [0.0, 0.5, 0.99])
                lines.append(f"δ = {delta:g}: {low:.3f} {middle:.3f} {high:.3f}")
            print(f"  {name:<15} degree {int(graph.degrees[spy]):>5}  {'   '.join(lines)}   ({took:.0f} s)")


def early() -> None:
    print(
        "(d) ε at δ = 1e-06 after t hops, ε₀ = 1: one common law; crowds for the worst user, 99 %, half; single, half"
    )
    for name, graph in real():
        for t in (30, 50, 80) if name == "twitch" else (500, 1500, 3000):
            protocol = Shuffle(graph, t, EPSILON0)
            s = separation(protocol).value
            table = UserCurves.of(protocol, mixing(protocol))
            mine = [table.epsilon(table.group_of(users), DELTA) for users in (1.0, 0.99, 0.5)]
            alone = UserCurves.of(protocol.replace(reporting="single"), mixing(protocol))
            lonely = alone.epsilon(alone.group_of(0.5), DELTA)
            older = Heap.of(graph.n - 1, EPSILON0, keep=1 - s, revealed=s).epsilon(DELTA)
            sampler = trusted_sampler(protocol).worst_epsilon(DELTA)
            uniform = Heap.of(graph.n - 1, EPSILON0).epsilon(DELTA)
            print(
                f"  {name:<15} t = {t:>5}  {older:.3f}   {mine[0]:.3f} {mine[1]:.3f} {mine[2]:.3f}   {lonely:.3f}   "
                f"(shuffler {uniform:.4f}, sampler {sampler:.4f})"
            )


CASES = {"a": hops, "b": single, "c": colluders, "d": early}

if __name__ == "__main__":
    for letter in sys.argv[1:] or CASES:
        CASES[letter]()
