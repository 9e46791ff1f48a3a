"""How long an iteration of learning together takes on real processes, where its time goes, and what it sends:
`python benchmarks/training_rounds.py [--cnn]`.

A model of so many numbers whose gradients cost nothing to speak of (`WIDE`), so that what is measured is the rest: noise, pads, the
registers on the disk, signatures and the wire; beside it the same iteration in one process, without any of that but the noise.
With --cnn, the network of `together.py rounds` on images (needs NETDP_DATA); there, one process draws the noise of the sum at once.
Each with a table of the parts (`round_parts`). Times on the wall are those of all parties on this one machine.
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

from measure import few, size
from netdp.families.masked.descent import begun, stepped
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.models import whole_sum
from netdp.peers.launch import up
from netdp.peers.setup import deal, settle
from netdp.peers.study import Study
from netdp.peers.study.training import Training
from round_parts import Parts, watched_process

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
    parts: Parts

    def __str__(self) -> str:
        sent = f"; a party sends {self.sent / 1e6:.3g} MB in each" if self.sent == self.sent else ""
        return (
            f"{self.parties} parties, {self.size:>9,} numbers, {self.iterations} iterations: {1e3 * self.seconds:9.1f} ms each on "
            f"peers, {1e3 * self.alone:9.1f} ms in one process, ratio {self.seconds / self.alone:.2f}{sent}\n{self.parts}"
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
        seconds, sent, result = rates(study, path, deal(study, table, folder), folder, target=watched_process)
        sys.path.remove(place)
        if len(result.answered) < parties:
            raise RuntimeError(f"not all came to an end: {result.gone} {result.outcomes}")
        parts = Parts.of(folder / name for name in study.names)
        return Rounds(parties, size, iterations, seconds, alone(study, rows), sent, parts)


def cnn(parties=5, iterations=30, chunk=64, epsilon=1.0):
    """Train the network of `together_data` on loopback."""
    import torch

    import together_runs as runs
    from together import one_process
    from together_peers import Trial, cnn_rows, cnn_task, study_of
    from together_peers import folder as place_of

    torch.set_num_threads(1)
    p = runs.calibrate(runs.cnn_protocol(epsilon, parties, iterations), epsilon, runs.DELTA, colluders=1)
    with place_of() as place:
        trial = Trial(place, study_of(cnn_task(parties), p, epsilon, runs.DELTA, chunk=chunk), cnn_rows(parties, 0))
        _, times = trial.run(target=watched_process)
        parts = Parts.of(place / name for name in trial.study.names)
    return Rounds(
        parties, p.dimension, iterations, times.per_round, one_process(p, iterations, chunk), float("nan"), parts
    )


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
    parser.add_argument("--parties", type=int, default=size(5, quick=3))
    parser.add_argument("--sizes", type=int, nargs="*", default=few([10, 1000, 30_000, 1_000_000]))
    parser.add_argument(
        "--iterations",
        type=int,
        default=size(None, quick=5),
        help="100 of small models, 30 of larger ones, 10 of a million, unless given",
    )
    parser.add_argument("--cnn", action="store_true", help="the network of together.py instead")
    parser.add_argument(
        "--chunk", type=int, default=64, help="records whose gradients are computed at once, with --cnn"
    )
    chosen = parser.parse_args()
    if chosen.cnn:
        print(cnn(chosen.parties, chosen.iterations or 30, chosen.chunk), flush=True)
        raise SystemExit
    for numbers in chosen.sizes:
        usual = 100 if numbers <= 1000 else 30 if numbers < 10**6 else 10
        print(measured(chosen.parties, numbers, iterations=chosen.iterations or usual), flush=True)
