"""An audit run: a study like a given one, with data made to be found out, run by real processes and recorded.

A study about one mean has one sum of one or two numbers: nothing can be measured on it. So the *task* is replaced by a histogram
of many cells, and everything that the promise rests on stays: the parties, the graph, the protocol, σ, the grid, attempts,
absences and colluders. Noise is added to every cell alike and by itself, so d cells are d runs of the mechanism at once.

**Records** (masked sums). unit = "record": one record in a cell of its own is a *canary*. The target holds each of them or not,
by a fair coin; the others hold some at random, which the coalition knows. Whoever reads the noisy histogram guesses the coins.

**Parties** (rings, gossip). They protect whole parties: everybody names one of the cells, and d coordinates of the best statistic
say how much noise hides it.

**What changes besides.** The modulus is raised where the sum of so many records needs it (privacy does not depend on it); rounding
costs a little more in more cells, so the promise is computed anew, and the study states that. Keys are new. It is patient.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Unsupported
from netdp.numerics.arrays import BoolArray, rounded_down, rounded_up
from netdp.numerics.checks import whole
from netdp.peers.kinds import RUNNING
from netdp.peers.launch import Watch, run_study
from netdp.peers.recordings.recording import Recording
from netdp.peers.study.study import Study
from netdp.peers.study.task import Task

CANARIES = "canaries.json"
"""Beside a recording: whose records were put in or left out by fair coins."""

COUNT = 2000
"""Cells of the histogram."""

_LARGEST = 1e6  # an ε that any study may state while its own is computed

_ROOM = 1.02
"""The promise is stated with so much room: a party's own policy adds several attempts up a little differently."""

_PATIENT = 60.0
"""Seconds: many parties on one machine are slower than on many, and how long one waits costs no privacy."""

_OTHERS = 10
"""Everybody but the target holds one in so many canaries."""

_COLUMN = "canary"


def run_with_canaries(
    study_path: Path, out: Path, *, count: int = COUNT, seed: int | None = None, watch: Watch | None = None
) -> Path:
    """Run an audit study made from `study_path` with real processes, recorded into the new folder `out`, which is returned.

    count   cells of its histogram: canaries, or coordinates
    seed    of coins and data; None: nobody knows them beforehand
    """
    study, out, count = Study.read(study_path), Path(out), whole("count", count, 16)
    if out.exists() and any(out.iterdir()):
        raise InvalidValue(f"{out} is not empty; a recording goes into a folder of its own: give a new one")
    made = audit_study(study, count)
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else whole("seed", seed))
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, table = out / "draft.toml", out / "canaries.csv"
    made.write(draft)
    target = made.names[int(rng.integers(made.n))]
    with open(os.open(table, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["party", _COLUMN])
        for name in made.names:
            writer.writerows([name, cell + 0.5] for cell in _cells(made, name == target, count, rng))
    result = run_study(draft, table, out, watch=watch, record=out)
    if not result.ok:
        ended = [str(told["reason"]) for told in result.outcomes.values() if not told["ok"]]
        said = "; ".join([*result.gone.values(), *ended, *result.notes][:3]) or "parties hold different answers"
        raise NetdpError(f"the audit run of {study.name!r} came to no answer: {said}")
    coins = {"study": result.study.hash.hex(), "target": target, "coins": made.task.unit == "record", "count": count}
    (out / CANARIES).write_text(json.dumps(coins) + "\n", "utf-8")
    return out


def _cells(study: Study, is_target: bool, count: int, rng: np.random.Generator) -> list[int]:
    """In which cells a party has a record."""
    if study.task.unit == "party":
        return [int(rng.integers(count))]
    if is_target:
        return [int(cell) for cell in np.flatnonzero(rng.integers(2, size=count))]
    return sorted(int(cell) for cell in rng.choice(count, size=count // _OTHERS, replace=False))


def audit_study(study: Study, count: int) -> Study:
    """The draft of the same study about a histogram of `count` cells, with its own promise.

    >>> task = Task(kind="mean", column="x", bounds=(0, 1))
    >>> study = Study.plan("s", task, list("abcd"), graph="ring:4", epsilon=1.0, delta=1e-6)
    >>> made = audit_study(study, 64)
    >>> made.task.describe(), made.settings.sigma == study.settings.sigma
    ("a histogram of 'canary': how many records in each of 64 cells", True)
    """
    running, privacy = study.running, study.privacy
    if running.canaries is None:
        able = ", ".join(word for word, kind in RUNNING.items() if kind.canaries)
        raise Unsupported(
            f"no audit study is made from {running.kind}: canaries are for {able}. Record a run with its own "
            "data instead: netdp up STUDY --folder DIR --record DIR, then netdp audit --peers DIR"
        )
    task = {"kind": "histogram", "column": _COLUMN, "bounds": (0.0, float(count)), "bins": count}
    if running.canaries == "record":
        task |= {"unit": "record", "max_records": count}
    asked = Task(**task)  # type: ignore[arg-type]
    units = study.n * (asked.max_records or 1)
    fields: dict[str, Any] = study.to_dict() | {
        "name": f"audit of {study.name}"[:200], "nonce": "", "task": asked.model_dump(mode="json", by_alias=True),
        "party": [{"name": name} for name in study.names],
    }  # fmt: skip
    fields["privacy"] |= {"epsilon": _LARGEST, "delta": min(privacy.delta, rounded_down(0.5 / units, 2))}
    fields["timing"] = {name: max(given, _PATIENT) for name, given in fields["timing"].items()}
    fields["protocol"] |= running.settings_for(asked)
    made = Study(**fields)
    found = made.running.worst_epsilon(privacy.colluders, made.privacy.delta)
    if not found < _LARGEST:
        raise Unsupported(
            f"in {count} cells this study promises nothing at delta = {made.privacy.delta:g}: its grid is too coarse for so many; "
            "give a smaller count"
        )
    return made.replace(privacy={"epsilon": rounded_up(_ROOM * found, 4)})


# ── what lies beside a recording ──────────────────────────────────────────────────────────────────────────────────────


def _canaries(recording: Recording) -> dict[str, Any] | None:
    path = recording.folder / CANARIES
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["study"] != recording.study.hash.hex() or found["target"] not in recording.study.names:
            return None
    except (ValueError, KeyError, TypeError):
        raise FileFormatError(path, None, "is no list of canaries; make the recording again") from None
    return dict(found)


def canary_target(recording: Recording) -> int | None:
    """Whose records were put in or left out; None where there are no canaries."""
    found = _canaries(recording)
    return None if found is None else recording.study.index(found["target"])


def coins_of(recording: Recording, target: int) -> BoolArray | None:
    """Which records the target holds, where fair coins decided that; None where they did not."""
    found = _canaries(recording)
    if found is None or not found["coins"] or recording.study.index(found["target"]) != target:
        return None
    return np.asarray(recording.rows[target].sum(axis=0) > 0)
