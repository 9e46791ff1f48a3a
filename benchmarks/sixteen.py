"""Every protocol on sixteen real processes, its answers held against the simulator's.

python benchmarks/sixteen.py                every kind, eight runs each: some five minutes
python benchmarks/sixteen.py --runs 3 walk-sum shuffle

Each run is a study of its own (fresh keys, fresh noise) of sixteen processes on loopback, and a curator where there is one. What
the parties hold in the end is compared with as many draws of the simulator as one likes: the largest gap between the two
distribution functions (Kolmogorov–Smirnov) and how likely a gap as large is if they are the same. Besides: every ledger
verifies, and all parties hold the same answer where the protocol has one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from measure import few, size
from netdp import simulate
from netdp.families.shuffle.simulate import collect, collect_relayed
from netdp.mechanisms import GridLaplace, RandomizedResponse
from netdp.peers.identity import Identity
from netdp.peers.launch import up
from netdp.peers.ledger.store import Store
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task

N = 16
NAMES = [f"p{u:02}" for u in range(N)]
MEAN = Task(kind="mean", column="x", bounds=(0, 10))
SHARES = Task(kind="histogram", column="x", categories=("a", "b", "c"))
NUMBERS = [str((7 * u) % 11) for u in range(N)]
LETTERS = ["abc"[u % 3] if u < 12 else "a" for u in range(N)]
CASES: dict[str, dict[str, Any]] = {
    "masked-sum": {"kind": "masked-sum", "graph": "regular:16,4,seed=1"},
    "masked-sum, averaged": {"kind": "masked-sum", "graph": "hypercube:4", "spread": "average"},
    "ring-sum": {"kind": "ring-sum", "graph": "ring:16"},
    "ring-histogram": {"kind": "ring-histogram", "graph": "ring:16"},
    "walk-sum": {"kind": "walk-sum", "graph": "complete:16", "steps": 64},
    "walk-sum, on a graph": {"kind": "walk-sum", "graph": "hypercube:4", "steps": 64},
    "walk-sum, two tokens": {"kind": "walk-sum", "graph": "complete:16", "steps": 32, "tokens": 2},
    "walk-histogram": {"kind": "walk-histogram", "graph": "complete:16", "steps": 64},
    "gossip": {"kind": "gossip", "graph": "hypercube:4"},
    "randomized-gossip": {"kind": "randomized-gossip", "graph": "hypercube:4", "pace": 0.05},
    "shuffle": {"kind": "shuffle", "graph": "regular:16,4,seed=1"},
    "shuffle, single": {"kind": "shuffle", "graph": "regular:16,4,seed=1", "reporting": "single"},
    "shuffle, by a server": {"kind": "shuffle", "graph": "regular:16,4,seed=1", "cover": 3},
    "shuffle, of numbers": {"kind": "shuffle", "graph": "regular:16,4,seed=1", "numbers": True},
}
EPSILON = 4.0


def planned(case: dict[str, Any]) -> Study:
    """A draft of the case."""
    options = {key: value for key, value in case.items() if key != "numbers"}
    counts = "histogram" in case["kind"] or (case["kind"] == "shuffle" and not case.get("numbers"))
    return Study.plan(
        "sixteen", SHARES if counts else MEAN, NAMES, epsilon=EPSILON, delta=1e-3,
        timing={"gather": 120.0, "patience": 60.0}, **options,
    )  # fmt: skip


def values_of(study: Study) -> list[str]:
    """What the parties hold."""
    return LETTERS if study.task.kind == "histogram" else NUMBERS


def first_number(study: Study, answer: dict[str, Any]) -> float:
    """The mean, or the share of the first category."""
    if study.task.kind == "histogram":
        counts = answer["counts"]
        return float(next(iter(counts.values())) if isinstance(counts, dict) else counts[0]) / N
    return float(answer["value"])


def real_run(draft: Study) -> tuple[float, float, int]:
    """The answer of one run on processes, the seconds from all listening, and how many answers differ."""
    with tempfile.TemporaryDirectory(prefix="netdp-sixteen-") as folder:
        place = Path(folder)
        study, path = settle(draft, place)
        table = place / "data.csv"
        table.write_text("party,x\n" + "".join(f"{a},{b}\n" for a, b in zip(NAMES, values_of(study), strict=True)))
        result = up(study, path, deal(study, table, place), place)
        if set(result.answered) != set(study.everybody):
            raise SystemExit(f"no answer: {result.gone} {[told.get('reason') for told in result.outcomes.values()]}")
        for name in study.names:
            with Store.open(place / name / "peer.db") as store:
                assert store.verify(Identity.load(place / name).card).rows == 1
        told = result.outcomes[NAMES[0]]
        different = len({one["digest"] for one in result.answered.values()})
        seconds = result.seconds["answered"] - result.seconds["listening"]
        return first_number(study, told["answer"]), seconds, different


def simulated(study: Study, runs: int) -> list[float]:
    """The same number from the simulator."""
    protocol, task = study.protocol(), study.task
    rows = np.array([task.rows([{"x": value}])[0] for value in values_of(study)])
    out = []
    for seed in range(runs):
        if study.settings.kind == "shuffle":
            how = study.settings
            if task.kind == "histogram":
                mechanism: Any = RandomizedResponse(task.dimension, how.epsilon0)
                data: Any = rows.argmax(axis=1)
            else:
                mechanism, data = GridLaplace.interval(-1.0, 1.0, how.epsilon0), rows[:, 0]
            if how.cover:
                estimate = collect_relayed(protocol, mechanism, data, seed).estimate
            else:
                null = None if how.reporting == "all" else 0
                estimate = collect(protocol, mechanism, data, seed, null=null).estimate
            total = np.atleast_1d(estimate) * N
        else:
            given = rows.argmax(axis=1) if study.task.kind == "histogram" else rows
            total = np.atleast_2d(simulate(protocol, given, seed=seed).estimates)[0] * N
        out.append(first_number(study, study.answer(total.tolist())))
    return out


def compared(name: str, runs: int, draws: int) -> dict[str, Any]:
    """One line of the table."""
    draft = planned(CASES[name])
    begun = time.monotonic()
    found = [real_run(draft) for _ in range(runs)]
    law = simulated(draft, draws)
    gap = ks_2samp([one[0] for one in found], law)
    return {
        "case": name,
        "runs": runs,
        "gap": float(gap.statistic),
        "p": float(gap.pvalue),
        "median": float(np.median([one[0] for one in found])),
        "simulated": float(np.median(law)),
        "spread": float(np.std(law)),
        "seconds": float(np.median([one[1] for one in found])),
        "answers": max(one[2] for one in found),
        "all": time.monotonic() - begun,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("cases", nargs="*", metavar="KIND", help="which ones; all of them by default")
    options.add_argument("--runs", type=int, default=size(8, quick=1), help="real runs of each")
    options.add_argument("--draws", type=int, default=size(400, quick=5), help="simulated ones")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    names = [name for name in few(CASES) if not asked.cases or any(name.startswith(case) for case in asked.cases)]
    if not asked.json:
        print(f"{'sixteen processes':<24}{'median':>8}{'simulated':>11}{'±':>7}{'gap':>7}{'p':>7}{'seconds':>9}")
    worst = 1.0
    for name in names:
        row = compared(name, asked.runs, asked.draws)
        worst = min(worst, row["p"])
        if asked.json:
            print(json.dumps(row), flush=True)
        else:
            print(
                f"{name:<24}{row['median']:>8.3g}{row['simulated']:>11.3g}{row['spread']:>7.2g}{row['gap']:>7.2f}"
                f"{row['p']:>7.2g}{row['seconds']:>9.2f}",
                flush=True,
            )
    if not asked.json:
        print(f"the smallest p of {len(names)} is {worst:.2g}; below {0.01 / len(names):.1g} would be a reason to look")


if __name__ == "__main__":
    main()
