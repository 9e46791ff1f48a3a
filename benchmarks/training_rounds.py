"""How long an iteration of learning together takes on real processes, and what it sends: `python benchmarks/training_rounds.py`.

A model of so many numbers whose gradients cost nothing to speak of (`WIDE`), so that what is measured is the rest: noise, pads, the
registers on the disk, signatures and the wire; beside it the same iteration in one process, without any of that but the noise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.models import whole_sum
from netdp.peers.settle import deal, settle
from netdp.peers.study import Study
from netdp.peers.study.training import Training
from netdp.peers.up import up
from netdp.protocols.model_steps import begun, stepped

WIDE = """
import torch


class Wide(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x):
        score = self.weight.mean() + x.sum(-1)
        return torch.stack([score, -score], -1)


def made(features, classes):
    return Wide(SIZE)
"""


@dataclass(frozen=True)
class Rounds:
    """What was measured: seconds an iteration on peers and in one process, and bytes that a party sends in one."""

    parties: int
    size: int
    iterations: int
    seconds: float
    alone: float
    sent: float

    def __str__(self) -> str:
        return (
            f"{self.parties} parties, {self.size:>9,} numbers, {self.iterations} iterations: {1e3 * self.seconds:9.1f} ms each on "
            f"peers, {1e3 * self.alone:9.1f} ms in one process; a party sends {self.sent / 1e6:.3g} MB in each"
        )


def rates(study, path, data, folder, **options):
    """Run a study on real processes: seconds an iteration at the slowest party, bytes sent in one, and what came of it."""
    seen = {}

    def watch(progress):
        for name, status in progress.status.items():
            if status.get("iteration"):
                seen[name] = dict(status)

    result = up(study, path, data, folder, watch=watch, **options)
    last = [status for status in seen.values() if status.get("rate")]
    seconds = max((1 / status["rate"] for status in last), default=float("nan"))
    sent = max((status["bytes"] / status["iteration"] for status in last), default=float("nan"))
    return seconds, sent, result


def measured(parties=5, size=1000, iterations=50, rows=20, graph=None):
    """Train a model of `size` numbers on loopback."""
    with tempfile.TemporaryDirectory(prefix="netdp-rounds-") as place, contextlib.chdir(place):
        folder = Path(place)
        name = f"wide{size}"
        (folder / f"{name}.py").write_text(WIDE.replace("SIZE", str(size)))
        task = Training.of_code(
            f"{name}:made", folders=[folder], features=[{"name": "x", "range": [0, 1]}], label="y", classes=["no", "yes"],
            max_records=rows, records=parties * rows,
        )  # fmt: skip
        names = [f"p{u}" for u in range(parties)]
        draft = Study.plan(
            "rounds", task, names, graph=graph or f"complete:{parties}", epsilon=2.0, delta=1e-6, iterations=iterations
        )
        study, path = settle(draft.replace(timing={"gather": 120.0, "patience": 60.0}), folder)
        table = folder / "data.csv"
        table.write_text("party,x,y\n" + "".join(f"{u},{i / rows},yes\n" for u in names for i in range(rows)))
        os.environ["PYTHONPATH"] = os.pathsep.join([place, os.environ.get("PYTHONPATH", "")])
        sys.path.insert(0, place)
        seconds, sent, result = rates(study, path, deal(study, table, folder), folder)
        sys.path.remove(place)
        if len(result.answered) < parties:
            raise RuntimeError(f"not all came to an end: {result.gone} {result.outcomes}")
        return Rounds(parties, size, iterations, seconds, alone(study, rows), sent)


def alone(study, rows, times=5):
    """Seconds an iteration in one process."""
    p, task = study.protocol(), study.task
    model, rng = task.model(), np.random.default_rng(0)
    X, y = np.ones((rows, 1)), np.ones(rows)
    state, law, start = begun(model.start()), DiscreteGaussian(p.sum.share), 0.0
    for t in range(1, times + 2):
        if t == 2:
            start = time.perf_counter()  # the first one compiles
        total = np.zeros(p.dimension, dtype=np.int64)
        for _ in range(p.n):
            total += whole_sum(model, state.theta, X, y, p.clip, p.sum.step, p.distance)
            total += law.sample((p.dimension,), words_from(rng))
        state = stepped(p, state, min(t, p.iterations), total)
    return (time.perf_counter() - start) / times


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 1000, 30_000, 1_000_000])
    parser.add_argument(
        "--iterations", type=int, help="100 of small models, 30 of larger ones, 10 of a million, unless given"
    )
    chosen = parser.parse_args()
    for numbers in chosen.sizes:
        usual = 100 if numbers <= 1000 else 30 if numbers < 10**6 else 10
        print(measured(chosen.parties, numbers, iterations=chosen.iterations or usual), flush=True)
