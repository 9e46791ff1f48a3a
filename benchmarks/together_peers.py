"""Studies of real peers that train a model, for `together.py` and `membership.py`: every party a process with keys of its own.

`Trial` settles a study in a folder, once. Its copies have the same keys and so the same noise: two runs of two copies must
end with the same model to the last bit, whatever happened to their processes meanwhile. `recomputed` is a third way to that
model: everybody's rows and secrets in one process, by the steps that the simulator uses.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from netdp.families.masked.descent import begun, kept, stepped
from netdp.families.masked.peer import coins, rows_digest
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.models import whole_sum
from netdp.numerics.arrays import FloatArray
from netdp.peers.identity import Identity
from netdp.peers.launch import party_process, up
from netdp.peers.outcome import UpResult
from netdp.peers.setup import settle
from netdp.peers.streams import context, noise_words
from netdp.peers.study import Study
from netdp.peers.study.training import Training
from netdp.protocols import MaskedDescent

PATIENCE = 120.0
_COINS = 1  # as in netdp.families.masked.peer


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="netdp-together-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def study_of(task: Training, p: MaskedDescent, epsilon: float, delta: float, *, chunk: int = 64) -> Study:
    """A draft that states this protocol."""
    return Study(
        name="together", task=task.model_dump(mode="json", by_alias=True), party=[{"name": f"p{u}"} for u in range(p.n)],
        network={"graph": f"complete:{p.n}"}, privacy={"epsilon": epsilon, "delta": delta, "colluders": 1},
        timing={"gather": PATIENCE, "patience": PATIENCE},
        protocol={
            "kind": "masked-descent", "iterations": p.iterations, "sampling": p.sampling, "clip": p.clip, "step": p.step,
            "momentum": p.momentum, "average": p.average, "sigma": p.sigma, "grid": p.sum.step, "modulus": p.sum.q, "chunk": chunk,
        },
    )  # fmt: skip


@dataclass
class Times:
    """When all parties had completed which iteration; for seconds per round."""

    seen: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, status: dict[str, dict[str, Any]], n: int) -> int:
        done = [one.get("iteration", 0) for one in status.values()]
        least = min(done) if len(done) == n else 0
        if least and (not self.seen or least > self.seen[-1][1]):
            self.seen.append((time.perf_counter(), least))
        return least

    @property
    def per_round(self) -> float:
        """Seconds of an iteration, from the first seen to the last."""
        (begin, first), (end, last) = self.seen[0], self.seen[-1]
        return (end - begin) / (last - first) if last > first else float("nan")


def told_process(home: str, study: str, data: str | None, events: Any, record: str | None = None) -> None:
    """A party's process that leaves its number where we find it."""
    (Path(home) / "pid").write_text(str(os.getpid()))
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    party_process(home, study, data, events, record)


class Trial:
    """A study with keys, addresses, signatures and data, in a folder."""

    def __init__(self, place: Path, draft: Study, rows: Sequence[FloatArray]) -> None:
        self.place = place
        self.study, self.path = settle(draft, place)
        self.files = {}
        for name, table in zip(self.study.names, rows, strict=True):
            self.files[name] = place / name / "data.csv"
            write_rows(self.files[name], draft.task, table)

    def copy(self, place: Path) -> Trial:
        """The same once more: the same keys, so the same noise."""
        shutil.copytree(self.place, place, dirs_exist_ok=True)
        other = object.__new__(Trial)
        other.place, other.study, other.path = place, self.study, place / self.path.name
        other.files = {name: place / name / "data.csv" for name in self.files}
        return other

    def run(
        self, *, kill: tuple[str, int] | None = None, record: Path | None = None, target: Any = told_process
    ) -> tuple[UpResult, Times]:
        """All parties as processes. kill = (who, when): killed with signal 9 once all are so far, and started again."""
        times, left = Times(), [] if kill is None else [kill]

        def watch(progress: Any) -> None:
            least = times(progress.status, self.study.n)
            if left and least >= left[0][1]:
                who, _ = left.pop()
                os.kill(int((self.place / who / "pid").read_text()), signal.SIGKILL)

        result = up(self.study, self.path, self.files, self.place, watch=watch, target=target, record=record)
        if not result.ok or left:
            raise RuntimeError(f"the training did not end well: {result.gone} {result.notes[:5]} {left}")
        return result, times


