"""What the benchmarks share: a stopwatch, the memory used, cases that run in a process of their own, and --quick.

python benchmarks/….py --quick      every benchmark at its smallest size: seconds, and no figure to be quoted
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

QUICK = "--quick" in sys.argv or os.environ.get("NETDP_QUICK") == "1"
"""Whether this is a trial of the benchmark itself. The word is taken from the command line, for the processes it starts, too."""
if QUICK:
    os.environ["NETDP_QUICK"] = "1"
    sys.argv[:] = [word for word in sys.argv if word != "--quick"]


def size(usual: T, quick: T) -> T:
    """How much is measured: as usual, or as little as shows that it works."""
    return quick if QUICK else usual


def few(items: Iterable[T], quick: int = 1) -> list[T]:
    """All of them, or the first."""
    found = list(items)
    return found[:quick] if QUICK else found


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def run_cases(file: str, doc: str | None, cases: dict[str, Callable[[], str]], warm: Callable[[], None]) -> None:
    """Run the cases named on the command line (all without), each in a fresh process so that memory is its own."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"{', '.join(cases)}; all without")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(cases):
        parser.error(f"no case {', '.join(sorted(unknown))}; choose from {', '.join(cases)}")
    for case in arguments.cases or cases:
        if arguments.here or QUICK:
            warm()
            print(f"({case}) {cases[case]()}", flush=True)
        else:
            subprocess.run([sys.executable, file, case, "--here"], check=True)
