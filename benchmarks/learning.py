"""Learning by gossip on the housing table (label: longitude below its mean): `python benchmarks/learning.py [case …]`.

curator  masked descent on a hypercube of 2,048 parties at the same certified worst-case ε as central and local DP-GD
speed    one trial of Muffliato-GD as in the paper's Figure 1(c), n = 2000: seconds and memory (the figure itself:
         `netdp reproduce 004-fig1c`)
defaults the two estimators as they come on all tables, ε = 1 and 4, 64 to 1,024 parties: accuracy, and whether they warned

Needs NETDP_DATA.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from itertools import product

import numpy as np

from measure import few, size
from netdp import graphs
from netdp.families.gossip.plan import worst_energy
from netdp.learn import (
    LABELS,
    GossipLogisticRegression,
    LogisticParties,
    WalkLogisticRegression,
    accuracy,
    objective,
    table,
    train,
)
from netdp.papers.muffliato.common import muffliato
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent, calibrate

DELTA = 1e-6


def trial(protocol, seed: int) -> tuple[float, float, float]:
    """Accuracy of party 0's model and of the mean model, and the objective, on a fresh split."""
    rows, test = table("housing").split(0.2, seed)
    data = LogisticParties.deal(rows.X, rows.y, protocol.n, seed)
    run = train(protocol, data, seed)
    first = run.models[0]
    return accuracy(first, test.X, test.y), accuracy(run.mean, test.X, test.y), objective(first, test.X, test.y)


def spread(numbers) -> str:
    return f"{np.mean(numbers):.4f} ± {np.std(numbers):.4f}"


def curator(trials: int) -> None:
    graph = graphs.hypercube(size(11, quick=4))
    iterations, step = size(30, quick=2), 4.0
    print(
        f"\nThe same certified worst-case ε (δ = {DELTA:g}) for all: {graph.n} parties on {graph.name}, "
        f"{iterations} steps of {step}"
    )
    draft = GossipDescent(graph, iterations, size(40, quick=4), sigma=1.0, step=step, clip=1.0, masks=1000.0)
    # A hypercube looks the same from every party and in every direction: one observer, one target per distance.
    energy = worst_energy(draft, [(0,)], targets=[2**k - 1 for k in range(1, graph.n.bit_length())])
    ratio = energy / iterations * graph.n
    print(f"  masked descent, K = {draft.gossip_rounds}, κ = {draft.masks:g}: worst loss is {ratio:.3f} × a curator's")
    print(f"  {'ε':>5}  {'':24}{'σ':>9}  accuracy of one party's model, {trials} trials")
    for epsilon in few((0.5, 1.0, 4.0)):
        masked = calibrate(draft, epsilon, DELTA, energy=energy)
        baselines = [cls(graph.n, iterations, 1.0, step) for cls in (CentralDescent, LocalDescent)]
        central, local = (calibrate(protocol, epsilon, DELTA) for protocol in baselines)
        for name, protocol in (
            ("trusted curator", central),
            ("masked gossip, no curator", masked),
            ("local DP", local),
        ):
            scores = [trial(protocol, seed)[0] for seed in range(trials)]
            print(f"  {epsilon:5g}  {name:25}{protocol.sigma:8.2f}  {spread(scores)}", flush=True)


def speed(_: int) -> None:
    protocol = muffliato(2000, 0)
    trial(protocol.replace(graph=protocol.graphs[:2], iterations=2), 0)
    start = time.perf_counter()
    trial(protocol, 0)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"one trial of Muffliato-GD, n = 2000, {protocol.iterations} iterations of {protocol.gossip_rounds} rounds: "
        f"{seconds:.2f} s, {memory:.2f} GB"
    )


def defaults(trials: int) -> None:
    trials = min(trials, 3)
    print(
        f"\nThe estimators with nothing but parties and ε given (δ = 1e-5), {trials} trials; * = they warned that noise wins"
    )
    tables = {(name, label): table(name, label) for name, labels in LABELS.items() for label in labels}
    for estimator, n, epsilon in product(
        (GossipLogisticRegression, WalkLogisticRegression), (64, 256, 1024), (1.0, 4.0)
    ):
        told = []
        for (name, label), whole in tables.items():
            scores = []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for seed in range(trials):
                    rows, test = whole.split(0.2, seed)
                    fitted = estimator(n, epsilon=epsilon, random_state=seed).fit(rows.X, rows.y)
                    scores.append(fitted.score(test.X, test.y))
            told.append(f"{name} ({label}) {spread(scores)}{'*' if caught else ' '}")
        print(f"  {estimator.__name__:25} n = {n:4}, ε = {epsilon:g}: {'  '.join(told)}", flush=True)


CASES = {"speed": speed, "curator": curator, "defaults": defaults}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"{', '.join(CASES)}; all by default")
    parser.add_argument("--trials", type=int, default=size(10, quick=1))
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    for case in arguments.cases or size(list(CASES), quick=["curator"]):
        CASES[case](arguments.trials)


if __name__ == "__main__":
    main()