def write_rows(path: Path, task: Any, rows: FloatArray) -> None:
    """A party's file: features as they are, the label as its class."""
    names = [feature.name for feature in task.features]
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow([*names, task.label])
        for row in rows.tolist():
            writer.writerow([*map(repr, row[:-1]), task.classes[int(row[-1])]])


def recomputed(
    trial: Trial, protocol: MaskedDescent, chunk: int, seen: Callable[[int, Any, Any], None] | None = None
) -> tuple[FloatArray, str]:
    """The model that follows from everybody's rows and secrets, in one process, and its digest; `seen(t, state, sums)`."""
    study, roster = trial.study, tuple(range(trial.study.n))
    model, parts = study.task.model(chunk), []
    for name in study.names:
        rows, secret = study.task.rows(trial.files[name]), Identity.load(trial.place / name).noise_secret
        parts.append((*study.task.parts(rows), secret, rows_digest(secret, rows)))
    state = begun(model.start())
    for t in range(1, protocol.iterations + 1):
        total = np.zeros(protocol.dimension, dtype=np.int64)
        for X, y, secret, digest in parts:
            drawn = coins(
                noise_words(secret, context(study.hash, 1, roster, t, _COINS), digest), len(y), protocol.threshold
            )
            own = whole_sum(model, state.theta, X[drawn], y[drawn], protocol.clip, protocol.sum.step, protocol.distance)
            words = noise_words(secret, context(study.hash, 1, roster, t), own.astype("<i8").tobytes())
            total += own + DiscreteGaussian(protocol.sum.share).sample(own.shape, words)
        if seen is not None:
            seen(t, state, total)
        state = stepped(protocol, state, t, total)
    theta = kept(protocol, state)
    return theta, hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest()


def digest_of(result: UpResult) -> str:
    """Of the model that all hold."""
    return str(next(iter(result.answered.values()))["digest"])


def cnn_task(parties: int) -> Training:
    """The network of `together_data` on images, as a study states it: 784 columns in −1 … 1, one label."""
    from together_data import CLASSES, PIXELS

    return Training.of_code(
        "together_data:cnn", features=[{"name": f"pixel{i}", "range": (-1, 1)} for i in range(PIXELS)], label="digit",
        classes=[str(digit) for digit in range(CLASSES)], unit="record", max_records=-(-8000 // parties), records=8000,
    )  # fmt: skip


def cnn_rows(parties: int, seed: int) -> list[FloatArray]:
    """The 8,000 images of this seed, dealt out as in the simulation."""
    from together_data import mnist

    X, y, *_ = mnist(seed)
    parts = np.array_split(np.random.default_rng(seed).permutation(len(X)), parties)
    return [np.column_stack([X[part], y[part]]) for part in parts]


def table_task(name: str, protocol: MaskedDescent) -> Training:
    """Logistic regression on a table whose rows have norm 1: columns in −1 … 1."""
    from netdp.learn import table
    from together_runs import LABEL

    count = len(table(name, LABEL[name]).features)
    return Training(
        model="logistic", features=[{"name": f"x{i}", "range": (-1, 1)} for i in range(count)], label="y", classes=["no", "yes"],
        unit="record", max_records=protocol.max_records, min_records=1, records=protocol.records,
    )  # fmt: skip


def table_rows(name: str, parties: int, seed: int) -> list[FloatArray]:
    """The rows of this seed's split, dealt out as in the simulation."""
    from netdp.learn import table
    from together_runs import LABEL

    train, _ = table(name, LABEL[name]).split(0.2, seed)
    parts = np.array_split(np.random.default_rng(seed).permutation(len(train.y)), parties)
    return [np.column_stack([train.X[part], (train.y[part] + 1) / 2]) for part in parts]


def trained(
    task: Training, p: MaskedDescent, rows: Sequence[FloatArray], epsilon: float, delta: float, *, chunk: int = 64
) -> dict[str, Any]:
    """One run of real peers: its model, seconds per round, and whether one process computes the same bits from rows and secrets."""
    with folder() as place:
        trial = Trial(place, study_of(task, p, epsilon, delta, chunk=chunk), rows)
        promised = trial.study.promise().worst_epsilon(delta)
        result, times = trial.run()
        theta, digest = recomputed(trial, p, chunk)
        if digest != digest_of(result):  # the peers hold a digest of all numbers; a large model is not in their outcome
            raise RuntimeError(f"peers have the model {digest_of(result)}, and one process computes {digest}")
        return {"theta": theta.tolist(), "round": times.per_round, "same": True, "promised": promised}
