"""Every combination of a shuffled study on twelve real processes and a curator.

python benchmarks/shuffle_combinations.py               all: some minutes
python benchmarks/shuffle_combinations.py directions single server absent

What is reported (cells by randomized response, numbers with Laplace noise, directions by PrivUnit) × how it is handed over (all
reports, or a single one) × by which way (direct links, or the curator's server under cover traffic) × everybody there, or one party
missing from the beginning. Printed for each: how many hold the same answer, how far it is from the truth in deviations of the
stated noise, the certified ε of the plan, and seconds. `tests/peers/test_shuffle_combinations.py` holds it against the steps.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import few
from netdp.peers.identity import Identity
from netdp.peers.launch import up
from netdp.peers.ledger.store import Store
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study
from netdp.peers.study.task import Task

N = 12
NAMES = [f"p{u:02}" for u in range(N)]
ASKED = {
    "cells": Task(kind="histogram", column="x", bounds=(0, 12), bins=3),
    "numbers": Task(kind="mean", column="x", bounds=(0, 12)),
    "directions": Task(kind="direction", columns=("x", "y", "z")),
}
WAYS = {"direct": {}, "server": {"cover": 1}}
ABSENT = {"everybody": 0, "absent": 1}


def run(asked: str, reporting: str, way: str, there: str) -> tuple[str, ...]:
    """One study on real processes, as a row of the table."""
    began, gone = time.monotonic(), ABSENT[there]
    draft = Study.plan(
        "combination", ASKED[asked], NAMES, graph=f"complete:{N}", epsilon=4.0, delta=1e-3, kind="shuffle",
        reporting=reporting, absent=gone, timing={"gather": 90.0 if gone else 120.0, "patience": 20.0}, **WAYS[way],
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="netdp-shuffle-") as folder:
        place = Path(folder)
        study, path = settle(draft, place)
        table = place / "data.csv"
        rows = [f"{name},{u},{1 + u % 4},{-(u % 3)}" for u, name in enumerate(NAMES)]
        table.write_text("\n".join(["party,x,y,z", *rows]) + "\n")
        data = deal(study, table, place)
        names = [*NAMES[: N - gone], "curator"]
        result = up(study, path, data, place, **({"only": names} if gone else {}))
        told = [result.answered[name] for name in names if name in result.answered]
        if not told:
            reasons: Any = [one.get("reason") for one in result.outcomes.values()]
            return asked, reporting, way, there, "NOBODY", str(reasons[:1]), "", ""
        for name in told[0]["roster"]:
            with Store.open(place / name / "peer.db") as store:
                assert store.verify(Identity.load(place / name).card).rows >= 1
        truth = sum(study.task.rows(data[name])[0] for name in told[0]["roster"])
        off = np.abs(np.array(told[0]["total"]) - truth).max() / study.noise(len(told[0]["roster"]))
        same = len({one["digest"] for one in told}) == 1 and len(told) == len(names)
        epsilon = study.running.worst_epsilon(0, 1e-3)
    seconds = f"{time.monotonic() - began:.0f}"
    held = f"{len(told)} of {len(names)}" + ("" if same else ", DIFFERENT")
    return asked, reporting, way, there, held, f"{off:.2f}", f"{epsilon:.3f}", seconds


def main() -> None:
    """Print the table."""
    wanted = set(sys.argv[1:]) - {"--quick"}
    parts = (list(ASKED), ["all", "single"], list(WAYS), list(ABSENT))
    chosen = [[one for one in part if one in wanted] or part for part in parts]
    line = "{:<12}{:<9}{:<9}{:<11}{:<12}{:>12}{:>8}{:>9}"
    print(line.format("reports", "handed", "way", "there", "hold it", "off (dev.)", "ε", "seconds"))
    for case in few(list(itertools.product(*chosen))):
        print(line.format(*run(*case)), flush=True)


if __name__ == "__main__":
    main()
