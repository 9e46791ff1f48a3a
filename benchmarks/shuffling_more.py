"""What is new in the accounting of network shuffling: `python benchmarks/shuffling_more.py a b c d` (a, c, d need NETDP_DATA).

(a) hops until the ε of a trusted shuffler (1 % above it) is certified on the real graphs of the paper: by one common law (as
    before), by crowds, for all users, 99 % and half of them; ε₀ = 1, δ = 10⁻⁶; and a trusted sampler of √n reports
(b) single reporting: certified ε beside "all" and a lower bound; errors at equal ε
(c) one user who colludes with the curator: of least, median and largest degree; ε of the users at several δ
(d) ε after few hops: what is certified before and after, for the worst, 99 % and the median user
(e) 2,000 mixed reports of k-ary response: certified, by sums without bins (independent of the accountant), by the worst
    mechanism, and what counting reveals at least; unary encoding, Laplace noise and PrivUnit by their total variation
(f) tightness at real sizes: certified ε over that of an attack that counts reports, for all, single, faulty, relayed
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.stats import binom

import netdp
from measure import QUICK, few, size
from netdp import graphs
from netdp.errors import DataNotFound
from netdp.families.shuffle.account.mixing import fewest_rounds, mixing, separation
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.account.shuffling import UserCurves, least_deltas, trusted_sampler
from netdp.families.shuffle.error import empty_hands, largest_error
from netdp.families.shuffle.plan import calibrate_epsilon0, plan_rounds
from netdp.mechanisms import GridLaplace, PrivUnit, UnaryEncoding
from netdp.privacy.clones import Heap
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle

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


def summed(n, epsilon0, k, eps):
    """δ of n shuffled k-ary responses by sums over the counts of uniform draws, symbols and the own symbol; no bins."""
    e = np.exp(epsilon0)
    drawn = np.arange(n)
    total, grow = 0.0, np.exp(eps)
    for T, chance in zip(drawn + 1, binom.pmf(drawn, n - 1, k / (e + k - 1)), strict=True):
        if chance < 1e-14:
            continue
        s = np.arange(T + 1)
        some = binom.pmf(s, T, 2 / k)
        for symbols in s[some * chance > 1e-15]:
            a = np.arange(symbols + 1)
            b, c = symbols - a, T - symbols
            score = np.maximum(e * a + b + c - grow * (a + e * b + c), 0.0) * k / (e + k - 1) / T
            total += chance * some[symbols] * float(score @ binom.pmf(a, symbols, 0.5))
    return total


def counted(n, epsilon0, eps, k=None, arrives=1.0, handed=None):
    """δ of counting the reports of 0 and of 1 (all others hold a third value, or 0 if there are two only): an attack, so at least.

    handed : single reporting, the probability that the target's report is one of the n items; by default it is one that arrives.
    """
    e = np.exp(epsilon0)
    if k is None or k == 2:
        if handed is None and arrives == 1:
            return least_deltas(n, 1.0, epsilon0, eps)
        if handed is not None:
            return least_deltas(n, handed, epsilon0, eps)
        far = np.arange(n + 1)  # of those that arrive, given how many: N is seen, too
        chances = binom.pmf(far[1:], n, arrives)
        heavy = np.flatnonzero(chances > 1e-9)[:: max(1, n // 400)]
        weights = chances[heavy] / chances[heavy].sum()
        return arrives * sum(
            w * least_deltas(int(N), 1.0, epsilon0, eps) for N, w in zip(heavy + 1, weights, strict=True)
        )
    p, q = 1 / (e + k - 1), e / (e + k - 1)
    grow = np.exp(np.atleast_1d(eps))[:, None]
    items = n if handed is not None else n - 1
    chance = arrives if handed is None else handed

    def pair(count):
        """P(n₀ = i, n₁ = j) of so many others, rows i."""
        top = int(count * p * arrives + 14 * np.sqrt(count * p * arrives + 1)) + 8
        i = np.arange(top)
        return binom.pmf(i, count, p * arrives)[:, None] * binom.pmf(
            i[None, :], count - np.minimum(i, count)[:, None], p * arrives / (1 - p * arrives)
        )

    rest, base = pair(n - 1), pair(items)
    size = min(len(rest), len(base))
    rest, base = rest[:size, :size], base[:size, :size]
    down = np.pad(rest, ((1, 0), (0, 0)))[:-1]
    right = np.pad(rest, ((0, 0), (1, 0)))[:, :-1]
    left = max(0.0, 1 - q - p)
    sides = [
        ((1 - chance) * base + chance * (mine * down + theirs * right + left * rest)).ravel()
        for mine, theirs in ((q, p), (p, q))
    ]
    return np.maximum(sides[0] - grow * sides[1], 0).sum(axis=1)


def least_epsilon(delta, high, **how):
    """The ε of counting at δ."""
    low = 0.0
    for _ in range(30):
        middle = (low + high) / 2
        found = float(counted(eps=np.array([middle]), **how)[0])
        low, high = (low, middle) if found <= delta else (middle, high)
    return low


def mechanisms() -> None:
    n = size(2000, quick=200)
    print(f"(e) {n:,} mixed reports, ε₀ = {EPSILON0:g}, δ = {DELTA:g}")
    worst = Randomizer(EPSILON0).heap(n - 1).epsilon(DELTA)
    print(
        f"  any randomizer           ε = {worst:.5f}, counting at least {least_epsilon(DELTA, worst, n=n, epsilon0=EPSILON0):.5f}"
    )
    for k in few((4, 16, 128)):
        start = time.perf_counter()
        found = Randomizer(EPSILON0, values=k).heap(n - 1).epsilon(DELTA)
        took = time.perf_counter() - start
        there = summed(n, EPSILON0, k, found)
        low = least_epsilon(DELTA, found, n=n, epsilon0=EPSILON0, k=k)
        print(
            f"  {k:>3}-ary response         ε = {found:.5f} ({took:.2f} s); δ there by sums {there:.4g}, "
            f"{100 * (DELTA / there - 1):.2f} % less; counting at least {low:.5f} (×{found / low:.3f})"
        )
    for mechanism in (
        UnaryEncoding(16, EPSILON0, "symmetric"),
        UnaryEncoding(16, EPSILON0),
        GridLaplace(1.0, EPSILON0),
        PrivUnit(200, EPSILON0),
    ):
        apart = float(mechanism.curve.delta(0.0))
        found = Randomizer(EPSILON0, variation=apart).heap(n - 1).epsilon(DELTA)
        print(f"  {type(mechanism).__name__:<24} ε = {found:.5f}, total variation {apart:.4f}")


def tightness() -> None:
    print(
        f"(f) certified ε over that of counting the reports (an attack), ε₀ = {EPSILON0:g}; places say nothing once mixed"
    )
    for n in few(size((200, 600, 2000), quick=(100,))):
        graph = graphs.regular(n, 8, seed=0)
        for k in few((None, 16)):
            away = FaultyShuffle(graph, 90, EPSILON0, outages=0.1, values=k)
            lossy = FaultyShuffle(graph, 60, EPSILON0, lost=0.05 / 60, values=k)
            ways = {
                "all": (Shuffle(graph, 60, EPSILON0, values=k), {}, {}),
                "single": (Shuffle(graph, 60, EPSILON0, values=k, reporting="single"), {"handed": 1 - (1 - 1 / n) ** n}, {}),
                "before the draw, 10 % away": (away, {}, {}),
                "the same given the pattern": (away, {}, {"transcript": away.pattern(seed=1)}),
                "5 % of the reports lost": (lossy, {"arrives": lossy.arrives}, {}),
                "through a server": (RelayedShuffle(graph, 60, EPSILON0, cover=14, values=k), {}, {}),
            }  # fmt: skip
            for name, (protocol, attack, more) in ways.items():
                loss = netdp.account(protocol, "curator", **more)
                parts = []
                for delta in (1e-4, 1e-6):
                    high = loss.worst_epsilon(delta)
                    low = least_epsilon(delta, high, n=n, epsilon0=EPSILON0, k=k, **attack)
                    parts.append(f"δ = {delta:g}: {high:.4f} / {low:.4f} = {high / low if low else np.inf:.3f}")
                print(
                    f"  n = {n:>5}, {'any randomizer' if k is None else f'{k}-ary':<14}  {name:<27} {'   '.join(parts)}"
                )


CASES = {"a": hops, "b": single, "c": colluders, "d": early, "e": mechanisms, "f": tightness}

if __name__ == "__main__":
    for letter in sys.argv[1:] or CASES:
        CASES[letter]()
