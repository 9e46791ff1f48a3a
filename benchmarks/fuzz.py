"""Mutated messages against a live peer, of every protocol: `python benchmarks/fuzz.py --messages 1000000`.

What is sent: tests/peers/mutants.py. Printed: what the peer took and rejected, by reason, its memory before and after, and
how many strangers were turned away. Fails if the peer dies, if a message is not counted, or if its memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "peers"))

import matrix
import mutants

from measure import few, size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=size(100_000, quick=40), help="in all, shared by the protocols")
    parser.add_argument("--kind", choices=matrix.protocols(), action="append")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = arguments.kind or few(matrix.protocols())
    wrong, sent = [], 0

    def show(words: str) -> None:
        print(f"  {words}", flush=True)

    for row in rows:
        with tempfile.TemporaryDirectory(prefix="netdp-fuzz-") as folder, mutants.Victim(Path(folder), row) as victim:
            try:
                found = asyncio.run(mutants.fuzz(victim, arguments.messages // len(rows), arguments.seed, show))
                found.check()
            except AssertionError as problem:
                wrong.append(row)
                print(f"{row}: WRONG: {problem}", flush=True)
                continue
        sent += found.messages
        print(f"{row}: {found.words}", flush=True)
    print(f"{sent:,} messages; {len(wrong)} of {len(rows)} peers failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
