"""Thousands of random schedules of deaths, delays, cuts and absences in virtual time: `python benchmarks/schedules.py`.

    --kind ring-sum     one protocol; all without. "liars": sums that survive dropouts, with members that lie
    --seed 17           replay one schedule, with what was noted on the way
    --count 2000        schedules per protocol
    --from 0            the first seed

What is asked of every schedule: tests/peers/trials.py, and of those with members that lie, as many as the study bears:
tests/peers/liars.py (every second of them without deaths, delays and cuts). A failure prints its seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "peers"))

import liars
import matrix
import trials

from measure import few, size

ROWS = [*matrix.protocols(), *(f"liars: {company}" for company in liars.COMPANIES)]


def attempt(row: str, seed: int) -> tuple[trials.Trial, str | None]:
    """One schedule, and what is wrong with it."""
    if row.startswith("liars: "):
        return liars.attempt(row.removeprefix("liars: "), seed // 2, calm=seed % 2 == 0)
    return trials.attempt(row, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", metavar="KIND", help=f"what a row begins with: {', '.join(ROWS)}")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=size(2000, quick=1))
    parser.add_argument("--from", type=int, default=0, dest="first")
    arguments = parser.parse_args()
    if arguments.kind is None:
        rows = few(ROWS)
    else:
        rows = [row for row in ROWS if row == arguments.kind] or [r for r in ROWS if r.startswith(arguments.kind)]
    if not rows:
        parser.error(f"no such kind: {arguments.kind}; there are {', '.join(ROWS)}")
    if arguments.seed is not None:
        return max(replay(row, arguments.seed) for row in rows)
    return max(many(row, range(arguments.first, arguments.first + arguments.count)) for row in rows)


def replay(row: str, seed: int) -> int:
    """One schedule, in detail."""
    trial, problem = attempt(row, seed)
    print(f"{row}, seed {seed}: {trial.schedule}")
    if isinstance(trial, liars.Plot):
        print(f"  who lies: {trial.tricks}")
    for note in trial.notes:
        print(f"  {note}")
    for u, told in sorted(trial.told.items()):
        said = f"answer in attempt {told['attempt']}: {told['total']}" if told["ok"] else f"ended: {told['reason']}"
        print(f"  p{u}: {said}")
    print(problem or "in order")
    return 1 if problem else 0


def many(row: str, seeds: range) -> int:
    """All of them, and how they ended."""
    began, ends, wrong = time.monotonic(), Counter[str](), []
    for seed in seeds:
        trial, problem = attempt(row, seed)
        ends["answers"] += sum(told["ok"] for told in trial.told.values())
        ends["clean ends"] += sum(not told["ok"] for told in trial.told.values())
        ends["mild"] += trial.schedule.mild
        if problem:
            wrong.append(seed)
            print(f"{row}, seed {seed}: {problem}", flush=True)
            print(f"replay: python benchmarks/schedules.py --kind '{row}' --seed {seed}", flush=True)
    took = time.monotonic() - began
    print(
        f"{row:36}{len(seeds)} schedules ({ends['mild']} mild), {ends['answers']} answers, {ends['clean ends']} clean ends, "
        f"{len(wrong)} wrong; {took:.0f} s, {1000 * took / len(seeds):.0f} ms each", flush=True,
    )  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
