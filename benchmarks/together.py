"""Learning together, held against a trusted curator: `python benchmarks/together.py [case …] [--short] [--cache FOLDER]`.

multipliers  the noise that the accountant demands beside `dp-accounting`'s, for every setting used here
tables       housing, cardio, spambase: accuracy at ε = 1, δ = 1e-6, of 1,024 parties (unit party) and of 10 (unit record)
mnist        8,000 of the MNIST test images, a CNN of 26,010 numbers, 10 parties, unit record, ε = 1, 3, 8, δ = 1e-5
rounds       five real processes train the CNN: seconds per round beside one process, and beside Flower (NETDP_FLOWER: an
             interpreter that has it), run in turn
restart      the same with one process killed by signal 9 in the middle and started again: the same model to the last bit
membership   an attack on the recorded views of real peers (`membership.py`)

Every method sees the same split and the same public start for the same seed, so differences are taken seed by seed; ± is the
standard deviation over seeds, and of a difference its standard error. The curator is Opacus with noise from `dp-accounting`
(parties: NumPy); it needs the noise of nobody else, while ten parties add a ninth more variance than one colluder leaves
them: that is the price here. Most seeds are simulated; "real peers" are processes, and one process must compute their model
to the last bit from rows and secrets. The tables are standardised with all their rows, which no line here accounts for: it is
the same for all methods.

--short: 3 seeds, ε = 1 for the CNN, and short runs. Needs NETDP_DATA, torch, opacus, dp-accounting and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import together_runs as runs
from measure import few, size
from together_curator import multiplier, told
from together_runs import CNN, DELTA, EPSILON, LEVELS, PARTIES, TABLES, Kept

HERE = Path(__file__).parent


class Bench:
    """What the cases share."""

    def __init__(self, kept: Kept, quick: bool) -> None:
        self.kept, self.quick = kept, quick
        self.seeds = size(3 if quick else 10, quick=1)

    def several(
        self, name: str, work: Callable[[int], dict[str, Any]], seeds: int | None = None
    ) -> list[dict[str, Any]]:
        """One run per seed."""
        return [self.kept(f"{name}-{seed}", lambda seed=seed: work(seed)) for seed in range(seeds or self.seeds)]  # type: ignore[misc]

    # ── accuracy ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def multipliers(self) -> None:
        """Ours over dp-accounting's; with grids, shares and one colluder counted as peers count them."""
        print(
            "\nNoise multiplier (deviation of honest noise over the clip): MaskedDescent, all margins included, and dp-accounting"
        )
        settings = [(f"cnn, ε = {epsilon:g}", runs.cnn_protocol(epsilon), epsilon, DELTA) for epsilon in few(CNN)]
        settings += [
            (f"{name}, records", runs.table_protocol(name, "record"), EPSILON, LEVELS["record"][1])
            for name in size(TABLES, quick={})
        ]
        for name, p, epsilon, delta in settings:
            ours, theirs = p.sigma * math.sqrt(p.n - 1) / p.clip, multiplier(epsilon, delta, p.sampling, p.iterations)
            low = told(ours, p.sampling, p.iterations, delta)
            print(
                f"  {name:20} q = {p.sampling:.4g}, T = {p.iterations:3}: {ours:8.4f} {theirs:8.4f}   ratio {ours / theirs:.5f}"
                f"   ε of ours by dp-accounting {low:.4f}",
                flush=True,
            )

    def tables(self) -> None:
        """One table for each data set."""
        self.fair()
        for name in TABLES:
            plain = self.several(f"{name}-plain", lambda seed, name=name: runs.table_plain(name, seed))  # type: ignore[misc]
            majority = np.mean([one["majority"] for one in plain])
            for unit, (n, delta) in LEVELS.items():
                print(f"\n{name}: unit {unit}, {n:,} parties, ε = {EPSILON:g}, δ = {delta:g}; majority {majority:.4f}")
                methods = {
                    "curator": lambda seed, name=name, unit=unit: runs.table_curator(name, unit, seed),
                    "masked": lambda seed, name=name, unit=unit: runs.table_masked(name, unit, seed),
                    "local": lambda seed, name=name, unit=unit: runs.table_masked(name, unit, seed, shared=False),
                }
                found = {kind: self.several(f"{name}-{unit}-{kind}", work) for kind, work in methods.items()}
                against = accuracies(found["curator"])
                line("curator" + (" (Opacus)" if unit == "record" else " (NumPy)"), against)
                line("MaskedDescent, simulated", accuracies(found["masked"]), against)
                if unit == "record":
                    self.table_peers(name, against)
                    print(f"  {'gossip, walks':38}protect whole parties only: see above")
                else:
                    for kind in ("gossip", "walk"):
                        work = lambda seed, name=name, kind=kind: runs.table_estimator(name, kind, seed)  # noqa: E731
                        line(f"{kind} descent", accuracies(self.several(f"{name}-{unit}-{kind}", work)), against)
                line("every party behind its own noise", accuracies(found["local"]), against)
                line("not private", accuracies(plain), against)

    def table_peers(self, name: str, against: list[float]) -> None:
        """Ten processes, for one or two of the seeds."""
        from together_peers import table_rows, table_task, trained

        p, (n, delta) = runs.table_protocol(name, "record"), LEVELS["record"]

        def work(seed: int) -> dict[str, Any]:
            found = trained(table_task(name, p), p, table_rows(name, n, seed), EPSILON, delta, chunk=1)
            _, _, tests, truth = runs.rows_of(name, seed)
            right = (tests @ np.array(found.pop("theta")) > 0) == (truth > 0.5)
            return {**found, "accuracy": float(right.mean())}

        told_peers(self.several(f"{name}-record-peers", work, 1 if self.quick else 2), against)

    def fair(self) -> None:
        """The curator is not handicapped."""
        far = runs.curator_is_fair()
        words = ", ".join(f"{name} {distance:.1g}" for name, distance in far.items())
        print(f"\nClipped sums without noise, Opacus against netdp, relative distance: {words}")

    def mnist(self) -> None:
        """One table for each ε."""
        self.fair()
        plain = self.several("cnn-plain", runs.cnn_plain)
        for epsilon in (1.0,) if self.quick else tuple(CNN):
            p = runs.cnn_protocol(epsilon)
            print(
                f"\nMNIST test images, CNN of {p.dimension:,} numbers: unit record, {PARTIES} parties, ε = {epsilon:g}, "
                f"δ = {DELTA:g}, {p.iterations} iterations"
            )
            curator = self.several(f"cnn-curator-{epsilon:g}", lambda seed, e=epsilon: runs.cnn_curator(e, seed))  # type: ignore[misc]
            masked = self.several(f"cnn-masked-{epsilon:g}", lambda seed, e=epsilon: runs.cnn_masked(e, seed))  # type: ignore[misc]
            local = self.several(
                f"cnn-local-{epsilon:g}",
                lambda seed, e=epsilon: runs.cnn_masked(e, seed, shared=False),
                3,  # type: ignore[misc]
            )
            against = accuracies(curator)
            line("curator (Opacus)", against)
            line("MaskedDescent, simulated", accuracies(masked), against)
            if epsilon == 1.0:
                told_peers(self.several("cnn-peers-1", self.cnn_peers, 1), against)
            line("every party behind its own noise", accuracies(local), against)
            line("not private", accuracies(plain), against)
            print(
                f"  {'gossip, walks':38}refused: nothing bounds how far a step of a CNN stretches, and their loss rests on that"
            )

    def cnn_peers(self, seed: int) -> dict[str, Any]:
        """Ten processes train the network."""
        from together_data import cnn_model, mnist
        from together_peers import cnn_rows, cnn_task, trained

        found = trained(cnn_task(PARTIES), runs.cnn_protocol(1.0), cnn_rows(PARTIES, seed), 1.0, DELTA)
        _, _, tests, truth = mnist(seed)
        return {**found, "accuracy": float(cnn_model().correct(np.array(found.pop("theta")), tests, truth).mean())}

    # ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def rounds(self) -> None:
        """Seconds per round, all in turn, medians."""
        from together_peers import Trial, cnn_rows, cnn_task, folder, study_of

        parties, iterations, repeats = 5, 15 if self.quick else 30, 1 if self.quick else 3
        p = runs.calibrate(runs.cnn_protocol(1.0, parties, iterations), 1.0, DELTA, colluders=1)
        task, rows = cnn_task(parties), cnn_rows(parties, 0)
        spent: dict[str, list[float]] = {
            "netdp, five processes": [],
            "one process, the same sum": [],
            "Flower, no noise, no pads": [],
        }
        peers, alone, flower = spent.values()
        for _ in range(repeats):
            with folder() as place:
                peers.append(Trial(place, study_of(task, p, 1.0, DELTA), rows).run()[1].per_round)
            alone.append(one_process(p, iterations))
            if os.environ.get("NETDP_FLOWER"):
                flower += flower_rounds(parties, iterations)
        print(
            f"\nSeconds per round of the CNN, {parties} parties, unit record; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
        )
        for name, seconds in spent.items():
            if seconds:
                ratio = np.median(peers) / np.median(seconds)
                print(
                    f"  {name:30}{np.median(seconds):8.3f}   netdp's over it {ratio:6.2f}   {[round(x, 3) for x in seconds[:6]]}"
                )
            else:
                print(f"  {name:30}not measured: NETDP_FLOWER names no interpreter that has flwr")

    def restart(self) -> None:
        """Kill −9 in the middle."""
        from together_peers import Trial, cnn_rows, cnn_task, digest_of, folder, recomputed, study_of

        parties, iterations = 5, 12 if self.quick else 30
        p = runs.calibrate(runs.cnn_protocol(1.0, parties, iterations), 1.0, DELTA, colluders=1)
        with folder() as place:
            (place / "calm").mkdir()
            calm = Trial(place / "calm", study_of(cnn_task(parties), p, 1.0, DELTA), cnn_rows(parties, 0))
            killed = calm.copy(place / "killed")
            first, _ = calm.run()
            again, _ = killed.run(kill=("p2", iterations // 2))
            _, alone = recomputed(calm, p, 64)
        digests = {"undisturbed": digest_of(first), "p2 killed by signal 9": digest_of(again), "one process": alone}
        print(
            f"\nFive processes, {iterations} iterations of the CNN, the same keys and so the same noise; SHA-256 of the model"
        )
        for name, digest in digests.items():
            print(f"  {name:24}{digest[:32]}…")
        same = len(set(digests.values())) == 1
        print(f"  {'the same to the last bit' if same else 'THEY DIFFER'}; restarts {again.restarts}", flush=True)
        if not same:
            raise SystemExit("a restart changed the model")

    def membership(self) -> None:
        """See there."""
        import membership

        print()
        membership.main(700 if self.quick else membership.COUNT)


def accuracies(found: list[dict[str, Any]]) -> list[float]:
    """Of every seed."""
    return [one["accuracy"] for one in found]


def line(name: str, scores: list[float], against: list[float] | None = None) -> None:
    """Mean and spread, the difference to the curator seed by seed, and the ratio of the means over the same seeds."""
    spread = f"± {np.std(scores, ddof=1):.4f}" if len(scores) > 1 else " " * 8
    words = f"  {name:38}{np.mean(scores):.4f} {spread}   {len(scores):2} seeds"
    if against is not None:
        same = min(len(scores), len(against))
        apart = np.array(scores[:same]) - np.array(against[:same])
        error = f" ± {np.std(apart, ddof=1) / math.sqrt(same):.4f}" if same > 1 else ""
        words += (
            f"   − curator {apart.mean():+.4f}{error}   ratio {np.mean(scores[:same]) / np.mean(against[:same]):.4f}"
        )
    print(words, flush=True)


def told_peers(found: list[dict[str, Any]], against: list[float]) -> None:
    """The line of real peers, and what else they show."""
    line("MaskedDescent, real peers", accuracies(found), against)
    bits = "the same bits as one process" if all(one["same"] for one in found) else "OTHER BITS THAN ONE PROCESS"
    print(f"  {'':38}{bits}; {found[0]['round']:.3f} s a round; promised ε {found[0]['promised']:.4f}")


def one_process(p: Any, iterations: int, chunk: int = 64) -> float:
    """Seconds of an iteration of the simulator, the same sum in one process."""
    from netdp.families.masked.simulate import run
    from together_data import cnn_model, mnist

    X, y, *_ = mnist(0)
    data = runs.ModelParties.deal(cnn_model(chunk), X, y, p.n, 0)
    ends: list[float] = []
    run(p, data, np.random.SeedSequence(0), after=lambda t, state: ends.append(time.perf_counter()))
    return float(np.median(np.diff(ends)))


def flower_rounds(parties: int, rounds: int) -> list[float]:
    """Seconds of rounds of Flower, without the first ones; run by an interpreter that has it."""
    done = subprocess.run(
        [os.environ["NETDP_FLOWER"], str(HERE / "together_flower.py"), str(parties), str(rounds)],
        check=True, capture_output=True, text=True, env={**os.environ, "FLWR_TELEMETRY_ENABLED": "0"}, timeout=600,
    )  # fmt: skip
    return [float(np.median(json.loads(done.stdout.strip().splitlines()[-1])[2:]))]


CASES = ("multipliers", "tables", "mnist", "rounds", "restart", "membership")


def main() -> None:
    """Run the cases named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"{', '.join(CASES)}; all by default")
    parser.add_argument("--short", action="store_true", help="minutes instead of an hour")
    parser.add_argument("--cache", type=Path, help="a folder where results of single runs are kept, to go on later")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    import torch

    torch.set_num_threads(1)
    bench = Bench(Kept(arguments.cache), arguments.short)
    for case in arguments.cases or size(CASES, quick=("multipliers",)):
        getattr(bench, case)()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
