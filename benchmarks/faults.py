"""The fault matrix, protocol × fault, over real processes: `python benchmarks/faults.py`.

    --only ring-sum/partition    cells whose protocol and fault begin so; "/partition" for all protocols; may be repeated
    --json FILE                  the cells as JSON, too
    --list                       the faults, in words
    --only sixteen               two of sixteen parties killed for good, before and after everything that a member says in an
                                 attempt that survives dropouts (3 may collude, 2 be absent); "sixteen/killed before reveal"

What is asked of every cell: tests/peers/matrix.py. A cell shows how many parties ended with the right answer and how many
with a clean end, over all runs of the cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "peers"))

import matrix

from measure import size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PROTOCOL/FAULT")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    columns = [*matrix.FAULTS, matrix.MIXED]
    if arguments.list:
        for fault in columns:
            print(f"{fault.name:22}{fault.words}{'' if fault.answers else '; an answer or a clean end'}")
        print("sixteen: two of sixteen killed for good, before and after each of: "
              + ", ".join(kind.name.lower() for kind in matrix.STEPS))  # fmt: skip
        return 0
    wanted = [
        one.partition("/") for one in arguments.only or size(["/"], quick=["masked-sum/" + matrix.FAULTS[0].name])
    ]

    def is_wanted(row: str, fault: str) -> bool:
        return any(row.startswith(kind) and fault.startswith(which) for kind, _, which in wanted)

    chosen = [(row, fault) for row in matrix.protocols() for fault in columns if is_wanted(row, fault.name)]
    steps = [(kind, when) for kind in matrix.STEPS for when in ("before", "after")]
    killed = [step for step in steps if is_wanted("sixteen", matrix.killed_words(*step))]
    if not chosen and not killed:
        parser.error(f"no such cell; protocols: {', '.join(matrix.protocols())}; faults: --list")
    print(
        f"full disk: {'a tmpfs of 1 MB' if matrix.may_mount() else 'a limit on the size of files (no right to mount)'}"
    )
    began, cells = time.monotonic(), []
    runs = [partial(matrix.run_cell, row, fault) for row, fault in chosen]
    runs += [partial(matrix.killed_at, matrix.SIXTEEN, kind, when) for kind, when in killed]
    for run in runs:
        cell = run()
        cells.append(cell)
        print(f"[{len(cells)}/{len(runs)}, {time.monotonic() - began:.0f} s] {cell.row}: {cell.fault}: {cell.words}"
              + (f", {cell.restarts} restarts" if cell.restarts else ""), flush=True)  # fmt: skip
        if cell.problem:
            print(f"    {cell.problem}", flush=True)
    print()
    print(table(cells))
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(cell) for cell in cells], indent=1))
    wrong = [cell for cell in cells if cell.problem]
    print(f"\n{len(cells)} cells, {len(wrong)} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


def table(cells: list[matrix.Cell]) -> str:
    """Faults down, protocols across."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    found = {(cell.row, cell.fault): cell.words for cell in cells}
    names = list(dict.fromkeys(cell.fault for cell in cells))
    left = 1 + max(21, *map(len, names))
    widths = [max(len(row), *(len(found.get((row, name), "")) for name in names)) for row in rows]
    lines = [" " * left + "  ".join(row.ljust(width) for row, width in zip(rows, widths, strict=True))]
    for name in names:
        shown = (found.get((row, name), "").ljust(width) for row, width in zip(rows, widths, strict=True))
        lines.append(name.ljust(left) + "  ".join(shown))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    sys.exit(main())
