"""Masked sums: `python benchmarks/masked.py a b c d`.

(a) error at equal certified privacy, (ε, δ) = (1, 1e-6) against any coalition of a tenth, a quarter and a half of 1,000
    parties that talk on a ring, a grid and a 6-regular graph, for one number and for a hundred: over a curator's who trusts
    everybody's noise, and over the ideal, a curator with the honest parties' noise only (real-number Gaussian noise, no grid)
(b) rounds, and bytes that cross a link in one direction, for both ways of spreading one number, and a hundred
(c) 1,000 parties, pads between all pairs: seconds to account, to calibrate, and to run with 1 and 100 numbers
(d) the law of the noise: five organisations that want a mean of records, by every way and law; and the errors of one attempt
    over the best curator's
"""

from __future__ import annotations

import math

import numpy as np

from measure import few, peak, run_cases, seconds, size
from netdp import graphs, simulate
from netdp.errors import Unsupported
from netdp.families.masked.plan import plan_masked
from netdp.families.masked.protocol import MaskedSum
from netdp.families.masked.threshold import fair_threshold
from netdp.peers.study.planning import best_of, by_law, size_of
from netdp.peers.study.task import Task
from netdp.privacy import gaussian_mu
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import expected_error
from netdp.protocols.calibration import calibrate
from netdp.report.study.accuracy import comparison

EPSILON, DELTA, PARTIES = 1.0, 1e-6, size(1000, quick=20)


def warm() -> None:
    simulate(MaskedSum(graphs.ring(5), sigma=1.0, spread="average"), np.zeros(5), seed=0)


def error() -> str:
    lines = ["talk graph         numbers  coalition  certified ε  share σ/Δ   error  over a curator  over the ideal"]
    for graph in few((graphs.ring(PARTIES), graphs.grid(25, 40), graphs.regular(PARTIES, 6, seed=0))):
        for dimension in (1, 100):
            for part in (10, 4, 2):
                colluders = PARTIES // part
                p = calibrate(MaskedSum(graph, sigma=1.0, dimension=dimension), EPSILON, DELTA, colluders=colluders)
                rmse = math.sqrt(expected_error(p).total / dimension)
                curator = 1 / float(gaussian_mu(EPSILON, DELTA)) / PARTIES
                ideal = curator * math.sqrt(PARTIES / (PARTIES - colluders))
                loss = account(p, list(range(colluders))).worst_epsilon(DELTA)
                lines.append(
                    f"{graph.name:18}{dimension:8}  {'1/' + str(part):>9}{loss:13.6f}{p.sigma:11.5f}{rmse:8.5f}"
                    f"{rmse / curator:16.3f}{rmse / ideal:16.4f}"
                )
    return "\n    ".join(["", *lines])


def traffic() -> str:
    shapes = (
        graphs.ring(64), graphs.ring(1000), graphs.grid(16, 16), graphs.regular(256, 6, seed=0), graphs.regular(1024, 6, seed=0)
    )  # fmt: skip
    lines = ["graph              spread   modulus  rounds  bytes a link, 1 number  100 numbers"]
    for graph in few(shapes):
        for spread in ("flood", "average"):
            found = []
            for dimension in (1, 100):
                p = MaskedSum(graph, sigma=4 / math.sqrt(graph.n), spread=spread, dimension=dimension)
                try:
                    found.append((p.rounds, p.q.bit_length() - 1, f"{p.link_bytes:,}"))
                except Unsupported:
                    found.append((0, p.q.bit_length() - 1, "not exact"))
            (rounds, bits, short), (_, _, many) = found
            lines.append(f"{graph.name:18} {spread:8} {'2^' + str(bits):>7}{rounds or '–':>8}{short:>24}{many:>13}")
    return "\n    ".join(["", *lines])


def time() -> str:
    graph = graphs.regular(PARTIES, 6, seed=0)
    p = MaskedSum(graph, sigma=0.2)
    lines = [
        f"account {seconds(lambda: account(p, range(PARTIES // 10))):.2f} s, calibrate "
        f"{seconds(lambda: calibrate(p, EPSILON, DELTA, colluders=PARTIES // 10)):.2f} s"
    ]
    for dimension in (1, 100):
        values = np.random.default_rng(0).random((PARTIES, dimension)) / math.sqrt(dimension)
        for spread in ("flood", "average"):
            one = p.replace(dimension=dimension, spread=spread)
            one.rounds  # noqa: B018  the graph's spectrum is not counted
            spent = seconds(lambda one=one, values=values: simulate(one, values, seed=0))
            lines.append(f"{dimension:3} numbers, {spread}: {spent:.2f} s")
    return "\n    ".join([*lines, f"{peak():.2f} GB"])


def laws() -> str:
    task = Task(kind="mean", unit="record", column="minutes", bounds=(0, 120), max_records=1000)
    found = by_law("five", task, list("abcde"), graph="complete:5", epsilon=EPSILON, delta=DELTA)
    lines = ["error of a mean in 0 … 120 of N records, times N, five organisations"]
    for row in comparison(best_of(found))["rows"]:
        lines.append(
            f"{row['way']:16} {row['law']:28} {row['error']:>18}  {row['times']:5.2f} times the best curator's"
        )
    lines.append(f"with Gaussian noise this study would be at {size_of(found['gaussian']):.0f}/N")
    # local DP and a curator with Laplace noise that ask for a centred sum and a count, (z, 1): twice the L1 distance
    centred = math.sqrt(2) * 2 / EPSILON * 120 / math.sqrt(2)
    lines.append(f"asked as (z, 1): local Laplace noise {centred * math.sqrt(5):.0f}/N, a curator's {centred:.0f}/N")
    lines.append("n, c, a           law        h  threshold  fair   error over the best curator's")
    for n, c, a in ((16, 1, 0), (16, 3, 2), (50, 10, 5), (5, 1, 0), (5, 1, 1)):
        plan = plan_masked(graphs.complete(n), EPSILON, DELTA, colluders=c, absent=a)
        fair = fair_threshold(n, c, a)
        lines.append(
            f"{f'{n}, {c}, {a}':16} {plan.law:9}{plan.honest:4}{fair.value:11}  {fair.fair!s:6}{plan.times_curator:8.3f}"
        )
    return "\n    ".join(["", *lines])


CASES = {"a": error, "b": traffic, "c": time, "d": laws}

if __name__ == "__main__":
    run_cases(__file__, __doc__, CASES, warm)
