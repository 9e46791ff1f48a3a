"""Learning by gossip on the housing table (label: longitude below its mean): `python benchmarks/learning.py [case …]`.

figure   Muffliato-GD as in the paper's Figure 1(c): Erdős–Rényi graphs with p = ln n/n redrawn in every iteration, step 0.7,
         n = 2000 and 4000, 10 trials: accuracy beside a trusted aggregator with the same noise; loss towards party 0
curator  masked descent on a hypercube of 2,048 parties at the same certified worst-case ε as central and local DP-GD
speed    one trial of `figure`, n = 2000: seconds and memory
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

from netdp import account, graphs
from netdp.accounting.gossip.iteration import loss_energy
from netdp.graphs.spectrum import spectral_gap
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
from netdp.planning import calibrate
from netdp.planning.gossip.descent import worst_energy
from netdp.protocols import CentralDescent, GossipDescent, LocalDescent

STEP, SIGMA, ITERATIONS, DELTA = 0.7, 1.0, 50, 1e-6


def redrawn(n: int, iterations: int, seed: int) -> tuple[graphs.Graph, ...]:
    return tuple(graphs.erdos_renyi(n, np.log(n) / n, seed=1000 * seed + t) for t in range(iterations))


def muffliato(n: int, seed: int, iterations: int = ITERATIONS) -> GossipDescent:
    """K as in Theorem 5, for the spectral gap of the largest component of one draw."""
    drawn = redrawn(n, iterations, seed)
    gap = spectral_gap(drawn[0].largest_component())
    rounds = int(np.ceil(np.log(n) / np.sqrt(gap)))
    return GossipDescent(drawn, iterations, rounds, sigma=SIGMA, step=STEP, clip=1.0, accelerated=True, gap=gap)


def trial(protocol, seed: int) -> tuple[float, float, float]:
    """Accuracy of party 0's model and of the mean model, and the objective, on a fresh split."""
    rows, test = table("housing").split(0.2, seed)
    data = LogisticParties.deal(rows.X, rows.y, protocol.n, seed)
    run = train(protocol, data, seed)
    first = run.models[0]
    return accuracy(first, test.X, test.y), accuracy(run.mean, test.X, test.y), objective(first, test.X, test.y)


def spread(numbers) -> str:
    return f"{np.mean(numbers):.4f} ± {np.std(numbers):.4f}"


def figure(trials: int) -> None:
    print(
        f"Figure 1(c): Muffliato-GD, Erdős–Rényi(ln n/n) redrawn, step {STEP}, {ITERATIONS} iterations, σ = {SIGMA}, "
        f"{trials} trials"
    )
    print(
        "accuracy on the test set, mean ± standard deviation over trials; losses towards party 0 as multiples of local DP's"
    )
    for n in (2000, 4000):
        gossip, mean, central = [], [], []
        for seed in range(trials):
            protocol = muffliato(n, seed)
            one, all_, _ = trial(protocol, seed)
            gossip.append(one)
            mean.append(all_)
            central.append(trial(CentralDescent(n, ITERATIONS, SIGMA, STEP), seed)[0])
        published = account(protocol, [0], method="published").factor[1:]
        sample = np.random.default_rng(0).choice(np.arange(1, n), 200, replace=False)
        bound = loss_energy(protocol, (0,), targets=sample) / ITERATIONS
        print(f"  n = {n}, K = {protocol.gossip_rounds}:")
        print(
            f"    accuracy: party 0 {spread(gossip)}, mean model {spread(mean)}, trusted aggregator {spread(central)}"
        )
        print(f"    published loss per party (not a bound): mean {published.mean():.4f}, worst {published.max():.3f}")
        print(
            f"    certified loss, 200 parties drawn at random: mean {bound.mean():.4f}, worst {bound.max():.3f}",
            flush=True,
        )


def curator(trials: int) -> None:
    graph = graphs.hypercube(11)
    iterations, step = 30, 4.0
    print(
        f"\nThe same certified worst-case ε (δ = {DELTA:g}) for all: {graph.n} parties on {graph.name}, "
        f"{iterations} steps of {step}"
    )
    draft = GossipDescent(graph, iterations, 40, sigma=1.0, step=step, clip=1.0, masks=1000.0)
    # A hypercube looks the same from every party and in every direction: one observer, one target per distance.
    energy = worst_energy(draft, [(0,)], targets=[2**k - 1 for k in range(1, 12)])
    ratio = energy / iterations * graph.n
    print(f"  masked descent, K = {draft.gossip_rounds}, κ = {draft.masks:g}: worst loss is {ratio:.3f} × a curator's")
    print(f"  {'ε':>5}  {'':24}{'σ':>9}  accuracy of one party's model, {trials} trials")
    for epsilon in (0.5, 1.0, 4.0):
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
        f"one trial of Muffliato-GD, n = 2000, {ITERATIONS} iterations of {protocol.gossip_rounds} rounds: "
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


CASES = {"speed": speed, "figure": figure, "curator": curator, "defaults": defaults}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"{', '.join(CASES)}; all by default")
    parser.add_argument("--trials", type=int, default=10)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    for case in arguments.cases or CASES:
        CASES[case](arguments.trials)


if __name__ == "__main__":
    main()
